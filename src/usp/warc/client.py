"""Web clients that answer from an archive, plain and on asyncio."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from http import HTTPStatus

from usp.objects.wording import shortened
from usp.origins import requested_url
from usp.warc.archive import Archive, Stored
from usp.web_client.abstract_client import (
    AbstractAsyncWebClient,
    AbstractWebClient,
    AbstractWebClientResponse,
    AbstractWebClientSuccessResponse,
    WebClientErrorResponse,
)

__all__ = ["NOT_IN_ARCHIVE", "ArchiveClient", "AsyncArchiveClient"]

#: Why a URL could not be fetched.
NOT_IN_ARCHIVE = "not in the archive"
_MAYBE_LOST = "not in the archive, of which a part is missing"

_MAX_REDIRECTS = 10
_PROBLEMS = {"": (), "length": ("T804",)}  # why a body was cut -> codes; for any other reason, the transfer broke off


class ArchiveClient(AbstractWebClient):
    """Answer from an archive. A URL that is not in it is not found; if the archive is damaged, it cannot be reached."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._most: int | None = None

    def set_max_response_data_length(self, max_response_data_length: int | None) -> None:
        """Read no more than this of a body."""
        self._most = max_response_data_length

    def get(self, url: str) -> AbstractWebClientResponse:
        """Return the newest response of a URL, after redirects."""
        here = requested_url(url)
        for _ in range(_MAX_REDIRECTS + 1):
            stored = self._archive.find(here)
            if stored is None:
                where = "" if here == requested_url(url) else f"redirects to {shortened(here)}, which is "
                if self._archive.is_damaged:  # so nobody knows whether there was such a URL
                    return _RecordedError(f"{where}{_MAYBE_LOST}", None, None)
                return _RecordedError(f"{where}{NOT_IN_ARCHIVE}", HTTPStatus.NOT_FOUND, None)
            target = self._archive.redirects_to(stored)
            if target is None:
                return self._answer(stored)
            here = target
        return _RecordedError(f"more than {_MAX_REDIRECTS} redirects", None, None)

    def _answer(self, stored: Stored) -> AbstractWebClientResponse:
        message = stored.message
        if not 200 <= message.status < 300:
            reason = message.reason or _phrase(message.status)
            return _RecordedError(f"{message.status} {reason}".strip(), message.status, stored.date)
        return _ArchivedResponse(stored, self._most)


class AsyncArchiveClient(AbstractAsyncWebClient):
    """Answer from an archive, on asyncio. Files are read in threads."""

    def __init__(self, archive: Archive) -> None:
        self._client = ArchiveClient(archive)

    def limit_response_data_length(self, max_response_data_length: int) -> None:
        """Read no more than this of a body."""
        self._client.set_max_response_data_length(max_response_data_length)

    async def get(self, url: str) -> AbstractWebClientResponse:
        """Return the newest response of a URL, after redirects."""
        import asyncio

        return await asyncio.to_thread(self._client.get, url)


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else ""


class _RecordedError(WebClientErrorResponse):
    """A request that failed when the archive was made, or that was not made then: it has no date."""

    def __init__(self, message: str, status: int | None, date: datetime | None) -> None:
        super().__init__(message, retryable=False, status=status)
        self._date = date

    def received_at(self) -> datetime | None:
        """Return when the request failed."""
        return self._date


class _ArchivedResponse(AbstractWebClientSuccessResponse):
    """A response in the archive, with up to `most` bytes of its body."""

    def __init__(self, stored: Stored, most: int | None) -> None:
        self._stored = stored
        self._data, self._problems = _read(stored.pieces, most)
        self._problems += _PROBLEMS.get(stored.truncated.lower(), ("T805",)) if not self._problems else ()

    def status_code(self) -> int:
        """Return the status."""
        return self._stored.message.status

    def status_message(self) -> str:
        """Return the words that go with the status."""
        return self._stored.message.reason

    def header(self, case_insensitive_name: str) -> str | None:
        """Return the value of a header."""
        return self._stored.message.header(case_insensitive_name)

    def encoded_data(self) -> bytes:
        """Return the body, still in its Content-Encoding."""
        return self._data

    def raw_data(self) -> bytes:
        """Return the body, still in its Content-Encoding."""
        return self._data

    def url(self) -> str:
        """Return the URL that answered."""
        return self._stored.url

    def transport_problems(self) -> tuple[str, ...]:
        """Return T804 or T805 if the body is not whole."""
        return self._problems

    def received_at(self) -> datetime | None:
        """Return when the response was received."""
        return self._stored.date


def _read(pieces: Iterable[bytes], most: int | None) -> tuple[bytes, tuple[str, ...]]:
    body = bytearray()  # pieces may be of one byte each, and a list of them many times as large
    for piece in pieces:
        body += piece
        if most is not None and len(body) > most:
            return bytes(memoryview(body)[:most]), ("T804",)
    return bytes(body), ()
