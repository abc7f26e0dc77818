"""`usp export`: write a site's pages, or its sitemaps, to a file."""

from __future__ import annotations

import argparse
import os
import re
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from usp import export
from usp.cli.outcomes import EXIT_CODES_HELP, Ending
from usp.cli.output import PARTIAL_RESULTS, TreeCounts, say, size
from usp.cli.reading import Reader, find_targets, open_reader
from usp.cli.site import (
    add_message_options,
    add_partial_options,
    add_since_option,
    add_site_options,
    add_targets,
)
from usp.exceptions import InvalidArgumentError, TreeInterrupted
from usp.export.formats import BINARY_ON_TERMINAL, STANDARD_OUTPUT, TABLE_FORMATS, file_help
from usp.export.schema import PAGES, SITEMAPS, TABLES
from usp.limits import SMALL_MEMORY_BYTES
from usp.objects.problem import printable
from usp.objects.wording import plural

if TYPE_CHECKING:
    from usp.cli.site import Group, Subparsers
    from usp.export.exporting import Exported, ExportPlan
    from usp.objects.sitemap import AbstractSitemap

__all__ = ["register"]

_ENDINGS = "|".join(re.escape(ending) for one in TABLE_FORMATS.values() for ending in one.suffixes)
_OUTPUT_NAME = re.compile(rf"(?!.*://).*(?:{_ENDINGS})(?:\.gz)?", re.IGNORECASE)

_PARAMETER = re.compile(r"^(?=(?:columns|since|until)\b)")  # at the start of an error
_EPILOG = f"""\
columns of pages:
  {", ".join(list(PAGES)[:5])},
  {", ".join(list(PAGES)[5:9])},
  {", ".join(list(PAGES)[9:])};
  also fields of news: news.title, news.publish_date, ...
columns of images, videos and alternates:
  {", ".join(list(TABLES["images"])[:4])}, then their fields
columns of sitemaps:
  {", ".join(list(SITEMAPS)[:6])},
  {", ".join(list(SITEMAPS)[6:12])},
  {", ".join(list(SITEMAPS)[12:])}

Rows are written as sitemaps arrive, in the order of the tree. The file appears
when it is complete. With several targets, the first column is `source`.

--where takes an SQL condition on one row, with all functions of DuckDB:
https://duckdb.org/docs/stable/sql/introduction

examples:
  usp export example.org -o pages.parquet
  usp export https://www.example.org/sitemap-news.xml -o news.csv
  usp export one.example two.example public/ -o all.parquet
  usp export https://www.example.org/ -o pages.csv.gz --columns url,priority
  usp export https://www.example.org/ -o new.jsonl --since 7d --dedupe
  usp export https://www.example.org/ -o site.db
  usp export https://www.example.org/ -f jsonl | jq .url
  usp export https://www.example.org/ -o news.csv \\
      --where "news.title like '%election%' and priority >= 0.5"

{EXIT_CODES_HELP}"""


def register(commands: Subparsers) -> None:
    """Add the command to the command line."""
    command = commands.add_parser(
        "export",
        usage="usp export [OPTION ...] TARGET ... (-o FILE | -f FORMAT)",
        help="write a site's pages to a file: Parquet, CSV, SQLite, ...",
        description="Read sites or files, and write their pages or sitemaps to a file as a table.",
        epilog=_EPILOG,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    add_targets(command)
    output = command.add_argument_group("output")
    output.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help=f"{file_help(TABLE_FORMATS)}\n- for standard output, the default if you name a format",
    )
    formats = "\n".join(f"  {name}: {one.description}" for name, one in TABLE_FORMATS.items())
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
    add_partial_options(output)
    add_message_options(output)
    _add_selection(command.add_argument_group("which rows and columns"))
    add_site_options(command)
    command.set_defaults(command=run, refuse=command.error)


def _add_selection(group: Group) -> None:
    group.add_argument(
        "--table",
        choices=TABLES,
        metavar="TABLE",
        help=f"{', '.join(TABLES)}\n(default: pages; databases and workbooks also sitemaps)",
    )
    group.add_argument("--columns", metavar="NAMES", help="write only these columns, in this order: url,priority")
    group.add_argument(
        "--where",
        metavar="CONDITION",
        help='write only rows that match this SQL condition (needs\nthe extra sql): "priority >= 0.5"',
    )
    add_since_option(group, "write")
    group.add_argument("--until", metavar="DATE", help="write only pages modified until the end of this date")
    group.add_argument("--dedupe", action="store_true", help="write each URL only once, as its first sitemap has it")


def run(arguments: argparse.Namespace) -> int:
    """Read the targets, and write their pages meanwhile. Return the exit code."""
    last = arguments.targets[-1] if len(arguments.targets) > 1 and arguments.output is None else ""
    if _OUTPUT_NAME.fullmatch(last) and not os.path.exists(last):
        arguments.refuse(f"to write to {last}, put -o before it: -o {last}")
    sources = find_targets(arguments)
    plan = _planned(arguments, has_source=len(sources) > 1)
    # If rows scroll by on the terminal, they are the progress.
    is_shown = not (plan.output.is_watched and sys.stdout is not None and sys.stdout.isatty())
    with open_reader(arguments, sources, is_progress_shown=is_shown) as reader:
        exported, is_interrupted = _exported(arguments, plan, reader)
    ending = Ending.of_trees(exported.trees, is_strict=arguments.strict, is_interrupted=is_interrupted)
    counts = TreeCounts(exported.trees, exported.pages)
    ending.say(counts, reader.cost(exported.trees), is_quiet=arguments.quiet)
    _report(arguments, exported, is_interrupted=is_interrupted)
    return ending.exit_code


def _planned(arguments: argparse.Namespace, *, has_source: bool) -> ExportPlan:
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
            has_source=has_source,
        )
    except InvalidArgumentError as error:
        arguments.refuse(_PARAMETER.sub("--", str(error)))
        raise
    if plan.output.is_binary_on_terminal:
        arguments.refuse(BINARY_ON_TERMINAL)
    plan.output.check()
    return replace(plan, output=replace(plan.output, is_held=arguments.strict))


def _exported(arguments: argparse.Namespace, plan: ExportPlan, reader: Reader) -> tuple[Exported, bool]:
    """Run the export. Return its result, and whether Ctrl-C was pressed: then the result is partial."""

    def keep(trees: tuple[AbstractSitemap, ...]) -> bool:
        return Ending.of_trees(trees, is_strict=arguments.strict).is_kept

    keep_partial = arguments.keep_partial and not arguments.strict
    try:
        streams = reader.streams(SMALL_MEMORY_BYTES)
        return export.run_export(plan, streams, keep=keep, keep_partial=keep_partial), False
    except TreeInterrupted as interrupted:
        if interrupted.exported is None:
            raise
        return interrupted.exported, True


def _report(arguments: argparse.Namespace, exported: Exported, *, is_interrupted: bool) -> None:
    """Say what was written."""
    if arguments.output == STANDARD_OUTPUT:
        if arguments.strict and not exported.is_written:
            say(f"usp: {'interrupted; ' if is_interrupted else ''}nothing was written (--strict)")
        elif is_interrupted:
            say(PARTIAL_RESULTS)
    elif not exported.is_written:
        say(f"usp: {'interrupted; ' if is_interrupted else ''}{_name(arguments)} was not written")
    elif not arguments.quiet:
        rows = plural(exported.rows, "row")
        written = f", {size(os.path.getsize(arguments.output))}" if os.path.isfile(arguments.output) else ""
        say(f"usp: {'interrupted; ' if is_interrupted else ''}{rows} in {_name(arguments)}{written}")


def _name(arguments: argparse.Namespace) -> str:
    return printable(arguments.output)
