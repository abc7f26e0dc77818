"""`usp`: the commands, and what is common to them: errors in one line, closed pipes, Ctrl-C."""

from __future__ import annotations

import argparse
import os
import sys

from usp.cli import demo, ls
from usp.exceptions import UspError
from usp.version import __version__

__all__ = ["main", "parser"]

_INTERRUPTED = 130  # as a shell says it: 128 and the number of the signal
_WRONG_USE = 2


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    whole = argparse.ArgumentParser(
        prog="usp",
        description="From a website's homepage to every page of its sitemaps.",
        epilog="Try it without a network: usp demo",
    )
    whole.add_argument("-v", "--version", action="version", version=f"usp v{__version__}")
    commands = whole.add_subparsers(title="commands", metavar="COMMAND")
    for module in (ls, demo):
        module.register(commands)
    return whole


def main(arg_list: list[str] | None = None) -> int:
    """Run a command; gives its exit code."""
    whole = parser()
    arguments = whole.parse_args(arg_list)
    if not hasattr(arguments, "command"):
        whole.print_help()
        return 0
    # What a site said may hold characters that this terminal's encoding has not.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code: int = arguments.command(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has had enough (`| head`). Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _INTERRUPTED
    except (UspError, OSError) as error:
        print(f"usp: error: {error}", file=sys.stderr)
        return _WRONG_USE
    return code
