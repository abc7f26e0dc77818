"""Checks of what only the general scanner reads: skipping its entries changes no result."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surveys import BAD, BAD_EXTENSIONS, KINDS, OPTIONS
from test_lines import RULES_OF_ENTRIES
from usp.check.sitemaps import EntryChecker, SiteTables
from usp.check.subjects import Entry, SitemapContext
from usp.compiled import IS_COMPILED
from usp.fetch_parse.parsers import XMLSitemapParser
from usp.objects.problem import KEPT_PER_CODE, ProblemLog
from usp.scan.survey import SurveyOff, Surveyors

pytestmark = pytest.mark.compare

URL = "http://h/a/s.xml"
ROOTS = ("<urlset>", "<sitemapindex>", "<rss><channel>", "<feed>", "<urlset xml:base='http://h/a/b/'>")
URLS = (
    *("http://h/a/1", "http://h/a/2", "/a/3", "4", "../a/5", "http://h/else", "https://h/a", "http://other.example/"),
    *("http://h/a/private/1", "http://h/x/q?sort=1", "http://h/a/%70rivate", "http://h/a/#top", "http://h/a/{1}"),
    *("http://h/a/\u00fc", "http://\u00fc.example/", "http://h", "http://h?a", "http://h/a/elsewhere", "null", ""),
    *("http://h/a/%", "http://h/" + "x" * 2_050, "http://user@h/a/6", "HTTP://H/a/7"),
)
FIELDS = (
    *("<lastmod>2024-05-08", "<lastmod>2024-05-08T10:00:00</lastmod>", "<lastmod>2999-01-01", "<lastmod>May 8, 2024"),
    *("<lastmod>never", "<lastmod>2024&#45;05-08", "<changefreq>Daily", "<changefreq>daily", "<changefreq>wee\u212aly"),
    *("<priority>0.5", "<priority>7", "<priority>1e-1", "<image:image><image:loc>i", "<xhtml:link hreflang=x href=/y>"),
    *("<title>T", "<pubDate>x", "<news:news><news:title>N<news:publication_date>2024-05-08", "<pagemap:x>", ""),
    *("<news:news><news:title>N", "<news:news></news:news>", "<news:news><news:publication><news:name>A", "</url>"),
    "<news:news><news:title>N</news:title><news:publication_date></news:publication_date></news:news>",
    *(
        "<changefreq></changefreq>",
        "<loc></loc>",
        "<lastmod>\u0661\u0669\u0669\u0669",
        "<lastmod>May&#160;8, 2024</lastmod>",
    ),
)
IMAGE = "<image:image><image:loc>/i</image:loc></image:image>"
#: Extensions that end, with what the rules on them look for.
EXTENSIONS = (
    *(IMAGE, IMAGE * 1_001, "<image:image></image:image>", "<video:video></video:video>", "<news:news></news:news>"),
    *(f"<lastmod>{text}</lastmod>" for text in ("2024-05-08", "2999-01-01")),
    *("<priority>1</priority>", "<image:image/><loc>http://h/a/1</loc>"),
)
HREFS = (
    *("/1", "1", "http://h", "http://h/", "http://h/?a&b", "http://h/?a&amp;b", "http://h/a/1", "http://h/a/&#49;"),
    *("http://\u00fc.example/", "null", "x:y", "&#xd800;"),
)
LINKS = st.builds(
    lambda rel, language, href, more: f"<xhtml:link{rel}{language}{href}{more}/>",
    st.sampled_from(
        ("", " rel=''", " rel='alternate'", " rel='Alternate x'", " rel='&#97;lternate'", " rel='stylesheet'")
    ),
    st.sampled_from(
        (
            "",
            " hreflang=''",
            *(f" hreflang='{text}'" for text in ("de", "DE", "d&#101;", "x-Default", "en", "no way", "\u212a")),
        )
    ),
    st.sampled_from(
        ("", " href=''", *(f" href='{url}'" for url in HREFS)),
    ),
    st.sampled_from(("", " media='print'", " type=''", " title='&'")),
)
VIDEO_FIELDS = (
    *(
        "<video:thumbnail_loc>t</video:thumbnail_loc>",
        "<video:title>T</video:title>",
        "<video:description>D</video:description>",
    ),
    *("<video:content_loc>c</video:content_loc>", "<video:player_loc>p</video:player_loc>", "<video:tag>t</video:tag>"),
    *("<video:content_loc>http://h/a/1</video:content_loc>", "<video:player_loc a='b'>/a/1</video:player_loc>"),
    *("<video:player_loc a='b'></video:player_loc>", "<video:tag>t</video:tag>" * 33, "<video:tag>t</video:tag>" * 32),
    *(
        f"<video:title>{text}</video:title>"
        for text in ("T" * 100, "T" * 101, "&amp;amp;" + "T" * 99, "&amp;lt;" * 101)
    ),
    *(f"<video:description>{'D' * size}</video:description>" for size in (2_048, 2_049)),
    *(f"<video:duration>{text}</video:duration>" for text in ("0", "1", "28801", "x", "\u0663", "1.5", "-1")),
    *(f"<video:rating>{text}</video:rating>" for text in ("5", "5.1", "nan", "x", "-0", "1e9")),
    *(f"<video:expiration_date>{text}</video:expiration_date>" for text in ("2024-05-08", "2999", "x", "2024&#45;05")),
    *(
        f"<video:publication_date>{text}</video:publication_date>"
        for text in ("2024-05-08", "2999", "May 8, 2024", "1980")
    ),
    *(
        f"<video:restriction{text}>DE</video:restriction>"
        for text in ("", " relationship='deny'", " relationship='Allow'")
    ),
    "<video:platform relationship='no'>web</video:platform>",
)
NEWS_FIELDS = (
    *("<news:title>N</news:title>", "<news:title>&amp;#32;</news:title>", "<news:title></news:title>"),
    *(
        f"<news:publication_date>{text}</news:publication_date>"
        for text in ("2026-11-15", "2026-11-15T10:00:00Z", "2999", "2024-05", "x", "Nov 15, 2026", "2026&#45;11-15")
    ),
    *(
        f"<news:publication>{name}{language}</news:publication>"
        for name in ("", "<news:name>A</news:name>", "<news:name>&amp;#32;</news:name>")
        for language in ("", "<news:language>de</news:language>", "<news:language>no way</news:language>")
    ),
)
videos = st.lists(st.sampled_from(VIDEO_FIELDS), max_size=6).map(
    lambda texts: f"<video:video>{''.join(texts)}</video:video>"
)
news = st.lists(st.sampled_from(NEWS_FIELDS), max_size=4).map(lambda texts: f"<news:news>{''.join(texts)}</news:news>")
extended_entries = st.builds(
    lambda url, parts: f"<url a><loc>{url}</loc>{''.join(parts)}</url>",
    st.sampled_from(URLS),
    st.lists(LINKS | videos | news | st.sampled_from(EXTENSIONS), max_size=5),
)
FORMS = ("<loc>%s", "<url a><loc>%s</loc>", "<sitemap><loc>%s</loc>", "<item><link>%s", "<entry><link href='%s'/>")
entries = st.builds(
    lambda form, url, fields: form % url + "".join(fields),
    st.sampled_from(FORMS),
    st.sampled_from(URLS),
    st.lists(st.sampled_from(FIELDS), max_size=2),
)


def checked(surveyors: Surveyors, document: bytes, *, uses_survey: bool) -> tuple[Any, ...]:
    """Return everything that a check finds and remembers."""
    tables = SiteTables(["first"], surveyors)
    tables.pages.add("http://h/a/elsewhere", 0)
    context = SitemapContext(URL, OPTIONS, "http://h/a/", datetime(2026, 11, 15, 12, tzinfo=UTC))
    log = ProblemLog(URL)
    checker = EntryChecker(context, tables.number_of("this"), tables, log, RULES_OF_ENTRIES)
    if not uses_survey:
        checker.reader = SurveyOff(OPTIONS, tables.pages, tables.stories, 1)
    parser = XMLSitemapParser(URL, lambda log: [document])
    parser.inspect(log, checker)
    checker.finish()
    problems = log.problems()
    listed = [(tables.pages.find(url), tables.stories.find(url)) for url in URLS]
    sums = tables.returns.clusters.sums_left()
    counted = +problems.counts, checker.stats, checker.page_count(list(parser.pages()))
    return [*map(str, problems)], *counted, listed, sums


@pytest.mark.skipif(not IS_COMPILED, reason="there is no compiled survey here")
@pytest.mark.parametrize("code", sorted({*BAD, *BAD_EXTENSIONS} - {"P419", "R709"}))  # these take other sitemaps
def test_rules_look_only_at_what_is_reported(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules, which are slow, look at no more entries of the general scanner once their problem was often reported."""
    asked: list[Entry] = []

    def made(*given: Any) -> Entry:
        asked.append(Entry(*given))
        return asked[-1]

    monkeypatch.setattr("usp.check.sitemaps.Entry", made)
    root = "<urlset>" if code == "P418" else "<urlset xml:base='/'>"
    for text in BAD.get(code, ()) + BAD_EXTENSIONS.get(code, ()):
        once = text.replace("<url>", "<url a>")  # the attribute makes it one for the general scanner
        found = checked(KINDS["in use"], f"{root}{once * 60}".encode(), uses_survey=True)
        assert found[1][code] >= 59, text
        assert len(asked) <= 2 * KEPT_PER_CODE + 1, text  # each is listed twice, too: P418
        asked.clear()


@settings(max_examples=200)
@given(st.sampled_from(ROOTS), st.lists(entries | extended_entries, max_size=12), st.integers(1, 30))
def test_entries_of_the_general_scanner(root: str, parts: list[str], times: int) -> None:
    """A check finds the same problems, and counts the same, whether a survey skips entries or not."""
    document = (root + "".join(parts) * times).encode()  # after 20 problems of a kind, the survey only counts them
    for surveyors in KINDS.values():
        expected = checked(surveyors, document, uses_survey=False)
        assert checked(surveyors, document, uses_survey=True) == expected


@pytest.mark.parametrize(
    ("odd", "expected"),
    [
        ("<url><lastmod></lastmod>http://h/a/%d</url>", 40),
        ("<url a><loc></loc><priority>0.5</priority>http://h/a/%d</url>", 30),
    ],
    ids=["a lone field", "an empty loc"],
)
def test_empty_fields_are_counted(odd: str, expected: int) -> None:
    """Once P432 was reported often enough, an empty field is counted whatever else is there, and only if optional."""
    usual = "".join(f"<url><loc>http://h/a/x{number}</loc><lastmod></lastmod></url>" for number in range(30))
    document = f"<urlset>{usual}{''.join(odd % number for number in range(10))}".encode()
    for surveyors in KINDS.values():
        assert checked(surveyors, document, uses_survey=True)[1]["P432"] == expected
