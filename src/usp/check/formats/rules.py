"""What the page of a code says, taken apart for formats that show parts of it: SARIF and HTML."""

from __future__ import annotations

import re
from dataclasses import dataclass

from usp.check.rulebook import explain, specifications, title
from usp.objects.codes import CODES, Severity

__all__ = ["Rule", "rule_for"]

_WORDS = re.compile(r"[A-Za-z0-9]+")
_TAG = re.compile(r"</?(\w[\w:.-]*)>")
_ARTICLE = re.compile(r"^(?:an?|the) ")
_SPELLED = {"&": " ampersand ", "<": " less than ", "%": " percent "}


@dataclass(frozen=True, slots=True)
class Rule:
    """A code and its page. `page` is the whole of it, as Markdown."""

    code: str
    title: str
    what: str
    why: str
    specifications: list[str]
    page: str

    @property
    def severity(self) -> Severity:
        """How much it matters."""
        return CODES[self.code].severity

    @property
    def name(self) -> str:
        """The title as an identifier: BareAmpersand."""
        text = _ARTICLE.sub("", _TAG.sub(r" \1 ", self.title))
        for symbol, spelled in _SPELLED.items():
            text = text.replace(symbol, spelled)
        words = _WORDS.findall(text.replace("'", "").replace("\N{RIGHT SINGLE QUOTATION MARK}", ""))
        return "".join(word[0].upper() + word[1:] for word in words)


def rule_for(code: str) -> Rule:
    """What the page of a code says."""
    page = explain(code)
    paragraphs = [" ".join(paragraph.split()) for paragraph in page.split("\n\n")]

    def after(label: str) -> str:
        return next((text.removeprefix(label).strip() for text in paragraphs if text.startswith(label)), "")

    return Rule(code, title(code), after("What:"), after("Why:"), specifications(code), page)
