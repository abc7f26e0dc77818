"""Properties: no input raises, the size of pieces does not matter, and lxml agrees on well-formed documents."""

from __future__ import annotations

import gzip
import html
from itertools import pairwise
from xml.sax.saxutils import escape

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lxml import etree

from scanners import FAST, GENERAL, as_rows
from support import FIXTURES, SITEMAP_XMLNS, fixtures
from usp.fetch_parse.parsers import XMLSitemapParser
from usp.objects.problem import ProblemLog
from usp.objects.sitemap import AbstractSitemap
from usp.scan.dates import parse_date
from usp.scan.entries import XMLScanner
from usp.scan.places import places_of
from usp.scan.values import unescape
from usp.tree import sitemap_from_bytes

SEEDS = [fixture.data for fixture in fixtures() if len(fixture.data) < 5_000]
URL = "http://h/s.xml"
many = settings(max_examples=150)

markup = st.lists(
    st.sampled_from(
        [
            *(b"<urlset>", b"</urlset>", b"<url>", b"</url>", b"<loc>", b"</loc>", b"<lastmod>", b"</lastmod>"),
            *(b"<sitemapindex>", b"<sitemap>", b"</sitemap>", b"<rss>", b"<item>", b"</item>", b"<link>", b"<feed>"),
            *(b"<image:image>", b"<image:loc>", b"<video:video>", b"<video:price a='b'>", b"<entry>", b"<news:news>"),
            *(b"<!--", b"-->", b"<![CDATA[", b"]]>", b"<?xml ", b"?>", b"<!DOCTYPE x>", b"<", b">", b"&", b"&amp;"),
            *(b"http://h/1", b"2024-05-08", b"\0", b"\xff", b" ", b"\n", b'"', b"'", b"=", b"/>", b"<a b='c'/>"),
        ]
    ),
    max_size=40,
).map(b"".join)


def look_at_everything(sitemap: AbstractSitemap) -> None:
    repr(sitemap)
    sitemap._repr_html_()
    sitemap.to_dict()
    assert all(page.url.lower().startswith("http") for page in sitemap.all_pages())
    assert all(problem.message for problem in sitemap.all_problems())


@many
@given(st.binary(max_size=2_000))
def test_any_bytes(data: bytes) -> None:
    """No bytes raise, whatever kind of document they are read as."""
    for url in (URL, "http://h/robots.txt", "http://h/s.xml.gz"):
        look_at_everything(sitemap_from_bytes(data, url))
        look_at_everything(sitemap_from_bytes(b"\x1f\x8b" + data, url))


@many
@given(markup)
def test_any_markup(data: bytes) -> None:
    """No arrangement of tags raises, with or without a root."""
    look_at_everything(sitemap_from_bytes(data, URL))
    look_at_everything(sitemap_from_bytes(b"<urlset>" + data, URL))


@many
@given(st.sampled_from(SEEDS), st.data())
def test_mutated_documents(seed: bytes, data: st.DataObject) -> None:
    """No document raises when bytes of it are dropped, doubled, swapped or replaced."""
    document = bytearray(seed)
    for _ in range(data.draw(st.integers(1, 6))):
        if len(document) < 2:
            break
        i, j = sorted(data.draw(st.tuples(*[st.integers(0, len(document) - 1)] * 2)))
        match data.draw(st.integers(0, 3)):
            case 0:
                del document[i:j]
            case 1:
                document[i:i] = document[i:j]
            case 2:
                document[i], document[j] = document[j], document[i]
            case 3:
                document[i] = data.draw(st.integers(0, 255))
    look_at_everything(sitemap_from_bytes(bytes(document), URL))


def entries(chunks: list[bytes]) -> object:
    log = ProblemLog(URL)
    log.locate = lambda offsets: places_of(offsets, chunks)
    scanner = XMLScanner(chunks, log)
    found = [
        (e.name, e.fields, e.text, [(c.name, c.fields, c.text, c.attributes) for c in e.children]) for e in scanner
    ]
    return found, scanner.root, scanner.unknown_root, scanner.tokens.refused, log.problems()


@many
@given(markup.map(lambda data: b"<urlset>" + data), st.lists(st.integers(0, 400), max_size=8))
def test_pieces_make_no_difference(data: bytes, cuts: list[int]) -> None:
    """The entries and problems of a document do not depend on how it is cut into pieces."""
    edges = [0, *sorted(cuts), len(data)]
    pieces = [data[a:b] for a, b in pairwise(edges) if a < b]
    assert entries(pieces) == entries([data])
    assert entries([data[i : i + 1] for i in range(len(data))]) == entries([data])


def test_cut_at_every_offset() -> None:
    """A truncated document gives the entries before the cut, and never a wrong one."""
    document = (FIXTURES / "images.xml").read_bytes()
    whole = sitemap_from_bytes(document, URL).pages
    for offset in range(len(document)):
        pages = sitemap_from_bytes(document[:offset], URL).pages
        complete = document[:offset].count(b"</url>")
        assert pages[:complete] == whole[:complete]
        assert [page.url for page in pages] == [page.url for page in whole[: len(pages)]]


def is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


text = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), max_size=20)
paths = st.lists(text, max_size=8)


@many
@given(paths, st.sampled_from(["utf-8", "utf-16", "iso-8859-1"]), st.booleans())
def test_an_independent_parser_agrees(paths: list[str], encoding: str, packed: bool) -> None:
    """The URLs of a well-formed document are those that lxml reads."""
    body = "".join(f"<url><loc>http://h/{escape(path)}</loc></url>" for path in paths)
    document = f'<?xml version="1.0" encoding="{encoding}"?><urlset {SITEMAP_XMLNS}>{body}</urlset>'
    data = document.encode(encoding, "xmlcharrefreplace")
    assume(encoding != "iso-8859-1" or data.isascii() or not is_utf8(data))  # usp reads that as UTF-8, by its rule
    root = etree.fromstring(data, etree.XMLParser(resolve_entities=False))
    expected = dict.fromkeys(
        (loc.text or "").strip().strip("\u00ad\u200b\u200e\u200f\u2060\ufeff").strip() for loc in root.iter("{*}loc")
    )
    pages = sitemap_from_bytes(gzip.compress(data) if packed else data, URL).pages
    assert [page.url for page in pages] == [url.replace("&amp;", "&") for url in expected]


in_texts = st.lists(st.sampled_from(["a", "\r", "\n", "\r\n", "\t", " ", "&#13;", "&#10;", "&amp;", "é"]), max_size=9)


@many
@given(in_texts.map("".join), in_texts.map("".join))
def test_an_independent_parser_agrees_on_line_ends(text: str, in_cdata: str) -> None:
    """Line ends in texts, CDATA and attributes are those that lxml reads, in objects and in columns."""
    data = (
        f'<urlset xmlns:image="sitemap-image" xmlns:xhtml="xhtml"><url><loc>http://h/</loc>'
        f"<image:image><image:loc>http://h/i</image:loc><image:title>x{text}x</image:title>"
        f"<image:caption><![CDATA[x{in_cdata.replace('&amp;', '+')}x]]></image:caption></image:image>"
        f'<xhtml:link rel="alternate" hreflang="x{text}x" href="http://h/de"/></url></urlset>'
    ).encode()
    root = etree.fromstring(data)
    title, caption, language = root.findtext(".//{*}title"), root.findtext(".//{*}caption"), root.find(".//{*}link")
    assert language is not None
    expected = [(title, html.unescape(str(caption)))], [(language.get("hreflang"), "http://h/de")]
    page = sitemap_from_bytes(data, URL).pages[0]
    assert ([(image.title, image.caption) for image in page.images or ()], page.alternates) == expected
    for readers in (*FAST.values(), GENERAL):
        parser = XMLSitemapParser(URL, lambda log: [data])
        parser.readers = readers
        (row,) = as_rows(parser.columns())
        assert [(image["title"], image["caption"]) for image in row["images"]] == expected[0]  # type: ignore[attr-defined]
        assert [tuple(link.values()) for link in row["alternates"]] == expected[1]  # type: ignore[attr-defined]


@many
@given(st.text(max_size=40))
def test_any_text(text: str) -> None:
    """Parsing any text as a date never raises, and unescaping undoes escaping exactly."""
    parse_date(text)
    assert unescape(escape(text)) == text


@many
@given(st.datetimes(timezones=st.none() | st.timezones()))
def test_any_date(moment: object) -> None:
    """Every date that Python writes in ISO 8601, to the second, is parsed back."""
    written = moment.replace(microsecond=0).isoformat()  # type: ignore[attr-defined]
    if len(written) <= 25:  # zones with seconds, long ago, have no form in the specification
        found = parse_date(written)
        assert found is not None
        assert found.isoformat() == written
