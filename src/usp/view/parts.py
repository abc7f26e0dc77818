"""Write pages to Parquet parts while sitemaps arrive.

Each page has a number, `row`, in the order of the tree. A part gets its final name when it is complete, so whoever
reads the folder sees whole parts only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import IO, Any, Self

from usp.export.batches import FirstPlaces, pages_of
from usp.export.formats import FORMATS
from usp.export.formats.base import FormatOptions, Table, Writer
from usp.export.reading import PageCounts, PageReader, PageRows
from usp.export.schema import table_types
from usp.export.selection import select
from usp.extras import extra
from usp.objects.sitemap import AbstractSitemap
from usp.scan import Scalar

__all__ = ["PARTS", "PageParts"]

PARTS = "pages-*.parquet"

_ROW = "row"
_PART_ROWS = 1_000_000
_PART_SECONDS = 1.5  # after which a part is finished, so that people see what has arrived


class PageParts:
    """Writes the pages of sitemaps, in order. `rows` counts those that readers can see.

    :param folder: where the parts go.
    :param has_source: whether rows say which of several targets they are from.
    :param on_part: called after each part.
    """

    def __init__(self, folder: str, *, has_source: bool, on_part: Callable[[], None]) -> None:
        self.rows = 0
        self._folder = folder
        self._on_part = on_part
        types = {_ROW: Scalar.INTEGER, **table_types("pages", has_source=has_source)}
        self._table = Table("pages", types, types)
        self._places = FirstPlaces()
        self._parts = 0
        self._written = 0  # rows, with those of the part that is open
        self._open_part()
        self._reader: PageReader[Any] = PageReader(select(types), self._writer.encode, dates=True)
        self._close_part()  # so that there is a table from the start

    @property
    def counts(self) -> PageCounts:
        """The number of pages of each sitemap."""
        return self._reader.counts

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._reader.__exit__(*exception)
        self._writer.drop()
        self._file.close()

    def start_tree(self) -> None:
        """Say that the next sitemap is the first of a tree, which may have the URLs of another one."""
        self._places = FirstPlaces()
        self._reader.counts.clear()

    def put(self, sitemap: AbstractSitemap, source: str | None, names: Mapping[str, str]) -> None:
        """Add the pages of a sitemap, unless an earlier place has them."""
        if self._places.is_first(sitemap):
            self._write(self._reader.put(pages_of(sitemap, source, names)))

    def pause(self) -> None:
        """Write what is ready. Finish the part if it is old enough."""
        self._write(self._reader.ready())
        if self._written > self.rows and time.monotonic() - self._opened_at > _PART_SECONDS:
            self._close_part()

    def finish(self) -> None:
        """Write everything that is left."""
        self._write(self._reader.rest())
        if self._written > self.rows:
            self._close_part()

    def _write(self, found: Iterable[PageRows[Any]]) -> None:
        for rows in found:
            if not rows.kept:
                continue
            if self._file.closed:
                self._open_part()
            self._writer.write(self._numbered(rows.encoded))
            self._written += rows.kept
            if self._written - self.rows >= _PART_ROWS:
                self._close_part()

    def _numbered(self, batch: Any) -> Any:
        numbers = extra("pyarrow", "view").array(range(self._written, self._written + batch.num_rows), "int64")
        return batch.set_column(0, batch.schema.field(0), numbers)

    def _open_part(self) -> None:
        self._name = os.path.join(self._folder, f"pages-{self._parts:05}.parquet")
        self._file: IO[bytes] = open(f"{self._name}.new", "wb")  # noqa: SIM115 -- closed with the part
        make = FORMATS["parquet"].table_writer
        assert make is not None
        self._writer: Writer = make(self._file, self._table, FormatOptions())
        self._opened_at = time.monotonic()

    def _close_part(self) -> None:
        self._writer.close()
        self._writer.drop()
        self._file.close()
        os.replace(f"{self._name}.new", self._name)
        self._parts += 1
        self.rows = self._written
        self._on_part()
