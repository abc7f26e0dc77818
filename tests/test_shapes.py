"""Hostile documents cost CPU time in proportion to their size, however they are read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from shapes import DOCUMENTS, LINES, Shape
from usp.documents import Document
from usp.fetch_parse.abstract import AbstractPagesParser
from usp.fetch_parse.opening import parse_document
from usp.objects.page import LAZY_PAGE_FIELDS
from usp.objects.problem import ProblemLog
from usp.scan.columns import PAGE_TYPES

# CPU seconds for a megabyte. The slowest shapes, tags of a few bytes, take 2 to 5, and more in plain Python on a busy
# machine. Above that, a document must take no more than twice what is due, compared with a quarter of it: a quadratic
# reader takes four times that.
MOST_SECONDS = 6.0
SIZE = 125_000  # two huge fields
TRIES = 3

CASES = [
    *(pytest.param(shape, "http://h/s.xml", id=name) for name, shape in DOCUMENTS.items()),
    *(pytest.param(shape, "http://h/s.txt", id=f"text: {name}") for name, shape in LINES.items()),
    *(pytest.param(shape, "http://h/robots.txt", id=f"robots.txt: {name}") for name, shape in LINES.items()),
]


def ways_to_read(data: bytes, url: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield each way to read a document: a name, and a function that reads it."""
    is_robots = url.endswith("robots.txt")
    yield "parse", lambda: parse_document(Document(url, data), is_robots)
    parser = parse_document(Document(url, data), is_robots).parser
    if parser is not None:
        yield "problems", lambda: parser.inspect(ProblemLog(url))
    if isinstance(parser, AbstractPagesParser):
        yield "pages", lambda: [[getattr(page, name) for name in LAZY_PAGE_FIELDS] for page in parser.pages()]
        yield "columns", lambda: list(parser.columns(PAGE_TYPES))


def seconds(read: Callable[[], object]) -> float:
    """Return the CPU seconds of this thread that a function takes."""
    start = time.thread_time()
    read()
    return time.thread_time() - start


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "url"), CASES)
def test_no_shape_takes_long(shape: Shape, url: str) -> None:
    """Whatever the shape of a document, reading a megabyte takes a bounded number of CPU seconds."""
    data = shape(SIZE)
    most = MOST_SECONDS * max(len(data), SIZE) / 1_000_000
    for way, read in ways_to_read(data, url):
        assert any(seconds(read) < most for _ in range(TRIES)) or grows_linearly(shape, url, way), way


def grows_linearly(shape: Shape, url: str, way: str) -> bool:
    """Return whether reading a document takes at most twice what is due, compared with a quarter of it."""
    whole, quarter = shape(SIZE), shape(SIZE // 4)
    reads = [dict(ways_to_read(data, url))[way] for data in (whole, quarter)]
    taken = [min(seconds(read) for _ in range(TRIES)) for read in reads]
    return taken[0] < 2 * taken[1] * len(whole) / len(quarter)
