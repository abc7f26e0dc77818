"""SQLite files.

Columns are TEXT, INTEGER or REAL. Times are ISO 8601 in UTC, which SQLite's date functions read. Booleans are 0 and 1.
Lists are JSON, for json_each. The fields of a struct are columns: news_title. A small table `usp` has the
version of each table's schema.

There is no index: it would take half as long as all the writing, and half as much space again. To look up single pages,
make one: create index pages_url on pages (url).

The file has a temporary name until it is complete. So it needs no journal, and SQLite does not wait for the disk. The
tables of a file are written one after another.

The answer to a query is a table `answer`, with the same types. What SQLite has no type for is text, as in CSV.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from decimal import Decimal
from itertools import repeat
from typing import TYPE_CHECKING, Any

from usp.export.batches import Batch
from usp.export.formats.base import Answer, Format, FormatOptions, Table, Writer
from usp.export.formats.cells import (
    PIECE_ROWS,
    answer_rows,
    answer_text,
    json_parts,
    pieces,
    repeated_text,
    row_texts,
    texts_of,
    time_texts,
    unique_names,
    values_of,
)
from usp.export.schema import SCHEMA_VERSION, flattened
from usp.scan import Column, Columns, Scalar, Type, flags_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FORMATS", "sqlite_writer"]

_AFFINITIES: dict[Scalar, str] = {
    Scalar.NUMBER: "REAL",
    Scalar.INTEGER: "INTEGER",
    Scalar.BOOLEAN: "INTEGER",
}
_ERRNOS = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
    sqlite3.SQLITE_READONLY: errno.EROFS,
}

#: The names of columns, and the values of each column.
Encoded = tuple[list[str], list[Iterable[Any]]]


def sqlite_writer(path: str, table: Table, options: FormatOptions) -> Writer:
    """Write a table to an SQLite file, which may have other tables."""
    return _SQLiteWriter(path, table.name, table.types, flattened(table.chosen))


class _SQLiteWriter(Writer):
    def __init__(self, path: str, name: str, types: Mapping[str, Type], chosen: Mapping[str, Type]) -> None:
        self._path = path
        self._name = name
        self._types = types
        self._chosen = chosen
        self._connection: sqlite3.Connection | None = None

    def encode(self, batch: Batch, /) -> Iterable[Encoded]:
        found = (_encoded(piece, self._chosen) for piece in pieces(batch, self._types, self._chosen))
        return list(found) if batch.columns.length <= 4 * PIECE_ROWS else found

    def write(self, encoded: Iterable[Encoded], /) -> None:
        with _errors(self._path):
            connection = self._opened()
            for names, columns in encoded:
                marks = ",".join("?" * len(names))
                statement = f"insert into {_quoted(self._name)} ({','.join(names)}) values ({marks})"  # noqa: S608 -- ours
                connection.executemany(statement, zip(*columns, strict=True))

    def close(self) -> None:
        with _errors(self._path):
            self._opened().execute("commit")
            self.drop()

    def drop(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _opened(self) -> sqlite3.Connection:
        """Open the file and create the table, if that is not done."""
        if self._connection is None:
            # The thread that writes may not be the one that closes; they never work at the same time.
            connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            try:
                affinities = {_column_name(path): _affinity(kind) for path, kind in self._chosen.items()}
                _begin(connection, self._name, affinities, has_schema=True)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection


@contextmanager
def _errors(path: str) -> Iterator[None]:
    """Raise what SQLite raises as an OSError that names the file."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        message = str(error)
        raise OSError(_ERRNOS.get(code, errno.EIO), message[:1].upper() + message[1:], path) from error


def _begin(connection: sqlite3.Connection, name: str, affinities: Mapping[str, str], *, has_schema: bool) -> None:
    """Create a table. If it has our schema, note the version."""
    columns = ", ".join(f"{column} {affinity}" for column, affinity in affinities.items())
    for statement in ("pragma journal_mode = off", "pragma synchronous = off", "begin exclusive"):
        connection.execute(statement)
    connection.execute(f"create table {_quoted(name)} ({columns})")
    if has_schema:
        connection.execute(f"pragma user_version = {SCHEMA_VERSION}")
        connection.execute("create table if not exists usp (name text primary key, version integer)")
        connection.execute("insert into usp values (?, ?)", (name, SCHEMA_VERSION))


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _column_name(path: str) -> str:
    return _quoted(path.replace(".", "_"))


def _affinity(kind: Type) -> str:
    return _AFFINITIES.get(kind, "TEXT") if isinstance(kind, Scalar) else "TEXT"


def _encoded(rows: Columns, chosen: Mapping[str, Type]) -> Encoded:
    """Encode only columns that have values: SQLite inserts shorter rows faster."""
    there = {path: rows.columns[path] for path in chosen if path in rows.columns}
    if not there:
        return [_column_name(next(iter(chosen)))], [repeat(None, rows.length)]
    values = [_values(chosen[path], column, rows.length) for path, column in there.items()]
    return [_column_name(path) for path in there], values


def _values(kind: Type, column: Column, length: int) -> Iterable[Any]:
    if kind is Scalar.TEXT:
        repeated = repeated_text(column)
        if repeated is not None:
            return repeat(repeated, length)
        values = texts_of(column)
    elif kind is Scalar.TIME:
        assert column.data is not None
        values = time_texts(column.data.tolist())
    elif isinstance(kind, Scalar):
        return values_of(kind, column, length)
    else:
        values = row_texts(length, json_parts(kind, column, length))
    if column.valid is None:
        return values
    return [value if is_valid else None for value, is_valid in zip(values, flags_of(column.valid, length), strict=True)]


_INTEGERS = range(-(1 << 63), 1 << 63)


def write_answer(answer: Answer, path: str, options: FormatOptions) -> int:
    """Write the answer to a query as a table of an SQLite file."""
    names = [_quoted(name) for name in unique_names(answer.schema.names)]
    affinities = dict(zip(names, map(_answer_affinity, answer.schema.types), strict=True))
    with _errors(path), closing(sqlite3.connect(path, isolation_level=None)) as connection:
        _begin(connection, answer.name, affinities, has_schema=False)
        rows = ([_answer_value(value) for value in row] for row in answer_rows(answer))
        marks = ",".join("?" * len(names))
        statement = f"insert into {_quoted(answer.name)} values ({marks})"  # noqa: S608 -- quoted
        count = connection.executemany(statement, rows).rowcount
        connection.execute("commit")
    return max(count, 0)


def _answer_affinity(kind: pa.DataType) -> str:
    from pyarrow import types

    if types.is_integer(kind) or types.is_boolean(kind):
        return "INTEGER"
    if types.is_floating(kind) or types.is_decimal(kind):
        return "NUMERIC" if types.is_decimal(kind) else "REAL"
    return "BLOB" if types.is_binary(kind) or types.is_large_binary(kind) else "TEXT"


def _answer_value(value: Any) -> Any:
    if value is None or isinstance(value, (str, float, bytes)):
        return value
    if isinstance(value, Decimal):
        value = int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, int) and value in _INTEGERS:
        return value
    return value if isinstance(value, float) else answer_text(value)


FORMATS = (
    Format(
        "sqlite",
        "an SQLite database",
        (".db", ".sqlite", ".sqlite3"),
        sqlite_writer,
        write_answer,
        is_named=True,
        holds_tables=True,
    ),
)
