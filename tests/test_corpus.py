"""Real files, as found on the web: none raises, and each gives all its entries."""

from __future__ import annotations

import gzip
import re
import zlib
from collections import Counter
from urllib.parse import urljoin

from lxml import etree

from corpus import URL, files, needs_corpus, read
from scanners import FAST, GENERAL, of_document
from usp.objects.sitemap import InvalidSitemap

pytestmark = needs_corpus
ENOUGH = 50_000  # bytes of a file; all but a few are smaller
RSS = {None, "http://purl.org/rss/1.0/", "http://my.netscape.com/rdf/simple/0.9/"}


def found_by_lxml(data: bytes) -> list[str]:
    """Return the URLs that an independent parser finds, which repairs some errors."""
    if data.startswith(b"\x1f\x8b"):
        data = gzip.decompress(data)
    root = etree.fromstring(data.strip(), etree.XMLParser(recover=True, huge_tree=True, resolve_entities=False))
    found = []
    for element in root.iter("{*}url", "{*}sitemap", "{*}item", "{*}entry"):
        namespace = etree.QName(element).namespace
        for child in element:
            if not isinstance(child.tag, str):
                continue
            name, own = etree.QName(child), etree.QName(child).namespace
            text = (child.text or "").strip()
            if name.localname == "loc" and own == namespace and text:
                found.append(text)
            elif name.localname == "link" and namespace in RSS and own in RSS and text:
                found.append(text)
                break
            elif name.localname == "link" and own == namespace and child.get("rel", "alternate") == "alternate":
                if href := child.get("href"):
                    found.append(href)
                    break
    return [urljoin(URL, url.replace("&amp;", "&")) for url in found]


def test_every_sitemap_and_feed_gives_its_entries() -> None:
    """Every URL that lxml finds in a file in its recovering mode, usp finds too."""
    seen: Counter[str] = Counter()
    missing = {}
    for name, kind, data in files("urlset", "index", "rss", "atom"):
        sitemap = read(kind, data)
        urls = {page.url for page in sitemap.pages} | {child.url for child in sitemap.sub_sitemaps}
        if lost := set(found_by_lxml(data)) - urls:
            missing[name] = sorted(lost)[:3]
        seen[kind] += 1
    assert missing == {}
    assert min(seen[kind] for kind in ("urlset", "index", "rss", "atom")) > 20


def test_every_scanner_gives_the_same() -> None:
    """Every reader gives the same of a file; of a large file, of its start."""
    seen = 0
    for name, _, data in files("urlset", "index", "rss", "atom", "other"):
        text = zlib.decompressobj(31).decompress(data, ENOUGH) if data.startswith(b"\x1f\x8b") else data[:ENOUGH]
        expected = of_document(text, GENERAL)
        for readers in FAST.values():
            assert of_document(text, readers) == expected, name
        seen += 1
    assert seen > 1_000


def test_every_text_gives_its_urls() -> None:
    """Every line of a text file that is a URL is a page."""
    seen = 0
    for name, kind, data in files("text", "other"):
        sitemap = read(kind, data)
        urls = set(re.findall(r"(?m)^\s*(https?://[\x21-\x7e]+)\s*$", data.decode("latin-1")))
        assert urls <= {page.url for page in sitemap.pages}, name
        seen += len(urls)
    assert seen > 10_000


def test_every_robots_txt_gives_its_sitemaps() -> None:
    """Every plain Sitemap line of a robots.txt is a child; a web page in its place has none."""
    seen: Counter[str] = Counter()
    for name, kind, data in files("robots"):
        robots = read(kind, data)
        assert not isinstance(robots, InvalidSitemap), name
        if any(problem.code == "R701" for problem in robots.problems):
            seen["HTML"] += 1
            assert re.search(rb"(?i)<(html|!doctype|meta|script|head|body|p|title)", data), name
            continue
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin-1")
        plain = {url.rstrip() for url in re.findall(r"(?im)^sitemap: *(https?://\w[\x21-\x7e]+) *\r?$", text)}
        assert plain <= {child.url for child in robots.sub_sitemaps}, name
        seen["sitemaps"] += len(plain)
    assert seen["sitemaps"] > 5_000
    assert seen["HTML"] > 50
