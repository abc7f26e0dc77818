"""`usp export`, as a user runs it: files, standard output, options, errors and exit codes."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pandas
import pytest

from commands import RunHere, environment
from faults import serve_faults
from support import SITEMAP_XMLNS, Server, serve, urlset
from test_cli_progress import interrupted, terminal
from test_cli_stream import pages, site, slow
from usp.cli import main
from usp.cli.demo import demo_site
from usp.tree import sitemap_tree_for_homepage
from workbooks import Workbook

pytestmark = pytest.mark.cli

Site = dict[str, tuple[int, dict[str, str], bytes]]
XML = {"Content-Type": "application/xml"}
ROBOTS = (200, {"Content-Type": "text/plain"}, b"Sitemap: {base}/a.xml\nSitemap: {base}/b.xml\n")
ONE = f"""<urlset {SITEMAP_XMLNS}>
<url><loc>{{base}}/1</loc><lastmod>2024-05-08</lastmod><priority>0.8</priority></url>
<url><loc>{{base}}/2</loc><lastmod>2025-05-08T10:00:00Z</lastmod><changefreq>daily</changefreq></url></urlset>"""
TWO = f"<urlset {SITEMAP_XMLNS}><url><loc>{{base}}/2</loc></url><url><loc>{{base}}/3</loc></url></urlset>"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.chdir(tmp_path)
    sitemaps = {"/a.xml": (200, XML, ONE.encode()), "/b.xml": (200, XML, TWO.encode())}
    with serve({"/robots.txt": ROBOTS, **sitemaps}) as server:
        yield server


def usp(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload,no-any-return]  # options of any kind
        [sys.executable, "-m", "usp", "export", *arguments],
        **{"capture_output": True, "text": True, "timeout": 60, "env": environment(), **options},
    )


def rows_of(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def urls_in_database(name: str) -> list[object]:
    with closing(sqlite3.connect(name)) as database:
        return [url for (url,) in database.execute("select url from pages")]


def unzipped(name: str) -> io.StringIO:
    return io.StringIO(gzip.decompress(Path(name).read_bytes()).decode())


def urls(server: Server, *names: str) -> list[str]:
    return [f"{server.url}/{name}" for name in names]


@pytest.mark.parametrize(
    "name",
    [
        *("p.parquet", "p.arrow", "p.csv", "p.csv.gz", "p.jsonl", "p.jsonl.gz", "p.db"),
        *("p.tsv", "p.json", "p.json.gz", "p.duckdb", "p.xlsx"),
    ],
)
def test_formats(run_here: RunHere, server: Server, name: str) -> None:
    """Each format has the same rows, in the order of the tree; the name says which it is."""
    run = run_here("export", "-k", server.url, "-o", name)
    assert (run.returncode, run.stdout) == (0, "")
    summary, written = run.stderr.splitlines()
    assert summary.startswith("usp: 3 sitemaps, 4 pages, ")
    assert written.startswith(f"usp: 4 rows in {name}, ")
    readers: dict[str, Callable[[], list[object]]] = {
        ".parquet": lambda: list(pandas.read_parquet(name)["url"]),
        ".arrow": lambda: list(pandas.read_feather(name)["url"]),
        ".csv": lambda: [row["url"] for row in csv.DictReader(io.StringIO(Path(name).read_text("utf-8")))],
        ".csv.gz": lambda: [row["url"] for row in csv.DictReader(unzipped(name))],
        ".jsonl": lambda: [row["url"] for row in rows_of(Path(name).read_text("utf-8"))],
        ".jsonl.gz": lambda: [row["url"] for row in rows_of(unzipped(name).read())],
        ".db": lambda: urls_in_database(name),
        ".tsv": lambda: [line.split("\t")[0] for line in Path(name).read_text("utf-8").splitlines()[1:]],
        ".json": lambda: [row["url"] for row in json.loads(Path(name).read_text("utf-8"))],
        ".json.gz": lambda: [row["url"] for row in json.load(unzipped(name))],
        ".duckdb": lambda: [url for (url,) in duckdb.connect(name).execute("select url from pages").fetchall()],
        ".xlsx": lambda: [row[0] for row in Workbook(Path(name).read_bytes()).sheets["pages"][1:]],
    }
    assert readers[name.removeprefix("p")]() == urls(server, "1", "2", "2", "3")
    assert os.listdir() == [name]


def test_a_database_has_both_tables(server: Server) -> None:
    """SQLite holds pages and sitemaps, and with --table only one."""
    assert main(["export", "-q", "-k", server.url, "-o", "site.db"]) == 0
    with closing(sqlite3.connect("site.db")) as database:
        found = database.execute("select type, pages, status from sitemaps order by depth, url").fetchall()
    assert found == [("website", 0, None), ("robots", 0, 200), ("urlset", 2, 200), ("urlset", 2, 200)]
    assert main(["export", "-q", "-k", server.url, "-o", "site.db", "--table", "sitemaps"]) == 0
    with closing(sqlite3.connect("site.db")) as database:
        assert ("pages",) not in database.execute("select name from sqlite_master").fetchall()


def test_standard_output(server: Server) -> None:
    """With -, or with a format and no file, rows go to standard output, and only they."""
    run = usp("-k", server.url, "-o", "-", "-f", "jsonl", "--columns", "url,priority")
    assert run.stdout == usp("-k", server.url, "-f", "jsonl", "--columns", "url,priority").stdout
    assert run.stdout == "".join(
        f'{{"url":"{server.url}/{name}","priority":{priority}}}\n'
        for name, priority in [("1", 0.8), ("2", "null"), ("2", "null"), ("3", "null")]
    )
    assert run.stderr.startswith("usp: 3 sitemaps, 4 pages, ")
    assert len(run.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (("--since", "2025-01-01"), ["2"]),
        (("--until", "2024-05-08"), ["1"]),
        (("--since", "2024-05-08", "--until", "2025-05-08"), ["1", "2"]),
        (("--where", "regexp_matches(loc, '/[13]$')"), ["1", "3"]),
        (("--where", "last_modified < '2025-01-01' or position = 2"), ["1", "2", "3"]),
        (("--dedupe",), ["1", "2", "3"]),
        (("--dedupe", "--where", "sitemap_url like '%/b.xml'"), ["2", "3"]),
        (("--where", "change_frequency = 'daily' and priority is null"), ["2"]),
        (("--max-pages", "3"), ["1", "2", "2"]),
        (("--where", "url is null"), []),
    ],
)
def test_selection(
    server: Server, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], names: list[str]
) -> None:
    """Rows are chosen by their values and by their URLs."""
    code = 4 if "--max-pages" in options else 0
    assert main(["export", "-k", "-q", server.url, "-o", "-", "-f", "jsonl", *options]) == code
    assert [row["url"] for row in rows_of(capsys.readouterr().out)] == urls(server, *names)


def test_the_table_of_sitemaps(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """Sitemaps have a table of their own, of which rows and columns are chosen likewise."""
    options = ("--table", "sitemaps", "--columns", "url,pages", "--where", "depth = 2")
    assert main(["export", "-k", "-q", server.url, "-o", "-", "-f", "csv", *options]) == 0
    assert capsys.readouterr().out == f"url,pages\n{server.url}/a.xml,2\n{server.url}/b.xml,2\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-o", "pages.xyz"), "No format has the ending of 'pages.xyz'"),
        (("-o", "-"), "Say in which format to write"),
        (("-o", "pages.parquet.gz"), "not compressed with gzip"),
        (("-o", "-", "-f", "sqlite"), "cannot be written to standard output"),
        (("-o", "p.csv", "--columns", "url,lst_modified"), "last_modified"),
        (("-o", "p.csv", "--since", "yesterday"), "since must be like"),
        (("-o", "p.csv", "--table", "sitemaps", "--dedupe"), "about pages"),
        ((), "-o FILE, or which format to print with -f FORMAT"),
        (("-f", "duckdb"), "cannot be written to standard output"),
        (("-o", "/dev/null", "-f", "sqlite"), "cannot be written to standard output"),
    ],
)
def test_wrong_use(run_here: RunHere, server: Server, options: tuple[str, ...], said: str) -> None:
    """What makes no sense is refused before anything is fetched."""
    run = run_here("export", server.url, *options)
    assert run.returncode == 2
    assert said in run.stderr.splitlines()[-1]
    assert server.paths() == []


def test_wrong_conditions(run_here: RunHere, server: Server) -> None:
    """A condition that DuckDB cannot run is refused before anything is fetched, with DuckDB's message."""
    run = run_here("export", server.url, "-o", "p.csv", "--where", "lastmodified > '2025-01-01'")
    assert run.returncode == 2
    assert 'Referenced column "lastmodified" not found' in run.stderr
    assert server.paths() == []


@pytest.mark.parametrize(
    ("path", "said"), [("none/p.csv", "No such folder"), (".", "Is a folder"), ("p.csv/x.csv", "No such folder")]
)
def test_files_that_cannot_be_written(run_here: RunHere, server: Server, path: str, said: str) -> None:
    """A file that cannot be written is one clear line, before anything is fetched."""
    Path("p.csv").touch()
    run = run_here("export", server.url, "-o", path, "-f", "csv")
    assert (run.returncode, run.stdout) == (2, "")
    (line,) = run.stderr.splitlines()
    assert line.startswith("usp: error: ")
    assert said in line
    assert server.paths() == []


def test_full_disk(server: Server) -> None:
    """A disk that is full is one clear line, and the old file stays."""
    Path("p.csv").write_text("old")
    script = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)); from usp.cli import main; "
    script += f"sys.exit(main(['export', '-k', '-q', '{server.url}', '-o', 'p.csv']))"
    run = subprocess.run(  # a limit on the size of files fails as a full disk does
        [sys.executable, "-c", f"import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); {script}"],
        capture_output=True,
        text=True,
        env=environment(),
    )
    assert run.returncode == 2
    (line,) = run.stderr.splitlines()
    assert line == "usp: error: p.csv: File too large"
    assert Path("p.csv").read_text() == "old"
    assert os.listdir() == ["p.csv"]


def test_unreachable_site(tmp_path: Path) -> None:
    """Where the site cannot be reached the old file stays, and the exit code says so."""
    path = tmp_path / "p.csv"
    path.write_text("old")
    run = usp("-k", "http://127.0.0.1:9/", "-o", str(path))
    assert run.returncode == 3
    assert run.stderr.splitlines()[-1] == f"usp: {path} was not written"
    assert path.read_text() == "old"


def test_no_pages(run_here: RunHere, server: Server) -> None:
    """A site without sitemaps leaves an existing file as it was; one without pages makes a file without rows."""
    bare: Site = {"/robots.txt": (200, {}, b"User-agent: *\n")}
    listed: Site = {"/robots.txt": ROBOTS, "/a.xml": (200, XML, urlset().encode())}
    Path("p.csv").write_text("old")
    for found, expected, code in ((bare, "old", 3), (listed, "url,priority\n", 0)):
        with serve(found) as site_without_pages:
            run = run_here("export", "-k", site_without_pages.url, "-o", "p.csv", "--columns", "url,priority")
        assert run.returncode == code
        assert Path("p.csv").read_text() == expected


def test_rows_leave_as_sitemaps_come_in() -> None:
    """Rows on standard output are there as soon as all before them are, while others are waited for."""
    command = [sys.executable, "-m", "usp", "export", "-k", "-f", "jsonl", "-o", "-", "--columns", "url"]
    with (
        serve_faults(site(a=pages("1", "2"), b=slow, c=pages("3"))) as server,
        subprocess.Popen(
            [*command, server.url],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        ) as process,
    ):
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ['{"url":"http://h/1"}\n', '{"url":"http://h/2"}\n']
        assert process.poll() is None
        printed, said = interrupted(process)
    assert printed == ""
    assert said.splitlines()[-1] == "usp: interrupted; the results are partial"
    assert process.returncode == 130


def test_interrupted(tmp_path: Path) -> None:
    """After Ctrl-C there is no half of a file, and the old one stays."""
    path = tmp_path / "p.parquet"
    path.write_text("old")
    command = [sys.executable, "-m", "usp", "export", "-k", "-o", str(path)]
    with (
        serve_faults(site(a=pages("1", "2"), b=slow)) as server,
        subprocess.Popen(
            [*command, server.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
        ) as process,
    ):
        while not server.count("/b.xml"):
            time.sleep(0.01)
        _, said = interrupted(process)
    assert (process.returncode, said.splitlines()[-1]) == (130, f"usp: interrupted; {path} was not written")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["p.parquet"]


def test_closed_pipe() -> None:
    """A reader that has had enough ends it, without a word."""
    with demo_site() as url:
        run = subprocess.run(
            f'"{sys.executable}" -m usp export -q {url} -o - -f jsonl | head -1',
            shell=True,
            capture_output=True,
            text=True,
            env=environment(),
        )
    assert (run.returncode, run.stderr, len(run.stdout.splitlines())) == (0, "", 1)


def test_terminal() -> None:
    """Binary formats are not poured onto a terminal."""
    with demo_site() as url, terminal() as shown:
        command = [sys.executable, "-m", "usp", "export", url, "-o", "-", "-f", "parquet"]
        run = subprocess.run(command, stdout=shown.follower, stderr=subprocess.PIPE, text=True, env=environment())
    assert run.returncode == 2
    assert "not for a terminal" in run.stderr


def test_demo_site(tmp_path: Path) -> None:
    """What a file holds of the example website is what its tree holds."""
    path = tmp_path / "p.jsonl"
    with demo_site() as url:
        assert main(["export", "-q", url, "-o", str(path)]) == 0
        tree = sitemap_tree_for_homepage(url)
        expected = [(page.sitemap_url, page.url, page.news_story is None) for page in tree.all_pages()]
    found = rows_of(path.read_text("utf-8"))
    assert [(row["sitemap_url"], row["url"], row["news"] is None) for row in found] == expected


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
def test_killed(tmp_path: Path) -> None:
    """Killed at any moment, the old file is there, or the new one."""
    path = tmp_path / "p.csv"
    path.write_text("old")
    with demo_site() as url:
        for milliseconds in range(0, 700, 70):
            process = subprocess.Popen(
                [sys.executable, "-m", "usp", "export", "-q", url, "-o", str(path)], env=environment()
            )
            time.sleep(milliseconds / 1000)
            process.kill()
            process.wait()
            text = path.read_text("utf-8")
            assert text == "old" or (text.startswith("url,") and text.count("\n") == 10)
