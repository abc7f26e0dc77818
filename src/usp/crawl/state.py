"""What earlier runs know of a site: the rows of its sitemaps in the latest run that learned something.

A run in which a site was blocked or unreachable says nothing about its sitemaps. So the state of a site as of a run is
that of the latest run until then with another outcome. Rows are read part by part, when they are asked for. What stays
in memory of a million sites is in which part each of them is, in some 15 MB.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from functools import cached_property, lru_cache
from hashlib import blake2b
from itertools import chain, islice, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from usp.crawl.checked import checked_source
from usp.crawl.folder import CrawlFolder, PartName
from usp.exceptions import CrawlFolderError
from usp.export.reading import EPOCH
from usp.extras import extra
from usp.objects.outcome import OutcomeKind
from usp.origins import requested_url

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["LEARNED_NOTHING", "KnownSite", "KnownSites", "Row", "SiteBefore", "SiteRow"]

#: A row of a table, by the names of its columns.
Row = dict[str, Any]

LEARNED_NOTHING = (OutcomeKind.BLOCKED, OutcomeKind.UNREACHABLE)
_TABLES_IN_MEMORY = 4
_DATES = "timestamp[us, tz=UTC]"
_ROBOTS = "robots"  # the type of a sitemap
#: Rows that are decoded together, and how often: sites come in about the same order as in the run before, and decoding
#: those of one site takes as long as those of ten.
_BLOCK_ROWS, _BLOCKS_IN_MEMORY = 64, 64


class SiteRow(NamedTuple):
    """What one run says about a site."""

    run: int
    site: str
    target: str
    outcome: str
    part: PartName


class SiteBefore(NamedTuple):
    """What a run says about a site as a whole. `has_problems`: about the tree, not about one document."""

    run: int
    target: str
    outcome: str
    requests: int
    has_problems: bool


class KnownSite:
    """The sitemaps of a site, as the latest run that learned something has them, in tree order."""

    def __init__(self, rows: list[Row], before: SiteBefore | None = None, *, has_pages: bool = True) -> None:
        self.rows = rows
        self.before = before
        self._by_url: dict[str, Row] = {}
        for row in rows:
            if row["document"] is not None:
                for name in ("url", "requested_url"):
                    if row[name]:
                        self._by_url.setdefault(requested_url(row[name]), row)
        #: Documents that need not be read again. Without the tables of pages, that is none.
        self.documents = {row["document"] for row in rows if row["document"] is not None and has_pages}

    def document_at(self, url: str) -> Row | None:
        """Return the row of the document at a URL, or of the one that it redirected to."""
        return self._by_url.get(requested_url(url))

    def below(self, url: str) -> Iterator[Row]:
        """Give the rows below the first sitemap of a URL, in tree order."""
        first = self._positions.get(url)
        if first is not None:
            depth = self.rows[first]["depth"]
            yield from takewhile(lambda row: bool(row["depth"] > depth), islice(self.rows, first + 1, None))

    def roots(self) -> list[str]:
        """Return the URLs of the sitemaps that robots.txt or known paths led to, in tree order."""
        found = []
        is_below_robots = False
        for row in self.rows:
            if row["depth"] == 1:
                is_below_robots = row["type"] == _ROBOTS
            if row["depth"] == 1 + is_below_robots and row["document"] is not None:
                found.append(row["url"])
        return found

    @cached_property
    def _positions(self) -> dict[str, int]:
        """The number of the first row of each URL."""
        return {row["url"]: number for number, row in reversed([*enumerate(self.rows)])}


NOTHING_KNOWN = KnownSite([])


class KnownSites:
    """The state of all sites of a folder as of a run; of the last one, if none is given.

    :param rows: the only rows of sites that count; all of the folder if None.
    :param needs_pages: whether documents of runs that wrote no pages must be read again.
    """

    def __init__(
        self,
        folder: CrawlFolder,
        as_of: int | None = None,
        rows: Iterable[SiteRow] | None = None,
        *,
        needs_pages: bool = False,
    ) -> None:
        self._folder = folder
        self._without_pages = {run.run for run in folder.runs if not run.has_pages} if needs_pages else set()
        self._tables: OrderedDict[PartName, tuple[pa.Table, Mapping[str, tuple[int, int]]]] = OrderedDict()
        self._block = lru_cache(_BLOCKS_IN_MEMORY)(self._decoded)
        self._sites_before = lru_cache(_TABLES_IN_MEMORY)(self._sites_of)
        self._as_of = as_of
        self._parts: list[PartName] = []
        self._part_numbers = _PartNumbers()
        for row in site_rows(folder, as_of) if rows is None else rows:
            if row.outcome not in LEARNED_NOTHING:
                if not self._parts or self._parts[-1] != row.part:
                    self._parts.append(row.part)
                self._part_numbers.put(row.site, len(self._parts) - 1)

    @cached_property
    def last(self) -> Mapping[str, SiteRow]:
        """The last row of every site, whatever its outcome."""
        return {row.site: row for row in site_rows(self._folder, self._as_of)}

    @cached_property
    def learned(self) -> Mapping[str, SiteRow]:
        """The last row of every site of which something is known."""
        rows = site_rows(self._folder, self._as_of)
        return {row.site: row for row in rows if row.outcome not in LEARNED_NOTHING}

    def of(self, site: str) -> KnownSite:
        """Return the sitemaps of a site; none, if nothing is known."""
        number = self._part_numbers.get(site)
        if number is None:
            return NOTHING_KNOWN
        part = self._parts[number]
        if part not in self._tables and not self._folder.has("sitemaps", part):
            return NOTHING_KNOWN
        table, places = self._table(part)
        start, end = places.get(site, (0, 0))
        if not end:
            return NOTHING_KNOWN
        first, last = start // _BLOCK_ROWS, (end - 1) // _BLOCK_ROWS
        rows = chain.from_iterable(self._block(part, block) for block in range(first, last + 1))
        names = table.column_names
        found = islice(rows, start - first * _BLOCK_ROWS, end - first * _BLOCK_ROWS)
        sitemaps = [_with_whole_place(dict(zip(names, values, strict=True))) for values in found]
        before = self._sites_before(part).get(site)
        return KnownSite(sitemaps, before, has_pages=part.run not in self._without_pages)

    def _sites_of(self, part: PartName) -> dict[str, SiteBefore]:
        """Return what a part says about its sites."""
        parquet, compute = extra("pyarrow.parquet", "crawl"), extra("pyarrow.compute", "crawl")
        names = ["site", *SiteBefore._fields[:-1]]
        table = parquet.read_table(checked_source(self._folder, "sites", part), columns=names)
        bad: set[str] = set()
        if self._folder.has("problems", part):
            of_trees = compute.field("document").is_null()
            source = checked_source(self._folder, "problems", part)
            bad.update(parquet.read_table(source, columns=["site"], filters=of_trees)["site"].to_pylist())
        rows = zip(*(table[name].to_pylist() for name in names), strict=True)
        whole = (row for row in rows if None not in row)
        return {
            site: SiteBefore(run, target, outcome, requests, site in bad)
            for site, run, target, outcome, requests in whole
        }

    def _decoded(self, part: PartName, number: int) -> list[tuple[Any, ...]]:
        """Return some rows of a part, each a tuple of its values."""
        some = self._table(part)[0].slice(number * _BLOCK_ROWS, _BLOCK_ROWS)
        try:
            return list(zip(*map(_values_of, some.columns), strict=True))
        except (ValueError, OverflowError) as error:  # such as a date after the year 9999
            path = self._folder.location("sitemaps", part)
            raise CrawlFolderError(f"{path} cannot be read: {error!s:.200}") from None

    def _table(self, part: PartName) -> tuple[pa.Table, Mapping[str, tuple[int, int]]]:
        if part in self._tables:
            self._tables.move_to_end(part)
        else:
            source = checked_source(self._folder, "sitemaps", part)
            table = extra("pyarrow.parquet", "crawl").read_table(source)
            self._tables[part] = table, _runs_of(table.column("site").to_pylist())
            if len(self._tables) > _TABLES_IN_MEMORY:
                self._tables.popitem(last=False)
        return self._tables[part]


class _PartNumbers:
    """The number of a part for each site, in 10 bytes: 6 of a hash of the site, and the number.

    Other bytes of the hash choose a bucket. Two sites in 2**60 are taken for one; the part tells which of them it has.
    """

    _BUCKETS, _TAIL, _SIZE = 1 << 14, 6, 10

    def __init__(self) -> None:
        self._hash = blake2b(os.urandom(16), digest_size=2 + self._TAIL)
        self._buckets = [b""] * self._BUCKETS

    def put(self, site: str, number: int) -> None:
        """Set the number of a site."""
        bucket, tail, at = self._place(site)
        entries = self._buckets[bucket]
        entry = tail + number.to_bytes(self._SIZE - self._TAIL, "little")
        self._buckets[bucket] = entries + entry if at < 0 else entries[:at] + entry + entries[at + self._SIZE :]

    def get(self, site: str) -> int | None:
        """Return the number of a site, if it has one."""
        bucket, _, at = self._place(site)
        if at < 0:
            return None
        return int.from_bytes(self._buckets[bucket][at + self._TAIL : at + self._SIZE], "little")

    def _place(self, site: str) -> tuple[int, bytes, int]:
        """Return the bucket of a site, what identifies the site in it, and where that is; -1 if it is not there."""
        hashed = self._hash.copy()
        hashed.update(site.encode("utf-8", "surrogatepass"))
        digest = hashed.digest()
        bucket, tail = int.from_bytes(digest[self._TAIL :], "little") % self._BUCKETS, digest[: self._TAIL]
        at = self._buckets[bucket].find(tail)
        while at >= 0 and at % self._SIZE:
            at = self._buckets[bucket].find(tail, at + 1)
        return bucket, tail, at


def site_rows(folder: CrawlFolder, until: int | None = None) -> Iterator[SiteRow]:
    """Give the rows of the table of sites, oldest run first."""
    parquet = extra("pyarrow.parquet", "crawl")
    for part in folder.parts():
        if until is None or part.run <= until:
            source = checked_source(folder, "sites", part)
            table = parquet.read_table(source, columns=["run", "site", "target", "outcome"])
            columns = (table.column(name).to_pylist() for name in ("run", "site", "target", "outcome"))
            for run, site, target, outcome in zip(*columns, strict=True):
                if None not in (run, site, target, outcome):  # usp writes no such row, but others may
                    yield SiteRow(run, site, target, outcome, part)


def _values_of(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column. Dates, as usp writes them, take pyarrow ten times as long as this."""
    if str(column.type) != _DATES:
        values: list[Any] = column.to_pylist()
        return values
    since = column.cast("int64").to_pylist()
    return [None if value is None else EPOCH + timedelta(microseconds=value) for value in since]


def _with_whole_place(row: Row) -> Row:
    """Return a row. If it does not say where its WARC record is, or wrongly, it has none."""
    place = row["warc_offset"], row["warc_length"], row["warc_date"]
    if row["warc"] is not None and (None in place or place[0] < 0):
        row["warc"] = None
    return row


def _runs_of(sites: list[str]) -> dict[str, tuple[int, int]]:
    """Return where the rows of each site start and end. The rows of a site stand together."""
    places: dict[str, tuple[int, int]] = {}
    start = 0
    for at in range(1, len(sites) + 1):
        if at == len(sites) or sites[at] != sites[start]:
            places[sites[start]] = start, at
            start = at
    return places
