"""The interface of a web client. Implement `AbstractWebClient` to fetch by other means: a cache, an archive, ..."""

from __future__ import annotations

import abc
import math
import re
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from types import EllipsisType

from usp.exceptions import InvalidArgumentError, NoWebClientException

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
]

#: Statuses after which the same request may succeed later, those of proxies and content networks among them.
RETRYABLE_HTTP_STATUS_CODES = {
    HTTPStatus.BAD_REQUEST.value,
    HTTPStatus.REQUEST_TIMEOUT.value,
    HTTPStatus.TOO_MANY_REQUESTS.value,
    499,  # nginx: the client went away
    HTTPStatus.INTERNAL_SERVER_ERROR.value,
    HTTPStatus.BAD_GATEWAY.value,
    HTTPStatus.SERVICE_UNAVAILABLE.value,
    HTTPStatus.GATEWAY_TIMEOUT.value,
    509,  # Apache: bandwidth limit exceeded
    *range(520, 528),  # Cloudflare: the origin's faults
    530,
    598,  # some proxies: network read time-out
}

_WAITED_AT_ONCE = 0.1  # seconds; then it is seen whether there is anything left to wait for
_LEADING_STATUS = re.compile(r"([1-5]\d\d)\b")


class AbstractWebClientResponse:
    """What `get` gives: a success or an error."""


class AbstractWebClientSuccessResponse(AbstractWebClientResponse, abc.ABC):
    """A response with a body."""

    @abc.abstractmethod
    def status_code(self) -> int:
        """The HTTP status, such as 200."""

    @abc.abstractmethod
    def status_message(self) -> str:
        """The words that go with it, such as "OK"."""

    @abc.abstractmethod
    def header(self, case_insensitive_name: str) -> str | None:
        """The value of a header, None if there is none of this name."""

    @abc.abstractmethod
    def raw_data(self) -> bytes:
        """The body, at most as long as the client's limit."""

    @abc.abstractmethod
    def url(self) -> str:
        """The URL that answered, after redirects."""

    def encoded_data(self) -> bytes | None:
        """The body as it was transferred, still in its Content-Encoding, where the client can give that; else None.

        Where it is given, `raw_data()` is not asked for.
        """
        return None

    def transport_problems(self) -> tuple[str, ...]:
        """Codes, of `usp.objects.problem`, of what was wrong with the transfer of a body that is used all the same."""
        return ()


class WebClientErrorResponse(AbstractWebClientResponse):
    """A request that failed, and whether it may be worth trying again.

    `status` is the HTTP status, None if there was no answer. Without it, the status is what the message begins with.
    """

    _status: int | EllipsisType | None = ...

    def __init__(
        self,
        message: str,
        retryable: bool,
        *,
        retry_after: float | None = None,
        partial: AbstractWebClientSuccessResponse | None = None,
        status: int | EllipsisType | None = ...,
    ) -> None:
        self._message = message
        self._retryable = retryable
        self._retry_after = retry_after
        self._partial = partial
        self._status = status

    def message(self) -> str:
        """What went wrong."""
        return self._message

    def retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return self._retryable

    def status_code(self) -> int | None:
        """The HTTP status, None if there was no answer.

        Clients that do not say it have it in their message ("404 Not Found"), so it is read there.
        """
        if self._status is not ...:
            return self._status
        match = _LEADING_STATUS.match(self.message())
        return int(match[1]) if match else None

    def retry_after(self) -> float | None:
        """The seconds that the server asks to wait before the next try, as it says them; None if it says nothing."""
        return self._retry_after

    def partial(self) -> AbstractWebClientSuccessResponse | None:
        """What came of an answer before its transfer broke off, which is used if no later try gives all of it."""
        return self._partial


class AbstractWebClient(abc.ABC):
    """Fetches URLs."""

    #: Whether `get` may be called by several threads at once. If not, a tree makes one request at a time.
    is_thread_safe: bool = False

    @abc.abstractmethod
    def set_max_response_data_length(self, max_response_data_length: int | None) -> None:
        """Set how many bytes of a body are read at most; None for no limit."""

    def limit_response_data_length(self, max_response_data_length: int) -> None:
        """Called before a tree is fetched, with the most that is wanted of a body.

        A client in which the caller can have set a limit already may override this, to keep that one.
        """
        self.set_max_response_data_length(max_response_data_length)

    @abc.abstractmethod
    def get(self, url: str) -> AbstractWebClientResponse:
        """Fetch a URL, following redirects. What the network does wrong is a `WebClientErrorResponse`, never raised."""


class AbstractAsyncWebClient(abc.ABC):
    """Fetches URLs, on asyncio."""

    @abc.abstractmethod
    async def get(self, url: str) -> AbstractWebClientResponse:
        """Fetch a URL, following redirects. What the network does wrong is a `WebClientErrorResponse`, never raised."""

    def limit_response_data_length(self, max_response_data_length: int) -> None:  # noqa: B027 -- it may do nothing
        """Called before a tree is fetched, with the most that is wanted of a body."""


class LocalWebClient(AbstractWebClient):
    """A client that fetches nothing, for parsing what is already here."""

    def set_max_response_data_length(self, max_response_data_length: int | None) -> None:
        """Does nothing."""

    def get(self, url: str) -> AbstractWebClientResponse:
        """Raises `NoWebClientException`."""
        raise NoWebClientException(f"{url} is not fetched: this tree is read from local content only")


class LocalWebClientSuccessResponse(AbstractWebClientSuccessResponse):
    """A response made of a text that is already here."""

    def __init__(self, url: str, data: str) -> None:
        self._url = url
        self._data = data

    def status_code(self) -> int:
        """200."""
        return HTTPStatus.OK.value

    def status_message(self) -> str:
        """OK."""
        return HTTPStatus.OK.phrase

    def header(self, case_insensitive_name: str) -> str | None:
        """None: there are no headers."""
        return None

    def raw_data(self) -> bytes:
        """The text as UTF-8."""
        return self._data.encode("utf-8")

    def url(self) -> str:
        """The URL given."""
        return self._url


class RequestWaiter:
    """Waits between requests, so that they start `wait` seconds apart, whichever threads make them.

    With `random_wait` it is at random from half to one and a half of that.
    """

    def __init__(self, wait: float | None = None, random_wait: bool = True) -> None:
        if wait is not None and not (isinstance(wait, (int, float)) and 0 <= wait < math.inf):
            raise InvalidArgumentError(f"wait must be a number of seconds, 0 or more, not {wait!r}")
        self._seconds = wait or 0
        self._random = random_wait
        self._next = -math.inf
        self._lock = threading.Lock()

    def wait(self, is_over: Callable[[], bool] | None = None) -> None:
        """Wait, if it is time to; no longer once `is_over`."""
        if not self._seconds:
            return
        with self._lock:
            start = max(self._next, time.monotonic())
            self._next = start + self._seconds * self._factor()
        while (left := start - time.monotonic()) > 0 and not (is_over is not None and is_over()):
            time.sleep(min(left, _WAITED_AT_ONCE) if is_over is not None else left)

    def _factor(self) -> float:
        if not self._random:
            return 1.0
        import random  # only where it is needed: it takes longer to import than this module

        return random.uniform(0.5, 1.5)  # noqa: S311 -- not a secret
