"""URLs in documents: which ones count, and how relative ones become absolute."""

from __future__ import annotations

import re
from urllib.parse import urljoin, urlsplit, urlunsplit

from usp.exceptions import StripURLToHomepageException

__all__ = [
    "INVISIBLE",
    "absolute_url",
    "is_http_url",
    "is_plain_http_url",
    "strip_url_to_homepage",
    "unescaped_url",
    "unwrapped",
]

_HTTP_URL = re.compile(r"https?://[^/?#\s]", re.IGNORECASE)
_PLAIN_HTTP_URL = re.compile(
    r"https?://(?!\.)[.-]*+\w[\w.-]*+(?::(?:[0-5]?\d{1,4}|6[0-4]\d{3}))?(?:[/?#]|$)", re.IGNORECASE
)
_HOST = re.compile(r"(?!\.)[^\s\w:]*[\w:]\S*")
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
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError if it is not a port
        return _HOST.fullmatch(parts.hostname or "") is not None
    except ValueError:
        return False


def is_plain_http_url(text: str) -> bool:
    """Return whether a text is an absolute URL with nothing to repair."""
    return _PLAIN_HTTP_URL.match(text) is not None and "&amp;" not in text and text.isprintable()


def unwrapped(text: str) -> str:
    """Remove quotes, brackets, invisible marks or escaped CDATA that were pasted around a URL."""
    return text.strip(_WRAPPING).removeprefix("![CDATA[").removesuffix("]]").strip(_WRAPPING)


def unescaped_url(text: str) -> str:
    """Remove the second escaping that some sites put on a URL. `&copy` in a query string is left alone."""
    return text.replace("&amp;", "&")


def absolute_url(url: str, base: str) -> tuple[str | None, bool]:
    """Return a URL made absolute, None if it is not http or https; and whether it was absolute already."""
    url = url.translate(_INNER_BREAKS)  # as browsers do: https://url.spec.whatwg.org/#url-parsing
    if not is_http_url(url):
        url = unwrapped(url)
    if is_http_url(url):
        return url, True
    # To the pattern, "localhost:80/x" has a scheme. It is not a URL anyway.
    if not url or _HAS_SCHEME.match(url) or "://" in url.partition("?")[0]:
        return None, True
    try:
        joined = urljoin(base, url)
    except ValueError:
        return None, True
    return (joined, False) if is_http_url(joined) else (None, False)


def strip_url_to_homepage(url: str) -> str:
    """Return the homepage of a URL: its scheme, host and port with a single slash.

    Raise `StripURLToHomepageException` if it is not an http or https URL.
    """
    if not is_http_url(url):
        raise StripURLToHomepageException(
            f"URL {url!r} is not an http or https URL; give one like https://example.org/"
        )
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, "/", "", ""))
