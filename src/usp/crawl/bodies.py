"""The documents of earlier runs, read from the WARC files of a crawl folder."""

from __future__ import annotations

import asyncio
from datetime import UTC
from email.utils import format_datetime

from usp.crawl.folder import CrawlFolder
from usp.crawl.schema import State
from usp.crawl.state import Row
from usp.warc import body_of_member, message_of, open_block, read_record
from usp.web_client.abstract_client import LocalWebClientSuccessResponse

__all__ = ["FolderBodies", "StoredResponse"]

_SMALL_BYTES = 1 << 14  # as stored; smaller records are read at once, larger ones in a thread


class FolderBodies:
    """Reads bodies at the places that the rows of sitemaps give."""

    def __init__(self, folder: CrawlFolder) -> None:
        self._folder = folder
        self._sizes: dict[str, int] = {}  # of files that are there

    def has(self, known: Row) -> bool:
        """Return whether the file of a body is there, and long enough."""
        name = known["warc"]
        if not name:
            return False
        if name not in self._sizes:
            size = self._folder.warc_size(name)
            if size is None:
                return False
            self._sizes[name] = size
        return bool(known["warc_offset"] + known["warc_length"] <= self._sizes[name])

    async def read(self, known: Row) -> bytes | None:
        """Return a body; None if it cannot be read."""
        if known["warc"] is None:
            return None
        if known["warc_length"] <= _SMALL_BYTES:
            return self.read_now(known)
        return await asyncio.to_thread(self.read_now, known)

    def read_now(self, known: Row) -> bytes | None:
        """Return a body; None if it cannot be read."""
        try:
            if known["warc_length"] <= _SMALL_BYTES and (body := self._small_body(known)) is not None:
                return body
            with self._folder.open_warc(known["warc"]) as file:
                record = read_record(file, known["warc_offset"])
                if record is None or record.type != "response":
                    return None
                return b"".join(open_block(file, record))[message_of(record.block).body_at :]
        except OSError:
            return None

    def _small_body(self, known: Row) -> bytes | None:
        """Return the body of a small record as usp writes it; None for any other record.

        A crawl that finds nothing changed reads thousands of them, so this takes as few steps as possible.
        """
        return body_of_member(self._folder.read_warc(known["warc"], known["warc_offset"], known["warc_length"]))


class StoredResponse(LocalWebClientSuccessResponse):
    """A document of a crawl folder, as it was transferred."""

    def __init__(self, row: Row, body: bytes, most: int | None = None) -> None:
        super().__init__(row["url"], "")
        self._body = body[:most]
        self._is_cut = len(self._body) < len(body)
        self._is_part = row["state"] == State.CUT
        changed = row["http_last_modified"]
        self._headers: dict[str, str | None] = {
            "content-type": row["content_type"],
            "content-encoding": row["content_encoding"],
            "etag": row["etag"],
            "last-modified": changed and format_datetime(changed.astimezone(UTC), usegmt=True),
        }

    def header(self, case_insensitive_name: str) -> str | None:
        """Return one of the headers that the tables keep."""
        return self._headers.get(case_insensitive_name.lower())

    def encoded_data(self) -> bytes:
        """Return the body as it was transferred."""
        return self._body

    def raw_data(self) -> bytes:
        """Return the same: it is not called."""
        return self._body

    def transport_problems(self) -> tuple[str, ...]:
        """Return T804 if the document is longer than the limit, T805 if only a part of it arrived."""
        return ("T804",) if self._is_cut else ("T805",) if self._is_part else ()
