"""The crawl folder: its manifest, its lock, and its parts, which are there completely or not at all.

    crawl.json                        the manifest: the version of the format, and one entry for each run
    sites/00001-000001.parquet        run 1, part 1. When this file appears, the part is committed.
    sitemaps/00001-000001.parquet
    pages/00001-000001.parquet
    problems/00001-000001.parquet
    warc/00001-000001.warc.gz

A part has all rows of its sites. Its files are written as `*.partial`, flushed to disk and renamed, `sites` last. So a
process may be killed, or the power fail, at any moment: whoever opens the folder to write removes what belongs to no
committed part. A table without rows has no file in a part.

This module knows files and names. It does not know what is in the tables.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, BinaryIO, NamedTuple, Self

from usp.crawl.schema import FORMAT_VERSION, TABLES
from usp.exceptions import CrawlFolderError
from usp.export.files import open_whole, sync_folder

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["MANIFEST", "CrawlFolder", "NewFile", "PartName", "Run", "is_crawl_folder"]

MANIFEST = "crawl.json"
_FORMAT = "usp-crawl"
_LOCK = "crawl.lock"
_PARTIAL = ".partial"
_COMMIT = "sites"  # the table whose file commits a part
_WARC = "warc"
_SUFFIXES = {**dict.fromkeys(TABLES, ".parquet"), _WARC: ".warc.gz"}
_PART = re.compile(r"(\d{5,})-([0-9a-z]{6,40})")


class PartName(NamedTuple):
    """The name of a part: its run, and what tells it from the others of the run."""

    run: int
    mark: str

    def __str__(self) -> str:
        return f"{self.run:05}-{self.mark}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the name that a text has, or None."""
        match = _PART.fullmatch(text)
        return cls(int(match[1]), match[2]) if match else None


@dataclass(frozen=True, slots=True)
class Run:
    """An entry of the manifest."""

    run: int
    started: datetime
    ended: datetime | None = None
    targets: tuple[str, ...] = ()  #: what was given, if a later call can read it again
    options: Mapping[str, Any] = field(default_factory=dict)
    outcomes: Mapping[str, int] = field(default_factory=dict)  #: outcome -> number of sites

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
        known["started"] = datetime.fromisoformat(known["started"])
        known["ended"] = None if ended is None else datetime.fromisoformat(ended)
        known["targets"] = tuple(known.get("targets", ()))
        return cls(**known)


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()


def is_crawl_folder(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a crawl folder."""
    return os.path.isfile(os.path.join(path, MANIFEST))


class CrawlFolder:
    """A crawl folder, to read. `writing()` locks it to write."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._runs = self._read_manifest()

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> Self:
        """Open a crawl folder, and make it if there is none.

        :raises CrawlFolderError: if there is something else at the path.
        """
        path = os.fspath(path)
        if not is_crawl_folder(path):
            if os.path.isdir(path) and any(not name.startswith(".") for name in os.listdir(path)):
                raise CrawlFolderError(f"{path} has files, and is not a crawl folder; give a new or an empty folder")
            os.makedirs(path, exist_ok=True)
            _write_manifest(path, ())
        return cls(path)

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs, oldest first."""
        return self._runs

    def file(self, table: str, part: PartName) -> str:
        """Return the path of a file of a part."""
        return os.path.join(self.path, table, f"{part}{_SUFFIXES[table]}")

    def has(self, table: str, part: PartName) -> bool:
        """Return whether a part has rows in a table."""
        return os.path.exists(self.file(table, part))

    def parts(self, run: int | None = None) -> list[PartName]:
        """Return the committed parts in order, those of one run or all."""
        return sorted(part for part in self._named(_COMMIT) if run is None or part.run == run)

    def files(self, table: str, parts: Iterable[PartName] | None = None) -> list[str]:
        """Return the files of a table in committed parts, in order."""
        return [self.file(table, part) for part in (self.parts() if parts is None else parts) if self.has(table, part)]

    def _named(self, table: str) -> Iterator[PartName]:
        """Give the parts that have a file of this table, committed or not."""
        suffix = _SUFFIXES[table]
        for name in _listed(os.path.join(self.path, table)):
            if name.endswith(suffix) and (part := PartName.parse(name.removesuffix(suffix))) is not None:
                yield part

    # Writing

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Lock the folder, and remove what killed processes have left.

        :raises CrawlFolderError: if another process writes to it.
        """
        with open(os.path.join(self.path, _LOCK), "ab") as lock:
            _lock(lock, self.path)
            self._runs = self._read_manifest()  # another process may have written it
            self._remove_uncommitted()
            yield

    def _remove_uncommitted(self) -> None:
        committed = set(self.parts())
        for table in _SUFFIXES:
            folder = os.path.join(self.path, table)
            for name in _listed(folder):
                if name.endswith(_PARTIAL):
                    os.remove(os.path.join(folder, name))
            for part in self._named(table):
                if part not in committed:
                    os.remove(self.file(table, part))

    def start_run(self, started: datetime, targets: Iterable[str], options: Mapping[str, Any]) -> Run:
        """Add a run to the manifest."""
        last = self._runs[-1].run if self._runs else 0
        run = Run(last + 1, started, targets=tuple(targets), options=dict(options))
        self._write_runs((*self._runs, run))
        return run

    def end_run(self, run: Run, ended: datetime, outcomes: Mapping[str, int]) -> Run:
        """Note in the manifest that a run has ended."""
        ended_run = replace(run, ended=ended, outcomes=dict(outcomes))
        self._write_runs(tuple(ended_run if other.run == run.run else other for other in self._runs))
        return ended_run

    def new_file(self, table: str, part: PartName) -> NewFile:
        """Create a file of a part that is not committed yet."""
        path = self.file(table, part)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return NewFile(path)

    def _write_runs(self, runs: tuple[Run, ...]) -> None:
        _write_manifest(self.path, runs)
        self._runs = runs

    def _read_manifest(self) -> tuple[Run, ...]:
        path = os.path.join(self.path, MANIFEST)
        try:
            with open(path, "rb") as file:
                manifest = json.load(file)
        except FileNotFoundError:
            raise CrawlFolderError(f"{self.path} is not a crawl folder: it has no {MANIFEST}") from None
        except ValueError:
            raise CrawlFolderError(f"{path} cannot be read: it is not JSON") from None
        if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
            raise CrawlFolderError(f"{self.path} is not a crawl folder: {MANIFEST} is of another program")
        if manifest.get("version") != FORMAT_VERSION:
            raise CrawlFolderError(
                f"{self.path} has version {manifest.get('version')!r} of the format, and this usp reads"
                f" {FORMAT_VERSION}; use the usp that wrote it, or a newer one"
            )
        try:
            return tuple(map(Run.from_json, manifest["runs"]))
        except (KeyError, TypeError, ValueError) as error:
            raise CrawlFolderError(f"{path} cannot be read: {error!r}") from None


class NewFile:
    """A file that gets its name when it is finished."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.stream: BinaryIO = open(path + _PARTIAL, "wb")  # noqa: SIM115 -- finish() or drop() closes it

    def finish(self) -> None:
        """Write the file to disk, and give it its name."""
        self.stream.flush()
        os.fsync(self.stream.fileno())
        self.stream.close()
        os.replace(self._path + _PARTIAL, self._path)
        sync_folder(os.path.dirname(self._path))

    def drop(self) -> None:
        """Remove the file, unless it is finished."""
        with suppress(OSError):  # a full disk may fail to flush; nothing of the file is needed
            self.stream.close()
        with suppress(FileNotFoundError):
            os.remove(self._path + _PARTIAL)


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []


def _write_manifest(path: str, runs: Iterable[Run]) -> None:
    manifest = {"format": _FORMAT, "version": FORMAT_VERSION, "runs": [run.to_json() for run in runs]}
    with open_whole(os.path.join(path, MANIFEST)) as file:
        file.write(json.dumps(manifest, indent=1, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")


def _lock(file: BinaryIO, path: str) -> None:
    """Lock a file for as long as it is open."""
    if fcntl is None:
        import msvcrt

        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            raise _locked(path) from None
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise _locked(path) from None
        # Some network file systems have no locks. Nothing protects the folder there.


def _locked(path: str) -> CrawlFolderError:
    return CrawlFolderError(f"another process is writing to {path}; wait until it has ended")
