"""Many small sites at once, on one client: their trees, and the same requests with aiohttp alone.

Most sites of a crawl are small. What a tree costs beyond its requests counts for each of them. So both sides make the
same requests, two at once to each site, and only the processor time of the client is compared. It runs in a worker.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.crawls import Answer
from bench.servers import SMALL_SITEMAPS

PER_HOST = 2
_SITEMAP = re.compile(rb"Sitemap: (.*)")
_LOCATION = re.compile(rb"<loc>(.*?)</loc>")

#: Fetches a site, and returns the number of its documents.
FetchSite = Callable[[str], Awaitable[int]]


async def _aiohttp_again(stack: AsyncExitStack, names: list[str], numbers: dict[str, int]) -> FetchSite:
    """Ask whether the documents of sites have changed, which they have not."""
    aiohttp = import_module("aiohttp")
    connector = aiohttp.TCPConnector(limit=0, limit_per_host=PER_HOST)
    conditions = {"If-None-Match": '"1"', "If-Modified-Since": "Mon, 06 Jan 2025 10:00:00 GMT"}
    session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector, headers=conditions))

    async def ask(url: str) -> int:
        async with session.get(url) as response:
            return int(response.status == 304 and not await response.read())

    async def fetch(homepage: str) -> int:
        found = await ask(f"{homepage}robots.txt") + await ask(f"{homepage}index.xml")
        sitemaps = names[: SMALL_SITEMAPS[numbers[homepage] % len(SMALL_SITEMAPS)]]
        return found + sum(await asyncio.gather(*(ask(homepage + name) for name in sitemaps)))

    return fetch


async def _aiohttp_alone(stack: AsyncExitStack) -> FetchSite:
    aiohttp = import_module("aiohttp")
    connector = aiohttp.TCPConnector(limit=0, limit_per_host=PER_HOST)
    session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))

    async def body(url: str) -> bytes:
        async with session.get(url) as response:
            data: bytes = await response.read()
            return data

    async def fetch(homepage: str) -> int:
        (index,) = _SITEMAP.findall(await body(f"{homepage}robots.txt"))
        urls = [url.decode() for url in _LOCATION.findall(await body(index.decode()))]
        return 2 + sum(1 for data in await asyncio.gather(*map(body, urls)) if data)

    return fetch


async def _trees(stack: AsyncExitStack) -> FetchSite:
    tree_of = import_module("usp.aio").sitemap_tree_for_homepage
    client = await stack.enter_async_context(import_module("usp.web_client.asyncio_client").AsyncioWebClient())

    async def fetch(homepage: str) -> int:
        return _documents(await tree_of(homepage, client, use_known_paths=False, concurrency=PER_HOST))

    return fetch


async def _trees_of_crawl(stack: AsyncExitStack) -> FetchSite:
    """Fetch trees as `usp crawl` does, with its defaults, and write nothing."""
    crawler = import_module("usp.crawl.crawler")
    options = crawler.CrawlOptions()
    folder = crawler.CrawlFolder.create(stack.enter_context(TemporaryDirectory(prefix="usp-bench-")))
    session = import_module("usp.crawl.session").crawl_session(options.requests)
    client, limits = await stack.enter_async_context(session)
    known = crawler.KnownSites(folder)
    fetcher = crawler.SiteFetcher(client, options, limits, known.of, crawler.FolderBodies(folder))
    target_of = import_module("usp.crawl.sites").site_target

    async def fetch(homepage: str) -> int:
        return _documents((await fetcher.site(target_of(homepage))).tree)

    return fetch


def _documents(tree: Any) -> int:
    return sum(1 for sitemap in tree.all_sitemaps() if type(sitemap).__name__ != "InvalidSitemap")


SIDES: dict[str, Callable[[AsyncExitStack], Awaitable[FetchSite]]] = {
    "aiohttp": _aiohttp_alone,
    "trees": _trees,
    "crawl": _trees_of_crawl,
}


def small_sites(side: str, urls: list[str], warm_up: list[str], at_once: int) -> Answer:
    """Measure the processor time of fetching sites, `at_once` of them at a time, with one client."""
    return asyncio.run(_measured(SIDES[side], urls, warm_up, at_once))


def asked_again(names: list[str], urls: list[str], warm_up: list[str], at_once: int) -> Answer:
    """Measure the processor time of conditional requests with aiohttp alone, for all documents of sites."""
    numbers = {url: number for number, url in enumerate(urls)}
    return asyncio.run(_measured(partial(_aiohttp_again, names=names, numbers=numbers), urls, warm_up, at_once))


def crawled(urls: list[str], warm_up: list[str], at_once: int, runs: int = 1, with_warc: bool = True) -> Answer:
    """Measure the processor time of crawls into a folder, one after the other, and the size of what each has added."""
    module = import_module("usp.crawl")
    options = module.CrawlOptions(sites_at_once=at_once, known_paths="never", with_warc=with_warc)
    found = []
    with TemporaryDirectory(prefix="usp-bench-") as folder:
        for _ in range(2):
            module.crawl(warm_up, f"{folder}/warm-up", options=options)
        for _ in range(runs):
            before, start = _size_of(f"{folder}/crawl"), time.process_time()
            crawl = module.crawl(urls, f"{folder}/crawl", options=options)
            cpu = time.process_time() - start
            rows = crawl.sites(columns=["pages", "bytes", "requests"]).to_arrow().to_pylist()
            totals = {name: sum(row[name] for row in rows) for name in rows[0]}
            found.append({"cpu": cpu, "stored": _size_of(f"{folder}/crawl") - before, **totals})
    return {"runs": found, "pages": found[-1]["pages"]}


def _size_of(folder: str) -> int:
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


async def _measured(
    side: Callable[[AsyncExitStack], Awaitable[FetchSite]], urls: list[str], warm_up: list[str], at_once: int
) -> Answer:
    async with AsyncExitStack() as stack:
        await _fetch_all(await side(stack), warm_up, at_once)
    async with AsyncExitStack() as stack:
        fetch = await side(stack)
        start = time.process_time()
        found = await _fetch_all(fetch, urls, at_once)
        cpu = time.process_time() - start
    return {"cpu": cpu, "documents": found}


async def _fetch_all(fetch: FetchSite, urls: Iterable[str], at_once: int) -> int:
    left, found = iter(urls), 0

    async def work() -> None:
        nonlocal found
        for url in left:
            documents = await fetch(url)
            found += documents

    await asyncio.gather(*(work() for _ in range(at_once)))
    return found


COMMANDS: dict[str, Callable[..., Answer]] = {
    "small sites": small_sites,
    "small sites asked again": asked_again,
    "small sites crawled": crawled,
}
