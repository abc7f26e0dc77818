"""The codes of problems: how severe each is, and its message. Codes are stable: a code never changes its meaning.

The rules of `usp.check.rules` define them. `CODES` is the table of all rules. It is put together when it is first used,
because importing the rules takes time and most users never see a problem.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

__all__ = ["CODES", "GROUPS", "Code", "Severity"]


class Severity(IntEnum):
    """How much a problem matters to those who read the sitemap; a worse one is greater."""

    INFO = 1  # worth knowing; nothing is lost
    WARNING = 2  # some readers skip it, or read only a part
    ERROR = 3  # readers refuse, skip or misread it

    def __str__(self) -> str:
        return self.name.lower()

    @property
    def noun(self) -> str:
        """What one problem of this severity is called: "error", "warning" or "notice"."""
        return "notice" if self is Severity.INFO else str(self)


class Code(NamedTuple):
    """The severity and the message of a code."""

    severity: Severity
    message: str


#: The first letter of a code -> the subject of these codes.
GROUPS = {
    "X": "XML syntax",
    "E": "Encodings",
    "L": "Dates",
    "P": "The sitemaps.org protocol, its extensions, feeds and texts",
    "U": "URLs",
    "N": "News",
    "I": "Images",
    "V": "Videos",
    "H": "Languages (hreflang)",
    "R": "robots.txt and discovery",
    "T": "Transport",
    "W": "Web pages (usp check --probe)",
    "C": "Limits that cut a tree or a check",
}

if TYPE_CHECKING:
    CODES: dict[str, Code]


def __getattr__(name: str) -> dict[str, Code]:
    """Put together `CODES` when it is first used."""
    if name != "CODES":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from usp.check.rules import RULES  # the one import from the rooms above: the rules own their codes

    global CODES
    CODES = {code: Code(rule.severity, rule.message) for code, rule in RULES.items()}
    return CODES
