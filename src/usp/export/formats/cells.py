"""Values as text, for all text formats: those of columns, and those of answers to queries.

Columns are converted without work in Python for each value where possible.

A row of text is a list of parts: a part is a text that stands in every row, or a list with a text for each row. So a
text that all rows share is written once.

Encoded values take far more memory than columns. So a large batch is encoded in pieces of `PIECE_ROWS` rows.
"""

from __future__ import annotations

import io
import json
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import accumulate, chain, compress, pairwise, repeat
from json.encoder import encode_basestring
from math import isfinite
from typing import IO, Any, BinaryIO

from usp.export.batches import Batch
from usp.export.formats.base import Answer
from usp.export.schema import column_at
from usp.scan import CHANGE_FREQUENCIES, Column, Columns, List, Scalar, Struct, Type, between, bits, flags_of

__all__ = [
    "CONTROLS",
    "ODD_CHARACTERS",
    "PIECE_ROWS",
    "Parts",
    "answer_json",
    "answer_rows",
    "answer_text",
    "has_bytes",
    "is_number",
    "json_of",
    "json_parts",
    "json_text",
    "pieces",
    "repeated_text",
    "row_texts",
    "scalar_parts",
    "text_stream",
    "texts_of",
    "time_texts",
    "unique_names",
    "values_of",
    "whole_text",
]

PIECE_ROWS = 16_384


def pieces(batch: Batch, types: Mapping[str, Type], chosen: Mapping[str, Type]) -> Iterator[Columns]:
    """Give the rows to keep of a batch in pieces, with the columns at the chosen paths."""
    found = {path: column_at(batch.columns, types, path) for path in chosen}
    there = {path: column for path, column in found.items() if column is not None}
    length = batch.columns.length
    for start in range(0, length, PIECE_ROWS):
        end = min(start + PIECE_ROWS, length)
        kept = None if batch.kept is None else batch.kept[start:end]
        count = end - start if kept is None else kept.count(1)
        if count == 0:
            continue
        piece = {path: between(chosen[path], column, start, end) for path, column in there.items()}
        if kept is not None and count < end - start:
            piece = {path: _kept(chosen[path], column, kept) for path, column in piece.items()}
        yield Columns(count, piece)


def _kept(kind: Type, column: Column, kept: bytes) -> Column:
    """Return the rows of a column that are kept."""
    length = kept.count(1)
    valid = None if column.valid is None else bits(compress(flags_of(column.valid, column.length), kept))
    if isinstance(kind, Struct):
        parts = zip(kind.fields.values(), column.children, strict=True)
        return Column(length, valid=valid, children=tuple(_kept(*part, kept) for part in parts))
    if column.offsets is None:
        assert column.data is not None
        if kind is Scalar.BOOLEAN:
            return Column(length, bits(compress(flags_of(column.data, column.length), kept)), valid=valid)
        kept_data = array(column.data.format, compress(column.data.tolist(), kept))
        return Column(length, memoryview(kept_data), valid=valid)
    if kind is Scalar.TEXT and repeated_text(column) is not None:
        return between(kind, column, 0, length)
    ranges = list(compress(pairwise(column.offsets.tolist()), kept))
    offsets = memoryview(array("q", accumulate((end - start for start, end in ranges), initial=0)))
    if isinstance(kind, List):
        sizes = (end - start for start, end in pairwise(column.offsets.tolist()))
        items = bytes(chain.from_iterable(map(repeat, kept, sizes)))
        return Column(length, None, offsets, valid, (_kept(kind.item, column.children[0], items),))
    data = bytes(column.data or b"")
    return Column(length, memoryview(b"".join([data[start:end] for start, end in ranges])), offsets, valid)


_FREQUENCIES = [frequency.value for frequency in CHANGE_FREQUENCIES]


def values_of(kind: Type, column: Column | None, length: int) -> list[Any]:
    """Return the values of a column, with None for null. Times are microseconds since 1970, structs are dicts."""
    if column is None:
        return [None] * length
    values = _read(kind, column)
    if column.valid is None:
        return values
    return [value if is_valid else None for value, is_valid in zip(values, flags_of(column.valid, length), strict=True)]


def texts_of(column: Column) -> list[str]:
    """Return the texts of a column. Where a row is null, the text means nothing."""
    data = bytes(column.data or b"")
    if data.isascii():
        return _slices(data.decode("ascii"), column)
    return [text.decode("utf-8") for text in _slices(data, column)]


def repeated_text(column: Column) -> str | None:
    """Return the text that every row of a column has; None if rows differ or are null."""
    assert column.offsets is not None
    offsets, length = column.offsets, column.length
    if column.valid is not None or length == 0 or (size := offsets[1]) * length != offsets[length]:
        return None
    data = bytes((column.data or b"")[: offsets[length]])
    text = data[:size]
    if data != text * length or (size and bytes(offsets) != bytes(array("q", range(0, len(data) + 1, size)))):
        return None
    return text.decode("utf-8")


def _read(kind: Type, column: Column) -> list[Any]:
    if isinstance(kind, Struct):
        parts = [
            values_of(part, child, child.length)
            for part, child in zip(kind.fields.values(), column.children, strict=True)
        ]
        return [dict(zip(kind.fields, row, strict=True)) for row in zip(*parts, strict=True)]
    if isinstance(kind, List):
        (child,) = column.children
        return _slices(values_of(kind.item, child, child.length), column)
    return _SCALARS[kind](column)


def _slices(whole: Sequence[Any], column: Column) -> list[Any]:
    assert column.offsets is not None
    return [whole[start:end] for start, end in pairwise(column.offsets.tolist())]


def _numbers(column: Column) -> list[Any]:
    assert column.data is not None
    return column.data.tolist()


_SCALARS: dict[Scalar, Callable[[Column], list[Any]]] = {
    Scalar.TEXT: texts_of,
    Scalar.TIME: _numbers,
    Scalar.FREQUENCY: lambda column: [None if number == 255 else _FREQUENCIES[number] for number in _numbers(column)],
    Scalar.NUMBER: _numbers,
    Scalar.INTEGER: _numbers,
    Scalar.BOOLEAN: lambda column: flags_of(column.data or memoryview(b""), column.length),
}


Parts = list[str | list[str]]

#: The ASCII control characters, as bytes.
CONTROLS = bytes([*range(0x20), 0x7F])
#: Characters that a terminal or a line reader may act on, besides the control characters that JSON escapes anyway.
ODD_CHARACTERS = "\x7f-\x9f\u2028\u2029"
_ODD = re.compile(f"[{ODD_CHARACTERS}]")
_ODD_BYTES = re.compile(b"\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]")
_MAX_DAYS = 20_000
_FIRST_DAY = date(1970, 1, 1).toordinal()
_MINUTES = [f"T{hour:02}:{minute:02}:" for hour in range(24) for minute in range(60)]
_SECONDS = [f"{second:02}Z" for second in range(60)]
_NULL = "null"


def whole_text(length: int, parts: Parts) -> str:
    """Join all rows to one text."""
    parts = _merged(parts)
    flat = [""] * (length * len(parts))
    for number, part in enumerate(parts):
        flat[number :: len(parts)] = [part] * length if isinstance(part, str) else part
    return "".join(flat)


def row_texts(length: int, parts: Parts) -> list[str]:
    """Return a text for each row."""
    parts = _merged(parts)
    if len(parts) == 1:
        return [parts[0]] * length if isinstance(parts[0], str) else parts[0]
    columns = [repeat(part, length) if isinstance(part, str) else part for part in parts]
    return list(map("".join, zip(*columns, strict=True)))


def _merged(parts: Parts) -> Parts:
    """Join neighbouring parts that stand in every row."""
    merged: Parts = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(last := merged[-1], str):
            merged[-1] = last + part
        else:
            merged.append(part)
    return merged


def has_bytes(column: Column, unwanted: bytes) -> bool:
    """Return whether the texts of a column have any of these bytes, or odd characters."""
    data = bytes(column.data or b"")
    if len(data.translate(None, unwanted)) != len(data):
        return True
    return not data.isascii() and _ODD_BYTES.search(data) is not None


class _Days(dict[int, str]):
    """Days since 1970 -> dates as text."""

    def __missing__(self, day: int) -> str:
        if len(self) >= _MAX_DAYS:
            self.clear()
        self[day] = text = date.fromordinal(day + _FIRST_DAY).isoformat()
        return text


_days = _Days()


def time_texts(times: list[int], *, in_seconds: bool = False) -> list[str]:
    """Write times in microseconds since 1970 as 2024-05-08T10:00:00Z, with microseconds if there are any.

    With `in_seconds` all texts have this width: fractions of a second are cut off.
    """
    distinct = set(times)
    if len(distinct) > len(times) // 2:
        return list(_time_texts(times, in_seconds))
    texts = dict(zip(distinct, _time_texts(distinct, in_seconds), strict=True))
    return list(map(texts.__getitem__, times))


def _time_texts(times: Iterable[int], in_seconds: bool) -> Iterator[str]:
    days, minutes, seconds = _days, _MINUTES, _SECONDS
    for moment in times:
        second, fraction = divmod(moment, 1_000_000)
        day, second = divmod(second, 86_400)
        minute, second = divmod(second, 60)
        if fraction and not in_seconds:
            yield f"{days[day]}{minutes[minute]}{second:02}.{fraction:06}Z"
        else:
            yield f"{days[day]}{minutes[minute]}{seconds[second]}"


def scalar_parts(kind: Scalar, column: Column, *, quote: str, nothing: str, in_seconds: bool = False) -> Parts:
    """Write the values of a column that is no text, with quotes around times and change frequencies.

    With `in_seconds` times have one width, without fractions of a second.
    """
    if kind is Scalar.BOOLEAN:
        flags = flags_of(column.data or memoryview(b""), column.length)
        return [["true" if flag else "false" for flag in flags]]
    assert column.data is not None
    values = column.data.tolist()
    if kind is Scalar.TIME:
        return [quote, time_texts(values, in_seconds=in_seconds), quote]
    if kind is Scalar.INTEGER:
        return [list(map(str, values))]
    if kind is Scalar.NUMBER:
        return [_distinct(values, lambda number: repr(number) if isfinite(number) else nothing)]
    names = [f"{quote}{frequency.value}{quote}" for frequency in CHANGE_FREQUENCIES]
    names += [nothing] * (256 - len(names))
    return [list(map(names.__getitem__, values))]


def _distinct(values: list[Any], text_of: Callable[[Any], str]) -> list[str]:
    """Write values, each distinct one once."""
    texts = {value: text_of(value) for value in set(values)}
    return list(map(texts.__getitem__, values))


def json_parts(kind: Type, column: Column | None, length: int) -> Parts:
    """Write the values of a column as JSON, each on one line, without characters that a terminal acts on."""
    if column is None:
        return [_NULL]
    parts = _json(kind, column)
    if column.valid is None:
        return parts
    flags = flags_of(column.valid, length)
    texts = row_texts(length, parts)
    return [[text if is_valid else _NULL for text, is_valid in zip(texts, flags, strict=True)]]


def json_text(text: str) -> str:
    """Write a text as JSON."""
    return _ODD.sub(lambda found: f"\\u{ord(found[0]):04x}", encode_basestring(text))


def json_of(value: Any) -> str:
    """Write any value as JSON, on one line."""
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


# An answer may have any type that DuckDB has, so its values become Python objects.


@contextmanager
def text_stream(stream: BinaryIO) -> Iterator[IO[str]]:
    """Write text to a stream of bytes, which stays open."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    try:
        yield text
    finally:
        text.detach()


def answer_rows(answer: Answer) -> Iterator[tuple[Any, ...]]:
    """Give the rows as Python values."""
    for batch in answer.batches:
        yield from zip(*map(_values, batch.columns), strict=True)


def _values(column: Any) -> list[Any]:
    try:
        found: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):  # times that Python cannot represent
        found = column.cast("string").to_pylist()
    return found


def is_number(value: object) -> bool:
    """Return whether a value is a number; a boolean is none."""
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def answer_text(value: Any) -> str:
    """Write a value that is no text and not null as text."""
    if type(value).__name__ == "MonthDayNano":  # a tuple of pyarrow
        return _duration(*value)
    if isinstance(value, (list, tuple, dict)):
        return json_of(answer_json(value))
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def _duration(months: int, days: int, nanoseconds: int) -> str:
    """Write an interval as DuckDB shows it."""
    clock = timedelta(microseconds=nanoseconds // 1000)
    parts = {"months": months, "days": days}
    words = [f"{count} {name if count != 1 else name[:-1]}" for name, count in parts.items() if count]
    return " ".join([*words, str(clock)]) if clock or not words else " ".join(words)


def answer_json(value: Any) -> Any:
    """Convert a value to what JSON has for it. NaN and infinity become null."""
    if isinstance(value, dict):
        return {str(name): answer_json(part) for name, part in value.items()}
    if type(value) in (list, tuple):
        return [answer_json(part) for part in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else answer_text(value)


def unique_names(names: list[str]) -> list[str]:
    """Append a number to names that are there already, in any case: for databases Url and url are the same."""
    found: dict[str, str] = {}
    for name in names:
        number, unique = 0, name
        while unique.lower() in found:
            number += 1
            unique = f"{name}_{number}"
        found[unique.lower()] = unique
    return list(found.values())
