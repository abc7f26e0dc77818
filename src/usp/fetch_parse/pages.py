"""From an entry of a document to the public `SitemapPage`: one small class for each kind of entry.

Each holds the texts of its entry as the site wrote them, under the names that parsers of ultimate-sitemap-parser
have, and converts them in `page()`. What cannot be converted is noted and becomes what an absent field would have
given.
"""

from __future__ import annotations

import abc
from datetime import datetime
from decimal import Decimal, InvalidOperation

from usp.fetch_parse.videos import video
from usp.objects.page import (
    SITEMAP_PAGE_DEFAULT_PRIORITY,
    SitemapImage,
    SitemapNewsStory,
    SitemapPage,
    SitemapPageChangeFrequency,
    SitemapVideo,
)
from usp.objects.problem import ProblemLog
from usp.scan.dates import parse_date
from usp.scan.elements import Element
from usp.scan.entities import unescape
from usp.scan.urls import absolute_url, is_http_url, unescaped_url

__all__ = ["AtomPage", "RSSPage", "URLSetImage", "URLSetPage", "parsed_date", "plain_text", "resolved_url"]

_IANA_RELATION = "http://www.iana.org/assignments/relation/"  # RFC 4287, 4.2.7.2
MIN_VALID_PRIORITY = Decimal("0.0")
MAX_VALID_PRIORITY = Decimal("1.0")


def plain_text(text: str) -> str | None:
    """A text without the HTML escaping that sites and feeds put below that of XML; None if it is empty."""
    return unescape(text).strip() or None


def resolved_url(entry: Element, base: str, log: ProblemLog) -> str | None:
    """The URL of a `<url>` or `<sitemap>`, made absolute; None, and noted, if there is none that counts."""
    text = entry.get("loc")
    if not text and is_http_url(entry.text):
        text = entry.text
        log.add("P404", entry.line, where=entry.name)
    if not text:
        if not entry.cut_off:
            log.add("P401", entry.line, where=entry.name)
        return None
    return resolved(text, base, "<loc>", entry.line, log)


def resolved(text: str, base: str, where: str, line: int, log: ProblemLog) -> str | None:
    """A URL made absolute; None, and noted, if it is none."""
    text = unescaped_url(text)
    url, was_absolute = absolute_url(text, base)
    if url is None:
        log.add("U502", line, text=text, where=where)
    elif not was_absolute:
        log.add("U501", line, text=text, where=where)
    return url


def parsed_date(entry: Element, name: str, log: ProblemLog) -> datetime | None:
    """The date in a field of this name; None, and noted, if it is no date."""
    text = entry.get(name)
    if not text:
        return None
    date = parse_date(unescape(text))
    if date is None:
        log.add("L301", entry.line, text=text, where=f"<{name}>")
    return date


def comma_separated(text: str) -> list[str]:
    """The parts of a text, split at commas."""
    return [part for part in (part.strip() for part in (plain_text(text) or "").split(",")) if part]


class URLSetImage:
    """The texts of an `<image:image>`."""

    __slots__ = ("caption", "geo_location", "license", "loc", "title")

    def __init__(self, group: Element) -> None:
        self.loc = unescaped_url(group.get("loc"))
        self.caption = plain_text(group.get("caption"))
        self.geo_location = plain_text(group.get("geo_location"))
        self.title = plain_text(group.get("title"))
        self.license = plain_text(group.get("license"))

    def image(self, base: str, line: int, log: ProblemLog) -> SitemapImage | None:
        """The image; None, and noted, if it has no URL."""
        if not self.loc:
            log.add("P409", line)
            return None
        url, was_absolute = absolute_url(self.loc, base)
        if not was_absolute:
            log.add("U501", line, text=self.loc, where="<image:loc>")
        return SitemapImage(url or self.loc, self.caption, self.geo_location, self.title, self.license)


class URLSetPage:
    """The texts of a `<url>`."""

    __slots__ = (
        "alternates",
        "base",
        "change_frequency",
        "entry",
        "images",
        "last_modified",
        "log",
        "news_access",
        "news_genres",
        "news_keywords",
        "news_publication_language",
        "news_publication_name",
        "news_publish_date",
        "news_stock_tickers",
        "news_title",
        "priority",
        "url",
    )

    def __init__(self, entry: Element, base: str, log: ProblemLog) -> None:
        self.entry = entry
        self.base = base
        self.log = log
        self.url = entry.get("loc")
        self.last_modified = entry.get("lastmod")
        self.change_frequency = entry.get("changefreq")
        self.priority = entry.get("priority")
        news = self._news_group()
        publication = next(iter(news.all("publication")), None) if news else None
        self.news_title = news.get("title") if news else ""
        self.news_publish_date = news.get("publication_date") if news else ""
        self.news_publication_name = publication.get("name") if publication else ""
        self.news_publication_language = publication.get("language") if publication else ""
        self.news_access = news.get("access") if news else ""
        self.news_genres = news.get("genres") if news else ""
        self.news_keywords = news.get("keywords") if news else ""
        self.news_stock_tickers = news.get("stock_tickers") if news else ""
        self.images = [URLSetImage(group) for group in entry.all("image")]
        self.alternates = [link.attributes for link in entry.all("link")]

    def _news_group(self) -> Element | None:
        return next(iter(self.entry.all("news")), None)

    def page(self) -> SitemapPage | None:
        """The page; None, and noted, if it has no URL that counts."""
        url = resolved_url(self.entry, self.base, self.log)
        if url is None:
            return None
        return SitemapPage(
            url=url,
            priority=self._priority(),
            last_modified=parsed_date(self.entry, "lastmod", self.log),
            change_frequency=self._change_frequency(),
            news_story=self._news_story(),
            images=self._images() or None,
            alternates=self._alternates() or None,
            videos=self._videos() or None,
        )

    def _priority(self) -> Decimal:
        if not self.priority:
            return SITEMAP_PAGE_DEFAULT_PRIORITY
        try:
            priority = Decimal(self.priority)
            if MIN_VALID_PRIORITY <= priority <= MAX_VALID_PRIORITY:
                return priority
        except InvalidOperation:
            pass
        self.log.add("P406", self.entry.line, text=self.priority)
        return SITEMAP_PAGE_DEFAULT_PRIORITY

    def _change_frequency(self) -> SitemapPageChangeFrequency | None:
        frequency = self.change_frequency.lower()
        if not frequency:
            return None
        if SitemapPageChangeFrequency.has_value(frequency):
            return SitemapPageChangeFrequency(frequency)
        self.log.add("P407", self.entry.line, text=self.change_frequency)
        return SitemapPageChangeFrequency.ALWAYS

    def _news_story(self) -> SitemapNewsStory | None:
        group = self._news_group()
        if group is None:
            return None
        title = plain_text(self.news_title)
        date = parsed_date(group, "publication_date", self.log)
        if title is None or date is None:
            self.log.add("P408", group.line, where="a title" if title is None else "a publication date")
            return None
        return SitemapNewsStory(
            title=title,
            publish_date=date,
            publication_name=plain_text(self.news_publication_name),
            publication_language=plain_text(self.news_publication_language),
            access=plain_text(self.news_access),
            genres=comma_separated(self.news_genres),
            keywords=comma_separated(self.news_keywords),
            stock_tickers=comma_separated(self.news_stock_tickers),
        )

    def _images(self) -> list[SitemapImage]:
        images = (image.image(self.base, self.entry.line, self.log) for image in self.images)
        return [image for image in images if image is not None]

    def _videos(self) -> list[SitemapVideo]:
        return [video(group, self.base, self.log) for group in self.entry.all("video")]

    def _alternates(self) -> list[tuple[str, str]]:
        found = []
        for link in self.alternates:
            language, href = link.get("hreflang"), link.get("href")
            if not language or not href or "alternate" not in link.get("rel", "alternate").lower().split():
                continue
            url = resolved(href, self.base, "<xhtml:link>", self.entry.line, self.log)
            if url is not None:
                found.append((language, url))
        return found


class _FeedPage(abc.ABC):
    """What an RSS item and an Atom entry have in common: a link, and a title and date that make a news story."""

    __slots__ = ("base", "description", "entry", "link", "log", "publication_date", "title")

    def __init__(self, entry: Element, base: str, log: ProblemLog) -> None:
        self.entry = entry
        self.base = base
        self.log = log
        self.title = entry.get("title")
        self.description = entry.get("description", "summary", "tagline")
        self.link = self._link()
        self.publication_date = self._date_field()

    @abc.abstractmethod
    def _link(self) -> str:
        """The URL of the page; empty if there is none."""

    @abc.abstractmethod
    def _date_field(self) -> str:
        """The name of the field that has the date; empty if there is none."""

    def page(self) -> SitemapPage | None:
        """The page; None, and noted, if it has no link that counts."""
        if not self.link:
            if not self.entry.cut_off:
                self.log.add("P411", self.entry.line)
            return None
        url = resolved(self.link, self.base, "<link>", self.entry.line, self.log)
        if url is None:
            return None
        title = plain_text(self.title) or plain_text(self.description)
        date = parsed_date(self.entry, self.publication_date, self.log) if self.publication_date else None
        story = SitemapNewsStory(title=title, publish_date=date) if title else None
        return SitemapPage(url=url, news_story=story)

    def _first_field(self, *names: str) -> str:
        return next((name for name in names if self.entry.get(name)), "")


class RSSPage(_FeedPage):
    """An `<item>` of an RSS feed."""

    __slots__ = ()

    def _link(self) -> str:
        """The link; else a guid that is a permanent link; else what RDF says the item is about."""
        for link in self.entry.all("link"):
            if text := link.text or link.attributes.get("href"):
                return text
        for guid in self.entry.all("guid"):
            # A guid is a permanent link unless it says otherwise. https://www.rssboard.org/rss-specification#ltguidgtSubelementOfLtitemgt
            if guid.attributes.get("ispermalink", "true").lower() == "true" and absolute_url(guid.text, "")[0]:
                return guid.text
        return self.entry.attributes.get("rdf:about", "")

    def _date_field(self) -> str:
        return self._first_field("pubdate", "date")


class AtomPage(_FeedPage):
    """An `<entry>` of an Atom feed."""

    __slots__ = ()

    def _link(self) -> str:
        """The link to the page: `alternate`, which a link without `rel` means too; else the entry's own, `self`."""
        for wanted in ("alternate", "self"):
            for link in self.entry.all("link"):
                relation = (link.attributes.get("rel") or "alternate").lower().removeprefix(_IANA_RELATION)
                if relation == wanted:
                    if href := link.attributes.get("href") or link.text:
                        return href
        return ""

    def _date_field(self) -> str:
        return self._first_field("published", "issued", "updated", "modified", "created")
