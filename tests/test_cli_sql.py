"""`usp sql`, as a user runs it: queries, formats, errors and exit codes."""

from __future__ import annotations

import csv
import io
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pandas
import pytest

from faults import serve_faults
from support import SITEMAP_XMLNS, Server, serve
from test_cli_progress import environment, interrupted
from test_cli_stream import pages, site, slow, wait_for_answers
from usp.cli import main
from usp.cli.demo_site import demo_site

XML = {"Content-Type": "application/xml"}
ROBOTS = (200, {"Content-Type": "text/plain"}, b"Sitemap: {base}/a.xml\n")
SITEMAP = f"""<urlset {SITEMAP_XMLNS}>
<url><loc>{{base}}/1</loc><lastmod>2024-05-08</lastmod><changefreq>daily</changefreq></url>
<url><loc>{{base}}/=1</loc><changefreq>daily</changefreq></url>
<url><loc>{{base}}/3</loc></url></urlset>"""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.chdir(tmp_path)
    with serve({"/robots.txt": ROBOTS, "/a.xml": (200, XML, SITEMAP.encode())}) as server:
        yield server


def answered(capsys: pytest.CaptureFixture[str], server: Server, query: str, *options: str, code: int = 0) -> str:
    assert main(["sql", "-k", "-q", server.url, query, *options]) == code
    return capsys.readouterr().out


def usp(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload,no-any-return]  # options of any kind
        [sys.executable, "-m", "usp", "sql", *arguments],
        **{"capture_output": True, "text": True, "timeout": 60, "env": environment(), **options},
    )


def test_aligned_table(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """The answer is a table: numbers on the right, NULL where there is nothing; names as in sitemaps are understood."""
    query = "select changefreq, count(*) as pages from pages group by 1 order by 2 desc"
    assert answered(capsys, server, query) == (
        "change_frequency  pages\n"
        "----------------  -----\n"
        "daily                 2\n"
        "NULL                  1\n"
    )  # fmt: skip


def test_what_is_said(server: Server) -> None:
    """The site is summed up on standard error, and how many rows there are."""
    run = usp("-k", server.url, "select position, lastmod from pages where lastmod is not null")
    assert run.stdout == "position  last_modified\n--------  --------------------\n       1  2024-05-08T00:00:00Z\n"
    summary, rows = run.stderr.splitlines()
    assert summary.startswith("usp: 2 sitemaps, 3 pages, ")
    assert rows == "usp: 1 row"


def test_both_tables_any_number_of_times(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """A query may read both tables, each as often as it likes."""
    query = "select count(*) n from pages a join pages b using (url) join sitemaps s on s.url = a.sitemap_url"
    assert json.loads(answered(capsys, server, query, "-f", "json")) == [{"n": 3}]


def test_formats_for_programs(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """CSV, JSON and Parquet hold the same, on standard output or in a file."""
    query = "select position, last_modified, [url] as urls, null as nothing from pages order by 1 limit 1"
    url = f"{server.url}/1"
    assert json.loads(answered(capsys, server, query, "-f", "json")) == [
        {"position": 1, "last_modified": "2024-05-08T00:00:00Z", "urls": [url], "nothing": None}
    ]
    found = list(csv.reader(io.StringIO(answered(capsys, server, query, "-f", "csv"))))
    assert found == [
        ["position", "last_modified", "urls", "nothing"],
        ["1", "2024-05-08T00:00:00Z", json.dumps([url]), ""],
    ]
    assert answered(capsys, server, query, "-f", "parquet", "-o", "a.parquet") == ""
    table = pandas.read_parquet("a.parquet")
    assert (list(table.columns), list(table["urls"][0])) == (["position", "last_modified", "urls", "nothing"], [url])
    assert os.listdir() == ["a.parquet"]


def test_empty_answers(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """No rows are a table without rows."""
    query = "select url from pages where false"
    assert answered(capsys, server, query) == "url\n---\n"
    assert answered(capsys, server, query, "-f", "csv") == "url\n"
    assert json.loads(answered(capsys, server, query, "-f", "json")) == []


def test_nothing_acts_on_terminals_or_spreadsheets(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters are shown escaped; formulas are made harmless, unless they are asked for raw."""
    assert answered(capsys, server, "select chr(27) || '[31m' as x") == "x\n--------\n\\x1b[31m\n"
    query = "select '=1+1' as x, -1 as y"
    assert answered(capsys, server, query, "-f", "csv") == "x,y\n'=1+1,-1\n"
    assert answered(capsys, server, query, "-f", "csv", "--raw-csv") == "x,y\n=1+1,-1\n"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("selec url from pages", 'syntax error at or near "selec"'),
        ("select nope from pages", '"nope" not found'),
        ("select * from page", "page"),
        ("", "It is empty"),
        ("select lastmod, nope from pages", '"nope" not found'),
    ],
)
def test_wrong_queries(server: Server, query: str, said: str) -> None:
    """A query that cannot be run is refused before anything is fetched."""
    run = usp(server.url, query)
    assert run.returncode == 2
    assert run.stderr.startswith("usp: error: The query cannot be run. ")
    assert said in run.stderr
    assert server.paths() == []


def test_queries_that_fail(server: Server) -> None:
    """A query that fails when it is run ends with a message, and leaves no file."""
    run = usp("-k", "-q", server.url, "select error('no: ' || url) from pages", "-f", "csv", "-o", "x.csv")
    assert run.returncode == 2
    assert run.stderr.startswith("usp: error: The query failed. ")
    assert "Traceback" not in run.stderr
    assert os.listdir() == []


def test_query_from_standard_input(server: Server) -> None:
    """With - the query is read from standard input."""
    run = usp("-k", "-q", server.url, "-", "-f", "json", input="select count(*) as n\nfrom pages")
    assert json.loads(run.stdout) == [{"n": 3}]


def test_other_statements(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """Several statements are run one after the other; the answer is the last one's."""
    query = "create table x as select * from pages; copy x to 'x.csv'; select count(*) as n from x"
    assert answered(capsys, server, query, "-f", "json") == '[\n{"n": 3}\n]\n'
    assert len(Path("x.csv").read_text().splitlines()) == 4


def test_unreachable_site() -> None:
    """Where the site cannot be reached there is no answer, and the exit code says so."""
    run = usp("-k", "-f", "csv", "http://127.0.0.1:9/", "select count(*) from pages")
    assert (run.returncode, run.stdout) == (3, "")


def test_interrupted() -> None:
    """Ctrl-C while the site is fetched: the query is run over what was had."""
    command = [sys.executable, "-m", "usp", "sql", "-k", "-f", "json"]
    with (
        serve_faults(site(a=pages("1", "2"), b=slow, c=pages("3"))) as server,
        subprocess.Popen(
            [*command, server.url, "select count(*) as n from pages"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        ) as process,
    ):
        wait_for_answers(server, process)
        printed, said = interrupted(process)
    assert json.loads(printed) == [{"n": 3}]
    assert "usp: interrupted; this is what was had until then" in said.splitlines()


def test_the_same_as_an_exported_database(tmp_path: Path) -> None:
    """The tables of a query are those of `usp export`."""
    path, answer = tmp_path / "site.db", tmp_path / "answer.json"
    query = "select url, position, sitemap_type, priority from pages order by all"
    with demo_site() as url:
        assert main(["export", "-q", url, "-o", str(path)]) == 0
        assert main(["sql", "-q", url, query, "-f", "json", "-o", str(answer)]) == 0
    with closing(sqlite3.connect(path)) as database:
        expected = database.execute(query.replace("order by all", "order by 1, 2, 3, 4")).fetchall()
    assert [tuple(row.values()) for row in json.loads(answer.read_text())] == expected
