"""The WARC files of an archive: a file is one, and a WACZ, which is a zip archive, has some inside.

A part is opened anew for each use, so nothing stays open. Where records cannot be reached one by one, because one gzip
member holds many or the zip archive compresses them once more, the part is unpacked into a temporary file first.

https://specs.webrecorder.net/wacz/1.1.1/
"""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO, cast
from weakref import finalize

from usp.exceptions import InvalidArgumentError, MissingExtraError
from usp.warc.codecs import SKIPPABLE, ZSTD_MAGIC, Codec, codec_of
from usp.warc.reading import is_warc, read_records
from usp.warc.streams import open_stream

__all__ = ["Part", "archive_files", "is_web_archive", "open_parts"]

_ZIP = (b"PK\3\4", b"PK\5\6")
_IN_WACZ = re.compile(r"(?:.*/)?archive/[^/]+\.warc(?:\.gz|\.zst)?", re.IGNORECASE)
_IN_FOLDER = re.compile(r"[^.].*\.(?:warc(?:\.gz|\.zst)?|wacz)", re.IGNORECASE | re.DOTALL)
_LOCAL_HEADER_BYTES = 30  # https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT section 4.3.7
_COPY_BYTES = 1 << 20
_MAX_UNPACKED_BYTES = 1 << 35
# A part that unpacks to more than this many times its size is no archive of a website, if it is a large one.
_MAX_RATIO = 200
_MANY_BYTES = 1 << 30
_BUFFER_BYTES = 1 << 16


@dataclass(frozen=True, eq=False)
class Part:
    """A WARC file: its name for messages, its size, how to open it, and how it is compressed."""

    name: str
    size: int
    open: Callable[[], AbstractContextManager[BinaryIO]]
    codec: Codec | None


def is_web_archive(path: str) -> bool:
    """Return whether a file is a WARC, or a WACZ, by its content.

    :raises MissingExtraError: if it is compressed with zstd, called ".warc.zst", and no package for zstd is installed.
    """
    with suppress(OSError), open(path, "rb") as file:
        head = file.read(4)
        if head in _ZIP:
            return bool(_warcs_in(path))
        try:
            return _may_be_warc(head) and is_warc(file)
        except MissingExtraError:
            if path.lower().endswith(".warc.zst"):
                raise
    return False


def archive_files(path: str) -> list[str]:
    """Return the web archives of a path: a file is one, and a folder has those whose names say so, in their order."""
    if not os.path.isdir(path):
        return [path]
    names = sorted(name for name in os.listdir(path) if _IN_FOLDER.fullmatch(name))
    return [file for name in names if os.path.isfile(file := os.path.join(path, name))]


def _may_be_warc(head: bytes) -> bool:
    return head == b"WARC" or head.startswith((b"\x1f\x8b", ZSTD_MAGIC)) or SKIPPABLE.match(head) is not None


def _warcs_in(path: str) -> list[zipfile.ZipInfo]:
    """Return the WARC files in a zip archive, if it is laid out like a WACZ.

    Members that share their bytes with one before are left out: a small archive could have thousands of large ones.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            found = [member for member in archive.infolist() if _IN_WACZ.fullmatch(member.filename)]
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        return []
    shared: set[zipfile.ZipInfo] = set()
    end = 0
    for member in sorted(found, key=lambda member: member.header_offset):
        if member.header_offset < end:
            shared.add(member)
        end = max(end, member.header_offset + _LOCAL_HEADER_BYTES + member.compress_size)
    return [member for member in found if member not in shared]


def open_parts(path: str) -> Iterator[Part]:
    """Give the WARC files of a path.

    :raises OSError: if it cannot be read.
    :raises InvalidArgumentError: if a part is too large to unpack.
    """
    with open(path, "rb") as file:
        is_zip = file.read(4) in _ZIP
    if not is_zip:
        yield _part(path, lambda: _file(path))
        return
    for member in _warcs_in(path):
        yield _part(f"{path}: {member.filename}", _opener(path, member))


def _part(name: str, opener: Callable[[], AbstractContextManager[BinaryIO]]) -> Part:
    with opener() as file:
        codec = codec_of(file)
        if codec is not None:
            file.seek(0)
            second = next(islice(read_records(file, kept_bytes=0), 1, None), None)
            if second is not None and second.place.skip:
                opener, codec = _unpacked(_inflated(file, codec), name, file.seek(0, os.SEEK_END)), None
    with opener() as file:
        return Part(name, file.seek(0, os.SEEK_END), opener, codec)


def _file(path: str) -> AbstractContextManager[BinaryIO]:
    return open(path, "rb", buffering=_BUFFER_BYTES)


def _opener(path: str, member: zipfile.ZipInfo) -> Callable[[], AbstractContextManager[BinaryIO]]:
    if member.compress_type == zipfile.ZIP_STORED and not member.flag_bits & 1:
        return lambda: _stored_member(path, member)
    return _unpacked(_member_pieces(path, member), f"{path}: {member.filename}", member.compress_size)


@contextmanager
def _stored_member(path: str, member: zipfile.ZipInfo) -> Iterator[BinaryIO]:
    """Open a member that is not compressed, as a part of the file."""
    with open(path, "rb") as file:
        file.seek(member.header_offset)
        header = file.read(_LOCAL_HEADER_BYTES)
        names = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        start = member.header_offset + _LOCAL_HEADER_BYTES + names
        section = _Section(file, start, member.file_size)
        yield cast("BinaryIO", io.BufferedReader(section, _BUFFER_BYTES))


class _Section(io.RawIOBase):
    """A part of a file, as a file."""

    def __init__(self, file: BinaryIO, start: int, size: int) -> None:
        self._file = file
        self._start = start
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place in the part."""
        self._at = max(0, offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence])
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # of typeshed's Buffer
        """Read some bytes."""
        self._file.seek(self._start + self._at)
        found = self._file.read(max(0, min(len(buffer), self._size - self._at)))
        buffer[: len(found)] = found
        self._at += len(found)
        return len(found)


def _member_pieces(path: str, member: zipfile.ZipInfo) -> Iterator[bytes]:
    """Give what can be read of a member."""
    # zlib, lzma and bz2 each have errors of their own for damaged data.
    with suppress(Exception), zipfile.ZipFile(path) as archive, archive.open(member) as file:
        while piece := file.read(_COPY_BYTES):
            yield piece


def _inflated(file: BinaryIO, codec: Codec) -> Iterator[bytes]:
    """Give what can be inflated of a file, member by member."""
    stream = open_stream(file, codec)
    while True:
        while stream.has(1):
            yield stream.take(len(stream.data))
        if not (stream.find_member() if stream.is_broken else stream.next_member()):
            return


def _unpacked(pieces: Iterator[bytes], name: str, packed: int) -> Callable[[], AbstractContextManager[BinaryIO]]:
    """Write a part to a temporary file, which is closed when nothing refers to the part any more.

    :param packed: the size of the part.
    """
    import tempfile  # slow to import, and seldom needed

    file = cast("BinaryIO", tempfile.TemporaryFile(prefix="usp-"))  # noqa: SIM115 -- closed by the finalizer
    size, most = 0, min(_MAX_UNPACKED_BYTES, max(_MANY_BYTES, packed * _MAX_RATIO))
    for piece in pieces:
        size += len(piece)
        if size > most:
            file.close()
            raise InvalidArgumentError(f"{name} is too large to unpack; write it with one gzip member per record")
        file.write(piece)

    def opener() -> AbstractContextManager[BinaryIO]:
        return nullcontext(file)

    finalize(opener, file.close)
    return opener
