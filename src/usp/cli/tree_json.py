"""`usp ls -f json`: trees as one JSON object, written piece by piece, so that no sitemap's pages are held in memory.

{"schema_version": 1, "outcome": {...}, "sources": [
    {"target": ..., "outcome": {...}, "notes": [...], "tree": {"url": ..., "pages": [...], "sub_sitemaps": [...]}}
]}
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from types import MappingProxyType
from typing import Any, NamedTuple

from usp.cli.facts import plain_values
from usp.cli.pages import ChosenPages
from usp.export.batches import FirstPlaces
from usp.export.formats.base import FormatOptions, Table
from usp.export.formats.cells import json_of
from usp.export.formats.json import json_writer
from usp.export.reading import SitemapRow, sitemap_rows
from usp.export.schema import PAGES
from usp.objects.outcome import Outcome
from usp.objects.sitemap import AbstractSitemap

__all__ = ["SCHEMA_VERSION", "ListedSource", "json_pieces"]

SCHEMA_VERSION = 1


class ListedSource(NamedTuple):
    """A source that was read: what the user called it, its tree, and notes on how it was read.

    `files` has the names of files whose URL nobody knows, by the URLs that stand for them.
    """

    name: str
    tree: AbstractSitemap
    notes: tuple[str, ...] = ()
    files: Mapping[str, str] = MappingProxyType({})


def json_pieces(
    listed: Sequence[ListedSource], outcome: Outcome, pages: ChosenPages, *, with_pages: bool = True
) -> Iterator[tuple[int, str]]:
    """Give the JSON of sources in pieces, with the number of pages in each piece."""
    yield 0, f'{{"schema_version": {SCHEMA_VERSION}, "outcome": {json_of(_outcome(outcome))}, "sources": ['
    for number, source in enumerate(listed):
        about = {"target": source.name, "outcome": _outcome(source.tree.outcome), "notes": list(source.notes)}
        yield 0, f'{"," if number else ""}\n{json_of(about)[:-1]}, "tree":\n'
        with closing(sitemap_rows(source.tree)) as rows:
            yield from _sitemap(source.tree, rows, pages if with_pages else None, FirstPlaces())
        yield 0, "}"
    yield 0, "\n]}\n"


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {
        "kind": str(outcome.kind),
        "reason": outcome.reason,
        "missing": [
            {"cause": str(one.cause), "reason": one.reason, "count": one.count, "urls": list(one.urls)}
            for one in outcome.missing
        ],
        "skipped": outcome.skipped,
        "left_out": outcome.left_out,
    }


def _sitemap(
    sitemap: AbstractSitemap, rows: Iterator[SitemapRow], pages: ChosenPages | None, places: FirstPlaces
) -> Iterator[tuple[int, str]]:
    """Give the JSON of a sitemap and all below it. `rows` has theirs, in the same order.

    A sitemap that occurs again has its number of pages, and no pages.
    """
    values = plain_values(next(rows))
    del values["depth"], values["parent"]  # the tree shows them
    count = values["page_count"] = values.pop("pages")
    values["problems"] = dict(sitemap.problem_counts)
    is_first = places.is_first(sitemap)
    yield count if pages is None and is_first else 0, json_of(values)[:-1]
    if pages is not None:
        yield 0, ', "pages": ['
        yield from _pages(sitemap, pages) if is_first else ()
        yield 0, "]"
    yield 0, ', "sub_sitemaps": ['
    for number, sub in enumerate(sitemap.sub_sitemaps):
        yield 0, ",\n" if number else "\n"
        yield from _sitemap(sub, rows, pages, places)
    yield 0, "]}"


def _pages(sitemap: AbstractSitemap, pages: ChosenPages) -> Iterator[tuple[int, str]]:
    writer = json_writer(io.BytesIO(), Table("pages", PAGES, pages.columns), FormatOptions())
    is_first = True
    for batch in pages.rows(sitemap):
        yield batch.kept_count, ""
        for encoded in writer.encode(batch):
            rows = encoded.decode()  # with a comma before each row
            yield 0, rows[1:] if is_first else rows
            is_first = False
