"""Plain text sitemaps: the fast readers of lines find what reading each line alone finds, at every cut of the text."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scanners import FAST, GENERAL, as_rows, everything
from surveys import KINDS, OPTIONS
from usp.check.rules import RULES
from usp.check.rules.rule import EntryRule
from usp.check.sitemaps import EntryChecker, SiteTables
from usp.check.subjects import SitemapContext
from usp.compiled import IS_COMPILED
from usp.fetch_parse.parsers import IndexRobotsTxtSitemapParser, PlainTextSitemapParser
from usp.objects.problem import ProblemLog
from usp.scan.lines import MAX_LINE_BYTES
from usp.scan.plain import Readers
from usp.scan.survey import SurveyOff, Surveyors

URL = "http://h/a/s.txt"
WITHOUT_PROBLEMS = ("url", "last_modified")
RULES_OF_ENTRIES = {
    kind: [rule for rule in RULES.values() if isinstance(rule, EntryRule) and kind in rule.entries]
    for kind in ("url", "sitemap", "item", "entry")
}
#: Lines of all kinds: URLs with and without problems, URLs with something to repair, and texts that are no URLs.
LINES = [
    *(
        b"http://h/a/1",
        b"http://h/a/2",
        b"HTTPS://H/a/3",
        b"http://h/a/1?b&amp;c",
        b"http://h/a/1?b&c=%20",
        b"http://ok",
    ),
    *(
        b"http://h/else",
        b"https://h/a",
        b"http://www.h/",
        b"http://other.example/",
        b"http://h:80/a",
        b"http://h/a/elsewhere",
    ),
    *(
        b"http://h/a/private/1",
        b"http://h/x/q?sort=1",
        b"http://h/a/%70rivate",
        b"http://h/a/#top",
        b"http://h/a/{1}",
        b"http://h/a/%",
    ),
    *(
        "http://h/a/\u00fc".encode(),
        "http://\u00fc.example/".encode(),
        b"http://h/a/\xff",
        "http://h/a/\u201d".encode(),
    ),
    *(
        "http://h/a/\u00adx".encode(),
        "\ufeffhttp://h/a/4".encode(),
        "http://h/\u2028http://h/a/5".encode(),
        b"http://h/\xc2\x85x",
    ),
    *(
        b"http://h/a/1\t2024-01-01",
        b"http://h/a/1 \t x \t#y",
        b"http://h/a/1\thttp://h/a/2",
        b"http://h/a/1\t\x01x",
        b"http://h\tx",
    ),
    *(
        b"http://h/a/6\t://",
        b"http://h/a/7\t\xff",
        b"http://h/a/8 #comment",
        b"http://h/a/9, http://h/a/10",
        b"- http://h/a/11",
    ),
    *(
        b"<http://h/a/12>",
        b'"http://h/a/13"',
        b"http://h/a/14]]",
        b"www.h.example/a",
        b"h/a",
        b"http://.h/",
        b"http://",
        b"http://h/a b",
    ),
    *(
        "http\u017f://h/a/16".encode(),
        "www.\u212a.example".encode(),
        b"ht\x01tp://h/a/17",
        b"ht\xadtp://h/a/18",
        b"\xff",
        b"\xa0",
    ),
    *("\u00a0".encode(), "\u200b".encode(), b"w.", b"://", b"x://y", b"h.example", "\u00e9.".encode(), b"sitemap: x"),
    *(
        b"Sitemap: http://h/b.xml",
        b"site-map:/c.xml #d",
        b"http://h/sitemap",
        b"User-agent: *",
        b"Sitemaps = http://h/e",
    ),
    *(
        "http://h/a/1 http\u017f://h/a/2".encode(),
        b"- 'http://h/a/\xff' #x",
        b"http://h/a/1\thttp://.h",
        b"http://h:00080/a",
        b"www.a.b/c d",
        "www.a.b/c\u3000d".encode(),
        "www.a.b/c\u00a0".encode(),
        b"http://h/a http://h/b,",
        b"www.\xff.example",
    ),
    *(b"no URL", b"#", b"", b"\x0b", b"\x0c", b"\x7f", b"http://h/a/\x0bhttp://h/a/15", b"http://h/a/" + b"x" * 2_050),
]
BREAKS = (b"\n", b"\r\n", b"\r", b"\n\r", b"\r\r\n", b"\x0b", b"\xe2\x80\xa8")
BLANKS = (b"", b"", b"", b" ", b"\t", b" \t ")

line = st.tuples(st.sampled_from(BLANKS), st.sampled_from(LINES), st.sampled_from(BLANKS), st.sampled_from(BREAKS))
texts = st.lists(line.map(b"".join), max_size=40).map(b"".join)


def in_pieces(text: bytes, cuts: Iterable[int]) -> list[bytes]:
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[start:end] for start, end in pairwise(places)]


def read(pieces: list[bytes], readers: Readers) -> object:
    """Return all that is in a text: its pages, problems and columns, those without the column of problems, too."""
    parser = PlainTextSitemapParser(URL, lambda log: pieces)
    found = everything(parser, readers)
    return found, as_rows(parser.columns(WITHOUT_PROBLEMS)), parser.page_count.value


class CheckedLines:
    """What a check of a text finds."""

    def __init__(self, surveyors: Surveyors, pieces: list[bytes], *, uses_survey: bool) -> None:
        tables = SiteTables(["first"], surveyors)
        tables.pages.add("http://h/a/elsewhere", 0)
        context = SitemapContext(URL, OPTIONS, "http://h/a/", datetime(2026, 11, 15, 12, tzinfo=UTC))
        log = ProblemLog(URL)
        checker = EntryChecker(context, tables.number_of("this"), tables, log, RULES_OF_ENTRIES)
        if not uses_survey:
            checker.reader = SurveyOff(OPTIONS, tables.pages, tables.stories, 1)
        PlainTextSitemapParser(URL, lambda log: pieces).inspect(log, checker)
        checker.finish()
        problems = log.problems()
        self.found = [*map(str, problems)], +problems.counts, checker.stats.entries
        self.listed = [tables.pages.find(text.decode("latin-1")) for text in LINES]


@settings(max_examples=120)
@given(texts, st.lists(st.integers(0, 10_000), max_size=3))
def test_fast_readers_of_lines(text: bytes, cuts: list[int]) -> None:
    """Fast readers find in any text, cut anywhere, what reading each line alone finds."""
    pieces = in_pieces(text, cuts)
    expected = read([text], GENERAL)
    for readers in FAST.values():
        assert read(pieces, readers) == expected


def test_each_line_many_times() -> None:
    """Fast readers find on a line what is there, also where its problems are only counted."""
    for one in LINES:
        text = (one + b"\n") * 22
        expected = read([text], GENERAL)
        assert all(read([text], readers) == expected for readers in FAST.values()), one


@settings(max_examples=120)
@given(texts, st.integers(1, 30), st.sampled_from(["http://h/robots.txt", "http://h.example/robots.txt"]))
def test_lines_of_robots_txt(text: bytes, times: int, url: str) -> None:
    """Skipping lines changes neither the sitemaps that a robots.txt names nor its problems."""
    found: list[object] = []
    for readers in (GENERAL, *FAST.values()):
        log = ProblemLog(url)
        parser = IndexRobotsTxtSitemapParser(url, lambda log: [text * times])
        parser.readers = readers
        parser.inspect(log)
        found.append(([*map(str, log.problems())], +log.counts, parser.parse().children))
    assert found[1:] == found[:1] * len(FAST)


@settings(max_examples=60)
@given(texts, st.lists(st.integers(0, 10_000), max_size=3), st.integers(1, 30))
def test_checks_of_lines(text: bytes, cuts: list[int], times: int) -> None:
    """A check finds the same problems at the same places, whether a survey skips lines or not."""
    text *= times  # after 20 problems of a kind, the survey only counts them
    for surveyors in KINDS.values():
        expected = CheckedLines(surveyors, [text], uses_survey=False)
        checked = CheckedLines(surveyors, in_pieces(text, cuts), uses_survey=True)
        assert checked.found == expected.found
        assert checked.listed == expected.listed


@pytest.mark.parametrize("size", [MAX_LINE_BYTES - 2, MAX_LINE_BYTES - 1, MAX_LINE_BYTES, MAX_LINE_BYTES + 1])
@pytest.mark.parametrize("shape", ["path", "host", "before", "behind", "blank"])
def test_lines_of_the_greatest_length(shape: str, size: int) -> None:
    """Fast readers take no line that is too long, whatever makes it so."""
    room = size - len("http://h/")
    lines = {
        "path": b"http://h/" + b"x" * room,
        "host": b"http://" + b"x" * room + b"/h",
        "before": b" " * room + b"http://h/",
        "behind": b"http://h/" + b"\t" * room,
        "blank": b" " * size,
    }
    text = b"http://h/1\n" + lines[shape] + b"\nhttp://h/2\n"
    expected = read([text], GENERAL)
    assert ("X115" in str(expected)) == (size > MAX_LINE_BYTES)
    for readers in FAST.values():
        assert read([text], readers) == expected


@pytest.mark.parametrize("line_break", [b"\r", b"\r\n", b"\n", b"\xc2\x85", b"\xe2\x80\xa8"])
def test_a_line_after_one_that_is_too_long(line_break: bytes) -> None:
    """A line that is too long costs only itself, wherever in its line break the text is cut."""
    long = b"http://h/0\n" + b"x" * (MAX_LINE_BYTES + 9)
    text = long + line_break + b"http://h/1\nhttp://h/2\n"
    expected = read([text], GENERAL)
    assert "http://h/1" in str(expected)
    for cut in range(len(long), len(long) + len(line_break) + 1):
        for readers in (GENERAL, *FAST.values()):
            assert read([text[:cut], text[cut:]], readers) == expected


def cpu_seconds(run: Callable[[], object]) -> float:
    """Return the least processor time of three runs."""
    times = []
    for _ in range(3):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.slow
@pytest.mark.skipif(not IS_COMPILED, reason="plain Python gains less")
@pytest.mark.parametrize("form", ["%s\n", "%s\r", "  %s\n", "\t%s \r\n"])
def test_lines_are_read_fast(form: str) -> None:
    """The compiled readers take at most a third of the time of reading each line alone, for odd lines too."""
    numbers = [*range(20_000)]
    Random(1).shuffle(numbers)
    pieces = [b"".join((form % f"http://h/a/a-page-of-this-site-{number}.html").encode() for number in numbers)]

    def parser(readers: Readers) -> PlainTextSitemapParser:
        made = PlainTextSitemapParser(URL, lambda log: pieces)
        made.readers = readers
        return made

    def of_pages(readers: Readers) -> float:
        return cpu_seconds(lambda: [page.url for page in parser(readers).pages()])

    def of_problems(readers: Readers) -> float:
        return cpu_seconds(lambda: parser(readers).problems())

    def of_check(uses_survey: bool) -> float:
        return cpu_seconds(lambda: CheckedLines(KINDS["in use"], pieces, uses_survey=uses_survey))

    assert of_pages(FAST["in use"]) * 3 < of_pages(GENERAL)
    assert of_problems(FAST["in use"]) * 3 < of_problems(GENERAL)
    assert of_check(True) * 3 < of_check(False)


@pytest.mark.slow
@pytest.mark.skipif(not IS_COMPILED, reason="plain Python gains less")
def test_lines_with_several_fields_are_checked_fast() -> None:
    """A check takes at most a third of the time of reading each line alone if a date stands behind each URL."""
    pieces = [b"".join(b"http://h/a/a-page-of-this-site-%d.html\t2024-05-08\n" % number for number in range(20_000))]

    def of_check(uses_survey: bool) -> float:
        return cpu_seconds(lambda: CheckedLines(KINDS["in use"], pieces, uses_survey=uses_survey))

    assert of_check(True) * 3 < of_check(False)


PEAK = """
from itertools import pairwise
from pathlib import Path
from usp.fetch_parse.parsers import IndexRobotsTxtSitemapParser, PlainTextSitemapParser

def peak():
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) * 1024

def pieces(log):
    for start in range(0, %d, 1_000):
        yield b"".join(b"http://h/%%07d\\n" %% number for number in range(start, start + 1_000))

parser = PlainTextSitemapParser("http://h/s.txt", pieces)
before = peak()
count = sum(1 for page in parser.pages())
print(count, peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not IS_COMPILED, reason="in plain Python, the URLs are a set")
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read in /proc")
def test_memory_of_many_lines() -> None:
    """The pages of a text take at most 60 bytes for each short URL, while they are read one after the other."""
    number = 1_000_000
    run = subprocess.run([sys.executable, "-c", PEAK % number], capture_output=True, text=True, timeout=120, check=True)
    count, grown = map(int, run.stdout.split())
    assert count == number
    assert grown < 60 * number
