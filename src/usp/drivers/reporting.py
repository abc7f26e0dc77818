"""`ProgressReporter` calls the caller's progress callback, and counts for it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from usp.documents import Document
from usp.fetch_parse.fetcher import SitemapFetcher
from usp.fetch_parse.parsed import ParsedSitemap
from usp.objects.sitemap import InvalidSitemap
from usp.progress import Progress, ProgressCallbackType
from usp.walk import Walk

__all__ = ["ProgressReporter"]


@dataclass(slots=True)
class _Counts:
    """The counts in each `Progress`."""

    found: int = 0
    parsed: int = 0
    failed: int = 0
    pages: int = 0
    bytes: int = 0


class ProgressReporter:
    """Report each sitemap once as found, and then once as parsed or failed."""

    def __init__(self, callback: ProgressCallbackType | None) -> None:
        self._callback = callback
        self._counts = _Counts()
        self._open: dict[SitemapFetcher, None] = {}  # found, and neither parsed nor failed

    @property
    def total_bytes(self) -> int:
        """The number of bytes transferred."""
        return self._counts.bytes

    @property
    def counts_pages(self) -> bool:
        """Whether reports need the number of pages of a sitemap."""
        return self._callback is not None

    def count_bytes(self, size: int) -> None:
        """Count bytes that were transferred, also for a request that failed."""
        self._counts.bytes += size

    def report_found(self, fetcher: SitemapFetcher) -> None:
        """Report a sitemap that will be fetched. A known path counts once it turns out to be a sitemap."""
        self._open[fetcher] = None
        self._counts.found += not fetcher.quiet_404
        self._report("found", fetcher.url)

    def report_fetched(self, fetcher: SitemapFetcher, document: Document) -> None:
        """Report a sitemap whose document has arrived."""
        self._report("fetched", fetcher.url, size=document.size)

    def report_result(self, fetcher: SitemapFetcher, parsed: ParsedSitemap) -> None:
        """Report a sitemap as parsed or failed."""
        self._open.pop(fetcher, None)
        if parsed.sitemap_class is InvalidSitemap:
            self._report_failed(fetcher.url, parsed.reason, is_guess=fetcher.quiet_404)
            return
        listed = len(parsed.pages) if self.counts_pages else 0
        self._counts.found += fetcher.quiet_404
        self._counts.parsed += 1
        self._counts.pages += listed
        self._report("parsed", fetcher.url, listed=listed)

    def report_left_out(self, walk: Walk) -> None:
        """Report the sitemaps that a walk has left out since the last call: as found, and as failed."""
        left_out, walk.left_out = walk.left_out, []
        for sitemap in left_out:
            self._counts.found += 1
            self._report("found", sitemap.url)
            self._report_failed(sitemap.url, sitemap.reason)

    def report_stopped(self, walk: Walk) -> None:
        """Report all sitemaps of a walk that are neither parsed nor failed as failed, whoever has stopped it."""
        reason = next(reversed(walk.cuts), "")
        left, self._open = self._open, {}
        for fetcher in left:
            self._report_failed(fetcher.url, f"Not fetched: {reason}.", is_guess=fetcher.quiet_404)

    def _report_failed(self, url: str, reason: str, *, is_guess: bool = False) -> None:
        self._counts.failed += not is_guess
        self._report("failed", url, reason=reason)

    def _report(
        self,
        kind: Literal["found", "fetched", "parsed", "failed"],
        url: str,
        *,
        size: int = 0,
        listed: int = 0,
        reason: str = "",
    ) -> None:
        if self._callback is not None:
            self._callback(Progress(kind, url, size, listed, reason, **asdict(self._counts)))
