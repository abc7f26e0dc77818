"""HTTP messages as WARC records hold them: a head, and a body that may be in chunks.

Nothing here raises: a head that makes no sense has the status 0 and no headers. `Content-Encoding` is left as it is,
because usp inflates documents itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

__all__ = [
    "Message",
    "dechunked",
    "ended_head",
    "head_for_unframed_body",
    "message_of",
    "request_head",
    "response_head",
]

#: Longer heads are cut.
MAX_HEAD_BYTES = 1 << 18

_STATUS = re.compile(rb"HTTP/[0-9.]{1,5} +([0-9]{3})(?: ([^\r\n]*))?")
_FRAMING = re.compile(rb"(?im)^(transfer-encoding|content-length)(?=[ \t]*:)[^\r\n]*\r?\n")
_CHUNKED = re.compile(rb"(?im)^transfer-encoding[ \t]*:[^\r\n]*chunked")
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]{0,4096})?\r?\n")
_MAX_SIZE_LINE = 5_000
_LINE_ENDS = re.compile(r"[\r\n\0]+")


class Message(NamedTuple):
    """The head of a response, and where its body starts in the block of its record."""

    status: int
    reason: str
    headers: dict[str, str]  # names in lower case; the first of each name
    body_at: int
    is_chunked: bool  # its head says so; the body may be in chunks, or not any more

    def header(self, name: str) -> str | None:
        """Return the value of a header, None if there is none of this name."""
        return self.headers.get(name.lower())


def message_of(block: bytes) -> Message:
    """Return the head of a response from the first bytes of its block."""
    end = _HEAD_END.search(block, 0, MAX_HEAD_BYTES)
    head = block[: end.start()] if end else block[:MAX_HEAD_BYTES]
    match = _STATUS.match(head)
    if match is None:
        return Message(0, "", {}, end.end() if end else len(block), False)
    headers: dict[str, str] = {}
    for line in head.decode("latin-1").split("\n")[1:]:
        name, colon, value = line.partition(":")
        if colon:
            headers.setdefault(name.strip().lower(), value.strip())
    reason = (match[2] or b"").decode("latin-1").strip()
    is_chunked = "chunked" in headers.get("transfer-encoding", "").lower()
    return Message(int(match[1]), reason, headers, end.end() if end else len(block), is_chunked)


def dechunked(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Give a body without its chunked framing. One that is not in chunks, whatever its head says, comes as it is.

    wget and Heritrix keep the framing, others remove it and leave the header. Framing that breaks off gives what came
    before.
    """
    return _dechunked(_Ahead(pieces))


class _Ahead:
    """Iterates over pieces, and can look ahead: `data` from `at` on comes next."""

    __slots__ = ("_pieces", "at", "data")

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self.data = b""
        self.at = 0

    def more(self) -> bool:
        """Take one more piece in. Return False if there is none."""
        piece = next(self._pieces, None)
        if piece is None:
            return False
        self.data, self.at = self.data[self.at :] + piece, 0
        return True

    def chunk_size(self) -> int | None:
        """Take the line with the size of a chunk; None if there is none."""
        while (match := _CHUNK_SIZE.match(self.data, self.at)) is None:
            if len(self.data) - self.at > _MAX_SIZE_LINE or not self.more():
                return None
        self.at = match.end()
        return int(match[1], 16)

    def take(self, size: int) -> Iterator[bytes]:
        """Give the next `size` bytes, or all that are left."""
        while size > 0 and (self.at < len(self.data) or self.more()):
            piece = self.data[self.at : self.at + size]
            self.at += len(piece)
            size -= len(piece)
            yield piece

    def line_end(self) -> None:
        """Take a line end, if there is one."""
        while len(self.data) - self.at < 2 and self.more():
            pass
        if self.data.startswith(b"\r\n", self.at):
            self.at += 2
        elif self.data.startswith(b"\n", self.at):
            self.at += 1

    def rest(self) -> Iterator[bytes]:
        """Give all that is left."""
        if self.at < len(self.data):
            yield self.data[self.at :]
        self.data = b""
        yield from self._pieces


def _dechunked(source: _Ahead) -> Iterator[bytes]:
    size = source.chunk_size()
    if size is None:
        yield from source.rest()
        return
    while size:
        yield from source.take(size)
        source.line_end()
        size = source.chunk_size() or 0


def response_head(status: int, reason: str, headers: Iterable[tuple[str, str]], version: str = "1.1") -> bytes:
    """Return the head of a response, for clients that do not keep it as it was received."""
    return _head(f"HTTP/{version} {status} {reason}", headers)


def request_head(method: str, target: str, headers: Iterable[tuple[str, str]], version: str = "1.1") -> bytes:
    """Return the head of a request. `target` is the path and query of the URL. Leave out headers with secrets."""
    return _head(f"{method} {target} HTTP/{version}", headers)


def _head(first: str, headers: Iterable[tuple[str, str]]) -> bytes:
    lines = [first, *[f"{name}: {value}" for name, value in headers]]
    text = "\r\n".join(lines)
    if text.count("\r") + text.count("\n") > 2 * (len(lines) - 1) or "\0" in text:
        text = "\r\n".join([_LINE_ENDS.sub(" ", line) for line in lines])
    return text.encode("latin-1", "replace") + b"\r\n\r\n"


def ended_head(head: bytes) -> bytes:
    """Return a head with exactly one blank line at its end."""
    end = b"\r\n\r\n"
    return head if head.endswith(end) and head[-5:-4] not in b"\r\n" else head.rstrip(b"\r\n") + end


def head_for_unframed_body(head: bytes, size: int) -> bytes:
    """Return the head of a response whose body has lost its chunked framing, for a body of `size` bytes."""
    head = ended_head(head)
    if b"chunked" not in head.lower() or not _CHUNKED.search(head):
        return head
    renamed = _FRAMING.sub(lambda match: b"X-Orig-" + match[0], head)
    return renamed[:-2] + b"Content-Length: %d\r\n\r\n" % size
