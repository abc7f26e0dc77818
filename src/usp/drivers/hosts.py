"""Hosts: how many requests one may get at once, when the next may start, and how it is treated when it is in trouble.

No I/O and no clock here: times are handed in, as seconds of any clock that only goes forward.

- A host that answers 429 or 503 is left alone for as long as it asks, and then gets half as many requests at once;
  each answer that is not such a one lets a little more through again, up to where it was.
- Retries have a budget: each takes of it, each success gives back. Where everything fails, it is soon spent, and URLs
  are tried once. https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html
- A host that has never answered is tried less often, and after a few URLs not at all.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from usp.drivers.tasks import Job

__all__ = ["Host", "Reach"]

_RETRY_BUDGET = 100.0
_TRIES_AT_FIRST = 2
_MAX_UNREACHED = 3
_RECOVERY = 0.25  # of a request at once, for each good answer
_OVERLOADED = (429, 503)


class Host:
    """One host, and the jobs that wait for it."""

    def __init__(self, name: str, concurrency: int, spacing: float) -> None:
        self.name = name
        self.spacing = spacing
        self.running = 0
        self.queue: deque[Job] = deque()
        self.is_listed = False  # among those of the schedule that may have something to start
        self._most = float(concurrency)
        self._at_once = float(concurrency)
        self._budget = _RETRY_BUDGET
        self._started_at = -math.inf
        self._paused_until = -math.inf

    def is_full(self) -> bool:
        """Whether it has as many requests at once as it may."""
        return self.running >= max(1, int(self._at_once))

    def free_at(self) -> float:
        """When the next request may start."""
        return max(self._paused_until, self._started_at + self.spacing)

    def start(self, now: float) -> None:
        """A request starts."""
        self.running += 1
        self._started_at = now

    def end(self, status: int | None, pause: float, now: float) -> None:
        """A request ended, with this status or without an answer; `pause` is how long to leave the host alone."""
        self.running -= 1
        if status in _OVERLOADED:
            self._at_once = max(1.0, min(self._at_once, self.running + 1.0) / 2)
            self._paused_until = max(self._paused_until, now + pause)
        elif status is not None:
            self._at_once = min(self._most, self._at_once + _RECOVERY)

    def succeed(self) -> None:
        """A document was had."""
        self._budget = min(_RETRY_BUDGET, self._budget + 1)

    def take_retry(self) -> bool:
        """Whether there is something left for another try, which takes of it."""
        if self._budget < 1:
            return False
        self._budget -= 1
        return True


class Reach:
    """Whether an origin (a scheme, host and port) answers at all."""

    def __init__(self) -> None:
        self.has_answered = False
        self.is_doubtful = False  # whether a try has failed, and the next is to show whether it answers at all
        self.held: deque[Job] = deque()  # that wait for that
        self.last_words = ""
        self._unreached = 0  # URLs that were given up

    def tries(self, most: int) -> int:
        """How often a URL is tried."""
        if self.has_answered:
            return most
        return min(most, _TRIES_AT_FIRST if not self._unreached else 1)

    def doubt(self) -> None:
        """A URL is to be tried again."""
        self.is_doubtful = not self.has_answered

    def settle(self, has_answered: bool, is_unreached: bool) -> deque[Job]:
        """It has answered, or else a URL was given up, perhaps for lack of an answer; gives the jobs that waited."""
        self.has_answered |= has_answered
        self._unreached += is_unreached
        self.is_doubtful = False
        held, self.held = self.held, deque()
        return held

    @property
    def is_gone(self) -> bool:
        """Whether it is not worth trying."""
        return not self.has_answered and self._unreached >= _MAX_UNREACHED
