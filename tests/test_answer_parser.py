"""The answer to an HTTP request, read from bytes: plain values in, plain values out."""

from __future__ import annotations

import random
import time
from http.client import BadStatusLine, HTTPException, RemoteDisconnected

import pytest

from usp.web_client.answer_parser import AnswerHead, AnswerParser
from usp.web_client.framing import MAX_HEADER_BYTES

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"

#: Name -> what a server sends, the body, and whether the connection can be used again. "..." stands for the end of it.
ANSWERS: dict[str, tuple[bytes, bytes, bool]] = {
    "length": (OK + b"Content-Length: 3\r\n\r\nabc", b"abc", True),
    "no body": (OK + b"Content-Length: 0\r\n\r\n", b"", True),
    "line feeds only": (b"HTTP/1.1 200 OK\nContent-Length: 3\n\nabc", b"abc", True),
    "any case": (OK + b"CONTENT-length:3\r\n\r\nabc", b"abc", True),
    "a space before the colon": (OK + b"Content-Length : 3\r\n\r\nabc", b"abc", True),
    "a line that is no header": (OK + b"nonsense\r\nContent-Length: 3\r\n\r\nabc", b"abc", True),
    "the same length twice": (OK + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", b"abc", True),
    "the same length in one line": (OK + b"Content-Length: 3, 3\r\n\r\nabc", b"abc", True),
    "more than the length": (OK + b"Content-Length: 3\r\n\r\nabcd", b"abc", False),
    "another answer": (OK + b"Content-Length: 3\r\n\r\nabcHTTP/1.1 200 OK\r\n\r\n", b"abc", False),
    "close": (OK + b"Connection: close\r\nContent-Length: 3\r\n\r\nabc", b"abc", False),
    "close in a list": (OK + b"Connection: x, Close\r\nContent-Length: 3\r\n\r\nabc", b"abc", False),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc", b"abc", False),
    "HTTP/1.0, kept": (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabc", b"abc", True),
    "HTTP/2 in words": (b"HTTP/2 200\r\nContent-Length: 3\r\n\r\nabc", b"abc", False),
    "until the end": (OK + b"\r\nabc...", b"abc", False),
    "a length that is no number": (OK + b"Content-Length: many\r\n\r\nabc...", b"abc", False),
    "a negative length": (OK + b"Content-Length: -1\r\n\r\nabc...", b"abc", False),
    "an empty length beside another": (OK + b"Content-Length:\r\nContent-Length: 3\r\n\r\nabc", b"abc", True),
    "an unknown encoding": (OK + b"Transfer-Encoding: x\r\n\r\nabc...", b"abc", False),
    "an unknown encoding beside a length": (
        OK + b"Transfer-Encoding: x\r\nContent-Length: 3\r\n\r\nabc",
        b"abc",
        True,
    ),
    "identity": (OK + b"Transfer-Encoding: identity\r\nContent-Length: 3\r\n\r\nabc", b"abc", True),
    "chunked, but identity": (
        OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        b"abc",
        True,
    ),
    "empty lines before it": (b"\r\n\n" + OK + b"Content-Length: 3\r\n\r\nabc", b"abc", True),
    "too many returns": (b"HTTP/1.1 200 OK\r\r\nContent-Length: 3\r\r\n\r\nabc", b"abc", True),
    "a folded header": (OK + b"Transfer-Encoding:\r\n chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", b"abc", True),
    "a folded first line": (OK + b" X: y\r\nContent-Length: 3\r\n\r\nabc", b"abc", True),
    "many headers": (OK + b"a: b\r\n" * 999 + b"Content-Length: 3\r\n\r\nabc", b"abc", True),
    "204": (b"HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n", b"", True),
    "304": (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n", b"", True),
    "304, chunked": (b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", b"", True),
    "101": (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nabc", b"", False),
    "interim answers": (b"HTTP/1.1 103 x\r\nLink: y\r\n\r\n" * 3 + OK + b"Content-Length: 1\r\n\r\na", b"a", True),
    "chunks": (CHUNKED + b"3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n", b"abcd", True),
    "chunks with line feeds": (CHUNKED + b"3\nabc\n0\n\n", b"abc", True),
    "chunk extensions": (CHUNKED + b"3;name=value\r\nabc\r\n0 ; x\r\n\r\n", b"abc", True),
    "leading zeros": (CHUNKED + b"0003\r\nabc\r\n000\r\n\r\n", b"abc", True),
    "chunk sizes with spaces": (CHUNKED + b" 3  \r\nabc\r\n0\r\r\n\r\n", b"abc", True),
    "many leading zeros": (CHUNKED + b"0" * 30 + b"3\r\nabc\r\n0\r\n\r\n", b"abc", True),
    "no trailers": (CHUNKED + b"3\r\nabc\r\n0\r\n...", b"abc", False),
    "half a trailer": (CHUNKED + b"3\r\nabc\r\n0\r\nETag: x\r\nX...", b"abc", False),
    "endless trailers": (CHUNKED + b"3\r\nabc\r\n0\r\n" + b"a: b\r\n" * 20_000, b"abc", False),
    "an endless trailer": (CHUNKED + b"3\r\nabc\r\n0\r\na" + b"b" * MAX_HEADER_BYTES, b"abc", False),
    "trailers": (CHUNKED + b"3\r\nabc\r\n0\r\nETag: x\r\n\r\n", b"abc", True),
    "more than the chunks": (CHUNKED + b"0\r\n\r\nx", b"", False),
    "chunks beside a length": (
        OK + b"Transfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        b"abc",
        True,
    ),
    "several encodings": (OK + b"Transfer-Encoding: x, Chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", b"abc", True),
}
#: The same for answers that are not valid: what they give until then, and what is said of them.
BAD: dict[str, tuple[bytes, bytes, type[Exception], str]] = {
    "nothing": (b"...", b"", RemoteDisconnected, ""),
    "other protocol": (b"SSH-2.0-OpenSSH\r\n", b"", BadStatusLine, "SSH-2.0-OpenSSH"),
    "other protocol, without a line end": (b"SSH-2.0-OpenSSH...", b"", BadStatusLine, "SSH-2.0-OpenSSH"),
    "no status": (b"HTTP/1.1 OK\r\n\r\n", b"", BadStatusLine, "HTTP/1.1 OK"),
    "a status that is none": (b"HTTP/1.1 099 OK\r\n\r\n", b"", BadStatusLine, "HTTP/1.1 099 OK"),
    "a status of four digits": (b"HTTP/1.1 2000 OK\r\n\r\n", b"", BadStatusLine, "2000"),
    "half a head": (OK + b"Content-Length: 3...", b"", HTTPException, "the header is not complete"),
    "an interim answer only": (b"HTTP/1.1 100 x\r\n\r\n...", b"", HTTPException, "the header is not complete"),
    "several lengths": (
        OK + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        b"",
        HTTPException,
        "several lengths",
    ),
    "half a body": (OK + b"Content-Length: 4\r\n\r\nabc...", b"abc", HTTPException, "the body is not complete"),
    "half a chunk": (CHUNKED + b"4\r\nabc...", b"abc", HTTPException, "the body is not complete"),
    "no last chunk": (CHUNKED + b"3\r\nabc\r\n...", b"abc", HTTPException, "the body is not complete"),
    "half the last chunk": (CHUNKED + b"3\r\nabc\r\n0...", b"abc", HTTPException, "the body is not complete"),
    "no size": (CHUNKED + b"\r\nabc", b"", HTTPException, "not the size of a chunk"),
    "a negative size": (CHUNKED + b"-3\r\nabc", b"", HTTPException, "not the size of a chunk"),
    "a huge size": (CHUNKED + b"F" * 60_000 + b"\r\nabc...", b"abc", HTTPException, "the body is not complete"),
    "a chunk longer than its size": (
        CHUNKED + b"3\r\nabcd\r\n0\r\n\r\n",
        b"abc",
        HTTPException,
        "longer than its size",
    ),
    "an endless head": (OK + b"X: " + b"a" * 262_144, b"", HTTPException, "262,144 bytes"),
    "a long head": (OK + b"X: " + b"a" * 262_144 + b"\r\n\r\n", b"", HTTPException, "262,144 bytes"),
    "long interim answers": (
        (b"HTTP/1.1 100 x\r\nX: " + b"a" * 9_000 + b"\r\n\r\n") * 30,
        b"",
        HTTPException,
        "262,144 bytes",
    ),
    "too many headers": (OK + b"a: b\r\n" * 1_001 + b"\r\n", b"", HTTPException, "more than 1,000 headers"),
    "empty lines without end": (b"\r\n" * 200_000, b"", HTTPException, "262,144 bytes"),
    "endless interim answers": (b"HTTP/1.1 100 x\r\n\r\n" * 101, b"", HTTPException, "100 interim answers"),
    "an endless size": (CHUNKED + b"0" * (MAX_HEADER_BYTES + 1), b"", HTTPException, "65,536 bytes"),
}


def read(data: bytes, cuts: list[int]) -> tuple[bytes, AnswerParser, Exception | None]:
    """The body, as far as it arrives, the parser and the error."""
    parser, body = AnswerParser(), b""
    ends = data.endswith(b"...")
    data = data.removesuffix(b"...")
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        body += parser.receive(data[start:end])
    if ends:
        parser.receive_end()
    return body, parser, parser.error


def ways_to_cut(data: bytes) -> list[list[int]]:
    """Whole, byte by byte, and at random places."""
    size = len(data.removesuffix(b"..."))
    chance = random.Random(size)
    each = [[*range(1, size)]] if size < 2_000 else []
    return [[], *each, *(sorted(chance.choices(range(size + 1), k=chance.randint(1, 5))) for _ in range(30))]


@pytest.mark.parametrize("name", ANSWERS)
def test_answers(name: str) -> None:
    """An answer gives the same body wherever it is cut."""
    data, body, can_reuse = ANSWERS[name]
    for cuts in ways_to_cut(data):
        found, parser, error = read(data, cuts)
        assert (found, parser.has_ended, parser.can_reuse, error) == (body, True, can_reuse, None), cuts


@pytest.mark.parametrize("name", BAD)
def test_answers_that_are_not_valid(name: str) -> None:
    """An answer that is not valid has the same error wherever it is cut, and gives what came before."""
    data, body, kind, words = BAD[name]
    for cuts in ways_to_cut(data):
        found, parser, error = read(data, cuts)
        assert found == body, cuts
        assert type(error) is kind, cuts
        assert words in str(error), cuts
        assert not parser.has_ended, cuts


def test_headers() -> None:
    """Headers keep their order, their names and every byte; a continued line belongs to the header above."""
    head = AnswerHead(b"HTTP/1.1 404 Not  Found \r\nX-A: 1\r\n more\r\nx-a:\t2 \r\nB: caf\xe9: x\r\n\r\n")
    assert (head.status, head.reason) == (404, "Not  Found")
    assert head.headers == [("X-A", "1 more"), ("x-a", "2"), ("B", "caf\xe9: x")]
    assert head.values("x-a") == ["1 more", "2"]
    assert head.values("none") == []


def test_characters_of_headers() -> None:
    """Only spaces and tabs around a value are no part of it; line ends and NUL within it are spaces."""
    head = AnswerHead(b"HTTP/1.1 302 a\rb\r\nLocation: /voil\xc3\xa0\r\nX: a\rY: b\0c\r\n: d\r\n\r\n")
    assert head.reason == "a b"
    assert head.headers == [("Location", "/voil\xc3\xa0"), ("X", "a Y: b c")]


def test_random_bytes() -> None:
    """Whatever arrives, nothing is raised, and a body has no more bytes than that."""
    chance = random.Random(1)
    good = [data for data, _, _ in ANSWERS.values()]
    for _ in range(3_000):
        data = bytearray(chance.choice(good))
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(data))
            data[at : at + chance.randint(0, 2)] = bytes(
                chance.choices(b"\r\n:; 0123fF\x00\xff", k=chance.randint(0, 3))
            )
        found, _, error = read(bytes(data), sorted(chance.choices(range(len(data)), k=3)))
        assert error is None or isinstance(error, (HTTPException, RemoteDisconnected)), (error, data)
        assert len(found) <= len(data)


@pytest.mark.parametrize(
    "shape", ["chunks", "headers", "folded headers", "interim answers", "size in pieces", "head in pieces"]
)
def test_time_grows_with_the_size_only(shape: str) -> None:
    """The worst answers cost no more than 2 seconds of processor time per megabyte."""
    pieces = {
        "chunks": [CHUNKED + b"1\r\na\r\n" * 10_000] + [b"1\r\na\r\n" * 10_000] * 10,
        "headers": [OK + b"a:\r\n" * 16_000 + b"\r\n"] * 10,
        "folded headers": [OK + b"a: b" + b"\r\n c" * 60_000 + b"\r\n\r\n"] * 10,
        "interim answers": [b"HTTP/1.1 100\r\n\r\n" * 101] * 100,
        "size in pieces": [CHUNKED] + [b"0"] * (MAX_HEADER_BYTES - 1),
        "head in pieces": [OK] + [b"a"] * 262_000,
    }[shape]
    start = time.process_time()
    parser = AnswerParser()
    for piece in pieces:
        if shape in ("headers", "folded headers", "interim answers"):
            parser = AnswerParser()
        parser.receive(piece)
    seconds = time.process_time() - start
    assert seconds < 2 * sum(map(len, pieces)) / 1e6 + 1
