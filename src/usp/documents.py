"""What came back for a URL: a document, or a failure. Values that a driver hands to the walk.

A `Document` keeps its body as it came, compressed if it came so, and is opened again each time its pages are read. A
`DocumentStore` holds the bodies of one tree: in memory up to a limit, beyond it in one temporary file without a name.
"""

from __future__ import annotations

import errno
import os
import re
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, NamedTuple, Protocol

from usp.exceptions import DocumentReadError
from usp.inflate import (
    GZIP_MAGIC,
    MAX_INFLATED_BYTES,
    PIECE_BYTES,
    Budget,
    Engine,
    inflated,
    may_be_packed,
    split,
    with_fastest,
)
from usp.logs import logger

__all__ = ["MAX_DOCUMENT_BYTES", "Document", "DocumentStore", "Failure"]

log = logger(__name__)

#: How much of one document is read, inflated; twice what the protocol allows, as in ultimate-sitemap-parser.
MAX_DOCUMENT_BYTES = MAX_INFLATED_BYTES
#: How many bytes of bodies a tree keeps in memory.
MEMORY_BYTES = 64 * 1024 * 1024
#: An inflated text is kept for the next reading if it is no longer than this.
MAX_KEPT_TEXT_BYTES = 16 * 1024 * 1024
#: How often a document is read soon: once for its node, once for its pages.
_READINGS_OF_KEPT_TEXT = 2
_CHARSET = re.compile(r"""charset\s*+=\s*+["']?\s*+([A-Za-z0-9._:-]{1,40})""", re.IGNORECASE)

Note = Callable[[str], None]


class Document:
    """A body as it came, still compressed if it came so.

    `url` is that after redirects. `content_encoding` is the transport encoding that the data still has.
    `transport_problems` are codes of what was wrong when it was transferred.
    """

    __slots__ = (
        "__weakref__",
        "_body",
        "_inflation",
        "_may_be_packed",
        "_readings",
        "_text",
        "content_encoding",
        "content_type",
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
    ) -> None:
        self.url = url
        self.content_type = content_type
        self.content_encoding = content_encoding
        self.transport_problems = transport_problems
        if not data.startswith(GZIP_MAGIC) and not content_encoding and url.partition("?")[0].lower().endswith(".gz"):
            self.transport_problems += ("T803",)
        self._may_be_packed = may_be_packed(data, content_encoding)
        self._body: Body = InMemory(data) if store is None else store.keep(data)
        self._inflation: _Inflation | None = None  # known once the body was inflated
        self._text: list[bytes] | None = None
        self._readings = 0  # of that text, to its end

    @property
    def charset(self) -> str | None:
        """The charset that the Content-Type states."""
        match = _CHARSET.search(self.content_type or "")
        return match[1] if match else None

    def pieces(self, note: Note) -> Iterator[bytes]:
        """The body inflated, in pieces; `note(code)` is called for what is wrong with it.

        It may be called any number of times, by several threads at once, and always gives the same.
        """
        for code in self.transport_problems:
            note(code)
        if not self._may_be_packed:
            yield from Budget(MAX_DOCUMENT_BYTES, note).limited(self._body.pieces())
            return
        text = self._text
        inflation = self._inflation
        if inflation is None:
            inflation, text = self._inflate()
        for code in inflation.codes:
            # What is cut at a limit is cut short as well, which needs no saying.
            if code not in self.transport_problems and not (code == "T801" and "T804" in self.transport_problems):
                note(code)
        if text is None:
            yield from self._inflated(inflation.engine, lambda code: None)
            return
        yield from text
        self._readings += 1
        if self._readings >= _READINGS_OF_KEPT_TEXT:
            self._text = None

    def _inflate(self) -> tuple[_Inflation, list[bytes] | None]:
        """Inflate it for the first time, to the end: to know what is wrong with it, and which engine it needs."""
        _keep_text(None, None)
        self._inflation, text = with_fastest(self._attempt)
        if text is not None:
            _keep_text(self, text)
        return self._inflation, text

    def _attempt(self, engine: Engine) -> tuple[_Inflation, list[bytes] | None]:
        codes: list[str] = []
        text: list[bytes] | None = []
        size = 0
        for piece in self._inflated(engine, codes.append):
            size += len(piece)
            if size > MAX_KEPT_TEXT_BYTES:
                text = None
            if text is not None:
                text.append(piece)
        return _Inflation(engine, tuple(sorted(codes))), text

    def _inflated(self, engine: Engine, note: Note) -> Iterator[bytes]:
        pieces = self._body.pieces()
        return inflated(pieces, note, encoding=self.content_encoding, limit=MAX_DOCUMENT_BYTES, engine=engine)


class _Inflation(NamedTuple):
    """What the first inflating of a document found out: what can inflate it, and what is wrong with it."""

    engine: Engine
    codes: tuple[str, ...]


# The one document in the process that keeps its inflated text: most are read for their pages soon after they are read
# for their node, and most often before any other.
_keeper: weakref.ref[Document] | None = None
_keeper_lock = threading.Lock()


def _keep_text(document: Document | None, text: list[bytes] | None) -> None:
    """Let this document keep its text, and the one before it no longer."""
    global _keeper
    with _keeper_lock:
        before = None if _keeper is None else _keeper()
        if before is not None:
            before._text = None
        if document is not None:
            document._text = text
        _keeper = None if document is None else weakref.ref(document)


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
        """The bytes, in pieces."""
        return split(self._data)


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

    __slots__ = ("_end", "_file", "_lock")

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._end = 0
        self._lock = threading.Lock()

    def __del__(self) -> None:
        with suppress(OSError):
            self._file.close()

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
            if self._file is None:
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
    """Why a URL could not be had; `status` is the HTTP status, where there was an answer."""

    message: str
    status: int | None = None
