"""What the environment says of proxies and certificates, for clients that do not ask it themselves as requests does."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from functools import lru_cache
from urllib.request import getproxies, proxy_bypass

import certifi

from usp.exceptions import InvalidArgumentError
from usp.origins import Origin

__all__ = ["checked_verify", "getproxies", "proxy_of", "state_of", "tls_context"]


def checked_verify(verify: bool | str | os.PathLike[str]) -> bool | str:
    """What a caller says of certificates. Only False turns their verification off, nothing that is merely empty."""
    if isinstance(verify, bool):
        return verify
    path = os.fspath(verify) if isinstance(verify, os.PathLike) else verify
    if not isinstance(path, str) or not path:
        raise InvalidArgumentError(f"verify must be True, False or the path of a CA bundle, not {verify!r}")
    return path


def proxy_of(proxies: Mapping[str, str], origin: Origin) -> str | None:
    """The proxy for an origin, of those that `getproxies()` gave; None if there is none for it."""
    scheme, host, port = origin
    proxy = proxies.get(scheme) or proxies.get("all")
    if not proxy or proxy_bypass(f"{host}:{port}"):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def tls_context(verify: bool | str) -> ssl.SSLContext:
    """What is trusted: a CA bundle, a folder of such, or by default the same as requests trusts; False for anything."""
    if verify is False:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    path = verify
    if path is True:
        path = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or certifi.where()
    return _trusting(path, state_of(path))


def state_of(path: str) -> object:
    """What changes if a file does. Raises OSError if there is none."""
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size


@lru_cache(16)
def _trusting(path: str, _state: object) -> ssl.SSLContext:
    """A context that trusts a bundle: reading one takes tens of milliseconds, so clients share it."""
    if os.path.isdir(path):
        return ssl.create_default_context(capath=path)
    return ssl.create_default_context(cafile=path)
