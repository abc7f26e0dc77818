"""The bodies of a tree's documents: in memory up to a limit, the rest in one temporary file without a name.

A web client receives a body into an `ArrivingBody`, piece by piece. All bodies on their way share one budget of memory.
When they exceed it, the largest moves to the file, so memory does not depend on how many bodies arrive at once. The
store also counts what is transferred, and says when the tree has had enough.

After a fork, both processes can read what is in the file, and neither writes to it any more: a store opens a new file.
"""

from __future__ import annotations

import errno
import os
import threading
from bisect import bisect
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import IO, Protocol
from weakref import WeakSet, finalize

from usp.exceptions import DocumentReadError
from usp.inflate import PIECE_BYTES, split
from usp.limits import ARRIVING_BYTES, MEMORY_BYTES
from usp.logs import logger

__all__ = ["ArrivingBody", "Body", "DocumentStore", "InFile", "InMemory"]

log = logger(__name__)

_LEAST_GAP = 1 << 16  # bytes of a gap in the file that is filled with a part of a body
_HEAD_BYTES = 4  # enough to recognize compressed data

# One lock for all stores, so that a fork can wait until no thread is writing. Reentrant: the garbage collector may run
# any code anywhere.
_LOCK = threading.RLock()
_forks = 0  # of this process and those that it was forked from


def _before_fork() -> None:
    global _forks
    _LOCK.acquire()
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)


class Body(Protocol):
    """The bytes of a document, in memory or in a file."""

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes in pieces."""


class InMemory:
    """A body in memory. When it is garbage-collected, it appends its size to `freed`."""

    __slots__ = ("_data", "_freed")

    def __init__(self, data: bytes, freed: deque[int] | None = None) -> None:
        self._data = data
        self._freed = freed

    def __del__(self) -> None:
        # This may run at any time in any thread. Appending needs no lock.
        if self._freed is not None:
            self._freed.append(len(self._data))

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes, in one piece unless they are many."""
        return split(self._data)


class InFile:
    """A body in the temporary file, all of it or, if the disk is full, all but its last part."""

    __slots__ = ("_extents", "_rest")

    def __init__(self, extents: list[Extent], rest: InMemory | None = None) -> None:
        self._extents = extents
        self._rest = rest

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes in pieces. Raises `DocumentReadError` if they cannot be read."""
        for extent in self._extents:
            for at in range(0, extent.size, PIECE_BYTES):
                yield extent.file.read(extent.start + at, min(PIECE_BYTES, extent.size - at))
        if self._rest is not None:
            yield from self._rest.pieces()


class Extent:
    """Bytes in the temporary file. When it is garbage-collected, the file can use their place again."""

    __slots__ = ("file", "size", "start")

    def __init__(self, file: TemporaryFile, start: int, size: int) -> None:
        self.file = file
        self.start = start
        self.size = size

    def __del__(self) -> None:
        self.file.freed.append((self.start, self.size))  # as in InMemory


class TemporaryFile:
    """A file that bodies are written to. It is closed when nothing refers to it any more."""

    __slots__ = ("__weakref__", "_end", "_file", "_forks", "_gaps", "_process", "freed")

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._process = os.getpid()
        self._forks = _forks
        self._end = 0
        self._gaps: list[tuple[int, int]] = []  # offsets and sizes, in order; no two of them touch
        self.freed: deque[tuple[int, int]] = deque()
        # Not __del__: in a reference cycle, Python would collect the file first and warn that it was not closed.
        finalize(self, _close, file)

    @property
    def is_ours(self) -> bool:
        """Whether this process alone uses the file. After a fork, another one may read what this one has freed."""
        return self._forks == _forks and self._process == os.getpid()

    def write(self, data: bytes | bytearray) -> list[Extent]:
        """Write data into gaps and to the end. Raises OSError; nothing of the data is kept then."""
        self._reclaim()
        places: list[tuple[int, int]] = []
        try:
            with memoryview(data) as view:
                done = 0
                while done < len(view):
                    start, size = self._place(len(view) - done)
                    places.append((start, size))
                    self._write_at(start, view, done, done + size)
                    done += size
            self._file.flush()
        except OSError:
            self.freed.extend(places)
            self._reclaim()
            raise
        return [Extent(self, start, size) for start, size in places]

    def _place(self, size: int) -> tuple[int, int]:
        """Return the offset and the size of a place for data, or for the first part of it."""
        for number, (start, room) in enumerate(self._gaps):
            if room > size:
                self._gaps[number] = start + size, room - size
                return start, size
            if room == size or room >= _LEAST_GAP:
                del self._gaps[number]
                return start, room
        start, self._end = self._end, self._end + size
        return start, size

    def _write_at(self, start: int, view: memoryview, done: int, end: int) -> None:
        self._file.seek(start)
        while done < end:
            with view[done:end] as part:  # released: a bytearray cannot grow while an error in a log refers to it
                written = self._file.write(part)
            if not written:
                raise OSError(errno.EIO, "nothing more can be written")
            done += written

    def _reclaim(self) -> None:
        """Turn what was freed into gaps, and cut off a gap at the end of the file."""
        if not self.freed:
            return
        gaps = self._gaps
        while self.freed:
            start, size = self.freed.popleft()
            number = bisect(gaps, (start, size))
            if number < len(gaps) and start + size == gaps[number][0]:
                size += gaps.pop(number)[1]
            if number and sum(gaps[number - 1]) == start:
                number -= 1
                start, before = gaps.pop(number)
                size += before
            gaps.insert(number, (start, size))
        if sum(gaps[-1]) == self._end:
            self._end = gaps.pop()[0]
            with suppress(OSError):
                self._file.truncate(self._end)

    def read(self, start: int, size: int) -> bytes:
        """Return the bytes at an offset. Raises `DocumentReadError` if they cannot be read."""
        data = b""
        try:
            while len(data) < size and (more := self._read_some(start + len(data), size - len(data))):
                data += more
        except (OSError, ValueError) as error:
            raise DocumentReadError(f"{_CANNOT_READ}: {error}") from error
        if len(data) < size:
            raise DocumentReadError(f"{_CANNOT_READ}: it was cut short")
        return data

    def _read_some(self, start: int, size: int) -> bytes:
        if hasattr(os, "pread"):  # it does not move the file position, which forked processes share
            return os.pread(self._file.fileno(), size, start)
        with _LOCK:
            self._file.seek(start)
            return self._file.read(size)


_CANNOT_READ = "A sitemap cannot be read back from the temporary file of its tree; fetch the tree again"


def _close(file: IO[bytes]) -> None:
    with suppress(OSError):
        file.close()


def _open_unnamed_file() -> IO[bytes]:
    import tempfile  # slow to import, and seldom needed

    return tempfile.TemporaryFile(prefix="usp-", buffering=0)


class ArrivingBody:
    """A body while it arrives, in one thread. Without a store, it stays in memory."""

    __slots__ = ("__weakref__", "_body", "_data", "_extents", "_store", "head", "is_cut", "size")

    def __init__(self, store: DocumentStore | None = None) -> None:
        self._store = store
        self._data: bytes | bytearray = b""
        self._extents: list[Extent] = []  # before the data
        self._body: Body | None = None  # once it has ended
        self.head = b""  # the first few bytes
        self.is_cut = False  # because the tree has transferred more than it may
        self.size = 0

    @property
    def is_stored(self) -> bool:
        """Whether the body belongs to the store of a tree."""
        return self._store is not None

    def append(self, piece: bytes) -> bool:
        """Keep a piece. Return False if the tree has transferred more than it may."""
        if self.size < _HEAD_BYTES:
            self.head = (self.head + piece)[:_HEAD_BYTES]
        self.size += len(piece)
        if self._store is None:
            self._hold(piece)
            return True
        self.is_cut = not self._store._receive(self, piece)
        return not self.is_cut

    def finish(self) -> Body:
        """End the body, and return it."""
        if self._body is None:
            self._body = InMemory(bytes(self._data)) if self._store is None else self._store._finish(self)
            self._data, self._extents = b"", []
        return self._body

    def data(self) -> bytes:
        """End the body, and return all its bytes."""
        return b"".join(self.finish().pieces())

    def _hold(self, piece: bytes) -> None:
        """Keep a piece in memory. Most bodies are one piece, which is not copied."""
        if not self._data:
            self._data = piece
        elif isinstance(self._data, bytearray):
            self._data += piece
        else:
            self._data = bytearray(self._data)
            self._data += piece


class DocumentStore:
    """Holds the bodies of one tree: in memory up to `memory_bytes`, the rest in one temporary file.

    Bodies on their way have `ARRIVING_BYTES` of memory, or `memory_bytes` if that is less. If the file cannot be
    created or written, bodies stay in memory and a warning is logged.

    :param max_total_bytes: how many bytes a tree may transfer; None for any number.
    """

    def __init__(
        self,
        memory_bytes: int = MEMORY_BYTES,
        open_file: Callable[[], IO[bytes]] = _open_unnamed_file,
        *,
        max_total_bytes: int | None = None,
    ) -> None:
        self._memory_bytes = memory_bytes
        self._open_file = open_file
        self._max_total_bytes = max_total_bytes
        self._transferred = 0
        self._in_memory = 0
        self._freed: deque[int] = deque()
        self._arriving: WeakSet[ArrivingBody] = WeakSet()
        self._arriving_bytes = 0  # in memory; it may count bodies that are gone
        self._file: TemporaryFile | None = None
        self._can_write = True

    def keep(self, data: bytes) -> Body:
        """Store a body."""
        with _LOCK:
            while self._freed:
                self._in_memory -= self._freed.popleft()
            if self._in_memory + len(data) > self._memory_bytes and (extents := self._write(data)) is not None:
                return InFile(extents)
            self._in_memory += len(data)
            return InMemory(data, self._freed)

    def count(self, size: int) -> None:
        """Count bytes that were transferred and not kept."""
        with _LOCK:
            self._transferred += size

    def arriving(self) -> ArrivingBody:
        """Return an empty body, to receive one."""
        return ArrivingBody(self)

    def _receive(self, body: ArrivingBody, piece: bytes) -> bool:
        """Keep a piece of a body. Return False if the tree has transferred more than it may."""
        with _LOCK:
            if body.size == len(piece):
                self._arriving.add(body)
            body._hold(piece)
            self._transferred += len(piece)
            self._arriving_bytes += len(piece)
            if self._arriving_bytes > min(ARRIVING_BYTES, self._memory_bytes) and self._can_write:
                self._spill()
            return self._max_total_bytes is None or self._transferred <= self._max_total_bytes

    def _spill(self) -> None:
        """Move the largest bodies on their way to the file, until the others fit into memory."""
        bodies = list(self._arriving)
        self._arriving_bytes = sum(len(body._data) for body in bodies)
        while self._arriving_bytes > min(ARRIVING_BYTES, self._memory_bytes):
            largest = max(bodies, key=lambda body: len(body._data))
            if (extents := self._write(largest._data)) is None:
                return
            largest._extents += extents
            self._arriving_bytes -= len(largest._data)
            largest._data = b""

    def _finish(self, body: ArrivingBody) -> Body:
        """Take a body that has arrived."""
        with _LOCK:
            self._arriving.discard(body)
            self._arriving_bytes -= len(body._data)
            if not body._extents:
                return self.keep(bytes(body._data))
            if (extents := self._write(body._data)) is not None:
                return InFile(body._extents + extents)
            self._in_memory += len(body._data)
            return InFile(body._extents, InMemory(bytes(body._data), self._freed))

    def _write(self, data: bytes | bytearray) -> list[Extent] | None:
        """Write data to the file. Return None if that is not possible."""
        if not self._can_write:
            return None
        try:
            if self._file is None or not self._file.is_ours:
                self._file = TemporaryFile(self._open_file())
            return self._file.write(data)
        except OSError as error:
            self._can_write = False
            log.warning(
                "The temporary file cannot be written (%s), so sitemaps stay in memory beyond the limit of %d MiB."
                " Set the environment variable TMPDIR to a folder with free space.",
                error,
                self._memory_bytes >> 20,
            )
            return None
