"""DNS lookups, and other calls that block, in threads of their own.

A system's lookup can be neither cut short nor cancelled. So a request that runs out of time, or is cancelled, abandons
the thread. Such a thread keeps neither an event loop nor the process from ending. The event loop's own threads are not
used: they are few, the caller needs them too, and the loop waits for them when it ends.

An address needs no lookup, and no thread.
"""

from __future__ import annotations

import asyncio
import contextvars
import errno
import ipaddress
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeVar

from usp.web_client.policy import RefusedError, RequestPolicy

__all__ = [
    "AddressInfo",
    "Resolver",
    "call_in_thread",
    "call_in_time",
    "is_address",
    "look_up",
    "look_up_async",
    "system_lookup",
]

#: One of those that `socket.getaddrinfo` returns.
AddressInfo = tuple[Any, Any, int, str, Any]
#: Returns the addresses of a host, as `socket.getaddrinfo` does.
Resolver = Callable[[str, int], Sequence[AddressInfo]]
Result = TypeVar("Result")


def system_lookup(host: str, port: int) -> Sequence[AddressInfo]:
    """Return the addresses of a host, as the system finds them."""
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


def look_up(
    resolve: Resolver, host: str, port: int, policy: RequestPolicy, seconds: float | None
) -> Sequence[AddressInfo]:
    """Return the addresses of a host. Raise `TimeoutError` when time is up, `RefusedError` if the tree is cancelled."""
    _check_special(host)
    if is_address(host):
        return resolve(host, port)
    return call_in_time(lambda: resolve(host, port), policy, seconds)


async def look_up_async(resolve: Resolver, host: str, port: int) -> Sequence[AddressInfo]:
    """Return the addresses of a host, on asyncio."""
    _check_special(host)
    try:
        return await call_in_thread(lambda: resolve(host, port))
    except RuntimeError as error:
        raise OSError(errno.EAGAIN, "no thread could be started") from error


def call_in_time(function: Callable[[], Result], policy: RequestPolicy, seconds: float | None) -> Result:
    """Call a function in a thread, and return its result or raise its error.

    Raise `TimeoutError` when time is up, `RefusedError` if the tree is cancelled; the thread is abandoned then.
    """
    is_over = threading.Event()
    results: list[Result] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(function())
        except BaseException as error:  # the caller's to handle, whatever it is
            errors.append(error)
        is_over.set()

    with policy.calling_on_cancel(is_over.set):
        try:
            threading.Thread(
                target=contextvars.copy_context().run, args=(work,), name="usp blocking call", daemon=True
            ).start()
        except RuntimeError:  # no thread could be started: do it here
            work()
        is_over.wait(seconds)
    if policy.is_cancelled:
        raise RefusedError("cancelled")
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError("the call did not end in time")
    return results[0]


async def call_in_thread(function: Callable[[], Result]) -> Result:
    """Call a function in a thread, on asyncio, and return its result. The thread is abandoned if this is cancelled."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def end(result: Result | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]  # without an error there is a result

    def work() -> None:
        result = error = None
        try:
            result = function()
        except BaseException as raised:  # the caller's to handle, whatever it is
            error = raised
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(end, result, error)

    threading.Thread(target=work, name="usp blocking call", daemon=True).start()
    return await future


def _check_special(host: str) -> None:
    """Raise an error for names that never exist. A system without a network would say that it cannot tell.

    https://www.rfc-editor.org/rfc/rfc6761#section-6.4
    """
    if host.rstrip(".").lower().rpartition(".")[2] == "invalid":
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


@lru_cache(4096)
def is_address(host: str) -> bool:
    """Return whether a host is an address, and no name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
