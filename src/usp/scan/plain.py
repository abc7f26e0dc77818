"""Plain entries: those of a urlset in which nothing is to be put right. Nearly all are, and they are read fast.

A reader takes plain entries from a buffer for as long as there are any; where there is another one, or none that is
whole, the general scanner of `entries` goes on. It would read plain entries just the same, so a reader decides nothing:
it takes only what it knows to mean the same to both.

    pages, position, more, full = reader.take(grammar, buffer, position)

`pages` are those made of the entries, and `position` is where the entries end. With `full`, there are more of them;
with `more`, the rest of the document may make another one whole.

The compiled readers (`_plain`) know every entry of a `grammar`; these here only the four fields of the protocol, in the
usual order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from usp.compiled import IS_COMPILED
from usp.objects.page import SITEMAP_PAGE_DEFAULT_PRIORITY, SitemapPage, SitemapPageChangeFrequency, page_of
from usp.scan.columns import PAGE_COLUMNS, PAGE_TYPES, VALUE_GETTERS, PureColumns
from usp.scan.dates import parse_date
from usp.scan.elements import Element
from usp.scan.grammar import Grammar
from usp.scan.urls import is_plain_http_url
from usp.scan.values import MAX_FIELD_BYTES, parse_change_frequency, parse_priority, plain_text_of, text_of, unescape
from usp.scan.vocabulary import Kind

__all__ = ["PURE", "READERS", "CheckingReader", "Reader", "Readers", "Taken", "is_clean", "may_go_on", "next_entry"]

Taken = tuple[list[SitemapPage], int, bool, bool]
#: The URL that the text of a `<loc>` means, if any.
Resolve = Callable[[str], str | None]
#: The field of a page, by its name, that an element means.
Convert = Callable[[Element, str], Any]

_ENTRY = re.compile(
    rb"\s*+<url>\s*+<loc>([^<]++)</loc>\s*+(?:<lastmod>([^<]*+)</lastmod>\s*+)?+"
    rb"(?:<changefreq>([^<]*+)</changefreq>\s*+)?+(?:<priority>([^<]*+)</priority>\s*+)?+</url>"
)
_START_OF_ENTRY = re.compile(
    rb"\s*+(?:<url>\s*+(?:<(loc|lastmod|changefreq|priority)>[^<]*+</\1>\s*+)*+"
    rb"(?:<(?:loc|lastmod|changefreq|priority)>[^<]*+)?+)?+"
)
_URL_LINE = re.compile(  # or a blank one
    rb"(https?://[.-]*+\w[\w.-]*+(?:[/?#][!-~]{0,60000}+)?(?<![<>\"'`\]]))?[ \t]*+\r?\n", re.IGNORECASE
)
_W3C_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d)?)?", re.ASCII)
_MAX_TAG_BYTES = 16
_MAX_PAGES = 512
_NO_ELEMENT = Element("url", Kind(), 0, {})
_short_text = lru_cache(maxsize=1_024)(text_of)  # of fields that have few distinct values


class Reader(Protocol):
    """Takes plain entries from a buffer."""

    def take(self, grammar: Grammar, buffer: bytes, position: int, /) -> Taken:
        """Pages, where they end, whether more of the document may bring another, and whether there are others."""


class CheckingReader(Reader, Protocol):
    """A reader that skips the entries that need no closer look."""

    @property
    def has_pages(self) -> bool:
        """Whether it skipped any entries."""


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
        """The page's field of this name, converted."""
        if name == "last_modified":
            return _date_of(unescape(self.last_modified_text()))
        if name == "priority":
            priority = parse_priority(_short_text(self._priority or b""))
            return SITEMAP_PAGE_DEFAULT_PRIORITY if priority is None else priority
        if name == "change_frequency":
            text = _short_text(self._change_frequency or b"")
            return (parse_change_frequency(text) or SitemapPageChangeFrequency.ALWAYS) if text else None
        return self._convert(_NO_ELEMENT, name) if name == "sitemap_url" else None

    def last_modified_text(self) -> str:
        """The text of the last modification, as it was written."""
        return text_of(self._last_modified or b"")


def _date_of(text: str) -> datetime | None:
    """The same as `parse_date`, which takes longer for what is as it should be."""
    if _W3C_DATE.fullmatch(text):
        with suppress(ValueError):
            return datetime.fromisoformat(text)
    return parse_date(text)


def next_entry(grammar: Grammar, buffer: bytes, position: int) -> re.Match[bytes] | None:
    """The texts of the plain entry that stands here, if one does."""
    match = _ENTRY.match(buffer, position)
    if match is None or b"url" not in grammar.names or match.end() - position > MAX_FIELD_BYTES:
        return None
    return None if match[1].isspace() else match


def may_go_on(buffer: bytes, position: int) -> bool:
    """Whether what is left of the buffer may be the start of a plain entry."""
    start = _START_OF_ENTRY.match(buffer, position)
    end = start.end() if start else position
    rest = buffer[end : end + _MAX_TAG_BYTES]
    is_cut = end + len(rest) == len(buffer) and b">" not in rest and rest[:1] in (b"", b"<")
    return is_cut and len(buffer) - position <= MAX_FIELD_BYTES


class PurePages:
    """Makes pages of plain entries, but for those whose URL was there already."""

    def __init__(self, resolve: Resolve, convert: Convert) -> None:
        self._resolve = resolve
        self._convert = convert
        self._seen: set[str] = set()

    def is_new(self, url: str) -> bool:
        """Whether a URL was not there yet."""
        if url in self._seen:
            return False
        self._seen.add(url)
        return True

    def take(self, grammar: Grammar, buffer: bytes, position: int, /) -> Taken:
        """See the module."""
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


class PureCheck:
    """Passes over plain entries in which nothing is wrong, not even a value."""

    def __init__(self) -> None:
        self.has_pages = False

    def take(self, grammar: Grammar, buffer: bytes, position: int, /) -> Taken:
        """Where those entries end that are in order; see the module."""
        while match := next_entry(grammar, buffer, position):
            if not is_clean(*match.groups(b"")):
                return [], position, False, False
            self.has_pages = True
            position = match.end()
        return [], position, may_go_on(buffer, position), False


def is_clean(loc: bytes, last_modified: bytes, change_frequency: bytes, priority: bytes) -> bool:
    """Whether each text is a value that its field may have, and none has anything to put right."""
    if b"&amp;amp;" in loc:
        return False  # escaped twice
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
    """Whether a text may have a tag whose name is, or begins with, sitemap, behind any prefix."""
    lower = text.lower()
    return b"<sitemap" in lower or b":sitemap" in lower or lower.startswith(b"sitemap")


class PurePlainColumns(PureColumns):
    """Collects columns: of plain entries, and page by page. If problems are wanted, only of entries that have none."""

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
        """Take plain entries; gives no pages."""
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
        """Take lines that are a URL, or blank; gives where they end, and how many they are."""
        count = 0
        while match := _URL_LINE.match(buffer, position):
            position = match.end()
            count += 1
            if match[1] and (row := self._add_url(match[1].decode())) >= 0 and "priority" in self._values:
                self._values["priority"][row] = SITEMAP_PAGE_DEFAULT_PRIORITY
        return position, count

    def _add(self, row: int, page: SitemapPage) -> None:
        for name, get_value in self._getters.items():
            if (value := get_value(page)) is not None:
                self._values[name][row] = value
        if "last_modified_text" in self._values:
            self._add_text(row, page.last_modified, page._source.last_modified_text())


class Readers(NamedTuple):
    """The readers that go together."""

    pages: type[PurePages]
    check: type[PureCheck]
    columns: type[PurePlainColumns]
    may_hold_sitemaps: Callable[[bytes], bool]


PURE = Readers(PurePages, PureCheck, PurePlainColumns, may_hold_sitemaps)

if TYPE_CHECKING or not IS_COMPILED:
    READERS = PURE
else:
    from usp.scan import _buffers, _check, _columns, _entries, _extensions, _pages, _texts

    for _module in (_texts, _entries, _buffers, _pages, _check, _extensions, _columns):
        _module.bind()
    READERS = Readers(_pages.PlainPages, _check.PlainCheck, _columns.PlainColumns, _entries.may_hold_sitemaps)
