"""Lists of sites: given one by one, or in a text, CSV or Parquet file, or on standard input.

Lists are read line by line while the crawl goes on. Of each site, a few bytes stay in memory, so that none is crawled
twice: 27 MB for a million sites, and no more than twice that. A line that is no site is reported, and the rest of the
list is read.

| source | what is read |
|---|---|
| `example.org`, `https://example.org/` | the site itself |
| `sites.txt` | a site on each line; blank lines and those that start with # are skipped |
| `sites.csv`, `sites.tsv` | a column: the one you name, else `url`, `site`, `domain` or the like, else the first |
| `sites.parquet` | the same |
| `-` | standard input, as a text file |

Each of them may be gzipped, except Parquet.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from difflib import get_close_matches
from itertools import chain
from typing import IO, Any, NamedTuple

from usp.exceptions import InvalidArgumentError
from usp.export.dedupe import FirstOfEach
from usp.extras import extra
from usp.origins import masked_url, requested_url, split_credentials
from usp.scan import strip_url_to_homepage
from usp.sources import Reading, find_web_source

__all__ = [
    "SiteTarget",
    "check_lists",
    "check_targets",
    "estimated_count",
    "known_key",
    "listed_targets",
    "read_sites",
    "site_target",
]

#: Names of columns that have sites, the best first.
_COLUMNS = ("url", "site", "homepage", "homepage_url", "website", "domain", "host", "hostname")
_LIST_FILE = re.compile(r".*\.(txt|lst|list|csv|tsv|parquet)(\.gz)?", re.IGNORECASE | re.DOTALL)
_STANDARD_INPUT = "-"
_MAX_LINE = 1 << 16
_COUNTED_BYTES = 1 << 22  # of a list, to count its lines; the rest is taken to be like these
_PIECE_BYTES = 8_192


class SiteTarget(NamedTuple):
    """A site to crawl. `site` is its key in all tables; it does not depend on what the site answers."""

    site: str
    target: str
    reading: Reading


#: Called with a line that is no site, and why.
OnError = Callable[[str, str], None]


def site_target(text: str) -> SiteTarget:
    """Return the site that a text names.

    :raises InvalidArgumentError: if it names none.
    """
    source = find_web_source(text)
    assert source.reading is not None
    url = split_credentials(source.reading.url)[0]
    key = requested_url(strip_url_to_homepage(url) if source.reading.is_site else url)
    return SiteTarget(key, source.target, source.reading)


def known_key(text: str, known: Collection[str]) -> str:
    """Return the key of a site that a user names: as it was given to a crawl, or by its key.

    A host is the site over https or, if that is not known, over http.

    :param known: the keys of all sites.
    :raises InvalidArgumentError: if it is not known.
    """
    if text in known:
        return text
    for written in (text, f"http://{text}"):
        with suppress(InvalidArgumentError):
            if (key := site_target(written).site) in known:
                return key
    near = get_close_matches(text, known, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise InvalidArgumentError(f"the crawl folder has no site {text}{hint}")


def read_sites(
    targets: Iterable[str], on_error: OnError, *, column: str | None = None, seen: FirstOfEach | None = None
) -> Iterator[SiteTarget]:
    """Give the sites of all targets, each once, in order. Nothing is read before you ask for it.

    :param on_error: is called with each line that is no site.
    :param column: the column of CSV and Parquet files.
    :param seen: the keys of sites to leave out; those that are given are added.
    :raises InvalidArgumentError: if a file has no such column.
    :raises OSError: if a file cannot be read.
    """
    seen = seen or FirstOfEach()
    for text in listed_targets(targets, column=column):
        try:
            target = site_target(text)
        except InvalidArgumentError as error:
            on_error(masked_url(text), str(error))
            continue
        if seen.is_first(target.site):
            yield target


def listed_targets(targets: Iterable[str], *, column: str | None = None) -> Iterator[str]:
    """Give the texts of all targets: what is in lists, and targets that are no lists."""
    for target in targets:
        if target == _STANDARD_INPUT:
            yield from _lines(sys.stdin.buffer)
        elif _is_list(target):
            yield from _listed_in(target, column)
        else:
            yield target


def _is_list(target: str) -> bool:
    """Return whether a target is a file that lists sites, though it may be missing; else it is a site or a sitemap."""
    if _LIST_FILE.fullmatch(target) is None or "://" in target:
        return False
    first, *below = target.split("/")
    is_url = bool(below) and "." in first.strip(".")  # example.org/sitemap.txt
    return not is_url or os.path.lexists(target)


def check_targets(targets: Iterable[str], column: str | None = None) -> None:
    """Check what is known before anything is fetched.

    :raises InvalidArgumentError: if a target is neither a list nor a site, or a list has no such column.
    :raises OSError: if a list cannot be read.
    """
    targets = list(targets)
    check_lists(targets, column)
    for target in targets:
        if target != _STANDARD_INPUT and not _is_list(target):
            site_target(target)


def check_lists(targets: Iterable[str], column: str | None = None) -> None:
    """Raise the error of a list that cannot be read. What can be read only once, such as a pipe, is not.

    :raises InvalidArgumentError: if a list has no such column, or is no table.
    :raises OSError: if a list cannot be read.
    """
    for target in filter(_is_list, targets):
        try:
            with open(target, "rb"):
                pass
            if os.path.isfile(target):
                next(_listed_in(target, column), None)
        except FileNotFoundError as error:
            raise FileNotFoundError(
                error.errno, "there is no such file; write a site on each line of it", target
            ) from None


def _kind_of(path: str) -> str:
    match = _LIST_FILE.fullmatch(path)
    return match[1].lower() if match else "txt"


def estimated_count(targets: Iterable[str]) -> int | None:
    """Return about how many sites targets have, to say how long it takes; None if nobody knows.

    Lines are counted, whatever is in them, and only the first ones of a long list. What is wrong with a list is not
    said here, but when it is read.
    """
    total = 0
    for target in targets:
        if target == _STANDARD_INPUT or (_is_list(target) and not os.path.isfile(target)):
            return None  # it can be read only once
        try:
            total += _count_in(target) if _is_list(target) else 1
        except (OSError, EOFError, ValueError, zlib.error):
            return None
    return total


def _count_in(path: str) -> int:
    if _kind_of(path) == "parquet":
        return int(extra("pyarrow.parquet", "crawl").ParquetFile(path).metadata.num_rows)
    with open(path, "rb") as file:
        with gzip.open(_Pieces(file), "rb") if path.lower().endswith(".gz") else nullcontext(file) as lines:
            start = lines.read(_COUNTED_BYTES)
            is_all = not lines.read(1)
        count = start.count(b"\n") + (is_all and not start.endswith(b"\n"))
        return count if is_all else count * os.fstat(file.fileno()).st_size // max(file.tell(), 1)


class _Pieces:
    """A file read in small pieces. gzip reads 128 KiB ahead since Python 3.12, and the position would be beyond."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int) -> bytes:
        """Read at most a small piece."""
        return self._file.read(min(size, _PIECE_BYTES))

    def seek(self, position: int) -> int:
        """Go to a position."""
        return self._file.seek(position)


def _listed_in(path: str, column: str | None) -> Iterator[str]:
    kind = _kind_of(path)
    if kind == "parquet":
        yield from _parquet_rows(path, column)
        return
    try:
        with _opened(path) as file:
            if kind in ("csv", "tsv"):
                yield from _rows(file, path, "," if kind == "csv" else "\t", column)
            else:
                yield from _lines(file)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:  # it was cut short, or is no gzip file
        raise InvalidArgumentError(f"{path} cannot be read: {error}") from None


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    with open(path, "rb") as file:
        if path.lower().endswith(".gz"):
            with gzip.open(file, "rb") as inflated:
                yield inflated  # type: ignore[misc]  # typeshed: a GzipFile is no IO[bytes]
        else:
            yield file


@contextmanager
def _as_text(file: Any, newline: str | None = None) -> Iterator[IO[str]]:
    """Read a file as text: UTF-8 or, with a byte order mark, UTF-16, as Excel writes it."""
    is_utf16 = file.peek(2)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    text = io.TextIOWrapper(file, "utf-16" if is_utf16 else "utf-8-sig", "replace", newline=newline)
    try:
        yield text
    finally:
        text.detach()  # who opened the file closes it


def _lines(file: IO[bytes]) -> Iterator[str]:
    with _as_text(file) as text:
        while line := text.readline(_MAX_LINE):
            if (site := line.strip()) and not site.startswith("#"):
                yield site


def _rows(file: IO[bytes], path: str, delimiter: str, column: str | None) -> Iterator[str]:
    with _as_text(file, newline="") as text:
        head = text.readline(_MAX_LINE)
        if delimiter == "," and "," not in head:  # Excel writes what is usual in the country
            delimiter = next((other for other in ";\t" if other in head), delimiter)
        try:
            yield from _cells(csv.reader(chain([head], text), delimiter=delimiter), path, column)
        except csv.Error as error:
            raise InvalidArgumentError(f"{path} cannot be read as a table: {error}") from None


def _cells(rows: Iterator[list[str]], path: str, column: str | None) -> Iterator[str]:
    head = next(rows, [])
    number = _column_number([name.strip() for name in head], path, column)
    if number is None:  # the file has no head
        number = 0
        yield from (text for text in head[:1] if text.strip())
    for row in rows:
        if len(row) > number and (text := row[number].strip()):
            yield text


def _column_number(names: list[str], path: str, column: str | None) -> int | None:
    """Return the number of the column with sites; None if the first row is no head, and has a site itself."""
    lowered = [name.lower() for name in names]
    if column is not None:
        if column.lower() not in lowered:
            raise InvalidArgumentError(f"{path} has no column {column!r}; it has {', '.join(names[:20])}")
        return lowered.index(column.lower())
    return next((lowered.index(name) for name in _COLUMNS if name in lowered), None)


def _parquet_rows(path: str, column: str | None) -> Iterator[str]:
    pa, parquet = extra("pyarrow", "crawl"), extra("pyarrow.parquet", "crawl")
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            name = names[_column_number(names, path, column) or 0]
            for batch in file.iter_batches(columns=[name]):
                yield from (str(text) for text in batch.column(0).to_pylist() if text)
    except pa.ArrowException as error:
        raise InvalidArgumentError(f"{path} cannot be read as a table: {error}") from None
