"""Redirects: from one URL to the one that answers, whichever client makes the requests.

`Redirects` takes the Location and Set-Cookie headers of each answer, and says what to request next, or why not. It does
no I/O. It checks every URL against the policy, the first one too.

There is no cookie jar. But some sites set a cookie and redirect to the same URL, forever, unless the cookie comes back.
So a cookie that a redirect sets is sent with later requests of the same chain, to the origin that set it. Only its name
and value count, and it is forgotten with the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from urllib.parse import urljoin

from usp.objects.wording import plural, printable, shortened
from usp.origins import Origin, origin_of, put_credentials, requested_url, split_credentials
from usp.web_client.policy import RequestPolicy

__all__ = ["REDIRECTS", "Redirects"]

#: Statuses that redirect. 300 and 304 do not, and 305 and 306 are no longer used.
REDIRECTS = frozenset({301, 302, 303, 307, 308})

_MAX_COOKIES = 20
_MAX_COOKIE_BYTES = 4096  # of all cookies together: many servers refuse more
# https://www.rfc-editor.org/rfc/rfc6265#section-4.1.1, but with spaces and commas in values, which are common.
_COOKIE_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_COOKIE_VALUE = re.compile(r"[ -~]*")
_REMOVED = re.compile(r"[\t\n\r]")


class Redirects:
    """A chain of redirects. `url` is the URL to request now; `refusal()` says why it may not be requested."""

    __slots__ = ("_cookies", "_policy", "_requested", "url")

    def __init__(self, url: str, policy: RequestPolicy) -> None:
        self.url = requested_url(url)
        self._policy = policy
        self._cookies: dict[Origin, dict[str, str]] | None = None  # most requests have none, and are not redirected
        self._requested: set[tuple[str, str | None]] | None = None

    def refusal(self) -> str | None:
        """Return why the URL may not be requested, or None if it may."""
        reason = self._policy.refusal(self.url)
        if reason and self._requested:
            return f"redirects to {_shown(self.url)}: {reason}"
        return reason

    def cookie(self) -> str | None:
        """Return the Cookie header for the URL, None if there is none."""
        if not self._cookies:
            return None
        cookies = self._cookies.get(origin_of(self.url))
        return "; ".join(f"{name}={value}" for name, value in cookies.items()) if cookies else None

    def follow(self, location: bytes, set_cookies: Iterable[str] = ()) -> str | None:
        """Go where a redirect leads: `url` becomes the next one. Return None, or the reason why not.

        `location` is the header as bytes; `set_cookies` are the values of the Set-Cookie headers.
        """
        self._requested = self._requested or set()
        self._requested.add((self.url, self.cookie()))
        if len(self._requested) > self._policy.limits.max_redirects:
            return f"redirected more than {plural(self._policy.limits.max_redirects, 'time')}"
        self._keep_cookies(set_cookies)
        try:
            url = self._with_credentials(requested_url(urljoin(self.url, _text(location))))
        except ValueError:
            return f"redirects to {_shown(_text(location))}, which is not a URL"
        self.url = url
        if reason := self.refusal():
            return reason
        if (url, self.cookie()) in self._requested:
            return f"redirects in a loop, to {_shown(url)}"
        return None

    def _with_credentials(self, url: str) -> str:
        """Add the user and password of the current URL to the next one, if that is on the same origin."""
        credentials = split_credentials(self.url)[1]
        if not credentials or split_credentials(url)[1]:
            return url
        with suppress(ValueError):  # `refusal()` says that it is not a URL
            if origin_of(url) == origin_of(self.url):
                return put_credentials(url, credentials)
        return url

    def _keep_cookies(self, set_cookies: Iterable[str]) -> None:
        cookies = None
        for text in set_cookies:
            if cookie := _cookie(text):
                if cookies is None:
                    self._cookies = self._cookies or {}
                    cookies = self._cookies.setdefault(origin_of(self.url), {})
                name, value = cookie
                others = sum(len(n) + len(v) + 3 for n, v in cookies.items() if n != name)
                if others + len(name) + len(value) > _MAX_COOKIE_BYTES:
                    continue
                if name in cookies or len(cookies) < _MAX_COOKIES:
                    cookies[name] = value


def _cookie(header: str) -> tuple[str, str] | None:
    """Return the name and value of a Set-Cookie header, or None if it is malformed or too long.

    Split by hand, in linear time: one pattern for all of it backtracks for minutes on a run of spaces.
    """
    pair = header.partition(";")[0]
    if len(pair) > _MAX_COOKIE_BYTES:
        return None
    name, equals, value = (part.strip() for part in pair.partition("="))
    if equals and _COOKIE_NAME.fullmatch(name) and _COOKIE_VALUE.fullmatch(value):
        return name, value
    return None


def _text(location: bytes) -> str:
    """Return a Location as text. It should be ASCII. Decode UTF-8, and percent-encode any other bytes."""
    try:
        text = location.decode("utf-8")
    except UnicodeDecodeError:
        text = "".join(chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in location)
    return _REMOVED.sub("", text).strip()


def _shown(url: str) -> str:
    """Return a URL for messages, which others may read: without its user and password."""
    return printable(shortened(split_credentials(url)[0]))
