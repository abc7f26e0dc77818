"""Inflating: gzip and deflate, in pieces, and all that can be had of damaged data.

`inflated` is the one routine for a `.gz` file, a transport encoding, and both at once. Compression is known by the
first bytes of the data, never by a name or a header alone. What all layers produce counts against one `Budget`.
`note(code)` is called for what is wrong, with a code of `usp.objects.codes.CODES`.

There are two engines. isal is twice as fast, but it reads on where zlib sees damage, cannot be copied, and swallows a
byte that follows deflate data. So it does gzip only, whose checksum says at the end whether all went well. If not,
`inflated` raises `Unsound`, and the caller must drop what it was given and begin again with zlib: see `with_fastest`.
In that way the result is the same without isal, but for data that isal reads whole, with a right checksum, and zlib
does not.
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
    "Engine",
    "Unsound",
    "engines",
    "inflated",
    "may_be_packed",
    "split",
    "transport_decoded",
    "with_fastest",
]

GZIP_MAGIC = b"\x1f\x8b"
#: Pieces that come out are about this long: less than what C libraries get from the system anew each time (128 KiB in
#: glibc), which costs more than inflating does. Of what goes in, less is taken at a time, as it grows about tenfold.
PIECE_BYTES = 3 << 15
_INPUT_BYTES = 1 << 14
#: A file gzipped, sent gzipped, and gzipped once more by mistake.
MAX_LAYERS = 3
#: What each further gzip member costs of the budget, beside its bytes: there may be millions of empty ones in a bomb.
MEMBER_COST = 256
_GZIP, _ZLIB, _RAW = 31, 15, -15
# A checksum of the header, and reserved flags, which isal passes over.
# https://www.rfc-editor.org/rfc/rfc1952#section-2.3.1
_FLAGS_FOR_ZLIB = 0b1110_0010
_DEFLATE_TRIAL_BYTES = 1024  # more than the tables of a block take
_TEXT_TRIAL_BYTES = 64
_TEXT_BYTES = bytes([9, 10, 13, *range(32, 127)])

Note = Callable[[str], None]
Result = TypeVar("Result")


class Unsound(Exception):
    """isal met damage: what it gave must not be used."""


class Engine(NamedTuple):
    """What inflates: the maker of a `zlib.decompressobj`, or of what isal has for it; and what that raises."""

    decompressobj: Callable[[int], Any]
    error: type[Exception]


ZLIB = Engine(zlib.decompressobj, zlib.error)


@cache
def engines() -> tuple[Engine, ...]:
    """The engines to be tried, one after the other; the last is zlib."""
    try:
        from isal import igzip_lib  # imported only when something is inflated
    except ImportError:
        return (ZLIB,)
    error: Any = igzip_lib.error
    # Not isal_zlib: that makes each piece in several steps, from small to large, with the GIL taken for each.
    return Engine(lambda _: igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP), error), ZLIB


class Budget:
    """How many bytes may still be produced, by all layers together; None for any number."""

    __slots__ = ("_left", "_note", "is_spent")

    def __init__(self, limit: int | None, note: Note) -> None:
        self._left = limit
        self._note = note
        self.is_spent = False

    def take(self, piece: bytes) -> bytes:
        """As much of the piece as there is budget for."""
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
        """Spend budget on work that gives no bytes."""
        if self._left is not None:
            self.take(bytes(size))

    def limited(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The pieces, as far as the budget goes."""
        for piece in pieces:
            yield self.take(piece)
            if self.is_spent:
                return


class _Feed:
    """An iterator of pieces that lets one look ahead."""

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
        """Put a piece back, to come next."""
        self._ahead = piece + self._ahead

    def head(self, size: int = 2) -> bytes:
        """What comes next, of at least this many bytes where there are so many."""
        while len(self._ahead) < size:
            piece = next(self._pieces, None)
            if piece is None:
                break
            self._ahead += piece
        return self._ahead

    def skip_zeros(self) -> None:
        """Go on to the next byte that is not 0."""
        while head := self.head(1):
            self._ahead = head.lstrip(b"\0")
            if self._ahead:
                return


def split(data: bytes, size: int = PIECE_BYTES) -> Iterator[bytes]:
    """The data in pieces."""
    if len(data) <= size:
        return iter((data,) if data else ())
    return (data[i : i + size] for i in range(0, len(data), size))


def gunzipped_at_once(data: bytes, most: int) -> bytes | None:
    """The data, one sound member of gzip, inflated in one step by isal; None if it is more than that, or too large."""
    engine = engines()[0]
    if engine is ZLIB or not data.startswith(GZIP_MAGIC):
        return None
    inflater = engine.decompressobj(_GZIP)
    try:
        text: bytes = inflater.decompress(data, most)
    except engine.error:
        return None
    is_all = bool(inflater.eof) and not inflater.unused_data and not text.startswith(GZIP_MAGIC)
    return text if is_all else None


def may_be_packed(data: bytes, encoding: str | None) -> bool:
    """Whether `inflated` may find something to take off."""
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
    """The data with its layers of compression taken off: those of its Content-Encoding, then those of the file itself.

    A code is noted once, however many layers it is true of. Raises `Unsound` with any engine but zlib, if the data is
    damaged.
    """
    noted: set[str] = set()

    def note_once(code: str) -> None:
        if code not in noted:
            noted.add(code)
            note(code)

    budget = Budget(limit, note_once)
    feed = bare = _Feed(pieces)
    for window in _expected(encoding, layers):
        head = feed.head()
        if head.startswith(GZIP_MAGIC):
            feed = _Feed(_inflate(_Feed(_cut(feed)), _GZIP, engine, budget, note_once))
        elif window == _RAW and (found := _deflate_window(feed.head(_DEFLATE_TRIAL_BYTES))):
            feed = _Feed(_inflate(_Feed(_cut(feed)), found, ZLIB, budget, note_once))
    return _gathered(feed) if feed is not bare else budget.limited(bare)


def with_fastest(attempt: Callable[[Engine], Result]) -> Result:
    """What the attempt gives with the fastest engine that does not find the data damaged."""
    for engine in engines()[:-1]:
        try:
            return attempt(engine)
        except Unsound:
            continue
    return attempt(ZLIB)


def transport_decoded(data: bytes, content_encoding: str, limit: int | None, note: Note) -> bytes:
    """A body without the layers that its Content-Encoding announces, if they are really there."""

    def decoded(engine: Engine) -> tuple[bytes, list[str]]:
        codes: list[str] = []
        pieces = inflated(split(data), codes.append, encoding=content_encoding, limit=limit, layers=0, engine=engine)
        return b"".join(pieces), codes

    found, codes = with_fastest(decoded)
    for code in codes:
        note(code)
    return found


def _expected(encoding: str | None, layers: int) -> list[int]:
    """The layers that there may be, from the outermost: gzip, or deflate, which may turn out to be gzip."""
    names = [name.strip() for name in (encoding or "").lower().split(",")]
    windows = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": _RAW}
    stated = [windows[name] for name in reversed(names) if name in windows]
    return stated[:MAX_LAYERS] + [_GZIP] * layers


def _deflate_window(head: bytes) -> int | None:
    """How data that is said to be deflate can be inflated, None if it is not deflate.

    Deflate has no mark of its own, and some servers leave out its zlib header, so it can only be tried: until it gives
    a first byte. A text of any length is not deflate, though some texts could be inflated for a while.
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


def _gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
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
    if size:
        yield b"".join(small)


def _inflate(feed: _Feed, window: int, engine: Engine, budget: Budget, note: Note) -> Iterator[bytes]:
    """One layer. gzip members one after another are one stream; padding with zeros is nothing."""
    is_going_on = True
    while is_going_on and not budget.is_spent:
        flags = feed.head(4)[3:4]
        is_odd = window != _GZIP or not flags or flags[0] & _FLAGS_FOR_ZLIB
        is_whole = yield from _member(feed, window, ZLIB if is_odd else engine, budget, note)
        if is_whole:
            feed.skip_zeros()
        head = feed.head() if is_whole else b""
        is_going_on = window == _GZIP and head.startswith(GZIP_MAGIC)
        if is_going_on:
            budget.charge(MEMBER_COST)
        elif head:
            note("T802")
    # To the end, so that damage in the layer outside is found wherever the pieces are cut.
    while not budget.is_spent and next(feed, b""):
        pass


def _member(feed: _Feed, window: int, engine: Engine, budget: Budget, note: Note) -> Generator[bytes, None, bool]:
    """One member of a layer; returns whether it came to its end."""
    inflater = engine.decompressobj(window)
    is_zlib = engine is ZLIB
    while True:
        is_hungry = is_zlib or inflater.needs_input  # isal keeps what it did not take in, zlib gives it back
        piece = next(feed, b"") if is_hungry else b""
        before = inflater.copy() if is_zlib else None
        try:
            found = inflater.decompress(piece, PIECE_BYTES)
        except engine.error as error:
            if before is None:
                raise Unsound from error
            note("T801")
            yield from budget.limited(_salvaged(before, piece))
            return False
        yield budget.take(found)
        if budget.is_spent:
            return False
        if inflater.eof:
            feed.push(inflater.unused_data)
            return True
        if is_hungry and not piece and not found:
            break
        if is_zlib:
            feed.push(inflater.unconsumed_tail)
    if not is_zlib:
        raise Unsound
    note("T801")
    return False


def _salvaged(inflater: Any, piece: bytes) -> Iterator[bytes]:
    """What can be inflated of a piece that has an error in it, byte by byte."""
    for i in range(len(piece)):
        try:
            yield inflater.decompress(piece[i : i + 1])
        except zlib.error:
            return
