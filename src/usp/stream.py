"""The stream of a site's sitemaps. Streams of pages, checks and exports are built on it.

A stream gives the sitemaps of a website in the order of the tree while others are still being fetched, and then the
tree. `usp.tree.stream_sitemaps_for_homepage` opens a `SitemapStream`, `usp.aio.stream_sitemaps_for_homepage` an
`AsyncSitemapStream`. `check` and `export` open a `SitemapStream` themselves, for its further keyword arguments. So they
import nothing of the walk, the drivers or a web client.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import ExitStack, aclosing, closing, suppress
from dataclasses import replace
from itertools import islice
from types import TracebackType
from typing import Any, NoReturn, Self, Unpack

from usp.documents import Document, Failure
from usp.drivers.blocking import check_client, client_or_default, is_single_threaded, steps
from usp.drivers.fetch import ResponseReader
from usp.drivers.options import HomepageOptions, Reading, walk_for
from usp.exceptions import TreeInterrupted, UspError
from usp.fetch_parse.fetcher import SitemapFetcher
from usp.fetch_parse.parsed import ParsedSitemap
from usp.limits import MEMORY_BYTES
from usp.objects.outcome import Cause
from usp.objects.problem import Problems
from usp.objects.sitemap import AbstractSitemap, IndexWebsiteSitemap, InvalidSitemap
from usp.origins import host_of, split_credentials
from usp.scan.urls import strip_url_to_homepage
from usp.walk import Walk
from usp.walk.nodes import Node, OrderedArrivals
from usp.walk.walk import pages_reached
from usp.web_client.abstract_client import AbstractAsyncWebClient, AbstractWebClient
from usp.web_client.policy import RequestPolicy, applying

__all__ = ["AsyncSitemapStream", "HomepageOptions", "SitemapStream"]

_LEAST_SECONDS = 0.01  # a request with less time than this is not worth making


class _Run:
    """The reading of a target that goes on now. A stream and its generator share it."""

    def __init__(self, reading: Reading, memory_bytes: int, in_tree_order: bool, options: HomepageOptions) -> None:
        self.notes: list[str] = []
        self._memory_bytes = memory_bytes
        self._in_tree_order = in_tree_order
        self._given = options
        self._note = ""
        self._start(reading)

    def _start(self, reading: Reading) -> None:
        self.walk, fetching, self.secret_url = walk_for(reading, in_tree_order=self._in_tree_order, **self._given)
        self.options = replace(fetching, memory_bytes=self._memory_bytes)
        self.order: _TreeOrder | _ArrivalOrder = (
            _TreeOrder(self.walk) if self._in_tree_order else _ArrivalOrder(self.walk, fetching.limits.max_pages)
        )
        self._reading = reading
        self._next: Reading | None = None
        self._is_settled = False

    @property
    def homepage_url(self) -> str:
        """The URL of the homepage, without a user and password."""
        url = split_credentials(self.secret_url)[0]
        return url if self._reading.is_site else strip_url_to_homepage(url)

    def is_settled(self) -> bool:
        """Return False if the first answer has shown that another reading is right."""
        first = next(iter(self.walk.roots), None)
        if not self._is_settled and first is not None and first.parsed is not None:
            self._is_settled = True
            is_reached = first.parsed.cause is not Cause.UNREACHABLE
            if self._note and is_reached:
                self.notes.append(self._note)
            self._note = ""
            if not is_reached and (other := self._reading.if_unreachable) is not None:
                self._turn_to(other, f"{self._shown()} cannot be reached ({_short_reason(first.parsed)})")
            elif first.parsed.cause is Cause.UNREADABLE and (other := self._reading.if_no_sitemap) is not None:
                self._turn_to(other, f"{self._shown()} is not a sitemap")
        return self._next is None

    def turn(self) -> bool:
        """Start the reading that is right. Return whether there was another."""
        if self._next is None:
            return False
        self._start(self._next)
        return True

    def _turn_to(self, other: Reading, why: str) -> None:
        url = split_credentials(other.url)[0]
        self._note = f"{why}; reading {'the whole site ' if other.is_site else ''}{url}"
        self._next = other

    def _shown(self) -> str:
        return split_credentials(self.secret_url)[0]


class _Stream:
    """What all streams share: the tree, and the place of the sitemap given last."""

    def __init__(self, run: _Run) -> None:
        self._run = run
        self._is_over = False
        self._tree: AbstractSitemap | None = None

    @property
    def homepage_url(self) -> str:
        """The URL of the homepage, without a user and password."""
        return self._run.homepage_url

    @property
    def ancestors(self) -> tuple[AbstractSitemap, ...]:
        """The sitemaps above the one given last, outermost first: often robots.txt and an index."""
        return self._run.order.ancestors

    @property
    def notes(self) -> tuple[str, ...]:
        """How the target was read, if not as written: over http, or as a whole site."""
        return tuple(self._run.notes)

    @property
    def names(self) -> dict[str, str]:
        """The names of files by the URLs of their sitemaps; empty if nothing was read from files."""
        return {}

    @property
    def tree(self) -> AbstractSitemap:
        """The tree, once the stream is exhausted. After an early close: what was fetched until then.

        :raises UspError: while the stream goes on.
        """
        if not self._is_over:
            raise UspError("The tree is not complete yet: go through the stream to its end, or close it.")
        if self._tree is None:
            self._tree = self._run.walk.tree()
        return self._tree


class SitemapStream(_Stream, Generator[AbstractSitemap, None, AbstractSitemap]):
    """Iterate over the sitemaps of a website while others are still being fetched.

    - Sitemaps come in the order of the tree: an index comes before its children. They are those of
      `stream.tree.all_sitemaps()`, one for one.
    - When an index comes, its children have not been fetched: in its `sub_sitemaps` they are `InvalidSitemap`s, as
      `usp.tree.sitemap_from_str` gives them. In `stream.tree` they are the fetched ones.
    - Nothing is fetched before you ask for the first sitemap. While you do not ask for the next one, no new request
      starts.
    - `close()` cancels all requests and closes everything. So does the end of a `with` block, and so does dropping the
      stream.
    - Ctrl-C raises `TreeInterrupted`, which has the partial tree: while the stream works, and anywhere in a `with`
      block.

    :param homepage_url: any URL of the site, or how to read a target.
    :param memory_bytes: bytes of documents to keep in memory; the rest goes to a temporary file.
    :param in_tree_order: False gives sitemaps as they arrive, without `ancestors`.
    """

    def __init__(
        self,
        homepage_url: str | Reading,
        web_client: AbstractWebClient | None = None,
        *,
        memory_bytes: int = MEMORY_BYTES,
        in_tree_order: bool = True,
        **options: Unpack[HomepageOptions],
    ) -> None:
        check_client(web_client)
        super().__init__(_Run(_reading_of(homepage_url), memory_bytes, in_tree_order, options))
        self._client = _LazyClient(web_client)
        self._ends_at: float | None = None
        self._extra_requests: set[RequestPolicy] = set()
        self._is_closed = self._is_in_block = False
        # The generator has no reference to the stream, so that dropping the stream ends it at once.
        self._sitemaps = _fetched(self._run, self._client.opened)

    @property
    def is_single_threaded(self) -> bool:
        """Whether all requests run in your thread, one at a time: the web client is not made for several threads."""
        client = self._client.given
        return self._run.options.concurrency == 1 if client is None else is_single_threaded(client, self._run.options)

    def __next__(self) -> AbstractSitemap:
        while (sitemap := self._step()) is None:
            pass
        return sitemap

    def send(self, value: None, /) -> AbstractSitemap:
        """Return the next sitemap, as `next()` does."""
        return next(self)

    def throw(self, *error: Any) -> NoReturn:
        """Raise an exception inside the stream, which ends it. Ctrl-C becomes `TreeInterrupted`."""
        try:
            self._sitemaps.throw(*error)
            raise RuntimeError("a stream went on after an exception")
        finally:
            self._end()

    def with_pauses(self) -> Iterator[AbstractSitemap | None]:
        """Iterate over the sitemaps, and give None after each answer, whether or not it brought a sitemap.

        Use it to do other work while you wait for the network.
        """
        with suppress(StopIteration):
            while True:
                yield self._step()

    def _step(self) -> AbstractSitemap | None:
        if self._ends_at is None:
            self._ends_at = time.monotonic() + self._run.options.limits.tree_seconds
        try:
            return next(self._sitemaps)
        except BaseException as error:
            if isinstance(error, StopIteration):
                self._tree = error.value or self._tree
            self._end()
            raise

    def _end(self) -> None:
        self._is_over = True
        if not self._is_in_block:
            self.close()

    def close(self) -> None:
        """Cancel all requests, and close everything. `tree` is what was fetched until now."""
        self._is_over = self._is_closed = True
        for policy in list(self._extra_requests):
            policy.cancel()
        self._sitemaps.close()
        self._client.close()

    def __enter__(self) -> Self:
        self._is_in_block = True  # the client stays open until the end of the block, for fetch_extra()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if isinstance(error, KeyboardInterrupt) and not isinstance(error, TreeInterrupted):
                with suppress(KeyboardInterrupt):
                    self.throw(error)  # takes all that has arrived into the tree
                raise TreeInterrupted(self._run.walk.tree()) from None
        finally:
            self.close()

    def __del__(self) -> None:
        if hasattr(self, "_sitemaps"):  # else the arguments were wrong
            self.close()

    def fetch_extra(self, url: str, *, seconds: float, max_bytes: int) -> AbstractSitemap:
        """Fetch a document that is not part of the tree, such as the robots.txt of another host.

        The request obeys the options of the tree, and gets no more time than the tree has left. `close()` cancels it.
        You may call this from another thread unless the stream `is_single_threaded`. It never raises.

        :param seconds: time for the request in all.
        :param max_bytes: bytes to read.
        :return: the sitemap, with its children unfetched; an `InvalidSitemap` if it cannot be fetched.
        """
        fetcher = SitemapFetcher(url, 0)
        return fetcher.receive(self._fetch_extra(url, seconds, max_bytes)).unfetched_sitemap()

    def _fetch_extra(self, url: str, seconds: float, max_bytes: int) -> Document | Failure:
        limits, now = self._run.options.limits, time.monotonic()
        seconds = min(seconds, limits.request_seconds, (self._ends_at or now + limits.tree_seconds) - now)
        if seconds < _LEAST_SECONDS:
            return Failure("the time limit of the tree is reached")
        limits = replace(limits, request_seconds=seconds, max_sitemap_bytes=min(max_bytes, limits.max_sitemap_bytes))
        policy = RequestPolicy(self._run.secret_url, limits, self._run.options.cross_host)
        # The addresses of the homepage's host are known only to the requests of the tree. Here all that are not public
        # are refused, unless the homepage itself is such an address.
        policy.mark_resolved_elsewhere(host_of(self._run.secret_url))
        reader = ResponseReader(policy, max_bytes)
        self._extra_requests.add(policy)
        try:
            if self._is_closed:
                return Failure("the stream is closed")
            if (refusal := policy.refusal(url)) is not None:
                return Failure(refusal)
            with applying(policy):
                return reader.read(self._client.opened().get(policy.with_credentials(url)), url)
        except Exception as error:  # a client of the caller's may raise anything
            return reader.read_error(error, url)
        finally:
            self._extra_requests.discard(policy)


class AsyncSitemapStream(_Stream, AsyncIterator[AbstractSitemap]):
    """Iterate over the sitemaps of a website, on asyncio. See `SitemapStream`: both give the same.

    Close it with `aclose()`, or with an `async with` block, if you leave the loop early.
    """

    def __init__(
        self,
        homepage_url: str | Reading,
        web_client: AbstractAsyncWebClient | None = None,
        *,
        in_tree_order: bool = True,
        **options: Unpack[HomepageOptions],
    ) -> None:
        from usp.drivers.asynchronous import check_client

        check_client(web_client)
        super().__init__(_Run(_reading_of(homepage_url), MEMORY_BYTES, in_tree_order, options))
        self._sitemaps = _fetched_async(self._run, web_client)

    async def __anext__(self) -> AbstractSitemap:
        try:
            return await anext(self._sitemaps)
        except BaseException:
            self._is_over = True
            raise

    async def aclose(self) -> None:
        """Cancel all requests, and close everything. `tree` is what was fetched until now."""
        self._is_over = True
        await self._sitemaps.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


def _reading_of(target: str | Reading) -> Reading:
    return target if isinstance(target, Reading) else Reading(target)


def _short_reason(parsed: ParsedSitemap) -> str:
    sitemap = parsed.sitemap([])
    return sitemap.short_reason if isinstance(sitemap, InvalidSitemap) else ""


def _fetched(
    run: _Run, client: Callable[[], AbstractWebClient]
) -> Generator[AbstractSitemap | None, None, AbstractSitemap]:
    """Fetch a target. Give the sitemaps as they arrive, and None after each answer; return the tree."""
    try:
        while True:
            with closing(steps(run.walk, client(), run.options, run.secret_url)) as pauses:
                for _ in pauses:
                    if not run.is_settled():
                        break
                    try:
                        yield from run.order.arrived()
                        yield None
                    except KeyboardInterrupt as interrupt:
                        pauses.throw(interrupt)  # takes all that has arrived into the tree
            if not run.turn():
                break
        yield from run.order.arrived()
        tree = run.walk.tree()
        yield from run.order.left_out(tree)
    except KeyboardInterrupt:
        raise TreeInterrupted(run.walk.tree()) from None
    return tree


async def _fetched_async(run: _Run, client: AbstractAsyncWebClient | None) -> AsyncGenerator[AbstractSitemap, None]:
    """Fetch a target on asyncio. Give the sitemaps as they arrive."""
    from usp.drivers.asynchronous import client_or_default, steps

    async with client_or_default(client) as opened:
        while True:
            async with aclosing(steps(run.walk, opened, run.options, run.secret_url)) as pauses:
                async for _ in pauses:
                    if not run.is_settled():
                        break
                    for sitemap in run.order.arrived():
                        yield sitemap
            if not run.turn():
                break
    for sitemap in run.order.arrived():
        yield sitemap
    for sitemap in run.order.left_out(run.walk.tree()):
        yield sitemap


class _TreeOrder:
    """The sitemaps of a walk in the order of the tree, each as soon as all before it have arrived."""

    def __init__(self, walk: Walk) -> None:
        self.ancestors: tuple[AbstractSitemap, ...] = ()
        self._walk = walk
        self._places = OrderedArrivals(walk)
        self._path: list[AbstractSitemap] = []  # the sitemap given last, and those above it
        self._given = 0
        self._is_cut = False

    def arrived(self) -> Iterator[AbstractSitemap]:
        """Give the next sitemaps, up to the first that has not arrived, or to the last within the limits."""
        if self._is_cut:
            return
        for level, place in self._places.advance():
            if isinstance(place, Node):
                self._is_cut = self._walk.is_last(place)
                sitemap = _sitemap_at(place, self._walk)
            else:
                sitemap = place
            del self._path[level:]
            self.ancestors = tuple(self._path)
            self._path.append(sitemap)
            self._given += 1
            yield sitemap
            if self._is_cut:
                return

    def left_out(self, tree: AbstractSitemap) -> Iterator[AbstractSitemap]:
        """Give the rest of the tree: what stands in it for the sitemaps past a limit."""
        for ancestors, sitemap in islice(_places(tree), self._given, None):
            self.ancestors = ancestors
            yield sitemap


class _ArrivalOrder:
    """The sitemaps of a walk as they arrive, up to `max_pages` pages."""

    ancestors: tuple[AbstractSitemap, ...] = ()

    def __init__(self, walk: Walk, max_pages: int | None) -> None:
        self._walk = walk
        self._arrivals = walk.arrivals()
        self._max_pages = max_pages
        self._pages_given = 0

    def arrived(self) -> Iterator[AbstractSitemap]:
        """Give the sitemaps that have arrived since the last time. Stop the walk when there are enough pages."""
        for node in self._arrivals.advance():
            if self._max_pages is None:
                yield _sitemap_at(node, self._walk)
                continue
            assert node.parsed is not None
            left = self._max_pages - self._pages_given
            self._pages_given += len(node.parsed.pages)
            if self._pages_given < self._max_pages:
                yield _sitemap_at(node, self._walk)
            elif left > 0:
                self._walk.stop(pages_reached(self._max_pages))
                yield node.parsed.first(left, Problems()).unfetched_sitemap()

    def left_out(self, tree: AbstractSitemap) -> Iterator[AbstractSitemap]:
        """Give nothing: what was left out has not arrived."""
        return iter(())


class _LazyClient:
    """The caller's web client, or a default one that is opened when it is first needed."""

    def __init__(self, given: AbstractWebClient | None) -> None:
        self.given = given
        self._client: AbstractWebClient | None = None
        self._stack = ExitStack()

    def opened(self) -> AbstractWebClient:
        """Return the client."""
        if self._client is None:
            self._client = self._stack.enter_context(client_or_default(self.given))
        return self._client

    def close(self) -> None:
        """Close the default client, if there is one."""
        self._stack.close()


def _sitemap_at(node: Node, walk: Walk) -> AbstractSitemap:
    """Return the sitemap of a node that has arrived, with its children unfetched."""
    return walk.kept_part(node).unfetched_sitemap(node.fetcher.last_modified, node.fetcher.url)


def _places(tree: AbstractSitemap) -> Iterator[tuple[tuple[AbstractSitemap, ...], AbstractSitemap]]:
    """Give all sitemaps of a tree in tree order, each with its ancestors. A website is not a sitemap itself."""
    if isinstance(tree, IndexWebsiteSitemap):
        yield from _descend(tree, ())
    else:
        yield (), tree
        yield from _descend(tree, (tree,))


def _descend(
    sitemap: AbstractSitemap, ancestors: tuple[AbstractSitemap, ...]
) -> Iterator[tuple[tuple[AbstractSitemap, ...], AbstractSitemap]]:
    """Give all sitemaps below one, in the order of the tree, each with its ancestors."""
    for child in sitemap.sub_sitemaps:
        yield ancestors, child
        yield from _descend(child, (*ancestors, child))
