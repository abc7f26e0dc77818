"""`Limits`: what a tree may cost. Passed as `limits=` to the front doors.

Where a limit is reached, all that was had is kept, the place is marked, and the tree says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from usp.exceptions import InvalidArgumentError

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a tree may cost. Every limit has a default, and none is without end but `max_pages`.

    >>> Limits(max_pages=1000, tree_seconds=60)
    """

    #: How deep sitemaps may be nested, robots.txt and the known paths being at depth 0.
    max_depth: int = 11
    #: Bytes of one sitemap, inflated; twice what the protocol allows. No more than that is transferred either.
    max_sitemap_bytes: int = 100 * 1024 * 1024
    #: Places in the tree where a sitemap is declared.
    max_sitemaps: int = 100_000
    #: Pages, counted in the order of the tree; None for all of them.
    max_pages: int | None = None
    #: Bytes of all sitemaps together, as they were transferred: what a tree may take of memory and disk.
    max_total_bytes: int = 10 * 1024 * 1024 * 1024
    #: Redirects that are followed from one URL.
    max_redirects: int = 5
    #: Seconds for one request in all, from looking up its host to the last byte of its answer, redirects included.
    request_seconds: float = 120.0
    #: Seconds for the tree in all.
    tree_seconds: float = 6 * 60 * 60.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "max_pages" and value is None:
                continue
            kind, what = (int, "a whole number") if field.name.startswith("max_") else ((int, float), "a number")
            least = 0 if field.name in ("max_depth", "max_redirects") else 1 if kind is int else 0.001
            if not isinstance(value, kind) or isinstance(value, bool) or not least <= value < math.inf:
                raise InvalidArgumentError(f"limits: {field.name} must be {what}, {least} or more, not {value!r}")
