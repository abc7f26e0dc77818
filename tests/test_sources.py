"""`usp.open` and `usp.aio.open`: what a target is, and how each kind of source is read, from real servers and files."""

from __future__ import annotations

import asyncio
import gc
import gzip
import io
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import usp
import usp.aio
from sockets import Peer, RawServer, resolving, self_signed, server_context, talk
from support import FakeClient, Server, index, serve, urlset
from usp.exceptions import InvalidArgumentError, TreeInterrupted, UspError
from usp.limits import Limits
from usp.objects.outcome import Outcome
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
from usp.politeness import Politeness
from usp.progress import Progress
from usp.sources import SourceKind, SourceStream, find_source, find_sources
from usp.web_client.asyncio_client import AsyncioWebClient
from usp.web_client.requests_client import RequestsWebClient

pytestmark = pytest.mark.network

ONCE = Politeness(tries=1)
W = "https://www.example.org/"
RSS = "<rss version='2.0'><channel><item><link>{base}/news</link></item></channel></rss>"
ATOM = "<feed xmlns='http://www.w3.org/2005/Atom'><entry><link href='{base}/news'/></entry></feed>"
HTML = "<!DOCTYPE html><html><head><title>Shop</title></head><body>Hello</body></html>"

#: A site: one sitemap that robots.txt names, and documents that nothing names.
DOCUMENTS: dict[str, str | bytes] = {
    "/robots.txt": "User-agent: *\nSitemap: {base}/index.xml\n",
    "/index.xml": index("{base}/a.xml", "{base}/b.xml.gz"),
    "/a.xml": urlset("{base}/1", "{base}/2"),
    "/b.xml.gz": gzip.compress(urlset("https://www.example.org/3").encode()),
    "/deep/er/other.xml": urlset("{base}/4"),
    "/list": "{base}/5\n{base}/6\n",
    "/feed": RSS,
    "/atom": ATOM,
    "/": HTML,
    "/page": HTML,
    "/search?q=maps": urlset("{base}/7"),
}


def as_pages(documents: dict[str, str | bytes]) -> dict[str, tuple[int, dict[str, str], bytes]]:
    return {path: (200, {}, body.encode() if isinstance(body, str) else body) for path, body in documents.items()}


@pytest.fixture
def site() -> Iterator[Server]:
    with serve(as_pages(DOCUMENTS)) as server:
        yield server


@dataclass
class Result:
    """What a stream gave, and what it knows at its end."""

    sitemaps: list[AbstractSitemap]
    sources: list[str]
    above: list[list[str]]
    trees: tuple[AbstractSitemap, ...]
    notes: tuple[str, ...]
    names: dict[str, str]
    outcome: Outcome

    @property
    def tree(self) -> AbstractSitemap:
        (tree,) = self.trees
        return tree

    @property
    def urls(self) -> list[str]:
        return [page.url for tree in self.trees for page in tree.all_pages()]


Read = Callable[..., Result]


def read_plain(targets: Any, *, client_options: dict[str, Any] | None = None, **options: Any) -> Result:
    client = None if client_options is None else RequestsWebClient(**client_options)
    sitemaps, sources, above = [], [], []
    with usp.open(targets, client, **options) as stream:
        for sitemap in stream:
            sitemaps.append(sitemap)
            sources.append(stream.source)
            above.append([ancestor.url for ancestor in stream.ancestors])
    return Result(sitemaps, sources, above, stream.trees, stream.notes, stream.names, stream.outcome)


def read_async(targets: Any, *, client_options: dict[str, Any] | None = None, **options: Any) -> Result:
    async def read() -> Result:
        client = None if client_options is None else AsyncioWebClient(**client_options)
        sitemaps, sources, above = [], [], []
        try:
            async with usp.aio.open(targets, client, **options) as stream:
                async for sitemap in stream:
                    sitemaps.append(sitemap)
                    sources.append(stream.source)
                    above.append([ancestor.url for ancestor in stream.ancestors])
        finally:
            if client is not None:
                await client.close()
        return Result(sitemaps, sources, above, stream.trees, stream.notes, stream.names, stream.outcome)

    return asyncio.run(read())


@pytest.fixture(params=[read_plain, read_async], ids=["plain", "asyncio"])
def read(request: pytest.FixtureRequest) -> Read:
    """Return a function that reads targets to the end: once plain, once on asyncio."""
    function: Read = request.param
    return function


# Sites and hosts.


def assert_is_whole_site(result: Result, base: str) -> None:
    assert isinstance(result.tree, IndexWebsiteSitemap)
    assert result.tree.url == f"{base}/"
    assert result.urls == [f"{base}/1", f"{base}/2", "https://www.example.org/3"]
    assert result.outcome.kind == "complete"


@pytest.mark.parametrize("rest", ["", "/", "#top"])
def test_a_site(read: Read, site: Server, rest: str) -> None:
    """A URL without a path is a site: robots.txt, what it names, and known paths."""
    result = read(site.url + rest)
    assert_is_whole_site(result, site.url)
    assert result.notes == ()
    assert {"/robots.txt", "/index.xml", "/a.xml", "/b.xml.gz", "/sitemap.xml"} < set(site.paths())


@pytest.mark.parametrize("rest", ["", "/"])
def test_a_host_that_speaks_http_only(read: Read, site: Server, rest: str) -> None:
    """A host is asked over https first; where that is no TLS, it is read over http, with a note."""
    result = read(site.address + rest)
    assert_is_whole_site(result, site.url)
    (note,) = result.notes
    assert note.startswith(f"https://{site.address}/ cannot be reached (TLS failed: ")
    assert note.endswith(f"); reading {site.url}/")


def test_a_host_with_tls(read: Read, tmp_path: Path) -> None:
    """A host that answers over https is read over https, and nothing is noted."""
    certificate = self_signed(tmp_path)
    with serve(as_pages(DOCUMENTS), server_context(certificate)) as site:
        trusting = {"verify": str(tmp_path / "cert.pem")}
        result = read(site.address, client_options=trusting)
        assert site.url.startswith("https://")
        assert_is_whole_site(result, site.url)
        assert result.notes == ()
        result = read(f"{site.address}/index.xml", client_options=trusting)
        assert result.tree.url == f"{site.url}/index.xml"
        assert (len(result.urls), result.notes) == (3, ())
        result = read(f"me:secret@{site.address}/a.xml", client_options=trusting)
        assert result.tree.url == f"{site.url}/a.xml"
        assert site.requests[-1][1]["Authorization"].startswith("Basic ")


def test_a_wrong_certificate_is_no_reason_for_http(read: Read, tmp_path: Path) -> None:
    """A host whose certificate is wrong is not read over http: somebody may be in between."""
    with serve(as_pages(DOCUMENTS), server_context(self_signed(tmp_path))) as site:
        for target in (site.address, f"{site.address}/index.xml"):
            result = read(target)
            assert result.outcome.kind == "unreachable"
            assert "the certificate is not valid: self-signed certificate" in result.outcome.reason
            assert f"https://{site.address}/" in result.outcome.reason
            assert result.notes == ()
        assert site.requests == []


def respond(peer: Peer) -> None:
    """Answer a plain HTTP request with a document."""
    path = peer.head().split()[1].decode()
    body = DOCUMENTS.get(path)
    data = body.encode() if isinstance(body, str) else body or b""
    host = ":".join(map(str, peer.socket.getsockname()))
    data = data.replace(b"{base}", f"http://{host}".encode())
    peer.send(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (200 if body else 404, len(data)))
    peer.send(data)


@contextmanager
def half_open(do_with_tls: Callable[[Peer], None]) -> Iterator[RawServer]:
    """Serve the site over http. What happens to a TLS handshake is up to the test."""

    def handle(peer: Peer) -> None:
        first = peer.socket.recv(1, socket.MSG_PEEK)
        if first == b"\x16":  # https://www.rfc-editor.org/rfc/rfc8446#section-5.1: a handshake
            do_with_tls(peer)
        elif first:
            respond(peer)

    with talk(handle) as server:
        yield server


@pytest.mark.parametrize(
    ("do_with_tls", "why"),
    [(lambda peer: None, "the connection was closed"), (Peer.hold, "no answer within 0.3 s")],
    ids=["closes", "is silent"],
)
@pytest.mark.slow
def test_a_host_without_tls(read: Read, do_with_tls: Callable[[Peer], None], why: str) -> None:
    """A host that closes TLS connections, or never answers them, is read over http."""
    with half_open(do_with_tls) as server:
        address = f"127.0.0.1:{server.port}"
        result = read(address, politeness=ONCE, limits=Limits(request_seconds=0.3))
        assert result.tree.url == server.url
        assert len(result.urls) == 3
        assert result.notes == (f"https://{address}/ cannot be reached ({why}); reading http://{address}/",)
        result = read(f"{address}/a.xml", politeness=ONCE, limits=Limits(request_seconds=0.3))
        assert result.tree.url == f"http://{address}/a.xml"
        assert result.notes == (f"https://{address}/a.xml cannot be reached ({why}); reading http://{address}/a.xml",)


def closed_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port: int = unused.getsockname()[1]
        return port


def test_https_is_refused(site: Server) -> None:
    """A host that refuses connections to the port of https is read over http."""
    places = {"https://127.0.0.1/": f"https://127.0.0.1:{closed_port()}/", "http://127.0.0.1/": f"{site.url}/"}

    class Ports(RequestsWebClient):
        """Requests the ports of this test in place of 443 and 80."""

        def get(self, url: str) -> Any:
            start = next((start for start in places if url.startswith(start)), "")
            return super().get(places.get(start, "") + url.removeprefix(start))

    with usp.open("127.0.0.1", Ports(), politeness=ONCE) as stream:
        stream.read()
    assert stream.notes == ("https://127.0.0.1/ cannot be reached (connection refused); reading http://127.0.0.1/",)
    assert stream.outcome.kind == "complete"
    with usp.open("127.0.0.1/a.xml", Ports(), politeness=ONCE) as stream:
        assert len(stream.read().pages) == 2


def test_a_user_and_password_are_never_sent_unprotected(read: Read, site: Server) -> None:
    """A host with a user and a password is asked over https only."""
    for target in (f"me:secret@{site.address}", f"me@{site.address}/a.xml"):
        result = read(target, politeness=ONCE)
        assert result.outcome.kind == "unreachable"
        assert "secret" not in repr((result.outcome, result.tree.url, result.notes))
    assert site.requests == []


def test_https_only(site: Server) -> None:
    """A caller can forbid http, and it is not used for a host then."""
    (source,) = find_sources(site.address, https_only=True)
    stream = source.stream(politeness=ONCE)
    assert stream.read().outcome.kind == "unreachable"
    assert (stream.notes, site.requests) == ((), [])


@pytest.mark.parametrize("target", ["nosuch.invalid", "nosuch.invalid/path", "http://nosuch.invalid/"])
def test_a_host_that_does_not_exist(read: Read, target: str) -> None:
    """A host that does not exist gives one reason and no note."""
    result = read(target, client_options={"_resolve": resolving({})})
    assert (result.outcome.kind, result.notes) == ("unreachable", ())
    assert result.outcome.reason.endswith(": no such host")
    assert result.outcome.reason.count("no such host") == 1


def test_nothing_listens(read: Read) -> None:
    """A host that refuses https and http gives one reason and no note."""
    result = read(f"127.0.0.1:{closed_port()}", politeness=ONCE)
    assert (result.outcome.kind, result.notes) == ("unreachable", ())
    assert result.outcome.reason.count("connection refused") == 1


def test_options_are_used_again_for_http(read: Read, site: Server) -> None:
    """Options that can be read only once are not lost when a target is read in another way."""
    extra = iter(["deep/er/other.xml"])
    result = read(site.address, extra_known_paths=extra, exclude=(pattern for pattern in [r"b\.xml"]))
    assert result.urls == [f"{site.url}/{number}" for number in (1, 2, 4)]
    assert "/b.xml.gz" not in site.paths()


# Sitemaps at a URL.


@pytest.mark.parametrize(
    ("path", "kind", "urls", "asked"),
    [
        ("/index.xml", IndexXMLSitemap, ["/1", "/2", W + "3"], ["/index.xml", "/a.xml", "/b.xml.gz"]),
        ("/a.xml", PagesXMLSitemap, ["/1", "/2"], ["/a.xml"]),
        ("/b.xml.gz", PagesXMLSitemap, [W + "3"], ["/b.xml.gz"]),
        ("/deep/er/other.xml", PagesXMLSitemap, ["/4"], ["/deep/er/other.xml"]),
        ("/list", PagesTextSitemap, ["/5", "/6"], ["/list"]),
        ("/feed", PagesRSSSitemap, ["/news"], ["/feed"]),
        ("/atom", PagesAtomSitemap, ["/news"], ["/atom"]),
        ("/search?q=maps", PagesXMLSitemap, ["/7"], ["/search?q=maps"]),
        (
            "/robots.txt",
            IndexRobotsTxtSitemap,
            ["/1", "/2", W + "3"],
            ["/robots.txt", "/index.xml", "/a.xml", "/b.xml.gz"],
        ),
    ],
)
def test_a_sitemap(
    read: Read, site: Server, path: str, kind: type[AbstractSitemap], urls: list[str], asked: list[str]
) -> None:
    """A URL with a path is the sitemap there and everything below it. Nothing else of the site is requested."""
    result = read(site.url + path, concurrency=1)
    assert type(result.tree) is kind
    assert result.tree.url == site.url + path
    assert result.urls == [url if url.startswith("http") else site.url + url for url in urls]
    assert site.paths() == asked
    assert (result.notes, result.outcome.kind) == ((), "complete")
    assert result.sitemaps[0].url == result.tree.url
    assert [sitemap.url for sitemap in result.sitemaps[1:]] == [each.url for each in result.tree.all_sitemaps()]


def test_a_sitemap_that_redirects(read: Read) -> None:
    """A redirect to a sitemap is followed, and the tree has the URL that answered."""
    pages = as_pages(DOCUMENTS) | {"/old": (301, {"Location": "{base}/index.xml"}, b"")}
    with serve(pages) as site:
        result = read(f"{site.url}/old")
        assert (result.tree.url, len(result.urls), result.notes) == (f"{site.url}/index.xml", 3, ())
        pages["/old"] = (301, {"Location": "{base}/"}, b"")  # as some sites do for all that is gone
        result = read(f"{site.url}/old")
        assert_is_whole_site(result, site.url)
        assert len(result.notes) == 1


def test_a_page_is_read_as_its_site(read: Read, site: Server) -> None:
    """A URL of something that is not a sitemap is read as the whole site, with a note."""
    result = read(f"{site.url}/page")
    assert_is_whole_site(result, site.url)
    assert result.notes == (f"{site.url}/page is not a sitemap; reading the whole site {site.url}/",)
    assert site.paths().count("/page") == 1


def test_a_page_of_a_host(read: Read, site: Server) -> None:
    """A host with the path of a page gives both notes: it is read over http, and as a whole site."""
    result = read(f"{site.address}/page")
    assert_is_whole_site(result, site.url)
    over_http, as_site = result.notes
    assert over_http.endswith(f"; reading {site.url}/page")
    assert as_site == f"{site.url}/page is not a sitemap; reading the whole site {site.url}/"


@pytest.mark.parametrize(
    ("status", "kind", "reason"),
    [
        (404, "empty", "404 Not Found"),
        (410, "empty", "410 Gone"),
        (403, "blocked", "403 Forbidden"),
        (401, "blocked", "401 Unauthorized"),
        (503, "blocked", "503 Service Unavailable"),
    ],
)
def test_a_sitemap_that_is_refused(read: Read, status: int, kind: str, reason: str) -> None:
    """A URL that answers with an error is reported as that. The site is not read in its place."""
    with serve(as_pages(DOCUMENTS) | {"/gone.xml": (status, {}, b"")}) as site:
        result = read(f"{site.url}/gone.xml", politeness=ONCE)
        assert site.paths() == ["/gone.xml"]
    assert isinstance(result.tree, InvalidSitemap)
    assert result.outcome.kind == kind
    assert reason in result.outcome.reason
    assert result.notes == ()
    assert result.sitemaps == [result.tree]


@pytest.mark.parametrize("status", [200, 204])
def test_a_sitemap_that_is_empty(read: Read, status: int) -> None:
    """A URL that answers with nothing is not read as its site, either: it is more likely a mistake than a page."""
    with serve(as_pages(DOCUMENTS) | {"/broken.xml": (status, {}, b"")}) as site:
        result = read(f"{site.url}/broken.xml")
        assert site.paths() == ["/broken.xml"]
    assert (result.outcome.kind, result.notes) == ("empty", ())


def test_a_sitemap_that_cannot_be_reached(read: Read) -> None:
    """A URL with a scheme is read with that scheme only."""
    port = closed_port()
    for scheme in ("http", "https"):
        result = read(f"{scheme}://127.0.0.1:{port}/a.xml", politeness=ONCE)
        assert (result.outcome.kind, result.notes) == ("unreachable", ())
        assert result.outcome.reason == f"{scheme}://127.0.0.1:{port}/a.xml: connection refused"


def test_read_as(read: Read, site: Server) -> None:
    """A caller can force one reading: the whole site, or what is at the URL and nothing else."""
    assert_is_whole_site(read(f"{site.url}/a.xml", read_as="site"), site.url)
    assert read(f"{site.url}/a.xml", read_as="site").notes == ()
    site.requests.clear()
    for path in ("/page", "/", ""):
        result = read(site.url + path, read_as="sitemap")
        assert isinstance(result.tree, InvalidSitemap)
        assert (result.outcome.kind, result.notes) == ("empty", ())
    assert site.paths() == ["/page", "/", "/"]
    with pytest.raises(InvalidArgumentError, match="read_as must be auto, site or sitemap, not 'page'"):
        read(site.url, read_as="page")


@pytest.mark.parametrize(
    ("options", "urls", "kind"),
    [
        ({"exclude": "b.xml"}, ["/1", "/2"], "complete"),
        ({"include": "b.xml"}, [W + "3"], "complete"),
        ({"limits": Limits(max_pages=1)}, ["/1"], "partial"),
        ({"limits": Limits(max_sitemaps=2)}, ["/1", "/2"], "partial"),
        ({"recurse_callback": lambda url, level, above: "a.xml" in url}, ["/1", "/2"], "complete"),
        ({"cross_host": "same-host"}, ["/1", "/2", W + "3"], "complete"),
    ],
    ids=["exclude", "include", "max_pages", "max_sitemaps", "recurse_callback", "cross_host"],
)
def test_options_for_a_sitemap(read: Read, site: Server, options: dict[str, Any], urls: list[str], kind: str) -> None:
    """The options of a site work for a sitemap, too."""
    result = read(f"{site.url}/index.xml", **options)
    assert result.urls == [url if url.startswith("http") else site.url + url for url in urls]
    assert result.outcome.kind == kind


# Files.


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the files of a site, which is the current one."""
    public = tmp_path / "public"
    public.mkdir()
    (public / "robots.txt").write_text(f"Sitemap: {W}index.xml\n")
    (public / "index.xml").write_text(index(W + "a.xml", W + "b.xml.gz"))
    (public / "a.xml").write_text(urlset(W + "1", W + "2"))
    (public / "b.xml.gz").write_bytes(gzip.compress(urlset(W + "3").encode()))
    monkeypatch.chdir(tmp_path)
    return public


def test_files(read: Read, folder: Path) -> None:
    """A file is one sitemap, compressed or not; a folder is a site. Paths may be texts or objects."""
    for path in ("public/a.xml", folder / "a.xml", f"{folder}/a.xml", (folder / "a.xml").as_uri()):
        result = read(path)
        assert result.urls == [W + "1", W + "2"]
        assert result.outcome.kind == "complete"
    assert read("public/b.xml.gz").urls == [W + "3"]
    for target in ("public", "public/", folder, folder.as_uri(), "./public", " public\n"):
        result = read(target)
        assert isinstance(result.tree, IndexWebsiteSitemap)
        assert (result.tree.url, result.urls, result.notes) == (W, [W + "1", W + "2", W + "3"], ())
    assert read("public").names[W + "a.xml"] == os.path.join("public", "a.xml")


def test_a_file_of_any_name_is_read(read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is there is read, whatever its name looks like."""
    monkeypatch.chdir(tmp_path)
    for name in ("site map.xml", "übersicht.xml", "[1].xml", "a?b#c.xml", "example.org", "sitemap", "50%.xml", "~"):
        (tmp_path / name).write_text(urlset(W + "1"))
        result = read(name)
        assert (result.urls, result.outcome.kind) == ([W + "1"], "complete")
        assert list(result.names.values()) == [name]


def test_where_files_are_served(read: Read, folder: Path) -> None:
    """`url` says where a file or a folder is served, and must be a URL."""
    (folder / "relative.xml").write_text(urlset("/1"))
    for url in ("https://shop.example/maps/relative.xml", "https://shop.example/maps/"):
        result = read(folder / "relative.xml", url=url)
        assert (result.tree.url, result.urls) == ("https://shop.example/maps/relative.xml", ["https://shop.example/1"])
    assert read(folder, url="https://www.example.org/shop").tree.url == "https://www.example.org/shop/"
    for wrong in ("shop.example", "ftp://shop.example/", ""):
        with pytest.raises(InvalidArgumentError, match="url must be one like"):
            read(folder, url=wrong)
    with pytest.raises(InvalidArgumentError, match="has a URL already"):
        read("https://shop.example/", url=W)
    with pytest.raises(InvalidArgumentError, match="one target only"):
        read(["public/a.xml", "public/index.xml"], url=W)


def test_a_list_of_sitemaps_is_read_alone(read: Read, folder: Path) -> None:
    """An index that is a single file is read alone. A note says so, because that may surprise."""
    result = read("public/index.xml")
    assert [sitemap.url for sitemap in result.sitemaps[1:]] == [W + "a.xml", W + "b.xml.gz"]
    assert all(isinstance(sitemap, InvalidSitemap) for sitemap in result.sitemaps[1:])
    assert result.outcome.kind == "complete"
    assert result.notes == (
        "public/index.xml was read alone, the 2 sitemaps that it lists are not; to read all, give a folder or a URL",
    )
    assert (
        read("public/robots.txt").notes[0].startswith("public/robots.txt was read alone, the sitemap that it lists is")
    )


def test_standard_input(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard input is one sitemap, compressed or not."""
    for content in (urlset("/1").encode(), gzip.compress(urlset("/1").encode())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        result = read("-", url=W + "sitemap.xml")
        assert (result.urls, result.names) == ([W + "1"], {W + "sitemap.xml": "-"})
    monkeypatch.setattr(sys, "stdin", io.StringIO(urlset(W + "ü")))  # as in a notebook
    assert read("-").urls == [W + "ü"]
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(OSError, match="no standard input"):
        read("-")
    with pytest.raises(InvalidArgumentError, match="only once"):
        read(["-", "-"])
    assert find_source(Path("-")).kind is SourceKind.FILE


def test_a_pipe(tmp_path: Path, read: Read) -> None:
    """A named pipe is read to its end, as a shell makes one of <(a command)."""
    pipe = tmp_path / "pipe.xml"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text(urlset(W + "1")), daemon=True)
    writer.start()
    assert read(pipe).urls == [W + "1"]
    writer.join()


@pytest.mark.slow
def test_a_shell_pipe(folder: Path) -> None:
    """What a command writes is read from <(command) and from standard input."""
    if (bash := which("bash")) is None:
        pytest.skip("there is no bash")
    program = "import sys, usp; print([page.url for page in usp.open(sys.argv[1]).read().pages])"
    for command in (
        "python -c P <(cat public/a.xml)",
        "cat public/a.xml | python -c P -",
        "python -c P - <public/a.xml",
    ):
        command = command.replace("python", f"'{sys.executable}'").replace("P", f'"{program}"', 1)
        run = subprocess.run([bash, "-c", command], capture_output=True, text=True, timeout=60, cwd=folder.parent)
        assert run.stdout == f"['{W}1', '{W}2']\n", run.stderr


def test_devices(read: Read) -> None:
    """A device is read up to the limit; what comes out is not a sitemap."""
    assert read("/dev/null").outcome.kind == "empty"
    result = read("/dev/zero", limits=Limits(max_sitemap_bytes=100_000))
    assert result.outcome.kind == "empty"


def test_outcomes_name_files(read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The outcome of files has their names, not the URLs that usp makes up for them."""
    monkeypatch.chdir(tmp_path)
    Path("page.html").write_text(HTML)
    Path("public").mkdir()
    Path("public/sitemap.xml").write_text(HTML)
    Path("public/other.xml").write_text(urlset(W))
    assert str(read("page.html").outcome) == "empty: page.html: its root element is <html>"
    path = os.path.join("public", "sitemap.xml")
    assert str(read("public").outcome) == f"partial: {path}: its root element is <html>"


def test_files_that_cannot_be_read(read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be read raises an OSError that names it, while reading."""
    (tmp_path / "broken.xml").symlink_to(tmp_path / "gone.xml")
    with pytest.raises(FileNotFoundError, match=r"broken\.xml"):
        read(tmp_path / "broken.xml")
    with pytest.raises(FileNotFoundError, match=r"nothing\.xml"):
        read(tmp_path / "nothing.xml")  # a path that is not written as text cannot be anything else

    def refuse(path: object, *args: object) -> Any:
        raise PermissionError(13, "Permission denied", path)

    (tmp_path / "secret.xml").write_text(urlset(W))
    monkeypatch.setattr("usp.sources.files.open", refuse, raising=False)
    with pytest.raises(PermissionError, match=r"secret\.xml"):
        read(str(tmp_path / "secret.xml"))


@pytest.mark.parametrize("kind", ["file", "stdin", "folder"])
def test_options_for_files(read: Read, folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Limits and progress work for files, folders and standard input alike."""
    content = (folder / "a.xml").read_bytes()
    events: list[Progress] = []

    def read_with(**options: Any) -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        return read({"file": "public/a.xml", "stdin": "-", "folder": "public"}[kind], **options)

    result = read_with(limits=Limits(max_pages=1), progress=events.append)
    assert result.urls == [W + "1"]
    assert sum(len(sitemap.pages) for sitemap in result.sitemaps) == 1
    assert result.outcome.kind == "partial"
    assert "max_pages" in result.outcome.reason
    assert "C901" in {problem.code for problem in result.tree.all_problems()} | set(result.tree.problem_counts)
    assert {event.kind for event in events} >= {"found", "fetched", "parsed"}
    assert events[-1].pages >= 1
    result = read_with(limits=Limits(max_pages=2))
    assert (result.urls, result.outcome.kind) == ([W + "1", W + "2"], "complete" if kind != "folder" else "partial")
    result = read_with(limits=Limits(max_sitemap_bytes=150))
    assert result.outcome.kind == "partial"
    assert "T804" in {problem.code for problem in result.tree.all_problems()} | set(result.tree.problem_counts)


def test_options_for_folders(read: Read, folder: Path) -> None:
    """Options that choose sitemaps work for folders. What they leave out is not reported as missing."""
    (folder / "sitemap-c.xml").write_text("<html></html>")
    assert read("public").outcome.kind == "partial"
    cases: list[tuple[dict[str, Any], list[str], str]] = [
        ({"exclude": r"b\.xml|-c"}, ["1", "2"], "complete"),
        ({"include": r"b\.xml"}, ["3"], "partial"),
        ({"use_known_paths": False}, ["1", "2", "3"], "complete"),
        ({"use_robots": False, "exclude": "-c"}, ["1", "2", "3"], "complete"),
        ({"recurse_list_callback": lambda urls, level, above: urls[:1], "exclude": "-c"}, ["1", "2"], "complete"),
        ({"choose_callback": lambda children, level, above: children[-1:], "exclude": "-c"}, ["3"], "complete"),
        ({"limits": Limits(max_sitemaps=2)}, [], "partial"),
    ]
    for options, numbers, kind in cases:
        result = read("public", **options)
        assert (options, result.urls, str(result.outcome.kind)) == (options, [W + number for number in numbers], kind)


def test_dates_choose_files(read: Read, folder: Path) -> None:
    """`modified_since` leaves out the files that an index says are older."""
    dated = index(W + "a.xml", W + "b.xml.gz").replace("a.xml</loc>", "a.xml</loc><lastmod>2020-01-01</lastmod>")
    (folder / "index.xml").write_text(dated)
    result = read("public", modified_since=datetime(2024, 1, 1, tzinfo=UTC), use_known_paths=False)
    assert result.urls == [W + "3"]


@pytest.mark.parametrize("target", ["public", "public/a.xml", "-", W])
def test_wrong_options_raise_at_once(target: str, folder: Path) -> None:
    """Options that do not exist, and wrong values, raise before anything is read, whatever the source is."""
    for opened in (usp.open, usp.aio.open):
        with pytest.raises(TypeError, match="did you mean 'progress'"):
            opened(target, progres=print)  # type: ignore[call-arg]
        with pytest.raises(InvalidArgumentError, match="web_client must be"):
            opened(target, 5)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match="limits must be"):
            opened(target, limits=5)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match="include must be regular expressions"):
            opened(target, include="(")


# What a target is.


@pytest.mark.parametrize(
    ("target", "kind", "url"),
    [
        ("https://example.org", "site", "https://example.org"),
        ("https://example.org/", "site", "https://example.org/"),
        ("HTTPS://EXAMPLE.ORG", "site", "HTTPS://EXAMPLE.ORG"),
        ("  https://example.org/\n", "site", "https://example.org/"),
        ("https://example.org?page=2", "sitemap", "https://example.org?page=2"),
        ("https://example.org/blog/", "sitemap", "https://example.org/blog/"),
        ("http://[::1]:8000/", "site", "http://[::1]:8000/"),
        ("example.org", "site", "https://example.org"),
        ("example.org.", "site", "https://example.org."),
        ("EXAMPLE.org/", "site", "https://EXAMPLE.org/"),
        (" example.org ", "site", "https://example.org"),
        ("bücher.example", "site", "https://bücher.example"),
        ("xn--bcher-kva.example", "site", "https://xn--bcher-kva.example"),
        ("example.org:8443", "site", "https://example.org:8443"),
        ("example.org/sitemap.xml", "sitemap", "https://example.org/sitemap.xml"),
        ("example.org/a/b.xml.gz", "sitemap", "https://example.org/a/b.xml.gz"),
        ("example.org?x=1", "sitemap", "https://example.org?x=1"),
        ("me:pw@example.org/a.xml", "sitemap", "https://me:pw@example.org/a.xml"),
        ("localhost", "site", "https://localhost"),
        ("localhost:8000/a.xml", "sitemap", "https://localhost:8000/a.xml"),
        ("web:8000", "site", "https://web:8000"),
        ("192.168.0.1", "site", "https://192.168.0.1"),
        ("[::1]:8000", "site", "https://[::1]:8000"),
    ],
)
def test_urls_and_hosts(target: str, kind: str, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever has a scheme, or looks like a host, is on the web. Spaces around it do not matter."""
    monkeypatch.chdir(tmp_path)
    source = find_source(target)
    assert source.reading is not None
    assert (source.target, source.kind, source.reading.url) == (target.strip().replace("me:pw@", ""), kind, url)
    assert "pw" not in repr(source)
    has_other = source.reading.if_unreachable is not None
    assert has_other == ("://" not in target and "@" not in target)
    assert source.kind.is_local is False


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("", "a target must be a URL, a host or a path, not ''"),
        ("  ", "a target must be a URL"),
        ("sitemap.xml", "no such file or folder: 'sitemap.xml'; a site is written like example.org"),
        ("old/sitemap.xml.gz", "no such file or folder"),
        ("backup.zip", "no such file or folder"),
        ("./example.org", "no such file or folder"),
        ("../example.org/", "no such file or folder"),
        ("/example.org/", "no such file or folder"),
        ("~/example.org", "no such file or folder"),
        ("C:\\sites\\sitemap.xml", "no such file or folder"),
        ("C:/sites/sitemap.xml", "no such file or folder"),
        ("public", "no such file or folder"),
        ("*.xml", "no such file or folder"),
        ("https:/example.org", "no such file or folder"),
        ("not a host.org", "no such file or folder"),
        ("example..org", "no such file or folder"),
        ("example.org:port", "no such file or folder"),
        ("a\0b.xml", "no such file or folder"),
        ("file:///no/such.xml", "no such file or folder"),
        ("file://server/share/a.xml", "files of this machine only"),
        ("http://", "give a URL like https://example.org/, not 'http://'"),
        ("https:///sitemap.xml", "give a URL like"),
        ("http://example.org:port/", "a port is a number from 0 to 65535, not 'port'"),
        ("ftp://example.org/sitemap.xml", "usp reads http and https, not ftp"),
        ("s3://bucket/sitemap.xml", "usp reads http and https, not s3"),
        (b"example.org", "a target must be a URL"),
        (5, "a target must be a URL"),
        (None, "a target must be a URL"),
        ([None], "a target must be a URL"),
        ([], "give a target"),
        (b"<urlset/>", "for content, call sitemap_from_bytes"),
        (io.BytesIO(b"<urlset/>"), "for an open file, call sitemap_from_bytes(file.read())"),
        (" <urlset/>", "for XML text, call sitemap_from_str"),
        ("x" * 1_000_000, "no such file or folder"),
    ],
)
def test_what_is_no_target(target: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A target that is nothing of all this raises at once, with a short message that says what to write."""
    monkeypatch.chdir(tmp_path)
    for opened in (usp.open, usp.aio.open):
        with pytest.raises(InvalidArgumentError) as caught:
            opened(target)
        assert message in str(caught.value)
        assert len(str(caught.value)) < 400


PIECES = st.sampled_from(
    [
        "https://",
        "file://",
        "~",
        "example",
        ".org",
        "localhost",
        ":",
        ":8000",
        "/",
        "\\",
        "@",
        "[",
        "]",
        "?",
        "#",
        "-",
        "..",
    ]
)


@given(st.one_of(st.text(), st.lists(st.one_of(PIECES, st.characters())).map("".join)))
@example("file://[")
@example("~\0")
@example("\udcff.xml")
@example("https://example.org/[")
@example("https://@\n-/")
def test_any_text_is_a_target_or_not(text: str) -> None:
    """Any text is a source, or raises an InvalidArgumentError; nothing else happens."""
    try:
        source = find_source(text, https_only=True)
    except InvalidArgumentError:
        return
    assert (source.reading is None) == source.kind.is_local
    if source.reading is not None:
        source.stream().close()


def test_the_home_folder(read: Read, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tilde is the home folder, where no shell has replaced it."""
    monkeypatch.setenv("HOME", str(folder.parent))
    assert read("~/public/a.xml").urls == [W + "1", W + "2"]
    source = find_source("~/public")
    assert (source.target, source.kind, source.path) == ("~/public", "folder", str(folder))


def test_a_host_that_is_a_folder(read: Read, folder: Path) -> None:
    """A name that is there as a folder or a file is read as that. A note says so if it may be a host."""
    folder.rename("example.org")
    for target, kind in (("example.org", "folder"), ("example.org/", "folder"), ("example.org/a.xml", "file")):
        result = read(target)
        assert result.notes == (f"{target} is a {kind} here; for the site, write https://{target}",)
        assert len(result.urls) >= 2
        assert find_source(target).note == result.notes[0]
    for path in ("./example.org", Path("example.org"), Path("example.org").absolute()):
        assert read(path).notes == ()
    Path("example.org").rename("v1.2")
    assert read("v1.2").notes == ()


def test_names_of_hosts_in_other_scripts() -> None:
    """A host in another script is requested as it is written in DNS."""
    client = FakeClient({})
    usp.open("bücher.example/a.xml", client).read()
    assert client.asked[0] in ("https://bücher.example/a.xml", "https://xn--bcher-kva.example/a.xml")


# Several targets.


def test_several(read: Read, site: Server, folder: Path) -> None:
    """Several targets of any kinds are read in their order, and each keeps its own tree, notes and names."""
    targets = [f"{site.url}/a.xml", folder / "b.xml.gz", f"{site.url}/page", "public/index.xml", f"{site.url}/gone.xml"]
    result = read(targets)
    assert [type(tree) for tree in result.trees] == [
        *(PagesXMLSitemap, PagesXMLSitemap, IndexWebsiteSitemap, IndexXMLSitemap, InvalidSitemap)
    ]
    assert list(dict.fromkeys(result.sources)) == list(map(str, targets))
    assert result.sources.count(f"{site.url}/page") == 4  # robots.txt, an index, and what it lists
    whole = [each for tree in result.trees for each in all_of(tree)]
    assert [sitemap.url for sitemap in result.sitemaps] == [sitemap.url for sitemap in whole]
    assert len(result.notes) == 2
    assert (result.outcome.kind, result.outcome.missing[-1].cause) == ("partial", "not found")


def all_of(tree: AbstractSitemap) -> list[AbstractSitemap]:
    """Return the sitemaps that the stream of a tree gives: all below a website; a sitemap, and all below it."""
    below = list(tree.all_sitemaps())
    return below if isinstance(tree, IndexWebsiteSitemap) else [tree, *below]


@pytest.mark.parametrize("target", ["site", "sitemap", "file", "folder"])
def test_streams_give_trees(read: Read, site: Server, folder: Path, target: str) -> None:
    """A stream gives the sitemaps of the tree, one for one, each with those above it."""
    where = {"site": site.url, "sitemap": f"{site.url}/index.xml", "file": "public/index.xml", "folder": "public"}
    result = read(where[target])
    assert [each.url for each in result.sitemaps] == [each.url for each in all_of(result.tree)]
    assert [list(each.pages) for each in result.sitemaps] == [list(each.pages) for each in all_of(result.tree)]
    if target != "file":  # when an index comes, its children are not fetched yet
        leaves = [each for each in result.sitemaps if not each.sub_sitemaps]
        assert leaves == [each for each in all_of(result.tree) if not each.sub_sitemaps]
    for sitemap, above in zip(result.sitemaps, result.above, strict=True):
        expected = {"site": ["/", "/robots.txt", "/index.xml"], "folder": ["", "robots.txt", "index.xml"]}
        if sitemap.url.endswith("a.xml"):
            base = site.url if target in ("site", "sitemap") else W
            chain = [base + path for path in expected.get(target, [])][1:] or [result.tree.url]
            assert above == chain


def test_one_and_several_differ(folder: Path, site: Server) -> None:
    """`tree` and `read()` are for one target, `trees` and `read_all()` for any number."""
    one = usp.open("public")
    with pytest.raises(UspError, match="not complete yet"):
        _ = one.tree
    with pytest.raises(UspError, match="no outcome yet"):
        _ = one.outcome
    assert one.read() is one.tree
    assert one.trees == (one.tree,)
    two = usp.open(["public", site.url])
    with pytest.raises(UspError, match=r"2 targets: use read_all\(\)"):
        two.read()
    assert [tree.url for tree in two.read_all()] == [W, f"{site.url}/"]
    with pytest.raises(UspError, match="2 targets: use `trees`"):
        _ = two.tree

    def generator() -> Iterator[AbstractSitemap]:
        trees = yield from usp.open(["public/a.xml", "public/index.xml"])
        assert len(trees) == 2

    assert len(list(generator())) == 4


def test_early_close(site: Server, folder: Path) -> None:
    """After an early close, the trees have what was read until then, and nothing more is requested."""
    with usp.open(["public/a.xml", f"{site.url}/index.xml", f"{site.url}/list"], concurrency=1) as stream:
        for sitemap in stream:
            if sitemap.url == f"{site.url}/index.xml":
                break
    assert stream.source == f"{site.url}/index.xml"
    assert [tree.url for tree in stream.trees] == [f"{usp.open('public/a.xml').read().url}", f"{site.url}/index.xml"]
    assert stream.outcome.kind == "partial"
    assert "/list" not in site.paths()
    assert list(stream) == []
    unused = usp.open(site.url)
    unused.close()
    assert unused.trees == ()

    async def leave() -> tuple[AbstractSitemap, ...]:
        async with usp.aio.open(["public/a.xml", f"{site.url}/index.xml", f"{site.url}/list"]) as stream:
            async for sitemap in stream:
                if sitemap.url == f"{site.url}/index.xml":
                    break
        return stream.trees

    assert [type(tree) for tree in asyncio.run(leave())] == [PagesXMLSitemap, IndexXMLSitemap]
    assert "/list" not in site.paths()


def test_a_dropped_stream_ends_at_once() -> None:
    """A stream that is dropped in the middle ends at once, with no help of the garbage collector."""
    closed = []

    class Client(FakeClient):
        """Notes whether a stream still holds it."""

        def __del__(self) -> None:
            closed.append(True)

    gc.disable()
    try:
        stream = usp.open([f"{W}index.xml", f"{W}a.xml"], Client({f"{W}index.xml": index(W + "a.xml")}))
        next(stream)
        assert closed == []
        del stream
        assert closed == [True]
    finally:
        gc.enable()


def test_nothing_is_read_before_the_first_sitemap(site: Server, folder: Path) -> None:
    """Opening reads nothing: neither a site, nor files, nor standard input."""
    streams = [usp.open([site.url, "public", "-"]), usp.aio.open([site.url, "public", "-"])]
    assert site.requests == []
    assert [stream.trees for stream in streams] == [(), ()]


def test_ctrl_c(folder: Path) -> None:
    """Ctrl-C raises TreeInterrupted with the partial tree of its target; the trees before it are there, too."""

    def answer(url: str) -> Any:
        if url.endswith("b.xml"):
            raise KeyboardInterrupt
        return {f"{W}index.xml": index(W + "a.xml", W + "b.xml"), f"{W}a.xml": urlset(W + "1")}.get(url)

    stream = usp.open(["public/a.xml", f"{W}index.xml", "public"], FakeClient(answer))
    with pytest.raises(TreeInterrupted) as caught, stream:
        for _ in stream:
            pass
    assert [page.url for page in caught.value.tree.all_pages()] == [W + "1"]
    assert [tree.url for tree in stream.trees][1:] == [f"{W}index.xml"]
    assert stream.outcome.kind == "partial"

    def interrupt_after(stream: SourceStream) -> None:
        next(stream)
        raise KeyboardInterrupt

    for target in ("public", f"{W}index.xml"):
        with pytest.raises(TreeInterrupted), usp.open(target, FakeClient(answer)) as stream:
            interrupt_after(stream)  # in the caller's own code, inside the block
        assert len(stream.trees) == 1
    with pytest.raises(KeyboardInterrupt), usp.open("public"):  # nothing was read yet
        raise KeyboardInterrupt


def test_ctrl_c_while_files_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while files or standard input are read ends at once: nothing is read again."""
    calls = []

    def interrupt(*_: object) -> None:
        calls.append(1)
        raise KeyboardInterrupt

    class Stdin:
        buffer = type("Buffer", (), {"read": interrupt})()

    monkeypatch.setattr(sys, "stdin", Stdin())
    with pytest.raises(TreeInterrupted):
        usp.open("-").read()
    assert calls == [1]
    monkeypatch.setattr("usp.sources.listing.FolderFiles.read", interrupt)
    stream = usp.open("public")
    with pytest.raises(TreeInterrupted):
        stream.read()
    assert len(calls) == 2
    assert stream.outcome.kind == "partial"


def test_errors_reach_the_caller(folder: Path, site: Server) -> None:
    """A file that cannot be read ends the stream; what was read before it is kept."""
    stream = usp.open(["public/a.xml", Path("gone.xml"), site.url])
    with pytest.raises(FileNotFoundError):
        stream.read_all()
    assert len(stream.trees) == 1
    assert site.requests == []
    (folder.parent / "empty").mkdir()
    with pytest.raises(InvalidArgumentError, match="no sitemap in empty"):
        usp.open("empty").read()
