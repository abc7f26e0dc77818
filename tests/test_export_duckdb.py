"""DuckDB files: they have the tables of the tree with DuckDB's own types."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from commands import environment
from tables import TREES, made_tree, page_rows, plain_rows
from usp import export
from usp.export.formats.base import Answer, FormatOptions
from usp.export.formats.duckdb import opened, write_answer
from usp.objects.sitemap import AbstractSitemap, IndexWebsiteSitemap, PagesXMLSitemap

pytestmark = pytest.mark.export


def read(path: Path, query: str) -> list[dict[str, Any]]:
    with closing(duckdb.connect(str(path), read_only=True)) as connection:
        connection.execute("set TimeZone = 'UTC'")
        found: list[dict[str, Any]] = connection.sql(query).to_arrow_table().to_pylist()
        return found


@pytest.mark.parametrize("make_tree", TREES)
def test_reads_back(tmp_path: Path, make_tree: Callable[[], AbstractSitemap]) -> None:
    """The file has the pages of the tree, in its order, and the sitemaps."""
    path = tmp_path / "site.duckdb"
    export.write(make_tree(), path)
    assert plain_rows(read(path, "select * from pages")) == page_rows(make_tree())
    assert read(path, "select count(*) as n from sitemaps") == [{"n": 1 + len(list(make_tree().all_sitemaps()))}]
    assert os.listdir(tmp_path) == ["site.duckdb"]


def test_types_are_those_of_to_duckdb(tmp_path: Path) -> None:
    """The tables are the same as those of `to_duckdb()`, with their comments: times have a zone."""
    export.write(made_tree(), tmp_path / "a.duckdb")
    made_tree().to_duckdb(tmp_path / "b.duckdb").close()
    columns = "select table_name, column_name, data_type from information_schema.columns order by all"
    comments = "select table_name, comment from duckdb_tables() order by all"
    for query in (columns, comments):
        assert read(tmp_path / "a.duckdb", query) == read(tmp_path / "b.duckdb", query)
    kind = (
        "select data_type from information_schema.columns where table_name = 'pages' and column_name = 'last_modified'"
    )
    assert read(tmp_path / "a.duckdb", kind) == [{"data_type": "TIMESTAMP WITH TIME ZONE"}]


def test_one_table(tmp_path: Path) -> None:
    """With a table named, the file has only that, with the chosen columns."""
    export.write(made_tree(), tmp_path / "site.ddb", table="sitemaps", columns="url,pages")
    assert read(tmp_path / "site.ddb", "select table_name from duckdb_tables()") == [{"table_name": "sitemaps"}]
    assert list(read(tmp_path / "site.ddb", "from sitemaps")[0]) == ["url", "pages"]


def test_failures_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an error an existing file is as it was, and there is no temporary one."""
    temporary, path = tmp_path / "tmp", tmp_path / "site.duckdb"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    path.write_bytes(b"old")

    class Failing(PagesXMLSitemap):
        @property
        def pages(self) -> Any:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        export.write(IndexWebsiteSitemap("http://h/", [Failing("http://h/s.xml", [])]), path)
    assert (path.read_bytes(), os.listdir(temporary), sorted(os.listdir(tmp_path))) == (
        b"old",
        [],
        ["site.duckdb", "tmp"],
    )


@pytest.mark.parametrize("room", [1_000, 100_000, 300_000])
def test_full_disk(tmp_path: Path, room: int) -> None:
    """What finds no room for a file fails, and leaves nothing behind, even if only the last step fails."""
    code = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)\n"
        "from usp import export, sitemap_from_str\n"
        "urls = (f'<url><loc>http://h/{number * 7919 % 100_003}</loc></url>' for number in range(1_000))\n"
        "export.write(sitemap_from_str('<urlset>' + ''.join(urls) + '</urlset>'), 'a.duckdb')\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(room)],
        env=environment(TMPDIR=str(tmp_path)),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.stderr.splitlines()[-1].startswith("OSError: [Errno 5] ")
    assert "File too large: 'a.duckdb'" in run.stderr
    assert os.listdir(tmp_path) == []


def test_answers(tmp_path: Path) -> None:
    """Answers are tables under their names; names that differ only in case get numbers."""
    path = str(tmp_path / "a.duckdb")
    table = pa.Table.from_arrays([pa.array([1, 2]), pa.array([[1], None])], names=["a", "A"])
    with opened(path) as connection:
        assert write_answer(Answer(table.schema, iter(table.to_batches())), connection, FormatOptions()) == 2
        empty = table.schema.empty_table()
        assert write_answer(Answer(empty.schema, iter(()), "answer_2"), connection, FormatOptions()) == 0
    assert read(Path(path), "from answer") == [{"a": 1, "A_1": [1]}, {"a": 2, "A_1": None}]
    assert read(Path(path), "from answer_2") == []
