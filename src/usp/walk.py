"""The walk: what to fetch next, and the tree that comes of it.

`Walk` does no I/O. A driver asks `next()` for a fetcher that may be fetched now, fetches its URL by whatever means,
hands what came back to `receive()`, and goes on until `next()` gives None and nothing is on its way any more. Any
number of fetchers may be on their way at once, and be received in any order: the tree is the same.

Rules that live here:
- No URL is given out twice. Places that declare the same URL wait for the one answer and share its reading.
- A node is made when its last child is in, so the tree is built from the bottom up.
- Loops end: by ancestors and depth (`SitemapFetcher` refuses them), by redirects to an ancestor, and by a cap on the
  number of nodes, for indexes that list each other in all combinations.

`HomepageWalk` walks a whole website: robots.txt, then the known paths, left out where the rest led to them already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from usp.documents import Document, Failure
from usp.fetch_parse.fetcher import SitemapFetcher, named
from usp.fetch_parse.reading import Reading
from usp.objects.problem import ProblemLog, shortened
from usp.objects.sitemap import AbstractSitemap, IndexWebsiteSitemap, InvalidSitemap

__all__ = ["KNOWN_PATHS", "HomepageWalk", "Walk"]

#: How many nodes a tree may have.
MAX_SITEMAPS = 100_000

#: Where sitemaps are often found, in the order in which they are tried.
KNOWN_PATHS = (
    "sitemap.xml",
    "sitemap.xml.gz",
    "sitemap_index.xml",
    "sitemap-index.xml",
    "sitemap_index.xml.gz",
    "sitemap-index.xml.gz",
    ".sitemap.xml",
    "sitemap",
    "admin/config/search/xmlsitemap",
    "sitemap/sitemap-index.xml",
    "sitemap_news.xml",
    "sitemap-news.xml",
    "sitemap_news.xml.gz",
    "sitemap-news.xml.gz",
)


class Node:
    """A place in the tree where a sitemap was declared."""

    __slots__ = ("children", "fetcher", "missing", "parent", "reading", "sitemap")

    def __init__(self, fetcher: SitemapFetcher, parent: Node | None) -> None:
        self.fetcher = fetcher
        self.parent = parent
        self.reading: Reading | None = None
        self.children: list[Node | InvalidSitemap] = []
        self.missing = 0  # children that are not in yet
        self.sitemap: AbstractSitemap | None = None


class Walk:
    """Walks the sitemaps of some roots, and all below them."""

    def __init__(self, roots: Iterable[SitemapFetcher], max_sitemaps: int = MAX_SITEMAPS) -> None:
        self._max_sitemaps = max_sitemaps
        self.roots = [Node(fetcher, None) for fetcher in roots]
        self._to_visit = self.roots[::-1]  # a stack: children before the siblings of their parent
        self._readings: dict[str, Reading] = {}
        self._waiting: dict[str, list[Node]] = {}  # URLs on their way -> the places that wait for them
        self._nodes = len(self.roots)
        self._led_to: set[str] = set()  # every URL that was declared or redirected to

    def next(self) -> SitemapFetcher | None:
        """A fetcher to be fetched now; None if there is none before something on its way is received."""
        while self._to_visit:
            node = self._to_visit.pop()
            url = node.fetcher.url
            if not self._is_wanted(node):
                self._place(node, Reading.invalid(url, "It was found already."))
            elif (reading := self._readings.get(url)) is not None:
                self._place(node, reading)
            elif url in self._waiting:
                self._waiting[url].append(node)
            else:
                self._waiting[url] = [node]
                return node.fetcher
        return None

    def receive(self, fetcher: SitemapFetcher, answer: Document | Failure) -> None:
        """Take in what came back for a fetcher."""
        reading = self._readings[fetcher.url] = fetcher.receive(answer)
        self._readings.setdefault(reading.url, reading)  # where a redirect led to need not be fetched again
        self._led_to.add(reading.url)
        self._led_to.update(child.url for child in reading.children)
        for node in self._waiting.pop(fetcher.url):
            self._place(node, reading)

    def sitemaps(self) -> Iterator[AbstractSitemap]:
        """The roots as sitemaps, once the walk is done."""
        for node in self.roots:
            assert node.sitemap is not None, "the walk is not done"
            yield node.sitemap

    def _is_wanted(self, node: Node) -> bool:
        """Whether a node is to be visited at all."""
        return True

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
        node.children = list(self._children_of(node, reading))
        below = [child for child in node.children if isinstance(child, Node)]
        node.missing = len(below)
        self._to_visit.extend(reversed(below))
        if not below:
            self._complete(node)

    def _children_of(self, node: Node, reading: Reading) -> Iterator[Node | InvalidSitemap]:
        """The places below a node, up to the cap; beyond it, one invalid sitemap for all that are left out."""
        is_full = self._nodes >= self._max_sitemaps
        for child in reading.children[:1] if is_full else node.fetcher.children(reading):
            if self._nodes >= self._max_sitemaps:
                reason = f"Not fetched, nor what follows it: the tree has {self._max_sitemaps:,} sitemaps already."
                yield InvalidSitemap(child.url, reason)
                return
            self._nodes += 1
            if isinstance(child, SitemapFetcher):
                yield Node(child, node)
            elif isinstance(child, InvalidSitemap):
                yield child

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


class HomepageWalk(Walk):
    """Walks a website: `robots` is the fetcher of its robots.txt, if that is wanted; `known`, of the known paths."""

    def __init__(self, homepage_url: str, robots: SitemapFetcher | None, known: Iterable[SitemapFetcher]) -> None:
        super().__init__([*([robots] if robots else []), *known])
        self._homepage_url = homepage_url
        self._robots = self.roots[0] if robots else None

    def _is_wanted(self, node: Node) -> bool:
        """A known path is not tried where a sitemap led to it already; `website` sees to those found out later."""
        return node.parent is not None or node is self._robots or node.fetcher.url not in self._led_to

    def website(self) -> IndexWebsiteSitemap:
        """The whole tree, once the walk is done."""
        found: set[str] = set()
        sitemaps = []
        problems = ProblemLog(self._homepage_url)
        for node in self.roots:
            assert node.sitemap is not None, "the walk is not done"
            assert node.reading is not None
            if isinstance(node.sitemap, InvalidSitemap):
                # 4xx means that there is none. https://www.rfc-editor.org/rfc/rfc9309#section-2.3.1.3
                if node is self._robots and not 400 <= (node.reading.status or 0) < 500:
                    problems.add("R704", text=node.sitemap.reason)
                continue
            if node is not self._robots and {node.fetcher.url, node.reading.url} & found:
                continue
            sitemaps.append(node.sitemap)
            found.update(_urls_below(node))
        return IndexWebsiteSitemap(self._homepage_url, sitemaps, problems=problems.problems())


def _urls_below(top: Node) -> Iterator[str]:
    """Every URL that a node led to, before and after redirects, followed or not."""
    nodes = [top]
    seen: set[int] = set()  # a reading may stand in many places
    while nodes:
        node = nodes.pop()
        yield node.fetcher.url
        if node.reading is not None and id(node.reading) not in seen:
            seen.add(id(node.reading))
            yield node.reading.url
            yield from (child.url for child in node.reading.children)
        nodes.extend(child for child in node.children if isinstance(child, Node))
