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
- Sitemaps and pages are counted in the order of the tree; see `cutting`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from usp.documents import Document, Failure
from usp.fetch_parse.fetcher import SitemapFetcher, named
from usp.fetch_parse.parsed import ParsedSitemap
from usp.limits import Limits
from usp.objects.problem import shortened
from usp.objects.sitemap import AbstractSitemap, InvalidSitemap
from usp.origins import requested_url
from usp.walk.cutting import Cutting, sitemaps_reached
from usp.walk.nodes import Node
from usp.walk.order import Arrivals

__all__ = ["Walk"]

_FEW_NODES = 20

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
        self._readings: dict[str, ParsedSitemap] = {}
        self._waiting: dict[str, list[Node]] = {}  # URLs on their way -> the places that wait for them
        self._nodes = 0
        self._led_to: set[str] = set()  # every URL that was declared or redirected to
        self._arrivals: Arrivals | None = None
        self._marks: list[tuple[Node, str]] = []  # nodes of which children were left out, and why
        self._cutting = Cutting(self, self.limits)
        self._is_past = self._is_marked = False  # while the tree is built: whether the last node that counts is passed

    def next(self) -> SitemapFetcher | None:
        """A fetcher to be fetched now; None if there is none before something on its way is received."""
        while self._to_visit or self._release():
            node = self._to_visit.pop()
            key = requested_url(node.fetcher.url)
            if not self._is_wanted(node):
                self._place(node, ParsedSitemap.invalid(node.fetcher.url, "It was found already."))
                self._count()
            elif (reading := self._readings.get(key)) is not None:
                self._place(node, reading)
                self._count()
            elif key in self._waiting:
                self._waiting[key].append(node)
            else:
                self._waiting[key] = [node]
                return node.fetcher
        return None

    def receive(self, fetcher: SitemapFetcher, answer: Document | Failure | ParsedSitemap) -> None:
        """Take in what came back for a fetcher, read already or not. What comes after a stop is too late."""
        key = requested_url(fetcher.url)
        if key not in self._waiting:
            return
        reading = answer if isinstance(answer, ParsedSitemap) else fetcher.receive(answer)
        self._readings[key] = reading
        self._readings.setdefault(requested_url(reading.url), reading)  # where a redirect led to is not fetched again
        self._led_to.add(requested_url(reading.url))
        self._led_to.update(requested_url(child.url) for child in reading.children)
        for node in self._waiting.pop(key):
            self._place(node, reading)
        self._count()

    def reading_of(self, url: str) -> ParsedSitemap | None:
        """What was had for a URL already."""
        return self._readings.get(requested_url(url))

    def is_waiting_for(self, url: str) -> bool:
        """Whether a URL was given out and is on its way."""
        return requested_url(url) in self._waiting

    def stop(self, reason: str) -> None:
        """Leave out all that is still to be fetched, or on its way."""
        self.is_stopped = True
        left = [*self._to_visit, *self._held(), *(node for nodes in self._waiting.values() for node in nodes)]
        self._to_visit.clear()
        self._waiting.clear()
        if left:
            self.cuts[reason] = None
        for node in left:
            self._place(node, ParsedSitemap.invalid(node.fetcher.url, f"Not fetched: {reason}."))
        self._cutting.count()  # sitemaps that had arrived behind those left out count now

    def kept_reading(self, node: Node) -> ParsedSitemap:
        """Return the reading of a node, without the pages past `limits.max_pages`."""
        assert node.reading is not None
        if self._cutting.is_last(node) and self._cutting.cuts_pages_of(node.reading):
            return self._cutting.kept_of(node.reading)
        return node.reading

    def is_last(self, node: Node) -> bool:
        """Return whether everything behind a node in the tree is past a limit."""
        return self._cutting.is_last(node)

    def arrivals(self) -> Arrivals:
        """The nodes in the order in which they come in from now on."""
        self._arrivals = Arrivals(self)
        return self._arrivals

    def verdict(self, root: Node) -> bool | None:
        """Whether a root stands in the tree; None while that is not known."""
        return None if root.reading is None else True

    def sitemaps(self) -> list[AbstractSitemap]:
        """The roots as sitemaps, once the walk is done."""
        self._is_past = self._is_marked = False
        return list(self._built(self.roots))

    def _is_wanted(self, node: Node) -> bool:
        """Whether a node is to be visited at all."""
        return True

    def _release(self) -> bool:
        """Whether there are more nodes to visit that were held back until now."""
        return False

    def _held(self) -> list[Node]:
        """Take the nodes that are still held back."""
        return []

    def _place(self, node: Node, reading: ParsedSitemap) -> None:
        """Put a reading into a place: its children are to be visited, or the node is complete."""
        fetcher = node.fetcher
        if fetcher.redirected_to_parent(reading):
            reason = (
                f"Recursion detected when {shortened(fetcher.url)} redirected to {shortened(reading.url)}"
                f" with parent URLs {named(fetcher.parent_urls)}."
            )
            reading = ParsedSitemap.invalid(fetcher.url, reason, transport=reading.transport)
        node.reading = reading
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

    def _children_of(self, node: Node, reading: ParsedSitemap) -> Iterator[Node | InvalidSitemap]:
        """The places below a node. Where there are far too many, one invalid sitemap is for all that are left out.

        No more than may stand in the tree are made below one node; nor twice as many in all, wherever they stand.
        """
        fetcher, most = node.fetcher, self.limits.max_sitemaps
        if reading.children and fetcher.recursion_level >= fetcher.max_depth:
            self._marks.append((node, f"sitemaps are nested deeper than {fetcher.max_depth} (limits.max_depth)"))
        left = min(most - fetcher.recursion_level - 1, 2 * most + _FEW_NODES - self._nodes)
        for child in fetcher.children(reading) if left > 0 else reading.children[:1]:
            if left <= 0:
                self._marks.append((node, sitemaps_reached(most)))
                yield _all_refused(child.url, sitemaps_reached(most))
                return
            left -= 1
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
                [sub for sub in subs if sub is not None], completed.fetcher.last_modified, completed.fetcher.url
            )
            completed = completed.parent
            if completed is not None:
                completed.missing -= 1

    def _count(self) -> None:
        """Stop where the front of the tree has as many sitemaps or pages as there may be."""
        if self._cutting.count():
            self.stop(self._cutting.reason)

    def _built(self, nodes: Iterable[Node | InvalidSitemap]) -> Iterator[AbstractSitemap]:
        """The sitemaps of nodes: as they were completed, but for what is behind the last one that counts.

        An interrupt may have left nodes that are not complete.
        """
        cutting = self._cutting
        for node in nodes:
            if self._is_past and cutting.is_marked_once:
                if not self._is_marked:
                    self._is_marked = True
                    self.cuts[cutting.reason] = None
                    yield _all_refused(_url_of(node), cutting.reason)
                return
            if isinstance(node, InvalidSitemap):
                yield node
            elif node.reading is None:
                yield _refused(node.fetcher, "it was interrupted")
            elif self._is_past:
                self.cuts[cutting.reason] = None
                yield _refused(node.fetcher, cutting.reason)
            elif node.sitemap is not None and not cutting.is_reached:
                yield node.sitemap
            else:
                yield self._rebuilt(node, node.reading)

    def _rebuilt(self, node: Node, reading: ParsedSitemap) -> AbstractSitemap:
        """The sitemap of a node, of which not everything may count."""
        if self._cutting.is_last(node):
            self._is_past = True
            if self._cutting.cuts_pages_of(reading):
                self.cuts[self._cutting.reason] = None
                reading = self.kept_reading(node)
        return reading.sitemap(list(self._built(node.children)), node.fetcher.last_modified, node.fetcher.url)


def _url_of(place: Node | InvalidSitemap) -> str:
    return place.fetcher.url if isinstance(place, Node) else place.url


def _all_refused(url: str, why: str) -> InvalidSitemap:
    return InvalidSitemap(url, f"Not fetched, nor what follows it: {why}.")


def _refused(fetcher: SitemapFetcher, why: str) -> InvalidSitemap:
    return InvalidSitemap(fetcher.url, f"Not fetched: {why}.", last_modified=fetcher.last_modified)
