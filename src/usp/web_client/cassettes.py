"""Cassettes of vcrpy: connections that record what guarded connections receive, or replay it.

While a cassette is in use, vcrpy replaces the connection classes of urllib3 by its own, which make no connection if the
cassette has the answer. Else they make one of their `_baseclass`. Here that is a guarded class, so recording is no way
around the request policy.

vcrpy is made for one thread: to make a connection, it takes its replacements away for everybody. So connections with a
cassette work one at a time.

All that depends on names of vcrpy is in this module. It does not import vcrpy.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

from usp.web_client.settings import PIECE_BYTES

__all__ = ["connection_class", "real_class"]


class _Exchange(Protocol):
    """What is asked of a fetch."""

    max_bytes: int | None

    def seconds_left(self) -> float:
        """Return the seconds until the deadline. Raise `TimeoutError` if none are left."""


CurrentExchange = Callable[[], _Exchange | None]

_ONE_AT_A_TIME = threading.RLock()


def real_class(connection: Any) -> Any:
    """Return a connection class of urllib3, also if vcrpy has replaced it."""
    return getattr(connection, "_baseclass", connection)


def connection_class(pool: Any, guarded: type, exchange: CurrentExchange) -> type:
    """Return the class for new connections: `guarded`, or one that uses the cassette if there is one.

    `pool` is the class of urllib3 that vcrpy changes. `exchange` returns the fetch that needs the connection.
    """
    if "vcr" not in sys.modules:
        return guarded
    with _alone(exchange):
        replaced = pool.ConnectionCls
        if real_class(replaced) is replaced:
            return guarded
        if "_usp_class" not in vars(replaced):  # there is one class for each cassette
            recorded = type(guarded.__name__, (_Recorded, guarded), {"_exchange": staticmethod(exchange)})
            members = {"_baseclass": recorded, "_exchange": staticmethod(exchange)}
            replaced._usp_class = type(replaced.__name__, (_OneAtATime, replaced), members)
        found: type = vars(replaced)["_usp_class"]
        return found


@contextmanager
def _alone(exchange: CurrentExchange) -> Iterator[None]:
    """Wait until no other thread uses a cassette, but no longer than the fetch has time left."""
    fetch = exchange()
    if not _ONE_AT_A_TIME.acquire(timeout=-1 if fetch is None else fetch.seconds_left()):
        raise TimeoutError("other requests still use the cassette")
    try:
        yield
    finally:
        _ONE_AT_A_TIME.release()


class _OneAtATime:
    """Put before vcrpy's class, for the methods that take its replacements away."""

    _exchange: CurrentExchange

    def __init__(self, *args: Any, **options: Any) -> None:
        with _alone(self._exchange):
            super().__init__(*args, **options)

    def connect(self, *args: Any, **options: Any) -> Any:
        with _alone(self._exchange):
            return super().connect(*args, **options)  # type: ignore[misc]  # it is vcrpy's

    def getresponse(self, *args: Any, **options: Any) -> Any:
        with _alone(self._exchange):
            return super().getresponse(*args, **options)  # type: ignore[misc]


class _Recorded:
    """Put before a guarded class, for a recording that is bounded, and that is still compressed."""

    _exchange: CurrentExchange
    keep_body: Callable[[Any, bytes], None]

    def request(self, *args: Any, **options: Any) -> None:
        """Send a request, whose answer urllib3 does not read by itself."""
        super().request(*args, **{**options, "preload_content": False, "decode_content": False})  # type: ignore[misc]

    def getresponse(self) -> Any:
        """Return an answer whose body is read up to the limit of the fetch, and one byte more."""
        response = super().getresponse()  # type: ignore[misc]
        fetch, body = self._exchange(), bytearray()
        limit = None if fetch is None else fetch.max_bytes
        for piece in iter(partial(response.read1, PIECE_BYTES, decode_content=False), b""):
            body += piece
            if limit is not None and len(body) > limit:
                del body[limit + 1 :]
                response.close()
                break
        self.keep_body(response, bytes(body))  # which vcrpy takes
        return response
