"""Inflating: gzip and deflate, in pieces, and all that can be had of damaged data.

Compression is known by the first bytes of the data, never by a name or a header alone. `note(code)` is called for
what is wrong, with a code of `usp.objects.problem.PROBLEMS`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator

__all__ = ["GZIP_MAGIC", "gathered", "inflated", "limited", "transport_decoded"]

GZIP_MAGIC = b"\x1f\x8b"
PIECE_BYTES = 1 << 16
#: A file gzipped, sent gzipped, and gzipped once more by mistake.
MAX_LAYERS = 3
_GZIP, _ZLIB, _RAW = 31, 15, -15

Note = Callable[[str], None]


def _is_zlib(head: bytes) -> bool:
    """Whether data starts like a zlib stream. https://www.rfc-editor.org/rfc/rfc1950#section-2.2"""
    return len(head) >= 2 and head[0] & 0x0F == 8 and head[0] >> 4 <= 7 and (head[0] << 8 | head[1]) % 31 == 0


class _Pieces:
    """An iterator of pieces that lets one look ahead."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._ahead = b""

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        piece, self._ahead = self._ahead, b""
        return piece or next(self._pieces)

    def push(self, piece: bytes) -> None:
        """Put a piece back, to come next."""
        self._ahead = piece + self._ahead

    def head(self) -> bytes:
        """What comes next, of at least two bytes where there are so many."""
        while len(self._ahead) < 2:
            piece = next(self._pieces, None)
            if piece is None:
                break
            self._ahead += piece
        return self._ahead


def inflated(data: bytes, note: Note, layers: int = MAX_LAYERS) -> Iterator[bytes]:
    """The data with its layers of compression taken off, in pieces."""
    pieces = _Pieces(_split(data))
    for _ in range(layers):
        if not pieces.head().startswith(GZIP_MAGIC):
            break
        pieces = _Pieces(_inflate(pieces, _GZIP, note))
    return pieces


def transport_decoded(data: bytes, content_encoding: str, limit: int | None, note: Note) -> bytes:
    """A body without the one layer that its Content-Encoding announces, if it is really there."""
    encoding = content_encoding.strip().lower()
    pieces: Iterable[bytes] = _split(data)
    if encoding in ("gzip", "x-gzip", "deflate") and data.startswith(GZIP_MAGIC):
        pieces = inflated(data, note, layers=1)
    elif encoding == "deflate":
        # Deflate has no mark of its own, and some servers leave out its zlib header, so it can only be tried.
        tried = _Pieces(_inflate(_Pieces(_split(data)), _ZLIB if _is_zlib(data) else _RAW, lambda code: None))
        pieces = tried if tried.head() else pieces
    return b"".join(pieces if limit is None else limited(pieces, limit, note))


def _split(data: bytes) -> Iterator[bytes]:
    return (data[i : i + PIECE_BYTES] for i in range(0, len(data), PIECE_BYTES))


def gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same in pieces that are not small: a file of a million tiny gzip members is a million tiny pieces."""
    small: list[bytes] = []
    size = 0
    for piece in pieces:
        small.append(piece)
        size += len(piece)
        if size >= PIECE_BYTES // 2:
            yield b"".join(small)
            small.clear()
            size = 0
    if small:
        yield b"".join(small)


def limited(pieces: Iterable[bytes], limit: int, note: Note) -> Iterator[bytes]:
    """The pieces up to this many bytes."""
    left = limit
    for piece in pieces:
        if len(piece) > left:
            note("T804")
            yield piece[:left]
            return
        left -= len(piece)
        yield piece


def _inflate(pieces: _Pieces, window: int, note: Note) -> Iterator[bytes]:
    """One layer. Members one after another are one stream; padding with zeros is nothing."""
    inflater = zlib.decompressobj(window)
    for piece in pieces:
        before = inflater.copy()
        try:
            yield inflater.decompress(piece, PIECE_BYTES)
        except zlib.error:
            note("T801")
            yield from _salvaged(before, piece)
            return
        if not inflater.eof:
            pieces.push(inflater.unconsumed_tail)
            continue
        pieces.push(inflater.unused_data.lstrip(b"\0"))
        head = pieces.head()
        if not head.strip(b"\0"):
            return
        if not head.startswith(GZIP_MAGIC):
            note("T802")
            return
        inflater = zlib.decompressobj(window)
    while tail := inflater.decompress(b"", PIECE_BYTES):
        yield tail
    if not inflater.eof:
        note("T801")


def _salvaged(inflater: zlib._Decompress, piece: bytes) -> Iterator[bytes]:
    """What can be inflated of a piece that has an error in it, byte by byte."""
    for i in range(len(piece)):
        try:
            yield inflater.decompress(piece[i : i + 1])
        except zlib.error:
            return
