"""Read WARC files: plain, gzip or zstd, one record per member or many, whole or damaged.

Only whole records are given. A record that is cut short is skipped, and so is one in a damaged gzip member; reading
goes on with the next record that can be found. Nothing that a file contains raises. Memory is bounded: a record comes
with the first bytes of its block, and `open_block` reads a longer block from the file again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import BinaryIO

from usp.inflate import gunzip_in_one_step
from usp.warc.codecs import Codec, codec_of
from usp.warc.messages import dechunked, message_of
from usp.warc.streams import Place, PlainStream, Stream, open_stream

__all__ = [
    "KEPT_BYTES",
    "Record",
    "body_of_member",
    "is_warc",
    "open_block",
    "open_body",
    "read_record",
    "read_records",
]

#: How much of a block comes with its record.
KEPT_BYTES = 1 << 16
#: Longer headers are damage.
MAX_HEADER_BYTES = 1 << 18

_START = re.compile(rb"WARC/[01]\.[0-9]{1,2}\r?\n")
_NEXT_START = re.compile(rb"(?<=\n)WARC/[01]\.[0-9]{1,2}\r?\n")
_HEADER_END = re.compile(rb"\r?\n(?:(\r?\n)|(?=WARC/[01]\.[0-9]{1,2}\r?\n))")  # a blank line, or another record
_LINE_ENDS = re.compile(rb"[\r\n]*+")
_START_BYTES = 16
_MAX_CONTINUED = 4096  # characters of a header to which more lines are added
_LENGTH = re.compile(r"[0-9]{1,18}")
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?Z?")

#: Of records that `WarcWriter` has written.
_WRITTEN_START, _WRITTEN_END = b"WARC/1.1\r\nWARC-Type: response\r\n", b"\r\n\r\n"
_WRITTEN_LENGTH = re.compile(rb"\r\nContent-Length: ([0-9]{1,18})\r\n")
_MAX_ONE_STEP = 1 << 20  # bytes of a record, inflated

_USUAL_LENGTHS = (20, 27)  # with seconds, with microseconds


@dataclass(slots=True)
class Record:
    """A record: its headers, the start of its block, and where it is in its file.

    `length` is that of the compressed record, 0 if it has no gzip member of its own.
    """

    headers: dict[str, str]  # names in lower case; the first of each name
    size: int  # of the whole block
    block: bytes  # its first bytes
    place: Place
    length: int

    @property
    def type(self) -> str:
        """The kind of record: response, revisit, request, warcinfo and so on."""
        return self.headers.get("warc-type", "").lower()

    @property
    def url(self) -> str:
        """The target of the request. Some old writers put it into angle brackets."""
        url = self.headers.get("warc-target-uri", "")
        return url[1:-1] if url.startswith("<") and url.endswith(">") else url

    @property
    def date(self) -> datetime | None:
        """When the record was made, in UTC; None if the file does not say."""
        return date_of(self.headers.get("warc-date", ""))

    @property
    def offset(self) -> int:
        """Where the record, or the member that it is in, starts in the file."""
        return self.place.offset

    @property
    def is_block_whole(self) -> bool:
        """Whether `block` is all of the block."""
        return len(self.block) == self.size


def date_of(text: str) -> datetime | None:
    """Return the time that a WARC-Date states, None if it states none. It may lack its smaller parts."""
    if len(text) in _USUAL_LENGTHS and text.endswith("Z"):
        with suppress(ValueError):
            return datetime.fromisoformat(text)
    match = _DATE.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    micros = int((match[7] or "").ljust(6, "0")[:6])
    try:  # a leap second is the next one
        return datetime(year, month, day, hour, minute, 0, micros, UTC) + timedelta(seconds=second)
    except (ValueError, OverflowError):
        return None


def is_warc(file: BinaryIO) -> bool:
    """Return whether a file starts with a WARC record.

    :raises MissingExtraError: if it is zstd, and no package for that is installed.
    """
    stream = open_stream(file, codec_of(file))
    stream.has(_START_BYTES)
    return _START.match(stream.data) is not None


#: Called with the offset of something that is no whole record.
OnDamage = Callable[[int], object]


def read_records(
    file: BinaryIO, *, kept_bytes: int = KEPT_BYTES, on_damage: OnDamage = lambda offset: None
) -> Iterator[Record]:
    """Yield all whole records of a seekable file.

    :param kept_bytes: how much of each block comes with its record.
    :param on_damage: called where a record is damaged or cut short, before the next whole one is given.
    :raises MissingExtraError: if the file is zstd, and no package for that is installed.
    :raises OSError: if the file cannot be read.
    """
    yield from _records(open_stream(file, codec_of(file)), kept_bytes, on_damage)


def read_record(
    file: BinaryIO, place: Place | int, *, kept_bytes: int = KEPT_BYTES, codec: Codec | None = None
) -> Record | None:
    """Return the whole record at a place; None if there is none.

    :param place: its offset, or for a file with many records in one member, its `Record.place`.
    :param codec: what `codec_of` has returned for the file, if you read many records.
    """
    place = place if isinstance(place, Place) else Place(place)
    stream = open_stream(file, codec or codec_of(file), place)
    stream.has(_START_BYTES)
    return _record(stream, kept_bytes) if _START.match(stream.data, stream.at) else None


def open_block(file: BinaryIO, record: Record, *, codec: Codec | None = None) -> Iterator[bytes]:
    """Yield the whole block of a record in pieces. The file is read only if `record.block` is not all of it."""
    if record.is_block_whole:
        yield record.block
        return
    stream = open_stream(file, codec or codec_of(file), record.place)
    left = record.size
    if _header(stream) is None:
        return
    while left and (stream.has(1) or stream.next_member()):
        piece = stream.take(left)
        left -= len(piece)
        if piece:
            yield piece


def open_body(file: BinaryIO, record: Record, *, codec: Codec | None = None) -> Iterator[bytes]:
    """Yield the body of the HTTP message in a record, without chunked framing, still in its Content-Encoding."""
    message = message_of(record.block)
    pieces = _behind(open_block(file, record, codec=codec), message.body_at)
    return dechunked(pieces) if message.is_chunked else pieces


def body_of_member(member: bytes) -> bytes | None:
    """Return the body of a response whose record is one small gzip member, as `WarcWriter` writes it.

    It takes a tenth of the time of `read_record`. None for any other record: that may be able to read it.
    """
    text = gunzip_in_one_step(member, _MAX_ONE_STEP)
    if text is None or not text.startswith(_WRITTEN_START) or not text.endswith(_WRITTEN_END):
        return None
    block_at = text.find(_WRITTEN_END) + len(_WRITTEN_END)
    body_at = text.find(_WRITTEN_END, block_at) + len(_WRITTEN_END)
    end = len(text) - len(_WRITTEN_END)
    length = _WRITTEN_LENGTH.search(text, 0, block_at)
    is_whole = body_at <= end and length is not None and block_at + int(length[1]) == end
    return text[body_at:end] if is_whole and text.find(b"\n\n", block_at, body_at) < 0 else None


def _behind(pieces: Iterator[bytes], skip: int) -> Iterator[bytes]:
    for piece in pieces:
        if len(piece) > skip:
            yield piece[skip:]
        skip = max(0, skip - len(piece))


def _records(stream: Stream, kept_bytes: int, on_damage: OnDamage) -> Iterator[Record]:
    is_reported = False  # until the next whole record, one report is enough
    while True:
        is_found, is_whole = _find(stream)
        at = stream.place.offset
        record = _record(stream, kept_bytes) if is_found else None
        is_damaged = not is_whole or (is_found and record is None)
        if is_damaged and not is_reported:
            is_reported = True
            on_damage(at)
        if record is not None:
            is_reported = False
            yield record
        elif not is_found:
            return


def _find(stream: Stream) -> tuple[bool, bool]:
    """Go to the start of the next record. Return whether there is one, and whether all before it could be read."""
    is_whole = True
    while True:
        _skip_line_ends(stream)
        if stream.has(_START_BYTES) or stream.at < len(stream.data):
            if _START.match(stream.data, stream.at):
                return True, is_whole
            is_whole = False
            if _search(stream):
                return True, False
        elif stream.is_broken:
            is_whole &= stream.is_at_end
            if not stream.find_member():
                return False, is_whole
        elif not stream.next_member():
            return False, is_whole


def _search(stream: Stream) -> bool:
    """Look for the start of a record in the rest of the member."""
    while True:
        match = _NEXT_START.search(stream.data, stream.at)
        if match is not None:
            stream.at = match.start()
            return True
        stream.at = max(stream.at, len(stream.data) - 2 * _START_BYTES)
        if not stream.fill():
            stream.at = len(stream.data)
            return False


def _skip_line_ends(stream: Stream) -> None:
    while stream.has(1):
        match = _LINE_ENDS.match(stream.data, stream.at)
        stream.at = match.end() if match else stream.at
        if stream.at < len(stream.data):
            return


def _record(stream: Stream, kept_bytes: int) -> Record | None:
    """Read the record that starts here. Return None if it is not whole."""
    place = stream.place
    headers = _header(stream)
    if headers is None:
        return None
    length = headers.get("content-length", "")
    if not _LENGTH.fullmatch(length):
        return None
    size = int(length)
    after_header = stream.place.offset
    if isinstance(stream, PlainStream) and size > stream.left:
        return None
    block = _block(stream, size, kept_bytes)
    if block is None:
        return None
    has_more = stream.has(1)
    if stream.is_broken:
        return None
    if has_more and stream.data[stream.at : stream.at + 1] not in (b"\r", b"\n"):
        if isinstance(stream, PlainStream):
            stream.go_to(after_header)  # its length is wrong, so the next record may be inside
        return None
    _skip_line_ends(stream)
    if stream.is_broken:
        return None
    return Record(headers, size, block, place, _length(stream, place))


def _length(stream: Stream, place: Place) -> int:
    """Return the length of a record, whose end has been reached."""
    if isinstance(stream, PlainStream):
        return stream.place.offset - place.offset
    if stream.has(1) or place.skip:
        return 0
    stream.next_member()
    return stream.member - place.offset


def _header(stream: Stream) -> dict[str, str] | None:
    """Read the header of a record. Return None if it does not end."""
    start = stream.at
    end = stream.data.find(b"\r\n\r\n", start)
    if end >= 0 and stream.data.find(b"\nWARC/", start, end) < 0:  # the usual case
        text = stream.data[start:end]
        stream.at = end + 4
    elif (found := _odd_header(stream)) is None:
        return None
    else:
        text = found
    return _fields(text.decode("utf-8", "replace"))


def _odd_header(stream: Stream) -> bytes | None:
    """Read a header that may have other line ends, or be longer than what has been read."""
    searched = stream.at
    while (end := _HEADER_END.search(stream.data, searched)) is None:
        known = len(stream.data) - stream.at
        if known > MAX_HEADER_BYTES or not stream.fill():
            stream.at = min(stream.at + 1, len(stream.data))  # so that the search for the next goes on behind it
            return None
        searched = stream.at + max(0, known - _START_BYTES)
    text = stream.data[stream.at : end.start()]
    stream.at = end.end()
    return text if end[1] is not None else None


def _fields(text: str) -> dict[str, str]:
    """Return the headers of a record by their names in lower case, the first of each name."""
    headers: dict[str, str] = {}
    name = ""
    for line in text.split("\n")[1:]:
        if line.startswith((" ", "\t")) and name:
            if len(headers[name]) < _MAX_CONTINUED:
                headers[name] = f"{headers[name]} {line.strip()}".strip()  # as WARC 1.0 allows
            continue
        key, colon, value = line.partition(":")
        if colon and (name := key.strip().lower()) not in headers:
            headers[name] = value.strip()
    return headers


def _block(stream: Stream, size: int, kept_bytes: int) -> bytes | None:
    """Read a block, and return its first bytes. Return None if it is cut short.

    It may go on in the next member, unless a record starts there.
    """
    kept: list[bytes] = []
    left = min(size, kept_bytes)
    rest = size - left
    while left:
        if not _has_more(stream):
            return None
        piece = stream.take(left)
        left -= len(piece)
        kept.append(piece)
    while rest and (rest := stream.skip(rest)):
        if not _has_more(stream):
            return None
    return kept[0] if len(kept) == 1 else b"".join(kept)


def _has_more(stream: Stream) -> bool:
    while not stream.has(1):
        if stream.is_broken or not stream.next_member():
            return False
        stream.has(_START_BYTES)
        if _START.match(stream.data, stream.at):
            return False
    return True
