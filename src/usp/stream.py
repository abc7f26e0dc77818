"""The stream of a site's sitemaps. Streams of pages, checks and exports are built on it.

A stream gives the sitemaps of a website in the order of the tree while others are still being fetched, and then the
tree. `usp.tree.stream_sitemaps_for_homepage` opens a `SitemapStream`, `usp.aio.stream_sitemaps_for_homepage` an
`AsyncSitemapStream`. `check` and `export` open a `SitemapStream` themselves, for its further keyword arguments. So they
import nothing of the walk, the drivers or a web client.
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, aclosing, closing, suppress
from dataclasses import replace
from types import TracebackType
from typing import Any, NamedTuple, NoReturn, Self, Unpack

from usp.documents import Document, Failure
from usp.drivers.blocking import check_client, client_or_default, is_single_threaded, steps
from usp.drivers.fetch import ResponseReader
from usp.drivers.options import Fetching, HomepageOptions, Reading, policy_for_reading, reusable, walk_for
from usp.exceptions import TreeInterrupted, UspError
from usp.fetch_parse.fetcher import SitemapFetcher
from usp.fetch_parse.parsed import ParsedSitemap
from usp.limits import MEMORY_BYTES
from usp.objects.outcome import Cause
from usp.objects.page import SitemapPage
from usp.objects.sitemap import AbstractSitemap, IndexWebsiteSitemap, InvalidSitemap
from usp.objects.wording import described
from usp.origins import LOCAL_URL, host_of, split_credentials
from usp.scan.urls import strip_url_to_homepage
from usp.walk.order import ArrivalOrder, TreeAlone, TreeOrder, tree_places
from usp.web_client.abstract_client import AbstractAsyncWebClient, AbstractWebClient
from usp.web_client.policy import RequestPolicy, applying

__all__ = [
    "AsyncSitemapStream",
    "AsyncTreeStream",
    "Fetching",
    "HomepageOptions",
    "LoadedTree",
    "Reading",
    "SitemapStream",
    "TreeStream",
    "early_policy",
    "reusable",
]

_PAGES_AT_ONCE = 256  # pages to give before the event loop gets a turn
_LEAST_SECONDS = 0.01  # a request with less time than this is not worth making


class _Run:
    """The reading of a target that goes on now. A stream and its generator share it."""

    def __init__(
        self,
        reading: Reading,
        options: HomepageOptions,
        memory_bytes: int = MEMORY_BYTES,
        *,
        in_tree_order: bool = True,
        pages_once: bool = False,
        bounds_reading: bool = False,
        earlier: Iterable[str] = (),
    ) -> None:
        self.notes: list[str] = []
        self.names: dict[str, str] = {}
        self._memory_bytes = memory_bytes
        self._in_tree_order = in_tree_order
        self._pages_once = pages_once
        self._bounds_reading = bounds_reading
        self._earlier = tuple(earlier)
        self._given = reusable(options)  # for another reading
        self._note = ""
        self._wants_tree_alone = False
        self._tree: AbstractSitemap | None = None  # once it is complete
        self._start(reading)

    def _start(self, reading: Reading) -> None:
        self.walk, fetching, self.secret_url = walk_for(reading, in_tree_order=self._in_tree_order, **self._given)
        self.walk.counts_pages_once = self._pages_once
        self.walk.remember(self._earlier)
        self.options = replace(fetching, memory_bytes=self._memory_bytes, bounds_reading=self._bounds_reading)
        self.order: TreeOrder | ArrivalOrder | TreeAlone = (
            TreeOrder(self.walk) if self._in_tree_order else ArrivalOrder(self.walk, fetching.limits.max_pages)
        )
        if self._wants_tree_alone:
            self.want_tree_alone()
        self._reading = reading
        self._next: Reading | None = None
        self._is_settled = False

    @property
    def is_site(self) -> bool:
        """Whether a whole site is read."""
        return self._reading.is_site

    @property
    def homepage_url(self) -> str:
        """The URL of the homepage, without a user and password."""
        url = split_credentials(self.secret_url)[0]
        return url if self.is_site else strip_url_to_homepage(url)

    @property
    def ancestors(self) -> tuple[AbstractSitemap, ...]:
        """The sitemaps above the one given last."""
        return self.order.ancestors

    def want_tree_alone(self) -> None:
        """Give no more sitemaps, which nobody would read. The order of arrivals does, as it counts their pages."""
        self._wants_tree_alone = True
        if isinstance(self.order, TreeOrder):
            self.order = TreeAlone()

    def end(self) -> AbstractSitemap:
        """Return the tree, now that everything has arrived."""
        self._tree = self.walk.tree()
        return self._tree

    def tree(self) -> AbstractSitemap:
        """Return what was fetched until now."""
        return self._tree or self.walk.tree()

    def is_settled(self) -> bool:
        """Return False if the first answer has shown that another reading is right."""
        first = None if self._is_settled else next(iter(self.walk.roots), None)
        if first is not None and first.parsed is not None:
            self._is_settled = True
            is_reached = first.parsed.cause is not Cause.UNREACHABLE
            if self._note and is_reached:
                self.notes.append(self._note)
            self._note = ""
            if not is_reached and (other := self._reading.if_unreachable) is not None:
                self._turn_to(other, f"{self._shown()} cannot be reached ({_short_reason(first.parsed)})")
            elif _is_something_else(first.parsed) and (other := self._reading.if_no_sitemap) is not None:
                self._turn_to(other, f"{self._shown()} is not a sitemap")
        return self._next is None

    def turn(self) -> bool:
        """Start the reading that is right. Return whether there was another."""
        if self._next is None:
            return False
        why, was_site = self._note, self.is_site
        self._start(self._next)
        self._note = f"{why}; reading {'the whole site ' if self.is_site and not was_site else ''}{self._shown()}"
        return True

    def _turn_to(self, other: Reading, why: str) -> None:
        self._next = other
        self._note = why

    def _shown(self) -> str:
        return split_credentials(self.secret_url)[0]


class _Stream:
    """What all streams share: the tree, and the place of the sitemap given last."""

    def __init__(self, run: _Run | _LoadedRun) -> None:
        self._run = run
        self._is_over = False
        self._tree: AbstractSitemap | None = None

    @property
    def is_site(self) -> bool:
        """Whether a whole site is read. False for one sitemap with everything below it."""
        return self._run.is_site

    @property
    def homepage_url(self) -> str:
        """The URL of the homepage, without a user and password."""
        return self._run.homepage_url

    @property
    def ancestors(self) -> tuple[AbstractSitemap, ...]:
        """The sitemaps above the one given last, outermost first: often robots.txt and an index."""
        return self._run.ancestors

    @property
    def notes(self) -> tuple[str, ...]:
        """How the target was read, if not as written: over http, or as a whole site."""
        return tuple(self._run.notes)

    @property
    def names(self) -> dict[str, str]:
        """The names of files by the URLs of their sitemaps; empty if nothing was read from files."""
        return self._run.names

    @property
    def tree(self) -> AbstractSitemap:
        """The tree, once the stream is exhausted. After an early close: what was fetched until then.

        :raises UspError: while the stream goes on.
        """
        if not self._is_over:
            raise UspError("The tree is not complete yet: go through the stream to its end, or close it.")
        if self._tree is None:
            self._tree = self._run.tree()
        return self._tree

    def __repr__(self) -> str:
        name = self._run.homepage_url if isinstance(self._run, _Run) else ""  # that of files is in the files
        return described(self, name, "over" if self._is_over else "not over")


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
    - Ctrl-C in the stream, or anywhere in a `with` block, raises `TreeInterrupted`, which has the partial tree.

    :param homepage_url: any URL of the site, or how to read a target.
    :param memory_bytes: bytes of documents to keep in memory; the rest goes to a temporary file.
    :param in_tree_order: False gives sitemaps as they arrive, without `ancestors`.
    :param pages_once: whether `limits.max_pages` counts the pages of a sitemap once, even if several indexes list it.
    :param bounds_reading: whether `limits.tree_seconds` also bounds how long you read pages and problems, for commands.
    :param earlier: URLs to which robots.txt or known paths led before; requested if robots.txt leads to no sitemap.
    """

    def __init__(
        self,
        homepage_url: str | Reading,
        web_client: AbstractWebClient | None = None,
        *,
        memory_bytes: int = MEMORY_BYTES,
        in_tree_order: bool = True,
        pages_once: bool = False,
        bounds_reading: bool = False,
        earlier: Iterable[str] = (),
        **options: Unpack[HomepageOptions],
    ) -> None:
        check_client(web_client)
        run = self._fetching = _Run(
            _reading_of(homepage_url),
            options,
            memory_bytes,
            in_tree_order=in_tree_order,
            pages_once=pages_once,
            bounds_reading=bounds_reading,
            earlier=earlier,
        )
        run.options.check_guards(web_client)
        client = _LazyClient(web_client)
        # The generator has no reference to the stream, so that dropping the stream ends it at once.
        self._prepare(run, _fetched(run, client.opened), client)

    def _prepare(
        self,
        run: _Run | _LoadedRun,
        sitemaps: Generator[AbstractSitemap | None, None, AbstractSitemap],
        client: _LazyClient | None,
    ) -> None:
        super().__init__(run)
        self._client = client or _LazyClient(None)
        self._ends_at: float | None = None
        self._extra_requests: set[RequestPolicy] = set()
        self._is_closed = self._is_in_block = False
        self._sitemaps = sitemaps

    def fetching(self) -> Fetching | None:
        """Return how the stream fetches, for requests of pages; None if it reads files."""
        run = self._run
        if not isinstance(run, _Run):
            return None
        ends_at = time.monotonic() + self._seconds() if self._ends_at is None else self._ends_at
        return Fetching(run.options, run.secret_url, self._client.given, ends_at)

    @property
    def is_single_threaded(self) -> bool:
        """Whether all requests run in your thread, one at a time: the web client is not made for several threads."""
        client = self._client.given
        options = self._fetching.options
        return options.concurrency == 1 if client is None else is_single_threaded(client, options)

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

    def read(self) -> AbstractSitemap:
        """Go to the end, and return the tree."""
        if isinstance(self._run, _Run):
            self._run.want_tree_alone()
        with self:
            for _ in self.with_pauses():
                pass
        return self.tree

    def with_pauses(self) -> Iterator[AbstractSitemap | None]:
        """Iterate over the sitemaps, and give None after each answer, whether or not it brought a sitemap.

        While no answer arrives, it gives None twice a second, unless requests run in your thread. Use it to do other
        work while you wait for the network.
        """
        with suppress(StopIteration):
            while True:
                yield self._step()

    def _step(self) -> AbstractSitemap | None:
        if self._ends_at is None:
            self._ends_at = time.monotonic() + self._seconds()
        try:
            return next(self._sitemaps)
        except BaseException as error:
            if isinstance(error, StopIteration):
                self._tree = error.value or self._tree
            self._end()
            raise

    def _seconds(self) -> float:
        """Return how long the whole stream may take."""
        return self._fetching.options.limits.tree_seconds

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
                raise TreeInterrupted(self._run.tree()) from None
        finally:
            self.close()

    def __del__(self) -> None:
        if hasattr(self, "_sitemaps"):  # else the arguments were wrong
            self.close()

    def fetch_extra(self, url: str, *, seconds: float, max_bytes: int) -> AbstractSitemap:
        """Fetch a document that is not part of the tree, such as the robots.txt of another host.

        The request obeys the options of the tree, and gets no more time than the tree has left. `close()` cancels it.
        You may call this from another thread unless the stream `is_single_threaded`. It raises only what the web client
        raises by mistake.

        :param seconds: time for the request in all.
        :param max_bytes: bytes to read.
        :return: the sitemap, with its children unfetched; an `InvalidSitemap` if it cannot be fetched.
        """
        fetcher = SitemapFetcher(url, 0)
        return fetcher.receive(self._fetch_extra(url, seconds, max_bytes)).unfetched_sitemap()

    def _fetch_extra(self, url: str, seconds: float, max_bytes: int) -> Document | Failure:
        limits, now = self._fetching.options.limits, time.monotonic()
        seconds = min(seconds, limits.request_seconds, (self._ends_at or now + limits.tree_seconds) - now)
        if seconds < _LEAST_SECONDS:
            return Failure("the time limit of the tree is reached")
        limits = replace(limits, request_seconds=seconds, max_sitemap_bytes=min(max_bytes, limits.max_sitemap_bytes))
        policy = self._fetching.options.policy(self._fetching.secret_url, limits, shares_addresses=False)
        # The addresses of the homepage's host are known only to the requests of the tree. Here all that are not public
        # are refused, unless the homepage itself is such an address.
        policy.mark_resolved_elsewhere(host_of(self._fetching.secret_url))
        reader = ResponseReader(policy, max_bytes)
        self._extra_requests.add(policy)
        try:
            if self._is_closed:
                return Failure("the stream is closed")
            if (refusal := policy.refusal(url)) is not None:
                return Failure(refusal, cause=Cause.REFUSED)
            with applying(policy):
                return reader.read(self._client.opened().get(policy.with_credentials(url)), url)
        except Exception as error:  # raised again if it is a bug in the client
            return reader.read_error(error, self._client.opened(), url)
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
        memory_bytes: int = MEMORY_BYTES,
        in_tree_order: bool = True,
        earlier: Iterable[str] = (),
        **options: Unpack[HomepageOptions],
    ) -> None:
        from usp.drivers.asynchronous import check_client

        check_client(web_client)
        run = _Run(_reading_of(homepage_url), options, memory_bytes, in_tree_order=in_tree_order, earlier=earlier)
        run.options.check_guards(web_client)
        super().__init__(run)
        self._sitemaps = _fetched_async(run, web_client)

    async def __anext__(self) -> AbstractSitemap:
        try:
            return await anext(self._sitemaps)
        except BaseException:
            self._is_over = True
            raise

    async def read(self) -> AbstractSitemap:
        """Go to the end, and return the tree."""
        if isinstance(self._run, _Run):
            self._run.want_tree_alone()
        async with self:
            async for _ in self:
                pass
        return self.tree

    async def aclose(self) -> None:
        """Cancel all requests, and close everything. `tree` is what was fetched until now."""
        self._is_over = True
        await self._sitemaps.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


class AsyncPageStream(AsyncGenerator[SitemapPage, None]):
    """Iterate over the pages of a stream of sitemaps, on asyncio.

    An asynchronous generator inside another could not be closed by the event loop at its end: it closes all at once. So
    a stream has one only, that of its sitemaps.
    """

    def __init__(self, sitemaps: AsyncSitemapStream) -> None:
        self._sitemaps = sitemaps
        self._pages: Iterator[SitemapPage] = iter(())
        self._given = 0

    async def asend(self, value: None, /) -> SitemapPage:
        """Return the next page, as `anext()` does."""
        from asyncio import sleep

        try:
            while (page := next(self._pages, None)) is None:
                self._pages = iter((await anext(self._sitemaps)).pages)
            self._given += 1
            if self._given % _PAGES_AT_ONCE == 0:
                await sleep(0)
        except BaseException:
            await self.aclose()
            raise
        return page

    async def athrow(self, *error: Any) -> NoReturn:
        """Close the stream, and raise an exception."""
        await self.aclose()
        kind, value, traceback = (*error, None, None)[:3]
        raise (value if isinstance(value, BaseException) else kind).with_traceback(traceback)

    async def aclose(self) -> None:
        """Cancel all requests, and close everything."""
        self._pages = iter(())
        await self._sitemaps.aclose()


class LoadedTree(NamedTuple):
    """A tree that was read in one go, the names of its files by the URLs of their sitemaps, and a note or none."""

    tree: AbstractSitemap
    names: dict[str, str]
    note: str = ""


#: Reads a tree, with these options.
LoadTree = Callable[[HomepageOptions], LoadedTree]


class TreeStream(SitemapStream):
    """Iterate over the sitemaps of a tree that is read in one go, such as that of a folder. Nothing is requested.

    :param web_client: is not used, but checked, like `options`: what is wrong for a site is wrong here, too.
    :param options: those that `load` knows. They are checked now, and not when the tree is read.
    """

    def __init__(
        self, load: LoadTree, web_client: AbstractWebClient | None = None, **options: Unpack[HomepageOptions]
    ) -> None:
        check_client(web_client)
        run = _LoadedRun(load, options)
        self._prepare(run, _loaded(run), None)

    @property
    def is_single_threaded(self) -> bool:
        """False: there is no web client that would need it."""
        return False

    def _seconds(self) -> float:
        return math.inf

    def fetch_extra(self, url: str, *, seconds: float, max_bytes: int) -> AbstractSitemap:
        """Return an `InvalidSitemap`: nothing is requested."""
        return InvalidSitemap(url, "Not fetched: only files are read.", cause=Cause.LEFT_OUT)


class AsyncTreeStream(AsyncSitemapStream):
    """Iterate over the sitemaps of a tree that is read in one go, on asyncio. It is read in a thread."""

    def __init__(
        self, load: LoadTree, web_client: AbstractAsyncWebClient | None = None, **options: Unpack[HomepageOptions]
    ) -> None:
        from usp.drivers.asynchronous import check_client

        check_client(web_client)
        run = _LoadedRun(load, options)
        _Stream.__init__(self, run)
        self._sitemaps = _loaded_async(run)


class _LoadedRun:
    """A tree that is read when it is first asked for, and the place of the sitemap given last."""

    def __init__(self, load: LoadTree, options: HomepageOptions) -> None:
        self.ancestors: tuple[AbstractSitemap, ...] = ()
        self._load = load
        self._options = reusable(options)
        walk_for(Reading(LOCAL_URL), **self._options)  # raises if an option is wrong
        self._loaded: LoadedTree | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What was not read, if you may have expected it."""
        return (self._loaded.note,) if self._loaded is not None and self._loaded.note else ()

    @property
    def names(self) -> dict[str, str]:
        """The names of files by the URLs of their sitemaps."""
        return self._read().names

    @property
    def is_site(self) -> bool:
        """Whether it is a folder or an archive."""
        return isinstance(self.tree(), IndexWebsiteSitemap)

    @property
    def homepage_url(self) -> str:
        """The URL of the homepage, as the files state it."""
        tree = self.tree()
        return tree.url if isinstance(tree, IndexWebsiteSitemap) else strip_url_to_homepage(tree.url)

    def tree(self) -> AbstractSitemap:
        """Return the tree."""
        return self._read().tree

    def sitemaps(self) -> Iterator[AbstractSitemap]:
        """Give the sitemaps in tree order."""
        for ancestors, sitemap in tree_places(self.tree()):
            self.ancestors = ancestors
            yield sitemap

    def _read(self) -> LoadedTree:
        if self._loaded is None:
            try:
                self._loaded = self._load(self._options)
            except KeyboardInterrupt as interrupt:
                nothing = InvalidSitemap(LOCAL_URL, "Not read: it was interrupted.", cause=Cause.LIMIT)
                tree = interrupt.tree if isinstance(interrupt, TreeInterrupted) else nothing
                self._loaded = LoadedTree(tree, {})
                raise TreeInterrupted(tree) from None
        return self._loaded


def _loaded(run: _LoadedRun) -> Generator[AbstractSitemap | None, None, AbstractSitemap]:
    try:
        yield from run.sitemaps()
    except KeyboardInterrupt:
        raise TreeInterrupted(run.tree()) from None
    return run.tree()


async def _loaded_async(run: _LoadedRun) -> AsyncGenerator[AbstractSitemap, None]:
    import asyncio

    await asyncio.to_thread(run.tree)
    for sitemap in run.sitemaps():
        yield sitemap


def early_policy(reading: Reading, memory_bytes: int, **options: Unpack[HomepageOptions]) -> RequestPolicy:
    """Return the policy of a stream with these options, for requests that are made before it."""
    return policy_for_reading(reading, memory_bytes, time.monotonic(), **options)


def _reading_of(target: str | Reading) -> Reading:
    return target if isinstance(target, Reading) else Reading(target)


def _is_something_else(parsed: ParsedSitemap) -> bool:
    """Return whether a URL serves something that is not a sitemap. An empty answer is more likely a mistake."""
    return parsed.cause is Cause.UNREADABLE and not (parsed.transport is not None and parsed.transport.size == 0)


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
        tree = run.end()
        yield from run.order.left_out(tree)
    except KeyboardInterrupt:
        raise TreeInterrupted(run.walk.tree()) from None
    return tree


async def _fetched_async(run: _Run, client: AbstractAsyncWebClient | None) -> AsyncGenerator[AbstractSitemap, None]:
    """Fetch a target on asyncio. Give the sitemaps as they arrive."""
    from usp.drivers.asynchronous import MANY_PLACES, aside, client_or_default, steps

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
    tree = await aside(run.end) if run.walk.place_count > MANY_PLACES else run.end()
    for sitemap in run.order.left_out(tree):
        yield sitemap


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
