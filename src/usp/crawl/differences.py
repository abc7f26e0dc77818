"""Find the pages that differ between two runs of a crawl folder, in DuckDB. `usp.crawl.changes` says what counts.

Sites are compared in groups, each with a limited number of pages, and a huge site in several parts. So the memory that
this takes depends on the number of pages in a group, and not on that of the crawl.
"""

# ruff: noqa: S608 -- queries are made of our own names, and quoted paths

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from usp.crawl.checked import checked_source
from usp.crawl.comparing import CHANGE_COLUMNS, COMPARED, NESTED, compare, first_of_each
from usp.crawl.database import CrawlDatabase, open_database
from usp.crawl.folder import CrawlFolder, PartName
from usp.crawl.reading import groups_with
from usp.crawl.sites import known_key
from usp.crawl.state import site_rows
from usp.exceptions import CrawlFolderError
from usp.extras import extra

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["found_changes", "keys_of"]

_GROUP_PAGES = 2_500_000  # of documents that differ, on both sides
_ROWS_AT_ONCE = 1 << 16
_READERS = 4  # threads

# `documents` has those of both states, of sites whose sets of documents differ. A position is where a document is first
# in the tree of a state; it is null if the state does not have it.
_DOCUMENTS = """
create or replace temp table {name} as
select site, document, min(position) as position, arg_min(url, position) as url, max(pages) as pages
from ({sitemaps}) where document is not null and pages > 0 group by site, document
"""
_BOTH = """
create or replace temp table united as
select site, document, old.position as old_position, new.position as new_position,
    coalesce(new.url, old.url) as sitemap_url, coalesce(new.pages, old.pages) as pages
from old_documents old full join new_documents new using (site, document);
create or replace temp table sites as
select row_number() over (order by part, site) as id, site, pages from (
    select site, sum(pages) filter (where old_position is null or new_position is null) as pages
    from united group by site
) join new_state using (site) where pages > 0;
create or replace temp table documents as
select sites.id as site, united.* exclude (site), dense_rank() over (order by sitemap_url)::integer as sitemap
from united join sites on united.site = sites.site;
create or replace temp table sitemap_urls as select distinct sitemap as id, sitemap_url as url from documents
"""
# Sites whose common sitemaps have another order than before, or that have two documents at one URL.
_REORDERED = """
select site from (
    select site, sitemap_url, min(old_position) as old, min(new_position) as new,
        count(old_position) > 1 or count(new_position) > 1 as is_twice
    from documents where site between {first} and {last} group by site, sitemap_url
) group by site
having bool_or(is_twice) or list(sitemap_url order by old) filter (where old is not null and new is not null)
    <> list(sitemap_url order by new) filter (where old is not null and new is not null)
"""


def keys_of(folder: CrawlFolder, sites: Iterable[str], run: int) -> list[str]:
    """Return the URLs of sites as tables have them.

    :raises InvalidArgumentError: if the folder does not have a site.
    """
    known = {row.site for row in site_rows(folder, run)}
    return [known_key(site, known) for site in sites]


def found_changes(
    folder: CrawlFolder, earlier: int, later: int, sites: Sequence[str] | None, *, new_sites: bool = True
) -> Iterator[pa.Table]:
    """Give the pages that differ, in the order of the sites."""
    with open_database() as connection:
        database = CrawlDatabase(folder, connection)
        _make_states(database, earlier, later, sites)
        if not new_sites:
            connection.execute("delete from new_state where site not in (select site from old_state)")
        _make_documents(database)
        finder = _Finder(database, folder, later)
        for group in _groups(database):
            yield from finder.changes(group)


def _make_states(database: CrawlDatabase, earlier: int, later: int, sites: Sequence[str] | None) -> None:
    """Make the tables of both states, without sites that have not been read in between."""
    database.make_state("old_state", earlier)
    database.make_state("new_state", later)
    connection = database.connection
    if sites is not None:
        connection.execute("delete from new_state where not list_contains(?, site)", [list(sites)])
    connection.execute(
        """
        delete from new_state where (site, run) in (select (site, run) from old_state);
        delete from old_state where site not in (select site from new_state)
        """
    )


def _make_documents(database: CrawlDatabase) -> None:
    for name in ("old", "new"):
        sitemaps = database.sitemaps_of(f"{name}_state")
        database.connection.execute(_DOCUMENTS.format(name=f"{name}_documents", sitemaps=sitemaps))
    database.connection.execute(_BOTH)


class _Group(NamedTuple):
    """Sites that are compared together, by their ids. Huge ones are compared in several parts."""

    first: int
    last: int
    parts: int


def _groups(database: CrawlDatabase) -> Iterator[_Group]:
    rows = database.connection.sql("select id, pages from sites order by id").fetchall()
    first, total = 1, 0
    for number, pages in rows:
        if total and total + pages > _GROUP_PAGES:
            yield _Group(first, number - 1, 1)
            first, total = number, 0
        total += pages
        if total > _GROUP_PAGES:
            yield _Group(first, number, -(-total // _GROUP_PAGES))
            first, total = number + 1, 0
    if total:
        yield _Group(first, rows[-1][0], 1)


class _Finder:
    """Finds the changes of groups of sites."""

    def __init__(self, database: CrawlDatabase, folder: CrawlFolder, later: int) -> None:
        self._database = database
        self._connection = database.connection
        self._folder = folder
        self._later = later
        self._connection.execute(
            f"""
            create or replace temp table places as
            select document, arg_min(parse_filename(filename, true), run) as part
            from {database.table("sitemaps", later)}
            where document in (select document from documents) group by document
            """
        )

    def changes(self, group: _Group) -> Iterator[pa.Table]:
        """Give the changes of a group."""
        self._connection.execute(
            f"""
            create or replace temp table listed as
            select * from documents where site between {group.first} and {group.last};
            create or replace temp table reordered as {_REORDERED.format(first=group.first, last=group.last)};
            """
        )
        urls = {"url": "changes.url", "sitemap_url": "new.url", "old_sitemap_url": "old.url"}
        columns = [f"{urls.get(name, name)} as {name}" for name in CHANGE_COLUMNS[1:]]
        for number in range(group.parts):
            self._compare(group, number)
            yield self._connection.sql(
                f"""
                select sites.site, {", ".join(columns)} from changes join sites on changes.site = sites.id
                left join sitemap_urls new on changes.sitemap_url = new.id
                left join sitemap_urls old on changes.old_sitemap_url = old.id
                order by sites.id, tree_position, position, changes.url
                """
            ).to_arrow_table()

    def _compare(self, group: _Group, number: int) -> None:
        """Make the table of changes of a part of the pages."""
        is_old = "old_position is not null and new_position is null"
        is_new = "old_position is null and new_position is not null"
        nested = self._nested()
        of_part = "true" if group.parts == 1 else f"hash(url) % {group.parts} = {number}"
        old = self._side("old_position", is_old, nested, of_part)
        new = self._side("new_position", is_new, nested, of_part)
        counts = self._pages(is_old, old, group.parts), self._pages(is_new, new, group.parts)
        found = compare(self._connection, old, new, nested, counts=counts)
        is_simple = not found.has_duplicates and not self._count("reordered")
        self._connection.execute("create or replace temp table wanted as select distinct site, url from changes")
        if not is_simple:
            self._want_duplicates(old, new, of_part)
        same = "old_position is not null and new_position is not null"
        in_both = self._side("old_position", same, nested, of_part, "new_position")
        self._connection.execute(
            f"create or replace temp table unchanged as from ({in_both}) semi join wanted using (site, url)"
        )
        if is_simple and not self._count("unchanged"):
            return
        # Some of these pages are in documents that did not change, or are listed twice: look at all their places.
        at_new = "select * exclude (tree_position, new_position), new_position as tree_position from unchanged"
        sides = [
            f"from ({side}) semi join wanted using (site, url) union all by name {rest}"
            for side, rest in ((old, "select * exclude (new_position) from unchanged"), (new, at_new))
        ]
        first_old, first_new = map(first_of_each, sides)
        compare(self._connection, first_old, first_new, nested)

    def _want_duplicates(self, old: str, new: str, of_part: str) -> None:
        """Add URLs that are listed more than once: in documents that differ and, if the order changed, in others."""
        for side in (old, new):
            self._connection.execute(
                f"insert into wanted select site, url from ({side}) group by site, url having count(*) > 1"
            )
        if self._count("reordered"):
            urls = f"select site, url from ({old}) union all select site, url from ({new})"
            same = "old_position is not null and new_position is not null and site in (from reordered)"
            others = self._side("old_position", same, (), of_part)
            self._connection.execute(
                f"insert into wanted select site, url from ({others}) semi join ({urls}) using (site, url)"
            )

    def _pages(self, which: str, side: str, parts: int) -> int:
        """Return the number of pages of a side. A wrong one costs only time: all places of pages are looked up then."""
        if parts > 1:
            return self._count(f"({side})")
        ((count,),) = self._connection.sql(f"select coalesce(sum(pages), 0) from listed where {which}").fetchall()
        return int(count)

    def _count(self, table: str) -> int:
        ((count,),) = self._connection.sql(f"select count(*) from {table}").fetchall()
        return int(count)

    def _side(self, place: str, which: str, nested: Sequence[str], of_part: str, *more: str) -> str:
        """Return the query for the pages of some documents, as `compare` takes it."""
        parts = self._parts(which)
        documents = f"select * from listed where {which}"
        pages = self._database.of_parts("pages", parts)
        compared = [name for name in COMPARED if name not in NESTED or name in nested]
        sitemap = "sitemap as sitemap_url"  # its number, which is cheaper to join
        columns = ", ".join(("listed.site", "url", "section", sitemap, "position", *compared, *more))
        return f"""
            select {columns}, {place} as tree_position
            from (select * exclude (site, sitemap_url) from {pages} where {of_part}) pages
            join ({documents}) listed using (document)"""

    def _parts(self, which: str) -> list[str]:
        found = self._connection.sql(
            f"select distinct part from places semi join (from listed where {which}) using (document)"
        )
        parts = sorted(part for (part,) in found.fetchall())
        for part in parts:
            name = PartName.parse(part)
            if name is not None and not self._folder.has("pages", name):
                raise CrawlFolderError(
                    f"run {name.run} of {self._folder.path} has no pages; it was crawled with --no-pages"
                )
        return parts

    def _nested(self) -> list[str]:
        """Return the columns of many parts that have any value. To read forty columns of nothing would take longest."""
        which = "old_position is null or new_position is null"
        documents = self._connection.sql(f"select document from listed where {which} order by document").fetchall()
        wanted = [document for (document,) in documents]
        parts = [_part_name(part) for part in self._parts(which)]
        read = partial(_has_values, self._folder, wanted)
        with ThreadPoolExecutor(_READERS) as pool:
            has_values = list(pool.map(read, *zip(*product(parts, NESTED), strict=True)))
        found = {name for (_, name), has in zip(product(parts, NESTED), has_values, strict=True) if has}
        return [name for name in NESTED if name in found]


def _part_name(text: str) -> PartName:
    name = PartName.parse(text)
    assert name is not None
    return name


def _has_values(folder: CrawlFolder, documents: list[int], part: PartName, name: str) -> bool:
    """Return whether a column of many parts has any value in a part, near these documents.

    One of its parts tells where the column itself has a value, even if the part has none.
    """
    file: Any = extra("pyarrow.parquet", "crawl").ParquetFile(checked_source(folder, "pages", part))
    with file:
        paths = (file.schema.column(number).path for number in range(file.metadata.num_columns))
        leaf = next(path for path in paths if path.startswith(f"{name}."))
        groups = groups_with(file.metadata, documents)
        batches = file.iter_batches(_ROWS_AT_ONCE, groups, [leaf], use_threads=False)
        return any(batch.column(0).null_count < batch.num_rows for batch in batches)
