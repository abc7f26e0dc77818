"""What went wrong with a request: the message, and whether the same request may succeed later.

HTTP libraries wrap one error in another, and their own errors say less than the innermost one. So failures are told
apart by the innermost error, which is one of the standard library's. Nothing here imports an HTTP library.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import ssl
import time
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.client import HTTPException, RemoteDisconnected
from typing import NamedTuple

from usp.objects.wording import plural, printable, shortened
from usp.web_client.policy import RefusedError

__all__ = [
    "Failure",
    "TimedOutError",
    "cut_off_message",
    "failure_of",
    "late_message",
    "retry_after_seconds",
    "status_line",
]

_MAX_WRAPPINGS = 10
_WRAPPERS = {"requests", "urllib3", "urllib", "aiohttp"}
_MAX_RETRY_AFTER = 1e9  # seconds
_SECONDS = re.compile(r"\s*([+-]?\d{1,300}(?:\.\d*)?)\s*", re.ASCII)

# Errors that may pass by themselves: of the network, of the other side, or because of too much load here.
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
# Errors of connecting, which no other URL of the same host and port would avoid.
_OF_ORIGIN = {errno.ECONNREFUSED, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETUNREACH}
# Not every system has every code.
_NO_SUCH_HOST = {getattr(socket, name) for name in ("EAI_NONAME", "EAI_NODATA") if hasattr(socket, name)}
_LASTING_LOOKUP_ERRORS = {
    getattr(socket, name) for name in ("EAI_FAIL", "EAI_FAMILY", "EAI_ADDRFAMILY") if hasattr(socket, name)
}


# Ways in which a connection ends before its time.
_CLOSED = {errno.ECONNABORTED, errno.ECONNRESET, errno.ENOTCONN, errno.EPIPE}
_CLOSED_MESSAGE = "the connection was closed"


class TimedOutError(TimeoutError):
    """Nothing arrived for this many seconds."""

    def __init__(self, seconds: float | None) -> None:
        super().__init__()
        self.seconds = seconds


class Failure(NamedTuple):
    """A message without the host, whether the same request may succeed later, and whether usp refused it for safety.

    `is_of_origin` says that all URLs of the same scheme, host and port would fail in this way.
    """

    message: str
    retryable: bool
    is_refused: bool = False
    is_of_origin: bool = False


def failure_of(error: BaseException) -> Failure:
    """Describe the error that ended a request."""
    inner = _innermost(error)
    match inner:
        case RefusedError():
            return Failure(str(inner), False, is_refused=True)
        case socket.gaierror():
            if inner.errno in _NO_SUCH_HOST:
                return Failure("no such host", False, is_of_origin=True)
            return Failure(f"the name lookup failed: {inner.strerror}", inner.errno not in _LASTING_LOOKUP_ERRORS)
        case UnicodeError():
            return Failure("no such host", False, is_of_origin=True)  # a name that cannot be encoded cannot exist
        case ssl.SSLCertVerificationError():
            # The host is there. Refused, so that nobody falls back to http, as an attacker would want.
            message = f"the certificate is not valid: {inner.verify_message}"
            return Failure(message, False, is_refused=True, is_of_origin=True)
        case ssl.SSLEOFError() | ssl.SSLZeroReturnError() | ssl.SSLSyscallError():
            return Failure(_CLOSED_MESSAGE, True)
        case ssl.SSLError():
            reason = (inner.reason or str(inner)).replace("_", " ").lower()
            return Failure(f"TLS failed: {reason}", False, is_of_origin=True)
        case TimeoutError():
            seconds = getattr(inner, "seconds", None)
            return Failure("no answer in time" if seconds is None else late_message(seconds), True)
        case OSError():
            return _system_failure(inner)
        case HTTPException():
            return Failure(f"the answer is not valid HTTP: {_words(inner)}", True)
    return Failure(_words(inner), False)


def _system_failure(error: OSError) -> Failure:
    """Describe an error of the system, by its number if it has one."""
    is_silent = isinstance(error, ConnectionError) and not error.errno and not str(error)
    if isinstance(error, RemoteDisconnected) or error.errno in _CLOSED or is_silent:
        return Failure(_CLOSED_MESSAGE, True)
    words = os.strerror(error.errno) if error.errno else _words(error)
    if error.errno and words[1:2].islower():
        words = words[0].lower() + words[1:]
    is_passing = isinstance(error, ConnectionError) or error.errno in _PASSING
    return Failure(words, is_passing, is_of_origin=error.errno in _OF_ORIGIN)


def late_message(seconds: float, *, has_begun: bool = False) -> str:
    """Describe an answer that did not come in time, or one that has begun and did not end."""
    time_given = f"{seconds:.0f}" if seconds >= 2 else f"{seconds:.2g}"
    return f"no {'complete ' if has_begun else ''}answer within {time_given} s"


def cut_off_message(error: BaseException, size: int) -> str:
    """Describe an error in the middle of a body, of which `size` bytes have arrived."""
    message = f"the body was cut off after {plural(size, 'byte')}"
    return f"timed out: {message}" if isinstance(_innermost(error), TimeoutError) else message


def status_line(status: int, reason: str | None) -> str:
    """Return a status with the server's words for it, or the standard ones: "404 Not Found"."""
    if not reason:
        try:
            reason = HTTPStatus(status).phrase
        except ValueError:
            reason = ""
    return f"{status} {reason}".rstrip()


def retry_after_seconds(value: str | None) -> float | None:
    """Return the seconds that a Retry-After header asks to wait, or None if it is neither a number nor a date.

    https://www.rfc-editor.org/rfc/rfc9110#field.retry-after
    """
    if not value:
        return None
    if match := _SECONDS.fullmatch(value):
        return min(max(float(match[1]), 0.0), _MAX_RETRY_AFTER)
    try:
        return min(max(parsedate_to_datetime(value).timestamp() - time.time(), 0.0), _MAX_RETRY_AFTER)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _innermost(error: BaseException) -> BaseException:
    """Return the error inside those that HTTP libraries wrap around it."""
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
