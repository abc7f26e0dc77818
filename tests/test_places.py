"""Places: from offsets to lines and columns, even if parts of the document were dropped."""

from __future__ import annotations

import random
import re

import pytest

from usp.fetch_parse import XMLSitemapParser
from usp.objects.problem import Place, ProblemLog
from usp.scan.places import places_of
from usp.tree import sitemap_from_bytes

ROOT = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'


def place_in(text: bytes, offset: int) -> Place:
    """Count in the whole text: the result to compare with."""
    before = re.sub(rb"\r(?!\n)", b"\n", text)[:offset]
    return Place(1 + before.count(b"\n"), 1 + len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "ignore")))


@pytest.mark.parametrize("seed", range(20))
def test_a_place_is_that_in_the_whole_text(seed: int) -> None:
    """A place does not depend on how the text is cut."""
    chance = random.Random(seed)
    text = "".join(
        chance.choice(["a", "\n", "\r", "\r\n", "ü", "日", "😀", "    ", "x" * 50]) for _ in range(3_000)
    ).encode()
    starts = [i for i, byte in enumerate(text) if byte & 0xC0 != 0x80]
    offsets = [0, *chance.sample(starts, 50), len(text)]
    pieces, at = [], 0
    while at < len(text):
        pieces.append(text[at:][: chance.choice((0, 1, 2, 7, 300, 5_000))])
        at += len(pieces[-1])
    assert places_of(offsets, pieces) == {offset: place_in(text, offset) for offset in offsets}


def test_what_is_beyond_the_text_is_at_its_end() -> None:
    """An offset beyond the text is at its end."""
    assert places_of([2, 99], [b"a\n", b"b"]) == {2: Place(2, 1), 99: Place(2, 2)}


def test_nothing_is_read_where_no_place_is_asked_for() -> None:
    """Without offsets, the text is not read again."""
    opened = []

    def open_text(log: ProblemLog) -> list[bytes]:
        opened.append(log)
        return [f"{ROOT}<url><loc>http://h/a</loc></url></urlset>".encode()]

    parser = XMLSitemapParser("http://h/s.xml", open_text)
    assert parser.problems() == ()
    assert len(opened) == 1


@pytest.mark.parametrize(
    ("entry", "code", "column"),
    [
        ("<url><loc>http://h/?ü=1&b</loc></url>", "X102", 24),
        ("<url><loc>http://h/?a=1&b=2&nope;</loc></url>", "X102", 24),
        ("<url><loc>http://h/<!-- -->?a&b</loc></url>", "X102", 30),
        ("<url><loc> \t http://h/\x01a</loc></url>", "X108", 23),
        ("<url><loc>http://h/a</loc><lastmod>  soon</lastmod></url>", "L302", 38),
        ("<url><loc>http://h/a</loc><priority>2</priority></url>", "P406", 37),
        ("<url><lastmod>2024-01-01</lastmod></url>", "P401", 1),
        ("<url><loc>http://h/a</loc></wrong></url>", "X106", 27),
        ("<url><loc>/a</loc></url>", "U501", 11),
        ("<url><loc><![CDATA[/a]]></loc></url>", "U501", 20),
        ("<url><loc>http://h/a</loc>< b></url>", "X104", 27),
    ],
)
def test_problems_are_where_they_are(entry: str, code: str, column: int) -> None:
    """A problem points at the character, or at the text of its field, or at the tag of its element."""
    for before in ("\n", "\n\n<url><loc>http://h/before</loc></url>\n", "<!-- ü -->" * 9_000 + "\n"):
        document = f"{ROOT}{before}{entry}\n</urlset>"
        found = next(p for p in sitemap_from_bytes(document.encode(), "http://h/s.xml").problems if p.code == code)
        assert (found.line, found.column) == (1 + before.count("\n"), column)


def test_text_is_shown_around_the_place() -> None:
    """A problem shows the text that is wrong."""
    problems = sitemap_from_bytes(f"{ROOT}<url><loc>http://h/?a&b</loc></url></urlset>".encode()).problems
    assert [p.text for p in problems] == ["http://h/?a&b"]


def test_what_stands_before_does_not_move_places() -> None:
    """A warning before the document, and white space, count for places."""
    entry = "<url><loc>http://h/?a&b</loc></url></urlset>"
    for before, line, column in (("Warning: x\n  ", 2, 3), ("<b>Notice</b>", 1, 14), ("\n\n \n ", 4, 2)):
        document = f"{before}{ROOT}{entry}"
        found = [p for p in sitemap_from_bytes(document.encode()).problems if p.code == "X102"]
        assert [(p.line, p.column) for p in found] == [(line, column + len(ROOT) + entry.index("&"))]


def test_lines_of_texts_have_places() -> None:
    """A problem of a line points at its start."""
    problems = sitemap_from_bytes(b"http://h/a\n\n  what\r\nhttp://h/b\n").problems
    assert [(p.code, p.line, p.column) for p in problems] == [("P412", 3, 3)]


def test_a_log_without_a_document_has_no_places() -> None:
    """If nothing was read, an offset has no place."""
    log = ProblemLog("http://h/")
    log.add("X109", 12)
    assert [(p.line, p.column) for p in log.problems()] == [(None, None)]
