"""Excel workbooks.

Each table is a sheet; a table with more rows than a sheet holds goes on in further sheets: pages, pages (2). The first
row has the paths of the columns, like news.title. Times are dates of Excel, in UTC; those before March 1900, where
Excel has none, are text. Lists are JSON. Null and an empty text are empty cells.

Texts are always texts, never formulas or links, also after somebody has edited the cell. A text that is too long for a
cell is cut, and ends with a note.

XlsxWriter writes rows to temporary files as they come, so memory stays bounded.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from usp.exceptions import InvalidArgumentError
from usp.export.batches import Batch
from usp.export.files import named
from usp.export.formats.base import Answer, Format, FormatOptions, Table, Writer
from usp.export.formats.cells import (
    PIECE_ROWS,
    answer_rows,
    answer_text,
    is_number,
    json_parts,
    pieces,
    row_texts,
    texts_of,
    time_texts,
    unique_names,
    values_of,
)
from usp.export.schema import flattened
from usp.extras import extra
from usp.scan import Column, Columns, Scalar, Type, flags_of, microseconds

if TYPE_CHECKING:
    from xlsxwriter.format import Format as CellFormat
    from xlsxwriter.workbook import Workbook
    from xlsxwriter.worksheet import Worksheet

__all__ = ["FORMATS", "MAX_CELL", "MAX_ROWS", "opened", "xlsx_writer"]

# The limits of Excel: https://support.microsoft.com/office/1672b34d-7043-467e-8e27-269d656771c3
MAX_ROWS = 1_048_576  # of a sheet, with its header
MAX_COLUMNS = 16_384
MAX_CELL = 32_767  # UTF-16 units
_MAX_SHEET_NAME = 31
_MAX_EXACT_INTEGER = 1 << 53  # Excel has only floating-point numbers

_DAY = 86_400_000_000  # microseconds
_DAYS_BEFORE_1970 = 25_569  # as Excel counts days
_FIRST_TIME = microseconds(datetime(1900, 3, 1, tzinfo=UTC))  # before that, Excel counts a day that never was
_TIME_FORMAT = "yyyy-mm-dd hh:mm:ss"
_DATE_FORMAT = "yyyy-mm-dd"

_URL_WIDTH, _TIME_WIDTH, _WIDTH = 60, 19, 14  # of columns, in characters
_FORMULA = re.compile(r"[=+\-@\uff1d\uff0b\uff0d\uff20]")
#: A text that looks like this would be written as XML, without any escaping.
_RICH = re.compile(r"<r>.*</r>", re.DOTALL)


class _Book(NamedTuple):
    """A workbook, and the formats of its cells."""

    workbook: Workbook
    header: CellFormat
    time: CellFormat
    date: CellFormat
    quoted: CellFormat  #: stays text when it is edited


@contextmanager
def opened(stream: BinaryIO) -> Iterator[_Book]:
    """Give a new workbook. If this ends without an error, copy its file to the stream, which need not be seekable."""
    xlsxwriter = extra("xlsxwriter", "xlsx")
    with tempfile.TemporaryDirectory(prefix="usp-xlsx-") as folder:
        name = os.path.join(folder, "new.xlsx")
        workbook = xlsxwriter.Workbook(name, {"constant_memory": True, "tmpdir": folder, "use_zip64": True})
        workbook.set_properties({"comments": "Times are in UTC."})
        add = workbook.add_format
        with named(folder):
            try:
                yield _Book(
                    workbook,
                    header=add({"bold": True}),
                    time=add({"num_format": _TIME_FORMAT}),
                    date=add({"num_format": _DATE_FORMAT}),
                    quoted=add({"quote_prefix": True}),
                )
                _close(workbook)
            finally:
                for sheet in workbook.worksheets():
                    sheet._opt_close()  # Windows removes no open file; after `close()` this does nothing
        with open(name, "rb") as file:
            shutil.copyfileobj(file, stream)


def _close(workbook: Workbook) -> None:
    """Write the file. Raise the OSError if that fails."""
    try:
        workbook.close()
    except extra("xlsxwriter", "xlsx").exceptions.FileCreateError as error:
        raise error.args[0] from None


class _Sheet:
    """Writes the rows of one table. Where a sheet is full, it begins another."""

    def __init__(self, book: _Book, name: str, columns: Mapping[str, int]) -> None:
        if len(columns) > MAX_COLUMNS:
            raise InvalidArgumentError(f"A sheet has at most {MAX_COLUMNS:,} columns, not {len(columns):,}")
        self._book = book
        self._name = name
        self._columns = columns  # with their widths
        self._number = 0
        self._begin()

    def _begin(self) -> None:
        self._number += 1
        end = f" ({self._number})" if self._number > 1 else ""
        self._sheet: Worksheet = self._book.workbook.add_worksheet(self._name[: _MAX_SHEET_NAME - len(end)] + end)
        self._sheet.freeze_panes(1, 0)
        for at, (name, width) in enumerate(self._columns.items()):
            self._sheet.set_column(at, at, width)
            self.text(0, at, name, self._book.header)
        self._row = 0

    def next_row(self) -> int:
        """Return the number of the next row, of another sheet if this one is full."""
        if self._row + 1 == MAX_ROWS:
            self.finish()
            self._begin()
        self._row += 1
        return self._row

    def finish(self) -> None:
        """Let users filter the rows."""
        if self._columns:
            self._sheet.autofilter(0, 0, self._row, len(self._columns) - 1)

    def text(self, row: int, at: int, text: str, cell_format: CellFormat | None = None) -> None:
        """Write a text, which is never run as a formula."""
        if len(text) > MAX_CELL // 2:
            text = shortened(text)
        if cell_format is None and _FORMULA.match(text):
            cell_format = self._book.quoted
        if _RICH.fullmatch(text):
            self._sheet.write_rich_string(row, at, text[0], self._book.quoted, text[1:])
        elif text:
            self._sheet.write_string(row, at, text, cell_format)

    def number(self, row: int, at: int, number: float, cell_format: CellFormat | None = None) -> None:
        """Write a number that Excel can represent; others are text."""
        if isinstance(number, int) and abs(number) > _MAX_EXACT_INTEGER:
            self._sheet.write_string(row, at, str(number))
        elif isfinite(number):
            self._sheet.write_number(row, at, number, cell_format)

    def boolean(self, row: int, at: int, value: bool) -> None:
        """Write a boolean."""
        self._sheet.write_boolean(row, at, value)

    def time(self, row: int, at: int, moment: int) -> None:
        """Write a time, given in microseconds since 1970, as a date of Excel."""
        if moment >= _FIRST_TIME:
            milliseconds = moment // 1_000  # Excel has no more; rounding up could leave its last year
            self._sheet.write_number(row, at, milliseconds / 86_400_000 + _DAYS_BEFORE_1970, self._book.time)
        else:
            self._sheet.write_string(row, at, time_texts([moment])[0])

    def date(self, row: int, at: int, day: date) -> None:
        """Write a day without a time."""
        moment = microseconds(datetime.combine(day, time(tzinfo=UTC)))
        if moment >= _FIRST_TIME:
            self._sheet.write_number(row, at, moment // _DAY + _DAYS_BEFORE_1970, self._book.date)
        else:
            self._sheet.write_string(row, at, day.isoformat())


def shortened(text: str) -> str:
    """Cut a text that is too long for a cell, and add a note. Excel counts UTF-16 units."""
    units = text.encode("utf-16-le")
    if len(units) <= 2 * MAX_CELL:
        return text
    note = f"… [cut: {len(text):,} characters]"
    return units[: 2 * (MAX_CELL - len(note))].decode("utf-16-le", "ignore") + note


def xlsx_writer(book: _Book, table: Table, options: FormatOptions) -> Writer:
    """Write a table to a sheet of a workbook."""
    return _XlsxWriter(book, table.name, table.types, flattened(table.chosen))


class _Rows(NamedTuple):
    """The values of each column; None for a column without values. Times are in microseconds since 1970."""

    length: int
    columns: list[list[Any] | None]


class _XlsxWriter(Writer):
    def __init__(self, book: _Book, name: str, types: Mapping[str, Type], chosen: Mapping[str, Type]) -> None:
        self._types = types
        self._chosen = chosen
        self._sheet = _Sheet(book, name, {path: _width(path, kind) for path, kind in chosen.items()})
        methods: dict[Type, Callable[[int, int, Any], None]] = {
            Scalar.TIME: self._sheet.time,
            Scalar.NUMBER: self._sheet.number,
            Scalar.INTEGER: self._sheet.number,
            Scalar.BOOLEAN: self._sheet.boolean,
        }
        self._methods = [
            methods.get(kind, self._sheet.text) if isinstance(kind, Scalar) else self._sheet.text
            for kind in chosen.values()
        ]

    def encode(self, batch: Batch, /) -> Iterable[_Rows]:
        found = (self._rows(piece) for piece in pieces(batch, self._types, self._chosen))
        return list(found) if batch.columns.length <= 4 * PIECE_ROWS else found

    def _rows(self, rows: Columns) -> _Rows:
        columns = [(kind, rows.columns.get(path)) for path, kind in self._chosen.items()]
        values = [None if column is None else _values(kind, column, rows.length) for kind, column in columns]
        return _Rows(rows.length, values)

    def write(self, encoded: Iterable[_Rows], /) -> None:
        for length, columns in encoded:
            there = [(at, self._methods[at], values) for at, values in enumerate(columns) if values is not None]
            for number in range(length):
                row = self._sheet.next_row()
                for at, write, values in there:
                    if (value := values[number]) is not None:
                        write(row, at, value)

    def close(self) -> None:
        self._sheet.finish()


def _width(name: str, kind: Type) -> int:
    if kind is Scalar.TIME:
        return _TIME_WIDTH
    return _URL_WIDTH if name.rpartition("_")[2] == "url" else max(_WIDTH, len(name) + 2)


def _values(kind: Type, column: Column, length: int) -> list[Any]:
    if isinstance(kind, Scalar) and kind is not Scalar.TEXT:
        return values_of(kind, column, length)
    texts = texts_of(column) if kind is Scalar.TEXT else row_texts(length, json_parts(kind, column, length))
    if column.valid is None:
        return texts
    return [text if is_valid else None for text, is_valid in zip(texts, flags_of(column.valid, length), strict=True)]


def write_answer(answer: Answer, book: _Book, options: FormatOptions) -> int:
    """Write the answer to a query to a sheet of a workbook."""
    names = unique_names(answer.schema.names)
    sheet = _Sheet(book, answer.name, {name: _answer_width(name) for name in names})
    count = 0
    for values in answer_rows(answer):
        count += 1
        row = sheet.next_row()
        for at, value in enumerate(values):
            if value is not None:
                _write_value(sheet, row, at, value)
    sheet.finish()
    return count


def _answer_width(name: str) -> int:
    return _URL_WIDTH if name.rpartition("_")[2] == "url" else max(_TIME_WIDTH, min(len(name) + 2, _URL_WIDTH))


def _write_value(sheet: _Sheet, row: int, at: int, value: Any) -> None:
    if isinstance(value, str):
        sheet.text(row, at, value)
    elif isinstance(value, bool):
        sheet.boolean(row, at, value)
    elif isinstance(value, datetime):
        sheet.time(row, at, microseconds(value))
    elif isinstance(value, date):
        sheet.date(row, at, value)
    elif is_number(value):
        is_whole = isinstance(value, Decimal) and value == value.to_integral_value()
        sheet.number(row, at, int(value) if is_whole else value if isinstance(value, int) else float(value))
    else:
        sheet.text(row, at, answer_text(value))


FORMATS = (
    Format(
        "xlsx",
        "an Excel workbook",
        (".xlsx",),
        xlsx_writer,
        write_answer,
        opener=opened,
        holds_tables=True,
        needs=(("xlsxwriter",), "xlsx"),
    ),
)
