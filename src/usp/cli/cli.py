"""`usp`: the commands, and what is common to them: errors in one line, closed pipes, Ctrl-C."""

from __future__ import annotations

import argparse
import io
import sys
from typing import Any

from usp.cli import INTERRUPTED, check, demo, export, ls, sql
from usp.cli.output import drop_output, say
from usp.compiled import IS_COMPILED
from usp.exceptions import UspError
from usp.version import __version__

__all__ = ["parser", "run"]

_WRONG_USE = 2


class _Command(argparse.ArgumentParser):
    """The command line of one command: what it does not know is answered with its own usage."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Take arguments apart. What is not known is wrong."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    whole = argparse.ArgumentParser(
        prog="usp",
        description="From a website's homepage to every page of its sitemaps.",
        epilog="Try it without a network: usp demo",
    )
    scanner = "compiled" if IS_COMPILED else "pure Python"
    whole.add_argument("-v", "--version", action="version", version=f"usp v{__version__} ({scanner} scanner)")
    commands = whole.add_subparsers(title="commands", metavar="COMMAND", parser_class=_Command)
    for module in (ls, export, sql, check, demo):
        module.register(commands)
    return whole


def run(arg_list: list[str] | None = None) -> int:
    """Run a command; gives its exit code."""
    whole = parser()
    arguments = whole.parse_args(arg_list)
    if not hasattr(arguments, "command"):
        whole.print_help()
        return 0
    for stream in filter(None, (sys.stdout, sys.stderr)):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a site may say what this terminal cannot show
    try:
        code: int = arguments.command(arguments)
        print(end="", flush=True)
    except BrokenPipeError:  # the reader has had enough (`| head`)
        drop_output()
        return 0
    except KeyboardInterrupt:
        drop_output()  # whoever reads it may not go on
        return INTERRUPTED
    except (UspError, OSError) as error:
        say(f"usp: error: {error}")
        drop_output()
        return _WRONG_USE
    return code
