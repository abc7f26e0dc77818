"""`usp ls`: list a site's sitemaps and pages."""

from __future__ import annotations

import argparse
import sys
import warnings
from contextlib import nullcontext
from typing import TYPE_CHECKING

from usp.cli.live import Meter, live_line
from usp.cli.ls_options import add_fetching, add_limits, add_sources, client_for, tree_options
from usp.cli.output import Counts, duration, log_to, pages_lines, say, size, tabtree_lines
from usp.exceptions import TreeInterrupted
from usp.objects.problem import printable
from usp.objects.sitemap import AbstractSitemap
from usp.tree import sitemap_tree_for_homepage

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = ["FORMATS", "register"]

_NOT_REACHED = 3
_INTERRUPTED = 130

FORMATS = {
    "tabtree": ("sitemaps and pages, nested with tabs", tabtree_lines),
    "pages": ("flat list of pages, one per line", pages_lines),
}
_EPILOG = """\
On a terminal, a line on standard error shows how far it is; in the end there is
a summary. Ctrl-C ends it, and lists what was had until then.

examples:
  usp ls https://www.example.org/
  usp ls -f pages https://www.example.org/ | sort -u > pages.txt
  usp ls -k -u https://www.example.org/     what robots.txt names, in short
  usp ls --max-pages 1000 --max-time 60 https://www.example.org/
  usp ls -c 2 --crawl-delay --respect-robots https://www.example.org/
  usp ls --user-agent my-crawler/1.0 -H 'Cookie: a=b' https://www.example.org/
"""


def register(commands: Subparsers) -> None:
    """Add the command."""
    ls = commands.add_parser(
        "ls",
        usage="usp ls [OPTION ...] URL",
        help="list a site's sitemaps and pages",
        description="Download, parse and list a site's sitemaps and the pages in them.",
        epilog=_EPILOG,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    ls.add_argument("url", metavar="URL", help="URL of the site, with https:// or http://")
    output = ls.add_argument_group("output")
    formats = "\n".join(f"  {name}: {what}" for name, (what, _) in FORMATS.items())
    output.add_argument(
        "-f",
        "--format",
        choices=FORMATS,
        default="tabtree",
        metavar="FORMAT",
        help=f"set output format (default: %(default)s)\n{formats}",
    )
    output.add_argument(
        "-u", "--strip-url", action="store_true", help="strip the site's URL from each page and sitemap URL"
    )
    output.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary and no warnings")
    output.add_argument("-v", "--verbose", action="count", default=0, help="log more (-v: INFO, -vv: DEBUG)")
    output.add_argument("-l", "--log-file", metavar="FILE", help="append the log to this file, not to standard error")
    add_sources(ls.add_argument_group("what is fetched"))
    add_fetching(ls.add_argument_group("how it is fetched"))
    add_limits(ls.add_argument_group("limits"))
    ls.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Fetch the tree and print it."""
    is_unlogged = arguments.quiet and not arguments.verbose and not arguments.log_file
    log = log_to(arguments.log_file, -1 if is_unlogged else arguments.verbose)
    if arguments.insecure and not arguments.quiet:
        say("usp: warning: TLS certificates are not verified (--insecure)")
    meter = Meter()
    with nullcontext() if arguments.quiet else live_line(meter, log):
        tree, is_interrupted = _fetched(arguments, meter)
    seconds = meter.seconds()
    if is_interrupted:
        say("usp: interrupted; this is what was had until then")
    counts = Counts(tree)
    _, lines = FORMATS[arguments.format]
    for line in lines(tree, counts, tree.url.rstrip("/") if arguments.strip_url else ""):
        print(line)
    if sys.stdout is not None:
        sys.stdout.flush()  # what follows on standard error is about what was printed
    cuts = [problem for problem in tree.problems if problem.code == "C901"]
    for problem in cuts if not is_interrupted else ():
        say(f"usp: {printable(problem.message)}")
    if not tree.sub_sitemaps and not is_interrupted:
        return _nothing_found(tree)
    if not arguments.quiet:
        say(_summary(counts, meter.latest.bytes, seconds, is_whole=not cuts))
    return _INTERRUPTED if is_interrupted else 0


def _fetched(arguments: argparse.Namespace, meter: Meter) -> tuple[AbstractSitemap, bool]:
    """The tree, and whether it is only what was had of it when Ctrl-C was pressed."""
    with warnings.catch_warnings(), client_for(arguments) as client:
        warnings.filterwarnings("ignore", "Unverified HTTPS request")  # it was asked for, and said already
        progress = None if arguments.quiet else meter  # counting pages for it takes a little time
        try:
            return sitemap_tree_for_homepage(arguments.url, client, progress=progress, **tree_options(arguments)), False
        except TreeInterrupted as interrupted:
            return interrupted.tree, True


def _nothing_found(tree: AbstractSitemap) -> int:
    """Say that there are no sitemaps, and why, if there is a reason; gives the exit code."""
    say(f"usp: no sitemaps found at {printable(tree.url)}")
    reasons = [problem for problem in tree.problems if problem.code != "C901"]
    for problem in reasons:
        say(f"usp: {printable(problem.message)}")
    return _NOT_REACHED if reasons else 0


def _summary(counts: Counts, transferred: int, seconds: float, *, is_whole: bool) -> str:
    """What was had, in one line."""
    failed = f" ({counts.failed:,} {'failed' if is_whole else 'failed or not fetched'})" if counts.failed else ""
    return (
        f"usp: {counts.sitemaps:,} {'sitemap' if counts.sitemaps == 1 else 'sitemaps'}{failed},"
        f" {counts.pages:,} {'page' if counts.pages == 1 else 'pages'}, {size(transferred)} in {duration(seconds)}"
    )
