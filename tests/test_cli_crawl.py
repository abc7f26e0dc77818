"""`usp crawl`: what it says, how it ends, and how it goes on after Ctrl-C."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands import RunHere, environment
from many_sites import Answer, Sites, serve_sites
from usp.cli.crawl import CrawlMeter
from usp.crawl import CrawlOptions, CrawlProgress, crawl, crawls, open_crawl
from usp.crawl.folder import CrawlFolder
from usp.export.dedupe import FirstOfEach

pytestmark = [pytest.mark.cli, pytest.mark.network, pytest.mark.export]

HOST, OTHER = "127.0.5.1", "127.0.5.2"


@pytest.fixture
def sites() -> Iterator[Sites]:
    with serve_sites() as served:
        yield served


def test_a_run_says_what_it_has_found(sites: Sites, run_here: RunHere, tmp_path: Path) -> None:
    """A crawl prints nothing on standard output, and a summary by outcome on standard error."""
    (tmp_path / "sites.txt").write_text(sites.add(HOST, {"/a.xml": ["/1", "/2"]}))
    done = run_here("crawl", str(tmp_path / "sites.txt"), "-o", str(tmp_path / "c"))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines()[0].split() == ["usp:", "1", "complete"]
    assert "run 1: 1 site, 2 pages" in done.stderr


def test_a_second_run_names_the_next_command(sites: Sites, run_here: RunHere, tmp_path: Path) -> None:
    """After a second run, usp says how to see what has changed."""
    url, folder = sites.add(HOST, {"/a.xml": ["/1"]}), str(tmp_path / "c")
    run_here("crawl", url, "-o", folder)
    done = run_here("crawl", "-o", folder)
    assert done.returncode == 0
    assert f"what has changed: usp diff {folder}" in done.stderr


def test_the_next_command_can_be_copied(sites: Sites, run_here: RunHere, tmp_path: Path) -> None:
    """The folder in a command is quoted as shells need it."""
    urls = [sites.add(f"127.0.5.{number}", {"/a.xml": ["/1"]}) for number in (27, 28)]
    sites.answers["127.0.5.28"] = {"/robots.txt": Answer(b"", 403, has_etag=False)}
    folder = str(tmp_path / "it's new")
    run_here("crawl", *urls, "-o", folder, "--known-paths", "never")
    done = run_here("crawl", "-o", folder, "--known-paths", "never")
    commands = [shlex.split(line.partition("usp: ")[2].partition(": ")[2]) for line in done.stderr.splitlines()[-2:]]
    assert commands == [["usp", "diff", folder], ["usp", "crawl", "-o", folder, "--retry-failed"]]


def test_the_summary_says_why_a_site_is_empty(sites: Sites, run_here: RunHere, tmp_path: Path) -> None:
    """If something else was in the place of a sitemap, the summary says so, and how to try again."""
    url = sites.add(HOST, {"/a.xml": ["/1"]})
    sites.answers[HOST]["/index.xml"] = Answer("<!doctype html><html><body>Busy</body></html>")
    done = run_here("crawl", url, "-o", str(tmp_path / "c"), "--known-paths", "never")
    assert f"1  empty        its root element is <html>: {url}\n" in done.stderr
    assert "--retry-failed" in done.stderr
    sites.answers[HOST] = {}
    done = run_here("crawl", url, "-o", str(tmp_path / "d"), "--known-paths", "never")
    assert "1  empty\n" in done.stderr
    assert "--retry-failed" not in done.stderr


@pytest.mark.parametrize(
    ("statuses", "code"), [((200, 200), 0), ((200, 403), 4), ((403, 403), 3)], ids=["all", "some", "none"]
)
def test_exit_codes(sites: Sites, run_here: RunHere, tmp_path: Path, statuses: tuple[int, int], code: int) -> None:
    """The exit code says whether all sites were read, some, or none."""
    urls = []
    for host, status in zip((HOST, OTHER), statuses, strict=True):
        urls.append(sites.add(host, {"/a.xml": ["/1"]}))
        if status != 200:
            sites.answers[host] = {"/robots.txt": Answer(b"", status, has_etag=False)}
    assert run_here("crawl", *urls, "-o", str(tmp_path / "c"), "--known-paths", "never").returncode == code


def test_lines_that_are_no_sites_are_named(sites: Sites, run_here: RunHere, tmp_path: Path) -> None:
    """A line that is no site is named with what to write, and the exit code is 4."""
    (tmp_path / "sites.txt").write_text(f"not a site\n{sites.add(HOST, {'/a.xml': ['/1']})}\n")
    done = run_here("crawl", str(tmp_path / "sites.txt"), "-o", str(tmp_path / "c"))
    assert done.returncode == 4
    assert "skipped: a site is written like example.org or https://example.org/, not 'not a site'" in done.stderr


def test_wrong_use_is_refused(run_here: RunHere, tmp_path: Path) -> None:
    """A folder with other files, a missing list and a bad age are refused before anything is fetched."""
    (tmp_path / "file").write_text("mine")
    assert "is not a crawl folder" in run_here("crawl", "example.org", "-o", str(tmp_path)).stderr
    missing = run_here("crawl", str(tmp_path / "missing.txt"), "-o", str(tmp_path / "c"))
    assert (missing.returncode, "there is no such file; write a site on each line" in missing.stderr) == (2, True)
    assert run_here("crawl", "example.org", "-o", str(tmp_path / "d"), "--max-age", "soon").returncode == 2


def test_the_summary_says_why_sites_failed(sites: Sites, run_here: RunHere, tmp_path: Path) -> None:
    """The summary has the most common reasons, and says how to crawl only these sites again."""
    urls = [sites.add(f"127.0.5.{number}", {"/a.xml": ["/1"], "/b.xml": ["/2"]}) for number in range(10, 15)]
    for number in (10, 11):
        sites.answers[f"127.0.5.{number}"] = {"/robots.txt": Answer(b"", 403, has_etag=False)}
    sites.answers["127.0.5.12"]["/b.xml"] = Answer(b"", 500, has_etag=False)
    done = run_here("crawl", *urls, "http://127.0.5.9:1/", "-o", str(tmp_path / "c"), "--known-paths", "never")
    assert done.stderr.splitlines()[:4] == [
        "usp:         2  complete",
        f"usp:         1  partial      500 Internal Server Error: {urls[2]}",
        "usp:         2  blocked      403 Forbidden: 2 sites",
        "usp:         1  unreachable  connection refused: http://127.0.5.9:1/",
    ]
    assert f"usp crawl -o {tmp_path}/c --retry-failed" in done.stderr


def test_if_nothing_failed_there_is_nothing_to_retry(sites: Sites, run_here: RunHere, tmp_path: Path) -> None:
    """With --retry-failed and no site that failed, usp says so."""
    run_here("crawl", sites.add(HOST, {"/a.xml": ["/1"]}), "-o", str(tmp_path / "c"))
    done = run_here("crawl", "-o", str(tmp_path / "c"), "--retry-failed")
    assert (done.returncode, "no site failed the last time" in done.stderr) == (0, True)


def test_a_list_that_is_not_kept_must_be_named_again(sites: Sites, run_here: RunHere, tmp_path: Path) -> None:
    """A run whose sites came from standard input goes on only if they are named again: nobody else knows them."""
    url = sites.add(HOST, {"/a.xml": ["/1"]})
    folder = CrawlFolder.create(tmp_path / "c")
    crawls._run_of(folder, ["-"], FirstOfEach(), CrawlOptions())
    done = run_here("crawl", "-o", str(tmp_path / "c"))
    assert done.returncode == 2
    assert "run 1 of" in done.stderr
    assert "name them again to go on" in done.stderr
    assert run_here("crawl", url, "-o", str(tmp_path / "c")).returncode == 0
    assert [run.run for run in open_crawl(tmp_path / "c").runs] == [1]
    assert run_here("crawl", "-o", str(tmp_path / "c")).returncode == 0


def progress_of(target: str, folder: Path) -> list[tuple[int, int | None]]:
    events: list[tuple[int, int | None]] = []
    crawl(target, folder, progress=lambda event: events.append((event.sites, event.total)))
    return events


def test_progress_knows_how_many_sites_there_are(sites: Sites, tmp_path: Path) -> None:
    """The number of sites is known from the list, and from the folder if there is none."""
    urls = [sites.add(f"127.0.5.{number}", {"/a.xml": ["/1"]}) for number in range(20, 24)]
    (tmp_path / "sites.txt").write_text("# a comment\n" + "\n".join(urls))
    assert progress_of(str(tmp_path / "sites.txt"), tmp_path / "c") == [(number, 4) for number in range(1, 5)]
    events: list[int | None] = []
    crawl([], tmp_path / "c", progress=lambda event: events.append(event.total))
    assert events == [4] * 4


def test_the_line_of_progress(sites: Sites) -> None:
    """The line shows how many sites are done of how many, how long the rest takes, and what failed."""
    meter = CrawlMeter()
    meter._started -= 10
    row = {"outcome": "blocked", "reason": "https://a.example/robots.txt: 403 Forbidden", "target": "a.example"}
    meter(CrawlProgress(20, 50, 3, 1_000, 5_000_000, {"complete": 18, "blocked": 2}, 10.0, row))
    assert meter.fields() == [
        *("20/50 sites", "15 s left", "2 failed", "1,000 pages", "5.0 MB", "2.0 sites/s", "100 pages/s", "a.example"),
    ]
    meter(CrawlProgress(20, None, 3, 1_000, 5_000_000, {"complete": 20}, 10.0, row))
    assert meter.fields()[:3] == ["20 sites", "10 s", "1,000 pages"]


@pytest.mark.parametrize("target", ["missing.txt", "./missing.csv", "lists/missing.txt.gz", "not a site"])
@pytest.mark.parametrize("command", [["crawl"], ["watch", "--once"]], ids=["crawl", "watch"])
def test_a_mistyped_target_makes_no_folder(
    run_here: RunHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], target: str
) -> None:
    """A list that is not there, and a target that is no site, are refused before anything is made."""
    monkeypatch.chdir(tmp_path)
    done = run_here(*command, target, "-o", "c")
    assert done.returncode == 2
    assert target in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_text_sitemap_is_no_list_of_sites(sites: Sites, run_here: RunHere, tmp_path: Path) -> None:
    """A URL that ends like a list is a sitemap, with or without its scheme."""
    sites.answers[HOST] = {"/urls.txt": Answer(sites.url(HOST, "/1"))}
    for number, url in enumerate((sites.url(HOST, "/urls.txt"), f"{HOST}:{sites.port}/urls.txt")):
        done = run_here("crawl", url, "-o", str(tmp_path / str(number)))
        assert (done.returncode, "1 site, 1 page" in done.stderr) == (0, True)


def test_ages_may_be_minutes(sites: Sites, run_here: RunHere, tmp_path: Path) -> None:
    """--max-age takes seconds and minutes, as its error says."""
    url = sites.add(HOST, {"/a.xml": ["/1"]})
    for age in ("90s", "30m", "6h"):
        assert run_here("crawl", url, "-o", str(tmp_path / age), "--max-age", age).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"])
def test_ctrl_c_keeps_what_has_ended(sites: Sites, tmp_path: Path, sent: signal.Signals, code: int) -> None:
    """After Ctrl-C or SIGTERM, what has ended is in the folder; the same command goes on with the rest."""
    urls = [sites.add(f"127.0.6.{number}", {"/a.xml": ["/1"]}) for number in range(1, 41)]
    for number in range(1, 41):
        answers = sites.answers[f"127.0.6.{number}"]
        answers["/a.xml"] = Answer(answers["/a.xml"].body, seconds=0.3)
    (tmp_path / "sites.txt").write_text("\n".join(urls))
    command = [sys.executable, "-m", "usp", "crawl", str(tmp_path / "sites.txt"), "-o", str(tmp_path / "c")]
    options = ["--sites-at-once", "4"]
    process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True, env=environment())
    while sites.requests.total() < 30:
        time.sleep(0.02)
    process.send_signal(sent)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    committed = open_crawl(tmp_path / "c").sites().to_arrow().num_rows
    assert f"c has {committed} site" in errors
    assert "of this run; run it again to go on" in errors
    assert "Traceback" not in errors
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=120)
    assert done.returncode == 0, done.stderr
    assert dict(open_crawl(tmp_path / "c").runs[0].outcomes) == {"complete": 40}


@pytest.mark.parametrize("option", ["--known-paths=never", "--retry-failed"])
def test_a_list_without_sites(run_here: RunHere, tmp_path: Path, option: str) -> None:
    """An empty list is wrong use: a nightly job should not end well because its list was lost."""
    (tmp_path / "sites.txt").write_text("# none yet\nnot a site\n")
    done = run_here("crawl", str(tmp_path / "sites.txt"), "-o", str(tmp_path / "c"), option)
    assert (done.returncode, "there is no site in what you gave" in done.stderr) == (2, True)
    assert "skipped: a site is written like" in done.stderr


def test_a_list_without_sites_is_no_run(sites: Sites, run_here: RunHere, tmp_path: Path) -> None:
    """An empty list does not hide what the run before has changed."""
    (tmp_path / "none.txt").write_text("")
    output = str(tmp_path / "c")
    run_here("crawl", sites.add(HOST, {"/a.xml": ["/1"]}), "-o", output)
    assert run_here("crawl", str(tmp_path / "none.txt"), "-o", output).returncode == 2
    assert [dict(run.outcomes) for run in open_crawl(output).runs] == [{"complete": 1}]


def test_sites_without_sitemaps(sites: Sites, run_here: RunHere, tmp_path: Path) -> None:
    """If no site has a sitemap, nothing could be fetched; beside one that is complete, they are as they should be."""
    empty, good = sites.add("127.0.5.21", {}), sites.add("127.0.5.22", {"/a.xml": ["/1"]})
    sites.answers["127.0.5.21"] = {}
    assert run_here("crawl", empty, "-o", str(tmp_path / "c"), "--known-paths", "never").returncode == 3
    assert run_here("crawl", empty, good, "-o", str(tmp_path / "d"), "--known-paths", "never").returncode == 0


def test_the_summary_of_a_run_counts_all_of_its_processes(sites: Sites, run_here: RunHere, tmp_path: Path) -> None:
    """A run that is resumed counts the pages of the sites that were crawled before, and why some of them failed."""
    urls = [sites.add(f"127.0.5.{number}", {"/a.xml": ["/1", "/2"]}) for number in (23, 24)]
    folder = tmp_path / "c"
    for number in (25, 26):
        urls.append(sites.add(f"127.0.5.{number}", {}))
        sites.answers[f"127.0.5.{number}"] = {"/robots.txt": Answer(b"", 403, has_etag=False)}
    assert "4 sites, 4 pages" in run_here("crawl", *urls, "-o", str(folder)).stderr
    manifest = json.loads((folder / "crawl.json").read_text())
    manifest["runs"][0]["ended"] = None  # as if it had been killed at the end
    (folder / "crawl.json").write_text(json.dumps(manifest))
    resumed = run_here("crawl", *urls, "-o", str(folder)).stderr
    assert "run 1: 4 sites, 4 pages" in resumed
    assert "usp:         2  blocked      403 Forbidden: 2 sites" in resumed


@pytest.mark.parametrize("command", ["crawl", "watch"])
def test_the_help_says_what_limits_a_host(run_here: RunHere, command: str) -> None:
    """--concurrency cannot exceed --per-host, which is smaller than what the other commands do."""
    text = " ".join(run_here(command, "--help").stdout.split())
    assert "requests at once to one host (for each site; default and at most: what --per-host says)" in text
