"""Workers perform tasks: in the caller's thread, one at a time, or in a few threads beside it."""

from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread, current_thread
from typing import Generic, TypeVar

__all__ = ["Inline", "Threads", "Workers"]

T = TypeVar("T")
R = TypeVar("R")

_SECONDS_TO_END = 1.0
_SECONDS_OF_WAIT = 0.25  # at once


class Inline(Generic[T, R]):
    """Perform tasks in the caller's thread, when they are started."""

    def __init__(self, perform: Callable[[T], R], sleep: Callable[[float], None] = time.sleep) -> None:
        self._perform = perform
        self._sleep = sleep
        self._done: deque[tuple[T, R]] = deque()

    def start(self, task: T) -> None:
        """Perform a task."""
        self._done.append((task, self._perform(task)))

    def wait(self, seconds: float) -> tuple[T, R] | None:
        """Return a task that is done, with its result; None, after that time, if there is none."""
        if self._done:
            return self._done.popleft()
        if seconds > 0:
            self._sleep(seconds)
        return None

    def finish(self) -> None:
        """Do nothing: all tasks are done."""

    def close(self) -> None:
        """Do nothing: no task is running."""


class Threads(Generic[T, R]):
    """Perform tasks in threads, which start when they are needed. With one thread, tasks keep their order.

    The threads are daemons: a call that cannot be interrupted, such as a DNS lookup, does not keep a program from
    ending.

    :param max_threads: how many threads to start at most.
    """

    def __init__(self, perform: Callable[[T], R], max_threads: float = math.inf) -> None:
        self._perform = perform
        self._max_threads = max_threads
        self._tasks: SimpleQueue[T | None] = SimpleQueue()
        self._done: SimpleQueue[tuple[T, R | None, BaseException | None]] = SimpleQueue()
        self._threads: list[Thread] = []
        self._running = 0
        self._process = os.getpid()

    def start(self, task: T) -> None:
        """Hand a task to a thread."""
        self._running += 1
        if len(self._threads) < min(self._running, self._max_threads):
            thread = Thread(target=self._work, name=f"usp-{len(self._threads)}", daemon=True)
            self._threads.append(thread)  # before it starts: an interrupt may come in between
            try:
                thread.start()
            except RuntimeError as error:  # the system allows no more threads: those that run do the work
                self._threads.remove(thread)
                if not self._threads:
                    raise RuntimeError("no thread can be started; use concurrency=1") from error
        self._tasks.put(task)

    def wait(self, seconds: float) -> tuple[T, R] | None:
        """Wait for a task. Return it with its result; None if none is done in time. Raise what the task raised."""
        if os.getpid() != self._process:
            raise RuntimeError("this tree was being fetched when the process was forked; fetch it anew in the child")
        if (done := self._next_done(seconds)) is None:
            return None
        task, result, error = done
        self._running -= 1
        if error is not None:
            raise error
        return task, result  # type: ignore[return-value]  # without an error there is a result

    def _next_done(self, seconds: float) -> tuple[T, R | None, BaseException | None] | None:
        """Wait in short steps: a Ctrl-C that comes just before a wait would only be noticed after it."""
        ends_at = time.monotonic() + seconds
        while True:
            try:
                return (
                    self._done.get(timeout=min(seconds, _SECONDS_OF_WAIT)) if seconds > 0 else self._done.get_nowait()
                )
            except Empty:
                seconds = ends_at - time.monotonic()
                if seconds <= 0:
                    return None

    def finish(self) -> None:
        """Wait until all tasks are done. Raise what a task raised."""
        while self._running:
            self.wait(_SECONDS_TO_END)

    def close(self) -> None:
        """Drop the tasks that have not started, and wait a little for those that are running."""
        with suppress(Empty):
            while True:
                self._tasks.get_nowait()
        self._tasks.put(None)
        ends_at = time.monotonic() + _SECONDS_TO_END
        for thread in self._threads:
            # A thread that is not alive never started. The garbage collector may call this in one of the threads.
            if thread.is_alive() and thread is not current_thread():
                thread.join(max(0.0, ends_at - time.monotonic()))

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                self._done.put((task, self._perform(task), None))
            except BaseException as error:  # the caller of wait() gets it, whatever it is
                self._done.put((task, None, error))
        self._tasks.put(None)  # for the next thread


Workers = Inline[T, R] | Threads[T, R]
