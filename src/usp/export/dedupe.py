"""Keep the first row of each URL across a tree, in bounded memory (`--dedupe`).

A URL is identified by 128 bits of its BLAKE2b hash, with a random prefix, so that a site cannot foresee collisions. The
odds that two URLs are taken for one, and a page is lost, are about 2**-80 for 5 million URLs, and 2**-64 for a billion.

The first 16 bits of a hash choose a bucket. A bucket holds the other 112 bits of its hashes one after another, and is
searched as bytes. Once `max_in_memory` hashes are in memory (about 27 MB per million), they go to a temporary file
without a name, which disappears when it is closed or the process ends. The file has one bucket after another, so that
looking up a hash takes one read. When the memory is full again, a new file replaces the old one.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import accumulate, compress, pairwise
from tempfile import TemporaryFile
from typing import IO

from usp.export.batches import Batch
from usp.scan import Column

__all__ = ["FirstOfEach"]

_BUCKETS = 1 << 16
_MAX_IN_MEMORY = 2_000_000
_TAIL = 14  # bytes of a hash that its bucket holds
_AT_ONCE = 256  # buckets that are written together


class FirstOfEach:
    """Keep the first row of each URL. Use it in one thread at a time, and close it at the end."""

    def __init__(self, max_in_memory: int = _MAX_IN_MEMORY) -> None:
        self._hash = blake2b(os.urandom(16), digest_size=2 + _TAIL)
        self._max_in_memory = max_in_memory
        self._count = 0  # hashes in memory
        self._buckets = [b""] * _BUCKETS
        self._file: IO[bytes] | None = None
        self._starts = array("Q")  # where the buckets start in the file, and where the last one ends

    def batch(self, batch: Batch) -> Batch:
        """Drop the rows whose URL was in an earlier row; of images and the like, those whose page was.

        :raises OSError: if the temporary file cannot be written, or read.
        """
        columns = batch.columns.columns
        if (page_urls := columns.get("page_url")) is not None:
            kept = self._kept_items(page_urls, columns["page_position"], batch.kept)
        elif (urls := columns.get("url")) is None:
            return batch
        elif batch.kept is None:
            kept = bytes(self._firsts(_texts(urls)))
        else:
            firsts = iter(self._firsts(compress(_texts(urls), batch.kept)))
            kept = bytes(is_kept and next(firsts) for is_kept in batch.kept)
        return Batch(batch.columns, None if 0 not in kept else kept)

    def is_first(self, url: str) -> bool:
        """Return whether a URL is new, and note it.

        :raises OSError: as `batch` does.
        """
        return self._firsts((url.encode("utf-8", "surrogatepass"),))[0]

    def _kept_items(self, urls: Column, positions: Column, kept: bytes | None) -> bytes:
        """Return a byte for each row. Rows of one page are neighbours, and all of them are kept, or none is."""
        assert positions.data is not None
        rows = range(positions.length) if kept is None else list(compress(range(positions.length), kept))
        numbers = positions.data.tolist()
        first_rows: dict[int, int] = {}  # the position of a page -> its first row
        for row in rows:
            first_rows.setdefault(numbers[row], row)
        texts = list(_texts(urls))
        is_new = dict(zip(first_rows, self._firsts(texts[row] for row in first_rows.values()), strict=True))
        found = bytearray(positions.length)
        for row in rows:
            found[row] = is_new[numbers[row]]
        return bytes(found)

    def close(self) -> None:
        """Free the memory and the file."""
        self._buckets = []
        if self._file is not None:
            self._file.close()
            self._file = None

    def _firsts(self, urls: Iterable[bytes]) -> list[bool]:
        """Return for each URL whether it is new."""
        found: list[bool] = []
        buckets, start = self._buckets, self._hash.copy
        for url in urls:
            hashed = start()
            hashed.update(url)
            digest = hashed.digest()
            number = digest[0] << 8 | digest[1]
            tail = digest[2:]
            # That bytes of two neighbours look like a third hash is as unlikely as a collision.
            is_first = tail not in buckets[number] and not (self._file and tail in self._filed(number, number + 1))
            if is_first:
                if self._count >= self._max_in_memory:
                    self._put_into_file()
                buckets[number] += tail
                self._count += 1
            found.append(is_first)
        return found

    def _filed(self, first: int, end: int) -> bytes:
        """Read some buckets from the file."""
        if self._file is None:
            return b""
        start, size = self._starts[first], self._starts[end] - self._starts[first]
        self._file.seek(start)
        found = self._file.read(size)
        if len(found) != size:
            raise OSError("the temporary file of URLs was cut off")
        return found

    def _put_into_file(self) -> None:
        file = TemporaryFile(prefix="usp-", buffering=0)  # noqa: SIM115 - it stays open
        try:
            sizes: list[int] = []
            for first in range(0, _BUCKETS, _AT_ONCE):
                buckets = list(self._joined(first, first + _AT_ONCE))
                sizes += map(len, buckets)
                left = memoryview(b"".join(buckets))
                while left:
                    left = left[file.write(left) :]
        except BaseException:
            file.close()
            raise
        if self._file is not None:
            self._file.close()
        self._file, self._starts = file, array("Q", accumulate(sizes, initial=0))
        self._buckets[:] = [b""] * _BUCKETS
        self._count = 0

    def _joined(self, first: int, end: int) -> Iterator[bytes]:
        """Give some buckets, each from the file and from memory."""
        filed = self._filed(first, end)
        starts = self._starts[first : end + 1] or array("Q", bytes(8 * (end - first + 1)))
        for number, (start, stop) in enumerate(pairwise(starts), first):
            yield filed[start - starts[0] : stop - starts[0]] + self._buckets[number]


def _texts(column: Column) -> Iterator[bytes]:
    assert column.offsets is not None
    data = bytes(column.data or b"")
    return (data[start:end] for start, end in pairwise(column.offsets.tolist()))
