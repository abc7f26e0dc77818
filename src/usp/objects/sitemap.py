"""The sitemap tree: what users hold.

    AbstractSitemap
    ├── InvalidSitemap            could not be had; `reason` says why
    ├── AbstractPagesSitemap      lists pages
    │   ├── PagesXMLSitemap
    │   ├── PagesTextSitemap
    │   ├── PagesRSSSitemap
    │   └── PagesAtomSitemap
    └── AbstractIndexSitemap      lists other sitemaps
        ├── IndexWebsiteSitemap       the root: a whole website
        ├── IndexXMLSitemap
        └── IndexRobotsTxtSitemap

Real documents mix: a `<sitemap>` in a urlset, a `<url>` in an index. So every node may have both pages and children;
its class says what its document claims to be.

A node that was read from a document keeps the document, not its pages: they are read again each time they are gone
through, and so are its problems when they are first asked for.

Trees compare by value: class, URL, pages and children. What is known *about* a node (the `last_modified` that its index
declared, its `problems`, its `transport`) is not part of its value, so a broken document that could be read equals the
clean one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Unpack, cast

from usp.objects.page import Pages, SitemapPage
from usp.objects.parser import DocumentParser
from usp.objects.problem import Problem, Problems
from usp.objects.transport import Transport

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

#: Problems, or how to find them out when they are asked for.
FoundProblems = Iterable[Problem] | Callable[[], Iterable[Problem]]


def counted(problems: Iterable[Problem]) -> Problems:
    """Problems with their counts: the true ones where they are known, else of those that there are."""
    return problems if isinstance(problems, Problems) else Problems(problems)


class AbstractSitemap:
    """What every node of the tree has."""

    __slots__ = ("_last_modified", "_pages", "_problems", "_sub_sitemaps", "_transport", "_url", "parser")

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
        # A list is kept, not copied: two places that declare the same document share its pages.
        self._pages = pages if isinstance(pages, (list, Pages)) else list(pages)
        self._sub_sitemaps = list(sub_sitemaps)
        self._last_modified = last_modified
        self._problems = problems if callable(problems) else counted(problems)
        self._transport = transport
        #: Reads the document again, for checks; None if the sitemap was made by hand or unpickled.
        self.parser: DocumentParser | None = None

    @property
    def url(self) -> str:
        """The sitemap's URL, after redirects."""
        return self._url

    @property
    def pages(self) -> Sequence[SitemapPage]:
        """The pages that this sitemap itself lists, in its order: read from its document as they are gone through."""
        return self._pages.anew() if isinstance(self._pages, Pages) else self._pages

    @property
    def sub_sitemaps(self) -> list[AbstractSitemap]:
        """The sitemaps that this sitemap itself lists, in its order."""
        return self._sub_sitemaps

    @property
    def last_modified(self) -> datetime | None:
        """The `<lastmod>` that its index declared for this sitemap."""
        return self._last_modified

    @property
    def problems(self) -> Problems:
        """What was wrong in this sitemap's document and was put right or passed over; the first few of each code."""
        if callable(self._problems):
            self._problems = counted(self._problems())
        return self._problems

    @property
    def problem_counts(self) -> Counter[str]:
        """How many problems of each code there are, those that were not kept among them."""
        return Counter(self.problems.counts)

    @property
    def transport(self) -> Transport | None:
        """How its document came, or how the last try to have it went; None where nothing was requested."""
        return self._transport

    def all_pages(self) -> Iterator[SitemapPage]:
        """Every page of this sitemap and of all below it, in the order they are declared."""
        yield from self.pages
        for sitemap in self.all_sitemaps():
            yield from sitemap.pages

    def all_sitemaps(self) -> Iterator[AbstractSitemap]:
        """Every sitemap below this one, each before those that it lists itself."""
        for sitemap in self.sub_sitemaps:
            yield sitemap
            yield from sitemap.all_sitemaps()

    def all_problems(self) -> Iterator[Problem]:
        """The problems of this sitemap and of all below it."""
        yield from self.problems
        for sitemap in self.all_sitemaps():
            yield from sitemap.problems

    def to_dict(self, with_pages: bool = True) -> dict[str, Any]:
        """The sitemap and all below it as a plain dictionary."""
        as_dict: dict[str, Any] = {"url": self.url}
        if with_pages and self.pages:
            as_dict["pages"] = [page.to_dict() for page in self.pages]
        if self.sub_sitemaps:
            as_dict["sub_sitemaps"] = [sitemap.to_dict(with_pages=with_pages) for sitemap in self.sub_sitemaps]
        return as_dict

    def to_arrow(self, table: str = "pages", **options: Unpack[TableOptions]) -> pyarrow.Table:
        """The pages of this sitemap and of all below it as a table, with no object for each. Needs the extra `arrow`.

        :param table: "pages", or "sitemaps" for what is known of those.
        :param columns: the columns, in this order, like "url,news.title"; all if None.
        :param where: which rows: a condition in SQL, like "last_modified >= '2025-01-01'". Needs the extra `sql`.
        :param since: only pages modified since then: "2025-01-01", "7d" for seven days ago, or a date.
        :param until: only pages modified until then, in the same forms. A date includes the whole day.
        :param dedupe: whether to leave out pages that another sitemap has listed before.
        :raises MissingExtraError: if a package is not installed; it says how to install it.
        """
        from usp.export.frames import to_arrow

        return to_arrow(self, table, **options)

    def to_pandas(self, table: str = "pages", **options: Unpack[TableOptions]) -> pandas.DataFrame:
        """The same as a data frame of pandas. Needs the extra `pandas`."""
        from usp.export.frames import to_pandas

        return to_pandas(self, table, **options)

    def to_polars(self, table: str = "pages", **options: Unpack[TableOptions]) -> polars.DataFrame:
        """The same as a data frame of polars. Needs the extra `polars`."""
        from usp.export.frames import to_polars

        return to_polars(self, table, **options)

    def to_duckdb(self, database: str | os.PathLike[str] = ":memory:") -> duckdb.DuckDBPyConnection:
        """A connection to a database that has both tables, with times in UTC. Needs the extra `sql`."""
        from usp.export.frames import to_duckdb

        return to_duckdb(self, database)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The pages, for any library that takes Arrow: read from the documents while they are taken."""
        from usp.export.frames import TreeTable

        return TreeTable(self).__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        from usp.export.frames import TreeTable

        return TreeTable(self).__arrow_c_schema__()

    def _summary(self) -> str:
        """What `repr()` shows beside the URL: a count, never a million pages."""
        counts = {"page": len(self.pages), "sub-sitemap": len(self.sub_sitemaps)}
        return ", ".join(f"{n} {what}{'s' * (n != 1)}" for what, n in counts.items() if n) or "empty"

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
        _ = self.problems  # found out now: what finds them out cannot be pickled
        own, slots = cast("tuple[object, dict[str, object]]", super().__getstate__())
        return own, slots | {"parser": None}  # it cannot be pickled either

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url!r}: {self._summary()}>"


class InvalidSitemap(AbstractSitemap):
    """A sitemap that could not be had: not fetched, not a sitemap, or refused."""

    __slots__ = ("_reason",)

    def __init__(
        self,
        url: str,
        reason: str,
        *,
        last_modified: datetime | None = None,
        problems: FoundProblems = (),
        transport: Transport | None = None,
    ) -> None:
        super().__init__(url, last_modified=last_modified, problems=problems, transport=transport)
        self._reason = reason

    @property
    def reason(self) -> str:
        """Why the sitemap could not be had."""
        return self._reason

    def to_dict(self, with_pages: bool = True) -> dict[str, Any]:
        """The URL and the reason."""
        return {"url": self.url, "reason": self.reason}

    def _summary(self) -> str:
        return self.reason

    def __eq__(self, other: object) -> bool:
        equal = super().__eq__(other)
        return equal and self.reason == other.reason if isinstance(other, InvalidSitemap) else equal

    __hash__ = AbstractSitemap.__hash__


class AbstractPagesSitemap(AbstractSitemap):
    """A sitemap whose document lists pages."""

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
        """The URL and the pages, as a list even where there are none."""
        empty: dict[str, Any] = {"url": self.url, "pages": []} if with_pages else {}
        return empty | super().to_dict(with_pages=with_pages)


class PagesXMLSitemap(AbstractPagesSitemap):
    """An XML `<urlset>`."""

    __slots__ = ()


class PagesTextSitemap(AbstractPagesSitemap):
    """A plain text file with a URL on each line."""

    __slots__ = ()


class PagesRSSSitemap(AbstractPagesSitemap):
    """An RSS feed: 2.0, 0.9x or RDF 1.0."""

    __slots__ = ()


class PagesAtomSitemap(AbstractPagesSitemap):
    """An Atom feed: 1.0 or 0.3."""

    __slots__ = ()


class AbstractIndexSitemap(AbstractSitemap):
    """A sitemap whose document lists other sitemaps."""

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
        """The URL and the sitemaps below, as a list even where there are none."""
        return {"url": self.url, "sub_sitemaps": []} | super().to_dict(with_pages=with_pages)


class IndexWebsiteSitemap(AbstractIndexSitemap):
    """The root of a tree: robots.txt and everything else found on a website."""

    __slots__ = ()


class IndexXMLSitemap(AbstractIndexSitemap):
    """An XML `<sitemapindex>`."""

    __slots__ = ()


class IndexRobotsTxtSitemap(AbstractIndexSitemap):
    """A robots.txt with its `Sitemap:` lines."""

    __slots__ = ()
