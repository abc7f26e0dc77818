"""The parsers: one document in, one `ParsedSitemap` out. Here are those of XML.

    AbstractSitemapParser                     in `abstract`
    ├── IndexRobotsTxtSitemapParser           in `lines`
    └── AbstractPagesParser                   in `abstract`
        ├── PlainTextSitemapParser            in `lines`
        └── XMLSitemapParser           looks at the root and hands its entries to one of
                AbstractXMLSitemapParser
                ├── IndexXMLSitemapParser
                ├── PagesXMLSitemapParser      .Page  .Image
                ├── PagesRSSSitemapParser      .Page
                └── PagesAtomSitemapParser     .Page

A parser fetches nothing and knows nothing of where its document was found. `parse()` does what a tree needs at once;
pages and problems are read when they are asked for, from the document opened anew.
"""

from __future__ import annotations

import abc
from collections.abc import Collection, Iterable, Iterator
from typing import Any, ClassVar

from usp.fetch_parse.abstract import AbstractPagesParser
from usp.fetch_parse.entry_codes import EntryCodes
from usp.fetch_parse.pages import (
    AtomPage,
    RSSPage,
    URLSetImage,
    URLSetPage,
    parsed_date,
    resolved,
    resolved_url,
)
from usp.fetch_parse.parsed import ChildSitemap, ParsedSitemap
from usp.objects.page import LAZY_PAGE_FIELDS, SitemapPage, last_modified_text
from usp.objects.pages import Pages
from usp.objects.parser import Inspector
from usp.objects.problem import UNLOGGED, ProblemLog, printable
from usp.objects.sitemap import (
    AbstractSitemap,
    IndexXMLSitemap,
    PagesAtomSitemap,
    PagesRSSSitemap,
    PagesXMLSitemap,
)
from usp.scan.columns import PureColumns
from usp.scan.elements import Element
from usp.scan.encodings import name_of_encoding
from usp.scan.entries import XMLScanner
from usp.scan.places import places_of
from usp.scan.urls import absolute_url

__all__ = [
    "AbstractXMLSitemapParser",
    "IndexXMLSitemapParser",
    "PagesAtomSitemapParser",
    "PagesRSSSitemapParser",
    "PagesXMLSitemapParser",
    "XMLSitemapParser",
]

_MAX_TAG_START = 4_096  # bytes at the end of a piece that are looked at again with the next one


class AbstractXMLSitemapParser(abc.ABC):
    """Turns the entries of a document with a known root into pages and children."""

    sitemap_class: ClassVar[type[AbstractSitemap]]
    strays: ClassVar[dict[str, str]] = {}  # entries that do not belong here -> the problem that they are

    def __init__(self, url: str, log: ProblemLog, base: str = "") -> None:
        self.url = url
        self.log = log
        self.base = absolute_url(base, url)[0] or url  # what URLs are relative to

    def page(self, entry: Element) -> SitemapPage | None:
        """The page of an entry, if it is one."""
        self._note_stray(entry)
        base = absolute_url(entry.attributes.get("xml:base", ""), self.base)[0] or self.base
        return ENTRIES[entry.name](entry, base, self.log, self.url).page()

    def pages(self, entries: Iterable[Element]) -> Iterator[SitemapPage]:
        """The pages of those entries that are pages."""
        for entry in entries:
            if entry.name != "sitemap" and (page := self.page(entry)) is not None:
                yield page

    def resolve(self, text: str) -> str | None:
        """The URL that the text of a `<loc>` means."""
        return resolved(text, self.base, "<loc>", None, self.log)

    def convert(self, entry: Element, name: str) -> Any:
        """The field of a page, by its name, that an entry means."""
        return URLSetPage(entry, self.base, self.log, self.url).value(name)

    def child(self, entry: Element) -> ChildSitemap | None:
        """The sitemap that an entry declares."""
        self._note_stray(entry)
        url = resolved_url(entry, self.base, self.log)
        return None if url is None else ChildSitemap(url, parsed_date(entry, "lastmod", self.log))

    def _note_stray(self, entry: Element) -> None:
        if entry.name in self.strays:
            self.log.add(self.strays[entry.name], entry.at)


class IndexXMLSitemapParser(AbstractXMLSitemapParser):
    """A `<sitemapindex>`."""

    sitemap_class = IndexXMLSitemap
    strays: ClassVar[dict[str, str]] = {"url": "P403"}


class PagesXMLSitemapParser(AbstractXMLSitemapParser):
    """A `<urlset>`."""

    sitemap_class = PagesXMLSitemap
    strays: ClassVar[dict[str, str]] = {"sitemap": "P402"}
    Page = URLSetPage
    Image = URLSetImage


class PagesRSSSitemapParser(AbstractXMLSitemapParser):
    """An RSS feed."""

    sitemap_class = PagesRSSSitemap
    Page = RSSPage


class PagesAtomSitemapParser(AbstractXMLSitemapParser):
    """An Atom feed."""

    sitemap_class = PagesAtomSitemap
    Page = AtomPage


#: The name of an entry's element -> what it becomes.
ENTRIES: dict[str, type[URLSetPage | RSSPage | AtomPage]] = {
    "url": PagesXMLSitemapParser.Page,
    "item": PagesRSSSitemapParser.Page,
    "entry": PagesAtomSitemapParser.Page,
}
#: The name of a root element -> its parser.
ROOT_PARSERS: dict[str, type[AbstractXMLSitemapParser]] = {
    "urlset": PagesXMLSitemapParser,
    "sitemapindex": IndexXMLSitemapParser,
    "rss": PagesRSSSitemapParser,
    "feed": PagesAtomSitemapParser,
}


class XMLSitemapParser(AbstractPagesParser):
    """Any XML: looks at the root and hands over to its parser."""

    def parse(self) -> ParsedSitemap:
        """An index is read at once; of any other sitemap, only whether it has children.

        A refused or unknown document is no sitemap.
        """
        log = ProblemLog(self.url)
        scanner = self._scanner(log)
        scanner.find_root()
        if scanner.root is None:
            unknown = f"its root element is <{printable(scanner.unknown_root[:40])}>" if scanner.unknown_root else None
            return self.not_supported(scanner.tokens.refused or unknown or "it has no root element", log)
        sitemap_class = ROOT_PARSERS[scanner.root].sitemap_class
        pages = Pages(self.pages, self.columns)
        if scanner.root == "sitemapindex":
            children, has_pages = self._read(scanner, log)
            listed: Pages | list[SitemapPage] = pages if has_pages else []
            return ParsedSitemap(self.url, sitemap_class, listed, children, problems=log.problems(), parser=self)
        children = []
        if self._may_hold_sitemaps(scanner.tokens.rest()):
            children, _ = self._read(self._scanner(UNLOGGED), UNLOGGED)
        return ParsedSitemap(self.url, sitemap_class, pages, children, problems=self.problems, parser=self)

    def pages(self) -> Iterator[SitemapPage]:
        """The pages of the entries."""
        # Not itertools.chain: threads that share one crash Python.
        for pages in self._page_lists():
            yield from pages

    def inspect(self, log: ProblemLog, inspector: Inspector | None = None) -> None:
        """Convert every field of every entry."""
        self._read(self._scanner(log), log, inspector)

    def _collected(
        self, wanted: Collection[str], text: Iterable[bytes], codes: EntryCodes | None
    ) -> Iterator[PureColumns]:
        log = codes or UNLOGGED
        scanner = XMLScanner(text, log)
        scanner.find_root()
        if scanner.root is None:
            return
        parser = self._parser(scanner, log)
        reader = self.readers.columns(parser.resolve, parser.convert, wanted)
        for _, entries in scanner.batches(reader):
            for entry in entries:
                page = parser.page(entry) if entry.name != "sitemap" else None
                noted = codes.end_entry(entry.at, page) if codes else ()
                if page is not None:
                    reader.append(page, last_modified_text(page), noted)
            yield reader

    def _scanner(self, log: ProblemLog) -> XMLScanner:
        if log is not UNLOGGED:
            log.locate = lambda offsets: places_of(offsets, self.open(UNLOGGED))
        return XMLScanner(self.open(log), log)

    def _parser(self, scanner: XMLScanner, log: ProblemLog) -> AbstractXMLSitemapParser:
        """The parser for the entries of a document that has a root."""
        scanner.find_root()
        assert scanner.root is not None
        return ROOT_PARSERS[scanner.root](self.url, log, scanner.base)

    def _read(
        self, scanner: XMLScanner, log: ProblemLog, inspector: Inspector | None = None
    ) -> tuple[list[ChildSitemap], bool]:
        """All of the document: its children, and whether it has pages. What is in order is passed over."""
        children: dict[str, ChildSitemap] = {}
        parser = self._parser(scanner, log)
        reader = self.readers.check() if inspector is None else inspector.reader
        has_pages = False
        for _, entries in scanner.batches(reader):
            for entry in entries:
                found: ChildSitemap | SitemapPage | None
                if entry.name == "sitemap":
                    if (found := parser.child(entry)) is not None:
                        children.setdefault(found.url, found)
                elif (found := parser.page(entry)) is not None:
                    has_pages = True
                    for name in LAZY_PAGE_FIELDS:
                        getattr(found, name)
                if inspector is not None:
                    inspector.entry(entry, None if found is None else found.url)
        if scanner.tokens.refused is not None:
            log.add("X116", scanner.tokens.tag_at)
        if log.encoding != "utf-8" and scanner.root in ("urlset", "sitemapindex"):
            log.add("E204", text=name_of_encoding(log.encoding))
        return list(children.values()), has_pages or reader.has_pages

    def _page_lists(self) -> Iterator[Iterable[SitemapPage]]:
        scanner = self._scanner(UNLOGGED)
        parser = self._parser(scanner, UNLOGGED)
        reader = self.readers.pages(parser.resolve, parser.convert)
        for pages, entries in scanner.batches(reader):
            yield pages or (page for page in parser.pages(entries) if reader.is_new(page.url))

    def _may_hold_sitemaps(self, pieces: Iterable[bytes]) -> bool:
        """Whether a text may list sitemaps. It is wrong for few that do not."""
        before = b""
        for piece in pieces:
            edge = before + piece[:_MAX_TAG_START]  # a tag may be cut in two
            if self.readers.may_hold_sitemaps(piece) or self.readers.may_hold_sitemaps(edge):
                return True
            tail = piece[-_MAX_TAG_START:] if len(piece) >= _MAX_TAG_START else edge[-_MAX_TAG_START:]
            before = tail[max(tail.rfind(b"<"), 0) :]
        return False
