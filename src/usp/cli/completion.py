"""`usp completion`: scripts that complete commands, options, values and file names in bash, zsh and fish.

The scripts are made from the parsers of the command line, so a new option needs no line here. An option whose
placeholder is FILE, or an argument called TARGET, completes file names. Codes of problems complete from their table.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from usp.cli.site import Subparsers

__all__ = ["SHELLS", "register", "script"]

_FILE_PLACEHOLDERS = ("FILE", "FOLDER", "TARGET")
_CODE_PLACEHOLDERS = ("CODE", "CODES")
_MAX_HELP = 60
_EPILOG = """\
Complete usp's commands, options, values and file names with the Tab key.

bash: add this line to ~/.bashrc
  source <(usp completion bash)

zsh: write the script to a folder of $fpath, before compinit runs
  usp completion zsh > ~/.zfunc/_usp

fish:
  usp completion fish > ~/.config/fish/completions/usp.fish
"""


@dataclass(frozen=True, slots=True)
class _Argument:
    """An option, or an argument without a name if it has no `flags`."""

    flags: tuple[str, ...]
    help: str
    placeholder: str = ""
    values: tuple[str, ...] = ()
    takes_value: bool = False
    takes_several: bool = False
    is_repeatable: bool = False

    @property
    def is_file(self) -> bool:
        return self.placeholder in _FILE_PLACEHOLDERS


@dataclass(frozen=True, slots=True)
class _Command:
    name: str
    help: str
    arguments: tuple[_Argument, ...]

    @property
    def options(self) -> list[_Argument]:
        return [argument for argument in self.arguments if argument.flags]

    @property
    def positionals(self) -> list[_Argument]:
        return [argument for argument in self.arguments if not argument.flags]


def register(commands: Subparsers, usp: argparse.ArgumentParser) -> None:
    """Add the command. The scripts are made from the parser `usp`."""
    completion = commands.add_parser(
        "completion",
        help="print a script that completes usp's options in your shell",
        description="Print a script that completes usp's commands and options in your shell.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    completion.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")
    completion.set_defaults(command=lambda arguments: print(script(usp, arguments.shell), end="") or 0)


def script(usp: argparse.ArgumentParser, shell: str) -> str:
    """Return the script for a shell."""
    return "".join(f"{line}\n" for line in SHELLS[shell](_commands(usp)))


def _commands(usp: argparse.ArgumentParser) -> list[_Command]:
    """Return usp itself, under an empty name, and its commands."""
    found = [_Command("", "", tuple(_arguments(usp)))]
    for action in usp._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            found += (
                _Command(name, _first_sentence(helps.get(name, "")), tuple(_arguments(parser)))
                for name, parser in action.choices.items()
            )
    return found


def _arguments(parser: argparse.ArgumentParser) -> Iterator[_Argument]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) or action.help == argparse.SUPPRESS:
            continue
        placeholder = action.metavar if isinstance(action.metavar, str) else ""
        yield _Argument(
            flags=tuple(action.option_strings),
            help=_first_sentence(parser._get_formatter()._expand_help(action) if action.help else ""),
            placeholder=placeholder,
            values=_values(action, placeholder),
            takes_value=action.nargs != 0,
            takes_several=action.nargs in ("+", "*"),
            is_repeatable=isinstance(action, (argparse._AppendAction, argparse._CountAction)) or _is_own(action),
        )


def _is_own(action: argparse.Action) -> bool:
    """Return whether a command brings the action itself. Such actions collect values."""
    return type(action).__module__ != argparse.__name__


def _values(action: argparse.Action, placeholder: str) -> tuple[str, ...]:
    if placeholder in _CODE_PLACEHOLDERS:
        from usp.objects.codes import CODES

        return tuple(CODES)
    return tuple(map(str, action.choices or ()))


def _first_sentence(text: str) -> str:
    """Return what a help says first, in one short line. Indented lines list the values."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("  "):
            break
        lines.append(line)
    text = " ".join(lines)
    ends = (found.start() for found in re.finditer(r"; |: |\. | \(", text))
    first = text[: next((end for end in ends if " " in text[:end]), len(text))].rstrip(".:;,")
    return first if len(first) <= _MAX_HELP else f"{first[:_MAX_HELP].rsplit(' ', 1)[0]} ..."


def _bash(commands: list[_Command]) -> Iterator[str]:
    """Yield a script for bash, 3.2 or newer. It needs no other package."""
    yield "# Completion of usp for bash. In ~/.bashrc: source <(usp completion bash)"
    yield "_usp_options() {\n  case $1 in"
    for command in commands:
        flags = " ".join(flag for option in command.options for flag in option.flags)
        yield f"    {_quoted(command.name)}) values={_quoted(flags)} ;;"
    yield "  esac\n}"
    yield "_usp_value() {\n  case $1 in"
    for command in commands:
        for option in command.options:
            if option.takes_value:
                names = "|".join(_quoted(f"{command.name} {flag}") for flag in option.flags)
                yield f"    {names}) takes={'several' if option.takes_several else 'one'} {_bash_source(option)} ;;"
    yield "  esac\n}"
    yield "_usp_argument() {\n  case $1 in"
    for command in commands:
        yield f"    {_quoted(command.name)}) {_bash_source(_argument_of(command, commands))} ;;"
    yield "  esac\n}"
    yield _BASH


def _bash_source(argument: _Argument | None) -> str:
    """Return what sets the values of an argument."""
    if argument is not None and argument.values:
        return f"values={_quoted(' '.join(argument.values))}"
    return "files=yes" if argument is not None and argument.is_file else ""


_BASH = """\
_usp() {
  local current=${COMP_WORDS[COMP_CWORD]} command= previous= last= values= files= takes= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      =) ;;  # bash splits --format=csv at the equals sign
      -*) previous=${COMP_WORDS[i]} last=$previous ;;
      *) previous=${COMP_WORDS[i]}; [[ -z $command ]] && command=$previous ;;
    esac
  done
  [[ $current == "=" ]] && current=
  _usp_value "$command $previous"
  if [[ -z $takes ]]; then
    _usp_value "$command $last"
    if [[ $takes != several || $current == -* ]]; then
      values= files= takes=
    fi
  fi
  if [[ -z $takes ]]; then
    if [[ $current == -* ]]; then _usp_options "$command"; else _usp_argument "$command"; fi
  fi
  if [[ -n $values ]]; then
    COMPREPLY=($(compgen -W "$values" -- "$current"))
  elif [[ -n $files ]]; then
    local IFS=$'\\n'
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}
complete -F _usp usp"""


def _zsh(commands: list[_Command]) -> Iterator[str]:
    """Yield a script for zsh, to be sourced or to be put in a folder of $fpath."""
    yield "#compdef usp"
    yield "# Completion of usp for zsh. In a folder of $fpath: usp completion zsh > ~/.zfunc/_usp"
    yield "_usp() {\n  local curcontext=$curcontext state line\n  typeset -A opt_args\n  local -a commands=("
    for command in commands[1:]:
        yield f"    {_quoted(f'{command.name}:{command.help}')}"
    yield "  )\n  _arguments -C \\"
    for option in commands[0].options:
        yield f"    {_zsh_option(option)} \\"
    yield "    '1:command:->command' '*::argument:->argument'"
    yield "  case $state in\n    command) _describe -t commands 'command' commands ;;"
    yield "    argument)\n      case $words[1] in"
    for command in commands[1:]:
        specs = [_zsh_option(option) for option in command.options]
        argument = _argument_of(command, commands)
        if argument is not None:
            specs.append(_quoted(f"*:{_zsh_text(argument.placeholder)}{_zsh_source(argument)}"))
        yield f"        {command.name})\n          _arguments -s \\"
        yield " \\\n".join(f"            {spec}" for spec in specs) + " ;;"
    yield "      esac ;;\n  esac\n}"
    yield 'if [[ $funcstack[1] == _usp ]]; then _usp "$@"; else compdef _usp usp; fi'


def _zsh_option(option: _Argument) -> str:
    """Return an option for `_arguments`."""
    value = f":{_zsh_text(option.placeholder)}{_zsh_source(option)}" if option.takes_value else ""
    described = _quoted(f"[{_zsh_text(option.help)}]{value}")
    flags = [f"{flag}{'=' if flag.startswith('--') else '+'}" if option.takes_value else flag for flag in option.flags]
    repeat = "*" if option.is_repeatable or option.takes_several else ""
    others = f"({' '.join(option.flags)})" if len(flags) > 1 and not repeat else ""
    written = f"{{{','.join(flags)}}}" if len(flags) > 1 else flags[0]
    return f"{_quoted(repeat or others) if repeat or others else ''}{written}{described}"


def _zsh_source(argument: _Argument) -> str:
    if argument.values:
        return f":({' '.join(argument.values)})"
    return ":_files" if argument.is_file else ": "


def _zsh_text(text: str) -> str:
    """Escape what `_arguments` gives a meaning."""
    return re.sub(r"([\\:\[\]])", r"\\\1", text)


def _fish(commands: list[_Command]) -> Iterator[str]:
    """Yield a script for fish."""
    yield "# Completion of usp for fish. In ~/.config/fish/completions/usp.fish"
    yield "complete -c usp -f"
    for command in commands:
        place = f"__fish_seen_subcommand_from {command.name}" if command.name else "__fish_use_subcommand"
        condition = f"complete -c usp -n {_quoted(place)}"
        for option in command.options:
            names = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
            yield f"{condition} {names}{_fish_source(option)} -d {_quoted(option.help)}"
            if option.takes_several and option.values:
                also = _quoted(f"{place}; and __fish_contains_opt {option.flags[-1].lstrip('-')}")
                yield f"complete -c usp -n {also} -a {_quoted(' '.join(option.values))}"
        argument = _argument_of(command, commands)
        if not command.name:
            for other in commands[1:]:
                yield f"{condition} -a {other.name} -d {_quoted(other.help)}"
        elif argument is not None and argument.is_file:
            yield f"{condition} -F"
        elif argument is not None and argument.values:
            yield f"{condition} -a {_quoted(' '.join(argument.values))}"


def _fish_source(option: _Argument) -> str:
    if not option.takes_value:
        return ""
    if option.values:
        return f" -x -a {_quoted(' '.join(option.values))}"
    return " -r -F" if option.is_file else " -x"


def _argument_of(command: _Command, commands: list[_Command]) -> _Argument | None:
    """Return what may follow a command, if that can be completed; for usp itself, the commands."""
    if not command.name:
        return _Argument((), "", values=tuple(other.name for other in commands if other.name))
    return next((one for one in command.positionals if one.values or one.is_file), None)


def _quoted(text: str) -> str:
    """Quote a text in a way that all three shells read alike."""
    return "'" + text.replace("'", "'\"'\"'") + "'"


#: Shell -> what makes its script.
SHELLS: dict[str, Callable[[list[_Command]], Iterator[str]]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
