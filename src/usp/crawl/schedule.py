"""When the next run of a watched crawl starts. Nothing here reads a clock or a file.

Time is divided into slots, `every` long, from the start of the first run of the folder. A run belongs to the slot that
its start is nearest to. So the schedule follows from the runs in the manifest alone, and a restart changes nothing. A
run starts in its slot, later by a part of `jitter`, which depends on the folder and the slot only.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import floor
from typing import Final

from usp.crawl.folder import Run
from usp.exceptions import InvalidArgumentError

__all__ = ["Schedule"]

_LEAST: Final = timedelta(seconds=1)
_MOST: Final = timedelta(days=366)
_USUAL_JITTER: Final = timedelta(minutes=10)  # at most, unless another one is given


@dataclass(frozen=True, slots=True)
class Schedule:
    """A run in each interval.

    :param every: the interval.
    :param jitter: how much later than its slot a run may start, at most half of the interval; by default, a tenth of it
        and at most ten minutes.
    """

    every: timedelta
    jitter: timedelta | None = None

    def __post_init__(self) -> None:
        if not _LEAST <= self.every <= _MOST:
            raise InvalidArgumentError(f"every must be from one second to 366 days, not {self.every}")
        if self.jitter is not None and not timedelta(0) <= self.jitter <= self.every / 2:
            raise InvalidArgumentError(f"jitter must be from 0 to half of every ({self.every / 2}), not {self.jitter}")

    def next_start(self, now: datetime, runs: Sequence[Run], failed_at: datetime | None = None) -> datetime:
        """Return when the next run starts: now, or later.

        - The first run, and one that was interrupted, start at once.
        - A slot in which nobody was there to start a run is made up for at once, and only one of them.
        - Slots that begin while a run goes on, or until one has failed, are skipped.

        :param runs: those of the manifest, oldest first.
        :param failed_at: when the last attempt failed, if it did.
        """
        if failed_at is None and (not runs or runs[-1].ended is None):
            return now
        first = runs[0].started if runs else failed_at
        assert first is not None
        last = runs[-1] if runs else Run(0, first)
        if last.started > now + self.every:
            return now  # the clock was wrong then, or is wrong now
        busy_until = max(moment for moment in (last.started, last.ended, failed_at) if moment is not None)
        after_last = floor((last.started - first) / self.every + 0.5) + 1
        slot = max(after_last, floor((min(busy_until, now) - first) / self.every) + 1)
        return max(now, first + slot * self.every + self._delay(first, slot))

    def _delay(self, first: datetime, slot: int) -> timedelta:
        most = min(self.every / 10, _USUAL_JITTER) if self.jitter is None else self.jitter
        return most * random.Random(f"{first.isoformat()} {slot}").random()  # noqa: S311 -- not a secret
