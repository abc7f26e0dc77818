"""Columns hold what the pages hold, whoever reads the entries, and just the problems of each page."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scanners import FAST, GENERAL, URL, as_rows
from support import SITEMAP_XMLNS, Fixture, fixtures
from test_corpus import CORPUS, files
from usp.compiled import IS_COMPILED
from usp.documents import Document
from usp.export.values import values_of
from usp.fetch_parse.columns import columns_of
from usp.fetch_parse.opening import parser_of
from usp.fetch_parse.parsers import AbstractPagesParser, XMLSitemapParser
from usp.objects.page import SitemapPage
from usp.objects.problem import ProblemLog
from usp.scan.columns import PAGE_TYPES, Column, Columns, List, PureColumns, Scalar, Struct, Type, bits
from usp.scan.grammar import grammar_of
from usp.scan.plain import READERS, PurePlainColumns, Readers

ALL = frozenset(PAGE_TYPES)
DAY = 86_400_000_000
FIRST, LAST = -719_162 * DAY, 2_932_897 * DAY - 1  # of the microseconds that have a year from 1 to 9999

each_reader = pytest.mark.parametrize("readers", FAST.values(), ids=FAST)

#: Texts as sites write them: plain, escaped once and twice, not ASCII, with what cannot be seen, and broken.
TEXTS = (
    *(
        "A",
        "A &amp; B",
        "AT&amp;T;",
        "A &amp;amp; B",
        "&amp;nbsp;",
        "&nbsp;x",
        "&#65;&#x1F600;",
        "R&D",
        "&lt;b&gt;",
        "a;&",
    ),
    *("Grüße", "日本語, 中文", "\N{GRINNING FACE}", "n\u00a0b", "\u00a0n", "n\u200b", "a\u200db", "\u3000x,\u3000y"),
    *("two\nlines", "tab\tted", "nul\0", "del\x7f", "\x0bv", '"quoted"', "it's, a list,, ,of parts", ",", " ", ""),
    *("<![CDATA[C & D]]>", "<![CDATA[C &amp; D]]>", "<![CDATA[ é\n]]>", "<![CDATA[&amp;nbsp;]]>", "\udce9", "\udcff x"),
)
URLS = ("http://h/a", "http://h/a?b&amp;c", "http://h/é", "http://h/\u00a0", "/b", "http://h/&amp;amp;", "mailto:a", "")
DATES = (
    *("2024-05-08", "2024-05-08T10:00:00+02:00", "2024-05-08T10:00", "2024-05", "1 Jan 1970", "soon", "2024-02-30", ""),
    *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "0001-01-01", "9999-12-31T23:59:59.999999Z"),
    *("&#50;024", "<![CDATA[2024-05-08]]>", "<![CDATA[8 May 2024]]>", "2024-05-08T10:00:00 GMT"),
)
FIELDS = {
    "loc": ("http://h/0", "http://h/1", "http://h/2", *URLS),
    "lastmod": DATES,
    "changefreq": ("daily", "Daily", "often", "é", "&amp;", "<![CDATA[never]]>", ""),
    "priority": ("0.8", "1", "7", ".5", "1e-1", "0,5", "<![CDATA[0.3]]>", "&#48;", "0.12345678901234567", ""),
}


def element(tag: str, *bodies: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*bodies).map(lambda parts: f"<{tag}>{''.join(parts)}</{tag}>")


def one_of(*texts: str) -> st.SearchStrategy[str]:
    return st.sampled_from(texts)


def some_of(prefix: str, names: str, texts: tuple[str, ...] = TEXTS) -> st.SearchStrategy[str]:
    leaves = [element(prefix + name, one_of(*texts)) for name in names.split()]
    return st.lists(st.one_of(leaves), max_size=4, unique_by=lambda leaf: leaf.split(">")[0]).map("".join)


images = element(
    "image:image", element("image:loc", one_of(*URLS)), some_of("image:", "caption geo_location title license")
)
publications = element("news:publication", some_of("news:", "name language"))
news = element(
    "news:news",
    st.one_of(st.just(""), publications),
    element("news:publication_date", one_of(*DATES)),
    some_of("news:", "title title access genres keywords stock_tickers"),
)
videos = element("video:video", some_of("video:", "title duration publication_date tag rating", (*TEXTS, "7", *DATES)))
links = st.builds(
    "<xhtml:link rel='{}' hreflang='{}' href='{}'/>".format,
    one_of("alternate", "alternate", "canonical", "Alternate x"),
    one_of("de", "x-default", "é", "a&amp;b", ""),
    one_of(*URLS),
)
own = [element(name, one_of(*texts)) for name, texts in FIELDS.items()]
extensions = st.one_of(
    *own[1:], images, images, news, links, links, videos, one_of("<!-- c -->", "<x/>", "text", "</loc>")
)
entries = element("url", own[0], st.lists(extensions, max_size=6).map("".join))
documents = st.lists(entries, max_size=8).map(
    lambda bodies: f"<urlset {SITEMAP_XMLNS}>{''.join(bodies)}</urlset>".encode("utf-8", "surrogateescape")
)


def columns_by(readers: Readers, data: bytes, wanted: Collection[str] = ALL) -> Columns:
    parser = XMLSitemapParser(URL, lambda log: [data])
    parser.readers = readers
    return parser.columns(wanted)


def urlset(*entries: str) -> bytes:
    return f"<urlset {SITEMAP_XMLNS}>{''.join(entries)}</urlset>".encode()


def values(data: bytes, name: str, readers: Readers = READERS) -> list[Any]:
    """What a column says, row by row."""
    return [row[name] for row in as_rows(columns_by(readers, data))]


def of_pages(pages: Iterator[SitemapPage], wanted: Collection[str]) -> Columns:
    reader = PureColumns(wanted)
    for page in pages:
        reader.append(page, page._source.last_modified_text())
    return reader.columns()


@settings(max_examples=400, deadline=None, derandomize=True)
@given(documents, st.sets(st.sampled_from(sorted(ALL))))
def test_every_reader_gives_the_same(data: bytes, wanted: set[str]) -> None:
    """Compiled, pure and by the general scanner, the columns are equal to the last bit, and to those of the pages."""
    parser = XMLSitemapParser(URL, lambda log: [data])
    whole, part = columns_by(GENERAL, data), columns_by(GENERAL, data, wanted)
    said = {name: column for name, column in whole.columns.items() if name != "problems"}
    assert Columns(whole.length, said) == of_pages(parser.pages(), ALL)
    assert part.columns == {name: column for name, column in whole.columns.items() if name in {"url", *wanted}}
    for readers in FAST.values():
        assert columns_by(readers, data) == whole
        assert columns_by(readers, data, wanted) == part


@each_reader
@pytest.mark.parametrize("fixture", fixtures(), ids=lambda fixture: fixture.name)
def test_fixtures(fixture: Fixture, readers: Readers) -> None:
    """The columns of every fixture are those of its pages."""
    parser = parser_of(Document(URL, fixture.data))
    if not isinstance(parser, XMLSitemapParser):
        return
    parser.readers = readers
    wanted = ALL - {"problems"}
    assert parser.columns(wanted) == (of_pages(parser.pages(), wanted) if parser.columns().length else Columns(0, {}))


@pytest.mark.skipif(not CORPUS.exists(), reason="no corpus of real files here; USP_CORPUS names one")
def test_real_files() -> None:
    """The columns of real files are those of their pages."""
    seen = 0
    for name, _, data in files("urlset", "index", "rss", "atom", "text"):
        parser = parser_of(Document(URL, data))
        if isinstance(parser, AbstractPagesParser):
            found = parser.columns()
            expected = of_pages(parser.pages() if found.length else iter(()), ALL)
            assert {key: column for key, column in found.columns.items() if key != "problems"} == expected.columns, name
            seen += 1
    assert seen > 100


# What comes out


@each_reader
def test_dates(readers: Readers) -> None:
    """A time is in UTC, and in a year from 1 to 9999 whatever its zone; its text is kept where it has no zone."""
    said = {
        "2024-05-08T10:00:00+02:00": (19_851 * DAY + DAY // 3, None),
        "1970-01-01T00:00:00.000001": (1, "1970-01-01T00:00:00.000001"),
        "1970-02": (31 * DAY, "1970-02"),
        "2 Jan 1970": (DAY, "2 Jan 1970"),
        "0001-01-01": (FIRST, "0001-01-01"),
        "0001-01-01T00:00:00+14:00": (FIRST, None),
        "9999-12-31T23:59:59.999999Z": (LAST, None),
        "9999-12-31T23:59:59-12:00": (LAST, None),
        "soon": (None, None),
    }
    data = urlset(*(f"<url><loc>http://h/{i}</loc><lastmod>{date}</lastmod></url>" for i, date in enumerate(said)))
    rows = zip(values(data, "last_modified", readers), values(data, "last_modified_text", readers), strict=True)
    assert list(rows) == list(said.values())


@each_reader
def test_texts(readers: Readers) -> None:
    """A text is what the site meant: references replaced, broken bytes read as Windows-1252, controls dropped."""
    said = {
        b"&quot;A&quot; &amp; 'B'": "\"A\" & 'B'",
        b"A &amp;amp; B": "A & B",
        b"one\ntwo": "one\ntwo",
        "\N{GRINNING FACE}".encode(): "\N{GRINNING FACE}",
        b"caf\xe9": "café",
        b"\xed\xa0\x80x": "í\xa0€x",  # a surrogate is not UTF-8
        b"&#xD800;": "\N{REPLACEMENT CHARACTER}",
        b"nul\0nul": "nulnul",
        b"&amp;nbsp;": None,
    }
    image = b"<url><loc>http://h/%d</loc><image:image><image:loc>http://h/i</image:loc><image:title>%s</image:title></image:image></url>"
    data = b"<urlset>" + b"".join(image % (i, text) for i, text in enumerate(said)) + b"</urlset>"
    assert [images[0]["title"] for images in values(data, "images", readers)] == list(said.values())


@each_reader
def test_very_many_on_one_page(readers: Readers) -> None:
    """A page may have 100 images and 300 languages, and the next one none."""
    images = "".join(f"<image:image><image:loc>http://h/{i}.png</image:loc></image:image>" for i in range(100))
    links = "".join(f"<xhtml:link rel='alternate' hreflang='l{i}' href='http://h/l{i}'/>" for i in range(300))
    bare = "<url><loc>http://h/{}</loc></url>"
    data = urlset(bare.format(0), f"<url><loc>http://h/1</loc>{images}{links}</url>", bare.format(2))
    assert [found and len(found) for found in values(data, "images", readers)] == [None, 100, None]
    assert [found and len(found) for found in values(data, "alternates", readers)] == [None, 300, None]
    assert values(data, "alternates", readers)[1][299] == {"hreflang": "l299", "url": "http://h/l299"}


@each_reader
def test_the_first_of_two_counts(readers: Readers) -> None:
    """Of a URL that is listed twice, the first entry is the row, whatever the second one has."""
    image = "<image:image><image:loc>http://h/i{}</image:loc></image:image>"
    entries = [f"<url><loc>http://h/{i // 2}</loc><priority>0.{i}</priority>{image.format(i)}</url>" for i in range(6)]
    data = urlset(*entries)
    assert values(data, "priority", readers) == [0.0, 0.2, 0.4]
    assert [found[0]["loc"] for found in values(data, "images", readers)] == [
        "http://h/i0",
        "http://h/i2",
        "http://h/i4",
    ]


def test_news() -> None:
    """The fields of a story are columns of their own, which pages without a story have no value in."""
    story = (
        "<url><loc>http://h/1</loc><news:news><news:publication><news:name>Ñews</news:name><news:language>es</news:language>"
        "</news:publication><news:publication_date>1970-01-02</news:publication_date><news:title>T &amp; U</news:title>"
        "<news:genres>Blog, Opinion</news:genres></news:news></url>"
    )
    data = urlset("<url><loc>http://h/0</loc></url>", story, "<url><loc>http://h/2</loc></url>")
    assert values(data, "news") == [
        None,
        {
            "title": "T & U",
            "publish_date": DAY,
            "publication_name": "Ñews",
            "publication_language": "es",
            "access": None,
            "genres": ["Blog", "Opinion"],
            "keywords": [],
            "stock_tickers": [],
        },
        None,
    ]


# Problems


@each_reader
def test_each_page_has_its_own_problems(readers: Readers) -> None:
    """A problem is of the entry that it stands in; what stands elsewhere is of none."""
    data = urlset(
        "<url><loc>http://h/0</loc><priority>7</priority></url>",
        "<url><loc>http://h/1</loc></url></stray>",
        "<url><loc>/2</loc><lastmod>soon</lastmod><lastmod>never</lastmod></url>",
        "<url><loc>http://h/3</loc>",
        "<url><loc>http://h/4</loc><loc>http://h/5</loc></url>",
        "<url><lastmod>2024</lastmod></url><sitemap><loc>/s</loc></sitemap>",
        "<url><loc>http://h/6</loc></url>",
    )
    assert dict(zip(values(data, "url", readers), values(data, "problems", readers), strict=True)) == {
        "http://h/0": ["P406"],
        "http://h/1": None,
        "http://h/2": ["L302", "U501"],
        "http://h/3": ["X107"],
        "http://h/4": ["P405"],
        "http://h/5": None,
        "http://h/6": None,
    }


@each_reader
def test_problems_of_a_page_that_is_listed_twice(readers: Readers) -> None:
    """A page has the problems of all its entries, each code once."""
    entry = "<url><loc>http://h/0</loc>{}</url>"
    priority, date = "<priority>7</priority>", "<lastmod>soon</lastmod>"
    data = urlset(*(entry.format(body) for body in ("", priority, date + priority)), "<url><loc>http://h/1</loc></url>")
    assert values(data, "problems", readers) == [["L302", "P406"], None]


@each_reader
def test_prefixes_that_are_put_right(readers: Readers) -> None:
    """A prefix that is not declared is a problem where it is first used; one that is missing, wherever it is."""
    image = "<url><loc>http://h/{}</loc><{}image><{}loc>http://h/i</{}loc></{}image></url>"
    data = urlset(*(image.format(i, *[prefix] * 4) for i, prefix in enumerate(("image:", "image:", "", ""))))
    assert [codes and codes[:1] for codes in values(data, "problems", readers)] == [["X117"], None, ["P426"], ["P426"]]
    assert None not in values(data, "images", readers)


def test_problems_of_lines() -> None:
    """A line that is more than a URL is a problem of its URL; one without any, of none."""
    data = b"http://h/0\nsee http://h/1\nnothing\nhttp://h/2\n"
    assert [row["problems"] for row in as_rows(columns_of(Document(URL, data)))] == [None, ["P427"], None]


@pytest.mark.parametrize("wanted", [ALL, ALL - {"problems"}], ids=["problems", "no problems"])
def test_a_document_is_read_once(wanted: frozenset[str]) -> None:
    """Whatever is wanted and wrong, the document is opened once."""
    opened: list[ProblemLog] = []

    def open_text(log: ProblemLog) -> list[bytes]:
        opened.append(log)
        return [urlset("<url><loc>/0</loc></url>", "<url><loc>http://h/1</loc></url>")]

    assert XMLSitemapParser(URL, open_text).columns(wanted).length == 2
    assert len(opened) == 1


def test_what_is_noted_is_bounded() -> None:
    """A text of nothing but problems costs no memory for each of them."""
    columns = columns_of(Document(URL, b"nothing\n" * 200_000 + b"http://h/\n"))
    assert (columns.length, set(columns.columns)) == (1, {"url", "priority"})


# The buffers


def python_calls(reader: PurePlainColumns, data: str) -> list[str]:
    """The functions of Python that are called while a reader takes entries, of which it must leave none."""
    grammar = grammar_of((("", ""),))
    assert grammar is not None
    calls: list[str] = []
    buffer, position, full = data.encode(), 0, True
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None)
    try:
        while full:
            _, position, _, full = reader.take(grammar, buffer, position)
    finally:
        sys.setprofile(before)
    assert position == len(buffer)
    return calls


@pytest.mark.skipif(not IS_COMPILED, reason="there is no compiled scanner here")
@pytest.mark.parametrize("wanted", [ALL, ALL - {"problems"}], ids=["problems", "no problems"])
def test_plain_entries_need_no_python(wanted: frozenset[str]) -> None:
    """No function of Python is called for an entry that is in order, whatever extensions and alphabets it has."""
    entry = (
        "<url><loc>http://h/é{0}?a&amp;b</loc><lastmod>2024-05-08</lastmod><changefreq>Daily</changefreq>"
        "<priority>0.7</priority><image:image><image:loc>http://h/{0}.png</image:loc>"
        "<image:title>日本 &amp; n\u00a0b\nc</image:title></image:image>"
        "<xhtml:link rel='alternate' hreflang='de' href='http://h/de?a&amp;b'/><news:news><news:publication>"
        "<news:name><![CDATA[N & M]]></news:name><news:language>en</news:language></news:publication>"
        "<news:publication_date>2024-05-08T10:00:00Z</news:publication_date>"
        "<news:title>A &amp; \N{GRINNING FACE}</news:title><news:keywords>ä, b</news:keywords></news:news></url>"
    )
    reader = READERS.columns(str, lambda *_: None, wanted)
    assert python_calls(reader, "".join(entry.replace("{0}", str(i)) for i in range(100))) == []
    assert reader.row_of("http://h/é7?a&b") == 7
    assert reader.columns().columns.keys() == ALL - {"videos", "problems"}


@pytest.mark.skipif(not IS_COMPILED, reason="there is no compiled scanner here")
def test_odd_values_are_asked_for_once() -> None:
    """Python reads a value that is written in an unusual way once, not for each entry that has it."""
    dates, priorities = ("1 Jan 1970", "2024-05", "soon"), (".5", "7", "1e-1")
    entry = (
        "<url><loc>http://h/{}</loc><lastmod>{}</lastmod><priority>{}</priority><changefreq>often</changefreq></url>"
    )
    reader = READERS.columns(str, lambda *_: None, ALL - {"problems"})
    calls = python_calls(reader, "".join(entry.format(i, dates[i % 3], priorities[i % 3]) for i in range(3_000)))
    assert len(calls) < 100
    assert reader.columns().length == 3_000


@each_reader
def test_rows_are_found_by_their_url(readers: Readers) -> None:
    """A reader knows the row of each page."""
    reader = readers.columns(str, lambda *_: None, ALL)
    for i in range(2_000):
        reader.append(SitemapPage(f"http://h/é{i}"), "")
    assert [reader.row_of(f"http://h/é{i}") for i in (0, 7, 1_999, 2_000)] == [0, 7, 1_999, -1]


@each_reader
@settings(max_examples=50, deadline=None, derandomize=True)
@given(data=documents)
def test_buffers_are_those_of_arrow(readers: Readers, data: bytes) -> None:
    """Arrow takes every buffer as it is, and reads the same values in it."""
    pa = pytest.importorskip("pyarrow")
    found = columns_by(readers, data)
    for name, column in found.columns.items():
        array = arrow_array(pa, PAGE_TYPES[name], column)
        array.validate(full=True)
        assert array.null_count == values_of(PAGE_TYPES[name], column, column.length).count(None)


def arrow_type(pa: Any, kind: Type) -> Any:
    if isinstance(kind, Struct):
        return pa.struct([(name, arrow_type(pa, part)) for name, part in kind.fields.items()])
    if isinstance(kind, List):
        return pa.large_list(arrow_type(pa, kind.item))
    return {
        Scalar.TEXT: pa.large_string(),
        Scalar.TIME: pa.timestamp("us", "UTC"),
        Scalar.FREQUENCY: pa.uint8(),
        Scalar.NUMBER: pa.float64(),
        Scalar.WHOLE: pa.int64(),
        Scalar.FLAG: pa.bool_(),
    }[kind]


def arrow_array(pa: Any, kind: Type, column: Column) -> Any:
    def buffer(view: memoryview | None) -> Any:
        return None if view is None else pa.py_buffer(view)

    kinds = list(kind.fields.values()) if isinstance(kind, Struct) else [kind.item] if isinstance(kind, List) else []
    children = [arrow_array(pa, of, child) for of, child in zip(kinds, column.children, strict=True)]
    buffers = [buffer(column.valid), buffer(column.offsets), buffer(column.data)]
    kept = buffers[:1] if isinstance(kind, Struct) else buffers[:2] if isinstance(kind, List) else buffers
    if kind is not Scalar.TEXT and not children:
        kept = [buffers[0], buffers[2]]
    return pa.Array.from_buffers(arrow_type(pa, kind), column.length, kept, children=children)


@given(st.lists(st.booleans()))
def test_bits(flags: list[bool]) -> None:
    """A bit for each flag, the lowest of a byte first, and none beside them."""
    found = bits(flags)
    assert [bool(found[i >> 3] >> (i & 7) & 1) for i in range(len(flags))] == flags
    assert sum(byte.bit_count() for byte in found) == sum(flags)
    assert len(found) == (len(flags) + 7) // 8
