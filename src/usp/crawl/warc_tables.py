"""Tables out of WARC files that others have written: pages of sitemaps, and the sitemaps that robots.txt files list.

A file is read once, from start to end, wherever it is: on disk, or in an object store. No tree is built: a sitemap and
the index that lists it may be in different files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, BinaryIO, Protocol

from usp.crawl.page_stream import PageBatches
from usp.crawl.storage import open_file
from usp.extras import extra
from usp.limits import MAX_SITEMAP_BYTES
from usp.objects.sitemap import AbstractIndexSitemap, AbstractSitemap
from usp.origins import requested_url
from usp.scan import strip_url_to_homepage
from usp.tree import sitemap_from_bytes
from usp.warc.archive import Kind, kind_of
from usp.warc.messages import message_of
from usp.warc.reading import Record, open_body, read_records

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["WARC_TABLES", "warc_batches"]

_ROWS = 4_096


class WarcTable(Protocol):
    """A table that is made of the sitemaps in WARC files."""

    schema: pa.Schema

    def add(self, site: str, sitemap: AbstractSitemap) -> Iterator[pa.RecordBatch]:
        """Add the rows of a sitemap."""

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Give what is left."""


class _Listed:
    """The sitemaps that robots.txt files and indexes list."""

    def __init__(self, columns: Sequence[str] | str | None = None) -> None:
        pa_ = extra("pyarrow", "crawl")
        text, time = pa_.string(), pa_.timestamp("us", "UTC")
        self.schema = pa_.schema([("site", text), ("listed_in", text), ("url", text), ("last_modified", time)])
        self._rows: list[tuple[object, ...]] = []

    def add(self, site: str, sitemap: AbstractSitemap) -> Iterator[pa.RecordBatch]:
        if isinstance(sitemap, AbstractIndexSitemap):
            self._rows += [(site, sitemap.url, child.url, child.last_modified) for child in sitemap.sub_sitemaps]
        if len(self._rows) >= _ROWS:
            yield from self.finish()

    def finish(self) -> Iterator[pa.RecordBatch]:
        rows, self._rows = self._rows, []
        if rows:
            columns = zip(*rows, strict=True)
            arrays = [extra("pyarrow", "crawl").array(c, f.type) for c, f in zip(columns, self.schema, strict=True)]
            yield extra("pyarrow", "crawl").RecordBatch.from_arrays(arrays, schema=self.schema)


#: Tables of WARC files by their names; each takes the columns to read.
WARC_TABLES: Mapping[str, Callable[[Sequence[str] | str | None], WarcTable]] = {
    "pages": PageBatches,
    "sitemaps": _Listed,
}


def warc_batches(path: str, table: str, columns: Sequence[str] | str | None = None) -> Iterator[pa.RecordBatch]:
    """Read a WARC file into a table.

    :raises OSError: if the file cannot be read.
    """
    rows = WARC_TABLES[table](columns)
    for url, sitemap in _sitemaps(path):
        yield from rows.add(strip_url_to_homepage(url), sitemap)
    yield from rows.finish()


def _sitemaps(path: str) -> Iterator[tuple[str, AbstractSitemap]]:
    """Give the sitemaps and robots.txt files in a WARC file, by their URLs."""
    with open_file(path) as file, open_file(path) as bodies:
        for record in read_records(file):
            url = requested_url(record.url)
            if record.type != "response" or not url.startswith(("http://", "https://")):
                continue
            message = message_of(record.block)
            if message.status == HTTPStatus.OK and kind_of(url, record, message) is not Kind.OTHER:
                yield url, sitemap_from_bytes(_body(bodies, record), url)


def _body(file: BinaryIO, record: Record) -> bytes:
    pieces, size = [], 0
    for piece in open_body(file, record):
        pieces.append(piece)
        size += len(piece)
        if size > MAX_SITEMAP_BYTES:  # the parser ignores what is past that
            break
    return b"".join(pieces)
