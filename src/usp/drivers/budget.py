"""How long the documents of a tree may be read, and how many bytes they may have.

`ReadingBudget` bounds the parsing of a tree: its time, the CPU time of each document, and all inflated bytes together.
`LateReading` bounds what a command reads of these documents after that, once its time is up or Ctrl-C was pressed.
Neither stops anything itself: a document asks them before each of its pieces, see `usp.documents.Spend`.

The clocks are those of the driver. So the schedule, the parsers and the scanner read none.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from usp.documents import Spend, StartRead
from usp.limits import Limits
from usp.objects.wording import plural_noun

__all__ = ["LateReading", "ReadingBudget", "time_is_up", "total_bytes_reached"]

Clock = Callable[[], float]

# What a command may still read when its time is up: CPU seconds, and a share of the time that it had.
_LATE_SECONDS, _LATE_SHARE = 2.0, 0.1
# The same after Ctrl-C, of the time until then.
_INTERRUPTED_SECONDS, _INTERRUPTED_SHARE = 1.0, 0.5
_SHARE_OF_READ = 1 / 8  # of what is left, for one read, so that a slow document leaves time for others
_LEAST_SECONDS = 0.05  # for one read, whatever its share: enough for most sitemaps
_UNMEASURED_SECONDS = 0.05  # to ask for the CPU time of a thread may cost more than to parse a small sitemap


def time_is_up(limits: Limits) -> str:
    """Return the reason why a tree ends when its time is up."""
    return f"the tree's time is up, after {_seconds(limits.tree_seconds)} (limits.tree_seconds)"


def total_bytes_reached(most: int) -> str:
    """Return the reason why a tree ends that has transferred as many bytes as it may."""
    return f"the tree's sitemaps have {most:,} bytes (limits.max_total_bytes)"


class ReadingBudget:
    """What parsing the documents of one tree may cost. Several threads may use it.

    :param ends_at: when the tree's time is up, by `now`.
    :param cpu: the CPU time of the thread that calls it.
    :param later: bounds all reads after the first. None lets them take any time.
    """

    def __init__(
        self,
        limits: Limits,
        ends_at: float,
        *,
        now: Clock = time.monotonic,
        cpu: Clock = time.thread_time,
        later: LateReading | None = None,
    ) -> None:
        self.reason = ""  # why nothing more is parsed; empty while there is something left
        self._limits = limits
        self._ends_at = ends_at
        self._now = now
        self._cpu = cpu
        self._later = later
        self._lock = threading.Lock()
        self._bytes = 0

    @property
    def later(self) -> StartRead | None:
        """Starts a read of a document that has been parsed."""
        return None if self._later is None else self._later.start

    def cancel(self, reason: str, *, is_interrupted: bool = False) -> None:
        """Parse nothing more. A document that is being parsed ends before its next piece."""
        self.reason = self.reason or reason
        if is_interrupted and self._later is not None:
            self._later.interrupt()

    def document(self, waiting: Callable[[], int]) -> Spend:
        """Start to parse a document, in this thread.

        While others wait, a document gets no more than an equal share of the time that was left when it started. A
        small one that starts in the last moment is not cut for that.

        :param waiting: returns how many others wait to be parsed.
        """
        started = self._now()
        worked: float | None = None  # when the CPU clock was at 0 for this document
        most = self._limits.document_seconds

        def spend(size: int) -> str:
            nonlocal worked
            now = self._now()
            if now >= self._ends_at:
                self.reason = self.reason or time_is_up(self._limits)
            self._count(size)
            if self.reason:
                return self.reason
            if now - started >= min(_UNMEASURED_SECONDS, most / 2):  # few documents take so long
                if worked is None:
                    worked = self._cpu() - (now - started)
                if self._cpu() - worked >= most:
                    return f"parsing a sitemap took {_seconds(most)} (limits.document_seconds)"
            others = waiting() if now - started > _LEAST_SECONDS else 0
            if others and (now - started) * (others + 1) >= self._ends_at - started:
                return "parsing a sitemap took too much of the tree's time while others waited (limits.tree_seconds)"
            return ""

        return spend

    def _count(self, size: int) -> None:
        most = self._limits.max_total_inflated_bytes
        with self._lock:
            self._bytes += size
            if self._bytes > most:
                self.reason = self.reason or (
                    f"the tree's sitemaps have {most:,} bytes, inflated (limits.max_total_inflated_bytes)"
                )


class LateReading:
    """Bounds what a command reads after its time is up, or after Ctrl-C.

    Until then every read goes on. After that, all reads together have a few CPU seconds, and each may use a share of
    what is left. So a command prints or writes what it has, and ends soon all the same. Waiting for whoever reads the
    output costs no CPU time, and does not count.

    :param cpu: the CPU time of the process.
    """

    def __init__(
        self, limits: Limits, ends_at: float, *, now: Clock = time.monotonic, cpu: Clock = time.process_time
    ) -> None:
        self._limits = limits
        self._ends_at = ends_at
        self._now = now
        self._cpu = cpu
        self._reason = ""
        self._spent_at = 0.0  # by `cpu`, once it is late

    def start(self) -> Spend:
        """Start a read of a document."""
        started: float | None = None

        def spend(size: int) -> str:
            nonlocal started
            if not self._is_late():
                return ""
            cpu = self._cpu()
            started = cpu if started is None else started
            left = self._spent_at - cpu
            is_within = left > 0 and cpu - started <= max(_LEAST_SECONDS, left * _SHARE_OF_READ)
            return "" if is_within else self._reason

        return spend

    def interrupt(self) -> None:
        """Note that Ctrl-C was pressed."""
        if not self._reason:
            worked = max(0.0, self._now() - self._ends_at + self._limits.tree_seconds)
            self._end("it was interrupted", _INTERRUPTED_SECONDS + _INTERRUPTED_SHARE * worked)

    def _is_late(self) -> bool:
        if not self._reason and self._now() >= self._ends_at:
            self._end(time_is_up(self._limits), _LATE_SECONDS + _LATE_SHARE * self._limits.tree_seconds)
        return bool(self._reason)

    def _end(self, reason: str, seconds: float) -> None:
        self._spent_at = self._cpu() + seconds
        self._reason = reason


def _seconds(number: float) -> str:
    return f"{number:g} {plural_noun(number, 'second')}"
