"""Writes the sitemaps that are read: ordinary ones, sites of many, hostile ones. They are the same on every machine.

Values are a hash of an entry's number, not drawn at random, so that no version of Python changes them. Files are
written in pieces: a process that starts others should stay small.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path

URLSET_PAGES, NEWS_PAGES = 50_000, 20_000
MB = 1_000_000

_NAMESPACES = (
    'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"\n'
    '        xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"\n'
    '        xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"\n'
    '        xmlns:xhtml="http://www.w3.org/1999/xhtml"'
)
_HEAD = f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset {_NAMESPACES}>\n'
_TAIL = "</urlset>\n"
_SECTIONS = ("articles", "products", "guides", "archive", "people", "events", "reviews")
_WORDS = (
    "river",
    "mountain",
    "market",
    "garden",
    "station",
    "library",
    "harbour",
    "museum",
    "bridge",
    "valley",
    "castle",
)
_FREQUENCIES = ("daily", "weekly", "monthly", "yearly", "hourly")
_ZONE = timezone(timedelta(hours=2))
_FIRST = datetime(2018, 1, 1, tzinfo=_ZONE)
_SPAN_SECONDS = 6 * 365 * 86_400
_HOMEPAGE = "https://www.example.org/"
#: Each sitemap of a site has a text of the same length in its place, so that no page is in two sitemaps.
_SITEMAP_MARK = b"part-0000000"


def _mixed(i: int, salt: int = 0) -> int:
    """Hash a number into 32 bits, as the end of MurmurHash3 does."""
    i = (i + salt * 0x9E3779B9) & 0xFFFFFFFF
    i = (i ^ i >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    i = (i ^ i >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return i ^ i >> 16


def _words(bits: int) -> tuple[str, str, str]:
    count = len(_WORDS)
    return _WORDS[bits % count], _WORDS[bits // count % count], _WORDS[bits // count**2 % count]


def _location(i: int, bits: int) -> str:
    query = f"?page={bits % 9}&amp;sort=date" if i % 5 == 0 else ""
    section = _SECTIONS[(bits >> 20) % len(_SECTIONS)]
    return f"{_HOMEPAGE}{section}/part-0000000/{'-'.join(_words(bits))}-{i:06d}{query}"


def _date(bits: int) -> datetime:
    return _FIRST + timedelta(seconds=bits % _SPAN_SECONDS)


def _moment(bits: int) -> str:
    return _date(bits).isoformat()


def _entry(i: int, more: str = "") -> str:
    bits = _mixed(i)
    return (
        "  <url>\n"
        f"    <loc>{_location(i, bits)}</loc>\n"
        f"    <lastmod>{_moment(_mixed(i, 1))}</lastmod>\n"
        f"    <changefreq>{_FREQUENCIES[(bits >> 16) % 5]}</changefreq>\n"
        f"    <priority>{(bits >> 24) % 11 / 10:.1f}</priority>\n"
        f"{more}"
        "  </url>\n"
    )


def _extensions(i: int, name: str = "The Example Times", between: str = " and the ") -> str:
    """Return a news story, an image and two languages. The title has two words with a text between them."""
    words = _words(_mixed(i, 2))
    return (
        "    <news:news>\n"
        "      <news:publication>\n"
        f"        <news:name>{name}</news:name>\n"
        "        <news:language>en</news:language>\n"
        "      </news:publication>\n"
        f"      <news:publication_date>{_moment(_mixed(i, 3))}</news:publication_date>\n"
        f"      <news:title>The {words[0]}{between}{words[1]}, number {i}</news:title>\n"
        f"      <news:keywords>{', '.join(words)}</news:keywords>\n"
        "    </news:news>\n"
        "    <image:image>\n"
        f"      <image:loc>https://images.example.org/{words[0]}/{i:06d}.jpg</image:loc>\n"
        f"      <image:title>A {words[1]}</image:title>\n"
        f"      <image:caption>The {words[1]} by the {words[2]}, seen in the morning of day {i}</image:caption>\n"
        "    </image:image>\n"
        f'    <xhtml:link rel="alternate" hreflang="de" href="https://www.example.org/de/{words[0]}-{i:06d}"/>\n'
        f'    <xhtml:link rel="alternate" hreflang="fr" href="https://www.example.org/fr/{words[0]}-{i:06d}"/>\n'
    )


def urlset(pages: int = URLSET_PAGES) -> bytes:
    """Return a sitemap of pages with their dates, frequencies and priorities: 11 MB for 50,000."""
    return (_HEAD + "".join(map(_entry, range(pages))) + _TAIL).encode()


def news(pages: int = NEWS_PAGES) -> bytes:
    """Return a sitemap of pages that each have a news story, an image and two languages as well."""
    return (_HEAD + "".join(_entry(i, _extensions(i)) for i in range(pages)) + _TAIL).encode()


def references(pages: int = NEWS_PAGES) -> bytes:
    """Return the same with two references in every title, and one in the name of every publication."""
    entries = (_entry(i, _extensions(i, "Example &amp; Times", " &amp; the day&#8217;s ")) for i in range(pages))
    return (_HEAD + "".join(entries) + _TAIL).encode()


def rss(items: int = NEWS_PAGES) -> bytes:
    """Return an RSS feed, as blogs have it: 9 MB for 20,000 items."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/">\n'
        "  <channel>\n    <title>Example</title>\n    <link>https://www.example.org/</link>\n"
        "    <description>What is new</description>\n" + "".join(map(_item, range(items))) + "  </channel>\n</rss>\n"
    ).encode()


def _item(i: int) -> str:
    words = _words(_mixed(i, 2))
    url = f"{_HOMEPAGE}{'/'.join(words)}/{i:06d}"
    return (
        "    <item>\n"
        f"      <title>The {words[0]} and the {words[1]}, number {i}</title>\n"
        f"      <link>{url}</link>\n"
        f'      <guid isPermaLink="true">{url}</guid>\n'
        "      <dc:creator>A. Writer</dc:creator>\n"
        f"      <pubDate>{format_datetime(_date(_mixed(i, 3)))}</pubDate>\n"
        f"      <description>All about the {words[1]} by the {words[2]}, as seen in the morning.</description>\n"
        "    </item>\n"
    )


def atom(entries: int = NEWS_PAGES) -> bytes:
    """Return an Atom feed with the same pages."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
        "  <title>Example</title>\n  <id>https://www.example.org/</id>\n"
        '  <link rel="self" href="https://www.example.org/feed"/>\n'
        + "".join(map(_atom_entry, range(entries)))
        + "</feed>\n"
    ).encode()


def _atom_entry(i: int) -> str:
    words = _words(_mixed(i, 2))
    url = f"{_HOMEPAGE}{'/'.join(words)}/{i:06d}"
    moment = _moment(_mixed(i, 3))
    return (
        "  <entry>\n"
        f"    <title>The {words[0]} and the {words[1]}, number {i}</title>\n"
        f'    <link rel="alternate" href="{url}"/>\n'
        f"    <id>{url}</id>\n"
        f"    <published>{moment}</published>\n    <updated>{moment}</updated>\n"
        "    <author><name>A. Writer</name></author>\n"
        f"    <summary>All about the {words[1]} by the {words[2]}, as seen in the morning.</summary>\n"
        "  </entry>\n"
    )


def index(sitemaps: int = URLSET_PAGES) -> bytes:
    """Return an index of as many sitemaps as the protocol allows."""
    entries = (
        f"  <sitemap>\n    <loc>{_HOMEPAGE}sitemaps/{'-'.join(_words(_mixed(i)))}-{i:06d}.xml.gz</loc>\n"
        f"    <lastmod>{_moment(_mixed(i, 1))}</lastmod>\n  </sitemap>\n"
        for i in range(sitemaps)
    )
    head = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    )
    return (head + "".join(entries) + "</sitemapindex>\n").encode()


def text(pages: int = URLSET_PAGES) -> bytes:
    """Return a plain text sitemap with the pages of `urlset`."""
    return "".join(f"{_location(i, _mixed(i)).replace('&amp;', '&')}\n" for i in range(pages)).encode()


def compressed(data: bytes) -> bytes:
    """Compress data with gzip at its usual level, without a date."""
    return gzip.compress(data, 6, mtime=0)


def write_site(folder: Path, sitemaps: int, pages: int, homepage: str = _HOMEPAGE) -> None:
    """Write the gzipped sitemaps of a site, all different, as `0.xml.gz` and so on, with pages below the homepage."""
    folder.mkdir()
    data = urlset(pages).replace(_HOMEPAGE.encode(), homepage.encode())
    for number in range(sitemaps):
        (folder / f"{number}.xml.gz").write_bytes(
            compressed(data.replace(_SITEMAP_MARK, f"part-{number:07d}".encode()))
        )


# Hostile sitemaps: the hostile part is in the first page, and a second page follows. A reader must find both.


def _text(size: int) -> Iterator[bytes]:
    """Yield one text node of nine tenths of the size; the rest is white space, which costs next to nothing."""
    yield b"<url><loc>https://www.example.org/first</loc><news:news><news:publication><news:name>N</news:name>"
    yield b"<news:language>en</news:language></news:publication><news:publication_date>2024-05-08"
    yield b"</news:publication_date><news:title>"
    yield from _repeated(b"all work and no play ", size * 9 // 10)
    yield b"</news:title></news:news></url>\n"
    yield from _repeated(b" " * 99 + b"\n", size // 10 - 500)
    yield b"<url><loc>https://www.example.org/last</loc></url>\n"


def _attributes(size: int) -> Iterator[bytes]:
    """Yield as many attributes on one tag as fit, ten bytes each, with different names."""
    yield b"<url><loc>https://www.example.org/first</loc><xhtml:link"
    names = (size - 500) // 10
    digits = b"abcdefghijklmnopqrstuvwxyz"
    for start in range(0, names, 26):
        i, name = start // 26, b""
        for _ in range(5):
            i, digit = divmod(i, 26)
            name += digits[digit : digit + 1]
        yield b"".join(b' %s%c=""' % (name, digit) for digit in digits[: names - start])
    yield b' rel="alternate" hreflang="de" href="https://www.example.org/de"/></url>\n'
    yield b"<url><loc>https://www.example.org/last</loc></url>\n"


def _depth(size: int) -> Iterator[bytes]:
    """Yield elements in elements, as deep as fits, all of them closed."""
    levels = (size - 500) // len("<a></a>")
    yield b"<url><loc>https://www.example.org/first</loc>"
    yield from _repeated(b"<a>", levels * 3)
    yield from _repeated(b"</a>", levels * 4)
    yield b"</url>\n<url><loc>https://www.example.org/last</loc></url>\n"


def _repeated(piece: bytes, size: int) -> Iterator[bytes]:
    """Repeat a piece up to a size, without cutting it."""
    times, many = size // len(piece), 50_000
    for _ in range(times // many):
        yield piece * many
    yield piece * (times % many)


HOSTILE: dict[str, Callable[[int], Iterator[bytes]]] = {"text": _text, "attributes": _attributes, "depth": _depth}


def write_hostile(path: Path, kind: str, size: int) -> int:
    """Write a hostile sitemap of about this many bytes; return the number of its pages."""
    pages = 0
    with path.open("wb") as file:
        file.write(_HEAD.encode())
        for piece in HOSTILE[kind](size):
            file.write(piece)
            pages += piece.count(b"<loc>")
        file.write(_TAIL.encode())
    return pages
