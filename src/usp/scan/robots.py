"""The groups of a robots.txt: which user agents it names, and the rules for each.

A robots.txt may name thousands of user agents with thousands of rules in one group. A parser that keeps the rules of
every user agent multiplies them. So `rules_for` picks the rules of a few crawlers first, and `robots_txt_for` writes
them as a small robots.txt for protego, which decides what a rule matches.

The lines are read as protego reads them: also without a colon, and with common misspellings.

https://www.rfc-editor.org/rfc/rfc9309
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

__all__ = ["RobotsRule", "disallowed_paths", "robots_txt_for", "rules_for"]

#: A field ("Allow", "Disallow" or "Crawl-delay") and its value.
RobotsRule = tuple[str, str]

_AGENT = "User-agent"
_ALL = "*"
_DISALLOW_SPELLINGS = ("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw")
#: Spelling -> field. None: a field that does not matter here, but ends the list of user agents.
_FIELDS: dict[str, str | None] = {
    **dict.fromkeys(("user-agent", "useragent", "user agent"), _AGENT),
    **dict.fromkeys(_DISALLOW_SPELLINGS, "Disallow"),
    "allow": "Allow",
    **dict.fromkeys(("crawl-delay", "crawl delay"), "Crawl-delay"),
    **dict.fromkeys(("request-rate", "request rate", "visit-time", "visit time"), None),
}
#: Fields that belong to no group: user agents may go on after them.
_FOR_THE_SITE = frozenset({"sitemap", "sitemaps", "site-map", "host"})
_MAX_WORDS = 2  # of a field


def rules_for(text: str, crawlers: Iterable[str]) -> dict[str, list[RobotsRule]]:
    """Return the rules that apply to some crawlers, by the user agent of their group, in the order of the file.

    The most specific user agent of a robots.txt applies to a crawler. Its groups are merged.

    :param crawlers: names, or whole User-Agent headers.
    """
    groups = list(_groups(text))
    agents = dict.fromkeys(agent for names, _ in groups for agent in names)
    chosen = {_most_specific(agents, crawler.strip().lower()) for crawler in crawlers}
    return {
        agent: [rule for names, rules in groups if agent in names for rule in rules]
        for agent in agents
        if agent in chosen
    }


def robots_txt_for(rules: Mapping[str, Iterable[RobotsRule]], max_rules: int, max_wildcards: int) -> tuple[str, bool]:
    """Write rules as a robots.txt. Return it, and whether a limit has dropped rules.

    The time to judge a URL grows with the number of rules, and more with rules that have a wildcard.
    """
    lines: list[str] = []
    kept = wildcards = 0
    is_cut = False
    for agent, listed in rules.items():
        lines.append(f"{_AGENT}: {agent}")
        for field, value in listed:
            kept += 1
            wildcards += "*" in value
            if kept > max_rules or ("*" in value and wildcards > max_wildcards):
                is_cut = True
            else:
                lines.append(f"{field}: {value}")
        lines.append("Disallow:")  # ends the group, even if it has no rules
    return "\n".join(lines), is_cut


def disallowed_paths(rules: Mapping[str, Iterable[RobotsRule]]) -> Iterator[str]:
    """Yield the values of the Disallow rules."""
    for listed in rules.values():
        yield from (value for field, value in listed if field == "Disallow")


def _most_specific(agents: Iterable[str], crawler: str) -> str | None:
    """Return the user agent whose rules apply to a crawler: the longest one that names it, else "*", else None."""
    return max((agent for agent in agents if _names(agent, crawler)), key=len, default=None)


def _names(agent: str, crawler: str) -> bool:
    """Return whether a user agent means a crawler: its name begins with it, or a word of its User-Agent header does."""
    if agent == _ALL:
        return True
    at = crawler.find(agent)
    while at > 0 and (crawler[at - 1].isalnum() or crawler[at - 1] in "-_"):
        at = crawler.find(agent, at + 1)
    return at >= 0


def _groups(text: str) -> Iterator[tuple[dict[str, None], list[RobotsRule]]]:
    """Yield the user agents of each group, in lower case, and its rules."""
    agents: dict[str, None] = {}  # in order: if two are as specific, the first applies
    rules: list[RobotsRule] = []
    is_in_rules = False
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        directive = _directive(line) if line else None
        if directive is None:
            continue
        field, value = directive
        if field == _AGENT:
            if is_in_rules:
                yield agents, rules
                agents, rules, is_in_rules = {}, [], False
            name = value.lower() if value == _ALL else value.lower().replace(_ALL, "")
            if name:
                agents[name] = None
            continue
        is_in_rules = True
        if field is not None and value and agents:
            rules.append((field, value))
    yield agents, rules


def _directive(line: str) -> tuple[str | None, str] | None:
    """Return the field and the value of a line; None if it is for the whole site, or no directive at all.

    The field is None if it is not one that matters here.
    """
    spelling, colon, value = line.partition(":")
    spelling = spelling.strip().lower()
    is_known = spelling in _FIELDS or spelling in _FOR_THE_SITE
    if not colon or not (is_known or not value or value[0].isspace()):
        words = line.split()
        for count in range(1, _MAX_WORDS + 1):
            candidate = " ".join(words[:count]).lower()
            if candidate in _FIELDS or candidate in _FOR_THE_SITE:
                spelling, colon, value = candidate, ":", " ".join(words[count:])
                break
    if not colon or spelling in _FOR_THE_SITE:
        return None
    return _FIELDS.get(spelling), value.strip()
