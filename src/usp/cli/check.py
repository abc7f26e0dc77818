"""`usp check`: find problems in the sitemaps of a site, of files, or of standard input."""

from __future__ import annotations

import argparse
import os
import re
import sys
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from usp.cli import INTERRUPTED
from usp.cli.check_options import add_output, add_selection, level_of
from usp.cli.check_output import ensure_writable, print_pages, write_report
from usp.cli.output import PARTIAL_RESULTS, LogLines, drop_output, log_to, say
from usp.cli.progress import ProgressMeter, progress_line
from usp.cli.site import (
    NOT_REACHED,
    add_site_options,
    option_conflict,
    site_client,
    site_url,
    tree_options,
    warn_about_options,
)
from usp.exceptions import InvalidArgumentError, TreeInterrupted
from usp.limits import Limits
from usp.objects.problem import printable

if TYPE_CHECKING:
    from usp.check.report import Report
    from usp.cli.site import Subparsers

__all__ = ["register"]

_FAILED = 1
_URL = re.compile(r"https?://", re.IGNORECASE)
_STANDARD_INPUT = "-"
_MAX_STDIN_BYTES = Limits().max_sitemap_bytes + 1  # usp reads no more of any sitemap
_EPILOG = """\
exit codes: 0 no problem as severe as --fail-on, 1 such a problem, 2 wrong use,
or a file that cannot be read or written, 3 the site could not be reached,
130 interrupted with Ctrl-C; a site is then reported on as far as it was fetched.

examples:
  usp check https://www.example.org/
  usp check public/                           a folder that will be a site
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
    add_output(check.add_argument_group("output"))
    add_selection(check.add_argument_group("which problems"))
    add_site_options(check, "what to fetch of a site")
    check.set_defaults(command=run, refuse=check.error)


def run(arguments: argparse.Namespace) -> int:
    """Check the target and print the report."""
    if arguments.explain:
        return _explain(arguments)
    if (why := _refusal(arguments)) is not None:
        arguments.refuse(why)
    ensure_writable(arguments.output, arguments.target)
    is_logged = arguments.verbose or arguments.log_file
    log = log_to(arguments.log_file, arguments.verbose if is_logged else -1)  # the report has the failures
    checked = _checked(arguments, log)
    report = checked.report.selected(arguments.select, arguments.ignore)
    if checked.is_interrupted:
        say(PARTIAL_RESULTS)
    code = _exit_code(checked, report, level_of(arguments))
    try:
        write_report(report, arguments, now=datetime.now(UTC))
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
    from usp.check.rules.page import explain

    if arguments.target is not None:
        arguments.refuse("--explain takes codes and no TARGET")
    codes = [code for text in arguments.explain for code in text.split(",") if code]
    try:
        pages = [explain(code) for code in codes]
    except InvalidArgumentError as error:
        arguments.refuse(f"argument --explain: {error}")
        raise
    print_pages(pages)
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
