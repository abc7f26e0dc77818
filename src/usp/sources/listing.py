"""The files of a folder, or of a zip archive, that may be sitemaps."""

from __future__ import annotations

import os
import re
import time
import zipfile
from collections.abc import Collection, Iterator
from typing import BinaryIO, cast

from usp.exceptions import InvalidArgumentError
from usp.limits import MAX_SITEMAP_BYTES

__all__ = ["MAX_FILES", "ROBOTS", "FolderFiles", "ZipFiles", "name_of"]

#: How many files of a folder may be sitemaps.
MAX_FILES = 100_000
ROBOTS = "robots.txt"
_MACOS = "__MACOSX"  # a folder that macOS adds to archives
_MAX_DEPTH = 100  # of folders: `os.walk` calls itself for each level
_LOOKS_LIKE_SITEMAP = re.compile(r"\.(?:xml|txt|rss|atom|rdf|gz)", re.IGNORECASE)
_MAY_BE_LISTED = re.compile(r"[^.]+|.*(?:sitemap|feed).*", re.IGNORECASE)


class FolderFiles:
    """The files of a folder that may be sitemaps, by their paths below it, with "/" between the parts.

    `guesses` are files to read even if no sitemap lists them. If a file and its ".gz" are both there, only the first
    is a guess: servers keep compressed copies beside files. Neither is a link to another file.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.max_bytes = MAX_SITEMAP_BYTES  # to read of one file
        self.unlisted: dict[str, str] = {}  # folders that cannot be read, and why
        self._real_folder = os.path.realpath(folder)
        self._targets: dict[str, str] = {}  # links -> the files that they lead to
        self.paths = dict.fromkeys(self._counted())
        looks = dict.fromkeys(path for path in self.paths if _looks_like_sitemap(path))
        if not looks:
            raise InvalidArgumentError(
                f"no sitemap in {folder}: looked for robots.txt, and for names that end in"
                " .xml, .txt, .rss, .atom, .rdf or .gz, in the folder and all below it"
            )
        self.guesses = [
            path
            for path in looks
            if name_of(path) != ROBOTS
            and self._targets.get(path) not in looks
            and not (_without_gz(path) != path and self._has(_without_gz(path)))
        ]

    def close(self) -> None:
        """Close what is open. Nothing is, for a folder."""

    def read(self, path: str, size: int) -> tuple[bytes, float]:
        """Return the first bytes of a file, and when it was last written. Raises OSError."""
        with open(self.full(path), "rb") as file:
            return file.read(size), os.fstat(file.fileno()).st_mtime

    def full(self, path: str) -> str:
        """Return the path of a file as reports show it."""
        return os.path.join(self.folder, *path.split("/"))

    def identity(self, path: str) -> str:
        """Return the same for all files with the same content: a file, its compressed copy, and links to them."""
        return _without_gz(self._targets.get(path, path))

    def _counted(self) -> Iterator[str]:
        for count, path in enumerate(self._listed()):
            if count >= MAX_FILES:
                raise InvalidArgumentError(
                    f"more than {MAX_FILES:,} files in {self.folder} may be sitemaps; name a folder with fewer"
                )
            yield path

    def _listed(self) -> Iterator[str]:
        """Give the paths of all files that may be sitemaps."""
        os.scandir(self.folder).close()  # raises if the folder itself cannot be read
        for place, folders, names in os.walk(self.folder, onerror=self._note_error):
            is_deep = _below(place, self.folder).count("/") >= _MAX_DEPTH
            folders[:] = [] if is_deep else sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                path = os.path.join(place, name)
                # isfile: reading a pipe would block.
                if not _may_be_sitemap(name) or not os.path.isfile(path):
                    continue
                below = _below(path, self.folder)
                if not os.path.islink(path) or self._is_followed(below):
                    yield below

    def _has(self, path: str) -> bool:
        return os.path.isfile(self.full(path))

    def _is_followed(self, link: str) -> bool:
        """Return whether a link stays in the folder."""
        target = _below(os.path.realpath(self.full(link)), self._real_folder)
        if target.startswith("../") or os.path.isabs(target):
            return False
        self._targets[link] = target
        return True

    def _note_error(self, error: OSError) -> None:
        self.unlisted[_below(str(error.filename), self.folder)] = str(error.strerror)


class ZipFiles(FolderFiles):
    """The files of a zip archive that may be sitemaps, in the order of their names.

    If the root of the site is a folder in the archive, paths are those below it. No file is ever written.
    """

    def __init__(self, archive: str) -> None:
        self._members: dict[str, zipfile.ZipInfo] = {}
        self._top = ""  # the folder with the site
        try:
            self._archive = zipfile.ZipFile(archive)
        except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            raise InvalidArgumentError(f"{archive} cannot be read as a zip archive: {error}") from None
        try:
            super().__init__(archive)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the archive."""
        self._archive.close()

    def read(self, path: str, size: int) -> tuple[bytes, float]:
        """Return the first bytes of a member, and when it was last written. Raises OSError."""
        member = self._members[path]
        try:
            with self._archive.open(member) as file:
                data = cast("BinaryIO", file).read(size)
        except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError, EOFError) as error:
            raise OSError(0, f"in the archive: {error}") from None
        except Exception as error:  # zlib, lzma and bz2 each have errors of their own for damaged data
            raise OSError(0, f"in the archive: {type(error).__name__}: {error}") from None
        return data, time.mktime((*member.date_time, 0, 0, -1)) if 1970 <= member.date_time[0] <= 2107 else 0.0

    def full(self, path: str) -> str:
        """Return the path of a member as reports show it."""
        return super().full(self._top + path)

    def _listed(self) -> Iterator[str]:
        members = {_member_path(member): member for member in self._archive.infolist() if not member.is_dir()}
        wanted = {path: member for path, member in members.items() if _is_wanted_member(path)}
        self._top = _folder_of_robots(wanted)
        for path in sorted(wanted):
            below = path.removeprefix(self._top)
            self._members[below] = wanted[path]
            yield below

    def _has(self, path: str) -> bool:
        return path in self._members


def _member_path(member: zipfile.ZipInfo) -> str:
    """Return the path of a member as it would be extracted: below the folder, and with slashes."""
    parts = member.filename.replace("\\", "/").split("/")
    return "/".join(part for part in parts if part not in ("", ".", ".."))


def _is_wanted_member(path: str) -> bool:
    *folders, name = path.split("/")
    return _may_be_sitemap(name) and not any(folder.startswith(".") or folder == _MACOS for folder in folders)


def _folder_of_robots(paths: Collection[str]) -> str:
    """Return the folder that has everything in it and a robots.txt: an archive of "public/" has only that in it."""
    tops = {path.partition("/")[0] for path in paths}
    top = f"{tops.pop()}/" if len(tops) == 1 else ""
    return top if f"{top}{ROBOTS}" in paths else ""


def name_of(path: str) -> str:
    """Return the last part of a path."""
    return path.rpartition("/")[2]


def _may_be_sitemap(name: str) -> bool:
    is_fork = name.startswith("._")  # macOS keeps what it knows about a file in one of this name
    return not is_fork and (_looks_like_sitemap(name) or _MAY_BE_LISTED.fullmatch(name) is not None)


def _looks_like_sitemap(path: str) -> bool:
    return _LOOKS_LIKE_SITEMAP.fullmatch(os.path.splitext(path)[1]) is not None


def _without_gz(path: str) -> str:
    return path[: -len(".gz")] if path.lower().endswith(".gz") else path


def _below(path: str, folder: str) -> str:
    return os.path.relpath(path, folder).replace(os.sep, "/")
