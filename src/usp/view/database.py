"""Open a database of the explorer: DuckDB over the folder of parts.

It reads that folder only: no other files, no network, no extensions, and its settings are locked.
"""

from __future__ import annotations

import os
from typing import Any

from usp.export.schema import ITEM_TABLES
from usp.extras import extra
from usp.view.parts import PARTS

__all__ = ["TABLES", "copy_table", "load_table", "open_database", "open_pages"]

#: The tables that are not views of the pages.
TABLES = ("sitemaps", "problems")

_MEMORY = "300MB"  # beyond that, it uses a folder
_MAX_SPILL = "8GB"  # of that folder


def open_database(parts: str, spill: str) -> Any:
    """Return a connection to a new database in memory.

    :param parts: the folder that it may read.
    :param spill: the folder for what does not fit in the memory.
    """
    config = {"temp_directory": spill, "memory_limit": _MEMORY, "max_temp_directory_size": _MAX_SPILL}
    connection = extra("duckdb", "view").connect(config=config)
    connection.execute(
        "set python_enable_replacements = false; set TimeZone = 'UTC';"
        f"set allowed_directories = [{_quoted(parts)}]; set enable_external_access = false;"
        "set autoinstall_known_extensions = false; set autoload_known_extensions = false;"
        "set allow_community_extensions = false; set lock_configuration = true;"
    )
    return connection


def open_pages(connection: Any, parts: str) -> None:
    """Make the views of pages. There must be a part."""
    connection.execute(f"create view all_pages as from read_parquet({_quoted(os.path.join(parts, PARTS))})")
    connection.execute("create view pages as select * exclude (row) from all_pages")
    for name in ITEM_TABLES:
        connection.execute(
            f"create view {name} as select page_url, sitemap_url, page_position, position, unnest(item) from"
            f" (select url as page_url, sitemap_url, position as page_position, unnest({name}) as item,"
            f" generate_subscripts({name}, 1) as position from all_pages where len({name}) > 0)"
        )


def copy_table(connection: Any, name: str, path: str) -> None:
    """Write a table to a file in the folder of parts, for another database."""
    connection.execute(f"copy {name} to {_quoted(path)} (format parquet)")


def load_table(connection: Any, name: str, path: str) -> None:
    """Replace a table with the one of a file."""
    connection.execute(f"create or replace table {name} as from read_parquet({_quoted(path)})")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
