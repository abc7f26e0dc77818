"""What a rule is: one value that carries everything about itself.

    Rule          is reported by what reads a document, or by the check itself
    ├── EntryRule     looks at one entry of a sitemap
    ├── SitemapRule   looks at one sitemap as a whole
    ├── SiteRule      looks at one place of a sitemap in the tree of its site
    └── PageRule      looks at a page that a sitemap lists, and that was fetched (`--probe`)

The modules of this package have the rules, one module for each subject. To add a rule, add a value to `RULES` of its
module, write its page (`usp/check/pages/CODE.md`), and test it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from usp.objects.codes import Severity
from usp.objects.problem import At

if TYPE_CHECKING:
    from usp.check.probing.page import ProbedPage
    from usp.check.rules.page import RulePage
    from usp.check.subjects import Entry, SitemapCheck, TreePlace

__all__ = [
    "ALL_ENTRIES",
    "ERROR",
    "FEED_ITEMS",
    "INFO",
    "PAGES",
    "PAGES_AND_SITEMAPS",
    "SURVEYED_BY_CODE",
    "WARNING",
    "EntryRule",
    "Finding",
    "PageRule",
    "Rule",
    "SiteRule",
    "SitemapRule",
]

INFO, WARNING, ERROR = Severity

#: Kinds of entries, by the names of their elements.
PAGES = frozenset({"url"})
INDEX_ENTRIES = frozenset({"sitemap"})
FEED_ITEMS = frozenset({"item", "entry"})
PAGES_AND_SITEMAPS = PAGES | INDEX_ENTRIES
ALL_ENTRIES = PAGES_AND_SITEMAPS | FEED_ITEMS

#: The compiled form of a rule. The survey looks for its code: it stops at the entry, or counts it.
SURVEYED_BY_CODE = "code"


class Finding(NamedTuple):
    """What a rule found: where, the offending text, and more values for the message.

    If it `is_of_lister`, it is a problem of the sitemap or robots.txt that lists this one, where it does.
    """

    at: At
    text: str = ""
    where: str = ""
    values: dict[str, object] = {}  # noqa: RUF012 -- never changed
    is_of_lister: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule. Its message says what is wrong and what to do.

    In the message, `{text}` is the offending text and `{where}` the element that it is in.
    """

    code: str
    severity: Severity
    message: str

    looks_at: ClassVar[str] = "document"

    @property
    def page(self) -> RulePage:
        """The page of the rule, `usp/check/pages/CODE.md`."""
        from usp.check.rules.page import rule_page  # which imports the rules

        return rule_page(self.code)

    @property
    def title(self) -> str:
        """The title, in a few words. It is the heading of the page, so that there is one copy of it."""
        return self.page.title


@dataclass(frozen=True, slots=True)
class EntryRule(Rule):
    """A rule on one entry: `find` returns what is wrong with it, or None.

    `entries` are the kinds of entries that it applies to. `compiled` says how the survey knows the rule: it is
    `SURVEYED_BY_CODE`. If it is None, the check reads every entry in Python, which is slower.
    """

    find: Callable[[Entry], Finding | None]
    entries: frozenset[str] = ALL_ENTRIES
    compiled: str | None = None

    looks_at: ClassVar[str] = "entry"


@dataclass(frozen=True, slots=True)
class SitemapRule(Rule):
    """A rule on one sitemap, run after all of its entries were read."""

    find: Callable[[SitemapCheck], Finding | None]

    looks_at: ClassVar[str] = "sitemap"


@dataclass(frozen=True, slots=True)
class SiteRule(Rule):
    """A rule on one place of a sitemap in the tree, run when the tree is complete."""

    find: Callable[[TreePlace], Finding | None]

    looks_at: ClassVar[str] = "site"


@dataclass(frozen=True, slots=True)
class PageRule(Rule):
    """A rule on one page that a sitemap lists, run when the page was fetched."""

    find: Callable[[ProbedPage], Finding | None]

    looks_at: ClassVar[str] = "page"
