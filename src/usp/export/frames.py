"""Tables of a tree for other libraries: pyarrow, pandas, polars, DuckDB, and any that takes Arrow.

Several sitemaps are read at once while their rows are consumed. No object is made for a page.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Never, TypedDict, Unpack, cast

from usp.export.arrow import BatchBuilder, arrow_schema, record_batch
from usp.export.batches import Batch, FirstPlaces, SitemapPages, pages_of
from usp.export.interrupts import interruptible
from usp.export.reading import PageCounts, PageReader, PageStats, SourceTree, sitemaps_columns
from usp.export.schema import SCHEMA_VERSION
from usp.export.selection import Moment, select_from
from usp.extras import extra
from usp.keywords import check_keywords
from usp.objects.sitemap import AbstractSitemap
from usp.scan import Columns

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    import pyarrow as pa

__all__ = ["ReadableTable", "TableOptions", "TreeTable", "to_arrow", "to_duckdb", "to_pandas", "to_polars"]

#: Sitemaps with fewer pages are combined.
_FEW_ROWS = 16_384


class TableOptions(TypedDict, total=False):
    """Which rows and columns of a table to select; see `usp.export.write`."""

    columns: Sequence[str] | str | None
    where: str | None
    since: Moment | None
    until: Moment | None
    dedupe: bool


class ReadableTable:
    """A table that other libraries can read, any number of times. Subclasses implement `schema` and `reader`."""

    schema: pa.Schema

    def reader(self) -> pa.RecordBatchReader:
        """Return a reader of the table, from its start."""
        raise NotImplementedError

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return cast(object, self.reader().__arrow_c_stream__(requested_schema))

    def __arrow_c_schema__(self) -> object:
        return cast(object, self.schema.__arrow_c_schema__())

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table."""
        return self.reader().read_all()

    def to_pandas(self) -> pandas.DataFrame:
        """Return a pandas data frame. Integers stay integers even if some are missing. Times have microseconds."""
        pandas_, pa_ = extra("pandas", "pandas"), extra("pyarrow", "pandas")
        wholes = {pa_.int64(): pandas_.Int64Dtype()}
        return self.to_arrow().to_pandas(types_mapper=wholes.get)

    def to_polars(self) -> polars.DataFrame:
        """Return a polars data frame."""
        polars_, _ = extra("polars", "polars"), extra("pyarrow", "polars")
        found: polars.DataFrame = polars_.from_arrow(self.to_arrow())
        return found


class TreeTable(ReadableTable):
    """A table of a tree, or of several with a column `source`: the selected rows and columns of pages or sitemaps.

    Any library that takes Arrow can read it, any number of times. Each time it is read from the documents of the tree,
    a few sitemaps at a time, so that the whole table is never in memory. If a reader is dropped, reading stops.

    `counts` are known numbers of pages. A table of pages collects them while it is read, and with `dates` the newest
    date of each sitemap.
    """

    def __init__(
        self,
        trees: AbstractSitemap | Sequence[SourceTree],
        name: str = "pages",
        *,
        counts: PageCounts | None = None,
        dates: bool = False,
        **options: Unpack[TableOptions],
    ) -> None:
        check_keywords(options, TableOptions.__annotations__, "table")
        self._trees = [SourceTree(None, trees)] if isinstance(trees, AbstractSitemap) else list(trees)
        self._dedupe = options.get("dedupe", False)
        self.name = name
        self.selection = select_from(
            name,
            options.get("columns"),
            options.get("where"),
            options.get("since"),
            options.get("until"),
            dedupe=self._dedupe,
            has_source=any(source is not None for source, _ in self._trees),
        )
        self.schema = arrow_schema(self.selection.chosen, name)
        self.counts: dict[str, PageStats | None] = {}
        self._given_counts = counts
        self._keeps_dates = dates
        self._sitemaps: list[Columns] | None = None  # kept, because counting pages takes time

    def reader(self) -> pa.RecordBatchReader:
        """Return a reader of the table, from its start."""
        batches = self._sitemap_rows() if self.name == "sitemaps" else self._pages()
        return extra("pyarrow", "arrow").RecordBatchReader.from_batches(self.schema, self._combined(batches))

    def _pages(self) -> Iterator[pa.RecordBatch]:
        with PageReader(self.selection, self._encoded, dedupe=self._dedupe, dates=self._keeps_dates) as reader:
            for rows in reader.over(self._all_pages()):
                yield rows.encoded
            self.counts.update(reader.counts)

    def _all_pages(self) -> Iterator[SitemapPages]:
        for source, tree in self._trees:
            for sitemap in filter(FirstPlaces().is_first, _with_all_below(tree)):
                yield pages_of(sitemap, source, tree.facts.names)

    def _encoded(self, batch: Batch) -> pa.RecordBatch:
        return record_batch(batch, self.selection.types, self.selection.chosen, self.schema)

    def _sitemap_rows(self) -> Iterator[pa.RecordBatch]:
        if self._sitemaps is None:
            needed = self.selection.needed
            self._sitemaps = [
                sitemaps_columns(tree, self._given_counts, needed, source) for source, tree in self._trees
            ]
        for columns in self._sitemaps:
            yield self._encoded(self.selection.batch(columns))

    def _combined(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Combine small batches. Large ones are not copied."""
        builder = BatchBuilder(self.schema, _FEW_ROWS)
        for batch in batches:
            if batch.num_rows < _FEW_ROWS:
                yield from _batches(builder.add(batch))
            else:
                yield from _batches(builder.finish())
                yield batch
        yield from _batches(builder.finish())


def _batches(tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    for table in tables:
        yield from table.to_batches()


def _with_all_below(tree: AbstractSitemap) -> Iterator[AbstractSitemap]:
    yield tree
    yield from tree.all_sitemaps()


def to_arrow(tree: AbstractSitemap, table: str = "pages", **options: Unpack[TableOptions]) -> pa.Table:
    """Return an Arrow table."""
    return TreeTable(tree, table, **options).to_arrow()


def to_pandas(tree: AbstractSitemap, table: str = "pages", **options: Unpack[TableOptions]) -> pandas.DataFrame:
    """Return a pandas data frame. Integers stay integers even if some are missing. Times have microseconds."""
    extra("pyarrow", "pandas")
    return TreeTable(tree, table, **options).to_pandas()


def to_polars(tree: AbstractSitemap, table: str = "pages", **options: Unpack[TableOptions]) -> polars.DataFrame:
    """Return a polars data frame."""
    extra("pyarrow", "polars")
    return TreeTable(tree, table, **options).to_polars()


def to_duckdb(
    tree: AbstractSitemap, database: str | os.PathLike[str] = ":memory:", **unknown: Never
) -> duckdb.DuckDBPyConnection:
    """Return a connection to a DuckDB database with both tables. Existing tables of these names are replaced.

    Times are of type `TIMESTAMP WITH TIME ZONE`, as in `usp sql`. DuckDB shows them in the time zone of the connection,
    which is UTC.
    """
    check_keywords(unknown, ("database",))
    duckdb_, _ = extra("duckdb", "sql"), extra("pyarrow", "sql")
    connection: duckdb.DuckDBPyConnection = duckdb_.connect(os.fspath(database))
    try:
        connection.execute("set TimeZone = 'UTC'")  # DuckDB would show times in the zone of the machine
        pages = TreeTable(tree, "pages", dates=True)
        _fill(connection, pages, TreeTable(tree, "sitemaps", counts=pages.counts))
    except BaseException:
        connection.close()  # which undoes what was begun
        raise
    return connection


def _fill(connection: duckdb.DuckDBPyConnection, *tables: TreeTable) -> None:
    connection.begin()
    for table in tables:
        source = f"usp_read_{table.name}"
        connection.register(source, table)
        fill = f"create or replace table {table.name} as select * from {source}"  # noqa: S608 -- our names
        interruptible(partial(connection.execute, fill), connection.interrupt)
        connection.execute(f"comment on table {table.name} is 'usp.schema {table.name}/{SCHEMA_VERSION}'")
        connection.unregister(source)
    connection.commit()
