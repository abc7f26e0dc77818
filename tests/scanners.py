"""Read a document in three ways, and return everything that each finds, to compare them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, TypeVar

from usp.documents import Document
from usp.export.formats.cells import values_of
from usp.fetch_parse.abstract import AbstractPagesParser
from usp.fetch_parse.opening import parser_of
from usp.fetch_parse.parsers import XMLSitemapParser
from usp.objects.lazy import Source
from usp.objects.page import SitemapPage
from usp.scan.columns import PAGE_TYPES, Columns
from usp.scan.grammar import Grammar, grammar_of
from usp.scan.plain import PURE, READERS, PureCheck, PurePages, PurePlainColumns, Readers, Taken

URL = "http://h/s.xml"
Result = TypeVar("Result")


class NoPages(PurePages):
    """Leaves every entry and every line to the general scanner."""

    def take(self, grammar: Grammar, buffer: bytes, position: int, /) -> Taken:
        return [], position, False, False

    def take_lines(self, source: Source, buffer: bytes, position: int, /) -> tuple[list[SitemapPage], int, int]:
        return [], position, 0


class NoCheck(PureCheck):
    def take(self, grammar: Grammar, buffer: bytes, position: int, /) -> Taken:
        return [], position, False, False

    def take_lines(self, buffer: bytes, position: int, takes_fields: bool, /) -> tuple[int, int, int]:
        return position, 0, 0


class NoColumns(PurePlainColumns):
    def take(self, grammar: Grammar, buffer: bytes, position: int, /) -> Taken:
        return [], position, False, False

    def take_lines(self, buffer: bytes, position: int, /) -> tuple[int, int]:
        return position, 0


#: The general scanner alone. The others must give the same results.
GENERAL = Readers(NoPages, NoCheck, NoColumns, lambda text: True)
#: The fast readers: those in use, which are compiled if they were built, and those in plain Python.
FAST = {"in use": READERS, "pure": PURE}


def as_values(page: SitemapPage) -> dict[str, Any]:
    """Return the fields of a page, and the zone of its date: dates in different zones may be equal."""
    return {**page.to_dict(), "zone": page.last_modified and page.last_modified.isoformat()}


def as_rows(parts: Iterable[Columns]) -> list[dict[str, object]]:
    """Return the rows of columns."""
    rows: list[dict[str, object]] = []
    for length, columns in parts:
        values = [values_of(kind, columns.get(name), length) for name, kind in PAGE_TYPES.items()]
        rows += [dict(zip(PAGE_TYPES, row, strict=True)) for row in zip(*values, strict=True)]
    return rows


def everything(parser: AbstractPagesParser, readers: Readers) -> object:
    """Return everything that a parser finds in a document."""
    parser.readers = readers
    reading = parser.parse()
    read = list(iter(reading.pages))  # all are read before any field is; `iter` as a list asks for the length first
    pages = [as_values(page) for page in read]
    problems = [*map(str, reading.found_problems())]
    return reading.sitemap_class, reading.reason, reading.children, pages, problems, as_rows(parser.columns())


def columns_of(document: Document, wanted: Collection[str] = PAGE_TYPES) -> list[Columns]:
    """The columns of a document, in batches; none where it is no sitemap."""

    def read() -> list[Columns]:
        parser = parser_of(document)
        return list(parser.columns(wanted)) if isinstance(parser, AbstractPagesParser) else []

    return document.first_read(read)


def of_document(data: bytes, readers: Readers) -> object:
    """Return everything in a document as it was fetched, or None if it is not XML."""
    parser = parser_of(Document(URL, data))
    return everything(parser, readers) if isinstance(parser, XMLSitemapParser) else None


def of_pieces(pieces: Iterable[bytes], readers: Readers) -> object:
    """Return everything in a text that arrives in pieces."""
    kept = list(pieces)
    return everything(XMLSitemapParser(URL, lambda log: kept), readers)


def python_calls(reader: PurePlainColumns, data: str) -> list[str]:
    """Return the Python functions that a reader calls while it takes entries. It must take all of them."""
    grammar = grammar_of((("", ""),))
    assert grammar is not None
    calls: list[str] = []
    buffer, position, full = data.encode(), 0, True
    while full:
        called, (_, position, _, full) = profiled(partial(reader.take, grammar, buffer, position))
        calls += called
    assert position == len(buffer)
    return calls


def profiled(run: Callable[[], Result]) -> tuple[list[str], Result]:
    """Return the Python functions that a call uses, and its result."""
    calls: list[str] = []
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None)
    try:
        return calls, run()
    finally:
        sys.setprofile(before)
