"""The general scanner in use, which is compiled if it was built, gives what the one in plain Python gives.

Both read every entry here: no fast reader takes any. Everything is compared: entries, pages, columns, and problems with
their places, texts and numbers.
"""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus import files, needs_corpus
from scanners import GENERAL, URL, of_document, of_pieces
from shapes import DOCUMENTS
from support import Fixture, fixtures
from usp.documents import Document
from usp.fetch_parse.opening import parser_of
from usp.fetch_parse.parsers import XMLSitemapParser
from usp.objects.problem import KEPT_PER_CODE, UNLOGGED, ProblemLog
from usp.scan.plain import READERS

pytestmark = pytest.mark.compare

#: The scanner in use, and what makes pages of its entries, without the fast readers that go with it.
IN_USE = GENERAL._replace(scanner=READERS.scanner, entry_pages=READERS.entry_pages)

ROOTS = (
    *("<urlset>", "<sitemapindex>", "<rss><channel>", "<feed xmlns='http://www.w3.org/2005/Atom'>", "<s:urlset>", ""),
    "<urlset xml:base='http://b/c/' xmlns:image='http://www.google.com/schemas/sitemap-image/1.1'>",
    "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'>",
)
MARKUP = (
    *("<url>", "</url>", "<loc>", "</loc>", "<item>", "</item>", "<entry>", "</entry>", "<sitemap>", "</sitemap>"),
    *(
        "<link>http://h/1</link>",
        "<link href='http://h/2'/>",
        "<link rel='self' href='/3' />",
        "<guid>http://h/4</guid>",
    ),
    *("<loc>http://h/5</loc>", "<loc> x </loc>", "<LOC>http://h/6</LOC>", "<lastmod>2024-05-08</lastmod>"),
    *("<pubDate>Wed, 08 May 2024 10:00:00 +0200</pubDate>", "<pubDate>Wed, 31 Jun 2024 25:00:00 GMT</pubDate>"),
    *("<updated>2024-05-08T10:00:00Z</updated>", "<dc:date>2024</dc:date>", "<title>T &amp; &eacute; &</title>"),
    *(
        "<title><![CDATA[A & <b>]]></title>",
        "<title>\n<![CDATA[A]]>\r\nB</title>",
        "<title type='html'>é \u200b</title>",
    ),
    *("<image:image><image:loc>http://h/i</image:loc></image:image>", "<image:image><loc>i</loc>", "<video:video>"),
    *("<a xmlns='http://example.org/'>", "<a xmlns:image='sitemap-image' b=\"c>d\">", "</a>", "<br>", "<script>"),
    *("</script>", "<p:loc>http://h/7</p:loc>", "<!-- c -->", "<!--", "<![CDATA[", "]]>", "<?x?>", "<?", "<!", "<"),
    *("</", "< 1", "<loc", "<url a='&' b=&#1; c>", "<a b='", "</a b>", "<>", "text", "\n \t", "\r", "&", "&nosuch;"),
    *("\x01", "\x7f", "\ufffd", "<!DOCTYPE a>", "<rss/>", "</urlset>", "<urlset>", "<html>", "'", '"', ">", "/>"),
)
documents = st.builds(
    lambda root, parts: (root + "".join(parts)).encode(),
    st.sampled_from(ROOTS),
    st.lists(st.sampled_from(MARKUP), max_size=25),
)


def text_of(fixture: Fixture) -> bytes | None:
    """Return the text of a fixture that is XML."""
    parser = parser_of(Document(URL, fixture.data))
    return b"".join(parser.open(UNLOGGED)) if isinstance(parser, XMLSitemapParser) else None


@pytest.mark.parametrize("fixture", fixtures(), ids=lambda fixture: fixture.name)
def test_fixtures_in_pieces(fixture: Fixture) -> None:
    """Every fixture gives the same whole, byte by byte, and cut at random."""
    text = text_of(fixture)
    if text is None or len(text) > 20_000:
        return
    expected = of_pieces([text], GENERAL)
    assert of_pieces([text], IN_USE) == expected
    assert of_pieces([text[i : i + 1] for i in range(len(text))], IN_USE) == expected
    chance = random.Random(fixture.name)
    edges = [0, *sorted(chance.choices(range(len(text) + 1), k=4)), len(text)]
    assert of_pieces([text[a:b] for a, b in pairwise(edges)], IN_USE) == expected


@pytest.mark.parametrize("name", DOCUMENTS)
def test_hostile_shapes(name: str) -> None:
    """Every hostile shape gives the same, small as it is here."""
    data = DOCUMENTS[name](3_000)
    assert of_document(data, IN_USE) == of_document(data, GENERAL)


@settings(max_examples=400)
@given(documents, st.lists(st.integers(0, 600), max_size=5))
def test_markup_of_all_sorts(data: bytes, cuts: list[int]) -> None:
    """Feeds, indexes and sitemaps of any markup, good and bad, give the same, whole or in pieces."""
    expected = of_pieces([data], GENERAL)
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    assert of_pieces([data], IN_USE) == expected
    assert of_pieces([data[a:b] for a, b in pairwise(edges)], IN_USE) == expected


@settings(max_examples=300)
@given(documents, st.lists(st.tuples(st.integers(0, 600), st.integers(0, 255)), min_size=1, max_size=4))
def test_mutated_markup(data: bytes, changes: list[tuple[int, int]]) -> None:
    """The same holds where bytes were replaced."""
    document = bytearray(data)
    for at, byte in changes:
        if at < len(document):
            document[at] = byte
    assert of_pieces([bytes(document)], IN_USE) == of_pieces([bytes(document)], GENERAL)


@pytest.mark.parametrize("text", ["<", "</", "<!", "<?", "<!--", "</b>", "<a b='&'/>", "<loc>&</loc>", "<url><loc>x"])
def test_problems_beyond_those_kept(text: str) -> None:
    """Problems that are only counted have the same numbers, and the first ones the same places."""
    data = f"<urlset>{text * (3 * KEPT_PER_CODE)}".encode()
    counts = []
    for readers in (GENERAL, IN_USE):
        parser = XMLSitemapParser(URL, lambda log: [data])
        parser.readers = readers
        log = ProblemLog(URL)
        parser.inspect(log)
        counts.append((log.problems(), log.problems().counts))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("tag", ["", "a"])
@pytest.mark.parametrize("start", ["", "<a>", "<urlset><url><loc>"])
def test_sections_that_open_again(start: str, tag: str) -> None:
    """A CDATA section whose field opens again gives the same, even before the first tag."""
    data = f"{start}<![CDATA[x</{tag}> <{tag}><![CDATA[y]]></{tag}><urlset><loc>http://h/</loc>".encode()
    assert of_pieces([data], IN_USE) == of_pieces([data], GENERAL)


@needs_corpus
@pytest.mark.parametrize("kind", ["rss", "atom", "index", "urlset"])
def test_corpus(kind: str) -> None:
    """Real feeds and sitemaps give the same."""
    for name, _, data in files(kind, most=60_000):
        assert of_document(data, IN_USE) == of_document(data, GENERAL), name
