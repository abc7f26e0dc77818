"""JSON lines, and JSON as one array.

Each row is an object on one line, whatever its texts contain. The keys are the chosen paths in their order; all are in
every row, and a missing value is null. Structs are objects, lists are lists. Times are ISO 8601 in UTC,
2024-05-08T10:00:00Z, with microseconds if there are any. The encoding is UTF-8. Characters that a terminal or a line
reader may act on (control characters, U+2028, U+2029) are escaped. A number is never NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import BinaryIO

from usp.export.batches import Batch
from usp.export.formats.base import Answer, Format, FormatOptions, Table, Writer
from usp.export.formats.cells import (
    PIECE_ROWS,
    Parts,
    answer_json,
    answer_rows,
    json_of,
    json_parts,
    json_text,
    pieces,
    text_stream,
    unique_names,
    whole_text,
)
from usp.scan import Columns, Type

__all__ = ["FORMATS", "json_writer", "jsonl_writer"]


def jsonl_writer(stream: BinaryIO, table: Table, options: FormatOptions) -> Writer:
    """Write a table as JSON lines."""
    return _JSONLinesWriter(stream, table.types, table.chosen)


def json_writer(stream: BinaryIO, table: Table, options: FormatOptions) -> Writer:
    """Write a table as one JSON array, a row on each line."""
    return _JSONArrayWriter(stream, table.types, table.chosen)


class _JSONLinesWriter(Writer):
    _before_row, _after_row = "", "\n"

    def __init__(self, stream: BinaryIO, types: Mapping[str, Type], chosen: Mapping[str, Type]) -> None:
        self._stream = stream
        self._types = types
        self._chosen = chosen

    def encode(self, batch: Batch, /) -> Iterable[bytes]:
        lines = (self._lines(piece).encode() for piece in pieces(batch, self._types, self._chosen))
        return list(lines) if batch.columns.length <= 4 * PIECE_ROWS else lines

    def write(self, encoded: Iterable[bytes], /) -> None:
        self._stream.writelines(encoded)

    def close(self) -> None:
        pass

    def _lines(self, rows: Columns) -> str:
        parts: Parts = []
        for path, kind in self._chosen.items():
            values = json_parts(kind, rows.columns.get(path), rows.length)
            parts += [f"{',' if parts else '{'}{json_text(path)}:", *values]
        return whole_text(rows.length, [self._before_row, *parts, "}" + self._after_row])


class _JSONArrayWriter(_JSONLinesWriter):
    _before_row, _after_row = ",\n", ""
    _is_empty = True

    def write(self, encoded: Iterable[bytes], /) -> None:
        for text in encoded:
            self._stream.write(b"[" + text[1:] if self._is_empty else text)  # no comma before the first row
            self._is_empty = False

    def close(self) -> None:
        self._stream.write(b"[]\n" if self._is_empty else b"\n]\n")


def _objects(answer: Answer) -> Iterator[str]:
    names = unique_names(answer.schema.names)
    for row in answer_rows(answer):
        yield json_of(answer_json(dict(zip(names, row, strict=True))))


def write_answer_lines(answer: Answer, stream: BinaryIO, options: FormatOptions) -> int:
    """Write the answer to a query as JSON lines."""
    count = 0
    with text_stream(stream) as file:
        for text in _objects(answer):
            file.write(f"{text}\n")
            count += 1
    return count


def write_answer_list(answer: Answer, stream: BinaryIO, options: FormatOptions) -> int:
    """Write the answer to a query as a JSON array, one object on each line."""
    count = 0
    with text_stream(stream) as file:
        file.write("[")
        for text in _objects(answer):
            file.write(f"{',' if count else ''}\n{text}")
            count += 1
        file.write("\n]\n" if count else "]\n")
    return count


FORMATS = (
    Format(
        "jsonl",
        "a JSON object on each line",
        (".jsonl", ".ndjson"),
        jsonl_writer,
        write_answer_lines,
        is_text=True,
    ),
    Format("json", "an array of JSON objects", (".json",), json_writer, write_answer_list, is_text=True),
)
