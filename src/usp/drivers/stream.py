"""The pages of a walk that goes on, for the streaming front doors."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from usp.objects.page import SitemapPage
from usp.walk import Walk
from usp.walk.cutting import pages_reached
from usp.walk.order import Front

__all__ = ["PageStream"]


class PageStream:
    """Pages as they come in, or in the order of the tree; `max_pages` of them at most."""

    def __init__(self, walk: Walk, is_ordered: bool, max_pages: int | None) -> None:
        self._walk = walk
        self._order = Front(walk) if is_ordered else walk.arrivals()
        self._max_pages = max_pages
        self._given = 0

    def fresh(self) -> Iterator[SitemapPage]:
        """The pages of all sitemaps that came in since the last time. The walk is stopped where there are enough."""
        for node in self._order.advance():
            assert node.reading is not None
            if self._max_pages is None:
                yield from node.reading.pages
                continue
            for page in islice(iter(node.reading.pages), self._max_pages - self._given):
                self._given += 1
                yield page
            if self._given >= self._max_pages:
                self._walk.stop(pages_reached(self._max_pages))  # as a walk in the order of the tree does by itself
                return
