"""What came back for a URL: a document, or a failure. Values that a driver hands to the walk.

A `Document` keeps its body as it came, compressed if it came so, and is opened again each time its pages are read. A
`DocumentStore` holds the bodies of one tree: in memory up to a limit, beyond it in one temporary file without a name.
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
    gunzipped_at_once,
    inflated,
    may_be_packed,
    split,
    with_fastest,
)
from usp.limits import MAX_SITEMAP_BYTES, MEMORY_BYTES
from usp.logs import logger

if TYPE_CHECKING:
    from usp.objects.transport import Transport

__all__ = ["Document", "DocumentStore", "Failure"]

log = logger(__name__)

_WHOLE_BYTES = 16 * 1024 * 1024
_CHARSET = re.compile(r"""charset\s*+=\s*+["']?\s*+([A-Za-z0-9._:-]{1,40})""", re.IGNORECASE)

Note = Callable[[str], None]
Result = TypeVar("Result")


class Document:
    """A body as it came, still compressed if it came so.

    `url` is that after redirects. `content_encoding` is the transport encoding that the data still has.
    `transport_problems` are codes of what was wrong when it was transferred; `transport` says how it came, if that is
    known. No more than `limit` bytes of it are read, inflated.
    """

    __slots__ = (
        "_ahead",
        "_body",
        "_engine",
        "_limit",
        "_may_be_packed",
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
        self.size = len(data)  # as it was transferred
        self.content_type = content_type
        self.content_encoding = content_encoding
        self.transport_problems = transport_problems
        if not data.startswith(GZIP_MAGIC) and not content_encoding and url.partition("?")[0].lower().endswith(".gz"):
            self.transport_problems += ("T803",)
        self._limit = limit
        self._may_be_packed = may_be_packed(data, content_encoding)
        self._body: Body = InMemory(data) if store is None else store.keep(data)
        self._engine: Engine | None = None  # that was seen to inflate it to the end
        self._trial: tuple[int, Engine] | None = None  # one that has yet to show it, and the thread that tries
        self._ahead: bytes | None = None  # what whoever reads it next is given

    @property
    def may_be_packed(self) -> bool:
        """Whether it may inflate."""
        return self._may_be_packed

    @property
    def charset(self) -> str | None:
        """The charset that the Content-Type states."""
        match = _CHARSET.search(self.content_type or "")
        return match[1] if match else None

    def pieces(self, note: Note) -> Iterator[bytes]:
        """The body inflated, in pieces; at their end `note(code)` is called for what is wrong with it.

        It may be called any number of times, by several threads at once, and always gives the same.
        """
        for code in self.transport_problems:
            note(code)
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            yield from split(ahead, _WHOLE_BYTES)
            return
        if not self._may_be_packed:
            yield from Budget(self._limit, note).limited(self._body.pieces())
            return
        engine = self._engine_here()
        codes: list[str] = []
        yield from self._inflated(engine, codes.append)
        self._engine = engine
        for code in sorted(codes):
            # What is cut at a limit is cut short as well, which needs no saying.
            if code not in self.transport_problems and not (code == "T801" and "T804" in self.transport_problems):
                note(code)

    def read_ahead(self) -> None:
        """Inflate it now for whoever reads it next, once, where that can be done in one step, and it is not large."""
        if self._may_be_packed and not self.content_encoding:
            self._ahead = gunzipped_at_once(b"".join(self._body.pieces()), min(self._limit, _WHOLE_BYTES))

    def forget_ahead(self) -> None:
        """Drop what was inflated ahead, if nobody has read it."""
        self._ahead = None

    def settled(self, read: Callable[[], Result]) -> Result:
        """What `read` makes of the document, which it reads while it is inflated for the first time.

        It is called again, with zlib, if isal meets damage; then it is known which of them the document needs.
        """
        if self._engine is not None or not self._may_be_packed:
            return read()

        def attempt(engine: Engine) -> Result:
            self._trial = get_ident(), engine
            result = read()
            if self._engine is None:  # not read to its end
                self._drain(engine)
            return result

        try:
            return with_fastest(attempt)
        finally:
            self._trial = None

    def _engine_here(self) -> Engine:
        """What inflates the document: in this thread, perhaps, only on trial."""
        if self._engine is not None:
            return self._engine
        if self._trial is not None and self._trial[0] == get_ident():
            return self._trial[1]
        return with_fastest(self._drain)

    def _drain(self, engine: Engine) -> Engine:
        for _ in self._inflated(engine, lambda code: None):
            pass
        self._engine = engine
        return engine

    def _inflated(self, engine: Engine, note: Note) -> Iterator[bytes]:
        pieces = self._body.pieces()
        return inflated(pieces, note, encoding=self.content_encoding, limit=self._limit, engine=engine)


class Body(Protocol):
    """The bytes of a document, wherever they are."""

    def pieces(self) -> Iterator[bytes]:
        """The bytes, in pieces."""


class InMemory:
    """A body in memory; it tells `freed` its size when it is collected."""

    __slots__ = ("_data", "_freed")

    def __init__(self, data: bytes, freed: deque[int] | None = None) -> None:
        self._data = data
        self._freed = freed

    def __del__(self) -> None:
        # Nothing but an append, which needs no lock: this may run at any time, in any thread.
        if self._freed is not None:
            self._freed.append(len(self._data))

    def pieces(self) -> Iterator[bytes]:
        """The bytes: in one piece, which is there already, unless that would let copies of it be large."""
        return split(self._data, _WHOLE_BYTES)


class InFile:
    """A body in the temporary file."""

    __slots__ = ("_file", "_size", "_start")

    def __init__(self, file: TemporaryFile, start: int, size: int) -> None:
        self._file = file
        self._start = start
        self._size = size

    def pieces(self) -> Iterator[bytes]:
        """The bytes, in pieces. Raises `DocumentReadError` if they cannot be read back."""
        for at in range(0, self._size, PIECE_BYTES):
            yield self._file.read(self._start + at, min(PIECE_BYTES, self._size - at))


class TemporaryFile:
    """Bytes that are appended once and read back from anywhere; closed when nothing refers to it any more."""

    __slots__ = ("__weakref__", "_end", "_file", "_lock", "_process")

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._process = os.getpid()
        self._end = 0
        self._lock = threading.Lock()
        finalize(self, _close, file)  # not __del__: where both are part of a cycle, the file would be collected first

    @property
    def is_ours(self) -> bool:
        """Whether this process may append: after a fork both would write to the same places."""
        return self._process == os.getpid()

    def append(self, data: bytes) -> int:
        """Where the data starts in the file. Raises OSError, and then leaves nothing of it."""
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
        """Bytes from this place. Raises `DocumentReadError`."""
        found = b""
        try:
            while len(found) < size and (more := self._read_some(start + len(found), size - len(found))):
                found += more
        except (OSError, ValueError) as error:
            raise DocumentReadError(f"{_CANNOT_READ}: {error}") from error
        if len(found) < size:
            raise DocumentReadError(f"{_CANNOT_READ}: it was cut short")
        return found

    def _read_some(self, start: int, size: int) -> bytes:
        if hasattr(os, "pread"):
            return os.pread(self._file.fileno(), size, start)  # has no position that processes could fight over
        with self._lock:
            self._file.seek(start)
            return self._file.read(size)


_CANNOT_READ = "A sitemap that was put into the tree's temporary file cannot be read back; fetch the tree again"


def _close(file: IO[bytes]) -> None:
    with suppress(OSError):
        file.close()


def _open_unnamed_file() -> IO[bytes]:
    import tempfile  # imported only when needed: it is heavy

    return tempfile.TemporaryFile(prefix="usp-", buffering=0)


class DocumentStore:
    """Holds the bodies of one tree: in memory up to `memory_bytes`, beyond that in one temporary file.

    A file that cannot be made or written is no loss: what would go there stays in memory, and a warning says so.
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
        """Take a body in."""
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
                "Sitemaps are kept in memory, over the %d MiB that are meant for them: the temporary file cannot be"
                " written (%s). Set the environment variable TMPDIR to a folder with free space.",
                self._memory_bytes >> 20,
                error,
            )
            return None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a URL could not be had; `status` is the HTTP status, where there was an answer.

    `is_retryable` says whether the same request may succeed later, and `retry_after` the seconds that the server asks
    to wait until then. `partial` is what came of a document before its transfer broke off. `transport` says how the try
    went, if there was one.
    """

    message: str
    status: int | None = None
    is_retryable: bool = False
    retry_after: float | None = None
    partial: Document | None = None
    transport: Transport | None = None

    @property
    def is_answered(self) -> bool:
        """Whether the host answered at all."""
        return self.status is not None or self.partial is not None
