"""The pages of many sites as a stream of Arrow batches. Nothing is kept; `usp.spark` and `usp.ray` hand them on.

Sites are fetched on asyncio in a thread, and their batches taken from the caller's. What the caller does not take
stops the fetching.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from usp.crawl.crawler import CrawlOptions, SiteFetcher, SiteQueue, run_workers
from usp.crawl.session import crawl_session
from usp.crawl.sites import site_target
from usp.crawl.state import NOTHING_KNOWN, Row
from usp.export.arrow import BatchBuilder, arrow_schema, record_batch
from usp.export.batches import Batch, FirstPlaces, page_columns, pages_of, repeated_column
from usp.export.schema import PAGES
from usp.export.selection import Selection, select
from usp.extras import extra
from usp.objects.sitemap import AbstractSitemap
from usp.scan import Columns, Scalar

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PageBatches", "pages_of_sites", "plain_schema"]

_BATCH_ROWS = 16_384
_BATCHES_AHEAD = 4
_LOOK_SECONDS = 0.2
_TYPES = {"site": Scalar.TEXT, **PAGES}


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema without the large types of Arrow, which Spark does not take."""
    pa_ = extra("pyarrow", "crawl")
    return pa_.schema([pa_.field(field.name, _plain(field.type)) for field in schema])


def _plain(kind: pa.DataType) -> pa.DataType:
    pa_ = extra("pyarrow", "crawl")
    if pa_.types.is_large_string(kind):
        return pa_.string()
    if pa_.types.is_large_list(kind):
        return pa_.list_(_plain(kind.value_type))
    if pa_.types.is_struct(kind):
        return pa_.struct([pa_.field(field.name, _plain(field.type)) for field in kind])
    return kind


class PageBatches:
    """Makes batches of the pages of trees: the chosen columns, and first of all `site`."""

    def __init__(self, columns: Sequence[str] | str | None = None) -> None:
        names = columns.split(",") if isinstance(columns, str) else columns
        chosen = None if names is None else ["site", *(name.strip() for name in names if name.strip() != "site")]
        self._selection: Selection = select(_TYPES, chosen)
        self._large = arrow_schema(self._selection.chosen, "pages")
        self.schema = plain_schema(self._large)
        self._builder = BatchBuilder(self._large, _BATCH_ROWS)

    def add(self, site: str, sitemap: AbstractSitemap) -> Iterator[pa.RecordBatch]:
        """Add the pages of one sitemap."""
        key = site.encode("utf-8", "replace")
        for columns in page_columns(pages_of(sitemap), self._selection.needed):
            rows = Columns(columns.length, {**columns.columns, "site": repeated_column(key, columns.length)})
            found = record_batch(Batch(rows), self._selection.types, self._selection.chosen, self._large)
            yield from self._given(self._builder.add(found))

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Give what is left."""
        yield from self._given(self._builder.finish())

    def _given(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        for table in tables:
            yield from table.cast(self.schema).to_batches()


def pages_of_sites(
    targets: Iterable[str],
    columns: Sequence[str] | str | None = None,
    options: CrawlOptions | None = None,
    client_options: Mapping[str, Any] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Fetch sites, and give their pages. A site that cannot be fetched has none.

    :param targets: sites; each is fetched once.
    """
    found: Queue[Any] = Queue(_BATCHES_AHEAD)
    stopped = Event()

    def put(item: Any) -> None:
        while not stopped.is_set():
            try:
                found.put(item, timeout=_LOOK_SECONDS)
            except Full:
                continue
            return
        raise _Stopped

    def work() -> None:
        try:
            asyncio.run(_fetch(targets, PageBatches(columns), options or CrawlOptions(), client_options or {}, put))
            put(None)
        except _Stopped:
            pass
        except BaseException as error:  # raised again in the caller's thread
            found.put(error)

    thread = Thread(target=work, name="usp-pages")
    thread.start()
    try:
        while (item := _next(found, thread)) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
        thread.join()


class _NoBodies:
    """No earlier documents."""

    def has(self, known: Row, /) -> bool:
        return False

    async def read(self, known: Row, /) -> None:
        return None


class _Stopped(Exception):
    """Nobody takes the batches any more."""


def _next(found: Queue[Any], thread: Thread) -> Any:
    while True:
        try:
            return found.get(timeout=_LOOK_SECONDS)
        except Empty:
            if not thread.is_alive() and found.empty():
                return None


async def _fetch(
    targets: Iterable[str], batches: PageBatches, options: CrawlOptions, client_options: Mapping[str, Any], put: Any
) -> None:
    sites = {target.site: target for target in map(site_target, targets)}
    queue = SiteQueue(iter(sites.values()), options.requests.per_domain)
    writing = asyncio.Lock()

    def read(site: str, tree: AbstractSitemap | None) -> None:
        assert tree is not None  # nothing is known of any site
        for sitemap in filter(FirstPlaces().is_first, tree.all_sitemaps()):
            for batch in batches.add(site, sitemap):
                put(batch)

    async with crawl_session(options.requests, client_options) as (client, limits):
        fetch = SiteFetcher(client, options, limits, lambda site: NOTHING_KNOWN, _NoBodies())

        async def work() -> None:
            while (target := await queue.next()) is not None:
                try:
                    crawled = await fetch.site(target)
                finally:
                    queue.end(target)
                async with writing:
                    await asyncio.to_thread(read, target.site, crawled.tree)

        await run_workers(min(options.sites_at_once, max(len(sites), 1)), work)
    for batch in batches.finish():
        put(batch)
