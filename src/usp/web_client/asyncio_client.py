"""The client of `usp.aio` and of crawls: HTTP/1.1 on asyncio's own connections.

A request takes half of the processor time that it takes with `AiohttpWebClient`, which decides what a crawl of many
small sites costs, and its address checks need no private names of a library. It behaves as the other clients do, and
says the same of what goes wrong. It reads no .netrc, and keeps no cookies.

aiohttp makes the requests instead if there is a proxy, or while a mock replaces aiohttp's.

`usp.web_client.http_client` follows redirects and applies the request policy. `usp.web_client.asyncio_connections` has
the connections, `usp.web_client.answer_parser` reads the answers.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from http.client import RemoteDisconnected
from typing import TYPE_CHECKING, Any, Self

from usp.exceptions import InvalidArgumentError
from usp.origins import DEFAULT_PORTS, Origin, origin_of
from usp.web_client.abstract_client import AbstractWebClientResponse
from usp.web_client.asyncio_connections import AsyncioAnswer, Connections
from usp.web_client.http_client import MISTAKES, AbstractAsyncHTTPClient
from usp.web_client.http_messages import HTTPRequest
from usp.web_client.lookups import Resolver
from usp.web_client.per_loop import PerLoop
from usp.web_client.settings import (
    DEFAULT_TIMEOUT,
    Timeout,
    checked_timeout,
    checked_verify,
    getproxies,
    tls_context,
)

if TYPE_CHECKING:
    from usp.web_client.aiohttp_client import AiohttpWebClient

__all__ = ["AsyncioWebClient"]

_LINE_END = re.compile(r"[\r\n\0]")


class AsyncioWebClient(AbstractAsyncHTTPClient):
    """A client that keeps its connections open for a while, as long as it, or the event loop, lives.

    `verify` is False, or the path of a CA bundle. `user_agent` is the User-Agent header to send. `headers` are for the
    homepage's scheme, host and port, and go nowhere else. `proxy` is a URL; without one, the environment decides.
    `timeout` is seconds, or a pair: to connect, and between two reads. A request as a whole has a limit of its own:
    `Limits.request_seconds`. `max_connections` limits the connections to all hosts together.
    """

    guards_addresses = True
    checks_addresses = True

    def __init__(
        self,
        *,
        verify: bool | str = True,
        user_agent: str | None = None,
        headers: Mapping[str, str] | None = None,
        proxy: str | None = None,
        timeout: Timeout = DEFAULT_TIMEOUT,
        max_connections: int = 256,
        _resolve: Resolver | None = None,
    ) -> None:
        super().__init__(user_agent=user_agent, headers=headers, _resolve=_resolve)
        if type(self) is AsyncioWebClient:
            self.request_errors = (*self.errors, *MISTAKES)
        self._verify = checked_verify(verify)
        self._proxy = proxy
        self._timeout = checked_timeout(timeout)
        if not isinstance(max_connections, int) or max_connections < 1:
            raise InvalidArgumentError(f"max_connections must be an integer, 1 or more, not {max_connections!r}")
        self._max_connections = max_connections
        self._options: dict[str, Any] = {
            "verify": verify,
            "user_agent": user_agent,
            "headers": headers,
            "proxy": proxy,
            "timeout": timeout,
            "max_connections": max_connections,
            "_resolve": _resolve,
        }
        self._has_proxies: bool | None = None  # as the environment was when first needed
        self._aiohttp: AiohttpWebClient | None = None
        self._opened = PerLoop(self._make_connections, Connections.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections that were made in this event loop."""
        await self._opened.close_here()
        if self._aiohttp is not None:
            await self._aiohttp.close()

    def close_idle(self, host: str) -> None:
        """Close the connections to a host that no request of this event loop uses."""
        connections = self._opened.here()
        if connections is not None:
            connections.close_idle(host)
        if self._aiohttp is not None:
            self._aiohttp.close_idle(host)

    def set_max_response_data_length(self, max_response_data_length: int | None) -> None:
        """Set how many bytes of a body to read at most; None or 0 for no limit."""
        super().set_max_response_data_length(max_response_data_length)
        if self._aiohttp is not None:
            self._aiohttp.set_max_response_data_length(max_response_data_length)

    def limit_response_data_length(self, max_response_data_length: int) -> None:
        """Set the limit, unless the caller has set one."""
        super().limit_response_data_length(max_response_data_length)
        if self._aiohttp is not None:
            self._aiohttp.limit_response_data_length(max_response_data_length)

    async def get(self, url: str) -> AbstractWebClientResponse:
        """Fetch a URL, following redirects."""
        if self._proxy or self._environment_has_proxies() or _is_aiohttp_replaced():
            return await self._through_aiohttp().get(url)
        return await super().get(url)

    async def send(self, request: HTTPRequest) -> AsyncioAnswer:
        """Make one request."""
        origin = origin_of(request.url)
        connections = self._opened.here() or await self._opened.made_here()
        data = _request_bytes(request, origin)
        connection, is_kept = await connections.take(origin, request.policy)
        answer = connection.ask(data)
        try:
            try:
                await answer.arrived()
            except (RemoteDisconnected, ConnectionError):
                # The server may have closed a connection that was kept open.
                if not is_kept or answer.has_begun or connections.is_closed:
                    raise
                connection, _ = await connections.take(origin, request.policy, is_new=True)
                answer = connection.ask(data)
                await answer.arrived()
        except BaseException:
            answer.close()
            raise
        return answer

    def proxy_for(self, url: str) -> str | None:
        """Return the proxy for a URL, None if there is none."""
        if self._proxy or self._environment_has_proxies():
            return self._through_aiohttp().proxy_for(url)
        return None

    def _environment_has_proxies(self) -> bool:
        if self._has_proxies is None:
            self._has_proxies = self._proxy is None and any(name != "no" for name in getproxies())
        return self._has_proxies

    def _through_aiohttp(self) -> AiohttpWebClient:
        if self._aiohttp is None:
            from usp.web_client.aiohttp_client import AiohttpWebClient  # imported only when needed: aiohttp is heavy

            self._aiohttp = AiohttpWebClient(**self._options)
            if self._has_own_limit:
                self._aiohttp.set_max_response_data_length(self._max_bytes)
            elif self._max_bytes is not None:
                self._aiohttp.limit_response_data_length(self._max_bytes)
        return self._aiohttp

    def _make_connections(self) -> Connections:
        connect, read = self._timeout
        return Connections(
            asyncio.get_running_loop(),
            tls_context(self._verify),
            most=self._max_connections,
            connect_seconds=connect,
            read_seconds=read,
            resolve=self._resolver,
        )


def _is_aiohttp_replaced() -> bool:
    """Return whether a mock makes the requests of aiohttp, as vcrpy does. It can do nothing before that is imported."""
    module = sys.modules.get("aiohttp.client")
    return module is not None and getattr(module.ClientSession._request, "__globals__", None) is not vars(module)


def _request_bytes(request: HTTPRequest, origin: Origin) -> bytes:
    """Return a request as it is sent. Its URL is normalized, so that it holds neither spaces nor line ends."""
    target = request.url.split("/", 3)[3]
    lines = [f"{name}: {value}" for name, value in request.headers.items()]
    if "Host" not in request.headers:  # see `headers_to_send`
        lines.insert(0, f"Host: {_host_header(origin)}")
    if _LINE_END.search("".join(lines)):
        raise ValueError("a header has more than one line")
    return "\r\n".join([f"GET /{target} HTTP/1.1", *lines, "\r\n"]).encode("latin-1")


@lru_cache(1024)
def _host_header(origin: Origin) -> str:
    scheme, host, port = origin
    host = f"[{host}]" if ":" in host else host
    return host if port == DEFAULT_PORTS[scheme] else f"{host}:{port}"
