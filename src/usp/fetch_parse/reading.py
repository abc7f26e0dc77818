"""What one document was found to hold, wherever it stands in the tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice

from usp.objects.page import SitemapPage
from usp.objects.pages import Pages
from usp.objects.problem import Problem
from usp.objects.sitemap import AbstractSitemap, InvalidSitemap

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
    `status` is the HTTP status of a failure.
    """

    url: str
    sitemap_class: type[AbstractSitemap]
    pages: Pages | list[SitemapPage] = field(default_factory=list)
    children: list[ChildSitemap] = field(default_factory=list)
    problems: tuple[Problem, ...] | Callable[[], tuple[Problem, ...]] = ()
    reason: str = ""
    status: int | None = None

    @classmethod
    def invalid(
        cls, url: str, reason: str, *, problems: tuple[Problem, ...] = (), status: int | None = None
    ) -> Reading:
        """The reading of what could not be had."""
        return cls(url, InvalidSitemap, problems=problems, reason=reason, status=status)

    def found_problems(self) -> tuple[Problem, ...]:
        """The problems, found out now if they were not yet."""
        return self.problems() if callable(self.problems) else self.problems

    def first(self, count: int, problems: tuple[Problem, ...]) -> Reading:
        """The reading with its first pages only, and problems that say why."""
        pages = self.pages
        return replace(
            self,
            pages=pages[:count] if isinstance(pages, list) else Pages(lambda: islice(iter(pages), count)),
            problems=lambda: (*problems, *self.found_problems()),
        )

    def sitemap(
        self, sub_sitemaps: Sequence[AbstractSitemap], last_modified: datetime | None = None
    ) -> AbstractSitemap:
        """The node, once its children are in."""
        if self.sitemap_class is InvalidSitemap:
            return InvalidSitemap(self.url, self.reason, last_modified=last_modified, problems=self.problems)
        return self.sitemap_class(
            self.url,
            pages=self.pages,
            sub_sitemaps=sub_sitemaps,
            last_modified=last_modified,
            problems=self.problems,
        )

    def unfetched_sitemap(self) -> AbstractSitemap:
        """The node with its children left unfetched."""
        return self.sitemap(
            [InvalidSitemap(child.url, UNFETCHED, last_modified=child.last_modified) for child in self.children]
        )
