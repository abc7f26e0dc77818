"""L: dates, of entries and of sitemaps as a whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from usp.check.rules.rule import (
    ERROR,
    PAGES_AND_SITEMAPS,
    SURVEYED_BY_CODE,
    WARNING,
    EntryRule,
    Finding,
    Rule,
    SitemapRule,
)
from usp.check.subjects import Entry, SitemapCheck
from usp.scan import (
    Element,
    date_code,
    microseconds,
    parse_date,
    unescape,
)

__all__ = ["RULES", "has_passed", "is_shared_by_most", "w3c_form"]

#: Clocks of servers may differ by this much.
CLOCK_SKEW = timedelta(minutes=5)
_BUILD_TIME = timedelta(hours=1)  # making a sitemap, and caching it, may take this long
_MICROSECOND = timedelta(microseconds=1)
_DIGIT = re.compile(r"\d", re.ASCII)
_DIGITS_OF_DAY = 8  # in a year, a month and a day
_LATEST_END = (24 + 12) * 3_600_000_000  # microseconds: in the last time zone a day ends 12 hours after it does in UTC


def w3c_form(text: str, date: datetime) -> str:
    """Return a date as https://www.w3.org/TR/NOTE-datetime writes it, with a time if the text states one.

    A time needs a zone there. If the text has no zone, only its author knows it.
    """
    has_time = (
        ":" in text
        or date.tzinfo is not None
        or date.time() != datetime.min.time()
        or len(_DIGIT.findall(text)) > _DIGITS_OF_DAY
    )
    if not has_time:
        return date.date().isoformat()
    return date.isoformat() if date.tzinfo is not None else f"{date.isoformat()}+hh:mm"


def has_passed(date: datetime, now: datetime) -> bool:
    """Return whether a time has passed. Without a zone, its whole day must have passed in every time zone."""
    return microseconds(date) + (0 if date.tzinfo is not None else _LATEST_END) < microseconds(now)


def is_shared_by_most(count: int, sitemap: SitemapCheck) -> bool:
    """Return whether enough entries state a value to judge them together.

    News sitemaps are exempt: they list what is new.
    """
    stats = sitemap.stats
    is_news = stats.stories > stats.entries / 2
    return count >= 10 and count >= 0.9 * stats.entries and not is_news


def _bad_date(code: str) -> Callable[[Entry], Finding | None]:
    """Build the rule for one code: report the first date of an entry that has this problem."""

    def find(entry: Entry) -> Finding | None:
        if entry.bad_dates is None:  # each of these rules asks
            entry.bad_dates = list(_bad_dates_of(entry))
        for found, element, name, where in entry.bad_dates:
            if found == code and (date := parse_date(unescape(text := element.get(name)))) is not None:
                return Finding(element.place_of(name), text, where, {"iso": w3c_form(unescape(text), date)})
        return None

    return find


def _bad_dates_of(entry: Entry) -> Iterator[tuple[str, Element, str, str]]:
    """Yield the code of each date of an entry that has one, the element, the name of the field, and how to show it."""
    for element, name, where in _dates_of(entry):
        text = element.get(name)
        date = parse_date(unescape(text)) if text else None
        if date is not None and (code := date_code(unescape(text), date, entry.context.options)):
            yield code, element, name, where


def _dates_of(entry: Entry) -> Iterator[tuple[Element, str, str]]:
    """Yield the dates of an entry: the element that has it, the name of its field, and how messages show it."""
    yield entry.element, "lastmod", "<lastmod>"
    if entry.news is not None:
        yield entry.news, "publication_date", "<news:publication_date>"
    for video in entry.videos:
        yield video, "publication_date", "<video:publication_date>"


def _same_date(sitemap: SitemapCheck) -> Finding | None:
    stats = sitemap.stats
    if not is_shared_by_most(stats.dated, sitemap) or stats.earliest != stats.latest or _is_build_date(sitemap):
        return None
    return Finding(None, values=sitemap.share(stats.dated))


def _build_date(sitemap: SitemapCheck) -> Finding | None:
    return Finding(None, values=sitemap.share(sitemap.stats.dated)) if _is_build_date(sitemap) else None


def _is_build_date(sitemap: SitemapCheck) -> bool:
    """Return whether all dates are in the hour before the sitemap was made, or just its day."""
    stats, transport = sitemap.stats, sitemap.transport
    if not is_shared_by_most(stats.dated, sitemap) or transport is None:
        return False
    for made in filter(None, (transport.fetched_at, transport.last_modified)):
        day = datetime(made.year, made.month, made.day, tzinfo=UTC)
        if stats.earliest == stats.latest == microseconds(day):
            return True
        moment = microseconds(made)  # integers, as adding to the first or the last year would overflow
        earliest, latest = moment - _BUILD_TIME // _MICROSECOND, moment + CLOCK_SKEW // _MICROSECOND
        if earliest <= stats.earliest and stats.latest <= latest:
            return True
    return False


RULES = (
    SitemapRule(
        "L301",
        WARNING,
        "{count} of {total} entries have the same lastmod; write when each page last changed",
        _same_date,
    ),
    Rule("L302", ERROR, '"{text}" in {where} is not a date; write {form}'),
    EntryRule(
        "L303",
        WARNING,
        '"{text}" in {where} is in the future; write when it really was',
        _bad_date("L303"),
        PAGES_AND_SITEMAPS,
        SURVEYED_BY_CODE,
    ),
    SitemapRule(
        "L304",
        WARNING,
        "{count} of {total} entries were last modified when the sitemap was made; write when each page last changed",
        _build_date,
    ),
    EntryRule(
        "L305",
        WARNING,
        '"{text}" in {where} is a date that search engines may not read; write it as {iso}',
        _bad_date("L305"),
        PAGES_AND_SITEMAPS,
        SURVEYED_BY_CODE,
    ),
    EntryRule(
        "L307",
        WARNING,
        '"{text}" in {where} is before 1995; write when the page last changed, or leave it out',
        _bad_date("L307"),
        PAGES_AND_SITEMAPS,
        SURVEYED_BY_CODE,
    ),
    EntryRule(
        "L306",
        WARNING,
        '"{text}" in {where} is a time without a zone; add Z or +hh:mm',
        _bad_date("L306"),
        PAGES_AND_SITEMAPS,
        SURVEYED_BY_CODE,
    ),
)
