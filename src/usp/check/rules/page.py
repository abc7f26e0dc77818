"""The page of a rule: what it means, why it matters, a bad and a good example, and the specification.

Pages are Markdown files in `usp/check/pages`, one for each code, all of one form. A page does not state the severity:
`explain` adds it. Examples are the fenced blocks below "Bad" and "Good". An example with a file name is a file of a
site at https://www.example.org/, so you can try it. In "Bad", it may also give the line and column of the problem.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from usp.check.rules import RULES
from usp.exceptions import InvalidArgumentError
from usp.objects.codes import GROUPS, Severity

__all__ = ["Example", "RulePage", "code_fences", "explain", "rule_page"]

_FENCE = re.compile(
    r"^```(?P<language>\w+)(?: (?P<file>\S+)(?: (?P<line>\d+):(?P<column>\d+))?)?\n(?P<text>.*?)\n```$",
    re.MULTILINE | re.DOTALL,
)
_HEADING = re.compile(r"^## (\w+)$", re.MULTILINE)
_WORDS = re.compile(r"[A-Za-z0-9]+")
_TAG = re.compile(r"</?(\w[\w:.-]*)>")
_ARTICLE = re.compile(r"^(?:an?|the) ")
_SPELLED = {"&": " ampersand ", "<": " less than ", "%": " percent "}


@dataclass(frozen=True, slots=True)
class Example:
    """A fenced block of a page. `text` is the file as shown, without a line break at its end.

    `file` is None if the block only illustrates the problem. `line` and `column` say where the problem is, if it has a
    place. In the language "http", the text is a whole response: status line, headers, a blank line and the body.
    """

    language: str
    file: str | None
    line: int | None
    column: int | None
    text: str


@dataclass(frozen=True, slots=True)
class RulePage:
    """The page of a rule. `source` is the Markdown file."""

    code: str
    source: str

    @property
    def severity(self) -> Severity:
        """How much a problem of this code matters."""
        return RULES[self.code].severity

    @property
    def markdown(self) -> str:
        """The page with the severity below its title."""
        heading, rest = self.source.split("\n", 1)
        return f"{heading}\n\nSeverity: {self.severity}\n{rest}"

    @property
    def title(self) -> str:
        """The title, in a few words of plain text."""
        heading = self.source.split("\n", 1)[0]
        return heading.removeprefix(f"# {self.code}: ").replace("`", "")

    @property
    def name(self) -> str:
        """The title as an identifier: BareAmpersand."""
        text = _ARTICLE.sub("", _TAG.sub(r" \1 ", self.title))
        for symbol, spelled in _SPELLED.items():
            text = text.replace(symbol, spelled)
        words = _WORDS.findall(text.replace("'", "").replace("\N{RIGHT SINGLE QUOTATION MARK}", ""))
        return "".join(word[0].upper() + word[1:] for word in words)

    @property
    def what(self) -> str:
        """What the problem is."""
        return self._paragraph("What:")

    @property
    def why(self) -> str:
        """Why the problem matters."""
        return self._paragraph("Why:")

    @property
    def specifications(self) -> list[str]:
        """The URLs of the specifications that the rule follows."""
        last = self.source.rstrip().rsplit("\n", 1)[-1]
        return last.removeprefix("Specification: ").split(", ")

    def examples(self, kind: Literal["Bad", "Good"]) -> list[Example]:
        """Return the bad or the good examples."""
        sections = _HEADING.split(self.source)
        section = dict(zip(sections[1::2], sections[2::2], strict=True))[kind]
        return [part for part in code_fences(section) if isinstance(part, Example)]

    def _paragraph(self, label: str) -> str:
        paragraphs = (" ".join(paragraph.split()) for paragraph in self.source.split("\n\n"))
        return next((text.removeprefix(label).strip() for text in paragraphs if text.startswith(label)), "")


def explain(code: str) -> str:
    """Return the page of a code, as Markdown.

    :raises InvalidArgumentError: if there is no such code.
    """
    return rule_page(code).markdown


def rule_page(code: str) -> RulePage:
    """Return the page of a code, in any case.

    :raises InvalidArgumentError: if there is no such code.
    """
    return _page(_known(code))


@cache
def _page(code: str) -> RulePage:
    return RulePage(code, (files("usp") / "check" / "pages" / f"{code}.md").read_text("utf-8"))


def code_fences(text: str) -> Iterator[str | Example]:
    """Split Markdown at its examples: yield the text between them, and each example."""
    end = 0
    for fence in _FENCE.finditer(text):
        yield text[end : fence.start()]
        end = fence.end()
        line, column = fence["line"], fence["column"]
        yield Example(
            fence["language"],
            fence["file"],
            int(line) if line else None,
            int(column) if column else None,
            fence["text"],
        )
    yield text[end:]


def _known(code: str) -> str:
    """Return the code as the rules spell it."""
    known = code.strip().upper()
    if known in RULES:
        return known
    near = [other for other in RULES if other[0] == known[:1]]
    if not near:
        letters = ", ".join(GROUPS)
        raise InvalidArgumentError(f"there is no code {code!r}; codes look like X102 and start with {letters}")
    raise InvalidArgumentError(f"there is no code {code!r}; did you mean {', '.join(near)}?")
