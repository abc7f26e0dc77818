"""`usp ls`: list a site's sitemaps and pages."""

from __future__ import annotations

import argparse
import os
import sys
from itertools import islice
from stat import S_ISREG
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

from usp.cli.outcomes import EXIT_CODES_HELP, Ending
from usp.cli.output import PARTIAL_RESULTS, TreeCounts, page_line, say, tabtree_lines
from usp.cli.reading import Reader, find_targets, open_reader
from usp.cli.site import add_message_options, add_partial_options, add_site_options, add_targets
from usp.exceptions import TreeInterrupted
from usp.objects.page import SitemapPage
from usp.objects.sitemap import AbstractSitemap

if TYPE_CHECKING:
    from usp.cli.site import Subparsers

__all__ = ["FORMATS", "register"]

FORMATS = {
    "tabtree": "sitemaps and pages, nested with tabs",
    "pages": "one page per line, printed as sitemaps arrive",
}
_EPILOG = f"""\
On a terminal, one line on standard error shows the progress; the last line is a
summary. Press Ctrl-C to stop early and list what has been fetched.

examples:
  usp ls example.org
  usp ls https://www.example.org/sitemap-news.xml
  usp ls public/ --url https://www.example.org/
  usp ls -f pages https://www.example.org/ | sort -u > pages.txt
  usp ls -k -u https://www.example.org/  # only what robots.txt names
  usp ls --max-pages 1000 --max-time 60 https://www.example.org/
  usp ls -c 2 --crawl-delay --respect-robots https://www.example.org/
  usp ls --user-agent my-crawler/1.0 -H 'Cookie: a=b' https://www.example.org/

{EXIT_CODES_HELP}"""


def register(commands: Subparsers) -> None:
    """Add the command to the command line."""
    ls = commands.add_parser(
        "ls",
        usage="usp ls [OPTION ...] TARGET ...",
        help="list a site's sitemaps and pages",
        description="Fetch a site's sitemaps and list them with their pages.",
        epilog=_EPILOG,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    add_targets(ls)
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
    add_partial_options(output, has_file=False)
    add_message_options(output)
    add_site_options(ls)
    ls.set_defaults(command=run, refuse=ls.error)


def run(arguments: argparse.Namespace) -> int:
    """Read the targets and list them. Return the exit code."""
    sources = find_targets(arguments)
    is_streamed = arguments.format == "pages" and not arguments.strict
    # Pages that scroll by on the terminal show the progress themselves.
    is_shown = not (is_streamed and sys.stdout is not None and sys.stdout.isatty())
    listing = _Listing(arguments)
    with open_reader(arguments, sources, is_progress_shown=is_shown) as reader:
        listing.read(reader, is_streamed=is_streamed)
    trees = tuple(listing.trees)
    cost = reader.cost(trees)
    ending = Ending.of_trees(trees, is_strict=arguments.strict, is_interrupted=listing.is_interrupted)
    counts = TreeCounts(trees, listing.printed_pages)
    if ending.is_kept or (listing.is_interrupted and not arguments.strict):
        listing.print_rest(counts)
    if sys.stdout is not None:
        sys.stdout.flush()  # so that the summary on standard error comes after the output
    ending.say(counts, cost, is_quiet=arguments.quiet)
    return ending.exit_code


class _Listing:
    """Reads sources and prints them: a tree when it is complete, pages as their sitemaps arrive."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.is_interrupted = False
        self.trees: list[AbstractSitemap] = []
        self.printed_pages = 0  # while reading
        self._arguments = arguments

    def read(self, reader: Reader, *, is_streamed: bool) -> None:
        """Read all sources; after Ctrl-C, what has been fetched until then."""
        is_watched = sys.stdout is not None and not _is_file(sys.stdout)
        try:
            for _, stream in reader.streams():
                with stream:
                    for sitemap in stream:
                        for page in sitemap.pages if is_streamed else ():
                            self._print(page, self._prefix(stream.homepage_url), flush=is_watched)
                self.trees.append(stream.tree)
        except TreeInterrupted as interrupted:
            self.is_interrupted = True
            self.trees.append(interrupted.tree)

    def _prefix(self, url: str) -> str:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.netloc}" if self._arguments.strip_url else ""

    def _print(self, page: SitemapPage, prefix: str, *, flush: bool) -> None:
        print(page_line(page, prefix))
        self.printed_pages += 1
        if flush:
            print(end="", flush=True)

    def print_rest(self, counts: TreeCounts) -> None:
        """Print what was not printed while reading, and count it."""
        if self.is_interrupted:
            say(PARTIAL_RESULTS)
        if self._arguments.format == "tabtree":
            for tree in self.trees:
                for line in tabtree_lines(tree, counts, self._prefix(tree.url)):
                    print(line)
            return
        pages = ((page, tree.url) for tree in self.trees for page in tree.all_pages())
        for page, url in islice(pages, self.printed_pages, self._arguments.max_pages):
            counts.pages += 1
            print(page_line(page, self._prefix(url)))


def _is_file(stream: IO[str]) -> bool:
    """Return whether a stream writes to a file, so that nobody waits for each line."""
    try:
        return S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False
