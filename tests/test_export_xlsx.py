"""Excel workbooks: cells have the values of the tree, and nothing in them acts on anything."""

from __future__ import annotations

import io
import json
import os
import tempfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tables import (
    HOME,
    LISTS,
    ODD_TEXTS,
    TREES,
    Row,
    batches_of,
    columns_with,
    flat,
    json_rows,
    known,
    made_tree,
    odd_tree,
    tree_of,
    write,
)
from usp import export
from usp.exceptions import InvalidArgumentError
from usp.export.batches import Batch
from usp.export.formats import xlsx
from usp.export.formats.base import Answer, FormatOptions, Table
from usp.export.schema import PAGES, SITEMAPS, flattened
from usp.export.selection import select
from usp.objects.page import SitemapNewsStory, SitemapPage
from usp.objects.sitemap import AbstractSitemap
from workbooks import Workbook

pytestmark = pytest.mark.export


def written(*batches: Batch, types: Any = PAGES, paths: tuple[str, ...] = (), name: str = "pages") -> Workbook:
    stream = io.BytesIO()
    with xlsx.opened(stream) as book:
        write(
            xlsx.xlsx_writer(book, Table(name, types, select(types, paths or None).chosen), FormatOptions()), *batches
        )
    return Workbook(stream.getvalue())


def answered(table: pa.Table) -> Workbook:
    stream = io.BytesIO()
    with xlsx.opened(stream) as book:
        assert xlsx.write_answer(Answer(table.schema, iter(table.to_batches())), book, FormatOptions()) == len(table)
    return Workbook(stream.getvalue())


def titles(*texts: str) -> AbstractSitemap:
    return tree_of(*(SitemapPage(HOME, news_story=SitemapNewsStory(text, None)) for text in texts))


def text_of(value: Any) -> Any:
    """A value as JSON has it."""
    return f"{value.isoformat()}Z" if isinstance(value, datetime) else value


def without_microseconds(row: Row) -> Row:
    return {
        name: value[:19] + "Z" if str(name).endswith(("modified", "_date")) and value else value
        for name, value in row.items()
    }


@pytest.mark.parametrize("make_tree", TREES)
def test_reads_back(make_tree: Callable[[], AbstractSitemap]) -> None:
    """A sheet has what the pages of the tree are; an empty text is an empty cell."""
    header, *rows = written(*batches_of(make_tree())).sheets["pages"]
    assert header == list(flattened(PAGES))
    found = []
    for cells in rows:
        row = known(dict(zip(header, map(text_of, cells), strict=True)))
        lists = {path: json.loads(row[path]) for path in LISTS if row.get(path) is not None}
        found.append(without_microseconds(row | lists))
    expected = [
        {path: None if value == "" else value for path, value in flat(row).items()} for row in json_rows(make_tree())
    ]
    assert found == [without_microseconds(row) for row in expected]


def test_every_text_stays_text() -> None:
    """No text is a formula, a link, a number or markup; what looks like a formula stays text when it is edited."""
    texts = [
        *ODD_TEXTS,
        "<r><t>a</t></r>",
        "<r></is></c><c r='A2'><f>1+1</f></c><c><is></r>",
        "_x0041_",
        "https://a/",
        "12",
    ]
    book = written(*batches_of(titles(*texts)), paths=("news.title",))
    assert [row[0] or "" for row in book.sheets["pages"][1:]] == texts
    assert {"=1+1", "+1", "-1", "@a"} <= set(book.quoted)
    assert "a=1" not in book.quoted
    assert not [name for name in book.files if "rels" in name and b"hyperlink" in book.files[name]]


def test_long_texts_are_cut_with_a_note() -> None:
    """A cell holds 32,767 UTF-16 units. A longer text ends with a note that says how long it is."""
    fits, long, wide = "a" * 32_767, "a" * 32_768, "\U0001f600" * 16_384
    found = [
        row[0] for row in written(*batches_of(titles(fits, long, wide)), paths=("news.title",)).sheets["pages"][1:]
    ]
    assert found[0] == fits
    assert found[1].startswith("aaa")
    assert found[1].endswith("a… [cut: 32,768 characters]")
    assert found[2].endswith("\U0001f600… [cut: 16,384 characters]")
    assert [len(text.encode("utf-16-le")) // 2 for text in found] == [32_767, 32_767, 32_766]


def test_full_sheets_go_on_in_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that is longer than a sheet has further sheets, each with the header."""
    monkeypatch.setattr(xlsx, "MAX_ROWS", 4)
    urls = [f"{HOME}{number}" for number in range(7)]
    book = written(Batch(columns_with(PAGES, url=urls)), paths=("url",), name="a" * 31)
    assert {name: [row[0] for row in rows] for name, rows in book.sheets.items()} == {
        "a" * 31: ["url", *urls[:3]],
        "a" * 27 + " (2)": ["url", *urls[3:6]],
        "a" * 27 + " (3)": ["url", *urls[6:]],
    }
    full = written(Batch(columns_with(PAGES, url=urls[:3])), paths=("url",))
    assert list(full.sheets) == ["pages"]


def test_times_that_excel_does_not_have() -> None:
    """Times before March 1900 are text; integers that a float would round are text as well."""
    rows = columns_with(
        SITEMAPS,
        fetched_at=[datetime(1900, 2, 28), datetime(1900, 3, 1), datetime(9999, 12, 31)],
        bytes=[1, 2**53 + 1, None],
    )
    assert written(Batch(rows), types=SITEMAPS, paths=("fetched_at", "bytes")).sheets["pages"][1:] == [
        ["1900-02-28T00:00:00Z", 1.0],
        [datetime(1900, 3, 1), "9007199254740993"],
        [datetime(9999, 12, 31), None],
    ]


def test_answers() -> None:
    """The answer to a query has dates, numbers and booleans as such; what Excel has no type for is text."""
    pandas_like = {
        "n": [1],
        "x": [1.5],
        "b": [True],
        "t": [datetime(2024, 5, 8, 10)],
        "d": [datetime(2024, 5, 8).date()],
        "l": [[1]],
        "N": ["=1"],
    }
    book = answered(pa.table(pandas_like))
    assert book.sheets["answer"] == [
        ["n", "x", "b", "t", "d", "l", "N_1"],
        [1.0, 1.5, True, datetime(2024, 5, 8, 10), datetime(2024, 5, 8), "[1]", "=1"],
    ]
    with pytest.raises(InvalidArgumentError, match="at most 16,384 columns"):
        answered(pa.table({f"c{number}": [1] for number in range(16_385)}))


def test_both_tables(tmp_path: Path) -> None:
    """A workbook has a sheet of pages and one of sitemaps."""
    export.write(odd_tree(), tmp_path / "site.xlsx")
    sheets = Workbook((tmp_path / "site.xlsx").read_bytes()).sheets
    assert list(sheets) == ["pages", "sitemaps"]
    assert [row[0] for row in sheets["sitemaps"][1:3]] == [HOME, f"{HOME}robots.txt"]


def test_failures_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an error there is no file, and no temporary one; an error of the disk names the file."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    stream = io.BytesIO()

    def fail() -> None:
        with xlsx.opened(stream) as book:
            xlsx.xlsx_writer(book, Table("pages", PAGES, PAGES), FormatOptions()).write([])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert stream.getvalue() == b""
    assert os.listdir(tmp_path) == []
    if os.path.exists("/dev/full"):
        with pytest.raises(OSError, match=r"No space left on device.*/dev/full"):
            export.write(made_tree(), "/dev/full", format="xlsx")
    assert os.listdir(tmp_path) == []
