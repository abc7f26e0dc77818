"""Tables as Apache Arrow has them, in memory and in files of Parquet and of Arrow.

The buffers of columns become arrays of Arrow without a copy, but for change frequencies, which are numbers in columns
and texts in Arrow. A column that has no value in any row is all nulls, so every batch of a table has the same schema.
pyarrow is imported when it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, BinaryIO

from usp.export.batches import Batch
from usp.export.extras import extra
from usp.export.schema import VERSION, column_at
from usp.export.writing import Writer
from usp.scan import CHANGE_FREQUENCIES, Column, List, Scalar, Struct, Type, column_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Gate",
    "Gathering",
    "arrow_array",
    "arrow_schema",
    "arrow_type",
    "arrow_writer",
    "parquet_writer",
    "record_batch",
]

UTC = "UTC"
_SCHEMA_KEY = "usp.schema"

#: The columns that a file of Parquet takes as dictionaries: every row of a sitemap has the same, or one of few values.
_OF_FEW_VALUES = ("change_frequency", "sitemap_url", "sitemap_type")

#: Row groups of Parquet and batches of Arrow files have about this many rows, or bytes if those come first.
_GROUP_ROWS, _GROUP_BYTES = 50_000, 16 * 1024 * 1024
_MANY_BATCHES = 32

#: The leaves that Snappy is for, rather than Zstandard: URLs, which are most of a file, take half the time, for a
#: quarter more bytes; and so do the forty of videos, most of which are empty.
_FAST = ("url", "videos.")
_BATCH_ROWS = 10_000  # that are encoded at once

#: The leaves, by the last of their names, whose values come again and again. Of others a dictionary is only in the way.
_REPEATED = {
    *("change_frequency", "priority", "sitemap_url", "sitemap_type", "problems"),
    *("publication_name", "publication_language", "access", "genres", "keywords", "stock_tickers"),
    *("hreflang", "geo_location", "license"),
    *("category", "tags", "rating", "restriction", "restriction_relationship", "platform", "platform_relationship"),
    *("uploader", "uploader_info", "show_title", "video_type", "name"),
    *("parent", "type", "status", "reason"),
}


def arrow_type(kind: Type, zone: str | None = UTC) -> pa.DataType:
    """The type of Arrow; of times, in UTC, with their zone or without any."""
    if isinstance(kind, Struct):
        return extra("pyarrow", "arrow").struct([(name, arrow_type(part, zone)) for name, part in kind.fields.items()])
    if isinstance(kind, List):
        return extra("pyarrow", "arrow").large_list(arrow_type(kind.item, zone))
    return _scalar_types(zone)[kind]


@cache
def _scalar_types(zone: str | None) -> dict[Scalar, pa.DataType]:
    pa = extra("pyarrow", "arrow")
    return {
        Scalar.TEXT: pa.large_string(),
        Scalar.TIME: pa.timestamp("us", zone),
        Scalar.FREQUENCY: pa.large_string(),
        Scalar.NUMBER: pa.float64(),
        Scalar.WHOLE: pa.int64(),
        Scalar.FLAG: pa.bool_(),
    }


def arrow_schema(chosen: Mapping[str, Type], table: str, zone: str | None = UTC) -> pa.Schema:
    """The schema of the chosen columns of a table; its metadata say which version of ours it is."""
    fields = [(path, arrow_type(kind, zone)) for path, kind in chosen.items()]
    return extra("pyarrow", "arrow").schema(fields, {_SCHEMA_KEY: f"{table}/{VERSION}"})


def record_batch(
    batch: Batch, types: Mapping[str, Type], chosen: Mapping[str, Type], schema: pa.Schema
) -> pa.RecordBatch:
    """The rows that are kept of a batch, with the chosen columns."""
    pa = extra("pyarrow", "arrow")
    length = batch.columns.length
    arrays = [
        arrow_array(kind, column_at(batch.columns, types, path), length, field.type)
        for (path, kind), field in zip(chosen.items(), schema, strict=True)
    ]
    found = pa.RecordBatch.from_arrays(arrays, schema=schema)
    return found if batch.kept is None else found.filter(_mask(pa, batch.kept))


def arrow_array(kind: Type, column: Column | None, length: int, of_type: pa.DataType) -> pa.Array:
    """Return a column as an array of this type, without a copy where possible."""
    return _nulls(length, of_type) if column is None else _array(extra("pyarrow", "arrow"), kind, column, of_type)


@lru_cache(12)  # sitemaps of the same size are common, and most have the same columns without values
def _nulls(length: int, of_type: pa.DataType) -> pa.Array:
    """No slice of a longer one: what is written or pickled of that would be all of it."""
    return extra("pyarrow", "arrow").nulls(length, of_type)


def _array(pa: Any, kind: Type, column: Column, of_type: pa.DataType) -> pa.Array:
    valid = None if column.valid is None else pa.py_buffer(column.valid)
    nulls = 0 if valid is None else -1
    if kind is Scalar.FREQUENCY:
        numbers = pa.Array.from_buffers(pa.uint8(), column.length, [valid, pa.py_buffer(column.data)], nulls)
        if pa.types.is_dictionary(of_type):
            return pa.DictionaryArray.from_arrays(numbers, _frequencies())
        # In the system's memory: of its own, pyarrow keeps 20 MB more for the threads that read sitemaps.
        return extra("pyarrow.compute", "arrow").take(_frequencies(), numbers, memory_pool=pa.system_memory_pool())
    if pa.types.is_dictionary(of_type):
        texts = _array(pa, kind, column, of_type.value_type)
        return extra("pyarrow.compute", "arrow").dictionary_encode(texts, memory_pool=pa.system_memory_pool())
    if isinstance(kind, Struct):
        parts = zip(kind.fields.values(), column.children, of_type, strict=True)
        children = [_array(pa, part, child, field.type) for part, child, field in parts]
        return pa.Array.from_buffers(of_type, column.length, [valid], nulls, children=children)
    offsets = () if column.offsets is None else (pa.py_buffer(column.offsets),)
    if isinstance(kind, List):
        (child,) = column.children
        items = _array(pa, kind.item, child, of_type.value_type)
        return pa.Array.from_buffers(of_type, column.length, [valid, *offsets], nulls, children=[items])
    buffers = [valid, *offsets, pa.py_buffer(column.data if column.data is not None else b"")]
    return pa.Array.from_buffers(of_type, column.length, buffers, nulls)


# Neither has pyarrow.array(), which imports pandas, if that is installed, to see whether it was given anything of it.


def _mask(pa: Any, kept: bytes) -> pa.Array:
    flags = pa.Array.from_buffers(pa.uint8(), len(kept), [None, pa.py_buffer(kept)])
    return extra("pyarrow.compute", "arrow").cast(flags, pa.bool_(), memory_pool=pa.system_memory_pool())


@cache
def _frequencies() -> pa.Array:
    pa = extra("pyarrow", "arrow")
    words = column_of(Scalar.TEXT, [frequency.value for frequency in CHANGE_FREQUENCIES])
    return _array(pa, Scalar.TEXT, words, pa.large_string())


class Gathering:
    """Gathers batches until there are enough rows of them, or bytes: thousands of small sitemaps make few large tables.

    Many small batches are made into one every now and then: the arrays of a batch take more memory than few rows do.
    """

    def __init__(self, schema: pa.Schema, rows: int = _GROUP_ROWS, size: int = _GROUP_BYTES) -> None:
        self._schema = schema
        self._rows, self._bytes = rows, size
        self._start_anew()

    def _start_anew(self) -> None:
        self._levels: list[list[pa.RecordBatch]] = [[]]  # the first has what came last, each next what is made of many
        self._gathered_rows = self._gathered_bytes = 0

    def put(self, batch: pa.RecordBatch) -> Iterator[pa.Table]:
        """Take a batch in; gives a table when there is enough for one."""
        if not batch.num_rows:
            return
        self._levels[0].append(batch)
        self._gathered_rows += batch.num_rows
        self._gathered_bytes += _size(batch)
        if self._gathered_rows >= self._rows or self._gathered_bytes >= self._bytes:
            yield from self.rest()
        else:
            self._merge()

    def rest(self) -> Iterator[pa.Table]:
        """All that is left, if there is anything."""
        batches = [batch for level in reversed(self._levels) for batch in level]
        self._start_anew()
        if batches:
            yield self._table(batches)

    def _merge(self) -> None:
        for number, level in enumerate(self._levels):
            if len(level) < _MANY_BATCHES:
                return
            if number + 1 == len(self._levels):
                self._levels.append([])
            self._levels[number + 1] += self._table(level).to_batches()
            level.clear()

    def _table(self, batches: list[pa.RecordBatch]) -> pa.Table:
        table = extra("pyarrow", "arrow").Table.from_batches(batches, self._schema)
        return table.combine_chunks() if len(batches) > 1 else table


def _size(rows: pa.RecordBatch | pa.Table) -> int:
    """How many bytes there are of values; nulls share theirs."""
    return sum(column.nbytes for column in rows.columns if column.null_count < len(column))


def parquet_writer(stream: BinaryIO, table: str, types: Mapping[str, Type], chosen: Mapping[str, Type]) -> Writer:
    """Writes a file of Parquet."""
    parquet = extra("pyarrow.parquet", "arrow")
    schema = _with_dictionaries(arrow_schema(chosen, table))
    gate = Gate(stream)
    with gate.opened():
        file = parquet.ParquetWriter(
            gate,
            schema,
            compression={path: "snappy" if path.startswith(_FAST) else "zstd" for path in _leaves(chosen)},
            use_dictionary=[path for path in _leaves(chosen) if _last_name(path) in _REPEATED],
            write_statistics=[path for path, kind in chosen.items() if isinstance(kind, Scalar)],  # what is searched by
            column_encoding={"position": "DELTA_BINARY_PACKED"} if "position" in chosen else None,
            write_batch_size=_BATCH_ROWS,
            store_schema=False,  # whoever reads it should not get dictionaries for that
        )
        file.add_key_value_metadata(schema.metadata)
    return _ArrowWriter(gate, file, schema, types, chosen)


def _with_dictionaries(schema: pa.Schema) -> pa.Schema:
    """The schema, with dictionaries where there are few values. Those of frequencies have the numbers of columns."""
    pa = extra("pyarrow", "arrow")
    for name in _OF_FEW_VALUES:
        if (at := schema.get_field_index(name)) >= 0:
            numbers = pa.uint8() if name == "change_frequency" else pa.int32()
            schema = schema.set(at, pa.field(name, pa.dictionary(numbers, schema.field(at).type)))
    return schema


def arrow_writer(stream: BinaryIO, table: str, types: Mapping[str, Type], chosen: Mapping[str, Type]) -> Writer:
    """Writes a file of Arrow; in its streaming format where the stream cannot seek, like a pipe.

    It is compressed by LZ4, which takes less time than it saves: columns without values are most of a table.
    """
    pa = extra("pyarrow", "arrow")
    schema = arrow_schema(chosen, table)
    gate = Gate(stream)
    with gate.opened():
        new = pa.ipc.new_file if stream.seekable() else pa.ipc.new_stream
        file = new(gate, schema, options=pa.ipc.IpcWriteOptions(compression="lz4"))
    return _ArrowWriter(gate, file, schema, types, chosen)


def _leaves(types: Mapping[str, Type], prefix: str = "") -> Iterator[str]:
    """The paths of single values, as Parquet calls them."""
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


class Gate:
    """A stream that takes bytes only while it is opened.

    pyarrow writes the end of a file even if its writer is dropped; what was not finished must not look finished.
    """

    closed = False

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._position = 0
        self._is_open = False

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Open for as long as this lasts; an error closes it for good."""
        self._is_open = True
        try:
            yield
        finally:
            self._is_open = False

    def write(self, data: Any) -> int:
        """Take bytes in."""
        size = len(data)
        if self._is_open:
            self._stream.write(data)
        self._position += size
        return size

    def tell(self) -> int:
        """How many bytes came."""
        return self._position

    def flush(self) -> None:
        """Whoever opened the stream flushes it."""

    def close(self) -> None:
        """Whoever opened the stream closes it."""


class _ArrowWriter(Writer):
    """Writes tables of about the same size by one of pyarrow's writers."""

    def __init__(
        self, gate: Gate, file: Any, schema: pa.Schema, types: Mapping[str, Type], chosen: Mapping[str, Type]
    ) -> None:
        self._gate = gate
        self._file = file
        self._schema = schema
        self._types = types
        self._chosen = chosen
        self._gathering = Gathering(schema)

    def encode(self, batch: Batch, /) -> pa.RecordBatch:
        return record_batch(batch, self._types, self._chosen, self._schema)

    def write(self, encoded: pa.RecordBatch, /) -> None:
        self._write(self._gathering.put(encoded))

    def close(self) -> None:
        self._write(self._gathering.rest())
        with self._gate.opened():
            self._file.close()

    def drop(self) -> None:
        self._file = None
        self._gathering = Gathering(self._schema)

    def _write(self, tables: Iterator[pa.Table]) -> None:
        for table in tables:
            groups = max(-(-table.num_rows // _GROUP_ROWS), _size(table) // _GROUP_BYTES, 1)
            with self._gate.opened():
                self._file.write_table(table, -(-table.num_rows // groups))
