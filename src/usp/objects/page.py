"""Pages and what is attached to them: news stories, images, videos.

Plain immutable values: equal by value, hashable, picklable, each with a `to_dict()`. A page that was read from a
document converts its fields when they are read (`usp.objects.lazy`).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, fields
from datetime import datetime
from decimal import Decimal
from enum import Enum, unique
from typing import Any

from usp.objects.lazy import LazySlot, Source

__all__ = [
    "LAZY_PAGE_FIELDS",
    "SITEMAP_PAGE_DEFAULT_PRIORITY",
    "SitemapImage",
    "SitemapNewsStory",
    "SitemapPage",
    "SitemapPageChangeFrequency",
    "SitemapVideo",
    "SitemapVideoTvShow",
    "last_modified_text",
    "page_of",
]

#: The priority of a page that states none.
SITEMAP_PAGE_DEFAULT_PRIORITY = Decimal("0.5")


def _fields_to_dict(value: Any) -> dict[str, Any]:
    return {f.name: getattr(value, f.name) for f in fields(value)}


@unique
class SitemapPageChangeFrequency(Enum):
    """How often a page changes, as its sitemap says."""

    ALWAYS = "always"
    HOURLY = "hourly"
    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"
    YEARLY = "yearly"
    NEVER = "never"

    @classmethod
    def has_value(cls, value: object) -> bool:
        """Whether there is a frequency of this value; "daily" is one, "DAILY" is not."""
        return isinstance(value, Hashable) and value in cls._value2member_map_


@dataclass(frozen=True, slots=True)
class SitemapNewsStory:
    """A news story: from a Google News sitemap, or an entry of a feed, which may have no date."""

    title: str
    publish_date: datetime | None
    publication_name: str | None = None
    publication_language: str | None = None
    access: str | None = None
    genres: list[str] = field(default_factory=list)
    keywords: list[str] = field(default_factory=list)
    stock_tickers: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Drop-in callers pass None where they have no list.
        for name in ("genres", "keywords", "stock_tickers"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, [])

    def __hash__(self) -> int:
        return hash((self.title, self.publish_date))

    def to_dict(self) -> dict[str, Any]:
        """The story as a plain dictionary."""
        return _fields_to_dict(self)


@dataclass(frozen=True, slots=True, init=False)
class SitemapImage:
    """An image on a page."""

    loc: str
    caption: str | None
    geo_location: str | None
    title: str | None
    license: str | None

    def __init__(
        self,
        loc: str,
        caption: str | None = None,
        geo_location: str | None = None,
        title: str | None = None,
        license_: str | None = None,
    ) -> None:
        # Written out only because the argument is `license_` where the attribute is `license`.
        values = {"loc": loc, "caption": caption, "geo_location": geo_location, "title": title, "license": license_}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def to_dict(self) -> dict[str, Any]:
        """The image as a plain dictionary."""
        return _fields_to_dict(self)


@dataclass(frozen=True, slots=True)
class SitemapVideoTvShow:
    """The television show that a video belongs to."""

    show_title: str | None = None
    video_type: str | None = None
    episode_title: str | None = None
    season_number: int | None = None
    episode_number: int | None = None
    premier_date: datetime | None = None

    def to_dict(self) -> dict[str, Any]:
        """The show as a plain dictionary."""
        return _fields_to_dict(self)


@dataclass(frozen=True, slots=True)
class SitemapVideo:
    """A video on a page, with every field of Google's video schema, version 1.1.

    Texts are as the site wrote them; numbers, dates and yes/no are converted, `None` where that failed. `player_loc`,
    `gallery_loc`, `uploader`, `restriction` and `platform` have their XML attributes in fields of their own. `prices`,
    `content_segments` and `ids` are lists of pairs: the text, and its attributes as a dictionary.

    https://developers.google.com/search/docs/crawling-indexing/sitemaps/video-sitemaps
    """

    title: str | None = None
    description: str | None = None
    thumbnail_loc: str | None = None
    content_loc: str | None = None
    player_loc: str | None = None
    player_allow_embed: bool | None = None
    player_autoplay: str | None = None
    duration: int | None = None
    expiration_date: datetime | None = None
    publication_date: datetime | None = None
    rating: Decimal | None = None
    view_count: int | None = None
    family_friendly: bool | None = None
    requires_subscription: bool | None = None
    live: bool | None = None
    category: str | None = None
    tags: list[str] = field(default_factory=list)
    restriction: list[str] = field(default_factory=list)
    restriction_relationship: str | None = None
    platform: list[str] = field(default_factory=list)
    platform_relationship: str | None = None
    gallery_loc: str | None = None
    gallery_title: str | None = None
    uploader: str | None = None
    uploader_info: str | None = None
    prices: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    content_segments: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    ids: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    tv_show: SitemapVideoTvShow | None = None

    def __hash__(self) -> int:
        return hash((self.title, self.content_loc, self.player_loc, self.thumbnail_loc))

    def to_dict(self) -> dict[str, Any]:
        """The video as a plain dictionary."""
        return _fields_to_dict(self) | {"tv_show": self.tv_show.to_dict() if self.tv_show else None}


class _Sourced:
    """Has what the values of a page are converted from, if it was read from a document."""

    __slots__ = ("_source",)
    _source: Source


@dataclass(frozen=True, slots=True)
class SitemapPage(_Sourced):
    """One page of a website, with what its sitemap says of it. Two pages hash alike if their URLs are equal."""

    url: str
    priority: Decimal = SITEMAP_PAGE_DEFAULT_PRIORITY
    last_modified: datetime | None = None
    change_frequency: SitemapPageChangeFrequency | None = None
    news_story: SitemapNewsStory | None = None
    images: list[SitemapImage] | None = None
    alternates: list[tuple[str, str]] | None = None
    videos: list[SitemapVideo] | None = None

    def __hash__(self) -> int:
        return hash(self.url)

    @property
    def sitemap_url(self) -> str | None:
        """The URL of the sitemap that the page was read from; None if it was not. It is no part of the page's value."""
        source: Source | None = getattr(self, "_source", None)
        return None if source is None else source.value("sitemap_url")

    def to_dict(self) -> dict[str, Any]:
        """The page as a plain dictionary; `alternates` and `videos` are in it only where there are some."""
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
        return as_dict


#: The fields of a page that are converted when they are read.
LAZY_PAGE_FIELDS = tuple(f.name for f in fields(SitemapPage) if f.name != "url")
for _name in LAZY_PAGE_FIELDS:
    setattr(SitemapPage, _name, LazySlot(SitemapPage.__dict__[_name], _Sourced.__dict__["_source"]))

_new_page = SitemapPage.__new__
_set_url = SitemapPage.__dict__["url"].__set__
_set_source = _Sourced.__dict__["_source"].__set__


def page_of(url: str, source: Source) -> SitemapPage:
    """A page that was read from a document."""
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
