"""Looking up names, in threads of its own: what the system does there can be neither cut short nor cancelled.

So a request that runs out of time, or is cancelled, leaves its lookup to itself. The threads keep nothing from ending,
neither an event loop nor the process. An address needs no lookup, and no thread.
"""

from __future__ import annotations

import errno
import ipaddress
import threading
from collections.abc import Callable, Sequence
from typing import Any

from usp.web_client.policy import RefusedError, RequestPolicy
from usp.web_client.threads import in_thread

__all__ = ["AddressInfo", "Resolver", "looked_up_aside", "looked_up_in_time"]

#: One of those that `socket.getaddrinfo` gives.
AddressInfo = tuple[Any, Any, int, str, Any]
#: Gives the addresses of a host, as `socket.getaddrinfo` does.
Resolver = Callable[[str, int], Sequence[AddressInfo]]


class _Lookup(threading.Thread):
    """One lookup. `tell` is called at its end, in its thread."""

    def __init__(self, resolve: Resolver, host: str, port: int, tell: Callable[[], object]) -> None:
        super().__init__(name="usp lookup", daemon=True)
        self._resolve = resolve
        self._host = host
        self._port = port
        self._tell = tell
        self._found: Sequence[AddressInfo] = ()
        self._error: BaseException | None = TimeoutError("the name was not looked up in time")

    def begin(self) -> None:
        """Start; where no thread can be had, look up here and now."""
        try:
            self.start()
        except RuntimeError:
            self.run()

    def run(self) -> None:
        """Look up the host."""
        try:
            self._found = self._resolve(self._host, self._port)
            self._error = None
        except BaseException as error:
            self._error = error
        self._tell()

    def found(self) -> Sequence[AddressInfo]:
        """The addresses. Raises what looking them up has raised, `TimeoutError` if it has not ended."""
        if self._error is not None:
            raise self._error
        return self._found


def looked_up_in_time(
    resolve: Resolver, host: str, port: int, policy: RequestPolicy, seconds: float | None
) -> Sequence[AddressInfo]:
    """The addresses of a host. Raises `TimeoutError` after so many seconds, `RefusedError` if the tree is cancelled."""
    if _is_address(host):
        return resolve(host, port)
    is_over = threading.Event()
    lookup = _Lookup(resolve, host, port, is_over.set)
    with policy.calling_on_cancel(is_over.set):
        lookup.begin()
        is_over.wait(seconds)
    if policy.is_cancelled:
        raise RefusedError("cancelled")
    return lookup.found()


async def looked_up_aside(resolve: Resolver, host: str, port: int) -> Sequence[AddressInfo]:
    """The addresses of a host, on asyncio."""
    try:
        return await in_thread(lambda: resolve(host, port))
    except RuntimeError as error:
        raise OSError(errno.EAGAIN, "no thread can be had") from error


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
