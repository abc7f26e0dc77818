"""The rules on entries and on single sitemaps: what is wrong is found in its place, and nothing else is."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checks import HOME, NOW, check_site, found_at, found_in, place_of, report_of, url_of, urlset_of
from support import FakeResponse, Fixture, fixtures, index
from usp.check import check_bytes, check_path
from usp.check.entries import ENTRY_RULES
from usp.check.inspection import Ledger
from usp.check.sitemaps import SITEMAP_RULES, CheckedDocument
from usp.objects.codes import CODES
from usp.objects.problem import KEPT_PER_CODE
from usp.objects.sitemap import PagesXMLSitemap
from usp.objects.transport import Transport
from usp.scan.columns import microseconds
from usp.scan.survey import PURE_SURVEYORS, SURVEYORS, Facts, Surveyors
from usp.tree import sitemap_from_bytes

PUBLICATION = "<news:publication><news:name>The Example</news:name><news:language>en</news:language></news:publication>"
NEWS_DATE = "<news:publication_date>2026-11-15T08:00:00Z</news:publication_date>"
TITLE = "<news:title>A bridge</news:title>"
VIDEO = {
    "thumbnail_loc": f"<video:thumbnail_loc>{HOME}t.jpg</video:thumbnail_loc>",
    "title": "<video:title>A title</video:title>",
    "description": "<video:description>Words</video:description>",
    "content_loc": f"<video:content_loc>{HOME}v.mp4</video:content_loc>",
}


def news(*fields: str) -> str:
    return f"<news:news>{''.join(fields)}</news:news>"


def video(**fields: str) -> str:
    return f"<video:video>{''.join((VIDEO | fields).values())}</video:video>"


def link(language: str, path: str) -> str:
    return f'<xhtml:link rel="alternate" hreflang="{language}" href="{HOME}{path}"/>'


def linked(path: str, *links: str) -> str:
    return url_of(path, *links)


DEFAULT = link("x-default", "a")

#: Code -> an entry with a mark where it is wrong, and the same put right.
ENTRIES: dict[str, list[tuple[str, str]]] = {
    "U503": [(f"<url><loc>¦{HOME.ljust(2_048, 'a')}</loc></url>", f"<url><loc>{HOME.ljust(2_047, 'a')}</loc></url>")],
    "U504": [
        (f"<url><loc>¦{HOME}a b</loc></url>", f"<url><loc>{HOME}a%20b</loc></url>"),
        (f"<url><loc> ¦{HOME}100%</loc></url>", f"<url><loc> {HOME}100%25</loc></url>"),
        (f"<url><loc>¦{HOME}?q={{x}}</loc></url>", f"<url><loc>{HOME}?q=[x]|</loc></url>".replace("|", "%7C")),
    ],
    "U505": [(f"<url><loc>¦{HOME}é</loc></url>", f"<url><loc>{HOME}%C3%A9</loc></url>")],
    "U506": [
        ("<url><loc>¦https://example.com/a</loc></url>", "<url><loc>HTTPS://WWW.Example.org:443/a</loc></url>"),
        ("<url><loc>¦https://news.example.org/</loc></url>", f"<url><loc>{HOME}</loc></url>"),
        ("<url><loc>¦https://www.example.org:8443/</loc></url>", "<url><loc>https://www.example.org</loc></url>"),
        ("<url><loc>¦https://www.example.org.example.com/</loc></url>", f"<url><loc>{HOME}www</loc></url>"),
    ],
    "U508": [("<url><loc>¦http://www.example.org/a</loc></url>", url_of("a"))],
    "U509": [
        ("<url><loc>¦https://example.org/a</loc></url>", url_of("a")),
        ("<url><loc>¦http://example.org/a</loc></url>", url_of("a")),
    ],
    "U510": [(f"<url><loc>¦{HOME}a#b</loc></url>", f"<url><loc>{HOME}a%23b</loc></url>")],
    "L303": [
        (
            url_of("a", "<lastmod>¦2026-11-15T12:30:00Z</lastmod>"),
            url_of("a", "<lastmod>2026-11-15T12:00:00Z</lastmod>"),
        ),
        (url_of("a", "<lastmod>¦2026-11-17</lastmod>"), url_of("a", "<lastmod>2026-11-16</lastmod>")),
        (url_of("a", "<lastmod>¦2027</lastmod>"), url_of("a", "<lastmod>2026</lastmod>")),
    ],
    "L305": [
        (url_of("a", "<lastmod>¦Wed, 08 May 2024 10:00:00 GMT</lastmod>"), url_of("a", "<lastmod>2024-05</lastmod>")),
        (url_of("a", "<lastmod> ¦2024-05-08 10:00</lastmod>"), url_of("a", "<lastmod>2024-05-08T10:00Z</lastmod>")),
        (url_of("a", "<lastmod>¦20240508</lastmod>"), url_of("a", "<lastmod>2024-05-08</lastmod>")),
    ],
    "L306": [
        (
            url_of("a", "<lastmod>¦2024-05-08T10:00:00</lastmod>"),
            url_of("a", "<lastmod>2024-05-08T10:00:00+02:00</lastmod>"),
        )
    ],
    "P418": [(f"{url_of('a')}\n<url><loc>¦{HOME}a</loc></url>", f"{url_of('a')}\n{url_of('A')}")],
    "P423": [
        (url_of("a", "<changefreq>¦Daily</changefreq>"), url_of("a", "<changefreq>daily</changefreq>")),
    ],
    "N601": [
        (
            url_of(
                "a", news(PUBLICATION, "<news:publication_date>¦2026-11-13T11:59:00Z</news:publication_date>", TITLE)
            ),
            url_of(
                "a", news(PUBLICATION, "<news:publication_date>2026-11-13T12:01:00Z</news:publication_date>", TITLE)
            ),
        ),
        (
            url_of("a", news(PUBLICATION, "<news:publication_date>¦2026-11-12</news:publication_date>", TITLE)),
            url_of("a", news(PUBLICATION, "<news:publication_date>2026-11-13</news:publication_date>", TITLE)),
        ),
    ],
    "N603": [
        (url_of("a", "¦", news(NEWS_DATE, TITLE)), url_of("a", news(PUBLICATION, NEWS_DATE, TITLE))),
        (
            url_of("a", news("¦", PUBLICATION.replace("The Example", " "), NEWS_DATE, TITLE)),
            url_of("a", news(PUBLICATION, NEWS_DATE, TITLE)),
        ),
    ],
    "N604": [
        (
            url_of("a", news(PUBLICATION.replace(">en<", ">¦en-US<"), NEWS_DATE, TITLE)),
            url_of("a", news(PUBLICATION.replace(">en<", ">zh-tw<"), NEWS_DATE, TITLE)),
        )
    ],
    "I611": [
        (
            "¦"
            + url_of("a", *[f"<image:image><image:loc>{HOME}{n}.jpg</image:loc></image:image>" for n in range(1_001)]),
            url_of("a", *[f"<image:image><image:loc>{HOME}{n}.jpg</image:loc></image:image>" for n in range(1_000)]),
        )
    ],
    "V621": [
        (url_of("a", "¦", video(title="")), url_of("a", video())),
        (url_of("a", video(), "¦", video(thumbnail_loc="<video:thumbnail_loc/>")), url_of("a", video(), video())),
        (
            url_of("a", "¦", video(content_loc="")),
            url_of("a", video(content_loc=f"<video:player_loc>{HOME}p</video:player_loc>")),
        ),
    ],
    "V622": [
        (
            url_of("a", video(duration="<video:duration>¦28801</video:duration>")),
            url_of("a", video(duration="<video:duration>28800</video:duration>")),
        ),
        (
            url_of("a", video(rating="<video:rating>¦5.1</video:rating>")),
            url_of("a", video(rating="<video:rating>5.0</video:rating>")),
        ),
    ],
    "H631": [
        (linked("a", link("de", "a"), "¦", link("en-UK", "b"), DEFAULT), linked("a", link("de", "a"), DEFAULT)),
        (linked("a", "¦", link("en_US", "a"), DEFAULT), linked("a", link("en-us", "a"), DEFAULT)),
    ],
    "H632": [("¦" + linked("a", link("de", "b"), link("x-default", "c")), linked("a", link("de", "b"), DEFAULT))],
    "H634": [("¦" + linked("a", link("de", "a")), linked("a", link("de", "a"), link("X-Default", "c")))],
    "H635": [
        (
            linked("a", link("de", "a"), "¦", link("DE", "b"), DEFAULT),
            linked("a", link("de", "a"), link("de", "a"), link("de-AT", "b"), DEFAULT),
        )
    ],
}
CASES = [
    pytest.param(code, bad, good, id=f"{code}-{number}")
    for code, cases in ENTRIES.items()
    for number, (bad, good) in enumerate(cases)
]
LATE = "2026-11-15T11:{:02}:00Z"


def test_every_rule_on_entries_is_tested() -> None:
    """Each rule has a bad and a good entry here; those that take more than a sitemap are tested with sites."""
    rules = {code for table in ENTRY_RULES.values() for code in table}
    assert rules - ENTRIES.keys() == {"P419", "R709", "U507"}
    assert all(code in CODES for code in (*rules, *SITEMAP_RULES))


@pytest.mark.parametrize(("code", "bad", "good"), CASES)
def test_entries(code: str, bad: str, good: str) -> None:
    """A bad entry has its code only, in its place; put right, it has none."""
    marked = urlset_of(url_of("first"), bad)
    assert found_at(marked) == [("sitemap.xml", code, *place_of(marked))]
    assert found_at(urlset_of(url_of("first"), good)) == []


@pytest.mark.parametrize(("code", "bad", "good"), CASES)
@pytest.mark.parametrize("surveyors", [PURE_SURVEYORS, SURVEYORS], ids=["pure", "chosen"])
def test_many_entries(code: str, bad: str, good: str, surveyors: Surveyors) -> None:
    """Where there are many, the first few are kept and all are counted, whoever reads them."""
    count = 2 * KEPT_PER_CODE + 1
    first = url_of("first", "<lastmod>2020-01-01</lastmod>")
    document = urlset_of(first, *(numbered(bad.replace("¦", ""), number) for number in range(count)))
    tree = sitemap_from_bytes(document.encode(), f"{HOME}sitemap.xml")
    (checked,) = report_of(tree, Ledger(surveyors=surveyors)).sitemaps
    assert checked.problems.counts == {code: count}
    assert len(checked.problems) == KEPT_PER_CODE
    assert checked.pages == len(tree.pages)


def numbered(entry: str, number: int) -> str:
    """The entry with URLs of its own."""
    return entry.replace("</loc>", f"?{number}</loc>").replace('"/>', f'?{number}"/>')


def dated(count: int, date: Callable[[int], str]) -> str:
    return urlset_of(*(url_of(str(n), f"<lastmod>{date(n)}</lastmod>") for n in range(count)))


@pytest.mark.parametrize(
    ("code", "bad", "good"),
    [
        (
            "L301",
            dated(10, lambda n: "2024-05-08"),
            dated(10, lambda n: "2024-05-09" if n == 9 else "2024-05-08"),
        ),
        ("L301", dated(10, lambda n: "2024-05-08T10:00:00+02:00"), dated(9, lambda n: "2024-05-08T10:00:00+02:00")),
        (
            "P420",
            urlset_of(*(url_of(str(n), "<priority>0.5</priority>") for n in range(10))),
            urlset_of(*(url_of(str(n), f"<priority>0.{n}</priority>") for n in range(10))),
        ),
        ("P421", urlset_of(), urlset_of(url_of("a"))),
        (
            "N602",
            urlset_of(*(url_of(str(n), news(PUBLICATION, NEWS_DATE, TITLE)) for n in range(1_001))),
            urlset_of(*(url_of(str(n), news(PUBLICATION, NEWS_DATE, TITLE)) for n in range(1_000))),
        ),
        (
            "P415",
            urlset_of(*(url_of(str(n)) for n in range(50_001))),
            urlset_of(*(url_of(str(n)) for n in range(50_000))),
        ),
        (
            "P416",
            urlset_of(url_of("a"), " " * 50 * 1024 * 1024),
            urlset_of(url_of("a"), " " * (50 * 1024 * 1024 - 1_000)),
        ),
    ],
    ids=["L301-day", "L301-time", "P420", "P421", "N602", "P415", "P416"],
)
def test_sitemaps(code: str, bad: str, good: str) -> None:
    """A sitemap that is wrong as a whole has its code once, without a place; put right, it has none."""
    assert found_at(bad) == [("sitemap.xml", code, None, None)]
    assert found_at(good) == []


def test_large_when_inflated() -> None:
    """What counts of a gzip file is what it inflates to."""
    large = gzip.compress(urlset_of(url_of("a"), " " * 50 * 1024 * 1024).encode())
    assert found_in(check_site({"sitemap.xml.gz": large})) == [("sitemap.xml.gz", "P416", None, None)]


@pytest.mark.parametrize(
    ("dates", "made", "expected"),
    [
        ([LATE.format(n) for n in range(10)], {"fetched_at": NOW}, ["L304"]),
        (["2026-11-15"] * 10, {"fetched_at": NOW}, ["L304"]),
        (["2026-11-15T11:59:00Z"] * 10, {"fetched_at": NOW}, ["L304"]),
        (["2026-11-15T12:02:00Z"] * 10, {"fetched_at": NOW}, ["L304"]),  # clocks differ
        (["2026-11-14"] * 10, {"fetched_at": NOW}, ["L301"]),
        (["2026-11-10"] * 10, {"fetched_at": NOW, "last_modified": NOW - timedelta(days=5)}, ["L304"]),
        ([LATE.format(n) for n in range(10)], {"fetched_at": NOW + timedelta(minutes=61)}, []),
        ([LATE.format(n) for n in range(9)] + ["2026-11-15T09:00:00Z"], {"fetched_at": NOW}, []),
        ([LATE.format(n) for n in range(9)], {"fetched_at": NOW}, []),
        (["2026-11-15"] * 10, {}, ["L301"]),
        (
            ["9999-12-31T23:59:59+00:00"] * 10,
            {"last_modified": datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)},
            ["L304"],
        ),
        (["0001-01-01T00:00:00+00:00"] * 10, {"last_modified": datetime(1, 1, 1, tzinfo=UTC)}, ["L304"]),
    ],
)
def test_build_dates(dates: list[str], made: dict[str, Any], expected: list[str]) -> None:
    """Dates that are all just before the sitemap was made, or the day of it, are those of the making."""
    facts = Facts()
    for date in dates:
        moment = datetime.fromisoformat(date)
        facts.count(microseconds(moment if moment.tzinfo else moment.replace(tzinfo=UTC)), None, False)
    transport = replace(Transport(HOME, HOME), **made)
    document = CheckedDocument(PagesXMLSitemap(HOME, [], transport=transport), facts)
    assert [code for code in ("L301", "L304") if SITEMAP_RULES[code](document) is not None] == expected


def test_build_dates_of_files(tmp_path: Path) -> None:
    """A file was made when it was last written."""
    file = tmp_path / "sitemap.xml"
    file.write_text(dated(10, lambda n: LATE.format(n)), "utf-8")
    os.utime(file, (NOW.timestamp(), NOW.timestamp()))
    assert found_in(check_path(file, now=NOW)) == [(str(file), "L304", None, None)]


@pytest.mark.parametrize(
    ("name", "stated", "is_right"),
    [
        *(
            ("sitemap.xml", stated, True)
            for stated in ("text/xml; charset=UTF-8", "APPLICATION/XML", "application/x+xml")
        ),
        *(("sitemap.xml", stated, False) for stated in ("text/html", "text/plain", "", "application/gzip", "xml")),
        *(
            ("sitemap.xml.gz", stated, True)
            for stated in ("application/x-gzip", "application/octet-stream", "text/xml")
        ),
        *(("sitemap.xml.gz", stated, False) for stated in ("text/html", "text/plain", "application/zip")),
        *(("sitemap.txt", stated, stated == "text/plain") for stated in ("text/plain", "text/html", "application/xml")),
        *(
            ("robots.txt", stated, stated.startswith("text/plain"))
            for stated in ("text/plain;charset=utf-8", "text/html")
        ),
    ],
)
def test_content_types(name: str, stated: str, is_right: bool) -> None:
    """The content type is that of what the document is."""
    bodies: dict[str, str | bytes] = {
        "sitemap.xml": urlset_of(url_of("a")),
        "sitemap.xml.gz": gzip.compress(urlset_of(url_of("a")).encode()),
        "sitemap.txt": f"{HOME}a\n",
        "robots.txt": "User-agent: *\n",
    }
    body = bodies[name]
    data = body.encode() if isinstance(body, str) else body
    report = check_site({name: FakeResponse(data, HOME + name, {"Content-Type": stated} if stated else {})})
    assert found_in(report) == ([] if is_right else [(name, "T806", None, None)])


@pytest.mark.parametrize(("seconds", "codes"), [(10.0, []), (10.1, ["T808"]), (None, [])])
def test_slow_answers(seconds: float | None, codes: list[str]) -> None:
    """An answer may take ten seconds."""
    sitemap = PagesXMLSitemap(HOME, [], transport=Transport(HOME, HOME, 200, "text/xml", seconds=seconds))
    document = CheckedDocument(sitemap, Facts(entries=1))
    assert [code for code, rule in SITEMAP_RULES.items() if rule(document) is not None] == codes


def test_entries_of_indexes() -> None:
    """Of what an index lists, URLs and dates are checked, and that it is listed once; not priorities and the like."""
    bad = index(f"{HOME}a b.xml", f"{HOME}c.xml").replace(
        "</loc></sitemap></s", "</loc><lastmod>2030</lastmod></sitemap></s"
    )
    bad = bad.replace("</sitemapindex>", f"\n<sitemap><loc>{HOME}c.xml</loc></sitemap></sitemapindex>")
    report = check_bytes(bad.encode(), url=f"{HOME}index.xml", now=NOW)
    assert [(problem.code, problem.line) for problem in report.problems()] == [("U504", 1), ("L303", 1), ("P418", 2)]


def test_entries_of_feeds() -> None:
    """Of a feed, URLs are checked; it may link to comments, and an empty one is in order."""
    item = f"<item><title>T</title><link>{HOME}a#comment</link></item>\n"
    feed = '<rss version="2.0"><channel>\n{}</channel></rss>'
    bad = "<item><title>T</title><link>https://example.com/</link></item>\n"
    assert found_in(check_site({"feed.rss": feed.format(item + bad)})) == [("feed.rss", "U506", 3, 23)]
    assert found_in(check_site({"feed.rss": feed.format(item)})) == []
    assert found_in(check_site({"feed.rss": feed.format("")})) == []


def test_lines_of_texts() -> None:
    """The lines of a text are entries, and have places."""
    text = f"{HOME}a\n\n  {HOME}b c\n{HOME}a\n"
    assert found_in(check_site({"sitemap.txt": text})) == [
        ("sitemap.txt", "U504", 3, 3),
        ("sitemap.txt", "P418", 4, 1),
    ]


def test_nothing_is_said_of_entries_that_were_left_out() -> None:
    """An entry without a URL has the problem that it has none, and no other; nor has its sitemap."""
    assert [code for _, code, _, _ in found_at(urlset_of("<url><lastmod>2030-01-01</lastmod></url>"))] == ["P401"]


def test_now_needs_a_zone() -> None:
    """A time without a zone could be anywhere."""
    with pytest.raises(ValueError, match="time zone"):
        check_bytes(b"", now=datetime(2026, 11, 15))


@pytest.mark.parametrize("fixture", fixtures(), ids=lambda fixture: fixture.name)
def test_fixtures(fixture: Fixture) -> None:
    """Whatever a site serves is checked; it keeps the problems that it has; and whoever reads it finds the same."""
    tree = sitemap_from_bytes(fixture.data, f"{HOME}{fixture.path.name}")
    reports = [report_of(tree, Ledger(surveyors=each)) for each in (PURE_SURVEYORS, SURVEYORS)]
    assert reports[0] == reports[1]
    assert tree.problem_counts <= reports[0].counts()
    assert reports[0].pages == len(tree.pages)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_documents(data: st.DataObject) -> None:
    """Nothing raises, and whoever reads a document finds the same, wherever it is cut and whatever is put in."""
    bad = [entry.replace("¦", "") for cases in ENTRIES.values() for entry, _ in cases if len(entry) < 2_000]
    document = urlset_of(*data.draw(st.lists(st.sampled_from(bad), max_size=6))).encode()
    at = data.draw(st.integers(0, len(document)))
    end = data.draw(st.integers(at, min(at + 20, len(document))))
    document = (
        document[:at]
        + data.draw(st.sampled_from([b"", b"<", b"&", b"\xff", b"</url>", b"<url>", b'"']))
        + document[end:]
    )
    tree = sitemap_from_bytes(document, f"{HOME}sitemap.xml")
    reports = [report_of(tree, Ledger(surveyors=each)) for each in (PURE_SURVEYORS, SURVEYORS)]
    assert reports[0] == reports[1]
    assert tree.problem_counts <= reports[0].counts()
