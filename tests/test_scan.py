"""The parts of the scanner: dates, entities, encodings, URLs; and hostile documents."""

from __future__ import annotations

import encodings
import pkgutil
import time
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import chain, repeat
from urllib.parse import urljoin

import pytest

from support import SITEMAP_XMLNS, urlset
from usp.exceptions import StripURLToHomepageException
from usp.objects.problem import KEPT_PER_CODE, Place, ProblemLog
from usp.origins import LOCAL_URL, requested_url
from usp.scan.dates import parse_date
from usp.scan.encodings import to_utf8
from usp.scan.entries import MAX_DEPTH, XMLScanner
from usp.scan.places import places_of
from usp.scan.tokens import MAX_ATTRIBUTES, MAX_SECTION_BYTES, attributes
from usp.scan.urls import URLForm, absolute_url, is_http_url, strip_url_to_homepage, unwrapped
from usp.scan.values import MAX_FIELD_BYTES, TextNotes, unescape
from usp.tree import sitemap_from_bytes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-05-08T10:00:00 UTC", "2024-05-08T10:00:00+00:00"),
        ("2024-05-08t10:00:00z", "2024-05-08T10:00:00+00:00"),
        ("2024-05-08 10:00:00 +0200", "2024-05-08T10:00:00+02:00"),
        ("2024-05-08T10:00:00+02", "2024-05-08T10:00:00+02:00"),
        ("2024-05-08T23:59:60Z", "2024-05-08T23:59:59+00:00"),
        ("2024-12-31T24:00:00Z", "2025-01-01T00:00:00+00:00"),
        ("2024-05-08 12:00:00 AM", "2024-05-08T00:00:00"),
        ("2024-05-08 12:00:00 PM", "2024-05-08T12:00:00"),
        ("2024/05/08", "2024-05-08T00:00:00"),
        ("2024-5-8", "2024-05-08T00:00:00"),
        ("20240508", "2024-05-08T00:00:00"),
        ("20240508T103000Z", "2024-05-08T10:30:00+00:00"),
        ("2024-W19-3", "2024-05-08T00:00:00"),
        ("Wed, 8 May 2024 10:00 GMT", "2024-05-08T10:00:00+00:00"),
        ("Wednesday, 08-May-24 10:00:00 GMT", "2024-05-08T10:00:00+00:00"),
        ("08 May 24 10:00:00 PDT", "2024-05-08T10:00:00-07:00"),
        ("08 May 98 10:00:00 PDT", "1998-05-08T10:00:00-07:00"),
        ("Wed, 08 May 2024 10:00:00 +0200 (CEST)", "2024-05-08T10:00:00+02:00"),
        ("Wed May  8 10:00:00 2024", "2024-05-08T10:00:00"),
        ("Wed May 08 2024 10:00:00 GMT+0200 (CEST)", "2024-05-08T10:00:00+02:00"),
        ("May 8, 2024", "2024-05-08T00:00:00"),
        ("8 September 2024", "2024-09-08T00:00:00"),
        ("Wed,08 May 2024 10:00:00 GMT", "2024-05-08T10:00:00+00:00"),
        ("Wed, 08 May 2024 10:00:00 PM", "2024-05-08T22:00:00"),
        ("Wed, 08 May 2024 10:00:00 BST", "2024-05-08T10:00:00"),
        ("2024-05-08T10Z", "2024-05-08T10:00:00+00:00"),
        ("2024.05.08", "2024-05-08T00:00:00"),
        ("20240508103000", "2024-05-08T10:30:00"),
        ("13/05/2024", None),
        ("0001-01-01", "0001-01-01T00:00:00"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59+00:00"),
        ("9999-12-31T24:00:00Z", None),
        ("2024-05-08T10:00:00+25:00", None),
        ("2024-05-08T10:00:00 XYZ", None),
        ("2023-02-29", None),
        ("05-08-2024", None),
        ("8/5/24", None),
        ("Wed, 31 Jun 2024 10:00:00 GMT", None),
        ("Wed, 08 Mai 2024 10:00:00 GMT", None),
        ("10:00", None),
        ("May", None),
        ("\u0662\u0660\u0662\u0664-\u0660\u0665-\u0660\u0668", None),
        ("", None),
        ("2" * 10_000, None),
    ],
)
def test_dates(text: str, expected: str | None) -> None:
    """A date is read in every format that has one meaning only."""
    found = parse_date(text)
    assert (found and found.isoformat()) == expected


def test_dates_agree_with_the_standard_library() -> None:
    """A datetime that Python writes as ISO 8601 is read back the same."""
    for day in range(0, 3_000_000, 9_973):
        moment = datetime.fromordinal(day % 3_652_058 + 1).replace(hour=day % 24, minute=day % 60, second=day % 59)
        assert parse_date(moment.isoformat()) == moment


@pytest.mark.parametrize(
    ("text", "expected", "noted"),
    [
        ("a &amp; b", "a & b", []),
        ("&lt;&gt;&quot;&apos;", "<>\"'", []),
        ("&#65;&#x42;&#X43;", "ABC", []),
        ("a & b", "a & b", ["X102"]),
        ("?a=1&copy=2&reg;", "?a=1&copy=2®", ["X102", "X103"]),
        ("&nosuch;&;", "&nosuch;&;", ["X103", "X102"]),
        ("&#0;&#xFFFFFF;&#xD800;&#99999999;", "\ufffd\ufffd\ufffd", ["X108"]),
        ("&amp;amp;", "&amp;", []),
    ],
)
def test_entities(text: str, expected: str, noted: list[str]) -> None:
    """A reference counts only with its semicolon; any other ampersand stays, and is noted."""
    log = ProblemLog("http://h/s.xml")
    log.locate = lambda offsets: {offset: Place(1, offset + 1) for offset in offsets}
    assert unescape(text, TextNotes(log, "", lambda index: index)) == expected
    assert [problem.code for problem in log.problems()] == noted


def test_problems_beyond_those_kept_are_counted() -> None:
    """Of many bad references, the first few of each code are kept with their places, and all are counted."""
    log = ProblemLog("http://h/s.xml")
    log.locate = lambda offsets: {offset: Place(1, offset + 1) for offset in offsets}
    text = "&&nosuch;&#1;" * 30
    assert unescape(text, TextNotes(log, "", lambda index: index)) == "&&nosuch;" * 30
    problems = log.problems()
    assert problems.counts == {"X102": 30, "X103": 30, "X108": 30}
    assert [(problem.code, problem.column) for problem in problems] == [
        (code, 13 * number + column)
        for number in range(KEPT_PER_CODE)
        for code, column in (("X102", 1), ("X103", 2), ("X108", 10))
    ]


@pytest.mark.parametrize(
    ("url", "is_one"),
    [
        ("http://h/", True),
        ("HTTPS://H", True),
        ("http://[::1]:80/", True),
        ("http://user:pass@h/", True),
        ("http://é.example/ü", True),
        ("http://", False),
        ("http:///x", False),
        ("http://.", False),
        ("http://.example.com/", False),
        ("http://..h/", False),
        ("http://u@.h/", False),
        ("http://.h:80/", False),
        ("http://.é/", False),
        ("http://-.h/", True),
        ("http://h./", True),
        ("http://h..h/", True),
        ("http://_h/", True),
        ("http://h/a b", True),
        ("http://-/", False),
        ("http://[::]/", True),
        ("http://h:65535/", True),
        ("http://h:65536/", False),
        ("http://h:x/", False),
        ("http://h :80/", False),
        ("http://?x", False),
        ("http://[bad/", False),
        ("ftp://h/", False),
        ("//h/", False),
        (" http://h/", False),
        ("", False),
        (None, False),
        (5, False),
    ],
)
def test_http_urls(url: str, is_one: bool) -> None:
    """An http URL has a scheme and a host; nothing raises."""
    assert is_http_url(url) is is_one


ABSOLUTE, RELATIVE, WITHOUT_SCHEME, PLACEHOLDER, NOT_HTTP = URLForm


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://x/y", ("http://x/y", ABSOLUTE)),
        ("/y", ("https://h/y", RELATIVE)),
        ("y", ("https://h/d/y", RELATIVE)),
        ("//x/y", ("https://x/y", RELATIVE)),
        ("?q", ("https://h/d/s.xml?q", RELATIVE)),
        ("http://x/\n y", ("http://x/ y", ABSOLUTE)),
        ("mailto:a@b", (None, NOT_HTTP)),
        ("htt\u0440://x/y", (None, NOT_HTTP)),
        ("/y?u=http://x/", ("https://h/y?u=http://x/", RELATIVE)),
        ("//[bad", (None, NOT_HTTP)),
        ("http://.x/y", (None, NOT_HTTP)),
        ("", (None, NOT_HTTP)),
    ],
)
def test_absolute_urls(url: str, expected: tuple[str | None, URLForm]) -> None:
    """A relative URL becomes absolute, and the result says that it was relative."""
    assert absolute_url(url, "https://h/d/s.xml") == expected


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        *((word, True) for word in ("None", "null", "NULL", "nil", "NaN", "undefined", "#", "#top", "[object Object]")),
        *((word, True) for word in ("'None'", "<nil>", " null ", "nu\nll", "\u200bnull", "(null)")),
        *(
            (word, False)
            for word in ("none/", "/null", "nullable", "None.html", "?#", "/#", "a#", "0", "-", "void", "")
        ),
    ],
)
def test_placeholders(text: str, is_one: bool) -> None:
    """A word for nothing, or a fragment alone, is no URL if it is the whole text."""
    assert (absolute_url(text, "https://h/d/s.xml") == (None, PLACEHOLDER)) is is_one


@pytest.mark.parametrize(
    ("text", "base", "expected"),
    [
        ("www.example.com/x", "https://h/", "https://www.example.com/x"),
        ("www.example.com/x", "http://h/", "http://www.example.com/x"),
        ("www.example.com/x", "", "https://www.example.com/x"),
        ("www.example.com/x", "http://[bad", "https://www.example.com/x"),
        ("www.example.com/x", f"{LOCAL_URL}sitemap.xml", "https://www.example.com/x"),
        ("WWW.Example.com", "https://h/", "https://WWW.Example.com"),
        ("www.example.com:8080/x?y#z", "https://h/", "https://www.example.com:8080/x?y#z"),
        ("www.example.com?x", "https://h/", "https://www.example.com?x"),
        ("www.b\u00fccher.example/\u00fc", "https://h/", "https://www.b\u00fccher.example/\u00fc"),
        ("<www.example.com/a b>", "https://h/", "https://www.example.com/a b"),
        ("example.com/x", "https://example.com/s.xml", "https://example.com/x"),
        ("Example.com", "https://www.example.com/s.xml", "https://Example.com"),
        ("www.example.com", "https://example.com/s.xml", "https://www.example.com"),
        ("example.com:81/x", "http://example.com:81/s.xml", "http://example.com:81/x"),
        ("127.0.0.1:81/x", "http://127.0.0.1:81/s.xml", "http://127.0.0.1:81/x"),
        ("example.org/x", "https://example.com/s.xml", None),
        ("example.com-review/x", "https://example.com/s.xml", None),
        ("/www.example.com/x", "https://h/", None),
        ("www.html", "https://h/", None),
        ("www/x.y", "https://h/", None),
        ("www.a b.c/x", "https://h/", None),
        ("www.example.com:99999/x", "https://h/", None),
        ("h/x", "https://h/", None),
        ("localhost:80/x", "http://localhost:80/", None),
    ],
)
def test_hosts_without_a_scheme(text: str, base: str, expected: str | None) -> None:
    """A host that starts with "www.", or that of the document, gets the scheme of the document."""
    found = absolute_url(text, base)
    assert (found == (expected, WITHOUT_SCHEME)) if expected else (found[1] is not WITHOUT_SCHEME)


@pytest.mark.parametrize("base", ["http://h", "https://h/d/s.xml?q#f", "http://u@h:80/a;b/c;d", "http://[::1]/x/../y"])
def test_names_are_joined_as_any_relative_url(base: str) -> None:
    """A relative URL that is a mere name, of any characters, becomes what joining URLs makes of it."""
    characters = [*map(chr, range(0x21, 0x7F)), *"é中²ªⅣßİıﬁ\u0301٣"]
    for name in (f"{start}{first}{second}" for start in ("", "x") for first in characters for second in characters):
        found, form = absolute_url(name, base)
        if form is RELATIVE:
            assert found == urljoin(base, unwrapped(name))


@pytest.mark.parametrize("start", ["http://", "//", "ht\ttp://u@", "http:/\n/"])
def test_hosts_that_are_too_long(start: str) -> None:
    """A host of combining characters is refused before it is normalized, which would take quadratic time."""
    text = start + "\u0315\u0300" * 30_000
    began = time.thread_time()
    assert absolute_url(text, "https://h/d/s.xml")[0] is None
    assert requested_url(text) == text
    assert time.thread_time() - began < 1


def test_lengths_of_international_hosts() -> None:
    """A host outside ASCII may have 253 characters; what follows the host may be longer."""
    assert is_http_url("http://" + "é!" * 126 + "/")
    assert not is_http_url("http://" + "é!" * 127 + "/")
    assert is_http_url("http://é!/" + "é//" * 1_000)


def test_relative_urls_of_a_long_base() -> None:
    """A very long base resolves nothing: each of many short URLs would become as long."""
    assert absolute_url("a", "http://h/" + "b/" * 500) == ("http://h/" + "b/" * 500 + "a", RELATIVE)
    assert absolute_url("a", "http://h/" + "b/" * 600) == (None, NOT_HTTP)
    document = f"<urlset xml:base='/{'b/' * 600}'><url><loc>a</loc></url></urlset>".encode()
    assert [page.url for page in sitemap_from_bytes(document, "http://h/s.xml").pages] == ["http://h/a"]


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_runs_of_less_than(size: int) -> None:
    """Each "<" that starts no tag is a problem with its place; all are counted, and the text stays as it is."""
    data = f"<urlset {SITEMAP_XMLNS}><url><loc>http://h/{'<' * 50}1< 2<a></loc></url></urlset>".encode()
    log = ProblemLog("http://h/s.xml")
    log.locate = lambda offsets: places_of(offsets, [data])
    entries = list(XMLScanner(pieces_of(data, size), log))
    assert [entry.fields["loc"] for entry in entries] == [f"http://h/{'<' * 50}1< 2"]
    found = log.problems()
    assert found.counts["X104"] == 51
    start = data.index(b"<<<") + 1
    assert [p.column for p in found if p.code == "X104"] == [*range(start, start + 20)]
    assert {len(p.text) for p in found if p.code == "X104"} == {40}


def test_homepages() -> None:
    """A URL is stripped to its homepage; anything that is not a URL raises."""
    assert strip_url_to_homepage("https://u:p@h:8080/a/b?c#d") == "https://u:p@h:8080/"
    assert strip_url_to_homepage("HTTP://H.example") == "http://H.example/"
    for bad in ("", "h.example", "ftp://h/", "//h/", "http://[bad/"):
        with pytest.raises(StripURLToHomepageException, match=r"https://example\.org/"):
            strip_url_to_homepage(bad)


@pytest.mark.parametrize("name", sorted({module.name for module in pkgutil.iter_modules(encodings.__path__)}))
def test_any_declared_encoding(name: str) -> None:
    """The entries of an ASCII document are read, whichever of Python's encodings it declares."""
    document = f'<?xml version="1.0" encoding="{name}"?>' + urlset("http://h/a", "http://h/b")
    for data in (document.encode(), document.encode().replace(b"h/b", b"h/\xe9\xff\x81")):
        urls = [page.url for page in sitemap_from_bytes(data, "http://h/s.xml").pages]
        assert urls[0] == "http://h/a"
        assert len(urls) == 2


@pytest.mark.parametrize("urls", [["http://h/é", "http://h/éé"], ["http://h/ééé"] * 20_000])
def test_utf8_that_ends_within_a_character(urls: list[str]) -> None:
    """A document that declares another encoding is UTF-8 if it has whole characters of it, wherever it ends."""
    data = ("<?xml version='1.0' encoding='windows-1251'?>" + urlset(*urls)).encode()
    stop = data.rindex("é</loc>".encode())
    for end in range(stop - 2, stop + 3):
        read = [page.url for page in sitemap_from_bytes(data[:end], "http://h/s.xml").pages]
        assert read == [*dict.fromkeys(urls[: data.count(b"</loc>", 0, end)])]


def test_utf8_in_a_huge_field_that_is_cut() -> None:
    """UTF-8 after a long head that declares another encoding stays UTF-8, wherever a huge field of it is cut."""
    head = "<?xml version='1.0' encoding='windows-1251'?><urlset>" + " " * 70_000
    for size in range(3):
        text = f"{head}<a>{'x' * size}{'é' * 200_000}</a><url><loc>http://h/é</loc></url></urlset>"
        assert [page.url for page in sitemap_from_bytes(text.encode(), "http://h/s.xml").pages] == ["http://h/é"]


def test_memory_of_a_huge_field_in_a_declared_encoding() -> None:
    """A field that never ends is read in parts, even while it is unknown whether the declared encoding is right."""
    head = b"<?xml version='1.0' encoding='windows-1251'?><urlset>" + b" " * 70_000 + b"<a>"
    part = "é".encode() * 32_768
    tracemalloc.start()
    try:
        size = sum(map(len, to_utf8(chain([head], repeat(part, 100)), None, ProblemLog("http://h/s.xml"))))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size == len(head) + 100 * len(part)
    assert peak < 16 * len(part)


def test_attributes() -> None:
    """Attributes are read with any quotes, by lower-case name, up to a limit."""
    assert attributes(b' A="1" b=\'2&amp;3\' c = d a="4" empty=""') == {"a": "1", "b": "2&3", "c": "d", "empty": ""}
    assert len(attributes(b"".join(b'a%d="" ' % i for i in range(10_000)))) == MAX_ATTRIBUTES


def pieces_of(data: bytes, size: int = 65_536) -> Iterator[bytes]:
    return (data[i : i + size] for i in range(0, len(data), size))


Shape = Callable[[int], bytes]
HOSTILE: dict[str, Shape] = {
    "one text node": lambda n: b"<urlset><url><loc>" + b"x" * n + b"</loc></url>",
    "one comment": lambda n: b"<urlset><!--" + b"x" * n + b"--><url><loc>http://h/a</loc></url>",
    "one endless comment": lambda n: b"<urlset><!--" + b"x" * n,
    "one CDATA section": lambda n: b"<urlset><url><loc><![CDATA[" + b"x" * n + b"]]></loc></url>",
    "one tag": lambda n: b"<urlset><url " + b"a='b' " * (n // 6) + b"><loc>http://h/a</loc></url>",
    "one name": lambda n: b"<urlset " + b"x" * n + b"><url><loc>http://h/a</loc></url>",
    "one tag of names": lambda n: b"<urlset " + b"x " * (n // 2) + b" xmlns='a'><url " + b"y= " * 999 + b">",
    "one tag that never ends": lambda n: b"<urlset " + b"x" * n,
    "one endless quote": lambda n: b'<urlset a="' + b">" * n,
    "deep": lambda n: b"<urlset>" + b"<a>" * (n // 3),
    "deep and closed": lambda n: b"<urlset>" + b"<a>" * (n // 7) + b"</a>" * (n // 7),
    "end tags": lambda n: b"<urlset><a>" + b"</b>" * (n // 4),
    "less than": lambda n: b"<urlset>" + b"<" * n,
    "names": lambda n: b"<urlset>" + b"<" + b"a" * n + b"<b>",
    "names in turn": lambda n: (b"<" + b"a" * 1_000 + b"<b>") * (n // 1_004),
    "hosts": lambda n: (
        b"<urlset>" + b"".join(b"<loc>http://%b!%d</loc>" % (b"a" * 2_000, i) for i in range(n // 2_020))
    ),
    "ampersands": lambda n: b"<urlset><url><loc>" + b"&" * n,
    "distinct tags": lambda n: b"<urlset>" + b"".join(b"<t%d>" % i for i in range(n // 8)),
    "namespaces": lambda n: b"<urlset>" + b"".join(b"<a xmlns:n%d='u'>" % i for i in range(n // 18)),
    "namespaces in one place": lambda n: (
        b"<urlset>"
        + b"".join(b"<a %s>" % b" ".join(b"xmlns:n%d_%d='u'" % (i, k) for k in range(200)) for i in range(9))
        + b"<b xmlns:c='d'/>" * (n // 16)
    ),
    "entries without end": lambda n: b"<urlset>" + b"<url>" * (n // 5),
    "locs": lambda n: b"<urlset>" + b"<loc>x" * (n // 6),
    "instructions": lambda n: b"<urlset>" + b"<?" * (n // 2),
    "declarations": lambda n: b"<urlset>" + b"<!" * (n // 2),
    "open comments": lambda n: b"<urlset>" + b"<!--" * (n // 4),
    "CDATA in turn": lambda n: b"<urlset>" + b"<![CDATA[</a>" * (n // 13) + b"]]>",
    "CDATA in fields": lambda n: b"<urlset>" + b"<url><loc><![CDATA[</loc>" * (n // 25) + b"]]>",
    "open CDATA": lambda n: b"<urlset>" + b"<![CDATA[" * (n // 9),
}


def scan_seconds(data: bytes) -> float:
    start = time.process_time()
    for _ in XMLScanner(pieces_of(data), ProblemLog("http://h/s.xml")):
        pass
    return time.process_time() - start


@pytest.mark.slow
@pytest.mark.parametrize("shape", HOSTILE)
def test_hostile_documents_cost_linear_time(shape: str) -> None:
    """Reading takes linear time: eight times as much takes about eight times as long."""
    small, large = HOSTILE[shape](32_000), HOSTILE[shape](256_000)
    seconds = min(scan_seconds(small) for _ in range(3))
    assert min(scan_seconds(large) for _ in range(2)) < 20 * max(seconds, 0.005)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [shape for shape in HOSTILE if shape.startswith("one ")])
def test_hostile_documents_cost_bounded_memory(shape: str) -> None:
    """A document with something huge in it is read in pieces: the scanner holds only a few in memory."""
    data = HOSTILE[shape](6 * MAX_SECTION_BYTES)
    scanner = XMLScanner(pieces_of(data), ProblemLog("http://h/s.xml"))
    tracemalloc.start()
    try:
        entries = sum(1 for _ in scanner)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert entries <= 1
    assert peak < 2.5 * MAX_SECTION_BYTES


LINES: dict[str, Shape] = {
    "one host": lambda n: b"http://" + b"a" * n + b"!",
    "inner space": lambda n: b"a" + b" " * n + b"b",
    "inner tabs": lambda n: b"http://h/" + b"\t" * n + b"b",
    "sitemap and space": lambda n: b"Sitemap: a" + b" " * n + b"b",
    "sitemap, space and text": lambda n: b"sitemap" + b" " * n + b"x",
    "sitemap, space and colon": lambda n: b"sitemap" + b" " * (n // 2) + b":" + b" " * (n // 2) + b"x",
    "sitemap over and over": lambda n: b"http://" + b"sitemap" * (n // 7) + b" x",
    "a word and sitemap over and over": lambda n: b"a sitemap " * (n // 10) + b"x",
    "hashes": lambda n: b" #" * (n // 2),
    "quotes": lambda n: b"Sitemap: " + b"' " * (n // 2) + b"x",
    "comments": lambda n: b"<!-- -->" * (n // 8) + b"x",
    "open comments": lambda n: b"<!--" * (n // 4),
    "comments and a document": lambda n: b"<!-- -->" * (n // 8) + b"<?xml ?><urlset/>",
    "declarations": lambda n: b"<?xml >" * (n // 7),
    "space in a declaration": lambda n: b"<?xml version='1.0' encoding=" + b" " * n + b"?><urlset/>",
    "space before equals": lambda n: b"<?xml version='1.0' encoding" + b" " * n + b"?><urlset/>",
    "declarations without end": lambda n: b"<?xml encoding " * (n // 15),
    "breaks": lambda n: b"\r" * n,
    "entities": lambda n: b"<urlset><url><loc>" + b"&#x41;" * (n // 6) + b"</loc></url></urlset>",
}


@pytest.mark.slow
@pytest.mark.parametrize("url", ["http://h/s.txt", "http://h/robots.txt"])
@pytest.mark.parametrize("shape", LINES)
def test_hostile_heads_and_lines_cost_linear_time(shape: str, url: str) -> None:
    """Choosing a parser, and reading lines, take linear time too."""

    def seconds(size: int) -> float:
        start = time.process_time()
        sitemap_from_bytes(LINES[shape](size), url)
        return time.process_time() - start

    small = min(seconds(7_500) for _ in range(3))
    assert min(seconds(60_000) for _ in range(2)) < 20 * max(small, 0.002)


def test_what_lies_too_deep_is_passed_over() -> None:
    """Elements below the depth limit are ignored; the entries after them are read."""
    deep = "<a>" * (MAX_DEPTH * 3) + "<url><loc>http://h/no</loc></url>" + "</a>" * (MAX_DEPTH * 3)
    sitemap = sitemap_from_bytes(f"<urlset {SITEMAP_XMLNS}>{deep}<url><loc>http://h/yes</loc></url></urlset>".encode())
    assert [page.url for page in sitemap.pages] == ["http://h/yes"]
    assert {problem.code for problem in sitemap.problems} == {"P429", "X114"}


def test_what_is_too_long_is_left_out() -> None:
    """A field over the size limit counts as empty."""
    long = f"http://h/{'x' * MAX_FIELD_BYTES}"
    sitemap = sitemap_from_bytes(urlset("http://h/a", long, "http://h/b").encode())
    assert [page.url for page in sitemap.pages] == ["http://h/a", "http://h/b"]
    assert [problem.code for problem in sitemap.problems] == ["P401", "X115"]


def test_problems_say_where() -> None:
    """A problem has its line and column, whatever the size of the pieces."""
    document = f"<urlset {SITEMAP_XMLNS}>\n" + "\n" * 70_000 + "<url><loc>http://h/ü?a&b</loc></url>\n</urlset>"
    for size in (100, 65_536, 1_000_000):
        log = ProblemLog("http://h/s.xml")
        log.locate = lambda offsets: places_of(offsets, [document.encode()])
        assert len(list(XMLScanner(pieces_of(document.encode(), size), log))) == 1
        assert [(p.code, p.line, p.column) for p in log.problems()] == [("X102", 70_002, 23)]
