"""Nodes: the places of a tree while it is walked, and the two orders in which a stream gives them.

`OrderedArrivals` gives them in tree order, up to the first that has not arrived. `Arrivals` gives them as they arrive,
but holds back a known path until it is certain that no sitemap before it leads to the same URL: then the known path is
not part of the tree. In the end both have given the nodes of the tree, and no others.

Nothing here refers to what is above it, except weakly: a walk that nobody needs any more is freed at once. Where many
sites are fetched, the garbage collector has less to walk through.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Set
from typing import Protocol
from weakref import ref

from usp.fetch_parse.fetcher import SitemapFetcher
from usp.fetch_parse.parsed import ParsedSitemap
from usp.objects.sitemap import AbstractSitemap, InvalidSitemap
from usp.origins import requested_url

__all__ = ["Arrivals", "Node", "OrderedArrivals", "RootVerdicts", "stack_of"]


class Node:
    """A place in the tree where a sitemap is declared."""

    __slots__ = ("__weakref__", "_parent", "children", "fetcher", "left_out", "missing", "parsed", "sitemap")

    def __init__(self, fetcher: SitemapFetcher, parent: Node | None) -> None:
        self.fetcher = fetcher
        self._parent = None if parent is None else ref(parent)
        self.parsed: ParsedSitemap | None = None  # once it has arrived
        self.children: list[Node | InvalidSitemap] = []
        self.left_out: Set[str] = frozenset()  # the URLs that the sitemap declares and the caller's options leave out
        self.missing = 0  # children that are not complete yet
        self.sitemap: AbstractSitemap | None = None  # once everything below is complete

    @property
    def parent(self) -> Node | None:
        """The node above; None for a root, and for a node whose tree is gone."""
        return None if self._parent is None else self._parent()

    @property
    def is_root(self) -> bool:
        """Whether nothing is above the node."""
        return self._parent is None

    def root(self) -> Node:
        """Return the root above this node; the node itself if it is one."""
        node = self
        while (parent := node.parent) is not None:
            node = parent
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

    def urls(self) -> set[str]:
        """Return every URL of this node and all below it: requested, answered after redirects, and declared."""
        urls: set[str] = set()  # as written: most are the same text again
        seen: set[int] = set()  # several nodes may share a parsed sitemap
        for node in self.with_all_below():
            urls.add(node.fetcher.url)
            if node.parsed is not None and id(node.parsed) not in seen:
                seen.add(id(node.parsed))
                urls.add(node.parsed.url)
                urls.update(child.url for child in node.parsed.children)
        return set(map(requested_url, urls))


def stack_of(nodes: list[Node]) -> dict[Node, None]:
    """Return nodes as the keys of a dict, the first one last: quick to pop, and to remove from anywhere."""
    return dict.fromkeys(reversed(nodes))


class RootVerdicts(Protocol):
    """A walk that decides which of its roots are part of the tree."""

    roots: list[Node]
    counts_pages_once: bool

    def verdict(self, root: Node) -> bool | None:
        """Return whether a root is part of the tree; None while that is not known."""


class OrderedArrivals:
    """The places of a tree in tree order: nodes, and the invalid sitemaps in place of children that are not fetched."""

    def __init__(self, walk: RootVerdicts) -> None:
        self._walk = ref(walk)
        self._ahead: list[tuple[int, Node | InvalidSitemap]] = []
        self._roots = 0  # that were ahead, from the first on; a walk may add others behind them

    @property
    def awaited(self) -> Node | None:
        """The first node in tree order that has not arrived; None if there is none."""
        place = self._ahead[-1][1] if self._has_next() else None
        return place if isinstance(place, Node) and place.parsed is None else None

    def advance(self) -> Iterator[tuple[int, Node | InvalidSitemap]]:
        """Give the next places, each with its level in the tree, up to the first that has not arrived."""
        walk = self._walk()
        while walk is not None and self._has_next():
            level, place = self._ahead[-1]
            if isinstance(place, Node):
                if place.parsed is None or (is_part := level > 0 or walk.verdict(place)) is None:
                    return
                self._ahead.pop()
                if not is_part:
                    continue
                self._ahead.extend((level + 1, child) for child in reversed(place.children))
            else:
                self._ahead.pop()
            yield level, place

    def _has_next(self) -> bool:
        """Return whether there is a place ahead: go on to the next root, if the one before has ended."""
        if not self._ahead and (walk := self._walk()) is not None and self._roots < len(walk.roots):
            self._ahead.append((0, walk.roots[self._roots]))
            self._roots += 1
        return bool(self._ahead)


class Arrivals:
    """The nodes in the order in which they arrive, those of a root after those of the roots before it."""

    def __init__(self, walk: RootVerdicts) -> None:
        self._walk = ref(walk)
        self._arrived: deque[Node] = deque()
        self._held: dict[Node, list[Node]] = {}  # roots without a verdict -> nodes that arrived below them
        self._judged = 0  # roots with a verdict, from the first on

    def add(self, node: Node) -> None:
        """Note that a node has arrived."""
        self._arrived.append(node)

    def advance(self) -> Iterator[Node]:
        """Give the nodes that have arrived since the last time."""
        walk = self._walk()
        assert walk is not None
        while self._arrived:
            node = self._arrived.popleft()
            root = node.root()
            is_part = walk.verdict(root)
            if is_part is None or root in self._held:
                self._held.setdefault(root, []).append(node)
            elif is_part:
                yield node
        while self._judged < len(walk.roots):
            root = walk.roots[self._judged]
            if (is_part := walk.verdict(root)) is None:
                return
            self._judged += 1
            held = self._held.pop(root, [])
            if is_part:
                yield from held
