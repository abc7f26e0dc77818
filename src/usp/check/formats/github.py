"""GitHub: workflow commands that GitHub Actions shows as annotations, one for each problem.

    ::error file=sitemap.xml,line=4319,col=17,title=X102::bare "&" in <loc>; write "&amp;"

Problems of a site belong to no file; the message starts with the URL.

https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePath

from usp.check.formats.views import file_of, name_of, place_of, rest_by_code, unshown
from usp.check.report import Report
from usp.objects.codes import CODES, Severity
from usp.objects.problem import printable
from usp.objects.wording import plural

__all__ = ["render"]

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(report: Report, *, now: datetime | None = None) -> Iterator[str]:
    """Yield a command for each problem, and one for each code and sitemap with the number of problems not shown.

    If the report is limited, one command says how many more there are: GitHub shows only a few.
    """
    for sitemap in report.sitemaps:
        name, path = name_of(sitemap), file_of(sitemap)
        for problem in sitemap.problems:
            if path is None:  # a file of that name in the repository would be a different one
                where = ":".join(filter(None, (printable(sitemap.url), place_of(problem))))
                yield _command(problem.severity, {"title": problem.code}, f"{where}: {printable(problem.message)}")
                continue
            places = {"file": _file(path), "line": problem.line, "col": problem.column, "title": problem.code}
            properties: dict[str, object] = {key: value for key, value in places.items() if value}
            yield _command(problem.severity, properties, printable(problem.message))
        for code, number in unshown(sitemap).items() if not report.is_limited else ():
            properties = {"title": code} if path is None else {"file": _file(path), "title": code}
            yield _command(CODES[code].severity, properties, f"and {number:,} more {code} in {name}")
    if report.is_limited and (rest := rest_by_code(report)):
        number = sum(one.number for one in rest)
        codes = ", ".join(f"{one.code} {one.number:,}" for one in rest)
        yield _command(Severity.INFO, {"title": "usp check"}, f"and {plural(number, 'more problem')}: {codes}")


def _file(path: str) -> str:
    """Return a path as GitHub has it: with slashes, and without "./" at its start."""
    return printable(PurePath(path).as_posix())


def _command(severity: Severity, properties: dict[str, object], message: str) -> str:
    written = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{_COMMANDS[severity]} {written}::{_data(message)}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
