"""`usp export`: write a site's pages, or its sitemaps, to a file."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING

from usp import export
from usp.cli import INTERRUPTED
from usp.cli.output import TreeCounts, say, size
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
from usp.exceptions import InvalidArgumentError, TreeInterrupted
from usp.export.formats import BINARY_ON_TERMINAL, STANDARD_OUTPUT, TABLE_FORMATS, file_help
from usp.export.schema import PAGES, SITEMAPS, TABLES
from usp.objects.problem import printable
from usp.objects.wording import plural

if TYPE_CHECKING:
    from usp.cli.site import Group, Subparsers
    from usp.export.exporting import Exported, ExportPlan

__all__ = ["register"]

_EPILOG = f"""\
columns of pages:
  {", ".join(list(PAGES)[:5])},
  {", ".join(list(PAGES)[5:9])},
  {", ".join(list(PAGES)[9:])};
  also fields of news: news.title, news.publish_date, ...
columns of sitemaps:
  {", ".join(list(SITEMAPS)[:6])},
  {", ".join(list(SITEMAPS)[6:])}

Rows are written as sitemaps arrive, in the order of the tree. The file appears
when it is complete. If anything goes wrong, an existing file stays as it is.

--where takes an SQL condition on one row, with all functions of DuckDB:
https://duckdb.org/docs/stable/sql/introduction

examples:
  usp export https://www.example.org/ -o pages.parquet
  usp export https://www.example.org/ -o pages.csv.gz --columns url,priority
  usp export https://www.example.org/ -o new.jsonl --since 7d --dedupe
  usp export https://www.example.org/ -o site.db
  usp export https://www.example.org/ -f jsonl | jq .url
  usp export https://www.example.org/ -o news.csv \\
      --where "news.title like '%election%' and priority >= 0.5"
"""


def register(commands: Subparsers) -> None:
    """Add the command to the command line."""
    command = commands.add_parser(
        "export",
        usage="usp export [OPTION ...] URL (-o FILE | -f FORMAT)",
        help="write a site's pages to a file: Parquet, CSV, SQLite, ...",
        description="Fetch a site and write its pages, or its sitemaps, to a file as a table.",
        epilog=_EPILOG,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    command.add_argument("url", type=site_url, metavar="URL", help="URL of the site, with https:// or http://")
    output = command.add_argument_group("output")
    output.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help=f"{file_help(TABLE_FORMATS)}\n- for standard output, the default if you name a format",
    )
    formats = "\n".join(f"  {name}: {one.what}" for name, one in TABLE_FORMATS.items())
    output.add_argument(
        "-f",
        "--format",
        choices=TABLE_FORMATS,
        metavar="FORMAT",
        help=f"output format (default: by the ending of FILE)\n{formats}",
    )
    output.add_argument(
        "--raw-csv",
        action="store_true",
        help="write CSV and TSV cells unchanged, even those that a\nspreadsheet would run as formulas",
    )
    add_message_options(output)
    _add_selection(command.add_argument_group("which rows and columns"))
    add_site_options(command)
    command.set_defaults(command=run, refuse=command.error)


def _add_selection(group: Group) -> None:
    group.add_argument(
        "--table", choices=TABLES, metavar="TABLE", help="pages (default) or sitemaps; databases and workbooks get both"
    )
    group.add_argument("--columns", metavar="NAMES", help="write only these columns, in this order: url,priority")
    group.add_argument(
        "--where",
        metavar="CONDITION",
        help='write only rows that match this SQL condition (needs\nthe extra sql): "priority >= 0.5"',
    )
    group.add_argument(
        "--since",
        metavar="DATE",
        help="write only pages modified since this date: 2025-01-01;\nor 7d, 12h, 4w for that long ago",
    )
    group.add_argument("--until", metavar="DATE", help="write only pages modified until the end of this date")
    group.add_argument("--dedupe", action="store_true", help="write each URL only once, as its first sitemap has it")


def run(arguments: argparse.Namespace) -> int:
    """Fetch a site, and write its pages meanwhile."""
    if (why := option_conflict(arguments)) is not None:
        arguments.refuse(why)
    plan = _planned(arguments)
    log = start_log(arguments)
    if not arguments.quiet:
        warn_about_options(arguments, arguments.url, "exporting the whole site of {}, not only what is at this URL")
    meter = ProgressMeter()
    # If rows scroll by on the terminal, they are the progress.
    is_live = not arguments.quiet and not (plan.output.is_watched and sys.stdout is not None and sys.stdout.isatty())
    try:
        with progress_line(meter, log) if is_live else nullcontext():
            exported = _exported(arguments, plan, meter)
    except TreeInterrupted:
        say(f"usp: interrupted{'' if arguments.output == STANDARD_OUTPUT else f'; {_name(arguments)} was not written'}")
        return INTERRUPTED
    return _report(arguments, exported, meter)


def _planned(arguments: argparse.Namespace) -> ExportPlan:
    """Plan the export. Options that make no sense are refused before anything is fetched."""
    if arguments.output is None:
        if arguments.format is None:
            arguments.refuse("say where to write with -o FILE, or which format to print with -f FORMAT")
        arguments.output = STANDARD_OUTPUT
    try:
        plan = export.plan_export(
            arguments.output,
            format=arguments.format,
            table=arguments.table,
            columns=arguments.columns,
            where=arguments.where,
            since=arguments.since,
            until=arguments.until,
            dedupe=arguments.dedupe,
            raw_csv=arguments.raw_csv,
        )
    except InvalidArgumentError as error:
        arguments.refuse(str(error))
        raise
    if plan.output.is_binary_on_terminal:
        arguments.refuse(BINARY_ON_TERMINAL)
    plan.output.check()
    return plan


def _exported(arguments: argparse.Namespace, plan: ExportPlan, meter: ProgressMeter) -> Exported:
    progress = None if arguments.quiet else meter  # counting pages for it takes a little time
    with site_client(arguments) as client:
        stream = export.export_stream(arguments.url, client, progress=progress, **tree_options(arguments))
        return export.run_export(plan, [(None, stream)])


def _report(arguments: argparse.Namespace, exported: Exported, meter: ProgressMeter) -> int:
    """Print what was fetched and what was written; return the exit code."""
    cost = None if arguments.quiet else (meter.latest.bytes, meter.seconds())
    code = print_summary(exported.tree, TreeCounts(exported.tree, exported.pages), cost=cost)
    if arguments.output == STANDARD_OUTPUT:
        return code
    if not exported.is_written:
        say(f"usp: {_name(arguments)} was not written")
    elif not arguments.quiet:
        rows = plural(exported.rows, "row")
        written = f", {size(os.path.getsize(arguments.output))}" if os.path.isfile(arguments.output) else ""
        say(f"usp: {rows} in {_name(arguments)}{written}")
    return code


def _name(arguments: argparse.Namespace) -> str:
    return printable(arguments.output)
