"""R: robots.txt, and how sitemaps are discovered."""

from __future__ import annotations

from usp.check.rules.rule import (
    ERROR,
    FEED_ITEMS,
    PAGES,
    SURVEYED_BY_CODE,
    WARNING,
    EntryRule,
    Finding,
    Rule,
    SiteRule,
)
from usp.check.scope import is_elsewhere
from usp.check.subjects import Entry, TreePlace
from usp.objects.sitemap import (
    IndexRobotsTxtSitemap,
    IndexWebsiteSitemap,
    InvalidSitemap,
    PagesAtomSitemap,
    PagesRSSSitemap,
)
from usp.scan import (
    may_be_disallowed,
    strip_url_to_homepage,
)

__all__ = ["RULES"]


def _not_named(place: TreePlace) -> Finding | None:
    if not place.is_robots_known or place.is_listed or not isinstance(place.parent, IndexWebsiteSitemap):
        return None
    # Nobody needs to name a feed.
    if isinstance(place.sitemap, (IndexRobotsTxtSitemap, InvalidSitemap, PagesRSSSitemap, PagesAtomSitemap)):
        return None
    return Finding(None, place.sitemap.url)


def _failed(place: TreePlace) -> Finding | None:
    if not isinstance(place.parent, IndexRobotsTxtSitemap) or not place.is_failed:
        return None
    what = "is no sitemap" if place.is_no_sitemap else "could not be fetched"
    return Finding(None, place.declared_url, values={"what": what, "reason": place.failure}, is_of_lister=True)


def _on_other_host(place: TreePlace) -> Finding | None:
    is_named = isinstance(place.parent, IndexRobotsTxtSitemap) and not place.is_failed
    if not is_named or not place.stated_url or not is_elsewhere(place.declared_url, place.stated_url):
        return None
    site = strip_url_to_homepage(place.stated_url).removesuffix("/")
    return Finding(None, place.declared_url, site, is_of_lister=True)


def _redirected(place: TreePlace) -> Finding | None:
    if not place.is_redirected or not isinstance(place.parent, IndexRobotsTxtSitemap):
        return None
    return Finding(None, place.declared_url)


def _disallowed(entry: Entry) -> Finding | None:
    context = entry.context
    crawlers = context.disallowed_to(entry.url) if may_be_disallowed(entry.url, context.options) else ""
    return Finding(entry.at, entry.text, crawlers) if crawlers else None


RULES = (
    Rule("R701", ERROR, "an HTML page is served in place of robots.txt"),
    Rule("R702", ERROR, 'relative URL "{text}" on a Sitemap line; it must be absolute'),
    Rule("R703", ERROR, "a Sitemap line without a URL"),
    Rule("R704", ERROR, "{text}; sitemaps that only robots.txt names are missing here"),
    SiteRule(
        "R705", WARNING, 'no robots.txt names this sitemap; add the line "Sitemap: {text}" to robots.txt', _not_named
    ),
    SiteRule("R706", ERROR, "robots.txt names {text}, which {what}: {reason}", _failed),
    SiteRule("R707", WARNING, "robots.txt names {text}, which redirects here; name this URL", _redirected),
    Rule("R708", WARNING, "robots.txt is longer than 512,000 bytes (500 KiB); neither Google nor usp reads the rest"),
    EntryRule(
        "R709",
        ERROR,
        "robots.txt disallows this page to {where}; remove it from the sitemap, or allow it",
        _disallowed,
        PAGES | FEED_ITEMS,
        SURVEYED_BY_CODE,
    ),
    Rule("R710", WARNING, 'not every reader understands this line; write "Sitemap: {text}" on a line of its own'),
    # The check itself reports this one, with the root.
    Rule(
        "R711",
        ERROR,
        "no sitemap was found: robots.txt names none, and there is none at the usual places; make one and name it in"
        " robots.txt",
    ),
    Rule("R712", WARNING, 'no reader takes this line for a sitemap; write "Sitemap: {text}"'),
    SiteRule("R715", ERROR, "robots.txt names {text}, which is not on {where}; name the URL there", _on_other_host),
    # The check itself reports these two, with the root.
    Rule(
        "R713",
        WARNING,
        'robots.txt answered {text}, which crawlers take for "no robots.txt"; sitemaps that only robots.txt names are'
        " missing here",
    ),
    Rule("R714", ERROR, "{where} could not be fetched: {text}; there may be a sitemap that is missing here"),
)
