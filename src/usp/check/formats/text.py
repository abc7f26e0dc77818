"""Text: one line for each problem, by sitemap in the order of the tree. The last line is a summary.

    sitemap.xml:4319:17  error    X102  bare "&" in <loc>; write "&amp;"

Columns are aligned within one sitemap. `paint` may add styles to parts of a line; by default it does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from usp.check.formats.views import name_of, place_of, unshown
from usp.check.report import CheckedSitemap, Report
from usp.objects.codes import Severity
from usp.objects.problem import Problem, printable
from usp.objects.wording import plural

__all__ = ["STYLES", "render"]

#: The part of a line -> its style for rich. Severities do not differ in colour alone.
STYLES = {
    "error": "bold red",
    "warning": "yellow",
    "info": "cyan",
    "code": "bold",
    "more": "dim",
    "summary": "bold",
}
_TOLD = "XE"  # codes whose text you see at the place itself
_SEVERITY_WIDTH = max(len(str(severity)) for severity in Severity)


def _plain(text: str, part: str) -> str:
    return text


def render(
    report: Report,
    *,
    now: datetime | None = None,
    paint: Callable[[str, str], str] = _plain,
    is_summed_up: bool = True,
) -> Iterator[str]:
    """Yield the lines of a report, with the summary at the end unless `is_summed_up` is False."""
    for sitemap in report.sitemaps:
        if sitemap.problems:
            yield from _group(sitemap, paint)
    yield from _rest(report, paint)
    if is_summed_up:
        yield f"{paint(report.summary(), 'summary')}\n"


def _group(sitemap: CheckedSitemap, paint: Callable[[str, str], str]) -> Iterator[str]:
    name = name_of(sitemap)
    places = [":".join(filter(None, (name, place_of(problem)))) for problem in sitemap.problems]
    width = max(map(len, places))
    for place, problem in zip(places, sitemap.problems, strict=True):
        severity = str(problem.severity)
        padding = " " * (_SEVERITY_WIDTH - len(severity))
        styled = f"{paint(severity, severity)}{padding}  {paint(problem.code, 'code')}"
        yield f"{place:<{width}}  {styled}  {_message(problem)}\n"
    for code, number in unshown(sitemap).items():
        yield f"{paint(f'… and {number:,} more {code} in {name}', 'more')}\n"


def _message(problem: Problem) -> str:
    """Return the message, with the URL if the message does not contain it."""
    message = printable(problem.message)
    is_told = problem.code[0] in _TOLD or not problem.text or problem.text in message
    return message if is_told else f"{message} ({printable(problem.text)})"


def _rest(report: Report, paint: Callable[[str, str], str]) -> Iterator[str]:
    """Yield a line about sitemaps whose problems are all hidden."""
    hidden = [sitemap.problems.counts.total() for sitemap in report.sitemaps if not sitemap.problems]
    if sum(hidden) and any(sitemap.problems for sitemap in report.sitemaps):
        others = plural(sum(map(bool, hidden)), "other sitemap")
        yield f"{paint(f'… and {sum(hidden):,} more in {others}', 'more')}\n"
