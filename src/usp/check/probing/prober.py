"""Fetch the pages of a sample, run the rules on pages over them, and add what they find to a report."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from hashlib import blake2b
from typing import Any

from usp.check.probing.cache import FactsCache
from usp.check.probing.page import Html, PageFacts, ProbedPage, facts_of, html_reader
from usp.check.probing.probe import Probe, ProbeProgress
from usp.check.probing.sample import ListedPage, PageList, sampled
from usp.check.probing.table import PageTable
from usp.check.report import CheckedSitemap, Report
from usp.check.robots import RobotsRules
from usp.check.rules import RULES
from usp.check.rules.rule import PageRule
from usp.exceptions import InvalidArgumentError
from usp.objects.problem import ProblemLog, Problems
from usp.objects.sitemap import AbstractSitemap, IndexRobotsTxtSitemap, IndexWebsiteSitemap, InvalidSitemap
from usp.objects.wording import plural
from usp.origins import Origin, origin_of, requested_url
from usp.scan import MAX_ROBOTS_TXT_BYTES, SurveyOptions, may_be_disallowed, strip_url_to_homepage
from usp.stream import SitemapStream
from usp.webpages import WebPage, fetch_pages

__all__ = ["Prober"]

_ONE_WAY = "W810"
_MAX_ORIGINS = 10  # other than that of the site, whose robots.txt is asked
_MAX_LINKED = 100_000  # pages whose alternates are compared
_MAX_NAMED = 20  # alternates of a page that are looked at


class Prober:
    """A probe of the pages of one site.

    :param stream: the stream that has read the tree.
    :param robots: the rules of the site's robots.txt, if they are known. Pages that they disallow have been reported.
    """

    def __init__(
        self,
        probe: Probe,
        stream: SitemapStream,
        tree: AbstractSitemap,
        report: Report,
        robots: RobotsRules | None,
        now: datetime,
    ) -> None:
        if stream.fetching() is None:
            raise InvalidArgumentError(f"{report.target} has files and no pages to probe; name a site")
        self._probe = probe
        self._stream = stream
        self._report = report
        self._now = now
        self._read = html_reader()
        self._sitemaps = _sitemaps_of(tree)
        counts = {checked.url: checked.pages for checked in report.sitemaps}
        self._sizes = [counts.get(sitemap.url, 0) for sitemap in self._sitemaps]
        self._lists = [PageList(number, sitemap) for number, sitemap in enumerate(self._sitemaps)]
        self._logs = [ProblemLog(sitemap.url) for sitemap in self._sitemaps]
        self._home = origin_of(strip_url_to_homepage(stream.homepage_url))
        self._knows_home = robots is not None
        self._robots: dict[Origin, RobotsRules | None] = {} if robots is None else {self._home: robots}
        self._missing_hash = ""
        self._rules = [rule for rule in RULES.values() if isinstance(rule, PageRule) and rule.code != _ONE_WAY]
        self._one_way = RULES[_ONE_WAY]
        self._links: dict[str, frozenset[str]] = {}  # pages -> their alternates
        self._linked: list[tuple[ProbedPage, int]] = []  # pages with alternates, and their rows
        self._table: PageTable | None = None
        self.probed = 0
        self._left = 0  # pages that were not requested, because of a limit
        self._why_left = ""

    def run(self) -> None:
        """Fetch all pages of the sample. After Ctrl-C, `report` has what was found until then."""
        wanted = None if self._probe.pages == "all" else self._probe.pages
        total = sum(self._sizes) if wanted is None else min(wanted, sum(self._sizes))
        with ExitStack() as stack:
            cache = stack.enter_context(FactsCache(self._probe.cache, self._now))
            if self._probe.table is not None:
                self._table = stack.enter_context(PageTable(self._probe.table))
            self._find_missing_hash()
            for listed, facts in self._found(sampled(self._lists, self._sizes, wanted, self._probe.seed), cache):
                if facts is None:
                    self._left += 1
                else:
                    self._judge(listed, facts)
                    self.probed += 1
                if self._probe.progress is not None:
                    self._probe.progress(ProbeProgress(self.probed + self._left, total, listed.url))
            self._check_links(cache)
            if self._table is not None:
                self._table.write()

    def report(self) -> Report:
        """Return the report with the problems of the pages."""
        found = {}
        for number, log in enumerate(self._logs):
            if log.counts:
                log.locate = self._lists[number].log.locate
                found[log.url] = log.problems()
        notes = self._report.notes
        if self._left:
            notes += (f"{plural(self._left, 'page')} of the sample not probed: {self._why_left}",)
        sitemaps = tuple(_with(checked, found.get(checked.url)) for checked in self._report.sitemaps)
        return replace(self._report, sitemaps=sitemaps, notes=notes, probed=self.probed)

    def _found(self, pages: Iterable[ListedPage], cache: FactsCache) -> Iterator[tuple[ListedPage, PageFacts | None]]:
        """Yield the pages with what was found, in their order. None stands for one that was not requested."""
        waiting: deque[ListedPage] = deque()
        done: dict[int, PageFacts | None] = {}
        numbers: list[int] = []  # of the pages that are requested
        first = 0  # the number of the first that waits

        def urls() -> Iterator[str]:
            for number, page in enumerate(pages):
                waiting.append(page)
                if (known := cache.get(page.url)) is not None:
                    done[number] = known
                    continue
                self._ask_robots(page.url)
                numbers.append(number)
                yield page.url

        for page in fetch_pages(self._stream, urls(), self._read):
            done[numbers[page.number]] = self._facts(page, cache)
            while first in done:
                yield waiting.popleft(), done.pop(first)
                first += 1
        while waiting:
            yield waiting.popleft(), done.pop(first)
            first += 1

    def _facts(self, page: WebPage[Html], cache: FactsCache) -> PageFacts | None:
        if page.is_left_out:
            self._why_left = page.reason
            return None
        facts = facts_of(page)
        cache.put(facts)
        return facts

    def _judge(self, listed: ListedPage, facts: PageFacts) -> None:
        """Run the rules over a page."""
        page = ProbedPage(listed, facts, self._disallowed_to(facts), self._missing_hash)
        log = self._logs[listed.sitemap]
        for rule in self._rules:
            if (found := rule.find(page)) is not None:
                page.codes.append(rule.code)
                log.add(rule.code, found.at, text=found.text, where=found.where, **found.values)
        row = -1 if self._table is None else self._table.add(page, log.url)
        if facts.alternates and page.is_page and len(self._linked) < _MAX_LINKED:
            self._linked.append((page, row))
            self._note_links(facts)

    # robots.txt

    def _ask_robots(self, url: str) -> None:
        """Fetch the robots.txt of the host of a page, if nobody has."""
        try:
            origin = origin_of(url)
        except ValueError:
            return
        if origin in self._robots or len(self._robots) > _MAX_ORIGINS:
            return
        self._robots[origin] = None
        robots_url = f"{strip_url_to_homepage(url)}robots.txt"
        for page in fetch_pages(self._stream, [robots_url], _bytes, max_bytes=MAX_ROBOTS_TXT_BYTES):
            if page.content is not None and page.transport is not None:
                self._robots[origin] = RobotsRules(robots_url, [page.content], page.transport.url)

    def _disallowed_to(self, facts: PageFacts) -> str:
        """Return the crawlers that may not fetch a page, unless a rule on sitemaps has said so."""
        try:
            origin = origin_of(facts.answered_url)
        except ValueError:
            return ""
        rules = self._robots.get(origin)
        if rules is None or (self._knows_home and origin == self._home and not facts.is_redirected):
            return ""
        options = SurveyOptions(may_disallow=rules.may_disallow)
        return rules.disallowed_to(facts.answered_url) if may_be_disallowed(facts.answered_url, options) else ""

    # Pages that do not exist

    def _find_missing_hash(self) -> None:
        """Ask for a page that cannot exist. If it answers 200, all pages with the same text are missing, too."""
        homepage = strip_url_to_homepage(self._stream.homepage_url)
        name = blake2b(f"{self._probe.seed} {homepage}".encode(), digest_size=10).hexdigest()
        for page in fetch_pages(self._stream, [f"{homepage}usp-{name}"], self._read):
            if page.status == 200 and page.content is not None:
                self._missing_hash = page.content.text_hash
        self._read = html_reader(hashes_text=bool(self._missing_hash))

    # Alternates

    def _note_links(self, facts: PageFacts) -> None:
        self._links[requested_url(facts.url)] = frozenset(requested_url(url) for _, url in facts.alternates)

    def _check_links(self, cache: FactsCache) -> None:
        """Report alternates that do not link back. Fetch those outside the sample, at most as many as it has pages."""
        self._fetch_alternates(cache)
        for page, row in self._linked:
            own = requested_url(page.facts.url)
            for _, url in page.facts.alternates[:_MAX_NAMED]:
                other = requested_url(url)
                if other != own and own not in self._links.get(other, {own}):
                    self._add_one_way(page, row, url)
                    break

    def _fetch_alternates(self, cache: FactsCache) -> None:
        wanted: dict[str, str] = {}
        for page, _ in self._linked:
            for _, url in page.facts.alternates[:_MAX_NAMED]:
                if len(wanted) >= min(self.probed, _MAX_LINKED):
                    break
                if (key := requested_url(url)) not in self._links:
                    wanted.setdefault(key, url)
        missing = []
        for url in wanted.values():
            if (known := cache.get(url)) is None:
                missing.append(url)
            else:
                self._note_alternate(known)
        for fetched in fetch_pages(self._stream, missing, self._read):
            if (facts := self._facts(fetched, cache)) is not None:
                self._note_alternate(facts)

    def _note_alternate(self, facts: PageFacts) -> None:
        if facts.status == 200 and not facts.is_redirected:
            self._note_links(facts)

    def _add_one_way(self, page: ProbedPage, row: int, url: str) -> None:
        assert isinstance(self._one_way, PageRule)
        page.one_way = url
        found: Any = self._one_way.find(page)
        self._logs[page.listed.sitemap].add(_ONE_WAY, found.at, text=found.text, where=found.where)
        if self._table is not None:
            self._table.add_code(row, _ONE_WAY)


def _bytes(content: bytes, content_type: str | None) -> bytes:
    return content


def _sitemaps_of(tree: AbstractSitemap) -> list[AbstractSitemap]:
    """Return the sitemaps of a tree that may list pages, each once."""
    found: dict[str, AbstractSitemap] = {}
    for sitemap in (tree, *tree.all_sitemaps()):
        if not isinstance(sitemap, (InvalidSitemap, IndexRobotsTxtSitemap, IndexWebsiteSitemap)):
            found.setdefault(sitemap.url, sitemap)
    return list(found.values())


def _with(checked: CheckedSitemap, more: Problems | None) -> CheckedSitemap:
    """Return a checked sitemap with more problems."""
    if more is None:
        return checked
    problems = checked.problems.and_more(more)
    by_place = sorted(problems, key=lambda problem: (problem.line or 0, problem.column or 0))
    return replace(checked, problems=Problems(by_place, problems.counts))
