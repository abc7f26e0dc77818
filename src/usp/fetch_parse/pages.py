"""From an entry of a document to a `SitemapPage`: one class for each kind of entry.

Each class holds the texts of its entry as the site wrote them. `page()` makes the page, and `value(name)` converts one
of its fields when somebody reads it. A value that cannot be converted is logged as a problem; the page then has what it
would have without the field.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from usp.objects.page import (
    LAZY_PAGE_FIELDS,
    SITEMAP_PAGE_DEFAULT_PRIORITY,
    SitemapImage,
    SitemapNewsStory,
    SitemapPage,
    SitemapPageChangeFrequency,
    SitemapVideo,
    SitemapVideoTvShow,
    page_of,
    video_of,
)
from usp.objects.problem import At, ProblemLog
from usp.scan.columns import check_names
from usp.scan.dates import parse_date
from usp.scan.elements import Element, alternate_link
from usp.scan.urls import (
    URLForm,
    absolute_url,
    is_http_url,
    is_placeholder,
    is_plain_http_url,
    unescaped_url,
    unwrapped,
)
from usp.scan.values import comma_separated, parse_change_frequency, parse_priority, plain_text, unescape
from usp.scan.vocabulary import TV_SHOW_FIELDS, VIDEO_FIELDS, VIDEO_URLS, Form

__all__ = [
    "URL_PROBLEMS",
    "AtomPage",
    "RSSPage",
    "TextLine",
    "URLSetImage",
    "URLSetPage",
    "parsed_date",
    "resolved",
    "resolved_url",
]

#: How a date should be written: https://www.w3.org/TR/NOTE-datetime, but in RSS as in mail (RFC 822).
W3C_FORM = "YYYY-MM-DD or YYYY-MM-DDThh:mm:ss+hh:mm"
_MAIL_FORM = "one like Wed, 08 May 2024 10:00:00 +0200"
#: How a text states a URL -> the code of the problem.
URL_PROBLEMS = {
    URLForm.RELATIVE: "U501",
    URLForm.NOT_HTTP: "U502",
    URLForm.WITHOUT_SCHEME: "U514",
    URLForm.PLACEHOLDER: "U515",
}
_MEDIA_PROBLEMS = URL_PROBLEMS | {URLForm.NOT_HTTP: "U513"}  # of images and videos, which keep their text
_IANA_RELATION = "http://www.iana.org/assignments/relation/"  # RFC 4287, 4.2.7.2


def resolved_url(entry: Element, base: str, log: ProblemLog) -> str | None:
    """Return the absolute URL of a `<url>` or `<sitemap>`; log a problem and return None if it has none."""
    text = entry.get("loc")
    if not text and is_http_url(entry.text):
        text = entry.text
        log.add("P404", entry.at, where=entry.name)
    if not text:
        if not entry.cut_off:
            log.add("P401", entry.at, where=entry.name)
        return None
    return resolved(text, base, "<loc>", entry.place_of("loc"), log)


def resolved(text: str, base: str, where: str, at: At, log: ProblemLog, *, may_be_relative: bool = False) -> str | None:
    """Return a URL made absolute; log a problem and return None if the text is no URL."""
    if is_plain_http_url(text):
        return text  # as nearly all are
    written, text = text, unescaped_url(text)
    url, form = absolute_url(text, base)
    if form is URLForm.ABSOLUTE:
        if url != text:
            log.add("U512", at, text=text, where=where)
    elif form is not URLForm.RELATIVE or not may_be_relative:
        log.add(URL_PROBLEMS[form], at, text=text, where=where)
    if text != written:
        log.add("U511", at, text=written, where=where)
    return url


def parsed_date(entry: Element, name: str, log: ProblemLog, where: str = "", form: str = W3C_FORM) -> datetime | None:
    """Return the date in a field, or None if it is empty or no date. A message says how to write it: in this `form`."""
    text = entry.get(name)
    if not text:
        return None
    date = parse_date(unescape(text))
    if date is None:
        log.add("L302", entry.place_of(name), text=text, where=f"<{where or name}>", form=form)
    return date


def _text(text: str) -> str | None:
    return unescape(text) or None


def _url(text: str) -> str | None:
    return unescaped_url(text) or None


def _words(text: str) -> list[str]:
    return unescape(text).split()


def _integer(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _decimal(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _yes_or_no(text: str) -> bool | None:
    return {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}.get(text.lower())


def _date(text: str) -> datetime | None:
    return parse_date(unescape(text))


Convert = Callable[[str], Any]

# The fields of videos. `usp.scan.vocabulary.VIDEO_FIELDS` lists them, so a new one changes nothing here.

#: How a document writes a value -> how to convert it.
_CONVERTERS: dict[Form, Convert] = {
    Form.TEXT: _text,
    Form.URL: _url,
    Form.DATE: _date,
    Form.INTEGER: _integer,
    Form.DECIMAL: _decimal,
    Form.YES_NO: _yes_or_no,
    Form.WORDS: _words,
}
_VIDEO_WITH_ATTRIBUTES = {field.element for field in VIDEO_FIELDS.values() if field.attribute}
#: Fields from elements without attributes -> the element, and how to convert its text.
_VIDEO_PLAIN = {
    name: (field.element, _CONVERTERS[field.form])
    for name, field in VIDEO_FIELDS.items()
    if field.form in _CONVERTERS and field.element not in _VIDEO_WITH_ATTRIBUTES
}
#: Elements with attributes -> their fields: the name, the attribute or "" for the text, and how to convert it.
_VIDEO_ATTRIBUTED = {
    element: [
        (name, field.attribute, _CONVERTERS[field.form])
        for name, field in VIDEO_FIELDS.items()
        if field.element == element
    ]
    for element in sorted(_VIDEO_WITH_ATTRIBUTES)
}
#: Fields from groups, or from elements that repeat.
_VIDEO_REPEATED = {name: field for name, field in VIDEO_FIELDS.items() if field.form not in _CONVERTERS}
_TV_SHOW_FIELDS = {name: (name, _CONVERTERS[form]) for name, form in TV_SHOW_FIELDS.items()}


def _video(group: Element, base: str, log: ProblemLog) -> SitemapVideo:
    """Return the video in a `<video:video>`, without the fields that cannot be converted. Resolve relative URLs.

    https://www.google.com/schemas/sitemap-video/1.1/sitemap-video.xsd
    """
    values = _converted_fields(group, _VIDEO_PLAIN, log)
    children: dict[str, list[Element]] = {}
    for child in group.children:
        children.setdefault(child.name, []).append(child)
    for tag in _VIDEO_ATTRIBUTED.keys() & children.keys():
        element = children[tag][0]
        for name, attribute, convert in _VIDEO_ATTRIBUTED[tag]:
            text = element.attributes.get(attribute) if attribute else element.text
            if text is not None:
                values[name] = convert(text)
    for name in sorted(VIDEO_URLS & values.keys()):
        values[name] = _resolved_video_url(values[name], base, group, name, log)
    for name, field in _VIDEO_REPEATED.items() if children else ():
        elements = children.get(field.element)
        if elements is None:
            continue
        if field.form is Form.TEXTS:
            values[name] = [text for element in elements if (text := _text(element.text))]
        elif field.form is Form.TEXTS_WITH_ATTRIBUTES:
            values[name] = [(unescape(element.text), element.attributes) for element in elements]
        else:
            values[name] = SitemapVideoTvShow(**_converted_fields(elements[0], _TV_SHOW_FIELDS, log))
    return video_of(values)


def _resolved_video_url(text: str | None, base: str, group: Element, name: str, log: ProblemLog) -> str | None:
    """Return a URL of a video made absolute; text that is no URL as it is, but None for a placeholder.

    Log a problem unless it was absolute.
    """
    if not text:
        return text
    url, form = absolute_url(text, base)
    if form in _MEDIA_PROBLEMS:
        tag = VIDEO_FIELDS[name].element
        element = next(iter(group.all(tag)), None)
        at = group.place_of(tag) if element is None else element.at
        log.add(_MEDIA_PROBLEMS[form], at, text=text, where=f"<video:{tag}>")
    return None if form is URLForm.PLACEHOLDER else url or text


def _converted_fields(group: Element, table: Mapping[str, tuple[str, Convert]], log: ProblemLog) -> dict[str, Any]:
    values: dict[str, Any] = {}
    fields = group.fields  # at hand: most of the table is not there
    for name, (tag, convert) in table.items():
        if text := fields.get(tag):
            values[name] = convert(text)
            if values[name] is None:
                at, where = group.place_of(tag), f"<video:{tag}>"
                if convert is _date:
                    log.add("L302", at, text=text, where=where, form=W3C_FORM)
                else:
                    log.add("P414", at, text=text, where=where)
    return values


class URLSetImage:
    """Holds the texts of an `<image:image>`."""

    __slots__ = ("at", "caption", "geo_location", "license", "loc", "title")

    def __init__(self, group: Element) -> None:
        self.at = group.place_of("loc")
        self.loc = unescaped_url(group.get("loc"))
        self.caption = plain_text(group.get("caption"))
        self.geo_location = plain_text(group.get("geo_location"))
        self.title = plain_text(group.get("title"))
        self.license = plain_text(group.get("license"))

    def image(self, base: str, log: ProblemLog) -> SitemapImage | None:
        """Return the image; log a problem and return None if it has no URL."""
        if not self.loc:
            log.add("P409", self.at)
            return None
        url, form = absolute_url(self.loc, base)
        if form in _MEDIA_PROBLEMS:
            log.add(_MEDIA_PROBLEMS[form], self.at, text=self.loc, where="<image:loc>")
        if form is URLForm.PLACEHOLDER:
            return None
        return SitemapImage(url or self.loc, self.caption, self.geo_location, self.title, self.license)


class URLSetPage:
    """Holds the texts of a `<url>`, and converts them to the fields of its page."""

    __slots__ = ("base", "entry", "log", "sitemap_url")

    def __init__(self, entry: Element, base: str, log: ProblemLog, sitemap_url: str) -> None:
        self.entry = entry
        self.base = base
        self.log = log
        self.sitemap_url = sitemap_url

    def page(self) -> SitemapPage | None:
        """Return the page; log a problem and return None if it has no usable URL."""
        url = resolved_url(self.entry, self.base, self.log)
        return None if url is None else page_of(url, self)

    @staticmethod
    def fields_of(entry: Element) -> Collection[str]:
        """Return the fields of the page that an entry may give."""
        if entry.children:
            return LAZY_PAGE_FIELDS
        return [_FIELDS_OF_TEXTS[name] for name in entry.fields if name in _FIELDS_OF_TEXTS]

    def value(self, name: str, /) -> Any:
        """Convert one field of the page."""
        return _URLSET_FIELDS[name](self)

    def last_modified_text(self) -> str:
        """Return the `<lastmod>` as the site wrote it."""
        return self.entry.get("lastmod")

    def _priority(self) -> Decimal:
        text = self.entry.get("priority")
        priority = parse_priority(text)
        if priority is None:
            self.log.add("P406", self.entry.place_of("priority"), text=text)
            return SITEMAP_PAGE_DEFAULT_PRIORITY
        return priority

    def _stated_priority(self) -> Decimal | None:
        text = self.entry.get("priority")
        return parse_priority(text) if text else None

    def _last_modified(self) -> datetime | None:
        return parsed_date(self.entry, "lastmod", self.log)

    def _change_frequency(self) -> SitemapPageChangeFrequency | None:
        text = self.entry.get("changefreq")
        if not text:
            return None
        frequency = parse_change_frequency(text)
        if frequency is None:
            self.log.add("P407", self.entry.place_of("changefreq"), text=text)
            return SitemapPageChangeFrequency.ALWAYS
        return frequency

    def _news_story(self) -> SitemapNewsStory | None:
        group = next(iter(self.entry.all("news")), None)
        if group is None:
            return None
        title = plain_text(group.get("title"))
        date = parsed_date(group, "publication_date", self.log, "news:publication_date")
        if title is None or not group.get("publication_date"):
            self.log.add("P408", group.at, where="a title" if title is None else "a publication date")
        if title is None or date is None:
            return None
        publications = group.all("publication")
        return SitemapNewsStory(
            title=title,
            publish_date=date,
            publication_name=plain_text(publications[0].get("name")) if publications else None,
            publication_language=plain_text(publications[0].get("language")) if publications else None,
            access=plain_text(group.get("access")),
            genres=comma_separated(group.get("genres")),
            keywords=comma_separated(group.get("keywords")),
            stock_tickers=comma_separated(group.get("stock_tickers")),
        )

    def _images(self) -> list[SitemapImage] | None:
        images = (URLSetImage(group).image(self.base, self.log) for group in self.entry.all("image"))
        return [image for image in images if image is not None] or None

    def _videos(self) -> list[SitemapVideo] | None:
        groups = (group for group in self.entry.all("video") if not group.is_empty)
        return [_video(group, self.base, self.log) for group in groups] or None

    def _alternates(self) -> list[tuple[str, str]] | None:
        found = []
        for element in self.entry.all("link"):
            if (link := alternate_link(element)) is None:
                continue
            language, href = link
            if not element.attributes.get("rel"):
                self.log.add("H636", element.at, text=language)
            url = resolved(href, self.base, "<xhtml:link>", element.at, self.log)
            if url is not None:
                found.append((language, url))
        return found or None


#: Element of an entry that has only a text -> the field of the page.
_FIELDS_OF_TEXTS = {"lastmod": "last_modified", "changefreq": "change_frequency", "priority": "priority"}
#: Field of a page -> how to convert it.
_URLSET_FIELDS: dict[str, Callable[[URLSetPage], Any]] = {
    "priority": URLSetPage._priority,
    "last_modified": URLSetPage._last_modified,
    "change_frequency": URLSetPage._change_frequency,
    "news_story": URLSetPage._news_story,
    "images": URLSetPage._images,
    "alternates": URLSetPage._alternates,
    "videos": URLSetPage._videos,
    "sitemap_url": lambda page: page.sitemap_url,
    "stated_priority": URLSetPage._stated_priority,
    "stated_change_frequency": lambda page: parse_change_frequency(page.entry.get("changefreq")),
}
check_names(
    "_URLSET_FIELDS in usp/fetch_parse/pages.py",
    _URLSET_FIELDS,
    "SitemapPage in usp/objects/page.py",
    [*LAZY_PAGE_FIELDS, "sitemap_url", "stated_priority", "stated_change_frequency"],
)

#: The fields of a page that has only a URL. All others are None.
_BARE_FIELDS = {"priority": SITEMAP_PAGE_DEFAULT_PRIORITY}


class TextLine:
    """Stands for a line of plain text, which has only a URL."""

    __slots__ = ("sitemap_url",)

    def __init__(self, sitemap_url: str) -> None:
        self.sitemap_url = sitemap_url

    def value(self, name: str, /) -> Any:
        """Return what a page has without the field."""
        return _BARE_FIELDS.get(name) if name != "sitemap_url" else self.sitemap_url

    def last_modified_text(self) -> str:
        """Return an empty text: there is no date."""
        return ""


#: Date fields of feeds -> the element as a message names it, and the form of the date if it is not W3C_FORM.
_DATES_OF_FEEDS = {"pubdate": ("pubDate", _MAIL_FORM), "date": ("dc:date",)}


class _FeedPage(abc.ABC):
    """Holds the texts of an RSS item or an Atom entry: the link to its page, and the title and date of a news story."""

    __slots__ = ("base", "entry", "log", "sitemap_url")

    def __init__(self, entry: Element, base: str, log: ProblemLog, sitemap_url: str) -> None:
        self.sitemap_url = sitemap_url
        self.entry = entry
        self.base = base
        self.log = log

    @property
    def title(self) -> str:
        """The title, or an empty text."""
        return self.entry.get("title")

    @property
    def description(self) -> str:
        """What stands in for a title, or an empty text."""
        return self.entry.get("description", "summary", "tagline")

    @property
    def publication_date(self) -> str:
        """The name of the field that has the date, or an empty text."""
        return self._date_field()

    @abc.abstractmethod
    def _links(self) -> Iterator[str | None]:
        """Yield the URLs that may be that of the page, the best first."""

    @abc.abstractmethod
    def _date_field(self) -> str:
        """Return the name of the field that has the date, or an empty text."""

    def _link(self) -> str:
        """Return the first link that is neither empty nor a placeholder; if there is none, the first placeholder.

        Log a problem for a placeholder that another link stands in for.
        """
        skipped = ""
        for link in filter(None, self._links()):
            if link.startswith("http") or not is_placeholder(unwrapped(link)):
                if skipped:
                    self.log.add("U515", self.entry.at, text=skipped, where="<link>")
                return link
            skipped = skipped or link
        return skipped

    def page(self) -> SitemapPage | None:
        """Return the page; log a problem and return None if it has no usable link."""
        link = self._link() if self.entry.children or self.entry.attributes else ""
        if not link:
            if not self.entry.cut_off:
                self.log.add("P411", self.entry.at)
            return None
        is_based = self.base != self.sitemap_url  # there is an xml:base, so links may be relative
        url = resolved(link, self.base, "<link>", self.entry.at, self.log, may_be_relative=is_based)
        if url is None:
            return None
        return page_of(url, self)

    @staticmethod
    def fields_of(entry: Element) -> Collection[str]:
        """Return the fields of the page that an entry may give."""
        return ("news_story",)

    def value(self, name: str, /) -> Any:
        """Convert one field of the page. A feed gives no more than the news story."""
        if name == "news_story":
            return self._news_story()
        return _BARE_FIELDS.get(name) if name != "sitemap_url" else self.sitemap_url

    def last_modified_text(self) -> str:
        """Return an empty text: the dates of feeds belong to the news story."""
        return ""

    def _news_story(self) -> SitemapNewsStory | None:
        title = plain_text(self.title) or plain_text(self.description)
        name = self.publication_date
        date = parsed_date(self.entry, name, self.log, *_DATES_OF_FEEDS.get(name, ())) if name else None
        return SitemapNewsStory(title=title, publish_date=date) if title else None

    def _first_field(self, *names: str) -> str:
        for name in names:
            if self.entry.get(name):
                return name
        return ""


class RSSPage(_FeedPage):
    """Holds the texts of an `<item>` of an RSS feed."""

    __slots__ = ()

    def _links(self) -> Iterator[str | None]:
        """Yield the link, then a guid that is a permanent link, then the `rdf:about` of the item."""
        for link in self.entry.all("link"):
            yield link.text or link.attributes.get("href")
        for guid in self.entry.all("guid"):
            # A guid is a permanent link by default. https://www.rssboard.org/rss-specification#ltguidgtSubelementOfLtitemgt
            if guid.attributes.get("ispermalink", "true").lower() == "true" and absolute_url(guid.text, "")[0]:
                yield guid.text
        yield self.entry.attributes.get("rdf:about")

    def _date_field(self) -> str:
        return self._first_field("pubdate", "date")


class AtomPage(_FeedPage):
    """Holds the texts of an `<entry>` of an Atom feed."""

    __slots__ = ()

    def _links(self) -> Iterator[str | None]:
        """Yield the `alternate` links, which is also what a link without `rel` is, then the `self` links."""
        for wanted in ("alternate", "self"):
            for link in self.entry.all("link"):
                relation = (link.attributes.get("rel") or "alternate").lower().removeprefix(_IANA_RELATION)
                if relation == wanted:
                    yield link.attributes.get("href") or link.text

    def _date_field(self) -> str:
        return self._first_field("published", "issued", "updated", "modified", "created")
