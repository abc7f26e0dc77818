"""`usp ls`: list a site's sitemaps and pages."""

from __future__ import annotations

import argparse
import io
import os
import shutil
import sys
from collections.abc import Iterator
from stat import S_ISREG
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

from usp.cli import facts, trees
from usp.cli.facts import table_lines, tsv_lines
from usp.cli.outcomes import EXIT_CODES_HELP, Ending
from usp.cli.output import PARTIAL_RESULTS, TreeCounts, say
from usp.cli.pages import ChosenPages, PageBlock, shown_url, shown_urls
from usp.cli.reading import Reader, find_targets, open_reader
from usp.cli.site import add_message_options, add_partial_options, add_since_option, add_site_options, add_targets
from usp.cli.terminal import is_terminal, painter
from usp.cli.tree_json import ListedSource, json_pieces
from usp.cli.trees import DrawnTree, Signs, signs_for, tabtree
from usp.exceptions import InvalidArgumentError, TreeInterrupted
from usp.export.batches import FirstPlaces
from usp.export.reading import SitemapRow, sitemap_rows
from usp.objects.sitemap import AbstractSitemap, IndexWebsiteSitemap
from usp.origins import LOCAL_URL, split_credentials

if TYPE_CHECKING:
    from usp.cli.site import Subparsers
    from usp.stream import SitemapStream

__all__ = ["FORMATS", "register"]

TREE, TABTREE, PAGES, JSON, TABLE, TSV = "tree", "tabtree", "pages", "json", "table", "tsv"
FORMATS = {
    TREE: "drawn with lines; the default on a terminal",
    TABTREE: "nested with tabs; the default elsewhere",
    PAGES: "one page per line, printed as sitemaps arrive",
    JSON: "trees, outcomes and facts, for programs",
    TABLE: "only sitemaps, aligned; the default of\n         --sitemaps on a terminal",
    TSV: "only sitemaps, complete, with tabs; the default\n       of --sitemaps elsewhere",
}
_PIECE = 1 << 14  # characters; a pipe takes at least 64 kB at once
_EPILOG = f"""\
On a terminal, a big site is shown in short: the number of pages and the first
pages of each sitemap. --all, a pipe and a file get everything. Sitemaps that
failed are marked.

On a terminal, one line on standard error shows the progress; the last line is a
summary. Press Ctrl-C to stop early and list what has been fetched.

examples:
  usp ls example.org
  usp ls example.org --sitemaps
  usp ls https://www.example.org/sitemap-news.xml --since 24h
  usp ls public/ --url https://www.example.org/
  usp ls -f pages https://www.example.org/ | sort -u > pages.txt
  usp ls -f json https://www.example.org/ | jq .outcome.kind
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
        metavar="FORMAT",
        help=f"output format\n{formats}",
    )
    output.add_argument(
        "--sitemaps",
        action="store_true",
        help="list sitemaps instead of pages: pages, bytes, dates,\nstatus, seconds, ETag and problems of each",
    )
    output.add_argument("--all", action="store_true", help="on a terminal, print all pages and sitemaps")
    output.add_argument("-u", "--strip-url", action="store_true", help="print URLs without the site's scheme and host")
    add_since_option(output, "list")
    add_partial_options(output, has_file=False)
    add_message_options(output)
    add_site_options(ls)
    ls.set_defaults(command=run, refuse=ls.error)


def run(arguments: argparse.Namespace) -> int:
    """Read the targets and list them. Return the exit code."""
    sources = find_targets(arguments)
    listing = _Listing(arguments)
    # Pages that scroll by on the terminal show the progress themselves.
    is_shown = not (listing.is_streamed and is_terminal(sys.stdout))
    with open_reader(arguments, sources, is_progress_shown=is_shown) as reader:
        listing.read(reader)
    trees = tuple(source.tree for source in listing.listed)
    cost = reader.cost(trees)
    ending = Ending.of_trees(trees, is_strict=arguments.strict, is_interrupted=listing.is_interrupted)
    # JSON has the outcome, so it is printed even if nothing could be fetched.
    is_outcome_shown = listing.format == JSON or listing.is_interrupted
    is_printed = ending.is_kept or (is_outcome_shown and not arguments.strict)
    if is_printed:
        listing.print_rest(ending)
        ending = Ending.of_trees(trees, is_strict=arguments.strict, is_interrupted=listing.is_interrupted)
    if sys.stdout is not None:
        sys.stdout.flush()  # so that the summary on standard error comes after the output
    ending.say(TreeCounts(trees, listing.pages if is_printed else None), cost, is_quiet=arguments.quiet)
    if ending.has_result and not is_printed and not arguments.quiet:
        say(f"usp: {'interrupted; ' if listing.is_interrupted else ''}nothing is listed, because of --strict")
    return ending.exit_code


def _format(arguments: argparse.Namespace) -> str:
    """Return the output format: the one asked for, or what suits standard output."""
    if arguments.format is None:
        is_watched = is_terminal(sys.stdout)
        if arguments.sitemaps:
            return TABLE if is_watched else TSV
        return TREE if is_watched else TABTREE
    if arguments.sitemaps and arguments.format == PAGES:
        arguments.refuse("--sitemaps lists sitemaps, and -f pages lists pages: choose one")
    return str(arguments.format)


def _chosen_pages(arguments: argparse.Namespace) -> ChosenPages:
    try:
        return ChosenPages(arguments.since)
    except InvalidArgumentError as error:
        arguments.refuse(f"--{error}")
        raise


class _Listing:
    """Reads sources and prints them: trees when all are complete, pages as their sitemaps arrive."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.format = _format(arguments)
        self.is_streamed = self.format == PAGES and not arguments.strict
        self.is_interrupted = False
        self.listed: list[ListedSource] = []
        self.pages = 0  # printed, or counted
        self._chosen = _chosen_pages(arguments)
        self._streamed = 0  # pages of the present source, with those that --since leaves out
        self._arguments = arguments

    def read(self, reader: Reader) -> None:
        """Read all sources; after Ctrl-C, what has been fetched until then."""
        is_watched = sys.stdout is not None and not _is_file(sys.stdout)
        names = (split_credentials(source.target)[0] for source in reader.sources)
        for (_, stream), name in zip(reader.streams(), names, strict=False):
            self._streamed = 0
            places = FirstPlaces()
            try:
                with stream:
                    for sitemap in stream:
                        is_printed = self.is_streamed and places.is_first(sitemap)
                        for block in self._chosen.blocks(sitemap) if is_printed else ():
                            self._print_block(block, self._prefix(stream.homepage_url))
                            if is_watched:
                                print(end="", flush=True)
            except TreeInterrupted as interrupted:
                self.is_interrupted = True
                self.listed.append(_listed(name, stream, interrupted.tree))
                return
            self.listed.append(_listed(name, stream, stream.tree))

    def _prefix(self, url: str) -> str:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.netloc}" if self._arguments.strip_url else ""

    def _print_block(self, block: PageBlock, prefix: str) -> None:
        if block.urls:
            _write("\n".join(shown_urls(block.urls, prefix)) + "\n")
        self.pages += len(block.urls)
        self._streamed += block.pages

    def print_rest(self, ending: Ending) -> None:
        """Print what was not printed while reading."""
        if self.is_interrupted:
            say(PARTIAL_RESULTS)
        if self.format == PAGES:
            # Of an interrupted source, sitemaps may have arrived that wait for one before them.
            unprinted = [] if self.is_streamed and not self.is_interrupted else self.listed
            for source in unprinted[-1:] if self.is_streamed else unprinted:
                self._print_pages(source.tree)
        elif self.format == JSON:
            self._print_json(ending)
        elif self.format == TSV:
            self._print_tsv()
        else:
            for number, source in enumerate(self.listed):
                self._print_tree(source, is_first=not number)

    def _print_pages(self, tree: AbstractSitemap) -> None:
        """Print the pages of a tree that were not printed yet. The tree of an interrupted run has no limit of pages."""
        done, self._streamed = self._streamed if self.is_streamed else 0, 0
        most = self._arguments.max_pages
        for sitemap in filter(FirstPlaces().is_first, (tree, *tree.all_sitemaps())):
            room = None if most is None else most - self._streamed
            if room == 0:
                return
            skip = max(done - self._streamed, 0)
            self._streamed += min(skip, len(sitemap.pages)) if skip else 0
            for block in self._chosen.blocks(sitemap, skip=skip, most=room):
                self._print_block(block, self._prefix(tree.url))

    def _print_tree(self, source: ListedSource, *, is_first: bool) -> None:
        tree, names = source.tree, source.files
        prefix, with_pages = self._prefix(tree.url), not self._arguments.sitemaps
        if self.format == TABTREE:
            for count, lines in tabtree(tree, self._chosen, prefix, names=names, with_pages=with_pages):
                self.pages += count
                _write(lines)
            return
        _write("" if is_first else "\n")
        signs = signs_for(sys.stdout)
        if self.format == TABLE:
            self._print_table(source, prefix, signs)
            return
        is_whole = self._arguments.all or not is_terminal(sys.stdout)
        paint = painter(sys.stdout, trees.STYLES)
        drawn = DrawnTree(
            tree, self._chosen, prefix, names=names, is_whole=is_whole, with_pages=with_pages, signs=signs, paint=paint
        )
        self.pages += drawn.chosen_pages
        for lines in drawn.lines():
            _write(lines)

    def _print_table(self, source: ListedSource, prefix: str, signs: Signs) -> None:
        def show_url(url: str) -> str:
            return shown_url(source.files.get(url, url), prefix)

        found = list(self._rows(source.tree))
        width = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None
        paint = painter(sys.stdout, facts.STYLES)
        for line in table_lines(found, width, signs=signs, paint=paint, show_url=show_url):
            _write(line)

    def _print_tsv(self) -> None:
        for number, source in enumerate(self.listed):
            name = source.name if len(self.listed) > 1 else None
            for line in tsv_lines(self._rows(source.tree), source=name, has_heading=not number):
                _write(line)

    def _print_json(self, ending: Ending) -> None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # not that of the terminal: programs read it
        with_pages = not self._arguments.sitemaps
        for count, piece in json_pieces(self.listed, ending.outcome, self._chosen, with_pages=with_pages):
            self.pages += count
            _write(piece)

    def _rows(self, tree: AbstractSitemap) -> Iterator[SitemapRow]:
        """Give what is known about the sitemaps of a tree, and count their pages. A website is not a sitemap itself."""
        places = FirstPlaces()
        for row in sitemap_rows(tree):
            self.pages += row.values["pages"] if places.is_first(row.sitemap) else 0
            if not isinstance(row.sitemap, IndexWebsiteSitemap):
                yield row


def _listed(name: str, stream: SitemapStream, tree: AbstractSitemap) -> ListedSource:
    files = {url: file for url, file in stream.names.items() if url.startswith(LOCAL_URL)}
    return ListedSource(name, tree, tuple(stream.notes), files)


def _write(text: str) -> None:
    """Write a text in pieces.

    With PYTHONUNBUFFERED, Python ignores that only a part of a text could be written to a pipe that was closed
    meanwhile. The next piece then raises an error.
    """
    for start in range(0, len(text) if sys.stdout is not None else 0, _PIECE):
        sys.stdout.write(text[start : start + _PIECE])


def _is_file(stream: IO[str]) -> bool:
    """Return whether a stream writes to a file, so that nobody waits for each line."""
    try:
        return S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False
