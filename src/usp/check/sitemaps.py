"""The rules on one sitemap as a whole: each is a small function that gives what it found, if anything.

They are about what all of its entries have in common, its size, and how its document came.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from usp.check.entries import Finding
from usp.objects.problem import printable, shortened
from usp.objects.sitemap import (
    AbstractSitemap,
    IndexRobotsTxtSitemap,
    IndexXMLSitemap,
    PagesTextSitemap,
    PagesXMLSitemap,
)
from usp.scan.columns import microseconds
from usp.scan.survey import Facts

__all__ = ["CLOCK_SKEW", "SITEMAP_RULES", "CheckedDocument"]

MAX_ENTRIES = 50_000
MAX_BYTES = 50 * 1024 * 1024
MAX_STORIES = 1_000
MAX_SECONDS = 10.0
#: How far apart clocks may be.
CLOCK_SKEW = timedelta(minutes=5)
_ENOUGH = 10  # entries, for what they have in common to be no chance
_NEARLY_ALL = 0.9  # of the entries
_MICROSECOND = timedelta(microseconds=1)
_MAKING = timedelta(hours=1)  # how long making a sitemap may take, and serving it again as it is
_SITEMAPS = (IndexXMLSitemap, PagesXMLSitemap, PagesTextSitemap)
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


@dataclass(frozen=True, slots=True)
class CheckedDocument:
    """A sitemap that was read: what its entries have in common, its bytes, inflated, and what was noted of it."""

    sitemap: AbstractSitemap
    facts: Facts
    size: int = 0
    noted: Counter[str] = field(default_factory=Counter)


Rule = Callable[[CheckedDocument], Finding | None]


def many_entries(document: CheckedDocument) -> Finding | None:
    """P415: a sitemap has 50,000 entries at most."""
    count = document.facts.entries
    return Finding(None, values={"total": f"{count:,}"}) if count > MAX_ENTRIES else None


def many_bytes(document: CheckedDocument) -> Finding | None:
    """P416: a sitemap has 50 MB at most, inflated."""
    is_so = document.size > MAX_BYTES and not isinstance(document.sitemap, IndexRobotsTxtSitemap)
    return Finding(None, values={"total": f"{document.size:,}"}) if is_so else None


def nothing_listed(document: CheckedDocument) -> Finding | None:
    """P421: a sitemap lists something; a feed may not. Where entries were left out, that is said already."""
    if document.facts.entries or not isinstance(document.sitemap, _SITEMAPS):
        return None
    is_explained = any(code[0] in "XPU" for code in document.noted)
    return None if is_explained or document.sitemap.sub_sitemaps else Finding(None)


def same_priority(document: CheckedDocument) -> Finding | None:
    """P420: priorities differ."""
    facts = document.facts
    if not _is_common(facts.prioritised, facts) or facts.lowest != facts.highest:
        return None
    return Finding(None, f"{facts.lowest:.4}", values=_counts(facts.prioritised, facts))


def same_date(document: CheckedDocument) -> Finding | None:
    """L301: pages do not all change at the same moment."""
    facts = document.facts
    if not _is_common(facts.dated, facts) or facts.earliest != facts.latest or _is_build_date(document):
        return None
    return Finding(None, values=_counts(facts.dated, facts))


def build_date(document: CheckedDocument) -> Finding | None:
    """L304: pages do not all change when the sitemap is made."""
    facts = document.facts
    return Finding(None, values=_counts(facts.dated, facts)) if _is_build_date(document) else None


def _is_build_date(document: CheckedDocument) -> bool:
    """Whether all dates are of the hour before the sitemap was made, or just the day of it."""
    facts, transport = document.facts, document.sitemap.transport
    if not _is_common(facts.dated, facts) or transport is None:
        return False
    for made in filter(None, (transport.fetched_at, transport.last_modified)):
        day = datetime(made.year, made.month, made.day, tzinfo=UTC)
        if facts.earliest == facts.latest == microseconds(day):
            return True
        moment = microseconds(made)  # years may be the first or the last that there are
        if moment - _MAKING // _MICROSECOND <= facts.earliest and facts.latest <= moment + CLOCK_SKEW // _MICROSECOND:
            return True
    return False


def _is_common(count: int, facts: Facts) -> bool:
    """Whether enough entries state a value to be judged together. News is new, and made as it is published."""
    is_news = facts.stories > facts.entries / 2
    return count >= _ENOUGH and count >= _NEARLY_ALL * facts.entries and not is_news


def _counts(count: int, facts: Facts) -> dict[str, object]:
    return {"count": f"{count:,}", "total": f"{facts.entries:,}"}


def many_stories(document: CheckedDocument) -> Finding | None:
    """N602: a news sitemap has 1,000 stories at most."""
    count = document.facts.stories
    return Finding(None, values={"total": f"{count:,}"}) if count > MAX_STORIES else None


def content_type(document: CheckedDocument) -> Finding | None:
    """T806: the content type says what the document is. A file has none."""
    transport = document.sitemap.transport
    if transport is None or transport.status is None:
        return None
    stated = (transport.content_type or "").partition(";")[0].strip().lower()
    is_text = isinstance(document.sitemap, (IndexRobotsTxtSitemap, PagesTextSitemap))
    if stated == "text/plain" if is_text else stated in _XML_TYPES or stated.endswith("+xml"):
        return None
    is_packed = transport.url.partition("?")[0].lower().endswith(".gz")
    if is_packed and stated in _GZIP_TYPES:
        return None
    should_be = "text/plain" if is_text else "application/xml"
    what = f'"{printable(shortened(transport.content_type or ""))}"' if stated else "missing"
    return Finding(
        None,
        transport.content_type or "",
        f"application/gzip or {should_be}" if is_packed else should_be,
        {"what": what},
    )


def slow_answer(document: CheckedDocument) -> Finding | None:
    """T808: an answer takes ten seconds at most."""
    seconds = document.sitemap.transport.seconds if document.sitemap.transport is not None else None
    if seconds is None or seconds <= MAX_SECONDS:
        return None
    return Finding(None, values={"seconds": f"{seconds:.1f}"})


#: Code -> the rule that finds it.
SITEMAP_RULES: dict[str, Rule] = {
    "P415": many_entries,
    "P416": many_bytes,
    "P420": same_priority,
    "P421": nothing_listed,
    "L301": same_date,
    "L304": build_date,
    "N602": many_stories,
    "T806": content_type,
    "T808": slow_answer,
}
