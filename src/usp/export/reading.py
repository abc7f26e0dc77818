"""Reads the pages of sitemaps for tables: several sitemaps at once, in threads; their rows come out in order.

A sitemap is read in parts, of which nearly all have one. The first is read in a thread; if there are others, each is
read when it is asked for, so that there are never more rows of a long sitemap than of any other.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Generic, TypeVar

from usp.export.batches import Batch, Listing, page_columns
from usp.export.dedupe import FirstOfEach
from usp.export.selection import Selection

__all__ = ["OrderedPool", "PageReader", "PageRows"]

Item = TypeVar("Item")
Result = TypeVar("Result")

_MAX_WORKERS = 4


class OrderedPool(Generic[Item, Result]):
    """Works on items in several threads, and gives the results in the order in which the items were put.

    No more than a few items are ahead of the first whose result was not taken: whoever takes them slowly holds back
    whoever puts them.
    """

    def __init__(self, work: Callable[[Item], Result], workers: int | None = None) -> None:
        self._work = work
        workers = workers or min(os.cpu_count() or 1, _MAX_WORKERS)
        self._ahead = workers + 1
        self._executor = ThreadPoolExecutor(workers, thread_name_prefix="usp-export")
        self._pending: deque[Future[Result]] = deque()

    def put(self, item: Item) -> Iterator[Result]:
        """Take an item in; gives the results that are too far behind, which it waits for.

        Others that are there are not given: while they are taken care of, the threads would have nothing to do.
        """
        self._pending.append(self._executor.submit(self._work, item))
        return self._behind()

    def _behind(self) -> Iterator[Result]:
        while len(self._pending) > self._ahead:
            yield self._pending.popleft().result()

    def ready(self) -> Iterator[Result]:
        """The results that are there."""
        while self._pending and self._pending[0].done():
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

    def close(self) -> None:
        """Drop what was not begun, and wait for the rest."""
        self._executor.shutdown(wait=True, cancel_futures=True)


@dataclass(frozen=True, slots=True)
class PageRows(Generic[Result]):
    """Rows of a sitemap, encoded; of how many pages, and how many rows they are."""

    pages: int
    kept: int
    encoded: Result


class PageReader(Generic[Result]):
    """Reads the pages of sitemaps, several at once, and gives their rows in order, selected and encoded.

    `counts` are the numbers of pages by the URLs of sitemaps; None where two of one URL differ.
    """

    def __init__(self, selection: Selection, encode: Callable[[Batch], Result], *, dedupe: bool = False) -> None:
        self.counts: dict[str, int | None] = {}
        self.pages = 0
        self._selection = selection
        self._encode = encode
        self._firsts = FirstOfEach() if dedupe else None
        self._pool: OrderedPool[Listing, tuple[str, Iterator[PageRows[Any]]]] = OrderedPool(self._read)

    def __enter__(self) -> PageReader[Result]:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._selection.interrupt()
        self._pool.close()
        if self._firsts is not None:
            self._firsts.close()

    def put(self, listing: Listing) -> Iterator[PageRows[Result]]:
        """Take a sitemap in; gives the rows of those that are too far behind."""
        return self._finished(self._pool.put(listing))

    def ready(self) -> Iterator[PageRows[Result]]:
        """The rows that are ready."""
        return self._finished(self._pool.ready())

    def rest(self) -> Iterator[PageRows[Result]]:
        """All rows that are still to come."""
        return self._finished(self._pool.rest())

    def over(self, listings: Iterable[Listing]) -> Iterator[PageRows[Result]]:
        """The rows of all these sitemaps."""
        return self._finished(self._pool.over(listings))

    def _read(self, listing: Listing) -> tuple[str, Iterator[PageRows[Any]]]:
        """In any thread: the rows of a sitemap with this URL, the first part of which is read."""
        parts = self._parts(listing)
        return listing.url, chain(list(islice(parts, 1)), parts)

    def _parts(self, listing: Listing) -> Iterator[PageRows[Any]]:
        """The rows, encoded, but for those of which it is still to be seen which are the first."""
        for columns in page_columns(listing, self._selection.needed):
            batch = self._selection.batch(columns)
            encoded = batch if self._firsts is not None else self._encode(batch)
            yield PageRows(columns.length, batch.kept_count, encoded)

    def _finished(self, found: Iterable[tuple[str, Iterator[PageRows[Any]]]]) -> Iterator[PageRows[Result]]:
        for url, parts in found:
            pages = 0
            for rows in parts:
                pages += rows.pages
                if self._firsts is None:
                    yield rows
                else:
                    batch = self._firsts.batch(rows.encoded)
                    yield PageRows(rows.pages, batch.kept_count, self._encode(batch))
            self.pages += pages
            self.counts[url] = pages if self.counts.setdefault(url, pages) == pages else None
