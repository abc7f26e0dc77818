"""Sites of which nothing has changed: each document is asked for, and no tree is built.

Most sites have not changed since the run before. If the server says so of every document of a site (304), its tree is
the one that the tables have: what a walk finds depends on the documents and on its options alone. So the documents are
asked for in the order of a walk, each after the one that lists it, with the same limits. At the first other answer the
site is fetched in the usual way; answers that are there already are taken from here, so no URL is requested twice.

This is done only where the tables say all that a walk would find out. Else `documents_to_ask` returns nothing:

- The run before made the same walk: the same options, without functions of the caller, and no rules or delays that only
  a walk knows.
- Its outcome was complete. Every request brought a document, and no answer was a redirect, a failure or a guess.
- Every document can be asked for with a condition, and its body is in a WARC file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterator, Mapping
from hashlib import blake2b
from itertools import groupby
from typing import TYPE_CHECKING

from usp.crawl.schema import State
from usp.crawl.state import KnownSite, Row
from usp.limits import Limits
from usp.objects.outcome import OutcomeKind
from usp.origins import requested_url
from usp.politeness import Politeness
from usp.version import __version__
from usp.web_client.policy import RequestPolicy, applying

if TYPE_CHECKING:
    from usp.crawl.client import Reuse, SiteClient
    from usp.crawl.crawler import CrawlOptions
    from usp.crawl.sites import SiteTarget

__all__ = ["documents_to_ask", "is_unchanged", "unchanged_rows", "walk_key"]

_MOST_ROWS = 2_000
_FEW = 8  # documents that are asked for one after the other, on one connection
_READ = (State.NEW, State.CHANGED, State.UNCHANGED)
_SIMPLE = (str, int, float, Limits, Politeness)
_OF_ANSWER = ("fetched_at", "cache_seconds", "seconds")


def walk_key(options: CrawlOptions) -> str | None:
    """Return what tells a walk with these options from others; None for one that the tables do not say enough of."""
    given = {name: value for name, value in options.tree.items() if value is not None}
    politeness = given.get("politeness")
    has_rules = isinstance(politeness, Politeness) and (politeness.crawl_delay or politeness.spacing > 0)
    is_simple = all(isinstance(value, _SIMPLE) for value in given.values())
    if has_rules or not is_simple or given.get("respect_robots") or options.known_paths == "always":
        return None
    text = repr((__version__, options.known_paths, options.with_pages, sorted(given.items())))
    return blake2b(text.encode("utf-8", "backslashreplace"), digest_size=8).hexdigest()


def documents_to_ask(known: KnownSite, target: SiteTarget, same_walks: Container[int], reuse: Reuse) -> list[Row]:
    """Return the rows of the documents to ask for, each once, in the order of a walk; none if the tables do not do.

    :param same_walks: the runs that made the same walks as this one.
    """
    rows, before = known.rows, known.before
    if before is None or reuse.max_age or reuse.trust_lastmod or not 0 < len(rows) <= _MOST_ROWS:
        return []
    if before.outcome != OutcomeKind.COMPLETE or before.has_problems or before.target != target.target:
        return []
    is_site = target.reading.is_site
    asked = {requested_url(row["url"]): row for row in reversed(rows[is_site:])}
    if len(asked) != before.requests or rows[0]["url"] != target.site or before.run not in same_walks:
        return []
    if is_site and not _has_no_guesses(rows):
        return []
    if not all(map(_can_be_asked, rows[is_site:])):
        return []
    return sorted(asked.values(), key=lambda row: (row["depth"], row["position"]))


def _has_no_guesses(rows: list[Row]) -> bool:
    """Return whether robots.txt led to sitemaps, so that known paths were not tried."""
    return (
        len(rows) > 2
        and rows[0]["document"] is None
        and rows[1]["type"] == "robots"
        and all(row["depth"] > 1 for row in rows[2:])
    )


def _can_be_asked(row: Row) -> bool:
    return bool(
        row["document"] is not None
        and row["cause"] is None
        and row["state"] in _READ
        and row["url"] == row["requested_url"]
        and row["warc"]
        and (row["etag"] or row["http_last_modified"] is not None)
    )


async def is_unchanged(client: SiteClient, documents: list[Row], policy: RequestPolicy, per_host: int) -> bool:
    """Ask for documents until one may have changed. Return whether none has.

    :param documents: those of `documents_to_ask`.
    :param policy: what the requests may do.
    """
    at_once = 1 if len(documents) <= _FEW else per_host
    urls = {requested_url(row["url"]) for row in documents}
    with applying(policy, may_follow=lambda url: requested_url(url) not in urls):
        for _, level in groupby(documents, key=lambda row: row["depth"]):
            if not await _are_unchanged(client, level, policy, at_once):
                return False
    return True


async def _are_unchanged(client: SiteClient, documents: Iterator[Row], policy: RequestPolicy, at_once: int) -> bool:
    is_same = True

    async def ask() -> None:
        nonlocal is_same
        for row in documents:
            if not await client.is_unchanged(row, policy.with_credentials(row["requested_url"])):
                is_same = False
            if not is_same:
                return

    if at_once == 1:
        await ask()
    else:
        await asyncio.gather(*(ask() for _ in range(at_once)))
    return is_same


def unchanged_rows(known: KnownSite, run: int, answers: Mapping[str, Row]) -> list[Row]:
    """Return the rows of a tree of which nothing has changed.

    :param answers: the rows of all documents as of now, by the URLs that are requested.
    """
    return [_unchanged_row(row, run, answers) for row in known.rows]


def _unchanged_row(row: Row, run: int, answers: Mapping[str, Row]) -> Row:
    if row["document"] is None:  # the site itself
        return {**row, "run": run}
    now = answers[requested_url(row["url"])]
    return {**row, "run": run, "state": State.UNCHANGED, **{name: now[name] for name in _OF_ANSWER}}
