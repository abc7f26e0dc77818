"""`usp ls -f pages` prints pages while it fetches; Ctrl-C at any time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clocks import settle, within
from commands import environment
from faults import FaultServer, Handler, Request, ok, serve_faults
from support import urlset
from test_cli import usp
from test_cli_progress import USP, interrupted, started, terminal

pytestmark = pytest.mark.cli

PAGES = [*USP, "-k", "-f", "pages"]


def pages(*names: str) -> Handler:
    return ok(urlset(*(f"http://h/{name}" for name in names)))


def slow(request: Request) -> None:
    request.pause()


def site(**sitemaps: Handler) -> dict[str, Handler]:
    robots = "".join(f"Sitemap: {{base}}/{name}.xml\n" for name in sitemaps)
    return {"/robots.txt": ok(robots), **{f"/{name}.xml": handler for name, handler in sitemaps.items()}}


def wait_for_answers(server: FaultServer, process: subprocess.Popen[str]) -> None:
    """Wait until everything but the stuck sitemap has arrived."""
    while not server.count("/c.xml"):
        assert process.poll() is None
        time.sleep(0.01)
    settle(0.3)


def test_pages_are_printed_while_others_are_waited_for() -> None:
    """Each page is written as soon as all pages before it are; pages after a missing sitemap wait."""
    with serve_faults(site(a=pages("1", "2"), b=slow, c=pages("3"))) as server, started(*PAGES, server.url) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["http://h/1\n", "http://h/2\n"]
        wait_for_answers(server, process)
        printed, said = interrupted(process)
    assert printed == "http://h/3\n"  # the page after the missing sitemap, and nothing twice
    message, summary = said.splitlines()[-2:]
    assert message == "usp: interrupted; the results are partial"
    assert summary.startswith("usp: 4 sitemaps (1 missing), 3 pages, ")


def test_interrupted_below_a_limit_on_pages() -> None:
    """--max-pages also limits the pages printed after Ctrl-C."""
    command = (*PAGES, "--max-pages", "3")
    sitemaps = site(a=pages("1", "2"), b=slow, c=pages("3", "4"))
    with serve_faults(sitemaps) as server, started(*command, server.url) as process:
        wait_for_answers(server, process)
        printed, _ = interrupted(process)
    assert printed.split() == ["http://h/1", "http://h/2", "http://h/3"]


def test_head() -> None:
    """`| head` does not wait for the rest of the site."""
    with serve_faults(site(a=pages(*map(str, range(9999))), b=slow)) as server, within(10):
        run = subprocess.run(
            f'"{sys.executable}" -m usp ls -k -f pages {server.url} | head -n 3',
            shell=True, capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
    assert run.stdout == "http://h/0\nhttp://h/1\nhttp://h/2\n"
    assert run.stderr == ""


@pytest.mark.parametrize("most", ["1", "2"])
def test_a_limit_inside_the_last_sitemap_is_said(most: str) -> None:
    """A message says that pages were left out, even within the last sitemap; if none were, there is no message."""
    with serve_faults(site(a=pages("1", "2"))) as server:
        run = usp("ls", "-q", "-k", "-f", "pages", "--max-pages", most, server.url)
    assert run.stdout.count("\n") == int(most)
    said = "usp: stopped: the tree has 1 page (--max-pages)\n"
    assert run.stderr == (said if most == "1" else "")


def test_no_progress_line_among_pages() -> None:
    """If pages are printed to the same terminal, there is no progress line."""

    def late(request: Request) -> None:
        request.pause(0.5)
        pages("2")(request)

    with serve_faults(site(a=pages("1"), b=late)) as server, terminal() as found:
        command = [*PAGES, server.url]
        subprocess.run(command, stdout=found.follower, stderr=found.follower, env=environment(), timeout=60, check=True)
    assert "\x1b" not in found.text()
    first, second, summary = found.screen().shown()
    assert (first, second) == ("http://h/1", "http://h/2")
    assert summary.startswith("usp: 3 sitemaps, 2 pages, ")


# Python imports a module of this name when it starts. Ctrl-C is pressed when the given module is first imported.
SITECUSTOMIZE = """
import os, signal, sys

class PressCtrlC:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["USP_TEST_MODULE"]:
            sys.meta_path.remove(self)
            exec("os.kill(os.getpid(), signal.SIGINT)")  # as dataclasses and named tuples are made

sys.meta_path.insert(0, PressCtrlC())
"""


@pytest.mark.parametrize("module", ["usp.cli.cli", "argparse", "usp.cli.ls", "usp.tree", "requests"])
@pytest.mark.parametrize("entry", [["-m", "usp"], ["-c", "import sys; from usp.cli import main; sys.exit(main())"]])
def test_interrupted_while_importing(entry: list[str], module: str, tmp_path: Path) -> None:
    """Ctrl-C while usp is still being imported ends quietly with exit code 130, as it does later."""
    (tmp_path / "sitecustomize.py").write_text(SITECUSTOMIZE)
    path = filter(None, (str(tmp_path), os.environ.get("PYTHONPATH")))
    run = subprocess.run(
        [sys.executable, *entry, "ls", "-q", "http://127.0.0.1:9/"],
        capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path), "USP_TEST_MODULE": module},
    )  # fmt: skip
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "")
