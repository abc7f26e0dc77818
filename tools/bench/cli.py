"""The command: measures rows, prints the table, and may write it to the documentation."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from bench import against
from bench.report import Result, Verdict, details, kind, machine, page, summary, table
from bench.rows import NAMES, ROWS
from bench.workshop import OURS, PEERS, ROOT, CannotInstall, NotMeasured, Workshop, peer_package, python_of

PAGE = ROOT / "docs" / "benchmarks.md"


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    parser = argparse.ArgumentParser(prog="bench", description="Compare usp with other readers of sitemaps.")
    parser.add_argument(
        "--only", metavar="NAME", action="extend", nargs="+", choices=NAMES, help="measure these rows; repeatable"
    )
    parser.add_argument("--rounds", metavar="N", type=_count, default=5, help="measure each side N times (default: 5)")
    parser.add_argument("--list", action="store_true", help="name the rows and their targets, and end")
    parser.add_argument("--write", action="store_true", help=f"write the table to {PAGE.relative_to(ROOT)}")
    parser.add_argument(
        "--against", metavar="PATH", type=Path, help="compare with another checkout of usp instead, its parts compiled"
    )
    parser.add_argument(
        "--strict", action="store_true", help="exit with 1 if a target is missed; with --against, if a row is slower"
    )
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number of rounds must be 1 or more, not {text}")
    return int(text)


def listing() -> str:
    """Return the rows, their targets, and what they measure."""
    return "\n".join(f"{row.name:18} {row.target or '(no target)'!s:22} {row.what}" for row in ROWS)


def progress(text: str) -> None:
    """Show on a terminal what is being done."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def measured(names: list[str], workshop: Workshop) -> list[Result]:
    """Return the results of rows, in the order of the table."""
    results = [row.result(workshop, progress) for row in ROWS if row.name in names]
    progress("")
    return results


def versions(environments: list[str], workshop: Workshop) -> dict[str, str]:
    """Return the versions of the libraries that are compared, after installing those that are missing."""
    found = {}
    for name in environments:
        python_of(name)
        package = peer_package(name)
        found[package] = workshop.worker(name).ask("about", package=package)["version"]
    return found


def main(arguments: list[str] | None = None) -> int:
    """Do what the options say, and return the exit code."""
    options = parser().parse_args(arguments)
    if options.list:
        print(listing())
        return 0
    if options.write and (options.only or options.against):
        parser().error("--write is for all rows; leave out --only and --against")
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that files and processes are cleared away
    try:
        with (
            tempfile.TemporaryDirectory(prefix="usp-bench-") as folder,
            Workshop(Path(folder), options.rounds) as workshop,
        ):
            return run_against(options, workshop) if options.against else run(options, workshop)
    except (CannotInstall, NotMeasured) as error:  # failures after the start are in their rows
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)


def run(options: argparse.Namespace, workshop: Workshop) -> int:
    """Measure, print and write the table; return the exit code."""
    names = options.only or NAMES
    needed = {row.peer for row in ROWS if row.name in names} | {OURS}
    libraries = versions([name for name in (OURS, *PEERS) if name in needed], workshop)
    is_compiled = workshop.worker(OURS).ask("compiled")["compiled"]
    results = measured(names, workshop)
    print(f"{machine()}; {', '.join(f'{name} {version}' for name, version in libraries.items())}; {kind(is_compiled)}")
    print("", table(results), "", *details(results), "", summary(results), sep="\n")
    if options.write:
        PAGE.write_text(page(results, libraries, is_compiled), "utf-8")
    return int(options.strict and any(result.verdict is Verdict.MISSED for result in results))


def run_against(options: argparse.Namespace, workshop: Workshop) -> int:
    """Compare two checkouts and print the table; return the exit code."""
    rows = [row for row in ROWS if row.name in (options.only or NAMES)]
    comparisons = against.compare(rows, workshop, options.against.resolve(), progress)
    progress("")
    print(machine(), "", against.report(comparisons, options.against), sep="\n")
    return int(options.strict and any(comparison.is_slower for comparison in comparisons))
