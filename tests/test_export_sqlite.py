"""SQLite: what is read back from the tables is what the tree has, and SQL works on it."""

from __future__ import annotations

import errno
import json
import resource
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus import needs_corpus, trees
from tables import (
    HOME,
    LISTS,
    TREES,
    Row,
    batches_of,
    columns_with,
    demo_tree,
    flat,
    json_rows,
    known,
    made_tree,
    tree_of,
    write,
)
from usp.export.batches import Batch
from usp.export.formats.base import FormatOptions, Table
from usp.export.formats.cells import PIECE_ROWS
from usp.export.formats.sqlite import sqlite_writer
from usp.export.schema import PAGES, SCHEMA_VERSION, SITEMAPS, flattened
from usp.export.selection import select
from usp.objects.page import SitemapNewsStory, SitemapPage, SitemapVideo
from usp.objects.sitemap import AbstractSitemap
from usp.scan.columns import Scalar

pytestmark = pytest.mark.export

NAMES = [path.replace(".", "_") for path in flattened(PAGES)]
LIST_NAMES = [path.replace(".", "_") for path in LISTS]


def pages_file(tree: AbstractSitemap, path: Path, *paths: str) -> str:
    write(
        sqlite_writer(str(path), Table("pages", PAGES, select(PAGES, paths or None).chosen), FormatOptions()),
        *batches_of(tree),
    )
    return str(path)


def rows(path: str, query: str, *values: Any) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query, values).fetchall()


def read_back(path: str) -> list[Row]:
    found = []
    for row in rows(path, "select * from pages"):
        named = dict(zip(NAMES, row, strict=True))
        lists = {name: json.loads(named[name]) for name in LIST_NAMES if named[name] is not None}
        found.append(known(named | lists))
    return found


def expected(tree: AbstractSitemap) -> list[Row]:
    return [flat(row, "_") for row in json_rows(tree)]


@pytest.mark.parametrize("make_tree", TREES)
def test_reads_back(tmp_path: Path, make_tree: Any) -> None:
    """Whatever the texts are, what is in the file is what the pages are; what has no value is null."""
    tree = make_tree()
    path = pages_file(tree, tmp_path / "a.db")
    assert read_back(path) == expected(tree)
    assert rows(path, "pragma integrity_check") == [("ok",)]


def test_reads_back_by_pandas(tmp_path: Path) -> None:
    """What others have for SQLite reads it, too."""
    path = pages_file(demo_tree(), tmp_path / "a.db")
    with closing(sqlite3.connect(path)) as connection:
        found = pandas.read_sql("select * from pages", connection)["url"].to_list()
    assert found == [page.url for page in demo_tree().all_pages()]


@needs_corpus
def test_corpus(tmp_path: Path) -> None:
    """What real files hold is read back."""
    seen = 0
    for number, (name, tree) in enumerate(trees("urlset", "rss", "atom", most=20_000)):
        path = tmp_path / f"{number}.db"
        found = read_back(pages_file(tree, path))
        path.unlink()
        assert found == expected(tree), name
        seen += len(found)
    assert seen > 1_000


def test_types(tmp_path: Path) -> None:
    """Columns are typed, and so are their values: flags are numbers, times are texts, a struct is its fields."""
    path = pages_file(made_tree(), tmp_path / "a.db")
    types = {name: kind for _, name, kind, *_ in rows(path, "pragma table_info(pages)")}
    assert list(types) == NAMES
    assert {name: kind for name, kind in types.items() if kind != "TEXT"} == {"priority": "REAL", "position": "INTEGER"}
    stored = rows(path, "select distinct typeof(url), typeof(priority), typeof(position) from pages where priority > 0")
    assert stored == [("text", "real", "integer")]
    flag = {"live": Scalar.BOOLEAN}
    writer = sqlite_writer(str(tmp_path / "b.db"), Table("flags", flag, flag), FormatOptions())
    write(writer, Batch(columns_with(flag, live=[True, False, None])))
    assert rows(str(tmp_path / "b.db"), "select live, typeof(live) from flags") == [
        (1, "integer"),
        (0, "integer"),
        (None, "null"),
    ]


def test_sql_works_on_it(tmp_path: Path) -> None:
    """The functions of SQLite read times and lists."""
    date = datetime(2024, 5, 8, 10, 0, 0, 250_000, UTC)
    story = SitemapNewsStory("a", date, keywords=["x", "y"])
    page = SitemapPage(HOME, last_modified=date, news_story=story, videos=[SitemapVideo(title="v", duration=7)])
    path = pages_file(tree_of(page), tmp_path / "a.db")
    query = "select date(last_modified), strftime('%f', news_publish_date), news_title from pages"
    assert rows(path, query) == [("2024-05-08", "00.250", "a")]
    assert rows(path, "select value from pages, json_each(news_keywords)") == [("x",), ("y",)]
    assert rows(path, "select json_extract(videos, '$[0].duration') from pages") == [(7,)]


def test_two_tables(tmp_path: Path) -> None:
    """A file has both tables, one written after the other, even if both were begun before; it says its version."""
    path = str(tmp_path / "a.db")
    pages = sqlite_writer(path, Table("pages", PAGES, select(PAGES, None).chosen), FormatOptions())
    sitemaps = sqlite_writer(path, Table("sitemaps", SITEMAPS, select(SITEMAPS, None).chosen), FormatOptions())
    write(pages, *batches_of(tree_of(SitemapPage(HOME))))
    write(sitemaps, Batch(columns_with(SITEMAPS, url=[HOME, HOME], depth=[0, None])))
    assert rows(path, "select url, sitemap_url from pages") == [(HOME, HOME + "s.xml")]
    assert rows(path, "select url, depth, status from sitemaps") == [(HOME, 0, None), (HOME, None, None)]
    assert rows(path, "select * from usp") == [("pages", SCHEMA_VERSION), ("sitemaps", SCHEMA_VERSION)]
    assert rows(path, "pragma user_version") == [(SCHEMA_VERSION,)]
    assert [file.name for file in tmp_path.iterdir()] == ["a.db"]


def test_no_rows(tmp_path: Path) -> None:
    """A table without rows is there; a row without values, too."""
    path = pages_file(tree_of(), tmp_path / "a.db", "url", "news.title")
    assert rows(path, "select url, news_title from pages") == []
    path = pages_file(tree_of(SitemapPage(HOME)), tmp_path / "b.db", "news.title", "images")
    assert rows(path, "select * from pages") == [(None, None)]


def test_rows_that_are_kept(tmp_path: Path) -> None:
    """Of a batch of any size, only the rows are written that are kept, in their order, from any thread."""
    length = 5 * PIECE_ROWS
    columns = columns_with(PAGES, url=[f"{HOME}{number}" for number in range(length)])
    path = str(tmp_path / "a.db")
    writer = sqlite_writer(path, Table("pages", PAGES, select(PAGES, ("priority", "url")).chosen), FormatOptions())
    encoded = writer.encode(Batch(columns, bytes(number % 1_000 == 0 for number in range(length))))
    thread = threading.Thread(target=writer.write, args=(encoded,))
    thread.start()
    thread.join()
    writer.close()
    assert rows(path, "select * from pages") == [(None, f"{HOME}{number}") for number in range(0, length, 1_000)]


@settings(max_examples=50)
@given(st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]))))
def test_any_texts(tmp_path_factory: pytest.TempPathFactory, values: list[str | None]) -> None:
    """Any texts come back as they are."""
    path = tmp_path_factory.mktemp("any") / "a.db"
    writer = sqlite_writer(
        str(path), Table("sitemaps", SITEMAPS, select(SITEMAPS, ("reason",)).chosen), FormatOptions()
    )
    write(writer, Batch(columns_with(SITEMAPS, reason=values)))
    assert [value for (value,) in rows(str(path), "select reason from sitemaps")] == values


def test_what_cannot_be_written(tmp_path: Path) -> None:
    """What SQLite cannot do is an OSError that names the file; a full disk is one as well."""
    path = str(tmp_path / "no" / "a.db")
    with pytest.raises(OSError, match="Unable to open database file") as caught:
        sqlite_writer(path, Table("pages", PAGES, select(PAGES, None).chosen), FormatOptions()).close()
    assert (caught.value.errno, caught.value.filename) == (errno.EACCES, path)
    (tmp_path / "b.db").write_bytes(b"no database" * 1_000)
    with pytest.raises(OSError, match="File is not a database"):
        sqlite_writer(
            str(tmp_path / "b.db"), Table("pages", PAGES, select(PAGES, None).chosen), FormatOptions()
        ).close()


def test_full_disk(tmp_path: Path) -> None:
    """What finds no room for a file leaves no trace of it, and names it."""
    code = (
        "import sys\nfrom usp.export.files import whole_file\nfrom usp.export.formats.sqlite import sqlite_writer\n"
        "from usp.export.formats.base import FormatOptions, Table\n"
        "from usp.export.batches import Batch\nfrom usp.scan.columns import Columns, Scalar, column_of\n"
        "kinds = {'url': Scalar.TEXT}\n"
        "with whole_file(sys.argv[1]) as path:\n"
        "    writer = sqlite_writer(path, Table('pages', kinds, kinds), FormatOptions())\n"
        "    for number in range(10):\n"
        "        columns = Columns(1_000, {'url': column_of(Scalar.TEXT, [f'{number}' * 100] * 1_000)})\n"
        "        writer.write(writer.encode(Batch(columns)))\n"
        "    writer.close()\n"
    )
    path = tmp_path / "a.db"
    run = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    last = run.stderr.splitlines()[-1]
    assert last.startswith("OSError: ")
    assert last.endswith(f": '{path}'")
    assert list(tmp_path.iterdir()) == []
