"""What the environment says of proxies and certificates, for clients that do not ask it themselves as requests does."""

from __future__ import annotations

import os
import ssl
from urllib.request import getproxies, proxy_bypass

import certifi

__all__ = ["proxy_of", "tls_context"]


def proxy_of(scheme: str, host: str, port: int) -> str | None:
    """The proxy that the environment names for an origin, None if there is none."""
    proxies = getproxies()
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
    if os.path.isdir(path):
        return ssl.create_default_context(capath=path)
    return ssl.create_default_context(cafile=path)
