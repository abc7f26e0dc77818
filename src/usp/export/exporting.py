"""From a site, or from its tree, to a file.

The pages of a site leave as its sitemaps come in, in the order of the tree: sitemaps are fetched, read and written at
the same time, and whoever writes slowly holds back the fetching.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import Any, TypedDict, Unpack

from usp.drivers.blocking import client_or_default, steps
from usp.drivers.options import HomepageOptions, Options, homepage_walk
from usp.exceptions import TreeInterrupted
from usp.export.batches import Listing, listing_of
from usp.export.formats import Target, target_of
from usp.export.reading import PageReader, PageRows
from usp.export.schema import type_name
from usp.export.selection import Moment, Selection, select_from
from usp.export.sitemaps_table import PageCounts, sitemaps_columns
from usp.export.writing import Writer
from usp.limits import SMALL_MEMORY_BYTES
from usp.objects.sitemap import AbstractSitemap
from usp.walk import HomepageWalk
from usp.walk.nodes import Node, OrderedArrivals
from usp.web_client.abstract_client import AbstractWebClient

__all__ = ["ExportOptions", "Exported", "Order", "WriteOptions", "carry_out", "export_homepage", "order_of", "write"]

_CUT = "C901"


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be written: which tables, which of their rows and columns, and to where."""

    target: Target
    selections: dict[str, Selection]
    dedupe: bool = False
    is_raw: bool = False


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: the rows of the table that was asked for, and the tree that they are from.

    Where a site could not be reached nothing is written, and a file of that name is left as it was.
    """

    tree: AbstractSitemap
    rows: int
    pages: int | None = None  # that were read; None if there was no need to
    is_written: bool = True


class WriteOptions(TypedDict, total=False):
    """What is written, and how; see `write` for what each means."""

    format: str | None
    table: str | None
    columns: Sequence[str] | str | None
    where: str | None
    since: Moment | None
    until: Moment | None
    dedupe: bool
    raw_csv: bool


class ExportOptions(HomepageOptions, WriteOptions, total=False):
    """What is fetched, and what of it is written."""


def order_of(
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
) -> Order:
    """What is to be written, checked before any work is done for it. See `write` for what each means."""
    target = target_of(path, format)
    first = "pages" if table is None else table
    selections = {first: select_from(first, columns, where, since, until, dedupe=dedupe)}
    if table is None and target.format.is_database:
        selections["sitemaps"] = select_from("sitemaps")
    return Order(target, selections, dedupe, raw_csv)


def write(tree: AbstractSitemap, path: str | os.PathLike[str], **options: Unpack[WriteOptions]) -> Exported:
    """Write the pages of a tree to a file, which appears under its name when it is whole.

    :param path: the file; its ending says the format, unless that is given. "-" is standard output.
    :param format: "parquet", "arrow", "csv", "jsonl" or "sqlite".
    :param table: "pages" or "sitemaps". A database has both, unless one is named.
    :param columns: the columns to be written, in this order; all if None.
    :param where: which rows: a condition in SQL, like "last_modified >= '2025-01-01'". It needs the extra `sql`.
    :param since: only pages modified since then: "2025-01-01", "7d" for seven days ago, or a date.
    :param until: only pages modified until then, in the same forms. A date includes the whole day.
    :param dedupe: whether to leave out pages that another sitemap has listed before.
    :param raw_csv: whether to write CSV cells as they are, even if a spreadsheet would run them.
    :raises InvalidArgumentError: for wrong options, before anything is written.
    :raises OSError: if the file cannot be written; then it is left as it was.
    """
    order = order_of(path, **options)
    order.target.check()
    sitemaps = [tree, *tree.all_sitemaps()] if "pages" in order.selections else []
    with order.target.open() as file, _Pages(order, file) as pages:
        for sitemap in sitemaps:
            pages.put(listing_of(sitemap))
        pages.finish()
        rows = _write_sitemaps(tree, order, file, pages.counts)
    return Exported(tree, pages.rows if sitemaps else rows, pages.read)


def export_homepage(
    homepage_url: str,
    path: str | os.PathLike[str],
    web_client: AbstractWebClient | None = None,
    **options: Unpack[ExportOptions],
) -> Exported:
    """Fetch a site and write its pages meanwhile: `write` and `sitemap_tree_for_homepage` in one, with their options.

    :raises TreeInterrupted: a `KeyboardInterrupt`, with what was had of the tree; nothing is written.
    """
    of_writing: Any = {name: value for name, value in options.items() if name in WriteOptions.__annotations__}
    of_tree: Any = {name: value for name, value in options.items() if name not in of_writing}
    order = order_of(path, **of_writing)
    order.target.check()
    return carry_out(order, homepage_url, web_client, **of_tree)


def carry_out(
    order: Order, homepage_url: str, web_client: AbstractWebClient | None, **options: Unpack[HomepageOptions]
) -> Exported:
    """Fetch a site and write what is ordered of it."""
    walk, fetching, homepage_url = homepage_walk(homepage_url, **options)
    source = _Source(walk, replace(fetching, memory_bytes=SMALL_MEMORY_BYTES), homepage_url)
    # Where a tree is cut at a number of pages is known when it is whole.
    is_streamed = "pages" in order.selections and fetching.limits.max_pages is None
    try:
        with client_or_default(web_client) as client, closing(source.listings(client)) as fetched:
            if not is_streamed:
                for _ in fetched:
                    pass
            with order.target.open() as file, _Pages(order, file) as pages:
                for listing in fetched if is_streamed else source.all_listings(order):
                    pages.put(listing)
                pages.finish()
                tree = walk.website()
                if not tree.sub_sitemaps and any(problem.code != _CUT for problem in tree.problems):
                    raise _NotReached
                rows = _write_sitemaps(tree, order, file, pages.counts)
    except KeyboardInterrupt:
        raise TreeInterrupted(walk.website()) from None
    except _NotReached:
        return Exported(walk.website(), 0, is_written=False)
    return Exported(tree, pages.rows if "pages" in order.selections else rows, pages.read)


class _NotReached(Exception):
    """The site could not be reached: what was begun to be written is dropped."""


class _Source:
    """The sitemaps of a walk."""

    def __init__(self, walk: HomepageWalk, options: Options, homepage_url: str) -> None:
        self._walk = walk
        self._options = options
        self._homepage_url = homepage_url

    def listings(self, client: AbstractWebClient) -> Generator[Listing | None, None, None]:
        """Fetch the sitemaps, and give each as soon as may be; None where there is time for something else."""
        front = OrderedArrivals(self._walk)
        with closing(steps(self._walk, client, self._options, self._homepage_url)) as pauses:
            for _ in pauses:
                yield from _listings_of(front)
                yield None
        yield from _listings_of(front)

    def all_listings(self, order: Order) -> Iterator[Listing]:
        """The sitemaps, when all of them are here; none where their pages are not wanted."""
        if "pages" in order.selections:
            yield from map(listing_of, self._walk.website().all_sitemaps())


def _listings_of(front: OrderedArrivals) -> Iterator[Listing]:
    return (_listing_of_node(node) for _, node in front.advance() if isinstance(node, Node))


def _listing_of_node(node: Node) -> Listing:
    reading = node.parsed
    assert reading is not None
    return Listing(reading.url, type_name(reading.sitemap_class), reading.pages)


class _Pages:
    """Carries the pages of sitemaps to a writer, if they are wanted at all."""

    def __init__(self, order: Order, file: Any) -> None:
        self.rows = 0
        self._file = file
        self._is_watched = order.target.is_watched
        self._stack = ExitStack()
        self._reader: PageReader[Any] | None = None
        if (selection := order.selections.get("pages")) is not None:
            self._writer = _writer("pages", selection, order, file)
            self._stack.callback(self._writer.drop)
            self._reader = self._stack.enter_context(PageReader(selection, self._writer.encode, dedupe=order.dedupe))

    def __enter__(self) -> _Pages:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._stack.close()

    @property
    def read(self) -> int | None:
        """How many pages were read, if they were."""
        return None if self._reader is None else self._reader.pages

    @property
    def counts(self) -> PageCounts:
        """How many pages each sitemap has."""
        return {} if self._reader is None else self._reader.counts

    def put(self, listing: Listing | None) -> None:
        """Take a sitemap in; without one, write what is ready to be written, or all, where somebody waits for it."""
        if self._reader is None:
            return
        if listing is not None:
            self._write(self._reader.put(listing))
        elif self._is_watched:
            self._write(self._reader.rest())
            self._file.flush()
        else:
            self._write(self._reader.ready())

    def finish(self) -> None:
        """Write all that is left."""
        if self._reader is not None:
            self._write(self._reader.rest())
            self._writer.close()

    def _write(self, found: Iterable[PageRows[Any]]) -> None:
        for rows in found:
            if rows.kept:
                self._writer.write(rows.encoded)
                self.rows += rows.kept


def _writer(table: str, selection: Selection, order: Order, file: Any) -> Writer:
    return order.target.format.writer(file, table, selection.types, selection.chosen, order.is_raw)


def _write_sitemaps(tree: AbstractSitemap, order: Order, file: Any, counts: PageCounts) -> int:
    """Write the table of sitemaps, if it is wanted; gives how many rows it has."""
    selection = order.selections.get("sitemaps")
    if selection is None:
        return 0
    writer = _writer("sitemaps", selection, order, file)
    batch = selection.batch(sitemaps_columns(tree, counts, selection.needed))
    try:
        writer.write(writer.encode(batch))
        writer.close()
    finally:
        writer.drop()
    return batch.kept_count
