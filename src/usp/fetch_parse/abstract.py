"""What all parsers have in common. `usp.fetch_parse.parsers` shows the classes."""

from __future__ import annotations

import abc
from collections.abc import Callable, Collection, Iterable, Iterator

from usp.documents import Document
from usp.fetch_parse.parsed import ParsedSitemap
from usp.objects.page import PageCount, SitemapPage
from usp.objects.parser import Inspector
from usp.objects.problem import UNLOGGED, ProblemLog, Problems
from usp.objects.sitemap import AbstractSitemap, not_supported
from usp.objects.transport import Transport
from usp.scan.columns import PAGE_TYPES, Columns, PureColumns
from usp.scan.entry_pages import EntryCodes
from usp.scan.plain import READERS, Readers

__all__ = ["AbstractPagesParser", "AbstractSitemapParser"]

#: Opens the text of a document from its start, in pieces of UTF-8. Problems with the bytes go into the log.
OpenText = Callable[[ProblemLog], Iterable[bytes]]


class AbstractSitemapParser(abc.ABC):
    """Reads one document, which it may open several times.

    `open(log)` gives the text of the document. `document` is what `read_ahead` inflates, if the parser was made for
    one. `max_children` is how many of the sitemaps that it lists are kept, None for all; the others are counted.
    """

    max_children: int | None = None
    readers: Readers = READERS

    def __init__(self, url: str, open_text: OpenText) -> None:
        self.url = url
        self.open = open_text
        self.document: Document | None = None

    @abc.abstractmethod
    def parse(self) -> ParsedSitemap:
        """Return what the document holds. Pages and problems may be read later, when somebody asks for them."""

    def sitemap(self) -> AbstractSitemap:
        """Return the document as a sitemap, without fetching its children."""
        return self.parse().unfetched_sitemap()

    @abc.abstractmethod
    def inspect(self, log: ProblemLog, inspector: Inspector | None = None) -> None:
        """Read the whole document and log its problems. The inspector, if any, is called for its entries."""

    @property
    def inflated_size(self) -> int | None:
        """The number of bytes of the inflated document; None if that is not known."""
        return None if self.document is None else self.document.inflated_size

    @property
    def transport(self) -> Transport | None:
        """How the document was fetched; None if that is not known."""
        return None if self.document is None else self.document.transport

    @property
    def cut_reason(self) -> str:
        """Why only a part of the document is read; empty if all of it is."""
        return "" if self.document is None else self.document.cut_reason

    def is_cut(self) -> bool:
        """Return whether a limit cut the text, which may end anywhere. Ask at its end."""
        return self.document is not None and self.document.ends_early

    def read_ahead(self) -> None:
        """Inflate the document now for the next read, if it is simply gzipped and takes little memory."""
        if self.document is not None:
            self.document.read_ahead()

    def forget_ahead(self) -> None:
        """Drop what `read_ahead` inflated, if nobody has read it."""
        if self.document is not None:
            self.document.forget_ahead()

    def not_supported(self, why: str, log: ProblemLog) -> ParsedSitemap:
        """Return the result for a document that is no sitemap."""
        return ParsedSitemap.invalid(self.url, not_supported(self.url, why), problems=log.problems())


class _CountedText:
    """The pieces of a text, and in `size` the number of bytes read so far."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self.size = 0
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self.size += len(piece)
            yield piece


class AbstractPagesParser(AbstractSitemapParser):
    """Reads a document that may list pages."""

    # A batch of columns ends after about this many rows, or this many bytes of the document. Few sitemaps need a second
    # batch: the protocol allows 50,000 pages and 50 MB. A reader adds several rows at once, but never so many that a
    # batch has more than 65,536.
    batch_rows = 56_000
    batch_bytes = 1 << 26

    def __init__(self, url: str, open_text: OpenText) -> None:
        super().__init__(url, open_text)
        self.page_count = PageCount()
        self._problems: Problems | None = None

    @abc.abstractmethod
    def pages(self) -> Iterator[SitemapPage]:
        """Yield the pages. If several have the same URL, only the first counts."""

    def columns(self, wanted: Collection[str] = PAGE_TYPES) -> Iterator[Columns]:
        """Yield the same pages in batches of columns: the URLs, and the columns named in `wanted`."""
        codes = EntryCodes(self.url) if "problems" in wanted else None
        text = _CountedText(self.open(codes or UNLOGGED))
        limit = self.batch_bytes
        reader = None
        count = 0
        for reader in self._read_columns(wanted, text, codes):
            if reader.rows >= self.batch_rows or (reader.rows and text.size > limit):
                count += reader.rows
                yield reader.columns(goes_on=True)
                limit = text.size + self.batch_bytes
        rest = 0 if reader is None else reader.rows
        self.page_count.value = count + rest
        if reader is not None and rest:
            yield reader.columns()

    @abc.abstractmethod
    def _read_columns(
        self, wanted: Collection[str], text: Iterable[bytes], codes: EntryCodes | None
    ) -> Iterator[PureColumns]:
        """Read the text into a reader of columns, and yield that reader after each part of the text.

        `codes` logs the problems of each entry. It is None unless the column `problems` is wanted.
        """

    def problems(self) -> Problems:
        """Return the problems of the document. They are found by the first call."""
        if self._problems is None:
            log = ProblemLog(self.url)
            self.inspect(log)
            self._problems = log.problems()
        return self._problems
