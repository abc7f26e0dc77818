"""Crawls in which robots.txt does not lead to the sitemaps that it led to before: they are asked for themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import Server, index, serve, urlset
from usp.crawl import Crawl, CrawlOptions, crawl

pytestmark = [pytest.mark.network, pytest.mark.export]

HTML = b"<!doctype html><html><body>We will be back soon.</body></html>"
#: What a server may send in place of robots.txt.
BAD_ROBOTS = {
    "missing": (404, {}, b""),
    "gone": (410, {}, b""),
    "empty": (200, {}, b""),
    "without sitemaps": (200, {}, b"User-agent: *\nDisallow: /admin\n"),
    "forbidden": (403, {}, b""),
    "down": (500, {}, b""),
    "a web page": (200, {"Content-Type": "text/html"}, HTML),
}


@pytest.fixture
def server() -> Iterator[Server]:
    with serve({}) as running:
        running.pages.update(
            {
                "/robots.txt": (200, {}, b"Sitemap: {base}/index.xml\nSitemap: {base}/news.xml\n"),
                "/index.xml": (200, {"ETag": '"1"'}, index("{base}/a.xml").encode()),
                "/a.xml": (200, {"ETag": '"1"'}, urlset("{base}/a1", "{base}/a2").encode()),
                "/news.xml": (200, {"ETag": '"1"'}, urlset("{base}/n1").encode()),
            }
        )
        yield running


def run(server: Server, folder: Path, known_paths: Any = "auto") -> Crawl:
    server.requests.clear()
    return crawl(f"{server.url}/", folder, options=CrawlOptions(known_paths=known_paths))


def short(server: Server, crawled: Crawl, *runs: int) -> list[tuple[str, str]]:
    """The kind and the path of each change."""
    return sorted((change.change.value, change.url.removeprefix(server.url)) for change in crawled.changes(*runs))


def paths(server: Server, crawled: Crawl) -> list[str]:
    """The paths of all pages."""
    urls = crawled.pages(columns="url").to_arrow().column("url").to_pylist()
    return sorted(url.removeprefix(server.url) for url in urls)


@pytest.mark.parametrize(
    ("robots", "known_paths"), [*((robots, "never") for robots in BAD_ROBOTS), ("missing", "auto"), ("empty", "always")]
)
def test_a_robots_txt_that_names_no_sitemap_removes_no_page(
    server: Server, tmp_path: Path, robots: str, known_paths: str
) -> None:
    """If robots.txt leads to no sitemap, those of the run before are asked for, and their changes are seen."""
    good = server.pages["/robots.txt"]
    run(server, tmp_path, known_paths)
    server.pages["/robots.txt"] = BAD_ROBOTS[robots]
    server.pages["/a.xml"] = (200, {}, urlset("{base}/a2", "{base}/a3").encode())
    crawled = run(server, tmp_path, known_paths)
    assert short(server, crawled) == [("added", "/a3"), ("removed", "/a1")]
    assert paths(server, crawled) == ["/a2", "/a3", "/n1"]
    asked = [path for path in server.paths() if path != "/robots.txt"]  # if it is down, there is another try
    assert sorted(set(asked)) == sorted(asked)
    assert {"/index.xml", "/news.xml", "/a.xml"} <= set(asked)
    tree = crawled.tree(server.url)
    assert sorted(page.url.removeprefix(server.url) for page in tree.all_pages()) == ["/a2", "/a3", "/n1"]

    assert short(server, run(server, tmp_path, known_paths)) == []  # it goes on like this
    server.pages["/robots.txt"] = good
    assert short(server, run(server, tmp_path, known_paths)) == []
    assert {"/robots.txt", "/index.xml", "/news.xml", "/a.xml"} <= set(server.paths())


def test_sitemaps_of_other_hosts_are_asked_for(server: Server, tmp_path: Path) -> None:
    """A sitemap that robots.txt named at another host is asked for there."""
    with serve({"/cdn.xml": (200, {}, urlset("{base}/c1").encode())}) as other:
        server.pages["/robots.txt"] = (200, {}, f"Sitemap: {other.url}/cdn.xml\n".encode())
        run(server, tmp_path, "never")
        del server.pages["/robots.txt"]
        assert short(server, run(server, tmp_path, "never")) == []
        assert other.paths() == ["/cdn.xml", "/cdn.xml"]


def test_a_sitemap_that_robots_txt_no_longer_names_is_gone(server: Server, tmp_path: Path) -> None:
    """As long as robots.txt leads to a sitemap, it decides: what it no longer names is not asked for."""
    run(server, tmp_path)
    server.pages["/robots.txt"] = (200, {}, b"Sitemap: {base}/index.xml\n")
    crawled = run(server, tmp_path)
    assert short(server, crawled) == [("removed", "/n1")]
    assert "/news.xml" not in server.paths()


def test_sitemaps_that_do_not_exist_any_more_are_gone(server: Server, tmp_path: Path) -> None:
    """Without a robots.txt, a sitemap that answers 404 loses its pages, and those below it."""
    run(server, tmp_path, "never")
    del server.pages["/robots.txt"], server.pages["/index.xml"]
    crawled = run(server, tmp_path, "never")
    assert short(server, crawled) == [("removed", "/a1"), ("removed", "/a2")]
    assert crawled.sites().to_arrow().column("outcome").to_pylist() == ["complete"]


@pytest.mark.parametrize("robots", ["down", "a web page"])
def test_a_sitemap_that_does_not_exist_is_not_kept_below_robots_txt(
    server: Server, tmp_path: Path, robots: str
) -> None:
    """If nobody knows what robots.txt names, its sitemaps are kept, but not one that answers 404."""
    run(server, tmp_path, "never")
    server.pages["/robots.txt"] = BAD_ROBOTS[robots]
    del server.pages["/index.xml"]
    assert short(server, run(server, tmp_path, "never")) == [("removed", "/a1"), ("removed", "/a2")]


@pytest.mark.parametrize("status", [403, 500, 503])
def test_a_sitemap_that_fails_is_kept(server: Server, tmp_path: Path, status: int) -> None:
    """If such a sitemap cannot be fetched, it is kept with everything below it, and the site is partial."""
    run(server, tmp_path, "never")
    del server.pages["/robots.txt"]
    server.pages["/index.xml"] = (status, {}, b"")
    crawled = run(server, tmp_path, "never")
    assert short(server, crawled) == []
    rows = crawled.sitemaps(columns=["url", "state", "cause", "depth"]).to_arrow().to_pylist()
    found = {row["url"].removeprefix(server.url): (row["state"], row["cause"], row["depth"]) for row in rows}
    assert found["/index.xml"] == ("kept", "blocked", 1)
    assert found["/a.xml"][0] == "kept"
    assert crawled.sites().to_arrow().column("outcome").to_pylist() == ["partial"]


def test_a_known_path_that_fails_is_kept(server: Server, tmp_path: Path) -> None:
    """If a sitemap that was found at a known path cannot be fetched, it is kept."""
    del server.pages["/robots.txt"]
    server.pages["/sitemap.xml"] = (200, {}, urlset("{base}/s1").encode())
    server.pages["/sitemap_news.xml"] = (200, {}, urlset("{base}/n9").encode())
    run(server, tmp_path)
    server.pages["/sitemap_news.xml"] = (500, {}, b"")
    crawled = run(server, tmp_path)
    assert short(server, crawled) == []
    assert crawled.sites().to_arrow().column("outcome").to_pylist() == ["partial"]


def test_sitemaps_that_the_options_leave_out_are_not_asked_for(server: Server, tmp_path: Path) -> None:
    """`exclude` holds for the sitemaps of the run before, too."""
    run(server, tmp_path, "never")
    del server.pages["/robots.txt"]
    server.requests.clear()
    crawl(f"{server.url}/", tmp_path, options=CrawlOptions(known_paths="never", tree={"exclude": "news"}))
    assert "/news.xml" not in server.paths()


def test_no_robots_txt_means_none_of_its_sitemaps(server: Server, tmp_path: Path) -> None:
    """If you do not want robots.txt to be read, what it named before is not asked for."""
    run(server, tmp_path, "never")
    server.requests.clear()
    crawl(f"{server.url}/", tmp_path, options=CrawlOptions(known_paths="always", tree={"use_robots": False}))
    assert "/news.xml" not in server.paths()
