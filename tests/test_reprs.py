"""What `repr()` shows: one short line that says what matters, and reads no document."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from support import FakeClient, index, urlset
from usp import (
    Limits,
    Politeness,
    sitemap_from_bytes,
    sitemap_from_str,
    sitemap_tree_for_homepage,
    stream_sitemaps_for_homepage,
)
from usp import open as usp_open
from usp.check import check_tree
from usp.check.report import CheckedSitemap, Report
from usp.objects.outcome import Outcome, OutcomeKind
from usp.objects.page import (
    Pages,
    SitemapImage,
    SitemapNewsStory,
    SitemapPage,
    SitemapPageChangeFrequency,
    SitemapVideo,
    SitemapVideoTvShow,
)
from usp.objects.problem import Problem, Problems
from usp.objects.sitemap import (
    AbstractSitemap,
    IndexWebsiteSitemap,
    IndexXMLSitemap,
    InvalidSitemap,
    PagesXMLSitemap,
)
from usp.objects.transport import Transport
from usp.objects.wording import plural

H = "http://h/"
DAY = datetime(2026, 5, 8)
MOMENT = datetime(2026, 5, 8, 10, 30, 15, 999, tzinfo=UTC)
STORY = SitemapNewsStory("Floods", MOMENT, "The Times", "en")
IMAGE = SitemapImage("http://h/i.png", title="A bridge")
VIDEO = SitemapVideo(title="A film", duration=600, publication_date=DAY, content_loc="http://h/v.mp4")
PAGE = SitemapPage(
    "http://h/p",
    Decimal("0.8"),
    MOMENT,
    SitemapPageChangeFrequency.DAILY,
    STORY,
    [IMAGE],
    [("de", "http://h/de"), ("fr", "http://h/fr")],
    [VIDEO],
)
PROBLEM = Problem("X102", 'bare "&" in <loc>', "http://h/s.xml", 3, 17)
CASES: list[tuple[object, str]] = [
    (SitemapPage("http://h/p"), "<SitemapPage http://h/p>"),
    (SitemapPage("http://h/p", last_modified=DAY), "<SitemapPage http://h/p: modified 2026-05-08>"),
    (
        PAGE,
        "<SitemapPage http://h/p: modified 2026-05-08 10:30:15+00:00, daily, priority 0.8,"
        ' news "Floods", 1 image, 1 video, 2 alternates>',
    ),
    (STORY, '<SitemapNewsStory "Floods": published 2026-05-08 10:30:15+00:00, in "The Times" (en)>'),
    (SitemapNewsStory("Floods", None), '<SitemapNewsStory "Floods">'),
    (IMAGE, '<SitemapImage http://h/i.png: "A bridge">'),
    (SitemapImage("http://h/i.png"), "<SitemapImage http://h/i.png>"),
    (VIDEO, '<SitemapVideo "A film": 600 s, published 2026-05-08, http://h/v.mp4>'),
    (SitemapVideo(), "<SitemapVideo>"),
    (SitemapVideoTvShow("Show", episode_number=3), '<SitemapVideoTvShow "Show": episode 3>'),
    (PROBLEM, '<Problem X102 http://h/s.xml:3:17: bare "&" in <loc>>'),
    (Problems(), "<Problems: none>"),
    (Problems([PROBLEM]), "<Problems: 1 problem: X102>"),
    (Problems([PROBLEM], Counter(X102=4_732, L301=1)), "<Problems: 4,733 problems: X102 4,732 times, L301>"),
    (Transport(H, H), "<Transport http://h/: 0 bytes>"),
    (
        Transport(H, "https://h/", 200, size=12_345, seconds=0.3149, is_whole=False),
        "<Transport http://h/: redirected to https://h/, status 200, 12,345 bytes, in 0.315 s, cut short>",
    ),
    (Outcome(OutcomeKind.PARTIAL, "robots.txt: 503"), "<Outcome partial: robots.txt: 503>"),
    (Outcome(OutcomeKind.COMPLETE), "<Outcome complete>"),
    (Limits(), "Limits()"),
    (Limits(max_pages=10, tree_seconds=60), "Limits(max_pages=10, tree_seconds=60)"),
    (Politeness(spacing=0.5, crawl_delay=True), "Politeness(spacing=0.5, crawl_delay=True)"),
    (Report(H, ()), "<Report http://h/: 0 sitemaps, 0 pages, no problems>"),
    (Report(H, (), is_reached=False), "<Report http://h/: 0 sitemaps, 0 pages, no problems, not reached>"),
    (
        CheckedSitemap("s.xml", "http://h/s.xml", "PagesXMLSitemap", 1, Problems([PROBLEM])),
        "<CheckedSitemap s.xml: 1 page, 1 error>",
    ),
    (PagesXMLSitemap("http://h/s", [PAGE] * 3), "<PagesXMLSitemap http://h/s: 3 pages>"),
    (PagesXMLSitemap("http://h/s", []), "<PagesXMLSitemap http://h/s: 0 pages>"),
    (InvalidSitemap("http://h/s", "why"), "<InvalidSitemap http://h/s: why>"),
    (IndexXMLSitemap("http://h/s", []), "<IndexXMLSitemap http://h/s: 0 sitemaps>"),
    (IndexWebsiteSitemap(H, []), "<IndexWebsiteSitemap http://h/: 0 sitemaps, empty>"),
]


@pytest.mark.parametrize(("value", "expected"), CASES, ids=lambda value: value if isinstance(value, str) else "")
def test_reprs(value: object, expected: str) -> None:
    """A repr says what matters in one line."""
    assert repr(value) == expected


def test_reprs_of_streams(tmp_path: Path) -> None:
    """A stream says what it reads, without a password, and whether it is over."""
    with stream_sitemaps_for_homepage("http://user:secret@h/", FakeClient(SITE)) as stream:
        assert repr(stream) == "<SitemapStream http://h/: not over>"
        list(stream)
        assert repr(stream) == "<SitemapStream http://h/: over>"
    (tmp_path / "s.txt").write_text("http://h/a")
    with usp_open([tmp_path / "s.txt", "http://user:secret@h/"]) as several:
        assert repr(several) == "<SourceStream: 0 of 2 sources read>"
        next(several)
        assert "secret" not in repr(several)


def test_settings_can_be_copied_from_their_repr() -> None:
    """The repr of limits and politeness is how to write them."""
    for value in (Limits(max_pages=10, request_seconds=0.5), Politeness(tries=2)):
        assert eval(repr(value)) == value  # noqa: S307 -- it is our own text


LONG = "\x1b[31m\n" + "x" * 100_000
HOSTILE: list[object] = [
    SitemapPage(LONG, news_story=SitemapNewsStory(LONG, None), images=[IMAGE] * 5_000),
    SitemapNewsStory(LONG, MOMENT, LONG, "en"),
    SitemapImage(LONG, LONG, LONG, LONG, LONG),
    SitemapVideo(LONG, LONG, LONG, LONG, tags=["x"] * 5_000),
    SitemapVideoTvShow(LONG, LONG, LONG),
    Problem("X102", LONG, LONG, text=LONG),
    Problems([PROBLEM] * 20, Counter({f"X{number}": 9 for number in range(5_000)})),
    Transport(LONG, LONG + "2"),
    Report(LONG, ()),
    InvalidSitemap(LONG, LONG),
    PagesXMLSitemap(LONG, [PAGE] * 5_000),
    IndexXMLSitemap(LONG, [InvalidSitemap(LONG, LONG)] * 5_000),
]


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: type(value).__name__)
def test_reprs_of_anything_are_short_and_printable(value: object) -> None:
    """Whatever a site writes, a repr is short, has no control characters and is one line."""
    assert len(repr(value)) < 700
    assert repr(value).isprintable()


class _Reads:
    """Counts how often the documents of a tree are opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from usp.documents import Document

        self.count = 0
        pieces = Document.pieces

        def counted(document: Document, *arguments: object, **options: object) -> Iterator[bytes]:
            self.count += 1
            return pieces(document, *arguments, **options)  # type: ignore[arg-type]  # passed on as they are

        monkeypatch.setattr(Document, "pieces", counted)


SITE = {
    H + "robots.txt": f"Sitemap: {H}index.xml".encode(),
    H + "index.xml": index(H + "a.xml.gz", H + "b.txt", H + "gone.xml").encode(),
    H + "a.xml.gz": gzip.compress(urlset(*(f"{H}a/{number}" for number in range(1_500))).encode()),
    H + "b.txt": b"http://h/b\nhttp://h/c\nhttp://h/b\n",
}


def fetched() -> AbstractSitemap:
    return sitemap_tree_for_homepage(H, FakeClient(SITE), use_known_paths=False)


def test_the_repr_of_a_tree_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The repr of a tree that nobody has read says so, and opens no document."""
    tree = fetched()
    reads = _Reads(monkeypatch)
    assert repr(tree) == "<IndexWebsiteSitemap http://h/: 5 sitemaps, pages not counted>"
    assert [repr(sitemap.pages) for sitemap in tree.all_sitemaps()][2] == "<Pages: not counted>"
    assert reads.count == 0


COUNTING: dict[str, Callable[[AbstractSitemap], object]] = {
    "len": lambda tree: [len(sitemap.pages) for sitemap in tree.all_sitemaps()],
    "a loop": lambda tree: list(tree.all_pages()),
    "columns": lambda tree: [
        list(sitemap.pages.columns(("url",)))
        for sitemap in tree.all_sitemaps()
        if isinstance(sitemap.pages, Pages) and sitemap.pages.columns is not None
    ],
}


@pytest.mark.parametrize("way", COUNTING)
def test_pages_are_counted_by_whoever_reads_them(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the pages of all sitemaps have been read, in whatever way, the repr of the tree has their number."""
    tree = fetched()
    COUNTING[way](tree)
    reads = _Reads(monkeypatch)
    assert repr(tree) == "<IndexWebsiteSitemap http://h/: 5 sitemaps, 1,502 pages>"
    assert [len(sitemap.pages) for sitemap in tree.all_sitemaps()] == [0, 0, 1_500, 2, 0]
    assert reads.count == 0


def test_a_loop_that_ends_early_counts_nothing() -> None:
    """Pages of a sitemap that was read in part are not counted."""
    sitemap = sitemap_from_bytes(SITE[H + "a.xml.gz"])
    pages = iter(sitemap.pages)
    assert [next(pages).url for _ in range(1_200)][-1] == H + "a/1199"
    assert "pages not counted" in repr(sitemap)
    assert len(list(pages)) == 300
    assert "1,500 pages" in repr(sitemap)


def test_a_fetch_that_counts_pages() -> None:
    """With a limit on pages, or with a progress callback, a tree knows its number of pages when it arrives."""
    tree = sitemap_tree_for_homepage(H, FakeClient(SITE), use_known_paths=False, limits=Limits(max_pages=10_000))
    assert "1,502 pages" in repr(tree)
    tree = sitemap_tree_for_homepage(H, FakeClient(SITE), use_known_paths=False, progress=lambda event: None)
    assert "1,502 pages" in repr(tree)


def test_the_repr_of_a_tree_names_its_outcome() -> None:
    """A tree that is not complete says so."""
    tree = sitemap_tree_for_homepage(H, FakeClient(SITE), use_known_paths=False, limits=Limits(max_pages=7))
    assert repr(tree) == "<IndexWebsiteSitemap http://h/: 5 sitemaps, 7 pages, partial>"
    assert len(list(tree.all_pages())) == 7


def test_an_index_that_was_read_by_itself() -> None:
    """An index without its children says that none of them was read."""
    sitemap = sitemap_from_str(index(H + "a", H + "b"), url=H + "index.xml")
    assert repr(sitemap) == "<IndexXMLSitemap http://h/index.xml: 2 sitemaps, none read>"


def test_the_repr_of_a_report() -> None:
    """A report shows its target and its summary."""
    report = check_tree(sitemap_from_str(urlset("http://h/a?x&y"), url=H + "s.xml"))
    assert repr(report) == f"<Report http://h/s.xml: {report.summary()}>"
    assert "1 page, 1 error" in repr(report)


def test_plurals() -> None:
    """One is singular; zero and all others are plural, with thousands separated."""
    assert [plural(number, "page") for number in (0, 1, 2, 48_201)] == ["0 pages", "1 page", "2 pages", "48,201 pages"]
