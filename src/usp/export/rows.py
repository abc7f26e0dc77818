"""The rows of a batch that are to be written, a piece at a time.

What is made of each value to write it takes far more memory than a column does, so that a large sitemap is not made
into values all at once.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from itertools import accumulate, chain, compress, pairwise, repeat

from usp.export.batches import Batch
from usp.export.schema import column_at
from usp.export.values import repeated_text
from usp.scan import Column, Columns, List, Scalar, Struct, Type, between, bits, flags_of

__all__ = ["PIECE_ROWS", "pieces"]

PIECE_ROWS = 16_384


def pieces(batch: Batch, types: Mapping[str, Type], chosen: Mapping[str, Type]) -> Iterator[Columns]:
    """The rows that are kept of a batch, with the columns at the paths that are chosen, by these paths."""
    found = {path: column_at(batch.columns, types, path) for path in chosen}
    there = {path: column for path, column in found.items() if column is not None}
    length = batch.columns.length
    for start in range(0, length, PIECE_ROWS):
        end = min(start + PIECE_ROWS, length)
        kept = None if batch.kept is None else batch.kept[start:end]
        count = end - start if kept is None else kept.count(1)
        if count == 0:
            continue
        piece = {path: between(chosen[path], column, start, end) for path, column in there.items()}
        if kept is not None and count < end - start:
            piece = {path: _kept(chosen[path], column, kept) for path, column in piece.items()}
        yield Columns(count, piece)


def _kept(kind: Type, column: Column, kept: bytes) -> Column:
    """The rows of a column that are kept."""
    length = kept.count(1)
    valid = None if column.valid is None else bits(compress(flags_of(column.valid, column.length), kept))
    if isinstance(kind, Struct):
        parts = zip(kind.fields.values(), column.children, strict=True)
        return Column(length, valid=valid, children=tuple(_kept(*part, kept) for part in parts))
    if column.offsets is None:
        assert column.data is not None
        if kind is Scalar.FLAG:
            return Column(length, bits(compress(flags_of(column.data, column.length), kept)), valid=valid)
        kept_data = array(column.data.format, compress(column.data.tolist(), kept))
        return Column(length, memoryview(kept_data), valid=valid)
    if kind is Scalar.TEXT and repeated_text(column) is not None:
        return between(kind, column, 0, length)
    ranges = list(compress(pairwise(column.offsets.tolist()), kept))
    offsets = memoryview(array("q", accumulate((end - start for start, end in ranges), initial=0)))
    if isinstance(kind, List):
        sizes = (end - start for start, end in pairwise(column.offsets.tolist()))
        items = bytes(chain.from_iterable(map(repeat, kept, sizes)))
        return Column(length, None, offsets, valid, (_kept(kind.item, column.children[0], items),))
    data = bytes(column.data or b"")
    return Column(length, memoryview(b"".join([data[start:end] for start, end in ranges])), offsets, valid)
