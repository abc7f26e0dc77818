"""I: images.

https://developers.google.com/search/docs/crawling-indexing/sitemaps/image-sitemaps
"""

from __future__ import annotations

from usp.check.rules.rule import PAGES, SURVEYED_BY_CODE, WARNING, EntryRule, Finding
from usp.check.subjects import Entry
from usp.scan import (
    MAX_IMAGES,
)

__all__ = ["RULES"]


def _too_many(entry: Entry) -> Finding | None:
    count = len(entry.images)
    return Finding(entry.element.at, values={"total": f"{count:,}"}) if count > MAX_IMAGES else None


RULES = (
    EntryRule("I611", WARNING, "{total} images; a page may have at most 1,000", _too_many, PAGES, SURVEYED_BY_CODE),
)
