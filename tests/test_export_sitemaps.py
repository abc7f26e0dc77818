"""The table of sitemaps: what it says of each document, and how little is read for it."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from support import SITEMAP_XMLNS, Server, serve
from usp.export import write
from usp.export.formats.cells import values_of
from usp.export.reading import sitemaps_columns
from usp.export.schema import SITEMAPS
from usp.objects.page import SitemapNewsStory, SitemapPage
from usp.objects.sitemap import AbstractSitemap, PagesXMLSitemap
from usp.tree import sitemap_tree_for_homepage

pytestmark = pytest.mark.export

NEWS = 'xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"'
ENTRIES = """<url><loc>{base}/1</loc><lastmod>2024-05-08</lastmod></url>
<url><loc>{base}/2</loc><lastmod>2025-05-08T10:00:00.5+02:00</lastmod><priority>7</priority></url>
<url><loc>{base}/3</loc><lastmod>soon</lastmod></url>"""
STORY = """<url><loc>{base}/n</loc><news:news><news:publication><news:name>N</news:name>
<news:language>en</news:language></news:publication><news:publication_date>2025-06-01</news:publication_date>
<news:title>T</news:title></news:news></url><url><loc>{base}/m</loc><lastmod>2025-05-01</lastmod></url>"""
PACKED = gzip.compress(f"<urlset {SITEMAP_XMLNS}>{ENTRIES.replace('{base}', 'http://h')}</urlset>".encode())
HEADERS = {"ETag": 'W/"abc"', "Last-Modified": "Thu, 08 May 2025 10:00:00 GMT"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    pages: dict[str, tuple[int, dict[str, str], bytes]] = {
        "/robots.txt": (200, {}, b"Sitemap: {base}/a.xml.gz\nSitemap: {base}/n.xml\nSitemap: {base}/gone.xml\n"),
        "/a.xml.gz": (200, HEADERS, PACKED),
        "/n.xml": (200, {}, f"<urlset {SITEMAP_XMLNS} {NEWS}>{STORY}</urlset>".encode()),
    }
    with serve(pages) as server:
        yield server


@pytest.fixture
def tree(server: Server) -> AbstractSitemap:
    return sitemap_tree_for_homepage(server.url, use_known_paths=False)


def values(tree: AbstractSitemap, name: str) -> list[Any]:
    found: list[Any] = tree.to_arrow("sitemaps", columns=name).column(0).to_pylist()
    return found


def test_what_is_said_of_documents(tree: AbstractSitemap) -> None:
    """Each document has its size, its newest date, its problems, and its headers."""
    _, _, compressed, plain, _ = tree.to_arrow("sitemaps").to_pylist()
    assert (compressed["bytes"], compressed["bytes_inflated"]) == (len(PACKED), len(gzip.decompress(PACKED)))
    assert plain["bytes"] == plain["bytes_inflated"] > 0
    assert values(tree, "pages") == [0, 0, 3, 2, 0]
    date = datetime(2025, 5, 8, 8, 0, 0, 500_000, UTC)
    assert values(tree, "newest") == [None, None, date, datetime(2025, 6, 1, tzinfo=UTC), None]
    assert values(tree, "problems") == [
        sum(sitemap.problem_counts.values()) for sitemap in (tree, *tree.all_sitemaps())
    ]
    assert compressed["problems"] >= 2
    assert values(tree, "etag") == [None, None, 'W/"abc"', None, None]
    modified = values(tree, "http_last_modified")
    assert modified == [None, None, datetime(2025, 5, 8, 10, tzinfo=UTC), None, None]
    seconds = values(tree, "seconds")
    assert seconds[0] is None
    assert all(0 < number < 60 for number in seconds[1:4])


def test_both_tables_agree(tree: AbstractSitemap, tmp_path: Path) -> None:
    """Beside a table of pages, what was read for that is not read again, and is the same."""
    expected = tree.to_arrow("sitemaps").to_pylist()
    with closing(tree.to_duckdb()) as connection:
        found = connection.execute("select pages, newest::varchar from sitemaps").fetchall()
    assert [pages for pages, _ in found] == [row["pages"] for row in expected]
    assert [bool(newest) for _, newest in found] == [row["newest"] is not None for row in expected]
    assert write(tree, tmp_path / "a.db").rows == 5


@pytest.mark.parametrize(
    ("pages", "newest"),
    [
        ([], None),
        ([SitemapPage("a")], None),
        ([SitemapPage("a", last_modified=datetime(1950, 1, 1))], datetime(1950, 1, 1)),
        ([SitemapPage("a"), SitemapPage("b", last_modified=datetime(1950, 1, 1))], datetime(1950, 1, 1)),
        (
            [
                SitemapPage(
                    "a", last_modified=datetime(2020, 1, 1), news_story=SitemapNewsStory("T", datetime(2024, 1, 1))
                ),
                SitemapPage("b", news_story=SitemapNewsStory("T", datetime(2021, 1, 1))),
                SitemapPage("c", news_story=SitemapNewsStory("T", None)),
            ],
            datetime(2021, 1, 1),
        ),
        ([SitemapPage("a", news_story=SitemapNewsStory("T", datetime(1960, 1, 1)))], datetime(1960, 1, 1)),
    ],
)
def test_the_newest_date(pages: list[SitemapPage], newest: datetime | None) -> None:
    """The publication counts where a page has no modification date; dates before 1970 are dates, too."""
    columns = sitemaps_columns(PagesXMLSitemap("http://h/s.xml", pages), wanted=["newest"])
    (found,) = values_of(SITEMAPS["newest"], columns.columns.get("newest"), 1)
    expected = None if newest is None else int(newest.replace(tzinfo=UTC).timestamp() * 1_000_000)
    assert found == expected
