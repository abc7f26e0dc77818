"""Crawl a folder again and again, and deliver what changes.

The loop: wait for the next start, crawl, deliver. `usp.crawl.schedule` says when, from the runs in the manifest, and
`usp.crawl.deliveries` what is still to be delivered, from the folder. So the loop remembers nothing that matters, and
it may be killed at any moment. A run that fails (the disk is full, another process writes to the folder) is reported,
and tried again in the next slot.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from usp.crawl.crawls import Crawl, CrawlArguments, crawl
from usp.crawl.deliveries import Deliveries, Destination, Report
from usp.crawl.folder import CrawlFolder
from usp.crawl.schedule import Schedule
from usp.exceptions import CrawlFolderError, InvalidArgumentError
from usp.export.selection import span_of
from usp.keywords import check_keywords

if TYPE_CHECKING:
    from typing import Unpack

__all__ = ["Watcher", "now", "wait_until", "watch"]

_RETRY = timedelta(minutes=1)  # until the first new attempt to deliver; doubled after each
_MAX_RETRY = timedelta(hours=1)
#: The other parameters of `watch`.
_NAMES = ("targets", "path", "every", "jitter", "runs", "destinations", "kinds", "notify_first", "report")
_MAX_SLEEP = 30.0  # seconds, after which the clock is read again: somebody may have set it, or the machine has slept


def now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


def wait_until(moment: datetime) -> None:
    """Wait until a moment, and never for longer than it takes until then by the clock of now."""
    end = time.monotonic() + (moment - now()).total_seconds()
    while (left := min((moment - now()).total_seconds(), end - time.monotonic())) > 0:
        time.sleep(min(left, _MAX_SLEEP))


@dataclass(slots=True)
class Watcher:
    """The loop.

    :param crawl: crawls once, or goes on with a run that was interrupted.
    :param schedule: None crawls at once.
    :param runs: after how many runs to end, failed ones included; None for no end.
    :param wait: waits until a moment.
    """

    path: str | os.PathLike[str]
    crawl: Callable[[], Crawl]
    deliveries: Deliveries
    schedule: Schedule | None
    runs: int | None = None
    report: Report = lambda level, line: None
    wait: Callable[[datetime], None] = wait_until
    is_failed: bool = False  #: whether the last run failed

    def watch(self) -> None:
        """Watch, until enough runs are done.

        :raises CrawlFolderError: if the folder cannot be used, or another process watches it.
        :raises InvalidArgumentError: if an option is wrong.
        """
        folder = CrawlFolder.create(self.path)
        with folder.watching():
            self.deliveries.prepare(folder)
            self.deliveries.send(folder)
            done, failed_at = 0, None
            while True:
                self._wait(failed_at)
                failed_at = self._run(is_first=not done)
                self.is_failed = failed_at is not None
                self.deliveries.send(CrawlFolder(self.path))
                done += 1
                if self.runs is not None and done >= self.runs:
                    return

    def _run(self, *, is_first: bool) -> datetime | None:
        """Crawl once. Return when it failed, None if it did not."""
        try:
            self.crawl()
        except (OSError, CrawlFolderError, InvalidArgumentError) as error:
            if is_first and isinstance(error, InvalidArgumentError):
                raise  # wrong use; later, somebody has edited the list of sites, and may do so again
            self.report("error", f"the run failed: {error}")
            return now()
        return None

    def _wait(self, failed_at: datetime | None) -> None:
        """Wait for the next start. Try again meanwhile to deliver what could not be delivered."""
        pause, retry_at = _RETRY, now() + _RETRY
        said: datetime | None = None
        while (start := self._next_start(failed_at)) > now():
            if start != said:
                self.report("info", f"next run at {start.astimezone().isoformat(sep=' ', timespec='seconds')}")
                said = start
            if not self.deliveries.waiting:
                self.wait(start)
                continue
            self.wait(min(start, retry_at))
            if now() >= retry_at:
                self.deliveries.send(CrawlFolder(self.path))
                pause = min(2 * pause, _MAX_RETRY)
                retry_at = now() + pause

    def _next_start(self, failed_at: datetime | None) -> datetime:
        """Return the next start. The manifest is read again: somebody may have crawled by hand."""
        if self.schedule is None:
            return now()
        return self.schedule.next_start(now(), CrawlFolder(self.path).runs, failed_at)


def watch(
    targets: Iterable[str] | str,
    path: str | os.PathLike[str],
    *,
    every: str | timedelta | None,
    jitter: str | timedelta | None = None,
    runs: int | None = None,
    destinations: Iterable[Destination] = (),
    kinds: Sequence[str] | None = None,
    notify_first: bool = False,
    report: Report = lambda level, line: None,
    **arguments: Unpack[CrawlArguments],
) -> Crawl:
    """Crawl sites into a folder again and again, and deliver what changes.

    :param every: the time from run to run: "15m", "1h", "1d"; None crawls once, at once.
    :param jitter: how much later a run may start; by default a tenth of that time, and at most ten minutes.
    :param runs: return after so many runs; None never returns.
    :param destinations: where to deliver the changes: `Command`, `Webhook`, `AtomFeed`, or your own.
    :param kinds: which kinds of changes to deliver: added, removed, changed, moved; all if None.
    :param notify_first: whether to deliver all pages of a site that is read for the first time, as added.
    :param report: called with "info", "warning" or "error", and a line.
    :param arguments: those of `crawl`.
    :raises CrawlFolderError: if the folder cannot be used, or another process watches it.
    """
    check_keywords(arguments, CrawlArguments.__annotations__, *_NAMES)
    given = [targets] if isinstance(targets, str) else list(targets)
    if "-" in given:
        raise InvalidArgumentError("a list on standard input can be read only once; name a file")
    schedule = None
    if every is not None:
        schedule = Schedule(_span("every", every), None if jitter is None else _span("jitter", jitter))
    Watcher(
        path,
        lambda: crawl(given, path, **arguments),
        Deliveries(destinations, kinds=kinds, notify_first=notify_first, report=report),
        schedule,
        1 if schedule is None else runs,
        report,
    ).watch()
    return Crawl(CrawlFolder(path))


def _span(name: str, written: str | timedelta) -> timedelta:
    return written if isinstance(written, timedelta) else span_of(name, written)
