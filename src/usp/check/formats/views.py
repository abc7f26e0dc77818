"""What all formats share: the number of hidden problems, and the names of sitemaps."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from usp.check.report import CheckedSitemap, Report
from usp.objects.problem import Problem, Problems, printable
from usp.objects.wording import plural

__all__ = [
    "Rest",
    "collapsed",
    "file_of",
    "is_told",
    "json_pieces",
    "limited",
    "location",
    "name_of",
    "place_of",
    "rest_by_code",
    "unshown",
]

_BARE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_GOES_ON = re.compile(r"[\w/%?#&=-]|\.\w")  # behind the start of a longer URL
_STANDARD_INPUT = "-"


def json_pieces(value: object) -> Iterator[str]:
    """Yield a value as JSON, in pieces. Only invisible characters are escaped."""
    for piece in json.JSONEncoder(ensure_ascii=False, indent=2).iterencode(value):
        # A line break is between values: those inside texts are escaped already.
        yield (
            piece if piece.isprintable() else "".join(c if c.isprintable() or c == "\n" else _escape(c) for c in piece)
        )
    yield "\n"


def _escape(character: str) -> str:
    return json.dumps(character)[1:-1]


def limited(report: Report, most: int) -> Report:
    """Return a report with at most this many problems: the most severe ones, in their order. Counts stay the same."""
    problems = list(report.problems())
    if len(problems) <= most:
        return report
    ranks = sorted(range(len(problems)), key=lambda position: -problems[position].severity)
    return replace(_with_only(report, set(ranks[:most])), is_limited=True)


def collapsed(report: Report, most: int) -> Report:
    """Return a report with at most this many problems of each code: the first ones. Counts stay the same."""
    met: Counter[str] = Counter()
    chosen = set()
    for position, problem in enumerate(report.problems()):
        met[problem.code] += 1
        if met[problem.code] <= most:
            chosen.add(position)
    return _with_only(report, chosen)


def _with_only(report: Report, chosen: set[int]) -> Report:
    """Return a report with only the problems at these positions. Counts stay the same."""
    sitemaps, position = [], 0
    for sitemap in report.sitemaps:
        kept = [problem for at, problem in enumerate(sitemap.problems, position) if at in chosen]
        position += len(sitemap.problems)
        sitemaps.append(replace(sitemap, problems=Problems(kept, sitemap.problems.counts)))
    return replace(report, sitemaps=tuple(sitemaps))


class Rest(NamedTuple):
    """How many problems of a code are not shown, and where: a sitemap, or how many sitemaps."""

    code: str
    number: int
    where: str


def rest_by_code(report: Report) -> list[Rest]:
    """Return how many problems of each code are not shown, the worst first."""
    numbers: Counter[str] = Counter()
    places: dict[str, list[str]] = {}
    for sitemap in report.sitemaps:
        more = unshown(sitemap)
        numbers += more
        for code in more:
            places.setdefault(code, []).append(name_of(sitemap))
    where = {code: names[0] if len(names) == 1 else plural(len(names), "sitemap") for code, names in places.items()}
    return [Rest(code, numbers[code], where[code]) for code in report.counts() if numbers[code]]


def unshown(sitemap: CheckedSitemap) -> Counter[str]:
    """Count the problems of a sitemap that are not shown, by code."""
    more = sitemap.problems.counts - Counter(problem.code for problem in sitemap.problems)
    return Counter({code: more[code] for code in sorted(more)})


def name_of(sitemap: CheckedSitemap) -> str:
    """Return the name of a sitemap, safe for terminals."""
    return printable(sitemap.name or sitemap.url)


def is_told(problem: Problem, message: str) -> bool:
    """Return whether a message has the text of a problem, and not only as the start of a longer URL."""
    text = problem.text
    at = message.find(text)
    while text and at >= 0 and _GOES_ON.match(message, at + len(text)):
        at = message.find(text, at + 1)
    return at >= 0


def place_of(problem: Problem) -> str:
    """Return the line and column of a problem, or an empty text."""
    return ":".join(str(number) for number in (problem.line, problem.column) if number is not None)


def file_of(sitemap: CheckedSitemap) -> str | None:
    """Return the path of a sitemap; None if it is on a site.

    In a folder, one that is missing has the path where its file would be. What belongs to no file has that of the
    folder.
    """
    if sitemap.is_file:
        return sitemap.name
    return sitemap.name if sitemap.folder and sitemap.name != sitemap.url else sitemap.folder or None


def location(sitemap: CheckedSitemap) -> str:
    """Return a sitemap as a URI reference: the URL of one on a site, the path of a file."""
    if (path := file_of(sitemap)) is None:
        return quote(_BARE_PERCENT.sub("%25", sitemap.url), safe="!#$%&'()*+,/:;=?@[]~")
    return "stdin" if path == _STANDARD_INPUT else _of_path(path)


def _of_path(path: str) -> str:
    """Return a path as a URI reference with slashes; a relative path stays relative."""
    parts = Path(path)
    if parts.is_absolute():
        return parts.as_uri()
    return quote(parts.as_posix().encode("utf-8", "surrogateescape"), safe="/!$&'()*+,;=@~")
