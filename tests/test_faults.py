"""What a server can do wrong, one by one: each costs one sitemap at most, in time, by both drivers."""

from __future__ import annotations

import gc
import re
import socket
import ssl
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from shutil import which

import pytest

from faults import (
    BAD,
    QUICK,
    START,
    WHOLE,
    Driver,
    Handler,
    HangUp,
    Request,
    bad_one,
    described,
    each_driver,
    good_site,
    head,
    nothing_left,
    ok,
    once,
    reset,
    serve_faults,
    silent,
    status,
    visit,
)
from support import urlset
from usp.limits import Limits
from usp.objects.sitemap import InvalidSitemap

pytestmark = pytest.mark.network

LIMITS = Limits(request_seconds=0.3, tree_seconds=10, max_sitemap_bytes=1_000_000)


def reset_at_once(request: Request) -> None:
    reset(request)


def reset_in_body(request: Request) -> None:
    request.send(head(Content_Length=10_000) + START)
    request.pause(0.05)  # what was sent arrives before the reset does
    reset(request)


def silent_in_body(request: Request) -> None:
    request.send(head(Content_Length=10_000) + START)
    request.pause()


def drip(request: Request) -> None:
    request.send(head(Content_Length=10_000) + START)
    while True:
        request.send(b" ")
        request.pause(0.02)


def drip_headers(request: Request) -> None:
    request.send(b"HTTP/1.1 200 OK\r\nX-Dripping: ")
    while True:
        request.send(b"x")
        request.pause(0.02)


def endless_headers(request: Request) -> None:
    request.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        request.send(b"".join(b"X-%d: y\r\n" % number for number in range(1_000)))


def endless_header(request: Request) -> None:
    request.send(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while True:
        request.send(b"y" * 65_536)


def endless_status_line(request: Request) -> None:
    while True:
        request.send(b"HTTP/1.1 200 " + b"O" * 65_536)


def endless_body(request: Request) -> None:
    request.send(head(Connection="close") + START)
    while True:
        request.send(b" " * 65_536)


def endless_chunks(request: Request) -> None:
    request.send(head(Transfer_Encoding="chunked") + b"%x\r\n" % len(START) + START + b"\r\n")
    while True:
        request.send(b"10000\r\n" + b" " * 65_536 + b"\r\n")


def endless_chunk_size(request: Request) -> None:
    request.send(head(Transfer_Encoding="chunked"))
    while True:
        request.send(b"0" * 65_536)


def length_too_long(request: Request) -> None:
    request.send(head(Content_Length=10_000) + START)
    raise HangUp


def length_too_short(request: Request) -> None:
    """Bytes after a body must not become the answer to the next request on the connection."""
    request.send(head(Content_Length=len(START)) + START + ok_bytes(urlset("http://x/smuggled")))


def length_of_nonsense(request: Request) -> None:
    request.send(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n" + WHOLE)
    raise HangUp


def chunks_broken(request: Request) -> None:
    request.send(head(Transfer_Encoding="chunked") + b"%x\r\n" % len(START) + START + b"\r\n")
    request.pause(0.05)
    request.send(b"zz\r\n</urlset>")
    raise HangUp


def chunks_without_end(request: Request) -> None:
    request.send(head(Transfer_Encoding="chunked") + b"%x\r\n" % len(START) + START + b"\r\n")
    raise HangUp


def no_http(request: Request) -> None:
    request.send(b"\x00\xffSSH-2.0-OpenSSH\r\n\r\n" + WHOLE)
    raise HangUp


def hang_up(request: Request) -> None:
    raise HangUp


def fresh_redirects(request: Request) -> None:
    status(302, Location=f"{BAD}?{request.server.accepted}-{len(request.server.asked)}")(request)


def ok_bytes(text: str) -> bytes:
    return head(Content_Length=len(text)) + text.encode()


@dataclass(frozen=True)
class Fault:
    """What a server does, and what the sitemap's reason says."""

    handler: Handler
    says: str
    tries: int = 2  # how often it is asked for

    @property
    def name(self) -> str:
        return self.handler.__name__


FAULTS = [
    Fault(reset_at_once, "the connection was closed"),
    Fault(hang_up, "the connection was closed"),
    Fault(reset_in_body, "1 pages T805 X113"),
    Fault(silent, "no answer within"),
    Fault(silent_in_body, "1 pages T805 X113"),
    Fault(drip, "1 pages T805 X113"),
    Fault(drip_headers, "no answer within"),
    Fault(endless_headers, "header", tries=0),
    Fault(endless_header, "header|line|more than", tries=0),
    Fault(endless_status_line, "line|status|more than", tries=0),
    Fault(endless_body, "1 pages T804", tries=1),
    Fault(endless_chunks, "1 pages T804", tries=1),
    Fault(endless_chunk_size, "cut off|no complete answer within", tries=0),
    Fault(length_too_long, "1 pages T805 X113"),
    Fault(length_too_short, "1 pages X113", tries=1),
    Fault(length_of_nonsense, "1 pages|[Ll]ength", tries=0),
    Fault(chunks_broken, "1 pages T805 X113"),
    Fault(chunks_without_end, "1 pages T805 X113"),
    Fault(no_http, "HTTP|status line", tries=0),
]


@each_driver
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault(driver: Driver, fault: Fault) -> None:
    """A broken answer costs its own sitemap at most; the reason says why, and what has arrived of the body is kept."""
    found = visit(driver, fault.handler, politeness=QUICK, limits=LIMITS, seconds=3)
    assert re.search(fault.says, described(found.sitemap)), described(found.sitemap)
    assert described(found.sitemap).isprintable()
    if not isinstance(found.sitemap, InvalidSitemap) and found.sitemap.transport is not None:
        assert found.sitemap.transport.is_whole == (re.search("T80[45]", fault.says) is None)
    if fault.tries and driver.name == "threads":
        assert found.server.count(BAD) == fault.tries
    elif fault.tries:  # where a kept connection is found closed, the request is made on another one at once
        assert fault.tries <= found.server.count(BAD) <= 2 * fault.tries
    assert "smuggled" not in str([page.url for page in found.tree.all_pages()])


ANSWERS: list[tuple[str, Handler, str]] = [
    ("304", status(304), "304"),
    ("206", status(206, WHOLE, Content_Range=f"bytes 0-{len(WHOLE) - 1}/{len(WHOLE)}"), "1 pages$|206"),
    ("204", status(204), "204|empty"),
    ("empty 200", ok(b""), "empty"),
    ("html", ok("<html><body>Please enable JavaScript</body></html>"), "html"),
    ("redirect without a place", status(302), "302"),
    ("redirect to itself", status(302, Location=BAD), "redirect"),
    ("redirects without end", fresh_redirects, "redirect"),
    ("redirect to a file", status(302, Location="file:///etc/passwd"), "file"),
    ("redirect to ftp", status(302, Location="ftp://127.0.0.1/x"), "ftp"),
    ("redirect to nonsense", status(302, Location="http://[bad/"), "URL|redirect"),
    ("redirect to the parent", status(302, Location="/index.xml"), "Recursion detected"),
    ("redirect to a missing page", status(302, Location="/missing.xml"), "404"),
    ("redirect to a good sitemap", status(301, Location="/behind.txt"), "1 pages$"),
]


@each_driver
@pytest.mark.parametrize(("handler", "says"), [answer[1:] for answer in ANSWERS], ids=[name for name, *_ in ANSWERS])
def test_answer_of_no_use(driver: Driver, handler: Handler, says: str) -> None:
    """An answer that is not a sitemap is not retried, and its reason says what it is."""
    found = visit(driver, handler, limits=LIMITS)
    assert re.search(says, described(found.sitemap)), described(found.sitemap)
    assert found.server.count(BAD) <= 1 + LIMITS.max_redirects


@each_driver
def test_refused_connection(driver: Driver) -> None:
    """A refused connection costs one sitemap."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        found = visit(driver, bad=f"http://127.0.0.1:{unused.getsockname()[1]}/bad.xml", politeness=QUICK)
    assert re.search("refused", found.reason, re.IGNORECASE)


@each_driver
def test_unknown_name(driver: Driver) -> None:
    """A host name that does not resolve costs one sitemap, whichever error the resolver raises."""
    found = visit(driver, bad="http://nowhere.invalid/bad.xml", politeness=QUICK, seconds=10)
    assert re.search("no such host|lookup failed|no answer within", found.reason), found.reason


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    openssl = which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl to make a certificate with")
    folder: Path = tmp_path_factory.mktemp("certificate")
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{folder}/key.pem", "-out", f"{folder}/it.pem"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "it.pem", folder / "key.pem")
    return context


@each_driver
def test_certificate_of_nobody(driver: Driver, certificate: ssl.SSLContext) -> None:
    """A self-signed certificate is refused, and nothing is requested."""
    with serve_faults({"/bad.xml": ok(WHOLE)}, context=certificate) as other:
        found = visit(driver, bad=f"{other.url}/bad.xml", politeness=QUICK, beside=[other])
    assert re.search("certificate", found.reason, re.IGNORECASE), found.reason
    assert other.asked == []


@each_driver
def test_plain_http_at_a_port_of_tls(driver: Driver) -> None:
    """A server that sends plain HTTP instead of TLS costs one sitemap."""
    with serve_faults({}) as other:
        bad = other.url.replace("http:", "https:") + "/bad.xml"
        found = visit(driver, bad=bad, politeness=QUICK, limits=LIMITS, beside=[other])
    assert re.search("TLS", found.reason), found.reason
    assert other.asked == []


def hear_and_hang_up(request: Request) -> None:
    request.connection.recv(65_536)
    raise HangUp


@each_driver
@pytest.mark.parametrize("greet", [hang_up, hear_and_hang_up, reset_at_once, silent], ids=lambda f: f.__name__)
def test_no_tls_at_all(driver: Driver, greet: Handler) -> None:
    """A TLS handshake that breaks off is retried, and the sitemap's reason says what happened."""
    with serve_faults({}, greet=greet) as other:
        bad = other.url.replace("http:", "https:") + "/bad.xml"
        found = visit(driver, bad=bad, politeness=QUICK, limits=LIMITS, beside=[other])
    assert re.search("the connection was closed|no answer within", found.reason), found.reason
    assert other.accepted == 2


@each_driver
@pytest.mark.parametrize("way", ["listed", "redirected"])
@pytest.mark.parametrize("host", ["127.0.0.2", "localhost", "2130706434", "[::ffff:127.0.0.2]"])
def test_another_private_host(driver: Driver, host: str, way: str) -> None:
    """A tree does not connect to a private host, however it is written, unless it is the homepage's own."""
    with serve_faults({"/bad.xml": ok(WHOLE)}, host="127.0.0.1" if host == "localhost" else "127.0.0.2") as other:
        target = f"http://{host}:{other.url.rpartition(':')[2]}/bad.xml"
        listed = way == "listed"
        found = visit(driver, bad=target) if listed else visit(driver, status(302, Location=target))
    assert "not a public address" in found.reason
    assert other.accepted == 0


@each_driver
def test_a_name_that_changes_its_address(driver: Driver) -> None:
    """A tree connects to a private homepage at the address that it had at first, and at no other."""
    addresses = iter(["127.0.0.1"])

    def resolve(host: str, port: int) -> list[tuple[object, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (next(addresses, "127.0.0.2"), port))]

    with serve_faults({"/bad.xml": ok(WHOLE)}, host="127.0.0.2") as other:
        bad = f"http://home.test:{other.url.rpartition(':')[2]}/bad.xml"
        with serve_faults(good_site(bad)) as server, nothing_left(server, other):
            server.url = server.url.replace("127.0.0.1", "home.test")
            tree = driver.tree(server.url, concurrency=1, web_client=driver.client(_resolve=resolve))
    assert "not a public address" in described(bad_one(tree))
    assert (server.accepted, other.accepted) == (1, 0)


@each_driver
@pytest.mark.parametrize(
    "first", [status(500), status(503), reset_in_body, length_too_long, hang_up, silent], ids=lambda f: f.__name__
)
def test_fine_at_the_second_try(driver: Driver, first: Handler) -> None:
    """A request that fails once and then succeeds leaves no trace."""
    found = visit(driver, once(first), limits=LIMITS)
    assert described(found.sitemap) == "1 pages"
    assert found.server.count(BAD) == 2


@each_driver
@pytest.mark.parametrize("handler", [reset_at_once, hang_up, silent, no_http, ok(WHOLE)], ids=lambda f: f.__name__)
def test_closed_at_once(driver: Driver, handler: Handler) -> None:
    """Connections are closed with the client, not by the garbage collector."""
    gc.disable()
    try:
        with serve_faults(good_site() | {BAD: handler}) as server, nothing_left(server, collects=False, seconds=1.0):
            driver.tree(server.url, politeness=QUICK, limits=LIMITS)
    finally:
        gc.enable()


def test_the_leak_check_sees_leaks() -> None:
    """The check for leftovers fails for an open socket and for a running thread."""
    with pytest.raises(AssertionError, match="socket"), nothing_left(seconds=0.05):
        left = socket.socket()
    left.close()
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    with pytest.raises(AssertionError, match="Thread"), nothing_left(seconds=0.05):
        thread.start()
    stop.set()
    thread.join()
