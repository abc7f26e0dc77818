"""Crawl many sites in one process, on asyncio, into a crawl folder.

    sites, one after another -> at most so many at once, few of one domain -> a tree each -> writer -> parts

Sites are fetched in the event loop. Everything that takes long happens in threads: parsing large documents, reading
them into columns, writing. A site that is large gets a part of its own, so that it holds up nobody. A part is committed
when it has enough rows, and at the latest after some seconds.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Container, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any, Literal

from usp.crawl.bodies import FolderBodies
from usp.crawl.client import Bodies, Reuse, SiteClient
from usp.crawl.crawled import CrawledSite
from usp.crawl.folder import CrawlFolder, PartName, Run
from usp.crawl.hosts import RequestLimits, SharedLimits
from usp.crawl.parts import PartWriter
from usp.crawl.sites import SiteTarget
from usp.crawl.state import KnownSite, KnownSites, Row
from usp.crawl.unchanged import documents_to_ask, is_unchanged, walk_key
from usp.exceptions import InvalidArgumentError
from usp.export.memory import release_memory
from usp.origins import host_of, registered_domain
from usp.politeness import Politeness
from usp.stream import AsyncSitemapStream, HomepageOptions, early_policy
from usp.web_client.abstract_client import AbstractAsyncWebClient
from usp.web_client.lookups import call_in_thread

__all__ = ["CrawlOptions", "CrawlProgress", "SiteFetcher", "SiteQueue", "crawl_sites", "run_workers"]

_KNOWN_PATHS: dict[str, bool | Literal["auto"]] = {"auto": "auto", "always": True, "never": False}
_POLITENESS = Politeness(first_tries=1)
_PART_PAGES = 1_000_000
_PART_SITES = 5_000
_LARGE_BYTES = 4 << 20  # of documents, as transferred: such a site gets a part of its own
_RELEASED_BYTES = 1 << 18  # the same, of a site after which free memory goes back to the system
_UNWRITTEN_SITES = 64
_SITES_AT_ONCE = 64  # to read from the list
_LIST_SECONDS = 0.05  # after which those that were read may start
_SITES_AHEAD = 1_000  # read from the list while their domains are busy
_TREE_MEMORY = 1 << 19  # bytes of documents of one site that stay in memory


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlOptions:
    """How to crawl.

    :param sites_at_once: sites that are fetched at the same time.
    :param requests: limits on requests at once.
    :param known_paths: when to try URLs where sitemaps are often found: "auto" only if robots.txt leads to none.
    :param reuse: when to take an earlier document without asking for it.
    :param with_pages: whether to write the tables of pages and problems.
    :param with_warc: whether to keep the documents.
    :param commit_seconds: the longest time until a finished site is on disk; a crash loses no more than that.
    :param tree: options of each tree, as for `usp.tree.sitemap_tree_for_homepage`.
    """

    sites_at_once: int = 200
    requests: RequestLimits = field(default_factory=RequestLimits)
    known_paths: Literal["auto", "always", "never"] = "auto"
    reuse: Reuse = field(default_factory=Reuse)
    with_pages: bool = True
    with_warc: bool = True
    commit_seconds: float = 30.0
    tree: HomepageOptions = field(default_factory=HomepageOptions)

    def __post_init__(self) -> None:
        if type(self.sites_at_once) is not int or self.sites_at_once < 1:
            raise InvalidArgumentError(f"sites_at_once must be an integer, 1 or more, not {self.sites_at_once!r}")
        if not isinstance(self.commit_seconds, (int, float)) or not 0.01 <= self.commit_seconds <= 86_400:
            raise InvalidArgumentError(
                f"commit_seconds must be a number from 0.01 to 86400, not {self.commit_seconds!r}"
            )
        if self.known_paths not in ("auto", "always", "never"):
            raise InvalidArgumentError(f"known_paths must be auto, always or never, not {self.known_paths!r}")


@dataclass(frozen=True, slots=True)
class CrawlProgress:
    """How far a crawl is. `row` describes the site that was finished last.

    `total` is an estimate until the whole list has been read, or None without an estimate.
    """

    sites: int
    total: int | None
    running: int
    pages: int
    bytes: int
    outcomes: Mapping[str, int]
    seconds: float
    row: Row


#: Called after each site.
ProgressCallback = Callable[[CrawlProgress], object]


async def crawl_sites(
    folder: CrawlFolder,
    run: Run,
    sites: Iterator[SiteTarget],
    client: AbstractAsyncWebClient,
    options: CrawlOptions,
    limits: SharedLimits,
    *,
    known: KnownSites,
    progress: ProgressCallback | None = None,
    total: Callable[[], int | None] = lambda: None,
    part: PartName | None = None,
) -> Counter[str]:
    """Crawl sites into a folder, which must be open for writing. Return the number of sites for each outcome.

    If it is cancelled, the sites that have ended are committed, and the others are not.

    :param total: tells about how many sites there are, for `progress`.
    :param part: the only part to write, at the end, if all sites have ended; None for as many as are good.
    """
    same_walks = {other.run for other in folder.runs if other.walk and other.walk == walk_key(options)}
    fetch = SiteFetcher(client, options, limits, known.of, FolderBodies(folder), same_walks)
    queue = SiteQueue(sites, options.requests.per_domain)
    async with _SiteWriter(folder, run.run, options, progress, total, part) as writer:

        async def work() -> None:
            while (target := await queue.next()) is not None:
                try:
                    crawled = await fetch.site(target)
                finally:
                    queue.end(target)
                await writer.put(crawled, queue.running)

        await run_workers(options.sites_at_once, work)
    return writer.outcomes


async def run_workers(count: int, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run some workers until all have ended. What one of them raises, such as a full disk, ends the others."""
    try:
        async with asyncio.TaskGroup() as workers:
            for _ in range(count):
                workers.create_task(work())
    except BaseExceptionGroup as group:
        raise _first_of(group) from None


def _first_of(error: BaseException) -> BaseException:
    """Return the first error in a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class SiteQueue:
    """Gives sites in their order, but only a few of one domain at once. The others of that domain wait.

    The list is read in a thread: its source may be slow.
    """

    def __init__(self, sites: Iterator[SiteTarget], per_domain: int) -> None:
        self.running = 0
        self._sites = sites
        self._per_domain = per_domain
        self._of_domain: Counter[str] = Counter()
        self._waiting: dict[str, deque[SiteTarget]] = {}
        self._waiting_count = 0
        self._ready: deque[SiteTarget] = deque()
        self._is_exhausted = False
        self._reading: asyncio.Lock = asyncio.Lock()
        self._changed = asyncio.Event()

    async def next(self) -> SiteTarget | None:
        """Wait for a site that may start, and return it; None if there are no more."""
        while not self._ready:
            if self._is_exhausted and not self._waiting_count:
                return None
            if self._is_exhausted or self._waiting_count >= _SITES_AHEAD or self._reading.locked():
                self._changed.clear()
                await self._changed.wait()
            else:
                await self._read()
        target = self._ready.popleft()
        self.running += 1
        return target

    async def _read(self) -> None:
        async with self._reading:
            found, is_end = await call_in_thread(lambda: _some(self._sites))
        self._is_exhausted |= is_end
        for target in found:
            domain = _domain_of(target)
            if self._of_domain[domain] < self._per_domain:
                self._of_domain[domain] += 1
                self._ready.append(target)
            else:
                self._waiting.setdefault(domain, deque()).append(target)
                self._waiting_count += 1
        self._changed.set()

    def end(self, target: SiteTarget) -> None:
        """Note that a site has ended, and let the next one of its domain start."""
        self.running -= 1
        domain = _domain_of(target)
        waiting = self._waiting.get(domain)
        if waiting:
            self._ready.append(waiting.popleft())
            self._waiting_count -= 1
            if not waiting:
                del self._waiting[domain]
        else:
            self._of_domain[domain] -= 1
            if not self._of_domain[domain]:
                del self._of_domain[domain]
        self._changed.set()


def _some(sites: Iterator[SiteTarget]) -> tuple[list[SiteTarget], bool]:
    """Return the next sites, as many as come within a moment, and whether the list has ended."""
    found: list[SiteTarget] = []
    until = time.monotonic() + _LIST_SECONDS
    for target in sites:
        found.append(target)
        if len(found) >= _SITES_AT_ONCE or time.monotonic() > until:
            return found, False
    return found, True


def _domain_of(target: SiteTarget) -> str:
    return registered_domain(host_of(target.site))


class SiteFetcher:
    """Fetches the trees of sites.

    :param known: returns what is known of a site.
    :param bodies: reads the documents of earlier runs.
    :param same_walks: the runs that made the same walks as this crawl; see `usp.crawl.unchanged`.
    """

    def __init__(
        self,
        client: AbstractAsyncWebClient,
        options: CrawlOptions,
        limits: SharedLimits,
        known: Callable[[str], KnownSite],
        bodies: Bodies,
        same_walks: Container[int] = (),
    ) -> None:
        self._client = client
        self._options = options
        self._limits = limits
        self._known = known
        self._bodies = bodies
        self._same_walks = same_walks

    async def site(self, target: SiteTarget) -> CrawledSite:
        """Fetch the tree of a site, unless all its documents are those of an earlier run."""
        started, clock = datetime.now(UTC), time.monotonic()
        known = self._known(target.site)
        client = SiteClient(self._client, self._limits, known, self._bodies, self._options.reuse)
        options = self._tree_options(client)
        try:
            if await self._is_unchanged(target, client, known, options):
                tree, reused = None, client.confirmed
            else:
                earlier = known.roots() if target.reading.is_site else ()
                stream = AsyncSitemapStream(
                    target.reading, client, memory_bytes=_TREE_MEMORY, earlier=earlier, **options
                )
                tree, reused = await stream.read(), client.reused
        finally:
            self._client.close_idle(host_of(target.site))
        seconds = time.monotonic() - clock
        exchanges, lost = client.exchanges, client.lost
        return CrawledSite(target.site, target.target, tree, started, seconds, exchanges, known, reused, lost)

    async def _is_unchanged(
        self, target: SiteTarget, client: SiteClient, known: KnownSite, options: HomepageOptions
    ) -> bool:
        documents = documents_to_ask(known, target, self._same_walks, self._options.reuse)
        if not documents or not all(map(self._bodies.has, documents)):
            return False
        policy = early_policy(target.reading, _TREE_MEMORY, **options)
        return await is_unchanged(client, documents, policy, self._options.requests.per_host)

    def _tree_options(self, client: SiteClient) -> HomepageOptions:
        options: Any = {
            "concurrency": self._options.requests.per_host,
            "politeness": _POLITENESS,
            "use_known_paths": _KNOWN_PATHS[self._options.known_paths],
            **self._options.tree,
        }
        if self._options.reuse.trust_lastmod:
            options["choose_callback"] = _noting(client, options.get("choose_callback"))
        return options  # type: ignore[no-any-return]


def _noting(client: SiteClient, choose: Any) -> Callable[..., Any]:
    """Return a callback that notes the dates which an index gives its children, and chooses as the caller's does."""

    def note(children: list[Any], *others: Any) -> Any:
        client.declared.update((child.url, child.last_modified) for child in children)
        return children if choose is None else choose(children, *others)

    return note


class _SiteWriter:
    """Writes sites that were fetched, in threads: small ones into a common part, each large one into its own."""

    def __init__(
        self,
        folder: CrawlFolder,
        run: int,
        options: CrawlOptions,
        progress: ProgressCallback | None,
        total: Callable[[], int | None],
        only_part: PartName | None,
    ) -> None:
        self.outcomes: Counter[str] = Counter()
        self._only_part = only_part
        self._folder = folder
        self._run = run
        self._options = options
        self._progress = progress
        self._total = total
        self._clock = time.monotonic()
        self._totals: Counter[str] = Counter()
        self._marks = count(max((int(part.mark) for part in folder.parts(run) if not part.task), default=0) + 1)
        self._part: PartWriter | None = None
        self._part_lock = threading.RLock()  # a job that is cancelled goes on in its thread
        self._part_started = 0.0
        self._unwritten: deque[CrawledSite] = deque()
        self._jobs: dict[bool, asyncio.Task[None]] = {}  # whether for a large site -> what is being written
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="usp-crawl")
        self._running = 0
        self._error: Exception | None = None

    async def __aenter__(self) -> _SiteWriter:
        self._timer = asyncio.create_task(self._commit_in_time())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Commit everything that was taken, also if the crawl was cancelled; nothing more after an error.

        The part of a task has all its sites, or it is not committed: another attempt would take the task for done.
        """
        self._timer.cancel()
        is_lost = self._only_part is not None and kind is not None
        if is_lost:
            self._unwritten.clear()
        try:
            while self._unwritten or self._jobs:
                self._start()
                await self._end_of(*self._jobs)
            self._raise_error()
            if not is_lost:
                await self._in_thread(self._commit)
        finally:
            self._pool.shutdown(wait=True)
            self._drop_part()

    async def put(self, crawled: CrawledSite, running: int) -> None:
        """Take a site. Wait while too many are not written.

        :raises OSError: if an earlier one cannot be written.
        """
        self._running = running
        is_large = crawled.bytes >= _LARGE_BYTES and self._only_part is None
        try:
            while True in self._jobs if is_large else len(self._unwritten) >= _UNWRITTEN_SITES:
                await self._end_of(is_large)
        except asyncio.CancelledError:
            if self._error is None:
                self._unwritten.append(crawled)  # it has ended, so it is written all the same
            raise
        if is_large:
            self._jobs[True] = asyncio.create_task(self._job(True, deque([crawled])))
            return
        self._raise_error()
        self._unwritten.append(crawled)
        self._start()

    def _start(self) -> None:
        """Start to write the small sites that wait, unless some are being written."""
        if self._unwritten and False not in self._jobs:
            sites, self._unwritten = self._unwritten, deque()
            self._jobs[False] = asyncio.create_task(self._job(False, sites))

    async def _end_of(self, *jobs: bool) -> None:
        """Wait for jobs; cancelling this cancels none of them. Raise what a job has raised."""
        waiting = [self._jobs[job] for job in jobs if job in self._jobs]
        if waiting:
            await asyncio.wait(waiting)
        self._raise_error()

    def _raise_error(self) -> None:
        """Raise what a job has raised, if one has."""
        if self._error is not None:
            raise self._error

    async def _job(self, is_large: bool, sites: deque[CrawledSite]) -> None:
        try:
            for row in await self._in_thread(self._write_alone if is_large else self._write_together, sites):
                self._report(row)
        except Exception as error:  # also one of the caller's callback; raised again by `_end_of`
            self._error = self._error or error
            self._unwritten.clear()
            return
        finally:
            del self._jobs[is_large]
        self._start()

    async def _in_thread(self, work: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)
        except OSError as error:
            if error.filename is None:  # as of a full disk
                error.filename = self._folder.path
            raise

    async def _commit_in_time(self) -> None:
        """Commit a part that gets no more sites for a while."""
        while True:
            await asyncio.sleep(self._options.commit_seconds / 4)
            is_due = time.monotonic() - self._part_started >= self._options.commit_seconds
            if self._part is not None and is_due and False not in self._jobs:
                self._jobs[False] = asyncio.create_task(self._job(False, deque()))

    # In threads

    def _write_together(self, sites: deque[CrawledSite]) -> list[Row]:
        with self._part_lock:
            try:
                rows = [self._write_next(sites) for _ in range(len(sites))]
            except BaseException:
                self._drop_part()  # it may have some of a site
                raise
            if self._only_part is None and time.monotonic() - self._part_started >= self._options.commit_seconds:
                self._commit()
        return rows

    def _write_next(self, sites: deque[CrawledSite]) -> Row:
        """Write the first of some sites, and free it at once."""
        size = sites[0].bytes
        row = self._write_small(sites.popleft())
        if size >= _RELEASED_BYTES:
            release_memory()
        return row

    def _write_small(self, crawled: CrawledSite) -> Row:
        if self._part is None:
            self._part_started = time.monotonic()
            self._part = self._new_part()
        row = self._part.add(crawled)
        if self._only_part is None and (self._part.pages >= _PART_PAGES or self._part.sites >= _PART_SITES):
            self._commit()
        return row

    def _write_alone(self, sites: deque[CrawledSite]) -> list[Row]:
        part = self._new_part()
        try:
            rows = [part.add(crawled) for crawled in sites]
            part.commit()
        finally:
            part.drop()
        release_memory()
        return rows

    def _commit(self) -> None:
        with self._part_lock:
            if self._part is None:
                return
            try:
                self._part.commit()
            finally:
                self._drop_part()
        release_memory()

    def _drop_part(self) -> None:
        """Close the common part. Without a commit, nothing of it stays."""
        if self._part is not None:
            part, self._part = self._part, None
            part.drop()

    def _new_part(self) -> PartWriter:
        name = self._only_part or PartName(self._run, f"{next(self._marks):06}")
        return PartWriter(self._folder, name, with_pages=self._options.with_pages, with_warc=self._options.with_warc)

    # In the event loop

    def _report(self, row: Row) -> None:
        self.outcomes[row["outcome"]] += 1
        for name in ("pages", "bytes"):
            self._totals[name] += row[name]
        if self._progress is not None:
            self._progress(
                CrawlProgress(
                    self.outcomes.total(),
                    self._total(),
                    self._running,
                    self._totals["pages"],
                    self._totals["bytes"],
                    dict(self.outcomes),
                    time.monotonic() - self._clock,
                    row,
                )
            )
