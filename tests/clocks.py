"""Clocks for tests that must not depend on a fast or idle machine.

A limit in seconds says that usp does not wait for something else. So seconds in which a process waited for a core do
not count against it: Linux counts them (https://docs.kernel.org/accounting/psi.html). Elsewhere all seconds count.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PRESSURE = Path("/proc/pressure/cpu")
_MOST_TIMES_LONGER = 10


def undisturbed() -> float:
    """Return the seconds of a clock that stands still while any process waits for a core."""
    try:
        waited = int(_PRESSURE.read_text("ascii").partition("total=")[2].split()[0]) / 1_000_000
    except (OSError, IndexError):
        waited = 0.0
    return time.monotonic() - waited


@contextmanager
def within(most: float, least: float = 0.0) -> Iterator[None]:
    """Fail if the block takes less than `least` seconds, or more than `most` undisturbed ones."""
    began, started = time.monotonic(), undisturbed()
    yield
    took, counted = time.monotonic() - began, undisturbed() - started
    assert took >= least, f"took {took:.2f} seconds"
    assert counted < most, f"took {counted:.2f} undisturbed seconds, {took:.2f} in all"


def settle(seconds: float) -> None:
    """Sleep until this many undisturbed seconds have passed, so that other threads and processes can do their work."""
    until, at_most = undisturbed() + seconds, time.monotonic() + seconds * _MOST_TIMES_LONGER
    while undisturbed() < until and time.monotonic() < at_most:
        time.sleep(seconds / 10)
