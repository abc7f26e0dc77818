"""What a worker does with whole sites: fetches them, checks them, and makes tables of their pages.

It runs in the Python of each environment. Known paths are never guessed: what that costs depends on the number of
guesses. Each task first does the same with a small site, uncounted, which imports all that is needed. What was found is
looked at after the clock has stopped, and answered as the number of pages and a checksum.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import re
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

Answer = dict[str, Any]
_CHECKSUM_BYTES = 8
MAX_ADDRESS_SPACE = 12_000_000_000  # a reader that takes more fails, rather than other programs

# Answers


def summary(values: Iterable[str]) -> Answer:
    """Return the number of pages, and a checksum of what was read of them."""
    digest, pages = hashlib.sha256(), 0
    for pages, value in enumerate(values, 1):  # noqa: B007 -- the last number is used
        digest.update(value.encode() + b"\n")
    return {"pages": pages, "checksum": digest.hexdigest()[:16]}


def unordered_summary(values: Iterable[str]) -> Answer:
    """Return the same for pages in no fixed order: the checksum is the sum of those of each page."""
    total = pages = 0
    for pages, value in enumerate(values, 1):  # noqa: B007 -- the last number is used
        total += int.from_bytes(hashlib.blake2b(value.encode(), digest_size=_CHECKSUM_BYTES).digest())
    return {"pages": pages, "checksum": f"{total % 256**_CHECKSUM_BYTES:016x}"}


def peak_memory() -> int:
    """Return the most memory that this process had, in bytes.

    Linux starts `ru_maxrss` at the size of the parent process, so /proc is better where it exists.
    """
    try:
        status = Path("/proc/self/status").read_text("ascii")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


# Trees


def read_urls(sitemap: Any) -> Any:
    """Read the URL of every page of a sitemap; return the sitemap."""
    for page in sitemap.all_pages():
        page.url  # noqa: B018 -- reading it is what is measured
    return sitemap


def tree_of_site(url: str, **options: Any) -> Any:
    """Fetch the tree of a site through the front door."""
    return import_module("usp.tree").sitemap_tree_for_homepage(url, use_known_paths=False, **options)


def _tree_of_asyncio(url: str, **options: Any) -> Any:
    front_door = import_module("usp.aio").sitemap_tree_for_homepage
    return asyncio.run(front_door(url, use_known_paths=False, **options))


TREES = {"threads": tree_of_site, "asyncio": _tree_of_asyncio}


def site(url: str, times: int = 1, warm_up: str = "") -> Answer:
    """Measure the processor time of fetching a site's tree and reading all its pages, this many times."""
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
    """Time the fetching of a site's tree and, if `reads`, the reading of all its pages."""
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
    """Time the check of a site; or, without `is_check`, the fetching of its tree and then the reading of its pages."""
    check_homepage = import_module("usp.check").check_homepage
    # "same-host": the small site lists pages of another host.
    options: dict[str, Any] = {"use_known_paths": False, "cross_host": "same-host"}
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


def probe(url: str, warm_up: str, **options: Any) -> Answer:
    """Time a check of a site that fetches all of its pages."""
    check_with_pages = import_module("usp.check").check
    check_with_pages(warm_up, probe="all", use_known_paths=False, **options)
    start, start_of_cpu = time.perf_counter(), time.process_time()
    report = check_with_pages(url, probe="all", use_known_paths=False, **options)
    seconds, cpu = time.perf_counter() - start, time.process_time() - start_of_cpu
    pages = report.probed - report.counts().total()  # a page that fails is none
    return {"seconds": seconds, "cpu": cpu, "memory": peak_memory(), "pages": pages}


def crawl_sites(urls: list[str], warm_up: str) -> Answer:
    """Time the fetching of the trees of sites, one after the other, with one client."""
    client = import_module("usp.web_client.requests_client").RequestsWebClient()
    read_urls(tree_of_site(warm_up, web_client=client))
    start, start_of_cpu = time.perf_counter(), time.process_time()
    found = [page.url for url in urls for page in tree_of_site(url, web_client=client).all_pages()]
    seconds, cpu = time.perf_counter() - start, time.process_time() - start_of_cpu
    return {"seconds": seconds, "cpu": cpu, **summary(found)}


def crawl_sites_asyncio(urls: list[str], warm_up: str, at_once: int) -> Answer:
    """Time the fetching of the trees of sites, `at_once` of them at a time, with one client."""
    return asyncio.run(_crawl_sites(urls, warm_up, at_once))


async def _crawl_sites(urls: list[str], warm_up: str, at_once: int) -> Answer:
    front_door = import_module("usp.aio").sitemap_tree_for_homepage
    found: dict[str, list[str]] = {}

    async def take(left: Iterator[str], client: Any) -> None:
        for url in left:
            tree = await front_door(url, web_client=client, use_known_paths=False)
            found[url] = [page.url for page in tree.all_pages()]

    async with import_module("usp.web_client.asyncio_client").AsyncioWebClient() as client:
        await take(iter([warm_up]), client)
        left, start = iter(urls), time.perf_counter()
        await asyncio.gather(*(take(left, client) for _ in range(at_once)))
        seconds = time.perf_counter() - start
    return {"seconds": seconds, **summary(page for url in urls for page in found[url])}


def crawl_scrapy(url: str, warm_up: str, at_once: int) -> Answer:
    """Time scrapy fetching all sitemaps of a site and collecting the URLs of their pages.

    Its reactor runs once in a process, so a worker can do this once. Pages are collected in the filter of entries: as
    items or requests they would cost scrapy far more.
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


# Tables


def _write(tree: Any, path: str) -> None:
    import_module("usp.export").write(tree, path)


def _write_with_pandas(tree: Any, path: str) -> None:
    """Write pages as users of 1.8.1 do."""
    table = import_module("pandas").DataFrame([page.to_dict() for page in tree.all_pages()])
    if path.endswith(".parquet"):
        table.to_parquet(path)
    elif path.endswith(".csv"):
        table.to_csv(path, index=False)
    else:
        table.to_json(path, orient="records", lines=True)


def _export_with(write: Callable[[Any, str], None]) -> Callable[..., Answer]:
    def export(url: str, warm_up: str, formats: Iterable[str]) -> Answer:
        """Time the writing of a file of each format from a tree that was fetched before; return what the files hold."""
        small, tree, answer = tree_of_site(warm_up), tree_of_site(url), {}
        with TemporaryDirectory(prefix="usp-bench-") as folder:
            for name in formats:
                path = f"{folder}/pages.{name}"
                write(small, path)
                start = time.perf_counter()
                write(tree, path)
                seconds = time.perf_counter() - start
                answer[name] = {"seconds": seconds, "size": Path(path).stat().st_size, **_urls_in(path)}
        return answer

    return export


def _urls_in(path: str) -> Answer:
    pandas = import_module("pandas")
    if path.endswith(".parquet"):
        table = pandas.read_parquet(path, columns=["url"])
    elif path.endswith(".csv"):
        table = pandas.read_csv(path, usecols=["url"])
    else:
        table = pandas.concat(part[["url"]] for part in pandas.read_json(path, lines=True, chunksize=100_000))
    return unordered_summary(table["url"])


def export_site(url: str) -> Answer:
    """Measure the memory of fetching a site and writing its pages to a Parquet file meanwhile."""
    export_homepage = import_module("usp.export").export_homepage
    with TemporaryDirectory(prefix="usp-bench-") as folder:
        exported = export_homepage(url, f"{folder}/pages.parquet", use_known_paths=False)
    return {"memory": peak_memory(), "pages": exported.rows}


def to_arrow(url: str) -> Answer:
    """Time `to_arrow()` of a tree that was fetched before."""
    tree = tree_of_site(url)
    tree.sub_sitemaps[0].to_arrow()  # imports all that it needs
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        table = tree.to_arrow()
        seconds.append(time.perf_counter() - start)
        rows = table.num_rows
        del table
    return {"seconds": min(seconds), "pages": rows}


def archive(url: str) -> Answer:
    """Measure the processor time of a tree from a web archive, and from the server that the archive was made of."""
    usp = import_module("usp")
    fetched = tree_of_site(url)
    with TemporaryDirectory(prefix="usp-bench-") as folder:
        path = f"{folder}/site.warc.gz"
        _record([sitemap.url for sitemap in fetched.all_sitemaps()], path)
        reads: dict[str, Callable[[], Any]] = {
            "cpu": lambda: usp.open(path, use_known_paths=False).read(),
            "fetched": lambda: tree_of_site(url),
        }
        times: dict[str, list[float]] = {name: [] for name in reads}
        for _ in range(3):
            for name, read in reads.items():
                start = time.process_time()
                tree = read()
                times[name].append(time.process_time() - start)
                pages = sum(1 for _ in tree.all_pages())
    return {**{name: min(found) for name, found in times.items()}, "pages": pages}


def _record(urls: Iterable[str], path: str) -> None:
    """Fetch URLs, and write the responses to a web archive."""
    warc, request = import_module("usp.warc"), import_module("urllib.request")
    with open(path, "wb") as file:
        writer = warc.WarcWriter(file)
        for url in urls:
            with request.urlopen(url, timeout=60) as answer:
                head = warc.response_head(answer.status, answer.reason, answer.getheaders())
                writer.response(url, head, warc.Payload(answer.read()), datetime.now(UTC))


#: Of each hundred pages of the second run: how many are gone, have another date, or are new.
_GONE, _DATED, _NEW = 2, 2, 1


def _second_run(document: bytes) -> bytes:
    """Return a sitemap in which five of a hundred pages have changed, everywhere in it."""
    head, *entries = document.split(b"<url>")
    kept = []
    for number, entry in enumerate(entries):
        if (place := number % 100) < _GONE:
            continue
        if place < _GONE + _DATED:
            entry = re.sub(rb"<lastmod>[^<]*", b"<lastmod>2031-01-01", entry)
        kept.append(entry)
        if place >= 100 - _NEW:
            kept.append(entry.replace(b"</loc>", b"-new</loc>"))
    end = b"</urlset>\n"
    return head + b"".join(b"<url>" + entry.replace(end, b"") for entry in kept) + end


def make_crawl(files: list[str], folder: str) -> Answer:
    """Crawl a site of these sitemaps twice into a folder. The second run finds five of a hundred pages changed."""
    module = import_module("usp.crawl")
    options = module.CrawlOptions(known_paths="never")
    bodies = {f"/{Path(file).name}": Path(file).read_bytes() for file in files}
    with _serving(bodies) as base:
        names = "".join(f"<sitemap><loc>{base}{path}</loc></sitemap>" for path in bodies)
        index = f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{names}</sitemapindex>'
        bodies |= {"/index.xml": index.encode(), "/robots.txt": f"Sitemap: {base}/index.xml\n".encode()}
        module.crawl([base], folder, options=options)
        for path in [path for path in bodies if path.endswith(".gz")]:
            bodies[path] = gzip.compress(_second_run(gzip.decompress(bodies[path])), 1)
        crawled = module.crawl([base], folder, options=options)
    return {"pages": crawled.sites(1).to_arrow()["pages"][0].as_py()}


@contextmanager
def _serving(bodies: dict[str, bytes]) -> Iterator[str]:
    """Serve these bodies by their paths, as long as they are what they are."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = bodies.get(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def changes(folder: str, is_join: bool) -> Answer:
    """Time the changes between two runs of a crawl; or, with `is_join`, a join of both tables of pages in DuckDB."""
    crawled = import_module("usp.crawl").open_crawl(folder)
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        rows = _joined(folder) if is_join else crawled.changes().to_arrow().num_rows
        seconds.append(time.perf_counter() - start)
    return {"seconds": min(seconds), "pages": rows}


def _joined(folder: str) -> int:
    names = ("last_modified", "change_frequency", "priority", "news", "images", "videos", "alternates")
    differs = " or ".join(f"old.{name} is distinct from new.{name}" for name in names)
    old, new = (f"read_parquet('{folder}/pages/0000{run}-*.parquet')" for run in (1, 2))
    query = f"""
        select old.url, new.url from {old} old full join {new} new on old.url = new.url
        where old.url is null or new.url is null or {differs}"""  # noqa: S608 -- our names
    with import_module("duckdb").connect() as connection:
        return int(connection.sql(query).to_arrow_table().num_rows)


def inflate(files: list[str]) -> Answer:
    """Time the inflating of documents, one after the other.

    This needs a process of its own: in one that did other work before, the time varies by a factor of three with the
    memory that is at hand.
    """
    bodies = [Path(file).read_bytes() for file in files]
    decompress = import_module("isal.isal_zlib").decompress
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        for body in bodies:
            decompress(body, 31)
        seconds.append(time.perf_counter() - start)
    return {"seconds": min(seconds), "pages": sum(decompress(body, 31).count(b"<url>") for body in bodies)}


COMMANDS: dict[str, Callable[..., Answer]] = {
    "site": site,
    "check": check,
    "probe": probe,
    "crawl": crawl,
    "crawl sites": crawl_sites,
    "crawl sites asyncio": crawl_sites_asyncio,
    "crawl scrapy": crawl_scrapy,
    "export": _export_with(_write),
    "export with pandas": _export_with(_write_with_pandas),
    "export site": export_site,
    "to arrow": to_arrow,
    "archive": archive,
    "inflate": inflate,
    "make crawl": make_crawl,
    "changes": changes,
}
