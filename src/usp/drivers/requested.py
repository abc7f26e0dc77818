"""`RequestedURLs`: which job has requested a URL, so that no other does.

A URL is requested by its own job, or by another one that is redirected there. Whoever comes second waits for the result
of the first. A client asks before it follows a redirect, in whichever thread it runs, so there is a lock. Everything
else of the schedule happens in one thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from usp.drivers.tasks import Fetch, Job

__all__ = ["RequestedURLs"]


class RequestedURLs:
    """The URLs of one tree that were requested, each with the job that did, and the jobs that wait for its result.

    :param is_closed: whether the host of a URL gets no request of a job that is redirected there, now or at all. Any
        thread calls it.
    """

    def __init__(self, is_closed: Callable[[str, Job], bool] = lambda url, job: False) -> None:
        self._is_closed = is_closed
        self._owners: dict[str, Job] = {}
        self._running: set[Fetch] = set()
        self._waiting: dict[str, list[Job]] = {}
        self._lock = threading.Lock()

    def start(self, task: Fetch) -> bool:
        """Start a request, unless another job has requested its URL. Return whether so.

        A job that follows redirects to such URLs may request its own, too: the other's result is not enough for it.
        """
        with self._lock:
            is_owner = self._owners.setdefault(task.job.key, task.job) is task.job
            if not is_owner and not task.job.follows_all:
                return False
            self._running.add(task)
            task.job.hops, task.job.at = 0, task.job.url
            if task.job.followed:
                task.job.followed = dict.fromkeys(task.job.followed, 0)
            return True

    def follow(self, task: Fetch, url: str) -> bool:
        """Return whether a request may go where a redirect leads. If so, its job has requested that URL, too."""
        with self._lock:
            if task not in self._running:
                return False  # it was abandoned, and nobody waits for it
            job = task.job
            is_owner = self._owners.get(url, job) is job
            if (is_owner or job.follows_all) and self._is_closed(url, job):
                return False
            self._owners.setdefault(url, job)
            if is_owner or job.follows_all:
                job.hops, job.at = job.hops + 1, url
            if is_owner:
                job.followed[url] = job.hops
            return is_owner or job.follows_all

    def end(self, task: Fetch) -> None:
        """End a request. It follows no more redirects."""
        with self._lock:
            self._running.discard(task)

    def owner(self, url: str) -> Job | None:
        """Return the job that has requested a URL."""
        return self._owners.get(url)

    def is_circle(self, job: Job) -> bool:
        """Return whether a job that waits, and those that it waits for, redirect to each other in a circle."""
        waiting: Job | None = job
        while waiting is not None and not waiting.has_ended and waiting.moved is not None:
            waiting = self.owner(waiting.moved.moved_to or "")
            if waiting is job:
                return True
        return False

    def wait(self, job: Job, url: str) -> None:
        """Let a job wait for the result of a URL that another has requested."""
        self._waiting.setdefault(url, []).append(job)

    def take_waiting(self, job: Job) -> list[Job]:
        """Remove and return the jobs that wait for the result of another, or of a URL that it was redirected to."""
        urls = (job.key, *job.followed)
        return [waiting for url in urls for waiting in self._waiting.pop(url, ())]

    def release(self, job: Job, *, only_left: bool = False) -> list[Job]:
        """Forget where a job was redirected to, so that others may request that. Return the jobs that waited for it.

        :param only_left: forget only where its last try was not redirected to, but one before was.
        """
        if not job.followed:
            return []
        freed = [url for url, hops in job.followed.items() if url != job.key and not (only_left and hops)]
        job.followed = {url: hops for url, hops in job.followed.items() if only_left and hops}
        with self._lock:
            for url in freed:
                del self._owners[url]
        return [waiting for url in freed for waiting in self._waiting.pop(url, ())]
