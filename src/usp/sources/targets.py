"""What a target is: one table decides.

| target | kind |
|---|---|
| `-` | standard input |
| `https://example.org/` | a site |
| `https://example.org/any/sitemap.xml` | a sitemap and what is below it; if it is no sitemap, the whole site |
| an existing folder, zip archive or file | its sitemaps |
| an existing WARC or WACZ file, or a folder of them | the sites in it, each a source of its own |
| an existing crawl folder, or `s3://bucket/crawl` | the sitemaps of the sites in it, each site a source of its own |
| `example.org`, `example.org/path` | as with https://; if nothing answers there, with http:// |

A `Source` is a target of a known kind. It opens a stream of sitemaps, whatever it is.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, NamedTuple, Unpack, cast
from urllib.parse import urlsplit

from usp.exceptions import InvalidArgumentError
from usp.keywords import check_keywords
from usp.limits import MEMORY_BYTES, Limits
from usp.origins import masked_url, split_credentials
from usp.scan import is_http_url
from usp.sources.files import is_archive, tree_of_bytes, tree_of_path
from usp.stream import (
    AsyncSitemapStream,
    AsyncTreeStream,
    HomepageOptions,
    LoadedTree,
    Reading,
    SitemapStream,
    TreeStream,
)
from usp.web_client.abstract_client import AbstractAsyncWebClient, AbstractWebClient

if TYPE_CHECKING:
    from usp.crawl.stored import StoredSite
    from usp.sources.records import ArchivedSite
    from usp.warc.archive import ScanProgress

# What reads web archives and crawl folders is imported where it is needed: few targets are one, and some of it imports
# this module.

__all__ = ["STANDARD_INPUT", "ReadAs", "Source", "SourceKind", "find_source", "find_web_source"]

STANDARD_INPUT = "-"

#: How to read a URL: as what is there, as a whole site, or as one sitemap.
ReadAs = Literal["auto", "site", "sitemap"]

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_USER = re.compile(r"(?:^|(?<=://))[^/?#]*@")
_FILE_URL = re.compile(r"file:/", re.IGNORECASE)
# A name with a dot or a port, "localhost" or an address, with or without a user, up to the path.
_HOST = re.compile(
    r"(?:[^/?#@\s]+@)?(?:[^/?#@\s:.]+(?:\.[^/?#@\s:.]+)+\.?|localhost|[^/?#@\s:.]{2,}(?=:\d)|\[[0-9a-f:.]+\])"
    r"(?::\d+)?(?:[/?#]|$)",
    re.IGNORECASE,
)
_TOP_DOMAIN = re.compile(r"\.(?:[^\W\d_]{2,}|xn--[\w-]+)\.?(?::\d+)?$")
_FILE_NAME = re.compile(r"[^?#]*\.(?:xml|gz|txt|rss|atom|rdf|zip|warc|zst|wacz|json|csv|html?)", re.IGNORECASE)
_SITEMAP_NAME = re.compile(r"robots\.txt|.+\.(?:xml|rss|atom|rdf)(?:\.gz)?", re.IGNORECASE | re.DOTALL)
_LOCAL_PATH = re.compile(r"[/\\~]|\.{1,2}[/\\]|[a-z]:[/\\]|file:/", re.IGNORECASE)


class SourceKind(StrEnum):
    """The kinds of sources."""

    SITE = "site"
    SITEMAP = "sitemap"
    FILE = "file"
    FOLDER = "folder"
    ARCHIVE = "archive"
    WEB_ARCHIVE = "web archive"
    CRAWL = "crawl folder"
    STANDARD_INPUT = "standard input"

    @property
    def is_local(self) -> bool:
        """Whether reading such a source makes no requests."""
        return self not in (SourceKind.SITE, SourceKind.SITEMAP)


_A_KIND = {
    SourceKind.FILE: "a file",
    SourceKind.FOLDER: "a folder",
    SourceKind.ARCHIVE: "an archive",
    SourceKind.WEB_ARCHIVE: "a web archive",
    SourceKind.CRAWL: "a crawl folder",
}
_MANIFEST = "crawl.json"  # of a crawl folder
_STORES = ("s3", "gs", "gcs", "abfs", "abfss")  # schemes of object stores; usp reads crawl folders from them


@dataclass(frozen=True, slots=True)
class Source:
    """A target of a known kind.

    `target` is as the user gave it, without a user and password. `reading` says how to fetch it, if it is on the web.
    `path` is that of files, and `url` says where they are, or will be, served. `note` says what else the target could
    have meant. `site` is one of a web archive or a crawl folder; without it, the source is all of it, which `sites`
    splits. `others` are web archives that are read together with this one: a site may be in several files.
    """

    target: str
    kind: SourceKind
    reading: Reading | None = field(default=None, repr=False)  # it may have a password
    path: str = ""
    url: str | None = None
    note: str = ""
    site: ArchivedSite | StoredSite | None = field(default=None, repr=False)
    others: tuple[Source, ...] = field(default=(), repr=False)

    def sites(self, progress: ScanProgress | None = None) -> tuple[Source, ...]:
        """Return the sites of a web archive or a crawl folder, each as a source. Any other source is one.

        :param progress: called now and then while a web archive is read, with a name, and how many bytes of how many
            were read.
        """
        if self.kind not in (SourceKind.WEB_ARCHIVE, SourceKind.CRAWL) or self.site is not None:
            return (self,)
        return self._stored_sites() if self.kind is SourceKind.CRAWL else self._archived_sites(progress)

    def _stored_sites(self) -> tuple[Source, ...]:
        from usp.crawl.folder import CrawlFolder
        from usp.crawl.stored import stored_sites

        found = stored_sites(CrawlFolder(self.path), self.url)
        names = [self.target] if len(found) == 1 else [f"{self.target}: {site.homepage_url}" for site in found]
        notes = [self.note, *[""] * len(found)]
        return tuple(
            replace(self, target=name, note=note, site=site)
            for name, note, site in zip(names, notes, found, strict=False)
        )

    def _archived_sites(self, progress: ScanProgress | None) -> tuple[Source, ...]:
        """Return the sites of web archives, each named after the files that it is in."""
        from usp.sources.records import named_files, sites_of

        parts = (self, *self.others)
        found = sites_of([part.path for part in parts], self.url, progress)
        targets = {part.path: part.target for part in parts}
        names = [named_files([targets[file] for file in site.files]) or self.target for site in found]
        counts = Counter(names)
        note = "; ".join(filter(None, [*(part.note for part in parts), found[0].archive.damage()]))
        return tuple(
            replace(
                self,
                target=name if counts[name] == 1 else f"{name}: {site.homepage_url}",
                note=note if number == 0 else "",
                site=site,
                reading=Reading(site.homepage_url),
            )
            for number, (name, site) in enumerate(zip(names, found, strict=True))
        )

    def stream(
        self,
        web_client: AbstractWebClient | None = None,
        *,
        memory_bytes: int = MEMORY_BYTES,
        pages_once: bool = False,
        bounds_reading: bool = False,
        **options: Unpack[HomepageOptions],
    ) -> SitemapStream:
        """Open the stream of its sitemaps. Nothing is read before you ask for the first one.

        :param pages_once: whether `limits.max_pages` counts the pages of a sitemap once; see `SitemapStream`.
        :param bounds_reading: whether `limits.tree_seconds` also bounds how long you read pages; files have no limit.
        """
        check_keywords(options, HomepageOptions.__annotations__, "web_client")
        if self.kind is SourceKind.WEB_ARCHIVE:
            from usp.warc.client import ArchiveClient

            site = cast("ArchivedSite", self._only_site())
            web_client, options = ArchiveClient(site.archive), site.options(options)
            return SitemapStream(
                Reading(site.homepage_url), web_client, memory_bytes=memory_bytes, pages_once=pages_once, **options
            )
        if self.reading is not None:
            return SitemapStream(
                self.reading,
                web_client,
                memory_bytes=memory_bytes,
                pages_once=pages_once,
                bounds_reading=bounds_reading,
                **options,
            )
        return TreeStream(self._load, web_client, **options)

    def stream_async(
        self, web_client: AbstractAsyncWebClient | None = None, **options: Unpack[HomepageOptions]
    ) -> AsyncSitemapStream:
        """Open the stream of its sitemaps on asyncio."""
        check_keywords(options, HomepageOptions.__annotations__, "web_client")
        if self.kind is SourceKind.WEB_ARCHIVE:
            from usp.warc.client import AsyncArchiveClient

            site = cast("ArchivedSite", self._only_site())
            client = AsyncArchiveClient(site.archive)
            return AsyncSitemapStream(Reading(site.homepage_url), client, **site.options(options))
        if self.reading is not None:
            return AsyncSitemapStream(self.reading, web_client, **options)
        return AsyncTreeStream(self._load, web_client, **options)

    def _only_site(self) -> ArchivedSite | StoredSite:
        """Return the only site of a web archive or a crawl folder."""
        sources = self.sites()
        if len(sources) > 1 or sources[0].site is None:
            raise InvalidArgumentError(f"{self.target} has {len(sources):,} sites; say with url which one to read")
        return sources[0].site

    def _load(self, options: HomepageOptions) -> LoadedTree:
        if self.kind is SourceKind.STANDARD_INPUT:
            content = _standard_input((options.get("limits") or Limits()).max_sitemap_bytes)
            tree, names = tree_of_bytes(content, STANDARD_INPUT, self.url, **options)
        elif self.kind is SourceKind.CRAWL:
            tree, names = cast("StoredSite", self._only_site()).tree(options), {}
        else:
            tree, names = tree_of_path(self.path, self.url, **options)
        return LoadedTree(tree, names, self._unread_note(len(tree.sub_sitemaps)) if not self.is_site else "")

    @property
    def is_site(self) -> bool:
        """Whether it is read as a whole site."""
        return self.kind not in (SourceKind.SITEMAP, SourceKind.FILE, SourceKind.STANDARD_INPUT)

    def _unread_note(self, listed: int) -> str:
        """Return a note on the sitemaps that a single file lists."""
        if not listed:
            return ""
        them = "the sitemap that it lists is" if listed == 1 else f"the {listed:,} sitemaps that it lists are"
        return f"{self.target} was read alone, {them} not; to read all, give a folder or a URL"


def find_source(
    target: str | os.PathLike[str], *, url: str | None = None, read_as: ReadAs = "auto", https_only: bool = False
) -> Source:
    """Find out what a target is. Nothing is requested.

    :param target: a URL, a host, a path, or "-" for standard input.
    :param url: where a file or a folder is, or will be, served.
    :param read_as: "site" reads the whole site of a URL, "sitemap" the sitemap at it and what is below.
    :param https_only: never read a host over http. A host with a user and password is not, either.
    :raises InvalidArgumentError: if it can be none of these. The message says what to pass.
    """
    if read_as not in ("auto", "site", "sitemap"):
        raise InvalidArgumentError(f"read_as must be auto, site or sitemap, not {read_as!r}")
    if not isinstance(target, (str, os.PathLike)) or not isinstance(text := os.fspath(target), str) or not text.strip():
        raise InvalidArgumentError(f"a target must be a URL, a host or a path, not {target!r:.200}{_advice(target)}")
    if url is not None and not is_http_url(url):
        raise InvalidArgumentError(f"url must be one like https://www.example.org/sitemap.xml, not {masked_url(url)}")
    wanted = _Wanted(text, isinstance(target, str), read_as, https_only)
    source = next(source for find in _TABLE if (source := find(wanted)) is not None)
    if url is not None and not source.kind.is_local:
        raise InvalidArgumentError(
            f"url says where files will be served; {split_credentials(text)[0]:.200} has a URL already"
        )
    return source if url is None else replace(source, url=url)


def find_web_source(target: str) -> Source:
    """Find out what a site or a sitemap on the web is, from a list of these. A name is never that of a file.

    :raises InvalidArgumentError: if it can be neither. The message says what to write.
    """
    wanted = _Wanted(target, True, "auto", False)
    source = _url(wanted) or _host(wanted)
    if source is None:
        raise InvalidArgumentError(
            f"a site is written like example.org or https://example.org/, not {masked_url(target)}"
        )
    return source


def _advice(target: object) -> str:
    """Return what to call with content, or with an open file."""
    if hasattr(target, "read"):
        return "; for an open file, call sitemap_from_bytes(file.read())"
    return "; for content, call sitemap_from_bytes" if isinstance(target, (bytes, bytearray)) else ""


class _Wanted(NamedTuple):
    """A target, and how to read it. A path that is not written as text is no URL."""

    text: str
    is_text: bool
    read_as: ReadAs
    https_only: bool


def _stdin(wanted: _Wanted) -> Source | None:
    is_stdin = wanted.is_text and wanted.text == STANDARD_INPUT
    return Source(wanted.text, SourceKind.STANDARD_INPUT) if is_stdin else None


def _url(wanted: _Wanted) -> Source | None:
    text = wanted.text.strip()
    scheme = _SCHEME.match(text) if wanted.is_text else None
    if scheme is None or scheme[1].lower() == "file":
        return None
    if scheme[1].lower() in _STORES and not _FILE_NAME.fullmatch(text.partition("?")[0]):
        return Source(_USER.sub("", text, 1), SourceKind.CRAWL, path=text)
    if scheme[1].lower() not in ("http", "https"):
        raise InvalidArgumentError(f"usp reads http and https, not {scheme[1]:.20}: {masked_url(text)}")
    if not _is_requestable(text):
        raise InvalidArgumentError(_why_not_http(text))
    return _web_source(text, [text], wanted.read_as)


def _is_requestable(url: str) -> bool:
    """Return whether this is a URL with a host, also without the user and password that may be in it."""
    return is_http_url(url) and is_http_url(split_credentials(url)[0])


def _why_not_http(text: str) -> str:
    """Return what is wrong with a URL."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        port = re.search(r"://[^/?#]*:([^/?#:\]]*)(?:[/?#]|$)", text)
        if port is not None and "[" not in text and "@" not in text[port.end() :]:  # else it is part of a password
            return f"a port is a number from 0 to 65535, not {port[1]!r:.20}"
    return f"give a URL like https://example.org/, not {masked_url(text)}"


def _path(wanted: _Wanted) -> Source | None:
    text = path = wanted.text
    if wanted.is_text and not os.path.lexists(text):
        text = text.strip()  # as for URLs: it may be a line of a list
        path = _local_path(text)
    if not os.path.lexists(path) and wanted.is_text:
        return None
    kind = next(kind for kind, is_kind in _PATHS if is_kind(path))
    is_host_too = wanted.is_text and _is_host(text) and _TOP_DOMAIN.search(_host_part(text))
    note = f"{text} is {_A_KIND[kind]} here; for the site, write https://{text}" if is_host_too else ""
    return Source(text, kind, path=path, note=note)


def _is_web_archive(path: str) -> bool:
    if not os.path.isfile(path):
        return False  # what is read of a pipe cannot be read again
    with suppress(OSError), open(path, "rb") as file:
        if file.read(1) not in (b"<", b""):
            from usp.warc.parts import is_web_archive

            return is_web_archive(path)
    return False


def _is_folder_of_archives(path: str) -> bool:
    """Return whether a folder has web archives in it, and no other file that may be a sitemap."""
    names: list[str] = []
    with suppress(OSError):
        names = os.listdir(path)
    if any(map(_SITEMAP_NAME.fullmatch, names)) or not any(".wa" in name.lower() for name in names):
        return False
    from usp.warc.parts import archive_files

    return bool(archive_files(path))


#: What a path may be, in the order in which usp tries it.
_PATHS: tuple[tuple[SourceKind, Callable[[str], bool]], ...] = (
    (SourceKind.CRAWL, lambda path: os.path.isfile(os.path.join(path, _MANIFEST))),
    (SourceKind.WEB_ARCHIVE, _is_folder_of_archives),
    (SourceKind.FOLDER, os.path.isdir),
    (SourceKind.WEB_ARCHIVE, _is_web_archive),
    (SourceKind.ARCHIVE, is_archive),
    (SourceKind.FILE, lambda path: True),
)


def _local_path(text: str) -> str:
    """Return the path that a text means: a file: URL, one with the home folder as ~, or the path itself."""
    try:
        if not _FILE_URL.match(text):
            return os.path.expanduser(text)
        parts = urlsplit(text)
    except ValueError:  # it has a NUL, or brackets that do not match
        return text
    if parts.netloc not in ("", "localhost"):
        raise InvalidArgumentError(f"usp reads files of this machine only: {text!r:.200}")
    from urllib.request import url2pathname  # takes long to import, and is rarely needed

    return url2pathname(parts.path)


def _host_part(text: str) -> str:
    return re.split("[/?#]", text, maxsplit=1)[0]


def _is_host(text: str) -> bool:
    """Return whether a text starts with a host, by its form."""
    return not _LOCAL_PATH.match(text) and bool(_HOST.match(text)) and not _FILE_NAME.fullmatch(_host_part(text))


def _host(wanted: _Wanted) -> Source | None:
    text = wanted.text.strip()
    if not _is_host(text):
        return None
    schemes = ("https",) if wanted.https_only or "@" in _host_part(text) else ("https", "http")
    urls = [f"{scheme}://{text}" for scheme in schemes]
    return _web_source(text, urls, wanted.read_as) if all(map(_is_requestable, urls)) else None


def _nothing(wanted: _Wanted) -> Source:
    if wanted.text.lstrip("\ufeff \t\r\n").startswith("<"):
        raise InvalidArgumentError(
            "a target must be a URL, a host or a path; for XML text, call sitemap_from_str, or pipe it to -"
        )
    raise InvalidArgumentError(
        f"no such file or folder: {masked_url(wanted.text)}; a site is written like example.org or https://example.org/"
    )


#: What a target may be, in the order in which usp tries it.
_TABLE: tuple[Callable[[_Wanted], Source | None], ...] = (_stdin, _url, _path, _host, _nothing)


def _web_source(target: str, urls: list[str], read_as: ReadAs) -> Source:
    """Return the source of a URL, or of the same with several schemes, the first that answers."""
    parts = urlsplit(urls[0])
    has_path = parts.path not in ("", "/") or bool(parts.query)
    is_site = read_as == "site" or (read_as == "auto" and not has_path)
    reading: Reading | None = None
    for url in reversed(urls):
        if is_site:
            reading = Reading(url, if_unreachable=reading)
        else:
            site = Reading(url) if read_as == "auto" else None
            reading = Reading(url, is_site=False, if_unreachable=reading, if_no_sitemap=site)
    return Source(_USER.sub("", target, 1), SourceKind.SITE if is_site else SourceKind.SITEMAP, reading)


def _standard_input(most: int) -> bytes:
    if sys.stdin is None:
        raise OSError("there is no standard input to read")
    binary = getattr(sys.stdin, "buffer", None)
    if binary is None:  # in a notebook, or in tests
        return sys.stdin.read().encode()
    content: bytes = binary.read(most + 1)  # one byte more tells that it is cut
    return content
