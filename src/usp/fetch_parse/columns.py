"""The pages of a document as columns, for what makes tables of them."""

from __future__ import annotations

from collections.abc import Collection

from usp.documents import Document
from usp.fetch_parse.abstract import AbstractPagesParser
from usp.fetch_parse.opening import parser_of
from usp.scan.columns import PAGE_TYPES, Columns

__all__ = ["columns_of"]


def columns_of(document: Document, wanted: Collection[str] = PAGE_TYPES) -> list[Columns]:
    """The columns of a document, many rows at a time; none where it is no sitemap."""

    def read() -> list[Columns]:
        parser = parser_of(document)
        return list(parser.columns(wanted)) if isinstance(parser, AbstractPagesParser) else []

    return document.settled(read)
