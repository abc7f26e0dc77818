"""Compare two tables of pages in DuckDB: which pages were added, removed, changed, or moved to another sitemap.

A side is a query with the columns of `SIDE`. Pages are compared by site and URL, and both sides may have a URL several
times. `compare` reads each side once. It joins real URLs, not hashes of them, so nothing depends on luck.
"""

# ruff: noqa: S608 -- queries are made of our own names, and quoted paths

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

__all__ = ["CHANGE_COLUMNS", "COMPARED", "NESTED", "PLACE", "SIDE", "Compared", "compare", "first_of_each"]

#: The columns of a page that are compared: values, and what may have many parts.
_VALUES = ("last_modified", "change_frequency", "priority")
NESTED = ("news", "images", "videos", "alternates")
COMPARED = (*_VALUES, *NESTED)
#: Where a page is in its tree.
PLACE = ("tree_position", "position")
#: The columns of a side.
SIDE = ("site", "url", "section", "sitemap_url", *PLACE, *COMPARED)

#: The columns of a change, in their order.
CHANGE_COLUMNS = (
    *("site", "change", "url", "fields", "section", "sitemap_url", "old_sitemap_url"),
    *("last_modified", "old_last_modified", "title"),
)


@dataclass(frozen=True, slots=True)
class Compared:
    """What differs between two sides.

    The table `changes` has a row for each page that differs. If a URL is more than once in a side, `has_duplicates`
    says so: then some of the rows are wrong, because not the first places of the URL were compared. `is_alike` says
    that at least one page is in the same sitemap on both sides.
    """

    count: int
    has_duplicates: bool
    is_alike: bool


def _differs(names: Iterable[str]) -> str:
    return " or ".join(f"old.{name} is distinct from new.{name}" for name in names)


def _changed_fields(names: Iterable[str]) -> str:
    cases = ", ".join(f"case when old.{name} is distinct from new.{name} then '{name}' end" for name in names)
    return f"list_filter([{cases}], lambda field: field is not null)"


def _row(compared: Sequence[str]) -> str:
    """Return the columns of a page that differs, from the structs `old` and `new`."""
    kind = f"""
        case when old.url is null then 'added' when new.url is null then 'removed'
        when {_differs(compared)} then 'changed' else 'moved' end"""
    fields = f"case when old.url is not null and new.url is not null then {_changed_fields(compared)} else [] end"
    both = ("site", "url", "section", *PLACE)
    title = "coalesce(new.news.title, old.news.title)" if "news" in compared else "null::text"
    parts = {
        **{name: f"coalesce(new.{name}, old.{name})" for name in both},
        "change": kind,
        "fields": fields,
        "sitemap_url": "new.sitemap_url",
        "old_sitemap_url": "old.sitemap_url",
        "last_modified": "new.last_modified",
        "old_last_modified": "old.last_modified",
        "title": title,
    }
    return ", ".join(f"{value} as {name}" for name, value in parts.items())


def compare(
    connection: duckdb.DuckDBPyConnection,
    old: str,
    new: str,
    nested: Sequence[str] = NESTED,
    *,
    counts: tuple[int, int] | None = None,
) -> Compared:
    """Compare two sides: queries with the columns of `SIDE`, without those of `NESTED` that are not named.

    :param counts: the number of rows of each side; None if no side has a URL twice.
    """
    compared = (*_VALUES, *nested)
    is_other = f"old.url is null or new.url is null or old.sitemap_url <> new.sitemap_url or {_differs(compared)}"
    # One pass over both sides, with lists of what differs: a second pass for the counts would take longer.
    connection.execute(
        f"""
        create or replace temp table compared as
        select count(old.url) as old_rows, count(new.url) as new_rows,
            count(*) filter (where old.sitemap_url = new.sitemap_url) > 0 as is_alike,
            list({{'old': old, 'new': new}}) filter (where {is_other}) as pages
        from ({old}) old full join ({new}) new on old.site = new.site and old.url = new.url;
        create or replace temp table changes as
        select {_row(compared)} from (
            select unnest(page, max_depth := 1) from (select unnest(pages) as page from compared)
        );
        """
    )
    ((*rows, is_alike),) = connection.sql("select old_rows, new_rows, is_alike from compared").fetchall()
    ((count, urls),) = connection.sql("select count(*), count(distinct (site, url)) from changes").fetchall()
    # A page that has two partners is in two pairs.
    has_duplicates = counts is not None and (rows != list(counts) or count != urls)
    return Compared(count, has_duplicates, is_alike)


def first_of_each(side: str) -> str:
    """Return a query for the first place of each URL of a site."""
    order = ", ".join(PLACE)
    return f"select * from ({side}) qualify row_number() over (partition by site, url order by {order}) = 1"
