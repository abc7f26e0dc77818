"""One fetch of the requests client, as its connections see it, and the sockets that they use.

requests and urllib3 know a timeout between two reads, but none for a request as a whole, and they connect to whatever
address a name resolves to. Both can be changed at the socket only. A `TimedSocket` never waits longer than its request
has time left, and the address at the other end is checked before each request, on a new connection or a reused one.

A socket finds its request by the `Exchange` that it is lent to, one for each fetch of the client.
`usp.web_client.requests_internals` makes urllib3 use these sockets. Here, no private name of a library is used.
"""

from __future__ import annotations

import errno
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar, Token
from typing import Any, Self, TypeVar

import requests
import urllib3
from urllib3.exceptions import LocationValueError
from urllib3.util.connection import allowed_gai_family

from usp.web_client.http_fetch import Fetch
from usp.web_client.lookups import AddressInfo, Resolver, look_up
from usp.web_client.policy import RefusedError, seconds_until
from usp.web_client.settings import DRAIN_SECONDS, PIECE_BYTES

__all__ = ["CURRENT", "ERRORS", "Exchange", "LentSocket", "TimedSocket", "TimedTLSSocket", "resolve"]

Result = TypeVar("Result")

#: What goes wrong in requests, urllib3 and below them. They raise a bare ValueError for some odd URLs and headers.
ERRORS = (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError)


def resolve(host: str, port: int) -> Sequence[AddressInfo]:
    """Return the addresses of a host, of the kinds that urllib3 connects to."""
    return socket.getaddrinfo(host, port, allowed_gai_family(), socket.SOCK_STREAM)


class Exchange:
    """One fetch with all its redirects, as the connections see it. Use it as a context, in one thread."""

    __slots__ = ("_fetch", "_lent", "_resolve", "_token", "cookies", "deadline", "max_bytes", "policy", "target")

    def __init__(self, fetch: Fetch, resolve: Resolver) -> None:
        self._fetch = fetch
        self.policy = fetch.policy
        self.deadline = fetch.deadline
        self.max_bytes = fetch.max_bytes()
        #: What to request, exactly as it stands in the request; None to leave that to requests.
        self.target: str | None = None
        #: The cookies that redirects have set, if a caller's session makes the requests.
        self.cookies: requests.cookies.RequestsCookieJar | None = None
        self._resolve = resolve
        self._lent: dict[LentSocket, AbstractContextManager[None]] = {}

    def __enter__(self) -> Self:
        self._token: Token[Exchange | None] = CURRENT.set(self)
        return self

    def __exit__(self, error: object, *_: object) -> None:
        CURRENT.reset(self._token)
        for connection in list(self._lent):
            self.give_back(connection)
            if error is not None:
                connection.close_now()  # nobody else knows of it, if a hook of the caller's has raised

    def seconds_left(self) -> float:
        """Return the seconds until the deadline. Raise `TimeoutError` if none are left."""
        return seconds_until(self.deadline)

    def count_discarded(self, size: int) -> None:
        """Count bytes of a body that was read and dropped."""
        self._fetch.count_discarded(size)

    def drain(self, response: requests.Response) -> None:
        """Read the body of an answer if it is small, to reuse its connection, and close the answer."""
        raw = response.raw
        if raw is None:
            return
        length = getattr(raw, "length_remaining", None)
        deadline = self.deadline
        try:
            if length <= PIECE_BYTES if isinstance(length, int) else getattr(raw, "chunked", False) is True:
                self.deadline = min(deadline, time.monotonic() + DRAIN_SECONDS)
                self.count_discarded(len(raw.read(PIECE_BYTES, decode_content=False)))
        except ERRORS:
            pass  # nobody needs this body
        finally:
            self.deadline = deadline
            raw.close()

    def lend(self, connection: LentSocket) -> None:
        """Let this fetch use a socket, until it gives the socket back or ends."""
        using = self.policy.shutting_down_on_cancel(connection)
        self._ask(using.__enter__)
        self._lent[connection] = using
        connection.exchange = self

    def give_back(self, connection: object) -> None:
        """Take a socket from this fetch, if it was lent to it."""
        using = self._lent.pop(connection, None)  # type: ignore[call-overload]  # any object may be asked for
        if using is not None:
            connection.exchange = None  # type: ignore[attr-defined]
            using.__exit__(None, None, None)

    def check_peer(self, host: str, connection: socket.socket) -> None:
        """Raise an error if the policy does not allow the other end of a connection."""
        address = connection.getpeername()[0]
        self._ask(lambda: self.policy.check_peer(host, address))

    def connect(
        self, host: str, port: int, timeout: float | None, bound_to: Any, options: Any, *, is_proxy: bool
    ) -> TimedSocket:
        """Connect to a host, at one of the addresses that the policy allows."""
        host = host.strip("[]")
        found = self._ask(lambda: look_up(self._resolve, host, port, self.policy, self.seconds_left()))
        addresses = [str(info[4][0]) for info in found]
        allowed = addresses if is_proxy else self._ask(lambda: self.policy.allowed_addresses(host, addresses))
        error: OSError | None = None
        for family, kind, protocol, _, address in found:
            if address[0] not in allowed:
                continue
            try:
                return self._connected(family, kind, protocol, address, timeout, bound_to, options)
            except OSError as failed:
                error = failed
        raise error or socket.gaierror(socket.EAI_NONAME, "no addresses")

    def _connected(
        self, family: int, kind: int, protocol: int, address: Any, timeout: float | None, bound_to: Any, options: Any
    ) -> TimedSocket:
        connection = TimedSocket(family, kind, protocol)
        try:
            self.lend(connection)
            for option in options or ():
                connection.setsockopt(*option)
            if bound_to:
                connection.bind(bound_to)
            connection.settimeout(timeout)
            connection.connect(address)
            if self.policy.is_cancelled:
                raise ConnectionAbortedError("cancelled")
        except BaseException:
            self.give_back(connection)
            connection.close()
            raise
        return connection

    def _ask(self, question: Callable[[], Result]) -> Result:
        """Ask the policy, and remember if it refuses."""
        try:
            return question()
        except RefusedError as refused:
            self._fetch.refused = refused
            # urllib3 retries after errors of the network; this one it raises at once.
            raise LocationValueError(str(refused)) from refused


CURRENT: ContextVar[Exchange | None] = ContextVar("usp exchange", default=None)


class LentSocket(socket.socket):
    """A socket that waits no longer than the request that it is lent to has time left."""

    exchange: Exchange | None = None
    has_unread = False  # whether bytes followed the last answer
    _is_peeking = False
    _patience: float | None = None
    _in_force: float | None = None

    def settimeout(self, value: float | None, /) -> None:
        """Set the seconds to wait at most for each step."""
        self._patience = self._in_force = value
        super().settimeout(value)

    def connect(self, address: Any, /) -> None:
        """Connect."""
        self._apply_deadline()
        super().connect(address)

    def recv(self, *args: Any) -> bytes:
        """Receive some bytes."""
        self._apply_deadline()
        return super().recv(*args)

    def recv_into(self, *args: Any) -> int:
        """Receive some bytes into a buffer."""
        if self._is_peeking:
            raise BlockingIOError(errno.EAGAIN, "nothing is read now")
        self._apply_deadline()
        return super().recv_into(*args)

    def send(self, *args: Any) -> int:
        """Send some bytes."""
        self._apply_deadline()
        return super().send(*args)

    def sendall(self, *args: Any) -> None:
        """Send all bytes."""
        self._apply_deadline()
        super().sendall(*args)

    def note_unread(self, reader: Any) -> None:
        """Note whether a buffered reader of this socket holds bytes that nobody has read."""
        self.has_unread = self._is_peeking = True  # else `peek` would wait for more
        try:
            with suppress(OSError):  # it has timed out before
                self.has_unread = bool(reader.peek(1))
        finally:
            self._is_peeking = False

    def close_now(self) -> None:
        """Close, even if a response still reads from here."""
        descriptor = self.detach()  # `close` waits until the response is closed
        if descriptor >= 0:
            socket.close(descriptor)

    def _apply_deadline(self) -> None:
        if self.exchange is None:
            return
        left = self.exchange.seconds_left()
        seconds = left if self._patience is None or left < self._patience else self._patience
        if seconds != self._in_force:  # each setting is a system call
            self._in_force = seconds
            super().settimeout(seconds)


class TimedSocket(LentSocket):
    """A plain socket."""


class TimedTLSSocket(LentSocket, ssl.SSLSocket):
    """A socket with TLS. The ssl module makes it of a plain one, which it replaces, and starts the handshake."""

    def do_handshake(self, block: bool = False) -> None:
        """Make the TLS handshake."""
        exchange = CURRENT.get()
        if exchange is not None:
            exchange.lend(self)
        self._apply_deadline()
        super().do_handshake(block)
