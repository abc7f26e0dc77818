"""The command line. It uses the front doors and the public objects only.

`main` imports the rest when it is called, so that Ctrl-C during the imports is handled like any other Ctrl-C.
"""

from __future__ import annotations

__all__ = ["main"]

INTERRUPTED = 130  # exit code after Ctrl-C, as in shells: 128 plus the number of the signal


def main(arg_list: list[str] | None = None) -> int:
    """Run a command. Return its exit code."""
    try:
        from usp.cli.cli import run

        code = run(arg_list)
    except KeyboardInterrupt:
        code = INTERRUPTED
    if code == INTERRUPTED:
        # If Ctrl-C interrupts an exec() of source text, as some imported modules do, CPython remembers it as uncaught
        # and dies by the signal whatever the exit code. Another exec() resets that.
        exec("")  # noqa: S102 -- it executes nothing
    return code
