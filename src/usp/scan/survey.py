"""What is looked at in every entry when a sitemap is checked, at the scanner's speed.

A survey is a reader of plain entries (see `plain`): it passes over those in which nothing is wrong, and keeps count of
what the rules on whole sitemaps need. An entry of which anything is to be said stops it, and goes the long way: the
general scanner reads it, and the rules of `usp.check` say what is wrong, and where. Once enough was said of a code, its
bit is set in `passed`: then the survey only counts it, in `counts`.

What it looks at is defined here, in small functions that the rules use too. `_survey.pyx` does the same, compiled.
"""

from __future__ import annotations

import re
from calendar import isleap, monthrange
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from usp.compiled import IS_COMPILED
from usp.scan.columns import microseconds
from usp.scan.dates import parse_date
from usp.scan.grammar import Grammar
from usp.scan.plain import Taken, is_clean, may_go_on, next_entry
from usp.scan.values import parse_priority, text_of

__all__ = [
    "MAX_IMAGES",
    "MAX_URL_LENGTH",
    "PURE_SURVEYORS",
    "SURVEYED",
    "SURVEYORS",
    "PureClusterSums",
    "PureSurvey",
    "PureURLTable",
    "SitemapStats",
    "SurveyOff",
    "SurveyOptions",
    "Surveyors",
    "date_code",
    "elsewhere_code",
    "first_unescaped",
    "is_future",
    "is_lower_frequency",
    "is_old",
    "may_be_disallowed",
    "period_of",
    "same_url_key",
    "url_codes",
]

#: The codes that a survey looks for; their places here are their bits.
SURVEYED = (
    *("U503", "U504", "U505", "U506", "U507", "U508", "U509", "U510"),
    *("P418", "P419", "R709", "L303", "L305", "L306", "P423"),
    *("N601", "N603", "N604", "I611", "H631", "H632", "H634", "H635"),
)
MAX_URL_LENGTH = 2_048  # a URL must be shorter
MAX_IMAGES = 1_000
_CLUSTER_SUMS = 1 << 21
_HASHES = 1 << 64
_BITS = {code: 1 << number for number, code in enumerate(SURVEYED)}
# What no URL may have as it is: https://www.rfc-editor.org/rfc/rfc3986#appendix-A. Brackets are let be, as browsers do.
_UNESCAPED = re.compile(r"""[ "<>\\^`{|}]|%(?![0-9A-Fa-f]{2})""")
_W3C_DATE = re.compile(
    r"\d{4}(?:-\d\d(?:-\d\d(?P<time>T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?P<zone>Z|[+-]\d\d:\d\d)?)?)?)?", re.ASCII
)
_ESCAPED_ASCII = re.compile("%[0-7]")
_HOUR = 3_600_000_000
_EARLIEST_ZONE = 14 * _HOUR  # a day begins there 14 hours before it does in UTC
_DAY = 24 * _HOUR
_NO_DAY = re.compile(r"\d{4}(?P<month>[-/.]\d{1,2})?", re.ASCII)
_ORIGIN = re.compile(r"[^:/?#]+://[^/?#]*")
_WITHOUT_PATH = re.compile(r"[^:/?#]+://[^/?#]*+(?!/)")


def _nothing(text: str) -> str:
    return ""


def _never(text: str) -> bool:
    return False


def _always(text: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class SurveyOptions:
    """What the entries of one sitemap are measured by. Times are in microseconds since 1970, UTC.

    `sites` are pairs of the start of URLs and the code of a URL that starts so, empty if nothing is wrong with it; the
    first that fits counts. `elsewhere` says the same for all other URLs, given their scheme and host.

    `may_disallow` are sequences of texts, the first of them a scheme and host, as `may_be_disallowed` needs them.
    """

    sites: tuple[tuple[str, str], ...] = ()
    elsewhere: Callable[[str], str] = _nothing
    now: int = 1 << 62  # later is in the future
    news_since: int = -(1 << 62)  # earlier is old
    may_disallow: tuple[tuple[str, ...], ...] = ()
    is_disallowed: Callable[[str], bool] = _never
    is_language: Callable[[str], bool] = _always
    is_news_language: Callable[[str], bool] = _always


@dataclass(slots=True)
class SitemapStats:
    """What the entries of one sitemap have in common."""

    entries: int = 0
    dated: int = 0
    earliest: int = 1 << 62
    latest: int = -(1 << 62)
    prioritised: int = 0
    lowest: float = 2.0
    highest: float = -1.0
    stories: int = 0
    linked: int = 0  # entries that have alternates

    def count(self, date: int | None, priority: float | None, is_story: bool) -> None:
        """One more entry: its last modification and its priority, where they are stated and can be read."""
        self.entries += 1
        self.stories += is_story
        if date is not None:
            self.dated += 1
            self.earliest = min(self.earliest, date)
            self.latest = max(self.latest, date)
        if priority is not None:
            self.prioritised += 1
            self.lowest = min(self.lowest, priority)
            self.highest = max(self.highest, priority)


def same_url_key(url: str) -> str:
    """What URLs have in common that are the same: an empty path is "/". No two others are the same here."""
    start = _WITHOUT_PATH.match(url)
    return f"{start[0]}/{url[start.end() :]}" if start else url


class PureURLTable:
    """Which sitemap had a URL last. No more than `most` URLs are kept."""

    def __init__(self, most: int = 1 << 23) -> None:
        self._first: dict[str, int] = {}
        self._most = most
        self.is_full = False

    def find(self, url: str) -> int:
        """The number of the sitemap that had it first; -1 if none had."""
        return self._first.get(same_url_key(url), -1)

    def add(self, url: str, number: int) -> None:
        """Keep a URL as one of this sitemap, whatever it was before; a new one only if there are not too many."""
        key = same_url_key(url)
        if len(self._first) < self._most or key in self._first:
            self._first[key] = number
        else:
            self.is_full = True

    @staticmethod
    def hash_of(url: str) -> int:
        """A number below 2**64 that hardly any other URL has; another one in each process."""
        return hash(same_url_key(url)) & 0xFFFF_FFFF_FFFF_FFFF


class PureClusterSums:
    """Which sets of pages, that are said to be the same in other languages, are not complete.

    A set is known by the sum of its members' hashes. Each page that states the set adds its own hash, times the size of
    the set, less the sum: of a complete set that comes to nothing. Sets are added up in 2**21 places, so memory does
    not grow with their number; a set that shares its place with one that is not complete may be taken for such, too.
    """

    def __init__(self) -> None:
        self._sums: dict[int, int] = {}

    def note(self, key: int, size: int, own: int) -> None:
        """A page, by its hash, that states a set of this size."""
        place = key % _CLUSTER_SUMS
        left = (self._sums.get(place, 0) + size * own - key) % _HASHES
        if left:
            self._sums[place] = left
        else:
            self._sums.pop(place, None)

    def is_open(self, key: int) -> bool:
        """Whether a set may not be complete."""
        return key % _CLUSTER_SUMS in self._sums

    def sums_left(self) -> dict[int, int]:
        """What is left in each place, where there is anything."""
        return dict(self._sums)

    @property
    def has_open(self) -> bool:
        """Whether any set is not complete."""
        return bool(self._sums)


def first_unescaped(url: str) -> int:
    """Where the first character stands that a URL may not have as it is; -1 if there is none."""
    found = _UNESCAPED.search(url)
    return found.start() if found else -1


def elsewhere_code(url: str, options: SurveyOptions) -> str:
    """The code of a URL that is not where those of its sitemap should be; empty if it is."""
    for start, code in options.sites:
        if url.startswith(start):
            return code
    origin = _ORIGIN.match(url)
    return options.elsewhere(origin[0]) if origin else ""


def may_be_disallowed(url: str, options: SurveyOptions) -> bool:
    """Whether all texts of a sequence stand in a URL, one after the other, the first at its start.

    A URL with an escape of ASCII may be, too: such are taken for what they stand for. `is_disallowed` is to be asked of
    those for which this is true, and of no others.
    """
    if options.may_disallow and _ESCAPED_ASCII.search(url):
        return True
    for first, *others in options.may_disallow:
        if url.startswith(first):
            at = len(first)
            for text in others:
                at = url.find(text, at)
                if at < 0:
                    break
                at += len(text)
            else:
                return True
    return False


def url_codes(url: str, options: SurveyOptions) -> list[str]:
    """What is wrong with the URL of an entry."""
    found = {
        "U503": len(url) >= MAX_URL_LENGTH,
        "U504": first_unescaped(url) >= 0,
        "U505": not url.isascii(),
        "U510": "#" in url,
        "R709": may_be_disallowed(url, options) and options.is_disallowed(url),
    }
    elsewhere = elsewhere_code(url, options)
    return [code for code, is_so in found.items() if is_so] + [elsewhere] * bool(elsewhere)


@lru_cache(maxsize=4_096)
def _form_of(text: str) -> str:
    """The code of the form of a text that is a date; empty if it is as https://www.w3.org/TR/NOTE-datetime has it."""
    form = _W3C_DATE.fullmatch(text)
    if form is None:
        return "L305"
    return "L306" if form["time"] and not form["zone"] else ""


def is_future(date: datetime, options: SurveyOptions) -> bool:
    """Whether it is not yet that time anywhere on Earth."""
    return microseconds(date) - (0 if date.tzinfo else _EARLIEST_ZONE) > options.now


def period_of(text: str, date: datetime) -> int:
    """How long the time is that a date may mean: a year or a month if it states no more, a day if it has no zone."""
    if date.tzinfo:
        return 0
    if (stated := _NO_DAY.fullmatch(text.strip())) is None:
        return _DAY
    days = monthrange(date.year, date.month)[1] if stated["month"] else 365 + isleap(date.year)
    return days * _DAY


def is_old(text: str, date: datetime, options: SurveyOptions) -> bool:
    """Whether a story of this date is no news any more, whichever time it means."""
    return microseconds(date) + period_of(text, date) < options.news_since


def date_code(text: str, date: datetime, options: SurveyOptions) -> str:
    """What is wrong with a date that could be read: it is in the future, or not in the right form."""
    if is_future(date, options):
        return "L303"
    return _form_of(text)


def is_lower_frequency(text: str) -> bool:
    """Whether a change frequency, one that there is, is written as it must be."""
    return text == text.lower()


@dataclass(slots=True)
class PureSurvey:
    """Passes over plain entries in which nothing is wrong.

    `number` is that of the sitemap, in `table`: without a table, duplicates are not looked for. `stories` is one for
    news, which may be listed in other sitemaps as well.

    `clusters`, `wanted` and `listed` are for languages, and only entries that are not plain to this reader have those.
    An entry whose set is not complete in `wanted` is not passed over, if any of its alternates is `listed`.
    """

    options: SurveyOptions
    table: PureURLTable | None = None
    stories: PureURLTable | None = None
    number: int = 0
    clusters: PureClusterSums | None = None
    wanted: PureClusterSums | None = None
    listed: tuple[PureURLTable, ...] = ()
    passed: int = 0
    stats: SitemapStats = field(default_factory=SitemapStats)
    counts: dict[str, int] = field(default_factory=dict)
    has_pages: bool = False  # whether any were passed over

    def take(self, grammar: Grammar, buffer: bytes, position: int, /) -> Taken:
        """Where those entries end that are in order; see `plain`."""
        while match := next_entry(grammar, buffer, position):
            loc, last_modified, change_frequency, priority = match.groups(b"")
            if not is_clean(loc, last_modified, change_frequency, priority):
                return [], position, False, False
            url, date_text = text_of(loc), text_of(last_modified)
            date = parse_date(date_text) if date_text else None
            codes = url_codes(url, self.options) + self._duplicate(url)
            if date is not None and (code := date_code(date_text, date, self.options)):
                codes.append(code)
            if not is_lower_frequency(text_of(change_frequency)):
                codes.append("P423")
            if any(not _BITS[code] & self.passed for code in codes):
                return [], position, False, False
            for code in codes:
                self.counts[code] = self.counts.get(code, 0) + 1
            if self.table is not None:
                self.table.add(url, self.number)
            number = parse_priority(text_of(priority)) if priority.strip() else None
            self.stats.count(
                None if date is None else microseconds(date), None if number is None else float(number), False
            )
            self.has_pages = True
            position = match.end()
        return [], position, may_go_on(buffer, position), False

    def stop_wanting(self) -> None:
        """Pass over what was wanted, too."""
        self.wanted = None

    def _duplicate(self, url: str) -> list[str]:
        first = -1 if self.table is None else self.table.find(url)
        return [] if first < 0 else ["P418" if first == self.number else "P419"]


class SurveyOff(PureSurvey):
    """Stop at every entry, for rules that the survey does not know. It is slower, and nothing is missed."""

    def take(self, grammar: Grammar, buffer: bytes, position: int, /) -> Taken:
        """Take no entry."""
        return [], position, False, False


class Surveyors(NamedTuple):
    """What goes together: a table has the hashes that its survey makes."""

    survey: type[PureSurvey]
    url_table: type[PureURLTable]
    cluster_sums: type[PureClusterSums]


PURE_SURVEYORS = Surveyors(PureSurvey, PureURLTable, PureClusterSums)

if TYPE_CHECKING or not IS_COMPILED:
    SURVEYORS = PURE_SURVEYORS
else:
    from usp.scan import _seen, _survey

    _survey.bind()
    SURVEYORS = Surveyors(_survey.PlainSurvey, _seen.URLTable, _seen.ClusterSums)
