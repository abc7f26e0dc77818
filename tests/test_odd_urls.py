"""Odd URLs, through a real server: without a scheme, placeholders, alternates without `rel`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import Server, serve
from usp.check import check_homepage
from usp.cli import main
from usp.objects.sitemap import IndexRobotsTxtSitemap, PagesTextSitemap, PagesXMLSitemap
from usp.tree import sitemap_tree_for_homepage

pytestmark = pytest.mark.network

XML = {"Content-Type": "application/xml"}
TEXT = {"Content-Type": "text/plain"}
URLSET = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml">'


@pytest.fixture
def site() -> Iterator[Server]:
    """A site that writes its own host without a scheme."""
    with serve({}) as server:
        host = server.url.removeprefix("http://")
        pages = {
            "/robots.txt": (TEXT, f"User-agent: *\nSitemap: {host}/index.xml\nSitemap: null\nSitemap: undefined\n"),
            "/index.xml": (
                XML,
                '<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
                f"<sitemap><loc>{host}/a.xml</loc></sitemap><sitemap><loc>None</loc></sitemap>"
                f"<sitemap><loc>#</loc></sitemap><sitemap><loc>{server.url}/b.txt</loc></sitemap></sitemapindex>",
            ),
            "/a.xml": (
                XML,
                f"{URLSET}\n<url><loc>{host}/1</loc><xhtml:link hreflang='de' href='www.example.de/1'/></url>\n"
                "<url><loc>null</loc></url>\n<url><loc>www.example.org/2</loc></url>\n</urlset>",
            ),
            "/b.txt": (TEXT, f"{host}/3\nwww.example.org/4\nNone\n{server.url}/5\n"),
        }
        server.pages.update({path: (200, headers, text.encode()) for path, (headers, text) in pages.items()})
        yield server


def test_the_tree(site: Server) -> None:
    """Sitemaps and pages without a scheme are fetched and listed; placeholders are not requested."""
    tree = sitemap_tree_for_homepage(site.url, use_known_paths=False)
    assert sorted(site.paths()) == ["/a.xml", "/b.txt", "/index.xml", "/robots.txt"]
    robots = tree.sub_sitemaps[0]
    assert isinstance(robots, IndexRobotsTxtSitemap)
    assert [problem.code for problem in robots.problems] == ["U514", "U515", "U515"]
    xml, text = robots.sub_sitemaps[0].sub_sitemaps
    assert isinstance(xml, PagesXMLSitemap)
    assert isinstance(text, PagesTextSitemap)
    assert [page.url for page in tree.all_pages()] == [
        *(f"{site.url}/1", "http://www.example.org/2"),
        *(f"{site.url}/3", "http://www.example.org/4", f"{site.url}/5"),
    ]
    assert xml.pages[0].alternates == [("de", "http://www.example.de/1")]
    assert [(problem.code, problem.line) for problem in xml.problems] == [
        *(("U514", 2), ("H636", 2), ("U514", 2), ("U515", 3), ("U514", 4)),
    ]
    assert [(problem.code, problem.line) for problem in text.problems] == [("U514", 1), ("U514", 2), ("P412", 3)]


def test_the_check(site: Server) -> None:
    """A check reports each of them in its place."""
    report = check_homepage(site.url)
    codes = {"U514", "U515", "H636", "P412"}
    found = {
        checked.name: [problem.code for problem in checked.problems if problem.code in codes]
        for checked in report.sitemaps
    }
    assert {name: sorted(problems) for name, problems in found.items() if problems} == {
        "robots.txt": ["U514", "U515", "U515"],
        "index.xml": ["U514", "U515", "U515"],
        "a.xml": ["H636", "U514", "U514", "U514", "U515"],
        "b.txt": ["P412", "U514", "U514"],
    }


def test_the_export(site: Server, tmp_path: Path) -> None:
    """An export has the same URLs, and the codes of each page."""
    file = tmp_path / "pages.csv"
    assert main(["export", site.url, "-o", str(file), "--columns", "url,problems"]) == 0
    assert file.read_text("utf-8").splitlines()[1:] == [
        f'{site.url}/1,"[""H636"",""U514""]"',
        'http://www.example.org/2,"[""U514""]"',
        f'{site.url}/3,"[""U514""]"',
        'http://www.example.org/4,"[""U514""]"',
        f"{site.url}/5,",
    ]
