"""The crawl folder: its manifest, its lock, and its parts, which are there completely or not at all.

    crawl.json                        the manifest: the version of the format, and one entry for each run
    sites/00001-000001.parquet        run 1, part 1. When this file appears, the part is committed.
    sitemaps/00001-000001.parquet
    pages/00001-000001.parquet
    problems/00001-000001.parquet
    warc/00001-000001.warc.gz

A part has all rows of its sites. Each of its files appears when it is complete, `sites` last. So a process may be
killed, or the power fail, at any moment: whoever opens the folder to write removes what belongs to no committed part. A
table without rows has no file in a part.

The workers of a cluster write parts named by a hash of their sites, followed by a mark of the attempt. If a task ran
twice, several parts have the same hash: the first of them by name counts, and the others are as if not committed.

This module knows names. It does not know where the files are (`usp.crawl.storage`), and not what is in the tables.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import pairwise
from typing import Any, BinaryIO, NamedTuple, Self

from usp.crawl.schema import FORMAT_VERSION, TABLES
from usp.crawl.storage import LocalStorage, NewFile, storage_at
from usp.exceptions import CrawlFolderError

__all__ = ["MANIFEST", "CrawlFolder", "PartName", "Run", "is_crawl_folder"]

MANIFEST = "crawl.json"
_FORMAT = "usp-crawl"
_LOCK = "crawl.lock"
_WATCH_LOCK = "watch.lock"
_COMMIT = "sites"  # the table whose file commits a part
_WARC = "warc"
_WALK, _HAS_PAGES = "walk", "has_pages"  # among the options of a run
_SUFFIXES = {**dict.fromkeys(TABLES, ".parquet"), _WARC: ".warc.gz"}
_TASK_LENGTH, _ATTEMPT_LENGTH = 24, 8  # hexadecimal digits
_PART = re.compile(r"(\d{5,})-([0-9a-z]{6,40})")


class PartName(NamedTuple):
    """The name of a part: its run, and what tells it from the others of the run."""

    run: int
    mark: str

    def __str__(self) -> str:
        return f"{self.run:05}-{self.mark}"

    @property
    def task(self) -> str:
        """The hash of the sites of a cluster's task; empty for a part of another kind."""
        return self.mark[:-_ATTEMPT_LENGTH] if len(self.mark) == _TASK_LENGTH + _ATTEMPT_LENGTH else ""

    @classmethod
    def of_task(cls, run: int, sites: Iterable[str]) -> Self:
        """Return a new name for a part that has these sites. All such names have the same `task`."""
        text = "\0".join(sorted(sites)).encode("utf-8", "surrogatepass")
        task, attempt = blake2b(text, digest_size=_TASK_LENGTH // 2), os.urandom(_ATTEMPT_LENGTH // 2)
        return cls(run, task.hexdigest() + attempt.hex())

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the name that a text has, or None."""
        match = _PART.fullmatch(text)
        return cls(int(match[1]), match[2]) if match else None


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a crawl: an entry of the manifest."""

    run: int
    started: datetime
    ended: datetime | None = None
    targets: tuple[str, ...] = ()  #: what was given, if a later call can read it again
    options: Mapping[str, Any] = field(default_factory=dict)
    outcomes: Mapping[str, int] = field(default_factory=dict)  #: outcome -> number of sites

    @property
    def walk(self) -> str | None:
        """A mark of the options with which trees were fetched; None if unknown. See `usp.crawl.unchanged`."""
        return self.options.get(_WALK)

    @property
    def has_pages(self) -> bool:
        """Whether the pages of all sites were written."""
        return self.options.get(_HAS_PAGES) is not False

    @property
    def sites(self) -> int:
        """The number of sites, once the run has ended."""
        return sum(self.outcomes.values())

    def to_json(self) -> dict[str, Any]:
        """Return the entry as JSON can hold it."""
        values = asdict(self)
        return {**values, "started": _written(self.started), "ended": self.ended and _written(self.ended)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Return the entry that `to_json` made. Fields that a later version has added are skipped."""
        known = {name: values[name] for name in (field.name for field in fields(cls)) if name in values}
        ended = known.get("ended")
        known["started"] = _moment(known["started"])
        known["ended"] = None if ended is None else _moment(ended)
        known["targets"] = tuple(known.get("targets", ()))
        run = cls(**known)
        if not _is_number(run.run) or not all(isinstance(target, str) for target in run.targets):
            raise ValueError("a run needs a number, and its targets are texts")
        if not isinstance(run.options, dict) or not all(map(_is_number, run.outcomes.values())):
            raise ValueError("the options of a run are an object, and its outcomes are numbers")
        return run


def _moment(text: str) -> datetime:
    """Return the time that `_written` wrote; in UTC, if it does not say in which zone."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()


def is_crawl_folder(path: str | os.PathLike[str]) -> bool:
    """Return whether a path, or a URL of an object store, is a crawl folder. Of websites, nothing is asked."""
    return not os.fspath(path).lower().startswith(("http://", "https://")) and storage_at(path).exists(MANIFEST)


class CrawlFolder:
    """A crawl folder, to read. `writing()` locks it to write.

    :param path: where it is: a path, or a URL such as s3://bucket/crawl.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._storage = storage_at(path)
        self.path = self._storage.path
        self._runs = self._read_manifest()

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> Self:
        """Open a crawl folder, and make it if there is none.

        :raises CrawlFolderError: if there is something else at the path.
        """
        storage = storage_at(path)
        if not storage.exists(MANIFEST):
            if any(not name.startswith(".") for name in storage.names()):
                raise CrawlFolderError(f"{path} has files, and is not a crawl folder; give a new or an empty folder")
            try:
                storage.write(MANIFEST, _manifest(()))
            except (FileExistsError, NotADirectoryError):
                raise CrawlFolderError(f"{path} cannot be a folder: a file is in its place; give a folder") from None
        return cls(path)

    @staticmethod
    def is_at(path: str | os.PathLike[str]) -> bool:
        """Return whether there is a crawl folder at a path."""
        return storage_at(path).exists(MANIFEST)

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs, oldest first."""
        return self._runs

    def has(self, table: str, part: PartName) -> bool:
        """Return whether a part has rows in a table."""
        return self._storage.exists(_name(table, part))

    def parts(self, run: int | None = None) -> list[PartName]:
        """Return the committed parts in order, those of one run or all."""
        return _without_repeated(part for part in self._named(_COMMIT) if run is None or part.run == run)

    def part_of_task(self, name: PartName) -> PartName | None:
        """Return the committed part of the task that a part belongs to; None if there is none yet."""
        return next((part for part in self.parts(name.run) if part.task and part.task == name.task), None)

    def with_rows(self, table: str, parts: Iterable[PartName] | None = None) -> list[PartName]:
        """Return the committed parts that have rows in a table, in order."""
        present = set(self._named(table))
        return [part for part in (self.parts() if parts is None else parts) if part in present]

    def arrow_source(self, table: str, part: PartName) -> Any:
        """Return what pyarrow reads a table of a part from."""
        return self._storage.arrow_source(_name(table, part))

    def query_path(self, connection: Any, table: str, part: PartName) -> str:
        """Return the name of the file of a part in queries of a DuckDB connection."""
        return self._storage.query_path(connection, _name(table, part))

    def state(self, table: str, part: PartName) -> tuple[int, int]:
        """Return what tells one version of the file of a part from another.

        :raises OSError: if there is no such file.
        """
        return self._storage.state(_name(table, part))

    def location(self, table: str, part: PartName) -> str:
        """Return the path or the URL of the file of a part, for messages."""
        return self._storage.location(_name(table, part))

    def warc_size(self, name: str) -> int | None:
        """Return the size of a WARC file; None if there is none."""
        try:
            return self._storage.state(f"{_WARC}/{os.path.basename(name)}")[1]
        except OSError:
            return None

    def read_warc(self, name: str, offset: int, length: int) -> bytes:
        """Return some bytes of a WARC file.

        :raises OSError: if it cannot be read.
        """
        return self._storage.read_range(f"{_WARC}/{os.path.basename(name)}", offset, length)

    def open_warc(self, name: str) -> BinaryIO:
        """Open a WARC file."""
        return self._storage.open(f"{_WARC}/{os.path.basename(name)}")

    def _named(self, table: str) -> Iterator[PartName]:
        """Give the parts that have a file of this table, committed or not."""
        suffix = _SUFFIXES[table]
        for name in self._storage.names(table):
            if name.endswith(suffix) and (part := PartName.parse(name.removesuffix(suffix))) is not None:
                yield part

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Lock the folder for one process that crawls it again and again. Between its runs, others may write.

        :raises CrawlFolderError: if another process watches it.
        """
        if not isinstance(self._storage, LocalStorage):
            raise CrawlFolderError(f"usp watch needs a folder on disk, and {self.path} is none; use usp crawl and diff")
        with self._storage.locked(_WATCH_LOCK, f"another usp watch is at work on {self.path}; end it first"):
            yield

    # Writing

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Lock the folder, and remove what killed processes have left.

        :raises CrawlFolderError: if another process writes to it.
        """
        with self._storage.locked(_LOCK, f"another process is writing to {self.path}; wait until it has ended"):
            self._runs = self._read_manifest()  # another process may have written it
            self.remove_uncommitted()
            yield

    def remove_uncommitted(self) -> None:
        """Remove all files that belong to no committed part. Nothing may be writing."""
        committed = set(self.parts())
        for table in (_COMMIT, *(table for table in _SUFFIXES if table != _COMMIT)):  # no part loses its pages first
            left = [_file_name(table, part) for part in self._named(table) if part not in committed]
            self._storage.remove(table, [*self._storage.unfinished(table), *left])

    def start_run(
        self,
        started: datetime,
        targets: Iterable[str],
        options: Mapping[str, Any],
        walk: str | None = None,
        *,
        has_pages: bool = True,
    ) -> Run:
        """Add a run to the manifest.

        :param walk: what tells the walks of the run from others.
        :param has_pages: whether its pages are written.
        """
        last = self._runs[-1].run if self._runs else 0
        noted = {**options, **({} if walk is None else {_WALK: walk}), **({} if has_pages else {_HAS_PAGES: False})}
        run = Run(last + 1, started, targets=tuple(targets), options=noted)
        self._write_runs((*self._runs, run))
        return run

    def resume_run(self, run: Run, walk: str | None, *, has_pages: bool = True) -> Run:
        """Go on with a run. If it walks differently now, nobody knows any more how it has walked."""
        options = dict(run.options)
        if run.walk != walk:
            options.pop(_WALK, None)
        if not has_pages:
            options[_HAS_PAGES] = False
        return run if options == run.options else self._write_run(replace(run, options=options))

    def end_run(self, run: Run, ended: datetime, outcomes: Mapping[str, int]) -> Run:
        """Note in the manifest that a run has ended."""
        return self._write_run(replace(run, ended=ended, outcomes=dict(outcomes)))

    def drop_run(self, run: Run) -> None:
        """Remove a run that has crawled no site from the manifest."""
        self._write_runs(tuple(other for other in self._runs if other.run != run.run))

    def new_file(self, table: str, part: PartName) -> NewFile:
        """Create a file of a part that is not committed yet."""
        return self._storage.new_file(_name(table, part))

    def _write_run(self, run: Run) -> Run:
        self._write_runs(tuple(run if other.run == run.run else other for other in self._runs))
        return run

    def _write_runs(self, runs: tuple[Run, ...]) -> None:
        self._storage.write(MANIFEST, _manifest(runs))
        self._runs = runs

    def _read_manifest(self) -> tuple[Run, ...]:
        path = self._storage.location(MANIFEST)
        try:
            with self._storage.open(MANIFEST) as file:
                manifest = json.loads(file.read())
        except (FileNotFoundError, NotADirectoryError):
            raise CrawlFolderError(f"{self.path} is not a crawl folder: it has no {MANIFEST}") from None
        except (ValueError, RecursionError):
            raise CrawlFolderError(f"{path} cannot be read: it is not JSON") from None
        if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
            raise CrawlFolderError(f"{self.path} is not a crawl folder: {MANIFEST} is of another program")
        if manifest.get("version") != FORMAT_VERSION:
            raise CrawlFolderError(
                f"{self.path} has version {manifest.get('version')!r} of the format, and this usp reads"
                f" {FORMAT_VERSION}; use the usp that wrote it, or a newer one"
            )
        try:
            runs = tuple(map(Run.from_json, manifest["runs"]))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise CrawlFolderError(f"{path} cannot be read: {error!r:.200}") from None
        if any(later.run <= earlier.run for earlier, later in pairwise(runs)):
            raise CrawlFolderError(f"{path} cannot be read: its runs are not in order")
        return runs


def _name(table: str, part: PartName) -> str:
    return f"{table}/{_file_name(table, part)}"


def _file_name(table: str, part: PartName) -> str:
    return f"{part}{_SUFFIXES[table]}"


def _without_repeated(parts: Iterable[PartName]) -> list[PartName]:
    """Return parts in order, without those of tasks that ran twice: all but the first with the same hash."""
    found: dict[tuple[int, str], PartName] = {}
    for part in sorted(parts):
        found.setdefault((part.run, part.task or part.mark), part)
    return list(found.values())


def _manifest(runs: Iterable[Run]) -> bytes:
    manifest = {"format": _FORMAT, "version": FORMAT_VERSION, "runs": [run.to_json() for run in runs]}
    return json.dumps(manifest, indent=1, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
