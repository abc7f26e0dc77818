"""When requests end: by their deadline, or when their tree is cancelled. Both clients, against real sockets."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from clocks import within
from sockets import CLIENTS, Make, Peer, error, full_backlog, making, self_signed, server_context, success, talk
from usp.limits import Limits
from usp.web_client.lookups import AddressInfo
from usp.web_client.policy import RequestPolicy
from usp.web_client.requests_exchange import resolve as looked_up

pytestmark = pytest.mark.network

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture(params=list(CLIENTS))
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    with making(request.param) as make:
        yield make


def keep_alive(peer: Peer) -> None:
    while peer.head():
        peer.send(OK)


def drip_headers(peer: Peer) -> None:
    peer.head()
    peer.send(b"HTTP/1.1 200 OK\r\nX-Header: ")
    peer.drip(b"x")


def drip_continue(peer: Peer) -> None:
    peer.head()
    peer.drip(b"HTTP/1.1 100 Continue\r\n\r\n")


def drip_body(peer: Peer) -> None:
    peer.head()
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    peer.drip(b"x")


def drip_endless_body(peer: Peer) -> None:
    peer.head()
    peer.send(b"HTTP/1.1 200 OK\r\n\r\n")
    peer.drip(b"x" * 1000)


def drip_chunks(peer: Peer) -> None:
    peer.head()
    peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    peer.drip(b"1\r\nx\r\n")


def redirect_slowly(peer: Peer) -> None:
    while head := peer.head():
        time.sleep(0.2)
        where = head.split()[1] + b"x"
        peer.send(b"HTTP/1.1 302 Found\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % where)


SLOW: dict[str, Callable[[Peer], None]] = {
    "silence": Peer.hold,
    "headers": drip_headers,
    "100 Continue": drip_continue,
    "body": drip_body,
    "endless body": drip_endless_body,
    "chunks": drip_chunks,
    "redirects": redirect_slowly,
}


@pytest.mark.parametrize("what", list(SLOW))
def test_deadline(make: Make, what: str) -> None:
    """A request ends by its deadline, whatever the server does, and keeps what has arrived of the body."""
    with talk(SLOW[what]) as server:
        policy = RequestPolicy(server.url, Limits(request_seconds=0.5))
        with within(0.9, least=0.45):
            response = error(make().get(server.url, policy))
    has_begun = what in ("body", "endless body", "chunks")
    assert response.message() == f"no {'complete ' * has_begun}answer within 0.5 s"
    assert response.retryable()
    assert (response.partial() is not None) is has_begun


def test_deadline_of_connecting(make: Make) -> None:
    """A request ends by its deadline while it is still connecting."""
    with full_backlog() as url, within(0.9, least=0.45):
        response = error(make().get(url, RequestPolicy(url, Limits(request_seconds=0.5))))
    assert response.message() == "no answer within 0.5 s"


def test_time_to_connect(make: Make) -> None:
    """The time to connect has a limit of its own."""
    with full_backlog() as url:
        response = error(make(timeout=(0.2, 5)).get(url))
    assert (response.message(), response.retryable()) == ("no answer within 0.2 s", True)


@pytest.mark.parametrize("what", ["silence", "headers", "body"])
def test_deadline_with_tls(make: Make, tmp_path: Path, what: str) -> None:
    """A request with TLS ends by its deadline, in the handshake and after it."""
    context = server_context(self_signed(tmp_path)) if what != "silence" else None
    with talk(SLOW[what], context, scheme="https") as server:
        policy = RequestPolicy(server.url, Limits(request_seconds=0.5))
        client = make(verify=str(tmp_path / "cert.pem") if context else True)
        with within(0.9, least=0.45):
            response = error(client.get(server.url, policy))
    assert response.message() == f"no {'complete ' * (what == 'body')}answer within 0.5 s"


def test_deadline_of_the_tree(make: Make) -> None:
    """No request outlives its tree, or starts after it."""
    with talk(Peer.hold) as server:
        policy = RequestPolicy(server.url, expires=time.monotonic() + 0.3)
        client = make()
        for _ in range(2):
            response = error(client.get(server.url, policy))
            assert (response.message(), response.retryable()) == ("the tree's time is up", False)
        assert server.accepted == 1


def test_deadline_of_a_lookup(make: Make) -> None:
    """A slow DNS lookup delays a request neither beyond its deadline nor after the tree is cancelled."""
    is_over = threading.Event()

    def resolve(host: str, port: int) -> list[AddressInfo]:
        is_over.wait(5)
        return []

    url = "http://slow.example/"
    try:
        with within(0.7, least=0.25):
            response = error(make(_resolve=resolve).get(url, RequestPolicy(url, Limits(request_seconds=0.3))))
        assert response.message() == "no answer within 0.3 s"
        policy = RequestPolicy(url)
        with cancelled_soon(policy):
            assert error(make(_resolve=resolve).get(url, policy)).message() == "cancelled"
    finally:
        is_over.set()


def test_addresses_need_no_thread(make: Make) -> None:
    """An address needs no lookup thread, and a request on an open connection needs no lookup."""
    threads = []

    def resolve(host: str, port: int) -> Sequence[AddressInfo]:
        threads.append(threading.current_thread())
        return looked_up("127.0.0.1", port)

    with talk(keep_alive) as server:
        success(make(_resolve=resolve).get(server.url))
        assert threads in ([], [threading.current_thread()])
        threads.clear()
        client = make(_resolve=resolve)
        for _ in range(2):
            success(client.get(f"http://home.example:{server.port}/"))
        assert len(threads) == 1


@contextmanager
def cancelled_soon(policy: RequestPolicy) -> Iterator[None]:
    timer = threading.Timer(0.2, policy.cancel)
    timer.start()
    with within(0.5):
        yield
    timer.join()


@pytest.mark.parametrize("what", ["silence", "headers", "body", "chunks"])
def test_cancelling(make: Make, what: str) -> None:
    """Cancelling a tree, from any thread, ends its requests at once; it starts no more."""
    with talk(SLOW[what]) as server:
        policy = RequestPolicy(server.url)
        client = make()
        with cancelled_soon(policy):
            response = error(client.get(server.url, policy))
        assert (response.message(), response.retryable()) == ("cancelled", False)
        assert error(client.get(server.url, policy)).message() == "cancelled"
        assert server.accepted == 1


def test_cancelling_while_connecting(make: Make) -> None:
    """Cancelling a tree ends a request that is still connecting."""
    with full_backlog() as url:
        policy = RequestPolicy(url)
        with cancelled_soon(policy):
            assert error(make().get(url, policy)).message() == "cancelled"


@pytest.mark.parametrize("what", ["silence", "body"])
def test_cancelling_with_tls(make: Make, tmp_path: Path, what: str) -> None:
    """Cancelling a tree ends a request with TLS, in the handshake and after it."""
    context = server_context(self_signed(tmp_path)) if what != "silence" else None
    with talk(SLOW[what], context, scheme="https") as server:
        policy = RequestPolicy(server.url)
        client = make(verify=str(tmp_path / "cert.pem") if context else True)
        with cancelled_soon(policy):
            assert error(client.get(server.url, policy)).message() == "cancelled"


def test_cancelling_one_of_two(make: Make) -> None:
    """Cancelling a tree does not close open connections that it no longer uses."""
    with talk(keep_alive) as server:
        client = make()
        first, second = RequestPolicy(server.url), RequestPolicy(server.url)
        success(client.get(server.url, first))
        first.cancel()
        for _ in range(2):
            success(client.get(server.url, second))
        assert server.accepted == 1
