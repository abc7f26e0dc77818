"""The client of requests with sessions, threads and processes of its caller."""

from __future__ import annotations

import gzip
import io
import pickle
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests
import requests.auth
import urllib3
from urllib3.util import Retry

from clocks import within
from sockets import Peer, answering, error, resolving, success, talk
from support import Server, serve
from usp.web_client.abstract_client import RequestWaiter, WebClientErrorResponse
from usp.web_client.policy import RequestPolicy, applying
from usp.web_client.requests_client import RequestsWebClient
from usp.web_client.requests_internals import GuardedAdapter

pytestmark = pytest.mark.network

TEXT = b"some text"


@pytest.fixture
def site() -> Iterator[Server]:
    with serve({"/plain": (200, {}, TEXT), "/moved": (301, {"Location": "/plain"}, b"")}) as server:
        yield server


@pytest.fixture
def client() -> Iterator[RequestsWebClient]:
    with RequestsWebClient() as client:
        yield client


def test_session_goes_home_only(site: Server) -> None:
    """The client uses the caller's session at the homepage's origin, also after redirects, and nowhere else."""
    with serve({"/x": (200, {}, b"x")}) as other, requests.Session() as session:
        session.headers["X-Mine"] = "yes"
        session.headers["User-Agent"] = "me"
        session.auth = ("me", "secret")
        session.cookies.set("mine", "1")
        site.pages["/to-other"] = (302, {"Location": f"{other.url}/x", "Set-Cookie": "theirs=2"}, b"away")
        site.pages["/to-self"] = (302, {"Location": "/plain"}, b"here")
        with RequestsWebClient(session=session, headers={"X-More": "yes"}) as client:
            assert client.user_agent == "me"
            with applying(RequestPolicy(site.url)):
                assert success(client.get(f"{site.url}/to-self")).raw_data() == TEXT
                assert success(client.get(f"{site.url}/to-other")).url() == f"{other.url}/x"
        for _, headers in site.requests[-3:]:
            assert (headers["X-Mine"], headers["X-More"], headers["User-Agent"]) == ("yes", "yes", "me")
            assert headers["Authorization"].startswith("Basic ")
            assert "mine=1" in headers["Cookie"]
        ((_, headers),) = other.requests
        assert set(headers) == {"Host", "User-Agent", "Accept-Encoding", "Accept"}
        assert headers["User-Agent"] == "me"
        assert session.cookies.get_dict() == {"mine": "1"}


def test_adapters_of_a_session(site: Server) -> None:
    """Adapters of requests are replaced by guarded ones, which behave as before for others; a caller's own stay."""

    class Mine(requests.adapters.HTTPAdapter):
        pass

    mine = Mine()
    with requests.Session() as session:
        session.mount("http://mine.example/", mine)
        RequestsWebClient(session=session)
        assert session.get_adapter("http://mine.example/") is mine
        assert isinstance(session.get_adapter(site.url), GuardedAdapter)
        assert session.get(f"{site.url}/moved", timeout=2).content == TEXT
        with RequestsWebClient(session=session) as client:
            assert success(client.get(f"{site.url}/plain")).raw_data() == TEXT
        assert session.get(f"{site.url}/plain", timeout=2).content == TEXT
        copy = pickle.loads(pickle.dumps(session.get_adapter(site.url)))
        assert isinstance(copy, GuardedAdapter)
        copy.close()


@pytest.mark.parametrize("kind", ["later", "subclass"])
def test_adapters_are_checked_when_they_are_taken(site: Server, kind: str) -> None:
    """Adapters that are mounted later, or are of an unknown class, do not reach private addresses either."""

    class Mine(requests.adapters.HTTPAdapter):
        used = 0

        def send(self, *args: Any, **options: Any) -> requests.Response:
            Mine.used += 1
            return super().send(*args, **options)

    with requests.Session() as session:
        resolve = resolving({"inner.example": ["127.0.0.1"]})
        with RequestsWebClient(session=session, _resolve=resolve) as client:
            session.mount("http://", Mine() if kind == "subclass" else requests.adapters.HTTPAdapter(max_retries=2))
            port = site.url.rpartition(":")[2]
            with applying(RequestPolicy("http://home.example/")):
                response = error(client.get(f"http://inner.example:{port}/plain"))
            assert response.message().startswith("inner.example leads to 127.0.0.1, which is not a public address")
            assert Mine.used == 0
            assert success(client.get(f"{site.url}/plain")).raw_data() == TEXT
            assert Mine.used == (kind == "subclass")


def test_home_of_an_unknown_adapter(site: Server) -> None:
    """After an adapter of an unknown class was used, its host may not resolve to a private address."""

    class Mine(requests.adapters.BaseAdapter):
        def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
            response = requests.Response()
            response.status_code = 200
            response.raw = urllib3.HTTPResponse(body=io.BytesIO(b"mine"), preload_content=False)
            return response

        def close(self) -> None:
            pass

    with requests.Session() as session:
        session.mount("http://home.example/", Mine())
        resolve = resolving({"home.example": ["127.0.0.1"]})
        with (
            RequestsWebClient(session=session, _resolve=resolve) as client,
            applying(RequestPolicy("http://home.example/")),
        ):
            assert success(client.get("http://home.example/")).raw_data() == b"mine"
            inner = site.url.replace("127.0.0.1", "home.example")
            assert "not a public address" in error(client.get(f"{inner}/plain")).message()
    assert site.requests == []


def test_retries_of_a_session(site: Server) -> None:
    """A session retries for its caller, not for the client: urllib3 would sleep beyond the deadline."""
    site.pages["/busy"] = (503, {}, b"")
    site.pages["/later"] = (503, {"Retry-After": "30"}, b"")
    retries = Retry(total=2, status_forcelist=[503], raise_on_status=False, backoff_factor=0)
    with requests.Session() as session:
        session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retries))
        with RequestsWebClient(session=session) as client:
            with within(5):
                assert error(client.get(f"{site.url}/later")).retry_after() == 30
            assert site.paths() == ["/later"]
            assert session.get(f"{site.url}/busy", timeout=2).status_code == 503
            assert site.paths() == ["/later", *["/busy"] * 3]


def test_bodies_of_challenges(site: Server) -> None:
    """The session's authentication does not read the body of an answer that asks for a password."""
    bomb = gzip.compress(b"\0" * 50_000_000)
    challenge = {"WWW-Authenticate": 'Digest realm="a", nonce="b"', "Content-Encoding": "gzip", "Set-Cookie": "c=1"}
    site.pages["/secret"] = (401, challenge, bomb)
    with requests.Session() as session:
        session.auth = requests.auth.HTTPDigestAuth("me", "secret")
        with RequestsWebClient(session=session) as client:
            tracemalloc.start()
            try:
                assert error(client.get(f"{site.url}/secret")).status_code() == 401
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
        assert session.cookies.get_dict() == {}
    assert peak < 5_000_000
    first, second = (headers for _, headers in site.requests)
    assert "Authorization" not in first
    assert second["Authorization"].startswith("Digest ")
    assert second["Cookie"] == "c=1"


def test_cookies_of_a_session(site: Server) -> None:
    """The session's cookies are sent; cookies that a redirect sets are sent to the next hop, and not kept."""
    site.pages["/wall"] = (302, {"Location": "/plain", "Set-Cookie": "a=new; Path=/"}, b"")
    with requests.Session() as session:
        session.cookies.set("a", "old", domain="127.0.0.1")
        session.cookies.set("b", "mine")
        with RequestsWebClient(session=session) as client:
            for _ in range(2):
                assert success(client.get(f"{site.url}/wall")).raw_data() == TEXT
        sent = [set(headers["Cookie"].split("; ")) for _, headers in site.requests]
        assert sent == [{"a=old", "b=mine"}, {"a=new", "b=mine"}] * 2
        assert session.cookies.get_dict() == {"a": "old", "b": "mine"}


def test_headers_that_are_none(client: RequestsWebClient, caplog: pytest.LogCaptureFixture) -> None:
    """A line that is not a header causes no traceback in the log."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nno header\r\nX: y\r\n\r\nok"
    with talk(answering(answer)) as server:
        assert success(client.get(server.url)).raw_data() == b"ok"
    assert caplog.records == []


def test_status_of_errors() -> None:
    """An error response has the status that it was given; without one, the status that its message begins with."""

    class Old(WebClientErrorResponse):
        def __init__(self) -> None:
            pass

        def message(self) -> str:
            return "410 Gone"

    assert WebClientErrorResponse("404 Not Found", False).status_code() == 404
    assert WebClientErrorResponse("404.example is away", False, status=None).status_code() is None
    assert WebClientErrorResponse("it is gone", False, status=410).status_code() == 410
    assert WebClientErrorResponse("timed out", True).status_code() is None
    assert Old().status_code() == 410
    assert (Old().retry_after(), Old().partial(), Old().is_refused()) == (None, None, False)
    assert WebClientErrorResponse("private", False, is_refused=True).is_refused()


def test_thread_safety() -> None:
    """The client is thread-safe; a subclass, or one with a subclass of Session, is not, unless it says so."""

    class OtherSession(requests.Session):
        pass

    class Sub(RequestsWebClient):
        pass

    class Safe(Sub):
        is_thread_safe = True

    clients = [RequestsWebClient(), RequestsWebClient(session=requests.Session()), Safe()]
    clients += [RequestsWebClient(session=OtherSession()), Sub()]
    assert [client.is_thread_safe for client in clients] == [True, True, True, False, False]
    for client in clients:
        client.close()


def test_many_threads(client: RequestsWebClient, caplog: pytest.LogCaptureFixture) -> None:
    """Sixty-four threads get what each asked for, over as many connections, which all stay open."""
    barrier = threading.Barrier(64)

    def handle(peer: Peer) -> None:
        while head := peer.head():
            path = head.split()[1]
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(path), path))

    with talk(handle) as server:

        def fetch(i: int) -> None:
            barrier.wait()
            with applying(RequestPolicy(server.url)):
                for n in range(5):
                    assert success(client.get(f"{server.url}{i}-{n}")).raw_data() == f"/{i}-{n}".encode()

        with ThreadPoolExecutor(64) as pool:
            list(pool.map(fetch, range(64)))
        assert server.accepted <= 64
        client.close()
    assert caplog.records == []


def test_waiting_in_threads() -> None:
    """The waiter spaces requests of several threads too, and stops waiting once `is_over()`."""
    waiter = RequestWaiter(0.1, False)

    def waited(_: int) -> float:
        waiter.wait()
        return time.monotonic()

    started = time.monotonic()
    with within(0.45), ThreadPoolExecutor(4) as pool:
        ends = sorted(pool.map(waited, range(4)))
    assert all(end - started > 0.1 * number - 0.01 for number, end in enumerate(ends))
    waiter = RequestWaiter(10, False)
    waiter.wait()
    started = time.monotonic()
    with within(0.5):
        waiter.wait(lambda: time.monotonic() - started > 0.05)


def test_fork(site: Server) -> None:
    """After a fork, the child opens its own connections, and the parent's stay usable."""
    script = """
import os, sys
from usp.web_client.requests_client import RequestsWebClient
url = sys.argv[1]
with RequestsWebClient() as client:
    assert client.get(url).raw_data()
    child = os.fork()
    for _ in range(3):
        assert client.get(url).raw_data()
    if child:
        assert os.waitpid(child, 0)[1] == 0
"""
    site.connections.clear()
    subprocess.run([sys.executable, "-c", script, f"{site.url}/plain"], check=True, timeout=20)
    assert len(site.connections) == 2
