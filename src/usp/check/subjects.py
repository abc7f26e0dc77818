"""What rules look at: an entry, a sitemap, and a place of a sitemap in the tree.

EntryRule     Entry, with the SitemapContext of its sitemap
SitemapRule   SitemapCheck
SiteRule      TreePlace
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from http import HTTPStatus
from typing import NamedTuple

from usp.objects.outcome import Cause
from usp.objects.problem import At, ProblemLog, Problems
from usp.objects.sitemap import AbstractSitemap, IndexRobotsTxtSitemap, IndexWebsiteSitemap, InvalidSitemap
from usp.objects.transport import Transport
from usp.origins import requested_url
from usp.scan import (
    Element,
    SitemapStats,
    SurveyOptions,
    absolute_url,
    alternate_link,
    elsewhere_code,
    parse_date,
    plain_text,
    same_url_key,
    unescape,
    unescaped_url,
)

__all__ = [
    "X_DEFAULT",
    "Alternate",
    "DiscoveryPath",
    "Entry",
    "SitemapCheck",
    "SitemapContext",
    "TreePlace",
    "alternates_of",
    "requested_url_of",
    "tree_places",
]

#: The hreflang of the page for everyone whose language has no page.
X_DEFAULT = "x-default"
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


def _nobody(url: str) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class SitemapContext:
    """What the entries of one sitemap are compared with.

    `options` are those of the survey. The rest is for messages.
    """

    url: str  # of the sitemap
    options: SurveyOptions
    folder: str = ""  # host and folder whose pages the sitemap may list
    now: datetime = _LONG_AGO
    disallowed_to: Callable[[str], str] = _nobody  # names the crawlers that may not fetch a URL


class Alternate(NamedTuple):
    """A version of a page in another language. Its URL is the one that `same_url_key` returns."""

    language: str
    url: str
    at: At

    @property
    def is_default(self) -> bool:
        """Whether it is the page for all other languages."""
        return self.language.lower() == X_DEFAULT


def alternates_of(entry: Element, base: str) -> list[Alternate]:
    """Return the alternates of an entry. Links without a language or a usable URL are skipped."""
    alternates = []
    for link in entry.all("link"):
        if (written := alternate_link(link)) is None:
            continue
        language, href = written
        url, _ = absolute_url(unescaped_url(href), base)
        if url is not None:
            alternates.append(Alternate(language, same_url_key(url), link.at))
    return alternates


@dataclass
class Entry:
    """An entry of a sitemap, for the rules."""

    element: Element
    url: str
    context: SitemapContext
    duplicate: str = ""  # P418 or P419, if the URL was listed before
    first_sitemap: str = ""  # that lists the page, for P419
    bad_dates: list[tuple[str, Element, str, str]] | None = None  # what the rules on dates have found out

    @property
    def text(self) -> str:
        """Its URL as written."""
        return self.element.get("loc") or self.url

    @property
    def at(self) -> At:
        """Where its URL is written."""
        element = self.element
        if "loc" not in element.offsets and element.children:
            return next((child.at for child in element.children if child.name == "link"), element.at)
        return element.place_of("loc")

    @cached_property
    def elsewhere(self) -> str:
        """The code of a URL that this sitemap should not list because of its host or folder, or empty."""
        return elsewhere_code(self.url, self.context.options)

    @cached_property
    def alternates(self) -> list[Alternate]:
        """Its versions in other languages."""
        return alternates_of(self.element, self.context.url) if self.element.children else []

    @cached_property
    def news(self) -> Element | None:
        """Its first news story."""
        return next(iter(self.element.all("news")), None)

    @cached_property
    def images(self) -> list[Element]:
        """Its images."""
        return self.element.all("image") if self.element.children else []

    @cached_property
    def videos(self) -> list[Element]:
        """Its videos, without empty ones."""
        children = self.element.children
        return [child for child in children if child.name == "video" and not child.is_empty] if children else []

    @property
    def is_story(self) -> bool:
        """Whether it has a news story with a title and a date."""
        if self.news is None:
            return False
        date = parse_date(unescape(self.news.get("publication_date")))
        return date is not None and plain_text(self.news.get("title")) is not None


@dataclass(slots=True)
class SitemapCheck:
    """One sitemap and what the check has found in it so far."""

    sitemap: AbstractSitemap
    name: str
    log: ProblemLog
    stats: SitemapStats = field(default_factory=SitemapStats)
    pages: int = 0
    problems: Problems = field(default_factory=Problems)  # found elsewhere, beside those of the log

    @property
    def size(self) -> int:
        """How many bytes the document has, uncompressed."""
        return self.log.size

    @property
    def counts(self) -> Counter[str]:
        """How many problems of each code the log has."""
        return self.log.counts

    @property
    def transport(self) -> Transport | None:
        """How the sitemap was fetched."""
        return self.sitemap.transport

    def share(self, count: int) -> dict[str, object]:
        """Return the values of a message about `count` of all entries."""
        return {"count": f"{count:,}", "total": f"{self.stats.entries:,}"}


@dataclass(frozen=True, slots=True)
class DiscoveryPath:
    """How a sitemap was found.

    `robots` are the URLs of the robots.txt that leads to it, if any: as requested, and as answered. `top` is the URL of
    the topmost sitemap on the way, which may be the sitemap itself. `urls` are the URLs of all sitemaps on the way and
    of the sitemap itself, in every spelling that a robots.txt may use.
    """

    robots: tuple[str, ...] = ()
    top: str = ""
    urls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TreePlace:
    """A sitemap and its ancestors, from the root down. A sitemap may have several places in one tree.

    `is_robots_known` says whether the check knows what robots.txt names. `is_listed` says whether a sitemap lists this
    one, here or elsewhere in the tree. `name_of` returns the name that reports show for a URL. `stated_url` is where
    the files that are checked will be served, if the user said so.
    """

    sitemap: AbstractSitemap
    above: tuple[AbstractSitemap, ...]
    is_robots_known: bool = True
    is_listed: bool = False
    name_of: Callable[[str], str] = str
    stated_url: str = ""

    @property
    def parent(self) -> AbstractSitemap | None:
        """The node above it."""
        return self.above[-1] if self.above else None

    @property
    def robots(self) -> AbstractSitemap | None:
        """The robots.txt that leads to it."""
        return next((sitemap for sitemap in self.above if isinstance(sitemap, IndexRobotsTxtSitemap)), None)

    @property
    def lister(self) -> AbstractSitemap | None:
        """The sitemap or robots.txt that lists it. The root of a website lists nothing."""
        return None if isinstance(self.parent, IndexWebsiteSitemap) else self.parent

    @property
    def declared_url(self) -> str:
        """Its URL as its lister writes it."""
        return requested_url_of(self.sitemap)

    @property
    def is_failed(self) -> bool:
        """Whether it could not be read. One that was never requested does not count, except for a loop."""
        if not isinstance(self.sitemap, InvalidSitemap):
            return False
        return self.lister is None or self.sitemap.transport is not None or self.is_loop

    @property
    def failure(self) -> str:
        """Why it could not be read: the status if the server answered with an error."""
        transport = self.sitemap.transport
        status = transport.status if transport is not None else None
        if status is not None and status >= HTTPStatus.BAD_REQUEST:
            return f"{status} {_PHRASES.get(status, '')}".strip()
        return self.sitemap.short_reason if isinstance(self.sitemap, InvalidSitemap) else ""

    @property
    def is_no_sitemap(self) -> bool:
        """Whether something is there that is not a sitemap, such as a web page."""
        return isinstance(self.sitemap, InvalidSitemap) and self.sitemap.cause is Cause.UNREADABLE

    @property
    def is_loop(self) -> bool:
        """Whether it lists itself, directly or through others."""
        own = requested_url(self.sitemap.url)
        return any(requested_url(sitemap.url) == own for sitemap in self.above)

    @property
    def is_redirected(self) -> bool:
        """Whether its declared URL redirects to it."""
        transport = self.sitemap.transport
        return transport is not None and transport.is_redirected and not isinstance(self.sitemap, InvalidSitemap)

    def discovery_path(self) -> DiscoveryPath:
        """Return how it was found."""
        chain = [
            sitemap
            for sitemap in (*self.above, self.sitemap)
            if not isinstance(sitemap, (IndexWebsiteSitemap, IndexRobotsTxtSitemap))
        ]
        urls = [url for sitemap in reversed(chain) for url in (requested_url_of(sitemap), sitemap.url)]
        robots = () if self.robots is None else (requested_url_of(self.robots), self.robots.url)
        return DiscoveryPath(robots, chain[0].url if chain else "", tuple(dict.fromkeys(urls)))


def requested_url_of(sitemap: AbstractSitemap) -> str:
    """Return the URL that was requested for a sitemap, or its own if nothing was requested."""
    return sitemap.url if sitemap.transport is None else sitemap.transport.requested_url


def tree_places(
    tree: AbstractSitemap, is_robots_known: bool, name_of: Callable[[str], str], stated_url: str = ""
) -> list[TreePlace]:
    """Return all places of a tree, each before those below it. The root of a website is not one."""
    places = list(_places(tree))
    listed = {
        requested_url(url)
        for place in places
        if place.lister is not None and not place.is_loop
        for url in (place.declared_url, place.sitemap.url)
    }
    return [
        replace(
            place,
            is_robots_known=is_robots_known,
            is_listed=requested_url(place.sitemap.url) in listed,
            name_of=name_of,
            stated_url=stated_url,
        )
        for place in places
    ]


def _places(tree: AbstractSitemap) -> Iterator[TreePlace]:
    if not isinstance(tree, IndexWebsiteSitemap):
        yield TreePlace(tree, ())
    pending: list[tuple[Iterator[AbstractSitemap], tuple[AbstractSitemap, ...]]] = [(iter(tree.sub_sitemaps), (tree,))]
    while pending:  # not by recursion: trees may be deep
        siblings, above = pending[-1]
        sitemap = next(siblings, None)
        if sitemap is None:
            pending.pop()
            continue
        yield TreePlace(sitemap, above)
        if sitemap.sub_sitemaps:
            pending.append((iter(sitemap.sub_sitemaps), (*above, sitemap)))
