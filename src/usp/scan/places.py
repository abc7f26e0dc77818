"""Where in a document something stands: from offsets to lines and columns.

While a document is read only offsets are noted, which cost nothing. For the few that are kept, its text is gone through
once more. Columns count characters: the bytes of UTF-8 that start one.
"""

from __future__ import annotations

from collections.abc import Iterable

from usp.objects.problem import Place

__all__ = ["characters", "places_of"]

_WITHIN_CHARACTERS = bytes(range(0x80, 0xC0))


def characters(text: bytes) -> int:
    """How many characters start in a text, wherever it was cut."""
    return len(text) if text.isascii() else len(text.translate(None, _WITHIN_CHARACTERS))


def places_of(offsets: Iterable[int], pieces: Iterable[bytes]) -> dict[int, Place]:
    """The place of each offset in a text that is given in pieces; the end of it for those beyond."""
    left = sorted(set(offsets), reverse=True)
    found: dict[int, Place] = {}
    place, base = Place(1, 1), 0
    for piece in pieces:
        start = 0
        while left and left[-1] - base < len(piece):
            end = left[-1] - base
            place = found[left.pop()] = _behind(place, piece, start, end)
            start = end
        if not left:
            return found
        place = _behind(place, piece, start, len(piece))
        base += len(piece)
    return found | dict.fromkeys(left, place)


def _behind(place: Place, text: bytes, start: int, end: int) -> Place:
    """The place at the end of a part of a text that starts at a place."""
    lines = text.count(b"\n", start, end)
    if not lines:
        return Place(place.line, place.column + characters(text[start:end]))
    return Place(place.line + lines, 1 + characters(text[text.rfind(b"\n", start, end) + 1 : end]))
