"""The default client: requests.

Bodies are read in pieces and only up to the limit, and kept as they were transferred. They are inflated only if
`raw_data()` is asked for, by what they are, not by what their headers say: a server that announces gzip and sends plain
text is read all the same.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Self

import requests
import urllib3

from usp.exceptions import InvalidArgumentError
from usp.inflate import transport_decoded
from usp.version import __version__
from usp.web_client.abstract_client import (
    RETRYABLE_HTTP_STATUS_CODES,
    AbstractWebClient,
    AbstractWebClientResponse,
    AbstractWebClientSuccessResponse,
    RequestWaiter,
    WebClientErrorResponse,
)

__all__ = ["RequestsWebClient", "RequestsWebClientErrorResponse", "RequestsWebClientSuccessResponse"]

Timeout = float | tuple[float | None, float | None] | None

_DEFAULT_TIMEOUT = (9.05, 60)  # to connect (a little over three TCP retransmissions), and between two reads
_DEFAULT_MAX_BYTES = 100 * 1024 * 1024
_PIECE_BYTES = 1 << 16
_MAX_WRAPPINGS = 10


class RequestsWebClientSuccessResponse(AbstractWebClientSuccessResponse):
    """A response of requests, its body read up to the limit."""

    def __init__(self, requests_response: requests.Response, max_response_data_length: int | None = None) -> None:
        self._response = requests_response
        self._max_bytes = max_response_data_length
        self._encoded: bytes | None = None
        self._data: bytes | None = None
        self._problems: list[str] = []

    def status_code(self) -> int:
        """The HTTP status."""
        return int(self._response.status_code)

    def status_message(self) -> str:
        """The server's words for the status, or the usual ones."""
        return self._response.reason or _phrase(self._response.status_code)

    def header(self, case_insensitive_name: str) -> str | None:
        """The value of a header."""
        return self._response.headers.get(case_insensitive_name)

    def raw_data(self) -> bytes:
        """The body without its transport encoding, at most as long as the limit."""
        if self._data is None:
            encoding = self.header("Content-Encoding") or ""
            self._data = transport_decoded(self._body(), encoding, self._max_bytes, self._problems.append)
        return self._data

    def encoded_data(self) -> bytes | None:
        """The body as it was transferred, at most as long as the limit."""
        if type(self).raw_data is not RequestsWebClientSuccessResponse.raw_data:
            return None  # a subclass has its own idea of the body
        body = self._body()
        if self._max_bytes is not None and len(body) > self._max_bytes:
            self._problems.append("T804")
            return body[: self._max_bytes]
        return body

    def url(self) -> str:
        """The URL after redirects."""
        return str(self._response.url)

    def transport_problems(self) -> tuple[str, ...]:
        """What was wrong with the length of the body and, once it was taken off, with its transport encoding."""
        return tuple(dict.fromkeys(self._problems))

    def _body(self) -> bytes:
        """The body as it was transferred, read once, and not far beyond the limit."""
        if self._encoded is None:
            pieces = []
            size = 0
            # decode_content=False: urllib3 trusts the header and fails where it lies.
            for piece in self._response.raw.stream(_PIECE_BYTES, decode_content=False):
                pieces.append(piece)
                size += len(piece)
                if self._max_bytes is not None and size > self._max_bytes:
                    break
            self._response.close()
            self._encoded = b"".join(pieces)
        return self._encoded


class RequestsWebClientErrorResponse(WebClientErrorResponse):
    """A request that failed."""


class RequestsWebClient(AbstractWebClient):
    """A client that keeps one requests session, with its connections, for as long as it lives.

    `verify` is as in requests; `wait` seconds are waited between requests, at random around that with `random_wait`.
    """

    def __init__(
        self,
        verify: bool | str = True,
        wait: float | None = None,
        random_wait: bool = False,
        session: requests.Session | None = None,
    ) -> None:
        self._verify = verify
        self._waiter = RequestWaiter(wait, random_wait)
        self._session = session or requests.Session()
        self._timeout: Timeout = _DEFAULT_TIMEOUT
        self._proxies: dict[str, str] = {}
        self._max_bytes: int | None = _DEFAULT_MAX_BYTES
        self._has_own_limit = False

    def set_timeout(self, timeout: Timeout) -> None:
        """Set the seconds to wait for an answer: one number, a pair (to connect, to read), or None to wait forever."""
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

    def get(self, url: str) -> AbstractWebClientResponse:
        """Fetch a URL, following redirects."""
        self._waiter.wait()
        try:
            response = self._session.get(
                url,
                timeout=self._timeout,
                stream=True,
                headers={
                    "User-Agent": f"ultimate_sitemap_parser/{__version__}",
                    "Accept-Encoding": "gzip, deflate",
                },
                proxies=self._proxies,
                verify=self._verify,
                hooks={"response": _drop_body_of_redirect},
            )
            if not 200 <= response.status_code < 300:
                _drop_body(response)
                return RequestsWebClientErrorResponse(
                    f"{response.status_code} {response.reason or _phrase(response.status_code)}",
                    retryable=response.status_code in RETRYABLE_HTTP_STATUS_CODES,
                )
            success = RequestsWebClientSuccessResponse(response, self._max_bytes)
            success._body()  # read now, so that what goes wrong with it is this request's failure
        except (requests.Timeout, urllib3.exceptions.TimeoutError) as error:
            return RequestsWebClientErrorResponse(f"timed out: {_cause(error)}", retryable=True)
        except urllib3.exceptions.LocationValueError as error:
            return RequestsWebClientErrorResponse(_cause(error), retryable=False)
        except (urllib3.exceptions.HTTPError, requests.exceptions.ChunkedEncodingError) as error:
            return RequestsWebClientErrorResponse(f"the body was cut off: {_cause(error)}", retryable=True)
        except (requests.RequestException, OSError, ValueError) as error:
            # ValueError: requests and urllib3 raise it, bare, for some URLs and headers that no server should send.
            return RequestsWebClientErrorResponse(_cause(error), retryable=False)
        return success


def _drop_body_of_redirect(response: requests.Response, **_: object) -> None:
    """Leave nothing of a redirect's body: requests would read it whole, whatever its size."""
    if response.is_redirect:
        _drop_body(response)


def _drop_body(response: requests.Response) -> None:
    """Read a small body, so that its connection can be used again, and close on a large one."""
    response.raw.read(_PIECE_BYTES, decode_content=False)
    response.raw.close()


def _cause(error: BaseException) -> str:
    """What happened, in the words of the innermost error: requests and urllib3 wrap one in the other."""
    for _ in range(_MAX_WRAPPINGS):
        wrapped = [getattr(error, "reason", None), *error.args, error.__cause__, error.__context__]
        inner = next((inner for inner in wrapped if isinstance(inner, BaseException)), None)
        if inner is None:
            break
        error = inner
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return words or type(error).__name__


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
