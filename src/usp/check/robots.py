"""What a robots.txt disallows to search engines: the pages that they are not to fetch, and so should not be listed.

`RobotsRules.disallowed_to` is the truth, by protego. `may_disallow` is what a survey can look for at its speed: texts
that stand in every URL that may be disallowed, for `usp.scan.survey.may_be_disallowed`.

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

#: The crawlers of the search engines that read sitemaps. What is said to others does not keep a page from being found.
CRAWLERS = ("Googlebot", "Bingbot")
_ALL = "*"
_OTHERS = "usp-other"
#: How many rules are looked at, how many of them with a wildcard, and of how many URLs it is asked what they say.
MAX_RULES = 2_000
MAX_WILDCARDS = 200
MAX_ASKED = 200_000

# All but the last are for texts in lower case: without regard to case, more letters would fit than protego takes.
_RULE = re.compile(r"(?:dis|dia|allow)[a-z]*\s*:")
_AGENT = re.compile(r"(?:user[- ]?agent\s*:|user(?:-|\s*)agent\s)\s*(.*)")
_SURELY_AGENT = re.compile(r"user[- ]?agent\s*:")
_DISALLOW = re.compile(r"(?:dis|dia)[a-z]*\s*[:\s]\s*(.+)", re.IGNORECASE)
# What stands in a URL as it does in a rule that it matches; all else may be written with an escape or without.
_NOT_LITERAL = re.compile(r"(?:%[0-9A-Fa-f]{0,2}|[^A-Za-z0-9/._~?=&%-])+")


class RobotsRules:
    """The rules of a robots.txt, given as pieces of UTF-8, that was asked for at one URL and may have been at another.

    They are those of the site that was asked, whatever it redirected to (RFC 9309, 2.3.1.2); and of the site that
    answered, if this is its own robots.txt.
    """

    def __init__(self, url: str, pieces: Iterable[bytes], answered_url: str | None = None) -> None:
        from protego import Protego  # imported only when needed

        text, self.is_cut = _of_interest(robots_text(pieces).decode("utf-8", "replace"))
        self._rules: Any = Protego.parse(text)
        self._asked = 0
        urls = [url]
        if answered_url is not None and urlsplit(answered_url).path == "/robots.txt":
            urls.append(answered_url)
        self._origins: set[Origin] = set(map(origin_of, urls))
        starts = dict.fromkeys(strip_url_to_homepage(each).removesuffix("/") for each in urls)
        patterns = list(disallowed_patterns(text))
        parts = dict.fromkeys(literal_parts(start, pattern) for start in starts for pattern in patterns)
        #: Of each URL that is disallowed, all texts of one of these stand in it, in order, the first at its start.
        self.may_disallow: tuple[tuple[str, ...], ...] = tuple(parts)

    def is_disallowed(self, url: str) -> bool:
        """Whether a URL is on a site of this robots.txt, and not to be fetched by one of the crawlers."""
        return bool(self.disallowed_to(url))

    def disallowed_to(self, url: str) -> str:
        """To whom a URL is disallowed, in words; empty if it is so to none of the crawlers."""
        try:
            if origin_of(url) not in self._origins:
                return ""
            self._asked += 1
            if self._asked > MAX_ASKED:
                self.is_cut = True
                return ""
            barred = [crawler for crawler in CRAWLERS if not self._rules.can_fetch(url, crawler)]
            is_for_all = bool(barred) and not self._rules.can_fetch(url, _ALL)
        except ValueError:  # of what is no URL nothing is said
            return ""
        return "all crawlers" if is_for_all and len(barred) == len(CRAWLERS) else " and ".join(barred)


def _of_interest(text: str) -> tuple[str, bool]:
    """A robots.txt as far as it may concern the crawlers, and whether it was cut: it has a few rules in all.

    What it costs to read and to ask it grows with user agents times rules, and with rules times URLs. So other user
    agents, of which some files name hundreds, go by one name.
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
            header.clear()  # to protego, whatever it is, it may end the header
        if agent or _RULE.match(lowered) or _DISALLOW.match(lowered):
            is_costly = agent is not None or "*" in lowered  # what may be a user agent is as costly as a wildcard
            rules += 1
            wildcards += is_costly
            if rules > MAX_RULES or (is_costly and wildcards > MAX_WILDCARDS):
                is_cut = True
                continue
        lines.append(line)
    return "\n".join(lines), is_cut


def disallowed_patterns(text: str) -> Iterator[str]:
    """The Disallow rules that may apply to the crawlers, and, where it is not sure whose a rule is, perhaps others.

    Where there are groups for each of the crawlers, those for all apply to none of them.
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
    """User agents, in lower case, and the Disallow rules for them.

    protego takes lines with other spellings and without colons, too: what it may take for such a line is one here. A
    group ends only where it surely does.
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
    """Whether a user agent of a robots.txt may stand for a crawler: protego takes the start of a name for the name."""
    start = agent.replace("*", "")
    return bool(start) and crawler.lower().startswith(start)


def _names(agent: str, crawler: str) -> bool:
    """Whether it surely stands for the crawler, and goes before what is for all."""
    return agent == crawler.lower()


def literal_parts(origin: str, pattern: str) -> tuple[str, ...]:
    """Texts that stand, in this order, in every URL of an origin that a pattern matches; the first at its start."""
    if pattern.startswith(("http://", "https://")):
        pattern = f"/{pattern}"  # as protego takes it
    first, *others = _NOT_LITERAL.split(pattern)
    parts = [part for part in (first, *others) if part]
    if parts and parts[0][:2] in ("/", "/?"):  # the slash before a query, or at the end, may be left out
        first, parts = "", [parts[0][1:], *parts[1:]]
    elif first:
        parts = parts[1:]
    return (origin + first, *(part for part in parts if part))
