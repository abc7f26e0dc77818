"""The tables of the explorer: Parquet parts of pages in a temporary folder, sitemaps and problems in memory; DuckDB.

Queries of people run in another process, on copies of the tables. They have a time limit and can be cancelled.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from usp.exceptions import InvalidArgumentError
from usp.export.arrow import arrow_schema, record_batch
from usp.export.batches import Batch
from usp.export.schema import SITEMAPS, SOURCE
from usp.extras import extra
from usp.scan import Columns, Scalar, Type, column_of
from usp.view.database import TABLES, copy_table, open_database, open_pages
from usp.view.filters import Condition
from usp.view.queries import CANCELLED, Queries, QueryCancelled, QueryProcess

__all__ = ["PROBLEMS", "SITEMAP_ROWS", "Store"]

#: The columns of sitemaps and problems in the explorer. `all_pages` are those of a sitemap and of all below it.
SITEMAP_ROWS: Mapping[str, Type] = {
    "id": Scalar.INTEGER,
    SOURCE: Scalar.TEXT,
    **SITEMAPS,
    "all_pages": Scalar.INTEGER,
}
PROBLEMS: Mapping[str, Type] = {
    "sitemap": Scalar.INTEGER,
    "sitemap_url": Scalar.TEXT,
    "code": Scalar.TEXT,
    "severity": Scalar.TEXT,
    "message": Scalar.TEXT,
    "line": Scalar.INTEGER,
    "column": Scalar.INTEGER,
    "text": Scalar.TEXT,
}

_CHUNK = 65_536  # rows whose matches are counted together
_KEPT_COUNTS = 32  # filters whose counts are kept
_MAX_SORTED = 2_000_000  # rows; sorting more takes too long for a page
_SECONDS = 30.0
_CLOSING_SECONDS = 2.0  # for queries to end
_BATCH = 10_000  # rows
_ENDED = "usp view has ended."
_SECONDS_AHEAD = 1.0  # that a request to cancel a query may overtake the query
_INTERRUPTS, _BETWEEN_INTERRUPTS = 20, 0.05


class Store:
    """The database. Any thread may use it.

    `version` grows whenever there is something new to read.
    """

    def __init__(self, *, has_source: bool = False) -> None:
        duckdb = extra("duckdb", "view")
        extra("pyarrow", "view")
        self.version = 0
        self._duckdb = duckdb
        self._temporary = tempfile.mkdtemp(prefix="usp-view-")
        self.folder = os.path.join(self._temporary, "parts")
        self.downloads = os.path.join(self._temporary, "downloads")
        os.mkdir(self.folder)
        os.mkdir(self.downloads)
        self._connection = open_database(self.folder, os.path.join(self._temporary, "duckdb"))
        self._queries = Queries(lambda: QueryProcess(self.folder, self._temporary))
        self._lock = threading.Lock()
        self._running: dict[str, Any] = {}
        self._cancelled: dict[str, float] = {}  # a query that is to come, and until when
        self._is_closing = False
        self._counts: OrderedDict[tuple[object, ...], list[tuple[int, int]]] = OrderedDict()
        self._sorted: OrderedDict[tuple[object, ...], str] = OrderedDict()
        self.write_table("sitemaps", SITEMAP_ROWS, [])
        self.write_table("problems", PROBLEMS, [])

    def open_pages(self) -> None:
        """Make the views of pages. There is a part by now."""
        open_pages(self._connection, self.folder)

    def write_table(self, name: str, types: Mapping[str, Type], rows: Sequence[Mapping[str, Any]]) -> None:
        """Replace a table in memory."""
        columns = {column: column_of(kind, [row.get(column) for row in rows]) for column, kind in types.items()}
        schema = arrow_schema(types, name)
        found = record_batch(Batch(Columns(len(rows), columns)), types, types, schema)
        with self._cursor() as cursor:
            cursor.register("given", extra("pyarrow", "view").Table.from_batches([found], schema))
            cursor.execute(f"create or replace table {name} as from given")
            cursor.unregister("given")
        self.changed()

    def write_arrow(self, name: str, table: Any) -> None:
        """Replace a table in memory with an Arrow table."""
        with self._cursor() as cursor:
            cursor.register("given", table)
            cursor.execute(f"create or replace table {name} as from given")
            cursor.unregister("given")

    def changed(self) -> None:
        """Say that there is something new to read."""
        with self._lock:
            self.version += 1

    def close(self) -> None:
        """End all queries, close the database, and remove the folder."""
        try:
            self.end_queries()
            self._queries.close()
            with suppress(self._duckdb.Error):  # a query that does not end; the process does
                self._connection.close()
        finally:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def end_queries(self) -> None:
        """End the queries of people and exports, and take no more."""
        self._is_closing = True
        end = time.monotonic() + _CLOSING_SECONDS
        while (running := self._running_now()) and time.monotonic() < end:
            for cursor in running:
                cursor.interrupt()
            time.sleep(0.02)

    def _running_now(self) -> list[Any]:
        with self._lock:
            return list(self._running.values())

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        cursor = self._connection.cursor()
        try:
            yield cursor
        except self._duckdb.Error as error:
            raise InvalidArgumentError(str(error)) from None
        finally:
            cursor.close()

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[dict[str, Any]]:
        """Return the rows of a query of ours, as dictionaries."""
        with self._cursor() as cursor:
            found: list[dict[str, Any]] = cursor.sql(sql, params=list(values)).to_arrow_table().to_pylist()
        return found

    def tuples(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query of ours, as tuples."""
        with self._cursor() as cursor:
            found: list[tuple[Any, ...]] = cursor.execute(sql, list(values)).fetchall()
        return found

    def is_expression(self, text: str) -> bool:
        """Return whether a text is a regular expression, as DuckDB knows them."""
        try:
            self.tuples("select regexp_matches('', ?)", [text])
        except InvalidArgumentError:
            return False
        return True

    @contextmanager
    def batches(self, sql: str, values: Sequence[object] = ()) -> Iterator[Any]:
        """Give the schema of the result of a query of ours, and its Arrow batches. They end when the store closes.

        :raises QueryCancelled: if it closes.
        """
        with self._cursor() as cursor, self._ending_with_the_store(f"batches {id(cursor)}", cursor):
            reader = cursor.sql(sql, params=list(values)).to_arrow_reader(_BATCH)
            yield reader.schema, self._until_closing(reader)

    @contextmanager
    def _ending_with_the_store(self, name: str, cursor: Any) -> Iterator[None]:
        """Let `cancel`, or the end of the store, interrupt the queries of a cursor."""
        with self._lock:
            if self._is_closing:
                raise QueryCancelled(_ENDED)
            if self._cancelled.pop(name, 0.0) > time.monotonic():
                raise QueryCancelled(CANCELLED)
            self._running[name] = cursor
        try:
            yield
        finally:
            with self._lock:
                if self._running.get(name) is cursor:  # another query may have the same name
                    del self._running[name]

    def _until_closing(self, reader: Any) -> Iterator[Any]:
        try:
            for batch in reader:
                if self._is_closing:
                    raise QueryCancelled(_ENDED)
                yield batch
        except (extra("pyarrow", "view").ArrowException, OSError) as error:
            raise (QueryCancelled(_ENDED) if self._is_closing else InvalidArgumentError(str(error))) from None

    def page_rows(
        self, columns: str, condition: Condition, sort: str, offset: int, limit: int
    ) -> tuple[int, list[dict[str, Any]]]:
        """Return how many pages meet a condition, and some of them, in the order of the tree or sorted.

        Matches are counted by ranges of rows, which takes one pass over the columns of the condition. After that, any
        place in the result is a query of one or two ranges.

        :param sort: what stands behind `order by`; empty for the order of the tree.
        """
        counts = self._chunk_counts(condition)
        total = sum(count for _, count in counts)
        if sort:
            return total, self._sorted_rows(columns, condition, sort, total, offset, limit)
        found: list[dict[str, Any]] = []
        before = 0
        for chunk, count in counts:
            if before + count > offset and len(found) < limit:
                skip = max(offset - before, 0)
                first = chunk * _CHUNK
                found += self.rows(
                    f"select {columns} from all_pages where row between {first} and {first + _CHUNK - 1}"
                    f" and ({condition.sql}) order by row limit {limit - len(found)} offset {skip}",
                    condition.values,
                )
            before += count
        return total, found

    def _chunk_counts(self, condition: Condition) -> list[tuple[int, int]]:
        key = (self.version, condition)
        with self._lock:
            if key in self._counts:
                self._counts.move_to_end(key)
                return self._counts[key]
        found = self.tuples(
            f"select row // {_CHUNK} as chunk, count(*) from all_pages where {condition.sql} group by 1 order by 1",
            condition.values,
        )
        counts = [(int(chunk), int(count)) for chunk, count in found]
        with self._lock:
            self._counts[key] = counts
            while len(self._counts) > _KEPT_COUNTS:
                self._counts.popitem(last=False)
        return counts

    def _sorted_rows(
        self, columns: str, condition: Condition, sort: str, total: int, offset: int, limit: int
    ) -> list[dict[str, Any]]:
        if total > _MAX_SORTED:
            raise InvalidArgumentError(f"{total:,} pages are too many to sort; filter them first, to {_MAX_SORTED:,}")
        key = (self.version, condition, sort)
        with self._lock:
            name = self._sorted.get(key)
            if name is None:
                name = f"sorted_{time.monotonic_ns()}"
                with self._cursor() as cursor:
                    cursor.execute(
                        f"create table {name} as select row_number() over (order by {sort}, row) as place, row"
                        f" from all_pages where {condition.sql}",
                        list(condition.values),
                    )
                    self._sorted[key] = name
                    if len(self._sorted) > 2:
                        cursor.execute(f"drop table {self._sorted.popitem(last=False)[1]}")
            # Before another question may drop the table.
            places = f"place > {offset} and place <= {offset + limit}"
            numbers = [row for (row,) in self.tuples(f"select row from {name} where {places} order by place")]
        if not numbers:
            return []
        found = self.rows(f"select {columns} from all_pages where row in ({', '.join(map(str, numbers))})")
        by_row = {row["row"]: row for row in found}
        return [by_row[number] for number in numbers if number in by_row]

    def ask(self, query: str, name: str, seconds: float = _SECONDS) -> tuple[Any, bool]:
        """Run a query of a person. Return an Arrow table, and whether rows are missing because there are too many.

        :param name: what `cancel` takes.
        :raises InvalidArgumentError: if it is wrong, with DuckDB's message.
        """
        with (
            self._queries.process() as process,
            self._ending_with_the_store(name, process),
            self._copied_tables(process) as tables,
        ):
            return process.ask(query, tables, seconds)

    @contextmanager
    def _copied_tables(self, process: QueryProcess) -> Iterator[dict[str, str]]:
        """Give the files of the tables that have changed since the last query of a process."""
        version, tables = self.version, dict[str, str]()
        try:
            if version != process.version:
                with self._cursor() as cursor:
                    for name in TABLES:
                        tables[name] = os.path.join(self.folder, f"{name}-{secrets.token_hex(8)}.parquet")
                        copy_table(cursor, name, tables[name])
            process.version = version
            yield tables
        finally:
            for path in tables.values():
                with suppress(FileNotFoundError):
                    os.unlink(path)

    def cancel(self, name: str) -> None:
        """Cancel a query of a person that runs, or that comes within a second: requests may overtake each other."""
        with self._lock:
            if name not in self._running:
                now = time.monotonic()
                self._cancelled = {other: until for other, until in self._cancelled.items() if until > now}
                self._cancelled[name] = now + _SECONDS_AHEAD
        for _ in range(_INTERRUPTS):
            with self._lock:
                if name not in self._running:
                    return
                self._running[name].interrupt()  # DuckDB forgets it if no statement runs just now
            time.sleep(_BETWEEN_INTERRUPTS)
