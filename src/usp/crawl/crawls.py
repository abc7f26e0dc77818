"""The front doors: `crawl` runs a crawl, `open_crawl` reads what earlier runs have brought."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypedDict

from usp.crawl.crawler import CrawlOptions, ProgressCallback, crawl_sites
from usp.crawl.folder import CrawlFolder, Run
from usp.crawl.session import crawl_session
from usp.crawl.sites import OnError, SiteTarget, check_lists, estimated_count, read_sites, site_target
from usp.crawl.state import KnownSites, SiteRow, site_rows
from usp.crawl.unchanged import walk_key
from usp.exceptions import InvalidArgumentError
from usp.export.dedupe import FirstOfEach
from usp.extras import extra
from usp.keywords import check_keywords
from usp.objects.outcome import Cause, OutcomeKind
from usp.objects.wording import described, plural
from usp.origins import split_credentials

if TYPE_CHECKING:
    from typing import Unpack

    from usp.crawl.changes import Changes
    from usp.crawl.reading import CrawlTable, RunLike
    from usp.objects.sitemap import AbstractSitemap
    from usp.stream import HomepageOptions
    from usp.web_client.abstract_client import AbstractAsyncWebClient

__all__ = ["Crawl", "CrawlArguments", "crawl", "crawl_async", "end_run", "open_crawl"]

_KEPT_TARGETS = 100  # in the manifest, to go on without naming them again
_FAILED = (OutcomeKind.PARTIAL, OutcomeKind.BLOCKED, OutcomeKind.UNREACHABLE)
_LOSSES = frozenset(str(cause) for cause in Cause if cause.is_loss)
_NO_SITES = "has no sites yet: name sites, or a file that lists them"
_NO_SITE_GIVEN = "there is no site in what you gave; write one on each line of a list"
_NOT_KEPT = "targets_not_kept"  # the option of a run that says that nobody knows them


class CrawlArguments(TypedDict, total=False):
    """The keyword arguments of `crawl_async`, for functions that hand them on."""

    web_client: AbstractAsyncWebClient | None
    client_options: Mapping[str, Any] | None
    options: CrawlOptions | None
    column: str | None
    retry_failed: bool
    progress: ProgressCallback | None
    on_error: OnError | None


@dataclass(frozen=True, slots=True, repr=False)
class Crawl:
    """A crawl folder."""

    folder: CrawlFolder

    def __repr__(self) -> str:
        last = self.runs[-1:]
        sites = f"the last of {plural(last[0].sites, 'site')}" if last and last[0].ended is not None else ""
        return described(self, self.folder.path, plural(len(self.runs), "run"), sites)

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs, oldest first."""
        return self.folder.runs

    def sites(self, run: RunLike | None = None, columns: Sequence[str] | str | None = None) -> CrawlTable:
        """Return the table of sites as of a run, the last one by default: the last row of each site.

        :param run: the number of a run, or a point in time ("2025-01-01", "7d" for seven days ago, a date): the last
            run that had started by then.
        :param columns: the columns to read, in this order; all if None.
        """
        return self._table("sites", run, columns)

    def sitemaps(self, run: RunLike | None = None, columns: Sequence[str] | str | None = None) -> CrawlTable:
        """Return the table of sitemaps as of a run: the tree of each site, in tree order."""
        return self._table("sitemaps", run, columns)

    def pages(self, run: RunLike | None = None, columns: Sequence[str] | str | None = None) -> CrawlTable:
        """Return the table of pages as of a run."""
        return self._table("pages", run, columns)

    def problems(self, run: RunLike | None = None, columns: Sequence[str] | str | None = None) -> CrawlTable:
        """Return the table of problems as of a run."""
        return self._table("problems", run, columns)

    def tree(self, site: str, run: RunLike | None = None, **options: Unpack[HomepageOptions]) -> AbstractSitemap:
        """Return the tree of a site as of a run. Nothing is requested.

        :param site: as it was given to the crawl, or its URL in the tables.
        :param options: those of `usp.tree.sitemap_tree_for_homepage`.
        :raises InvalidArgumentError: if the folder has no such site.
        :raises CrawlFolderError: if the folder has no documents, because it was crawled without them.
        """
        from usp.crawl.stored import stored_tree

        return stored_tree(self.folder, site, self._number(run), **options)

    def changes(
        self,
        a: RunLike | None = None,
        b: RunLike | None = None,
        *,
        sites: Iterable[str] | None = None,
        new_sites: bool = True,
    ) -> Changes:
        """Return what has changed between two runs: pages added, removed, changed, and moved to another sitemap.

        :param a: the earlier run; by default, the run before `b`. Or a point in time, as for `sites`.
        :param b: the later run; by default, the last one.
        :param sites: only these sites, as they were given to the crawl, or their URLs in the tables.
        :param new_sites: whether to include sites that run `a` did not have. All their pages are added.
        """
        from usp.crawl.changes import crawl_changes

        return crawl_changes(self.folder, a, b, sites, new_sites=new_sites)

    def _table(self, name: str, run: RunLike | None, columns: Sequence[str] | str | None) -> CrawlTable:
        from usp.crawl.reading import CrawlTable

        return CrawlTable(self.folder, name, self._number(run), columns)

    def _number(self, run: RunLike | None) -> int | None:
        from usp.crawl.reading import run_number

        return None if run is None else run_number(self.runs, run)


def open_crawl(path: str | os.PathLike[str]) -> Crawl:
    """Open a crawl folder.

    :raises CrawlFolderError: if it is not a crawl folder.
    """
    return Crawl(CrawlFolder(path))


def crawl(targets: Iterable[str] | str, path: str | os.PathLike[str], **arguments: Unpack[CrawlArguments]) -> Crawl:
    """Crawl sites into a folder. See `crawl_async`."""
    check_keywords(arguments, CrawlArguments.__annotations__, "targets", "path")
    return asyncio.run(crawl_async(targets, path, **arguments))


async def crawl_async(
    targets: Iterable[str] | str,
    path: str | os.PathLike[str],
    web_client: AbstractAsyncWebClient | None = None,
    *,
    client_options: Mapping[str, Any] | None = None,
    options: CrawlOptions | None = None,
    column: str | None = None,
    retry_failed: bool = False,
    progress: ProgressCallback | None = None,
    on_error: OnError | None = None,
) -> Crawl:
    """Crawl sites into a folder, which is created if it does not exist.

    If the last run was cut off, this goes on with it, and skips the sites that are done. Otherwise it starts a new run,
    which asks only for what may have changed.

    :param targets: sites, or files that list them; see `usp.crawl.sites`. None: all sites of the folder.
    :param web_client: None for an `AsyncioWebClient`.
    :param client_options: keyword arguments for that, such as `user_agent`.
    :param column: the column with the sites, in CSV and Parquet files.
    :param retry_failed: whether to crawl only sites blocked, unreachable, partial or unreadable in the last run.
    :param progress: called after each site.
    :param on_error: called with each line of a list that is not a site, and the reason; by default, usp skips it.
    :raises CrawlFolderError: if the folder cannot be used, or another process writes to it.
    :raises InvalidArgumentError: if the lists name no site.
    """
    options = options or CrawlOptions()
    given = [targets] if isinstance(targets, str) else list(targets)
    extra("pyarrow.parquet", "crawl")
    folder = _folder_at(path, given, column)
    if retry_failed and not given and not _has_failed(folder):
        return Crawl(folder)
    with folder.writing():
        seen = FirstOfEach()
        run, done = _run_of(folder, given, seen, options)
        known = KnownSites(folder, needs_pages=options.with_pages)
        wanted = given or run.targets
        sites = _sites_of(wanted, known, seen, column, on_error)
        expected = None if retry_failed else estimated_count(wanted) if wanted else len(known.last)
        left = _CountedSites(_failed(sites, known) if retry_failed else sites, expected, done.total())
        async with crawl_session(options.requests, client_options, web_client) as (client, limits):
            outcomes = await crawl_sites(
                folder, run, left, client, options, limits, known=known, progress=progress, total=left.total
            )
        outcomes += done
        end_run(folder, run, outcomes)
    if not outcomes and not (retry_failed and folder.runs):
        raise InvalidArgumentError(_NO_SITE_GIVEN)
    return Crawl(folder)


class _CountedSites:
    """Sites, and how many there are: about, as long as not all have been read."""

    def __init__(self, sites: Iterator[SiteTarget], expected: int | None, done: int) -> None:
        self._sites = sites
        self._expected = None if expected is None else expected - done
        self._given = 0
        self._is_exhausted = False

    def __iter__(self) -> Iterator[SiteTarget]:
        return self

    def __next__(self) -> SiteTarget:
        try:
            target = next(self._sites)
        except StopIteration:
            self._is_exhausted = True
            raise
        self._given += 1
        return target

    def total(self) -> int | None:
        """Return the number of sites; None if nobody knows."""
        if self._is_exhausted:
            return self._given
        return None if self._expected is None else max(self._expected, self._given)


def _folder_at(path: str | os.PathLike[str], targets: list[str], column: str | None) -> CrawlFolder:
    """Open a crawl folder, or make one for these targets."""
    check_lists(targets, column)
    if not targets and not CrawlFolder.is_at(path):
        raise InvalidArgumentError(f"{os.fspath(path)} {_NO_SITES}")
    return CrawlFolder.create(path)


def _run_of(
    folder: CrawlFolder, targets: list[str], seen: FirstOfEach, options: CrawlOptions
) -> tuple[Run, Counter[str]]:
    """Return the run to go on with, and the outcomes of its sites that have ended, which are noted; else a new run."""
    walk, last = walk_key(options), folder.runs[-1] if folder.runs else None
    if last is not None and last.ended is None:
        if not targets and last.options.get(_NOT_KEPT):
            raise InvalidArgumentError(
                f"run {last.run} of {folder.path} was interrupted, and its sites came from standard input, had a"
                " password, or were too many to note; name them again to go on"
            )
        done = (row for row in site_rows(folder) if row.run == last.run)
        resumed = folder.resume_run(last, walk, has_pages=options.with_pages)
        return resumed, Counter(row.outcome for row in done if seen.is_first(row.site))
    if last is None and not targets:
        raise InvalidArgumentError(f"{folder.path} {_NO_SITES}")
    is_kept = len(targets) <= _KEPT_TARGETS and "-" not in targets and not any(map(_has_password, targets))
    given, noted = (targets, {}) if is_kept else ([], {_NOT_KEPT: True})
    return folder.start_run(datetime.now(UTC), given, noted, walk, has_pages=options.with_pages), Counter()


def end_run(folder: CrawlFolder, run: Run, outcomes: Counter[str]) -> None:
    """Note that a run has ended. Drop one without sites: it would hide what the run before has changed."""
    if outcomes:
        folder.end_run(run, datetime.now(UTC), outcomes)
    else:
        folder.drop_run(run)


def _has_password(target: str) -> bool:
    return bool(split_credentials(target if "//" in target else f"//{target}")[1])


def _sites_of(
    targets: Sequence[str], known: KnownSites, seen: FirstOfEach, column: str | None, on_error: OnError | None
) -> Iterator[SiteTarget]:
    if targets:
        return read_sites(targets, on_error or (lambda text, why: None), column=column, seen=seen)
    return (site_target(row.target) for row in known.last.values() if seen.is_first(row.site))


def _has_failed(folder: CrawlFolder) -> bool:
    """Return whether there is a site to crawl again. A run that was cut off has."""
    if not folder.runs or folder.runs[-1].ended is None:
        return True
    known = KnownSites(folder)
    return any(_is_failed(row, known) for row in known.last.values())


def _failed(sites: Iterable[SiteTarget], known: KnownSites) -> Iterator[SiteTarget]:
    """Give the sites that failed the last time, and those that are new."""
    for target in sites:
        row = known.last.get(target.site)
        if row is None or _is_failed(row, known):
            yield target


def _is_failed(row: SiteRow, known: KnownSites) -> bool:
    """Return whether a site was blocked, unreachable or partial, or empty only because a sitemap could not be read."""
    if row.outcome != OutcomeKind.EMPTY:
        return row.outcome in _FAILED
    return any(sitemap["cause"] in _LOSSES for sitemap in known.of(row.site).rows)
