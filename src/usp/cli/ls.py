"""`usp ls`: list a site's sitemaps and pages."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from contextlib import closing, nullcontext
from itertools import islice
from stat import S_ISREG
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

from usp.cli.live import Meter, live_line
from usp.cli.ls_options import add_messages, add_site_options, refusal, site_url, tree_options, warn
from usp.cli.output import Counts, page_line, say, tabtree_lines
from usp.cli.site import log_of, report, site_client
from usp.exceptions import TreeInterrupted
from usp.objects.page import SitemapPage
from usp.objects.sitemap import AbstractSitemap
from usp.progress import Progress
from usp.tree import sitemap_tree_for_homepage, stream_pages_for_homepage

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = ["FORMATS", "register"]

FORMATS = {
    "tabtree": "sitemaps and pages, nested with tabs",
    "pages": "one per line, printed as they come in",
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
    ls.add_argument("url", type=site_url, metavar="URL", help="URL of the site, with https:// or http://")
    output = ls.add_argument_group("output")
    formats = "\n".join(f"  {name}: {what}" for name, what in FORMATS.items())
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
    add_messages(output)
    add_site_options(ls)
    ls.set_defaults(command=run, refuse=ls.error)


def run(arguments: argparse.Namespace) -> int:
    """Fetch the tree and print it."""
    if (why := refusal(arguments)) is not None:
        arguments.refuse(why)
    log = log_of(arguments)
    if not arguments.quiet:
        warn(arguments, arguments.url, "listing the whole site of {}, not only what is at this URL")
    is_streamed = arguments.format == "pages"
    # Where pages scroll by, they show themselves how far it is.
    is_live = not arguments.quiet and not (is_streamed and sys.stdout is not None and sys.stdout.isatty())
    meter = Meter()
    printing = _Printing(arguments)
    with live_line(meter, log) if is_live else nullcontext():
        fetch = printing.fetched_pages if is_streamed else printing.fetched
        tree = fetch(None if arguments.quiet else meter)  # counting pages for it takes a little time
    seconds = meter.seconds()
    counts = printing.rest(tree)
    if sys.stdout is not None:
        sys.stdout.flush()  # what follows on standard error is about what was printed
    return report(
        tree,
        counts,
        is_interrupted=printing.is_interrupted,
        cost=None if arguments.quiet else (meter.latest.bytes, seconds),
    )


class _Printing:
    """Fetches a site and prints it: a tree when all of it is there, pages as they come in."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.is_interrupted = False
        self._arguments = arguments
        self._pages = 0  # that were printed while it was fetched
        parts = urlsplit(arguments.url)
        self._stripped = f"{parts.scheme}://{parts.netloc}" if arguments.strip_url else ""

    def fetched(self, progress: Callable[[Progress], None] | None) -> AbstractSitemap:
        """The tree; if Ctrl-C is pressed, what was had of it."""
        with site_client(self._arguments) as client:
            try:
                return sitemap_tree_for_homepage(
                    self._arguments.url, client, progress=progress, **tree_options(self._arguments)
                )
            except TreeInterrupted as interrupted:
                return self._interrupted(interrupted)

    def fetched_pages(self, progress: Callable[[Progress], None] | None) -> AbstractSitemap:
        """The same, printing its pages in the order of the tree as far as they are there."""
        options = tree_options(self._arguments)
        with (
            site_client(self._arguments) as client,
            closing(
                stream_pages_for_homepage(self._arguments.url, client, ordered=True, progress=progress, **options)
            ) as pages,
        ):
            is_watched = sys.stdout is not None and not _is_file(sys.stdout)
            try:
                while True:
                    self._print(next(pages), is_flushed=is_watched)
            except StopIteration as end:
                tree: AbstractSitemap = end.value
                return tree
            except TreeInterrupted as interrupted:
                return self._interrupted(interrupted)
            except KeyboardInterrupt as interrupt:  # while a page was printed
                try:
                    pages.throw(interrupt)
                except TreeInterrupted as interrupted:
                    return self._interrupted(interrupted)
                raise

    def _print(self, page: SitemapPage, *, is_flushed: bool) -> None:
        """Print a page; at once, where somebody may wait for just this one."""
        print(page_line(page, self._stripped))
        self._pages += 1
        if is_flushed:
            print(end="", flush=True)

    def _interrupted(self, interrupted: TreeInterrupted) -> AbstractSitemap:
        self.is_interrupted = True
        return interrupted.tree

    def rest(self, tree: AbstractSitemap) -> Counts:
        """Print what was not printed yet; gives what there is in all."""
        if self.is_interrupted:
            say("usp: interrupted; this is what was had until then")
        counts = Counts(tree, self._pages)
        if self._arguments.format == "tabtree":
            for line in tabtree_lines(tree, counts, self._stripped):
                print(line)
        elif self.is_interrupted:
            for page in islice(tree.all_pages(), self._pages, self._arguments.max_pages):
                counts.pages += 1
                print(page_line(page, self._stripped))
        return counts


def _is_file(stream: IO[str]) -> bool:
    """Whether a stream goes to a file, and nobody waits for it."""
    try:
        return S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False
