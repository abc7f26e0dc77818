"""Dates that are not as they should be: how they are to be written instead, and whether their time has come."""

from __future__ import annotations

import re
from datetime import datetime

from usp.scan.columns import microseconds

__all__ = ["has_passed", "w3c_form"]

_DIGIT = re.compile(r"\d", re.ASCII)
_DIGITS_OF_DAY = 8  # of a year, a month and a day
_LATEST_END = (24 + 12) * 3_600_000_000  # in microseconds: a day ends there 12 hours after it does in UTC


def w3c_form(text: str, date: datetime) -> str:
    """A date as https://www.w3.org/TR/NOTE-datetime has it, with the time, if the text states one.

    A time needs a zone there. Where the text has none, it is the writer who knows it.
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
    """Whether a time has passed. One without a zone may be anywhere on Earth, at any time of its day."""
    return microseconds(date) + (0 if date.tzinfo is not None else _LATEST_END) < microseconds(now)
