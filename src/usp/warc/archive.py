"""Look up responses by their URLs in WARC files, and answer requests from them. Nothing is requested.

An `Archive` reads its files once, from start to end, and keeps a few numbers for each response, but no bodies. Of the
responses of a URL the newest counts; a success or a redirect counts more than an error. A revisit record leads to the
response that it refers to.

`sites()` names the sites that have sitemaps in the archive. What is a sitemap is decided by the start of its content.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import urljoin

from usp.inflate import GZIP_MAGIC
from usp.origins import DEFAULT_PORTS, origin_of, requested_url, split_url
from usp.warc.messages import Message, dechunked, message_of
from usp.warc.parts import Part, archive_files, open_parts
from usp.warc.reading import Record, date_of, open_body, read_record, read_records
from usp.warc.streams import Place
from usp.web_client.redirects import REDIRECTS

__all__ = ["Archive", "Kind", "Site", "Stored", "kind_of"]

#: Called while files are read: with the name of the file, and how many bytes of how many were read.
ScanProgress = Callable[[str, int, int], object]

_KEPT_BYTES = 1 << 16  # of each block; most robots.txt and the start of every sitemap fit
_LOOK_BYTES = 4096
# Characters of a URL and of a digest that are kept. A record with 200,000 of them may take 400 bytes of a file.
_MAX_URL = 2_048
_MAX_DIGEST = 256
_PROGRESS_RECORDS = 500
_SHOWN_DAMAGE = 3  # files
_ROBOTS = "/robots.txt"
_ROOT = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*+(?:(?:<\?[^>]*+>|<!--.*?-->|<!doctype(?!\s+html)[^>]*+>)\s*+)*+"
    rb"<(?:[\w.-]{1,50}:)?(urlset|sitemapindex|rss|feed|rdf)[\s>/]",
    re.IGNORECASE | re.DOTALL,
)
_URL_LINE = re.compile(rb"(?:\xef\xbb\xbf)?\s*+(?:#[^\n]*+\n\s*+)*+https?://", re.IGNORECASE)
_NAMES_SITEMAP = re.compile(rb"(?im)^[ \t]*site-?map[ \t]*:")
_PATH_END = re.compile(r"[?#]")


class Kind(IntEnum):
    """What a response may be for a tree."""

    OTHER = 0
    ROBOTS = 1
    ROBOTS_WITH_SITEMAPS = 2
    INDEX = 3
    SITEMAP = 4


class _Entry(NamedTuple):
    """A response: where it is, when it was received, and what it is."""

    part: int
    offset: int
    skip: int
    time: float
    status: int
    kind: int
    is_revisit: bool

    @property
    def rank(self) -> tuple[bool, float]:
        """The order of responses of one URL; the highest counts."""
        return 200 <= self.status < 400 and self.status != HTTPStatus.NOT_MODIFIED, self.time


class Stored(NamedTuple):
    """A response as the archive has it, and its body in pieces, as it was transferred but without chunks."""

    url: str
    message: Message
    date: datetime | None
    truncated: str  # why the body is not whole; empty if it is
    pieces: Iterable[bytes]


@dataclass(slots=True)
class Site:
    """A site with sitemaps in an archive. `sitemaps` are those that were recognized, by their URLs."""

    homepage_url: str
    files: dict[str, None] = field(default_factory=dict)  # that have its robots.txt and its sitemaps, in their order
    has_robots: bool = False
    names_sitemaps: bool = False  # its robots.txt does
    sitemaps: dict[str, Kind] = field(default_factory=dict)

    @property
    def indexes(self) -> list[str]:
        """The URLs of the indexes among the sitemaps."""
        return [url for url, kind in self.sitemaps.items() if kind is Kind.INDEX]

    @property
    def paths(self) -> list[str]:
        """The paths of the sitemaps below the homepage."""
        return [url.removeprefix(self.homepage_url) for url in self.sitemaps]


class Archive:
    """The responses in WARC files, or in a WACZ.

    What is no whole record is skipped; `damage` says where there is such a thing.

    :param paths: files of one archive, or folders of them. A revisit in one may refer to a response in another.
    :param progress: called now and then while the files are read.
    :raises OSError: if a file cannot be read.
    :raises MissingExtraError: if a file is zstd, and no package for that is installed.
    """

    def __init__(self, paths: Iterable[str], progress: ScanProgress | None = None) -> None:
        files = [(part, path) for path in paths for file in archive_files(path) for part in open_parts(file)]
        self._parts = [part for part, _ in files]
        self._paths = [path for _, path in files]
        self._entries: dict[str, _Entry] = {}
        self._older: dict[
            tuple[str, float], _Entry
        ] = {}  # robots.txt files and sitemaps that newer responses have replaced
        self._by_digest: dict[str, _Entry] = {}  # of robots.txt files and sitemaps
        self._sites: dict[str, Site] = {}
        self.records = 0
        self._damage: dict[str, bool] = {}  # names of files -> whether they end in the middle of a record
        for number, part in enumerate(self._parts):
            self._scan(number, part, progress)

    def __contains__(self, url: str) -> bool:
        return requested_url(url) in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, url: str) -> Stored | None:
        """Return the response of a URL; None if the archive has none. A redirect is a response, too."""
        url = requested_url(url)
        entry = self._entries.get(url)
        record = None if entry is None else self._read(entry)
        if entry is None or record is None:
            return None
        date, message = record.date, message_of(record.block)
        if entry.is_revisit and message.status not in REDIRECTS:
            original = self._original(record)
            if original is None:
                return None
            entry, record = original
            message = message_of(record.block)
        body = _body(self._parts[entry.part], record)
        return Stored(url, message, date, record.headers.get("warc-truncated", ""), body)

    def redirects_to(self, stored: Stored) -> str | None:
        """Return where a response redirects to; None if it does not."""
        location = stored.message.header("location")
        if stored.message.status not in REDIRECTS or not location:
            return None
        with suppress(ValueError):
            return requested_url(urljoin(stored.url, location))
        return None

    def sites(self) -> list[Site]:
        """Return the sites with a sitemap, or with a robots.txt that names one, in the order in which they appear.

        If there are none, return those with a robots.txt.
        """
        found = [site for site in self._sites.values() if site.names_sitemaps or site.sitemaps]
        return found or [site for site in self._sites.values() if site.has_robots]

    def site(self, homepage_url: str) -> Site:
        """Return a site, also if the archive has nothing of it."""
        return self._sites.get(homepage_url, Site(homepage_url, has_robots=f"{homepage_url}robots.txt" in self))

    @property
    def is_damaged(self) -> bool:
        """Whether there may have been more in the files."""
        return bool(self._damage)

    def damage(self) -> str:
        """Return a sentence on files that are cut short or damaged; nothing if all are whole."""
        found = [
            f"{name} ends in the middle of a record: it was cut short"
            if is_at_end
            else f"{name} is damaged: records that are not whole were skipped"
            for name, is_at_end in self._damage.items()
        ]
        more = len(found) - _SHOWN_DAMAGE
        return "; ".join([*found[:_SHOWN_DAMAGE], *([f"and so on in {more:,} more files"] if more > 0 else [])])

    def _scan(self, number: int, part: Part, progress: ScanProgress | None) -> None:
        def note(offset: int) -> None:
            self._damage[part.name] = True

        with part.open() as file:
            for record in read_records(file, kept_bytes=_KEPT_BYTES, on_damage=note):
                self.records += 1
                if part.name in self._damage:
                    self._damage[part.name] = False
                if progress is not None and self.records % _PROGRESS_RECORDS == 0:
                    progress(part.name, record.offset, part.size)
                if record.type in ("response", "revisit"):
                    self._add(number, record)

    def _add(self, part: int, record: Record) -> None:
        if len(record.url) > _MAX_URL:
            return
        url = requested_url(record.url)
        try:
            scheme, host, _ = origin_of(url)
        except ValueError:
            return  # its address or its port is none
        if scheme not in DEFAULT_PORTS or not host:
            return
        message = message_of(record.block)
        status, is_revisit = message.status, record.type == "revisit"
        if is_revisit and status in (0, HTTPStatus.NOT_MODIFIED):
            status = HTTPStatus.OK
        if not status:
            return
        kind = kind_of(url, record, message) if status == HTTPStatus.OK and not is_revisit else Kind.OTHER
        date = record.date
        time = 0.0 if date is None else date.timestamp()
        entry = _Entry(part, record.offset, record.place.skip, time, status, kind, is_revisit)
        replaced = known = self._entries.get(url)
        if known is None or entry.rank >= known.rank:
            self._entries[url] = entry
        else:
            replaced = entry
        if replaced is not None and replaced.kind:
            self._older[url, replaced.time] = replaced
        if kind:
            self._note(url, kind, self._paths[part])
            digest = record.headers.get("warc-payload-digest", "")
            if 0 < len(digest) <= _MAX_DIGEST:
                self._by_digest.setdefault(digest, entry)

    def _note(self, url: str, kind: Kind, path: str) -> None:
        """Note a sitemap or a robots.txt with its site, and where it is."""
        parts = split_url(url)
        root = f"{parts.scheme}://{parts.netloc}/"
        site = self._sites.setdefault(root, Site(root))
        site.files[path] = None
        if kind in (Kind.ROBOTS, Kind.ROBOTS_WITH_SITEMAPS):
            site.has_robots = True
            site.names_sitemaps |= kind is Kind.ROBOTS_WITH_SITEMAPS
        else:
            site.sitemaps[url] = kind

    def _read(self, entry: _Entry) -> Record | None:
        part = self._parts[entry.part]
        with part.open() as file:
            return read_record(file, Place(entry.offset, entry.skip), kept_bytes=_KEPT_BYTES, codec=part.codec)

    def _original(self, revisit: Record) -> tuple[_Entry, Record] | None:
        """Return the response that a revisit refers to."""
        headers = revisit.headers
        uri = headers.get("warc-refers-to-target-uri", "").strip("<>")
        url = requested_url(uri) if uri else requested_url(revisit.url)
        date = date_of(headers.get("warc-refers-to-date", ""))
        candidates = (
            None if date is None else self._older.get((url, date.timestamp())),
            self._entries.get(url),
            self._by_digest.get(headers.get("warc-payload-digest", "")),
        )
        for entry in candidates:
            if entry is None or entry.is_revisit:
                continue
            record = self._read(entry)
            if record is not None and _same_payload(record, revisit):
                return entry, record
        return None


def _same_payload(record: Record, revisit: Record) -> bool:
    """Return whether a revisit may refer to a response, by their digests."""
    stated = {one.headers.get("warc-payload-digest", "").lower() for one in (record, revisit)}
    return len(stated - {""}) <= 1


def _body(part: Part, record: Record) -> Iterator[bytes]:
    """Give the body of a response. The file is opened when the first piece is asked for."""
    with part.open() as file:
        yield from open_body(file, record, codec=part.codec)


def kind_of(url: str, record: Record, message: Message) -> Kind:
    """Return what the body of a success is, by its start and by its name."""
    body = record.block[message.body_at :]
    if url.endswith(_ROBOTS) and url.count("/") == 3:
        # What is behind the first bytes of a long one may name a sitemap.
        names = not record.is_block_whole or _NAMES_SITEMAP.search(_start_of(body, message, len(body)))
        return Kind.ROBOTS_WITH_SITEMAPS if names else Kind.ROBOTS
    start = _start_of(body, message, _LOOK_BYTES)
    root = _ROOT.match(start)
    name = root[1].lower() if root else b""
    if name in _KINDS:
        return _KINDS[name]
    # Feeds and texts that are not called a sitemap seldom are one; robots.txt or an index leads to those that are.
    is_list = root is not None or _URL_LINE.match(start) is not None
    return Kind.SITEMAP if is_list and _is_called_sitemap(url) else Kind.OTHER


def _is_called_sitemap(url: str) -> bool:
    """Return whether the last part of a URL's path has the word "sitemap" in it."""
    return "sitemap" in _PATH_END.split(url, maxsplit=1)[0].rpartition("/")[2].lower()


_KINDS = {b"urlset": Kind.SITEMAP, b"sitemapindex": Kind.INDEX}


def _start_of(body: bytes, message: Message, size: int) -> bytes:
    """Return the first bytes of a document, without chunks and compression, as UTF-8 or the like of it."""
    data = body[: max(size, _LOOK_BYTES)]
    if message.is_chunked:
        data = b"".join(dechunked([data]))
    for _ in range(2):  # a gzip file, sent with gzip compression
        if data.startswith(GZIP_MAGIC):
            with suppress(zlib.error):
                data = zlib.decompressobj(31).decompress(data, max(size, _LOOK_BYTES))
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        data = data.decode("utf-16", "ignore").encode("utf-8", "ignore")
    return data[: max(size, _LOOK_BYTES)]
