"""The formats of files: how each is called, what its files end with, and what writes it.

What a format needs is imported when it is used: usp installs without it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from usp.exceptions import InvalidArgumentError
from usp.export.extras import extra
from usp.export.writing import Writer
from usp.scan import Type

__all__ = ["FORMATS", "STANDARD_OUTPUT", "Format", "Target", "target_of"]

STANDARD_OUTPUT = "-"
_GZIP = ".gz"

Types = Mapping[str, Type]


@dataclass(frozen=True, slots=True)
class Format:
    """A format. `writer` makes what writes a table of this name, types and chosen columns to a file."""

    what: str
    suffixes: tuple[str, ...]
    writer: Callable[[Any, str, Types, Types, bool], Writer]
    is_text: bool = False  # may be compressed by gzip
    is_database: bool = False  # holds several tables, and is written by its name
    needs: str = ""  # a module that the extra arrow installs


def _parquet(file: Any, table: str, types: Types, chosen: Types, is_raw: bool) -> Writer:
    from usp.export.arrow import parquet_writer

    return parquet_writer(file, table, types, chosen)


def _arrow(file: Any, table: str, types: Types, chosen: Types, is_raw: bool) -> Writer:
    from usp.export.arrow import arrow_writer

    return arrow_writer(file, table, types, chosen)


def _csv(file: Any, table: str, types: Types, chosen: Types, is_raw: bool) -> Writer:
    from usp.export.as_csv import csv_writer

    return csv_writer(file, types, chosen, is_raw)


def _jsonl(file: Any, table: str, types: Types, chosen: Types, is_raw: bool) -> Writer:
    from usp.export.as_jsonl import jsonl_writer

    return jsonl_writer(file, types, chosen)


def _sqlite(path: Any, table: str, types: Types, chosen: Types, is_raw: bool) -> Writer:
    from usp.export.as_sqlite import sqlite_writer

    return sqlite_writer(path, table, types, chosen)


FORMATS: dict[str, Format] = {
    "parquet": Format("Apache Parquet; needs the extra arrow", (".parquet",), _parquet, needs="pyarrow"),
    "arrow": Format("Apache Arrow; needs the extra arrow", (".arrow", ".feather"), _arrow, needs="pyarrow"),
    "csv": Format("with cells that a spreadsheet would run made harmless", (".csv",), _csv, is_text=True),
    "jsonl": Format("a JSON object on each line", (".jsonl", ".ndjson"), _jsonl, is_text=True),
    "sqlite": Format("tables pages and sitemaps", (".db", ".sqlite", ".sqlite3"), _sqlite, is_database=True),
}


@dataclass(frozen=True, slots=True)
class Target:
    """A file to be written, or standard output."""

    path: str
    format: Format
    is_gzipped: bool = False

    @property
    def is_watched(self) -> bool:
        """Whether somebody may wait for each row."""
        return self.path == STANDARD_OUTPUT and self.format.is_text and not self.is_gzipped

    def check(self) -> None:
        """Raise what stands in the way of writing it, as far as that is known before."""
        if self.format.needs:
            extra(self.format.needs, "arrow")
        if self.path != STANDARD_OUTPUT:
            from usp.export.files import ensure_writable

            ensure_writable(self.path)

    @contextmanager
    def open(self) -> Iterator[Any]:
        """What the writers of the format take. A file appears under its name when this is closed without an error."""
        from usp.export.files import open_whole, whole_file

        if self.path == STANDARD_OUTPUT:
            if sys.stdout is None:
                raise OSError("there is no standard output to write to")
            with self._packed(sys.stdout.buffer) as stream:
                yield stream
            sys.stdout.buffer.flush()
            return
        if self.format.is_database:
            with whole_file(self.path) as name:
                yield name
        else:
            with open_whole(self.path) as file, self._packed(file) as stream:
                yield stream

    @contextmanager
    def _packed(self, stream: IO[bytes]) -> Iterator[IO[bytes]]:
        if not self.is_gzipped:
            yield stream
            return
        from usp.export.files import gzip_stream

        with gzip_stream(stream) as packed:
            yield packed


def target_of(path: str | os.PathLike[str], format_name: str | None = None) -> Target:
    """The file of this name, in the format that is named, or that its name ends with."""
    path = os.fspath(path)
    if format_name is not None and format_name not in FORMATS:
        raise InvalidArgumentError(f"There is no format {format_name!r}; there are {', '.join(FORMATS)}")
    is_gzipped = path.lower().endswith(_GZIP)
    name = format_name or _named_by(path[: -len(_GZIP)] if is_gzipped else path)
    if name is None:
        if path == STANDARD_OUTPUT:
            raise InvalidArgumentError(f"Say in which format to write: {', '.join(FORMATS)}")
        endings = ", ".join(suffix for one in FORMATS.values() for suffix in one.suffixes)
        raise InvalidArgumentError(
            f"The name {path!r} does not say in which format to write; let it end with {endings}"
        )
    found = FORMATS[name]
    if is_gzipped and not found.is_text:
        raise InvalidArgumentError(f"A file of {name} is not compressed by gzip: leave out {_GZIP}")
    if path == STANDARD_OUTPUT and found.is_database:
        raise InvalidArgumentError(f"A file of {name} cannot be written to standard output; give it a name")
    return Target(path, found, is_gzipped)


def _named_by(path: str) -> str | None:
    ending = os.path.splitext(path)[1].lower()
    return next((name for name, one in FORMATS.items() if ending in one.suffixes), None)
