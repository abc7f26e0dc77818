"""Documents that are hostile to a reader: one table of shapes, each a function from a size to the bytes of a document.

Every shape that was ever slow is here, and those that could be. `tests/test_shapes.py` reads them all, in every way and
under a limit of CPU seconds per megabyte.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from itertools import count, islice

Shape = Callable[[int], bytes]

XMLNS = b'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_EXTENSIONS = (
    b'xmlns:image="http://www.google.com/schemas/sitemap-image/1.1" '
    b'xmlns:video="http://www.google.com/schemas/sitemap-video/1.1" '
    b'xmlns:news="http://www.google.com/schemas/sitemap-news/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml"'
)
URLSET = b"<urlset " + XMLNS + b" " + _EXTENSIONS + b">"
_FIELD = 60_000  # just below the limit of a field


def times(unit: bytes, size: int) -> bytes:
    """Repeat a unit up to a size."""
    return unit * (size // len(unit))


def each(unit: bytes, size: int) -> bytes:
    """Repeat a unit, with another number in place of its %d each time, up to a size."""
    before, _, after = unit.partition(b"%d")
    return b"".join(islice((b"%b%d%b" % (before, number, after) for number in count()), size // len(unit)))


def entries(inner: bytes, size: int, name: bytes = b"url") -> bytes:
    """Fill a document with the same entry."""
    return URLSET + times(b"<%b>%b</%b>" % (name, inner, name), size)


def fields(text: bytes, size: int, element: bytes = b"loc", before: bytes = b"", after: bytes = b"") -> bytes:
    """Fill a document with entries that have one huge field of a text over and over."""
    huge = before + times(text, _FIELD) + after
    loc = b"" if element == b"loc" else b"<loc>http://h/</loc>"
    return URLSET + times(b"<url>%b<%b>%b</%b></url>" % (loc, element, huge, element), size)


def feed(inner: bytes, size: int) -> bytes:
    """Fill an RSS feed with the same item."""
    return b"<rss><channel>" + times(b"<item>%b</item>" % inner, size)


def atom(inner: bytes, size: int) -> bytes:
    """Fill an Atom feed with the same entry."""
    return b'<feed xmlns="http://www.w3.org/2005/Atom">' + times(b"<entry>%b</entry>" % inner, size)


def in_encoding(declared: str, text: str, encoding: str, size: int) -> bytes:
    """Write a document in an encoding, and declare another."""
    head = f"<?xml version='1.0' encoding='{declared}'?><urlset><url><loc>http://h/"
    return (head + text * (size // len(text.encode(encoding)))).encode(encoding)


_COMBINING = "\u0315\u0300\u05ae\u0062".encode()

#: XML documents: they are read through `<urlset>`, an index or a feed.
DOCUMENTS: dict[str, Shape] = {
    # plain ones, to compare with
    "plain entries": lambda n: URLSET + each(b"<url><loc>http://h/%d</loc><lastmod>2024-05-08</lastmod></url>\n", n),
    "plain index": lambda n: b"<sitemapindex>" + each(b"<sitemap><loc>http://h/%d.xml</loc></sitemap>", n),
    # huge parts
    "one text node": lambda n: b"<urlset><url><loc>" + b"x" * n + b"</loc></url>",
    "one comment": lambda n: b"<urlset><!--" + b"x" * n + b"--><url><loc>http://h/a</loc></url>",
    "one endless comment": lambda n: b"<urlset><!--" + b"x" * n,
    "one endless comment of dashes": lambda n: b"<urlset><!--" + b"-" * n,
    "one CDATA section": lambda n: b"<urlset><url><loc><![CDATA[" + b"x" * n + b"]]></loc></url>",
    "one CDATA section of brackets": lambda n: b"<urlset><url><loc><![CDATA[" + b"]" * n + b"]]></loc></url>",
    "one endless CDATA section": lambda n: b"<urlset><url><loc><![CDATA[" + b"]>" * (n // 2),
    "one tag": lambda n: b"<urlset><url " + b"a='b' " * (n // 6) + b"><loc>http://h/a</loc></url>",
    "one name": lambda n: b"<urlset " + b"x" * n + b"><url><loc>http://h/a</loc></url>",
    "one tag of names": lambda n: b"<urlset " + b"x " * (n // 2) + b" xmlns='a'><url " + b"y= " * 999 + b">",
    "one tag that never ends": lambda n: b"<urlset " + b"x" * n,
    "one endless quote": lambda n: b'<urlset a="' + b">" * n,
    "one instruction": lambda n: b"<urlset><?" + b"x" * n + b"?>",
    "one doctype": lambda n: b"<!DOCTYPE urlset '" + b"x" * n + b"'><urlset>",
    "one doctype of quotes": lambda n: b"<!DOCTYPE urlset " + b"'" * n + b"><urlset>",
    # tags
    "deep": lambda n: b"<urlset>" + b"<a>" * (n // 3),
    "deep and closed": lambda n: b"<urlset>" + b"<a>" * (n // 7) + b"</a>" * (n // 7),
    "deep with attributes": lambda n: b"<urlset>" + b"<a b='c'>" * (n // 9),
    "deep entries": lambda n: b"<urlset>" + b"<a><url>" * (n // 8),
    "deep entries, closed": lambda n: b"<urlset>" + b"<a><b><url></a>" * (n // 15),
    "end tags": lambda n: b"<urlset><a>" + b"</b>" * (n // 4),
    "end tags in an entry": lambda n: b"<urlset><url><loc>x" + b"</b>" * (n // 4),
    "end tags of many names": lambda n: b"<urlset>" + each(b"</%d>", n),
    "empty tags": lambda n: b"<urlset>" + b"<a/>" * (n // 4),
    "empty tags in an entry": lambda n: b"<urlset><url><loc>x" + b"<a/>" * (n // 4),
    "empty tags with attributes": lambda n: b"<urlset>" + b"<a b=''/>" * (n // 9),
    "void tags": lambda n: b"<urlset>" + b"<br>" * (n // 4),
    "void tags below the depth": lambda n: b"<urlset>" + b"<a>" * 400 + b"<br>" * (n // 4),
    "attributes below the depth": lambda n: b"<urlset>" + b"<a>" * 400 + b"<a b=''>" * (n // 8),
    "end and start below the depth": lambda n: b"<urlset>" + b"<a>" * 400 + b"</a><a>" * (n // 7),
    "less than": lambda n: b"<urlset>" + b"<" * n,
    "less than in a field": lambda n: b"<urlset><url><loc>" + b"<" * n,
    "less than in fields": lambda n: fields(b"<", n),
    "less than and space": lambda n: b"<urlset>" + b"< " * (n // 2),
    "less than and digits": lambda n: b"<urlset>" + b"<1" * (n // 2),
    "less than and letters": lambda n: b"<urlset>" + b"<a" * (n // 2),
    "less than and slashes": lambda n: b"<urlset>" + b"</" * (n // 2),
    "less than and greater than": lambda n: b"<urlset>" + b"<>" * (n // 2),
    "less than, slash and greater than": lambda n: b"<urlset>" + b"</>" * (n // 3),
    "greater than": lambda n: b"<urlset>" + b">" * n,
    "letters in tags": lambda n: b"<urlset>" + b"<a <a " * (n // 6),
    "open quotes": lambda n: b"<urlset>" + b"<a b='>" * (n // 7),
    "quoted ends": lambda n: b"<urlset>" + (b"<a b='" + b">" * 70 + b"'>") * (n // 78),
    "quoted ends, too many": lambda n: b"<urlset>" + (b"<a b='" + b">" * 63 + b"x" * 900) * (n // 969),
    "half of a quoted end": lambda n: b"<urlset>" + (b"<a b='" + (b"x" * 300 + b">") * 63) * (n // 19_000),
    "names": lambda n: b"<urlset>" + b"<" + b"a" * n + b"<b>",
    "names in turn": lambda n: (b"<" + b"a" * 1_000 + b"<b>") * (n // 1_004),
    "names that do not close": lambda n: b"<urlset>" + (b"<" + b"a" * 1_000 + b">") * (n // 1_002),
    "distinct tags": lambda n: b"<urlset>" + each(b"<t%d>", n),
    "distinct tags in entries": lambda n: URLSET + each(b"<url><t%d/></url>", n),
    "entries without end": lambda n: b"<urlset>" + b"<url>" * (n // 5),
    "entries, closed": lambda n: b"<urlset>" + b"<url></url>" * (n // 11),
    "entries, empty": lambda n: b"<urlset>" + b"<url/>" * (n // 6),
    "locs": lambda n: b"<urlset>" + b"<loc>x" * (n // 6),
    "locs of ampersands": lambda n: b"<urlset><url>" + b"&<loc>" * (n // 6),
    "locs of accents": lambda n: b"<urlset>" + "<loc>é".encode() * (n // 7),
    "locs of entities": lambda n: URLSET + b"<LOC>&nosuch;" * (n // 13),
    "locs in one entry": lambda n: b"<urlset><url>" + b"<loc>x</loc>" * (n // 12),
    # locs of a few bytes, each different: there is nothing to remember
    "locs of numbers": lambda n: b"<urlset>" + each(b"<loc>%d", n),
    "locs of paths": lambda n: b"<urlset>" + each(b"<loc>/%d", n),
    "locs of queries": lambda n: b"<urlset>" + each(b"<loc>?%d", n),
    "locs of dots": lambda n: b"<urlset>" + each(b"<loc>a.%d", n),
    "locs of folders above": lambda n: b"<urlset>" + each(b"<loc>../%d", n),
    "locs of spaces": lambda n: b"<urlset>" + each(b"<loc>a %d", n),
    "locs of quotes": lambda n: b"<urlset>" + each(b"<loc>'%d", n),
    "locs of schemes": lambda n: b"<urlset>" + each(b"<loc>x:%d", n),
    "locs of brackets": lambda n: b"<urlset>" + each(b"<loc>http://[%d", n),
    "locs of placeholders": lambda n: b"<urlset>" + times(b"<loc>null", n),
    "locs of accents and slashes": lambda n: b"<urlset>" + each("<loc>é/%d".encode(), n),
    "locs of names of HTML": lambda n: b"<urlset>" + times(b"<loc>&Ropf;", n),
    "locs of controls": lambda n: b"<urlset>" + times(b"<loc>&#1;", n),
    "locs of hosts": lambda n: b"<urlset>" + each(b"<loc>http://%d", n),
    "locs of other hosts": lambda n: b"<urlset>" + each(b"<loc>//%d", n),
    "locs without scheme": lambda n: b"<urlset>" + each(b"<loc>www.a.%d", n),
    "locs with wrong dates": lambda n: b"<urlset>" + each(b"<loc>a<lastmod>%d", n),
    "locs of hosts or names": lambda n: b"<urlset>" + each(b"<loc>www.%d", n),
    "locs with other bases": lambda n: b"<urlset>" + each(b"<url xml:base=%d><loc>x", n),
    "locs with bases": lambda n: b"<urlset>" + each(b"<url xml:base=a><loc>%d", n),
    "locs with news": lambda n: URLSET + each(b"<url><loc>%d<news:news><news:title>x", n),
    "locs with stories": lambda n: URLSET + each(b"<url><loc>%d<news:news><news:title>x<news:publication_date>2024", n),
    "locs with images": lambda n: URLSET + each(b"<url><loc>%d<image:image>", n),
    "locs with images of URLs": lambda n: URLSET + each(b"<url><loc>%d<image:image><image:loc>x", n),
    "locs with videos": lambda n: URLSET + each(b"<url><loc>%d<video:video>", n),
    "locs with videos of titles": lambda n: URLSET + each(b"<url><loc>%d<video:video><video:title>x", n),
    "locs with videos of ratings": lambda n: URLSET + each(b"<url><loc>%d<video:video><video:rating>5", n),
    "locs with links": lambda n: URLSET + each(b"<url><loc>%d<xhtml:link>", n),
    "locs with links to pages": lambda n: URLSET + each(b"<url><loc>%d<xhtml:link hreflang=a href=b>", n),
    "locs with links of ampersands": lambda n: (
        URLSET + each(b"<url><loc>http://h/%d</loc><xhtml:link href='&'/></url>", n)
    ),
    "links of references": lambda n: (
        URLSET
        + each(
            b"<url><loc>http://h/%d</loc>"
            b"<xhtml:link rel='&#97;lternate' hreflang='d&#101;' href='http://h/?a&amp;b'/></url>",
            n,
        )
    ),
    "dates of accents": lambda n: URLSET + each("<url><loc>%d<lastmod>é".encode(), n),
    "URLs outside locs": lambda n: b"<urlset>" + each(b"<url>http://h/%d", n),
    "empty videos": lambda n: URLSET + b"<url><loc>http://h/</loc>" + b"<video:video>" * (n // 13),
    "videos with titles": lambda n: URLSET + b"<url><loc>http://h/</loc>" + each(b"<video:video><video:title>%d", n),
    "fields in one entry": lambda n: b"<urlset><url>" + b"<lastmod>x</lastmod>" * (n // 20),
    "letters that are wrong": lambda n: b"<urlset>" + b"<URL><LOC>x</LOC></URL>" * (n // 23),
    "roots": lambda n: b"<urlset>" * (n // 8),
    "roots, closed": lambda n: b"<urlset></urlset>" * (n // 17),
    "roots, empty": lambda n: b"<urlset/>" * (n // 9),
    "text outside": lambda n: b"<urlset></urlset>" + b"x <a/>" * (n // 6),
    "scripts": lambda n: b"<urlset>" + b"<script>x</script>" * (n // 18),
    "an open script": lambda n: b"<urlset><script>" + b"<url><loc>x</loc></url>" * (n // 23),
    "images": lambda n: URLSET + b"<url><loc>http://h/</loc>" + b"<image:image>" * (n // 13),
    "images, closed": lambda n: (
        URLSET + b"<url><loc>http://h/</loc>" + b"<image:image><image:loc>x</image:loc></image:image>" * (n // 52)
    ),
    "images in images": lambda n: URLSET + b"<url><loc>http://h/</loc>" + b"<image:image><loc>" * (n // 18),
    "videos": lambda n: URLSET + b"<url><loc>http://h/</loc>" + b"<video:video><video:tag>x</video:tag>" * (n // 38),
    "links": lambda n: (
        URLSET + b"<url><loc>http://h/</loc>" + b"<xhtml:link rel='alternate' hreflang='x' href='y'/>" * (n // 50)
    ),
    # sections
    "instructions": lambda n: b"<urlset>" + b"<?" * (n // 2),
    "instructions, closed": lambda n: b"<urlset>" + b"<?a?>" * (n // 5),
    "instructions, half closed": lambda n: b"<urlset>" + b"<?>" * (n // 3),
    "instructions and one end": lambda n: b"<urlset>" + b"<?>" * (n // 3) + b"?>",
    "declarations": lambda n: b"<urlset>" + b"<!" * (n // 2),
    "declarations, closed": lambda n: b"<urlset>" + b"<!>" * (n // 3),
    "doctypes": lambda n: b"<urlset>" + b"<!DOCTYPE>" * (n // 10),
    "doctypes, open": lambda n: b"<urlset>" + b"<!DOCTYPE " * (n // 10),
    "doctypes with quotes": lambda n: b"<urlset>" + (b"<!DOCTYPE " + b"''" * 2_000 + b">") * (n // 4_011),
    "comments": lambda n: b"<urlset>" + b"<!---->" * (n // 7),
    "comments in a field": lambda n: b"<urlset><url><loc>x" + b"<!---->" * (n // 7),
    "open comments": lambda n: b"<urlset>" + b"<!--" * (n // 4),
    "open comments and tags": lambda n: b"<urlset>" + b"<!--<a>" * (n // 7),
    "CDATA in turn": lambda n: b"<urlset>" + b"<![CDATA[</a>" * (n // 13) + b"]]>",
    "CDATA in fields": lambda n: b"<urlset>" + b"<url><loc><![CDATA[</loc>" * (n // 25) + b"]]>",
    "CDATA and text in turn": lambda n: b"<urlset><url><loc>" + b"a<![CDATA[]]>" * (n // 13),
    "CDATA and ampersands in fields": lambda n: fields(b"&<![CDATA[]]>", n),
    "empty CDATA": lambda n: b"<urlset>" + b"<![CDATA[]]>" * (n // 12),
    "open CDATA": lambda n: b"<urlset>" + b"<![CDATA[" * (n // 9),
    "open CDATA in fields": lambda n: b"<urlset>" + b"<url><loc><![CDATA[x</loc></url>" * (n // 32),
    # namespaces
    "namespaces": lambda n: b"<urlset>" + each(b"<a xmlns:n%d='u'>", n),
    "namespaces, closed": lambda n: b"<urlset>" + each(b"<a xmlns:n%d='u'/>", n),
    "namespaces of entries": lambda n: b"<urlset>" + each(b"<url xmlns:n%d='u'><loc>http://h/</loc></url>", n),
    "namespaces in one place": lambda n: (
        b"<urlset>"
        + b"".join(b"<a %s>" % b" ".join(b"xmlns:n%d_%d='u'" % (i, k) for k in range(200)) for i in range(9))
        + b"<b xmlns:c='d'/>" * (n // 16)
    ),
    "namespaces in every tag": lambda n: (
        b"<urlset>" + b"<a %s/>" % b" ".join(b"xmlns:n%d='u'" % k for k in range(250)) * (n // 3_500)
    ),
    "prefixes": lambda n: b"<urlset>" + each(b"<p%d:a/>", n),
    "prefixes of colons": lambda n: b"<urlset>" + (b"<" + b"a:" * 500 + b"b/>") * (n // 1_004),
    # fields
    "hosts": lambda n: b"<urlset>" + each(b"<loc>http://" + b"a" * 2_000 + b"!%d</loc>", n),
    "hosts of combining characters": lambda n: fields(_COMBINING, n, before=b"http://"),
    "hosts of combining marks": lambda n: fields("\u0315\u0300".encode(), n, before=b"http://"),
    "hosts of ligatures": lambda n: fields("\ufdfa".encode(), n, before=b"http://"),
    "hosts of labels": lambda n: fields(b"a.", n, before=b"http://", after=b"!"),
    "hosts of long IDNA labels": lambda n: fields("ü".encode(), n, before=b"http://", after=b"/"),
    "hosts of IDNA labels": lambda n: each("<urlset><url><loc>http://ü%d.example/</loc></url>".encode(), n),
    "hosts without scheme": lambda n: fields(b"a.", n, before=b"www."),
    "hosts of dashes": lambda n: fields(b"-", n, before=b"http://"),
    "hosts of dots": lambda n: fields(b".", n, before=b"http://a"),
    "hosts of at signs": lambda n: fields(b"@", n, before=b"http://"),
    "hosts of brackets": lambda n: fields(b"[", n, before=b"http://"),
    "hosts of numbers": lambda n: fields("²".encode(), n, before=b"http://"),
    "ports": lambda n: fields(b"1", n, before=b"http://h:"),
    "ports of zeros": lambda n: fields(b":0", n, before=b"http://h"),
    "paths of dots": lambda n: fields(b"../", n),
    "paths of dots, absolute": lambda n: fields(b"/..", n, before=b"http://h"),
    "paths of percents": lambda n: fields(b"%", n, before=b"http://h/"),
    "paths of bad bytes": lambda n: fields(b"\xe9", n, before=b"http://h/"),
    "paths of spaces": lambda n: fields(b" ", n, before=b"http://h/", after=b"x"),
    "paths of tabs": lambda n: fields(b"\t", n, before=b"http://h/", after=b"x"),
    "schemes": lambda n: fields(b"a", n, after=b":"),
    "spaces": lambda n: fields(b" ", n),
    "spaces and letters": lambda n: fields(b" x", n),
    "quotes": lambda n: fields(b"'<", n),
    "invisible marks": lambda n: fields("\u200b ".encode(), n),
    "invisible marks and letters": lambda n: fields("\u200bx".encode(), n),
    "controls": lambda n: fields(b"\x01", n),
    "NUL bytes": lambda n: fields(b"\0", n),
    "carriage returns": lambda n: fields(b"\r", n),
    "carriage returns and ampersands": lambda n: fields(b"\r&", n),
    "ampersands": lambda n: b"<urlset><url><loc>" + b"&" * n,
    "ampersands in fields": lambda n: fields(b"&", n),
    "ampersands after an accent": lambda n: fields(b"&", n, before="é".encode()),
    "ampersands between accents": lambda n: fields("é&".encode(), n),
    "ampersands after a bad byte": lambda n: fields(b"&", n, before=b"\xe9"),
    "ampersands in a title": lambda n: fields(b"&", n, b"news:title", before="é".encode()),
    "ampersands and letters": lambda n: fields(b"&" + b"a" * 32, n),
    "ampersands and digits": lambda n: fields(b"&#12345678", n),
    "entities": lambda n: fields(b"&amp;", n),
    "entities of entities": lambda n: fields(b"&amp;amp;", n),
    "entities of HTML": lambda n: fields(b"&eacute;", n),
    "entities of nothing": lambda n: fields(b"&nosuch;", n),
    "entities of controls": lambda n: fields(b"&#1;", n),
    "entities of numbers": lambda n: fields(b"&#x41;", n),
    "entities of escapes": lambda n: fields(b"&#38;lt;", n),
    "escapes of entities in short fields": lambda n: entries(b"<loc>http://h/?a&b&c</loc>", n),
    "bad bytes": lambda n: fields(b"\xff", n),
    "bad bytes in short fields": lambda n: entries(b"<loc>http://h/\xff</loc>", n),
    "dates": lambda n: fields(b"2024-05-08", n, b"lastmod"),
    "dates of digits": lambda n: fields(b"2", n, b"lastmod"),
    "dates of spaces": lambda n: fields(b" ", n, b"lastmod", before=b"2024-05-08", after=b"x"),
    "dates of all sorts": lambda n: URLSET + each(b"<url><loc>http://h/a</loc><lastmod>%d</lastmod></url>", n),
    "dates of seconds": lambda n: (
        URLSET + each(b"<url><loc>a</loc><lastmod>2024-05-08T10:00:00.%d XYZ</lastmod></url>", n)
    ),
    "dates of mails": lambda n: (
        URLSET + each(b"<url><loc>a</loc><lastmod>Wed, 08 May 2024 %d 10 (a) x</lastmod></url>", n)
    ),
    "dates of months": lambda n: URLSET + each(b"<url><loc>a</loc><lastmod>Wed May 08 2024 %d</lastmod></url>", n),
    "priorities": lambda n: URLSET + each(b"<url><loc>http://h/a</loc><priority>0.%d</priority></url>", n),
    "priorities of digits": lambda n: fields(b"9", n, b"priority", before=b"0."),
    "priorities of powers": lambda n: URLSET + each(b"<url><loc>http://h/</loc><priority>1e-%d</priority></url>", n),
    "frequencies": lambda n: URLSET + each(b"<url><loc>http://h/a</loc><changefreq>%d</changefreq></url>", n),
    "prices": lambda n: fields(b"9", n, b"video:video", before=b"<video:price>", after=b"</video:price>"),
    "ratings": lambda n: fields(b"9", n, b"video:video", before=b"<video:rating>1e", after=b"</video:rating>"),
    "durations": lambda n: fields(b"9", n, b"video:video", before=b"<video:duration>", after=b"</video:duration>"),
    "keywords": lambda n: fields(b",", n, b"news:news", before=b"<news:keywords>", after=b"</news:keywords>"),
    "attributes": lambda n: b"<urlset>" + (b"<url " + b"a='&' " * 200 + b"/>") * (n // 1_207),
    "attributes of ampersands": lambda n: b"<urlset>" + (b"<url a='" + b"&" * 60_000 + b"'/>") * (n // 60_011),
    "attributes of tabs": lambda n: b"<urlset>" + (b"<url a='" + b"\t" * 60_000 + b"'/>") * (n // 60_011),
    "attributes of links": lambda n: (
        URLSET
        + b"<url><loc>http://h/</loc>"
        + (b"<xhtml:link rel='" + b"a " * 30_000 + b"' hreflang='x' href='y'/>") * (n // 60_040)
    ),
    "duplicates": lambda n: entries(b"<loc>http://h/</loc>", n),
    "relative": lambda n: entries(b"<loc>a</loc>", n),
    "relative to a long base": lambda n: (
        b"<urlset xml:base='http://h/" + b"a/" * 5_000 + b"'>" + b"<url><loc>../a</loc></url>" * (n // 26)
    ),
    "entries with a base": lambda n: (
        b"<urlset>" + (b"<url xml:base='http://h/" + b"a/" * 500 + b"'><loc>../a</loc></url>") * (n // 1_040)
    ),
    "an index of names": lambda n: b"<sitemapindex>" + each(b"<loc>%d", n),
    "an index of paths": lambda n: b"<sitemapindex>" + each(b"<loc>/%d", n),
    "an empty index": lambda n: b"<sitemapindex>" + b"<sitemap/>" * (n // 10),
    "an index of combining characters": lambda n: fields(_COMBINING, n, before=b"http://").replace(b"url", b"sitemap"),
    "sitemaps in a urlset": lambda n: b"<urlset>" + b"<sitemap><loc>http://h/</loc></sitemap>" * (n // 39),
    "colons": lambda n: b"<urlset>" + b":sitemap " * (n // 9),
    # feeds
    "items": lambda n: b"<rss><channel>" + b"<item>" * (n // 6),
    "items, closed": lambda n: feed(b"", n),
    "items with links": lambda n: feed(b"<link>http://h/</link><pubDate>x</pubDate><title>&amp;</title>", n),
    "items with many links": lambda n: b"<rss><channel><item>" + b"<link>x</link>" * (n // 14),
    "items with guids": lambda n: feed(b"<guid isPermaLink='true'>http://h/</guid>", n),
    "titles of a feed": lambda n: feed(b"<title>" + b"&lt;" * 10_000 + b"</title><link>http://h/</link>", n),
    "items with relative links": lambda n: b"<rss><channel>" + each(b"<item><link>%d", n),
    "items with titles": lambda n: b"<rss><channel>" + each(b"<item><link>%d<title>x", n),
    "Atom entries": lambda n: atom(b"", n),
    "Atom entries with relative links": lambda n: b"<feed>" + each(b"<entry><link href=%d>", n),
    "Atom entries with links": lambda n: atom(b"<link rel='alternate' href='http://h/'/><updated>x</updated>", n),
    "an Atom entry of links": lambda n: b"<feed><entry>" + b"<link rel='a' href='b'/>" * (n // 24),
    "an Atom entry of relations": lambda n: (
        b"<feed><entry>" + (b"<link rel='" + b"a " * 10_000 + b"' href='b'/>") * (n // 20_024)
    ),
    # encodings
    "UTF-16": lambda n: in_encoding("utf-16", "<a>", "utf-16", n),
    "UTF-16 less than": lambda n: in_encoding("utf-8", "<", "utf-16", n),
    "UTF-32": lambda n: in_encoding("utf-32", "&", "utf-32", n),
    "half of UTF-16": lambda n: b"\xff\xfe" + b"<\0" * 300 + b"\xd8" * n,
    "UTF-7 declared": lambda n: in_encoding("utf-7", "+AGEA-", "ascii", n),
    "Latin-1 late": lambda n: b"<?xml version='1.0' encoding='latin1'?><urlset>" + b" " * 70_000 + b"\xe9<" * (n // 2),
    "Latin-1 late, one field": lambda n: b"<?xml version='1.0' encoding='latin1'?>" + b" " * 70_000 + b"\xe9" * n,
    "Latin-1 of UTF-8": lambda n: (
        b"<?xml version='1.0' encoding='latin1'?><urlset>" + b" " * 70_000 + "é\n".encode() * (n // 3)
    ),
    "Shift JIS": lambda n: in_encoding("shift_jis", "\u3042<", "shift_jis", n),
    "ISO 2022": lambda n: in_encoding("iso-2022-jp", "\u3042a", "iso2022_jp", n),
    "HZ": lambda n: in_encoding("hz", "~{", "ascii", n),
    "Big5 declared": lambda n: b"<?xml version='1.0' encoding='big5'?><urlset>" + b"\xa4" * n,
    "spaces in a declaration": lambda n: b"<?xml version='1.0' encoding=" + b" " * n + b"?><urlset/>",
    "spaces before equals": lambda n: b"<?xml version='1.0' encoding" + b" " * n + b"?><urlset/>",
    "declarations without end": lambda n: b"<?xml encoding " * (n // 15),
    "declarations of spaces": lambda n: b"<?xml" + b" encoding" * (n // 9),
    # what precedes a document
    "XML declarations": lambda n: b"<?xml >" * (n // 7),
    "comments before": lambda n: b"<!-- -->" * (n // 8) + b"<?xml ?><urlset/>",
    "blank before": lambda n: b" " * n + b"<?xml ?><urlset/>",
    "line ends before": lambda n: b"\n" * n + b"<?xml ?><urlset/>",
    "doctypes before": lambda n: b"<!doctype " * (n // 10) + b"html>",
    "warnings before": lambda n: b"x<" * (n // 2) + b"<?xml ?><urlset/>",
    "web page": lambda n: b"<!doctype html><html>" + b"<p>" * (n // 3),
    # compressed
    "gzip of less than": lambda n: gzip.compress(b"<urlset>" + b"<" * n),
    "gzip of gzip": lambda n: gzip.compress(gzip.compress(b"<urlset>" + b"&" * n)),
    "gzip members": lambda n: times(gzip.compress(b"<a>"), n),
    "gzip members, empty": lambda n: times(gzip.compress(b""), n),
    "gzip, damaged": lambda n: gzip.compress(b"<urlset>" + each(b"<url><loc>http://h/%d</loc></url>", n))[:-9],
    "gzip, flag for zlib": lambda n: b"\x1f\x8b\x08\x02" + gzip.compress(b"<" * n)[4:],
    "zeros after gzip": lambda n: gzip.compress(b"<urlset/>") + b"\0" * n,
}

#: Documents of lines: they are read as a robots.txt and as a text sitemap.
LINES: dict[str, Shape] = {
    "URLs": lambda n: each(b"http://h/%d\n", n),
    "one host": lambda n: b"http://" + b"a" * n + b"!",
    "one line": lambda n: b"x" * n,
    "long lines": lambda n: (b"x" * _FIELD + b"\n") * (n // _FIELD),
    "hosts": lambda n: (b"http://" + b"a" * _FIELD + b"!\n") * (n // _FIELD),
    "hosts of combining characters": lambda n: (b"http://" + times(_COMBINING, _FIELD) + b"\n") * (n // _FIELD),
    "hosts without scheme": lambda n: (b"www." + times(b"a.", _FIELD) + b"!\n") * (n // _FIELD),
    "sitemaps of combining characters": lambda n: (b"Sitemap: //" + times(_COMBINING, _FIELD) + b"\n") * (n // _FIELD),
    "inner spaces": lambda n: (b"a" + b" " * _FIELD + b"b\n") * (n // _FIELD),
    "inner tabs": lambda n: (b"http://h/" + b"\t" * _FIELD + b"b\n") * (n // _FIELD),
    "URLs on one line": lambda n: (times(b"http://h/ ", _FIELD) + b"\n") * (n // _FIELD),
    "bad URLs on one line": lambda n: (times(b"http://[ ", _FIELD) + b"\n") * (n // _FIELD),
    "sitemap and spaces": lambda n: (b"Sitemap: a" + b" " * _FIELD + b"b\n") * (n // _FIELD),
    "sitemap, spaces and text": lambda n: (b"sitemap" + b" " * _FIELD + b"x\n") * (n // _FIELD),
    "sitemap, spaces and colon": lambda n: (b"sitemap" + b" " * 30_000 + b":" + b" " * 30_000 + b"x\n") * (n // _FIELD),
    "sitemap over and over": lambda n: (b"http://" + times(b"sitemap", _FIELD) + b" x\n") * (n // _FIELD),
    "a word and sitemap over and over": lambda n: (times(b"a sitemap ", _FIELD) + b"x\n") * (n // _FIELD),
    "commas before URLs": lambda n: (b"Sitemap: " + times(b",http://h/", _FIELD) + b"\n") * (n // _FIELD),
    "short sitemap lines": lambda n: each(b"Sitemap: http://h/%d\n", n),
    "empty sitemap lines": lambda n: times(b"Sitemap:\n", n),
    "hashes": lambda n: (times(b" #", _FIELD) + b"\n") * (n // _FIELD),
    "hashes without spaces": lambda n: (times(b"#", _FIELD) + b"\n") * (n // _FIELD),
    "spaces": lambda n: (b" " * _FIELD + b"x\n") * (n // _FIELD),
    "spaces before line ends": lambda n: times(b" \n", n),
    "quotes": lambda n: (b"Sitemap: " + times(b"' ", _FIELD) + b"x\n") * (n // _FIELD),
    "user agents": lambda n: each(b"User-agent: a%d\n", n),
    "comments": lambda n: b"<!-- -->" * (n // 8) + b"x",
    "open comments": lambda n: b"<!--" * (n // 4),
    "less than": lambda n: b"<" * n,
    "line breaks": lambda n: b"\r" * n,
    "line breaks of Unicode": lambda n: "\u2028".encode() * (n // 3),
    "vertical tabs": lambda n: b"\x0b" * n,
    "controls": lambda n: b"\x01" * n,
    "controls and line breaks": lambda n: b"\x01\n" * (n // 2),
    "bad bytes": lambda n: b"\xff\n" * (n // 2),
    "letters": lambda n: b"x\n" * (n // 2),
    "letters and a URL": lambda n: b"x\n" * (n // 2) + b"http://h/\n",
    "bad bytes and a URL": lambda n: b"\xff\n" * (n // 2) + b"http://h/\n",
    "dots and a URL": lambda n: b"w.\n" * (n // 3) + b"http://h/\n",
    "colons and a URL": lambda n: b"://\n" * (n // 4) + b"http://h/\n",
    "dashes": lambda n: b"- x\n" * (n // 4),
    "numbers": lambda n: each(b"%d\n", n),
    "accents and a URL": lambda n: "é.\n".encode() * (n // 4) + b"http://h/\n",
    "line breaks of Unicode and a URL": lambda n: "x\u2028".encode() * (n // 4) + b"http://h/\n",
    "short names of sitemaps": lambda n: each(b"Sitemap:%d\n", n),
    "URLs and fields": lambda n: each(b"http://h/%d\ta\n", n),
    "URLs and letters": lambda n: times(b"http://a\nx\n", n),
    "URLs and comments": lambda n: each(b"http://%d #\n", n),
    "URLs behind dashes": lambda n: each(b"- http://%d\n", n),
    "URLs in quotes": lambda n: each(b"'http://%d\n", n),
    "URLs in pairs": lambda n: each(b"http://h http://%d\n", n),
    "URLs and vertical tabs": lambda n: each(b"http://%d\x0b", n),
    "hosts of dots": lambda n: each(b"http://.%d\n", n),
    "hosts of brackets": lambda n: each(b"http://[%d\n", n),
    "URLs and long ports": lambda n: each(b"http://a:0%d\n", n),
    "URLs and spaces": lambda n: each(b"http://%d x\n", n),
    "URLs and bad bytes": lambda n: each(b"http://%d \xff\n", n),
    "old letters": lambda n: each("http\u017f://%d\n".encode(), n),
    "short hosts": lambda n: each(b"http://%d\n", n),
    "short hosts with accents": lambda n: each("http://é%d\n".encode(), n),
    "short hosts without scheme": lambda n: each(b"www.a.%d\n", n),
    "UTF-16": lambda n: ("http://h/\n" * (n // 20)).encode("utf-16"),
}
