"""What a cluster runs: the crawl of the sites of one task, and what stands around it, for `usp.spark` and `usp.ray`.

    driver: clustered_run() --- ClusterRun ---> workers: run.crawl(sites of a task) --> one part of the crawl folder

A task writes its part itself; no page passes through the engine. The part is named by a hash of its sites. So if the
engine runs a task again, because a worker was lost or slow, the second one finds the part of the first, or the first to
commit counts. A site is in the run once, however often its task ran.

Everything here is small, and can be pickled.
"""

# ruff: noqa: S608 -- queries are made of our own names, and quoted paths

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from usp.crawl.crawler import CrawlOptions, crawl_sites
from usp.crawl.crawls import end_run
from usp.crawl.database import CrawlDatabase, open_database
from usp.crawl.folder import CrawlFolder, PartName, Run
from usp.crawl.session import crawl_session
from usp.crawl.sites import SiteTarget, site_target
from usp.crawl.state import LEARNED_NOTHING, KnownSites, SiteRow
from usp.crawl.unchanged import walk_key
from usp.exceptions import CrawlFolderError, InvalidArgumentError
from usp.extras import extra
from usp.objects.outcome import OutcomeKind
from usp.origins import host_of, registered_domain

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ClusterRun", "NamedSite", "clustered_run", "crawl_options", "named_site", "sites_of_part", "state_of_part"]


class NamedSite(NamedTuple):
    """A site in the list of a cluster: its key in all tables, what was given, and its registered domain."""

    site: str
    target: str
    domain: str


def named_site(text: str | None) -> NamedSite | None:
    """Return the site that a text names; None if it names none."""
    try:
        target = site_target(text or "")
    except InvalidArgumentError:
        return None
    return NamedSite(target.site, target.target, registered_domain(host_of(target.site)))


def crawl_options(options: Mapping[str, Any]) -> CrawlOptions:
    """Return the options of a crawl, given as keyword arguments.

    :raises InvalidArgumentError: if there is no such option.
    """
    try:
        return CrawlOptions(**options)
    except TypeError as error:
        known = ", ".join(CrawlOptions.__dataclass_fields__)
        raise InvalidArgumentError(f"{error}; the options of a crawl are {known}") from None


@dataclass(frozen=True, slots=True)
class ClusterRun:
    """A run whose tasks a cluster executes.

    :param earlier: the committed parts that have something to know about sites.
    """

    path: str
    run: int
    options: CrawlOptions = field(default_factory=CrawlOptions)
    client_options: Mapping[str, Any] = field(default_factory=dict)
    earlier: tuple[str, ...] = ()

    def crawl(self, sites: Iterable[tuple[str, str | None]]) -> str | None:
        """Crawl the sites of a task into one part, unless that was done. Return the name of the part.

        :param sites: each as it was given, and the part that knows it from an earlier run.
        """
        targets: dict[str, tuple[str, SiteTarget]] = {}
        for text, known in sites:
            target = site_target(text)
            targets.setdefault(target.site, (known or "", target))
        if not targets:
            return None
        folder = CrawlFolder(self.path)
        name = PartName.of_task(self.run, targets)
        if folder.part_of_task(name) is None:
            asyncio.run(self._crawl(folder, name, targets))
        return str(folder.part_of_task(name))

    async def _crawl(self, folder: CrawlFolder, name: PartName, targets: dict[str, tuple[str, SiteTarget]]) -> None:
        known = KnownSites(folder, rows=_known_rows(targets), needs_pages=self.options.with_pages)
        ordered = (target for _, target in sorted(targets.values(), key=lambda found: (found[0], found[1].site)))
        async with crawl_session(self.options.requests, self.client_options) as (client, limits):
            run = Run(self.run, datetime.now(UTC))
            await crawl_sites(folder, run, ordered, client, self.options, limits, known=known, part=name)


def _known_rows(targets: Mapping[str, tuple[str, SiteTarget]]) -> Iterator[SiteRow]:
    for site, (known, target) in targets.items():
        if (part := PartName.parse(known)) is not None:
            yield SiteRow(part.run, site, target.target, OutcomeKind.COMPLETE, part)


@contextmanager
def clustered_run(
    path: str, options: Mapping[str, Any], client_options: Mapping[str, Any] | None
) -> Iterator[ClusterRun]:
    """Start a run, or go on with one that was cut off, for a cluster to execute. At the end, mark it as ended.

    :raises CrawlFolderError: if another process writes to the folder, or a site is in the run twice.
    :raises InvalidArgumentError: if no site was named.
    """
    wanted = crawl_options(options)
    folder = CrawlFolder.create(path)
    with folder.writing():
        last = folder.runs[-1] if folder.runs else None
        walk = walk_key(wanted)
        if last is None or last.ended is not None:
            run = folder.start_run(datetime.now(UTC), (), {}, walk, has_pages=wanted.with_pages)
        else:
            run = folder.resume_run(last, walk, has_pages=wanted.with_pages)
        earlier = tuple(map(str, folder.parts()))
        yield ClusterRun(folder.path, run.run, wanted, dict(client_options or {}), earlier)
        folder.remove_uncommitted()  # parts of attempts that were too late
        outcomes = _outcomes(folder, run.run)
        end_run(folder, run, outcomes)
    if not outcomes:
        raise InvalidArgumentError("no row names a site")


def _outcomes(folder: CrawlFolder, run: int) -> Counter[str]:
    """Return the number of sites of a run for each outcome."""
    with open_database() as connection:
        sites = CrawlDatabase(folder, connection).of_parts("sites", folder.parts(run))
        twice = connection.sql(f"select site from {sites} group by site having count(*) > 1 limit 1").fetchall()
        if twice:
            raise CrawlFolderError(
                f"{twice[0][0]} is in run {run} twice: the list of sites was different when a part of it was computed"
                " again; write the list to a file first, and read it from there"
            )
        found = connection.sql(f"select outcome, count(*) from {sites} group by outcome").fetchall()
    return Counter(dict(found))


def state_of_part(path: str, part: str, run: int) -> pa.Table:
    """Return what a part says about its sites: `site`, `run`, the `part`, and whether the site `is_done` in this run.

    The part is null where a run has learned nothing about a site.
    """
    pa_, compute = extra("pyarrow", "crawl"), extra("pyarrow.compute", "crawl")
    found = sites_of_part(path, part, ["site", "run", "outcome"])
    is_nothing = compute.is_in(found["outcome"], pa_.array([str(kind) for kind in LEARNED_NOTHING]))
    parts = compute.if_else(is_nothing, pa_.scalar(None, pa_.string()), pa_.scalar(part))
    return pa_.table(
        {"site": found["site"], "run": found["run"], "part": parts, "is_done": compute.equal(found["run"], run)}
    )


def sites_of_part(path: str, part: str, columns: list[str] | None = None) -> pa.Table:
    """Return the rows of sites of a part."""
    name = PartName.parse(part)
    assert name is not None
    source = CrawlFolder(path).arrow_source("sites", name)
    return extra("pyarrow.parquet", "crawl").read_table(source, columns=columns)
