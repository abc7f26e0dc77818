"""The values of columns, for what writes them as texts."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from usp.scan import CHANGE_FREQUENCIES, Column, List, Scalar, Struct, Type, flags_of

__all__ = ["repeated_text", "texts_of", "values_of"]

_FREQUENCIES = [frequency.value for frequency in CHANGE_FREQUENCIES]


def values_of(kind: Type, column: Column | None, length: int) -> list[Any]:
    """The values of a column, None where there is none: of times, the microseconds since 1970; of structs, dicts."""
    if column is None:
        return [None] * length
    values = _read(kind, column)
    if column.valid is None:
        return values
    return [value if is_valid else None for value, is_valid in zip(values, flags_of(column.valid, length), strict=True)]


def texts_of(column: Column) -> list[str]:
    """The texts of a column; any where there is none."""
    data = bytes(column.data or b"")
    if data.isascii():
        return _slices(data.decode("ascii"), column)
    return [text.decode("utf-8") for text in _slices(data, column)]


def repeated_text(column: Column) -> str | None:
    """The text that is in every row of a column; None if there are others, or is none in some row."""
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
    Scalar.WHOLE: _numbers,
    Scalar.FLAG: lambda column: flags_of(column.data or memoryview(b""), column.length),
}
