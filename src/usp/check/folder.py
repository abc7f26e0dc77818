"""A folder of files, and a client that answers from it as the site would whose files these are.

No path is ever made of what a document says: URLs are looked up among the files that were found in the folder.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from http import HTTPStatus
from urllib.parse import quote, unquote_to_bytes, urlsplit

from usp.exceptions import InvalidArgumentError
from usp.origins import host_of, requested_url
from usp.web_client.abstract_client import (
    AbstractWebClient,
    AbstractWebClientResponse,
    LocalWebClientSuccessResponse,
    WebClientErrorResponse,
)

__all__ = ["MAX_FILES", "NO_FILE", "ROBOTS", "Files", "FolderClient", "name_of", "quoted", "unquoted"]

#: How many files of a folder are looked at.
_MAX_DEPTH = 100  # of folders: what goes through them calls itself for each level
MAX_FILES = 100_000
NO_FILE = "no such file in the folder"
ROBOTS = "robots.txt"

_LOOKS_LIKE_SITEMAP = re.compile(r"\.(?:xml|txt|rss|atom|rdf|gz)", re.IGNORECASE)
_MAY_BE_LISTED = re.compile(r"[^.]+|.*(?:sitemap|feed).*", re.IGNORECASE)


class Files:
    """The files of a folder that may be sitemaps, by their paths below it, with "/" between the parts.

    `guesses` are those that are tried though nothing may lead to them. A file that lies beside the same name without
    its ".gz" is none, as servers keep the packed form of a file there; nor is a link to another one.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.unlisted: dict[str, str] = {}  # folders that cannot be read, and why
        self._real_folder = os.path.realpath(folder)
        self._targets: dict[str, str] = {}  # links, and the files that they lead to
        self.paths = dict.fromkeys(self._found())
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
            and not (_unpacked(path) != path and os.path.isfile(self.full(_unpacked(path))))
        ]

    def full(self, path: str) -> str:
        """The path of a file as it is shown, and opened."""
        return os.path.join(self.folder, *path.split("/"))

    def identity(self, path: str) -> str:
        """The same for all files that hold the same: one and its packed form, and links to them."""
        return _unpacked(self._targets.get(path, path))

    def _found(self) -> Iterator[str]:
        os.scandir(self.folder).close()  # raises where the folder itself cannot be read
        count = 0
        for place, folders, names in os.walk(self.folder, onerror=self._note):
            is_deep = _below(place, self.folder).count("/") >= _MAX_DEPTH
            folders[:] = [] if is_deep else sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                path = os.path.join(place, name)
                # isfile: not what would be waited for, such as a pipe.
                if not (_looks_like_sitemap(name) or _MAY_BE_LISTED.fullmatch(name)) or not os.path.isfile(path):
                    continue
                below = _below(path, self.folder)
                if os.path.islink(path) and not self._is_followed(below):
                    continue
                count += 1
                if count > MAX_FILES:
                    raise InvalidArgumentError(
                        f"more than {MAX_FILES:,} files in {self.folder} may be sitemaps; name a folder with fewer"
                    )
                yield below

    def _is_followed(self, link: str) -> bool:
        """Whether a link stays in the folder."""
        target = _below(os.path.realpath(self.full(link)), self._real_folder)
        if target.startswith("../") or os.path.isabs(target):
            return False
        self._targets[link] = target
        return True

    def _note(self, error: OSError) -> None:
        self.unlisted[_below(str(error.filename), self.folder)] = str(error.strerror)


class FolderClient(AbstractWebClient):
    """Answers from the files of a folder. A URL is that of the file at its path below `base`.

    One that a document declares may also be that of a file somewhere else in the folder, if just one has its name: the
    files of a site are not always kept as they are served.
    """

    is_thread_safe = True

    def __init__(self, files: Files, base: str) -> None:
        self.base = base
        self.declared: set[str] = set()  # URLs that the documents list
        self.written: dict[str, float] = {}  # files that were read, and when they were last written
        self.unreadable: dict[str, str] = {}
        self._files = files
        self._most: int | None = None
        self._host = _bare_host(base)
        self._folder = _path_of(base)
        counts = Counter(map(name_of, files.paths))
        self._by_name = {name_of(path): path for path in files.paths if counts[name_of(path)] == 1}

    def set_max_response_data_length(self, max_response_data_length: int | None) -> None:
        """No more of a file is read."""
        self._most = max_response_data_length

    def get(self, url: str) -> AbstractWebClientResponse:
        """The file of a URL."""
        path = self.path_of(url)
        if path is None:
            return WebClientErrorResponse(NO_FILE, retryable=False, status=HTTPStatus.NOT_FOUND)
        try:
            with open(self._files.full(path), "rb") as file:
                self.written[path] = os.fstat(file.fileno()).st_mtime
                data = file.read() if self._most is None else file.read(self._most + 1)
        except OSError as error:
            self.unreadable[path] = f"the file cannot be read: {error.strerror}"
            return WebClientErrorResponse(self.unreadable[path], retryable=False, status=None)
        return FileResponse(url, data[: self._most], is_cut=self._most is not None and len(data) > self._most)

    def url_of(self, path: str) -> str:
        """The URL of a file at its path."""
        return self.base + quoted(path)

    def path_of(self, url: str) -> str | None:
        """The file that a URL is answered with."""
        own = self.own_path_of(url)
        if own is not None or url not in self.declared:
            return own
        return self._by_name.get(name_of(_path_of(url)))

    def own_path_of(self, url: str) -> str | None:
        """The file at the path of a URL, be it http or https, with or without "www."."""
        path = _path_of(url)
        if _bare_host(url) != self._host or not path.startswith(self._folder):
            return None
        path = path[len(self._folder) :]
        return path if path in self._files.paths else None


class FileResponse(LocalWebClientSuccessResponse):
    """What a file holds."""

    def __init__(self, url: str, content: bytes, is_cut: bool) -> None:
        super().__init__(url, "")
        self._content = content
        self._is_cut = is_cut

    def raw_data(self) -> bytes:
        """The bytes of the file."""
        return self._content

    def transport_problems(self) -> tuple[str, ...]:
        """T804 if the file is longer than the limit."""
        return ("T804",) if self._is_cut else ()


def name_of(path: str) -> str:
    """The name of a file."""
    return path.rpartition("/")[2]


def quoted(path: str) -> str:
    """A path as it stands in a URL."""
    return quote(os.fsencode(path))


def unquoted(path: str) -> str:
    """The path of a URL as that of a file."""
    return os.fsdecode(unquote_to_bytes(path))


def _looks_like_sitemap(path: str) -> bool:
    return _LOOKS_LIKE_SITEMAP.fullmatch(os.path.splitext(path)[1]) is not None


def _unpacked(path: str) -> str:
    return path[: -len(".gz")] if path.lower().endswith(".gz") else path


def _below(path: str, folder: str) -> str:
    return os.path.relpath(path, folder).replace(os.sep, "/")


def _path_of(url: str) -> str:
    try:
        return unquoted(urlsplit(requested_url(url)).path)
    except ValueError:
        return ""  # it is not a URL


def _bare_host(url: str) -> str:
    try:
        return host_of(url).removeprefix("www.")
    except ValueError:
        return ""
