"""Read files and folders as sites: the same trees as from a website, and nothing is requested.

A single file is read on its own; the sitemaps that it lists stay unfetched. A folder is read as the site whose files it
holds, through the front door for websites, with a client that answers from the files. No path is ever made from the
content of a document: URLs are looked up among the files that were found in the folder.

Beside the tree come the names of the files, by the URLs of their sitemaps, for reports.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Unpack
from urllib.parse import quote, unquote_to_bytes, urlsplit

from usp.exceptions import InvalidArgumentError
from usp.limits import Limits
from usp.objects.outcome import Cause
from usp.objects.sitemap import (
    AbstractSitemap,
    IndexRobotsTxtSitemap,
    IndexWebsiteSitemap,
    InvalidSitemap,
    PagesTextSitemap,
    fetch_failure,
)
from usp.objects.transport import utc_time
from usp.origins import LOCAL_URL, host_of, masked_url, requested_url, split_credentials
from usp.scan import (
    is_http_url,
)
from usp.sources.listing import MAX_FILES, ROBOTS, FolderFiles, ZipFiles, name_of
from usp.stream import HomepageOptions, Reading, SitemapStream
from usp.tree import sitemap_from_bytes, sitemap_tree_for_homepage
from usp.web_client.abstract_client import (
    AbstractWebClient,
    AbstractWebClientResponse,
    LocalWebClientSuccessResponse,
    WebClientErrorResponse,
)

__all__ = ["Names", "is_archive", "tree_of_bytes", "tree_of_path"]

#: Names of files by the URLs of sitemaps.
Names = dict[str, str]

_LIMITS = Limits(max_sitemaps=2 * MAX_FILES)
#: Options that make sense without a network, beside those that `_tree_of_folder` names.
_FOLDER_OPTIONS = (
    *("include", "exclude", "modified_since", "choose_callback", "recurse_callback"),
    *("use_known_paths", "respect_robots", "cross_host", "progress"),
)
_NO_FILE = "no such file in the folder"
_UNKNOWN_SITE = "https://example.org/"  # for a site whose files never state their URL
_IS_CALLED_SITEMAP = re.compile(
    r".*sitemap.*\.(?:xml|txt|rss|atom|rdf)(?:\.gz)?|.*sitemap[^.]*\.gz", re.IGNORECASE | re.DOTALL
)


def tree_of_path(
    path: str | os.PathLike[str], url: str | None = None, **options: Unpack[HomepageOptions]
) -> tuple[AbstractSitemap, Names]:
    """Return the sitemap of a file, or the tree of a folder or a zip archive, with the names of the files.

    :param url: where it is, or will be, served.
    :param options: which sitemaps to read, as for `usp.tree.sitemap_tree_for_homepage`.

    :raises OSError: if there is no such file or folder, or it cannot be read.
    :raises InvalidArgumentError: if nothing in the folder looks like a sitemap.
    """
    path = os.fspath(path)
    if os.path.isdir(path):
        return _tree_of_folder(FolderFiles(path), url, options)
    if is_archive(path):
        with closing(ZipFiles(path)) as files:
            return _tree_of_folder(files, url, options)
    file_url = _url_of_file(path, url) or LOCAL_URL + _quoted(os.path.basename(path))
    with open(path, "rb") as file:
        content = file.read(_limits(options.get("limits")).max_sitemap_bytes + 1)
        written = os.fstat(file.fileno()).st_mtime
    return _tree_of_file(_FileClient(content, written), path, file_url, options)


def tree_of_bytes(
    content: bytes, name: str = "-", url: str | None = None, **options: Unpack[HomepageOptions]
) -> tuple[AbstractSitemap, Names]:
    """Return the sitemap of some content, as of a file of that name."""
    file_url = url if name == "-" else _url_of_file(name, LOCAL_URL if url is None else url)
    return _tree_of_file(_FileClient(content), name, file_url or LOCAL_URL, options)


def is_archive(path: str) -> bool:
    """Return whether a file is a zip archive."""
    if not os.path.isfile(path):
        return False  # what is read of a pipe cannot be read again
    with suppress(OSError), open(path, "rb") as file:
        return file.read(4) in (b"PK\3\4", b"PK\5\6")
    return False


def _limits(given: Limits | None) -> Limits:
    """Return the limits of a folder: more sitemaps than a site may have, unless the caller says how many."""
    if given is None:
        return _LIMITS
    is_default = given.max_sitemaps == Limits().max_sitemaps
    return replace(given, max_sitemaps=_LIMITS.max_sitemaps) if is_default else given


def _url_of_file(path: str, url: str | None) -> str | None:
    """Return the URL of a file. A `url` that ends with a slash is that of the folder that it is served from."""
    if url is not None and not is_http_url(url):
        raise InvalidArgumentError(f"url must be one like https://www.example.org/sitemap.xml, not {masked_url(url)}")
    return url + _quoted(os.path.basename(path)) if url is not None and url.endswith("/") else url


def _tree_of_file(client: _FileClient, name: str, url: str, options: HomepageOptions) -> tuple[AbstractSitemap, Names]:
    """Return the sitemap of one file. The sitemaps that it lists stay unfetched."""
    stream = SitemapStream(
        Reading(url, is_site=False),
        client,
        concurrency=1,
        limits=options.get("limits"),
        progress=options.get("progress"),
        recurse_list_callback=lambda urls, level, above: [],
    )
    (sitemap,) = stream  # unlike `stream.tree`, it has its children, as sitemaps that were not fetched
    names = {sitemap.url: name}
    sitemap.facts = replace(stream.tree.facts, left_out=0, names=names)
    _describe(sitemap, client.written)
    return sitemap, names


def _describe(sitemap: AbstractSitemap, written: float | None) -> None:
    """Note when a file was written, in place of what the walk took for an HTTP response."""
    if sitemap.transport is not None:
        fetched_at = None if written is None else utc_time(written)
        sitemap._transport = replace(sitemap.transport, status=None, seconds=None, fetched_at=fetched_at)


class _FileClient(AbstractWebClient):
    """Answer every request with the content of one file."""

    is_thread_safe = True
    guards_addresses = True  # it connects to nothing

    def __init__(self, content: bytes, written: float | None = None) -> None:
        self.written = written
        self._content = content
        self._most: int | None = None

    def set_max_response_data_length(self, max_response_data_length: int | None) -> None:
        """Read no more than this of the file."""
        self._most = max_response_data_length

    def get(self, url: str) -> AbstractWebClientResponse:
        """Return the content."""
        return _FileResponse(url, self._content, self._most)


def _tree_of_folder(files: FolderFiles, url: str | None, options: HomepageOptions) -> tuple[AbstractSitemap, Names]:
    limits = _limits(options.get("limits"))
    files.max_bytes = limits.max_sitemap_bytes
    base = _base_url(url) if url is not None else _stated_base(files)
    client = _FolderClient(files, base)
    choose = options.get("recurse_list_callback")

    def note(urls: list[str], level: int, above: set[str]) -> list[str]:
        client.declared.update(urls)
        return urls if choose is None else choose(urls, level, above)

    chosen: Any = {name: value for name, value in options.items() if name in _FOLDER_OPTIONS}
    has_robots = ROBOTS in files.paths and urlsplit(base).path == "/"  # crawlers read no other robots.txt
    guesses = files.guesses if options.get("use_known_paths", True) else []
    root = sitemap_tree_for_homepage(
        base,
        client,
        use_robots=has_robots and options.get("use_robots", True),
        extra_known_paths=[*map(_quoted, guesses), *(options.get("extra_known_paths") or ())],
        recurse_list_callback=note,
        normalize_homepage_url=False,
        concurrency=1,  # there is no network to wait for
        limits=limits,
        **chosen,
    )
    return _FolderTree(files, client).corrected(root)


class _FolderClient(AbstractWebClient):
    """Answer from the files of a folder. A URL is that of the file at its path below `base`.

    A URL that a document declares may also be that of a file elsewhere in the folder, if exactly one has its name:
    sites do not always keep their files where they serve them.
    """

    is_thread_safe = True
    guards_addresses = True  # it connects to nothing

    def __init__(self, files: FolderFiles, base: str) -> None:
        self.base = base
        self.declared: set[str] = set()  # URLs that the documents list
        self.written: dict[str, float] = {}  # files that were read -> when they were last written
        self.unreadable: dict[str, str] = {}
        self._files = files
        self._most: int | None = None
        self._host = _bare_host(base)
        self._folder = _path_of(base)
        counts = Counter(map(name_of, files.paths))
        self._by_name = {name_of(path): path for path in files.paths if counts[name_of(path)] == 1}

    def set_max_response_data_length(self, max_response_data_length: int | None) -> None:
        """Read no more than this of a file."""
        self._most = max_response_data_length

    def get(self, url: str) -> AbstractWebClientResponse:
        """Return the file of a URL."""
        path = self.path_of(url)
        if path is None:
            return WebClientErrorResponse(_NO_FILE, retryable=False, status=HTTPStatus.NOT_FOUND)
        try:
            data, self.written[path] = self._files.read(path, -1 if self._most is None else self._most + 1)
        except OSError as error:
            self.unreadable[path] = f"the file cannot be read: {error.strerror}"
            return WebClientErrorResponse(self.unreadable[path], retryable=False, status=None)
        return _FileResponse(url, data, self._most)

    def was_asked_for(self, path: str) -> bool:
        """Return whether a file was read, or could not be. Options may leave files out."""
        return path in self.written or path in self.unreadable

    def url_of(self, path: str) -> str:
        """Return the URL of a file."""
        return self.base + _quoted(path)

    def path_of(self, url: str) -> str | None:
        """Return the file that answers a URL."""
        own = self.own_path_of(url)
        if own is not None or url not in self.declared:
            return own
        return self._by_name.get(name_of(_path_of(url)))

    def own_path_of(self, url: str) -> str | None:
        """Return the file at the path of a URL, with http or https, with or without "www."."""
        path = _path_of(url)
        if _bare_host(url) != self._host or not path.startswith(self._folder):
            return None
        path = path[len(self._folder) :]
        return path if path in self._files.paths else None


class _FileResponse(LocalWebClientSuccessResponse):
    """The content of a file, up to `most` bytes."""

    def __init__(self, url: str, content: bytes, most: int | None) -> None:
        super().__init__(url, "")
        self._content = content[:most]
        self._is_cut = len(self._content) < len(content)

    def raw_data(self) -> bytes:
        """Return the bytes of the file."""
        return self._content

    def transport_problems(self) -> tuple[str, ...]:
        """Return T804 if the file is longer than the limit."""
        return ("T804",) if self._is_cut else ()


class _FolderTree:
    """Make the tree of a folder from the tree of a website that the client pretended to be.

    It corrects what the walk cannot know: that one file answered two URLs, which files are not sitemaps, and that
    nothing was transferred.
    """

    def __init__(self, files: FolderFiles, client: _FolderClient) -> None:
        self._files = files
        self._client = client
        self._declared_paths = {client.own_path_of(url) for url in client.declared}
        self._names: Names = {}

    def corrected(self, root: AbstractSitemap) -> tuple[AbstractSitemap, Names]:
        """Return the tree, and the names of its files."""
        self._names[root.url] = self._files.folder
        self._correct(root, set())
        kept = [sitemap for sitemap in self._each_once(root.sub_sitemaps) if not self._is_prose(sitemap)]
        kept += self._invalid(kept)
        tree = IndexWebsiteSitemap(root.url, kept, problems=root.problems)
        urls = dict.fromkeys(sitemap.url for sitemap in (tree, *tree.all_sitemaps()))
        names = {url: self._names[url] for url in urls if url in self._names}
        tree.facts = replace(root.facts, roots=None, names=names)
        return tree, names

    def _correct(self, parent: AbstractSitemap, above: set[str]) -> None:
        """Correct everything below a node; `above` are the files of the node and its ancestors."""
        client = self._client
        for number, sitemap in enumerate(parent.sub_sitemaps):
            path = client.path_of(sitemap.url)
            is_own = path == client.own_path_of(sitemap.url)
            if path is not None and not is_own and (path in above or path in self._declared_paths):
                # The file with its name is another sitemap, so its own file is missing.
                parent.sub_sitemaps[number] = InvalidSitemap(
                    sitemap.url,
                    fetch_failure(sitemap.url, _NO_FILE),
                    cause=Cause.NOT_FOUND,
                    last_modified=sitemap.last_modified,
                    transport=sitemap.transport,
                )
                path = None
            if path is not None:
                self._names[sitemap.url] = self._files.full(path)
            _describe(parent.sub_sitemaps[number], client.written.get(path or ""))
            self._correct(parent.sub_sitemaps[number], above if path is None else above | {path})

    def _each_once(self, roots: list[AbstractSitemap]) -> Iterator[AbstractSitemap]:
        """Yield the top sitemaps, except those whose file is listed under another URL elsewhere in the tree."""
        counts = [self._identities(root) for root in roots]
        total = _sum(counts)
        for root, inside in zip(roots, counts, strict=True):
            path = self._files.identity(self._client.path_of(root.url) or "")
            if total[path] > inside[path] and not isinstance(root, IndexRobotsTxtSitemap):
                total.subtract(inside)
            else:
                yield root

    def _identities(self, root: AbstractSitemap) -> Counter[str]:
        """Count how often each file is in a part of the tree."""
        sitemaps = [root, *root.all_sitemaps()]
        urls = (sitemap.url for sitemap in sitemaps if not isinstance(sitemap, InvalidSitemap))
        return Counter(self._files.identity(path) for url in urls if (path := self._client.path_of(url)) is not None)

    def _is_prose(self, sitemap: AbstractSitemap) -> bool:
        path = self._client.path_of(sitemap.url) or ""
        return not _IS_CALLED_SITEMAP.fullmatch(name_of(path)) and _is_mostly_text(sitemap)

    def _invalid(self, kept: list[AbstractSitemap]) -> Iterator[InvalidSitemap]:
        """Yield files that nothing lists and that cannot be read, or are called a sitemap but are none.

        Other files need not be sitemaps. But if the folder has no sitemap at all, every file is reported.
        """
        present = _sum(map(self._identities, kept))
        listed = {self._client.path_of(sitemap.url) for root in kept for sitemap in root.all_sitemaps()}
        is_all = not kept
        for path, why in self._files.unlisted.items():
            reason = f"the folder cannot be read: {why}"
            yield InvalidSitemap(self._client.url_of(path) + "/", reason, cause=Cause.UNREACHABLE)
        for path in self._files.guesses:
            if self._files.identity(path) in present or path in listed or not self._client.was_asked_for(path):
                continue
            url = self._client.url_of(path)
            self._names[url] = self._files.full(path)
            if path in self._client.unreadable:
                reason = fetch_failure(url, self._client.unreadable[path])
                yield InvalidSitemap(url, reason, cause=Cause.UNREACHABLE)
            elif is_all or _IS_CALLED_SITEMAP.fullmatch(name_of(path)):
                sitemap = _read(self._files, path, url)
                if isinstance(sitemap, InvalidSitemap):
                    yield sitemap


def _sum(counts: Iterable[Counter[str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return total


def _base_url(url: str) -> str:
    """Return the URL of a folder, from the one that the caller gave."""
    plain = split_credentials(url)[0].partition("#")[0].partition("?")[0]
    return plain if plain.endswith("/") else f"{plain}/"


def _stated_base(files: FolderFiles) -> str:
    """Return the URL that the folder is served at, as its files state it: robots.txt first, then sitemaps by name.

    If there is a robots.txt, or no index lists a file of the folder, the folder is the root of a site.
    """
    order = sorted(files.guesses, key=lambda path: not _IS_CALLED_SITEMAP.fullmatch(name_of(path)))
    for path in [ROBOTS] * (ROBOTS in files.paths) + order:
        sitemap = _read(files, path, _UNKNOWN_SITE + _quoted(path))
        if sitemap is None or (not _IS_CALLED_SITEMAP.fullmatch(name_of(path)) and _is_mostly_text(sitemap)):
            continue
        listed = next(iter(sitemap.sub_sitemaps), None)
        first = listed or next(iter(sitemap.pages), None)
        parts = urlsplit(requested_url(first.url if first is not None else _UNKNOWN_SITE))
        root = f"{parts.scheme}://{parts.netloc}/"
        if root == _UNKNOWN_SITE or not parts.netloc:
            continue  # its URLs may be relative; the next file may tell more
        return root if listed is None or ROBOTS in files.paths else root + _folder_above(parts.path, files)
    return _UNKNOWN_SITE


def _folder_above(url_path: str, files: FolderFiles) -> str:
    """Return the part of a URL's path that comes before the path of a file in the folder."""
    parts = url_path.lstrip("/").split("/")
    for number in range(len(parts)):
        if _unquoted("/".join(parts[number:])) in files.paths:
            return "".join(f"{part}/" for part in parts[:number])
    return ""


def _read(files: FolderFiles, path: str, url: str) -> AbstractSitemap | None:
    try:
        return sitemap_from_bytes(files.read(path, files.max_bytes)[0], url)
    except OSError:
        return None


def _is_mostly_text(sitemap: AbstractSitemap) -> bool:
    """Return whether many lines of a text are not plain URLs, as in a licence or in humans.txt."""
    counts = sitemap.problem_counts
    return isinstance(sitemap, PagesTextSitemap) and (counts["P412"] + counts["P427"]) * 10 > len(sitemap.pages)


def _quoted(path: str) -> str:
    """Return a path as URLs write it."""
    return quote(os.fsencode(path))


def _unquoted(path: str) -> str:
    """Return the path of a URL as that of a file."""
    return os.fsdecode(unquote_to_bytes(path))


def _path_of(url: str) -> str:
    try:
        return _unquoted(urlsplit(requested_url(url)).path)
    except ValueError:
        return ""  # it is not a URL


def _bare_host(url: str) -> str:
    try:
        return host_of(url).removeprefix("www.")
    except ValueError:
        return ""
