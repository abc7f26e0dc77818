"""`HomepageWalk` walks a website: robots.txt, and the known paths that nothing else leads to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from usp.fetch_parse.fetcher import SitemapFetcher
from usp.limits import Limits
from usp.objects.outcome import Cause, RootAnswer
from usp.objects.problem import ProblemLog
from usp.objects.sitemap import AbstractSitemap, IndexWebsiteSitemap, InvalidSitemap
from usp.origins import requested_url
from usp.walk.nodes import Node, stack_of
from usp.walk.walk import Refusal, Walk

__all__ = ["KNOWN_PATHS", "HomepageWalk"]

#: Paths where sitemaps are often found, in tree order.
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


#: Known paths that many sites forbid, whether or not there is something: hidden files, folders, an administration.
_OFTEN_FORBIDDEN = frozenset({".sitemap.xml", "sitemap", "admin/config/search/xmlsitemap"})


class HomepageWalk(Walk):
    """Walk a website: its robots.txt and the known paths.

    Known paths wait for robots.txt. Then they are fetched alongside the sitemaps that it leads to. If callbacks of the
    caller leave sitemaps out, known paths are fetched one at a time after everything else, so that none is requested
    which a callback left out. With `known_last`, they are fetched only if robots.txt has led to no sitemap. So are, in
    any case, the URLs where the site had sitemaps before; see `remember`.

    :param robots: the fetcher of robots.txt; None to skip it.
    :param known: the fetchers of the known paths.
    :param named_urls: those of them that the caller names.
    :param known_last: whether to fetch known paths as a last resort; those that the caller names are always fetched.
    """

    def __init__(
        self,
        homepage_url: str,
        robots: SitemapFetcher | None,
        known: Iterable[SitemapFetcher],
        limits: Limits | None = None,
        refusal: Refusal = lambda url: None,
        named_urls: Collection[str] = (),
        *,
        known_last: bool = False,
    ) -> None:
        may_be_needless = known_last and robots is not None
        super().__init__([*([robots] if robots else []), *(() if may_be_needless else known)], limits, refusal)
        self._unused_paths = known if may_be_needless else None  # no nodes yet: most sites do not need them
        self._homepage_url = homepage_url
        self._named_urls = named_urls
        self._is_known_last = known_last
        self._robots = self.roots[0] if robots else None
        self._held_paths = self.roots[1:] if robots else self.roots[:]  # are requested later
        self._to_visit = stack_of(self.roots[:1] if robots else [])
        self._has_callbacks = any(
            fetcher.recurse_callback or fetcher.recurse_list_callback or fetcher.choice.depends_on_documents
            for fetcher in (node.fetcher for node in self.roots)
        )
        self._earlier: frozenset[str] = frozenset()
        self._unused_earlier: Iterable[str] = ()
        self._verdicts: dict[Node, bool] = {}
        self._urls_in_tree: set[str] = set()  # of all roots with a verdict but the last

    def remember(self, urls: Iterable[str]) -> None:
        """Note where robots.txt or known paths led to sitemaps before. Call it before the walk starts.

        If robots.txt leads to no sitemap now, it may be missing for a moment only. Then these URLs are requested.
        """
        if self._robots is not None:
            self._unused_earlier = tuple(urls)
            self._earlier = frozenset(map(requested_url, self._unused_earlier))

    def verdict(self, root: Node) -> bool | None:
        """Return whether a root is part of the tree: it is a sitemap, and no root before it leads to its URL."""
        while root not in self._verdicts:
            number = len(self._verdicts)
            judged = self.roots[number]
            before = self.roots[number - 1] if number else None
            if judged.parsed is None or (before is not None and before.sitemap is None):
                return None
            if before is not None and self._verdicts[before]:
                self._urls_in_tree.update(before.urls())
            urls = {requested_url(judged.fetcher.url), requested_url(judged.parsed.url)}
            is_in_tree = judged is not self._robots and not urls.isdisjoint(self._urls_in_tree)
            self._verdicts[judged] = judged.parsed.sitemap_class is not InvalidSitemap and not is_in_tree
        return self._verdicts[root]

    def website(self) -> IndexWebsiteSitemap:
        """Return the whole tree, once the walk is done."""
        self._start_building()
        sitemaps: list[AbstractSitemap] = []
        unmatched: list[Node] = []
        for root in self.roots:
            if self._is_past_cut and self._is_known_path(root):  # it may not have a verdict, and needs none
                self.cuts[self._cut.reason] = None
            elif self.verdict(root):
                sitemaps += (sitemap for sitemap in self._build([root]) if not isinstance(sitemap, InvalidSitemap))
            elif root in self._unmatched:
                unmatched.append(root)
        nodes = self._kept_nodes()
        self._note_limits(nodes)
        problems = ProblemLog(self._homepage_url)
        if (robots := self._robots) is not None and robots.parsed is not None:
            # 4xx means that there is no robots.txt. https://www.rfc-editor.org/rfc/rfc9309#section-2.3.1.3
            if isinstance(robots.sitemap, InvalidSitemap) and not 400 <= (robots.parsed.status or 0) < 500:
                problems.add("R704", text=robots.sitemap.reason)
        for reason in self.cuts:
            problems.add("C901", text=reason)
        website = IndexWebsiteSitemap(self._homepage_url, sitemaps, problems=problems.problems())
        website.facts = self._facts(nodes, tuple(self._root_answers()), unmatched)
        return website

    def tree(self) -> IndexWebsiteSitemap:
        """Return the whole tree, once the walk is done."""
        return self.website()

    def _root_answers(self) -> Iterator[RootAnswer]:
        """Give what robots.txt and each known path answered, unless the answer tells nothing."""
        for root in self.roots:
            url, parsed = root.fetcher.url, root.parsed
            cause = Cause.LIMIT if parsed is None else parsed.cause
            sitemap = None if parsed is None else parsed.sitemap([])
            reason = sitemap.short_reason if isinstance(sitemap, InvalidSitemap) else ""
            is_guess = self._is_guess(root)
            if not (is_guess and cause is Cause.BLOCKED and url.removeprefix(self._homepage_url) in _OFTEN_FORBIDDEN):
                yield RootAnswer(url, cause, reason, is_guess)

    def _is_guess(self, root: Node) -> bool:
        """Return whether nobody says that there is a sitemap at a root.

        Where there was one before, it is no guess. `/sitemap.xml` is where everybody looks. So it is none, either,
        unless robots.txt names other sitemaps or could not be fetched itself.
        """
        if root is self._robots or root.fetcher.url in self._named_urls or root.fetcher.key in self._earlier:
            return False
        robots = None if self._robots is None else self._robots.parsed
        is_nothing_named = robots is None or (not robots.children and robots.cause in (None, Cause.NOT_FOUND))
        return not (is_nothing_named and root.fetcher.url == self._homepage_url + KNOWN_PATHS[0])

    def _named_roots(self) -> list[Node]:
        return []

    def _why_unwanted(self, node: Node) -> str | None:
        """Return a reason for a known path that a sitemap has led to, or that the caller excludes.

        `verdict` drops those found out later.
        """
        if not self._is_known_path(node):
            return None
        if node.fetcher.choice.excludes(node.fetcher.url):
            return "its URL matches `exclude`"
        return "it was found already" if requested_url(node.fetcher.url) in self._known_urls else None

    def _is_known_path(self, node: Node) -> bool:
        return node.is_root and node is not self._robots

    def _release(self) -> bool:
        is_last = self._has_callbacks or self._is_known_last
        is_too_early = self._waiting and (is_last or (self._robots is not None and not self._robots.parsed))
        if is_too_early:
            return False
        self._use_paths()
        if not self._waiting:
            self._use_earlier()
        if not self._held_paths:
            return False
        released = self._held_paths[:1] if self._has_callbacks else self._held_paths
        self._held_paths = self._held_paths[len(released) :]
        self._to_visit |= stack_of(released)
        return True

    def _use_paths(self, *, all_of_them: bool = False) -> None:
        """Make roots of the known paths that were a last resort: of those that are needed, or of `all_of_them`."""
        unused, self._unused_paths = self._unused_paths, None
        if unused is None:
            return
        is_needed = all_of_them or not self._has_robots_sitemap()
        if is_needed or self._named_urls:
            for fetcher in unused:
                if is_needed or fetcher.url in self._named_urls:
                    self._held_paths.append(Node(fetcher, None))
                    self.roots.append(self._held_paths[-1])

    def _use_earlier(self) -> None:
        """Make roots of the URLs where there were sitemaps before, if robots.txt leads to none."""
        urls, self._unused_earlier = self._unused_earlier, ()
        if not urls or self._robots is None or self._has_robots_sitemap():
            return
        there = {root.fetcher.key for root in self.roots}
        for fetcher in self._robots.fetcher.chosen_roots(urls):
            if fetcher.key not in there and self._refusal(fetcher.url) is None:
                there.add(fetcher.key)
                self._held_paths.append(Node(fetcher, None))
                self.roots.append(self._held_paths[-1])

    def _has_robots_sitemap(self) -> bool:
        """Return whether robots.txt has led to a sitemap that could be read."""
        robots = None if self._robots is None else self._robots.sitemap
        return robots is not None and any(not isinstance(one, InvalidSitemap) for one in robots.all_sitemaps())

    def _take_held(self) -> list[Node]:
        self._use_paths(all_of_them=True)
        if self._robots is not None and self._robots.parsed is not None and not self._robots.parsed.children:
            self._use_earlier()
        held, self._held_paths = self._held_paths, []
        return held
