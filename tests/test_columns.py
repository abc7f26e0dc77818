"""Columns have the values of the pages with every reader, and the problems of each page."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus import files, needs_corpus
from scanners import FAST, GENERAL, URL, as_rows, columns_of, everything, profiled, python_calls
from support import SITEMAP_XMLNS, Fixture, fixtures
from usp.compiled import IS_COMPILED
from usp.documents import Document
from usp.export.formats.cells import values_of
from usp.fetch_parse.abstract import AbstractPagesParser
from usp.fetch_parse.opening import parser_of
from usp.fetch_parse.parsers import PlainTextSitemapParser, XMLSitemapParser
from usp.objects.page import Pages, SitemapPage
from usp.objects.problem import ProblemLog, Problems
from usp.scan.columns import PAGE_TYPES, Column, Columns, List, PureColumns, Scalar, Struct, Type, bits
from usp.scan.plain import READERS, Readers

pytestmark = pytest.mark.compare

ALL = frozenset(PAGE_TYPES)
DAY = 86_400_000_000
FIRST, LAST = -719_162 * DAY, 2_932_897 * DAY - 1  # of the microseconds that have a year from 1 to 9999

each_reader = pytest.mark.parametrize("readers", FAST.values(), ids=FAST)

#: Texts as sites write them: plain, escaped once and twice, not ASCII, with invisible characters, and broken.
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
    *("CR\r\nLF\rCR\r", "\r\r\n&amp;\r", "&#13;\r\n&#xD;x", "é\r\né", "<![CDATA[C\r\nD\r&amp;]]>", "a\r\n, b\r,"),
    *("two\nlines", "tab\tted", "nul\0", "del\x7f", "\x0bv", '"quoted"', "it's, a list,, ,of parts", ",", " ", ""),
    *("<![CDATA[C & D]]>", "<![CDATA[C &amp; D]]>", "<![CDATA[ é\n]]>", "<![CDATA[&amp;nbsp;]]>", "\udce9", "\udcff x"),
)
URLS = (
    *("http://h/a", "http://h/a?b&amp;c", "http://h/é", "http://h/\u00a0", "/b", "http://h/&amp;amp;", "mailto:a", ""),
    *("None", "#top", "www.h.example/a", "http://.h/", "<![CDATA[null]]>", "http://h/a\r\nb"),
)
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
#: Fields of videos -> valid values, which are chosen most often, and invalid ones.
NUMBERS = ("7", "007", "9" * 18, "<![CDATA[7]]>"), ("9" * 19, "9" * 20, "-1", "\u0661", "7.0")
RATINGS = ("4.25", "5", "0.10", "1234567.1234567"), (".5", "5.", "1e3", "1e999", "0.1234567890123456789", "4,2")
FLAGS = ("yes", "No", "TRUE", "false", "1", "0", "<![CDATA[yes]]>"), ("maybe", "2", "y", "falsey")
WORDS = ("IE  GB\tCA", "web"), ("é", "a&amp;b")
PROPER_TEXTS = ("A", "A &amp; B", "Grüße", "日本語", "two\nlines", "two\r\nlines", "<![CDATA[C & D]]>"), TEXTS
PROPER_URLS = ("http://h/a", "http://h/a?b&amp;c", "http://h/é"), URLS
PROPER_DATES = ("2024-05-08", "2024-05-08T10:00:00+02:00", "1 Jan 1970", "9999-12-31T23:59:59-12:00"), DATES
VIDEO_FIELDS = {
    **dict.fromkeys(("title", "description", "category"), PROPER_TEXTS),
    **dict.fromkeys(("thumbnail_loc", "content_loc"), PROPER_URLS),
    **dict.fromkeys(("expiration_date", "publication_date"), PROPER_DATES),
    **dict.fromkeys(("duration", "view_count"), NUMBERS),
    **dict.fromkeys(("family_friendly", "requires_subscription", "live"), FLAGS),
    "rating": RATINGS,
}
VIDEO_ELEMENTS = {
    "player_loc": (PROPER_URLS, ("allow_embed='yes'", 'autoplay=" ap=1 "', "allow_embed='No' autoplay='x'")),
    "gallery_loc": (PROPER_URLS, ("title='T'",)),
    "uploader": (PROPER_TEXTS, ("info='http://h/u'",)),
    "restriction": (WORDS, ("relationship='allow'",)),
    "platform": (WORDS, ("relationship='deny'", "")),
    "tag": (PROPER_TEXTS, ("", "")),
    "price": (RATINGS, ("currency='EUR' type='rent'",)),
    "content_segment_loc": (PROPER_URLS, ("duration='7'",)),
    "id": (PROPER_TEXTS, ("type='url'",)),
}
ODD_ATTRIBUTES = (
    *(
        "info='/u'",
        "allow_embed='maybe'",
        "title='a&amp;b'",
        "relationship='a&b'",
        "title='é'",
        "title=''",
        "title=bare",
    ),
    *("Info='x'", "x='y'", "xmlns='x'", "info='http://h/1' info='http://h/2'", "autoplay"),
)


def mostly(proper: tuple[str, ...], others: tuple[str, ...]) -> st.SearchStrategy[str]:
    return one_of(*proper * (15 * len(others) // len(proper) + 1), *others)


def video_element(name: str) -> st.SearchStrategy[str]:
    texts, attributes = VIDEO_ELEMENTS[name]
    written = mostly((*attributes, ""), ODD_ATTRIBUTES).map(lambda attribute: f" {attribute}" if attribute else "")
    return st.builds(f"<video:{name}{{}}>{{}}</video:{name}>".format, written, mostly(*texts))


video_fields = st.lists(
    st.one_of([element(f"video:{name}", mostly(*texts)) for name, texts in VIDEO_FIELDS.items()]), max_size=6
).map("".join)
video_elements = st.lists(
    st.one_of([video_element(name) for name in [*VIDEO_ELEMENTS][:6] * 5 + [*VIDEO_ELEMENTS]]), max_size=3
).map("".join)
shows = element("video:tvshow", some_of("video:", "show_title season_number premier_date", (*TEXTS, "7", *DATES)))
videos = element("video:video", video_fields, video_elements, mostly(("",), ("<video:uploader/>", "<video:x/>")))
videos_and_shows = st.one_of(*[videos] * 9, element("video:video", video_fields, shows))
links = st.builds(
    "<xhtml:link {} hreflang='{}' href='{}'/>".format,
    one_of("rel='alternate'", "rel='alternate'", "rel='canonical'", "rel='Alternate x'", "", "rel=''"),
    one_of("de", "x-default", "é", "a&amp;b", ""),
    one_of(*URLS),
)
own = [element(name, one_of(*texts)) for name, texts in FIELDS.items()]
extensions = st.one_of(
    *own[1:], images, images, news, links, links, videos_and_shows, one_of("<!-- c -->", "<x/>", "text", "</loc>")
)
entries = element("url", own[0], st.lists(extensions, max_size=6).map("".join))
documents = st.lists(entries, max_size=8).map(
    lambda bodies: f"<urlset {SITEMAP_XMLNS}>{''.join(bodies)}</urlset>".encode("utf-8", "surrogateescape")
)


def columns_by(readers: Readers, data: bytes, wanted: Collection[str] = ALL) -> Columns:
    """Return the columns of a short document."""
    parser = XMLSitemapParser(URL, lambda log: [data])
    parser.readers = readers
    return only(parser.columns(wanted))


def only(parts: Iterable[Columns]) -> Columns:
    """Return the only part of some columns, or empty columns if there is none."""
    found = [*parts]
    assert len(found) <= 1
    return found[0] if found else Columns(0, {})


def urlset(*entries: str) -> bytes:
    return f"<urlset {SITEMAP_XMLNS}>{''.join(entries)}</urlset>".encode("utf-8", "surrogateescape")


def values(data: bytes, name: str, readers: Readers = READERS) -> list[Any]:
    """Return the values of a column."""
    return [row[name] for row in as_rows([columns_by(readers, data)])]


def of_pages(pages: Iterator[SitemapPage], wanted: Collection[str]) -> Columns:
    reader = PureColumns(wanted)
    for page in pages:
        reader.append(page, page._source.last_modified_text())
    return reader.columns()


@settings(max_examples=400)
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


#: Parts of entries that come again and again, so that the compiled reader knows what follows each of them.
PARTS = (
    *("<lastmod>{}</lastmod>", "\n  <priority>0.5</priority>", "<changefreq>daily</changefreq>\n", "<!-- c -->", " "),
    *("<image:image><image:loc>http://h/{}.png</image:loc></image:image>", "<image:image>\n</image:image>", "<x/>"),
    *("<xhtml:link rel='alternate' hreflang='de' href='http://h/{}'/>", "<xhtml:link rel='alternate'>{}</xhtml:link>"),
    *(
        "<video:video><video:title>{}</video:title><video:uploader info='http://h/{}'/></video:video>",
        "</url>",
        "<url>",
    ),
    *("<video:video><video:uploader info='http://h/u'/></video:uploader></video:video>", "</xhtml:link>", "<lastmod/>"),
    *("<video:video><video:uploader info='http://h/u'>{}</video:uploader></video:video>", "<loc>http://h/2{}</loc>"),
    *("<news:news><news:publication><news:name>{}</news:name></news:publication></news:news>", "{}", "</image:image>"),
    *(
        "<xhtml:linked rel='alternate' hreflang='fr' href='http://h/{}'/>",
        "<xhtml:link\nhreflang='fr' href='http://h/f'/>",
    ),
)
shapes = st.lists(st.sampled_from(PARTS), max_size=4).map("".join)


@settings(max_examples=300)
@given(
    st.lists(shapes, min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(("2024-05-08", "<![CDATA[a]]>", "x", ""))), max_size=24),
    st.integers(1, 400),
)
def test_entries_that_repeat_themselves(bodies: list[str], drawn: list[tuple[int, str]], size: int) -> None:
    """What the compiled reader learned of the entries before does not change what it finds."""
    entry = "<url><loc>http://h/{}</loc>{}</url>"
    data = urlset(*(entry.format(i, bodies[n % len(bodies)].replace("{}", text)) for i, (n, text) in enumerate(drawn)))
    pieces = [data[i : i + size] for i in range(0, len(data), size)]

    def found(readers: Readers) -> object:
        return everything(XMLSitemapParser(URL, lambda log: pieces), readers)

    assert found(READERS) == found(GENERAL)


@pytest.mark.parametrize("size", [1 << 20, 1, 7, 50])
def test_a_longer_name_is_another_tag(size: int) -> None:
    """A tag whose name starts with the name of a known tag with attributes is not that tag."""
    entry = "<url><loc>http://h/{}</loc><xhtml:link{} rel='alternate' hreflang='de' href='http://h/de/{}'/></url>"
    data = urlset(*(entry.format(i, more, i) for i, more in enumerate(("", "", "ed", "-x", ".", "\n", ""))))
    pieces = [data[i : i + size] for i in range(0, len(data), size)]
    parser = XMLSitemapParser(URL, lambda log: pieces)
    assert [len(page.alternates or ()) for page in parser.pages()] == [1, 1, 0, 0, 0, 1, 1]
    assert everything(parser, READERS) == everything(parser, GENERAL)


@settings(max_examples=300)
@given(st.lists(st.lists(videos_and_shows, min_size=1, max_size=3).map("".join), max_size=6))
def test_every_reader_gives_the_same_of_videos(bodies: list[str]) -> None:
    """Videos that the compiled reader knows, and others among them, give the same columns as the general scanner."""
    data = urlset(*(f"<url><loc>http://h/{i}</loc>{body}</url>" for i, body in enumerate(bodies)))
    for wanted in (ALL, {"videos"}, {"problems"}):
        assert columns_by(READERS, data, wanted) == columns_by(GENERAL, data, wanted)


@each_reader
@pytest.mark.parametrize("fixture", fixtures(), ids=lambda fixture: fixture.name)
def test_fixtures(fixture: Fixture, readers: Readers) -> None:
    """The columns of every fixture are those of its pages."""
    parser = parser_of(Document(URL, fixture.data))
    if not isinstance(parser, XMLSitemapParser):
        return
    parser.readers = readers
    wanted = ALL - {"problems"}
    is_any = any(parser.columns())
    assert only(parser.columns(wanted)) == (of_pages(parser.pages(), wanted) if is_any else Columns(0, {}))


@each_reader
@pytest.mark.parametrize("fixture", fixtures(), ids=lambda fixture: fixture.name)
def test_columns_tell_whether_a_document_has_problems(fixture: Fixture, readers: Readers) -> None:
    """A document has the same problems whether or not its columns were read first, which may spare a second read."""
    found, expected = (parser_of(Document(URL, fixture.data)) for _ in range(2))
    if isinstance(found, AbstractPagesParser) and isinstance(expected, AbstractPagesParser):
        found.readers = expected.readers = readers
        any(found.columns({"url", "problems"}))
        list(found.columns())
        assert found.problems() == expected.problems()


@each_reader
def test_columns_of_a_clean_document_spare_a_read(readers: Readers) -> None:
    """Whoever has read all columns of a document without problems need not read it again to know that."""
    reads = []

    def open_text(log: ProblemLog) -> list[bytes]:
        reads.append(log)
        return [urlset("<url><loc>http://h/a</loc><lastmod>2024-05-08</lastmod></url>")]

    parser = XMLSitemapParser(URL, open_text)
    parser.readers = readers
    list(parser.columns())
    assert parser.problems() == Problems()
    assert len(reads) == 1


@needs_corpus
def test_real_files_have_the_same_problems_after_their_columns() -> None:
    """The problems of real files do not depend on whether their columns were read first."""
    spared = 0
    for name, _, data in files("urlset", "index", "rss", "atom", "text"):
        found, expected = (parser_of(Document(URL, data)) for _ in range(2))
        if isinstance(found, AbstractPagesParser) and isinstance(expected, AbstractPagesParser):
            list(found.columns())
            spared += found._problems is not None
            assert found.problems() == expected.problems(), name
    assert spared > 100


@needs_corpus
def test_real_files() -> None:
    """The columns of real files are those of their pages."""
    seen = 0
    for name, _, data in files("urlset", "index", "rss", "atom", "text"):
        parser = parser_of(Document(URL, data))
        if isinstance(parser, AbstractPagesParser):
            found = only(parser.columns())
            expected = of_pages(parser.pages() if found.length else iter(()), ALL)
            assert {key: column for key, column in found.columns.items() if key != "problems"} == expected.columns, name
            seen += 1
    assert seen > 100


# Values


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
    """In a text, references are replaced, broken bytes are read as Windows-1252, and control characters are dropped."""
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
    """A URL that is listed twice has the values of its first entry."""
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
    """A page without a news story is null in the columns of news."""
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
    """A problem belongs to the page of its entry. Problems outside entries belong to no page."""
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
        "http://h/2": ["L302", "P431", "U501"],
        "http://h/3": ["X107"],
        "http://h/4": ["P405"],
        "http://h/5": None,
        "http://h/6": None,
    }


@each_reader
def test_problems_of_a_page_that_is_listed_twice(readers: Readers) -> None:
    """A page that is listed twice has the problems of its first entry."""
    entry = "<url><loc>http://h/{}</loc>{}</url>"
    priority, date = "<priority>7</priority>", "<lastmod>soon</lastmod>"
    of_pages = [(0, priority), (1, ""), (0, date), (1, priority), (2, date + priority)]
    data = urlset(*(entry.format(*page) for page in of_pages))
    assert values(data, "problems", readers) == [["P406"], None, ["L302", "P406"]]


@each_reader
def test_prefixes_that_are_repaired(readers: Readers) -> None:
    """An undeclared prefix is a problem at its first use, a missing prefix at every use."""
    image = "<url><loc>http://h/{}</loc><{}image><{}loc>http://h/i</{}loc></{}image></url>"
    data = urlset(*(image.format(i, *[prefix] * 4) for i, prefix in enumerate(("image:", "image:", "", ""))))
    assert [codes and codes[:1] for codes in values(data, "problems", readers)] == [["X117"], None, ["P426"], ["P426"]]
    assert None not in values(data, "images", readers)


lines = st.lists(
    st.tuples(
        one_of("", "", "", " ", "\t", "- ", "see ", "\ufeff", "\0", '"', "# "),
        one_of(
            "http://h/0", "HTTPS://h:80/1?a&amp;b", "http://h", "http://h/é", "http://ü/", "http:///", "h", "", *URLS
        ),
        one_of("", "", "", " ", "\t5", '"', "\u2019", "]]", "`", " # no", " http://h/2,", "\udcff", "\x7f", "\u200b"),
        one_of("\n", "\n", "\n", "\r\n", "\r", "\r\r\n", "\x0c", "\x85", "\u2028", ""),
    ).map("".join),
    max_size=30,
).map(lambda texts: "".join(texts).encode("utf-8", "surrogateescape"))


def lines_by(
    readers: Readers, pieces: list[bytes], wanted: Collection[str] = ALL, most_rows: int = 10_000
) -> list[Columns]:
    parser = PlainTextSitemapParser(URL, lambda log: pieces)
    parser.readers = readers
    parser.batch_rows = most_rows
    return [*parser.columns(wanted)]


@settings(max_examples=400)
@given(lines, st.integers(1, 40))
def test_every_reader_gives_the_same_of_lines(data: bytes, size: int) -> None:
    """Compiled, pure and line by line, in one piece or in many, the columns of a text are those of its pages."""
    parser = PlainTextSitemapParser(URL, lambda log: [data])
    whole = lines_by(GENERAL, [data])
    assert [row["url"] for row in as_rows(whole)] == [page.url for page in parser.pages()]
    for readers in FAST.values():
        assert lines_by(readers, [data]) == whole
        assert lines_by(readers, [data[i : i + size] for i in range(0, len(data), size)]) == whole
        assert only(lines_by(readers, [data], {"url"})).columns.keys() <= {"url"}


@each_reader
def test_long_lines(readers: Readers) -> None:
    """Every reader reads a line completely, or skips it."""
    sizes = (59_999, 60_010, 60_011, 65_534, 65_535, 65_536, 65_537, 200_000)
    data = b"".join(b"http://h/".ljust(size, b"x") + b"\n" for size in sizes)
    assert [len(str(row["url"])) for row in as_rows(lines_by(readers, [data]))] == [
        size for size in sizes if size <= 65_536
    ]


@each_reader
@pytest.mark.parametrize("most_rows", [1, 2, 600, 1_024, 5_000])
def test_long_documents_come_in_parts(readers: Readers, most_rows: int) -> None:
    """The parts of a document together are the whole document; a page of an earlier part is not repeated."""
    image = "<image:image><image:loc>http://h/i</image:loc></image:image>"
    video = "<video:video><video:title>t</video:title></video:video>"
    bodies = ("<lastmod>2024-05</lastmod>", "<priority>7</priority>", image, video, "")
    data = urlset(*(f"<url><loc>http://h/{i % 1_500}</loc>{bodies[i % 5]}</url>" for i in range(2_000)))
    parser = XMLSitemapParser(URL, lambda log: [data])
    parser.readers = readers
    whole = as_rows(parser.columns())
    parser.batch_rows = most_rows
    parts = [*parser.columns()]
    assert as_rows(parts) == whole
    assert len(whole) == 1_500 == sum(part.length for part in parts)
    assert (len(parts) > 1) == (most_rows < 1_500)
    assert all(part.length for part in parts)
    for part in parts:
        assert all(column.length == part.length for column in part.columns.values())
    text = b"".join(b"http://h/%d\n" % (i % 1_500) + b"\n see http://h/%d\n" % i for i in range(2_000))
    pieces = [text[i : i + 500] for i in range(0, len(text), 500)]
    assert as_rows(lines_by(readers, pieces, ALL, most_rows)) == as_rows(lines_by(readers, [text]))


@each_reader
def test_parts_of_plain_entries(readers: Readers) -> None:
    """A reader ends a part at the limit, even if it could take the whole document."""
    data = urlset(*(f"<url><loc>http://h/{i}</loc></url>" for i in range(2_000)))
    parser = XMLSitemapParser(URL, lambda log: [data])
    parser.readers = readers
    parser.batch_rows = 600
    first, second = (part.length for part in parser.columns())
    assert first + second == 2_000
    assert 600 <= first <= 600 + 512


@each_reader
def test_no_part_is_empty(readers: Readers) -> None:
    """A text without URLs has no parts, however long it is."""
    parser = PlainTextSitemapParser(URL, lambda log: [b"nothing\n" * 1_000] * 10)
    parser.readers = readers
    parser.batch_bytes = 1_000
    assert [*parser.columns()] == []


@pytest.mark.parametrize("count", [0, 1, 7, 9, 15, 16, 25, 26])
def test_the_first_rows(count: int) -> None:
    """The first rows of columns are those of the first pages, wherever parts end."""
    data = urlset(
        *(
            f"<url><loc>http://h/{i}</loc><priority>{i}</priority><video:video><video:tag>é{i}</video:tag><video:live>no"
            "</video:live></video:video></url>"
            for i in range(25)
        )
    )
    parser = XMLSitemapParser(URL, lambda log: [data])
    parser.readers = GENERAL
    parser.batch_rows = 9
    pages = parser.parse().first(count, Problems()).pages
    assert isinstance(pages, Pages)
    assert pages.columns is not None
    whole = as_rows(parser.columns())
    assert len(pages) == min(count, 25)
    assert as_rows(pages.columns(ALL)) == whole[:count]
    assert whole[7]["problems"] == ["P406"]


@each_reader
def test_parts_are_cut_by_bytes(readers: Readers) -> None:
    """A document of few long rows comes in parts, too."""
    data = urlset(*(f"<url><loc>http://h/{i}</loc><title>{'x' * 1_000}</title></url>" for i in range(1_000)))
    parser = XMLSitemapParser(URL, lambda log: (data[i : i + 10_000] for i in range(0, len(data), 10_000)))
    parser.readers = readers
    parser.batch_bytes = 200_000
    parts = [*parser.columns()]
    assert len(parts) == 6
    assert [row["url"] for row in as_rows(parts)] == [f"http://h/{i}" for i in range(1_000)]


def test_problems_of_lines() -> None:
    """A line with more than a URL is a problem of its page. A line without a URL belongs to no page."""
    data = b"http://h/0\nsee http://h/1\nnothing\nhttp://h/2\n"
    assert [row["problems"] for row in as_rows(columns_of(Document(URL, data)))] == [None, ["P427"], None]
    odd = b"see http://h/3 http://h/4\n" + b"  http://h/5\n" * 9 + b"\xff http://h/6\n nothing\n http://h/7\n"
    found = [row["problems"] for row in as_rows(columns_of(Document(URL, odd)))]
    assert found == [["P427"], ["P427"], None, ["E203", "P427"], None]


@pytest.mark.parametrize("wanted", [ALL, ALL - {"problems"}], ids=["problems", "no problems"])
def test_a_document_is_read_once(wanted: frozenset[str]) -> None:
    """A document is opened once, whatever columns are asked for and whatever its problems."""
    opened: list[ProblemLog] = []

    def open_text(log: ProblemLog) -> list[bytes]:
        opened.append(log)
        return [urlset("<url><loc>/0</loc></url>", "<url><loc>http://h/1</loc></url>")]

    assert only(XMLSitemapParser(URL, open_text).columns(wanted)).length == 2
    assert len(opened) == 1


@each_reader
def test_only_what_is_stated(readers: Readers) -> None:
    """A priority and a change frequency are null where the sitemap states none, or no valid one."""
    entries = {
        "": (None, None),
        "<priority>0.5</priority><changefreq>always</changefreq>": (0.5, "always"),
        "<priority>0.5</priority><changefreq>Daily</changefreq><video:video/>": (0.5, "daily"),
        "<priority></priority><changefreq></changefreq>": (None, None),
        "<priority> </priority><changefreq> </changefreq><title/>": (None, None),
        "<priority>7</priority><changefreq>often</changefreq>": (None, None),
        "<priority>7</priority><changefreq>often</changefreq><video:video/>": (None, None),
        "<priority>&#48;</priority><changefreq>&#110;ever</changefreq>": (0, "never"),
        "<priority><![CDATA[0.3]]></priority><changefreq><![CDATA[never]]></changefreq>": (0.3, "never"),
        "<priority>é</priority><changefreq>é</changefreq>": (None, None),
    }
    data = "".join(f"<url><loc>http://h/{number}</loc>{body}</url>" for number, body in enumerate(entries))
    for wanted in ({"priority", "change_frequency"}, ALL):
        found = as_rows([columns_by(readers, f"<urlset {SITEMAP_XMLNS}>{data}</urlset>".encode(), wanted)])
        assert [(row["priority"], row["change_frequency"]) for row in found] == list(entries.values())
    feed = columns_by(readers, b"<rss><item><link>http://h/1</link></item></rss>")
    text = only(columns_of(Document(URL, b"http://h/1\nhttp://h/2\n")))
    assert not {"priority", "change_frequency"} & (text.columns.keys() | feed.columns.keys())


def test_what_is_noted_is_bounded() -> None:
    """Memory does not grow with the number of problems."""
    columns = only(columns_of(Document(URL, b"nothing\n" * 200_000 + b"http://h/\n")))
    assert (columns.length, set(columns.columns)) == (1, {"url"})


# The buffers


@pytest.mark.skipif(not IS_COMPILED, reason="the compiled modules are not in use")
@pytest.mark.parametrize("wanted", [ALL, ALL - {"problems"}], ids=["problems", "no problems"])
def test_plain_entries_need_no_python(wanted: frozenset[str]) -> None:
    """The compiled reader calls no Python function for a plain entry, whatever its extensions and alphabets."""
    entry = (
        "<url><loc>http://h/é{0}?a&amp;b</loc><lastmod>2024-05-08</lastmod><changefreq>Daily</changefreq>"
        "<priority>0.7</priority><image:image><image:loc>http://h/{0}.png</image:loc>"
        "<image:title>日本 &amp; n\u00a0b\nc</image:title></image:image>"
        "<xhtml:link rel='alternate' hreflang='de' href='http://h/de?a&amp;b'/><news:news><news:publication>"
        "<news:name><![CDATA[N & M]]></news:name><news:language>en</news:language></news:publication>"
        "<news:publication_date>2024-05-08T10:00:00Z</news:publication_date>"
        "<news:title>A &amp; \N{GRINNING FACE}</news:title><news:keywords>ä, b</news:keywords></news:news>"
        "<video:video><video:title>T &amp; ä</video:title><video:player_loc allow_embed='yes' autoplay='a'>http://h/p"
        "</video:player_loc><video:duration>7</video:duration><video:rating>4.2</video:rating><video:tag>t</video:tag>"
        "<video:publication_date>2024-05-08T10:00:00Z</video:publication_date><video:live>no</video:live>"
        "<video:restriction relationship='allow'>IE GB</video:restriction><video:uploader info='http://h/u'>U"
        "</video:uploader></video:video></url>"
    )
    reader = READERS.columns(str, lambda *_: None, wanted)
    assert python_calls(reader, "".join(entry.replace("{0}", str(i)) for i in range(2_000))) == []
    calls, columns = profiled(reader.columns)
    assert len(calls) < 1_000  # for columns, not for rows
    assert columns.columns.keys() == ALL - {"problems"}
    assert as_rows([columns])[7]["url"] == "http://h/é7?a&b"


@pytest.mark.skipif(not IS_COMPILED, reason="the compiled modules are not in use")
def test_odd_values_are_asked_for_once() -> None:
    """Python reads an unusual value once, not for each entry that has it."""
    dates, priorities = ("1 Jan 1970", "2024-05", "soon"), (".5", "7", "1e-1")
    entry = (
        "<url><loc>http://h/{}</loc><lastmod>{}</lastmod><priority>{}</priority><changefreq>often</changefreq></url>"
    )
    reader = READERS.columns(str, lambda *_: None, ALL - {"problems"})
    calls = python_calls(reader, "".join(entry.format(i, dates[i % 3], priorities[i % 3]) for i in range(3_000)))
    assert len(calls) < 100
    assert reader.columns().length == 3_000


@each_reader
@settings(max_examples=50)
@given(data=documents)
def test_buffers_are_those_of_arrow(readers: Readers, data: bytes) -> None:
    """Arrow accepts every buffer without a change, and reads the same values."""
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
        Scalar.INTEGER: pa.int64(),
        Scalar.BOOLEAN: pa.bool_(),
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
    """There is a bit for each flag, the lowest of a byte first, and no other bit is set."""
    found = bits(flags)
    assert [bool(found[i >> 3] >> (i & 7) & 1) for i in range(len(flags))] == flags
    assert sum(byte.bit_count() for byte in found) == sum(flags)
    assert len(found) == (len(flags) + 7) // 8
