"""The front doors, end to end: a real server through requests, and the same site through a fake client."""

from __future__ import annotations

import asyncio
import base64
import gzip
import inspect
import logging
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent, indent

import pytest

import usp.aio
import usp.limits
import usp.politeness
import usp.tree
from support import FIXTURES, FakeClient, FakeResponse, Server, index, plain, serve, urlset
from usp import aio
from usp.cli.demo import demo_site
from usp.drivers.fetch import get_with_retries
from usp.exceptions import SitemapException, UspError
from usp.fetch_parse import SitemapFetcher
from usp.objects.sitemap import (
    AbstractSitemap,
    IndexRobotsTxtSitemap,
    IndexWebsiteSitemap,
    IndexXMLSitemap,
    InvalidSitemap,
    PagesAtomSitemap,
    PagesRSSSitemap,
    PagesTextSitemap,
    PagesXMLSitemap,
)
from usp.tree import sitemap_from_bytes, sitemap_from_file, sitemap_from_str, sitemap_tree_for_homepage
from usp.web_client.abstract_client import AbstractWebClient, AbstractWebClientSuccessResponse, WebClientErrorResponse
from usp.web_client.requests_client import RequestsWebClient

pytestmark = pytest.mark.wheel

B = "{base}"
SITE = {
    "/robots.txt": (200, {}, f"User-agent: *\nSitemap: {B}/index.xml\nsitemap: {B}/moved.xml\n".encode()),
    "/index.xml": (
        200,
        {},
        index(*(f"{B}/{name}" for name in ("a.xml.gz", "b.xml", "c.rss", "d.atom", "e.txt", "f.xml", "g"))).encode(),
    ),
    "/a.xml.gz": (200, {"Content-Type": "application/gzip"}, b"gzip"),
    "/b.xml": (200, {"Content-Encoding": "gzip"}, b"gzip"),
    "/c.rss": (200, {}, b"<rss><channel><item><link>http://x/rss</link></item></channel></rss>"),
    "/d.atom": (200, {}, b"<feed><entry><link href='http://x/atom'/></entry></feed>"),
    "/e.txt": (200, {"Content-Type": "text/plain"}, b"http://x/text\n"),
    "/f.xml": (200, {"Content-Type": "text/html"}, b"<html>"),
    "/moved.xml": (301, {"Location": "/real.xml"}, b""),
    "/real.xml": (200, {"Content-Type": "text/html"}, urlset("http://x/moved").encode()),
    "/sitemap.xml": (302, {"Location": "/index.xml"}, b""),
    "/sitemap_news.xml": (200, {}, urlset("http://x/known").encode()),
    "/extra/sitemap.xml": (200, {}, urlset("http://x/extra").encode()),
}
PACKED = {"/a.xml.gz": urlset("http://x/a"), "/b.xml": urlset("http://x/b?1&amp;2")}


def pages() -> dict[str, tuple[int, dict[str, str], bytes]]:
    packed = {path: (*SITE[path][:2], gzip.compress(text.encode())) for path, text in PACKED.items()}
    return SITE | packed


def fake(base: str) -> FakeClient:
    """The same site as values: what a server would answer, redirects followed."""

    def look_up(url: str) -> object:
        status, headers, body = pages().get(url.removeprefix(base), (404, {}, b""))
        if "Location" in headers:
            return FakeResponse(
                pages()[headers["Location"]][2].replace(b"{base}", base.encode()), base + headers["Location"]
            )
        if status != 200:
            return None
        return FakeResponse(body.replace(b"{base}", base.encode()), url, headers)

    return FakeClient(look_up)


def outline(sitemap: AbstractSitemap) -> list[str]:
    lines = [f"{type(sitemap).__name__} {sitemap.url} {[page.url for page in sitemap.pages]}"]
    return lines + ["  " + line for child in sitemap.sub_sitemaps for line in outline(child)]


def test_whole_tree_through_requests() -> None:
    """A whole tree is fetched from a real server; the same walk driven by a fake gives an equal tree."""
    with serve(pages()) as site:
        tree = sitemap_tree_for_homepage(f"{site.url}/some/page?x=1#y")
        assert outline(tree) == [
            f"IndexWebsiteSitemap {site.url}/ []",
            f"  IndexRobotsTxtSitemap {site.url}/robots.txt []",
            f"    IndexXMLSitemap {site.url}/index.xml []",
            f"      PagesXMLSitemap {site.url}/a.xml.gz ['http://x/a']",
            f"      PagesXMLSitemap {site.url}/b.xml ['http://x/b?1&2']",
            f"      PagesRSSSitemap {site.url}/c.rss ['http://x/rss']",
            f"      PagesAtomSitemap {site.url}/d.atom ['http://x/atom']",
            f"      PagesTextSitemap {site.url}/e.txt ['http://x/text']",
            f"      InvalidSitemap {site.url}/f.xml []",
            f"      InvalidSitemap {site.url}/g []",
            f"    PagesXMLSitemap {site.url}/real.xml ['http://x/moved']",
            f"  PagesXMLSitemap {site.url}/sitemap_news.xml ['http://x/known']",
        ]
        assert sitemap_tree_for_homepage(site.url, fake(site.url)) == tree
        assert pickle.loads(pickle.dumps(tree)) == tree
        assert len(site.connections) <= 9, "a tree has one session, and its connections are used again"
        twice = {path for path in site.paths() if site.paths().count(path) > 1}
        assert twice == set(), "nothing is fetched twice, not even what is listed and redirected to"


def test_transport_and_file_compression() -> None:
    """A gzipped file may be sent gzipped; truncated transport gzip is used as far as it goes, with a problem."""
    text = gzip.compress("\n".join(f"http://x/{i}" for i in range(5_000)).encode())
    site_pages = {
        "/robots.txt": (200, {}, b"Sitemap: {base}/both.xml.gz\nSitemap: {base}/cut.txt"),
        "/both.xml.gz": (200, {"Content-Encoding": "gzip"}, gzip.compress(gzip.compress(urlset("http://x/").encode()))),
        "/cut.txt": (200, {"Content-Encoding": "gzip"}, text[: len(text) // 2]),
    }
    with serve(site_pages) as site:
        both, cut = sitemap_tree_for_homepage(site.url, use_known_paths=False).sub_sitemaps[0].sub_sitemaps
    assert (len(both.pages), both.problems) == (1, ())
    assert 1_000 < len(cut.pages) < 5_000
    assert [problem.code for problem in cut.problems] == ["T801"]


def test_a_limit_is_noted() -> None:
    """A body over the client's limit is truncated, with a problem; one of exactly that length is not.

    A line without its end may be half a URL, and is dropped.
    """
    body = b"http://x/1\nhttp://x/2\n"
    with serve({"/a.txt": (200, {}, body)}) as site, RequestsWebClient() as client:
        for limit, codes, pages in ((len(body), [], 2), (len(body) - 1, ["T804"], 1)):
            client.set_max_response_data_length(limit)
            sitemap = SitemapFetcher(f"{site.url}/a.txt", 0, client).sitemap()
            assert [problem.code for problem in sitemap.problems] == codes
            assert len(sitemap.pages) == pages


def test_order_of_requests() -> None:
    """robots.txt is requested first, then its sitemaps, then the known paths in their fixed order."""
    client = fake("http://h")
    sitemap_tree_for_homepage("http://h/", client)
    assert [url.removeprefix("http://h/") for url in client.asked] == [
        *("robots.txt", "index.xml", "a.xml.gz", "b.xml", "c.rss", "d.atom", "e.txt", "f.xml", "g", "moved.xml"),
        *("sitemap.xml", "sitemap.xml.gz", "sitemap_index.xml", "sitemap-index.xml", "sitemap_index.xml.gz"),
        *("sitemap-index.xml.gz", ".sitemap.xml", "sitemap", "admin/config/search/xmlsitemap"),
        *("sitemap/sitemap-index.xml", "sitemap_news.xml", "sitemap-news.xml", "sitemap_news.xml.gz"),
        "sitemap-news.xml.gz",
    ]


def test_options() -> None:
    """Options switch robots.txt and the known paths off, and add paths."""
    assert outline(
        sitemap_tree_for_homepage("http://h/", fake("http://h"), use_robots=False, use_known_paths=False)
    ) == ["IndexWebsiteSitemap http://h/ []"]
    client = fake("http://h")
    tree = sitemap_tree_for_homepage("http://h/", client, use_robots=False, extra_known_paths={"extra/sitemap.xml"})
    assert [s.url for s in tree.sub_sitemaps] == [
        "http://h/index.xml",
        "http://h/sitemap_news.xml",
        "http://h/extra/sitemap.xml",
    ]
    assert len(client.asked) == len(set(client.asked))


@pytest.mark.parametrize("paths", [["/extra/sitemap.xml"], ("extra/sitemap.xml",), {"extra/sitemap.xml"}])
def test_extra_paths_in_any_collection(paths: list[str]) -> None:
    """Extra paths come in a list, tuple or set, with or without a slash."""
    tree = sitemap_tree_for_homepage("http://h/", fake("http://h"), use_robots=False, extra_known_paths=paths)
    assert tree.sub_sitemaps[-1].url == "http://h/extra/sitemap.xml"


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("extra_known_paths", "extra.xml", "several paths"),
        ("extra_known_paths", 5, "several paths"),
        ("extra_known_paths", [1], "several paths"),
        ("extra_known_paths", [b"x", "y"], "several paths"),
        ("recurse_callback", 5, "must be a function"),
        ("recurse_list_callback", "x", "must be a function"),
        ("recurse_list_callback", lambda urls, level, parents: None, "must return a list"),
        ("recurse_list_callback", lambda urls, level, parents: "http://h/", "must return a list"),
        ("web_client", 5, "must be an AbstractWebClient"),
    ],
)
def test_arguments_that_make_no_sense(option: str, value: object, message: str) -> None:
    """A wrong argument raises an exception of one base class whose message says what to pass."""
    options = {"web_client": fake("http://h"), option: value}
    with pytest.raises(UspError, match=message):
        sitemap_tree_for_homepage("http://h/", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("homepage", "normalize", "root"),
    [
        ("http://h", True, "http://h/"),
        ("http://h/a/b?c", True, "http://h/"),
        ("http://h/a/b", False, "http://h/a/b/"),
        ("http://h/a/", False, "http://h/a/"),
        ("https://u:p@h:8080/a", True, "https://h:8080/"),
    ],
)
def test_homepage(homepage: str, normalize: bool, root: str) -> None:
    """The root's URL is the homepage with a slash and without credentials; its path is stripped by default."""
    client = FakeClient({})
    tree = sitemap_tree_for_homepage(homepage, client, normalize_homepage_url=normalize)
    assert tree == IndexWebsiteSitemap(root, [])
    assert client.asked[0].replace("u:p@", "") == f"{root}robots.txt"


@pytest.mark.parametrize("homepage", ["", "example.org", "ftp://h/", "http://", "//h/", None])
def test_bad_homepage(homepage: str) -> None:
    """A homepage that is not an HTTP URL raises, and the message says what to pass."""
    with pytest.raises(SitemapException, match=r"https://example\.org/"):
        sitemap_tree_for_homepage(homepage, FakeClient({}))


def test_callbacks_through_the_front_door() -> None:
    """The callbacks of the front door reach every sitemap."""
    tree = sitemap_tree_for_homepage(
        "http://h/",
        fake("http://h"),
        recurse_callback=lambda url, level, parents: not url.endswith("gz"),
        recurse_list_callback=lambda urls, level, parents: urls[:2],
    )
    assert [s.url for s in tree.all_sitemaps()] == [
        "http://h/robots.txt",
        "http://h/index.xml",
        "http://h/b.xml",
        "http://h/real.xml",
        "http://h/sitemap_news.xml",
    ]


class MinimalResponse(AbstractWebClientSuccessResponse):
    def __init__(self, body: bytes) -> None:
        self.body = body

    def status_code(self) -> int:
        return 200

    def status_message(self) -> str:
        return "OK"

    def header(self, case_insensitive_name: str) -> str | None:
        return None

    def raw_data(self) -> bytes:
        return self.body

    def url(self) -> str:
        return "http://h/robots.txt"


def test_a_client_that_raises() -> None:
    """An error that says that a request failed costs one sitemap, never the tree."""
    client = FakeClient(
        {
            "http://h/robots.txt": "Sitemap: http://h/a.xml\nSitemap: http://h/b.xml\nSitemap: http://h/c.xml",
            "http://h/a.xml": OSError("kaboom"),
            "http://h/b.xml": "<urlset><url><loc>http://h/1</loc></url></urlset>",
            "http://h/c.xml": object(),
        }
    )
    a, b, c = sitemap_tree_for_homepage("http://h/", client, use_known_paths=False).sub_sitemaps[0].sub_sitemaps
    assert isinstance(a, InvalidSitemap)
    assert a.reason == "Unable to fetch sitemap from http://h/a.xml: OSError: kaboom"
    assert [page.url for page in b.pages] == ["http://h/1"]
    assert isinstance(c, InvalidSitemap)
    assert "neither a success nor an error" in c.reason


def test_fetcher_on_its_own() -> None:
    """A fetcher fetches its sitemap and all below it."""
    client = fake("http://h")
    sitemap = SitemapFetcher("http://h/index.xml", 0, client).sitemap()
    assert isinstance(sitemap, IndexXMLSitemap)
    assert len(sitemap.sub_sitemaps) == 7
    with serve(pages()) as site:
        sitemap = SitemapFetcher(f"{site.url}/b.xml", recursion_level=3).sitemap()
    assert [page.url for page in sitemap.pages] == ["http://x/b?1&2"]


class Flaky(FakeClient):
    """Fails a number of times with this response, then answers."""

    def __init__(self, failures: int, failure: WebClientErrorResponse) -> None:
        answers = iter([failure] * failures)
        super().__init__(lambda url: next(answers, urlset("http://h/1")))


@pytest.mark.parametrize(
    ("failures", "retryable", "tries", "sleeps"),
    [(0, True, 1, []), (2, True, 3, [1, 1]), (9, True, 5, [1, 1, 1, 1]), (9, False, 1, [])],
)
def test_retries(failures: int, retryable: bool, tries: int, sleeps: list[float]) -> None:
    """A retryable failure is tried five times, a second apart, with no wait after the last try."""
    slept: list[float] = []
    client = Flaky(failures, WebClientErrorResponse("503 Busy", retryable))
    get_with_retries("http://h/s.xml", client, sleep=slept.append)
    assert len(client.asked) == tries
    assert slept == sleeps


def test_problems_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Problems are logged at INFO; a document that is not a sitemap at WARNING, unless it is a known path."""
    caplog.set_level(logging.DEBUG, logger="usp")
    site = {"http://h/a.xml": urlset("/1"), "http://h/b.xml": "<html>", "http://h/sitemap.xml": "<html>"}
    client = FakeClient(site | {"http://h/robots.txt": "Sitemap: http://h/a.xml\nSitemap: http://h/b.xml"})
    sitemap_tree_for_homepage("http://h/", client)
    by_level = {(record.levelno, record.message.partition(":")[0][:18]) for record in caplog.records}
    assert ": error: U501 relative URL" in caplog.text
    assert (logging.WARNING, "No parsers support") in by_level
    assert [r.levelno for r in caplog.records if "sitemap.xml: its root" in r.message] == [logging.INFO]


@pytest.mark.parametrize(("quiet", "level"), [(True, logging.INFO), (False, logging.WARNING)])
def test_expected_404(quiet: bool, level: int, caplog: pytest.LogCaptureFixture) -> None:
    """A 404 is logged at INFO if it is expected, else at WARNING."""
    caplog.set_level(logging.DEBUG, logger="usp")
    get_with_retries("http://h/s.xml", FakeClient({}), quiet_404=quiet)
    (record,) = (record for record in caplog.records if "failed: 404 Not Found" in record.message)
    assert record.levelno == level
    assert record.name.startswith("usp")


def test_the_library_prints_nothing() -> None:
    """The library never prints, even if logging is not set up."""
    with serve({"/robots.txt": (200, {}, b"Sitemap: /missing.xml\nSitemap: ftp://x")}) as site:
        program = f"import usp; print(usp.sitemap_tree_for_homepage({site.url!r}, use_known_paths=False).problems)"
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("<Problems: none>\n", "")


def test_sitemap_from_str() -> None:
    """A text is read as a sitemap; nothing is fetched."""
    sitemap = sitemap_from_str(index("http://h/a.xml", "http://h/b.xml"))
    assert sitemap == IndexXMLSitemap(
        "http://usp-local-dummy.local/",
        [InvalidSitemap(f"http://h/{x}.xml", "Un-fetched child sitemap") for x in "ab"],
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (urlset("http://h/é"), PagesXMLSitemap),
        ("<rss><channel/></rss>", PagesRSSSitemap),
        ("<feed/>", PagesAtomSitemap),
        ("http://h/1\n", PagesTextSitemap),
        ("garbage", InvalidSitemap),
        ("", InvalidSitemap),
        ('<?xml version="1.0" encoding="UTF-16"?><urlset/>', PagesXMLSitemap),
        ('<?xml version="1.0" encoding="GBK"?><urlset><url><loc>http://h/新闻</loc></url></urlset>', PagesXMLSitemap),
        ("\ud800", InvalidSitemap),
    ],
)
def test_kinds_of_text(text: str, expected: type[AbstractSitemap]) -> None:
    """Each kind of sitemap is recognised; a str is never decoded again by the encoding that it declares."""
    sitemap = sitemap_from_str(text)
    assert type(sitemap) is expected
    assert all(page.url in text for page in sitemap.pages)
    assert [p.code for p in sitemap.problems if p.code.startswith("E")] == []


def test_sitemap_from_bytes() -> None:
    """Bytes are inflated and decoded by their content; the URL resolves relative URLs and tells a robots.txt."""
    packed = gzip.compress(urlset("/a").encode("utf-16"))
    assert [p.url for p in sitemap_from_bytes(packed, "http://h/s.xml").pages] == ["http://h/a"]
    robots = sitemap_from_bytes(b"Sitemap: http://h/a.xml", url="http://h/robots.txt")
    assert isinstance(robots, IndexRobotsTxtSitemap)
    assert [s.url for s in robots.sub_sitemaps] == ["http://h/a.xml"]
    assert sitemap_from_bytes(memoryview(b"http://h/1")).pages == sitemap_from_bytes(b"http://h/1").pages  # type: ignore[arg-type]
    with pytest.raises(SitemapException, match="sitemap_from_str"):
        sitemap_from_bytes("<urlset/>")  # type: ignore[arg-type]
    with pytest.raises(SitemapException, match="not an HTTP"):
        sitemap_from_bytes(b"", url="/tmp/x")


def test_sitemap_from_file(tmp_path: Path) -> None:
    """The content of a file decides how it is read, and its name tells a robots.txt."""
    assert len(sitemap_from_file(FIXTURES / "gzip.xml.gz").pages) == 3
    assert len(sitemap_from_file(os.fspath(FIXTURES / "clean-three.xml")).pages) == 3
    (tmp_path / "relative.xml").write_text(urlset("/a"))
    assert sitemap_from_file(tmp_path / "relative.xml").pages[0].url == "http://usp-local-dummy.local/a"
    assert sitemap_from_file(tmp_path / "relative.xml", url="http://h/s.xml").pages[0].url == "http://h/a"
    assert sitemap_from_str(urlset("/a"), url="http://h/s.xml").pages[0].url == "http://h/a"
    (tmp_path / "robots.txt").write_text("Sitemap: http://h/a.xml\n")
    assert isinstance(sitemap_from_file(tmp_path / "robots.txt"), IndexRobotsTxtSitemap)
    odd = tmp_path / os.fsdecode(b"\xff.xml")
    odd.write_text(urlset("http://h/1"))
    assert len(sitemap_from_file(odd).pages) == 1
    with pytest.raises(FileNotFoundError):
        sitemap_from_file(tmp_path / "missing.xml")


def test_a_tree_as_plain_data() -> None:
    """The dictionary of a tree has all of its pages and sitemaps."""
    tree = sitemap_tree_for_homepage("http://h/", fake("http://h"), use_known_paths=False)
    as_dict = plain(tree.to_dict())
    assert as_dict["sub_sitemaps"][0]["sub_sitemaps"][0]["sub_sitemaps"][0] == {
        "url": "http://h/a.xml.gz",
        "pages": [{"url": "http://x/a", "priority": "0.5", "sitemap_url": "http://h/a.xml.gz"}],
    }


def test_a_client_that_is_no_subclass() -> None:
    """Any object with the two methods of a client is one."""

    class Duck:
        def __init__(self, inner: FakeClient) -> None:
            self.get = inner.get
            self.set_max_response_data_length = inner.set_max_response_data_length

    client = fake("http://h")
    duck = Duck(fake("http://h"))
    assert sitemap_tree_for_homepage("http://h/", duck) == sitemap_tree_for_homepage("http://h/", client)  # type: ignore[arg-type]


def test_a_client_written_for_another_library_version() -> None:
    """A client with only the methods of 1.8.1 works, and learns the limit before its first request."""

    class Client(AbstractWebClient):
        def set_max_response_data_length(self, max_response_data_length: int | None) -> None:
            self.limit = max_response_data_length

        def get(self, url: str) -> MinimalResponse | WebClientErrorResponse:
            assert self.limit == 104_857_600
            if url == "http://h/robots.txt":
                return MinimalResponse(b"Sitemap: http://h/a.xml")
            return WebClientErrorResponse(message="Not found", retryable=False)

    tree = sitemap_tree_for_homepage("http://h/", Client())
    assert outline(tree) == [
        "IndexWebsiteSitemap http://h/ []",
        "  IndexRobotsTxtSitemap http://h/robots.txt []",
        "    InvalidSitemap http://h/a.xml []",
    ]


@pytest.mark.slow
def test_unreachable_site(server_that_is_gone: str) -> None:
    """A site that does not answer has an empty tree that says why."""
    tree = sitemap_tree_for_homepage(server_that_is_gone)
    assert tree.sub_sitemaps == []
    (problem,) = tree.problems
    assert problem.code == "R704"
    assert "refused" in problem.message


@pytest.fixture
def server_that_is_gone() -> str:
    with serve({}) as site:
        gone: Server = site
    return gone.url


@pytest.mark.parametrize("is_awaited", [False, True])
@pytest.mark.slow
def test_credentials_of_the_homepage(is_awaited: bool, caplog: pytest.LogCaptureFixture) -> None:
    """User and password of the homepage's URL are sent to its origin, and appear in neither the tree nor the log."""
    caplog.set_level(logging.DEBUG, logger="usp")
    pages = {
        "/robots.txt": (302, {"Location": "{base}/robots"}, b""),
        "/robots": (200, {}, b"Sitemap: {base}/a.xml\nSitemap: /sitemap.xml"),
        "/a.xml": (200, {}, urlset("http://x/1").encode()),
        "/sitemap.xml": (200, {}, urlset("http://x/2").encode()),
    }
    with serve(pages) as site:
        homepage = site.url.replace("//", "//user:s3cret@")
        if is_awaited:
            tree = asyncio.run(aio.sitemap_tree_for_homepage(homepage))
        else:
            tree = sitemap_tree_for_homepage(homepage)
        sent = {headers.get("Authorization") for _, headers in site.requests}
        assert sent == {"Basic " + base64.b64encode(b"user:s3cret").decode()}
        assert [page.url for page in tree.all_pages()] == ["http://x/1", "http://x/2"]
        assert [s.url for s in tree.all_sitemaps()][1:] == [f"{site.url}/a.xml", f"{site.url}/sitemap.xml"]
        assert "s3cret" not in repr(tree.to_dict()) + caplog.text


def examples() -> dict[str, str]:
    """Return the examples in the docstrings of the front doors and their options: indented code with an import."""
    documented = {
        f"{module.__name__}.{name}": getattr(module, name)
        for module in (usp.tree, usp.aio, usp.limits, usp.politeness)
        for name in module.__all__
        if callable(getattr(module, name))
    } | {"usp.open": usp.open}
    blocks = {
        name: re.findall(r"(?:^(?: {4}.*)?\n)+", f"{inspect.getdoc(of)}\n", re.MULTILINE)
        for name, of in documented.items()
    }
    return {name: dedent(block) for name, found in blocks.items() for block in found if "import" in block}


@pytest.mark.slow
@pytest.mark.parametrize("example", examples().values(), ids=examples())
def test_examples_in_docstrings_run(
    example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The example in the docstring of a front door runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old").mkdir()
    (tmp_path / "old/sitemap.xml.gz").write_bytes(gzip.compress(urlset("http://x/1").encode()))
    if "async " in example or "await " in example:
        example = f"import asyncio\nasync def main():\n{indent(example, '    ')}\nasyncio.run(main())"
    with demo_site() as homepage:
        example = re.sub(r"https://www\.example\.org/|(?<=\")example\.org(?=\")", homepage, example)
        assert "example.org" not in example
        exec(compile(example, "docstring", "exec"), {})  # noqa: S102 -- running it is the test
    if "print(" in example:
        assert capsys.readouterr().out


def test_every_front_door_has_an_example() -> None:
    """Every function that fetches a website shows how."""
    doors = {f"{module}.{name}" for module in ("usp.tree", "usp.aio") for name in usp.aio.__all__}
    assert doors - {"usp.tree.open"} | {"usp.open"} <= set(examples())
