"""`usp demo`: the main job, with no network."""

from __future__ import annotations

import argparse
import threading
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from usp.cli.demo_site import demo_site
from usp.cli.output import Counts, log_to, tabtree_lines
from usp.objects.problem import printable
from usp.objects.sitemap import AbstractSitemap, InvalidSitemap
from usp.tree import sitemap_tree_for_homepage

if TYPE_CHECKING:
    from usp.cli.ls import Subparsers

__all__ = ["register"]


def register(commands: Subparsers) -> None:
    """Add the command."""
    demo = commands.add_parser(
        "demo",
        help="read the built-in example website, with no network",
        description="Start a small example website on this machine, read its sitemap tree as that of any site, print it"
        " and a summary, and stop the website.",
        epilog="With --serve, try any command on it in another terminal: usp ls http://127.0.0.1:8000/",
    )
    demo.add_argument("--serve", action="store_true", help="leave the website running until Ctrl-C")
    demo.add_argument(
        "--port", type=_port, help="the port to serve it on (default: any that is free; with --serve: 8000)"
    )
    demo.set_defaults(command=run)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to 65535, not {text!r}")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Serve the website and read it, or serve it only."""
    log_to(None, -1)
    port = arguments.port if arguments.port is not None else 8000 if arguments.serve else 0
    with demo_site(port) as homepage:
        if arguments.serve:
            print(f"Serving {homepage} (Ctrl-C to stop)", flush=True)
            threading.Event().wait()
        tree = sitemap_tree_for_homepage(homepage)
    for line in (*tabtree_lines(tree, Counts(tree)), "", *summary_lines(tree)):
        print(line)
    return 0


def summary_lines(tree: AbstractSitemap) -> Iterator[str]:
    """What a tree holds, what could not be had, and what was wrong."""
    sitemaps = list(tree.all_sitemaps())
    kinds = Counter(type(sitemap).__name__ for sitemap in sitemaps)
    invalid = [sitemap for sitemap in sitemaps if isinstance(sitemap, InvalidSitemap)]
    problems = list(tree.all_problems())
    yield f"sitemaps: {len(sitemaps)} ({', '.join(f'{n} {kind}' for kind, n in kinds.items())})"
    yield f"pages: {sum(1 for _ in tree.all_pages())}"
    yield f"sitemaps that failed: {len(invalid)}"
    yield from (f"  {printable(sitemap.reason)}" for sitemap in invalid)
    yield f"problems in the others, put right or passed over: {len(problems)}"
    yield from (f"  {printable(str(problem))}" for problem in problems)
