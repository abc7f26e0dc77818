"""`Limits`: what a tree may cost. Pass it as `limits=` to the front doors.

When a limit is reached, usp keeps what it has fetched, marks the place, and adds problem C901 to the tree.

Numbers that several rooms need are defined here, and nowhere else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from usp.exceptions import InvalidArgumentError

__all__ = [
    "ARRIVING_BYTES",
    "DEFAULT_CONCURRENCY",
    "FEW_CHILDREN",
    "MAX_CONCURRENCY",
    "MAX_DEPTH",
    "MAX_PAGES",
    "MAX_SITEMAP_BYTES",
    "MEMORY_BYTES",
    "SMALL_MEMORY_BYTES",
    "Limits",
]

#: Requests at once to one host.
DEFAULT_CONCURRENCY = 8
MAX_CONCURRENCY = 1_000
#: Levels of nested sitemaps, as in ultimate-sitemap-parser.
MAX_DEPTH = 11
#: Sitemaps of one index that are kept, even if the tree may have fewer. They take little memory.
FEW_CHILDREN = 1_000
#: Pages that commands read. Few sites have more, and a table of that many takes some 10 GB.
MAX_PAGES = 100_000_000
#: Bytes of one sitemap, inflated: twice what the protocol allows, as in ultimate-sitemap-parser.
MAX_SITEMAP_BYTES = 100 * 1024 * 1024
#: Bytes of documents that a tree keeps in memory. The rest goes to a temporary file.
MEMORY_BYTES = 64 * 1024 * 1024
#: Bytes of documents that are arriving, in memory. The rest goes to the same file.
ARRIVING_BYTES = 8 * 1024 * 1024
#: `MEMORY_BYTES` for checks and exports: they read each document once more, and need memory for their tables.
SMALL_MEMORY_BYTES = 16 * 1024 * 1024

_DEEPEST = 200  # functions that go through a tree call themselves once for each level


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Limits:
    """Limits on the time, bytes, sitemaps and pages of one tree. Every limit but `max_pages` has a default.

        from usp import Limits, sitemap_tree_for_homepage

        limits = Limits(max_pages=1000, tree_seconds=60)
        tree = sitemap_tree_for_homepage("https://www.example.org/", limits=limits)

    :param max_depth: levels of nested sitemaps; robots.txt and the known paths are at level 0.
    :param max_sitemap_bytes: bytes of one sitemap, inflated (100 MiB). No more than that is transferred either.
    :param max_sitemaps: sitemaps in the tree, counted wherever one is declared.
    :param max_pages: pages, counted in tree order; None for no limit.
    :param max_total_bytes: bytes of all sitemaps together, as transferred, with failed tries (10 GiB).
    :param max_total_inflated_bytes: bytes of all sitemaps together, inflated (100 GiB).
    :param max_redirects: redirects to follow from one URL.
    :param request_seconds: time for one request, from the lookup of its host to the last byte of its response.
    :param document_seconds: CPU time for parsing one sitemap (5 minutes).
    :param tree_seconds: time for the whole tree, with parsing (6 hours).
    """

    max_depth: int = MAX_DEPTH
    max_sitemap_bytes: int = MAX_SITEMAP_BYTES
    max_sitemaps: int = 100_000
    max_pages: int | None = None
    max_total_bytes: int = 10 * 1024 * 1024 * 1024
    max_total_inflated_bytes: int = 100 * 1024 * 1024 * 1024
    max_redirects: int = 5
    request_seconds: float = 120.0
    document_seconds: float = 5 * 60.0
    tree_seconds: float = 6 * 60 * 60.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "max_pages" and value is None:
                continue
            kind, what = (int, "an integer") if field.name.startswith("max_") else ((int, float), "a number")
            least = 0 if field.name in ("max_depth", "max_redirects") else 1 if kind is int else 0.001
            most = _DEEPEST if field.name == "max_depth" else math.inf
            if (
                not isinstance(value, kind)
                or isinstance(value, bool)
                or not least <= value <= most
                or value == math.inf
            ):
                range_ = f"{least} or more" if most == math.inf else f"from {least} to {most}"
                raise InvalidArgumentError(f"limits: {field.name} must be {what}, {range_}, not {value!r}")

    def __repr__(self) -> str:
        values = ((field, getattr(self, field.name)) for field in fields(self))
        changed = (f"{field.name}={value!r}" for field, value in values if value != field.default)
        return f"Limits({', '.join(changed)})"
