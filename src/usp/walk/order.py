"""The sitemaps of a walk in the two orders in which a stream gives them: in tree order, or as they arrive."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from usp.objects.problem import Problems
from usp.objects.sitemap import AbstractSitemap, IndexWebsiteSitemap
from usp.walk.cut import pages_reached
from usp.walk.nodes import Node, OrderedArrivals
from usp.walk.walk import Walk

__all__ = ["ArrivalOrder", "TreeAlone", "TreeOrder", "tree_places"]


class TreeOrder:
    """The sitemaps of a walk in the order of the tree, each as soon as all before it have arrived."""

    def __init__(self, walk: Walk) -> None:
        self.ancestors: tuple[AbstractSitemap, ...] = ()
        self._walk = walk
        self._places = OrderedArrivals(walk)
        self._path: list[AbstractSitemap] = []  # the sitemap given last, and those above it
        self._given = 0
        self._is_cut = False

    def arrived(self) -> Iterator[AbstractSitemap]:
        """Give the next sitemaps, up to the first that has not arrived, or to the last within the limits."""
        if self._is_cut:
            return
        for level, place in self._places.advance():
            if isinstance(place, Node):
                self._is_cut = self._walk.is_last(place)
                sitemap = _sitemap_at(place, self._walk)
            else:
                sitemap = place
            del self._path[level:]
            self.ancestors = tuple(self._path)
            self._path.append(sitemap)
            self._given += 1
            yield sitemap
            if self._is_cut:
                return

    def left_out(self, tree: AbstractSitemap) -> Iterator[AbstractSitemap]:
        """Give the rest of the tree: what stands in it for the sitemaps past a limit."""
        for ancestors, sitemap in islice(tree_places(tree), self._given, None):
            self.ancestors = ancestors
            yield sitemap


class ArrivalOrder:
    """The sitemaps of a walk as they arrive, up to `max_pages` pages."""

    ancestors: tuple[AbstractSitemap, ...] = ()

    def __init__(self, walk: Walk, max_pages: int | None) -> None:
        self._walk = walk
        self._arrivals = walk.arrivals()
        self._max_pages = max_pages
        self._pages_given = 0

    def arrived(self) -> Iterator[AbstractSitemap]:
        """Give the sitemaps that have arrived since the last time. Stop the walk when there are enough pages."""
        for node in self._arrivals.advance():
            if self._max_pages is None:
                yield _sitemap_at(node, self._walk)
                continue
            assert node.parsed is not None
            left = self._max_pages - self._pages_given
            self._pages_given += len(node.parsed.pages)
            if self._pages_given < self._max_pages:
                yield _sitemap_at(node, self._walk)
            elif left > 0:
                self._walk.stop(pages_reached(self._max_pages))
                yield node.parsed.first(left, Problems()).unfetched_sitemap()

    def left_out(self, tree: AbstractSitemap) -> Iterator[AbstractSitemap]:
        """Give nothing: what was left out has not arrived."""
        return iter(())


class TreeAlone:
    """No sitemaps: only the tree is wanted."""

    ancestors: tuple[AbstractSitemap, ...] = ()

    def arrived(self) -> Iterator[AbstractSitemap]:
        """Give nothing."""
        return iter(())

    def left_out(self, tree: AbstractSitemap) -> Iterator[AbstractSitemap]:
        """Give nothing."""
        return iter(())


def _sitemap_at(node: Node, walk: Walk) -> AbstractSitemap:
    """Return the sitemap of a node that has arrived, with its children unfetched."""
    return walk.kept_part(node).unfetched_sitemap(node.fetcher.last_modified, node.fetcher.url)


def tree_places(tree: AbstractSitemap) -> Iterator[tuple[tuple[AbstractSitemap, ...], AbstractSitemap]]:
    """Give all sitemaps of a tree in tree order, each with its ancestors. A website is not a sitemap itself."""
    if isinstance(tree, IndexWebsiteSitemap):
        yield from _descend(tree, ())
    else:
        yield (), tree
        yield from _descend(tree, (tree,))


def _descend(
    sitemap: AbstractSitemap, ancestors: tuple[AbstractSitemap, ...]
) -> Iterator[tuple[tuple[AbstractSitemap, ...], AbstractSitemap]]:
    """Give all sitemaps below one, in the order of the tree, each with its ancestors."""
    for child in sitemap.sub_sitemaps:
        yield ancestors, child
        yield from _descend(child, (*ancestors, child))
