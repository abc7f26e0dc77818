"""The two orders in which the sitemaps of a walk can be gone through while it goes on.

`OrderedArrivals` gives them in the order of the tree, up to the first that has not arrived. `Arrivals` gives them as
they arrive, but holds back a known path until it is certain that no sitemap before it leads to the same URL: then the
known path is not part of the tree. In the end both have given the nodes of the tree, and no others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Protocol

from usp.objects.sitemap import InvalidSitemap
from usp.walk.nodes import Node

__all__ = ["Arrivals", "OrderedArrivals", "RootVerdicts"]


class RootVerdicts(Protocol):
    """A walk that decides which of its roots are part of the tree."""

    roots: list[Node]

    def verdict(self, root: Node) -> bool | None:
        """Return whether a root is part of the tree; None while that is not known."""


class OrderedArrivals:
    """The places of a tree in its order: nodes, and the invalid sitemaps that stand for what is not fetched."""

    def __init__(self, walk: RootVerdicts) -> None:
        self._walk = walk
        self._ahead: list[tuple[int, Node | InvalidSitemap]] = [(0, root) for root in reversed(walk.roots)]

    def advance(self) -> Iterator[tuple[int, Node | InvalidSitemap]]:
        """Give the next places, each with its level in the tree, up to the first that has not arrived."""
        while self._ahead:
            level, place = self._ahead[-1]
            if isinstance(place, Node):
                if place.reading is None or (is_part := level > 0 or self._walk.verdict(place)) is None:
                    return
                self._ahead.pop()
                if not is_part:
                    continue
                self._ahead.extend((level + 1, child) for child in reversed(place.children))
            else:
                self._ahead.pop()
            yield level, place


class Arrivals:
    """The nodes in the order in which they come in, those of a root after those of the roots before it."""

    def __init__(self, walk: RootVerdicts) -> None:
        self._walk = walk
        self._placed: deque[Node] = deque()
        self._waiting: dict[Node, list[Node]] = {}  # roots whose verdict is not known -> what came in of them
        self._judged = 0  # roots whose verdict is known, from the first on

    def place(self, node: Node) -> None:
        """A node came in."""
        self._placed.append(node)

    def advance(self) -> Iterator[Node]:
        """The nodes that came in since the last time."""
        while self._placed:
            node = self._placed.popleft()
            root = node.root()
            is_part = self._walk.verdict(root)
            if is_part is None or root in self._waiting:
                self._waiting.setdefault(root, []).append(node)
            elif is_part:
                yield node
        while self._judged < len(self._walk.roots):
            root = self._walk.roots[self._judged]
            if (is_part := self._walk.verdict(root)) is None:
                return
            self._judged += 1
            yield from self._waiting.pop(root, []) if is_part else self._waiting.pop(root, [])[:0]
