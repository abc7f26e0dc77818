"""Errors that web clients raise: a request that failed costs one sitemap, a bug in the client reaches the caller."""

from __future__ import annotations

import asyncio
import gc
import http.client
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import requests
import urllib3

import usp.aio
from clocks import within
from faults import nothing_left
from support import FakeClient, FakeResponse, index, serve, urlset
from test_aio import AsyncClient
from usp.check import check_homepage
from usp.exceptions import UspError
from usp.export import export_homepage
from usp.fetch_parse import SitemapFetcher
from usp.objects.sitemap import IndexWebsiteSitemap, InvalidSitemap
from usp.tree import sitemap_tree_for_homepage, stream_pages_for_homepage, stream_sitemaps_for_homepage
from usp.web_client.abstract_client import AbstractWebClientResponse, request_errors
from usp.web_client.asyncio_client import AsyncioWebClient
from usp.web_client.http_client import AbstractHTTPClient, HTTPAnswer, HTTPRequest
from usp.web_client.policy import RefusedError
from usp.web_client.requests_client import RequestsWebClient

pytestmark = pytest.mark.network

H = "http://h/"
PAGES = [f"{H}{number}" for number in (1, 2)]


class MineError(Exception):
    """An error that only the caller knows."""


def site(**answers: Any) -> dict[str, Any]:
    """Two sitemaps below an index below robots.txt, with other answers in place of some."""
    return {
        H + "robots.txt": f"Sitemap: {H}index.xml",
        H + "index.xml": index(H + "a.xml", H + "b.xml"),
        H + "a.xml": urlset(PAGES[0]),
        H + "b.xml": urlset(PAGES[1]),
        **{H + name.replace("_", "."): answer for name, answer in answers.items()},
    }


class SafeClient(FakeClient):
    """A client for several threads."""

    is_thread_safe = True


class Duck:
    """Has the methods of a client, and is not a subclass."""

    def __init__(self, answers: Any) -> None:
        self._inner = FakeClient(answers)

    def set_max_response_data_length(self, max_response_data_length: int | None) -> None:
        pass

    def get(self, url: str) -> AbstractWebClientResponse:
        return self._inner.get(url)


def inline(answers: Any) -> IndexWebsiteSitemap:
    return sitemap_tree_for_homepage(H, FakeClient(answers))


def threads(answers: Any) -> IndexWebsiteSitemap:
    return sitemap_tree_for_homepage(H, SafeClient(answers))


def duck(answers: Any) -> IndexWebsiteSitemap:
    client: Any = Duck(answers)
    return sitemap_tree_for_homepage(H, client)


def on_asyncio(answers: Any) -> IndexWebsiteSitemap:
    return asyncio.run(usp.aio.sitemap_tree_for_homepage(H, AsyncClient(answers)))


Fetch = Callable[[Any], IndexWebsiteSitemap]
each_driver = pytest.mark.parametrize("fetch", [inline, threads, duck, on_asyncio])

FAILURES = [
    OSError("kaboom"),
    ConnectionResetError("kaboom"),
    TimeoutError("kaboom"),
    EOFError("kaboom"),
    requests.ConnectionError("kaboom"),
    requests.exceptions.ChunkedEncodingError("kaboom"),
    urllib3.exceptions.ProtocolError("kaboom"),
    http.client.BadStatusLine("kaboom"),
    aiohttp.ClientPayloadError("kaboom"),
]
BUGS = [AttributeError, ZeroDivisionError, KeyError, ValueError, RuntimeError, MineError, UspError, AssertionError]


@each_driver
@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_failed_requests(fetch: Fetch, error: Exception) -> None:
    """An error of the network, or of a common HTTP library, costs the sitemap that was asked for."""
    tree = fetch(site(a_xml=error))
    (invalid,) = (sitemap for sitemap in tree.all_sitemaps() if isinstance(sitemap, InvalidSitemap))
    assert invalid.reason.startswith(f"Unable to fetch sitemap from {H}a.xml: {type(error).__name__}: ")
    assert [page.url for page in tree.all_pages()] == PAGES[1:]


@each_driver
@pytest.mark.parametrize("error", BUGS)
def test_bugs_in_a_client(fetch: Fetch, error: type[Exception]) -> None:
    """Any other error reaches the caller, with a note that names the URL, and leaves nothing behind."""
    with nothing_left(), pytest.raises(error, match="kaboom") as raised:
        fetch(site(a_xml=error("kaboom")))
    assert raised.value.__notes__ == [f"The web client raised this for {H}a.xml"]


@each_driver
@pytest.mark.parametrize("name", ["robots_txt", "index_xml", "b_xml", "sitemap_xml"])
def test_bugs_anywhere(fetch: Fetch, name: str) -> None:
    """It does not matter which request of a tree the error is raised for."""
    with nothing_left(), pytest.raises(ZeroDivisionError):
        fetch(site(**{name: ZeroDivisionError()}))


class Broken(FakeResponse):
    """A response whose methods raise."""

    def raw_data(self) -> bytes:
        raise self.error  # type: ignore[attr-defined]


@each_driver
def test_responses_that_raise(fetch: Fetch) -> None:
    """The same holds for the methods of a response, and for a body that is not bytes."""
    answer: Any = Broken(b"", H + "a.xml")
    answer.error = TimeoutError("kaboom")
    assert [page.url for page in fetch(site(a_xml=answer)).all_pages()] == PAGES[1:]
    answer.error = AttributeError("kaboom")
    with pytest.raises(AttributeError, match="kaboom"):
        fetch(site(a_xml=answer))
    text: Any = urlset(H)
    with pytest.raises(TypeError):
        fetch(site(a_xml=FakeResponse(text, H + "a.xml")))


@pytest.mark.parametrize("named", [(MineError,), MineError])
def test_errors_that_a_client_names(named: Any) -> None:
    """A client names its own errors, in place of all others."""

    class Naming(SafeClient):
        request_errors = named

    class NamingAsync(AsyncClient):
        request_errors = named

    fetches: list[Fetch] = [
        lambda answers: sitemap_tree_for_homepage(H, Naming(answers)),
        lambda answers: asyncio.run(usp.aio.sitemap_tree_for_homepage(H, NamingAsync(answers))),
    ]
    for fetch in fetches:
        assert [page.url for page in fetch(site(a_xml=MineError())).all_pages()] == PAGES[1:]
        with pytest.raises(OSError, match="kaboom"):
            fetch(site(a_xml=OSError("kaboom")))


def test_errors_of_a_mock() -> None:
    """A mock in place of a client names nothing."""
    from unittest.mock import MagicMock

    assert OSError in request_errors(MagicMock())


def test_refused_by_a_client() -> None:
    """A client that raises the policy's own error has refused the request."""
    (sitemap,) = inline(site(robots_txt=f"Sitemap: {H}a.xml", a_xml=RefusedError("no"))).sub_sitemaps[0].sub_sitemaps
    assert isinstance(sitemap, InvalidSitemap)
    assert sitemap.cause == "refused"


@pytest.mark.parametrize("kind", [FakeClient, SafeClient])
def test_threads_end(kind: type[FakeClient]) -> None:
    """An error ends a tree at once, even while other requests go on, and its threads end with them."""
    release = threading.Event()

    def answer(url: str) -> Any:
        if url == H + "b.xml" and kind is SafeClient:
            release.wait(10)
        return site(a_xml=ZeroDivisionError()).get(url)

    with nothing_left():
        with within(5), pytest.raises(ZeroDivisionError):
            sitemap_tree_for_homepage(H, kind(answer))
        release.set()


def test_tasks_end() -> None:
    """On asyncio, an error ends all other requests of the tree, and waits for none."""

    async def pause(url: str) -> None:
        await asyncio.sleep(30 if url == H + "b.xml" else 0)

    async def run() -> int:
        client = AsyncClient(site(a_xml=ZeroDivisionError()), pause)
        with pytest.raises(ZeroDivisionError):
            await usp.aio.sitemap_tree_for_homepage(H, client)
        assert client.going_on == 0
        return len(asyncio.all_tasks())

    with within(5):
        assert asyncio.run(run()) == 1


@pytest.mark.parametrize("kind", [FakeClient, SafeClient])
@pytest.mark.parametrize("ordered", [False, True])
def test_streams_of_pages(kind: type[FakeClient], ordered: bool) -> None:
    """A stream of pages raises the error where it comes, and is over."""
    stream = stream_pages_for_homepage(H, kind(site(b_xml=ZeroDivisionError())), ordered=ordered)
    with nothing_left():
        with pytest.raises(ZeroDivisionError):
            list(stream)
        assert list(stream) == []


@pytest.mark.parametrize("kind", [FakeClient, SafeClient])
def test_streams_of_sitemaps(kind: type[FakeClient]) -> None:
    """A stream of sitemaps has the partial tree after the error, in a block or not."""
    client = kind(site(b_xml=ZeroDivisionError()))
    plain = stream_sitemaps_for_homepage(H, client)
    with nothing_left(), pytest.raises(ZeroDivisionError):
        list(plain)
    in_block = stream_sitemaps_for_homepage(H, client)
    with nothing_left(), pytest.raises(ZeroDivisionError), in_block:
        list(in_block)
    for stream in (plain, in_block):
        assert [sitemap.url for sitemap in stream.tree.sub_sitemaps] == [H + "robots.txt"]


def test_streams_on_asyncio() -> None:
    """So do the streams of asyncio."""

    async def run() -> None:
        with pytest.raises(ZeroDivisionError):
            async for _ in usp.aio.stream_pages_for_homepage(H, AsyncClient(site(b_xml=ZeroDivisionError()))):
                pass
        async with usp.aio.stream_sitemaps_for_homepage(H, AsyncClient(site(b_xml=ZeroDivisionError()))) as stream:
            with pytest.raises(ZeroDivisionError):
                async for _ in stream:
                    pass
        assert [sitemap.url for sitemap in stream.tree.sub_sitemaps] == [H + "robots.txt"]
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(run())


@pytest.mark.parametrize("kind", [FakeClient, SafeClient])
def test_extra_documents(kind: type[FakeClient]) -> None:
    """A document beside the tree raises the error too; one that could not be fetched is invalid."""
    answers = site() | {"http://o/robots.txt": ZeroDivisionError(), "http://p/robots.txt": OSError("kaboom")}
    with stream_sitemaps_for_homepage(H, kind(answers)) as stream:
        list(stream)
        with pytest.raises(ZeroDivisionError):
            stream.fetch_extra("http://o/robots.txt", seconds=5, max_bytes=1_000)
        failed = stream.fetch_extra("http://p/robots.txt", seconds=5, max_bytes=1_000)
        assert isinstance(failed, InvalidSitemap)
        assert failed.reason.endswith("OSError: kaboom")


@pytest.mark.parametrize("kind", [FakeClient, SafeClient])
@pytest.mark.parametrize("where", ["http://o/robots.txt", H + "b.xml"])
def test_checks(kind: type[FakeClient], where: str) -> None:
    """A check raises the error, whether the request is one of the tree or for the robots.txt of another host."""
    with nothing_left(), pytest.raises(ZeroDivisionError):
        check_homepage(H, kind(site(a_xml=urlset("http://o/1")) | {where: ZeroDivisionError()}))


@pytest.mark.export
@pytest.mark.parametrize("kind", [FakeClient, SafeClient])
def test_exports(tmp_path: Path, kind: type[FakeClient]) -> None:
    """An export raises the error, and leaves a file as it was."""
    path = tmp_path / "pages.csv"
    path.write_text("before")
    with nothing_left(), pytest.raises(ZeroDivisionError):
        export_homepage(H, path, kind(site(b_xml=ZeroDivisionError())))
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("pages.csv", "before")]


def test_fetchers() -> None:
    """A fetcher on its own raises it, too."""
    with pytest.raises(ZeroDivisionError):
        SitemapFetcher(H + "index.xml", 0, FakeClient(site(b_xml=ZeroDivisionError()))).sitemap()


# Our own clients


@pytest.fixture
def base() -> Iterator[str]:
    with serve({"/robots.txt": (200, {}, b"Sitemap: {base}/a.xml"), "/a.xml": (200, {}, urlset(H).encode())}) as server:
        yield server.url


def raising(error: Exception) -> Callable[[str, int], Any]:
    """Return a lookup that raises, as HTTP libraries do if a server sends what they do not expect."""

    def resolve(host: str, port: int) -> Any:
        raise error

    return resolve


@pytest.mark.network
@pytest.mark.parametrize("error", [AttributeError("kaboom"), KeyError("kaboom"), AssertionError("kaboom")])
def test_our_clients_break_no_tree(error: Exception) -> None:
    """No mistake of an HTTP library ends a tree, if no code of the caller's is at work."""
    with RequestsWebClient(_resolve=raising(error)) as client:
        tree = sitemap_tree_for_homepage("http://h.example/", client, use_known_paths=False)
    assert "kaboom" in str(tree.problems[0])

    async def run() -> IndexWebsiteSitemap:
        async with AsyncioWebClient(_resolve=raising(error)) as client:
            return await usp.aio.sitemap_tree_for_homepage("http://h.example/", client, use_known_paths=False)

    assert "kaboom" in str(asyncio.run(run()).problems[0])


@pytest.mark.network
@pytest.mark.parametrize("error", [AttributeError, ZeroDivisionError])
def test_hooks_of_a_session(base: str, error: type[Exception]) -> None:
    """An error in a hook of the caller's session reaches the caller, and the connection is closed."""

    def hook(*_: object, **__: object) -> None:
        raise error("kaboom")

    with requests.Session() as session, RequestsWebClient(session=session) as client:
        session.hooks["response"].append(hook)
        with pytest.raises(error, match="kaboom"):
            sitemap_tree_for_homepage(base, client)
    gc.collect()  # warns of connections that are not closed, which is an error here


@pytest.mark.network
def test_subclasses_of_our_clients(base: str) -> None:
    """So does one in a subclass of a client."""

    class Sub(RequestsWebClient):
        def get(self, url: str) -> AbstractWebClientResponse:
            raise AttributeError("kaboom")

    class Small(AbstractHTTPClient):
        def send(self, request: HTTPRequest) -> HTTPAnswer:
            raise KeyError("kaboom")

    with Sub() as client, pytest.raises(AttributeError, match="kaboom"):
        sitemap_tree_for_homepage(base, client)
    with pytest.raises(KeyError, match="kaboom"):
        sitemap_tree_for_homepage(base, Small())
