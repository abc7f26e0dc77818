"""The command line. It uses the front doors and the public objects only.

`main` imports the rest when it is called, so that Ctrl-C during the imports is handled like any other Ctrl-C.
SIGTERM, with which `timeout` and systemd end a command, and SIGHUP, which a terminal sends when it is closed, do the
same as Ctrl-C, but for the exit code.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["main"]

INTERRUPTED = 130  # exit code after Ctrl-C, as in shells: 128 plus the number of the signal
HUNG_UP, TERMINATED = 129, 143  # after SIGHUP and SIGTERM, in the same way
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


def main(arg_list: list[str] | None = None) -> int:
    """Run a command. Return its exit code."""
    with _signals_as_interrupts(ends_process=arg_list is None) as received:
        try:
            from usp.cli.cli import run

            code = run(arg_list)
        except KeyboardInterrupt:
            code = INTERRUPTED
    if code == INTERRUPTED:
        # If Ctrl-C interrupts an exec() of source text, as some imported modules do, CPython remembers it as uncaught
        # and dies by the signal whatever the exit code. Another exec() resets that.
        exec("")  # noqa: S102 -- it executes nothing
    return 128 + received[0] if code == INTERRUPTED and received else code


@contextmanager
def _signals_as_interrupts(*, ends_process: bool) -> Iterator[list[int]]:
    """Do at these signals what Ctrl-C does, unless the program handles them, or nohup ignores them.

    Give a list that gets the signal.

    :param ends_process: whether the process ends afterwards. Then a second signal may come while it does.
    """
    received: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        for other in handled:
            signal.signal(other, signal.SIG_IGN)  # `timeout` sends it twice; the second must not stop the cleanup
        received.append(number)
        if callable(on_ctrl_c := signal.getsignal(signal.SIGINT)):
            on_ctrl_c(signal.SIGINT, frame)  # asyncio has its own, which ends tasks in good order
        else:
            raise KeyboardInterrupt

    is_main = threading.current_thread() is threading.main_thread()  # no other thread may set handlers
    handled = [number for number in _SIGNALS if is_main and signal.getsignal(number) is signal.SIG_DFL]
    for number in handled:
        signal.signal(number, interrupt)
    try:
        yield received
    finally:
        for number in () if received and ends_process else handled:
            signal.signal(number, signal.SIG_DFL)
