"""What came back for a URL: a document, or a failure. Plain values that a driver hands to the walk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from usp.inflate import GZIP_MAGIC, gathered, inflated, limited

__all__ = ["MAX_DOCUMENT_BYTES", "Document", "Failure"]

#: How much of one document is read, inflated; twice what the protocol allows, as in ultimate-sitemap-parser.
MAX_DOCUMENT_BYTES = 100 * 1024 * 1024
_CHARSET = re.compile(r"""charset\s*+=\s*+["']?\s*+([A-Za-z0-9._:-]{1,40})""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Document:
    """A body as it came, still compressed if it came so."""

    url: str  #: after redirects
    data: bytes
    content_type: str | None = None
    content_encoding: str | None = None
    transport_problems: tuple[str, ...] = ()  #: codes of what was wrong when it was transferred

    @property
    def charset(self) -> str | None:
        """The charset that the Content-Type states."""
        match = _CHARSET.search(self.content_type or "")
        return match[1] if match else None

    def pieces(self, note: Callable[[str], None]) -> Iterator[bytes]:
        """The body inflated, in pieces; `note(code)` is called for what is wrong with it."""
        for code in self.transport_problems:
            note(code)
        named_gzip = self.url.partition("?")[0].lower().endswith(".gz")
        if named_gzip and not self.content_encoding and not self.data.startswith(GZIP_MAGIC):
            note("T803")
        return gathered(limited(inflated(self.data, note), MAX_DOCUMENT_BYTES, note))


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a URL could not be had; `status` is the HTTP status, where there was an answer."""

    message: str
    status: int | None = None
