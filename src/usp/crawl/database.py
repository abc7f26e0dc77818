"""The tables of a crawl folder in DuckDB: which files to read, and what is known as of a run.

Only committed parts are read. The state of a site as of a run is what the latest run until then says in which the site
was neither blocked nor unreachable.
"""

# ruff: noqa: S608 -- queries are made of our own names, and quoted paths

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from usp.crawl.checked import check_part
from usp.crawl.folder import CrawlFolder, PartName
from usp.crawl.schema import TABLES
from usp.crawl.state import LEARNED_NOTHING
from usp.export.arrow import arrow_schema
from usp.extras import extra

if TYPE_CHECKING:
    import duckdb

__all__ = ["CrawlDatabase", "open_database", "scan"]

_CONFIGURATION = {
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",  # a name in a query is never a variable of this program
}
_GLOB = re.compile(r"[\[*?]")


@contextmanager
def open_database() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an empty database in memory. Times are in UTC."""
    duckdb_, _ = extra("duckdb", "crawl"), extra("pyarrow", "crawl")
    with duckdb_.connect(config=_CONFIGURATION) as connection:
        connection.execute("set TimeZone = 'UTC'")
        yield connection


def scan(files: Iterable[str]) -> str:
    """Return the call that reads these Parquet files. `filename` and `file_row_number` say where a row is from."""
    names = ", ".join(map(_quoted, files))
    return f"read_parquet([{names}], filename = true, file_row_number = true)"


def _quoted(path: str) -> str:
    """Return a path as SQL has it. DuckDB would take some characters for patterns."""
    escaped = _GLOB.sub(r"[\g<0>]", path).replace("'", "''")
    return f"'{escaped}'"


class CrawlDatabase:
    """A database that reads a crawl folder."""

    def __init__(self, folder: CrawlFolder, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self._folder = folder
        self._parts = folder.parts()

    def table(self, name: str, until: int | None = None) -> str:
        """Return what stands for a table in a query: its files in the parts of all runs until one."""
        return self.of_parts(name, (part for part in self._parts if until is None or part.run <= until))

    def of_parts(self, name: str, parts: Iterable[PartName | str]) -> str:
        """Return the same for these parts."""
        named = [part if isinstance(part, PartName) else PartName.parse(part) for part in parts]
        found = self._folder.with_rows(name, [part for part in named if part is not None])
        for part in found:
            check_part(self._folder, name, part)
        if found:
            return scan(self._folder.query_path(self.connection, name, part) for part in found)
        pa = extra("pyarrow", "crawl")
        schema = arrow_schema(TABLES[name], name)
        schema = schema.append(pa.field("filename", pa.large_string())).append(pa.field("file_row_number", pa.int64()))
        self.connection.register(f"no_{name}", schema.empty_table())
        return f"no_{name}"

    def make_state(self, name: str, run: int | None) -> None:
        """Make a table of the sites of which something is known as of a run: `site`, `run`, and the part as text."""
        nothing = ", ".join(f"'{outcome}'" for outcome in LEARNED_NOTHING)
        self.connection.execute(
            f"""
            create or replace temp table {name} as
            select site, max(run) as run, arg_max(parse_filename(filename, true), run) as part
            from {self.table("sites", run)} where outcome not in ({nothing}) group by site
            """
        )

    def sitemaps_of(self, state: str) -> str:
        """Return a query for the rows of sitemaps of a state."""
        parts = [part for (part,) in self.connection.sql(f"select distinct part from {state}").fetchall()]
        sitemaps = self.of_parts("sitemaps", sorted(parts))
        return f"select * from {sitemaps} semi join {state} using (site, run)"
