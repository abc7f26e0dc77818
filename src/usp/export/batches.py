"""Batches: the pages of a sitemap as columns, or a part of them if the sitemap is long."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice, repeat
from types import MappingProxyType

from usp.export.schema import SOURCE, type_name
from usp.objects.page import Pages, SitemapPage, last_modified_text
from usp.objects.sitemap import AbstractSitemap, InvalidSitemap
from usp.origins import named_url, normalized_host
from usp.scan import PAGE_TYPES, URL_PARTS, Column, Columns, columns_of_all, split_urls

__all__ = ["Batch", "FirstPlaces", "SitemapPages", "page_columns", "pages_of", "repeated_column", "repeated_number"]

_MANY = 1 << 16  # rows; few sitemaps have more
_MANY_PAGES = 1 << 13  # page objects at a time; each takes about 1 kB


@dataclass(frozen=True, slots=True)
class SitemapPages:
    """The pages of a sitemap, and what their rows say about it."""

    url: str
    type: str
    pages: Sequence[SitemapPage]
    source: str | None = None
    name: str = ""  #: what rows say instead of a URL that was made up for a file


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of a table. `kept` has a byte for each row, 1 to keep it, 0 to drop it; None keeps all."""

    columns: Columns
    kept: bytes | None = None

    @property
    def kept_count(self) -> int:
        """The number of rows to keep."""
        return self.columns.length if self.kept is None else self.kept.count(1)


class FirstPlaces:
    """Finds the first place of each sitemap in a tree, by URL.

    Several indexes may list the same sitemap. A table has its pages once: a few indexes that list each other would
    otherwise make millions of rows of one sitemap.
    """

    def __init__(self) -> None:
        self._urls: set[str] = set()

    def is_first(self, sitemap: AbstractSitemap) -> bool:
        """Return whether no sitemap before this one has its URL. Call it once for each place, in tree order."""
        if isinstance(sitemap, InvalidSitemap) or sitemap.parser is None:
            return True  # the sitemap itself may follow at another place; one without a document was made by hand
        known = len(self._urls)
        self._urls.add(sitemap.url)
        return len(self._urls) > known


def pages_of(
    sitemap: AbstractSitemap, source: str | None = None, names: Mapping[str, str] = MappingProxyType({})
) -> SitemapPages:
    """Return the pages of a sitemap.

    :param source: the name of the source that its tree is from.
    :param names: the names of files, by the URLs of their sitemaps.
    """
    pages = sitemap.pages
    listed = pages if isinstance(pages, Pages) else list(pages)
    return SitemapPages(sitemap.url, type_name(type(sitemap)), listed, source, named_url(sitemap.url, names))


def page_columns(sitemap: SitemapPages, wanted: Iterable[str]) -> Iterator[Columns]:
    """Give the pages of a sitemap as columns, many rows at a time: the wanted columns, and always the URL."""
    wanted = frozenset(wanted)
    listed: dict[str, Callable[[int, int], Column]] = {
        "sitemap_url": partial(_repeated, sitemap.name or sitemap.url),
        "sitemap_type": partial(_repeated, sitemap.type),
        "position": _positions,
    }
    if sitemap.source is not None:
        listed[SOURCE] = partial(_repeated, sitemap.source)
    parts = wanted.intersection(URL_PARTS)
    first = 0
    for length, read in _columns_of(sitemap.pages, wanted):
        added = {name: make(length, first) for name, make in listed.items() if name in wanted}
        if length and parts:
            added |= split_urls(read["url"], parts, normalized_host)
        yield Columns(length, {**read, **added})
        first += length


def _columns_of(pages: Sequence[SitemapPage], wanted: frozenset[str]) -> Iterator[Columns]:
    if isinstance(pages, Pages) and pages.columns is not None:
        yield from pages.columns(wanted & PAGE_TYPES.keys())
        return
    rest = iter(pages)
    while some := list(islice(rest, _MANY_PAGES)):
        yield columns_of_all(some, last_modified_text, wanted)


def _repeated(text: str, length: int, _first: int) -> Column:
    return repeated_column(text.encode("utf-8", "replace"), length)


def repeated_column(text: bytes, length: int) -> Column:
    """Return a column that has the same text in every row."""
    return Column(length, memoryview(text * length), _multiples(len(text), length + 1))


def repeated_number(number: int, length: int) -> Column:
    """Return a column that has the same integer in every row."""
    return Column(length, memoryview(array("q", [number]) * length))


def _positions(length: int, first: int) -> Column:
    """Count the pages of a sitemap from 1, across its parts."""
    found = memoryview(array("q", range(first + 1, first + length + 1))) if first else _multiples(1, length + 1)[1:]
    return Column(length, found)


def _multiples(step: int, count: int) -> memoryview:
    """Return the first multiples of a number, from 0."""
    return _first_multiples(step)[:count] if count <= _MANY else memoryview(array("q", _numbers(step, count)))


@lru_cache(16)
def _first_multiples(step: int) -> memoryview:
    return memoryview(array("q", _numbers(step, _MANY)))


def _numbers(step: int, count: int) -> Iterable[int]:
    return range(0, step * count, step) if step else repeat(0, count)
