"""`Walk`: which sitemap to fetch next, and the tree built of them.

A driver calls `next()` for a fetcher, fetches its URL, and hands the result to `receive()`. It goes on until `next()`
returns None and no request is running. It may run any number of requests at once and hand results in any order: the
tree is the same.

Rules that live here:
- No URL is given out twice. Nodes that declare the same URL wait for one response and share the parsed sitemap.
- A sitemap is built when its last child is complete, so the tree is built from the bottom up.
- Loops end: `SitemapFetcher` refuses ancestors and too great a depth, and the walk refuses redirects to an ancestor.
  For indexes that list each other in all combinations, or ever new URLs, the number of nodes has a limit.
- A walk that is stopped keeps what it has. What it has not fetched is an `InvalidSitemap` that says why.
- `limits.max_sitemaps` and `limits.max_pages` count in tree order; see `TreeCut`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from itertools import islice

from usp.documents import Document, Failure
from usp.fetch_parse.fetcher import SitemapFetcher, named
from usp.fetch_parse.parsed import ParsedSitemap
from usp.limits import Limits
from usp.objects.outcome import Cause, RootAnswer, TreeFacts
from usp.objects.problem import shortened
from usp.objects.sitemap import AbstractSitemap, IndexRobotsTxtSitemap, InvalidSitemap
from usp.origins import requested_url
from usp.walk.cut import SPARE_PLACES, PlaceCount, TreeCut, sitemaps_reached
from usp.walk.nodes import Arrivals, Node, stack_of
from usp.walk.unfetched import count_left_out, count_skipped, requested_urls

__all__ = ["Refusal", "Walk"]

#: Returns why a URL may not be fetched; None if it may.
Refusal = Callable[[str], str | None]


class Walk:
    """Walk the sitemaps of some roots, and all below them."""

    def __init__(
        self,
        roots: Iterable[SitemapFetcher],
        limits: Limits | None = None,
        refusal: Refusal = lambda url: None,
    ) -> None:
        self.limits = limits or Limits()
        self.roots = [Node(fetcher, None) for fetcher in roots]
        self.cuts: dict[str, None] = {}  # why sitemaps or pages were left out, in the order in which it happened
        self.is_stopped = self.is_late = False
        self.counts_pages_once = (
            False  # `limits.max_pages` counts a sitemap that several indexes list at one place only
        )
        self.left_out: list[InvalidSitemap] = []  # declared but not fetched; the schedule reports and clears them
        self._refusal = refusal
        self._to_visit = stack_of(self.roots)  # children come before the siblings of their parent
        self._parsed: dict[str, ParsedSitemap] = {}  # by requested URL
        self._waiting: dict[str, list[Node]] = {}  # URLs that are being fetched -> the nodes that wait for them
        self._given = 0  # fetchers given out
        self._node_count = 0
        self._many_nodes = self.limits.max_sitemaps + SPARE_PLACES  # with more of them, some may be dropped
        self._known_urls: set[str] = set()  # every URL that a sitemap declared or a redirect led to
        self._noted: set[int] = set()  # ids of the parsed sitemaps whose URLs are known; `_parsed` keeps them alive
        self._arrivals: Arrivals | None = None
        self._unmatched: set[Node] = set()  # sitemaps that were fetched, and do not match `include`
        self._limited: dict[Node, list[str]] = {}  # nodes with children past a limit, and which limit
        self._cut = TreeCut(self, self.limits)
        # While the tree is built:
        self._is_past_cut = self._is_cut_marked = False
        self._path_to_cut: set[Node] = set()  # the last node within the limits, and those above it

    @property
    def place_count(self) -> int:
        """The number of places in the tree, as far as it is known."""
        return self._node_count

    @property
    def has_callbacks(self) -> bool:
        """Whether functions of the caller decide which sitemaps are fetched."""
        fetchers = [node.fetcher for node in self.roots]
        return any(one.recurse_callback or one.recurse_list_callback or one.choice.callback for one in fetchers)

    def next(self) -> SitemapFetcher | None:
        """Return a fetcher to fetch now; None if there is none before the next `receive`."""
        while (node := self._next_node()) is not None:
            key = node.fetcher.key
            if (why := self._why_unwanted(node)) is not None:
                self._arrive(node, ParsedSitemap.invalid(node.fetcher.url, f"Not fetched: {why}.", Cause.LEFT_OUT))
                self._count()
            elif (parsed := self._parsed.get(key)) is not None:
                self._arrive(node, parsed)
                self._count()
            elif key in self._waiting:
                self._waiting[key].append(node)
            else:
                self._waiting[key] = [node]
                self._given += 1
                return node.fetcher
        return None

    def _next_node(self) -> Node | None:
        """Return the next node to visit.

        Nodes are visited before those in front of them have arrived, and may prove to be past `limits.max_sitemaps`. If
        as many were requested as the tree may have, the others are visited one by one, in tree order.
        """
        if not self._to_visit and not self._release():
            return None
        if self._given < self.limits.max_sitemaps + SPARE_PLACES + len(self.roots):
            return self._to_visit.popitem()[0]
        node = self._cut.awaited
        if node is not None and node in self._to_visit:
            del self._to_visit[node]
            return node
        return None if self._waiting else self._to_visit.popitem()[0]

    def receive(self, fetcher: SitemapFetcher, response: Document | Failure | ParsedSitemap) -> None:
        """Take the response for a fetcher, parsed or not. After a stop, it is ignored."""
        key = fetcher.key
        if key not in self._waiting:
            return
        parsed = response if isinstance(response, ParsedSitemap) else fetcher.receive(response)
        self._parsed[key] = parsed
        answered = key if parsed.url == fetcher.url else requested_url(parsed.url)
        self._parsed.setdefault(answered, parsed)  # the target of a redirect is not fetched again
        if id(parsed) not in self._noted:  # redirects may bring the same one many times
            self._noted.add(id(parsed))
            self._known_urls.add(answered)
            self._known_urls.update(requested_url(child.url) for child in parsed.children)
        for node in self._waiting.pop(key):
            self._arrive(node, parsed)
        self._count()

    def parsed_sitemap(self, url: str) -> ParsedSitemap | None:
        """Return the parsed sitemap of a URL, if it has arrived."""
        return self._parsed.get(requested_url(url))

    def is_waiting_for(self, url: str) -> bool:
        """Return whether a URL was given out and has not arrived."""
        return requested_url(url) in self._waiting

    def take_back(self, fetcher: SitemapFetcher) -> bool:
        """Take back a fetcher that was given out, if nothing needs it any more. Return whether so.

        Ask this just before the request: limits may have dropped the nodes that waited for it.
        """
        key = fetcher.key
        if self._waiting.get(key) == []:
            del self._waiting[key]
            self._given -= 1
        return key not in self._waiting

    def stop(self, reason: str, *, is_late: bool = False) -> None:
        """Leave out everything that has not arrived. `is_late` says whether that is because the time was up."""
        self.is_stopped = True
        self.is_late |= is_late
        left = [*self._to_visit, *self._take_held(), *(node for nodes in self._waiting.values() for node in nodes)]
        self._to_visit.clear()
        self._waiting.clear()
        if left:
            self.cuts[reason] = None
        for node in left:
            self._arrive(node, ParsedSitemap.invalid(node.fetcher.url, f"Not fetched: {reason}.", Cause.LIMIT))
        self._cut.count()  # sitemaps that had arrived behind those left out count now

    def kept_part(self, node: Node) -> ParsedSitemap:
        """Return the parsed sitemap of a node that has arrived, without the pages past `limits.max_pages`."""
        assert node.parsed is not None
        return self._cut.kept_part(node.parsed) if self.is_last(node) else node.parsed

    def is_last(self, node: Node) -> bool:
        """Return whether everything behind a node in tree order is past a limit."""
        return self._cut.last is node

    def arrivals(self) -> Arrivals:
        """Return the nodes that arrive from now on, in the order in which they arrive."""
        self._arrivals = Arrivals(self)
        return self._arrivals

    def remember(self, urls: Iterable[str]) -> None:
        """Note where there were sitemaps before. Only the walk of a website needs to know."""

    def verdict(self, root: Node) -> bool | None:
        """Return whether a root is part of the tree; None while that is not known."""
        return None if root.parsed is None else True

    def sitemaps(self) -> list[AbstractSitemap]:
        """Return the sitemaps of the roots, once the walk is done."""
        self._start_building()
        return list(self._build(self.roots))

    def tree(self) -> AbstractSitemap:
        """Return the sitemap of the first root with everything below it, once the walk is done."""
        tree = self.sitemaps()[0]
        nodes = self._kept_nodes()
        self._note_limits(nodes)
        tree.facts = self._facts(nodes)
        return tree

    def _note_limits(self, nodes: list[Node]) -> None:
        """Add the limits to the cuts that left out children of the nodes of the tree."""
        for node in nodes if self._limited else ():
            self.cuts.update(dict.fromkeys(self._limited.get(node, ())))

    def _facts(
        self, nodes: list[Node], roots: tuple[RootAnswer, ...] | None = None, left_out: Iterable[Node] = ()
    ) -> TreeFacts:
        """Return what the tree does not show, for its outcome. `left_out` are roots that are not part of it."""
        skipped = count_skipped(nodes) if self.cuts else 0
        return TreeFacts(roots, tuple(self.cuts), self.is_late, skipped, count_left_out(nodes, left_out))

    def _kept_nodes(self) -> list[Node]:
        """Return the nodes of the tree that have arrived, in tree order, up to the cut."""
        ahead = [root for root in reversed(self.roots) if self.verdict(root)]
        kept = []
        while ahead:
            node = ahead.pop()
            if node.parsed is None:
                continue  # after an interrupt
            kept.append(node)
            if self.is_last(node):
                break
            if node.children:
                ahead.extend(reversed(node.child_nodes()))
        return kept

    def _why_unwanted(self, node: Node) -> str | None:
        """Return why not to visit a node at all, or None."""
        return None

    def _release(self) -> bool:
        """Add nodes to visit that were held back until now. Return whether there were any."""
        return False

    def _take_held(self) -> list[Node]:
        """Remove and return the nodes that are still held back."""
        return []

    def _arrive(self, node: Node, parsed: ParsedSitemap) -> None:
        """Put a parsed sitemap at a node. Its children are visited next; without any, the node is complete."""
        fetcher = node.fetcher
        if fetcher.redirected_to_parent(parsed):
            reason = (
                f"Recursion detected when {shortened(fetcher.url)} redirected to {shortened(parsed.url)}"
                f" with parent URLs {named(fetcher.parent_urls)}."
            )
            parsed = ParsedSitemap.invalid(fetcher.url, reason, Cause.LOOP, transport=parsed.transport)
        if self._is_unmatched(node, parsed):
            reason = "Left out: neither its URL nor that of an index above it matches `include`."
            parsed = ParsedSitemap.invalid(parsed.url, reason, Cause.LEFT_OUT, transport=parsed.transport)
            self._unmatched.add(node)
        node.parsed = parsed
        if parsed.children:
            self._put_children(node, parsed)
        if self._arrivals is not None:
            self._arrivals.add(node)
        if not node.missing:
            self._complete(node)

    def _put_children(self, node: Node, parsed: ParsedSitemap) -> None:
        """Make the children of a node, and visit them next."""
        node.children = list(self._children_of(node, parsed))
        self.left_out.extend(
            child
            for child in node.children
            # The target of a loop has been fetched, and reported.
            if isinstance(child, InvalidSitemap) and requested_url(str(child.url)) not in self._parsed
        )
        below = node.child_nodes()
        node.missing = len(below)
        self._to_visit |= stack_of(below)

    def _children_of(self, node: Node, parsed: ParsedSitemap) -> Iterator[Node | InvalidSitemap]:
        """Give the children of a node. Past the limit, one invalid sitemap stands for all the others.

        One node gets no more children than the tree may have sitemaps, and all nodes together no more than four times
        that; see `_drop_surplus`.
        """
        fetcher, most = node.fetcher, self.limits.max_sitemaps
        chosen = fetcher.chosen_children(parsed)
        if chosen is not parsed.children:
            node.left_out = requested_urls(parsed.children) - requested_urls(chosen)
        if chosen and fetcher.recursion_level >= fetcher.max_depth:
            reason = f"sitemaps are nested deeper than {fetcher.max_depth} (limits.max_depth)"
            self._limited.setdefault(node, []).append(reason)
        left = max(0, min(most - fetcher.recursion_level - 1, 4 * most + SPARE_PLACES - self._node_count))
        for child in fetcher.fetchers(chosen[:left], parsed):
            self._node_count += 1
            if isinstance(child, InvalidSitemap):
                yield child
            else:
                why = self._refusal(child.url)
                yield Node(child, node) if why is None else _unfetched(child, why, Cause.LEFT_OUT)
        if len(chosen) > left:
            self._limited.setdefault(node, []).append(sitemaps_reached(most))
            yield _unfetched_from(chosen[left].url, sitemaps_reached(most))

    def _is_unmatched(self, node: Node, parsed: ParsedSitemap) -> bool:
        """Return whether a sitemap was fetched only because it might have been an index of sitemaps to include."""
        if not node.fetcher.choice.include or parsed.children or node in self._named_roots():
            return False
        is_content = not issubclass(parsed.sitemap_class, (InvalidSitemap, IndexRobotsTxtSitemap))
        return is_content and not node.fetcher.choice.includes(node.fetcher.url, node.fetcher.parent_urls)

    def _named_roots(self) -> list[Node]:
        """Return the roots that the caller named, and so wants whatever they are."""
        return self.roots

    def _complete(self, node: Node) -> None:
        """Build the sitemap of a node whose children are complete, and those of its parents that waited for it."""
        completed: Node | None = node
        while completed is not None and not completed.missing:
            assert completed.parsed is not None
            children = [child if isinstance(child, InvalidSitemap) else child.sitemap for child in completed.children]
            completed.sitemap = completed.parsed.sitemap(
                [child for child in children if child is not None],
                completed.fetcher.last_modified,
                completed.fetcher.url,
            )
            completed = completed.parent
            if completed is not None:
                completed.missing -= 1

    def _count(self) -> None:
        """Stop the walk if the tree has as many sitemaps or pages as the limits allow."""
        if self._node_count > self._many_nodes:
            self._drop_surplus()
        if self._cut.count():
            self.stop(self._cut.reason)

    def _drop_surplus(self) -> None:
        """Drop the nodes that are past `limits.max_sitemaps` for certain.

        Each node counts as a sitemap, whatever its answer is, and answers only add nodes. So a node that has too many
        before it in tree order will never be part of the tree. Of a root without a verdict, nothing counts yet.
        """
        most = self.limits.max_sitemaps
        kept = 0
        dropped: set[Node] = set()
        certain = PlaceCount(most)
        for root in self.roots:
            count = copy(certain)
            nodes = [root]
            count.add()
            for place in islice(root.places(), 1, None):
                if count.is_past:
                    break
                count.add()
                if isinstance(place, Node):
                    nodes.append(place)
            if self.verdict(root):
                certain = count
            kept += sum(len(node.children) for node in nodes)
            dropped |= self._drop_all_but(nodes)
        self._to_visit = {node: None for node in self._to_visit if node not in dropped}
        for key, waiting in self._waiting.items():
            self._waiting[key] = [node for node in waiting if node not in dropped]
        self._node_count = kept
        self._many_nodes = max(most, kept) + most // 8 + SPARE_PLACES  # not too soon: it takes time

    def _drop_all_but(self, nodes: list[Node]) -> set[Node]:
        """Remove everything below some nodes that is not one of them. Return what was removed."""
        kept, dropped = set(nodes), set[Node]()
        for node in reversed(nodes):  # from the bottom up, to complete those whose last children are removed
            children = node.children
            first = next(
                (at for at, child in enumerate(children) if isinstance(child, Node) and child not in kept), None
            )
            if first is None:
                continue
            for child in node.child_nodes():
                if child not in kept:
                    dropped.update(child.with_all_below())
            children[first:] = [_unfetched_from(_url_of(children[first]), sitemaps_reached(self.limits.max_sitemaps))]
            node.missing = sum(child.sitemap is None for child in node.child_nodes())
            if not node.missing and node.sitemap is None:
                self._complete(node)
        return dropped

    def _start_building(self) -> None:
        self._is_past_cut = self._is_cut_marked = False
        self._path_to_cut.clear()
        node = self._cut.last
        while node is not None:
            self._path_to_cut.add(node)
            node = node.parent

    def _build(self, places: Iterable[Node | InvalidSitemap]) -> Iterator[AbstractSitemap]:
        """Give the sitemaps of some places: complete ones as they are, those past the cut as invalid ones.

        After an interrupt, nodes may be incomplete.
        """
        cut = self._cut
        for place in places:
            if self._is_past_cut and cut.is_marked_once:
                if not self._is_cut_marked:
                    self._is_cut_marked = True
                    self.cuts[cut.reason] = None
                    yield _unfetched_from(_url_of(place), cut.reason)
                return
            if isinstance(place, InvalidSitemap):
                yield place
            elif place.parsed is None:
                yield _unfetched(place.fetcher, "it was interrupted", Cause.LIMIT)
            elif self._is_past_cut:
                self.cuts[cut.reason] = None
                yield _unfetched(place.fetcher, cut.reason, Cause.LIMIT)
            elif place.sitemap is not None and place not in self._path_to_cut:
                yield place.sitemap  # all of it is before the cut
            else:
                yield self._build_again(place)

    def _build_again(self, node: Node) -> AbstractSitemap:
        """Build the sitemap of a node at which, or below which, the tree is cut, or which is incomplete."""
        parsed = self.kept_part(node)
        if self.is_last(node):
            self._is_past_cut = True
            if parsed is not node.parsed:
                self.cuts[self._cut.reason] = None
        return parsed.sitemap(list(self._build(node.children)), node.fetcher.last_modified, node.fetcher.url)


def _url_of(place: Node | InvalidSitemap) -> str:
    return place.fetcher.url if isinstance(place, Node) else place.url


def _unfetched_from(url: str, why: str) -> InvalidSitemap:
    return InvalidSitemap(url, f"Not fetched, nor what follows it: {why}.", cause=Cause.LIMIT)


def _unfetched(fetcher: SitemapFetcher, why: str, cause: Cause) -> InvalidSitemap:
    return InvalidSitemap(fetcher.url, f"Not fetched: {why}.", cause=cause, last_modified=fetcher.last_modified)
