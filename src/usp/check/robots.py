"""What a robots.txt disallows to all: the pages that a search engine is not to fetch, and so should not be listed.

`RobotsRules.is_disallowed` is the truth, by protego. `may_disallow` is what a survey can look for at its speed: texts
that stand in every URL that may be disallowed, for `usp.scan.survey.may_be_disallowed`.

https://www.rfc-editor.org/rfc/rfc9309
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from usp.origins import Origin, origin_of
from usp.scan.urls import strip_url_to_homepage

__all__ = ["RobotsRules", "disallowed_patterns", "literal_parts"]

#: How much of a robots.txt counts; Google reads no more.
MAX_RULES_BYTES = 512_000
_USER_AGENT = "*"

_RULE = re.compile(r"(?:dis|dia|allow)[a-z]*\s*:", re.IGNORECASE)
_DISALLOW = re.compile(r"(?:dis|dia)[a-z]*\s*[:\s]\s*(.+)", re.IGNORECASE)
_AGENT = re.compile(r"user[- ]?agent\s*:", re.IGNORECASE)
_ALL_AGENTS = re.compile(r"user[- ]?agent[\s:]+\*", re.IGNORECASE)
# What stands in a URL as it does in a rule that it matches; all else may be written with an escape or without.
_NOT_LITERAL = re.compile(r"(?:%[0-9A-Fa-f]{0,2}|[^A-Za-z0-9/._~?=&%-])+")


class RobotsRules:
    """The rules for all user agents in the robots.txt of one origin, given as pieces of UTF-8."""

    def __init__(self, url: str, pieces: Iterable[bytes]) -> None:
        from protego import Protego  # imported only when needed

        text = _start_of(pieces).decode("utf-8", "replace")
        self._rules: Any = Protego.parse(text)
        self._origin: Origin = origin_of(url)
        start = strip_url_to_homepage(url).removesuffix("/")
        parts = dict.fromkeys(literal_parts(start, pattern) for pattern in disallowed_patterns(text))
        #: Of each URL that is disallowed, all texts of one of these stand in it, in order, the first at its start.
        self.may_disallow: tuple[tuple[str, ...], ...] = tuple(parts)

    def is_disallowed(self, url: str) -> bool:
        """Whether a URL is on the origin of this robots.txt, and not to be fetched."""
        try:
            return origin_of(url) == self._origin and not self._rules.can_fetch(url, _USER_AGENT)
        except ValueError:  # of what is no URL nothing is said
            return False


def _start_of(pieces: Iterable[bytes]) -> bytes:
    data = b""
    for piece in pieces:
        data += piece
        if len(data) >= MAX_RULES_BYTES:
            break
    return data[:MAX_RULES_BYTES]


def disallowed_patterns(text: str) -> Iterator[str]:
    """The Disallow rules for all user agents, and, where it is not sure whose a rule is, perhaps some for others.

    protego takes lines with other spellings and without colons, too: what it may take for such a rule is one here.
    """
    is_for_all = is_in_rules = False
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        if _AGENT.match(line) or _ALL_AGENTS.match(line):
            if is_in_rules and _AGENT.match(line):
                is_for_all = is_in_rules = False
            is_for_all |= _ALL_AGENTS.fullmatch(line) is not None
        elif _RULE.match(line):
            is_in_rules = True
        if is_for_all and (rule := _DISALLOW.match(line)):
            yield rule[1]


def literal_parts(origin: str, pattern: str) -> tuple[str, ...]:
    """Texts that stand, in this order, in every URL of an origin that a pattern matches; the first at its start."""
    if pattern.startswith(("http://", "https://")):
        pattern = f"/{pattern}"  # as protego takes it
    first, *others = _NOT_LITERAL.split(pattern)
    if first[:2] in ("/", "/?"):  # the slash before a query, or at the end, may be left out
        first, others = "", [first[1:], *others]
    return (origin + first, *(part for part in others if part))
