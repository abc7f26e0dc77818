"""`usp watch`: crawl sites on a schedule, and send what changed to a command, a webhook or a feed."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from typing import TYPE_CHECKING

from usp.cli.crawl import OF_ONE_SITE, BadLines, CrawlMeter, add_crawl_options, add_reuse_options, crawl_once
from usp.cli.diff import add_kind_option, chosen_kinds
from usp.cli.outcomes import EXIT_CODES_HELP, WRONG_USE, code_of_sites
from usp.cli.output import LogLines, duration, log_to, size
from usp.cli.progress import Meter, progress_line
from usp.cli.site import add_message_options, add_site_options, count_of
from usp.crawl import AtomFeed, ChangeKind, Command, Crawl, Webhook, open_crawl
from usp.crawl.deliveries import Deliveries, Destination
from usp.crawl.destinations import SECRET
from usp.crawl.schedule import Schedule
from usp.crawl.sites import check_targets
from usp.crawl.watching import Watcher, now, wait_until
from usp.exceptions import InvalidArgumentError
from usp.export.selection import span_of
from usp.objects.problem import printable
from usp.objects.wording import plural

if TYPE_CHECKING:
    from usp.cli.site import Group, Subparsers

__all__ = ["register"]

_UNDELIVERED = 4
#: Levels of messages -> their priorities, as systemd's journal reads them at the start of a line.
_PRIORITIES = {"info": 6, "warning": 4, "error": 3}
_EPILOG = f"""\
The first run starts at once, unless the folder says that it is not due yet. If
the last run was interrupted, usp finishes it first. A run that takes longer
than --every skips the starts that it misses.

Each change is a JSON object: site, change, url, fields, section, sitemap_url,
old_sitemap_url, last_modified, old_last_modified, title.

  --on-change  The command gets one object on each line of standard input, and
               the variables USP_RUN, USP_CRAWL, USP_DELIVERY, USP_ADDED,
               USP_REMOVED, USP_CHANGED and USP_MOVED. No shell runs it.
  --webhook    Each request has at most 1,000 changes in one JSON object. With
               the variable {SECRET} set, it has the header
               Usp-Signature.

If a delivery fails, usp tries it again, in order, also after a restart. So no
change is lost, but one may come twice, with the same USP_DELIVERY or header
Usp-Delivery. If deliveries are left when usp watch ends by itself, it exits
with 4.

examples:
  usp watch sites.txt -o crawl/ --every 1h --on-change ./notify
  usp watch sites.txt -o crawl/ --every 1d --jitter 2h --feed new-pages.xml
  usp watch -o crawl/ --once --kind added --webhook https://hooks.example.org/

{EXIT_CODES_HELP}"""


def register(commands: Subparsers) -> None:
    """Add the command to the command line."""
    command = commands.add_parser(
        "watch",
        usage="usp watch [OPTION ...] [SITE ...] -o FOLDER (--every TIME | --once)",
        help="crawl on a schedule, and send what changed to a command, a webhook or a feed",
        description="Crawl sites on a schedule, and send what changed to a command, a webhook or a\n"
        "feed. Needs the extra crawl.",
        epilog=_EPILOG,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    command.add_argument(
        "targets",
        nargs="*",
        metavar="SITE",
        help="a site, or a file that lists sites, as for usp crawl;\nread each time",
    )
    output = command.add_argument_group("output")
    output.add_argument(
        "-o", "--output", required=True, metavar="FOLDER", help="the crawl folder; created if it does not exist"
    )
    output.add_argument("--no-warc", action="store_true", help="keep no documents; later runs fetch everything again")
    add_message_options(output, "show only what goes wrong")
    _add_schedule(command.add_argument_group("when to crawl"))
    _add_deliveries(command.add_argument_group("what to send, and where"))
    add_crawl_options(command.add_argument_group("which sites, and how many at once"))
    add_reuse_options(command.add_argument_group("crawling again"))
    add_site_options(command, concurrency=OF_ONE_SITE)
    command.set_defaults(command=run, refuse=command.error, no_pages=False, retry_failed=False)


def _add_schedule(group: Group) -> None:
    when = group.add_mutually_exclusive_group(required=True)
    when.add_argument("--every", metavar="TIME", help="from the start of a run to the next: 15m, 1h, 1d")
    when.add_argument("--once", action="store_true", help="crawl now, deliver and end; for cron and timers")
    group.add_argument(
        "--jitter",
        metavar="TIME",
        help="start each run up to this much later, at random\n(default: a tenth of --every, at most 10m; 0: none)",
    )
    group.add_argument("--runs", type=count_of("runs"), metavar="N", help="end after N runs")


def _add_deliveries(group: Group) -> None:
    group.add_argument(
        "--on-change",
        action="append",
        default=[],
        metavar="COMMAND",
        help="run this command after each run that found changes",
    )
    group.add_argument(
        "--command-timeout",
        default="10m",
        metavar="TIME",
        help="end a command that takes longer (default: %(default)s)",
    )
    group.add_argument(
        "--webhook", action="append", default=[], metavar="URL", help="send changes to this URL with POST"
    )
    group.add_argument("--feed", metavar="FILE", help="keep an Atom feed of new pages in this file")
    group.add_argument(
        "--feed-entries",
        type=count_of("entries", 100_000),
        default=500,
        metavar="N",
        help="pages in the feed, the newest (default: %(default)s)",
    )
    add_kind_option(group)
    group.add_argument(
        "--notify-first",
        action="store_true",
        help="also send all pages of a site that is read for the first\ntime, as added",
    )


def run(arguments: argparse.Namespace) -> int:
    """Watch the sites. Return the exit code."""
    log = _Log(arguments)
    if arguments.insecure:
        log("warning", "TLS certificates are not verified (--insecure)")
    try:
        schedule = _schedule(arguments)
        check_targets(arguments.targets, arguments.column)
        deliveries = Deliveries(
            _destinations(arguments),
            kinds=chosen_kinds(arguments),
            notify_first=arguments.notify_first,
            report=log,
        )
        runs = 1 if schedule is None else arguments.runs
        watcher = Watcher(
            arguments.output, lambda: _crawl(arguments, log), deliveries, schedule, runs, log, lambda at: _wait(at, log)
        )
        watcher.watch()
    except InvalidArgumentError as error:
        arguments.refuse(str(error))
        raise
    except KeyboardInterrupt:
        log("info", "ended; the same command goes on")
        raise
    if watcher.is_failed:
        return WRONG_USE
    if deliveries.waiting:
        return _UNDELIVERED
    return code_of_sites(open_crawl(arguments.output).runs[-1].outcomes)


def _schedule(arguments: argparse.Namespace) -> Schedule | None:
    if "-" in arguments.targets:
        arguments.refuse("a list on standard input can be read only once; name a file")
    if arguments.once:
        if arguments.runs is not None or arguments.jitter is not None:
            arguments.refuse("--jitter and --runs go with --every, not with --once")
        return None
    jitter = None if arguments.jitter is None else span_of("--jitter", arguments.jitter)
    return Schedule(span_of("--every", arguments.every), jitter)


def _destinations(arguments: argparse.Namespace) -> Iterator[Destination]:
    timeout = span_of("--command-timeout", arguments.command_timeout).total_seconds()
    for text in arguments.on_change:
        yield Command.parse(text, timeout)
    for url in arguments.webhook:
        yield Webhook(url, os.environ.get(SECRET) or None)
    if arguments.feed is not None:
        kinds = chosen_kinds(arguments)
        if kinds is not None and not {ChangeKind.ADDED, ChangeKind.CHANGED} & set(kinds):
            arguments.refuse("a feed has pages that are added or changed; --kind leaves out both")
        yield AtomFeed(arguments.feed, arguments.feed_entries, with_changed=ChangeKind.CHANGED in (kinds or ()))


def _crawl(arguments: argparse.Namespace, log: _Log) -> Crawl:
    meter, bad_lines = CrawlMeter(), BadLines()
    with log.showing(meter):
        crawled = crawl_once(arguments, meter, bad_lines)
    for message in bad_lines.messages():
        log("warning", message)
    last, latest = crawled.runs[-1], meter.latest
    outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(last.outcomes.items()))
    pages, transferred = (0, 0) if latest is None else (latest.pages, latest.bytes)
    took = (last.ended - last.started).total_seconds() if last.ended is not None else 0.0
    log(
        "info",
        f"run {last.run}: {plural(last.sites, 'site')}{outcomes and f' ({outcomes})'},"
        f" {plural(pages, 'page')}, {size(transferred)} in {duration(took)}",
    )
    return crawled


def _wait(moment: datetime, log: _Log) -> None:
    with log.showing(_Countdown(moment)):
        wait_until(moment)


class _Countdown:
    """What the progress line shows between two runs."""

    def __init__(self, moment: datetime) -> None:
        self._moment = moment

    def fields(self) -> list[str]:
        """Return how long it takes until the moment."""
        return [f"waiting for {duration(max((self._moment - now()).total_seconds(), 0), 0)}", ""]


class _Log:
    """Prints a line for each event: with its time, or, for systemd's journal, with its priority."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._is_quiet = arguments.quiet
        self._is_journal = _is_journal()
        self._lines = log_to(arguments.log_file, arguments.verbose) or LogLines()

    def __call__(self, level: str, line: str) -> None:
        """Print a line."""
        if self._is_quiet and level == "info":
            return
        word = "" if level == "info" else f"{level}: "
        start = (
            f"<{_PRIORITIES[level]}>" if self._is_journal else f"{now().astimezone().isoformat(timespec='seconds')} "
        )
        self._lines.write(f"{start}usp: {word}{printable(line)}")

    @contextmanager
    def showing(self, meter: Meter) -> Iterator[None]:
        """Show progress on a terminal, below the lines."""
        shown: AbstractContextManager[None] = nullcontext() if self._is_quiet else progress_line(meter, self._lines)
        with shown:
            yield


def _is_journal() -> bool:
    """Return whether systemd's journal reads standard error.

    https://www.freedesktop.org/software/systemd/man/latest/systemd.exec.html#%24JOURNAL_STREAM
    """
    try:
        found = os.fstat(sys.stderr.fileno())
    except (AttributeError, OSError, ValueError):  # standard error is closed, or replaced by an object without a file
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"
