"""Statistics: how many problems of each code there are, the worst first, instead of the problems themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from usp.check.formats.views import json_pieces
from usp.check.report import Report
from usp.objects import codes
from usp.objects.codes import Severity
from usp.objects.wording import plural

__all__ = ["FORMATS", "render"]

#: The formats that have statistics.
FORMATS = ("text", "json")
_SEVERITY_WIDTH = max(len(str(severity)) for severity in Severity)


def _plain(text: str, part: str) -> str:
    return text


def render(
    name: str, report: Report, *, paint: Callable[[str, str], str] = _plain, is_summed_up: bool = True
) -> Iterator[str]:
    """Yield the statistics of a report as text or as JSON."""
    from usp.check.rules.page import rule_page  # which imports all rules; the command line imports this module

    counts = report.counts()
    sitemaps: Counter[str] = Counter(code for sitemap in report.sitemaps for code in sitemap.problems.counts)
    if name == "json":
        yield from json_pieces(
            [
                {
                    "code": code,
                    "severity": str(codes.CODES[code].severity),
                    "title": rule_page(code).title,
                    "count": count,
                    "sitemaps": sitemaps[code],
                }
                for code, count in counts.items()
            ]
        )
        return
    width = max((len(f"{count:,}") for count in counts.values()), default=0)
    for code, count in counts.items():
        severity = str(codes.CODES[code].severity)
        padding = " " * (_SEVERITY_WIDTH - len(severity))
        where = plural(sitemaps[code], "sitemap")
        styled = f"{paint(severity, severity)}{padding}  {paint(code, 'code')}"
        yield f"{count:>{width},}  {styled}  {rule_page(code).title} (in {where})\n"
    if is_summed_up:
        yield f"{paint(report.summary(), 'summary')}\n"
