"""Compares usp with ultimate-sitemap-parser 1.8.1, which pip installs into `.compat/`.

Both read the same documents through the same client: those written here, the clean fixtures, and the corpus of real
files where there is one. A row of `DELIBERATE` must claim each difference (a page more, a field, a class), and
`docs/differences.md` must name each row. Any other difference is printed, and the exit code is 1.

`compat.py --read CASES RESULTS` is the part that runs under either Python. It uses only what both packages offer.
"""

from __future__ import annotations

import base64
import html
import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urljoin
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "tests" / "fixtures"
CORPUS = Path(os.environ.get("USP_CORPUS", ROOT.parent / "shared" / "corpus"))
EXPLANATIONS = ROOT / "docs" / "differences.md"
VENV = ROOT / ".compat"
PACKAGE = "ultimate-sitemap-parser==1.8.1"
CASE_SECONDS, ALL_SECONDS, MAX_SHOWN = 15, 150, 20

SITE = "http://site.example/"
_NAMESPACES = (
    'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"'
    ' xmlns:image="http://www.google.com/schemas/sitemap-image/1.1" xmlns:xhtml="http://www.w3.org/1999/xhtml"'
)
_pages = f"<urlset {_NAMESPACES}><url><loc>{SITE}p</loc>{{}}</url><url><loc>{SITE}q</loc></url></urlset>".format
_index = f"<sitemapindex {_NAMESPACES}>{f'<sitemap><loc>{SITE}{{}}</loc></sitemap>' * 4}</sitemapindex>".format
_rss = (
    f'<rss version="2.0"><channel><item><title>A &amp; B</title><link>{SITE}1</link>{{}}</item></channel></rss>'.format
)
_PLACEHOLDERS = ("None", "null", "undefined", "#", f"{SITE}p")
#: Documents, most of them valid, by the name that they are served under.
DOCUMENTS = {
    "all.xml": _pages("<lastmod>2024-05-08T10:00Z</lastmod><changefreq>daily</changefreq><priority>1</priority>"),
    "month.xml": _pages("<lastmod>2024-05</lastmod>"),
    "news.xml": _pages(
        "<news:news><news:publication><news:name>N</news:name><news:language>en</news:language></news:publication>"
        "<news:title>T</news:title><news:publication_date>2024-05-08</news:publication_date><news:access>Subscription"
        "</news:access><news:genres>Blog</news:genres><news:keywords>a, b,</news:keywords></news:news>"
    ),
    "images.xml": _pages(f"<image:image><image:loc>{SITE}i.png</image:loc></image:image>" * 2),
    "hreflang.xml": _pages(f'<xhtml:link rel="alternate" hreflang="de" href="{SITE}de"/>'),
    "without-rel.xml": _pages(f'<xhtml:link hreflang="de" href="{SITE}de"/>'),
    "placeholders.xml": f"<urlset {_NAMESPACES}>{'<url><loc>{}</loc></url>' * 5}</urlset>".format(*_PLACEHOLDERS),
    "without-scheme.xml": f"<urlset {_NAMESPACES}><url><loc>www.site.example/p</loc></url></urlset>",
    "without-scheme.txt": f"{SITE}1\nwww.site.example/2\nsite.example/3\n",
    "lines.xml": _pages(
        f"<image:image><image:loc>{SITE}i.png</image:loc><image:title>a\r\nb\rc</image:title></image:image>"
    ),
    "index.xml": _index("all.xml", "empty.txt", "gone", "all.xml"),
    "feed.rss": _rss("<pubDate>Wed, 08 May 2024 10:00:00 GMT</pubDate>"),
    "zone.rss": _rss("<pubDate>Wed, 08 May 2024 10:00:00 EST</pubDate>"),
    "dc.rss": _rss('<dc:date xmlns:dc="http://purl.org/dc/elements/1.1/">2024-05-08</dc:date>'),
    "old.rss": '<!DOCTYPE rss SYSTEM "http://my.netscape.com/publish/formats/rss-0.91.dtd">' + _rss(""),
    "feed.atom": '<feed xmlns="http://www.w3.org/2005/Atom"><entry><title>T</title><updated>2024-05-08</updated>'
    f'<link rel="self" href="{SITE}self"/><link rel="alternate" href="{SITE}1"/></entry></feed>',
    "list.txt": f"{SITE}1\r\n{SITE}2\r\n\r\n{SITE}1\r\n",
    "empty.txt": "",
    "robots.txt": f"User-agent: *\nDisallow: /x\n\nSitemap: {SITE}all.xml\nsitemap:{SITE}gone\n",
}

#: What `is_http_url` of both packages is asked about.
ASKED_URLS = [
    *("http://example.com", "HTTPS://EXAMPLE.COM/a?b#c", "http://h/", "http://localhost:8000/", "http://127.0.0.1/"),
    *(
        "http://[::1]:80/",
        "http://[::1",
        "http://user:pass@example.com/",
        "http://\u4f8b\u3048.jp/\u00e9",
        "http://h:/",
    ),
    *("http://.example.com/", "http://.com/", "http://u@.example.com/", "http://example..com/", "http://example.com./"),
    *("http://-example.com/", "http://exa_mple.com/", "http://*.example.com/", "http://{domain}/", "http://h:65535/"),
    *("http://h:65536/", "http://h:abc/", "http://h:-1/", "http://h:80:80/", "http://-/", "http://%/", "http://./"),
    *("http://h/a b", "http://h/ ", "http://ex\tample.com/", "http://exa mple.com/", " http://h/", "http:// h/"),
    *("", "http://", "http:///x", "http://?x", "http:h", "http:/h/", "//h/", "/h", "www.example.com/", "ftp://h/"),
    *("mailto:a@h", "javascript:alert(1)", "None", "#", "http://http://h/", "hxxp://h/", "http://<h>/", "http://$.h/"),
]
HELPERS = SITE + "helpers"

Node = dict[str, Any]  # a sitemap or a page, as JSON


class Case(NamedTuple):
    """A document to read, and all that its site serves."""

    name: str
    url: str
    documents: dict[str, bytes]

    @property
    def text(self) -> str:
        """The document as text."""
        return self.documents[self.url].decode("utf-8", "replace")


def all_cases() -> Iterator[Case]:
    """Yield every document to compare."""
    served = {SITE + name: text.encode() for name, text in DOCUMENTS.items()}
    yield from (Case(name, SITE + name, served) for name in DOCUMENTS)
    yield Case("helpers", HELPERS, {HELPERS: b""})
    for about in sorted(FIXTURES.glob("*.json")):
        expected = json.loads(about.read_text(encoding="utf-8"))
        if expected.get("clean"):
            path = next(path for path in FIXTURES.glob(f"{about.stem}.*") if path != about)
            yield Case(f"fixtures/{path.name}", expected["url"], {expected["url"]: path.read_bytes()})
    if not (CORPUS / "MANIFEST.tsv").exists():
        print("skipped: there is no corpus of real files here; set USP_CORPUS to the path of one")
        return
    files = [line.split("\t")[:3] for line in (CORPUS / "MANIFEST.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    archives = {archive: zipfile.ZipFile(CORPUS / archive) for archive in {file[0] for file in files}}
    for archive, name, kind in files:
        url = SITE + ("robots.txt" if kind == "robots" else quote(name.rpartition("/")[2]))
        yield Case(f"{archive}/{name}", url, {url: archives[archive].read(name)})


# The part that runs under either Python


def read_all(cases: Path, results: Path) -> int:
    """Read every case of a file with the `usp` of this Python, and write a line with the result of each."""
    signal.signal(signal.SIGALRM, lambda *_: sys.exit())  # SystemExit is no `Exception`: neither package catches it
    complaints: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: complaints.append(record.getMessage())  # type: ignore[method-assign]
    logging.basicConfig(handlers=[handler])
    with cases.open(encoding="ascii") as lines, results.open("w", encoding="ascii") as found:
        for line in lines:
            case_url, documents = json.loads(line)
            complaints.clear()
            signal.alarm(CASE_SECONDS)
            try:
                contents = {url: base64.b64decode(data) for url, data in documents.items()}
                node = ask_helpers() if case_url == HELPERS else read(case_url, contents)
            except (Exception, SystemExit) as error:
                node = {"exception": type(error).__name__}
            signal.alarm(0)
            found.write(json.dumps(node | {"log": "\n".join(complaints)}) + "\n")
    return 0


def read(url: str, documents: dict[str, bytes]) -> Node:
    """Fetch and parse a URL with `SitemapFetcher`."""
    from usp.fetch_parse import SitemapFetcher
    from usp.web_client import abstract_client

    class Success(abstract_client.LocalWebClientSuccessResponse):
        def raw_data(self) -> bytes:
            return documents[self.url()]

    class Client(abstract_client.AbstractWebClient):
        def set_max_response_data_length(self, max_response_data_length: int | None) -> None:
            pass

        def get(self, url: str) -> abstract_client.AbstractWebClientResponse:
            missing = abstract_client.WebClientErrorResponse("404 Not Found", False)
            return Success(url, "") if url in documents else missing

    return as_node(SitemapFetcher(url, 0, web_client=Client()).sitemap())


def ask_helpers() -> Node:
    """Return what `is_http_url` says, as a sitemap of one page with a field for each URL."""
    from usp.helpers import is_http_url

    return {"pages": [{"url": HELPERS} | {f"is_http_url {url}": is_http_url(url) for url in ASKED_URLS}]}


def as_node(sitemap: Any) -> Node:
    """Return the class and the `to_dict()` of a sitemap and of all below it. A reason becomes a boolean."""
    node: Node = json.loads(json.dumps(sitemap.to_dict(), default=str)) | {"class": type(sitemap).__name__}
    node |= {"reason": bool(node["reason"])} if "reason" in node else {}
    for page, as_dict in zip(sitemap.pages, node.get("pages", ()), strict=True):
        as_dict["alternates in dict"] = "alternates" in as_dict
        as_dict["alternates"] = page.alternates and [list(pair) for pair in page.alternates]
    node |= {"sub_sitemaps": [as_node(child) for child in sitemap.sub_sitemaps]} if "sub_sitemaps" in node else {}
    return node


class Difference(NamedTuple):
    """One difference. Where only one side has a page or a child, the other is None."""

    case: Case
    what: str  # "exception", "class", "url", "reason", "keys", "order", "page", "child", or a field of a page
    ours: Any
    theirs: Any
    our_node: Node  # the sitemaps with the difference
    their_node: Node
    log: str  # what 1.8.1 complained of


def differences(case: Case, ours: Node, theirs: Node, log: str) -> Iterator[Difference]:
    """Yield all differences between two sitemaps and all below them."""

    def found(what: str, our_value: Any, their_value: Any) -> Difference:
        return Difference(case, what, our_value, their_value, ours, theirs, log)

    for key in ("exception", "class", "url", "reason"):
        if ours.get(key) != theirs.get(key) or "exception" in ours:
            yield found(key, ours.get(key), theirs.get(key))
            if key in ("exception", "class") and not (theirs.get("pages") or theirs.get("sub_sitemaps")):
                return  # 1.8.1 read nothing: that is one difference, not one for each page
    keys = {key for key in ours.keys() ^ theirs.keys() if not (ours.get(key) or theirs.get(key))}
    if keys:
        yield found("keys", sorted(keys & ours.keys()), sorted(keys & theirs.keys()))
    for what, key in (("page", "pages"), ("child", "sub_sitemaps")):
        pairs = aligned(ours.get(key, []), theirs.get(key, []), case.url)
        in_both = {id(their_item): None for our_item, their_item in pairs if our_item and their_item}
        if list(in_both) != [id(item) for item in theirs.get(key, []) if id(item) in in_both]:
            yield found("order", key, key)
        for our_item, their_item in pairs:
            if our_item is None or their_item is None:
                yield found(what, our_item, their_item)
            elif what == "child":
                yield from differences(case, our_item, their_item, log)
            else:
                yield from (found(*field) for field in differing_fields(our_item, their_item))


def differing_fields(ours: Node, theirs: Node, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the fields of a page, or of its news story, that differ."""
    for name in sorted(ours.keys() | theirs.keys()):
        our_value, their_value = ours.get(name), theirs.get(name)
        if isinstance(our_value, dict) and isinstance(their_value, dict):
            yield from differing_fields(our_value, their_value, f"{name}.")
        elif our_value != their_value:
            yield prefix + name, our_value, their_value


def aligned(ours: list[Node], theirs: list[Node], base: str) -> list[tuple[Node | None, Node | None]]:
    """Pair the pages or children of both sides: by URL, then by the loose URL of those that are left."""
    partners: dict[int, Node] = {}
    left = theirs
    for key in (str, lambda url: loose(url, base)):
        places: dict[str, list[Node]] = defaultdict(list)
        for item in left:
            places[key(item["url"])].append(item)
        for i, item in enumerate(ours):
            if i not in partners and places[key(item["url"])]:
                partners[i] = places[key(item["url"])].pop(0)
        left = [item for same in places.values() for item in same]
    return [(item, partners.get(i)) for i, item in enumerate(ours)] + [(None, item) for item in left]


def loose(url: str, base: str) -> str:
    """Make a URL absolute, and remove character references and all that is not ASCII."""
    return re.sub(r"[^!-~]+", "", html.unescape(urljoin(base, url)))


Claim = Callable[[Difference], bool]


def is_only_ours(d: Difference, what: str) -> bool:
    """Return whether the difference is of this kind, and 1.8.1 has nothing there."""
    return d.what == what and not d.theirs


def is_only_our_child(d: Difference, written: str) -> bool:
    """Return whether only we have this child, and the document has its URL or path in this pattern."""
    url = d.ours["url"] if is_only_ours(d, "child") else ""
    pattern = written.format(url=re.escape(url), path=re.escape(url.removeprefix(SITE)))
    return bool(url and re.search(pattern, d.case.text, re.IGNORECASE | re.MULTILINE))


def read_despite(complaint: str, sitemap_class: str = "") -> Claim:
    """Claim a document that 1.8.1 refused with this complaint, and that we read as this class."""
    claimed = re.compile(rf"(?s)InvalidSitemap .*{complaint}.* as {sitemap_class}")
    return lambda d: d.what == "class" and bool(claimed.match(f"{d.theirs} {d.log} as {d.ours}"))


def is_after_error(d: Difference) -> bool:
    """Return whether 1.8.1 gave up inside the document before this page or child."""
    key = {"page": "pages", "child": "sub_sitemaps"}.get(d.what, "")
    if not key or d.theirs is not None or "Parsing sitemap" not in d.log:
        return False
    had = {item["url"] for item in d.their_node.get(key, ())}
    return had.isdisjoint(item["url"] for item in d.our_node[key][d.our_node[key].index(d.ours) :])


def is_relative(d: Difference) -> bool:
    """Return whether a URL is relative: 1.8.1 keeps that of a page as it is, and drops a child."""
    if d.what == "url":
        return bool(urljoin(d.case.url, d.theirs) == d.ours and ":" not in d.theirs)
    return is_only_our_child(d, r"[>\s:]/?{path}\s*(<|#|$)") and not is_only_our_child(d, "{url}")


def is_without_scheme(d: Difference) -> bool:
    """Return whether we put a scheme before a page: 1.8.1 keeps it as it is, and drops it as a line of text."""
    if d.what != "page":
        return False
    if d.ours is None:
        return any(page["url"] == f"http://{d.theirs['url']}" for page in d.our_node["pages"])
    return d.ours["url"].removeprefix("http://") in re.split(r"[<>\n]", d.case.text)


def has_bad_bytes(d: Difference) -> bool:
    """Return whether 1.8.1 has replacement characters in a URL, which may make one page of two."""
    theirs = [d.theirs] if d.what == "url" else [page["url"] for page in d.their_node.get("pages", ())]
    ours = d.ours if d.what == "url" else d.ours["url"] if is_only_ours(d, "page") else ""
    return any("\ufffd" in url and loose(url, d.case.url) == loose(ours, d.case.url) for url in theirs)


def is_choice_of_link(d: Difference) -> bool:
    """Return whether a page of a feed is a link of an entry itself; or, if only 1.8.1 has it, no entry's alternate."""
    if d.what != "page" or d.our_node["class"] not in ("PagesRSSSitemap", "PagesAtomSitemap") or "failed" in d.log:
        return False
    document = ElementTree.fromstring(d.case.text)  # noqa: S314 -- expat itself limits expansion
    entries = [element for element in document.iter() if str(element.tag).endswith(("item", "entry"))]
    links = [element for entry in entries for element in entry if str(element.tag).endswith(("link", "guid"))]
    kinds = {link.get("href") or str(link.text).strip(): link.get("rel", "alternate") for link in links}
    return d.ours["url"] in kinds if d.ours else kinds.get(d.theirs["url"]) != "alternate"


def is_http_url_differing(pattern: str, ours: bool) -> Claim:
    """Claim that `is_http_url` gives this for a URL of this pattern, and 1.8.1 the contrary."""
    return lambda d: bool(re.fullmatch(f"is_http_url (?:{pattern})", d.what)) and d.ours is ours


def is_cleaned_images(d: Difference) -> bool:
    """Return whether images are equal once their texts are unescaped and stripped, and their URLs absolute."""
    if d.what != "images" or not d.ours or not d.theirs:
        return False
    images = [{name: text and html.unescape(text).strip() for name, text in image.items()} for image in d.theirs]
    return [image | {"loc": urljoin(d.case.url, image["loc"])} for image in images] == list(d.ours)


# fmt: off
#: A name, a function that claims a difference, and why we differ. The formatter would pull this table apart.
DELIBERATE: list[tuple[str, Claim, str]] = [
    ("sitemap-url-in-dict", lambda d: is_only_ours(d, "sitemap_url"), "A page names its sitemap in `to_dict()`."),
    ("kept-after-error", is_after_error, "What follows an error in the XML is kept; 1.8.1 loses the rest."),
    ("before-declaration", read_despite("declaration not at start"), "What precedes the XML declaration does no harm."),
    ("doctype", read_despite("DOCTYPE", "Pages"), "A DOCTYPE without entities of its own is passed over."),
    ("no-root", read_despite("root element '(url|sitemap)'"), "Entries count even where their root is missing."),
    ("rdf", read_despite("root element 'RDF'", "PagesRSS"), "RSS 0.90 and 1.0, which are RDF, are feeds too."),
    ("text-without-urls", lambda d: (d.ours, d.theirs) == ("InvalidSitemap", "PagesTextSitemap"),
     "A text without any URL is no sitemap; 1.8.1 gives an empty one."),
    ("encodings", lambda d: d.theirs == "PagesTextSitemap" and "\0" in d.case.text,
     "UTF-16 and other encodings are read; 1.8.1 takes everything for UTF-8."),
    ("bad-bytes", has_bad_bytes, "A field that is not UTF-8 is read as Windows-1252, so that no two URLs become one."),
    ("placeholders", lambda d: d.what == "page" and not d.ours and d.theirs["url"] in _PLACEHOLDERS,
     "`None`, `null`, `undefined` and `#` are no URLs; 1.8.1 lists them as pages."),
    ("without-scheme", is_without_scheme, "A host without a scheme gets that of the sitemap."),
    ("relative-urls", is_relative, "Relative URLs are resolved; 1.8.1 keeps them for pages and drops children."),
    ("no-entities-in-queries", lambda d: d.what == "url" and html.unescape(d.ours) == d.theirs,
     "`&copy=1` in a URL is a parameter, not a copyright sign."),
    ("robots-html", lambda d: read_despite("failed", "IndexRobots")(d) and not d.our_node["sub_sitemaps"],
     "A web page in place of robots.txt is a robots.txt without sitemaps, and a problem."),
    ("robots-comments", read_despite("syntax error", "IndexRobots"), "A robots.txt may start with an HTML comment."),
    ("robots-lines", lambda d: is_only_our_child(d, r"^\s*site-?map\s*:.*{url}")
     and not is_only_our_child(d, r"^\s*sitemap:\s*{url}\s*$"),
     "Sitemap lines with comments, brackets, or space before the colon count."),
    ("feed-without-title", lambda d: is_only_ours(d, "page") and "title and description are unset" in d.log,
     "An entry of a feed needs a link to be a page, not a title."),
    ("feed-links", is_choice_of_link, "An entry's page is its own alternate link, or its guid; not any link in it."),
    ("feed-dates", lambda d: is_only_ours(d, "news_story.publish_date"), "dc:date and Atom 0.3's dates are dates too."),
    ("partial-dates", lambda d: str(d.ours)[7:] == "-01 00:00:00" and str(d.theirs)[:4] == d.ours[:4],
     "A bare year or month is its first day; 1.8.1 takes today's month and day."),
    ("zone-names", lambda d: isinstance(d.ours, str) and len(d.ours) > 19 and d.ours[:19] == d.theirs,
     "Zone names such as EST and CET count; 1.8.1 drops them."),
    ("image-texts", is_cleaned_images, "An image's texts are unescaped and stripped, and its URL is made absolute."),
    ("videos", lambda d: is_only_ours(d, "videos"), "Videos are read."),
    ("alternates-in-dict", lambda d: is_only_ours(d, "alternates in dict"), "A page's alternates are in `to_dict()`."),
    ("genres", lambda d: is_only_ours(d, "news_story.genres"), "Genres are read; 1.8.1 never gives any."),
    ("alternates-without-rel", lambda d: is_only_ours(d, "alternates"), "A link with a language needs no `rel`."),
    ("empty-items", lambda d: isinstance(d.theirs, list) and [item for item in d.theirs if item != ""] == d.ours,
     "Empty items of comma-separated lists are left out."),
    ("url-ports", is_http_url_differing(r"http://h:\D.*|http://h:65536/|http://h:80:80/", False),
     "`is_http_url` is false for a port that no request can have."),
    ("url-signs", is_http_url_differing(r"http://(?:[-%]|u@\..*)/", False),
     "`is_http_url` is false for a host of signs only, and for one that starts with a dot behind a user."),
    ("url-space", is_http_url_differing(r"http://.*\s.*", True), "`is_http_url` is true for a URL with spaces."),
    ("url-dollar", is_http_url_differing(r"http://\$\.h/", True), "`is_http_url` allows any sign before a letter."),
]
# fmt: on


def their_python() -> str:
    """Return the path of the Python with 1.8.1. Install it on the first run."""
    python = str(VENV / "bin" / "python")
    if not (VENV / PACKAGE).exists():
        print(f"installing {PACKAGE} into {VENV.name}/", flush=True)
        pip = [python, "-m", "pip", "install", "--quiet", PACKAGE]
        for command in ([sys.executable, "-m", "venv", "--clear", str(VENV)], pip):
            done = subprocess.run(command, capture_output=True, text=True)  # noqa: S603 -- the command is built here
            if done.returncode:
                sys.exit(f"cannot install {PACKAGE}:\n{done.stderr}")
        (VENV / PACKAGE).touch()
    return python


def read_by_both(cases: list[Case]) -> Iterator[tuple[Case, Node, Node]]:
    """Yield each case with our result and that of 1.8.1."""
    pythons = {VENV / "ours.jsonl": sys.executable, VENV / "theirs.jsonl": their_python()}
    with (VENV / "cases.jsonl").open("w", encoding="ascii") as file:
        for case in cases:
            documents = {url: base64.b64encode(data).decode() for url, data in case.documents.items()}
            file.write(json.dumps([case.url, documents]) + "\n")
    ours = os.environ | {"TZ": "UTC", "PYTHONWARNINGS": "ignore"}
    theirs = {name: value for name, value in ours.items() if name != "PYTHONPATH"}  # it may lead to our `usp`
    workers = [
        subprocess.Popen([python, __file__, "--read", file.name, results], env=environment)  # noqa: S603 -- the command is built here
        for (results, python), environment in zip(pythons.items(), (ours, theirs), strict=True)
    ]
    end = time.monotonic() + ALL_SECONDS
    try:
        if any(worker.wait(max(0, end - time.monotonic())) for worker in workers):
            sys.exit("a reader failed; see above")
    finally:
        for worker in workers:
            worker.kill()
    nodes = (map(json.loads, results.read_text(encoding="ascii").splitlines()) for results in pythons)
    yield from zip(cases, *nodes, strict=True)


def main() -> int:
    """Compare, and print the differences."""
    cases = list(all_cases())
    claimed: dict[str, list[str]] = defaultdict(list)  # names of cases, once for each difference
    unclaimed: dict[tuple[str, str, bool], Difference] = {}  # the first of its kind in its case
    for case, ours, theirs in read_by_both(cases):
        for d in differences(case, ours, theirs, theirs["log"]):
            row = next((name for name, claims, _ in DELIBERATE if claims(d)), "")
            claimed[row].append(case.name)
            if not row:
                unclaimed.setdefault((case.name, d.what, d.ours is None), d)
    for name, _, reason in DELIBERATE:
        print(f"{name:22} {len(claimed[name]):6,} in {len(set(claimed[name])):4,} files  {reason}")
    differing, otherwise = set().union(*claimed.values()), set(claimed[""])
    same, on_purpose = len(cases) - len(differing), len(differing - otherwise)
    print(
        f"{len(cases):,} cases: {same:,} identical, {on_purpose:,} different on purpose, {len(otherwise):,} otherwise"
    )
    for d in list(unclaimed.values())[:MAX_SHOWN]:
        print(f"NOT ON PURPOSE: {d.case.name}: {d.what}\n  ours   {str(d.ours)[:200]}\n  theirs {str(d.theirs)[:200]}")
    explained = EXPLANATIONS.read_text(encoding="utf-8")
    missing = [name for name, _, _ in DELIBERATE if f"`{name}`" not in explained]
    if missing:
        print(f"NOT IN {EXPLANATIONS.name}: {', '.join(missing)}")
    return 1 if unclaimed or missing else 0


if __name__ == "__main__":
    sys.exit(read_all(*map(Path, sys.argv[2:])) if sys.argv[1:2] == ["--read"] else main())
