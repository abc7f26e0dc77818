"""Where the files of a crawl folder are: on disk here, or in an object store (`usp.crawl.remote`).

A file is there completely or not at all. Its name is relative to the folder, with slashes. This module knows no names
of tables, and not what is in the files.
"""

from __future__ import annotations

import errno
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from stat import S_ISREG
from typing import Any, BinaryIO
from urllib.parse import urlsplit
from urllib.request import url2pathname

from usp.exceptions import CrawlFolderError
from usp.export.files import open_whole, sync_folder

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["LocalStorage", "NewFile", "Storage", "open_file", "storage_at"]

_PARTIAL = ".partial"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


class NewFile(ABC):
    """A file that appears when it is finished. Write to its `stream`."""

    stream: BinaryIO

    @abstractmethod
    def finish(self) -> None:
        """Make the file appear, complete and durable."""

    @abstractmethod
    def drop(self) -> None:
        """Remove what was written, unless it is finished."""


class Storage(ABC):
    """The files of a crawl folder.

    :param path: the folder as the user names it, for messages.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    @abstractmethod
    def exists(self, name: str) -> bool:
        """Return whether there is a file."""

    @abstractmethod
    def names(self, folder: str = "") -> list[str]:
        """Return the names of the files and folders in a folder, sorted; none, if there is no such folder."""

    @abstractmethod
    def open(self, name: str) -> BinaryIO:
        """Open a file to read it, at any place.

        :raises OSError: if it cannot be read.
        """

    @abstractmethod
    def new_file(self, name: str) -> NewFile:
        """Create a file."""

    @abstractmethod
    def write(self, name: str, content: bytes) -> None:
        """Write or replace a small file."""

    @abstractmethod
    def state(self, name: str) -> tuple[int, int]:
        """Return what tells one version of a file from another: when it was written, and its size.

        :raises OSError: if there is no such file.
        """

    @abstractmethod
    def location(self, name: str) -> str:
        """Return the path or the URL of a file, for messages."""

    @abstractmethod
    def read_range(self, name: str, offset: int, length: int) -> bytes:
        """Return some bytes of a file, in one step.

        :raises OSError: if it cannot be read.
        """

    @abstractmethod
    def unfinished(self, folder: str) -> list[str]:
        """Return the names of files in a folder that killed processes have not finished."""

    @abstractmethod
    def remove(self, folder: str, names: Collection[str]) -> None:
        """Remove files of a folder for good."""

    @abstractmethod
    def locked(self, name: str, refusal: str) -> AbstractContextManager[None]:
        """Hold a lock of this name, where there are locks.

        :raises CrawlFolderError: with the text of `refusal`, if another process has it.
        """

    @abstractmethod
    def arrow_source(self, name: str) -> Any:
        """Return what pyarrow reads a file from."""

    @abstractmethod
    def query_path(self, connection: Any, name: str) -> str:
        """Return the name of a file in queries of a DuckDB connection."""


def storage_at(path: str | os.PathLike[str]) -> Storage:
    """Return the storage at a path, or at a URL such as s3://bucket/crawl.

    :raises CrawlFolderError: if it is a URL that nothing here can read.
    :raises MissingExtraError: if it is a URL, and pyarrow or fsspec is not installed.
    """
    text = os.fspath(path)
    if (local := _local_path(text)) is not None:
        return LocalStorage(local)
    from usp.crawl.remote import RemoteStorage  # few crawls are in object stores

    return RemoteStorage(text)


def open_file(path: str) -> BinaryIO:
    """Open a file to read it at any place, at a path or a URL.

    :raises OSError: if it cannot be read.
    """
    if (local := _local_path(path)) is not None:
        return open(local, "rb")
    from usp.crawl.remote import open_remote

    return open_remote(path)


def _local_path(text: str) -> str | None:
    """Return a path on this machine; None for the URL of something elsewhere."""
    if not _URL.match(text):
        return text
    return url2pathname(urlsplit(text).path) if text.lower().startswith("file://") else None


class LocalStorage(Storage):
    """A folder on disk.

    A file is written under another name, flushed to disk and renamed. So a process may be killed, or the power fail, at
    any moment.
    """

    def exists(self, name: str) -> bool:
        """Return whether there is a file."""
        return os.path.isfile(self._path(name))

    def names(self, folder: str = "") -> list[str]:
        """Return the names in a folder, sorted."""
        try:
            return sorted(os.listdir(self._path(folder)))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def open(self, name: str) -> BinaryIO:
        """Open a file to read it."""
        return open(self._path(name), "rb")

    def new_file(self, name: str) -> NewFile:
        """Create a file."""
        path = self._path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return _LocalFile(path)

    def write(self, name: str, content: bytes) -> None:
        """Write or replace a small file."""
        _make_folder(os.path.abspath(self.path))
        with open_whole(self._path(name)) as file:
            file.write(content)

    def state(self, name: str) -> tuple[int, int]:
        """Return when a file was written, and its size."""
        status = os.stat(self._path(name))
        if not S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a file")
        return status.st_mtime_ns, status.st_size

    def location(self, name: str) -> str:
        """Return the path of a file."""
        return self._path(name)

    def read_range(self, name: str, offset: int, length: int) -> bytes:
        """Return some bytes of a file."""
        file = os.open(self._path(name), os.O_RDONLY | getattr(os, "O_BINARY", 0))
        try:
            if hasattr(os, "pread"):
                return os.pread(file, length, offset)
            os.lseek(file, offset, os.SEEK_SET)  # Windows
            return os.read(file, length)
        finally:
            os.close(file)

    def unfinished(self, folder: str) -> list[str]:
        """Return the names of files that were not renamed."""
        return [name for name in self.names(folder) if name.endswith(_PARTIAL)]

    def remove(self, folder: str, names: Collection[str]) -> None:
        """Remove files of a folder. After a power cut, none of them comes back as a file of the next part."""
        for name in names:
            os.remove(self._path(f"{folder}/{name}"))
        if names:
            sync_folder(self._path(folder))

    @contextmanager
    def locked(self, name: str, refusal: str) -> Iterator[None]:
        """Lock a file of this name."""
        with open(self._path(name), "ab") as lock:
            _lock(lock, refusal)
            yield

    def arrow_source(self, name: str) -> str:
        """Return the path of a file."""
        return self._path(name)

    def query_path(self, connection: Any, name: str) -> str:
        """Return the path of a file."""
        return self._path(name)

    def _path(self, name: str) -> str:
        return os.path.join(self.path, *name.split("/")) if name else self.path


class _LocalFile(NewFile):
    """A file that is renamed when it is finished. The temporary name is not that of any other process."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._partial = f"{path}.{os.urandom(4).hex()}{_PARTIAL}"
        self.stream: BinaryIO = open(self._partial, "wb")  # noqa: SIM115 -- finish() or drop() closes it

    def finish(self) -> None:
        self.stream.flush()
        os.fsync(self.stream.fileno())
        self.stream.close()
        os.replace(self._partial, self._path)
        folder = os.path.dirname(self._path)
        sync_folder(folder)
        sync_folder(os.path.dirname(folder))  # it may be new, and a power cut would take it with all its files

    def drop(self) -> None:
        with suppress(OSError):  # a full disk may fail to flush; nothing of the file is needed
            self.stream.close()
        with suppress(FileNotFoundError):
            os.remove(self._partial)


def _make_folder(path: str) -> None:
    """Make a folder, and those above it that are not there, so that it stays if the power fails."""
    above = os.path.dirname(path)
    if not os.path.isdir(above):
        _make_folder(above)
    os.makedirs(path, exist_ok=True)
    sync_folder(above)  # in any case: a process that was killed may have made it


def _lock(file: BinaryIO, refusal: str) -> None:
    """Lock a file for as long as it is open. Raise an error with this message if another process has locked it."""
    if fcntl is None:
        import msvcrt

        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            raise CrawlFolderError(refusal) from None
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise CrawlFolderError(refusal) from None
        # Some network file systems have no locks. Nothing protects the folder there.
