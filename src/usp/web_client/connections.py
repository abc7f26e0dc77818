"""The connections of the requests client: only to addresses that the policy allows, and only until the deadline.

requests and urllib3 know a time-out between two reads, but none for a request as a whole, and they connect to whatever
a name leads to. Both can only be put right at the socket: a `TimedSocket` waits no longer than the request that uses it
has time left, whatever is being read just then; and before each request, on a new connection or one that was kept, the
address at its other end is checked.

A socket knows its request by the `Exchange` that it is lent to, which the client makes for each request. Where there is
none, as when a caller uses the session for something else, all of this behaves as requests does by itself.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Self, TypeVar

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ConnectTimeoutError, LocationValueError, NameResolutionError, NewConnectionError
from urllib3.util.connection import allowed_gai_family
from urllib3.util.ssl_ import create_urllib3_context, resolve_cert_reqs

from usp.web_client.environment import state_of
from usp.web_client.lookups import AddressInfo, Resolver, looked_up_in_time
from usp.web_client.policy import RefusedError, RequestPolicy

if TYPE_CHECKING:
    from requests.cookies import RequestsCookieJar

__all__ = ["CURRENT", "POOLS", "Exchange", "looked_up"]

Result = TypeVar("Result")

_MAX_INTERIM_ANSWERS = 100


def looked_up(host: str, port: int) -> Sequence[AddressInfo]:
    """The addresses of a host."""
    return socket.getaddrinfo(host, port, allowed_gai_family(), socket.SOCK_STREAM)


class Exchange:
    """One request with all its redirects, as the connections see it. To be used as a context, in one thread."""

    __slots__ = ("_lent", "_resolve", "_token", "cookies", "deadline", "policy", "refused", "target")

    def __init__(self, policy: RequestPolicy, deadline: float, resolve: Resolver) -> None:
        self.policy = policy
        self.deadline = deadline
        #: What to request, as it stands in the request; None to leave that to requests.
        self.target: str | None = None
        #: Why there was no connection, if the policy is the reason.
        self.refused: RefusedError | None = None
        #: The cookies that were set on the way, where a session of the caller's is asked.
        self.cookies: RequestsCookieJar | None = None
        self._resolve = resolve
        self._lent: dict[_Timed, AbstractContextManager[None]] = {}

    def __enter__(self) -> Self:
        self._token: Token[Exchange | None] = CURRENT.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        CURRENT.reset(self._token)
        for connection in list(self._lent):
            self.give_back(connection)

    def seconds_left(self) -> float:
        """The seconds until the deadline. Raises `TimeoutError` if there are none."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the deadline has passed")
        return left

    def is_over(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() >= self.deadline

    def lend(self, connection: _Timed) -> None:
        """Let a socket be used for this request, until it is given back or the request has ended."""
        using = self.policy.shutting_down_on_cancel(connection)
        self._allowed(using.__enter__)
        self._lent[connection] = using
        connection.exchange = self

    def give_back(self, connection: object) -> None:
        """A socket is no longer used for this request."""
        using = self._lent.pop(connection, None)  # type: ignore[call-overload]  # what was not lent is not found
        if using is not None:
            connection.exchange = None  # type: ignore[attr-defined]
            using.__exit__(None, None, None)

    def check_peer(self, host: str, connection: socket.socket) -> None:
        """Raise an error if the other end of a connection is not one that the policy allows."""
        address = connection.getpeername()[0]
        self._allowed(lambda: self.policy.check_peer(host, address))

    def connect(
        self, host: str, port: int, timeout: float | None, bound_to: Any, options: Any, *, is_proxy: bool
    ) -> TimedSocket:
        """Connect to a host, at one of the addresses that the policy allows."""
        host = host.strip("[]")
        found = self._allowed(lambda: looked_up_in_time(self._resolve, host, port, self.policy, self.seconds_left()))
        addresses = [str(info[4][0]) for info in found]
        admitted = addresses if is_proxy else self._allowed(lambda: self.policy.allowed_addresses(host, addresses))
        error: OSError | None = None
        for family, kind, protocol, _, address in found:
            if address[0] not in admitted:
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

    def _allowed(self, ask: Callable[[], Result]) -> Result:
        """Return what the policy answers, and remember if it refuses."""
        try:
            return ask()
        except RefusedError as refused:
            self.refused = refused
            # urllib3 tries again after what it takes for a failure of the network; this it hands on at once.
            raise LocationValueError(str(refused)) from refused


CURRENT: ContextVar[Exchange | None] = ContextVar("usp exchange", default=None)


class _Timed(socket.socket):
    """A socket that waits no longer than the request that it is lent to has time left."""

    exchange: Exchange | None = None
    _patience: float | None = None
    _in_force: float | None = None

    def settimeout(self, value: float | None, /) -> None:
        """Set the seconds to wait at most for each step."""
        self._patience = self._in_force = value
        super().settimeout(value)

    def connect(self, address: Any, /) -> None:
        """Connect."""
        self._hold_deadline()
        super().connect(address)

    def recv(self, *args: Any) -> bytes:
        """Receive some bytes."""
        self._hold_deadline()
        return super().recv(*args)

    def recv_into(self, *args: Any) -> int:
        """Receive some bytes into a buffer."""
        self._hold_deadline()
        return super().recv_into(*args)

    def send(self, *args: Any) -> int:
        """Send some bytes."""
        self._hold_deadline()
        return super().send(*args)

    def sendall(self, *args: Any) -> None:
        """Send all bytes."""
        self._hold_deadline()
        super().sendall(*args)

    def _hold_deadline(self) -> None:
        if self.exchange is None:
            return
        left = self.exchange.seconds_left()
        seconds = left if self._patience is None or left < self._patience else self._patience
        if seconds != self._in_force:  # each setting is a system call
            self._in_force = seconds
            super().settimeout(seconds)


class TimedSocket(_Timed):
    """A plain one."""


class TimedTLSSocket(_Timed, ssl.SSLSocket):
    """One with TLS. The socket module makes it of a plain one, which it takes the place of, and has it shake hands."""

    def do_handshake(self, block: bool = False) -> None:
        """Agree on the keys."""
        exchange = CURRENT.get()
        if exchange is not None:
            exchange.lend(self)
        self._hold_deadline()
        super().do_handshake(block)


class _FinalAnswer(http.client.HTTPResponse):
    """An answer that is not an interim one: http.client knows 100 only, and takes any other for the answer itself.

    https://www.rfc-editor.org/rfc/rfc9110#section-15.2
    """

    def _read_status(self) -> tuple[str, int, str]:
        for _ in range(_MAX_INTERIM_ANSWERS):
            version, status, reason = super()._read_status()  # type: ignore[misc]  # not in its types
            if status >= HTTPStatus.OK or status == HTTPStatus.SWITCHING_PROTOCOLS:
                return version, status, reason
            http.client.parse_headers(self.fp)
        raise http.client.HTTPException(f"more than {_MAX_INTERIM_ANSWERS} interim answers")

    def begin(self) -> None:
        """Read the status and the headers."""
        super().begin()
        if self.status < HTTPStatus.OK:
            self.will_close = True  # whatever follows, it is not the answer to another request
        if CURRENT.get() is not None and (self.headers.defects or self.headers.get_payload()):
            # Lines that are no headers. urllib3 would log them, with a traceback.
            self.headers.defects.clear()
            self.headers.set_payload("")


class _GuardedHTTPConnection(HTTPConnection):
    """A connection that is checked before each request."""

    response_class = _FinalAnswer

    def _new_conn(self) -> socket.socket:
        exchange = CURRENT.get()
        if exchange is None:
            return super()._new_conn()
        place = (self._dns_host, self.port, self.timeout, self.source_address, self.socket_options)
        try:
            return exchange.connect(*place, is_proxy=self.proxy is not None)
        except socket.gaierror as error:
            raise NameResolutionError(self.host, self, error) from error
        except TimeoutError as error:
            raise ConnectTimeoutError(self, f"Connection to {self.host} timed out.") from error
        except OSError as error:
            raise NewConnectionError(self, f"Failed to establish a new connection: {error}") from error

    def request(
        self, method: str, url: str, body: Any = None, headers: Mapping[str, Any] | None = None, **options: Any
    ) -> None:
        """Send a request."""
        exchange = CURRENT.get()
        if exchange is not None:
            self._be_lent_to(exchange)
            if exchange.target is not None:
                # urllib3 would encode anew what is encoded.
                url = exchange.target if self.proxy_is_forwarding else "/" + exchange.target.split("/", 3)[3]
        super().request(method, url, body, headers, **options)

    def _be_lent_to(self, exchange: Exchange) -> None:
        """Use the connection that there is for a request, if the policy allows it."""
        connection = self.sock
        if type(connection) is socket.socket:  # made outside of any exchange, so its waiting cannot be bounded
            if not self.proxy_is_tunneling:
                self.close()
        elif isinstance(connection, _Timed) and connection.exchange is not exchange:
            if self.proxy is None:
                exchange.check_peer(self.host, connection)
            exchange.lend(connection)


class _GuardedHTTPSConnection(_GuardedHTTPConnection, HTTPSConnection):
    """The same with TLS."""

    _has_context = False

    def connect(self) -> None:
        """Connect, and set up TLS."""
        if not self._has_context:
            self._has_context = True
            if self.cert_file:
                self.ssl_context = _context(self.cert_reqs)  # of its own: a client certificate is a credential
            else:
                trusted = self.ca_certs or self.ca_cert_dir
                state = trusted and state_of(trusted)
                self.ssl_context = _shared_context(self.cert_reqs, self.ca_certs, self.ca_cert_dir, state)
                if self.proxy is None:
                    self.ca_certs = self.ca_cert_dir = None  # they are in the context, where they are read once only
        super().connect()

    def _connect_tls_proxy(self, hostname: str, sock: socket.socket) -> ssl.SSLSocket:
        wrapped = super()._connect_tls_proxy(hostname, sock)
        if type(wrapped) is ssl.SSLSocket:
            wrapped.__class__ = TimedTLSSocket
            exchange = CURRENT.get()
            if exchange is not None:
                exchange.lend(wrapped)  # type: ignore[arg-type]  # its class has just been changed
        return wrapped


def _context(cert_reqs: int | str | None) -> ssl.SSLContext:
    context = create_urllib3_context(cert_reqs=resolve_cert_reqs(cert_reqs))
    context.sslsocket_class = TimedTLSSocket
    return context


@lru_cache(16)
def _shared_context(
    cert_reqs: int | str | None, ca_certs: str | None, ca_cert_dir: str | None, _state: object
) -> ssl.SSLContext:
    context = _context(cert_reqs)
    if ca_certs or ca_cert_dir:
        context.load_verify_locations(ca_certs, ca_cert_dir)
    elif context.verify_mode != ssl.CERT_NONE:
        context.load_default_certs()
    return context


class _GuardedHTTPPool(HTTPConnectionPool):
    """Kept connections to one host."""

    ConnectionCls = _GuardedHTTPConnection

    def _put_conn(self, conn: Any) -> None:
        if conn is not None:
            exchange = CURRENT.get()
            if exchange is not None:
                exchange.give_back(conn.sock)  # before another thread can take it
            if not self.block and self.pool is not None and self.pool.full():
                conn.close()  # urllib3 would warn of it
                return
        super()._put_conn(conn)


class _GuardedHTTPSPool(_GuardedHTTPPool, HTTPSConnectionPool):
    """The same with TLS."""

    ConnectionCls = _GuardedHTTPSConnection


POOLS = {"http": _GuardedHTTPPool, "https": _GuardedHTTPSPool}
