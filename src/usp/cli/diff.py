"""`usp diff`: what has changed between two runs of a crawl, or between any two sources."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from usp.cli.outcomes import DIFFERENCES_FOUND, EXIT_CODES_HELP, Ending
from usp.cli.output import say
from usp.cli.reading import open_reader, start_log
from usp.cli.site import add_message_options, add_site_options
from usp.crawl.any_sources import CrawlState, ExportedPages, PageSource, source_changes
from usp.crawl.change_formats import change_formats, counts_text
from usp.crawl.changes import ChangeKind, Changes
from usp.crawl.crawls import Crawl, open_crawl
from usp.crawl.folder import is_crawl_folder
from usp.crawl.reading import run_number
from usp.exceptions import InvalidArgumentError, TreeInterrupted
from usp.export.formats import BINARY_ON_TERMINAL, STANDARD_OUTPUT, OutputFile, output_file
from usp.export.formats.base import Answer, FormatOptions
from usp.objects.problem import printable
from usp.sources import find_sources

if TYPE_CHECKING:
    import pyarrow as pa

    from usp.cli.site import Group, Subparsers
    from usp.objects.sitemap import AbstractSitemap

__all__ = ["add_kind_option", "chosen_kinds", "register"]

_FORMATS = change_formats("", "", datetime.now(UTC))
_EPILOG = f"""\
Signs of the text format:
  + added    - removed    ~ changed (which fields)    > moved to another sitemap

usp compares two runs of a crawl site by site. A site that was blocked or
unreachable has no changes since it was last read, and a sitemap that could not
be fetched keeps its pages. All pages of a site that is read for the first time
are added.

You can compare any two sources: a site, a sitemap, a file, a folder, an
archive, a crawl folder, or a Parquet file of usp export.

examples:
  usp diff crawl/                        # the last two runs
  usp diff crawl/ 1 2                    # two runs
  usp diff crawl/ --since 7d -f atom -o new-pages.xml
  usp diff crawl/ --site example.org --kind added,removed
  usp diff crawl/ -o changes.parquet
  usp diff public/ https://www.example.org/ --exit-code
  usp diff monday.parquet tuesday.parquet

{EXIT_CODES_HELP}"""


def register(commands: Subparsers) -> None:
    """Add the command to the command line."""
    command = commands.add_parser(
        "diff",
        usage="usp diff [OPTION ...] (FOLDER [RUN [RUN]] | OLD NEW)",
        help="show which pages were added, removed, changed or moved",
        description="Show which pages were added, removed, changed or moved to another sitemap:\n"
        "between two runs of a crawl, or between any two sources. Needs the extra crawl.",
        epilog=_EPILOG,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    command.add_argument(
        "targets", nargs="*", metavar="TARGET", help="a crawl folder, and the numbers of runs; or two sources"
    )
    _add_selection(command.add_argument_group("which changes"))
    output = command.add_argument_group("output")
    formats = "\n".join(f"  {name}: {one.description}" for name, one in _FORMATS.items())
    output.add_argument(
        "-f",
        "--format",
        choices=_FORMATS,
        metavar="FORMAT",
        help=f"output format (default: by the ending of FILE; text)\n{formats}",
    )
    output.add_argument(
        "-o", "--output", metavar="FILE", help="write to this file when all is compared;\n- for standard output"
    )
    output.add_argument(
        "--exit-code", action="store_true", help=f"exit with {DIFFERENCES_FOUND} if there are changes, as git diff does"
    )
    output.add_argument(
        "--raw-csv",
        action="store_true",
        help="write CSV and TSV cells unchanged, even those that a\nspreadsheet would run as formulas",
    )
    add_message_options(output)
    add_site_options(command)
    command.set_defaults(command=run, refuse=command.error)


def _add_selection(group: Group) -> None:
    group.add_argument(
        "--since",
        dest="since_run",
        metavar="DATE",
        help="compare the newest run of a crawl with the newest that\nhad started by this date: 2025-01-01; or 7d,"
        " 12h, 4w\nfor that long ago",
    )
    group.add_argument(
        "--site",
        action="append",
        dest="sites",
        metavar="SITE",
        help="only this site of a crawl; repeat the option for more",
    )
    add_kind_option(group)


def add_kind_option(group: Group) -> None:
    """Add the option that selects kinds of changes."""
    group.add_argument(
        "--kind",
        metavar="KINDS",
        help=f"only these kinds of changes: {','.join(ChangeKind)}",
    )


class _Compared(NamedTuple):
    """What is compared: the changes, what to call them, when the later side was read, and how reading it ended."""

    changes: Changes
    title: str
    moment: datetime
    ending: Ending | None = None


def run(arguments: argparse.Namespace) -> int:
    """Compare, and print or write what differs. Return the exit code."""
    _output(arguments, "", datetime.now(UTC)).check()
    kinds = chosen_kinds(arguments)
    if arguments.targets and is_crawl_folder(arguments.targets[0]) and not _is_second_source(arguments.targets):
        compared = _of_runs(arguments)
    else:
        compared = _of_sources(arguments)
    ending = compared.ending
    if ending is not None and not ending.is_kept:
        if arguments.output not in (None, STANDARD_OUTPUT):
            say(f"usp: {printable(arguments.output)} was not written")
        return ending.exit_code
    changes = compared.changes if kinds is None else compared.changes.only(*kinds)
    counts = _write(changes, _output(arguments, compared.title, compared.moment), arguments)
    if not arguments.quiet:
        say(f"usp: {printable(compared.title)}: {counts_text(counts)}")
    code = 0 if ending is None else ending.exit_code
    return code or (DIFFERENCES_FOUND if arguments.exit_code and counts.total() else 0)


def _is_second_source(targets: list[str]) -> bool:
    return len(targets) == 2 and not targets[1].isdecimal()


def chosen_kinds(arguments: argparse.Namespace) -> list[str] | None:
    """Return the kinds of changes that the options select, None for all."""
    if arguments.kind is None:
        return None
    kinds = [kind.strip() for kind in arguments.kind.split(",") if kind.strip()]
    if not kinds or any(kind not in list(ChangeKind) for kind in kinds):
        arguments.refuse(f"--kind takes {', '.join(ChangeKind)}, with commas between them, not {arguments.kind!r:.100}")
    return kinds


# What to compare


def _of_runs(arguments: argparse.Namespace) -> _Compared:
    start_log(arguments)
    path, *texts = arguments.targets
    if len(texts) > 2 or not all(text.isdecimal() for text in texts):
        arguments.refuse("name a crawl folder and at most two runs: usp diff crawl/ 3 7")
    if texts and arguments.since_run is not None:
        arguments.refuse("name runs, or --since a date, and not both")
    crawl = open_crawl(path)
    runs: list[int | None] = [*map(int, texts), None, None][:2]
    try:
        if arguments.since_run is not None:
            runs[0] = _since(crawl, arguments.since_run)
        changes = crawl.changes(*runs, sites=arguments.sites)
    except InvalidArgumentError as error:
        arguments.refuse(str(error))
        raise
    later = next(one for one in crawl.runs if one.run == (runs[1] or crawl.runs[-1].run))
    earlier = runs[0] or max(one.run for one in crawl.runs if one.run < later.run)
    title = f"{path.rstrip('/') or path}, run {earlier} to run {later.run}"
    return _Compared(changes, title, later.ended or later.started)


def _since(crawl: Crawl, text: str) -> int:
    try:
        return run_number(crawl.runs, text)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(str(error).replace("run must be", "--since must be", 1)) from None


def _of_sources(arguments: argparse.Namespace) -> _Compared:
    if len(arguments.targets) != 2:
        arguments.refuse("name a crawl folder, or two sources to compare: usp diff OLD NEW")
    if arguments.since_run is not None or arguments.sites:
        arguments.refuse("--since and --site are about the runs of a crawl folder")
    found: list[PageSource | None] = list(map(_stored_source, arguments.targets))
    on_web = [target for target, source in zip(arguments.targets, found, strict=True) if source is None]
    trees_of, is_interrupted = _read(arguments, on_web) if on_web else ([], False)
    trees = [tree for trees in trees_of for tree in trees]
    ending = Ending.of_trees(trees, is_interrupted=is_interrupted) if on_web else None
    title = " to ".join(arguments.targets)
    if ending is not None:
        ending.say(is_quiet=arguments.quiet)
    if is_interrupted or any(not tree.outcome.has_result for tree in trees):
        nothing = Ending.of_trees(
            [tree for tree in trees if not tree.outcome.has_result], is_interrupted=is_interrupted
        )
        return _Compared(Changes(lambda: iter(())), title, datetime.now(UTC), nothing)
    rest = iter(trees_of)
    old, new = (next(rest) if source is None else source for source in found)
    return _Compared(source_changes(old, new), title, datetime.now(UTC), ending)


def _stored_source(target: str) -> PageSource | None:
    """Return a source that has tables already; None if it has to be read."""
    if is_crawl_folder(target):
        return CrawlState(open_crawl(target).folder)
    if target.lower().endswith(".parquet") and os.path.isfile(target):
        return ExportedPages(target)
    return None


def _read(arguments: argparse.Namespace, targets: list[str]) -> tuple[list[list[AbstractSitemap]], bool]:
    """Return the trees of each target, several for an archive of several sites, and whether Ctrl-C was pressed."""
    try:
        sources = [find_sources([target], https_only=bool(arguments.header)) for target in targets]
    except InvalidArgumentError as error:
        arguments.refuse(str(error))
        raise
    trees: list[list[AbstractSitemap]] = [[] for _ in targets]
    numbers = [number for number, found in enumerate(sources) for _ in found]
    with open_reader(arguments, tuple(source for found in sources for source in found)) as reader:
        try:
            for number, (_, stream) in zip(numbers, reader.streams(), strict=True):
                trees[number].append(stream.read())
        except TreeInterrupted:
            return trees, True
    return trees, False


# Output


def _output(arguments: argparse.Namespace, title: str, moment: datetime) -> OutputFile:
    path = STANDARD_OUTPUT if arguments.output is None else arguments.output
    subject = " ".join(target.rstrip("/") for target in arguments.targets if not target.isdecimal())
    name = "text" if arguments.format is None and path == STANDARD_OUTPUT else arguments.format
    try:
        output = output_file(path, name, change_formats(subject, title, moment))
    except InvalidArgumentError as error:
        arguments.refuse(str(error))
        raise
    if output.is_binary_on_terminal:
        arguments.refuse(BINARY_ON_TERMINAL)
    return output


def _write(changes: Changes, output: OutputFile, arguments: argparse.Namespace) -> Counter[str]:
    """Write the changes. Return how many there are of each kind."""
    counts: Counter[str] = Counter()

    def counted() -> Iterator[pa.RecordBatch]:
        for batch in changes.reader():
            counts.update(batch.column("change").to_pylist())
            yield batch

    is_terminal = output.path == STANDARD_OUTPUT and sys.stdout is not None and sys.stdout.isatty()
    options = FormatOptions(arguments.raw_csv, shutil.get_terminal_size().columns if is_terminal else None)
    write = output.format.answer_writer
    assert write is not None
    with output.open() as file:
        write(Answer(changes.schema, counted(), "changes"), file, options)
    return counts
