"""One URL through a client, and the client's answer as a plain value: a document, or a failure.

Also `get_with_retries`, which drop-in callers have: the schedule of a tree has retries of its own.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from usp.documents import Document, DocumentStore, Failure
from usp.exceptions import NoWebClientException, SitemapException
from usp.fetch_parse.parsed import UNFETCHED
from usp.logs import logger
from usp.objects.transport import Transport
from usp.web_client.abstract_client import (
    AbstractWebClient,
    AbstractWebClientResponse,
    AbstractWebClientSuccessResponse,
    WebClientErrorResponse,
)
from usp.web_client.policy import RequestPolicy

__all__ = ["Answers", "get_with_retries"]

log = logger(__name__)

_TRIES = 5
_SECONDS_BETWEEN_TRIES = 1.0
_CUT_SHORT = frozenset({"T804", "T805"})  # codes of bodies that came in part


class Answers:
    """Makes plain values of what a client gives, and puts documents into the store of the tree."""

    def __init__(self, policy: RequestPolicy, memory_bytes: int) -> None:
        self._policy = policy
        self._limit = policy.limits.max_sitemap_bytes
        self._store = DocumentStore(memory_bytes)

    def of(self, response: AbstractWebClientResponse, url: str, started: float | None = None) -> Document | Failure:
        """What a client gave, to a request that was `started` then, by `time.monotonic()`.

        A client of the caller's may raise from any of its methods; see `of_error`.
        """
        tried = _tried(url, started)
        if isinstance(response, AbstractWebClientSuccessResponse):
            return self._document(response, tried)
        if not isinstance(response, WebClientErrorResponse):
            kind = type(response).__name__
            message = f"the web client gave a {kind}, which is neither a success nor an error"
            return Failure(message, transport=tried)
        partial, status = response.partial(), response.status_code()
        return Failure(
            response.message(),
            status,
            response.retryable(),
            response.retry_after(),
            None if partial is None else self._document(partial, tried),
            replace(tried, status=status),
        )

    def of_error(self, error: Exception, url: str, started: float | None = None) -> Failure:
        """What a client raised, which must not cost the rest of the tree."""
        if isinstance(error, NoWebClientException):
            return Failure(UNFETCHED)
        log.debug("The web client raised for URL %s", url, exc_info=error)
        return Failure(f"{type(error).__name__}: {error}", transport=_tried(url, started))

    def _document(self, response: AbstractWebClientSuccessResponse, tried: Transport) -> Document:
        data = response.encoded_data()
        stated = encoding = response.header("Content-Encoding")
        if data is None:
            data = response.raw_data()
            encoding = encoding and "identity"  # what there was, the client has taken off
        data = data if isinstance(data, bytes) else bytes(memoryview(data))
        content_type = response.header("Content-Type")
        problems = response.transport_problems()
        transport = replace(
            tried,
            url=self._policy.without_credentials(response.url() or tried.url),
            status=_status_of(response),
            content_type=content_type,
            content_encoding=stated,
            size=len(data),
            last_modified=_date_of(response.header("Last-Modified")),
            is_whole=_CUT_SHORT.isdisjoint(problems),
        )
        return Document(
            transport.url,
            data,
            content_type,
            encoding,
            problems,
            store=self._store,
            limit=self._limit,
            transport=transport,
        )


def _tried(url: str, started: float | None) -> Transport:
    """What is known of a request itself, now that it has ended."""
    seconds = None if started is None else time.monotonic() - started
    return Transport(url, url, seconds=seconds, fetched_at=datetime.now(UTC))


def _status_of(response: AbstractWebClientSuccessResponse) -> int | None:
    """The status, if the client knows it: a success is one without it, too."""
    try:
        return response.status_code()
    except Exception:  # a client of the caller's may raise anything
        return None


def _date_of(value: str | None) -> datetime | None:
    """The date of a header, in UTC; None if it is none. https://www.rfc-editor.org/rfc/rfc9110#section-5.6.7"""
    try:
        date = parsedate_to_datetime(value or "")
        # Without a time zone, or with the -0000 that says nothing about one, it is in UTC as well.
        return date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)
    except (ValueError, TypeError, AttributeError, OverflowError, IndexError):
        return None


def get_with_retries(
    url: str,
    client: AbstractWebClient,
    *,
    tries: int = _TRIES,
    seconds_between: float = _SECONDS_BETWEEN_TRIES,
    quiet_404: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> AbstractWebClientResponse:
    """Get a URL, again while the failure is worth it; never waits after the last try."""
    if tries < 1:
        raise SitemapException(f"A URL must be tried once at least, not {tries} times.")
    for tried in range(1, tries + 1):
        log.debug("Fetching URL %s...", url)
        response = client.get(url)
        if not isinstance(response, WebClientErrorResponse):
            return response
        is_expected = quiet_404 and response.status_code() == HTTPStatus.NOT_FOUND
        log.log(
            logging.INFO if is_expected else logging.WARNING, "Request for URL %s failed: %s", url, response.message()
        )
        if not response.retryable():
            return response
        if tried < tries:
            log.info("Retrying URL %s in %s seconds...", url, seconds_between)
            sleep(seconds_between)
    log.info("Giving up on URL %s after %d tries", url, tries)
    return response
