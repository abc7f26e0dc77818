"""N: news stories.

https://developers.google.com/search/docs/crawling-indexing/sitemaps/news-sitemap
"""

from __future__ import annotations

from usp.check.rules.languages import news_language_problem
from usp.check.rules.rule import ERROR, PAGES, SURVEYED_BY_CODE, WARNING, EntryRule, Finding, SitemapRule
from usp.check.subjects import Entry, SitemapCheck
from usp.scan import (
    is_old,
    parse_date,
    plain_text,
    unescape,
)

__all__ = ["RULES"]

MAX_STORIES = 1_000


def _old(entry: Entry) -> Finding | None:
    if entry.news is None:
        return None
    text = entry.news.get("publication_date")
    date = parse_date(unescape(text)) if text else None
    if date is None or not is_old(unescape(text), date, entry.context.options):
        return None
    return Finding(entry.news.place_of("publication_date"), text)


def _too_many(sitemap: SitemapCheck) -> Finding | None:
    count = sitemap.stats.stories
    return Finding(None, values={"total": f"{count:,}"}) if count > MAX_STORIES else None


def _without_publication(entry: Entry) -> Finding | None:
    if entry.news is None:
        return None
    publication = next(iter(entry.news.all("publication")), None)
    if publication is None:
        return Finding(entry.news.at, where="<news:publication>")
    missing = next((name for name in ("name", "language") if not plain_text(publication.get(name))), None)
    return Finding(publication.at, where=f"<news:{missing}>") if missing else None


def _language(entry: Entry) -> Finding | None:
    publications = entry.news.all("publication") if entry.news is not None else []
    text = plain_text(publications[0].get("language")) if publications else None
    if not text or not news_language_problem(text):
        return None
    return Finding(publications[0].place_of("language"), text, "<news:language>")


RULES = (
    EntryRule(
        "N601",
        WARNING,
        'published "{text}", more than two days ago; remove it from the news sitemap',
        _old,
        PAGES,
        SURVEYED_BY_CODE,
    ),
    SitemapRule("N602", ERROR, "{total} news stories; a news sitemap may have at most 1,000: split it", _too_many),
    EntryRule(
        "N603",
        ERROR,
        "a news story without {where}, which is required",
        _without_publication,
        PAGES,
        SURVEYED_BY_CODE,
    ),
    EntryRule(
        "N604",
        ERROR,
        '"{text}" in {where} is not a language code; write one like en, or zh-cn or zh-tw',
        _language,
        PAGES,
        SURVEYED_BY_CODE,
    ),
)
