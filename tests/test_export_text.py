"""CSV, TSV and JSON: what every reader makes of them is what the tree has, and nothing in them acts on anything."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import compress, cycle, repeat
from pathlib import Path
from typing import Any, BinaryIO

import duckdb
import pandas
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus import needs_corpus, trees
from tables import (
    HOME,
    LISTS,
    ODD_TEXTS,
    TREES,
    TREES_WITH_PAGES,
    Row,
    batches_of,
    columns_with,
    flat,
    json_rows,
    known,
    made_tree,
    named_rows,
    tree_of,
    write,
)
from usp.export.batches import Batch, page_columns, pages_of
from usp.export.formats.base import FormatOptions, Table, Writer
from usp.export.formats.cells import PIECE_ROWS
from usp.export.formats.csv import csv_writer, tsv_writer
from usp.export.formats.json import json_writer, jsonl_writer
from usp.export.schema import PAGES, SITEMAPS
from usp.export.selection import select
from usp.objects.page import SitemapNewsStory, SitemapPage
from usp.objects.sitemap import AbstractSitemap, IndexWebsiteSitemap, PagesXMLSitemap
from usp.origins import normalized_host
from usp.scan.columns import Columns, columns_of_all
from usp.scan.url_parts import URL_PARTS, split_urls
from usp.tree import sitemap_from_bytes

pytestmark = pytest.mark.export


def raw_csv_writer(stream: BinaryIO, table: Table, options: FormatOptions) -> Writer:
    return csv_writer(stream, table, FormatOptions(keep_formulas=True))


many = settings(max_examples=200)
MakeTree = Callable[[], AbstractSitemap]


def undone(cell: str, is_raw: bool = False) -> str:
    """A cell of a text as it was: the two rules of the module's docstring."""
    if not is_raw:
        cell = re.sub("^'(?=[\\s'\"\ufeff\u200b]*[-=+@\uff1d\uff0b\uff0d\uff20\t\r\n])", "", cell)
    return re.sub(r"\\x([0-9a-f]{2})|\\u([0-9a-f]{4})", lambda found: chr(int(found[1] or found[2], 16)), cell)


def csv_rows(rows: Iterable[Row]) -> list[Row]:
    """Rows as CSV has them: with paths, nothing as an empty cell, and times without fractions of a second."""
    return [{path: _cell(path, value) for path, value in flat(row).items()} for row in rows]


def _cell(path: str, value: Any) -> Any:
    if value is None:
        return ""
    return re.sub(r"\.\d+Z$", "Z", value) if path in ("last_modified", "news.publish_date") else value


def from_cells(cells: Row, is_raw: bool = False) -> Row:
    """The values of a row of CSV."""
    row: Row = {}
    for path, cell in known(cells).items():
        if not cell:
            row[path] = ""
        elif path in LISTS:
            row[path] = json.loads(cell)
        elif path in ("priority", "position"):
            row[path] = float(cell)
        else:
            row[path] = undone(cell, is_raw)
    return row


def by_csv(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8", newline="") as stream:
        yield from csv.DictReader(stream, strict=True)


def by_pandas(path: Path) -> Iterator[Row]:
    yield from pandas.read_csv(path, dtype=str, keep_default_na=False).to_dict("records")


def by_polars(path: Path) -> Iterator[Row]:
    yield from polars.read_csv(path, infer_schema=False).iter_rows(named=True)


def by_duckdb(path: Path) -> Iterator[Row]:
    with duckdb.connect() as connection:
        yield from named_rows(connection.execute("select * from read_csv(?, all_varchar = true)", [str(path)]))


CSV_READERS = [by_csv, by_pandas, by_polars, by_duckdb]


def written(make: Any, batches: Iterable[Batch], *paths: str, types: Any = PAGES) -> bytes:
    stream = io.BytesIO()
    table = Table("pages", types, select(types, paths or None).chosen)
    write(make(stream, table, FormatOptions()), *batches)
    return stream.getvalue()


def pages_as(make: Any, tree: AbstractSitemap, *paths: str) -> bytes:
    """The pages of a tree as a writer of a stream writes them."""
    return written(make, batches_of(tree), *paths)


def encoded(make: Any, columns: Columns, *paths: str, types: Any = SITEMAPS, kept: Any = None) -> str:
    return written(make, [Batch(columns, None if kept is None else bytes(kept))], *paths, types=types).decode()


@pytest.mark.parametrize("reader", CSV_READERS)
@pytest.mark.parametrize("make_tree", TREES_WITH_PAGES)
@pytest.mark.parametrize("is_raw", [False, True])
def test_csv_reads_back(tmp_path: Path, make_tree: MakeTree, reader: Any, is_raw: bool) -> None:
    """Every reader of CSV gives what the pages of the tree are."""
    path = tmp_path / "pages.csv"
    path.write_bytes(pages_as(raw_csv_writer if is_raw else csv_writer, make_tree()))
    assert [from_cells(cells, is_raw) for cells in reader(path)] == csv_rows(json_rows(make_tree()))


def test_csv_tells_nothing_from_an_empty_text() -> None:
    """What has no value is an empty cell; an empty text is quoted. A line is never empty."""
    stories = [None, SitemapNewsStory("", None), SitemapNewsStory("a", None, "")]
    tree = tree_of(*(SitemapPage(f"{HOME}{number}", news_story=story) for number, story in enumerate(stories)))
    paths = ("url", "news.title", "news.publication_name")
    data = pages_as(csv_writer, tree, *paths)
    assert data.decode() == f'{",".join(paths)}\n{HOME}0,,\n{HOME}1,"",\n{HOME}2,a,""\n'
    expected = [(f"{HOME}0", None, None), (f"{HOME}1", "", None), (f"{HOME}2", "a", "")]
    assert polars.read_csv(io.BytesIO(data)).rows() == expected
    assert pages_as(csv_writer, tree, "news.title") == b'news.title\n""\n""\na\n'
    assert pages_as(csv_writer, tree, "news.publish_date") == b'news.publish_date\n""\n""\n""\n'


def test_formulas_are_defused() -> None:
    """No cell begins with what starts a formula, also behind spaces and quotation marks; in a raw file it may."""
    tree = made_tree()
    starts = re.compile("[\\s'\"\ufeff\u200b]*[-=+@\uff1d\uff0b\uff0d\uff20]")
    for writer, may_be in ((csv_writer, False), (raw_csv_writer, True)):
        rows = csv.reader(io.StringIO(pages_as(writer, tree).decode(), newline=""))
        cells = [cell for row in rows for cell in row]
        assert any(starts.match(cell) for cell in cells if not cell.startswith("'")) == may_be
        assert any(cell.startswith(("\t", "\r", "\n")) for cell in cells) == may_be
    formula = tree_of(SitemapPage(HOME, news_story=SitemapNewsStory("=1+1", None)))
    assert pages_as(csv_writer, formula, "news.title") == b'news.title\n"\'=1+1"\n'


def test_numbers_are_not_defused() -> None:
    """A number is a number, whatever it begins with."""
    columns = columns_with(SITEMAPS, depth=[-1, None], url=["-1", "a"])
    assert encoded(csv_writer, columns, "url", "depth") == 'url,depth\n"\'-1",-1\na,\n'
    numbers = columns_with(PAGES, priority=[-1.5, float("nan"), float("inf"), 1e300])
    assert encoded(csv_writer, numbers, "url", "priority", types=PAGES) == "url,priority\n,-1.5\n,\n,\n,1e+300\n"
    found = [json.loads(line)["priority"] for line in encoded(jsonl_writer, numbers, "priority", types=PAGES).split()]
    assert found == [-1.5, None, None, 1e300]


def test_control_characters_are_escaped() -> None:
    """No control character is written, but for tabs and line feeds within the quotation marks of CSV."""
    tree = made_tree()
    for writer, allowed in ((csv_writer, "\n\t"), (raw_csv_writer, "\n\t"), (jsonl_writer, "\n")):
        text = pages_as(writer, tree).decode()
        assert set(re.findall("[\0-\x1f\x7f-\x9f\u2028\u2029]", text)) == set(allowed)
    lines = pages_as(jsonl_writer, tree).decode().splitlines()  # which takes more for the end of a line than others do
    assert len(lines) == len(list(tree.all_pages()))


def test_plain_cells_are_as_they_are() -> None:
    """A cell with nothing odd is neither quoted nor changed, whatever else is in its column."""
    title = "C:\\temp; a=b - it's 5% \\n"
    stories = [SitemapNewsStory(text, None) for text in (title, "a,b", title)]
    tree = tree_of(*(SitemapPage(f"{HOME}{number}", news_story=story) for number, story in enumerate(stories)))
    assert pages_as(csv_writer, tree, "news.title").decode() == f'news.title\n{title}\n"a,b"\n{title}\n'


@pytest.mark.parametrize("make_tree", TREES_WITH_PAGES)
def test_tsv_reads_back(tmp_path: Path, make_tree: MakeTree) -> None:
    """Readers of CSV take TSV with a tab as the separator, and line tools see a row in each line."""
    path = tmp_path / "pages.tsv"
    path.write_bytes(pages_as(tsv_writer, make_tree()))
    expected = csv_rows(json_rows(make_tree()))
    with path.open(encoding="utf-8", newline="") as stream:
        assert [from_cells(cells) for cells in csv.DictReader(stream, delimiter="\t", strict=True)] == expected
    by_polars = polars.read_csv(path, separator="\t", infer_schema=False).iter_rows(named=True)
    assert [from_cells(cells) for cells in by_polars] == expected
    header, *lines = path.read_text("utf-8").split("\n")[:-1]
    assert {line.count("\t") for line in lines} == {header.count("\t")}
    assert len(lines) == len(expected)


def test_tsv_cells() -> None:
    """Tabs and line breaks are escaped; a comma needs no quotation marks; formulas are defused."""
    stories = [SitemapNewsStory(text, None) for text in ("a\tb", "a\nb", "a,b", 'a "b"', "=1", "")]
    tree = tree_of(*(SitemapPage(HOME, news_story=story) for story in stories))
    cells = ["news.title", r"a\x09b", r"a\x0ab", "a,b", '"a ""b"""', '"\'=1"', '""']
    assert pages_as(tsv_writer, tree, "news.title").decode().splitlines() == cells


@pytest.mark.parametrize("make_tree", TREES)
def test_json_is_one_array(make_tree: MakeTree) -> None:
    """JSON is an array with the objects of JSON lines, one on each line; without rows it is empty."""
    tree = make_tree()
    text = pages_as(json_writer, tree).decode()
    assert [known(row) for row in json.loads(text)] == json_rows(tree)
    lines = pages_as(jsonl_writer, tree).decode().splitlines()
    assert text.splitlines() == (["[", *(f"{line}," for line in lines[:-1]), lines[-1], "]"] if lines else ["[]"])


@pytest.mark.parametrize("make_tree", TREES_WITH_PAGES)
def test_json_lines_read_back(tmp_path: Path, make_tree: MakeTree) -> None:
    """Every reader of JSON lines gives what the pages of the tree are."""
    tree = make_tree()
    data = pages_as(jsonl_writer, tree)
    rows = [json.loads(line) for line in data.decode().split("\n")[:-1]]
    assert {tuple(row) for row in rows} == {tuple(PAGES)}
    assert [known(row) for row in rows] == json_rows(tree)
    urls = [row["url"] for row in rows]
    dates = [row["last_modified"] for row in rows]
    frame = polars.read_ndjson(io.BytesIO(data), infer_schema_length=None)
    assert (frame["url"].to_list(), frame["last_modified"].to_list()) == (urls, dates)
    pandas_frame = pandas.read_json(io.BytesIO(data), lines=True, dtype=False)
    assert pandas_frame["url"].to_list() == urls
    path = tmp_path / "pages.jsonl"
    path.write_bytes(data)
    with duckdb.connect() as connection:
        query = "select url, news->>'title' from read_json(?, columns = {url: 'varchar', news: 'json'})"
        found = connection.execute(query, [str(path)]).fetchall()
    # DuckDB has no NUL in a text that is taken out of JSON.
    assert [url for url, _ in found] == urls
    for row, (_, title) in zip(rows, found, strict=True):
        if row["news"] is None or "\0" not in row["news"]["title"]:
            assert title == (row["news"] and row["news"]["title"])


def test_last_modified_text_and_problems() -> None:
    """What a date without a zone was written like, and what is wrong with an entry, is there."""
    data = f"<urlset><url><loc>{HOME}1</loc><lastmod>2024-05</lastmod><priority>7</priority></url></urlset>".encode()
    (line,) = pages_as(jsonl_writer, sitemap_from_bytes(data, HOME + "s.xml")).splitlines()
    row = json.loads(line)
    assert (row["last_modified"], row["last_modified_text"]) == ("2024-05-01T00:00:00Z", "2024-05")
    assert row["problems"]


def test_chosen_columns() -> None:
    """Columns come in the order that was asked for; a struct of CSV is its fields, of JSON lines an object."""
    tree = tree_of(SitemapPage(HOME, news_story=SitemapNewsStory("a", None)))
    found = pages_as(csv_writer, tree, "news.title", "position", "url").decode()
    assert found == f"news.title,position,url\na,1,{HOME}\n"
    assert pages_as(csv_writer, tree, "news").startswith(b"news.title,news.publish_date,news.publication_name,")
    assert json.loads(pages_as(jsonl_writer, tree, "news.title", "url")) == {"news.title": "a", "url": HOME}
    assert json.loads(pages_as(jsonl_writer, tree, "news"))["news"]["title"] == "a"


def test_no_pages() -> None:
    """Without pages, CSV is its header, and JSON lines are none."""
    tree = IndexWebsiteSitemap(HOME, [])
    assert pages_as(csv_writer, tree, "url", "priority") == b"url,priority\n"
    assert pages_as(jsonl_writer, tree) == b""


def large_tree(length: int) -> AbstractSitemap:
    """As many pages, with values of every kind, and with none in some."""
    names = ("priority", "last_modified", "change_frequency", "news_story", "images", "alternates", "videos")
    odd = cycle(made_tree().all_pages())
    return PagesXMLSitemap(
        HOME,
        [
            SitemapPage(f"{HOME}{number}", *(getattr(next_, name) for name in names))
            for number, next_ in zip(range(length), odd, strict=False)
        ],
    )


@pytest.mark.slow
@pytest.mark.parametrize("make", [csv_writer, jsonl_writer])
def test_rows_that_are_kept(make: Any) -> None:
    """Of a batch of any size only the rows are written that are kept, in their order."""
    length = PIECE_ROWS + 101
    tree = large_tree(length)
    listed = columns_with(
        PAGES, sitemap_url=[HOME] * length, sitemap_type=["urlset"] * length, position=range(1, length + 1)
    )
    read = columns_of_all(tree.pages, lambda page: "", PAGES)
    parts = split_urls(read.columns["url"], URL_PARTS, normalized_host)
    columns = Columns(length, {**read.columns, **listed.columns, **parts})
    expected = json_rows(tree)
    for kept in (None, [True] * length, only(length, 0), only(length, PIECE_ROWS), [n % 3 == 0 for n in range(length)]):
        text = encoded(make, columns, types=PAGES, kept=kept)
        kept_rows = list(compress(expected, kept or repeat(True)))
        if make is jsonl_writer:
            assert [known(json.loads(line)) for line in text.splitlines()] == kept_rows
        else:
            cells = csv.DictReader(io.StringIO(text, newline=""), strict=True)
            assert [from_cells(row) for row in cells] == csv_rows(kept_rows)
    header = encoded(make, Columns(0, {}), types=PAGES)
    assert encoded(make, columns, types=PAGES, kept=[False] * length) == header


@pytest.mark.parametrize("make", [csv_writer, tsv_writer])
def test_times_have_one_width(make: Any) -> None:
    """However precisely a sitemap writes a time, all times in a file have the same number of characters."""
    dates = ("2024-05-08", "2024-05-08T10:00Z", "2024-05-08T10:00:00.999999Z", "1969-12-31T23:59:59.5Z", "2024-05")
    entries = "".join(f"<url><loc>{HOME}{date}</loc><lastmod>{date}</lastmod></url>" for date in dates)
    sitemap = sitemap_from_bytes(f"<urlset>{entries}</urlset>".encode())
    columns = next(page_columns(pages_of(sitemap), ["last_modified"]))
    _, *lines = encoded(make, columns, types={"last_modified": PAGES["last_modified"]}).splitlines()
    assert lines == [
        "2024-05-08T00:00:00Z",
        "2024-05-08T10:00:00Z",
        "2024-05-08T10:00:00Z",
        "1969-12-31T23:59:59Z",
        "2024-05-01T00:00:00Z",
    ]


def only(length: int, number: int) -> list[bool]:
    return [row == number for row in range(length)]


def test_a_large_batch_is_written_in_pieces() -> None:
    """Rows of a sitemap without end are made as they are written, not all before."""
    length = 10 * PIECE_ROWS
    columns = columns_with(PAGES, url=[f"{HOME}{number}" for number in range(length)])
    for make in (csv_writer, jsonl_writer):
        writer: Any = make(io.BytesIO(), Table("pages", PAGES, select(PAGES, ("url",)).chosen), FormatOptions())
        assert len(next(iter(writer.encode(Batch(columns))))) < 60 * PIECE_ROWS
        assert encoded(make, columns, "url", types=PAGES).count("\n") == length + (make is csv_writer)


texts = st.lists(st.none() | st.sampled_from(ODD_TEXTS) | st.text(st.characters(exclude_categories=["Cs"])), max_size=9)


@many
@given(texts | st.lists(st.text("a", max_size=2), max_size=9))
def test_any_texts(values: list[str | None]) -> None:
    """Any texts come back from CSV, raw or not, and from JSON lines, and each of these is one line."""
    columns = columns_with(SITEMAPS, url=values, depth=range(len(values)))
    lines = encoded(jsonl_writer, columns, "url", "depth").splitlines()
    assert [json.loads(line)["url"] for line in lines] == values
    for make, is_raw in ((csv_writer, False), (raw_csv_writer, True)):
        data = encoded(make, columns, "url", "depth")
        rows = list(csv.reader(io.StringIO(data, newline=""), strict=True))
        assert [undone(row[0], is_raw) for row in rows[1:]] == [value or "" for value in values]
        assert [row[1] for row in rows[1:]] == [str(number) for number in range(len(values))]
        nulls = polars.read_csv(io.BytesIO(data.encode()), infer_schema=False)["url"].is_null().to_list()
        assert nulls == [value is None for value in values]


@many
@given(st.lists(st.none() | st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=4), max_size=9))
def test_any_lists(values: list[list[str] | None]) -> None:
    """Any lists of texts come back from the JSON in CSV, and from JSON lines."""
    columns = columns_with(PAGES, problems=values, url=[f"{HOME}{number}" for number in range(len(values))])
    lines = encoded(jsonl_writer, columns, "url", "problems", types=PAGES).splitlines()
    assert [json.loads(line)["problems"] for line in lines] == values
    rows = list(csv.reader(io.StringIO(encoded(csv_writer, columns, "url", "problems", types=PAGES), newline="")))
    assert [json.loads(row[1]) if row[1] else None for row in rows[1:]] == values


@needs_corpus
def test_corpus(tmp_path: Path) -> None:
    """What real files hold is read back, from CSV and from JSON lines."""
    seen = 0
    for name, tree in trees("urlset", "rss", "atom", most=100_000):
        expected = json_rows(tree)
        lines = map(json.loads, pages_as(jsonl_writer, tree).splitlines())
        assert [known(row) for row in lines] == expected, name
        rows = csv.DictReader(io.StringIO(pages_as(csv_writer, tree).decode(), newline=""), strict=True)
        assert [from_cells(row) for row in rows] == csv_rows(expected), name
        seen += len(expected)
    assert seen > 10_000
