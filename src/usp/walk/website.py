"""`HomepageWalk` walks a whole website: robots.txt, then the known paths, unless the rest led to them already."""

from __future__ import annotations

from collections.abc import Iterable

from usp.fetch_parse.fetcher import SitemapFetcher
from usp.limits import Limits
from usp.objects.problem import ProblemLog
from usp.objects.sitemap import AbstractSitemap, IndexWebsiteSitemap, InvalidSitemap
from usp.origins import requested_url
from usp.walk.nodes import Node
from usp.walk.walk import Refusal, Walk

__all__ = ["KNOWN_PATHS", "HomepageWalk"]

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


class HomepageWalk(Walk):
    """Walks a website: `robots` is the fetcher of its robots.txt, if that is wanted; `known`, of the known paths.

    The known paths wait for robots.txt. After it they are tried beside what it leads to; but where a caller's callbacks
    leave sitemaps out, one at a time, when all before is in, so that none is requested that they left out.
    """

    def __init__(
        self,
        homepage_url: str,
        robots: SitemapFetcher | None,
        known: Iterable[SitemapFetcher],
        limits: Limits | None = None,
        refusal: Refusal = lambda url: None,
    ) -> None:
        super().__init__([*([robots] if robots else []), *known], limits, refusal)
        self._homepage_url = homepage_url
        self._robots = self.roots[0] if robots else None
        self._guesses = self.roots[1:] if robots else self.roots[:]
        self._to_visit = self.roots[:1] if robots else []
        self._is_filtered = any(
            node.fetcher.recurse_callback or node.fetcher.recurse_list_callback for node in self.roots
        )
        self._verdicts: dict[Node, bool] = {}
        self._found: set[str] = set()  # URLs that the roots before led to

    def verdict(self, root: Node) -> bool | None:
        """Whether a root stands in the tree: if it is a sitemap, and nothing before it led there."""
        while root not in self._verdicts:
            number = len(self._verdicts)
            judged = self.roots[number]
            before = self.roots[number - 1] if number else None
            if judged.reading is None or (before is not None and before.sitemap is None):
                return None
            if before is not None and self._verdicts[before]:
                self._found.update(before.urls())
            urls = {requested_url(judged.fetcher.url), requested_url(judged.reading.url)}
            is_found = judged is not self._robots and not urls.isdisjoint(self._found)
            self._verdicts[judged] = judged.reading.sitemap_class is not InvalidSitemap and not is_found
        return self._verdicts[root]

    def website(self) -> IndexWebsiteSitemap:
        """The whole tree, once the walk is done."""
        self._is_past = self._is_marked = False
        sitemaps: list[AbstractSitemap] = []
        for root in self.roots:
            if self._is_past and self._is_guess(root):  # whether it is a sitemap may not be known, and does not matter
                self.cuts[self._cutting.reason] = None
            elif self.verdict(root):
                sitemaps += (sitemap for sitemap in self._built([root]) if not isinstance(sitemap, InvalidSitemap))
        self.cuts.update((reason, None) for node, reason in self._marks if self.verdict(node.root()))
        problems = ProblemLog(self._homepage_url)
        if (robots := self._robots) is not None and robots.reading is not None:
            # 4xx means that there is none. https://www.rfc-editor.org/rfc/rfc9309#section-2.3.1.3
            if isinstance(robots.sitemap, InvalidSitemap) and not 400 <= (robots.reading.status or 0) < 500:
                problems.add("R704", text=robots.sitemap.reason)
        for reason in self.cuts:
            problems.add("C901", text=reason)
        return IndexWebsiteSitemap(self._homepage_url, sitemaps, problems=problems.problems())

    def _is_wanted(self, node: Node) -> bool:
        """A known path is not tried where a sitemap led to it already; `verdict` sees to those found out later."""
        return not self._is_guess(node) or requested_url(node.fetcher.url) not in self._led_to

    def _is_guess(self, node: Node) -> bool:
        return node.parent is None and node is not self._robots

    def _release(self) -> bool:
        is_too_early = self._waiting and (self._is_filtered or (self._robots is not None and not self._robots.reading))
        if is_too_early or not self._guesses:
            return False
        released = self._guesses[:1] if self._is_filtered else self._guesses
        self._guesses = self._guesses[len(released) :]
        self._to_visit.extend(reversed(released))
        return True

    def _held(self) -> list[Node]:
        held, self._guesses = self._guesses, []
        return held
