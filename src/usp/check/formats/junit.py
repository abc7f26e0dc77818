"""JUnit XML, as continuous integration services read it.

Each sitemap is a suite, and each code with problems in it is a case: its name and class stay the same when lines move.
Errors and warnings are failures. A code of notices is a skipped case, because nothing is lost. A sitemap without
problems is one case that passes. If a limited report shows none of its problems, that case is skipped. What could not
be read is none: that is a failure of what lists it.

https://github.com/testmoapp/junitxml
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from xml.sax.saxutils import quoteattr

from usp.check.formats.views import name_of, place_of, rest_by_code
from usp.check.report import CheckedSitemap, Report
from usp.check.rules.page import rule_page
from usp.objects.codes import CODES, Severity
from usp.objects.problem import printable
from usp.objects.wording import plural

__all__ = ["render"]


def render(report: Report, *, now: datetime | None = None) -> Iterator[str]:
    """Yield the document in pieces."""
    suites = [(sitemap, _codes(sitemap, report)) for sitemap in report.sitemaps if _is_suite(sitemap)]
    tests = sum(max(1, len(codes)) for _, codes in suites)
    skipped = sum(_skipped(sitemap, codes) for sitemap, codes in suites)
    failures = sum(_failures(codes) for _, codes in suites)
    moment = "" if now is None else f" timestamp={_quoted(now.isoformat(timespec='seconds'))}"
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f'<testsuites name="usp check" tests="{tests}" failures="{failures}" skipped="{skipped}"{moment}>\n'
    for sitemap, codes in suites:
        yield from _suite(sitemap, codes)
    yield from _rest(report)
    yield "</testsuites>\n"


def _is_suite(sitemap: CheckedSitemap) -> bool:
    return sitemap.kind not in ("IndexWebsiteSitemap", "InvalidSitemap") or bool(sitemap.problems.counts)


def _codes(sitemap: CheckedSitemap, report: Report) -> list[str]:
    """Return the codes that are cases: all, or if the report is limited, those with a problem that is shown."""
    shown = {problem.code for problem in sitemap.problems}
    return sorted(shown if report.is_limited else sitemap.problems.counts)


def _failures(codes: list[str]) -> int:
    return sum(CODES[code].severity is not Severity.INFO for code in codes)


def _skipped(sitemap: CheckedSitemap, codes: list[str]) -> int:
    """Count the cases that are skipped: notices, or the one of a sitemap whose problems `--max` has all left out."""
    return len(codes) - _failures(codes) if codes else bool(sitemap.problems.counts)


def _suite(sitemap: CheckedSitemap, codes: list[str]) -> Iterator[str]:
    name, tests = _quoted(name_of(sitemap)), max(1, len(codes))
    failures, skipped = _failures(codes), _skipped(sitemap, codes)
    yield f'<testsuite name={name} tests="{tests}" failures="{failures}" skipped="{skipped}">\n'
    if not codes and (hidden := sitemap.problems.counts.total()):
        message = _quoted(plural(hidden, "problem"))
        yield f'<testcase name="not shown" classname={name}><skipped message={message}/></testcase>\n'
    elif not codes:
        yield f'<testcase name="no problems" classname={name}/>\n'
    for code in codes:
        yield from _case(sitemap, code, name)
    yield "</testsuite>\n"


def _case(sitemap: CheckedSitemap, code: str, suite: str) -> Iterator[str]:
    problems = [problem for problem in sitemap.problems if problem.code == code]
    count, severity = sitemap.problems.counts[code], CODES[code].severity
    first = problems[0].message if problems else f"{count:,} {code}"
    message = _quoted(first if count == 1 else f"{count:,} times; the first: {first}")
    yield f"<testcase name={_quoted(f'{code} {rule_page(code).title}')} classname={suite}>"
    if severity is Severity.INFO:
        yield f"<skipped message={message}/></testcase>\n"
        return
    yield f'<failure type="{severity}" message={message}>'
    for problem in problems:
        place = ":".join(filter(None, (name_of(sitemap), place_of(problem))))
        yield f"{_escaped(f'{place}: {problem.message}')}\n"
    if count > len(problems):
        yield f"and {count - len(problems):,} more\n"
    yield "</failure></testcase>\n"


def _rest(report: Report) -> Iterator[str]:
    """Yield one line for the codes that `--max` has left out."""
    rest = rest_by_code(report) if report.is_limited else []
    if rest:
        codes = ", ".join(f"{one.code} {one.number:,}" for one in rest)
        number = sum(one.number for one in rest)
        yield f"<system-out>and {plural(number, 'more problem')}: {codes}</system-out>\n"


def _escaped(text: str) -> str:
    return printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _quoted(text: str) -> str:
    return quoteattr(printable(text))
