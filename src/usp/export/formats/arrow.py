"""Apache Parquet and Apache Arrow files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

from usp.exceptions import InvalidArgumentError
from usp.export.arrow import GROUP_BYTES, GROUP_ROWS, BatchBuilder, arrow_schema, record_batch, value_bytes
from usp.export.batches import Batch
from usp.export.formats.base import Answer, Format, FormatOptions, Table, Writer
from usp.extras import extra
from usp.scan import List, Scalar, Struct, Type

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FORMATS", "arrow_writer", "parquet_writer"]

#: Columns that Parquet takes as dictionaries: all rows of a sitemap have the same value, or one of few.
_OF_FEW_VALUES = ("source", "change_frequency", "host", "sitemap_url", "sitemap_type")

#: Paths to compress with Snappy rather than Zstandard. URLs, most of a file, take half the time, for a quarter more
#: bytes. So do the forty columns of videos, most of them empty.
_FAST = ("url", "path", "videos.")
_BATCH_ROWS = 10_000  # rows that Parquet encodes at once

#: Paths, by their last name, whose values repeat. For others a dictionary only costs time.
_REPEATED = {
    *("source", "change_frequency", "priority", "host", "section", "sitemap_url", "sitemap_type", "problems"),
    *("publication_name", "publication_language", "access", "genres", "keywords", "stock_tickers"),
    *("hreflang", "geo_location", "license"),
    *("category", "tags", "rating", "restriction", "restriction_relationship", "platform", "platform_relationship"),
    *("uploader", "uploader_info", "show_title", "video_type", "name"),
    *("parent", "type", "status", "reason"),
}


def parquet_writer(stream: BinaryIO, table: Table, options: FormatOptions) -> Writer:
    """Write a table to a Parquet file."""
    parquet, chosen = extra("pyarrow.parquet", "arrow"), table.chosen
    schema = _with_dictionaries(arrow_schema(chosen, table.name))
    sink = _ExplicitSink(stream)
    with sink.opened():
        file = parquet.ParquetWriter(
            sink,
            schema,
            compression={path: "snappy" if path.startswith(_FAST) else "zstd" for path in _leaves(chosen)},
            use_dictionary=[path for path in _leaves(chosen) if _last_name(path) in _REPEATED],
            write_statistics=[
                path for path, kind in chosen.items() if isinstance(kind, Scalar)
            ],  # people search by them
            column_encoding={"position": "DELTA_BINARY_PACKED"} if "position" in chosen else None,
            write_batch_size=_BATCH_ROWS,
            store_schema=False,  # else readers would get dictionaries
        )
        file.add_key_value_metadata(schema.metadata)
    return _ArrowWriter(sink, file, schema, table)


def _with_dictionaries(schema: pa.Schema) -> pa.Schema:
    """Return the schema, with dictionaries for columns of few values. Those of frequencies keep their numbers."""
    pa = extra("pyarrow", "arrow")
    for name in _OF_FEW_VALUES:
        if (at := schema.get_field_index(name)) >= 0:
            numbers = pa.uint8() if name == "change_frequency" else pa.int32()
            schema = schema.set(at, pa.field(name, pa.dictionary(numbers, schema.field(at).type)))
    return schema


def arrow_writer(stream: BinaryIO, table: Table, options: FormatOptions) -> Writer:
    """Write a table to an Arrow file, or in the streaming format if the stream cannot seek, such as a pipe."""
    schema = arrow_schema(table.chosen, table.name)
    sink = _ExplicitSink(stream)
    with sink.opened():
        file = _ipc_writer(sink, stream, schema)
    return _ArrowWriter(sink, file, schema, table)


def _ipc_writer(sink: _ExplicitSink, stream: BinaryIO, schema: pa.Schema) -> Any:
    """Open an Arrow file. LZ4 takes less time than it saves: columns without values are most of a table."""
    pa = extra("pyarrow", "arrow")
    new = pa.ipc.new_file if stream.seekable() else pa.ipc.new_stream
    return new(sink, schema, options=pa.ipc.IpcWriteOptions(compression="lz4"))


def _leaves(types: Mapping[str, Type], prefix: str = "") -> Iterator[str]:
    """Give the paths of single values, as Parquet calls them."""
    for name, kind in types.items():
        path = prefix + name
        while isinstance(kind, List):
            path, kind = f"{path}.list.element", kind.item
        if isinstance(kind, Struct):
            yield from _leaves(kind.fields, f"{path}.")
        else:
            yield path


def _last_name(path: str) -> str:
    return path.removesuffix(".list.element").rpartition(".")[2]


class _ExplicitSink:
    """A stream that takes bytes only while it is opened, and drops all others.

    pyarrow writes the end of a file even if its writer is dropped. An unfinished file must not look finished.
    """

    closed = False

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._position = 0
        self._is_open = False

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Take bytes within this block."""
        self._is_open = True
        try:
            yield
        finally:
            self._is_open = False

    def write(self, data: Any) -> int:
        """Write bytes, or drop them."""
        size = len(data)
        if self._is_open:
            self._stream.write(data)
        self._position += size
        return size

    def tell(self) -> int:
        """Return the number of bytes so far."""
        return self._position

    def flush(self) -> None:
        """Do nothing: whoever opened the stream flushes it."""

    def close(self) -> None:
        """Do nothing: whoever opened the stream closes it."""


class _ArrowWriter(Writer):
    """Writes groups of rows of about the same size with one of pyarrow's writers."""

    def __init__(self, sink: _ExplicitSink, file: Any, schema: pa.Schema, table: Table) -> None:
        self._sink = sink
        self._file = file
        self._schema = schema
        self._table = table
        self._builder = BatchBuilder(schema)

    def encode(self, batch: Batch, /) -> pa.RecordBatch:
        return record_batch(batch, self._table.types, self._table.chosen, self._schema)

    def write(self, encoded: pa.RecordBatch, /) -> None:
        self._write(self._builder.add(encoded))

    def close(self) -> None:
        self._write(self._builder.finish())
        with self._sink.opened():
            self._file.close()

    def drop(self) -> None:
        self._file = None
        self._builder = BatchBuilder(self._schema)

    def _write(self, tables: Iterator[pa.Table]) -> None:
        for table in tables:
            groups = max(-(-table.num_rows // GROUP_ROWS), value_bytes(table) // GROUP_BYTES, 1)
            with self._sink.opened():
                self._file.write_table(table, -(-table.num_rows // groups))


def write_parquet_answer(answer: Answer, stream: BinaryIO, options: FormatOptions) -> int:
    """Write the answer to a query to a Parquet file."""
    pa, parquet = extra("pyarrow", "arrow"), extra("pyarrow.parquet", "arrow")
    sink = _ExplicitSink(stream)
    try:
        with sink.opened():
            file = parquet.ParquetWriter(sink, answer.schema, compression="zstd")
    except pa.ArrowNotImplementedError as error:
        raise InvalidArgumentError(f"Parquet cannot hold this answer: {error}") from None
    return _write_batches(answer, sink, file)


def write_arrow_answer(answer: Answer, stream: BinaryIO, options: FormatOptions) -> int:
    """Write the answer to a query to an Arrow file."""
    sink = _ExplicitSink(stream)
    with sink.opened():
        file = _ipc_writer(sink, stream, answer.schema)
    return _write_batches(answer, sink, file)


def _write_batches(answer: Answer, sink: _ExplicitSink, file: Any) -> int:
    rows = 0
    for batch in answer.batches:
        rows += batch.num_rows
        with sink.opened():
            file.write_batch(batch)
    with sink.opened():
        file.close()
    return rows


_NEEDS = (("pyarrow",), "arrow")
FORMATS = (
    Format(
        "parquet",
        "Apache Parquet",
        (".parquet",),
        parquet_writer,
        write_parquet_answer,
        needs=_NEEDS,
    ),
    Format(
        "arrow",
        "Apache Arrow",
        (".arrow", ".feather"),
        arrow_writer,
        write_arrow_answer,
        needs=_NEEDS,
    ),
)
