"""Text: one line for each problem, by sitemap in the order of the tree. The last line is a summary.

    sitemap.xml:4319:17  error    X102  bare "&" in <loc>; write "&amp;"

Columns are aligned over the whole report. `paint` may add styles to parts of a line; by default it does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from usp.check.formats.views import collapsed, is_told, name_of, place_of, rest_by_code, unshown
from usp.check.report import CheckedSitemap, Report
from usp.objects.codes import Severity
from usp.objects.problem import Problem, printable

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
_MAX_PLACE_WIDTH = 72  # longer places stick out; else one long URL would push all messages out of sight


def _plain(text: str, part: str) -> str:
    return text


def render(
    report: Report,
    *,
    now: datetime | None = None,
    paint: Callable[[str, str], str] = _plain,
    is_summed_up: bool = True,
    most_per_code: int | None = None,
) -> Iterator[str]:
    """Yield the lines of a report, with the summary at the end unless `is_summed_up` is False.

    :param most_per_code: how many problems of one code to show at most. None shows all that were kept.
    """
    is_whole = most_per_code is None and not report.is_limited
    shown = report if most_per_code is None else collapsed(report, most_per_code)
    width = max((len(place) for sitemap in shown.sitemaps for place in _places(sitemap)), default=0)
    for sitemap in shown.sitemaps:
        yield from _lines(sitemap, min(width, _MAX_PLACE_WIDTH), paint)
        for code, number in unshown(sitemap).items() if is_whole else ():
            yield f"{paint(f'… and {number:,} more {code} in {name_of(sitemap)}', 'more')}\n"
    if not is_whole:
        yield from _rest_by_code(shown, paint)
    if most_per_code is not None and len(list(shown.problems())) < len(list(report.problems())):
        yield f"{paint(f'The first {most_per_code} of each code are shown; --all shows more', 'more')}\n"
    if is_summed_up:
        yield f"{paint(report.summary(), 'summary')}\n"


def _places(sitemap: CheckedSitemap) -> list[str]:
    name = name_of(sitemap)
    return [":".join(filter(None, (name, place_of(problem)))) for problem in sitemap.problems]


def _lines(sitemap: CheckedSitemap, width: int, paint: Callable[[str, str], str]) -> Iterator[str]:
    for place, problem in zip(_places(sitemap), sitemap.problems, strict=True):
        severity = str(problem.severity)
        padding = " " * (_SEVERITY_WIDTH - len(severity))
        styled = f"{paint(severity, severity)}{padding}  {paint(problem.code, 'code')}"
        yield f"{place:<{width}}  {styled}  {_message(problem)}\n"


def _message(problem: Problem) -> str:
    """Return the message, with the URL if the message does not contain it."""
    message = printable(problem.message)
    is_seen = problem.code[0] in _TOLD or is_told(problem, message)
    return message if is_seen else f"{message} ({printable(problem.text)})"


def _rest_by_code(report: Report, paint: Callable[[str, str], str]) -> Iterator[str]:
    """Yield a line for each code with problems that are not shown; none if the user wants to see no problem."""
    is_summary = report.is_limited and not any(sitemap.problems for sitemap in report.sitemaps)
    for code, number, where in () if is_summary else rest_by_code(report):
        yield f"{paint(f'… and {number:,} more {code} in {where}', 'more')}\n"
