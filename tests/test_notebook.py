"""What notebooks show: HTML that is safe, complete in itself, and bounded in size and time."""

from __future__ import annotations

import gzip
import re
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from html.parser import HTMLParser

import pytest

from clocks import within
from support import FakeClient, index
from usp import Limits, notebook, sitemap_from_str, sitemap_tree_for_homepage
from usp.check import check_tree
from usp.check.report import CheckedSitemap, Report
from usp.objects.page import Pages, SitemapImage, SitemapNewsStory, SitemapPage, SitemapPageChangeFrequency
from usp.objects.problem import Problem, Problems
from usp.objects.sitemap import AbstractSitemap, IndexWebsiteSitemap, InvalidSitemap, PagesXMLSitemap

H = "https://www.example.org/"
EVIL = "<script>alert(1)</script>\"'&\x1b[31m\u202e"
TAGS = {"div", "p", "b", "br", "a", "svg", "rect", "title", "table", "thead", "tbody", "tr", "th", "td", "span"}
ATTRIBUTES = {
    *("style", "href", "rel", "scope", "role", "aria-label"),
    *("viewbox", "width", "height", "fill", "x", "y"),
}


class Parsed(HTMLParser):
    """Reads HTML as a browser does, and fails for anything that is not expected in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.rows: list[list[str]] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        self.tags[tag] += 1
        for name, value in attributes:
            assert name in ATTRIBUTES, name
            assert value is not None
            assert name != "style" or not re.search(r"url|expression|import|javascript|position", value)
            if name == "href":
                assert re.match(r"https?://", value)
                self.links.append(value)
        if tag != "br":
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def shown(value: AbstractSitemap | Pages | Report) -> Parsed:
    text = value._repr_html_()
    assert text.isprintable()
    assert len(text) < 500_000
    return Parsed(text)


def urlset(entries: list[tuple[str, str]]) -> str:
    listed = "".join(f"<url><loc>{url}</loc><lastmod>{date}</lastmod></url>" for url, date in entries)
    return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{listed}</urlset>'


SITE = {
    H + "robots.txt": f"Sitemap: {H}index.xml".encode(),
    H + "index.xml": index(H + "a.xml.gz", H + "b.txt", H + "gone.xml").encode(),
    H + "a.xml.gz": gzip.compress(
        urlset([(f"{H}{number}", f"2026-{number % 10 + 1:02}-05") for number in range(1_500)]).encode()
    ),
    H + "b.txt": f"{H}b\n{H}c\n".encode(),
}


def test_a_tree() -> None:
    """A tree shows its counts, a histogram of dates and a row for each sitemap; failed ones say why."""
    tree = sitemap_tree_for_homepage(H, FakeClient(SITE), use_known_paths=False)
    parsed = shown(tree)
    assert "IndexWebsiteSitemap https://www.example.org/5 sitemaps, 1,502 pages" in parsed.text
    assert "1,500 of 1,502 pages have a date, from 2026-01-05 to 2026-10-05" in parsed.text
    assert parsed.rows == [
        ["Sitemap", "Kind", "Pages", "Declared date", "Newest page", ""],
        [H + "robots.txt", "robots.txt", "0", "", "", ""],
        [H + "index.xml", "index", "0", "", "", ""],
        [H + "a.xml.gz", "XML", "1,500", "", "2026-10-05", ""],
        [H + "b.txt", "text", "2", "", "", ""],
        [H + "gone.xml", "failed", "", "", "", parsed.rows[-1][-1]],
    ]
    assert "404" in parsed.rows[-1][-1]
    bars = re.findall(r"([\d,]+) pages?</title>", tree._repr_html_())
    assert sum(int(count.replace(",", "")) for count in bars) == 1_500 - 15 - 15  # without the outermost hundredths
    assert repr(tree) == "<IndexWebsiteSitemap https://www.example.org/: 5 sitemaps, 1,502 pages>"


def test_a_tree_that_is_partial() -> None:
    """The line of counts has the outcome, with its reason."""
    tree = sitemap_tree_for_homepage(H, FakeClient(SITE), use_known_paths=False, limits=Limits(max_pages=7))
    assert "5 sitemaps, 7 pages, partial: the tree has 7 pages (limits.max_pages)" in shown(tree).text


def test_a_sitemap() -> None:
    """A sitemap shows its first pages with all that they say."""
    page = SitemapPage(
        H,
        last_modified=datetime(2026, 5, 8, 10, 30, tzinfo=UTC),
        change_frequency=SitemapPageChangeFrequency.DAILY,
        news_story=SitemapNewsStory("Floods", None),
        images=[SitemapImage(H + "i.png")] * 2,
    )
    parsed = shown(
        PagesXMLSitemap(H + "s.xml", [page] + [SitemapPage(H + "b", last_modified=datetime(2026, 5, 9))] * 30)
    )
    assert parsed.rows[1:3] == [
        [H, "2026-05-08 10:30+00:00", "daily", "", "news: Floods, 2 images"],
        [H + "b", "2026-05-09", "", "", ""],
    ]
    assert len(parsed.rows) == 1 + notebook.MAX_PAGE_ROWS
    assert "31 pages" in parsed.text
    assert "The first 20 pages." in parsed.text


def test_pages() -> None:
    """The pages of a sitemap show themselves, too."""
    parsed = shown(sitemap_from_str(urlset([(H + "a", "2026-01-01"), (H + "b", "2026-01-02")])).pages)  # type: ignore[arg-type]  # they are Pages
    assert [row[0] for row in parsed.rows] == ["Page", H + "a", H + "b"]
    assert parsed.tags["rect"] == 2


def test_no_pages() -> None:
    """Without pages and dates there is no histogram, and no table."""
    for sitemap in (PagesXMLSitemap(H, []), InvalidSitemap(H, "why"), IndexWebsiteSitemap(H, [])):
        assert not shown(sitemap).tags.keys() & {"svg", "table"}
    assert "why" in shown(InvalidSitemap(H, "why")).text


def test_a_report() -> None:
    """A report shows its codes, the worst first, each with its first problem, and the sitemaps that have some."""
    tree = sitemap_tree_for_homepage(H, FakeClient(SITE), use_known_paths=False)
    report = check_tree(tree)
    parsed = shown(report)
    assert f"Report {report.target}{report.summary()}" in parsed.text
    head = parsed.rows[0]
    assert head == ["Code", "Severity", "Number", "The first one"]
    codes = [row[0] for row in parsed.rows[1 : 1 + len(report.counts())]]
    assert codes == list(report.counts())
    first = next(report.problems())
    assert any(first.message in row[-1] for row in parsed.rows)


EVIL_PAGE = SitemapPage(H + EVIL, news_story=SitemapNewsStory(EVIL, None), images=[SitemapImage(EVIL)])
EVIL_PROBLEM = Problem("X102", EVIL, "javascript:alert(1)//" + EVIL, 1, 2, EVIL)
HOSTILE: dict[str, AbstractSitemap | Report] = {
    "pages": PagesXMLSitemap("javascript:alert(1)", [EVIL_PAGE, SitemapPage("javascript:alert(1)//" + EVIL)]),
    "sitemaps": IndexWebsiteSitemap(H + EVIL, [InvalidSitemap(H + EVIL, EVIL), PagesXMLSitemap(EVIL, [EVIL_PAGE])]),
    "long": IndexWebsiteSitemap(H, [InvalidSitemap(H + "x" * 100_000, "y" * 100_000)] * 5_000),
    "report": Report(
        "javascript:" + EVIL, (CheckedSitemap(EVIL, EVIL, EVIL, 1, Problems([EVIL_PROBLEM])),) * 2, is_reached=False
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_sites_write_is_harmless(name: str) -> None:
    """Whatever a site writes, there are no other tags, attributes or links, and the size is bounded."""
    parsed = shown(HOSTILE[name])
    assert all(re.match(r"https?://", link) for link in parsed.links)
    if name != "long":
        assert "<script>alert(1)</script>" in parsed.text  # as text


def test_rows_are_bounded() -> None:
    """A table has a few hundred rows; a line says how many sitemaps it leaves out."""
    tree = IndexWebsiteSitemap(H, [PagesXMLSitemap(f"{H}{number}.xml", []) for number in range(1_234)])
    parsed = shown(tree)
    assert len(parsed.rows) == 1 + notebook.MAX_ROWS
    assert "... and 1,034 more sitemaps." in parsed.text
    checked = CheckedSitemap("s.xml", H, "PagesXMLSitemap", 1, Problems([Problem("X102", "m", H)]))
    parsed = shown(Report(H, (checked,) * 1_234))
    assert len(parsed.rows) == 1 + 1 + 1 + notebook.MAX_ROWS
    assert "... and 1,034 more sitemaps." in parsed.text


def test_pages_that_are_read_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only so many pages are read. The rest is said to be left out, and sitemaps that were not read say so."""
    monkeypatch.setattr(notebook, "MAX_PAGES", 1_000)
    parsed = shown(sitemap_tree_for_homepage(H, FakeClient(SITE), use_known_paths=False))
    assert "at least 1,000 pages" in parsed.text
    assert "Only 1,000 pages were read" in parsed.text
    assert [row[2] for row in parsed.rows[3:5]] == ["1,500", "not read"]  # the first is read in one part, so counted


def test_time_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the time is over, what was read until then is shown."""
    monkeypatch.setattr(notebook, "MAX_SECONDS", 0.05)

    def slow() -> Iterator[SitemapPage]:
        for number in range(10_000):
            time.sleep(0.001)
            yield SitemapPage(f"{H}{number}", last_modified=datetime(2026, 1, 1))

    with within(5):
        parsed = shown(IndexWebsiteSitemap(H, [PagesXMLSitemap(H, Pages(slow)) for _ in range(100)]))
    assert "or more" in parsed.rows[1][2]
    assert parsed.rows[2][2] == "not read"


DATES = [datetime.min, datetime.max, datetime.min.replace(tzinfo=timezone(timedelta(hours=14))), datetime(2026, 5, 8)]


@pytest.mark.parametrize("dates", [DATES, DATES[3:], DATES[3:] * 1_000 + DATES[:1], []], ids=len)
def test_any_dates(dates: list[datetime]) -> None:
    """The histogram takes dates of any year, one date, and none."""
    parsed = shown(PagesXMLSitemap(H, [SitemapPage(H, last_modified=date) for date in dates]))
    assert parsed.tags["svg"] == bool(dates)
    assert not dates or f"{len(dates):,} of {len(dates):,} page" in parsed.text


def test_bars_add_up() -> None:
    """Every date is in one bar, and the days of a bar are those that its label names."""
    days = [datetime(2026, 1, 1) + timedelta(days=number * number % 97) for number in range(99)]
    text = PagesXMLSitemap(H, [SitemapPage(H, last_modified=day) for day in days])._repr_html_()
    bars = re.findall(r"<title>(\S+)(?: to (\S+))?: (\d+) pages?</title>", text)
    assert sum(int(count) for _, _, count in bars) == 99
    for start, end, count in bars:
        inside = [day for day in days if start <= str(day.date()) <= (end or start)]
        assert len(inside) == int(count)
