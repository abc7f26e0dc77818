"""How the answer to a query is written: as an aligned table for people, or in a format for programs."""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, time
from decimal import Decimal
from itertools import chain, islice
from typing import IO, Any

from usp.cli.output import say
from usp.export.as_csv import defused, escaped
from usp.export.files import open_whole
from usp.objects.problem import printable

__all__ = ["write_answer"]

_ROWS_LOOKED_AT = 1_000  # for how wide columns are
_GAP = "  "
_NOTHING = "NULL"


def write_answer(answer: Any, arguments: argparse.Namespace) -> None:
    """Write an answer, a `pyarrow.RecordBatchReader`, to where it is wanted; None says that there is none."""
    if answer is None:
        return
    with _output(arguments.output) as stream:
        if arguments.format == "parquet":
            _write_parquet(answer, stream)
        else:
            text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
            try:
                rows = (
                    _write_table(answer, text) if arguments.format == "table" else _write_data(answer, text, arguments)
                )
            finally:
                text.detach()
            if not arguments.quiet:
                say(f"usp: {rows:,} {'row' if rows == 1 else 'rows'}")


@contextmanager
def _output(path: str | None) -> Iterator[IO[bytes]]:
    if path is not None:
        with open_whole(path) as stream:
            yield stream
    elif sys.stdout is not None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()


def _write_parquet(answer: Any, stream: IO[bytes]) -> None:
    from pyarrow import parquet

    with parquet.ParquetWriter(stream, answer.schema, compression="zstd") as writer:
        for batch in answer:
            writer.write_batch(batch)


def _rows(answer: Any) -> Iterator[tuple[Any, ...]]:
    for batch in answer:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _write_table(answer: Any, stream: IO[str]) -> int:
    """Columns as wide as their first rows need; numbers stand on the right."""
    from rich.cells import cell_len

    rows = _rows(answer)
    first = list(islice(rows, _ROWS_LOOKED_AT))
    names = [printable(name) for name in answer.schema.names]
    shown = [[_shown(value) for value in row] for row in first]
    widths = [max(map(cell_len, column)) for column in zip(names, *shown, strict=True)]
    is_right = [any(_is_number(row[i]) for row in first) for i in range(len(names))]

    def line(cells: list[str]) -> str:
        padded = []
        for cell, width, right in zip(cells, widths, is_right, strict=True):
            space = " " * (width - cell_len(cell))
            padded.append(space + cell if right else cell + space)
        return _GAP.join(padded).rstrip() + "\n"

    stream.write(line(names))
    stream.write(line(["-" * width for width in widths]))
    count = 0
    for cells in chain(shown, ([_shown(value) for value in row] for row in rows)):
        stream.write(line(cells))
        count += 1
    return count


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _shown(value: object) -> str:
    """A value for people's eyes: nothing in it acts on a terminal."""
    if value is None:
        return _NOTHING
    return printable(value if isinstance(value, str) else _as_text(value))


def _as_text(value: object) -> str:
    if isinstance(value, (list, tuple, dict)):
        return json.dumps(value, ensure_ascii=False, default=_as_text)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _write_data(answer: Any, stream: IO[str], arguments: argparse.Namespace) -> int:
    return _write_json(answer, stream) if arguments.format == "json" else _write_csv(answer, stream, arguments.raw_csv)


def _write_csv(answer: Any, stream: IO[str], is_raw: bool) -> int:
    """As `usp export` writes it."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(answer.schema.names)
    count = 0
    for row in _rows(answer):
        count += 1
        writer.writerow([_cell(value, is_raw) for value in row])
    return count


def _cell(value: object, is_raw: bool) -> str:
    if value is None:
        return ""
    text = escaped(value if isinstance(value, str) else _as_text(value))
    return text if is_raw or _is_number(value) else defused(text)


def _write_json(answer: Any, stream: IO[str]) -> int:
    names = answer.schema.names
    count = 0
    stream.write("[")
    for row in _rows(answer):
        text = json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, default=_as_json)
        stream.write(f"{',' if count else ''}\n{text}")
        count += 1
    stream.write("\n]\n" if count else "]\n")
    return count


def _as_json(value: object) -> object:
    return float(value) if isinstance(value, Decimal) else _as_text(value)
