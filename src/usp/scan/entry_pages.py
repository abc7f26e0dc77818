"""Pages of the entries that the general scanner reads.

A parser of entries (`EntryParser`) knows what an entry means. The class here asks it, entry by entry. Its compiled form
(`_entry_pages.pyx`) does the same for the usual entries without asking: feeds, indexes and damaged documents may have
an entry for every few bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import Protocol

from usp.objects.lazy import Source
from usp.objects.page import LAZY_PAGE_FIELDS, SitemapPage, last_modified_text
from usp.objects.problem import At, Place, ProblemLog
from usp.scan.columns import PureColumns
from usp.scan.elements import Element

__all__ = ["EntryCodes", "EntryParser", "PureEntryPages"]

#: Element, base of relative URLs, log, URL of the sitemap -> what converts the fields of a page.
MakeSource = Callable[[Element, str, ProblemLog, str], Source]


class EntryParser(Protocol):
    """Knows what the entries of a document mean."""

    @property
    def url(self) -> str:
        """The URL of the document."""

    @property
    def base(self) -> str:
        """The base of relative URLs."""

    @property
    def log(self) -> ProblemLog:
        """Where problems are logged."""

    @property
    def strays(self) -> Mapping[str, str]:
        """Names of entries that do not belong into such a document -> code of the problem."""

    @property
    def sources(self) -> Mapping[str, MakeSource]:
        """Names of entries that are pages -> what converts their fields."""

    @property
    def bare_source(self) -> Source:
        """The source of pages that have only a URL."""

    def page(self, entry: Element) -> SitemapPage | None:
        """Return the page of an entry, or None if the entry has no usable URL."""

    def fields_of(self, entry: Element) -> Collection[str]:
        """Return the fields of a page that its entry may give. The others are empty, and have no problems."""

    def declared(self, entry: Element) -> tuple[str, datetime | None] | None:
        """Return the URL and the date of the sitemap that an entry declares, or None if it has no usable URL."""


class EntryCodes(ProblemLog):
    """A log that tells which entry each problem belongs to, for the column `problems`.

    A problem belongs to an entry if it was logged since the end of the previous entry, and lies inside this one.
    Problems before an entry, or without a place, belong to no entry.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.logged: dict[str, At] = {}  # codes since the last entry -> where each was logged last

    def add(self, code: str, at: At = None, *, text: str = "", where: str = "", **values: object) -> None:
        """Log a problem."""
        self.logged[code] = at

    def add_ahead(self, code: str, offset: int) -> None:
        """Log a problem that belongs to no entry: which one it is in is not known yet."""
        self.add(code)

    def keeps(self, code: str) -> bool:
        """Return False: only codes and places are kept, no messages."""
        return False

    def count(self, code: str, number: int, at: At = None) -> None:
        """Log problems of one code."""
        self.logged[code] = at

    def end_entry(
        self, start: int | Place, page: SitemapPage | None, fields: Iterable[str] = LAZY_PAGE_FIELDS
    ) -> list[str]:
        """Return the codes of the entry that starts at `start`, after converting these fields of its page.

        Of an entry that has no page, nobody needs the codes: none are returned.
        """
        for name in fields if page is not None else ():
            getattr(page, name)
        found = [] if page is None else self.codes_from(start)
        self.logged.clear()
        return found

    def codes_from(self, start: int | Place) -> list[str]:
        """Return the codes that were logged behind the start of an entry.

        Use this alone for lines: a line may have several entries, and a problem of the line belongs to all.
        """
        return sorted(code for code, at in self.logged.items() if _is_within(at, start))


def _is_within(at: At, start: int | Place) -> bool:
    """Return whether a problem lies behind the start of an entry or, in a text, on its line or below."""
    if callable(at):
        at = at()
    if isinstance(at, Place):
        return isinstance(start, Place) and at.line >= start.line
    return at is not None and isinstance(start, int) and at >= start


class PureEntryPages:
    """Makes pages of entries."""

    def __init__(self, parser: EntryParser) -> None:
        self._parser = parser

    def page(self, entry: Element) -> SitemapPage | None:
        """Return the page of an entry, or None if it has no usable URL."""
        return self._parser.page(entry)

    def pages(self, entries: Iterable[Element], is_new: Callable[[str], bool]) -> list[SitemapPage]:
        """Return the pages of those entries that are pages, and whose URLs are new."""
        made = (self._parser.page(entry) for entry in entries if entry.name != "sitemap")
        return [page for page in made if page is not None and is_new(page.url)]

    def inspect(self, entry: Element) -> str | None:
        """Convert every field of the page of an entry, to log its problems. Return its URL, None if it has no page."""
        page = self._parser.page(entry)
        if page is None:
            return None
        for name in self._parser.fields_of(entry):
            getattr(page, name)
        return page.url

    def declared(self, entry: Element) -> tuple[str, datetime | None] | None:
        """Return the URL and the date of the sitemap that an entry declares, or None if it has no usable URL."""
        return self._parser.declared(entry)

    def add_rows(self, entries: Iterable[Element], reader: PureColumns, codes: EntryCodes | None) -> None:
        """Add the pages of those entries that are pages to columns, with the codes of their problems if asked for."""
        for entry in entries:
            page = self._parser.page(entry) if entry.name != "sitemap" else None
            found = codes.end_entry(entry.at, page, self._parser.fields_of(entry)) if codes is not None else ()
            if page is not None:
                reader.append(page, last_modified_text(page), found)
