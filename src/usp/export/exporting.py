"""Write the tables of a site, or of its tree, to a file.

The pages of a site are written while its sitemaps are fetched, in the order of the tree. If writing is slow, fetching
waits for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

from usp.exceptions import TreeInterrupted
from usp.export.batches import FirstPlaces, pages_of
from usp.export.formats import STANDARD_OUTPUT, OutputFile, output_file
from usp.export.formats.base import FormatOptions, Table, Writer
from usp.export.reading import PageCounts, PageReader, PageRows, SourceTree, sitemaps_columns
from usp.export.selection import Moment, Selection, select_from
from usp.keywords import check_keywords
from usp.limits import SMALL_MEMORY_BYTES
from usp.objects.sitemap import AbstractSitemap, IndexRobotsTxtSitemap, IndexWebsiteSitemap, InvalidSitemap
from usp.stream import HomepageOptions, SitemapStream

if TYPE_CHECKING:
    from usp.web_client.abstract_client import AbstractWebClient

__all__ = [
    "ExportOptions",
    "ExportPlan",
    "Exported",
    "Keep",
    "SourceTree",
    "WriteOptions",
    "export_homepage",
    "export_stream",
    "has_sitemaps",
    "plan_export",
    "run_export",
    "write",
]

#: Decides at the end whether to write the file.
Keep = Callable[[tuple[AbstractSitemap, ...]], bool]

_NO_SITEMAPS = (InvalidSitemap, IndexRobotsTxtSitemap, IndexWebsiteSitemap)


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """What to write: which tables, which of their rows and columns, and where to."""

    output: OutputFile
    selections: dict[str, Selection]
    dedupe: bool
    options: FormatOptions


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export: the trees that were read, and the number of rows of the requested table.

    If `is_written` is False, nothing was written, and an existing file stays as it was.
    """

    trees: tuple[AbstractSitemap, ...]
    rows: int
    pages: int | None = None  # that were read; None if none had to be
    is_written: bool = True

    @property
    def tree(self) -> AbstractSitemap:
        """The tree, or the first of several."""
        return self.trees[0]


class WriteOptions(TypedDict, total=False):
    """What to write, and how; see `write`."""

    format: str | None
    table: str | None
    columns: Sequence[str] | str | None
    where: str | None
    since: Moment | None
    until: Moment | None
    dedupe: bool
    raw_csv: bool


class ExportOptions(HomepageOptions, WriteOptions, total=False):
    """What to fetch, and what to write."""


def plan_export(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 -- as everybody calls it
    table: str | None = None,
    columns: Sequence[str] | str | None = None,
    where: str | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
    dedupe: bool = False,
    raw_csv: bool = False,
    has_source: bool = False,
) -> ExportPlan:
    """Check the options of an export before any work is done. See `write` for what each means.

    :param has_source: give each table a first column `source`, for an export of several targets.
    """
    output = output_file(path, format)
    first = "pages" if table is None else table
    selections = {first: select_from(first, columns, where, since, until, dedupe=dedupe, has_source=has_source)}
    if table is None and output.format.holds_tables:
        selections["sitemaps"] = select_from("sitemaps", has_source=has_source)
    return ExportPlan(output, selections, dedupe, FormatOptions(keep_formulas=raw_csv))


def write(tree: AbstractSitemap, path: str | os.PathLike[str], **options: Unpack[WriteOptions]) -> Exported:
    """Write the pages of a tree to a file. The file appears under its name once it is complete.

    :param path: the file; its ending decides the format, unless you give one. "-" is standard output.
    :param format: "parquet", "arrow", "csv", "tsv", "json", "jsonl", "sqlite", "duckdb" or "xlsx".
    :param table: "pages", "sitemaps", "images", "videos" or "alternates". A database or a workbook has the first two,
        unless you name one.
    :param columns: the columns to write, in this order; all if None.
    :param where: which rows: a condition in SQL, like "last_modified >= '2025-01-01'". It needs the extra `sql`.
    :param since: only pages modified since then: "2025-01-01", "7d" for seven days ago, or a date.
    :param until: only pages modified until then, in the same forms. A date includes the whole day.
    :param dedupe: whether to leave out pages that an earlier sitemap lists, or the images and the like of such pages.
    :param raw_csv: whether to write CSV and TSV cells as they are, even if a spreadsheet would run them.
    :raises InvalidArgumentError: for wrong options, before anything is written.
    :raises OSError: if the file cannot be written; an existing file then stays as it was.
    """
    check_keywords(options, WriteOptions.__annotations__, "path")
    plan = plan_export(path, **options)
    plan.output.check()
    return _write_trees(plan, [SourceTree(None, tree)])


def export_homepage(
    homepage_url: str,
    path: str | os.PathLike[str],
    web_client: AbstractWebClient | None = None,
    **options: Unpack[ExportOptions],
) -> Exported:
    """Fetch a site, and write its pages to a file as they arrive. If usp finds no sitemap, it writes nothing.

    The options are those of `write` and of `usp.tree.sitemap_tree_for_homepage`.

    :raises TreeInterrupted: on Ctrl-C; a `KeyboardInterrupt` that has the partial tree. Nothing is written.
    """
    check_keywords(options, ExportOptions.__annotations__, "path", "web_client")
    of_writing: Any = {name: value for name, value in options.items() if name in WriteOptions.__annotations__}
    of_tree: Any = {name: value for name, value in options.items() if name not in of_writing}
    plan = plan_export(path, **of_writing)
    plan.output.check()
    return run_export(plan, [(None, export_stream(homepage_url, web_client, **of_tree))])


def export_stream(
    homepage_url: str, web_client: AbstractWebClient | None = None, **options: Unpack[HomepageOptions]
) -> SitemapStream:
    """Open a site for an export, which keeps few documents in memory."""
    return SitemapStream(
        homepage_url,
        web_client,
        memory_bytes=SMALL_MEMORY_BYTES,
        pages_once=True,
        bounds_reading=True,
        **options,
    )


def run_export(
    plan: ExportPlan,
    streams: Iterable[tuple[str | None, SitemapStream]],
    *,
    keep: Keep | None = None,
    keep_partial: bool = False,
) -> Exported:
    """Read streams one after another, and write what is planned into one file.

    :param streams: each with its name for the column `source`, or None. Open the streams lazily, in a generator.
    :param keep: takes the trees at the end, and returns whether to write the file. Otherwise an existing file stays as
        it was. Rows that are on standard output already stay there. By default, the file is written if a sitemap was
        found.
    :param keep_partial: after Ctrl-C, write what was fetched until then to the file.
    :raises TreeInterrupted: on Ctrl-C. `exported` has the result, with the partial tree at the end of `trees`. On
        standard output, the table is finished, so that programs can read it.
    """
    trees: list[SourceTree] = []
    source, tables, interrupt = None, None, None
    try:
        with plan.output.open() as file, _TableWriter(plan, file) as tables:
            try:
                for source, stream in streams:
                    tables.start_tree()
                    with stream:
                        for sitemap in stream.with_pauses():
                            tables.put(sitemap, source, stream.names if sitemap is not None else {})
                    trees.append(SourceTree(source, stream.tree))
                if not (keep or has_sitemaps)(_only_trees(trees)):
                    raise _NotKeptError
            except TreeInterrupted as error:  # while fetching, so all rows that were begun are whole
                trees.append(SourceTree(source, error.tree))
                if plan.output.path != STANDARD_OUTPUT or plan.output.is_held:
                    raise
                interrupt = error
            tables.finish(trees)
    except _NotKeptError:
        return _exported(trees, tables, is_written=False)
    except KeyboardInterrupt:
        raise _interrupted(plan, trees, tables, keep_partial) from None
    if interrupt is not None:
        raise _interrupted(plan, trees, tables, keep_partial) from None
    return _exported(trees, tables)


def has_sitemaps(trees: Sequence[AbstractSitemap]) -> bool:
    """Return whether there is a sitemap in any of the trees. A robots.txt is none."""
    sitemaps = chain.from_iterable((tree, *tree.all_sitemaps()) for tree in trees)
    return any(not isinstance(sitemap, _NO_SITEMAPS) for sitemap in sitemaps)


class _NotKeptError(Exception):
    """The file is not to be written: raised to drop what was written until then."""


def _only_trees(trees: Iterable[SourceTree]) -> tuple[AbstractSitemap, ...]:
    return tuple(tree for _, tree in trees)


def _exported(trees: Iterable[SourceTree], tables: _TableWriter | None, *, is_written: bool = True) -> Exported:
    rows, read = (tables.rows, tables.read) if tables is not None and is_written else (0, None)
    return Exported(_only_trees(trees), rows, read, is_written)


def _interrupted(
    plan: ExportPlan, trees: list[SourceTree], tables: _TableWriter | None, keep_partial: bool
) -> KeyboardInterrupt:
    """Write what was fetched before Ctrl-C, if it is to be kept; return the exception to raise.

    The file is written again from its start, because Ctrl-C may have come in the middle of a row.
    """
    if not trees:
        return KeyboardInterrupt()
    interrupt = TreeInterrupted(trees[-1].tree)
    if plan.output.path == STANDARD_OUTPUT:
        interrupt.exported = _exported(trees, tables, is_written=not plan.output.is_held)
    elif keep_partial:
        interrupt.exported = _write_trees(plan, trees)
    else:
        interrupt.exported = _exported(trees, tables, is_written=False)
    return interrupt


def _write_trees(plan: ExportPlan, trees: Sequence[SourceTree]) -> Exported:
    with plan.output.open() as file, _TableWriter(plan, file) as tables:
        for source, tree in trees:
            tables.start_tree()
            for sitemap in (tree, *tree.all_sitemaps()):
                tables.put(sitemap, source, tree.facts.names)
        tables.finish(trees)
    return _exported(trees, tables)


class _TableWriter:
    """Writes the planned tables: pages, or their images and the like, while sitemaps arrive; sitemaps at the end."""

    def __init__(self, plan: ExportPlan, file: Any) -> None:
        self.rows = 0  # of the requested table
        self._plan = plan
        self._file = file
        self._places = FirstPlaces()
        self._stack = ExitStack()
        self._reader: PageReader[Any] | None = None
        if (table := next((name for name in plan.selections if name != "sitemaps"), None)) is not None:
            selection = plan.selections[table]
            self._writer = _writer(table, selection, plan, file)
            self._stack.callback(self._writer.drop)
            self._reader = self._stack.enter_context(
                PageReader(selection, self._writer.encode, dedupe=plan.dedupe, dates="sitemaps" in plan.selections)
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._stack.__exit__(*exception)

    @property
    def read(self) -> int | None:
        """The number of pages that were read; None if none had to be."""
        return None if self._reader is None else self._reader.pages

    def start_tree(self) -> None:
        """Say that the next sitemap is the first of a tree."""
        self._places = FirstPlaces()

    def put(self, sitemap: AbstractSitemap | None, source: str | None, names: Mapping[str, str]) -> None:
        """Start to read a sitemap. Without one, write the rows that are ready; if somebody watches, write all."""
        if self._reader is None:
            return
        if sitemap is not None:
            if self._places.is_first(sitemap):
                self._write(self._reader.put(pages_of(sitemap, source, names)))
        elif self._plan.output.is_watched:
            self._write(self._reader.rest())
            self._file.flush()
        else:
            self._write(self._reader.ready())

    def finish(self, trees: Iterable[SourceTree]) -> None:
        """Write the remaining rows of pages, and the table of sitemaps."""
        counts: PageCounts = {}
        if self._reader is not None:
            self._write(self._reader.rest())
            self._writer.close()
            counts = self._reader.counts
        if (selection := self._plan.selections.get("sitemaps")) is not None:
            rows = self._write_sitemaps(selection, trees, counts)
            self.rows = rows if self._reader is None else self.rows

    def _write(self, read: Iterable[PageRows[Any]]) -> None:
        for rows in read:
            if rows.kept:
                self._writer.write(rows.encoded)
                self.rows += rows.kept

    def _write_sitemaps(self, selection: Selection, trees: Iterable[SourceTree], counts: PageCounts) -> int:
        """Write the table of sitemaps, and return its number of rows."""
        writer = _writer("sitemaps", selection, self._plan, self._file)
        rows = 0
        try:
            for source, tree in trees:
                batch = selection.batch(sitemaps_columns(tree, counts, selection.needed, source))
                writer.write(writer.encode(batch))
                rows += batch.kept_count
            writer.close()
        finally:
            writer.drop()
        return rows


def _writer(table: str, selection: Selection, plan: ExportPlan, file: Any) -> Writer:
    make = plan.output.format.table_writer
    assert make is not None
    return make(file, Table(table, selection.types, selection.chosen), plan.options)
