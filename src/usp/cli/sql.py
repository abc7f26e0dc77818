"""`usp sql`: ask a site's tables a question in SQL."""

from __future__ import annotations

import argparse
import shutil
import sys
from contextlib import ExitStack, closing, nullcontext
from typing import TYPE_CHECKING, Any

from usp import export
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
from usp.exceptions import InvalidArgumentError, TreeInterrupted
from usp.export.formats import ANSWER_FORMATS, BINARY_ON_TERMINAL, STANDARD_OUTPUT, OutputFile, one_result, output_file
from usp.export.formats.base import Answer, FormatOptions
from usp.objects.problem import printable
from usp.objects.sitemap import AbstractSitemap
from usp.objects.wording import plural
from usp.tree import sitemap_tree_for_homepage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from usp.cli.site import Subparsers

__all__ = ["register"]

_EPILOG = """\
The tables and their columns are those of `usp export`; see `usp export --help`.
The SQL is DuckDB's: https://duckdb.org/docs/stable/sql/introduction. usp checks
the query before it fetches anything: all SELECTs before the first statement of
another kind completely, the rest for its syntax. Times are in UTC.

With several statements, separated by ;, each SELECT has a result of its own. On
standard output they follow one another. In a database or a workbook they are
the tables answer, answer_2, ... Other files hold one result.

On a terminal, text is cut so that the table fits, but never a URL. If that is
not enough, each row is printed as lines of names and values.

examples:
  usp sql https://www.example.org/ \\
      "select change_frequency, count(*) from pages group by 1"
  usp sql https://www.example.org/ \\
      "select type, status, count(*), sum(pages) from sitemaps group by all"
  usp sql https://www.example.org/ -f csv -o twice.csv \\
      "select url, list(sitemap_url) from pages group by 1 having count(*) > 1"
  usp sql https://www.example.org/ "select url, unnest(images).loc from pages"
"""


def register(commands: Subparsers) -> None:
    """Add the command to the command line."""
    sql = commands.add_parser(
        "sql",
        usage="usp sql [OPTION ...] URL QUERY",
        help="query a site's pages and sitemaps in SQL",
        description="Fetch a site and query its tables `pages` and `sitemaps` in SQL.\nNeeds the extra sql.",
        epilog=_EPILOG,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    sql.add_argument("url", type=site_url, metavar="URL", help="URL of the site, with https:// or http://")
    sql.add_argument("query", metavar="QUERY", help="one or several statements; - reads them from standard input")
    output = sql.add_argument_group("output")
    formats = "\n".join(f"  {name}: {one.what}" for name, one in ANSWER_FORMATS.items())
    output.add_argument(
        "-f",
        "--format",
        choices=ANSWER_FORMATS,
        metavar="FORMAT",
        help=f"output format (default: by the ending of FILE; table)\n{formats}",
    )
    output.add_argument(
        "-o", "--output", metavar="FILE", help="write to this file when the result is complete;\n- for standard output"
    )
    output.add_argument(
        "--raw-csv",
        action="store_true",
        help="write CSV and TSV cells unchanged, even those that a\nspreadsheet would run as formulas",
    )
    add_message_options(output)
    add_site_options(sql)
    sql.set_defaults(command=run, refuse=sql.error)


def run(arguments: argparse.Namespace) -> int:
    """Fetch a site, and print the answer to the query."""
    if (why := option_conflict(arguments)) is not None:
        arguments.refuse(why)
    output = _output(arguments)
    text = sys.stdin.read() if arguments.query == "-" and sys.stdin is not None else arguments.query
    output.check()
    with closing(export.Query(text)) as query:
        if query.results > 1 and not output.holds_results:
            arguments.refuse(one_result(output.format.name))
        log = start_log(arguments)
        if not arguments.quiet:
            warn_about_options(arguments, arguments.url, "asking the whole site of {}, not only what is at this URL")
        meter = ProgressMeter()
        tree, is_interrupted = _fetched(arguments, output, meter, log)
        cost = None if arguments.quiet else (meter.latest.bytes, meter.seconds())
        code = print_summary(tree, TreeCounts(tree, None), is_interrupted=is_interrupted, cost=cost)
        if is_interrupted and output.path != STANDARD_OUTPUT:
            say(f"usp: {printable(output.path)} was not written")
        elif code != NOT_REACHED:
            _write(query.answers(tree), output, arguments)
    return code


def _output(arguments: argparse.Namespace) -> OutputFile:
    """Return where to write, and in which format. Without a file, that is a table for people."""
    path = STANDARD_OUTPUT if arguments.output is None else arguments.output
    name = "table" if arguments.format is None and path == STANDARD_OUTPUT else arguments.format
    try:
        output = output_file(path, name, ANSWER_FORMATS)
    except InvalidArgumentError as error:
        arguments.refuse(str(error))
        raise
    if output.is_binary_on_terminal:
        arguments.refuse(BINARY_ON_TERMINAL)
    return output


def _write(answers: Iterator[Answer], output: OutputFile, arguments: argparse.Namespace) -> None:
    is_terminal = output.path == STANDARD_OUTPUT and sys.stdout is not None and sys.stdout.isatty()
    options = FormatOptions(arguments.raw_csv, shutil.get_terminal_size().columns if is_terminal else None)
    write = output.format.answer_writer
    assert write is not None
    rows: list[int] = []
    with ExitStack() as stack:
        for answer in answers:
            if not rows:
                file = stack.enter_context(output.open())
            elif not output.holds_results:
                raise InvalidArgumentError(one_result(output.format.name))
            elif output.format.separator:
                file.write(output.format.separator)
            rows.append(write(answer, file, options))
    if not arguments.quiet:
        say(f"usp: {_written(rows, output)}")


def _written(rows: list[int], output: OutputFile) -> str:
    """Say what was written: the number of rows of each result."""
    if not rows:
        unwritten = "" if output.path == STANDARD_OUTPUT else f"; {printable(output.path)} was not written"
        return f"the query has no result{unwritten}"
    total = plural(sum(rows), "row")
    return total if len(rows) == 1 else f"{plural(len(rows), 'result')}, {total}"


def _fetched(
    arguments: argparse.Namespace, output: OutputFile, meter: ProgressMeter, log: Any
) -> tuple[AbstractSitemap, bool]:
    """Return the tree, and whether Ctrl-C was pressed: then the tree is partial."""
    progress = None if arguments.quiet else meter  # counting pages for it takes a little time
    with nullcontext() if arguments.quiet else progress_line(meter, log), site_client(arguments) as client:
        try:
            tree = sitemap_tree_for_homepage(arguments.url, client, progress=progress, **tree_options(arguments))
        except TreeInterrupted as interrupted:
            if output.path == STANDARD_OUTPUT:
                say(PARTIAL_RESULTS)
            return interrupted.tree, True
    return tree, False
