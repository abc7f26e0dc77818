"""Where the output of `usp check` goes: a terminal, a pipe, or a file that is written whole or not at all."""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from errno import EEXIST, EISDIR, ENOENT
from stat import S_ISREG
from typing import IO, TYPE_CHECKING

from usp.check.formats import render, text
from usp.check.formats.views import limited, summary
from usp.cli.output import say

if TYPE_CHECKING:
    from rich.console import Console

    from usp.check.report import Report

__all__ = ["ensure_writable", "print_pages", "write_report"]

_TEXT = "text"
_STANDARD_OUTPUT = "-"
_NAME_LENGTH = 200  # of a temporary name: file systems take 255 bytes
_FENCE = re.compile(r"^```(\w+) (\S+)(?: (\d+):(\d+))?$", re.MULTILINE)


def ensure_writable(path: str | None, target: str) -> None:
    """Raise an OSError where a file cannot be written, or is what is checked, before any work is done for it."""
    if path is None or path == _STANDARD_OUTPUT:
        return
    if os.path.exists(path) and os.path.exists(target) and os.path.samefile(path, target):
        raise FileExistsError(EEXIST, "This is the file that is checked; write to another", path)
    path = os.path.realpath(path)
    if _is_stream(path):
        return
    if os.path.isdir(path):
        raise IsADirectoryError(EISDIR, "Is a folder, not a file", path)
    if not os.path.isdir(os.path.dirname(path)):
        raise FileNotFoundError(ENOENT, "No such folder", os.path.dirname(path))


def write_report(report: Report, arguments: argparse.Namespace, *, now: datetime) -> None:
    """Write a report to where it is wanted. Where that is not people's eyes, they are told the summary."""
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
            sys.stdout.reconfigure(encoding="utf-8")  # whatever this terminal's is: programs read it
        sys.stdout.writelines(pieces)
        sys.stdout.flush()  # what follows on standard error is about what was printed
    if not arguments.quiet and (path is not None or not is_text):
        say(f"usp: {summary(report)}")


def print_pages(pages: list[str]) -> None:
    """Print the pages of codes: laid out on a terminal, as they are elsewhere."""
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
    """An example's file and place, in words before it: rich leaves out what stands behind the language."""
    place = f", line {found[3]}, column {found[4]}" if found[3] else ""
    return f"{found[2]}{place}:\n\n```{found[1]}"


def _unpainted(piece: str, part: str) -> str:
    return piece


def _painter(stream: IO[str]) -> Callable[[str, str], str]:
    """What puts colours around parts of lines, if the stream shows any."""
    console = _console(stream)
    if console is None or console.no_color or console.color_system is None:
        return _unpainted
    styles = {part: console.get_style(style) for part, style in text.STYLES.items()}
    system = console._color_system

    def painted(piece: str, part: str) -> str:
        return styles[part].render(piece, color_system=system)

    return painted


def _console(stream: IO[str]) -> Console | None:
    """A stream as rich has it; None if it is no terminal, and is not to be treated as one."""
    if not stream.isatty() and not os.environ.get("FORCE_COLOR"):
        return None
    from rich.console import Console

    console = Console(file=stream, markup=False, highlight=False, emoji=False)
    return console if console.is_terminal else None


def _is_stream(path: str) -> bool:
    """Whether a path is no file of its own: a device, a pipe, or what this program has open, like /dev/stdout."""
    if path.startswith(("/dev/fd/", "/dev/std", "/proc/")):
        return True
    return os.path.exists(path) and not os.path.isdir(path) and not S_ISREG(os.stat(path).st_mode)


def _write_file(path: str, pieces: Iterable[str]) -> None:
    """Write a file whole: under another name first, so that nobody ever reads half of it."""
    if _is_stream(path):
        with open(path, "a", encoding="utf-8", errors="backslashreplace") as stream:
            stream.writelines(pieces)
        return
    path = os.path.realpath(path)
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name[:_NAME_LENGTH]}.{os.getpid()}.tmp")
    try:
        with open(temporary, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.writelines(pieces)
        if os.path.exists(path):
            shutil.copymode(path, temporary)
        os.replace(temporary, path)
    except BaseException:  # Ctrl-C, too, leaves no half of a file
        with suppress(OSError):
            os.remove(temporary)
        raise
