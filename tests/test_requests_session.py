"""The client of requests with sessions, threads and processes of its caller."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from sockets import Peer, success, talk
from support import Server, serve
from usp.web_client.abstract_client import RequestWaiter
from usp.web_client.connections import GuardedAdapter
from usp.web_client.requests_client import RequestsWebClient
from usp.web_client.terms import Terms, under

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
    """A caller's session has its say at the homepage's origin, redirects among its pages included, and nowhere else."""
    with serve({"/x": (200, {}, b"x")}) as other, requests.Session() as session:
        session.headers["X-Mine"] = "yes"
        session.headers["User-Agent"] = "me"
        session.auth = ("me", "secret")
        session.cookies.set("mine", "1")
        site.pages["/to-other"] = (302, {"Location": f"{other.url}/x", "Set-Cookie": "theirs=2"}, b"away")
        site.pages["/to-self"] = (302, {"Location": "/plain"}, b"here")
        with RequestsWebClient(session=session, headers={"X-More": "yes"}) as client:
            assert client.user_agent == "me"
            with under(Terms(site.url)):
                assert success(client.get(f"{site.url}/to-self")).raw_data() == TEXT
                assert success(client.get(f"{site.url}/to-other")).url() == f"{other.url}/x"
        for _, headers in site.requests[-3:]:
            assert (headers["X-Mine"], headers["X-More"], headers["User-Agent"]) == ("yes", "yes", "me")
            assert headers["Authorization"].startswith("Basic ")
            assert "mine=1" in headers["Cookie"]
        ((_, headers),) = other.requests
        assert set(headers) == {"Host", "User-Agent", "Accept-Encoding", "Accept"}
        assert headers["User-Agent"] == "me"
        assert session.cookies["theirs"] == "2"  # the caller's own session may keep what it likes


def test_adapters_of_a_session(site: Server) -> None:
    """Adapters of requests are put right, and behave as ever when used by others; a caller's own are left alone."""

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


def test_thread_safety() -> None:
    """Several threads may use the client, but not one of another class, or with a session of one, unless it says so."""

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
    """Sixty-four threads get what each asked for, over as many connections, which are all kept."""
    barrier = threading.Barrier(64)

    def handle(peer: Peer) -> None:
        while head := peer.head():
            path = head.split()[1]
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(path), path))

    with talk(handle) as server:

        def fetch(i: int) -> None:
            barrier.wait()
            with under(Terms(server.url)):
                for n in range(5):
                    assert success(client.get(f"{server.url}{i}-{n}")).raw_data() == f"/{i}-{n}".encode()

        with ThreadPoolExecutor(64) as pool:
            list(pool.map(fetch, range(64)))
        assert server.accepted <= 64
        client.close()
    assert caplog.records == []


def test_waiting_in_threads() -> None:
    """Requests of several threads start apart too; no more is waited once there is nothing to wait for."""
    waiter = RequestWaiter(0.1, False)

    def waited(_: int) -> float:
        waiter.wait()
        return time.monotonic()

    started = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        ends = sorted(pool.map(waited, range(4)))
    assert [round(end - started, 1) for end in ends] == [0, 0.1, 0.2, 0.3]
    waiter = RequestWaiter(10, False)
    waiter.wait()
    started = time.monotonic()
    waiter.wait(lambda: time.monotonic() - started > 0.05)
    assert time.monotonic() - started < 0.5


def test_fork(site: Server) -> None:
    """After a fork the child makes connections of its own, and the parent's go on."""
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
