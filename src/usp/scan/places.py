"""From offsets in a document to lines and columns.

The scanner notes offsets only, which cost nothing. For the few that are kept, the text is read once more. Columns count
characters: the bytes of UTF-8 that start one. A line ends with LF, CR LF, or a CR alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from usp.objects.problem import Place

__all__ = ["characters", "places_of", "with_line_feeds"]

_LONE_RETURN = re.compile(rb"\r(?!\n)")
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))


def characters(text: bytes) -> int:
    """Return how many characters start in a text, wherever it was cut."""
    return len(text) if text.isascii() else len(text.translate(None, _CONTINUATION_BYTES))


def with_line_feeds(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Give a text with LF in place of each CR that ends a line alone. Offsets stay as they are."""
    held = b""
    for read in pieces:
        piece = held + read
        held = b""
        if b"\r" in piece:
            if piece.endswith(b"\r"):  # LF may follow
                piece, held = piece[:-1], b"\r"
            piece = _LONE_RETURN.sub(b"\n", piece)
        yield piece
    if held:
        yield b"\n"


def places_of(offsets: Iterable[int], pieces: Iterable[bytes]) -> dict[int, Place]:
    """Return the place of each offset in a text, given in pieces. Offsets beyond its end are at its end."""
    left = sorted(set(offsets), reverse=True)
    found: dict[int, Place] = {}
    place, base = Place(1, 1), 0
    for piece in with_line_feeds(pieces):
        start = 0
        while left and left[-1] - base < len(piece):
            end = left[-1] - base
            place = found[left.pop()] = _place_after(place, piece, start, end)
            start = end
        if not left:
            return found
        place = _place_after(place, piece, start, len(piece))
        base += len(piece)
    return found | dict.fromkeys(left, place)


def _place_after(place: Place, text: bytes, start: int, end: int) -> Place:
    """Return the place at the end of a part of a text, given the place at its start."""
    lines = text.count(b"\n", start, end)
    if not lines:
        return Place(place.line, place.column + characters(text[start:end]))
    return Place(place.line + lines, 1 + characters(text[text.rfind(b"\n", start, end) + 1 : end]))
