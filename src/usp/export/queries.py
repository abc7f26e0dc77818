"""SQL queries over the tables of a tree (`usp sql`). DuckDB reads the pages from the documents for each scan.

A query sees the tables of the tree and those that it makes itself. Unless the caller allows files, it cannot read or
write files, use the network, attach databases, load extensions or change DuckDB's settings.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import combinations, takewhile
from typing import Any

from usp.exceptions import InvalidArgumentError
from usp.export.arrow import arrow_schema
from usp.export.formats.base import Answer
from usp.export.frames import TreeTable
from usp.export.interrupts import interruptible
from usp.export.reading import SourceTree
from usp.export.schema import NAMES_IN_SITEMAPS, TABLES, table_types
from usp.extras import extra
from usp.objects.sitemap import AbstractSitemap

__all__ = ["Query"]

_ROWS_AT_ONCE = 10_000
#: What stands before a dot at the end: a name, or the end of another expression, like unnest(images).
_BEFORE_DOT = re.compile(rb"""([\w"]*)\s*\.\s*$""")
_MAX_WORDS = 4  # before dots; each doubles the ways to replace names
_MAX_NAME = 200  # bytes before a name that are looked at
#: The types of statements that always have a result. MULTI is a PIVOT.
_WITH_RESULT = {"SELECT", "EXPLAIN", "MULTI"}
#: The columns of statements that only say what they did.
_NO_RESULT: tuple[list[str], ...] = (["Count"], ["Success"], [])
#: Settings that keep a query away from files, the network and extensions. The folder for temporary files stays open.
_CLOSED = """
set enable_external_access = false;
set autoinstall_known_extensions = false;
set autoload_known_extensions = false;
set allow_community_extensions = false;
set lock_configuration = true;
"""
#: The types of statements that change settings.
_SETTING = {"SET", "PRAGMA", "CALL"}
#: What the name of a table has if it is the name of a file: 'pages.csv', 'data/*'.
_FILE_NAME = re.compile(r"[./\\*]")
_ALLOW_FILES = (
    "A query cannot use files, the network, extensions or settings of DuckDB. To allow it, add --allow-files, or"
    " allow_files=True in Python. Do so only for queries that you trust."
)


def _has_result(statement: Any, relation: Any) -> bool:
    if relation is None:  # before DuckDB 2.0
        return False
    return statement.type.name in _WITH_RESULT or relation.columns not in _NO_RESULT


class Query:
    """One or several SQL statements, checked before anything is fetched.

    :param has_source: give each table a first column `source`, for several trees.
    :param allow_files: let the statements use files, the network and extensions, and change DuckDB's settings.
    :raises InvalidArgumentError: if it cannot be run, with DuckDB's message.
    :raises MissingExtraError: if DuckDB or pyarrow is not installed.
    """

    def __init__(self, text: str, *, has_source: bool = False, allow_files: bool = False) -> None:
        self._duckdb = extra("duckdb", "sql")
        self._pyarrow = extra("pyarrow", "sql")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InvalidArgumentError("The query cannot be run. It is not UTF-8.") from None
        self._is_closed = not allow_files
        # For data that does not fit into memory. DuckDB makes the folder when it needs it.
        self._folder = os.path.join(tempfile.gettempdir(), f"usp-sql-{os.urandom(8).hex()}")
        self._connection = self._duckdb.connect(config={"temp_directory": self._folder})
        try:
            # Otherwise names in a query could mean variables of this program.
            self._connection.execute("set python_enable_replacements = false; set TimeZone = 'UTC'")
            if self._is_closed:
                self._connection.execute(_CLOSED)
            for name in TABLES:
                schema = arrow_schema(table_types(name, has_source=has_source), name)
                self._connection.register(name, self._pyarrow.Table.from_batches([], schema))
            self._statements = self._checked(text)
        except self._duckdb.Error as error:
            self.close()
            raise InvalidArgumentError(f"The query cannot be run. {error}") from None

    @property
    def results(self) -> int:
        """The number of results that there will be. Some statements, such as EXECUTE, may add to it."""
        return sum(statement.type.name in _WITH_RESULT for statement in self._statements)

    def _checked(self, text: str) -> list[Any]:
        """Return the statements. Raise an error for wrong ones, as far as that is known before any is run."""
        statements: list[Any] = self._connection.extract_statements(text)
        if not statements:
            raise self._duckdb.Error("It is empty.")
        for statement in takewhile(lambda statement: statement.type.name == "SELECT", statements):
            try:
                self._relation(statement.query)  # runs only when rows are read
            except self._duckdb.Error as error:
                raise self._duckdb.Error(self._explained(error, statement)) from None
        return statements

    def _explained(self, error: Exception, statement: Any) -> str:
        """Return the message of an error. If the reason is that files are not allowed, say how to allow them."""
        return f"{error}\n{_ALLOW_FILES}" if self._is_closed and self._is_refused(error, statement) else str(error)

    def _is_refused(self, error: Exception, statement: Any) -> bool:
        """Return whether a statement failed because it wanted a file, an extension or a setting."""
        if isinstance(error, self._duckdb.PermissionException):
            return True
        if isinstance(error, self._duckdb.InvalidInputException):  # the configuration is locked
            return statement.type.name in _SETTING
        if not isinstance(error, self._duckdb.CatalogException):
            return False
        with suppress(self._duckdb.Error):
            return any(map(_FILE_NAME.search, self._connection.get_table_names(statement.query)))
        return False

    def _relation(self, text: str) -> Any:
        """Let DuckDB take a statement, with names of sitemaps replaced if it cannot be run without that."""
        try:
            return self._connection.sql(text)
        except self._duckdb.BinderException:
            renamings = [renamed for renamed in self._renamings(text) if renamed != text]
            if not renamings:
                raise
        for renamed in renamings:
            with suppress(self._duckdb.BinderException):
                return self._connection.sql(renamed)
        return self._connection.sql(renamings[-1])  # raises the error to show

    def _renamings(self, text: str) -> Iterator[str]:
        """Give the statement with the names of sitemaps, like lastmod, replaced by the names of columns.

        What follows a dot may be a column, as in p.loc, or a field of an image, as in i.loc. So it gives all ways:
        `loc` replaced after none of the words that stand before a dot, then after some.
        """
        data = text.encode()
        tokens = [(start, kind.name) for start, kind in self._duckdb.tokenize(text)]
        ends = [start for start, _ in tokens[1:]] + [len(data)]
        places: list[tuple[int, int, str, bytes | None]] = []  # start, end, column, and the word before a dot
        for (start, kind), end in zip(tokens, ends, strict=True):
            word = data[start:end].rstrip()
            name = NAMES_IN_SITEMAPS.get(word.decode().lower())
            if kind == "identifier" and name is not None:
                dotted = _BEFORE_DOT.search(data[max(0, start - _MAX_NAME) : start]) if name == "url" else None
                places.append((start, start + len(word), name, dotted[1].lower() if dotted else None))
        words = sorted({before for *_, before in places if before})[:_MAX_WORDS]
        for size in range(len(words) + 1):
            for chosen in map(set, combinations(words, size)):
                renamed = data
                for start, end, name, before in reversed(places):
                    if before is None or before in chosen:
                        renamed = renamed[:start] + name.encode() + renamed[end:]
                yield renamed.decode()

    def answers(self, trees: AbstractSitemap | Sequence[SourceTree]) -> Iterator[Answer]:
        """Run the statements, and give the answer of each that has one. Read it before you ask for the next.

        The answers are called answer, answer_2, answer_3.

        :param trees: a tree, or several with the names of their sources.
        """
        pages = TreeTable(trees, "pages", dates=True)
        for name in TABLES:
            table = pages if name == "pages" else TreeTable(trees, name, counts=pages.counts)
            self._connection.register(name, table)
        number = 0
        for statement in self._statements:
            relation = self._call(partial(self._relation, statement.query), statement)
            if not _has_result(statement, relation):
                continue
            number += 1
            reader = self._call(partial(relation.to_arrow_reader, _ROWS_AT_ONCE), statement)
            batches = self._batches(iter(reader), statement)
            yield Answer(reader.schema, batches, f"answer_{number}" if number > 1 else "answer")

    def _batches(self, batches: Iterator[Any], statement: Any) -> Iterator[Any]:
        while (batch := self._call(lambda: next(batches, None), statement)) is not None:
            yield batch

    def _call(self, ask: Callable[[], Any], statement: Any) -> Any:
        """Call DuckDB, and raise its errors as ours."""
        try:
            return interruptible(ask, self._connection.interrupt)
        except (self._duckdb.Error, self._pyarrow.ArrowException, OSError) as error:
            raise InvalidArgumentError(f"The query failed. {self._explained(error, statement)}") from None

    def close(self) -> None:
        """Close the database, and remove its temporary files."""
        self._connection.close()
        shutil.rmtree(self._folder, ignore_errors=True)  # DuckDB leaves what it does not know
