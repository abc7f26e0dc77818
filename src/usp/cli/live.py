"""The live line: how far a tree is, on one line of a terminal that is redrawn in place.

It is drawn only where standard error is a terminal that can do that. Only then is rich imported, which takes a moment,
and a thread redraws the line ten times a second, so that it moves also while nothing comes in. In the end both the line
and the thread are gone.
"""

from __future__ import annotations

import re
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING

from usp.cli.output import LogLines, duration, say, size
from usp.objects.problem import printable
from usp.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = ["Meter", "live_line"]

_SECONDS_BETWEEN_DRAWINGS = 0.1
_SECONDS_OF_RATE = 3.0  # bytes per second are those of the last few
_ROOM_FOR_CTRL_C = 3  # a terminal shows "^C" behind the line; on the next one it would stay
_SHORTEST_HOST = 8  # cells; where there is less room, none is shown
_USER_AND_HOST = re.compile(r"[^:]*://([^/?#]*)")


class Meter:
    """How far a tree is: the last thing that was told of it, and the time. To be passed as `progress=`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started = clock()
        self._samples: deque[tuple[float, int]] = deque([(self._started, 0)])
        self.latest = Progress("found", "")  # nothing yet

    def __call__(self, event: Progress) -> None:
        """Take in what happened. This is called often, and does next to nothing."""
        self.latest = event

    def seconds(self) -> float:
        """The time since the start."""
        return self._clock() - self._started

    def fields(self) -> list[str]:
        """What is shown, the most important first: sitemaps, pages, bytes, bytes per second, time, and the host."""
        latest = self.latest
        return [
            f"{latest.done:,}/{latest.found:,} sitemaps",
            f"{latest.pages:,} pages",
            size(latest.bytes),
            f"{size(self._rate(latest.bytes))}/s",
            duration(int(self.seconds()), 0),
            _host(latest.url),
        ]

    def _rate(self, count: int) -> float:
        """Bytes per second, lately."""
        now = self._clock()
        self._samples.append((now, count))
        while len(self._samples) > 2 and self._samples[1][0] <= now - _SECONDS_OF_RATE:
            self._samples.popleft()
        since, before = self._samples[0]
        return (count - before) / max(now - since, _SECONDS_BETWEEN_DRAWINGS)


def _host(url: str) -> str:
    """The host of a URL, with its port, without a user and a password."""
    found = _USER_AND_HOST.match(url)
    return printable(found[1].rpartition("@")[2]) if found else ""


@contextmanager
def live_line(meter: Meter, log: LogLines | None) -> Iterator[None]:
    """Show how far a tree is while the context is open, if standard error is a terminal. Log lines go above it."""
    console = _console() if sys.stderr is not None and sys.stderr.isatty() else None
    if console is None:
        yield
        return
    from rich.live import Live
    from rich.text import Text

    live = Live(
        get_renderable=lambda: _fitted(meter.fields(), console),
        console=console,
        auto_refresh=False,  # its thread is not waited for at the end
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    ended = Event()

    def draw() -> None:
        with suppress(OSError):  # the terminal is gone
            while not ended.wait(_SECONDS_BETWEEN_DRAWINGS):
                live.refresh()

    thread = Thread(target=draw, name="usp-live", daemon=True)
    if log is not None:
        log.write = lambda line: console.print(Text(line), soft_wrap=True)
    try:
        with live:
            thread.start()
            try:
                yield
            finally:
                ended.set()
                thread.join()
    finally:
        if log is not None:
            log.write = say


def _console() -> Console | None:
    """Standard error as rich has it; None if it is a terminal on which nothing can be redrawn."""
    from rich.console import Console

    class Terminal(Console):
        def show_cursor(self, show: bool = True) -> bool:
            """Leave the cursor alone: if usp is killed or suspended, nobody would bring it back."""
            return False

    console = Terminal(file=sys.stderr, markup=False, highlight=False, emoji=False)
    return console if console.is_interactive else None


def _fitted(fields: list[str], console: Console) -> Text:
    """The fields that fit into one line, and of the last, the host, as much as fits."""
    from rich.cells import cell_len
    from rich.text import Text

    width = max(1, console.width - _ROOM_FOR_CTRL_C)
    *others, host = (field.encode(console.encoding, "backslashreplace").decode(console.encoding) for field in fields)
    line = Text(others[0], no_wrap=True, end="")
    for field in others[1:]:
        if line.cell_len + 2 + cell_len(field) > width:
            host = ""
            break
        line.append(f"  {field}")
    if host and line.cell_len + 2 + min(cell_len(host), _SHORTEST_HOST) <= width:
        line.append("  ").append(host, "cyan")
    line.truncate(width, overflow="ellipsis" if console.encoding.startswith("utf") else "crop")
    return line
