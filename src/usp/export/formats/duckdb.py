"""DuckDB files.

Columns have DuckDB's own types: structs and lists stay what they are, times are TIMESTAMP WITH TIME ZONE, as in `usp
sql` and `to_duckdb()`. The comment of each table has the version of its schema.

DuckDB opens no file that is empty, which a file with a temporary name is at first, and it writes other files beside its
own. So it works in a temporary folder, and the complete file is copied.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from usp.exceptions import InvalidArgumentError
from usp.export.arrow import BatchBuilder, arrow_schema, record_batch
from usp.export.batches import Batch
from usp.export.formats.base import Answer, Format, FormatOptions, Table, Writer
from usp.export.formats.cells import unique_names
from usp.export.interrupts import interruptible
from usp.export.schema import SCHEMA_VERSION
from usp.extras import extra

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

__all__ = ["FORMATS", "duckdb_writer", "opened"]

_ROWS = "usp_rows"  # the name under which DuckDB sees the rows to insert


@contextmanager
def opened(path: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a connection to a new database. If this ends without an error, copy its file to the path."""
    duckdb_ = extra("duckdb", "sql")
    with tempfile.TemporaryDirectory(prefix="usp-duckdb-") as folder:
        name = os.path.join(folder, "new.duckdb")
        try:
            connection: duckdb.DuckDBPyConnection = duckdb_.connect(
                name, config={"python_enable_replacements": "false", "temp_directory": os.path.join(folder, "tmp")}
            )
            with connection:
                connection.execute("set TimeZone = 'UTC'; begin")
                yield connection
                interruptible(connection.commit, connection.interrupt)
                # Without this, `close` moves the rows from the log to the file, and says nothing if it cannot.
                interruptible(partial(connection.execute, "checkpoint"), connection.interrupt)
        except (duckdb_.IOException, duckdb_.FatalException, duckdb_.TransactionException) as error:
            raise OSError(errno.EIO, str(error), path) from error
        try:
            shutil.copyfile(name, path)
        except OSError as error:
            raise OSError(error.errno, error.strerror, path) from error  # the other file is nobody's business


def duckdb_writer(connection: duckdb.DuckDBPyConnection, table: Table, options: FormatOptions) -> Writer:
    """Write a table to a DuckDB database."""
    return _DuckDBWriter(connection, table)


class _DuckDBWriter(Writer):
    """Inserts groups of rows, because DuckDB is slow with few rows at a time."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, table: Table) -> None:
        self._connection = connection
        self._table = table
        self._schema = arrow_schema(table.chosen, table.name)
        self._builder = BatchBuilder(self._schema)
        _create(connection, table.name, self._schema)
        comment = f"usp.schema {table.name}/{SCHEMA_VERSION}"
        connection.execute(f"comment on table {_quoted(table.name)} is '{comment}'")

    def encode(self, batch: Batch, /) -> pa.RecordBatch:
        return record_batch(batch, self._table.types, self._table.chosen, self._schema)

    def write(self, encoded: pa.RecordBatch, /) -> None:
        self._insert(self._builder.add(encoded))

    def close(self) -> None:
        self._insert(self._builder.finish())

    def drop(self) -> None:
        self._builder = BatchBuilder(self._schema)

    def _insert(self, tables: Iterable[pa.Table]) -> None:
        for table in tables:
            _insert(self._connection, self._table.name, table)


def write_answer(answer: Answer, connection: duckdb.DuckDBPyConnection, options: FormatOptions) -> int:
    """Write the answer to a query as a table of a DuckDB database."""
    pa, duckdb_ = extra("pyarrow", "sql"), extra("duckdb", "sql")
    names = unique_names(answer.schema.names)
    schema = pa.schema([field.with_name(name) for field, name in zip(answer.schema, names, strict=True)])
    try:
        _create(connection, answer.name, schema)
    except (duckdb_.Error, pa.ArrowException) as error:
        raise InvalidArgumentError(f"DuckDB cannot hold this answer: {error}") from None
    count = 0
    for batch in answer.batches:
        _insert(connection, answer.name, pa.Table.from_batches([batch.rename_columns(names)]))
        count += batch.num_rows
    return count


def _create(connection: duckdb.DuckDBPyConnection, name: str, schema: pa.Schema) -> None:
    with _registered(connection, schema.empty_table()):
        connection.execute(f"create table {_quoted(name)} as select * from {_ROWS}")  # noqa: S608 -- quoted


def _insert(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
    insert = f"insert into {_quoted(name)} select * from {_ROWS}"  # noqa: S608 -- quoted
    with _registered(connection, rows):
        interruptible(partial(connection.execute, insert), connection.interrupt)


@contextmanager
def _registered(connection: duckdb.DuckDBPyConnection, rows: Any) -> Iterator[None]:
    connection.register(_ROWS, rows)
    yield
    connection.unregister(_ROWS)


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


FORMATS = (
    Format(
        "duckdb",
        "a DuckDB database",
        (".duckdb", ".ddb"),
        duckdb_writer,
        write_answer,
        opener=opened,
        is_named=True,
        holds_tables=True,
        needs=(("duckdb", "pyarrow"), "sql"),
    ),
)
