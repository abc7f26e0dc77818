"""`SitemapChoice`: which of the sitemaps that a document lists are fetched."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from usp.exceptions import InvalidArgumentError
from usp.fetch_parse.parsed import ChildSitemap

__all__ = ["ChooseCallbackType", "SitemapChoice"]

#: Takes all children of a sitemap with their dates, its level, and the URLs above the children. Returns those to fetch.
ChooseCallbackType = Callable[[list[ChildSitemap], int, set[str]], Iterable[ChildSitemap]]

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
        include: Iterable[str] | str | None,
        exclude: Iterable[str] | str | None,
        modified_since: datetime | None,
        callback: ChooseCallbackType | None,
    ) -> SitemapChoice:
        """Return the choice that options describe.

        :raises InvalidArgumentError: if one of them is wrong.
        """
        if modified_since is not None and not isinstance(modified_since, datetime):
            raise InvalidArgumentError(f"modified_since must be a datetime, not {modified_since!r}")
        if callback is not None and not callable(callback):
            raise InvalidArgumentError(f"choose_callback must be a function, not {callback!r}")
        since = None if modified_since is None else _aware(modified_since)
        return cls(_patterns("include", include), _patterns("exclude", exclude), since, callback)

    @property
    def depends_on_documents(self) -> bool:
        """Whether more than the URL of a sitemap decides, so that its index must be read before it is requested."""
        return self.modified_since is not None or self.callback is not None

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
            wanted = self.callback(chosen, level, set(parent_urls))
            chosen = list(dict.fromkeys(wanted)) if isinstance(wanted, Iterable) else []
            if not isinstance(wanted, Iterable) or not all(isinstance(child, ChildSitemap) for child in chosen):
                raise InvalidArgumentError(f"choose_callback must return some of the children, not {wanted!r:.200}")
        return chosen

    def _is_old(self, child: ChildSitemap) -> bool:
        if self.modified_since is None or child.last_modified is None:
            return False
        return _aware(child.last_modified) < self.modified_since - _SLACK


def _aware(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _patterns(name: str, patterns: Iterable[str] | str | None) -> tuple[re.Pattern[str], ...]:
    listed = [patterns] if isinstance(patterns, str) else list(patterns or ())
    try:
        return tuple(re.compile(pattern) for pattern in listed)
    except (re.error, TypeError) as error:
        raise InvalidArgumentError(
            f"{name} must be regular expressions, like 'news'; {listed!r:.200}: {error}"
        ) from None
