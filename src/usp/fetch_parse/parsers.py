"""The parsers: each turns one document into a `ParsedSitemap`.

    AbstractSitemapParser                     in `abstract`
    ├── IndexRobotsTxtSitemapParser
    └── AbstractPagesParser                   in `abstract`
        ├── PlainTextSitemapParser
        └── XMLSitemapParser           finds the root element and passes the entries to one of
                AbstractXMLSitemapParser
                ├── IndexXMLSitemapParser
                ├── PagesXMLSitemapParser      .Page  .Image
                ├── PagesRSSSitemapParser      .Page
                └── PagesAtomSitemapParser     .Page

A parser fetches nothing and does not know where its document was found. `parse()` reads what the tree needs at once.
Pages and problems are read when somebody asks for them, from the document opened again.
"""

from __future__ import annotations

import abc
import math
import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

from usp.fetch_parse.abstract import AbstractPagesParser, AbstractSitemapParser
from usp.fetch_parse.pages import (
    URL_PROBLEMS,
    AtomPage,
    RSSPage,
    TextLine,
    URLSetImage,
    URLSetPage,
    parsed_date,
    resolved,
    resolved_url,
)
from usp.fetch_parse.parsed import ChildSitemap, ParsedSitemap
from usp.objects.page import Pages, SitemapPage, page_of
from usp.objects.parser import Inspector
from usp.objects.problem import UNLOGGED, Place, ProblemLog, Problems, printable
from usp.objects.sitemap import (
    AbstractSitemap,
    IndexRobotsTxtSitemap,
    IndexXMLSitemap,
    PagesAtomSitemap,
    PagesRSSSitemap,
    PagesTextSitemap,
    PagesXMLSitemap,
)
from usp.scan.columns import PAGE_TYPES, PureColumns
from usp.scan.elements import Element
from usp.scan.encodings import name_of_encoding
from usp.scan.entries import XMLScanner
from usp.scan.entry_pages import EntryCodes
from usp.scan.lines import (
    FoundURL,
    LineKind,
    TakeLines,
    line_lists,
    robots_sitemaps,
    urls_on_line,
    urls_without_scheme,
    within,
)
from usp.scan.places import places_of
from usp.scan.survey import SURVEYORS, PureURLTable
from usp.scan.urls import MAX_BASE, URLForm, absolute_url
from usp.scan.vocabulary import Kind
from usp.scan.well_formed import WellFormedness, log_refusal, refusal_of

__all__ = [
    "AbstractXMLSitemapParser",
    "IndexRobotsTxtSitemapParser",
    "IndexXMLSitemapParser",
    "PagesAtomSitemapParser",
    "PagesRSSSitemapParser",
    "PagesXMLSitemapParser",
    "PlainTextSitemapParser",
    "XMLSitemapParser",
]

_START_BYTES = 1 << 16  # of a document without a known root, to see what it was meant to be
_MAX_UNKNOWN_BYTES = 1 << 20  # of a document with an unknown root, in which an error is looked for
_SITEMAP_START = re.compile(rb"\s*+<(?:\?xml\b|urlset|sitemapindex|rss|feed)", re.IGNORECASE)
_HTML_TAG = re.compile(rb"<(?:!doctype\s+)?html\b", re.IGNORECASE)
_MAX_TAG_START = 4_096  # bytes at the end of a piece that are searched again together with the next piece
_TEXT_LINE = Kind(frozenset({"loc"}))  # an inspector sees a line of text as an entry that has only a <loc>


class IndexRobotsTxtSitemapParser(AbstractSitemapParser):
    """Parses a robots.txt: its `Sitemap:` lines."""

    def parse(self) -> ParsedSitemap:
        """Return the sitemaps that robots.txt names."""
        log = ProblemLog(self.url)
        children = self._children(log)
        return ParsedSitemap(
            self.url,
            IndexRobotsTxtSitemap,
            children=children,
            problems=log.problems(),
            parser=self,
            transport=self.transport,
        )

    def inspect(self, log: ProblemLog, inspector: Inspector | None = None) -> None:
        """Log the problems of `Sitemap:` lines. The inspector is called for each line that names a sitemap."""
        self._children(log, inspector)

    def _children(self, log: ProblemLog, inspector: Inspector | None = None) -> list[ChildSitemap]:
        children: dict[str, ChildSitemap] = {}
        skipper = self.readers.line_skipper(log, LineKind.SITEMAPS, self.url)
        for place, value in robots_sitemaps(self.open(log), log, self.is_cut, skipper):
            url, form = absolute_url(value, self.url)
            if form is URLForm.RELATIVE and not log.keeps("R702"):
                log.count("R702", 1, place)
            elif form is URLForm.RELATIVE:
                log.add("R702", place, text=value)
            elif form is not URLForm.ABSOLUTE:
                log.add(URL_PROBLEMS[form], place, text=value, where="a Sitemap line")
            if url is not None:
                if url not in children:
                    children[url] = ChildSitemap(url)
                if inspector is not None:
                    entry = Element("sitemap", _TEXT_LINE, place, {})
                    entry.fields["loc"] = url
                    inspector.entry(entry, url)
        return list(children.values())


class PlainTextSitemapParser(AbstractPagesParser):
    """Parses plain text with a URL on each line."""

    def parse(self) -> ParsedSitemap:
        """Return the text as a sitemap, or as an invalid one if it has no URL."""
        log = ProblemLog(self.url)
        batches = self._urls(self.open(log), log, None, LineKind.URLS_AND_PROBLEMS)
        if not any(found or next(urls, None) for found, urls in batches):
            self._note_encoding(log)
            is_empty = not log.counts["P412"]
            return self.not_supported("it is empty" if is_empty else "it is neither XML nor a list of URLs", log)
        pages = Pages(self.pages, self.columns, self.page_count)
        return ParsedSitemap(self.url, PagesTextSitemap, pages=pages, problems=self.problems, parser=self)

    def pages(self) -> Iterator[SitemapPage]:
        """Yield the URLs as pages."""
        # The two functions are for the fields of XML entries. A text has none, so they are never called.
        reader = self.readers.pages(lambda text: None, lambda entry, name: None)
        source = TextLine(self.url)
        taken: list[SitemapPage] = []
        count = 0

        def take(buffer: bytes, position: int) -> tuple[int, int]:
            nonlocal taken
            taken, position, lines = reader.take_lines(source, buffer, position)
            return position, lines

        for found, urls in self._urls(self.open(UNLOGGED), UNLOGGED, take, LineKind.URLS):
            count += len(taken)
            yield from taken
            taken = []
            for some in (found, urls):
                for _, url, *_ in some:
                    if reader.is_new(url):
                        count += 1
                        yield page_of(url, source)
        self.page_count.value = count

    def inspect(self, log: ProblemLog, inspector: Inspector | None = None) -> None:
        """Log the lines that are no URLs. The inspector is called for each URL that its reader does not skip."""
        reader = self.readers.check() if inspector is None else inspector.reader

        def take(buffer: bytes, position: int) -> tuple[int, int]:
            position, lines, with_fields = reader.take_lines(buffer, position, not log.keeps("P427"))
            if with_fields:
                log.count("P427", with_fields)
            return position, lines

        for found, urls in self._urls(self.open(log), log, take, LineKind.URLS_AND_PROBLEMS):
            if inspector is None:
                deque(urls, maxlen=0)  # logs their problems
                continue
            for some in (found, urls):
                for place, url, *_ in some:
                    if not inspector.skips_line(url):
                        entry = Element("url", _TEXT_LINE, place, {})
                        entry.fields["loc"] = url
                        inspector.entry(entry, url)
        self._note_encoding(log)

    def _read_columns(
        self, wanted: Collection[str], text: Iterable[bytes], codes: EntryCodes | None
    ) -> Iterator[PureColumns]:
        reader = self.readers.columns(lambda text: None, lambda entry, name: None, wanted)
        log = codes or UNLOGGED
        source = TextLine(self.url)
        for found, urls in self._urls(text, log, reader.take_lines, LineKind.URLS):
            for _, url, problems in found:
                reader.append_url(url, source, problems)
            for place, url in urls:
                reader.append_url(url, source, codes.codes_from(place) if codes and codes.logged else ())
            yield reader

    def _urls(
        self, text: Iterable[bytes], log: ProblemLog, take: TakeLines | None, kind: LineKind
    ) -> Iterator[tuple[list[FoundURL], Iterator[tuple[Place, str]]]]:
        """Yield URLs on lines that `take` does not take: those that the skipper found, then those that Python finds."""
        skipper = self.readers.line_skipper(log, kind, self.url)
        found: list[FoundURL] = []

        def find(buffer: bytes, position: int, number: int) -> tuple[int, int]:
            nonlocal found
            found, position, count = skipper.find(buffer, position, number)
            return position, count

        for lines in line_lists(text, log, take, self.is_cut, kind, None, find if skipper.skips_any else None):
            yield found, _urls_on(lines, self.url, log)
            found = []

    def _note_encoding(self, log: ProblemLog) -> None:
        if log.encoding != "utf-8":
            log.add("E204", text=name_of_encoding(log.encoding))


def _urls_on(lines: Iterable[tuple[Place, str]], base: str, log: ProblemLog) -> Iterator[tuple[Place, str]]:
    for place, line in lines:
        urls = urls_on_line(line)
        if urls == [line]:
            yield place, line
            continue
        texts = urls or urls_without_scheme(line, base)
        if not texts:
            log.add("P412", place, text=line)
        elif texts != [line]:
            log.add("P427", place, text=line)
        for text in texts:
            at = within(place, line, text)
            if not urls:
                log.add("U514", at, text=text, where="a line")
            url = text if urls else absolute_url(text, base)[0]
            if url is not None:
                yield at, url


class AbstractXMLSitemapParser(abc.ABC):
    """Turns the entries of a document with a known root into pages and children."""

    sitemap_class: ClassVar[type[AbstractSitemap]]
    strays: ClassVar[dict[str, str]] = {}  # entries that do not belong into such a document -> code of the problem

    def __init__(self, url: str, log: ProblemLog, base: str = "") -> None:
        self.url = url
        self.log = log
        self.base = _resolved_base(base, url)  # resolves relative URLs

    def page(self, entry: Element) -> SitemapPage | None:
        """Return the page of an entry, or None if the entry has no usable URL."""
        if entry.name in self.strays:
            self._log_stray(entry)
        written = entry.attributes.get("xml:base")
        base = _resolved_base(written, self.base) if written else self.base
        return ENTRIES[entry.name](entry, base, self.log, self.url).page()

    @property
    def sources(self) -> Mapping[str, type[URLSetPage | RSSPage | AtomPage]]:
        """Names of entries that are pages -> what converts their fields."""
        return ENTRIES

    @property
    def bare_source(self) -> TextLine:
        """The source of pages that have only a URL."""
        return TextLine(self.url)

    def fields_of(self, entry: Element) -> Collection[str]:
        """Return the fields of a page that its entry may give. The others are empty, and have no problems."""
        return ENTRIES[entry.name].fields_of(entry) if entry.name in ENTRIES else ()

    def resolve(self, text: str) -> str | None:
        """Return the URL in the text of a `<loc>`, or None if there is none."""
        return resolved(text, self.base, "<loc>", None, self.log)

    def convert(self, entry: Element, name: str) -> Any:
        """Return one field of the page of an entry."""
        return URLSetPage(entry, self.base, self.log, self.url).value(name)

    def declared(self, entry: Element) -> tuple[str, datetime | None] | None:
        """Return the URL and the date of the sitemap that an entry declares, or None if it has no usable URL."""
        self._log_stray(entry)
        url = resolved_url(entry, self.base, self.log)
        return None if url is None else (url, parsed_date(entry, "lastmod", self.log))

    def _log_stray(self, entry: Element) -> None:
        if entry.name in self.strays:
            self.log.add(self.strays[entry.name], entry.at)


def _resolved_base(written: str, outer: str) -> str:
    """Return what an `xml:base` makes of the base around it. One that is too long is ignored."""
    if not written or len(written) > MAX_BASE:
        return outer
    return absolute_url(written, outer)[0] or outer


class IndexXMLSitemapParser(AbstractXMLSitemapParser):
    """Turns the entries of a `<sitemapindex>` into children."""

    sitemap_class = IndexXMLSitemap
    strays: ClassVar[dict[str, str]] = {"url": "P403"}


class PagesXMLSitemapParser(AbstractXMLSitemapParser):
    """Turns the entries of a `<urlset>` into pages."""

    sitemap_class = PagesXMLSitemap
    strays: ClassVar[dict[str, str]] = {"sitemap": "P402"}
    Page = URLSetPage
    Image = URLSetImage


class PagesRSSSitemapParser(AbstractXMLSitemapParser):
    """Turns the items of an RSS feed into pages."""

    sitemap_class = PagesRSSSitemap
    Page = RSSPage


class PagesAtomSitemapParser(AbstractXMLSitemapParser):
    """Turns the entries of an Atom feed into pages."""

    sitemap_class = PagesAtomSitemap
    Page = AtomPage


#: Element of an entry -> class that makes its page.
ENTRIES: dict[str, type[URLSetPage | RSSPage | AtomPage]] = {
    "url": PagesXMLSitemapParser.Page,
    "item": PagesRSSSitemapParser.Page,
    "entry": PagesAtomSitemapParser.Page,
}
#: Root element -> parser of the entries.
ROOT_PARSERS: dict[str, type[AbstractXMLSitemapParser]] = {
    "urlset": PagesXMLSitemapParser,
    "sitemapindex": IndexXMLSitemapParser,
    "rss": PagesRSSSitemapParser,
    "feed": PagesAtomSitemapParser,
}


class _Children:
    """The sitemaps that a document lists, each once. Of those behind the first `most`, only the number is kept."""

    def __init__(self, most: int | None) -> None:
        self.more = 0
        self._most = math.inf if most is None else most
        self._kept: dict[str, datetime | None] = {}
        self._counted: PureURLTable | None = None  # the compiled one takes some 12 bytes for each

    def add(self, url: str, last_modified: datetime | None) -> None:
        """Add a sitemap."""
        if url in self._kept:
            return
        if len(self._kept) < self._most:
            self._kept[url] = last_modified
            return
        if self._counted is None:
            self._counted = SURVEYORS.url_table()
        if self._counted.find(url) < 0:
            self._counted.add(url, 0)
            self.more += 1

    def kept(self) -> list[ChildSitemap]:
        """Return the first of them, in order."""
        return [ChildSitemap(url, last_modified) for url, last_modified in self._kept.items()]


class XMLSitemapParser(AbstractPagesParser):
    """Parses any XML: finds the root element and passes the entries to the parser for that root."""

    def parse(self) -> ParsedSitemap:
        """Return the document as a sitemap, or as an invalid one if its root element is unknown or it is refused.

        An index is read whole. Any other document is read only if it may list sitemaps.
        """
        log = ProblemLog(self.url)
        scanner = self._scanner(log)
        scanner.find_root()
        if scanner.root is None:
            self._log_why_unknown(scanner, log)
            unknown = f"its root element is <{printable(scanner.unknown_root[:40])}>" if scanner.unknown_root else None
            return self.not_supported(scanner.tokens.refused or unknown or "it has no root element", log)
        sitemap_class = ROOT_PARSERS[scanner.root].sitemap_class
        pages = Pages(self.pages, self.columns, self.page_count)
        if scanner.root == "sitemapindex":
            children = _Children(self.max_children)
            listed: Pages | list[SitemapPage] = pages if self._read(scanner, log, children) else []
            return ParsedSitemap(
                self.url,
                sitemap_class,
                listed,
                children.kept(),
                more_children=children.more,
                problems=log.problems(),
                parser=self,
                transport=self.transport,
            )
        children = _Children(self.max_children)
        if self._may_hold_sitemaps(scanner.tokens.rest()):
            self._read(self._scanner(UNLOGGED), UNLOGGED, children)
        return ParsedSitemap(
            self.url,
            sitemap_class,
            pages,
            children.kept(),
            more_children=children.more,
            problems=self.problems,
            parser=self,
            transport=self.transport,
        )

    def pages(self) -> Iterator[SitemapPage]:
        """Yield the pages of the entries."""
        # Not itertools.chain, which crashes Python when threads share it.
        count = 0
        for pages in self._page_lists():
            count += len(pages)
            yield from pages
        self.page_count.value = count

    def inspect(self, log: ProblemLog, inspector: Inspector | None = None) -> None:
        """Convert every field of every entry, and log what is wrong."""
        self._read(self._scanner(log), log, None, inspector)

    def _read_columns(
        self, wanted: Collection[str], text: Iterable[bytes], codes: EntryCodes | None
    ) -> Iterator[PureColumns]:
        log = codes or UNLOGGED
        scanner = self.readers.scanner(text, log, self.is_cut)
        scanner.tokens.judge = None if codes is None else WellFormedness()
        scanner.find_root()
        if scanner.root is None:
            return
        parser = ROOT_PARSERS[scanner.root](self.url, log, scanner.base)
        maker = self.readers.entry_pages(parser)
        reader = self.readers.columns(parser.resolve, parser.convert, wanted)
        is_clean = scanner.root != "sitemapindex"  # as long as the reader leaves no entry to others
        for _, entries in scanner.batches(reader):
            is_clean &= not entries
            maker.add_rows(entries, reader, codes)
            yield reader
        if codes is not None:
            self._log_end(scanner, codes)
            if is_clean and not codes.logged and PAGE_TYPES.keys() <= set(wanted):
                self._problems = Problems()  # who reads all columns looks at everything, so nobody has to look again

    def _scanner(self, log: ProblemLog) -> XMLScanner:
        if log is not UNLOGGED:
            log.locate = lambda offsets: places_of(offsets, self.open(UNLOGGED))
        scanner = self.readers.scanner(self.open(log), log, self.is_cut)
        if log is not UNLOGGED:
            scanner.tokens.judge = WellFormedness()
        return scanner

    def _parser_of_entries(self, scanner: XMLScanner, log: ProblemLog) -> AbstractXMLSitemapParser | None:
        """Return the parser for the entries of a document; None if it was cut before its root."""
        scanner.find_root()
        return None if scanner.root is None else ROOT_PARSERS[scanner.root](self.url, log, scanner.base)

    def _read(
        self, scanner: XMLScanner, log: ProblemLog, children: _Children | None, inspector: Inspector | None = None
    ) -> bool:
        """Read the whole document, and collect its children, if they are wanted. Return whether it has pages.

        The reader skips entries that have no problems.
        """
        if (parser := self._parser_of_entries(scanner, log)) is None:
            return False
        reader = self.readers.check() if inspector is None else inspector.reader
        maker = self.readers.entry_pages(parser)
        has_pages = False
        for _, entries in scanner.batches(reader):
            for entry in entries:
                if entry.name == "sitemap":
                    url, last_modified = maker.declared(entry) or (None, None)
                    if url is not None and children is not None:
                        children.add(url, last_modified)
                elif (url := maker.inspect(entry)) is not None:
                    has_pages = True
                if inspector is not None and url is not None:
                    inspector.entry(entry, url)
        self._log_end(scanner, log)
        return has_pages or reader.has_pages

    def _log_end(self, scanner: XMLScanner, log: ProblemLog) -> None:
        """Log what is known at the end of a document."""
        if scanner.tokens.refused is not None:
            log.add("X116", scanner.tokens.tag_at)
        if log.encoding != "utf-8" and scanner.root in ("urlset", "sitemapindex"):
            log.add("E204", text=name_of_encoding(log.encoding))
        self._log_refusal(scanner, log)

    def _log_refusal(self, scanner: XMLScanner, log: ProblemLog) -> None:
        """Log what other parsers refuse, unless the scanner has repaired and logged it."""
        tokens = scanner.tokens
        if tokens.judge is None or tokens.refused is not None:
            return
        end = tokens.finish()
        error = tokens.judge.error if log.is_cut or self.is_cut() else tokens.judge.finish(end)
        if tokens.judge.is_accepted:  # then all elements are closed, but some where they may not be
            log.recode("X107", "P428")
            log.recode("X106", None)
        elif error is not None:
            log_refusal(error, log)
            if error.code == "X117":  # the one error behind which the rest can be read
                other = refusal_of(self.open(UNLOGGED), False, is_cut=bool(log.is_cut or self.is_cut()))
                if other is not None:
                    log_refusal(other, log)

    def _log_why_unknown(self, scanner: XMLScanner, log: ProblemLog) -> None:
        """Log why other parsers refuse a document that has no known root, if it was meant to be a sitemap."""
        if scanner.tokens.refused is not None:
            return
        start = b""
        for piece in self.open(UNLOGGED):
            start = (start + piece).lstrip()[:_START_BYTES]
            if len(start) == _START_BYTES:
                break
        if _SITEMAP_START.match(start) and not _HTML_TAG.search(start):
            error = refusal_of(self.open(UNLOGGED), most=_MAX_UNKNOWN_BYTES, is_cut=bool(log.is_cut or self.is_cut()))
            if error is not None and not log.counts[error.code]:
                log.add(error.code, error.offset, text=error.text, where=error.where)

    def _page_lists(self) -> Iterator[Sequence[SitemapPage]]:
        scanner = self._scanner(UNLOGGED)
        if (parser := self._parser_of_entries(scanner, UNLOGGED)) is None:
            return
        maker = self.readers.entry_pages(parser)
        reader = self.readers.pages(parser.resolve, parser.convert)
        for pages, entries in scanner.batches(reader):
            yield pages or maker.pages(entries, reader.is_new)

    def _may_hold_sitemaps(self, pieces: Iterable[bytes]) -> bool:
        """Return whether a text may list sitemaps. A few that do not are taken for one that does."""
        before = b""
        for piece in pieces:
            edge = before + piece[:_MAX_TAG_START]  # a tag may be split between two pieces
            if self.readers.may_hold_sitemaps(piece) or self.readers.may_hold_sitemaps(edge):
                return True
            tail = piece[-_MAX_TAG_START:] if len(piece) >= _MAX_TAG_START else edge[-_MAX_TAG_START:]
            before = tail[max(tail.rfind(b"<"), 0) :]
        return False
