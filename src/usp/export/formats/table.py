"""An aligned table, for people."""

from __future__ import annotations

from itertools import chain, islice
from typing import BinaryIO

from usp.export.formats.base import Answer, Format, FormatOptions
from usp.export.formats.cells import answer_rows, answer_text, is_number, text_stream
from usp.objects.problem import printable

__all__ = ["FORMATS"]

_ROWS_LOOKED_AT = 1_000  # for the widths of columns
_GAP = "  "
_NULL = "NULL"
_MIN_WIDTH = 8  # of a column that is cut to fit a terminal
_MAX_WIDTH = 200  # of any column; longer values stick out
_CUT = "…"


def write_answer(answer: Answer, stream: BinaryIO, options: FormatOptions) -> int:
    """Write columns as wide as their first rows need, or as the terminal has room for. Numbers are on the right."""
    from rich.cells import cell_len, set_cell_size  # only tables need it, and it takes time to import

    rows = answer_rows(answer)
    first = list(islice(rows, _ROWS_LOOKED_AT))
    names = [printable(name) for name in answer.schema.names]
    shown = [[_shown(value) for value in row] for row in first]
    widths = [max(map(cell_len, column)) for column in zip(names, *shown, strict=True)]
    if options.width is not None:
        widths = _fitting(widths, options.width)
    widths = [min(width, _MAX_WIDTH) for width in widths]
    is_right = [any(is_number(row[i]) for row in first) for i in range(len(names))]

    def line(cells: list[str]) -> str:
        padded = []
        for cell, width, right in zip(cells, widths, is_right, strict=True):
            size = cell_len(cell)
            if options.width is not None and size > width:
                cell = set_cell_size(cell, width - 1) + _CUT
            space = " " * (width - size)
            padded.append(space + cell if right else cell + space)
        return _GAP.join(padded).rstrip() + "\n"

    count = 0
    with text_stream(stream) as file:
        file.write(line(names))
        file.write(line(["-" * width for width in widths]))
        for cells in chain(shown, ([_shown(value) for value in row] for row in rows)):
            file.write(line(cells))
            count += 1
    return count


def _fitting(widths: list[int], room: int) -> list[int]:
    """Make the widest columns narrower until all fit, or until they are as narrow as may be."""
    room -= len(_GAP) * (len(widths) - 1)
    most = max(widths, default=0)
    while most > _MIN_WIDTH and sum(min(width, most) for width in widths) > room:
        most -= 1
    return [min(width, most) for width in widths]


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
