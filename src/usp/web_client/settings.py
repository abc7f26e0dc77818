"""The settings of HTTP clients: headers, timeouts, certificates and proxies, and the defaults of each.

Every constant that more than one client needs is here.
"""

from __future__ import annotations

import base64
import os
import re
import ssl
from collections.abc import Mapping
from functools import lru_cache
from numbers import Real
from urllib.parse import unquote_to_bytes
from urllib.request import getproxies, proxy_bypass

import certifi

from usp.exceptions import InvalidArgumentError
from usp.origins import Origin, split_credentials
from usp.version import __version__

__all__ = [
    "DEFAULT_TIMEOUT",
    "DEFAULT_USER_AGENT",
    "DRAIN_SECONDS",
    "MAX_INTERIM_ANSWERS",
    "MAX_REMEMBERED_ORIGINS",
    "PIECE_BYTES",
    "Timeout",
    "add_headers",
    "checked_timeout",
    "checked_verify",
    "file_state",
    "getproxies",
    "headers_to_send",
    "proxy_for_origin",
    "split_authorization",
    "tls_context",
]

#: Seconds; a pair of seconds, to connect and between two reads; None to wait forever.
Timeout = float | tuple[float | None, float | None] | None

DEFAULT_USER_AGENT = f"ultimate_sitemap_parser/{__version__}"
DEFAULT_TIMEOUT = (9.05, 60)  # to connect (a little over three TCP retransmissions), and between two reads
#: How many bytes of a body to read at once.
PIECE_BYTES = 1 << 16
#: How long to read the body of an answer that is not a success, to reuse its connection.
DRAIN_SECONDS = 0.5
#: How many 1xx answers a server may send before the answer itself.
MAX_INTERIM_ANSWERS = 100
#: For how many origins a client remembers its proxy and certificates.
MAX_REMEMBERED_ORIGINS = 256

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t -~\x80-\xff]*")
_CANONICAL_NAMES = {"cookie": "Cookie", "authorization": "Authorization", "host": "Host"}  # those that clients set, too


def headers_to_send(user_agent: str | None, headers: Mapping[str, str] | None) -> tuple[dict[str, str], dict[str, str]]:
    """Return the headers that go to every host, and those that go to the homepage's origin."""
    if headers is not None and not isinstance(headers, Mapping):
        raise InvalidArgumentError(f"headers must be a mapping of names to values, not {headers!r}")
    everywhere = {
        "User-Agent": DEFAULT_USER_AGENT if user_agent is None else user_agent,
        "Accept-Encoding": "gzip, deflate",
        "Accept": "*/*",
    }
    own = {_CANONICAL_NAMES.get(str(name).lower(), name): value for name, value in (headers or {}).items()}
    for name, value in (*everywhere.items(), *own.items()):
        if not (isinstance(name, str) and _HEADER_NAME.fullmatch(name)):
            raise InvalidArgumentError(f"headers: {name!r} is not the name of a header")
        if not (isinstance(value, str) and _HEADER_VALUE.fullmatch(value)):
            raise InvalidArgumentError(f"headers: {name} cannot be {value!r}; give one line of Latin-1 text")
    given = {name.lower() for name in own}
    return everywhere, {name: value for name, value in everywhere.items() if name.lower() not in given} | own


def split_authorization(url: str) -> tuple[str, str | None]:
    """Return a URL without its user and password, and the Authorization header for these, None without any."""
    plain, credentials = split_credentials(url)
    name, _, password = credentials.partition(":")
    if not (name or password):
        return plain, None
    token = base64.b64encode(unquote_to_bytes(name) + b":" + unquote_to_bytes(password)).decode("ascii")
    return plain, f"Basic {token}"


def add_headers(headers: dict[str, str], authorization: str | None, cookie: str | None) -> dict[str, str]:
    """Return headers with the authorization and the cookies of one request."""
    if authorization or cookie:
        headers = dict(headers)
        if authorization:
            headers["Authorization"] = authorization
        if cookie:
            headers["Cookie"] = f"{headers['Cookie']}; {cookie}" if headers.get("Cookie") else cookie
    return headers


def checked_timeout(timeout: Timeout) -> tuple[float | None, float | None]:
    """Return a timeout as a pair. Raise `InvalidArgumentError` if it is not a timeout."""
    pair = timeout if isinstance(timeout, tuple) else (timeout, timeout)
    is_good = [
        seconds is None or (isinstance(seconds, Real) and not isinstance(seconds, bool) and seconds > 0)
        for seconds in pair
    ]
    if len(pair) != 2 or not all(is_good):
        raise InvalidArgumentError(f"timeout must be seconds over 0, a pair of such, or None, not {timeout!r}")
    return pair


def checked_verify(verify: bool | str | os.PathLike[str]) -> bool | str:
    """Return a setting for certificates. Only False turns verification off; an empty value is an error."""
    if isinstance(verify, bool):
        return verify
    path = os.fspath(verify) if isinstance(verify, os.PathLike) else verify
    if not isinstance(path, str) or not path:
        raise InvalidArgumentError(f"verify must be True, False or the path of a CA bundle, not {verify!r}")
    return path


def proxy_for_origin(proxies: Mapping[str, str], origin: Origin) -> str | None:
    """Return the proxy for an origin, of those that `getproxies()` returned; None if there is none for it."""
    scheme, host, port = origin
    proxy = proxies.get(scheme) or proxies.get("all")
    if not proxy or proxy_bypass(f"{host}:{port}"):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def tls_context(verify: bool | str) -> ssl.SSLContext:
    """Return a TLS context that trusts a CA bundle, a folder of them, or what requests trusts; False trusts anyone."""
    if verify is False:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    path = verify
    if path is True:
        path = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or certifi.where()
    return _trusting(path, file_state(path))


def file_state(path: str) -> object:
    """Return a value that changes when a file does. Raise OSError if there is no such file."""
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size


@lru_cache(16)
def _trusting(path: str, _state: object) -> ssl.SSLContext:
    """Return a context that trusts a bundle. Clients share it: reading a bundle takes tens of milliseconds."""
    if os.path.isdir(path):
        return ssl.create_default_context(capath=path)
    return ssl.create_default_context(cafile=path)
