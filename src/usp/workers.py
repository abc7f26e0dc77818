"""What does the tasks of the blocking driver: the caller's own thread, one at a time, or a few threads beside it."""

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


class Inline(Generic[T, R]):
    """Does tasks in the caller's thread, when they are started."""

    def __init__(self, perform: Callable[[T], R], sleep: Callable[[float], None] = time.sleep) -> None:
        self._perform = perform
        self._sleep = sleep
        self._done: deque[tuple[T, R]] = deque()

    def start(self, task: T) -> None:
        """Do a task."""
        self._done.append((task, self._perform(task)))

    def wait(self, seconds: float) -> tuple[T, R] | None:
        """A task that is done, and its result; None if there is none for so long."""
        if self._done:
            return self._done.popleft()
        if seconds > 0:
            self._sleep(seconds)
        return None

    def finish(self) -> None:
        """All tasks are done already."""

    def close(self) -> None:
        """Nothing is going on."""


class Threads(Generic[T, R]):
    """Does tasks in threads, which are started as they are needed, `most` at most; in one, tasks keep their order.

    They are daemons: what cannot be interrupted, such as looking up a host, does not keep a program from ending.
    """

    def __init__(self, perform: Callable[[T], R], most: float = math.inf) -> None:
        self._perform = perform
        self._most = most
        self._tasks: SimpleQueue[T | None] = SimpleQueue()
        self._done: SimpleQueue[tuple[T, R | None, BaseException | None]] = SimpleQueue()
        self._threads: list[Thread] = []
        self._going_on = 0
        self._process = os.getpid()

    def start(self, task: T) -> None:
        """Hand a task to a thread."""
        self._going_on += 1
        if len(self._threads) < min(self._going_on, self._most):
            thread = Thread(target=self._work, name=f"usp-{len(self._threads)}", daemon=True)
            self._threads.append(thread)  # before it is started: an interrupt may come in between
            try:
                thread.start()
            except RuntimeError as error:  # no more threads can be had: those that there are do the work
                self._threads.remove(thread)
                if not self._threads:
                    raise RuntimeError("no thread can be started; use concurrency=1") from error
        self._tasks.put(task)

    def wait(self, seconds: float) -> tuple[T, R] | None:
        """A task that is done, and its result; None if there is none for so long. Raises what the task raised."""
        if os.getpid() != self._process:
            raise RuntimeError("this tree was being fetched when the process was forked; fetch it anew in the child")
        try:
            task, result, error = self._done.get(timeout=seconds) if seconds > 0 else self._done.get_nowait()
        except Empty:
            return None
        self._going_on -= 1
        if error is not None:
            raise error
        return task, result  # type: ignore[return-value]  # there is a result where there is no error

    def finish(self) -> None:
        """Wait until all tasks are done, whatever they give. Raises what a task raised."""
        while self._going_on:
            self.wait(_SECONDS_TO_END)

    def close(self) -> None:
        """Let the threads end, with no new task, and wait a little for those that are at work."""
        with suppress(Empty):
            while True:
                self._tasks.get_nowait()
        self._tasks.put(None)
        ends_at = time.monotonic() + _SECONDS_TO_END
        for thread in self._threads:
            # One that is not alive was never started; and the garbage collector may call this in one of them.
            if thread.is_alive() and thread is not current_thread():
                thread.join(max(0.0, ends_at - time.monotonic()))

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                self._done.put((task, self._perform(task), None))
            except BaseException as error:  # whatever it is, it is the caller's to see
                self._done.put((task, None, error))
        self._tasks.put(None)  # for the next one


Workers = Inline[T, R] | Threads[T, R]
