"""The words of each kind of document, as tables: which elements hold entries, which hold fields, in which namespaces.

Names here are lower case. An element of the document's own namespace goes by its plain name ("loc"), one of another
known namespace by that namespace's name ("image:loc"). Elements of any other namespace mean nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = [
    "DIALECTS",
    "PREFIXES",
    "RIGHT_URIS",
    "ROOTS",
    "VIDEO_URLS",
    "VOID_TAGS",
    "Dialect",
    "Kind",
    "namespace_of_declaration",
    "namespace_of_prefix",
]


@dataclass(frozen=True, slots=True)
class Kind:
    """An element that holds others: `fields` kept as text, `elements` with their attributes, `groups` of such again."""

    fields: frozenset[str] = frozenset()
    elements: frozenset[str] = frozenset()
    groups: Mapping[str, Kind] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.fields or name in self.elements or name in self.groups

    def names(self) -> set[str]:
        """Of all that it may hold."""
        return {*self.fields, *self.elements, *self.groups}


@dataclass(frozen=True, slots=True)
class Dialect:
    """A kind of document: the namespace it is at home in, and its entries."""

    home: str
    entries: Mapping[str, Kind]
    implied: str | None = None  # the entry that a <loc> outside any entry stands for
    undeclared_is_home: bool = False  # whether a prefix that was never declared is taken for the home namespace


def _extension(namespace: str) -> dict[str, Kind]:
    """The groups of an extension by their names: with its prefix on all of them or, as some sites have it, on none."""
    return {f"{namespace}:{namespace}": _EXTENSIONS[namespace](f"{namespace}:"), namespace: _EXTENSIONS[namespace]("")}


def _named(prefix: str, names: str) -> frozenset[str]:
    return frozenset(prefix + name for name in names.split())


def _image(prefix: str) -> Kind:
    return Kind(_named(prefix, "loc caption geo_location title license"))


def _news(prefix: str) -> Kind:
    return Kind(
        _named(prefix, "title publication_date access genres keywords stock_tickers"),
        groups={f"{prefix}publication": Kind(_named(prefix, "name language"))},
    )


def _video(prefix: str) -> Kind:
    fields = (
        "thumbnail_loc title description content_loc duration expiration_date rating view_count publication_date"
        " category family_friendly requires_subscription live"
    )
    repeated = "player_loc content_segment_loc tag restriction gallery_loc price uploader platform id"
    tv_show = "show_title video_type episode_title season_number episode_number premier_date"
    groups = {f"{prefix}tvshow": Kind(_named(prefix, tv_show))}
    return Kind(_named(prefix, fields), _named(prefix, repeated), groups)


#: The fields of a video that are URLs, as `SitemapVideo` calls them.
VIDEO_URLS = frozenset({"thumbnail_loc", "content_loc", "player_loc", "gallery_loc", "uploader_info"})

_EXTENSIONS = {"image": _image, "news": _news, "video": _video}
_URL = Kind(
    frozenset({"loc", "lastmod", "changefreq", "priority"}),
    frozenset({"link", "xhtml:link"}),
    {name: kind for extension in _EXTENSIONS for name, kind in _extension(extension).items()},
)
_SITEMAP = Kind(frozenset({"loc", "lastmod"}))
_ITEM = Kind(frozenset({"title", "description", "pubdate", "dc:date"}), frozenset({"link", "guid"}))
_ENTRY = Kind(
    frozenset({"title", "summary", "tagline", "published", "issued", "created", "updated", "modified"}),
    frozenset({"link"}),
)

_PAGES = Dialect("sitemap", {"url": _URL, "sitemap": _SITEMAP}, implied="url", undeclared_is_home=True)
_INDEX = Dialect("sitemap", {"url": _URL, "sitemap": _SITEMAP}, implied="sitemap", undeclared_is_home=True)
_RSS = Dialect("rss", {"item": _ITEM})
_ATOM = Dialect("atom", {"entry": _ENTRY})

#: Root elements, and those that stand at the top where the root was forgotten -> the root meant.
ROOTS = {
    "urlset": "urlset",
    "url": "urlset",
    "sitemapindex": "sitemapindex",
    "sitemap": "sitemapindex",
    "rss": "rss",
    "rdf": "rss",
    "channel": "rss",
    "item": "rss",
    "feed": "feed",
    "entry": "feed",
}
DIALECTS = {"urlset": _PAGES, "sitemapindex": _INDEX, "rss": _RSS, "feed": _ATOM}

#: Tags of HTML that are never closed: programs print them, with their warnings, into the middle of a document.
VOID_TAGS = frozenset({b"br", b"hr", b"img", b"input", b"meta", b"wbr"})

# Parts of namespace URIs; the first that is found counts. Sites write them with http or https or neither, with or
# without the last slash, in other versions, on other hosts.
_URIS = (
    ("sitemap-image", "image"),
    ("sitemap-news", "news"),
    ("sitemap-video", "video"),
    ("sitemap-", "other"),
    ("geo/schemas/sitemap", "other"),
    ("sitemap", "sitemap"),
    ("xhtml", "xhtml"),
    ("purl.org/rss/1.0/modules", "other"),
    ("purl.org/rss", "rss"),
    ("purl.org/net/rss", "rss"),
    ("backend.userland.com/rss", "rss"),
    ("netscape.com/rdf", "rss"),
    ("w3.org/2005/atom", "atom"),
    ("purl.org/atom", "atom"),
    ("purl.org/dc/elements", "dc"),
    ("22-rdf-syntax-ns", "rdf"),
)
#: Our name of a namespace -> the URI that it must be declared with.
RIGHT_URIS = {
    "sitemap": "http://www.sitemaps.org/schemas/sitemap/0.9",
    "image": "http://www.google.com/schemas/sitemap-image/1.1",
    "news": "http://www.google.com/schemas/sitemap-news/0.9",
    "video": "http://www.google.com/schemas/sitemap-video/1.1",
    "xhtml": "http://www.w3.org/1999/xhtml",
}
#: Prefixes that mean their namespace even where they are not declared.
PREFIXES = frozenset({"image", "news", "video", "xhtml", "dc", "rdf", "atom"})


def namespace_of_uri(uri: str) -> str:
    """Our name for the namespace of this URI; "other" for one that means nothing here, "" for none."""
    uri = uri.strip().lower()
    if not uri:
        return ""
    return next((name for part, name in _URIS if part in uri), "other")


def namespace_of_declaration(prefix: str, uri: str) -> str:
    """The same for a URI that is declared for a prefix: if the one says nothing, the other may."""
    namespace = namespace_of_uri(uri)
    return prefix if namespace == "other" and prefix in PREFIXES else namespace


def namespace_of_prefix(prefix: str, dialect: Dialect | None) -> str:
    """Our name for the namespace that an undeclared prefix was meant to have."""
    if prefix in PREFIXES:
        return prefix
    return "" if dialect is None or dialect.undeclared_is_home else "other"
