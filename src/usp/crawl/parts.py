"""Write a part of a crawl: all rows and documents of some sites, committed together.

A `PartWriter` takes one site after another, in one thread at a time. It reads the documents of a site once more, into
columns, and writes them as it goes. So a part takes little memory, however large its sites are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

from usp.crawl.crawled import CrawledSite, Stored, TreeRow, gone_roots, kept_rows, site_row, tree_rows
from usp.crawl.folder import CrawlFolder, PartName
from usp.crawl.records import write_exchanges
from usp.crawl.schema import TABLES
from usp.crawl.state import Row
from usp.crawl.storage import NewFile
from usp.crawl.unchanged import unchanged_rows
from usp.export.batches import (
    Batch,
    SitemapPages,
    joined_columns,
    page_columns,
    pages_of,
    positions,
    repeated_numbers,
    repeated_texts,
    url_parts,
)
from usp.export.formats import FORMATS
from usp.export.formats.base import FormatOptions, Table, Writer
from usp.export.reading import EPOCH
from usp.export.selection import newest_date
from usp.objects.sitemap import AbstractSitemap
from usp.scan import PAGE_TYPES, Columns, column_of

__all__ = ["PartWriter"]

_ROWS = 4_096  # of small tables, collected before they are encoded
_SMALL_BYTES = 1 << 14  # of a document, as transferred, that is inflated in one step
_PAGE_ROWS, _DOCUMENTS = 8_192, 1_024  # of pages, collected before they are encoded


class PartWriter:
    """Writes one part. Without `commit`, nothing of it stays after `drop`.

    :param with_pages: whether to write the tables of pages and problems.
    :param with_warc: whether to write the documents.
    """

    def __init__(self, folder: CrawlFolder, name: PartName, *, with_pages: bool = True, with_warc: bool = True) -> None:
        self.name = name
        self.sites = 0
        self.pages = 0
        self._folder = folder
        self._with_pages = with_pages
        self._with_warc = with_warc
        self._stack = ExitStack()
        self._tables: dict[str, _TableFile] = {}
        self._warc: NewFile | None = None
        self._pages = _CollectedPages(name.run, lambda rows: self._table("pages").write(rows))

    def drop(self) -> None:
        """Remove what is not committed, and close everything."""
        self._stack.close()

    def add(self, crawled: CrawledSite) -> Row:
        """Write everything of a site. Return its row."""
        stored = self._write_documents(crawled)
        if crawled.tree is None:
            rows = unchanged_rows(crawled.known, self.name.run, crawled.reused)
        else:
            rows = self._write_tree(crawled, crawled.tree, stored)
        for row in rows:
            self._table("sitemaps").add(row)
        row = site_row(crawled, self.name.run, rows)
        self._table("sites").add(row)
        self.sites += 1
        return row

    def _write_tree(self, crawled: CrawledSite, tree: AbstractSitemap, stored: Mapping[str, Stored]) -> list[Row]:
        """Write the pages and problems of a tree. Return the rows of its sitemaps."""
        rows: list[Row] = []
        counted: dict[int, Row] = {}
        for tree_row in tree_rows(crawled, tree, self.name.run, stored):
            self._read_document(crawled, tree_row, counted)
            rows.append(tree_row.row)
        self._write_problems(crawled.site, None, tree)
        return kept_rows(rows, crawled.known, gone_roots(tree))

    def commit(self) -> None:
        """Finish all files. When that of the sites has its name, the part is there.

        A task of a cluster may run twice, even at the same time. If the other one was faster, nothing is committed.
        """
        if self.name.task and self._folder.part_of_task(self.name) is not None:
            return
        self._pages.flush()
        if self._warc is not None:
            self._warc.finish()
        for table in TABLES:  # in their order
            if table in self._tables:
                self._tables[table].finish()

    def _write_documents(self, crawled: CrawledSite) -> Mapping[str, Stored]:
        if self._with_warc and crawled.exchanges and self._warc is None:
            self._warc = self._opened("warc")
        file = None if self._warc is None else self._warc.stream
        return write_exchanges(file, f"{self.name}.warc.gz", crawled)

    def _read_document(self, crawled: CrawledSite, tree_row: TreeRow, counted: dict[int, Row]) -> None:
        """Write the pages and problems of a document that is new; count those of another one as before."""
        sitemap, row, is_new = tree_row
        if row["document"] is None:
            row["pages"] = row["newest"] = row["problems"] = None
        elif (known := counted.get(row["document"]) or _counts(crawled, row)) is not None:
            row.update(known)
        elif is_new:
            row["pages"], row["newest"] = self._write_pages(crawled.site, row["document"], sitemap)
            row["problems"] = self._write_problems(crawled.site, row["document"], sitemap)
            counted[row["document"]] = {name: row[name] for name in _COUNTS}

    def _write_pages(self, site: str, document: int, sitemap: AbstractSitemap) -> tuple[int, Any]:
        listed = pages_of(sitemap)
        transport = sitemap.transport
        if sitemap.parser is not None and transport is not None and transport.size <= _SMALL_BYTES:
            sitemap.parser.read_ahead()
        count, newest = 0, None
        for columns in page_columns(listed, PAGE_TYPES if self._with_pages else ("last_modified",)):
            latest = newest_date(columns)
            newest = latest if newest is None else newest if latest is None else max(newest, latest)
            if self._with_pages and columns.length:
                self._pages.add(site, document, listed, count, columns)
            count += columns.length
        self.pages += count
        return count, None if newest is None else EPOCH + timedelta(microseconds=newest)

    def _write_problems(self, site: str, document: int | None, sitemap: AbstractSitemap) -> int:
        problems = sitemap.problems
        if self._with_pages:
            of_all = {"site": site, "run": self.name.run, "document": document}
            for problem in problems:
                row = problem.to_dict()
                row["sitemap_url"] = row.pop("url")
                self._table("problems").add({**of_all, **row})
        return problems.counts.total()

    def _table(self, name: str) -> _TableFile:
        if name not in self._tables:
            self._tables[name] = _TableFile(name, self._opened(name))
        return self._tables[name]

    def _opened(self, table: str) -> NewFile:
        file = self._folder.new_file(table, self.name)
        self._stack.callback(file.drop)
        return file


_COUNTS = ("pages", "newest", "problems")


def _counts(crawled: CrawledSite, row: Row) -> Row | None:
    """Return the numbers of a document that an earlier run has read."""
    if row["document"] not in crawled.known.documents:
        return None
    before = next(other for other in crawled.known.rows if other["document"] == row["document"])
    return {name: before[name] for name in _COUNTS}


class _CollectedPages:
    """Rows of the table of pages. Those of small documents are collected, and joined before they are encoded."""

    def __init__(self, run: int, write: Callable[[Columns], None]) -> None:
        self._run = run
        self._write = write
        self._reset()

    def _reset(self) -> None:
        self._parts: list[Columns] = []
        self._of_parts: list[tuple[str, int, str, str, int]] = []
        self._rows = 0

    def add(self, site: str, document: int, listed: SitemapPages, first: int, columns: Columns) -> None:
        """Add rows of a document. `first` says how many of its rows came before."""
        if self._rows + columns.length > _PAGE_ROWS or len(self._parts) >= _DOCUMENTS:
            self.flush()
        self._parts.append(columns)
        self._of_parts.append((site, document, listed.url, listed.type, first))
        self._rows += columns.length

    def flush(self) -> None:
        """Write what is collected."""
        if not self._parts:
            return
        lengths = [part.length for part in self._parts]
        sites, documents, urls, types, firsts = zip(*self._of_parts, strict=True)
        joined = joined_columns(PAGE_TYPES, self._parts)
        added = {
            "site": repeated_texts(sites, lengths),
            "document": repeated_numbers(documents, lengths),
            "run": repeated_numbers([self._run], [self._rows]),
            "sitemap_url": repeated_texts(urls, lengths),
            "sitemap_type": repeated_texts(types, lengths),
            "position": positions(firsts, lengths),
            **url_parts(joined.columns["url"], TABLES["pages"]),
        }
        rows = Columns(self._rows, {**joined.columns, **added})
        self._reset()
        self._write(rows)


class _TableFile:
    """A table of a part. Rows are collected, columns are written at once."""

    def __init__(self, name: str, file: NewFile) -> None:
        self._types = TABLES[name]
        self._file = file
        self._writer = _parquet_writer(name, file)
        self._rows: list[Row] = []

    def add(self, row: Row) -> None:
        """Add a row. A column that it lacks is null."""
        self._rows.append(row)
        if len(self._rows) >= _ROWS:
            self._flush()

    def write(self, columns: Columns) -> None:
        """Write many rows."""
        self._writer.write(self._writer.encode(Batch(columns)))

    def _flush(self) -> None:
        rows, self._rows = self._rows, []
        values = {name: [row.get(name) for row in rows] for name in self._types}
        self.write(
            Columns(
                len(rows),
                {
                    name: column_of(self._types[name], column)
                    for name, column in values.items()
                    if any(value is not None for value in column)
                },
            )
        )

    def finish(self) -> None:
        """Write the end of the table, and give the file its name."""
        if self._rows:
            self._flush()
        self._writer.close()
        self._file.finish()


def _parquet_writer(name: str, file: NewFile) -> Writer:
    make = FORMATS["parquet"].table_writer
    assert make is not None
    return make(file.stream, Table(name, TABLES[name], TABLES[name]), FormatOptions())
