"""`usp watch`: sites that change, real commands, a real webhook; killed, ended and started again."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from commands import RunHere, environment
from many_sites import Sites, serve_sites
from usp.crawl import AtomFeed, Command, Crawl, DeliveryError, RunChanges, Webhook, crawl, open_crawl, watch
from usp.crawl.deliveries import Deliveries
from usp.crawl.folder import CrawlFolder
from usp.crawl.schedule import Schedule
from usp.crawl.watching import Watcher, now
from usp.exceptions import CrawlFolderError, InvalidArgumentError

pytestmark = [pytest.mark.network, pytest.mark.export, pytest.mark.cli]

HOST, OTHER = "127.0.9.1", "127.0.9.2"
ATOM = "{http://www.w3.org/2005/Atom}"
SECRET = "a secret"  # noqa: S105 -- of this test
#: Appends each delivery to a file, as one JSON object.
NOTE = """#!{python}
import json, os, sys
changes = [json.loads(line) for line in sys.stdin]
variables = {{name: value for name, value in os.environ.items() if name.startswith("USP_")}}
with open({path!r}, "a") as file:
    print(json.dumps({{"changes": changes, "variables": variables}}), file=file)
{more}
"""


@pytest.fixture(scope="module")
def served() -> Iterator[Sites]:
    with serve_sites() as sites:
        yield sites


@pytest.fixture
def site(served: Sites) -> Site:
    return Site(served)


@dataclass
class Site:
    """A website with one sitemap."""

    sites: Sites

    def has(self, *paths: str, seconds: float = 0.0, host: str = HOST) -> str:
        """List these pages, and answer each request so late. Return the URL of the site."""
        url = self.sites.add(host, {"/a.xml": list(paths)})
        found = self.sites.answers[host]
        self.sites.answers[host] = {path: replace(answer, seconds=seconds) for path, answer in found.items()}
        return url


@dataclass
class Noting:
    """A command that notes what it gets."""

    path: Path
    command: str

    def deliveries(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []

    def changes(self) -> list[str]:
        """What was delivered, like "1 added /page": the run, the kind and the path."""
        return [
            f"{one['variables']['USP_RUN']} {change['change']} /{change['url'].rpartition('/')[2]}"
            for one in self.deliveries()
            for change in one["changes"]
        ]


def noting(folder: Path, more: str = "", name: str = "note") -> Noting:
    """Make a command; `more` is what it does after it has noted what it got."""
    script, path = folder / name, folder / f"{name}.jsonl"
    script.write_text(NOTE.format(python=sys.executable, path=str(path), more=more))
    script.chmod(0o755)
    return Noting(path, str(script))


@dataclass
class Hook:
    """A webhook. It answers with these statuses, and then with 204."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    requests: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.requests]

    def header(self, name: str) -> list[str | None]:
        return [headers.get(name) for headers, _ in self.requests]


@contextmanager
def serve_hook(*statuses: int) -> Iterator[Hook]:
    hook = Hook(statuses=list(statuses))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            hook.requests.append((dict(self.headers), body))
            self.send_response(hook.statuses.pop(0) if hook.statuses else 204)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hook.url = f"http://127.0.0.1:{server.server_port}/secret-path"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield hook
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def wait_for(is_true: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def is_delivered(folder: Path, run: int) -> bool:
    return (folder / "watch.json").exists() and delivered(folder) == [run]


def delivered(folder: Path) -> list[int]:
    return list(json.loads((folder / "watch.json").read_text())["delivered"].values())


#: Starts `usp watch` with these arguments.
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def started() -> Iterator[Start]:
    processes: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "usp", "watch", "--known-paths", "never", *arguments]
        processes.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment()))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


# Deliveries, one run after another


def test_a_command_gets_each_change_once(site: Site, run_here: RunHere, tmp_path: Path) -> None:
    """The command gets changes as JSON lines and numbers in variables; the first run and quiet ones tell nothing."""
    note, folder = noting(tmp_path), str(tmp_path / "c")
    for pages in (("/1", "/2"), ("/2", "/3"), ("/2", "/3"), ("/3",)):
        url = site.has(*pages)
        done = run_here("watch", url, "-o", folder, "--once", "--on-change", f"{note.command} 'an argument'")
        assert (done.returncode, done.stdout) == (0, "")
    assert note.changes() == ["2 removed /1", "2 added /3", "4 removed /2"]
    variables = note.deliveries()[0]["variables"]
    assert variables["USP_CRAWL"] == folder
    assert [variables[f"USP_{kind}"] for kind in ("ADDED", "REMOVED", "CHANGED", "MOVED")] == ["1", "1", "0", "0"]
    assert "USP_WEBHOOK_SECRET" not in variables


def test_the_lines_are_those_of_diff(site: Site, run_here: RunHere, tmp_path: Path) -> None:
    """A command gets what `usp diff -f jsonl` prints."""
    folder = str(tmp_path / "c")
    script = tmp_path / "keep"
    script.write_text(f"#!/bin/sh\ncat > {tmp_path}/lines\n")
    script.chmod(0o755)
    for pages in (("/1",), ("/2",)):
        run_here("watch", site.has(*pages), "-o", folder, "--once", "--on-change", str(script))
    assert (tmp_path / "lines").read_text() == run_here("diff", folder, "-f", "jsonl").stdout


def test_only_some_kinds(site: Site, run_here: RunHere, tmp_path: Path) -> None:
    """With --kind, only these changes are told; a run without any tells nothing."""
    note, folder = noting(tmp_path), str(tmp_path / "c")
    for pages in (("/1", "/2"), ("/2", "/3"), ("/3",)):
        run_here(
            *("watch", site.has(*pages), "-o", folder, "--once", "--kind", "added", "--on-change", note.command),
        )
    assert note.changes() == ["2 added /3"]
    assert delivered(tmp_path / "c") == [3]


@pytest.mark.parametrize("is_told", [False, True])
def test_sites_that_are_read_for_the_first_time(
    site: Site, run_here: RunHere, tmp_path: Path, *, is_told: bool
) -> None:
    """The pages of a site that is new in the folder are told only with --notify-first; those of others always."""
    note, listed = noting(tmp_path), tmp_path / "sites.txt"
    options = ["-o", str(tmp_path / "c"), "--once", "--on-change", note.command, *["--notify-first"] * is_told]
    listed.write_text(site.has("/1"))
    run_here("watch", str(listed), *options)
    listed.write_text(f"{site.has('/1', '/2')}\n{site.has('/9', host=OTHER)}")
    run_here("watch", str(listed), *options)
    expected = ["1 added /1", "2 added /2", "2 added /9"] if is_told else ["2 added /2"]
    assert note.changes() == expected


def test_a_new_destination_gets_what_comes_from_now_on(site: Site, run_here: RunHere, tmp_path: Path) -> None:
    """A destination that is named for the first time does not get the history of the folder."""
    folder = str(tmp_path / "c")
    for pages in (("/1",), ("/2",), ("/3",)):
        run_here("crawl", site.has(*pages), "-o", folder)
    note = noting(tmp_path)
    run_here("watch", site.has("/4"), "-o", folder, "--once", "--on-change", note.command)
    assert note.changes() == ["4 removed /3", "4 added /4"]


def test_runs_of_usp_crawl_are_told_too(site: Site, run_here: RunHere, tmp_path: Path) -> None:
    """Changes that `usp crawl` has found in between are delivered, each with its run."""
    note, folder = noting(tmp_path), str(tmp_path / "c")
    run_here("watch", site.has("/1"), "-o", folder, "--once", "--on-change", note.command)
    run_here("crawl", site.has("/2"), "-o", folder)
    run_here("watch", site.has("/3"), "-o", folder, "--once", "--on-change", note.command)
    assert note.changes() == ["2 removed /1", "2 added /2", "3 removed /2", "3 added /3"]


def test_a_command_that_fails_gets_the_changes_again(site: Site, run_here: RunHere, tmp_path: Path) -> None:
    """Changes that a command refused come again in the order of the runs, with the same id. Others do not wait."""
    good, bad, folder = noting(tmp_path, name="good"), noting(tmp_path, "sys.exit(7)", "bad"), str(tmp_path / "c")
    commands = ["--on-change", good.command, "--on-change", bad.command]
    codes = []
    for pages in (("/1",), ("/1", "/2"), ("/1", "/2", "/3")):
        done = run_here("watch", site.has(*pages), "-o", folder, "--once", *commands)
        codes.append(done.returncode)
    assert codes == [0, 4, 4]
    assert "not delivered to the command" in done.stderr
    assert "it exited with 7" in done.stderr
    assert good.changes() == ["2 added /2", "3 added /3"]
    assert bad.changes() == ["2 added /2"] * 3  # after the second run, before the third and after it
    assert len({one["variables"]["USP_DELIVERY"] for one in bad.deliveries()}) == 1
    noting(tmp_path, name="bad")  # it is repaired
    assert run_here("watch", "-o", folder, "--once", *commands).returncode == 0
    assert bad.changes()[3:] == ["2 added /2", "3 added /3"]
    assert good.changes() == ["2 added /2", "3 added /3"]


def test_a_command_that_hangs_is_ended_with_its_children(site: Site, run_here: RunHere, tmp_path: Path) -> None:
    """After --command-timeout, a command and the processes that it started are ended, and the changes kept."""
    script, folder = tmp_path / "hang", str(tmp_path / "c")
    script.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {tmp_path}/child\nwait\n")
    script.chmod(0o755)
    for pages in (("/1",), ("/2",)):
        done = run_here(
            *("watch", site.has(*pages), "-o", folder, "--once"),
            *("--on-change", str(script), "--command-timeout", "3s"),
        )
    assert done.returncode == 4
    assert "it did not end within 3 seconds" in done.stderr
    child = int((tmp_path / "child").read_text())
    wait_for(lambda: not _is_alive(child), 10)


def _is_alive(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return False


# Webhooks


def test_a_webhook_that_fails_at_first(
    site: Site, run_here: RunHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request is repeated after 503, with the same id and body, and has a signature that its receiver can check."""
    monkeypatch.setenv("USP_WEBHOOK_SECRET", SECRET)
    folder = str(tmp_path / "c")
    with serve_hook(503, 429) as hook:
        for pages in (("/1",), ("/1", "/2")):
            done = run_here("watch", site.has(*pages), "-o", folder, "--once", "--webhook", hook.url)
            assert done.returncode == 0
        assert "secret-path" not in done.stderr
    assert len(hook.requests) == 3
    assert len({body for _, body in hook.requests}) == 1
    (sent, *_) = hook.bodies()
    assert hook.header("Usp-Delivery") == [sent["delivery"]] * 3
    assert {name: sent[name] for name in ("crawl", "run", "counts", "batch", "batches")} == {
        "crawl": "c",
        "run": 2,
        "counts": {"added": 1, "removed": 0, "changed": 0, "moved": 0},
        "batch": 1,
        "batches": 1,
    }
    assert [change["url"].rpartition("/")[2] for change in sent["changes"]] == ["2"]
    for headers, body in hook.requests:
        signed = headers["Usp-Timestamp"].encode() + b"." + body
        assert headers["Usp-Signature"] == f"sha256={hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()}"
        assert headers["Content-Type"] == "application/json"


def test_a_webhook_that_is_down_gets_everything_later(site: Site, run_here: RunHere, tmp_path: Path) -> None:
    """While a webhook answers errors, its changes are kept; then it gets them in order, each run once."""
    folder = str(tmp_path / "c")
    with serve_hook() as hook:
        options = ["-o", folder, "--once", "--webhook", hook.url]
        run_here("watch", site.has("/1"), *options)
        hook.statuses = [404, 410, 301]
        codes = [run_here("watch", site.has(*pages), *options).returncode for pages in (("/1", "/2"), ("/3",))]
        assert codes == [4, 4]
        assert len(hook.requests) == 3  # none is repeated at once: 4xx will not pass, and redirects are not followed
        run_here("watch", site.has("/3"), *options)
    assert [body["run"] for body in hook.bodies()] == [2, 2, 2, 2, 3]
    assert len(set(hook.header("Usp-Delivery"))) == 2
    assert hook.header("Usp-Signature") == [None] * 5


def test_many_changes_come_in_several_requests(site: Site, run_here: RunHere, tmp_path: Path) -> None:
    """A request has at most 1,000 changes. Each has its own id."""
    folder = str(tmp_path / "c")
    with serve_hook() as hook:
        for pages in (("/x",), ("/x", *(f"/{number}" for number in range(2_500)))):
            run_here("watch", site.has(*pages), "-o", folder, "--once", "--webhook", hook.url)
    sent = hook.bodies()
    assert [(body["batch"], body["batches"], len(body["changes"])) for body in sent] == [
        *((1, 3, 1_000), (2, 3, 1_000), (3, 3, 500)),
    ]
    assert len({change["url"] for body in sent for change in body["changes"]}) == 2_500
    assert len({body["delivery"] for body in sent}) == 3


# The feed


def entries(path: Path) -> list[str]:
    found = ElementTree.parse(path).getroot()  # noqa: S314 -- written by this test
    for element in (found, *found.findall(f"{ATOM}entry")):  # what RFC 4287 requires
        assert all(element.findtext(ATOM + name) for name in ("id", "title", "updated"))
        assert datetime.fromisoformat(element.findtext(f"{ATOM}updated") or "").tzinfo is not None
    return [str(entry.findtext(f"{ATOM}title")).rpartition("/")[2] for entry in found.findall(f"{ATOM}entry")]


def test_a_feed_has_the_newest_pages_first(site: Site, run_here: RunHere, tmp_path: Path) -> None:
    """A feed is there from the first run on, gets new pages on top, and keeps only the newest."""
    feed, found = tmp_path / "new.xml", []
    for pages in (("/1",), ("/1", "/2", "/3"), ("/2", "/3"), ("/2", "/3", "/4<&")):
        options = ["--once", "--feed", str(feed), "--feed-entries", "2"]
        assert run_here("watch", site.has(*pages), "-o", str(tmp_path / "c"), *options).returncode == 0
        found.append(entries(feed))
    assert found == [[], ["2", "3"], ["2", "3"], ["4<&", "2"]]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_feed_that_is_delivered_twice_is_the_same(site: Site, run_here: RunHere, tmp_path: Path) -> None:
    """If the process ends after the feed was written and before that was noted, nothing is in it twice."""
    feed, folder = tmp_path / "new.xml", tmp_path / "c"
    options = ["-o", str(folder), "--once", "--feed", str(feed)]
    run_here("watch", site.has("/1"), *options)
    before = (folder / "watch.json").read_bytes()
    run_here("watch", site.has("/1", "/2"), *options)
    first = feed.read_bytes()
    (folder / "watch.json").write_bytes(before)
    run_here("watch", site.has("/1", "/2"), *options)
    assert feed.read_bytes() == first


# Processes


@pytest.mark.slow
def test_runs_on_a_schedule(site: Site, started: Start, tmp_path: Path) -> None:
    """Run follows run, at least half an interval apart, and every change is told once."""
    note, folder = noting(tmp_path), tmp_path / "c"
    process = started(site.has("/0"), "-o", str(folder), "--every", "2s", "--jitter", "0s", "--on-change", note.command)
    wait_for(partial(is_delivered, folder, 1))
    for number in range(1, 4):
        site.has(*(f"/{page}" for page in range(number + 1)))
        wait_for(lambda number=number: len(note.changes()) == number)  # type: ignore[misc]  # mypy infers no defaults
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 143, errors
    assert [change.partition(" ")[2] for change in note.changes()] == ["added /1", "added /2", "added /3"]
    starts = [run.started for run in open_crawl(folder).runs]
    assert min(late - early for early, late in pairwise(starts)) >= timedelta(seconds=0.9)


@pytest.mark.slow
def test_sigterm_in_the_middle_of_a_run(site: Site, started: Start, tmp_path: Path) -> None:
    """SIGTERM ends a run in good order, with exit code 143. The same command finishes it, and tells its changes."""
    note, folder = noting(tmp_path), tmp_path / "c"
    options = ["-o", str(folder), "--every", "1h", "--on-change", note.command]
    crawl(site.has("/1"), folder)
    Deliveries([Command.parse(note.command)]).prepare(CrawlFolder(folder))
    url = site.has("/1", "/2", seconds=1.0)
    runs = json.loads((folder / "crawl.json").read_text())
    runs["runs"][0] |= dict.fromkeys(("started", "ended"), "2020-01-01T00:00:00+00:00")  # so the next run is due
    (folder / "crawl.json").write_text(json.dumps(runs))
    site.sites.forget()
    process = started(url, *options)
    wait_for(lambda: site.sites.requests.total() > 0)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, "Traceback" in errors) == (143, False), errors
    assert open_crawl(folder).runs[-1].ended is None
    assert note.changes() == []
    site.has("/1", "/2")
    process = started(url, *options, "--runs", "1")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert note.changes() == ["2 added /2"]
    assert [run.run for run in open_crawl(folder).runs] == [1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL], ids=["SIGTERM", "SIGINT", "SIGKILL"])
def test_a_watch_that_ends_during_a_delivery_delivers_again(
    site: Site, started: Start, tmp_path: Path, how: signal.Signals
) -> None:
    """A process that ends after a run, before its delivery is noted, delivers it again: the same id, nothing lost."""
    note, folder = noting(tmp_path, "import time; time.sleep(8)"), tmp_path / "c"
    url = site.has("/1")
    options = ["-o", str(folder), "--once", "--on-change", note.command]
    assert started(url, *options).wait(60) == 0
    site.has("/1", "/2")
    process = started(url, *options)
    wait_for(lambda: len(note.deliveries()) == 1)
    process.send_signal(how)
    _, errors = process.communicate(timeout=60)
    codes = {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGKILL: -signal.SIGKILL}
    assert (process.returncode, "Traceback" in errors) == (codes[how], False), errors
    assert delivered(folder) == [1]
    noting(tmp_path)
    assert started(url, *options).wait(60) == 0
    assert note.changes() == ["2 added /2", "2 added /2"]
    assert len({one["variables"]["USP_DELIVERY"] for one in note.deliveries()}) == 1
    assert delivered(folder) == [3]
    assert not (folder / "watch.partial").exists()


def test_only_one_process_watches_a_folder(site: Site, run_here: RunHere, tmp_path: Path) -> None:
    """A second `usp watch` says that another is at work, and ends with exit code 2."""
    folder = CrawlFolder.create(tmp_path / "c")
    with folder.watching():
        done = run_here("watch", site.has("/1"), "-o", str(tmp_path / "c"), "--once")
    assert (done.returncode, "another usp watch is at work" in done.stderr) == (2, True)


def test_lines_for_the_journal_have_priorities(site: Site, tmp_path: Path) -> None:
    """If the journal reads standard error, lines have a priority and no time."""
    with open(tmp_path / "journal", "w+") as journal:
        found = os.fstat(journal.fileno())
        command = [sys.executable, "-m", "usp", "watch", site.has("/1"), "-o", str(tmp_path / "c"), "--once"]
        variables = environment(JOURNAL_STREAM=f"{found.st_dev}:{found.st_ino}")
        subprocess.run([*command, "--on-change", "false"], stderr=journal, env=variables, check=True, timeout=60)
        site.has("/2")
        assert subprocess.run([*command, "--on-change", "false"], stderr=journal, env=variables).returncode == 4
        journal.seek(0)
        lines = journal.read().splitlines()
    assert lines[0].startswith("<6>usp: run 1: 1 site (1 complete), 1 page")
    assert lines[-1].startswith("<4>usp: warning: run 2: not delivered to the command false: it exited with 1")


# The loop, and wrong use


def test_a_run_that_fails_is_tried_again_in_the_next_slot(site: Site, tmp_path: Path) -> None:
    """A run that raises is reported. The next slot tries again, and what it finds is told."""
    url, folder, note = site.has("/1"), tmp_path / "c", noting(tmp_path)
    first = crawl(url, folder).runs[0].started
    lines: list[str] = []
    failures: list[Exception] = [OSError(28, "No space left on device"), CrawlFolderError("locked")]
    slots: list[int] = []
    every = timedelta(seconds=2)

    def attempt() -> Crawl:
        slots.append((now() - first) // every)
        if failures:
            raise failures.pop(0)
        return crawl(url, folder)

    def report(level: str, line: str) -> None:
        if level == "error":
            lines.append(line)

    site.has("/1", "/2")
    deliveries = Deliveries([Command.parse(note.command)])
    watcher = Watcher(folder, attempt, deliveries, Schedule(every, timedelta(0)), 3, report)
    watcher.watch()
    assert lines == ["the run failed: [Errno 28] No space left on device", "the run failed: locked"]
    assert 1 <= slots[0] < slots[1] < slots[2]
    assert note.changes() == ["2 added /2"]
    assert not watcher.is_failed


def test_a_list_that_gets_wrong_does_not_end_a_watch(site: Site, tmp_path: Path) -> None:
    """A list that cannot be read is refused at the start. If it gets wrong later, that is reported."""
    listed = tmp_path / "sites.csv"
    listed.write_text("name\n")
    options: dict[str, Any] = {"every": timedelta(seconds=1), "jitter": timedelta(0), "column": "domain"}
    with pytest.raises(InvalidArgumentError, match="has no column"):
        watch(str(listed), tmp_path / "c", **options)
    listed.write_text(f"domain\n{site.has('/1')}")
    lines: list[str] = []

    class Breaks:
        key = name = "breaks"

        def prepare(self, folder: CrawlFolder) -> None:
            pass

        def deliver(self, changes: RunChanges) -> None:
            listed.write_text("name\n")

    options |= {"destinations": [Breaks()], "notify_first": True}
    watch(str(listed), tmp_path / "c", runs=2, report=lambda level, line: lines.append(f"{level}: {line}"), **options)
    assert lines[-1].startswith("error: the run failed: ")
    assert "has no column 'domain'" in lines[-1]


def test_what_waits_is_delivered_between_runs(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be delivered is tried again before the next run, and less often with each failure."""
    skipped = timedelta(0)
    monkeypatch.setattr("usp.crawl.watching.now", lambda: now() + skipped)
    url, folder = site.has("/1"), tmp_path / "c"
    tried: list[datetime] = []

    class Unsteady:
        key = name = "unsteady"

        def prepare(self, folder: CrawlFolder) -> None:
            pass

        def deliver(self, changes: RunChanges) -> None:
            tried.append(now() + skipped)
            if len(tried) < 4:
                raise DeliveryError("not now")

    def skip(moment: datetime) -> None:
        nonlocal skipped
        skipped = max(skipped, moment - now())

    deliveries, schedule = Deliveries([Unsteady()], notify_first=True), Schedule(timedelta(hours=1), timedelta(0))
    Watcher(folder, lambda: crawl(url, folder), deliveries, schedule, 2, wait=skip).watch()
    gaps = [round((late - early) / timedelta(minutes=1)) for early, late in pairwise(tried)]
    assert gaps == [1, 2, 4]


def test_in_python(site: Site, tmp_path: Path) -> None:
    """`usp.crawl.watch` takes the options of `crawl`, and any destinations."""
    url, feed = site.has("/1"), tmp_path / "new.xml"
    crawl(url, tmp_path / "c")
    site.has("/1", "/2")
    lines: list[str] = []
    crawled = watch(
        url,
        tmp_path / "c",
        every=None,
        destinations=[AtomFeed(str(feed))],
        report=lambda level, line: lines.append(line),
        progress=lambda event: None,
    )
    assert len(crawled.runs) == 2
    assert entries(feed) == ["2"]
    assert lines == ["run 2: 1 added", f"run 2: delivered to the feed {feed}"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--every", "soon"], "--every must be like 90s, 30m, 6h, 7d or 4w, not 'soon'"),
        (["--every", "0h"], "every must be from one second"),
        (["--every", "1h", "--jitter", "31m"], "jitter must be from 0 to half of every"),
        (["--once", "--runs", "2"], "go with --every"),
        (["--once", "--every", "1h"], "not allowed with"),
        ([], "one of the arguments --every --once is required"),
        (["--once", "--on-change", "no-such-program-anywhere"], "there is no program 'no-such-program-anywhere'"),
        (["--once", "--on-change", "'"], "No closing quotation"),
        (["--once", "--on-change", ""], "the command is empty"),
        (
            ["--once", "--webhook", "ftp://me:password@example.org/"],
            "a webhook is an http or https URL, not 'ftp://***",
        ),
        (["--once", "--kind", "removed", "--feed", "new.xml"], "--kind leaves out both"),
        (["--once", "--feed", "/no/such/folder/new.xml"], "No such folder"),
        (["--once", "-"], "can be read only once"),
    ],
)
def test_wrong_use_is_refused(run_here: RunHere, tmp_path: Path, arguments: list[str], message: str) -> None:
    """Wrong options are refused before anything is crawled."""
    done = run_here("watch", "http://127.0.0.1:1/", "-o", str(tmp_path / "c"), *arguments)
    assert done.returncode == 2
    assert message in done.stderr.replace("\n", " ")
    assert not (tmp_path / "c/sites").exists()


def test_a_damaged_note_of_deliveries_is_refused(run_here: RunHere, tmp_path: Path) -> None:
    """If watch.json cannot be read, usp says what to do, and does not start from anywhere."""
    CrawlFolder.create(tmp_path / "c")
    (tmp_path / "c/watch.json").write_text("[]")
    done = run_here("watch", "http://127.0.0.1:1/", "-o", str(tmp_path / "c"), "--once", "--on-change", "true")
    assert (done.returncode, "watch.json cannot be read; remove it" in done.stderr) == (2, True)


def test_secrets_stay_secret() -> None:
    """The names and keys of destinations do not have passwords, paths of URLs, or arguments."""
    hook = Webhook("https://me:password@hooks.example.org:8443/services/T0/xyz?token=1", SECRET)
    command = Command.parse("/bin/notify --token xyz")
    for text in (hook.key, hook.name, command.key, command.name):
        assert not any(secret in text for secret in ("password", "services", "token", "xyz"))
    assert "hooks.example.org:8443" in hook.name
    assert SECRET not in repr(hook)
    with pytest.raises(InvalidArgumentError):
        Webhook("http:///x")


def test_units_of_systemd_are_valid(tmp_path: Path) -> None:
    """The units in the documentation are accepted by systemd itself."""
    analyze = shutil.which("systemd-analyze") or pytest.skip("systemd is not installed")
    documented = (Path(__file__).parents[1] / "docs/watch.md").read_text("utf-8")
    units = re.findall(r"^```ini\n# /etc/systemd/system/(\S+)\n(.*?)^```", documented, re.DOTALL | re.MULTILINE)
    for name, unit in units:
        (tmp_path / name).write_text(unit.replace("/usr/local/bin/usp", "/bin/true"))
    assert len(units) == 3
    done = subprocess.run([analyze, "verify", *(tmp_path / name for name, _ in units)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
