"""SARIF 2.1.0: the static analysis results interchange format, as code scanning services and editors read it.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html

Sitemaps of a site have their URLs, files their paths. Columns count characters. Fingerprints stay the same when lines
move. Notifications of the run say how many problems were not kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from usp.check.formats.views import json_pieces, location, name_of, rest_by_code, unshown
from usp.check.report import Report
from usp.check.rules.page import RulePage, rule_page
from usp.objects.codes import Severity
from usp.objects.problem import Problem, printable
from usp.version import __version__

__all__ = ["as_dict", "render"]

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_INFORMATION = "https://www.sitemaps.org/protocol.html"  # what the rules follow
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def render(report: Report, *, now: datetime | None = None) -> Iterator[str]:
    """Yield the log, indented, in pieces."""
    yield from json_pieces(as_dict(report, now=now))


def as_dict(report: Report, *, now: datetime | None = None) -> dict[str, Any]:
    """Return the log as a dictionary: one run, with the rules that found problems."""
    codes = sorted(report.counts())
    places = {code: index for index, code in enumerate(codes)}
    driver = {
        "name": "usp",
        "version": __version__,
        "informationUri": _INFORMATION,
        "rules": [_rule(rule_page(code)) for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [_invocation(report, places, now)],
        "columnKind": "unicodeCodePoints",
        "results": list(_results(report, places)),
        "properties": {"target": printable(report.target), "counts": dict(report.counts())},
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: RulePage) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.what},
        "help": {"text": f"{rule.what} {rule.why}", "markdown": rule.markdown},
        "helpUri": rule.specifications[0],
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": ["sitemap"]},
    }


def _results(report: Report, places: dict[str, int]) -> Iterator[dict[str, Any]]:
    met: Counter[tuple[str, ...]] = Counter()
    for sitemap in report.sitemaps:
        uri = location(sitemap)
        for problem in sitemap.problems:
            same = (problem.code, uri, problem.text)
            met[same] += 1
            fingerprint = sha256("\n".join((*same, str(met[same]))).encode("utf-8", "backslashreplace")).hexdigest()
            yield {
                "ruleId": problem.code,
                "ruleIndex": places[problem.code],
                "level": _LEVELS[problem.severity],
                "message": {"text": printable(problem.message)},
                "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri}, **_region(problem)}}],
                "partialFingerprints": {"uspProblem/v1": fingerprint},
            }


def _region(problem: Problem) -> dict[str, Any]:
    if problem.line is None:
        return {}
    column = {} if problem.column is None else {"startColumn": problem.column}
    return {"region": {"startLine": problem.line, **column}}


def _rest(report: Report) -> Iterator[tuple[str, int, str]]:
    """Yield each code with problems that are not listed, how many there are, and where."""
    if report.is_limited:
        yield from rest_by_code(report)
        return
    for sitemap in report.sitemaps:
        for code, number in unshown(sitemap).items():
            yield code, number, name_of(sitemap)


def _invocation(report: Report, places: dict[str, int], now: datetime | None) -> dict[str, Any]:
    notifications = [
        {
            "level": "note",
            "message": {"text": f"and {number:,} more {code} in {where}"},
            "associatedRule": {"id": code, "index": places[code]},
        }
        for code, number, where in _rest(report)
    ]
    moment = {} if now is None else {"endTimeUtc": f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"}
    return {"executionSuccessful": report.is_reached, **moment, "toolExecutionNotifications": notifications}
