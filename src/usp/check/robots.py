"""Find out which pages a robots.txt disallows to search engines. A sitemap should not list them.

`RobotsRules.disallowed_to` asks protego, which is slow. `may_disallow` lets the survey skip most URLs: each URL that
may be disallowed contains these texts (see `usp.scan.survey.may_be_disallowed`).

https://www.rfc-editor.org/rfc/rfc9309
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

from usp.origins import Origin, origin_of
from usp.scan import (
    disallowed_paths,
    robots_text,
    robots_txt_for,
    rules_for,
    strip_url_to_homepage,
)

__all__ = ["CRAWLERS", "RobotsRules", "disallowed_patterns", "literal_parts"]

#: The crawlers of search engines that read sitemaps. Rules for others do not keep a page out of search results.
CRAWLERS = ("Googlebot", "Bingbot")
_ALL = "*"
#: Limits: rules that are read, rules with a wildcard among them, and URLs that protego is asked about.
MAX_RULES = 2_000
MAX_WILDCARDS = 200
MAX_ASKED = 200_000

# All other characters may be escaped in the rule and not in the URL, or the other way round.
_NOT_LITERAL = re.compile(r"(?:%[0-9A-Fa-f]{0,2}|[^A-Za-z0-9/._~?=&%-])+")

# A wildcard may end within an escape that protego makes of a character: "*A" matches ":", which is "%3A" then.
_WITHIN_ESCAPE = re.compile(r"^[0-9A-F]{1,2}")


class RobotsRules:
    """The rules of a robots.txt, given as pieces of UTF-8.

    They apply to the site of the requested URL, wherever it redirected to (RFC 9309, 2.3.1.2). They also apply to the
    site that answered, if the document is its own robots.txt.
    """

    def __init__(self, url: str, pieces: Iterable[bytes], answered_url: str | None = None) -> None:
        from protego import Protego  # imported only when needed

        whole = robots_text(pieces).decode("utf-8", "replace")
        text, self.is_cut = robots_txt_for(rules_for(whole, (*CRAWLERS, _ALL)), MAX_RULES, MAX_WILDCARDS)
        self._rules: Any = Protego.parse(text)
        self._asked = 0
        urls = [url]
        if answered_url is not None and urlsplit(answered_url).path == "/robots.txt":
            urls.append(answered_url)
        self._origins: set[Origin] = set(map(origin_of, urls))
        starts = dict.fromkeys(strip_url_to_homepage(each).removesuffix("/") for each in urls)
        patterns = list(disallowed_patterns(text))
        parts = dict.fromkeys(literal_parts(start, pattern) for start in starts for pattern in patterns)
        #: A disallowed URL contains all texts of one of these, in order, and starts with the first.
        self.may_disallow: tuple[tuple[str, ...], ...] = tuple(parts)

    def is_disallowed(self, url: str) -> bool:
        """Return whether one of the crawlers may not fetch a URL of this site."""
        return bool(self.disallowed_to(url))

    def disallowed_to(self, url: str) -> str:
        """Return the crawlers that may not fetch a URL, in words, or an empty text."""
        try:
            if origin_of(url) not in self._origins:
                return ""
            self._asked += 1
            if self._asked > MAX_ASKED:
                self.is_cut = True
                return ""
            blocked = [crawler for crawler in CRAWLERS if not self._rules.can_fetch(url, crawler)]
            is_for_all = bool(blocked) and not self._rules.can_fetch(url, _ALL)
        except ValueError:  # it is not a URL
            return ""
        return "all crawlers" if is_for_all and len(blocked) == len(CRAWLERS) else " and ".join(blocked)


def disallowed_patterns(text: str) -> Iterator[str]:
    """Yield the Disallow rules that apply to the crawlers.

    If every crawler has a group of its own, rules for all user agents apply to none of them.
    """
    return disallowed_paths(rules_for(text, CRAWLERS))


def literal_parts(origin: str, pattern: str) -> tuple[str, ...]:
    """Return texts that every URL of an origin contains, in this order, if a pattern matches it.

    The URL starts with the first text.
    """
    if pattern.startswith(("http://", "https://")):
        pattern = f"/{pattern}"  # as protego takes it
    first, *others = _NOT_LITERAL.split(pattern)
    parts = [part for part in (first, *(_WITHIN_ESCAPE.sub("", other) for other in others)) if part]
    if parts and parts[0][:2] in ("/", "/?"):  # a URL may omit the slash before a query or at its end
        first, parts = "", [parts[0][1:], *parts[1:]]
    elif first:
        parts = parts[1:]
    return (origin + first, *(part for part in parts if part))
