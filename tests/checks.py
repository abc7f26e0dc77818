"""What tests of checks share: a site made of texts, and its problems as plain values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from support import SITEMAP_XMLNS, FakeClient, FakeResponse
from usp.check import Report, check_homepage
from usp.check.checking import Check
from usp.check.rules import RULES
from usp.check.rules.rule import Rule
from usp.check.sitemaps import Site, SitemapReader, SiteTables
from usp.objects.sitemap import AbstractSitemap

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
HOME = "https://www.example.org/"
EXTENSIONS = (
    ' xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"'
    ' xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"'
    ' xmlns:video="http://www.google.com/schemas/sitemap-video/1.1" xmlns:xhtml="http://www.w3.org/1999/xhtml"'
)
_TYPES = {"xml": "application/xml", "gz": "application/gzip", "txt": "text/plain", "rss": "application/rss+xml"}

#: What was found: the name of a sitemap, a code, and the place.
Found = list[tuple[str, str, int | None, int | None]]


def urlset_of(*entries: str) -> str:
    """Return a urlset with each entry on its own line, starting with the second line."""
    return f"<urlset {SITEMAP_XMLNS}{EXTENSIONS}>\n" + "".join(f"{entry}\n" for entry in entries) + "</urlset>\n"


def url_of(path: str, *fields: str) -> str:
    return f"<url><loc>{HOME}{path}</loc>{''.join(fields)}</url>"


def report_of(tree: AbstractSitemap, tables: SiteTables, rules: Collection[Rule] = RULES.values()) -> Report:
    """Check a tree with given tables and rules."""
    return Check(tree, SitemapReader(Site(HOME, NOW, {}), tables, rules)).report()


def response(name: str, body: Any, **headers: str) -> Any:
    """Return a response as a correct server sends it."""
    if not isinstance(body, (str, bytes)):
        return body
    data = body.encode() if isinstance(body, str) else body
    given = {header.replace("_", "-"): value for header, value in headers.items()}
    return FakeResponse(data, HOME + name, {"Content-Type": _TYPES.get(name.rpartition(".")[2], "text/plain")} | given)


def robots_of(*names: str, rules: str = "") -> str:
    return f"User-agent: *\n{rules}\n" + "".join(f"Sitemap: {HOME}{name}\n" for name in names)


def site_of(files: Mapping[str, Any]) -> FakeClient:
    """Return a client for a site of files. If there is no robots.txt, one is added that names all of them."""
    whole = {"robots.txt": robots_of(*files), **files}
    return FakeClient({HOME + name: response(name, body) for name, body in whole.items() if body is not None})


def check_site(files: Mapping[str, Any], **options: Any) -> Report:
    return check_homepage(HOME, site_of(files), now=NOW, **({"use_known_paths": False} | options))


def found_in(report: Report) -> Found:
    return [
        (sitemap.name, problem.code, problem.line, problem.column)
        for sitemap in report.sitemaps
        for problem in sitemap.problems
    ]


def found_at(marked: str, name: str = "sitemap.xml") -> Found:
    """Return the problems of a sitemap whose places are marked with "¦"; the mark is removed first."""
    return found_in(check_site({name: marked.replace("¦", "")}))


def place_of(marked: str) -> tuple[int, int]:
    """Return the place of the mark in a text."""
    before = marked[: marked.index("¦")]
    return before.count("\n") + 1, len(before) - before.rfind("\n")
