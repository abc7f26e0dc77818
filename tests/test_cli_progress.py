"""The progress line of `usp ls` on a real terminal, and Ctrl-C."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr
from dataclasses import dataclass, field

import pytest

from clocks import settle, within
from commands import environment
from faults import Handler, Request, ok, serve_faults, status
from support import urlset
from usp.cli.output import LogLines, duration, size
from usp.cli.progress import ProgressMeter, progress_line, scan_line
from usp.progress import Progress

pytestmark = pytest.mark.cli

USP = [sys.executable, "-m", "usp", "ls"]
# A process that has a terminal of its own, as those that a shell starts: it gets a signal when Ctrl-C is typed there.
ON_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(2, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
PROGRESS = re.compile(r"\d+/\d+ sitemaps  [\d,]+ pages.*")


class Screen:
    """A minimal terminal: any control sequence that it does not know fails the test."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.rows = [""]
        self.y = self.x = 0
        #: Each state of the rows before something on them was erased.
        self.states: list[list[str]] = []

    def feed(self, text: str) -> None:
        for part in re.findall(r"\x1b\[[\d;]*[A-Za-z]|[^\x1b]", text):
            match part:
                case "\r":
                    self.x = 0
                case "\n":
                    self._go_down()
                case "\x1b[2K":
                    self.states.append(list(self.rows))
                    self.rows[self.y] = ""
                case "\x1b[1A":
                    self.y -= 1
                case _ if part.startswith("\x1b"):
                    assert part.endswith("m"), repr(part)
                case "\t":
                    self.x = min(self.x // 8 * 8 + 8, self.columns - 1)
                case _:
                    assert part.isprintable(), repr(part)
                    self._put(part)

    def _put(self, character: str) -> None:
        if self.x == self.columns:
            self._go_down()
            self.x = 0
        row = self.rows[self.y].ljust(self.x)
        self.rows[self.y] = row[: self.x] + character + row[self.x + 1 :]
        self.x += 1

    def _go_down(self) -> None:
        self.y += 1
        if self.y == len(self.rows):
            self.rows.append("")

    def shown(self) -> list[str]:
        return [row for row in self.rows if row]

    def progress_lines(self) -> list[str]:
        """The progress line, as it was each time before it was redrawn."""
        return [line for rows in self.states for line in rows if PROGRESS.match(line)]


@dataclass
class Terminal:
    """A pseudo-terminal whose output is read all the time."""

    leader: int
    follower: int
    columns: int
    received: bytearray = field(default_factory=bytearray)

    def read(self) -> None:
        while True:
            try:
                piece = os.read(self.leader, 65_536)
            except OSError:  # as Linux says that the last process has closed it
                return
            if not piece:
                return
            self.received += piece

    def text(self) -> str:
        return self.received.decode()

    def screen(self) -> Screen:
        screen = Screen(self.columns)
        screen.feed(self.text())
        return screen

    def wait_for(self, text: str) -> None:
        ends_at = time.monotonic() + 60
        while text.encode() not in self.received:
            assert time.monotonic() < ends_at, self.text()
            time.sleep(0.01)


@contextmanager
def terminal(columns: int = 80) -> Iterator[Terminal]:
    leader, follower = os.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    found = Terminal(leader, follower, columns)
    reader = threading.Thread(target=found.read, daemon=True)
    reader.start()
    try:
        yield found
        os.close(follower)
        reader.join()  # there is nothing more to come
    finally:
        os.close(leader)


def test_the_scan_of_an_archive_is_shown_if_it_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is shown at first, then how much was read, and nothing is left at the end."""
    clock = iter([0.0, 0.1, 1.0, 1.01, 2.0]).__next__
    with terminal() as found, os.fdopen(os.dup(found.follower), "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setenv("TERM", "xterm")
        with scan_line(is_shown=True, clock=clock) as show:
            for done in (10, 20, 30, 40):
                show("a\x1b.warc.gz", done, 100)
        monkeypatch.undo()
    drawn = found.text().split("\r")[1:]
    assert [line.removesuffix("\x1b[K") for line in drawn] == [
        "reading a\\x1b.warc.gz: 20% of 100 B",
        "reading a\\x1b.warc.gz: 40% of 100 B",
        "",
    ]


def site(count: int = 12, seconds: float = 0.3, stuck: tuple[int, ...] = (), pages: int = 2000) -> dict[str, Handler]:
    """A slow site with `count` sitemaps. The third is missing; those in `stuck` never answer."""

    def sitemap(number: int) -> Handler:
        answer = status(404) if number == 2 else ok(urlset(*(f"http://h/{number}/{page}" for page in range(pages))))

        def handler(request: Request) -> None:
            request.pause(30 if number in stuck else seconds)
            answer(request)

        return handler

    robots = "".join(f"Sitemap: {{base}}/{number}.xml\n" for number in range(count))
    return {"/robots.txt": ok(robots), **{f"/{number}.xml": sitemap(number) for number in range(count)}}


def run_on(found: Terminal, *arguments: str, **more: str) -> subprocess.CompletedProcess[bytes]:
    """Run `usp ls` with standard error on a terminal."""
    return subprocess.run(
        [*USP, *arguments],
        stdout=subprocess.PIPE,
        stderr=found.follower,
        env=environment(**more),
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("columns", [80, 40, 12])
def test_progress_line(columns: int) -> None:
    """One line is redrawn in place and fits the terminal. At the end the summary replaces it."""
    with serve_faults(site()) as server, terminal(columns) as found:
        run = run_on(found, "-k", "-f", "pages", "-l", os.devnull, server.url)
    assert run.returncode == 0
    assert run.stdout.count(b"\n") == 22_000
    screen = found.screen()
    summary = "".join(screen.shown())
    said = r"usp: does not exist: http://127\.0\.0\.1:\d+/2\.xml: 404 \w+"
    assert re.fullmatch(rf"{said}usp: 13 sitemaps \(1 missing\), 22,000 pages, [\d.]+ (kB|MB) in \d\.\d s", summary)
    assert all(len([row for row in rows if row]) <= 1 for rows in screen.states)
    drawn = [rows[0] for rows in screen.states if rows[0]]
    assert max(map(len, drawn)) <= columns - 3
    assert len(set(drawn)) > 1
    if columns == 80:
        host = re.escape(server.url.removeprefix("http://"))
        assert re.fullmatch(rf"13/13 sitemaps  22,000 pages  [\d.]+ kB  [\d.]+ [kM]?B/s  \d s  {host}", drawn[-1])
    elif columns == 40:
        assert re.fullmatch(r"13/13 sitemaps  22,000 pages(  \d+ kB)?", drawn[-1])


def test_drawn_seldom_and_while_nothing_comes() -> None:
    """The line is drawn about ten times a second, whether much arrives or nothing."""
    with serve_faults(site(count=200, seconds=0, stuck=(199,), pages=1)) as server, terminal() as found:
        started = time.monotonic()
        run_on(found, "-k", "-q", "-c", "30", "--max-time", "2", server.url)
        assert found.text().startswith("usp: stopped: the tree's time")  # -q: no line
        run_on(found, "-k", "-l", os.devnull, "-c", "30", "--max-time", "2", server.url)
        seconds = time.monotonic() - started
    lines = found.screen().progress_lines()
    assert 8 <= len(lines) <= 15 * seconds
    assert len({line.split("  ")[4] for line in lines}) > 1  # "1 s", and on a quiet machine "0 s": time goes on


def test_log_lines_stand_above() -> None:
    """Log lines are printed above the progress line, untruncated."""
    with serve_faults(site()) as server, terminal(100) as found:
        run_on(found, "-v", "-k", server.url)
    screen = found.screen()
    assert any(rows[-2].endswith("404 Words") and PROGRESS.match(rows[-1]) for rows in screen.states if rows[1:])
    *log, summary = screen.shown()
    assert summary.startswith("usp: 13 sitemaps")
    assert not any(PROGRESS.match(line) for line in log)
    assert f"Request for URL {server.url}/2.xml failed: 404 Words" in "".join(log)


def test_output_on_the_same_terminal() -> None:
    """The line disappears before the tree is printed to the same terminal."""
    with serve_faults(site(count=2)) as server, terminal() as found:
        command = [*USP, "-k", "-u", "-f", "tabtree", server.url]
        subprocess.run(command, stdout=found.follower, stderr=found.follower, env=environment(), timeout=60, check=True)
    screen = found.screen()
    assert screen.progress_lines()
    homepage, robots, *pages, summary = (row.strip() for row in screen.shown())
    assert (homepage, robots) == (f"{server.url}/", "/robots.txt")
    assert len(pages) == 4002
    assert summary.startswith("usp: 3 sitemaps, 4,000 pages, ")


def test_colours() -> None:
    """The line has colours unless NO_COLOR is set."""
    for more, is_coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
        with serve_faults(site(count=1)) as server, terminal() as found:
            run_on(found, "-k", server.url, **more)
        assert found.screen().progress_lines()
        assert ("\x1b[36m" in found.text()) == is_coloured


def test_dumb_terminals_and_pipes() -> None:
    """On a dumb terminal and on a pipe there is only the summary."""
    with serve_faults(site(count=1)) as server:
        with terminal() as found:
            run_on(found, "-k", server.url, TERM="dumb")
        piped = subprocess.run([*USP, "-k", server.url], capture_output=True, text=True, timeout=60, check=True)
    for text in (found.text(), piped.stderr):
        assert re.fullmatch(r"usp: 2 sitemaps, 2,000 pages, \d+ kB in \d\.\d s\r?\n", text)


def test_any_terminal_encoding() -> None:
    """An ASCII terminal gets only ASCII, and no line that is too long."""
    with serve_faults(site(count=1)) as server, terminal(50) as found:
        run_on(found, "-k", server.url, PYTHONIOENCODING="ascii")
    assert found.text().isascii()
    assert max(map(len, found.screen().progress_lines())) <= 47


def test_what_is_shown() -> None:
    """The rate covers the last three seconds; the host is escaped."""
    now = [100.0]
    meter = ProgressMeter(lambda: now[0])
    assert meter.fields() == ["0/0 sitemaps", "0 pages", "0 B", "0 B/s", "0 s", ""]
    now[0] += 2
    url = "https://user:password@h\x1b[2J\u202eost:81?/x"
    meter(Progress("parsed", url, found=2000, parsed=900, failed=100, pages=1_234_567, bytes=4_000_000))
    shown = ["1,000/2,000 sitemaps", "1,234,567 pages", "4.0 MB", "2.0 MB/s", "2 s", "h\\x1b[2J\\u202eost:81"]
    assert meter.fields() == shown
    for _ in range(40):
        now[0] += 0.1
        rate = meter.fields()[3]
    assert rate == "0 B/s"


def test_units() -> None:
    """Sizes and times have the units that read best."""
    sizes = {0: "0 B", 999: "999 B", 999.9: "1 kB", 999_499: "999 kB", 1e6: "1.0 MB", 12.4e9: "12.4 GB"}
    assert {count: size(count) for count in sizes} == sizes
    times = {3.14: "3.1 s", 65: "1 min 05 s", 3725: "1 h 02 min"}
    assert {seconds: duration(seconds) for seconds in times} == times


@pytest.mark.parametrize("error", [None, RuntimeError, KeyboardInterrupt])
def test_nothing_is_left(error: type[BaseException] | None) -> None:
    """However the line ends, its thread is gone and log lines are printed as before."""
    log = LogLines()
    write = log.write
    threads = set(threading.enumerate())
    with terminal() as found, open(found.follower, "w", closefd=False) as stream, redirect_stderr(stream):
        during = set(threading.enumerate())
        with nullcontext() if error is None else pytest.raises(error), progress_line(ProgressMeter(), log):
            assert set(threading.enumerate()) > during
            assert log.write is not write
            found.wait_for("sitemaps")
            if error is not None:
                raise error
        assert set(threading.enumerate()) == during
        assert log.write is write
    assert found.screen().shown() == []
    assert set(threading.enumerate()) == threads


def test_no_terminal_no_rich() -> None:
    """The package rich is imported only if there is a terminal."""
    code = "import sys, usp.cli; usp.cli.main(['ls', '-k', sys.argv[1]]); sys.exit('rich' in sys.modules)"
    with serve_faults(site(count=1)) as server:
        run = subprocess.run([sys.executable, "-c", code, server.url], capture_output=True, timeout=60, check=False)
    assert run.returncode == 0


def started(*command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def interrupted(process: subprocess.Popen[str]) -> tuple[str, str]:
    """The output of a process that gets a SIGINT and must end within a second."""
    with within(1):
        process.send_signal(signal.SIGINT)
        printed = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in printed[1]
    return printed


@pytest.mark.parametrize("concurrency", ["1", "8"])
def test_interrupted_while_fetching(concurrency: str) -> None:
    """Ctrl-C while fetching ends within a second and prints the partial results."""
    command = [*USP, "-k", "-u", "-c", concurrency, "-f", "tabtree"]
    with serve_faults(site(count=4, seconds=0, stuck=(3,))) as server, started(*command, server.url) as usp:
        while not server.count("/3.xml"):
            time.sleep(0.01)
        settle(0.3)
        printed, said = interrupted(usp)
    lines = [line for line in printed.splitlines() if "http://h/" not in line]
    assert lines == [f"{server.url}/", "\t/robots.txt", *(f"\t\t/{number}.xml" for number in range(4))]
    assert printed.count("\t\t\thttp://h/") == 4000
    *_, summary = said.splitlines()
    assert "usp: interrupted; the results are partial" in said.splitlines()
    assert summary.startswith("usp: 5 sitemaps (2 missing), 4,000 pages, ")


def test_interrupted_before_anything_was_had() -> None:
    """Ctrl-C while waiting for robots.txt ends within a second."""
    with serve_faults({"/robots.txt": Request.pause}) as server, started(*USP, "-f", "pages", server.url) as usp:
        while not server.asked:
            time.sleep(0.01)
        settle(0.2)
        printed, said = interrupted(usp)
    assert printed == ""
    message, summary = said.splitlines()
    assert message == "usp: interrupted; the results are partial"
    assert summary.startswith("usp: 0 sitemaps, 0 pages, 0 B in ")


@pytest.mark.parametrize("stuck", [(), (11,)])
def test_interrupted_while_printing(stuck: tuple[int, ...]) -> None:
    """Ctrl-C while printing ends at once, even if nobody reads the output, and also after a first Ctrl-C."""
    with serve_faults(site(seconds=0, stuck=stuck)) as server, started(*USP, "-k", server.url) as usp:
        assert usp.stdout is not None
        assert usp.stderr is not None
        if stuck:
            while not server.count("/11.xml"):
                time.sleep(0.01)
            settle(0.3)
            usp.send_signal(signal.SIGINT)
        assert usp.stdout.readline() == f"{server.url}/\n"
        settle(0.3)  # nobody reads on, so it waits in the middle of printing
        with within(1):
            usp.send_signal(signal.SIGINT)
            assert usp.wait(timeout=60) == 130
        said = usp.stderr.read()
    assert "Traceback" not in said
    assert "KeyboardInterrupt" not in said
    assert "pages, " not in said


def test_ctrl_c_on_a_terminal() -> None:
    """After Ctrl-C on a terminal, neither the progress line nor "^C" stays on the screen."""
    with serve_faults(site(count=9, seconds=0, stuck=(8,))) as server, terminal(60) as found:
        command = [sys.executable, "-c", ON_TERMINAL, *USP, "-k", "-u", "-f", "pages", "-l", os.devnull, server.url]
        with subprocess.Popen(
            command, stdin=found.follower, stdout=subprocess.DEVNULL, stderr=found.follower, env=environment(),
            start_new_session=True,
        ) as usp:  # fmt: skip
            found.wait_for("9/10 sitemaps")
            os.write(found.leader, b"\x03")
            assert usp.wait(timeout=60) == 130
    assert "^C" in found.text()
    message, missing, *summary = found.screen().shown()
    assert message == "usp: interrupted; the results are partial"
    assert missing.startswith("usp: does not exist: ")
    assert "".join(summary).startswith("usp: 10 sitemaps (2 missing), 14,000 pages, ")


def test_no_standard_error() -> None:
    """The tree is printed even if standard error is closed or full."""
    with serve_faults(site(count=1, seconds=0)) as server:
        for redirection in ("2>&-", "2>/dev/full"):
            command = f'"{sys.executable}" -m usp ls -k -u {server.url} {redirection}'
            run = subprocess.run(command, shell=True, stdout=subprocess.PIPE, text=True, timeout=60, check=False)
            assert run.returncode == 0
            assert run.stdout.count("\n") == 2003
            assert "usp: " not in run.stdout
