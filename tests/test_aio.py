"""The front doors on asyncio, with a fake client: the same trees, and nothing left behind wherever they are ended."""

from __future__ import annotations

import asyncio
import gzip
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import aclosing
from functools import cache
from itertools import count
from typing import Any, TypeVar

import pytest

from clocks import undisturbed
from support import FakeClient, index, serve, urlset
from usp import aio
from usp.exceptions import InvalidArgumentError, SitemapException
from usp.limits import Limits
from usp.objects.page import SitemapPage
from usp.objects.sitemap import InvalidSitemap
from usp.politeness import Politeness
from usp.progress import Progress
from usp.tree import sitemap_tree_for_homepage
from usp.web_client.abstract_client import (
    AbstractAsyncWebClient,
    AbstractWebClientResponse,
    WebClientErrorResponse,
)

H = "http://h/"
T = TypeVar("T")
QUICK = Politeness(retry_seconds=0.001)


class AsyncClient(AbstractAsyncWebClient):
    """A client over a dict of URLs, or any callable, that awaits `pause(url)` before each answer."""

    def __init__(
        self,
        site: Mapping[str, Any] | Callable[[str], Any],
        pause: Callable[[str], Awaitable[object]] = lambda url: asyncio.sleep(0),
    ) -> None:
        self._inner = FakeClient(site)
        self._pause = pause
        self.asked = self._inner.asked
        self.going_on = 0
        self.most_at_once = 0

    async def get(self, url: str) -> AbstractWebClientResponse:
        self.going_on += 1
        self.most_at_once = max(self.most_at_once, self.going_on)
        try:
            await self._pause(url)
            return self._inner.get(url)
        finally:
            self.going_on -= 1


def names(count: int) -> list[str]:
    return [f"{H}{i}.xml" for i in range(count)]


def many(count: int) -> dict[str, Any]:
    listed = "".join(f"Sitemap: {name}\n" for name in names(count))
    return {H + "robots.txt": listed, **{name: urlset(f"{name}/1", f"{name}/2") for name in names(count)}}


def tangled(seed: int) -> dict[str, Any]:
    """A website at random: shared children, loops, failures, large documents."""
    chance = random.Random(seed)
    paths = [H + name for name in ("sitemap.xml", "sitemap_index.xml", *(f"{i}.xml" for i in range(10)))]
    site: dict[str, Any] = {H + "robots.txt": "".join(f"Sitemap: {url}\n" for url in chance.choices(paths, k=3))}
    for path in paths:
        match chance.randrange(8):
            case 0 | 1 | 2:
                site[path] = index(*chance.choices(paths, k=4))
            case 3 | 4:
                site[path] = urlset(*(f"{path}/{i}" for i in range(chance.randrange(4))), H + "shared")
            case 5:
                site[path] = urlset(*(f"{path}/{i}" for i in range(2_000)))
            case 6:
                site[path] = OSError("kaboom")
    return site


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine, and see that it leaves no tasks behind."""

    async def watched() -> T:
        try:
            return await main
        finally:
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left, left

    return asyncio.run(watched())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(15))
def test_the_same_tree(seed: int) -> None:
    """However many requests are made at once, the tree is that of the blocking front door."""
    site = tangled(seed)
    chance = random.Random(seed)

    async def pause(url: str) -> None:
        for _ in range(chance.randrange(5)):
            await asyncio.sleep(0)

    expected = sitemap_tree_for_homepage(H, FakeClient(site), politeness=QUICK)
    for concurrency in (1, 2, 8):
        client = AsyncClient(site, pause)
        tree = run(aio.sitemap_tree_for_homepage(H, client, concurrency=concurrency, politeness=QUICK))
        assert tree == expected
        assert len(client.asked) == len(set(client.asked))
        assert client.most_at_once <= concurrency


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("ordered", [False, True])
def test_the_same_pages(seed: int, ordered: bool) -> None:
    """A stream has the pages of the tree; with `ordered`, in its order."""
    site = tangled(seed)
    expected = [(page, page.sitemap_url) for page in sitemap_tree_for_homepage(H, FakeClient(site)).all_pages()]

    async def pages() -> list[tuple[SitemapPage, str | None]]:
        stream = aio.stream_pages_for_homepage(H, AsyncClient(site), ordered=ordered)
        return [(page, page.sitemap_url) async for page in stream]

    streamed = run(pages())
    assert streamed == expected if ordered else Counter(streamed) == Counter(expected)


def test_parameters() -> None:
    """The parameters of the blocking front door mean the same here."""
    site = {**many(5), H + "extra.xml": urlset(H + "extra"), H + "sitemap.xml": urlset(H + "known")}
    several: tuple[dict[str, Any], ...] = (
        {"use_robots": False},
        {"use_known_paths": False},
        {"extra_known_paths": ["extra.xml"]},
        {"recurse_callback": lambda url, level, parents: "2" not in url},
        {"recurse_list_callback": lambda urls, level, parents: urls[:2]},
        {"limits": Limits(max_pages=3)},
        {"limits": Limits(max_depth=0)},
        {"cross_host": "same-host"},
        {"respect_robots": True},
        {"normalize_homepage_url": False},
        {"concurrency": None, "limits": None, "politeness": None, "progress": None},
    )
    for options in several:
        tree = run(aio.sitemap_tree_for_homepage(H, AsyncClient(site), **options))
        assert tree == sitemap_tree_for_homepage(H, FakeClient(site), **options), options


def test_requests_at_once() -> None:
    """One host gets `concurrency` requests at once."""
    client = AsyncClient(many(50), lambda url: asyncio.sleep(0.001))
    run(aio.sitemap_tree_for_homepage(H, client, concurrency=6))
    assert client.most_at_once == 6


def test_retries() -> None:
    """A retryable failure is tried again."""
    answers = iter([WebClientErrorResponse("500 Oops", retryable=True)] * 3)
    site = many(1)
    client = AsyncClient(lambda url: next(answers, site[url]) if url == names(1)[0] else site.get(url))
    tree = run(aio.sitemap_tree_for_homepage(H, client, politeness=QUICK, use_known_paths=False))
    assert len(list(tree.all_pages())) == 2
    assert client.asked.count(names(1)[0]) == 4


def test_tree_seconds() -> None:
    """When the time is up, fetched sitemaps stay in the tree, and running requests are cancelled."""
    client = AsyncClient(many(5), lambda url: asyncio.sleep(0 if url.endswith(("0.xml", ".txt")) else 100))
    tree = run(aio.sitemap_tree_for_homepage(H, client, use_known_paths=False, limits=Limits(tree_seconds=0.05)))
    assert len(list(tree.all_pages())) == 2
    assert [problem.code for problem in tree.problems] == ["C901"]
    assert client.going_on == 0


# Being ended


def test_cancelled_at_any_time() -> None:
    """A tree that is cancelled at any point leaves no task and no request."""
    site = {**many(6), names(6)[3]: urlset(*(f"{H}{i}" for i in range(1_000)))}

    async def cancel_after(turns: int) -> bool:
        client = AsyncClient(site)
        task = asyncio.create_task(aio.sitemap_tree_for_homepage(H, client, concurrency=3))
        for _ in range(turns):
            await asyncio.sleep(0)
        if task.done():
            return True
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert client.going_on == 0
        return False

    for turns in count():
        if run(cancel_after(turns)):
            break
    assert turns > 20


@pytest.mark.parametrize("ordered", [False, True])
def test_a_stream_that_is_cancelled_at_any_time(ordered: bool) -> None:
    """A stream whose consumer is cancelled at any point leaves no task and no request."""

    async def go_through(client: AsyncClient) -> None:
        async with aclosing(aio.stream_pages_for_homepage(H, client, ordered=ordered, concurrency=3)) as stream:
            async for _ in stream:
                await asyncio.sleep(0)

    async def cancel_after(turns: int) -> bool:
        client = AsyncClient(many(6))
        task = asyncio.create_task(go_through(client))
        for _ in range(turns):
            await asyncio.sleep(0)
        if task.done():
            return True
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert client.going_on == 0
        return False

    for turns in count():
        if run(cancel_after(turns)):
            break
    assert turns > 20


def test_a_timeout() -> None:
    """`asyncio.timeout` ends a tree."""
    client = AsyncClient(many(5), lambda url: asyncio.sleep(100))

    async def main() -> None:
        async with asyncio.timeout(0.02):
            await aio.sitemap_tree_for_homepage(H, client)

    with pytest.raises(TimeoutError):
        run(main())
    assert client.going_on == 0


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("pages", [0, 1, 3])
def test_aclose(ordered: bool, pages: int) -> None:
    """Closing a stream starts no more requests, and cancels those that are running."""
    client = AsyncClient(many(200), lambda url: asyncio.sleep(0 if url.endswith((".txt", "0.xml", "1.xml")) else 100))

    async def main() -> None:
        stream = aio.stream_pages_for_homepage(H, client, ordered=ordered, concurrency=4, use_known_paths=False)
        for _ in range(pages):
            await anext(stream)
        await stream.aclose()
        assert client.going_on == 0
        asked = len(client.asked)
        await asyncio.sleep(0.01)
        assert len(client.asked) == asked
        with pytest.raises(StopAsyncIteration):
            await anext(stream)

    run(main())
    assert client.most_at_once <= 4


def test_a_consumer_that_waits() -> None:
    """While nobody asks for the next page, no new request starts."""
    client = AsyncClient(many(300))

    async def main() -> None:
        async with aclosing(aio.stream_pages_for_homepage(H, client, concurrency=4, use_known_paths=False)) as stream:
            await anext(stream)
            for _ in range(50):
                await asyncio.sleep(0)
            assert len(client.asked) <= 1 + 2 * 4

    run(main())


@pytest.mark.parametrize("most", [1, 2, 3])
def test_max_pages_of_a_stream(most: int) -> None:
    """A stream ends at `max_pages`, and requests nothing more."""
    client = AsyncClient(many(300))

    async def main() -> int:
        stream = aio.stream_pages_for_homepage(H, client, concurrency=2, limits=Limits(max_pages=most))
        return len([page async for page in stream])

    assert run(main()) == most
    assert len(client.asked) <= 1 + 2 + 2 * 2


def test_a_callback_that_raises() -> None:
    """An error in the caller's callback reaches the caller, and nothing is left behind."""
    client = AsyncClient(many(20))

    def fail(event: Progress) -> None:
        if event.kind == "parsed" and event.url != H + "robots.txt":
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(aio.sitemap_tree_for_homepage(H, client, progress=fail))
    assert client.going_on == 0


# Clients and arguments


class SyncGet:
    def get(self, url: str) -> AbstractWebClientResponse:
        raise AssertionError


class OnlyGet:
    """Has the method of a client, and is not a subclass."""

    def __init__(self, inner: AsyncClient) -> None:
        self._inner = inner

    async def get(self, url: str) -> AbstractWebClientResponse:
        return await self._inner.get(url)


@pytest.mark.parametrize("client", [5, "requests", object(), FakeClient({}), SyncGet(), AsyncClient])
def test_a_wrong_client(client: Any) -> None:
    """A client of the wrong kind raises, and the message says which kind to pass."""
    with pytest.raises(InvalidArgumentError, match="web_client must be an AbstractAsyncWebClient"):
        run(aio.sitemap_tree_for_homepage(H, client))


def test_a_wrong_client_for_a_stream() -> None:
    """A client of the wrong kind raises when the stream is made, not at its first page."""
    with pytest.raises(InvalidArgumentError, match="web_client must be an AbstractAsyncWebClient"):
        aio.stream_pages_for_homepage(H, FakeClient({}))  # type: ignore[arg-type]


def test_a_client_that_is_no_subclass() -> None:
    """Any object with the method of a client is one, as in the blocking front door."""
    client: Any = OnlyGet(AsyncClient(many(3)))
    assert len(list(run(aio.sitemap_tree_for_homepage(H, client)).all_pages())) == 6


def test_a_client_whose_method_gives_an_awaitable() -> None:
    """`get` of a client may return any awaitable."""

    class Client(AbstractAsyncWebClient):
        def get(self, url: str) -> Any:
            return inner.get(url)

    inner = AsyncClient(many(3))
    assert len(list(run(aio.sitemap_tree_for_homepage(H, Client())).all_pages())) == 6


def test_a_client_that_raises() -> None:
    """An error that says that a request failed costs one sitemap, never the tree."""
    tree = run(aio.sitemap_tree_for_homepage(H, AsyncClient({**many(3), names(3)[1]: OSError("kaboom")})))
    (invalid,) = (s for s in tree.all_sitemaps() if isinstance(s, InvalidSitemap))
    assert invalid.reason.endswith("OSError: kaboom")
    assert len(list(tree.all_pages())) == 4


@pytest.mark.parametrize(
    "option", ["concurrency", "limits", "politeness", "cross_host", "progress", "recurse_callback"]
)
def test_arguments(option: str) -> None:
    """A wrong argument raises when a stream is made, and before a tree makes a request."""
    client = AsyncClient({})
    with pytest.raises(InvalidArgumentError):
        aio.stream_pages_for_homepage(H, client, **{option: 0.5})  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError):
        run(aio.sitemap_tree_for_homepage(H, client, **{option: 0.5}))  # type: ignore[arg-type]
    with pytest.raises(SitemapException):
        aio.stream_pages_for_homepage("ftp://h/", client)
    assert client.asked == []


# The loop


LONG = 0.35  # seconds that are long for an event loop, on a slow machine


async def longest_gap(main: Coroutine[Any, Any, object]) -> float:
    """Return the longest time in which the event loop did nothing else while a coroutine ran."""
    gaps = [0.0]

    async def tick() -> None:
        at = undisturbed()
        while True:
            await asyncio.sleep(0.001)
            now = undisturbed()
            gaps.append(now - at)
            at = now

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0.01)
    await main
    await asyncio.sleep(0.01)
    ticking.cancel()
    await asyncio.gather(ticking, return_exceptions=True)
    return max(gaps)


@cache
def large_urlset() -> str:
    """Return a sitemap of 20 MB."""
    return urlset(*(f"{H}a/rather/long/path/to/a/page/{i}" for i in range(330_000)))


#: Entries that only the general scanner reads, which takes its time.
SLOW = "<urlset>" + "".join(f"<url a='b'><loc>{H}{i}</loc></url>" for i in range(60_000)) + "</urlset>"
LISTING = index(*(f"{H}{i % 5}.xml" for i in range(60_000)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "options"),
    [
        (large_urlset, {}),
        (SLOW, {}),
        (SLOW, {"progress": lambda event: None}),
        (SLOW, {"limits": Limits(max_pages=59_999)}),
        (LISTING, {}),
        (gzip.compress(LISTING.encode()), {}),
    ],
    ids=["20 MB", "slow", "slow, progress", "slow, max_pages", "index", "small, inflates"],
)
def test_the_loop_goes_on(body: str | bytes | Callable[[], str], options: dict[str, Any]) -> None:
    """While a large document is parsed, or its pages are counted, the event loop does other things."""
    site = {H + "robots.txt": f"Sitemap: {H}a.xml", H + "a.xml": body() if callable(body) else body}

    def gap() -> float:
        return run(longest_gap(aio.sitemap_tree_for_homepage(H, AsyncClient(site), use_known_paths=False, **options)))

    assert any(gap() < LONG for _ in range(3))  # a machine may stand still once


@pytest.mark.slow
def test_a_stream_lets_the_loop_go_on() -> None:
    """While a stream gives the pages of a large document, the event loop does other things."""
    site = {H + "robots.txt": f"Sitemap: {H}a.xml", H + "a.xml": large_urlset()}

    async def go_through() -> int:
        return len([page async for page in aio.stream_pages_for_homepage(H, AsyncClient(site), use_known_paths=False)])

    assert any(run(longest_gap(go_through())) < LONG for _ in range(3))


def test_two_trees_in_one_loop() -> None:
    """Trees fetched at once with one client do not disturb each other."""
    other = "http://other/"
    site = {**many(20), **{key.replace(H, other): str(value).replace(H, other) for key, value in many(10).items()}}
    client = AsyncClient(site)

    async def main() -> list[int]:
        trees = await asyncio.gather(*(aio.sitemap_tree_for_homepage(url, client) for url in (H, other, H)))
        assert trees[0] == trees[2]
        return [len(list(tree.all_pages())) for tree in trees]

    assert run(main()) == [40, 20, 40]


def test_one_of_two_trees_is_cancelled() -> None:
    """Cancelling a tree does not disturb another with the same client."""
    client = AsyncClient(many(20), lambda url: asyncio.sleep(0.001))

    async def main() -> int:
        first = asyncio.create_task(aio.sitemap_tree_for_homepage(H, client))
        second = asyncio.create_task(aio.sitemap_tree_for_homepage(H, client))
        await asyncio.sleep(0.003)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        return len(list((await second).all_pages()))

    assert run(main()) == 40


def test_asyncio_run_twice() -> None:
    """Each `asyncio.run` has a loop of its own, and the same client works in both."""
    client = AsyncClient(many(5))
    first = run(aio.sitemap_tree_for_homepage(H, client))
    assert run(aio.sitemap_tree_for_homepage(H, client)) == first
    assert len(list(first.all_pages())) == 10


#: What a program may leave behind when it ends its loop: streams in the middle, with or without a reference.
LEFT_BEHIND = {
    "pages": "kept = usp.aio.stream_pages_for_homepage(url, {client}); await anext(kept)",
    "pages that nothing refers to": "await anext(usp.aio.stream_pages_for_homepage(url, {client}))",
    "pages in tree order": "kept = usp.aio.stream_pages_for_homepage(url, {client}, ordered=True); await anext(kept)",
    "sitemaps": "kept = usp.aio.stream_sitemaps_for_homepage(url, {client}); await anext(kept)",
    "targets": "kept = usp.aio.open([url, url + '/1.xml'], {client}); await anext(kept)",
    "the last target": "kept = usp.aio.open([url + '/1.xml', url], {client}); [await anext(kept) for _ in range(3)]",
    "a step": (
        "kept = asyncio.create_task(anext(usp.aio.stream_sitemaps_for_homepage(url, {client}))); await asyncio.sleep(0)"
    ),
    "a tree": "kept = asyncio.create_task(usp.aio.sitemap_tree_for_homepage(url, {client})); await asyncio.sleep(0.01)",
    "an error": "[1 / 0 async for _ in usp.aio.stream_pages_for_homepage(url, {client})]",
}


@pytest.mark.network
@pytest.mark.parametrize("client", ["None", "client"])
@pytest.mark.parametrize("left", LEFT_BEHIND.values(), ids=LEFT_BEHIND)
def test_a_stream_that_lives_when_its_loop_ends(left: str, client: str) -> None:
    """A stream that is not closed when `asyncio.run` ends prints nothing, not even that a connection was left open."""
    pages: dict[str, tuple[int, dict[str, str], bytes]] = {}
    pages |= {f"/{i}.xml": (200, {}, urlset(*(f"{{base}}/{i}/{j}" for j in range(9))).encode()) for i in range(40)}
    pages["/robots.txt"] = (200, {}, b"Sitemap: {base}/index.xml")
    pages["/index.xml"] = (200, {}, index(*(f"{{base}}/{i}.xml" for i in range(40))).encode())
    program = f"""
import asyncio, sys, usp.aio
from usp.web_client.asyncio_client import AsyncioWebClient
async def main(url):
    global kept
    {left.format(client=client)}
client = AsyncioWebClient()
try:
    asyncio.run(main(sys.argv[1]))
except ZeroDivisionError:
    pass
"""
    with serve(pages) as server:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", program, server.url],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
