"""What a schedule gives to a driver to do: requests, and documents to be read."""

from __future__ import annotations

from dataclasses import dataclass

from usp.documents import Document, Failure
from usp.drivers.hosts import Host, Reach
from usp.fetch_parse.fetcher import SitemapFetcher
from usp.fetch_parse.parsed import ParsedSitemap

__all__ = ["Fetch", "Job", "Parse", "Task"]


@dataclass(slots=True, eq=False)
class Job:
    """A URL to be requested for a fetcher; for none, if it is a robots.txt of which only the rules are wanted."""

    url: str
    fetcher: SitemapFetcher | None
    host: Host
    reach: Reach
    tries: int = 0
    partial: Document | None = None  # what came of it at best
    answer: Document | Failure | None = None  # in the end
    instead_of: Failure | None = None  # of http, where the same is tried over https

    @property
    def is_guess(self) -> bool:
        """Whether it may well be that there is nothing."""
        return self.fetcher is None or self.fetcher.quiet_404


@dataclass(frozen=True, slots=True, eq=False)
class Fetch:
    """To be done: a request."""

    job: Job


@dataclass(frozen=True, slots=True, eq=False)
class Parse:
    """To be done: a document is to be read."""

    fetcher: SitemapFetcher
    document: Document
    is_counted: bool = False  # whether the number of its pages will be asked for

    def reading(self) -> ParsedSitemap:
        """What the document holds."""
        reading = self.fetcher.receive(self.document)
        if self.is_counted:
            len(reading.pages)  # found out here, where nobody waits for it; it is kept
        return reading


Task = Fetch | Parse
