"""Fast readers: they read plain entries, which are nearly all, many times faster than the general scanner.

A plain entry is a well-formed entry of a urlset with nothing to repair. A fast reader takes plain entries from a
buffer as long as there are any. Where it meets another entry, or an incomplete one, the general scanner of `entries`
goes on. The general scanner would read plain entries just the same: a fast reader has no rules of its own, and takes
only what means the same to both.

    pages, position, more, full = reader.take(grammar, buffer, position)

`pages` are made from the entries, and `position` is where the entries end. If `full`, there are more entries to take.
If `more`, the next bytes of the document may complete another one.

The compiled readers take every entry of a `grammar`. The readers here take only entries with the four fields of the
protocol in their usual order. `READERS` are those in use. Where the bytes come from is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from usp.compiled import IS_COMPILED
from usp.objects.lazy import Source
from usp.objects.page import SITEMAP_PAGE_DEFAULT_PRIORITY, SitemapPage, SitemapPageChangeFrequency, page_of
from usp.scan.columns import PAGE_COLUMNS, PAGE_TYPES, VALUE_GETTERS, PureColumns
from usp.scan.dates import parse_date
from usp.scan.elements import Element
from usp.scan.entries import XMLScanner
from usp.scan.entry_pages import PureEntryPages
from usp.scan.grammar import Grammar
from usp.scan.lines import MAX_LINE_BYTES, PureLineSkipper
from usp.scan.urls import is_plain_http_url
from usp.scan.values import MAX_FIELD_BYTES, parse_change_frequency, parse_priority, plain_text_of, text_of, unescape
from usp.scan.vocabulary import Kind

__all__ = [
    "PURE",
    "READERS",
    "CheckingReader",
    "Reader",
    "Readers",
    "Taken",
    "is_clean",
    "may_go_on",
    "next_entry",
    "next_url_line",
]

Taken = tuple[list[SitemapPage], int, bool, bool]
#: Returns the URL that the text of a `<loc>` means, or None.
Resolve = Callable[[str], str | None]
#: Converts an element to the field of a page with this name.
Convert = Callable[[Element, str], Any]

_ENTRY = re.compile(
    rb"[ \t\r\n]*+<url>[ \t\r\n]*+<loc>([^<]++)</loc>[ \t\r\n]*+(?:<lastmod>([^<]*+)</lastmod>[ \t\r\n]*+)?+"
    rb"(?:<changefreq>([^<]*+)</changefreq>[ \t\r\n]*+)?+(?:<priority>([^<]*+)</priority>[ \t\r\n]*+)?+</url>"
)
_START_OF_ENTRY = re.compile(
    rb"\s*+(?:<url>\s*+(?:<(loc|lastmod|changefreq|priority)>[^<]*+</\1>\s*+)*+"
    rb"(?:<(?:loc|lastmod|changefreq|priority)>[^<]*+)?+)?+"
)
_URL_LINE = re.compile(  # or a blank one; the LF of a CR at the end may be still to come
    rb"[ \t]*+(https?://(?!\.)[.-]*+\w[\w.-]*+(?:[/?#][!-~]*+)?(?<![<>\"'`\]]))?[ \t]*+(?:\r?\n|\r(?!\Z))",
    re.IGNORECASE,
)
_W3C_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d)?)?", re.ASCII)
_MAX_TAG_BYTES = 16
_MAX_PAGES = 512
_NO_ELEMENT = Element("url", Kind(), 0, {})
_short_text = lru_cache(maxsize=1_024)(text_of)  # of fields that have few distinct values


class Reader(Protocol):
    """A fast reader."""

    def take(self, grammar: Grammar, buffer: bytes, position: int, /) -> Taken:
        """Take plain entries; see the module."""


class CheckingReader(Reader, Protocol):
    """A reader that skips the entries that need no closer look."""

    @property
    def has_pages(self) -> bool:
        """Whether it skipped any entries."""

    def take_lines(self, buffer: bytes, position: int, takes_fields: bool, /) -> tuple[int, int, int]:
        """Skip lines that are blank, or URLs without problems. Return where they end, and how many they are.

        If it `takes_fields`, other texts may follow a URL behind a tab. The last number is that of such lines. Plain
        Python takes none.
        """


class _Entry:
    """The texts of a plain entry, from which its page's fields are converted."""

    __slots__ = ("_change_frequency", "_convert", "_last_modified", "_priority")

    def __init__(
        self, convert: Convert, last_modified: bytes | None, change_frequency: bytes | None, priority: bytes | None
    ) -> None:
        self._convert = convert
        self._last_modified = last_modified
        self._change_frequency = change_frequency
        self._priority = priority

    def value(self, name: str, /) -> Any:
        """Return the value of a field of the page."""
        if name == "last_modified":
            return _date_of(unescape(self.last_modified_text()))
        if name in ("priority", "stated_priority"):
            text = _short_text(self._priority or b"")
            priority = parse_priority(text) if text else None
            return SITEMAP_PAGE_DEFAULT_PRIORITY if priority is None and name == "priority" else priority
        if name in ("change_frequency", "stated_change_frequency"):
            text = _short_text(self._change_frequency or b"")
            frequency = parse_change_frequency(text) if text else None
            return (
                SitemapPageChangeFrequency.ALWAYS
                if not frequency and text and name == "change_frequency"
                else frequency
            )
        return self._convert(_NO_ELEMENT, name) if name == "sitemap_url" else None

    def last_modified_text(self) -> str:
        """Return the text of the last modification, as it was written."""
        return text_of(self._last_modified or b"")


def _date_of(text: str) -> datetime | None:
    """Parse a date as `parse_date` does, but faster if it is in the form of the protocol."""
    if _W3C_DATE.fullmatch(text):
        with suppress(ValueError):
            return datetime.fromisoformat(text)
    return parse_date(text)


def next_entry(grammar: Grammar, buffer: bytes, position: int) -> re.Match[bytes] | None:
    """Return the texts of the plain entry at this position, or None."""
    match = _ENTRY.match(buffer, position)
    if match is None or b"url" not in grammar.names or match.end() - position > MAX_FIELD_BYTES:
        return None
    return None if match[1].isspace() else match


def next_url_line(buffer: bytes, position: int) -> re.Match[bytes] | None:
    """Return the line at this position if it is a URL, which is the first group, or blank; else None."""
    match = _URL_LINE.match(buffer, position)
    return None if match is None or match.end() - position > MAX_LINE_BYTES else match


def may_go_on(buffer: bytes, position: int) -> bool:
    """Return whether the rest of the buffer may be the start of a plain entry."""
    start = _START_OF_ENTRY.match(buffer, position)
    end = start.end() if start else position
    rest = buffer[end : end + _MAX_TAG_BYTES]
    is_cut = end + len(rest) == len(buffer) and b">" not in rest and rest[:1] in (b"", b"<")
    return is_cut and len(buffer) - position <= MAX_FIELD_BYTES


class PurePages:
    """Makes pages of plain entries. Skips URLs that were listed before."""

    def __init__(self, resolve: Resolve, convert: Convert) -> None:
        self._resolve = resolve
        self._convert = convert
        self._seen: set[str] = set()

    def is_new(self, url: str) -> bool:
        """Add a URL. Return False if it was added before."""
        if url in self._seen:
            return False
        self._seen.add(url)
        return True

    def take(self, grammar: Grammar, buffer: bytes, position: int, /) -> Taken:
        """Take plain entries; see the module."""
        pages: list[SitemapPage] = []
        seen = self._seen
        while match := next_entry(grammar, buffer, position):
            if len(pages) == _MAX_PAGES:
                return pages, position, False, True
            position = match.end()
            loc, last_modified, change_frequency, priority = match.groups()
            text = text_of(loc)
            url = text if is_plain_http_url(text) else self._resolve(text)
            if url is not None and url not in seen:
                seen.add(url)
                pages.append(page_of(url, _Entry(self._convert, last_modified, change_frequency, priority)))
        return pages, position, may_go_on(buffer, position), False

    def take_lines(self, source: Source, buffer: bytes, position: int, /) -> tuple[list[SitemapPage], int, int]:
        """Return pages with this source of the lines that are URLs, where they end, and how many lines they are."""
        pages: list[SitemapPage] = []
        count = 0
        while match := next_url_line(buffer, position):
            position = match.end()
            count += 1
            if match[1] and self.is_new(url := match[1].decode()):
                pages.append(page_of(url, source))
        return pages, position, count


class PureCheck:
    """Skips plain entries in which nothing is wrong, not even a value."""

    def __init__(self) -> None:
        self.has_pages = False

    def take(self, grammar: Grammar, buffer: bytes, position: int, /) -> Taken:
        """Return where the entries without problems end; see the module."""
        while match := next_entry(grammar, buffer, position):
            if not is_clean(*match.groups(b"")):
                return [], position, False, False
            self.has_pages = True
            position = match.end()
        return [], position, may_go_on(buffer, position), False

    def take_lines(self, buffer: bytes, position: int, takes_fields: bool, /) -> tuple[int, int, int]:
        """Skip lines that are URLs or blank; see `CheckingReader`."""
        count = 0
        while match := next_url_line(buffer, position):
            position = match.end()
            count += 1
        return position, count, 0


def is_clean(loc: bytes, last_modified: bytes, change_frequency: bytes, priority: bytes) -> bool:
    """Return whether each text is a valid value of its field and needs no repair."""
    if b"&amp;amp;" in loc or b"]]>" in loc:
        return False  # escaped twice; the end of a CDATA section that never started
    url = plain_text_of(loc.replace(b"&amp;", b"+"))
    if url is None or not is_plain_http_url(url) or not _are_clean(change_frequency, priority):
        return False
    date = plain_text_of(last_modified)
    return date is not None and (not date or _date_of(date) is not None)


@lru_cache(maxsize=1_024)  # there are few distinct ones
def _are_clean(change_frequency: bytes, priority: bytes) -> bool:
    frequency, number = plain_text_of(change_frequency), plain_text_of(priority)
    if frequency is None or number is None or parse_priority(number) is None:
        return False
    return not frequency or parse_change_frequency(frequency) is not None


def may_hold_sitemaps(text: bytes) -> bool:
    """Return whether a text may have a tag whose name starts with "sitemap", with or without a prefix."""
    lower = text.lower()
    return b"<sitemap" in lower or b":sitemap" in lower or lower.startswith(b"sitemap")


class PurePlainColumns(PureColumns):
    """Collects columns from plain entries, and page by page.

    If problems are wanted, it takes only entries that have none.
    """

    def __init__(self, resolve: Resolve, convert: Convert, wanted: Collection[str] = PAGE_TYPES) -> None:
        super().__init__(wanted)
        self._resolve = resolve
        self._convert = convert
        self._leaves_unclean = "problems" in wanted
        # An entry that this class takes has no extensions.
        self._getters = {
            name: VALUE_GETTERS[name] for name in VALUE_GETTERS if name in wanted and not PAGE_COLUMNS[name].element
        }

    def take(self, grammar: Grammar, buffer: bytes, position: int, /) -> Taken:
        """Take plain entries; return no pages."""
        for _ in range(_MAX_PAGES):
            match = next_entry(grammar, buffer, position)
            if match is None:
                return [], position, may_go_on(buffer, position), False
            texts = match.groups(b"")
            if self._leaves_unclean and not is_clean(*texts):
                return [], position, False, False
            position = match.end()
            text = text_of(texts[0])
            url = text if is_plain_http_url(text) else self._resolve(text)
            if url is not None and (row := self._add_url(url)) >= 0:
                self._add(row, page_of(url, _Entry(self._convert, *texts[1:])))
        return [], position, False, True

    def take_lines(self, buffer: bytes, position: int, /) -> tuple[int, int]:
        """Take lines that are URLs or blank. Return where they end, and how many they are."""
        count = 0
        while match := next_url_line(buffer, position):
            position = match.end()
            count += 1
            if match[1]:
                self._add_url(match[1].decode())
        return position, count

    def _add(self, row: int, page: SitemapPage) -> None:
        for name, get_value in self._getters.items():
            if (value := get_value(page)) is not None:
                self._values[name][row] = value
        if "last_modified_text" in self._values:
            self._add_text(row, page.last_modified, page._source.last_modified_text())


class Readers(NamedTuple):
    """The readers that are used together."""

    pages: type[PurePages]
    check: type[PureCheck]
    columns: type[PurePlainColumns]
    may_hold_sitemaps: Callable[[bytes], bool]
    scanner: type[XMLScanner] = XMLScanner  # the general one, for what the others do not take
    entry_pages: type[PureEntryPages] = PureEntryPages  # makes pages of its entries
    line_skipper: type[PureLineSkipper] = PureLineSkipper


PURE = Readers(PurePages, PureCheck, PurePlainColumns, may_hold_sitemaps)

if TYPE_CHECKING or not IS_COMPILED:
    READERS = PURE
else:
    from usp.scan import (
        _buffers,
        _check,
        _columns,
        _elements,
        _entries,
        _entry_pages,
        _extensions,
        _line_skipper,
        _markup,
        _pages,
        _references,
        _scanner,
        _texts,
        _tokens,
    )

    for _module in (
        *(_references, _texts, _entries, _buffers, _pages, _check, _extensions, _columns),
        *(_markup, _tokens, _elements, _scanner, _entry_pages, _line_skipper),
    ):
        _module.bind()
    READERS = Readers(
        _pages.PlainPages,
        _check.PlainCheck,
        _columns.PlainColumns,
        _entries.may_hold_sitemaps,
        _scanner.XMLScanner,
        _entry_pages.EntryPages,
        _line_skipper.LineSkipper,
    )
