"""One value for each event loop, such as a client's connections. It is closed with the client, or when the loop ends.

An asynchronous generator holds the value, and every loop closes its generators at its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Generic, TypeVar

__all__ = ["PerLoop"]

Value = TypeVar("Value")


class PerLoop(Generic[Value]):
    """One value for each event loop.

    :param make: makes the value of the running loop.
    :param close: closes a value. For one that is closed already, it must not suspend.
    """

    def __init__(self, make: Callable[[], Value], close: Callable[[Value], Awaitable[object]]) -> None:
        self._make = make
        self._close = close
        self._values: dict[asyncio.AbstractEventLoop, tuple[Value, AsyncGenerator[Any]]] = {}

    def here(self) -> Value | None:
        """Return the value of the running loop, None if it has none yet."""
        found = self._values.get(asyncio.get_running_loop())
        return None if found is None else found[0]

    async def made_here(self) -> Value:
        """Return the value of the running loop. Make it if there is none."""
        loop = asyncio.get_running_loop()
        found = self._values.get(loop)
        if found is None:
            for other in [other for other in list(self._values) if other.is_closed()]:  # threads may add others
                self._values.pop(other, None)
            keeper = self._kept(loop)
            found = self._values[loop] = (await anext(keeper), keeper)  # nothing is awaited in it before that
        return found[0]

    async def close_here(self) -> None:
        """Close the value of the running loop."""
        value, keeper = self._values.pop(asyncio.get_running_loop(), (None, None))
        if value is not None and keeper is not None:
            await self._close(value)  # then its generator ends at once, so that the loop cannot close it meanwhile
            if not getattr(keeper, "ag_running", False):  # not in its types
                await keeper.aclose()

    async def _kept(self, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[Value]:
        value = self._make()
        try:
            yield value
        finally:
            self._values.pop(loop, None)
            await self._close(value)
