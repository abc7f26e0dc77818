"""The answer to one HTTP/1 request, from the bytes of a connection.

It does no I/O. Hand the bytes to `AnswerParser.receive()` as they arrive, and take the pieces of the body; say with
`receive_end()` that the connection has ended. It never raises: `error` says what is wrong with an answer.

It reads what http.client reads, and as browsers do: lines that are no headers are skipped, and a length that is stated
wrongly counts as none. Empty lines before an answer are skipped, and interim answers, up to a number. A body in chunks
is complete after its last chunk, whatever becomes of the trailers.

https://www.rfc-editor.org/rfc/rfc9112
"""

from __future__ import annotations

import re
from collections.abc import Callable
from http import HTTPStatus
from http.client import BadStatusLine, HTTPException, RemoteDisconnected

from usp.objects.wording import printable, shortened
from usp.web_client.framing import MAX_HEADER_BYTES, body_length, end_of_head
from usp.web_client.settings import MAX_INTERIM_ANSWERS

__all__ = ["AnswerHead", "AnswerParser"]

_STATUS_LINE = re.compile(r"HTTP/(\d)(?:\.(\d))?[ \t]++([1-9]\d\d)(?:[ \t]++(.*))?")
_FOLD = re.compile(r"\n[ \t]++")  # https://www.rfc-editor.org/rfc/rfc9112#section-5.2
_UNSAFE = str.maketrans("\r\0", "  ")  # https://www.rfc-editor.org/rfc/rfc9112#section-2.2
_LINE_ENDS = re.compile(rb"[\r\n]*+")
_CHUNK_SIZE = re.compile(rb"[ \t]*+([0-9A-Fa-f]++)[ \t\r]*+(?:;.*)?", re.DOTALL)
_MAX_HEAD_BYTES = 4 * MAX_HEADER_BYTES  # of all heads of an answer together, as in browsers
_MAX_HEADERS = 1_000
_MAX_SHOWN = 200  # bytes of what is no answer
_WITHOUT_BODY = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)


class AnswerHead:
    """The status line and the headers of an answer, decoded as Latin-1, which keeps every byte."""

    __slots__ = ("_by_name", "headers", "is_kept_alive", "reason", "status")

    def __init__(self, data: bytes) -> None:
        first, _, rest = data.decode("latin-1").replace("\r\n", "\n").partition("\n")
        match = _STATUS_LINE.fullmatch(first.rstrip("\r"))
        if match is None:
            raise _not_http(data)
        major, minor, status, reason = match.groups()
        self.status = int(status)
        self.reason = (reason or "").translate(_UNSAFE).strip(" \t")
        self.headers: list[tuple[str, str]] = []  # in their order, with their names as written
        self._by_name: dict[str, list[str]] = {}
        if "\n " in rest or "\n\t" in rest:
            rest = _FOLD.sub(" ", rest)
        if "\r" in rest or "\0" in rest:
            rest = rest.translate(_UNSAFE)
        for line in rest.split("\n"):
            name, colon, value = line.partition(":")
            if colon and line[0] not in " \t:":
                self._add(name.rstrip(" \t"), value.strip(" \t"))  # other spaces may be a part of UTF-8
        if len(self.headers) > _MAX_HEADERS:
            raise HTTPException(f"more than {_MAX_HEADERS:,} headers")
        kept = self.tokens("connection")
        self.is_kept_alive = "close" not in kept and ((major, minor) == ("1", "1") or "keep-alive" in kept)

    def _add(self, name: str, value: str) -> None:
        self.headers.append((name, value))
        lower = name.lower()
        if lower in self._by_name:
            self._by_name[lower].append(value)
        else:
            self._by_name[lower] = [value]

    def values(self, lower_name: str) -> list[str]:
        """Return all values of a header, whose name is given in lower case."""
        return self._by_name.get(lower_name, [])

    def tokens(self, lower_name: str) -> list[str]:
        """Return the items of a header that is a list, in lower case."""
        values = self._by_name.get(lower_name)
        return [item.strip().lower() for value in values for item in value.split(",")] if values else []


class AnswerParser:
    """Reads one answer. `head` is None until it has arrived, `has_ended` says whether the body is complete.

    `can_reuse` says whether the connection may be used for another request, once the answer has ended. After an `error`
    nothing more is read.
    """

    __slots__ = ("_held", "_interim_answers", "_left", "_read", "can_reuse", "error", "has_ended", "head")

    def __init__(self) -> None:
        self.head: AnswerHead | None = None
        self.has_ended = False
        self.can_reuse = False
        self.error: Exception | None = None
        self._held = bytearray()  # what has arrived of a line or of a head
        self._interim_answers = 0
        self._left = _MAX_HEAD_BYTES  # bytes of the heads, then of the body, of its chunk, or of its trailers
        self._read: _Read = AnswerParser._read_head  # no bound method, which would refer back to the parser

    def receive(self, data: bytes) -> bytes:
        """Take some bytes of the connection, and return those of the body."""
        pieces, at = [], 0
        try:
            while at < len(data) and not self.has_ended:
                piece, at = self._read(self, data, at)
                if piece:
                    pieces.append(piece)
        except HTTPException as error:
            self._fail(error)
        if at < len(data):
            self.can_reuse = False  # these bytes answer no request
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def receive_end(self) -> None:
        """Note that the connection has ended."""
        self.can_reuse = False
        if self.has_ended or self.error is not None:
            return
        if self.head is not None:
            if self._read is AnswerParser._read_rest:
                self.has_ended = True
            else:
                self._fail(HTTPException("the body is not complete"))
        elif not _may_be_http(self._held):
            self._fail(_not_http(self._held))
        elif self._held or self._interim_answers:
            self._fail(HTTPException("the header is not complete"))
        else:
            self._fail(RemoteDisconnected(""))

    def _fail(self, error: Exception) -> None:
        if self._read is AnswerParser._read_trailer:
            self.has_ended, self.can_reuse = True, False  # nobody needs the trailers
        else:
            self.error, self._read = error, AnswerParser._skip

    def _skip(self, data: bytes, at: int) -> tuple[bytes, int]:
        return b"", len(data)

    def may_be_short(self, most: int) -> bool:
        """Return whether what is left of the body may be so many bytes, and the connection reused after them."""
        if self._read is AnswerParser._read_part:
            return self._left <= most
        return not self.has_ended and self._read is not AnswerParser._read_rest

    def _read_head(self, data: bytes, at: int) -> tuple[bytes, int]:
        held = len(self._held)
        if held:
            self._held += data[at:]
        whole = self._held if held else data
        first = 0 if held else _LINE_ENDS.match(data, at).end()  # type: ignore[union-attr]  # it always matches
        if not _may_be_http(whole[first : first + 5]) and (b"\n" in whole[first:] or len(whole) - first > _MAX_SHOWN):
            raise _not_http(whole[first:])
        end = end_of_head(whole, max(first, held - 3))
        self._left -= (end or len(whole)) - (held or at)
        if self._left < 0:
            raise HTTPException(f"the header has more than {_MAX_HEAD_BYTES:,} bytes")
        if not end:
            if not held:
                self._held += data[first:]
            return b"", len(data)
        head = AnswerHead(bytes(whole[first:end]))
        self._held = bytearray()
        if head.status < HTTPStatus.OK and head.status != HTTPStatus.SWITCHING_PROTOCOLS:
            self._interim_answers += 1
            if self._interim_answers > MAX_INTERIM_ANSWERS:
                raise HTTPException(f"more than {MAX_INTERIM_ANSWERS} interim answers")
        else:
            self._start_body(head)
        return b"", at + end - held if held else end

    def _start_body(self, head: AnswerHead) -> None:
        self.can_reuse = head.is_kept_alive and head.status >= HTTPStatus.OK
        if head.status < HTTPStatus.OK or head.status in _WITHOUT_BODY:
            self.has_ended = True
        elif "chunked" in head.tokens("transfer-encoding"):
            self._read = AnswerParser._read_chunk_size
        else:  # a server that names another encoding has sent the body without it
            length = body_length(head.values("content-length"))
            if length is None:
                self._read = AnswerParser._read_rest
            else:
                self._left, self._read = length, AnswerParser._read_part
                self.has_ended = not length
        self.head = head

    def _read_rest(self, data: bytes, at: int) -> tuple[bytes, int]:
        """Read a body that goes on until the connection ends."""
        return data[at:], len(data)

    def _read_part(self, data: bytes, at: int) -> tuple[bytes, int]:
        """Read a body of a known length."""
        piece = data[at : at + self._left]
        self._left -= len(piece)
        self.has_ended = not self._left
        return piece, at + len(piece)

    def _read_chunk_size(self, data: bytes, at: int) -> tuple[bytes, int]:
        line, at = self._line(data, at)
        if line is not None:
            match = _CHUNK_SIZE.fullmatch(line)
            if match is None:
                raise HTTPException(f"not the size of a chunk: {printable(shortened(line.decode('latin-1')))}")
            self._left, self._read = int(match[1], 16), AnswerParser._read_chunk
            if not self._left:
                self._left, self._read = MAX_HEADER_BYTES, AnswerParser._read_trailer
        return b"", at

    def _read_chunk(self, data: bytes, at: int) -> tuple[bytes, int]:
        piece = data[at : at + self._left]
        self._left -= len(piece)
        if not self._left:
            self._read = AnswerParser._read_chunk_end
        return piece, at + len(piece)

    def _read_chunk_end(self, data: bytes, at: int) -> tuple[bytes, int]:
        line, at = self._line(data, at)
        if line:
            raise HTTPException("a chunk is longer than its size")
        if line is not None:
            self._read = AnswerParser._read_chunk_size
        return b"", at

    def _read_trailer(self, data: bytes, at: int) -> tuple[bytes, int]:
        line, end = self._line(data, at)
        self._left -= end - at
        if self._left < 0:
            raise HTTPException(f"the trailers have more than {MAX_HEADER_BYTES:,} bytes")
        self.has_ended = line is not None and not line
        return b"", end

    def _line(self, data: bytes, at: int) -> tuple[bytearray | None, int]:
        """Return the line at a place without its end, and the place behind it; None if its end has not arrived."""
        end = data.find(b"\n", at)
        line = self._held
        line += data[at : end if end >= 0 else len(data)]
        if len(line) > MAX_HEADER_BYTES:
            raise HTTPException(f"a line has more than {MAX_HEADER_BYTES:,} bytes")
        if end < 0:
            return None, len(data)
        self._held = bytearray()
        return line.removesuffix(b"\r"), end + 1


#: Reads data from a place on. Returns a piece of the body, and the place behind what it has read.
_Read = Callable[[AnswerParser, bytes, int], tuple[bytes, int]]


def _may_be_http(data: bytes | bytearray) -> bool:
    return data[:5] == b"HTTP/"[: len(data)]


def _not_http(data: bytes | bytearray) -> BadStatusLine:
    line = data[:_MAX_SHOWN].partition(b"\n")[0]
    return BadStatusLine(printable(shortened(line.decode("latin-1").strip())))
