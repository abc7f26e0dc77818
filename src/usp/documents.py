"""The response to a request for a URL: a `Document` or a `Failure`. A driver passes it to the walk.

A `Document` keeps its body as it was transferred, possibly compressed, and inflates it again for each read. A
`DocumentStore` holds the bodies of one tree: in memory up to a limit, the rest in one temporary file without a name.
"""

from __future__ import annotations

import errno
import os
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from threading import get_ident
from typing import IO, TYPE_CHECKING, Protocol, TypeVar
from weakref import finalize

from usp.exceptions import DocumentReadError
from usp.inflate import (
    GZIP_MAGIC,
    PIECE_BYTES,
    Budget,
    Engine,
    gunzip_in_one_step,
    inflated,
    may_be_compressed,
    split,
    with_fastest_engine,
)
from usp.limits import MAX_SITEMAP_BYTES, MEMORY_BYTES
from usp.logs import logger

if TYPE_CHECKING:
    from usp.objects.outcome import Cause
    from usp.objects.transport import Transport

__all__ = ["Document", "DocumentStore", "Failure"]

log = logger(__name__)

_MAX_PIECE_BYTES = 16 * 1024 * 1024  # of a text that is in memory already; parsers copy pieces, so they have a limit
_CHARSET = re.compile(r"""charset\s*+=\s*+["']?\s*+([A-Za-z0-9._:-]{1,40})""", re.IGNORECASE)

Note = Callable[[str], None]
Result = TypeVar("Result")


class Document:
    """The body of a response, as it was transferred.

    :param url: the URL after redirects.
    :param data: the body, possibly compressed.
    :param content_type: the Content-Type header.
    :param content_encoding: the compression that the client has not removed, from the Content-Encoding header.
    :param transport_problems: codes of problems that the client found.
    :param store: where to keep the body. None keeps it in memory.
    :param limit: the number of inflated bytes to read; the rest is dropped.
    :param transport: how the document was fetched, if that is known.
    """

    __slots__ = (
        "_ahead",
        "_body",
        "_engine",
        "_inflated_size",
        "_is_cut",
        "_limit",
        "_may_be_compressed",
        "_trial",
        "content_encoding",
        "content_type",
        "size",
        "transport",
        "transport_problems",
        "url",
    )

    def __init__(
        self,
        url: str,
        data: bytes,
        content_type: str | None = None,
        content_encoding: str | None = None,
        transport_problems: tuple[str, ...] = (),
        *,
        store: DocumentStore | None = None,
        limit: int = MAX_SITEMAP_BYTES,
        transport: Transport | None = None,
    ) -> None:
        self.url = url
        self.transport = transport
        self.size = len(data)  # as transferred
        self.content_type = content_type
        self.content_encoding = content_encoding
        self.transport_problems = transport_problems
        if not data.startswith(GZIP_MAGIC) and not content_encoding and url.partition("?")[0].lower().endswith(".gz"):
            self.transport_problems += ("T803",)
        self._limit = limit
        self._may_be_compressed = may_be_compressed(data, content_encoding)
        self._body: Body = InMemory(data) if store is None else store.keep(data)
        self._engine: Engine | None = None  # has inflated the document to its end
        self._is_cut = False
        self._trial: tuple[int, Engine] | None = None  # a thread, and the engine that it tries now
        self._inflated_size: int | None = None  # once somebody has read to the end
        self._ahead: bytes | None = None  # the inflated text, for the next read

    @property
    def may_be_compressed(self) -> bool:
        """Whether reading the document may inflate it."""
        return self._may_be_compressed

    @property
    def is_cut(self) -> bool:
        """Whether the inflated document is larger than the limit. It is known after `first_read`."""
        return self._is_cut

    @property
    def inflated_size(self) -> int | None:
        """The number of inflated bytes, up to the limit. None if the document is compressed and was never read."""
        return self._inflated_size if self._may_be_compressed else min(self.size, self._limit)

    @property
    def charset(self) -> str | None:
        """The charset in the Content-Type, if any."""
        match = _CHARSET.search(self.content_type or "")
        return match[1] if match else None

    def pieces(self, note: Note) -> Iterator[bytes]:
        """Yield the inflated body in pieces, and call `note(code)` for each problem of the transfer and of the data.

        You can call it as often as you like, from several threads at once. The result is always the same.
        """
        for code in self.transport_problems:
            note(code)
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            yield from split(ahead, _MAX_PIECE_BYTES)
            return
        if not self._may_be_compressed:
            yield from Budget(self._limit, note).limited(self._body.pieces())
            return
        engine = self._engine_for_this_thread()
        codes: list[str] = []
        yield from self._inflated(engine, codes.append)
        self._ended(engine, codes)
        for code in sorted(codes):
            # A transfer that was cut at a limit (T804) leaves gzip data that is cut short (T801). One code is enough.
            if code not in self.transport_problems and not (code == "T801" and "T804" in self.transport_problems):
                note(code)

    def read_ahead(self) -> None:
        """Inflate the document now for the next read, if that takes one step and little memory."""
        if self._may_be_compressed and not self.content_encoding:
            data = b"".join(self._body.pieces())
            self._ahead = gunzip_in_one_step(data, min(self._limit, _MAX_PIECE_BYTES))

    def forget_ahead(self) -> None:
        """Drop what `read_ahead` inflated, if nobody has read it."""
        self._ahead = None

    def first_read(self, read: Callable[[], Result]) -> Result:
        """Return the result of `read`, a function that reads the document while it is inflated for the first time.

        `read` runs with isal first. If isal finds the data damaged, `read` runs again with zlib. From then on, it is
        known which of the two the document needs.
        """
        if self._engine is not None or not self._may_be_compressed:
            return read()

        def attempt(engine: Engine) -> Result:
            self._trial = get_ident(), engine
            result = read()
            if self._engine is None:  # `read` did not get to the end, and damage may follow
                self._try_to_the_end(engine)
            return result

        try:
            return with_fastest_engine(attempt)
        finally:
            self._trial = None

    def _engine_for_this_thread(self) -> Engine:
        """Return the engine that inflates the document. In the thread of `first_read`, it is the one on trial."""
        if self._engine is not None:
            return self._engine
        if self._trial is not None and self._trial[0] == get_ident():
            return self._trial[1]
        return with_fastest_engine(self._try_to_the_end)

    def _try_to_the_end(self, engine: Engine) -> Engine:
        codes: list[str] = []
        for _ in self._inflated(engine, codes.append):
            pass
        self._ended(engine, codes)
        return engine

    def _ended(self, engine: Engine, codes: list[str]) -> None:
        self._engine = engine
        self._is_cut = "T804" in codes

    def _inflated(self, engine: Engine, note: Note) -> Iterator[bytes]:
        pieces = self._body.pieces()
        size = 0
        for piece in inflated(pieces, note, encoding=self.content_encoding, limit=self._limit, engine=engine):
            size += len(piece)
            yield piece
        self._inflated_size = size


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
        return split(self._data, _MAX_PIECE_BYTES)


class InFile:
    """A body in the temporary file."""

    __slots__ = ("_file", "_size", "_start")

    def __init__(self, file: TemporaryFile, start: int, size: int) -> None:
        self._file = file
        self._start = start
        self._size = size

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes in pieces. Raises `DocumentReadError` if they cannot be read."""
        for at in range(0, self._size, PIECE_BYTES):
            yield self._file.read(self._start + at, min(PIECE_BYTES, self._size - at))


class TemporaryFile:
    """A file that you append to and read from anywhere. It is closed when nothing refers to it any more."""

    __slots__ = ("__weakref__", "_end", "_file", "_lock", "_process")

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._process = os.getpid()
        self._end = 0
        self._lock = threading.Lock()
        # Not __del__: in a reference cycle, Python would collect the file first and warn that it was not closed.
        finalize(self, _close, file)

    @property
    def is_ours(self) -> bool:
        """Whether this process may append. After a fork, two processes would write to the same offsets."""
        return self._process == os.getpid()

    def append(self, data: bytes) -> int:
        """Append data and return its offset. Raises OSError; nothing of the data is kept then."""
        start = self._end
        with self._lock:
            try:
                self._file.seek(start)
                rest = memoryview(data)
                while rest:
                    written = self._file.write(rest)
                    if not written:
                        raise OSError(errno.EIO, "nothing more can be written")
                    rest = rest[written:]
                self._file.flush()
            except OSError:
                with suppress(OSError):
                    self._file.truncate(start)
                raise
            self._end += len(data)
        return start

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
        with self._lock:
            self._file.seek(start)
            return self._file.read(size)


_CANNOT_READ = "A sitemap cannot be read back from the temporary file of its tree; fetch the tree again"


def _close(file: IO[bytes]) -> None:
    with suppress(OSError):
        file.close()


def _open_unnamed_file() -> IO[bytes]:
    import tempfile  # slow to import, and seldom needed

    return tempfile.TemporaryFile(prefix="usp-", buffering=0)


class DocumentStore:
    """Holds the bodies of one tree: in memory up to `memory_bytes`, the rest in one temporary file.

    If the file cannot be created or written, bodies stay in memory and a warning is logged.
    """

    def __init__(
        self, memory_bytes: int = MEMORY_BYTES, open_file: Callable[[], IO[bytes]] = _open_unnamed_file
    ) -> None:
        self._memory_bytes = memory_bytes
        self._open_file = open_file
        self._in_memory = 0
        self._freed: deque[int] = deque()
        self._file: TemporaryFile | None = None
        self._can_write = True
        self._lock = threading.Lock()

    def keep(self, data: bytes) -> Body:
        """Store a body."""
        with self._lock:
            while self._freed:
                self._in_memory -= self._freed.popleft()
            if self._in_memory + len(data) > self._memory_bytes:
                if (in_file := self._put_into_file(data)) is not None:
                    return in_file
            self._in_memory += len(data)
            return InMemory(data, self._freed)

    def _put_into_file(self, data: bytes) -> InFile | None:
        if not self._can_write:
            return None
        try:
            if self._file is None or not self._file.is_ours:
                self._file = TemporaryFile(self._open_file())
            return InFile(self._file, self._file.append(data), len(data))
        except OSError as error:
            self._can_write = False
            log.warning(
                "The temporary file cannot be written (%s), so sitemaps stay in memory beyond the limit of %d MiB."
                " Set the environment variable TMPDIR to a folder with free space.",
                error,
                self._memory_bytes >> 20,
            )
            return None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a URL could not be fetched."""

    message: str
    """What happened."""
    status: int | None = None
    """The HTTP status, if there was a response."""
    is_retryable: bool = False
    """Whether the same request may succeed later."""
    retry_after: float | None = None
    """How many seconds the server asks to wait before that."""
    partial: Document | None = None
    """The part of the document that arrived before the transfer broke off."""
    transport: Transport | None = None
    """How the attempt went, if there was one."""
    cause: Cause | None = None
    """The kind of the failure. If None, the status tells."""

    @property
    def is_answered(self) -> bool:
        """Whether the host responded at all."""
        return self.status is not None or self.partial is not None
