"""The adapter of the requests client: that of requests, with connections that are checked and keep to the deadline.

Where there is no exchange, as when a caller uses the session for something else, it behaves as that of requests does,
but for the certificates of proxies: these are verified always.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import Any

import requests
import requests.adapters
import urllib3
from requests.utils import select_proxy
from urllib3.util import Retry

from usp.origins import host_of
from usp.web_client.answers import DRAIN_SECONDS, PIECE_BYTES
from usp.web_client.connections import CURRENT, POOLS, Exchange

__all__ = ["ERRORS", "GuardedAdapter", "drop_body", "guard"]

#: What goes wrong in requests, urllib3 and below them. ValueError: they raise it, bare, for some URLs and headers that
#: no server should send.
ERRORS = (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError)

_KEPT_CONNECTIONS = 64  # to one host
_KEPT_HOSTS = 64
_NO_RETRIES = Retry(0, read=False)


class GuardedAdapter(requests.adapters.HTTPAdapter):
    """The adapter of requests, with connections of ours. `like` is one whose settings it takes over."""

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
        """None for requests of ours: trees have retries of their own, and urllib3 would sleep beyond the deadline."""
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
        self.poolmanager.pool_classes_by_scheme = POOLS
        self._process = os.getpid()

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        """The pools of a proxy."""
        manager = super().proxy_manager_for(proxy, **options)
        if not proxy.lower().startswith("socks"):
            manager.pool_classes_by_scheme = POOLS
        return manager

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        """Send a request."""
        if self._process != os.getpid():  # the connections are the parent's, who uses them too
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
            # Before the session sees it: what authenticates there would read the body whole, and inflate it.
            drop_body(response, exchange)
            response._content = b""
            response._content_consumed = True  # type: ignore[attr-defined]  # not in its types
        return response

    def close(self) -> None:
        """Close all connections now. urllib3 does so only when the pools are collected."""
        if self._process == os.getpid():
            for manager in (self.poolmanager, *self.proxy_manager.values()):
                for key in manager.pools.keys():  # noqa: SIM118 -- they cannot be gone through otherwise
                    with suppress(KeyError):  # another thread may have pushed it out
                        manager.pools[key].close()
        super().close()

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """Have certificates verified, those of proxies too, which requests does only for https URLs.

        For whoever uses the session: the connections are kept, and used again.
        """
        proxy = getattr(conn, "proxy", None)
        if proxy is not None and proxy.scheme == "https":
            url = "https://"  # no more than that is looked at
        super().cert_verify(conn, url, verify or verify is not False, cert)  # type: ignore[no-untyped-call]

    def build_response(self, req: requests.PreparedRequest, resp: Any) -> requests.Response:
        """The answer as requests has it; without cookies, if it is the answer to a request of ours alone."""
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
    """Put our adapters in the place of those that are exactly requests' own."""
    guarded: dict[int, GuardedAdapter] = {}
    for prefix, adapter in list(session.adapters.items()):
        if type(adapter) is requests.adapters.HTTPAdapter:
            session.adapters[prefix] = guarded.setdefault(id(adapter), GuardedAdapter(adapter))
            adapter.close()


def drop_body(response: requests.Response, exchange: Exchange) -> None:
    """Read a small body, so that its connection can be used again, and close on one that is large, endless or slow."""
    raw = response.raw
    length = getattr(raw, "length_remaining", None)
    deadline = exchange.deadline
    try:
        if getattr(raw, "chunked", False) if length is None else length <= PIECE_BYTES:
            exchange.deadline = min(deadline, time.monotonic() + DRAIN_SECONDS)
            raw.read(PIECE_BYTES, decode_content=False)
    except ERRORS:
        pass  # it is not wanted
    finally:
        exchange.deadline = deadline
        raw.close()
