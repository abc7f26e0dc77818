"""The asyncio client, on aiohttp.

It behaves as the requests client does, and says the same of what goes wrong. It reads no .netrc, and has no cookie jar.

A session of aiohttp belongs to one event loop. The client makes one when a loop first needs it, and closes it with the
client, or else when the loop ends: an asynchronous generator holds it, and every loop closes its generators at its end.

Connections go only to addresses that the policy allows. They are checked when a host is looked up, again when a socket
is made for one of them (addresses that stand in URLs pass there too), and at the other end of a connection before each
request that uses it.

All that depends on private names of aiohttp is in this module. `usp.web_client.http_client` follows redirects and
applies the request policy.
"""

from __future__ import annotations

import asyncio
import errno
import select
import socket
import ssl
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import suppress
from contextvars import ContextVar, Token
from functools import partial
from http import HTTPStatus
from http.client import HTTPException, RemoteDisconnected
from typing import Any, Self

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from usp.exceptions import InvalidArgumentError
from usp.origins import Origin, host_of, origin_of
from usp.web_client.abstract_client import WebClientErrorResponse
from usp.web_client.failures import TimedOutError, status_line
from usp.web_client.framing import end_of_head, is_interim, repaired_head
from usp.web_client.http_client import (
    MISTAKES,
    AbstractAsyncHTTPClient,
    AsyncHTTPAnswer,
    Fetch,
    HTTPRequest,
    TransferredResponse,
)
from usp.web_client.lookups import Resolver, look_up_async
from usp.web_client.policy import RefusedError
from usp.web_client.settings import (
    DEFAULT_TIMEOUT,
    DRAIN_SECONDS,
    MAX_INTERIM_ANSWERS,
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

_MAX_HEADER_BYTES = 65_536  # as in http.client
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
    errors = _ERRORS
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
            self.request_errors = (*_ERRORS, *MISTAKES)
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
        self._sessions: dict[asyncio.AbstractEventLoop, tuple[aiohttp.ClientSession, AsyncGenerator[Any]]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections that were made in this event loop."""
        _, keeper = self._sessions.pop(asyncio.get_running_loop(), (None, None))
        if keeper is not None:
            await keeper.aclose()

    async def send(self, request: HTTPRequest) -> _AiohttpAnswer:
        """Make one request."""
        session = await self._session_here()
        hop = _CURRENT.get()
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
        """Return the error of the standard library that says what one of aiohttp says."""
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

    def _connections(self, fetch: Fetch) -> _Hop:
        return _Hop(fetch)

    async def _session_here(self) -> aiohttp.ClientSession:
        """Return the session of this event loop."""
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
        connector = _CheckedConnector(
            limit=self._max_connections,
            ssl=self._context,
            resolver=_CheckedResolver(self._resolver),
            use_dns_cache=False,  # requests share its answers, and each must be checked by its own policy
            socket_factory=_checked_socket,
        )
        session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            timeout=self._timeout,
            max_line_size=_MAX_HEADER_BYTES,
            max_field_size=_MAX_HEADER_BYTES,
        )
        session._retry_connection = False  # see `send`; there is no public way to say so
        try:
            yield session
        finally:
            self._sessions.pop(loop, None)
            await session.close()


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

    def location(self) -> bytes | None:
        """Return the Location header as it came."""
        return next((value for name, value in self.response.raw_headers if name.lower() == b"location"), None)

    async def read(self) -> bytes:
        """Return the next piece of the body, empty at its end."""
        content = self.response.content
        return b"" if content.at_eof() else await content.readany()

    def unread(self) -> Iterable[bytes]:
        """Return what aiohttp drops if the connection breaks."""
        buffered: Iterable[bytes] = getattr(self.response.content, "_buffer", ())
        return buffered

    async def discard(self) -> None:
        """Read a small body, to reuse its connection; leave one that is large, endless or slow."""
        response = self.response
        length = response.content_length
        is_chunked = "chunked" in response.headers.get("Transfer-Encoding", "").lower()
        if response.content.at_eof() or not (is_chunked if length is None else length <= PIECE_BYTES):
            return
        size = 0
        with suppress(*_ERRORS):
            async with asyncio.timeout(DRAIN_SECONDS):
                while size <= PIECE_BYTES and (piece := await response.content.readany()):
                    size += len(piece)
        _CURRENT.get().count_discarded(size)


class _Hop:
    """The request that is being made, as the connections see it. Use it as a context, for a whole fetch."""

    __slots__ = ("_fetch", "_token", "host", "is_new", "is_proxied", "policy")

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self.policy = fetch.policy
        self.host = ""
        self.is_proxied = False
        self.is_new = False  # whether it needed a new connection

    def __enter__(self) -> Self:
        self._token: Token[_Hop] = _CURRENT.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _CURRENT.reset(self._token)

    def count_discarded(self, size: int) -> None:
        """Count bytes of a body that was read and dropped."""
        self._fetch.count_discarded(size)

    def check(self, address: str) -> None:
        """Raise `RefusedError` if the policy does not allow an address."""
        if not self.is_proxied:
            try:
                self.policy.check_peer(self.host, address)
            except RefusedError as refused:
                self._fetch.refused = refused
                raise

    def allowed(self, host: str, addresses: list[str]) -> list[str]:
        """Return those addresses of a host that the policy allows. Raise `RefusedError` if none is left."""
        if self.is_proxied:
            return addresses
        try:
            return self.policy.allowed_addresses(host, addresses)
        except RefusedError as refused:
            self._fetch.refused = refused
            raise


_CURRENT: ContextVar[_Hop] = ContextVar("usp hop")


class _Handler(ResponseHandler):
    """Receives answers. A body that cannot be continued ends there; aiohttp would wait forever for more.

    Its parser refuses an answer whose length is stated wrongly. So this hands over heads whole, with a length that the
    parser accepts.
    """

    _interim_answers = 0
    _head: bytes | None = None  # what has arrived of a head; None if none is expected
    is_idle = False  # whether no request uses the connection

    def set_response_params(self, **options: Any) -> None:
        """Prepare for the answer to a request."""
        self._head = b""
        super().set_response_params(**options)

    def data_received(self, data: bytes) -> None:
        """Receive some bytes. Those that nobody has asked for end the connection."""
        if data and self.is_idle:
            self.close()
            return
        if data and self._head is not None:
            data = self._without_head(self._head + data)
            if not data:
                self._reschedule_timeout()
                return
        super().data_received(data)

    def _without_head(self, data: bytes) -> bytes:
        """Hand over the heads at the start of the data. Return what follows them; nothing, if a head is not whole."""
        self._head = None
        while data and data[:5] == b"HTTP/"[: len(data)]:
            end = end_of_head(data)
            if not end and len(data) <= _MAX_HEADER_BYTES:
                self._head, data = data, b""
            if not end:
                break
            head, data = data[:end], data[end:]
            super().data_received(repaired_head(head))
            if not is_interim(head):
                break
            if not data:
                self._head = b""
        return data

    def is_connected(self) -> bool:
        """Return whether the connection can be used. An idle one with unread bytes cannot: they answer no request."""
        if not super().is_connected() or not self.is_idle:
            return super().is_connected()
        file = self.transport.get_extra_info("socket") if self.transport is not None else None
        return not (self._buffer or self._tail or (file is not None and _is_readable(file.fileno())))

    def feed_data(self, data: Any, *args: Any) -> None:
        """Receive the head of an answer, and count interim ones."""
        status = data[0].code
        if status == HTTPStatus.SWITCHING_PROTOCOLS:
            self.force_close()  # whatever follows, it is not the answer to another request
        is_flood = self._interim_answers > MAX_INTERIM_ANSWERS  # then nothing that follows counts
        self._interim_answers = self._interim_answers + 1 if status < HTTPStatus.OK or is_flood else 0
        if self._interim_answers <= MAX_INTERIM_ANSWERS:
            super().feed_data(data, *args)
        elif self._interim_answers == MAX_INTERIM_ANSWERS + 1:
            self.set_exception(HttpProcessingError(message=f"more than {MAX_INTERIM_ANSWERS} interim answers"))
            if self.transport is not None:
                self.transport.close()

    def connection_lost(self, exc: BaseException | None) -> None:
        """End the body that was being received, if it is not complete."""
        if self._head:
            data, self._head = self._head, None
            super().data_received(data)  # which says what is wrong with it
        body = getattr(self, "_payload", None)
        if exc is not None and body is not None and not body.is_eof() and body.exception() is None:
            # aiohttp would take a reset for the end of a body without a length.
            body.set_exception(aiohttp.ClientPayloadError(f"the connection broke: {exc}"))
        super().connection_lost(exc)
        if body is not None and not body.is_eof() and body.exception() is None:
            body.set_exception(aiohttp.ClientPayloadError("the body is not complete"))


class _CheckedConnector(aiohttp.TCPConnector):
    """Connections that are checked before each request: another tree may have opened them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        handler: type[ResponseHandler] = _Handler
        self._factory = partial(handler, loop=self._loop)

    async def connect(self, req: Any, traces: Any, timeout: Any) -> aiohttp.connector.Connection:
        """Return an open connection, or a new one."""
        try:
            connection = await super().connect(req, traces, timeout)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._conns:
                raise
            self._close_idle(0)
            connection = await super().connect(req, traces, timeout)
        if isinstance(connection.protocol, _Handler):
            connection.protocol.is_idle = False
        peer = connection.transport.get_extra_info("peername") if connection.transport is not None else None
        try:
            if peer:
                _CURRENT.get().check(peer[0])
        except RefusedError:
            connection.close()
            raise
        return connection

    async def _create_connection(self, *arguments: Any, **options: Any) -> ResponseHandler:
        _CURRENT.get().is_new = True
        return await super()._create_connection(*arguments, **options)

    def _release(self, key: Any, protocol: ResponseHandler, *arguments: Any, **options: Any) -> None:
        """Keep a connection that is no longer in use, and close the oldest idle ones if there are too many.

        aiohttp's limit counts connections in use only: a client that goes from site to site would run out of files.
        """
        super()._release(key, protocol, *arguments, **options)
        if isinstance(protocol, _Handler):
            protocol.is_idle = True
        self._close_idle(self.limit)

    def _close_idle(self, most: int) -> None:
        """Leave the idle connections of at most this many hosts open."""
        while len(self._conns) > most:
            for handler, _ in self._conns.pop(next(iter(self._conns))):
                handler.close()


def _is_readable(file: int) -> bool:
    """Return whether bytes, or the end of a connection, wait to be read."""
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(file, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([file], [], [], 0)[0])


def _checked_socket(info: Any) -> socket.socket:
    """Return a socket for an address that aiohttp is about to connect to, from a lookup or from a URL."""
    family, kind, protocol, _, address = info
    _CURRENT.get().check(address[0])
    return socket.socket(family, kind, protocol)


class _CheckedResolver(AbstractResolver):
    """Returns those addresses of a host that the policy allows."""

    def __init__(self, resolve: Resolver | None) -> None:
        self._resolve = resolve

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Look up a host."""
        resolve = self._resolve or partial(socket.getaddrinfo, family=family, type=socket.SOCK_STREAM)
        found = await look_up_async(resolve, host, port)
        addresses = _CURRENT.get().allowed(host, [_with_scope(info[4]) for info in found])
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "no addresses")
        return [
            ResolveResult(
                hostname=host, host=address, port=port, family=socket.AF_UNSPEC, proto=0, flags=socket.AI_NUMERICHOST
            )
            for address in addresses
        ]

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


def _with_scope(address: Any) -> str:
    text = str(address[0])
    return f"{text}%{address[3]}" if len(address) == 4 and address[3] and "%" not in text else text
