"""Dates as sites write them; never a guess.

Each format is one function that returns a datetime, or None if the text is not in its format. `parse_date` tries them
in order. A date that is ambiguous (08/05/2024) or does not exist (2012-06-31) is None. Without a time zone the datetime
is naive. A year or month alone means its first day.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from functools import lru_cache

__all__ = ["EARLIEST", "parse_date"]

#: Nothing on the web was modified before.
EARLIEST = datetime(1995, 1, 1, tzinfo=UTC)

_MAX_LENGTH = 80
_DIGITS_OF_DATES = (4, 8, 12, 14)  # if there is nothing else: a year, a day, and a day with hours and minutes

# https://www.w3.org/TR/NOTE-datetime, and what sites make of it: a space for the T, one digit for two,
# slashes for dashes, no colon in the zone, AM and PM.
_ISO8601 = re.compile(
    r"""(?P<year>\d{4})
        (?:(?P<dash>[-/.])(?P<month>\d{1,2})
           (?:(?P=dash)(?P<day>\d{1,2})
              (?:(?P<day_zone>Z|[+-]\d{2}:\d{2})|[Tt_\s]\s*(?P<time>\d{1,2}(?::\d{2}(?::\d{2}(?:[.,]\d+)?)?)?)\s*(?P<half>[AaPp][Mm])?\s*(?P<zone>[A-Za-z]{1,4}|[+-]\d{1,2}(?::?\d{2})?)?)?
           )?
        )?""",
    re.VERBOSE | re.ASCII,
)
# The two forms of nearly all dates, in a sitemap and in a feed, which are read faster.
_USUAL = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d)?)?", re.ASCII)
_USUAL_MAIL = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (\d\d) (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) (\d{4}) "
    r"(\d\d):(\d\d):(\d\d) ([+-]\d{4}|GMT)",
    re.ASCII,
)
_ISO8601_BASIC = re.compile(
    r"(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})(?:T?(?P<time>\d{4}(?:\d{2}(?:[.,]\d+)?)?)(?P<zone>Z|[+-]\d{2}:?(?:\d{2})?)?)?",
    re.ASCII,
)
_ISO8601_WEEK = re.compile(r"(\d{4})-W(\d{2})-([1-7])", re.ASCII)
_WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*(?:[,.]\s*|\s+))?"
_CLOCK = r"(?P<time>\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?)(?:\s*(?P<half>[AP]M))?"
_ZONE = r"(?P<zone>(?:GMT|UTC?)?[+-]\d{1,2}:?\d{2}|[A-Za-z]{1,5})"
# https://www.rfc-editor.org/rfc/rfc2822#section-3.3: Wed, 08 May 2024 10:00:00 +0200
_RFC2822 = re.compile(
    rf"{_WEEKDAY}(?P<day>\d{{1,2}})[\s-]+(?P<month>[a-z]{{3,9}})\.?[\s,-]+(?P<year>\d{{4}}|\d{{2}})"
    rf"(?:,?\s+{_CLOCK}(?:\s*{_ZONE})?)?(?:\s*\([^)]*\))?",
    re.IGNORECASE | re.ASCII,
)
# What programs print: C's asctime (Wed May  8 10:00:00 2024) and JavaScript's Date (Wed May 08 2024 10:00:00 GMT+0200).
_MONTH_FIRST = re.compile(
    rf"{_WEEKDAY}(?P<month>[a-z]{{3,9}})\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+"
    rf"(?:(?P<year>\d{{4}})(?:,?\s+{_CLOCK}(?:\s*{_ZONE})?)?|(?P<time2>\d{{1,2}}:\d{{2}}:\d{{2}})\s+(?:(?P<zone2>[A-Z]{{1,4}})\s+)?(?P<year2>\d{{4}}))"
    r"(?:\s*\([^)]*\))?",
    re.IGNORECASE | re.ASCII,
)
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
# https://www.rfc-editor.org/rfc/rfc2822#section-4.3; military letters other than Z are worthless, as it says there.
_ZONES = {"z": 0, "ut": 0, "utc": 0, "gmt": 0}
_ZONES |= {"est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7}
_ZONES |= {"wet": 0, "west": 1, "cet": 1, "cest": 2, "eet": 2, "eest": 3, "msk": 3, "jst": 9, "kst": 9}
_OFFSET = re.compile(r"(?:GMT|UTC?)?([+-])(\d{1,2}):?(\d{2})?", re.IGNORECASE | re.ASCII)


@lru_cache(maxsize=4_096)  # one sitemap has few distinct dates
def parse_date(text: str) -> datetime | None:
    """Return the date that a text states in any of the formats here, or None."""
    text = text.strip()
    if not text or len(text) > _MAX_LENGTH or (text.isdecimal() and len(text) not in _DIGITS_OF_DATES):
        return None
    return next((found for parse in _FORMATS if (found := _attempt(parse, text)) is not None), None)


def _attempt(parse: Callable[[str], datetime | None], text: str) -> datetime | None:
    """Parse a text in one format. Return None for a 31st of June or an hour 25."""
    try:
        return parse(text)
    except (ValueError, OverflowError):
        return None


def _usual(text: str) -> datetime | None:
    if len(text) == 4 and text.isascii() and text.isdecimal():
        return datetime(int(text), 1, 1)
    return datetime.fromisoformat(text) if _USUAL.fullmatch(text) else None


def _usual_mail(text: str) -> datetime | None:
    if not (match := _USUAL_MAIL.fullmatch(text)):
        return None
    day, month, year, hour, minute, second, zone = match.groups()
    return datetime(int(year), _month(month), int(day), int(hour), int(minute), int(second), 0, _zone(zone))


def _iso8601(text: str) -> datetime | None:
    match = _ISO8601.fullmatch(text)
    if not match:
        return None
    day = date(int(match["year"]), int(match["month"] or 1), int(match["day"] or 1))
    return _at(day, match["time"] or "0:00", match["zone"] or match["day_zone"], match["half"])


def _iso8601_basic(text: str) -> datetime | None:
    match = _ISO8601_BASIC.fullmatch(text)
    if not match:
        return None
    day = date(int(match["year"]), int(match["month"]), int(match["day"]))
    digits = match["time"]
    clock = ":".join(filter(None, (digits[:2], digits[2:4], digits[4:]))) if digits else None
    return _at(day, clock, match["zone"])


def _iso8601_week(text: str) -> datetime | None:
    match = _ISO8601_WEEK.fullmatch(text)
    return datetime.combine(date.fromisocalendar(*map(int, match.groups())), time()) if match else None


def _rfc2822(text: str) -> datetime | None:
    match = _RFC2822.fullmatch(text)
    if not match:
        return None
    year = int(match["year"])
    if len(match["year"]) == 2:
        year += 2000 if year < 50 else 1900  # https://www.rfc-editor.org/rfc/rfc2822#section-4.3
    day = date(year, _month(match["month"]), int(match["day"]))
    return _at(day, match["time"], _known_zone(match["zone"]), match["half"])


def _month_first(text: str) -> datetime | None:
    match = _MONTH_FIRST.fullmatch(text)
    if not match:
        return None
    day = date(int(match["year"] or match["year2"]), _month(match["month"]), int(match["day"]))
    return _at(day, match["time"] or match["time2"], _known_zone(match["zone"] or match["zone2"]), match["half"])


@lru_cache(maxsize=64)
def _month(name: str) -> int:
    name = name.lower()
    for number, month in enumerate(_MONTHS, 1):
        if name in (month, month[:3], month[:4]):
            return number
    raise ValueError(f"no month is called {name}")


def _at(day: date, clock: str | None, zone: str | None, half: str | None = None) -> datetime:
    """Return a time of a day; 24:00 is midnight at its end. Raise ValueError for impossible times."""
    if clock is None:
        return datetime.combine(day, time())
    hours, minutes, seconds = [*clock.replace(",", ".").split(":"), "0", "0"][:3]
    whole, _, fraction = seconds.partition(".")
    hour, minute, second = int(hours), int(minutes), int(whole)
    microsecond = int(f"{fraction[:6]:0<6}")
    if half:
        # Some programs print "14:05 PM"; it can mean one thing only.
        if hour == 12 and half.lower() == "am":
            hour = 0
        elif hour < 12 and half.lower() == "pm":
            hour += 12
    next_day = (hour, minute, second) == (24, 0, 0)
    if second == 60:
        second, microsecond = 59, 0  # a leap second: the nearest that Python has
    moment = datetime.combine(day, time(0 if next_day else hour, minute, second, microsecond, _zone(zone)))
    return moment + timedelta(days=1) if next_day else moment


def _known_zone(text: str | None) -> str | None:
    """Return a zone, None if its name is unknown: the date is naive then, as RFC 2822, 4.3 asks."""
    return None if text and text.isalpha() and text.lower() not in _ZONES else text


@lru_cache(maxsize=256)
def _zone(text: str | None) -> timezone | None:
    if text is None:
        return None
    if (name := text.lower()) in _ZONES:
        return timezone(timedelta(hours=_ZONES[name])) if _ZONES[name] else UTC
    match = _OFFSET.fullmatch(text)
    if not match:
        raise ValueError(f"no zone is called {text}")
    offset = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
    return timezone(-offset if match[1] == "-" else offset) if offset else UTC


_FORMATS = (_usual, _usual_mail, _iso8601, _iso8601_basic, _iso8601_week, _rfc2822, _month_first)
