"""The command line. It uses the front doors and the public objects only.

`main` imports the rest when it is called, so that Ctrl-C during the imports is handled like any other Ctrl-C.
SIGTERM, with which `timeout` and systemd end a command, does the same as Ctrl-C, but for the exit code.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

__all__ = ["main"]

INTERRUPTED = 130  # exit code after Ctrl-C, as in shells: 128 plus the number of the signal
TERMINATED = 143  # after SIGTERM


def main(arg_list: list[str] | None = None) -> int:
    """Run a command. Return its exit code."""
    with _sigterm_as_interrupt() as received:
        try:
            from usp.cli.cli import run

            code = run(arg_list)
        except KeyboardInterrupt:
            code = INTERRUPTED
    if code == INTERRUPTED:
        # If Ctrl-C interrupts an exec() of source text, as some imported modules do, CPython remembers it as uncaught
        # and dies by the signal whatever the exit code. Another exec() resets that.
        exec("")  # noqa: S102 -- it executes nothing
    return TERMINATED if code == INTERRUPTED and received else code


@contextmanager
def _sigterm_as_interrupt() -> Iterator[list[int]]:
    """Raise KeyboardInterrupt at SIGTERM, unless the program handles it. Give a list that gets the signal."""
    received: list[int] = []

    def interrupt(number: int, frame: object) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # `timeout` sends it twice; the second must not stop the cleanup
        received.append(number)
        raise KeyboardInterrupt

    is_main = threading.current_thread() is threading.main_thread()  # no other thread may set handlers
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield received
        return
    signal.signal(signal.SIGTERM, interrupt)
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
