"""Checks of what only the general scanner reads: skipping its entries changes no result."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surveys import KINDS, OPTIONS
from test_lines import RULES_OF_ENTRIES
from usp.check.sitemaps import EntryChecker, SiteTables
from usp.check.subjects import SitemapContext
from usp.fetch_parse.parsers import XMLSitemapParser
from usp.objects.problem import ProblemLog
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
)
FORMS = ("<loc>%s", "<url a><loc>%s</loc>", "<sitemap><loc>%s</loc>", "<item><link>%s", "<entry><link href='%s'/>")
entries = st.builds(
    lambda form, url, fields: form % url + "".join(fields),
    st.sampled_from(FORMS),
    st.sampled_from(URLS),
    st.lists(st.sampled_from(FIELDS), max_size=2),
)


def checked(surveyors: Surveyors, document: bytes, *, uses_survey: bool) -> object:
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
    return [*map(str, problems)], +problems.counts, checker.stats, listed, checker.page_count(list(parser.pages()))


@settings(max_examples=200)
@given(st.sampled_from(ROOTS), st.lists(entries, max_size=12), st.integers(1, 30))
def test_entries_of_the_general_scanner(root: str, parts: list[str], times: int) -> None:
    """A check finds the same problems, and counts the same, whether a survey skips entries or not."""
    document = (root + "".join(parts) * times).encode()  # after 20 problems of a kind, the survey only counts them
    for surveyors in KINDS.values():
        expected = checked(surveyors, document, uses_survey=False)
        assert checked(surveyors, document, uses_survey=True) == expected
