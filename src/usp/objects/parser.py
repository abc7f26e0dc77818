"""`DocumentParser`: what other rooms may ask of the parser behind a sitemap.

The parsers live in `usp.fetch_parse`, above this room. Sitemaps of a tree refer to them by these protocols, so that
checks can read a document again without knowing which parser reads it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from usp.objects.problem import ProblemLog
    from usp.scan.elements import Element
    from usp.scan.plain import CheckingReader

__all__ = ["DocumentParser", "Inspector"]


class DocumentParser(Protocol):
    """Reads the document of one sitemap, as often as you ask."""

    def open(self, log: ProblemLog, /) -> Iterable[bytes]:
        """Return the text of the document in pieces of UTF-8, and log problems with its encoding and compression."""

    def inspect(self, log: ProblemLog, inspector: Inspector | None = None) -> None:
        """Read the whole document and log its problems. The inspector, if any, is called for its entries."""

    @property
    def inflated_size(self) -> int | None:
        """The number of bytes of the inflated document; None if that is not known."""

    @property
    def cut_reason(self) -> str:
        """Why only a part of the document is read; empty if all of it is. A later read may have to stop earlier."""

    def read_ahead(self) -> None:
        """Inflate the document now for the next read, if it is simply gzipped and takes little memory."""

    def forget_ahead(self) -> None:
        """Drop what `read_ahead` inflated, if nobody has read it."""


class Inspector(Protocol):
    """Looks at the entries of a document while a parser reads it for problems."""

    @property
    def reader(self) -> CheckingReader:
        """The fast reader, which skips entries that the inspector need not see."""

    def skips_line(self, url: str, /) -> bool:
        """Return whether the inspector need not see a line of text that has this URL. If so, it counts it."""

    def entry(self, entry: Element, url: str, /) -> None:
        """Look at an entry that has a URL, and that the reader did not skip."""
