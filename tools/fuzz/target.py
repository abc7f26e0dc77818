"""States what must hold for any bytes: nothing raises, and every reader gives the same result.

It does not import atheris, so that tests can use it.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from scanners import GENERAL, URL, as_values, everything, of_pieces
from usp.documents import Document
from usp.fetch_parse.opening import parser_of
from usp.fetch_parse.parsers import XMLSitemapParser
from usp.objects.problem import UNLOGGED
from usp.scan.plain import PURE, READERS
from usp.tree import sitemap_from_bytes

__all__ = ["READ_BY", "check"]

#: Documents at these URLs are read in different ways; an input is read as one of them.
URLS = (URL, "http://h/robots.txt", "http://h/s.xml.gz")
READ_BY = {"general": GENERAL, "pure": PURE, "compiled": READERS}
#: Documents that inflate to more are skipped: they take too long, and find no more.
MAX_UNFOLDED_BYTES = 1 << 14


class Difference(Exception):
    """Two readers of a document gave different results."""


def check(data: bytes) -> None:
    """Read a document with all readers. Raise if one of them raises, or if they differ."""
    if not _is_small(data):
        return
    chance = zlib.crc32(data)
    cut = chance % (len(data) + 1)
    _read_all(data, URLS[chance % len(URLS)])
    whole = of_pieces([data], GENERAL)
    pieces = {name: of_pieces([data[:cut], data[cut:]], readers) for name, readers in READ_BY.items()}
    _compare(f"as text, cut at {cut}", {"whole": whole, **pieces})
    _compare_late(data, whole)
    parser = parser_of(Document(URL, data))
    if isinstance(parser, XMLSitemapParser) and b"".join(parser.open(UNLOGGED)) != data:
        _compare("as a document", {name: everything(parser, readers) for name, readers in READ_BY.items()})


def _is_small(data: bytes) -> bool:
    size = 0
    for piece in Document(URL, data).pieces(UNLOGGED.add):
        size += len(piece)
        if size > MAX_UNFOLDED_BYTES:
            return False
    return True


def _read_all(data: bytes, url: str) -> None:
    """Read all that a caller could read of a document."""
    sitemap = sitemap_from_bytes(data, url)
    for page in sitemap.all_pages():
        page.to_dict()
    for problem in sitemap.all_problems():
        str(problem)
    sitemap.to_dict()
    repr(sitemap)


def _compare_late(data: bytes, whole: object) -> None:
    """Compare the readers where no field is read before all pages are there."""
    assert isinstance(whole, tuple)
    _, reason, _, pages, *_ = whole
    found = {"whole": pages}
    for name, readers in READ_BY.items():
        parser = XMLSitemapParser(URL, lambda log: [data])
        parser.readers = readers
        found[name] = [] if reason else [as_values(page) for page in list(parser.pages())]
    _compare("with fields read late", found)


def _compare(how: str, found: Mapping[str, object]) -> None:
    first, *others = found
    for other in others:
        if found[other] != found[first]:
            raise Difference(f"read {how}\n{first}: {found[first]!r}\n{other}: {found[other]!r}")
