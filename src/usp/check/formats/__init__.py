"""The formats of a report: each is a module with a `render` function, which yields the text in pieces.

A format decides nothing: problems, severities and places are in the report. It opens no file and knows no terminal. It
escapes all text that comes from a site.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from importlib import import_module

from usp.check.report import Report
from usp.exceptions import InvalidArgumentError

__all__ = ["FORMATS", "render"]

#: The name of a format -> its description.
FORMATS = {
    "text": "one line for each problem, for people",
    "json": "one object with a versioned schema, for programs",
    "sarif": "SARIF 2.1.0, for code scanning and editors",
    "github": "annotations for GitHub Actions",
    "junit": "JUnit XML, for continuous integration",
    "html": "one self-contained page, for browsers",
}
_MODULES = {"json": "as_json"}


def render(name: str, report: Report, *, now: datetime | None = None) -> Iterator[str]:
    """Yield a report in a format. `now` is the time of the check, for formats that show it."""
    if name not in FORMATS:
        raise InvalidArgumentError(f"there is no format {name!r}; there are: {', '.join(FORMATS)}")
    module = import_module(f"usp.check.formats.{_MODULES.get(name, name)}")
    pieces: Iterator[str] = module.render(report, now=now)
    return pieces
