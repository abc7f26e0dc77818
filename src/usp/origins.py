"""Where a URL leads: its host in one form, its origin, the site that it belongs to; and the URL as it is requested.

Nothing here resolves names or connects. https://www.rfc-editor.org/rfc/rfc6454
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from urllib.parse import quote, urlsplit

from usp.exceptions import InvalidArgumentError

__all__ = [
    "CROSS_HOST",
    "LOCAL_URL",
    "Origin",
    "host_of",
    "origin_of",
    "outside",
    "put_credentials",
    "requested_url",
    "split_credentials",
]

#: Scheme, host in one form, and port.
Origin = tuple[str, str, int]

#: Which hosts a site may lead to -> in words.
CROSS_HOST = {
    "allow": "any host",
    "same-site": "hosts of the same site, such as www.example.org and news.example.org",
    "same-host": "the homepage's own host",
}

#: The URL of a sitemap that you pass as text.
LOCAL_URL = "http://usp-local-dummy.local/"

_DEFAULT_PORTS = {"http": 80, "https": 443}
_PLAIN_URL = re.compile(
    r"https?://[a-z0-9-]+(?:\.[a-z0-9-]+)*(?::(?!80/|443/)[1-9]\d{1,4})?/(?!\.)"  # nothing that would be changed
    r"(?:[!$&'()*+,.:;=@A-Z\[\]_a-z~0-9%-]|/(?!\.)|\?(?!\Z))*"
)
_CREDENTIALS = re.compile(r"((?:[^:/?#]*:)?//)([^/?#]*)@")
_SAFE = "!$%&'()*+,/:;=?@[]~"


def requested_url(url: str) -> str:
    """The URL as it is requested: two URLs that are requested alike are one.

    The host is in its ASCII form, the scheme and the host in lower case, a default port and the fragment are left
    out, as are "." and ".." in the path, and what may not stand in a URL is percent-encoded. What is no http or https
    URL comes back as it is.
    """
    return url if _PLAIN_URL.fullmatch(url) else _requested_url(url)


@lru_cache(1024)
def _requested_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        scheme, host, port = origin_of(url)
    except ValueError:
        return url
    if scheme not in _DEFAULT_PORTS or not host:
        return url
    user, at, _ = parts.netloc.rpartition("@")
    host = f"[{host}]" if ":" in host else host
    place = host if port == _DEFAULT_PORTS[scheme] else f"{host}:{port}"
    query = f"?{_quoted(parts.query)}" if parts.query else ""
    return f"{scheme}://{user}{at}{place}{_quoted(_without_dots(parts.path)) or '/'}{query}"


def _without_dots(path: str) -> str:
    """A path without "." and "..": https://www.rfc-editor.org/rfc/rfc3986#section-5.2.4"""
    if "/." not in path:
        return path
    kept: list[str] = []
    *folders, last = path.split("/")[1:]
    for part in (*folders, *(("",) if last == "." else ("..", "") if last == ".." else (last,))):
        if part == "..":
            del kept[-1:]
        elif part != ".":
            kept.append(part)
    return "/" + "/".join(kept)


def _quoted(text: str) -> str:
    return quote(text, safe=_SAFE, errors="replace")


def split_credentials(url: str) -> tuple[str, str]:
    """A URL without its user and password, and these as they stand there: "me:secret"; empty if there are none."""
    match = _CREDENTIALS.match(url)
    return (f"{match[1]}{url[match.end() :]}", match[2]) if match else (url, "")


def put_credentials(url: str, credentials: str) -> str:
    """A URL with a user and password, in the place of those that it has."""
    scheme, slashes, rest = split_credentials(url)[0].partition("//")
    return f"{scheme}{slashes}{credentials}@{rest}" if slashes else url


def host_of(url: str) -> str:
    """The host of a URL in one form: in lower case, without dots at its end, international names in ASCII."""
    return origin_of(url)[1]


@lru_cache(1024)
def origin_of(url: str) -> Origin:
    """The origin of a URL. Raises ValueError where there is none."""
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    port = _DEFAULT_PORTS.get(scheme, 0) if parts.port is None else parts.port
    return scheme, _host_in_one_form(parts.hostname or ""), port


def _host_in_one_form(host: str) -> str:
    host = host.lower()
    if not host.isascii():
        import idna  # only where it is needed: its tables are large

        with suppress(idna.IDNAError):  # what is no name leads nowhere, in any form
            host = idna.encode(host, uts46=True).decode("ascii")
    return host.rstrip(".")


def outside(url: str, homepage_url: str, cross_host: str) -> str | None:
    """Why a URL lies outside of what `cross_host` allows to the site of a homepage; None if it does not."""
    if cross_host == "allow":
        return None
    if cross_host not in CROSS_HOST:
        raise InvalidArgumentError(f"cross_host must be one of {', '.join(CROSS_HOST)}, not {cross_host!r}")
    host, home = host_of(url), host_of(homepage_url)
    if host == home or (cross_host == "same-site" and _site_of(host) == _site_of(home)):
        return None
    return f"{host} is not among {CROSS_HOST[cross_host]} (cross_host={cross_host!r}; the homepage is on {home})"


@lru_cache(1024)
def _site_of(host: str) -> str:
    """The part of a host that one registrant has: example.co.uk of www.example.co.uk. An address is its own site."""
    if re.fullmatch(r"[\d.]+|.*:.*", host):
        return host
    return _public_suffixes().privatesuffix(host) or host


@lru_cache(1)
def _public_suffixes():  # type: ignore[no-untyped-def]  # the library has no types of its own
    from publicsuffixlist import PublicSuffixList  # only where it is needed: it reads a long list

    return PublicSuffixList()
