"""The response to a request for a URL: a `Document` or a `Failure`. A driver passes it to the walk.

A `Document` keeps its body as it was transferred, possibly compressed, and inflates it again for each read.
`usp.bodies` holds the bodies of a tree.

Reading takes time, so whoever owns the time gives a document a `Spend` function. It is asked before a read inflates
anything, and before each piece. If it says to stop, the document ends there, for this read and all later ones: every
read has the same text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from threading import get_ident
from typing import TYPE_CHECKING, TypeVar

from usp.bodies import ArrivingBody, DocumentStore, InMemory
from usp.inflate import (
    GZIP_MAGIC,
    Budget,
    Engine,
    engines,
    gunzip_in_one_step,
    gunzip_in_pieces,
    inflated,
    may_be_compressed,
    split,
    with_fastest_engine,
)
from usp.limits import MAX_SITEMAP_BYTES

if TYPE_CHECKING:
    from usp.objects.outcome import Cause
    from usp.objects.transport import Transport

__all__ = ["Document", "DocumentStore", "Failure", "Spend", "StartRead"]

_CUT_SHORT = frozenset({"T801", "T804", "T805"})  # problems of a transfer that did not bring all of the document
_CHARSET = re.compile(r"""charset\s*+=\s*+["']?\s*+([A-Za-z0-9._:-]{1,40})""", re.IGNORECASE)

_START_BYTES = 4
_MAX_AHEAD_BYTES = 16 * 1024 * 1024  # of a document that is inflated for the next read

Note = Callable[[str], None]
#: Takes the size of the next piece, as far as nobody has read it before. Returns why to stop before it, or "".
Spend = Callable[[int], str]
#: Starts a read of a document.
StartRead = Callable[[], Spend]
Result = TypeVar("Result")


class Document:
    """The body of a response, as it was transferred.

    :param url: the URL after redirects.
    :param data: the body, possibly compressed, or a body that a client has received into the tree's store.
    :param content_type: the Content-Type header.
    :param content_encoding: the compression that the client has not removed, from the Content-Encoding header.
    :param transport_problems: codes of problems that the client found.
    :param store: where to keep the body. None keeps it in memory.
    :param limit: the number of inflated bytes to read; the rest is dropped.
    :param transport: how the document was fetched, if that is known.
    :param discarded: bytes of other answers, such as redirects, that were transferred for this document.
    :param cut_reason: why a limit of the tree ended the transfer, if one did.
    """

    __slots__ = (
        "_ahead",
        "_body",
        "_cut_at",
        "_engine",
        "_head",
        "_inflated_size",
        "_is_cut",
        "_is_damaged",
        "_limit",
        "_may_be_compressed",
        "_most_read",
        "_start_read",
        "_text",
        "_trial",
        "content_encoding",
        "content_type",
        "cut_reason",
        "size",
        "transferred",
        "transport",
        "transport_problems",
        "url",
    )

    def __init__(
        self,
        url: str,
        data: bytes | ArrivingBody,
        content_type: str | None = None,
        content_encoding: str | None = None,
        transport_problems: tuple[str, ...] = (),
        *,
        store: DocumentStore | None = None,
        limit: int = MAX_SITEMAP_BYTES,
        transport: Transport | None = None,
        discarded: int = 0,
        cut_reason: str = "",
    ) -> None:
        if isinstance(data, ArrivingBody):
            head, self.size, self._body = data.head, data.size, data.finish()
        else:
            head, self.size = data, len(data)
            self._body = InMemory(data) if store is None else store.keep(data)
        self.url = url
        self.transport = transport
        self.transferred = self.size + discarded
        self.content_type = content_type
        self.content_encoding = content_encoding
        self.transport_problems = transport_problems
        if not head.startswith(GZIP_MAGIC) and not content_encoding and url.partition("?")[0].lower().endswith(".gz"):
            self.transport_problems += ("T803",)
        self._limit = limit
        self._head = head[:_START_BYTES]
        self._may_be_compressed = may_be_compressed(head, content_encoding)
        self._engine: Engine | None = None  # has inflated the document to its end
        self._is_cut = False
        self._is_damaged = False
        self._trial: tuple[int, Engine] | None = None  # a thread, and the engine that it tries now
        self._inflated_size: int | None = None  # once somebody has read to the end
        self._ahead: list[bytes] | None = None  # the pieces of the inflated text, for the next read
        self._text: bytes | None = None  # the inflated text, for all reads until it is released
        self._start_read: StartRead | None = None
        self._most_read = 0  # bytes that the longest read has had
        self._cut_at: int | None = None  # where all reads end, because one had to stop there
        self.cut_reason = cut_reason  # why only a part of it can be read

    @property
    def may_be_compressed(self) -> bool:
        """Whether reading the document may inflate it."""
        return self._may_be_compressed

    @property
    def start(self) -> bytes:
        """The first bytes of the text, as far as they are known without reading the document; often just four."""
        return self._head if not self._may_be_compressed else b"" if self._text is None else self._text[:_START_BYTES]

    @property
    def is_cut(self) -> bool:
        """Whether the inflated document is larger than the limit. It is known after `first_read`."""
        return self._is_cut

    @property
    def ends_early(self) -> bool:
        """Whether the text that is read ends too early, so that its last line may not be whole.

        A limit has cut it, its transfer broke off, or it was damaged. It is known at the end of each read.
        """
        is_larger = self._is_cut or (not self._may_be_compressed and self.size > self._limit)
        is_short = self._is_damaged or not _CUT_SHORT.isdisjoint(self.transport_problems)
        return is_larger or is_short or bool(self.cut_reason)

    @property
    def is_unread(self) -> bool:
        """Whether reading had to stop before the first byte."""
        return self._cut_at == 0

    @property
    def inflated_size(self) -> int | None:
        """The number of inflated bytes, up to the limit. None if the document is compressed and was never read."""
        return self._inflated_size if self._may_be_compressed else min(self.size, self._limit)

    @property
    def charset(self) -> str | None:
        """The charset in the Content-Type, if any."""
        match = _CHARSET.search(self.content_type or "")
        return match[1] if match else None

    def bound(self, start_read: StartRead | None) -> None:
        """Bound all reads from now on. `start_read` is called for each; None lets them go to the end."""
        self._start_read = start_read

    def pieces(self, note: Note) -> Iterator[bytes]:
        """Yield the inflated body in pieces, and call `note(code)` for each problem of the transfer and of the data.

        You can call it as often as you like, from several threads at once. The result is always the same.
        """
        for code in self.transport_problems:
            note(code)
        ahead, self._ahead = self._ahead, None
        if ahead is None and self._text is not None:
            ahead = list(split(self._text))
        if ahead is not None:
            yield from self._bounded(lambda: _taken(ahead))
            return
        if not self._may_be_compressed:
            yield from self._bounded(lambda: Budget(self._limit, note).limited(self._body.pieces()))
            return
        engine = self._engine_for_this_thread()
        codes: list[str] = []
        yield from self._inflated(engine, codes.append)
        self._ended(engine, codes)
        for code in sorted(codes):
            # A transfer that was cut at a limit (T804, C901) leaves gzip data that is cut short (T801). One is enough.
            is_cut = "T804" in self.transport_problems or bool(self.cut_reason)
            if code not in self.transport_problems and not (code == "T801" and is_cut):
                note(code)

    def read_ahead(self) -> None:
        """Inflate the document now for the next read, if it is simply gzipped and takes little memory."""
        if self._may_be_compressed and not self.content_encoding:
            data = b"".join(self._body.pieces())
            self._ahead = gunzip_in_pieces(data, min(self._limit, _MAX_AHEAD_BYTES))

    def forget_ahead(self) -> None:
        """Drop what `read_ahead` inflated, if nobody has read it."""
        self._ahead = None

    def hold_text(self, most: int) -> bool:
        """Keep the inflated text for all reads until `release_text`. Return False if it has more than `most` bytes.

        It may return False for other documents that are not simply gzipped, too.
        """
        if self._engine is None:
            self._text = gunzip_in_one_step(b"".join(self._body.pieces()), min(self._limit, most))
            if self._text is not None:
                self._engine, self._inflated_size = engines()[0], len(self._text)
        return self._text is not None

    def release_text(self) -> None:
        """Drop what `hold_text` has kept."""
        self._text = None

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
        self._is_damaged = "T801" in codes

    def _inflated(self, engine: Engine, note: Note) -> Iterator[bytes]:
        def text() -> Iterator[bytes]:
            pieces = self._body.pieces()
            return inflated(pieces, note, encoding=self.content_encoding, limit=self._limit, engine=engine)

        size = 0
        for piece in self._bounded(text):
            size += len(piece)
            yield piece
        self._inflated_size = size

    def _bounded(self, open_text: Callable[[], Iterable[bytes]]) -> Iterator[bytes]:
        """Yield the pieces of the text up to where the document was cut. Cut it if this read may not go on."""
        spend = None if self._start_read is None else self._start_read()
        if spend is not None and (reason := spend(0)):
            self._cut_at, self.cut_reason = 0, reason
            return
        size = 0
        for piece in open_text():
            is_last = self._cut_at is not None and size + len(piece) >= self._cut_at
            if is_last and self._cut_at is not None:
                piece = piece[: max(0, self._cut_at - size)]
            if spend is not None and (reason := spend(max(0, size + len(piece) - self._most_read))):
                self._cut_at, self.cut_reason = size, reason
                return
            size += len(piece)
            self._most_read = max(self._most_read, size)
            yield piece
            if is_last:
                return


def _taken(pieces: list[bytes]) -> Iterator[bytes]:
    """Yield pieces, and let go of each: the memory of one can become that of another."""
    pieces.reverse()
    while pieces:
        yield pieces.pop()


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
    transferred: int = 0
    """How many bytes of bodies arrived all the same."""
    moved_to: str | None = None
    """Where the URL redirects to, if the client did not follow: the tree has requested that URL already, or its host
    must be left alone."""
    has_cookies: bool = False
    """Whether redirects have set cookies for that URL, so that it may answer otherwise."""
    is_of_origin: bool = False
    """Whether all URLs of the same scheme, host and port would fail in this way."""

    @property
    def is_answered(self) -> bool:
        """Whether the host responded at all."""
        return self.status is not None or self.partial is not None

    @property
    def may_pass(self) -> bool:
        """Whether the host answered with an error that may pass, such as 429 or 503."""
        return self.is_retryable and self.status is not None
