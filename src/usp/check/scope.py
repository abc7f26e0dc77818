"""Where the URLs of a sitemap may be: on its own host, in its own folder; more where a robots.txt leads to it.

A `Scope` is made once for a sitemap, and gives what a survey needs: `sites` and `elsewhere`.

https://www.sitemaps.org/protocol.html#location, https://www.sitemaps.org/protocol.html#submit_robots
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from usp.origins import Origin, origin_of

__all__ = ["Scope", "first_come", "scope_of"]

_DEFAULT_PORTS = {"http": 80, "https": 443}
_WWW = "www."


class Scope:
    """Judges URLs by where they start. `origins` are those that may be listed; in the first, only below `folder`."""

    def __init__(self, origins: list[Origin], folder: str = "/", spelled: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self._origins = origins
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
        return "U506"


def scope_of(url: str, *, robots_url: str | None, is_placed: bool = True) -> Scope:
    """The scope of a sitemap. With the URL of the robots.txt that leads to it, its folder does not matter.

    Nor does it where nobody knows whether it will be served from there: `is_placed` is False.
    """
    parts = urlsplit(url)
    spelled = (f"{parts.scheme}://{parts.netloc}",)
    if robots_url is not None:
        return Scope([*dict.fromkeys([origin_of(url), origin_of(robots_url)])], spelled=spelled)
    return Scope([origin_of(url)], parts.path.rpartition("/")[0] + "/" if is_placed else "/", spelled)


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
