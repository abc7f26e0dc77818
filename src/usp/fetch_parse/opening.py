"""Opens a document and chooses its parser by what it is, whatever its name and its content type say.

A document is opened anew each time it is read: for its node, for its pages, for its problems.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from usp.documents import Document
from usp.fetch_parse.abstract import AbstractSitemapParser
from usp.fetch_parse.lines import IndexRobotsTxtSitemapParser, PlainTextSitemapParser
from usp.fetch_parse.parsed import ParsedSitemap
from usp.fetch_parse.parsers import XMLSitemapParser
from usp.objects.problem import UNLOGGED, Place, ProblemLog
from usp.objects.sitemap import IndexRobotsTxtSitemap, InvalidSitemap
from usp.scan.encodings import to_utf8
from usp.scan.lines import after_comments, is_robots_txt
from usp.scan.places import characters

__all__ = ["parser_of", "read"]

_DOCUMENT_START = re.compile(
    rb"<\?xml\s|<!doctype\s|<(?:[\w.-]+:)?(?:urlset|url|sitemapindex|sitemap|rss|channel|feed|entry|rdf)[\s>]",
    re.IGNORECASE,
)
_HEAD_BYTES = 1 << 16
_MAX_BLANK = 1 << 20  # lines, and columns
_HTML = re.compile(rb"\s*+(?:(?><\?xml[^>]*>|<!--.*?-->)\s*+)*+<(?:!doctype\s+)?html", re.IGNORECASE | re.DOTALL)


def read(document: Document, is_robots_url: bool = False) -> ParsedSitemap:
    """Parse a document with the parser that fits its content."""
    parsed = document.settled(lambda: parser_of(document, is_robots_url).parse())
    if is_robots_url and parsed.sitemap_class is InvalidSitemap:
        not_found_page = ProblemLog(document.url)
        not_found_page.add("R701", Place(1, 1))
        return ParsedSitemap(document.url, IndexRobotsTxtSitemap, problems=not_found_page.problems())
    return parsed


def parser_of(document: Document, is_robots_url: bool = False) -> AbstractSitemapParser:
    """The parser for the document."""
    _, head, _ = _split(document, UNLOGGED)
    start = head[:_HEAD_BYTES]
    if is_robots_url and is_robots_txt(start):
        return IndexRobotsTxtSitemapParser(document.url, lambda log: _whole(document, log))
    is_xml = start.startswith(b"<", len(_preamble(start)))
    parser_class = XMLSitemapParser if is_xml else PlainTextSitemapParser
    parser = parser_class(document.url, lambda log: _without_preamble(document, log))
    parser.document = document
    return parser


def _split(document: Document, log: ProblemLog) -> tuple[bytes, bytes, Iterator[bytes]]:
    """White space before the document, as much as places need; enough of its start; and the rest."""
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
    """The document's bytes, counted in the log."""
    size = 0
    for piece in document.pieces(log.add):
        size += len(piece)
        yield piece
    if log is not UNLOGGED:
        log.size = size


def _blank(text: bytes) -> bytes:
    """White space that takes the place of a text: what follows is on the same line, and in the same column."""
    lines = min(text.count(b"\n"), _MAX_BLANK)
    return b"\n" * lines + b" " * min(characters(text[text.rfind(b"\n") + 1 :]), _MAX_BLANK)


def _whole(document: Document, log: ProblemLog) -> Iterator[bytes]:
    blank, head, pieces = _split(document, log)
    return chain([blank, head], pieces)


def _without_preamble(document: Document, log: ProblemLog) -> Iterator[bytes]:
    """The text of the document from where it starts. What was before is blank, so that places are right."""
    blank, head, pieces = _split(document, log)
    start = head[:_HEAD_BYTES]
    preamble = _preamble(start)
    if preamble or (blank and start.startswith(b"<?")):
        log.add("X101", Place(1, 1))
    return chain([_blank(blank + preamble), head[len(preamble) :]], pieces)


def _preamble(head: bytes) -> bytes:
    """What a program printed before the document: warnings, a second byte order mark; or a comment too early."""
    start = after_comments(head)
    document = _DOCUMENT_START.search(head, start)
    if document is None or _HTML.match(head):
        return b""
    if document.start() == start and not document[0].startswith(b"<?"):
        return b""  # comments may stand there, if no declaration follows
    return head[: document.start()]
