"""The tables of a crawl folder: their columns and types.

    sites      one row for each site and run
    sitemaps   one row for each sitemap of a site's tree and run, in tree order
    pages      one row for each page of a document, in the run that first saw the document
    problems   one row for each problem of a document, or of a run

`sitemaps.document` says which rows of `pages` and `problems` belong to a sitemap: join on `site` and `document`. A
document that did not change between two runs has its pages once. A change of these tables is a new `FORMAT_VERSION`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from hashlib import blake2b
from types import MappingProxyType

from usp.export.schema import PAGES, SITEMAPS
from usp.scan import Scalar, Type

__all__ = ["FORMAT_VERSION", "TABLES", "State", "document_key"]

FORMAT_VERSION = 1

_TEXT, _INTEGER, _TIME = Scalar.TEXT, Scalar.INTEGER, Scalar.TIME

_SITES: dict[str, Type] = {
    "run": _INTEGER,
    "site": _TEXT,
    "target": _TEXT,
    "outcome": _TEXT,
    "reason": _TEXT,
    "started": _TIME,
    "seconds": Scalar.NUMBER,
    "requests": _INTEGER,
    "bytes": _INTEGER,
    "sitemaps": _INTEGER,
    "pages": _INTEGER,
    "problems": _INTEGER,
    "unchanged": _INTEGER,
}
_OF_DOCUMENTS: dict[str, Type] = {
    "requested_url": _TEXT,
    "cause": _TEXT,
    "content_type": _TEXT,
    "content_encoding": _TEXT,
    "cache_seconds": _INTEGER,
    "digest": _TEXT,
    "document": _INTEGER,
    "state": _TEXT,
    "warc": _TEXT,
    "warc_offset": _INTEGER,
    "warc_length": _INTEGER,
    "warc_date": _TIME,
}
_PROBLEMS: dict[str, Type] = {
    "site": _TEXT,
    "run": _INTEGER,
    "document": _INTEGER,
    "sitemap_url": _TEXT,
    "code": _TEXT,
    "severity": _TEXT,
    "message": _TEXT,
    "line": _INTEGER,
    "column": _INTEGER,
    "text": _TEXT,
}

#: The tables, in the order in which a part is committed: `sites` last.
TABLES: Mapping[str, Mapping[str, Type]] = MappingProxyType(
    {
        "pages": {"site": _TEXT, "document": _INTEGER, "run": _INTEGER, **PAGES},
        "problems": _PROBLEMS,
        "sitemaps": {"run": _INTEGER, "site": _TEXT, "position": _INTEGER, **SITEMAPS, **_OF_DOCUMENTS},
        "sites": _SITES,
    }
)


class State(StrEnum):
    """What a run found out about a sitemap."""

    NEW = "new"  #: the run before did not have it
    CHANGED = "changed"
    UNCHANGED = "unchanged"  #: the server says so, or the same bytes came
    CUT = "cut"  #: only a part of it arrived, or was read, and no whole one is known
    KEPT = "kept"  #: it could not be fetched this time; the row describes the last document
    FAILED = "failed"  #: it could not be fetched, and no earlier document is known


def document_key(run: int, site: str, url: str, digest: str) -> int:
    """Return the number that stands for a document in the tables.

    It has the run that first saw the document, so a document that comes back after a change is another one: each number
    has its pages once.
    """
    text = "\0".join((str(run), site, url, digest))
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big", signed=True)
