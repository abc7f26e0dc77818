"""The table of probed pages: a row for each page of the sample, in its order, in any format of `usp export`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from tempfile import TemporaryFile
from types import MappingProxyType, TracebackType
from typing import Any, Self

from usp.check.probing.page import ProbedPage, is_noindex
from usp.export.batches import Batch
from usp.export.formats import OutputFile, output_file
from usp.export.formats.base import FormatOptions, Table
from usp.scan import Column, Columns, List, Scalar, Type, column_of, parse_date

__all__ = ["COLUMNS", "PageTable"]

NAME = "probed_pages"
COLUMNS: Mapping[str, Type] = MappingProxyType(
    {
        "url": Scalar.TEXT,
        "sitemap_url": Scalar.TEXT,
        "last_modified": Scalar.TIME,
        "status": Scalar.INTEGER,
        "answered_url": Scalar.TEXT,
        "reason": Scalar.TEXT,
        "seconds": Scalar.NUMBER,
        "fetched_at": Scalar.TIME,
        "bytes": Scalar.INTEGER,
        "content_type": Scalar.TEXT,
        "title": Scalar.TEXT,
        "heading": Scalar.TEXT,
        "canonical": Scalar.TEXT,
        "noindex": Scalar.TEXT,
        "page_modified": Scalar.TIME,
        "disallowed_to": Scalar.TEXT,
        "alternates": List(Scalar.TEXT),
        "codes": List(Scalar.TEXT),
    }
)
_ROWS = 8_192  # at a time
_TIMES = [name for name, kind in COLUMNS.items() if kind is Scalar.TIME]


class PageTable:
    """Collects rows in a temporary file, and writes the table at the end: until then, codes may be added."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._output = output_of(path)
        self._rows = TemporaryFile("w+", encoding="utf-8", prefix="usp-")  # noqa: SIM115 -- __exit__ closes it
        self._more: dict[int, list[str]] = {}  # codes that are added later, by row
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._rows.close()

    def add(self, page: ProbedPage, sitemap_url: str) -> int:
        """Add a page, and return the number of its row."""
        facts, own, listed = page.facts, page.facts.own_date, page.listed.last_modified
        row = {
            "url": facts.url,
            "sitemap_url": sitemap_url,
            "last_modified": None if listed is None else listed.isoformat(),
            "status": facts.status,
            "answered_url": facts.answered_url,
            "reason": facts.reason or None,
            "seconds": facts.seconds,
            "fetched_at": facts.fetched_at or None,
            "bytes": facts.size,
            "content_type": facts.content_type or None,
            "title": facts.title or None,
            "heading": facts.heading or None,
            "canonical": facts.canonical or None,
            "noindex": is_noindex(facts) or None,
            "page_modified": None if own is None else own.isoformat(),
            "disallowed_to": page.disallowed_to or None,
            "alternates": [url for _, url in facts.alternates],
            "codes": page.codes,
        }
        self._rows.write(json.dumps(row) + "\n")
        self._count += 1
        return self._count - 1

    def add_code(self, row: int, code: str) -> None:
        """Add a code to a row that was written before."""
        self._more.setdefault(row, []).append(code)

    def write(self) -> None:
        """Write the file."""
        make = self._output.format.table_writer
        assert make is not None
        with self._output.open() as file:
            writer = make(file, Table(NAME, COLUMNS, COLUMNS), FormatOptions())
            try:
                for columns in self._columns():
                    writer.write(writer.encode(Batch(columns)))
                writer.close()
            finally:
                writer.drop()

    def _columns(self) -> Iterator[Columns]:
        self._rows.seek(0)
        rows = self._read()
        while values := list(islice(rows, _ROWS)):
            columns = {name: _column(kind, [row[name] for row in values]) for name, kind in COLUMNS.items()}
            yield Columns(len(values), {name: column for name, column in columns.items() if column is not None})

    def _read(self) -> Iterator[dict[str, Any]]:
        for number, line in enumerate(self._rows):
            row = json.loads(line)
            row["codes"] += self._more.get(number, [])
            for name in _TIMES:
                row[name] = row[name] and parse_date(row[name])
            yield row


def output_of(path: str | os.PathLike[str]) -> OutputFile:
    """Return the file to write.

    :raises InvalidArgumentError: if its name says no format, or one that holds no tables.
    :raises OSError: if it cannot be written.
    """
    output = output_file(path)
    output.check()
    return output


def _column(kind: Type, values: Iterable[Any]) -> Column | None:
    listed = list(values)
    return column_of(kind, listed) if any(value is not None for value in listed) else None
