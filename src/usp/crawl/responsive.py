"""Keep the event loop of a crawl responsive while threads parse and write.

Python runs one thread at a time, and lets it run 5 ms before another may go on. The event loop gives way at every call
of the system, so that a busy thread delays it by 5 ms again and again. And the garbage collector stops all threads
while it looks at every object, those of all imported modules too.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["responsive_threads"]

_SWITCH_SECONDS = 0.000_5
_FROZEN_AT_START = 1_000  # CPython 3.12 itself freezes some 400 objects; who calls `gc.freeze` freezes thousands


@contextmanager
def responsive_threads() -> Iterator[None]:
    """Let threads take turns more often, and keep the garbage collector away from what was there before.

    Both settings are those of the process. They are restored in the end.
    """
    before = sys.getswitchinterval()
    is_ours = gc.get_freeze_count() < _FROZEN_AT_START  # else another crawl, or the caller, has done it
    sys.setswitchinterval(min(before, _SWITCH_SECONDS))
    if is_ours:
        gc.freeze()
    try:
        yield
    finally:
        if is_ours:
            gc.unfreeze()
        sys.setswitchinterval(before)
