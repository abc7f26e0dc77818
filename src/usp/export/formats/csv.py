r"""CSV (RFC 4180) and TSV in UTF-8, with a header. Lines end with a line feed, which all readers and line tools take.

The header has the paths of the columns, like news.title. Times are ISO 8601 in UTC, 2024-05-08T10:00:00Z, all of
this width: fractions of a second are cut off, except inside lists. Booleans are true and false. Lists are JSON. Null is
an empty cell, an empty text is `""`. In a table of one column both are `""`, because readers skip empty lines.

But for these fractions, a file reads back equal after two changes to text cells are undone:

- A cell that a spreadsheet would run as a formula gets an apostrophe in front: one that begins with `=`, `+`, `-`, `@`,
  their full-width forms, a tab or a line break, also after spaces and quotation marks. An apostrophe in front of such a
  cell is always ours. Numbers are never changed. A raw file has no such apostrophes.
- Control characters, U+2028 and U+2029 are written as `\x00` or `\u2028`. A backslash that would look like the start of
  one is written as `\x5c`. In CSV, tabs and line feeds stay as they are: in quotation marks every reader takes them.
  In TSV they are escaped, too, so that each row is one line and each tab is a separator, as line tools expect. If
  you need one row per line, use TSV or JSON lines.

The `csv` module is not used: before Python 3.12 it cannot tell null from an empty text, and it looks at every character
of columns that are known to need no quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import BinaryIO, NamedTuple

from usp.export.batches import Batch
from usp.export.formats.base import Answer, Format, FormatOptions, Table, Writer
from usp.export.formats.cells import (
    CONTROLS,
    ODD_CHARACTERS,
    PIECE_ROWS,
    Parts,
    answer_rows,
    answer_text,
    has_bytes,
    is_number,
    json_parts,
    pieces,
    repeated_text,
    row_texts,
    scalar_parts,
    text_stream,
    texts_of,
    whole_text,
)
from usp.export.schema import flattened
from usp.scan import Column, Columns, Scalar, Type, flags_of

__all__ = ["FORMATS", "csv_cell", "csv_writer", "defused", "escaped", "tsv_writer"]

# Characters that may stand before the start of a formula. The apostrophe is one of them, so that a defused text and a
# text that only looks defused stay different.
_LEADING = r"\s'\"\ufeff\u200b"
_STARTING = r"=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n"
_FORMULA = re.compile(f"[{_LEADING}]*[{_STARTING}]")
_BACKSLASH = r"\\(?=x[0-9a-f]{2}|u[0-9a-f]{4})"
_UNPLAIN = CONTROLS + b'",\\'
_UNPLAIN_START = re.compile(f"[{_LEADING}{_STARTING}#]|$")
_UNPLAIN_CELL = re.compile(rf"""[\x00-\x1f{ODD_CHARACTERS}",\\]|^(?:{_UNPLAIN_START.pattern})""")


class Dialect(NamedTuple):
    """What differs between CSV and TSV."""

    separator: str
    escaped: re.Pattern[str]  #: characters that are written as escapes
    quoted: re.Pattern[str]  #: cells in quotation marks; also those that some readers would trim, or take for a comment


CSV = Dialect(
    ",",
    re.compile(rf"[\x00-\x08\x0b-\x1f{ODD_CHARACTERS}]|{_BACKSLASH}"),
    re.compile(r"""[",\n\r]|^[\s'#\ufeff]|^$"""),
)
TSV = Dialect("\t", re.compile(rf"[\x00-\x1f{ODD_CHARACTERS}]|{_BACKSLASH}"), re.compile(r"""["]|^[\s'#\ufeff]|^$"""))


def defused(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would run as a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def escaped(text: str, dialect: Dialect = CSV) -> str:
    """Escape control characters; in CSV, except tabs and line feeds."""
    return dialect.escaped.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def csv_writer(stream: BinaryIO, table: Table, options: FormatOptions) -> Writer:
    """Write a table as CSV."""
    return _CSVWriter(stream, table, options.keep_formulas, CSV)


def tsv_writer(stream: BinaryIO, table: Table, options: FormatOptions) -> Writer:
    """Write a table as TSV."""
    return _CSVWriter(stream, table, options.keep_formulas, TSV)


class _CSVWriter(Writer):
    def __init__(self, stream: BinaryIO, table: Table, is_raw: bool, dialect: Dialect) -> None:
        self._stream = stream
        self._types = table.types
        self._chosen = flattened(table.chosen)
        self._is_raw = is_raw
        self._dialect = dialect
        self._header = dialect.separator.join(self._chosen).encode() + b"\n"

    def encode(self, batch: Batch, /) -> Iterable[bytes]:
        lines = (self._lines(piece).encode() for piece in pieces(batch, self._types, self._chosen))
        return list(lines) if batch.columns.length <= 4 * PIECE_ROWS else lines

    def write(self, encoded: Iterable[bytes], /) -> None:
        self._write_header()
        self._stream.writelines(encoded)

    def close(self) -> None:
        self._write_header()

    def _write_header(self) -> None:
        self._stream.write(self._header)
        self._header = b""

    def _lines(self, rows: Columns) -> str:
        nothing = '""' if len(self._chosen) == 1 else ""
        parts: Parts = []
        for path, kind in self._chosen.items():
            cells = self._cells(kind, rows.columns.get(path), rows.length, nothing)
            parts += [self._dialect.separator if parts else "", *cells]
        return whole_text(rows.length, [*parts, "\n"])

    def _cells(self, kind: Type, column: Column | None, length: int, nothing: str) -> Parts:
        if column is None:
            return [nothing]
        if kind is Scalar.TEXT:
            parts = _text_parts(column, self._is_raw, self._dialect)
        elif isinstance(kind, Scalar):
            parts = scalar_parts(kind, column, quote="", nothing=nothing, in_seconds=True)
        else:
            # JSON contains no line feed, so that all cells can be quoted at once.
            texts = row_texts(length, json_parts(kind, column, length))
            parts = ['"', "\n".join(texts).replace('"', '""').split("\n"), '"']
        if column.valid is None:
            return parts
        flags = flags_of(column.valid, length)
        texts = row_texts(length, parts)
        return [[text if is_valid else nothing for text, is_valid in zip(texts, flags, strict=True)]]


def _text_parts(column: Column, is_raw: bool, dialect: Dialect) -> Parts:
    repeated = repeated_text(column)
    if repeated is not None:
        return [csv_cell(repeated, is_raw, dialect)]
    texts = texts_of(column)
    if not has_bytes(column, _UNPLAIN) and not any(map(_UNPLAIN_START.match, {text[:1] for text in texts})):
        return [texts]
    is_unplain = _UNPLAIN_CELL.search
    return [[csv_cell(text, is_raw, dialect) if is_unplain(text) else text for text in texts]]


def csv_cell(text: str, is_raw: bool, dialect: Dialect = CSV) -> str:
    """Write a text as a cell: escaped, and quoted where needed."""
    text = escaped(text, dialect)
    if not is_raw:
        text = defused(text)
    if not dialect.quoted.search(text):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def write_answer(answer: Answer, stream: BinaryIO, options: FormatOptions, dialect: Dialect = CSV) -> int:
    """Write the answer to a query as CSV."""
    names = answer.schema.names
    nothing = '""' if len(names) == 1 else ""

    def cell(value: object) -> str:
        if value is None:
            return nothing
        if isinstance(value, datetime):
            value = value.replace(microsecond=0)
        text = value if isinstance(value, str) else answer_text(value)
        return text if is_number(value) else csv_cell(text, options.keep_formulas, dialect)

    count = 0
    with text_stream(stream) as file:
        file.write(dialect.separator.join(map(cell, names)) + "\n")
        for row in answer_rows(answer):
            count += 1
            file.write(dialect.separator.join(map(cell, row)) + "\n")
    return count


FORMATS = (
    Format(
        "csv",
        "escaped, so that no spreadsheet runs a formula",
        (".csv",),
        csv_writer,
        write_answer,
        is_text=True,
        separator=b"\n",
    ),
    Format(
        "tsv",
        "the same with tabs, each row on one line",
        (".tsv", ".tab"),
        tsv_writer,
        partial(write_answer, dialect=TSV),
        is_text=True,
        separator=b"\n",
    ),
)
