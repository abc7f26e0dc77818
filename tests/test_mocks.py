"""Mocks of requests, as in the test suites of callers: requests-mock, responses, vcrpy, and fakes without a library.

The mocked sites have names that do not exist; those of cassettes are on loopback.
"""

from __future__ import annotations

import asyncio
import gzip
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, patch

import pytest
import requests
import requests_mock
import responses
import vcr

import usp.aio
from clocks import within
from sockets import Peer, answering, error, resolving, self_signed, server_context, success, talk
from support import Server, index, serve, urlset
from usp.limits import Limits
from usp.objects.sitemap import AbstractSitemap, IndexWebsiteSitemap, InvalidSitemap
from usp.politeness import Politeness
from usp.tree import sitemap_tree_for_homepage
from usp.web_client.policy import RequestPolicy, applying
from usp.web_client.requests_client import RequestsWebClient
from usp.web_client.requests_internals import GuardedAdapter

pytestmark = pytest.mark.network

QUICK = Politeness(retry_seconds=0, tries=2)
HOME = "https://mocked.example"
OTHER = "https://elsewhere.example"
#: URLs, and the status, headers and body of their answers, or the error that a request ends with.
SITE: dict[str, Any] = {
    f"{HOME}/robots.txt": (200, {}, f"Sitemap: {HOME}/index.xml".encode()),
    f"{HOME}/index.xml": (301, {"Location": "/moved.xml"}, b"moved"),
    f"{HOME}/moved.xml": (
        200,
        {"Content-Type": "text/xml", "Set-Cookie": "seen=1"},
        index(
            *(
                f"{HOME}/{name}"
                for name in ("file.xml.gz", "away.xml", "gone.xml", "busy.xml", "slow.xml", "empty.xml")
            ),
            f"{OTHER}/encoded.xml",
        ).encode(),
    ),
    f"{HOME}/file.xml.gz": (200, {}, gzip.compress(urlset(f"{HOME}/1").encode())),
    f"{HOME}/away.xml": (302, {"Location": f"{OTHER}/there.xml"}, b""),
    f"{OTHER}/there.xml": (200, {}, urlset(f"{HOME}/2").encode()),
    f"{OTHER}/encoded.xml": (200, {"Content-Encoding": "gzip"}, gzip.compress(urlset(f"{HOME}/3").encode())),
    f"{HOME}/gone.xml": (410, {}, b""),
    f"{HOME}/busy.xml": (503, {"Retry-After": "0"}, b""),
    f"{HOME}/slow.xml": requests.ConnectTimeout("too slow"),
    f"{HOME}/empty.xml": (200, {}, b""),
}
PAGES = [f"{HOME}/{number}" for number in (1, 2, 3)]


class OtherSession(requests.Session):
    """A session of a class that usp does not know."""


Client = Callable[[], AbstractContextManager[RequestsWebClient]]
CLIENTS: dict[str, Client] = {
    "default": RequestsWebClient,
    "session": lambda: RequestsWebClient(session=requests.Session()),
    "subclass": lambda: RequestsWebClient(session=OtherSession()),
}


@contextmanager
def by_requests_mock(mocker: requests_mock.Mocker | None = None) -> Iterator[None]:
    with mocker or requests_mock.Mocker() as mock:
        fill(mock)
        yield


def fill(mock: Any) -> None:
    """Register the site with a mocker or an adapter of requests-mock. The last that matches counts."""
    mock.register_uri("GET", requests_mock.ANY, status_code=404)
    for url, answer in SITE.items():
        if isinstance(answer, Exception):
            mock.register_uri("GET", url, exc=answer)
        else:
            mock.register_uri("GET", url, status_code=answer[0], headers=answer[1], content=answer[2])


@contextmanager
def by_responses() -> Iterator[None]:
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        for url, answer in SITE.items():
            if isinstance(answer, Exception):
                mock.get(url, body=answer)
            else:
                mock.get(url, status=answer[0], headers=answer[1], body=answer[2])
        mock.get(re.compile(f"(?!{'|'.join(map(re.escape, SITE))})"), status=404)  # each URL must match only one
        yield


MOCKS = {"requests_mock": by_requests_mock, "responses": by_responses}


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """Refuse all look-ups and connections, and fail if there were any."""
    attempts: list[object] = []

    def refuse(*args: object, **_: object) -> None:
        attempts.append(args)
        raise OSError("no network in this test")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    yield attempts
    assert attempts == []


def reasons(tree: IndexWebsiteSitemap) -> dict[str, str]:
    return {
        sitemap.url.rpartition("/")[2]: sitemap.reason.rpartition(": ")[2]
        for sitemap in tree.all_sitemaps()
        if isinstance(sitemap, InvalidSitemap)
    }


def check(tree: IndexWebsiteSitemap) -> None:
    """Check that a tree is that of the site."""
    assert [page.url for page in tree.all_pages()] == PAGES
    assert [type(sitemap).__name__ for sitemap in tree.all_sitemaps()] == [
        *("IndexRobotsTxtSitemap", "IndexXMLSitemap", "PagesXMLSitemap", "PagesXMLSitemap"),
        *["InvalidSitemap"] * 4,
        "PagesXMLSitemap",
    ]
    assert [sitemap.url for sitemap in tree.all_sitemaps()][1:4:2] == [f"{HOME}/moved.xml", f"{OTHER}/there.xml"]
    failed = reasons(tree)
    assert (failed["gone.xml"], failed["empty.xml"]) == ("410 Gone", "it is empty")
    assert failed["busy.xml"] == "503 Service Unavailable"
    slow = next(sitemap for sitemap in tree.all_sitemaps() if sitemap.url == f"{HOME}/slow.xml")
    assert isinstance(slow, InvalidSitemap)
    assert "mocked.example" in slow.reason


@pytest.mark.parametrize("mock", list(MOCKS))
@pytest.mark.parametrize("concurrency", [1, 8])
def test_trees(no_network: list[object], mock: str, concurrency: int) -> None:
    """A tree comes from the mock alone: children, redirects, gzip, error statuses and exceptions."""
    with MOCKS[mock]():
        check(sitemap_tree_for_homepage(HOME, politeness=QUICK, concurrency=concurrency))


@pytest.mark.parametrize("mock", list(MOCKS))
@pytest.mark.parametrize("client", list(CLIENTS))
def test_clients_under_mocks(no_network: list[object], mock: str, client: str) -> None:
    """It does not matter whether the client, or its session, was made before or under the mock."""
    with CLIENTS[client]() as before:
        with MOCKS[mock](), CLIENTS[client]() as under:
            check(sitemap_tree_for_homepage(HOME, web_client=before, politeness=QUICK))
            check(sitemap_tree_for_homepage(HOME, web_client=under, politeness=QUICK))
            assert success(before.get(f"{OTHER}/there.xml")).status_code() == 200
            assert error(before.get(f"{HOME}/gone.xml")).status_code() == 410
            assert error(before.get(f"{HOME}/slow.xml")).retryable()
        assert before._session.cookies.get_dict() == {}


@pytest.mark.parametrize("session", [requests.Session, OtherSession])
def test_mock_of_one_session(no_network: list[object], session: type[requests.Session]) -> None:
    """A mock of the caller's session answers for all hosts, also if it is an adapter that the caller has mounted."""
    one, two = session(), session()
    with by_requests_mock(requests_mock.Mocker(session=one)), RequestsWebClient(session=one) as client:
        check(sitemap_tree_for_homepage(HOME, web_client=client, politeness=QUICK))
    assert one.cookies.get_dict() == {}
    adapter = requests_mock.Adapter()
    fill(adapter)
    two.mount("https://", adapter)
    with RequestsWebClient(session=two) as client:
        check(sitemap_tree_for_homepage(HOME, web_client=client, politeness=QUICK))
        two.cookies.clear()
        two.headers["X-Mine"] = "secret"
        with applying(RequestPolicy(HOME)):
            assert success(client.get(f"{HOME}/away.xml")).url() == f"{OTHER}/there.xml"
    first, second = adapter.request_history[-2:]
    assert first.headers["X-Mine"] == "secret"
    assert "X-Mine" not in second.headers


@pytest.mark.parametrize("mock", list(MOCKS))
def test_requests_that_no_mock_expects(no_network: list[object], mock: str) -> None:
    """A request that a mock does not expect goes nowhere, and is not repeated."""
    with MOCKS[mock]() if mock == "requests_mock" else responses.RequestsMock(), RequestsWebClient() as client:
        assert not error(client.get("https://unknown.example/")).retryable()


@pytest.mark.parametrize("mock", list(MOCKS))
def test_large_bodies(no_network: list[object], mock: str) -> None:
    """The body of a mock is read up to the limit."""
    with MOCKS[mock](), RequestsWebClient() as client:
        client.set_max_response_data_length(5)
        response = success(client.get(f"{OTHER}/there.xml"))
        assert (response.raw_data(), response.encoded_data()) == (b"<urls", b"<urls")
        assert response.transport_problems() == ("T804",)


@pytest.mark.parametrize("client", list(CLIENTS))
def test_errors_of_the_mocking_library(no_network: list[object], tmp_path: Path, client: str) -> None:
    """An error of the library itself reaches the caller: the test is wrong, not the site."""
    with (
        vcr.use_cassette(tmp_path / "cassette.yaml", record_mode="none"),
        CLIENTS[client]() as web_client,
        pytest.raises(vcr.errors.CannotOverwriteExistingCassetteException),
    ):
        sitemap_tree_for_homepage(HOME, web_client=web_client)


@pytest.mark.network
@pytest.mark.parametrize("client", list(CLIENTS))
def test_after_a_mock(client: str) -> None:
    """Once a mock has ended, requests go to the network, and the policy is applied to them."""
    with serve({"/x": (200, {}, b"real")}) as site, CLIENTS[client]() as web_client:
        web_client._resolver = resolving({"inner.example": ["127.0.0.1"]})
        for mock in MOCKS.values():
            with mock():
                assert error(web_client.get(f"{site.url}/x")).status_code() == 404
        assert site.requests == []
        assert success(web_client.get(f"{site.url}/x")).raw_data() == b"real"
        check_guarded(web_client, site)


def check_guarded(client: RequestsWebClient, site: Server) -> None:
    """Check that a client, which resolves inner.example to loopback, refuses to go there from a public site."""
    before = len(site.requests)
    inner = site.url.replace("127.0.0.1", "inner.example")
    with applying(RequestPolicy("http://home.example/")):
        assert "is not a public address" in error(client.get(f"{inner}/x")).message()
    assert len(site.requests) == before


@pytest.mark.network
@pytest.mark.parametrize("session", [None, requests.Session, OtherSession])
def test_real_requests_beside_a_mock(session: type[requests.Session] | None) -> None:
    """A mock that lets requests through leads to guarded connections."""
    with serve({"/x": (200, {}, b"real"), "/to": (302, {"Location": "/x"}, b"")}) as site:
        resolve = resolving({"inner.example": ["127.0.0.1"]})
        with RequestsWebClient(session=None if session is None else session(), _resolve=resolve) as client:
            with requests_mock.Mocker(real_http=True) as mock:
                mock.get(f"{HOME}/x", text="mocked")
                assert success(client.get(f"{HOME}/x")).raw_data() == b"mocked"
                assert success(client.get(f"{site.url}/to")).raw_data() == b"real"
                check_guarded(client, site)
            with responses.RequestsMock(assert_all_requests_are_fired=False) as other:
                other.add_passthru("http://")
                other.get(f"{HOME}/x", body="mocked")
                assert success(client.get(f"{HOME}/x")).raw_data() == b"mocked"
                assert success(client.get(f"{site.url}/to")).raw_data() == b"real"
                check_guarded(client, site)


@pytest.mark.network
def test_real_requests_beside_a_mock_of_one_session() -> None:
    """So does a mock of one session that lets requests through."""
    session = requests.Session()
    with serve({"/x": (200, {"Set-Cookie": "a=1"}, b"real")}) as site:
        resolve = resolving({"inner.example": ["127.0.0.1"]})
        with (
            RequestsWebClient(session=session, _resolve=resolve) as client,
            requests_mock.Mocker(session=session, real_http=True),
        ):
            assert success(client.get(f"{site.url}/x")).raw_data() == b"real"
            check_guarded(client, site)
        assert session.cookies.get_dict() == {}


# Fakes without a library


def fake_response(url: str, kind: str) -> Any:
    """Return a response as tests make them: a mock, or one of requests that has its body already."""
    answer = SITE.get(url, (404, {}, b""))
    if isinstance(answer, Exception):
        raise answer
    response: Any = MagicMock() if kind == "mock" else requests.Response()
    response.status_code, headers, content = answer
    response.headers, response.url = requests.structures.CaseInsensitiveDict(headers), url
    setattr(response, "content" if kind == "mock" else "_content", content)
    return response


@pytest.mark.parametrize("client", list(CLIENTS))
@pytest.mark.parametrize("method", ["get", "request", "send"])
@pytest.mark.parametrize("kind", ["mock", "response"])
def test_replaced_methods(no_network: list[object], client: str, method: str, kind: str) -> None:
    """A test may replace a method of all sessions, and return anything that looks like a response."""

    def answer(self: requests.Session, *arguments: Any, **_: Any) -> Any:
        url = arguments[-1] if method != "send" else arguments[0].url
        return fake_response(url, kind)

    with patch.object(requests.Session, method, answer), CLIENTS[client]() as web_client:
        check(sitemap_tree_for_homepage(HOME, web_client=web_client, politeness=QUICK))


def test_a_mock_in_place_of_a_method(no_network: list[object]) -> None:
    """The method may be a mock, which was in place when the client was imported or made."""
    with patch("requests.Session.get", side_effect=lambda url, **_: fake_response(url, "mock")) as get:
        check(sitemap_tree_for_homepage(HOME, politeness=QUICK))
    assert get.call_args_list[0].args == (f"{HOME}/robots.txt",)
    assert get.call_args_list[0].kwargs["stream"] is True


class Canned(requests.adapters.BaseAdapter):
    """An adapter that returns responses with their body, and without a connection."""

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        response: requests.Response = fake_response(request.url or "", "response")
        response.request = request
        return response

    def close(self) -> None:
        pass


def test_adapters_with_ready_bodies(no_network: list[object]) -> None:
    """An adapter that the caller has mounted may return responses that have their body already."""
    with requests.Session() as session, RequestsWebClient(session=session) as client:
        session.mount("https://", Canned())
        check(sitemap_tree_for_homepage(HOME, web_client=client, politeness=QUICK))


@pytest.mark.network
def test_hooks_that_read_the_body() -> None:
    """A hook of the caller's session may read a body before the client does."""
    pages = {"/x": (200, {"Content-Encoding": "gzip"}, gzip.compress(b"some text"))}
    with serve(pages) as site, requests.Session() as session, RequestsWebClient(session=session) as client:
        session.hooks["response"].append(lambda response, **_: response.content and None)
        assert success(client.get(f"{site.url}/x")).raw_data() == b"some text"


@pytest.mark.network
@pytest.mark.parametrize("method", ["get", "request", "send"])
def test_wrapped_methods(method: str) -> None:
    """Tools that watch requests wrap a method of all sessions. Requests that pass through it are guarded, and exact."""
    calls = []
    original = getattr(requests.Session, method)

    def watch(self: requests.Session, *arguments: Any, **options: Any) -> Any:
        calls.append(arguments)
        assert self.headers == {}
        self.cookies.set("b", "2")
        return original(self, *arguments, **options)

    pages = {"/to": (302, {"Location": "/x?%7e=%c3"}, b"moved"), "/x?%7e=%c3": (200, {"Set-Cookie": "a=1"}, b"real")}
    resolve = resolving({"inner.example": ["127.0.0.1"]})
    with (
        serve(pages) as site,
        patch.object(requests.Session, method, watch),
        RequestsWebClient(_resolve=resolve) as client,
    ):
        assert success(client.get(f"{site.url}/to")).raw_data() == b"real"
        check_guarded(client, site)
    assert [path for path, _ in site.requests] == ["/to", "/x?%7e=%c3"]
    assert all(set(headers) == {"Host", "User-Agent", "Accept-Encoding", "Accept"} for _, headers in site.requests)
    assert len(calls) == 3


# Cassettes


@pytest.fixture
def site() -> Iterator[Server]:
    """The same site on loopback, without the slow sitemap, and with other URLs."""
    pages = {}
    for url, answer in SITE.items():
        if isinstance(answer, tuple):
            status, headers, body = answer
            headers = {name: value.replace(OTHER, "{base}").replace(HOME, "{base}") for name, value in headers.items()}
            body = body.replace(HOME.encode(), b"{base}").replace(OTHER.encode(), b"{base}")
            pages["/" + url.rpartition("/")[2]] = (status, headers, body)
    with serve(pages) as server:
        yield server


def described(sitemap: AbstractSitemap) -> Any:
    children = [described(child) for child in sitemap.sub_sitemaps]
    return (
        type(sitemap).__name__,
        sitemap.url,
        getattr(sitemap, "reason", ""),
        [page.url for page in sitemap.pages],
        children,
    )


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("client", list(CLIENTS))
def test_cassettes(site: Server, tmp_path: Path, client: str) -> None:
    """Vcrpy records all requests of a tree, and replays them without a network."""
    path = tmp_path / "cassette.yaml"
    with CLIENTS[client]() as web_client:
        expected = described(sitemap_tree_for_homepage(site.url, web_client=web_client, politeness=QUICK))
        asked = sorted(site.paths())
        site.requests.clear()
        with vcr.use_cassette(path) as cassette:
            recorded = sitemap_tree_for_homepage(site.url, web_client=web_client, politeness=QUICK)
            assert len(cassette.requests) == len(asked)
        assert sorted(site.paths()) == asked
        assert described(recorded) == expected
        assert len(list(recorded.all_pages())) == 3
        site.requests.clear()
        connections = len(site.connections)
        for _ in range(2):
            with vcr.use_cassette(path, record_mode="none") as cassette:
                replayed = sitemap_tree_for_homepage(site.url, web_client=web_client, politeness=QUICK)
                assert cassette.play_count == len(asked)
            assert described(replayed) == expected
        assert (site.requests, len(site.connections)) == ([], connections)
        assert success(web_client.get(f"{site.url}/moved.xml")).status_code() == 200
        assert site.paths() == ["/moved.xml"]


@pytest.mark.network
def test_cassettes_on_asyncio(site: Server, tmp_path: Path) -> None:
    """Vcrpy records and replays the requests of asyncio, too."""
    path, found = tmp_path / "cassette.yaml", []
    for mode in ("once", "none"):
        with vcr.use_cassette(path, record_mode=mode):
            tree = usp.aio.sitemap_tree_for_homepage(site.url, politeness=QUICK)
            found.append(described(asyncio.run(tree)))
        if mode == "once":
            site.requests.clear()
    assert found[0] == found[1]
    assert site.requests == []


@pytest.mark.network
@pytest.mark.slow
def test_imports_under_a_cassette(site: Server, tmp_path: Path) -> None:
    """It does not matter whether the client is imported before or under the cassette."""
    script = """
import sys, vcr
with vcr.use_cassette(sys.argv[2]):
    from usp.tree import sitemap_tree_for_homepage
    assert len(list(sitemap_tree_for_homepage(sys.argv[1]).all_pages())) == 3
from usp.web_client.requests_client import RequestsWebClient
with RequestsWebClient() as client:
    assert client.get(sys.argv[1] + "/moved.xml").status_code() == 200
"""
    for _ in range(2):
        site.requests.clear()
        site.pages["/busy.xml"] = (404, {}, b"")
        subprocess.run([sys.executable, "-c", script, site.url, tmp_path / "c.yaml"], check=True, timeout=20)
    assert site.paths() == ["/moved.xml"]


@pytest.mark.network
@pytest.mark.slow
def test_recording_is_guarded(site: Server, tmp_path: Path) -> None:
    """A recording refuses private addresses, ends by the deadline, and has no more of a body than the limit."""
    path = tmp_path / "cassette.yaml"
    resolve = resolving({"inner.example": ["127.0.0.1"]})
    site.pages["/bomb"] = (200, {"Content-Encoding": "gzip"}, gzip.compress(bytes(50_000_000)))
    with RequestsWebClient(_resolve=resolve) as client, vcr.use_cassette(path) as cassette:
        check_guarded(client, site)
        assert cassette.requests == []
        with applying(RequestPolicy(site.url, Limits(max_sitemap_bytes=1_000))):
            response = success(client.get(f"{site.url}/bomb"))
        assert len(response.raw_data()) == 1_000
        assert len(cassette.responses[0]["body"]["string"]) == 1_001
        assert success(client.get(f"{site.url}/moved.xml")).status_code() == 200
        ok = b"HTTP/1.1 200 OK\r\n\r\n"
        with talk(answering(ok, then=lambda peer: peer.drip(b"x"))) as endless, within(2):
            with applying(RequestPolicy(endless.url, Limits(request_seconds=0.3))):
                failure = error(client.get(endless.url))
            assert "0.3 s" in failure.message()


@pytest.mark.network
@pytest.mark.slow
def test_recordings_wait_for_each_other(tmp_path: Path) -> None:
    """A request that waits for another one's recording ends by its own deadline."""
    arrived = threading.Event()

    def silent(peer: Peer) -> None:
        peer.head()
        arrived.set()
        peer.hold()

    def fetch(url: str, seconds: float) -> str:
        with applying(RequestPolicy(url, Limits(request_seconds=seconds))):
            return error(client.get(url)).message()

    with (
        talk(silent) as server,
        vcr.use_cassette(tmp_path / "cassette.yaml"),
        RequestsWebClient() as client,
        ThreadPoolExecutor(2) as threads,
        within(3),
    ):
        first = threads.submit(fetch, server.url, 1)
        assert arrived.wait(5)
        second = threads.submit(fetch, server.url, 0.2)
        assert "0.2 s" in second.result()
        assert not first.done()
        assert "1 s" in first.result()


@pytest.mark.network
def test_recordings_with_tls(tmp_path: Path) -> None:
    """Certificates are verified while recording, and no connection is made for a replay."""
    path = tmp_path / "cassette.yaml"
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    with talk(answering(answer), server_context(self_signed(tmp_path))) as server:
        with vcr.use_cassette(path) as cassette, RequestsWebClient() as client:
            assert "certificate" in error(client.get(server.url)).message()
            assert cassette.requests == []
        accepted = server.accepted
        with RequestsWebClient(verify=str(tmp_path / "cert.pem")) as client:
            for _ in range(2):
                with vcr.use_cassette(path):
                    assert success(client.get(server.url)).raw_data() == b"ok"
        assert server.accepted == accepted + 1
        with vcr.use_cassette(path), RequestsWebClient() as client:
            assert success(client.get(server.url)).raw_data() == b"ok"


def test_pools_are_guarded() -> None:
    """Without a cassette, all connections are guarded."""
    adapter = GuardedAdapter()
    for scheme in ("http", "https"):
        pool = adapter.poolmanager.connection_from_host("h.example", scheme=scheme)
        assert pool.ConnectionCls.__name__.startswith("_Guarded")
        assert pool.ConnectionCls.__module__ == GuardedAdapter.__module__
    adapter.close()
