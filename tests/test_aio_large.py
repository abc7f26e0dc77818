"""Trees of a great many sitemaps on asyncio: they do not hold up the event loop, and are what they are elsewhere."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Awaitable

import pytest

from support import FakeClient, index, urlset
from test_aio import AsyncClient, H
from usp import aio
from usp.drivers import asynchronous
from usp.drivers.asynchronous import aside
from usp.limits import Limits
from usp.stream import AsyncSitemapStream
from usp.tree import sitemap_tree_for_homepage

pytestmark = pytest.mark.slow


def site_of(children: int) -> dict[str, str]:
    """A site with one index, whose first sitemaps exist."""
    return {
        f"{H}robots.txt": f"Sitemap: {H}index.xml\n",
        f"{H}index.xml": index(*(f"{H}{number}.xml" for number in range(children))),
        **{f"{H}{number}.xml": urlset(f"{H}page{number}") for number in range(20)},
    }


async def longest_turn(work: Awaitable[object]) -> float:
    """Return the most CPU time that the thread of the event loop spent between two turns of a task of its own."""
    longest, is_over = 0.0, asyncio.Event()

    async def beat() -> None:
        nonlocal longest
        last = time.thread_time()
        while not is_over.is_set():
            await asyncio.sleep(0.001)
            now = time.thread_time()
            longest, last = max(longest, now - last), now

    gc.collect()
    gc.disable()  # else this thread may have to look at what all other tests have left
    try:
        beating = asyncio.create_task(beat())
        await asyncio.sleep(0)
        await work
        is_over.set()
        await beating
    finally:
        gc.enable()
    return longest


@pytest.mark.parametrize("is_stream", [False, True])
def test_many_sitemaps_do_not_hold_up_the_event_loop(is_stream: bool) -> None:
    """An index of 30,000 sitemaps takes a second to build a tree of; the event loop goes on meanwhile."""
    trees = []

    async def fetch() -> None:
        client = AsyncClient(site_of(30_000))
        if is_stream:
            trees.append(await AsyncSitemapStream(H, client, use_known_paths=False, limits=limits).read())
        else:
            trees.append(await aio.sitemap_tree_for_homepage(H, client, use_known_paths=False, limits=limits))

    limits = Limits(tree_seconds=2)
    assert asyncio.run(longest_turn(fetch())) < 0.15
    assert sum(1 for _ in trees[0].all_sitemaps()) == 30_002


@pytest.mark.parametrize("is_stream", [False, True])
def test_the_tree_of_many_sitemaps_is_the_same_everywhere(is_stream: bool) -> None:
    """An event loop builds the same tree as threads, whether it is read at once or sitemap by sitemap."""
    site, limits = site_of(3_000), Limits(max_sitemaps=2_500)
    expected = sitemap_tree_for_homepage(H, FakeClient(site), use_known_paths=False, limits=limits)

    async def scenario() -> None:
        stream = AsyncSitemapStream(H, AsyncClient(site), use_known_paths=False, limits=limits)
        if is_stream:
            urls = [sitemap.url async for sitemap in stream]
            assert urls == [sitemap.url for sitemap in expected.all_sitemaps()]
            tree = stream.tree
        else:
            tree = await stream.read()
        assert tree == expected
        assert tree.outcome == expected.outcome

    asyncio.run(scenario())


def test_callbacks_stay_in_the_thread_of_the_event_loop() -> None:
    """However many sitemaps there are, the caller's functions are called in the thread that runs the event loop."""
    threads = set()

    def note(*_: object) -> bool:
        threads.add(threading.get_ident())
        return True

    site = site_of(3_000)
    for options in ({"progress": note}, {"recurse_callback": note}):
        tree = asyncio.run(aio.sitemap_tree_for_homepage(H, AsyncClient(site), use_known_paths=False, **options))  # type: ignore[arg-type]  # mypy does not see which option it is
        assert sum(1 for _ in tree.all_pages()) == 20
    assert threads == {threading.get_ident()}


def test_what_runs_aside_ends_before_a_task_does() -> None:
    """A task that is cancelled, even twice, waits for the thread that works for it: both use the same tree."""
    is_working, may_end, ended = threading.Event(), threading.Event(), []

    def work() -> None:
        is_working.set()
        may_end.wait(10)
        ended.append(True)

    async def scenario() -> None:
        task = asyncio.create_task(aside(work))
        await asyncio.to_thread(is_working.wait, 10)
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0.02)
            assert not task.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == [True]

    asyncio.run(scenario())


def test_what_fails_aside_is_raised() -> None:
    """An error in the thread reaches the task."""

    def fail() -> None:
        raise LookupError("not there")

    with pytest.raises(LookupError, match="not there"):
        asyncio.run(aside(fail))


def test_few_documents_are_parsed_at_once_and_long_ones_do_not_count() -> None:
    """All trees of an event loop parse 4 documents at once. One that takes seconds leaves its place to others."""
    running, most, lock = 0, 0, threading.Lock()
    may_end = threading.Event()

    class Work:
        def __init__(self, is_long: bool) -> None:
            self.is_long = is_long

        def run(self) -> str:
            nonlocal running, most
            if self.is_long:
                may_end.wait(30)
                return "long"
            with lock:
                running += 1
                most = max(most, running)
            time.sleep(0.02)
            with lock:
                running -= 1
            return "short"

    async def scenario() -> None:
        bad = [asyncio.create_task(asynchronous._parse(Work(True))) for _ in range(4)]  # type: ignore[arg-type]  # it has what is used of a task
        await asyncio.sleep(0)
        started = time.monotonic()
        good = [asyncio.create_task(asynchronous._parse(Work(False))) for _ in range(20)]  # type: ignore[arg-type]  # as above
        assert {str(result) for result in await asyncio.gather(*good)} == {"short"}
        assert time.monotonic() - started < 20
        assert not any(task.done() for task in bad)
        may_end.set()
        await asyncio.gather(*bad)

    asyncio.run(scenario())
    assert most == 4
