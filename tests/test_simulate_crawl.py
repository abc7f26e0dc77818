"""The simulation of crawls on clusters follows the rules of a crawl, and the sites that it draws are served."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from drawn_sites import DrawnSite, draw_sites
from simulate_crawl import Rules, simulate, task_seconds, tasks_of
from usp.tree import sitemap_tree_for_homepage

pytestmark = pytest.mark.tools

TOOLS = Path(__file__).parents[1] / "tools"
NO_CPU = {"task_seconds": 0.0, "cpu_per_request": 0.0, "cpu_per_site": 0.0}


def site(number: int, sitemaps: int = 2, seconds: float = 1.0, domain: str = "", is_silent: bool = False) -> DrawnSite:
    address = f"127.0.0.{number}"
    return DrawnSite(address, domain or address, sitemaps, seconds, is_silent)


@pytest.mark.parametrize(
    ("sites", "rules", "seconds"),
    [
        ([site(1)], {}, 3.0),  # robots.txt, the index, two sitemaps at once
        ([site(1, sitemaps=5)], {}, 5.0),
        ([site(1), site(2)], {}, 3.0),
        ([site(1), site(2), site(3)], {"sites_at_once": 2}, 6.0),
        (
            [site(n, domain="a") for n in range(4)],
            {"per_domain": 2},
            8.0,
        ),  # two sites at once, four steps of two requests
        ([site(1, is_silent=True), site(2)], {"request_seconds": 20}, 100.0),
        ([site(1)], {"task_seconds": 0.5, "cpu_per_request": 0.1, "cpu_per_site": 0.2}, 0.5 + 3.0 + 0.4 + 0.2),
    ],
)
def test_a_task_takes_as_long_as_its_rules_say(sites: list[DrawnSite], rules: dict[str, float], seconds: float) -> None:
    """What a task takes, where it can be counted by hand."""
    assert task_seconds(sites, Rules(**{**NO_CPU, **rules})) == pytest.approx(seconds)  # type: ignore[arg-type]  # mixed


def test_tasks_run_in_their_order_on_the_first_free_core() -> None:
    """A long task at the end makes the other core wait."""
    found = simulate([3, 1, 1, 5], 2)
    assert (found.seconds, found.busy, found.tail) == (7, 10, 4)
    assert found.use == pytest.approx(10 / 14)


def test_a_domain_is_in_one_task() -> None:
    """Sites of one domain share a task, every site is in one, and draws do not depend on the day."""
    sites = draw_sites(5_000, 7, 0.2)
    tasks = tasks_of(sites, Rules(sites_per_task=100))
    assert len(tasks) == 50
    assert sorted(map(hash, sites)) == sorted(hash(one) for task in tasks for one in task)
    domains = [{one.domain for one in task} for task in tasks]
    assert sum(map(len, domains)) == len(set().union(*domains)) < 5_000
    assert draw_sites(5_000, 7, 0.2) == sites != draw_sites(5_000, 8, 0.2)
    assert (sites[0].sitemaps, round(sites[0].seconds, 4)) == (3, 0.25)


def test_drawn_sites_are_served() -> None:
    """The server has the drawn sitemaps of each site, and answers 304 to a request with an ETag."""
    drawn = draw_sites(3, 7, 0.0)
    command = [sys.executable, str(TOOLS / "drawn_sites.py"), "3", "7", "0"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        try:
            port = int(server.stdout.readline())
            for one in drawn:
                tree = sitemap_tree_for_homepage(f"http://{one.address}:{port}/", use_known_paths=False)
                assert len({page.url for page in tree.all_pages()}) == 100 * one.sitemaps
            url = f"http://{drawn[0].address}:{port}/0.xml"
            with pytest.raises(HTTPError, match="304") as raised:
                urlopen(Request(url, headers={"If-None-Match": '"1"'}), timeout=10)
            raised.value.close()
        finally:
            server.communicate()
