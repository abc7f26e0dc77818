"""Conditions on rows: a tree of them, and for which rows of a batch it holds.

A condition holds for a row as it does in SQL: what compares a null holds for none, and neither does its negation. The
negation of several is made of their negations, so nothing has to tell what is false from what is unknown.

The rows for which a condition holds are a mask: a whole number that has a byte for each row, the first row's the
lowest, which is 1 where it holds and 0 where it does not. So masks are combined for all rows at once. Columns are read
when a condition needs them, each once in a batch.
"""

from __future__ import annotations

import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import repeat
from typing import Any

from usp.export.schema import column_at
from usp.export.values import values_of
from usp.scan.columns import Columns, Scalar, Type

__all__ = ["Among", "At", "Comparison", "Condition", "Constant", "IsNull", "Like", "Operand", "Rows", "Several"]

#: A byte of bits -> a byte for each bit, the lowest first.
_SPREAD = [bytes(byte >> bit & 1 for bit in range(8)) for byte in range(256)]
_AS_THEY_ARE = {Scalar.TIME, Scalar.NUMBER, Scalar.WHOLE}  # values are read from the buffer, with no list between
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class At:
    """What a row has in a column, given by its path."""

    path: str
    type: Type


@dataclass(frozen=True, slots=True)
class Constant:
    """The same value for every row; of a time, the microseconds since 1970."""

    value: str | int | float | bool


Operand = At | Constant


class Rows:
    """The rows of a batch. For one thread."""

    def __init__(self, types: Mapping[str, Type], columns: Columns) -> None:
        self.length = columns.length
        self.all = int.from_bytes(b"\1" * columns.length, "little")
        self._types = types
        self._columns = columns
        self._values: dict[str, Iterable[Any]] = {}
        self._known: dict[str, int] = {}

    def values(self, operand: Operand) -> Iterable[Any]:
        """The values, of one type; where there is none, any."""
        if isinstance(operand, Constant):
            return repeat(operand.value, self.length)
        if operand.path not in self._values:
            self._values[operand.path] = self._values_at(operand)
        return self._values[operand.path]

    def _values_at(self, operand: At) -> Iterable[Any]:
        column = column_at(self._columns, self._types, operand.path)
        assert column is not None
        if operand.type in _AS_THEY_ARE and column.data is not None:
            return column.data
        found = values_of(operand.type, replace(column, valid=None), self.length)
        return [value or "" for value in found] if operand.type is Scalar.FREQUENCY else found

    def known(self, operand: Operand) -> int:
        """The mask of the rows that have a value."""
        if isinstance(operand, Constant):
            return self.all
        if operand.path not in self._known:
            self._known[operand.path] = self._known_at(operand)
        return self._known[operand.path]

    def _known_at(self, operand: At) -> int:
        mask, path = self.all, ""
        for name in operand.path.split("."):
            path = f"{path}.{name}" if path else name
            column = column_at(self._columns, self._types, path)
            if column is None:
                return 0
            if column.valid is not None:
                spread = b"".join([_SPREAD[byte] for byte in column.valid.cast("B")])
                mask &= int.from_bytes(spread[: self.length], "little")
        return mask

    def flags(self, mask: int) -> list[bool]:
        """Of each row, whether it is in a mask."""
        return list(memoryview(mask.to_bytes(self.length, "little")).cast("?"))


class Condition(ABC):
    """What holds for a row, or does not."""

    __slots__ = ()

    @abstractmethod
    def mask(self, rows: Rows) -> int:
        """The rows for which it holds."""

    @abstractmethod
    def negated(self) -> Condition:
        """What holds where this is false."""

    @abstractmethod
    def paths(self) -> frozenset[str]:
        """The columns that it needs."""


@dataclass(frozen=True, slots=True)
class _Single(Condition):
    """A condition on values; unless `is_so`, its negation."""

    is_so: bool = field(default=True, kw_only=True)

    def mask(self, rows: Rows) -> int:
        """Those of the rows where it is found to be so that have all the values."""
        known = rows.all
        for operand in self._operands():
            known &= rows.known(operand)
        if not known:
            return 0
        found = int.from_bytes(bytes(list(self._found(rows))), "little")
        return known & (found if self.is_so else ~found)

    def negated(self) -> Condition:
        """The same, but not so."""
        return replace(self, is_so=not self.is_so)

    def paths(self) -> frozenset[str]:
        """Of those values that are no constants."""
        return frozenset(operand.path for operand in self._operands() if isinstance(operand, At))

    @abstractmethod
    def _operands(self) -> tuple[Operand, ...]: ...

    @abstractmethod
    def _found(self, rows: Rows) -> Iterable[bool]:
        """Of each row, whether it is so; anything where it has no value."""


@dataclass(frozen=True, slots=True)
class Comparison(_Single):
    """Two values of one kind compare so."""

    left: Operand
    symbol: str
    right: Operand

    def _operands(self) -> tuple[Operand, ...]:
        return self.left, self.right

    def _found(self, rows: Rows) -> Iterable[bool]:
        return map(_COMPARE[self.symbol], rows.values(self.left), rows.values(self.right))


@dataclass(frozen=True, slots=True)
class Among(_Single):
    """A value is one of these."""

    operand: Operand
    values: frozenset[Any]

    def _operands(self) -> tuple[Operand, ...]:
        return (self.operand,)

    def _found(self, rows: Rows) -> Iterable[bool]:
        return map(self.values.__contains__, rows.values(self.operand))


@dataclass(frozen=True, slots=True)
class Like(_Single):
    """A text is of a pattern: % is any text in it, _ any character."""

    operand: Operand
    pattern: str
    ignores_case: bool = False

    def _operands(self) -> tuple[Operand, ...]:
        return (self.operand,)

    def _found(self, rows: Rows) -> Iterable[bool]:
        texts = rows.values(self.operand)
        if self.ignores_case:
            return map(_matcher(_lower(self.pattern)), map(_lower, texts))
        return map(_matcher(self.pattern), texts)


@dataclass(frozen=True, slots=True)
class IsNull(Condition):
    """There is no value; unless `is_so`, there is one."""

    operand: Operand
    is_so: bool = True

    def mask(self, rows: Rows) -> int:
        """Known of every row, so it is never in doubt."""
        known = rows.known(self.operand)
        return rows.all ^ known if self.is_so else known

    def negated(self) -> Condition:
        """The same, but not so."""
        return replace(self, is_so=not self.is_so)

    def paths(self) -> frozenset[str]:
        """Of the value, if it is no constant."""
        return frozenset([self.operand.path] if isinstance(self.operand, At) else [])


@dataclass(frozen=True, slots=True)
class Several(Condition):
    """Every one of these holds, if `is_all`; else one of them at least."""

    parts: tuple[Condition, ...]
    is_all: bool

    def mask(self, rows: Rows) -> int:
        """Asks one after another, until nothing can change for any row."""
        decided = 0 if self.is_all else rows.all
        combine = operator.and_ if self.is_all else operator.or_
        mask = rows.all ^ decided
        for part in self.parts:
            if mask == decided:
                break
            mask = combine(mask, part.mask(rows))
        return mask

    def negated(self) -> Condition:
        """Not all is one that is not; not one is all that are not."""
        return Several(tuple(part.negated() for part in self.parts), not self.is_all)

    def paths(self) -> frozenset[str]:
        """Of all of them."""
        return frozenset().union(*(part.paths() for part in self.parts))


def _lower(text: str) -> str:
    """Letter by letter, as SQL engines do: Python's own way makes two letters of one, and minds the end of a word."""
    return text.lower() if text.isascii() else text.replace("İ", "i").replace("Σ", "\u03c3").lower()


@lru_cache
def _matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a text is of a pattern. What is between two % is looked for once, and never again further on.

    So it takes no longer than the text's length times the pattern's.
    """
    first, *middle, last = parts = pattern.split("%") if "%" in pattern else [pattern, ""]
    if "_" not in pattern and sum(map(bool, parts)) <= 1:
        if "%" not in pattern:
            return operator.methodcaller("__eq__", pattern)
        name = "startswith" if first else "endswith" if last else "__contains__"
        return operator.methodcaller(name, "".join(parts))
    if "%" not in pattern:
        expression = _expression(pattern)
    else:
        found = "".join(f"(?>.*?{_expression(part)})" for part in middle if part)
        expression = f"{_expression(first)}{found}.*{_expression(last)}"
    match = re.compile(expression, re.DOTALL).fullmatch
    return lambda text: match(text) is not None


def _expression(part: str) -> str:
    return ".".join(map(re.escape, part.split("_")))
