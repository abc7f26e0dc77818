"""`usp check --explain` on a terminal: every page, at every width."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from commands import environment
from usp.check.formats import text
from usp.check.rules.page import RulePage, rule_page
from usp.cli import explain
from usp.cli.explain import page_lines
from usp.objects.codes import CODES

pytestmark = pytest.mark.cli

WIDTHS = (60, 80, 120)
GUTTER = re.compile(r"^[> ] +\d* \|")


def plain(piece: str, part: str) -> str:
    assert part in text.STYLES | explain.STYLES
    return piece


def marked(piece: str, part: str) -> str:
    return f"[{part}:{piece}]"


@pytest.mark.parametrize("width", WIDTHS)
def test_pages_fit(width: int) -> None:
    """No line of a page is wider than the terminal, except URLs, which a terminal can then open."""
    for code in CODES:
        for line in page_lines(rule_page(code), width, plain):
            assert len(line) <= width or re.fullmatch(r"  https?://\S+", line), code


@pytest.mark.parametrize("width", WIDTHS)
def test_pages_are_complete(width: int) -> None:
    """A page has every word of its source, and its examples unchanged."""
    for code in CODES:
        page = rule_page(code)
        lines = list(page_lines(page, width, plain))
        for example in [*page.examples("Bad"), *page.examples("Good")]:
            pieces = re.sub(r"\n +\| ", "", "\n".join(lines))
            for line in example.text.split("\n"):
                assert re.search(rf"^[> ] +\d+ \| ?{re.escape(line)}$", pieces, re.MULTILINE), (code, line)
        prose = " ".join(" ".join(line for line in lines if not GUTTER.match(line)).split())
        for sentence in (page.title, page.what, page.why, *page.specifications):
            assert " ".join(sentence.split()) in prose, code


def test_the_place_of_a_problem_is_marked() -> None:
    """An arrow and a style mark the place, also in a line that goes on in the next one."""
    source = (
        "# X102: t\n\nWhat: w `a b` c.\n\n## Bad\n\n```xml s.xml 2:31\n<a>\n0123456789012345678901234567890&tail\n```\n"
    )
    page = RulePage("X102", source)
    shown = list(page_lines(page, 26, marked))
    assert shown[0] == "[code:X102]  [error:error]  [heading:t]"
    assert shown[2] == "[heading:What:] w [inline:a b] c."
    assert shown[4:] == [
        "[heading:Bad: s.xml:2:31]",
        "[number:  1 |] <a>",
        "[heading:> 2 |] 01234567890123456789",
        "[number:    |] 0123456789[mark:0]&tail",
    ]


def test_code_has_backticks_where_there_are_no_styles() -> None:
    """Without colours, code in prose keeps its backticks."""
    assert any("`&amp;`" in line for line in page_lines(rule_page("X102"), 80, plain))


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_on_a_terminal(width: int, tmp_path: Path) -> None:
    """On a real terminal the page has its width, and no background that a light or a dark terminal would not have."""
    leader, follower = os.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "usp", "check", "--explain", "X102", "H632"],
        stdin=follower, stdout=follower, stderr=follower, cwd=tmp_path, env=environment(), start_new_session=True,
    )  # fmt: skip
    os.close(follower)
    shown = ""
    while True:
        try:
            piece = os.read(leader, 65_536)
        except OSError:  # Linux reports the end like that
            break
        if not piece:
            break
        shown += piece.decode()
    os.close(leader)
    assert process.wait() == 0
    styles = {number for style in re.findall(r"\x1b\[([\d;]*)m", shown) for number in style.split(";")}
    assert styles <= {"0", "1", "2", "7", "31", "33", "36"}
    assert re.sub(r"\x1b\[[\d;]*m", "", shown).splitlines() == [*styled("X102", width), "", "", *styled("H632", width)]


def styled(code: str, width: int) -> list[str]:
    """Return the lines of a page as a terminal with colours shows them."""
    lines = page_lines(rule_page(code), width, lambda piece, part: f"\1{piece}\2")
    return [re.sub(r"[\1\2]", "", line) for line in lines]
