"""`usp ls`: list a site's sitemaps and pages."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from usp.cli.output import log_to, pages_lines, tabtree_lines
from usp.objects.problem import printable
from usp.tree import sitemap_tree_for_homepage

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = ["FORMATS", "register"]

_NOT_REACHED = 3

FORMATS = {
    "tabtree": ("sitemaps and pages, nested with tab indentation", tabtree_lines),
    "pages": ("flat list of pages, one per line", pages_lines),
}


def register(commands: Subparsers) -> None:
    """Add the command."""
    formats = "\n".join(f"  {name}: {what}" for name, (what, _) in FORMATS.items())
    ls = commands.add_parser(
        "ls",
        help="list a site's sitemaps and pages",
        description="Download, parse and list a site's sitemaps and the pages in them.",
        epilog="examples:\n"
        "  usp ls https://www.example.org/\n"
        "  usp ls -f pages https://www.example.org/ | sort -u > pages.txt\n"
        "  usp ls -k -u https://www.example.org/          what robots.txt names only, in short\n",
        formatter_class=argparse.RawTextHelpFormatter,
    )
    ls.add_argument("url", metavar="URL", help="URL of the site, with https:// or http://")
    ls.add_argument(
        "-f",
        "--format",
        choices=FORMATS,
        default="tabtree",
        metavar="FORMAT",
        help=f"set output format (default: %(default)s)\n{formats}",
    )
    ls.add_argument("-r", "--no-robots", action="store_true", help="don't discover sitemaps through robots.txt")
    ls.add_argument("-k", "--no-known", action="store_true", help="don't discover sitemaps through well-known URLs")
    ls.add_argument(
        "-u", "--strip-url", action="store_true", help="strip the site's URL from each page and sitemap URL"
    )
    ls.add_argument("-v", "--verbose", action="count", default=0, help="log more (-v: INFO, -vv: DEBUG)")
    ls.add_argument("-l", "--log-file", metavar="FILE", help="append the log to this file, not to standard error")
    ls.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Fetch the tree and print it."""
    log_to(arguments.log_file, arguments.verbose)
    tree = sitemap_tree_for_homepage(
        arguments.url, use_robots=not arguments.no_robots, use_known_paths=not arguments.no_known
    )
    _, lines = FORMATS[arguments.format]
    for line in lines(tree, tree.url.rstrip("/") if arguments.strip_url else ""):
        print(line)
    if tree.sub_sitemaps:
        return 0
    print(f"usp: no sitemaps found at {printable(tree.url)}", file=sys.stderr)
    for problem in tree.problems:
        print(f"usp: {printable(problem.message)}", file=sys.stderr)
    return _NOT_REACHED if tree.problems else 0
