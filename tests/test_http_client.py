"""What a client gets from its base class, shown with two small ones: `small_clients`."""

from __future__ import annotations

import asyncio
import contextvars
import gzip
import threading
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import usp
from clocks import within
from small_clients import SmallAsyncClient, SmallClient
from sockets import Peer, answering, error, resolving, success, talk
from support import FakeClient, serve
from usp import aio
from usp.cli.demo import demo_site
from usp.exceptions import InvalidArgumentError
from usp.limits import Limits
from usp.tree import sitemap_tree_for_homepage, stream_pages_for_homepage, stream_sitemaps_for_homepage
from usp.web_client.abstract_client import (
    AbstractAsyncWebClient,
    AbstractWebClient,
    AbstractWebClientResponse,
    LocalWebClient,
    LocalWebClientSuccessResponse,
    WebClientErrorResponse,
)
from usp.web_client.aiohttp_client import AiohttpWebClient
from usp.web_client.asyncio_client import AsyncioWebClient
from usp.web_client.http_client import AbstractHTTPClient, HTTPAnswer, HTTPRequest
from usp.web_client.policy import RequestPolicy, applying
from usp.web_client.requests_answers import RequestsAnswer
from usp.web_client.requests_client import RequestsWebClient

pytestmark = pytest.mark.network

PUBLIC = "93.184.216.34"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Blocking:
    """The client on http.client."""

    def __init__(self, **options: Any) -> None:
        self.client = SmallClient(**options)

    def get(self, url: str, policy: RequestPolicy) -> AbstractWebClientResponse:
        with applying(policy):
            return self.client.get(url)


class Awaiting:
    """The client on streams of asyncio."""

    def __init__(self, **options: Any) -> None:
        self.client = SmallAsyncClient(**options)

    def get(self, url: str, policy: RequestPolicy) -> AbstractWebClientResponse:
        with applying(policy), asyncio.Runner() as runner:
            return runner.run(self.client.get(url), context=contextvars.copy_context())


Make = type[Blocking] | type[Awaiting]


@pytest.fixture(params=[Blocking, Awaiting])
def make(request: pytest.FixtureRequest) -> Make:
    kind: Make = request.param
    return kind


def public_home(port: int) -> tuple[RequestPolicy, dict[str, Sequence[str]]]:
    """A server of this machine as a public homepage: only the lookup before the request says that it is one."""
    names: dict[str, Sequence[str]] = {"localhost": [PUBLIC], "inner.example": ["10.0.0.1"]}
    return RequestPolicy(f"http://localhost:{port}/"), names | {"mixed.example": [PUBLIC, "10.0.0.1"]}


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "[::1]", "inner.example", "mixed.example"])
def test_private_addresses_are_refused(make: Make, host: str) -> None:
    """A public site cannot lead to a private address, also if it is one of several, before anything is sent."""
    with talk(answering(OK)) as server:
        policy, names = public_home(server.port)
        client = make(_resolve=resolving(names))
        assert success(client.get(f"http://localhost:{server.port}/", policy)).raw_data() == b"ok"
        response = error(client.get(f"http://{host}:{server.port}/", policy))
        assert server.accepted == 1
    assert "is not a public address; a website may not lead there" in response.message()
    assert response.retryable() is False


@pytest.mark.parametrize("host", ["127.0.0.1", "inner.example"])
def test_redirects_to_private_addresses_are_refused(make: Make, host: str) -> None:
    """Nor can it redirect there: every hop is checked."""
    with talk(answering(OK)) as inner:
        moved = f"HTTP/1.1 302 Found\r\nLocation: http://{host}:{inner.port}/\r\nContent-Length: 0\r\n\r\n"
        with talk(answering(moved.encode())) as outer:
            policy, names = public_home(outer.port)
            response = error(make(_resolve=resolving(names)).get(f"http://localhost:{outer.port}/", policy))
            assert outer.accepted == 1
        assert inner.accepted == 0
    assert "is not a public address; a website may not lead there" in response.message()


@pytest.mark.parametrize("url", ["ftp://h.example/", "http://other.example/", "nonsense", "http://[bad/"])
def test_other_refusals(make: Make, url: str) -> None:
    """URLs that are not http or https, or on a host that is not allowed, are refused without a lookup."""
    client = make(_resolve=resolving({}))
    response = error(client.get(url, RequestPolicy("http://h.example/", cross_host="same-host")))
    assert (response.status_code(), response.retryable()) == (None, False)


def test_hosts_that_do_not_exist(make: Make) -> None:
    """A host that cannot be looked up is an error that says so."""
    client = make(_resolve=resolving({}))
    response = error(client.get("http://h.example/", RequestPolicy("http://h.example/")))
    assert (response.message(), response.retryable()) == ("no such host", False)


@pytest.mark.parametrize("body", [b"x" * 100, gzip.compress(b"x" * 100_000)], ids=["plain", "gzip"])
def test_body_limit(make: Make, body: bytes) -> None:
    """A body is read up to the limit of the tree, or to one that the caller has set, as transferred and inflated."""
    headers = {"Content-Encoding": "gzip"} if body[:2] == b"\x1f\x8b" else {}
    with serve({"/x": (200, headers, body)}) as server:
        client = make()
        policy = RequestPolicy(server.url, Limits(max_sitemap_bytes=7))
        response = success(client.get(f"{server.url}/x", policy))
        assert (response.encoded_data(), response.transport_problems()) == (body[:7], ("T804",))
        client.client.set_max_response_data_length(90)
        response = success(client.get(f"{server.url}/x", policy))
        assert response.raw_data() == b"x" * 90


def test_bodies_without_end(make: Make) -> None:
    """A body without end is read up to the limit, never whole."""
    with talk(answering(b"HTTP/1.1 200 OK\r\n\r\n", then=lambda peer: peer.drip(b"x" * 65_536, 0))) as server:
        policy = RequestPolicy(server.url, Limits(max_sitemap_bytes=1_000_000))
        assert success(make().get(server.url, policy)).encoded_data() == b"x" * 1_000_000


def test_redirects(make: Make) -> None:
    """Redirects are followed up to the limit, and the answer's URL is the last one."""
    pages = {f"/{n}": (302, {"Location": f"/{n + 1}"}, b"moved") for n in range(6)}
    with serve({**pages, "/6": (200, {"X-Foo": "bar"}, b"there")}) as server:
        client = make()
        response = success(client.get(f"{server.url}/1", RequestPolicy(server.url)))
        assert (response.url(), response.raw_data()) == (f"{server.url}/6", b"there")
        assert (response.status_code(), response.status_message(), response.header("x-foo")) == (200, "OK", "bar")
        too_many = error(client.get(f"{server.url}/0", RequestPolicy(server.url)))
        assert too_many.message() == "redirected more than 5 times"
        too_many = error(client.get(f"{server.url}/1", RequestPolicy(server.url, Limits(max_redirects=2))))
        assert too_many.message() == "redirected more than 2 times"


def test_credentials_stay_at_home(make: Make) -> None:
    """Headers, and a user and password, go to the homepage's origin, and to no other, whoever leads there."""
    with serve({"/x": (200, {}, b"x")}) as other, serve({"/x": (200, {}, b"x")}) as home:
        home.pages["/away"] = (302, {"Location": f"{other.url}/x", "Set-Cookie": "a=1"}, b"")
        client = make(user_agent="me", headers={"X-Mine": "yes"})
        policy = RequestPolicy(home.url.replace("//", "//user:secret@"))
        for url in (f"{home.url}/x", f"{home.url}/away", f"{other.url}/x"):
            success(client.get(policy.with_credentials(url), policy))
        for _, headers in home.requests:
            assert (headers["X-Mine"], headers["User-Agent"]) == ("yes", "me")
            assert headers["Authorization"] == "Basic dXNlcjpzZWNyZXQ="
        assert len(other.requests) == 2
        for _, headers in other.requests:
            assert headers["User-Agent"] == "me"
            assert not {"X-Mine", "Authorization", "Cookie"} & set(headers)


def test_cookies(make: Make) -> None:
    """A cookie that a redirect sets is sent where it leads, on the same origin."""

    def handle(peer: Peer) -> None:
        is_known = b"Cookie: a=1; b=2" in peer.head()
        moved = b"HTTP/1.1 302 Found\r\nLocation: /\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 0\r\n\r\n"
        peer.send(OK if is_known else moved)

    with talk(handle) as server:
        assert success(make().get(server.url, RequestPolicy(server.url))).raw_data() == b"ok"


def test_errors(make: Make) -> None:
    """An error has its status, and says whether and when to try again."""
    with serve({"/busy": (503, {"Retry-After": "7"}, b"")}) as server:
        client = make()
        busy = error(client.get(f"{server.url}/busy", RequestPolicy(server.url)))
        missing = error(client.get(f"{server.url}/missing", RequestPolicy(server.url)))
    assert (busy.status_code(), busy.retryable(), busy.retry_after()) == (503, True, 7)
    assert (missing.message(), missing.retryable()) == ("404 Not Found", False)
    refused = error(client.get(server.url, RequestPolicy(server.url)))
    assert (refused.message(), refused.retryable()) == ("connection refused", True)


def test_cut_off_bodies(make: Make) -> None:
    """A body that is shorter than announced is an error worth another try, and keeps what has arrived."""
    with talk(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")) as server:
        response = error(make().get(server.url, RequestPolicy(server.url)))
    assert (response.message(), response.retryable()) == ("the body was cut off after 9 bytes", True)
    partial = response.partial()
    assert partial is not None
    assert (partial.encoded_data(), partial.transport_problems()) == (b"only this", ("T805",))


def drip_headers(peer: Peer) -> None:
    peer.head()
    peer.send(b"HTTP/1.1 200 OK\r\nX-Header: ")
    peer.drip(b"x")


def drip_body(peer: Peer) -> None:
    peer.head()
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    peer.drip(b"x")


@pytest.mark.parametrize("slow", [Peer.hold, drip_headers, drip_body])
def test_deadlines(make: Make, slow: Any) -> None:
    """A request ends by its deadline, also if the client does not keep it, and a slow server keeps no later one up."""
    with talk(slow) as server, talk(answering(OK)) as good:
        client = make()
        for _ in range(2):
            with within(1, least=0.35):
                response = error(client.get(server.url, RequestPolicy(server.url, Limits(request_seconds=0.4))))
            assert response.message() == f"no {'complete ' * (slow is drip_body)}answer within 0.4 s"
        assert (response.partial() is not None) is (slow is drip_body)
        if slow is not drip_headers:  # a client for one thread is free again once its own timeout has ended it
            assert success(client.get(good.url, RequestPolicy(good.url))).raw_data() == b"ok"


@pytest.mark.parametrize("slow", [Peer.hold, drip_headers, drip_body])
def test_cancelling(make: Make, slow: Any) -> None:
    """A tree that is cancelled ends its requests at once."""
    with talk(slow) as server:
        policy = RequestPolicy(server.url)
        timer = threading.Timer(0.2, policy.cancel)
        timer.start()
        with within(0.8):
            response = error(make().get(server.url, policy))
        timer.join()
    assert (response.message(), response.retryable()) == ("cancelled", False)


def test_a_client_for_one_thread_stays_with_one() -> None:
    """A client for one thread is not called while a request that was abandoned still uses it."""
    running = threading.Semaphore(1)
    release = threading.Event()

    class Stuck(AbstractHTTPClient):
        def send(self, request: HTTPRequest) -> HTTPAnswer:
            assert running.acquire(blocking=False), "two requests at once"
            release.wait(10)
            running.release()
            return HTTPAnswer(request.url, 200, "OK", (), lambda: b"")

    client = Stuck()
    with applying(RequestPolicy("http://127.0.0.1/", Limits(request_seconds=0.2))):
        for _ in range(2):
            assert error(client.get("http://127.0.0.1/")).message() == "no answer within 0.2 s"
        release.set()
        assert success(client.get("http://127.0.0.1/")).raw_data() == b""


def test_a_library_that_follows_redirects_is_refused() -> None:
    """An answer from another origin is refused: urllib follows redirects by itself unless it is told not to."""

    class Following(AbstractHTTPClient):
        def send(self, request: HTTPRequest) -> HTTPAnswer:
            response = urllib.request.urlopen(request.url)  # noqa: S310 -- an http URL on loopback
            return HTTPAnswer(
                response.url, response.status, None, response.getheaders(), response.read1, response.close
            )

    with talk(answering(OK)) as inner:
        elsewhere = f"HTTP/1.1 302 Found\r\nLocation: http://localhost:{inner.port}/\r\nContent-Length: 0\r\n\r\n"
        with talk(answering(elsewhere.encode())) as outer:
            response = error(Following().get(f"http://127.0.0.1:{outer.port}/"))
    assert response.message() == "the client's HTTP library followed a redirect by itself; switch that off"


def test_proxies_resolve_hosts(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that a proxy resolves is not looked up, but its URL is checked all the same."""
    client = make(_resolve=resolving({"localhost": ["127.0.0.1"]}))
    monkeypatch.setattr(client.client, "proxy_for", lambda url: "http://proxy.example/")
    with talk(answering(OK)) as server:
        policy = RequestPolicy("http://home.example/")
        assert "not a public address" in error(client.get(f"http://127.0.0.1:{server.port}/", policy)).message()
        home = f"http://home.example:{server.port}/"
        assert error(client.get(home, policy)).message() == "no such host"  # from the transport
        assert server.accepted == 0


def test_addresses_that_were_checked() -> None:
    """A request has the addresses that were checked, for a client that connects to these."""
    seen = []

    class Seeing(AbstractHTTPClient):
        def __init__(self) -> None:  # one that does not call the base's
            pass

        def send(self, request: HTTPRequest) -> HTTPAnswer:
            seen.append((request.url, request.addresses, request.is_home))
            pieces = iter([b"a", b"b", b""])
            return HTTPAnswer(request.url, 200, None, [("Content-Type", "text/plain")], pieces.__next__)

    client = Seeing()
    response = success(client.get("http://127.0.0.1/x"))
    assert (response.raw_data(), response.status_message()) == (b"ab", "OK")
    assert seen == [("http://127.0.0.1/x", ["127.0.0.1"], True)]
    assert client.user_agent.startswith("ultimate_sitemap_parser/")


def test_what_a_class_declares_holds_for_its_own_transport() -> None:
    """A subclass with another `send` is not trusted to check addresses and keep deadlines, unless it says so."""

    class Other(RequestsWebClient):
        def send(self, request: HTTPRequest) -> RequestsAnswer:
            seen.append(request.addresses)
            return super().send(request)

    class Careful(Other):
        checks_addresses = True

        def send(self, request: HTTPRequest) -> RequestsAnswer:
            return super().send(request)

    class Same(RequestsWebClient):
        pass

    kinds: list[type[RequestsWebClient]] = [RequestsWebClient, Same, Other, Careful]
    assert [(kind.checks_addresses, kind.keeps_deadlines) for kind in kinds] == [
        *((True, True), (True, True), (False, False), (True, False))
    ]
    seen: list[Sequence[str]] = []
    with serve({"/x": (200, {}, b"x")}) as server, Other(_resolve=resolving({"h.example": ["127.0.0.1"]})) as client:
        assert success(client.get(f"{server.url}/x")).raw_data() == b"x"
        with applying(RequestPolicy("http://home.example/")):
            assert "not a public address" in error(client.get("http://h.example/")).message()
    assert seen == [["127.0.0.1"]]


def test_bugs_are_raised() -> None:
    """What a client raises that is not one of its errors is a bug, and reaches the caller."""

    class Wrong(AbstractHTTPClient):
        def send(self, request: HTTPRequest) -> HTTPAnswer:
            raise KeyError("oops")

    with pytest.raises(KeyError):
        Wrong().get("http://127.0.0.1/")


def test_trees() -> None:
    """Small clients fetch whole trees."""
    with demo_site() as homepage:
        expected = [page.url for page in sitemap_tree_for_homepage(homepage).all_pages()]
        tree = sitemap_tree_for_homepage(homepage, web_client=SmallClient())
        assert [page.url for page in tree.all_pages()] == expected != []
        tree = asyncio.run(aio.sitemap_tree_for_homepage(homepage, SmallAsyncClient()))
        assert [page.url for page in tree.all_pages()] == expected


def test_who_guards_addresses() -> None:
    """A client has the guards of its base, as long as it does not replace `get`; and others have none."""

    class Replacing(RequestsWebClient):
        def get(self, url: str) -> AbstractWebClientResponse:
            return super().get(url)

    class Declaring(Replacing):
        guards_addresses = True

        def get(self, url: str) -> AbstractWebClientResponse:
            return super().get(url)

    class Sending(SmallClient):
        def send(self, request: HTTPRequest) -> HTTPAnswer:
            return super().send(request)

    class Below(Declaring):
        pass

    ours: list[Any] = [RequestsWebClient, AsyncioWebClient, AiohttpWebClient, LocalWebClient]
    guarded: list[Any] = [*ours, SmallClient, SmallAsyncClient, Sending, Declaring, Below]
    unguarded: list[Any] = [Replacing, AbstractWebClient, AbstractAsyncWebClient, FakeClient]
    assert [client for client in guarded + unguarded if client.guards_addresses] == guarded


@pytest.mark.parametrize("start", ["tree", "pages", "sitemaps", "open", "async tree", "async pages", "async open"])
def test_private_addresses_need_a_guarded_client(start: str) -> None:
    """`private="refuse"` is an error with a client that does not say that it refuses them, before any request."""

    class Guarded(FakeClient):
        guards_addresses = True

    class AsyncFake(AbstractAsyncWebClient):
        def __init__(self, site: Any) -> None:
            self.asked: list[str] = []

        async def get(self, url: str) -> AbstractWebClientResponse:
            self.asked.append(url)
            return WebClientErrorResponse("404 Not Found", retryable=False)

    class AsyncGuarded(AsyncFake):
        guards_addresses = True

    async def await_all(client: Any) -> None:
        if start == "async tree":
            await aio.sitemap_tree_for_homepage(home, client, private="refuse")
        elif start == "async pages":
            _ = [page async for page in aio.stream_pages_for_homepage(home, client, private="refuse")]
        else:
            await aio.open(home, client, private="refuse").read()

    ways: dict[str, Callable[[Any], object]] = {
        "tree": lambda client: sitemap_tree_for_homepage(home, client, private="refuse"),
        "pages": lambda client: list(stream_pages_for_homepage(home, client, private="refuse")),
        "sitemaps": lambda client: list(stream_sitemaps_for_homepage(home, client, private="refuse")),
        "open": lambda client: usp.open(home, client, private="refuse").read(),
    }
    home = "http://h.example/"
    is_async = start.startswith("async")
    run = ways.get(start, lambda client: asyncio.run(await_all(client)))
    unguarded = AsyncFake({}) if is_async else FakeClient({})
    with pytest.raises(InvalidArgumentError, match=r"guards_addresses = True"):
        run(unguarded)
    assert unguarded.asked == []
    guarded = AsyncGuarded({}) if is_async else Guarded({})
    run(guarded)
    assert guarded.asked


def test_files_need_no_guards(tmp_path: Path) -> None:
    """Files and folders are read with `private="refuse"`, too: nothing is connected to."""
    path = tmp_path / "sitemap.txt"
    path.write_text("http://h.example/page\n")
    for target in (path, tmp_path):
        assert [page.url for page in usp.open(target, private="refuse").read().all_pages()] == ["http://h.example/page"]


def test_clients_that_only_get() -> None:
    """A client that has `get` and `set_max_response_data_length` only works as in ultimate-sitemap-parser."""
    asked: list[object] = []

    class Old(AbstractWebClient):
        def set_max_response_data_length(self, max_response_data_length: int | None) -> None:
            asked.append(max_response_data_length)

        def get(self, url: str) -> AbstractWebClientResponse:
            asked.append(url)
            if url == "http://h.example/robots.txt":
                return LocalWebClientSuccessResponse(url, "Sitemap: http://10.0.0.1/sitemap.txt")
            if url == "http://10.0.0.1/sitemap.txt":
                return LocalWebClientSuccessResponse(url, "http://h.example/page")
            return WebClientErrorResponse("404 Not Found", retryable=False)

    tree = sitemap_tree_for_homepage("http://h.example/", web_client=Old(), use_known_paths=False)
    assert [page.url for page in tree.all_pages()] == ["http://h.example/page"]
    assert asked == [Limits().max_sitemap_bytes, "http://h.example/robots.txt", "http://10.0.0.1/sitemap.txt"]
