"""Everything of usp that uses private names of aiohttp.

Connections go only to addresses that the policy allows. They are checked when a host is looked up, again when a socket
is made for one of them (addresses that stand in URLs pass there too), and at the other end of a connection before each
request that uses it. Bodies that break off are kept as far as they have arrived.

Some of that aiohttp has no public way to do. A new release may rename what usp replaces, and then it silently does
nothing. Therefore all of that is in this module, and `check_guards` tries it before the first request of a process.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable
from contextvars import ContextVar, Token
from functools import partial
from http import HTTPStatus
from typing import Any, Self

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError

from usp.web_client.asyncio_connections import is_readable
from usp.web_client.framing import MAX_HEADER_BYTES, end_of_head, is_interim, repaired_head
from usp.web_client.http_fetch import Fetch
from usp.web_client.lookups import Resolver, look_up_async
from usp.web_client.policy import RefusedError
from usp.web_client.self_check import (
    REFUSED_HOST,
    REFUSED_PORT,
    TRIAL_SECONDS,
    library_function,
    refused_fetch,
    require,
    unguarded,
)
from usp.web_client.settings import MAX_INTERIM_ANSWERS

__all__ = [
    "CURRENT",
    "ERRORS",
    "CheckedConnector",
    "CheckedResolver",
    "Hop",
    "buffered_pieces",
    "check_guards",
    "checked_socket",
    "never_repeat_requests",
]

#: What goes wrong in aiohttp and below it.
ERRORS = (aiohttp.ClientError, aiohttp.EofStream, HttpProcessingError, OSError, ValueError, EOFError)


class Hop:
    """The request that is being made, as the connections see it. Use it as a context, for a whole fetch."""

    __slots__ = ("_fetch", "_token", "host", "is_new", "is_proxied", "policy")

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self.policy = fetch.policy
        self.host = ""
        self.is_proxied = False
        self.is_new = False  # whether it needed a new connection

    def __enter__(self) -> Self:
        self._token: Token[Hop] = CURRENT.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        CURRENT.reset(self._token)

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


CURRENT: ContextVar[Hop] = ContextVar("usp hop")


class _Handler(ResponseHandler):
    """Receives answers. A body that cannot be continued ends there; aiohttp would wait forever for more.

    Its parser refuses an answer whose length is stated wrongly. So this hands over heads whole, with a length that the
    parser accepts.
    """

    _interim_answers = 0
    _last_data_at = 0.0  # when something has arrived, by the loop's clock
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
            if not end:
                if len(data) > MAX_HEADER_BYTES:
                    self._refuse(f"the header has more than {MAX_HEADER_BYTES:,} bytes")
                else:
                    self._head = data
                return b""
            head, data = data[:end], data[end:]
            super().data_received(repaired_head(head))
            if not is_interim(head):
                break
            if not data:
                self._head = b""
        return data

    def _reschedule_timeout(self) -> None:
        """Start the timeout between two reads again. The timer stays as it is, and looks at the clock when it ends."""
        self._last_data_at = self._loop.time()
        if self._read_timeout_handle is None:
            super()._reschedule_timeout()

    def _on_read_timeout(self) -> None:
        """End the answer if nothing has arrived for so long; else set the timer for the rest of the time."""
        left = 0.0 if self._read_timeout is None else self._last_data_at + self._read_timeout - self._loop.time()
        if left > 0:
            self._read_timeout_handle = self._loop.call_later(left, self._on_read_timeout)
        else:
            super()._on_read_timeout()

    def is_connected(self) -> bool:
        """Return whether the connection can be used. An idle one with unread bytes cannot: they answer no request."""
        if not super().is_connected() or not self.is_idle:
            return super().is_connected()
        file = self.transport.get_extra_info("socket") if self.transport is not None else None
        return not (self._buffer or self._tail or (file is not None and is_readable(file.fileno())))

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
            self._refuse(f"more than {MAX_INTERIM_ANSWERS} interim answers")

    def _refuse(self, why: str) -> None:
        """End an answer that is not valid, and its connection."""
        self.set_exception(HttpProcessingError(message=why))
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


class CheckedConnector(aiohttp.TCPConnector):
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
                CURRENT.get().check(peer[0])
        except RefusedError:
            connection.close()
            raise
        return connection

    async def _create_connection(self, *arguments: Any, **options: Any) -> ResponseHandler:
        CURRENT.get().is_new = True
        return await super()._create_connection(*arguments, **options)

    def _release(self, key: Any, protocol: ResponseHandler, *arguments: Any, **options: Any) -> None:
        """Keep a connection that is no longer in use, and close the oldest idle ones if there are too many.

        aiohttp's limit counts connections in use only: a client that goes from site to site would run out of files.
        """
        super()._release(key, protocol, *arguments, **options)
        if isinstance(protocol, _Handler):
            protocol.is_idle = True
        self._close_idle(self.limit)

    def close_idle_of(self, host: str) -> None:
        """Close the idle connections to a host."""
        for key in [key for key in self._conns if key.host == host]:
            for handler, _ in self._conns.pop(key):
                handler.close()

    def _close_idle(self, most: int) -> None:
        """Leave the idle connections of at most this many hosts open."""
        while len(self._conns) > most:
            for handler, _ in self._conns.pop(next(iter(self._conns))):
                handler.close()


def checked_socket(info: Any) -> socket.socket:
    """Return a socket for an address that aiohttp is about to connect to, from a lookup or from a URL."""
    family, kind, protocol, _, address = info
    CURRENT.get().check(address[0])
    return socket.socket(family, kind, protocol)


class CheckedResolver(AbstractResolver):
    """Returns those addresses of a host that the policy allows."""

    def __init__(self, resolve: Resolver | None) -> None:
        self._resolve = resolve

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Look up a host."""
        resolve = self._resolve or partial(socket.getaddrinfo, family=family, type=socket.SOCK_STREAM)
        found = await look_up_async(resolve, host, port)
        addresses = CURRENT.get().allowed(host, [_with_scope(info[4]) for info in found])
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


def never_repeat_requests(session: aiohttp.ClientSession) -> None:
    """Switch off that a session repeats a request when its connection breaks."""
    session._retry_connection = False


def buffered_pieces(content: aiohttp.StreamReader) -> Iterable[bytes]:
    """Return what has arrived of a body, and was not read: aiohttp drops it if the connection breaks."""
    buffered: Iterable[bytes] = getattr(content, "_buffer", ())
    return buffered


class _TrialConnector(CheckedConnector):
    """The connector of a self-check."""

    is_used = False

    async def connect(self, req: Any, traces: Any, timeout: Any) -> aiohttp.connector.Connection:
        """Note that aiohttp asks here for each connection, and connect."""
        self.is_used = True
        return await super().connect(req, traces, timeout)


_LIBRARIES = ("aiohttp",)
_PASSED: set[str] = set()  # the self-checks that this process has passed


async def check_guards() -> None:
    """Raise `UnguardedClientError` if aiohttp does not call the guards of this module.

    Tasks and event loops may call this at once. While a mock replaces `ClientSession._request`, only the names are
    checked, and the rest once the mock is gone.
    """
    if _PASSED:
        return
    request = library_function(aiohttp.client, aiohttp.ClientSession, "_request")
    connector = _TrialConnector(socket_factory=checked_socket)
    fetch = refused_fetch()
    timeout = aiohttp.ClientTimeout(total=TRIAL_SECONDS)
    async with aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), timeout=timeout
    ) as session:
        require(_LIBRARIES, _private_names(connector, session))
        if request is None:
            return
        try:
            with Hop(fetch) as hop:
                hop.host = REFUSED_HOST
                (await request(session, "GET", f"http://{REFUSED_HOST}:{REFUSED_PORT}/")).close()
        except ERRORS:
            pass  # as it should be, if the guard has raised it
        except Exception as error:
            raise unguarded(_LIBRARIES, f"usp's guards raise {error!r}") from error
    if fetch.refused is None or not (connector.is_used and hop.is_new):
        raise unguarded(_LIBRARIES, "an attempt to connect to a private address passed a guard")
    _PASSED.add("session")


def _private_names(connector: aiohttp.TCPConnector, session: aiohttp.ClientSession) -> Iterable[tuple[object, str]]:
    """Return everything that this module replaces or reads, and that aiohttp does not document."""
    handler = ResponseHandler(connector._loop)
    return (
        (connector, "connect _create_connection _release _conns _factory _loop"),
        (session, "_request _retry_connection"),
        (handler, "set_response_params data_received feed_data is_connected force_close set_exception connection_lost"),
        (handler, "_reschedule_timeout _on_read_timeout _read_timeout _read_timeout_handle _drop_timeout _loop"),
        (handler, "_buffer _tail _payload"),
        (aiohttp.StreamReader(handler, 1, loop=connector._loop), "_buffer at_eof is_eof exception set_exception"),
    )
