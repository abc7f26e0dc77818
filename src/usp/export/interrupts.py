"""Calls of DuckDB that Ctrl-C ends."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import current_thread, main_thread
from typing import TypeVar

__all__ = ["interruptible"]

_Result = TypeVar("_Result")


def interruptible(call: Callable[[], _Result], interrupt: Callable[[], object]) -> _Result:
    """Call DuckDB, and interrupt it on Ctrl-C, which raises a KeyboardInterrupt.

    The call runs in another thread: in the main thread, Ctrl-C becomes one of several errors of DuckDB, or only arrives
    when the call has ended. No other thread gets Ctrl-C, so that calls from there are made directly.
    """
    if current_thread() is not main_thread():
        return call()
    with ThreadPoolExecutor(1, thread_name_prefix="usp-sql") as thread:
        running = thread.submit(call)
        try:
            return running.result()
        except KeyboardInterrupt:
            interrupt()
            raise
