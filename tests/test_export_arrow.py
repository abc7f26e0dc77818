"""Tables of Arrow and their files: other readers find in them what the pages have."""

from __future__ import annotations

import errno
import gc
import io
import os
import re
import sys
import threading
from array import array
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import cycle, islice
from pathlib import Path
from typing import Any, BinaryIO

import duckdb
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpus import needs_corpus, trees
from tables import TREES, Row, batches_of, columns_with, demo_tree, odd_tree, page_rows, plain_rows, write
from usp.exceptions import MissingExtraError
from usp.export.arrow import BatchBuilder, arrow_schema, arrow_type, record_batch
from usp.export.batches import Batch, SitemapPages, page_columns
from usp.export.formats.arrow import arrow_writer, parquet_writer
from usp.export.formats.base import FormatOptions, Table, Writer
from usp.export.reading import sitemaps_columns
from usp.export.schema import PAGES, SITEMAPS
from usp.export.selection import select
from usp.extras import Installation
from usp.objects.page import SitemapPage, SitemapPageChangeFrequency
from usp.objects.sitemap import AbstractSitemap
from usp.scan.columns import PAGE_TYPES, Column, Columns, List, Scalar, Struct

pytestmark = pytest.mark.export

MakeTree = Callable[[], AbstractSitemap]
MakeWriter = Callable[[BinaryIO, Table, FormatOptions], Writer]
URL = {"url": PAGES["url"]}
SCHEMA = arrow_schema(URL, "pages")


def urls(*texts: str) -> Batch:
    return Batch(columns_with(PAGES, url=texts))


def in_arrow(batch: Batch, *paths: str) -> pa.RecordBatch:
    chosen = select(PAGES, paths or None).chosen
    found = record_batch(batch, PAGES, chosen, arrow_schema(chosen, "pages"))
    found.validate(full=True)
    return found


def written(make_writer: MakeWriter, stream: BinaryIO, batches: Sequence[Batch], chosen: Any = PAGES) -> None:
    write(make_writer(stream, Table("pages", PAGES, chosen), FormatOptions()), *batches)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Scalar.TEXT, pa.large_string()),
        (Scalar.TIME, pa.timestamp("us", "UTC")),
        (Scalar.FREQUENCY, pa.large_string()),
        (Scalar.NUMBER, pa.float64()),
        (Scalar.INTEGER, pa.int64()),
        (Scalar.BOOLEAN, pa.bool_()),
        (List(Scalar.BOOLEAN), pa.large_list(pa.bool_())),
        (Struct({"a": List(Scalar.TEXT)}), pa.struct([("a", pa.large_list(pa.large_string()))])),
    ],
)
def test_types(kind: Any, expected: pa.DataType) -> None:
    """Every type of a column has one of Arrow."""
    assert expected == arrow_type(kind)


def test_times_are_in_utc() -> None:
    """Times say that they are in UTC, in structs too."""
    assert pa.struct([("a", pa.timestamp("us", "UTC"))]) == arrow_type(Struct({"a": Scalar.TIME}))


def test_schemas_state_their_version() -> None:
    """The metadata of a schema say which table it is of, and which version."""
    assert arrow_schema(SITEMAPS, "sitemaps").metadata == {b"usp.schema": b"sitemaps/2"}


def test_buffers_are_not_copied() -> None:
    """An array of Arrow uses the memory of its column."""
    numbers = array("q", range(1000))
    batch = in_arrow(Batch(Columns(1000, {"position": Column(1000, memoryview(numbers))})), "position")
    assert numbers.buffer_info()[0] == batch.column(0).buffers()[1].address


def test_a_column_that_is_missing() -> None:
    """A column without any value is all nulls, of its own type, and so is a part of it."""
    batch = in_arrow(urls("a", "b"), "url", "videos", "news.title", "news")
    nothing = {"videos": None, "news.title": None, "news": None}
    assert [{"url": url, **nothing} for url in ("a", "b")] == batch.to_pylist()
    assert arrow_type(PAGES["videos"]) == batch.column(1).type


def test_frequencies() -> None:
    """Change frequencies become their texts."""
    values = [None, *SitemapPageChangeFrequency, None]
    batch = in_arrow(Batch(columns_with(PAGES, change_frequency=values)), "change_frequency")
    assert [value and value.value for value in values] == batch.column(0).to_pylist()


@pytest.mark.parametrize("kept", [b"\1\0\1", b"\0\0\0", b"\1\1\1", b"\0\0\1"])
def test_only_rows_that_are_kept(kept: bytes) -> None:
    """list[Row] that are not kept are left out."""
    batch = Batch(urls("a", "b", "c").columns, kept)
    expected = [{"url": url} for url, is_kept in zip("abc", kept, strict=True) if is_kept]
    assert expected == in_arrow(batch, "url").to_pylist()


@pytest.mark.parametrize("path", ["news.title", "news.publish_date", "news.keywords"])
def test_parts_of_a_struct(path: str) -> None:
    """A path gives a part of a struct, null where there is no struct."""
    expected = [row["news"] and row["news"][path.partition(".")[2]] for row in page_rows(odd_tree())]
    found = [row[path] for batch in batches_of(odd_tree()) for row in plain_rows(in_arrow(batch, path).to_pylist())]
    assert expected == found
    assert any(expected)


def by_pyarrow(path: str) -> list[Row]:
    return pq.ParquetFile(path).read().to_pylist()  # type: ignore[no-any-return]  # it has no types


def by_duckdb(path: str) -> list[Row]:
    with closing(duckdb.connect()) as connection:
        connection.execute("set TimeZone = 'UTC'")
        return connection.read_parquet(path).to_arrow_table().to_pylist()  # type: ignore[no-any-return]


def arrow_file_by_pyarrow(path: str) -> list[Row]:
    with pa.memory_map(path) as file:
        return pa.ipc.open_file(file).read_all().to_pylist()  # type: ignore[no-any-return]


READERS: dict[str, tuple[MakeWriter, Callable[[str], list[Row]]]] = {
    "Parquet, pyarrow": (parquet_writer, by_pyarrow),
    "Parquet, pandas": (parquet_writer, lambda path: pandas.read_parquet(path).to_dict("records")),
    "Parquet, polars": (parquet_writer, lambda path: polars.read_parquet(path).to_dicts()),
    "Parquet, DuckDB": (parquet_writer, by_duckdb),
    "Arrow, pyarrow": (arrow_writer, arrow_file_by_pyarrow),
    "Arrow, pandas": (arrow_writer, lambda path: pandas.read_feather(path).to_dict("records")),
    "Arrow, polars": (arrow_writer, lambda path: polars.read_ipc(path).to_dicts()),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("make_tree", TREES)
def test_files(make_tree: MakeTree, reader: str, tmp_path: Path) -> None:
    """What was written, others read as the tree has it."""
    make_writer, by_reader = READERS[reader]
    path = tmp_path / "pages"
    with path.open("wb") as file:
        written(make_writer, file, batches_of(make_tree()))
        assert not file.closed
    assert page_rows(make_tree()) == plain_rows(by_reader(str(path)))


@needs_corpus
@pytest.mark.parametrize("reader", ["Parquet, DuckDB", "Parquet, polars"])
def test_real_files(reader: str, tmp_path: Path) -> None:
    """Real sitemaps, in one file, are read by others as the trees have them."""
    make_writer, by_reader = READERS[reader]
    found = [tree for _, tree in trees("urlset", "rss", "atom", most=50_000)]
    path = tmp_path / "pages.parquet"
    with path.open("wb") as file:
        written(make_writer, file, [batch for tree in found for batch in batches_of(tree)])
    expected = [row for tree in found for row in page_rows(tree)]
    assert expected == plain_rows(by_reader(str(path)))
    assert len(expected) > 5_000


@pytest.mark.parametrize("make_writer", [parquet_writer, arrow_writer])
def test_sitemaps(make_writer: MakeWriter) -> None:
    """The table of sitemaps is written the same way."""
    stream = io.BytesIO()
    write(
        make_writer(stream, Table("sitemaps", SITEMAPS, SITEMAPS), FormatOptions()),
        Batch(sitemaps_columns(demo_tree())),
    )
    stream.seek(0)
    found = pq.read_table(stream) if make_writer is parquet_writer else pa.ipc.open_file(stream).read_all()
    expected = demo_tree().to_arrow("sitemaps")
    if make_writer is parquet_writer:
        assert found.schema.metadata == expected.schema.metadata
        found = found.cast(expected.schema)  # Parquet knows of texts only, not of large ones
    assert expected.equals(found, check_metadata=True)


class Pipe(io.RawIOBase):
    """A stream that can only be written to."""

    def __init__(self, error: OSError | None = None, room: int = 0) -> None:
        self.data = bytearray()
        self.error, self.room = error, room

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self.error is not None and len(self.data) + len(data) > self.room:
            raise self.error
        self.data += data
        return len(data)


def test_into_a_pipe() -> None:
    """Where a stream cannot seek, Arrow is written in its streaming format, and Parquet as ever."""
    pipe = Pipe()
    written(arrow_writer, pipe, batches_of(odd_tree()))  # type: ignore[arg-type]  # all that is needed of one
    assert page_rows(odd_tree()) == plain_rows(pa.ipc.open_stream(bytes(pipe.data)).read_all().to_pylist())
    pipe = Pipe()
    written(parquet_writer, pipe, batches_of(odd_tree()))  # type: ignore[arg-type]
    assert page_rows(odd_tree()) == plain_rows(pq.read_table(io.BytesIO(pipe.data)).to_pylist())


@pytest.mark.slow
@pytest.mark.parametrize("make_writer", [parquet_writer, arrow_writer])
@pytest.mark.parametrize("room", [0, 100])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EPIPE])
def test_errors_of_a_stream(make_writer: MakeWriter, room: int, number: int) -> None:
    """An error of the stream comes out as it is, at once or at the end, and nothing is written after it."""
    pipe = Pipe(OSError(number, os.strerror(number)), room)
    with pytest.raises(OSError, match=os.strerror(number)) as caught:
        written(make_writer, pipe, [urls("a" * 1000)], URL)  # type: ignore[arg-type]
    assert number == caught.value.errno
    size, pipe.error = len(pipe.data), None
    del caught
    gc.collect()
    assert size == len(pipe.data)


@pytest.mark.parametrize("make_writer", [parquet_writer, arrow_writer])
def test_what_is_dropped_does_not_look_whole(make_writer: MakeWriter) -> None:
    """A writer that is dropped before it is closed writes no end; after that, it changes nothing."""
    stream = io.BytesIO()
    writer = make_writer(stream, Table("pages", PAGES, URL), FormatOptions())
    writer.write(writer.encode(urls("a")))
    start = stream.getvalue()
    writer.drop()
    gc.collect()
    assert start == stream.getvalue()
    writer = make_writer(stream, Table("pages", PAGES, URL), FormatOptions())
    writer.close()
    whole = stream.getvalue()
    writer.drop()
    assert whole == stream.getvalue()


@pytest.mark.slow
def test_row_groups_are_bounded() -> None:
    """Small batches are put together, and large ones cut; the order stays."""
    stream = io.BytesIO()
    texts = [f"http://h.example/{i}" for i in range(130_000)]
    small = [urls(*texts[i : i + 7]) for i in range(0, 7_000, 7)]
    written(parquet_writer, stream, [*small, urls(*texts[7_000:]), urls("x" * 40_000_000, "y")], URL)
    file = pq.ParquetFile(stream)
    groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    assert [group.num_rows for group in groups] == [43_334, 43_334, 43_332, 1, 1]
    assert [*texts, "x" * 40_000_000, "y"] == file.read().column(0).to_pylist()


def test_gathering_keeps_few_batches() -> None:
    """However many batches are put in, few are held, in their order."""
    builder = BatchBuilder(SCHEMA)
    for i in range(5_000):
        assert list(builder.add(record_batch(urls(f"/{i}"), PAGES, URL, SCHEMA))) == []
    (table,) = builder.finish()
    assert table.column(0).num_chunks < 100
    assert [f"/{i}" for i in range(5_000)] == table.column(0).to_pylist()
    assert list(builder.finish()) == []


def test_columns_of_parquet() -> None:
    """Columns that are searched by have statistics; there is a dictionary where values repeat, but not of URLs."""
    stream = io.BytesIO()
    written(parquet_writer, stream, batches_of(odd_tree()))
    group = pq.ParquetFile(stream).metadata.row_group(0)
    columns = {column.path_in_schema: column for column in map(group.column, range(group.num_columns))}
    snappy = {name for name, column in columns.items() if column.compression == "SNAPPY"}
    assert snappy == {name for name in columns if name in ("url", "path") or name.startswith("videos.")}
    assert {column.compression for name, column in columns.items() if name not in snappy} == {"ZSTD"}
    assert all(columns[name].statistics.has_min_max for name in ("url", "last_modified", "priority", "sitemap_type"))
    with_dictionary = {name for name, column in columns.items() if "RLE_DICTIONARY" in column.encodings}
    assert with_dictionary >= {
        "sitemap_url",
        "host",
        "section",
        "alternates.list.element.hreflang",
        "news.keywords.list.element",
    }
    assert not with_dictionary & {"url", "path", "last_modified", "images.list.element.loc", "news.title"}


@pytest.mark.slow
def test_values_that_repeat_are_read_as_texts() -> None:
    """They are given to pyarrow as dictionaries, which nobody sees, however many sitemaps a row group is of."""
    frequencies = [*islice(cycle([*SitemapPageChangeFrequency, None]), 3_000)]
    listings = [
        SitemapPages(
            f"http://h/{i}.xml", ("urlset", "text")[i % 2], [SitemapPage(f"http://h/{i}", change_frequency=frequency)]
        )
        for i, frequency in enumerate(frequencies)
    ]
    batches = [Batch(columns) for listing in listings for columns in page_columns(listing, PAGES)]
    stream = io.BytesIO()
    written(parquet_writer, stream, [*batches, Batch(batches[0].columns, bytes(1))])
    assert pq.ParquetFile(stream).metadata.num_row_groups == 1
    found = pq.read_table(stream, columns=["sitemap_url", "sitemap_type", "change_frequency"])
    assert set(found.schema.types) == {pa.string()}
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        (listing.url, listing.type, frequency and frequency.value)
        for listing, frequency in zip(listings, frequencies, strict=True)
    ]


def test_writers_encode_in_any_thread() -> None:
    """Batches can be encoded by several threads at once."""
    stream = io.BytesIO()
    writer = parquet_writer(stream, Table("pages", PAGES, URL), FormatOptions())
    encoded: dict[int, Any] = {}

    def encode(number: int) -> None:
        encoded[number] = writer.encode(urls(*(f"/{number}/{i}" for i in range(1000))))

    threads = [threading.Thread(target=encode, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(8):
        writer.write(encoded[number])
    writer.close()
    assert [f"/{number}/{i}" for number in range(8) for i in range(1000)] == pq.read_table(stream)[0].to_pylist()


@pytest.mark.parametrize("make_writer", [parquet_writer, arrow_writer])
def test_missing_package(make_writer: MakeWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pyarrow, the error names the extra that installs it."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=re.escape(Installation.here().command("arrow", "pyarrow"))):
        make_writer(io.BytesIO(), Table("pages", PAGES, PAGE_TYPES), FormatOptions())
