"""From a web client's response to a plain value: a document, or a failure.

Also `get_with_retries`, for drop-in callers. A tree does not use it: its schedule has retries of its own.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus

from usp.bodies import ArrivingBody, DocumentStore
from usp.documents import Document, Failure
from usp.drivers.budget import total_bytes_reached
from usp.exceptions import NoWebClientException, SitemapException
from usp.fetch_parse.parsed import UNFETCHED
from usp.logs import logger
from usp.objects.outcome import Cause
from usp.objects.transport import Transport
from usp.politeness import DEFAULT_RETRY_SECONDS, DEFAULT_TRIES
from usp.web_client.abstract_client import (
    AbstractWebClient,
    AbstractWebClientResponse,
    AbstractWebClientSuccessResponse,
    WebClientErrorResponse,
    request_errors,
)
from usp.web_client.http_dates import read_http_date
from usp.web_client.policy import RefusedError, RequestPolicy

__all__ = ["ResponseReader", "get_with_retries"]

log = logger(__name__)

_MAX_ETAG = 256  # characters; those of common servers have less than 70
_MAX_HEADER = 2_000  # characters; several headers of that name are one value
_TRUNCATED = frozenset({"T804", "T805"})  # problems of a body that is not complete


class ResponseReader:
    """Turn the responses of a web client into plain values. Documents go to the store of the tree."""

    def __init__(self, policy: RequestPolicy, memory_bytes: int) -> None:
        self._policy = policy
        self._max_bytes = policy.limits.max_sitemap_bytes
        self._store = policy.store = DocumentStore(memory_bytes, max_total_bytes=policy.limits.max_total_bytes)

    def read(self, response: AbstractWebClientResponse, url: str, started: float | None = None) -> Document | Failure:
        """Return the document of a success, or the failure of an error.

        The methods of a caller's response may raise; see `read_error`.

        :param started: when the request started, by `time.monotonic()`.
        """
        seconds, fetched_at = _end_of_request(started)
        received = response.received_at() if isinstance(response, AbstractWebClientResponse) else ...
        if received is None or isinstance(received, datetime):  # else it was now, or the response is a mock
            seconds, fetched_at = None, received
        if isinstance(response, AbstractWebClientSuccessResponse):
            return self._document(response, url, seconds, fetched_at)
        request = Transport(url, url, seconds=seconds, fetched_at=fetched_at)
        if not isinstance(response, WebClientErrorResponse):
            kind = type(response).__name__
            return Failure(f"the web client gave a {kind}, which is neither a success nor an error", transport=request)
        partial, status = response.partial(), response.status_code()
        document = None if partial is None else self._document(partial, url, seconds, fetched_at)
        return Failure(
            response.message(),
            status,
            response.retryable(),
            response.retry_after(),
            document,
            request if received is None else replace(request, status=status),
            Cause.REFUSED if response.is_refused() else None,
            max(response.transferred_bytes(), 0 if document is None else document.transferred),
            response.moved_to(),
            response.has_cookies(),
            response.is_of_origin(),
        )

    def read_error(self, error: Exception, client: object, url: str, started: float | None = None) -> Failure:
        """Return the failure of a request that ended with an exception of the client. The rest of the tree goes on.

        Raise the exception again if it is not one of the client's `request_errors`: it is a bug, and the caller's to
        see.
        """
        if isinstance(error, NoWebClientException):
            return Failure(UNFETCHED, cause=Cause.LEFT_OUT)
        if not isinstance(error, request_errors(client)):
            error.add_note(f"The web client raised this for {url}")
            raise error
        log.debug("The web client raised for URL %s", url, exc_info=error)
        cause = Cause.REFUSED if isinstance(error, RefusedError) else None
        seconds, fetched_at = _end_of_request(started)
        transport = Transport(url, url, seconds=seconds, fetched_at=fetched_at)
        return Failure(f"{type(error).__name__}: {error}", transport=transport, cause=cause)

    def _document(
        self, response: AbstractWebClientSuccessResponse, url: str, seconds: float | None, fetched_at: datetime | None
    ) -> Document:
        declared = encoding = response.header("Content-Encoding")
        stored = response.stored_body()
        data = stored if isinstance(stored, ArrivingBody) else response.encoded_data()  # it may be a mock
        if data is None:
            data = response.raw_data()
            encoding = encoding and "identity"  # the client has decoded the body
        if not isinstance(data, (bytes, ArrivingBody)):
            data = bytes(memoryview(data))
        content_type = response.header("Content-Type")
        problems = response.transport_problems()
        cut_reason = ""
        if isinstance(data, ArrivingBody) and data.is_cut:  # by the tree's limit, and not by that of a document
            cut_reason = total_bytes_reached(self._policy.limits.max_total_bytes)
            problems = tuple(code for code in problems if code != "T804")
        transport = Transport(
            url,
            self._policy.without_credentials(response.url() or url),
            _status_of(response),
            content_type,
            declared,
            data.size if isinstance(data, ArrivingBody) else len(data),
            seconds,
            fetched_at,
            read_http_date(response.header("Last-Modified")),
            etag=_checked_etag(response.header("ETag")),
            is_whole=_TRUNCATED.isdisjoint(problems) and not cut_reason,
            is_limited="T804" in problems or bool(cut_reason),
            cut_reason=cut_reason,
            robots_tag=_checked_header(response.header("X-Robots-Tag")),
            link=_checked_header(response.header("Link")),
        )
        return Document(
            transport.url,
            data,
            content_type,
            encoding,
            problems,
            store=self._store,
            limit=self._max_bytes,
            transport=transport,
            discarded=response.discarded_bytes() if isinstance(data, ArrivingBody) else 0,
            cut_reason=cut_reason,
        )


def _end_of_request(started: float | None) -> tuple[float | None, datetime | None]:
    """Return how long a request took that has just ended, and the time."""
    return None if started is None else time.monotonic() - started, datetime.now(UTC)


def _status_of(response: AbstractWebClientSuccessResponse) -> int | None:
    """Return the status; None if the client does not know it."""
    try:
        return response.status_code()
    except NotImplementedError:
        return None


def _checked_etag(value: str | None) -> str | None:
    """Return an ETag; None if it is empty, too long, or cannot be printed or sent back.

    https://www.rfc-editor.org/rfc/rfc9110#field.etag
    """
    etag = value.strip() if isinstance(value, str) else ""
    return etag if 0 < len(etag) <= _MAX_ETAG and etag.isascii() and etag.isprintable() else None


def _checked_header(value: str | None) -> str | None:
    """Return the value of a header; None if there is none, or it is too long."""
    return value if isinstance(value, str) and len(value) <= _MAX_HEADER else None


def get_with_retries(
    url: str,
    client: AbstractWebClient,
    *,
    tries: int = DEFAULT_TRIES,
    seconds_between: float = DEFAULT_RETRY_SECONDS,
    quiet_404: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> AbstractWebClientResponse:
    """Fetch a URL, and again while the failure is retryable. Do not wait after the last try."""
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
