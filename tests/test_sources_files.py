"""Files and folders as sites: their trees, how URLs find files, and which files are skipped."""

from __future__ import annotations

import gzip
import os
import socket
import tracemalloc
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import pytest

import usp.sources.listing
from support import index, urlset
from usp.exceptions import InvalidArgumentError, SitemapException, UspError
from usp.limits import Limits
from usp.objects.sitemap import (
    AbstractSitemap,
    IndexRobotsTxtSitemap,
    IndexWebsiteSitemap,
    IndexXMLSitemap,
    InvalidSitemap,
    PagesRSSSitemap,
    PagesTextSitemap,
    PagesXMLSitemap,
)
from usp.sources.files import tree_of_bytes, tree_of_path

W = "https://www.example.com/"
MISSING = " no such file in the folder"
RSS = "<rss version='2.0'><channel><item><link>https://www.example.com/1</link></item></channel></rss>"


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test here may open a socket or look up a host."""

    def refuse(*args: object, **options: object) -> NoReturn:
        raise AssertionError("a socket is opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def put(folder: Path, files: Mapping[str, str | bytes]) -> str:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(folder)


def shape(sitemap: AbstractSitemap) -> object:
    """Return a tree as plain values: its URLs, and the reasons of invalid sitemaps."""
    if isinstance(sitemap, InvalidSitemap):
        return f"{sitemap.url} {sitemap.reason.rpartition(': ')[2]}"
    below: list[Any] = [shape(child) for child in sitemap.sub_sitemaps]
    return {sitemap.url: below} if below else sitemap.url


def test_a_folder_is_a_site(tmp_path: Path) -> None:
    """A folder gives the tree that its site would give, including sitemaps that nothing lists."""
    folder = put(
        tmp_path,
        {
            "robots.txt": f"Sitemap: {W}index.xml\n",
            "index.xml": index(W + "maps/a.xml.gz", W + "maps/gone.xml"),
            "maps/a.xml.gz": gzip.compress(urlset(W + "1").encode()),
            "maps/extra.xml": urlset(W + "2"),
            "news/urls.txt": W + "3\n",
            "feed.rss": RSS,
            "page.html": "<html></html>",
        },
    )
    tree, names = tree_of_path(folder)
    assert shape(tree) == {
        W: [
            {W + "robots.txt": [{W + "index.xml": [W + "maps/a.xml.gz", W + "maps/gone.xml" + MISSING]}]},
            W + "feed.rss",
            W + "maps/extra.xml",
            W + "news/urls.txt",
        ]
    }
    assert isinstance(tree, IndexWebsiteSitemap)
    assert list(map(type, tree.sub_sitemaps)) == [
        IndexRobotsTxtSitemap,
        PagesRSSSitemap,
        PagesXMLSitemap,
        PagesTextSitemap,
    ]
    assert [page.url for page in tree.all_pages()] == [W + "1", W + "1", W + "2", W + "3"]
    assert list(tree.all_problems()) == []
    assert names == {
        W: folder,
        W + "robots.txt": os.path.join(folder, "robots.txt"),
        W + "index.xml": os.path.join(folder, "index.xml"),
        W + "maps/a.xml.gz": os.path.join(folder, "maps", "a.xml.gz"),
        W + "feed.rss": os.path.join(folder, "feed.rss"),
        W + "maps/extra.xml": os.path.join(folder, "maps", "extra.xml"),
        W + "news/urls.txt": os.path.join(folder, "news", "urls.txt"),
    }


def test_names_are_as_the_folder_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative folder gives relative names, which the caller can open."""
    put(tmp_path / "site", {"sitemap.xml": urlset(W)})
    monkeypatch.chdir(tmp_path)
    _, names = tree_of_path("site")
    assert names[W + "sitemap.xml"] == os.path.join("site", "sitemap.xml")


def test_transport_of_a_folder(tmp_path: Path) -> None:
    """A file has its size and the time it was written, and no HTTP status."""
    content = urlset(W + "1")
    folder = put(tmp_path, {"robots.txt": f"Sitemap: {W}a.xml\nSitemap: {W}b.xml", "a.xml": content})
    os.utime(tmp_path / "a.xml", (1_700_000_000, 1_700_000_000))
    tree, _ = tree_of_path(folder)
    assert tree.transport is None
    had, missing = tree.sub_sitemaps[0].sub_sitemaps
    assert had.transport is not None
    assert missing.transport is not None
    assert had.transport.fetched_at == datetime.fromtimestamp(1_700_000_000, UTC)
    assert had.transport.size == len(content)
    for transport in (had.transport, missing.transport):
        assert (transport.status, transport.seconds, transport.content_type) == (None, None, None)
        assert not transport.is_redirected
    assert missing.transport.fetched_at is None


@pytest.mark.parametrize(
    ("files", "base"),
    [
        ({"robots.txt": "Sitemap: http://r.example.com/x.xml", "a.xml": urlset(W)}, "http://r.example.com/"),
        ({"robots.txt": "User-agent: *", "a.xml": urlset(W + "deep/page")}, W),
        ({"a.xml": urlset("/relative"), "b.xml": urlset(W + "1")}, W),
        ({"a.txt": "See http://elsewhere.com/\nand\nothers", "b.xml": urlset(W + "1")}, W),
        ({"feed.xml": RSS.replace("www.", "blog."), "sitemap.xml": urlset(W + "1")}, W),
        ({"a.xml": urlset("/relative")}, "https://example.org/"),
        ({"index.xml": index(W + "maps/en/a.xml"), "en/a.xml": urlset(W)}, W + "maps/"),
        ({"index.xml": index(W + "maps/en/a.xml"), "robots.txt": "", "en/a.xml": urlset(W)}, W),
        ({"index.xml": index(W + "maps/en/a.xml"), "b.xml": urlset(W)}, W),
    ],
)
def test_where_a_folder_is_served(tmp_path: Path, files: dict[str, str | bytes], base: str) -> None:
    """Without a URL, robots.txt, an index, or else the first page tells where the folder is served."""
    assert tree_of_path(put(tmp_path, files))[0].url == base


@pytest.mark.parametrize("url", [W + "maps/", W + "maps", W + "maps?a=b#c"])
def test_a_folder_below_the_root(tmp_path: Path, url: str) -> None:
    """With a URL that has a path, files are below it, and robots.txt is ignored."""
    folder = put(
        tmp_path,
        {
            "index.xml": index(W + "maps/a.xml", W + "elsewhere/b%20c.xml"),
            "a.xml": urlset(W),
            "robots.txt": f"Sitemap: {W}x.xml",
            "deep/b c.xml": urlset(W),
        },
    )
    tree, _ = tree_of_path(folder, url)
    assert shape(tree) == {W + "maps/": [{W + "maps/index.xml": [W + "maps/a.xml", W + "elsewhere/b%20c.xml"]}]}


def test_a_file_is_found_by_its_name(tmp_path: Path) -> None:
    """If a URL has no file at its path, the only file with its name answers; of several files, none does."""
    folder = put(
        tmp_path,
        {
            "index.xml": index("https://cdn.example.com/x/a.xml", W + "y/b.xml"),
            "one/a.xml": urlset(W),
            "one/b.xml": urlset(W),
            "two/b.xml": urlset(W),
        },
    )
    tree, names = tree_of_path(folder, W)
    assert shape(tree) == {
        W: [
            {W + "index.xml": ["https://cdn.example.com/x/a.xml", W + "y/b.xml" + MISSING]},
            W + "one/b.xml",
            W + "two/b.xml",
        ]
    }
    assert names["https://cdn.example.com/x/a.xml"] == os.path.join(folder, "one", "a.xml")


@pytest.mark.parametrize("listed", [("en/sitemap.xml", "de/sitemap.xml"), ("de/sitemap.xml", "en/sitemap.xml")])
def test_a_name_does_not_hide_a_missing_file(tmp_path: Path, listed: tuple[str, str]) -> None:
    """A file that is listed by its own path does not answer for a missing one, in any order."""
    folder = put(tmp_path, {"index.xml": index(*(W + path for path in listed)), "en/sitemap.xml": urlset(W)})
    expected = [W + path if path.startswith("en") else W + path + MISSING for path in listed]
    assert shape(tree_of_path(folder, W)[0]) == {W: [{W + "index.xml": expected}]}


def test_a_file_is_not_its_own_child(tmp_path: Path) -> None:
    """An index that lists a missing sitemap of its own name is not its own child."""
    folder = put(tmp_path, {"sitemap.xml": index(W + "en/sitemap.xml")})
    tree, _ = tree_of_path(folder, W)
    assert shape(tree) == {W: [{W + "sitemap.xml": [W + "en/sitemap.xml" + MISSING]}]}


def test_schemes_and_www_do_not_matter(tmp_path: Path) -> None:
    """A sitemap that is listed with http, or without "www.", is the file at that path, and is in the tree once."""
    folder = put(tmp_path, {"index.xml": index("http://example.com/a.xml"), "a.xml": urlset(W), "x/a.xml": urlset(W)})
    assert shape(tree_of_path(folder, W)[0]) == {W: [{W + "index.xml": ["http://example.com/a.xml"]}, W + "x/a.xml"]}


def test_packed_forms_stand_once(tmp_path: Path) -> None:
    """If a file and its .gz copy are both there, the listed one counts; if none is listed, the plain one."""
    packed = gzip.compress(urlset(W).encode())
    files: dict[str, str | bytes] = {"a.xml": urlset(W), "a.xml.gz": packed, "b.xml.gz": packed}
    assert shape(tree_of_path(put(tmp_path / "1", files), W)[0]) == {W: [W + "a.xml", W + "b.xml.gz"]}
    files["z.xml"] = index(W + "a.xml.gz")
    assert shape(tree_of_path(put(tmp_path / "2", files), W)[0]) == {
        W: [W + "b.xml.gz", {W + "z.xml": [W + "a.xml.gz"]}]
    }


def test_links(tmp_path: Path) -> None:
    """Links out of the folder are not followed. A link inside it is its file, which counts once."""
    put(tmp_path, {"out.xml": urlset(W), "other/x.xml": urlset(W)})
    folder = put(tmp_path / "site", {"maps/a.xml": urlset(W)})
    for name, target in {"b.xml": "../out.xml", "c.xml": "maps/a.xml", "loop": ".", "away": "../other"}.items():
        (tmp_path / "site" / name).symlink_to(target)
    assert shape(tree_of_path(folder, W)[0]) == {W: [W + "maps/a.xml"]}
    put(tmp_path / "site", {"index.xml": index(W + "c.xml", W + "b.xml")})
    assert shape(tree_of_path(folder, W)[0]) == {W: [{W + "index.xml": [W + "c.xml", W + "b.xml" + MISSING]}]}


def test_what_is_left_out(tmp_path: Path) -> None:
    """Hidden folders, robots.txt below the root, pipes, and files that are not sitemaps are skipped."""
    folder = put(
        tmp_path,
        {
            ".git/sitemap.xml": urlset(W),
            ".sitemap.xml": urlset(W),
            "sub/robots.txt": f"Sitemap: {W}x.xml",
            "humans.txt": "Team\nMe: https://elsewhere.com/\nhttps://github.com/me\nThanks",
            "browserconfig.xml": "<browserconfig/>",
            "app.js.gz": gzip.compress(b"let x = 1"),
            "a.xml": urlset(W),
        },
    )
    os.mkfifo(tmp_path / "pipe.xml")
    assert shape(tree_of_path(folder, W)[0]) == {W: [W + ".sitemap.xml", W + "a.xml"]}


def test_a_sitemap_that_is_none(tmp_path: Path) -> None:
    """A file that is called a sitemap but is none is invalid. If there is nothing else, all files are reported."""
    files: dict[str, str | bytes] = {"a.xml": urlset(W), "sitemap-b.xml": "<html></html>", "c.xml": "<html></html>"}
    tree, names = tree_of_path(put(tmp_path / "1", files), W)
    assert shape(tree) == {W: [W + "a.xml", f"{W}sitemap-b.xml its root element is <html>"]}
    assert names[W + "sitemap-b.xml"].endswith("sitemap-b.xml")
    del files["a.xml"], files["sitemap-b.xml"]
    assert shape(tree_of_path(put(tmp_path / "2", files), W)[0]) == {W: [f"{W}c.xml its root element is <html>"]}


def test_prose_that_is_called_a_sitemap(tmp_path: Path) -> None:
    """A text is skipped if many of its lines are not URLs, unless it is called a sitemap."""
    text = "one\ntwo\nhttps://www.example.com/1"
    folder = put(
        tmp_path,
        {"sitemap.txt": text, "notes.txt": text, "list.txt": "one\n" + "".join(f"{W}{n}\n" for n in range(20))},
    )
    assert shape(tree_of_path(folder, W)[0]) == {W: [W + "list.txt", W + "sitemap.txt"]}


def test_unreadable_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file or folder that cannot be read is an invalid sitemap with the reason, listed or not."""
    folder = put(
        tmp_path,
        {
            "robots.txt": f"Sitemap: {W}index.xml",
            "index.xml": index(W + "a.xml"),
            "a.xml": urlset(W),
            "b.xml": urlset(W),
            "closed/c.xml": urlset(W),
        },
    )
    _deny(monkeypatch, "a.xml", "b.xml", "closed")
    tree, names = tree_of_path(folder, W)
    denied = "Permission denied"
    assert shape(tree) == {
        W: [
            {W + "robots.txt": [{W + "index.xml": [f"{W}a.xml {denied}"]}]},
            f"{W}closed/ {denied}",
            f"{W}b.xml {denied}",
        ]
    }
    assert names[W + "a.xml"] == os.path.join(folder, "a.xml")
    _deny(monkeypatch, "robots.txt")
    tree, _ = tree_of_path(folder, W)
    assert tree.problem_counts == {"R704": 1}


def _deny(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Make files and folders unreadable, even for root."""
    really_open, really_scan = open, os.scandir

    def denied(path: Any) -> bool:
        return isinstance(path, (str, os.PathLike)) and os.path.basename(path) in names

    def opened(path: Any, *args: Any, **options: Any) -> Any:
        if denied(path):
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return really_open(path, *args, **options)

    def scanned(path: Any = ".") -> Any:
        if denied(path):
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return really_scan(path)

    monkeypatch.setattr("builtins.open", opened)
    monkeypatch.setattr(os, "scandir", scanned)


def test_names_of_any_kind(tmp_path: Path) -> None:
    """URLs find names with spaces, percent signs, question marks, colons and bytes that are not text."""
    names = [b"a b.xml", b"50%.xml", b"who?.xml", b"http:/x.xml", b"\xff.xml", "ü.xml".encode(), b"#.xml", b"%41.xml"]
    for name in names:
        path = os.path.join(os.fsencode(tmp_path), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(os.fsdecode(path)).write_text(urlset(W))
    tree, shown = tree_of_path(tmp_path, W)
    assert {os.fsencode(shown[sitemap.url]) for sitemap in tree.sub_sitemaps} == {
        os.path.join(os.fsencode(tmp_path), name) for name in names
    }


def test_paths_in_urls_lead_nowhere_else(tmp_path: Path) -> None:
    """No URL, however written, leads to a file outside the folder."""
    put(tmp_path, {"secret.xml": urlset(W)})
    paths = ["../secret.xml", "..%2Fsecret.xml", "%2e%2e/secret.xml", str(tmp_path / "secret.xml").lstrip("/")]
    folder = put(tmp_path / "site", {"index.xml": index(*(W + path for path in paths), "http://[bad/secret.xml")})
    tree, _ = tree_of_path(folder, W)
    assert all(isinstance(sitemap, InvalidSitemap) for sitemap in tree.sub_sitemaps[0].sub_sitemaps)


def test_a_file_over_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size limit applies to files too, and the sitemap has a problem if it was cut."""
    from usp.limits import Limits

    monkeypatch.setattr("usp.sources.files._LIMITS", Limits(max_sitemap_bytes=200))
    folder = put(tmp_path, {"a.xml": urlset(*(W + str(number) for number in range(100)))})
    (sitemap,) = tree_of_path(folder, W)[0].sub_sitemaps
    assert sitemap.problem_counts["T804"] == 1
    assert 0 < len(sitemap.pages) < 100


def test_wrong_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without sitemaps or with too many files, a missing path and an invalid URL raise errors."""
    with pytest.raises(InvalidArgumentError, match=r"no sitemap in .*robots\.txt.*\.xml"):
        tree_of_path(put(tmp_path, {"page.html": "", "sitemap": ""}))
    with pytest.raises(FileNotFoundError):
        tree_of_path(tmp_path / "nowhere")
    put(tmp_path, {"a.xml": urlset(W), "b.xml": urlset(W)})
    with pytest.raises(SitemapException, match=r"www\.example\.com/"):
        tree_of_path(tmp_path, "www.example.com")
    monkeypatch.setattr(usp.sources.listing, "MAX_FILES", 2)
    with pytest.raises(InvalidArgumentError, match="more than 2 files"):
        tree_of_path(tmp_path)


def test_a_single_file(tmp_path: Path) -> None:
    """A file is read on its own: sitemaps that it lists stay unfetched, even if they are beside it."""
    folder = put(tmp_path, {"index.xml": index(W + "a.xml"), "a.xml": urlset(W), "robots.txt": f"Sitemap: {W}"})
    path = os.path.join(folder, "index.xml")
    sitemap, names = tree_of_path(path)
    assert isinstance(sitemap, IndexXMLSitemap)
    assert shape(sitemap.sub_sitemaps[0]) == f"{W}a.xml Un-fetched child sitemap"
    assert names == {sitemap.url: path}
    assert isinstance(tree_of_path(tmp_path / "robots.txt")[0], IndexRobotsTxtSitemap)
    for url in (W + "maps/", W + "maps/index.xml"):
        assert tree_of_path(path, url)[0].url == W + "maps/index.xml"


def test_bytes() -> None:
    """Content is read as a file of its name would be."""
    sitemap, names = tree_of_bytes(urlset("/1").encode(), "-", W + "a.xml")
    assert [page.url for page in sitemap.pages] == [W + "1"]
    assert names == {W + "a.xml": "-"}
    sitemap, names = tree_of_bytes(gzip.compress(urlset(W).encode()))
    assert isinstance(sitemap, PagesXMLSitemap)
    assert names == {sitemap.url: "-"}
    sitemap, names = tree_of_bytes(b"Sitemap: /a.xml", "x/robots.txt")
    assert isinstance(sitemap, IndexRobotsTxtSitemap)
    assert names == {sitemap.url: "x/robots.txt"}


def test_urls_that_are_none(tmp_path: Path) -> None:
    """`url` must be a URL."""
    (tmp_path / "s.xml").write_text("<urlset/>")
    for url in ("http://", "www.example.org/", "ftp://h/"):
        with pytest.raises(UspError, match="http"):
            tree_of_path(tmp_path / "s.xml", url)


# Zip archives.


def archive(path: Path, files: Mapping[str, str | bytes], **options: Any) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in files.items():
            opened.writestr(name, content, **options)
    return path


SITE_FILES: dict[str, str | bytes] = {
    "robots.txt": f"Sitemap: {W}index.xml\n",
    "index.xml": index(W + "maps/a.xml.gz", W + "maps/gone.xml"),
    "maps/a.xml.gz": gzip.compress(urlset(W + "1").encode()),
    "maps/extra.xml": urlset(W + "2"),
    "page.html": "<html></html>",
}


def test_an_archive_is_a_site(tmp_path: Path) -> None:
    """A zip archive gives the tree that its folder would give, whatever its name is."""
    folder = put(tmp_path / "site", SITE_FILES)
    path = archive(tmp_path / "site.bak", SITE_FILES)
    tree, names = tree_of_path(path)
    assert shape(tree) == shape(tree_of_path(folder)[0])
    assert names[W + "maps/extra.xml"] == os.path.join(path, "maps", "extra.xml")
    packed = tree.sub_sitemaps[0].sub_sitemaps[0].sub_sitemaps[0]
    assert packed.transport is not None
    assert (packed.transport.status, packed.transport.size) == (None, len(SITE_FILES["maps/a.xml.gz"]))
    assert tree.outcome.kind == tree_of_path(folder)[0].outcome.kind == "complete"


def test_an_archive_of_a_folder(tmp_path: Path) -> None:
    """If everything is in one folder that has a robots.txt, this folder is the root of the site."""
    inside = {f"public/{name}": content for name, content in SITE_FILES.items()}
    path = archive(tmp_path / "site.zip", inside)
    tree, names = tree_of_path(path)
    assert shape(tree) == shape(tree_of_path(archive(tmp_path / "flat.zip", SITE_FILES))[0])
    assert names[W + "index.xml"] == os.path.join(path, "public", "index.xml")
    del inside["public/robots.txt"]
    tree, _ = tree_of_path(archive(tmp_path / "site.zip", inside), W)
    assert W + "public/maps/extra.xml" in [sitemap.url for sitemap in tree.all_sitemaps()]


def test_names_in_an_archive(tmp_path: Path) -> None:
    """Names with ".." or a leading slash stay inside. Hidden folders, archives and what macOS adds are skipped."""
    nested = archive(tmp_path / "nested.zip", SITE_FILES).read_bytes()
    path = archive(
        tmp_path / "site.zip",
        {
            "/etc/a.xml": urlset(W + "1"),
            "../../b.xml": urlset(W + "2"),
            "maps\\c.xml": urlset(W + "3"),
            "./d.xml": urlset(W + "4"),
            "__MACOSX/._sitemap.xml": b"\0\5\26\7",
            "._sitemap.xml": b"\0\5\26\7",
            ".git/sitemap.xml": urlset(W + "5"),
            "sitemap.zip": nested,
        },
    )
    tree, names = tree_of_path(path, W)
    assert shape(tree) == {W: [W + "b.xml", W + "d.xml", W + "etc/a.xml", W + "maps/c.xml"]}
    assert all(name.startswith(str(path)) and ".." not in name for name in names.values())
    assert sorted(os.listdir(tmp_path)) == ["nested.zip", "site.zip"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_the_last_of_the_same_name_counts(tmp_path: Path) -> None:
    """If an archive has several files of one name, the last one counts, as for programs that extract it."""
    with zipfile.ZipFile(tmp_path / "site.zip", "w") as opened:
        for number in range(3):
            opened.writestr("a.xml", urlset(f"{W}{number}"))
    tree, _ = tree_of_path(tmp_path / "site.zip")
    assert [page.url for page in tree.all_pages()] == [W + "2"]


@pytest.mark.slow
def test_too_many_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive with more files than a folder may have is refused, before anything of it is read."""
    path = archive(tmp_path / "site.zip", {f"{number}.xml": urlset(W) for number in range(201)})
    monkeypatch.setattr(usp.sources.listing, "MAX_FILES", 201)
    assert len(tree_of_path(path)[0].sub_sitemaps) == 201
    monkeypatch.setattr(usp.sources.listing, "MAX_FILES", 200)
    monkeypatch.setattr(zipfile.ZipFile, "open", None)
    with pytest.raises(InvalidArgumentError, match="more than 200 files"):
        tree_of_path(path)


@pytest.mark.slow
def test_a_bomb(tmp_path: Path) -> None:
    """A member is read up to the limit, however large it says it is, and has a problem."""
    bomb = urlset(W + "1").encode() + b" " * 10_000_000
    path = archive(tmp_path / "site.zip", {"a.xml": bomb, "b.xml.gz": gzip.compress(bomb), "c.xml": urlset(W + "2")})
    assert path.stat().st_size < 100_000
    tracemalloc.start()
    try:
        tree, _ = tree_of_path(path, limits=Limits(max_sitemap_bytes=100_000))
        codes = [sitemap.problem_counts["T804"] for sitemap in tree.sub_sitemaps]
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
    assert codes == [1, 1, 0]
    assert [page.url for page in tree.all_pages()] == [W + "1", W + "1", W + "2"]
    assert tree.outcome.kind == "partial"


def test_a_damaged_archive(tmp_path: Path) -> None:
    """A damaged member is an invalid sitemap with the reason. The others are read."""
    path = archive(tmp_path / "site.zip", {"sitemap.xml": urlset(*(f"{W}{n}" for n in range(99))), "b.xml": urlset(W)})
    data = bytearray(path.read_bytes())
    data[60:90] = bytes(30)
    path.write_bytes(data)
    tree, names = tree_of_path(path, W)
    assert [type(sitemap).__name__ for sitemap in tree.sub_sitemaps] == ["PagesXMLSitemap", "InvalidSitemap"]
    broken = tree.sub_sitemaps[1]
    assert isinstance(broken, InvalidSitemap)
    assert "the file cannot be read: in the archive: " in broken.reason
    assert names[broken.url] == os.path.join(path, "sitemap.xml")
    assert tree.outcome.kind == "partial"
    for size in (4, 100, len(data) - 10):
        path.write_bytes(data[:size])
        with pytest.raises(InvalidArgumentError, match=r"site\.zip cannot be read as a zip archive: "):
            tree_of_path(path)


def test_an_encrypted_archive(tmp_path: Path) -> None:
    """A member with a password is an invalid sitemap that says so."""
    path = archive(tmp_path / "site.zip", {"sitemap.xml": urlset(W + "1")})
    data = bytearray(path.read_bytes())
    data[6] |= 1  # the flag in the header of the member
    data[data.index(b"PK\1\2") + 8] |= 1  # and in the directory
    path.write_bytes(data)
    tree, _ = tree_of_path(path, W)
    (sitemap,) = tree.sub_sitemaps
    assert isinstance(sitemap, InvalidSitemap)
    assert "password" in sitemap.reason


def test_an_archive_without_sitemaps(tmp_path: Path) -> None:
    """An archive in which nothing looks like a sitemap is refused, like a folder."""
    for files in ({}, {"page.html": "<html></html>"}, {"folder/": ""}):
        with pytest.raises(InvalidArgumentError, match=r"no sitemap in .*site\.zip"):
            tree_of_path(archive(tmp_path / "site.zip", files))


def test_archives_are_closed(tmp_path: Path) -> None:
    """No archive stays open, whether it can be read or not."""
    good = archive(tmp_path / "a.zip", SITE_FILES)
    empty = archive(tmp_path / "b.zip", {"page.html": ""})
    tree_of_path(good)
    with pytest.raises(InvalidArgumentError):
        tree_of_path(empty)
    if os.path.isdir("/proc/self/fd"):
        targets = [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
        assert not {str(good), str(empty)} & set(targets)
