"""The stream of sitemaps, over real sockets: the order of the tree, both drivers, and nothing left when it ends."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Generator
from typing import Any

import pytest

import usp.aio
import usp.tree
from clocks import within
from faults import BAD, Driver, Handler, Request, each_driver, good_site, nothing_left, ok, serve_faults, silent
from support import FakeClient, index, serve, urlset
from usp.bodies import InFile
from usp.exceptions import InvalidArgumentError, SitemapException, TreeInterrupted, UspError
from usp.fetch_parse.abstract import AbstractSitemapParser
from usp.limits import Limits
from usp.objects.sitemap import (
    AbstractSitemap,
    IndexRobotsTxtSitemap,
    IndexWebsiteSitemap,
    IndexXMLSitemap,
    InvalidSitemap,
)
from usp.stream import AsyncSitemapStream, SitemapStream
from usp.tree import sitemap_from_bytes, sitemap_tree_for_homepage, stream_sitemaps_for_homepage
from usp.web_client.policy import policy_for
from usp.web_client.requests_client import RequestsWebClient

pytestmark = pytest.mark.network

Place = tuple[list[str], str, str, list[str], str]
SHOP_ROBOTS = "https://shop.example.com/robots.txt"


def site() -> dict[str, Handler]:
    """A site with nested indexes, a loop, a shared child, a failure, a redirect and a known path."""
    moved: Handler = ok("")

    def redirect(request: Request) -> None:
        request.send(b"HTTP/1.1 301 Moved\r\nLocation: /moved.xml\r\nContent-Length: 0\r\n\r\n")

    return good_site() | {
        "/robots.txt": ok("Sitemap: {base}/first.xml\nSitemap: {base}/index.xml\nSitemap: {base}/outer.xml\n"),
        "/outer.xml": ok(
            index("{base}/inner.xml", "{base}/outer.xml", "{base}/redirect.xml", "ftp://x/", "{base}/first.xml")
        ),
        "/inner.xml": ok(index("{base}/before.xml", "{base}/last.xml.gz", "{base}/outer.xml")),
        "/redirect.xml": redirect,
        "/moved.xml": ok(urlset("http://x/moved")),
        "/sitemap.xml": ok(urlset("http://x/known", "http://x/known/2")),
        "/sitemap_index.xml": moved,
    }


def place(ancestors: tuple[AbstractSitemap, ...], sitemap: AbstractSitemap) -> Place:
    """What a sitemap and its place in the tree look like."""
    reason = sitemap.reason if isinstance(sitemap, InvalidSitemap) else str(sitemap.last_modified)
    pages = [page.url for page in sitemap.pages]
    return [above.url for above in ancestors], type(sitemap).__name__, sitemap.url, pages, reason


def places(tree: AbstractSitemap, ancestors: tuple[AbstractSitemap, ...] = ()) -> list[Place]:
    """The sitemaps below one, as a stream should give them."""
    found = []
    for child in tree.sub_sitemaps:
        found += [place(ancestors, child), *places(child, (*ancestors, child))]
    return found


def streamed(driver: Driver, url: str, **options: Any) -> tuple[list[Place], AbstractSitemap]:
    """The places of a stream, and its tree."""

    async def awaited() -> tuple[list[Place], AbstractSitemap]:
        async with usp.aio.stream_sitemaps_for_homepage(url, **options) as stream:
            found = [place(stream.ancestors, sitemap) async for sitemap in stream]
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return found, stream.tree

    if driver.name == "asyncio":
        return asyncio.run(awaited())
    stream = stream_sitemaps_for_homepage(url, **options)
    return [place(stream.ancestors, sitemap) for sitemap in stream], stream.tree


OPTIONS: dict[str, dict[str, Any]] = {
    "all": {},
    "no robots.txt": {"use_robots": False},
    "one at a time": {"concurrency": 1},
    "other hosts refused": {"cross_host": "same-host"},
    "callback": {"recurse_callback": lambda url, level, parents: "inner" not in url},
    **{f"{most} pages": {"limits": Limits(max_pages=most)} for most in (1, 2, 3, 7, 8, 9)},
    **{f"{most} sitemaps": {"limits": Limits(max_sitemaps=most)} for most in (1, 2, 3, 5, 8)},
    "not deep": {"limits": Limits(max_depth=1)},
    "few bytes": {"limits": Limits(max_total_bytes=100), "concurrency": 1},
}


@each_driver
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_sitemaps_of_the_tree(driver: Driver, options: dict[str, Any]) -> None:
    """A stream gives the sitemaps of the tree one for one, in its order, each with those above it; then the tree."""
    with serve_faults(site()) as server, nothing_left(server):
        found, tree = streamed(driver, server.url, **options)
        assert found == places(tree)
        if "few bytes" not in options:
            assert tree == sitemap_tree_for_homepage(server.url, **options)
    assert found


def test_an_index_comes_before_its_children() -> None:
    """A streamed index has its children unfetched, as `sitemap_from_bytes` gives them; the tree has them fetched."""
    with serve_faults(good_site()) as server:
        with stream_sitemaps_for_homepage(server.url, use_known_paths=False) as stream:
            sitemaps = list(stream)
        body = index(f"{server.url}/before.xml", server.url + BAD, f"{server.url}/behind.txt").encode()
        streamed_index = sitemaps[2]
        assert isinstance(streamed_index, IndexXMLSitemap)
        assert streamed_index == sitemap_from_bytes(body, f"{server.url}/index.xml")
        assert [type(child) for child in streamed_index.sub_sitemaps] == [InvalidSitemap] * 3
        assert len(list(stream.tree.sub_sitemaps[0].sub_sitemaps[1].all_pages())) == 2


def test_how_a_sitemap_was_found() -> None:
    """The ancestors of a sitemap are robots.txt and the indexes, with the URLs requested and those answered."""
    with serve_faults(site()) as server, stream_sitemaps_for_homepage(server.url) as stream:
        for sitemap in stream:
            if sitemap.url.endswith("/moved.xml"):
                robots, outer = stream.ancestors
                assert isinstance(robots, IndexRobotsTxtSitemap)
                assert sitemap.transport is not None
                assert sitemap.transport.requested_url == f"{server.url}/redirect.xml"
                assert outer.url == f"{server.url}/outer.xml"
                break
        else:
            pytest.fail("the redirect was not given")


@each_driver
def test_sitemaps_arrive_before_the_last_is_fetched(driver: Driver) -> None:
    """What stands before a sitemap that never answers is given at once; leaving the block ends the rest."""
    handlers = good_site() | {BAD: silent}
    expected = ["/robots.txt", "/first.xml", "/index.xml", "/before.xml"]

    def plain(url: str) -> tuple[list[str], AbstractSitemap]:
        with stream_sitemaps_for_homepage(url, use_known_paths=False) as stream:
            found = [next(stream).url for _ in expected]
        return found, stream.tree

    async def awaited(url: str) -> tuple[list[str], AbstractSitemap]:
        async with usp.aio.stream_sitemaps_for_homepage(url, use_known_paths=False) as stream:
            found = [(await anext(stream)).url for _ in expected]
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return found, stream.tree

    with serve_faults(handlers) as server, nothing_left(server), within(3):
        found, tree = plain(server.url) if driver.name == "threads" else asyncio.run(awaited(server.url))
        assert found == [server.url + path for path in expected]
        assert [problem.code for problem in tree.problems] == ["C901"]
        assert "http://x/before" in [page.url for page in tree.all_pages()]


def test_nothing_is_fetched_before_the_first_sitemap_is_asked_for() -> None:
    """A stream that nobody goes through makes no request, and has an empty tree once it is closed."""
    with serve(dict[str, Any]()) as server:
        stream = stream_sitemaps_for_homepage(server.url)
        with pytest.raises(UspError, match="not complete yet"):
            _ = stream.tree
        stream.close()
        assert stream.tree == IndexWebsiteSitemap(server.url + "/", [])
        assert list(stream) == []
        assert server.requests == []


def test_a_slow_consumer_holds_the_fetching_back() -> None:
    """While nobody asks for the next sitemap no new request starts."""
    names = [f"/{number}.xml" for number in range(200)]
    answer, is_idle = ok(urlset("http://x/")), threading.Event()

    def held(request: Request) -> None:
        is_idle.wait(30)
        answer(request)

    handlers = {"/robots.txt": ok("".join(f"Sitemap: {{base}}{name}\n" for name in names))}
    handlers |= dict.fromkeys(names, held) | {names[0]: answer}
    with serve_faults(handlers) as server, nothing_left(server):
        stream = stream_sitemaps_for_homepage(server.url, concurrency=4, use_known_paths=False)
        next(stream), next(stream)
        is_idle.set()
        time.sleep(0.1)
        asked = len(server.asked)
        assert asked <= 1 + 2 * 4
        time.sleep(0.1)
        assert len(server.asked) == asked
        stream.close()


def test_dropped() -> None:
    """A stream that is dropped in the middle ends at once, with no help of the garbage collector."""

    def first(url: str) -> AbstractSitemap:
        return next(stream_sitemaps_for_homepage(url, use_known_paths=False))

    with serve_faults(good_site() | {BAD: silent}) as server, nothing_left(server, collects=False), within(3):
        assert first(server.url).url == f"{server.url}/robots.txt"


def test_an_exhausted_stream_closes_itself() -> None:
    """When a stream is exhausted the client that it opened is closed, also while the stream is kept."""
    with serve_faults(good_site()) as server, nothing_left(server):
        stream = stream_sitemaps_for_homepage(server.url)
        assert len(list(stream)) == 7
        assert next(stream, None) is None
        with nothing_left(server):
            assert len(list(stream.tree.all_sitemaps())) == 7


def test_yield_from() -> None:
    """`yield from` gives the sitemaps and returns the tree."""

    def sitemaps(url: str) -> Generator[AbstractSitemap, None, None]:
        tree = yield from stream_sitemaps_for_homepage(url)
        trees.append(tree)

    trees: list[AbstractSitemap] = []
    with serve_faults(good_site()) as server:
        assert len(list(sitemaps(server.url))) == 7
        assert trees == [sitemap_tree_for_homepage(server.url)]


def interrupt_soon() -> threading.Timer:
    timer = threading.Timer(0.2, signal.pthread_kill, [threading.main_thread().ident, signal.SIGINT])
    timer.start()
    return timer


def go_through(url: str, where: str) -> None:
    """Go through a stream that is interrupted."""
    with stream_sitemaps_for_homepage(url, use_known_paths=False) as stream:
        for _ in range(4):
            next(stream)
        if where == "after the end":
            list(stream)
        timer = interrupt_soon()
        try:
            if where == "in the stream":
                next(stream)
            time.sleep(3)
        finally:
            timer.join()


@pytest.mark.parametrize("where", ["in the stream", "in the block", "after the end"])
def test_ctrl_c(where: str) -> None:
    """Ctrl-C raises `TreeInterrupted` with the partial tree: while the stream works, and anywhere in its block."""
    handlers = good_site() | ({BAD: silent} if where != "after the end" else {})
    with serve_faults(handlers) as server, nothing_left(server), within(5), pytest.raises(TreeInterrupted) as caught:
        go_through(server.url, where)
    assert "http://x/before" in [page.url for page in caught.value.tree.all_pages()]
    reasons = {s.reason for s in caught.value.tree.all_sitemaps() if isinstance(s, InvalidSitemap)}
    assert ("Not fetched: it was interrupted." in reasons) == (where != "after the end")


def test_an_error_in_the_block() -> None:
    """What the block raises is raised, and everything has ended by then."""

    def fail(url: str) -> None:
        with stream_sitemaps_for_homepage(url) as stream:
            next(stream)
            raise ZeroDivisionError

    site = good_site() | {BAD: silent}
    with serve_faults(site) as server, nothing_left(server), within(3), pytest.raises(ZeroDivisionError):
        fail(server.url)


@pytest.mark.parametrize("kind", [stream_sitemaps_for_homepage, usp.aio.stream_sitemaps_for_homepage])
@pytest.mark.parametrize(
    ("homepage", "options", "error"),
    [
        ("ftp://h/", {}, SitemapException),
        ("http://h/", {"concurrency": 0}, InvalidArgumentError),
        ("http://h/", {"web_client": 5}, InvalidArgumentError),
        ("http://h/", {"unknown": 5}, TypeError),
    ],
)
def test_wrong_arguments(kind: Any, homepage: str, options: dict[str, Any], error: type[Exception]) -> None:
    """A wrong argument is refused when the stream is made, not when it is gone through."""
    with pytest.raises(error):
        kind(homepage, **options)


def test_classes() -> None:
    """Both front doors give the classes that are documented, and the homepage without its password."""
    stream = stream_sitemaps_for_homepage("http://me:secret@h/x")
    assert isinstance(stream, SitemapStream)
    assert stream.homepage_url == "http://h/"
    assert isinstance(usp.aio.stream_sitemaps_for_homepage("http://h/"), AsyncSitemapStream)


# What check and export need


def test_pauses() -> None:
    """`with_pauses` gives None after each answer, so that a caller can do something while it waits."""
    with serve_faults(good_site()) as server:
        with SitemapStream(server.url, use_known_paths=False) as stream:
            given = list(stream.with_pauses())
        assert [s.url for s in given if s is not None] == [s.url for s in stream.tree.all_sitemaps()]
        assert given.count(None) >= 7


def test_memory() -> None:
    """`memory_bytes` is how much of the documents stays in memory."""
    with serve_faults(good_site()) as server, SitemapStream(server.url, memory_bytes=1) as stream:
        parsers = [sitemap.parser for sitemap in stream]
    documents = [parser.document for parser in parsers if isinstance(parser, AbstractSitemapParser)]
    assert {type(document._body) for document in documents if document is not None} == {InFile}


def test_is_single_threaded() -> None:
    """Requests run in the caller's thread for a client that is not made for threads, or with one request at once."""
    assert not SitemapStream("http://h/").is_single_threaded
    assert not SitemapStream("http://h/", RequestsWebClient()).is_single_threaded
    assert SitemapStream("http://h/", concurrency=1).is_single_threaded
    assert SitemapStream("http://h/", FakeClient({})).is_single_threaded


ROBOTS = "Sitemap: http://h/a.xml\n"


def test_fetch_extra() -> None:
    """A document beside the tree is fetched by its client, also when the tree is done."""
    with serve_faults({"/robots.txt": ok(ROBOTS)}) as other, serve_faults(good_site()) as server:
        with SitemapStream(server.url, use_known_paths=False) as stream:
            list(stream)
            robots = stream.fetch_extra(f"{other.url}/robots.txt", seconds=5, max_bytes=1_000)
            missing = stream.fetch_extra(f"{other.url}/x.xml", seconds=5, max_bytes=1_000)
        assert isinstance(robots, IndexRobotsTxtSitemap)
        assert [child.url for child in robots.sub_sitemaps] == ["http://h/a.xml"]
        assert isinstance(missing, InvalidSitemap)
        closed = stream.fetch_extra(f"{other.url}/robots.txt", seconds=5, max_bytes=1_000)
        assert isinstance(closed, InvalidSitemap)
        assert other.count("/robots.txt") == 1


@pytest.mark.parametrize(
    ("url", "options", "answer"),
    [
        (SHOP_ROBOTS, {"cross_host": "same-host"}, ROBOTS),
        ("http://10.0.0.1/robots.txt", {}, ROBOTS),
        ("http://localhost/robots.txt", {}, ROBOTS),
        (SHOP_ROBOTS, {}, OSError("no route")),
        (SHOP_ROBOTS, {}, object()),
    ],
    ids=["another host", "private address", "localhost", "raises", "no response"],
)
def test_fetch_extra_is_refused_or_fails(url: str, options: dict[str, Any], answer: Any) -> None:
    """What the tree may not request is not requested beside it either, and whatever goes wrong does not raise."""
    client = FakeClient({url: answer})
    stream = SitemapStream("http://h/", client, **options)
    assert isinstance(stream.fetch_extra(url, seconds=5, max_bytes=1_000), InvalidSitemap)
    assert client.asked == ([] if answer is ROBOTS else [url])


def test_fetch_extra_keeps_its_limits() -> None:
    """A request beside the tree gets its own time and bytes, and no more than the tree allows and has left."""
    allowed: list[tuple[float, int]] = []

    def note(url: str) -> str:
        limits = policy_for(url).limits
        allowed.append((limits.request_seconds, limits.max_sitemap_bytes))
        return ROBOTS

    stream = SitemapStream("http://h/", FakeClient(note))
    assert isinstance(stream.fetch_extra(SHOP_ROBOTS, seconds=5, max_bytes=1_000), IndexRobotsTxtSitemap)
    strict = SitemapStream("http://h/", FakeClient(note), limits=Limits(request_seconds=2, max_sitemap_bytes=10))
    strict.fetch_extra(SHOP_ROBOTS, seconds=5, max_bytes=1_000)
    assert allowed == [(5, 1_000), (2, 10)]
    short = SitemapStream("http://h/", FakeClient(note), limits=Limits(tree_seconds=0.05))
    next(short)
    time.sleep(0.06)
    allowed.clear()
    assert isinstance(short.fetch_extra(SHOP_ROBOTS, seconds=5, max_bytes=1_000), InvalidSitemap)
    assert allowed == []


def test_closing_cancels_an_extra_request() -> None:
    """`close()` ends a request that another thread makes beside the tree."""
    found: list[AbstractSitemap] = []
    with (
        serve_faults({"/robots.txt": silent}) as other,
        serve_faults(good_site()) as server,
        nothing_left(other, server),
    ):
        with within(5), SitemapStream(server.url, use_known_paths=False) as stream:
            next(stream)
            url = f"{other.url}/robots.txt"
            asking = threading.Thread(target=lambda: found.append(stream.fetch_extra(url, seconds=30, max_bytes=1_000)))
            asking.start()
            while not other.count("/robots.txt"):
                time.sleep(0.01)
        asking.join(3)
    assert [type(sitemap) for sitemap in found] == [InvalidSitemap]
