"""Everything of usp that uses private names of requests, urllib3 and http.client.

Nothing public in these libraries lets a caller choose the address to connect to, limit the time of a request as a
whole, or notice bytes that follow an answer. So usp replaces methods that urllib3 and http.client call internally. A
new release may rename such a method, and then it silently does nothing. Therefore all of that is in this module, and
`check_guards` tries it before the first request of a process.

Without an exchange, as when a caller uses the session for something else, everything behaves as in requests, except
that certificates of proxies are always verified.
"""

from __future__ import annotations

import http.client
import os
import socket
import ssl
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import requests
import requests.adapters
import urllib3
from requests.utils import select_proxy
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError
from urllib3.util import Retry
from urllib3.util.ssl_ import create_urllib3_context, resolve_cert_reqs

from usp.origins import host_of
from usp.web_client.cassettes import connection_class, real_class
from usp.web_client.lookups import AddressInfo
from usp.web_client.requests_exchange import CURRENT, ERRORS, Exchange, LentSocket, TimedTLSSocket
from usp.web_client.self_check import (
    REFUSED_HOST,
    REFUSED_PORT,
    TRIAL_SECONDS,
    library_function,
    refused_fetch,
    require,
    unguarded,
)
from usp.web_client.settings import MAX_INTERIM_ANSWERS, file_state

if TYPE_CHECKING:
    from urllib3.connection import HTTPConnection, HTTPSConnection
else:
    HTTPConnection = real_class(urllib3.connection.HTTPConnection)
    HTTPSConnection = real_class(urllib3.connection.HTTPSConnection)

__all__ = ["GuardedAdapter", "body_already_read", "check_guards", "guard", "is_from_network", "received_answer"]

_KEPT_CONNECTIONS = 64  # to one host
_KEPT_HOSTS = 64
_NO_RETRIES = Retry(0, read=False)


class _FinalAnswer(http.client.HTTPResponse):
    """An answer that is not an interim one: http.client skips 100 only, and takes any other for the answer itself.

    https://www.rfc-editor.org/rfc/rfc9110#section-15.2
    """

    def _read_status(self) -> tuple[str, int, str]:
        for _ in range(MAX_INTERIM_ANSWERS):
            version, status, reason = super()._read_status()  # type: ignore[misc]  # not in its types
            if status >= HTTPStatus.OK or status == HTTPStatus.SWITCHING_PROTOCOLS:
                return version, status, reason
            http.client.parse_headers(self.fp)
        raise http.client.HTTPException(f"more than {MAX_INTERIM_ANSWERS} interim answers")

    def _close_conn(self) -> None:
        """End the answer. Bytes behind it answer no request, so the connection cannot be used again."""
        connection = getattr(getattr(self.fp, "raw", None), "_sock", None)
        if isinstance(connection, LentSocket) and connection.exchange is not None:
            connection.note_unread(self.fp)
        super()._close_conn()  # type: ignore[misc]  # not in its types

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

    @property
    def is_connected(self) -> bool:
        """Whether the connection can be used. One with unread bytes cannot: they answer no request."""
        connection = self.sock
        if isinstance(connection, LentSocket) and connection.has_unread:
            return False
        if isinstance(connection, ssl.SSLSocket) and connection.pending():
            return False
        return super().is_connected

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
            self._lend_to(exchange)
            if exchange.target is not None:
                # urllib3 would encode again what is encoded already.
                url = exchange.target if self.proxy_is_forwarding else "/" + exchange.target.split("/", 3)[3]
        super().request(method, url, body, headers, **options)

    def keep_body(self, response: Any, body: bytes) -> None:
        """Give an answer the body that was read from it, for those who read it again."""
        response._body = body

    def _lend_to(self, exchange: Exchange) -> None:
        """Let a fetch use the open connection, if the policy allows it."""
        connection = self.sock
        if type(connection) is socket.socket:  # opened outside of any exchange, so it does not know deadlines
            if not self.proxy_is_tunneling:
                self.close()
        elif isinstance(connection, LentSocket) and connection.exchange is not exchange:
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
                self.ssl_context = _context(self.cert_reqs)  # not shared: a client certificate is a credential
            else:
                trusted = self.ca_certs or self.ca_cert_dir
                state = trusted and file_state(trusted)
                self.ssl_context = _shared_context(self.cert_reqs, self.ca_certs, self.ca_cert_dir, state)
                if self.proxy is None:
                    self.ca_certs = self.ca_cert_dir = None  # the context has read them, once for all connections
        super().connect()

    def _connect_tls_proxy(self, hostname: str, sock: socket.socket) -> ssl.SSLSocket:
        wrapped = super()._connect_tls_proxy(hostname, sock)
        if type(wrapped) is ssl.SSLSocket:
            wrapped.__class__ = TimedTLSSocket
            exchange = CURRENT.get()
            if exchange is not None:
                exchange.lend(wrapped)  # type: ignore[arg-type]  # its class has just changed
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
    """Open connections to one host."""

    @property
    def ConnectionCls(self) -> Any:  # type: ignore[override]  # noqa: N802 -- the name is urllib3's
        """The class of new connections."""
        if isinstance(CURRENT.get(), _Trial):
            return _GuardedHTTPConnection
        return connection_class(HTTPConnectionPool, _GuardedHTTPConnection, CURRENT.get)

    def _put_conn(self, conn: Any) -> None:
        if conn is not None:
            exchange = CURRENT.get()
            if exchange is not None:
                exchange.give_back(conn.sock)  # before another thread can take it
            if not self.block and self.pool is not None and self.pool.full():
                conn.close()  # urllib3 would log a warning
                return
        super()._put_conn(conn)


class _GuardedHTTPSPool(_GuardedHTTPPool, HTTPSConnectionPool):
    """The same with TLS."""

    @property
    def ConnectionCls(self) -> Any:  # type: ignore[override]  # noqa: N802 -- the name is urllib3's
        """The class of new connections."""
        if isinstance(CURRENT.get(), _Trial):
            return _GuardedHTTPSConnection
        return connection_class(HTTPSConnectionPool, _GuardedHTTPSConnection, CURRENT.get)


_POOLS = {"http": _GuardedHTTPPool, "https": _GuardedHTTPSPool}


class GuardedAdapter(requests.adapters.HTTPAdapter):
    """The adapter of requests, with guarded connections. It takes over the settings of `like`."""

    _pool_connections: int
    _pool_maxsize: int
    _pool_block: bool

    def __init__(self, like: requests.adapters.HTTPAdapter | None = None) -> None:
        self._forked = threading.Lock()
        settings: dict[str, Any] = vars(like) if like is not None else {}
        super().__init__(
            max(settings.get("_pool_connections", 0), _KEPT_HOSTS),
            max(settings.get("_pool_maxsize", 0), _KEPT_CONNECTIONS),
            pool_block=settings.get("_pool_block", False),
        )
        self._retries: Retry = settings.get("max_retries", _NO_RETRIES)

    @property
    def max_retries(self) -> Retry:
        """No retries for the client: a tree makes its own, and urllib3 would sleep beyond the deadline."""
        return _NO_RETRIES if CURRENT.get() is not None else self._retries

    @max_retries.setter
    def max_retries(self, retries: Retry) -> None:
        self._retries = retries

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._forked = threading.Lock()
        super().__setstate__(state)  # type: ignore[misc]  # not in its types

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Make the pools."""
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = _POOLS
        self._process = os.getpid()

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        """Return the pools of a proxy."""
        manager = super().proxy_manager_for(proxy, **options)
        if not proxy.lower().startswith("socks"):
            manager.pool_classes_by_scheme = _POOLS
        return manager

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        """Send a request."""
        if self._process != os.getpid():  # after a fork: the connections belong to the parent
            with self._forked:
                if self._process != os.getpid():
                    self.proxy_manager = {}
                    self.init_poolmanager(self._pool_connections, self._pool_maxsize, block=self._pool_block)
        exchange = CURRENT.get()
        if exchange is None:
            return super().send(request, *args, **options)
        proxies = options.get("proxies")
        if proxies and select_proxy(request.url or "", proxies):
            exchange.policy.mark_resolved_elsewhere(host_of(request.url or ""))
        response = super().send(request, *args, **options)
        if exchange.target is None and not 200 <= response.status_code < 300:
            # Before the session sees it: its authentication would read the whole body, and inflate it.
            exchange.drain(response)
            response._content = b""
            response._content_consumed = True  # type: ignore[attr-defined]  # not in its types
        return response

    def close(self) -> None:
        """Close all connections now. urllib3 waits until the pools are garbage-collected."""
        if self._process == os.getpid():
            for manager in (self.poolmanager, *self.proxy_manager.values()):
                for key in manager.pools.keys():  # noqa: SIM118 -- it is not a mapping, it only has keys()
                    with suppress(KeyError):  # another thread may have removed it
                        manager.pools[key].close()
        super().close()

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """Verify certificates, those of proxies too, which requests does only for https URLs.

        This holds for everyone who uses the session: connections stay open, and are reused.
        """
        proxy = getattr(conn, "proxy", None)
        if proxy is not None and proxy.scheme == "https":
            url = "https://"  # requests looks at the scheme only
        super().cert_verify(conn, url, verify or verify is not False, cert)  # type: ignore[no-untyped-call]

    def build_response(self, req: requests.PreparedRequest, resp: Any) -> requests.Response:
        """Return the answer as a response of requests; without its cookies, if the client asked without a session."""
        exchange = CURRENT.get()
        if exchange is None or exchange.target is None:
            return super().build_response(req, resp)
        response = requests.Response()
        response.status_code = resp.status
        response.headers = requests.structures.CaseInsensitiveDict(resp.headers)
        response.raw = resp
        response.reason = resp.reason
        response.url = req.url or ""
        response.request = req
        response.connection = self
        return response


def guard(session: requests.Session) -> None:
    """Replace the adapters of a session that are exactly requests' own by guarded ones."""
    guarded: dict[int, GuardedAdapter] = {}
    for prefix, adapter in list(session.adapters.items()):
        if type(adapter) is requests.adapters.HTTPAdapter:
            session.adapters[prefix] = guarded.setdefault(id(adapter), GuardedAdapter(adapter))
            adapter.close()


class _Trial(Exchange):
    """The fetch of a self-check. It uses no cassette."""


_LIBRARIES = ("requests", "urllib3")
_PASSED: set[str] = set()  # the self-checks that this process has passed


def check_guards() -> None:
    """Raise `UnguardedClientError` if urllib3 or requests do not call the guards of this module.

    Threads may call this at once, and a forked process need not repeat it. While a mock replaces `HTTPAdapter.send`,
    only what is below that is checked, and the rest once the mock is gone.
    """
    if "adapter" in _PASSED:
        return
    send = library_function(requests.adapters, requests.adapters.HTTPAdapter, "send")
    if send is None and "pool" in _PASSED:
        return
    require(_LIBRARIES, _private_names())
    for scheme in _POOLS:
        fetch = refused_fetch()
        try:
            with _Trial(fetch, _refused_addresses):
                _try_to_connect(f"{scheme}://{REFUSED_HOST}:{REFUSED_PORT}/", send)
        except ERRORS:
            pass  # as it should be, if the guard has raised it
        except Exception as error:
            raise unguarded(_LIBRARIES, f"usp's guards raise {error!r}") from error
        if fetch.refused is None:
            raise unguarded(_LIBRARIES, f"an attempt to connect to a private address over {scheme} passed the guards")
    _PASSED.add("pool" if send is None else "adapter")


def _try_to_connect(url: str, send: Any) -> None:
    """Make a request by an adapter, with its own `send`; by its pools, if that is None."""
    adapter = GuardedAdapter()
    try:
        if send is None:
            adapter.poolmanager.connection_from_url(url).urlopen("GET", "/", retries=False, timeout=TRIAL_SECONDS)
        else:
            # No certificates are loaded and no proxies are looked for: it must not get as far as needing them.
            send(adapter, requests.Request("GET", url).prepare(), verify=False, timeout=TRIAL_SECONDS)
    finally:
        adapter.close()


def _refused_addresses(host: str, port: int) -> Sequence[AddressInfo]:
    return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (REFUSED_HOST, port))]


def _private_names() -> Iterable[tuple[object, str]]:
    """Return everything that this module replaces or reads, and that these libraries do not document."""
    return (
        (http.client.HTTPResponse, "_read_status _close_conn"),
        (HTTPConnection, "_new_conn is_connected proxy_is_forwarding proxy_is_tunneling"),
        (HTTPConnection(REFUSED_HOST), "_dns_host port timeout source_address socket_options proxy sock"),
        (HTTPSConnection, "_connect_tls_proxy"),
        (HTTPSConnection(REFUSED_HOST), "ssl_context cert_file cert_reqs ca_certs ca_cert_dir"),
        (HTTPConnectionPool, "ConnectionCls _put_conn"),
        (HTTPConnectionPool(REFUSED_HOST), "pool block proxy"),
        (urllib3.PoolManager(), "pool_classes_by_scheme pools"),
        (urllib3.HTTPResponse(), "_original_response _body"),
        (requests.adapters.HTTPAdapter(), "_pool_connections _pool_maxsize _pool_block poolmanager proxy_manager"),
        (requests.Response(), "_content _content_consumed"),
        (ssl.SSLContext, "sslsocket_class"),
    )


def body_already_read(response: requests.Response) -> bytes | None:
    """Return the body of a response that was made with one, or that someone has read; None if it is to be received."""
    values = getattr(response, "__dict__", {})
    return next((values[name] for name in ("_content", "content") if isinstance(values.get(name), bytes)), None)


def received_answer(raw: Any) -> Any:
    """Return the answer of http.client below an answer of urllib3; None if there is none."""
    return getattr(raw, "_original_response", None)


def is_from_network(response: requests.Response) -> bool:
    """Return whether http.client has received an answer, and not a mock made it."""
    raw: Any = response.raw
    return isinstance(raw, urllib3.HTTPResponse) and isinstance(received_answer(raw), http.client.HTTPResponse)
