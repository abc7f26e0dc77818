"""Reports: what a caller's progress callback is told, and the counts in it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from usp.documents import Document
from usp.fetch_parse.fetcher import SitemapFetcher
from usp.fetch_parse.parsed import ParsedSitemap
from usp.objects.sitemap import InvalidSitemap
from usp.progress import Progress, ProgressCallbackType

__all__ = ["Reports"]


@dataclass(slots=True)
class _Counts:
    found: int = 0
    parsed: int = 0
    failed: int = 0
    pages: int = 0
    bytes: int = 0


class Reports:
    """Tells of each sitemap that it is found, and then that it is parsed or failed, once."""

    def __init__(self, progress: ProgressCallbackType | None) -> None:
        self._progress = progress
        self._counts = _Counts()
        self._open: dict[SitemapFetcher, None] = {}  # found, and neither parsed nor failed

    @property
    def bytes(self) -> int:
        """How many bytes were transferred."""
        return self._counts.bytes

    @property
    def counts_pages(self) -> bool:
        """Whether the number of pages is told."""
        return self._progress is not None

    def found(self, fetcher: SitemapFetcher) -> None:
        """It is to be fetched."""
        self._open[fetcher] = None
        self._counts.found += 1
        self._tell("found", fetcher.url)

    def transferred(self, document: Document) -> None:
        """A body is here."""
        self._counts.bytes += document.size

    def fetched(self, fetcher: SitemapFetcher, document: Document) -> None:
        """A sitemap's body is here."""
        self._tell("fetched", fetcher.url, size=document.size)

    def received(self, fetcher: SitemapFetcher, reading: ParsedSitemap) -> None:
        """It was read, or could not be had."""
        self._open.pop(fetcher, None)
        if reading.sitemap_class is InvalidSitemap:
            self._failed(fetcher.url, reading.reason)
            return
        listed = len(reading.pages) if self.counts_pages else 0
        self._counts.parsed += 1
        self._counts.pages += listed
        self._tell("parsed", fetcher.url, listed=listed)

    def left_out(self, sitemap: InvalidSitemap) -> None:
        """It was declared, and is not to be fetched."""
        self._counts.found += 1
        self._tell("found", sitemap.url)
        self._failed(sitemap.url, sitemap.reason)

    def stopped(self, reason: str) -> None:
        """All that is still open will not be had."""
        left, self._open = self._open, {}
        for fetcher in left:
            self._failed(fetcher.url, f"Not fetched: {reason}.")

    def _failed(self, url: str, reason: str) -> None:
        self._counts.failed += 1
        self._tell("failed", url, reason=reason)

    def _tell(
        self,
        kind: Literal["found", "fetched", "parsed", "failed"],
        url: str,
        *,
        size: int = 0,
        listed: int = 0,
        reason: str = "",
    ) -> None:
        if self._progress is not None:
            self._progress(Progress(kind, url, size, listed, reason, **asdict(self._counts)))
