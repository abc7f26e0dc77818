"""The pages of a document as columns, for what makes tables of them."""

from __future__ import annotations

from collections.abc import Collection

from usp.documents import Document
from usp.fetch_parse.opening import parser_of
from usp.fetch_parse.parsers import AbstractPagesParser, AbstractSitemapParser
from usp.scan.columns import PAGE_TYPES, Columns, PureColumns

__all__ = ["columns_of"]


def columns_of(document: Document, wanted: Collection[str] = PAGE_TYPES) -> Columns:
    """The columns of a document; none are filled where it is no sitemap."""
    return document.settled(lambda: _columns(parser_of(document), wanted))


def _columns(parser: AbstractSitemapParser, wanted: Collection[str]) -> Columns:
    return parser.columns(wanted) if isinstance(parser, AbstractPagesParser) else PureColumns().columns()
