"""Limits on requests at once, over all sites of a crawl: for each host, registered domain and address.

Each tree is polite to the hosts that it knows. But a thousand sites may be on one server, or behind one network that
delivers content for others. A request waits here until its host, its domain and its address have room. A host that
answers 429 or 503 rests for all sites.

The address of a host is looked up before its first request, so that this one counts, too. The client that makes the
request uses the same answer, and connects to the address that was counted, unless that does not work.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus

from usp.exceptions import InvalidArgumentError
from usp.origins import host_of, origin_of, registered_domain
from usp.web_client.exchanges import Exchange
from usp.web_client.failures import retry_after_seconds
from usp.web_client.lookups import AddressInfo, Resolver, is_address, look_up_async, system_lookup

__all__ = ["RequestLimits", "SharedLimits"]

_OVERLOADED = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
_PAUSE = 1.0  # seconds, for a host that does not say how long to wait
_MAX_PAUSE = 60.0
_MAX_ADDRESSES = 10_000  # hosts whose addresses are remembered; others are looked up again
_MAX_UNUSED = 1_000  # lookups that no client has asked for yet
_LOOKUP_SECONDS = 20.0  # after which a request starts all the same; the client looks up the host again, in its time


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """How many requests at once a crawl may make.

    :param per_host: to one host.
    :param per_domain: to all hosts of one registered domain, such as example.org.
    :param per_address: to all hosts with one address.
    """

    per_host: int = 2
    per_domain: int = 8
    per_address: int = 32

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise InvalidArgumentError(f"{name} must be an integer, 1 or more, not {value!r}")


class _Count:
    """The requests to one host, domain or address."""

    __slots__ = ("paused_until", "running", "waiting")

    def __init__(self) -> None:
        self.running = 0
        self.paused_until = 0.0
        self.waiting: deque[asyncio.Future[None]] | None = None  # most requests wait for no other


#: What is counted: "host", "domain" or "address", and its name.
_Key = tuple[str, str]


class SharedLimits:
    """Counts the requests of a crawl, in one event loop.

    `is_direct` says whether the client asks `resolve` for the address of a URL's host. Else no address is looked up.

    :param look_up: finds the addresses of a host.
    """

    def __init__(self, limits: RequestLimits, look_up: Resolver = system_lookup) -> None:
        self._most = {"host": limits.per_host, "domain": limits.per_domain, "address": limits.per_address}
        self._counts: dict[_Key, _Count] = {}
        self._running: dict[str, list[tuple[_Key, ...]]] = {}  # URL -> what its running requests are counted for
        self._system_lookup = look_up
        self.is_direct: Callable[[str], bool] = lambda url: False
        self._addresses: dict[str, str] = {}
        self._lookups: dict[str, asyncio.Task[object]] = {}
        self._found: dict[tuple[str, int], Sequence[AddressInfo] | Exception] = {}  # for the client, which asks next

    def resolve(self, host: str, port: int) -> Sequence[AddressInfo]:
        """Return the addresses of a host, the one that is counted first. A web client calls it, in any thread."""
        found = self._found.pop((host, port), None)
        if isinstance(found, Exception):
            raise found
        known = self._addresses.get(host)
        ordered = sorted(found or self._system_lookup(host, port), key=lambda info: str(info[4][0]) != known)
        if ordered:
            self._addresses[host] = str(ordered[0][4][0])
            if len(self._addresses) > _MAX_ADDRESSES:
                self._addresses.pop(next(iter(self._addresses)), None)
        return ordered

    async def start(self, url: str) -> None:
        """Wait until a request may start, and count it."""
        host = host_of(url)
        if host not in self._addresses and not is_address(host) and self.is_direct(url):
            await self._learn_address(host, origin_of(url)[2])
        keys = self._keys(host)
        waited: _Count | None = None
        while (blocked := self._blocked(keys)) is not None:
            full, seconds = blocked
            if waited is not None and waited is not full:
                self._pass_on(waited)  # its turn came here, and is not used
            waited = full
            await self._wait(full, seconds)
        for key in keys:
            count = self._counts.get(key)
            if count is None:
                count = self._counts[key] = _Count()
            count.running += 1
        self._running.setdefault(url, []).append(keys)

    async def _learn_address(self, host: str, port: int) -> None:
        """Look up a host, once for all that ask at the same time. The client raises the error, if there is one."""
        if host not in self._lookups:
            self._lookups[host] = asyncio.create_task(self._look_up(host, port))
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._lookups[host]), _LOOKUP_SECONDS)

    async def _look_up(self, host: str, port: int) -> None:
        if len(self._found) > _MAX_UNUSED:  # of requests that were cancelled, and of names that never exist
            self._found.clear()
        try:
            self._found[host, port] = await look_up_async(self.resolve, host, port)
        except (OSError, ValueError) as error:
            self._found[host, port] = error.with_traceback(None)  # which would keep everything that led here
        finally:
            del self._lookups[host]

    async def _wait(self, count: _Count, seconds: float) -> None:
        """Wait until a request has ended or, if `seconds` is not 0, until that time is over."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        if count.waiting is None:
            count.waiting = deque()
        count.waiting.append(turn)
        timer = loop.call_later(seconds, _wake, turn) if seconds else None
        try:
            await turn
        except asyncio.CancelledError:
            self._pass_on(count)
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def end(self, url: str, answer: Exchange | None) -> None:
        """Count a request as ended. A host that is overloaded rests as long as it asks, within limits."""
        keys = self._running[url].pop()
        if not self._running[url]:
            del self._running[url]
        if answer is not None and answer.status in _OVERLOADED:
            asked = retry_after_seconds(answer.header("Retry-After"))
            pause = min(_PAUSE if asked is None else asked, _MAX_PAUSE)
            self._counts[keys[0]].paused_until = time.monotonic() + pause
        for key in keys:
            count = self._counts[key]
            count.running -= 1
            if count.waiting:
                self._pass_on(count)
            is_paused = count.paused_until and count.paused_until >= time.monotonic()
            if not count.running and not count.waiting and not is_paused:
                del self._counts[key]

    def _keys(self, host: str) -> tuple[_Key, ...]:
        address = self._addresses.get(host, host)
        return ("host", host), ("domain", registered_domain(host)), ("address", address)

    def _blocked(self, keys: tuple[_Key, ...]) -> tuple[_Count, float] | None:
        """Return the first count that has no room, and for how many seconds it rests; None if all have room."""
        for key in keys:
            count = self._counts.get(key)
            if count is None:
                continue
            left = count.paused_until - time.monotonic() if count.paused_until else 0.0
            if left > 0:
                return count, left
            if count.running >= self._most[key[0]]:
                return count, 0.0
        return None

    def _pass_on(self, count: _Count) -> None:
        """Wake the first that waits, if any."""
        while count.waiting:
            turn = count.waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return


def _wake(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)
