"""The request policy: what a request may do, whichever client makes it.

A driver makes each request of a tree while `applying(policy)`; a client asks `policy_for(url)` for it. So `get(url)`
needs no second argument, and a client that a caller wrote may know nothing of policies. Outside of a tree, each request
has a policy of its own, as if its URL were a homepage.

- URLs must be http or https, on a host that `cross_host` allows.
- A public site cannot lead to addresses that are not public. Clients check the address that they connect to, also on a
  connection that they reuse, so a name that resolves differently the second time gains nothing. The first address
  seen of the homepage's host decides: if it is public, the host may use public addresses only; if not, the host may
  use only the addresses that it had at first. A host that a proxy resolves counts as public.
- Hosts that the caller names (`allow_hosts`) may be private, too, under the same rule. Names may not lead to link-local
  addresses, where clouds keep credentials. With `private="refuse"`, the homepage is treated as any other host.
- Credentials, cookies and headers of the caller go to the homepage's origin only.
- A request ends by its deadline, or when the tree is cancelled: then the policy shuts down the sockets in use.
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
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING
from weakref import WeakSet

from usp.limits import Limits
from usp.origins import NO_HOSTS, HostPatterns, host_of, origin_of, outside, put_credentials, split_credentials

if TYPE_CHECKING:
    from usp.bodies import DocumentStore

__all__ = [
    "FirstAddresses",
    "MayFollow",
    "RefusedError",
    "RequestPolicy",
    "applying",
    "bytes_allowed",
    "is_public",
    "may_follow_here",
    "policy_for",
    "seconds_until",
]

#: Returns whether a request may go where a redirect leads. It may not if the tree has requested that URL already.
MayFollow = Callable[[str], bool]

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

#: Hosts that need not be public -> the addresses that they had at first.
FirstAddresses = dict[str, frozenset[Address]]

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052
_LOOPBACK: dict[int, Address] = {4: ipaddress.IPv4Address("127.0.0.1"), 6: ipaddress.IPv6Address("::1")}
_LOCAL_NAT64 = ipaddress.IPv6Network("64:ff9b:1::/48")  # RFC 8215
# Not public either, but not every version of Python says so.
_SPECIAL: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = (
    ipaddress.IPv4Network("192.0.0.0/24"),  # RFC 6890
    ipaddress.IPv4Network("192.88.99.0/24"),  # RFC 7526
    ipaddress.IPv6Network("2001::/23"),  # RFC 2928
    ipaddress.IPv6Network("3fff::/20"),  # RFC 9637
)
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_ENDS_IN_NUMBER = re.compile(r"(?:.*\.)?(?:\d+|0x[0-9a-f]*)")


class RefusedError(OSError):
    """A connection that the policy does not allow, or a cancelled one. Clients return it as an error response."""


class RequestPolicy:
    """What the requests of one tree may do."""

    def __init__(
        self,
        homepage_url: str,
        limits: Limits | None = None,
        cross_host: str = "allow",
        *,
        allow_hosts: HostPatterns | None = None,
        private: str = "allow",
        expires: float = math.inf,  # by time.monotonic()
        first_addresses: FirstAddresses | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.is_cancelled = False
        #: Where clients put bodies while they arrive; None keeps them in memory.
        self.store: DocumentStore | None = None
        self._homepage_url, self._credentials = split_credentials(homepage_url)
        self._home = origin_of(homepage_url)
        self._cross_host = cross_host
        self._expires = expires
        self._allow_hosts = allow_hosts or NO_HOSTS
        self._trusts_home = private == "allow" or self._allow_hosts.match(self._home[1])
        # Hosts that need not be public -> the addresses that they may use although these are not public. Empty: the
        # host is public. Missing: not known yet.
        self._first_addresses: FirstAddresses = {} if first_addresses is None else first_addresses
        self._sockets: WeakSet[socket.socket] | None = None  # asyncio has none
        self._callbacks: dict[object, Callable[[], object]] = {}
        self._lock = threading.RLock()  # reentrant: the garbage collector may cancel a stream anywhere
        self._process = os.getpid()

    def deadline(self) -> float:
        """Return when a request that starts now must end, by `time.monotonic()`."""
        return min(time.monotonic() + self.request_seconds(), self._expires)

    def request_seconds(self) -> float:
        """Return how long a request may take that starts now, in this thread or task."""
        return min(self.limits.request_seconds, _CURRENT.get().request_seconds)

    def is_tree_deadline(self, deadline: float) -> bool:
        """Return whether a request's deadline is that of the whole tree."""
        return deadline >= self._expires

    def is_home(self, url: str) -> bool:
        """Return whether a URL has the homepage's scheme, host and port: the caller's credentials may go there."""
        return origin_of(url) == self._home

    def with_credentials(self, url: str) -> str:
        """Add the homepage's user and password to a URL on the homepage's origin. Return any other URL unchanged."""
        if self._credentials and self._is_certainly_home(url):
            return url if split_credentials(url)[1] else put_credentials(url, self._credentials)
        return url

    def without_credentials(self, url: str) -> str:
        """Remove the homepage's user and password from a URL on its origin. Return any other URL unchanged."""
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
        """Return why a URL may not be requested, or None if it may. Nothing is looked up."""
        try:
            scheme, host, _ = origin_of(url)
        except ValueError:
            return "it is not a URL"
        if scheme not in ("http", "https") or not host:
            return f"{scheme or 'this'} is not http or https" if scheme not in ("http", "https") else "it has no host"
        is_name, address = _name_or_address(host)
        if address is None and not is_name:
            return "its host name is not valid"
        if not self._is_trusted(host):
            if address is not None and not is_public(address):
                return _not_public(host, address)
            if host == "localhost" or host.endswith(".localhost"):  # RFC 6761; a proxy would look it up for us
                return _not_public(host, "this machine")
        return outside(url, self._homepage_url, self._cross_host)

    def allowed_addresses(self, host: str, addresses: Iterable[str]) -> list[str]:
        """Return those addresses of a host that a client may connect to. Raise `RefusedError` if none is left.

        Call it with all addresses that the host resolved to, right before you connect to one of them.
        """
        found = {text: _address(text) for text in addresses}
        own = self._only_addresses(host, found.values())
        allowed = [text for text, address in found.items() if (address in own if own else is_public(address))]
        if found and not allowed:
            raise RefusedError(_refused(host, next(iter(found.values()))))
        return allowed

    def check_all_addresses(self, host: str, addresses: Iterable[str]) -> None:
        """Raise `RefusedError` unless a client may connect to every address of a host.

        For a client that does not choose which of them it connects to.
        """
        found = list(addresses)
        allowed = self.allowed_addresses(host, found)
        for text in found:
            if text not in allowed:
                raise RefusedError(_refused(host, _address(text)))

    def check_peer(self, host: str, address: str) -> None:
        """Raise `RefusedError` if a request may not use an open connection to a host.

        A tree with another policy may have opened it.
        """
        peer = _address(address)
        own = self._only_addresses(host, (peer,))
        if not (peer in own if own else is_public(peer)):
            raise RefusedError(_refused(host, peer))

    def mark_resolved_elsewhere(self, host: str) -> None:
        """Note that a proxy, or code of the caller's, resolves a host: its addresses are not known here."""
        name = self._trusted_name(host)
        if name is not None and _name_or_address(name)[1] is None:
            with self._lock:
                self._first_addresses.setdefault(name, frozenset())

    def _only_addresses(self, host: str, found: Collection[Address]) -> frozenset[Address]:
        """Return the only addresses that a host may have, or an empty set if it may have any public address.

        If the host need not be public and nothing is known of it yet, remember the addresses that were found.
        """
        name = self._trusted_name(host)
        if name is None:
            return frozenset()
        known = self._first_addresses.get(name)
        if known is None and found:
            literal = _name_or_address(name)[1]
            own = _private_addresses(found if literal is None else [_address(str(literal))])
            if literal is None and name != self._home[1]:
                own = frozenset(address for address in own if not _is_link_local(address))
            with self._lock:
                known = self._first_addresses.setdefault(name, own)
        return known or frozenset()

    def _trusted_name(self, host: str) -> str | None:
        """Return the normalized name of a host that need not be public; None for any other host."""
        if host == self._home[1] and self._trusts_home:
            return host
        if not self._trusts_home and not self._allow_hosts:
            return None
        name = host_of(f"http://[{host.strip('[]')}]" if ":" in host else f"http://{host}")
        return name if self._is_trusted(name) else None

    def _is_trusted(self, name: str) -> bool:
        """Return whether a host need not be public: it is the homepage's, or the caller allows it."""
        if name == self._home[1]:
            return self._trusts_home
        return bool(self._allow_hosts) and self._allow_hosts.match(name)

    @contextmanager
    def shutting_down_on_cancel(self, connection: socket.socket) -> Iterator[None]:
        """Shut a socket down if the tree is cancelled meanwhile. Raise `RefusedError` if it already was."""
        with self._lock:
            if self.is_cancelled:
                raise RefusedError("cancelled")
            if self._sockets is None:
                self._sockets = WeakSet()
            self._sockets.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._sockets.discard(connection)

    def calling_on_cancel(self, callback: Callable[[], object]) -> AbstractContextManager[None]:
        """Call a function, in the thread that cancels, if the tree is cancelled meanwhile.

        Raise `RefusedError` if it already was.
        """
        return _CallingOnCancel(self, callback)

    def cancel(self) -> None:
        """End all running requests, and let no new one start."""
        with self._lock:
            self.is_cancelled = True
            for callback in list(self._callbacks.values()):
                callback()
            if self._process != os.getpid():
                return  # after a fork: the connections belong to the parent
            for connection in list(self._sockets or ()):
                with suppress(OSError):
                    # Not SSLSocket.shutdown: it drops the TLS state that another thread is using.
                    socket.socket.shutdown(connection, socket.SHUT_RDWR)


class _CallingOnCancel:
    """The context of `calling_on_cancel`. Each request on asyncio has one, and a generator would take longer."""

    __slots__ = ("_callback", "_policy")

    def __init__(self, policy: RequestPolicy, callback: Callable[[], object]) -> None:
        self._policy = policy
        self._callback = callback

    def __enter__(self) -> None:
        policy = self._policy
        with policy._lock:
            if policy.is_cancelled:
                raise RefusedError("cancelled")
            policy._callbacks[self] = self._callback

    def __exit__(self, *_: object) -> None:
        with self._policy._lock:
            self._policy._callbacks.pop(self, None)


@lru_cache(1024)
def _name_or_address(host: str) -> tuple[bool, Address | None]:
    """Return whether a host may be a name, and its address if it is one in any form that systems accept."""
    try:
        return False, ipaddress.ip_address(host)
    except ValueError:
        if _ENDS_IN_NUMBER.fullmatch(host):  # 127.1, 0x7f000001: https://url.spec.whatwg.org/#ends-in-a-number-checker
            with suppress(OSError, ValueError):  # ValueError: characters that no host has
                return False, ipaddress.IPv4Address(socket.inet_aton(host))
            return False, None
    return _NAME.fullmatch(host) is not None, None


@lru_cache(4096)
def _address(text: str) -> Address:
    return ipaddress.ip_address(text.partition("%")[0])


@lru_cache(4096)  # each site of a crawl has a policy of its own, which asks again
def is_public(address: Address) -> bool:
    """Return whether an address belongs to the public internet, also if another address contains it."""
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


def _is_link_local(address: Address) -> bool:
    inner = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (inner or address).is_link_local


def _private_addresses(found: Iterable[Address]) -> frozenset[Address]:
    """Return the addresses of a private home, or an empty set if one of them is public."""
    own = set(found)
    if any(map(is_public, own)):
        return frozenset()
    # A connection to 0.0.0.0 ("this host") has a loopback address at its other end.
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


def _follow_any(_: str) -> bool:
    return True


def _follow_none(_: str) -> bool:
    return False


class applying:  # noqa: N801 -- used as a function
    """Apply a policy to the requests that this thread or task makes in this context.

    Event loops keep the context of a timer long after the timer was cancelled, and so what the context refers to. Of a
    request that has ended, that is little, and not its whole tree.

    :param request_seconds: the time for each of them, if it is shorter than the policy's.
    :param may_follow: asked before a redirect is followed, in any thread.
    """

    __slots__ = ("_token", "may_follow", "policy", "request_seconds")

    def __init__(
        self, policy: RequestPolicy | None, request_seconds: float = math.inf, may_follow: MayFollow = _follow_any
    ) -> None:
        self.policy = policy
        self.request_seconds = request_seconds
        self.may_follow = may_follow

    def __enter__(self) -> None:
        self._token = _CURRENT.set(self)

    def __exit__(self, *_: object) -> None:
        _CURRENT.reset(self._token)
        del self._token
        self.may_follow = _follow_none  # a thread that was abandoned may still ask


_CURRENT: ContextVar[applying] = ContextVar("usp request policy", default=applying(None))  # noqa: B039 -- nobody changes it


def policy_for(url: str) -> RequestPolicy:
    """Return the policy of the current tree; outside of a tree, a policy for this URL alone."""
    policy = _CURRENT.get().policy
    if policy is not None:
        return policy
    try:
        return RequestPolicy(url)
    except ValueError:
        return RequestPolicy("")  # every policy refuses what is not a URL


def may_follow_here() -> MayFollow:
    """Return what to ask before a redirect is followed, for a request of this thread or task."""
    return _CURRENT.get().may_follow


def bytes_allowed(own: int | None, is_callers: bool) -> int | None:
    """Return how many bytes of a body a client may read.

    The caller's limit comes first, then the tree's, then the client's default. Trees that share a client may have
    different limits.
    """
    policy = _CURRENT.get().policy
    return own if is_callers or policy is None else policy.limits.max_sitemap_bytes


def seconds_until(deadline: float) -> float:
    """Return the seconds until a deadline, by `time.monotonic()`. Raise `TimeoutError` if none are left."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("the deadline has passed")
    return left
