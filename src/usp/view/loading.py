"""Read the targets of the explorer into its store, in a thread: pages while sitemaps arrive, problems at the end."""

from __future__ import annotations

import gc
import threading
import time
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from usp.check.checking import check_read
from usp.check.report import Report
from usp.exceptions import UspError
from usp.export.files import named
from usp.export.memory import release_memory
from usp.export.reading import EPOCH, PageStats, SitemapPlace, sitemap_values
from usp.objects.codes import CODES
from usp.objects.outcome import Outcome, combined
from usp.objects.sitemap import AbstractSitemap, InvalidSitemap
from usp.view.parts import PageParts
from usp.view.store import PROBLEMS, SITEMAP_ROWS, Store

if TYPE_CHECKING:
    from usp.sources import Source
    from usp.stream import HomepageOptions, SitemapStream

__all__ = ["Loader"]

_LIVE_SITEMAPS = 5_000  # rows that are shown while more arrive; writing the table takes time
_LIVE_SECONDS = 1.0
_MANY_PAGES = 1_000_000  # of a source; before it is checked, the memory that reading has taken is given back


class Loader:
    """Reads streams into a store. Its attributes say how far it is; any thread may look at them.

    :param streams: each source with its stream, opened lazily.
    :param options: those that the streams are opened with.
    """

    def __init__(
        self,
        store: Store,
        streams: Iterable[tuple[Source, SitemapStream]],
        options: HomepageOptions,
        *,
        has_source: bool,
    ) -> None:
        self.state = "loading"
        self.error = ""
        self.outcome: Outcome | None = None
        self.notes: list[str] = []
        self.failed = 0
        self.bytes = 0
        self.has_problems = False
        self.severities: Counter[str] = Counter()
        self.code_counts: dict[str, Counter[int | None]] = {}  # code -> sitemap -> number
        self.sitemaps: list[AbstractSitemap] = []  # by id
        self.rows: list[dict[str, Any]] = []  # of the table of sitemaps, by id
        self.ids: dict[tuple[str, str | None], int] = {}  # URL and source of a sitemap -> its first id
        self._store = store
        self._streams = streams
        self._options = options
        self._has_source = has_source
        self._started = time.monotonic()
        self._ended: float | None = None
        self._shown_at = 0.0
        self._released_at = 0  # when there were this many pages
        self._stopped = threading.Event()
        self._parts = PageParts(store.folder, has_source=has_source, on_part=store.changed)
        store.open_pages()
        self._thread = threading.Thread(target=self._run, name="usp-view", daemon=True)

    @property
    def pages(self) -> int:
        """The number of pages that can be seen."""
        return self._parts.rows

    @property
    def seconds(self) -> float:
        """How long reading has taken."""
        return (self._ended or time.monotonic()) - self._started

    def start(self) -> None:
        """Start to read."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread. What it was reading is dropped."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until everything is read."""
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            with named(self._store.folder), self._parts:
                self._read()
        except Exception as error:  # the page says so; a thread has nobody else to tell
            self.error = _words_for(error)
            self.state, self.outcome = "failed", None  # what was read before does not say how it ended
        self._release_memory()
        self._ended = time.monotonic()
        self._store.changed()

    def _release_memory(self, after: int = 0) -> None:
        """Give back to the system what reading no longer uses. Each thread that read has a heap, which malloc keeps.

        :param after: not before this many more pages are read.
        """
        if self.pages - self._released_at < after:
            return
        self._released_at = self.pages
        gc.collect()
        release_memory()

    def _read(self) -> None:
        problems: list[dict[str, Any]] = []
        outcomes: list[Outcome] = []
        for source, stream in self._streams:
            self.state = "loading"
            first = len(self.rows)
            with stream:
                self._read_stream(source, stream)
                if self._stopped.is_set():
                    return
                self._parts.finish()
                self._count_pages(first)
                self._show_sitemaps()
                outcomes.append(stream.tree.outcome)
                self.notes += stream.notes
                self.outcome = combined(outcomes)
                self.state = "checking"
                self._store.changed()
                self._release_memory(after=_MANY_PAGES)
                report = check_read(stream, source, has_short_names=False, **self._options)
            problems += self._note_problems(report, first)
        self._store.write_table("problems", PROBLEMS, problems)
        self._show_sitemaps()
        self.has_problems = True
        self.state = "ready"

    def _read_stream(self, source: Source, stream: SitemapStream) -> None:
        self._parts.start_tree()
        for sitemap in stream.with_pauses():
            if self._stopped.is_set():
                return
            if sitemap is None:
                self._parts.pause()
                if self._store.version and time.monotonic() - self._shown_at > _LIVE_SECONDS:
                    self._show_sitemaps(_LIVE_SITEMAPS)
                continue
            name = source.target if self._has_source else None
            self._add(sitemap, name, stream)
            self._parts.put(sitemap, name, stream.names)

    def _add(self, sitemap: AbstractSitemap, source: str | None, stream: SitemapStream) -> None:
        above = stream.ancestors
        place = SitemapPlace(sitemap, above[-1] if above else None, len(above), stream.names)
        row = {"id": len(self.sitemaps), "source": source, **sitemap_values(place)}
        self.ids.setdefault((row["url"], source), row["id"])
        self.rows.append(row)
        self.sitemaps.append(sitemap)
        self.failed += isinstance(sitemap, InvalidSitemap)
        self.bytes += sitemap.transport.size if sitemap.transport is not None else 0

    def _count_pages(self, first: int) -> None:
        for row, sitemap in zip(self.rows[first:], self.sitemaps[first:], strict=True):
            stats: PageStats | None = self._parts.counts.get(sitemap.url)
            if stats is not None:
                row["pages"] = stats.pages
                row["newest"] = None if stats.newest is None else _moment(stats.newest)
        _add_up(self.rows[first:])

    def _show_sitemaps(self, most: int | None = None) -> None:
        self._store.write_table("sitemaps", SITEMAP_ROWS, self.rows[:most])
        self._shown_at = time.monotonic()

    def _note_problems(self, report: Report, first: int) -> list[dict[str, Any]]:
        """Count the problems of each sitemap, and return rows of those that the report keeps.

        Those of the site as a whole have no sitemap.

        :param first: the id of the first sitemap of the report.
        """
        rows: list[dict[str, Any]] = []
        ids: dict[str, int] = {}
        for number in range(first, len(self.sitemaps)):
            ids.setdefault(self.sitemaps[number].url, number)
        for checked in report.sitemaps:
            number_of = ids.get(checked.url) if checked.kind != "IndexWebsiteSitemap" else None
            for code, count in checked.problems.counts.items():
                self.severities[str(CODES[code].severity)] += count
                self.code_counts.setdefault(code, Counter())[number_of] += count
            if number_of is not None:
                self.rows[number_of]["problems"] = checked.problems.counts.total()
            rows += [
                {**problem.to_dict(), "sitemap": number_of, "sitemap_url": problem.url} for problem in checked.problems
            ]
        return rows


def _add_up(rows: Iterable[dict[str, Any]]) -> None:
    """Set `all_pages` of the rows of a tree. A sitemap that an index leads to in several ways counts once."""
    above: list[dict[str, Any]] = []
    counted: dict[str, set[int]] = {}  # URL of a sitemap -> ids of the rows whose sums have it
    for row in rows:
        row["all_pages"] = row.get("pages")
        del above[row["depth"] :]
        has = counted.setdefault(row["url"], set())
        for one in above if row["all_pages"] else ():
            if one["id"] not in has:
                has.add(one["id"])
                one["all_pages"] = (one["all_pages"] or 0) + row["all_pages"]
        above.append(row)


def _moment(microseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=microseconds)


def _words_for(error: Exception) -> str:
    """Return what the page says about an error."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error) if isinstance(error, (UspError, OSError)) else f"{type(error).__name__}: {error}"
