"""`Transport`: how the document of a sitemap was fetched. It holds plain facts; `usp check` judges them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from usp.objects.wording import described, plural, seconds
from usp.origins import requested_url

__all__ = ["Transport", "utc_time"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, repr=False)
class Transport:
    """How a document was fetched, or how the last attempt failed. What is unknown is None."""

    requested_url: str
    """The URL as the sitemap above declares it."""
    url: str
    """The URL that responded, after redirects."""
    status: int | None = None
    """The HTTP status. A file has none."""
    content_type: str | None = None
    """The Content-Type header."""
    content_encoding: str | None = None
    """The Content-Encoding header."""
    size: int = 0
    """The number of bytes transferred, before inflating."""
    seconds: float | None = None
    """The time from the start of the request to the end of the response."""
    fetched_at: datetime | None = None
    """When the document was fetched, in UTC. For a file, when it was last written."""
    last_modified: datetime | None = None
    """The Last-Modified header."""
    is_whole: bool = True
    """Whether the whole document was read. If not, the connection broke or a limit was reached; usp then uses the part
    that arrived."""
    etag: str | None = None
    """The ETag header, as the server writes it. A header that is long, or not ASCII, counts as none."""
    is_limited: bool = False
    """Whether a limit cut the document."""
    cut_reason: str = ""
    """Which limit did. Empty if the document is larger than `limits.max_sitemap_bytes`, before or after inflating."""
    robots_tag: str | None = None
    """The X-Robots-Tag header. A header that is long counts as none."""
    link: str | None = None
    """The Link header. A header that is long counts as none."""

    @property
    def is_redirected(self) -> bool:
        """Whether the request was redirected to another URL."""
        return requested_url(self.requested_url) != requested_url(self.url)

    def __repr__(self) -> str:
        return described(
            self,
            self.requested_url,
            f"redirected to {self.url}" if self.is_redirected else "",
            "" if self.status is None else f"status {self.status}",
            plural(self.size, "byte"),
            "" if self.seconds is None else f"in {seconds(self.seconds)}",
            "" if self.is_whole else "cut short",
        )

    def declared_as(self, url: str) -> Transport:
        """Return a copy for another place in the tree that declares the same document by another URL."""
        return self if url == self.requested_url else replace(self, requested_url=url)


def utc_time(timestamp: float) -> datetime | None:
    """Return a timestamp of a file system in UTC, or None if it is outside the years 1 to 9999."""
    try:
        return _EPOCH + timedelta(seconds=timestamp)
    except OverflowError:
        return None
