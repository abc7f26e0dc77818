"""P: the sitemaps.org protocol, its extensions, feeds and text sitemaps."""

from __future__ import annotations

from itertools import pairwise

from usp.check.rules.dates import is_shared_by_most
from usp.check.rules.rule import (
    ALL_ENTRIES,
    ERROR,
    INFO,
    PAGES,
    PAGES_AND_SITEMAPS,
    SURVEYED_BY_CODE,
    WARNING,
    EntryRule,
    Finding,
    Rule,
    SitemapRule,
    SiteRule,
)
from usp.check.subjects import Entry, SitemapCheck, TreePlace
from usp.objects.problem import shortened
from usp.objects.sitemap import IndexRobotsTxtSitemap, IndexXMLSitemap, PagesTextSitemap, PagesXMLSitemap
from usp.origins import requested_url
from usp.scan import (
    OPTIONAL_FIELDS,
    is_lower_frequency,
    is_out_of_order,
    parse_change_frequency,
)

__all__ = ["RULES"]

MAX_ENTRIES = 50_000
MAX_BYTES = 50 * 1024 * 1024
_SITEMAPS = (IndexXMLSitemap, PagesXMLSitemap, PagesTextSitemap)


def _too_many_entries(sitemap: SitemapCheck) -> Finding | None:
    count = sitemap.stats.entries
    return Finding(None, values={"total": f"{count:,}"}) if count > MAX_ENTRIES else None


def _too_many_bytes(sitemap: SitemapCheck) -> Finding | None:
    if sitemap.size <= MAX_BYTES or isinstance(sitemap.sitemap, IndexRobotsTxtSitemap):
        return None
    return Finding(None, values={"total": f"{sitemap.size:,}"})


def _nested_index(place: TreePlace) -> Finding | None:
    parent = place.parent
    if not isinstance(place.sitemap, IndexXMLSitemap) or not isinstance(parent, IndexXMLSitemap):
        return None
    return Finding(None, where=parent.url)


def _loop(place: TreePlace) -> Finding | None:
    lister = place.lister
    if not place.is_loop or not isinstance(lister, IndexXMLSitemap):
        return None
    is_itself = requested_url(lister.url) == requested_url(place.sitemap.url)
    what = "itself" if is_itself else f"{shortened(place.name_of(place.sitemap.url))}, the index that leads to it"
    return Finding(None, place.declared_url, lister.url, {"what": what}, is_of_lister=True)


def _empty_field(entry: Entry) -> Finding | None:
    element = entry.element
    name = next((name for name, text in element.fields.items() if not text and name in OPTIONAL_FIELDS), None)
    return None if name is None else Finding(element.place_of(name), name)


def _out_of_order(entry: Entry) -> Finding | None:
    element = entry.element
    if element.name not in ("url", "sitemap") or not isinstance(element.at, int):
        return None
    places: list[tuple[int, str]] = [(at, name) for name, at in element.offsets.items()]
    places += [(child.at, child.name) for child in element.children if isinstance(child.at, int)]
    places.sort()
    if not is_out_of_order(name for _, name in places):
        return None
    return next(
        Finding(at, name, before) for (_, before), (at, name) in pairwise(places) if is_out_of_order((before, name))
    )


def _listed_twice(entry: Entry) -> Finding | None:
    return Finding(entry.at, entry.text) if entry.duplicate == "P418" else None


def _listed_elsewhere(entry: Entry) -> Finding | None:
    # Sitemaps of images and videos repeat the pages of others.
    if entry.duplicate != "P419" or entry.images or entry.videos:
        return None
    return Finding(entry.at, entry.text, entry.first_sitemap)


def _same_priority(sitemap: SitemapCheck) -> Finding | None:
    stats = sitemap.stats
    if not is_shared_by_most(stats.prioritised, sitemap) or stats.lowest != stats.highest:
        return None
    return Finding(None, f"{stats.lowest:.4}", values=sitemap.share(stats.prioritised))


def _empty(sitemap: SitemapCheck) -> Finding | None:
    # Feeds may be empty. If entries were skipped, another problem says so.
    if sitemap.stats.entries or not isinstance(sitemap.sitemap, _SITEMAPS) or sitemap.sitemap.sub_sitemaps:
        return None
    return None if any(code[0] in "XPU" for code in sitemap.counts) else Finding(None)


def _frequency_in_capitals(entry: Entry) -> Finding | None:
    text = entry.element.get("changefreq")
    if not text or is_lower_frequency(text) or parse_change_frequency(text) is None:
        return None
    return Finding(entry.element.place_of("changefreq"), text, text.lower())


RULES = (
    Rule("P401", ERROR, "<{where}> has no <loc>; the entry was skipped"),
    Rule("P402", ERROR, "a <sitemap> in a urlset; list it in a sitemapindex"),
    Rule("P403", ERROR, "a <url> in a sitemapindex; list it in a urlset"),
    Rule("P404", ERROR, "the URL stands in <{where}> itself; put it into a <loc>"),
    Rule("P405", ERROR, "a second <loc> in one <{where}>; read as an entry of its own"),
    Rule("P406", ERROR, 'priority "{text}" is not a number from 0.0 to 1.0; 0.5 is used'),
    Rule(
        "P407",
        ERROR,
        'change frequency "{text}" is not known; write always, hourly, daily, weekly, monthly, yearly or never',
    ),
    Rule("P408", ERROR, "a news story without {where}; it was skipped"),
    Rule("P409", ERROR, "an image without a <loc>; it was skipped"),
    Rule("P410", ERROR, 'the tag <{text}> is not in the right case; write "{where}"'),
    Rule("P411", WARNING, "a feed entry without a link; it was skipped"),
    Rule("P412", ERROR, 'a line that is not a URL: "{text}"'),
    Rule("P413", ERROR, "a <loc> outside any <{where}>; read as an entry of its own"),
    Rule("P414", ERROR, '"{text}" is not a valid value of {where}; it was skipped'),
    SitemapRule(
        "P415",
        ERROR,
        "{total} entries; a sitemap may have at most 50,000: split it, and list the parts in an index",
        _too_many_entries,
    ),
    SitemapRule(
        "P416",
        ERROR,
        "{total} bytes uncompressed; a sitemap may have at most 52,428,800 (50 MB): split it",
        _too_many_bytes,
    ),
    SiteRule(
        "P417", ERROR, "an index inside the index {where}; an index may list sitemaps of pages only", _nested_index
    ),
    EntryRule(
        "P418",
        WARNING,
        "listed already in this sitemap; list a page once",
        _listed_twice,
        ALL_ENTRIES,
        SURVEYED_BY_CODE,
    ),
    EntryRule(
        "P419",
        INFO,
        "listed already in {where}; list a page in one sitemap only",
        _listed_elsewhere,
        PAGES,
        SURVEYED_BY_CODE,
    ),
    SitemapRule(
        "P420",
        INFO,
        "{count} of {total} entries have the priority {text}; if all are equal it means nothing: leave it out",
        _same_priority,
    ),
    SitemapRule("P421", WARNING, "the sitemap lists nothing", _empty),
    Rule(
        "P422",
        ERROR,
        'the namespace is "{text}"; write xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" on the root',
    ),
    EntryRule(
        "P423",
        WARNING,
        'change frequency "{text}" is not in lower case; write "{where}"',
        _frequency_in_capitals,
        PAGES,
        SURVEYED_BY_CODE,
    ),
    Rule("P424", ERROR, "<{text}> stands at the top of the document; put all of it into a <{where}>"),
    Rule("P425", WARNING, 'the namespace of "{where}" is "{text}"; write "{uri}"'),
    Rule("P426", WARNING, "<{text}> is not in its own namespace; write <{where}>"),
    Rule("P429", WARNING, "<{text}> is no element of {where}; readers skip it, or refuse the sitemap{hint}"),
    Rule("P430", WARNING, "<{text}> in an entry of an index; only entries of a urlset have it: leave it out"),
    Rule("P431", WARNING, "a second <{text}> in one <{where}>; only the first that is not empty counts"),
    EntryRule(
        "P432",
        WARNING,
        "<{text}> is empty; leave it out, or write its value",
        _empty_field,
        PAGES_AND_SITEMAPS,
        SURVEYED_BY_CODE,
    ),
    EntryRule(
        "P433",
        INFO,
        "<{text}> stands behind <{where}>; the schema has loc, lastmod, changefreq, priority, then extensions",
        _out_of_order,
        PAGES_AND_SITEMAPS,
        SURVEYED_BY_CODE,
    ),
    SiteRule("P434", ERROR, "{where} lists {what}; an index may list only sitemaps of pages", _loop),
    Rule("P428", ERROR, "<{text}> has something in it that may not be there; usp ended <{text}> before it"),
    Rule("P427", WARNING, "more than a URL on a line; a text sitemap may have one URL on each line, and nothing else"),
)
