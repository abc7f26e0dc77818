"""What all parsers have in common. See `usp.fetch_parse.parsers`."""

from __future__ import annotations

import abc
from collections.abc import Callable, Collection, Iterable, Iterator

from usp.documents import Document
from usp.fetch_parse.entry_codes import EntryCodes
from usp.fetch_parse.parsed import ParsedSitemap
from usp.objects.page import SitemapPage
from usp.objects.parser import Inspector
from usp.objects.problem import UNLOGGED, ProblemLog, Problems, shortened
from usp.objects.sitemap import AbstractSitemap
from usp.scan.columns import PAGE_TYPES, Columns, PureColumns
from usp.scan.plain import READERS, Readers

__all__ = ["AbstractPagesParser", "AbstractSitemapParser"]

#: Opens the text of a document, in pieces of UTF-8, from its start; what is wrong with it goes into the log.
Open = Callable[[ProblemLog], Iterable[bytes]]


class AbstractSitemapParser(abc.ABC):
    """Reads one document, which it may open several times."""

    def __init__(self, url: str, open_text: Open) -> None:
        self.url = url
        self.open = open_text
        self.document: Document | None = None  # if there is one, for those who read it ahead

    @abc.abstractmethod
    def parse(self) -> ParsedSitemap:
        """Return what the document holds."""

    def sitemap(self) -> AbstractSitemap:
        """The document as a sitemap whose children are left unfetched."""
        return self.parse().unfetched_sitemap()

    @abc.abstractmethod
    def inspect(self, log: ProblemLog, inspector: Inspector | None = None) -> None:
        """Read the whole document and log its problems. The inspector, if any, is called for its entries."""

    def read_ahead(self) -> None:
        """Inflate the document now for the next read, if that takes one step and little memory."""
        if self.document is not None:
            self.document.read_ahead()

    def forget_ahead(self) -> None:
        """Drop what `read_ahead` inflated, if nobody has read it."""
        if self.document is not None:
            self.document.forget_ahead()

    def not_supported(self, why: str, log: ProblemLog) -> ParsedSitemap:
        """Return the result for a document that is no sitemap."""
        reason = f"No parsers support sitemap from {shortened(self.url)}: {why}"
        return ParsedSitemap.invalid(self.url, reason, problems=log.problems())


class _Counted:
    """The pieces of a text, and how many bytes of it were taken."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self.size = 0
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self.size += len(piece)
            yield piece


class AbstractPagesParser(AbstractSitemapParser):
    """Reads a document that may list pages."""

    readers: Readers = READERS
    # Columns have about so many rows, or are of so many bytes of the document, if it has more. No sitemap should: the
    # protocol allows 50,000 pages and 50 MB. With the rows that come at once, there are 65,536 at most.
    most_rows = 56_000
    most_bytes = 1 << 26

    def __init__(self, url: str, open_text: Open) -> None:
        super().__init__(url, open_text)
        self._problems: Problems | None = None

    @abc.abstractmethod
    def pages(self) -> Iterator[SitemapPage]:
        """The pages; of several with the same URL the first counts."""

    def columns(self, wanted: Collection[str] = PAGE_TYPES) -> Iterator[Columns]:
        """The same, as columns: those that are wanted, and the URLs; many rows at a time."""
        codes = EntryCodes(self.url) if "problems" in wanted else None
        text = _Counted(self.open(codes or UNLOGGED))
        limit = self.most_bytes
        reader = None
        for reader in self._collected(wanted, text, codes):
            if reader.rows >= self.most_rows or (reader.rows and text.size > limit):
                yield reader.columns(goes_on=True)
                limit = text.size + self.most_bytes
        if reader is not None and reader.rows:
            yield reader.columns()

    @abc.abstractmethod
    def _collected(
        self, wanted: Collection[str], text: Iterable[bytes], codes: EntryCodes | None
    ) -> Iterator[PureColumns]:
        """Read the document into a reader, which is given now and then. If there are `codes`, it needs them."""

    def problems(self) -> Problems:
        """What is wrong with the document, found out once."""
        if self._problems is None:
            log = ProblemLog(self.url)
            self.inspect(log)
            self._problems = log.problems()
        return self._problems
