"""Where the search starts from: the fixtures, and entries with everything that an entry may hold.

Also the words that it puts into documents: tags, declarations, and what stands between them.
"""

from __future__ import annotations

from pathlib import Path

from support import fixtures
from usp.scan.grammar import grammar_of

__all__ = ["WORDS", "seeds", "write_dictionary"]

_NAMESPACES = {
    "image": "http://www.google.com/schemas/sitemap-image/1.1",
    "news": "http://www.google.com/schemas/sitemap-news/0.9",
    "video": "http://www.google.com/schemas/sitemap-video/1.1",
    "xhtml": "http://www.w3.org/1999/xhtml",
}
_LOC = "<loc>http://h/{}</loc>"
#: What stands in an entry beside its URL.
_BODIES = (
    "<lastmod>2024-05-08</lastmod><changefreq>daily</changefreq><priority>0.8</priority>",
    "<lastmod>2024-05-08T10:00:00.5+02:00</lastmod><changefreq>Weekly</changefreq><priority>1</priority>",
    "<lastmod>May 8, 2024</lastmod><changefreq>often</changefreq><priority>7</priority>",
    "<image:image><image:loc>http://h/i?a&amp;b</image:loc><image:title>A &amp;amp; B</image:title></image:image>",
    "<image:image><loc>http://h/i</loc><image:caption>é</image:caption></image:image><!-- c -->",
    "<news:news><news:publication><news:name>N</news:name><news:language>en</news:language></news:publication>"
    "<news:publication_date>2024-05-08</news:publication_date><news:title>T</news:title>"
    "<news:keywords>a, b,, c</news:keywords></news:news>",
    "<xhtml:link rel='alternate' hreflang='de' href='http://h/de?a&amp;b'/>"
    '<xhtml:link rel="stylesheet" hreflang="fr" href="/fr"></xhtml:link>',
    "<video:video><video:title>V</video:title><video:duration>60</video:duration><video:tag>t</video:tag>"
    '<video:price currency="EUR">1.99</video:price></video:video>',
    "<priority><![CDATA[0.5]]></priority><lastmod> </lastmod><changefreq/>",
    "<image:image><image:loc>null</image:loc><image:title>a\r\nb\r&#13;<![CDATA[\r\n]]></image:title></image:image>"
    "<xhtml:link hreflang='d\r\ne' href='www.h.example/de'/>",
)
#: What the search puts into documents, each of no more than 64 bytes.
WORDS = (
    *("<urlset>", "</urlset>", "<url><loc>http://h/", "</loc></url>", "<loc>/", "<![CDATA[", "]]>", "<!--", "-->"),
    *("<!DOCTYPE html>", "<?xml version='1.0' encoding='", "utf-16", "&amp;", "&amp;amp;", "&#233;", "&eacute;"),
    *(" xmlns='", " xmlns:a='", " xml:base='", " rel='alternate'", " hreflang='de'", " href='http://h/'"),
    *("2024-05-08", "T10:00:00Z", "+02:00", "daily", "0.5", "\ufeff", "é", "\x1f\ufffd", "<sitemap>", "<sitemapindex>"),
    *(
        "<rss>",
        "<item><link>",
        "None",
        "www.h.example",
        "\r\n",
        "&#13;",
        "<feed>",
        "<entry>",
        "<id>",
        "Sitemap: ",
        *_NAMESPACES.values(),
    ),
)


def seeds() -> dict[str, bytes]:
    """Return the documents, by file name."""
    found = {fixture.file: fixture.data for fixture in fixtures()}
    declared = "".join(f" xmlns:{prefix}='{uri}'" for prefix, uri in _NAMESPACES.items())
    other = declared.replace(":image", ":i").replace(":news", ":n")
    for i, body in enumerate(_BODIES):
        found[f"entry-{i}.xml"] = _urlset("", [body])
        found[f"entry-{i}-declared.xml"] = _urlset(declared, [body])
        found[f"entry-{i}-renamed.xml"] = _urlset(other, [body.replace("image:", "i:").replace("news:", "n:")])
    found["entries.xml"] = _urlset(declared, _BODIES)
    group = f"<g xmlns:a='{_NAMESPACES['news']}'><url><loc>http://h/g</loc>{_BODIES[3]}</url></g><url>"
    found["namespaces-of-some.xml"] = _urlset("", _BODIES[:2]).replace(b"<url>", group.encode(), 1)
    return found


def _urlset(attributes: str, bodies: tuple[str, ...] | list[str]) -> bytes:
    entries = "".join(f"<url>{_LOC.format(i)}{body}</url>\n" for i, body in enumerate(bodies))
    return f"<urlset{attributes}>{entries}</urlset>".encode()


def write_dictionary(path: Path) -> None:
    """Write the words, and every tag of an entry, in the format of libFuzzer."""
    grammar = grammar_of(())
    assert grammar is not None
    tags = [part % name for name in grammar.names if b":" in name or len(name) < 9 for part in (b"<%s>", b"</%s>")]
    words = [*(word.encode() for word in WORDS), *tags]
    lines = ('"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n' for word in words)
    path.write_text("".join(lines), "ascii")
