"""Writes the parts of the documentation that follow from the code: command help and problem codes.

python tools/docs.py           says what is out of date, and fails if anything is
python tools/docs.py --write   brings it up to date
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from usp.check.rulebook import explain, title
from usp.cli.cli import parser
from usp.objects.codes import CODES, GROUPS

ROOT = Path(__file__).parents[1]
_CLI_NOTES = """\
## Exit codes

0: done, even if there was nothing to list; 2: wrong use, or a file that cannot be read or written; 3: the site could
not be reached; 130: interrupted with Ctrl-C. `usp check` exits with 1 if it found a problem as severe as `--fail-on`
says, or more: an error, unless told otherwise.

What a site says is printed with control characters escaped. Logs go to standard error: sitemaps that failed,
and with `-v` also the [problems](problems.md) of the others. `usp check` reports both itself, and logs only with `-v`
or to a file.

## While it runs, and at the end

A tree is printed when all of it is there. Pages (`-f pages`) are printed while the rest is still fetched, in the
order of the tree: those of a sitemap wait for the sitemaps before it. Each is written at once, so that
`usp ls -f pages ... | head` ends early.

On a terminal, one line on standard error shows how far `usp ls` is: sitemaps done and known, pages, bytes,
speed, and the host that answered last. Guesses at known paths count among them until it is known that there
is nothing. The line is gone before a tree is printed; there is none where pages go to a terminal, nor where
standard error is no terminal.

After the output, lines on standard error say what is missing in it as a whole: that robots.txt could not be had,
or that a limit cut the tree, and which. The last line is a summary: sitemaps that stand in the tree, how many of
them failed, pages, bytes and the time that fetching took. `-q` leaves out the summary, the live line and
warnings; not what is missing, nor that no sitemap, or no page in any of them, was found.

Ctrl-C while it fetches ends the requests that are on their way and prints, in the format that was asked for,
what was had until then; of pages, those that were not printed yet. Ctrl-C while it prints ends it at once.

A URL stands for the whole site that it is on, whatever its path; where it has one, a line says so.

`usp check` has the same live line, and on Ctrl-C reports on what was had until then. Its summary is the last line of
text; with another format, or with `-o`, it goes to standard error. `-q` leaves it out. A file of `-o` is written when
all is checked, whole or not at all. [check.md](check.md) is its guide.

`--header` and what is in the URL before an @ go to the scheme, host and port of the URL only: give the https
URL of a site that redirects to it. [fetching.md](fetching.md) says how sites are fetched, and what is
refused.
"""


def cli_page() -> str:
    """The help of every command."""
    os.environ["COLUMNS"] = "100"
    whole = parser()
    commands = next(action for action in whole._actions if isinstance(action, argparse._SubParsersAction)).choices
    sections = ["# The command line\n\nWritten by `make docs` from the commands themselves.\n"]
    for name, command in {"usp": whole, **{f"usp {name}": command for name, command in commands.items()}}.items():
        sections.append(f"## {name}\n\n```text\n{command.format_help().rstrip()}\n```\n")
    sections.append(_CLI_NOTES)
    return "\n".join(sections)


_PROBLEMS_INTRODUCTION = """\
# Problems

Written by `make docs` from the table in `usp.objects.codes` and the pages in `usp/check/pages`.

A problem is something wrong in a document that was read all the same, or with how it is found and served.
`usp check` looks for all of them; `usp check --explain X102` prints what is said here. `sitemap.problems` has what was
wrong with one sitemap when it was read, `tree.all_problems()` with all; the first twenty of each code are kept, and
`sitemap.problem_counts` says how many there are. Codes are stable.

An error is refused, left out or misread by those who read the sitemap. A warning is read all the same, or partly, or
not by everyone. An info is worth knowing; nothing is lost.

In a bad example, the numbers behind the name of a file are the line and column at which the problem is reported.
"""


def problems_page() -> str:
    """Every problem code: a table of all, then their pages by group."""
    parts = [_PROBLEMS_INTRODUCTION, "| code | severity | what |\n|---|---|---|"]
    parts += [f"| [{code}](#{code.lower()}) | {CODES[code].severity} | {_escaped(title(code))} |" for code in CODES]
    for letter, group in GROUPS.items():
        parts.append(f"\n## {letter}: {group}")
        parts += [f'\n<a id="{code.lower()}"></a>\n\n{_section(code)}' for code in CODES if code.startswith(letter)]
    return "\n".join(parts) + "\n"


def _section(code: str) -> str:
    """The page of a code, two levels deeper."""
    lines = explain(code).rstrip().split("\n")
    is_text = True
    for number, line in enumerate(lines):
        if line.startswith("```"):
            is_text = not is_text
        elif is_text and line.startswith("#"):
            lines[number] = f"##{line}"
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")


PAGES = {"docs/cli.md": cli_page, "docs/problems.md": problems_page}


def main() -> int:
    """Check or write every page."""
    stale = [name for name, page in PAGES.items() if not _is_current(ROOT / name, page())]
    if "--write" in sys.argv[1:]:
        for name in stale:
            (ROOT / name).write_text(PAGES[name](), "utf-8")
        return 0
    for name in stale:
        print(f"{name} is out of date; run: make docs")
    return bool(stale)


def _is_current(path: Path, text: str) -> bool:
    return path.exists() and path.read_text("utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
