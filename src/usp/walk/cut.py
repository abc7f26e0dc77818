"""Where `limits.max_sitemaps` and `limits.max_pages` cut a tree: they count in tree order."""

from __future__ import annotations

from weakref import ref

from usp.fetch_parse.parsed import ParsedSitemap
from usp.limits import Limits
from usp.objects.problem import ProblemLog
from usp.objects.sitemap import InvalidSitemap
from usp.objects.wording import plural
from usp.walk.nodes import Node, OrderedArrivals, RootVerdicts

__all__ = ["SPARE_PLACES", "PlaceCount", "TreeCut", "pages_reached", "sitemaps_reached"]

#: Places beyond a multiple of the limit on sitemaps, for small limits.
SPARE_PLACES = 20


class PlaceCount:
    """Counts places of a tree in tree order, up to `limits.max_sitemaps`.

    Children that are not fetched, because they are too deep or refused, have places, too, and count like the others.
    """

    def __init__(self, max_sitemaps: int) -> None:
        self._max_sitemaps = max_sitemaps
        self._places = 0

    def add(self) -> None:
        """Count a place."""
        self._places += 1

    @property
    def is_full(self) -> bool:
        """Whether the tree may have no more."""
        return self._places >= self._max_sitemaps

    @property
    def is_past(self) -> bool:
        """Whether it has one place more than that: a sitemap that follows an unfetched one at the limit."""
        return self._places > self._max_sitemaps


class TreeCut:
    """Where `limits.max_sitemaps` or `limits.max_pages` cuts a tree.

    Both count in tree order, so a site is cut at the same place each time, whatever arrives first. What has arrived
    behind the cut is dropped.
    """

    def __init__(self, walk: RootVerdicts, limits: Limits) -> None:
        self.last: Node | None = None  # the last node within the limits, once one is reached
        self.reason = ""
        self.is_marked_once = False  # whether one invalid sitemap stands for everything behind the cut
        self._places = OrderedArrivals(walk)
        self._walk = ref(walk)
        self._counted: set[str] = set()  # URLs of sitemaps whose pages were counted, if each counts once
        self._limits = limits
        self._count = PlaceCount(limits.max_sitemaps)
        self._pages = 0
        self._kept_pages: int | None = None  # of the last node; None for all of them

    @property
    def awaited(self) -> Node | None:
        """The first node in tree order that has not arrived; None if there is none."""
        return self._places.awaited

    def count(self) -> bool:
        """Count the sitemaps that have arrived since the last time. Return whether a limit was reached just now."""
        if self.last is not None:
            return False
        max_pages, max_sitemaps = self._limits.max_pages, self._limits.max_sitemaps
        before: Node | None = None
        for _, node in self._places.advance():
            if not isinstance(node, Node):
                # Each run of arrivals starts with a node: invalid sitemaps arrive with the node before them.
                if self._count.is_full and before is not None:
                    self._end_at(before, sitemaps_reached(max_sitemaps))
                    return True
                self._count.add()
                continue
            before = node
            assert node.parsed is not None
            self._count.add()
            if max_pages is not None:
                listed = self._pages_to_count(node.parsed)
                self._pages += listed
                if self._pages >= max_pages:
                    self.reason = pages_reached(max_pages)
                    self._kept_pages = listed - (self._pages - max_pages)
            if not self.reason and self._count.is_full:
                self._end_at(node, sitemaps_reached(max_sitemaps))
            if self.reason:
                self.last = node
                return True
        return False

    def _end_at(self, node: Node, reason: str) -> None:
        """Cut the tree behind a node. One invalid sitemap stands for everything else."""
        self.last, self.reason, self.is_marked_once = node, reason, True

    def _pages_to_count(self, parsed: ParsedSitemap) -> int:
        """Return how many pages a sitemap adds to those of the tree."""
        walk = self._walk()
        if walk is not None and walk.counts_pages_once and parsed.sitemap_class is not InvalidSitemap:
            if parsed.url in self._counted:
                return 0
            self._counted.add(parsed.url)
        return len(parsed.pages)

    def kept_part(self, parsed: ParsedSitemap) -> ParsedSitemap:
        """Return the parsed sitemap of the last node with the pages within the limit, and a problem if some are not."""
        if self._kept_pages is None or self._kept_pages >= len(parsed.pages):
            return parsed
        log = ProblemLog(parsed.url)
        log.add("C901", text=self.reason)
        return parsed.first(self._kept_pages, log.problems())


def pages_reached(most: int) -> str:
    """Return the reason why there are no more pages."""
    return f"the tree has {plural(most, 'page')} (limits.max_pages)"


def sitemaps_reached(most: int) -> str:
    """Return the reason why there are no more sitemaps."""
    return f"the tree has {plural(most, 'sitemap')} already (limits.max_sitemaps)"
