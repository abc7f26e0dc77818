"""`usp check`: find problems in the sitemaps of a site, of files, or of standard input."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from errno import EEXIST
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from usp.check.formats import render, statistics
from usp.cli import INTERRUPTED
from usp.cli.check_options import FAIL_ON, LEVELS, PER_CODE, add_options, refuse_together
from usp.cli.outcomes import EXIT_CODES_HELP, PARTIAL, PROBLEMS_FOUND, Ended, Ending
from usp.cli.output import PARTIAL_RESULTS, drop_output, say
from usp.cli.reading import Reader, find_targets, open_reader
from usp.cli.site import add_site_options, add_targets
from usp.cli.terminal import console_for, is_terminal, painter, unpainted
from usp.exceptions import InvalidArgumentError, TreeInterrupted, UspError
from usp.export import files
from usp.objects.outcome import OutcomeKind
from usp.objects.problem import printable
from usp.objects.wording import plural
from usp.sources import SourceKind

if TYPE_CHECKING:
    from usp.check.baseline import Baseline
    from usp.check.probing.probe import Probe
    from usp.check.report import Report
    from usp.check.rules.page import RulePage
    from usp.cli.settings import CheckSettings
    from usp.cli.site import Subparsers
    from usp.sources import Source

__all__ = ["register"]

_STANDARD_OUTPUT = "-"
_TEXT = "text"
_EPILOG = f"""\
examples:
  usp check example.org
  usp check https://www.example.org/sitemap-news.xml
  usp check public/  # a folder that will be a site
  usp check sitemap.xml.gz --url https://www.example.org/maps/sitemap.xml.gz
  curl -s https://www.example.org/sitemap.xml | usp check -
  usp check -f html -o report.html https://www.example.org/
  usp check --select X,E --fail-on warning public/
  usp check --statistics public/
  usp check --baseline known.json --write-baseline public/
  usp check --baseline known.json public/  # shows only what is new
  usp check --probe 500 example.org  # and fetch 500 of its pages
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
    add_options(check)
    add_site_options(check, "what to fetch of a site")
    check.set_defaults(command=run, refuse=check.error)


def _level_of(arguments: argparse.Namespace) -> int:
    """Return the lowest severity that makes the command fail."""
    return LEVELS.get(arguments.fail_on, sys.maxsize)


def run(arguments: argparse.Namespace) -> int:
    """Check the targets and print the report. Return the exit code."""
    if arguments.explain:
        return _explain(arguments)
    refuse_together(arguments)
    settings = _settings(arguments)
    sources = _find_sources(arguments, settings)
    return (_watch if arguments.watch else _check)(arguments, settings, sources)


def _settings(arguments: argparse.Namespace) -> CheckSettings:
    """Return the settings of the file, and complete the arguments with them."""
    from usp.cli.settings import CheckSettings, find_settings, read_settings

    settings = CheckSettings()
    if arguments.config is not None:
        settings = read_settings(arguments.config)
    elif not arguments.no_config:
        settings = find_settings(Path.cwd())
    for name in ("select", "ignore", "fail_on"):
        if getattr(arguments, name) is None:
            setattr(arguments, name, getattr(settings, name))
    arguments.fail_on = arguments.fail_on or FAIL_ON
    return settings


def _find_sources(arguments: argparse.Namespace, settings: CheckSettings) -> tuple[Source, ...]:
    """Return the sources. Files and folders are served where the settings say, unless the command line says where."""
    sources = find_targets(arguments)
    if settings.url is None or arguments.url is not None:
        return sources
    return tuple(
        replace(source, url=settings.url) if source.kind in (SourceKind.FILE, SourceKind.FOLDER) else source
        for source in sources
    )


def _check(arguments: argparse.Namespace, settings: CheckSettings, sources: tuple[Source, ...]) -> int:
    """Check the targets once. Return the exit code."""
    baseline = None if arguments.baseline is None else _baseline(arguments)
    for path in filter(None, (arguments.output, arguments.baseline if arguments.write_baseline else None)):
        _ensure_writable(path, sources)
    with open_reader(arguments, sources) as reader:
        checked = _checked(reader, _probe(arguments, reader))
    whole = checked.report
    report = settings.without_ignored(whole.selected(arguments.select or (), arguments.ignore or ()))
    if checked.is_interrupted:
        say(PARTIAL_RESULTS)
    ending = Ending(
        [Ended(whole.target, whole.outcome)], is_strict=arguments.strict, is_interrupted=checked.is_interrupted
    )
    if arguments.write_baseline:
        return _write_baseline(report, ending, arguments)
    if baseline is not None:
        report = _without_known(report, baseline, arguments)
    code = ending.exit_code
    if ending.has_result and code != INTERRUPTED:
        level = _level_of(arguments)
        code = PROBLEMS_FOUND if any(severity >= level for severity in report.severities()) else code
    is_filtered = report.counts() != whole.counts()
    return _show(report, ending, code, arguments, is_filtered=is_filtered)


def _show(report: Report, ending: Ending, code: int, arguments: argparse.Namespace, *, is_filtered: bool) -> int:
    """Write the report, unless there is none worth it, and say why. Return the exit code.

    :param is_filtered: whether problems are left out, so that the report may not say what is missing.
    """
    is_kept = (arguments.keep_partial if ending.is_interrupted else ending.is_kept) or not _is_file(arguments.output)
    # If nothing could be checked, one line on standard error says why; a report for people would only repeat it.
    is_unchecked = ending.outcome.kind in (OutcomeKind.BLOCKED, OutcomeKind.UNREACHABLE) and arguments.format == _TEXT
    try:
        if is_kept and not is_unchecked:
            _write_report(report, arguments, now=datetime.now(UTC))
    except BrokenPipeError:  # the reader of the output has closed it; the exit code stays the same
        drop_output()
        return code
    if not ending.has_result or (code == PARTIAL and is_filtered):
        ending.say(is_quiet=arguments.quiet)  # otherwise problems of the report say what is missing
    if not is_kept:
        say(f"usp: {printable(arguments.output)} was not written")
    return code


def _baseline(arguments: argparse.Namespace) -> Baseline | None:
    """Return the known problems; None if they are to be written."""
    from usp.check.baseline import Baseline

    if arguments.write_baseline:
        return None
    path = arguments.baseline
    try:
        text = Path(path).read_text("utf-8")
    except FileNotFoundError:
        arguments.refuse(f"there is no {path}; write it with: --baseline {path} --write-baseline")
        raise
    except UnicodeDecodeError:
        text = ""  # which is no baseline
    return Baseline.from_json(text, printable(path))


def _write_baseline(report: Report, ending: Ending, arguments: argparse.Namespace) -> int:
    """Write the problems of a report as known, if the check is complete enough. Return the exit code."""
    from usp.check.baseline import Baseline

    if not ending.is_kept or ending.is_interrupted:
        ending.say(is_quiet=arguments.quiet)
        say(f"usp: {printable(arguments.baseline)} was not written")
        return ending.exit_code
    _write_file(arguments.baseline, [Baseline.of(report).to_json()])
    if not arguments.quiet:
        count = report.counts().total()
        say(f"usp: {printable(arguments.baseline)} has {plural(count, 'known problem')}; later checks report new ones")
    return ending.exit_code


def _without_known(report: Report, baseline: Baseline, arguments: argparse.Namespace) -> Report:
    """Return the report of new problems, and say how many are known or gone."""
    compared = baseline.compare(report)
    if not arguments.quiet:
        gone = f"; {compared.gone:,} gone: write it again with --write-baseline" if compared.gone else ""
        say(f"usp: {plural(compared.known, 'known problem')} of {printable(arguments.baseline)} not shown{gone}")
    return compared.report


def _watch(arguments: argparse.Namespace, settings: CheckSettings, sources: tuple[Source, ...]) -> int:
    """Check again whenever a file changes, until Ctrl-C."""
    from usp.cli.changes import changes, state_of

    paths = [source.path for source in sources]
    if not all(source.kind in (SourceKind.FILE, SourceKind.FOLDER) for source in sources):
        arguments.refuse("--watch watches files and folders; to check a site again and again, see usp watch")
    own = frozenset(os.path.realpath(path) for path in (arguments.output, arguments.baseline) if path)
    state = state_of(paths, own)
    is_shown = is_terminal(sys.stdout) and not _is_file(arguments.output)
    try:
        _check_again(arguments, settings, sources)
        say(f"usp: watching {printable(', '.join(paths))}; Ctrl-C ends")
        for _ in changes(paths, own, last=state):
            if is_shown:
                print("\x1b[2J\x1b[H", end="")  # clear the screen
            _check_again(arguments, settings, sources)
            say(f"usp: checked at {datetime.now():%H:%M:%S}; watching")
    except KeyboardInterrupt:
        say("")
    return INTERRUPTED


def _check_again(arguments: argparse.Namespace, settings: CheckSettings, sources: tuple[Source, ...]) -> None:
    """Check once. While a build runs, files may be missing or be written: say so, and wait for the next change."""
    try:
        if _check(arguments, settings, sources) == INTERRUPTED:
            raise KeyboardInterrupt
    except (UspError, OSError) as error:
        say(f"usp: error: {error}")


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


def _probe(arguments: argparse.Namespace, reader: Reader) -> Probe | None:
    """Return which pages to probe."""
    if arguments.probe is None:
        return None
    from usp.check.probing.probe import Probe

    return Probe(
        arguments.probe,
        seed=arguments.probe_seed or 0,
        cache=arguments.probe_cache,
        table=arguments.probe_out,
        progress=None if arguments.quiet else lambda event: reader.meter.probed(*event),
    )


def _checked(reader: Reader, probe: Probe | None) -> _Checked:
    """Check the sources; after Ctrl-C, what was read until then."""
    from usp.check.checking import check_sources

    try:
        report = check_sources(reader.sources, reader.client, probe=probe, **reader.options)
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
    paint = unpainted if path is not None or not is_text else painter(sys.stdout, text.STYLES)
    if arguments.statistics:
        pieces = statistics.render(arguments.format, report, paint=paint, is_summed_up=not arguments.quiet)
    elif is_text:
        is_collapsed = path is None and not arguments.all and is_terminal(sys.stdout)
        pieces = text.render(
            shown,
            now=now,
            paint=paint,
            is_summed_up=not arguments.quiet,
            most_per_code=PER_CODE if is_collapsed else None,
        )
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
