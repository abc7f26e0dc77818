"""Decide where the URLs of a sitemap may be: on its own host and in its own folder, or more if a robots.txt says so.

A `Scope` is made once for a sitemap, from its `DiscoveryPath`. Its `sites` and `elsewhere` are options of the survey.
`CrossSubmissions` asks the robots.txt of other hosts.

https://www.sitemaps.org/protocol.html#location
https://www.sitemaps.org/protocol.html#submit_robots
https://www.sitemaps.org/protocol.html#sitemaps_cross_submits
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Protocol
from unicodedata import normalize
from urllib.parse import urlsplit

from usp.check.subjects import DiscoveryPath
from usp.objects.sitemap import AbstractSitemap
from usp.origins import DEFAULT_PORTS, Origin, origin_of, requested_url, split_url
from usp.scan import (
    MAX_ROBOTS_TXT_BYTES,
)

__all__ = ["MAX_HOSTS", "CrossSubmissions", "IsNamed", "Scope", "first_come", "is_elsewhere", "not_named", "scope_of"]

#: Whether the robots.txt of the site that a URL starts with names one of some sitemaps.
IsNamed = Callable[[str, tuple[str, ...]], bool]

#: How many other hosts are asked for their robots.txt, and how long that may take.
MAX_HOSTS = 10
MAX_SECONDS_PER_HOST = 10.0
MAX_SECONDS = 30.0
_LEAST_SECONDS = 0.01
_WWW = "www."
# A scheme and host that `split_url` finds nothing wrong with: no letter becomes one that ends a host when normalized.
_PLAIN_START = re.compile(r"https?://\w[\w.-]{0,200}(?::[0-9]{1,4})?")


def not_named(start: str, sitemap_urls: tuple[str, ...]) -> bool:
    """Return False: an `IsNamed` that asks nobody."""
    return False


class Scope:
    """Judge URLs by their scheme and host. `origins` may be listed; of the first, only URLs below `folder`.

    Another site may be listed too if `is_named` returns True for it.
    """

    def __init__(
        self,
        origins: list[Origin],
        folder: str = "/",
        spellings: tuple[str, ...] = (),
        is_named: Callable[[str], bool] | None = None,
    ) -> None:
        self.folder = folder
        self._origins = origins
        self._is_named = is_named
        self._are_ascii = not any("xn--" in host or not host.isascii() for _, host, _ in origins)
        self._own_starts = [*dict.fromkeys([*spellings, *map(_origin_text, origins[:1])])]
        others = [_origin_text(origin) for origin in origins[1:]]
        starts = [(start + folder, "") for start in self._own_starts]
        if folder != "/":
            starts += ((f"{start}/", "U507") for start in self._own_starts)
        self.sites: tuple[tuple[str, str], ...] = (*starts, *((f"{start}/", "") for start in others))

    @property
    def own_hosts(self) -> frozenset[str] | None:
        """Its hosts, without "www.". Every other plain host is another site; None if somebody is asked about those."""
        if self._is_named is not None:
            return None
        return frozenset(host.removeprefix(_WWW) for _, host, _ in self._origins)

    def elsewhere(self, start: str) -> str:
        """Return the code of URLs with this scheme and host, which are in none of `sites`, or an empty text."""
        try:
            if self._are_ascii and _has_foreign_letter(start):
                if not _PLAIN_START.fullmatch(start):
                    _ = split_url(start).port  # raises an error where `origin_of` does
                return self._of_others(start)
            origin = origin_of(start)
        except ValueError:
            return ""
        if origin in self._origins:
            # A URL that ends with its host is the homepage. Other spellings of hosts are not reported.
            return "U507" if start in self._own_starts and self.folder != "/" else ""
        scheme, host, port = origin
        for own_scheme, own_host, own_port in self._origins:
            if port != own_port and not (_is_default(scheme, port) and _is_default(own_scheme, own_port)):
                continue
            if host == own_host:
                return "U508"
            if host.removeprefix(_WWW) == own_host.removeprefix(_WWW):
                return "U509"
        return self._of_others(start)

    def _of_others(self, start: str) -> str:
        """Return the code of URLs of another site."""
        return "" if self._is_named is not None and self._is_named(start) else "U506"


def scope_of(url: str, path: DiscoveryPath, *, is_placed: bool = True, is_named: IsNamed = not_named) -> Scope:
    """Return the scope of a sitemap.

    Its folder does not matter if a robots.txt leads to it, or if it is not known where it will be served
    (`is_placed=False`).
    """
    parts = urlsplit(url)
    folder = "/" if path.robots or not is_placed else _folder_of(url, path.top)
    origins = [origin_of(url)]
    for robots_url in reversed(path.robots):
        # The URL that robots.txt redirected to tells how the site writes its URLs. The requested one may add a host.
        if Scope(origins).elsewhere(robots_url) == "U506" or robots_url == path.robots[-1]:
            origins.append(origin_of(robots_url))
    return Scope(
        list(dict.fromkeys(origins)),
        folder,
        (f"{parts.scheme}://{parts.netloc}",),
        None if is_named is not_named else lambda start: is_named(start, path.urls),
    )


def _folder_of(url: str, top: str) -> str:
    """Return the folder that a sitemap covers: that of the topmost sitemap above it, if it is in there."""
    own, above = urlsplit(url), urlsplit(top or url)
    folder = above.path.rpartition("/")[0] + "/"
    if origin_of(url) == origin_of(top or url) and own.path.startswith(folder):
        return folder
    return own.path.rpartition("/")[0] + "/"


def first_come(made_up_url: str) -> Callable[[str], str]:
    """Return the `elsewhere` of a sitemap whose site is not known: its first URL tells the site.

    Relative URLs tell nothing: they were resolved against the URL that was made up for the sitemap.
    """
    made_up = origin_of(made_up_url)
    scope: Scope | None = None

    def elsewhere(start: str) -> str:
        nonlocal scope
        try:
            origin = origin_of(start)
        except ValueError:
            return ""
        if origin == made_up:
            return ""
        if scope is None:
            scope = Scope([origin])
        return scope.elsewhere(start)

    return elsewhere


def is_elsewhere(url: str, site_url: str) -> bool:
    """Return whether a URL has another scheme, host or port than a site."""
    try:
        return origin_of(url) != origin_of(site_url)
    except ValueError:
        return False


class FetchExtra(Protocol):
    """Fetch a document that is not part of the tree, as `usp.stream.SitemapStream.fetch_extra` does."""

    def __call__(self, url: str, /, *, seconds: float, max_bytes: int) -> AbstractSitemap: ...


class CrossSubmissions:
    """Look up which sitemaps the robots.txt files of other hosts name.

    Each host is asked once, when a sitemap first lists one of its URLs. The number of hosts and the time are limited.
    If anything goes wrong, the sitemap is not named.
    """

    def __init__(self, fetch: FetchExtra, now: Callable[[], float] = time.monotonic) -> None:
        self._fetch = fetch
        self._now = now
        self._seconds_left = MAX_SECONDS
        self._named: dict[Origin, frozenset[str]] = {}  # by the sites that were asked

    def is_named(self, start: str, sitemap_urls: tuple[str, ...]) -> bool:
        """Return whether the robots.txt of the site that a URL starts with names one of these sitemaps."""
        site = origin_of(start)
        if site not in self._named:
            if len(self._named) >= MAX_HOSTS:
                return False
            self._named[site] = self._ask(f"{_origin_text(site)}/robots.txt")
        named = self._named[site]
        return bool(named) and any(requested_url(url) in named for url in sitemap_urls)

    def _ask(self, url: str) -> frozenset[str]:
        """Return the sitemaps that a robots.txt names."""
        seconds = min(MAX_SECONDS_PER_HOST, self._seconds_left)
        if seconds < _LEAST_SECONDS:
            return frozenset()
        started = self._now()
        robots = self._fetch(url, seconds=seconds, max_bytes=MAX_ROBOTS_TXT_BYTES)
        self._seconds_left -= self._now() - started
        return frozenset(requested_url(child.url) for child in robots.sub_sitemaps)


def _origin_text(origin: Origin) -> str:
    """Return an origin as URLs start with it."""
    scheme, host, port = origin
    host = f"[{host}]" if ":" in host else host
    return f"{scheme}://{host}" if _is_default(scheme, port) else f"{scheme}://{host}:{port}"


def _has_foreign_letter(start: str) -> bool:
    """Return whether a scheme and host have a letter that no form of the host has in ASCII.

    Such a host is none that is plain ASCII. Normalizing it takes long: https://www.unicode.org/reports/tr46/
    """
    return not start.isascii() and any(
        letter.isalpha() and not normalize("NFKC", letter).casefold().isascii() for letter in start if letter > "\x7f"
    )


def _is_default(scheme: str, port: int) -> bool:
    return DEFAULT_PORTS.get(scheme) == port
