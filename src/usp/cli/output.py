"""Print messages and log lines, with text from a site escaped, and count for the summary."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress

from usp.objects.outcome import Cause
from usp.objects.problem import printable
from usp.objects.sitemap import AbstractSitemap, IndexWebsiteSitemap, InvalidSitemap

__all__ = [
    "PARTIAL_RESULTS",
    "LogLines",
    "TreeCounts",
    "drop_output",
    "duration",
    "log_to",
    "say",
    "size",
]

#: The message after Ctrl-C, before the output.
PARTIAL_RESULTS = "usp: interrupted; the results are partial"

_LEVELS = {0: logging.WARNING, 1: logging.INFO}


def say(message: str) -> None:
    """Print a message on standard error. If that fails, ignore it."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(message, file=sys.stderr, flush=True)


class _EscapingFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(printable(line) for line in super().format(record).split("\n"))


class LogLines(logging.Handler):
    """Print log lines with `write`, which may be replaced at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.write: Callable[[str], None] = say

    def emit(self, record: logging.LogRecord) -> None:
        """Print a log line."""
        try:
            self.write(self.format(record))
        except Exception:  # as in every logging handler: a failure to log does not end the program
            self.handleError(record)


def log_to(path: str | None, verbosity: int) -> LogLines | None:
    """Send usp's log to a file, or to standard error if `path` is None. Return the handler for standard error.

    Without a file, the log is shown only if it is asked for: commands say themselves what went wrong.
    """
    if path is None and not verbosity:
        logging.basicConfig(handlers=[logging.NullHandler()], force=True)
        return None
    lines = None if path else LogLines()
    handler = logging.FileHandler(path, encoding="utf-8") if path else lines
    assert handler is not None
    handler.setFormatter(_EscapingFormatter(logging.BASIC_FORMAT))
    logging.basicConfig(level=_LEVELS.get(verbosity, logging.DEBUG), handlers=[handler], force=True)
    return lines


class TreeCounts:
    """Numbers for the summary of trees: sitemaps, those that are missing, partial or left out, and pages.

    `has_pages` is False if nobody counted the pages.
    """

    __slots__ = ("failed", "has_pages", "left_out", "pages", "partial", "sitemaps")

    def __init__(self, trees: Iterable[AbstractSitemap], pages: int | None = 0) -> None:
        self.sitemaps = self.failed = self.partial = self.left_out = 0
        self.pages = pages or 0
        self.has_pages = pages is not None
        for sitemap in (sitemap for tree in trees for sitemap in (tree, *tree.all_sitemaps())):
            if isinstance(sitemap, IndexWebsiteSitemap):
                continue
            self.sitemaps += 1
            if isinstance(sitemap, InvalidSitemap):
                is_left_out = sitemap.cause.is_choice or sitemap.cause is Cause.LOOP
                self.left_out += is_left_out
                self.failed += not is_left_out
            elif sitemap.transport is not None and not sitemap.transport.is_whole:
                self.partial += 1


def size(count: float) -> str:
    """Return a number of bytes as people read it: 4.0 MB."""
    if count < 999_500:
        return f"{count:.0f} B" if count < 999.5 else f"{count / 1e3:.0f} kB"
    return f"{count / 1e6:,.1f} MB" if count < 999_950_000 else f"{count / 1e9:,.1f} GB"


def duration(seconds: float, digits: int = 1) -> str:
    """Return a number of seconds as people read it: 1 min 05 s."""
    if seconds < 60:
        return f"{seconds:.{digits}f} s"
    minutes, whole = divmod(int(seconds), 60)
    return f"{minutes} min {whole:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def drop_output() -> None:
    """Discard buffered output. Otherwise Python would report the same error again when it flushes at exit."""
    if sys.stdout is not None:
        with suppress(OSError):  # standard output may have been replaced by an object without a file
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
