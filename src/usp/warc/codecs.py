"""The compression of WARC files: gzip with isal or zlib, and zstd where a package for it is installed.

`codec_of` looks at the first bytes of a file. A zstd file may start with a dictionary that its frames need.

https://iipc.github.io/warc-specifications/specifications/warc-zstd/
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO, NamedTuple, Protocol

from usp.extras import extra
from usp.inflate import GZIP_MAGIC, engines

__all__ = ["SKIPPABLE", "ZSTD_MAGIC", "Codec", "Inflater", "codec_of"]

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
#: The start of a zstd frame without content.
SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18", re.DOTALL)
_DICTIONARY = b"\x5d\x2a\x4d\x18"
_MAX_DICTIONARY_BYTES = 1 << 24
_MAX_WINDOW_BYTES = 1 << 27
# zstandard has no limit for the output of a call. A block of zstd is at least 4 bytes and gives at most 128 KiB.
_ZSTD_INPUT_BYTES = 128
_ODD_FLAGS = 0b1110_0010  # of a gzip header: isal ignores them; see usp.inflate


class Inflater(Protocol):
    """One member, as isal and Python's own modules inflate it."""

    @property
    def needs_input(self) -> bool:
        """Whether `decompress` needs more input to give more output."""

    @property
    def eof(self) -> bool:
        """Whether the member has ended, with the right checksum."""

    @property
    def unused_data(self) -> bytes:
        """What came behind the end."""

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """Return up to `max_length` more bytes."""


class Codec(NamedTuple):
    """A kind of compression: how members start, how to inflate one, and what is raised for damage."""

    magic: bytes
    inflater: Callable[[bytes], Inflater]  # of a member with these first bytes
    errors: tuple[type[Exception], ...]


class _Zlib:
    """Inflates a gzip member with zlib."""

    __slots__ = ("_inflater", "_rest")

    def __init__(self) -> None:
        self._inflater = zlib.decompressobj(31)
        self._rest = b""

    @property
    def needs_input(self) -> bool:
        return not self._rest

    @property
    def eof(self) -> bool:
        return self._inflater.eof

    @property
    def unused_data(self) -> bytes:
        return self._inflater.unused_data

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        found = self._inflater.decompress(self._rest + data if self._rest else data, max_length)
        self._rest = self._inflater.unconsumed_tail
        return found


class _Zstandard:
    """Inflates a frame with the package zstandard, a little at a time."""

    __slots__ = ("_inflater", "_rest")

    def __init__(self, inflater: Any) -> None:
        self._inflater = inflater
        self._rest = b""

    @property
    def needs_input(self) -> bool:
        return not self._rest

    @property
    def eof(self) -> bool:
        return bool(self._inflater.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._inflater.unused_data) + self._rest

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        data = self._rest + data
        pieces, size, at = [], 0, 0
        while at < len(data) and size < max_length and not self._inflater.eof:
            pieces.append(self._inflater.decompress(data[at : at + _ZSTD_INPUT_BYTES]))
            size += len(pieces[-1])
            at += _ZSTD_INPUT_BYTES
        self._rest = data[at:]
        return b"".join(pieces)


def _gzip() -> Codec:
    fastest = engines()[0]
    if fastest.error is zlib.error:
        return Codec(GZIP_MAGIC, lambda head: _Zlib(), (zlib.error,))

    def inflater(head: bytes) -> Inflater:
        is_odd = len(head) < 4 or head[3] & _ODD_FLAGS
        return _Zlib() if is_odd else fastest.decompressobj(31)

    return Codec(GZIP_MAGIC, inflater, (zlib.error, fastest.error))


def _zstd(dictionary: bytes) -> Codec:
    """Return the codec for frames that may need a dictionary. Raises `MissingExtraError` where zstd is missing."""
    with suppress(ImportError):
        from compression import zstd  # type: ignore[import-not-found]  # Python 3.14

        options = {zstd.DecompressionParameter.window_log_max: _MAX_WINDOW_BYTES.bit_length() - 1}
        known = None
        with suppress(zstd.ZstdError, ValueError):  # of a damaged dictionary; then frames cannot be inflated
            known = zstd.ZstdDict(dictionary) if dictionary else None
        return Codec(ZSTD_MAGIC, lambda head: zstd.ZstdDecompressor(known, options), (zstd.ZstdError,))
    library = extra("zstandard", "warc")
    context = library.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES)
    with suppress(library.ZstdError):  # of a damaged dictionary; then frames cannot be inflated
        data = library.ZstdCompressionDict(dictionary) if dictionary else None
        context = library.ZstdDecompressor(dict_data=data, max_window_size=_MAX_WINDOW_BYTES)
    return Codec(ZSTD_MAGIC, lambda head: _Zstandard(context.decompressobj()), (library.ZstdError,))


def codec_of(file: BinaryIO) -> Codec | None:
    """Return how a file is compressed, by its first bytes; None if it is not.

    :raises MissingExtraError: if it is zstd, and no package for that is installed.
    """
    file.seek(0)
    head = file.read(8)
    if head.startswith(GZIP_MAGIC):
        return _gzip()
    if head.startswith(ZSTD_MAGIC) or SKIPPABLE.match(head):
        return _zstd(_dictionary(file, head))
    return None


def _dictionary(file: BinaryIO, head: bytes) -> bytes:
    """Return the dictionary in the first frame of a file. It may be compressed itself."""
    size = int.from_bytes(head[4:8], "little")
    if not head.startswith(_DICTIONARY) or size > _MAX_DICTIONARY_BYTES:
        return b""
    found = file.read(size)
    if not found.startswith(ZSTD_MAGIC):
        return found
    codec = _zstd(b"")
    inflater = codec.inflater(b"")
    pieces, left = [], _MAX_DICTIONARY_BYTES
    with suppress(*codec.errors):
        while left > 0 and not inflater.eof and (found or not inflater.needs_input):
            pieces.append(inflater.decompress(found, left))
            left -= len(pieces[-1])
            found = b""
    return b"".join(pieces)
