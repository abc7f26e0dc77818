"""`Limits`: what a tree may cost. Passed as `limits=` to the front doors.

Where a limit is reached, all that was had is kept, the place is marked, and the tree says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from usp.exceptions import InvalidArgumentError

__all__ = ["Limits"]

_MAX_DEPTH = 200  # what goes through a tree calls itself for each level


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a tree may cost. Every limit has a default, and none is without end but `max_pages`.

    `max_depth`: how deep sitemaps may be nested, robots.txt and the known paths being at depth 0.
    `max_sitemap_bytes`: bytes of one sitemap, inflated (100 MiB). No more than that is transferred either.
    `max_sitemaps`: places in the tree where a sitemap is declared.
    `max_pages`: pages, counted in the order of the tree; None for all of them.
    `max_total_bytes`: bytes of all sitemaps together, as they were transferred (10 GiB).
    `max_redirects`: redirects that are followed from one URL.
    `request_seconds`: for one request in all, from looking up its host to the last byte of its answer.
    `tree_seconds`: for the tree in all.

    Example: `Limits(max_pages=1000, tree_seconds=60)`
    """

    max_depth: int = 11
    max_sitemap_bytes: int = 100 * 1024 * 1024
    max_sitemaps: int = 100_000
    max_pages: int | None = None
    max_total_bytes: int = 10 * 1024 * 1024 * 1024
    max_redirects: int = 5
    request_seconds: float = 120.0
    tree_seconds: float = 6 * 60 * 60.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "max_pages" and value is None:
                continue
            kind, what = (int, "a whole number") if field.name.startswith("max_") else ((int, float), "a number")
            least = 0 if field.name in ("max_depth", "max_redirects") else 1 if kind is int else 0.001
            most = _MAX_DEPTH if field.name == "max_depth" else math.inf
            if (
                not isinstance(value, kind)
                or isinstance(value, bool)
                or not least <= value <= most
                or value == math.inf
            ):
                wanted = f"{least} or more" if most == math.inf else f"from {least} to {most}"
                raise InvalidArgumentError(f"limits: {field.name} must be {what}, {wanted}, not {value!r}")
