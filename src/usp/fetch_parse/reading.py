"""What one document was found to hold, wherever it stands in the tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice

from usp.objects.page import SitemapPage
from usp.objects.pages import Pages
from usp.objects.parser import DocumentParser
from usp.objects.problem import Problem, Problems
from usp.objects.sitemap import AbstractSitemap, InvalidSitemap, counted
from usp.objects.transport import Transport
from usp.scan.columns import first_rows

__all__ = ["UNFETCHED", "ChildSitemap", "Reading"]

#: The reason of a child that was never to be fetched.
UNFETCHED = "Un-fetched child sitemap"


@dataclass(frozen=True, slots=True)
class ChildSitemap:
    """A sitemap that a document declares."""

    url: str
    last_modified: datetime | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """All that a node of the tree is made of, but for its children's nodes.

    It does not depend on the place where the document was declared, so places that declare the same one share it.
    Pages, and problems where that takes as long as reading the pages, are found out when they are asked for.
    `status` is the HTTP status of a failure. `parser` is what reads the document, for those who check it; `transport`
    says how it came. Both are knowledge about it, and no part of what it holds.
    """

    url: str
    sitemap_class: type[AbstractSitemap]
    pages: Pages | list[SitemapPage] = field(default_factory=list)
    children: list[ChildSitemap] = field(default_factory=list)
    problems: tuple[Problem, ...] | Callable[[], tuple[Problem, ...]] = ()
    reason: str = ""
    status: int | None = None
    parser: DocumentParser | None = field(default=None, compare=False, repr=False)
    transport: Transport | None = field(default=None, compare=False)

    @classmethod
    def invalid(
        cls,
        url: str,
        reason: str,
        *,
        problems: tuple[Problem, ...] = (),
        status: int | None = None,
        transport: Transport | None = None,
    ) -> Reading:
        """The reading of what could not be had."""
        return cls(url, InvalidSitemap, problems=problems, reason=reason, status=status, transport=transport)

    def found_problems(self) -> Problems:
        """The problems, found out now if they were not yet."""
        return counted(self.problems() if callable(self.problems) else self.problems)

    def first(self, count: int, problems: Problems) -> Reading:
        """The reading with its first pages only, and problems that say why."""
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
        """The node, once its children are in; `declared_url` is what its place in the tree declared."""
        transport = self.transport
        if transport is not None and declared_url is not None:
            transport = transport.declared_as(declared_url)
        if self.sitemap_class is InvalidSitemap:
            sitemap: AbstractSitemap = InvalidSitemap(
                self.url, self.reason, last_modified=last_modified, problems=self.problems, transport=transport
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

    def unfetched_sitemap(self) -> AbstractSitemap:
        """The node with its children left unfetched."""
        return self.sitemap(
            [InvalidSitemap(child.url, UNFETCHED, last_modified=child.last_modified) for child in self.children]
        )


def _first_pages(pages: Pages, count: int) -> Pages:
    read = pages.columns
    columns = None if read is None else lambda wanted: first_rows(read(wanted), count)
    return Pages(lambda: islice(iter(pages), count), columns)
