"""Generates the pages of the documentation that follow from the code: command help and problem codes.

python tools/docs.py           names the pages that are out of date, and fails if there are any
python tools/docs.py --write   writes them
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path

from usp.check.rules.page import rule_page
from usp.cli.cli import parser
from usp.cli.outcomes import EXIT_CODES
from usp.objects.codes import CODES, GROUPS

ROOT = Path(__file__).parents[1]
#: What stands before the help of a command.
_GUIDES = {
    "usp ls": """\
![usp ls on a terminal](images/ls.svg)

On a terminal, `usp ls` draws the tree: the number of pages of each sitemap, and its first pages. Sitemaps that could
not be read have a red cross and the reason. Of an index with very many sitemaps, it shows the first 50. `--all`
prints everything.

In a pipe or a file, `usp ls` prints every sitemap and page, nested with tabs, as ultimate-sitemap-parser does. `-f`
chooses another format, wherever the output goes:

| format | prints |
|---|---|
| `tree` | The tree with lines; all of it, unless standard output is a terminal. |
| `tabtree` | The tree with tabs. |
| `pages` | One page per line, while sitemaps arrive. |
| `json` | One object: the outcome and, for each target, its outcome, notes and nested tree. |
| `table`, `tsv` | Sitemaps without pages; see `--sitemaps`. |

`--sitemaps` lists sitemaps instead of pages:

![usp ls --sitemaps on a terminal](images/sitemaps.svg)

`packed` is the size as transferred, `unpacked` the size after inflating. `lastmod` is what the index says, `newest
page` the latest date of a page. Columns without a value are left out. If the terminal is too narrow for a row, the
URL stands on a line of its own; URLs are never cut. In a pipe or a file, the same is a complete table with tabs, with
the columns of [`usp export --table sitemaps`](export.md); control characters are escaped. With several targets its
first column is `source`.

```sh
usp ls --sitemaps example.org | cut -f 1,5,9   # URL, status and pages of each sitemap
```

In JSON, each sitemap has the same facts, `page_count`, the number of `problems` of each code, `pages` and
`sub_sitemaps`. Pages have the fields of `usp export -f json`; with `--sitemaps` there are none. Times are in UTC. A
run in which nothing could be fetched prints JSON, too, with its outcome. `schema_version` changes if something is
removed or renamed.

```sh
usp ls -f json example.org | jq -r '.. | .pages? // [] | .[].url'
```

`--since 7d` lists only pages modified since then, by the rules of `usp export --since`: a news story counts by its
publication date, and a page without any date is left out. Sitemaps that their index says are older are not even
fetched; `--no-prune` fetches them.

Colours appear on terminals only. `NO_COLOR=1` turns them off, `FORCE_COLOR=1` turns them on in a pipe. Where the
encoding of the terminal has no lines to draw, usp uses ASCII characters.
""",
    "usp export": """\
![A partial export ends with exit code 4](images/partial.svg)
""",
    "usp check": """\
![usp check on a terminal](images/check.svg)
""",
}
_CLI_NOTES = """\
## Exit codes

{exit_codes}

![A blocked site ends with exit code 3](images/blocked.svg)

`usp check` exits with 1 if a problem is at least as severe as `--fail-on` (default: error), also if the site is
partial.

[outcomes.md](outcomes.md) explains the outcomes behind these codes, and has a recipe for a nightly job.

## Output and messages

Results go to standard output, everything else to standard error. Control characters in text from a site are escaped.

- **Progress.** On a terminal, one line shows the progress: sitemaps done and known, pages, bytes, speed, and the last
  host that answered. The line disappears before the output is printed. There is no such line if standard error is not
  a terminal, or if pages are printed to one.
- **Missing sitemaps.** After the output, a line for each reason says which sitemaps are missing, and which limit was
  reached. If nothing could be fetched, one line says why and what to try; `usp check` then prints no report for people
  on a site that is blocked or unreachable.
- **Summary.** The last line counts the sitemaps in the tree, those that are missing, pages, bytes, and the time for
  fetching. The summary of `usp check` is the last line of its text output; with another format or with `-o` it goes
  to standard error.
- **Log.** `-v` shows it, `-l FILE` writes it to a file.

`-q` turns off the progress line, the summary and warnings. usp still says what is missing, and that nothing could be
fetched.

## When results appear

`usp ls` prints a tree when it is complete. With `-f pages` it prints pages while it fetches, in tree order: the pages
of a sitemap wait for the sitemaps before it. The pages of a sitemap are written at once, so `usp ls -f pages ... |
head` ends early. With `--strict` it prints nothing before everything has arrived.

`usp export` writes rows while it fetches. `usp check` and `usp sql` print their result at the end. Files of `-o`
appear under their name when they are complete; if anything goes wrong, an existing file stays as it is.

Ctrl-C while fetching stops the requests. Every command then prints the partial results to standard output, and
completes the table, so that programs can read it; a file of `-o` is replaced only with `--keep-partial`. Ctrl-C while
printing ends usp at once.

## URLs, headers and credentials

[sources.md](sources.md) says what a target may be: a site, a sitemap, a file, a folder, an archive or standard input.

Values of `--header`, and a user and password in the URL, go only to the scheme, host and port of that URL. If a site
redirects to https, give the https URL. [fetching.md](fetching.md) explains how sites are fetched, and
[safety.md](safety.md) what is refused; [check.md](check.md), [export.md](export.md) and [sql.md](sql.md) are the guides
to those commands.
"""


def exit_codes_table() -> str:
    """Return the table of exit codes. docs/cli.md and docs/outcomes.md have it."""
    rows = [f"| {code} | {_as_code(meaning[0].upper() + meaning[1:])}. |" for code, meaning in EXIT_CODES.items()]
    return "\n".join(["| exit code | meaning |", "|---|---|", *rows])


def _as_code(text: str) -> str:
    return re.sub(r"[Uu]sp check|--[a-z-]+", lambda found: f"`{found[0].lower()}`", text)


def cli_page() -> str:
    """Return the page with the help of every command."""
    os.environ["COLUMNS"] = "100"
    usp = parser()
    commands = next(action for action in usp._actions if isinstance(action, argparse._SubParsersAction)).choices
    sections = [
        "# The command line\n\nGenerated by `make docs` from the commands themselves; pictures by `make screens`.\n"
    ]
    for name, command in {"usp": usp, **{f"usp {name}": command for name, command in commands.items()}}.items():
        guide = f"{_GUIDES[name]}\n" if name in _GUIDES else ""
        sections.append(f"## {name}\n\n{guide}```text\n{command.format_help().rstrip()}\n```\n")
    sections.append(_CLI_NOTES.replace("{exit_codes}", exit_codes_table()))
    return "\n".join(sections)


_PROBLEMS_INTRODUCTION = """\
# Problems

Written by `make docs` from the rules in `usp/check/rules` and the pages in `usp/check/pages`.

A problem is a defect in a document that usp could still read, or in how it is found and served. `usp check` looks for
all of them. `usp check --explain X102` prints the page of a code. `sitemap.problems` has the problems of one sitemap
that usp found while reading it, `tree.all_problems()` those of all. usp keeps the first twenty of each code in each
sitemap; `sitemap.problem_counts` counts all. Codes are stable.

Error: readers reject, skip or misread it. Warning: some readers skip it, or read only a part. Info: worth knowing;
nothing is lost.

In a bad example, the numbers after the name of a file are the line and column of the problem.
"""


def problems_page() -> str:
    """Return a page with all problem codes: a table, then the page of each code by group."""
    parts = [_PROBLEMS_INTRODUCTION, "| code | severity | what |\n|---|---|---|"]
    parts += [
        f"| [{code}](#{code.lower()}) | {CODES[code].severity} | {_escaped(rule_page(code).title)} |" for code in CODES
    ]
    for letter, group in GROUPS.items():
        parts.append(f"\n## {letter}: {group}")
        parts += [f'\n<a id="{code.lower()}"></a>\n\n{_section(code)}' for code in CODES if code.startswith(letter)]
    return "\n".join(parts) + "\n"


def _section(code: str) -> str:
    """Return the page of a code, with its headings two levels deeper."""
    lines = rule_page(code).markdown.rstrip().split("\n")
    is_text = True
    for number, line in enumerate(lines):
        if line.startswith("```"):
            is_text = not is_text
        elif is_text and line.startswith("#"):
            lines[number] = f"##{line}"
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")


#: Pages that are in the repository, and must be current.
PAGES = {"docs/cli.md": cli_page}
#: Pages that only `make docs` writes. They are not in the repository.
UNTRACKED_PAGES = {"docs/problems.md": problems_page}


def main() -> int:
    """Check or write every page."""
    stale = [name for name, page in PAGES.items() if not _is_current(ROOT / name, page())]
    if "--write" in sys.argv[1:]:
        for name, page in {**{name: PAGES[name] for name in stale}, **UNTRACKED_PAGES}.items():
            (ROOT / name).write_text(page(), "utf-8")
        return 0
    for name in stale:
        print(f"{name} is out of date; run: make docs")
    return bool(stale)


def _is_current(path: Path, text: str) -> bool:
    return path.exists() and path.read_text("utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
