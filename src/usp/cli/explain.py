"""The page of a code for a terminal: `usp check --explain` prints it.

    X102  error  bare "&"

    What: The text contains an "&" that does not start an entity such as &amp;.

    Bad: sitemap.xml:4:38
      1 | <?xml version="1.0" encoding="UTF-8"?>
    > 4 |     <loc>https://www.example.org/?a=1&b=2</loc>

Lines of prose are wrapped at words. Lines of an example are only broken where the terminal ends, and go on behind an
empty number. Colours are those of the terminal's own palette, without a background, so that they suit light and dark
terminals; nothing is said by colour alone.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator

from usp.check.rules.page import RulePage, code_fences
from usp.objects.problem import printable

__all__ = ["STYLES", "page_lines"]

#: Parts of a page that reports do not have -> their styles for rich.
STYLES = {"heading": "bold", "inline": "bold", "mark": "bold reverse red", "number": "dim"}

_MAX_WIDTH = 100  # longer lines of prose are hard to read
_MIN_WIDTH = 20
_INLINE = re.compile(r"`([^`]+)`")
_LABEL = re.compile(r"^(What|Why): ")
_SPECIFICATION = "Specification: "
_HELD_SPACE = "\x00"  # a space at which a line is not broken

Paint = Callable[[str, str], str]


def page_lines(page: RulePage, width: int, paint: Paint) -> Iterator[str]:
    """Yield the lines of a page, for a terminal of this width. `paint` styles a part of a line."""
    severity = str(page.severity)
    title = _wrapped(page.title, width - len(page.code) - len(severity) - 4)
    yield f"{paint(page.code, 'code')}  {paint(severity, severity)}  {paint(title[0], 'heading')}"
    yield from (paint(line, "heading") for line in title[1:])
    section = ""
    _, _, text = page.source.partition("\n")
    for block in code_fences(text):
        if not isinstance(block, str):
            place = ":".join(str(part) for part in (block.file, block.line, block.column) if part is not None)
            yield ""
            yield paint(f"{section}: {place}" if place else f"{section}:", "heading")
            yield from _example(block.text, block.line, block.column, width, paint)
            continue
        for paragraph in block.split("\n\n"):
            written = " ".join(paragraph.split())
            if written.startswith("## "):
                section = written.removeprefix("## ")
            elif written.startswith(_SPECIFICATION):
                yield ""
                yield paint(_SPECIFICATION.strip(), "heading")
                yield from (f"  {url}" for url in written.removeprefix(_SPECIFICATION).split(", "))
            elif written:
                yield ""
                yield from _prose(written, width, paint)


def _wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text. Code is never broken, so that it can be copied."""
    held = _INLINE.sub(lambda code: code[0].replace(" ", _HELD_SPACE), text)
    width = max(_MIN_WIDTH, min(width, _MAX_WIDTH))
    lines = textwrap.wrap(held, width, break_long_words=False, break_on_hyphens=False)
    return [line.replace(_HELD_SPACE, " ") for line in lines] or [""]


def _prose(text: str, width: int, paint: Paint) -> Iterator[str]:
    for line in _wrapped(text, width):
        line = _INLINE.sub(lambda code: _inline(code, paint), line)
        yield _LABEL.sub(lambda label: f"{paint(f'{label[1]}:', 'heading')} ", line)


def _inline(code: re.Match[str], paint: Paint) -> str:
    """Return code in its style, or between backticks if there are no styles."""
    painted = paint(code[1], "inline")
    return code[0] if painted == code[1] else painted


def _example(text: str, at_line: int | None, at_column: int | None, width: int, paint: Paint) -> Iterator[str]:
    """Yield the lines of an example with their numbers. An arrow and reverse video mark the place of the problem."""
    lines = text.split("\n")
    digits = len(str(len(lines)))
    room = max(_MIN_WIDTH, width - digits - 5)
    for number, line in enumerate(lines, 1):
        is_marked = number == at_line
        line = printable(line)
        gutter = f"{'>' if is_marked else ' '} {number:>{digits}} |"
        for start in range(0, len(line) or 1, room):
            piece = line[start : start + room]
            at = (at_column or 0) - 1 - start if is_marked else -1
            if 0 <= at < len(piece):
                piece = piece[:at] + paint(piece[at], "mark") + piece[at + 1 :]
            number_style = "heading" if gutter.startswith(">") else "number"
            yield f"{paint(gutter, number_style)}{piece and f' {piece}'}"
            gutter = " " * (digits + 2) + " |"
