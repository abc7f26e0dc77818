"""`Walk`: what to fetch next, and the tree that comes of it.

A driver asks `next()` for a fetcher that may be fetched now, fetches its URL by whatever means, hands what came back to
`receive()`, and goes on until `next()` gives None and nothing is on its way any more. Any number of fetchers may be on
their way at once, and be received in any order: the tree is the same.

Rules that live here:
- No URL is given out twice. Places that declare the same URL wait for the one answer and share its reading.
- A node is made when its last child is in, so the tree is built from the bottom up.
- Loops end: by ancestors and depth (`SitemapFetcher` refuses them), by redirects to an ancestor, and by the limit on
  the number of nodes, for indexes that list each other in all combinations, or ever new URLs.
- A walk that is stopped keeps all that was had. What was still to be fetched is an invalid sitemap that says why.
- Pages are counted in the order of the tree, so that a limit on them cuts every walk of a site at the same page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from usp.documents import Document, Failure
from usp.fetch_parse.fetcher import SitemapFetcher, named
from usp.fetch_parse.reading import Reading
from usp.limits import Limits
from usp.objects.problem import ProblemLog, shortened
from usp.objects.sitemap import AbstractSitemap, InvalidSitemap
from usp.origins import requested_url
from usp.walk.nodes import Node
from usp.walk.order import Arrivals, Front

__all__ = ["Walk", "pages_reached"]

#: Why a URL may not be fetched; None if it may.
Refusal = Callable[[str], str | None]


class Walk:
    """Walks the sitemaps of some roots, and all below them."""

    def __init__(
        self,
        roots: Iterable[SitemapFetcher],
        limits: Limits | None = None,
        refusal: Refusal = lambda url: None,
    ) -> None:
        self.limits = limits or Limits()
        self.roots = [Node(fetcher, None) for fetcher in roots]
        self.cuts: dict[str, None] = {}  # why something was left out, in the order in which it happened
        self.is_stopped = False
        self.left_out: list[InvalidSitemap] = []  # declared and not to be fetched, for the driver to tell of
        self._refusal = refusal
        self._to_visit = self.roots[::-1]  # a stack: children before the siblings of their parent
        self._readings: dict[str, Reading] = {}
        self._waiting: dict[str, list[Node]] = {}  # URLs on their way -> the places that wait for them
        self._nodes = 0
        self._led_to: set[str] = set()  # every URL that was declared or redirected to
        self._arrivals: Arrivals | None = None
        self._counted = Front(self)
        self._pages = 0
        self._last: tuple[Node, int] | None = None  # where the limit on pages is reached, and how many of it count

    def next(self) -> SitemapFetcher | None:
        """A fetcher to be fetched now; None if there is none before something on its way is received."""
        while self._to_visit or self._release():
            node = self._to_visit.pop()
            key = requested_url(node.fetcher.url)
            if not self._is_wanted(node):
                self._place(node, Reading.invalid(node.fetcher.url, "It was found already."))
            elif (reading := self._readings.get(key)) is not None:
                self._place(node, reading)
                self._count_pages()
            elif key in self._waiting:
                self._waiting[key].append(node)
            else:
                self._waiting[key] = [node]
                return node.fetcher
        return None

    def receive(self, fetcher: SitemapFetcher, answer: Document | Failure | Reading) -> None:
        """Take in what came back for a fetcher, read already or not. What comes after a stop is too late."""
        key = requested_url(fetcher.url)
        if key not in self._waiting:
            return
        reading = answer if isinstance(answer, Reading) else fetcher.receive(answer)
        self._readings[key] = reading
        self._readings.setdefault(requested_url(reading.url), reading)  # where a redirect led to is not fetched again
        self._led_to.add(requested_url(reading.url))
        self._led_to.update(requested_url(child.url) for child in reading.children)
        for node in self._waiting.pop(key):
            self._place(node, reading)
        self._count_pages()

    def reading_of(self, url: str) -> Reading | None:
        """What was had for a URL already."""
        return self._readings.get(requested_url(url))

    def stop(self, reason: str) -> None:
        """Leave out all that is still to be fetched, or on its way."""
        self.is_stopped = True
        left = [*self._to_visit, *self._held(), *(node for nodes in self._waiting.values() for node in nodes)]
        self._to_visit.clear()
        self._waiting.clear()
        if left:
            self.cuts[reason] = None
        for node in left:
            self._place(node, Reading.invalid(node.fetcher.url, f"Not fetched: {reason}."))

    def arrivals(self) -> Arrivals:
        """The nodes in the order in which they come in from now on."""
        self._arrivals = Arrivals(self)
        return self._arrivals

    def verdict(self, root: Node) -> bool | None:
        """Whether a root stands in the tree; None while that is not known."""
        return None if root.reading is None else True

    def sitemaps(self) -> list[AbstractSitemap]:
        """The roots as sitemaps, once the walk is done."""
        return list(self._built(self.roots, []))

    def _is_wanted(self, node: Node) -> bool:
        """Whether a node is to be visited at all."""
        return True

    def _release(self) -> bool:
        """Whether there are more nodes to visit that were held back until now."""
        return False

    def _held(self) -> list[Node]:
        """Take the nodes that are still held back."""
        return []

    def _place(self, node: Node, reading: Reading) -> None:
        """Put a reading into a place: its children are to be visited, or the node is complete."""
        fetcher = node.fetcher
        if fetcher.redirected_to_parent(reading):
            reason = (
                f"Recursion detected when {shortened(fetcher.url)} redirected to {shortened(reading.url)}"
                f" with parent URLs {named(fetcher.parent_urls)}."
            )
            reading = Reading.invalid(fetcher.url, reason)
        node.reading = reading
        self._nodes += node.parent is None and reading.sitemap_class is not InvalidSitemap
        node.children = list(self._children_of(node, reading))
        self.left_out.extend(
            child
            for child in node.children
            if isinstance(child, InvalidSitemap) and requested_url(str(child.url)) not in self._readings  # as a loop is
        )
        below = node.nodes_below()
        node.missing = len(below)
        self._to_visit.extend(reversed(below))
        if self._arrivals is not None:
            self._arrivals.place(node)
        if not below:
            self._complete(node)

    def _children_of(self, node: Node, reading: Reading) -> Iterator[Node | InvalidSitemap]:
        """The places below a node, up to the limit; beyond it, one invalid sitemap for all that are left out."""
        most = self.limits.max_sitemaps
        if reading.children and node.fetcher.recursion_level >= node.fetcher.max_depth:
            self.cuts[f"sitemaps are nested deeper than {node.fetcher.max_depth} (limits.max_depth)"] = None
        for child in reading.children[:1] if self._nodes >= most else node.fetcher.children(reading):
            if self._nodes >= most:
                reason = f"the tree has {most:,} sitemap{'s' * (most != 1)} already (limits.max_sitemaps)"
                self.cuts[reason] = None
                yield InvalidSitemap(child.url, f"Not fetched, nor what follows it: {reason}.")
                return
            self._nodes += 1
            if isinstance(child, InvalidSitemap):
                yield child
            elif isinstance(child, SitemapFetcher):
                why = self._refusal(child.url)
                yield Node(child, node) if why is None else _refused(child, why)

    def _complete(self, node: Node) -> None:
        """Make the sitemap of a node whose children are all in, and of those above that waited for it only."""
        completed: Node | None = node
        while completed is not None and not completed.missing:
            assert completed.reading is not None
            subs = [child if isinstance(child, InvalidSitemap) else child.sitemap for child in completed.children]
            completed.sitemap = completed.reading.sitemap(
                [sub for sub in subs if sub is not None], completed.fetcher.last_modified
            )
            completed = completed.parent
            if completed is not None:
                completed.missing -= 1

    def _count_pages(self) -> None:
        """Stop where the nodes at the front of the tree list as many pages as there may be."""
        most = self.limits.max_pages
        if most is None or self._last is not None:
            return
        for node in self._counted.advance():
            assert node.reading is not None
            listed = len(node.reading.pages)
            self._pages += listed
            if self._pages >= most:
                self._last = node, listed - (self._pages - most)
                self.stop(pages_reached(most))
                return

    def _built(self, nodes: Iterable[Node | InvalidSitemap], past: list[str]) -> Iterator[AbstractSitemap]:
        """The sitemaps of nodes: as they were completed, but for what the limit on pages leaves out.

        `past` has the reason once the last page is passed. An interrupt may have left nodes that are not complete.
        """
        for node in nodes:
            if isinstance(node, InvalidSitemap):
                yield node
                continue
            if node.reading is None:
                yield _refused(node.fetcher, "it was interrupted")
            elif past:
                self.cuts[past[0]] = None
                yield _refused(node.fetcher, past[0])
            elif node.sitemap is not None and (self._last is None or isinstance(node.sitemap, InvalidSitemap)):
                yield node.sitemap
            else:
                reading = node.reading
                if self._last is not None and node is self._last[0]:
                    reading = self._cut(reading, self._last[1], past)
                yield reading.sitemap(list(self._built(node.children, past)), node.fetcher.last_modified)

    def _cut(self, reading: Reading, kept: int, past: list[str]) -> Reading:
        assert self.limits.max_pages is not None
        reason = pages_reached(self.limits.max_pages)
        past.append(reason)
        if kept == len(reading.pages):
            return reading
        self.cuts[reason] = None
        log = ProblemLog(reading.url)
        log.add("C901", text=reason)
        return reading.first(kept, log.problems())


def pages_reached(most: int) -> str:
    """Why there are no more pages."""
    return f"the tree has {most:,} page{'s' * (most != 1)} (limits.max_pages)"


def _refused(fetcher: SitemapFetcher, why: str) -> InvalidSitemap:
    return InvalidSitemap(fetcher.url, f"Not fetched: {why}.", last_modified=fetcher.last_modified)
