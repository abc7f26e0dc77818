"""The two orders in which the sitemaps of a walk can be gone through while it goes on.

`Front` is the order of the tree, as far as there is no gap. `Arrivals` is that in which they come, except that a known
path waits until it is sure that nothing before it leads there too: then it is no part of the tree. Both give, in the
end, just the nodes that stand in the tree.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Protocol

from usp.walk.nodes import Node

__all__ = ["Arrivals", "Front"]


class Verdicts(Protocol):
    """A walk, as far as it matters here."""

    roots: list[Node]

    def verdict(self, root: Node) -> bool | None:
        """Whether a root stands in the tree; None while that is not known."""


class Front:
    """The nodes in the order of the tree."""

    def __init__(self, walk: Verdicts) -> None:
        self._walk = walk
        self._ahead = walk.roots[::-1]

    def advance(self) -> Iterator[Node]:
        """The next nodes, up to the first that is not in yet."""
        while self._ahead:
            node = self._ahead[-1]
            is_part = self._walk.verdict(node) if node.parent is None else node.reading is not None or None
            if is_part is None:
                return
            self._ahead.pop()
            if is_part:
                self._ahead.extend(reversed(node.nodes_below()))
                yield node


class Arrivals:
    """The nodes in the order in which they come in, those of a root after those of the roots before it."""

    def __init__(self, walk: Verdicts) -> None:
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
