"""Crawl folders in an object store, which has no locks and no renames, and at URLs of files."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from commands import RunHere
from many_sites import Answer, Sites, serve_sites
from object_store import serve_bucket
from support import urlset
from usp.crawl import CrawlOptions, crawl, open_crawl
from usp.crawl.folder import CrawlFolder, PartName, is_crawl_folder
from usp.crawl.remote import RemoteStorage
from usp.exceptions import CrawlFolderError

pytestmark = [pytest.mark.cluster, pytest.mark.network, pytest.mark.export]

OPTIONS = CrawlOptions(known_paths="never")
HOST = "127.0.7.1"


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with serve_bucket() as url:
        yield url


@pytest.fixture
def sites() -> Iterator[Sites]:
    with serve_sites() as served:
        yield served


def test_a_crawl_in_a_bucket_is_as_one_on_disk(sites: Sites, bucket: str, tmp_path: Path) -> None:
    """Two runs into a bucket have the same tables, changes and trees as two runs into a folder."""
    url = sites.add(HOST, {"/a.xml": ["/1", "/2"], "/b.xml": ["/3"]})
    before = sites.answers[HOST]["/b.xml"]
    found = []
    for path in (bucket.format("twice"), str(tmp_path / "twice")):
        sites.answers[HOST]["/b.xml"] = before
        crawl([url], path, options=OPTIONS)
        sites.answers[HOST]["/b.xml"] = Answer(urlset(sites.url(HOST, "/4")))
        sites.forget()
        crawl([], path, options=OPTIONS)
        assert sites.not_modified.total() == 3
        crawled = open_crawl(path)
        found.append(
            (
                [dict(run.outcomes) for run in crawled.runs],
                crawled.sites(columns="site,outcome,pages,unchanged").to_arrow().to_pylist(),
                crawled.sitemaps(columns="url,state,pages,digest").to_arrow().to_pylist(),
                [crawled.pages(run, columns="url").to_arrow().to_pylist() for run in (1, 2)],
                sorted((str(change.change), change.url) for change in crawled.changes()),
                [[page.url for page in crawled.tree(url, run).all_pages()] for run in (1, 2)],
            )
        )
    assert found[0] == found[1]
    assert found[0][4] == [("added", sites.url(HOST, "/4")), ("removed", sites.url(HOST, "/3"))]


def test_a_run_in_a_bucket_goes_on(sites: Sites, bucket: str) -> None:
    """A run into a bucket that was cancelled goes on with the sites that are left."""
    urls = [sites.add(f"127.0.7.{number}", {"/a.xml": [f"/{number}"]}) for number in range(10, 20)]
    for number in range(10, 20):  # so slow that they end one by one
        answers = sites.answers[f"127.0.7.{number}"]
        answers["/a.xml"] = replace(answers["/a.xml"], seconds=0.2)
    options = CrawlOptions(known_paths="never", sites_at_once=1, commit_seconds=0.01)
    path = bucket.format("resumed")

    class Enough(Exception):
        pass

    def stop_early(progress: object) -> None:
        if getattr(progress, "sites", 0) >= 4:
            raise Enough

    with pytest.raises(Enough):
        crawl(urls, path, options=options, progress=stop_early)
    done = {row["site"] for row in open_crawl(path).sites().to_arrow().to_pylist()}
    assert 0 < len(done) < len(urls)
    sites.forget()
    crawled = crawl(urls, path, options=options)
    assert {host for host, _ in sites.requests} == {f"127.0.7.{n}" for n in range(10, 20) if urls[n - 10] not in done}
    assert sorted(row["site"] for row in crawled.sites().to_arrow().to_pylist()) == sorted(urls)
    assert crawled.runs[0].outcomes == {"complete": 10}


def test_a_file_appears_in_a_bucket_when_it_is_finished(bucket: str) -> None:
    """What is dropped, or not finished, is not in the bucket."""
    storage = RemoteStorage(bucket.format("files"))
    for name, ends in (("t/good", "finish"), ("t/bad", "drop")):
        file = storage.new_file(name)
        file.stream.write(b"a" * 1_000_000)
        assert not storage.exists(name)
        getattr(file, ends)()
        file.drop()
    assert storage.names("t") == ["good"]
    with storage.open("t/good") as read:
        read.seek(999_990)
        assert read.read() == b"a" * 10


def test_a_folder_may_be_the_url_of_a_file(sites: Sites, tmp_path: Path) -> None:
    """A file:// URL names a folder on this machine."""
    url = sites.add(HOST, {"/a.xml": ["/1"]})
    crawl([url], (tmp_path / "a b").as_uri(), options=OPTIONS)
    assert open_crawl(tmp_path / "a b").pages(columns="url").to_arrow().num_rows == 1


def test_unknown_stores_are_named() -> None:
    """A URL that nothing can open gives an error that names it."""
    pytest.importorskip("fsspec", reason="fsspec is not installed; make test-cluster does that")
    with pytest.raises(CrawlFolderError, match="nosuch://bucket/crawl cannot be opened"):
        CrawlFolder.create("nosuch://bucket/crawl")


def test_the_first_of_two_parts_of_a_task_counts(tmp_path: Path) -> None:
    """Of two parts with the same sites, readers see one; the other is removed when the folder is written to."""
    folder = CrawlFolder.create(tmp_path / "c")
    names = sorted(PartName.of_task(1, ["https://b/", "https://a/"]) for _ in range(3))
    assert len({name.task for name in names}) == 1
    assert PartName.of_task(1, ["https://a/"]).task != names[0].task
    for name in (*names, PartName(1, "000001")):
        for table in ("sitemaps", "sites"):
            file = folder.new_file(table, name)
            file.finish()
    assert folder.parts() == [PartName(1, "000001"), names[0]]
    assert folder.part_of_task(names[2]) == names[0]
    with folder.writing():
        assert folder.with_rows("sitemaps") == folder.parts() == [PartName(1, "000001"), names[0]]
    assert len(list((tmp_path / "c").rglob("*.parquet"))) == 4


@pytest.mark.cli
def test_commands_take_crawl_folders_in_a_bucket(sites: Sites, bucket: str, run_here: RunHere) -> None:
    """`usp crawl` writes to a bucket; `diff`, `ls`, `export`, `sql` and `check` read from it."""
    url = sites.add(HOST, {"/a.xml": ["/1", "/2"], "/b.xml": ["/3"]})
    path = bucket.format("commands")
    assert run_here("crawl", url, "-o", path, "--known-paths", "never").returncode == 0
    sites.answers[HOST]["/b.xml"] = Answer(urlset(sites.url(HOST, "/4")))
    assert run_here("crawl", "-o", path, "--known-paths", "never").returncode == 0
    sites.answers.clear()
    pages = [sites.url(HOST, page) for page in ("/1", "/2", "/4")]
    assert run_here("ls", path, "-f", "pages").stdout.split() == pages
    assert sorted(run_here("diff", path).stdout.splitlines()) == [f"+ {pages[2]}", f"- {sites.url(HOST, '/3')}"]
    assert run_here("export", path, "-f", "csv", "--columns", "url").stdout.split() == ["url", *pages]
    assert run_here("sql", path, "SELECT count(*) AS n FROM pages", "-f", "csv").stdout.split() == ["n", "3"]
    assert run_here("check", path, "-f", "json").returncode in (0, 1)
    missing = run_here("ls", bucket.format("missing"))
    assert missing.returncode == 2
    assert "is not a crawl folder: it has no crawl.json" in missing.stderr


def test_websites_are_not_asked_whether_they_are_crawl_folders(sites: Sites) -> None:
    """The URL of a website is no crawl folder, and nothing is requested to know that."""
    assert not is_crawl_folder(sites.add(HOST, {}))
    assert sites.requests.total() == 0


def test_crawls_in_a_bucket_work_on_asyncio(sites: Sites, bucket: str) -> None:
    """The asyncio front door takes the same URLs."""
    from usp.crawl import crawl_async

    url = sites.add(HOST, {"/a.xml": ["/1"]})
    crawled = asyncio.run(crawl_async([url], bucket.format("aio"), options=OPTIONS))
    assert crawled.pages(columns="url").to_arrow().num_rows == 1
