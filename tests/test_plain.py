"""The fast readers, compiled and in plain Python, give the same results as the general scanner alone."""

from __future__ import annotations

import gc
import gzip
import random
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from itertools import pairwise
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scanners import FAST, GENERAL, URL, as_rows, columns_of, of_document, of_pieces
from support import SITEMAP_XMLNS, Fixture, fixtures, urlset
from usp.compiled import IS_COMPILED
from usp.documents import Document
from usp.fetch_parse.opening import parser_of
from usp.objects.page import SitemapPage
from usp.scan.grammar import grammar_of
from usp.scan.plain import PURE, READERS, Readers
from usp.tree import sitemap_from_bytes

pytestmark = pytest.mark.compare

each_fixture = pytest.mark.parametrize("fixture", fixtures(), ids=lambda fixture: fixture.name)
each_reader = pytest.mark.parametrize("readers", FAST.values(), ids=FAST)
NAMESPACES = (("", ""), ("image", "image"), ("news", "news"), ("xhtml", "xhtml"), ("video", "video"))

LEAVES = (
    *("<loc>http://h/a</loc>", "<loc>http://h/a?b=1&amp;c=2</loc>", "<loc><![CDATA[http://h/c?d&e]]></loc>"),
    *("<loc>null</loc>", "<loc>#</loc>", "<loc>www.h.example/a</loc>", "<loc>http://.h/</loc>"),
    *("<loc> http://h/é </loc>", "<loc>/relative</loc>", "<loc>http://h/&#233;&eacute;&amp;amp;</loc>", "<loc/>"),
    *(
        "<lastmod>2024-05-08</lastmod>",
        "<lastmod>2024-05-08T10:00:00+02:00</lastmod>",
        "<lastmod>May 8, 2024</lastmod>",
    ),
    *("<lastmod>2024-02-30</lastmod>", "<lastmod>2024-05-08T10:00:00.5Z</lastmod>", "<lastmod> </lastmod>"),
    *("<changefreq>daily</changefreq>", "<changefreq>Weekly</changefreq>", "<changefreq>often</changefreq>"),
    *("<priority>0.8</priority>", "<priority>1.0</priority>", "<priority>2</priority>", "<priority>.5</priority>"),
    *("<priority>0.12345678901234567</priority>", "<priority>1e-1</priority>", "<changefreq>&amp;</changefreq>"),
    "<image:image><image:loc>http://h/i.png</image:loc><image:title>A &amp; B</image:title></image:image>",
    "<image:image><image:caption>no place</image:caption></image:image>",
    "<image:image><loc>http://h/plain.png</loc></image:image>",
    "<news:news><news:publication><news:name>N</news:name><news:language>en</news:language></news:publication>"
    "<news:publication_date>2024-05-08</news:publication_date><news:title>T é &amp;amp; U</news:title>"
    "<news:keywords>a, b,, c</news:keywords></news:news>",
    "<news:news><news:title>&amp;nbsp;</news:title><news:publication_date>2024</news:publication_date></news:news>",
    "<xhtml:link rel='alternate' hreflang='de' href='http://h/de?a&amp;b'/>",
    '<xhtml:link rel="stylesheet" hreflang="de" href="http://h/css"/>',
    '<xhtml:link hreflang="fr" href="/fr" title="x"></xhtml:link>',
    '<xhtml:link hreflang="it" href="http://h/it"/>',
    '<xhtml:link rel="" hreflang="it" href="None"/>',
    "<image:image><image:loc>undefined</image:loc></image:image>",
    "<xhtml:link rel='alternate' hreflang='e\r\nn' href='http://h/a\tb'/>",
    "<image:image><image:loc>http://h/i\r\n</image:loc><image:title>A\r\n&amp;\rB</image:title></image:image>",
    "<image:image><image:loc>http://h/i</image:loc><image:caption><![CDATA[A\r\n&\rB]]></image:caption></image:image>",
    "<video:video><video:title>V</video:title><video:duration>60</video:duration><video:tag>t</video:tag>"
    '<video:price currency="EUR">1.99</video:price></video:video>',
    *("<!-- a comment -->", "\n\t ", "text", "<other>x</other>", "<loc>", "</loc>", "&", "<image:image>", "</url>"),
)
entries = st.lists(st.lists(st.sampled_from(LEAVES), max_size=6).map("".join), max_size=6).map(
    lambda bodies: "".join(f"<url>{body}</url>\n" for body in bodies)
)
documents = entries.map(lambda body: f"<urlset>{body}</urlset>".encode())
many = settings(max_examples=200)


@each_reader
@each_fixture
def test_fixtures(fixture: Fixture, readers: Readers) -> None:
    """Every fixture gives the same results with every reader."""
    assert of_document(fixture.data, readers) == of_document(fixture.data, GENERAL)


@many
@given(documents, st.lists(st.integers(0, 2_000), max_size=5))
def test_entries_of_all_sorts(data: bytes, cuts: list[int]) -> None:
    """Entries with any content give the same results, read whole or in pieces."""
    expected = of_pieces([data], GENERAL)
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    for readers in FAST.values():
        assert of_pieces([data], readers) == expected
        assert of_pieces([data[a:b] for a, b in pairwise(edges)], readers) == expected


@many
@given(documents, st.data())
def test_mutated_entries(data: bytes, draw: st.DataObject) -> None:
    """Documents with bytes dropped, doubled, swapped or replaced give the same results."""
    document = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 4))):
        i, j = sorted(draw.draw(st.tuples(*[st.integers(0, len(document) - 1)] * 2)))
        match draw.draw(st.integers(0, 3)):
            case 0:
                del document[i : min(j, len(document) - 1)]
            case 1:
                document[i:i] = document[i:j]
            case 2:
                document[i], document[j] = document[j], document[i]
            case 3:
                document[i] = draw.draw(st.sampled_from(b"<>&/\"' \n\0\x01\x7f\xff\xc3a:;=!-[]?"))
    expected = of_pieces([bytes(document)], GENERAL)
    for readers in FAST.values():
        assert of_pieces([bytes(document)], readers) == expected


def small_document() -> bytes:
    chance = random.Random(5)
    body = "".join(f"<url>{''.join(chance.sample(LEAVES[:-9], 4))}</url>\n" for _ in range(6))
    return f"<urlset xmlns='{SITEMAP_XMLNS}'>\n{body}</urlset>".encode()


# A fast reader once read each of these differently.
ODD = {
    "first empty once cleaned": "<url><loc>http://h/a</loc><lastmod>&#32;</lastmod><lastmod>2024-01-01</lastmod></url>",
    "title empty once cleaned": "<url><loc>http://h/a</loc><news:news><news:title>\u200b</news:title><news:title>T</news:title>"
    "<news:publication_date>2024</news:publication_date></news:news></url>",
    "vertical tab at the edge": "<url><loc>\x0bhttp://h/a</loc><lastmod>2024-01-01\x0c</lastmod></url>",
    "very many attributes": "<url><loc>http://h/a</loc><xhtml:link "
    + "a='' " * 255
    + "rel='alternate' hreflang='de' href='http://h/de'/></url>",
    "control character in a prefix": "<a\x01b:sitemap><loc>http://h/s.xml</loc></a\x01b:sitemap>",
    "year with a bad digit": "<url><loc>http://h/a</loc><lastmod>20>4-05-08</lastmod></url>",
    "control characters between fields": "<url>\x01<loc>http://h/a</loc>\x02\x0b</url>\x03<url><loc>http://h/b</loc></url>",
    "void tag as a leaf": "<url><loc>http://h/a</loc></url><br>x</br><url><loc>http://h/b</loc></url>",
}


@each_reader
def test_a_urlset_behind_an_index(readers: Readers) -> None:
    """Entries of a second document are read like those of the first."""
    data = b"<sitemapindex></sitemapindex><urlset><url><loc>http://h/a</loc></url></urlset>"
    assert of_pieces([data], readers) == of_pieces([data], GENERAL)


@each_reader
@pytest.mark.parametrize("name", ODD)
def test_odd_entries(name: str, readers: Readers) -> None:
    """Odd entries give the same results, also in two pieces."""
    data = f"<urlset>{ODD[name]}</urlset>".encode()
    expected = of_pieces([data], GENERAL)
    assert of_pieces([data], readers) == expected
    for cut in range(len(data)):
        assert of_pieces([data[:cut], data[cut:]], readers) == expected, cut


def test_many_prefixes_for_one_namespace() -> None:
    """A document with more names than the tables can hold gives the same results."""
    prefixes = " ".join(f"xmlns:p{i}='{SITEMAP_XMLNS}'" for i in range(12))
    for prefix in ("", "p3:"):
        data = f"<urlset xmlns='{SITEMAP_XMLNS}' {prefixes}><{prefix}url><{prefix}loc>http://h/a</{prefix}loc></{prefix}url></urlset>"
        assert of_document(data.encode(), READERS) == of_document(data.encode(), GENERAL)
        assert len(sitemap_from_bytes(data.encode()).pages) == 1


def test_pages_keep_their_grammar() -> None:
    """The fields of a page do not depend on when you read them, even if prefixes change later in the document."""
    data = (
        b"<urlset><url><loc>http://h/1</loc><image:image><image:loc>http://h/i.png</image:loc></image:image></url></urlset>"
        b"<urlset xmlns:a='sitemap-video'><url><loc>http://h/2</loc></url></urlset>"
    )
    at_once = [page.to_dict() for page in sitemap_from_bytes(data).pages]
    assert at_once[0]["images"] is not None
    assert [page.to_dict() for page in list(sitemap_from_bytes(data).pages)] == at_once


def test_kept_pages_keep_little() -> None:
    """A page keeps its own texts in memory, and nothing else of its document."""
    data = urlset(*(f"http://h/{i}" for i in range(2_000))).encode()
    tracemalloc.start()
    try:
        kept = [next(iter(sitemap_from_bytes(data).pages)) for _ in range(100)]
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(kept) == 100
    assert size < 500_000


def test_memory_does_not_grow_with_a_document() -> None:
    """Memory does not grow with the size of a document."""
    entry = b"<url><loc>http://h/</loc></url>"
    document = gzip.compress(b"<urlset>" + entry * 300_000 + b" " * 20_000_000 + b"</urlset>", 1)
    sitemap = sitemap_from_bytes(document)
    tracemalloc.start()
    try:
        assert sum(1 for _ in sitemap.pages) == 1
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3_000_000


def test_a_lazy_slot_is_of_its_class_only() -> None:
    """A lazy slot cannot be read on other objects, nor deleted."""
    slot = SitemapPage.__dict__["priority"]
    with pytest.raises((TypeError, AttributeError)):
        slot.__get__(Mock(spec=SitemapPage), SitemapPage)
    with pytest.raises(AttributeError):
        object.__delattr__(SitemapPage("http://h/"), "priority")


def test_one_iterator_in_several_threads() -> None:
    """Threads that share an iterator get Python's own error and do not crash."""
    sitemap = sitemap_from_bytes(urlset(*(f"http://h/{i}" for i in range(5_000))).encode())
    for _ in range(5):
        shared = sitemap.all_pages()

        def go_through(pages: Iterator[SitemapPage] = shared) -> None:
            with suppress(ValueError):
                for page in pages:
                    assert page.url

        threads = [threading.Thread(target=go_through) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


WAITING: dict[str, Callable[[int], bytes]] = {
    "spaces": lambda n: b"<urlset>" + b" " * n,
    "spaces in an entry": lambda n: b"<urlset><url>" + b" " * n,
    "comments in an entry": lambda n: b"<urlset><url>" + (b"<!--" + b"c" * 60_000 + b"-->") * (n // 60_007),
    "namespaces": lambda n: b"<urlset>" + b"".join(b"<a xmlns:p%d='sitemap'></a>" % i for i in range(n // 400)),
    "unclean values": lambda n: b"<urlset>" + b"<url><loc>http://h/</loc><lastmod>x</lastmod></url>" * (n // 1_000),
}


@pytest.mark.parametrize("shape", WAITING)
def test_what_never_becomes_an_entry_costs_linear_time(shape: str) -> None:
    """A document without complete plain entries takes time in proportion to its size."""

    def seconds(size: int) -> float:
        document = gzip.compress(WAITING[shape](size), 1)
        started = time.process_time()
        sitemap = sitemap_from_bytes(document)
        assert len(list(sitemap.pages)) <= 1
        assert sitemap.problems is not None
        return time.process_time() - started

    small = min(seconds(2_000_000) for _ in range(2))
    assert seconds(16_000_000) < 20 * max(small, 0.02)


@each_reader
def test_cut_off_at_every_byte(readers: Readers) -> None:
    """A document that is cut off at any byte gives the same results."""
    data = small_document()
    for end in range(len(data)):
        assert of_pieces([data[:end]], readers) == of_pieces([data[:end]], GENERAL), end


@each_reader
def test_cut_in_two_at_every_byte(readers: Readers) -> None:
    """A document in two pieces, or byte by byte, gives the same results."""
    data = small_document()
    expected = of_pieces([data], GENERAL)
    for cut in range(len(data)):
        assert of_pieces([data[:cut], data[cut:]], readers) == expected, cut
    assert of_pieces([data[i : i + 1] for i in range(len(data))], readers) == expected


@each_reader
def test_plain_entries_are_taken(readers: Readers) -> None:
    """A fast reader leaves nothing of a plain document to the general scanner."""
    entry = (
        b"<url>\n  <loc>http://h/%d?a&amp;b</loc>\n <lastmod>2024-05-08T10:00:00Z</lastmod>"
        b"<changefreq>daily</changefreq><priority>0.5</priority>\n</url>\n"
    )
    buffer = b"".join(entry % i for i in range(100))
    grammar = grammar_of(NAMESPACES)
    assert grammar is not None
    pages, position, more, full = readers.pages(str, lambda *_: None).take(grammar, buffer + b"<url><loc>", 0)
    assert [page.url for page in pages] == [f"http://h/{i}?a&b" for i in range(100)]
    assert (buffer[position:].strip(), more, full) == (b"", True, False)
    check, checked, full = readers.check(), 0, True
    while full:
        _, checked, _, full = check.take(grammar, buffer, checked)
    assert buffer[checked:].strip() == b""


@pytest.mark.skipif(not IS_COMPILED, reason="the compiled modules are not in use")
def test_entries_with_extensions_are_taken() -> None:
    """The compiled reader takes entries with images, news, videos, languages, CDATA, comments and other prefixes."""
    grammar = grammar_of((("", ""), ("i", "image"), ("s", "")))
    assert grammar is not None
    for body in (
        *(leaf for leaf in LEAVES[16:-9] if "<loc>" not in leaf),
        "<i:image><i:loc>http://h/i</i:loc></i:image>",
        "<!-- c -->",
        "<s:lastmod>2024</s:lastmod>",
    ):
        buffer = f"<url><loc>http://h/é</loc>{body}</url>".encode()
        pages, position, _, _ = READERS.pages(str, lambda *_: None).take(grammar, buffer, 0)
        assert (len(pages), position) == (1, len(buffer)), body


@pytest.mark.skipif(not IS_COMPILED, reason="the compiled modules are not in use")
def test_the_url_of_the_sitemap_is_looked_up_once() -> None:
    """The compiled reader asks for the URL of the sitemap once for a document, not once for each page."""
    convert = Mock(return_value="http://h/s.xml")
    grammar = grammar_of(NAMESPACES)
    assert grammar is not None
    buffer = b"".join(b"<url><loc>http://h/%d</loc></url>" % i for i in range(9))
    pages, _, _, _ = READERS.pages(str, convert).take(grammar, buffer, 0)
    assert [page.sitemap_url for page in pages] == ["http://h/s.xml"] * 9
    assert convert.call_count == 1


@each_reader
def test_what_is_wrong_is_left(readers: Readers) -> None:
    """The checking reader skips no entry that has a problem."""
    grammar = grammar_of(NAMESPACES)
    assert grammar is not None
    for body in (
        *("<loc>/a</loc>", "<loc>http://h/a&b</loc>", "<loc>http://h/\x01</loc>", "<loc></loc>", "<loc>mailto:a</loc>"),
        *("<loc>http://h/</loc><lastmod>soon</lastmod>", "<loc>http://h/</loc><priority>7</priority>"),
        *("<loc>http://h/</loc><changefreq>often</changefreq>", "<loc>http://h/</loc><loc>http://h/2</loc>"),
        "<loc>http://h/</loc><image:image></image:image>",
        "<loc>http://h/</loc><news:news><news:title>T</news:title></news:news>",
        "<loc>http://h/</loc><xhtml:link rel='alternate' hreflang='de' href='/de'/>",
        "<loc>http://h/</loc><xhtml:link hreflang='de' href='http://h/de'/>",
        *("<loc>None</loc>", "<loc>#top</loc>", "<loc>www.h.example</loc>", "<loc>http://.h/</loc>"),
        "<loc>http://h/</loc><image:image><image:loc>null</image:loc></image:image>",
    ):
        buffer = f"<url>{body}</url>".encode()
        assert readers.check().take(grammar, buffer, 0)[1] == 0, body


def test_columns() -> None:
    """Columns have the values of the pages: dates in UTC, and beside them the text of a date without a zone."""
    data = b"""<urlset>
        <url><loc>http://h/1</loc><lastmod>1970-01-02</lastmod><changefreq>never</changefreq></url>
        <url><loc>http://h/\xc3\xa9</loc><lastmod>1970-01-01T01:00:00.000001+01:00</lastmod><priority>0.85</priority></url>
        <url><loc>http://h/1</loc><lastmod>2024</lastmod></url>
        <url><loc>http://h/3</loc><lastmod>1969-12-31T23:59:59</lastmod><priority>9</priority></url>
        <url><loc>http://h/4</loc><lastmod>0001-01-01</lastmod></url>
        <url><loc>http://h/5</loc><lastmod>9999-12-31T23:59:59Z</lastmod></url>
        <url><loc>http://h/6</loc><lastmod>1 Jan 1970</lastmod><lastmod>2024-05-08</lastmod></url>
        <url><loc>http://h/7</loc></url></urlset>"""
    day = 86_400_000_000
    names = ("url", "last_modified", "last_modified_text", "change_frequency", "priority", "problems")
    assert [tuple(row[name] for name in names) for row in as_rows(columns_of(Document(URL, data)))] == [
        ("http://h/1", day, "1970-01-02", "never", None, None),
        ("http://h/é", 1, None, None, 0.85, None),
        ("http://h/3", -1_000_000, "1969-12-31T23:59:59", None, None, ["P406"]),
        ("http://h/4", -719_162 * day, "0001-01-01", None, None, None),
        ("http://h/5", 2_932_897 * day - 1_000_000, None, None, None, None),
        ("http://h/6", 0, "1 Jan 1970", None, None, ["P431"]),
        ("http://h/7", None, None, None, None, None),
    ]


def test_columns_of_other_documents() -> None:
    """Texts and feeds have columns of URLs; a document that is not a sitemap has none."""
    assert [row["url"] for row in as_rows(columns_of(Document(URL, b"http://h/1\nhttp://h/2\nhttp://h/1")))] == [
        "http://h/1",
        "http://h/2",
    ]
    feed = b"<rss><item><title>T</title><link>http://h/1</link></item></rss>"
    assert [row["url"] for row in as_rows(columns_of(Document(URL, feed)))] == ["http://h/1"]
    for nothing in (b"", b"<html></html>", b"nothing", b"<urlset/>"):
        assert columns_of(Document(URL, nothing)) == []


def test_fields_are_converted_once_when_they_are_read() -> None:
    """A page asks its source for a field when you first read it, and never again."""

    class Source:
        asked: list[str] = []  # noqa: RUF012 -- of this test only

        def value(self, name: str, /) -> object:
            self.asked.append(name)
            return Decimal("0.25")

        def last_modified_text(self) -> str:
            return ""

    page = SitemapPage.__new__(SitemapPage)
    type(page).__mro__[1].__dict__["_source"].__set__(page, Source())
    assert Source.asked == []
    assert page.priority is page.priority
    assert Source.asked == ["priority"]


def test_pages_outlive_their_document() -> None:
    """A page has the same fields after its document is gone."""
    pages = list(sitemap_from_bytes(small_document(), URL).pages)
    again = [page.to_dict() for page in sitemap_from_bytes(small_document(), URL).pages]
    assert [page.to_dict() for page in pages] == again
    assert parser_of(Document(URL, b"<urlset/>")) is not None


@pytest.mark.skipif(not IS_COMPILED, reason="the compiled modules are not in use")
def test_the_compiled_scanner_is_used() -> None:
    """Where there is a compiled scanner, it is the one that is used."""
    assert READERS is not PURE
    assert type(SitemapPage.__dict__["priority"]).__module__ == "usp.objects._lazy"
