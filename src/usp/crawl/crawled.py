"""A site that was crawled, and its rows in the tables, except those of its pages and problems.

Nothing here does I/O: `usp.crawl.parts` reads the documents and writes the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from usp.crawl.schema import State, document_key
from usp.crawl.state import NOTHING_KNOWN, KnownSite, Row
from usp.export.reading import SitemapPlace, sitemap_places, sitemap_values
from usp.objects.outcome import Cause, OutcomeKind
from usp.objects.sitemap import AbstractSitemap, InvalidSitemap
from usp.origins import requested_url
from usp.web_client.exchanges import Exchange

__all__ = ["CrawledSite", "Stored", "TreeRow", "kept_rows", "site_row", "tree_rows"]

#: Columns of a kept row that say what happened this time. All others describe the last document.
_OF_THIS_RUN = ("run", "position", "parent", "depth", "status", "reason", "cause", "seconds", "last_modified")
_PLACE = ("warc", "warc_offset", "warc_length", "warc_date")
_REUSED = ("digest", "document", "fetched_at", "cache_seconds", *_PLACE)
#: Columns that are equal if the pages of a document are.
_SAME = ("url", "digest", "content_type", "content_encoding")
_GONE = (Cause.NOT_FOUND, Cause.LOOP, Cause.LEFT_OUT, Cause.DISALLOWED)


@dataclass(frozen=True, slots=True)
class CrawledSite:
    """What a run has fetched of one site.

    `reused` has the rows of earlier documents that did not change, by the URL that was requested: the server said so,
    or it was not asked. `tree` is None if nothing of the site has changed; see `usp.crawl.unchanged`.
    """

    site: str
    target: str
    tree: AbstractSitemap | None
    started: datetime
    seconds: float
    exchanges: Sequence[Exchange] = ()
    known: KnownSite = NOTHING_KNOWN
    reused: Mapping[str, Row] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """The number of bytes of all documents, as they were transferred."""
        return sum(exchange.body.size for exchange in self.exchanges if exchange.body is not None)


class Stored(NamedTuple):
    """A document of this run: its digest, its freshness, and where its body is in a WARC file, if it is in one."""

    digest: str
    cache_seconds: int | None = None
    warc: str | None = None
    offset: int | None = None
    length: int | None = None
    date: datetime | None = None


class TreeRow(NamedTuple):
    """A sitemap, its row, and whether its pages have to be read and written."""

    sitemap: AbstractSitemap
    row: Row
    is_new_document: bool


def tree_rows(crawled: CrawledSite, tree: AbstractSitemap, run: int, stored: Mapping[str, Stored]) -> Iterator[TreeRow]:
    """Give a row for each sitemap of the tree of a site, in tree order.

    :param stored: the documents of this run by their URLs, after redirects.
    """
    written: set[int] = set(crawled.known.documents)
    for position, place in enumerate(sitemap_places(tree)):
        row = _row(crawled, run, position, place, stored)
        document = row["document"]
        is_new = document is not None and document not in written
        if is_new:
            written.add(document)
        yield TreeRow(place.sitemap, row, is_new)


def _row(crawled: CrawledSite, run: int, position: int, place: SitemapPlace, stored: Mapping[str, Stored]) -> Row:
    sitemap = place.sitemap
    transport = sitemap.transport
    values: Row = {"run": run, "site": crawled.site, "position": position, **sitemap_values(place)}
    if transport is None:
        return {**values, "document": None}
    values["requested_url"] = transport.requested_url
    values["content_type"], values["content_encoding"] = transport.content_type, transport.content_encoding
    is_bad = isinstance(sitemap, InvalidSitemap)
    if isinstance(sitemap, InvalidSitemap):
        values["cause"] = sitemap.cause and str(sitemap.cause)
        values["state"] = State.FAILED
    url = requested_url(transport.url)
    if (reused := crawled.reused.get(url)) is not None:
        values |= {name: reused[name] for name in _REUSED}
        return {**values, "document": _same_document(crawled, run, sitemap.url, reused), "state": State.UNCHANGED}
    document = stored.get(url)
    if document is None:
        return {**values, "document": None}
    values["digest"], values["cache_seconds"] = document.digest, document.cache_seconds
    values |= zip(_PLACE, document[2:], strict=True)
    if is_bad:
        return {**values, "document": None}
    before = crawled.known.document_at(transport.requested_url)
    if before is None:
        values["state"] = State.NEW
    elif all(before[name] == values[name] for name in _SAME):
        return {**values, "document": _same_document(crawled, run, sitemap.url, before), "state": State.UNCHANGED}
    else:
        values["state"] = State.CHANGED
    return {**values, "document": document_key(run, crawled.site, sitemap.url, document.digest)}


def _same_document(crawled: CrawledSite, run: int, url: str, before: Row) -> int:
    """Return the number of a document that did not change: a new one, if its pages have to be written now."""
    number: int = before["document"]
    is_written = number in crawled.known.documents
    return number if is_written else document_key(run, crawled.site, url, before["digest"])


def kept_rows(rows: Sequence[Row], known: KnownSite) -> list[Row]:
    """Return the rows of a tree, with the last document in place of each sitemap that could not be fetched.

    If that was an index, the sitemaps below it are kept as well, unless the tree has them elsewhere. A sitemap that is
    gone (404) is not kept.
    """
    present = {row["url"] for row in rows if row["document"] is not None}
    kept: list[Row] = []
    for row in rows:
        before = known.document_at(row["requested_url"]) if row.get("cause") else None
        if before is None or Cause(row["cause"]) in _GONE:
            kept.append(row)
            continue
        kept.append({**before, **{name: row.get(name) for name in _OF_THIS_RUN}, "state": State.KEPT})
        for below in known.below(before["url"]):
            if below["document"] is not None and below["url"] not in present:
                present.add(below["url"])
                kept.append({**below, "run": row["run"], "state": State.KEPT})
    for position, row in enumerate(kept):
        row["position"] = position
    return kept


def site_row(crawled: CrawledSite, run: int, rows: Sequence[Row]) -> Row:
    """Return the row of a site, from those of its sitemaps."""
    kind, reason = OutcomeKind.COMPLETE, ""
    if crawled.tree is not None:
        kind, reason = crawled.tree.outcome.kind, crawled.tree.outcome.reason
    good = [row for row in rows if row["document"] is not None]
    first = {row["document"]: row for row in reversed(good)}.values()
    return {
        "run": run,
        "site": crawled.site,
        "target": crawled.target,
        "outcome": str(kind),
        "reason": reason or None,
        "started": crawled.started,
        "seconds": crawled.seconds,
        "requests": len(crawled.exchanges),
        "bytes": crawled.bytes,
        "sitemaps": len(good),
        "pages": sum(row["pages"] or 0 for row in first),
        "problems": sum(row["problems"] or 0 for row in first),
        "unchanged": sum(row["state"] == State.UNCHANGED for row in good),
    }
