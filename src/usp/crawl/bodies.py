"""The bodies of earlier documents, read from the WARC files of a crawl folder."""

from __future__ import annotations

import asyncio
import os

from usp.crawl.folder import CrawlFolder
from usp.crawl.state import Row
from usp.warc import message_of, open_block, read_record

__all__ = ["FolderBodies"]

_SMALL_BYTES = 1 << 14  # as stored; smaller records are read at once, larger ones in a thread


class FolderBodies:
    """Reads bodies at the places that the rows of sitemaps give."""

    def __init__(self, folder: CrawlFolder) -> None:
        self._folder = folder

    def has(self, known: Row) -> bool:
        """Return whether the file of a body is there."""
        return bool(known["warc"]) and os.path.exists(self._path(known))

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
            with open(self._path(known), "rb") as file:
                record = read_record(file, known["warc_offset"])
                if record is None or record.type != "response":
                    return None
                return b"".join(open_block(file, record))[message_of(record.block).body_at :]
        except OSError:
            return None

    def _path(self, known: Row) -> str:
        return os.path.join(self._folder.path, "warc", os.path.basename(known["warc"]))
