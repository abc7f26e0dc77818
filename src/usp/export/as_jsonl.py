"""JSON lines: an object for each row, in one line of its own, whatever its texts hold.

The keys are the paths that were chosen, in their order, and all of them are in every row: what has no value is null.
Structs are objects, lists are lists. Times are ISO 8601 in UTC, 2024-05-08T10:00:00Z, with microseconds where there are
any. UTF-8; what a terminal or a reader of lines may act on (control characters, U+2028, U+2029) is escaped. A number
is never NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import BinaryIO

from usp.export.batches import Batch
from usp.export.rows import PIECE_ROWS, pieces
from usp.export.texts import Parts, json_parts, json_text, whole_text
from usp.export.writing import Writer
from usp.scan import Columns, Type

__all__ = ["jsonl_writer"]


def jsonl_writer(stream: BinaryIO, types: Mapping[str, Type], chosen: Mapping[str, Type]) -> Writer:
    """What writes a table as JSON lines."""
    return _JSONLinesWriter(stream, types, chosen)


class _JSONLinesWriter(Writer):
    def __init__(self, stream: BinaryIO, types: Mapping[str, Type], chosen: Mapping[str, Type]) -> None:
        self._stream = stream
        self._types = types
        self._chosen = chosen

    def encode(self, batch: Batch, /) -> Iterable[bytes]:
        lines = (_lines(piece, self._chosen).encode() for piece in pieces(batch, self._types, self._chosen))
        return list(lines) if batch.columns.length <= 4 * PIECE_ROWS else lines

    def write(self, encoded: Iterable[bytes], /) -> None:
        self._stream.writelines(encoded)

    def close(self) -> None:
        pass


def _lines(rows: Columns, chosen: Mapping[str, Type]) -> str:
    parts: Parts = []
    for path, kind in chosen.items():
        parts += [f"{',' if parts else '{'}{json_text(path)}:", *json_parts(kind, rows.columns.get(path), rows.length)]
    return whole_text(rows.length, [*parts, "}\n"])
