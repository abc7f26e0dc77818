"""The schema of the tables: their columns and types. Every format writes the same schema.

A change of the schema is a new `SCHEMA_VERSION`. Files contain it where the format has a place for it.
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
from usp.scan import PAGE_TYPES, URL_PARTS, Column, Columns, List, Scalar, Struct, Type

__all__ = [
    "ITEM_TABLES",
    "NAMES_IN_SITEMAPS",
    "PAGES",
    "SCHEMA_VERSION",
    "SITEMAPS",
    "SOURCE",
    "TABLES",
    "column_at",
    "flattened",
    "table_types",
    "type_name",
]

SCHEMA_VERSION = 2

#: The column that says which of several targets a row is from.
SOURCE = "source"
#: The columns of a page that do not come from its entry: the sitemap, and the position in it, from 1.
_LISTED: dict[str, Type] = {
    "sitemap_url": Scalar.TEXT,
    "sitemap_type": Scalar.TEXT,
    "position": Scalar.INTEGER,
}
_ENTRY = ("url", "last_modified", "last_modified_text", "change_frequency", "priority")
_PARTS: dict[str, Type] = dict.fromkeys(URL_PARTS, Scalar.TEXT)
PAGES: Mapping[str, Type] = MappingProxyType(
    {name: PAGE_TYPES[name] for name in _ENTRY} | _PARTS | _LISTED | PAGE_TYPES
)
SITEMAPS: Mapping[str, Type] = MappingProxyType(
    {
        "url": Scalar.TEXT,
        "parent": Scalar.TEXT,
        "type": Scalar.TEXT,
        "depth": Scalar.INTEGER,
        "status": Scalar.INTEGER,
        "reason": Scalar.TEXT,
        "bytes": Scalar.INTEGER,
        "bytes_inflated": Scalar.INTEGER,
        "pages": Scalar.INTEGER,
        "newest": Scalar.TIME,
        "problems": Scalar.INTEGER,
        "last_modified": Scalar.TIME,
        "http_last_modified": Scalar.TIME,
        "etag": Scalar.TEXT,
        "seconds": Scalar.NUMBER,
        "fetched_at": Scalar.TIME,
    }
)
#: Lists of pages that are tables of their own: a row for each item. They have the names of their columns in `PAGES`.
ITEM_TABLES = ("images", "videos", "alternates")
_OF_ITEMS: dict[str, Type] = {
    "page_url": Scalar.TEXT,
    "sitemap_url": Scalar.TEXT,
    "page_position": Scalar.INTEGER,
    "position": Scalar.INTEGER,
}


def _item_types(name: str) -> Mapping[str, Type]:
    kind = PAGES[name]
    if not isinstance(kind, List) or not isinstance(kind.item, Struct) or kind.item.fields.keys() & _OF_ITEMS.keys():
        raise TypeError(f"the column {name!r} of pages cannot be a table: it is {kind}")
    return MappingProxyType(_OF_ITEMS | dict(kind.item.fields))


TABLES: Mapping[str, Mapping[str, Type]] = MappingProxyType(
    {"pages": PAGES, "sitemaps": SITEMAPS} | {name: _item_types(name) for name in ITEM_TABLES}
)


def table_types(table: str, *, has_source: bool = False) -> Mapping[str, Type]:
    """Return the columns of a table. With `has_source`, the first one is `source`: what the user named to be read."""
    return {SOURCE: Scalar.TEXT, **TABLES[table]} if has_source else TABLES[table]


#: Names of elements in sitemaps -> names of columns. Users may write both.
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
    """Return the type of a sitemap in one word, like urlset."""
    return next((name for known, name in _TYPE_NAMES.items() if issubclass(sitemap_class, known)), "other")


def flattened(types: Mapping[str, Type]) -> dict[str, Type]:
    """Return the columns by their paths, with the fields of structs in place of structs, like news.title."""
    found: dict[str, Type] = {}
    for name, kind in types.items():
        parts = flattened(kind.fields) if isinstance(kind, Struct) else None
        found.update({name: kind} if parts is None else {f"{name}.{part}": of for part, of in parts.items()})
    return found


def column_at(columns: Columns, types: Mapping[str, Type], path: str) -> Column | None:
    """Return the column at a path; None if no row has a value."""
    name, _, rest = path.partition(".")
    column = columns.columns.get(name)
    while column is not None and rest:
        kind = types[name]
        assert isinstance(kind, Struct)
        types = kind.fields
        name, _, rest = rest.partition(".")
        column = column.children[list(types).index(name)]
    return column
