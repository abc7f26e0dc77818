"""`usp check`: find problems in the sitemaps of a site, of files, or of standard input."""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from datetime import UTC, datetime
from difflib import get_close_matches
from errno import EEXIST
from typing import IO, TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from usp.check.formats import FORMATS, render
from usp.cli import INTERRUPTED
from usp.cli.output import PARTIAL_RESULTS, LogLines, drop_output, log_to, say
from usp.cli.progress import ProgressMeter, progress_line
from usp.cli.site import (
    NOT_REACHED,
    add_message_options,
    add_site_options,
    option_conflict,
    site_client,
    site_url,
    tree_options,
    warn_about_options,
)
from usp.exceptions import InvalidArgumentError, TreeInterrupted
from usp.export import files
from usp.limits import Limits
from usp.objects.codes import GROUPS, Severity
from usp.objects.problem import printable

if TYPE_CHECKING:
    from rich.console import Console

    from usp.check.report import Report
    from usp.check.rules.page import RulePage
    from usp.cli.site import Subparsers

__all__ = ["register"]

_FAILED = 1
_URL = re.compile(r"https?://", re.IGNORECASE)
_STANDARD_INPUT = _STANDARD_OUTPUT = "-"
_TEXT = "text"
_NEVER = "never"
_LEVELS = {str(severity): severity for severity in reversed(Severity)}
_MAX_DIGITS = 18  # a longer number is as good as no limit
_MAX_STDIN_BYTES = Limits().max_sitemap_bytes + 1  # usp reads no more of any sitemap
_EPILOG = """\
exit codes:
  0    no problem is as severe as --fail-on
  1    a problem is
  2    wrong use, or a file cannot be read or written
  3    the site could not be reached
  130  interrupted with Ctrl-C; the report covers what was fetched

examples:
  usp check https://www.example.org/
  usp check public/  # a folder that will be a site
  usp check sitemap.xml.gz --url https://www.example.org/maps/sitemap.xml.gz
  curl -s https://www.example.org/sitemap.xml | usp check -
  usp check -f html -o report.html https://www.example.org/
  usp check --select X,E --fail-on warning public/
  usp check --explain X102
"""


class _Checked(NamedTuple):
    """The report of a check, and whether Ctrl-C ended it."""

    report: Report
    is_interrupted: bool = False


def register(commands: Subparsers) -> None:
    """Add the command."""
    check = commands.add_parser(
        "check",
        usage="usp check [OPTION ...] TARGET\n       usp check --explain CODE ...",
        help="find problems in a site's sitemaps",
        description="Find problems in the sitemaps of a site, a file or a folder.",
        epilog=_EPILOG,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    check.add_argument(
        "target",
        nargs="?",
        metavar="TARGET",
        help="URL of the site, with https:// or http://; or a file, a\nfolder of files, or - for standard input",
    )
    check.add_argument("--explain", nargs="+", metavar="CODE", help="explain codes, with examples")
    check.add_argument("--url", type=site_url, metavar="URL", help="where the file or the folder will be served")
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
    """Check the target and print the report."""
    if arguments.explain:
        return _explain(arguments)
    if (why := _refusal(arguments)) is not None:
        arguments.refuse(why)
    _ensure_writable(arguments.output, arguments.target)
    is_logged = arguments.verbose or arguments.log_file
    log = log_to(arguments.log_file, arguments.verbose if is_logged else -1)  # the report has the failures
    checked = _checked(arguments, log)
    report = checked.report.selected(arguments.select, arguments.ignore)
    if checked.is_interrupted:
        say(PARTIAL_RESULTS)
    code = _exit_code(checked, report, _level_of(arguments))
    try:
        _write_report(report, arguments, now=datetime.now(UTC))
    except BrokenPipeError:  # the reader of the output has closed it; the exit code stays the same
        drop_output()
        return code
    if code == NOT_REACHED:
        _say_why(checked.report)
    elif not report.sitemap_count and not arguments.quiet:
        say(f"usp: no sitemaps found at {printable(report.target)}")
    return code


def _exit_code(checked: _Checked, report: Report, level: int) -> int:
    """Return the exit code, from the problems that were selected."""
    if checked.is_interrupted:
        return INTERRUPTED
    if not checked.report.is_reached:
        return NOT_REACHED
    return _FAILED if any(severity >= level for severity in report.severities()) else 0


def _explain(arguments: argparse.Namespace) -> int:
    from usp.check.rules.page import rule_page

    if arguments.target is not None:
        arguments.refuse("--explain takes codes and no TARGET")
    codes = [code for text in arguments.explain for code in text.split(",") if code]
    try:
        pages = [rule_page(code) for code in codes]
    except InvalidArgumentError as error:
        arguments.refuse(f"argument --explain: {error}")
        raise
    _print_pages(pages)
    return 0


def _refusal(arguments: argparse.Namespace) -> str | None:
    """Return why the options do not fit together or the target is wrong, or None."""
    target = arguments.target
    if target is None:
        return "give a TARGET: the URL of a site, a file, a folder, or - for standard input"
    if _URL.match(target):
        if arguments.url is not None:
            return "--url says where files will be served; a site has a URL already"
        try:
            site_url(target)
        except argparse.ArgumentTypeError as error:
            return f"argument TARGET: {error}"
        return option_conflict(arguments)
    if target != _STANDARD_INPUT and not os.path.lexists(target):
        return f"argument TARGET: no such file or folder: {target!r}; a site needs https:// before it"
    if arguments.url is not None and not _URL.match(arguments.url):
        return f"argument --url: give one like https://www.example.org/sitemap.xml, not {arguments.url!r}"
    return None


def _checked(arguments: argparse.Namespace, log: LogLines | None) -> _Checked:
    """Check a site, files or standard input."""
    from usp.check import check_bytes, check_path

    if _URL.match(arguments.target):
        return _checked_site(arguments, log)
    if arguments.target != _STANDARD_INPUT:
        return _Checked(check_path(arguments.target, url=arguments.url))
    if sys.stdin is None:
        raise OSError("there is no standard input to read")
    if sys.stdin.isatty() and not arguments.quiet:
        say("usp: reading standard input; press Ctrl-D to end it")
    return _Checked(check_bytes(sys.stdin.buffer.read(_MAX_STDIN_BYTES), url=arguments.url))


def _checked_site(arguments: argparse.Namespace, log: LogLines | None) -> _Checked:
    """Check a site and show progress. On Ctrl-C while it is fetched, check the partial tree."""
    from usp.check import check_homepage, check_tree

    if not arguments.quiet:
        warn_about_options(arguments, arguments.target, "checking the whole site of {}, and the document at this URL")
    meter = ProgressMeter()
    with nullcontext() if arguments.quiet else progress_line(meter, log), site_client(arguments) as client:
        options = tree_options(arguments)
        options["extra_known_paths"] += _path_of(arguments.target)
        progress = None if arguments.quiet else meter  # counting pages takes a little time
        try:
            return _Checked(check_homepage(arguments.target, client, progress=progress, **options))
        except TreeInterrupted as interrupted:
            return _Checked(check_tree(interrupted.tree), is_interrupted=True)


def _path_of(url: str) -> list[str]:
    """Return the path of a URL, if it has one: it may be a sitemap that nothing names."""
    parts = urlsplit(url)
    path = parts.path.lstrip("/") + (f"?{parts.query}" if parts.query else "")
    return [path] if path else []


def _say_why(report: Report) -> None:
    """Print why a site could not be reached."""
    reasons = [printable(problem.message) for problem in report.problems()]
    say(f"usp: {printable(report.target)} could not be reached{': ' if reasons else ''}{'; '.join(reasons)}")


def _ensure_writable(path: str | None, target: str) -> None:
    """Raise an OSError before any work if a file cannot be written, or is the one to check."""
    if path is None or path == _STANDARD_OUTPUT:
        return
    if os.path.exists(path) and os.path.exists(target) and os.path.samefile(path, target):
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
        paint = _painter(sys.stdout) if path is None and sys.stdout is not None else _unpainted
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
    console = _console(sys.stdout)
    if console is None:
        print("\n".join(page.markdown for page in pages), end="")
        return
    from usp.cli.explain import page_lines

    paint = _painter(sys.stdout)
    for number, page in enumerate(pages):
        print("\n\n" if number else "", end="")
        print("\n".join(page_lines(page, console.width, paint)))


def _unpainted(piece: str, part: str) -> str:
    return piece


def _painter(stream: IO[str]) -> Callable[[str, str], str]:
    """Return a function that colours parts of lines, if the stream shows colours."""
    console = _console(stream)
    if console is None or console.no_color or console.color_system is None:
        return _unpainted
    from usp.check.formats import text
    from usp.cli import explain

    styles = {part: console.get_style(style) for part, style in (text.STYLES | explain.STYLES).items()}
    system = console._color_system

    def painted(piece: str, part: str) -> str:
        return styles[part].render(piece, color_system=system)

    return painted


def _console(stream: IO[str]) -> Console | None:
    """Return a console for a stream, or None if it is not a terminal and should not be treated as one."""
    if not stream.isatty() and not os.environ.get("FORCE_COLOR"):
        return None
    from rich.console import Console

    console = Console(file=stream, markup=False, highlight=False, emoji=False)
    return console if console.is_terminal else None


def _write_file(path: str, pieces: Iterable[str]) -> None:
    with files.open_whole(path) as stream:
        text_stream = io.TextIOWrapper(stream, encoding="utf-8", errors="backslashreplace")
        text_stream.writelines(pieces)
        text_stream.detach()  # which flushes it, and leaves the file open
