"""Queries in SQL over the tables of a tree, by DuckDB, which reads the pages anew for each scan of them."""

from __future__ import annotations

import tempfile
from typing import Any

from usp.exceptions import InvalidArgumentError
from usp.export.arrow import arrow_schema
from usp.export.extras import extra
from usp.export.frames import TreeTable
from usp.export.schema import TABLES
from usp.objects.sitemap import AbstractSitemap

__all__ = ["Query"]

_ROWS_AT_ONCE = 10_000
#: What columns are called in sitemaps, which is what people may write.
_NAMES_IN_SITEMAPS = {"changefreq": "change_frequency", "lastmod": "last_modified"}


class Query:
    """A query, looked at before there is any tree to run it over.

    Raises `InvalidArgumentError` if it cannot be run, and `MissingExtraError` where there is no DuckDB.
    """

    def __init__(self, text: str) -> None:
        self._duckdb = extra("duckdb", "sql")
        pyarrow = extra("pyarrow", "sql")
        self._folder = tempfile.TemporaryDirectory(prefix="usp-sql-")  # for what does not fit into memory
        self._connection = self._duckdb.connect(config={"temp_directory": self._folder.name})
        try:
            # Else names in a query could mean variables of this program.
            self._connection.execute("set python_enable_replacements = false; set TimeZone = 'UTC'")
            for name, types in TABLES.items():
                self._connection.register(name, pyarrow.Table.from_batches([], arrow_schema(types, name)))
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
        """Raise what is wrong with a query. Nothing is run: of other statements than one, nothing is known."""
        statements = self._connection.extract_statements(text)
        if not statements:
            raise self._duckdb.Error("It is empty.")
        if len(statements) == 1:
            kind = statements[0].type.name
            if kind == "SELECT":
                self._connection.sql(text)  # is run when its rows are asked for
            elif kind != "EXPLAIN":
                self._connection.execute(f"explain {text}")

    def _renamed(self, text: str) -> str:
        """The query with the columns that it calls as sitemaps do."""
        data = text.encode()
        tokens = [(start, kind.name) for start, kind in self._duckdb.tokenize(text)]
        ends = [start for start, _ in tokens[1:]] + [len(data)]
        for (start, kind), end in reversed(list(zip(tokens, ends, strict=True))):
            word = data[start:end].rstrip()
            name = _NAMES_IN_SITEMAPS.get(word.decode().lower())
            if kind == "identifier" and name is not None:
                data = data[:start] + name.encode() + data[start + len(word) :]
        return data.decode()

    def answer(self, tree: AbstractSitemap) -> Any:
        """The answer, as a `pyarrow.RecordBatchReader`, before the query is closed; None if there is none."""
        pages = TreeTable(tree, "pages")
        self._connection.register("pages", pages)
        self._connection.register("sitemaps", TreeTable(tree, "sitemaps", counts=pages.counts))
        try:
            relation = self._connection.sql(self._text)
            if relation is None:
                return None
            # The name that it has since DuckDB 1.5, or that it had before.
            read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
            return read(_ROWS_AT_ONCE)
        except self._duckdb.Error as error:
            raise InvalidArgumentError(f"The query failed. {error}") from None

    def close(self) -> None:
        """Leave nothing behind."""
        self._connection.close()
        self._folder.cleanup()
