"""The first of each URL across a tree, in bounded memory.

A URL is known by 128 bits of its BLAKE2b hash, with a random text before it, so that nobody can foresee them. Two URLs
are taken for one, and a page is lost, with odds of some 2**-80 in 5 million URLs, and 2**-64 in a thousand million.

The first 16 bits say on which shelf a hash is; there the other 112 stand one after another, and are looked for as bytes
are. Once `most` hashes are in memory (some 27 MB for a million), they go to one temporary file, which has no name and
goes when it is closed, or the process ends. It has the shelves one after another too: a hash is looked for in one read.
When the memory is full again, a new file takes the place of the old one.
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

_SHELVES = 1 << 16
_MOST = 2_000_000
_TAIL = 14  # bytes of a hash that stand on its shelf
_AT_ONCE = 256  # shelves that are written together


class FirstOfEach:
    """Keeps the first row of each URL. For one thread at a time; to be closed when all is done."""

    def __init__(self, most: int = _MOST) -> None:
        self._hash = blake2b(os.urandom(16), digest_size=2 + _TAIL)
        self._most = most
        self._count = 0  # of the hashes in memory
        self._shelves = [b""] * _SHELVES
        self._file: IO[bytes] | None = None
        self._starts = array("Q")  # where the shelves are in the file, and where the last one ends

    def batch(self, batch: Batch) -> Batch:
        """The rows that were kept, but for those whose URL was in an earlier one.

        :raises OSError: if the temporary file cannot be written, or read.
        """
        urls = batch.columns.columns.get("url")
        if urls is None:
            return batch
        texts = _texts(urls)
        if batch.kept is None:
            kept = bytes(self._firsts(texts))
        else:
            firsts = iter(self._firsts(compress(texts, batch.kept)))
            kept = bytes(is_kept and next(firsts) for is_kept in batch.kept)
        return Batch(batch.columns, None if 0 not in kept else kept)

    def close(self) -> None:
        """Give back the memory and the file."""
        self._shelves = []
        if self._file is not None:
            self._file.close()
            self._file = None

    def _firsts(self, urls: Iterable[bytes]) -> list[bool]:
        """Of each URL, whether it is there for the first time."""
        found: list[bool] = []
        shelves, start = self._shelves, self._hash.copy
        for url in urls:
            hashed = start()
            hashed.update(url)
            digest = hashed.digest()
            number = digest[0] << 8 | digest[1]
            tail = digest[2:]
            # That bytes of two neighbours look like a third is as unlikely as that two are the same.
            is_first = tail not in shelves[number] and not (self._file and tail in self._filed(number, number + 1))
            if is_first:
                if self._count >= self._most:
                    self._put_into_file()
                shelves[number] += tail
                self._count += 1
            found.append(is_first)
        return found

    def _filed(self, first: int, end: int) -> bytes:
        """What the file has of some shelves."""
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
            for first in range(0, _SHELVES, _AT_ONCE):
                shelves = list(self._joined(first, first + _AT_ONCE))
                sizes += map(len, shelves)
                left = memoryview(b"".join(shelves))
                while left:
                    left = left[file.write(left) :]
        except BaseException:
            file.close()
            raise
        if self._file is not None:
            self._file.close()
        self._file, self._starts = file, array("Q", accumulate(sizes, initial=0))
        self._shelves[:] = [b""] * _SHELVES
        self._count = 0

    def _joined(self, first: int, end: int) -> Iterator[bytes]:
        """What the file and the memory have of each of some shelves."""
        filed = self._filed(first, end)
        starts = self._starts[first : end + 1] or array("Q", bytes(8 * (end - first + 1)))
        for number, (start, stop) in enumerate(pairwise(starts), first):
            yield filed[start - starts[0] : stop - starts[0]] + self._shelves[number]


def _texts(column: Column) -> Iterator[bytes]:
    assert column.offsets is not None
    data = bytes(column.data or b"")
    return (data[start:end] for start, end in pairwise(column.offsets.tolist()))
