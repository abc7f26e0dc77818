"""Conditions on rows (`--where`): SQL that DuckDB evaluates, one batch of rows at a time.

A condition sees one row: it cannot aggregate, use window functions or contain a subquery. It runs in a database of its
own, without access to files, the network or extensions. DuckDB gets only the columns that the condition names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from usp.exceptions import InvalidArgumentError
from usp.export.arrow import arrow_array, arrow_type
from usp.export.interrupts import interruptible
from usp.export.schema import NAMES_IN_SITEMAPS
from usp.extras import extra
from usp.objects.problem import printable
from usp.scan import Columns, Type

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

__all__ = ["MAX_LENGTH", "Condition"]

MAX_LENGTH = 100_000

_CONFIGURATION = {
    "threads": 1,  # each of our threads evaluates a batch of its own; one thread also keeps the order of the rows
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",  # a name in a condition is never a variable of this program
}
_SETTINGS = "set global TimeZone = 'UTC'; set lock_configuration = true"

#: The expressions that need nothing but the row: no subquery, window function, parameter or `*`.
_ALLOWED = {
    *("BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION"),
    *("LAMBDA", "LAMBDA_REF", "OPERATOR", "TYPE"),
}
_REFUSED = {"SUBQUERY": "a subquery", "WINDOW": "a window function", "PARAMETER": "a parameter", "STAR": "*"}
_NOT_ONE = "It must be one condition, without other clauses or statements."


class Condition:
    """An SQL condition on the rows of a table. Several threads may use it at once.

    `needed` has the names of the columns that it reads.

    :raises InvalidArgumentError: if DuckDB cannot run it as a condition, with DuckDB's message.
    :raises MissingExtraError: if DuckDB or pyarrow is not installed.
    """

    def __init__(self, text: str, types: Mapping[str, Type], table: str = "pages") -> None:
        self._duckdb, self._pyarrow = extra("duckdb", "sql"), extra("pyarrow", "sql")
        _check_text(text)
        self._connection: duckdb.DuckDBPyConnection = self._duckdb.connect(config=_CONFIGURATION)
        self._connections: list[duckdb.DuckDBPyConnection] = [self._connection]
        self._idle: list[duckdb.DuckDBPyConnection] = [self._connection]
        self._types = types
        self._table = table
        self._expression = f"coalesce((\n{text}\n), false)::utinyint"
        # A condition may call columns as sitemaps do: DuckDB gets such a column under that name, too.
        aliases = {alias: name for alias, name in NAMES_IN_SITEMAPS.items() if name in types and alias not in types}
        sources = {name: name for name in types} | aliases
        first = next(iter(types))  # to evaluate a condition without columns, once for each row
        try:
            self._connection.execute(_SETTINGS)
            names = self._names(text)
            interruptible(lambda: self._check(text, self._schema_of(sources)), self.interrupt)
        except self._duckdb.Error as error:
            self._connection.close()
            _refuse(_message(error))
        self._sources = {name: source for name, source in sources.items() if name in names} or {first: first}
        self._schema = self._schema_of(self._sources)
        self.needed = frozenset(self._sources.values())

    def kept(self, columns: Columns) -> bytes:
        """Return a byte for each row: 1 if the condition holds, 0 if it is false or null.

        :raises InvalidArgumentError: if DuckDB cannot evaluate it for some row, with DuckDB's message.
        """
        arrays = [
            arrow_array(self._types[source], columns.columns.get(source), columns.length, field.type)
            for source, field in zip(self._sources.values(), self._schema, strict=True)
        ]
        rows = self._pyarrow.Table.from_arrays(arrays, schema=self._schema)
        connection = self._idle_connection()
        try:
            relation = connection.from_arrow(rows).set_alias(self._table).project(self._expression)
            flags = interruptible(relation.to_arrow_table, connection.interrupt).column(0)
        except self._duckdb.Error as error:
            raise InvalidArgumentError(f"The condition failed. {_message(error)}") from None
        finally:
            self._idle.append(connection)
        return b"".join(memoryview(part.buffers()[1])[part.offset : part.offset + len(part)] for part in flags.chunks)

    def interrupt(self) -> None:
        """Stop what other threads are evaluating, which raises in them."""
        for connection in tuple(self._connections):
            connection.interrupt()

    def _idle_connection(self) -> duckdb.DuckDBPyConnection:
        """Return a connection that no other thread uses."""
        try:
            return self._idle.pop()
        except IndexError:
            connection: duckdb.DuckDBPyConnection = self._connection.cursor()
            self._connections.append(connection)
            return connection

    def _schema_of(self, sources: Mapping[str, str]) -> pa.Schema:
        fields = [(name, arrow_type(self._types[source])) for name, source in sources.items()]
        return self._pyarrow.schema(fields)

    def _names(self, text: str) -> set[str]:
        """Return all names in a condition, in lower case: of columns, fields and lambda parameters."""
        names: set[str] = set()
        for part in _expressions(self._parsed(text)):
            kind = part["class"]
            if kind not in _ALLOWED:
                what = _REFUSED.get(kind, f"an expression of the kind {kind}")
                _refuse(f"It cannot contain {what}; `usp sql` runs whole queries.")
            if kind == "COLUMN_REF":
                path = [name.lower() for name in part["column_names"]]
                is_whole_row = path == [self._table] and self._table not in self._types
                names.update(self._types if is_whole_row else path)
        return names

    def _parsed(self, text: str) -> Any:
        """Return the syntax tree of a text that is one expression and nothing else."""
        statement, expected = self._statement(f"select (\n{text}\n)"), self._statement("select (true)")
        expressions, _ = (one["node"].pop("select_list", ()) for one in (statement, expected))
        if statement["node"] != expected["node"] or len(expressions) != 1:
            _refuse(_NOT_ONE)
        return expressions[0]

    def _statement(self, query: str) -> Any:
        """Return the syntax tree of a query."""
        ((found,),) = self._connection.execute("select json_serialize_sql(?)", [query]).fetchall()
        parsed = json.loads(found)
        if parsed["error"]:
            self._connection.extract_statements(query)  # raises the same error, and shows its place
            _refuse(parsed["error_message"])
        if len(parsed["statements"]) != 1:
            _refuse(_NOT_ONE)
        return parsed["statements"][0]

    def _check(self, text: str, schema: pa.Schema) -> None:
        """Run the condition on a row of nulls: that finds unknown names, and values and types that do not fit."""
        nulls = [self._pyarrow.nulls(1, field.type) for field in schema]
        self._connection.register(self._table, self._pyarrow.Table.from_arrays(nulls, schema=schema))
        self._connection.execute(f"select true from {self._table} where (\n{text}\n)").fetchall()  # noqa: S608 -- parsed
        (kind,) = self._connection.sql(f"select (\n{text}\n) from {self._table}").types  # noqa: S608
        self._connection.unregister(self._table)
        if str(kind) != "BOOLEAN":
            _refuse(f"It must be true or false, but it is of type {kind}; compare it with something.")


def _check_text(text: str) -> None:
    if len(text) > MAX_LENGTH:
        _refuse(f"It has {len(text):,} characters; the limit is {MAX_LENGTH:,}.")
    try:
        text.encode()
    except UnicodeEncodeError:
        _refuse("It is not UTF-8.")
    if not text.strip():
        _refuse("It is empty.")


def _expressions(tree: Any) -> Iterator[dict[str, Any]]:
    """Find all expressions in a syntax tree."""
    ahead = [tree]
    while ahead:
        part = ahead.pop()
        if isinstance(part, dict):
            if "class" in part:
                yield part
            ahead += part.values()
        elif isinstance(part, list):
            ahead += part


def _refuse(why: str) -> NoReturn:
    raise InvalidArgumentError(f"The condition cannot be run. {why}") from None


def _message(error: Exception) -> str:
    """Return the message of DuckDB, without characters that a terminal could act on."""
    return "\n".join(map(printable, str(error).split("\n")))
