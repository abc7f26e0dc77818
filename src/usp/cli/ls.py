"""`usp ls`: list a site's sitemaps and pages."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from itertools import islice
from stat import S_ISREG
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

from usp.cli.output import PARTIAL_RESULTS, TreeCounts, page_line, say, tabtree_lines
from usp.cli.progress import ProgressMeter, progress_line
from usp.cli.site import (
    add_message_options,
    add_site_options,
    option_conflict,
    print_summary,
    site_client,
    site_url,
    start_log,
    tree_options,
    warn_about_options,
)
from usp.exceptions import TreeInterrupted
from usp.objects.page import SitemapPage
from usp.objects.sitemap import AbstractSitemap
from usp.progress import Progress
from usp.tree import sitemap_tree_for_homepage, stream_sitemaps_for_homepage

if TYPE_CHECKING:
    from usp.cli.site import Subparsers

__all__ = ["FORMATS", "register"]

FORMATS = {
    "tabtree": "sitemaps and pages, nested with tabs",
    "pages": "one page per line, printed as sitemaps arrive",
}
_EPILOG = """\
On a terminal, one line on standard error shows the progress; the last line is a
summary. Press Ctrl-C to stop early and list what has been fetched.

examples:
  usp ls https://www.example.org/
  usp ls -f pages https://www.example.org/ | sort -u > pages.txt
  usp ls -k -u https://www.example.org/  # only what robots.txt names
  usp ls --max-pages 1000 --max-time 60 https://www.example.org/
  usp ls -c 2 --crawl-delay --respect-robots https://www.example.org/
  usp ls --user-agent my-crawler/1.0 -H 'Cookie: a=b' https://www.example.org/
"""


def register(commands: Subparsers) -> None:
    """Add the command to the command line."""
    ls = commands.add_parser(
        "ls",
        usage="usp ls [OPTION ...] URL",
        help="list a site's sitemaps and pages",
        description="Fetch a site's sitemaps and list them with their pages.",
        epilog=_EPILOG,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    ls.add_argument("url", type=site_url, metavar="URL", help="URL of the site, with https:// or http://")
    output = ls.add_argument_group("output")
    formats = "\n".join(f"  {name}: {what}" for name, what in FORMATS.items())
    output.add_argument(
        "-f",
        "--format",
        choices=FORMATS,
        default="tabtree",
        metavar="FORMAT",
        help=f"output format (default: %(default)s)\n{formats}",
    )
    output.add_argument("-u", "--strip-url", action="store_true", help="print URLs without the site's scheme and host")
    add_message_options(output)
    add_site_options(ls)
    ls.set_defaults(command=run, refuse=ls.error)


def run(arguments: argparse.Namespace) -> int:
    """Fetch a site and list it. Return the exit code."""
    if (conflict := option_conflict(arguments)) is not None:
        arguments.refuse(conflict)
    log = start_log(arguments)
    if not arguments.quiet:
        warn_about_options(arguments, arguments.url, "listing the whole site of {}, not only what is at this URL")
    is_streamed = arguments.format == "pages"
    # Pages that scroll by on the terminal show the progress themselves.
    is_shown = not arguments.quiet and not (is_streamed and sys.stdout is not None and sys.stdout.isatty())
    meter = ProgressMeter()
    listing = _Listing(arguments)
    with progress_line(meter, log) if is_shown else nullcontext():
        fetch = listing.stream_pages if is_streamed else listing.fetch_tree
        tree = fetch(None if arguments.quiet else meter)  # counting pages takes a little time
    seconds = meter.seconds()
    counts = listing.print_rest(tree)
    if sys.stdout is not None:
        sys.stdout.flush()  # so that the summary on standard error comes after the output
    return print_summary(
        tree,
        counts,
        is_interrupted=listing.is_interrupted,
        cost=None if arguments.quiet else (meter.latest.bytes, seconds),
    )


class _Listing:
    """Fetch a site and print it: a tree when it is complete, pages as their sitemaps arrive."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.is_interrupted = False
        self._arguments = arguments
        self._printed_pages = 0  # while fetching
        parts = urlsplit(arguments.url)
        self._prefix = f"{parts.scheme}://{parts.netloc}" if arguments.strip_url else ""

    def fetch_tree(self, progress: Callable[[Progress], None] | None) -> AbstractSitemap:
        """Return the tree; after Ctrl-C, the part of it that has been fetched."""
        options = tree_options(self._arguments)
        try:
            with site_client(self._arguments) as client:
                return sitemap_tree_for_homepage(self._arguments.url, client, progress=progress, **options)
        except TreeInterrupted as interrupted:
            return self._partial_tree(interrupted)

    def stream_pages(self, progress: Callable[[Progress], None] | None) -> AbstractSitemap:
        """Return the same tree, and print its pages in tree order while it is fetched."""
        options = tree_options(self._arguments)
        is_watched = sys.stdout is not None and not _is_file(sys.stdout)
        try:
            with (
                site_client(self._arguments) as client,
                stream_sitemaps_for_homepage(self._arguments.url, client, progress=progress, **options) as stream,
            ):
                for sitemap in stream:
                    for page in sitemap.pages:
                        self._print(page, flush=is_watched)
        except TreeInterrupted as interrupted:
            return self._partial_tree(interrupted)
        return stream.tree

    def _print(self, page: SitemapPage, *, flush: bool) -> None:
        print(page_line(page, self._prefix))
        self._printed_pages += 1
        if flush:
            print(end="", flush=True)

    def _partial_tree(self, interrupted: TreeInterrupted) -> AbstractSitemap:
        self.is_interrupted = True
        return interrupted.tree

    def print_rest(self, tree: AbstractSitemap) -> TreeCounts:
        """Print what was not printed while fetching. Return the counts of everything."""
        if self.is_interrupted:
            say(PARTIAL_RESULTS)
        counts = TreeCounts(tree, self._printed_pages)
        if self._arguments.format == "tabtree":
            for line in tabtree_lines(tree, counts, self._prefix):
                print(line)
        elif self.is_interrupted:
            for page in islice(tree.all_pages(), self._printed_pages, self._arguments.max_pages):
                counts.pages += 1
                print(page_line(page, self._prefix))
        return counts


def _is_file(stream: IO[str]) -> bool:
    """Return whether a stream writes to a file, so that nobody waits for each line."""
    try:
        return S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False
