"""The server of the explorer, as a user starts it: who may ask, what it may read, and how it ends."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import usp
from clocks import within
from commands import environment
from many_sites import Answer, serve_sites
from support import urlset
from usp.exceptions import InvalidArgumentError
from usp.view.queries import QueryCancelled, QueryTimeout
from usp.view.store import PROBLEMS
from viewing import Viewer, explored, pages_of_site, viewing, write_site

pytestmark = [pytest.mark.cli, pytest.mark.export, pytest.mark.network]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_site(tmp_path_factory.mktemp("view-server") / "site")


@pytest.fixture(scope="module")
def viewer(folder: Path) -> Iterator[Viewer]:
    with viewing(folder) as found:
        wait_for(found, "ready")
        yield found


def wait_for(viewer: Viewer, state: str, seconds: float = 30) -> dict[str, Any]:
    end = time.monotonic() + seconds
    while True:
        status: dict[str, Any] = viewer.ask("status")
        if status["state"] == state:
            return status
        assert time.monotonic() < end, status
        time.sleep(0.02)


def test_the_token_is_exchanged_for_a_cookie(viewer: Viewer) -> None:
    """The address that is printed gives a cookie, and leads to an address without the token."""
    status, headers, _ = viewer.request(f"/?token={viewer.token}")
    assert (status, headers["location"]) == (303, "/")
    cookie, *attributes = headers["set-cookie"].split("; ")
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= set(attributes)
    status, _, body = viewer.request("/", headers={"Cookie": cookie})
    assert status == 200
    assert b"<script" in body


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer nothing"},
        {"Authorization": "Bearer "},
        {"Cookie": "usp_view=1; usp_view_1=2"},
        {"Authorization": "Bearer \xe9"},
    ],
    ids=str,
)
@pytest.mark.parametrize("path", ["/", "/?token=wrong", "/api/status", "/api/events", "/static/app.js", "/nothing"])
def test_without_the_token_nothing_is_answered(viewer: Viewer, path: str, headers: dict[str, str]) -> None:
    """Every path needs the token, also those that do not exist."""
    status, answered, body = viewer.request(path, headers=headers)
    assert status == 403
    assert "set-cookie" not in answered
    assert b"usp view has printed" in body


def test_a_token_in_the_address_opens_the_page_only(viewer: Viewer) -> None:
    """Other addresses do not take the token, so that it does not end up in links and logs."""
    assert viewer.request(f"/api/status?token={viewer.token}")[0] == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", "", "[::1"]
)
def test_other_names_are_refused(viewer: Viewer, host: str) -> None:
    """A request that was sent to another name gets nothing, token or not: a page elsewhere may have led here."""
    headers = {**viewer.key, "Host": host.format(port=viewer.port)}
    assert viewer.request("/api/status", headers=headers)[0] == 421


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}", "[::1]:{port}"])
def test_own_names_are_answered(viewer: Viewer, host: str) -> None:
    """The names of this machine are answered."""
    headers = {**viewer.key, "Host": host.format(port=viewer.port)}
    assert viewer.request("/api/status", headers=headers)[0] == 200


@pytest.mark.parametrize("path", ["/", "/static/style.css", "/api/status", "/api/nothing", "/api/page?row=999"])
def test_every_answer_has_the_headers(viewer: Viewer, path: str) -> None:
    """Every answer has the policy, and is not kept."""
    _, headers, _ = viewer.request(path, headers=viewer.key)
    assert headers["content-security-policy"].startswith("default-src 'self';")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"


def test_a_form_cannot_ask(viewer: Viewer) -> None:
    """A POST needs a header that no form of another page can send."""
    body = b'{"query": "select 1", "id": "1"}'
    assert viewer.request("/api/sql", method="POST", body=body, headers=viewer.key)[0] == 403
    assert viewer.post("sql", {"query": "select 1 as one", "id": "1"})[1]["rows"] == [[1]]


@pytest.mark.parametrize(
    "path", ["/static/../server.py", "/static/%2e%2e/server.py", "/static/..%2fserver.py", "/static//etc/passwd"]
)
def test_only_the_page_is_served(viewer: Viewer, path: str) -> None:
    """No path leads out of the folder of the page."""
    assert viewer.request(path, headers=viewer.key)[0] == 404


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"query": 1, "id": "1"}', b'{"query": "select 1"}', b"\xff", b"[" * 100_000]
)
def test_bodies_that_are_no_query(viewer: Viewer, body: bytes) -> None:
    """A body that is no query gets an error."""
    headers = {**viewer.key, "X-Usp": "1"}
    status, _, answer = viewer.request("/api/sql", method="POST", body=body, headers=headers)
    assert status == 400
    assert json.loads(answer)["error"]


def test_a_body_that_is_too_large(viewer: Viewer) -> None:
    """A large body is refused."""
    assert viewer.post("sql", {"query": "x" * (1 << 20), "id": "1"})[0] == 413


PATHS = [
    "overview",
    "sitemaps",
    "pages",
    "page",
    "problems",
    "problems/list",
    "rules/E201",
    "document",
    "runs",
    "changes",
    "changes/export",
    "export",
]
NONSENSE = [
    "",
    "x",
    "-1",
    "9" * 15,
    "9" * 40,
    "1.5",
    "\x00",
    "'",
    '"; drop table pages',
    "é\U0001f600",
    "a" * 5000,
    "(",
    "[[",
    "٣",
]
PARAMETERS = [
    "q",
    "regex",
    "section",
    "from",
    "to",
    "undated",
    "sitemap",
    "language",
    "problem",
    "has",
    "sort",
    "offset",
    "limit",
    "row",
    "line",
    "context",
    "code",
    "old",
    "new",
    "kind",
    "bin",
    "top",
    "format",
]


@pytest.mark.parametrize("path", PATHS)
def test_nonsense_is_an_error_or_an_answer(viewer: Viewer, path: str) -> None:
    """Whatever a parameter holds, the answer is one, or an error with a sentence; never a fault of the server."""
    for name in PARAMETERS:
        for value in NONSENSE:
            query = {"row": "0", "sitemap": "1", "old": "1", "new": "2", "regex": "1"} if name != "regex" else {}
            status, headers, body = viewer.request(
                f"/api/{path}?{urllib.parse.urlencode({**query, name: value})}", headers=viewer.key
            )
            assert status in (200, 400, 404), (name, value, body)
            if status != 200:
                assert json.loads(body)["error"]
            else:
                assert headers["content-type"]


REFUSED = [
    "select * from read_csv('/etc/passwd')",
    "select * from read_text('/etc/hostname')",
    "select * from '/etc/passwd'",
    "select * from glob('/*')",
    "select * from read_parquet('https://example.org/x.parquet')",
    "select * from read_parquet('/tmp/*.parquet')",
    "copy pages to '/tmp/usp-view-out.csv'",
    "attach '/tmp/usp-view.db'",
    "install httpfs",
    "load httpfs",
    "set enable_external_access = true",
    "reset lock_configuration",
    "pragma enable_profiling",
    "create table x as select 1",
    "drop table sitemaps",
    "insert into sitemaps (url) values ('x')",
    "update sitemaps set url = 'x'",
    "delete from problems",
    "select 1; select 2",
    "select 1; drop table sitemaps",
    "select getenv('HOME')",
    "call pragma_version(); select 1",
    "explain analyze delete from sitemaps",
    "explain analyze drop view pages",
    "explain analyze create table x as select 1",
    "with gone as (delete from sitemaps returning id) from gone",
    "with more as (insert into sitemaps from sitemaps returning id) from more",
    "export database '/tmp/usp-view'",
    "from sniff_csv('/etc/passwd')",
    "from read_blob('/proc/self/environ')",
    "from duckdb_secrets(); create secret s (type s3)",
    "prepare x as select 1",
    "begin",
    "checkpoint",
    "",
    "-- nothing",
    "selec 1",
    "select \x00",
]


@pytest.mark.parametrize("query", REFUSED)
def test_queries_that_are_refused(viewer: Viewer, query: str) -> None:
    """Queries read the tables only: no file, no network, no settings; and they change nothing."""
    status, answer = viewer.post("sql", {"query": query, "id": "1"})
    assert (status, set(answer)) == (400, {"error"})
    assert answer["error"]
    assert viewer.post("sql", {"query": "select count(*) from sitemaps", "id": "1"})[1]["rows"] == [[5]]


@pytest.mark.parametrize(
    "query", ["explain analyze {}", "with written as ({}) select 1", "with é as (/* é */{}) select 1"]
)
def test_a_query_writes_no_file(viewer: Viewer, query: str) -> None:
    """Not even within the folder of the parts, from which the database reads."""
    folder = "select current_setting('allowed_directories')"
    (names,) = viewer.post("sql", {"query": folder, "id": "1"})[1]["rows"][0]
    part = Path(next(name for name in names if name.rstrip("/").endswith("parts"))) / "pages-00009.parquet"
    status, answer = viewer.post("sql", {"query": query.format(f"CoPy (select 1) to '{part}'"), "id": "1"})
    assert (status, part.exists()) == (400, False)
    assert "changes nothing" in answer["error"]


def test_the_word_copy_in_a_query(viewer: Viewer) -> None:
    """As a text, a comment or a name in quotes it is no command."""
    answer = viewer.post("sql", {"query": "select 'copy' as \"copy\", 'é' as copyright -- copy", "id": "1"})
    assert answer[1]["rows"] == [["copy", "é"]]


def test_a_query_that_is_nested_deeply(viewer: Viewer) -> None:
    """It is an error, and does not end the server."""
    for depth in (5_000, 50_000):
        query = f"select * from {'(select * from ' * depth}sitemaps{')' * depth}"
        assert viewer.post("sql", {"query": query, "id": "1"})[0] in (400, 413)
    assert viewer.ask("status")["state"] == "ready"


def test_answers_of_queries(viewer: Viewer) -> None:
    """An answer has the kinds of its columns, and says when rows are left out."""
    query = "select url, last_modified, priority, news is null as x, images from pages where last_modified is not null"
    status, answer = viewer.post("sql", {"query": query, "id": "1"})
    assert status == 200
    assert [column["type"] for column in answer["columns"]] == ["text", "time", "number", "boolean", "other"]
    assert answer["rows"][0][1].endswith("Z")
    status, answer = viewer.post("sql", {"query": "from range(20000)", "id": "1"})
    assert (status, len(answer["rows"]), answer["is_cut"]) == (200, 10_000, True)
    status, answer = viewer.post("sql", {"query": "select 'nan'::double, 'inf'::double, 'é', blob '\\xff'", "id": "1"})
    assert (status, answer["rows"][0][:3]) == (200, ["nan", "inf", "é"])
    status, answer = viewer.post("sql", {"query": "select map{'nan'::double: 1}, '\ud800'", "id": "1"})
    assert (status, answer["rows"]) == (200, [[[["nan", 1]], "?"]])


def test_times_that_python_does_not_have(viewer: Viewer) -> None:
    """Dates before the year 1 and after 9999, and infinite times, are texts."""
    query = "select date '10000-01-01', date '0044-03-15 (BC)', timestamp 'infinity', [date '10000-01-01'], 1"
    status, answer = viewer.post("sql", {"query": query, "id": "1"})
    assert status == 200
    assert answer["rows"][0][:2] == ["10000-01-01", "-0043-03-15"]
    assert "out of range" in answer["rows"][0][2]
    assert answer["rows"][0][3:] == ["out of range", 1]


@pytest.mark.parametrize(
    "path",
    [
        *("overview?top=abc", "pages?undated=abc", "pages?q=a&regex=abc", "pages?problem=abc", "problems?code=NOPE"),
        *("problems/list?code=NOPE", "rules/NOPE", "nothing"),
    ],
)
def test_values_that_make_no_sense(viewer: Viewer, path: str) -> None:
    """They are an error as JSON, with a sentence."""
    status, _, body = viewer.request(f"/api/{path}", headers=viewer.key)
    assert (status in (400, 404), bool(json.loads(body)["error"])) == (True, True)


SLOW = "select count(*) from range(10000000) a, range(10000000) b where a.range * b.range % 7 = 3"


def test_results_are_bounded(viewer: Viewer) -> None:
    """Rows with large texts are cut, and one that is too large is refused."""
    status, answer = viewer.post("sql", {"query": "select repeat('x', 20000) from range(9000)", "id": "1"})
    assert (status, answer["is_cut"]) == (200, True)
    assert 0 < len(answer["rows"]) < 2_000
    status, answer = viewer.post("sql", {"query": "select repeat('x', 40000000)", "id": "1"})
    assert (status, "too large to show" in answer["error"]) == (400, True)


def test_a_query_can_be_cancelled(viewer: Viewer) -> None:
    """A query that takes long ends when it is cancelled, and others are answered meanwhile."""
    found: list[tuple[int, Any]] = []
    asking = threading.Thread(target=lambda: found.append(viewer.post("sql", {"query": SLOW, "id": "slow"})))
    asking.start()
    end = time.monotonic() + 20
    while asking.is_alive() and time.monotonic() < end:
        assert viewer.ask("status")["state"] == "ready"
        assert viewer.post("sql/cancel", {"id": "slow"})[0] == 200
        time.sleep(0.05)
    asking.join(1)
    assert found == [(409, {"error": "The query was cancelled."})]
    assert viewer.post("sql/cancel", {"id": "nothing of that name"})[0] == 200


def test_a_query_may_be_cancelled_before_it_comes(viewer: Viewer) -> None:
    """A request to cancel a query may overtake it. Then the query does not start, and the next one does."""
    assert viewer.post("sql/cancel", {"id": "late"})[0] == 200
    found = [viewer.post("sql", {"query": "select 1", "id": "late"})[0] for _ in range(2)]
    assert found == [409, 200]


HUGE = "select levenshtein(repeat('a', 2000000), repeat('b', 2000000))"


def test_a_value_that_takes_hours_is_cancelled(viewer: Viewer) -> None:
    """DuckDB cannot interrupt the computation of one value: its process ends, and the next query has another one."""
    with ThreadPoolExecutor() as threads:
        answer = threads.submit(viewer.post, "sql", {"query": HUGE, "id": "huge"})
        time.sleep(1)
        started = time.monotonic()
        assert viewer.post("sql/cancel", {"id": "huge"}) == (200, {})
        assert answer.result(10)[0] == 409
        assert time.monotonic() - started < 5
    assert viewer.post("sql", {"query": "select count(*) from sitemaps", "id": "1"})[1]["rows"] == [[5]]


def test_a_value_that_takes_hours_has_a_time_limit(folder: Path) -> None:
    """The time limit holds, whatever the query does."""
    with explored(folder) as explorer:
        assert explorer.store.ask("select 1", "first")[0].num_rows == 1
        started = time.monotonic()
        with pytest.raises(QueryTimeout, match=r"longer than 0\.5 seconds"):
            explorer.store.ask(HUGE, "huge", seconds=0.5)
        assert time.monotonic() - started < 5


def test_a_query_that_ends_its_process(folder: Path) -> None:
    """It is an error, and the next query is answered."""
    with explored(folder) as explorer:
        explorer.sql("select 1", "1")
        (process,) = explorer.store._queries._idle

        def end() -> None:
            time.sleep(0.5)
            process._process.kill()

        threading.Thread(target=end).start()
        with pytest.raises(InvalidArgumentError, match="its process ended"):
            explorer.sql(HUGE, "1")
        assert explorer.sql("select count(*) from sitemaps", "1")["rows"] == [[5]]


def test_queries_at_once_are_bounded(folder: Path) -> None:
    """Each query has a process, so there are four at most; cancelling one makes room."""
    with explored(folder) as explorer, ThreadPoolExecutor() as threads:
        running = [threads.submit(explorer.sql, HUGE, f"huge-{number}") for number in range(4)]
        while explorer.store._queries._running < 4:
            time.sleep(0.01)
        with pytest.raises(InvalidArgumentError, match="4 queries are running"):
            explorer.sql("select 1", "1")
        for number in range(4):
            threads.submit(explorer.store.cancel, f"huge-{number}")
        for one in running:
            with pytest.raises(QueryCancelled):
                one.result(30)
        assert explorer.sql("select 1", "1")["rows"] == [[1]]


def test_queries_see_what_has_arrived(folder: Path) -> None:
    """A process that waits for queries gets the tables that have changed meanwhile, and leaves no files of them."""
    with explored(folder) as explorer:
        count = "select count(*) from problems"
        before = explorer.sql(count, "1")["rows"][0][0]
        explorer.store.write_table("problems", PROBLEMS, [{"code": "X102"}] * (before + 3))
        assert explorer.sql(count, "1")["rows"] == [[before + 3]]
        assert {name.partition("-")[0] for name in os.listdir(explorer.store.folder)} == {"pages"}


def test_an_export_is_a_download(viewer: Viewer) -> None:
    """An export has a name for the file, and the rows of the filter."""
    status, headers, body = viewer.request("/api/export?format=jsonl&q=post-1", headers=viewer.key)
    assert status == 200
    assert headers["content-disposition"] == 'attachment; filename="pages.jsonl"'
    expected = [page.url for page in pages_of_site() if "Post-1" in page.path]
    assert [json.loads(line)["url"] for line in body.splitlines()] == expected


@contextmanager
def listening(viewer: Viewer) -> Iterator[socket.socket]:
    """Give a connection that receives events, as the page has one."""
    with socket.create_connection(("127.0.0.1", viewer.port), timeout=10) as connection:
        lines = ["GET /api/events HTTP/1.1", f"Host: 127.0.0.1:{viewer.port}", f"Authorization: Bearer {viewer.token}"]
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        yield connection


def test_events(viewer: Viewer) -> None:
    """The stream of events starts with the status."""
    with listening(viewer) as connection:
        data = b""
        while b"\n\n" not in data.partition(b"\r\n\r\n")[2]:
            data += connection.recv(65536)
    assert b"text/event-stream" in data
    line = next(line for line in data.split(b"\n") if line.startswith(b"data: "))
    assert json.loads(line.removeprefix(b"data: "))["pages"] == len(pages_of_site())


class HeldSite:
    """A website with two sitemaps, of which one is held back until `go`."""

    def __init__(self) -> None:
        self.go = threading.Event()
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                base = f"http://127.0.0.1:{site.port}"
                bodies = {
                    "/robots.txt": f"Sitemap: {base}/a.xml\nSitemap: {base}/b.xml\n",
                    "/a.xml": urlset(*(f"{base}/a/{number}" for number in range(100))),
                    "/b.xml": urlset(f"{base}/b"),
                }
                if self.path == "/b.xml":
                    site.go.wait(60)
                body = bodies.get(self.path, "").encode()
                self.send_response(200 if body else 404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with suppress(OSError):  # the client may have ended
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        self.go.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def held() -> Iterator[HeldSite]:
    site = HeldSite()
    yield site
    site.close()


def test_pages_are_seen_while_others_arrive(held: HeldSite) -> None:
    """Pages of the sitemaps that are here can be looked at while another is fetched."""
    with viewing(f"http://127.0.0.1:{held.port}/", "-k") as viewer:
        end = time.monotonic() + 20
        while not (status := viewer.ask("status"))["pages"] and time.monotonic() < end:
            time.sleep(0.05)
        assert (status["state"], status["pages"]) == ("loading", 100)
        assert viewer.ask("pages", q="/a/7")["total"] == 11
        assert {row["url"].rpartition("/")[2] for row in viewer.ask("sitemaps")["rows"]} >= {"robots.txt", "a.xml"}
        assert viewer.ask("overview")["pages"] == 100
        held.go.set()
        assert wait_for(viewer, "ready")["pages"] == 101
        assert viewer.ask("pages", q="/b")["total"] == 1
        number = next(row["id"] for row in viewer.ask("sitemaps")["rows"] if row["url"].endswith("/a.xml"))
        assert "urlset" in viewer.ask("document", sitemap=number, line=1)["lines"][0][1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("is_ready", [True, False], ids=["ready", "loading"])
def test_it_ends_at_once(held: HeldSite, tmp_path: Path, number: int, is_ready: bool) -> None:
    """Ctrl-C, SIGTERM and a closed terminal end it soon, also while it fetches or a page is open; no file stays."""
    if is_ready:
        held.go.set()
    with viewing(f"http://127.0.0.1:{held.port}/", "-k", TMPDIR=str(tmp_path)) as viewer:
        wait_for(viewer, "ready" if is_ready else "loading")
        with listening(viewer) as connection:
            assert connection.recv(100)
            with within(8):
                code, errors = viewer.end(number)
    assert code == 0
    assert "Traceback" not in errors
    assert os.listdir(tmp_path) == []


def test_it_ends_while_a_query_runs(folder: Path, tmp_path: Path) -> None:
    """A query that takes long does not keep it from ending, nor its files."""
    with viewing(folder, TMPDIR=str(tmp_path)) as viewer:
        wait_for(viewer, "ready")

        def ask() -> None:
            with suppress(OSError, http.client.HTTPException):
                viewer.post("sql", {"query": SLOW, "id": "slow"})

        asking = threading.Thread(target=ask)
        asking.start()
        time.sleep(0.5)
        with within(8):
            code, errors = viewer.end(signal.SIGTERM)
        asking.join(5)
    assert (code, errors) == (0, "")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
def test_a_query_ends_with_a_server_that_is_killed(folder: Path, tmp_path: Path) -> None:
    """Its process does not outlive the server, whatever it is computing."""
    with viewing(folder, TMPDIR=str(tmp_path)) as viewer, ThreadPoolExecutor() as threads:
        wait_for(viewer, "ready")
        assert viewer.process is not None
        threads.submit(viewer.post, "sql", {"query": HUGE, "id": "huge"})
        tasks = Path(f"/proc/{viewer.process.pid}/task")
        end = time.monotonic() + 20
        while not (children := "".join(path.read_text() for path in tasks.glob("*/children")).split()):
            assert time.monotonic() < end
            time.sleep(0.05)
        time.sleep(1)
        viewer.process.kill()
        while any(Path(f"/proc/{number}").exists() for number in children):
            assert time.monotonic() < end
            time.sleep(0.05)


def test_it_ends_while_a_file_is_written(tmp_path: Path) -> None:
    """An export that takes long does not keep it from ending, nor its files."""
    (tmp_path / "temporary").mkdir()
    urls = tmp_path / "urls.txt"
    urls.write_text("".join(f"https://www.example.org/{number}\n" for number in range(500_000)))
    with viewing(urls, TMPDIR=str(tmp_path / "temporary")) as viewer:
        wait_for(viewer, "ready")

        def ask() -> None:
            with suppress(OSError, http.client.HTTPException):
                viewer.request("/api/export?format=xlsx", headers=viewer.key)

        asking = threading.Thread(target=ask)
        asking.start()
        time.sleep(1)
        with within(8):
            code, errors = viewer.end(signal.SIGTERM)
        asking.join(5)
    assert (code, errors) == (0, "")
    assert os.listdir(tmp_path / "temporary") == []


def test_a_second_server_on_the_same_port(viewer: Viewer, folder: Path) -> None:
    """A port that is taken is an error that says what to do."""
    done = subprocess.run(
        [sys.executable, "-m", "usp", "view", str(folder), "--no-open", "--port", str(viewer.port)],
        capture_output=True,
        text=True,
        timeout=30,
        env=environment(),
    )
    assert done.returncode != 0
    assert "choose another with --port" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_address_of_another_machine(folder: Path) -> None:
    """An address that is not of this machine is an error that names the option."""
    done = subprocess.run(
        [sys.executable, "-m", "usp", "view", str(folder), "--no-open", "--host", "192.0.2.7"],
        capture_output=True,
        text=True,
        timeout=30,
        env=environment(),
    )
    assert done.returncode != 0
    assert done.stderr.startswith("usp: error: cannot serve on 192.0.2.7: ")
    assert "choose another with --host" in done.stderr


def test_a_site_that_refuses_says_what_to_try() -> None:
    """The page has the advice of the other commands."""
    with serve_sites() as sites:
        site = sites.add("127.0.5.7", {})
        sites.answers["127.0.5.7"]["/robots.txt"] = Answer(status=403)
        with viewing(site) as viewer:
            outcome = wait_for(viewer, "ready")["outcome"]
    assert outcome["kind"] == "blocked"
    assert "403 Forbidden; try another --user-agent" in outcome["meaning"]


def test_everybody_may_reach_it_with_the_token(folder: Path) -> None:
    """With --host 0.0.0.0, usp says what that means; the token is needed all the same."""
    with viewing(folder, "--host", "0.0.0.0") as viewer:  # noqa: S104 -- what is tested
        assert viewer.request("/api/status")[0] == 403
        headers = {**viewer.key, "Host": f"192.0.2.7:{viewer.port}"}
        assert viewer.request("/api/status", headers=headers)[0] == 200
        assert viewer.request("/api/status", headers={**headers, "Host": f"evil.example:{viewer.port}"})[0] == 421
        _, errors = viewer.end()
    assert "everybody who reaches" in errors


@pytest.mark.parametrize("arguments", [(), ("no-such-folder/",), ("--port", "x", "y"), ("--port", "70000", "y")])
def test_wrong_use(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """Wrong arguments end it before it serves anything."""
    done = subprocess.run(
        [sys.executable, "-m", "usp", "view", *arguments, "--no-open"],
        capture_output=True,
        text=True,
        timeout=30,
        cwd=tmp_path,
        env=environment(),
    )
    assert done.returncode == 2
    assert done.stderr.startswith("usp view: error: ") or "usp" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_demo_can_be_explored() -> None:
    """`usp demo --view` explores the built-in website."""
    with viewing("--view", command="demo") as viewer:
        status = wait_for(viewer, "ready")
        assert status["pages"] == 9
        assert viewer.ask("pages")["total"] == status["pages"]
        assert viewer.end()[0] == 0


def test_the_page_is_complete(viewer: Viewer) -> None:
    """Every file that the page and its modules name is served, and JavaScript and CSS stay small."""
    names, size = {"app.js", "style.css"}, 0
    seen: set[str] = set()
    while names - seen:
        name = min(names - seen)
        seen.add(name)
        status, headers, body = viewer.request(f"/static/{name}", headers=viewer.key)
        assert status == 200, name
        assert headers["content-type"].startswith("text/javascript" if name.endswith(".js") else "text/css")
        size += len(body)
        names |= {found.decode() for found in re.findall(rb'from "\./([a-z]+\.js)"', body)}
    assert len(seen) > 10
    assert size <= 120_000


GUIDE = (Path(__file__).parents[1] / "docs" / "view.md").read_text("utf-8")
CURL = [line for block in re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL) for line in block.splitlines()]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("command", CURL, ids=range(len(CURL)))
def test_examples_of_the_guide_run(viewer: Viewer, command: str) -> None:
    """Every curl command of the guide gives a good answer."""
    variables = {**os.environ, "TOKEN": viewer.token, "URL": f"http://127.0.0.1:{viewer.port}"}
    done = subprocess.run(
        command.replace("curl -s", "curl -sS --fail"), shell=True, env=variables, capture_output=True, timeout=30
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"url," if "csv" in command else b"{")


def test_every_path_is_documented(viewer: Viewer) -> None:
    """The guide names every path of the server, and no other."""
    documented = {re.sub(r"/X102$", "/{code}", path) for path in re.findall(r"^\| `(/api/[^`]+)`", GUIDE, re.MULTILINE)}
    server = (Path(usp.__file__).parent / "view" / "server.py").read_text("utf-8")
    routed = set(re.findall(r'routing\.Route\("(/api/[^"]+)"', server))
    routed |= {f"/api/{name}" for name in re.findall(r'^        "([a-z/{}]+)": lambda', server, re.MULTILINE)}
    assert documented == routed
