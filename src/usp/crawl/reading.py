"""Read a crawl folder as of a run: its four tables, for any library that takes Arrow.

Nothing is read before it is asked for, and a table is never in memory as a whole, unless you ask for it.
"""

# ruff: noqa: S608 -- queries are made of our own names, and quoted paths

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from usp.crawl.checked import checked_source
from usp.crawl.database import CrawlDatabase, open_database
from usp.crawl.folder import CrawlFolder, PartName, Run
from usp.crawl.schema import TABLES
from usp.exceptions import InvalidArgumentError
from usp.export.arrow import arrow_schema
from usp.export.frames import ReadableTable
from usp.export.selection import Moment, datetime_of, select
from usp.extras import extra
from usp.objects.wording import described

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CrawlTable", "RunLike", "groups_with", "run_number"]

_ROWS_AT_ONCE = 50_000

#: A run: its number, or a point in time, which stands for the last run that had started by then.
RunLike = int | Moment


class CrawlTable(ReadableTable):
    """A table of a crawl folder as of a run.

    `sites` has the last row of each site, whatever its outcome. The others have what was known then: for each site,
    what the latest run says in which it was neither blocked nor unreachable. The rows of a sitemap stand together, in
    its order.
    """

    def __init__(
        self, folder: CrawlFolder, name: str, run: int | None = None, columns: Sequence[str] | str | None = None
    ) -> None:
        self._folder = folder
        self._name = name
        self._run = run
        self._chosen = select(TABLES[name], columns, table=name).chosen
        self.schema = arrow_schema(self._chosen, name)

    def __repr__(self) -> str:
        run = "the last run" if self._run is None else f"run {self._run}"
        return described(self, f"{self._name} of {self._folder.path}", f"as of {run}", f"{len(self._chosen)} columns")

    def reader(self) -> pa.RecordBatchReader:
        """Return a reader of the table, from its start."""
        return extra("pyarrow", "crawl").RecordBatchReader.from_batches(self.schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        with open_database() as connection:
            database = CrawlDatabase(self._folder, connection)
            if self._name == "pages":
                documents = connection.sql(f"select distinct document from ({_sitemaps(database, self._run)})")
                found = documents.to_arrow_table()["document"].combine_chunks()
            else:
                query = _QUERIES[self._name](database, self._run)
                chosen = ", ".join(f'{_quoted_path(path)} as "{path}"' for path in self._chosen)
                query = f"select {chosen} from ({query}) order by filename, file_row_number"
                yield from (batch.cast(self.schema) for batch in connection.sql(query).to_arrow_reader(_ROWS_AT_ONCE))
                return
        yield from self._pages(found)

    def _pages(self, documents: pa.Array) -> Iterator[pa.RecordBatch]:
        """Give the pages of documents. A database would lose their order, or sort them."""
        compute = extra("pyarrow.compute", "crawl")
        parts = [part for part in self._folder.parts() if self._run is None or part.run <= self._run]
        wanted = sorted(document for document in documents.to_pylist() if document is not None)
        for part in self._folder.with_rows("pages", parts):
            for batch in self._of_part(part, wanted):
                is_wanted = compute.is_in(batch.column("document"), documents)
                rows = batch if is_wanted.true_count == len(is_wanted) else batch.filter(is_wanted)
                if rows.num_rows:
                    yield self._chosen_of(rows)

    def of_part(self, part: str) -> Iterator[pa.RecordBatch]:
        """Give all pages that a part has, in their order."""
        name = PartName.parse(part)
        assert name is not None
        if self._folder.has("pages", name):
            yield from map(self._chosen_of, self._of_part(name, None))

    def _of_part(self, part: PartName, documents: list[int] | None) -> Iterator[pa.RecordBatch]:
        """Give the pages of a part: of the groups that have one of these documents, or of all."""
        columns = list(dict.fromkeys(["document", *(path.partition(".")[0] for path in self._chosen)]))
        source = checked_source(self._folder, "pages", part)
        with extra("pyarrow.parquet", "crawl").ParquetFile(source) as file:
            groups = None if documents is None else groups_with(file.metadata, documents)
            yield from file.iter_batches(_ROWS_AT_ONCE, groups, columns)

    def _chosen_of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the chosen columns of rows as they are stored."""
        compute = extra("pyarrow.compute", "crawl")
        values = [_value_at(compute, rows, path) for path in self._chosen]
        return extra("pyarrow", "crawl").RecordBatch.from_arrays(values, list(self._chosen)).cast(self.schema)


def groups_with(metadata: Any, wanted: list[int]) -> list[int]:
    """Return the row groups of a file of pages that may have one of these documents. The numbers are sorted."""
    number = metadata.schema.names.index("document")
    found = []
    for group in range(metadata.num_row_groups):
        statistics = metadata.row_group(group).column(number).statistics
        is_known = statistics is not None and statistics.has_min_max
        if not is_known or bisect_left(wanted, statistics.min) < bisect_right(wanted, statistics.max):
            found.append(group)
    return found


def _value_at(compute: Any, rows: pa.RecordBatch, path: str) -> pa.Array:
    name, *fields = path.split(".")
    return compute.struct_field(rows.column(name), fields) if fields else rows.column(name)


def _quoted_path(path: str) -> str:
    """Return the path of a column in SQL: a field of a struct is named after a dot."""
    return ".".join(f'"{name}"' for name in path.split("."))


def _sites(database: CrawlDatabase, run: int | None) -> str:
    sites = database.table("sites", run)
    return (
        f"select * from {sites} semi join (select site, max(run) as run from {sites} group by site) using (site, run)"
    )


def _sitemaps(database: CrawlDatabase, run: int | None) -> str:
    database.make_state("state", run)
    return database.sitemaps_of("state")


def _problems(database: CrawlDatabase, run: int | None) -> str:
    documents = f"select site, document from ({_sitemaps(database, run)})"
    problems = database.table("problems", run)
    return f"""
        select * from {problems} semi join ({documents}) using (site, document)
        union all
        select * from {problems} semi join state using (site, run) where document is null
        """


_QUERIES: dict[str, Callable[[CrawlDatabase, int | None], str]] = {
    "sites": _sites,
    "sitemaps": _sitemaps,
    "problems": _problems,
}


def run_number(runs: Sequence[Run], wanted: RunLike, now: datetime | None = None) -> int:
    """Return the number of a run: itself, or the number of the last run that had started by a point in time.

    If none had started by then, it is the first one.

    :raises InvalidArgumentError: if there is no such run.
    """
    if not runs:
        raise InvalidArgumentError("the crawl folder has no runs yet; run usp crawl first")
    numbers = [run.run for run in runs]
    if isinstance(wanted, int):
        if wanted not in numbers:
            raise InvalidArgumentError(f"there is no run {wanted}; there are {numbers[0]} to {numbers[-1]}")
        return wanted
    moment = datetime_of("run", wanted, now or datetime.now(UTC))
    return max((run.run for run in runs if run.started <= moment), default=numbers[0])
