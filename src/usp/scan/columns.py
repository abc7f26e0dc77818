"""Collect pages as columns, with no object for each page, ready to become Arrow arrays without a copy.

`PAGE_COLUMNS` is the one table of columns: the name of each, its type, and where a page has its value. A new column is
one line there. The compiled reader knows most columns; it asks this table for the values of the others.

`PureColumns` collects pages one by one. The compiled reader (`_columns.pyx`) takes plain entries straight from the
buffer as well. `columns()` returns what was collected since the last call, so that a long document comes in parts.

Tables that must agree are compared when this module is imported. This module knows nothing of files and formats.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from itertools import accumulate, chain
from math import isfinite
from operator import attrgetter
from typing import Any, NamedTuple

from usp.objects.dates import ASSUMED_ZONE
from usp.objects.lazy import Source
from usp.objects.page import (
    SitemapImage,
    SitemapNewsStory,
    SitemapPage,
    SitemapPageChangeFrequency,
    SitemapVideo,
    SitemapVideoTvShow,
    page_of,
    stated_change_frequency,
    stated_priority,
)
from usp.scan.vocabulary import DIALECTS, TV_SHOW_FIELDS, VIDEO_FIELDS, Form

__all__ = [
    "CHANGE_FREQUENCIES",
    "MAX_INTEGER",
    "MIN_INTEGER",
    "PAGE_COLUMNS",
    "PAGE_TYPES",
    "VALUE_GETTERS",
    "Column",
    "Columns",
    "List",
    "PageColumn",
    "PureColumns",
    "Scalar",
    "Struct",
    "Type",
    "between",
    "bits",
    "check_names",
    "check_page_columns",
    "check_types",
    "column_of",
    "columns_of_all",
    "first_rows",
    "flags_of",
    "microseconds",
    "sparse_column",
]

CHANGE_FREQUENCIES = tuple(SitemapPageChangeFrequency)
_NUMBER_OF = {frequency: number for number, frequency in enumerate(CHANGE_FREQUENCIES)}
#: A byte of bits -> its bits, the lowest first.
_BITS = [[bool(byte >> bit & 1) for bit in range(8)] for byte in range(256)]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_EARLIEST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LATEST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND


class Scalar(Enum):
    """The type of a single value."""

    TEXT = auto()
    TIME = auto()  #: microseconds since 1970 in UTC; a time without a zone is in ASSUMED_ZONE
    FREQUENCY = auto()  #: an index into CHANGE_FREQUENCIES
    NUMBER = auto()
    INTEGER = auto()
    BOOLEAN = auto()


@dataclass(frozen=True, slots=True)
class Struct:
    """The type of values with a name each."""

    fields: Mapping[str, Type]


@dataclass(frozen=True, slots=True)
class List:
    """The type of any number of values."""

    item: Type


Type = Scalar | Struct | List

_TEXT, _TEXTS = Scalar.TEXT, List(Scalar.TEXT)
_NEWS = Struct(
    {
        "title": _TEXT,
        "publish_date": Scalar.TIME,
        "publication_name": _TEXT,
        "publication_language": _TEXT,
        "access": _TEXT,
        "genres": _TEXTS,
        "keywords": _TEXTS,
        "stock_tickers": _TEXTS,
    }
)
_IMAGE = Struct(dict.fromkeys(("loc", "caption", "geo_location", "title", "license"), _TEXT))
_ALTERNATE = Struct({"hreflang": _TEXT, "url": _TEXT})
_DESCRIBED = List(Struct({"text": _TEXT, "attributes": List(Struct({"name": _TEXT, "value": _TEXT}))}))
#: How the value of a field is exported, by the form that documents write it in.
_FORM_TYPES: dict[Form, Type] = {
    Form.TEXT: _TEXT,
    Form.URL: _TEXT,
    Form.DATE: Scalar.TIME,
    Form.INTEGER: Scalar.INTEGER,
    Form.DECIMAL: Scalar.NUMBER,
    Form.YES_NO: Scalar.BOOLEAN,
    Form.WORDS: _TEXTS,
    Form.TEXTS: _TEXTS,
    Form.TEXTS_WITH_ATTRIBUTES: _DESCRIBED,
}
_FORM_TYPES[Form.TV_SHOW] = Struct({name: _FORM_TYPES[form] for name, form in TV_SHOW_FIELDS.items()})
_VIDEO = Struct({name: _FORM_TYPES[field.form] for name, field in VIDEO_FIELDS.items()})


@dataclass(frozen=True, slots=True)
class PageColumn:
    """A column of the table of pages.

    `field` is the attribute of `SitemapPage` that the column shows. A column without one is filled by the reader.
    `element` is the tag of the extension that has the field: a page without such an element has no value. It is empty
    where any page may have a value. `value` returns the value of a page, if it is not simply that of the field.
    """

    type: Type
    field: str = ""
    element: str = ""
    value: Callable[[SitemapPage], Any] | None = None


def _named_alternates(page: SitemapPage) -> list[_Alternate] | None:
    return [_Alternate(*pair) for pair in page.alternates] if page.alternates else None


#: The columns of pages, in their order.
PAGE_COLUMNS: dict[str, PageColumn] = {
    "url": PageColumn(_TEXT, "url"),
    "last_modified": PageColumn(Scalar.TIME, "last_modified"),
    "last_modified_text": PageColumn(_TEXT),  # as written, where it has no zone
    "change_frequency": PageColumn(Scalar.FREQUENCY, "change_frequency", value=stated_change_frequency),
    "priority": PageColumn(Scalar.NUMBER, "priority", value=stated_priority),
    "news": PageColumn(_NEWS, "news_story", "news"),
    "images": PageColumn(List(_IMAGE), "images", "image"),
    "videos": PageColumn(List(_VIDEO), "videos", "video"),
    "alternates": PageColumn(List(_ALTERNATE), "alternates", "link", _named_alternates),
    "problems": PageColumn(_TEXTS),  # codes
}
PAGE_TYPES: dict[str, Type] = {name: column.type for name, column in PAGE_COLUMNS.items()}


def check_names(table: str, names: Iterable[str], other: str, expected: Iterable[str]) -> None:
    """Raise an error unless two tables have the same names. `table` and `other` say where the tables are."""
    has, needs = list(names), list(expected)
    for name in needs:
        if name not in has:
            raise TypeError(f"{table} has no {name!r}, but {other} has: add it to {table}")
    for name in has:
        if name not in needs:
            raise TypeError(f"{other} has no {name!r}, but {table} has: add it to {other}")


def check_types(table: str, types: Mapping[str, Type]) -> None:
    """Raise an error unless these are types of columns of pages. `table` says which table claims that they are."""
    for name, kind in types.items():
        if name not in PAGE_TYPES:
            raise TypeError(f"{table} has a column {name!r}, but PAGE_COLUMNS in usp/scan/columns.py has none")
        if repr(kind) != repr(PAGE_TYPES[name]):  # unlike ==, it compares the order of fields
            raise TypeError(f"{table} writes the column {name!r} as {kind}, not as {PAGE_TYPES[name]}: change {table}")


def check_page_columns(columns: Mapping[str, PageColumn] = PAGE_COLUMNS) -> None:
    """Raise an error unless every field of a page has one column, and every extension is in the vocabulary."""
    shown = [column.field for column in columns.values() if column.field]
    check_names(
        "PAGE_COLUMNS in usp/scan/columns.py",
        shown,
        "SitemapPage in usp/objects/page.py",
        [field.name for field in fields(SitemapPage)],
    )
    tags = {name.rpartition(":")[2] for name in DIALECTS["urlset"].entries["url"].names()}
    for name, column in columns.items():
        if column.element and column.element not in tags:
            raise TypeError(
                f"the column {name!r} of usp/scan/columns.py is of <{column.element}>, which entries do not have: "
                "add it to usp/scan/vocabulary.py"
            )


@dataclass(frozen=True, slots=True)
class Column:
    """A column in Arrow's layout: memoryviews of its buffers.

    `data` holds the UTF-8 bytes of texts one after another, a bit for each boolean (the lowest of a byte first), uint8
    for frequencies, float64 for numbers, and int64 for everything else. Texts and lists have int64 `offsets`, one more
    than there are rows. `valid` has a bit for each row, or is None if no row is null. `children` are the fields of a
    struct, or the items of a list.
    """

    length: int
    data: memoryview | None = None
    offsets: memoryview | None = None
    valid: memoryview | None = None
    children: tuple[Column, ...] = ()


class Columns(NamedTuple):
    """Columns of the same length, by name. A column that is missing is null in every row."""

    length: int
    columns: Mapping[str, Column]


def first_rows(parts: Iterable[Columns], count: int) -> Iterator[Columns]:
    """Yield the first rows of columns of pages that come in parts."""
    for length, columns in parts:
        if length >= count:
            if count:
                cut = {name: between(PAGE_TYPES[name], column, 0, count) for name, column in columns.items()}
                yield Columns(count, cut)
            return
        yield Columns(length, columns)
        count -= length


class _Alternate(NamedTuple):
    hreflang: str
    url: str


class _Attribute(NamedTuple):
    name: str
    value: str


class _Described(NamedTuple):
    text: str
    attributes: list[_Attribute]


def microseconds(date: datetime) -> int:
    """Return the microseconds since 1970 in UTC. A time outside the years 1 to 9999 is moved to the nearest."""
    found = ((date if date.tzinfo else date.replace(tzinfo=ASSUMED_ZONE)) - _EPOCH) // _MICROSECOND
    return min(max(found, _EARLIEST), _LATEST)


_DIGITS = bytes.maketrans(b"\0\1", b"01")


def bits(flags: Iterable[bool]) -> memoryview:
    """Return a bit for each flag, the lowest of a byte first."""
    text = bytes(flags).translate(_DIGITS)[::-1]
    return memoryview(int(text or b"0", 2).to_bytes((len(text) + 7) // 8, "little"))


def flags_of(bits: memoryview, length: int) -> list[bool]:
    """Return the first `length` bits as booleans."""
    found: list[bool] = []
    for byte in bits:
        found += _BITS[byte]
    return found[:length]


def column_of(kind: Type, values: Sequence[Any]) -> Column:
    """Build a column; `None` becomes null."""
    if kind is Scalar.NUMBER:  # a float cannot hold every Decimal
        values = [value if value is not None and isfinite(value) else None for value in values]
    valid = bits([value is not None for value in values]) if None in values else None
    if isinstance(kind, Struct):
        parts = (
            column_of(part, [None if value is None else _part(value, name) for value in values])
            for name, part in kind.fields.items()
        )
        return Column(len(values), valid=valid, children=tuple(parts))
    if isinstance(kind, List):
        items = column_of(kind.item, list(chain.from_iterable(value for value in values if value is not None)))
        return Column(len(values), None, _offsets(values), valid, (items,))
    if kind is Scalar.TEXT:
        texts = [b"" if value is None else value.encode("utf-8", "replace") for value in values]
        return Column(len(values), memoryview(b"".join(texts)), _offsets_of(map(len, texts)), valid)
    return Column(len(values), _FIXED[kind](values), None, valid)


def sparse_column(kind: Type, length: int, values: Mapping[int, Any]) -> Column:
    """Build a column from the values of a few rows; all other rows are null."""
    return column_of(kind, list(map(values.get, range(length))))


def between(kind: Type, column: Column, start: int, end: int) -> Column:
    """Return some rows of a column, as a column whose offsets begin with 0."""
    if start == 0 and end == column.length:
        return column
    valid = None if column.valid is None else _bits_between(column.valid, start, end)
    if isinstance(kind, Struct):
        parts = zip(kind.fields.values(), column.children, strict=True)
        return Column(end - start, valid=valid, children=tuple(between(*part, start, end) for part in parts))
    if column.offsets is None:
        assert column.data is not None
        data = _bits_between(column.data, start, end) if kind is Scalar.BOOLEAN else column.data[start:end]
        return Column(end - start, data, valid=valid)
    first, last = column.offsets[start], column.offsets[end]
    offsets = column.offsets[start : end + 1]
    if first:
        offsets = memoryview(array("q", [offset - first for offset in offsets.tolist()]))
    if isinstance(kind, List):
        return Column(end - start, None, offsets, valid, (between(kind.item, column.children[0], first, last),))
    assert column.data is not None
    return Column(end - start, column.data[first:last], offsets, valid)


def _bits_between(view: memoryview, start: int, end: int) -> memoryview:
    if start % 8 == 0:
        return view[start // 8 : (end + 7) // 8]
    return bits(flags_of(view, end)[start:])


def _offsets(values: Iterable[Sequence[Any] | None]) -> memoryview:
    return _offsets_of(len(value) if value else 0 for value in values)


def _integers(values: list[int]) -> memoryview:
    try:
        return memoryview(array("q", values))
    except OverflowError:  # some are moved to the nearest that fits
        return memoryview(array("q", [min(max(value, MIN_INTEGER), MAX_INTEGER) for value in values]))


def _offsets_of(lengths: Iterable[int]) -> memoryview:
    return memoryview(array("q", accumulate(lengths, initial=0)))


def _part(value: Any, name: str) -> Any:
    part = getattr(value, name)
    if name in _DESCRIBED_PARTS and not isinstance(value, _Described):
        return [_Described(text, [_Attribute(*pair) for pair in attributes.items()]) for text, attributes in part]
    return part


_DESCRIBED_PARTS = {name for name, kind in _VIDEO.fields.items() if kind is _DESCRIBED}
#: The integers that a column can hold. Others are moved to the nearest.
MIN_INTEGER, MAX_INTEGER = -(1 << 63), (1 << 63) - 1
_FIXED: dict[Scalar, Callable[[Sequence[Any]], memoryview]] = {
    Scalar.TIME: lambda values: memoryview(array("q", [0 if v is None else microseconds(v) for v in values])),
    Scalar.FREQUENCY: lambda values: memoryview(bytes(255 if v is None else _NUMBER_OF[v] for v in values)),
    Scalar.NUMBER: lambda values: memoryview(array("d", [0 if v is None else float(v) for v in values])),
    Scalar.INTEGER: lambda values: _integers([v or 0 for v in values]),
    Scalar.BOOLEAN: lambda values: bits(map(bool, values)),
}


#: Columns -> how to get their values from a page; all but the URL and the columns that readers fill.
VALUE_GETTERS: dict[str, Callable[[SitemapPage], Any]] = {
    name: column.value or attrgetter(column.field)
    for name, column in PAGE_COLUMNS.items()
    if column.field and name != "url"
}


class PureColumns:
    """Collects columns page by page: those of these names, and always the URL."""

    def __init__(self, wanted: Collection[str] = PAGE_TYPES) -> None:
        self._seen: set[str] = set()
        self._urls: list[str] = []
        self._values: dict[str, dict[int, Any]] = {name: {} for name in PAGE_TYPES if name in wanted}

    @property
    def rows(self) -> int:
        """The number of rows collected since the last call of `columns`."""
        return len(self._urls)

    def append(self, page: SitemapPage, last_modified_text: str, problems: Sequence[str] = ()) -> None:
        """Add a page and the codes of its problems, unless its URL was added before."""
        row = self._add_url(page.url)
        if row < 0:
            return
        for name, values in self._values.items():
            if name in VALUE_GETTERS and (value := VALUE_GETTERS[name](page)) is not None:
                values[row] = value
        self._add_text(row, page.last_modified, last_modified_text)
        if problems and "problems" in self._values:
            self._values["problems"][row] = problems

    def append_url(self, url: str, source: Source, problems: Sequence[str] = ()) -> None:
        """Add a page that has only a URL, and the codes of its problems, unless its URL was added before.

        :param source: that of such pages.
        """
        self.append(page_of(url, source), "", problems)

    def _add_url(self, url: str) -> int:
        """Add a URL and return its row, or -1 if it was added before."""
        if url in self._seen:
            return -1
        self._seen.add(url)
        self._urls.append(url)
        return len(self._urls) - 1

    def _add_text(self, row: int, date: datetime | None, text: str) -> None:
        """Add the text of a date that has no zone."""
        if date is not None and date.tzinfo is None and "last_modified_text" in self._values:
            self._values["last_modified_text"][row] = text

    def columns(self, goes_on: bool = False) -> Columns:
        """Return what was collected since the last call. Remember the URLs only if the document `goes_on`."""
        length = len(self._urls)
        found = {"url": column_of(PAGE_TYPES["url"], self._urls)} if length else {}
        for name, values in self._values.items():
            if values:
                found[name] = sparse_column(PAGE_TYPES[name], length, values)
                values.clear()
        self._urls.clear()
        if not goes_on:
            self._seen.clear()
        return Columns(length, found)


def columns_of_all(
    pages: Iterable[SitemapPage], text_of: Callable[[SitemapPage], str], wanted: Collection[str] = PAGE_TYPES
) -> Columns:
    """Return the columns of pages, with a row for each. `text_of` returns the text of a page's last modification."""
    pages = list(pages)
    values: dict[str, list[Any]] = {
        name: list(map(get_value, pages)) for name, get_value in VALUE_GETTERS.items() if name in wanted
    }
    values["url"] = [page.url for page in pages]
    if "last_modified_text" in wanted:
        values["last_modified_text"] = [
            text_of(page) if page.last_modified is not None and page.last_modified.tzinfo is None else None
            for page in pages
        ]
    present = {name: column for name, column in values.items() if any(value is not None for value in column)}
    return Columns(len(pages), {name: column_of(PAGE_TYPES[name], column) for name, column in present.items()})


_VALUE_TABLES: list[tuple[str, Iterable[str], type[Any]]] = [
    ("VIDEO_FIELDS in usp/scan/vocabulary.py", VIDEO_FIELDS, SitemapVideo),
    ("TV_SHOW_FIELDS in usp/scan/vocabulary.py", TV_SHOW_FIELDS, SitemapVideoTvShow),
    ("_NEWS in usp/scan/columns.py", _NEWS.fields, SitemapNewsStory),
    ("_IMAGE in usp/scan/columns.py", _IMAGE.fields, SitemapImage),
]
for _table, _names, _class in _VALUE_TABLES:
    check_names(_table, _names, f"{_class.__name__} in usp/objects/page.py", [field.name for field in fields(_class)])
check_page_columns()
