"""The rules on a sitemap in its place: what leads to it, and whether that is right. Small functions in a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from http import HTTPStatus

from usp.check.entries import Finding
from usp.check.readings import asked_url
from usp.check.scope import Lead
from usp.objects.problem import shortened
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

__all__ = ["SITE_RULES", "PlacedSitemap", "has_nothing", "places"]

_FEEDS = (PagesRSSSitemap, PagesAtomSitemap)
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


@dataclass(frozen=True, slots=True)
class PlacedSitemap:
    """A sitemap and all that are above it, from the root down.

    `is_robots_known` says whether it is known what robots.txt names, `is_listed` whether a sitemap lists this one, here
    or in another place of the tree. `name_of` gives the name that a sitemap is shown by.
    """

    sitemap: AbstractSitemap
    above: tuple[AbstractSitemap, ...]
    is_robots_known: bool = True
    is_listed: bool = False
    name_of: Callable[[str], str] = str

    @property
    def parent(self) -> AbstractSitemap | None:
        """The sitemap that lists it."""
        return self.above[-1] if self.above else None

    @property
    def robots(self) -> AbstractSitemap | None:
        """The robots.txt that leads to it, if one does."""
        return next((sitemap for sitemap in self.above if isinstance(sitemap, IndexRobotsTxtSitemap)), None)

    @property
    def lister(self) -> AbstractSitemap | None:
        """The sitemap that lists it, robots.txt being one; the root of a website lists nothing."""
        return None if isinstance(self.parent, IndexWebsiteSitemap) else self.parent

    @property
    def declared_url(self) -> str:
        """Its URL as it stands where it is listed."""
        return asked_url(self.sitemap)

    def lead(self) -> Lead:
        """What leads to it."""
        chain = [
            sitemap
            for sitemap in (*self.above, self.sitemap)
            if not isinstance(sitemap, (IndexWebsiteSitemap, IndexRobotsTxtSitemap))
        ]
        urls = [url for sitemap in reversed(chain) for url in (asked_url(sitemap), sitemap.url)]
        robots = () if self.robots is None else (asked_url(self.robots), self.robots.url)
        return Lead(robots, chain[0].url if chain else "", tuple(dict.fromkeys(urls)))

    @property
    def is_failed(self) -> bool:
        """Whether it was to be had and could not be; not if it is listed and was never requested, but for a loop."""
        if not isinstance(self.sitemap, InvalidSitemap):
            return False
        return self.lister is None or self.sitemap.transport is not None or self.is_loop

    @property
    def is_loop(self) -> bool:
        """Whether it is listed by itself, or by what it leads to."""
        own = requested_url(self.sitemap.url)
        return any(requested_url(sitemap.url) == own for sitemap in self.above)


Rule = Callable[[PlacedSitemap], Finding | None]


def nested_index(place: PlacedSitemap) -> Finding | None:
    """P417: an index lists no indexes."""
    is_so = isinstance(place.sitemap, IndexXMLSitemap) and isinstance(place.parent, IndexXMLSitemap)
    return Finding(None, where=place.parent.url) if is_so and place.parent else None


def unnamed(place: PlacedSitemap) -> Finding | None:
    """R705: robots.txt names the sitemaps of a site, or one that lists them. A feed is none in the first place."""
    if not place.is_robots_known or place.is_listed or not isinstance(place.parent, IndexWebsiteSitemap):
        return None
    if isinstance(place.sitemap, (IndexRobotsTxtSitemap, InvalidSitemap, *_FEEDS)):
        return None
    return Finding(None, place.sitemap.url)


def failed_of_robots(place: PlacedSitemap) -> Finding | None:
    """R706: what robots.txt names can be had."""
    if not isinstance(place.parent, IndexRobotsTxtSitemap) or not place.is_failed:
        return None
    return Finding(None, place.declared_url, values={"reason": _reason(place.sitemap)})


def failed(place: PlacedSitemap) -> Finding | None:
    """T807: what a sitemap lists can be had, and a file that is given for a sitemap is one."""
    if isinstance(place.parent, IndexRobotsTxtSitemap) or not place.is_failed:
        return None
    if place.lister is None:
        is_read = not place.above or place.sitemap.transport is not None
        said = {"lister": "", "listed": "", "what": "this is no sitemap" if is_read else "this cannot be had"}
    else:
        lister = shortened(place.name_of(place.lister.url))
        said = {"lister": f"{lister} lists ", "listed": place.declared_url, "what": ", which cannot be had"}
    return Finding(None, place.declared_url, values={**said, "reason": _reason(place.sitemap)})


def _reason(sitemap: AbstractSitemap) -> str:
    """Why a sitemap could not be had: the status, if the server answered with an error."""
    status = sitemap.transport.status if sitemap.transport is not None else None
    if status is not None and status >= HTTPStatus.BAD_REQUEST:
        return f"{status} {_PHRASES.get(status, '')}".strip()
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


def places(tree: AbstractSitemap, is_robots_known: bool, name_of: Callable[[str], str]) -> list[PlacedSitemap]:
    """All sitemaps of a tree in their places, each before those below it; the root of a website is none."""
    found = list(_places(tree))
    listed = {
        requested_url(url)
        for place in found
        if place.lister is not None and not place.is_loop
        for url in (place.declared_url, place.sitemap.url)
    }
    return [
        replace(
            place,
            is_robots_known=is_robots_known,
            is_listed=requested_url(place.sitemap.url) in listed,
            name_of=name_of,
        )
        for place in found
    ]


def _places(tree: AbstractSitemap) -> Iterator[PlacedSitemap]:
    if not isinstance(tree, IndexWebsiteSitemap):
        yield PlacedSitemap(tree, ())
    pending: list[tuple[Iterator[AbstractSitemap], tuple[AbstractSitemap, ...]]] = [(iter(tree.sub_sitemaps), (tree,))]
    while pending:
        siblings, above = pending[-1]
        sitemap = next(siblings, None)
        if sitemap is None:
            pending.pop()
            continue
        yield PlacedSitemap(sitemap, above)
        if sitemap.sub_sitemaps:
            pending.append((iter(sitemap.sub_sitemaps), (*above, sitemap)))


def has_nothing(found: list[PlacedSitemap]) -> bool:
    """R711: whether a site has no sitemap and names none; nobody knows what a web page in place of robots.txt would."""
    return all(
        isinstance(place.sitemap, IndexRobotsTxtSitemap) and not place.sitemap.problem_counts["R701"] for place in found
    )
