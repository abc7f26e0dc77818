"""The pages of sitemaps as `usp ls` needs them: blocks of URLs, without an object for each page.

The dates of --since are those of `usp export --since`: when a page was modified or, if that is unknown, published. A
page without a date is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from usp.export.batches import Batch, page_columns, pages_of
from usp.export.formats.cells import pieces, texts_of
from usp.export.schema import PAGES
from usp.export.selection import select
from usp.objects.sitemap import AbstractSitemap
from usp.objects.wording import printable

if TYPE_CHECKING:
    from usp.scan import Type

__all__ = ["ChosenPages", "PageBlock", "Preview", "shown_url", "shown_urls"]

#: The columns of a page in JSON: what the sitemap says about it.
_COLUMNS = ("url", "last_modified", "change_frequency", "priority", "news", "images", "videos", "alternates")


class PageBlock(NamedTuple):
    """The URLs of pages that follow each other, and how many pages they were chosen from."""

    pages: int
    urls: list[str]


class Preview(NamedTuple):
    """The number of pages of a sitemap, how many of them are chosen, and the URLs of the first of these."""

    pages: int
    chosen: int
    urls: list[str]


class ChosenPages:
    """Reads the pages that --since chooses, or all.

    :param since: as the user wrote it, or None.
    :raises InvalidArgumentError: if it is no date.
    """

    def __init__(self, since: str | None = None) -> None:
        self.is_all = since is None
        self._urls = select(PAGES, ("url",), since=since)
        self._rows = select(PAGES, _COLUMNS, since=since)

    @property
    def columns(self) -> Mapping[str, Type]:
        """The columns that `rows` reads, with their types."""
        return self._rows.chosen

    def blocks(self, sitemap: AbstractSitemap, *, skip: int = 0, most: int | None = None) -> Iterator[PageBlock]:
        """Give the URLs of the chosen pages, thousands at a time.

        :param skip: the number of pages at the start that are not wanted.
        :param most: the number of pages to read, with those skipped. None reads all.
        """
        for columns in page_columns(pages_of(sitemap), self._urls.needed):
            end = columns.length if most is None else min(columns.length, most)
            start = min(skip, end)
            if start < end:
                yield PageBlock(end - start, _urls(_between(self._urls.batch(columns), start, end)))
            skip -= start
            if most is not None:
                most -= end
                if not most:
                    return

    def rows(self, sitemap: AbstractSitemap) -> Iterator[Batch]:
        """Give the chosen pages with all that their sitemap says about them, thousands at a time."""
        for columns in page_columns(pages_of(sitemap), self._rows.needed):
            yield self._rows.batch(columns)

    def preview(self, sitemap: AbstractSitemap, most: int) -> Preview:
        """Return the first of the chosen pages, and count all."""
        if self.is_all:
            return Preview(count := len(sitemap.pages), count, [page.url for page in islice(sitemap.pages, most)])
        pages = chosen = 0
        first: list[str] = []
        for block in self.blocks(sitemap):
            pages += block.pages
            chosen += len(block.urls)
            first += block.urls[: most - len(first)]
        return Preview(pages, chosen, first)


def _between(batch: Batch, start: int, end: int) -> Batch:
    """Return the same rows, with those before `start` and from `end` on dropped."""
    length = batch.columns.length
    if not start and end >= length:
        return batch
    kept = b"\1" * length if batch.kept is None else batch.kept
    return Batch(batch.columns, bytes(start) + kept[start:end] + bytes(length - end))


def _urls(batch: Batch) -> list[str]:
    if batch.kept is None:
        return texts_of(batch.columns.columns["url"]) if batch.columns.length else []
    found = pieces(batch, PAGES, {"url": PAGES["url"]})
    return [url for piece in found for url in texts_of(piece.columns["url"])]


def shown_url(url: str, prefix: str = "") -> str:
    """Return a URL without the prefix, escaped for a terminal."""
    rest = url.removeprefix(prefix)
    # Another host may begin with the site's own: https://example.org.uk/
    return printable(rest if not rest or rest[0] in "/?#" else url)


def shown_urls(urls: list[str], prefix: str = "") -> list[str]:
    """Return URLs without the prefix, escaped for a terminal."""
    if not prefix and "".join(urls).isprintable():
        return urls
    return [shown_url(url, prefix) for url in urls]
