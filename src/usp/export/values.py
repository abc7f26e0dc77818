"""The values of columns, for what writes them as texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from usp.scan.columns import CHANGE_FREQUENCIES, Column, List, Scalar, Struct, Type

__all__ = ["values_of"]

#: A byte of bits -> its bits, the lowest first.
_BITS = [[bool(byte >> bit & 1) for bit in range(8)] for byte in range(256)]
_FREQUENCIES = [frequency.value for frequency in CHANGE_FREQUENCIES]


def values_of(kind: Type, column: Column | None, length: int) -> list[Any]:
    """The values of a column, None where there is none: of times, the microseconds since 1970; of structs, dicts."""
    if column is None:
        return [None] * length
    values = _read(kind, column)
    if column.valid is None:
        return values
    return [value if is_valid else None for value, is_valid in zip(values, _flags(column.valid, length), strict=True)]


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


def _texts(column: Column) -> list[str]:
    data = bytes(column.data or b"")
    if data.isascii():
        return _slices(data.decode("ascii"), column)
    return [text.decode("utf-8") for text in _slices(data, column)]


def _flags(bits: memoryview, length: int) -> list[bool]:
    found: list[bool] = []
    for byte in bits:
        found += _BITS[byte]
    return found[:length]


def _numbers(column: Column) -> list[Any]:
    assert column.data is not None
    return column.data.tolist()


_SCALARS: dict[Scalar, Callable[[Column], list[Any]]] = {
    Scalar.TEXT: _texts,
    Scalar.TIME: _numbers,
    Scalar.FREQUENCY: lambda column: [None if number == 255 else _FREQUENCIES[number] for number in _numbers(column)],
    Scalar.NUMBER: _numbers,
    Scalar.WHOLE: _numbers,
    Scalar.FLAG: lambda column: _flags(column.data or memoryview(b""), column.length),
}
