"""Python's garbage collector while a crawl runs.

A crawl has some hundred thousand objects alive: the trees and connections of all sites that are fetched. By default,
the collector looks at young ones after each 700 that were made, and at all of them now and then. For small sites, that
was a fifth of the processor time, and held up all requests for a tenth of a second at a time. Nearly all objects are
freed without the collector.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["fewer_collections"]

_NEW_OBJECTS = 20_000  # after which the collector looks at them, which takes some 50 ms


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Let the garbage collector run less often. A caller that has turned it off, or down further, is left alone."""
    before = gc.get_threshold()
    if not 0 < before[0] < _NEW_OBJECTS:
        yield
        return
    ours = (_NEW_OBJECTS, *before[1:])
    gc.set_threshold(*ours)
    try:
        yield
    finally:
        if gc.get_threshold() == ours:  # nobody else has changed it meanwhile
            gc.set_threshold(*before)
