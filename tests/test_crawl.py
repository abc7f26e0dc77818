"""Crawls of many sites on loopback: what a run writes, what the next one asks for, and what it keeps."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from many_sites import Answer, Sites, serve_sites
from support import urlset
from usp.crawl import CrawlOptions, CrawlProgress, Reuse, crawl, crawl_async, crawler, open_crawl
from usp.crawl.crawled import CrawledSite
from usp.crawl.parts import PartWriter
from usp.crawl.state import Row
from usp.crawl.tasks import clustered_run
from usp.exceptions import CrawlFolderError, InvalidArgumentError

pytestmark = [pytest.mark.network, pytest.mark.export]

OPTIONS = CrawlOptions(known_paths="never")
HOST = "127.0.1.1"
OTHER = "127.0.1.2"


@pytest.fixture
def sites() -> Iterator[Sites]:
    with serve_sites() as served:
        yield served


def rows(folder: Path, query: str) -> list[tuple[Any, ...]]:
    """Ask DuckDB about the tables of a crawl folder; `{pages}` and the like stand for their files."""
    names = ("sites", "sitemaps", "pages", "problems")
    files = {name: f"read_parquet('{folder}/{name}/*.parquet')" for name in names}
    with duckdb.connect() as connection:
        return connection.sql(query.format(**files)).fetchall()


def pages_of_run(folder: Path, run: int) -> list[str]:
    query = f"SELECT p.url FROM {{sitemaps}} s JOIN {{pages}} p USING (site, document) WHERE s.run = {run} ORDER BY ALL"
    return [url for (url,) in rows(folder, query)]


def states(folder: Path, run: int) -> dict[str, str]:
    """The last part of the URL of each sitemap -> its state."""
    found = rows(folder, f"SELECT url, state FROM {{sitemaps}} WHERE run = {run} AND depth > 0 ORDER BY position")
    return {url.rpartition("/")[2]: state for url, state in found}


def test_first_run_writes_all_tables(sites: Sites, tmp_path: Path) -> None:
    """A run writes a row for each site and sitemap, and the pages of each document."""
    url = sites.add(HOST, {"/a.xml": ["/1", "/2"], "/b.xml": ["/3"]})
    crawled = crawl([url], tmp_path / "c", options=OPTIONS)
    assert [(run.run, dict(run.outcomes), run.ended is not None) for run in crawled.runs] == [
        (1, {"complete": 1}, True)
    ]
    found = rows(tmp_path / "c", "SELECT run, site, outcome, requests, sitemaps, pages, unchanged FROM {sites}")
    assert found == [(1, url, "complete", 4, 4, 3, 0)]
    found = rows(tmp_path / "c", "SELECT position, depth, type, status, pages, state FROM {sitemaps} ORDER BY position")
    assert found == [
        (0, 0, "website", None, None, None),
        (1, 1, "robots", 200, 0, "new"),
        (2, 2, "index", 200, 0, "new"),
        (3, 3, "urlset", 200, 2, "new"),
        (4, 3, "urlset", 200, 1, "new"),
    ]
    assert pages_of_run(tmp_path / "c", 1) == [sites.url(HOST, f"/{number}") for number in (1, 2, 3)]


def test_second_run_downloads_nothing_that_did_not_change(sites: Sites, tmp_path: Path) -> None:
    """If all is unchanged, a second run transfers no body, stores no page, and has the same rows."""
    url = sites.add(HOST, {"/a.xml": ["/1", "/2"], "/b.xml": ["/3"]})
    crawl([url], tmp_path / "c", options=OPTIONS)
    sites.forget()
    crawl([], tmp_path / "c", options=OPTIONS)
    assert (sites.not_modified.total(), sites.body_bytes) == (4, 0)
    assert set(states(tmp_path / "c", 2).values()) == {"unchanged"}
    assert rows(tmp_path / "c", "SELECT DISTINCT run FROM {pages}") == [(1,)]
    assert pages_of_run(tmp_path / "c", 2) == pages_of_run(tmp_path / "c", 1)
    assert rows(tmp_path / "c", "SELECT pages, unchanged FROM {sites} WHERE run = 2") == [(3, 4)]


def test_same_bytes_without_validators_are_unchanged(sites: Sites, tmp_path: Path) -> None:
    """A server without ETags sends everything again; the same bytes are not stored again."""
    url = sites.add(HOST, {"/a.xml": ["/1"]})
    plain = {path: Answer(answer.body, has_etag=False) for path, answer in sites.answers[HOST].items()}
    sites.answers[HOST] = plain
    crawl([url], tmp_path / "c", options=OPTIONS)
    crawl([url], tmp_path / "c", options=OPTIONS)
    assert set(states(tmp_path / "c", 2).values()) == {"unchanged"}
    assert rows(tmp_path / "c", "SELECT count(*) FROM {pages}") == [(1,)]


def test_only_changed_documents_are_stored(sites: Sites, tmp_path: Path) -> None:
    """A document that changed has new pages; the others keep theirs."""
    url = sites.add(HOST, {"/a.xml": ["/1"], "/b.xml": ["/2"]})
    crawl([url], tmp_path / "c", options=OPTIONS)
    sites.answers[HOST]["/b.xml"] = Answer(urlset(sites.url(HOST, "/3")))
    crawl([], tmp_path / "c", options=OPTIONS)
    assert states(tmp_path / "c", 2) == {
        "robots.txt": "unchanged", "index.xml": "unchanged", "a.xml": "unchanged", "b.xml": "changed"
    }  # fmt: skip
    assert pages_of_run(tmp_path / "c", 1) == [sites.url(HOST, "/1"), sites.url(HOST, "/2")]
    assert pages_of_run(tmp_path / "c", 2) == [sites.url(HOST, "/1"), sites.url(HOST, "/3")]


def test_a_document_that_comes_back_has_its_pages_once(sites: Sites, tmp_path: Path) -> None:
    """If a document changes and changes back, each run has its pages exactly once."""
    first = sites.add(HOST, {"/a.xml": ["/1"]})
    before = sites.answers[HOST]["/a.xml"]
    crawl([first], tmp_path / "c", options=OPTIONS)
    sites.answers[HOST]["/a.xml"] = Answer(urlset(sites.url(HOST, "/2")))
    crawl([], tmp_path / "c", options=OPTIONS)
    sites.answers[HOST]["/a.xml"] = before
    crawl([], tmp_path / "c", options=OPTIONS)
    assert [pages_of_run(tmp_path / "c", run) for run in (1, 2, 3)] == [
        [sites.url(HOST, "/1")], [sites.url(HOST, "/2")], [sites.url(HOST, "/1")]
    ]  # fmt: skip


def test_a_sitemap_that_fails_is_kept(sites: Sites, tmp_path: Path) -> None:
    """A sitemap that answers 403 keeps its last document, and the run is partial."""
    url = sites.add(HOST, {"/a.xml": ["/1"], "/b.xml": ["/2"]})
    crawl([url], tmp_path / "c", options=OPTIONS)
    sites.answers[HOST]["/b.xml"] = Answer(b"no", 403, has_etag=False)
    crawl([], tmp_path / "c", options=OPTIONS)
    assert states(tmp_path / "c", 2)["b.xml"] == "kept"
    assert rows(tmp_path / "c", "SELECT status, cause, pages FROM {sitemaps} WHERE run = 2 AND state = 'kept'") == [
        (403, "blocked", 1)
    ]
    assert pages_of_run(tmp_path / "c", 2) == pages_of_run(tmp_path / "c", 1)
    assert rows(tmp_path / "c", "SELECT outcome FROM {sites} WHERE run = 2") == [("partial",)]


def test_what_is_below_an_index_that_fails_is_kept(sites: Sites, tmp_path: Path) -> None:
    """If an index fails, it and all sitemaps below it are kept."""
    url = sites.add(HOST, {"/a.xml": ["/1"], "/b.xml": ["/2"]})
    named = "".join(f"Sitemap: {sites.url(HOST, path)}\n" for path in ("/index.xml", "/c.xml"))
    sites.answers[HOST]["/robots.txt"] = Answer(named)
    sites.answers[HOST]["/c.xml"] = Answer(urlset(sites.url(HOST, "/9")))
    crawl([url], tmp_path / "c", options=OPTIONS)
    sites.answers[HOST]["/index.xml"] = Answer(b"no", 403, has_etag=False)
    crawl([], tmp_path / "c", options=OPTIONS)
    assert states(tmp_path / "c", 2) == {
        "robots.txt": "unchanged", "index.xml": "kept", "a.xml": "kept", "b.xml": "kept", "c.xml": "unchanged"
    }  # fmt: skip
    assert pages_of_run(tmp_path / "c", 2) == pages_of_run(tmp_path / "c", 1)


def test_a_sitemap_that_is_gone_is_not_kept(sites: Sites, tmp_path: Path) -> None:
    """A sitemap that answers 404 has no pages any more."""
    url = sites.add(HOST, {"/a.xml": ["/1"], "/b.xml": ["/2"]})
    crawl([url], tmp_path / "c", options=OPTIONS)
    del sites.answers[HOST]["/b.xml"]
    crawl([], tmp_path / "c", options=OPTIONS)
    assert states(tmp_path / "c", 2)["b.xml"] == "failed"
    assert pages_of_run(tmp_path / "c", 2) == [sites.url(HOST, "/1")]


def test_a_site_that_is_blocked_is_known_from_the_run_before(sites: Sites, tmp_path: Path) -> None:
    """After a run in which a site was blocked, the next one still asks only for what changed."""
    url = sites.add(HOST, {"/a.xml": ["/1"]})
    crawl([url], tmp_path / "c", options=OPTIONS)
    served, sites.answers[HOST] = sites.answers[HOST], {"/robots.txt": Answer(b"", 403, has_etag=False)}
    crawl([], tmp_path / "c", options=OPTIONS)
    sites.answers[HOST] = served
    sites.forget()
    crawled = crawl([], tmp_path / "c", options=OPTIONS)
    assert [dict(run.outcomes) for run in crawled.runs] == [{"complete": 1}, {"blocked": 1}, {"complete": 1}]
    assert sites.body_bytes == 0


def test_a_lost_body_is_fetched_again(sites: Sites, tmp_path: Path) -> None:
    """If the WARC files of a folder are gone, the next run asks for everything, and has it."""
    url = sites.add(HOST, {"/a.xml": ["/1"]})
    crawl([url], tmp_path / "c", options=OPTIONS)
    for file in (tmp_path / "c" / "warc").iterdir():
        file.write_bytes(b"damaged")
    crawl([], tmp_path / "c", options=OPTIONS)
    assert pages_of_run(tmp_path / "c", 2) == [sites.url(HOST, "/1")]
    assert rows(tmp_path / "c", "SELECT outcome FROM {sites} WHERE run = 2") == [("complete",)]


def test_documents_that_are_fresh_are_not_asked_for(sites: Sites, tmp_path: Path) -> None:
    """With max_age, a document is not asked for while its Cache-Control says that it is fresh."""
    url = sites.add(HOST, {"/a.xml": ["/1"], "/b.xml": ["/2"]})
    kept = sites.answers[HOST]["/a.xml"]
    sites.answers[HOST]["/a.xml"] = Answer(kept.body, headers={"Cache-Control": "public, max-age=3600"})
    crawl([url], tmp_path / "c", options=OPTIONS)
    sites.forget()
    crawl([], tmp_path / "c", options=CrawlOptions(known_paths="never", reuse=Reuse(max_age=600)))
    assert sorted(path for _, path in sites.requests) == ["/b.xml", "/index.xml", "/robots.txt"]
    assert pages_of_run(tmp_path / "c", 2) == pages_of_run(tmp_path / "c", 1)
    sites.forget()
    crawl([], tmp_path / "c", options=OPTIONS)
    assert (HOST, "/a.xml") in sites.requests


def test_a_document_that_is_not_asked_for_grows_old(sites: Sites, tmp_path: Path) -> None:
    """A document is as old as the last answer about it. Else, with frequent runs, it would stay fresh for ever."""
    url = sites.add(HOST, {"/a.xml": ["/1"]})
    sites.answers[HOST]["/a.xml"] = replace(sites.answers[HOST]["/a.xml"], headers={"Cache-Control": "max-age=3600"})
    for reuse in (Reuse(), Reuse(max_age=600), Reuse(max_age=600), Reuse()):
        crawl([url], tmp_path / "c", options=CrawlOptions(known_paths="never", reuse=reuse))
    assert sites.requests[HOST, "/a.xml"] == 2
    query = "SELECT fetched_at FROM {sitemaps} WHERE url LIKE '%/a.xml' ORDER BY run"
    first, second, third, asked_again = (moment for (moment,) in rows(tmp_path / "c", query))
    assert first == second == third < asked_again


def test_a_304_says_how_long_it_stays_fresh(sites: Sites, tmp_path: Path) -> None:
    """The Cache-Control of a 304 replaces that of the document, and the time that others have kept it counts."""
    url = sites.add(HOST, {"/a.xml": ["/1"]})
    kept = sites.answers[HOST]["/a.xml"]
    for age, control in ((None, "max-age=50"), ("10", "max-age=100"), (None, "no-cache")):
        headers = {"Cache-Control": control, **({} if age is None else {"Age": age})}
        sites.answers[HOST]["/a.xml"] = replace(kept, headers=headers)
        crawl([url], tmp_path / "c", options=OPTIONS)
    assert sites.not_modified[HOST, "/a.xml"] == 2
    query = "SELECT cache_seconds FROM {sitemaps} WHERE url LIKE '%/a.xml' ORDER BY run"
    assert rows(tmp_path / "c", query) == [(50,), (90,), (0,)]


def test_dates_of_an_index_can_be_trusted(sites: Sites, tmp_path: Path) -> None:
    """With trust_lastmod, a sitemap whose date in the index did not move is not asked for."""
    url = sites.add(HOST, {"/a.xml": ["/1"], "/b.xml": ["/2"]})

    def dated(a: str, b: str) -> Answer:
        entries = "".join(
            f"<sitemap><loc>{sites.url(HOST, path)}</loc><lastmod>{date}</lastmod></sitemap>"
            for path, date in (("/a.xml", a), ("/b.xml", b))
        )
        return Answer(f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</sitemapindex>')

    sites.answers[HOST]["/index.xml"] = dated("2026-01-01", "2026-01-01")
    crawl([url], tmp_path / "c", options=OPTIONS)
    sites.answers[HOST]["/index.xml"] = dated("2026-01-01", "2026-01-02")
    sites.forget()
    crawl([], tmp_path / "c", options=CrawlOptions(known_paths="never", reuse=Reuse(trust_lastmod=True)))
    assert (HOST, "/a.xml") not in sites.requests
    assert (HOST, "/b.xml") in sites.requests
    assert pages_of_run(tmp_path / "c", 2) == pages_of_run(tmp_path / "c", 1)


def test_a_redirected_sitemap_is_asked_for_conditionally(sites: Sites, tmp_path: Path) -> None:
    """The conditions go to the URL that the document came from, after the redirect."""
    url = sites.add(HOST, {"/old.xml": ["/1"]})
    sites.answers[HOST]["/new.xml"] = sites.answers[HOST]["/old.xml"]
    sites.answers[HOST]["/old.xml"] = Answer(b"", 301, {"Location": "/new.xml"}, has_etag=False)
    crawl([url], tmp_path / "c", options=OPTIONS)
    sites.forget()
    crawl([], tmp_path / "c", options=OPTIONS)
    assert sites.not_modified[HOST, "/new.xml"] == 1
    assert pages_of_run(tmp_path / "c", 2) == [sites.url(HOST, "/1")]


def test_without_warc_everything_is_fetched_and_compared(sites: Sites, tmp_path: Path) -> None:
    """Without WARC files, a second run fetches all documents, and still stores no page twice."""
    url = sites.add(HOST, {"/a.xml": ["/1"]})
    options = CrawlOptions(known_paths="never", with_warc=False)
    crawl([url], tmp_path / "c", options=options)
    sites.forget()
    crawl([], tmp_path / "c", options=options)
    assert not (tmp_path / "c" / "warc").exists()
    assert sites.not_modified.total() == 0
    assert rows(tmp_path / "c", "SELECT count(*) FROM {pages}") == [(1,)]


def test_without_pages_the_other_tables_are_written(sites: Sites, tmp_path: Path) -> None:
    """Without pages, sites and sitemaps still say how many pages there are."""
    url = sites.add(HOST, {"/a.xml": ["/1", "/2"]})
    crawl([url], tmp_path / "c", options=CrawlOptions(known_paths="never", with_pages=False))
    assert not (tmp_path / "c" / "pages").exists()
    assert rows(tmp_path / "c", "SELECT pages FROM {sites}") == [(2,)]


def test_pages_that_a_run_has_left_out_are_written_later(sites: Sites, tmp_path: Path) -> None:
    """After a run without pages, documents that did not change are read for their pages, once."""
    url = sites.add(HOST, {"/a.xml": ["/1", "/2"]})
    for with_pages in (True, False, True, True):
        crawled = crawl([url], tmp_path / "c", options=replace(OPTIONS, with_pages=with_pages))
    expected = [sites.url(HOST, "/1"), sites.url(HOST, "/2")]
    assert [pages_of_run(tmp_path / "c", run) for run in (1, 3, 4)] == [expected] * 3
    assert set(states(tmp_path / "c", 3).values()) == {"unchanged"}
    assert not crawled.changes(1, 4).counts().total
    assert rows(tmp_path / "c", "SELECT DISTINCT run FROM {pages} ORDER BY ALL") == [(1,), (3,)]


def test_a_run_that_was_cancelled_goes_on(sites: Sites, tmp_path: Path) -> None:
    """What has ended before a cancellation is kept; the same call again fetches only the other sites."""
    urls = [sites.add(f"127.0.2.{number}", {"/a.xml": ["/1"]}) for number in range(1, 21)]

    async def first() -> None:
        ended = asyncio.Event()

        def progress(event: CrawlProgress) -> None:
            if event.sites >= 5:
                ended.set()

        options = CrawlOptions(known_paths="never", sites_at_once=2)
        task = asyncio.create_task(crawl_async(urls, tmp_path / "c", options=options, progress=progress))
        await ended.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(first())
    kept = [site for (site,) in rows(tmp_path / "c", "SELECT site FROM {sites}")]
    assert 5 <= len(kept) < 20
    sites.forget()
    crawled = crawl(urls, tmp_path / "c", options=OPTIONS)
    assert [(run.run, dict(run.outcomes)) for run in crawled.runs] == [(1, {"complete": 20})]
    assert sorted(site for (site,) in rows(tmp_path / "c", "SELECT site FROM {sites}")) == sorted(urls)
    assert not {host for host, _ in sites.requests} & {url.split("/")[2].partition(":")[0] for url in kept}


def test_a_task_of_a_cluster_that_fails_commits_nothing(sites: Sites, tmp_path: Path) -> None:
    """The part of a task has all its sites. With some of them, the next attempt would take the task for done."""
    urls = [sites.add(f"127.0.2.{number}", {"/a.xml": ["/1"]}) for number in range(1, 7)]
    is_broken = [True]

    def recurse(url: str, *_: object) -> bool:
        if is_broken[0] and url.startswith(urls[3]):
            raise RuntimeError("broken")
        return True

    options = {"known_paths": "never", "sites_at_once": 1, "tree": {"recurse_callback": recurse}}
    with clustered_run(str(tmp_path / "c"), options, None) as run:
        with pytest.raises(RuntimeError, match="broken"):
            run.crawl([(url, None) for url in urls])
        is_broken[0] = False
        run.crawl([(url, None) for url in urls])
    assert sorted(site for (site,) in rows(tmp_path / "c", "SELECT site FROM {sites}")) == urls


class _SlowWriter(PartWriter):
    """A writer that takes a while for each site."""

    def add(self, crawled: CrawledSite) -> Row:
        time.sleep(0.05)
        return super().add(crawled)


@pytest.mark.parametrize("large_bytes", [0, 1 << 30], ids=["large", "small"])
def test_sites_that_wait_to_be_written_are_few_and_none_is_lost(
    sites: Sites, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large_bytes: int
) -> None:
    """If writing is slow, sites are not fetched much faster. A cancelled crawl keeps all sites that have ended."""
    monkeypatch.setattr(crawler, "PartWriter", _SlowWriter)
    monkeypatch.setattr(crawler, "_LARGE_BYTES", large_bytes)
    monkeypatch.setattr(crawler, "_UNWRITTEN_SITES", 3)
    urls = [sites.add(f"127.0.7.{number}", {"/a.xml": ["/1"]}) for number in range(30)]
    ended: list[str] = []
    put = crawler._SiteWriter.put

    async def noted(self: Any, crawled: CrawledSite, running: int) -> None:
        ended.append(crawled.site)
        assert len(self._unwritten) <= 3
        if len(ended) == 20:
            asyncio.get_running_loop().call_soon(task[0].cancel)
        await put(self, crawled, running)

    monkeypatch.setattr(crawler._SiteWriter, "put", noted)
    task: list[asyncio.Task[Any]] = []

    async def main() -> None:
        options = replace(OPTIONS, sites_at_once=15)
        task.append(asyncio.create_task(crawl_async(urls, tmp_path / "c", options=options)))
        with pytest.raises(asyncio.CancelledError):
            await task[0]

    asyncio.run(main())
    found = rows(tmp_path / "c", "SELECT site FROM {sites}")
    assert sorted(site for (site,) in found) == sorted(ended)


@pytest.mark.parametrize(
    ("before", "during"),
    [((700, 10, 10), (20_000, 10, 10)), ((0, 10, 10), (0, 10, 10)), ((30_000, 5, 5), (30_000, 5, 5))],
    ids=["default", "off", "of the caller"],
)
def test_a_crawl_collects_garbage_less_often(
    sites: Sites, tmp_path: Path, before: tuple[int, int, int], during: tuple[int, int, int]
) -> None:
    """The collector runs less often while a crawl runs, unless the caller has said when; afterwards it is as before."""
    seen = []
    usual = gc.get_threshold()
    gc.set_threshold(*before)
    try:
        site = sites.add(HOST, {"/a.xml": ["/1"]})
        crawl([site], tmp_path / "c", options=OPTIONS, progress=lambda event: seen.append(gc.get_threshold()))
        assert (seen, gc.get_threshold()) == ([during], before)
    finally:
        gc.set_threshold(*usual)


def test_only_failed_sites_are_tried_again(sites: Sites, tmp_path: Path) -> None:
    """With retry_failed, sites that were complete are not crawled."""
    good = sites.add(HOST, {"/a.xml": ["/1"]})
    bad = sites.add(OTHER, {"/a.xml": ["/1"]})
    sites.answers[OTHER]["/robots.txt"] = Answer(b"", 403, has_etag=False)
    crawl([good, bad], tmp_path / "c", options=OPTIONS)
    sites.forget()
    crawl([], tmp_path / "c", options=OPTIONS, retry_failed=True)
    assert {host for host, _ in sites.requests} == {OTHER}


def test_sites_whose_sitemap_was_a_web_page_are_tried_again(sites: Sites, tmp_path: Path) -> None:
    """A site that is empty only because its index cannot be read has failed; one that has no sitemap has not."""
    broken = sites.add(HOST, {"/a.xml": ["/1"]})
    index = sites.answers[HOST]["/index.xml"]
    sites.answers[HOST]["/index.xml"] = Answer("<!doctype html><html><body>Busy</body></html>", has_etag=False)
    empty = sites.add(OTHER, {})
    sites.answers[OTHER] = {}
    crawled = crawl([broken, empty], tmp_path / "c", options=OPTIONS)
    assert set(crawled.sites().to_arrow().column("outcome").to_pylist()) == {"empty"}
    sites.forget()
    sites.answers[HOST]["/index.xml"] = index
    crawled = crawl([], tmp_path / "c", options=OPTIONS, retry_failed=True)
    assert {host for host, _ in sites.requests} == {HOST}
    assert crawled.runs[-1].outcomes == {"complete": 1}
    assert len(crawl([], tmp_path / "c", options=OPTIONS, retry_failed=True).runs) == 2  # no site is left to try


def test_a_site_is_crawled_once_however_it_is_written(sites: Sites, tmp_path: Path) -> None:
    """A list that names a site twice has it once."""
    url = sites.add(HOST, {"/a.xml": ["/1"]})
    crawled = crawl([url, url.rstrip("/"), url], tmp_path / "c", options=OPTIONS)
    assert dict(crawled.runs[0].outcomes) == {"complete": 1}


def test_a_line_that_is_no_site_is_reported(sites: Sites, tmp_path: Path) -> None:
    """Lines that are no sites are reported, and the others are crawled."""
    url = sites.add(HOST, {"/a.xml": ["/1"]})
    (tmp_path / "sites.txt").write_text(f"# a list\n\nnot a site\n{url}\n")
    found: list[str] = []
    crawled = crawl(
        [str(tmp_path / "sites.txt")], tmp_path / "c", options=OPTIONS, on_error=lambda line, why: found.append(line)
    )
    assert (found, dict(crawled.runs[0].outcomes)) == (["'not a site'"], {"complete": 1})


def test_a_folder_that_is_something_else_is_refused(tmp_path: Path) -> None:
    """A folder with other files is not used as a crawl folder."""
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CrawlFolderError, match="is not a crawl folder"):
        crawl(["https://example.org/"], tmp_path)


def test_a_file_is_no_crawl_folder(tmp_path: Path) -> None:
    """A file in the place of a crawl folder, or of one above it, is refused, to write and to read."""
    file = tmp_path / "file"
    file.write_text("mine")
    for path in (file, file / "crawl"):
        with pytest.raises(CrawlFolderError, match="a file is in its place; give a folder"):
            crawl(["https://example.org/"], path)
        with pytest.raises(CrawlFolderError, match="is not a crawl folder"):
            open_crawl(path)
    assert file.read_text() == "mine"


def test_an_empty_folder_without_sites_is_refused(tmp_path: Path) -> None:
    """Without sites, there must be sites in the folder."""
    with pytest.raises(InvalidArgumentError, match="has no sites yet"):
        crawl([], tmp_path / "c")


def test_requests_at_once_have_limits_across_sites(sites: Sites, tmp_path: Path) -> None:
    """Two sites of one host never get more requests at once than one host may have."""
    sites.add(HOST, {f"/{name}.xml": [f"/{name}"] for name in "abcd"})
    slow = {path: Answer(answer.body, seconds=0.05) for path, answer in sites.answers[HOST].items()}
    sites.answers[HOST] = slow
    targets = [sites.url(HOST), *(sites.url(HOST, f"/{name}.xml") for name in "abcd")]
    crawl(targets, tmp_path / "c", options=OPTIONS)
    assert sites.most_running[HOST] == 2


def test_the_tables_of_a_run_do_not_depend_on_what_else_is_crawled(sites: Sites, tmp_path: Path) -> None:
    """Crawled alone or with others, a site has the same rows."""
    urls = [sites.add(f"127.0.3.{number}", {"/a.xml": ["/1", "/2"], "/b.xml": ["/3"]}) for number in range(1, 9)]
    crawl(urls, tmp_path / "all", options=OPTIONS)
    query = "SELECT position, url, type, pages, digest FROM {sitemaps} WHERE site = '%s' ORDER BY position"
    for number, url in enumerate(urls):
        crawl([url], tmp_path / str(number), options=OPTIONS)
        assert rows(tmp_path / str(number), query % url) == rows(tmp_path / "all", query % url)


def test_what_is_no_crawl_folder_is_refused(tmp_path: Path) -> None:
    """Opening what is no crawl folder says so."""
    with pytest.raises(CrawlFolderError, match=r"no crawl\.json"):
        open_crawl(tmp_path)


def test_known_paths_are_a_last_resort(sites: Sites, tmp_path: Path) -> None:
    """By default, known paths are requested only if robots.txt leads to no sitemap."""
    named = sites.add(HOST, {"/a.xml": ["/1"]})
    unnamed = sites.add(OTHER, {"/sitemap.xml": ["/2"]})
    del sites.answers[OTHER]["/robots.txt"]
    crawl([named, unnamed], tmp_path / "c")
    assert sorted(path for host, path in sites.requests if host == HOST) == ["/a.xml", "/index.xml", "/robots.txt"]
    assert (OTHER, "/sitemap.xml") in sites.requests
    assert rows(tmp_path / "c", "SELECT outcome, pages FROM {sites}") == [("complete", 1)] * 2
