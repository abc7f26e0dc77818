"""The progress line: one line on the terminal that is redrawn in place while a site is fetched.

It is drawn only if standard error is a terminal that supports it. Only then is rich imported, which takes a moment. A
thread redraws the line ten times a second, so it moves even while nothing arrives. At the end the line and the thread
are gone.
"""

from __future__ import annotations

import re
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Protocol

from usp.cli.output import LogLines, duration, say, size
from usp.objects.wording import plural, printable
from usp.origins import LOCAL_URL
from usp.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = ["Meter", "ProgressMeter", "progress_line", "scan_line"]

_SECONDS_BETWEEN_DRAWINGS = 0.1
_SECONDS_BEFORE_SCAN = 0.5  # what takes less needs no progress
_SECONDS_OF_RATE = 3.0  # the rate is the average over these last seconds
_CELLS_FOR_CTRL_C = 3  # a terminal shows "^C" after the line; wrapped onto the next line, it would stay
_MIN_HOST_CELLS = 8  # with less room, the host is not shown
_USER_AND_HOST = re.compile(r"[^:]*://([^/?#]*)")


class Meter(Protocol):
    """What a progress line shows."""

    def fields(self) -> list[str]:
        """Return what to show, the most important first; the last is a host, or empty."""


class ProgressMeter:
    """Keep the latest progress event and the time. Pass it to a front door as `progress=`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started = clock()
        self._samples: deque[tuple[float, int]] = deque([(self._started, 0)])
        self.latest = Progress("found", "")
        self._earlier_bytes = self._earlier_pages = 0  # of the sources before
        self._probed = (0, 0, "")  # pages done, pages in all, and the last URL, once pages are probed

    def __call__(self, event: Progress) -> None:
        """Remember the event. This is called often and must be fast."""
        self.latest = event

    @property
    def bytes(self) -> int:
        """The number of bytes transferred, of all sources."""
        return self._earlier_bytes + self.latest.bytes

    def next_source(self) -> None:
        """Begin to count for another source."""
        self._earlier_bytes += self.latest.bytes
        self._earlier_pages += self.latest.pages
        self.latest = Progress("found", "")

    def probed(self, done: int, total: int, url: str) -> None:
        """Note how far a probe of pages is. From now on, that is shown."""
        self._probed = done, total, url

    def seconds(self) -> float:
        """Return the seconds since the start."""
        return self._clock() - self._started

    def fields(self) -> list[str]:
        """Return what to show, the most important first: sitemaps, pages, bytes, bytes per second, time, host."""
        latest = self.latest
        if self._probed[1]:
            done, total, url = self._probed
            return [f"{done:,}/{total:,} pages probed", duration(int(self.seconds()), 0), _host(url)]
        return [
            f"{latest.done:,}/{latest.found:,} sitemaps",
            plural(self._earlier_pages + latest.pages, "page"),
            size(self.bytes),
            f"{size(self._rate(self.bytes))}/s",
            duration(int(self.seconds()), 0),
            _host(latest.url),
        ]

    def _rate(self, count: int) -> float:
        """Return the bytes per second of the last seconds."""
        now = self._clock()
        self._samples.append((now, count))
        while len(self._samples) > 2 and self._samples[1][0] <= now - _SECONDS_OF_RATE:
            self._samples.popleft()
        since, before = self._samples[0]
        return (count - before) / max(now - since, _SECONDS_BETWEEN_DRAWINGS)


def _host(url: str) -> str:
    """Return the host and port of a URL, without user and password. A file has none."""
    if url.startswith(LOCAL_URL):
        return ""
    match = _USER_AND_HOST.match(url)
    return printable(match[1].rpartition("@")[2]) if match else ""


@contextmanager
def progress_line(meter: Meter, log: LogLines | None) -> Iterator[None]:
    """Show the progress while the context is open, if standard error is a terminal. Print log lines above it."""
    console = _console() if sys.stderr is not None and sys.stderr.isatty() else None
    if console is None:
        yield
        return
    from rich.live import Live
    from rich.text import Text

    live = Live(
        get_renderable=lambda: _fitted(meter.fields(), console),
        console=console,
        auto_refresh=False,  # rich does not wait for its thread at the end
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    ended = Event()

    def draw() -> None:
        with suppress(OSError):  # the terminal is gone
            while not ended.wait(_SECONDS_BETWEEN_DRAWINGS):
                live.refresh()

    thread = Thread(target=draw, name="usp-progress", daemon=True)
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


@contextmanager
def scan_line(is_shown: bool, clock: Callable[[], float] = time.monotonic) -> Iterator[Callable[[str, int, int], None]]:
    """Give a function that shows how much of a file was read: on a terminal, and only if it takes long."""
    is_terminal = is_shown and sys.stderr is not None and sys.stderr.isatty()
    draw_at = clock() + _SECONDS_BEFORE_SCAN
    console: Console | None = None

    def show(name: str, done: int, total: int) -> None:
        nonlocal draw_at, console
        if not is_terminal or (now := clock()) < draw_at:
            return
        draw_at = now + _SECONDS_BETWEEN_DRAWINGS
        console = console or _console()
        if console is not None:
            about = f"reading {printable(name)}: {done / max(total, 1):.0%} of {size(total)}"
            _redraw(_fitted([about, ""], console).plain)

    try:
        yield show
    finally:
        if console is not None:
            _redraw("")


def _redraw(line: str) -> None:
    with suppress(OSError):  # the terminal is gone
        print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)


def _console() -> Console | None:
    """Return a rich console for standard error, or None if the terminal cannot redraw lines."""
    from rich.console import Console

    class Terminal(Console):
        def show_cursor(self, show: bool = True) -> bool:
            """Leave the cursor alone: if usp is killed or suspended, nobody would show it again."""
            return False

    console = Terminal(file=sys.stderr, markup=False, highlight=False, emoji=False)
    return console if console.is_interactive else None


def _fitted(fields: list[str], console: Console) -> Text:
    """Return a line of the fields that fit. The host, the last field, may be truncated."""
    from rich.cells import cell_len
    from rich.text import Text

    width = max(1, console.width - _CELLS_FOR_CTRL_C)
    *others, host = (field.encode(console.encoding, "backslashreplace").decode(console.encoding) for field in fields)
    line = Text(others[0], no_wrap=True, end="")
    for field in others[1:]:
        if line.cell_len + 2 + cell_len(field) > width:
            host = ""
            break
        line.append(f"  {field}")
    if host and line.cell_len + 2 + min(cell_len(host), _MIN_HOST_CELLS) <= width:
        line.append("  ").append(host, "cyan")
    line.truncate(width, overflow="ellipsis" if console.encoding.startswith("utf") else "crop")
    return line
