"""Pages of a website, with their news stories, images and videos.

All of them are immutable values: equal if their fields are equal, hashable, picklable, and each has a `to_dict()`.

A page that was read from a document converts a field when you first read that field (`usp.objects.lazy`). `Pages` is
the sequence of pages of one sitemap.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from decimal import Decimal
from enum import Enum, unique
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any, overload

from usp.objects.lazy import LazySlot, Source, maker_of
from usp.objects.wording import described, moment, plural, quoted, seconds

if TYPE_CHECKING:
    from usp.scan.columns import Columns

__all__ = [
    "LAZY_PAGE_FIELDS",
    "SITEMAP_PAGE_DEFAULT_PRIORITY",
    "PageCount",
    "Pages",
    "SitemapImage",
    "SitemapNewsStory",
    "SitemapPage",
    "SitemapPageChangeFrequency",
    "SitemapVideo",
    "SitemapVideoTvShow",
    "last_modified_text",
    "page_of",
    "stated_change_frequency",
    "stated_priority",
    "video_of",
]

#: The priority of a page whose sitemap gives none.
SITEMAP_PAGE_DEFAULT_PRIORITY = Decimal("0.5")

#: Takes the names of columns and reads the same pages as batches of these columns, with no object for each page.
ReadColumns = Callable[[Collection[str]], Iterator["Columns"]]

_NOTHING = object()
_FEW_PAGES = 1_000  # the first pages are read again, rather than kept


def _fields_to_dict(value: Any) -> dict[str, Any]:
    return {f.name: getattr(value, f.name) for f in fields(value)}


@unique
class SitemapPageChangeFrequency(Enum):
    """How often a page changes, as its sitemap says.

    https://www.sitemaps.org/protocol.html#changefreqdef
    """

    ALWAYS = "always"
    HOURLY = "hourly"
    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"
    YEARLY = "yearly"
    NEVER = "never"

    @classmethod
    def has_value(cls, value: object) -> bool:
        """Return whether a frequency has this value. "daily" is one; "DAILY" is not."""
        return isinstance(value, Hashable) and value in cls._value2member_map_


@dataclass(frozen=True, slots=True, repr=False)
class SitemapNewsStory:
    """A news story on a page, from a Google News sitemap or from an entry of a feed.

    A story from a feed has a title and, in most feeds, a date; the other fields are empty.

    https://developers.google.com/search/docs/crawling-indexing/sitemaps/news-sitemap
    """

    title: str
    """The title of the story."""
    publish_date: datetime | None
    """When the story was published. It has a time zone only if the document gives one."""
    publication_name: str | None = None
    """The name of the publication, such as a newspaper."""
    publication_language: str | None = None
    """The language of the publication: an ISO 639 code, such as "en" or "zh-cn"."""
    access: str | None = None
    """How to get access to the story: "Subscription" or "Registration". Google no longer uses it."""
    genres: list[str] = field(default_factory=list)
    """Genres of the story, such as "Blog" or "PressRelease". Google no longer uses them."""
    keywords: list[str] = field(default_factory=list)
    """Keywords of the story. Google no longer uses them."""
    stock_tickers: list[str] = field(default_factory=list)
    """Stock tickers of the companies in the story, such as "NASDAQ:AMAT". Google no longer uses them."""

    def __post_init__(self) -> None:
        # Callers of ultimate-sitemap-parser pass None where they have no list.
        for name in ("genres", "keywords", "stock_tickers"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, [])

    def __hash__(self) -> int:
        return hash((self.title, self.publish_date))

    def __repr__(self) -> str:
        language = f" ({self.publication_language})" if self.publication_language else ""
        publication = f"in {quoted(self.publication_name)}{language}" if self.publication_name else ""
        return described(self, quoted(self.title), moment("published", self.publish_date), publication)

    def to_dict(self) -> dict[str, Any]:
        """Return the story as a dictionary of its fields."""
        return _fields_to_dict(self)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class SitemapImage:
    """An image on a page.

    https://developers.google.com/search/docs/crawling-indexing/sitemaps/image-sitemaps
    """

    loc: str
    """The URL of the image."""
    caption: str | None
    """The caption of the image. Google no longer uses it."""
    geo_location: str | None
    """Where the image was taken, such as "Limerick, Ireland". Google no longer uses it."""
    title: str | None
    """The title of the image. Google no longer uses it."""
    license: str | None
    """The URL of the license of the image. Google no longer uses it."""

    def __init__(
        self,
        loc: str,
        caption: str | None = None,
        geo_location: str | None = None,
        title: str | None = None,
        license_: str | None = None,
    ) -> None:
        # Written by hand because the argument is called `license_` and the attribute `license`.
        values = {"loc": loc, "caption": caption, "geo_location": geo_location, "title": title, "license": license_}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return described(self, self.loc, quoted(self.title or self.caption))

    def to_dict(self) -> dict[str, Any]:
        """Return the image as a dictionary of its fields."""
        return _fields_to_dict(self)


@dataclass(frozen=True, slots=True, repr=False)
class SitemapVideoTvShow:
    """The television show that a video belongs to. Google no longer uses it."""

    show_title: str | None = None
    """The title of the show."""
    video_type: str | None = None
    """How the video relates to the show: "full", "preview", "clip", "interview", "news" or "other"."""
    episode_title: str | None = None
    """The title of the episode."""
    season_number: int | None = None
    """The number of the season."""
    episode_number: int | None = None
    """The number of the episode."""
    premier_date: datetime | None = None
    """When the video was first broadcast."""

    def __repr__(self) -> str:
        season = "" if self.season_number is None else f"season {self.season_number}"
        episode = "" if self.episode_number is None else f"episode {self.episode_number}"
        return described(self, quoted(self.show_title), season, episode, quoted(self.episode_title))

    def to_dict(self) -> dict[str, Any]:
        """Return the show as a dictionary of its fields."""
        return _fields_to_dict(self)


@dataclass(frozen=True, slots=True, repr=False)
class SitemapVideo:
    """A video on a page, with every field of Google's video schema, version 1.1.

    Texts are as the site wrote them. Numbers, dates and booleans are converted. A field is None if the site gives no
    value, or one that cannot be converted.

    https://developers.google.com/search/docs/crawling-indexing/sitemaps/video-sitemaps
    """

    title: str | None = None
    """The title of the video."""
    description: str | None = None
    """What the video is about."""
    thumbnail_loc: str | None = None
    """The URL of the thumbnail image."""
    content_loc: str | None = None
    """The URL of the media file."""
    player_loc: str | None = None
    """The URL of a player for this video."""
    player_allow_embed: bool | None = None
    """Whether search engines may embed the player."""
    player_autoplay: str | None = None
    """Parameters for the player, such as "ap=1", that start the video."""
    duration: int | None = None
    """The duration in seconds."""
    expiration_date: datetime | None = None
    """When the video will no longer be available."""
    publication_date: datetime | None = None
    """When the video was first published."""
    rating: Decimal | None = None
    """The rating, from 0.0 to 5.0."""
    view_count: int | None = None
    """How many times the video has been viewed."""
    family_friendly: bool | None = None
    """Whether the video may be shown with SafeSearch turned on."""
    requires_subscription: bool | None = None
    """Whether viewers need a subscription."""
    live: bool | None = None
    """Whether the video is a live stream."""
    category: str | None = None
    """The category of the video, such as "cooking"."""
    tags: list[str] = field(default_factory=list)
    """Tags of the video."""
    restriction: list[str] = field(default_factory=list)
    """Countries where the video may be shown or may not be shown, as ISO 3166 codes."""
    restriction_relationship: str | None = None
    """What `restriction` means: "allow" for only these countries, "deny" for all others."""
    platform: list[str] = field(default_factory=list)
    """Platforms where the video may be shown or may not be shown: "web", "mobile", "tv"."""
    platform_relationship: str | None = None
    """What `platform` means: "allow" for only these platforms, "deny" for all others."""
    gallery_loc: str | None = None
    """The URL of the gallery that the video is part of."""
    gallery_title: str | None = None
    """The title of that gallery."""
    uploader: str | None = None
    """The name of the person who uploaded the video."""
    uploader_info: str | None = None
    """The URL of a page about that person."""
    prices: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """Prices: for each, its text and its XML attributes, such as `("1.99", {"currency": "EUR"})`."""
    content_segments: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """URLs of the parts of the video: for each, the URL and its XML attributes, such as `{"duration": "600"}`."""
    ids: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """Identifiers of the video: for each, its text and its XML attributes, such as `{"type": "tms:series"}`."""
    tv_show: SitemapVideoTvShow | None = None
    """The television show that the video belongs to."""

    def __hash__(self) -> int:
        return hash((self.title, self.content_loc, self.player_loc, self.thumbnail_loc))

    def __repr__(self) -> str:
        duration = "" if self.duration is None else seconds(self.duration)
        place = self.content_loc or self.player_loc or self.thumbnail_loc or ""
        return described(self, quoted(self.title), duration, moment("published", self.publication_date), place)

    def to_dict(self) -> dict[str, Any]:
        """Return the video as a dictionary of its fields."""
        return _fields_to_dict(self) | {"tv_show": self.tv_show.to_dict() if self.tv_show else None}


#: Returns a video with the values of these fields, and nothing in the others.
video_of = maker_of(SitemapVideo)


class _Sourced:
    """Holds the entry that the fields of a page are converted from, if the page was read from a document."""

    __slots__ = ("_source",)
    _source: Source


@dataclass(frozen=True, slots=True, repr=False)
class SitemapPage(_Sourced):
    """A page of a website, with everything that its sitemap says about it.

    Two pages are equal if all their fields are equal, whichever sitemaps list them. Their hash depends on the URL only.
    """

    url: str
    """The URL of the page. It is absolute, even if the sitemap has a relative one."""
    priority: Decimal = SITEMAP_PAGE_DEFAULT_PRIORITY
    """The priority of the page within its site, from 0.0 to 1.0. It is 0.5 if the sitemap gives none."""
    last_modified: datetime | None = None
    """When the page last changed. It has a time zone only if the sitemap gives one."""
    change_frequency: SitemapPageChangeFrequency | None = None
    """How often the page changes."""
    news_story: SitemapNewsStory | None = None
    """The news story on the page."""
    images: list[SitemapImage] | None = None
    """Images on the page, or None if there are none."""
    alternates: list[tuple[str, str]] | None = None
    """Versions of the page in other languages: pairs of a language and a URL. None if there are none."""
    videos: list[SitemapVideo] | None = None
    """Videos on the page, or None if there are none."""

    def __hash__(self) -> int:
        return hash(self.url)

    def __repr__(self) -> str:
        lists = {"image": self.images, "video": self.videos, "alternate": self.alternates}
        return described(
            self,
            self.url,
            moment("modified", self.last_modified),
            self.change_frequency.value if self.change_frequency else "",
            f"priority {self.priority}" if self.priority != SITEMAP_PAGE_DEFAULT_PRIORITY else "",
            f"news {quoted(self.news_story.title)}" if self.news_story else "",
            *(plural(len(listed), noun) for noun, listed in lists.items() if listed),
        )

    @property
    def sitemap_url(self) -> str | None:
        """The URL of the sitemap that lists this page, or None if the page was not read from one.

        It is not compared, and a pickled page does not keep it.
        """
        source: Source | None = getattr(self, "_source", None)
        return None if source is None else source.value("sitemap_url")

    def to_dict(self) -> dict[str, Any]:
        """Return the page as a dictionary.

        `alternates`, `videos` and `sitemap_url` come last, and are left out if there are none.
        """
        as_dict = {
            "url": self.url,
            "priority": self.priority,
            "last_modified": self.last_modified,
            "change_frequency": self.change_frequency.value if self.change_frequency else None,
            "news_story": self.news_story.to_dict() if self.news_story else None,
            "images": [image.to_dict() for image in self.images] if self.images else None,
        }
        if self.alternates:
            as_dict["alternates"] = self.alternates
        if self.videos:
            as_dict["videos"] = [video.to_dict() for video in self.videos]
        if (sitemap_url := self.sitemap_url) is not None:
            as_dict["sitemap_url"] = sitemap_url
        return as_dict


#: The fields of a page that are converted when somebody first reads them.
LAZY_PAGE_FIELDS = tuple(f.name for f in fields(SitemapPage) if f.name != "url")
for _name in LAZY_PAGE_FIELDS:
    setattr(SitemapPage, _name, LazySlot(SitemapPage.__dict__[_name], _Sourced.__dict__["_source"]))

_new_page = SitemapPage.__new__
_set_url = SitemapPage.__dict__["url"].__set__
_set_source = _Sourced.__dict__["_source"].__set__


def page_of(url: str, source: Source) -> SitemapPage:
    """Return a page whose fields are converted from a source when somebody reads them."""
    page = _new_page(SitemapPage)
    _set_url(page, url)
    _set_source(page, source)
    return page


def last_modified_text(page: SitemapPage) -> str:
    """Return the last modification date of a page as its sitemap writes it, or in ISO 8601 if the page has no sitemap.

    It is empty if there is no date.
    """
    source: Source | None = getattr(page, "_source", None)
    if source is not None:
        return source.last_modified_text()
    return page.last_modified.isoformat() if page.last_modified else ""


class PageCount:
    """The number of pages of a document, once somebody has read all of them. It is shared by all who read them."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: int | None = None


def stated_priority(page: SitemapPage) -> Decimal | None:
    """Return the priority that the sitemap states, or None if it states none, or no valid one.

    A page that was made by hand or unpickled does not know whether its sitemap states 0.5: that counts as none.
    """
    source: Source | None = getattr(page, "_source", None)
    if source is not None:
        stated: Decimal | None = source.value("stated_priority")
        return stated
    return None if page.priority == SITEMAP_PAGE_DEFAULT_PRIORITY else page.priority


def stated_change_frequency(page: SitemapPage) -> SitemapPageChangeFrequency | None:
    """Return the change frequency that the sitemap states, or None if it states none, or no valid one."""
    source: Source | None = getattr(page, "_source", None)
    if source is None:
        return page.change_frequency
    stated: SitemapPageChangeFrequency | None = source.value("stated_change_frequency")
    return stated


class Pages(Sequence[SitemapPage]):
    """The pages of one sitemap: a sequence that is not kept in memory.

    Iterating over it reads the document and makes one page at a time. An index beyond the first 1,000 pages makes a
    list of all pages, once, and keeps it as long as this object lives. A `Pages` equals a list of the same pages.

    `columns` reads the same pages as columns. It is None if the pages do not come from a document.

    :param count: a place to store the number of pages, once all have been read.
    """

    __slots__ = ("_count", "_list", "_read", "columns")

    def __init__(
        self,
        read: Callable[[], Iterator[SitemapPage]],
        columns: ReadColumns | None = None,
        count: PageCount | None = None,
    ) -> None:
        self._read = read
        self.columns = columns
        self._list: list[SitemapPage] | None = None
        self._count = PageCount() if count is None else count

    def anew(self) -> Pages:
        """Return the same pages, with none of them kept in memory."""
        return Pages(self._read, self.columns, self._count)

    @property
    def known_length(self) -> int | None:
        """The number of pages, or None if nobody has read all of them yet."""
        return self._count.value

    def __iter__(self) -> Iterator[SitemapPage]:
        return self._read() if self._list is None else iter(self._list)

    def __len__(self) -> int:
        length = self._count.value
        if length is None:
            read = self.columns  # faster than making pages
            length = sum(1 for _ in self) if read is None else sum(part.length for part in read(()))
            self._count.value = length
        return length

    def __bool__(self) -> bool:
        return next(iter(self), None) is not None

    @overload
    def __getitem__(self, index: int) -> SitemapPage: ...
    @overload
    def __getitem__(self, index: slice) -> list[SitemapPage]: ...
    def __getitem__(self, index: int | slice) -> SitemapPage | list[SitemapPage]:
        if self._list is None:
            stop = index.stop if isinstance(index, slice) else index + 1
            is_near = isinstance(stop, int) and 0 < stop <= _FEW_PAGES
            if is_near and not (isinstance(index, slice) and ((index.start or 0) < 0 or (index.step or 1) < 0)):
                return list(islice(self._read(), stop))[index]
            self._list = list(self._read())
        return self._list[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (list, Pages)):
            return NotImplemented
        return self is other or all(a == b for a, b in zip_longest(self, other, fillvalue=_NOTHING))

    __hash__ = None  # type: ignore[assignment]  # like a list, which it equals

    def __add__(self, other: list[Any]) -> list[Any]:
        return [*self, *other] if isinstance(other, (list, Pages)) else NotImplemented

    def __radd__(self, other: list[Any]) -> list[Any]:
        return [*other, *self] if isinstance(other, list) else NotImplemented

    def copy(self) -> list[SitemapPage]:
        """Return the pages as a list."""
        return list(self)

    def __reduce__(self) -> tuple[type[list[SitemapPage]], tuple[list[SitemapPage]]]:
        return list, (list(self),)

    def __repr__(self) -> str:
        length = self.known_length
        return f"<Pages: {'not counted' if length is None else plural(length, 'page')}>"

    def _repr_html_(self) -> str:
        """Return what notebooks show: the first pages, and a histogram of dates."""
        from usp.notebook import pages_html  # most programs do not need it

        return pages_html(self)
