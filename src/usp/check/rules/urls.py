"""U: the URLs of entries."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from urllib.parse import quote, urlsplit

from usp.check.rules.rule import (
    ALL_ENTRIES,
    ERROR,
    INFO,
    PAGES_AND_SITEMAPS,
    SURVEYED_BY_CODE,
    WARNING,
    EntryRule,
    Finding,
    Rule,
    SitemapRule,
)
from usp.check.subjects import Entry, SitemapCheck
from usp.origins import host_of, split_url
from usp.scan import (
    MAX_URL_LENGTH,
    first_unescaped,
    has_double_escape,
)

__all__ = ["RULES"]

#: How many pages are looked at for what most of them share, and how many there must be.
_SAMPLE = 100
_LEAST_SAMPLE = 5
# "//" in a path, but not behind a colon: a path may have a whole URL in it.
_DOUBLE_SLASH = re.compile(r"[^:/?#]++://[^/?#]*+[^?#]*(?<!:)//")
_CHARACTER_NAMES = {" ": "a space", '"': "a quotation mark", "%": 'a "%" that is no escape'}


def _too_long(entry: Entry) -> Finding | None:
    if len(entry.url) < MAX_URL_LENGTH:
        return None
    return Finding(entry.at, entry.text, values={"total": f"{len(entry.url):,}"})


def _unescaped(entry: Entry) -> Finding | None:
    if (at := first_unescaped(entry.url)) < 0:
        return None
    character = entry.url[at]
    name = _CHARACTER_NAMES.get(character, f'"{character}"')
    return Finding(entry.at, entry.text, name, {"escaped": quote(character, safe="")})


def _not_ascii(entry: Entry) -> Finding | None:
    if entry.url.isascii():
        return None
    character = next(character for character in entry.url if not character.isascii())
    try:
        in_host = not (split_url(entry.url).hostname or "").isascii()
        escaped = host_of(entry.url) if in_host else quote(character, safe="", errors="replace")
    except ValueError:  # the host is too long for any host
        escaped = quote(character, safe="", errors="replace")
    return Finding(entry.at, entry.text, f'"{character}"', {"escaped": escaped})


def _elsewhere(code: str, where: Callable[[Entry], str]) -> Callable[[Entry], Finding | None]:
    """Build the rule for one code of a URL whose host or folder is not that of its sitemap."""

    def find(entry: Entry) -> Finding | None:
        return Finding(entry.at, entry.text, where(entry)) if entry.elsewhere == code else None

    return find


def _host(entry: Entry) -> str:
    return urlsplit(entry.url).netloc.rpartition("@")[2]


def _scheme(entry: Entry) -> str:
    return urlsplit(entry.url).scheme


def _folder(entry: Entry) -> str:
    return entry.context.folder


def _fragment(entry: Entry) -> Finding | None:
    _, mark, rest = entry.url.partition("#")
    return Finding(entry.at, f"#{rest}") if mark else None


def _escaped_twice(entry: Entry) -> Finding | None:
    return Finding(entry.at, entry.text) if has_double_escape(entry.url) else None


def _double_slashes(sitemap: SitemapCheck) -> Finding | None:
    urls = [page.url for page in islice(sitemap.sitemap.pages, _SAMPLE)]
    doubled = [url for url in urls if _DOUBLE_SLASH.match(url)]
    if len(urls) < _LEAST_SAMPLE or len(doubled) * 2 <= len(urls):
        return None
    return Finding(None, doubled[0], values={"count": f"{len(doubled):,}", "total": f"{len(urls):,}"})


# Feeds link to comments, each with a fragment, and to pages of others: U506 to U510 do not apply to them.
RULES = (
    Rule("U501", ERROR, 'relative URL "{text}" in {where}; a sitemap needs absolute ones'),
    Rule("U502", ERROR, '"{text}" in {where} is not an http or https URL; it was skipped'),
    EntryRule(
        "U503",
        ERROR,
        "a URL of {total} characters; it must be shorter than 2,048",
        _too_long,
        ALL_ENTRIES,
        SURVEYED_BY_CODE,
    ),
    EntryRule(
        "U504",
        WARNING,
        '{where} in a URL; write it as "{escaped}"',
        _unescaped,
        ALL_ENTRIES,
        SURVEYED_BY_CODE,
    ),
    EntryRule(
        "U505",
        INFO,
        '{where} in a URL; some readers do not understand it: write it as "{escaped}"',
        _not_ascii,
        ALL_ENTRIES,
        SURVEYED_BY_CODE,
    ),
    EntryRule(
        "U506",
        ERROR,
        "the URL is on {where}; a sitemap may list only URLs of its own host, unless robots.txt there names it",
        _elsewhere("U506", _host),
        PAGES_AND_SITEMAPS,
        SURVEYED_BY_CODE,
    ),
    EntryRule(
        "U507",
        WARNING,
        "the URL is outside {where}, the folder of the sitemap; name the sitemap in robots.txt, or move it up",
        _elsewhere("U507", _folder),
        PAGES_AND_SITEMAPS,
        SURVEYED_BY_CODE,
    ),
    EntryRule(
        "U508",
        WARNING,
        "the URL is {where}, the site is not; list the URLs that pages really have",
        _elsewhere("U508", _scheme),
        PAGES_AND_SITEMAPS,
        SURVEYED_BY_CODE,
    ),
    EntryRule(
        "U509",
        WARNING,
        "the URL is on {where}, the site is not; list the URLs that pages really have",
        _elsewhere("U509", _host),
        PAGES_AND_SITEMAPS,
        SURVEYED_BY_CODE,
    ),
    EntryRule(
        "U510",
        INFO,
        'the URL has a fragment, "{text}", which search engines drop; list the page without it',
        _fragment,
        PAGES_AND_SITEMAPS,
        SURVEYED_BY_CODE,
    ),
    SitemapRule(
        "U516",
        WARNING,
        '{count} of the first {total} URLs have "//" in their paths, such as {text}; write one "/"',
        _double_slashes,
    ),
    EntryRule(
        "U518",
        INFO,
        '"{text}" seems to be escaped twice; escape it once',
        _escaped_twice,
        ALL_ENTRIES,
        SURVEYED_BY_CODE,
    ),
    Rule("U511", WARNING, "the URL in {where} is escaped twice; write &amp; once for each &"),
    Rule("U512", ERROR, "characters around or inside the URL in {where} that do not belong to it; they were removed"),
    Rule("U513", ERROR, '"{text}" in {where} is not an http or https URL'),
    Rule("U514", ERROR, '"{text}" in {where} has no scheme; write https:// before it'),
    Rule(
        "U515", ERROR, '"{text}" in {where} is a placeholder, not a URL; it was skipped: write the URL, or leave it out'
    ),
)
