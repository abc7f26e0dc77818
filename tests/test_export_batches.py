"""Columns of several sitemaps become one, with the rows of each in order."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanners import URL, as_rows
from support import fixtures
from usp.documents import Document
from usp.export.batches import joined_columns, positions, repeated_numbers, repeated_texts
from usp.export.formats.cells import values_of
from usp.fetch_parse.abstract import AbstractPagesParser
from usp.fetch_parse.opening import parser_of
from usp.scan import PAGE_TYPES, Column, Columns, Scalar, Type, between


@cache
def _columns() -> list[Columns]:
    """Return the columns of all fixtures with few pages."""
    parsers = [parser_of(Document(URL, fixture.data)) for fixture in fixtures()]
    found = [part for parser in parsers if isinstance(parser, AbstractPagesParser) for part in parser.columns()]
    return [part for part in found if part.length < 100]


def test_the_columns_of_all_fixtures_are_joined() -> None:
    """Every column of every fixture is in the joined ones, and null where a fixture has none."""
    parts = _columns()
    assert {name for part in parts for name in part.columns} == PAGE_TYPES.keys()
    joined = joined_columns(PAGE_TYPES, parts)
    assert as_rows([joined]) == as_rows(parts)
    for name, column in joined.columns.items():
        assert column.length == joined.length, name


@given(st.data())
def test_columns_that_were_cut_are_joined_as_they_were(data: st.DataObject) -> None:
    """It does not matter where rows were cut, bits in the middle of a byte included."""
    whole = joined_columns(PAGE_TYPES, _columns())
    cuts = sorted(data.draw(st.lists(st.integers(0, whole.length), max_size=12)))
    parts = [
        Columns(end - start, {name: between(PAGE_TYPES[name], of, start, end) for name, of in whole.columns.items()})
        for start, end in zip([0, *cuts], [*cuts, whole.length], strict=True)
    ]
    assert as_rows([joined_columns(PAGE_TYPES, parts)]) == as_rows([whole])


def test_a_single_part_is_not_copied() -> None:
    """The columns of one sitemap are the joined ones."""
    part = _columns()[0]
    assert joined_columns(PAGE_TYPES, [part]) is part


def _values(kind: Type, column: Column) -> list[object]:
    return values_of(kind, column, column.length)


@pytest.mark.parametrize("lengths", [[3], [2, 0, 1], [0, 70_000], []])
def test_values_of_sitemaps_are_repeated(lengths: list[int]) -> None:
    """Each value stands in as many rows as its sitemap has; positions count from 1, or go on."""
    texts, numbers, firsts = ["é", "", "ab"][: len(lengths)], [1, -2, 3][: len(lengths)], [0, 5, 7][: len(lengths)]
    rows = [number for number, length in enumerate(lengths) for _ in range(length)]
    assert _values(Scalar.TEXT, repeated_texts(texts, lengths)) == [texts[row] for row in rows]
    assert _values(Scalar.INTEGER, repeated_numbers(numbers, lengths)) == [numbers[row] for row in rows]
    counted = [first + at + 1 for first, length in zip(firsts, lengths, strict=True) for at in range(length)]
    assert _values(Scalar.INTEGER, positions(firsts, lengths)) == counted
