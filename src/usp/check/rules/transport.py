"""T: how sitemaps are served."""

from __future__ import annotations

from usp.check.rules.rule import ERROR, WARNING, Finding, Rule, SitemapRule, SiteRule
from usp.check.subjects import SitemapCheck, TreePlace
from usp.objects.problem import printable, shortened
from usp.objects.sitemap import IndexRobotsTxtSitemap, IndexWebsiteSitemap, IndexXMLSitemap, PagesTextSitemap

__all__ = ["RULES"]

MAX_SECONDS = 10.0
_XML_TYPES = frozenset({"application/xml", "text/xml"})
_GZIP_TYPES = frozenset(
    {
        "application/gzip",
        "application/x-gzip",
        "application/octet-stream",
        "binary/octet-stream",
        "application/x-gunzip",
    }
)


def _content_type(sitemap: SitemapCheck) -> Finding | None:
    transport = sitemap.transport
    if transport is None or transport.status is None:  # a file has no content type
        return None
    stated = (transport.content_type or "").partition(";")[0].strip().lower()
    is_text = isinstance(sitemap.sitemap, (IndexRobotsTxtSitemap, PagesTextSitemap))
    if stated == "text/plain" if is_text else stated in _XML_TYPES or stated.endswith("+xml"):
        return None
    is_gzip = transport.url.partition("?")[0].lower().endswith(".gz")
    if is_gzip and stated in _GZIP_TYPES:
        return None
    expected = "text/plain" if is_text else "application/xml"
    return Finding(
        None,
        transport.content_type or "",
        f"application/gzip or {expected}" if is_gzip else expected,
        {"what": f'"{printable(shortened(transport.content_type or ""))}"' if stated else "missing"},
    )


def _is_index_loop(place: TreePlace) -> bool:
    """Return whether an index lists itself or one above it, which is P434."""
    return place.is_loop and isinstance(place.lister, IndexXMLSitemap)


def _failed(place: TreePlace) -> Finding | None:
    if isinstance(place.parent, IndexRobotsTxtSitemap) or not place.is_failed or _is_index_loop(place):
        return None
    if place.lister is None:
        what = "this is no sitemap" if place.is_no_sitemap else "this could not be read"
        words = {"lister": "", "listed": "", "what": what}
    else:
        lister = shortened(place.name_of(place.lister.url))
        what = ", which is no sitemap" if place.is_no_sitemap else ", which could not be fetched"
        words = {"lister": f"{lister} lists ", "listed": place.declared_url, "what": what}
    text = place.declared_url if place.lister is not None else ""  # the place of the problem names the sitemap itself
    return Finding(None, text, values={**words, "reason": place.failure}, is_of_lister=True)


def _slow(sitemap: SitemapCheck) -> Finding | None:
    seconds = sitemap.transport.seconds if sitemap.transport is not None else None
    if seconds is None or seconds <= MAX_SECONDS:
        return None
    return Finding(None, values={"seconds": f"{seconds:.1f}"})


def _redirected(place: TreePlace) -> Finding | None:
    parent = place.parent
    if not place.is_redirected or parent is None or isinstance(parent, (IndexRobotsTxtSitemap, IndexWebsiteSitemap)):
        return None
    return Finding(None, place.declared_url, parent.url)


RULES = (
    Rule("T801", ERROR, "the gzip data is truncated or damaged; usp read what could be decompressed"),
    Rule("T802", WARNING, "other data follows the gzip data; it was skipped"),
    Rule("T803", WARNING, "the name ends in .gz but the data is not compressed"),
    Rule("T804", ERROR, "the document is larger than the limit; the rest was skipped"),
    Rule("T805", ERROR, "the transfer broke off; usp read what had arrived"),
    SitemapRule("T806", WARNING, "the Content-Type is {what}; it should be {where}", _content_type),
    SiteRule("T807", ERROR, "{lister}{listed}{what}: {reason}", _failed),  # all but the reason may be empty
    SitemapRule("T808", WARNING, "the response took {seconds} seconds; crawlers may not wait that long", _slow),
    SiteRule("T809", WARNING, "{where} lists {text}, which redirects here; list this URL", _redirected),
)
