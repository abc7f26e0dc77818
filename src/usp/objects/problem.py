"""Problems: what is wrong with a sitemap that usp read all the same.

You get a `Problem` from `sitemap.problems`. A `ProblemLog` collects the problems of one document while it is read: it
keeps the first few of each code and counts the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from usp.objects import codes
from usp.objects.codes import Severity
from usp.objects.wording import plural, printable, shortened

__all__ = ["UNLOGGED", "At", "Place", "Problem", "ProblemLog", "Problems", "printable", "shortened"]

#: How many problems of one code are kept for each sitemap. The rest are only counted.
KEPT_PER_CODE = 20

_MAX_CODES = 5  # in a `repr()`


class Place(NamedTuple):
    """A place in a document. Both numbers start at 1, and columns count characters."""

    line: int
    column: int


#: Where a problem is: a place, an offset, a function that finds the offset, or None for the document as a whole.
At = int | Place | Callable[[], int] | None


@dataclass(frozen=True, slots=True, repr=False)
class Problem:
    """Something that is wrong with a sitemap: its code, what to do about it, and where it is."""

    code: str
    """The stable code of this kind of problem, such as "X102". `usp check --explain X102` describes it."""
    message: str
    """What is wrong, and what to do."""
    url: str
    """The URL of the sitemap."""
    line: int | None = None
    """The line in the document, from 1. None if the problem concerns the sitemap as a whole."""
    column: int | None = None
    """The column on that line, from 1, in characters."""
    text: str = ""
    """The wrong text in the document: at most 200 characters, with invisible ones escaped."""

    @property
    def severity(self) -> Severity:
        """How much the problem matters: `Severity.ERROR`, `Severity.WARNING` or `Severity.INFO`."""
        return codes.CODES[self.code].severity

    def __str__(self) -> str:
        return f"{self.place}: {self.severity}: {self.code} {self.message}"

    def __repr__(self) -> str:
        url = printable(shortened(self.url))
        place = url + self.place.removeprefix(self.url)
        return f"<Problem {self.code} {place}: {printable(shortened(self.message))}>"

    @property
    def place(self) -> str:
        """The URL, the line and the column, as far as they are known: http://example.org/sitemap.xml:3:17."""
        return ":".join([self.url, *(str(number) for number in (self.line, self.column) if number is not None)])

    def to_dict(self) -> dict[str, object]:
        """Return the problem as a dictionary of its fields and its severity."""
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
    """The problems of one sitemap: a tuple that keeps only the first few of each code.

    `counts` is the number of problems of each code, including those that are not kept.
    """

    counts: Counter[str]

    def __new__(cls, problems: Iterable[Problem] = (), counts: Counter[str] | None = None) -> Problems:
        """Make the tuple. Without `counts`, the given problems are all there are."""
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

    def __repr__(self) -> str:
        codes = [
            f"{code} {count:,} times" if count > 1 else code for code, count in self.counts.most_common(_MAX_CODES)
        ]
        more = len(self.counts) - len(codes)
        listed = ", ".join([*codes, *([plural(more, "more code")] if more > 0 else [])])
        return (
            f"<Problems: {plural(self.counts.total(), 'problem') if self.counts else 'none'}{listed and f': {listed}'}>"
        )

    def and_more(self, others: Problems) -> Problems:
        """Return these problems followed by others of the same sitemap."""
        return Problems((*self, *others), self.counts + others.counts)


class ProblemLog:
    """Collects the problems of one document.

    The parser that reads the document sets `locate`, which finds the places of offsets, `encoding`, `size`, the number
    of bytes after inflating, and `is_cut`, whether usp read only a part. Places are found only for the problems that
    are kept.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.counts: Counter[str] = Counter()
        self.locate: Callable[[Iterable[int]], Mapping[int, Place]] = lambda offsets: {}
        self.encoding = "utf-8"
        self.size = 0
        self.is_cut = False
        self._kept: list[tuple[str, str, int | Place | None, str]] = []  # codes, messages, places or offsets, and texts

    def add(self, code: str, at: At = None, *, text: str = "", where: str = "", **values: object) -> None:
        """Log a problem at a place or an offset. `text`, `where` and `values` fill the message of the code."""
        self.counts[code] += 1
        if self.counts[code] > KEPT_PER_CODE:
            return
        if callable(at):
            at = at()
        text, where = printable(shortened(text)), printable(shortened(where))
        shown = {name: printable(shortened(str(value))) for name, value in values.items()}
        message = codes.CODES[code].message.format_map(_Values(shown, text=text, where=where))
        self._kept.append((code, message, at, text))

    def add_ahead(self, code: str, offset: int) -> None:
        """Log a problem of the text, which is decoded ahead of its entries: this may be in one that comes later."""
        self.add(code, offset)

    def keeps(self, code: str) -> bool:
        """Return whether the next problem of this code is kept. If not, call `count`, which needs no text."""
        return self.counts[code] < KEPT_PER_CODE

    def count(self, code: str, number: int, at: At = None) -> None:
        """Count problems of a code that are not kept; `at` is where the last of them is."""
        self.counts[code] += number

    def offsets_of(self, code: str) -> list[int]:
        """Return the offsets of the problems of a code that were kept, of those that have one."""
        return [at for kept, _, at, _ in self._kept if kept == code and isinstance(at, int)]

    def recode(self, code: str, better: str | None) -> None:
        """Give the problems of a code another one, with its message for the same text; or drop them."""
        number = self.counts.pop(code, 0)
        changed = [kept for kept in self._kept if kept[0] == code]
        self._kept = [kept for kept in self._kept if kept[0] != code]
        if better is not None and number:
            for _, _, at, text in changed:
                self.add(better, at, text=text)
            self.counts[better] += number - len(changed)

    def problems(self) -> Problems:
        """Return the problems that were kept, sorted by place. Those without a place come first."""
        offsets = [at for _, _, at, _ in self._kept if isinstance(at, int)]
        places = self.locate(offsets) if offsets else {}
        found = []
        for code, message, at, text in self._kept:
            line, column = (places.get(at) if isinstance(at, int) else at) or (None, None)
            found.append(Problem(code, message, self.url, line, column, text))
        found.sort(key=lambda problem: (problem.line or 0, problem.column or 0))
        return Problems(found, Counter(self.counts))


class _Values(dict[str, str]):
    """The values of a message. A name that is missing stays in the message: no document may raise an error."""

    def __missing__(self, name: str) -> str:
        return f"{{{name}}}"


class _Unlogged(ProblemLog):
    """A log that drops every problem, for reading a document whose problems nobody asked for."""

    def add(self, code: str, at: At = None, *, text: str = "", where: str = "", **values: object) -> None:
        """Drop the problem."""

    def keeps(self, code: str) -> bool:
        """Return False: no problem is kept."""
        return False

    def count(self, code: str, number: int, at: At = None) -> None:
        """Drop the problems."""


UNLOGGED = _Unlogged("")
