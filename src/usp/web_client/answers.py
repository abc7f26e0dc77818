"""What the clients have in common: the headers that they send, and what they say of answers and failures.

Nothing here needs requests, urllib3 or aiohttp. They wrap one error in another, and their own errors say less than the
innermost one, so that is what failures are told by.
"""

from __future__ import annotations

import base64
import errno
import os
import re
import socket
import ssl
import time
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.client import HTTPException, RemoteDisconnected
from typing import NamedTuple, TypeVar
from urllib.parse import unquote_to_bytes

from usp.exceptions import InvalidArgumentError
from usp.inflate import transport_decoded
from usp.objects.problem import printable, shortened
from usp.origins import host_of, split_credentials
from usp.version import __version__
from usp.web_client.abstract_client import (
    RETRYABLE_HTTP_STATUS_CODES,
    AbstractWebClientSuccessResponse,
    WebClientErrorResponse,
)
from usp.web_client.policy import RefusedError, RequestPolicy
from usp.web_client.redirects import REDIRECTS, Redirects

__all__ = [
    "DEFAULT_MAX_BYTES",
    "DEFAULT_TIMEOUT",
    "DEFAULT_USER_AGENT",
    "DRAIN_SECONDS",
    "PIECE_BYTES",
    "Failure",
    "TransferredResponse",
    "authorized",
    "ended",
    "failure_of",
    "headers_to_send",
    "redirected",
    "retry_after_seconds",
    "status_line",
    "with_additions",
]

DEFAULT_USER_AGENT = f"ultimate_sitemap_parser/{__version__}"
DEFAULT_TIMEOUT = (9.05, 60)  # to connect (a little over three TCP retransmissions), and between two reads
DEFAULT_MAX_BYTES = 100 * 1024 * 1024
PIECE_BYTES = 1 << 16
#: How long the body of an answer that is no success is read, so that its connection can be used again.
DRAIN_SECONDS = 0.5

_MAX_WRAPPINGS = 10
_WRAPPERS = {"requests", "urllib3", "aiohttp"}
_FOREVER = 1e9
_SECONDS = re.compile(r"\s*([+-]?\d{1,300}(?:\.\d*)?)\s*")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SET_HERE = {"cookie": "Cookie", "authorization": "Authorization"}
_HEADER_VALUE = re.compile(r"[\t -~\x80-\xff]*")

# What may pass by itself, here or there: the network, the other side, or too much being done at the moment.
_PASSING = {
    errno.EAGAIN,
    errno.EADDRNOTAVAIL,
    errno.ECONNABORTED,
    errno.ECONNREFUSED,
    errno.ECONNRESET,
    errno.EHOSTDOWN,
    errno.EHOSTUNREACH,
    errno.EMFILE,
    errno.ENETDOWN,
    errno.ENETRESET,
    errno.ENETUNREACH,
    errno.ENFILE,
    errno.ENOBUFS,
    errno.ENOMEM,
    errno.ENOTCONN,
    errno.EPIPE,
    errno.ETIMEDOUT,
}
# Not every system has every code.
_NO_SUCH_HOST = {getattr(socket, name) for name in ("EAI_NONAME", "EAI_NODATA") if hasattr(socket, name)}
_LASTING_LOOKUPS = {
    getattr(socket, name) for name in ("EAI_FAIL", "EAI_FAMILY", "EAI_ADDRFAMILY") if hasattr(socket, name)
}


AnError = TypeVar("AnError", bound=WebClientErrorResponse)


class TransferredResponse(AbstractWebClientSuccessResponse):
    """A success whose body is kept as it was transferred, and inflated only if `raw_data()` is asked for."""

    def __init__(self, max_response_data_length: int | None) -> None:
        self._max_bytes = max_response_data_length
        self._received = bytearray()
        self._encoded: bytes | None = None
        self._data: bytes | None = None
        self._problems: list[str] = []

    def raw_data(self) -> bytes:
        """The body without its transport encoding, at most as long as the limit."""
        if self._data is None:
            encoding = self.header("Content-Encoding") or ""
            self._data = transport_decoded(self._body(), encoding, self._max_bytes, self._problems.append)
        return self._data

    def encoded_data(self) -> bytes | None:
        """The body as it was transferred, at most as long as the limit."""
        if type(self).raw_data is not TransferredResponse.raw_data:
            return None  # a subclass has its own idea of the body
        body = self._body()
        if self._max_bytes is not None and len(body) > self._max_bytes:
            self._problems.append("T804")
            return body[: self._max_bytes]
        return body

    def transport_problems(self) -> tuple[str, ...]:
        """What was wrong with the length of the body and, once it was taken off, with its transport encoding."""
        return tuple(dict.fromkeys(self._problems))

    def _body(self) -> bytes:
        """The body as it was transferred."""
        return self._encoded or b""

    def _receive(self, piece: bytes) -> bool:
        """Keep a piece of the body. Whether more is wanted: not far beyond the limit."""
        self._received += piece
        return self._max_bytes is None or len(self._received) <= self._max_bytes

    def _end(self) -> int:
        """There is no more of the body; give its length."""
        self._encoded = bytes(self._received)
        self._received = bytearray()
        return len(self._encoded)

    def _give_up(self) -> int:
        """Make do with what came of the body before its transfer broke off; give the length of that."""
        self._problems.append("T805")
        return self._end()


class Failure(NamedTuple):
    """What went wrong, and whether the same request may succeed later."""

    message: str
    retryable: bool


def failure_of(error: BaseException, host: str) -> Failure:
    """What to say of an error that a request ended with."""
    inner = _innermost(error)
    match inner:
        case RefusedError():
            return Failure(str(inner), False)
        case socket.gaierror():
            if inner.errno in _NO_SUCH_HOST:
                return Failure(f"no such host: {host}", False)
            return Failure(f"{host} cannot be looked up: {inner.strerror}", inner.errno not in _LASTING_LOOKUPS)
        case UnicodeError():
            return Failure(f"no such host: {host}", False)  # what cannot be encoded cannot be looked up
        case ssl.SSLCertVerificationError():
            return Failure(f"the certificate of {host} is not accepted: {inner.verify_message}", False)
        case ssl.SSLEOFError() | ssl.SSLZeroReturnError() | ssl.SSLSyscallError():
            return Failure(f"the connection to {host} was closed while TLS was set up or in use", True)
        case ssl.SSLError():
            return Failure(f"TLS with {host} failed: {(inner.reason or str(inner)).replace('_', ' ').lower()}", False)
        case RemoteDisconnected():
            return Failure("the connection was closed without an answer", True)
        case TimeoutError():
            return Failure(f"timed out: {host} did not answer", True)
        case OSError():
            if isinstance(inner, ConnectionError) and not inner.errno and not str(inner):
                return Failure("the connection was closed", True)
            words = os.strerror(inner.errno) if inner.errno else _words(inner)
            return Failure(words, isinstance(inner, ConnectionError) or inner.errno in _PASSING)
        case HTTPException():
            return Failure(f"the answer is not HTTP as it should be: {_words(inner)}", True)
    return Failure(_words(inner), False)


def ended(
    kind: type[AnError],
    error: BaseException,
    redirects: Redirects,
    policy: RequestPolicy,
    *,
    refused: RefusedError | None,
    deadline: float | None,
    success: TransferredResponse | None,
) -> AnError:
    """The response for a request that ended with an error.

    It was refused, or out of time if there is a deadline, or something else; in the middle of a body if there is a
    success.
    """
    size = success._give_up() if success is not None else 0
    if policy.is_cancelled:
        return kind("cancelled", False, status=None)
    if refused is not None:
        return kind(str(refused), False, status=None)
    if deadline is not None and policy.is_tree_deadline(deadline):
        message, retryable = "the tree's time is up", False
    elif deadline is not None:
        message, retryable = f"timed out: no whole answer within {policy.limits.request_seconds:.3g} seconds", True
    elif success is not None:
        message, retryable = _cut_off(error, size), True
    else:
        message, retryable = failure_of(error, host_of(redirects.url))
    return kind(message, retryable, partial=success if size else None, status=None)


def redirected(
    kind: type[AnError],
    redirects: Redirects,
    status: int,
    reason: str | None,
    retry_after: str | None,
    location: bytes | None,
    set_cookies: Iterable[str],
) -> AnError | None:
    """Go where an answer that is no success leads. None if it leads somewhere, else the error that it is."""
    line = status_line(status, reason)
    if status not in REDIRECTS:
        wait = retry_after_seconds(retry_after)
        return kind(line, status in RETRYABLE_HTTP_STATUS_CODES, retry_after=wait, status=status)
    if location is None:
        return kind(f"{line}: it redirects without saying where", False, status=status)
    why_not = redirects.follow(location, set_cookies)
    return kind(why_not, False, status=None) if why_not else None


def _cut_off(error: BaseException, size: int) -> str:
    """What to say of an error in the middle of a body, after so many bytes."""
    message = f"the body was cut off after {size} bytes"
    return f"timed out: {message}" if isinstance(_innermost(error), TimeoutError) else message


def _innermost(error: BaseException) -> BaseException:
    """The error that those of the libraries are wrapped around."""
    for _ in range(_MAX_WRAPPINGS):
        if type(error).__module__.partition(".")[0] not in _WRAPPERS:
            break
        wrapped = [getattr(error, "reason", None), *error.args, error.__cause__, error.__context__]
        inner = next((inner for inner in wrapped if isinstance(inner, BaseException)), None)
        if inner is None:
            break
        error = inner
    return error


def _words(error: BaseException) -> str:
    return printable(shortened(str(error).strip())) or type(error).__name__


def status_line(status: int, reason: str | None) -> str:
    """A status with the server's words for it, or the usual ones: "404 Not Found"."""
    if not reason:
        try:
            reason = HTTPStatus(status).phrase
        except ValueError:
            reason = ""
    return f"{status} {reason}".rstrip()


def retry_after_seconds(value: str | None) -> float | None:
    """The seconds that a Retry-After header asks to wait: a number, or the time until a date. None if it is neither.

    https://www.rfc-editor.org/rfc/rfc9110#field.retry-after
    """
    if not value:
        return None
    if match := _SECONDS.fullmatch(value):
        return min(max(float(match[1]), 0.0), _FOREVER)
    try:
        return min(max(parsedate_to_datetime(value).timestamp() - time.time(), 0.0), _FOREVER)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def headers_to_send(user_agent: str | None, headers: Mapping[str, str] | None) -> tuple[dict[str, str], dict[str, str]]:
    """The headers that go everywhere, and those that go to the homepage's origin."""
    if headers is not None and not isinstance(headers, Mapping):
        raise InvalidArgumentError(f"headers must be a mapping of names to values, not {headers!r}")
    everywhere = {
        "User-Agent": DEFAULT_USER_AGENT if user_agent is None else user_agent,
        "Accept-Encoding": "gzip, deflate",
        "Accept": "*/*",
    }
    own = {_SET_HERE.get(str(name).lower(), name): value for name, value in (headers or {}).items()}
    for name, value in (*everywhere.items(), *own.items()):
        if not (isinstance(name, str) and _HEADER_NAME.fullmatch(name)):
            raise InvalidArgumentError(f"headers: {name!r} is not the name of a header")
        if not (isinstance(value, str) and _HEADER_VALUE.fullmatch(value)):
            raise InvalidArgumentError(
                f"headers: {name} cannot be {value!r}; it must be a text in one line, in Latin-1"
            )
    given = {name.lower() for name in own}
    return everywhere, {name: value for name, value in everywhere.items() if name.lower() not in given} | own


def authorized(url: str) -> tuple[str, str | None]:
    """A URL without its user and password, and the Authorization header that stands for these; None without any."""
    plain, credentials = split_credentials(url)
    name, _, password = credentials.partition(":")
    if not (name or password):
        return plain, None
    token = base64.b64encode(unquote_to_bytes(name) + b":" + unquote_to_bytes(password)).decode("ascii")
    return plain, f"Basic {token}"


def with_additions(headers: dict[str, str], authorization: str | None, cookie: str | None) -> dict[str, str]:
    """Headers with those that one request has beside them."""
    if authorization or cookie:
        headers = dict(headers)
        if authorization:
            headers["Authorization"] = authorization
        if cookie:
            headers["Cookie"] = f"{headers['Cookie']}; {cookie}" if headers.get("Cookie") else cookie
    return headers
