"""`usp view`: explore sites, files or crawls in the browser."""

from __future__ import annotations

import argparse
import threading
import webbrowser
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from usp.cli.outcomes import advice
from usp.cli.output import say
from usp.cli.reading import Reader, find_targets, open_reader
from usp.cli.site import add_message_options, add_site_options, add_targets
from usp.limits import SMALL_MEMORY_BYTES

if TYPE_CHECKING:
    from usp.cli.site import Subparsers
    from usp.sources import Source
    from usp.stream import HomepageOptions, SitemapStream
    from usp.view.server import Access

__all__ = ["add_server_options", "explore", "register"]

_EPILOG = """\
Only this machine can open the page, unless you add --host, and only with the
token in its address. The page fills while sitemaps are fetched. Ctrl-C ends it,
and removes the temporary files.

examples:
  usp view https://www.example.org/
  usp view public/                 a folder, as a site
  usp view crawl/                  a crawl folder, with its changes
  usp view example.org --no-open   print the address only
"""
_LOCAL = ("127.0.0.1", "localhost", "::1")


def register(commands: Subparsers) -> None:
    """Add the command to the command line."""
    view = commands.add_parser(
        "view",
        help="explore a site in the browser: sections, dates, sitemaps, pages, problems",
        description="Open a page in the browser that shows a site, files or a crawl: how it is built,\n"
        "what is fresh and what is stale, its sitemaps, pages and problems, and what has\n"
        "changed. Needs the extra view.",
        epilog=_EPILOG,
        formatter_class=argparse.RawTextHelpFormatter,
        usage="usp view [OPTION ...] TARGET ...",
    )
    add_targets(view)
    add_server_options(view.add_argument_group("server"))
    add_message_options(view.add_argument_group("messages"))
    add_site_options(view)
    view.set_defaults(command=run, refuse=view.error)


def add_server_options(group: argparse._ArgumentGroup) -> None:
    """Add the options of the server."""
    group.add_argument("--no-open", action="store_true", help="print the address, and open no browser")
    group.add_argument("--port", type=_port, default=0, help="port of the page (default: any free port)")
    group.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on (default: %(default)s, for this\nmachine only)",
    )


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to 65535, not {text!r}")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Read the targets, and serve the page until Ctrl-C. Return the exit code."""
    if not arguments.targets:
        arguments.refuse("give a target: usp view example.org")
    sources = find_targets(arguments)
    with open_reader(arguments, sources, is_progress_shown=False) as reader:
        explore(arguments, sources, _streams(reader), reader.options)
    return 0


def _streams(reader: Reader) -> Iterator[tuple[Source, SitemapStream]]:
    for source, (_, stream) in zip(reader.sources, reader.streams(SMALL_MEMORY_BYTES), strict=True):
        yield source, stream


def explore(
    arguments: argparse.Namespace,
    sources: tuple[Source, ...],
    streams: Iterator[tuple[Source, SitemapStream]],
    options: dict[str, Any],
) -> None:
    """Serve the page until Ctrl-C."""
    from usp.view.explorer import Explorer  # with DuckDB and pyarrow: other commands do not need it
    from usp.view.server import serve

    def on_start(access: Access) -> None:
        if arguments.host not in _LOCAL:
            say(
                f"usp: warning: everybody who reaches {arguments.host} and has the token can read what you explore,\n"
                "usp: and the connection is not encrypted"
            )
        print(f"Explore at {access.url}\nCtrl-C ends it.", flush=True)
        if not arguments.no_open:  # some browsers do not return before they are closed
            threading.Thread(target=webbrowser.open, args=(access.url,), daemon=True).start()

    explorer = Explorer(sources, streams, cast("HomepageOptions", options), advice)
    try:
        serve(explorer, arguments.host, arguments.port, on_start)
    except KeyboardInterrupt:
        pass  # the way to end it
    finally:
        explorer.close()
