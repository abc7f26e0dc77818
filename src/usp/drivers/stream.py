"""The pages of a walk that goes on, for the streaming front doors."""

from __future__ import annotations

from collections.abc import Iterator

from usp.objects.page import SitemapPage
from usp.walk import Walk
from usp.walk.order import Front

__all__ = ["PageStream"]


class PageStream:
    """Pages as they come in, or in the order of the tree; `max_pages` of them at most."""

    def __init__(self, walk: Walk, is_ordered: bool, max_pages: int | None) -> None:
        self._order = Front(walk) if is_ordered else walk.arrivals()
        self._left = max_pages

    def fresh(self) -> Iterator[SitemapPage]:
        """The pages of all sitemaps that came in since the last time."""
        for node in self._order.advance():
            assert node.reading is not None
            if self._left is None:
                yield from node.reading.pages
                continue
            for page in node.reading.pages:
                if self._left <= 0:
                    return
                self._left -= 1
                yield page

    @property
    def is_full(self) -> bool:
        """Whether no more pages are wanted."""
        return self._left is not None and self._left <= 0
