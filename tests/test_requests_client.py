"""The client of requests, against a real server on loopback."""

from __future__ import annotations

import gzip
import socket
import threading
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import requests

from clocks import within
from support import Server, serve
from usp.exceptions import InvalidArgumentError
from usp.version import __version__
from usp.web_client.abstract_client import (
    LocalWebClient,
    LocalWebClientSuccessResponse,
    NoWebClientException,
    RequestWaiter,
    WebClientErrorResponse,
)
from usp.web_client.requests_client import RequestsWebClient, RequestsWebClientSuccessResponse

pytestmark = pytest.mark.network

TEXT = b"some text, repeated. " * 1_000
PAGES = {
    "/plain": (200, {"Content-Type": "text/plain; charset=utf-8", "X-Foo": "Bar"}, TEXT),
    "/empty": (204, {}, b""),
    "/gzip": (200, {"Content-Encoding": "gzip"}, gzip.compress(TEXT)),
    "/deflate": (200, {"Content-Encoding": "deflate"}, zlib.compress(TEXT)),
    "/raw-deflate": (200, {"Content-Encoding": "deflate"}, zlib.compress(TEXT, wbits=-15)),
    "/not-gzip": (200, {"Content-Encoding": "gzip"}, TEXT),
    "/gzip-file": (200, {"Content-Encoding": "gzip"}, gzip.compress(gzip.compress(TEXT))),
    "/moved": (301, {"Location": "/plain"}, b""),
    "/loop": (302, {"Location": "/loop"}, b""),
    "/to-nowhere": (302, {"Location": "http://a..b/"}, b""),
    "/to-file": (302, {"Location": "file:///etc/passwd"}, b""),
    "/nowhere": (302, {}, b""),
    "/400": (400, {}, b""),
    "/429": (429, {}, b""),
    "/500": (500, {}, b""),
    "/304": (304, {}, b""),
}


@pytest.fixture(scope="module")
def site() -> Iterator[Server]:
    with serve(PAGES) as server:
        yield server


@pytest.fixture
def client() -> Iterator[RequestsWebClient]:
    client = RequestsWebClient()
    client.set_timeout(2)
    yield client
    client.close()


def success(client: RequestsWebClient, url: str) -> RequestsWebClientSuccessResponse:
    response = client.get(url)
    assert isinstance(response, RequestsWebClientSuccessResponse), vars(response)
    return response


def error(client: RequestsWebClient, url: str) -> WebClientErrorResponse:
    response = client.get(url)
    assert isinstance(response, WebClientErrorResponse)
    return response


def test_success(site: Server, client: RequestsWebClient) -> None:
    """A success has status, words, headers in any case, body and URL."""
    response = success(client, f"{site.url}/plain")
    assert (response.status_code(), response.status_message()) == (200, "OK")
    assert response.header("x-foo") == response.header("X-FOO") == "Bar"
    assert response.header("nosuch") is None
    assert response.raw_data() == TEXT
    assert response.url() == f"{site.url}/plain"


def test_redirects(site: Server, client: RequestsWebClient) -> None:
    """A response has the URL after redirects."""
    assert success(client, f"{site.url}/moved").url() == f"{site.url}/plain"


@pytest.mark.parametrize("path", ["/plain", "/gzip", "/deflate", "/raw-deflate", "/not-gzip"])
def test_transport_encodings(site: Server, client: RequestsWebClient, path: str) -> None:
    """`raw_data()` removes the transport encoding, even if the header is wrong."""
    assert success(client, site.url + path).raw_data() == TEXT


def test_gzipped_file_sent_gzipped(site: Server, client: RequestsWebClient) -> None:
    """Only the layer of the transport encoding is removed."""
    assert gzip.decompress(success(client, f"{site.url}/gzip-file").raw_data()) == TEXT


@pytest.mark.parametrize("path", ["/plain", "/gzip", "/deflate", "/raw-deflate", "/not-gzip", "/gzip-file"])
def test_encoded_bodies(site: Server, client: RequestsWebClient, path: str) -> None:
    """`encoded_data()` returns the body as it was transferred, not inflated; `raw_data()` inflates the same body."""
    response = success(client, site.url + path)
    assert response.encoded_data() == PAGES[path][2]
    assert response._data is None
    assert (response.raw_data() == TEXT) is (path != "/gzip-file")
    assert response.encoded_data() == PAGES[path][2]
    assert response.transport_problems() == ()


def test_limit_of_encoded_bodies(site: Server, client: RequestsWebClient) -> None:
    """`encoded_data()` is at most as long as the limit too, and problem T804 says that it was cut."""
    size = len(PAGES["/gzip"][2])
    for limit, problems in ((size, ()), (size - 1, ("T804",))):
        client.set_max_response_data_length(limit)
        response = success(client, f"{site.url}/gzip")
        assert response.encoded_data() == PAGES["/gzip"][2][:limit]
        assert response.transport_problems() == problems


def test_bodies_of_a_subclass(site: Server) -> None:
    """If a subclass overrides `raw_data()`, that body counts."""

    class Shouting(RequestsWebClientSuccessResponse):
        def raw_data(self) -> bytes:
            return super().raw_data().upper()

    response = Shouting(requests.get(f"{site.url}/gzip", stream=True, timeout=2))
    assert response.encoded_data() is None
    assert response.raw_data() == TEXT.upper()


@pytest.mark.parametrize("path", ["/plain", "/gzip", "/deflate", "/raw-deflate", "/not-gzip"])
def test_limit(site: Server, client: RequestsWebClient, path: str) -> None:
    """A body is at most as long as the limit, and whole without one."""
    client.set_max_response_data_length(7)
    assert success(client, site.url + path).raw_data() == TEXT[:7]
    client.set_max_response_data_length(None)
    assert success(client, site.url + path).raw_data() == TEXT


def test_whose_limit(site: Server, client: RequestsWebClient) -> None:
    """A limit that the caller has set stays; 0 means no limit."""
    client.limit_response_data_length(5)
    assert success(client, f"{site.url}/plain").raw_data() == TEXT[:5]
    client.set_max_response_data_length(0)
    client.limit_response_data_length(5)
    assert success(client, f"{site.url}/plain").raw_data() == TEXT


@pytest.mark.parametrize("timeout", [0, -1, "x", (1, 2, 3), (0, 1)])
def test_nonsensical_timeouts(client: RequestsWebClient, timeout: float) -> None:
    """A timeout that makes no sense is an error when you set it."""
    with pytest.raises(InvalidArgumentError, match="timeout must be"):
        client.set_timeout(timeout)


@pytest.mark.parametrize(
    ("path", "message", "status", "retryable"),
    [
        ("/404", "404 Not Found", 404, False),
        ("/400", "400 Bad Request", 400, True),
        ("/429", "429 Too Many Requests", 429, True),
        ("/500", "500 Internal Server Error", 500, True),
        ("/304", "304 Not Modified", 304, False),
        ("/nowhere", "302 Found", 302, False),
        ("/loop", "redirects in a loop", None, False),
        ("/to-file", "redirects to file:///etc/passwd", None, False),
        ("/to-nowhere", "", None, False),
    ],
)
def test_errors(
    site: Server, client: RequestsWebClient, path: str, message: str, status: int | None, retryable: bool
) -> None:
    """An error has a message, its status, and says whether to try again."""
    response = error(client, site.url + path)
    assert response.message().startswith(message)
    assert response.status_code() == status
    assert response.retryable() is retryable


@pytest.mark.parametrize(
    "url", ["", "nonsense", "ftp://127.0.0.1/", "http://", "http://[bad/", "http://127.0.0.1:99999/"]
)
def test_bad_urls(client: RequestsWebClient, url: str) -> None:
    """A malformed URL is an error response; nothing is raised."""
    assert error(client, url).retryable() is False


def test_refused(client: RequestsWebClient) -> None:
    """A refused connection is an error worth a retry."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        response = error(client, f"http://127.0.0.1:{port}/")
    assert response.retryable() is True
    assert response.status_code() is None
    assert response.message() == "connection refused"


@contextmanager
def raw_server(answer: bytes, hold_open: bool) -> Iterator[str]:
    """A server that sends these bytes to whoever connects, and then holds the connection open or closes it."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)

        def run() -> None:
            held = []
            while not stop.is_set():
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    continue
                connection.recv(65_536)
                connection.sendall(answer)
                held.append(connection)
                if not hold_open:
                    connection.close()
            for connection in held:
                connection.close()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            stop.set()
            thread.join()


@pytest.mark.parametrize(
    "answer",
    [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this"],
    ids=["no answer", "half an answer"],
)
def test_timeout(client: RequestsWebClient, answer: bytes) -> None:
    """A server that falls silent, before or inside the body, is an error worth a retry."""
    client.set_timeout((1, 0.2))
    with raw_server(answer, hold_open=True) as url, within(2):
        response = error(client, url)
    assert response.retryable() is True


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nbroken\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nx",
        b"HTTP/1.1 302 Found\r\nLocation: http://[bad/\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X-Header: y\r\n" * 200,
    ],
    ids=["closed", "no HTTP", "broken chunks", "broken length", "broken redirect", "endless headers"],
)
def test_broken_servers(client: RequestsWebClient, answer: bytes) -> None:
    """Whatever a server sends, `get` returns a response and raises nothing."""
    with raw_server(answer, hold_open=False) as url:
        response = client.get(url)
    assert isinstance(response, (WebClientErrorResponse, RequestsWebClientSuccessResponse))


def test_transfer_cut_short(client: RequestsWebClient) -> None:
    """A body that is shorter than announced is an error worth a retry."""
    with raw_server(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this", hold_open=False) as url:
        response = error(client, url)
    assert "cut off" in response.message()
    assert response.retryable() is True


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_bodies_of_redirects_are_not_read(site: Server, client: RequestsWebClient, encoding: str) -> None:
    """The body of a redirect costs nothing, however large it is, or would be if inflated."""
    body = b"a" * 50_000_000
    body = gzip.compress(body) if encoding == "gzip" else body
    site.pages["/large-redirect"] = (302, {"Location": "/plain", "Content-Encoding": encoding}, body)
    tracemalloc.start()
    try:
        assert success(client, f"{site.url}/large-redirect").raw_data() == TEXT
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * len(body) + 5_000_000  # the server's own copies; inflated it would be far more


def test_redirects_keep_the_connection(site: Server, client: RequestsWebClient) -> None:
    """After a redirect with a small body, the connection is reused."""
    site.pages["/small-redirect"] = (302, {"Location": "/plain"}, b"moved")
    site.connections.clear()
    for _ in range(3):
        success(client, f"{site.url}/small-redirect")
    assert len(site.connections) == 1


def test_reading_stops_at_the_limit(client: RequestsWebClient) -> None:
    """A body without end is read up to the limit, never whole."""
    stop = threading.Event()
    sent = 0
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            nonlocal sent
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
                while not stop.is_set():
                    try:
                        sent += connection.send(b"x" * 65_536)
                    except OSError:
                        return

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        client.set_max_response_data_length(1_000_000)
        data = success(client, f"http://127.0.0.1:{listener.getsockname()[1]}/").raw_data()
        stop.set()
        thread.join()
    assert data == b"x" * 1_000_000
    assert sent < 50_000_000


def test_headers(site: Server, client: RequestsWebClient) -> None:
    """Requests have the user agent, and accept gzip and deflate only."""
    site.requests.clear()
    client.get(f"{site.url}/plain")
    ((_, headers),) = site.requests
    assert headers["User-Agent"] == f"ultimate_sitemap_parser/{__version__}"
    assert headers["Accept-Encoding"] == "gzip, deflate"


def test_session_of_the_caller(site: Server) -> None:
    """The client uses the caller's session, with its headers."""
    with requests.Session() as session:
        session.headers["X-Mine"] = "yes"
        RequestsWebClient(session=session).get(f"{site.url}/plain")
    assert site.requests[-1][1]["X-Mine"] == "yes"


def test_proxies(site: Server, client: RequestsWebClient) -> None:
    """A proxy gets the whole URL."""
    client.set_proxies({"http": site.url})
    assert error(client, "http://unreachable.example/x").message() == "404 Not Found"
    assert site.paths()[-1] == "http://unreachable.example/x"


def test_waiting() -> None:
    """The waiter waits between requests, not before the first; for a random time with `random_wait`."""
    for random_wait in (False, True):
        waiter = RequestWaiter(0.1, random_wait)
        with within(0.3, least=0.045):
            with within(0.03):
                waiter.wait()
            waiter.wait()
    for none in (RequestWaiter(), RequestWaiter(None, False), RequestWaiter(0)):
        with within(0.03):
            none.wait()
            none.wait()
    for nonsense in (-1, "x"):
        with pytest.raises(InvalidArgumentError, match="0 or more"):
            RequestWaiter(nonsense)  # type: ignore[arg-type]


def test_local_client() -> None:
    """The local client fetches nothing; its response is a text."""
    client = LocalWebClient()
    client.set_max_response_data_length(5)
    with pytest.raises(NoWebClientException, match="http://h/"):
        client.get("http://h/")
    response = LocalWebClientSuccessResponse("http://h/", "é")
    assert (response.status_code(), response.status_message(), response.url()) == (200, "OK", "http://h/")
    assert (response.raw_data(), response.header("Content-Type")) == ("é".encode(), None)
