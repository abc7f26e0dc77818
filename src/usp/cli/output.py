"""What commands print: trees, log lines and messages. Nothing that a site said reaches the terminal unescaped."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress

from usp.objects.page import SitemapPage
from usp.objects.problem import printable
from usp.objects.sitemap import AbstractSitemap, InvalidSitemap

__all__ = ["Counts", "LogLines", "drop_output", "duration", "log_to", "page_line", "say", "size", "tabtree_lines"]

_LEVELS = {-1: logging.ERROR, 0: logging.WARNING, 1: logging.INFO}


def say(message: str) -> None:
    """Print a message on standard error, if there is one and it takes it."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(message, file=sys.stderr, flush=True)


class _EscapingFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(printable(line) for line in super().format(record).split("\n"))


class LogLines(logging.Handler):
    """Prints log lines by `write`, which may be changed at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.write: Callable[[str], None] = say

    def emit(self, record: logging.LogRecord) -> None:
        """Print a log line."""
        try:
            self.write(self.format(record))
        except Exception:  # as of every handler: what cannot be logged does not end the program
            self.handleError(record)


def log_to(path: str | None, verbosity: int) -> LogLines | None:
    """Send usp's log to a file, or to standard error; gives what prints it there."""
    lines = None if path else LogLines()
    handler = logging.FileHandler(path, encoding="utf-8") if path else lines
    assert handler is not None
    handler.setFormatter(_EscapingFormatter(logging.BASIC_FORMAT))
    logging.basicConfig(level=_LEVELS.get(verbosity, logging.DEBUG), handlers=[handler], force=True)
    return lines


class Counts:
    """What of a tree was printed."""

    __slots__ = ("failed", "is_paged", "pages", "partial", "sitemaps")

    def __init__(self, tree: AbstractSitemap, pages: int | None = 0) -> None:
        self.sitemaps = self.failed = self.partial = 0
        self.pages = pages or 0
        self.is_paged = pages is not None  # else nobody has counted them
        for sitemap in tree.all_sitemaps():
            self.sitemaps += 1
            if isinstance(sitemap, InvalidSitemap):
                self.failed += 1
            elif sitemap.transport is not None and not sitemap.transport.is_whole:
                self.partial += 1


def _shown(url: str, stripped: str) -> str:
    """A URL as it is printed: escaped, and without the part that is not wanted."""
    rest = url.removeprefix(stripped)
    # The name of another host may begin with that of the site.
    return printable(rest if not rest or rest[0] in "/?#" else url)


def page_line(page: SitemapPage, stripped: str = "") -> str:
    """A page in one line."""
    return _shown(page.url, stripped)


def tabtree_lines(tree: AbstractSitemap, counts: Counts, stripped: str = "", depth: int = 0) -> Iterator[str]:
    """A line for each sitemap and page, indented with tabs. The homepage is always shown whole."""
    yield "\t" * depth + _shown(tree.url, stripped if depth else "")
    for page in tree.pages:
        counts.pages += 1
        yield "\t" * (depth + 1) + _shown(page.url, stripped)
    for sitemap in tree.sub_sitemaps:
        yield from tabtree_lines(sitemap, counts, stripped, depth + 1)


def size(count: float) -> str:
    """A number of bytes, for people."""
    if count < 999_500:
        return f"{count:.0f} B" if count < 999.5 else f"{count / 1e3:.0f} kB"
    return f"{count / 1e6:,.1f} MB" if count < 999_950_000 else f"{count / 1e9:,.1f} GB"


def duration(seconds: float, digits: int = 1) -> str:
    """A time, for people."""
    if seconds < 60:
        return f"{seconds:.{digits}f} s"
    minutes, whole = divmod(int(seconds), 60)
    return f"{minutes} min {whole:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def drop_output() -> None:
    """Send what is still to be written nowhere, else Python complains once more when it flushes at exit."""
    if sys.stdout is not None:
        with suppress(OSError):  # some other program's stand-in for it may be no file
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
