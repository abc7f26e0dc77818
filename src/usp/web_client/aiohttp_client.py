"""The asyncio client: aiohttp.

It behaves as the client of requests does, under the same policy, and says the same of what goes wrong. Bodies are kept
as they were transferred. Nothing is read from .netrc, and there is no cookie jar.

A session of aiohttp belongs to the event loop that it was made in. One is made when a loop first needs it, and is
closed with the client, or else when the loop ends: an asynchronous generator holds it, which every loop closes at its
end.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from functools import partial
from http.client import HTTPException, RemoteDisconnected
from typing import Any, Self

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from usp.exceptions import InvalidArgumentError
from usp.origins import Origin, host_of, origin_of
from usp.web_client.abstract_client import (
    AbstractAsyncWebClient,
    AbstractWebClientResponse,
    WebClientErrorResponse,
)
from usp.web_client.aiohttp_connections import CURRENT, CheckedConnector, CheckedResolver, Hop, checked_socket
from usp.web_client.answers import (
    DEFAULT_MAX_BYTES,
    DEFAULT_TIMEOUT,
    DRAIN_SECONDS,
    PIECE_BYTES,
    TransferredResponse,
    authorized,
    ended,
    headers_to_send,
    redirected,
    status_line,
    with_additions,
)
from usp.web_client.environment import checked_verify, getproxies, proxy_of, tls_context
from usp.web_client.lookups import Resolver
from usp.web_client.policy import RequestPolicy, bytes_allowed, policy_for
from usp.web_client.redirects import Redirects

__all__ = ["AiohttpWebClient", "AiohttpWebClientErrorResponse", "AiohttpWebClientSuccessResponse"]

Timeout = float | tuple[float | None, float | None] | None

_MAX_HEADER_BYTES = 65_536  # as http.client has it
_MAX_REMEMBERED_ORIGINS = 256
_ERRORS = (aiohttp.ClientError, aiohttp.EofStream, HttpProcessingError, OSError, ValueError, EOFError)


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
        """The HTTP status."""
        return self._status

    def status_message(self) -> str:
        """The server's words for the status, or the usual ones."""
        return status_line(self._status, self._reason).partition(" ")[2]

    def header(self, case_insensitive_name: str) -> str | None:
        """The value of a header."""
        values = self._headers.getall(case_insensitive_name, None)
        if values is None:
            return None
        value = ", ".join(values)
        return value if value.isascii() else value.encode("utf-8", "surrogateescape").decode("latin-1")

    def url(self) -> str:
        """The URL after redirects."""
        return self._url


class AiohttpWebClientErrorResponse(WebClientErrorResponse):
    """A request that failed."""


class AiohttpWebClient(AbstractAsyncWebClient):
    """A client that keeps its connections for as long as it, or the event loop, lives.

    `verify` is False, or the path of a CA bundle. `user_agent` is the name that it goes by. `headers` are for the
    homepage's scheme, host and port, and go nowhere else. `proxy` is a URL; without one, the environment is asked.
    `timeout` is seconds, or a pair: to connect, and between two reads; a request as a whole has a limit of its own:
    `Limits.request_seconds`. `max_connections` counts those to all hosts.
    """

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
        self._headers, self._home_headers = headers_to_send(user_agent, headers)
        self._verify = checked_verify(verify)
        self._proxy = proxy
        self._timeout = _checked_timeout(timeout)
        if not isinstance(max_connections, int) or max_connections < 1:
            raise InvalidArgumentError(f"max_connections must be a whole number, 1 or more, not {max_connections!r}")
        self._max_connections = max_connections
        self._resolve = _resolve
        self._context: ssl.SSLContext | None = None
        self._environment: dict[str, str] | None = None  # the proxies that it named when they were first asked for
        self._proxies: dict[Origin, str | None] = {}
        self._sessions: dict[asyncio.AbstractEventLoop, tuple[aiohttp.ClientSession, AsyncGenerator[Any]]] = {}
        self._max_bytes: int | None = DEFAULT_MAX_BYTES
        self._has_own_limit = False

    @property
    def user_agent(self) -> str:
        """The name that the client goes by, as it stands in the User-Agent header."""
        return self._headers["User-Agent"]

    def set_max_response_data_length(self, max_response_data_length: int | None) -> None:
        """Set how many bytes of a body are read at most; None or 0 for no limit."""
        self._max_bytes = max_response_data_length or None
        self._has_own_limit = True

    def limit_response_data_length(self, max_response_data_length: int) -> None:
        """Set the limit, unless the caller has set one."""
        if not self._has_own_limit:
            self._max_bytes = max_response_data_length

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections that were made in this event loop."""
        _, keeper = self._sessions.pop(asyncio.get_running_loop(), (None, None))
        if keeper is not None:
            await keeper.aclose()

    async def get(self, url: str) -> AbstractWebClientResponse:
        """Fetch a URL, following redirects."""
        policy = policy_for(url)
        redirects = Redirects(url, policy)
        if reason := redirects.refusal():
            return AiohttpWebClientErrorResponse(reason, retryable=False, status=None)
        loop = asyncio.get_running_loop()
        deadline = policy.deadline()
        allowed = deadline - time.monotonic()
        scope = asyncio.timeout(allowed)
        fetch = _Fetch(self, redirects, policy)

        def end_now() -> None:
            with suppress(RuntimeError):  # it has just ended by itself
                scope.reschedule(loop.time())

        def cancelled() -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(end_now)

        token = CURRENT.set(fetch.hop)
        try:
            if allowed <= 0:
                raise TimeoutError
            with policy.calling_on_cancel(cancelled):
                async with scope:
                    return await fetch.run()
        except _ERRORS as error:
            return fetch.failed(error, deadline if allowed <= 0 or scope.expired() else None)
        finally:
            CURRENT.reset(token)

    async def _session_here(self) -> aiohttp.ClientSession:
        """The session of this event loop."""
        loop = asyncio.get_running_loop()
        found = self._sessions.get(loop)
        if found is None:
            for other in [other for other in self._sessions if other.is_closed()]:
                self._sessions.pop(other, None)
            keeper = self._kept_session(loop)
            found = self._sessions[loop] = (await anext(keeper), keeper)  # nothing is awaited before that
        return found[0]

    async def _kept_session(self, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[aiohttp.ClientSession]:
        if self._context is None:
            self._context = tls_context(self._verify)
        connector = CheckedConnector(
            limit=self._max_connections,
            ssl=self._context,
            resolver=CheckedResolver(self._resolve),
            use_dns_cache=False,  # its answers are shared, and each request is to be checked under its own policy
            socket_factory=checked_socket,
        )
        session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            timeout=self._timeout,
            max_line_size=_MAX_HEADER_BYTES,
            max_field_size=_MAX_HEADER_BYTES,
        )
        session._retry_connection = False  # see `_Fetch._answer`; there is no public way to say so
        try:
            yield session
        finally:
            self._sessions.pop(loop, None)
            await session.close()

    def _proxy_for(self, url: str) -> str | None:
        if self._proxy is not None:
            return self._proxy or None  # an empty one: none, whatever the environment says
        if self._environment is None:
            self._environment = getproxies()
        if not self._environment:
            return None
        origin = origin_of(url)
        if origin not in self._proxies:
            if len(self._proxies) >= _MAX_REMEMBERED_ORIGINS:
                self._proxies.clear()
            self._proxies[origin] = proxy_of(self._environment, origin)
        return self._proxies[origin]


def _checked_timeout(timeout: Timeout) -> aiohttp.ClientTimeout:
    pair = timeout if isinstance(timeout, tuple) else (timeout, timeout)
    is_good = [seconds is None or (isinstance(seconds, (int, float)) and seconds > 0) for seconds in pair]
    if len(pair) != 2 or not all(is_good):
        raise InvalidArgumentError(f"timeout must be seconds over 0, a pair of such, or None, not {timeout!r}")
    return aiohttp.ClientTimeout(total=None, sock_connect=pair[0], sock_read=pair[1])


class _Fetch:
    """One URL on its way to an answer."""

    __slots__ = ("_client", "_content", "_policy", "_redirects", "_success", "hop")

    def __init__(self, client: AiohttpWebClient, redirects: Redirects, policy: RequestPolicy) -> None:
        self._client = client
        self._redirects = redirects
        self._policy = policy
        self._success: AiohttpWebClientSuccessResponse | None = None
        self._content: aiohttp.StreamReader | None = None
        self.hop = Hop(policy)

    async def run(self) -> AbstractWebClientResponse:
        """The answer after redirects."""
        session = await self._client._session_here()
        while True:
            response = await self._answer(session)
            try:
                if 200 <= response.status < 300:
                    return await self._whole(response)
                await _drop_body(response)
                if (failed := self._redirected(response)) is not None:
                    return failed
            finally:
                response.close()  # does nothing to a connection that has been released

    async def _answer(self, session: aiohttp.ClientSession) -> aiohttp.ClientResponse:
        """The answer to one request."""
        url, authorization = authorized(self._redirects.url)
        headers = self._client._home_headers if self._policy.is_home(url) else self._client._headers
        headers = with_additions(headers, authorization, self._redirects.cookie())
        proxy = self._client._proxy_for(url)
        self.hop.host = host_of(url)
        self.hop.is_proxied = proxy is not None
        if proxy is not None:
            self._policy.mark_resolved_elsewhere(self.hop.host)
        ask = partial(session.get, URL(url, encoded=True), headers=headers, allow_redirects=False, proxy=proxy)
        self.hop.is_new = False
        try:
            return await ask()
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            # A connection that was kept may have been closed since then. aiohttp by itself would make a second request
            # after a new one, too, and trees have retries of their own for that.
            if self.hop.is_new:
                raise
            return await ask()

    async def _whole(self, response: aiohttp.ClientResponse) -> AiohttpWebClientSuccessResponse:
        """A success with its body."""
        limit = bytes_allowed(self._client._max_bytes, self._client._has_own_limit)
        success = AiohttpWebClientSuccessResponse(response, self._redirects.url, limit)
        self._success, self._content = success, response.content
        content = response.content
        while not content.at_eof() and success._receive(await content.readany()):
            pass
        success._end()
        return success

    def _redirected(self, response: aiohttp.ClientResponse) -> AiohttpWebClientErrorResponse | None:
        """Go where an answer that is no success leads; the error, if it leads nowhere."""
        return redirected(
            AiohttpWebClientErrorResponse,
            self._redirects,
            response.status,
            response.reason,
            response.headers.get("Retry-After"),
            next((value for name, value in response.raw_headers if name.lower() == b"location"), None),
            response.headers.getall("Set-Cookie", ()),
        )

    def failed(self, error: BaseException, deadline: float | None) -> AiohttpWebClientErrorResponse:
        """The response for a request that ended with an error, or by its deadline."""
        if self._success is not None:
            # What has come but was not read yet is given up by aiohttp if the connection breaks.
            for piece in getattr(self._content, "_buffer", ()):
                self._success._receive(piece)
        return ended(
            AiohttpWebClientErrorResponse,
            _plain(error),
            self._redirects,
            self._policy,
            refused=self.hop.refused,
            deadline=deadline,
            success=self._success,
        )


def _plain(error: BaseException) -> BaseException:
    """The error of the standard library that says what one of aiohttp does."""
    match error:
        case aiohttp.ServerDisconnectedError() | aiohttp.EofStream():
            return RemoteDisconnected("")
        case aiohttp.ClientHttpProxyError():
            return OSError(f"Tunnel connection failed: {error.status} {error.message}")
        case aiohttp.ClientResponseError():
            return HTTPException(" ".join(error.message.split()))
        case HttpProcessingError():
            return HTTPException(" ".join(str(error.message).split()))
    return error


async def _drop_body(response: aiohttp.ClientResponse) -> None:
    """Read a small body, so that its connection can be used again; one that is large, endless or slow is left."""
    length = response.content_length
    is_chunked = "chunked" in response.headers.get("Transfer-Encoding", "").lower()
    if response.content.at_eof() or not (is_chunked if length is None else length <= PIECE_BYTES):
        return
    size = 0
    with suppress(*_ERRORS):
        async with asyncio.timeout(DRAIN_SECONDS):
            while size <= PIECE_BYTES and (piece := await response.content.readany()):
                size += len(piece)
