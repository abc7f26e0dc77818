"""The sitemaps of a site, each read once, in the order of the tree, with the rules on its entries.

That can be done while others are still being fetched: `visit` is told of each sitemap as soon as it, and all that are
before it in the tree, are in. Whatever is not read then is read when it is asked for, with the same result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from usp.check.entries import ENTRY_RULES, EntryRules, Standard
from usp.check.inspection import Inspection, Ledger, inspect_pages
from usp.check.languages import language_problem, news_language_problem
from usp.check.robots import RobotsRules
from usp.check.scope import Lead, Named, first_come, not_named, scope_of
from usp.check.sitemaps import CLOCK_SKEW
from usp.objects.page import SitemapPage
from usp.objects.parser import DocumentParser
from usp.objects.problem import UNLOGGED, ProblemLog
from usp.objects.sitemap import IndexRobotsTxtSitemap, InvalidSitemap
from usp.objects.transport import Transport
from usp.scan.columns import microseconds
from usp.scan.survey import Facts, Yardstick
from usp.scan.urls import strip_url_to_homepage
from usp.walk.nodes import Node

__all__ = ["Readings", "Site", "SitemapReading", "asked_url"]

_NEWS = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class Site:
    """What is known of the site that sitemaps are of.

    `names` are those of files, by the URLs that were made up for them. Where the host is not known, the first entry
    of a sitemap says which it is; where a sitemap is not placed, nothing is said of folders. `is_named` looks up
    whether another site names a sitemap.
    """

    homepage: str
    now: datetime
    names: dict[str, str]
    is_host_known: bool = True
    is_placed: bool = True
    is_named: Named = not_named

    def name_of(self, url: str) -> str:
        """How a sitemap is shown."""
        rest = url.removeprefix(self.homepage)
        is_short = rest and not rest.startswith(":")  # lines that begin with "::" are commands where builds are logged
        return self.names.get(url) or (rest if is_short else url)


@dataclass(slots=True)
class SitemapReading:
    """What the reading of a sitemap has come to."""

    log: ProblemLog
    facts: Facts
    pages: int


class _Sitemap(Protocol):
    """A sitemap of a tree, or what is to become one."""

    @property
    def url(self) -> str: ...
    @property
    def pages(self) -> Sequence[SitemapPage]: ...
    @property
    def transport(self) -> Transport | None: ...


class Readings:
    """Reads sitemaps, each once."""

    def __init__(self, site: Site, ledger: Ledger | None = None, rules: EntryRules = ENTRY_RULES) -> None:
        self.site = site
        self._entry_rules = rules
        self.ledger = ledger or Ledger()
        self.rules: RobotsRules | None = None
        self._done: dict[str, SitemapReading] = {}

    def visit(self, node: Node) -> None:
        """Read a sitemap that has just come in."""
        reading = node.reading
        assert reading is not None
        if reading.sitemap_class is IndexRobotsTxtSitemap:
            self.take_rules(reading, reading.parser)
        elif reading.sitemap_class is not InvalidSitemap:
            self.of(reading, reading.parser, _lead_of(node))

    def take_rules(self, robots: _Sitemap, parser: DocumentParser | None) -> None:
        """Note what a robots.txt disallows, if it is the site's."""
        if self.rules is None and parser is not None:
            self.rules = RobotsRules(asked_url(robots), parser.open(UNLOGGED), robots.url)

    def of(self, sitemap: _Sitemap, parser: DocumentParser | None, lead: Lead) -> SitemapReading:
        """What the reading of a sitemap comes to, now or before; with what leads to it."""
        url = sitemap.url
        if url not in self._done:
            log = ProblemLog(url)
            number = self.ledger.number_of(self.site.name_of(url))
            inspection = Inspection(self._standard(url, lead), number, self.ledger, log, self._entry_rules)
            if parser is None:
                inspect_pages(sitemap.pages, inspection)
            else:
                parser.inspect(log, inspection)
            inspection.finish()
            self._done[url] = SitemapReading(log, inspection.facts, inspection.page_count(sitemap.pages))
        return self._done[url]

    def _standard(self, url: str, lead: Lead) -> Standard:
        site, rules = self.site, self.rules
        common: dict[str, Any] = {
            "now": microseconds(site.now + CLOCK_SKEW),
            "news_since": microseconds(site.now - _NEWS),
            "is_language": lambda text: not language_problem(text),
            "is_news_language": lambda text: not news_language_problem(text),
        }
        words: dict[str, Any] = {"now": site.now}
        if rules is not None:
            common |= {"may_disallow": rules.may_disallow, "is_disallowed": rules.is_disallowed}
            words["disallowed_to"] = rules.disallowed_to
        if not site.is_host_known:
            return Standard(url, Yardstick(elsewhere=first_come(url), **common), **words)
        scope = scope_of(url, lead, is_placed=site.is_placed, is_named=site.is_named)
        words["folder"] = strip_url_to_homepage(url).removesuffix("/") + scope.folder
        return Standard(url, Yardstick(scope.sites, scope.elsewhere, **common), **words)


def asked_url(sitemap: _Sitemap) -> str:
    """The URL by which a sitemap was asked for; its own, where nothing was."""
    return sitemap.url if sitemap.transport is None else sitemap.transport.requested_url


def _lead_of(node: Node) -> Lead:
    """What leads to a sitemap that has just come in, as `PlacedSitemap.lead` of `usp.check.site` says it of a tree."""
    robots: tuple[str, ...] = ()
    urls: list[str] = []
    top = ""
    above: Node | None = node
    while above is not None:
        reading = above.reading
        assert reading is not None
        if reading.sitemap_class is IndexRobotsTxtSitemap:
            robots = (above.fetcher.url, reading.url)
        else:
            top = reading.url
            urls += (above.fetcher.url, reading.url)
        above = above.parent
    return Lead(robots, top, tuple(dict.fromkeys(urls)))
