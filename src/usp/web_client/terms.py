"""Terms: what a request may do, whichever client makes it.

A driver makes each request of a tree `under` that tree's terms; a client asks `terms_for(url)` for them. So a client's
`get(url)` needs no further arguments, and a client that a caller wrote needs to know nothing of this. Outside of a tree
each request has terms of its own, as if its URL were a homepage.

- Only http and https, only to hosts that `cross_host` allows.
- A public site cannot lead to addresses that are not public. It is the address that is about to be connected to, or
  that a connection is already made to, which is checked, so a name that resolves differently the second time gains
  nothing. What the homepage's host is, is settled by the first address that is known of it, and stays so: one that is
  public may use public addresses only, one that is not the addresses that it had at first only. What a proxy looks up
  counts as public.
- What the caller gave for the homepage (credentials, cookies, headers) goes to the homepage's origin only.
- A request ends by its deadline, or when the tree is cancelled: then the sockets that are in use are shut down.
"""

from __future__ import annotations

import ipaddress
import math
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from weakref import WeakSet

from usp.limits import Limits
from usp.origins import host_of, origin_of, outside, put_credentials, split_credentials

__all__ = ["RefusedError", "Terms", "bytes_allowed", "is_public", "terms_for", "under"]

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052
_LOOPBACK: dict[int, Address] = {4: ipaddress.IPv4Address("127.0.0.1"), 6: ipaddress.IPv6Address("::1")}
_LOCAL_NAT64 = ipaddress.IPv6Network("64:ff9b:1::/48")  # RFC 8215
# Not of the public internet either; some versions of Python say so of them, some do not.
_SPECIAL: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = (
    ipaddress.IPv4Network("192.0.0.0/24"),  # RFC 6890
    ipaddress.IPv4Network("192.88.99.0/24"),  # RFC 7526
    ipaddress.IPv6Network("2001::/23"),  # RFC 2928
    ipaddress.IPv6Network("3fff::/20"),  # RFC 9637
)
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_ENDS_IN_NUMBER = re.compile(r"(?:.*\.)?(?:\d+|0x[0-9a-f]*)")


class RefusedError(OSError):
    """A connection that may not be made, or one that was cancelled. Clients give it as an error response."""


class Terms:
    """What the requests of one tree may do."""

    def __init__(
        self,
        homepage_url: str,
        limits: Limits | None = None,
        cross_host: str = "allow",
        *,
        expires: float = math.inf,  # by time.monotonic()
    ) -> None:
        self.limits = limits or Limits()
        self.is_cancelled = False
        self._homepage_url, self._credentials = split_credentials(homepage_url)
        self._home = origin_of(homepage_url)
        self._cross_host = cross_host
        self._expires = expires
        # Those that the home may use though they are not public: none if it is public, None while that is not known.
        self._home_addresses: frozenset[Address] | None = None
        address = _name_or_address(self._home[1])[1]
        if address is not None:
            self._home_addresses = _own([_address(str(address))])
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._callbacks: dict[object, Callable[[], object]] = {}
        self._lock = threading.RLock()  # the garbage collector may cancel the terms of a stream in any place
        self._process = os.getpid()

    def deadline(self) -> float:
        """When a request that starts now must have ended, by `time.monotonic()`."""
        return min(time.monotonic() + self.limits.request_seconds, self._expires)

    def is_trees(self, deadline: float) -> bool:
        """Whether a request's deadline is that of the tree, and not its own."""
        return deadline >= self._expires

    def is_home(self, url: str) -> bool:
        """Whether a URL is on the homepage's scheme, host and port, to which the caller's credentials may go."""
        return origin_of(url) == self._home

    def with_credentials(self, url: str) -> str:
        """A URL on the homepage's origin with the user and password of the homepage's URL; any other as it is."""
        if self._credentials and self._is_certainly_home(url):
            return url if split_credentials(url)[1] else put_credentials(url, self._credentials)
        return url

    def without_credentials(self, url: str) -> str:
        """A URL on the homepage's origin without the user and password of the homepage's URL; any other as it is."""
        if self._credentials and self._is_certainly_home(url):
            plain, own = split_credentials(url)
            return plain if own == self._credentials else url
        return url

    def _is_certainly_home(self, url: str) -> bool:
        try:
            return self.is_home(url)
        except ValueError:
            return False  # it is not a URL

    def refusal(self, url: str) -> str | None:
        """Why a URL may not be requested, as far as can be said before its host is looked up; None if it may."""
        try:
            scheme, host, _ = origin_of(url)
        except ValueError:
            return "it is not a URL"
        if scheme not in ("http", "https") or not host:
            return f"{scheme or 'this'} is not http or https" if scheme not in ("http", "https") else "it has no host"
        is_name, address = _name_or_address(host)
        if address is None and not is_name:
            return "its host is not a name that can exist"
        if host != self._home[1]:
            if address is not None and not is_public(address):
                return _not_public(host, address)
            if host == "localhost" or host.endswith(".localhost"):  # RFC 6761; a proxy would look it up for us
                return _not_public(host, "this machine")
        return outside(url, self._homepage_url, self._cross_host)

    def admitted(self, host: str, addresses: Iterable[str]) -> list[str]:
        """Those of a host's addresses that may be connected to. Raises `RefusedError` if there is none.

        To be called with all addresses that the host was resolved to, right before one of them is connected to.
        """
        found = {text: _address(text) for text in addresses}
        own = self._own_addresses(host, found.values())
        admitted = [text for text, address in found.items() if (address in own if own else is_public(address))]
        if found and not admitted:
            raise RefusedError(_refused(host, next(iter(found.values()))))
        return admitted

    def check_peer(self, host: str, address: str) -> None:
        """Raise `RefusedError` if a connection to a host that is already there may not be used.

        Another tree may have made it, under other terms.
        """
        peer = _address(address)
        own = self._own_addresses(host, (peer,))
        if not (peer in own if own else _is_public(address)):
            raise RefusedError(_refused(host, peer))

    def looked_up_elsewhere(self, host: str) -> None:
        """A request to a host is made by a proxy, or by means of the caller's: its addresses are not known here."""
        if self._home_addresses is None and self._is_home_host(host):
            with self._lock:
                if self._home_addresses is None:
                    self._home_addresses = frozenset()

    def _own_addresses(self, host: str, found: Collection[Address]) -> frozenset[Address]:
        """The only addresses that a host may have; none if it may have any that is public.

        These found are what the home has, if nothing was known of it yet.
        """
        if not self._is_home_host(host):
            return frozenset()
        if self._home_addresses is None and found:
            with self._lock:
                if self._home_addresses is None:
                    self._home_addresses = _own(found)
        return self._home_addresses or frozenset()

    def _is_home_host(self, host: str) -> bool:
        home = self._home[1]
        return host == home or host_of(f"http://[{host}]" if ":" in host else f"http://{host}") == home

    @contextmanager
    def using(self, connection: socket.socket) -> Iterator[None]:
        """Have a socket shut down if the tree is cancelled meanwhile. Raises `RefusedError` if it was already."""
        with self._lock:
            if self.is_cancelled:
                raise RefusedError("cancelled")
            self._sockets.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._sockets.discard(connection)

    @contextmanager
    def calling(self, callback: Callable[[], object]) -> Iterator[None]:
        """Have a function called, in whichever thread cancels, if the tree is cancelled meanwhile.

        Raises `RefusedError` if it was already.
        """
        key = object()
        with self._lock:
            if self.is_cancelled:
                raise RefusedError("cancelled")
            self._callbacks[key] = callback
        try:
            yield
        finally:
            with self._lock:
                self._callbacks.pop(key, None)

    def cancel(self) -> None:
        """End all requests that are being made, and let no new one start."""
        with self._lock:
            self.is_cancelled = True
            for callback in list(self._callbacks.values()):
                callback()
            if self._process != os.getpid():
                return  # after a fork: the connections are the parent's, who uses them
            for connection in list(self._sockets):
                with suppress(OSError):
                    # Not the method of a TLS socket, which would take away what another thread is using.
                    socket.socket.shutdown(connection, socket.SHUT_RDWR)


@lru_cache(1024)
def _name_or_address(host: str) -> tuple[bool, Address | None]:
    """Whether a host may be a name; if it is an address, in any form that would be taken for one, that address."""
    try:
        return False, ipaddress.ip_address(host)
    except ValueError:
        if _ENDS_IN_NUMBER.fullmatch(host):  # 127.1, 0x7f000001: https://url.spec.whatwg.org/#ends-in-a-number-checker
            with suppress(OSError, ValueError):  # ValueError: it has characters that no host has
                return False, ipaddress.IPv4Address(socket.inet_aton(host))
            return False, None
    return _NAME.fullmatch(host) is not None, None


@lru_cache(4096)
def _address(text: str) -> Address:
    return ipaddress.ip_address(text.partition("%")[0])


@lru_cache(4096)
def _is_public(text: str) -> bool:
    return is_public(_address(text))


def is_public(address: Address) -> bool:
    """Whether an address is one of the public internet, also where it stands inside another."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        if address.teredo is not None or address.is_site_local or address in _LOCAL_NAT64:
            return False
    if any(address in network for network in _SPECIAL):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def _own(found: Iterable[Address]) -> frozenset[Address]:
    """The addresses of a home if none of them is public; none if one is."""
    own = set(found)
    if any(map(is_public, own)):
        return frozenset()
    # What connects to "this host" finds itself at the other end.
    own.update(_LOOPBACK[address.version] for address in tuple(own) if address.is_unspecified)
    return frozenset(own)


def _refused(host: str, address: Address) -> str:
    if not is_public(address):
        return _not_public(host, address)
    return f"{host} leads to {address} now, which is not an address that it had at first"


def _not_public(host: str, address: Address | str) -> str:
    if host == str(address):
        return f"{host} is not a public address; a website may not lead there"
    return f"{host} leads to {address}, which is not a public address; a website may not lead there"


_CURRENT: ContextVar[Terms | None] = ContextVar("usp terms", default=None)


@contextmanager
def under(terms: Terms) -> Iterator[None]:
    """Make requests under these terms, in this thread or task."""
    token = _CURRENT.set(terms)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def terms_for(url: str) -> Terms:
    """The terms of the tree for which a request is made; outside of one, terms of the URL's own."""
    terms = _CURRENT.get()
    if terms is None:
        try:
            return Terms(url)
        except ValueError:
            return Terms("")  # what is no URL is refused under any terms
    return terms


def bytes_allowed(own: int | None, is_callers: bool) -> int | None:
    """How much of a body may be read: what a client's caller has set, else what the tree allows, else the client's own.

    Trees that share a client may have different limits.
    """
    terms = _CURRENT.get()
    return own if is_callers or terms is None else terms.limits.max_sitemap_bytes
