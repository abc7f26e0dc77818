"""`usp crawl`: what it says, how it ends, and how it goes on after Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands import RunHere, environment
from many_sites import Answer, Sites, serve_sites
from usp.crawl import open_crawl

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
    assert (missing.returncode, "No such file" in missing.stderr) == (2, True)
    assert run_here("crawl", "example.org", "-o", str(tmp_path / "d"), "--max-age", "soon").returncode == 2


@pytest.mark.slow
def test_ctrl_c_keeps_what_has_ended(sites: Sites, tmp_path: Path) -> None:
    """After Ctrl-C, what has ended is in the folder; the same command goes on with the rest."""
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
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "run it again to go on" in errors
    assert "Traceback" not in errors
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=120)
    assert done.returncode == 0, done.stderr
    assert dict(open_crawl(tmp_path / "c").runs[0].outcomes) == {"complete": 40}
