"""Tables of trees in other libraries: what each of them reads equals the pages."""

from __future__ import annotations

import pickle
import re
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pandas
import polars
import pyarrow as pa
import pytest

from corpus import needs_corpus, trees
from support import urlset
from tables import (
    HOME,
    TREES,
    Row,
    empty_tree,
    made_tree,
    odd_tree,
    page_rows,
    plain_rows,
    plain_value,
)
from usp.exceptions import InvalidArgumentError, MissingExtraError
from usp.export.frames import TreeTable
from usp.export.schema import PAGES, SITEMAPS
from usp.extras import Installation
from usp.objects.page import Pages, SitemapPage
from usp.objects.sitemap import AbstractSitemap, IndexWebsiteSitemap, PagesXMLSitemap
from usp.tree import sitemap_from_bytes

pytestmark = pytest.mark.export

MakeTree = Callable[[], AbstractSitemap]


def arrow_rows(relation: duckdb.DuckDBPyRelation) -> list[Row]:
    """Return the rows of a query by way of Arrow: without pytz, DuckDB makes no Python times with a zone."""
    found: list[Row] = relation.to_arrow_table().to_pylist()
    return found


def by_duckdb(tree: AbstractSitemap) -> list[Row]:
    with closing(tree.to_duckdb()) as connection:
        return arrow_rows(connection.sql("select * from pages"))


def by_registering(tree: AbstractSitemap) -> list[Row]:
    with closing(duckdb.connect()) as connection:
        connection.register("pages", TreeTable(tree))
        return arrow_rows(connection.sql("select * from pages"))


READERS: dict[str, Callable[[AbstractSitemap], list[Row]]] = {
    "arrow": lambda tree: tree.to_arrow().to_pylist(),
    "pandas": lambda tree: tree.to_pandas().to_dict("records"),
    "polars": lambda tree: tree.to_polars().to_dicts(),
    "duckdb": by_duckdb,
    "duckdb, registered": by_registering,
    "polars, by capsule": lambda tree: polars.DataFrame(tree).to_dicts(),
    "pyarrow, by capsule": lambda tree: pa.table(tree).to_pylist(),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("make_tree", TREES)
def test_pages(make_tree: MakeTree, reader: str) -> None:
    """Every library has the pages as the tree has them, in their order."""
    tree = make_tree()
    expected = page_rows(tree)
    assert expected == plain_rows(READERS[reader](tree))
    assert bool(expected) is (make_tree is not empty_tree)


@needs_corpus
def test_pages_of_real_files() -> None:
    """Real files become the rows that their pages are."""
    seen = 0
    for name, tree in trees("urlset", "rss", "atom", "text", most=100_000):
        expected = page_rows(tree)
        assert expected == plain_rows(tree.to_arrow().to_pylist()), name
        seen += len(expected)
    assert seen > 10_000


def test_the_text_of_a_date_with_no_zone_is_kept() -> None:
    """A date that had no zone stands beside its time as it was written."""
    rows = odd_tree().to_arrow(columns="url,last_modified_text").to_pylist()
    texts = {row["url"]: row["last_modified_text"] for row in rows if row["last_modified_text"] is not None}
    written = {"no-zone": "2024-05-08T10:00:00", "0": "2024-05-08", "4": "2024-05-08T10:00", "6": "2024"}
    assert texts == {HOME + name: text for name, text in written.items()}


def test_types_of_data_frames() -> None:
    """Times are in UTC to the microsecond, and whole numbers whole, whatever is missing."""
    types = odd_tree().to_pandas("sitemaps").dtypes
    assert [str(types[name]) for name in ("status", "fetched_at")] == ["Int64", "datetime64[us, UTC]"]
    assert polars.Datetime("us", "UTC") == odd_tree().to_polars().schema["last_modified"]
    assert list(PAGES) == list(empty_tree().to_pandas()) == empty_tree().to_polars().columns


def test_a_data_frame_can_be_changed() -> None:
    """A data frame of pandas shares no memory that must not be written to."""
    frame = odd_tree().to_pandas()
    frame.loc[0, "priority"] = 0.25
    frame["position"] += 1
    assert [frame["priority"][0], frame["position"][0]] == [0.25, 2]


@pytest.mark.parametrize("make_tree", TREES)
def test_sitemaps(make_tree: MakeTree) -> None:
    """The table of sitemaps has a row for each, the root among them, with the number of its own pages."""
    tree = make_tree()
    rows = tree.to_arrow("sitemaps").to_pylist()
    sitemaps = [tree, *tree.all_sitemaps()]
    assert [(sitemap.url, len(sitemap.pages)) for sitemap in sitemaps] == [(row["url"], row["pages"]) for row in rows]
    assert list(SITEMAPS) == list(rows[0])
    with closing(tree.to_duckdb()) as connection:
        assert rows == plain_value(arrow_rows(connection.sql("select * from sitemaps")))


def test_what_is_said_of_sitemaps() -> None:
    """Each has its place in the tree, how its document came, and why it did not."""
    rows = odd_tree().to_arrow("sitemaps").to_pylist()
    places = [(row["url"].rpartition("/")[2], row["parent"], row["depth"], row["type"], row["status"]) for row in rows]
    robots, above = f"{HOME}robots.txt", f"{HOME}index.xml"
    assert places == [
        ("", None, 0, "website", None),
        ("robots.txt", HOME, 1, "robots", 200),
        ("index.xml", robots, 2, "index", 200),
        ("odd.xml", above, 3, "urlset", 200),
        ("no.xml", above, 3, "urlset", 200),
        ("urls.txt", above, 3, "text", 200),
        ("none.xml", robots, 2, "invalid", 404),
    ]
    assert [row["url"].rpartition("/")[2] for row in rows if "404 Not Found" in (row["reason"] or "")] == ["none.xml"]
    assert all(row["bytes"] > 0 and row["fetched_at"] > datetime(2024, 1, 1, tzinfo=UTC) for row in rows[1:6])


def test_sitemaps_of_one_url_are_counted_each() -> None:
    """A count that was made for a URL is not taken for another sitemap of that URL which differs."""
    twins = [PagesXMLSitemap(f"{HOME}s", [SitemapPage(f"/{i}") for i in range(n)]) for n in (1, 2, 1)]
    tree = IndexWebsiteSitemap(HOME, twins)
    with closing(tree.to_duckdb()) as connection:
        assert connection.execute("select pages from sitemaps").fetchall() == [(0,), (1,), (2,), (1,)]


def test_sitemaps_are_not_counted_twice() -> None:
    """A database with both tables reads each document once; a table of sitemaps without counts reads none."""
    reads: list[str] = []
    tree = counted_tree(reads, 3)
    tree.to_duckdb().close()
    assert sorted(reads) == ["/0", "/1", "/2"]
    reads.clear()
    tree.to_arrow("sitemaps", columns="url,type")
    assert reads == []
    table = TreeTable(tree, "sitemaps")
    for _ in range(3):
        table.reader().read_all()
    assert sorted(reads) == ["/0", "/1", "/2"]


def counted_tree(reads: list[str], sitemaps: int, pages: int = 2) -> IndexWebsiteSitemap:
    """A tree of documents that says when each is read."""

    def sitemap(number: int) -> AbstractSitemap:
        urls = (f"{HOME}{number}/{page}" for page in range(pages))
        read = sitemap_from_bytes(urlset(*urls).encode()).pages
        assert isinstance(read, Pages)
        assert read.columns is not None
        columns = read.columns

        def noted(wanted: Any) -> Any:
            reads.append(f"/{number}")
            return columns(wanted)

        return PagesXMLSitemap(f"{HOME}{number}.xml", Pages(lambda: iter(read), noted))

    return IndexWebsiteSitemap(HOME, [sitemap(number) for number in range(sitemaps)])


def test_selecting() -> None:
    """Columns, rows and first pages are chosen by the same words in every library."""
    chosen: dict[str, Any] = {"columns": ["position", "url"], "where": "priority > 0.8"}
    expected = [{"position": 1, "url": f"{HOME}no-zone"}]
    assert expected == odd_tree().to_arrow(**chosen).to_pylist()
    assert expected == odd_tree().to_pandas(**chosen).to_dict("records")
    assert expected == odd_tree().to_polars(**chosen).to_dicts()
    titles = odd_tree().to_arrow(columns="news.title").to_pylist()
    assert titles == [{"news.title": row["news"] and row["news"]["title"]} for row in page_rows(odd_tree())]
    late = odd_tree().to_arrow(columns="url", since="2024-05-08T05:00:00Z").num_rows
    assert late == 6


def test_selecting_the_first_of_each() -> None:
    """With `dedupe`, a page that two sitemaps list comes once, from the first of them."""
    rows = odd_tree().to_arrow(columns="url,sitemap_url", dedupe=True).to_pylist()
    urls = [row["url"] for row in page_rows(odd_tree())]
    assert list(dict.fromkeys(urls)) == [row["url"] for row in rows]
    assert len(urls) == len(rows) + 1
    assert [row["sitemap_url"] for row in rows if row["url"].endswith("/no-zone")] == [f"{HOME}odd.xml"]


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ("page", {}, "There is no table 'page'; there are pages, sitemaps, images"),
        ("sitemaps", {"dedupe": True}, "are about pages, not about sitemaps"),
        ("sitemaps", {"since": "7d"}, "are about pages, not about sitemaps"),
        ("pages", {"columns": "nosuch"}, "nosuch"),
    ],
)
def test_wrong_selections(table: str, options: dict[str, Any], message: str) -> None:
    """What cannot be selected is said before anything is read."""
    with pytest.raises(InvalidArgumentError, match=message):
        made_tree().to_arrow(table, **options)


@pytest.mark.parametrize(
    ("method", "missing", "extra"),
    [
        ("to_arrow", "pyarrow", "arrow"),
        ("to_pandas", "pandas", "pandas"),
        ("to_pandas", "pyarrow", "pandas"),
        ("to_polars", "polars", "polars"),
        ("to_polars", "pyarrow", "polars"),
        ("to_duckdb", "duckdb", "sql"),
        ("to_duckdb", "pyarrow", "sql"),
        ("__arrow_c_stream__", "pyarrow", "arrow"),
        ("__arrow_c_schema__", "pyarrow", "arrow"),
    ],
)
def test_missing_packages(method: str, missing: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a package is not installed, the error names the extra that installs it."""
    monkeypatch.setitem(sys.modules, missing, None)
    command = Installation.here().command(extra, missing)
    with pytest.raises(MissingExtraError, match=re.escape(f"This needs {missing}; install it with: {command}")):
        getattr(made_tree(), method)()


def test_a_tree_stays_what_it_was() -> None:
    """Tables change nothing of a tree: its value, its dictionary, its pickle."""
    tree = sitemap_from_bytes(urlset(f"{HOME}a").encode())
    before = tree.to_dict()
    tree.to_arrow()
    assert before == tree.to_dict()
    assert tree == pickle.loads(pickle.dumps(tree))
    assert not hasattr(tree, "__dict__")


def test_a_database_on_disk(tmp_path: Path) -> None:
    """A database in a file is kept, states its schema, and has its tables replaced by the next tree."""
    path = tmp_path / "site.duckdb"
    odd_tree().to_duckdb(path).close()
    made_tree().to_duckdb(path).close()
    with closing(duckdb.connect(str(path))) as connection:
        assert plain_rows(arrow_rows(connection.sql("select * from pages"))) == page_rows(made_tree())
        tables = connection.execute("select table_name, comment from duckdb_tables() order by 1").fetchall()
        assert tables == [("pages", "usp.schema pages/2"), ("sitemaps", "usp.schema sitemaps/2")]
        assert connection.execute("select view_name from duckdb_views() where not internal").fetchall() == []


@pytest.mark.parametrize("what", ["pages", "transport"])
def test_a_database_has_both_tables_or_none(what: str, tmp_path: Path) -> None:
    """If pages cannot be read, or what is said of sitemaps, a database is left as it was, and closed."""
    path = tmp_path / "site.duckdb"
    made_tree().to_duckdb(path).close()
    with pytest.raises(duckdb.Error, match="lost"):
        failing_tree(what).to_duckdb(path)
    with closing(duckdb.connect(str(path))) as connection:
        assert plain_rows(arrow_rows(connection.sql("select * from pages"))) == page_rows(made_tree())


def failing_tree(what: str) -> AbstractSitemap:
    """A tree with a sitemap of which something cannot be had."""

    def lost(_: object) -> Any:
        raise OSError("lost")

    sitemap_class = type("Failing", (PagesXMLSitemap,), {what: property(lost)})
    return IndexWebsiteSitemap(HOME, [sitemap_class(f"{HOME}s", [])])


def test_errors_while_reading() -> None:
    """A document that cannot be read back raises, and leaves no threads behind."""
    with pytest.raises(OSError, match="lost"):
        failing_tree("pages").to_arrow()
    assert not reading_threads()


def reading_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("usp-export")]


def test_a_stream_is_read_as_it_is_taken() -> None:
    """Sitemaps are read a few ahead of what is taken; a stream that is dropped stops, with its threads."""
    reads: list[str] = []
    reader = pa.RecordBatchReader.from_stream(counted_tree(reads, 40, pages=17_000))
    assert reads == []
    first = reader.read_next_batch()
    time.sleep(0.1)
    assert first.num_rows == 17_000
    assert 0 < len(reads) < 20
    assert reading_threads()
    del reader
    deadline = time.monotonic() + 10
    while reading_threads() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not reading_threads()
    assert len(reads) < 20


def test_a_query_that_needs_few_rows_stops_reading() -> None:
    """DuckDB drops a stream when it has enough of it, and what reads for it stops."""
    reads: list[str] = []
    with closing(duckdb.connect()) as connection:
        connection.register("pages", TreeTable(counted_tree(reads, 40, pages=17_000)))
        assert connection.execute("select position from pages limit 2").fetchall() == [(1,), (2,)]
    assert len(reads) < 20
    assert not reading_threads()


def test_a_table_is_scanned_any_number_of_times() -> None:
    """DuckDB reads a registered table anew for each scan, two at once in one query too."""
    table = TreeTable(odd_tree())
    rows = len(page_rows(odd_tree()))
    with closing(duckdb.connect()) as connection:
        connection.register("pages", table)
        for _ in range(3):
            assert (rows,) == connection.execute("select count(*) from pages").fetchone()
        join = "select count(*) from pages a join pages b using (sitemap_url, position)"
        assert (rows,) == connection.execute(join).fetchone()
        late = "select count(*) from pages where last_modified >= '9999-01-01'"
        assert connection.execute(late).fetchone() == (3,)


def test_small_sitemaps_are_put_together() -> None:
    """Many sitemaps of few pages come in few batches; their order stays."""
    tree = counted_tree([], 300, pages=3)
    table = tree.to_arrow(columns="url,position")
    assert table.column("url").num_chunks == 1
    assert [page.url for page in tree.all_pages()] == table.column("url").to_pylist()


def test_small_and_large_sitemaps() -> None:
    """Small sitemaps before and after a large one stay before and after it."""
    sizes = (1, 2, 17_000, 3, 4)
    sitemaps = [counted_tree([], 1, pages=pages) for pages in sizes]
    table = IndexWebsiteSitemap(HOME, sitemaps).to_arrow(columns="position")
    assert table.column(0).to_pylist() == [position for size in sizes for position in range(1, size + 1)]
    assert [len(chunk) for chunk in table.column(0).chunks] == [3, 17_000, 7]


def test_the_schema_of_a_stream() -> None:
    """What a tree says of its schema is what its stream has; and which version it is."""
    schema = pa.schema(odd_tree())
    assert schema.equals(odd_tree().to_arrow().schema, check_metadata=True)
    assert schema.metadata == {b"usp.schema": b"pages/2"}
    assert list(PAGES) == schema.names
    assert pandas.ArrowDtype(pa.timestamp("us", "UTC")).pyarrow_dtype == schema.field("last_modified").type


def test_pages_that_are_there_twice() -> None:
    """A list of pages that somebody made has a row for each, even of one URL; a date without a zone has its text."""
    date = datetime(2024, 5, 8, 10, 0)
    pages = [SitemapPage("http://h/1", last_modified=date), SitemapPage("http://h/2"), SitemapPage("http://h/1")]
    table = PagesXMLSitemap("http://h/s.xml", pages).to_arrow(columns="url,position,last_modified_text,priority")
    assert table.to_pydict() == {
        "url": ["http://h/1", "http://h/2", "http://h/1"],
        "position": [1, 2, 3],
        "last_modified_text": ["2024-05-08T10:00:00", None, None],
        "priority": [None, None, None],
    }


def test_small_tables_are_small() -> None:
    """What is pickled, or written as Arrow, of few rows is not that of many: no column is a part of a longer one."""
    tree = sitemap_from_bytes(urlset("http://h/1", "http://h/2").encode())
    assert len(pickle.dumps(tree.to_arrow())) < 50_000


def test_a_sitemap_without_a_url() -> None:
    """Columns are as long as the table, whatever its sitemap is called."""
    pages = [SitemapPage(f"http://h/{number}") for number in range(70_000)]
    table = PagesXMLSitemap("", pages).to_arrow(columns="sitemap_url,position")
    assert table["sitemap_url"].to_pylist() == [""] * 70_000
    assert table["position"].to_pylist() == list(range(1, 70_001))


def test_time_zones_of_duckdb() -> None:
    """Times compare with those that have a zone as they should, wherever the machine is."""
    page = SitemapPage("http://h/1", last_modified=datetime(2024, 5, 8, tzinfo=UTC))
    with closing(PagesXMLSitemap("http://h/s.xml", [page]).to_duckdb()) as database:
        assert database.sql("select current_setting('TimeZone')").fetchall() == [("UTC",)]
        later = "select url from pages where last_modified > timestamptz '2024-05-08 01:00:00+00'"
        assert database.sql(later).fetchall() == []
        kinds = database.sql("select distinct typeof(last_modified) from pages").fetchall()
        assert kinds == [("TIMESTAMP WITH TIME ZONE",)]


def test_times_of_duckdb_in_python() -> None:
    """DuckDB gives times to Python as datetimes with a zone, in UTC."""
    with closing(odd_tree().to_duckdb()) as connection:
        found = connection.sql("select last_modified from pages where last_modified is not null limit 1").fetchall()
    ((moment,),) = found
    assert isinstance(moment, datetime)
    assert moment.utcoffset() == timedelta(0)
