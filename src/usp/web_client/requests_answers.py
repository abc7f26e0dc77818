"""Sessions and answers of requests, and of what stands in for them in tests.

A test may replace methods of `requests.Session`, or mount an adapter of its own. What comes back may be any object that
looks like a response: with a body that is there already, without a `raw`, or with attributes that are mocks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from types import FunctionType
from typing import Any

import requests
import urllib3

from usp.web_client.http_messages import HTTPAnswer, header_bytes
from usp.web_client.requests_exchange import Exchange
from usp.web_client.requests_internals import body_already_read, received_answer
from usp.web_client.settings import PIECE_BYTES

__all__ = ["BareSession", "RequestsAnswer", "body_reader", "header_of", "reason_of", "take_cookies"]


class _NoCookies(requests.cookies.RequestsCookieJar):
    """A jar that stays empty."""

    def extract_cookies(self, response: Any, request: Any) -> None:
        """Take no cookies."""

    def set_cookie(self, cookie: Any, *args: Any, **options: Any) -> None:
        """Take no cookie."""


class BareSession(requests.Session):
    """A session for one request, which adds nothing to it and follows no redirect.

    It exists for its methods, which tests replace for all sessions.
    """

    # What Session.__init__ sets. It would also make adapters, which takes longer than all the rest.
    auth = cert = None
    stream = verify = True
    trust_env = False
    max_redirects = 0
    cookies = _NoCookies()

    def __init__(self, adapter: requests.adapters.BaseAdapter) -> None:
        self.adapters = OrderedDict({"": adapter})  # for all URLs; requests-mock replaces get_adapter()
        self.headers = requests.structures.CaseInsensitiveDict()
        self.hooks: dict[str, list[Any]] = {"response": []}
        self.params: dict[str, Any] = {}
        self.proxies: dict[str, str] = {}

    def resolve_redirects(self, *_: Any, **__: Any) -> Iterator[Any]:
        """Return nothing: requests would read the whole body of a redirect."""
        return iter(())

    def get_only(self, url: str, headers: dict[str, str], **options: Any) -> requests.Response:
        """Make a GET request with exactly these headers. Call all methods that someone has replaced."""
        if not (_is_original(requests.Session.get) and _is_original(requests.Session.request)):
            return self.get(url, headers=headers, **options)
        prepared = requests.PreparedRequest()  # requests would encode the URL again
        prepared.method = "GET"
        prepared.url = url
        prepared.headers = requests.structures.CaseInsensitiveDict(headers)
        return self.send(prepared, **options)


def _is_original(method: object) -> bool:
    """Return whether a method of requests' sessions is the one that requests defines."""
    return isinstance(method, FunctionType) and method.__module__ == "requests.sessions"


class RequestsAnswer(HTTPAnswer):
    """The answer of requests. `location` is its Location header, which may have been taken away."""

    def __init__(self, response: requests.Response, location: str | None, exchange: Exchange) -> None:
        # Redirects are switched off, so the URL needs no check.
        close = None if response.raw is None else response.close
        super().__init__("", response.status_code, reason_of(response), (), body_reader(response), close)
        self.response = response
        self._location = location
        self._exchange = exchange

    def header(self, name: str) -> str | None:
        """Return the value of a header."""
        return header_of(self.response, name)

    def location(self) -> bytes | None:
        """Return the first Location header as bytes, or None."""
        if self._location is None:
            return None
        values = self.values("Location")
        is_joined = ", ".join(values) == self._location  # as requests does; else somebody has changed it
        return header_bytes(values[0] if values and is_joined else self._location)

    def values(self, name: str) -> list[str]:
        """Return all values of a header."""
        get = getattr(getattr(self.response.raw, "headers", None), "getlist", None)
        return list(get(name)) if get else []

    def discard(self) -> None:
        """Read a small body, to reuse its connection; close the connection if it is large, endless or slow."""
        self._exchange.drain(self.response)
        self._close = None  # it is closed


def header_of(response: requests.Response, name: str) -> str | None:
    """Return the value of a header; None if a mock stands in for it."""
    value = response.headers.get(name)
    return value if isinstance(value, str) else None


def reason_of(response: requests.Response) -> str | None:
    """Return the server's words for the status; None if there are none, or a mock stands in for them."""
    return response.reason if isinstance(response.reason, str) else None


def body_reader(response: requests.Response) -> Callable[[], bytes]:
    """Return a function that returns the next piece of a body as soon as it arrives.

    The body keeps its transport encoding: urllib3 trusts the header, and fails if the header is wrong.
    """
    raw: Any = response.raw
    if (body := body_already_read(response)) is not None:
        return partial(next, iter((body,)), b"")
    if isinstance(raw, urllib3.HTTPResponse) and hasattr(raw, "read1"):
        return partial(raw.read1, PIECE_BYTES, decode_content=False)

    def pieces() -> Iterator[bytes]:
        if raw is not None:
            yield from raw.stream(PIECE_BYTES, decode_content=False)

    return partial(next, pieces(), b"")


def take_cookies(response: requests.Response, cookies: requests.cookies.RequestsCookieJar) -> None:
    """Move the cookies that an answer sets into a jar, so that the session does not see them."""
    request: Any = getattr(response, "request", None)
    requests.cookies.extract_cookies_to_jar(cookies, request, response.raw)  # type: ignore[no-untyped-call]
    message = getattr(received_answer(response.raw), "msg", None)
    for name in ("Set-Cookie", "Set-Cookie2"):
        if message is not None and name in message:  # the headers of a mock raise if there is none
            del message[name]
