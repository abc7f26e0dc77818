"""`usp sql`, as a user runs it: queries, formats, errors and exit codes."""

from __future__ import annotations

import csv
import io
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import duckdb
import pandas
import pytest

from clocks import settle
from commands import RunHere, environment
from faults import serve_faults
from support import SITEMAP_XMLNS, Server, serve
from test_cli_progress import interrupted, terminal
from test_cli_stream import pages, site, slow, wait_for_answers
from usp.cli import main
from usp.cli.demo import demo_site
from usp.export.queries import Query
from usp.tree import sitemap_from_str, sitemap_tree_for_homepage
from workbooks import Workbook

pytestmark = pytest.mark.cli

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
    assert summary.startswith("usp: 2 sitemaps, ")
    assert rows == "usp: 1 row"


def test_names_of_sitemaps(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """The names of sitemaps are understood, also where an image has a field of that name."""
    query = "select loc, unnest(images).loc as i from pages where p.lastmod is null".replace(
        "from pages", "from pages p"
    )
    assert answered(capsys, server, query, "-f", "csv") == "url,i\n"


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
    assert answered(capsys, server, query, "-f", "csv") == 'x,y\n"\'=1+1",-1\n'
    assert answered(capsys, server, query, "-f", "csv", "--raw-csv") == "x,y\n=1+1,-1\n"


def test_names_that_a_site_chooses(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """A pivot makes names of values: they are made harmless as well."""
    query = "pivot (select '=1' || chr(27) as k, 1 as v) on k using sum(v)"
    assert answered(capsys, server, query, "-f", "csv") == '"\'=1\\x1b"\n1\n'


def test_json_is_json(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """Whole sums are whole, what is no number is null, names are there once, and nothing acts on a terminal."""
    query = """select sum(position) as s, 'nan'::double as n, 1.5 as d, a.url is null as x, 1 as x, chr(155) as c,
        interval 36 hours as i from pages a group by all"""
    text = answered(capsys, server, query, "-f", "json")
    assert json.loads(text) == [
        {"s": 6, "n": None, "d": 1.5, "x": False, "x_1": 1, "c": "\x9b", "i": "1 day, 12:00:00"}
    ]
    assert "\x9b" not in text


def test_many_rows(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """An answer is read to its end, however many rows it has."""
    text = answered(capsys, server, "select range as n from range(25000)", "-f", "csv")
    assert text == "n\n" + "".join(f"{n}\n" for n in range(25_000))


def test_empty_texts_are_told_from_nothing(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """CSV is written as `usp export` writes it."""
    assert answered(capsys, server, "select '' as a, null as b, 'c' as c", "-f", "csv") == 'a,b,c\n"",,c\n'


def test_files_say_their_format(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """The ending of a file is its format, as for `usp export`; one that says nothing is refused."""
    for name, expected in {"a.csv": "n\n1\n", "a.json": '[\n{"n": 1}\n]\n', "a.txt": "n\n-\n1\n"}.items():
        assert answered(capsys, server, "select 1 as n", "-o", name) == ""
        assert Path(name).read_text() == expected
    assert answered(capsys, server, "select 1 as n", "-f", "csv", "-o", "-") == "n\n1\n"
    run = usp(server.url, "select 1", "-o", "a.xyz")
    assert (run.returncode, "or choose a format" in run.stderr) == (2, True)
    assert sorted(os.listdir()) == ["a.csv", "a.json", "a.txt"]


def on_terminal(server: Server, query: str, *options: str) -> list[str]:
    """Return the lines that a query prints on a terminal of 80 columns."""
    with terminal() as shown:
        command = [sys.executable, "-m", "usp", "sql", "-q", "-k", server.url, query, *options]
        subprocess.run(command, stdout=shown.follower, stderr=subprocess.PIPE, env=environment(), check=True)
    return shown.text().replace("\r", "").splitlines()


def test_wide_tables_fit_a_terminal(server: Server) -> None:
    """On a terminal texts are cut to fit, and numbers, times and URLs are not; in a pipe everything is complete."""
    url = "'http://h/' || repeat('u', 20) as u"
    query = f"select repeat('a', 300) as a, 123456 as b, last_modified, {url} from pages limit 1"
    lines = on_terminal(server, query)
    assert max(map(len, lines)) <= 80
    assert lines[2] == f"{'a' * 18}…  123456  2024-05-08T00:00:00Z  http://h/{'u' * 20}"
    assert "a" * 300 in usp("-k", "-q", server.url, query).stdout


def test_few_long_urls_stick_out(server: Server) -> None:
    """A few long URLs are complete, and do not change how the table looks."""
    query = "select 'http://h/' || repeat('u', case when n = 3 then 90 else 3 end) as u, n from range(9) r(n)"
    lines = on_terminal(server, query)
    assert lines[:3] == ["u             n", "------------  -", "http://h/uuu  0"]
    assert f"http://h/{'u' * 90}  3" in lines
    assert on_terminal(server, query.replace(", n from", " from"))[5] == f"http://h/{'u' * 90}"


def test_rows_as_blocks(server: Server) -> None:
    """If the columns do not fit, each row is a block of names and values, and nothing is cut."""
    query = (
        f"select 'http://h/{'u' * 60}' as u, 'http://h/{'v' * 10}' as w, repeat('t', 100) as text, null as n, 1 as k"
    )
    block = [
        *("-[ 1 ]--", f"u     http://h/{'u' * 60}", f"w     http://h/{'v' * 10}", f"text  {'t' * 100}", "n     NULL"),
        "k     1",
    ]
    assert on_terminal(server, query) == block
    assert on_terminal(server, f"{query} from range(2)")[6:] == ["-[ 2 ]--", *block[1:]]


def test_interrupted_query(server: Server) -> None:
    """Ctrl-C ends a query that runs."""
    command = [sys.executable, "-m", "usp", "sql", "-q", "-k", server.url]
    with subprocess.Popen(
        [*command, "select count(*) from range(1000000000000) where random() > 2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        while "/a.xml" not in server.paths():
            assert process.poll() is None
        settle(1)
        printed, _ = interrupted(process)
    assert printed == ""


@pytest.mark.parametrize("query", ["select '\udcff'", "select timestamp '20000-01-01' as t"])
def test_no_traceback(server: Server, query: str) -> None:
    """Whatever is asked, there is an answer, or one message."""
    run = usp("-k", "-q", server.url, query)
    assert run.returncode in (0, 2)
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("selec url from pages", 'syntax error at or near "selec"'),
        ("select nope from pages", '"nope" not found'),
        ("select * from page", "page"),
        ("", "It is empty"),
        ("select lastmod, nope from pages", '"nope" not found'),
        ("select url from pages; select nope from pages", '"nope" not found'),
        ("select url from pages; selec", "syntax error"),
    ],
)
def test_wrong_queries(run_here: RunHere, server: Server, query: str, said: str) -> None:
    """A query that cannot be run is refused before anything is fetched."""
    run = run_here("sql", server.url, query)
    assert run.returncode == 2
    assert run.stderr.startswith("usp: error: The query cannot be run. ")
    assert said in run.stderr
    assert server.paths() == []


def test_queries_that_fail(run_here: RunHere, server: Server) -> None:
    """A query that fails when it is run ends with a message, and leaves no file."""
    run = run_here("sql", "-k", "-q", server.url, "select error('no: ' || url) from pages", "-f", "csv", "-o", "x.csv")
    assert run.returncode == 2
    assert run.stderr.startswith("usp: error: The query failed. ")
    assert "Traceback" not in run.stderr
    assert os.listdir() == []


def test_query_from_standard_input(server: Server) -> None:
    """With - the query is read from standard input."""
    run = usp("-k", "-q", server.url, "-", "-f", "json", input="select count(*) as n\nfrom pages")
    assert json.loads(run.stdout) == [{"n": 3}]


def test_other_statements(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """Statements are run one after the other; those that only do something have no result."""
    query = (
        "create table x as select * from pages; copy x to 'x.csv'; set threads = 1; select count(lastmod) as n from x"
    )
    assert answered(capsys, server, query, "--allow-files", "-f", "json") == '[\n{"n": 1}\n]\n'
    assert len(Path("x.csv").read_text().splitlines()) == 4


REFUSED = (
    "select * from read_csv('secret.csv')",
    "select * from 'secret.csv'",
    "select content from read_text('{folder}/secret.csv')",
    "select * from glob('*')",
    "select * from read_csv('http://127.0.0.1:1/a.csv')",
    "copy pages to 'out.csv'",
    "copy (select 1) to 'out.csv'",
    "create table t (a text); copy t from 'secret.csv'",
    "create table t as from 'secret.csv'; select * from t",
    "export database 'out'",
    "import database 'out'",
    "attach 'out.duckdb'",
    "install httpfs",
    "load httpfs",
    "set enable_external_access = true; select * from 'secret.csv'",
    "reset lock_configuration",
    "set temp_directory = '{folder}'",
    "call enable_logging(storage_path='out')",
    "pragma enable_profiling",
)


@pytest.mark.parametrize("query", REFUSED)
def test_files_are_refused(run_here: RunHere, server: Server, query: str) -> None:
    """A query cannot read or write files, attach databases, use extensions or change settings; the error says why."""
    Path("secret.csv").write_text("name\nhidden\n")
    run = run_here("sql", "-k", "-q", server.url, query.format(folder=os.getcwd()))
    assert run.returncode == 2
    assert run.stderr.startswith("usp: error: The query ")
    assert "add --allow-files" in run.stderr
    assert "hidden" not in run.stdout + run.stderr
    assert os.listdir() == ["secret.csv"]


def test_files_are_refused_before_anything_is_fetched(run_here: RunHere, server: Server) -> None:
    """A SELECT that reads a file is refused before the site is read."""
    run = run_here("sql", "-k", server.url, "select * from 'other.csv'")
    assert (run.returncode, server.paths()) == (2, [])
    assert "add --allow-files" in run.stderr


def test_wrong_names_are_not_taken_for_files(run_here: RunHere, server: Server) -> None:
    """An error that has nothing to do with files does not speak of them."""
    for query in ("select * from page", "select nope from pages", "select error('no')", "set variable n = nope"):
        assert "--allow-files" not in run_here("sql", "-k", server.url, query).stderr


def test_files_are_allowed_on_request(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """With --allow-files a query joins the pages with a file of yours, and writes files."""
    Path("names.csv").write_text(f"url,name\n{server.url}/1,first\n")
    query = "copy (select name from pages join 'names.csv' using (url)) to 'out.csv'; select name from 'out.csv'"
    assert answered(capsys, server, query, "--allow-files", "-f", "csv") == "name\nfirst\n"


@pytest.mark.slow
def test_large_data_still_goes_to_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query without access to files still spills data that does not fit into memory, and removes it at the end."""
    connect = duckdb.connect

    def with_little_memory(*, config: dict[str, str]) -> duckdb.DuckDBPyConnection:
        return connect(config={**config, "memory_limit": "60MB"})

    monkeypatch.setattr(duckdb, "connect", with_little_memory)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    text = (
        "create table t as select repeat(md5(range::text), 3) as a from range(1_500_000); select count(*) as n from t"
    )
    with closing(Query(text)) as query:
        (answer,) = query.answers(sitemap_from_str(f"<urlset {SITEMAP_XMLNS}></urlset>"))
        assert [batch.to_pylist() for batch in answer.batches] == [[{"n": 1_500_000}]]
        (folder,) = tmp_path.iterdir()
        assert folder.name.startswith("usp-sql-")
        assert list(folder.iterdir())
    assert list(tmp_path.iterdir()) == []


def test_several_results(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """Each SELECT prints a result of its own, in every text format."""
    query = "select 1 as a; select 2 as b where false; create table t (c int); insert into t values (3) returning c"
    for name, expected in {
        "table": "a\n-\n1\n\nb\n-\n\nc\n-\n3\n",
        "csv": "a\n1\n\nb\n\nc\n3\n",
        "tsv": "a\n1\n\nb\n\nc\n3\n",
        "json": '[\n{"a": 1}\n]\n[]\n[\n{"c": 3}\n]\n',
        "jsonl": '{"a": 1}\n{"c": 3}\n',
    }.items():
        assert answered(capsys, server, query, "-f", name) == expected
    assert answered(capsys, server, query, "-o", "a.txt") == ""
    assert Path("a.txt").read_text() == "a\n-\n1\n\nb\n-\n\nc\n-\n3\n"
    assert usp("-k", server.url, query).stderr.splitlines()[-1] == "usp: 3 results, 2 rows"


def test_several_results_in_databases(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """In a database or a workbook each result is a table."""
    query = "select position as n, lastmod, [url] as l from pages order by 1 limit 1; select true as b, 1.5 as d"
    for name in ("a.db", "a.duckdb", "a.xlsx"):
        assert answered(capsys, server, query, "-o", name) == ""
    with closing(sqlite3.connect("a.db")) as database:
        first = (1, "2024-05-08T00:00:00Z", json.dumps([f"{server.url}/1"]))
        assert database.execute("select * from answer").fetchall() == [first]
        assert database.execute("select * from answer_2").fetchall() == [(1, 1.5)]
    with closing(duckdb.connect("a.duckdb")) as connection:
        kinds = connection.execute("select typeof(n), typeof(last_modified), typeof(l) from answer").fetchall()
        assert kinds == [("BIGINT", "TIMESTAMP WITH TIME ZONE", "VARCHAR[]")]
        assert connection.execute("select b from answer_2").fetchall() == [(True,)]
    assert Workbook(Path("a.xlsx").read_bytes()).sheets == {
        "answer": [["n", "last_modified", "l"], [1.0, datetime(2024, 5, 8), json.dumps([f"{server.url}/1"])]],
        "answer_2": [["b", "d"], [True, 1.5]],
    }


def test_files_of_one_result(run_here: RunHere, server: Server) -> None:
    """A file that holds one table is refused for several results, before anything is fetched where that is known."""
    run = run_here("sql", "-k", "-q", server.url, "select 1; select 2", "-o", "a.csv")
    assert (run.returncode, server.paths()) == (2, [])
    assert "a file in the format csv holds one result" in run.stderr
    assert "write to .duckdb, .db or .xlsx" in run.stderr
    late = "create table t (a int); insert into t values (1) returning a; select 2"
    run = run_here("sql", "-k", "-q", server.url, late, "-o", "a.csv")
    assert (run.returncode, os.listdir()) == (2, [])
    assert "a file in the format csv holds one result" in run.stderr


def test_queries_without_a_result(run_here: RunHere, server: Server) -> None:
    """If no statement has a result, no file is written, and the summary says so."""
    run = run_here("sql", "-k", server.url, "create table x as select 1", "-o", "a.csv")
    assert (run.returncode, os.listdir()) == (0, [])
    assert run.stderr.splitlines()[-1] == "usp: the query has no result; a.csv was not written"


def test_times_have_the_type_of_to_duckdb(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """Times have a zone, as in `to_duckdb()`, also where they are fields of a struct."""
    query = "select distinct typeof(last_modified) as a, typeof(news.publish_date) as b from pages"
    kind = "TIMESTAMP WITH TIME ZONE"
    assert json.loads(answered(capsys, server, query, "-f", "json")) == [{"a": kind, "b": kind}]
    with closing(sitemap_tree_for_homepage(server.url, use_known_paths=False).to_duckdb()) as connection:
        assert connection.execute(query).fetchall() == [(kind, kind)]


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
    assert "usp: interrupted; the results are partial" in said.splitlines()


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


@pytest.mark.parametrize("name", ["csv", "json", "jsonl", "tsv"])
def test_directions_are_escaped_on_terminals(server: Server, name: str) -> None:
    """Characters that turn the direction of text are escaped on a terminal, and stay as they are in a pipe."""
    query = "select 'a' || chr(8238) || 'b' || chr(8294) || 'c' as t"
    assert "a\u202eb\u2066c" in usp("-k", "-q", server.url, query, "-f", name, encoding="utf-8").stdout
    with terminal() as screen:
        usp("-k", "-q", server.url, query, "-f", name, capture_output=False, stdout=screen.follower)
    assert "a\\u202eb\\u2066c" in screen.text()
