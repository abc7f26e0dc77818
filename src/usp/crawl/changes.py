"""What has changed between two runs of a crawl: pages added, removed, changed, or moved to another sitemap.

The state of each site as of one run is compared with its state as of the other; see `usp.crawl.database`. So a site
that was blocked, unreachable or not crawled in the later run has no changes since it was last read, and the pages of a
sitemap that could not be fetched stay. A page that is listed several times counts where it is first in the order of the
tree.

Only documents that differ are read, and of the others the URLs of pages that seem to have come or gone: such a page may
be listed there, too. A page that only documents list that did not change has not changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from usp.crawl.comparing import CHANGE_COLUMNS
from usp.crawl.folder import CrawlFolder
from usp.crawl.reading import RunLike, run_number
from usp.exceptions import InvalidArgumentError
from usp.export.arrow import arrow_schema
from usp.export.frames import ReadableTable
from usp.extras import extra
from usp.objects.wording import described
from usp.scan import List, Scalar, Type

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CHANGES", "Change", "ChangeCounts", "ChangeKind", "Changes", "crawl_changes"]

#: The columns of changes.
CHANGES: dict[str, Type] = dict(
    zip(
        CHANGE_COLUMNS,
        (
            *(Scalar.TEXT, Scalar.TEXT, Scalar.TEXT, List(Scalar.TEXT), Scalar.TEXT, Scalar.TEXT, Scalar.TEXT),
            *(Scalar.TIME, Scalar.TIME, Scalar.TEXT),
        ),
        strict=True,
    )
)


class ChangeKind(StrEnum):
    """The kinds of changes."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"  #: at least one of the compared fields differs
    MOVED = "moved"  #: only the sitemap differs


@dataclass(frozen=True, slots=True)
class Change:
    """A page that differs. An added page has no old values, and a removed page no new ones."""

    site: str
    change: ChangeKind
    url: str
    fields: tuple[str, ...] = ()  #: which fields of a changed page differ, like last_modified
    section: str | None = None  #: the first part of the path
    sitemap_url: str | None = None
    old_sitemap_url: str | None = None
    last_modified: datetime | None = None
    old_last_modified: datetime | None = None
    title: str | None = None  #: of the news

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> Change:
        """Make a change from a row."""
        return cls(**{**row, "change": ChangeKind(row["change"]), "fields": tuple(row["fields"])})


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    """How many pages differ: in all, by site, and by site and section. Each has a number for each kind."""

    total: Counter[str]
    by_site: dict[str, Counter[str]]
    by_section: dict[tuple[str, str], Counter[str]]


class Changes(ReadableTable):
    """The pages that differ: a table for any library that takes Arrow, and an iterable of `Change`.

    They are found each time you read them. Those of a site stand together, in the order of its tree.
    """

    def __init__(self, find: Callable[[], Iterator[pa.Table]], kinds: Iterable[str] | None = None) -> None:
        self.schema = arrow_schema(CHANGES, "changes")
        self._find = find
        self._kinds = None if kinds is None else frozenset(map(ChangeKind, kinds))

    def __repr__(self) -> str:
        kinds = [kind for kind in ChangeKind if self._kinds is None or kind in self._kinds]
        return described(self, "", f"{', '.join(kinds)}; found when they are read")

    def only(self, *kinds: str) -> Changes:
        """Return only the changes of these kinds: added, removed, changed, moved.

        :raises InvalidArgumentError: if there is no such kind.
        """
        if unknown := [kind for kind in kinds if kind not in ChangeKind.__members__.values()]:
            raise InvalidArgumentError(f"there is no kind {unknown[0]!r} of changes; there are {', '.join(ChangeKind)}")
        return Changes(self._find, kinds)

    def reader(self) -> pa.RecordBatchReader:
        """Return a reader of the table, from its start."""
        return extra("pyarrow", "crawl").RecordBatchReader.from_batches(self.schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        compute, pa_ = extra("pyarrow.compute", "crawl"), extra("pyarrow", "crawl")
        for table in self._find():
            found = table.cast(self.schema)
            if self._kinds is not None:
                found = found.filter(compute.is_in(found["change"], pa_.array(sorted(self._kinds), pa_.large_string())))
            yield from (batch for batch in found.to_batches() if batch.num_rows)

    def __iter__(self) -> Iterator[Change]:
        for batch in self.reader():
            yield from map(Change.of_row, batch.to_pylist())

    def counts(self) -> ChangeCounts:
        """Count the changes."""
        counts = ChangeCounts(Counter(), {}, {})
        for batch in self.reader():
            names = ("site", "section", "change")
            columns = (batch.column(CHANGE_COLUMNS.index(name)).to_pylist() for name in names)
            for (site, section, kind), count in Counter(zip(*columns, strict=True)).items():
                counts.total[kind] += count
                counts.by_site.setdefault(site, Counter())[kind] += count
                counts.by_section.setdefault((site, section or ""), Counter())[kind] += count
        return counts


def crawl_changes(
    folder: CrawlFolder,
    a: RunLike | None = None,
    b: RunLike | None = None,
    sites: Iterable[str] | None = None,
    *,
    new_sites: bool = True,
) -> Changes:
    """Return what has changed between two runs. See `Crawl.changes`."""
    from usp.crawl.differences import found_changes, keys_of

    runs = folder.runs
    later = run_number(runs, runs[-1].run if b is None and runs else 0 if b is None else b)
    earlier = max((run.run for run in runs if run.run < later), default=None) if a is None else run_number(runs, a)
    if earlier is None:
        raise InvalidArgumentError(f"{folder.path} has no run before run {later}; crawl again to see what changes")
    if earlier > later:
        raise InvalidArgumentError(f"name the earlier run first: {later} {earlier}")
    keys = None if sites is None else keys_of(folder, sites, later)
    return Changes(lambda: found_changes(folder, earlier, later, keys, new_sites=new_sites))
