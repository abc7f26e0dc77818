"""`Progress`: what a caller's `progress=` callback is told. Plain values, from one place, in one thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

__all__ = ["Progress", "ProgressCallbackType"]


@dataclass(frozen=True, slots=True)
class Progress:
    """One thing that happened, and how far the tree is.

    `kind` is one of

    - "found": a sitemap is to be fetched,
    - "fetched": its body is here; `size` is how many bytes of it were transferred,
    - "parsed": it was read; `listed` is how many pages it lists,
    - "failed": it could not be had, or is no sitemap; `reason` says why.

    Each sitemap is found, and then parsed or failed, once; also one that is left out, for a limit or a rule, which
    fails without having been fetched. What was only guessed at, and is not there, is found and failed like all else.
    The counts are those of the whole tree so far.
    """

    kind: Literal["found", "fetched", "parsed", "failed"]
    url: str
    size: int = 0
    listed: int = 0
    reason: str = ""
    #: Sitemaps that were found, parsed and failed.
    found: int = 0
    parsed: int = 0
    failed: int = 0
    #: Pages in the sitemaps that were parsed.
    pages: int = 0
    #: Bytes that were transferred.
    bytes: int = 0

    @property
    def done(self) -> int:
        """Sitemaps that were parsed or failed."""
        return self.parsed + self.failed


ProgressCallbackType = Callable[[Progress], object]
