"""`usp crawl`: fetch the sitemaps of many sites into a folder; again and again, only what changed."""

from __future__ import annotations

import argparse
import shlex
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from usp.cli.outcomes import EXIT_CODES_HELP, code_of_sites
from usp.cli.output import duration, say, size
from usp.cli.progress import progress_line
from usp.cli.reading import start_log
from usp.cli.site import add_message_options, add_site_options, async_client_options, count_of, tree_options
from usp.crawl import CrawlOptions, RequestLimits, Reuse, crawl, open_crawl
from usp.crawl.sites import check_targets
from usp.crawl.state import LEARNED_NOTHING
from usp.exceptions import CrawlFolderError, InvalidArgumentError
from usp.export.selection import span_of
from usp.objects.outcome import OutcomeKind
from usp.objects.problem import printable
from usp.objects.wording import plural

if TYPE_CHECKING:
    from usp.cli.site import Group, Subparsers
    from usp.crawl import Crawl, CrawlProgress

__all__ = [
    "OF_ONE_SITE",
    "BadLines",
    "CrawlMeter",
    "add_crawl_options",
    "add_reuse_options",
    "crawl_once",
    "register",
]

_SHOWN_LINES = 10  # of lists that are no sites
_SHOWN_REASONS = 3  # for each outcome
_MAX_REASONS = 1_000  # remembered for each outcome
_SECONDS_BEFORE_ESTIMATE = 3.0  # the first sites say little about the rest
_KNOWN_PATHS = {
    "auto": "only if robots.txt leads to no sitemap",
    "always": "on every site, as the other commands do",
    "never": "only what robots.txt names",
}
#: What the help says about `--concurrency`, which is for each site.
OF_ONE_SITE = "for each site; default and\nat most: what --per-host says"
_EPILOG = f"""\
SITE is a site, the URL of a sitemap, or a file that lists sites: a text file
with one on each line, or a CSV, TSV or Parquet file with a column of sites;
- reads a list from standard input.

The folder holds the documents as WARC files, and the tables sites, sitemaps,
pages and problems as Parquet files. Every command reads it: usp ls crawl/

After Ctrl-C or a crash, the same command goes on where the run ended. After a
complete run, it starts a new one, which asks servers only for what has changed.
Without SITE, it crawls all sites of the folder.

examples:
  usp crawl sites.txt -o crawl/
  usp crawl example.org example.com -o crawl/
  usp crawl -o crawl/
  usp crawl top-sites.csv --column domain -o crawl/ --sites-at-once 500
  usp crawl -o crawl/ --retry-failed

{EXIT_CODES_HELP}"""


def register(commands: Subparsers) -> None:
    """Add the command to the command line."""
    command = commands.add_parser(
        "crawl",
        usage="usp crawl [OPTION ...] [SITE ...] -o FOLDER",
        help="fetch the sitemaps of many sites into a folder, again and again",
        description="Fetch the sitemaps of many sites into a folder. Later runs fetch only what\nhas changed.",
        epilog=_EPILOG,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    command.add_argument("targets", nargs="*", metavar="SITE", help="a site, or a file that lists sites; see below")
    output = command.add_argument_group("output")
    output.add_argument(
        "-o", "--output", required=True, metavar="FOLDER", help="the crawl folder; created if it does not exist"
    )
    output.add_argument("--no-pages", action="store_true", help="write no tables of pages and problems")
    output.add_argument("--no-warc", action="store_true", help="keep no documents; later runs fetch everything again")
    add_message_options(output)
    add_crawl_options(command.add_argument_group("which sites, and how many at once"))
    again = command.add_argument_group("crawling again")
    again.add_argument(
        "--retry-failed",
        action="store_true",
        help="crawl only sites that were blocked, unreachable or\nincomplete the last time",
    )
    add_reuse_options(again)
    add_site_options(command, concurrency=OF_ONE_SITE)
    command.set_defaults(command=run, refuse=command.error)


def add_crawl_options(group: Group) -> None:
    """Add the options that say which sites to crawl, and how many at once."""
    options, requests = CrawlOptions(), RequestLimits()
    group.add_argument("--column", metavar="NAME", help="the column with the sites, in a CSV, TSV or Parquet file")
    group.add_argument(
        "--sites-at-once",
        type=count_of("sites", 10_000),
        default=options.sites_at_once,
        metavar="N",
        help="sites to fetch at the same time (default: %(default)s)",
    )
    for name, what in (
        ("host", "one host"),
        ("domain", "all hosts of one domain"),
        ("address", "all hosts with one IP address"),
    ):
        group.add_argument(
            f"--per-{name}",
            type=count_of("requests", 1_000),
            default=getattr(requests, f"per_{name}"),
            metavar="N",
            help=f"requests at once to {what},\nover all sites (default: %(default)s)",
        )
    paths = "\n".join(f"  {name}: {what}" for name, what in _KNOWN_PATHS.items())
    group.add_argument(
        "--known-paths",
        choices=_KNOWN_PATHS,
        default=options.known_paths,
        metavar="WHEN",
        help=f"when to try paths such as /sitemap.xml\n(default: %(default)s)\n{paths}",
    )


def add_reuse_options(group: Group) -> None:
    """Add the options that say when an earlier document need not be asked for."""
    group.add_argument(
        "--max-age",
        metavar="AGE",
        help="reuse documents younger than this (6h, 7d) if their\nserver said that they stay fresh",
    )
    group.add_argument(
        "--trust-lastmod",
        action="store_true",
        help="reuse sitemaps if their date in the index is the same as\nbefore; many sites never change that date",
    )


def run(arguments: argparse.Namespace) -> int:
    """Crawl the sites. Return the exit code."""
    log = start_log(arguments)
    if arguments.insecure and not arguments.quiet:
        say("usp: warning: TLS certificates are not verified (--insecure)")
    meter = CrawlMeter()
    bad_lines = BadLines()
    shown = nullcontext() if arguments.quiet else progress_line(meter, log)
    try:
        check_targets(arguments.targets, arguments.column)
        with shown:
            crawled = crawl_once(arguments, meter, bad_lines)
    except InvalidArgumentError as error:
        _say_skipped(bad_lines)
        arguments.refuse(str(error))
        raise
    except KeyboardInterrupt:
        _say_interrupted(arguments)
        raise
    _say_skipped(bad_lines)
    if arguments.retry_failed and meter.latest is None and not arguments.quiet:
        say(
            f"usp: no site failed the last time: there was nothing to crawl again; all in {printable(arguments.output)}"
        )
    elif not arguments.quiet:
        _say_summary(arguments, crawled)
    return code_of_sites(crawled.runs[-1].outcomes, has_bad_lines=bool(bad_lines.count))


def crawl_once(arguments: argparse.Namespace, meter: CrawlMeter, bad_lines: BadLines) -> Crawl:
    """Crawl as the options of the command line say."""
    return crawl(
        arguments.targets,
        arguments.output,
        options=_options(arguments),
        client_options=async_client_options(arguments),
        column=arguments.column,
        retry_failed=arguments.retry_failed,
        progress=meter,
        on_error=bad_lines,
    )


def _options(arguments: argparse.Namespace) -> CrawlOptions:
    tree: Any = {name: value for name, value in tree_options(arguments).items() if value is not None}
    tree.pop("use_known_paths")
    tree["politeness"] = replace(tree["politeness"], first_tries=1)
    return CrawlOptions(
        sites_at_once=arguments.sites_at_once,
        requests=RequestLimits(
            per_host=arguments.per_host, per_domain=arguments.per_domain, per_address=arguments.per_address
        ),
        known_paths="never" if arguments.no_known else arguments.known_paths,
        reuse=Reuse(
            max_age=0.0 if arguments.max_age is None else span_of("--max-age", arguments.max_age).total_seconds(),
            trust_lastmod=arguments.trust_lastmod,
        ),
        with_pages=not arguments.no_pages,
        with_warc=not arguments.no_warc,
        tree=tree,
    )


class CrawlMeter:
    """Keep the latest progress of a crawl, for the progress line."""

    def __init__(self) -> None:
        self.latest: CrawlProgress | None = None
        self._started = time.monotonic()

    def __call__(self, event: CrawlProgress) -> None:
        """Remember the event."""
        self.latest = event

    def fields(self) -> list[str]:
        """Return what to show, the most important first; the last is a host."""
        latest, seconds = self.latest, time.monotonic() - self._started
        if latest is None:
            return ["0 sites", duration(int(seconds), 0), ""]
        of_all = f"/{latest.total:,}" if latest.total is not None else ""
        failed = sum(latest.outcomes.get(kind, 0) for kind in LEARNED_NOTHING)
        fields = [
            f"{latest.sites:,}{of_all} sites",
            _time_left(latest, seconds) or duration(int(seconds), 0),
            f"{failed:,} failed" if failed else "",
            plural(latest.pages, "page"),
            size(latest.bytes),
            f"{latest.sites / max(seconds, 0.1):,.{_digits(latest.sites / max(seconds, 0.1))}f} sites/s",
            f"{latest.pages / max(seconds, 0.1):,.0f} pages/s",
        ]
        return [*filter(None, fields), printable(latest.row["target"])]


def _digits(rate: float) -> int:
    """Return how many digits after the point a rate is shown with."""
    return 0 if rate >= 10 else 1


def _time_left(latest: CrawlProgress, seconds: float) -> str:
    """Return how long the rest takes if it goes on like this; nothing if nobody knows yet."""
    if latest.total is None or not latest.sites or seconds < _SECONDS_BEFORE_ESTIMATE:
        return ""
    return f"{duration(int((latest.total - latest.sites) * seconds / latest.sites), 0)} left"


class BadLines:
    """Collect the lines of lists that are no sites."""

    def __init__(self) -> None:
        self.count = 0
        self._first: list[str] = []

    def __call__(self, line: str, why: str) -> None:
        """Note a line, and why it is no site."""
        self.count += 1
        if len(self._first) < _SHOWN_LINES:
            self._first.append(why)

    def messages(self) -> Iterator[str]:
        """Say which lines were skipped."""
        for why in self._first:
            yield f"skipped: {printable(why)}"
        if (more := self.count - len(self._first)) > 0:
            yield f"skipped: {plural(more, 'more line')} that are no sites"


def _say_skipped(bad_lines: BadLines) -> None:
    for message in bad_lines.messages():
        say(f"usp: {message}")


def _say_interrupted(arguments: argparse.Namespace) -> None:
    sites, where = _sites_of_run(arguments.output), printable(arguments.output)
    say(f"usp: interrupted; {where} has {plural(sites, 'site')} of this run; run it again to go on")


def _sites_of_run(output: str) -> int:
    """Return how many sites of the run that was interrupted are in the folder, whatever process has crawled them."""
    try:
        crawled = open_crawl(output)
    except CrawlFolderError:  # there is none yet
        return 0
    run = crawled.runs[-1] if crawled.runs else None
    if run is None or run.ended is not None:  # it had not started
        return 0
    numbers: list[int] = crawled.sites(columns="run").to_arrow()["run"].to_pylist()
    return numbers.count(run.run)


class _Totals:
    """What a run has brought, whatever the number of processes that it took: pages, bytes, and why sites failed."""

    def __init__(self, crawled: Crawl, run: int) -> None:
        self.pages = self.bytes = 0
        self._reasons: dict[str, Counter[str]] = {}  # outcome -> why -> the number of sites
        self._sites: dict[tuple[str, str], str] = {}  # outcome and why -> the first such site
        names = ["run", "pages", "bytes", "outcome", "reason", "target"]
        for batch in crawled.sites(run, columns=names).reader():
            for number, pages, transferred, *outcome in zip(*map(_values, batch.columns), strict=True):
                if number == run:
                    self.pages += pages or 0
                    self.bytes += transferred or 0
                    self._note(*outcome)

    def _note(self, outcome: str, reason: str | None, target: str) -> None:
        why = (reason or "").partition(": ")[2]  # without the URL
        if outcome != OutcomeKind.EMPTY:
            why = why or reason or ""  # that of an empty site without a URL is that it has no sitemap
        if why:
            counts = self._reasons.setdefault(outcome, Counter())
            why = why if why in counts or len(counts) < _MAX_REASONS else "other reasons"
            counts[why] += 1
            self._sites.setdefault((outcome, why), target)

    def reasons(self, outcome: str) -> str:
        """Return the most common reasons for an outcome."""
        common = self._reasons.get(outcome, Counter()).most_common(_SHOWN_REASONS + 1)
        shown = [
            f"{why}: {self._sites[outcome, why]}" if count == 1 else f"{why}: {plural(count, 'site')}"
            for why, count in common[:_SHOWN_REASONS]
        ]
        return printable("; ".join([*shown, *["..."] * (len(common) > _SHOWN_REASONS)]))


def _values(column: Any) -> list[Any]:
    values: list[Any] = column.to_pylist()
    return values


def _say_summary(arguments: argparse.Namespace, crawled: Crawl) -> None:
    run, where = crawled.runs[-1], printable(arguments.output)
    quoted = printable(shlex.quote(arguments.output))
    totals = _Totals(crawled, run.run)
    for outcome in filter(run.outcomes.get, OutcomeKind):
        say(f"usp: {run.outcomes[outcome]:>9,}  {outcome:<11}  {totals.reasons(outcome)}".rstrip())
    took = (run.ended - run.started).total_seconds() if run.ended is not None else 0.0
    say(
        f"usp: run {run.run}: {plural(run.sites, 'site')}, {plural(totals.pages, 'page')},"
        f" {size(totals.bytes)} in {duration(took)}; all in {where}"
    )
    if run.run > 1 and not arguments.no_pages:
        say(f"usp: what has changed: usp diff {quoted}")
    has_failed = any(run.outcomes.get(outcome) for outcome in (*LEARNED_NOTHING, OutcomeKind.PARTIAL))
    if has_failed or totals.reasons(OutcomeKind.EMPTY):
        say(f"usp: only those that failed again: usp crawl -o {quoted} --retry-failed")
