"""The pages of a document as columns, for what makes tables of them."""

from __future__ import annotations

from usp.documents import Document
from usp.fetch_parse.opening import parser_of
from usp.fetch_parse.parsers import AbstractPagesParser, AbstractSitemapParser
from usp.scan.columns import Columns, PureColumns

__all__ = ["columns_of"]


def columns_of(document: Document) -> Columns:
    """The columns of a document; none are filled where it is no sitemap."""
    return document.settled(lambda: _columns(parser_of(document)))


def _columns(parser: AbstractSitemapParser) -> Columns:
    return parser.columns() if isinstance(parser, AbstractPagesParser) else PureColumns().columns()
