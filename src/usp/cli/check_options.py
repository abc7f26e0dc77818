"""The options of `usp check` that `usp ls` has not: which problems are shown, how, and what counts as a failure."""

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
_MOST_DIGITS = 18  # whatever is longer is as good as no limit


def add_output(group: Group) -> None:
    """Add the options that say how problems are shown."""
    formats = "\n".join(f"  {name}: {what}" for name, what in FORMATS.items())
    group.add_argument(
        "-f",
        "--format",
        choices=FORMATS,
        default="text",
        metavar="FORMAT",
        help=f"set output format (default: %(default)s)\n{formats}",
    )
    group.add_argument("-o", "--output", metavar="FILE", help="write to this file, when all is checked")
    add_message_options(group)


def add_selection(group: Group) -> None:
    """Add the options that say which problems are shown, and which make the command fail."""
    group.add_argument(
        "--select",
        action="extend",
        type=_codes,
        default=[],
        metavar="CODES",
        help="only these, and all that begin so: X102,P4; may be given\nseveral times",
    )
    group.add_argument(
        "--ignore", action="extend", type=_codes, default=[], metavar="CODES", help="all but these, written likewise"
    )
    group.add_argument(
        "--max",
        type=_number,
        metavar="N",
        help="show so many at most, the most severe; the summary\ncounts all. Of a code, 20 in each sitemap are kept",
    )
    group.add_argument(
        "--fail-on",
        choices=(*_LEVELS, _NEVER),
        default="error",
        metavar="LEVEL",
        help=f"exit with 1 if there is one as severe as this, or more:\n{', '.join(_LEVELS)} or {_NEVER} (default:"
        " %(default)s)",
    )


def level_of(arguments: argparse.Namespace) -> int:
    """The least severity that makes the command fail."""
    return _LEVELS.get(arguments.fail_on, sys.maxsize)


def _codes(text: str) -> list[str]:
    """Return codes and beginnings of codes."""
    from usp.objects.codes import CODES  # imports all rules, which other commands do not need

    found = [part.strip().upper() for part in text.split(",") if part.strip()]
    if not found:
        raise argparse.ArgumentTypeError(f"give codes like X102, or how they begin, not {text!r}")
    for part in found:
        if not any(code.startswith(part) for code in CODES):
            raise argparse.ArgumentTypeError(f"no code is {part!r} or begins so; {_near(part)}")
    return found


def _near(part: str) -> str:
    """Return a hint at what may have been meant."""
    from usp.objects.codes import CODES

    near = get_close_matches(part, CODES, n=3, cutoff=0.7)
    if near:
        return f"perhaps {' or '.join(near)}"
    if part[0] in GROUPS:
        return f"there are {', '.join(code for code in CODES if code[0] == part[0])}"
    return f"they begin with {', '.join(GROUPS)}"


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"give a number of problems, 0 or more, not {text!r}")
    return int(text) if len(text) <= _MOST_DIGITS else sys.maxsize
