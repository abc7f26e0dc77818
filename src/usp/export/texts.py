"""Columns as texts, and rows of them, with no work of Python's for each value where that can be helped.

A row is a list of parts, one after another: a part is a text that stands in every row, or a list with a text for each.
So what is the same in all rows is written once, and what stands around a value costs nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from itertools import pairwise, repeat
from json.encoder import encode_basestring
from math import isfinite
from typing import Any

from usp.export.values import repeated_text, texts_of
from usp.scan import CHANGE_FREQUENCIES, Column, List, Scalar, Struct, Type, flags_of

__all__ = [
    "CONTROLS",
    "ODD_CHARACTERS",
    "Parts",
    "has_bytes",
    "json_of",
    "json_parts",
    "json_text",
    "row_texts",
    "scalar_parts",
    "time_texts",
    "whole_text",
]

Parts = list[str | list[str]]

#: The control characters of ASCII, as bytes.
CONTROLS = bytes([*range(0x20), 0x7F])
#: What a terminal or a reader of lines may act on, beside the control characters that every writer of JSON escapes.
ODD_CHARACTERS = "\x7f-\x9f\u2028\u2029"
_ODD = re.compile(f"[{ODD_CHARACTERS}]")
_ODD_BYTES = re.compile(b"\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]")
_MAX_DAYS = 20_000
_FIRST_DAY = date(1970, 1, 1).toordinal()
_MINUTES = [f"T{hour:02}:{minute:02}:" for hour in range(24) for minute in range(60)]
_SECONDS = [f"{second:02}Z" for second in range(60)]
_NULL = "null"


def whole_text(length: int, parts: Parts) -> str:
    """The rows, one after another."""
    parts = _merged(parts)
    flat = [""] * (length * len(parts))
    for number, part in enumerate(parts):
        flat[number :: len(parts)] = [part] * length if isinstance(part, str) else part
    return "".join(flat)


def row_texts(length: int, parts: Parts) -> list[str]:
    """The rows, each a text."""
    parts = _merged(parts)
    if len(parts) == 1:
        return [parts[0]] * length if isinstance(parts[0], str) else parts[0]
    columns = [repeat(part, length) if isinstance(part, str) else part for part in parts]
    return list(map("".join, zip(*columns, strict=True)))


def _merged(parts: Parts) -> Parts:
    """The same, with no two parts after another that stand in every row."""
    merged: Parts = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(last := merged[-1], str):
            merged[-1] = last + part
        else:
            merged.append(part)
    return merged


def has_bytes(column: Column, unwanted: bytes) -> bool:
    """Whether the texts of a column have any of these bytes, or characters that are odd."""
    data = bytes(column.data or b"")
    if len(data.translate(None, unwanted)) != len(data):
        return True
    return not data.isascii() and _ODD_BYTES.search(data) is not None


class _Days(dict[int, str]):
    """The number of a day since 1970 -> its date."""

    def __missing__(self, day: int) -> str:
        if len(self) >= _MAX_DAYS:
            self.clear()
        self[day] = text = date.fromordinal(day + _FIRST_DAY).isoformat()
        return text


_days = _Days()


def time_texts(times: list[int]) -> list[str]:
    """Microseconds since 1970 -> 2024-05-08T10:00:00Z, with microseconds where there are any."""
    distinct = set(times)
    if len(distinct) > len(times) // 2:
        return list(_time_texts(times))
    texts = dict(zip(distinct, _time_texts(distinct), strict=True))
    return list(map(texts.__getitem__, times))


def _time_texts(times: Iterable[int]) -> Iterator[str]:
    days, minutes, seconds = _days, _MINUTES, _SECONDS
    for time in times:
        second, fraction = divmod(time, 1_000_000)
        day, second = divmod(second, 86_400)
        minute, second = divmod(second, 60)
        if fraction:
            yield f"{days[day]}{minutes[minute]}{second:02}.{fraction:06}Z"
        else:
            yield f"{days[day]}{minutes[minute]}{seconds[second]}"


def scalar_parts(kind: Scalar, column: Column, *, quote: str, nothing: str) -> Parts:
    """The values of a column that are no texts, with quotes around those that are no numbers and no flags."""
    if kind is Scalar.FLAG:
        flags = flags_of(column.data or memoryview(b""), column.length)
        return [["true" if flag else "false" for flag in flags]]
    assert column.data is not None
    values = column.data.tolist()
    if kind is Scalar.TIME:
        return [quote, time_texts(values), quote]
    if kind is Scalar.WHOLE:
        return [list(map(str, values))]
    if kind is Scalar.NUMBER:
        return [_distinct(values, lambda number: repr(number) if isfinite(number) else nothing)]
    names = [f"{quote}{frequency.value}{quote}" for frequency in CHANGE_FREQUENCIES]
    names += [nothing] * (256 - len(names))
    return [list(map(names.__getitem__, values))]


def _distinct(values: list[Any], text_of: Callable[[Any], str]) -> list[str]:
    """The texts of values, of which each is made once."""
    texts = {value: text_of(value) for value in set(values)}
    return list(map(texts.__getitem__, values))


def json_parts(kind: Type, column: Column | None, length: int) -> Parts:
    """The values of a column as JSON, each in one line, with nothing in it that a terminal acts on."""
    if column is None:
        return [_NULL]
    parts = _json(kind, column)
    if column.valid is None:
        return parts
    flags = flags_of(column.valid, length)
    texts = row_texts(length, parts)
    return [[text if is_valid else _NULL for text, is_valid in zip(texts, flags, strict=True)]]


def json_text(text: str) -> str:
    """A text as JSON."""
    return _ODD.sub(lambda found: f"\\u{ord(found[0]):04x}", encode_basestring(text))


def json_of(value: Any) -> str:
    """Any value as JSON, in one line."""
    return _ODD.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False, allow_nan=False))


def _json(kind: Type, column: Column) -> Parts:
    if isinstance(kind, Struct):
        parts: Parts = []
        for (name, part), child in zip(kind.fields.items(), column.children, strict=True):
            parts += [f"{',' if parts else '{'}{json_text(name)}:", *json_parts(part, child, child.length)]
        return [*parts, "}"]
    if isinstance(kind, List):
        (child,) = column.children
        items = row_texts(child.length, json_parts(kind.item, child, child.length))
        assert column.offsets is not None
        return ["[", [",".join(items[start:end]) for start, end in pairwise(column.offsets.tolist())], "]"]
    if kind is Scalar.TEXT:
        return _text_parts(column)
    return scalar_parts(kind, column, quote='"', nothing=_NULL)


def _text_parts(column: Column) -> Parts:
    repeated = repeated_text(column)
    if repeated is not None:
        return [json_text(repeated)]
    if has_bytes(column, CONTROLS + b'"\\'):
        return [list(map(json_text, texts_of(column)))]
    return ['"', texts_of(column), '"']
