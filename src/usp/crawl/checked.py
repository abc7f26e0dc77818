"""Check the Parquet files of a crawl folder before they are read: somebody else may have written or damaged them.

A file that is damaged, or that lacks columns, is an error that names it. Without that, the libraries that read it raise
errors of their own, each another one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from usp.crawl.folder import CrawlFolder, PartName
from usp.crawl.schema import TABLES
from usp.exceptions import CrawlFolderError
from usp.export.arrow import arrow_schema
from usp.extras import extra

__all__ = ["check_part", "checked_source"]


def checked_source(folder: CrawlFolder, table: str, part: PartName) -> Any:
    """Return what pyarrow reads a table of a part from.

    :raises CrawlFolderError: if it is not a Parquet file with the columns of that table.
    """
    check_part(folder, table, part)
    return folder.arrow_source(table, part)


def check_part(folder: CrawlFolder, table: str, part: PartName) -> None:
    """Check the file of a table in a part.

    :raises CrawlFolderError: if it is not a Parquet file with the columns of that table.
    """
    try:
        reason = _why_bad(folder, table, part, folder.state(table, part))
    except OSError as error:
        reason = error.strerror or str(error)
    if reason:
        raise CrawlFolderError(f"{folder.location(table, part)} cannot be read: {reason}")


@lru_cache(4096)
def _why_bad(folder: CrawlFolder, table: str, part: PartName, state: tuple[int, int]) -> str:
    """Return what is wrong with a file; an empty text if nothing is. One that was written anew is looked at again."""
    pa, parquet = extra("pyarrow", "crawl"), extra("pyarrow.parquet", "crawl")
    try:
        found = parquet.read_schema(folder.arrow_source(table, part))
    except pa.ArrowException:
        return "it is not a Parquet file, or damaged"
    for field in arrow_schema(TABLES[table], table):
        at = found.get_field_index(field.name)
        if at < 0:
            return f"it has no column {field.name!r}"
        if _kind(found.field(at).type) != _kind(field.type):
            return f"its column {field.name!r} is {found.field(at).type}, not {field.type}"
    return ""


def _kind(type_: Any) -> str:
    """Return a type as text. Texts and lists may have offsets of either size, and Parquet has other names for items."""
    return str(type_).replace("large_", "").replace("<element: ", "<item: ")
