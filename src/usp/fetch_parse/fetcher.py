"""`SitemapFetcher`: one sitemap to fetch, at its place in the tree.

A fetcher opens no socket. A driver fetches the URL and passes the response to `receive`, which parses it. `children`
then makes a fetcher for each sitemap that the response lists.
"""

from __future__ import annotations

import codecs
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from usp.documents import Document, Failure
from usp.exceptions import InvalidArgumentError, SitemapException
from usp.fetch_parse.choice import SitemapChoice
from usp.fetch_parse.opening import parse_document
from usp.fetch_parse.parsed import ChildSitemap, ParsedSitemap
from usp.limits import MAX_DEPTH
from usp.logs import logger
from usp.objects.outcome import Cause, cause_of_status
from usp.objects.problem import shortened
from usp.objects.sitemap import AbstractSitemap, IndexRobotsTxtSitemap, InvalidSitemap, fetch_failure
from usp.origins import LOCAL_URL, masked_url, requested_url
from usp.scan.urls import is_http_url

if TYPE_CHECKING:
    from usp.web_client.abstract_client import AbstractWebClient

__all__ = [
    "RecurseCallbackType",
    "RecurseListCallbackType",
    "SitemapFetcher",
    "SitemapStrParser",
]

log = logger(__name__)

_ALL = SitemapChoice()
_ROBOTS_TXT = re.compile(r"[^?#]*/robots\.txt(?:[?#]|$)")

#: Takes the URL of a child, the level of its parent and the URLs above the child. Returns whether to fetch the child.
RecurseCallbackType = Callable[[str, int, set[str]], bool]
#: Takes the URLs of all children of a sitemap, its level and the URLs above the children. Returns those to fetch.
RecurseListCallbackType = Callable[[list[str], int, set[str]], list[str]]


class SitemapFetcher:
    """Fetches and parses one sitemap. `sitemap()` does so for all sitemaps below it, too.

    :param url: the URL of the sitemap.
    :param recursion_level: how deep the sitemap is in the tree. The top is 0.
    :param web_client: the client that `sitemap()` fetches with. None means a new `RequestsWebClient`.
    :param parent_urls: the URLs of the sitemaps above this one.
    :param quiet_404: log a failure as information, not as a warning.
    :param recurse_callback: called for each child; return False to skip it.
    :param recurse_list_callback: called with the URLs of all children; return those to fetch.
    :param last_modified: the `<lastmod>` that the index above gives for this sitemap.
    :param max_depth: the highest level that is fetched.
    :param choice: which children to fetch.
    :param max_children: how many children of an index to keep, if neither the choice nor a callback leaves any out. The
        others are counted. None keeps all.
    :raises SitemapException: if the URL is not http or https, if it is one of `parent_urls`, or if the level is higher
        than `max_depth`.
    """

    def __init__(
        self,
        url: str,
        recursion_level: int,
        web_client: AbstractWebClient | None = None,
        parent_urls: set[str] | None = None,
        quiet_404: bool = False,
        recurse_callback: RecurseCallbackType | None = None,
        recurse_list_callback: RecurseListCallbackType | None = None,
        *,
        last_modified: datetime | None = None,
        max_depth: int = MAX_DEPTH,
        choice: SitemapChoice = _ALL,
        max_children: int | None = None,
    ) -> None:
        parent_urls = parent_urls or set()
        if not is_http_url(url):
            raise SitemapException(f"URL {masked_url(url)} is not an HTTP(S) URL.")
        if recursion_level > max_depth:
            raise SitemapException(f"Recursion level exceeded {max_depth} for URL {shortened(url)}.")
        key = requested_url(url)
        if key in map(requested_url, parent_urls):
            raise SitemapException(f"Recursion detected in URL {shortened(url)} with parent URLs {named(parent_urls)}.")
        self.url = url
        self.key = key  # the URL as it is requested: usp treats URLs with the same one as one
        self.recursion_level = recursion_level
        self.web_client = web_client
        self.parent_urls = parent_urls
        self.quiet_404 = quiet_404
        self.recurse_callback = recurse_callback
        self.recurse_list_callback = recurse_list_callback
        self.last_modified = last_modified
        self.max_depth = max_depth
        self.choice = choice
        self.max_children = max_children

    def sitemap(self) -> AbstractSitemap:
        """Fetch the sitemap and all sitemaps below it, one after another."""
        # This imports upwards: the blocking driver runs a walk that starts at this fetcher.
        from usp.drivers.blocking import fetch_sitemap

        return fetch_sitemap(self)

    def receive(self, answer: Document | Failure) -> ParsedSitemap:
        """Parse what a client returned for the URL."""
        if isinstance(answer, Failure):
            reason = fetch_failure(self.url, shortened(answer.message))
            cause = answer.cause or cause_of_status(answer.status)
            return ParsedSitemap.invalid(self.url, reason, cause, status=answer.status, transport=answer.transport)
        log.info("Parsing sitemap from URL %s...", answer.url)
        is_robots_url = any(_ROBOTS_TXT.match(url) for url in (self.url, answer.url))
        parsed = parse_document(answer, is_robots_url, None if self._chooses() else self.max_children)
        if answer.cut_reason and (answer.is_unread or parsed.sitemap_class is InvalidSitemap):
            return ParsedSitemap.invalid(self.url, f"Not read: {answer.cut_reason}.", Cause.LIMIT)
        if (transport := answer.transport) is not None:
            if answer.is_cut:
                transport = replace(transport, is_whole=False, is_limited=True)
            if parsed.transport is not transport:
                parsed = replace(parsed, transport=transport)
        if log.isEnabledFor(logging.DEBUG):
            for problem in parsed.found_problems():
                log.debug("%s", problem)
        if parsed.reason:
            log.log(logging.INFO if self.quiet_404 else logging.WARNING, "%s", parsed.reason)
        return parsed

    def redirected_to_parent(self, parsed: ParsedSitemap) -> bool:
        """Return whether the URL redirected to a sitemap above this one."""
        if parsed.url == self.url:
            return False
        answered = requested_url(parsed.url)
        return answered != self.key and answered in map(requested_url, self.parent_urls)

    def chosen_children(self, parsed: ParsedSitemap) -> list[ChildSitemap]:
        """Return the children of a sitemap that the caller's options do not leave out."""
        children = parsed.children
        level, parent_urls = self.recursion_level, self._urls_above_children(parsed)
        if self.choice:
            is_robots = parsed.sitemap_class is IndexRobotsTxtSitemap
            children = self.choice.children(children, level, parent_urls, is_robots=is_robots)
        if children and self.recurse_list_callback is not None:
            declared = {child.url: child for child in children}
            wanted = self.recurse_list_callback(list(declared), level, set(parent_urls))
            if isinstance(wanted, str) or not isinstance(wanted, Iterable):
                raise InvalidArgumentError(f"recurse_list_callback must return a list of URLs, not {wanted!r:.200}")
            children = [declared.get(url) or ChildSitemap(url) for url in dict.fromkeys(wanted)]
        if self.recurse_callback is not None:
            is_wanted = self.recurse_callback
            children = [child for child in children if is_wanted(child.url, level, set(parent_urls))]
        return children

    def fetchers(
        self, children: Iterable[ChildSitemap], parsed: ParsedSitemap
    ) -> Iterator[SitemapFetcher | InvalidSitemap]:
        """Yield a fetcher for each child of a sitemap, or an `InvalidSitemap` if it cannot be fetched."""
        parent_urls = self._urls_above_children(parsed)
        for url, last_modified in ((child.url, child.last_modified) for child in children):
            try:
                yield SitemapFetcher(
                    url,
                    self.recursion_level + 1,
                    self.web_client,
                    parent_urls,
                    recurse_callback=self.recurse_callback,
                    recurse_list_callback=self.recurse_list_callback,
                    last_modified=last_modified,
                    max_depth=self.max_depth,
                    choice=self.choice,
                    max_children=self.max_children,
                )
            except SitemapException as error:
                is_deep = self.recursion_level >= self.max_depth
                cause = Cause.REFUSED if not is_http_url(url) else Cause.LIMIT if is_deep else Cause.LOOP
                yield InvalidSitemap(url, str(error), cause=cause, last_modified=last_modified)

    def chosen_roots(self, urls: Iterable[str]) -> Iterator[SitemapFetcher]:
        """Yield a fetcher for each URL at the top of the same tree, unless the caller's options leave it out.

        The options take them as sitemaps that this one, a robots.txt, lists.
        """
        children = [ChildSitemap(url) for url in urls if is_http_url(url)]
        for child in self.chosen_children(ParsedSitemap(self.url, IndexRobotsTxtSitemap, children=children)):
            yield SitemapFetcher(
                child.url,
                self.recursion_level,
                self.web_client,
                recurse_callback=self.recurse_callback,
                recurse_list_callback=self.recurse_list_callback,
                max_depth=self.max_depth,
                choice=self.choice,
                max_children=self.max_children,
            )

    def _chooses(self) -> bool:
        """Return whether the caller's options may leave out children, so that any of them may be among the first."""
        return bool(self.choice) or self.recurse_callback is not None or self.recurse_list_callback is not None

    def _urls_above_children(self, parsed: ParsedSitemap) -> set[str]:
        return self.parent_urls | {self.url, parsed.url}


class SitemapStrParser(SitemapFetcher):
    """Parses a sitemap that you pass as text. Its children are not fetched."""

    def __init__(self, static_content: str, *, url: str = LOCAL_URL) -> None:
        super().__init__(url, 0)
        if not isinstance(static_content, str):
            kind = type(static_content).__name__
            raise SitemapException(f"A sitemap's content must be a str, not {kind}; see sitemap_from_bytes()")
        # The byte order mark makes the parser ignore the encoding that the text declares.
        self._document = Document(self.url, codecs.BOM_UTF8 + static_content.encode("utf-8", "replace"))

    def sitemap(self) -> AbstractSitemap:
        """Return the sitemap, without fetching its children."""
        return self.receive(self._document).unfetched_sitemap()


def named(urls: set[str]) -> str:
    """Return URLs as a message shows them: sorted, and cut if they are long."""
    return shortened(str(sorted(urls)))
