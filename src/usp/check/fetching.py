"""Check the sitemaps of a stream, in a thread beside the one that fetches them."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Semaphore
from types import TracebackType
from typing import Self

from usp.check.subjects import TreePlace
from usp.objects.sitemap import AbstractSitemap
from usp.stream import SitemapStream
from usp.workers import Threads

__all__ = ["check_while_fetching"]

_AHEAD = 2  # inflated documents: the one that is checked, and the next


def check_while_fetching(stream: SitemapStream, check: Callable[[TreePlace], None]) -> AbstractSitemap:
    """Call a function for each sitemap of a stream, in the order of the tree. Return the tree.

    The function runs in one thread beside the caller's, unless the web client allows only one thread. Its errors are
    raised here.
    """
    checks = _InThisThread(check) if stream.is_single_threaded else _InAnotherThread(check)
    with checks, stream:  # the stream ends first, and cancels requests that a check waits for
        for sitemap in stream.with_pauses():
            if sitemap is not None:
                checks.start(TreePlace(sitemap, stream.ancestors))
            checks.raise_errors()
        checks.finish()
    return stream.tree


class _InThisThread:
    """Call a function for each sitemap at once."""

    def __init__(self, check: Callable[[TreePlace], None]) -> None:
        self._check = check

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def start(self, place: TreePlace) -> None:
        """Check a sitemap now."""
        self._check(place)

    def raise_errors(self) -> None:
        """Raise the error of a check, if there was one."""

    def finish(self) -> None:
        """Wait until all sitemaps are checked, and raise errors."""

    def close(self) -> None:
        """End all threads. Sitemaps that are still waiting are not checked."""


class _InAnotherThread(_InThisThread):
    """Call a function for each sitemap, in order, in one other thread.

    One thread, because the first sitemap that lists a URL decides what is reported. Another thread inflates the next
    document meanwhile.
    """

    def __init__(self, check: Callable[[TreePlace], None]) -> None:
        super().__init__(check)
        self._room = Semaphore(_AHEAD)
        self._is_closed = False
        self._inflating: Threads[tuple[TreePlace, Event], None] = Threads(self._inflate, 1)
        self._checking: Threads[tuple[TreePlace, Event], None] = Threads(self._check_inflated, 1)

    def start(self, place: TreePlace) -> None:
        """Queue a sitemap. Sitemaps are checked in the order in which they are queued."""
        task = place, Event()
        self._inflating.start(task)
        self._checking.start(task)

    def raise_errors(self) -> None:
        """Raise the error of a check, if there was one."""
        while self._checking.wait(0) is not None:
            pass

    def finish(self) -> None:
        """Wait until all sitemaps are checked, and raise errors."""
        self._checking.finish()

    def close(self) -> None:
        """End all threads. Sitemaps that are still waiting are not checked."""
        self._is_closed = True
        self._room.release()  # for a thread that waits for it
        self._checking.close()
        self._inflating.close()

    def _inflate(self, task: tuple[TreePlace, Event]) -> None:
        place, is_ready = task
        if not self._is_closed:
            self._room.acquire()
        try:
            if (parser := place.sitemap.parser) is not None:
                parser.read_ahead()
        finally:
            is_ready.set()

    def _check_inflated(self, task: tuple[TreePlace, Event]) -> None:
        place, is_ready = task
        is_ready.wait()
        try:
            self._check(place)
        finally:
            if (parser := place.sitemap.parser) is not None:
                parser.forget_ahead()  # a sitemap that was checked before is not read again
            self._room.release()
