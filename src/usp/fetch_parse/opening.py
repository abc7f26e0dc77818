"""Open a document and choose its parser by its content. Its name and its Content-Type do not matter.

A document is opened again for each read: for its place in the tree, for its pages, for its problems.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from usp.documents import Document
from usp.fetch_parse.abstract import AbstractSitemapParser
from usp.fetch_parse.parsed import ParsedSitemap
from usp.fetch_parse.parsers import IndexRobotsTxtSitemapParser, PlainTextSitemapParser, XMLSitemapParser
from usp.objects.problem import UNLOGGED, Place, ProblemLog
from usp.objects.sitemap import IndexRobotsTxtSitemap, InvalidSitemap
from usp.scan.encodings import to_utf8
from usp.scan.lines import after_comments, is_robots_txt
from usp.scan.places import characters

__all__ = ["parse_document", "parser_of"]

_DOCUMENT_START = re.compile(
    rb"<\?xml\s|<!doctype\s|<(?:[\w.-]+:)?(?:urlset|url|sitemapindex|sitemap|rss|channel|feed|entry|rdf)[\s>]",
    re.IGNORECASE,
)
_TAG_START = re.compile(rb"<[?!A-Za-z][A-Za-z-]{2}")
_HEAD_BYTES = 1 << 16
_MAX_BLANK = 1 << 20  # lines and columns of white space that are kept, so that problems have the right place
_PROLOG = re.compile(rb"\s*+(?:(?><!--.*?-->|<\?(?!xml\s|php)[A-Za-z].*?\?>)\s*+)*+", re.IGNORECASE | re.DOTALL)
_HTML = re.compile(rb"\s*+(?:(?><\?xml[^>]*>|<!--.*?-->)\s*+)*+<(?:!doctype\s+)?html", re.IGNORECASE | re.DOTALL)


def parse_document(document: Document, is_robots_url: bool = False, max_children: int | None = None) -> ParsedSitemap:
    """Parse a document with the parser that fits its content.

    :param max_children: how many of the sitemaps that it lists to keep; the others are counted. None keeps all.
    """

    def parse() -> ParsedSitemap:
        parser = parser_of(document, is_robots_url)
        parser.max_children = max_children
        return parser.parse()

    parsed = document.first_read(parse)
    if is_robots_url and parsed.sitemap_class is InvalidSitemap and not document.cut_reason:
        log = ProblemLog(document.url)
        log.add("R701", Place(1, 1))
        return ParsedSitemap(document.url, IndexRobotsTxtSitemap, problems=log.problems())
    return parsed


def parser_of(document: Document, is_robots_url: bool = False) -> AbstractSitemapParser:
    """Return the parser that fits the content of a document."""
    is_xml = not is_robots_url and _starts_with_tag(document)
    if not is_xml:
        _, head, _ = _split(document, UNLOGGED)
        start = head[:_HEAD_BYTES]
        if is_robots_url and is_robots_txt(start):
            robots = IndexRobotsTxtSitemapParser(document.url, lambda log: _whole_text(document, log))
            robots.document = document
            return robots
        is_xml = start.startswith(b"<", len(_preamble(start)))
    parser_class = XMLSitemapParser if is_xml else PlainTextSitemapParser
    parser = parser_class(document.url, lambda log: _without_preamble(document, log))
    parser.document = document
    return parser


def _starts_with_tag(document: Document) -> bool:
    """Return whether a document certainly starts with a tag, as far as that is known without reading it."""
    return _TAG_START.match(document.start) is not None


def _split(document: Document, log: ProblemLog) -> tuple[bytes, bytes, Iterator[bytes]]:
    """Return the white space before the document, its start (64 KiB or more), and an iterator over the rest."""
    pieces = to_utf8(_counted(document, log), document.charset, log)
    blank = b""
    head = b""
    for piece in pieces:
        if head:
            head += piece
        else:
            head = piece.lstrip()
            blank = _blank(blank + piece[: len(piece) - len(head)])
        if len(head) >= _HEAD_BYTES:
            break
    return blank, head, pieces


def _counted(document: Document, log: ProblemLog) -> Iterator[bytes]:
    """Yield the bytes of the document, and log their number, and whether a limit cut them."""
    size = 0
    for piece in document.pieces(log.add):
        size += len(piece)
        yield piece
    if log is not UNLOGGED:
        log.size = size
        if document.cut_reason:
            log.is_cut = True
            log.add("C901", text=document.cut_reason)


def _blank(text: bytes) -> bytes:
    """Return white space that replaces a text, so that what follows keeps its line and its column."""
    if not text:
        return b""
    lines = min(text.count(b"\n"), _MAX_BLANK)
    return b"\n" * lines + b" " * min(characters(text[text.rfind(b"\n") + 1 :]), _MAX_BLANK)


def _whole_text(document: Document, log: ProblemLog) -> Iterator[bytes]:
    blank, head, pieces = _split(document, log)
    return chain([blank, head], pieces)


def _without_preamble(document: Document, log: ProblemLog) -> Iterator[bytes]:
    """Return the text of the document, with white space in place of its preamble."""
    blank, head, pieces = _split(document, log)
    start = head[:_HEAD_BYTES]
    preamble = _preamble(start)
    if preamble or (blank and start.startswith(b"<?")):
        log.add("X101", Place(1, 1))
    return chain([_blank(blank + preamble), head[len(preamble) :]], pieces)


def _preamble(head: bytes) -> bytes:
    """Return what precedes the document but does not belong to it.

    That is output of a program, such as warnings, a second byte order mark, or a comment before the declaration.
    """
    start = after_comments(head)
    document = _DOCUMENT_START.search(head, start)
    if document is None or _HTML.match(head):
        return b""
    if not document[0].startswith(b"<?") and _PROLOG.fullmatch(head, 0, document.start()):
        return b""  # comments and instructions may come first if there is no XML declaration
    return head[: document.start()]
