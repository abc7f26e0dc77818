"""Give memory back to the system. What a large document needed stays with the allocators of C and of Arrow else."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

__all__ = ["release_memory"]


def release_memory() -> None:
    """Give free memory back to the system: Arrow's, and that of the C library where it can do that.

    It takes some milliseconds, so do this after many rows or a large document, and not after each small one.
    """
    if (arrow := sys.modules.get("pyarrow")) is not None:  # else nothing was read into columns
        arrow.default_memory_pool().release_unused()
    with suppress(OSError, TypeError, AttributeError):  # none, as on Windows and macOS
        ctypes.CDLL(None).malloc_trim(0)
