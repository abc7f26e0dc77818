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
    robots_text,
    strip_url_to_homepage,
)

__all__ = ["CRAWLERS", "RobotsRules", "disallowed_patterns", "literal_parts"]

#: The crawlers of search engines that read sitemaps. Rules for others do not keep a page out of search results.
CRAWLERS = ("Googlebot", "Bingbot")
_ALL = "*"
_OTHERS = "usp-other"
#: Limits: rules that are read, rules with a wildcard among them, and URLs that protego is asked about.
MAX_RULES = 2_000
MAX_WILDCARDS = 200
MAX_ASKED = 200_000

# All but the last are for lower-case text: IGNORECASE would match more letters than protego does.
_RULE = re.compile(r"(?:dis|dia|allow)[a-z]*\s*:")
_AGENT = re.compile(r"(?:user[- ]?agent\s*:|user(?:-|\s*)agent\s)\s*(.*)")
_SURELY_AGENT = re.compile(r"user[- ]?agent\s*:")
_DISALLOW = re.compile(r"(?:dis|dia)[a-z]*\s*[:\s]\s*(.+)", re.IGNORECASE)
# All other characters may be escaped in the rule and not in the URL, or the other way round.
_NOT_LITERAL = re.compile(r"(?:%[0-9A-Fa-f]{0,2}|[^A-Za-z0-9/._~?=&%-])+")


class RobotsRules:
    """The rules of a robots.txt, given as pieces of UTF-8.

    They apply to the site of the requested URL, wherever it redirected to (RFC 9309, 2.3.1.2). They also apply to the
    site that answered, if the document is its own robots.txt.
    """

    def __init__(self, url: str, pieces: Iterable[bytes], answered_url: str | None = None) -> None:
        from protego import Protego  # imported only when needed

        text, self.is_cut = _relevant_lines(robots_text(pieces).decode("utf-8", "replace"))
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


def _relevant_lines(text: str) -> tuple[str, bool]:
    """Return the lines of a robots.txt that may concern the crawlers, and whether rules were dropped.

    Time grows with user agents times rules, and with rules times URLs. So rules are limited, and all other user agents
    become one. Some files name hundreds of them.
    """
    lines: list[str] = []
    header: set[str] = set()  # the user agents of the group that begins
    rules = wildcards = 0
    is_cut = False
    for line in text.splitlines():
        lowered = line.partition("#")[0].strip().lower()
        agent = _AGENT.match(lowered)
        if agent and _SURELY_AGENT.match(lowered):
            is_ours = agent[1] == _ALL or any(_may_name(agent[1], crawler) for crawler in CRAWLERS)
            name = agent[1] if is_ours else _OTHERS
            if name not in header:
                lines.append(line if is_ours else f"User-agent: {_OTHERS}")
            header.add(name)
            continue
        if lowered:
            header.clear()  # protego may end the header at any other line
        if agent or _RULE.match(lowered) or _DISALLOW.match(lowered):
            is_costly = agent is not None or "*" in lowered  # a line that may name a user agent costs as much
            rules += 1
            wildcards += is_costly
            if rules > MAX_RULES or (is_costly and wildcards > MAX_WILDCARDS):
                is_cut = True
                continue
        lines.append(line)
    return "\n".join(lines), is_cut


def disallowed_patterns(text: str) -> Iterator[str]:
    """Yield the Disallow rules that may apply to the crawlers, and in unclear cases some others.

    If every crawler has a group of its own, rules for all user agents apply to none of them.
    """
    groups = list(_groups(text))
    named = {crawler for agents, _ in groups for agent in agents for crawler in CRAWLERS if _names(agent, crawler)}
    for agents, patterns in groups:
        for agent in agents:
            is_for_all = agent == _ALL and len(named) < len(CRAWLERS)
            if is_for_all or any(_may_name(agent, crawler) for crawler in CRAWLERS):
                yield from patterns
                break


def _groups(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield user agents, in lower case, and the Disallow rules for them.

    protego also accepts misspelled lines and lines without a colon. Every line that it may accept counts here. A group
    ends only where it surely ends for protego.
    """
    agents: list[str] = []
    patterns: list[str] = []
    is_in_rules = False
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        lowered = line.lower()
        if agent := _AGENT.match(lowered):
            if is_in_rules and _SURELY_AGENT.match(lowered):
                yield agents, patterns
                agents, patterns, is_in_rules = [], [], False
            agents.append(agent[1])
        elif _RULE.match(lowered):
            is_in_rules = True
        if rule := _DISALLOW.match(line):
            patterns.append(rule[1])
    yield agents, patterns


def _may_name(agent: str, crawler: str) -> bool:
    """Return whether a user agent of a robots.txt may mean a crawler. protego accepts the start of its name."""
    start = agent.replace("*", "")
    return bool(start) and crawler.lower().startswith(start)


def _names(agent: str, crawler: str) -> bool:
    """Return whether it surely means the crawler, so that rules for all do not apply to it."""
    return agent == crawler.lower()


def literal_parts(origin: str, pattern: str) -> tuple[str, ...]:
    """Return texts that every URL of an origin contains, in this order, if a pattern matches it.

    The URL starts with the first text.
    """
    if pattern.startswith(("http://", "https://")):
        pattern = f"/{pattern}"  # as protego takes it
    first, *others = _NOT_LITERAL.split(pattern)
    parts = [part for part in (first, *others) if part]
    if parts and parts[0][:2] in ("/", "/?"):  # a URL may omit the slash before a query or at its end
        first, parts = "", [parts[0][1:], *parts[1:]]
    elif first:
        parts = parts[1:]
    return (origin + first, *(part for part in parts if part))
