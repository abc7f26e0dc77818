"""URLs in documents: which ones count, and how relative ones become absolute."""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlunsplit

from usp.compiled import IS_COMPILED
from usp.exceptions import StripURLToHomepageException
from usp.origins import LOCAL_URL, masked_url, split_url

__all__ = [
    "INVISIBLE",
    "MAX_BASE",
    "URLForm",
    "absolute_url",
    "is_http_url",
    "is_placeholder",
    "is_plain_http_url",
    "is_without_scheme",
    "pure_absolute_url",
    "strip_url_to_homepage",
    "unescaped_url",
    "unwrapped",
]

#: Characters of a URL that resolves relative ones. Each of them becomes as long, so a few bytes would be many.
MAX_BASE = 1_024
_HTTP_URL = re.compile(r"https?://[^/?#\s]", re.IGNORECASE)
_AUTHORITY = re.compile(r"[^/?#]*+")
_PLAIN_HTTP_URL = re.compile(
    r"https?://(?!\.)[.-]*+\w[\w.-]*+(?::(?:[0-5]?\d{1,4}|6[0-4]\d{3}))?(?:[/?#]|$)", re.IGNORECASE
)
_HOST = re.compile(r"(?!\.)[^\s\w:]*[\w:]\S*")
# A name that is appended to the folder of the base as it is: nothing in it can be a part of a URL, or be unwrapped.
_SIMPLE_PATH = re.compile(r"[\w!$%&*+,=@~-]+")
_FIRST_PART = re.compile(r"[^/?#]+")
_WWW_HOST = re.compile(r"www\.[\w-]+(?:\.[\w-]+)+\.?(?::\d{1,5})?", re.IGNORECASE)
#: What programs write in place of a URL that they do not have, in lower case.
_PLACEHOLDERS = frozenset({"none", "null", "nil", "nan", "undefined", "(null)", "[object object]"})
_HAS_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
#: Invisible marks around pasted URLs that Python does not count as white space.
INVISIBLE = "\u00ad\u200b\u200e\u200f\u2060\ufeff"
_SPACE = "".join(character for character in map(chr, range(0x3001)) if character.isspace())
_WRAPPING = "<>\"'`\u2018\u2019\u201c\u201d" + INVISIBLE + _SPACE
_INNER_BREAKS = str.maketrans("", "", "\t\n\r")


def is_http_url(url: str | None) -> bool:
    """Return whether this is an absolute http or https URL with a host, which must not start with a dot."""
    if not isinstance(url, str) or not _HTTP_URL.match(url):
        return False
    if _PLAIN_HTTP_URL.match(url):
        return True
    authority = _AUTHORITY.match(url, url.index("//") + 2)
    if authority is not None and _is_no_authority(authority[0]):
        return False
    try:
        parts = split_url(url)
        _ = parts.port  # raises ValueError if it is not a port
        return _HOST.fullmatch(parts.hostname or "") is not None
    except ValueError:
        return False


def _is_no_authority(text: str) -> bool:
    """Return whether a text is certainly not what follows "http://". `urlsplit` finds more, and takes longer."""
    if ("[" in text) != ("]" in text):
        return True
    return "@" not in text and (text.startswith(".") or " " in text.partition(":")[0])


def is_plain_http_url(text: str) -> bool:
    """Return whether a text is an absolute URL with nothing to repair."""
    return _PLAIN_HTTP_URL.match(text) is not None and "&amp;" not in text and text.isprintable()


def unwrapped(text: str) -> str:
    """Remove quotes, brackets, invisible marks or escaped CDATA that were pasted around a URL."""
    return text.strip(_WRAPPING).removeprefix("![CDATA[").removesuffix("]]").strip(_WRAPPING)


def unescaped_url(text: str) -> str:
    """Remove the second escaping that some sites put on a URL. `&copy` in a query string is left alone."""
    return text.replace("&amp;", "&")


class URLForm(Enum):
    """How a text states a URL."""

    ABSOLUTE = auto()
    RELATIVE = auto()
    WITHOUT_SCHEME = auto()  # www.example.org/page
    PLACEHOLDER = auto()  # there is no URL
    NOT_HTTP = auto()  # nor here


def pure_absolute_url(text: str, base: str) -> tuple[str | None, URLForm]:
    """Return the absolute http or https URL that a text states, None if it states none; and how it states it."""
    if _SIMPLE_PATH.fullmatch(text) and not is_placeholder(text):
        folder = _folder_of(base)
        return (None, URLForm.NOT_HTTP) if folder is None else (folder + text, URLForm.RELATIVE)
    text = text.translate(_INNER_BREAKS)  # as browsers do: https://url.spec.whatwg.org/#url-parsing
    if not is_http_url(text):
        text = unwrapped(text)
    if is_http_url(text):
        return text, URLForm.ABSOLUTE
    if is_placeholder(text):
        return None, URLForm.PLACEHOLDER
    if is_without_scheme(text, base):
        return f"{_scheme_and_own_hosts(base)[0]}://{text}", URLForm.WITHOUT_SCHEME
    # To the pattern, "localhost:80/x" has a scheme. It is not a URL anyway.
    if not text or _HAS_SCHEME.match(text) or "://" in text.partition("?")[0] or len(base) > MAX_BASE:
        return None, URLForm.NOT_HTTP
    try:
        split_url(text)  # `urljoin` would take long for a host that is too long
        joined = urljoin(base, text)
    except ValueError:
        return None, URLForm.NOT_HTTP
    return (joined, URLForm.RELATIVE) if is_http_url(joined) else (None, URLForm.NOT_HTTP)


@lru_cache(64)
def _folder_of(base: str) -> str | None:
    """Return what a URL puts before a relative one that is a mere name, None if it cannot resolve any."""
    if len(base) > MAX_BASE:
        return None
    try:
        joined = urljoin(base, "x")
    except ValueError:
        return None
    return joined[:-1] if is_http_url(joined) else None


def is_placeholder(text: str) -> bool:
    """Return whether a text stands in place of a URL that somebody did not have: "None", "undefined", "#".

    A fragment alone leads to the sitemap itself.
    """
    return text.startswith("#") or text.lower() in _PLACEHOLDERS


def is_without_scheme(text: str, base: str) -> bool:
    """Return whether a text is a URL that lacks only the scheme.

    It starts with a host that begins with "www.", or with the host of the base, with or without "www.". As a relative
    path, it would lead to a folder with the name of a host.
    """
    first = _FIRST_PART.match(text)
    if first is None or "." not in first[0]:
        return False
    is_host = _WWW_HOST.fullmatch(first[0]) is not None or first[0].lower() in _scheme_and_own_hosts(base)[1]
    return is_host and is_http_url(f"http://{text}")


@lru_cache(64)
def _scheme_and_own_hosts(base: str) -> tuple[str, frozenset[str]]:
    """Return the scheme of a URL, and its host in all forms that a text may start with.

    The scheme is https if it is not known: if there is no URL, or if it was made up.
    """
    if base.startswith(LOCAL_URL):
        return "https", frozenset()
    try:
        parts = split_url(base)
        host, port = (parts.hostname or "").removeprefix("www."), parts.port
    except ValueError:
        return "https", frozenset()
    hosts = {host, f"www.{host}"} if "." in host else set()
    return parts.scheme or "https", frozenset(hosts | {f"{host}:{port}" for host in hosts if port is not None})


def strip_url_to_homepage(url: str) -> str:
    """Return the homepage of a URL: its scheme, host and port with a single slash.

    Raise `StripURLToHomepageException` if it is not an http or https URL.
    """
    if not is_http_url(url):
        raise StripURLToHomepageException(
            f"URL {masked_url(url)} is not an http or https URL; give one like https://example.org/"
        )
    parts = split_url(url)
    return urlunsplit((parts.scheme, parts.netloc, "/", "", ""))


if TYPE_CHECKING or not IS_COMPILED:
    absolute_url = pure_absolute_url
else:
    from usp.scan import _urls
    from usp.scan._urls import absolute_url

    _urls.bind()
