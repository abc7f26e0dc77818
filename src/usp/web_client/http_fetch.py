"""One URL on its way to a response, through all redirects: what clients for threads and for asyncio share.

It does no I/O. `usp.web_client.http_client` makes the requests that it asks for.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from usp.objects.wording import shortened
from usp.origins import host_of, origin_of
from usp.web_client.abstract_client import RETRYABLE_HTTP_STATUS_CODES, WebClientErrorResponse
from usp.web_client.exchanges import Exchange, current_observer
from usp.web_client.failures import cut_off_message, failure_of, late_message, retry_after_seconds, status_line
from usp.web_client.http_messages import Answer, HTTPRequest
from usp.web_client.http_responses import TransferredResponse
from usp.web_client.policy import RefusedError, bytes_allowed, may_follow_here, policy_for, seconds_until
from usp.web_client.redirects import REDIRECTS, Redirects
from usp.web_client.settings import add_headers, split_authorization

if TYPE_CHECKING:
    from usp.bodies import ArrivingBody
    from usp.web_client.http_client import _HTTPClient

__all__ = ["Fetch"]


class Fetch:
    """One URL on its way to a response: what threads and asyncio share. It does no I/O."""

    __slots__ = (
        "_answer",
        "_client",
        "_discarded",
        "_exchange",
        "_may_follow",
        "_observer",
        "_redirects",
        "_request",
        "_running",
        "_success",
        "_url",
        "deadline",
        "policy",
        "refused",
    )

    def __init__(self, client: _HTTPClient, url: str) -> None:
        self._client = client
        self.policy = policy_for(url)
        self._may_follow = may_follow_here()
        self._redirects = Redirects(url, self.policy)
        self._url = url
        self._discarded = 0
        self._answer: Answer | None = None
        self._success: TransferredResponse | None = None
        self._request: HTTPRequest | None = None  # the last one
        self._observer = current_observer()
        self._running = ""  # the URL of the request that the observer counts as running
        self._exchange: Exchange | None = None  # its answer
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
        if self._observer is not None:
            headers = {**headers, **self._observer.headers_for(url)}
        self._request = HTTPRequest(
            url, headers, self.policy, self.deadline, is_home=is_home, authorization=authorization
        )
        return self._request

    def received(self, request: HTTPRequest, answer: Answer) -> TransferredResponse | None:
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
        self._record(answer, success._received)
        return success

    def _record(self, answer: Answer, body: ArrivingBody | None = None) -> None:
        """Tell the observer, if there is one, what was answered."""
        request = self._request
        if self._observer is not None and request is not None:
            headers = tuple(answer.all_headers())
            self._exchange = Exchange(
                request.url, request.headers, answer.status, answer.reason or "", headers, datetime.now(UTC), body
            )
            self._observer.record(self._exchange)

    async def next_turn(self) -> None:
        """Wait until the next request may start, if an observer says so. The one before has ended."""
        if self._observer is not None:
            self.end_turn()
            url = split_authorization(self._redirects.url)[0]
            await self._observer.start(url)
            self._running = url

    def end_turn(self) -> None:
        """Tell the observer that the request has ended."""
        if self._observer is not None and self._running:
            self._observer.end(self._running, answer=self._exchange)
            self._running, self._exchange = "", None

    def max_bytes(self) -> int | None:
        """Return how many bytes of the body to read at most, None for no limit."""
        return bytes_allowed(self._client._max_bytes, self._client._has_own_limit)

    def redirected(self, answer: Answer) -> WebClientErrorResponse | None:
        """Go where an answer leads that is not a success. Return None if it leads somewhere, else its error."""
        self._record(answer)
        status = answer.status
        line = status_line(status, answer.reason)
        if status not in REDIRECTS:
            wait = retry_after_seconds(answer.header("Retry-After"))
            return self._error(line, status in RETRYABLE_HTTP_STATUS_CODES, retry_after=wait, status=status)
        location = answer.location()
        if location is None:
            return self._error(f"{line}: it redirects without saying where", False, status=status)
        why_not = self._redirects.follow(location, answer.values("Set-Cookie"))
        if why_not:
            return self._refused(why_not)
        target = self.policy.without_credentials(self._redirects.url)
        return None if self._may_follow(target) else self._moved(target)

    def _moved(self, url: str) -> WebClientErrorResponse:
        """Return the error for a URL that redirects to one that the tree has requested already."""
        response = self._error(f"redirects to {shortened(url)}, which is requested already", False, status=None)
        response._moved_to = url
        response._has_cookies = self._redirects.cookie() is not None
        return response

    def release(self) -> None:
        """Drop what others need no more: contexts of timers keep this fetch a while; see `policy.applying`."""
        self._answer = self._success = self._request = self._observer = self._exchange = None
        self._may_follow = lambda url: False

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
        is_refused = is_of_origin = False
        if is_late and policy.is_tree_deadline(self.deadline):
            message, retryable = "the tree's time is up", False
        elif is_late:
            has_begun = success is not None
            message, retryable = late_message(policy.request_seconds(), has_begun=has_begun), True
        elif success is not None:
            message, retryable = cut_off_message(standard, size), True
        else:
            message, retryable, is_refused, is_of_origin = failure_of(standard)
            if isinstance(error, self._client.proxy_errors):
                message = f"the proxy: {message}"
            else:
                message = self._after_redirects(message)
        partial = success if size else None
        is_own = is_of_origin and origin_of(self._redirects.url) == origin_of(self._url)
        return self._error(
            message,
            retryable,
            transferred=size,
            partial=partial,
            status=None,
            is_refused=is_refused,
            is_of_origin=is_own,
        )

    def _after_redirects(self, message: str) -> str:
        """Return a message with the host, if that is not the host of the URL that was asked for."""
        host = host_of(self._redirects.url)
        return message if host == host_of(self._url) else f"redirects to {host}: {message}"
