"""`usp sql`: ask a site's tables a question in SQL."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import closing, nullcontext
from typing import TYPE_CHECKING, Any

from usp.cli.output import PARTIAL_RESULTS, TreeCounts, say
from usp.cli.progress import ProgressMeter, progress_line
from usp.cli.site import (
    NOT_REACHED,
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
from usp.export.formats import STANDARD_OUTPUT
from usp.objects.problem import printable
from usp.objects.sitemap import AbstractSitemap
from usp.tree import sitemap_tree_for_homepage

if TYPE_CHECKING:
    from usp.cli.site import Subparsers

__all__ = ["register"]

FORMATS = {
    "table": "aligned, for people",
    "csv": "with cells that a spreadsheet would run made harmless",
    "json": "a list of objects",
    "parquet": "Apache Parquet",
}
_EPILOG = """\
The tables are those of `usp export`: pages and sitemaps. The language is that of
DuckDB: https://duckdb.org/docs/stable/sql/introduction. A query of one SELECT is
looked at before anything is fetched; of others, the syntax. Times are in UTC.

examples:
  usp sql https://www.example.org/ "select change_frequency, count(*) from pages group by 1"
  usp sql https://www.example.org/ \\
      "select type, status, count(*), sum(pages) from sitemaps group by all"
  usp sql https://www.example.org/ -f csv -o twice.csv \\
      "select url, list(sitemap_url) from pages group by 1 having count(*) > 1"
  usp sql https://www.example.org/ "select url, unnest(images).loc from pages"
"""


def register(commands: Subparsers) -> None:
    """Add the command."""
    sql = commands.add_parser(
        "sql",
        usage="usp sql [OPTION ...] URL QUERY",
        help="ask a site's pages and sitemaps a question in SQL",
        description="Fetch a site, and run a query over its tables `pages` and `sitemaps`. It needs the extra sql.",
        epilog=_EPILOG,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    sql.add_argument("url", type=site_url, metavar="URL", help="URL of the site, with https:// or http://")
    sql.add_argument("query", metavar="QUERY", help="the query; - reads it from standard input")
    output = sql.add_argument_group("output")
    formats = "\n".join(f"  {name}: {what}" for name, what in FORMATS.items())
    output.add_argument(
        "-f",
        "--format",
        choices=FORMATS,
        metavar="FORMAT",
        help=f"set output format (default: what FILE ends with; table)\n{formats}",
    )
    output.add_argument(
        "-o", "--output", metavar="FILE", help="write to this file, when the answer is whole; - for standard\noutput"
    )
    output.add_argument(
        "--raw-csv", action="store_true", help="write CSV cells as they are, even if a spreadsheet\nwould run them"
    )
    add_message_options(output)
    add_site_options(sql)
    sql.set_defaults(command=run, refuse=sql.error)


def run(arguments: argparse.Namespace) -> int:
    """Fetch a site, and print the answer to the query."""
    from usp.cli.sql_output import write_answer
    from usp.export.files import ensure_writable
    from usp.export.queries import Query

    if (why := option_conflict(arguments)) is not None:
        arguments.refuse(why)
    if arguments.output == STANDARD_OUTPUT:
        arguments.output = None
    if arguments.format is None:
        arguments.format = _format_of(arguments.output)
        if arguments.format not in FORMATS:
            arguments.refuse(f"-o {arguments.output}: say in which format to write, with -f {', '.join(FORMATS)}")
    if arguments.format == "parquet" and arguments.output is None and sys.stdout is not None and sys.stdout.isatty():
        arguments.refuse("Parquet is not for a terminal; name a file with -o FILE, or redirect the output")
    text = sys.stdin.read() if arguments.query == "-" and sys.stdin is not None else arguments.query
    if arguments.output is not None:
        ensure_writable(arguments.output)
    with closing(Query(text)) as query:
        log = start_log(arguments)
        if not arguments.quiet:
            warn_about_options(arguments, arguments.url, "asking the whole site of {}, not only what is at this URL")
        meter = ProgressMeter()
        tree, is_interrupted = _fetched(arguments, meter, log)
        cost = None if arguments.quiet else (meter.latest.bytes, meter.seconds())
        code = print_summary(tree, TreeCounts(tree, None), is_interrupted=is_interrupted, cost=cost)
        if is_interrupted and arguments.output is not None:
            say(f"usp: {printable(arguments.output)} was not written")
        elif code != NOT_REACHED:
            write_answer(query.answer(tree), arguments)
    return code


def _format_of(path: str | None) -> str:
    """The format that a file's name ends with; a table, for people, where there is no file."""
    return "table" if path is None else os.path.splitext(path)[1].lower().removeprefix(".").replace("txt", "table")


def _fetched(arguments: argparse.Namespace, meter: ProgressMeter, log: Any) -> tuple[AbstractSitemap, bool]:
    """The tree, and whether Ctrl-C was pressed: then it is what was had until then."""
    progress = None if arguments.quiet else meter  # counting pages for it takes a little time
    with nullcontext() if arguments.quiet else progress_line(meter, log), site_client(arguments) as client:
        try:
            tree = sitemap_tree_for_homepage(arguments.url, client, progress=progress, **tree_options(arguments))
        except TreeInterrupted as interrupted:
            if arguments.output is None:
                say(PARTIAL_RESULTS)
            return interrupted.tree, True
    return tree, False
