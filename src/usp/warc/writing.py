"""Write WARC 1.1 records, one gzip member each.

    writer = WarcWriter(file)
    writer.info({"robots": "obey"}, filename="1.warc.gz")
    body = Payload(data)  # or Payload(pieces=stored.pieces) for a large one
    response = writer.response(url, head, body, date)
    writer.request(url, sent, date, concurrent_to=response.record_id)
    writer.revisit(url, head, Original(url, earlier, body.digest), date)

Bodies are written as they were transferred, in their Content-Encoding. One that is compressed already is stored as it
is, inside the gzip member of its record; others are compressed. Memory does not grow with a body that comes in pieces:
it is read once for each digest and once to write it.

Bodies must be without chunked framing, which HTTP libraries remove. `WarcWriter.response` changes the head to match the
body, as Browsertrix and warcio.js do: `Transfer-Encoding: chunked` becomes `X-Orig-Transfer-Encoding: chunked`, and a
Content-Length with the size of the body is added. All other lines stay as they were received.

If writing fails halfway (OSError, or an error of the body), the file has a part of a record at its end. Truncate it to
`writer.offset`, the end of the last whole record, and go on, or drop the file. Readers skip such a record.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache, lru_cache
from hashlib import sha1
from itertools import chain
from os import urandom
from typing import Any, BinaryIO, NamedTuple

from usp.inflate import GZIP_MAGIC, split
from usp.version import __version__
from usp.warc.messages import ended_head, head_for_unframed_body

__all__ = ["Original", "Payload", "WarcWriter", "Written"]

#: Reasons for a body cut short, as `WARC-Truncated` names them.
TRUNCATED = ("length", "time", "disconnect", "unspecified")

_PROFILE = "http://netpreserve.org/warc/1.1/revisit/"
_SAME_BYTES, _NOT_MODIFIED = f"{_PROFILE}identical-payload-digest", f"{_PROFILE}server-not-modified"
_RESPONSE, _REQUEST = "application/http; msgtype=response", "application/http; msgtype=request"
_FIELDS = "application/warc-fields"
_GZIP_HEAD = GZIP_MAGIC + b"\x08\x00\x00\x00\x00\x00\x00\xff"  # https://www.rfc-editor.org/rfc/rfc1952#section-2.3
_LAST_BLOCK = b"\x01\x00\x00\xff\xff"  # of deflate: stored, empty
_STORED_BYTES = 65_535  # https://www.rfc-editor.org/rfc/rfc1951#section-3.2.4
_COMPRESSED = (GZIP_MAGIC, b"\x28\xb5\x2f\xfd")  # gzip, zstd
_SMALL_BYTES = 1 << 16  # compressed in one step
_BREAKS = {code: f"%{code:02X}" for code in (*range(33), 127)}
_END = b"\r\n\r\n"
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"  # https://www.rfc-editor.org/rfc/rfc4648#section-6
_BASE32 = [first + second for first in _LETTERS for second in _LETTERS]
_SHIFTS = range(150, -1, -10)
_VARIANTS = {f"{digit:x}": f"{digit & 3 | 8:x}" for digit in range(16)}  # a random digit -> one of 8, 9, a and b


class Written(NamedTuple):
    """Where a record is: its offset in the file, its length there, and its ID."""

    offset: int
    length: int
    record_id: str


class Original(NamedTuple):
    """The earlier response that a revisit refers to.

    `digest` is that of its payload, and `record_id` that of its record, if it is known.
    """

    url: str
    date: datetime
    digest: str
    record_id: str | None = None


class Payload:
    """The body of a response, as it was transferred but without chunked framing.

    :param data: all of it.
    :param pieces: for a large body, a function that gives its bytes from the start each time it is called.
    """

    __slots__ = ("_digest", "_size", "data", "pieces")

    def __init__(self, data: bytes = b"", *, pieces: Callable[[], Iterable[bytes]] | None = None) -> None:
        self.data = data if pieces is None else None  # None if it comes in pieces
        self.pieces = pieces if pieces is not None else lambda: split(data)
        self._size = len(data) if pieces is None else None
        self._digest = ""

    @property
    def size(self) -> int:
        """The number of bytes."""
        if self._size is None:
            self._measure()
        assert self._size is not None
        return self._size

    @property
    def digest(self) -> str:
        """The digest of the bytes, such as "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"."""
        if not self._digest:
            self._measure()
        return self._digest

    def _measure(self) -> None:
        if self.data is not None:
            self._digest = _written_digest(sha1(self.data, usedforsecurity=False).digest())
            return
        found, size = sha1(usedforsecurity=False), 0
        for piece in self.pieces():
            found.update(piece)
            size += len(piece)
        self._size, self._digest = size, _written_digest(found.digest())


class WarcWriter:
    """Writes records to a binary file.

    :param file: needs `write`. Offsets count from its position, or from 0 if it has none.
    :param compress: write one gzip member per record, else plain records.
    """

    def __init__(self, file: BinaryIO, *, compress: bool = True) -> None:
        self._file = file
        self._compress = compress
        try:
            self.offset = file.tell()
        except (OSError, AttributeError):
            self.offset = 0

    def info(self, fields: Mapping[str, str], *, date: datetime, filename: str = "") -> Written:
        """Write a warcinfo record: about the file. `software` and `format` are added if they are missing."""
        given = {"software": f"usp/{__version__}", "format": "WARC File Format 1.1", **fields}
        named = {"WARC-Filename": filename} if filename else {}
        return self._write("warcinfo", named, _FIELDS, _fields_block(given), date)

    def metadata(
        self, url: str, fields: Mapping[str, str], date: datetime, *, concurrent_to: str | None = None
    ) -> Written:
        """Write a metadata record: facts about a URL."""
        head = {"WARC-Target-URI": _uri(url), "WARC-Concurrent-To": concurrent_to}
        return self._write("metadata", head, _FIELDS, _fields_block(fields), date)

    def request(
        self, url: str, head: bytes, date: datetime, *, concurrent_to: str | None = None, ip: str | None = None
    ) -> Written:
        """Write the head of a request.

        :param concurrent_to: the ID of the record with the response.
        """
        named = {"WARC-Target-URI": _uri(url), "WARC-IP-Address": ip, "WARC-Concurrent-To": concurrent_to}
        block = ended_head(head)
        named["WARC-Payload-Digest"] = _EMPTY_DIGEST
        return self._write("request", named, _REQUEST, block, date)

    def response(
        self,
        url: str,
        head: bytes,
        body: Payload,
        date: datetime,
        *,
        ip: str | None = None,
        truncated: str | None = None,
        record_id: str | None = None,
    ) -> Written:
        """Write a response.

        :param url: the URL that responded. Each redirect is a response of its own.
        :param head: the status line and the headers, as they were received.
        :param date: when the request was sent.
        :param truncated: why the body is not whole: one of "length", "time", "disconnect" and "unspecified".
        """
        if truncated is not None and truncated not in TRUNCATED:
            raise ValueError(f"truncated must be one of {', '.join(TRUNCATED)}, not {truncated!r}")
        named = {
            "WARC-Target-URI": _uri(url),
            "WARC-IP-Address": ip,
            "WARC-Payload-Digest": body.digest,
            "WARC-Truncated": truncated,
        }
        block = head_for_unframed_body(head, body.size)
        return self._write("response", named, _RESPONSE, block, date, body, record_id)

    def revisit(
        self,
        url: str,
        head: bytes,
        original: Original,
        date: datetime,
        *,
        not_modified: bool = False,
        ip: str | None = None,
        record_id: str | None = None,
    ) -> Written:
        """Write that a URL has the same content as an earlier response.

        :param head: the head of the response that was received now.
        :param not_modified: the server answered 304. Otherwise it sent the same bytes again.
        """
        named = {
            "WARC-Target-URI": _uri(url),
            "WARC-IP-Address": ip,
            "WARC-Payload-Digest": original.digest,
            "WARC-Profile": _NOT_MODIFIED if not_modified else _SAME_BYTES,
            "WARC-Refers-To": original.record_id,
            "WARC-Refers-To-Target-URI": _uri(original.url),
            "WARC-Refers-To-Date": _written_date(original.date),
        }
        return self._write("revisit", named, _RESPONSE, ended_head(head), date, record_id=record_id)

    def _write(
        self,
        kind: str,
        named: Mapping[str, str | None],
        content_type: str,
        head: bytes,
        date: datetime,
        body: Payload | None = None,
        record_id: str | None = None,
    ) -> Written:
        """Write a record whose block is `head` and the body."""
        record_id = record_id or _new_id()
        size = len(head) + (0 if body is None else body.size)
        lines = "".join([f"{name}: {_one_line(value)}\r\n" for name, value in named.items() if value is not None])
        text = (
            f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: {record_id}\r\nWARC-Date: {_written_date(date)}\r\n"
            f"{lines}WARC-Block-Digest: {_block_digest(head, body)}\r\n"
            f"Content-Type: {content_type}\r\nContent-Length: {size}\r\n\r\n"
        )
        start = text.encode("utf-8", "replace") + head
        offset = self.offset
        length = 0
        for piece in _members(start, body) if self._compress else _plain(start, body):
            self._write_all(piece)
            length += len(piece)
        self.offset = offset + length
        return Written(offset, length, record_id)

    def _write_all(self, data: bytes) -> None:
        """Write all bytes: a file without a buffer may take a part of them."""
        done = self._file.write(data)
        while done is not None and done < len(data):
            if not done:
                raise OSError("nothing more can be written")
            data = data[done:]
            done = self._file.write(data)


def _new_id() -> str:
    """Return a random ID. https://www.rfc-editor.org/rfc/rfc9562#section-5.4."""
    digits = urandom(16).hex()
    variant = _VARIANTS[digits[16]]
    return f"<urn:uuid:{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}>"


def _plain(start: bytes, body: Payload | None) -> Iterator[bytes]:
    yield start
    yield from _exactly(body)
    yield _END


def _members(start: bytes, body: Payload | None) -> Iterable[bytes]:
    """Give the gzip member of a record."""
    data = b"" if body is None else body.data
    if data is not None and len(data) <= _SMALL_BYTES:
        if data.startswith(_COMPRESSED):
            return (b"".join(_stored(start, data + _END, ())),)
        return (_compress(start + data + _END),)
    pieces = _exactly(body)
    first = next(pieces, b"")
    if first.startswith(_COMPRESSED):
        return _stored(start, first, _with_end(pieces))
    if body is None or body.size == len(first) <= _SMALL_BYTES:
        return (_compress(start + first + _END),)
    return _deflated(start, first, pieces)


def _exactly(body: Payload | None) -> Iterator[bytes]:
    """Give the pieces of a body, and make sure that they are as many bytes as the record says."""
    if body is None:
        return
    left = body.size
    for piece in body.pieces():
        left -= len(piece)
        if left < 0:
            break
        if piece:
            yield piece
    if left:
        raise ValueError(f"a body has {'more' if left < 0 else 'fewer'} bytes than when it was measured")


def _deflated(start: bytes, first: bytes, pieces: Iterable[bytes]) -> Iterator[bytes]:
    compressor = _compressor(31)
    for piece in (start, first):
        yield compressor.compress(piece)
    for piece in pieces:
        yield compressor.compress(piece)
    yield compressor.compress(_END)
    yield compressor.flush()


def _stored(start: bytes, first: bytes, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Give a gzip member with a compressed start, followed by a body in stored blocks, which cost 5 bytes each."""
    compressor = _compressor(-15)
    yield _GZIP_HEAD + compressor.compress(start) + compressor.flush(zlib.Z_FULL_FLUSH)
    crc, size = zlib.crc32(start), len(start)
    for piece in chain((first,), pieces):
        crc, size = zlib.crc32(piece, crc), size + len(piece)
        for block in split(piece, _STORED_BYTES):
            yield struct.pack("<BHH", 0, len(block), len(block) ^ 0xFFFF) + block
    yield _LAST_BLOCK + struct.pack("<II", crc, size & 0xFFFFFFFF)


def _with_end(pieces: Iterable[bytes]) -> Iterator[bytes]:
    yield from pieces
    yield _END


@cache
def _library() -> tuple[Any, int]:
    """Return the library that compresses, and its level: isal is ten times as fast as zlib, for the same size."""
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib, 6
    return isal_zlib, 2


def _compress(data: bytes) -> bytes:
    library, level = _library()
    compressed: bytes = library.compress(data, level, 31)
    return compressed


def _compressor(window: int) -> Any:
    library, level = _library()
    return library.compressobj(level, zlib.DEFLATED, window)


def _block_digest(head: bytes, body: Payload | None) -> str:
    found = sha1(head, usedforsecurity=False)
    if body is not None and body.data is not None:
        found.update(body.data)
    elif body is not None:
        for piece in body.pieces():
            found.update(piece)
    return _written_digest(found.digest())


def _written_digest(digest: bytes) -> str:
    """Return a SHA-1 digest in base32. Its 160 bits need no padding, and `base64.b32encode` takes far longer."""
    number = int.from_bytes(digest)
    return "sha1:" + "".join([_BASE32[number >> shift & 1023] for shift in _SHIFTS])


_EMPTY_DIGEST = _written_digest(sha1(b"", usedforsecurity=False).digest())


def _fields_block(fields: Mapping[str, str]) -> bytes:
    """Return fields as a block of lines."""
    return "".join(f"{name}: {_one_line(value)}\r\n" for name, value in fields.items()).encode("utf-8", "replace")


def _uri(url: str) -> str:
    """Return a URL as a header may have it: without white space and control characters."""
    return url if url.isprintable() and " " not in url else url.translate(_BREAKS)


def _one_line(value: str) -> str:
    return value if value.isprintable() else " ".join(value.split()).replace("\0", "")


@lru_cache(8)  # a response and its request have the same
def _written_date(date: datetime) -> str:
    """Return a time in UTC, with microseconds if it has some. A time without a zone is in UTC."""
    if date.tzinfo is not UTC:
        date = date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)
    return f"{date.isoformat()[:-6]}Z"
