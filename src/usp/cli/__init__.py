"""The command line. It uses the front doors and the objects only.

Nothing is imported before `main` is called: so Ctrl-C is answered in the same way while the rest is imported.
"""

from __future__ import annotations

__all__ = ["main"]

INTERRUPTED = 130  # as a shell says it: 128 and the number of the signal


def main(arg_list: list[str] | None = None) -> int:
    """Run a command; gives its exit code."""
    try:
        from usp.cli.cli import run

        code = run(arg_list)
    except KeyboardInterrupt:
        code = INTERRUPTED
    if code == INTERRUPTED:
        # Where Ctrl-C ended an exec() of a text, as there are in imported modules, CPython notes that nobody caught it,
        # and would die by the signal whatever the exit code is. The next exec() takes that back.
        exec("")  # noqa: S102 -- it executes nothing
    return code
