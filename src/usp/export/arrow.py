"""Columns as Apache Arrow arrays and batches.

The buffers of columns become Arrow arrays without a copy. Only change frequencies are converted, from numbers to text.
A column without any value becomes nulls, so that all batches of a table have the same schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from usp.export.batches import Batch
from usp.export.schema import SCHEMA_VERSION, column_at
from usp.extras import extra
from usp.scan import CHANGE_FREQUENCIES, Column, List, Scalar, Struct, Type, column_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "GROUP_BYTES",
    "GROUP_ROWS",
    "BatchBuilder",
    "arrow_array",
    "arrow_schema",
    "arrow_type",
    "record_batch",
    "value_bytes",
]

_SCHEMA_KEY = "usp.schema"

#: Row groups of Parquet and batches of Arrow files have about this many rows, or bytes if those come first.
GROUP_ROWS, GROUP_BYTES = 50_000, 16 * 1024 * 1024
_MANY_BATCHES = 32


def arrow_type(kind: Type) -> pa.DataType:
    """Return the Arrow type. Times are in UTC, and say so."""
    if isinstance(kind, Struct):
        return extra("pyarrow", "arrow").struct([(name, arrow_type(part)) for name, part in kind.fields.items()])
    if isinstance(kind, List):
        return extra("pyarrow", "arrow").large_list(arrow_type(kind.item))
    return _scalar_types()[kind]


@cache
def _scalar_types() -> dict[Scalar, pa.DataType]:
    pa = extra("pyarrow", "arrow")
    return {
        Scalar.TEXT: pa.large_string(),
        Scalar.TIME: pa.timestamp("us", "UTC"),
        Scalar.FREQUENCY: pa.large_string(),
        Scalar.NUMBER: pa.float64(),
        Scalar.INTEGER: pa.int64(),
        Scalar.BOOLEAN: pa.bool_(),
    }


def arrow_schema(chosen: Mapping[str, Type], table: str) -> pa.Schema:
    """Return the Arrow schema of the chosen columns. Its metadata has the version of our schema."""
    fields = [(path, arrow_type(kind)) for path, kind in chosen.items()]
    return extra("pyarrow", "arrow").schema(fields, {_SCHEMA_KEY: f"{table}/{SCHEMA_VERSION}"})


def record_batch(
    batch: Batch, types: Mapping[str, Type], chosen: Mapping[str, Type], schema: pa.Schema
) -> pa.RecordBatch:
    """Return the rows to keep of a batch, with the chosen columns."""
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
    """Make an array of nulls. It is no slice of a longer one, which would be written or pickled whole."""
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


# Neither calls pyarrow.array(): that imports pandas, if it is installed, to look for its types.


def _mask(pa: Any, kept: bytes) -> pa.Array:
    flags = pa.Array.from_buffers(pa.uint8(), len(kept), [None, pa.py_buffer(kept)])
    return extra("pyarrow.compute", "arrow").cast(flags, pa.bool_(), memory_pool=pa.system_memory_pool())


@cache
def _frequencies() -> pa.Array:
    pa = extra("pyarrow", "arrow")
    words = column_of(Scalar.TEXT, [frequency.value for frequency in CHANGE_FREQUENCIES])
    return _array(pa, Scalar.TEXT, words, pa.large_string())


class BatchBuilder:
    """Combine batches into tables of enough rows or bytes: thousands of small sitemaps make few large tables.

    Many small batches are merged now and then, because the arrays of a batch take more memory than a few rows.
    """

    def __init__(self, schema: pa.Schema, rows: int = GROUP_ROWS, size: int = GROUP_BYTES) -> None:
        self._schema = schema
        self._rows, self._bytes = rows, size
        self._reset()

    def _reset(self) -> None:
        self._levels: list[list[pa.RecordBatch]] = [
            []
        ]  # the first has the newest batches, each next one merged batches
        self._row_count = self._byte_count = 0

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.Table]:
        """Add a batch. Give a table once there are enough rows."""
        if not batch.num_rows:
            return
        self._levels[0].append(batch)
        self._row_count += batch.num_rows
        self._byte_count += value_bytes(batch)
        if self._row_count >= self._rows or self._byte_count >= self._bytes:
            yield from self.finish()
        else:
            self._merge()

    def finish(self) -> Iterator[pa.Table]:
        """Give the remaining rows as a table, if there are any."""
        batches = [batch for level in reversed(self._levels) for batch in level]
        self._reset()
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


def value_bytes(rows: pa.RecordBatch | pa.Table) -> int:
    """Return the number of bytes of the columns that have values."""
    return sum(column.nbytes for column in rows.columns if column.null_count < len(column))
