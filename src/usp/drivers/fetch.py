"""One URL through a client, and the client's answer as a plain value: a document, or a failure.

Also `get_with_retries`, which drop-in callers have: the schedule of a tree has retries of its own.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from http import HTTPStatus

from usp.documents import Document, DocumentStore, Failure
from usp.exceptions import NoWebClientException, SitemapException
from usp.fetch_parse.reading import UNFETCHED
from usp.logs import logger
from usp.web_client.abstract_client import (
    AbstractWebClient,
    AbstractWebClientResponse,
    AbstractWebClientSuccessResponse,
    WebClientErrorResponse,
)
from usp.web_client.terms import Terms

__all__ = ["Answers", "get_with_retries"]

log = logger(__name__)

_TRIES = 5
_SECONDS_BETWEEN_TRIES = 1.0


class Answers:
    """Makes plain values of what a client gives, and puts documents into the store of the tree."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._limit = terms.limits.max_sitemap_bytes
        self._store = DocumentStore()

    def of(self, response: AbstractWebClientResponse, url: str) -> Document | Failure:
        """What a client gave. A client of the caller's may raise from any of its methods; see `of_error`."""
        if isinstance(response, AbstractWebClientSuccessResponse):
            return self._document(response, url)
        if not isinstance(response, WebClientErrorResponse):
            kind = type(response).__name__
            return Failure(f"the web client gave a {kind}, which is neither a success nor an error")
        partial = response.partial()
        return Failure(
            response.message(),
            response.status_code(),
            response.retryable(),
            response.retry_after(),
            None if partial is None else self._document(partial, url),
        )

    def of_error(self, error: Exception, url: str) -> Failure:
        """What a client raised, which must not cost the rest of the tree."""
        if isinstance(error, NoWebClientException):
            return Failure(UNFETCHED)
        log.debug("The web client raised for URL %s", url, exc_info=error)
        return Failure(f"{type(error).__name__}: {error}")

    def _document(self, response: AbstractWebClientSuccessResponse, url: str) -> Document:
        data = response.encoded_data()
        encoding = response.header("Content-Encoding")
        if data is None:
            data = response.raw_data()
            encoding = encoding and "identity"  # what there was, the client has taken off
        return Document(
            self._terms.without_credentials(response.url() or url),
            data if isinstance(data, bytes) else bytes(memoryview(data)),
            response.header("Content-Type"),
            encoding,
            response.transport_problems(),
            store=self._store,
            limit=self._limit,
        )


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
