"""Web archives as sources: the trees of the sites in WARC and WACZ files, with no network."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import io
import shutil
import subprocess
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

import usp
import usp.aio
from commands import RunHere
from support import Server, index, peak_of, serve, urlset
from usp.check import check
from usp.exceptions import InvalidArgumentError, MissingExtraError
from usp.limits import Limits
from usp.objects.outcome import OutcomeKind
from usp.objects.sitemap import AbstractSitemap, InvalidSitemap
from usp.sources import SourceKind, find_source, find_sources
from usp.warc import Original, Payload, WarcWriter, read_records, request_head, response_head
from usp.warc.archive import Archive
from usp.warc.client import ArchiveClient
from usp.web_client.abstract_client import AbstractWebClientSuccessResponse, WebClientErrorResponse

NOW = datetime(2026, 11, 17, 3, 30, 55, 123456, UTC)
W = "https://www.example.org/"
ROBOTS = f"User-agent: *\nSitemap: {W}index.xml\n".encode()
HTML = b"<!DOCTYPE html><html><body>Hello</body></html>"


class Recorder:
    """Writes responses to a file."""

    def __init__(self) -> None:
        self.file = io.BytesIO()
        self.writer = WarcWriter(self.file)

    def add(
        self, url: str, body: bytes | str = b"", status: int = 200, *, date: datetime = NOW, **options: Any
    ) -> Recorder:
        headers = options.pop("headers", {"Content-Type": "text/xml"})
        data = body.encode() if isinstance(body, str) else body
        head = response_head(status, options.pop("reason", "OK"), headers.items())
        self.writer.response(url, head, Payload(data), date, **options)
        return self

    def saved(self, path: Path) -> Path:
        path.write_bytes(self.file.getvalue())
        return path


def site(recorder: Recorder | None = None) -> Recorder:
    """A site with what sites have: an index, a compressed sitemap, a redirect, an error, and a page."""
    found = recorder or Recorder()
    found.add(f"{W}robots.txt", ROBOTS, headers={"Content-Type": "text/plain"})
    found.add(f"{W}index.xml", index(f"{W}1.xml.gz", f"{W}old.xml", f"{W}gone.xml", f"{W}missing.xml"))
    found.add(f"{W}1.xml.gz", gzip.compress(urlset(f"{W}a", f"{W}b").encode()), headers={"ETag": '"1"'})
    found.add(f"{W}old.xml", b"", 301, reason="Moved", headers={"Location": "/new.xml"})
    found.add(f"{W}new.xml", urlset(f"{W}c"))
    found.add(f"{W}gone.xml", b"gone", 410, reason="Gone")
    return found.add(W, HTML)


def facts(tree: AbstractSitemap) -> list[Any]:
    """What a tree says, apart from times."""
    return [
        (
            type(sitemap).__name__,
            sitemap.url,
            [page.url for page in sitemap.pages],
            len(sitemap.sub_sitemaps),
            sitemap.problem_counts,
            sitemap.transport and replace(sitemap.transport, seconds=None, fetched_at=None),
        )
        for sitemap in (tree, *tree.all_sitemaps())
    ]


def names(tree: AbstractSitemap) -> dict[str, str]:
    """The sitemaps by the ends of their URLs, and their pages or what is wrong with them."""
    return {
        sitemap.url.removeprefix(W): sitemap.short_reason
        if isinstance(sitemap, InvalidSitemap)
        else " ".join(page.url.removeprefix(W) for page in sitemap.pages)
        for sitemap in tree.all_sitemaps()
    }


TREE = {
    "robots.txt": "",
    "index.xml": "",
    "1.xml.gz": "a b",
    "new.xml": "c",
    "gone.xml": "410 Gone",
    "missing.xml": "not in the archive",
}


def wacz(method: int) -> Callable[[bytes], bytes]:
    def pack(data: bytes) -> bytes:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", method) as archive:
            archive.writestr("datapackage.json", "{}")
            archive.writestr("pages/pages.jsonl", "{}")
            archive.writestr("archive/data.warc.gz", data)
        return file.getvalue()

    return pack


def plain(data: bytes) -> bytes:
    return gzip.decompress(data)


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "a.warc.gz": bytes,
    "a.warc": plain,
    "a.wacz": wacz(zipfile.ZIP_STORED),
    "deflated.wacz": wacz(zipfile.ZIP_DEFLATED),
    "one-member.warc.gz": lambda data: gzip.compress(plain(data)),
    "a.warc.zst": lambda data: zstandard.compress(plain(data)),
    "no-name": bytes,
}


@pytest.mark.parametrize("name", FORMS)
def test_every_kind_of_archive_is_a_source(name: str, tmp_path: Path) -> None:
    """A WARC or a WACZ is recognized by its content and read as the site in it."""
    path = tmp_path / name
    path.write_bytes(FORMS[name](site().file.getvalue()))
    assert find_source(path).kind is SourceKind.WEB_ARCHIVE
    with usp.open(path) as stream:
        tree = stream.read()
    assert (tree.url, names(tree), stream.source) == (W, TREE, str(path))
    assert tree.outcome.kind is OutcomeKind.COMPLETE


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("sitemap.xml.gz", gzip.compress(urlset(f"{W}a").encode())),
        ("sitemap.warc", urlset(f"{W}a").encode()),
        ("text.txt", b"WARC"),
        ("empty.warc.gz", b""),
        ("site.zip", b"PK\3\4"),
    ],
)
def test_what_is_no_archive_is_read_as_before(name: str, data: bytes, tmp_path: Path) -> None:
    """A name makes no archive, and neither does compression."""
    path = tmp_path / name
    path.write_bytes(data)
    assert find_source(path).kind in (SourceKind.FILE, SourceKind.ARCHIVE)


def test_facts_come_from_the_records(tmp_path: Path) -> None:
    """Times, statuses, ETags and sizes are those of the responses; of what is not in the archive nothing is known."""
    tree = usp.open(site().saved(tmp_path / "a.warc.gz")).read()
    found = {sitemap.url.removeprefix(W): sitemap.transport for sitemap in tree.all_sitemaps()}
    first, moved, gone, missing = (found[name] for name in ("1.xml.gz", "new.xml", "gone.xml", "missing.xml"))
    assert first is not None
    assert moved is not None
    assert gone is not None
    assert missing is not None
    assert (first.status, first.fetched_at, first.etag, first.seconds) == (200, NOW, '"1"', None)
    assert (moved.requested_url, moved.url, moved.is_redirected) == (f"{W}old.xml", f"{W}new.xml", True)
    assert (gone.status, gone.fetched_at) == (410, NOW)
    assert (missing.status, missing.fetched_at, missing.seconds) == (None, None, None)


def test_asyncio_gives_the_same(tmp_path: Path) -> None:
    """Both ways to open an archive give the same tree."""
    path = site().saved(tmp_path / "a.warc.gz")

    async def read() -> AbstractSitemap:
        return await usp.aio.open(path).read()

    assert facts(asyncio.run(read())) == facts(usp.open(path).read())


def test_a_file_cut_short_gives_its_whole_records(tmp_path: Path) -> None:
    """Cut in the middle of a record, an archive has what came before."""
    data = site().file.getvalue()
    places = {record.url: record for record in read_records(io.BytesIO(data))}
    path = tmp_path / "cut.warc.gz"
    path.write_bytes(data[: places[f"{W}new.xml"].offset + 30])
    tree = usp.open(path).read()
    expected = {
        **TREE,
        "old.xml": f"redirects to {W}new.xml, which is not in the archive, of which a part is missing",
        "gone.xml": "not in the archive, of which a part is missing",
        "missing.xml": "not in the archive, of which a part is missing",
    }
    del expected["new.xml"]
    assert names(tree) == expected


@pytest.mark.parametrize(
    "url", ["http://[::1", "http://h:99999/", "http:///", "http://a b/", "http://-/", "http://\ud7ff/"], ids=ascii
)
def test_records_whose_url_is_none_cost_nothing_else(tmp_path: Path, url: str) -> None:
    """A sitemap or a robots.txt at something that is no URL is skipped. The rest of the archive is read."""
    recorder = Recorder()
    for path in ("robots.txt", "sitemap.xml"):
        recorder.add("http://x.invalid/" + path, ROBOTS if path == "robots.txt" else urlset(f"{W}0"))
    start = gzip.decompress(recorder.file.getvalue()).replace(b"http://x.invalid/", url.encode())
    file = site().saved(tmp_path / "a.warc")

    def pages() -> list[list[str]]:
        return [[page.url for page in tree.all_pages()] for tree in usp.open(file).read_all()]

    expected = pages()
    assert all(expected)
    file.write_bytes(start + gzip.decompress(file.read_bytes()))
    assert pages() == expected


def test_the_newest_response_counts(tmp_path: Path) -> None:
    """Of several responses the newest success or redirect counts, whatever their order in the file."""
    found = Recorder()
    found.add(f"{W}sitemap.xml", urlset(f"{W}new"), date=NOW)
    found.add(f"{W}sitemap.xml", urlset(f"{W}old"), date=NOW - timedelta(days=1))
    found.add(f"{W}sitemap.xml", b"", 503, date=NOW + timedelta(days=1))
    found.add(f"{W}sitemap.xml", b"", 304, date=NOW + timedelta(days=2))
    assert names(usp.open(found.saved(tmp_path / "a.warc.gz")).read()) == {"sitemap.xml": "new"}


def revisited(recorder: Recorder, url: str, original: Original, *, not_modified: bool = False) -> None:
    head = response_head(304 if not_modified else 200, "X", [("ETag", '"2"')])
    recorder.writer.revisit(url, head, original, NOW + timedelta(days=2), not_modified=not_modified)


@pytest.mark.parametrize("not_modified", [True, False])
def test_a_revisit_leads_to_its_original(tmp_path: Path, not_modified: bool) -> None:
    """A revisit stands for the response that it names by URL and date, even if there is a newer one of that URL."""
    first, second = urlset(f"{W}first").encode(), urlset(f"{W}second").encode()
    found = Recorder().add(f"{W}sitemap.xml", first).add(f"{W}sitemap.xml", second, date=NOW + timedelta(days=1))
    original = Original(f"{W}sitemap.xml", NOW, Payload(first).digest)
    revisited(found, f"{W}sitemap.xml", original, not_modified=not_modified)
    tree = usp.open(found.saved(tmp_path / "a.warc.gz")).read()
    assert names(tree) == {"sitemap.xml": "first"}
    (sitemap,) = tree.all_sitemaps()
    assert sitemap.transport is not None
    assert (sitemap.transport.fetched_at, sitemap.transport.status) == (NOW + timedelta(days=2), 200)


def test_a_revisit_may_refer_to_another_url_and_file(tmp_path: Path) -> None:
    """The original may be at another URL, in another file of the archive, and found by its digest alone."""
    body = urlset(f"{W}a").encode()
    first = Recorder().add(f"{W}sitemap.xml", body)
    second = Recorder()
    revisited(second, f"{W}copy.xml", Original(f"{W}elsewhere.xml", NOW, Payload(body).digest))
    revisited(second, f"{W}lost.xml", Original(f"{W}lost.xml", NOW, Payload(b"lost").digest))
    archive = Archive([str(second.saved(tmp_path / "2.warc.gz")), str(first.saved(tmp_path / "1.warc.gz"))])
    response = ArchiveClient(archive).get(f"{W}copy.xml")
    assert isinstance(response, AbstractWebClientSuccessResponse)
    assert response.raw_data() == body
    lost = ArchiveClient(archive).get(f"{W}lost.xml")
    assert isinstance(lost, WebClientErrorResponse)
    assert (lost.message(), lost.status_code(), lost.retryable()) == ("not in the archive", 404, False)


def test_redirects_in_a_circle_end(tmp_path: Path) -> None:
    """A redirect to itself is a failure, and so is one to a URL that makes no sense."""
    found = site().add(f"{W}missing.xml", b"", 302, headers={"Location": "missing.xml"})
    found.add(f"{W}gone.xml", b"", 302, headers={"Location": "http://[::1"}, date=NOW + timedelta(days=1))
    tree = usp.open(found.saved(tmp_path / "a.warc.gz")).read()
    assert names(tree) == {**TREE, "missing.xml": "more than 10 redirects", "gone.xml": "302 OK"}


@pytest.mark.parametrize(("reason", "is_limited"), [("length", True), ("time", False), ("disconnect", False)])
def test_a_body_that_was_cut_is_not_whole(tmp_path: Path, reason: str, is_limited: bool) -> None:
    """What the crawler cut short is read as far as it goes, and the tree says so."""
    cut = urlset(f"{W}a", f"{W}b")[:-25]
    path = Recorder().add(f"{W}sitemap.xml", cut, truncated=reason).saved(tmp_path / "a.warc.gz")
    (sitemap,) = usp.open(path).read().all_sitemaps()
    assert sitemap.transport is not None
    assert (sitemap.pages[0].url, sitemap.transport.is_whole, sitemap.transport.is_limited) == (
        f"{W}a",
        False,
        is_limited,
    )


def test_limits_hold(tmp_path: Path) -> None:
    """A sitemap that is longer than the limit is cut there."""
    pages = [f"{W}{number}" for number in range(20_000)]
    path = Recorder().add(f"{W}sitemap.xml", urlset(*pages)).saved(tmp_path / "a.warc.gz")
    (sitemap,) = usp.open(path, limits=Limits(max_sitemap_bytes=200_000)).read().all_sitemaps()
    assert sitemap.transport is not None
    assert (sitemap.transport.size, sitemap.transport.is_limited) == (200_000, True)
    assert 0 < len(sitemap.pages) < 20_000


def test_each_site_is_a_source(tmp_path: Path) -> None:
    """Sites with sitemaps have a tree each. Pages, feeds, and hosts that only serve sitemaps of others have none."""
    found = site()
    found.add(
        "http://robots.example/robots.txt", "Sitemap: http://cdn.example/1.xml\nSitemap: http://cdn.example/2.xml"
    )
    found.add("http://cdn.example/1.xml", index("http://cdn.example/3.xml"))
    found.add("http://cdn.example/2.xml", urlset("http://robots.example/a"))
    found.add("https://alone.example:8443/any/thing?x=1", urlset("https://alone.example:8443/a"))
    found.add("https://page.example/", HTML)
    found.add("https://feed.example/feed.xml", "<rss version='2.0'><channel></channel></rss>")
    found.add("https://empty.example/robots.txt", "User-agent: *\nDisallow:\n")
    found.add("dns:www.example.org", "20261117 127.0.0.1")
    path = found.saved(tmp_path / "a.warc.gz")
    with usp.open(path) as stream:
        trees = {tree.url: tree for tree in stream.read_all()}
    assert list(trees) == [W, "http://robots.example/", "https://alone.example:8443/"]
    assert [source.target for source in stream.sources] == [f"{path}: {url}" for url in trees]
    assert names(trees[W]) == TREE
    assert [page.url for page in trees["https://alone.example:8443/"].all_pages()] == ["https://alone.example:8443/a"]
    assert [page.url for page in trees["http://robots.example/"].all_pages()] == ["http://robots.example/a"]
    one = usp.open(path, url="https://alone.example:8443/x").read()
    assert facts(one) == facts(trees["https://alone.example:8443/"])
    with pytest.raises(InvalidArgumentError, match="has 3 sites; say with url which one to read"):
        find_source(path).stream()


@pytest.mark.parametrize(
    ("name", "body", "is_found"),
    [
        ("a", urlset(f"{W}p").encode(), True),
        ("a", gzip.compress(urlset(f"{W}p").encode()), True),
        ("a", b"\xef\xbb\xbf" + urlset(f"{W}p").encode(), True),
        ("a", urlset(f"{W}p").encode("utf-16"), True),
        ("a", b"<!-- made by x -->\n<?xml-stylesheet href='x'?>" + urlset(f"{W}p").encode(), True),
        ("a", f"<x:urlset xmlns:x='y'><x:url><x:loc>{W}p</x:loc></x:url></x:urlset>".encode(), True),
        ("a.txt", f"{W}p\n".encode(), False),
        ("sitemap.txt", f"{W}p\n".encode(), True),
        ("sitemap.txt", b"Not here, sorry\n", False),
        ("sitemap-rss.xml", f"<rss><channel><item><link>{W}p</link></item></channel></rss>".encode(), True),
        ("feed.xml", f"<rss><channel><item><link>{W}p</link></item></channel></rss>".encode(), False),
        ("sitemap.html", HTML, False),
        ("a", HTML + urlset(f"{W}p").encode(), False),
    ],
)
def test_sitemaps_that_nothing_leads_to_are_found_by_their_content(
    name: str, body: bytes, is_found: bool, tmp_path: Path
) -> None:
    """A urlset or an index is a sitemap whatever its name; a feed or a text only if it is called one."""
    path = Recorder().add(W + name, body).add(f"{W}robots.txt", "User-agent: *").saved(tmp_path / "a.warc.gz")
    tree = usp.open(path).read()
    assert [page.url for page in tree.all_pages()] == ([f"{W}p"] if is_found else [])


def test_an_archive_without_sitemaps_is_an_error(tmp_path: Path) -> None:
    """The error says what was looked for, and in how many records."""
    path = Recorder().add(W, HTML).add(f"{W}a", HTML).saved(tmp_path / "a.warc.gz")
    with pytest.raises(InvalidArgumentError, match=r"no sitemap in .*a\.warc\.gz: .* in 2 records, with .* of 2 URLs"):
        usp.open(path)


def test_zstd_that_is_not_installed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of a .warc.zst says what to install; another zstd file is read as a file."""
    data = FORMS["a.warc.zst"](site().file.getvalue())
    (tmp_path / "a.warc.zst").write_bytes(data)
    (tmp_path / "other").write_bytes(data)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "compression", None)
    with pytest.raises(MissingExtraError, match="zstandard"):
        find_source(tmp_path / "a.warc.zst")
    assert find_source(tmp_path / "other").kind is SourceKind.FILE


def test_options_choose_what_is_read(tmp_path: Path) -> None:
    """Options that need no network work; those of the network do nothing."""
    path = site().saved(tmp_path / "a.warc.gz")
    tree = usp.open(path, exclude=["1.xml.gz"], concurrency=9, politeness=usp.Politeness(crawl_delay=True)).read()
    assert "1.xml.gz" not in names(tree)
    assert [page.url for page in tree.all_pages()] == [f"{W}c"]
    assert names(usp.open(path, use_known_paths=False, use_robots=False).read()) == {}


def test_progress_is_told_while_an_archive_is_read(tmp_path: Path) -> None:
    """Whoever waits for a large archive learns how far it was read."""
    found = site()
    for number in range(2_000):
        found.add(f"{W}page-{number}", HTML)
    path = found.saved(tmp_path / "a.warc.gz")
    events: list[tuple[str, int, int]] = []
    find_sources(path, progress=lambda *event: events.append(event))
    assert [event[0] for event in events] == [str(path)] * 4
    assert all(0 < event[1] < event[2] == path.stat().st_size for event in events)


def test_little_is_kept_of_each_record(tmp_path: Path) -> None:
    """An archive keeps no bodies: less than a kilobyte for each response."""
    found = site()
    page = HTML + b"x" * 20_000
    for number in range(5_000):
        found.add(f"{W}page-{number}", page)
    path = found.saved(tmp_path / "a.warc.gz")
    tracemalloc.start()
    try:
        archive = Archive([str(path)])
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(archive) == 5_007
    assert kept < 5_000 * 700
    assert peak < kept + 2_000_000


def test_a_body_in_tiny_chunks_takes_little_memory(tmp_path: Path) -> None:
    """A body of a million chunks takes as much memory as any other of its size."""
    size = 2_000_000
    block = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"2\r\nab\r\n" * (size // 2) + b"0\r\n\r\n"
    start = f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {W}sitemap.xml\r\nContent-Length: {len(block)}"
    (tmp_path / "a.warc").write_bytes(start.encode() + b"\r\n\r\n" + block + b"\r\n\r\n")
    client = ArchiveClient(Archive([str(tmp_path / "a.warc")]))
    found: list[Any] = []
    peak = peak_of(lambda: found.append(client.get(f"{W}sitemap.xml")))
    assert found[0].raw_data() == b"ab" * (size // 2)
    assert peak < 4 * size


def test_a_huge_robots_txt_beside_other_sites_takes_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where an archive has many sites, usp reads no more of a file than of any sitemap to see what it lists."""
    monkeypatch.setattr("usp.sources.records.MAX_SITEMAP_BYTES", 1_000_000)
    recorder = site().add("https://other.example/robots.txt", b"Sitemap: /a.xml\n" + b"#" * 50_000_000)
    path = recorder.saved(tmp_path / "a.warc.gz")
    assert peak_of(lambda: find_sources(path)) < 10_000_000


def test_long_urls_with_the_word_sitemap_take_no_time(tmp_path: Path) -> None:
    """A URL that says "sitemap" hundreds of times costs no more than another of its length."""

    def seconds(word: str) -> float:
        recorder = Recorder()
        for number in range(100):
            recorder.add(f"{W}{number}{word * (1_900 // len(word))}/", b"http://h/")
        path = recorder.saved(tmp_path / "a.warc.gz")
        started = time.thread_time()
        Archive([str(path)])
        return time.thread_time() - started

    assert seconds("sitemap") < 3 * seconds("address") + 0.1


@pytest.mark.parametrize("header", ["WARC-Target-URI", "WARC-Payload-Digest"])
def test_long_headers_are_not_kept(tmp_path: Path, header: str) -> None:
    """A file of 60 kilobytes, with a URL or a digest of 200,000 characters in each record, takes little memory."""
    body = b"HTTP/1.1 200 OK\r\n\r\n" + urlset(f"{W}a").encode()
    with (tmp_path / "a.warc.gz").open("wb") as file:
        for number in range(150):
            values = {"WARC-Target-URI": f"{W}{number}/sitemap.xml", "WARC-Payload-Digest": f"sha1:{number}"}
            values[header] += "a" * 200_000
            headers = "".join(f"{name}: {value}\r\n" for name, value in values.items()).encode()
            start = b"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: %d\r\n" % len(body)
            file.write(gzip.compress(start + headers + b"\r\n" + body + b"\r\n\r\n"))
        file.write(site().file.getvalue())
    tracemalloc.start()
    try:
        archive = Archive([str(tmp_path / "a.warc.gz")])
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert archive.find(f"{W}index.xml") is not None
    assert kept < 1_000_000


def test_members_of_a_wacz_that_share_their_bytes(tmp_path: Path) -> None:
    """A zip archive that names the same bytes a hundred times is read once; other members are read as well."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("archive/a.warc.gz", site().file.getvalue())
        first = archive.infolist()[0]
        for number in range(100):
            again = zipfile.ZipInfo(f"archive/a{number}.warc.gz")
            again.header_offset, again.CRC = first.header_offset, first.CRC
            again.file_size, again.compress_size = first.file_size, first.compress_size
            archive.filelist.append(again)
        archive.writestr("archive/b.warc.gz", Recorder().add(f"{W}other.xml", urlset(f"{W}b").encode()).file.getvalue())
    path = tmp_path / "a.wacz"
    path.write_bytes(packed.getvalue())
    found = Archive([str(path)])
    assert f"{W}other.xml" in found
    alone = tmp_path / "a.warc.gz"
    alone.write_bytes(site().file.getvalue())
    assert found.records == Archive([str(alone)]).records + 1


@pytest.mark.parametrize("form", ["deflated in a zip archive", "many records in one member"])
def test_archives_that_unpack_to_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    """An archive that unpacks to far more than its own size is refused before it fills the disk."""
    monkeypatch.setattr("usp.warc.parts._MANY_BYTES", 1_000_000)
    recorder = site()
    recorder.add(f"{W}large.xml", b" " * 30_000_000)
    data = gzip.decompress(recorder.file.getvalue())
    path = tmp_path / ("a.wacz" if "zip" in form else "a.warc.gz")
    path.write_bytes(wacz(zipfile.ZIP_DEFLATED)(data) if "zip" in form else gzip.compress(data))
    with pytest.raises(InvalidArgumentError, match="too large to unpack"):
        Archive([str(path)])


@given(st.lists(st.tuples(st.integers(0, 10_000), st.binary(max_size=10), st.integers(0, 100)), max_size=4))
def test_no_damage_raises(tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[int, bytes, int]]) -> None:
    """Whatever is damaged in an archive, there is a tree, or an error that says that there is no sitemap."""
    data = _DATA
    for at, inserted, removed in edits:
        at %= len(data) + 1
        data = data[:at] + inserted + data[at + removed :]
    path = tmp_path_factory.mktemp("damaged") / "a.warc.gz"
    path.write_bytes(data)
    try:
        for tree in usp.open(path).read_all():
            list(tree.all_pages())
    except InvalidArgumentError as error:
        assert "no sitemap in" in str(error)  # noqa: PT017 -- there may be none


_DATA = site().file.getvalue()


@pytest.mark.cli
@pytest.mark.export
def test_commands_read_archives(tmp_path: Path, run_here: RunHere) -> None:
    """All commands take an archive, and none of them requests anything."""
    path = str(site().saved(tmp_path / "a.warc.gz"))
    assert run_here("ls", "-f", "pages", path).stdout == f"{W}a\n{W}b\n{W}c\n"
    assert "410" in run_here("ls", "--sitemaps", path).stdout
    assert f"{W}missing.xml, which could not be fetched: not in the archive" in run_here("check", path).stdout
    run_here("export", path, "-o", str(tmp_path / "pages.csv"))
    assert (tmp_path / "pages.csv").read_text().count(W) >= 3
    assert "3" in run_here("sql", path, "select count(*) from pages").stdout
    assert "This is the file to check" in run_here("check", path, "-o", path).stderr


def test_a_check_takes_the_archive_for_a_site(tmp_path: Path) -> None:
    """Rules on a site apply: the sitemaps of an archive are checked like those of a website."""
    report = check(site().saved(tmp_path / "a.warc.gz"))
    assert {problem.code for problem in report.problems()} >= {"T807", "T809"}
    assert report.outcome.kind is OutcomeKind.COMPLETE


PAGES: dict[str, tuple[int, dict[str, str], bytes]] = {
    "/robots.txt": (200, {"Content-Type": "text/plain"}, b"User-agent: *\nSitemap: {base}/index.xml\n"),
    "/index.xml": (
        200,
        {"Content-Type": "application/xml", "ETag": '"i"', "Last-Modified": "Sun, 01 Nov 2026 00:00:00 GMT"},
        index("{base}/a.xml", "{base}/b.xml", "{base}/moved.xml", "{base}/gone.xml", "{base}/html.xml").encode(),
    ),
    "/a.xml": (200, {"Content-Type": "application/xml"}, urlset("{base}/1", "{base}/2").encode()),
    "/b.xml": (
        200,
        {"Content-Type": "application/xml", "Content-Encoding": "gzip"},
        gzip.compress(urlset("http://x.example/3").encode()),
    ),
    "/moved.xml": (302, {"Location": "{base}/there.xml"}, b"moved"),
    "/there.xml": (200, {"Content-Type": "application/xml"}, urlset("{base}/4").encode()),
    "/gone.xml": (404, {}, b"gone"),
    "/html.xml": (200, {"Content-Type": "text/html"}, HTML),
    "/sitemap.xml": (200, {"Content-Type": "application/xml"}, urlset("{base}/5").encode()),
}


def recorded(server: Server, paths: Iterable[str]) -> Recorder:
    """Fetch and record every path."""
    found = Recorder()
    for path in paths:
        connection = http.client.HTTPConnection(server.address)
        connection.request("GET", path)
        answer = connection.getresponse()
        head = response_head(answer.status, answer.reason, answer.getheaders())
        written = found.writer.response(server.url + path, head, Payload(answer.read()), NOW)
        sent = request_head("GET", path, [("Host", server.address)])
        found.writer.request(server.url + path, sent, NOW, concurrent_to=written.record_id)
        connection.close()
    return found


@pytest.mark.network
def test_the_tree_is_the_one_that_was_fetched(tmp_path: Path) -> None:
    """An archive of all that a tree requests gives that tree: classes, URLs, pages, problems and transports."""
    with serve(PAGES) as server:
        fetched = usp.open(f"{server.url}/").read()
        path = recorded(server, dict.fromkeys(server.paths())).saved(tmp_path / "a.warc.gz")
    assert facts(usp.open(path).read()) == facts(fetched)


@pytest.mark.network
@pytest.mark.skipif(shutil.which("wget") is None, reason="wget is not installed")
def test_what_wget_records_is_read(tmp_path: Path) -> None:
    """An archive that wget made gives the same tree as the server, redirects and all."""
    with serve(PAGES) as server:
        fetched = usp.open(f"{server.url}/", use_known_paths=False).read()
        urls = [server.url + path for path in PAGES if path != "/sitemap.xml"]
        command = ["wget", "-q", "--tries=1", "--compression=none", "--warc-file=a", "--header=Accept-Encoding: gzip"]
        subprocess.run([*command, "-O", "out", *urls], cwd=tmp_path, check=False, timeout=60)
    tree = usp.open(tmp_path / "a.warc.gz").read()
    assert [row[:5] for row in facts(tree)] == [row[:5] for row in facts(fetched)]
