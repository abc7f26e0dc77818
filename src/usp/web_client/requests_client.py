"""The default client, on requests.

A session or headers of the caller's go to the homepage's origin only. Other origins get no more than the user agent. So
the client uses the session itself at the homepage's origin only. Elsewhere it uses the session's adapters, which have
no credentials and keep no cookies, with a session of its own for each request (`usp.web_client.requests_answers`):
those who mock requests replace methods of sessions.

`usp.web_client.http_client` follows redirects and applies the request policy. `usp.web_client.requests_internals` has
the connections, which check addresses and keep deadlines.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Self

import requests
import requests.adapters

from usp.origins import Origin, host_of, origin_of
from usp.web_client.abstract_client import RequestWaiter, WebClientErrorResponse
from usp.web_client.failures import TimedOutError, status_line
from usp.web_client.http_client import MISTAKES, AbstractHTTPClient
from usp.web_client.http_fetch import Fetch
from usp.web_client.http_messages import HTTPRequest
from usp.web_client.http_responses import TransferredResponse
from usp.web_client.lookups import Resolver
from usp.web_client.redirects import REDIRECTS
from usp.web_client.requests_answers import (
    BareSession,
    RequestsAnswer,
    body_reader,
    header_of,
    reason_of,
    take_cookies,
)
from usp.web_client.requests_exchange import CURRENT, ERRORS, Exchange, resolve
from usp.web_client.requests_internals import GuardedAdapter, check_guards, guard, is_from_network
from usp.web_client.settings import (
    DEFAULT_TIMEOUT,
    MAX_REMEMBERED_ORIGINS,
    Timeout,
    checked_timeout,
    checked_verify,
)

__all__ = ["RequestsWebClient", "RequestsWebClientErrorResponse", "RequestsWebClientSuccessResponse"]


class RequestsWebClientSuccessResponse(TransferredResponse):
    """A response of requests, its body read up to the limit."""

    def __init__(self, requests_response: requests.Response, max_response_data_length: int | None = None) -> None:
        super().__init__(max_response_data_length)
        self._response = requests_response

    def status_code(self) -> int:
        """Return the HTTP status."""
        return int(self._response.status_code)

    def status_message(self) -> str:
        """Return the server's words for the status, or the standard ones."""
        return status_line(self._response.status_code, reason_of(self._response)).partition(" ")[2]

    def header(self, case_insensitive_name: str) -> str | None:
        """Return the value of a header."""
        return header_of(self._response, case_insensitive_name)

    def url(self) -> str:
        """Return the URL after redirects."""
        return str(self._response.url)

    def _body(self) -> bytes:
        """Return the body as it was transferred. Read it first, if this response was not made by the client."""
        if not self._has_ended:
            read = body_reader(self._response)
            while (piece := read()) and self._receive(piece):
                pass
            if self._response.raw is not None:
                self._response.close()
            self._end()
        return super()._body()

    def _check(self) -> None:
        """Raise an error if there is no body where there must be one.

        http.client takes headers that are cut off for complete ones. Then there is neither a body nor a length, which
        even the server of an empty document sends. A mock may send none.
        """
        headers = self._response.headers
        is_framed = "Content-Length" in headers or "Transfer-Encoding" in headers
        is_empty = not self._received.size and not is_framed and self.status_code() == HTTPStatus.OK
        if is_empty and is_from_network(self._response):
            raise ConnectionResetError("the answer was cut off")


class RequestsWebClientErrorResponse(WebClientErrorResponse):
    """A request that failed."""


class RequestsWebClient(AbstractHTTPClient):
    """A client that keeps one requests session, with its open connections.

    `verify` is False, or the path of a CA bundle. The client waits `wait` seconds between requests, with `random_wait`
    at random around that. `user_agent` is the User-Agent header to send. `headers`, and a `session` with all its
    settings, are for the homepage's scheme, host and port, and go nowhere else.

    In a session, adapters that are exactly `requests.adapters.HTTPAdapter` are replaced by ones that check addresses
    and keep deadlines. These make no retries for the client, because the tree makes its own. Subclasses of it are used
    for the homepage's origin only, and other adapters wherever they are mounted; what they connect to, and for how
    long, is up to you. The session's cookies are sent to the homepage, and none are added to them.
    """

    is_thread_safe = True
    checks_addresses = True
    keeps_deadlines = True
    errors = ERRORS
    proxy_errors = (requests.exceptions.ProxyError,)
    error_response = RequestsWebClientErrorResponse

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "is_thread_safe" not in vars(cls):
            cls.is_thread_safe = False  # nobody knows whether a subclass is

    def __init__(
        self,
        verify: bool | str = True,
        wait: float | None = None,
        random_wait: bool = False,
        session: requests.Session | None = None,
        *,
        user_agent: str | None = None,
        headers: Mapping[str, str] | None = None,
        _resolve: Resolver | None = None,
    ) -> None:
        self._waiter = RequestWaiter(wait, random_wait)
        self._is_own_session = session is None
        self._session = requests.Session() if session is None else session
        # Its adapters are used away from the homepage. A caller's session may not be one of requests.
        self._bare = self._session if isinstance(self._session, requests.Session) else requests.Session()
        guard(self._bare)
        self._guarded: GuardedAdapter | None = None  # replaces adapters of unknown classes
        self._lock = threading.Lock()
        if user_agent is None and session is not None:
            user_agent = _own_user_agent(session)
        super().__init__(user_agent=user_agent, headers=headers, _resolve=_resolve)
        self._session_headers = {**self._home_headers}
        if session is not None and not headers:
            del self._session_headers["Accept"]  # the session has one
        verify = checked_verify(verify)
        self._verify_of_session = None if self._bare is session and verify is True else verify
        self._timeout: Timeout = DEFAULT_TIMEOUT
        self._proxies: dict[str, str] = {}
        self._settings: dict[Origin, dict[str, Any]] = {}
        if type(self) is RequestsWebClient:
            self.is_thread_safe = session is None or type(session) is requests.Session
            if session is None:
                self.request_errors = (*ERRORS, *MISTAKES)

    def set_timeout(self, timeout: Timeout) -> None:
        """Set the seconds to wait for an answer: a number, a pair (to connect, to read), or None to wait forever.

        A request as a whole has a limit of its own: `Limits.request_seconds`.
        """
        checked_timeout(timeout)
        self._timeout = timeout

    def set_proxies(self, proxies: dict[str, str]) -> None:
        """Set the proxies by scheme, as in requests: {"https": "http://user:password@host:3128"}."""
        self._proxies = proxies
        self._settings = {}

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

    def send(self, request: HTTPRequest) -> RequestsAnswer:
        """Make one request, with the caller's session if the URL is on the homepage's origin."""
        check_guards()
        exchange = CURRENT.get()
        assert exchange is not None, "send() is called by get()"
        if request.is_home and not self._is_own_session:
            exchange.target = None
            return self._send_by_session(request, exchange)
        timeout: Any = self._timeout  # the types of requests lack some pairs
        options = {"stream": True, "timeout": timeout, "allow_redirects": False, **self._settings_for(request.url)}
        if "send" in vars(self._bare):  # a mock has replaced the method of this one session
            exchange.target = None
            return self._send_by_replaced_method(request, options, exchange)
        exchange.target = request.url
        adapter = self._adapter_for(request.url)
        if not isinstance(adapter, GuardedAdapter):
            request.policy.mark_resolved_elsewhere(host_of(request.url))
        response = BareSession(adapter).get_only(request.url, request.headers, **options)
        return RequestsAnswer(response, header_of(response, "Location"), exchange)

    def success_response(self, answer: Any, url: str, max_bytes: int | None) -> RequestsWebClientSuccessResponse:
        """Return the response of requests."""
        answer.response.url = url
        return RequestsWebClientSuccessResponse(answer.response, max_bytes)

    def standard_error(self, error: BaseException) -> BaseException:
        """Convert a timeout of requests to one of the standard library, with its seconds."""
        if not isinstance(error, requests.Timeout):
            return error
        connect, read = checked_timeout(self._timeout)
        return TimedOutError(connect if isinstance(error, requests.ConnectTimeout) else read)

    def _connections(self, fetch: Fetch) -> Exchange:
        return Exchange(fetch, self._resolver or resolve)

    def _adapter_for(self, url: str) -> requests.adapters.BaseAdapter:
        """Return the session's adapter for a URL, or one of ours if that connects in a way that we cannot check.

        An adapter that is no `HTTPAdapter` answers by itself, such as that of requests-mock. Look each time: a caller
        may mount others later.
        """
        adapter = self._bare.get_adapter(url)
        if type(adapter) is requests.adapters.HTTPAdapter:
            guard(self._bare)
            adapter = self._bare.get_adapter(url)
        if isinstance(adapter, GuardedAdapter) or not isinstance(adapter, requests.adapters.HTTPAdapter):
            return adapter
        with self._lock:
            if self._guarded is None:
                self._guarded = GuardedAdapter()
            return self._guarded

    def _send_by_session(self, request: HTTPRequest, exchange: Exchange) -> RequestsAnswer:
        """Make one request with the caller's session, and all that it has for the homepage."""
        session, authorization = self._session, request.authorization
        cookies = exchange.cookies = exchange.cookies or requests.cookies.RequestsCookieJar()
        location, keep = _keeping(cookies)
        guard(self._bare)
        hooks = getattr(session, "hooks", {}).get("response") or []
        response = session.get(
            request.url,
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
        # Only has an effect if an adapter of the caller's, and no connection of ours, was used.
        request.policy.mark_resolved_elsewhere(host_of(request.url))
        return RequestsAnswer(response, location[-1] if location else header_of(response, "Location"), exchange)

    def _send_by_replaced_method(
        self, request: HTTPRequest, options: dict[str, Any], exchange: Exchange
    ) -> RequestsAnswer:
        """Make one request with the `send` that someone has set on the session, and nothing else that it has."""
        prepared = requests.Request("GET", request.url, request.headers).prepare()
        location, keep = _keeping(requests.cookies.RequestsCookieJar())
        prepared.hooks["response"].append(keep)
        guard(self._bare)
        response = self._bare.send(prepared, **options)
        return RequestsAnswer(response, location[-1] if location else header_of(response, "Location"), exchange)

    def _settings_for(self, url: str) -> dict[str, Any]:
        """Return the proxies and the CA bundle for a URL, from the client, the session, and the environment."""
        origin = origin_of(url)
        settings = self._settings.get(origin)
        if settings is None:
            settings = dict(
                self._bare.merge_environment_settings(url, dict(self._proxies), True, self._verify_of_session, None)
            )
            settings.pop("stream")
            settings["cert"] = None  # a client certificate is a credential
            if self._is_own_session:  # a caller's session may change
                if len(self._settings) >= MAX_REMEMBERED_ORIGINS:
                    self._settings = {}
                self._settings[origin] = settings
        return settings


def _keeping(cookies: requests.cookies.RequestsCookieJar) -> tuple[list[str | None], Callable[..., None]]:
    """Return a hook that takes Location and cookies away from a session, and a list for the Location.

    With a Location, requests reads the whole body of a redirect, even if it does not follow it. And cookies would stay
    in the session, which sends them to other ports too.
    """
    location: list[str | None] = []

    def keep(response: requests.Response, **_: object) -> None:
        if response.status_code in REDIRECTS:
            location.append(response.headers.pop("Location", None))
        for answer in (*getattr(response, "history", ()), response):
            take_cookies(answer, cookies)

    return location, keep


def _own_user_agent(session: requests.Session) -> str | None:
    """Return the user agent that the caller has given to a session, None if it has requests' own."""
    name = getattr(session, "headers", {}).get("User-Agent")
    name = name.decode("latin-1") if isinstance(name, bytes) else name
    return None if name == requests.utils.default_user_agent() else name


def _no_credentials(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Stand in for an authentication, so that requests does not look for one in .netrc."""
    return request
