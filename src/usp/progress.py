"""`Progress`: the events that a `progress=` callback receives, one at a time, in one thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

__all__ = ["Progress", "ProgressCallbackType"]


@dataclass(frozen=True, slots=True)
class Progress:
    """One event, and the counts of the tree so far.

    `kind` is one of

    - "found": usp will fetch a sitemap,
    - "fetched": its document has arrived; `size` is its number of bytes, as transferred,
    - "parsed": it is a sitemap; `listed` is its number of pages,
    - "failed": it could not be fetched, or is not a sitemap; `reason` says why.

    Each sitemap is found once, and then parsed or failed once. A sitemap that a limit or a rule leaves out is found and
    failed without a request. Known paths have events, too, but those that are not sitemaps are not counted.
    """

    kind: Literal["found", "fetched", "parsed", "failed"]
    url: str
    size: int = 0
    listed: int = 0
    reason: str = ""
    #: Sitemaps found, parsed and failed.
    found: int = 0
    parsed: int = 0
    failed: int = 0
    #: Pages in the parsed sitemaps.
    pages: int = 0
    #: Bytes transferred.
    bytes: int = 0

    @property
    def done(self) -> int:
        """The number of sitemaps that are parsed or failed."""
        return self.parsed + self.failed


ProgressCallbackType = Callable[[Progress], object]
