"""A site that was crawled, and its rows in the tables, except those of its pages and problems.

Nothing here does I/O: `usp.crawl.parts` reads the documents and writes the rows.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from usp.crawl.schema import State, document_key
from usp.crawl.state import LEARNED_NOTHING, NOTHING_KNOWN, KnownSite, Row
from usp.export.reading import SitemapPlace, sitemap_places, sitemap_values
from usp.objects.outcome import Cause, OutcomeKind
from usp.objects.sitemap import AbstractSitemap, IndexRobotsTxtSitemap, InvalidSitemap, fetch_failure
from usp.objects.transport import Transport
from usp.origins import requested_url
from usp.web_client.exchanges import Exchange

__all__ = ["CrawledSite", "Stored", "TreeRow", "gone_roots", "kept_rows", "site_row", "tree_rows"]

#: Columns of a kept row that say what happened this time. All others describe the last document.
_OF_THIS_RUN = ("run", "position", "parent", "depth", "status", "reason", "cause", "seconds", "last_modified")
_PLACE = ("warc", "warc_offset", "warc_length", "warc_date")
_REUSED = ("digest", "document", "fetched_at", "cache_seconds", *_PLACE)
#: Columns that are equal if the pages of a document are.
_SAME = ("url", "digest", "content_type", "content_encoding")
_WEB_PAGE = "a web page is served in place of robots.txt"
_GONE = (Cause.NOT_FOUND, Cause.LOOP, Cause.LEFT_OUT, Cause.DISALLOWED)


@dataclass(frozen=True, slots=True)
class CrawledSite:
    """What a run has fetched of one site.

    `reused` has the rows of earlier documents that did not change, by the URL that was requested: the server said so,
    or it was not asked. `lost` has the URLs of earlier documents whose bodies cannot be read. `tree` is None if nothing
    of the site has changed; see `usp.crawl.unchanged`.
    """

    site: str
    target: str
    tree: AbstractSitemap | None
    started: datetime
    seconds: float
    exchanges: Sequence[Exchange] = ()
    known: KnownSite = NOTHING_KNOWN
    reused: Mapping[str, Row] = field(default_factory=dict)
    lost: Container[str] = ()

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
    places = sitemap_places(tree)
    for position, place in enumerate(chain([next(places)], _lost_roots(crawled, tree), places)):
        row = _row(crawled, run, position, place, stored)
        document = row["document"]
        is_new = document is not None and document not in written
        if is_new:
            written.add(document)
        yield TreeRow(place.sitemap, row, is_new)


def _lost_roots(crawled: CrawledSite, tree: AbstractSitemap) -> Iterator[SitemapPlace]:
    """Give places for robots.txt and known paths that failed, if an earlier document is known: it is kept.

    A tree has no places for them. If nothing of the site was learned, nothing is kept here: all rows of the run before
    still count.
    """
    if tree.outcome.kind in LEARNED_NOTHING:
        return
    for answer in tree.facts.roots or ():
        if answer.cause is not None and answer.cause not in _GONE and crawled.known.document_at(answer.url) is not None:
            sitemap = InvalidSitemap(answer.url, fetch_failure(answer.url, answer.reason), cause=answer.cause)
            yield SitemapPlace(sitemap, tree, 1, tree.facts.names)


def gone_roots(tree: AbstractSitemap) -> set[str]:
    """Return the URLs of robots.txt and of known paths that do not exist."""
    return {answer.url for answer in tree.facts.roots or () if answer.cause is Cause.NOT_FOUND}


def _row(crawled: CrawledSite, run: int, position: int, place: SitemapPlace, stored: Mapping[str, Stored]) -> Row:
    sitemap = place.sitemap
    transport = sitemap.transport
    values: Row = {"run": run, "site": crawled.site, "position": position, **sitemap_values(place)}
    is_bad = isinstance(sitemap, InvalidSitemap)
    if isinstance(sitemap, InvalidSitemap):
        values["cause"] = sitemap.cause and str(sitemap.cause)
        values["state"] = State.FAILED
    if transport is None:
        return {**values, "document": None}
    values["requested_url"] = transport.requested_url
    values["content_type"], values["content_encoding"] = transport.content_type, transport.content_encoding
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
    if before is not None and _is_web_page_for_robots(sitemap) and any(crawled.known.below(before["url"])):
        return {**values, "document": None, "state": State.FAILED, "cause": str(Cause.UNREADABLE), "reason": _WEB_PAGE}
    if (cause := _why_cut(transport)) is not None:
        values["cause"] = str(cause)
        if before is not None and (before["state"] != State.CUT or (before["bytes"] or 0) > values["bytes"]):
            return {**values, "document": None, "state": State.FAILED}  # what was there before says more
        values["state"] = State.CUT
    elif before is None:
        values["state"] = State.NEW
    elif before["state"] != State.CUT and all(before[name] == values[name] for name in _SAME):
        return {**values, "document": _same_document(crawled, run, sitemap.url, before), "state": State.UNCHANGED}
    else:
        values["state"] = State.CHANGED
    return {**values, "document": document_key(run, crawled.site, sitemap.url, document.digest)}


def _is_web_page_for_robots(sitemap: AbstractSitemap) -> bool:
    """Return whether a web page is served in place of robots.txt: nobody knows which sitemaps the site has."""
    is_without_sitemaps = isinstance(sitemap, IndexRobotsTxtSitemap) and not sitemap.sub_sitemaps
    return is_without_sitemaps and bool(sitemap.problem_counts["R701"])


def _why_cut(transport: Transport) -> Cause | None:
    """Return why only a part of a document arrived or was read; None if all of it was.

    A document that is too long is not one of these: its part is the same each time.
    """
    if transport.is_whole or (transport.is_limited and not transport.cut_reason):
        return None
    return Cause.LIMIT if transport.is_limited else Cause.TRUNCATED


def _same_document(crawled: CrawledSite, run: int, url: str, before: Row) -> int:
    """Return the number of a document that did not change: a new one, if its pages have to be written now."""
    number: int = before["document"]
    is_written = number in crawled.known.documents
    return number if is_written else document_key(run, crawled.site, url, before["digest"])


def kept_rows(rows: Sequence[Row], known: KnownSite, gone: Container[str] = ()) -> list[Row]:
    """Return the rows of a tree, with the last document in place of each sitemap that could not be fetched as a whole.

    The sitemaps below such an index are kept as well, unless the tree has them elsewhere. If a limit ended the tree, so
    are those below all others: nobody knows whether they are gone. A sitemap that is gone (404) is not kept.

    :param gone: URLs of sitemaps that are gone, and have no rows. What was below them is not kept, either.
    """
    present = {row["url"] for row in rows if row["document"] is not None}
    is_ended_by_limit = any(row.get("cause") == Cause.LIMIT for row in rows)
    kept: list[Row] = []
    above: list[Row] = []  # those of which known sitemaps below are kept

    def end(depth: int) -> None:
        """Add what is kept below the rows that end before a row of this depth."""
        while above and above[-1]["depth"] >= depth:
            ended = above.pop()
            gone_depth = math.inf  # of the sitemap that is gone, while its rows are passed
            for below in known.below(ended["url"]):
                if below["depth"] <= gone_depth:
                    gone_depth = below["depth"] if below["url"] in gone else math.inf
                if gone_depth == math.inf and below["document"] is not None and below["url"] not in present:
                    present.add(below["url"])
                    kept.append({**below, "run": ended["run"], "state": _state_kept(below)})

    for row in rows:
        end(row["depth"])
        before = known.document_at(row.get("requested_url") or row["url"]) if row.get("cause") else None
        is_kept = before is not None and Cause(row["cause"]) not in _GONE
        if before is not None and is_kept and row["document"] is None:
            row = {**before, **{name: row.get(name) for name in _OF_THIS_RUN}, "state": _state_kept(before)}
        kept.append(row)
        if is_kept or is_ended_by_limit:
            above.append(row)
    end(0)
    for position, row in enumerate(kept):
        row["position"] = position
    return kept


def _state_kept(before: Row) -> State:
    return State.CUT if before["state"] == State.CUT else State.KEPT


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
