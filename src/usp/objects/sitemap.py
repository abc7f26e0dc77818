"""The sitemap tree.

    AbstractSitemap
    ├── InvalidSitemap            could not be fetched or parsed; `reason` says why
    ├── AbstractPagesSitemap      lists pages
    │   ├── PagesXMLSitemap           XML with the root <urlset>
    │   ├── PagesTextSitemap          plain text, a URL on each line
    │   ├── PagesRSSSitemap           RSS feed
    │   └── PagesAtomSitemap          Atom feed
    └── AbstractIndexSitemap      lists other sitemaps
        ├── IndexWebsiteSitemap       the root of the tree: a whole website
        ├── IndexXMLSitemap           XML with the root <sitemapindex>
        └── IndexRobotsTxtSitemap     robots.txt

Real documents mix pages and sitemaps, such as a `<sitemap>` in a urlset or a `<url>` in an index. So every sitemap may
have both pages and sub-sitemaps. Its class says what its document claims to be.

A sitemap that was read from a document keeps the document, not its pages. Pages are read again each time you iterate
over them. Problems are found when you first ask for them.

Two trees are equal if their classes, URLs, pages and sub-sitemaps are equal. Everything else is information *about* a
sitemap (`last_modified`, `problems`, `transport`) and is not compared. So a broken document that usp could repair
equals the correct one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Never, Unpack, cast

from usp.objects.outcome import Cause, Outcome, OutcomeKind, TreeFacts, cause_of_status, outcome_of
from usp.objects.page import Pages, SitemapPage
from usp.objects.parser import DocumentParser
from usp.objects.problem import Problem, Problems, printable, shortened
from usp.objects.transport import Transport
from usp.objects.wording import plural

if TYPE_CHECKING:
    import os

    import duckdb
    import pandas
    import polars
    import pyarrow

    from usp.export.frames import TableOptions

__all__ = [
    "AbstractIndexSitemap",
    "AbstractPagesSitemap",
    "AbstractSitemap",
    "IndexRobotsTxtSitemap",
    "IndexWebsiteSitemap",
    "IndexXMLSitemap",
    "InvalidSitemap",
    "PagesAtomSitemap",
    "PagesRSSSitemap",
    "PagesTextSitemap",
    "PagesXMLSitemap",
]

#: Problems, or a function that finds them when somebody asks.
FoundProblems = Iterable[Problem] | Callable[[], Iterable[Problem]]


def counted(problems: Iterable[Problem]) -> Problems:
    """Return problems with their counts. Without counts of their own, the problems are counted."""
    return problems if isinstance(problems, Problems) else Problems(problems)


def known_page_count(sitemap: AbstractSitemap) -> int | None:
    """Return the number of pages that a sitemap itself lists, or None if nobody has read all of them yet."""
    pages = sitemap.pages
    return pages.known_length if isinstance(pages, Pages) else len(pages)


def fetch_failure(url: str, message: str) -> str:
    """Return the reason of a sitemap that could not be fetched."""
    return f"Unable to fetch sitemap from {shortened(url)}: {message}"


def not_supported(url: str, why: str) -> str:
    """Return the reason of a document that is no sitemap."""
    return f"No parsers support sitemap from {shortened(url)}: {why}"


class AbstractSitemap:
    """A sitemap of the tree: the base of all sitemap classes.

    You get sitemaps from `sitemap_tree_for_homepage` and its like. In tests, you can make one by hand from its
    subclasses.
    """

    __slots__ = (
        "_facts",
        "_last_modified",
        "_outcome",
        "_pages",
        "_problems",
        "_sub_sitemaps",
        "_transport",
        "_url",
        "parser",
    )

    def __init__(
        self,
        url: str,
        *,
        pages: Iterable[SitemapPage] = (),
        sub_sitemaps: Iterable[AbstractSitemap] = (),
        last_modified: datetime | None = None,
        problems: FoundProblems = (),
        transport: Transport | None = None,
    ) -> None:
        if type(self) is AbstractSitemap:
            raise TypeError("AbstractSitemap is abstract; use one of its subclasses")
        self._url = url
        # A list is not copied: two places in the tree that declare the same document share its pages.
        self._pages = pages if isinstance(pages, (list, Pages)) else list(pages)
        self._sub_sitemaps = list(sub_sitemaps)
        self._last_modified = last_modified
        # Most sitemaps have none, and nobody asks: they are counted when somebody does.
        self._problems = problems if callable(problems) else tuple(problems)
        self._transport = transport
        #: Reads the document again, for checks; None if the sitemap was made by hand or unpickled.
        self.parser: DocumentParser | None = None
        self._facts: TreeFacts | None = None
        self._outcome: Outcome | None = None

    @property
    def url(self) -> str:
        """The URL of the sitemap, after redirects."""
        return self._url

    @property
    def pages(self) -> Sequence[SitemapPage]:
        """The pages that this sitemap itself lists, in its order.

        Each access returns a new sequence, which reads the document again each time you iterate over it. Use
        `list(sitemap.pages)` to keep the pages. `all_pages()` includes those of the sitemaps below.
        """
        return self._pages.anew() if isinstance(self._pages, Pages) else self._pages

    @property
    def sub_sitemaps(self) -> list[AbstractSitemap]:
        """The sitemaps that this sitemap itself lists, in its order. `all_sitemaps()` includes those below them."""
        return self._sub_sitemaps

    @property
    def last_modified(self) -> datetime | None:
        """The `<lastmod>` that the index above gives for this sitemap, or None."""
        return self._last_modified

    @property
    def problems(self) -> Problems:
        """The problems of the document of this sitemap, in the order of the document.

        Only the first 20 of each code are kept; `problem_counts` counts all. The first access may read the document.
        """
        if not isinstance(self._problems, Problems):
            self._problems = counted(self._problems() if callable(self._problems) else self._problems)
        return self._problems

    @property
    def problem_counts(self) -> Counter[str]:
        """The number of problems of each code, including those that `problems` does not keep."""
        return Counter(self.problems.counts)

    @property
    def transport(self) -> Transport | None:
        """How the document was fetched, or how the last attempt failed.

        It is None if nothing was requested, as for the root of a tree.
        """
        reason = "" if self.parser is None else self.parser.cut_reason
        if reason and self._transport is not None:
            return replace(self._transport, is_whole=False, is_limited=True, cut_reason=reason)
        return self._transport

    @property
    def outcome(self) -> Outcome:
        """How the run ended that fetched this tree: complete, partial, blocked, unreachable or empty, and why.

        Ask the root of the tree. The outcome of a sitemap further down is about the part of the tree there.
        No document is read, unless all that could be fetched are indexes.
        """
        if self._facts is None:  # made by hand, or further down: the tree may still change
            return outcome_of(self, TreeFacts())
        if self._outcome is None:
            self._outcome = outcome_of(self, self._facts)
        return self._outcome

    @property
    def facts(self) -> TreeFacts:
        """What the walk knows beyond the tree, for `outcome`. Only the top of a tree has any."""
        return TreeFacts() if self._facts is None else self._facts

    @facts.setter
    def facts(self, facts: TreeFacts) -> None:
        self._facts, self._outcome = facts, None

    def all_pages(self) -> Iterator[SitemapPage]:
        """Yield every page of this sitemap and of all sitemaps below it, in tree order."""
        yield from self.pages
        for sitemap in self.all_sitemaps():
            yield from sitemap.pages

    def all_sitemaps(self) -> Iterator[AbstractSitemap]:
        """Yield every sitemap below this one in tree order: each before its own sub-sitemaps."""
        for sitemap in self.sub_sitemaps:
            yield sitemap
            yield from sitemap.all_sitemaps()

    def all_problems(self) -> Iterator[Problem]:
        """Yield the problems of this sitemap and of all sitemaps below it."""
        yield from self.problems
        for sitemap in self.all_sitemaps():
            yield from sitemap.problems

    def to_dict(self, with_pages: bool = True) -> dict[str, Any]:
        """Return the sitemap and all sitemaps below it as a dictionary.

        :param with_pages: include the pages.
        """
        as_dict: dict[str, Any] = {"url": self.url}
        if with_pages and self.pages:
            as_dict["pages"] = [page.to_dict() for page in self.pages]
        if self.sub_sitemaps:
            as_dict["sub_sitemaps"] = [sitemap.to_dict(with_pages=with_pages) for sitemap in self.sub_sitemaps]
        return as_dict

    def to_arrow(self, table: str = "pages", **options: Unpack[TableOptions]) -> pyarrow.Table:
        """Return the pages of this sitemap and of all sitemaps below it as a pyarrow table. Needs the extra `arrow`.

        :param table: "pages"; "sitemaps" for a table of the sitemaps themselves; "images", "videos" or "alternates" for
            a row for each of these.
        :param columns: the columns to return, in this order, such as "url,news.title". None means all.
        :param where: a condition in SQL that rows must meet, such as "last_modified >= '2025-01-01'". Needs the extra
            `sql`.
        :param since: return only pages modified since then: "2025-01-01", "7d" for seven days ago, or a date.
        :param until: return only pages modified until then, in the same forms. A date includes the whole day.
        :param dedupe: skip pages that an earlier sitemap lists.
        :raises MissingExtraError: if a package is not installed. The message says how to install it.
        """
        from usp.export.frames import to_arrow

        return to_arrow(self, table, **options)

    def to_pandas(self, table: str = "pages", **options: Unpack[TableOptions]) -> pandas.DataFrame:
        """Return the same table as a pandas data frame. Needs the extra `pandas`. See `to_arrow` for the parameters."""
        from usp.export.frames import to_pandas

        return to_pandas(self, table, **options)

    def to_polars(self, table: str = "pages", **options: Unpack[TableOptions]) -> polars.DataFrame:
        """Return the same table as a polars data frame. Needs the extra `polars`. See `to_arrow` for the parameters."""
        from usp.export.frames import to_polars

        return to_polars(self, table, **options)

    def to_duckdb(self, database: str | os.PathLike[str] = ":memory:", **unknown: Never) -> duckdb.DuckDBPyConnection:
        """Return a DuckDB connection with the tables `pages` and `sitemaps`, times in UTC. Needs the extra `sql`.

        :param database: the database file to write the tables to. By default they stay in memory.
        """
        from usp.export.frames import to_duckdb

        return to_duckdb(self, database, **unknown)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Stream the pages to any library that reads Arrow, from the documents, a few sitemaps at a time."""
        from usp.export.frames import TreeTable

        return TreeTable(self).__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        from usp.export.frames import TreeTable

        return TreeTable(self).__arrow_c_schema__()

    def _summary(self) -> str:
        """Return what `repr()` shows beside the URL: counts, and the outcome unless it is complete.

        It reads no document. Pages that nobody has counted yet stay uncounted.
        """
        below = list(self.all_sitemaps())
        parts = [plural(len(below), "sitemap")] if below or isinstance(self, AbstractIndexSitemap) else []
        if below and all(isinstance(sitemap, InvalidSitemap) for sitemap in below):
            parts.append("none read")
        elif below or not parts:
            counts = [known_page_count(sitemap) for sitemap in (self, *below)]
            known = [count for count in counts if count is not None]
            parts.append(plural(sum(known), "page") if len(known) == len(counts) else "pages not counted")
        kind = self.outcome.kind
        return ", ".join(parts if kind is OutcomeKind.COMPLETE else [*parts, kind])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AbstractSitemap):
            return NotImplemented
        return (
            type(self) is type(other)
            and self.url == other.url
            and self.pages == other.pages
            and self.sub_sitemaps == other.sub_sitemaps
        )

    def __hash__(self) -> int:
        return hash((type(self), self.url))

    def __getstate__(self) -> object:
        _ = self.problems  # find them now: the function that does cannot be pickled
        own, slots = cast("tuple[object, dict[str, object]]", super().__getstate__())
        return own, slots | {"parser": None, "_transport": self.transport}  # a parser cannot be pickled either

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {printable(shortened(self.url))}: {self._summary()}>"

    def _repr_html_(self) -> str:
        """Return what notebooks show: counts, a histogram of dates, and a table of sitemaps or of the first pages."""
        from usp.notebook import sitemap_html  # most programs do not need it

        return sitemap_html(self)


_NO_PAGES: list[SitemapPage] = []
_NO_SITEMAPS: list[AbstractSitemap] = []


class InvalidSitemap(AbstractSitemap):
    """A sitemap that could not be fetched or parsed. `reason` says why.

    It stands in the tree where the sitemap was declared. It has no pages and no sub-sitemaps.
    """

    __slots__ = ("_cause", "_reason")

    def __init__(
        self,
        url: str,
        reason: str,
        *,
        cause: Cause | None = None,
        last_modified: datetime | None = None,
        problems: FoundProblems = (),
        transport: Transport | None = None,
    ) -> None:
        super().__init__(url, last_modified=last_modified, problems=problems, transport=transport)
        # A tree may have 100,000 of these: without lists of their own, the garbage collector takes half the time.
        self._pages, self._sub_sitemaps = _NO_PAGES, _NO_SITEMAPS
        self._reason = reason
        self._cause = cause

    @property
    def pages(self) -> Sequence[SitemapPage]:
        """An empty list."""
        return []

    @property
    def sub_sitemaps(self) -> list[AbstractSitemap]:
        """An empty list."""
        return []

    @property
    def reason(self) -> str:
        """Why the sitemap could not be fetched or parsed."""
        return self._reason

    @property
    def short_reason(self) -> str:
        """The reason without the URL, as lists of sitemaps show it."""
        for says in (fetch_failure, not_supported):
            if self._reason.startswith(prefix := says(self.url, "")):
                return self._reason.removeprefix(prefix)
        return self._reason

    @property
    def cause(self) -> Cause:
        """The kind of the reason, such as `Cause.NOT_FOUND`."""
        if self._cause is not None:
            return self._cause
        return Cause.UNREADABLE if self.transport is None else cause_of_status(self.transport.status)

    def to_dict(self, with_pages: bool = True) -> dict[str, Any]:
        """Return the URL and the reason as a dictionary."""
        return {"url": self.url, "reason": self.reason}

    def _summary(self) -> str:
        return printable(shortened(self.short_reason))

    def __eq__(self, other: object) -> bool:
        equal = super().__eq__(other)
        return equal and self.reason == other.reason if isinstance(other, InvalidSitemap) else equal

    __hash__ = AbstractSitemap.__hash__


class AbstractPagesSitemap(AbstractSitemap):
    """A sitemap whose document lists pages: the base of `PagesXMLSitemap` and the other formats."""

    __slots__ = ()

    def __init__(
        self,
        url: str,
        pages: Iterable[SitemapPage],
        *,
        sub_sitemaps: Iterable[AbstractSitemap] = (),
        last_modified: datetime | None = None,
        problems: FoundProblems = (),
        transport: Transport | None = None,
    ) -> None:
        super().__init__(
            url,
            pages=pages,
            sub_sitemaps=sub_sitemaps,
            last_modified=last_modified,
            problems=problems,
            transport=transport,
        )

    def to_dict(self, with_pages: bool = True) -> dict[str, Any]:
        """Return the sitemap as a dictionary, with a list of pages even if there are none."""
        empty: dict[str, Any] = {"url": self.url, "pages": []} if with_pages else {}
        return empty | super().to_dict(with_pages=with_pages)


class PagesXMLSitemap(AbstractPagesSitemap):
    """An XML sitemap with the root `<urlset>`, which lists pages."""

    __slots__ = ()


class PagesTextSitemap(AbstractPagesSitemap):
    """A plain text file that lists pages: a URL on each line."""

    __slots__ = ()


class PagesRSSSitemap(AbstractPagesSitemap):
    """An RSS feed, version 2.0, 0.9x or RDF 1.0. Each item is a page with a news story."""

    __slots__ = ()


class PagesAtomSitemap(AbstractPagesSitemap):
    """An Atom feed, version 1.0 or 0.3. Each entry is a page with a news story."""

    __slots__ = ()


class AbstractIndexSitemap(AbstractSitemap):
    """A sitemap whose document lists other sitemaps: the base of `IndexXMLSitemap` and the other kinds."""

    __slots__ = ()

    def __init__(
        self,
        url: str,
        sub_sitemaps: Iterable[AbstractSitemap],
        *,
        pages: Iterable[SitemapPage] = (),
        last_modified: datetime | None = None,
        problems: FoundProblems = (),
        transport: Transport | None = None,
    ) -> None:
        super().__init__(
            url,
            pages=pages,
            sub_sitemaps=sub_sitemaps,
            last_modified=last_modified,
            problems=problems,
            transport=transport,
        )

    def to_dict(self, with_pages: bool = True) -> dict[str, Any]:
        """Return the sitemap as a dictionary, with a list of sub-sitemaps even if there are none."""
        return {"url": self.url, "sub_sitemaps": []} | super().to_dict(with_pages=with_pages)


class IndexWebsiteSitemap(AbstractIndexSitemap):
    """The root of a tree: a website. Its sub-sitemaps are robots.txt and the sitemaps found at known paths."""

    __slots__ = ()


class IndexXMLSitemap(AbstractIndexSitemap):
    """An XML index with the root `<sitemapindex>`, which lists sitemaps."""

    __slots__ = ()


class IndexRobotsTxtSitemap(AbstractIndexSitemap):
    """A robots.txt. Its `Sitemap:` lines list sitemaps."""

    __slots__ = ()
