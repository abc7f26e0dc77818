"""The options that only `usp check` has: which problems to show, how, and when to fail."""

from __future__ import annotations

import argparse
import sys
from difflib import get_close_matches
from typing import TYPE_CHECKING

from usp.check.formats import FORMATS
from usp.cli.site import add_message_options
from usp.objects.codes import GROUPS, Severity

if TYPE_CHECKING:
    Group = argparse._ArgumentGroup

__all__ = ["add_output", "add_selection", "level_of"]

_NEVER = "never"
_LEVELS = {str(severity): severity for severity in reversed(Severity)}
_MAX_DIGITS = 18  # a longer number is as good as no limit


def add_output(group: Group) -> None:
    """Add the options for output."""
    formats = "\n".join(f"  {name}: {what}" for name, what in FORMATS.items())
    group.add_argument(
        "-f",
        "--format",
        choices=FORMATS,
        default="text",
        metavar="FORMAT",
        help=f"set output format (default: %(default)s)\n{formats}",
    )
    group.add_argument("-o", "--output", metavar="FILE", help="write to this file when the check is complete")
    add_message_options(group)


def add_selection(group: Group) -> None:
    """Add the options that select problems, and those that make the command fail."""
    group.add_argument(
        "--select",
        action="extend",
        type=_codes,
        default=[],
        metavar="CODES",
        help="show only these codes, or codes that start like this:\nX102,P4; repeatable",
    )
    group.add_argument(
        "--ignore", action="extend", type=_codes, default=[], metavar="CODES", help="hide these codes; same form"
    )
    group.add_argument(
        "--max",
        type=_number,
        metavar="N",
        help="show at most N problems, the most severe; the summary\ncounts all. A sitemap keeps 20 of each code",
    )
    group.add_argument(
        "--fail-on",
        choices=(*_LEVELS, _NEVER),
        default="error",
        metavar="LEVEL",
        help=f"exit with 1 if a problem is at least this severe:\n{', '.join(_LEVELS)} or {_NEVER} (default:"
        " %(default)s)",
    )


def level_of(arguments: argparse.Namespace) -> int:
    """Return the lowest severity that makes the command fail."""
    return _LEVELS.get(arguments.fail_on, sys.maxsize)


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
