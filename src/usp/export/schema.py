"""The schema: which tables there are, and what their columns hold. Every format writes the same one.

A change to it is a new SCHEMA_VERSION, which files state where they can.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from usp.objects.sitemap import (
    AbstractSitemap,
    IndexRobotsTxtSitemap,
    IndexWebsiteSitemap,
    IndexXMLSitemap,
    InvalidSitemap,
    PagesAtomSitemap,
    PagesRSSSitemap,
    PagesTextSitemap,
    PagesXMLSitemap,
)
from usp.scan import PAGE_TYPES, Column, Columns, Scalar, Struct, Type

__all__ = [
    "NAMES_IN_SITEMAPS",
    "PAGES",
    "SCHEMA_VERSION",
    "SITEMAPS",
    "TABLES",
    "column_at",
    "flattened",
    "type_name",
]

SCHEMA_VERSION = 1

#: What is known of a page beside what its entry says: where it was listed, and as the how manieth, from 1 on.
_LISTED: dict[str, Type] = {
    "sitemap_url": Scalar.TEXT,
    "sitemap_type": Scalar.TEXT,
    "position": Scalar.WHOLE,
}
_ENTRY = ("url", "last_modified", "last_modified_text", "change_frequency", "priority")
PAGES: Mapping[str, Type] = MappingProxyType({name: PAGE_TYPES[name] for name in _ENTRY} | _LISTED | PAGE_TYPES)
SITEMAPS: Mapping[str, Type] = MappingProxyType(
    {
        "url": Scalar.TEXT,
        "parent": Scalar.TEXT,
        "type": Scalar.TEXT,
        "depth": Scalar.WHOLE,
        "status": Scalar.WHOLE,
        "reason": Scalar.TEXT,
        "bytes": Scalar.WHOLE,
        "pages": Scalar.WHOLE,
        "last_modified": Scalar.TIME,
        "fetched_at": Scalar.TIME,
    }
)
TABLES: Mapping[str, Mapping[str, Type]] = MappingProxyType({"pages": PAGES, "sitemaps": SITEMAPS})

#: What columns are called in sitemaps, which is what people may write.
NAMES_IN_SITEMAPS: Mapping[str, str] = MappingProxyType(
    {"loc": "url", "lastmod": "last_modified", "changefreq": "change_frequency"}
)

_TYPE_NAMES: dict[type[AbstractSitemap], str] = {
    IndexWebsiteSitemap: "website",
    IndexRobotsTxtSitemap: "robots",
    IndexXMLSitemap: "index",
    PagesXMLSitemap: "urlset",
    PagesTextSitemap: "text",
    PagesRSSSitemap: "rss",
    PagesAtomSitemap: "atom",
    InvalidSitemap: "invalid",
}


def type_name(sitemap_class: type[AbstractSitemap]) -> str:
    """What a sitemap is, in a word."""
    return next((name for known, name in _TYPE_NAMES.items() if issubclass(sitemap_class, known)), "other")


def flattened(types: Mapping[str, Type]) -> dict[str, Type]:
    """The columns by their paths: in place of a struct, its fields, like news.title."""
    found: dict[str, Type] = {}
    for name, kind in types.items():
        parts = flattened(kind.fields) if isinstance(kind, Struct) else None
        found.update({name: kind} if parts is None else {f"{name}.{part}": of for part, of in parts.items()})
    return found


def column_at(columns: Columns, types: Mapping[str, Type], path: str) -> Column | None:
    """The column at a path; None if it has no value in any row."""
    name, _, rest = path.partition(".")
    column = columns.columns.get(name)
    while column is not None and rest:
        kind = types[name]
        assert isinstance(kind, Struct)
        types = kind.fields
        name, _, rest = rest.partition(".")
        column = column.children[list(types).index(name)]
    return column
