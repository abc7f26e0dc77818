"""Documents with one edit: good sitemaps, what may go wrong with them, and expat as the judge of both."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple
from xml.parsers import expat

from checks import EXTENSIONS
from support import SITEMAP_XMLNS

_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_URL = """  <url>
    <loc>https://www.example.org/page-{0}?a=1&amp;b={0}</loc>
    <lastmod>2026-11-{0:02}</lastmod><changefreq>weekly</changefreq>
    <priority>0.5</priority>
  </url>
"""
_IMAGE = """  <url><loc>https://www.example.org/image-{0}</loc>
    <image:image><image:loc>https://www.example.org/{0}.jpg</image:loc>
      <image:title>Caf\u00e9 &#233; &quot;{0}&quot;</image:title><image:caption><![CDATA[a < b]]></image:caption>
    </image:image>
  </url>
"""
_LINKS = """  <url><loc>https://www.example.org/en/{0}</loc>
    <xhtml:link rel="alternate" hreflang="en" href="https://www.example.org/en/{0}"/>
    <xhtml:link rel="alternate" hreflang='de' href='https://www.example.org/de/{0}?a&amp;b' />
    <xhtml:link rel="alternate" hreflang="x-default" href="https://www.example.org/en/{0}"></xhtml:link>
  </url>
"""
_STORY = """  <url><loc>https://www.example.org/news-{0}</loc><news:news>
    <news:publication><news:name>The Example</news:name><news:language>en</news:language></news:publication>
    <news:publication_date>2026-11-15T08:00:00Z</news:publication_date><news:title>Story {0}</news:title></news:news>
  </url>
"""
_VIDEO = """  <url><loc>https://www.example.org/video-{0}</loc>
    <!-- a video -->
    <video:video><video:thumbnail_loc>https://www.example.org/{0}.png</video:thumbnail_loc>
      <video:title>Video {0}</video:title><video:description>About &lt;{0}&gt;</video:description>
      <video:content_loc>https://www.example.org/{0}.mp4</video:content_loc>
      <video:restriction relationship="allow">IE GB</video:restriction><video:duration>600</video:duration>
    </video:video>
  </url>
"""
_CHILD = (
    "  <sitemap><loc>https://www.example.org/sitemap-{0}.xml</loc><lastmod>2026-11-1{0}T00:00:00Z</lastmod></sitemap>\n"
)
_RSS = """<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom">
<channel><title>Example</title><link>https://www.example.org/</link><description>An &amp; example</description>
<atom:link href="https://www.example.org/feed.xml" rel="self" type="application/rss+xml"/>
%s</channel>
</rss>
"""
_ITEM = """<item><title>Item {0}</title><link>https://www.example.org/item-{0}</link>
  <guid isPermaLink="false">item {0}</guid><pubDate>Sun, 15 Nov 2026 10:0{0}:00 GMT</pubDate>
  <description><![CDATA[<p>Text &nbsp; of {0}</p>]]></description></item>
"""
_ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en">
<title>Example</title><id>urn:example</id><updated>2026-11-15T10:00:00Z</updated>
<link rel="self" href="https://www.example.org/atom.xml"/><author><name>Nobody</name></author>
%s</feed>
"""
_ENTRY = """<entry><title type="html">Entry &lt;b&gt;{0}&lt;/b&gt;</title><id>urn:example:{0}</id>
  <link rel="alternate" type="text/html" href="https://www.example.org/entry-{0}"/>
  <updated>2026-11-15T10:0{0}:00Z</updated><summary>Text</summary></entry>
"""


def _several(template: str, count: int) -> str:
    return "".join(template.format(number) for number in range(1, count + 1))


def _urlset(entries: str) -> str:
    return f"{_DECLARATION}<urlset {SITEMAP_XMLNS}{EXTENSIONS}>\n{entries}</urlset>\n"


#: Good documents, by name.
GOOD: dict[str, bytes] = {
    name: text.encode()
    for name, text in {
        "plain": _urlset(_several(_URL, 6)),
        "minified": re.sub(r">\s+<", "><", _urlset(_several(_URL, 3) + _several(_LINKS, 2))),
        "extensions": _urlset(_several(_IMAGE, 2) + _several(_LINKS, 1) + _several(_STORY, 1) + _several(_VIDEO, 1)),
        "mixed": _urlset(_several(_URL, 2) + "  <!-- between -->\n" + _several(_VIDEO, 1) + _several(_URL, 2)),
        "index": f"{_DECLARATION}<sitemapindex {SITEMAP_XMLNS}>\n{_several(_CHILD, 5)}</sitemapindex>\n",
        "rss": _DECLARATION + _RSS % _several(_ITEM, 3),
        "atom": _DECLARATION + _ATOM % _several(_ENTRY, 3),
    }.items()
}
_TAG = re.compile(rb"<[^<>]*>")
_BETWEEN = re.compile(rb"(?<=>)")
_CHARACTERS = [bytes([code]) for code in (*range(0x20, 0x7F), 0x09, 0x0A, 0x0D, 0x01, 0x0B, 0x1F, 0x80, 0xC3, 0xFF)]
_MARKUP = [bytes([code]) for code in b"<>&/\"'=!?-[];:# "]
_SNIPPETS = [
    *(b"&nbsp;", b"& ", b"&copy", b"&#0;", b"&#x1F;", b"&#xFFFE;", b"&#55555555;", b"&#xD800;", b"&amp;", b"&lt;"),
    *(
        b"<!-- a -- b -->",
        b"<!-- a --->",
        b"<!-- a -->",
        b"<!-- & < -->",
        b"<!--\x01-->",
        b"<!-- \xff -->",
        b"]]>",
        b"]]",
    ),
    *(b'<?xml version="1.0"?>', b"<?xml?>", b"<?php echo 1 ?>", b"<?a>", b"<a/>", b"<a>", b"</a>", b"<b><c></b></c>"),
    *(
        b"<a b>",
        b"<a b=c/>",
        b'<a b="1" b="2"/>',
        b'<a b="<"/>',
        b'<a b="&"/>',
        b"<p:a/>",
        b'<a p:b="1"/>',
        b"<a:b:c/>",
    ),
    *(b'<a xmlns:p=""/>', b'<a b="1"c="2"/>', b'<a xml:lang="en"/>', b"<1/>", b"</>", b"<>", b"< a/>", b"<a / >"),
    *(b"<![CDATA[", b"<![CDATA[ & < ]]>", b"<!ELEMENT a ANY>", b"\xef\xbf\xbe", b"\xed\xa0\x80", b"\xc3\xa9", b"\x7f"),
    *(b"\xe2\x80\x9c", b"\xc2\xa0", b"\xef\xbb\xbf", b"<br>", b"<br/>", b"<!DOCTYPE a>", b"text", b"<loc/>", b"<url/>"),
]


def _insert_character(text: bytes, random: Random) -> bytes:
    at = random.randrange(len(text) + 1)
    return text[:at] + random.choice(_CHARACTERS) + text[at:]


def _insert_markup(text: bytes, random: Random) -> bytes:
    at = random.randrange(len(text) + 1)
    return text[:at] + random.choice(_MARKUP) + text[at:]


def _delete_character(text: bytes, random: Random) -> bytes:
    at = random.randrange(len(text))
    return text[:at] + text[at + 1 :]


def _replace_character(text: bytes, random: Random) -> bytes:
    at = random.randrange(len(text))
    return text[:at] + random.choice(_CHARACTERS) + text[at + 1 :]


def _delete_range(text: bytes, random: Random) -> bytes:
    at = random.randrange(len(text))
    return text[:at] + text[at + random.randrange(2, 40) :]


def _repeat_range(text: bytes, random: Random) -> bytes:
    at = random.randrange(len(text))
    return text[: at + random.randrange(2, 40)] + text[at:]


def _truncate(text: bytes, random: Random) -> bytes:
    return text[: random.randrange(len(text))]


def _delete_tag(text: bytes, random: Random) -> bytes:
    tag = random.choice([*_TAG.finditer(text)])
    return text[: tag.start()] + text[tag.end() :]


def _repeat_tag(text: bytes, random: Random) -> bytes:
    tag = random.choice([*_TAG.finditer(text)])
    return text[: tag.end()] + text[tag.start() :]


def _swap_tags(text: bytes, random: Random) -> bytes:
    tags = [*_TAG.finditer(text)]
    number = random.randrange(len(tags) - 1)
    one, other = tags[number], tags[number + 1]
    between = text[one.end() : other.start()]
    return text[: one.start()] + other[0] + between + one[0] + text[other.end() :]


def _change_case(text: bytes, random: Random) -> bytes:
    tag = random.choice([*_TAG.finditer(text)])
    return text[: tag.start()] + tag[0].swapcase() + text[tag.end() :]


def _insert_in_tag(text: bytes, random: Random) -> bytes:
    tag = random.choice([*_TAG.finditer(text)])
    added = random.choice(
        [b" a", b" a=b", b' a="1"', b' a="1" a="2"', b"/", b" /", b' xml:lang="en"', b' xmlns="x"', b' a="&"']
    )
    return text[: tag.end() - 1] + added + text[tag.end() - 1 :]


def _insert_snippet(text: bytes, random: Random) -> bytes:
    at = random.randrange(len(text) + 1)
    return text[:at] + random.choice(_SNIPPETS) + text[at:]


def _insert_snippet_between(text: bytes, random: Random) -> bytes:
    at = random.choice([*_BETWEEN.finditer(text)]).end()
    return text[:at] + random.choice(_SNIPPETS) + text[at:]


def _change_declaration(text: bytes, random: Random) -> bytes:
    end = text.index(b"?>")
    at = random.randrange(5, end)
    added = random.choice([b"", b" ", b"\xe2\x80\x9d", b'"', b"'", b"=", b"standalone", b"x"])
    return text[:at] + added + text[at + random.randrange(2) :]


EDITS: tuple[Callable[[bytes, Random], bytes], ...] = (
    *(_insert_character, _insert_markup, _delete_character, _replace_character, _delete_range, _repeat_range),
    *(_truncate, _delete_tag, _repeat_tag, _swap_tags, _change_case, _insert_in_tag, _insert_snippet),
    *(_insert_snippet_between, _change_declaration),
)


class Mutant(NamedTuple):
    """A document with one edit."""

    document: str
    edit: str
    text: bytes
    refused_at: int | None  # the line at which expat refuses it, None if it accepts it


def line_of_refusal(text: bytes) -> int | None:
    """Return the line at which expat, with namespaces, refuses a document; None if it accepts it."""
    parser = expat.ParserCreate(namespace_separator=" ")
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        return error.lineno
    except (LookupError, ValueError):  # the encoding is not known
        return 1
    return None


def mutants(count: int, seed: int) -> Iterator[Mutant]:
    """Yield good documents with one random edit each."""
    random = Random(seed)
    names = [*GOOD]
    for _ in range(count):
        name, edit = random.choice(names), random.choice(EDITS)
        text = edit(GOOD[name], random)
        yield Mutant(name, edit.__name__.lstrip("_"), text, line_of_refusal(text))


def real_documents(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the good documents of a folder."""
    for path in sorted(folder.rglob("*.xml")):
        text = path.read_bytes()
        if line_of_refusal(text) is None:
            yield path.name, text
