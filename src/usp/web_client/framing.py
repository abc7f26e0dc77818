"""The length of a body, where a server states it wrongly or sends a part only.

`body_length` makes the same of it as http.client does; so does `repaired_head`, for a parser that refuses it.

https://www.rfc-editor.org/rfc/rfc9112#section-6.3
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from http.client import HTTPException

__all__ = ["MAX_HEADER_BYTES", "body_length", "end_of_head", "is_interim", "is_whole_range", "repaired_head"]

MAX_HEADER_BYTES = 65_536  # as in http.client

_END = re.compile(rb"\r?\n\r?\n")
_FRAMING = re.compile(rb"(?im)^(content-length|transfer-encoding)[ \t]*:[ \t]*+([^\r\n]*+)\r?\n")
_CLEAN = re.compile(rb"[0-9]{1,18}[ \t]*")
_NUMBER = re.compile(rb"\+?([0-9]{1,5000})")
_RANGE = re.compile(r"bytes 0-[0-9]{1,18}/([0-9]{1,18})")
_MOST = b"9" * 18  # more than anybody sends; parsers refuse numbers that do not fit


def end_of_head(data: bytes | bytearray, start: int = 0) -> int:
    """Return where the head of an answer ends; 0 if its end is not there yet. Search from `start` on."""
    match = _END.search(data, start)
    return match.end() if match else 0


def body_length(values: Iterable[str]) -> int | None:
    """Return the length that the Content-Length headers of an answer state, None if they state none.

    Text that is no number counts as none. Raise `HTTPException` if they state several lengths: nobody knows which of
    them is right.
    """
    numbers = {_number(part.encode("latin-1")) for value in values for part in value.split(",")} - {None}
    if len(numbers) > 1:
        raise HTTPException("it states several lengths")
    number = numbers.pop() if numbers else None
    return None if number is None else int(number)


def is_interim(head: bytes) -> bool:
    """Return whether another head follows this one."""
    return head[8:10] == b" 1" and head[10:12] != b"01"


def repaired_head(head: bytes) -> bytes:
    """Return the head of an answer with one valid Content-Length, or none.

    A length that is no number counts as none: the body goes on until the connection ends. The same number given
    several times counts once. Beside a Transfer-Encoding, a length does not count. Lengths that differ stay: nobody
    knows which of them is right.
    """
    fields = [(match[1].lower(), match[2]) for match in _FRAMING.finditer(head)]
    lengths = [value for name, value in fields if name == b"content-length"]
    if not lengths or (len(fields) == 1 and _CLEAN.fullmatch(lengths[0])):
        return head
    is_encoded = any(name == b"transfer-encoding" and b"chunked" in value.lower() for name, value in fields)
    numbers = {_number(part) for value in lengths for part in value.split(b",")} - {None}
    if len(numbers) > 1 and not is_encoded:
        return head
    number = numbers.pop() if numbers and not is_encoded else None
    kept = [b"" if number is None else b"Content-Length: " + number + b"\r\n"]

    def replaced(match: re.Match[bytes]) -> bytes:
        if match[1].lower() != b"content-length":
            return match[0]
        return kept.pop() if kept else b""

    return _FRAMING.sub(replaced, head)


def is_whole_range(content_range: str | None, size: int) -> bool:
    """Return whether a Content-Range covers the whole document, and so many bytes are all of it."""
    match = _RANGE.fullmatch((content_range or "").strip())
    return match is not None and int(match[1]) == size


def _number(text: bytes) -> bytes | None:
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        return None
    digits = match[1].lstrip(b"0") or b"0"
    return digits if len(digits) < len(_MOST) else _MOST
