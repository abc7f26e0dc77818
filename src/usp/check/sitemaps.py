"""Read the sitemaps of a site, each once, in the order of the tree, with the rules on entries.

`SitemapReader.receive` reads a sitemap as soon as it and all sitemaps before it have arrived, while others are still
being fetched. `SitemapReader.read` reads the rest later, with the same result.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from usp.check.return_links import ReturnLinks
from usp.check.robots import RobotsRules
from usp.check.rules import RULES
from usp.check.rules.dates import CLOCK_SKEW
from usp.check.rules.languages import language_problem, news_language_problem
from usp.check.rules.rule import EntryRule, Rule
from usp.check.rules.videos import is_expired
from usp.check.scope import IsNamed, Scope, first_come, is_elsewhere, not_named, scope_of
from usp.check.subjects import DiscoveryPath, Entry, SitemapContext, TreePlace, requested_url_of
from usp.objects.page import SitemapPage
from usp.objects.problem import KEPT_PER_CODE, UNLOGGED, ProblemLog
from usp.objects.sitemap import AbstractSitemap, IndexRobotsTxtSitemap, InvalidSitemap
from usp.origins import origin_of
from usp.scan import (
    SURVEYED,
    SURVEYORS,
    Element,
    Kind,
    PureSurvey,
    SitemapStats,
    SurveyOff,
    SurveyOptions,
    Surveyors,
    microseconds,
    parse_date,
    parse_priority,
    strip_url_to_homepage,
    unescape,
)

__all__ = ["MAX_PAGES", "EntriesRead", "Site", "SiteTables", "SitemapReader"]

#: How many pages are remembered to find duplicates; and how many stories, feed items and sitemaps.
MAX_PAGES = 1 << 23
MAX_STORIES = 1 << 21
_NEWS_AGE = timedelta(days=2)
_BITS = {code: 1 << number for number, code in enumerate(SURVEYED)}
_PAGE = Kind(frozenset({"loc", "lastmod"}))
_LINE = Element("url", _PAGE, 0, {})  # stands for any line of a text: it has no fields beside its URL


@dataclass(frozen=True, slots=True)
class Site:
    """What is known about the site that sitemaps belong to.

    `names` maps the URLs that were made up for files to the names of the files. If the host is not known, the first
    entry of a sitemap tells it. If a sitemap is not placed, rules on folders do not apply. `is_named` looks up whether
    the robots.txt of another site names a sitemap. `folder` is the path of the folder or archive that is read as the
    site, if it is one. `stated_url` is where files will be served, if the user said so:
    then no sitemap may list another host, even if the robots.txt agrees with it.
    """

    homepage: str
    now: datetime
    names: Mapping[str, str]
    is_host_known: bool = True
    is_placed: bool = True
    is_named: IsNamed = not_named
    folder: str = ""
    stated_url: str = ""

    def is_file(self, url: str) -> bool:
        """Return whether the sitemap of a URL is a file. The root of a folder is none."""
        return url in self.names and self.names[url] != self.folder

    def name_of(self, url: str) -> str:
        """Return the name that reports show for a sitemap."""
        rest = url.removeprefix(self.homepage)
        is_short = rest and not rest.startswith(":")  # a line that starts with "::" is a command in the log of a build
        if self.folder and is_short and rest != url:
            rest = os.path.join(self.folder, rest.lstrip("/"))  # where its file would be
        return self.names.get(url) or (rest if is_short else url)


@dataclass
class SiteTables:
    """What a check remembers across the sitemaps of a site: pages, stories and return links.

    `names` are those of the sitemaps; the tables refer to them by number.
    """

    names: list[str] = field(default_factory=list)
    surveyors: Surveyors = SURVEYORS

    def __post_init__(self) -> None:
        self.pages = self.surveyors.url_table(MAX_PAGES)
        self.stories = self.surveyors.url_table(MAX_STORIES)  # feed items and sitemaps too: all that may be repeated
        self.returns = ReturnLinks(self.surveyors, self.pages, self.stories)

    def number_of(self, name: str) -> int:
        """Return the number of one more sitemap."""
        self.names.append(name)
        return len(self.names) - 1


class EntryChecker:
    """Run the rules over the entries of one sitemap at which the survey stops.

    It also fills the tables of the site for these entries, as the survey does for those that it skips.
    """

    def __init__(
        self,
        context: SitemapContext,
        number: int,
        tables: SiteTables,
        log: ProblemLog,
        rules: Mapping[str, Sequence[EntryRule]],
    ) -> None:
        self._context = context
        self._number = number
        self._tables = tables
        self._log = log
        self._rules = rules
        self._index_entries = 0
        self._looked_for = {
            kind: sum(_BITS[rule.code] for rule in of_kind if rule.code in _BITS) for kind, of_kind in rules.items()
        }
        # Skipping entries is safe only if the survey knows all rules.
        is_surveyed = all(rule.compiled is not None for kind in rules.values() for rule in kind)
        survey = tables.surveyors.survey if is_surveyed else SurveyOff
        self.reader: PureSurvey = survey(context.options, tables.pages, tables.stories, number, tables.returns.clusters)

    @property
    def stats(self) -> SitemapStats:
        """What the entries have in common."""
        return self.reader.stats

    def skips_line(self, url: str, /) -> bool:
        """Return whether the survey finds that no rule has anything to report about a line with this URL."""
        return self.reader.skips(_LINE, url, self._looked_for["url"])

    def entry(self, element: Element, url: str, /) -> None:
        """Run the rules over an entry, unless the survey finds that none of them has anything to report."""
        name = element.name
        if self.reader.skips(element, url, self._looked_for[name]):
            self._index_entries += name == "sitemap"
            return
        entry = Entry(element, url, self._context)
        is_story = element.name == "url" and entry.is_story
        self._note_duplicate(entry, is_story)
        for rule in self._rules[element.name]:
            if (found := rule.find(entry)) is not None:
                self._log.add(rule.code, found.at, text=found.text, where=found.where, **found.values)
                if self._log.counts[rule.code] >= KEPT_PER_CODE and rule.code in _BITS:
                    self.reader.passed |= _BITS[rule.code]  # from now on, the survey only counts it
        self._count(entry, is_story)
        if element.name == "url" and entry.alternates:
            self.stats.linked += 1
            self._tables.returns.note(url, entry.alternates)

    def check_pages(self, pages: Iterable[SitemapPage]) -> None:
        """Check the URLs and dates of a sitemap without a document: one made by hand, or unpickled.

        Its pages have no places.
        """
        for page in pages:
            element = Element("url", _PAGE, 0, {})
            element.fields["loc"] = page.url
            if (date := page.last_modified) is not None:
                is_day = date.tzinfo is None and not date.hour and not date.minute and not date.second
                element.fields["lastmod"] = date.date().isoformat() if is_day else date.isoformat()
            self.entry(element, page.url)

    def finish(self) -> None:
        """Add the problems that the survey only counted."""
        self._log.counts.update(self.reader.counts)

    def page_count(self, pages: Sequence[SitemapPage]) -> int:
        """Return how many pages the sitemap has, each counted once."""
        stats = self.stats
        is_mixed = bool(stats.stories) and stats.stories != stats.entries
        if self._index_entries or is_mixed or self._tables.pages.is_full or self._log.counts["P418"]:
            return len(pages)  # the tables do not say for sure which pages are repeated, or spelled in another way
        return stats.entries

    def _note_duplicate(self, entry: Entry, is_story: bool) -> None:
        """Look up whether the URL was listed before, and remember it."""
        is_page = entry.element.name == "url" and not is_story
        table = self._tables.pages if is_page else self._tables.stories
        first = table.find(entry.url)
        if first == self._number:
            entry.duplicate = "P418"
        elif first >= 0 and is_page:
            names = self._tables.names
            entry.duplicate = "P419"
            entry.first_sitemap = names[first] if first < len(names) else "another sitemap"
        table.add(entry.url, self._number)

    def _count(self, entry: Entry, is_story: bool) -> None:
        element = entry.element
        date = priority = None
        if element.name == "url":
            date_text, priority_text = element.get("lastmod"), element.get("priority")
            date = parse_date(unescape(date_text)) if date_text else None
            priority = parse_priority(priority_text) if priority_text else None
        self._index_entries += element.name == "sitemap"
        self.stats.count(
            None if date is None else microseconds(date), None if priority is None else float(priority), is_story
        )


class EntriesRead(NamedTuple):
    """The result of reading the entries of a sitemap."""

    log: ProblemLog
    stats: SitemapStats
    pages: int


class SitemapReader:
    """Read sitemaps with the rules on entries, each sitemap once."""

    def __init__(self, site: Site, tables: SiteTables | None = None, rules: Collection[Rule] = RULES.values()) -> None:
        self.site = site
        self.tables = tables or SiteTables()
        self.rules = rules
        self.robots: RobotsRules | None = None
        self._entry_rules = {
            kind: [rule for rule in rules if isinstance(rule, EntryRule) and kind in rule.entries]
            for kind in ("url", "sitemap", "item", "entry")
        }
        self._results: dict[str, EntriesRead] = {}

    def receive(self, place: TreePlace) -> None:
        """Read a sitemap or a robots.txt that has just arrived."""
        if isinstance(place.sitemap, IndexRobotsTxtSitemap):
            self.read_robots(place.sitemap)
        elif not isinstance(place.sitemap, InvalidSitemap):
            self.read(place)

    def read_robots(self, robots: AbstractSitemap) -> None:
        """Note what the robots.txt of the site disallows."""
        if self.robots is None and robots.parser is not None:
            self.robots = RobotsRules(requested_url_of(robots), robots.parser.open(UNLOGGED), robots.url)

    def read(self, place: TreePlace) -> EntriesRead:
        """Read a sitemap, unless it was read before."""
        sitemap, url = place.sitemap, place.sitemap.url
        if url not in self._results:
            log = ProblemLog(url)
            number = self.tables.number_of(self.site.name_of(url))
            context = self._context(url, place.discovery_path())
            checker = EntryChecker(context, number, self.tables, log, self._entry_rules)
            if sitemap.parser is None:
                checker.check_pages(sitemap.pages)
            else:
                sitemap.parser.inspect(log, checker)
            checker.finish()
            self._results[url] = EntriesRead(log, checker.stats, checker.page_count(sitemap.pages))
        return self._results[url]

    def _context(self, url: str, path: DiscoveryPath) -> SitemapContext:
        """Return what the entries of a sitemap are compared with."""
        site, robots = self.site, self.robots
        options = SurveyOptions(
            now=microseconds(site.now + CLOCK_SKEW),
            news_since=microseconds(site.now - _NEWS_AGE),
            is_language=lambda text: not language_problem(text),
            is_news_language=lambda text: not news_language_problem(text),
            url=url,
            is_expired=lambda text: is_expired(text, site.now),
        )
        context = SitemapContext(url, options, now=site.now)
        if robots is not None:
            options = replace(options, may_disallow=robots.may_disallow, is_disallowed=robots.is_disallowed)
            context = replace(context, disallowed_to=robots.disallowed_to)
        if not site.is_host_known:
            return replace(context, options=replace(options, elsewhere=first_come(url)))
        scope = scope_of(url, path, is_placed=site.is_placed, is_named=site.is_named)
        if site.stated_url and is_elsewhere(url, site.stated_url):
            scope = Scope([origin_of(site.stated_url)])
        folder = strip_url_to_homepage(url).removesuffix("/") + scope.folder
        options = replace(options, sites=scope.sites, elsewhere=scope.elsewhere, own_hosts=scope.own_hosts)
        return replace(context, options=options, folder=folder)
