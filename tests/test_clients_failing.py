"""What both clients say of requests that fail, against real sockets on loopback."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sockets import CLIENTS, Make, Peer, answering, error, making, resolving, self_signed, server_context, success, talk
from usp.web_client.policy import RequestPolicy

pytestmark = pytest.mark.network

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture(params=list(CLIENTS))
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    with making(request.param) as make:
        yield make


def reset(peer: Peer) -> None:
    time.sleep(0.05)
    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    peer.socket.close()


def break_chunk(peer: Peer) -> None:
    time.sleep(0.05)
    peer.send(b"zz\r\nmore")
    peer.hold()


@pytest.mark.parametrize(
    ("answer", "then", "message"),
    [
        (b"Content-Length: 100\r\n\r\nonly this", None, "the body was cut off after 9 bytes"),
        (b"Content-Length: 100\r\n\r\nonly this", reset, "the body was cut off after 9 bytes"),
        (b"Transfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n", None, "the body was cut off after 9 bytes"),
        (b"Transfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n", break_chunk, "the body was cut off after 9 bytes"),
        (b"Content-Length: 100\r\n\r\nonly this", Peer.hold, "timed out: the body was cut off after 9 bytes"),
    ],
    ids=["too short", "reset", "chunk missing", "broken chunk", "silence"],
)
def test_partial_bodies(make: Make, answer: bytes, then: Callable[[Peer], None] | None, message: str) -> None:
    """`partial()` returns what has arrived of a body whose transfer broke off, and the error is worth a retry."""
    with talk(answering(b"HTTP/1.1 200 OK\r\nX-Foo: Bar\r\n" + answer, then=then)) as server:
        response = error(make(timeout=0.3).get(server.url))
    assert response.message() == message
    assert response.retryable()
    partial = response.partial()
    assert partial is not None
    assert (partial.encoded_data(), partial.raw_data()) == (b"only this", b"only this")
    assert (partial.status_code(), partial.header("x-foo"), partial.url()) == (200, "Bar", server.url)
    assert partial.transport_problems() == ("T805",)


def test_nothing_of_a_body(make: Make) -> None:
    """A body of which nothing has arrived is not a partial one."""
    with talk(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")) as server:
        response = error(make().get(server.url))
    assert (response.message(), response.partial()) == ("the body was cut off after 0 bytes", None)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", "the connection was closed"),
        (b"nonsense\r\n\r\n", "the answer is not valid HTTP"),
    ],
    ids=["closed", "no HTTP"],
)
def test_broken_answers(make: Make, answer: bytes, message: str) -> None:
    """An answer that is not HTTP is an error worth a retry."""
    with talk(answering(answer)) as server:
        response = error(make().get(server.url))
    assert response.message().startswith(message)
    assert response.retryable()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\n" + b"X-Header: y\r\n" * 500,
        b"HTTP/1.1 200 OK\r\nX-Header: " + b"y" * 200_000,
        b"HTTP/1.1 999 Odd\r\n\r\n",
        b"HTTP/1.1 200 \xff\xfe\r\nX: \xff\r\nContent-Encoding: \xff\r\n\r\nx",
        b"HTTP/9.9 200 OK\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        b"\x16\x03\x01\x00\x00",
    ],
)
def test_odd_answers(make: Make, answer: bytes) -> None:
    """Whatever a server sends, `get` returns a response and raises nothing."""
    with talk(answering(answer)) as server:
        make(timeout=1).get(server.url)


def test_headers_that_are_cut_off(make: Make) -> None:
    """An answer that ends in the middle of its headers is an error, not an empty document."""
    with talk(answering(b"HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nX-He")) as server:
        response = error(make().get(server.url))
    assert (response.retryable(), response.partial()) == (True, None)


def test_refused(make: Make) -> None:
    """A refused connection is an error worth a retry."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        response = error(make().get(f"http://127.0.0.1:{unused.getsockname()[1]}/"))
    assert (response.message(), response.retryable(), response.status_code()) == ("connection refused", True, None)


def failing_look_up(code: int) -> Callable[[str, int], list[object]]:
    def resolve(host: str, port: int) -> list[object]:
        raise socket.gaierror(code, "said the system")

    return resolve


def test_names_that_are_not_found(make: Make) -> None:
    """A host name that does not exist is not worth a retry; a failed lookup is."""
    response = error(make(_resolve=resolving({})).get("http://nosuch.example/"))
    assert (response.message(), response.retryable()) == ("no such host", False)
    response = error(make(_resolve=failing_look_up(socket.EAI_AGAIN)).get("http://some.example/"))
    assert (response.message(), response.retryable()) == ("the name lookup failed: said the system", True)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "ftp://127.0.0.1/",
        "http://",
        "http://[bad/",
        "http://127.0.0.1:99999/",
        "http://a b/",
        "http://\0/",
        "http://a.1\0.2/",
        "http://\ud800.1/",
    ],
)
def test_bad_urls(make: Make, url: str) -> None:
    """A malformed URL is an error response; nothing is raised."""
    response = error(make().get(url))
    assert response.message()
    assert (response.retryable(), response.status_code()) == (False, None)


def test_tls(make: Make, tmp_path: Path) -> None:
    """A self-signed certificate is an error, unless the caller trusts it."""
    certificate = self_signed(tmp_path)
    with talk(answering(OK), server_context(certificate)) as server:
        response = error(make().get(server.url))
        assert response.message() == "the certificate is not valid: self-signed certificate"
        assert not response.retryable()
        client = make(verify=str(tmp_path / "cert.pem"))
        for _ in range(2):
            assert success(client.get(server.url)).raw_data() == b"ok"
        wrong = server.url.replace("127.0.0.1", "localhost")
        assert error(client.get(wrong)).message().startswith("the certificate is not valid: Hostname mismatch")


def test_no_tls_where_it_should_be(make: Make) -> None:
    """Plain HTTP on the port of https is a TLS error."""

    def handle(peer: Peer) -> None:
        peer.socket.recv(65_536)
        peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        peer.hold()

    with talk(handle, scheme="https") as server:
        response = error(make().get(server.url))
    assert response.message().startswith("TLS failed: ")
    assert not response.retryable()


def test_hosts_that_look_like_a_status(make: Make) -> None:
    """An error without an answer has no status, whatever its message begins with."""
    policy = RequestPolicy("http://home.example/")
    responses = [
        make(_resolve=resolving({"404.example": ["127.0.0.1"]})).get("http://404.example/", policy),
        make(_resolve=failing_look_up(socket.EAI_AGAIN)).get("http://404.example/", policy),
        make().get("http://127.0.0.1/", policy),
    ]
    assert [error(response).message().partition(" ")[0] for response in responses] == [
        *("404.example", "the", "127.0.0.1")
    ]
    assert [error(response).status_code() for response in responses] == [None] * 3


def paths(peer: Peer, interim: bytes, pause: float = 0) -> None:
    """Answer each request with its path, after something else if it is /early."""
    while head := peer.head():
        path = head.split()[1]
        if path == b"/early":
            peer.send(interim)
            time.sleep(pause)
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(path), path))


@pytest.mark.parametrize("status", [100, 102, 103, 199])
def test_interim_answers(make: Make, status: int) -> None:
    """An interim answer is not the answer, and what follows it is not the answer to another request."""
    interim = b"HTTP/1.1 %d Wait\r\nLink: </x>; rel=preload\r\n\r\n" % status
    with talk(lambda peer: paths(peer, interim * 3, 0.1)) as server:
        client = make()
        for path in ("early", "a", "b"):
            assert success(client.get(server.url + path)).raw_data() == b"/" + path.encode()
        assert server.accepted == 1


def test_floods_of_interim_answers(make: Make) -> None:
    """There is a limit to interim answers."""
    with talk(lambda peer: paths(peer, b"HTTP/1.1 103 Early Hints\r\n\r\n" * 101)) as server:
        client = make()
        response = error(client.get(f"{server.url}early"))
        assert response.message() == "the answer is not valid HTTP: more than 100 interim answers"
        assert success(client.get(f"{server.url}a")).raw_data() == b"/a"


def test_switching_protocols(make: Make) -> None:
    """After 101 Switching Protocols, the connection is not reused."""
    with talk(lambda peer: paths(peer, b"HTTP/1.1 101 Switching\r\n\r\n", 0.1)) as server:
        client = make()
        assert error(client.get(f"{server.url}early")).status_code() == 101
        for path in ("a", "b"):
            assert success(client.get(server.url + path)).raw_data() == b"/" + path.encode()
        assert server.accepted == 2


def test_tls_with_a_proxy(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The certificate of a proxy is verified too, for every URL; if it is wrong, nothing is sent."""
    heads = []

    def handle(peer: Peer) -> None:
        heads.append(peer.head())
        peer.send(OK)

    with talk(handle, server_context(self_signed(tmp_path))) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("https_proxy", proxy.url)
        for url in ("http://h.example/", "https://h.example/"):
            assert "self-signed certificate" in error(make().get(url)).message()
        assert heads == []
        assert success(make(verify=str(tmp_path / "cert.pem")).get("http://h.example/")).raw_data() == b"ok"


def test_proxies_that_fail(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the proxy fails, the message does not blame the website."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{unused.getsockname()[1]}")
        assert error(make().get("http://h.example/")).message() == "the proxy: connection refused"
    with talk(answering(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")) as proxy:
        monkeypatch.setenv("https_proxy", proxy.url)
        message = "the proxy: Tunnel connection failed: 407 Proxy Authentication Required"
        assert error(make().get("https://h.example/")).message() == message


def test_hosts_after_redirects(make: Make) -> None:
    """A failure of another host than the one asked names that host."""
    answer = b"HTTP/1.1 302 Found\r\nLocation: http://gone.example/x\r\nContent-Length: 0\r\n\r\n"
    with talk(answering(answer)) as server:
        response = error(make(_resolve=resolving({})).get(server.url))
    assert (response.message(), response.is_refused()) == ("redirects to gone.example: no such host", False)


REFUSED = {
    "scheme": ("ftp://home.example/", "ftp is not http or https"),
    "address": ("http://127.0.0.1/", "127.0.0.1 is not a public address"),
    "resolved": ("http://inner.example/", "inner.example leads to 127.0.0.1"),
    "other host": ("http://other.example/", "other.example"),
    "no URL": ("http://[bad/", "it is not a URL"),
}


@pytest.mark.parametrize("what", list(REFUSED))
def test_refusals_are_marked(make: Make, what: str) -> None:
    """A request that the policy does not allow is marked as refused; the host is not to blame."""
    url, message = REFUSED[what]
    policy = RequestPolicy("http://home.example/", cross_host="same-host" if what == "other host" else "allow")
    response = error(make(_resolve=resolving({"inner.example": ["127.0.0.1"]})).get(url, policy))
    assert message in response.message()
    assert (response.is_refused(), response.retryable(), response.status_code()) == (True, False, None)


@pytest.mark.parametrize("location", [b"/", b"/%s", b"ftp://home.example/", b"http://10.0.0.1/", b"http://[bad/"])
def test_refused_redirects_are_marked(make: Make, location: bytes) -> None:
    """So is a redirect in a loop, one too many, or one that leads to where the policy does not allow."""

    def handle(peer: Peer) -> None:
        while head := peer.head():
            where = location.replace(b"%s", head.split()[1].strip(b"/") + b"x")
            peer.send(b"HTTP/1.1 302 Found\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % where)

    with talk(handle) as server:
        response = error(make().get(server.url))
    assert response.message().startswith("redirect")
    assert (response.is_refused(), response.retryable(), response.status_code()) == (True, False, None)


def test_failures_that_are_no_refusals(make: Make) -> None:
    """An answer, and a host that cannot be reached, are not refused."""
    with talk(answering(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")) as server:
        assert not error(make().get(server.url)).is_refused()
    assert not error(make(_resolve=resolving({})).get("http://nosuch.example/")).is_refused()
    assert not error(make(_resolve=failing_look_up(socket.EAI_AGAIN)).get("http://some.example/")).is_refused()


@pytest.mark.parametrize("host", ["nosuch.invalid", "INVALID.", "a.b.Invalid"])
def test_names_that_never_exist(make: Make, host: str) -> None:
    """A name below .invalid does not exist, and is not looked up: without a network, a lookup could not tell."""
    response = error(make(_resolve=failing_look_up(socket.EAI_AGAIN)).get(f"http://{host}/"))
    assert (response.message(), response.retryable()) == ("no such host", False)
