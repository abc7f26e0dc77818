"""Hostile documents cost CPU time in proportion to their size, however they are read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from shapes import DOCUMENTS, LINES, Shape
from usp.check.sitemaps import Site, SitemapReader
from usp.check.subjects import TreePlace
from usp.compiled import IS_COMPILED
from usp.documents import Document
from usp.fetch_parse.abstract import AbstractPagesParser
from usp.fetch_parse.opening import parse_document
from usp.objects.page import LAZY_PAGE_FIELDS
from usp.objects.problem import ProblemLog
from usp.scan.columns import PAGE_TYPES

# CPU seconds for a megabyte: what a document of any shape may take, compiled and in plain Python.
MOST_SECONDS = 0.3 if IS_COMPILED else 3.0
# The same in units of `work`, for machines that are slow or busy.
MOST_UNITS = 48 if IS_COMPILED else 480
SIZE = 125_000  # two huge fields
# The compiled readers keep the bound. In plain Python, relative URLs of a few bytes, each different, take up to 3.9 s.
SLACK = 1.0 if IS_COMPILED else 1.5
# A busy machine adds to the CPU time of a reading, by its caches and memory: at times more than half. It never takes
# from it, so one reading within the limit is enough. Tries are some time apart: the machine may be less busy then.
TRIES = 15

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)

CASES = [
    *(pytest.param(shape, "http://h/s.xml", id=name) for name, shape in DOCUMENTS.items()),
    *(pytest.param(shape, "http://h/s.txt", id=f"text: {name}") for name, shape in LINES.items()),
    *(pytest.param(shape, "http://h/robots.txt", id=f"robots.txt: {name}") for name, shape in LINES.items()),
]


def ways_to_read(data: bytes, url: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield each way to read a document: a name, and a function that reads it."""
    is_robots = url.endswith("robots.txt")
    yield "parse", lambda: parse_document(Document(url, data), is_robots)
    parsed = parse_document(Document(url, data), is_robots)
    parser = parsed.parser
    if parser is not None:
        yield "problems", lambda: parser.inspect(ProblemLog(url))
    if isinstance(parser, AbstractPagesParser):
        yield "pages", lambda: [[getattr(page, name) for name in LAZY_PAGE_FIELDS] for page in parser.pages()]
        yield "columns", lambda: list(parser.columns(PAGE_TYPES))
        place = TreePlace(parsed.unfetched_sitemap(), ())
        yield "check", lambda: SitemapReader(Site("http://h/", NOW, {})).read(place)


def seconds(read: Callable[[], object]) -> float:
    """Return the CPU seconds of this thread that a function takes."""
    start = time.thread_time()
    read()
    return time.thread_time() - start


def work() -> float:
    """Return the CPU seconds that a fixed piece of work takes now, as a measure of the machine."""

    def count() -> None:
        total = 0
        for number in range(200_000):
            total += number % 7

    return seconds(count)


def limits(megabytes: float) -> Iterator[float]:
    """Yield what a reading may take, for each try."""
    for number in range(TRIES):
        time.sleep(0.05 * number)
        yield max(MOST_SECONDS, MOST_UNITS * work()) * megabytes * SLACK


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "url"), CASES)
def test_no_shape_takes_long(shape: Shape, url: str) -> None:
    """Whatever the shape of a document, reading a megabyte takes a bounded number of CPU seconds."""
    data = shape(SIZE)
    megabytes = max(len(data), SIZE) / 1_000_000
    for way, read in ways_to_read(data, url):
        assert any(seconds(read) < limit for limit in limits(megabytes)), way
