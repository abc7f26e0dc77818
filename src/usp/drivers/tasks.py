"""The tasks that a schedule gives to a driver, and the jobs behind them.

Fetch(job)             request job.url; results in a Document or a Failure
Parse(...).run()       parse a document; results in a ParsedSitemap
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from usp.documents import Document, Failure
from usp.drivers.budget import ReadingBudget
from usp.drivers.hosts import Host, OriginState
from usp.drivers.requested import RequestedURLs
from usp.fetch_parse.fetcher import SitemapFetcher
from usp.fetch_parse.parsed import ParsedSitemap
from usp.origins import requested_url

__all__ = ["MAX_WAIT", "Fetch", "Job", "Parse", "Task", "is_robots_txt"]

MAX_WAIT = 300.0  # seconds that a schedule waits at once
_MAX_DOUBLINGS = 30


@dataclass(slots=True, eq=False)
class Job:
    """A URL to request for a fetcher; for none, if only the rules of a robots.txt are needed."""

    url: str
    fetcher: SitemapFetcher | None
    host: Host
    origin: OriginState
    tries: int = 0
    started: float = 0.0  # the last try
    seconds: float = math.inf  # that the last try may take
    is_cut_short: bool = False  # whether a try had to end early, to leave time for others
    partial: Document | None = None  # what a try that broke off has brought
    result: Document | Failure | None = None  # of the last try
    has_ended: bool = False  # whether there is no further try
    shared: Document | Failure | None = None  # for others, once it has ended; None for a document that was parsed
    hops: int = 0  # how often the last try was redirected
    at: str = ""  # where that led: the URL that the last try requested last
    # URLs that it was redirected to, and after how many hops; 0 for those of an earlier try
    followed: dict[str, int] = field(default_factory=dict)
    # Where it redirects to, if it waits: for another job that has requested that URL, or for the host there
    moved: Failure | None = None
    turn_at: Host | None = None  # that host, if the job has waited there for its turn: its request counts there, too
    vain_waits: int = 0  # how often it has waited so, and the other one has failed
    follows_all: bool = False  # whether it follows redirects to such URLs, too
    http_failure: Failure | None = None  # of the same URL over http, if this one is https in its place

    key: str = field(init=False)  # the URL as it is requested

    def __post_init__(self) -> None:
        self.key = requested_url(self.url) if self.fetcher is None or self.fetcher.url != self.url else self.fetcher.key

    @property
    def is_guess(self) -> bool:
        """Whether a 404 is to be expected."""
        return self.fetcher is None or self.fetcher.quiet_404

    def backoff(self, retry_seconds: float) -> float:
        """Return how long to wait before the next try: twice as long each time, and a random share more or less."""
        doubled: float = retry_seconds * 2 ** min(self.tries - 1, _MAX_DOUBLINGS)
        return min(doubled * random.uniform(0.5, 1.5), MAX_WAIT)  # noqa: S311 -- not a secret

    def is_cut_short_by(self, failure: Failure, now: float) -> bool:
        """Return whether the last try ended only to leave time for others. It is tried again after them, once."""
        is_late = now - self.started >= self.seconds and failure.is_retryable
        return is_late and not self.is_cut_short and failure.status is None

    def shared_failure(self, failure: Failure, owner: Job) -> Failure:
        """Return the failure of another job as this one has it, which was redirected there, or from there."""
        message, transport = failure.message, failure.transport
        if self.moved is not None and not failure.is_answered and not owner.hops and owner.host is not self.host:
            message = f"redirects to {owner.host.name}: {message}"
        if transport is not None:
            transport = replace(transport, requested_url=self.url, url=self.url)
        return replace(failure, message=message, transport=transport)


@dataclass(frozen=True, slots=True, eq=False)
class Fetch:
    """A task: make a request, and end it after `job.seconds`. Ask `may_follow(url)` before following a redirect."""

    job: Job
    requested: RequestedURLs

    def may_follow(self, url: str) -> bool:
        """Return whether the request may go where a redirect leads. Any thread may ask."""
        return self.requested.follow(self, url)


@dataclass(frozen=True, slots=True, eq=False)
class Parse:
    """A task: parse a document."""

    fetcher: SitemapFetcher
    document: Document
    budget: ReadingBudget | None
    waiting: Callable[[], int]  # how many other documents wait
    counts_pages: bool = False

    def run(self) -> ParsedSitemap:
        """Parse the document, as far as the budget allows."""
        try:
            return self._parsed_within_budget()
        finally:
            self.document.release_text()

    def _parsed_within_budget(self) -> ParsedSitemap:
        if self.budget is None:
            return self._parsed()
        spend = self.budget.document(self.waiting)
        self.document.bound(lambda: spend)
        try:
            return self._parsed()
        finally:
            self.document.bound(self.budget.later)

    def _parsed(self) -> ParsedSitemap:
        parsed = self.fetcher.receive(self.document)
        if self.counts_pages:
            len(parsed.pages)  # counted here, where nothing waits for it; the pages remember it
        return parsed


Task = Fetch | Parse


def is_robots_txt(*urls: str) -> bool:
    """Return whether one of these URLs is that of a robots.txt."""
    return any(url.endswith("/robots.txt") and url.count("/") == 3 for url in map(requested_url, urls))
