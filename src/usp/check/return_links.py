"""H633: find pages whose alternates in other languages do not link back, in bounded memory.

Nearly all sets of alternates are complete: every page of the set lists all of its pages. While the sitemaps are read,
each page adds a number to one of two million counters, chosen by its set; the numbers of a complete set add up to zero
(`usp.scan.survey.PureClusterSums`). If any counter is not zero, `check_return_links` reads the sitemaps with alternates
again, up to three times:

1. Collect the pages of sets that are not complete, and their alternates.
2. Look up what these alternates link to. A page may be listed twice, and either entry may have the links.
3. Report the links that are not returned, with their places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection

from usp.check.subjects import Alternate, SitemapCheck, alternates_of
from usp.objects.problem import UNLOGGED, ProblemLog, Problems
from usp.scan import (
    SURVEYED,
    Element,
    PureSurvey,
    PureURLTable,
    SurveyOptions,
    Surveyors,
    same_url_key,
)

__all__ = ["MAX_LINKS", "ReturnLinks", "check_return_links"]

#: How many links are compared.
MAX_LINKS = 200_000
_CODE = "H633"
_ALL_BITS = (1 << len(SURVEYED)) - 1
_LISTED_BIT = 1 << SURVEYED.index("P418")
_MODULUS = 1 << 64


class ReturnLinks:
    """The links between the pages of a site, as far as they are needed to find those that are not returned.

    Links to pages that no sitemap lists are ignored. In here pages are known by their `same_url_key`.
    """

    def __init__(
        self, surveyors: Surveyors, pages: PureURLTable, stories: PureURLTable, max_links: int = MAX_LINKS
    ) -> None:
        self.clusters = surveyors.cluster_sums()
        self.is_cut = False
        self._surveyors = surveyors
        self._tables = pages, stories
        self._max_links = max_links
        self._link_count = 0
        self._stated: dict[str, dict[str, None]] = {}  # pages of incomplete sets -> their alternates, in order
        self._written: dict[str, str] = {}  # keys of these pages -> their URLs as written, if they differ
        self._links: dict[str, set[str]] = {}  # pages -> everything that they link to, as far as known
        self._doubtful: set[str] = set()
        self._texts: dict[str, str] = {}  # interned URLs

    def note(self, url: str, alternates: list[Alternate]) -> None:
        """Count a page and its alternates. The survey does the same for entries that it skips."""
        key, size = self._cluster_of(url, alternates)
        self.clusters.note(key, size, self._tables[0].hash_of(url))

    def is_incomplete(self, url: str, alternates: list[Alternate]) -> bool:
        """Return whether the set of a page is not complete, and a sitemap lists another page of it."""
        own = same_url_key(url)
        if not self.clusters.is_open(self._cluster_of(url, alternates)[0]):
            return False
        others = (alternate.url for alternate in alternates if not alternate.is_default and alternate.url != own)
        return any(self._is_listed(other) for other in others)

    def collect(self, url: str, alternates: list[Alternate]) -> None:
        """Remember a page of a set that is not complete."""
        key = same_url_key(url)
        if self.is_cut or self._link_count + len(alternates) > self._max_links:
            self.is_cut = True
            return
        self._link_count += len(alternates)
        if key != url:
            self._written[key] = url
        stated = self._stated.setdefault(self._interned(key), {})
        for alternate in alternates:
            if not alternate.is_default and alternate.url != key:
                stated[self._interned(alternate.url)] = None
        self._add_links(key, alternates)

    def doubtful(self) -> set[str]:
        """Return the listed alternates that are not yet known to link back. They may have other entries."""
        doubtful: set[str] = set()
        for url, stated in self._stated.items():
            for alternate in stated:
                if url not in self._links.get(alternate, ()) and self._is_listed(alternate):
                    if len(doubtful) >= self._max_links:
                        self.is_cut = True
                        break
                    doubtful.add(alternate)
        self._doubtful = doubtful
        return doubtful

    def look_up(self, url: str, alternates: list[Alternate]) -> None:
        """Add the links of one more entry of a doubtful page."""
        key = same_url_key(url)
        if key in self._doubtful:
            self._link_count += len(alternates)
            if self._link_count > 2 * self._max_links:
                self.is_cut = True
                self._doubtful.discard(key)  # the rest of its links is not known
                return
            self._add_links(key, alternates)

    def missing(self) -> dict[str, set[str]]:
        """Return pages, in each of their spellings, and those of their alternates that do not link back."""
        missing = {}
        for url, stated in self._stated.items():
            silent = {other for other in stated.keys() & self._doubtful if url not in self._links.get(other, ())}
            if silent:
                missing[url] = missing[self._written.get(url, url)] = silent
        return missing

    def incomplete_survey(self) -> PureSurvey:
        """Return a survey that stops only at pages whose set is not complete."""
        survey = self._surveyors.survey(SurveyOptions(), wanted=self.clusters, listed=self._tables)
        survey.passed = _ALL_BITS
        return survey

    def survey_of(self, pages: Collection[str]) -> Callable[[], PureSurvey]:
        """Return a function that makes surveys which stop only at these pages."""
        # Every page is in the table already, as of this sitemap: each entry of it is a duplicate, P418.
        table = self._surveyors.url_table(len(pages))
        for page in pages:
            table.add(page, 0)

        def survey() -> PureSurvey:
            made = self._surveyors.survey(SurveyOptions(), table, table, 0)
            made.passed = _ALL_BITS & ~_LISTED_BIT
            return made

        return survey

    def _cluster_of(self, url: str, alternates: list[Alternate]) -> tuple[int, int]:
        """Return the key of the set of a page and its alternates, equal for all pages of the set, and its size."""
        members = {same_url_key(url), *(alternate.url for alternate in alternates if not alternate.is_default)}
        return sum(map(self._tables[0].hash_of, members)) % _MODULUS, len(members)

    def _is_listed(self, url: str) -> bool:
        return any(table.find(url) >= 0 for table in self._tables)

    def _add_links(self, url: str, alternates: list[Alternate]) -> None:
        links = self._links.setdefault(self._interned(url), set())
        links.update(self._interned(alternate.url) for alternate in alternates)

    def _interned(self, url: str) -> str:
        return self._texts.setdefault(url, url)


def check_return_links(returns: ReturnLinks, checks: Collection[SitemapCheck]) -> None:
    """Add the problem H633 to the sitemaps that have links which are not returned."""
    if not returns.clusters.has_open:
        return
    linked = [check for check in checks if check.stats.linked and check.sitemap.parser]
    incomplete = [check for check in linked if _collect(returns, check)]
    if doubtful := returns.doubtful():
        survey = returns.survey_of(doubtful)
        for check in linked:
            _read(check, _LinkReader(check.sitemap.url, survey(), returns.look_up))
    if missing := returns.missing():
        survey = returns.survey_of(missing)
        for check in incomplete:
            _report(check, survey(), missing)


class _LinkReader:
    """Call a function with the URL and the alternates of each page at which a survey stops."""

    def __init__(self, url: str, reader: PureSurvey, visit: Callable[[str, list[Alternate]], None]) -> None:
        self._url = url
        self._visit = visit
        self.reader = reader

    def skips_line(self, url: str, /) -> bool:
        """Return True: lines have no alternates."""
        return True

    def entry(self, element: Element, url: str, /) -> None:
        """Pass on the alternates of a page."""
        if element.name == "url":
            self._visit(url, alternates_of(element, self._url))


def _read(check: SitemapCheck, reader: _LinkReader, log: ProblemLog = UNLOGGED) -> None:
    """Read a sitemap once more."""
    if (parser := check.sitemap.parser) is not None:
        parser.inspect(log, reader)


def _collect(returns: ReturnLinks, check: SitemapCheck) -> bool:
    """Collect the pages of a sitemap whose sets are not complete. Return whether there are any."""
    survey = returns.incomplete_survey()
    is_any = False

    def visit(url: str, alternates: list[Alternate]) -> None:
        nonlocal is_any
        if alternates and returns.is_incomplete(url, alternates):
            returns.collect(url, alternates)
            is_any = True
        if returns.is_cut:
            survey.stop_wanting()

    _read(check, _LinkReader(check.sitemap.url, survey, visit))
    return is_any


def _report(check: SitemapCheck, survey: PureSurvey, missing: dict[str, set[str]]) -> None:
    """Report each link of a sitemap that is not returned, once for each entry."""
    log = ProblemLog(check.sitemap.url)

    def visit(url: str, alternates: list[Alternate]) -> None:
        silent = set(missing.get(url, ()))
        for alternate in alternates:
            if alternate.url in silent and not alternate.is_default:
                silent.discard(alternate.url)
                log.add(_CODE, alternate.at, text=alternate.url)

    _read(check, _LinkReader(check.sitemap.url, survey, visit), log)
    problems = log.problems()
    kept = (problem for problem in problems if problem.code == _CODE)
    check.problems = check.problems.and_more(Problems(kept, Counter({_CODE: problems.counts[_CODE]})))
