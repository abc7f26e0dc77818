"""Pages as columns: no object for each page, ready to become arrays of Arrow without a copy.

`PAGE_TYPES` says which columns there are and what they hold. `PureColumns` collects pages one by one; compiled
(`_columns.pxi`), it also takes plain entries straight from the buffer. `columns()` gives what it took since it was last
asked, so that of a long document there is never more than a part.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from itertools import accumulate, chain
from math import isfinite
from typing import Any, NamedTuple

from usp.objects.page import SitemapPage, SitemapPageChangeFrequency, SitemapVideo

__all__ = [
    "CHANGE_FREQUENCIES",
    "LEAST_WHOLE",
    "MOST_WHOLE",
    "PAGE_TYPES",
    "Column",
    "Columns",
    "List",
    "PureColumns",
    "Scalar",
    "Struct",
    "Type",
    "between",
    "bits",
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
    """What is one value."""

    TEXT = auto()
    TIME = auto()  #: microseconds since 1970 in UTC; what has no zone is taken to be in UTC
    FREQUENCY = auto()  #: a number of CHANGE_FREQUENCIES
    NUMBER = auto()
    WHOLE = auto()
    FLAG = auto()


@dataclass(frozen=True, slots=True)
class Struct:
    """Values that have a name each."""

    fields: Mapping[str, Type]


@dataclass(frozen=True, slots=True)
class List:
    """Any number of values."""

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
_TV_SHOW = Struct(
    {
        "show_title": _TEXT,
        "video_type": _TEXT,
        "episode_title": _TEXT,
        "season_number": Scalar.WHOLE,
        "episode_number": Scalar.WHOLE,
        "premier_date": Scalar.TIME,
    }
)
#: The fields of a video that are no plain text.
_VIDEO_TYPES: dict[str, Type] = {
    "player_allow_embed": Scalar.FLAG,
    "duration": Scalar.WHOLE,
    "expiration_date": Scalar.TIME,
    "publication_date": Scalar.TIME,
    "rating": Scalar.NUMBER,
    "view_count": Scalar.WHOLE,
    "family_friendly": Scalar.FLAG,
    "requires_subscription": Scalar.FLAG,
    "live": Scalar.FLAG,
    "tags": _TEXTS,
    "restriction": _TEXTS,
    "platform": _TEXTS,
    "prices": _DESCRIBED,
    "content_segments": _DESCRIBED,
    "ids": _DESCRIBED,
    "tv_show": _TV_SHOW,
}
_VIDEO = Struct({field.name: _VIDEO_TYPES.get(field.name, _TEXT) for field in fields(SitemapVideo)})

#: The columns of pages, in their order.
PAGE_TYPES: dict[str, Type] = {
    "url": _TEXT,
    "last_modified": Scalar.TIME,
    "last_modified_text": _TEXT,  # as written, where it has no zone
    "change_frequency": Scalar.FREQUENCY,
    "priority": Scalar.NUMBER,  # 0.5 where none is stated
    "news": _NEWS,
    "images": List(_IMAGE),
    "videos": List(_VIDEO),
    "alternates": List(_ALTERNATE),
    "problems": _TEXTS,  # codes
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column as Arrow has it: memoryviews of its buffers.

    Of texts, `data` is their UTF-8 bytes one after another; of flags, a bit for each, the lowest of a byte first; of
    frequencies, uint8; of numbers, float64; of all else, int64. `offsets`, of texts and of lists, are int64, one more
    than there are rows. `valid` is a bit for each row; None where all are. `children` are those of a struct, or the
    items of a list.
    """

    length: int
    data: memoryview | None = None
    offsets: memoryview | None = None
    valid: memoryview | None = None
    children: tuple[Column, ...] = ()


class Columns(NamedTuple):
    """Columns of the same length, by their names. One that is missing has no value in any row."""

    length: int
    columns: Mapping[str, Column]


def first_rows(parts: Iterable[Columns], count: int) -> Iterator[Columns]:
    """The first rows of columns of pages that come in parts."""
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
    """Since 1970 in UTC; what lies there in no year from 1 to 9999 is moved to the nearest."""
    found = ((date if date.tzinfo else date.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND
    return min(max(found, _EARLIEST), _LATEST)


def bits(flags: Iterable[bool]) -> memoryview:
    """A bit for each flag, the lowest of a byte first."""
    text = "".join("1" if flag else "0" for flag in flags)[::-1]
    return memoryview(int(text or "0", 2).to_bytes((len(text) + 7) // 8, "little"))


def flags_of(bits: memoryview, length: int) -> list[bool]:
    """As many flags, of which each is a bit."""
    found: list[bool] = []
    for byte in bits:
        found += _BITS[byte]
    return found[:length]


def column_of(kind: Type, values: Sequence[Any]) -> Column:
    """The column of values, of which None is none."""
    if kind is Scalar.NUMBER:  # what is too large for one is none
        values = [value if value is not None and isfinite(value) else None for value in values]
    valid = bits(value is not None for value in values) if None in values else None
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
        return Column(len(values), memoryview(b"".join(texts)), _offsets(texts), valid)
    return Column(len(values), _FIXED[kind](values), None, valid)


def sparse_column(kind: Type, length: int, values: Mapping[int, Any]) -> Column:
    """The column that has values in few rows."""
    return column_of(kind, list(map(values.get, range(length))))


def between(kind: Type, column: Column, start: int, end: int) -> Column:
    """The rows of a column from one to another. Its offsets begin with 0."""
    if start == 0 and end == column.length:
        return column
    valid = None if column.valid is None else _bits_between(column.valid, start, end)
    if isinstance(kind, Struct):
        parts = zip(kind.fields.values(), column.children, strict=True)
        return Column(end - start, valid=valid, children=tuple(between(*part, start, end) for part in parts))
    if column.offsets is None:
        assert column.data is not None
        data = _bits_between(column.data, start, end) if kind is Scalar.FLAG else column.data[start:end]
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
    return memoryview(array("q", accumulate((len(value) if value else 0 for value in values), initial=0)))


def _part(value: Any, name: str) -> Any:
    part = getattr(value, name)
    if name in _DESCRIBED_PARTS and not isinstance(value, _Described):
        return [_Described(text, [_Attribute(*pair) for pair in attributes.items()]) for text, attributes in part]
    return part


_DESCRIBED_PARTS = {name for name, kind in _VIDEO_TYPES.items() if kind is _DESCRIBED}
#: The whole numbers that a column can hold; others are moved to the nearest.
LEAST_WHOLE, MOST_WHOLE = -(1 << 63), (1 << 63) - 1
_FIXED: dict[Scalar, Callable[[Sequence[Any]], memoryview]] = {
    Scalar.TIME: lambda values: memoryview(array("q", [0 if v is None else microseconds(v) for v in values])),
    Scalar.FREQUENCY: lambda values: memoryview(bytes(255 if v is None else _NUMBER_OF[v] for v in values)),
    Scalar.NUMBER: lambda values: memoryview(array("d", [0 if v is None else float(v) for v in values])),
    Scalar.WHOLE: lambda values: memoryview(array("q", [min(max(v or 0, LEAST_WHOLE), MOST_WHOLE) for v in values])),
    Scalar.FLAG: lambda values: bits(map(bool, values)),
}


def _alternates(page: SitemapPage) -> list[_Alternate] | None:
    return [_Alternate(*pair) for pair in page.alternates] if page.alternates else None


#: What a page has in a column; the URL, `last_modified_text` and `problems` are said by others.
_OF_PAGE: dict[str, Callable[[SitemapPage], Any]] = {
    "last_modified": lambda page: page.last_modified,
    "change_frequency": lambda page: page.change_frequency,
    "priority": lambda page: page.priority,
    "news": lambda page: page.news_story,
    "images": lambda page: page.images,
    "videos": lambda page: page.videos,
    "alternates": _alternates,
}


class PureColumns:
    """Collects the columns that are wanted, page by page. The URL is always wanted."""

    def __init__(self, wanted: Collection[str] = PAGE_TYPES) -> None:
        self._seen: set[str] = set()
        self._urls: list[str] = []
        self._values: dict[str, dict[int, Any]] = {name: {} for name in PAGE_TYPES if name in wanted}

    @property
    def rows(self) -> int:
        """How many rows were collected."""
        return len(self._urls)

    def append(self, page: SitemapPage, last_modified_text: str, problems: Sequence[str] = ()) -> None:
        """One page, and the codes of its problems, unless its URL was there already."""
        row = self._add_url(page.url)
        if row < 0:
            return
        for name, values in self._values.items():
            if name in _OF_PAGE and (value := _OF_PAGE[name](page)) is not None:
                values[row] = value
        self._add_text(row, page.last_modified, last_modified_text)
        if problems and "problems" in self._values:
            self._values["problems"][row] = problems

    def _add_url(self, url: str) -> int:
        """The row of a URL that is new; -1 if it was there already."""
        if url in self._seen:
            return -1
        self._seen.add(url)
        self._urls.append(url)
        return len(self._urls) - 1

    def _add_text(self, row: int, date: datetime | None, text: str) -> None:
        """The text of a date, where it has no zone."""
        if date is not None and date.tzinfo is None and "last_modified_text" in self._values:
            self._values["last_modified_text"][row] = text

    def columns(self, goes_on: bool = False) -> Columns:
        """All that was collected since this was last asked; of URLs it knows from then on only if it `goes_on`."""
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
    """The columns of pages that are there, of each one row; `text_of` gives the text of a last modification."""
    pages = list(pages)
    values: dict[str, list[Any]] = {name: list(map(value, pages)) for name, value in _OF_PAGE.items() if name in wanted}
    values["url"] = [page.url for page in pages]
    if "last_modified_text" in wanted:
        naive = (page.last_modified is not None and page.last_modified.tzinfo is None for page in pages)
        values["last_modified_text"] = [
            text_of(page) if is_so else None for page, is_so in zip(pages, naive, strict=True)
        ]
    there = {name: of_all for name, of_all in values.items() if any(value is not None for value in of_all)}
    return Columns(len(pages), {name: column_of(PAGE_TYPES[name], of_all) for name, of_all in there.items()})
