"""Queries in SQL over the tables of a tree, by DuckDB, which reads the pages anew for each scan of them."""

from __future__ import annotations

import os
import secrets
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
    """A query, looked at before there is any tree to run it over.

    Raises `InvalidArgumentError` if it cannot be run, and `MissingExtraError` where there is no DuckDB.
    """

    def __init__(self, text: str) -> None:
        self._duckdb = extra("duckdb", "sql")
        self._pyarrow = extra("pyarrow", "sql")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InvalidArgumentError("The query cannot be run. It is not UTF-8.") from None
        # For what does not fit into memory: DuckDB makes the folder when it needs it, and removes it in the end.
        folder = os.path.join(tempfile.gettempdir(), f"usp-sql-{secrets.token_hex(8)}")
        self._connection = self._duckdb.connect(config={"temp_directory": folder})
        try:
            # Else names in a query could mean variables of this program.
            self._connection.execute("set python_enable_replacements = false; set TimeZone = 'UTC'")
            for name, types in TABLES.items():
                self._connection.register(name, self._pyarrow.Table.from_batches([], arrow_schema(types, name)))
            self._text = self._looked_at(text)
        except self._duckdb.Error as error:
            self.close()
            raise InvalidArgumentError(f"The query cannot be run. {error}") from None

    def _looked_at(self, text: str) -> str:
        """The query as it can be run."""
        try:
            self._look_at(text)
        except self._duckdb.BinderException:
            renamed = self._renamed(text)
            if renamed == text:
                raise
            self._look_at(renamed)
            return renamed
        return text

    def _look_at(self, text: str) -> None:
        """Raise what is wrong with a query. Nothing is run: of anything but one SELECT, only the syntax is known."""
        statements = self._connection.extract_statements(text)
        if not statements:
            raise self._duckdb.Error("It is empty.")
        if len(statements) == 1 and statements[0].type.name == "SELECT":
            self._connection.sql(text)  # is run when its rows are asked for

    def _renamed(self, text: str) -> str:
        """The query with the columns that it calls as sitemaps do."""
        data = text.encode()
        tokens = [(start, kind.name) for start, kind in self._duckdb.tokenize(text)]
        ends = [start for start, _ in tokens[1:]] + [len(data)]
        for (start, kind), end in reversed(list(zip(tokens, ends, strict=True))):
            word = data[start:end].rstrip()
            name = NAMES_IN_SITEMAPS.get(word.decode().lower())
            if name == "url" and data[:start].rstrip().endswith(b"."):
                continue  # of an image: unnest(images).loc
            if kind == "identifier" and name is not None:
                data = data[:start] + name.encode() + data[start + len(word) :]
        return data.decode()

    def answer(self, tree: AbstractSitemap) -> Answer | None:
        """The answer, to be read before the query is closed; None if there is none."""
        pages = TreeTable(tree, "pages")
        self._connection.register("pages", pages)
        self._connection.register("sitemaps", TreeTable(tree, "sitemaps", counts=pages.counts))
        relation = self._beside(lambda: self._connection.sql(self._text))
        if relation is None:
            return None
        reader = self._beside(lambda: relation.to_arrow_reader(_ROWS_AT_ONCE))
        return Answer(reader.schema, self._batches(iter(reader)))

    def _batches(self, batches: Iterator[Any]) -> Iterator[Any]:
        while (batch := self._beside(lambda: next(batches, None))) is not None:
            yield batch

    def _beside(self, ask: Callable[[], Any]) -> Any:
        """What DuckDB is asked for, in another thread: Ctrl-C would not reach it in this one."""
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
        """Leave nothing behind."""
        self._connection.close()
