"""JSON: one object. docs/check.md describes its fields, and "version" is the version of the schema.

A version may get new fields, but no field changes its meaning. The order is that of the tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from usp.check.formats.views import json_pieces
from usp.check.report import CheckedSitemap, Report
from usp.objects.codes import Severity

__all__ = ["VERSION", "as_dict", "render"]

VERSION = 1


def render(report: Report, *, now: datetime | None = None) -> Iterator[str]:
    """Yield the object, indented, in pieces."""
    yield from json_pieces(as_dict(report, now=now))


def as_dict(report: Report, *, now: datetime | None = None) -> dict[str, Any]:
    """Return the object as a dictionary."""
    severities = report.severities()
    return {
        "version": VERSION,
        "target": report.target,
        "checked_at": now.isoformat(timespec="seconds") if now is not None else None,
        "is_reached": report.is_reached,
        "outcome": {"kind": str(report.outcome.kind), "reason": report.outcome.reason},
        "notes": list(report.notes),
        "summary": {
            "sitemaps": report.sitemap_count,
            "pages": report.pages,
            **({} if report.probed is None else {"probed": report.probed}),
            **{f"{severity}s": severities[severity] for severity in reversed(Severity)},
            "codes": dict(report.counts()),
        },
        "sitemaps": [_sitemap(sitemap) for sitemap in report.sitemaps],
        "problems": [
            {**problem.to_dict(), "sitemap": sitemap.name}
            for sitemap in report.sitemaps
            for problem in sitemap.problems
        ],
    }


def _sitemap(sitemap: CheckedSitemap) -> dict[str, Any]:
    return {
        "name": sitemap.name,
        "url": sitemap.url,
        "kind": sitemap.kind,
        "pages": sitemap.pages,
        "counts": dict(sorted(sitemap.problems.counts.items())),
    }
