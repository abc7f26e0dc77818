"""What a stream can show: whether it is a terminal, which colours it has, and whether it can draw lines."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Paint", "can_show", "console_for", "is_terminal", "painter", "unpainted"]

#: Adds the style of a part, such as "error", to a text.
Paint = Callable[[str, str], str]


def unpainted(piece: str, part: str) -> str:
    """Return a text as it is."""
    return piece


def is_terminal(stream: IO[str] | None) -> bool:
    """Return whether people see what is written to a stream."""
    return stream is not None and stream.isatty()


def painter(stream: IO[str] | None, styles: Mapping[str, str]) -> Paint:
    """Return a function that colours parts of lines, if the stream shows colours.

    :param styles: parts -> their styles for rich.
    """
    console = None if stream is None else console_for(stream)
    if console is None or console.no_color or console.color_system is None:
        return unpainted
    rich_styles = {part: console.get_style(style) for part, style in styles.items()}
    system = console._color_system

    def painted(piece: str, part: str) -> str:
        return rich_styles[part].render(piece, color_system=system)

    return painted


def console_for(stream: IO[str]) -> Console | None:
    """Return a console for a stream, or None if it is not a terminal and should not be treated as one."""
    if not stream.isatty() and not os.environ.get("FORCE_COLOR"):
        return None
    from rich.console import Console  # imported only when needed: it takes a moment

    console = Console(file=stream, markup=False, highlight=False, emoji=False)
    return console if console.is_terminal else None


def can_show(stream: IO[str] | None, text: str) -> bool:
    """Return whether the encoding of a stream has these characters."""
    try:
        text.encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
