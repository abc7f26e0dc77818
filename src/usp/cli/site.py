"""What commands that fetch a site have in common: the client, the log, and what is said in the end."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from usp.cli import INTERRUPTED
from usp.cli.ls_options import client_for
from usp.cli.output import Counts, LogLines, duration, log_to, say, size
from usp.objects.problem import printable
from usp.objects.sitemap import AbstractSitemap

if TYPE_CHECKING:
    from usp.web_client.requests_client import RequestsWebClient

__all__ = ["NOT_REACHED", "log_of", "report", "site_client"]

NOT_REACHED = 3
_CUT = "C901"


@contextmanager
def site_client(arguments: argparse.Namespace) -> Iterator[RequestsWebClient]:
    """The web client, which does not say once more what was asked for."""
    with warnings.catch_warnings(), client_for(arguments) as client:
        warnings.filterwarnings("ignore", "Unverified HTTPS request")
        yield client


def log_of(arguments: argparse.Namespace) -> LogLines | None:
    """Send usp's log to where it is wanted; gives what prints it, if that is standard error."""
    is_unlogged = arguments.quiet and not arguments.verbose and not arguments.log_file
    return log_to(arguments.log_file, -1 if is_unlogged else arguments.verbose)


def report(
    tree: AbstractSitemap, counts: Counts, *, is_interrupted: bool = False, cost: tuple[int, float] | None = None
) -> int:
    """Say what is to be known of a tree; gives the exit code. With its cost (bytes, seconds): a summary."""
    is_nothing = not tree.sub_sitemaps and not is_interrupted
    if is_nothing:
        say(f"usp: no sitemaps found at {printable(tree.url)}")
    for problem in tree.problems:
        # That it was interrupted is said already: what is missing for that is not said once more.
        if not is_interrupted or (problem.code != _CUT and tree.sub_sitemaps):
            say(f"usp: {printable(problem.message)}")
    if is_nothing:
        return NOT_REACHED if any(problem.code != _CUT for problem in tree.problems) else 0
    sitemaps = _sitemaps(counts, is_whole=not any(problem.code == _CUT for problem in tree.problems))
    if cost is not None:
        pages = f"{counts.pages:,} {'page' if counts.pages == 1 else 'pages'}, " if counts.is_paged else ""
        say(f"usp: {sitemaps}, {pages}{size(cost[0])} in {duration(cost[1])}")
    elif counts.is_paged and not counts.pages and not is_interrupted:
        say(f"usp: no page found in {sitemaps}")
    return INTERRUPTED if is_interrupted else 0


def _sitemaps(counts: Counts, *, is_whole: bool) -> str:
    """How many sitemaps there are, how many of them failed, and of how many not all came."""
    failed = f"{counts.failed:,} {'failed' if is_whole else 'failed or not fetched'}" if counts.failed else ""
    partial = f"{counts.partial:,} cut short" if counts.partial else ""
    short = ", ".join(filter(None, (failed, partial)))
    return f"{counts.sitemaps:,} {'sitemap' if counts.sitemaps == 1 else 'sitemaps'}{short and f' ({short})'}"
