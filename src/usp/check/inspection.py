"""Runs the rules over the entries of one sitemap while its document is read.

Entries in which nothing is wrong are passed over by the survey. `Inspection` is told of the others, and keeps the books
of the site, the `Ledger`, for them as the survey does for those that it passes over.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from usp.check.alternates import ReturnLinks, alternates_of
from usp.check.entries import ENTRY_RULES, CheckedEntry, EntryRules, Standard, needs_every_entry
from usp.objects.page import SitemapPage
from usp.objects.problem import KEPT_PER_CODE, ProblemLog
from usp.scan.columns import microseconds
from usp.scan.dates import parse_date
from usp.scan.elements import Element
from usp.scan.entities import unescape
from usp.scan.survey import SURVEYED, SURVEYORS, Facts, PureSurvey, PureURLTable, SurveyOff, Surveyors, Yardstick
from usp.scan.values import parse_priority
from usp.scan.vocabulary import Kind

__all__ = [
    "MAX_PAGES",
    "Comparison",
    "Inspection",
    "Ledger",
    "LookUp",
    "Marking",
    "inspect_pages",
    "table_of",
]

#: How many pages are remembered, to find those that are listed twice; and how many stories, feed entries and sitemaps.
MAX_PAGES = 1 << 23
MAX_STORIES = 1 << 21
_BITS = {code: 1 << number for number, code in enumerate(SURVEYED)}
_ALL_BITS = (1 << len(SURVEYED)) - 1
_PAGE = Kind(frozenset({"loc", "lastmod"}))


@dataclass
class Ledger:
    """What is remembered of all sitemaps of a site together. `names` are those of the sitemaps, by their numbers."""

    names: list[str] = field(default_factory=list)
    surveyors: Surveyors = SURVEYORS

    def __post_init__(self) -> None:
        self.pages = self.surveyors.url_table(MAX_PAGES)
        self.stories = self.surveyors.url_table(MAX_STORIES)  # and feeds and sitemaps: what others may list as well
        self.returns = ReturnLinks(self.surveyors.cluster_sums(), self.pages.hash_of, self.is_listed)

    def is_listed(self, url: str) -> bool:
        """Whether a sitemap lists a page."""
        return self.pages.find(url) >= 0 or self.stories.find(url) >= 0

    def number_of(self, name: str) -> int:
        """The number of one more sitemap."""
        self.names.append(name)
        return len(self.names) - 1


class Inspection:
    """Looks at the entries of one sitemap that the survey did not pass over, in their order."""

    def __init__(
        self,
        standard: Standard,
        number: int,
        ledger: Ledger,
        log: ProblemLog,
        rules: EntryRules = ENTRY_RULES,
    ) -> None:
        self._standard = standard
        self._number = number
        self._ledger = ledger
        self._log = log
        self._rules = rules
        self._sitemaps = 0  # entries that are no pages
        survey = SurveyOff if needs_every_entry(rules) else ledger.surveyors.survey
        self.reader: PureSurvey = survey(
            standard.yardstick, ledger.pages, ledger.stories, number, ledger.returns.clusters
        )

    @property
    def facts(self) -> Facts:
        """What the entries have in common."""
        return self.reader.facts

    def entry(self, element: Element, url: str | None, /) -> None:
        """Run the rules over an entry. Without a URL, it was left out."""
        if url is None:
            return
        entry = CheckedEntry(element, url, self._standard)
        is_story = element.name == "url" and entry.is_story
        self._note_duplicate(entry, is_story)
        for code, rule in self._rules[element.name].items():
            if (found := rule(entry)) is not None:
                self._log.add(code, found.at, text=found.text, where=found.where, **found.values)
                if self._log.counts[code] >= KEPT_PER_CODE and code in _BITS:
                    self.reader.passed |= _BITS[code]
        self._count(entry, is_story)
        if element.name == "url" and entry.alternates:
            self.facts.linked += 1
            self._ledger.returns.note(url, entry.alternates)

    def finish(self) -> None:
        """Take over what the survey counted."""
        self._log.counts.update(self.reader.counts)

    def page_count(self, pages: Sequence[SitemapPage]) -> int:
        """How many pages the sitemap has, each counted once."""
        counts, facts = self._log.counts, self.facts
        is_mixed = bool(facts.stories) and facts.stories != facts.entries
        if self._sitemaps or is_mixed or self._ledger.pages.is_full:
            return len(pages)  # here, what was listed twice is not known for sure
        return facts.entries - counts["P418"]

    def _note_duplicate(self, entry: CheckedEntry, is_story: bool) -> None:
        """Find out whether a URL was listed already, and remember it if not."""
        is_page = entry.element.name == "url" and not is_story
        table = self._ledger.pages if is_page else self._ledger.stories
        first = table.find(entry.url)
        if first == self._number:
            entry.duplicate = "P418"
        elif first >= 0 and is_page:
            entry.duplicate = "P419"
            entry.first_sitemap = self._ledger.names[first] if first < len(self._ledger.names) else "another sitemap"
        table.add(entry.url, self._number)

    def _count(self, entry: CheckedEntry, is_story: bool) -> None:
        element = entry.element
        date = priority = None
        if element.name == "url":
            date_text, priority_text = element.get("lastmod"), element.get("priority")
            date = parse_date(unescape(date_text)) if date_text else None
            priority = parse_priority(priority_text) if priority_text else None
        self._sitemaps += element.name == "sitemap"
        self.facts.count(
            None if date is None else microseconds(date), None if priority is None else float(priority), is_story
        )


class Comparison:
    """Compares the pages of sets of alternates that are not complete: the second reading of a sitemap."""

    def __init__(self, url: str, ledger: Ledger) -> None:
        self._url = url
        self._returns = ledger.returns
        self.has_compared = False
        self.reader = _only_wanted(ledger)

    def entry(self, element: Element, url: str | None, /) -> None:
        """Remember a page that is wanted."""
        if url is None or element.name != "url" or not (alternates := alternates_of(element, self._url)):
            return
        if self._returns.is_wanted(url, alternates):
            self._returns.compare(url, alternates)
            self.has_compared = True
        if self._returns.is_cut:
            self.reader.stop_wanting()


def _only_wanted(ledger: Ledger) -> PureSurvey:
    """A survey that passes over all entries but those of sets of alternates that are not complete."""
    listed = (ledger.pages, ledger.stories)
    survey = ledger.surveyors.survey(Yardstick(), wanted=ledger.returns.clusters, listed=listed)
    survey.passed = _ALL_BITS
    return survey


def table_of(pages: Collection[str], ledger: Ledger) -> PureURLTable:
    """A table of just these pages, to which nothing can be added: each of them stands in it already."""
    table = ledger.surveyors.url_table(len(pages))
    for page in pages:
        table.add(page, 0)
    return table


def _only_listed(table: PureURLTable, ledger: Ledger) -> PureSurvey:
    """A survey that passes over all entries but those of the pages of such a table."""
    survey = ledger.surveyors.survey(Yardstick(), table, table, 0)
    survey.passed = _ALL_BITS & ~_BITS["P418"]
    return survey


class LookUp:
    """Looks up what else the pages link to that seem not to link back: the third reading."""

    def __init__(self, url: str, table: PureURLTable, ledger: Ledger) -> None:
        self._url = url
        self._returns = ledger.returns
        self.reader = _only_listed(table, ledger)

    def entry(self, element: Element, url: str | None, /) -> None:
        """Take in the links of a page that is doubtful."""
        if url is not None and element.name == "url":
            self._returns.look_up(url, alternates_of(element, self._url))


class Marking:
    """Notes the alternates that do not link back where they stand: the last reading, of few sitemaps."""

    def __init__(
        self, url: str, missing: dict[str, set[str]], table: PureURLTable, ledger: Ledger, log: ProblemLog
    ) -> None:
        self._url = url
        self._missing = missing
        self._log = log
        self.reader = _only_listed(table, ledger)

    def entry(self, element: Element, url: str | None, /) -> None:
        """Note the links of a page to those that do not link back, each once."""
        if url is None or element.name != "url" or url not in self._missing:
            return
        silent = set(self._missing[url])
        for alternate in alternates_of(element, self._url):
            if alternate.url in silent and not alternate.is_default:
                silent.discard(alternate.url)
                self._log.add("H633", alternate.at, text=alternate.url)


def inspect_pages(pages: Iterable[SitemapPage], inspection: Inspection) -> None:
    """The rules on URLs and dates for a sitemap whose document is not here: one made by hand, or unpickled.

    Its pages have no places, and of what else they say nothing is looked at.
    """
    for page in pages:
        entry = Element("url", _PAGE, 0, {})
        entry.fields["loc"] = page.url
        if (date := page.last_modified) is not None:
            is_day = date.tzinfo is None and not date.hour and not date.minute and not date.second
            entry.fields["lastmod"] = date.date().isoformat() if is_day else date.isoformat()
        inspection.entry(entry, page.url)
