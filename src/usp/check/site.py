"""The rules on a sitemap in its place: what leads to it, and whether that is right. Small functions in a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from usp.check.entries import Finding
from usp.objects.sitemap import (
    AbstractSitemap,
    IndexRobotsTxtSitemap,
    IndexWebsiteSitemap,
    IndexXMLSitemap,
    InvalidSitemap,
    PagesAtomSitemap,
    PagesRSSSitemap,
)
from usp.origins import requested_url

__all__ = ["SITE_RULES", "PlacedSitemap", "places"]

_FEEDS = (PagesRSSSitemap, PagesAtomSitemap)


@dataclass(frozen=True, slots=True)
class PlacedSitemap:
    """A sitemap and all that are above it, from the root down; and whether it is known what robots.txt names."""

    sitemap: AbstractSitemap
    above: tuple[AbstractSitemap, ...]
    is_robots_known: bool = True

    @property
    def parent(self) -> AbstractSitemap | None:
        """The sitemap that lists it."""
        return self.above[-1] if self.above else None

    @property
    def robots(self) -> AbstractSitemap | None:
        """The robots.txt that leads to it, if one does."""
        return next((sitemap for sitemap in self.above if isinstance(sitemap, IndexRobotsTxtSitemap)), None)

    @property
    def is_failed(self) -> bool:
        """Whether it was to be had and could not be; not if it was never requested, unless for being a loop."""
        if not isinstance(self.sitemap, InvalidSitemap):
            return False
        return not self.above or self.sitemap.transport is not None or self._is_loop()

    def _is_loop(self) -> bool:
        own = requested_url(self.sitemap.url)
        return any(requested_url(sitemap.url) == own for sitemap in self.above)


Rule = Callable[[PlacedSitemap], Finding | None]


def nested_index(place: PlacedSitemap) -> Finding | None:
    """P417: an index lists no indexes."""
    is_so = isinstance(place.sitemap, IndexXMLSitemap) and isinstance(place.parent, IndexXMLSitemap)
    return Finding(None, where=place.parent.url) if is_so and place.parent else None


def unnamed(place: PlacedSitemap) -> Finding | None:
    """R705: robots.txt names the sitemaps of a site. A feed is no sitemap in the first place."""
    if not place.is_robots_known or not isinstance(place.parent, IndexWebsiteSitemap):
        return None
    if isinstance(place.sitemap, (IndexRobotsTxtSitemap, InvalidSitemap, *_FEEDS)):
        return None
    return Finding(None, place.sitemap.url)


def failed_of_robots(place: PlacedSitemap) -> Finding | None:
    """R706: what robots.txt names can be had."""
    is_so = isinstance(place.parent, IndexRobotsTxtSitemap) and place.is_failed
    return Finding(None, _reason(place.sitemap)) if is_so else None


def failed(place: PlacedSitemap) -> Finding | None:
    """T807: what a sitemap lists can be had."""
    is_so = not isinstance(place.parent, IndexRobotsTxtSitemap) and place.is_failed
    return Finding(None, _reason(place.sitemap)) if is_so else None


def _reason(sitemap: AbstractSitemap) -> str:
    return sitemap.reason if isinstance(sitemap, InvalidSitemap) else ""


def redirect_of_robots(place: PlacedSitemap) -> Finding | None:
    """R707: robots.txt names URLs that do not redirect."""
    declared = _declared_url(place)
    return Finding(None, declared) if declared and isinstance(place.parent, IndexRobotsTxtSitemap) else None


def redirect(place: PlacedSitemap) -> Finding | None:
    """T809: an index lists URLs that do not redirect."""
    declared = _declared_url(place)
    is_listed = place.parent is not None and not isinstance(place.parent, (IndexRobotsTxtSitemap, IndexWebsiteSitemap))
    return Finding(None, declared, place.parent.url) if declared and is_listed and place.parent else None


def _declared_url(place: PlacedSitemap) -> str:
    """The URL that was declared for a sitemap, if it redirected to another."""
    transport = place.sitemap.transport
    is_so = transport is not None and transport.is_redirected and not isinstance(place.sitemap, InvalidSitemap)
    return transport.requested_url if transport is not None and is_so else ""


#: Code -> the rule that finds it.
SITE_RULES: dict[str, Rule] = {
    "P417": nested_index,
    "R705": unnamed,
    "R706": failed_of_robots,
    "R707": redirect_of_robots,
    "T807": failed,
    "T809": redirect,
}


def places(tree: AbstractSitemap, is_robots_known: bool) -> Iterator[PlacedSitemap]:
    """All sitemaps of a tree in their places, each before those below it; the root of a website is none."""
    if not isinstance(tree, IndexWebsiteSitemap):
        yield PlacedSitemap(tree, (), is_robots_known)
    pending: list[tuple[Iterator[AbstractSitemap], tuple[AbstractSitemap, ...]]] = [(iter(tree.sub_sitemaps), (tree,))]
    while pending:
        siblings, above = pending[-1]
        sitemap = next(siblings, None)
        if sitemap is None:
            pending.pop()
            continue
        yield PlacedSitemap(sitemap, above, is_robots_known)
        if sitemap.sub_sitemaps:
            pending.append((iter(sitemap.sub_sitemaps), (*above, sitemap)))
