"""`Transport`: how a sitemap's document came. Plain facts, measured by whoever fetched it; nothing here judges them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from usp.origins import requested_url

__all__ = ["Transport", "utc_time"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Transport:
    """How a document came, or how the last try to have it went. What is not known is None.

    `requested_url` is the URL as it was declared, `url` the one that answered, after redirects. `status` is the HTTP
    status; a file has none. `content_type` and `content_encoding` are the headers of that name. `size` counts the bytes
    as they were transferred. `seconds` go from the start of the request to the end of its answer. `fetched_at` is when
    that was, in UTC; of a file, when it was last written. `last_modified` is the header of that name. `is_whole` is
    false where the transfer broke off, or was broken off at a limit: what came of the document is used.
    """

    requested_url: str
    url: str
    status: int | None = None
    content_type: str | None = None
    content_encoding: str | None = None
    size: int = 0
    seconds: float | None = None
    fetched_at: datetime | None = None
    last_modified: datetime | None = None
    is_whole: bool = True

    @property
    def is_redirected(self) -> bool:
        """Whether another URL answered than the one that was requested."""
        return requested_url(self.requested_url) != requested_url(self.url)

    def declared_as(self, url: str) -> Transport:
        """The same for another place that declares the document, by a URL of its own."""
        return self if url == self.requested_url else replace(self, requested_url=url)


def utc_time(timestamp: float) -> datetime | None:
    """The time that a file system states, None if no date can say it."""
    try:
        return _EPOCH + timedelta(seconds=timestamp)
    except OverflowError:
        return None
