"""Nodes: the places of a tree while it is walked, and the two orders in which a stream gives them.

`OrderedArrivals` gives them in tree order, up to the first that has not arrived. `Arrivals` gives them as they arrive,
but holds back a known path until it is certain that no sitemap before it leads to the same URL: then the known path is
not part of the tree. In the end both have given the nodes of the tree, and no others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Set
from typing import Protocol

from usp.fetch_parse.fetcher import SitemapFetcher
from usp.fetch_parse.parsed import ParsedSitemap
from usp.objects.sitemap import AbstractSitemap, InvalidSitemap
from usp.origins import requested_url

__all__ = ["Arrivals", "Node", "OrderedArrivals", "RootVerdicts"]


class Node:
    """A place in the tree where a sitemap is declared."""

    __slots__ = ("children", "fetcher", "left_out", "missing", "parent", "parsed", "sitemap")

    def __init__(self, fetcher: SitemapFetcher, parent: Node | None) -> None:
        self.fetcher = fetcher
        self.parent = parent
        self.parsed: ParsedSitemap | None = None  # once it has arrived
        self.children: list[Node | InvalidSitemap] = []
        self.left_out: Set[str] = frozenset()  # the URLs that the sitemap declares and the caller's options leave out
        self.missing = 0  # children that are not complete yet
        self.sitemap: AbstractSitemap | None = None  # once everything below is complete

    def root(self) -> Node:
        """Return the root above this node; the node itself if it is one."""
        node = self
        while node.parent is not None:
            node = node.parent
        return node

    def child_nodes(self) -> list[Node]:
        """Return the children that are fetched."""
        return [child for child in self.children if isinstance(child, Node)]

    def places(self) -> Iterator[Node | InvalidSitemap]:
        """Give this node and all places below it, in tree order."""
        ahead: list[Node | InvalidSitemap] = [self]
        while ahead:
            place = ahead.pop()
            yield place
            if isinstance(place, Node):
                ahead.extend(reversed(place.children))

    def with_all_below(self) -> Iterator[Node]:
        """Give this node and all below it, in tree order."""
        return (place for place in self.places() if isinstance(place, Node))

    def urls(self) -> Iterator[str]:
        """Give every URL of this node and all below it: requested, answered after redirects, and declared."""
        seen: set[int] = set()  # several nodes may share a parsed sitemap
        for node in self.with_all_below():
            yield requested_url(node.fetcher.url)
            if node.parsed is not None and id(node.parsed) not in seen:
                seen.add(id(node.parsed))
                yield requested_url(node.parsed.url)
                yield from (requested_url(child.url) for child in node.parsed.children)


class RootVerdicts(Protocol):
    """A walk that decides which of its roots are part of the tree."""

    roots: list[Node]
    counts_pages_once: bool

    def verdict(self, root: Node) -> bool | None:
        """Return whether a root is part of the tree; None while that is not known."""


class OrderedArrivals:
    """The places of a tree in tree order: nodes, and the invalid sitemaps in place of children that are not fetched."""

    def __init__(self, walk: RootVerdicts) -> None:
        self._walk = walk
        self._ahead: list[tuple[int, Node | InvalidSitemap]] = [(0, root) for root in reversed(walk.roots)]

    @property
    def awaited(self) -> Node | None:
        """The first node in tree order that has not arrived; None if there is none."""
        place = self._ahead[-1][1] if self._ahead else None
        return place if isinstance(place, Node) and place.parsed is None else None

    def advance(self) -> Iterator[tuple[int, Node | InvalidSitemap]]:
        """Give the next places, each with its level in the tree, up to the first that has not arrived."""
        while self._ahead:
            level, place = self._ahead[-1]
            if isinstance(place, Node):
                if place.parsed is None or (is_part := level > 0 or self._walk.verdict(place)) is None:
                    return
                self._ahead.pop()
                if not is_part:
                    continue
                self._ahead.extend((level + 1, child) for child in reversed(place.children))
            else:
                self._ahead.pop()
            yield level, place


class Arrivals:
    """The nodes in the order in which they arrive, those of a root after those of the roots before it."""

    def __init__(self, walk: RootVerdicts) -> None:
        self._walk = walk
        self._arrived: deque[Node] = deque()
        self._held: dict[Node, list[Node]] = {}  # roots without a verdict -> nodes that arrived below them
        self._judged = 0  # roots with a verdict, from the first on

    def add(self, node: Node) -> None:
        """Note that a node has arrived."""
        self._arrived.append(node)

    def advance(self) -> Iterator[Node]:
        """Give the nodes that have arrived since the last time."""
        while self._arrived:
            node = self._arrived.popleft()
            root = node.root()
            is_part = self._walk.verdict(root)
            if is_part is None or root in self._held:
                self._held.setdefault(root, []).append(node)
            elif is_part:
                yield node
        while self._judged < len(self._walk.roots):
            root = self._walk.roots[self._judged]
            if (is_part := self._walk.verdict(root)) is None:
                return
            self._judged += 1
            held = self._held.pop(root, [])
            if is_part:
                yield from held
