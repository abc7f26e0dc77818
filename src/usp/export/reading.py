"""Read the rows of both tables: pages, several sitemaps at once in threads, and sitemaps.

Nearly every sitemap is one batch. A thread reads the first batch of a sitemap. Further batches of a long one are read
when they are asked for, so that a long sitemap takes no more memory than another. Rows come out in order.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from typing import Any, Generic, NamedTuple, TypeVar

from usp.export.batches import Batch, SitemapPages, page_columns, pages_of
from usp.export.dedupe import FirstOfEach
from usp.export.schema import SITEMAPS, type_name
from usp.export.selection import PAGE_DATES, Selection, newest_date
from usp.objects.sitemap import AbstractSitemap, InvalidSitemap
from usp.objects.transport import Transport
from usp.origins import named_url
from usp.scan import Columns, Scalar, column_of

__all__ = [
    "EPOCH",
    "OrderedPool",
    "PageCounts",
    "PageReader",
    "PageRows",
    "PageStats",
    "SitemapPlace",
    "SitemapRow",
    "SourceTree",
    "sitemap_places",
    "sitemap_rows",
    "sitemap_values",
    "sitemaps_columns",
]

Item = TypeVar("Item")
Result = TypeVar("Result")

_MAX_WORKERS = 4
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class OrderedPool(Generic[Item, Result]):
    """Work on items in several threads, and give the results in the order of the items.

    Only a few items are ahead of the first result that was not taken. So a slow consumer slows down the producer.
    """

    def __init__(self, work: Callable[[Item], Result], workers: int | None = None) -> None:
        self._work = work
        workers = workers or min(os.cpu_count() or 1, _MAX_WORKERS)
        self._ahead = workers + 1
        self._executor = ThreadPoolExecutor(workers, thread_name_prefix="usp-export")
        self._pending: deque[Future[Result]] = deque()

    def put(self, item: Item) -> Iterator[Result]:
        """Add an item. Wait for results that are too far behind, and give them.

        Other results that are ready are not given, because the threads would be idle while they are consumed.
        """
        self._pending.append(self._executor.submit(self._work, item))
        return self._behind()

    def _behind(self) -> Iterator[Result]:
        while len(self._pending) > self._ahead:
            yield self._pending.popleft().result()

    def ready(self) -> Iterator[Result]:
        """Give the results that are ready."""
        while self._pending and self._pending[0].done():
            yield self._pending.popleft().result()

    def rest(self) -> Iterator[Result]:
        """Wait for all remaining results, and give them."""
        while self._pending:
            yield self._pending.popleft().result()

    def over(self, items: Iterable[Item]) -> Iterator[Result]:
        """Give the results of all these items."""
        for item in items:
            yield from self.put(item)
        yield from self.rest()

    def close(self) -> None:
        """Drop the items that were not started, and wait for the others."""
        self._executor.shutdown(wait=True, cancel_futures=True)


@dataclass(frozen=True, slots=True)
class PageRows(Generic[Result]):
    """Encoded rows of a sitemap, with the number of pages they are from and the number of rows."""

    pages: int
    kept: int
    encoded: Result
    newest: int | None = None


class PageStats(NamedTuple):
    """The number of pages of a sitemap, and their newest date in microseconds since 1970, if their dates were read."""

    pages: int
    newest: int | None = None
    is_dated: bool = False


class PageReader(Generic[Result]):
    """Read the pages of several sitemaps at once, and give their rows in order, selected and encoded.

    `counts` has the number of pages by the URL of the sitemap, and with `dates` their newest date; None if two sitemaps
    of one URL differ.
    """

    def __init__(
        self, selection: Selection, encode: Callable[[Batch], Result], *, dedupe: bool = False, dates: bool = False
    ) -> None:
        self.counts: dict[str, PageStats | None] = {}
        self._has_dates = dates and selection.needed >= PAGE_DATES
        self.pages = 0
        self._selection = selection
        self._encode = encode
        self._firsts = FirstOfEach() if dedupe else None
        self._pool: OrderedPool[SitemapPages, tuple[str, Iterator[PageRows[Any]]]] = OrderedPool(self._read)

    def __enter__(self) -> PageReader[Result]:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._selection.interrupt()
        self._pool.close()
        if self._firsts is not None:
            self._firsts.close()

    def put(self, sitemap: SitemapPages) -> Iterator[PageRows[Result]]:
        """Add a sitemap. Give the rows of sitemaps that are too far behind."""
        return self._finished(self._pool.put(sitemap))

    def ready(self) -> Iterator[PageRows[Result]]:
        """Give the rows that are ready."""
        return self._finished(self._pool.ready())

    def rest(self) -> Iterator[PageRows[Result]]:
        """Wait for all remaining rows, and give them."""
        return self._finished(self._pool.rest())

    def over(self, sitemaps: Iterable[SitemapPages]) -> Iterator[PageRows[Result]]:
        """Give the rows of all these sitemaps."""
        return self._finished(self._pool.over(sitemaps))

    def _read(self, sitemap: SitemapPages) -> tuple[str, Iterator[PageRows[Any]]]:
        """Read the first batch of a sitemap, in any thread; return its URL and its rows."""
        parts = self._parts(sitemap)
        return sitemap.url, chain(list(islice(parts, 1)), parts)

    def _parts(self, sitemap: SitemapPages) -> Iterator[PageRows[Any]]:
        """Give the rows of a sitemap, encoded; with `dedupe`, they are encoded later."""
        for columns in page_columns(sitemap, self._selection.needed):
            batch = self._selection.batch(columns)
            encoded = batch if self._firsts is not None else self._encode(batch)
            newest = newest_date(columns) if self._has_dates else None
            yield PageRows(columns.length, batch.kept_count, encoded, newest)

    def _finished(self, found: Iterable[tuple[str, Iterator[PageRows[Any]]]]) -> Iterator[PageRows[Result]]:
        for url, parts in found:
            pages, newest = 0, None
            for rows in parts:
                pages += rows.pages
                newest = _later(newest, rows.newest)
                if self._firsts is None:
                    yield rows
                else:
                    batch = self._firsts.batch(rows.encoded)
                    yield PageRows(rows.pages, batch.kept_count, self._encode(batch))
            self.pages += pages
            stats = PageStats(pages, newest, self._has_dates)
            self.counts[url] = stats if self.counts.setdefault(url, stats) == stats else None


def _later(first: int | None, second: int | None) -> int | None:
    return second if first is None else first if second is None else max(first, second)


#: URLs of sitemaps -> the number of their pages. If a number is missing or None, the pages are counted.
PageCounts = Mapping[str, PageStats | None]


class SourceTree(NamedTuple):
    """A tree, and the name of its source, or None."""

    source: str | None
    tree: AbstractSitemap


class SitemapPlace(NamedTuple):
    """A sitemap, and where it is in its tree."""

    sitemap: AbstractSitemap
    parent: AbstractSitemap | None
    depth: int
    names: Mapping[str, str]


def _of_transport(value: Callable[[Transport], Any]) -> Callable[[SitemapPlace], Any]:
    def of(place: SitemapPlace) -> Any:
        transport = place.sitemap.transport
        return None if transport is None else value(transport)

    return of


def _inflated_size(place: SitemapPlace) -> int | None:
    parser = place.sitemap.parser
    return None if parser is None else parser.inflated_size


#: The values of each column, except those that are found by reading the document.
_VALUES: dict[str, Callable[[SitemapPlace], Any]] = {
    "url": lambda place: named_url(place.sitemap.url, place.names),
    "parent": lambda place: None if place.parent is None else named_url(place.parent.url, place.names),
    "type": lambda place: type_name(type(place.sitemap)),
    "depth": lambda place: place.depth,
    "status": _of_transport(lambda transport: transport.status),
    "reason": lambda place: place.sitemap.reason if isinstance(place.sitemap, InvalidSitemap) else None,
    "bytes": _of_transport(lambda transport: transport.size),
    "bytes_inflated": _inflated_size,
    "last_modified": lambda place: place.sitemap.last_modified,
    "http_last_modified": _of_transport(lambda transport: transport.last_modified),
    "etag": _of_transport(lambda transport: transport.etag),
    "seconds": _of_transport(lambda transport: transport.seconds),
    "fetched_at": _of_transport(lambda transport: transport.fetched_at),
}


def sitemaps_columns(
    tree: AbstractSitemap,
    counts: PageCounts | None = None,
    wanted: Collection[str] = SITEMAPS,
    source: str | None = None,
) -> Columns:
    """Return the table of sitemaps: the root first, each before its children.

    :param counts: known numbers of pages.
    :param source: the name of the source of the tree, for the column `source`.
    """
    places = list(sitemap_places(tree))
    values = {name: list(map(value, places)) for name, value in _VALUES.items() if name in wanted}
    values |= _read_values([place.sitemap for place in places], counts or {}, wanted)
    found = {
        name: column_of(SITEMAPS[name], column)
        for name, column in values.items()
        if any(value is not None for value in column)
    }
    if source is not None:
        found["source"] = column_of(Scalar.TEXT, [source] * len(places))
    return Columns(len(places), found)


def sitemap_values(place: SitemapPlace) -> dict[str, Any]:
    """Return the values of the row of a sitemap, except those that are found by reading its document."""
    return {name: value(place) for name, value in _VALUES.items()}


def sitemap_places(tree: AbstractSitemap) -> Iterator[SitemapPlace]:
    """Give all sitemaps of a tree, the root first, each before its children."""
    names = tree.facts.names
    ahead = [SitemapPlace(tree, None, 0, names)]
    while ahead:
        place = ahead.pop()
        yield place
        below = place.sitemap.sub_sitemaps
        ahead += (SitemapPlace(sitemap, place.sitemap, place.depth + 1, names) for sitemap in reversed(below))


#: The columns that are found by reading the document.
_READ = {"pages", "newest", "problems"}


def _read_values(sitemaps: list[AbstractSitemap], counts: PageCounts, wanted: Collection[str]) -> dict[str, list[Any]]:
    """Return the wanted columns that are found by reading documents, several at once."""
    wanted = _READ.intersection(wanted)
    if not wanted:
        return {}

    def read(sitemap: AbstractSitemap) -> dict[str, Any]:
        return _read(sitemap, counts, wanted)

    with closing(OrderedPool(read)) as pool:
        found = list(pool.over(sitemaps))
    return {name: [values[name] for values in found] for name in wanted}


def _read(sitemap: AbstractSitemap, counts: PageCounts, wanted: Collection[str]) -> dict[str, Any]:
    stats = _stats_of(sitemap, counts.get(sitemap.url), wanted)
    newest = None if stats.newest is None else EPOCH + timedelta(microseconds=stats.newest)
    problems = sum(sitemap.problem_counts.values()) if "problems" in wanted else None
    return {"pages": stats.pages, "newest": newest, "problems": problems}


class SitemapRow(NamedTuple):
    """A sitemap, and its row in the table of sitemaps: Python values by the names of the columns."""

    sitemap: AbstractSitemap
    values: dict[str, Any]


def sitemap_rows(tree: AbstractSitemap) -> Generator[SitemapRow, None, None]:
    """Give the rows of the table of sitemaps in its order. Several documents are read at once."""

    def row(place: SitemapPlace) -> SitemapRow:
        read = _read(place.sitemap, {}, _READ)
        values = read | sitemap_values(place)
        return SitemapRow(place.sitemap, {name: values[name] for name in SITEMAPS})

    with closing(OrderedPool(row)) as pool:
        yield from pool.over(sitemap_places(tree))


def _stats_of(sitemap: AbstractSitemap, known: PageStats | None, wanted: Collection[str]) -> PageStats:
    """Return the known statistics of the pages, or read them, if something of them is wanted."""
    if isinstance(sitemap, InvalidSitemap) or wanted == {"problems"}:
        return PageStats(0)
    if known is not None and (known.is_dated or "newest" not in wanted):
        return known
    pages, newest = 0, None
    for columns in page_columns(pages_of(sitemap), PAGE_DATES if "newest" in wanted else ()):
        pages += columns.length
        newest = _later(newest, newest_date(columns) if "newest" in wanted else None)
    return PageStats(pages, newest, "newest" in wanted)
