"""What large bodies may cost: memory while many arrive at once, bytes that no page comes of, and forks meanwhile."""

from __future__ import annotations

import gzip
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from clocks import within
from faults import (
    PATIENT,
    QUICK,
    Driver,
    Handler,
    HangUp,
    Request,
    each_driver,
    head,
    nothing_left,
    ok,
    serve_faults,
    status,
)
from support import SITEMAP_XMLNS
from test_faults_process import forked, run_apart, wide_site
from usp.limits import Limits
from usp.politeness import Politeness
from usp.stream import SitemapStream

pytestmark = pytest.mark.network

MB = 1_000_000


def long_sitemap(size: int) -> bytes:
    start, end = f"<urlset {SITEMAP_XMLNS}>\n".encode(), b"</urlset>"
    entry = b"<url><loc>http://x/a-page-of-this-site.html</loc><lastmod>2026-01-01</lastmod></url>\n"
    return start + entry * ((size - len(start) - len(end)) // len(entry)) + end


PEAK = """
from pathlib import Path
from usp.limits import Limits
tree = driver.tree(url, limits=Limits(request_seconds=60, tree_seconds=90), concurrency=%d)
print([described(sitemap) for sitemap in tree.all_sitemaps()].count("1 pages"))
print(int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) // 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read in /proc")
@pytest.mark.parametrize(("count", "size"), [(8, 40 * MB), (24, 20 * MB)])
@each_driver
def test_memory_of_large_bodies_at_once(driver: Driver, count: int, size: int) -> None:
    """Many large bodies that arrive at the same time take at most 150 MB, whatever their number."""
    body = long_sitemap(size)
    together = threading.Barrier(count)

    def handler(request: Request) -> None:
        request.send(head(Content_Length=len(body)))
        request.send(body[: size * 19 // 20])
        with suppress(threading.BrokenBarrierError):
            together.wait(20)  # until nearly all of each body is on its way
        request.send(body[size * 19 // 20 :])

    robots = "".join(f"Sitemap: {{base}}/{number}.xml\n" for number in range(count))
    site = {"/robots.txt": ok(robots)} | {f"/{number}.xml": handler for number in range(count)}
    with serve_faults(site) as server, within(60):
        run = run_apart(PEAK % count, driver, server.url)
    pages, peak = map(int, run.stdout.split())
    assert not together.broken, "they did not arrive at once"
    assert pages == count, run.stdout + run.stderr
    assert peak < 150


PEAK_OF_INDEXES = """
from pathlib import Path
from usp.limits import Limits
tree = driver.tree(url, limits=Limits(max_sitemaps=100, request_seconds=60, tree_seconds=90))
cuts = [problem.code for problem in tree.problems].count("C901")
print(tree.outcome.kind, tree.outcome.skipped, len(list(tree.all_sitemaps())), cuts)
print(int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) // 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read in /proc")
@each_driver
def test_memory_of_large_indexes(driver: Driver) -> None:
    """Of the sitemaps that indexes list, a tree keeps no more than it may ever fetch, and counts the others."""
    listed = 10_000

    def index(name: int) -> Handler:
        def handler(request: Request) -> None:
            start = f"{request.server.url}/{name}/{'x' * 1_500}"
            entries = (f"<sitemap><loc>{start}-{number}.xml</loc></sitemap>\n" for number in range(listed))
            body = f"<sitemapindex {SITEMAP_XMLNS}>\n{''.join(entries)}</sitemapindex>".encode()
            ok(gzip.compress(body, 1), Content_Encoding="gzip")(request)

        return handler

    def slow(request: Request) -> None:
        time.sleep(8)  # until the indexes are read: the tree is not cut before
        request.send(head(404, Content_Length=0))

    robots = "Sitemap: {base}/slow.xml\n" + "".join(f"Sitemap: {{base}}/{name}.xml\n" for name in range(8))
    site = {"/robots.txt": ok(robots), "/slow.xml": slow} | {f"/{name}.xml": index(name) for name in range(8)}
    with serve_faults(site, default=status(404)) as server, within(90):
        run = run_apart(PEAK_OF_INDEXES, driver, server.url)
    told, peak = run.stdout.splitlines()
    # The tree has robots.txt, the slow one, the first index, 97 of its sitemaps, and one that stands for all others.
    assert told == f"partial {listed - 97 + 7} 101 1", run.stdout + run.stderr
    assert int(peak) < 100


@pytest.mark.slow
@each_driver
def test_failed_tries_count_toward_max_total_bytes(driver: Driver) -> None:
    """A body that breaks off at every try counts each time, while it arrives."""
    sent: list[int] = []

    def broken(request: Request) -> None:
        request.send(head(Content_Length=50 * MB))
        sent.append(0)
        for _ in range(60):
            request.send(b" " * 65_536)
            sent[-1] += 65_536
        raise HangUp

    robots = "".join(f"Sitemap: {{base}}/{number}.xml\n" for number in range(20))
    site = {"/robots.txt": ok(robots)} | {f"/{number}.xml": broken for number in range(20)}
    limits = Limits(request_seconds=20, tree_seconds=20, max_total_bytes=20 * MB)
    with serve_faults(site) as server, nothing_left(server), within(20):
        tree = driver.tree(server.url, limits=limits, politeness=QUICK, concurrency=2)
    assert any("limits.max_total_bytes" in problem.message for problem in tree.problems)
    # Sockets hold some that was sent and not read.
    assert sum(sent) < 20 * MB + 2 * 8 * MB


@each_driver
def test_one_endless_body_ends_at_max_total_bytes(driver: Driver) -> None:
    """A body that alone is more than the tree may transfer ends there, and what has arrived of it is read."""
    body = long_sitemap(30 * MB)
    limits = Limits(request_seconds=20, tree_seconds=20, max_total_bytes=3 * MB)
    site = {"/robots.txt": ok("Sitemap: {base}/a.xml\n"), "/a.xml": ok(body)}
    with serve_faults(site) as server, nothing_left(server), within(20):
        tree = driver.tree(server.url, limits=limits)
    (sitemap,) = [sitemap for sitemap in tree.all_sitemaps() if sitemap.url.endswith("a.xml")]
    assert sitemap.transport is not None
    assert 3 * MB < sitemap.transport.size < 5 * MB
    assert (sitemap.transport.is_whole, sitemap.transport.is_limited) == (False, True)
    assert [problem.code for problem in sitemap.problems] == ["C901"]
    assert "limits.max_total_bytes" in sitemap.problems[0].message


@each_driver
def test_bodies_of_errors_count_toward_max_total_bytes(driver: Driver) -> None:
    """Bodies of errors that are read to reuse a connection count, too."""
    robots = "".join(f"Sitemap: {{base}}/{number}.xml\n" for number in range(60))
    limits = Limits(request_seconds=20, tree_seconds=20, max_total_bytes=1 * MB)
    site = {"/robots.txt": ok(robots)}
    with serve_faults(site, default=status(404, b"x" * 60_000)) as server, nothing_left(server), within(20):
        tree = driver.tree(server.url, limits=limits, politeness=Politeness(tries=1))
    assert any("limits.max_total_bytes" in problem.message for problem in tree.problems)
    assert len(server.asked) < 30


def test_a_fork_in_the_middle_of_a_walk() -> None:
    """A child that is forked in the middle of a walk reads the sitemaps that had arrived, while the walk goes on."""

    def walk(url: str) -> None:
        with SitemapStream(url, memory_bytes=0, use_known_paths=False, limits=PATIENT) as stream:
            arrived = [sitemap for _, sitemap in zip(range(8), stream, strict=False)]

            def pages() -> list[str]:
                return [page.url for sitemap in arrived for page in sitemap.pages]

            expected = pages()
            with forked(lambda: [pages() for _ in range(3)]) as in_child:
                rest = [page.url for sitemap in stream for page in sitemap.pages]
                assert in_child() == [expected] * 3
        in_tree = [page.url for page in stream.tree.all_pages()]
        assert expected + rest == in_tree == [f"http://x/{number}" for number in range(12)]

    with serve_faults(wide_site(12, padding=200_000)) as server, nothing_left(server), within(20):
        walk(server.url)
