"""The base of HTTP clients: redirects, the request policy, credentials, cookies, deadlines and size limits.

To use another HTTP library, subclass `AbstractHTTPClient` (or `AbstractAsyncHTTPClient`) and implement one method,
`send(request)`: make one GET request, without following redirects, and return an `HTTPAnswer`. `get(url)` does the
rest, for every hop:

- It refuses URLs, redirects and hosts that the policy does not allow.
- It decides which headers to send. Credentials and the caller's headers go to the homepage's origin only.
- It follows redirects, up to the limit, and returns the cookies that they set to the origin that set them.
- It reads a body up to the size limit, and keeps what has arrived if the transfer breaks off.
- It ends a request by its deadline, or when the tree is cancelled.
- It returns errors as `WebClientErrorResponse`, with a message and whether a retry may help.

Two things only your transport can do well. You declare it with a class attribute if it does; if not, the base does what
it can, and allows less:

- `checks_addresses`: connect only to addresses that `request.policy.allowed_addresses()` returns. If you do not, the
  base looks up the host before each hop and refuses it unless *all* its addresses are allowed. That check happens
  before you connect, not when you connect: a name that changes its address in between is not caught, unless you connect
  to `request.addresses`.
- `keeps_deadlines` (not on asyncio, where tasks can be cancelled): let no step take longer than
  `request.seconds_left()`. If you do not, `send` runs in a thread that is abandoned at the deadline.
"""

from __future__ import annotations

import abc
import asyncio
import re
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from http import HTTPStatus
from http.client import HTTPException
from typing import Any, ClassVar

from usp.bodies import ArrivingBody
from usp.inflate import transport_decoded
from usp.limits import MAX_SITEMAP_BYTES
from usp.origins import host_of, origin_of
from usp.web_client.abstract_client import (
    RETRYABLE_HTTP_STATUS_CODES,
    AbstractAsyncWebClient,
    AbstractWebClient,
    AbstractWebClientResponse,
    AbstractWebClientSuccessResponse,
    RequestWaiter,
    WebClientErrorResponse,
)
from usp.web_client.failures import cut_off_message, failure_of, late_message, retry_after_seconds, status_line
from usp.web_client.framing import is_whole_range
from usp.web_client.lookups import AddressInfo, Resolver, call_in_time, look_up, look_up_async, system_lookup
from usp.web_client.policy import RefusedError, RequestPolicy, bytes_allowed, policy_for, seconds_until
from usp.web_client.redirects import REDIRECTS, Redirects
from usp.web_client.settings import add_headers, headers_to_send, split_authorization

__all__ = [
    "MISTAKES",
    "AbstractAsyncHTTPClient",
    "AbstractHTTPClient",
    "AsyncHTTPAnswer",
    "Fetch",
    "HTTPAnswer",
    "HTTPRequest",
    "HTTPSuccessResponse",
    "TransferredResponse",
    "header_bytes",
]

_LENGTH = re.compile(r"[0-9]{1,18}")

#: What HTTP libraries raise by mistake, when a server sends what they do not expect. A client that runs no code of the
#: caller's takes such an error for a failed request: nothing that a site serves may break a caller.
MISTAKES = (AssertionError, AttributeError, EOFError, LookupError, OSError, RuntimeError, TypeError, ValueError)


class HTTPRequest:
    """One GET request to one URL.

    `url` has no user and password; `authorization` is the header for them, which is in `headers` too. Send exactly
    `headers`, and those that HTTP itself needs, such as Host. `addresses` are those that the base has checked; it is
    empty if the client checks addresses itself, or uses a proxy.
    """

    __slots__ = ("addresses", "authorization", "deadline", "headers", "is_home", "policy", "url")

    def __init__(
        self,
        url: str,
        headers: dict[str, str],
        policy: RequestPolicy,
        deadline: float,
        *,
        is_home: bool = False,
        authorization: str | None = None,
    ) -> None:
        self.url = url
        self.headers = headers
        self.policy = policy
        #: When the request must end, by `time.monotonic()`.
        self.deadline = deadline
        #: Whether the URL is on the homepage's origin.
        self.is_home = is_home
        self.authorization = authorization
        self.addresses: Sequence[str] = ()

    def seconds_left(self) -> float:
        """Return the seconds until the deadline. Raise `TimeoutError` if none are left."""
        return seconds_until(self.deadline)


class _Answer:
    """The URL, status and headers of an answer."""

    def __init__(self, url: str, status: int, reason: str | None, headers: Iterable[tuple[str, str]]) -> None:
        self.url = url
        self.status = status
        self.reason = reason
        self._headers = headers

    def header(self, name: str) -> str | None:
        """Return the value of a header, in any case, or None. Values of repeated headers are joined by commas."""
        values = self.values(name)
        return ", ".join(values) if values else None

    def values(self, name: str) -> list[str]:
        """Return all values of a header, in any case."""
        self._headers = [*self._headers]  # it may be an iterator
        name = name.lower()
        return [value for other, value in self._headers if other.lower() == name]

    def location(self) -> bytes | None:
        """Return the first Location header as bytes, or None."""
        values = self.values("Location")
        return header_bytes(values[0]) if values else None

    def unread(self) -> Iterable[bytes]:
        """Return what has arrived of the body but was not read before the transfer broke off."""
        return ()


def header_bytes(value: str) -> bytes:
    """Return a header as it came: http.client decodes headers as Latin-1, whatever they are."""
    return value.encode("latin-1" if max(value, default="") <= "\xff" else "utf-8")


class HTTPAnswer(_Answer):
    """The answer to one request: status, headers as pairs, and a body that has not been read yet.

    `url` is the URL that your library says has answered. If it is on another origin than the request, the library has
    followed a redirect by itself, past all checks, and the base refuses the answer.

    `read` returns the next piece of the body as it was transferred, in any size, and `b""` at its end. The base always
    calls `close` at the end.
    """

    def __init__(
        self,
        url: str,
        status: int,
        reason: str | None,
        headers: Iterable[tuple[str, str]],
        read: Callable[[], bytes],
        close: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(url, status, reason, headers)
        self._read = read
        self._close = close

    def read(self) -> bytes:
        """Return the next piece of the body, empty at its end."""
        return self._read()

    def discard(self) -> None:
        """Get rid of the body of an answer that is not a success; read it if that lets you reuse the connection."""

    def close(self) -> None:
        """Close the answer."""
        if self._close is not None:
            self._close()


class AsyncHTTPAnswer(_Answer):
    """The same on asyncio: `read` is awaited."""

    def __init__(
        self,
        url: str,
        status: int,
        reason: str | None,
        headers: Iterable[tuple[str, str]],
        read: Callable[[], Awaitable[bytes]],
        close: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(url, status, reason, headers)
        self._read = read
        self._close = close

    async def read(self) -> bytes:
        """Return the next piece of the body, empty at its end."""
        return await self._read()

    async def discard(self) -> None:
        """Get rid of the body of an answer that is not a success; read it if that lets you reuse the connection."""

    def close(self) -> None:
        """Close the answer."""
        if self._close is not None:
            self._close()


class TransferredResponse(AbstractWebClientSuccessResponse):
    """A success that keeps its body as it was transferred, and inflates it only for `raw_data()`.

    In a tree, the body goes to the tree's store while it arrives. It is inflated by what it is, not by what the headers
    say: a server may announce gzip and send plain text.
    """

    def __init__(self, max_response_data_length: int | None) -> None:
        self._max_bytes = max_response_data_length
        self._received = ArrivingBody()
        self._beyond = b""  # the rest of the piece that crossed the limit, to inflate what is before it
        self._has_ended = False
        self._encoded: bytes | None = None
        self._data: bytes | None = None
        self._problems: list[str] = []
        self._discarded = 0  # bytes of the answers before this one

    def raw_data(self) -> bytes:
        """Return the body without its transport encoding, at most as long as the limit."""
        if self._data is None:
            encoding = self.header("Content-Encoding") or ""
            encoded = self._body() + self._beyond
            self._data = transport_decoded(encoded, encoding, self._max_bytes, self._problems.append)
        return self._data

    def encoded_data(self) -> bytes | None:
        """Return the body as it was transferred, at most as long as the limit."""
        if type(self).raw_data is not TransferredResponse.raw_data:
            return None  # a subclass returns another body
        return self._body()

    def stored_body(self) -> ArrivingBody | None:
        """Return the body in the tree's store; None outside of a tree, and if a subclass returns another body."""
        own, base = type(self), TransferredResponse
        is_ours = own.raw_data is base.raw_data and own.encoded_data is base.encoded_data
        return self._received if is_ours and self._has_ended and self._received.is_stored else None

    def discarded_bytes(self) -> int:
        """Return how many bytes of other answers, such as redirects, came before this one."""
        return self._discarded

    def transport_problems(self) -> tuple[str, ...]:
        """Return codes of problems with the body's length and, once it is removed, with its transport encoding."""
        return tuple(dict.fromkeys(self._problems))

    def _body(self) -> bytes:
        """Return the body as it was transferred."""
        if self._encoded is None:
            self._encoded = self._received.data()
        return self._encoded

    def _receive(self, piece: bytes) -> bool:
        """Keep a piece of the body. Return False once there is more than a limit, of the body or of the tree."""
        left = len(piece) if self._max_bytes is None else self._max_bytes - self._received.size
        is_within = self._received.append(piece if len(piece) <= left else piece[:left])
        if is_within and len(piece) <= left:
            return True
        self._beyond = piece[left:]
        self._problems.append("T804")
        return False

    def _end(self) -> int:
        """End the body, and return its length."""
        self._has_ended = True
        size = self._received.size
        if self.status_code() == HTTPStatus.PARTIAL_CONTENT and not is_whole_range(self.header("Content-Range"), size):
            self._problems.append("T805")  # nobody has asked for a part
        return size

    def _give_up(self) -> int:
        """Keep the part of the body that has arrived before the transfer broke off, and return its length."""
        self._problems.append("T805")
        return self._end()

    def _check(self) -> None:
        """Raise an error if what was received, up to the end of the transfer, cannot be the whole body."""


class HTTPSuccessResponse(TransferredResponse):
    """The success of a client that has no class of its own for it."""

    def __init__(self, answer: _Answer, url: str, max_response_data_length: int | None) -> None:
        super().__init__(max_response_data_length)
        self._answer = answer
        self._url = url

    def status_code(self) -> int:
        """Return the HTTP status."""
        return self._answer.status

    def status_message(self) -> str:
        """Return the server's words for the status, or the standard ones."""
        return status_line(self._answer.status, self._answer.reason).partition(" ")[2]

    def header(self, case_insensitive_name: str) -> str | None:
        """Return the value of a header."""
        return self._answer.header(case_insensitive_name)

    def url(self) -> str:
        """Return the URL after redirects."""
        return self._url

    def _check(self) -> None:
        """Raise an error if the body is shorter than announced: not every library notices."""
        length = self.header("Content-Length") or ""
        is_announced = _LENGTH.fullmatch(length) and self.header("Transfer-Encoding") is None
        if is_announced and self.status_code() != HTTPStatus.NO_CONTENT and self._received.size < int(length):
            raise ConnectionResetError("the body is shorter than announced")


class _HTTPClient:
    """What the bases for threads and for asyncio share: settings, and answers to responses."""

    #: Whether `send` connects only to addresses that the policy allows. If not, the base checks them before it.
    checks_addresses: ClassVar[bool] = False
    #: Whether `send` and reading an answer end by the deadline. If not, they run in a thread that can be abandoned. It
    #: makes no difference on asyncio.
    keeps_deadlines: ClassVar[bool] = False
    #: What `send` and the answers raise when a request fails. Anything else is a bug, and is raised.
    errors: ClassVar[tuple[type[Exception], ...]] = (OSError, HTTPException, ValueError, EOFError)
    #: Those of them that say that the proxy failed, not the website.
    proxy_errors: ClassVar[tuple[type[Exception], ...]] = ()
    #: The class of error responses.
    error_response: ClassVar[type[WebClientErrorResponse]] = WebClientErrorResponse

    # Defaults, for subclasses that do not call __init__.
    _headers, _home_headers = headers_to_send(None, None)
    _max_bytes: int | None = MAX_SITEMAP_BYTES
    _has_own_limit = False
    _resolver: Resolver | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "send" in vars(cls):  # what a class declares holds for its own `send` only
            cls.checks_addresses = vars(cls).get("checks_addresses", False)
            cls.keeps_deadlines = vars(cls).get("keeps_deadlines", False)

    def __init__(
        self,
        *,
        user_agent: str | None = None,
        headers: Mapping[str, str] | None = None,
        _resolve: Resolver | None = None,
    ) -> None:
        self._headers, self._home_headers = headers_to_send(user_agent, headers)
        self._resolver = _resolve

    @property
    def user_agent(self) -> str:
        """The User-Agent header to send."""
        return self._headers["User-Agent"]

    def set_max_response_data_length(self, max_response_data_length: int | None) -> None:
        """Set how many bytes of a body to read at most; None or 0 for no limit."""
        self._max_bytes = max_response_data_length or None
        self._has_own_limit = True

    def limit_response_data_length(self, max_response_data_length: int) -> None:
        """Set the limit, unless the caller has set one."""
        if not self._has_own_limit:
            self._max_bytes = max_response_data_length

    def proxy_for(self, url: str) -> str | None:
        """Return the proxy that `send` uses for a URL, or None. Override it if your client uses proxies."""
        return None

    def success_response(self, answer: _Answer, url: str, max_bytes: int | None) -> TransferredResponse:
        """Return the response for an answer that is a success. Override it to return one of your own class."""
        return HTTPSuccessResponse(answer, url, max_bytes)

    def standard_error(self, error: BaseException) -> BaseException:
        """Return the error of the standard library that says what an error of your HTTP library says."""
        return error

    def _caught(self) -> tuple[type[Exception], ...]:
        return (OSError, *self.errors)

    def _connections(self, fetch: Fetch) -> AbstractContextManager[object]:
        """Return a context that lasts for all hops of a fetch, for what the connections need to know of it."""
        return nullcontext()

    def _is_resolved_elsewhere(self, request: HTTPRequest) -> bool:
        """Note and return whether a proxy resolves the host of a request."""
        if self.proxy_for(request.url) is None:
            return False
        request.policy.mark_resolved_elsewhere(host_of(request.url))
        return True


class AbstractHTTPClient(_HTTPClient, AbstractWebClient):
    """A client for threads. Implement `send`; see the module for what you get."""

    _waiter: RequestWaiter | None = None

    @abc.abstractmethod
    def send(self, request: HTTPRequest) -> HTTPAnswer:
        """Make one request, and raise one of `errors` if it fails.

        Do not follow redirects. Do not read the body yet.
        """

    def get(self, url: str) -> AbstractWebClientResponse:
        """Fetch a URL, following redirects."""
        fetch = Fetch(self, url)
        if (refused := fetch.refusal()) is not None:
            return refused
        if self._waiter is not None:
            self._waiter.wait(lambda: fetch.policy.is_cancelled)
        fetch.start()
        try:
            fetch.check()
            if self.keeps_deadlines:
                return self._run(fetch)
            return call_in_time(lambda: self._run_in_turn(fetch), fetch.policy, fetch.seconds_left())
        except self._caught() as error:
            return fetch.failed(error, is_late=time.monotonic() >= fetch.deadline)
        finally:
            fetch.release()

    def _run_in_turn(self, fetch: Fetch) -> AbstractWebClientResponse:
        """Run a fetch, unless one that was abandoned still uses a client that is for one thread at a time."""
        if self.is_thread_safe:
            return self._run(fetch)
        turn: threading.Lock = self.__dict__.setdefault("_turn", threading.Lock())
        if not turn.acquire(timeout=fetch.seconds_left()):
            raise TimeoutError("the client is still busy with an earlier request")
        try:
            return self._run(fetch)
        finally:
            turn.release()

    def _run(self, fetch: Fetch) -> AbstractWebClientResponse:
        with self._connections(fetch):
            while True:
                request = fetch.request()
                if not self.checks_addresses:
                    self._check_addresses(request)
                answer = self.send(request)
                try:
                    success = fetch.received(request, answer)
                    if success is not None:
                        return self._read(fetch, answer, success)
                    answer.discard()
                    if (failed := fetch.redirected(answer)) is not None:
                        return failed
                finally:
                    answer.close()

    def _read(self, fetch: Fetch, answer: HTTPAnswer, success: TransferredResponse) -> TransferredResponse:
        while piece := answer.read():
            if not success._receive(piece):
                break
            if not self.keeps_deadlines:
                fetch.check()
        else:
            success._check()
        success._end()
        fetch.check_cancelled()  # which looks like the end of a body without a length
        return success

    def _check_addresses(self, request: HTTPRequest) -> None:
        if not self._is_resolved_elsewhere(request):
            _, host, port = origin_of(request.url)
            resolve = self._resolver or system_lookup
            _check_found(request, look_up(resolve, host, port, request.policy, request.seconds_left()))


class AbstractAsyncHTTPClient(_HTTPClient, AbstractAsyncWebClient):
    """A client for asyncio. Implement `send`; see the module for what you get."""

    @abc.abstractmethod
    async def send(self, request: HTTPRequest) -> AsyncHTTPAnswer:
        """Make one request, and raise one of `errors` if it fails.

        Do not follow redirects. Do not read the body yet.
        """

    async def get(self, url: str) -> AbstractWebClientResponse:
        """Fetch a URL, following redirects."""
        fetch = Fetch(self, url)
        if (refused := fetch.refusal()) is not None:
            return refused
        fetch.start()
        loop = asyncio.get_running_loop()
        allowed = fetch.deadline - time.monotonic()
        scope = asyncio.timeout(allowed)

        def end_now() -> None:
            with suppress(RuntimeError):  # it has just ended by itself
                scope.reschedule(loop.time())

        def cancelled() -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(end_now)

        try:
            if allowed <= 0:
                raise TimeoutError
            with fetch.policy.calling_on_cancel(cancelled):
                async with scope:
                    return await self._run(fetch)
        except self._caught() as error:
            return fetch.failed(error, is_late=allowed <= 0 or scope.expired())
        finally:
            fetch.release()

    async def _run(self, fetch: Fetch) -> AbstractWebClientResponse:
        with self._connections(fetch):
            while True:
                request = fetch.request()
                if not self.checks_addresses:
                    await self._check_addresses(request)
                answer = await self.send(request)
                try:
                    success = fetch.received(request, answer)
                    if success is not None:
                        while piece := await answer.read():
                            if not success._receive(piece):
                                break
                        else:
                            success._check()
                        success._end()
                        return success
                    await answer.discard()
                    if (failed := fetch.redirected(answer)) is not None:
                        return failed
                finally:
                    answer.close()

    async def _check_addresses(self, request: HTTPRequest) -> None:
        if not self._is_resolved_elsewhere(request):
            _, host, port = origin_of(request.url)
            _check_found(request, await look_up_async(self._resolver or system_lookup, host, port))


def _check_found(request: HTTPRequest, found: Sequence[AddressInfo]) -> None:
    """Raise `RefusedError` unless all addresses that a host resolves to are allowed."""
    addresses = list(dict.fromkeys(str(info[4][0]) for info in found))
    request.policy.check_all_addresses(host_of(request.url), addresses)
    request.addresses = addresses


class Fetch:
    """One URL on its way to a response: what threads and asyncio share. It does no I/O."""

    __slots__ = ("_answer", "_client", "_discarded", "_redirects", "_success", "_url", "deadline", "policy", "refused")

    def __init__(self, client: _HTTPClient, url: str) -> None:
        self._client = client
        self.policy = policy_for(url)
        self._redirects = Redirects(url, self.policy)
        self._url = url
        self._discarded = 0
        self._answer: _Answer | None = None
        self._success: TransferredResponse | None = None
        #: When the fetch must end, by `time.monotonic()`.
        self.deadline = 0.0
        #: Why there was no connection, if the policy is the reason. HTTP libraries wrap the error.
        self.refused: RefusedError | None = None

    def refusal(self) -> WebClientErrorResponse | None:
        """Return the error for a URL that may not be requested, None if it may."""
        reason = self._redirects.refusal()
        return self._refused(reason) if reason else None

    def _refused(self, reason: str) -> WebClientErrorResponse:
        return self._error(reason, False, status=None, is_refused=True)

    def _error(self, message: str, retryable: bool, *, transferred: int = 0, **options: Any) -> WebClientErrorResponse:
        response = self._client.error_response(message, retryable, **options)
        response._transferred = self._discarded + transferred
        return response

    def count_discarded(self, size: int) -> None:
        """Count bytes of a body that was read and dropped."""
        self._discarded += size
        if self.policy.store is not None:
            self.policy.store.count(size)

    def start(self) -> None:
        """Set the deadline."""
        self.deadline = self.policy.deadline()

    def seconds_left(self) -> float:
        """Return the seconds until the deadline. Raise `TimeoutError` if none are left."""
        return seconds_until(self.deadline)

    def check(self) -> None:
        """Raise an error if the tree was cancelled, or the deadline has passed."""
        self.check_cancelled()
        self.seconds_left()

    def check_cancelled(self) -> None:
        """Raise an error if the tree was cancelled."""
        if self.policy.is_cancelled:
            raise RefusedError("cancelled")

    def request(self) -> HTTPRequest:
        """Return the next request to make. The policy allows its URL; its addresses are not checked yet."""
        url, authorization = split_authorization(self._redirects.url)
        is_home = self.policy.is_home(url)
        headers = add_headers(
            self._client._home_headers if is_home else self._client._headers, authorization, self._redirects.cookie()
        )
        return HTTPRequest(url, headers, self.policy, self.deadline, is_home=is_home, authorization=authorization)

    def received(self, request: HTTPRequest, answer: _Answer) -> TransferredResponse | None:
        """Return the response for a success, its body to be read; None for any other answer.

        Raise `RefusedError` for an answer from another origin than was asked.
        """
        if answer.url and origin_of(answer.url) != origin_of(request.url):
            raise RefusedError("the client's HTTP library followed a redirect by itself; switch that off")
        if not 200 <= answer.status < 300:
            return None
        self._answer = answer
        success = self._client.success_response(answer, self._redirects.url, self.max_bytes())
        if self.policy.store is not None:
            success._received = self.policy.store.arriving()
        success._discarded = self._discarded
        self._success = success
        return success

    def max_bytes(self) -> int | None:
        """Return how many bytes of the body to read at most, None for no limit."""
        return bytes_allowed(self._client._max_bytes, self._client._has_own_limit)

    def redirected(self, answer: _Answer) -> WebClientErrorResponse | None:
        """Go where an answer leads that is not a success. Return None if it leads somewhere, else its error."""
        status = answer.status
        line = status_line(status, answer.reason)
        if status not in REDIRECTS:
            wait = retry_after_seconds(answer.header("Retry-After"))
            return self._error(line, status in RETRYABLE_HTTP_STATUS_CODES, retry_after=wait, status=status)
        location = answer.location()
        if location is None:
            return self._error(f"{line}: it redirects without saying where", False, status=status)
        why_not = self._redirects.follow(location, answer.values("Set-Cookie"))
        return self._refused(why_not) if why_not else None

    def release(self) -> None:
        """Drop the answer and the response: both refer to this fetch, and would wait for the garbage collector."""
        self._answer = self._success = None

    def failed(self, error: BaseException, *, is_late: bool) -> WebClientErrorResponse:
        """Return the response for a fetch that ended with an error, by its deadline if it `is_late`."""
        policy, success = self.policy, self._success
        size = 0
        if success is not None and self._answer is not None:
            for piece in self._answer.unread():
                success._receive(piece)
            size = success._give_up()
        if policy.is_cancelled:
            return self._error("cancelled", False, status=None)
        if self.refused is not None:
            return self._refused(str(self.refused))
        standard = self._client.standard_error(error)
        is_refused = False
        if is_late and policy.is_tree_deadline(self.deadline):
            message, retryable = "the tree's time is up", False
        elif is_late:
            has_begun = success is not None
            message, retryable = late_message(policy.request_seconds(), has_begun=has_begun), True
        elif success is not None:
            message, retryable = cut_off_message(standard, size), True
        else:
            message, retryable, is_refused = failure_of(standard)
            if isinstance(error, self._client.proxy_errors):
                message = f"the proxy: {message}"
            else:
                message = self._after_redirects(message)
        partial = success if size else None
        return self._error(message, retryable, transferred=size, partial=partial, status=None, is_refused=is_refused)

    def _after_redirects(self, message: str) -> str:
        """Return a message with the host, if that is not the host of the URL that was asked for."""
        host = host_of(self._redirects.url)
        return message if host == host_of(self._url) else f"redirects to {host}: {message}"
