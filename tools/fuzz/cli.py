"""The command: searches for a while, and prints what it did and what it found."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[2] / "tests"))

from fuzz import workshop  # after the line that makes the helpers of the tests importable

LOG = workshop.FOLDER / "log"
_PROGRESS_SECONDS = 10
_MAX_SHOWN_LINES = 12
_STATUS = re.compile(r"^#(\d+)\s.*?cov: (\d+) ft: (\d+) corp: (\d+)", re.MULTILINE)
_EXECUTED = re.compile(r"^stat::number_of_executed_units: (\d+)", re.MULTILINE)
_SAVED = re.compile(r"Test unit written to (\S+)")
_WRONG = re.compile(r"^ *=== Uncaught Python exception|^==\d+== ?ERROR: ", re.MULTILINE)


def main(argv: list[str] | None = None) -> int:
    """Run the command. Return 1 if it found something, 2 if it could not search."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="how long to search (default: 60)")
    parser.add_argument("inputs", nargs="*", type=Path, help="saved inputs to read again, instead of a search")
    options = parser.parse_args(argv)
    try:
        workshop.prepare(options.seconds)
    except workshop.CannotPrepare as error:
        print(f"fuzz: {error}", file=sys.stderr)
        return 2
    start = time.monotonic()
    code = _search(options.seconds, [path.resolve() for path in options.inputs])
    text = LOG.read_text("utf-8", "replace")
    print(summary(text, time.monotonic() - start), flush=True)
    if code == 0:
        return 0
    print(findings(text, code), file=sys.stderr)
    return 1


def _search(seconds: int, inputs: list[Path]) -> int:
    """Run the worker, and print its progress now and then; return its exit code."""
    command = workshop.arguments(seconds, inputs)
    with LOG.open("wb") as log:
        worker = subprocess.Popen(  # noqa: S603 -- the command is built in `workshop`
            command, env=workshop.environment(), cwd=workshop.FOLDER, stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )
        try:
            while True:
                try:
                    return worker.wait(_PROGRESS_SECONDS)
                except subprocess.TimeoutExpired:
                    _show_progress()
        finally:
            worker.kill()


def _show_progress() -> None:
    if states := _STATUS.findall(LOG.read_text("utf-8", "replace")):
        executions, edges, _, kept = states[-1]
        print(f"fuzz: {int(executions):,} executions, {int(edges):,} edges, {kept} inputs kept", flush=True)


def summary(log: str, seconds: float) -> str:
    """Return a line with the number of executions and the coverage."""
    states, executed = _STATUS.findall(log), _EXECUTED.findall(log)
    executions = int(executed[-1]) if executed else int(states[-1][0]) if states else 0
    line = f"fuzz: {executions:,} executions in {seconds:.0f} seconds"
    if states:
        _, edges, features, kept = states[-1]
        line += f"; coverage: {int(edges):,} edges, {int(features):,} features; {kept} inputs kept"
    return line


def findings(log: str, code: int) -> str:
    """Describe a failure for people: how it failed, and where the input is."""
    wrong = _WRONG.search(log)
    shown = log[wrong.start() :].splitlines()[:_MAX_SHOWN_LINES] if wrong else log.splitlines()[-_MAX_SHOWN_LINES:]
    lines = [line if len(line) <= 400 else f"{line[:400]}..." for line in shown if line.strip()]
    if saved := _SAVED.findall(log):
        lines.append(f"fuzz: found something: {saved[-1]}")
        lines.append(f"fuzz: the log is {LOG}; to read the input again: make fuzz INPUT={saved[-1]}")
    else:
        lines.append(f"fuzz: the search ended with code {code}; see {LOG}")
    return "\n".join(lines)
