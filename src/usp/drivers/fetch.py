"""One URL through a client: retries, and the client's answer as a plain value for the walk."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from http import HTTPStatus

from usp.documents import Document, DocumentStore, Failure
from usp.exceptions import NoWebClientException, SitemapException
from usp.fetch_parse.fetcher import SitemapFetcher
from usp.fetch_parse.reading import UNFETCHED
from usp.logs import logger
from usp.web_client.abstract_client import (
    AbstractWebClient,
    AbstractWebClientResponse,
    AbstractWebClientSuccessResponse,
    WebClientErrorResponse,
)

__all__ = ["fetch", "get_with_retries"]

log = logger(__name__)

TRIES = 5
SECONDS_BETWEEN_TRIES = 1.0


def fetch(
    fetcher: SitemapFetcher,
    client: AbstractWebClient,
    sleep: Callable[[float], None],
    store: DocumentStore | None = None,
) -> Document | Failure:
    """Fetch what a fetcher is for, into the store. Whatever the client does, there is an answer."""
    log.info("Fetching level %d sitemap from %s...", fetcher.recursion_level, fetcher.url)
    try:
        response = get_with_retries(fetcher.url, client, quiet_404=fetcher.quiet_404, sleep=sleep)
        if isinstance(response, AbstractWebClientSuccessResponse):
            return _document(response, fetcher.url, store)
    except NoWebClientException:
        return Failure(UNFETCHED)
    except Exception as error:  # a client of the caller's may raise anything, which must not cost the rest of the tree
        log.warning("Request for URL %s failed: %r", fetcher.url, error, exc_info=log.isEnabledFor(logging.DEBUG))
        return Failure(f"{type(error).__name__}: {error}")
    if isinstance(response, WebClientErrorResponse):
        return Failure(response.message(), response.status_code())
    return Failure(f"the web client gave a {type(response).__name__}, which is neither a success nor an error")


def _document(response: AbstractWebClientSuccessResponse, url: str, store: DocumentStore | None) -> Document:
    data = response.encoded_data()
    encoding = response.header("Content-Encoding")
    if data is None:
        data = response.raw_data()
        encoding = encoding and "identity"  # what there was, the client has taken off
    return Document(
        response.url() or url,
        data if isinstance(data, bytes) else bytes(memoryview(data)),
        response.header("Content-Type"),
        encoding,
        response.transport_problems(),
        store=store,
    )


def get_with_retries(
    url: str,
    client: AbstractWebClient,
    *,
    tries: int = TRIES,
    seconds_between: float = SECONDS_BETWEEN_TRIES,
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
