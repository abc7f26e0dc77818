"""Files and folders as sites: the same trees as from a website, and nothing is requested.

A single file is read on its own; what it lists is left unfetched. A folder is walked as the site whose files it holds,
by the front door that sites go through, with a client that answers from the files.

Beside the tree come the names of the files, by the URLs of their sitemaps, as they are to be shown.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from urllib.parse import urlsplit

from usp.check.folder import MAX_FILES, NO_FILE, ROBOTS, Files, FolderClient, name_of, quoted, unquoted
from usp.exceptions import InvalidArgumentError
from usp.fetch_parse.fetcher import LOCAL_URL
from usp.limits import Limits
from usp.objects.problem import shortened
from usp.objects.sitemap import (
    AbstractSitemap,
    IndexRobotsTxtSitemap,
    IndexWebsiteSitemap,
    InvalidSitemap,
    PagesTextSitemap,
)
from usp.objects.transport import utc_time
from usp.origins import requested_url, split_credentials
from usp.scan.urls import is_http_url
from usp.tree import sitemap_from_bytes, sitemap_from_file, sitemap_tree_for_homepage

__all__ = ["tree_of_bytes", "tree_of_path"]

#: Names of files by the URLs of sitemaps.
Names = dict[str, str]

_LIMITS = Limits(max_sitemaps=2 * MAX_FILES)
_NOWHERE = "https://example.org/"  # where a site is taken to be that never says it
_IS_CALLED_SITEMAP = re.compile(
    r".*sitemap.*\.(?:xml|txt|rss|atom|rdf)(?:\.gz)?|.*sitemap[^.]*\.gz", re.IGNORECASE | re.DOTALL
)


def tree_of_path(path: str | os.PathLike[str], url: str | None = None) -> tuple[AbstractSitemap, Names]:
    """The sitemap of a file, or the tree of a folder; `url` is where it is, or will be, served.

    :raises OSError: if there is no such file or folder, or it cannot be read.
    :raises InvalidArgumentError: if nothing in the folder looks like a sitemap.
    """
    path = os.fspath(path)
    if os.path.isdir(path):
        return _tree_of_folder(path, url)
    sitemap = sitemap_from_file(path, url=_url_of_file(path, url))
    return sitemap, {sitemap.url: path}


def tree_of_bytes(content: bytes, name: str = "-", url: str | None = None) -> tuple[AbstractSitemap, Names]:
    """The sitemap of content that is here, as of a file of that name."""
    sitemap = sitemap_from_bytes(content, url if name == "-" else _url_of_file(name, LOCAL_URL if url is None else url))
    return sitemap, {sitemap.url: name}


def _url_of_file(path: str, url: str | None) -> str | None:
    """A URL that ends with a slash is that of the folder where the file is served."""
    if url is not None and not is_http_url(url):
        raise InvalidArgumentError(f"url must be one like https://www.example.org/sitemap.xml, not {url!r}")
    return url + quoted(os.path.basename(path)) if url is not None and url.endswith("/") else url


def _tree_of_folder(folder: str, url: str | None) -> tuple[AbstractSitemap, Names]:
    files = Files(folder)
    base = _base_url(url) if url is not None else _stated_base(files)
    client = FolderClient(files, base)

    def note(urls: list[str], level: int, above: set[str]) -> list[str]:
        client.declared.update(urls)
        return urls

    root = sitemap_tree_for_homepage(
        base,
        client,
        use_robots=ROBOTS in files.paths and urlsplit(base).path == "/",  # crawlers read no other
        extra_known_paths=[quoted(path) for path in files.guesses],
        recurse_list_callback=note,
        normalize_homepage_url=False,
        concurrency=1,  # files do not keep anyone waiting
        limits=_LIMITS,
    )
    return _Settling(files, client).settled(root)


class _Settling:
    """Makes the tree of a folder from that of its walk.

    What the walk cannot know is put right: that one file was answered with under two URLs, what a file is that
    nothing leads to, and that nothing was transferred.
    """

    def __init__(self, files: Files, client: FolderClient) -> None:
        self._files = files
        self._client = client
        self._declared_paths = {client.own_path_of(url) for url in client.declared}
        self._names: Names = {}

    def settled(self, root: AbstractSitemap) -> tuple[AbstractSitemap, Names]:
        """The tree, and the names of its files."""
        self._names[root.url] = self._files.folder
        self._settle(root, set())
        kept = [sitemap for sitemap in self._each_once(root.sub_sitemaps) if not self._is_prose(sitemap)]
        kept += self._invalid(kept)
        tree = IndexWebsiteSitemap(root.url, kept, problems=root.problems)
        urls = dict.fromkeys(sitemap.url for sitemap in (tree, *tree.all_sitemaps()))
        return tree, {url: self._names[url] for url in urls if url in self._names}

    def _settle(self, parent: AbstractSitemap, above: set[str]) -> None:
        """Go through all below a node; `above` are the files that it and those above it were read from."""
        client = self._client
        for number, sitemap in enumerate(parent.sub_sitemaps):
            path = client.path_of(sitemap.url)
            is_own = path == client.own_path_of(sitemap.url)
            if path is not None and not is_own and (path in above or path in self._declared_paths):
                # The file that has its name is another sitemap, so its own is missing.
                reason = f"Unable to fetch sitemap from {shortened(sitemap.url)}: {NO_FILE}"
                parent.sub_sitemaps[number] = InvalidSitemap(
                    sitemap.url, reason, last_modified=sitemap.last_modified, transport=sitemap.transport
                )
                path = None
            self._describe(parent.sub_sitemaps[number], path)
            self._settle(parent.sub_sitemaps[number], above if path is None else above | {path})

    def _describe(self, sitemap: AbstractSitemap, path: str | None) -> None:
        """State what a file is known by, in the place of what the walk took for an answer over HTTP."""
        if path is not None:
            self._names[sitemap.url] = self._files.full(path)
        if sitemap.transport is not None:
            written = self._client.written.get(path or "")
            fetched_at = None if written is None else utc_time(written)
            sitemap._transport = replace(sitemap.transport, status=None, seconds=None, fetched_at=fetched_at)

    def _each_once(self, roots: list[AbstractSitemap]) -> Iterator[AbstractSitemap]:
        """The sitemaps at the top, but for those whose file, packed or not, is listed under another URL elsewhere."""
        counts = [self._identities(root) for root in roots]
        total = _sum(counts)
        for root, inside in zip(roots, counts, strict=True):
            path = self._files.identity(self._client.path_of(root.url) or "")
            if total[path] > inside[path] and not isinstance(root, IndexRobotsTxtSitemap):
                total.subtract(inside)
            else:
                yield root

    def _identities(self, root: AbstractSitemap) -> Counter[str]:
        """How often each file stands in a part of the tree."""
        sitemaps = [root, *root.all_sitemaps()]
        urls = (sitemap.url for sitemap in sitemaps if not isinstance(sitemap, InvalidSitemap))
        return Counter(self._files.identity(path) for url in urls if (path := self._client.path_of(url)) is not None)

    def _is_prose(self, sitemap: AbstractSitemap) -> bool:
        path = self._client.path_of(sitemap.url) or ""
        return not _IS_CALLED_SITEMAP.fullmatch(name_of(path)) and _is_mostly_text(sitemap)

    def _invalid(self, kept: list[AbstractSitemap]) -> Iterator[InvalidSitemap]:
        """What nothing leads to and cannot be read, or is called a sitemap and is none.

        Any other file that is no sitemap need not be one; but where there is nothing else, each is shown.
        """
        present = _sum(map(self._identities, kept))
        listed = {self._client.path_of(sitemap.url) for root in kept for sitemap in root.all_sitemaps()}
        is_all = not kept
        for path, why in self._files.unlisted.items():
            yield InvalidSitemap(self._client.url_of(path) + "/", f"the folder cannot be read: {why}")
        for path in self._files.guesses:
            if self._files.identity(path) in present or path in listed:
                continue
            url = self._client.url_of(path)
            self._names[url] = self._files.full(path)
            if path in self._client.unreadable:
                reason = f"Unable to fetch sitemap from {shortened(url)}: {self._client.unreadable[path]}"
                yield InvalidSitemap(url, reason)
            elif is_all or _IS_CALLED_SITEMAP.fullmatch(name_of(path)):
                sitemap = _read(self._files.full(path), url)
                if isinstance(sitemap, InvalidSitemap):
                    yield sitemap


def _sum(counts: Iterable[Counter[str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return total


def _base_url(url: str) -> str:
    """The URL of a folder, from what the caller gave for it."""
    plain = split_credentials(url)[0].partition("#")[0].partition("?")[0]
    return plain if plain.endswith("/") else f"{plain}/"


def _stated_base(files: Files) -> str:
    """The URL that the folder is served at, as its files have it: robots.txt first, then what is called a sitemap.

    Where there is a robots.txt, or no index lists a file of the folder, it is the root of a site.
    """
    order = sorted(files.guesses, key=lambda path: not _IS_CALLED_SITEMAP.fullmatch(name_of(path)))
    for path in [ROBOTS] * (ROBOTS in files.paths) + order:
        sitemap = _read(files.full(path), _NOWHERE + quoted(path))
        if sitemap is None or (not _IS_CALLED_SITEMAP.fullmatch(name_of(path)) and _is_mostly_text(sitemap)):
            continue
        listed = next(iter(sitemap.sub_sitemaps), None)
        first = listed or next(iter(sitemap.pages), None)
        parts = urlsplit(requested_url(first.url if first is not None else _NOWHERE))
        root = f"{parts.scheme}://{parts.netloc}/"
        if root == _NOWHERE or not parts.netloc:
            continue  # it may be relative; the next may say more
        return root if listed is None or ROBOTS in files.paths else root + _folder_above(parts.path, files)
    return _NOWHERE


def _folder_above(url_path: str, files: Files) -> str:
    """What stands in the path of a URL before that of a file of the folder."""
    parts = url_path.lstrip("/").split("/")
    for number in range(len(parts)):
        if unquoted("/".join(parts[number:])) in files.paths:
            return "".join(f"{part}/" for part in parts[:number])
    return ""


def _read(path: str, url: str) -> AbstractSitemap | None:
    try:
        return sitemap_from_file(path, url=url)
    except OSError:
        return None


def _is_mostly_text(sitemap: AbstractSitemap) -> bool:
    """Whether more than a few lines of a text are no plain URLs, as those of a licence or of humans.txt."""
    counts = sitemap.problem_counts
    return isinstance(sitemap, PagesTextSitemap) and (counts["P412"] + counts["P427"]) * 10 > len(sitemap.pages)
