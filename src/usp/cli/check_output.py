"""Write the output of `usp check` to a terminal, a pipe, or a file that is replaced only when it is complete."""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from collections.abc import Callable, Iterable
from datetime import datetime
from errno import EEXIST
from typing import IO, TYPE_CHECKING

from usp.check.formats import render, text
from usp.check.formats.views import limited, summary
from usp.cli.output import say
from usp.export import files

if TYPE_CHECKING:
    from rich.console import Console

    from usp.check.report import Report

__all__ = ["ensure_writable", "print_pages", "write_report"]

_TEXT = "text"
_STANDARD_OUTPUT = "-"
_FENCE = re.compile(r"^```(\w+) (\S+)(?: (\d+):(\d+))?$", re.MULTILINE)


def ensure_writable(path: str | None, target: str) -> None:
    """Raise an OSError before any work if a file cannot be written, or is the one to check."""
    if path is None or path == _STANDARD_OUTPUT:
        return
    if os.path.exists(path) and os.path.exists(target) and os.path.samefile(path, target):
        raise FileExistsError(EEXIST, "This is the file to check; write to another one", path)
    files.ensure_writable(path)


def write_report(report: Report, arguments: argparse.Namespace, *, now: datetime) -> None:
    """Write a report to the file or to standard output. If people do not see it, print a summary too."""
    shown = report if arguments.max is None else limited(report, arguments.max)
    is_text = arguments.format == _TEXT
    path = arguments.output if arguments.output != _STANDARD_OUTPUT else None
    if is_text:
        paint = _painter(sys.stdout) if path is None and sys.stdout is not None else _unpainted
        pieces = text.render(shown, now=now, paint=paint, is_summed_up=not arguments.quiet)
    else:
        pieces = render(arguments.format, shown, now=now)
    if path is not None:
        _write_file(path, pieces)
    elif sys.stdout is not None:
        if not is_text and isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # not that of the terminal: programs read it
        sys.stdout.writelines(pieces)
        sys.stdout.flush()  # lines on standard error must come after it
    if not arguments.quiet and (path is not None or not is_text):
        say(f"usp: {summary(report)}")


def print_pages(pages: list[str]) -> None:
    """Print the pages of codes, formatted if standard output is a terminal."""
    if sys.stdout is None:
        return
    console = _console(sys.stdout)
    if console is None:
        print("\n".join(pages), end="")
        return
    from rich.markdown import Markdown

    for page in pages:
        console.print(Markdown(_FENCE.sub(_named_fence, page)))


def _named_fence(found: re.Match[str]) -> str:
    """Write the file and place of an example before it: rich drops everything after the language."""
    place = f", line {found[3]}, column {found[4]}" if found[3] else ""
    return f"{found[2]}{place}:\n\n```{found[1]}"


def _unpainted(piece: str, part: str) -> str:
    return piece


def _painter(stream: IO[str]) -> Callable[[str, str], str]:
    """Return a function that colours parts of lines, if the stream shows colours."""
    console = _console(stream)
    if console is None or console.no_color or console.color_system is None:
        return _unpainted
    styles = {part: console.get_style(style) for part, style in text.STYLES.items()}
    system = console._color_system

    def painted(piece: str, part: str) -> str:
        return styles[part].render(piece, color_system=system)

    return painted


def _console(stream: IO[str]) -> Console | None:
    """Return a console for a stream, or None if it is not a terminal and should not be treated as one."""
    if not stream.isatty() and not os.environ.get("FORCE_COLOR"):
        return None
    from rich.console import Console

    console = Console(file=stream, markup=False, highlight=False, emoji=False)
    return console if console.is_terminal else None


def _write_file(path: str, pieces: Iterable[str]) -> None:
    with files.open_whole(path) as stream:
        text_stream = io.TextIOWrapper(stream, encoding="utf-8", errors="backslashreplace")
        text_stream.writelines(pieces)
        text_stream.detach()  # which flushes it, and leaves the file open
