"""Character references mean the same in every field and to every reader, with the same problems at the same places."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checks import urlset_of
from scanners import FAST, GENERAL, URL, everything, of_pieces, python_calls
from surveys import KINDS, Model
from usp.compiled import IS_COMPILED
from usp.fetch_parse.parsers import XMLSitemapParser
from usp.scan.columns import PAGE_TYPES
from usp.scan.plain import READERS, Readers
from usp.scan.survey import Surveyors

pytestmark = pytest.mark.compare

each_reader = pytest.mark.parametrize("readers", FAST.values(), ids=FAST)
compiled = pytest.mark.skipif(not IS_COMPILED, reason="the compiled modules are not in use")

#: What a title says -> what it means, and the codes of its problems.
FORMS: dict[str, tuple[str, tuple[str, ...]]] = {
    # XML's names, decimal and hexadecimal numbers, characters of one to four bytes
    "A &amp; B": ("A & B", ()),
    "&lt;b&gt;&quot;&apos;": ("<b>\"'", ()),
    "It&#8217;s &#65;": ("It\u2019s A", ()),
    "&#x41;&#X42;&#x6a;": ("ABj", ()),
    "&#233;&#xe9;": ("éé", ()),
    "&#128512; &#x1F600; &#x10FFFF;.": ("\N{GRINNING FACE} \N{GRINNING FACE} \U0010ffff.", ()),
    "&#00000065;&#x000041;": ("AA", ()),
    "日本 &amp; &#26085;": ("日本 & 日", ()),
    # names of HTML, known and unknown, long and short
    "caf&eacute; &copy;": ("café ©", ("X103", "X103")),
    "&thetasym; &hellip;": ("\u03d1 \u2026", ("X103", "X103")),
    "&CounterClockwiseContourIntegral;": ("\u2233", ("X103",)),
    "&nosuch; &AMP; &Lt;": ("&nosuch; & \u226a", ("X103", "X103", "X103")),
    # no references
    "R&D": ("R&D", ("X102",)),
    "&": ("&", ("X102",)),
    "&&amp;&": ("&&&", ("X102", "X102")),
    "a &; b &#; &#x; &x;": ("a &; b &#; &#x; &x;", ("X102",) * 4),
    "AT&amp T": ("AT&amp T", ("X102",)),
    "&copy=1 &#65 &#x41g;": ("&copy=1 &#65 &#x41g;", ("X102",) * 3),
    "&#000000065; &#x0000041;": ("&#000000065; &#x0000041;", ("X102", "X102")),
    "&#-1; &#1.5; &# 65;": ("&#-1; &#1.5; &# 65;", ("X102",) * 3),
    f"&{'a' * 32}; &{'a' * 33};": (f"&{'a' * 32}; &{'a' * 33};", ("X103", "X102")),
    # digits of other alphabets
    "&#\u0666\u0665;": ("A", ()),
    "&#6\u0665;": ("A", ()),
    # escaped twice, and three times
    "A &amp;amp; B": ("A & B", ()),
    "A &amp;#8217; B &amp;eacute; C": ("A \u2019 B é C", ()),
    "&amp;amp;amp;": ("&amp;", ()),
    "&#38;amp;": ("&", ()),
    "&#38;#38;": ("&", ()),
    "A &amp;nosuch; &amp;#1; B": ("A &nosuch;  B", ()),
    # numbers that are no characters, or may not stand in XML
    "a&#0;b": ("ab", ("X108",)),
    "a&#1;&#x1f;b": ("ab", ("X108", "X108")),
    "a&#127;b": ("ab", ()),
    "a&#xD800;&#57343;b": ("a\ufffd\ufffdb", ()),
    "a&#1114112;&#99999999;&#xFFFFFF;b": ("a\ufffd\ufffd\ufffdb", ()),
    "a&#133;&#159;&#xFFFE;b": ("a\x85\x9f\ufffeb", ()),
    # white space and invisible characters
    "a&#10;&#9;b&#13;&#13;\n c": ("a\n\tb\r\r\n c", ()),
    "a\r\n&amp;\rb": ("a\n&\nb", ()),
    "&#32;a&#160;": ("a", ()),
    "&#8203;a&#xFEFF;": ("a", ("E205",)),
    "&#8203;a&amp;&#x200b;b": ("a&\u200bb", ("E205",)),
    # CDATA, in which "&" is a character; HTML below it is removed all the same
    "<![CDATA[A & B]]>": ("A & B", ()),
    "<![CDATA[A &amp; B &#8217; &eacute;]]>": ("A & B \u2019 é", ()),
    "<![CDATA[&#1;a]]>": ("a", ()),
}
#: What reads as a reference but is none in XML -> the code of the first, where XML parsers stop.
REFUSED = {
    "&#x41;&#X42;&#x6a;": "X102",
    "&#\u0666\u0665;": "X102",
    "&#6\u0665;": "X102",
    "a&#xD800;&#57343;b": "X125",
    "a&#1114112;&#99999999;&#xFFFFFF;b": "X125",
    "a&#133;&#159;&#xFFFE;b": "X125",
}
#: Texts with a character that XML forbids.
FORBIDDEN = ("a\0b", "a\x01b", "a\x1fb", "a\ufffeb", "a\uffffb", "é\uffff日")
TITLE = (
    "<url><loc>http://h/{}</loc><news:news><news:publication><news:name>N</news:name><news:language>en</news:language>"
    "</news:publication><news:publication_date>2026-11-15T10:00:00Z</news:publication_date><news:title>{}</news:title>"
    "</news:news></url>"
)
LOC = "<url><loc>{}</loc></url>"
#: Entries with a text in each kind of field. `{}` is the text.
ENTRIES = (
    *(LOC.format(url) for url in ("{}", "http://h/{}", "http://h/a?{}=1&amp;b", "http://{}.h/")),
    "<url><loc>http://h/l</loc><lastmod>{}</lastmod><priority>{}</priority><changefreq>{}</changefreq></url>",
    "<url><loc>http://h/d</loc><lastmod>2024-05-08{}</lastmod><priority>0.5{}</priority></url>",
    TITLE.format("t", "{}"),
    TITLE.format("n", "T").replace(">N<", ">{}<"),
    TITLE.format("g", "T").replace(">en<", ">{}<"),
    TITLE.format("k", "T").replace("</news:news>", "<news:keywords>a, {},b{}, {} </news:keywords></news:news>"),
    "<url><loc>http://h/i</loc><image:image><image:loc>http://h/{}.png</image:loc><image:title>{}</image:title>"
    "<image:caption>A {}, b</image:caption><image:license>{}</image:license></image:image></url>",
    "<url><loc>http://h/a</loc><xhtml:link rel='alternate' hreflang='de' href='http://h/{}'/>"
    "<xhtml:link rel='alternate' hreflang='x-default' href='{}'/></url>",
    "<url><loc>http://h/b</loc><xhtml:link rel='alternate' hreflang='{}' href='http://h/a?b&amp;c'/></url>",
    "<url><loc>http://h/c</loc><xhtml:link rel='{}' hreflang='de' href='http://h/' title='{}'/></url>",
    "<url><loc>http://h/v</loc><video:video><video:thumbnail_loc>http://h/{}</video:thumbnail_loc><video:title>{}"
    "</video:title><video:description>A {}</video:description><video:player_loc allow_embed='{}'>http://h/p?{}"
    "</video:player_loc><video:duration>{}</video:duration><video:tag>{}</video:tag><video:uploader info='http://h/{}'>"
    "{}</video:uploader></video:video></url>",
)


def urlset(*entries: str) -> bytes:
    return urlset_of(*entries).encode()


def document(text: str) -> bytes:
    """Return a sitemap with a text in each kind of field, each twice."""
    entries = [entry.replace("{}", text) for entry in ENTRIES]
    return urlset(*(entry.replace("//h/", f"//h/{time}", 1) for time in range(2) for entry in entries))


@each_reader
@pytest.mark.parametrize("text", FORMS)
def test_what_a_title_means(text: str, readers: Readers) -> None:
    """A title has its references replaced, first those of XML, then those of HTML. What was wrong is a problem."""
    title, codes = FORMS[text]
    parser = XMLSitemapParser(URL, lambda log: [urlset(TITLE.format("a", text), TITLE.format("b", text))])
    parser.readers = readers
    stories = [page.news_story for page in parser.pages()]
    assert [story and story.title for story in stories] == [title or None] * 2
    expected = [REFUSED[text]] if text in REFUSED else [*codes, *codes]
    assert [problem.code for problem in parser.parse().found_problems()] == expected


@each_reader
@pytest.mark.parametrize("text", FORMS)
def test_every_field(text: str, readers: Readers) -> None:
    """In every field, each reader finds the values and the problems, with their places, of the general scanner."""
    data = document(text)
    expected = of_pieces([data], GENERAL)
    assert of_pieces([data], readers) == expected
    assert of_pieces([data[i : i + 99] for i in range(0, len(data), 99)], readers) == expected


@each_reader
@pytest.mark.parametrize("entry", ENTRIES)
def test_what_xml_forbids_in_each_field(entry: str, readers: Readers) -> None:
    """No reader takes an entry with what XML parsers refuse: each reports it at its place, whatever the field."""
    for text in (*REFUSED, *FORBIDDEN):
        data = urlset(LOC.format("http://h/0"), entry.replace("{}", text), LOC.format("http://h/1"))
        assert of_pieces([data], readers) == of_pieces([data], GENERAL)


@pytest.mark.parametrize("surveyors", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("text", FORMS)
def test_surveys(text: str, surveyors: Surveyors) -> None:
    """A check finds the same in entries with references, whether it surveys them or reads all of them."""
    data = document(text)
    urls = ["http://h/t", "http://h/0t", f"http://h/0{FORMS[text][0]}"]
    expected = Model(surveyors, uses_survey=False).read(data).outcome(urls)
    assert Model(surveyors).read(data).outcome(urls) == expected
    assert Model(surveyors, (1 << 32) - 1).read(data).outcome(urls) == expected


#: Parts of references, so that texts have whole ones, cut ones and nested ones.
PARTS = (
    *("&", "#", "x", ";", "amp", "lt", "eacute", "nosuch", "0", "9", "38", "8217", "D800", "1F600", "10FFFF"),
    *("&amp;", "&#38;", "&#x", "&#", "&quot;", "&nbsp;", "&#1;", "&#13;", "&#32;", "&#8203;", "&#xFFFD;", "&apos;"),
    *("a", " ", ",", "é", "日", "\r", "\n", "\u0665", "\u200b", "\0", "%20", "?a=1", "<![CDATA[", "]]>"),
)


@settings(max_examples=400)
@given(st.lists(st.sampled_from(PARTS), max_size=9).map("".join), st.sampled_from(ENTRIES), st.integers(1, 500))
def test_any_references(text: str, entry: str, size: int) -> None:
    """The same holds for texts of any parts of references, however the document is cut."""
    data = urlset(*(entry.replace("{}", part) for part in (text, f"a{text}b", f"&amp;{text};")))
    expected = of_pieces([data], GENERAL)
    pieces = [data[i : i + size] for i in range(0, len(data), size)]
    for readers in FAST.values():
        assert of_pieces(pieces, readers) == expected
    for surveyors in KINDS.values():
        outcomes = [Model(surveyors, uses_survey=uses_survey).read(data).outcome([]) for uses_survey in (False, True)]
        assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("end", ["", "&amp;", "&#8217;", "&", "&#", "&am"])
def test_long_texts(end: str) -> None:
    """Texts of references, up to the longest that the compiled readers take, and longer ones."""
    for size in (65_000, 65_535, 65_536, 70_000):
        for part in ("&amp;", "&#x1F600;", "&#233;", "&amp;amp;", "&"):
            text = (part * (size // len(part))).ljust(size - len(end), "x") + end
            data = urlset(TITLE.format("a", text), LOC.format(f"http://h/{text[9:]}"), TITLE.format("b", "T"))
            parser = XMLSitemapParser(URL, lambda log, data=data: [data])  # type: ignore[misc]
            assert everything(parser, READERS) == everything(parser, GENERAL)


@compiled
def test_references_need_no_python() -> None:
    """The compiled reader of columns calls no Python function for the references that sites write."""
    text = "A &amp; &#8217;&#x2019; &quot;&lt;&gt;&apos; &amp;amp; &amp;eacute; &#128512;."
    entry = (
        "<url><loc>http://h/{0}?a&amp;b=&#233;&quot;</loc><image:image><image:loc>http://h/{0}.png?a&#38;b</image:loc>"
        "<image:caption>{1}</image:caption></image:image><news:news><news:publication><news:name>{1}</news:name>"
        "<news:language>en</news:language></news:publication><news:publication_date>2024-05-08</news:publication_date>"
        "<news:title>{1}</news:title><news:keywords>{1}, {1}</news:keywords></news:news>"
        "<xhtml:link rel='alternate' hreflang='de' href='http://h/de?a&amp;b&#61;c'/>"
        "<video:video><video:title>{1}</video:title></video:video></url>"
    )
    entries = "".join(entry.replace("{0}", str(i)).replace("{1}", text) for i in range(1_000))
    for wanted in (frozenset(PAGE_TYPES), frozenset(PAGE_TYPES) - {"problems"}):
        reader = READERS.columns(str, lambda *_: None, wanted)
        assert python_calls(reader, entries) == []
        assert reader.columns().length == 1_000
