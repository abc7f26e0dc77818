"""Work that blocks, on asyncio: in a thread of its own.

Not in the threads of the event loop, which are few, are the caller's too, and are waited for when the loop ends: a name
that takes long to be looked up would hold up everything else there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import TypeVar

__all__ = ["in_thread"]

Result = TypeVar("Result")


async def in_thread(function: Callable[[], Result]) -> Result:
    """What a function gives, which is called in a thread that nobody waits for if this is cancelled."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def end(result: Result | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]  # there is one where there is no error

    def work() -> None:
        result = error = None
        try:
            result = function()
        except BaseException as raised:  # whatever it is, it is for who waits
            error = raised
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(end, result, error)

    Thread(target=work, name="usp-aside", daemon=True).start()
    return await future
