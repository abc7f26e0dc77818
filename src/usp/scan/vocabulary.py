"""The vocabulary of each kind of document: tables of its elements and namespaces.

Names here are lower case. An element of the document's own namespace has its plain name ("loc"); one of another known
namespace has that namespace's name before it ("image:loc"). Elements of other namespaces are ignored.

`note_root` notes what is wrong with the root and its namespaces. The document is read as it was meant all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import Enum, auto
from functools import lru_cache

from usp.objects.problem import ProblemLog

__all__ = [
    "DIALECTS",
    "PREFIXES",
    "RIGHT_URIS",
    "ROOTS",
    "TV_SHOW_FIELDS",
    "UNPREFIXED",
    "VIDEO_FIELDS",
    "VIDEO_URLS",
    "VOID_TAGS",
    "Dialect",
    "Form",
    "Kind",
    "VideoField",
    "check_namespaces",
    "namespace_of_declaration",
    "namespace_of_prefix",
    "note_outside",
    "note_root",
    "note_unknown",
]


@dataclass(frozen=True, slots=True)
class Kind:
    """An element that holds others: `fields` with their text, `elements` with attributes too, `groups` of others."""

    fields: frozenset[str] = frozenset()
    elements: frozenset[str] = frozenset()
    groups: Mapping[str, Kind] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.fields or name in self.elements or name in self.groups

    def names(self) -> set[str]:
        """Return the names of everything that it may hold."""
        return {*self.fields, *self.elements, *self.groups}


@dataclass(frozen=True, slots=True)
class Dialect:
    """A kind of document: its own namespace, and its entries."""

    home: str
    entries: Mapping[str, Kind]
    implied: str | None = None  # the entry that is meant by a <loc> outside any entry
    undeclared_is_home: bool = False  # whether an undeclared prefix means the home namespace


def _extension(namespace: str) -> dict[str, Kind]:
    """Return the groups of an extension by name: with its prefix on all names or, as some sites write it, on none."""
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


class Form(Enum):
    """How a document writes the value of a field."""

    TEXT = auto()
    URL = auto()
    DATE = auto()
    INTEGER = auto()
    DECIMAL = auto()
    YES_NO = auto()
    WORDS = auto()  #: one text of several words
    TEXTS = auto()  #: an element for each text
    TEXTS_WITH_ATTRIBUTES = auto()  #: an element for each text, its attributes kept
    TV_SHOW = auto()  #: a group of `TV_SHOW_FIELDS`


@dataclass(frozen=True, slots=True)
class VideoField:
    """Where a `<video:video>` has a field: in the text of an element, or in one of its attributes."""

    element: str
    form: Form = Form.TEXT
    attribute: str = ""


#: The fields of `SitemapVideo`, in its order. How they are parsed, exported and compiled follows from this table.
VIDEO_FIELDS: Mapping[str, VideoField] = {
    "title": VideoField("title"),
    "description": VideoField("description"),
    "thumbnail_loc": VideoField("thumbnail_loc", Form.URL),
    "content_loc": VideoField("content_loc", Form.URL),
    "player_loc": VideoField("player_loc", Form.URL),
    "player_allow_embed": VideoField("player_loc", Form.YES_NO, "allow_embed"),
    "player_autoplay": VideoField("player_loc", Form.TEXT, "autoplay"),
    "duration": VideoField("duration", Form.INTEGER),
    "expiration_date": VideoField("expiration_date", Form.DATE),
    "publication_date": VideoField("publication_date", Form.DATE),
    "rating": VideoField("rating", Form.DECIMAL),
    "view_count": VideoField("view_count", Form.INTEGER),
    "family_friendly": VideoField("family_friendly", Form.YES_NO),
    "requires_subscription": VideoField("requires_subscription", Form.YES_NO),
    "live": VideoField("live", Form.YES_NO),
    "category": VideoField("category"),
    "tags": VideoField("tag", Form.TEXTS),
    "restriction": VideoField("restriction", Form.WORDS),
    "restriction_relationship": VideoField("restriction", Form.TEXT, "relationship"),
    "platform": VideoField("platform", Form.WORDS),
    "platform_relationship": VideoField("platform", Form.TEXT, "relationship"),
    "gallery_loc": VideoField("gallery_loc", Form.URL),
    "gallery_title": VideoField("gallery_loc", Form.TEXT, "title"),
    "uploader": VideoField("uploader"),
    "uploader_info": VideoField("uploader", Form.URL, "info"),
    "prices": VideoField("price", Form.TEXTS_WITH_ATTRIBUTES),
    "content_segments": VideoField("content_segment_loc", Form.TEXTS_WITH_ATTRIBUTES),
    "ids": VideoField("id", Form.TEXTS_WITH_ATTRIBUTES),
    "tv_show": VideoField("tvshow", Form.TV_SHOW),
}
#: The fields of `SitemapVideoTvShow`: the elements of the same names in a `<video:tvshow>`.
TV_SHOW_FIELDS: Mapping[str, Form] = {
    "show_title": Form.TEXT,
    "video_type": Form.TEXT,
    "episode_title": Form.TEXT,
    "season_number": Form.INTEGER,
    "episode_number": Form.INTEGER,
    "premier_date": Form.DATE,
}
VIDEO_URLS = frozenset(name for name, field in VIDEO_FIELDS.items() if field.form is Form.URL)


def _video(prefix: str) -> Kind:
    repeated = (Form.TEXTS, Form.TEXTS_WITH_ATTRIBUTES)
    groups = {field.element for field in VIDEO_FIELDS.values() if field.form is Form.TV_SHOW}
    elements = {field.element for field in VIDEO_FIELDS.values() if field.attribute or field.form in repeated}
    fields = {field.element for field in VIDEO_FIELDS.values()} - groups - elements
    return Kind(
        frozenset(prefix + name for name in fields),
        frozenset(prefix + name for name in elements),
        {prefix + name: Kind(frozenset(prefix + field for field in TV_SHOW_FIELDS)) for name in sorted(groups)},
    )


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

#: Root elements, and elements found at the top if the root is missing -> the root that is meant.
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

#: Tags of HTML that are never closed. Programs print them, with warnings, into the middle of a document.
VOID_TAGS = frozenset({b"br", b"hr", b"img", b"input", b"meta", b"wbr"})


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace: our name for it, parts of the URIs that mean it, its right URI, and what its prefix means.

    Sites write URIs with http, https or neither, with or without the last slash, in other versions, on other hosts.
    `is_known_by_prefix` says whether a prefix of this name means the namespace even if it is not declared.
    """

    name: str
    uri_parts: tuple[str, ...]
    uri: str = ""
    is_known_by_prefix: bool = False


#: The namespaces that usp knows. The first part that a URI contains counts, so special ones come before general ones.
_NAMESPACES = (
    Namespace("image", ("sitemap-image",), "http://www.google.com/schemas/sitemap-image/1.1", True),
    Namespace("news", ("sitemap-news",), "http://www.google.com/schemas/sitemap-news/0.9", True),
    Namespace("video", ("sitemap-video",), "http://www.google.com/schemas/sitemap-video/1.1", True),
    Namespace("other", ("sitemap-", "geo/schemas/sitemap")),
    Namespace("sitemap", ("sitemap",), "http://www.sitemaps.org/schemas/sitemap/0.9"),
    Namespace("xhtml", ("xhtml",), "http://www.w3.org/1999/xhtml", True),
    Namespace("other", ("purl.org/rss/1.0/modules",)),
    Namespace("rss", ("purl.org/rss", "purl.org/net/rss", "backend.userland.com/rss", "netscape.com/rdf")),
    Namespace("atom", ("w3.org/2005/atom", "purl.org/atom"), is_known_by_prefix=True),
    Namespace("dc", ("purl.org/dc/elements",), is_known_by_prefix=True),
    Namespace("rdf", ("22-rdf-syntax-ns",), is_known_by_prefix=True),
)
_URIS = tuple((part, namespace.name) for namespace in _NAMESPACES for part in namespace.uri_parts)
#: Our name for a namespace -> its right URI.
RIGHT_URIS = {namespace.name: namespace.uri for namespace in _NAMESPACES if namespace.uri}
#: Prefixes that mean their namespace even if they are not declared.
PREFIXES = frozenset(namespace.name for namespace in _NAMESPACES if namespace.is_known_by_prefix)


def _namespaces_of(kind: Kind) -> set[str]:
    """Return the namespaces of all elements that a kind may hold, at any depth."""
    names = {name.partition(":")[0] for name in kind.names() if ":" in name}
    return names.union(*map(_namespaces_of, kind.groups.values()))


def check_namespaces(dialects: Iterable[Dialect]) -> None:
    """Raise `TypeError` if an element is of a namespace that the table does not have: it would never be read."""
    used = {name for dialect in dialects for kind in dialect.entries.values() for name in _namespaces_of(kind)}
    if missing := sorted(used - {namespace.name for namespace in _NAMESPACES}):
        raise TypeError(f"usp/scan/vocabulary.py: _NAMESPACES has no {', '.join(missing)}, but elements are of it")


check_namespaces(DIALECTS.values())


@lru_cache(64)
def namespace_of_uri(uri: str) -> str:
    """Return our name for the namespace of a URI: "other" if it is not one of ours, "" if the URI is empty."""
    uri = uri.strip().lower()
    if not uri:
        return ""
    return next((name for part, name in _URIS if part in uri), "other")


def namespace_of_declaration(prefix: str, uri: str) -> str:
    """Return our name for the namespace that a prefix declares: by the URI or, if that is unknown, by the prefix."""
    namespace = namespace_of_uri(uri)
    return prefix if namespace == "other" and prefix in PREFIXES else namespace


def namespace_of_prefix(prefix: str, dialect: Dialect | None) -> str:
    """Return our name for the namespace that an undeclared prefix probably means."""
    if prefix in PREFIXES:
        return prefix
    return "" if dialect is None or dialect.undeclared_is_home else "other"


#: Elements of extensions that some sites write without a prefix -> how they must be written.
UNPREFIXED = {"image": "image:image", "news": "news:news", "video": "video:video", "link": "xhtml:link"}


def note_outside(at: int, is_before: bool, log: ProblemLog) -> None:
    """Note, once, that there is something before the root, or after it."""
    code = "X101" if is_before else "X118"
    if not log.counts[code]:
        log.add(code, at)


def note_unknown(tag: str, parent: str, at: int, log: ProblemLog) -> None:
    """Note an element of the sitemap's own namespace that an entry, or the root, may not have."""
    if tag.encode() in VOID_TAGS:
        return  # of a warning that a program printed
    entries = DIALECTS["urlset"].entries
    if parent == "sitemap" and tag in entries["url"].fields:
        log.add("P430", at, text=tag)
    elif not log.keeps("P429"):  # a hint takes long
        log.count("P429", 1, at)
    else:
        known = entries[parent].names() if parent in entries else {DIALECTS[parent].implied or ""}
        near = get_close_matches(tag, sorted(name for name in known if ":" not in name), 1)
        log.add("P429", at, text=tag, where=f"a <{parent}>", hint=f": did you mean <{near[0]}>?" if near else "")


def note_root(tag: str, name: bytes, attributes: Mapping[str, str], at: int, log: ProblemLog) -> None:
    """Note that the root is missing, or what is wrong with the namespaces that it declares."""
    if tag in _PAGES.entries:
        if not log.counts["P424"]:
            log.add("P424", at, text=tag, where=ROOTS[tag])
        return
    if tag not in ("urlset", "sitemapindex"):
        return
    for attribute in attributes:
        used, colon, _ = attribute.partition(":")
        if colon and used not in ("xml", "xmlns") and f"xmlns:{used}" not in attributes:
            log.add("X117", at, text=used)
    prefix, colon, _ = name.decode("utf-8", "replace").lower().rpartition(":")
    home = attributes.get(f"xmlns:{prefix}" if colon else "xmlns", "")
    if home != RIGHT_URIS["sitemap"]:
        log.add("P422", at, text=home)
    for attribute, uri in attributes.items():
        if attribute.startswith("xmlns:") and attribute[6:] != prefix:
            right = RIGHT_URIS.get(namespace_of_declaration(attribute[6:], uri))
            if right is not None and uri != right:
                log.add("P425", at, text=uri, where=attribute, uri=right)
