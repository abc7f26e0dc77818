"""Both clients, against real sockets on loopback: each rule holds for either."""

from __future__ import annotations

import email.utils
import gc
import gzip
import time
import weakref
import zlib
from collections.abc import Iterator

import pytest

from clocks import within
from sockets import CLIENTS, Make, Peer, answering, error, making, resolving, success, talk
from support import Server, serve
from usp.exceptions import InvalidArgumentError
from usp.limits import Limits
from usp.version import __version__
from usp.web_client.policy import RequestPolicy, applying

pytestmark = pytest.mark.network

TEXT = b"some text, repeated. " * 1_000
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
PAGES = {
    "/plain": (200, {"Content-Type": "text/plain; charset=utf-8", "X-Foo": "Bar"}, TEXT),
    "/empty": (204, {}, b""),
    "/gzip": (200, {"Content-Encoding": "gzip"}, gzip.compress(TEXT)),
    "/deflate": (200, {"Content-Encoding": "deflate"}, zlib.compress(TEXT)),
    "/raw-deflate": (200, {"Content-Encoding": "deflate"}, zlib.compress(TEXT, wbits=-15)),
    "/not-gzip": (200, {"Content-Encoding": "gzip"}, TEXT),
    "/moved": (301, {"Location": "/plain"}, b"over there"),
    "/one": (302, {"Location": "/two"}, b""),
    "/two": (303, {"Location": "three"}, b""),
    "/three": (307, {"Location": "{base}/four"}, b""),
    "/four": (308, {"Location": "/fi/../five?a=b#c"}, b""),
    "/five?a=b": (301, {"Location": "/plain"}, b""),
    "/zero": (301, {"Location": "/one"}, b""),
    "/loop": (302, {"Location": "/loop"}, b""),
    "/back": (302, {"Location": "/forth"}, b""),
    "/forth": (302, {"Location": "/back"}, b""),
    "/to-nowhere": (302, {"Location": "http://a..b/"}, b""),
    "/to-nonsense": (302, {"Location": "http://[bad/"}, b""),
    "/to-file": (302, {"Location": "file:///etc/passwd"}, b""),
    "/nowhere": (302, {}, b""),
    "/400": (400, {}, b""),
    "/429": (429, {"Retry-After": "7"}, b"slowly"),
    "/500": (500, {}, b""),
    "/304": (304, {}, b""),
    "/299": (299, {}, b"x"),
}


@pytest.fixture(scope="module")
def site() -> Iterator[Server]:
    with serve(PAGES) as server:
        yield server


@pytest.fixture(params=list(CLIENTS))
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    with making(request.param) as make:
        yield make


def test_success(site: Server, make: Make) -> None:
    """A success has status, words, headers in any case, body and URL."""
    response = success(make().get(f"{site.url}/plain#here"))
    assert (response.status_code(), response.status_message()) == (200, "OK")
    assert response.header("x-foo") == response.header("X-FOO") == "Bar"
    assert response.header("nosuch") is None
    assert response.raw_data() == response.encoded_data() == TEXT
    assert response.url() == f"{site.url}/plain"
    assert response.transport_problems() == ()


def test_bodies_do_not_wait_for_the_garbage_collector(site: Server, make: Make) -> None:
    """A success is in no reference cycle: its body is freed when you drop it."""
    client = make()
    gc.disable()
    try:
        dropped = weakref.ref(success(client.get(f"{site.url}/plain")))
        assert dropped() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("path", ["/empty", "/299"])
def test_other_successes(site: Server, make: Make, path: str) -> None:
    """Success is any status from 200 to 299."""
    assert success(make().get(site.url + path)).raw_data() == PAGES[path][2]


@pytest.mark.parametrize("path", ["/gzip", "/deflate", "/raw-deflate", "/not-gzip"])
def test_transport_encodings(site: Server, make: Make, path: str) -> None:
    """A client returns a body as it was transferred, or without its transport encoding, even if the header is wrong."""
    response = success(make().get(site.url + path))
    assert response.encoded_data() == PAGES[path][2]
    assert response.raw_data() == TEXT


def test_limit(site: Server, make: Make) -> None:
    """A body is at most as long as the limit; a limit that the caller sets takes precedence."""
    client = make()
    client.client.limit_response_data_length(7)
    response = success(client.get(f"{site.url}/plain"))
    assert (response.encoded_data(), response.transport_problems()) == (TEXT[:7], ("T804",))
    client.client.set_max_response_data_length(None)
    client.client.limit_response_data_length(7)
    assert success(client.get(f"{site.url}/plain")).encoded_data() == TEXT


def test_limit_of_a_body_without_end(make: Make) -> None:
    """A body without end is read up to the limit, never whole."""
    client = make()
    client.client.limit_response_data_length(1_000_000)
    with talk(answering(b"HTTP/1.1 200 OK\r\n\r\n", then=lambda peer: peer.drip(b"x" * 65_536, 0))) as server:
        assert success(client.get(server.url)).encoded_data() == b"x" * 1_000_000


@pytest.mark.parametrize(
    ("path", "message", "status", "retryable"),
    [
        ("/404", "404 Not Found", 404, False),
        ("/400", "400 Bad Request", 400, True),
        ("/429", "429 Too Many Requests", 429, True),
        ("/500", "500 Internal Server Error", 500, True),
        ("/304", "304 Not Modified", 304, False),
        ("/nowhere", "302 Found: it redirects without saying where", 302, False),
        ("/loop", "redirects in a loop, to {base}/loop", None, False),
        ("/back", "redirects in a loop, to {base}/back", None, False),
        ("/zero", "redirected more than 5 times", None, False),
        ("/to-file", "redirects to file:///etc/passwd: file is not http or https", None, False),
        ("/to-nowhere", "redirects to http://a..b/: its host name is not valid", None, False),
        ("/to-nonsense", "redirects to http://[bad/, which is not a URL", None, False),
    ],
)
def test_errors(site: Server, make: Make, path: str, message: str, status: int | None, retryable: bool) -> None:
    """An error has a message, its status, and says whether to try again."""
    response = error(make().get(site.url + path))
    assert response.message() == message.replace("{base}", site.url)
    assert (response.status_code(), response.retryable(), response.partial()) == (status, retryable, None)


def test_redirects(site: Server, make: Make) -> None:
    """Five redirects are followed, to URLs in any form, and the answer's URL is the last one."""
    site.requests.clear()
    assert success(make().get(f"{site.url}/one")).url() == f"{site.url}/plain"
    assert site.paths() == ["/one", "/two", "/three", "/four", "/five?a=b", "/plain"]
    response = make().get(f"{site.url}/moved", RequestPolicy(site.url, Limits(max_redirects=0)))
    assert error(response).message() == "redirected more than 0 times"


def test_two_locations(site: Server, make: Make) -> None:
    """Of two Location headers, the first one counts."""
    moved = b"HTTP/1.1 302 Found\r\nLocation: %s/plain\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n"
    with talk(answering(moved % site.url.encode())) as server:
        assert success(make().get(server.url)).url() == f"{site.url}/plain"


def test_loops_are_noticed_at_once(site: Server, make: Make) -> None:
    """A loop of redirects costs one request for each of its URLs."""
    site.requests.clear()
    make().get(f"{site.url}/back")
    assert site.paths() == ["/back", "/forth"]


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/é ü?ö".encode(), "/%C3%A9%20%C3%BC?%C3%B6"),
        (b"/\xe9", "/%E9"),
        (b"  /x[1]|%zz%e9\t ", "/x[1]%7C%zz%e9"),
        (b"?only=query", "/start?only=query"),
    ],
)
def test_odd_locations(make: Make, location: bytes, path: str) -> None:
    """Characters that a URL may not have are encoded, others are left alone: both clients request the same bytes."""
    seen = []

    def handle(peer: Peer) -> None:
        while head := peer.head():
            seen.append(head.split()[1].decode())
            moved = b"HTTP/1.1 302 Found\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % location
            peer.send(moved if seen[-1] == "/start" else OK)

    with talk(handle) as server:
        response = success(make().get(server.url + "start"))
    assert seen == ["/start", path]
    assert response.url() == server.url + path[1:]


def test_bodies_of_redirects(site: Server, make: Make) -> None:
    """The small body of an error or redirect is read, so its connection is reused."""
    client = make()
    site.connections.clear()
    for _ in range(3):
        client.get(f"{site.url}/moved")
        client.get(f"{site.url}/404")
    assert len(site.connections) == 1


@pytest.mark.parametrize(
    "body",
    [b"Content-Length: 1000000000\r\n\r\n", b"\r\n", b"Content-Length: 1000\r\n\r\n"],
    ids=["large", "endless", "slow"],
)
def test_other_bodies_of_redirects(make: Make, body: bytes) -> None:
    """A client does not wait for a redirect's body that is large, endless or slow."""

    def handle(peer: Peer) -> None:
        if b"/there" in peer.head():
            peer.send(OK)
        else:
            peer.send(b"HTTP/1.1 302 Found\r\nLocation: /there\r\n" + body)
            peer.drip(b"x")

    with talk(handle) as server, within(1.5):
        assert success(make().get(server.url)).url().endswith("/there")


def cookie_wall(peer: Peer) -> None:
    while head := peer.head():
        if b"Cookie: a=1; b=2" in head or b"/free" in head:
            peer.send(OK)
        else:
            cookies = b"Set-Cookie: a=1; Path=/; HttpOnly\r\nSet-Cookie: b=2\r\nSet-Cookie: nonsense\r\n"
            where = head.split()[1]
            peer.send(b"HTTP/1.1 302 Found\r\nLocation: %b\r\n%bContent-Length: 0\r\n\r\n" % (where, cookies))


def test_cookie_walls(make: Make) -> None:
    """A cookie that a redirect sets is sent where it leads, and then forgotten."""
    client = make()
    with talk(cookie_wall) as server:
        for _ in range(2):
            assert success(client.get(server.url)).raw_data() == b"ok"
    heads = []

    def handle(peer: Peer) -> None:
        while head := peer.head():
            heads.append(head)
            peer.send(OK.replace(b"\r\n\r\n", b"\r\nSet-Cookie: c=3\r\n\r\n"))

    with talk(handle) as server:
        for _ in range(2):
            success(client.get(server.url))
    assert not any(b"cookie" in head.lower() for head in heads)


def test_cookies_stay_at_their_origin(make: Make) -> None:
    """A cookie does not go to another port."""
    heads = []

    def handle(peer: Peer) -> None:
        heads.append(peer.head())
        peer.send(OK)

    with talk(handle) as other:
        moved = b"HTTP/1.1 302 Found\r\nSet-Cookie: a=1\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n"
        with talk(answering(moved % other.url.encode())) as server:
            success(make().get(server.url))
    assert len(heads) == 1
    assert b"cookie" not in heads[0].lower()


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [
        ("7", 7, 7),
        (" 0 ", 0, 0),
        ("-5", 0, 0),
        ("9" * 300, 1e9, 1e9),
        ("in 100 seconds", 50, 101),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0),
        ("soon", None, None),
        ("\N{ARABIC-INDIC DIGIT SEVEN}".encode().decode("latin-1"), None, None),
        ("", None, None),
    ],
)
def test_retry_after(site: Server, make: Make, value: str, least: float | None, most: float | None) -> None:
    """`retry_after()` returns seconds, from a number or a date; nonsense is ignored."""
    if value == "in 100 seconds":
        value = email.utils.formatdate(time.time() + 100, usegmt=True)
    site.pages["/busy"] = (503, {"Retry-After": value}, b"")
    seconds = error(make().get(f"{site.url}/busy")).retry_after()
    if least is None or most is None:
        assert seconds is None
    else:
        assert seconds is not None
        assert least <= seconds <= most


def test_headers(site: Server, make: Make) -> None:
    """Requests have the user agent, accept gzip and deflate only, and have the same headers with either client."""
    site.requests.clear()
    client = make()
    client.get(f"{site.url}/plain")
    expected = {
        "User-Agent": f"ultimate_sitemap_parser/{__version__}",
        "Accept-Encoding": "gzip, deflate",
        "Accept": "*/*",
    }
    ((_, headers),) = site.requests
    assert headers == expected | {"Host": site.url.removeprefix("http://")}
    assert client.client.user_agent == expected["User-Agent"]
    named = make(user_agent="me", headers={"X-Mine": "yes", "accept": "text/xml"})
    named.get(f"{site.url}/plain")
    headers = site.requests[-1][1]
    assert (headers["User-Agent"], headers["X-Mine"], headers["accept"]) == ("me", "yes", "text/xml")
    assert "Accept" not in headers
    assert named.client.user_agent == "me"


@pytest.mark.parametrize(
    "options", [{"user_agent": "a\r\nb"}, {"headers": {"X": "a\nb"}}, {"headers": {"a b": "c"}}, {"headers": {"X": 1}}]
)
def test_nonsensical_headers(make: Make, options: dict[str, object]) -> None:
    """A header that cannot be sent is an error when you make the client."""
    with pytest.raises(InvalidArgumentError, match="headers"):
        make(**options)


@pytest.mark.parametrize("headers", ["a: b", ["a: b"], 1])
def test_headers_that_are_no_mapping(make: Make, headers: object) -> None:
    """Headers that are not a mapping are an error when you make the client."""
    with pytest.raises(InvalidArgumentError, match="headers must be a mapping"):
        make(headers=headers)


@pytest.mark.parametrize("verify", ["", 0, None, 1, b"x", ()])
def test_nonsensical_verification(make: Make, verify: object) -> None:
    """Only False turns the verification of certificates off; an empty value is an error."""
    with pytest.raises(InvalidArgumentError, match="verify must be"):
        make(verify=verify)


def test_credentials_in_urls(site: Server, make: Make) -> None:
    """A user and a password in a URL are sent as an Authorization header."""
    site.requests.clear()
    url = f"{site.url}/plain".replace("//", "//me%40here:s%C3%A9cret@")
    assert success(make().get(url)).url() == url
    assert site.requests[0][1]["Authorization"] == "Basic bWVAaGVyZTpzw6ljcmV0"
    make().get(url.replace("/plain", "/three"))
    assert [path for path, headers in site.requests if "Authorization" in headers] == [
        *("/plain", "/three", "/four", "/five?a=b", "/plain")
    ]


def test_proxy_of_the_environment(site: Server, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment's proxy is used, with the whole URL, for all hosts except those in no_proxy."""
    monkeypatch.setenv("http_proxy", site.url)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    client = make(_resolve=resolving({}))
    assert error(client.get("http://unreachable.example/x?é")).message() == "404 Not Found"
    assert site.paths()[-1] == "http://unreachable.example/x?%C3%A9"
    assert error(client.get("http://127.0.0.1:1/")).message() == "connection refused"


def test_trees_with_different_limits(site: Server, make: Make) -> None:
    """Each tree has its own size limit, even if two trees share a client."""
    client = make()
    first, second = (RequestPolicy(site.url, Limits(max_sitemap_bytes=most)) for most in (5, 10_000_000))
    with applying(first):
        assert success(client.get(f"{site.url}/plain")).raw_data() == TEXT[:5]
    with applying(second):
        assert success(client.get(f"{site.url}/plain")).raw_data() == TEXT
