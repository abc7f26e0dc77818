"""Fetch the web pages that sitemaps list: `fetch_pages`.

The requests are those of the tree that lists the pages: the same client, politeness, limits, retries and guards. The
content of a page is read once, when it arrives, and not kept. Nothing in it is executed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Generic, TypeVar

from usp.documents import Document, Failure
from usp.drivers.blocking import client_or_default, steps
from usp.exceptions import InvalidArgumentError, SitemapException
from usp.fetch_parse.fetcher import SitemapFetcher
from usp.fetch_parse.parsed import ParsedSitemap
from usp.objects.outcome import Cause
from usp.objects.sitemap import InvalidSitemap
from usp.objects.transport import Transport
from usp.origins import outside, split_credentials
from usp.stream import Fetching, SitemapStream
from usp.walk import Walk

__all__ = ["MAX_BYTES", "WebPage", "fetch_pages"]

#: How much of a page is read, transferred and inflated.
MAX_BYTES = 256 * 1024
#: Pages whose requests are planned together. Hosts are treated alike within one batch, and memory stays bounded.
_BATCH = 10_000
_MANY = 1 << 40  # a limit that is none

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WebPage(Generic[T]):
    """A page that was requested: its number among the URLs, its status, and what `read` has returned for its content.

    `transport` says how it was fetched. `content` is None, and `reason` says why, if there was no success.
    """

    number: int
    url: str
    status: int | None = None
    reason: str = ""
    cause: Cause | None = None
    transport: Transport | None = None
    content: T | None = None

    @property
    def is_left_out(self) -> bool:
        """Whether it was not requested, because of a limit or of the options."""
        return self.cause is Cause.LIMIT or (self.cause is not None and self.cause.is_choice)


@dataclass(frozen=True, slots=True)
class _ParsedPage(ParsedSitemap):
    """The answer to the request of a page, as the walk keeps it."""

    content: Any = None


class _PageFetcher(SitemapFetcher):
    """Fetches a page: no sitemap is expected there."""

    def __init__(self, number: int, url: str, read: Callable[[Document], Any]) -> None:
        super().__init__(url, 0, quiet_404=True)
        self.number = number
        self._read = read

    def receive(self, answer: Document | Failure) -> ParsedSitemap:
        """Read the content of a page."""
        if isinstance(answer, Failure):
            return _ParsedPage(
                self.url,
                InvalidSitemap,
                reason=answer.message,
                status=answer.status,
                cause=answer.cause,
                transport=answer.transport,
            )
        transport = answer.transport
        status = None if transport is None else transport.status
        content = self._read(answer)
        return _ParsedPage(answer.url, InvalidSitemap, status=status, transport=transport, content=content)


def fetch_pages(
    stream: SitemapStream,
    urls: Iterable[str],
    read: Callable[[bytes, str | None], T],
    *,
    max_bytes: int = MAX_BYTES,
) -> Iterator[WebPage[T]]:
    """Fetch pages with the client and the options of a stream, and yield them as they arrive.

    The tree and its pages share the time of the tree (`limits.tree_seconds`).

    :param stream: the stream of a site, which may be over.
    :param read: takes the first `max_bytes` of the content and its Content-Type. Any thread may call it.
    :raises InvalidArgumentError: if the stream reads files: there is nothing to request.
    """
    fetching = stream.fetching()
    if fetching is None:
        raise InvalidArgumentError("only pages of a site can be fetched; name a site, and not files")
    options = fetching.options

    def content_of(document: Document) -> T:
        return read(_first(document, max_bytes), document.content_type)

    numbered = enumerate(urls)
    with client_or_default(fetching.client) as client:
        while batch := list(islice(numbered, _BATCH)):
            seconds = fetching.ends_at - time.monotonic()
            fetchers, refused = _fetchers(batch, content_of, fetching)
            yield from refused
            if seconds <= 0:
                yield from (_late(fetcher, "the time is up") for fetcher in fetchers)
                continue
            limits = replace(
                options.limits,
                tree_seconds=seconds,
                max_sitemap_bytes=max_bytes,
                max_sitemaps=_MANY,
                max_pages=None,
            )
            walk = Walk(fetchers, limits)  # the policy of the options refuses what may not be requested
            arrivals = walk.arrivals()
            page_options = replace(options, limits=limits, progress=None)
            with closing(steps(walk, client, page_options, fetching.secret_url)) as pauses:
                for _ in pauses:
                    yield from map(_page, arrivals.advance())
            yield from map(_page, arrivals.advance())


def _fetchers(
    batch: Sequence[tuple[int, str]], read: Callable[[Document], Any], fetching: Fetching
) -> tuple[list[_PageFetcher], list[WebPage[Any]]]:
    """Return a fetcher for each URL, and the pages that cannot be requested, or that the options leave out."""
    fetchers: list[_PageFetcher] = []
    refused: list[WebPage[Any]] = []
    home = split_credentials(fetching.secret_url)[0]
    for number, url in batch:
        try:
            fetcher = _PageFetcher(number, url, read)
            why, cause = outside(url, home, fetching.options.cross_host), Cause.LEFT_OUT
        except (SitemapException, ValueError) as error:
            why, cause = str(error), Cause.REFUSED
        if why is None:
            fetchers.append(fetcher)
        else:
            refused.append(WebPage(number, url, reason=why, cause=cause))
    return fetchers, refused


def _first(document: Document, most: int) -> bytes:
    """Return the first bytes of a document, inflated."""
    pieces, size = [], 0
    for piece in document.pieces(lambda code: None):
        pieces.append(piece[: most - size])
        size += len(pieces[-1])
        if size >= most:
            break
    return b"".join(pieces)


def _late(fetcher: _PageFetcher, reason: str) -> WebPage[Any]:
    return WebPage(fetcher.number, fetcher.url, reason=reason, cause=Cause.LIMIT)


def _page(node: Any) -> WebPage[Any]:
    """Return the page of a node that has arrived."""
    fetcher, parsed = node.fetcher, node.parsed
    if not isinstance(parsed, _ParsedPage):  # it was not requested: the walk was stopped before
        return WebPage(fetcher.number, fetcher.url, reason=parsed.reason, cause=parsed.cause)
    transport = None if parsed.transport is None else parsed.transport.declared_as(fetcher.url)
    return WebPage(fetcher.number, fetcher.url, parsed.status, parsed.reason, parsed.cause, transport, parsed.content)
