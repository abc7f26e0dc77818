"""The bytes of a WARC file, without compression: plain, gzip or zstd, in members or frames that hold one record each.

A stream gives the bytes of one member at a time in `data`, from `at` on. So a reader knows where members start, which
is where a record can be found again, and what belongs to a member that is damaged. A plain file is one member.

Nothing that a file contains raises: a member that cannot be inflated `is_broken`, and `find_member` goes on behind it.
A file that cannot be read raises OSError, as any file does.
"""

from __future__ import annotations

from contextlib import suppress
from typing import BinaryIO, NamedTuple

from usp.warc.codecs import SKIPPABLE, ZSTD_MAGIC, Codec, Inflater

__all__ = ["START", "MemberStream", "Place", "PlainStream", "Stream", "open_stream"]

PIECE_BYTES = 1 << 16
_INPUT_BYTES = 1 << 14
_MAX_TRIALS = 100_000  # places that look like a member, behind damage
_MAX_AGAIN = 1 << 26  # bytes of broken members that are read again, because other members may start inside


class Place(NamedTuple):
    """Where a record is: the offset of its member in the file, and how many bytes of the member come before it."""

    offset: int
    skip: int = 0


START = Place(0)


def open_stream(file: BinaryIO, codec: Codec | None, place: Place = START) -> Stream:
    """Return the bytes from a place on."""
    stream = PlainStream(file, place.offset) if codec is None else MemberStream(file, codec, place.offset)
    stream.skip(place.skip)
    return stream


class Stream:
    """The bytes of one member after the other."""

    __slots__ = ("_before", "_file", "at", "data", "is_broken", "member")

    def __init__(self, file: BinaryIO, offset: int) -> None:
        self.data = b""
        self.at = 0
        self.member = offset  # where the member starts in the file
        self.is_broken = False  # damaged, or cut short
        self._before = 0  # bytes of the member before `data`
        self._file = file
        file.seek(offset)

    @property
    def place(self) -> Place:
        """Where the next byte is."""
        return Place(self.member, self._before + self.at)

    @property
    def is_at_end(self) -> bool:
        """Whether there is nothing more in the file, not even damage."""
        return False

    def fill(self) -> bool:
        """Read more of the member. Return False if it has ended, or is broken."""
        raise NotImplementedError

    def next_member(self) -> bool:
        """Go on to the next member, once this one has ended. Return False if there is none."""
        raise NotImplementedError

    def find_member(self) -> bool:
        """Go on to the next member with a record, behind damage. Return False if there is none."""
        raise NotImplementedError

    def has(self, size: int) -> bool:
        """Read until so many bytes of the member are there. Return False if it has fewer."""
        while len(self.data) - self.at < size:
            if not self.fill():
                return False
        return True

    def take(self, size: int) -> bytes:
        """Return up to so many bytes, as many as there are without reading."""
        piece = self.data[self.at : self.at + size]
        self.at += len(piece)
        return piece

    def skip(self, size: int) -> int:
        """Skip so many bytes of the member. Return how many are missing."""
        while True:
            there = len(self.data) - self.at
            if size <= there:
                self.at += size
                return 0
            self.at += there
            size -= there
            if not self.fill():
                return size

    def _append(self, found: bytes) -> None:
        if self.at == len(self.data):
            self._before += self.at
            self.data = found
        else:
            self._before += self.at
            self.data = self.data[self.at :] + found
        self.at = 0


class PlainStream(Stream):
    """A file without compression. Every place is an offset."""

    __slots__ = ("_size",)

    def __init__(self, file: BinaryIO, offset: int) -> None:
        self._size = file.seek(0, 2)
        super().__init__(file, offset)

    @property
    def place(self) -> Place:
        """Where the next byte is."""
        return Place(self.member + self._before + self.at)

    @property
    def left(self) -> int:
        """The number of bytes up to the end of the file."""
        return self._size - self.place.offset

    def fill(self) -> bool:
        """Read more."""
        found = self._file.read(PIECE_BYTES)
        if found:
            self._append(found)
        return bool(found)

    def next_member(self) -> bool:
        """Return False: there is one member."""
        return False

    def find_member(self) -> bool:
        """Return False: there is one member."""
        return False

    def skip(self, size: int) -> int:
        """Skip so many bytes, without reading them. Return how many are missing."""
        there = len(self.data) - self.at
        if size <= there:
            self.at += size
            return 0
        missing = max(0, size - self.left)
        self.go_to(self.place.offset + size - missing)
        return missing

    def go_to(self, offset: int) -> None:
        """Go on at another place."""
        self._file.seek(offset)
        self.member, self._before, self.at, self.data = offset, 0, 0, b""


class MemberStream(Stream):
    """A file of compressed members."""

    __slots__ = ("_again", "_codec", "_inflater", "_raw", "_raw_end", "_trials")

    def __init__(self, file: BinaryIO, codec: Codec, offset: int) -> None:
        super().__init__(file, offset)
        self._codec = codec
        self._raw = b""  # compressed bytes that come next, up to the offset `_raw_end`
        self._raw_end = offset
        self._trials = _MAX_TRIALS
        self._again = _MAX_AGAIN
        self._inflater: Inflater | None = None
        self.next_member()

    @property
    def is_at_end(self) -> bool:
        """Whether there is nothing more in the file: the last member was whole, and no other has started."""
        return self._inflater is None and not self._raw and self.member == self._raw_end

    def fill(self) -> bool:
        """Inflate more of the member."""
        inflater = self._inflater
        while inflater is not None and not inflater.eof:
            piece = b""
            if inflater.needs_input:
                piece = self._raw or self._read()
                self._raw = b""
                if not piece:
                    break
            try:
                found = inflater.decompress(piece, PIECE_BYTES)
            except self._codec.errors:
                break
            if found:
                self._append(found)
                return True
        self.is_broken = inflater is None or not inflater.eof
        return False

    def next_member(self) -> bool:
        """Go on to the next member."""
        if self._inflater is not None:
            self._raw = self._inflater.unused_data
        self._inflater = None
        self._skip_padding()
        raw = self._raw
        self.member = self._raw_end - len(raw)
        self.data, self.at, self._before = b"", 0, 0
        self.is_broken = not raw.startswith(self._codec.magic)
        if self.is_broken:
            return bool(raw)
        self._inflater = self._codec.inflater(raw)
        return True

    def find_member(self) -> bool:
        """Look for a member that holds a record, behind the start of this one."""
        self._inflater = None
        start = self.member + 1
        self._again -= self._raw_end - start
        if self._again < 0:  # members inside members could take quadratic time
            start = max(start, self._raw_end - _INPUT_BYTES)
        self._file.seek(start)
        self._raw, self._raw_end = b"", start
        magic = self._codec.magic
        while self._trials > 0:
            at = self._raw.find(magic)
            if at < 0:
                tail = self._raw[-len(magic) + 1 :]
                if not (found := self._read()):
                    return False
                self._raw = tail + found
                continue
            self._raw = self._raw[at:]
            self._trials -= 1
            offset = self._raw_end - len(self._raw)
            if self._is_record():
                self._file.seek(offset)
                self._raw, self._raw_end = b"", offset
                return self.next_member()
            self._raw = self._raw[1:]
        return False

    def _is_record(self) -> bool:
        """Return whether the compressed bytes that come next inflate to the start of a record."""
        while len(self._raw) < 1024 and (found := self._read()):
            self._raw += found
        found = b""
        with suppress(*self._codec.errors):
            found = self._codec.inflater(self._raw).decompress(self._raw[:1024], 5)
        return found.startswith(b"WARC/")

    def _skip_padding(self) -> None:
        """Skip zeros between members, and frames of zstd that have no content."""
        while True:
            while len(self._raw) < 8 and (found := self._read()):
                self._raw += found
            if self._codec.magic == ZSTD_MAGIC and SKIPPABLE.match(self._raw):
                end = self._raw_end - len(self._raw) + 8 + int.from_bytes(self._raw[4:8], "little")
                self._file.seek(end)
                self._raw, self._raw_end = b"", end
            elif self._raw[:1] == b"\0":
                self._raw = self._raw.lstrip(b"\0")
            else:
                return

    def _read(self) -> bytes:
        found = self._file.read(_INPUT_BYTES)
        self._raw_end += len(found)
        return found
