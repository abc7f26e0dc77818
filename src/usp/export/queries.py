"""SQL queries over the tables of a tree (`usp sql`). DuckDB reads the pages from the documents for each scan."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from usp.exceptions import InvalidArgumentError
from usp.export.arrow import arrow_schema
from usp.export.extras import extra
from usp.export.formats.base import Answer
from usp.export.frames import TreeTable
from usp.export.schema import NAMES_IN_SITEMAPS, TABLES
from usp.objects.sitemap import AbstractSitemap

__all__ = ["Query"]

_ROWS_AT_ONCE = 10_000


class Query:
    """An SQL query, checked before there is a tree.

    :raises InvalidArgumentError: if it cannot be run, with DuckDB's message.
    :raises MissingExtraError: if DuckDB or pyarrow is not installed.
    """

    def __init__(self, text: str) -> None:
        self._duckdb = extra("duckdb", "sql")
        self._pyarrow = extra("pyarrow", "sql")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InvalidArgumentError("The query cannot be run. It is not UTF-8.") from None
        # For data that does not fit into memory. DuckDB makes the folder when it needs it, and removes it at the end.
        folder = os.path.join(tempfile.gettempdir(), f"usp-sql-{os.urandom(8).hex()}")
        self._connection = self._duckdb.connect(config={"temp_directory": folder})
        try:
            # Otherwise names in a query could mean variables of this program.
            self._connection.execute("set python_enable_replacements = false; set TimeZone = 'UTC'")
            for name, types in TABLES.items():
                self._connection.register(name, self._pyarrow.Table.from_batches([], arrow_schema(types, name)))
            self._text = self._checked(text)
        except self._duckdb.Error as error:
            self.close()
            raise InvalidArgumentError(f"The query cannot be run. {error}") from None

    def _checked(self, text: str) -> str:
        """Return the query, with names of sitemaps replaced if it cannot be run without that."""
        try:
            self._check(text)
        except self._duckdb.BinderException:
            renamed = self._renamed(text)
            if renamed == text:
                raise
            self._check(renamed)
            return renamed
        return text

    def _check(self, text: str) -> None:
        """Raise an error for a wrong query. Nothing is run: only a single SELECT is checked beyond its syntax."""
        statements = self._connection.extract_statements(text)
        if not statements:
            raise self._duckdb.Error("It is empty.")
        if len(statements) == 1 and statements[0].type.name == "SELECT":
            self._connection.sql(text)  # runs only when rows are read

    def _renamed(self, text: str) -> str:
        """Replace the names of sitemaps, like lastmod, with the names of columns."""
        data = text.encode()
        tokens = [(start, kind.name) for start, kind in self._duckdb.tokenize(text)]
        ends = [start for start, _ in tokens[1:]] + [len(data)]
        for (start, kind), end in reversed(list(zip(tokens, ends, strict=True))):
            word = data[start:end].rstrip()
            name = NAMES_IN_SITEMAPS.get(word.decode().lower())
            if name == "url" and data[:start].rstrip().endswith(b"."):
                continue  # a field of an image: unnest(images).loc
            if kind == "identifier" and name is not None:
                data = data[:start] + name.encode() + data[start + len(word) :]
        return data.decode()

    def answer(self, tree: AbstractSitemap) -> Answer | None:
        """Run the query. Read the answer before you close the query; None means that there is none."""
        pages = TreeTable(tree, "pages")
        self._connection.register("pages", pages)
        self._connection.register("sitemaps", TreeTable(tree, "sitemaps", counts=pages.counts))
        relation = self._in_thread(lambda: self._connection.sql(self._text))
        if relation is None:
            return None
        reader = self._in_thread(lambda: relation.to_arrow_reader(_ROWS_AT_ONCE))
        return Answer(reader.schema, self._batches(iter(reader)))

    def _batches(self, batches: Iterator[Any]) -> Iterator[Any]:
        while (batch := self._in_thread(lambda: next(batches, None))) is not None:
            yield batch

    def _in_thread(self, ask: Callable[[], Any]) -> Any:
        """Call DuckDB in another thread, because Ctrl-C would not reach it in this one."""
        with ThreadPoolExecutor(1, thread_name_prefix="usp-sql") as thread:
            asked = thread.submit(ask)
            try:
                return asked.result()
            except KeyboardInterrupt:
                self._connection.interrupt()
                raise
            except (self._duckdb.Error, self._pyarrow.ArrowException, OSError) as error:
                raise InvalidArgumentError(f"The query failed. {error}") from None

    def close(self) -> None:
        """Close the database, and remove its temporary files."""
        self._connection.close()
