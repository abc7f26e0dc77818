"""`usp`: the command line, and what all commands share: errors in one line, closed pipes, Ctrl-C."""

from __future__ import annotations

import argparse
import io
import os
import shlex
import sys
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from usp.cli import INTERRUPTED, check, completion, crawl, demo, diff, export, ls, main, sql, view, watch
from usp.cli.outcomes import WRONG_USE
from usp.cli.output import drop_output, say
from usp.compiled import IS_COMPILED
from usp.exceptions import InvalidArgumentError, UspError
from usp.sources import find_source
from usp.version import __version__

if TYPE_CHECKING:
    from usp.cli.site import Subparsers

__all__ = ["main", "parser", "run"]


class _Usp(argparse.ArgumentParser):
    """The parser of the whole command line. It tells what a first word may mean that is not a command."""

    commands: Any = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments and refuse unknown commands."""
        word = next(iter(sys.argv[1:] if args is None else args), "-")
        if not word.startswith("-") and word not in self.commands.choices:
            self.error(_no_command(word, list(self.commands.choices)))
        return super().parse_known_args(args, namespace)


def _no_command(word: str, names: list[str]) -> str:
    """Return a message for a word that is not a command: a mistyped one, or a target."""
    if near := get_close_matches(word, names, 1):
        return f"there is no command {word!r}; did you mean {near[0]}?"
    try:
        find_source(word)
    except InvalidArgumentError:
        return f"there is no command {word!r:.200}; choose from {', '.join(names)}"
    return f"name a command before the target; to list its pages: usp ls {shlex.quote(word)}"


class _Command(argparse.ArgumentParser):
    """The parser of one command. It answers unknown arguments with the usage of that command."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments and refuse unknown ones."""
        parsed, unknown = super().parse_known_args(args, namespace)
        self._refuse_dashes(parsed)
        if hasattr(parsed, "targets"):  # argparse does not take targets after the options that follow a target
            parsed.targets += [text for text in unknown if text == "-" or not text.startswith("-")]
            unknown = [text for text in unknown if text not in parsed.targets]
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._near(unknown[0])}")
        return parsed, unknown

    def _refuse_dashes(self, parsed: argparse.Namespace) -> None:
        """Refuse "--" as the value of an option, as in --output=--. Older versions of argparse give no value then."""
        for action in self._actions:
            value = getattr(parsed, action.dest, None)
            if not action.option_strings or value is action.default:
                continue
            values = value if isinstance(value, list) else [value]
            if not values or [] in values or "--" in values:
                self.error(f"argument {'/'.join(action.option_strings)}: expected one argument, not --")

    def _near(self, word: str) -> str:
        """Return a question about an option that is spelt like a word, or an empty text."""
        near = get_close_matches(word.partition("=")[0], self._option_string_actions, 1)
        return f"; did you mean {near[0]}?" if near else ""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    usp = _Usp(
        prog="usp",
        description="Read the whole sitemap tree of a website: list it, export it, query it or check it.",
        epilog="Try it without a network: usp demo. Help on a command: usp help ls",
    )
    scanner = "compiled" if IS_COMPILED else "pure Python"
    usp.add_argument("-v", "--version", action="version", version=f"usp v{__version__} ({scanner} scanner)")
    # Any, because the type of argparse allows no subclass of its parser.
    commands = usp.commands = usp.add_subparsers(title="commands", metavar="COMMAND", parser_class=_Command)
    for module in (ls, export, sql, check, view, crawl, watch, diff, demo):
        module.register(commands)
    completion.register(commands, usp)
    _register_help(commands, usp)
    return usp


def _register_help(commands: Subparsers, usp: argparse.ArgumentParser) -> None:
    """Add `usp help`, which prints what `--help` prints."""
    command = commands.add_parser(
        "help",
        help="show the help of usp, or of a command",
        description="Show the help of usp, or of one of its commands.",
    )
    names = commands.choices

    def topic(text: str) -> str:
        if text not in names:
            near = get_close_matches(text, names, 1)
            hint = f"did you mean {near[0]}?" if near else f"choose from {', '.join(names)}"
            raise argparse.ArgumentTypeError(f"there is no command {text!r:.200}; {hint}")
        return text

    what = f"one of {', '.join(names)}"
    command.add_argument("topic", nargs="?", type=topic, choices=names, metavar="COMMAND", help=what)

    def show(arguments: argparse.Namespace) -> int:
        shown = usp if arguments.topic is None else names[arguments.topic]
        shown.print_help()
        return 0

    command.set_defaults(command=show)


def _message_of(error: UspError | OSError) -> str:
    """Return what an error says. That of a file names it first, without the number of the error."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{os.fspath(error.filename)}: {error.strerror}"
    return str(error)


def run(arg_list: list[str] | None = None) -> int:
    """Run a command. Return its exit code."""
    usp = parser()
    arguments = usp.parse_args(arg_list)
    if not hasattr(arguments, "command"):
        usp.print_help()
        return 0
    for stream in filter(None, (sys.stdout, sys.stderr)):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # for characters that this terminal cannot show
    try:
        code: int = arguments.command(arguments)
        print(end="", flush=True)
    except BrokenPipeError:  # the reader has closed the pipe, as `| head` does
        drop_output()
        return 0
    except KeyboardInterrupt:
        drop_output()  # a blocked reader must not delay the exit
        return INTERRUPTED
    except (UspError, OSError) as error:
        say(f"usp: error: {_message_of(error)}")
        drop_output()
        return WRONG_USE
    return code
