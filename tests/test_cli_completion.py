"""Shell completion, in the shells themselves; and `usp help`."""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from commands import RunHere, environment
from usp.cli.cli import parser
from usp.cli.completion import SHELLS, _commands, script

pytestmark = pytest.mark.cli

COMMANDS = {command.name: command for command in _commands(parser())}
#: A line and what follows when Tab is pressed at its end. Files are those of `folder`.
CASES = {
    "usp ": ["ls", "export", "sql", "check", "view", "crawl", "watch", "diff", "demo", "completion", "help"],
    "usp comp": ["completion"],
    "usp --ver": ["--version"],
    "usp ls --respect-r": ["--respect-robots"],
    "usp check -f s": ["sarif"],
    "usp check --format s": ["sarif"],
    "usp check --fail-on w": ["warning"],
    "usp export -o pag": ["pages.csv"],
    "usp check --log-file pag": ["pages.csv"],
    "usp check sitem": ["sitemap.xml"],
    "usp check -q sitem": ["sitemap.xml"],
    "usp check -q --max 3 sitem": ["sitemap.xml"],
    "usp check --explain X102 L30": ["L301", "L302", "L303", "L304", "L305", "L307", "L306"],
    "usp check --explain X102 --sel": ["--select"],
    "usp check --select X11": [f"X11{number}" for number in range(10)],
    "usp help sq": ["sql"],
    "usp completion f": ["fish"],
    "usp ls --max-time ": [],
    "usp nosuch ": [],
}
WITH_EQUALS = {"usp check --format=s": ["sarif"], "usp export --output=pag": ["pages.csv"]}


def shell(name: str) -> str:
    """Return the path of a shell, or skip the test."""
    return shutil.which(name) or pytest.skip(f"{name} is not installed")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a script for each shell and two files."""
    for name in SHELLS:
        (tmp_path / f"script.{name}").write_text(script(parser(), name), encoding="utf-8")
    for name in ("pages.csv", "sitemap.xml"):
        (tmp_path / name).write_text("")
    return tmp_path


def output_of(folder: Path, *command: str) -> list[str]:
    """Run a command and return the lines that it prints. It must not print anything on standard error."""
    run = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=60, check=True, env=environment(HOME=str(folder))
    )
    assert run.stderr == ""
    return run.stdout.splitlines()


def test_bash(folder: Path) -> None:
    """Bash completes commands, options, values and file names."""
    lines = ["source script.bash"]
    for line in CASES | WITH_EQUALS:
        words = re.findall(r"=|[^\s=]+", line) + [""] * line.endswith(" ")  # as COMP_WORDBREAKS has them
        lines += (
            f"COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}",
            '_usp; printf "%s " "${COMPREPLY[@]}"; echo',
        )
    found = output_of(folder, shell("bash"), "--norc", "-c", "\n".join(lines))
    assert dict(zip(CASES | WITH_EQUALS, map(str.split, found), strict=True)) == CASES | WITH_EQUALS


def test_fish(folder: Path) -> None:
    """Fish completes the same, each with its description."""
    lines = ["source script.fish"]
    for line in CASES | WITH_EQUALS:
        lines += (f"echo '== {line}'", f"complete -C '{line}'")
    printed = "\n".join(output_of(folder, shell("fish"), "--no-config", "-c", "\n".join(lines)))
    found = {}
    for part in printed.split("== ")[1:]:
        line, *completions = part.split("\n")
        found[line] = sorted(re.sub(r"^--\w+=", "", text.split("\t")[0]) for text in completions if text)
    assert found == {line: sorted(expected) for line, expected in (CASES | WITH_EQUALS).items()}
    assert "check\tfind problems in a site's sitemaps" in printed


@contextmanager
def terminal(folder: Path, *command: str) -> Iterator[int]:
    """Run a shell on a terminal, and give the terminal's other end."""
    leader, follower = os.openpty()
    wanted = environment(HOME=str(folder), PS1="> ", TERM="xterm", HISTFILE="", INPUTRC=os.devnull)
    process = subprocess.Popen(
        command, cwd=folder, stdin=follower, stdout=follower, stderr=follower, env=wanted, start_new_session=True
    )
    os.close(follower)
    try:
        yield leader
    finally:
        process.kill()
        process.wait()
        os.close(leader)


def read_until(terminal: int, pattern: str) -> str:
    """Read what a terminal shows until it has the pattern, without colours and movements of the cursor."""
    shown, end = "", time.monotonic() + 30
    while not (found := re.search(pattern, shown)):
        assert time.monotonic() < end, f"no {pattern!r} in {shown!r}"
        if select.select([terminal], [], [], 0.5)[0]:
            with suppress(OSError):
                shown += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|[\x08\r]", "", os.read(terminal, 65_536).decode())
    return found[0]


SHELLS_ON_A_TERMINAL = {
    "bash": (["--norc", "--noprofile", "-i"], "source ./script.bash"),
    "zsh": (["-f", "-i"], "autoload -Uz compinit && compinit -u -D && source ./script.zsh"),
}
#: A line with one completion only, and the line after Tab.
COMPLETED = {line: line.rsplit(" ", 1)[0] + " " + expected[0] for line, expected in CASES.items() if len(expected) == 1}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHELLS_ON_A_TERMINAL)
def test_the_tab_key(name: str, folder: Path) -> None:
    """The Tab key completes a line on a terminal."""
    arguments, setup = SHELLS_ON_A_TERMINAL[name]
    with terminal(folder, shell(name), *arguments) as keyboard:
        os.write(keyboard, f"{setup}; echo rea''dy\n".encode())
        read_until(keyboard, "\nready")
        for line, expected in COMPLETED.items():
            # Ctrl-A goes to the start of the line, Ctrl-E to its end: the shell prints the completed line.
            os.write(keyboard, f"{line}\t\x01echo @ \x05 @\n".encode())
            assert read_until(keyboard, r"\n@ [^@]*@").split() == ["@", *expected.split(), "@"]


@pytest.mark.slow
def test_zsh_lists_descriptions(folder: Path) -> None:
    """Zsh lists the commands with their descriptions, and the values of an option."""
    arguments, setup = SHELLS_ON_A_TERMINAL["zsh"]
    with terminal(folder, shell("zsh"), *arguments) as keyboard:
        os.write(keyboard, f"{setup}; echo rea''dy\n".encode())
        read_until(keyboard, "\nready")
        os.write(keyboard, b"usp \t\t")
        read_until(keyboard, r"check +-- find problems in a site's sitemaps")
        os.write(keyboard, b"\x15usp check --format=\t\t")
        read_until(keyboard, r"github +html +json +sarif +text")


@pytest.mark.parametrize("name", SHELLS)
def test_every_option_is_completed(name: str) -> None:
    """The scripts have every option of every command that its help shows."""
    written = script(parser(), name)
    for command in COMMANDS.values():
        for option in command.options:
            for flag in option.flags:
                assert re.search(rf"(?<![\w-]){flag.lstrip('-') if name == 'fish' else flag}(?![\w-])", written), flag


def test_options_of_the_parser_are_found() -> None:
    """Placeholders say what is a file, choices what is a value, and actions what repeats."""
    options = {flag: option for option in COMMANDS["check"].options for flag in option.flags}
    assert options["-o"].is_file
    assert not options["--url"].is_file
    assert options["--url"].takes_value
    assert not options["--quiet"].takes_value
    assert options["--fail-on"].values == ("error", "warning", "info", "never")
    assert options["--explain"].takes_several
    assert [name for name in ("-v", "-H", "--extra-path", "--select", "-q") if not options[name].is_repeatable] == [
        "-q"
    ]
    assert options["--cross-host"].help == "hosts to fetch sitemaps from"


def test_the_command_prints_a_script(run_here: RunHere) -> None:
    """`usp completion` prints the script and explains where to put it; an unknown shell is wrong use."""
    for name in SHELLS:
        assert run_here("completion", name).stdout == script(parser(), name)
    assert "source <(usp completion bash)" in run_here("completion", "--help").stdout
    refused = run_here("completion", "powershell")
    assert refused.returncode == 2
    assert "choose from" in refused.stderr


def test_help(run_here: RunHere) -> None:
    """`usp help` prints what `--help` prints."""
    assert run_here("help").stdout == run_here("--help").stdout
    for name in COMMANDS:
        if name:
            run = run_here("help", name)
            assert (run.returncode, run.stdout) == (0, run_here(name, "--help").stdout)
    assert run_here("help", "nosuch").returncode == 2


@pytest.mark.parametrize("name", ["completion", "help"])
def test_help_fits_into_80_columns(name: str, run_here: RunHere, monkeypatch: pytest.MonkeyPatch) -> None:
    """The help of these commands fits into 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    assert [line for line in run_here(name, "--help").stdout.splitlines() if len(line) > 80] == []
