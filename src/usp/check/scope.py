"""Where the URLs of a sitemap may be: on its own host, in its own folder; more where a robots.txt leads to it.

A `Scope` is made once for a sitemap, by what leads to it (`DiscoveryPath`), and gives what a survey needs: `sites` and
`elsewhere`.

https://www.sitemaps.org/protocol.html#location, https://www.sitemaps.org/protocol.html#submit_robots
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from usp.check.subjects import DiscoveryPath
from usp.origins import Origin, origin_of

__all__ = ["IsNamed", "Scope", "first_come", "not_named", "scope_of", "text_of_origin"]

#: Whether the robots.txt of the site that a URL starts with names one of some sitemaps.
IsNamed = Callable[[str, tuple[str, ...]], bool]

_DEFAULT_PORTS = {"http": 80, "https": 443}
_WWW = "www."


def not_named(start: str, sitemap_urls: tuple[str, ...]) -> bool:
    """The `IsNamed` of those who do not ask."""
    return False


class Scope:
    """Judges URLs by where they start. `origins` are those that may be listed; in the first, only below `folder`.

    Those of any other site may be, too, if `is_named` says so of it.
    """

    def __init__(
        self,
        origins: list[Origin],
        folder: str = "/",
        spelled: tuple[str, ...] = (),
        is_named: Callable[[str], bool] | None = None,
    ) -> None:
        self.folder = folder
        self._origins = origins
        self._is_named = is_named
        self._whole = [*dict.fromkeys([*spelled, *map(text_of_origin, origins[:1])])]
        others = [text_of_origin(origin) for origin in origins[1:]]
        starts = [(start + folder, "") for start in self._whole]
        if folder != "/":
            starts += ((f"{start}/", "U507") for start in self._whole)
        self.sites: tuple[tuple[str, str], ...] = (*starts, *((f"{start}/", "") for start in others))

    def elsewhere(self, start: str) -> str:
        """The code of URLs with this scheme and host that none of the sites has; empty if all is well with them."""
        try:
            found = origin_of(start)
        except ValueError:
            return ""
        if found in self._origins:
            # A URL that ends with its host is the homepage. Hosts in other spellings are let be.
            return "U507" if start in self._whole and self.folder != "/" else ""
        scheme, host, port = found
        for own_scheme, own_host, own_port in self._origins:
            if port != own_port and not (_is_default(scheme, port) and _is_default(own_scheme, own_port)):
                continue
            if host == own_host:
                return "U508"
            if host.removeprefix(_WWW) == own_host.removeprefix(_WWW):
                return "U509"
        return "" if self._is_named is not None and self._is_named(start) else "U506"


def scope_of(url: str, path: DiscoveryPath, *, is_placed: bool = True, is_named: IsNamed = not_named) -> Scope:
    """The scope of a sitemap. Where a robots.txt leads to it, its folder does not matter.

    Nor does it where nobody knows whether it will be served from there: `is_placed` is False.
    """
    parts = urlsplit(url)
    spelled = (f"{parts.scheme}://{parts.netloc}",)
    folder = "/" if path.robots or not is_placed else _folder_of(url, path.top)
    origins = [origin_of(url)]
    for robots_url in reversed(path.robots):
        # What it redirected to says how the URLs of the site are to be; the one that was asked for adds another host.
        if Scope(origins).elsewhere(robots_url) == "U506" or robots_url == path.robots[-1]:
            origins.append(origin_of(robots_url))
    return Scope(list(dict.fromkeys(origins)), folder, spelled, lambda start: is_named(start, path.urls))


def _folder_of(url: str, top: str) -> str:
    """The folder that a sitemap speaks for: that of the topmost one that leads to it, if it is in there."""
    own, above = urlsplit(url), urlsplit(top or url)
    folder = above.path.rpartition("/")[0] + "/"
    if origin_of(url) == origin_of(top or url) and own.path.startswith(folder):
        return folder
    return own.path.rpartition("/")[0] + "/"


def first_come(made_up_url: str) -> Callable[[str], str]:
    """The `elsewhere` of a sitemap of which nobody knows where it will be: its first URL says which site it is of.

    Relative URLs, which were resolved against the URL that was made up for it, say nothing.
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


def text_of_origin(origin: Origin) -> str:
    """An origin as URLs start with it."""
    scheme, host, port = origin
    host = f"[{host}]" if ":" in host else host
    return f"{scheme}://{host}" if _is_default(scheme, port) else f"{scheme}://{host}:{port}"


def _is_default(scheme: str, port: int) -> bool:
    return _DEFAULT_PORTS.get(scheme) == port
