"""Count the sitemaps that a tree declares and that were not fetched: because of a limit, or by the caller's choice.

Callers pass the nodes of the tree only, and not those that arrived behind a cut. So the counts do not depend on the
order of responses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from usp.fetch_parse.parsed import ChildSitemap
from usp.objects.outcome import Cause
from usp.objects.sitemap import InvalidSitemap
from usp.origins import requested_url
from usp.walk.nodes import Node

__all__ = ["count_left_out", "count_skipped", "requested_urls"]


def requested_urls(children: Iterable[ChildSitemap]) -> set[str]:
    """Return the URLs of children as they are requested."""
    return {requested_url(str(child.url)) for child in children}  # a callback may return anything


def count_left_out(nodes: list[Node], roots: Iterable[Node]) -> int:
    """Return how many sitemaps the options of the caller leave out wherever they are declared.

    :param roots: known paths that are left out, too.
    """
    left_out = _unwanted(nodes)
    left_out.update(*(node.left_out for node in nodes if node.left_out))
    left_out.update(requested_url(root.fetcher.url) for root in roots)
    return len(left_out - _fetched(nodes)) if left_out else 0


def count_skipped(nodes: list[Node]) -> int:
    """Return how many sitemaps are declared, not left out, and not fetched because of a limit.

    Those that an index has too many of were counted when it was parsed: each index counts its own.
    """
    declared: set[str] = set()
    counted: dict[str, int] = {}  # a sitemap with several places counts once
    for node in nodes:
        if node.parsed is not None:
            declared.update(requested_urls(node.parsed.children) - node.left_out)
            counted[node.parsed.url] = node.parsed.more_children
    return len(declared - _fetched(nodes) - _unwanted(nodes)) + sum(counted.values())


def _unwanted(nodes: list[Node]) -> set[str]:
    """Return the URLs that have a place in the tree, and that the options of the caller leave out there."""
    return {requested_url(url) for url, cause in _places(nodes) if cause is not None and cause.is_choice}


def _fetched(nodes: list[Node]) -> set[str]:
    """Return the URLs that were requested, or did not need to be, such as those of a loop."""
    return {
        requested_url(url)
        for url, cause in _places(nodes)
        if cause is None or not (cause is Cause.LIMIT or cause.is_choice)
    }


def _places(nodes: list[Node]) -> Iterator[tuple[str, Cause | None]]:
    """Give the URL of each place in a tree, and why there is no sitemap; None if there is one."""
    for node in nodes:
        yield node.fetcher.url, None if node.parsed is None else node.parsed.cause
        for child in node.children:
            if isinstance(child, InvalidSitemap):
                yield str(child.url), child.cause
