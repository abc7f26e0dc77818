"""The text of a field as it was meant: decoded, references replaced, controls and outer white space dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from usp.scan.encodings import decode_field
from usp.scan.entities import unescape
from usp.scan.urls import INVISIBLE

__all__ = ["MAX_FIELD_BYTES", "Note", "field_text", "plain_text_of", "text_of"]

MAX_FIELD_BYTES = 1 << 16
_CONTROLS = {code: None for code in (*range(0x20), 0x7F) if chr(code) not in "\t\n\r"}

#: Called with a code, and with the text that its message shows.
Note = Callable[[str, str], None]


def field_text(pieces: Iterable[tuple[bool, bytes]], note: Note | None = None) -> str:
    """The text of a field given in pieces, each with whether it is a CDATA section, to be taken as it is."""
    texts = []
    for is_cdata, raw in pieces:
        text, good = decode_field(raw)
        if not good and note:
            note("E203", "UTF-8")
        if not is_cdata and "&" in text:
            text = unescape(text, note)
        texts.append(text)
    value = "".join(texts)
    if value.isprintable():
        return value.strip()
    clean = value.translate(_CONTROLS)
    if clean != value and note:
        note("X108", "")
    return clean.strip().strip(INVISIBLE).strip()


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
