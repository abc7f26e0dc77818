"""The blocking driver: one request at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from usp.documents import MAX_DOCUMENT_BYTES, DocumentStore
from usp.drivers.fetch import fetch
from usp.exceptions import InvalidArgumentError
from usp.fetch_parse.fetcher import SitemapFetcher
from usp.objects.sitemap import AbstractSitemap
from usp.walk import Walk
from usp.web_client.abstract_client import AbstractWebClient

__all__ = ["client_or_default", "run", "sitemap_of"]


def run(walk: Walk, client: AbstractWebClient, sleep: Callable[[float], None] = time.sleep) -> None:
    """Fetch all that the walk asks for."""
    # A client may have the methods of one without being a subclass, as ultimate-sitemap-parser lets it.
    limit = getattr(client, "limit_response_data_length", None) or client.set_max_response_data_length
    limit(MAX_DOCUMENT_BYTES)
    store = DocumentStore()
    while (fetcher := walk.next()) is not None:
        walk.receive(fetcher, fetch(fetcher, client, sleep, store))


@contextmanager
def client_or_default(client: AbstractWebClient | None) -> Iterator[AbstractWebClient]:
    """The caller's client, or one of requests for as long as it is needed."""
    if client is None:
        from usp.web_client.requests_client import RequestsWebClient  # imported only when needed: requests is heavy

        with RequestsWebClient() as default:
            yield default
    elif callable(getattr(client, "get", None)) and callable(getattr(client, "set_max_response_data_length", None)):
        yield client
    else:
        raise InvalidArgumentError(f"web_client must be an AbstractWebClient, not {client!r}")


def sitemap_of(fetcher: SitemapFetcher) -> AbstractSitemap:
    """The sitemap of one fetcher, and all below it."""
    walk = Walk([fetcher])
    with client_or_default(fetcher.web_client) as client:
        run(walk, client)
    return next(walk.sitemaps())
