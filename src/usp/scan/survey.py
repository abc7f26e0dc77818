"""The survey: look at every entry of a sitemap for problems, at the speed of the scanner.

A survey is a fast reader (see `plain`). It skips entries without problems, and keeps the statistics that rules on whole
sitemaps need. It stops at an entry that may have a problem. The general scanner then reads that entry, and the rules of
`usp.check` report what is wrong and where. Once a code was reported often enough, the check sets its bit in `passed`:
from then on the survey only counts it, in `counts`.

Small functions define what is wrong; the rules call them too. `_survey.pyx` is the compiled form.
"""

from __future__ import annotations

import re
from calendar import isleap, monthrange
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from usp.compiled import IS_COMPILED
from usp.scan.columns import microseconds
from usp.scan.dates import EARLIEST, parse_date
from usp.scan.elements import Element
from usp.scan.grammar import Grammar
from usp.scan.plain import Taken, is_clean, may_go_on, next_entry, next_url_line
from usp.scan.values import parse_priority, text_of

__all__ = [
    "CHILD_ORDER",
    "MAX_IMAGES",
    "MAX_URL_LENGTH",
    "MAX_VIDEO_TAGS",
    "OPTIONAL_FIELDS",
    "PURE_SURVEYORS",
    "SURVEYED",
    "SURVEYORS",
    "VIDEO_LENGTHS",
    "VIDEO_LOCATIONS",
    "VIDEO_RANGES",
    "VIDEO_RELATED",
    "VIDEO_RELATIONSHIPS",
    "VIDEO_REQUIRED",
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
    "has_double_escape",
    "is_ancient",
    "is_future",
    "is_lower_frequency",
    "is_old",
    "is_out_of_order",
    "is_out_of_range",
    "may_be_disallowed",
    "period_of",
    "same_url_key",
    "url_codes",
]

#: The codes that a survey looks for. The position of a code here is its bit.
SURVEYED = (
    *("U503", "U504", "U505", "U506", "U507", "U508", "U509", "U510"),
    *("P418", "P419", "R709", "L303", "L305", "L306", "P423"),
    *("N601", "N603", "N604", "I611", "H631", "H632", "H634", "H635"),
    *("L307", "P432", "P433", "U518"),
    *("H637", "V621", "V622", "V623", "V624", "V625", "V626"),
)
MAX_URL_LENGTH = 2_048  # a URL must be shorter
MAX_IMAGES = 1_000
_CLUSTER_SUMS = 1 << 21
_HASHES = 1 << 64
_BITS = {code: 1 << number for number, code in enumerate(SURVEYED)}
# Characters that a URL must escape: https://www.rfc-editor.org/rfc/rfc3986#appendix-A. Browsers allow brackets.
_UNESCAPED = re.compile(r"""[ "<>\\^`{|}]|%(?![0-9A-Fa-f]{2})""")
_W3C_DATE = re.compile(
    r"\d{4}(?:-\d\d(?:-\d\d(?P<time>T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?P<zone>Z|[+-]\d\d:\d\d)?)?)?)?", re.ASCII
)
_ESCAPED_ASCII = re.compile("%[0-7]")
# An escaped "%" before two digits that make an escape: of ASCII that is escaped in URLs, or of two bytes of UTF-8.
_DOUBLE_ESCAPE = re.compile("%25(?:2[0-9A-Fa-f]|3[A-Fa-f]|[89A-Fa-f][0-9A-Fa-f]%25[89ABab][0-9A-Fa-f])")
# A reference of XML in what a URL is, once its own references are replaced: "&amp;quot;" was written.
_REFERENCE_LEFT = re.compile(r"&(?:quot|apos|lt|gt|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});")
#: The order of the children of an entry in the schema. Extensions come last.
CHILD_ORDER = {"loc": 0, "lastmod": 1, "changefreq": 2, "priority": 3}
#: The fields of an entry that may be left out.
OPTIONAL_FIELDS = frozenset({"lastmod", "changefreq", "priority"})
VIDEO_REQUIRED = ("thumbnail_loc", "title", "description")
VIDEO_LOCATIONS = ("content_loc", "player_loc")  # a video has one of them
VIDEO_RELATED = ("restriction", "platform")
VIDEO_RELATIONSHIPS = frozenset({"allow", "deny"})  # of those two
MAX_VIDEO_TAGS = 32
#: How many characters a field of a video may have.
VIDEO_LENGTHS = {"title": 100, "description": 2_048}
#: The range of a number of a video, and how messages show it.
VIDEO_RANGES = {
    "duration": (Decimal(1), Decimal(28_800), "1 to 28,800 seconds"),
    "rating": (Decimal(0), Decimal(5), "0.0 to 5.0"),
}
_HOUR = 3_600_000_000
_EARLIEST_ZONE = 14 * _HOUR  # in the first time zone a day begins 14 hours before it does in UTC
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
    """What a survey compares the entries of one sitemap with. Times are in microseconds since 1970, UTC.

    `sites` are pairs: the start of URLs, and the code of URLs that start like that, or an empty text. The first match
    counts. `elsewhere` returns the code of all other URLs, given their scheme and host. `own_hosts`, if not None, says
    when it need not be asked: all plain hosts that are not among them, with or without "www.", have the code U506.

    `may_disallow` are sequences of texts for `may_be_disallowed`; the first text is a scheme and host.
    """

    sites: tuple[tuple[str, str], ...] = ()
    elsewhere: Callable[[str], str] = _nothing
    own_hosts: frozenset[str] | None = None
    now: int = 1 << 62  # later is in the future
    news_since: int = -(1 << 62)  # earlier is old
    may_disallow: tuple[tuple[str, ...], ...] = ()
    is_disallowed: Callable[[str], bool] = _never
    is_language: Callable[[str], bool] = _always
    is_news_language: Callable[[str], bool] = _always
    url: str = ""  # of the sitemap: alternates may be relative to it
    is_expired: Callable[[str], bool] = _never  # of a date


@dataclass(slots=True)
class SitemapStats:
    """Statistics of the entries of one sitemap."""

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
        """Count an entry. Its date and priority are None if it has none that usp can read."""
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
    """Return a key that is equal for equal URLs: an empty path becomes "/". Nothing else is normalized."""
    start = _WITHOUT_PATH.match(url)
    return f"{start[0]}/{url[start.end() :]}" if start else url


class PureURLTable:
    """The sitemap that listed a URL last. At most `most` URLs are kept."""

    def __init__(self, most: int = 1 << 23) -> None:
        self._first: dict[str, int] = {}
        self._most = most
        self.is_full = False

    def find(self, url: str) -> int:
        """Return the number of the sitemap that listed a URL, or -1."""
        return self._first.get(same_url_key(url), -1)

    def add(self, url: str, number: int) -> None:
        """Set the sitemap of a URL. A new URL is dropped if the table is full."""
        key = same_url_key(url)
        if len(self._first) < self._most or key in self._first:
            self._first[key] = number
        else:
            self.is_full = True

    @staticmethod
    def hash_of(url: str) -> int:
        """Return a 64-bit hash of a URL, different in each process."""
        return hash(same_url_key(url)) & 0xFFFF_FFFF_FFFF_FFFF


class PureClusterSums:
    """Find sets of alternates (pages in several languages) that are not complete, in constant memory.

    The key of a set is the sum of the hashes of its pages. Each page adds its own hash, times the size of the set,
    minus the key. For a complete set this adds up to zero. There are 2**21 sums, chosen by key. A complete set that
    shares its sum with an incomplete one looks incomplete too.
    """

    def __init__(self) -> None:
        self._sums: dict[int, int] = {}

    def note(self, key: int, size: int, own: int) -> None:
        """Add a page: the key and the size of its set, and its own hash."""
        place = key % _CLUSTER_SUMS
        left = (self._sums.get(place, 0) + size * own - key) % _HASHES
        if left:
            self._sums[place] = left
        else:
            self._sums.pop(place, None)

    def is_open(self, key: int) -> bool:
        """Return whether a set may be incomplete."""
        return key % _CLUSTER_SUMS in self._sums

    def sums_left(self) -> dict[int, int]:
        """Return the sums that are not zero."""
        return dict(self._sums)

    @property
    def has_open(self) -> bool:
        """Whether any set is incomplete."""
        return bool(self._sums)


def first_unescaped(url: str) -> int:
    """Return the position of the first character that must be escaped, or -1."""
    found = _UNESCAPED.search(url)
    return found.start() if found else -1


def elsewhere_code(url: str, options: SurveyOptions) -> str:
    """Return the code of a URL that its sitemap should not list because of its host or folder, or an empty text."""
    for start, code in options.sites:
        if url.startswith(start):
            return code
    origin = _ORIGIN.match(url)
    return options.elsewhere(origin[0]) if origin else ""


def may_be_disallowed(url: str, options: SurveyOptions) -> bool:
    """Return whether a URL contains all texts of a sequence, one after the other, and starts with the first.

    Return True for URLs with escaped ASCII too, because robots.txt rules apply to the unescaped text. Only if this is
    True, ask `is_disallowed`.
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
    """Return the codes of the problems of a URL."""
    found = {
        "U503": len(url) >= MAX_URL_LENGTH,
        "U504": first_unescaped(url) >= 0,
        "U505": not url.isascii(),
        "U510": "#" in url,
        "U518": has_double_escape(url),
        "R709": may_be_disallowed(url, options) and options.is_disallowed(url),
    }
    elsewhere = elsewhere_code(url, options)
    return [code for code, is_found in found.items() if is_found] + [elsewhere] * bool(elsewhere)


@lru_cache(maxsize=4_096)
def _form_of(text: str) -> str:
    """Return the code of a date in the wrong format, or an empty text (https://www.w3.org/TR/NOTE-datetime)."""
    form = _W3C_DATE.fullmatch(text)
    if form is None:
        return "L305"
    return "L306" if form["time"] and not form["zone"] else ""


def is_future(date: datetime, options: SurveyOptions) -> bool:
    """Return whether a time is in the future in every time zone."""
    return microseconds(date) - (0 if date.tzinfo else _EARLIEST_ZONE) > options.now


def period_of(text: str, date: datetime) -> int:
    """Return how long the time is that a date means: a year, a month, a day, or nothing if it has a zone."""
    if date.tzinfo:
        return 0
    if (stated := _NO_DAY.fullmatch(text.strip())) is None:
        return _DAY
    days = monthrange(date.year, date.month)[1] if stated["month"] else 365 + isleap(date.year)
    return days * _DAY


def is_old(text: str, date: datetime, options: SurveyOptions) -> bool:
    """Return whether a story of this date is too old for news, at the end of the time that the date means."""
    return microseconds(date) + period_of(text, date) < options.news_since


def is_ancient(date: datetime) -> bool:
    """Return whether a time is before the web: no page was modified then."""
    return microseconds(date) < microseconds(EARLIEST)


def has_double_escape(url: str) -> bool:
    """Return whether a URL has an escape that was escaped again, such as %2520 for a space, or &amp;lt; for "<"."""
    if "&" in url and _REFERENCE_LEFT.search(url) is not None:
        return True
    return "%25" in url and _DOUBLE_ESCAPE.search(url) is not None


def is_out_of_order(names: Iterable[str]) -> bool:
    """Return whether children of an entry are not in the order of the schema. Extensions come last."""
    ranks = [CHILD_ORDER.get(name, len(CHILD_ORDER)) for name in names]
    return ranks != sorted(ranks)


def date_code(text: str, date: datetime, options: SurveyOptions) -> str:
    """Return the code of a date that is in the future, too old, or in the wrong format, or an empty text."""
    if is_future(date, options):
        return "L303"
    return "L307" if is_ancient(date) else _form_of(text)


def is_out_of_range(name: str, text: str) -> bool:
    """Return whether a field of a video is a number that it may not be. A text that is no number is another problem."""
    if name == "duration" and not text.isdigit():
        return False
    try:
        number = Decimal(text)
    except InvalidOperation:
        return False
    least, most, _ = VIDEO_RANGES[name]
    return number.is_finite() and not least <= number <= most


def is_lower_frequency(text: str) -> bool:
    """Return whether a change frequency is in lower case."""
    return text == text.lower()


@dataclass(slots=True)
class PureSurvey:
    """Skip plain entries without problems.

    `number` is the number of the sitemap in `table`. Without a table, the survey does not look for duplicates.
    `stories` is the table for news, which other sitemaps may list too.

    `clusters`, `wanted` and `listed` are for alternates; this reader in plain Python never skips an entry that has any.
    The survey stops at an entry whose set is incomplete in `wanted`, if one of its alternates is in `listed`.
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
    has_pages: bool = False  # whether any entry was skipped

    def take(self, grammar: Grammar, buffer: bytes, position: int, /) -> Taken:
        """Skip entries without problems; see `plain`."""
        while match := next_entry(grammar, buffer, position):
            loc, last_modified, change_frequency, priority = match.groups(b"")
            is_any_empty = any(text is not None and not text.strip() for text in match.groups())
            if not is_clean(loc, last_modified, change_frequency, priority):
                return [], position, False, False
            url, date_text = text_of(loc), text_of(last_modified)
            date = parse_date(date_text) if date_text else None
            codes = url_codes(url, self.options) + self._duplicate(url)
            if date is not None and (code := date_code(date_text, date, self.options)):
                codes.append(code)
            if not is_lower_frequency(text_of(change_frequency)):
                codes.append("P423")
            if is_any_empty:
                codes.append("P432")
            if any(not _BITS[code] & self.passed for code in codes):
                return [], position, False, False
            self._skip(url, codes)
            number = parse_priority(text_of(priority)) if priority.strip() else None
            self.stats.count(
                None if date is None else microseconds(date), None if number is None else float(number), False
            )
            position = match.end()
        return [], position, may_go_on(buffer, position), False

    def take_lines(self, buffer: bytes, position: int, takes_fields: bool, /) -> tuple[int, int, int]:
        """Skip lines that are blank, or URLs without problems; see `plain.CheckingReader`."""
        count = 0
        while match := next_url_line(buffer, position):
            if match[1]:
                url = match[1].decode()
                codes = url_codes(url, self.options) + self._duplicate(url)
                if any(not _BITS[code] & self.passed for code in codes):
                    break
                self._skip(url, codes)
                self.stats.count(None, None, False)
            position = match.end()
            count += 1
        return position, count, 0

    def skips(self, entry: Element, url: str, looked_for: int) -> bool:
        """Skip an entry of the general scanner that has a page with this URL. Return False if it may have a problem.

        `looked_for` are the bits of the codes that apply to such entries. This reader in plain Python skips only pages
        that have nothing but a URL.
        """
        if entry.name != "url" or entry.fields.keys() - {"loc"} or entry.children:
            return False
        codes = [code for code in url_codes(url, self.options) + self._duplicate(url) if _BITS[code] & looked_for]
        if any(not _BITS[code] & self.passed for code in codes):
            return False
        self._skip(url, codes)
        self.stats.count(None, None, False)
        return True

    def stop_wanting(self) -> None:
        """Stop no more at incomplete sets."""
        self.wanted = None

    def _skip(self, url: str, codes: list[str]) -> None:
        """Remember the URL of an entry that is skipped, and count its codes."""
        for code in codes:
            self.counts[code] = self.counts.get(code, 0) + 1
        if self.table is not None:
            self.table.add(url, self.number)
        self.has_pages = True

    def _duplicate(self, url: str) -> list[str]:
        first = -1 if self.table is None else self.table.find(url)
        return [] if first < 0 else ["P418" if first == self.number else "P419"]


class SurveyOff(PureSurvey):
    """Stop at every entry, for rules that the survey does not know. It is slower, and nothing is missed."""

    def take(self, grammar: Grammar, buffer: bytes, position: int, /) -> Taken:
        """Take no entry."""
        return [], position, False, False

    def take_lines(self, buffer: bytes, position: int, takes_fields: bool, /) -> tuple[int, int, int]:
        """Take no line."""
        return position, 0, 0

    def skips(self, entry: Element, url: str, looked_for: int) -> bool:
        """Skip no entry."""
        return False


class Surveyors(NamedTuple):
    """Classes that belong together: a table and its survey use the same hashes."""

    survey: type[PureSurvey]
    url_table: type[PureURLTable]
    cluster_sums: type[PureClusterSums]


PURE_SURVEYORS = Surveyors(PureSurvey, PureURLTable, PureClusterSums)

if TYPE_CHECKING or not IS_COMPILED:
    SURVEYORS = PURE_SURVEYORS
else:
    from usp.scan import _general_check, _seen, _survey

    _general_check.bind()
    _survey.bind()
    SURVEYORS = Surveyors(_survey.PlainSurvey, _seen.URLTable, _seen.ClusterSums)
