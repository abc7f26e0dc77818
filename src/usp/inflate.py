"""Inflate gzip and deflate data in pieces, and salvage as much as possible of damaged data.

`inflated` is the one function for a `.gz` file, for a Content-Encoding, and for both at once. It recognizes compression
by the first bytes of the data, never by a name or a header alone. The output of all layers counts against one `Budget`.
`note(code)` is called for problems, with a code of `usp.objects.codes.CODES`.

There are two engines, isal and zlib. isal is twice as fast, but it reads on where zlib finds damage, its state cannot
be copied, and it swallows a byte that follows deflate data. So isal inflates gzip only, whose checksum says at the end
whether all bytes are right. If they are not, `inflated` raises `DamagedError`; drop its output and start again with
zlib, as `with_fastest_engine` does. The result is then the same without isal, except for data that isal inflates with
the right checksum and zlib refuses.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple, TypeVar

from usp.limits import MAX_SITEMAP_BYTES

__all__ = [
    "GZIP_MAGIC",
    "PIECE_BYTES",
    "ZLIB",
    "Budget",
    "DamagedError",
    "Engine",
    "engines",
    "gunzip_in_one_step",
    "gunzip_in_pieces",
    "inflated",
    "may_be_compressed",
    "split",
    "transport_decoded",
    "with_fastest_engine",
]

GZIP_MAGIC = b"\x1f\x8b"
#: The size of output pieces, at most. From 128 KiB on, glibc requests each block of memory from the system, which takes
#: longer than inflating does. Input pieces are smaller, because text grows about tenfold.
PIECE_BYTES = 3 << 15
_INPUT_BYTES = 1 << 14
#: A gzip file, sent with gzip compression, and compressed once more by mistake.
MAX_LAYERS = 3
#: What each further gzip member costs, besides its output: a small file can hold millions of empty members.
MEMBER_COST = 256
_GZIP, _ZLIB, _RAW = 31, 15, -15  # window sizes, as zlib names the formats
# Flags of a gzip header that isal ignores: a checksum of the header, and reserved flags.
# https://www.rfc-editor.org/rfc/rfc1952#section-2.3.1
_FLAGS_FOR_ZLIB = 0b1110_0010
_FLAGS_END = 4  # bytes of a header up to its flags
_LIKELY_RATIO = 16  # most sitemaps are not compressed further
_MAX_JOINED = 4_096  # pieces
_DEFLATE_TRIAL_BYTES = 1024  # longer than the tables of a block
_TEXT_TRIAL_BYTES = 64
_TEXT_BYTES = bytes([9, 10, 13, *range(32, 127)])

Note = Callable[[str], None]
Result = TypeVar("Result")


class DamagedError(Exception):
    """isal found damage. Drop its output and inflate with zlib."""


class Engine(NamedTuple):
    """A library that inflates: `zlib.decompressobj` or the like of it in isal, and the exception that it raises."""

    decompressobj: Callable[[int], Any]
    error: type[Exception]


ZLIB = Engine(zlib.decompressobj, zlib.error)


@cache
def engines() -> tuple[Engine, ...]:
    """Return the engines to try, the fastest first. The last is zlib."""
    try:
        from isal import igzip_lib  # imported here, because many programs inflate nothing
    except ImportError:
        return (ZLIB,)
    error: Any = igzip_lib.error
    # Not isal_zlib, which makes each piece in several steps and takes the GIL for each step.
    return Engine(lambda _: igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP), error), ZLIB


class Budget:
    """Counts how many bytes all layers together may still produce. A limit of None means any number."""

    __slots__ = ("_left", "_note", "is_spent")

    def __init__(self, limit: int | None, note: Note) -> None:
        self._left = limit
        self._note = note
        self.is_spent = False

    def take(self, piece: bytes) -> bytes:
        """Return the piece, cut to what is left of the budget."""
        left = self._left
        if left is None:
            return piece
        if len(piece) > left:
            self.is_spent = True
            self._note("T804")
            piece = piece[:left]
        self._left = left - len(piece)
        return piece

    def charge(self, size: int) -> None:
        """Spend budget on work that produces no bytes."""
        if self._left is None:
            return
        if size > self._left:
            self.is_spent = True
            self._note("T804")
        self._left = max(self._left - size, 0)

    def limited(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield pieces until the budget is spent."""
        for piece in pieces:
            yield self.take(piece)
            if self.is_spent:
                return


class _Source:
    """Iterates over pieces, and can look ahead."""

    __slots__ = ("_ahead", "_pieces")

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._ahead = b""

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        piece, self._ahead = self._ahead, b""
        return piece or next(self._pieces)

    def push(self, piece: bytes) -> None:
        """Put a piece back, so that it comes next."""
        self._ahead = piece + self._ahead

    def head(self, size: int = 2) -> bytes:
        """Return the next bytes without taking them: at least `size`, or all that are left."""
        while len(self._ahead) < size:
            piece = next(self._pieces, None)
            if piece is None:
                break
            self._ahead += piece
        return self._ahead

    def head_behind_zeros(self, size: int) -> bytes:
        """Skip bytes that are 0, and return the next ones as `head` does."""
        while (head := self.head(size)) and not head[0]:
            self._ahead = head.lstrip(b"\0")
        return head


def split(data: bytes, size: int = PIECE_BYTES) -> Iterator[bytes]:
    """Return an iterator over the data in pieces."""
    if len(data) <= size:
        return iter((data,) if data else ())
    return (data[i : i + size] for i in range(0, len(data), size))


def gunzip_in_one_step(data: bytes, most: int) -> bytes | None:
    """Return gzip data inflated by isal in one step; None unless it is one undamaged member of at most `most` bytes."""
    texts = _gunzipped(data, most, _LIKELY_RATIO * len(data))
    return None if texts is None else texts[0] if len(texts) == 1 else b"".join(texts)


def gunzip_in_pieces(data: bytes, most: int) -> list[bytes] | None:
    """Do the same, but return the pieces of the text: memory for a large text, all at once, takes long to get."""
    return _gunzipped(data, most, min(PIECE_BYTES, _LIKELY_RATIO * len(data)))


def _gunzipped(data: bytes, most: int, size: int) -> list[bytes] | None:
    engine = engines()[0]
    if engine is ZLIB or not data.startswith(GZIP_MAGIC):
        return None
    inflater = engine.decompressobj(_GZIP)
    texts: list[bytes] = []
    try:
        while not inflater.eof:
            # isal allocates all that it may return, and keeps what it has not read.
            text = inflater.decompress(b"" if texts else data, min(size, most))
            texts.append(text)
            most -= len(text)
            if not inflater.eof and (not most or not text):
                return None
    except engine.error:
        return None
    return None if inflater.unused_data or texts[0].startswith(GZIP_MAGIC) else texts


def may_be_compressed(data: bytes, encoding: str | None) -> bool:
    """Return whether `inflated` may find a layer of compression."""
    return data.startswith(GZIP_MAGIC) or "deflate" in (encoding or "").lower()


def inflated(
    pieces: Iterable[bytes],
    note: Note,
    *,
    encoding: str | None = None,
    limit: int | None = MAX_SITEMAP_BYTES,
    layers: int = MAX_LAYERS,
    engine: Engine = ZLIB,
) -> Iterator[bytes]:
    """Yield the data without its layers of compression: first those of its Content-Encoding, then those of the file.

    :param encoding: the Content-Encoding header.
    :param limit: how many bytes all layers together may produce; None for any number. More than that is problem T804.
    :param layers: how many layers the file itself may have.
    :param engine: what inflates gzip.
    :raises DamagedError: if the data is damaged and the engine is not zlib.

    `note` gets each code only once, even if it applies to several layers.
    """
    noted: set[str] = set()

    def note_once(code: str) -> None:
        if code not in noted:
            noted.add(code)
            note(code)

    budget = Budget(limit, note_once)
    source = uncompressed = _Source(pieces)
    for window in _expected(encoding, layers):
        head = source.head()
        if head.startswith(GZIP_MAGIC):
            source = _Source(_inflate(_Source(_cut(source)), _GZIP, engine, budget, note_once))
        elif window == _RAW and (found := _deflate_window(source.head(_DEFLATE_TRIAL_BYTES))):
            source = _Source(_inflate(_Source(_cut(source)), found, ZLIB, budget, note_once))
    return _joined(source) if source is not uncompressed else budget.limited(uncompressed)


def with_fastest_engine(attempt: Callable[[Engine], Result]) -> Result:
    """Return the result of `attempt(engine)` with the fastest engine that does not raise `DamagedError`."""
    for engine in engines()[:-1]:
        try:
            return attempt(engine)
        except DamagedError:
            continue
    return attempt(ZLIB)


def transport_decoded(data: bytes, content_encoding: str, limit: int | None, note: Note) -> bytes:
    """Return a body without the layers of compression that its Content-Encoding names, if it really has them."""

    def decoded(engine: Engine) -> tuple[bytes, list[str]]:
        codes: list[str] = []
        pieces = inflated(split(data), codes.append, encoding=content_encoding, limit=limit, layers=0, engine=engine)
        return b"".join(pieces), codes

    found, codes = with_fastest_engine(decoded)
    for code in codes:
        note(code)
    return found


def _expected(encoding: str | None, layers: int) -> list[int]:
    """Return the layers that may be there, the outermost first. What claims to be deflate may be gzip."""
    names = [name.strip() for name in (encoding or "").lower().split(",")]
    windows = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": _RAW}
    stated = [windows[name] for name in reversed(names) if name in windows]
    return stated[:MAX_LAYERS] + [_GZIP] * layers


def _deflate_window(head: bytes) -> int | None:
    """Return the window size for data that claims to be deflate, or None if it is not deflate.

    Deflate has no magic bytes, and some servers leave out the zlib header. So the data is inflated on trial, until the
    first byte comes out. Data that starts with 64 bytes of text is not deflate, although some texts can be inflated for
    a while.
    """
    # https://www.rfc-editor.org/rfc/rfc1950#section-2.2
    is_zlib = len(head) >= 2 and head[0] & 0x0F == 8 and head[0] >> 4 <= 7 and (head[0] << 8 | head[1]) % 31 == 0
    start = head[:_TEXT_TRIAL_BYTES]
    if len(start) == _TEXT_TRIAL_BYTES and not start.translate(None, _TEXT_BYTES):
        return None
    window = _ZLIB if is_zlib else _RAW
    inflater = zlib.decompressobj(window)
    try:
        return window if inflater.decompress(head, 1) or inflater.eof else None
    except zlib.error:
        return None


def _cut(pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield from split(piece, _INPUT_BYTES)


def _joined(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Join small pieces: a file of a million tiny gzip members inflates to a million tiny pieces.

    Now and then a piece is small or empty, so that whoever reads them can stop.
    """
    small: list[bytes] = []
    size = 0
    for piece in pieces:
        small.append(piece)
        size += len(piece)
        if size >= PIECE_BYTES // 2 or len(small) >= _MAX_JOINED:
            yield b"".join(small)
            small.clear()
            size = 0
    if size:
        yield b"".join(small)


def _inflate(source: _Source, window: int, engine: Engine, budget: Budget, note: Note) -> Iterator[bytes]:
    """Inflate one layer. Several gzip members are one stream, and zeros behind a member are skipped."""
    has_next_member, is_further = True, False
    head = source.head(_FLAGS_END)
    while has_next_member and not budget.is_spent:
        is_odd = window != _GZIP or len(head) < _FLAGS_END or head[_FLAGS_END - 1] & _FLAGS_FOR_ZLIB
        chosen = ZLIB if is_odd else engine
        if is_further and chosen is not ZLIB:
            yield from _tiny_members(source, window, chosen, budget)
            if budget.is_spent:
                return
        is_further = True
        is_whole = yield from _member(source, window, chosen, budget, note)
        head = source.head_behind_zeros(_FLAGS_END) if is_whole else b""
        has_next_member = window == _GZIP and head.startswith(GZIP_MAGIC)
        if has_next_member:
            budget.charge(MEMBER_COST)
        elif head:
            note("T802")
    # Read the outer layer to its end, so that its damage is found wherever the pieces are cut.
    while not budget.is_spent and next(source, b""):
        pass


def _tiny_members(source: _Source, window: int, engine: Engine, budget: Budget) -> Iterator[bytes]:
    """Inflate with isal those members at the start that are followed by another one within the same piece.

    `_member` does the same for any member. For millions of tiny ones it takes twice as long.
    """
    piece = next(source, b"")
    while True:
        inflater = engine.decompressobj(window)
        try:
            found = inflater.decompress(piece, PIECE_BYTES)
        except engine.error as error:
            raise DamagedError from error
        rest = inflater.unused_data if inflater.eof else b""
        has_next = rest.startswith(GZIP_MAGIC) and len(rest) >= _FLAGS_END
        if not has_next or rest[_FLAGS_END - 1] & _FLAGS_FOR_ZLIB or budget.is_spent:
            source.push(piece)
            return
        yield budget.take(found)
        budget.charge(MEMBER_COST)
        piece = rest


def _member(source: _Source, window: int, engine: Engine, budget: Budget, note: Note) -> Generator[bytes, None, bool]:
    """Inflate one member of a layer. Return whether it came to its end."""
    inflater = engine.decompressobj(window)
    is_zlib = engine is ZLIB
    while True:
        needs_input = is_zlib or inflater.needs_input  # isal keeps unused input; zlib hands it back
        piece = next(source, b"") if needs_input else b""
        before = inflater.copy() if is_zlib else None
        try:
            found = inflater.decompress(piece, PIECE_BYTES)
        except engine.error as error:
            if before is None:
                raise DamagedError from error
            note("T801")
            yield from budget.limited(_salvaged(before, piece))
            return False
        yield budget.take(found)
        if budget.is_spent:
            return False
        if inflater.eof:
            source.push(inflater.unused_data)
            return True
        if needs_input and not piece and not found:
            break
        if is_zlib:
            source.push(inflater.unconsumed_tail)
    if not is_zlib:
        raise DamagedError
    note("T801")
    return False


def _salvaged(inflater: Any, piece: bytes) -> Iterator[bytes]:
    """Yield what can be inflated of a damaged piece, byte by byte."""
    for i in range(len(piece)):
        try:
            yield inflater.decompress(piece[i : i + 1])
        except zlib.error:
            return
