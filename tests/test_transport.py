"""How a document came: what each driver says of it, in which places, and what it is not part of."""

from __future__ import annotations

import asyncio
import gzip
import os
import pickle
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from support import FakeClient, FakeResponse, Server, index, serve, urlset
from usp.aio import sitemap_tree_for_homepage as aio_tree
from usp.documents import Document, Failure
from usp.fetch_parse import SitemapFetcher
from usp.limits import Limits
from usp.objects.outcome import Cause
from usp.objects.problem import Problem, Problems
from usp.objects.sitemap import AbstractSitemap, IndexWebsiteSitemap, InvalidSitemap, PagesTextSitemap, PagesXMLSitemap
from usp.objects.transport import Transport, utc_time
from usp.politeness import Politeness
from usp.tree import sitemap_from_bytes, sitemap_from_file, sitemap_from_str, sitemap_tree_for_homepage
from usp.walk import Walk
from usp.web_client.abstract_client import WebClientErrorResponse

pytestmark = pytest.mark.network

H = "http://h/"
BODY = gzip.compress(urlset("{base}/1").encode(), mtime=0)
XML = {"Content-Type": "application/xml", "Content-Encoding": "gzip", "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"}
XML["ETag"] = 'W/"a-1"'
SITE = {
    "/robots.txt": (200, {"Content-Type": "text/plain"}, b"Sitemap: {base}/index.xml\nSitemap: {base}/moved.xml\n"),
    "/index.xml": (200, {}, index("{base}/old.xml", "{base}/new.xml", "{base}/gone.xml").encode()),
    "/old.xml": (301, {"Location": "{base}/new.xml"}, b""),
    "/new.xml": (200, XML, BODY),
    "/moved.xml": (302, {"Location": "{base}/gone.xml"}, b""),
}
Fetch = Callable[[str], IndexWebsiteSitemap]


def inline(url: str) -> IndexWebsiteSitemap:
    return sitemap_tree_for_homepage(url, concurrency=1, use_known_paths=False)


def threads(url: str) -> IndexWebsiteSitemap:
    return sitemap_tree_for_homepage(url, concurrency=4, use_known_paths=False)


def on_asyncio(url: str) -> IndexWebsiteSitemap:
    return asyncio.run(aio_tree(url, use_known_paths=False))


def by_path(tree: AbstractSitemap, site: Server) -> dict[str, Transport | None]:
    """The transport of each sitemap, by its declared path."""
    found = {}
    for sitemap in tree.all_sitemaps():
        declared = sitemap.url if sitemap.transport is None else sitemap.transport.requested_url
        found[declared.removeprefix(site.url)] = sitemap.transport
    return found


def had(transport: Transport | None) -> Transport:
    assert transport is not None
    return transport


@pytest.mark.parametrize("fetch", [inline, threads, on_asyncio])
def test_every_driver_tells(fetch: Fetch) -> None:
    """Each document has its URLs, status, headers, size, time and duration, whichever driver fetched it."""
    with serve(SITE) as site:
        before = datetime.now(UTC)
        tree = fetch(site.url)
        after = datetime.now(UTC)
        found = by_path(tree, site)
    assert tree.transport is None
    assert list(found) == ["/robots.txt", "/index.xml", "/old.xml", "/new.xml", "/gone.xml", "/moved.xml"]
    new = had(found["/new.xml"])
    assert (new.url, new.status, new.size) == (f"{site.url}/new.xml", 200, len(BODY))
    assert (new.content_type, new.content_encoding) == ("application/xml", "gzip")
    assert (new.last_modified, new.etag) == (datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC), 'W/"a-1"')
    for transport in map(had, found.values()):
        assert transport.seconds is not None
        assert transport.fetched_at is not None
        assert 0 < transport.seconds < (after - before).total_seconds()
        assert before < transport.fetched_at < after
        assert transport.fetched_at.utcoffset() == timedelta(0)
    robots = had(found["/robots.txt"])
    assert (robots.content_type, robots.content_encoding) == ("text/plain", None)
    assert (robots.last_modified, robots.etag) == (None, None)


@pytest.mark.parametrize("fetch", [inline, threads, on_asyncio])
def test_redirects_are_of_the_place(fetch: Fetch) -> None:
    """Two nodes share a document; only the one that declared another URL than the one that answered is redirected."""
    with serve(SITE) as site:
        found = by_path(fetch(site.url), site)
    old, new = had(found["/old.xml"]), had(found["/new.xml"])
    assert old.url == new.url == f"{site.url}/new.xml"
    assert (old.is_redirected, new.is_redirected) == (True, False)


@pytest.mark.parametrize("fetch", [inline, threads, on_asyncio])
def test_failures_tell_too(fetch: Fetch) -> None:
    """A sitemap that could not be fetched has its status, if there was one, and its duration."""
    with serve(SITE) as site:
        found = by_path(fetch(site.url), site)
    for path in ("/gone.xml", "/moved.xml"):
        failed = had(found[path])
        assert (failed.status, failed.size, failed.content_type) == (404, 0, None)
        assert failed.seconds is not None


def test_the_last_try_counts() -> None:
    """The seconds are those of the try that succeeded, without earlier tries and waits."""
    tries = Counter[str]()

    def look_up(url: str) -> object:
        if url != H + "sitemap.xml":
            return None
        tries[url] += 1
        if tries[url] < 3:
            sleep(0.2)
            return WebClientErrorResponse("503 Service Unavailable", retryable=True)
        return urlset(H)

    tree = sitemap_tree_for_homepage(H, FakeClient(look_up), politeness=Politeness(retry_seconds=0.2))
    (sitemap,) = tree.sub_sitemaps
    assert tries[sitemap.url] == 3
    assert had(sitemap.transport).seconds == pytest.approx(0.0, abs=0.15)


def test_errors_that_clients_raise() -> None:
    """If a client raises, or returns something that is not a response, the URL and the duration are known."""
    site = {H + "robots.txt": f"Sitemap: {H}a.xml\nSitemap: {H}b.xml", H + "a.xml": OSError("no"), H + "b.xml": 1}
    tree = sitemap_tree_for_homepage(H, FakeClient(site), use_known_paths=False)
    for sitemap in tree.sub_sitemaps[0].sub_sitemaps:
        assert isinstance(sitemap, InvalidSitemap)
        transport = had(sitemap.transport)
        assert (transport.requested_url, transport.url, transport.status) == (sitemap.url, sitemap.url, None)
        assert transport.seconds is not None


def test_a_client_that_knows_no_status() -> None:
    """A success whose status raises is a success all the same."""

    class Shy(FakeResponse):
        def status_code(self) -> int:
            raise NotImplementedError

    site = {H + "sitemap.xml": Shy(urlset(H).encode(), H + "sitemap.xml")}
    (sitemap,) = sitemap_tree_for_homepage(H, FakeClient(site)).sub_sitemaps
    assert isinstance(sitemap, PagesXMLSitemap)
    assert had(sitemap.transport).status is None


def test_a_body_that_broke_off() -> None:
    """A document whose transfer broke off has a transport."""
    url = H + "sitemap.xml"
    partial = FakeResponse(urlset(H)[:-9].encode(), url, {"Content-Type": "text/xml"})
    cut = WebClientErrorResponse("cut off", retryable=False, partial=partial, status=200)
    (sitemap,) = sitemap_tree_for_homepage(H, FakeClient({url: cut})).sub_sitemaps
    transport = had(sitemap.transport)
    assert (transport.status, transport.content_type, transport.size) == (200, "text/xml", len(partial.data))


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)),
        ("Sun, 06 Nov 1994 08:49:37 +0200", datetime(1994, 11, 6, 6, 49, 37, tzinfo=UTC)),
        ("Sun, 06 Nov 1994 08:49:37 -0000", datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)),
        ("1994-11-06", None),
        ("Sun, 99 Nov 1994 08:49:37 GMT", None),
        ("Fri, 31 Dec 9999 23:59:59 -2300", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_last_modified(header: str, expected: datetime | None) -> None:
    """Last-Modified is read as a date in UTC; a value that is not a date is left out."""
    url = H + "sitemap.xml"
    client = FakeClient({url: FakeResponse(urlset(H).encode(), url, {"Last-Modified": header})})
    (sitemap,) = sitemap_tree_for_homepage(H, client).sub_sitemaps
    assert had(sitemap.transport).last_modified == expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ('"abc"', '"abc"'),
        (' W/"abc" ', 'W/"abc"'),
        ("not-quoted", "not-quoted"),
        ("", None),
        ('"' + "a" * 254 + '"', '"' + "a" * 254 + '"'),
        ('"' + "a" * 255 + '"', None),
        ('"\x1b[31m"', None),
        ('"é"', None),
    ],
)
def test_etag(header: str, expected: str | None) -> None:
    """An ETag is kept as the server writes it; one that is long, or cannot be printed or sent back, is left out."""
    url = H + "sitemap.xml"
    client = FakeClient({url: FakeResponse(urlset(H).encode(), url, {"ETag": header})})
    (sitemap,) = sitemap_tree_for_homepage(H, client).sub_sitemaps
    assert had(sitemap.transport).etag == expected


@pytest.mark.parametrize("fetch", [inline, threads, on_asyncio])
def test_causes_of_failures(fetch: Fetch) -> None:
    """A failure without a status is either refused by usp, or its host could not be reached."""
    children = ["http://10.0.0.1/private.xml", "{base}/loop.xml", "http://nosuch.invalid/x.xml", "{base}/gone.xml"]
    loop = (302, {"Location": "{base}/loop.xml"}, b"")
    with serve({"/robots.txt": (200, {}, "\n".join(f"Sitemap: {url}" for url in children).encode())}) as site:
        site.pages["/loop.xml"] = loop
        (robots,) = fetch(site.url).sub_sitemaps
    found = [sub.cause for sub in robots.sub_sitemaps if isinstance(sub, InvalidSitemap)]
    assert found == [Cause.REFUSED, Cause.REFUSED, Cause.UNREACHABLE, Cause.NOT_FOUND]


def test_what_was_never_requested() -> None:
    """The root, loops, sitemaps beyond a limit, and those that a callback left out have no transport."""
    site = {
        H + "robots.txt": f"Sitemap: http://other/\nSitemap: {H}a.xml\nSitemap: {H}b.xml",
        H + "a.xml": index(H + "a.xml"),
        H + "b.xml": urlset(H),
    }

    def unknown(**options: Any) -> list[str]:
        tree = sitemap_tree_for_homepage(H, FakeClient(site), use_known_paths=False, **options)
        return [sitemap.url for sitemap in (tree, *tree.all_sitemaps()) if sitemap.transport is None]

    assert unknown(cross_host="same-host") == [H, "http://other/", H + "a.xml"]
    site[H + "robots.txt"], site[H + "a.xml"] = f"Sitemap: {H}a.xml\nSitemap: {H}b.xml", urlset(H)
    assert unknown(limits=Limits(max_sitemaps=2)) == [H, H + "b.xml"]


def test_credentials_stay_out() -> None:
    """The homepage's user and password appear nowhere in a transport."""
    with serve({"/sitemap.xml": (200, {}, urlset("{base}/1").encode())}) as site:
        tree = sitemap_tree_for_homepage(site.url.replace("//", "//me:secret@"), use_robots=False)
    assert "secret" not in repr([sitemap.transport for sitemap in tree.sub_sitemaps])


def test_redirects_compare_as_requested() -> None:
    """URLs that are requested alike are equal: the case of the host, default ports and fragments do not matter."""
    assert not Transport("HTTP://H:80/a?#b", "http://h/a").is_redirected
    assert Transport("http://h/a", "http://h/a?b").is_redirected
    assert Transport("http://h/a", "https://h/a").is_redirected


def test_not_part_of_a_value() -> None:
    """Trees are equal whatever their transport, and pickling keeps it."""
    one, two = PagesXMLSitemap(H, []), PagesXMLSitemap(H, [], transport=Transport(H, H, 200))
    assert one == two
    assert hash(one) == hash(two)
    site = {H + "sitemap.xml": urlset(H)}
    tree = sitemap_tree_for_homepage(H, FakeClient(site))
    assert tree.sub_sitemaps[0].parser is not None
    again = pickle.loads(pickle.dumps(tree))
    assert again == tree
    assert again.sub_sitemaps[0].transport == had(tree.sub_sitemaps[0].transport)
    assert again.sub_sitemaps[0].parser is None


def test_the_walk_is_handed_it() -> None:
    """The walk reads no clock: each node gets the transport that came with its document or failure."""
    came = {
        H + "i.xml": Document(H + "i.xml", index(H + "x", H + "y").encode()),
        H + "x": Document(H + "y", urlset(H).encode(), transport=Transport(H + "x", H + "y", 200, seconds=3.5)),
    }
    walk = Walk([SitemapFetcher(H + "i.xml", 0), SitemapFetcher(H + "z", 0)])
    while (wanted := walk.next()) is not None:
        failure = Failure("no", 500, transport=Transport(wanted.url, wanted.url, 500))
        walk.receive(wanted, came.get(wanted.url, failure))
    index_node, failed = walk.sitemaps()
    assert index_node.transport is None
    assert [sitemap.transport for sitemap in index_node.sub_sitemaps] == [
        Transport(H + "x", H + "y", 200, seconds=3.5),
        Transport(H + "y", H + "y", 200, seconds=3.5),
    ]
    assert failed.transport == Transport(H + "z", H + "z", 500)


def test_files(tmp_path: Path) -> None:
    """A file has its modification time and size; a text or bytes have no transport."""
    path = tmp_path / "a.xml"
    path.write_text(urlset(H))
    os.utime(path, (1_000_000_000.5, 1_000_000_000.5))
    sitemap = sitemap_from_file(path, url=H + "a.xml")
    written = datetime(2001, 9, 9, 1, 46, 40, 500_000, tzinfo=UTC)
    assert sitemap.transport == Transport(H + "a.xml", H + "a.xml", size=len(urlset(H)), fetched_at=written)
    assert sitemap_from_str(urlset(H)).transport is None
    assert sitemap_from_bytes(urlset(H).encode()).transport is None


def test_times_that_no_date_can_say() -> None:
    """A file's modification time may be any number."""
    assert utc_time(0) == datetime(1970, 1, 1, tzinfo=UTC)
    assert utc_time(-1.0) == datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert (utc_time(1e15), utc_time(-1e15), utc_time(1e300)) == (None, None, None)


def test_problem_counts() -> None:
    """Counts are exact, although only the first problems of a code are kept; problems of the caller count too."""
    sitemap = sitemap_from_str("\n".join([H, *("no URL",) * 100]))
    assert isinstance(sitemap, PagesTextSitemap)
    assert len(sitemap.problems) == 20
    assert sitemap.problem_counts == {"P412": 100}
    assert list(sitemap.all_problems()) == list(sitemap.problems)
    assert pickle.loads(pickle.dumps(sitemap)).problem_counts == {"P412": 100}
    one = Problem("X102", "bare", H)
    by_hand = PagesXMLSitemap(H, [], problems=iter([one, one]))
    assert (by_hand.problems, by_hand.problem_counts) == ((one, one), {"X102": 2})
    found_later = PagesXMLSitemap(H, [], problems=lambda: [one])
    assert (found_later.problems, found_later.problem_counts) == ((one,), {"X102": 1})


def test_a_cut_sitemap_keeps_the_true_counts() -> None:
    """If a limit cuts a sitemap, its problem is added to the counts of the document."""
    site = {H + "sitemap.xml": "\n".join([H + "1", *("no URL",) * 100, H + "2"])}
    tree = sitemap_tree_for_homepage(H, FakeClient(site), limits=Limits(max_pages=1))
    (sitemap,) = tree.sub_sitemaps
    assert isinstance(sitemap.problems, Problems)
    assert sitemap.problem_counts == {"C901": 1, "P412": 100}
