"""How the answer to a query is written: as an aligned table for people, or in a format for programs."""

from __future__ import annotations

import argparse
import io
import math
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Any

from usp.cli.output import say
from usp.exceptions import InvalidArgumentError
from usp.export.arrow import Gate
from usp.export.as_csv import csv_cell
from usp.export.files import open_whole
from usp.export.texts import json_of
from usp.objects.problem import printable

if TYPE_CHECKING:
    from usp.export.queries import Answer

__all__ = ["write_answer"]

_ROWS_LOOKED_AT = 1_000  # for how wide columns are
_GAP = "  "
_NOTHING = "NULL"
_LEAST_WIDTH = 8  # of a column that is cut to fit a terminal
_MOST_WIDTH = 200  # of any: what is longer sticks out, or every row would be as long
_CUT = "…"


def write_answer(answer: Answer | None, arguments: argparse.Namespace) -> None:
    """Write an answer to where it is wanted; None says that there is none."""
    if answer is None:
        return
    with _output(arguments.output) as stream:
        if arguments.format == "parquet":
            _write_parquet(answer, stream)
            return
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
        try:
            rows = _WRITERS[arguments.format](answer, text, arguments)
        finally:
            text.detach()
        if not arguments.quiet:
            say(f"usp: {rows:,} {'row' if rows == 1 else 'rows'}")


@contextmanager
def _output(path: str | None) -> Iterator[IO[bytes]]:
    if path is not None:
        with open_whole(path) as stream:
            yield stream
        return
    if sys.stdout is None:
        raise OSError("there is no standard output to write to")
    sys.stdout.flush()
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()


def _write_parquet(answer: Answer, stream: Any) -> None:
    from pyarrow import ArrowNotImplementedError, parquet

    gate = Gate(stream)  # so that what is not whole does not look so
    try:
        with gate.opened():
            writer = parquet.ParquetWriter(gate, answer.schema, compression="zstd")
    except ArrowNotImplementedError as error:
        raise InvalidArgumentError(f"Parquet cannot hold this answer: {error}") from None
    for batch in answer.batches:
        with gate.opened():
            writer.write_batch(batch)
    with gate.opened():
        writer.close()


def _rows(answer: Answer) -> Iterator[tuple[Any, ...]]:
    for batch in answer.batches:
        yield from zip(*map(_values, batch.columns), strict=True)


def _values(column: Any) -> list[Any]:
    try:
        found: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):  # times that Python has not
        found = column.cast("string").to_pylist()
    return found


def _write_table(answer: Answer, stream: IO[str], arguments: argparse.Namespace) -> int:
    """Columns as wide as their first rows need, or as a terminal has room for; numbers stand on the right."""
    from rich.cells import cell_len, set_cell_size

    rows = _rows(answer)
    first = list(islice(rows, _ROWS_LOOKED_AT))
    names = [printable(name) for name in answer.schema.names]
    shown = [[_shown(value) for value in row] for row in first]
    widths = [max(map(cell_len, column)) for column in zip(names, *shown, strict=True)]
    is_cut = arguments.output is None and sys.stdout is not None and sys.stdout.isatty()
    if is_cut:
        widths = _fitting(widths, shutil.get_terminal_size().columns)
    widths = [min(width, _MOST_WIDTH) for width in widths]
    is_right = [any(_is_number(row[i]) for row in first) for i in range(len(names))]

    def line(cells: list[str]) -> str:
        padded = []
        for cell, width, right in zip(cells, widths, is_right, strict=True):
            size = cell_len(cell)
            if is_cut and size > width:
                cell = set_cell_size(cell, width - 1) + _CUT
            space = " " * (width - size)
            padded.append(space + cell if right else cell + space)
        return _GAP.join(padded).rstrip() + "\n"

    stream.write(line(names))
    stream.write(line(["-" * width for width in widths]))
    count = 0
    for cells in chain(shown, ([_shown(value) for value in row] for row in rows)):
        stream.write(line(cells))
        count += 1
    return count


def _fitting(widths: list[int], room: int) -> list[int]:
    """The widths of columns, the widest made narrower until all fit, or are as narrow as may be."""
    room -= len(_GAP) * (len(widths) - 1)
    most = max(widths, default=0)
    while most > _LEAST_WIDTH and sum(min(width, most) for width in widths) > room:
        most -= 1
    return [min(width, most) for width in widths]


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _shown(value: object) -> str:
    """A value for people's eyes: nothing in it acts on a terminal."""
    if value is None:
        return _NOTHING
    return printable(value if isinstance(value, str) else _as_text(value))


def _as_text(value: Any) -> str:
    if type(value).__name__ == "MonthDayNano":  # pyarrow's; a tuple, too
        return _duration(*value)
    if isinstance(value, (list, tuple, dict)):
        return json_of(_as_json(value))
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
    """A length of time, as DuckDB shows it."""
    clock = timedelta(microseconds=nanoseconds // 1000)
    parts = {"months": months, "days": days}
    words = [f"{count} {name if count != 1 else name[:-1]}" for name, count in parts.items() if count]
    return " ".join([*words, str(clock)]) if clock or not words else " ".join(words)


def _write_csv(answer: Answer, stream: IO[str], arguments: argparse.Namespace) -> int:
    """As `usp export` writes it."""

    def cell(value: object) -> str:
        if value is None:
            return '""' if len(names) == 1 else ""
        text = value if isinstance(value, str) else _as_text(value)
        return text if _is_number(value) else csv_cell(text, arguments.raw_csv)

    names = answer.schema.names
    stream.write(",".join(map(cell, names)) + "\n")
    count = 0
    for row in _rows(answer):
        count += 1
        stream.write(",".join(map(cell, row)) + "\n")
    return count


def _write_json(answer: Answer, stream: IO[str], arguments: argparse.Namespace) -> int:
    names = _unique(answer.schema.names)
    count = 0
    stream.write("[")
    for row in _rows(answer):
        text = json_of(_as_json(dict(zip(names, row, strict=True))))
        stream.write(f"{',' if count else ''}\n{text}")
        count += 1
    stream.write("\n]\n" if count else "]\n")
    return count


def _unique(names: list[str]) -> list[str]:
    """The names, with a number behind those that were there already."""
    found: dict[str, None] = {}
    for name in names:
        number, unique = 0, name
        while unique in found:
            number += 1
            unique = f"{name}_{number}"
        found[unique] = None
    return list(found)


def _as_json(value: Any) -> Any:
    """What JSON has for a value; for what is no number, none."""
    if isinstance(value, dict):
        return {str(name): _as_json(part) for name, part in value.items()}
    if type(value) in (list, tuple):
        return [_as_json(part) for part in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else _as_text(value)


_WRITERS = {"table": _write_table, "csv": _write_csv, "json": _write_json}
