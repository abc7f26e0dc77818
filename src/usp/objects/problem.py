"""Problems: what was wrong inside a document that was read all the same.

`Problem` is what users hold. `ProblemLog` collects them while one document is read: it keeps the first few of each
code, counts the rest, and asks for a line number only for those that it keeps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["PROBLEMS", "UNLOGGED", "Problem", "ProblemLog", "printable", "shortened"]

#: How many problems of one code a sitemap keeps; the rest are counted only.
KEPT_PER_CODE = 20

#: Every code and its message. Codes are stable: a code never changes its meaning.
PROBLEMS: dict[str, str] = {
    # X: XML syntax
    "X101": "something stands before the document; it must be the very first thing",
    "X102": 'bare "&" in {where}; write "&amp;"',
    "X103": 'unknown entity "{text}" in {where}; write the character itself',
    "X104": 'stray "<" in text; write "&lt;"',
    "X105": 'malformed tag "{text}"',
    "X106": "</{text}> closes nothing",
    "X107": "<{text}> is never closed",
    "X108": "control character in {where}",
    "X109": "NUL bytes in the document",
    "X110": "a DOCTYPE was skipped; a sitemap needs none",
    "X111": "another document starts after the first one ended; only one may stand in a file",
    "X112": '"{text}" is never closed',
    "X113": "the document is cut off; it ends inside <{text}>",
    "X114": "nested deeper than {text} elements; what lies below was passed over",
    "X115": "{where} is longer than {text} bytes and was left out",
    "X116": "a DOCTYPE that declares entities of its own stands inside the document; what follows it was left out",
    # E: encodings
    "E201": 'the document says its encoding is "{text}", but it is not; read as {where}',
    "E202": 'the encoding "{text}" is not known; read as UTF-8',
    "E203": "bytes in {where} that are not {text}; read as Windows-1252",
    # L: dates
    "L301": '"{text}" in {where} is not a date; write YYYY-MM-DD or YYYY-MM-DDThh:mm:ss+hh:mm',
    # P: the sitemaps.org protocol and its extensions
    "P401": "<{where}> has no <loc>; the entry was left out",
    "P402": "a <sitemap> stands in a urlset; it belongs into a sitemapindex",
    "P403": "a <url> stands in a sitemapindex; it belongs into a urlset",
    "P404": "the URL stands in <{where}> itself; put it into a <loc>",
    "P405": "a second <loc> in one <{where}>; read as an entry of its own",
    "P406": 'priority "{text}" is not a number from 0.0 to 1.0; 0.5 is used',
    "P407": 'change frequency "{text}" is not known; "always" is used',
    "P408": "a news story without {where}; it was left out",
    "P409": "an image without a <loc>; it was left out",
    "P410": 'the tag <{text}> is not in the right case; write "{where}"',
    "P411": "a feed entry without a link; it was left out",
    "P412": 'a line that is no URL: "{text}"',
    "P413": "a <loc> outside any <{where}>; read as an entry of its own",
    "P414": '"{text}" in {where} is not a value that it may have; it was left out',
    # U: URLs
    "U501": 'relative URL "{text}" in {where}; a sitemap needs absolute ones',
    "U502": '"{text}" in {where} is not an http or https URL; it was left out',
    # R: robots.txt
    "R701": "an HTML page is served in place of robots.txt",
    "R702": 'relative URL "{text}" on a Sitemap line; it must be absolute',
    "R703": "a Sitemap line without a URL",
    "R704": "{text}; sitemaps that only robots.txt names are missing here",
    # C: where a tree was cut at one of its limits
    "C901": "{text}; what follows was left out",
    # T: transport
    "T801": "the gzip data is cut short or damaged; what could be inflated was used",
    "T802": "other data follows the gzip data; it was left out",
    "T803": "the name ends in .gz but the data is not compressed",
    "T804": "the document is larger than the limit; what follows was left out",
    "T805": "the transfer broke off; what came of the document was used",
}

_MAX_SHOWN = 200


def shortened(text: str) -> str:
    """The text as it stands in a message: cut, if it is long."""
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


def printable(text: str) -> str:
    """The text with everything escaped that is not a visible character or a plain space."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong in a document: a stable code, what to do about it, and where it is."""

    code: str
    message: str
    url: str
    line: int | None = None

    def __str__(self) -> str:
        place = self.url if self.line is None else f"{self.url}:{self.line}"
        return f"{place}: {self.code} {self.message}"

    def to_dict(self) -> dict[str, object]:
        """The problem as a plain dictionary."""
        return {"code": self.code, "message": self.message, "url": self.url, "line": self.line}


class ProblemLog:
    """The problems of one document, in the order they were met."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.counts: Counter[str] = Counter()
        self._kept: list[Problem] = []

    def add(self, code: str, line: int | Callable[[], int] | None = None, *, text: str = "", where: str = "") -> None:
        """Note a problem; `line` may be a function, called only if the problem is kept."""
        self.counts[code] += 1
        if self.counts[code] > KEPT_PER_CODE:
            return
        message = PROBLEMS[code].format(text=printable(shortened(text)), where=printable(shortened(where)))
        self._kept.append(Problem(code, message, self.url, line() if callable(line) else line))

    def problems(self) -> tuple[Problem, ...]:
        """What was kept, by line; what has none comes first."""
        return tuple(sorted(self._kept, key=lambda problem: problem.line or 0))


class _Unlogged(ProblemLog):
    """A log that notes nothing, for reading what was or will be checked at another time."""

    def add(self, code: str, line: int | Callable[[], int] | None = None, *, text: str = "", where: str = "") -> None:
        """Note nothing."""


UNLOGGED = _Unlogged("")
