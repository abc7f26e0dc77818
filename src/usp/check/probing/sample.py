"""Choose the pages to probe: spread evenly over sitemaps, and the same for the same seed.

Each sitemap gives as many pages as the others, as far as it has them. In a sitemap, the pages with the smallest hashes
of seed and URL are chosen, so the sample does not depend on the order of entries, and pages that are added elsewhere
change little.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from hashlib import blake2b
from heapq import heappush, heappushpop
from typing import NamedTuple

from usp.objects.problem import At, ProblemLog
from usp.objects.sitemap import AbstractSitemap
from usp.scan import SURVEYORS, Element, SurveyOff, SurveyOptions, parse_date, unescape

__all__ = ["ListedPage", "PageList", "quotas", "sampled"]

_NO_OPTIONS = SurveyOptions()


class ListedPage(NamedTuple):
    """A page as a sitemap lists it: the number of the sitemap, its URL, where that is written, and its `<lastmod>`."""

    sitemap: int
    url: str
    at: At
    last_modified: datetime | None


def quotas(sizes: Sequence[int], wanted: int) -> list[int]:
    """Return how many pages each sitemap gives: all the same, as far as they have them."""
    found = [0] * len(sizes)
    left = wanted
    order = sorted(range(len(sizes)), key=lambda number: (sizes[number], number))
    for position, number in enumerate(order):
        found[number] = min(sizes[number], left // (len(order) - position))
        left -= found[number]
    return found


class PageList:
    """The pages of one sitemap, as an inspector of its document."""

    def __init__(self, number: int, sitemap: AbstractSitemap) -> None:
        self.log = ProblemLog(sitemap.url)  # what is wrong with the document has been reported
        self.reader = SurveyOff(_NO_OPTIONS)  # stops at every entry
        self._number = number
        self._sitemap = sitemap
        self._pages: dict[str, ListedPage] = {}

    def pages(self) -> list[ListedPage]:
        """Read the sitemap. Return its pages, each once, in their order."""
        parser = self._sitemap.parser
        if parser is not None:
            parser.inspect(self.log, self)
        else:
            for page in self._sitemap.pages:
                self._pages.setdefault(page.url, ListedPage(self._number, page.url, None, page.last_modified))
        pages, self._pages = list(self._pages.values()), {}
        return pages

    def skips_line(self, url: str, /) -> bool:
        """Return False: every line is a page."""
        return False

    def entry(self, element: Element, url: str, /) -> None:
        """Take an entry."""
        if element.name == "sitemap" or url in self._pages:
            return
        written = element.get("lastmod")
        date = parse_date(unescape(written)) if written else None
        self._pages[url] = ListedPage(self._number, url, element.place_of("loc"), date)


def sampled(lists: Sequence[PageList], sizes: Sequence[int], wanted: int | None, seed: int) -> Iterator[ListedPage]:
    """Yield the pages of a sample in the order of the sitemaps, each URL once. Sitemaps are read when it is their turn.

    :param sizes: how many pages each sitemap has.
    :param wanted: how many pages to choose; None for all.
    """
    known = SURVEYORS.url_table()
    shares = list(sizes) if wanted is None else quotas(sizes, wanted)
    missing = 0  # pages that other sitemaps have given already: later ones give more instead
    for number, (listed, share) in enumerate(zip(lists, shares, strict=True)):
        room = min(sizes[number], share + missing)
        if not room:
            continue
        pages = [page for page in listed.pages() if known.find(page.url) < 0]
        chosen = pages if wanted is None else _smallest(pages, room, seed)
        missing = max(0, share + missing - len(chosen))
        for page in chosen:
            known.add(page.url, 0)
            yield page


def _smallest(pages: list[ListedPage], count: int, seed: int) -> list[ListedPage]:
    """Return the pages with the smallest hashes, in their order."""
    if len(pages) <= count:
        return pages
    key = seed.to_bytes(16, "big", signed=True) if -(1 << 127) <= seed < 1 << 127 else str(seed).encode()[:64]
    largest: list[tuple[int, int]] = []  # a heap, the largest hash first
    for position, page in enumerate(pages):
        digest = blake2b(page.url.encode("utf-8", "replace"), digest_size=8, key=key).digest()
        item = -int.from_bytes(digest, "big"), position
        if len(largest) < count:
            heappush(largest, item)
        else:
            heappushpop(largest, item)
    return [pages[position] for position in sorted(position for _, position in largest)]
