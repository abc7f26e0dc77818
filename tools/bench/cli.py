"""The command: measures the rows that are asked for, prints the table, and may write it to the documentation."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from bench.environments import OURS, PEERS, ROOT, CannotInstall, peer_package, python_of
from bench.exports import EXPORTS
from bench.measure import NotMeasured, Workshop
from bench.networks import NETWORKS
from bench.report import Result, Verdict, details, kind, machine, page, summary, table
from bench.rows import ROWS, Row, compared
from bench.wholes import WHOLES, Whole

PAGE = ROOT / "docs" / "benchmarks.md"
#: In the order of the table.
ALL: tuple[Row | Whole, ...] = (*ROWS, *WHOLES, *NETWORKS, *EXPORTS)
NAMES = [row.name for row in ALL]


def parser() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(prog="bench", description="Compare usp with other readers of sitemaps.")
    parser.add_argument("--only", metavar="NAME", action="append", choices=NAMES, help="measure this row; repeatable")
    parser.add_argument("--rounds", metavar="N", type=_count, default=5, help="measure each side N times (default: 5)")
    parser.add_argument("--list", action="store_true", help="name the rows and their targets, and end")
    parser.add_argument("--write", action="store_true", help=f"write the table to {PAGE.relative_to(ROOT)}")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a target is missed")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number of rounds must be 1 or more, not {text}")
    return int(text)


def listing() -> str:
    """The rows, their targets, and what is measured."""
    return "\n".join(f"{row.name:18} {row.target or '(no target)'!s:22} {row.what}" for row in ALL)


def progress(text: str) -> None:
    """Say on a terminal what is being done."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def measured(names: list[str], workshop: Workshop) -> list[Result]:
    """The results of rows, in the order of the table."""
    results = list(compared([row for row in ROWS if row.name in names], workshop, progress))
    results += [whole.result(workshop, progress) for whole in (*WHOLES, *NETWORKS, *EXPORTS) if whole.name in names]
    progress("")
    return sorted(results, key=lambda result: NAMES.index(result.name))


def versions(environments: list[str], workshop: Workshop) -> dict[str, str]:
    """The versions of what is compared, installed where it is not."""
    found = {}
    for name in environments:
        python_of(name)
        package = peer_package(name)
        found[package] = workshop.worker(name).ask("about", package=package)["version"]
    return found


def main(arguments: list[str] | None = None) -> int:
    """Do what the options say; gives the exit code."""
    options = parser().parse_args(arguments)
    if options.list:
        print(listing())
        return 0
    if options.write and options.only:
        parser().error("--write is for all rows; leave out --only")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that files and processes are cleared away
    try:
        return run(options)
    except (CannotInstall, NotMeasured) as error:  # what fails later than the start is in its row
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def run(options: argparse.Namespace) -> int:
    """Measure, print and write; gives the exit code."""
    names = options.only or NAMES
    needed = {row.peer for row in ALL if row.name in names} | {OURS}
    with tempfile.TemporaryDirectory(prefix="usp-bench-") as folder, Workshop(Path(folder), options.rounds) as workshop:
        libraries = versions([name for name in (OURS, *PEERS) if name in needed], workshop)
        is_compiled = bool(workshop.worker(OURS).ask("compiled")["compiled"])
        results = measured(names, workshop)
    print(f"{machine()}; {', '.join(f'{name} {version}' for name, version in libraries.items())}; {kind(is_compiled)}")
    print("", table(results), "", *details(results), "", summary(results), sep="\n")
    if options.write:
        PAGE.write_text(page(results, libraries, is_compiled), "utf-8")
    return int(options.strict and any(result.verdict is Verdict.MISSED for result in results))
