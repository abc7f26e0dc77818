"""Well-formedness: every document that expat refuses has a problem of group X or E, and no other document has one."""

from __future__ import annotations

import os
import time
import tracemalloc
from itertools import pairwise
from random import Random

import pytest

from checks import EXTENSIONS, HOME, NOW, found_in, place_of, url_of, urlset_of
from mutations import GOOD, Mutant, line_of_refusal, mutants
from scanners import FAST, GENERAL, of_pieces
from support import SITEMAP_XMLNS
from usp.check import check_bytes
from usp.objects.problem import Problem, ProblemLog
from usp.scan.well_formed import WellFormedness, log_refusal, refusal_of

#: How many documents with one edit are checked. USP_MUTANTS=20000 checks more.
MUTANTS = int(os.environ.get("USP_MUTANTS", "2000"))
SEED = 19 if os.environ.get("CI") else time.time_ns()
MOST_MISSED = 0.005
#: A DOCTYPE is no error, and a depth or a length that usp does not read is none of the document's.
_NOT_REFUSED = {"X110", "X114", "X115"}


def problems_of(document: bytes) -> list[Problem]:
    """Return the problems of a document that say that it is not well-formed."""
    report = check_bytes(document, name="sitemap.xml", now=NOW)
    problems = report.sitemaps[0].problems
    return [problem for problem in problems if problem.code[0] in "XE" and problem.code not in _NOT_REFUSED]


@pytest.mark.parametrize(
    "text",
    [b"<a>" * 700_000, b"<url " + b" ".join(b'a%d="1"' % number for number in range(200_000)) + b">"],
    ids=["elements in each other", "attributes of one tag"],
)
def test_memory_is_bounded(text: bytes) -> None:
    """Expat keeps elements that are open and tags that are not complete; usp gives it no more than a few."""
    document = b"<urlset>" + text + b"</urlset>"
    tracemalloc.start()
    try:
        assert problems_of(document)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


def test_mutants() -> None:
    """Of the documents with one edit that expat refuses, at most 0.5% have no problem; of the others, all have none."""
    refused, missed, wrong = 0, list[Mutant](), list[tuple[Mutant, Problem]]()
    for mutant in mutants(MUTANTS, SEED):
        problems = problems_of(mutant.text)
        if mutant.refused_at is not None:
            refused += 1
            missed += [mutant] * (not problems)
        else:
            wrong += [(mutant, problem) for problem in problems if problem.code[0] == "X"]
    assert refused > MUTANTS / 2
    assert len(missed) <= MOST_MISSED * refused, f"seed {SEED}: {missed[:5]}"
    # A "<![CDATA[" inside another one is taken for a sign that the first was never closed.
    assert [each for each in wrong if each[1].code != "X112"] == [], f"seed {SEED}"


def test_places_of_mutants() -> None:
    """The first problem is not behind the line at which expat stops."""
    for mutant in mutants(MUTANTS // 4, SEED + 1):
        lines = [problem.line for problem in problems_of(mutant.text) if problem.line is not None]
        if mutant.refused_at is not None and lines:
            assert min(lines) <= mutant.refused_at + 1, mutant


@pytest.mark.parametrize("name", GOOD)
def test_good_documents(name: str) -> None:
    """The documents that are edited have no problem of group X or E."""
    assert line_of_refusal(GOOD[name]) is None
    assert problems_of(GOOD[name]) == []


#: Code -> documents with a mark where they are wrong; a line of `urlset_of` is enough.
BROKEN: dict[str, list[str]] = {
    "X119": [
        f"<?xml version=¦\N{LEFT DOUBLE QUOTATION MARK}1.0\N{RIGHT DOUBLE QUOTATION MARK}?>\n{urlset_of()}",
        f"<?xml version=¦1.0?>\n{urlset_of()}",
        f'<?xml ¦encoding="UTF-8"?>\n{urlset_of()}',
    ],
    "X120": ['¦<?xml version="1.0"?>'],
    "X121": ['<url a="1" ¦a="2"/>', '<a b="1" ¦b="1"/>'],
    "X122": [
        "<url ¦a=b/>",
        "<a ¦b/>",
        '<a b="1"¦c="2"/>',
        "<a ¦b=\N{LEFT DOUBLE QUOTATION MARK}1\N{RIGHT DOUBLE QUOTATION MARK}/>",
    ],
    "X123": ["<!-- a ¦-- b -->", f"<url><!-- a ¦-- b --><loc>{HOME}</loc></url>"],
    "X124": ["¦]]>", f"<url><loc>{HOME}a¦]]></loc></url>", "<other>¦]]></other>"],
    "X125": ["¦&#0;", "<other>¦&#x1F;</other>", "<other>¦&#xFFFE;</other>"],
    "X126": [f"<url><loc>{HOME}¦</LOC></url>", "<a>¦</A>"],
    "X127": ['¦<a xmlns:b=""/>', '¦<a xmlns:xml="b"/>'],
    "X102": ["¦& ", "<other>¦&</other>", "<other>a ¦&b </other>", '<a b="¦& "/>'],
    "X103": ["¦&nbsp;", "<other>¦&nbsp;</other>"],
    "X104": ["¦<1/>"],
    "X105": [f"<url><loc>{HOME}¦</loc/></url>"],
    "X108": ["¦\x01", "<!-- ¦\x01 -->", "<other>¦\x01</other>", f"<url>¦\x0b<loc>{HOME}</loc></url>"],
    "X117": ['¦<a b:c="1"/>'],
}


@pytest.mark.parametrize(("code", "marked"), [(code, marked) for code, several in BROKEN.items() for marked in several])
def test_broken_documents(code: str, marked: str) -> None:
    """Each kind of error has its code, at its place."""
    whole = marked if marked.startswith("<?xml") else urlset_of(marked)
    document = whole.replace("¦", "").encode()
    assert line_of_refusal(document) is not None
    found = [(problem.code, problem.line, problem.column) for problem in problems_of(document)]
    assert (code, *place_of(whole)) in found, found


@pytest.mark.parametrize("place", ["{}", "<!-- {} -->", "<other>{}</other>", f"<url><loc>{HOME}</loc>{{}}</url>"])
def test_bytes_that_are_no_text(place: str) -> None:
    """E203: bytes that are not UTF-8, wherever they are."""
    before, after = urlset_of(place).encode().split(b"{}")
    (problem,) = problems_of(before + b"\xff" + after)
    assert (problem.code, problem.line) == ("E203", 2)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_nul_bytes(encoding: str) -> None:
    """X109: one problem, at the first NUL, behind texts of any encoding and a long one."""
    lines = [url_of(f"{number}", "<!-- \u00e9 -->") for number in range(3_000)]
    lines[2_500] = url_of("a\0b\0")
    document = urlset_of(*lines).replace("\n", "\r\n").encode(encoding)
    (problem,) = (problem for problem in problems_of(document) if problem.code != "E204")
    assert (problem.code, problem.line, problem.column) == ("X109", 2_502, lines[2_500].index("\0") + 1)


@pytest.mark.parametrize(
    "line",
    [
        '<url xml:lang="en"/>',
        '<a xml:space="preserve">a</a>',
        "<?php echo 1 > 0 ?>",
        "<!-- & < ]]> &nbsp; -->",
        "<other><![CDATA[ & < &nbsp; ]]></other>",
        "<a>&#233;&amp;&lt;</a>",
        "<loc><lastmod/></loc>",
        f"<url><lastmod><loc>{HOME}</loc></lastmod></url>",
    ],
)
def test_sound_documents(line: str) -> None:
    """What XML allows has no problem of group X."""
    document = urlset_of(line).encode()
    assert line_of_refusal(document) is None
    assert problems_of(document) == []


def test_instructions_before_the_root() -> None:
    """A document without an XML declaration may start with comments and other instructions."""
    document = f"<!-- a --><?xml-stylesheet href='a.xsl'?>\n{urlset_of()}".encode()
    assert problems_of(document) == []
    assert [problem.code for problem in problems_of(b"<?php warning ?>\n<?xml version='1.0'?>" + document)] != []


def test_undeclared_prefixes_hide_nothing() -> None:
    """Behind a prefix that is never declared, other errors are found."""
    document = f"<urlset {SITEMAP_XMLNS}>\n<url><loc>{HOME}</loc><b:c/></url>\n<a b='1' b='2'/>\n</urlset>"
    assert [(each.code, each.line) for each in problems_of(document.encode())] == [("X117", 2), ("X121", 3)]


def test_entries_that_were_proved_are_not_read_again() -> None:
    """Behind many entries that a fast reader took, an error has its place."""
    entries = [f"<url><loc>{HOME}{number}</loc></url>" for number in range(5_000)]
    entries[3_000] = f"<url><loc>{HOME}x</loc><!-- -- --></url>"
    found = [place for _, *place in found_in(check_bytes(urlset_of(*entries).encode(), now=NOW))]
    assert found == [["X123", 3_002, entries[3_000].index("-- --") + 4]]


@pytest.mark.parametrize(
    "entries",
    [
        b"<url><loc><![CDATA[http://h/a</loc></url><url><loc><![CDATA[http://h/b]]></loc></url>",
        b"<?a b><url><loc>http://h/a</loc></url> <url><loc><![CDATA[http://h/b?>]]></loc></url>",
    ],
    ids=["CDATA", "an instruction"],
)
def test_entries_in_a_section_that_was_not_closed(entries: bytes) -> None:
    """Entries that a fast reader takes may hold the end of a section that expat is still in."""
    document = b"<urlset>" + entries + b" <url><loc>http://h/c</loc></url>\x0e</urlset>"
    expected = of_pieces([document], GENERAL)
    assert "X112" in str(expected)
    assert [of_pieces([document], readers) for readers in FAST.values()] == [expected] * len(FAST)


def test_roots_that_are_broken() -> None:
    """If the root cannot be found, the report says why XML parsers refuse the document."""
    document = b"<?xml version='1.0'?>\n<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9"
    report = check_bytes(document, name="sitemap.xml", now=NOW)
    assert {problem.code for problem in report.problems()} == {"T807", "X105"}
    assert {problem.code for problem in check_bytes(b"<html><body>&nbsp;</html>", now=NOW).problems()} == {"T807"}


def test_broken_starts_in_pieces() -> None:
    """Why a document without a root is refused does not depend on how its start is cut."""
    document = b'\n<?xml version="1.0" encoding>http://h/\xc0\xd2</a></\xd2</b>'
    expected = of_pieces([document], GENERAL)
    assert "E203" in str(expected)
    for cut in range(1, len(document)):
        assert of_pieces([document[:cut], document[cut:]], GENERAL) == expected


def test_pieces() -> None:
    """The first error does not depend on how a document is cut, nor on what is skipped between two parts."""
    random = Random(1)
    for mutant in mutants(60, 5):
        whole = refusal_of([mutant.text])
        for _ in range(5):
            at = sorted(random.choices(range(len(mutant.text)), k=3))
            cuts = [0, *at, len(mutant.text)]
            cut = refusal_of([mutant.text[start:end] for start, end in pairwise(cuts)])
            assert whole == cut
    judge = WellFormedness()
    judge.read(b"<a>]]", 0, 5, 0)
    judge.read(b"><b x='1' x='2'/></a>", 0, 21, 100)
    error = judge.finish(121)
    assert error is not None
    assert (error.code, error.offset) == ("X121", 110)


def test_the_text_of_an_error_does_not_depend_on_pieces() -> None:
    """What is shown of the text at an error is the same, wherever the document is cut after it."""
    documents = (
        b"<a><link>x</link><!DOCTYPE a>" + b" " * 9_000 + b"</a>",
        b"<a>&nosuch;</a>",
        b'<a b="1" b="2" c:d="3"/>',
    )
    for document in documents:
        expected = refusal_of([document])
        assert expected is not None
        for cut in range(1, min(len(document), 60)):
            assert refusal_of([document[:cut], document[cut:]]) == expected
        assert refusal_of([bytes([byte]) for byte in document]) == expected


def test_what_is_reported_already() -> None:
    """An error that the scanner has reported at its place is not reported again."""
    error = refusal_of([b"<a>& </a>"])
    assert error is not None
    for offset, count in ((3, 1), (300, 2)):
        log = ProblemLog(HOME)
        log.add("X102", offset)
        log_refusal(error, log)
        assert log.counts["X102"] == count


def test_hostile_documents() -> None:
    """Memory and time are bounded, whatever is left open."""
    opened = b"<urlset " + EXTENSIONS.encode() + b"><!--"
    judge = WellFormedness()
    judge.read(opened, 0, len(opened), 0)
    started = time.process_time()
    for number in range(5_000):  # entries are skipped inside a comment that is never closed
        judge.read(b"  ", 0, 2, len(opened) + 1_000 * number)
    assert time.process_time() - started < 5
    assert judge.finish(10_000_000) is None
