"""A crawl folder in an object store: s3://, gs://, abfs:// and whatever pyarrow or fsspec can open.

An object appears when its upload is complete, so nothing is renamed. A file is collected in a temporary one on disk,
and uploaded when it is finished. There are no locks: nothing keeps two crawls from writing to one folder at once.

What a store needs to know stands in the URL or in the environment, so that workers on other machines can open it:
`s3://bucket/crawl?region=eu-west-1`, `s3://bucket/crawl?endpoint_override=http://127.0.0.1:9000`.
"""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cache
from shutil import copyfileobj
from typing import IO, Any, BinaryIO, cast

from usp.crawl.storage import NewFile, Storage
from usp.exceptions import CrawlFolderError
from usp.extras import extra

__all__ = ["RemoteStorage", "open_remote"]

_PIECE_BYTES = 1 << 22
_MEMORY_BYTES = 1 << 18  # of a file that is being written; the rest is on disk


class RemoteStorage(Storage):
    """A folder in an object store."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._files, root = _file_system(url)
        self._root = root.rstrip("/")

    def exists(self, name: str) -> bool:
        """Return whether there is a file."""
        (found,) = self._files.get_file_info([self._path(name)])
        return bool(found.is_file)

    def names(self, folder: str = "") -> list[str]:
        """Return the names in a folder, sorted."""
        selector = extra("pyarrow.fs", "remote").FileSelector(self._path(folder), allow_not_found=True)
        return sorted(found.base_name for found in self._files.get_file_info(selector))

    def open(self, name: str) -> BinaryIO:
        """Open a file to read it."""
        return cast(BinaryIO, self._files.open_input_file(self._path(name)))

    def new_file(self, name: str) -> NewFile:
        """Create a file."""
        return _Upload(self._files, self._path(name))

    def write(self, name: str, content: bytes) -> None:
        """Write or replace a small file."""
        with self._files.open_output_stream(self._path(name), compression=None) as stream:
            stream.write(content)

    def state(self, name: str) -> tuple[int, int]:
        """Return when a file was written, and its size."""
        (found,) = self._files.get_file_info([self._path(name)])
        if not found.is_file:
            raise FileNotFoundError(errno.ENOENT, "there is no such file")
        return found.mtime_ns or 0, found.size or 0

    def location(self, name: str) -> str:
        """Return the name of a file in its store."""
        return self._path(name)

    def read_range(self, name: str, offset: int, length: int) -> bytes:
        """Return some bytes of a file."""
        with self._files.open_input_file(self._path(name)) as file:
            return bytes(file.read_at(length, offset))

    def unfinished(self, folder: str) -> list[str]:
        """Return nothing: an upload that was cut off leaves no file."""
        return []

    def remove(self, folder: str, names: Collection[str]) -> None:
        """Remove files of a folder."""
        for name in names:
            self._files.delete_file(self._path(f"{folder}/{name}"))

    @contextmanager
    def locked(self, name: str, refusal: str) -> Iterator[None]:
        """Do nothing: there are no locks."""
        yield

    def arrow_source(self, name: str) -> Any:
        """Open a file."""
        return self.open(name)

    def query_path(self, connection: Any, name: str) -> str:
        """Make DuckDB read this store, and return the name of a file."""
        wrapper = _duckdb_files(self._files)
        if not connection.filesystem_is_registered(wrapper.protocol):
            connection.register_filesystem(wrapper)
        return f"{wrapper.protocol}://{self._path(name)}"

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root


class _Upload(NewFile):
    """A file that is uploaded when it is finished."""

    def __init__(self, files: Any, path: str) -> None:
        self._files = files
        self._path = path
        spooled = tempfile.SpooledTemporaryFile(_MEMORY_BYTES)  # noqa: SIM115 -- finish() or drop() closes it
        self.stream = cast(BinaryIO, spooled)

    def finish(self) -> None:
        self.stream.seek(0)
        with self._files.open_output_stream(self._path, compression=None) as stream:  # else by the name: .gz
            copyfileobj(cast(IO[bytes], self.stream), stream, _PIECE_BYTES)
        self.stream.close()

    def drop(self) -> None:
        self.stream.close()


def open_remote(url: str) -> BinaryIO:
    """Open a file at a URL to read it at any place.

    :raises OSError: if it cannot be read.
    """
    files, path = _file_system(url)
    return cast(BinaryIO, files.open_input_file(path))


def _file_system(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it. What pyarrow does not know, fsspec may."""
    pa, fs = extra("pyarrow", "remote"), extra("pyarrow.fs", "remote")
    try:
        return cast("tuple[Any, str]", fs.FileSystem.from_uri(url))
    except pa.ArrowInvalid as error:
        core = extra("fsspec.core", "remote")
        try:
            files, path = core.url_to_fs(url)
        except (ImportError, ValueError) as other:
            raise CrawlFolderError(f"{url} cannot be opened: {error}; {other}") from None
        return fs.PyFileSystem(fs.FSSpecHandler(files)), path


def _duckdb_files(files: Any) -> Any:
    """Return a file system as DuckDB takes it. It asks for the size of a file once: files never change."""
    wrapper = extra("fsspec.implementations.arrow", "remote").ArrowFSWrapper

    class _Files(wrapper):  # type: ignore[misc, valid-type]  # its base is imported only where it is needed
        protocol = "usp-crawl"

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return path.removeprefix("usp-crawl://")

        @cache  # noqa: B019 -- a connection has one of these, and ends soon
        def info(self, path: str, **kwargs: Any) -> Any:
            return super().info(path, **kwargs)

    return _Files(files)
