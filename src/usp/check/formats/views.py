"""What all formats share: the number of hidden problems, and the names of sitemaps."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePath
from urllib.parse import quote

from usp.check.report import CheckedSitemap, Report
from usp.objects.problem import Problem, Problems, printable

__all__ = ["json_pieces", "limited", "location", "name_of", "place_of", "unshown"]

_BARE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
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
    chosen = set(ranks[:most])
    sitemaps, position = [], 0
    for sitemap in report.sitemaps:
        kept = [problem for at, problem in enumerate(sitemap.problems, position) if at in chosen]
        position += len(sitemap.problems)
        sitemaps.append(replace(sitemap, problems=Problems(kept, sitemap.problems.counts)))
    return replace(report, sitemaps=tuple(sitemaps))


def unshown(sitemap: CheckedSitemap) -> Counter[str]:
    """Count the problems of a sitemap that are not shown, by code."""
    more = sitemap.problems.counts - Counter(problem.code for problem in sitemap.problems)
    return Counter({code: more[code] for code in sorted(more)})


def name_of(sitemap: CheckedSitemap) -> str:
    """Return the name of a sitemap, safe for terminals."""
    return printable(sitemap.name or sitemap.url)


def place_of(problem: Problem) -> str:
    """Return the line and column of a problem, or an empty text."""
    return ":".join(str(number) for number in (problem.line, problem.column) if number is not None)


def location(sitemap: CheckedSitemap) -> str:
    """Return a sitemap as a URI reference: the URL of one on a site, the path of a file."""
    if not sitemap.is_file:
        return quote(_BARE_PERCENT.sub("%25", sitemap.url), safe="!#$%&'()*+,/:;=?@[]~")
    return "stdin" if sitemap.name == _STANDARD_INPUT else _of_path(sitemap.name)


def _of_path(path: str) -> str:
    """Return a path as a URI reference with slashes; a relative path stays relative."""
    parts = PurePath(path)
    if parts.is_absolute():
        return parts.as_uri()
    return quote(parts.as_posix().encode("utf-8", "surrogateescape"), safe="/!$&'()*+,;=@~")
