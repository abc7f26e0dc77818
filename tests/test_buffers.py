"""The memory of columns: used again for the next document, but never while somebody holds it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib import import_module

import pytest

from scanners import URL, as_rows, columns_of
from support import SITEMAP_XMLNS
from usp.compiled import IS_COMPILED
from usp.documents import Document
from usp.scan.columns import Columns
from usp.scan.plain import READERS

pytestmark = [
    pytest.mark.compare,
    pytest.mark.skipif(not IS_COMPILED, reason="the compiled modules are not in use"),
]
MAX_SPARE_BYTES = 1 << 24


def document(name: str, pages: int = 5_000) -> bytes:
    """Return a sitemap whose values depend on a letter."""
    entry = (
        f"<url><loc>http://h/{name * 50}/{{}}</loc><lastmod>2024-05-{ord(name) - 87}</lastmod><priority>0.5</priority>"
        f"<image:image><image:loc>http://h/{{}}.png</image:loc><image:title>{name * 9}</image:title></image:image>"
        "</url>"
    )
    return f"<urlset {SITEMAP_XMLNS}>{''.join(entry.format(i, i) for i in range(pages))}</urlset>".encode()


def read(data: bytes) -> list[Columns]:
    return columns_of(Document(URL, data))


def spare_sizes() -> list[int]:
    found: list[int] = import_module("usp.scan._buffers").spare_sizes()
    return found


def test_memory_is_used_again_but_not_while_it_is_in_use() -> None:
    """Columns keep their values while others are read. Freed memory is kept for the next document, at most 16 MiB."""
    kept = [read(document(name)) for name in "abc"]
    rows = [as_rows(parts) for parts in kept]
    for name in "defghij":
        assert sum(part.length for part in read(document(name))) == 5_000
    assert [as_rows(parts) for parts in kept] == rows
    del kept, rows
    assert spare_sizes()
    assert sum(spare_sizes()) <= MAX_SPARE_BYTES


def test_a_part_of_a_column_keeps_its_memory() -> None:
    """A view of a column is valid as long as somebody holds it, even if the columns are gone."""
    (columns,) = read(document("a"))
    urls = columns.columns["url"].data
    assert urls is not None
    first = urls[:70]
    expected = bytes(first)
    del columns, urls
    for name in "bcdefg":
        read(document(name))
    assert bytes(first) == expected


def test_spare_memory_is_counted_in_full() -> None:
    """A block that is larger than what it is used for is not counted as a smaller one when it is free again."""
    readers = [READERS.pages(str, lambda *_: None) for _ in range(2)]
    for reader in readers:
        for i in range(70_000):
            reader.is_new(str(i))
    del reader, readers
    before = sum(spare_sizes())
    readers = [READERS.pages(str, lambda *_: None) for _ in range(4)]  # they take what fits best, then larger blocks
    assert sum(spare_sizes()) < before
    del readers
    assert sum(spare_sizes()) >= before


def test_threads_do_not_share_memory() -> None:
    """Documents that are read in several threads at once have the values of documents that are read in turn."""
    letters = "abcdefghij" * 3
    expected = {name: as_rows(read(document(name, 1_500))) for name in set(letters)}
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda name: read(document(name, 1_500)), letters))
    for name, parts in zip(letters, found, strict=True):
        assert as_rows(parts) == expected[name]
    del found, parts
    assert sum(spare_sizes()) <= MAX_SPARE_BYTES
