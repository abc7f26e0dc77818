"""The formats of a report: each is a module with a `render`, which gives the text of a report piece by piece.

A format decides nothing: what is wrong, how severe it is and where it stands is in the report. It opens no file and
knows of no terminal. Nothing that a site says reaches its output unescaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from importlib import import_module

from usp.check.report import Report
from usp.exceptions import InvalidArgumentError

__all__ = ["FORMATS", "render"]

#: The name of a format -> what it is.
FORMATS = {
    "text": "one line for each problem, for people",
    "json": "one object, for programs; its form has a version",
    "sarif": "SARIF 2.1.0, for code scanning and editors",
    "github": "annotations of GitHub Actions",
    "html": "one page that needs nothing else, for browsers",
}
_MODULES = {"json": "as_json"}


def render(name: str, report: Report, *, now: datetime | None = None) -> Iterator[str]:
    """The report in a format, piece by piece; `now` is when the check took place, for those that say it."""
    if name not in FORMATS:
        raise InvalidArgumentError(f"there is no format {name!r}; there are: {', '.join(FORMATS)}")
    module = import_module(f"usp.check.formats.{_MODULES.get(name, name)}")
    pieces: Iterator[str] = module.render(report, now=now)
    return pieces
