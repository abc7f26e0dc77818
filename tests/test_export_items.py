"""Tables of images, videos and alternates: a row for each, in every format, selected as rows of pages are."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support import SITEMAP_XMLNS, FakeClient
from tables import TREES, demo_tree, made_tree, page_rows, plain_value
from usp.cli import main
from usp.exceptions import InvalidArgumentError
from usp.export import write
from usp.export.exporting import export_stream, plan_export, run_export
from usp.export.formats.base import FormatOptions
from usp.export.formats.csv import write_answer
from usp.export.queries import Query
from usp.export.schema import ITEM_TABLES, TABLES
from usp.objects.page import SitemapImage, SitemapPage
from usp.objects.sitemap import AbstractSitemap, IndexWebsiteSitemap, PagesXMLSitemap
from usp.tree import sitemap_from_bytes, sitemap_tree_for_homepage

pytestmark = pytest.mark.export

HOME = "http://h.example/"
IMAGES = 'xmlns:image="http://www.google.com/schemas/sitemap-image/1.1" xmlns:xhtml="http://www.w3.org/1999/xhtml"'


def entry(name: str, images: str = "", lastmod: str = "") -> str:
    listed = "".join(f"<image:image><image:loc>{HOME}{image}.png</image:loc></image:image>" for image in images)
    date = f"<lastmod>{lastmod}</lastmod>" if lastmod else ""
    return f"<url><loc>{HOME}{name}</loc>{date}{listed}</url>"


FIRST = entry("1", "ab", "2025-01-01") + entry("2") + entry("3", "c", "2024-01-01")
SECOND = entry("3", "cd", "2025-02-01") + entry("1", "x") + entry("4", "a")


def site() -> dict[str, str]:
    return {
        f"{HOME}robots.txt": f"Sitemap: {HOME}a.xml\nSitemap: {HOME}b.xml",
        **{
            f"{HOME}{name}.xml": f"<urlset {SITEMAP_XMLNS} {IMAGES}>{entries}</urlset>"
            for name, entries in (("a", FIRST), ("b", SECOND))
        },
    }


@pytest.fixture
def tree() -> AbstractSitemap:
    return sitemap_tree_for_homepage(HOME, FakeClient(site()), use_known_paths=False)


def images(tree: AbstractSitemap, **options: Any) -> list[str]:
    """Return images as `page:image`."""
    rows = tree.to_arrow("images", **options).to_pylist()
    return [f"{row['page_url'].removeprefix(HOME)}:{row['loc'].removeprefix(HOME)[0]}" for row in rows]


@pytest.mark.parametrize("table", ITEM_TABLES)
@pytest.mark.parametrize("make", TREES)
def test_rows(make: Callable[[], AbstractSitemap], table: str) -> None:
    """Each item of each page is a row: its page, its sitemap, both positions, and its fields."""
    found = make().to_arrow(table)
    assert found.schema.names == list(TABLES[table])
    expected = [
        {
            "page_url": page["url"],
            "sitemap_url": page["sitemap_url"],
            "page_position": page["position"],
            "position": position,
            **item,
        }
        for page in page_rows(make())
        for position, item in enumerate(page[table] or (), 1)
    ]
    assert [plain_value(row) for row in found.to_pylist()] == expected


def test_long_sitemaps() -> None:
    """Positions of pages count on over the parts of a long sitemap."""
    many = 60_000
    entries = "".join(entry(str(number), "a" if number % 2 else "") for number in range(many))
    sitemap = sitemap_from_bytes(f"<urlset {SITEMAP_XMLNS} {IMAGES}>{entries}</urlset>".encode(), f"{HOME}a.xml")
    found = sitemap.to_arrow("images", columns="page_position,position").to_pydict()
    assert found["page_position"] == list(range(2, many + 1, 2))
    assert set(found["position"]) == {1}


def test_selection(tree: AbstractSitemap) -> None:
    """All options select rows: columns and conditions those of the table, dates those of its pages."""
    assert images(tree) == ["1:a", "1:b", "3:c", "3:c", "3:d", "1:x", "4:a"]
    assert images(tree, where="position = 2 or page_position = 3") == ["1:b", "3:c", "3:d", "4:a"]
    assert images(tree, where="loc like '%/a.png'") == ["1:a", "4:a"]
    assert images(tree, where="true") == images(tree)
    assert images(tree, since="2025-01-01") == ["1:a", "1:b", "3:c", "3:d"]
    assert images(tree, until="2024-12-31", where="position = 1") == ["3:c"]
    assert images(tree, since="2030-01-01") == []
    assert tree.to_arrow("images", columns="loc,page_url").schema.names == ["loc", "page_url"]
    assert tree.to_arrow("images", columns="position").to_pydict() == {"position": [1, 2, 1, 1, 2, 1, 1]}
    with pytest.raises(InvalidArgumentError, match="no column 'url'; there are page_url"):
        tree.to_arrow("images", columns="url")
    with pytest.raises(InvalidArgumentError, match="There is no table 'links'; there are pages, sitemaps, images, vid"):
        tree.to_arrow("links")


def test_pages_once(tree: AbstractSitemap) -> None:
    """With `dedupe`, a page that an earlier sitemap lists adds no images; an image of two pages stays."""
    assert images(tree, dedupe=True) == ["1:a", "1:b", "3:c", "4:a"]
    assert images(tree, dedupe=True, where="loc not like '%/c.png'") == ["1:a", "1:b", "3:d", "4:a"]
    assert images(tree, dedupe=True, since="2025-01-15") == ["3:c", "3:d"]


def test_pages_without_a_document() -> None:
    """Pages that somebody made have items, too."""
    pages = [SitemapPage(f"{HOME}1"), SitemapPage(f"{HOME}2", images=[SitemapImage("a"), SitemapImage("b")])]
    tree = IndexWebsiteSitemap(HOME, [PagesXMLSitemap(f"{HOME}s.xml", pages)])
    assert tree.to_arrow("images", columns="page_position,position,loc").to_pylist() == [
        {"page_position": 2, "position": 1, "loc": "a"},
        {"page_position": 2, "position": 2, "loc": "b"},
    ]


@pytest.mark.parametrize("table", ITEM_TABLES)
def test_formats(tmp_path: Path, table: str) -> None:
    """Every format has the same rows."""
    for tree in (demo_tree(), made_tree()):
        expected = tree.to_arrow(table)
        urls = expected.column("page_url").to_pylist()
        for name in ("i.csv", "i.jsonl", "i.parquet", "i.db"):
            assert write(tree, tmp_path / name, table=table).rows == len(urls)
        assert [json.loads(line)["page_url"] for line in (tmp_path / "i.jsonl").read_text().splitlines()] == urls
        with closing(sqlite3.connect(tmp_path / "i.db")) as database:
            assert [url for (url,) in database.execute(f"select page_url from {table}")] == urls
        rows = list(csv.DictReader(io.StringIO((tmp_path / "i.csv").read_text(), newline="")))
        assert [int(row["position"]) for row in rows] == expected.column("position").to_pylist()


def test_sources(tmp_path: Path) -> None:
    """With several targets the first column says which a row is from."""
    path = tmp_path / "images.csv"

    def sites() -> Iterator[Any]:
        for name in ("one", "two"):
            yield name, export_stream(HOME, FakeClient(site()), use_known_paths=False)

    plan = plan_export(path, table="images", has_source=True, where="position = 2", dedupe=True)
    assert run_export(plan, sites()).rows == 2
    plan = plan_export(path, table="images", has_source=True, columns="source,loc", where="source = 'two'")
    assert run_export(plan, sites()).rows == 7
    assert path.read_text().splitlines()[:2] == ["source,loc", f"two,{HOME}a.png"]


def test_sql(tree: AbstractSitemap) -> None:
    """Queries can join the tables."""
    text = """select p.lastmod, count(*) n from images i join pages p on p.loc = i.page_url and p.sitemap_url =
        i.sitemap_url where i.loc like '%.png' group by 1 order by n desc limit 1"""
    with closing(Query(text)) as query:
        (answer,) = query.answers(tree)
        assert [row["n"] for batch in answer.batches for row in batch.to_pylist()] == [2]


@pytest.mark.cli
def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--table images` writes images."""
    path = tmp_path / "a.xml"
    path.write_text(f"<urlset {SITEMAP_XMLNS} {IMAGES}>{FIRST}</urlset>")
    options = ("--table", "images", "--columns", "page_position,loc", "--since", "2025-01-01")
    assert main(["export", "-q", str(path), "-f", "csv", *options]) == 0
    assert capsys.readouterr().out == f"page_position,loc\n1,{HOME}a.png\n1,{HOME}b.png\n"


@pytest.mark.parametrize(
    "text",
    [
        "select loc, lastmod, changefreq from pages",
        "select p.loc, p.lastmod from pages p",
        "select p . LOC, images[1].loc from pages p",
        'select "p".loc from pages p',
        "select p.loc, i.loc from images i join pages p on p.loc = i.page_url",
        "select a.loc, p.loc from alternates a join pages p on p.loc = a.page_url",
        "select unnest(images).loc, p.loc from pages p",
        "select s.loc, s.lastmod from sitemaps s",
        "select loc from images",
        "select loc from alternates",
    ],
)
def test_names_of_sitemaps_in_queries(tree: AbstractSitemap, text: str) -> None:
    """Queries may call columns as sitemaps do, also after a dot, beside fields that are called so."""
    with closing(Query(text)) as query:
        assert len(list(query.answers(tree))) == 1


def test_an_error_is_about_what_is_wrong() -> None:
    """A wrong name is reported, not a name of sitemaps beside it."""
    with pytest.raises(InvalidArgumentError, match=r'"nosuch"'):
        Query("select p.lastmod, p.loc, nosuch from pages p")


@pytest.mark.parametrize(
    ("table", "written", "columns"),
    [
        ("pages", "loc,lastmod,changefreq", ["url", "last_modified", "change_frequency"]),
        ("sitemaps", "lastmod,loc", ["last_modified", "url"]),
        ("images", "loc", ["loc"]),
        ("alternates", "loc,hreflang", ["url", "hreflang"]),
    ],
)
def test_names_of_sitemaps(tree: AbstractSitemap, table: str, written: str, columns: list[str]) -> None:
    """Columns and conditions may call columns as sitemaps do, unless the table has a column of that name."""
    found = tree.to_arrow(table, columns=written, where=f"{written.split(',')[0]} is null or true")
    assert found.schema.names == columns


def test_times_of_queries_have_one_width(tree: AbstractSitemap) -> None:
    """Times in the CSV of a query have no fractions of seconds, as in an export."""
    stream = io.BytesIO()
    with closing(Query("select unnest([timestamp '2024-05-08 10:00:00.5', timestamp '2024-05-08']) as t")) as query:
        (answer,) = query.answers(tree)
        assert write_answer(answer, stream, FormatOptions()) == 2
    assert stream.getvalue() == b"t\n2024-05-08T10:00:00\n2024-05-08T00:00:00\n"
