"""Sites whose documents take long to parse: the tree, and every command, end in time and keep what was read."""

from __future__ import annotations

import asyncio
import gzip
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

import usp.aio
from clocks import undisturbed, within
from commands import RunHere, environment
from faults import BAD, Driver, FaultServer, Handler, each_driver, good_site, nothing_left, ok, serve_faults, visit
from support import urlset
from usp.limits import Limits
from usp.objects.outcome import outcome_of
from usp.objects.sitemap import AbstractSitemap, InvalidSitemap
from usp.stream import SitemapStream

pytestmark = pytest.mark.network

FIRST = [f"http://x/{number}" for number in range(50)]
TREE_SECONDS = 2.0
#: With a limit of pages, each sitemap is read to its end to count them.
LIMITED = Limits(tree_seconds=TREE_SECONDS, max_pages=1_000_000)
COMMANDS = {
    "ls": ["ls", "-f", "tabtree"],
    "ls -f pages": ["ls", "-f", "pages"],
    "ls --sitemaps": ["ls", "--sitemaps"],
    "check": ["check", "--fail-on", "never"],
    "export": ["export", "-f", "csv"],
}


@cache
def slow_document() -> bytes:
    """Return less than a kilobyte that takes ten CPU seconds to read: a few pages, and then 60 MB of odd entries."""
    start = urlset(*FIRST).removesuffix("</urlset>").encode()
    odd = b"<url><loc>'x.example/odd&nosuch;'</loc></url>"  # Python reads quoted URLs, and unknown references in them
    return gzip.compress(gzip.compress(start + odd * (60_000_000 // len(odd))))


def slow_site(count: int = 1) -> dict[str, Handler]:
    """Return a site of good sitemaps, and some slow ones before, between and behind them."""
    robots = "".join(f"Sitemap: {{base}}/slow{number}.xml.gz\n" for number in range(count))
    names = "Sitemap: {base}/first.xml\nSitemap: {base}/index.xml\nSitemap: {base}/last.xml.gz\n"
    slow = {f"/slow{number}.xml.gz": ok(slow_document()) for number in range(count)}
    return good_site() | {BAD: ok(slow_document()), "/robots.txt": ok(robots + names + robots)} | slow


@contextmanager
def slow_server(count: int = 1) -> Iterator[FaultServer]:
    with serve_faults(slow_site(count)) as server:
        yield server


def urls_of(sitemap: AbstractSitemap) -> list[str]:
    return [page.url for page in sitemap.pages]


@each_driver
def test_a_document_that_takes_too_long(driver: Driver) -> None:
    """A tree ends when its time is up. The slow sitemap has its first pages, C901, and good ones around it."""
    visited = visit(driver, ok(slow_document()), seconds=TREE_SECONDS + 4, limits=LIMITED)
    assert urls_of(visited.sitemap)[: len(FIRST)] == FIRST
    assert urls_of(visited.sitemap) == urls_of(visited.sitemap), "each read gives the same pages"
    assert visited.sitemap.transport is not None
    assert not visited.sitemap.transport.is_whole
    assert "limits.tree_seconds" in visited.sitemap.transport.cut_reason
    assert "C901" in [problem.code for problem in visited.tree.problems]
    assert visited.tree.outcome.kind == "partial"
    assert "limits.tree_seconds" in visited.tree.outcome.reason


def test_document_seconds() -> None:
    """A sitemap that takes longer than `document_seconds` is cut, whatever time the tree has, and so says C901."""
    limits = Limits(tree_seconds=60, document_seconds=0.3, max_pages=1_000_000)
    visited = visit(Driver("threads"), ok(slow_document()), seconds=6, limits=limits)
    assert urls_of(visited.sitemap)[: len(FIRST)] == FIRST
    cut = "parsing a sitemap took 0.3 seconds (limits.document_seconds); the rest was skipped"
    assert cut in [problem.message for problem in visited.tree.problems]
    assert cut in [problem.message for problem in visited.sitemap.problems]
    assert [missing.reason for missing in visited.tree.outcome.missing] == [cut]


@each_driver
def test_many_documents_that_take_too_long(driver: Driver) -> None:
    """Slow sitemaps share the time, so that good ones among them are read."""
    with slow_server(4) as server, nothing_left(server), within(TREE_SECONDS + 4):
        tree = driver.tree(server.url, limits=LIMITED)
    found = {page.url for sitemap in tree.all_sitemaps() if "slow" not in sitemap.url for page in sitemap.pages}
    assert {f"http://x/{name}" for name in ("first", "before", "behind", "last")} <= found
    assert tree.outcome.kind == "partial"


def test_the_event_loop_goes_on() -> None:
    """While a document is parsed, even a tiny one that inflates to many megabytes, the event loop does not stand."""

    async def longest_gap(url: str) -> float:
        longest = 0.0

        async def tick() -> None:
            nonlocal longest
            while True:
                before = undisturbed()
                await asyncio.sleep(0.01)
                longest = max(longest, undisturbed() - before)

        ticking = asyncio.create_task(tick())
        await usp.aio.sitemap_tree_for_homepage(url, use_known_paths=False, limits=LIMITED)
        ticking.cancel()
        return longest

    assert len(slow_document()) < 1_000
    with slow_server() as server:
        assert asyncio.run(longest_gap(server.url)) < TREE_SECONDS / 2


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS.keys())
def test_max_time(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A command ends a few seconds after --max-time, says that its results are partial, and has the good pages."""
    run = RunHere(capsys)
    with slow_server(4) as server, within(TREE_SECONDS + 7):
        done = run(*arguments, server.url, "-k", "--max-time", str(TREE_SECONDS))
    assert done.returncode == 4, done.stderr
    assert "--max-time" in done.stderr or "C901" in done.stdout
    if arguments[0] in ("ls", "export") and "--sitemaps" not in arguments:
        for name in ("first", "before", "behind", "last"):
            assert f"http://x/{name}" in done.stdout


@pytest.mark.parametrize("is_bounded", [True, False])
def test_reading_after_the_time_of_the_tree(is_bounded: bool) -> None:
    """A tree that was complete in time may be read for ever; that of a command ends soon, and is partial then."""
    site = {"/robots.txt": ok("Sitemap: {base}/a.xml\n"), "/a.xml": ok(urlset(*FIRST) + " " * 1_000_000)}
    with serve_faults(site) as server:
        limits = Limits(tree_seconds=1)
        stream = SitemapStream(server.url, use_known_paths=False, limits=limits, bounds_reading=is_bounded)
        tree = stream.read()
    assert tree.outcome.kind == "complete"
    time.sleep(limits.tree_seconds)
    enough = time.process_time() + 4
    while (pages := [page.url for page in tree.all_pages()]) == FIRST and time.process_time() < enough:
        pass
    assert (pages == FIRST) != is_bounded
    assert [page.url for page in tree.all_pages()] == pages
    assert outcome_of(tree, tree.facts).kind == ("partial" if is_bounded else "complete")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS.keys())
def test_an_interrupt_while_a_document_is_parsed(arguments: list[str], number: signal.Signals, tmp_path: Path) -> None:
    """Ctrl-C in the middle of a long parse ends a command within a second or so."""
    with slow_server() as server:
        command = [sys.executable, "-m", "usp", *arguments, server.url, "-k"]
        with (
            (tmp_path / "out").open("wb") as output,
            subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE, env=environment()) as process,
        ):
            try:
                until = time.monotonic() + 30
                while not server.count("/slow0.xml.gz") and time.monotonic() < until:
                    time.sleep(0.05)
                time.sleep(0.5)
                assert process.poll() is None, process.communicate()
                process.send_signal(number)
                with within(3):
                    process.communicate(timeout=30)
            finally:
                process.kill()
    assert process.returncode == (130 if number is signal.SIGINT else 143)


@each_driver
def test_total_inflated_bytes(driver: Driver) -> None:
    """Many small files that inflate to a lot end the tree at `max_total_inflated_bytes`."""
    body = gzip.compress(urlset(*FIRST).encode() + b" " * 1_000_000)
    site = {f"/{number}.xml.gz": ok(body) for number in range(20)}
    robots = "".join(f"Sitemap: {{base}}/{number}.xml.gz\n" for number in range(20))
    with serve_faults({"/robots.txt": ok(robots), **site}) as server:
        tree = driver.tree(server.url, limits=Limits(max_total_inflated_bytes=5_500_000))
    read = [sitemap for sitemap in tree.sub_sitemaps[0].sub_sitemaps if not isinstance(sitemap, InvalidSitemap)]
    assert 5 <= len(read) <= 6
    assert all(urls_of(sitemap) == FIRST for sitemap in read)
    why = "the tree's sitemaps have 5,500,000 bytes, inflated (limits.max_total_inflated_bytes)"
    assert [problem.message for problem in tree.problems] == [f"{why}; the rest was skipped"]
    assert tree.outcome.kind == "partial"
    assert tree.outcome.reason.startswith(why)


@each_driver
def test_the_outcome_names_the_limit_of_the_tree(driver: Driver) -> None:
    """A body that `max_total_bytes` cuts is not called larger than `max_sitemap_bytes`."""
    body = urlset(*FIRST).removesuffix("</urlset>") + " " * 3_000_000
    with serve_faults({"/robots.txt": ok("Sitemap: {base}/a.xml\n"), "/a.xml": ok(body)}) as server:
        tree = driver.tree(server.url, limits=Limits(max_total_bytes=1_000_000, request_seconds=30))
    (sitemap,) = tree.sub_sitemaps[0].sub_sitemaps
    assert urls_of(sitemap) == FIRST
    why = "the tree's sitemaps have 1,000,000 bytes (limits.max_total_bytes)"
    assert [missing.reason for missing in tree.outcome.missing] == [f"{why}; the rest was skipped"]
    assert [(problem.code, problem.message) for problem in sitemap.problems] == [
        ("C901", f"{why}; the rest was skipped")
    ]
    assert "max_sitemap_bytes" not in str(tree.outcome)
