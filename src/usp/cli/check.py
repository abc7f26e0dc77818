"""`usp check`: find problems in the sitemaps of a site, of files, or of standard input."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from difflib import get_close_matches
from errno import EEXIST
from typing import TYPE_CHECKING, NamedTuple

from usp.check.formats import FORMATS, render
from usp.cli import INTERRUPTED
from usp.cli.outcomes import EXIT_CODES_HELP, PROBLEMS_FOUND, Ended, Ending
from usp.cli.output import PARTIAL_RESULTS, drop_output, say
from usp.cli.reading import Reader, find_targets, open_reader
from usp.cli.site import add_message_options, add_partial_options, add_site_options, add_targets
from usp.cli.terminal import console_for, painter, unpainted
from usp.exceptions import InvalidArgumentError, TreeInterrupted
from usp.export import files
from usp.objects.codes import GROUPS, Severity
from usp.objects.outcome import OutcomeKind
from usp.objects.problem import printable

if TYPE_CHECKING:
    from usp.check.report import Report
    from usp.check.rules.page import RulePage
    from usp.cli.site import Subparsers
    from usp.sources import Source

__all__ = ["register"]

_STANDARD_OUTPUT = "-"
_TEXT = "text"
_NEVER = "never"
_LEVELS = {str(severity): severity for severity in reversed(Severity)}
_MAX_DIGITS = 18  # a longer number is as good as no limit
_EPILOG = f"""\
examples:
  usp check example.org
  usp check https://www.example.org/sitemap-news.xml
  usp check public/  # a folder that will be a site
  usp check sitemap.xml.gz --url https://www.example.org/maps/sitemap.xml.gz
  curl -s https://www.example.org/sitemap.xml | usp check -
  usp check -f html -o report.html https://www.example.org/
  usp check --select X,E --fail-on warning public/
  usp check --explain X102

{EXIT_CODES_HELP}"""


class _Checked(NamedTuple):
    """The report of a check, and whether Ctrl-C ended it."""

    report: Report
    is_interrupted: bool = False


def register(commands: Subparsers) -> None:
    """Add the command."""
    check = commands.add_parser(
        "check",
        usage="usp check [OPTION ...] TARGET ...\n       usp check --explain CODE ...",
        help="find problems in a site's sitemaps",
        description="Find problems in the sitemaps of sites, files and folders.",
        epilog=_EPILOG,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    add_targets(check)
    check.add_argument("--explain", nargs="+", metavar="CODE", help="explain codes, with examples")
    _add_output(check.add_argument_group("output"))
    _add_selection(check.add_argument_group("which problems"))
    add_site_options(check, "what to fetch of a site")
    check.set_defaults(command=run, refuse=check.error)


def _add_output(group: argparse._ArgumentGroup) -> None:
    """Add the options for output."""
    formats = "\n".join(f"  {name}: {what}" for name, what in FORMATS.items())
    group.add_argument(
        "-f",
        "--format",
        choices=FORMATS,
        default="text",
        metavar="FORMAT",
        help=f"output format (default: %(default)s)\n{formats}",
    )
    group.add_argument("-o", "--output", metavar="FILE", help="write to this file when the check is complete")
    add_partial_options(group)
    add_message_options(group)


def _add_selection(group: argparse._ArgumentGroup) -> None:
    """Add the options that select problems, and those that make the command fail."""
    group.add_argument(
        "--select",
        action="extend",
        type=_codes,
        default=[],
        metavar="CODES",
        help="show only these codes, or codes that start like this:\nX102,P4; repeatable",
    )
    group.add_argument(
        "--ignore", action="extend", type=_codes, default=[], metavar="CODES", help="hide these codes; same form"
    )
    group.add_argument(
        "--max",
        type=_number,
        metavar="N",
        help="show at most N problems, the most severe; the summary\ncounts all. A sitemap keeps 20 of each code",
    )
    group.add_argument(
        "--fail-on",
        choices=(*_LEVELS, _NEVER),
        default="error",
        metavar="LEVEL",
        help=f"exit with 1 if a problem is at least this severe:\n{', '.join(_LEVELS)} or {_NEVER} (default:"
        " %(default)s)",
    )


def _level_of(arguments: argparse.Namespace) -> int:
    """Return the lowest severity that makes the command fail."""
    return _LEVELS.get(arguments.fail_on, sys.maxsize)


def _codes(text: str) -> list[str]:
    """Return codes and beginnings of codes."""
    from usp.objects.codes import CODES  # imports all rules, which other commands do not need

    found = [part.strip().upper() for part in text.split(",") if part.strip()]
    if not found:
        raise argparse.ArgumentTypeError(f"give codes like X102, or the start of codes, not {text!r}")
    for part in found:
        if not any(code.startswith(part) for code in CODES):
            raise argparse.ArgumentTypeError(f"no code starts with {part!r}; {_near(part)}")
    return found


def _near(part: str) -> str:
    """Return a hint at what may have been meant."""
    from usp.objects.codes import CODES

    near = get_close_matches(part, CODES, n=3, cutoff=0.7)
    if near:
        return f"did you mean {' or '.join(near)}?"
    if part[0] in GROUPS:
        return f"there are {', '.join(code for code in CODES if code[0] == part[0])}"
    return f"codes start with {', '.join(GROUPS)}"


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"give a number of problems, 0 or more, not {text!r}")
    return int(text) if len(text) <= _MAX_DIGITS else sys.maxsize


def run(arguments: argparse.Namespace) -> int:
    """Check the targets and print the report. Return the exit code."""
    if arguments.explain:
        return _explain(arguments)
    sources = find_targets(arguments)
    _ensure_writable(arguments.output, sources)
    with open_reader(arguments, sources) as reader:
        checked = _checked(reader)
    whole = checked.report
    report = whole.selected(arguments.select, arguments.ignore)
    if checked.is_interrupted:
        say(PARTIAL_RESULTS)
    ending = Ending(
        [Ended(whole.target, whole.outcome)], is_strict=arguments.strict, is_interrupted=checked.is_interrupted
    )
    code = ending.exit_code
    if ending.has_result and code != INTERRUPTED:
        level = _level_of(arguments)
        code = PROBLEMS_FOUND if any(severity >= level for severity in report.severities()) else code
    is_kept = (arguments.keep_partial if checked.is_interrupted else ending.is_kept) or not _is_file(arguments.output)
    # If nothing could be checked, one line on standard error says why; a report for people would only repeat it.
    is_unchecked = ending.outcome.kind in (OutcomeKind.BLOCKED, OutcomeKind.UNREACHABLE) and arguments.format == _TEXT
    try:
        if is_kept and not is_unchecked:
            _write_report(report, arguments, now=datetime.now(UTC))
    except BrokenPipeError:  # the reader of the output has closed it; the exit code stays the same
        drop_output()
        return code
    if not ending.has_result:
        ending.say(is_quiet=arguments.quiet)  # otherwise the report says what is missing
    if not is_kept:
        say(f"usp: {printable(arguments.output)} was not written")
    return code


def _explain(arguments: argparse.Namespace) -> int:
    from usp.check.rules.page import rule_page

    if arguments.targets:
        arguments.refuse("--explain takes codes and no TARGET")
    codes = [code for text in arguments.explain for code in text.split(",") if code]
    try:
        pages = [rule_page(code) for code in codes]
    except InvalidArgumentError as error:
        arguments.refuse(f"argument --explain: {error}")
        raise
    _print_pages(pages)
    return 0


def _checked(reader: Reader) -> _Checked:
    """Check the sources; after Ctrl-C, what was read until then."""
    from usp.check.checking import check_sources

    try:
        report = check_sources(reader.sources, reader.client, **reader.options)
    except TreeInterrupted as interrupted:
        if interrupted.report is None:
            raise
        return _Checked(interrupted.report, is_interrupted=True)
    reader.note(*report.notes)
    return _Checked(report)


def _is_file(path: str | None) -> bool:
    return path is not None and path != _STANDARD_OUTPUT


def _ensure_writable(path: str | None, sources: tuple[Source, ...]) -> None:
    """Raise an OSError before any work if a file cannot be written, or is one to check."""
    if path is None or path == _STANDARD_OUTPUT:
        return
    for source in sources:
        if source.path and os.path.exists(path) and os.path.samefile(path, source.path):
            raise FileExistsError(EEXIST, "This is the file to check; write to another one", path)
    files.ensure_writable(path)


def _write_report(report: Report, arguments: argparse.Namespace, *, now: datetime) -> None:
    """Write a report to the file or to standard output. If people do not see it, print a summary too."""
    from usp.check.formats import text
    from usp.check.formats.views import limited

    shown = report if arguments.max is None else limited(report, arguments.max)
    is_text = arguments.format == _TEXT
    path = arguments.output if arguments.output != _STANDARD_OUTPUT else None
    if is_text:
        paint = unpainted if path is not None else painter(sys.stdout, text.STYLES)
        pieces = text.render(shown, now=now, paint=paint, is_summed_up=not arguments.quiet)
    else:
        pieces = render(arguments.format, shown, now=now)
    if path is not None:
        _write_file(path, pieces)
    elif sys.stdout is not None:
        if not is_text and isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # not that of the terminal: programs read it
        sys.stdout.writelines(pieces)
        sys.stdout.flush()  # lines on standard error must come after it
    if not arguments.quiet and (path is not None or not is_text):
        say(f"usp: {report.summary()}")


def _print_pages(pages: list[RulePage]) -> None:
    """Print the pages of codes: for a terminal, or as Markdown if standard output is not one."""
    if sys.stdout is None:
        return
    console = console_for(sys.stdout)
    if console is None:
        print("\n".join(page.markdown for page in pages), end="")
        return
    from usp.check.formats import text
    from usp.cli.explain import STYLES, page_lines

    paint = painter(sys.stdout, text.STYLES | STYLES)
    for number, page in enumerate(pages):
        print("\n\n" if number else "", end="")
        print("\n".join(page_lines(page, console.width, paint)))


def _write_file(path: str, pieces: Iterable[str]) -> None:
    with files.open_whole(path) as stream:
        text_stream = io.TextIOWrapper(stream, encoding="utf-8", errors="backslashreplace")
        text_stream.writelines(pieces)
        text_stream.detach()  # which flushes it, and leaves the file open
