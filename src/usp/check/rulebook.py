"""The page of each code: what it means, why it matters, a bad and a good example, and where the rule comes from.

Pages are Markdown files in `pages`, one for each code, all of one form. They do not state the severity: that is put in
here, from the table of codes. Examples are the fenced blocks below "Bad" and "Good". One that has a file name is a file
of a site at https://www.example.org/, so that it can be tried; in "Bad" it may also say where in it the problem is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from usp.exceptions import InvalidArgumentError
from usp.objects.codes import CODES, GROUPS

__all__ = ["Example", "examples", "explain", "specifications", "title"]

_FENCE = re.compile(
    r"^```(?P<language>\w+)(?: (?P<file>\S+)(?: (?P<line>\d+):(?P<column>\d+))?)?\n(?P<text>.*?)\n```$",
    re.MULTILINE | re.DOTALL,
)
_HEADING = re.compile(r"^## (\w+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Example:
    """A fenced block of a page. `text` is the file as shown, without a line break at its end.

    `file` is None for what only illustrates a problem. `line` and `column` say where the problem is, if it has a place.
    In the language "http", the text is a whole answer: status line, headers, a blank line and the body.
    """

    language: str
    file: str | None
    line: int | None
    column: int | None
    text: str


def explain(code: str) -> str:
    """The page of a code, as Markdown. Raises `InvalidArgumentError` for a code that there is not."""
    code = _known(code)
    heading, rest = _page(code).split("\n", 1)
    return f"{heading}\n\nSeverity: {CODES[code].severity}\n{rest}"


def title(code: str) -> str:
    """The title of a code's page, in a few words of plain text. Raises as `explain` does."""
    code = _known(code)
    heading = _page(code).split("\n", 1)[0]
    return heading.removeprefix(f"# {code}: ").replace("`", "")


def specifications(code: str) -> list[str]:
    """Where the rule comes from: the URLs that the page of a code names. Raises as `explain` does."""
    last = _page(_known(code)).rstrip().rsplit("\n", 1)[-1]
    return last.removeprefix("Specification: ").split(", ")


def examples(code: str, kind: Literal["Bad", "Good"]) -> list[Example]:
    """The examples of a code's page, of one kind. Raises as `explain` does."""
    sections = _HEADING.split(_page(_known(code)))
    section = dict(zip(sections[1::2], sections[2::2], strict=True))[kind]
    return list(_examples(section))


def _examples(section: str) -> Iterator[Example]:
    for fence in _FENCE.finditer(section):
        line, column = fence["line"], fence["column"]
        yield Example(
            fence["language"],
            fence["file"],
            int(line) if line else None,
            int(column) if column else None,
            fence["text"],
        )


def _known(code: str) -> str:
    """The code as it is written in the table."""
    known = code.strip().upper()
    if known in CODES:
        return known
    near = [other for other in CODES if other[0] == known[:1]]
    if not near:
        letters = ", ".join(GROUPS)
        raise InvalidArgumentError(f"there is no code {code!r}; give one like X102, that starts with {letters}")
    raise InvalidArgumentError(f"there is no code {code!r}; give one of {', '.join(near)}")


@cache
def _page(code: str) -> str:
    return (files("usp") / "check" / "pages" / f"{code}.md").read_text("utf-8")
