"""The parts of a URL that say where it leads: host, origin (https://www.rfc-editor.org/rfc/rfc6454) and site.

`requested_url` normalizes a URL. Nothing here looks up a host or opens a connection.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from urllib.parse import SplitResult, quote, urlsplit

from usp.exceptions import InvalidArgumentError

__all__ = [
    "CROSS_HOST",
    "DEFAULT_PORTS",
    "LOCAL_URL",
    "NO_HOSTS",
    "PRIVATE",
    "HostPatterns",
    "Origin",
    "host_of",
    "masked_url",
    "named_url",
    "normalized_host",
    "origin_of",
    "outside",
    "put_credentials",
    "registered_domain",
    "requested_url",
    "split_credentials",
    "split_url",
]

#: Scheme, normalized host, and port.
Origin = tuple[str, str, int]

#: Value of the option `cross_host` -> what is wrong with a host that it does not allow.
CROSS_HOST = {
    "allow": "",
    "same-site": "is not of the same site as",
    "same-host": "is not the same host as",
}

#: Values of the option `private`.
PRIVATE = ("allow", "refuse")

#: Ports that URLs leave out.
DEFAULT_PORTS = {"http": 80, "https": 443}
#: The URL of a sitemap that you pass as text.
LOCAL_URL = "http://usp-local-dummy.local/"

_PLAIN_URL = re.compile(
    r"https?://[a-z0-9-]+(?:\.[a-z0-9-]+)*(?::(?!80/|443/)[1-9]\d{1,4})?/(?!\.)"  # has nothing to normalize
    r"(?:[!$&'()*+,.:;=@A-Z\[\]_a-z~0-9%-]|/(?!\.)|\?(?!\Z))*"
)
_PLAIN_ORIGIN = re.compile(
    r"(https?)://([a-z0-9-]+(?:\.[a-z0-9-]+)*)(?::0*+([1-9][0-9]{0,3}|[1-5][0-9]{4}))?(?=[/?#]|\Z)"  # the same
)
_HOST_NAME = re.compile(r"(?:[a-z0-9_-]{1,63}\.)*(?!\d+\Z)[a-z0-9_-]{1,63}")
_CREDENTIALS = re.compile(r"((?:[^:/?#]*:)?//)([^/?#]*)@")
_ADDRESS = re.compile(r"[\d.]+|[^:]*+:.*", re.DOTALL)
_SAFE = "!$%&'()*+,/:;=?@[]~"
_MAX_HOST = 253  # https://www.rfc-editor.org/rfc/rfc1035#section-2.3.4
_MAX_AUTHORITY = 1_024  # user, password, host and port
_IGNORED = str.maketrans("", "", "\t\n\r")  # what `urlsplit` drops
_HOST_END = re.compile(r"[/?#]")


@lru_cache(4096)  # some hundred sites may be fetched at once, and each step asks for the same few URLs
def requested_url(url: str) -> str:
    """Return the URL as clients request it. usp treats URLs with the same result as one.

    The scheme and the host are in lower case, and the host is in ASCII. A default port, the fragment, and "." and ".."
    in the path are removed. Characters that a URL must not have are percent-encoded. Text that is no http or https URL
    is returned unchanged.
    """
    return url if _PLAIN_URL.fullmatch(url) else _requested_url(url)


def split_url(url: str) -> SplitResult:
    """Split a URL that a site wrote, as `urlsplit` does, in time that its length bounds.

    `urlsplit` normalizes hosts that are not in ASCII. That takes quadratic time for a run of combining characters, so
    a host that is too long for any host is refused first.

    :raises ValueError: if the host is too long or malformed.
    """
    if not url.isascii():
        before, slashes, rest = url.translate(_IGNORED).partition("//")
        if slashes and not _HOST_END.search(before):
            authority = _HOST_END.split(rest, maxsplit=1)[0]
            host = authority.rpartition("@")[2].partition(":")[0]
            if len(host) > _MAX_HOST or len(authority) > _MAX_AUTHORITY:
                raise ValueError(f"the host of a URL has more than {_MAX_HOST} characters")
    return urlsplit(url)


def _requested_url(url: str) -> str:
    try:
        parts = split_url(url)
        scheme, host, port = origin_of(url)
    except ValueError:
        return url
    if scheme not in DEFAULT_PORTS or not host:
        return url
    user, at, _ = parts.netloc.rpartition("@")
    host = f"[{host}]" if ":" in host else host
    place = host if port == DEFAULT_PORTS[scheme] else f"{host}:{port}"
    query = f"?{_quoted(parts.query)}" if parts.query else ""
    return f"{scheme}://{user}{at}{place}{_quoted(_without_dots(parts.path)) or '/'}{query}"


def _without_dots(path: str) -> str:
    """Return a path without "." and "..".

    https://www.rfc-editor.org/rfc/rfc3986#section-5.2.4
    """
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
    """Return a URL without its user and password, and these two as written ("me:secret"), or an empty text."""
    match = _CREDENTIALS.match(url) if "@" in url else None  # few have one
    return (f"{match[1]}{url[match.end() :]}", match[2]) if match else (url, "")


def masked_url(text: object) -> str:
    """Return what should have been a URL for an error message, quoted, with *** in place of a user and password.

    Nobody knows where the password of a malformed URL ends. So *** stands for everything before the last @.
    """
    if not isinstance(text, str):
        return f"{text!r:.200}"
    before, at, rest = text.rpartition("@")
    scheme, slashes, _ = before.partition("//")
    shown = f"{scheme if slashes else ''}{slashes}***@{rest}" if at else text
    return f"{shown!r:.200}"


def put_credentials(url: str, credentials: str) -> str:
    """Return a URL with this user and password in place of its own."""
    scheme, slashes, rest = split_credentials(url)[0].partition("//")
    return f"{scheme}{slashes}{credentials}@{rest}" if slashes else url


def named_url(url: str, names: Mapping[str, str]) -> str:
    """Return the URL of a sitemap as people see it: the name of its file, if the URL was made up for it."""
    return names.get(url, url) if url.startswith(LOCAL_URL) else url


def host_of(url: str) -> str:
    """Return the host of a URL, normalized: in lower case, without a dot at the end, international names in ASCII."""
    return origin_of(url)[1]


@lru_cache(4096)
def origin_of(url: str) -> Origin:
    """Return the origin of a URL. Raises ValueError if the port or the address in it is malformed."""
    if plain := _PLAIN_ORIGIN.match(url):
        return plain[1], plain[2], int(plain[3] or DEFAULT_PORTS[plain[1]])
    parts = split_url(url)
    scheme = parts.scheme.lower()
    port = DEFAULT_PORTS.get(scheme, 0) if parts.port is None else parts.port
    return scheme, normalized_host(parts.hostname or ""), port


def normalized_host(host: str) -> str:
    """Return a host in lower case, without a dot at the end, in ASCII if it is an international name.

    An IPv6 address is in its shortest form, unless its end is written as in IPv4.
    """
    host = host.lower()
    if ":" in host and "." not in host:
        with suppress(ValueError):
            return ipaddress.IPv6Address(host).compressed
    if not host.isascii() and len(host) <= _MAX_HOST:
        import idna  # large tables, seldom needed

        with suppress(idna.IDNAError):  # an invalid name leads nowhere, however it is written
            host = idna.encode(host, uts46=True).decode("ascii")
    return host.rstrip(".")


def outside(url: str, homepage_url: str, cross_host: str) -> str | None:
    """Return why `cross_host` does not allow a URL to the site of a homepage, or None if it does."""
    if cross_host == "allow":
        return None
    if cross_host not in CROSS_HOST:
        raise InvalidArgumentError(f"cross_host must be one of {', '.join(CROSS_HOST)}, not {cross_host!r}")
    host, home = host_of(url), host_of(homepage_url)
    if host == home or (cross_host == "same-site" and registered_domain(host) == registered_domain(home)):
        return None
    return f"{host} {CROSS_HOST[cross_host]} {home} (cross_host={cross_host!r})"


class HostPatterns:
    """Hosts that a caller allows: names, names below a domain, addresses and networks.

    `files.corp.example` is that host. `*.corp.example` is every host below that domain, and not the domain itself.
    `10.0.0.5`, `fd00::5` and `10.0.0.0/8` are addresses as they stand in a URL: names that lead there do not match.
    """

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        """Raise `InvalidArgumentError` if a pattern is not one of these."""
        if isinstance(patterns, str) or not isinstance(patterns, Iterable):
            raise InvalidArgumentError(f"allow_hosts must be several hosts, like ['10.0.0.5'], not {patterns!r}")
        self._patterns = tuple(patterns)
        self._names: set[str] = set()
        self._domains: set[str] = set()
        self._networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
        for pattern in self._patterns:
            self._add(pattern)

    def _add(self, pattern: str) -> None:
        if isinstance(pattern, str):
            with suppress(ValueError):
                self._networks.append(ipaddress.ip_network(pattern.strip("[]")))
                return
            name = normalized_host(pattern.removeprefix("*."))
            if _HOST_NAME.fullmatch(name):
                self._domains.add(f".{name}") if pattern.startswith("*.") else self._names.add(name)
                return
        raise InvalidArgumentError(
            f"allow_hosts: {pattern!r} is not a host; give a name, '*.' and a domain, an address or a network:"
            " files.corp.example, *.corp.example, 10.0.0.5, 10.0.0.0/8"
        )

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def __repr__(self) -> str:
        return repr(self._patterns)

    def match(self, host: str) -> bool:
        """Return whether a normalized host is one of them."""
        if host in self._names:
            return True
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return any(host.endswith(domain) for domain in self._domains)
        return any(address in network for network in self._networks)


#: No hosts. It is shared, as nothing changes it.
NO_HOSTS = HostPatterns()


@lru_cache(4096)
def registered_domain(host: str) -> str:
    """Return the registered domain of a host: example.co.uk for www.example.co.uk. An IP address is its own site."""
    if _ADDRESS.fullmatch(host):
        return host
    return _public_suffixes().privatesuffix(host) or host


@lru_cache(1)
def _public_suffixes():  # type: ignore[no-untyped-def]  # the library has no types of its own
    from publicsuffixlist import PublicSuffixList  # reads a long list, seldom needed

    return PublicSuffixList()
