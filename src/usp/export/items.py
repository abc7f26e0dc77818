"""Tables of what pages have lists of: a row for each image, video or alternate, made from columns of pages."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable
from itertools import accumulate, chain, pairwise, repeat
from operator import mul, sub

from usp.export.batches import repeated_column
from usp.export.schema import SOURCE
from usp.scan import PAGE_TYPES, Column, Columns, List, Struct

__all__ = ["ITEM_NEEDS", "item_columns", "spread"]

#: The columns of pages that every table of items is made from, besides its list.
ITEM_NEEDS = frozenset({"url", "sitemap_url", "position"})


def item_columns(table: str, pages: Columns, wanted: Collection[str]) -> tuple[Columns, list[int]]:
    """Return the items of pages as columns, and the number of items of each page.

    `page_url` and `page_position` are always there, because `--dedupe` needs them.
    """
    listed = pages.columns.get(table)
    if listed is None:
        return Columns(0, {}), [0] * pages.length
    kind = PAGE_TYPES[table]
    assert listed.offsets is not None
    assert isinstance(kind, List)
    assert isinstance(kind.item, Struct)
    ends = listed.offsets.tolist()
    counts = list(map(sub, ends[1:], ends))
    (items,) = listed.children
    length = items.length
    fields = zip(kind.item.fields, items.children, strict=True)
    found = {
        "page_url": _spread_texts(pages.columns["url"], counts),
        "page_position": _integers(spread(pages.columns["position"].data or (), counts)),
        **{name: column for name, column in fields if name in wanted},
    }
    if "position" in wanted:
        found["position"] = _integers(chain.from_iterable(map(range, repeat(1), (count + 1 for count in counts))))
    for name in (SOURCE, "sitemap_url"):  # the same for all pages of a batch
        if name in wanted and (column := pages.columns.get(name)) is not None:
            assert column.offsets is not None
            assert column.data is not None
            found[name] = repeated_column(bytes(column.data[: column.offsets[1]]), length)
    return Columns(length, found), counts


def spread(values: Iterable[int], counts: Iterable[int]) -> Iterable[int]:
    """Repeat each value as often as its count says."""
    return chain.from_iterable(map(repeat, values, counts))


def _integers(values: Iterable[int]) -> Column:
    data = array("q", values)
    return Column(len(data), memoryview(data))


def _spread_texts(column: Column, counts: list[int]) -> Column:
    assert column.offsets is not None
    data = bytes(column.data or b"")
    texts = [data[start:end] for start, end in pairwise(column.offsets.tolist())]
    offsets = array("q", accumulate(spread(map(len, texts), counts), initial=0))
    return Column(len(offsets) - 1, memoryview(b"".join(map(mul, texts, counts))), memoryview(offsets))
