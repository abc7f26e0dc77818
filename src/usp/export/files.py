"""Files that are written whole or not at all.

A file is written under a hidden temporary name in the folder where it is to be, and takes its own name when it is whole
and on the disk. Killed at any moment, either the old file is there or the new one. What a killed program leaves under a
temporary name is removed by the next one that writes the same file: whoever writes holds a lock on it, which ends with
the process. Where there are no such locks, on Windows, it stays.

What is no file of its own, a device, a pipe or /dev/stdout, is written directly.
"""

from __future__ import annotations

import errno
import gzip
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from stat import S_IMODE, S_ISREG
from typing import IO, BinaryIO, cast

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["ensure_writable", "gzip_stream", "is_stream", "open_whole", "whole_file"]

_NAME_LENGTH = 50  # of a file's name within a temporary one: file systems take 255 bytes, a character has up to 4
_GZIP_LEVEL = 2  # of isal's 0 to 3
_PLAIN_GZIP_LEVEL = 3  # of zlib's 1 to 9
#: What writing runs into, and reading a site does not. The file is named in them.
_OF_DISKS = {errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EROFS, getattr(errno, "EDQUOT", errno.ENOSPC)}


def is_stream(path: str) -> bool:
    """Whether a path is no file of its own: a device, a pipe, or what this program has open, like /dev/stdout."""
    if path.startswith(("/dev/fd/", "/dev/std", "/proc/")):
        return True
    return os.path.exists(path) and not os.path.isdir(path) and not S_ISREG(os.stat(path).st_mode)


def ensure_writable(path: str) -> None:
    """Raise an OSError where a file cannot be written, as far as that is known before."""
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
    """The temporary name of a file, which takes its own name at the end; on any exception all is as it was before.

    The target of a link is replaced, not the link. A file that is replaced keeps its mode. What is no file of its own
    is given as it is; it should be opened to append.
    """
    ensure_writable(path)
    if is_stream(path):
        with _named(path, path):
            yield path
        return
    real_path = os.path.realpath(path)
    _remove_leftovers(real_path)
    temporary, held = _begun(real_path)
    with held:
        try:
            with _named(path, temporary):
                yield temporary
                _finish(temporary, held, real_path)
        except BaseException:  # Ctrl-C, too, leaves no half of a file
            held.close()  # Windows removes no open file
            with suppress(OSError):
                os.remove(temporary)
            raise
    _sync_folder(os.path.dirname(real_path))


@contextmanager
def open_whole(path: str) -> Iterator[BinaryIO]:
    """A file to be written whole, opened."""
    with whole_file(path) as name, open(name, "ab" if is_stream(path) else "wb") as stream:
        yield stream


@contextmanager
def gzip_stream(stream: IO[bytes]) -> Iterator[BinaryIO]:
    """What is written into it is gzipped into the stream, which is left open. Equal data makes equal files."""
    try:
        from isal.igzip import IGzipFile
    except ImportError:
        packed = gzip.GzipFile("", "wb", _PLAIN_GZIP_LEVEL, stream, mtime=0)
    else:
        packed = IGzipFile("", "wb", _GZIP_LEVEL, stream, mtime=0)  # type: ignore[no-untyped-call]  # it has no types
    with closing(packed):
        yield cast(BinaryIO, packed)


@contextmanager
def _named(path: str, temporary: str) -> Iterator[None]:
    """Errors of the disk speak of the file, not of a name that nobody has asked for."""
    try:
        yield
    except OSError as error:
        is_ours = error.filename == temporary or (error.filename is None and error.errno in _OF_DISKS)
        if not is_ours or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, path) from error


def _begun(path: str) -> tuple[str, BinaryIO]:
    """A new temporary file: its name, and the file itself, opened, which holds the lock."""
    while True:
        temporary = _temporary_name(path, secrets.token_hex(8))
        # What replaces a file is for nobody else to read before it has that file's mode.
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
    """Lock a file; whether that was done, and it is still there: another process may have taken it for a leftover."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except OSError as error:
        # Where a file system has no locks, nobody gets one, and nobody removes a leftover.
        return error.errno not in (errno.EWOULDBLOCK, errno.EACCES, errno.ENOENT)


def _remove_leftovers(path: str) -> None:
    """Remove temporary files of this file whose process has ended."""
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


def _sync_folder(folder: str) -> None:
    """Have the new name on the disk, where folders can be opened for that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
