"""Problems: what is wrong with a sitemap that was read all the same.

`Problem` is what users hold. `ProblemLog` collects them while one document is read: it keeps the first few of each
code, counts the rest, and finds out the places of those that it kept when they are asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from usp.objects import codes
from usp.objects.codes import Severity

__all__ = ["UNLOGGED", "At", "Place", "Problem", "ProblemLog", "Problems", "printable", "shortened"]

#: How many problems of one code a sitemap keeps; the rest are counted only.
KEPT_PER_CODE = 20

_MAX_SHOWN = 200


def shortened(text: str) -> str:
    """The text as it stands in a message: cut, if it is long."""
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


def printable(text: str) -> str:
    """The text with everything escaped that is not a visible character or a plain space."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


class Place(NamedTuple):
    """A place in a document: both numbers start at 1, and columns count characters."""

    line: int
    column: int


#: Where a problem is: at a place, at an offset, at one yet to be found out, or nowhere in particular.
At = int | Place | Callable[[], int] | None


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: a stable code, what to do about it, and where it is.

    `url` is the sitemap's. `line` and `column` are None for what concerns the sitemap as a whole. `text` is what
    is wrong as it stands in the document, cut if it is long, with everything escaped that is not visible.
    """

    code: str
    message: str
    url: str
    line: int | None = None
    column: int | None = None
    text: str = ""

    @property
    def severity(self) -> Severity:
        """How much it matters."""
        return codes.CODES[self.code].severity

    def __str__(self) -> str:
        place = [str(number) for number in (self.line, self.column) if number is not None]
        return f"{':'.join([self.url, *place])}: {self.severity}: {self.code} {self.message}"

    def to_dict(self) -> dict[str, object]:
        """The problem as a plain dictionary."""
        return {
            "code": self.code,
            "severity": str(self.severity),
            "message": self.message,
            "url": self.url,
            "line": self.line,
            "column": self.column,
            "text": self.text,
        }


class Problems(tuple[Problem, ...]):
    """Problems of one sitemap, of which not all may have been kept; `counts` says how many there are of each code."""

    counts: Counter[str]

    def __new__(cls, problems: Iterable[Problem] = (), counts: Counter[str] | None = None) -> Problems:
        """The problems that were kept; by default they are all."""
        self = super().__new__(cls, problems)
        self.counts = Counter(problem.code for problem in self) if counts is None else counts
        return self

    def __reduce__(self) -> tuple[type[Problems], tuple[tuple[Problem, ...], Counter[str]]]:
        return Problems, (tuple(self), self.counts)

    def __eq__(self, other: object) -> bool:
        is_same = not isinstance(other, Problems) or self.counts == other.counts
        return is_same and super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def and_more(self, others: Problems) -> Problems:
        """These and others of the same sitemap."""
        return Problems((*self, *others), self.counts + others.counts)


class ProblemLog:
    """The problems of one document, in the order they were met.

    Whoever reads the document says how the places of offsets are found out, with `locate`, and what it found the
    document to be: its `encoding`, and its `size` in bytes, inflated.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.counts: Counter[str] = Counter()
        self.locate: Callable[[Iterable[int]], Mapping[int, Place]] = lambda offsets: {}
        self.encoding = "utf-8"
        self.size = 0
        self._kept: list[tuple[str, str, int | Place | None, str]] = []  # codes, messages, where, and texts

    def add(self, code: str, at: At = None, *, text: str = "", where: str = "", **values: object) -> None:
        """Note a problem at a place, or at an offset into the text of the document, be it one yet to be found out."""
        self.counts[code] += 1
        if self.counts[code] > KEPT_PER_CODE:
            return
        if callable(at):
            at = at()
        text, where = printable(shortened(text)), printable(shortened(where))
        shown = {name: printable(shortened(str(value))) for name, value in values.items()}
        message = codes.CODES[code].message.format(text=text, where=where, **shown)
        self._kept.append((code, message, at, text))

    def problems(self) -> Problems:
        """What was kept, by place; what has none comes first."""
        offsets = [at for _, _, at, _ in self._kept if isinstance(at, int)]
        places = self.locate(offsets) if offsets else {}
        found = []
        for code, message, at, text in self._kept:
            line, column = (places.get(at) if isinstance(at, int) else at) or (None, None)
            found.append(Problem(code, message, self.url, line, column, text))
        found.sort(key=lambda problem: (problem.line or 0, problem.column or 0))
        return Problems(found, Counter(self.counts))


class _Unlogged(ProblemLog):
    """A log that notes nothing, for reading what was or will be checked at another time."""

    def add(self, code: str, at: At = None, *, text: str = "", where: str = "", **values: object) -> None:
        """Note nothing."""


UNLOGGED = _Unlogged("")
