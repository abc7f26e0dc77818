"""Nodes: the places in a tree, while it is walked."""

from __future__ import annotations

from collections.abc import Iterator

from usp.fetch_parse.fetcher import SitemapFetcher
from usp.fetch_parse.parsed import ParsedSitemap
from usp.objects.sitemap import AbstractSitemap, InvalidSitemap
from usp.origins import requested_url

__all__ = ["Node"]


class Node:
    """A place in the tree where a sitemap was declared."""

    __slots__ = ("children", "fetcher", "missing", "parent", "reading", "sitemap")

    def __init__(self, fetcher: SitemapFetcher, parent: Node | None) -> None:
        self.fetcher = fetcher
        self.parent = parent
        self.reading: ParsedSitemap | None = None
        self.children: list[Node | InvalidSitemap] = []
        self.missing = 0  # children that are not in yet
        self.sitemap: AbstractSitemap | None = None  # once all below it is in

    def root(self) -> Node:
        """The root that this node is below, or is."""
        node = self
        while node.parent is not None:
            node = node.parent
        return node

    def nodes_below(self) -> list[Node]:
        """The children that are places of their own."""
        return [child for child in self.children if isinstance(child, Node)]

    def urls(self) -> Iterator[str]:
        """Every URL that this node and all below it led to, as requested, before and after redirects."""
        nodes = [self]
        seen: set[int] = set()  # a reading may stand in many places
        while nodes:
            node = nodes.pop()
            yield requested_url(node.fetcher.url)
            if node.reading is not None and id(node.reading) not in seen:
                seen.add(id(node.reading))
                yield requested_url(node.reading.url)
                yield from (requested_url(child.url) for child in node.reading.children)
            nodes.extend(node.nodes_below())
