"""What a crawl does to keep its event loop responsive: settings of the process, which it restores."""

from __future__ import annotations

import gc
import sys

import pytest

from usp.crawl.responsive import release_memory, responsive_threads


def test_settings_of_the_process_are_restored() -> None:
    """Threads take turns more often during a crawl, and the collector skips what was there before; then as before."""
    before = sys.getswitchinterval()
    with responsive_threads():
        assert sys.getswitchinterval() < 0.001
        assert gc.get_freeze_count() > 1_000
        with pytest.raises(LookupError), responsive_threads():  # another crawl in the same process
            raise LookupError
        assert sys.getswitchinterval() < 0.001
        assert gc.get_freeze_count() > 1_000
    assert sys.getswitchinterval() == before
    assert gc.get_freeze_count() < 1_000


def test_what_the_caller_has_frozen_stays_so() -> None:
    """A process that has called `gc.freeze` itself keeps what it froze."""
    gc.freeze()
    try:
        with responsive_threads():
            pass
        assert gc.get_freeze_count() > 1_000
    finally:
        gc.unfreeze()


def test_memory_is_given_back() -> None:
    """It can be called at any time, on any system."""
    assert release_memory() is None  # type: ignore[func-returns-value]  # that it does not raise is what is tested
