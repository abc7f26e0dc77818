"""Character references, put right the way publishers mean them.

A reference counts only with its semicolon: `&copy=1` in a query string is not a copyright sign. What is no reference
stays as it is, with a problem: a bare `&` is the most frequent defect of real sitemaps.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html.entities import html5

__all__ = ["Note", "unescape"]

_AMPERSAND = re.compile(r"&(?:#(\d{1,8});|#[xX]([0-9a-fA-F]{1,6});|([A-Za-z][A-Za-z0-9]{1,31});)?")
_NAMED = {name[:-1]: text for name, text in html5.items() if name.endswith(";")}
_OF_XML = frozenset({"amp", "lt", "gt", "quot", "apos"})  # https://www.w3.org/TR/xml/#sec-predefined-ent
_CONTROLS_KEPT = "\t\n\r"
_SHOWN_AROUND = 40  # characters around an ampersand

#: Called with a code, the text that its message shows, and where in the text that is.
Note = Callable[[str, str, int], None]


def unescape(text: str, note: Note | None = None) -> str:
    """The text with its references replaced; `note` is called for what is no reference."""
    ampersands = text.count("&")
    if not ampersands:
        return text
    if ampersands == text.count("&amp;"):
        return text.replace("&amp;", "&")

    def replace(match: re.Match[str]) -> str:
        decimal, hexadecimal, name = match.groups()
        if name:
            if note and name not in _OF_XML:
                note("X103", match[0], match.start())
            return _NAMED.get(name, match[0])
        if decimal or hexadecimal:
            character = _character(int(decimal) if decimal else int(hexadecimal, 16))
            if note and not character:
                note("X108", match[0], match.start())
            return character
        if note:
            note("X102", text[max(match.start() - _SHOWN_AROUND, 0) : match.end() + _SHOWN_AROUND], match.start())
        return "&"

    return _AMPERSAND.sub(replace, text)


def _character(code: int) -> str:
    """The character of this number; none for controls, the replacement character for what is no character."""
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        return "\N{REPLACEMENT CHARACTER}"
    character = chr(code)
    return "" if code < 0x20 and character not in _CONTROLS_KEPT else character
