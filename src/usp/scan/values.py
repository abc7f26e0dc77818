"""From the bytes of a field to its text, and from texts to values.

Line ends become LF, as XML demands: https://www.w3.org/TR/xml/#sec-line-ends. A reference `&#13;` stays a CR.

Texts are repaired the way publishers mean them. A character reference counts only with its semicolon: `&copy=1` in a
query string is not a copyright sign. Any other `&` stays as it is, with a problem: it is the most frequent defect of
real sitemaps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation
from functools import lru_cache, partial
from html.entities import html5

from usp.objects.page import SITEMAP_PAGE_DEFAULT_PRIORITY, SitemapPageChangeFrequency
from usp.scan.encodings import decode_field
from usp.scan.urls import INVISIBLE

__all__ = [
    "MAX_FIELD_BYTES",
    "NoteInText",
    "comma_separated",
    "field_text",
    "parse_change_frequency",
    "parse_priority",
    "plain_text",
    "plain_text_of",
    "text_of",
    "unescape",
]

MIN_VALID_PRIORITY = Decimal("0.0")
MAX_VALID_PRIORITY = Decimal("1.0")
MAX_FIELD_BYTES = 1 << 16
_CONTROLS = {code: None for code in (*range(0x20), 0x7F) if chr(code) not in "\t\n\r"}
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # https://www.w3.org/TR/xml/#charsets

_REFERENCE = r"&(?:#(\d{1,8});|#[xX]([0-9a-fA-F]{1,6});|([A-Za-z][A-Za-z0-9]{1,31});)?"
_AMPERSAND = re.compile(_REFERENCE)
_COMPLETE_REFERENCE = re.compile(_REFERENCE.removesuffix("?"))
_AMPERSAND_OR_CR = re.compile(rf"{_REFERENCE}|\r\n?")
_NAMED = {name[:-1]: text for name, text in html5.items() if name.endswith(";")}
_XML_NAMES = frozenset({"amp", "lt", "gt", "quot", "apos"})  # https://www.w3.org/TR/xml/#sec-predefined-ent
_CONTROLS_KEPT = "\t\n\r"
_SHOWN_AROUND = 40  # characters around an ampersand

#: Notes a problem in a text: its code, the text for its message, and the index of the character.
NoteInText = Callable[[str, str, int], None]
#: Notes a problem in a field: its code, the text for its message, the number of the piece, and a function that finds
#: the byte in it. Most problems are only counted, so the function is seldom called.
NoteInField = Callable[[str, str, int, Callable[[], int]], None]


def unescape(text: str, note: NoteInText | None = None) -> str:
    """Replace the character references in a text, and note ampersands that are not part of one."""
    ampersands = text.count("&")
    if not ampersands:
        return text
    if ampersands == text.count("&amp;"):
        return text.replace("&amp;", "&")
    return (_AMPERSAND if note else _COMPLETE_REFERENCE).sub(_replacement(text, note), text)


def _replacement(text: str, note: NoteInText | None) -> Callable[[re.Match[str]], str]:
    """Return a function that returns what replaces a match in a text."""

    def replace(match: re.Match[str]) -> str:
        decimal, hexadecimal, name = match.groups()
        if name:
            if note and name not in _XML_NAMES:
                note("X103", match[0], match.start())
            return _NAMED.get(name, match[0])
        if decimal or hexadecimal:
            character = _character(int(decimal) if decimal else int(hexadecimal, 16))
            if note and not character:
                note("X108", match[0], match.start())
            return character
        if match[0].startswith("\r"):
            return "\n"
        if note:
            note("X102", text[max(match.start() - _SHOWN_AROUND, 0) : match.end() + _SHOWN_AROUND], match.start())
        return "&"

    return replace


def _with_line_feeds(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _character(code: int) -> str:
    """Return the character of a number: nothing for controls, U+FFFD if there is no such character."""
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        return "\N{REPLACEMENT CHARACTER}"
    character = chr(code)
    return "" if code < 0x20 and character not in _CONTROLS_KEPT else character


def field_text(pieces: Iterable[tuple[bool, bytes]], note: NoteInField | None = None) -> str:
    """Decode a field, replace its line ends and references, and drop control characters and outer white space.

    `pieces` are parts of the field, each with whether it is CDATA, in which `&` is just a character.
    """
    texts, raws = [], []
    for number, (is_cdata, raw) in enumerate(pieces):
        raws.append(raw)
        text, good = decode_field(raw)
        if note and not good:
            note("E203", "UTF-8", number, partial(_first_bad, raw))
        is_plain = is_cdata or "&" not in text
        note_in_text = None if note is None or is_plain else _in_bytes(note, text, number, good)
        if "\r" in text:  # in one pass with the references, which may mean a CR
            text = _with_line_feeds(text) if is_plain else _AMPERSAND_OR_CR.sub(_replacement(text, note_in_text), text)
        elif not is_plain:
            text = unescape(text, note_in_text)
        texts.append(text)
    value = "".join(texts)
    if value.isprintable():
        return value.strip()
    clean = value.translate(_CONTROLS).strip()
    bare = clean.strip(INVISIBLE).strip()
    if note:
        if (control := _first_control(raws)) is not None:
            number, at = control
            note("X108", value, number, lambda: at)
        if bare != clean:
            note("E205", value, 0, lambda: 0)
    return bare


def _first_control(raws: list[bytes]) -> tuple[int, int] | None:
    """Return the first piece with a control character that XML does not allow, and where it is."""
    return next(((number, found.start()) for number, raw in enumerate(raws) if (found := _CONTROL.search(raw))), None)


def _first_bad(raw: bytes) -> int:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start
    return 0


def _in_bytes(note: NoteInField, text: str, piece: int, is_utf8: bool) -> NoteInText:
    """Return a function that notes problems of a text, by character, as problems of its piece, by byte."""
    return lambda code, shown, index: note(code, shown, piece, lambda: len(text[:index].encode()) if is_utf8 else index)


def plain_text_of(raw: bytes) -> str | None:
    """Do the same as `field_text` for text with nothing to repair, which is nearly all. Return None for any other."""
    if len(raw) <= MAX_FIELD_BYTES and raw.isascii() and b"&" not in raw:
        text = raw.decode("ascii")
        if text.isprintable():
            return text.strip()
    return None


def text_of(raw: bytes, is_cdata: bool = False) -> str:
    """Return the text of a field that is in one piece."""
    text = plain_text_of(raw)
    return field_text([(is_cdata, raw)]) if text is None else text


def plain_text(text: str) -> str | None:
    """Remove the HTML escaping that sites and feeds put below that of XML. Return None for an empty text."""
    return unescape(text).strip() or None


def comma_separated(text: str) -> list[str]:
    """Split a text at commas, and drop empty parts."""
    return [part for part in (part.strip() for part in (plain_text(text) or "").split(",")) if part]


@lru_cache(maxsize=1_024)  # a site has few distinct ones
def parse_priority(text: str) -> Decimal | None:
    """Return the priority that a text states, the default for an empty text, or None if it is not a priority."""
    if not text:
        return SITEMAP_PAGE_DEFAULT_PRIORITY
    try:
        priority = Decimal(text)
    except InvalidOperation:
        return None
    return priority if priority.is_finite() and MIN_VALID_PRIORITY <= priority <= MAX_VALID_PRIORITY else None


def parse_change_frequency(text: str) -> SitemapPageChangeFrequency | None:
    """Return the change frequency that a text states, or None if it is not one."""
    frequency = text.lower()
    return SitemapPageChangeFrequency(frequency) if SitemapPageChangeFrequency.has_value(frequency) else None
