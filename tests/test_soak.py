"""A long run of requests with random faults, by both drivers: nothing is lost, nothing leaks, memory stays flat.

Set the environment variable USP_SOAK to 1 for 50,000 requests instead of 2,000.
"""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from clocks import within
from faults import Driver, described, each_driver, nothing_left
from test_faults_crowd import serve_crowd, served_log
from usp.limits import Limits
from usp.objects.sitemap import InvalidSitemap
from usp.politeness import Politeness

pytestmark = [pytest.mark.network, pytest.mark.slow]

#: Requests of both drivers together.
REQUESTS = 50_000 if os.environ.get("USP_SOAK") == "1" else 2_000
PER_TREE = 500 if REQUESTS > 10_000 else 100


def memory() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@each_driver
def test_soak(driver: Driver) -> None:
    """Every sitemap that the server sent whole is in the tree, with one fault in twenty; memory stays flat."""
    trees = REQUESTS // 2 // PER_TREE
    options = {
        "normalize_homepage_url": False,
        "limits": Limits(request_seconds=10, tree_seconds=60),
        "politeness": Politeness(retry_seconds=0.01),
    }
    asked = 0
    sizes = []
    lost: list[str] = []
    complete = 0
    with serve_crowd() as base, nothing_left(), within(600):
        for number in range(trees):
            tree = driver.tree(f"{base}/faults/{PER_TREE}/{number}/", **options)
            log = served_log(base)
            asked += log["asked"]
            had = {node.url.removeprefix(base): node for node in tree.all_sitemaps()}
            for path in log["whole"]:
                node = had.get(path)
                if node is None or node.problems or isinstance(node, InvalidSitemap):
                    lost.append(f"{path}: {node and described(node)}")
                elif path[-5].isdigit() and [page.url for page in node.pages] != [f"http://x{path}"]:
                    lost.append(f"{path}: {node.pages}")
            for path in had.keys() - set(log["whole"]):
                assert isinstance(had[path], InvalidSitemap) or had[path].problems, path
            complete += len(had) == PER_TREE + 4
            del tree, had
            if number == trees // 5 or number == trees - 1:
                sizes.append(memory())
    assert lost == []
    assert asked >= REQUESTS // 2
    assert complete >= trees * 0.9, "a site whose own index is lost, five times in a row, is rare"
    assert sizes[1] - sizes[0] < 8_000_000
