"""GitHub: workflow commands that GitHub Actions shows as annotations, one for each problem.

    ::error file=sitemap.xml,line=4319,col=17,title=X102::bare "&" in <loc>; write "&amp;"

Problems of a site belong to no file; the message starts with the URL.

https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from usp.check.formats.views import name_of, place_of, unshown
from usp.check.report import Report
from usp.objects.codes import CODES, Severity
from usp.objects.problem import printable

__all__ = ["render"]

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(report: Report, *, now: datetime | None = None) -> Iterator[str]:
    """Yield a command for each problem, and one for each code and sitemap with the number of problems not shown."""
    for sitemap in report.sitemaps:
        name = name_of(sitemap)
        for problem in sitemap.problems:
            if not sitemap.is_file:  # a file of that name in the repository would be a different one
                where = ":".join(filter(None, (printable(sitemap.url), place_of(problem))))
                yield _command(problem.severity, {"title": problem.code}, f"{where}: {printable(problem.message)}")
                continue
            places = {"line": problem.line, "col": problem.column}
            properties = {"file": name, **{key: value for key, value in places.items() if value}, "title": problem.code}
            yield _command(problem.severity, properties, printable(problem.message))
        for code, number in unshown(sitemap).items():
            properties = {"file": name, "title": code} if sitemap.is_file else {"title": code}
            yield _command(CODES[code].severity, properties, f"and {number:,} more {code} in {name}")


def _command(severity: Severity, properties: dict[str, object], message: str) -> str:
    written = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{_COMMANDS[severity]} {written}::{_data(message)}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
