"""Batches: the pages of a sitemap as columns, or a part of them if the sitemap is long."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import accumulate, chain, islice, repeat
from types import MappingProxyType
from typing import Any

from usp.export.schema import SOURCE, type_name
from usp.objects.page import Pages, SitemapPage, last_modified_text
from usp.objects.sitemap import AbstractSitemap, InvalidSitemap
from usp.origins import named_url, normalized_host
from usp.scan import PAGE_TYPES, URL_PARTS, Column, Columns, List, Scalar, Struct, Type, columns_of_all, split_urls

__all__ = [
    "Batch",
    "FirstPlaces",
    "SitemapPages",
    "joined_columns",
    "page_columns",
    "pages_of",
    "positions",
    "repeated_column",
    "repeated_numbers",
    "repeated_texts",
    "url_parts",
]

_MANY = 1 << 16  # rows; few sitemaps have more
_MANY_PAGES = 1 << 13  # page objects at a time; each takes about 1 kB


@dataclass(frozen=True, slots=True)
class SitemapPages:
    """The pages of a sitemap, and what their rows say about it."""

    url: str
    type: str
    pages: Sequence[SitemapPage]
    source: str | None = None
    name: str = ""  #: what rows say instead of a URL that was made up for a file


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of a table. `kept` has a byte for each row, 1 to keep it, 0 to drop it; None keeps all."""

    columns: Columns
    kept: bytes | None = None

    @property
    def kept_count(self) -> int:
        """The number of rows to keep."""
        return self.columns.length if self.kept is None else self.kept.count(1)


class FirstPlaces:
    """Finds the first place of each sitemap in a tree, by URL.

    Several indexes may list the same sitemap. A table has its pages once: a few indexes that list each other would
    otherwise make millions of rows of one sitemap.
    """

    def __init__(self) -> None:
        self._urls: set[str] = set()

    def is_first(self, sitemap: AbstractSitemap) -> bool:
        """Return whether no sitemap before this one has its URL. Call it once for each place, in tree order."""
        if isinstance(sitemap, InvalidSitemap) or sitemap.parser is None:
            return True  # the sitemap itself may follow at another place; one without a document was made by hand
        known = len(self._urls)
        self._urls.add(sitemap.url)
        return len(self._urls) > known


def pages_of(
    sitemap: AbstractSitemap, source: str | None = None, names: Mapping[str, str] = MappingProxyType({})
) -> SitemapPages:
    """Return the pages of a sitemap.

    :param source: the name of the source that its tree is from.
    :param names: the names of files, by the URLs of their sitemaps.
    """
    pages = sitemap.pages
    listed = pages if isinstance(pages, Pages) else list(pages)
    return SitemapPages(sitemap.url, type_name(type(sitemap)), listed, source, named_url(sitemap.url, names))


def page_columns(sitemap: SitemapPages, wanted: Iterable[str]) -> Iterator[Columns]:
    """Give the pages of a sitemap as columns, many rows at a time: the wanted columns, and always the URL."""
    wanted = frozenset(wanted)
    listed: dict[str, Callable[[int, int], Column]] = {
        "sitemap_url": partial(_repeated, sitemap.name or sitemap.url),
        "sitemap_type": partial(_repeated, sitemap.type),
        "position": _positions,
    }
    if sitemap.source is not None:
        listed[SOURCE] = partial(_repeated, sitemap.source)
    first = 0
    for length, read in _columns_of(sitemap.pages, wanted):
        added = {name: make(length, first) for name, make in listed.items() if name in wanted}
        yield Columns(length, {**read, **added, **(url_parts(read["url"], wanted) if length else {})})
        first += length


def url_parts(urls: Column, wanted: Iterable[str]) -> dict[str, Column]:
    """Return the wanted columns that have parts of URLs, such as their host."""
    parts = frozenset(URL_PARTS).intersection(wanted)
    return split_urls(urls, parts, normalized_host) if parts else {}


def _columns_of(pages: Sequence[SitemapPage], wanted: frozenset[str]) -> Iterator[Columns]:
    if isinstance(pages, Pages) and pages.columns is not None:
        yield from pages.columns(wanted & PAGE_TYPES.keys())
        return
    rest = iter(pages)
    while some := list(islice(rest, _MANY_PAGES)):
        yield columns_of_all(some, last_modified_text, wanted)


def _repeated(text: str, length: int, _first: int) -> Column:
    return repeated_column(text.encode("utf-8", "replace"), length)


def repeated_column(text: bytes, length: int) -> Column:
    """Return a column that has the same text in every row."""
    return Column(length, memoryview(text * length), _multiples(len(text), length + 1))


def repeated_texts(texts: Sequence[str], lengths: Sequence[int]) -> Column:
    """Return a column that has each text in as many rows as `lengths` says."""
    encoded = [text.encode("utf-8", "replace") for text in texts]
    if len(texts) == 1:
        return repeated_column(encoded[0], lengths[0])
    data = memoryview(b"".join([text * length for text, length in zip(encoded, lengths, strict=True)]))
    sizes = chain.from_iterable(repeat(len(text), length) for text, length in zip(encoded, lengths, strict=True))
    offsets = memoryview(array("q", accumulate(sizes, initial=0)))
    return Column(len(offsets) - 1, data, offsets)


def repeated_numbers(numbers: Sequence[int], lengths: Sequence[int]) -> Column:
    """Return a column that has each integer in as many rows as `lengths` says."""
    found = array("q")
    for number, length in zip(numbers, lengths, strict=True):
        found += array("q", [number]) * length
    return Column(len(found), memoryview(found))


def positions(firsts: Sequence[int], lengths: Sequence[int]) -> Column:
    """Return a column that counts the pages of sitemaps from 1. `firsts` says how many came in earlier columns."""
    if len(firsts) == 1:
        return _positions(lengths[0], firsts[0])
    counted = (range(first + 1, first + length + 1) for first, length in zip(firsts, lengths, strict=True))
    found = memoryview(array("q", chain.from_iterable(counted)))
    return Column(len(found), found)


def _positions(length: int, first: int) -> Column:
    """Count the pages of a sitemap from 1, across its parts."""
    found = memoryview(array("q", range(first + 1, first + length + 1))) if first else _multiples(1, length + 1)[1:]
    return Column(length, found)


def _multiples(step: int, count: int) -> memoryview:
    """Return the first multiples of a number, from 0."""
    return _first_multiples(step)[:count] if count <= _MANY else memoryview(array("q", _numbers(step, count)))


@lru_cache(16)
def _first_multiples(step: int) -> memoryview:
    return memoryview(array("q", _numbers(step, _MANY)))


def _numbers(step: int, count: int) -> Iterable[int]:
    return range(0, step * count, step) if step else repeat(0, count)


# Columns of several sitemaps in one


def joined_columns(types: Mapping[str, Type], parts: Sequence[Columns]) -> Columns:
    """Return the rows of all parts, in order. A column that some parts lack is null in their rows.

    Arrow arrays of a few rows cost more than the rows, so small sitemaps are joined first.
    """
    if len(parts) == 1:
        return parts[0]
    lengths = [part.length for part in parts]
    names = dict.fromkeys(chain.from_iterable(part.columns for part in parts))
    found = {name: _joined(types[name], [part.columns.get(name) for part in parts], lengths) for name in names}
    return Columns(sum(lengths), found)


def _joined(kind: Type, columns: Sequence[Column | None], lengths: Sequence[int]) -> Column:
    total = sum(lengths)
    valid = None
    if any(
        length and (column is None or column.valid is not None) for column, length in zip(columns, lengths, strict=True)
    ):
        masks = [
            0 if column is None else (1 << length) - 1 if column.valid is None else _number(column.valid, length)
            for column, length in zip(columns, lengths, strict=True)
        ]
        valid = _joined_bits(masks, lengths)
    if isinstance(kind, Struct):
        children = (
            _joined(part, [None if column is None else column.children[number] for column in columns], lengths)
            for number, part in enumerate(kind.fields.values())
        )
        return Column(total, valid=valid, children=tuple(children))
    if kind is Scalar.TEXT or isinstance(kind, List):
        return _joined_texts_or_lists(kind, columns, lengths, valid)
    if kind is Scalar.BOOLEAN:
        flags = [0 if column is None else _number(_data(column), column.length) for column in columns]
        return Column(total, _joined_bits(flags, lengths), None, valid)
    width = 1 if kind is Scalar.FREQUENCY else 8
    data = [
        bytes(width * length) if column is None else _data(column)
        for column, length in zip(columns, lengths, strict=True)
    ]
    joined: memoryview[Any] = memoryview(b"".join(data))
    if kind is not Scalar.FREQUENCY:
        joined = joined.cast("d") if kind is Scalar.NUMBER else joined.cast("q")
    return Column(total, joined, None, valid)


def _joined_texts_or_lists(
    kind: Type, columns: Sequence[Column | None], lengths: Sequence[int], valid: memoryview | None
) -> Column:
    offsets = array("q", [0])
    sizes = []
    start = 0
    for column, length in zip(columns, lengths, strict=True):
        if column is None:
            offsets.extend(repeat(start, length))
            sizes.append(0)
            continue
        assert column.offsets is not None
        ends = column.offsets[1 : length + 1].tolist()
        offsets.extend([start + end for end in ends] if start else ends)
        sizes.append(ends[-1] if ends else 0)
        start += sizes[-1]
    if isinstance(kind, List):
        items = [None if column is None else column.children[0] for column in columns]
        return Column(len(offsets) - 1, None, memoryview(offsets), valid, (_joined(kind.item, items, sizes),))
    texts = [b"" if column is None else _data(column)[:size] for column, size in zip(columns, sizes, strict=True)]
    return Column(len(offsets) - 1, memoryview(b"".join(texts)), memoryview(offsets), valid)


def _data(column: Column) -> memoryview:
    assert column.data is not None
    return column.data


def _number(bits: memoryview, length: int) -> int:
    """Return the first `length` bits as a number."""
    return int.from_bytes(bits, "little") & ((1 << length) - 1)


def _joined_bits(numbers: Sequence[int], lengths: Sequence[int]) -> memoryview:
    """Return bits one after another, with `lengths` of each number."""
    found = at = 0
    for number, length in zip(numbers, lengths, strict=True):
        found |= number << at
        at += length
    return memoryview(found.to_bytes((at + 7) // 8, "little"))
