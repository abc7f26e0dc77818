"""`usp sql`: ask a site's tables a question in SQL."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

from usp import export
from usp.cli.outcomes import EXIT_CODES_HELP, Ending
from usp.cli.output import PARTIAL_RESULTS, TreeCounts, say
from usp.cli.reading import Reader, find_targets, open_reader
from usp.cli.site import add_message_options, add_partial_options, add_site_options, add_targets
from usp.exceptions import InvalidArgumentError, TreeInterrupted
from usp.export.formats import ANSWER_FORMATS, BINARY_ON_TERMINAL, STANDARD_OUTPUT, OutputFile, one_result, output_file
from usp.export.formats.base import Answer, FormatOptions
from usp.export.reading import SourceTree
from usp.objects.problem import printable
from usp.objects.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from usp.cli.site import Subparsers
    from usp.objects.sitemap import AbstractSitemap

__all__ = ["register"]

_QUERY = re.compile(r"\s*(?:select|with|from|describe|summarize)\s", re.IGNORECASE)

_EPILOG = """\
The tables and their columns are those of `usp export`; see `usp export --help`.
The SQL is DuckDB's: https://duckdb.org/docs/stable/sql/introduction. usp checks
the query before it fetches anything: all SELECTs before the first statement of
another kind completely, the rest for its syntax. Times are in UTC. A query
cannot use files, the network or extensions, unless you add --allow-files.

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
  usp sql public/sitemap.xml "select count(*) from pages"

"""


def register(commands: Subparsers) -> None:
    """Add the command to the command line."""
    sql = commands.add_parser(
        "sql",
        usage="usp sql [OPTION ...] TARGET ... QUERY",
        help="query a site's pages and sitemaps in SQL",
        description="Read sites or files, and query their tables `pages` and `sitemaps` in SQL.\nNeeds the extra sql.",
        epilog=_EPILOG + EXIT_CODES_HELP,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    add_targets(sql)
    sql.add_argument(
        "query", nargs="?", metavar="QUERY", help="one or several statements; - reads them from\nstandard input"
    )
    sql.add_argument(
        "--allow-files",
        action="store_true",
        help="let the query use files, the network and extensions, and\n"
        "change DuckDB's settings; only for queries you trust",
    )
    output = sql.add_argument_group("output")
    formats = "\n".join(f"  {name}: {one.description}" for name, one in ANSWER_FORMATS.items())
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
    add_partial_options(output)
    add_message_options(output)
    add_site_options(sql)
    sql.set_defaults(command=run, refuse=sql.error)


def run(arguments: argparse.Namespace) -> int:
    """Read the targets, and print the answer to the query. Return the exit code."""
    if arguments.query is None and arguments.targets:
        arguments.query = arguments.targets.pop()  # argparse cannot know that the last one is the query
    if not arguments.targets:
        arguments.refuse("give a target and a query: usp sql example.org 'select count(*) from pages'")
    if _QUERY.match(arguments.targets[0]):
        arguments.refuse("the query comes last, after the targets")
    sources = find_targets(arguments)
    output = _output(arguments)
    text = sys.stdin.read() if arguments.query == "-" and sys.stdin is not None else arguments.query
    output.check()
    with closing(export.Query(text, has_source=len(sources) > 1, allow_files=arguments.allow_files)) as query:
        if query.results > 1 and not output.holds_results:
            arguments.refuse(one_result(output.format.name))
        with open_reader(arguments, sources) as reader:
            trees, is_interrupted = _read(reader)
        only = tuple(tree for _, tree in trees)
        ending = Ending.of_trees(only, is_strict=arguments.strict, is_interrupted=is_interrupted)
        ending.say(TreeCounts(only, None), reader.cost(only), is_quiet=arguments.quiet)
        is_file = output.path != STANDARD_OUTPUT
        if is_interrupted and not is_file:
            say(PARTIAL_RESULTS)
        if not ending.is_kept or (is_interrupted and is_file and not arguments.keep_partial):
            if is_file:
                say(f"usp: {printable(output.path)} was not written")
        else:
            _write(query.answers(trees), output, arguments)
            ending = _judged_again(ending, only)
    return ending.exit_code


def _judged_again(ending: Ending, trees: tuple[AbstractSitemap, ...]) -> Ending:
    """Return the end of the run after the query has read the pages. Say so if --max-time has cut some of them."""
    now = Ending.of_trees(trees, is_strict=ending.is_strict, is_interrupted=ending.is_interrupted)
    if now.outcome != ending.outcome:
        now.say(is_quiet=True)
    return now


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


def _read(reader: Reader) -> tuple[list[SourceTree], bool]:
    """Return the trees with the names of their sources, and whether Ctrl-C was pressed: then the last is partial."""
    trees: list[SourceTree] = []
    source = None
    try:
        for source, stream in reader.streams():
            trees.append(SourceTree(source, stream.read()))
    except TreeInterrupted as interrupted:
        trees.append(SourceTree(source, interrupted.tree))
        return trees, True
    return trees, False
