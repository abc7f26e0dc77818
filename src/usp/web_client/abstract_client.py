"""The interface of web clients, and of what they return.

To fetch by other means than HTTP (a cache, an archive, a browser), subclass `AbstractWebClient` and implement `get`. To
use another HTTP library, subclass `AbstractHTTPClient` of `usp.web_client.http_client` instead: it follows redirects,
refuses private addresses, and keeps credentials, deadlines and size limits for you.
"""

from __future__ import annotations

import abc
import math
import re
import sys
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from types import EllipsisType
from typing import TYPE_CHECKING, ClassVar

from usp.exceptions import InvalidArgumentError, NoWebClientException

if TYPE_CHECKING:
    from datetime import datetime

    from usp.bodies import ArrivingBody

__all__ = [
    "RETRYABLE_HTTP_STATUS_CODES",
    "AbstractAsyncWebClient",
    "AbstractWebClient",
    "AbstractWebClientResponse",
    "AbstractWebClientSuccessResponse",
    "LocalWebClient",
    "LocalWebClientSuccessResponse",
    "NoWebClientException",
    "RequestWaiter",
    "WebClientErrorResponse",
    "request_errors",
]

#: Statuses after which the same request may succeed later, including those of proxies and content networks.
RETRYABLE_HTTP_STATUS_CODES = {
    HTTPStatus.BAD_REQUEST.value,
    HTTPStatus.REQUEST_TIMEOUT.value,
    HTTPStatus.TOO_MANY_REQUESTS.value,
    499,  # nginx: the client closed the connection
    HTTPStatus.INTERNAL_SERVER_ERROR.value,
    HTTPStatus.BAD_GATEWAY.value,
    HTTPStatus.SERVICE_UNAVAILABLE.value,
    HTTPStatus.GATEWAY_TIMEOUT.value,
    509,  # Apache: bandwidth limit exceeded
    *range(520, 528),  # Cloudflare: errors of the origin server
    530,
    598,  # some proxies: network read timeout
}

_LONGEST_SLEEP = 0.1  # seconds, before looking whether there is still something to wait for
_LEADING_STATUS = re.compile(r"([1-5]\d\d)\b")


#: What HTTP libraries raise if a request fails, where that is not an OSError, by the module that defines it.
_LIBRARY_ERRORS = {
    "http.client": "HTTPException",
    "urllib3.exceptions": "HTTPError",
    "aiohttp": "ClientError",
    "httpx": "HTTPError",
}


def request_errors(client: object) -> tuple[type[BaseException], ...]:
    """Return what the `get` of a client, and its responses, raise if a request fails. Anything else is a bug in them.

    They are those that the client names (`request_errors`). One that names none, or is no `AbstractWebClient`, may
    raise OSError, EOFError, and the errors of common HTTP libraries.
    """
    named = getattr(client, "request_errors", None)
    if isinstance(named, (tuple, type)):
        return named if isinstance(named, tuple) else (named,)
    # A library that was not imported has raised nothing.
    libraries = (getattr(sys.modules.get(module), name, None) for module, name in _LIBRARY_ERRORS.items())
    return (OSError, EOFError, *(kind for kind in libraries if isinstance(kind, type)))


class AbstractWebClientResponse:
    """What `get` returns: a success or an error."""

    def received_at(self) -> datetime | EllipsisType | None:
        """Return when the response was received, in UTC, if that was not just now but earlier, as in an archive.

        None means that this is not known; for an error, also that there was no response.
        """
        return ...


class AbstractWebClientSuccessResponse(AbstractWebClientResponse, abc.ABC):
    """A response with a body."""

    @abc.abstractmethod
    def status_code(self) -> int:
        """Return the HTTP status, such as 200."""

    @abc.abstractmethod
    def status_message(self) -> str:
        """Return the words that go with the status, such as "OK"."""

    @abc.abstractmethod
    def header(self, case_insensitive_name: str) -> str | None:
        """Return the value of a header, None if there is none of this name."""

    @abc.abstractmethod
    def raw_data(self) -> bytes:
        """Return the body, at most as long as the client's limit."""

    @abc.abstractmethod
    def url(self) -> str:
        """Return the URL that answered, after redirects."""

    def encoded_data(self) -> bytes | None:
        """Return the body as it was transferred, still in its Content-Encoding, or None if the client cannot.

        If it is not None, `raw_data()` is not called.
        """
        return None

    def transport_problems(self) -> tuple[str, ...]:
        """Return problem codes (`usp.objects.codes`) for the transfer of a body that is used despite them."""
        return ()

    def stored_body(self) -> ArrivingBody | None:
        """Return a body that the client has put into the tree's store while it arrived, or None.

        If it is not None, neither `encoded_data()` nor `raw_data()` is called.
        """
        return None

    def discarded_bytes(self) -> int:
        """Return how many bytes of other answers, such as redirects, were transferred before this one."""
        return 0


class WebClientErrorResponse(AbstractWebClientResponse):
    """A request that failed, and whether to retry it.

    `status` is the HTTP status, None if there was no answer. If you do not give it, it is read from the start of the
    message. `is_refused` says that the client does not make such a request, by a rule of its own; otherwise a failure
    without a status means that the host could not be reached. `is_of_origin` says that no other URL of the same scheme,
    host and port is worth a request.
    """

    # Defaults, for subclasses that do not call __init__.
    _retry_after: float | None = None
    _partial: AbstractWebClientSuccessResponse | None = None
    _status: int | EllipsisType | None = ...
    _is_refused = False
    _is_of_origin = False
    _transferred = 0  # bytes of bodies that arrived all the same
    _moved_to: str | None = None
    _has_cookies = False

    def __init__(
        self,
        message: str,
        retryable: bool,
        *,
        retry_after: float | None = None,
        partial: AbstractWebClientSuccessResponse | None = None,
        status: int | EllipsisType | None = ...,
        is_refused: bool = False,
        is_of_origin: bool = False,
    ) -> None:
        self._message = message
        self._retryable = retryable
        self._retry_after = retry_after
        self._partial = partial
        self._status = status
        self._is_refused = is_refused
        self._is_of_origin = is_of_origin

    def message(self) -> str:
        """Return what went wrong."""
        return self._message

    def retryable(self) -> bool:
        """Return whether the same request may succeed later."""
        return self._retryable

    def status_code(self) -> int | None:
        """Return the HTTP status, None if there was no answer.

        If the client gave none, it is the number at the start of the message ("404 Not Found").
        """
        if self._status is not ...:
            return self._status
        match = _LEADING_STATUS.match(self.message())
        return int(match[1]) if match else None

    def is_refused(self) -> bool:
        """Return whether the client refused to make the request: a private address, a scheme, too many redirects."""
        return self._is_refused

    def is_of_origin(self) -> bool:
        """Return whether all URLs of the same scheme, host and port fail so: no such host, a bad certificate."""
        return self._is_of_origin

    def retry_after(self) -> float | None:
        """Return the seconds that the server asks to wait before the next try, None if it does not."""
        return self._retry_after

    def transferred_bytes(self) -> int:
        """Return how many bytes of bodies arrived before the failure, with those of redirects and of `partial()`."""
        return self._transferred

    def moved_to(self) -> str | None:
        """Return where the URL redirects to, if the client did not follow because `may_follow()` said no, else None."""
        return self._moved_to

    def has_cookies(self) -> bool:
        """Return whether redirects have set cookies for `moved_to()`."""
        return self._has_cookies

    def partial(self) -> AbstractWebClientSuccessResponse | None:
        """Return the part of a body that arrived before the transfer broke off. It is used if no retry does better."""
        return self._partial


class AbstractWebClient(abc.ABC):
    """A client that fetches URLs.

    `get` alone decides where it goes: a client that does HTTP should be an `AbstractHTTPClient`.
    """

    #: Whether `get` connects only where the request policy allows, at each redirect too, or to nothing at all. usp
    #: cannot do that for you. If not, a tree with `private="refuse"` raises an error.
    guards_addresses: ClassVar[bool] = False
    #: Whether several threads may call `get` at once. If not, a tree makes one request at a time.
    is_thread_safe: bool = False
    #: What `get` raises if a request fails, which costs one sitemap. Anything else is a bug, and reaches the caller.
    #: None stands for OSError, EOFError, and the errors of requests, urllib3, aiohttp and httpx.
    request_errors: tuple[type[BaseException], ...] | None = None

    @abc.abstractmethod
    def set_max_response_data_length(self, max_response_data_length: int | None) -> None:
        """Set how many bytes of a body to read at most; None for no limit."""

    def limit_response_data_length(self, max_response_data_length: int) -> None:
        """Set the limit of a tree, before it is fetched.

        Override this if the caller may have set a limit of their own, which should stay.
        """
        self.set_max_response_data_length(max_response_data_length)

    @abc.abstractmethod
    def get(self, url: str) -> AbstractWebClientResponse:
        """Fetch a URL, following redirects. Return errors of the network as a `WebClientErrorResponse`.

        You may also raise one of `request_errors`.
        """


class AbstractAsyncWebClient(abc.ABC):
    """A client that fetches URLs, on asyncio."""

    #: Whether `get` connects only where the request policy allows, as in `AbstractWebClient`.
    guards_addresses: ClassVar[bool] = False
    #: What `get` raises if a request fails, as in `AbstractWebClient`.
    request_errors: tuple[type[BaseException], ...] | None = None

    @abc.abstractmethod
    async def get(self, url: str) -> AbstractWebClientResponse:
        """Fetch a URL, following redirects. Return errors of the network as a `WebClientErrorResponse`.

        You may also raise one of `request_errors`.
        """

    def close_idle(self, host: str) -> None:  # noqa: B027 -- it may do nothing
        """Close the connections to a host that no request uses: usp needs nothing more from it."""

    def limit_response_data_length(self, max_response_data_length: int) -> None:  # noqa: B027 -- it may do nothing
        """Set how many bytes of a body to read at most, before a tree is fetched."""


class LocalWebClient(AbstractWebClient):
    """A client that fetches nothing, to parse content that you already have."""

    guards_addresses = True

    def set_max_response_data_length(self, max_response_data_length: int | None) -> None:
        """Do nothing."""

    def get(self, url: str) -> AbstractWebClientResponse:
        """Raise `NoWebClientException`."""
        raise NoWebClientException(f"{url} is not fetched: this tree is read from local content only")


class LocalWebClientSuccessResponse(AbstractWebClientSuccessResponse):
    """A response made of a text that you already have."""

    def __init__(self, url: str, data: str) -> None:
        self._url = url
        self._data = data

    def status_code(self) -> int:
        """Return 200."""
        return HTTPStatus.OK.value

    def status_message(self) -> str:
        """Return "OK"."""
        return HTTPStatus.OK.phrase

    def header(self, case_insensitive_name: str) -> str | None:
        """Return None: there are no headers."""
        return None

    def raw_data(self) -> bytes:
        """Return the text as UTF-8."""
        return self._data.encode("utf-8")

    def url(self) -> str:
        """Return the URL."""
        return self._url


class RequestWaiter:
    """Waits between requests, so that they start `wait` seconds apart, also if several threads make them.

    With `random_wait` it is a random time, from half to one and a half of that.
    """

    def __init__(self, wait: float | None = None, random_wait: bool = True) -> None:
        if wait is not None and not (isinstance(wait, (int, float)) and 0 <= wait < math.inf):
            raise InvalidArgumentError(f"wait must be a number of seconds, 0 or more, not {wait!r}")
        self._seconds = wait or 0
        self._random = random_wait
        self._next = -math.inf
        self._lock = threading.Lock()

    def wait(self, is_over: Callable[[], bool] | None = None) -> None:
        """Wait until the next request may start, or until `is_over()`."""
        if not self._seconds:
            return
        with self._lock:
            start = max(self._next, time.monotonic())
            self._next = start + self._seconds * self._factor()
        while (left := start - time.monotonic()) > 0 and not (is_over is not None and is_over()):
            time.sleep(min(left, _LONGEST_SLEEP) if is_over is not None else left)

    def _factor(self) -> float:
        if not self._random:
            return 1.0
        import random  # imported only when needed: it is slower to import than this module

        return random.uniform(0.5, 1.5)  # noqa: S311 -- not a secret
