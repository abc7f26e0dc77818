"""The parsers: one document in, one `Reading` out.

    AbstractSitemapParser
    ├── IndexRobotsTxtSitemapParser
    ├── PlainTextSitemapParser
    └── XMLSitemapParser               looks at the root and hands over to one of
            AbstractXMLSitemapParser
            ├── IndexXMLSitemapParser
            ├── PagesXMLSitemapParser      .Page  .Image
            ├── PagesRSSSitemapParser      .Page
            └── PagesAtomSitemapParser     .Page

A parser fetches nothing and knows nothing of where its document was found.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable
from typing import ClassVar

from usp.fetch_parse.pages import AtomPage, RSSPage, URLSetImage, URLSetPage, parsed_date, resolved_url
from usp.fetch_parse.reading import ChildSitemap, Reading
from usp.objects.page import SitemapPage
from usp.objects.problem import ProblemLog, printable, shortened
from usp.objects.sitemap import (
    AbstractSitemap,
    IndexRobotsTxtSitemap,
    IndexXMLSitemap,
    PagesAtomSitemap,
    PagesRSSSitemap,
    PagesTextSitemap,
    PagesXMLSitemap,
)
from usp.scan.elements import Element
from usp.scan.entries import XMLScanner
from usp.scan.lines import robots_sitemaps, text_lines, urls_on_line
from usp.scan.urls import absolute_url

__all__ = [
    "AbstractSitemapParser",
    "AbstractXMLSitemapParser",
    "IndexRobotsTxtSitemapParser",
    "IndexXMLSitemapParser",
    "PagesAtomSitemapParser",
    "PagesRSSSitemapParser",
    "PagesXMLSitemapParser",
    "PlainTextSitemapParser",
    "XMLSitemapParser",
]


class AbstractSitemapParser(abc.ABC):
    """Reads one document, given as pieces of UTF-8 text."""

    def __init__(self, url: str, content: Iterable[bytes], log: ProblemLog | None = None) -> None:
        self.url = url
        self.content = content
        self.log = log or ProblemLog(url)

    @abc.abstractmethod
    def reading(self) -> Reading:
        """What the document holds. To be called once."""

    def sitemap(self) -> AbstractSitemap:
        """The document as a sitemap whose children are left unfetched."""
        return self.reading().unfetched_sitemap()

    def not_supported(self, why: str) -> Reading:
        """The reading of a document that is no sitemap."""
        return Reading.invalid(
            self.url, f"No parsers support sitemap from {shortened(self.url)}: {why}", problems=self.log.problems()
        )


class IndexRobotsTxtSitemapParser(AbstractSitemapParser):
    """robots.txt: its `Sitemap:` lines."""

    def reading(self) -> Reading:
        """The sitemaps that robots.txt names."""
        children: dict[str, ChildSitemap] = {}
        for line, value in robots_sitemaps(self.content, self.log):
            url, was_absolute = absolute_url(value, self.url)
            if url is None:
                self.log.add("U502", line, text=value, where="a Sitemap line")
                continue
            if not was_absolute:
                self.log.add("R702", line, text=value)
            children.setdefault(url, ChildSitemap(url))
        return Reading(self.url, IndexRobotsTxtSitemap, children=list(children.values()), problems=self.log.problems())


class PlainTextSitemapParser(AbstractSitemapParser):
    """Plain text: a URL on each line."""

    def reading(self) -> Reading:
        """The lines that are URLs; a text without any is no sitemap."""
        pages: dict[str, SitemapPage] = {}
        is_empty = True
        for number, line in text_lines(self.content, self.log):
            is_empty = False
            urls = urls_on_line(line)
            for url in urls:
                pages.setdefault(url, SitemapPage(url))
            if not urls:
                self.log.add("P412", number, text=line)
        if not pages:
            return self.not_supported("it is empty" if is_empty else "it is neither XML nor a list of URLs")
        return Reading(self.url, PagesTextSitemap, pages=list(pages.values()), problems=self.log.problems())


class AbstractXMLSitemapParser(abc.ABC):
    """Collects the entries of a document with a known root."""

    sitemap_class: ClassVar[type[AbstractSitemap]]

    def __init__(self, url: str, log: ProblemLog, base: str = "") -> None:
        self.url = url
        self.log = log
        self.base = absolute_url(base, url)[0] or url  # what URLs are relative to
        self.pages: dict[str, SitemapPage] = {}
        self.children: dict[str, ChildSitemap] = {}

    def add(self, entry: Element) -> None:
        """Take in an entry; of several with the same URL the first counts."""
        if entry.name == "sitemap":
            self._add_child(entry)
            return
        base = absolute_url(entry.attributes.get("xml:base", ""), self.base)[0] or self.base
        page = ENTRIES[entry.name](entry, base, self.log).page()
        if page is not None:
            self.pages.setdefault(page.url, page)

    def _add_child(self, entry: Element) -> None:
        url = resolved_url(entry, self.base, self.log)
        if url is not None:
            self.children.setdefault(url, ChildSitemap(url, parsed_date(entry, "lastmod", self.log)))

    def reading(self) -> Reading:
        """All that was collected."""
        return Reading(
            self.url,
            self.sitemap_class,
            pages=list(self.pages.values()),
            children=list(self.children.values()),
            problems=self.log.problems(),
        )


class IndexXMLSitemapParser(AbstractXMLSitemapParser):
    """A `<sitemapindex>`."""

    sitemap_class = IndexXMLSitemap

    def add(self, entry: Element) -> None:
        """Take in a child, or a page that strayed here."""
        if entry.name == "url":
            self.log.add("P403", entry.line)
        super().add(entry)


class PagesXMLSitemapParser(AbstractXMLSitemapParser):
    """A `<urlset>`."""

    sitemap_class = PagesXMLSitemap
    Page = URLSetPage
    Image = URLSetImage

    def add(self, entry: Element) -> None:
        """Take in a page, or a child that strayed here."""
        if entry.name == "sitemap":
            self.log.add("P402", entry.line)
        super().add(entry)


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


class XMLSitemapParser(AbstractSitemapParser):
    """Any XML: looks at the root and hands over to its parser."""

    def reading(self) -> Reading:
        """What the document's own parser reads; a refused or unknown document is no sitemap."""
        scanner = XMLScanner(self.content, self.log)
        parser: AbstractXMLSitemapParser | None = None
        for entry in scanner:
            assert scanner.root is not None  # there are no entries before a root
            parser = parser or ROOT_PARSERS[scanner.root](self.url, self.log, scanner.base)
            parser.add(entry)
        if scanner.root is None:
            unknown = f"its root element is <{printable(scanner.unknown_root[:40])}>" if scanner.unknown_root else None
            return self.not_supported(scanner.refused or unknown or "it has no root element")
        if scanner.refused is not None:
            self.log.add("X116")
        return (parser or ROOT_PARSERS[scanner.root](self.url, self.log)).reading()
