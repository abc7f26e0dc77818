"""The text of a field as it was meant, and the values that texts stand for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from usp.objects.page import SITEMAP_PAGE_DEFAULT_PRIORITY, SitemapPageChangeFrequency
from usp.scan.encodings import decode_field
from usp.scan.entities import unescape
from usp.scan.urls import INVISIBLE

__all__ = [
    "MAX_FIELD_BYTES",
    "Note",
    "comma_separated",
    "field_text",
    "parse_change_frequency",
    "parse_priority",
    "plain_text",
    "plain_text_of",
    "text_of",
]

MIN_VALID_PRIORITY = Decimal("0.0")
MAX_VALID_PRIORITY = Decimal("1.0")
MAX_FIELD_BYTES = 1 << 16
_CONTROLS = {code: None for code in (*range(0x20), 0x7F) if chr(code) not in "\t\n\r"}
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # https://www.w3.org/TR/xml/#charsets

#: Called with a code, the text that its message shows, the number of the piece that it is in, and the byte there.
Note = Callable[[str, str, int, int], None]


def field_text(pieces: Iterable[tuple[bool, bytes]], note: Note | None = None) -> str:
    """The text of a field: decoded, references replaced, controls and outer white space dropped.

    It is given in pieces, each with whether it is a CDATA section, to be taken as it is.
    """
    texts, raws = [], []
    for number, (is_cdata, raw) in enumerate(pieces):
        raws.append(raw)
        text, good = decode_field(raw)
        if note and not good:
            note("E203", "UTF-8", number, _first_bad(raw))
        if not is_cdata and "&" in text:
            text = unescape(text, _in_bytes(note, text, number, good) if note else None)
        texts.append(text)
    value = "".join(texts)
    if value.isprintable():
        return value.strip()
    clean = value.translate(_CONTROLS).strip()
    bare = clean.strip(INVISIBLE).strip()
    if note:
        if (control := _first_control(raws)) is not None:
            note("X108", value, *control)
        if bare != clean:
            note("E205", value, 0, 0)
    return bare


def _first_control(raws: list[bytes]) -> tuple[int, int] | None:
    """The first piece with a control character that XML does not allow, and where it stands."""
    return next(((number, found.start()) for number, raw in enumerate(raws) if (found := _CONTROL.search(raw))), None)


def _first_bad(raw: bytes) -> int:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start
    return 0


def _in_bytes(note: Note, text: str, piece: int, is_utf8: bool) -> Callable[[str, str, int], None]:
    """Notes what is wrong at a character of a text, as what is wrong at a byte of its piece."""
    return lambda code, shown, index: note(code, shown, piece, len(text[:index].encode()) if is_utf8 else index)


def plain_text_of(raw: bytes) -> str | None:
    """The same for text in which there is nothing to put right: nearly all of it. None for any other."""
    if len(raw) <= MAX_FIELD_BYTES and raw.isascii() and b"&" not in raw:
        text = raw.decode("ascii")
        if text.isprintable():
            return text.strip()
    return None


def text_of(raw: bytes, is_cdata: bool = False) -> str:
    """The text of a field that is in one piece."""
    text = plain_text_of(raw)
    return field_text([(is_cdata, raw)]) if text is None else text


def plain_text(text: str) -> str | None:
    """A text without the HTML escaping that sites and feeds put below that of XML; None if it is empty."""
    return unescape(text).strip() or None


def comma_separated(text: str) -> list[str]:
    """The parts of a text, split at commas."""
    return [part for part in (part.strip() for part in (plain_text(text) or "").split(",")) if part]


@lru_cache(maxsize=1_024)  # there are few distinct ones
def parse_priority(text: str) -> Decimal | None:
    """The priority that the text states; the default one if there is no text, None if it is none."""
    if not text:
        return SITEMAP_PAGE_DEFAULT_PRIORITY
    try:
        priority = Decimal(text)
    except InvalidOperation:
        return None
    return priority if priority.is_finite() and MIN_VALID_PRIORITY <= priority <= MAX_VALID_PRIORITY else None


def parse_change_frequency(text: str) -> SitemapPageChangeFrequency | None:
    """The frequency that the text states, None if it is none."""
    frequency = text.lower()
    return SitemapPageChangeFrequency(frequency) if SitemapPageChangeFrequency.has_value(frequency) else None
