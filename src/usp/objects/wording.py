"""Numbers with their nouns, as messages write them. All plurals are made here."""

from __future__ import annotations

__all__ = ["plural", "plural_noun"]


def plural_noun(number: float, noun: str) -> str:
    """Return a noun in the form that a number asks for: "page" for 1, else "pages"."""
    return noun if number == 1 else f"{noun}s"


def plural(number: int, noun: str) -> str:
    """Return a number with its noun: 1 page, 48,201 pages."""
    return f"{number:,} {plural_noun(number, noun)}"
