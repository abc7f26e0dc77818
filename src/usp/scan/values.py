"""From the bytes of a field to its text, and from texts to values.

Line ends become LF, as XML demands: https://www.w3.org/TR/xml/#sec-line-ends. A reference `&#13;` stays a CR.

Texts are repaired the way publishers mean them. A character reference counts only with its semicolon: `&copy=1` in a
query string is not a copyright sign. Any other `&` stays as it is, with a problem: it is the most frequent defect of
real sitemaps.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation
from functools import lru_cache, partial
from html.entities import html5

from usp.objects.page import SITEMAP_PAGE_DEFAULT_PRIORITY, SitemapPageChangeFrequency
from usp.objects.problem import At, ProblemLog
from usp.scan.encodings import decode_field
from usp.scan.urls import INVISIBLE

__all__ = [
    "MAX_FIELD_BYTES",
    "FieldNotes",
    "TextNotes",
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
_NAMED = {name[:-1]: text for name, text in html5.items() if name.endswith(";")}
_XML_NAMES = frozenset({"amp", "lt", "gt", "quot", "apos"})  # https://www.w3.org/TR/xml/#sec-predefined-ent
_CONTROLS_KEPT = "\t\n\r"
_SHOWN_AROUND = 40  # characters around an ampersand


class TextNotes:
    """Notes the problems of references in a text: those of an attribute, or of a piece of a field.

    `place_of` finds a character of the text. Problems that are not kept are only counted, so it is seldom called.
    """

    __slots__ = ("_log", "_place_of", "_where")

    def __init__(self, log: ProblemLog, where: str, place_of: Callable[[int], At]) -> None:
        self._log = log
        self._where = where
        self._place_of = place_of

    @classmethod
    def of_tag(cls, log: ProblemLog, name: bytes, at: int) -> TextNotes:
        """Return what notes the problems of the attributes of a tag, which are all at its start."""
        return cls(log, f"<{name.decode('utf-8', 'replace')}>", lambda index: at)

    def note(self, text: str) -> None:
        """Note ampersands that are not part of a reference, and references that XML does not know."""
        left = _problems_of(text)
        kept = {code for code, number in left.items() if number and self._log.keeps(code)}
        for match in _AMPERSAND.finditer(text) if kept else ():
            if (code := _code_of(match)) in kept:
                around = _SHOWN_AROUND if code == "X102" else 0
                shown = text[max(match.start() - around, 0) : match.end() + around]
                self._log.add(code, self._place_of(match.start()), text=shown, where=self._where)
                left[code] -= 1
                if not left[code] or not self._log.keeps(code):
                    kept.discard(code)
                    if not kept:
                        break
        for code, number in left.items():
            if number:
                self._log.count(code, number, self._place_of(0))


class FieldNotes:
    """Notes the problems of a field. `offset_of` finds a byte in one of its pieces."""

    __slots__ = ("_log", "_offset_of", "_where")

    def __init__(self, log: ProblemLog, where: str, offset_of: Callable[[int, int], int]) -> None:
        self._log = log
        self._where = where
        self._offset_of = offset_of

    def add(self, code: str, text: str, piece: int, find_index: Callable[[], int]) -> None:
        """Note a problem: its code, the text for its message, the number of the piece, and how to find the byte."""
        self._log.add(code, lambda: self._offset_of(piece, find_index()), text=text, where=self._where)

    def note(self, text: str, piece: int, is_utf8: bool) -> None:
        """Note the problems of the references in the text of a piece."""

        def place_of(index: int) -> At:
            return lambda: self._offset_of(piece, len(text[:index].encode()) if is_utf8 else index)

        TextNotes(self._log, self._where, place_of).note(text)


def unescape(text: str, notes: TextNotes | None = None) -> str:
    """Replace the character references in a text, and note ampersands that are not part of one."""
    ampersands = text.count("&")
    if not ampersands:
        return text
    if ampersands == text.count("&amp;"):
        return text.replace("&amp;", "&")
    if notes is not None:
        notes.note(text)
    return _COMPLETE_REFERENCE.sub(_replacement, text) if ";" in text else text


def _problems_of(text: str) -> dict[str, int]:
    """Return how many problems of each code the ampersands of a text have."""
    if ";" not in text:
        return {"X102": text.count("&")}
    found = Counter(map(_code_of, _COMPLETE_REFERENCE.finditer(text)))
    found["X102"] = text.count("&") - found.total()
    del found[""]
    return found


def _replacement(match: re.Match[str]) -> str:
    """Return what a reference stands for."""
    decimal, hexadecimal, name = match.groups()
    return _NAMED.get(name, match[0]) if name else _character(int(decimal) if decimal else int(hexadecimal, 16))


def _code_of(match: re.Match[str]) -> str:
    """Return the code of the problem that a reference, or an ampersand of none, is; an empty text if it is none."""
    decimal, hexadecimal, name = match.groups()
    if name:
        return "" if name in _XML_NAMES else "X103"
    if decimal or hexadecimal:
        return "" if _replacement(match) else "X108"
    return "X102"


def _with_line_feeds(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _character(code: int) -> str:
    """Return the character of a number: nothing for controls, U+FFFD if there is no such character."""
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        return "\N{REPLACEMENT CHARACTER}"
    character = chr(code)
    return "" if code < 0x20 and character not in _CONTROLS_KEPT else character


def field_text(pieces: Iterable[tuple[bool, bytes]], notes: FieldNotes | None = None) -> str:
    """Decode a field, replace its line ends and references, and drop control characters and outer white space.

    `pieces` are parts of the field, each with whether it is CDATA, in which `&` is just a character.
    """
    texts, raws = [], []
    for number, (is_cdata, raw) in enumerate(pieces):
        raws.append(raw)
        text, good = decode_field(raw)
        if notes and not good:
            notes.add("E203", "UTF-8", number, partial(_first_bad, raw))
        has_references = not is_cdata and "&" in text
        if notes and has_references:
            notes.note(text, number, good)
        if "\r" in text:  # first: a reference may mean a CR, which stays
            text = _with_line_feeds(text)
        texts.append(unescape(text) if has_references else text)
    value = "".join(texts)
    if value.isprintable():
        return value.strip()
    clean = value.translate(_CONTROLS).strip()
    bare = clean.strip(INVISIBLE).strip()
    if notes:
        if (control := _first_control(raws)) is not None:
            number, at = control
            notes.add("X108", value, number, lambda: at)
        if bare != clean:
            notes.add("E205", value, 0, lambda: 0)
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
