"""Keep the event loop of a crawl responsive while threads parse and write, and its memory small.

Python runs one thread at a time, and lets it run 5 ms before another may go on. The event loop gives way at every call
of the system, so that a busy thread delays it by 5 ms again and again. And the garbage collector stops all threads
while it looks at every object, those of all imported modules too.

What a large site needed stays with the allocators of the threads that worked for it, those of C and of Arrow, unless
they are told to give it back.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["release_memory", "responsive_threads"]

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


def release_memory() -> None:
    """Give free memory back to the system: Arrow's, and that of the C library where it can do that.

    It takes some milliseconds, so do this after a large document, and not after each small one.
    """
    if (arrow := sys.modules.get("pyarrow")) is not None:
        arrow.default_memory_pool().release_unused()
    with suppress(OSError, TypeError, AttributeError):  # none, as on Windows and macOS
        ctypes.CDLL(None).malloc_trim(0)
