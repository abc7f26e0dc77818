"""Exchanges: every request that a client makes, and its answer, for whoever records them or makes them wait.

A tree needs only documents. A crawl of many sites needs more: the messages as they were sent, requests that are
conditional on an earlier answer, and limits that hold across sites. Such an `Observer` sees each hop of the requests
that are made while `observing(...)`. HTTP clients that are built on `usp.web_client.http_client` call it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from usp.bodies import ArrivingBody

__all__ = ["Exchange", "Observer", "current_observer", "observing"]


class Exchange(NamedTuple):
    """One request and its answer. `body` is None if the body was not kept, as of redirects and errors."""

    url: str
    sent: Mapping[str, str]
    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]
    answered_at: datetime
    body: ArrivingBody | None = None

    def header(self, name: str) -> str | None:
        """Return the first value of a header of the answer, in any case."""
        name = name.lower()
        return next((value for other, value in self.headers if other.lower() == name), None)


class Observer(Protocol):
    """Sees the requests of one tree."""

    def headers_for(self, url: str, /) -> Mapping[str, str]:
        """Return headers to add to a request, such as If-None-Match."""

    async def start(self, url: str, /) -> None:
        """Wait until a request may start. It is called on asyncio only."""

    def end(self, url: str, /, answer: Exchange | None) -> None:
        """Count a request as ended, with its answer if there was one. It is called once for each `start`."""

    def record(self, exchange: Exchange, /) -> None:
        """Take an exchange. Its body, if it is kept, is still arriving."""


class observing:  # noqa: N801 -- used as a function
    """Let an observer see the requests that this thread or task makes in this context.

    Contexts that outlive the request, as those of timers do, do not keep the observer; see `applying`.
    """

    __slots__ = ("_token", "observer")

    def __init__(self, observer: Observer | None) -> None:
        self.observer = observer

    def __enter__(self) -> None:
        self._token = _CURRENT.set(self)

    def __exit__(self, *_: object) -> None:
        _CURRENT.reset(self._token)
        del self._token
        self.observer = None


_CURRENT: ContextVar[observing] = ContextVar("usp observer", default=observing(None))  # noqa: B039 -- nobody changes it


def current_observer() -> Observer | None:
    """Return the observer of the current requests, if there is one."""
    return _CURRENT.get().observer
