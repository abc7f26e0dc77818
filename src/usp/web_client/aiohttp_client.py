"""The asyncio client, on aiohttp.

It behaves as the requests client does, and says the same of what goes wrong. It reads no .netrc, and has no cookie jar.

A session of aiohttp belongs to one event loop. The client makes one when a loop first needs it, and closes it with the
client, or else when the loop ends.

`usp.web_client.http_client` follows redirects and applies the request policy. `usp.web_client.aiohttp_internals` has
the connections, which check addresses.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from http.client import HTTPException, RemoteDisconnected
from typing import Any, Self

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from usp.exceptions import InvalidArgumentError
from usp.origins import Origin, host_of, origin_of
from usp.web_client.abstract_client import WebClientErrorResponse
from usp.web_client.aiohttp_internals import (
    CURRENT,
    ERRORS,
    CheckedConnector,
    CheckedResolver,
    Hop,
    buffered_pieces,
    check_guards,
    checked_socket,
    never_repeat_requests,
)
from usp.web_client.failures import TimedOutError, status_line
from usp.web_client.framing import MAX_HEADER_BYTES
from usp.web_client.http_client import MISTAKES, AbstractAsyncHTTPClient
from usp.web_client.http_fetch import Fetch
from usp.web_client.http_messages import AsyncHTTPAnswer, HTTPRequest
from usp.web_client.http_responses import TransferredResponse
from usp.web_client.lookups import Resolver
from usp.web_client.per_loop import PerLoop
from usp.web_client.settings import (
    DEFAULT_TIMEOUT,
    DRAIN_SECONDS,
    MAX_REMEMBERED_ORIGINS,
    PIECE_BYTES,
    Timeout,
    checked_timeout,
    checked_verify,
    getproxies,
    proxy_for_origin,
    tls_context,
)

__all__ = ["AiohttpWebClient", "AiohttpWebClientErrorResponse", "AiohttpWebClientSuccessResponse"]


class AiohttpWebClientSuccessResponse(TransferredResponse):
    """A response of aiohttp, its body read up to the limit."""

    def __init__(
        self, aiohttp_response: aiohttp.ClientResponse, url: str, max_response_data_length: int | None = None
    ) -> None:
        super().__init__(max_response_data_length)
        self._status = aiohttp_response.status
        self._reason = aiohttp_response.reason
        self._headers = aiohttp_response.headers
        self._url = url

    def status_code(self) -> int:
        """Return the HTTP status."""
        return self._status

    def status_message(self) -> str:
        """Return the server's words for the status, or the standard ones."""
        return status_line(self._status, self._reason).partition(" ")[2]

    def header(self, case_insensitive_name: str) -> str | None:
        """Return the value of a header."""
        values = self._headers.getall(case_insensitive_name, None)
        if values is None:
            return None
        value = ", ".join(values)
        return value if value.isascii() else value.encode("utf-8", "surrogateescape").decode("latin-1")

    def url(self) -> str:
        """Return the URL after redirects."""
        return self._url


class AiohttpWebClientErrorResponse(WebClientErrorResponse):
    """A request that failed."""


class AiohttpWebClient(AbstractAsyncHTTPClient):
    """A client that keeps its connections open as long as it, or the event loop, lives.

    `verify` is False, or the path of a CA bundle. `user_agent` is the User-Agent header to send. `headers` are for the
    homepage's scheme, host and port, and go nowhere else. `proxy` is a URL; without one, the environment decides.
    `timeout` is seconds, or a pair: to connect, and between two reads. A request as a whole has a limit of its own:
    `Limits.request_seconds`. `max_connections` limits the connections to all hosts together.
    """

    checks_addresses = True
    errors = ERRORS
    proxy_errors = (aiohttp.ClientProxyConnectionError, aiohttp.ClientHttpProxyError)
    error_response = AiohttpWebClientErrorResponse

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
        if type(self) is AiohttpWebClient:
            self.request_errors = (*ERRORS, *MISTAKES)
        self._verify = checked_verify(verify)
        self._proxy = proxy
        connect, read = checked_timeout(timeout)
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect, sock_read=read)
        if not isinstance(max_connections, int) or max_connections < 1:
            raise InvalidArgumentError(f"max_connections must be an integer, 1 or more, not {max_connections!r}")
        self._max_connections = max_connections
        self._context: ssl.SSLContext | None = None
        self._environment: dict[str, str] | None = None  # its proxies, as they were when first needed
        self._proxies: dict[Origin, str | None] = {}
        self._sessions = PerLoop(self._make_session, aiohttp.ClientSession.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections that were made in this event loop."""
        await self._sessions.close_here()

    def close_idle(self, host: str) -> None:
        """Close the connections to a host that no request of this event loop uses."""
        session = self._sessions.here()
        if session is not None and isinstance(session.connector, CheckedConnector):
            session.connector.close_idle_of(host)

    async def send(self, request: HTTPRequest) -> _AiohttpAnswer:
        """Make one request."""
        await check_guards()
        session = await self._sessions.made_here()
        hop = CURRENT.get()
        proxy = self.proxy_for(request.url)
        hop.host = host_of(request.url)
        hop.is_proxied = proxy is not None
        if proxy is not None:
            request.policy.mark_resolved_elsewhere(hop.host)
        url = URL(request.url, encoded=True)
        ask = partial(session.get, url, headers=request.headers, allow_redirects=False, proxy=proxy)
        hop.is_new = False
        try:
            return _AiohttpAnswer(await ask())
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            # The server may have closed a connection that was kept open. aiohttp by itself would repeat the request on
            # a new connection too, and trees make their own retries for that.
            if hop.is_new:
                raise
            return _AiohttpAnswer(await ask())

    def proxy_for(self, url: str) -> str | None:
        """Return the proxy for a URL, None if there is none."""
        if self._proxy is not None:
            return self._proxy or None  # an empty one: none, whatever the environment says
        if self._environment is None:
            self._environment = getproxies()
        if not self._environment:
            return None
        origin = origin_of(url)
        if origin not in self._proxies:
            if len(self._proxies) >= MAX_REMEMBERED_ORIGINS:
                self._proxies.clear()
            self._proxies[origin] = proxy_for_origin(self._environment, origin)
        return self._proxies[origin]

    def success_response(self, answer: Any, url: str, max_bytes: int | None) -> AiohttpWebClientSuccessResponse:
        """Return the response of aiohttp."""
        return AiohttpWebClientSuccessResponse(answer.response, url, max_bytes)

    def standard_error(self, error: BaseException) -> BaseException:
        """Convert an error of aiohttp to the one of the standard library that means the same."""
        match error:
            case aiohttp.ConnectionTimeoutError():
                return TimedOutError(self._timeout.sock_connect)
            case aiohttp.ServerTimeoutError():
                return TimedOutError(self._timeout.sock_read)
            case aiohttp.ServerDisconnectedError() | aiohttp.EofStream():
                return RemoteDisconnected("")
            case aiohttp.ClientHttpProxyError():
                return OSError(f"Tunnel connection failed: {error.status} {error.message}")
            case aiohttp.ClientResponseError():
                return HTTPException(" ".join(error.message.split()))
            case HttpProcessingError():
                return HTTPException(" ".join(str(error.message).split()))
        return error

    def _connections(self, fetch: Fetch) -> Hop:
        return Hop(fetch)

    def _make_session(self) -> aiohttp.ClientSession:
        if self._context is None:
            self._context = tls_context(self._verify)
        connector = CheckedConnector(
            limit=self._max_connections,
            ssl=self._context,
            resolver=CheckedResolver(self._resolver),
            use_dns_cache=False,  # requests share its answers, and each must be checked by its own policy
            socket_factory=checked_socket,
        )
        session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            timeout=self._timeout,
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
        )
        never_repeat_requests(session)  # see `send`
        return session


class _AiohttpAnswer(AsyncHTTPAnswer):
    """The answer of aiohttp."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        # Closing does nothing to a connection that is back in the pool.
        # Redirects are switched off, so the URL needs no check.
        super().__init__("", response.status, response.reason, (), response.content.readany, response.close)
        self.response = response

    def header(self, name: str) -> str | None:
        """Return the first value of a header."""
        return self.response.headers.get(name)

    def values(self, name: str) -> list[str]:
        """Return all values of a header."""
        return self.response.headers.getall(name, [])

    def all_headers(self) -> list[tuple[str, str]]:
        """Return all headers in their order, as Latin-1, which keeps every byte."""
        return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self.response.raw_headers]

    def location(self) -> bytes | None:
        """Return the Location header as it came."""
        return next((value for name, value in self.response.raw_headers if name.lower() == b"location"), None)

    async def read(self) -> bytes:
        """Return the next piece of the body, empty at its end."""
        content = self.response.content
        return b"" if content.at_eof() else await content.readany()

    def unread(self) -> Iterable[bytes]:
        """Return what aiohttp drops if the connection breaks."""
        return buffered_pieces(self.response.content)

    async def discard(self) -> None:
        """Read a small body, to reuse its connection; leave one that is large, endless or slow."""
        response = self.response
        length = response.content_length
        is_chunked = "chunked" in response.headers.get("Transfer-Encoding", "").lower()
        if response.content.at_eof() or not (is_chunked if length is None else length <= PIECE_BYTES):
            return
        with suppress(*ERRORS):
            async with asyncio.timeout(DRAIN_SECONDS):
                while self.discarded <= PIECE_BYTES and (piece := await response.content.readany()):
                    self.discarded += len(piece)
