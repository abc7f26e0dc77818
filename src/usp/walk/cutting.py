"""Where a tree is cut: at its limits on sitemaps and pages, which are counted in the order of the tree.

So a site is cut at the same place each time, whatever comes in first; what came in from behind it is dropped.
"""

from __future__ import annotations

from usp.fetch_parse.parsed import ParsedSitemap
from usp.limits import Limits
from usp.objects.problem import ProblemLog
from usp.walk.nodes import Node
from usp.walk.order import OrderedArrivals, RootVerdicts

__all__ = ["Cutting", "pages_reached", "sitemaps_reached"]


def pages_reached(most: int) -> str:
    """Why there are no more pages."""
    return f"the tree has {most:,} page{'s' * (most != 1)} (limits.max_pages)"


def sitemaps_reached(most: int) -> str:
    """Why there are no more sitemaps."""
    return f"the tree has {most:,} sitemap{'s' * (most != 1)} already (limits.max_sitemaps)"


class Cutting:
    """Counts the nodes at the front of a tree, and their pages, up to the last one that counts."""

    def __init__(self, walk: RootVerdicts, limits: Limits) -> None:
        self._places = OrderedArrivals(walk)
        self._limits = limits
        self._sitemaps = 0
        self._pages = 0
        self._last: Node | None = None
        self._kept_pages: int | None = None  # of the last node; None for all of them
        self.reason = ""
        #: Whether one invalid sitemap stands for all that is left out.
        self.is_marked_once = False

    @property
    def is_reached(self) -> bool:
        """Whether there is a last node."""
        return self._last is not None

    def count(self) -> bool:
        """Go on counting; gives whether a limit was reached just now."""
        most_pages, most_sitemaps = self._limits.max_pages, self._limits.max_sitemaps
        if self.is_reached:
            return False
        for _, node in self._places.advance():
            if not isinstance(node, Node):
                continue
            assert node.reading is not None
            self._sitemaps += 1
            if most_pages is not None:
                listed = len(node.reading.pages)
                self._pages += listed
                if self._pages >= most_pages:
                    self.reason = pages_reached(most_pages)
                    self._kept_pages = listed - (self._pages - most_pages)
            if not self.reason and self._sitemaps >= most_sitemaps:
                self.reason = sitemaps_reached(most_sitemaps)
                self.is_marked_once = True
            if self.reason:
                self._last = node
                return True
        return False

    def is_last(self, node: Node) -> bool:
        """Whether nothing behind a node counts."""
        return node is self._last

    def cuts_pages_of(self, reading: ParsedSitemap) -> bool:
        """Whether the last node has pages that do not count."""
        return self._kept_pages is not None and self._kept_pages < len(reading.pages)

    def kept_of(self, reading: ParsedSitemap) -> ParsedSitemap:
        """The reading of the last node, with the pages that count, and a problem that says so."""
        assert self._kept_pages is not None
        log = ProblemLog(reading.url)
        log.add("C901", text=self.reason)
        return reading.first(self._kept_pages, log.problems())
