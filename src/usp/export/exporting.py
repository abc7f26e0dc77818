"""Write the tables of a site, or of its tree, to a file.

The pages of a site are written while its sitemaps are fetched, in the order of the tree. If writing is slow, fetching
waits for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

from usp.export.batches import pages_of
from usp.export.formats import OutputFile, output_file
from usp.export.formats.base import FormatOptions, Table, Writer
from usp.export.reading import PageCounts, PageReader, PageRows, sitemaps_columns
from usp.export.selection import Moment, Selection, select_from
from usp.limits import SMALL_MEMORY_BYTES
from usp.objects.sitemap import AbstractSitemap
from usp.stream import HomepageOptions, SitemapStream

if TYPE_CHECKING:
    from usp.web_client.abstract_client import AbstractWebClient

__all__ = [
    "ExportOptions",
    "ExportPlan",
    "Exported",
    "WriteOptions",
    "export_homepage",
    "plan_export",
    "run_export",
    "write",
]

_LIMIT_REACHED = "C901"


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """What to write: which tables, which of their rows and columns, and where to."""

    output: OutputFile
    selections: dict[str, Selection]
    dedupe: bool
    options: FormatOptions


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export: the number of rows of the requested table, and the tree that they are from.

    If a site could not be reached, nothing is written, and an existing file stays as it was.
    """

    tree: AbstractSitemap
    rows: int
    pages: int | None = None  # that were read; None if none had to be
    is_written: bool = True


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
) -> ExportPlan:
    """Check the options of an export before any work is done. See `write` for what each means."""
    output = output_file(path, format)
    first = "pages" if table is None else table
    selections = {first: select_from(first, columns, where, since, until, dedupe=dedupe)}
    if table is None and output.format.is_database:
        selections["sitemaps"] = select_from("sitemaps")
    return ExportPlan(output, selections, dedupe, FormatOptions(raw_csv=raw_csv))


def write(tree: AbstractSitemap, path: str | os.PathLike[str], **options: Unpack[WriteOptions]) -> Exported:
    """Write the pages of a tree to a file. The file appears under its name once it is complete.

    :param path: the file; its ending says the format, unless you give one. "-" is standard output.
    :param format: "parquet", "arrow", "csv", "jsonl" or "sqlite".
    :param table: "pages" or "sitemaps". A database has both, unless you name one.
    :param columns: the columns to write, in this order; all if None.
    :param where: which rows: a condition in SQL, like "last_modified >= '2025-01-01'". It needs the extra `sql`.
    :param since: only pages modified since then: "2025-01-01", "7d" for seven days ago, or a date.
    :param until: only pages modified until then, in the same forms. A date includes the whole day.
    :param dedupe: whether to leave out pages that an earlier sitemap lists.
    :param raw_csv: whether to write CSV cells as they are, even if a spreadsheet would run them.
    :raises InvalidArgumentError: for wrong options, before anything is written.
    :raises OSError: if the file cannot be written; an existing file then stays as it was.
    """
    plan = plan_export(path, **options)
    plan.output.check()
    return _write(plan, (tree, *tree.all_sitemaps()), lambda: tree)


def export_homepage(
    homepage_url: str,
    path: str | os.PathLike[str],
    web_client: AbstractWebClient | None = None,
    **options: Unpack[ExportOptions],
) -> Exported:
    """Fetch a site and write its pages meanwhile.

    The options are those of `write` and of `usp.tree.sitemap_tree_for_homepage`.

    :raises TreeInterrupted: on Ctrl-C; a `KeyboardInterrupt` that has the partial tree. Nothing is written.
    """
    of_writing: Any = {name: value for name, value in options.items() if name in WriteOptions.__annotations__}
    of_tree: Any = {name: value for name, value in options.items() if name not in of_writing}
    plan = plan_export(path, **of_writing)
    plan.output.check()
    return run_export(plan, homepage_url, web_client, **of_tree)


def run_export(
    plan: ExportPlan, homepage_url: str, web_client: AbstractWebClient | None, **options: Unpack[HomepageOptions]
) -> Exported:
    """Fetch a site and write what is planned."""
    with SitemapStream(homepage_url, web_client, memory_bytes=SMALL_MEMORY_BYTES, **options) as stream:
        try:
            return _write(plan, _reached(stream), lambda: stream.tree)
        except _UnreachableError:
            return Exported(stream.tree, 0, is_written=False)


class _UnreachableError(Exception):
    """The site could not be reached: no file is to be written."""


def _reached(stream: SitemapStream) -> Iterator[AbstractSitemap | None]:
    """Give the sitemaps of a stream, and None between them where there is time for other work."""
    yield from stream.with_pauses()
    tree = stream.tree
    if not tree.sub_sitemaps and any(problem.code != _LIMIT_REACHED for problem in tree.problems):
        raise _UnreachableError


def _write(
    plan: ExportPlan, sitemaps: Iterable[AbstractSitemap | None], tree: Callable[[], AbstractSitemap]
) -> Exported:
    """Write the planned tables. The tree is asked for after the last sitemap."""
    with plan.output.open() as file, _PageWriter(plan, file) as pages:
        for sitemap in sitemaps:
            pages.put(sitemap)
        pages.finish()
        rows = _write_sitemaps(tree(), plan, file, pages.counts)
    return Exported(tree(), pages.rows if "pages" in plan.selections else rows, pages.read)


class _PageWriter:
    """Writes the pages of sitemaps, if the plan has them."""

    def __init__(self, plan: ExportPlan, file: Any) -> None:
        self.rows = 0
        self._file = file
        self._is_watched = plan.output.is_watched
        self._stack = ExitStack()
        self._reader: PageReader[Any] | None = None
        if (selection := plan.selections.get("pages")) is not None:
            self._writer = _writer("pages", selection, plan, file)
            self._stack.callback(self._writer.drop)
            self._reader = self._stack.enter_context(PageReader(selection, self._writer.encode, dedupe=plan.dedupe))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._stack.__exit__(*exception)

    @property
    def read(self) -> int | None:
        """The number of pages that were read; None if none had to be."""
        return None if self._reader is None else self._reader.pages

    @property
    def counts(self) -> PageCounts:
        """The number of pages of each sitemap."""
        return {} if self._reader is None else self._reader.counts

    def put(self, sitemap: AbstractSitemap | None) -> None:
        """Start to read a sitemap. Without one, write the rows that are ready; if somebody watches, write all."""
        if self._reader is None:
            return
        if sitemap is not None:
            self._write(self._reader.put(pages_of(sitemap)))
        elif self._is_watched:
            self._write(self._reader.rest())
            self._file.flush()
        else:
            self._write(self._reader.ready())

    def finish(self) -> None:
        """Write the remaining rows, and the end of the table."""
        if self._reader is not None:
            self._write(self._reader.rest())
            self._writer.close()

    def _write(self, read: Iterable[PageRows[Any]]) -> None:
        for rows in read:
            if rows.kept:
                self._writer.write(rows.encoded)
                self.rows += rows.kept


def _writer(table: str, selection: Selection, plan: ExportPlan, file: Any) -> Writer:
    make = plan.output.format.table_writer
    assert make is not None
    return make(file, Table(table, selection.types, selection.chosen), plan.options)


def _write_sitemaps(tree: AbstractSitemap, plan: ExportPlan, file: Any, counts: PageCounts) -> int:
    """Write the table of sitemaps, if the plan has it, and return its number of rows."""
    selection = plan.selections.get("sitemaps")
    if selection is None:
        return 0
    writer = _writer("sitemaps", selection, plan, file)
    batch = selection.batch(sitemaps_columns(tree, counts, selection.needed))
    try:
        writer.write(writer.encode(batch))
        writer.close()
    finally:
        writer.drop()
    return batch.kept_count
