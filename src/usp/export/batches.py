"""The rows of tables, a sitemap at a time, as columns."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import repeat
from typing import cast

from usp.export.schema import type_name
from usp.objects.page import SitemapPage
from usp.objects.pages import Pages
from usp.objects.sitemap import AbstractSitemap
from usp.scan.columns import PAGE_TYPES, Column, Columns, columns_of_all

__all__ = ["Batch", "Listing", "listing_of", "page_columns"]

_MOST_AT_ONCE = 1 << 16  # rows; few sitemaps have more


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

    @property
    def kept_count(self) -> int:
        """How many rows are wanted."""
        return self.columns.length if self.kept is None else sum(self.kept)


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
        read = columns_of_all(pages, _last_modified_text, wanted)
    length = read.length
    if not length:
        return read
    listed: dict[str, Callable[[int], Column]] = {
        "sitemap_url": partial(_repeated, listing.url),
        "sitemap_type": partial(_repeated, listing.type),
        "position": lambda count: Column(count, _multiples(1, count + 1)[1:]),
    }
    return Columns(length, {**read.columns, **{name: make(length) for name, make in listed.items() if name in wanted}})


def _last_modified_text(page: SitemapPage) -> str:
    source = getattr(page, "_source", None)
    if source is not None:
        return cast(str, source.last_modified_text())
    return page.last_modified.isoformat() if page.last_modified else ""


def _repeated(text: str, length: int) -> Column:
    data = text.encode("utf-8", "replace")
    return Column(length, memoryview(data * length), _multiples(len(data), length + 1))


def _multiples(step: int, count: int) -> memoryview:
    """So many multiples of a number, from 0 on."""
    return _first_multiples(step)[:count] if count <= _MOST_AT_ONCE else memoryview(array("q", _numbers(step, count)))


@lru_cache(16)
def _first_multiples(step: int) -> memoryview:
    return memoryview(array("q", _numbers(step, _MOST_AT_ONCE)))


def _numbers(step: int, count: int) -> Iterable[int]:
    return range(0, step * count, step) if step else repeat(0, count)
