"""What every crawl in a process needs: a web client, limits across sites, and threads that take short turns."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from usp.crawl.collecting import fewer_collections
from usp.crawl.hosts import RequestLimits, SharedLimits
from usp.crawl.responsive import responsive_threads
from usp.web_client.lookups import system_lookup

if TYPE_CHECKING:
    from usp.web_client.abstract_client import AbstractAsyncWebClient
    from usp.web_client.asyncio_client import AsyncioWebClient

__all__ = ["CrawlSession", "crawl_session"]


class CrawlSession(NamedTuple):
    """A web client, and the limits of its requests."""

    client: AbstractAsyncWebClient
    limits: SharedLimits


@asynccontextmanager
async def crawl_session(
    requests: RequestLimits,
    client_options: Mapping[str, Any] | None = None,
    web_client: AbstractAsyncWebClient | None = None,
) -> AsyncIterator[CrawlSession]:
    """Open what a crawl needs, and close it at the end.

    :param client_options: keyword arguments for an `AsyncioWebClient`.
    :param web_client: the caller's client, in place of that.
    """
    options = dict(client_options or {})
    limits = SharedLimits(requests, options.pop("_resolve", system_lookup))
    async with AsyncExitStack() as stack:
        stack.enter_context(fewer_collections())
        stack.enter_context(responsive_threads())
        if web_client is None:
            web_client = await stack.enter_async_context(_counted_client(options, limits))
        yield CrawlSession(web_client, limits)


def _counted_client(options: Mapping[str, Any], limits: SharedLimits) -> AsyncioWebClient:
    """Return a client that connects to the addresses which are counted."""
    from usp.web_client.asyncio_client import AsyncioWebClient  # imported only when needed

    client = AsyncioWebClient(**options, _resolve=limits.resolve)
    limits.is_direct = lambda url: client.proxy_for(url) is None
    return client
