"""How each command ends: the exit code, what it says, and what becomes of a good file of yesterday."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from clocks import settle
from commands import RunHere, environment
from faults import FaultServer, Handler, Request, ok, serve_faults, status
from sockets import self_signed, server_context
from support import serve, urlset
from test_cli_progress import interrupted
from usp.cli.outcomes import EXIT_CODES as MEANINGS
from usp.cli.outcomes import EXIT_CODES_HELP, Ended, Ending
from usp.objects.outcome import Cause, Missing, Outcome, OutcomeKind

pytestmark = pytest.mark.cli

YESTERDAY = b"yesterday's good file\n"
LONG_AGO = 1_000_000_000
COSTS = re.compile(r"\d[\d.,]* (kB|B) in [\d.]+ s|, \d+ k?B$", re.MULTILINE)


def named(*paths: str) -> Handler:
    return ok("".join(f"Sitemap: {{base}}{path}\n" for path in paths), Content_Type="text/plain")


def pages(*names: str) -> Handler:
    return ok(urlset(*(f"{{base}}/{name}" for name in names)), Content_Type="application/xml")


def stuck(request: Request) -> None:
    request.pause()


GOOD: dict[str, Handler] = {"/robots.txt": named("/a.xml", "/b.xml"), "/a.xml": pages("1"), "/b.xml": pages("2")}
#: Name -> a site: its handlers, and the answer to all other paths.
SITES: dict[str, tuple[dict[str, Handler], Handler]] = {
    "complete": (GOOD, status(404)),
    "without pages": ({"/robots.txt": named("/a.xml"), "/a.xml": pages()}, status(404)),
    "404": ({**GOOD, "/b.xml": status(404)}, status(404)),
    "partial": ({**GOOD, "/b.xml": status(403)}, status(404)),
    "blocked": ({}, status(403)),
    "empty": ({}, status(404)),
    "stuck": ({**GOOD, "/b.xml": stuck}, status(404)),
}
#: What a command says about a site. Costs are left out, and {base} is the URL of the site.
SAID = {
    "complete": ["usp: 3 sitemaps, {pages}{cost}"],
    "without pages": ["usp: 2 sitemaps, {pages}{cost}"],
    "404": ["usp: does not exist: {base}/b.xml: 404 Words", "usp: 3 sitemaps (1 missing), {pages}{cost}"],
    "partial": ["usp: missing: {base}/b.xml: 403 Words", "usp: partial: 3 sitemaps (1 missing), {pages}{cost}"],
    "blocked": [
        "usp: blocked by {host}: {base}/robots.txt answered 403 Words; try another --user-agent, or a"
        " --header 'Cookie: ...' from your browser"
    ],
    "empty": ["usp: no sitemap at {base}/: robots.txt names no sitemap, and there is none at the usual paths"],
    "unreachable": ["usp: cannot reach nosuch.invalid: no such host"],
}
EXIT_CODES = {
    "complete": 0,
    "without pages": 0,
    "404": 0,
    "partial": 4,
    "blocked": 3,
    "empty": 3,
    "unreachable": 3,
    "404 --strict": 4,
    "partial --strict": 4,
}
COMMANDS = {"ls": (), "export": (), "sql": ("select url from pages",), "check": ("--fail-on", "never")}
WRITERS = ["export", "sql", "check"]
ENDINGS = {"export": "csv", "sql": "csv", "check": "json"}


@dataclass
class Target:
    """Something to read: its name on the command line."""

    text: str

    def filled(self, text: str) -> str:
        return text.replace("{base}", self.text.rstrip("/")).replace("{host}", self.text.strip("/").rpartition("/")[2])


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run_here(capsys: pytest.CaptureFixture[str]) -> RunHere:
    return RunHere(capsys)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def target(stack: ExitStack, name: str) -> Target:
    if name == "unreachable":
        return Target("nosuch.invalid")
    handlers, default = SITES[name]
    return Target(stack.enter_context(serve_faults(handlers, default=default)).url + "/")


def arguments(command: str, *targets: Target, options: tuple[str, ...] = ()) -> list[str]:
    before, after = ((), COMMANDS[command]) if command == "sql" else (COMMANDS[command], ())
    return [command, *before, *options, *(found.text for found in targets), *after]


def yesterdays_file(command: str) -> Path:
    path = Path(f"out.{ENDINGS[command]}")
    path.write_bytes(YESTERDAY)
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def is_untouched(path: Path) -> bool:
    return path.read_bytes() == YESTERDAY and path.stat().st_mtime == LONG_AGO


def to_file(command: str, path: Path) -> tuple[str, ...]:
    return ("-o", str(path), *(("-f", "json") if command == "check" else ()))


def lines(text: str) -> list[str]:
    """The lines, without bytes and seconds."""
    return [COSTS.sub("", line) for line in text.splitlines()]


def expected(name: str, found: Target, listed: str) -> list[str]:
    return [found.filled(line).replace("{cost}", "").replace("{pages}", listed) for line in SAID[name]]


class TestStandardOutput:
    """What a command prints, and how it ends."""

    @pytest.mark.parametrize("name", SAID)
    @pytest.mark.parametrize("command", ["ls", "export", "sql"])
    def test_outcome(self, run_here: RunHere, stack: ExitStack, command: str, name: str) -> None:
        """The outcome decides the exit code, and standard error has one line for each reason, and the summary."""
        found = target(stack, name)
        run = run_here(*arguments(command, found, options=("-f", "csv") if command != "ls" else ("-f", "pages")))
        assert run.returncode == EXIT_CODES[name]
        count = {"complete": 2, "404": 1, "partial": 1}.get(name, 0)
        listed = "" if command == "sql" else f"{count} page{'' if count == 1 else 's'}, "
        said = lines(run.stderr)
        if command == "sql" and EXIT_CODES[name] != 3:
            assert said.pop() == f"usp: {count} row{'' if count == 1 else 's'}"
        assert said == expected(name, found, listed)
        heading = ["url"] if command != "ls" and EXIT_CODES[name] != 3 else []
        printed = [line.split(",")[0] for line in run.stdout.splitlines()]
        assert printed == heading + [found.filled(f"{{base}}/{number + 1}") for number in range(count)]

    @pytest.mark.parametrize("name", SAID)
    def test_check(self, run_here: RunHere, stack: ExitStack, name: str) -> None:
        """`usp check` ends in the same way; its report says what is missing."""
        found = target(stack, name)
        run = run_here(*arguments("check", found))
        assert run.returncode == EXIT_CODES[name]
        if EXIT_CODES[name] == 3:
            assert lines(run.stderr) == expected(name, found, "")
        else:
            assert run.stderr == ""
        if name in ("blocked", "unreachable"):
            assert run.stdout == ""
        assert ("make one" in run.stdout) == (name == "empty")

    def test_check_of_some_codes(self, run_here: RunHere, stack: ExitStack) -> None:
        """If only some codes are shown, the report may not say what is missing, so a line does."""
        found = target(stack, "partial")
        run = run_here("check", "--select", "X", found.text)
        assert run.returncode == 4
        assert run.stdout.endswith("no problems\n")
        assert "b.xml: 403" in run.stderr

    def test_check_finds_problems(self, run_here: RunHere, stack: ExitStack) -> None:
        """`usp check` exits with 1 if it finds problems, also in a site that is partial."""
        for name in ("404", "partial"):
            assert run_here("check", "-q", target(stack, name).text).returncode == 1

    @pytest.mark.parametrize("name", ["404", "partial"])
    @pytest.mark.parametrize("command", ["ls", "export", "sql"])
    def test_strict(self, run_here: RunHere, stack: ExitStack, command: str, name: str) -> None:
        """With --strict, any sitemap that is missing leaves standard output empty, and the exit code is 4."""
        options = ("--strict", "-f", "csv") if command != "ls" else ("--strict", "-f", "pages")
        run = run_here(*arguments(command, target(stack, name), options=options))
        assert (run.returncode, run.stdout) == (4, "")
        assert "b.xml: 40" in run.stderr

    @pytest.mark.parametrize("command", ["ls", "export", "sql"])
    def test_strict_and_complete(self, run_here: RunHere, stack: ExitStack, command: str) -> None:
        """With --strict, a site that is complete is printed."""
        options = ("--strict", "-f", "csv") if command != "ls" else ("--strict", "-f", "pages")
        run = run_here(*arguments(command, target(stack, "complete"), options=options))
        assert run.returncode == 0
        assert len(re.findall(r"^http", run.stdout, re.MULTILINE)) == 2


class TestFiles:
    """What becomes of yesterday's file."""

    @pytest.mark.parametrize("name", [*SAID, "404 --strict", "partial --strict"])
    @pytest.mark.parametrize("command", WRITERS)
    def test_yesterdays_file(self, run_here: RunHere, stack: ExitStack, command: str, name: str) -> None:
        """A file is replaced if there is a result; else it stays as it was, to the byte and to the second."""
        path = yesterdays_file(command)
        site, *strict = name.split(" --")
        options = (*to_file(command, path), *(f"--{option}" for option in strict))
        run = run_here(*arguments(command, target(stack, site), options=options))
        assert run.returncode == EXIT_CODES[name]
        is_kept = EXIT_CODES[name] == 0 or name == "partial"
        assert is_untouched(path) is not is_kept
        assert (f"usp: {path} was not written" in run.stderr.splitlines()) is not is_kept
        assert os.listdir() == [path.name]


class TestSeveralTargets:
    """Several targets have one exit code."""

    @pytest.mark.parametrize("command", COMMANDS)
    def test_one_fails(self, run_here: RunHere, stack: ExitStack, command: str) -> None:
        """If one of several targets fails, the results of the others are written, and the exit code is 4."""
        good, bad = target(stack, "complete"), target(stack, "blocked")
        options = () if command in ("ls", "check") else ("-f", "csv")
        run = run_here(*arguments(command, bad, good, Target("nosuch.invalid"), options=options))
        assert run.returncode == 4
        if command != "check":
            assert run.stdout.count(good.filled("{base}/1")) == run.stdout.count(good.filled("{base}/2")) == 1
            said = run.stderr.splitlines()
            assert said[:2] == expected("blocked", bad, "") + SAID["unreachable"]

    @pytest.mark.parametrize("command", COMMANDS)
    def test_all_fail(self, run_here: RunHere, stack: ExitStack, command: str) -> None:
        """If all of them fail, the exit code is 3, and there is a line for each."""
        bad = target(stack, "blocked")
        options = () if command in ("ls", "check") else ("-f", "csv")
        run = run_here(*arguments(command, bad, Target("nosuch.invalid"), options=options))
        assert run.returncode == 3
        if command != "check":
            assert run.stderr.splitlines() == expected("blocked", bad, "") + SAID["unreachable"]


def run_interrupted(command: str, *options: str) -> tuple[str, str, FaultServer]:
    """Press Ctrl-C while a command waits for the second of two sitemaps. Return what it printed, and the server."""
    handlers, default = SITES["stuck"]
    with serve_faults(handlers, default=default) as server:
        found = Target(server.url + "/")
        program = [sys.executable, "-m", "usp", *arguments(command, found, options=options)]
        with subprocess.Popen(
            program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
        ) as process:
            while not (server.count("/a.xml") and server.count("/b.xml")):
                assert process.poll() is None, process.communicate()
                time.sleep(0.01)
            settle(0.3)
            printed, said = interrupted(process)
    return printed, said, server


@pytest.mark.slow
class TestInterrupted:
    """Ctrl-C: the exit code is 130, partial results go to standard output, and a file stays as it was."""

    @pytest.mark.parametrize("command", ["export", "sql"])
    @pytest.mark.parametrize("format_name", ["csv", "json", "jsonl"])
    def test_standard_output_can_be_read(self, command: str, format_name: str) -> None:
        """What is on standard output is whole: no half row, and an array in JSON has an end."""
        printed, said, server = run_interrupted(command, "-f", format_name)
        if format_name == "csv":
            rows = list(csv.DictReader(io.StringIO(printed)))
        else:
            rows = json.loads(printed) if format_name == "json" else [json.loads(line) for line in printed.splitlines()]
        assert [row["url"] for row in rows] == [f"{server.url}/1"]
        assert "usp: interrupted; the results are partial" in said.splitlines()

    def test_strict(self) -> None:
        """With --strict, partial results are not printed."""
        printed, said, _ = run_interrupted("export", "-f", "csv", "--strict")
        assert printed == ""
        assert said.splitlines()[-1] == "usp: interrupted; nothing was written (--strict)"

    @pytest.mark.parametrize("command", ["ls", "check"])
    def test_other_commands(self, command: str) -> None:
        """The tree, or the report, of what was read is printed."""
        printed, said, server = run_interrupted(command)
        assert (f"{server.url}/1" if command == "ls" else "sitemaps, 1 page, ") in printed
        assert "usp: interrupted; the results are partial" in said.splitlines()

    @pytest.mark.parametrize("keep", [(), ("--keep-partial",)], ids=["", "keep-partial"])
    @pytest.mark.parametrize("command", WRITERS)
    def test_yesterdays_file(self, command: str, keep: tuple[str, ...]) -> None:
        """A file is replaced only with --keep-partial."""
        path = yesterdays_file(command)
        _, said, server = run_interrupted(command, *to_file(command, path), *keep)
        assert is_untouched(path) is not bool(keep)
        assert (f"{path} was not written" in said) is not bool(keep)
        if keep:
            assert f"{server.url}/a.xml" in path.read_text() or f"{server.url}/1" in path.read_text()
        assert os.listdir() == [path.name]


class TestAdvice:
    """What to try next is said where something helps."""

    @pytest.mark.parametrize(
        ("code", "advice"),
        [
            (401, "give a password: https://user:password@host/, or --header 'Authorization: ...'"),
            (403, "try another --user-agent, or a --header 'Cookie: ...' from your browser"),
            (451, "try another --user-agent, or a --header 'Cookie: ...' from your browser"),
        ],
    )
    def test_blocked(self, run_here: RunHere, code: int, advice: str) -> None:
        """A blocked site is called blocked, with the status; nobody is told to make a sitemap."""
        with serve_faults({}, default=status(code)) as server:
            run = run_here("ls", server.url)
        host = server.url.partition("//")[2]
        assert run.stderr == f"usp: blocked by {host}: {server.url}/robots.txt answered {code} Words; {advice}\n"

    @pytest.mark.parametrize(("code", "advice"), [("429 No", "-c 1"), ("503 No", "-c 1"), ("500 No", "later")])
    def test_overloaded(self, code: str, advice: str, capsys: pytest.CaptureFixture[str]) -> None:
        """A site that is overloaded is to be asked later, or more slowly."""
        missing = Missing(Cause.BLOCKED, code, 1, ("https://h.example/robots.txt",))
        ended = Ended("https://h.example/", Outcome(OutcomeKind.BLOCKED, code, (missing,)))
        Ending([ended]).say(is_quiet=True)
        said = capsys.readouterr().err
        assert said.startswith(f"usp: blocked by h.example: https://h.example/robots.txt answered {code}; ")
        assert advice in said

    def test_certificate(self, run_here: RunHere, tmp_path: Path) -> None:
        """A certificate that is not valid can be ignored with --insecure."""
        with serve({}, server_context(self_signed(tmp_path))) as server:
            run = run_here("ls", server.url)
        assert run.returncode == 3
        assert run.stderr == (
            f"usp: cannot reach {server.address}: the certificate is not valid: self-signed certificate;"
            " to read it all the same, add --insecure\n"
        )

    def test_no_tls(self, run_here: RunHere) -> None:
        """A site that has no https is to be read over http."""
        with serve({}) as server:
            run = run_here("ls", f"https://{server.address}/")
        assert run.returncode == 3
        assert run.stderr.endswith("; if the site has no https, write http://\n")

    def test_timeout(self, run_here: RunHere) -> None:
        """A site that does not answer in time may get more of it."""
        with serve_faults({}, default=stuck) as server:
            run = run_here("ls", "--timeout", "0.2", server.url)
        host = server.url.partition("//")[2]
        assert run.returncode == 3
        assert run.stderr == f"usp: cannot reach {host}: no answer within 0.2 s; to wait longer, use --timeout\n"

    def test_grouped(self, run_here: RunHere) -> None:
        """Many sitemaps that are missing for the same reason share a line."""
        paths = [f"/{number}.xml" for number in range(20)]
        with serve_faults({**GOOD, "/robots.txt": named("/a.xml", *paths)}, default=status(403)) as server:
            run = run_here("ls", "-k", server.url)
        said, summary = run.stderr.splitlines()
        shown = ", ".join(f"{server.url}/{number}.xml" for number in range(3))
        assert said == f"usp: missing: 20 sitemaps: 403 Words: {shown} and 17 more"
        assert summary.startswith("usp: partial: 22 sitemaps (20 missing), 1 page, ")

    def test_other_hosts_are_left_out_by_choice(self, run_here: RunHere) -> None:
        """A sitemap that --cross-host forbids is left out as the user asked: the run is complete."""
        robots = ok("Sitemap: {base}/a.xml\nSitemap: http://other.invalid/b.xml\n")
        with serve_faults({**GOOD, "/robots.txt": robots}) as server:
            run = run_here("export", "-k", "-f", "csv", "--strict", "--cross-host", "same-host", server.url)
        said, summary = run.stderr.splitlines()
        reason = "other.invalid is not the same host as 127.0.0.1 (--cross-host 'same-host')"
        assert (run.returncode, said) == (0, f"usp: left out: http://other.invalid/b.xml: {reason}")
        assert summary.startswith("usp: 3 sitemaps (1 left out), 1 page, ")


@pytest.mark.parametrize("name", ["cli.md", "outcomes.md"])
def test_one_table_of_exit_codes(name: str) -> None:
    """The documentation has the table of exit codes that the help has, word for word."""
    text = (Path(__file__).parent.parent / "docs" / name).read_text("utf-8")
    documented = re.findall(r"^\| (\d+) \| (.+)\. \|$", text.replace("`", ""), re.MULTILINE)
    expected = [(str(code), meaning) for code, meaning in MEANINGS.items()]
    assert [(code, meaning.lower()) for code, meaning in documented] == [
        (code, text.lower()) for code, text in expected
    ]
    assert " ".join(EXIT_CODES_HELP.split()) == " ".join(["exit codes:", *(" ".join(row) for row in expected)])
