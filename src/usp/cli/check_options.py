"""The options of `usp check`, and what their values may be."""

from __future__ import annotations

import argparse
import sys
from difflib import get_close_matches

from usp.check.formats import FORMATS, statistics
from usp.cli.site import add_message_options, add_partial_options, count_of
from usp.objects.codes import GROUPS, Severity

__all__ = ["FAIL_ON", "LEVELS", "NEVER", "PER_CODE", "add_options", "refuse_together"]

NEVER = "never"
#: What `--fail-on` is without an option and without settings.
FAIL_ON = "error"
#: Problems of a code that a terminal shows.
PER_CODE = 3
#: The values of `--fail-on`, beside `never`.
LEVELS = {str(severity): severity for severity in reversed(Severity)}
_MAX_DIGITS = 18  # a longer number is as good as no limit


def add_options(check: argparse.ArgumentParser) -> None:
    """Add the options that only this command has."""
    _add_output(check.add_argument_group("output"))
    _add_selection(check.add_argument_group("which problems"))
    _add_settings(check.add_argument_group("settings"))
    _add_probing(check.add_argument_group("pages"))


def refuse_together(arguments: argparse.Namespace) -> None:
    """Refuse options that do not go together."""
    if arguments.statistics and arguments.format not in statistics.FORMATS:
        arguments.refuse(
            f"--statistics goes with -f {' or -f '.join(statistics.FORMATS)}, not with -f {arguments.format}"
        )
    if arguments.write_baseline and arguments.baseline is None:
        arguments.refuse("--write-baseline needs a file: --baseline FILE --write-baseline")
    for name in ("probe_seed", "probe_cache", "probe_out"):
        if getattr(arguments, name) is not None and arguments.probe is None:
            arguments.refuse(f"--{name.replace('_', '-')} needs --probe N")
    if arguments.probe is not None and arguments.watch:
        arguments.refuse("--probe and --watch do not go together: files have no pages to probe")
    if arguments.write_baseline and arguments.watch:
        arguments.refuse("--write-baseline and --watch do not go together; write the baseline first")


def _add_output(group: argparse._ArgumentGroup) -> None:
    """Add the options for output."""
    formats = "\n".join(f"  {name}: {what}" for name, what in FORMATS.items())
    group.add_argument(
        "-f",
        "--format",
        choices=FORMATS,
        default="text",
        metavar="FORMAT",
        help=f"output format (default: %(default)s)\n{formats}",
    )
    group.add_argument("-o", "--output", metavar="FILE", help="write to this file when the check is complete")
    group.add_argument(
        "--statistics",
        action="store_true",
        help="show only how many problems of each code there are,\nworst first"
        f" (with -f {' or '.join(statistics.FORMATS)})",
    )
    group.add_argument(
        "--all",
        action="store_true",
        help=f"on a terminal, show more than the first {PER_CODE} problems of a\ncode, as in pipes and files",
    )
    group.add_argument(
        "--watch", action="store_true", help="check files and folders again whenever a file changes,\nuntil Ctrl-C"
    )
    add_partial_options(group)
    add_message_options(group)


def _add_selection(group: argparse._ArgumentGroup) -> None:
    """Add the options that select problems, and those that make the command fail."""
    group.add_argument(
        "--select",
        action="extend",
        type=_codes,
        metavar="CODES",
        help="show only these codes, or codes that start like this:\nX102,P4; repeatable",
    )
    group.add_argument("--ignore", action="extend", type=_codes, metavar="CODES", help="hide these codes; same form")
    group.add_argument(
        "--baseline",
        metavar="FILE",
        help="show only problems that are not in this file; write the\nfile with --write-baseline",
    )
    group.add_argument(
        "--write-baseline",
        action="store_true",
        help="write all problems found now to the FILE of --baseline,\nand exit with 0",
    )
    group.add_argument(
        "--max",
        type=_number,
        metavar="N",
        help="show at most N problems, the most severe; the summary\ncounts all. A sitemap keeps 20 of each code",
    )
    group.add_argument(
        "--fail-on",
        choices=(*LEVELS, NEVER),
        metavar="LEVEL",
        help=f"exit with 1 if a problem is at least this severe:\n{', '.join(LEVELS)} or {NEVER} (default: {FAIL_ON})",
    )


def _add_settings(group: argparse._ArgumentGroup) -> None:
    """Add the options that say where settings are."""
    which = group.add_mutually_exclusive_group()
    which.add_argument(
        "--config",
        metavar="FILE",
        help="read settings from this file (default: the nearest\npyproject.toml with [tool.usp.check], or usp.toml"
        "\nwith [check], in this folder or above). Options on the\ncommand line win over settings",
    )
    which.add_argument("--no-config", action="store_true", help="read no settings from files")


def _add_probing(group: argparse._ArgumentGroup) -> None:
    """Add the options for probing pages."""
    group.add_argument(
        "--probe",
        type=_pages,
        metavar="N",
        help="also fetch and check N of the listed pages, some from\neach sitemap; or all of them, with --probe all"
        "\n(needs the extra probe)",
    )
    group.add_argument(
        "--probe-seed",
        type=_seed,
        metavar="NUMBER",
        help="choose other pages; the same seed chooses the same\n(default: 0)",
    )
    group.add_argument(
        "--probe-cache",
        metavar="FILE",
        help="keep results in this file, and reuse those of the last\n24 hours, so that an interrupted probe can go on",
    )
    group.add_argument(
        "--probe-out",
        metavar="FILE",
        help="write a table of the probed pages: pages.parquet, .csv,\n...; see usp export",
    )


def _pages(text: str) -> int | str:
    return text if text == "all" else count_of("pages")(text)


def _seed(text: str) -> int:
    try:
        return int(text[:_MAX_DIGITS])
    except ValueError:
        raise argparse.ArgumentTypeError(f"give an integer, not {text!r}") from None


def _codes(text: str) -> list[str]:
    """Return codes and beginnings of codes."""
    from usp.objects.codes import CODES  # imports all rules, which other commands do not need

    found = [part.strip().upper() for part in text.split(",") if part.strip()]
    if not found:
        raise argparse.ArgumentTypeError(f"give codes like X102, or the start of codes, not {text!r}")
    for part in found:
        if not any(code.startswith(part) for code in CODES):
            raise argparse.ArgumentTypeError(f"no code starts with {part!r}; {_near(part)}")
    return found


def _near(part: str) -> str:
    """Return a hint at what may have been meant."""
    from usp.objects.codes import CODES

    near = get_close_matches(part, CODES, n=3, cutoff=0.7)
    if near:
        return f"did you mean {' or '.join(near)}?"
    if part[0] in GROUPS:
        return f"there are {', '.join(code for code in CODES if code[0] == part[0])}"
    return f"codes start with {', '.join(GROUPS)}"


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"give a number of problems, 0 or more, not {text!r}")
    return int(text) if len(text) <= _MAX_DIGITS else sys.maxsize
