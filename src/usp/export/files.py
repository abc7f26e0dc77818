"""Write files completely or not at all.

A file has a hidden temporary name in its folder until it is complete and on disk. Then it is renamed. If the process is
killed at any moment, either the old file or the new one is there. The next export to the same file removes temporary
files of killed processes: a writer holds a lock, which ends with its process. Windows has no such locks, so there they
stay.

Devices, pipes and /dev/stdout are written directly.
"""

from __future__ import annotations

import errno
import gzip
import os
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from stat import S_IMODE, S_ISREG
from typing import IO, BinaryIO, cast

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["ensure_writable", "gzip_stream", "is_stream", "named", "open_whole", "sync_folder", "whole_file"]

_NAME_LENGTH = 50  # characters of the name in a temporary one; file systems allow 255 bytes, a character has up to 4
_GZIP_LEVEL = 2  # of isal's 0 to 3
_PLAIN_GZIP_LEVEL = 3  # of zlib's 1 to 9
#: Errors of writing, not of reading a site. They name the file.
_DISK_ERRORS = {errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EROFS, getattr(errno, "EDQUOT", errno.ENOSPC)}


def is_stream(path: str) -> bool:
    """Return whether a path is a device, a pipe, or a file that this program has open, like /dev/stdout."""
    if path.startswith(("/dev/fd/", "/dev/std", "/proc/")):
        return True
    return os.path.exists(path) and not os.path.isdir(path) and not S_ISREG(os.stat(path).st_mode)


def ensure_writable(path: str) -> None:
    """Raise an OSError if a file cannot be written, as far as that is known now."""
    if is_stream(path):
        return
    path = os.path.realpath(path)
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "Is a folder, not a file", path)
    if os.path.islink(path):
        raise OSError(errno.ELOOP, "Is a link that leads to itself", path)
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "No such folder", folder)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "No file may be made in this folder", folder)


@contextmanager
def whole_file(path: str) -> Iterator[str]:
    """Give a temporary name for a file, and rename it at the end. After an exception, everything is as before.

    If the path is a link, its target is replaced. A replaced file keeps its mode. The path of a device or a pipe is
    given unchanged; open it to append.
    """
    ensure_writable(path)
    if is_stream(path):
        with named(path, path):
            yield path
        return
    real_path = os.path.realpath(path)
    _remove_leftovers(real_path)
    temporary, held = _create_temporary(real_path)
    with held:
        try:
            with named(path, temporary):
                yield temporary
                _finish(temporary, held, real_path)
        except BaseException:  # also after Ctrl-C, no incomplete file stays
            held.close()  # Windows removes no open file
            with suppress(OSError):
                os.remove(temporary)
            raise
    sync_folder(os.path.dirname(real_path))


@contextmanager
def open_whole(path: str) -> Iterator[BinaryIO]:
    """Open a file to write it completely or not at all."""
    with whole_file(path) as name, open(name, "ab" if is_stream(path) else "wb") as stream:
        yield stream


@contextmanager
def gzip_stream(stream: IO[bytes]) -> Iterator[BinaryIO]:
    """Compress into a stream, which stays open. Equal data makes equal files."""
    try:
        from isal.igzip import IGzipFile
    except ImportError:
        packed = gzip.GzipFile("", "wb", _PLAIN_GZIP_LEVEL, stream, mtime=0)
    else:
        packed = IGzipFile("", "wb", _GZIP_LEVEL, stream, mtime=0)  # type: ignore[no-untyped-call]  # it has no types
    with closing(packed):
        yield cast(BinaryIO, packed)


@contextmanager
def named(path: str, temporary: str | None = None) -> Iterator[None]:
    """Name a file or folder in errors of the disk that name none, or its temporary name."""
    try:
        yield
    except OSError as error:
        is_ours = (temporary is not None and error.filename == temporary) or (
            error.filename is None and error.errno in _DISK_ERRORS
        )
        if not is_ours or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, path) from error


def _create_temporary(path: str) -> tuple[str, BinaryIO]:
    """Create a temporary file; return its name and the open file, which holds the lock."""
    while True:
        temporary = _temporary_name(path, os.urandom(8).hex())
        # Nobody else may read a replacement before it has the mode of the file.
        mode = 0o600 if os.path.exists(path) else 0o666
        try:
            held = os.fdopen(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode), "rb+")
        except OSError as error:
            raise OSError(error.errno, error.strerror, path) from error
        if _is_locked_here(held, temporary):
            return temporary, held
        held.close()


def _finish(temporary: str, held: BinaryIO, path: str) -> None:
    os.fsync(held.fileno())
    with suppress(FileNotFoundError):
        os.chmod(temporary, S_IMODE(os.stat(path).st_mode))
    if fcntl is None:
        held.close()  # Windows renames nothing that is open
    os.replace(temporary, path)


def _temporary_name(path: str, mark: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name[:_NAME_LENGTH]}.{mark}.tmp")


def _is_locked_here(file: BinaryIO, path: str) -> bool:
    """Lock a file. Return False if that fails, or if another process has removed it as a leftover."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except OSError as error:
        # On a file system without locks nobody gets one, and nobody removes leftovers.
        return error.errno not in (errno.EWOULDBLOCK, errno.EACCES, errno.ENOENT)


def _remove_leftovers(path: str) -> None:
    """Remove the temporary files of this file whose processes have ended."""
    if fcntl is None:
        return
    folder = os.path.dirname(path)
    pattern = re.compile(re.escape(_temporary_name(path, "").removesuffix(".tmp")) + r"[0-9a-f]{16}\.tmp")
    with suppress(PermissionError):  # a folder that may be written to, and not be listed
        for found in filter(pattern.fullmatch, [os.path.join(folder, name) for name in os.listdir(folder)]):
            _remove_leftover(found)


def _remove_leftover(path: str) -> None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return  # another user's, or removed meanwhile
    with os.fdopen(descriptor, "rb+") as file, suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.remove(path)


def sync_folder(folder: str) -> None:
    """Write the names in a folder to disk. Do nothing where folders cannot be opened, or are not written apart.

    :raises OSError: if the disk fails.
    """
    try:
        descriptor = os.open(folder or ".", os.O_RDONLY)
    except PermissionError:  # Windows, or a folder whose names may not be read
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network file systems
            raise
    finally:
        os.close(descriptor)
