"""How objects and messages say things: plurals, texts of sites made safe, and the one line of a `repr()`.

All plurals are made here.
"""

from __future__ import annotations

from datetime import datetime

__all__ = ["described", "duration", "moment", "plural", "plural_noun", "printable", "quoted", "seconds", "shortened"]

_MAX_SHOWN = 200
_MAX_QUOTED = 60


def plural_noun(number: float, noun: str) -> str:
    """Return a noun in the form that a number asks for: "page" for 1, else "pages"."""
    return noun if number == 1 else f"{noun}s"


def plural(number: int, noun: str) -> str:
    """Return a number with its noun: 1 page, 48,201 pages."""
    return f"{number:,} {plural_noun(number, noun)}"


def shortened(text: str, most: int = _MAX_SHOWN) -> str:
    """Return a text for a message: only its first 200 characters if it is longer."""
    return text if len(text) <= most else f"{text[:most]}…"


def printable(text: str) -> str:
    """Return the text with every character escaped that is neither visible nor a plain space."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def described(value: object, name: str, *facts: str) -> str:
    """Return the one line of a `repr()`: the class, what the value is called, and the facts that are not empty."""
    said = ", ".join(printable(shortened(fact)) for fact in facts if fact)
    return f"<{' '.join(filter(None, (type(value).__name__, printable(shortened(name)))))}{said and f': {said}'}>"


def quoted(text: str | None) -> str:
    """Return a text of a site in quotes, shortened; nothing for None."""
    return f'"{printable(shortened(text, _MAX_QUOTED))}"' if text else ""


def moment(what: str, date: datetime | None) -> str:
    """Return a date with a word before it, such as "modified 2026-05-08"; nothing for None."""
    if date is None:
        return ""
    is_day = date.tzinfo is None and not (date.hour or date.minute or date.second or date.microsecond)
    return f"{what} {date.date() if is_day else date.isoformat(sep=' ', timespec='seconds')}"


def seconds(number: float) -> str:
    """Return a number of seconds: 600 s."""
    return f"{number:,.3g} s" if number < 100 else f"{number:,.0f} s"


def duration(number: float) -> str:
    """Return a number of seconds in the unit that people would use: 90 s, 10 min, 24 h."""
    if number < 600:
        return seconds(number)
    return f"{number / 60:,.0f} min" if number < 7200 else f"{number / 3600:,.3g} h"
