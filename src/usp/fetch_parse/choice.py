"""`SitemapChoice`: which of the sitemaps that a document lists are fetched."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from usp.exceptions import InvalidArgumentError
from usp.fetch_parse.parsed import ChildSitemap
from usp.objects.dates import aware

__all__ = ["ChooseCallbackType", "Patterns", "SitemapChoice"]

#: Takes all children of a sitemap with their dates, its level, and the URLs above the children. Returns those to fetch.
ChooseCallbackType = Callable[[list[ChildSitemap], int, set[str]], Iterable[ChildSitemap]]

#: One regular expression, or several.
Patterns = str | re.Pattern[str] | Iterable[str | re.Pattern[str]]

_SLACK = timedelta(days=1)  # dates of sitemaps may lack a time and a time zone


@dataclass(frozen=True, slots=True)
class SitemapChoice:
    """Rules that choose sitemaps before they are fetched, by what is declared of them.

    - `exclude` leaves out every sitemap whose URL matches, and so everything below it.
    - `include` keeps a sitemap whose URL matches, and everything below it. A sitemap that robots.txt names, or at a
      known path, is fetched anyway: it may be the index of those that match. If it is not an index, it is dropped.
    - `modified_since` leaves out sitemaps that their index says are older, by more than a day.
    """

    include: tuple[re.Pattern[str], ...] = ()
    exclude: tuple[re.Pattern[str], ...] = ()
    modified_since: datetime | None = None
    callback: ChooseCallbackType | None = None

    @classmethod
    def of(
        cls,
        include: Patterns | None,
        exclude: Patterns | None,
        modified_since: date | None,
        callback: ChooseCallbackType | None,
    ) -> SitemapChoice:
        """Return the choice that options describe.

        :raises InvalidArgumentError: if one of them is wrong.
        """
        if modified_since is not None and not isinstance(modified_since, date):
            raise InvalidArgumentError(
                f"modified_since must be a datetime, like datetime(2025, 1, 31, tzinfo=UTC), not {modified_since!r}"
            )
        if callback is not None and not callable(callback):
            raise InvalidArgumentError(f"choose_callback must be a function, not {callback!r:.200}")
        since = None if modified_since is None else aware(modified_since)
        return cls(_patterns("include", include), _patterns("exclude", exclude), since, callback)

    def __bool__(self) -> bool:
        """Return whether it may leave out sitemaps."""
        return bool(self.exclude) or self.depends_on_documents

    @property
    def depends_on_documents(self) -> bool:
        """Whether it matters what lists a sitemap, so that known paths wait until all indexes are read."""
        return bool(self.include) or self.modified_since is not None or self.callback is not None

    def excludes(self, url: str) -> bool:
        """Return whether a sitemap is left out because of its URL."""
        return any(pattern.search(url) for pattern in self.exclude)

    def includes(self, url: str, parent_urls: Iterable[str]) -> bool:
        """Return whether the URL of a sitemap, or that of an index above it, is one to include."""
        return not self.include or any(pattern.search(one) for one in (url, *parent_urls) for pattern in self.include)

    def children(
        self, declared: list[ChildSitemap], level: int, parent_urls: set[str], *, is_robots: bool
    ) -> list[ChildSitemap]:
        """Return the sitemaps to fetch among those that a document lists."""
        chosen = [
            child
            for child in declared
            if not self.excludes(child.url)
            and (is_robots or self.includes(child.url, parent_urls))
            and not self._is_old(child)
        ]
        if chosen and self.callback is not None:
            wanted = self.callback(list(chosen), level, set(parent_urls))
            chosen = list(wanted) if isinstance(wanted, Iterable) else [wanted]
            if not all(isinstance(child, ChildSitemap) for child in chosen):
                raise InvalidArgumentError(
                    f"choose_callback must return a list of the children to fetch, not {wanted!r:.200}"
                )
        return list(dict.fromkeys(chosen))

    def _is_old(self, child: ChildSitemap) -> bool:
        if self.modified_since is None or child.last_modified is None:
            return False
        return aware(child.last_modified) < self.modified_since - _SLACK


def _patterns(name: str, patterns: Patterns | None) -> tuple[re.Pattern[str], ...]:
    if patterns is None:
        return ()
    listed: list[Any] = [patterns]
    if isinstance(patterns, Iterable) and not isinstance(patterns, (str, bytes)):
        listed = list(patterns)
    for pattern in listed:
        if not isinstance(pattern.pattern if isinstance(pattern, re.Pattern) else pattern, str):
            raise InvalidArgumentError(f"{name} must be regular expressions, like 'news', not {pattern!r:.200}")
    try:
        return tuple(re.compile(pattern) for pattern in listed)
    except (re.error, OverflowError, RecursionError) as error:
        shown = ", ".join(map(repr, listed))
        raise InvalidArgumentError(
            f"{name} must be regular expressions, like 'news'; {shown:.200} is not: {error}"
        ) from None
