"""`ParsedSitemap`: what one document holds, wherever it stands in the tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice

from usp.objects.outcome import Cause
from usp.objects.page import PageCount, Pages, SitemapPage
from usp.objects.parser import DocumentParser
from usp.objects.problem import Problem, Problems
from usp.objects.sitemap import AbstractSitemap, InvalidSitemap, counted
from usp.objects.transport import Transport
from usp.scan.columns import first_rows

__all__ = ["UNFETCHED", "ChildSitemap", "ParsedSitemap"]

#: The reason of a child that usp was not asked to fetch.
UNFETCHED = "Un-fetched child sitemap"


@dataclass(frozen=True, slots=True)
class ChildSitemap:
    """A sitemap that a document declares."""

    url: str
    last_modified: datetime | None = None


@dataclass(frozen=True, slots=True)
class ParsedSitemap:
    """One parsed document: everything a node of the tree needs, except the nodes of its children.

    It does not depend on where the document was declared, so several places in the tree can share it.

    `children` are the sitemaps that the document lists, and `more_children` is the number of those that were only
    counted, because no tree may have as many. `pages` reads the document again each time you iterate over it.
    `problems` may be a function that finds them, where that takes as long as reading the pages. `reason` says why an
    invalid sitemap could not be fetched or parsed, `cause` is the kind of that reason, and `status` the HTTP status of
    the failed request, if any. `parser` reads the document again, for checks. `transport` says how the document was
    fetched. These two are not compared.
    """

    url: str
    sitemap_class: type[AbstractSitemap]
    pages: Pages | list[SitemapPage] = field(default_factory=list)
    children: list[ChildSitemap] = field(default_factory=list)
    more_children: int = field(default=0, kw_only=True)
    problems: tuple[Problem, ...] | Callable[[], tuple[Problem, ...]] = ()
    reason: str = ""
    status: int | None = None
    cause: Cause | None = None
    parser: DocumentParser | None = field(default=None, compare=False, repr=False)
    transport: Transport | None = field(default=None, compare=False)

    @classmethod
    def invalid(
        cls,
        url: str,
        reason: str,
        cause: Cause = Cause.UNREADABLE,
        *,
        problems: tuple[Problem, ...] = (),
        status: int | None = None,
        transport: Transport | None = None,
    ) -> ParsedSitemap:
        """Return the result for a sitemap that could not be fetched or parsed."""
        return cls(
            url, InvalidSitemap, problems=problems, reason=reason, status=status, cause=cause, transport=transport
        )

    def found_problems(self) -> Problems:
        """Return the problems; find them now, if nobody has asked yet."""
        return counted(self.problems() if callable(self.problems) else self.problems)

    def first(self, count: int, problems: Problems) -> ParsedSitemap:
        """Return a copy that has the first `count` pages only, and `problems`, which say why, before its own."""
        return replace(
            self,
            pages=self.pages[:count] if isinstance(self.pages, list) else _first_pages(self.pages, count),
            problems=lambda: problems.and_more(self.found_problems()),
        )

    def sitemap(
        self,
        sub_sitemaps: Sequence[AbstractSitemap],
        last_modified: datetime | None = None,
        declared_url: str | None = None,
    ) -> AbstractSitemap:
        """Return the node of the tree.

        `last_modified` and `declared_url` are what its parent in the tree says of this sitemap.
        """
        transport = self.transport
        if transport is not None and declared_url is not None:
            transport = transport.declared_as(declared_url)
        if self.sitemap_class is InvalidSitemap:
            sitemap: AbstractSitemap = InvalidSitemap(
                self.url,
                self.reason,
                cause=self.cause,
                last_modified=last_modified,
                problems=self.problems,
                transport=transport,
            )
        else:
            sitemap = self.sitemap_class(
                self.url,
                pages=self.pages,
                sub_sitemaps=sub_sitemaps,
                last_modified=last_modified,
                problems=self.problems,
                transport=transport,
            )
        sitemap.parser = self.parser
        return sitemap

    def unfetched_sitemap(
        self, last_modified: datetime | None = None, declared_url: str | None = None
    ) -> AbstractSitemap:
        """Return the node, with an `InvalidSitemap` in place of each child. Parameters are those of `sitemap`."""
        children = [
            InvalidSitemap(child.url, UNFETCHED, cause=Cause.LEFT_OUT, last_modified=child.last_modified)
            for child in self.children
        ]
        return self.sitemap(children, last_modified, declared_url)


def _first_pages(pages: Pages, count: int) -> Pages:
    read = pages.columns
    columns = None if read is None else lambda wanted: first_rows(read(wanted), count)
    first_count = PageCount()
    if pages.known_length is not None:
        first_count.value = min(count, pages.known_length)
    return Pages(lambda: islice(iter(pages), count), columns, first_count)
