"""Answers that lie about their length, parts of a document, and bytes that answer no request."""

from __future__ import annotations

import gzip
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clocks import within
from faults import Driver, HangUp, Request, each_driver, reset, visit
from sockets import CLIENTS, Make, Peer, making, self_signed, server_context, success, talk
from support import SITEMAP_XMLNS
from usp.limits import Limits
from usp.politeness import Politeness
from usp.web_client.framing import end_of_head, is_interim, is_whole_range, repaired_head

pytestmark = pytest.mark.network

PAGES = b"".join(b"<url><loc>http://x/%d</loc></url>" % number for number in range(2_000))
WHOLE = f"<urlset {SITEMAP_XMLNS}>".encode() + PAGES + b"</urlset>"
SIZE = len(WHOLE)
CHUNKS = b"%x\r\n%s\r\n" % (SIZE, WHOLE)
QUICK = Politeness(retry_seconds=0.01, tries=2)

# How the length is stated, what follows the head, and the problems that the sitemap has.
LIES = {
    "as it is": (b"Content-Length: %d" % SIZE, WHOLE, ""),
    "too long": (b"Content-Length: 9999999", WHOLE, "T805"),
    "far too long": (b"Content-Length: 99999999999999999999999999", WHOLE, "T805"),
    "negative": (b"Content-Length: -5", WHOLE, ""),
    "with a plus": (b"Content-Length: +%d" % SIZE, WHOLE, ""),
    "no number": (b"Content-Length: many", WHOLE, ""),
    "with a fraction": (b"Content-Length: %d.0" % SIZE, WHOLE, ""),
    "empty": (b"Content-Length:", WHOLE, ""),
    "twice": (b"Content-Length: %d\r\nContent-Length: %d" % (SIZE, SIZE), WHOLE, ""),
    "twice in one": (b"Content-Length: %d, %d" % (SIZE, SIZE), WHOLE, ""),
    "beside an empty one": (b"Content-Length:\r\nContent-Length: %d" % SIZE, WHOLE, ""),
    "beside identity": (b"Content-Length: %d\r\nTransfer-Encoding: identity" % SIZE, WHOLE, ""),
    "beside chunks": (b"Content-Length: 5\r\nTransfer-Encoding: chunked", CHUNKS + b"0\r\n\r\n", ""),
    "chunks without an end": (b"Transfer-Encoding: chunked", CHUNKS, "T805"),
    "a chunk that is cut": (b"Transfer-Encoding: chunked", b"%x\r\n%s" % (SIZE + 999, WHOLE), "T805"),
    "a chunk of no size": (b"Transfer-Encoding: chunked", CHUNKS + b"zz\r\nabc\r\n", "T805"),
    "none": (b"Content-Type: application/xml", WHOLE, ""),
}


@each_driver
@pytest.mark.parametrize("piece", [SIZE * 2, 7], ids=["at once", "in pieces"])
@pytest.mark.parametrize("lie", LIES)
def test_a_wrong_length(driver: Driver, lie: str, piece: int) -> None:
    """Whatever an answer says of its length, both clients keep what has arrived."""
    length, body, problems = LIES[lie]
    answer = b"HTTP/1.1 200 OK\r\n" + length + b"\r\n\r\n"

    def handler(request: Request) -> None:
        for start in range(0, len(answer), piece):
            request.send(answer[start : start + piece])
            time.sleep(0.001)
        request.send(body)
        raise HangUp

    found = visit(driver, handler, politeness=QUICK, limits=Limits(request_seconds=3, tree_seconds=10))
    assert len(found.sitemap.pages) == 2_000
    assert " ".join(problem.code for problem in found.sitemap.problems) == problems
    assert found.sitemap.transport is not None
    assert found.sitemap.transport.is_whole == (not problems)


@each_driver
def test_a_reset_is_not_the_end_of_a_body(driver: Driver) -> None:
    """A body without a length whose connection is reset is not whole."""

    def handler(request: Request) -> None:
        request.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\n\r\n" + WHOLE)
        request.pause(0.1)
        reset(request)

    found = visit(driver, handler, politeness=QUICK)
    assert [problem.code for problem in found.sitemap.problems] == ["T805"]
    assert len(found.sitemap.pages) == 2_000


@each_driver
@pytest.mark.parametrize(
    ("content_range", "is_whole"),
    [
        (f"bytes 0-{SIZE - 1}/{SIZE}", True),
        (f"bytes 0-{SIZE - 1}/{SIZE + 9}", False),
        ("nonsense", False),
        (None, False),
    ],
)
def test_partial_content(driver: Driver, content_range: str | None, is_whole: bool) -> None:
    """A 206 is not whole, unless it says that it is."""
    headers = f"Content-Length: {SIZE}\r\n" + (f"Content-Range: {content_range}\r\n" if content_range else "")

    def handler(request: Request) -> None:
        request.send(f"HTTP/1.1 206 Partial Content\r\n{headers}\r\n".encode() + WHOLE)

    found = visit(driver, handler, politeness=QUICK)
    assert found.sitemap.transport is not None
    assert (found.sitemap.transport.is_whole, found.sitemap.transport.status) == (is_whole, 206)
    assert [problem.code for problem in found.sitemap.problems] == ([] if is_whole else ["T805"])


# Bytes that answer no request


@pytest.fixture(params=CLIENTS)
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    with making(request.param) as make:
        yield make


def answer(text: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()


@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("seconds", [0, 0.05], ids=["at once", "later"])
@pytest.mark.parametrize(
    "unasked", [answer("wrong"), answer("wrong")[:-3], b"x"], ids=["answer", "half of one", "byte"]
)
def test_an_answer_that_nobody_asked_for(
    make: Make, tmp_path: Path, unasked: bytes, seconds: float, is_tls: bool
) -> None:
    """Bytes that follow an answer are never taken for the next one: the connection is not used again."""
    sent = threading.Semaphore(0)

    def handle(peer: Peer) -> None:
        while head := peer.head():
            path = re.findall(rb"GET (\S+)", head)[0].decode()
            if not seconds:
                peer.send(answer(path) + unasked)
            else:
                peer.send(answer(path))
                time.sleep(seconds)
                peer.send(unasked)
            sent.release()

    certificate = self_signed(tmp_path) if is_tls else None
    options = {"verify": str(certificate)} if certificate else {}
    context = server_context(certificate) if certificate else None
    with talk(handle, context) as server, within(5):
        client = make(**options)
        for number in range(3):
            assert success(client.get(f"{server.url}{number}")).raw_data() == f"/{number}".encode()
            assert sent.acquire(timeout=5)
            time.sleep(seconds)
        assert server.accepted == 3


def test_a_clean_connection_is_used_again(make: Make) -> None:
    """Connections without unread bytes stay open."""

    def handle(peer: Peer) -> None:
        while peer.head():
            peer.send(answer("x"))

    with talk(handle) as server, within(5):
        client = make()
        for _ in range(5):
            assert success(client.get(server.url)).raw_data() == b"x"
        assert server.accepted == 1


@each_driver
def test_interim_answers(driver: Driver) -> None:
    """An interim answer before a compressed one, in one segment or not, changes nothing."""
    data = gzip.compress(WHOLE)

    def handler(request: Request) -> None:
        request.send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHT")
        time.sleep(0.02)
        request.send(b"TP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(data) + data)

    assert len(visit(driver, handler).sitemap.pages) == 2_000


# The head of an answer


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (b"A: b", b"A: b"),
        (b"Content-Length: 5", b"Content-Length: 5"),
        (b"content-length: 5\r\nB: c", b"content-length: 5\r\nB: c"),
        (b"Content-Length: 5\r\nContent-Length: 6", b"Content-Length: 5\r\nContent-Length: 6"),
        (b"Content-Length: 5\r\nB: c\r\nContent-Length: 05", b"Content-Length: 5\r\nB: c"),
        (b"Content-Length: five\r\nB: c", b"B: c"),
        (b"Content-Length: 5\r\nTransfer-Encoding: identity", b"Content-Length: 5\r\nTransfer-Encoding: identity"),
        (b"X-Content-Length: five", b"X-Content-Length: five"),
    ],
)
def test_repaired_head(fields: bytes, expected: bytes) -> None:
    """Only a wrong length changes."""
    start, end = b"HTTP/1.1 200 OK\r\n", b"\r\n\r\n"
    assert repaired_head(start + fields + end) == start + expected + end


def test_a_long_head_takes_no_time() -> None:
    """The time to repair a head grows no faster than its length."""
    for text in (b"Content-Length: " + b" " * 60_000, b"Content-Length: 1\r\n" * 3_000, b"\r" * 60_000, b"9" * 60_000):
        with within(0.5):
            head = b"HTTP/1.1 200 OK\r\nContent-Length: " + text + b"\r\n\r\n"
            assert end_of_head(head)
            repaired_head(head)


def test_small_rules() -> None:
    """Heads of 1xx are followed by another one, except 101; a range is whole if it starts at 0 and is all there."""
    assert [is_interim(b"HTTP/1.1 %d X" % status) for status in (100, 101, 103, 200)] == [True, False, True, False]
    assert is_whole_range("bytes 0-9/10", 10)
    assert not any(is_whole_range(value, 10) for value in ("bytes 0-9/*", "bytes 5-9/10", "bytes 0-9/11", "", None))
