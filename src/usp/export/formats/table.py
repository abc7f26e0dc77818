"""An aligned table, for people.

On a terminal the table has to fit. Text is cut, but never a URL, a number or a time: those are there to be read, copied
and clicked. If the columns do not fit then, each row is a block of lines, one for each column, and nothing is cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, BinaryIO, NamedTuple

from usp.export.formats.base import Answer, Format, FormatOptions
from usp.export.formats.cells import answer_rows, answer_text, is_number, text_stream
from usp.objects.problem import printable

__all__ = ["FORMATS"]

_ROWS_LOOKED_AT = 1_000  # for the widths of columns
_GAP = "  "
_NULL = "NULL"
_MIN_WIDTH = 16  # of a column of text that is cut to fit a terminal
_MAX_WIDTH = 200  # of any column; longer values stick out
_CUT = "…"
_URL = re.compile(r"(?:[a-z][a-z0-9+.-]*:/)?/\S*", re.IGNORECASE)
#: If the longest URLs do not fit, the table has room for this share of them. The others stick out.
_SHARE_OF_URLS = 0.75


class _Column(NamedTuple):
    """A column of the table, as its first rows have it."""

    name: str
    width: int  #: that the rows need
    short_width: int  #: that is enough: of URLs, without the few longest; of text, after a cut
    is_cut: bool  #: whether longer values may be cut
    is_right: bool


def write_answer(answer: Answer, stream: BinaryIO, options: FormatOptions) -> int:
    """Write columns as wide as their first rows need, or as the terminal has room for. Numbers are on the right."""
    rows = answer_rows(answer)
    first = list(islice(rows, _ROWS_LOOKED_AT))
    shown = [[_shown(value) for value in row] for row in first]
    names = [printable(name) for name in answer.schema.names]
    columns = [_column(name, [row[at] for row in first], [row[at] for row in shown]) for at, name in enumerate(names)]
    widths = _widths(columns, options.width)
    all_shown = chain(shown, ([_shown(value) for value in row] for row in rows))
    lines = _blocks(names, all_shown) if widths is None else _lines(columns, widths, all_shown, options.width)
    count = -1 if widths is not None else 0  # a table has a header
    with text_stream(stream) as file:
        for text in lines:
            file.write(text)
            count += 1
    return count


def _column(name: str, values: list[Any], shown: list[str]) -> _Column:
    from rich.cells import cell_len  # only tables need it, and it takes time to import

    there = [value for value in values if value is not None]
    sizes = sorted(map(cell_len, shown))
    width = max([*sizes[-1:], cell_len(name)])
    is_text = any(isinstance(value, (str, list, dict)) for value in there)
    if is_text and all(isinstance(value, str) and _URL.fullmatch(value) for value in there):
        enough = sizes[int((len(sizes) - 1) * _SHARE_OF_URLS)] if sizes else 0
        return _Column(name, width, max(enough, cell_len(name)), False, False)
    short = min(width, max(_MIN_WIDTH, cell_len(name))) if is_text else width
    return _Column(name, width, short, is_text, any(map(is_number, there)))


def _widths(columns: list[_Column], room: int | None) -> list[int] | None:
    """Return the widths of the columns; None if they cannot fit."""
    widths = [column.width for column in columns]
    if room is None:
        return [min(width, _MAX_WIDTH) for width in widths]
    room -= len(_GAP) * (len(columns) - 1)
    if sum(widths) <= room:
        return widths
    widths = [column.width if column.is_cut else column.short_width for column in columns]
    while sum(widths) > room:
        spare = [(width, at) for at, width in enumerate(widths) if width > columns[at].short_width]
        if not spare:
            return [room] if len(columns) == 1 else None
        widest, at = max(spare)
        widths[at] = widest - 1
    return widths


def _lines(columns: list[_Column], widths: list[int], rows: Iterable[list[str]], room: int | None) -> Iterator[str]:
    """Give the lines of a table. The first text is the header."""
    from rich.cells import cell_len, set_cell_size

    def line(cells: list[str]) -> str:
        padded = []
        for cell, width, column in zip(cells, widths, columns, strict=True):
            size = cell_len(cell)
            if room is not None and column.is_cut and size > width:
                cell = set_cell_size(cell, width - 1) + _CUT
            space = " " * (width - size)
            padded.append(space + cell if column.is_right else cell + space)
        return _GAP.join(padded).rstrip() + "\n"

    yield line([column.name for column in columns]) + line(["-" * width for width in widths])
    yield from map(line, rows)


def _blocks(names: list[str], rows: Iterable[list[str]]) -> Iterator[str]:
    """Give a block of lines for each row, with the name of a column and its value on each line."""
    from rich.cells import cell_len

    width = max(map(cell_len, names))
    padded = [name + " " * (width - cell_len(name)) for name in names]
    for number, row in enumerate(rows, 1):
        title = f"-[ {number} ]"
        block = [title.ljust(max(width, len(title)) + len(_GAP), "-")]
        block += [f"{name}{_GAP}{value}" for name, value in zip(padded, row, strict=True)]
        yield "\n".join(block) + "\n"


def _shown(value: object) -> str:
    """Write a value for people, without characters that a terminal acts on."""
    if value is None:
        return _NULL
    return printable(value if isinstance(value, str) else answer_text(value))


FORMATS = (
    Format(
        "table",
        "aligned, for people",
        (".txt",),
        answer_writer=write_answer,
        lacks="rows of an export come while a site is fetched, before the widths of columns are known",
        is_text=True,
        holds_tables=True,
        separator=b"\n",
    ),
)
