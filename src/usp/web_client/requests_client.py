"""The default client: requests.

Bodies are read in pieces and only up to the limit, and kept as they were transferred. They are inflated only if
`raw_data()` is asked for, by what they are, not by what their headers say: a server that announces gzip and sends plain
text is read all the same.

Every request is made under the policy of its tree (`usp.web_client.policy`). Redirects are followed here, not by
requests. What the caller gave, a session or headers, goes to the homepage's origin only; all else is asked for with no
more than the name of the client. So only there is the session itself asked; elsewhere its adapters are, which have no
credentials and keep no cookies.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Self

import requests
import requests.adapters
import urllib3

from usp.exceptions import InvalidArgumentError
from usp.origins import Origin, host_of, origin_of
from usp.web_client.abstract_client import (
    AbstractWebClient,
    AbstractWebClientResponse,
    RequestWaiter,
    WebClientErrorResponse,
)
from usp.web_client.adapter import ERRORS, GuardedAdapter, drop_body, guard
from usp.web_client.answers import (
    DEFAULT_MAX_BYTES,
    DEFAULT_TIMEOUT,
    PIECE_BYTES,
    TransferredResponse,
    authorized,
    ended,
    headers_to_send,
    redirected,
    status_line,
    with_additions,
)
from usp.web_client.connections import Exchange, looked_up
from usp.web_client.environment import checked_verify
from usp.web_client.lookups import Resolver
from usp.web_client.policy import RefusedError, RequestPolicy, bytes_allowed, policy_for
from usp.web_client.redirects import REDIRECTS, Redirects

__all__ = ["RequestsWebClient", "RequestsWebClientErrorResponse", "RequestsWebClientSuccessResponse"]

Timeout = float | tuple[float | None, float | None] | None

_MAX_REMEMBERED_ORIGINS = 256


class RequestsWebClientSuccessResponse(TransferredResponse):
    """A response of requests, its body read up to the limit."""

    def __init__(self, requests_response: requests.Response, max_response_data_length: int | None = None) -> None:
        super().__init__(max_response_data_length)
        self._response = requests_response

    def status_code(self) -> int:
        """The HTTP status."""
        return int(self._response.status_code)

    def status_message(self) -> str:
        """The server's words for the status, or the usual ones."""
        return status_line(self._response.status_code, self._response.reason).partition(" ")[2]

    def header(self, case_insensitive_name: str) -> str | None:
        """The value of a header."""
        return self._response.headers.get(case_insensitive_name)

    def url(self) -> str:
        """The URL after redirects."""
        return str(self._response.url)

    def _body(self) -> bytes:
        """The body as it was transferred, read once."""
        if self._encoded is None:
            for piece in _pieces(self._response.raw):
                if not self._receive(piece):
                    break
            self._end()
        return self._encoded or b""

    def _end(self) -> int:
        self._response.close()
        return super()._end()

    def _check(self, body: bytes) -> None:
        """Raise an error if there is no body where there must be one.

        To http.client headers that are cut off are whole ones. Then there is neither a body nor a length, which even
        the server of an empty document gives.
        """
        headers = self._response.headers
        is_framed = "Content-Length" in headers or "Transfer-Encoding" in headers
        if not body and not is_framed and self.status_code() == HTTPStatus.OK:
            raise ConnectionResetError("the answer was cut off")


class RequestsWebClientErrorResponse(WebClientErrorResponse):
    """A request that failed."""


class RequestsWebClient(AbstractWebClient):
    """A client that keeps one requests session, with its connections, for as long as it lives.

    `verify` is False, or the path of a CA bundle. `wait` seconds are waited between requests, at random around that
    with `random_wait`. `user_agent` is the name that it goes by. `headers`, and a `session` with all that is in it, are
    for the homepage's scheme, host and port, and go nowhere else.

    In a session, adapters that are exactly `requests.adapters.HTTPAdapter` are replaced by ones that check addresses
    and keep to the time of a request; they make no retries for the client, which are the tree's. Adapters of other
    classes are used for the homepage's origin only, and what they connect to, and for how long, is the caller's
    business. The session's cookies are sent to the homepage, and none are added to them.
    """

    is_thread_safe = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "is_thread_safe" not in vars(cls):
            cls.is_thread_safe = False  # what a subclass adds is not known to be

    def __init__(
        self,
        verify: bool | str = True,
        wait: float | None = None,
        random_wait: bool = False,
        session: requests.Session | None = None,
        *,
        user_agent: str | None = None,
        headers: Mapping[str, str] | None = None,
        _resolve: Resolver = looked_up,
    ) -> None:
        self._waiter = RequestWaiter(wait, random_wait)
        self._is_own_session = session is None
        self._session = requests.Session() if session is None else session
        # Whose adapters are used away from the homepage; not every session that a caller may have is one of requests.
        self._bare = self._session if isinstance(self._session, requests.Session) else requests.Session()
        guard(self._bare)
        self._guarded: GuardedAdapter | None = None  # in the place of adapters that are not known
        self._lock = threading.Lock()
        if user_agent is None and session is not None:
            user_agent = _own_user_agent(session)
        self._headers, self._home_headers = headers_to_send(user_agent, headers)
        self._session_headers = {**self._home_headers}
        if session is not None and not headers:
            del self._session_headers["Accept"]  # it has one of its own
        verify = checked_verify(verify)
        self._verify_of_session = None if self._bare is session and verify is True else verify
        self._timeout: Timeout = DEFAULT_TIMEOUT
        self._proxies: dict[str, str] = {}
        self._settings: dict[Origin, dict[str, Any]] = {}
        self._max_bytes: int | None = DEFAULT_MAX_BYTES
        self._has_own_limit = False
        self._resolve = _resolve
        if type(self) is RequestsWebClient:
            self.is_thread_safe = session is None or type(session) is requests.Session

    @property
    def user_agent(self) -> str:
        """The name that the client goes by, as it stands in the User-Agent header."""
        return self._headers["User-Agent"]

    def set_timeout(self, timeout: Timeout) -> None:
        """Set the seconds to wait for an answer: one number, a pair (to connect, to read), or None to wait forever.

        A request as a whole has a limit of its own: `Limits.request_seconds`.
        """
        try:
            connect, read = timeout if isinstance(timeout, tuple) else (timeout, timeout)
            urllib3.Timeout(connect=connect, read=read)
        except ValueError as error:
            raise InvalidArgumentError(
                f"timeout must be seconds over 0, a pair of such, or None, not {timeout!r}"
            ) from error
        self._timeout = timeout

    def set_proxies(self, proxies: dict[str, str]) -> None:
        """Set the proxies by scheme, as in requests: {"https": "http://user:password@host:3128"}."""
        self._proxies = proxies
        self._settings = {}

    def set_max_response_data_length(self, max_response_data_length: int | None) -> None:
        """Set how many bytes of a body are read at most; None or 0 for no limit."""
        self._max_bytes = max_response_data_length or None
        self._has_own_limit = True

    def limit_response_data_length(self, max_response_data_length: int) -> None:
        """Set the limit, unless the caller has set one."""
        if not self._has_own_limit:
            self._max_bytes = max_response_data_length

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the session's connections."""
        self._session.close()
        self._bare.close()
        if self._guarded is not None:
            self._guarded.close()

    def get(self, url: str) -> AbstractWebClientResponse:
        """Fetch a URL, following redirects."""
        policy = policy_for(url)
        redirects = Redirects(url, policy)
        if reason := redirects.refusal():
            return RequestsWebClientErrorResponse(reason, retryable=False, status=None)
        self._waiter.wait(lambda: policy.is_cancelled)
        success: RequestsWebClientSuccessResponse | None = None
        with Exchange(policy, policy.deadline(), self._resolve) as exchange:
            try:
                if policy.is_cancelled:
                    raise RefusedError("cancelled")
                exchange.seconds_left()
                answer = self._last_answer(redirects, policy, exchange)
                if isinstance(answer, RequestsWebClientSuccessResponse):
                    success = answer
                    success._check(success._body())  # now, so that what goes wrong with it is this request's failure
                if policy.is_cancelled:  # which looks like the end of an answer that does not say where it ends
                    raise RefusedError("cancelled")
                return answer
            except ERRORS as error:
                return ended(
                    RequestsWebClientErrorResponse,
                    error,
                    redirects,
                    policy,
                    refused=exchange.refused,
                    deadline=exchange.deadline if exchange.is_over() else None,
                    success=success,
                )

    def _last_answer(
        self, redirects: Redirects, policy: RequestPolicy, exchange: Exchange
    ) -> AbstractWebClientResponse:
        """The answer after redirects, its body not read yet."""
        while True:
            response, location = self._answer(redirects, policy, exchange)
            status = response.status_code
            if 200 <= status < 300:
                response.url = redirects.url
                return RequestsWebClientSuccessResponse(response, bytes_allowed(self._max_bytes, self._has_own_limit))
            drop_body(response, exchange)
            if failed := redirected(
                RequestsWebClientErrorResponse,
                redirects,
                status,
                response.reason,
                response.headers.get("Retry-After"),
                None if location is None else _bytes(location),
                _set_cookies(response),
            ):
                return failed

    def _answer(
        self, redirects: Redirects, policy: RequestPolicy, exchange: Exchange
    ) -> tuple[requests.Response, str | None]:
        """The answer to one request, and where it redirects to."""
        url, authorization = authorized(redirects.url)
        is_home = policy.is_home(url)
        if is_home and not self._is_own_session:
            exchange.target = None
            return self._answer_to_session(url, authorization, policy, exchange)
        headers = self._home_headers if is_home else self._headers
        headers = with_additions(headers, authorization, redirects.cookie())
        exchange.target = url
        request = requests.PreparedRequest()
        request.method = "GET"
        request.url = url
        request.headers = requests.structures.CaseInsensitiveDict(headers)
        adapter = self._adapter_for(url)
        timeout: Any = self._timeout  # its types know only some of the pairs
        response = adapter.send(request, stream=True, timeout=timeout, **self._settings_for(url))
        return response, response.headers.get("Location")

    def _adapter_for(self, url: str) -> GuardedAdapter:
        """The session's adapter for a URL, guarded, or one of our own where there is another.

        It is seen to each time: a caller may mount others later.
        """
        adapter = self._bare.get_adapter(url)
        if type(adapter) is requests.adapters.HTTPAdapter:
            guard(self._bare)
            adapter = self._bare.get_adapter(url)
        if isinstance(adapter, GuardedAdapter):
            return adapter
        with self._lock:
            if self._guarded is None:
                self._guarded = GuardedAdapter()
            return self._guarded

    def _answer_to_session(
        self, url: str, authorization: str | None, policy: RequestPolicy, exchange: Exchange
    ) -> tuple[requests.Response, str | None]:
        """The same, of the caller's session, with all that it has for the homepage."""
        session = self._session
        location: list[str | None] = []
        cookies = exchange.cookies = exchange.cookies or requests.cookies.RequestsCookieJar()
        guard(self._bare)

        def keep(response: requests.Response, **_: object) -> None:
            """Take away what is ours to keep, as long as this request takes.

            With a Location, requests would read the body of a redirect whole, even if it is not to follow. And cookies
            would stay in the session, from where they go to other ports too.
            """
            if response.status_code in REDIRECTS:
                location.append(response.headers.pop("Location", None))
            for answer in (*getattr(response, "history", ()), response):
                _take_cookies(answer, cookies)

        hooks = getattr(session, "hooks", {}).get("response") or []
        response = session.get(
            url,
            timeout=self._timeout,
            stream=True,
            allow_redirects=False,
            headers=self._session_headers | ({"Authorization": authorization} if authorization else {}),
            auth=None if getattr(session, "auth", None) else _no_credentials,
            proxies=dict(self._proxies),
            verify=self._verify_of_session,
            hooks={"response": [*([hooks] if callable(hooks) else hooks), keep]},
            cookies=cookies or None,
        )
        policy.mark_resolved_elsewhere(host_of(url))  # it has an effect only where no connection of ours was made
        return response, location[-1] if location else response.headers.get("Location")

    def _settings_for(self, url: str) -> dict[str, Any]:
        """The proxies and the CA bundle for a URL, from the client, the session, and the environment."""
        origin = origin_of(url)
        settings = self._settings.get(origin)
        if settings is None:
            settings = dict(
                self._bare.merge_environment_settings(url, dict(self._proxies), True, self._verify_of_session, None)
            )
            settings.pop("stream")
            settings["cert"] = None  # a client certificate is a credential
            if self._is_own_session:  # a caller's may change
                if len(self._settings) >= _MAX_REMEMBERED_ORIGINS:
                    self._settings = {}
                self._settings[origin] = settings
        return settings


def _own_user_agent(session: requests.Session) -> str | None:
    """The name that the caller has given to a session, None if it has the one that requests gives it."""
    name = getattr(session, "headers", {}).get("User-Agent")
    name = name.decode("latin-1") if isinstance(name, bytes) else name
    return None if name == requests.utils.default_user_agent() else name


def _no_credentials(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Given to requests as authentication, so that it looks for none in .netrc."""
    return request


def _pieces(raw: Any) -> Iterable[bytes]:
    """The body in pieces, as they come: what has come is had, also if the next one never does."""
    if not isinstance(raw, urllib3.HTTPResponse) or not hasattr(raw, "read1"):
        yield from raw.stream(PIECE_BYTES, decode_content=False)
        return
    # decode_content=False: urllib3 trusts the header and fails where it lies.
    while piece := raw.read1(PIECE_BYTES, decode_content=False):
        yield piece


def _bytes(header: str) -> bytes:
    """A header as it came: http.client takes it for Latin-1, whatever it is."""
    return header.encode("latin-1" if max(header, default="") <= "\xff" else "utf-8")


def _set_cookies(response: requests.Response) -> list[str]:
    get = getattr(getattr(response.raw, "headers", None), "getlist", None)
    return list(get("Set-Cookie")) if get else []


def _take_cookies(response: requests.Response, cookies: requests.cookies.RequestsCookieJar) -> None:
    """Put the cookies that an answer sets into a jar, and leave none for that of the session."""
    request: Any = getattr(response, "request", None)
    requests.cookies.extract_cookies_to_jar(cookies, request, response.raw)  # type: ignore[no-untyped-call]
    message = getattr(getattr(response.raw, "_original_response", None), "msg", None)
    if message is not None:
        del message["Set-Cookie"], message["Set-Cookie2"]
