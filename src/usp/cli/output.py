"""What commands print: trees, and log lines. Nothing that a site said reaches the terminal unescaped."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator

from usp.objects.problem import printable
from usp.objects.sitemap import AbstractSitemap

__all__ = ["log_to", "pages_lines", "tabtree_lines"]

_LEVELS = {-1: logging.ERROR, 0: logging.WARNING, 1: logging.INFO}


class _EscapingFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(printable(line) for line in super().format(record).split("\n"))


def log_to(path: str | None, verbosity: int) -> None:
    """Send usp's log to a file, or to standard error."""
    handler = logging.FileHandler(path, encoding="utf-8") if path else logging.StreamHandler(sys.stderr)
    handler.setFormatter(_EscapingFormatter(logging.BASIC_FORMAT))
    logging.basicConfig(level=_LEVELS.get(verbosity, logging.DEBUG), handlers=[handler], force=True)


def _shown(url: str, stripped: str) -> str:
    """A URL as it is printed: escaped, and without the part that is not wanted."""
    return printable(url.removeprefix(stripped) if stripped else url)


def pages_lines(tree: AbstractSitemap, stripped: str = "") -> Iterator[str]:
    """A line for each page."""
    for page in tree.all_pages():
        yield _shown(page.url, stripped)


def tabtree_lines(tree: AbstractSitemap, stripped: str = "", depth: int = 0) -> Iterator[str]:
    """A line for each sitemap and page, indented with tabs. The homepage is always shown whole."""
    yield "\t" * depth + _shown(tree.url, stripped if depth else "")
    for page in tree.pages:
        yield "\t" * (depth + 1) + _shown(page.url, stripped)
    for sitemap in tree.sub_sitemaps:
        yield from tabtree_lines(sitemap, stripped, depth + 1)
