"""What has changed between any two sources: trees, crawl folders, and exports of pages in Parquet.

All pages of both are compared, whatever site they are of. A page that is listed several times counts where it is first.
Of sources that have no sitemap in common, such as a folder of files and the site that it is for, no page has moved.
If a part of a tree is missing, nobody knows which pages it has: pages that only the other side has count as added or
removed only if their sitemap was read on both sides.
"""

# ruff: noqa: S608 -- queries are made of our own names, and quoted paths

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from usp.crawl.changes import Changes
from usp.crawl.comparing import CHANGE_COLUMNS, COMPARED, compare, first_of_each
from usp.crawl.database import CrawlDatabase, open_database, scan
from usp.crawl.folder import CrawlFolder
from usp.exceptions import InvalidArgumentError
from usp.export.frames import TreeTable
from usp.export.reading import SourceTree
from usp.extras import extra
from usp.objects.outcome import OutcomeKind
from usp.objects.sitemap import AbstractSitemap, InvalidSitemap

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

__all__ = ["CrawlState", "ExportedPages", "PageSource", "source_changes"]

_NEEDED = ("url", "host", "section", "sitemap_url", *COMPARED)


class ExportedPages(NamedTuple):
    """A Parquet file that `usp export` has written."""

    path: str


class CrawlState(NamedTuple):
    """A crawl folder as of a run; None is the last one."""

    folder: CrawlFolder
    run: int | None = None


#: Something that has pages.
PageSource = AbstractSitemap | Sequence[AbstractSitemap] | ExportedPages | CrawlState


def source_changes(old: PageSource, new: PageSource) -> Changes:
    """Return what has changed between two sources. The column `site` has the hosts of pages.

    :raises InvalidArgumentError: if a file is no export of pages.
    """
    for source in (old, new):
        if isinstance(source, ExportedPages):
            _check_export(source.path)

    def find() -> Iterator[pa.Table]:
        with open_database() as connection:
            sides = [_side(connection, source, name) for source, name in ((old, "old_pages"), (new, "new_pages"))]
            found = compare(connection, sides[0], sides[1])
            known = ["true" if found.is_alike else "change <> 'moved'"]
            for source, change, column in ((new, "removed", "old_sitemap_url"), (old, "added", "sitemap_url")):
                if (urls := _read_whole(source)) is not None:
                    connection.register(f"read_{change}", extra("pyarrow", "crawl").table({"url": urls}))
                    known.append(f"(change <> '{change}' or {column} in (select url from read_{change}))")
            columns = ", ".join(CHANGE_COLUMNS)
            order = "site, tree_position, position, url"
            yield connection.sql(
                f"select {columns} from changes where {' and '.join(known)} order by {order}"
            ).to_arrow_table()

    return Changes(find)


def _read_whole(source: PageSource) -> list[str] | None:
    """Return the URLs of the sitemaps of trees that were read as a whole; None if nothing is missing."""
    if isinstance(source, (ExportedPages, CrawlState)):
        return None
    trees = [source] if isinstance(source, AbstractSitemap) else source
    if all(tree.outcome.kind is not OutcomeKind.PARTIAL for tree in trees):
        return None
    found = (sitemap for tree in trees for sitemap in tree.all_sitemaps() if not isinstance(sitemap, InvalidSitemap))
    return [sitemap.url for sitemap in found if sitemap.transport is None or sitemap.transport.is_whole]


def _check_export(path: str) -> None:
    pa, parquet = extra("pyarrow", "crawl"), extra("pyarrow.parquet", "crawl")
    try:
        names = parquet.read_schema(path).names
    except pa.ArrowInvalid as error:
        raise InvalidArgumentError(f"{path} is no Parquet file: {error}") from None
    if missing := [name for name in _NEEDED if name not in names]:
        raise InvalidArgumentError(
            f"{path} has no column {missing[0]}; to compare pages, export all of their columns: usp export -o {path}"
        )


def _side(connection: duckdb.DuckDBPyConnection, source: PageSource, name: str) -> str:
    columns = ", ".join(("host as site", "url", "section", "sitemap_url", *COMPARED))
    if isinstance(source, ExportedPages):
        return first_of_each(
            f"select {columns}, 0 as tree_position, file_row_number as position from {scan([source.path])}"
            " where url is not null"
        )
    if isinstance(source, CrawlState):
        return first_of_each(_side_of_crawl(connection, source, columns, name))
    trees = [source] if isinstance(source, AbstractSitemap) else source
    table = TreeTable([SourceTree(None, tree) for tree in trees], "pages", columns=_NEEDED, dedupe=True)
    connection.register(name, table)
    return f"select {columns}, 0 as tree_position, row_number() over () as position from {name}"


def _side_of_crawl(connection: duckdb.DuckDBPyConnection, source: CrawlState, columns: str, name: str) -> str:
    database = CrawlDatabase(source.folder, connection)
    database.make_state(f"{name}_state", source.run)
    sitemaps = database.sitemaps_of(f"{name}_state")
    pages = database.table("pages", source.run)
    return f"""
        select {columns}, tree_position, position
        from (select * exclude (site), site as of_site from {pages})
        join (select site as of_site, document, min(position) as tree_position from ({sitemaps}) group by all)
        using (of_site, document)
        """
