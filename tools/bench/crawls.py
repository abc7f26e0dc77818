"""Fetches whole sites, in the Python of one environment: what a worker does for the rows of sites and networks.

Known paths are never guessed at: what that costs depends on the number of guesses. Each is once done with a small site
first, which is not counted and imports all that is needed. What was found is looked at after the clock has stopped.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any

from bench.answers import Answer, peak_memory, summary, unordered_summary

MAX_ADDRESS_SPACE = 12_000_000_000  # a reader that takes more fails, rather than other programs


def read_urls(sitemap: Any) -> Any:
    """Read the URL of every page of a sitemap; gives the sitemap."""
    for page in sitemap.all_pages():
        page.url  # noqa: B018 -- reading it is what is measured
    return sitemap


def tree_of_site(url: str, **options: Any) -> Any:
    """The tree of a site, as the front door gives it."""
    return import_module("usp.tree").sitemap_tree_for_homepage(url, use_known_paths=False, **options)


def _tree_of_asyncio(url: str, **options: Any) -> Any:
    front_door = import_module("usp.aio").sitemap_tree_for_homepage
    return asyncio.run(front_door(url, use_known_paths=False, **options))


TREES = {"threads": tree_of_site, "asyncio": _tree_of_asyncio}


def site(url: str, times: int = 1, warm_up: str = "") -> Answer:
    """The processor time of fetching a site's tree and reading all its pages, this many times."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_ADDRESS_SPACE, MAX_ADDRESS_SPACE))
    if warm_up:
        read_urls(tree_of_site(warm_up))
    pages, start = 0, time.process_time()
    for _ in range(times):
        for page in tree_of_site(url).all_pages():
            page.url  # noqa: B018 -- reading it is what is measured
            pages += 1
    return {"cpu": time.process_time() - start, "memory": peak_memory(), "pages": pages / times}


def crawl(url: str, warm_up: str, driver: str = "threads", reads: bool = True, **options: Any) -> Answer:
    """The time of fetching a site's tree and, if it `reads`, of reading all its pages."""
    tree_of = TREES[driver]
    read_urls(tree_of(warm_up, **options))
    start, start_of_cpu = time.perf_counter(), time.process_time()
    tree = tree_of(url, **options)
    if reads:
        read_urls(tree)
    seconds, cpu, memory = time.perf_counter() - start, time.process_time() - start_of_cpu, peak_memory()
    found = unordered_summary(page.url for page in tree.all_pages())
    return {"seconds": seconds, "cpu": cpu, "memory": memory, **found}


def check(url: str, warm_up: str, is_check: bool) -> Answer:
    """The time of checking a site, or of fetching its tree only, and of reading its pages then."""
    check_homepage = import_module("usp.check").check_homepage
    options: dict[str, Any] = {"use_known_paths": False, "cross_host": "same-host"}  # what is listed is elsewhere
    check_homepage(warm_up, **options)
    read_urls(tree_of_site(warm_up))
    start = time.perf_counter()
    if is_check:
        pages = check_homepage(url, **options).pages
        return {"seconds": time.perf_counter() - start, "memory": peak_memory(), "pages": pages}
    tree = tree_of_site(url)
    seconds, start = time.perf_counter() - start, time.perf_counter()
    pages = sum(1 for _ in tree.all_pages())
    return {"seconds": seconds, "reading": time.perf_counter() - start, "pages": pages}


def crawl_sites(urls: list[str], warm_up: str) -> Answer:
    """The time of fetching the trees of sites, one after the other, with one client."""
    client = import_module("usp.web_client.requests_client").RequestsWebClient()
    read_urls(tree_of_site(warm_up, web_client=client))
    start, start_of_cpu = time.perf_counter(), time.process_time()
    found = [page.url for url in urls for page in tree_of_site(url, web_client=client).all_pages()]
    seconds, cpu = time.perf_counter() - start, time.process_time() - start_of_cpu
    return {"seconds": seconds, "cpu": cpu, **summary(found)}


def crawl_sites_asyncio(urls: list[str], warm_up: str, at_once: int) -> Answer:
    """The time of fetching the trees of sites, so many at once, with one client."""
    return asyncio.run(_crawl_sites(urls, warm_up, at_once))


async def _crawl_sites(urls: list[str], warm_up: str, at_once: int) -> Answer:
    front_door = import_module("usp.aio").sitemap_tree_for_homepage
    found: dict[str, list[str]] = {}

    async def take(left: Iterator[str], client: Any) -> None:
        for url in left:
            tree = await front_door(url, web_client=client, use_known_paths=False)
            found[url] = [page.url for page in tree.all_pages()]

    async with import_module("usp.web_client.aiohttp_client").AiohttpWebClient() as client:
        await take(iter([warm_up]), client)
        left, start = iter(urls), time.perf_counter()
        await asyncio.gather(*(take(left, client) for _ in range(at_once)))
        seconds = time.perf_counter() - start
    return {"seconds": seconds, **summary(page for url in urls for page in found[url])}


def crawl_scrapy(url: str, warm_up: str, at_once: int) -> Answer:
    """The time that scrapy takes to fetch all sitemaps of a site and collect the URLs of their pages.

    Its reactor runs once in a process, so this can be asked for once. Pages are collected in the filter of entries: as
    items or requests they would cost it far more.
    """
    import_module("scrapy.utils.reactor").install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
    reactor = import_module("twisted.internet.reactor")
    settings = {
        "CONCURRENT_REQUESTS": at_once,
        "CONCURRENT_REQUESTS_PER_DOMAIN": at_once,
        "DOWNLOAD_DELAY": 0,
        "LOG_ENABLED": False,
        "ROBOTSTXT_OBEY": False,
        "TELNETCONSOLE_ENABLED": False,
    }
    runner = import_module("scrapy.crawler").CrawlerRunner(settings)
    found: list[str] = []

    def sitemap_filter(_: Any, entries: Any) -> Iterable[dict[str, str]]:
        if entries.type == "sitemapindex":
            return entries  # type: ignore[no-any-return]  # it is iterable
        found.extend(entry["loc"] for entry in entries)
        return ()

    def crawl_of(homepage: str) -> Any:
        base = import_module("scrapy.spiders").SitemapSpider
        members = {"name": "bench", "sitemap_urls": [f"{homepage}robots.txt"], "sitemap_filter": sitemap_filter}
        return runner.crawl(type("Spider", (base,), members))

    times: list[float] = []

    def timed(_: Any) -> Any:
        found.clear()
        times.append(time.perf_counter())
        return crawl_of(url).addCallback(lambda _: times.append(time.perf_counter()))

    reactor.callWhenRunning(lambda: crawl_of(warm_up).addCallback(timed).addBoth(lambda _: reactor.stop()))
    reactor.run()
    start, end = times
    return {"seconds": end - start, "memory": peak_memory(), **unordered_summary(found)}


COMMANDS: dict[str, Callable[..., Answer]] = {
    "site": site,
    "check": check,
    "crawl": crawl,
    "crawl sites": crawl_sites,
    "crawl sites asyncio": crawl_sites_asyncio,
    "crawl scrapy": crawl_scrapy,
}
