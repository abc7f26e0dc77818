"""The parsers of documents of lines: robots.txt and plain text. See `usp.fetch_parse.parsers`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from usp.fetch_parse.abstract import AbstractPagesParser, AbstractSitemapParser
from usp.fetch_parse.entry_codes import EntryCodes
from usp.fetch_parse.pages import TextLine
from usp.fetch_parse.parsed import ChildSitemap, ParsedSitemap
from usp.objects.page import SitemapPage, page_of
from usp.objects.pages import Pages
from usp.objects.parser import Inspector
from usp.objects.problem import UNLOGGED, Place, ProblemLog
from usp.objects.sitemap import IndexRobotsTxtSitemap, PagesTextSitemap
from usp.scan.columns import PureColumns
from usp.scan.elements import Element
from usp.scan.encodings import name_of_encoding
from usp.scan.lines import line_lists, robots_sitemaps, text_lines, urls_on_line, within
from usp.scan.urls import absolute_url
from usp.scan.vocabulary import Kind

__all__ = ["IndexRobotsTxtSitemapParser", "PlainTextSitemapParser"]

_LINE = Kind(frozenset({"loc"}))  # what a line of a text is read as


class IndexRobotsTxtSitemapParser(AbstractSitemapParser):
    """robots.txt: its `Sitemap:` lines."""

    def parse(self) -> ParsedSitemap:
        """The sitemaps that robots.txt names."""
        log = ProblemLog(self.url)
        children = self._children(log)
        return ParsedSitemap(self.url, IndexRobotsTxtSitemap, children=children, problems=log.problems(), parser=self)

    def inspect(self, log: ProblemLog, inspector: Inspector | None = None) -> None:
        """Log the problems of `Sitemap:` lines. They are no entries, so the inspector is not called."""
        self._children(log)

    def _children(self, log: ProblemLog) -> list[ChildSitemap]:
        children: dict[str, ChildSitemap] = {}
        for place, value in robots_sitemaps(self.open(log), log):
            url, was_absolute = absolute_url(value, self.url)
            if url is None:
                log.add("U502", place, text=value, where="a Sitemap line")
                continue
            if not was_absolute:
                log.add("R702", place, text=value)
            children.setdefault(url, ChildSitemap(url))
        return list(children.values())


class PlainTextSitemapParser(AbstractPagesParser):
    """Plain text: a URL on each line."""

    def parse(self) -> ParsedSitemap:
        """A text without any URL is no sitemap."""
        if next(self.pages(), None) is None:
            log = ProblemLog(self.url)
            self.inspect(log)
            is_empty = not log.counts["P412"]
            return self.not_supported("it is empty" if is_empty else "it is neither XML nor a list of URLs", log)
        return ParsedSitemap(
            self.url, PagesTextSitemap, pages=Pages(self.pages, self.columns), problems=self.problems, parser=self
        )

    def pages(self) -> Iterator[SitemapPage]:
        """The URLs, as pages."""
        seen = set()
        source = TextLine(self.url)
        for _, url in self._urls(UNLOGGED):
            if url not in seen:
                seen.add(url)
                yield page_of(url, source)

    def _collected(
        self, wanted: Collection[str], text: Iterable[bytes], codes: EntryCodes | None
    ) -> Iterator[PureColumns]:
        reader = self.readers.columns(lambda text: None, lambda entry, name: None, wanted)  # neither is asked
        log = codes or UNLOGGED
        source = TextLine(self.url)
        for lines in line_lists(text, log, reader.take_lines):
            for place, url in _urls_on(lines, log):
                page = page_of(url, source)
                reader.append(page, "", codes.end_entry(place, page) if codes else ())
            yield reader

    def inspect(self, log: ProblemLog, inspector: Inspector | None = None) -> None:
        """Note the lines that are no URLs. Those that are count as entries."""
        for place, url in self._urls(log):
            if inspector is not None:
                entry = Element("url", _LINE, place, {})
                entry.fields["loc"] = url
                inspector.entry(entry, url)
        if log.encoding != "utf-8":
            log.add("E204", text=name_of_encoding(log.encoding))

    def _urls(self, log: ProblemLog) -> Iterator[tuple[Place, str]]:
        return _urls_on(text_lines(self.open(log), log), log)


def _urls_on(lines: Iterable[tuple[Place, str]], log: ProblemLog) -> Iterator[tuple[Place, str]]:
    for place, line in lines:
        urls = urls_on_line(line)
        if not urls:
            log.add("P412", place, text=line)
        elif urls != [line]:
            log.add("P427", place, text=line)
        for url in urls:
            yield within(place, line, url), url
