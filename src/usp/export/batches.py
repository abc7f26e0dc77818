"""The rows of tables, a sitemap at a time, as columns.

A sitemap is read in any thread, several at once; its rows come out in the order of the tree.
"""

from __future__ import annotations

import os
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar, cast

from usp.export.schema import type_name
from usp.objects.page import SitemapPage
from usp.objects.pages import Pages
from usp.objects.sitemap import AbstractSitemap
from usp.scan.columns import PAGE_TYPES, Column, Columns, PureColumns

__all__ = ["Batch", "Listing", "OrderedPool", "listing_of", "page_columns"]

Item = TypeVar("Item")
Result = TypeVar("Result")

_MAX_WORKERS = 4


@dataclass(frozen=True, slots=True)
class Listing:
    """A sitemap, as far as it is a place where pages are listed."""

    url: str
    type: str
    pages: Sequence[SitemapPage]


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of a table; `kept` says of each whether it is wanted, None if all are."""

    columns: Columns
    kept: Sequence[bool] | None = None


def listing_of(sitemap: AbstractSitemap) -> Listing:
    """A sitemap of a tree."""
    pages = sitemap.pages
    return Listing(sitemap.url, type_name(type(sitemap)), pages if isinstance(pages, Pages) else list(pages))


def page_columns(listing: Listing, wanted: Iterable[str]) -> Columns:
    """The pages of a sitemap, with those columns of the table that are wanted, and the URLs."""
    wanted = frozenset(wanted)
    pages = listing.pages
    if isinstance(pages, Pages) and pages.columns is not None:
        read: Columns = pages.columns(wanted & PAGE_TYPES.keys())
    else:
        reader = PureColumns(wanted)
        for page in pages:
            reader.append(page, _last_modified_text(page))
        read = reader.columns()
    length = read.length
    if not length:
        return read
    listed: dict[str, Callable[[int], Column]] = {
        "sitemap_url": partial(_repeated, listing.url),
        "sitemap_type": partial(_repeated, listing.type),
        "position": lambda count: Column(count, memoryview(array("q", range(1, count + 1)))),
    }
    return Columns(length, {**read.columns, **{name: make(length) for name, make in listed.items() if name in wanted}})


def _last_modified_text(page: SitemapPage) -> str:
    source = getattr(page, "_source", None)
    if source is not None:
        return cast(str, source.last_modified_text())
    return page.last_modified.isoformat() if page.last_modified else ""


def _repeated(text: str, length: int) -> Column:
    data = text.encode("utf-8", "replace")
    offsets = array("q", range(0, len(data) * length + 1, len(data))) if data else array("q", bytes(8 * (length + 1)))
    return Column(length, memoryview(data * length), memoryview(offsets))


class OrderedPool(Generic[Item, Result]):
    """Works on items in several threads, and gives the results in the order in which the items were put.

    No more than a few items are ahead of the first whose result was not taken: whoever takes them slowly holds back
    whoever puts them.
    """

    def __init__(self, work: Callable[[Item], Result], workers: int | None = None) -> None:
        self._work = work
        workers = workers or min(os.cpu_count() or 1, _MAX_WORKERS)
        self._ahead = 2 * workers
        self._executor = ThreadPoolExecutor(workers, thread_name_prefix="usp-export")
        self._pending: deque[Future[Result]] = deque()

    def put(self, item: Item) -> Iterator[Result]:
        """Take an item in; gives the results that are there, and waits for those that are too far behind."""
        self._pending.append(self._executor.submit(self._work, item))
        return self.ready()

    def ready(self) -> Iterator[Result]:
        """The results that are there."""
        while self._pending and (self._pending[0].done() or len(self._pending) > self._ahead):
            yield self._pending.popleft().result()

    def rest(self) -> Iterator[Result]:
        """All results that are still to come."""
        while self._pending:
            yield self._pending.popleft().result()

    def over(self, items: Iterable[Item]) -> Iterator[Result]:
        """The results of all these items."""
        for item in items:
            yield from self.put(item)
        yield from self.rest()

    def __enter__(self) -> OrderedPool[Item, Result]:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._executor.shutdown(wait=True, cancel_futures=True)
