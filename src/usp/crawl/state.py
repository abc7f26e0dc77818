"""What earlier runs know of a site: the rows of its sitemaps in the latest run that learned something.

A run in which a site was blocked or unreachable says nothing about its sitemaps. So the state of a site as of a run is
that of the latest run until then with another outcome. Rows are read part by part, when they are asked for.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from usp.crawl.folder import CrawlFolder, PartName
from usp.extras import extra
from usp.objects.outcome import OutcomeKind
from usp.origins import requested_url

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["LEARNED_NOTHING", "KnownSite", "KnownSites", "Row", "SiteRow"]

#: A row of a table, by the names of its columns.
Row = dict[str, Any]

LEARNED_NOTHING = (OutcomeKind.BLOCKED, OutcomeKind.UNREACHABLE)
_TABLES_IN_MEMORY = 4


class SiteRow(NamedTuple):
    """What one run says about a site."""

    run: int
    site: str
    target: str
    outcome: str
    part: PartName


class KnownSite:
    """The sitemaps of a site, as the latest run that learned something has them, in tree order."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self._by_url: dict[str, Row] = {}
        for row in rows:
            if row["document"] is not None:
                for name in ("url", "requested_url"):
                    if row[name]:
                        self._by_url.setdefault(requested_url(row[name]), row)
        self.documents = {row["document"] for row in rows if row["document"] is not None}

    def document_at(self, url: str) -> Row | None:
        """Return the row of the document at a URL, or of the one that it redirected to."""
        return self._by_url.get(requested_url(url))

    def below(self, url: str) -> Iterator[Row]:
        """Give the rows below the first sitemap of a URL, in tree order."""
        depth = None
        for row in self.rows:
            if depth is not None and row["depth"] <= depth:
                return
            if depth is not None:
                yield row
            elif row["url"] == url:
                depth = row["depth"]


NOTHING_KNOWN = KnownSite([])


class KnownSites:
    """The state of all sites of a folder as of a run; of the last one, if none is given."""

    def __init__(self, folder: CrawlFolder, as_of: int | None = None) -> None:
        self._folder = folder
        self._tables: OrderedDict[PartName, tuple[pa.Table, Mapping[str, tuple[int, int]]]] = OrderedDict()
        self._sites: dict[str, SiteRow] = {}
        self._last: dict[str, SiteRow] = {}
        for row in site_rows(folder, as_of):
            self._last[row.site] = row
            if row.outcome not in LEARNED_NOTHING:
                self._sites[row.site] = row

    def last(self) -> Mapping[str, SiteRow]:
        """Return the last row of every site, whatever its outcome."""
        return self._last

    def learned(self) -> Mapping[str, SiteRow]:
        """Return the last row of every site of which something is known."""
        return self._sites

    def of(self, site: str) -> KnownSite:
        """Return the sitemaps of a site; none, if nothing is known."""
        row = self._sites.get(site)
        if row is None or not self._folder.has("sitemaps", row.part):
            return NOTHING_KNOWN
        table, places = self._table(row.part)
        start, end = places.get(site, (0, 0))
        return KnownSite(table.slice(start, end - start).to_pylist()) if end else NOTHING_KNOWN

    def _table(self, part: PartName) -> tuple[pa.Table, Mapping[str, tuple[int, int]]]:
        if part in self._tables:
            self._tables.move_to_end(part)
        else:
            table = extra("pyarrow.parquet", "crawl").read_table(self._folder.file("sitemaps", part))
            self._tables[part] = table, _runs_of(table.column("site").to_pylist())
            if len(self._tables) > _TABLES_IN_MEMORY:
                self._tables.popitem(last=False)
        return self._tables[part]


def site_rows(folder: CrawlFolder, until: int | None = None) -> Iterator[SiteRow]:
    """Give the rows of the table of sites, oldest run first."""
    parquet = extra("pyarrow.parquet", "crawl")
    for part in folder.parts():
        if until is None or part.run <= until:
            table = parquet.read_table(folder.file("sites", part), columns=["run", "site", "target", "outcome"])
            columns = (table.column(name).to_pylist() for name in ("run", "site", "target", "outcome"))
            for run, site, target, outcome in zip(*columns, strict=True):
                yield SiteRow(run, site, target, outcome, part)


def _runs_of(sites: list[str]) -> dict[str, tuple[int, int]]:
    """Return where the rows of each site start and end. The rows of a site stand together."""
    places: dict[str, tuple[int, int]] = {}
    start = 0
    for at in range(1, len(sites) + 1):
        if at == len(sites) or sites[at] != sites[start]:
            places[sites[start]] = start, at
            start = at
    return places
