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
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from http.client import HTTPException
from typing import Any, ClassVar

from usp.limits import MAX_SITEMAP_BYTES
from usp.origins import host_of, origin_of
from usp.web_client.abstract_client import (
    AbstractAsyncWebClient,
    AbstractWebClient,
    AbstractWebClientResponse,
    RequestWaiter,
    WebClientErrorResponse,
)
from usp.web_client.http_fetch import Fetch
from usp.web_client.http_messages import Answer, AsyncHTTPAnswer, HTTPAnswer, HTTPRequest
from usp.web_client.http_responses import HTTPSuccessResponse, TransferredResponse
from usp.web_client.lookups import AddressInfo, Resolver, call_in_time, look_up, look_up_async, system_lookup
from usp.web_client.settings import headers_to_send

__all__ = [
    "MISTAKES",
    "AbstractAsyncHTTPClient",
    "AbstractHTTPClient",
    "AsyncHTTPAnswer",
    "HTTPAnswer",
    "HTTPRequest",
    "HTTPSuccessResponse",
    "TransferredResponse",
]

#: What HTTP libraries raise by mistake, when a server sends what they do not expect. A client that runs no code of the
#: caller's takes such an error for a failed request: nothing that a site serves may break a caller.
MISTAKES = (AssertionError, AttributeError, EOFError, LookupError, OSError, RuntimeError, TypeError, ValueError)


class _HTTPClient:
    """What the bases for threads and for asyncio share: settings, and answers to responses."""

    guards_addresses: ClassVar[bool]
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
        if "get" in vars(cls):  # it may go past the base
            cls.guards_addresses = vars(cls).get("guards_addresses", False)
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

    def success_response(self, answer: Answer, url: str, max_bytes: int | None) -> TransferredResponse:
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

    guards_addresses = True
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

    guards_addresses = True

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
        await fetch.next_turn()  # that wait is no part of the request's time
        fetch.start()
        loop = asyncio.get_running_loop()
        allowed = fetch.deadline - time.monotonic()
        scope = asyncio.timeout(allowed)

        def cancelled() -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(_end_now, scope, loop)

        try:
            if allowed <= 0:
                raise TimeoutError
            with fetch.policy.calling_on_cancel(cancelled):
                async with scope:
                    return await self._run(fetch)
        except self._caught() as error:
            return fetch.failed(error, is_late=allowed <= 0 or scope.expired())
        finally:
            fetch.end_turn()
            fetch.release()

    async def _run(self, fetch: Fetch) -> AbstractWebClientResponse:
        with self._connections(fetch):
            while True:
                if (response := await self._hop(fetch, fetch.request())) is not None:
                    return response
                await fetch.next_turn()

    async def _hop(self, fetch: Fetch, request: HTTPRequest) -> AbstractWebClientResponse | None:
        """Make one request. Return None if its answer leads to another one."""
        if not self.checks_addresses:
            await self._check_addresses(request)
        answer = await self.send(request)
        try:
            success = fetch.received(request, answer)
            if success is None:
                try:
                    await answer.discard()
                finally:
                    fetch.count_discarded(answer.discarded)
                return fetch.redirected(answer)
            while piece := await answer.read():
                if not success._receive(piece):
                    break
            else:
                success._check()
            success._end()
            return success
        finally:
            answer.close()

    async def _check_addresses(self, request: HTTPRequest) -> None:
        if not self._is_resolved_elsewhere(request):
            _, host, port = origin_of(request.url)
            _check_found(request, await look_up_async(self._resolver or system_lookup, host, port))


def _end_now(scope: asyncio.Timeout, loop: asyncio.AbstractEventLoop) -> None:
    with suppress(RuntimeError):  # it has just ended by itself
        scope.reschedule(loop.time())


def _check_found(request: HTTPRequest, found: Sequence[AddressInfo]) -> None:
    """Raise `RefusedError` unless all addresses that a host resolves to are allowed."""
    addresses = list(dict.fromkeys(str(info[4][0]) for info in found))
    request.policy.check_all_addresses(host_of(request.url), addresses)
    request.addresses = addresses
