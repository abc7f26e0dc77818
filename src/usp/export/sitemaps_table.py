"""The table of sitemaps: a row for each sitemap of a tree, the root first, each before those that it lists itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from typing import Any, NamedTuple

from usp.export.batches import listing_of, page_columns
from usp.export.reading import OrderedPool
from usp.export.schema import SITEMAPS, type_name
from usp.objects.sitemap import AbstractSitemap, InvalidSitemap
from usp.objects.transport import Transport
from usp.scan import Columns, column_of

__all__ = ["PageCounts", "sitemaps_columns"]

#: The URLs of sitemaps -> how many pages each lists. One that is missing, or None, is counted.
PageCounts = Mapping[str, int | None]


class _Place(NamedTuple):
    """A sitemap in its tree."""

    sitemap: AbstractSitemap
    parent: AbstractSitemap | None
    depth: int


def _of_transport(value: Callable[[Transport], Any]) -> Callable[[_Place], Any]:
    def of(place: _Place) -> Any:
        transport = place.sitemap.transport
        return None if transport is None else value(transport)

    return of


#: What each column says of a sitemap, but for the number of its pages.
_VALUES: dict[str, Callable[[_Place], Any]] = {
    "url": lambda place: place.sitemap.url,
    "parent": lambda place: None if place.parent is None else place.parent.url,
    "type": lambda place: type_name(type(place.sitemap)),
    "depth": lambda place: place.depth,
    "status": _of_transport(lambda transport: transport.status),
    "reason": lambda place: place.sitemap.reason if isinstance(place.sitemap, InvalidSitemap) else None,
    "bytes": _of_transport(lambda transport: transport.size),
    "last_modified": lambda place: place.sitemap.last_modified,
    "fetched_at": _of_transport(lambda transport: transport.fetched_at),
}


def sitemaps_columns(
    tree: AbstractSitemap, counts: PageCounts | None = None, wanted: Collection[str] = SITEMAPS
) -> Columns:
    """The columns that are wanted of all sitemaps of a tree. Whoever has read their pages says how many there are."""
    places = list(_places(tree))
    values = {name: list(map(value, places)) for name, value in _VALUES.items() if name in wanted}
    if "pages" in wanted:
        values["pages"] = _page_counts([place.sitemap for place in places], counts or {})
    found = {
        name: column_of(SITEMAPS[name], column)
        for name, column in values.items()
        if any(value is not None for value in column)
    }
    return Columns(len(places), found)


def _places(tree: AbstractSitemap) -> Iterator[_Place]:
    ahead = [_Place(tree, None, 0)]
    while ahead:
        place = ahead.pop()
        yield place
        below = place.sitemap.sub_sitemaps
        ahead += (_Place(sitemap, place.sitemap, place.depth + 1) for sitemap in reversed(below))


def _page_counts(sitemaps: list[AbstractSitemap], counts: PageCounts) -> list[int]:
    known = [0 if isinstance(sitemap, InvalidSitemap) else counts.get(sitemap.url) for sitemap in sitemaps]
    uncounted = [sitemap for sitemap, count in zip(sitemaps, known, strict=True) if count is None]
    with closing(OrderedPool(_count)) as pool:
        counted = pool.over(uncounted)
        return [next(counted) if count is None else count for count in known]


def _count(sitemap: AbstractSitemap) -> int:
    return sum(columns.length for columns in page_columns(listing_of(sitemap), ()))
