"""Deliver the changes of each run to destinations: each at least once, in the order of the runs.

The crawl folder remembers in `watch.json` the last run that each destination has got. It is written after a delivery,
so a process that is killed in between delivers again, with the same id. Nothing else is needed: the changes of a run
follow from the tables, so they are the same whenever they are found. A destination that fails holds up only itself.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from uuid import NAMESPACE_URL, uuid5

from usp.crawl.change_formats import counts_text
from usp.crawl.changes import Changes
from usp.crawl.differences import found_changes
from usp.crawl.folder import CrawlFolder, Run
from usp.exceptions import CrawlFolderError
from usp.export.files import open_whole
from usp.export.formats import ANSWER_FORMATS
from usp.export.formats.base import Answer, FormatOptions
from usp.extras import extra

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DELIVERED", "Deliveries", "DeliveryError", "Destination", "Report", "RunChanges"]

DELIVERED = "watch.json"
_FOUND = "watch.partial"  # one name: what a killed process leaves is written over
_FORMAT, _VERSION = "usp-watch", 1

#: Called with a level of logging, "info" or "warning", and a line.
Report = Callable[[str, str], None]


class DeliveryError(Exception):
    """Changes could not be delivered. They are delivered again later."""


@dataclass(frozen=True, slots=True)
class RunChanges:
    """The changes of one run, as JSON lines in a file that is removed after the delivery."""

    crawl: str  #: the path of the crawl folder
    run: Run
    counts: Counter[str]
    path: str  #: the file
    mark: str  #: tells this folder and this selection of changes from others

    def lines(self) -> Iterator[bytes]:
        """Give the lines, each with its line end."""
        with open(self.path, "rb") as file:
            yield from file

    @property
    def name(self) -> str:
        """The name of the crawl folder, without the folders above it."""
        return os.path.basename(self.crawl)

    def delivery_id(self, destination: str, batch: int = 1) -> str:
        """Return the id of a delivery. It is the same when it is delivered again."""
        return str(uuid5(NAMESPACE_URL, f"usp:{self.mark}:{destination}:{self.run.run}:{batch}"))


class Destination(Protocol):
    """Where changes go. Yours may be any object with these members."""

    @property
    def key(self) -> str:
        """What tells the destination from others, also after a restart. It is kept in the folder: no secrets."""

    @property
    def name(self) -> str:
        """What messages call it. It has no secrets."""

    def prepare(self, folder: CrawlFolder) -> None:
        """Raise an InvalidArgumentError or an OSError before anything is crawled, if nothing can be delivered."""

    def deliver(self, changes: RunChanges) -> None:
        """Deliver the changes of a run.

        :raises DeliveryError: if that failed.
        """


class Deliveries:
    """All destinations of a crawl folder, and what they have got.

    :param kinds: only these kinds of changes; all if None.
    :param notify_first: whether sites count that are read for the first time. All their pages are added.
    """

    def __init__(
        self,
        destinations: Iterable[Destination],
        *,
        kinds: Sequence[str] | None = None,
        notify_first: bool = False,
        report: Report = lambda level, line: None,
    ) -> None:
        self._destinations = tuple(destinations)
        self._kinds = None if kinds is None else tuple(sorted(kinds))
        self._notify_first = notify_first
        self._report = report
        self.waiting = 0  #: deliveries of the last call that failed

    def prepare(self, folder: CrawlFolder) -> None:
        """Check all destinations. Those that are new get the changes of all runs that end from now on."""
        delivered = _read_delivered(folder)
        last = max((run.run for run in folder.runs if run.ended is not None), default=0)
        for destination in self._destinations:
            destination.prepare(folder)
        new = {destination.key: last for destination in self._destinations if destination.key not in delivered}
        if new:
            _write_delivered(folder, {**delivered, **new})

    def send(self, folder: CrawlFolder) -> None:
        """Deliver what has not been delivered. Report what cannot be."""
        delivered = _read_delivered(folder)
        left = {one.key: one for one in self._destinations}
        self.waiting = 0
        for run in folder.runs:
            wanting = [one for one in left.values() if run.ended is not None and delivered.get(one.key, 0) < run.run]
            if not wanting:
                continue
            for failed in self._send_run(folder, run, wanting, delivered):
                del left[failed.key]
                self.waiting += sum(one.ended is not None and one.run >= run.run for one in folder.runs)

    def _send_run(
        self, folder: CrawlFolder, run: Run, wanting: list[Destination], delivered: dict[str, int]
    ) -> list[Destination]:
        """Deliver the changes of a run. Return the destinations that failed."""
        failed = []
        try:
            with self._changes(folder, run) as changes:
                for destination in wanting:
                    if changes.counts.total():
                        try:
                            destination.deliver(changes)
                        except (DeliveryError, OSError) as error:
                            self._report("warning", f"run {run.run}: not delivered to {destination.name}: {error}")
                            failed.append(destination)
                            continue
                        self._report("info", f"run {run.run}: delivered to {destination.name}")
                    delivered[destination.key] = run.run
                    _write_delivered(folder, delivered)
        except (DeliveryError, OSError, CrawlFolderError) as error:  # the changes cannot be found, or not be noted
            self._report("warning", f"run {run.run}: changes not delivered: {error}")
            return wanting
        return failed

    @contextmanager
    def _changes(self, folder: CrawlFolder, run: Run) -> Iterator[RunChanges]:
        """Find the changes of a run."""
        earlier = max((other.run for other in folder.runs if other.run < run.run), default=0)
        changes = Changes(
            lambda: found_changes(folder, earlier, run.run, None, new_sites=self._notify_first), self._kinds
        )
        counts: Counter[str] = Counter()

        def counted() -> Iterator[pa.RecordBatch]:
            for batch in changes.reader():
                counts.update(batch.column("change").to_pylist())
                yield batch

        write = ANSWER_FORMATS["jsonl"].answer_writer
        assert write is not None
        path = os.path.join(folder.path, _FOUND)
        try:
            with open(path, "wb") as file:
                write(Answer(changes.schema, counted(), "changes"), file, FormatOptions())
            is_first = not earlier and not self._notify_first
            told = "the first run; changes are reported from the next run on" if is_first else counts_text(counts)
            self._report("info", f"run {run.run}: {told}")
            mark = f"{folder.runs[0].started.isoformat()}:{self._kinds}:{self._notify_first}"
            yield RunChanges(os.path.abspath(folder.path), run, counts, path, mark)
        except extra("duckdb", "crawl").Error as error:  # such as a full disk
            raise DeliveryError(str(error).partition("\n")[0]) from error
        finally:
            with suppress(FileNotFoundError):
                os.remove(path)


def _write_delivered(folder: CrawlFolder, delivered: Mapping[str, int]) -> None:
    content = {"format": _FORMAT, "version": _VERSION, "delivered": delivered}
    with open_whole(os.path.join(folder.path, DELIVERED)) as file:
        file.write(json.dumps(content, indent=1).encode() + b"\n")


def _read_delivered(folder: CrawlFolder) -> dict[str, int]:
    """Return the last run that each destination has got, by its key."""
    try:
        with open(os.path.join(folder.path, DELIVERED), "rb") as file:
            content = json.load(file)
        if content["format"] != _FORMAT or content["version"] != _VERSION:
            raise ValueError
        return {str(key): int(run) for key, run in content["delivered"].items()}
    except FileNotFoundError:
        return {}
    except (AttributeError, KeyError, TypeError, ValueError):
        raise _unreadable(folder) from None


def _unreadable(folder: CrawlFolder) -> CrawlFolderError:
    path = os.path.join(folder.path, DELIVERED)
    return CrawlFolderError(f"{path} cannot be read; remove it, and only later changes are delivered")
