"""The objects that users get: values that can be compared, hashed, pickled and turned into dictionaries."""

from __future__ import annotations

import copy
import dataclasses
import gc
import pickle
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from usp.objects.page import (
    SITEMAP_PAGE_DEFAULT_PRIORITY,
    Pages,
    SitemapImage,
    SitemapNewsStory,
    SitemapPage,
    SitemapPageChangeFrequency,
    SitemapVideo,
    SitemapVideoTvShow,
    video_of,
)
from usp.objects.problem import KEPT_PER_CODE, Place, Problem, ProblemLog
from usp.objects.sitemap import (
    AbstractIndexSitemap,
    AbstractPagesSitemap,
    AbstractSitemap,
    IndexRobotsTxtSitemap,
    IndexWebsiteSitemap,
    IndexXMLSitemap,
    InvalidSitemap,
    PagesAtomSitemap,
    PagesRSSSitemap,
    PagesTextSitemap,
    PagesXMLSitemap,
)
from usp.objects.wording import printable
from usp.tree import sitemap_from_str

DATE = datetime(2024, 5, 8, 10, tzinfo=UTC)
STORY = SitemapNewsStory("Title", DATE, "Name", "en", "Subscription", ["Blog"], ["k"], ["NASDAQ:A"])
IMAGE = SitemapImage("http://h/i.png", "C", "G", "T", "L")
VIDEO = SitemapVideo(title="V", tags=["a"], tv_show=SitemapVideoTvShow("Show", episode_number=3))
PAGE = SitemapPage(
    "http://h/p",
    Decimal("0.8"),
    DATE,
    SitemapPageChangeFrequency.DAILY,
    STORY,
    [IMAGE],
    [("de", "http://h/de")],
    [VIDEO],
)
PROBLEM = Problem("X102", "bare", "http://h/s.xml", 3)
SITEMAPS = [
    InvalidSitemap("http://h/s", "why"),
    PagesXMLSitemap("http://h/s", [PAGE]),
    PagesTextSitemap("http://h/s", [PAGE]),
    PagesRSSSitemap("http://h/s", [PAGE]),
    PagesAtomSitemap("http://h/s", [PAGE]),
    IndexXMLSitemap("http://h/s", [PagesXMLSitemap("http://h/t", [PAGE])]),
    IndexRobotsTxtSitemap("http://h/s", [PagesXMLSitemap("http://h/t", [PAGE])]),
    IndexWebsiteSitemap("http://h/s", [IndexXMLSitemap("http://h/t", [])]),
]
VALUES = [STORY, IMAGE, VIDEO, VIDEO.tv_show, PAGE, PROBLEM, *SITEMAPS]
each_value = pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)


@pytest.mark.parametrize("value", [STORY, IMAGE, VIDEO, VIDEO.tv_show, PAGE], ids=lambda value: type(value).__name__)
def test_every_field_is_in_the_dictionary(value: object) -> None:
    """The dictionary of a page, story, image or video has every field, in the order of the class."""
    names = [field.name for field in dataclasses.fields(value)]  # type: ignore[arg-type]  # all are dataclasses
    assert list(value.to_dict()) == names  # type: ignore[attr-defined]


@each_value
def test_equal_by_value(value: object) -> None:
    """A deep copy and an unpickled copy equal the original and have the same hash."""
    for twin in (copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert twin == value
        assert hash(twin) == hash(value)


@each_value
def test_foreign_types_are_unequal(value: object) -> None:
    """A comparison with an object of another type is false and never raises."""
    for other in (None, "text", 1, object(), [value], *(v for v in VALUES if v is not value)):
        assert (value == other) is False
        assert value != other


@each_value
def test_has_a_dictionary(value: object) -> None:
    """Every object has a `to_dict()`."""
    assert isinstance(value.to_dict(), dict)  # type: ignore[attr-defined]


def test_page_defaults() -> None:
    """A page made from a URL alone has priority 0.5; all other fields are None."""
    assert Decimal("0.5") == SITEMAP_PAGE_DEFAULT_PRIORITY
    assert SitemapPage("http://h/").to_dict() == {
        "url": "http://h/",
        "priority": Decimal("0.5"),
        "last_modified": None,
        "change_frequency": None,
        "news_story": None,
        "images": None,
    }


def test_page_dictionary() -> None:
    """The dictionary of a page has alternates and videos only if the page has some."""
    as_dict = PAGE.to_dict()
    assert list(as_dict)[-2:] == ["alternates", "videos"]
    assert as_dict["change_frequency"] == "daily"
    assert as_dict["news_story"]["publish_date"] is DATE
    assert as_dict["images"] == [
        {"loc": "http://h/i.png", "caption": "C", "geo_location": "G", "title": "T", "license": "L"}
    ]
    assert as_dict["alternates"] == [("de", "http://h/de")]
    assert as_dict["videos"][0]["tv_show"]["episode_number"] == 3


def test_dictionaries_name_the_sitemap_of_a_page() -> None:
    """The dictionary of a page that was read from a sitemap ends with the URL of that sitemap, in trees too."""
    read = sitemap_from_str("http://h/a\nhttp://h/b\n", url="http://h/s.txt")
    tree = IndexXMLSitemap("http://h/", [read])
    for as_dict in (read.pages[0].to_dict(), tree.to_dict()["sub_sitemaps"][0]["pages"][0]):
        assert list(as_dict.items())[-1] == ("sitemap_url", "http://h/s.txt")
        assert list(as_dict)[:-1] == list(SitemapPage("http://h/").to_dict())
    assert pickle.loads(pickle.dumps(read)).pages[0].to_dict().keys() == SitemapPage("http://h/").to_dict().keys()


def test_pages_hash_by_url() -> None:
    """Pages with the same URL have the same hash, and are equal only if all fields are."""
    other = SitemapPage("http://h/p")
    assert hash(other) == hash(PAGE)
    assert other != PAGE
    assert len({other, PAGE, SitemapPage("http://h/p")}) == 2


def test_values_cannot_be_changed() -> None:
    """The fields of a page cannot be set."""
    with pytest.raises(AttributeError):
        PAGE.url = "http://h/other"  # type: ignore[misc]


def test_news_lists_may_be_none() -> None:
    """A list of a news story may be given as None, as callers of ultimate-sitemap-parser do, and is then empty."""
    story = SitemapNewsStory("T", DATE, genres=None, keywords=None, stock_tickers=None)  # type: ignore[arg-type]
    assert (story.genres, story.keywords, story.stock_tickers) == ([], [], [])
    assert story == SitemapNewsStory("T", DATE)


def test_values_can_be_subclassed() -> None:
    """Callers may subclass the values."""

    class Rated(SitemapImage):
        __slots__ = ("rating",)

    assert Rated("http://h/i", license_="L").license == "L"


def test_image_license_argument() -> None:
    """The argument is `license_`, the attribute `license`."""
    assert SitemapImage("http://h/i", license_="L").license == "L"


@pytest.mark.parametrize(
    ("value", "known"), [("daily", True), ("never", True), ("DAILY", False), ("", False), (None, False), ([], False)]
)
def test_change_frequency_has_value(value: object, known: bool) -> None:
    """`has_value` is true for the seven values in lower case only, and never raises."""
    assert SitemapPageChangeFrequency.has_value(value) is known


def test_traversal_keeps_order() -> None:
    """Pages and sitemaps come in the order of declaration, a sitemap before those below it."""
    a, b, c, d = (SitemapPage(f"http://h/{x}") for x in "abcd")
    first = PagesXMLSitemap("http://h/1", [a, b], sub_sitemaps=[PagesTextSitemap("http://h/2", [c])])
    tree = IndexWebsiteSitemap("http://h/", [first, InvalidSitemap("http://h/3", "gone")], pages=[d])
    assert list(tree.all_pages()) == [d, a, b, c]
    assert [sitemap.url for sitemap in tree.all_sitemaps()] == ["http://h/1", "http://h/2", "http://h/3"]
    assert next(first.all_sitemaps()).sub_sitemaps == []


def test_sitemap_dictionaries() -> None:
    """The dictionary of an index has its children, that of a page sitemap its pages unless `with_pages` is false."""
    page = SitemapPage("http://h/p")
    tree = IndexXMLSitemap("http://h/", [PagesXMLSitemap("http://h/1", [page]), InvalidSitemap("http://h/2", "why")])
    children = [{"url": "http://h/1", "pages": [page.to_dict()]}, {"url": "http://h/2", "reason": "why"}]
    assert tree.to_dict() == {"url": "http://h/", "sub_sitemaps": children}
    assert tree.to_dict(with_pages=False)["sub_sitemaps"][0] == {"url": "http://h/1"}
    assert PagesXMLSitemap("http://h/1", []).to_dict() == {"url": "http://h/1", "pages": []}
    assert IndexXMLSitemap("http://h/1", []).to_dict() == {"url": "http://h/1", "sub_sitemaps": []}


def test_tree_equality() -> None:
    """Trees are equal if class, URL, pages and children are; dates, problems and transports are not compared."""
    one = PagesXMLSitemap("http://h/1", [PAGE])
    assert one == PagesXMLSitemap("http://h/1", [PAGE], last_modified=DATE, problems=[PROBLEM])
    assert one != PagesXMLSitemap("http://h/1", [])
    assert one != PagesXMLSitemap("http://h/2", [PAGE])
    assert one != PagesTextSitemap("http://h/1", [PAGE])
    assert InvalidSitemap("http://h/1", "a") != InvalidSitemap("http://h/1", "b")


def test_problems_of_a_tree() -> None:
    """`all_problems` yields the problems of every sitemap in the tree."""
    tree = IndexXMLSitemap("http://h/", [InvalidSitemap("http://h/1", "why", problems=[PROBLEM])], problems=[PROBLEM])
    assert list(tree.all_problems()) == [PROBLEM, PROBLEM]
    assert tree.problems == (PROBLEM,)


def test_sitemaps_of_the_callers_own() -> None:
    """AbstractSitemap cannot be instantiated; subclasses by callers can, and work like the others."""

    class Own(AbstractSitemap):
        @property
        def pages(self) -> list[SitemapPage]:
            return [PAGE]

    with pytest.raises(TypeError, match="abstract"):
        AbstractSitemap("http://h/")
    nodes = [Own(url="http://h/1"), AbstractPagesSitemap("http://h/2", [PAGE]), AbstractIndexSitemap("http://h/3", [])]
    assert list(IndexWebsiteSitemap("http://h/", nodes).all_pages()) == [PAGE, PAGE]


def test_pages_sequence() -> None:
    """`Pages` behaves like a list of the same pages that cannot be changed."""
    pages = [SitemapPage(f"http://h/{i}") for i in range(1_500)]
    readings = []

    def read() -> Iterator[SitemapPage]:
        readings.append(1)
        return iter(pages)

    lazy = Pages(read)
    assert lazy == pages
    assert pages == lazy
    assert lazy != [*pages, None]
    assert lazy != pages[:-1]
    assert Pages(lambda: iter([])) != [None]
    assert (lazy[0], lazy[-1], lazy[1_400], lazy[5:3]) == (pages[0], pages[-1], pages[1_400], [])
    for part in (slice(3), slice(2, 9, 3), slice(-3, None), slice(None, None, -1), slice(5, 2, -1), slice(-5, 4)):
        assert Pages(read)[part] == pages[part]
    assert lazy + pages[:1] == [*pages, pages[0]]
    assert pages[:1] + lazy == [pages[0], *pages]
    assert (len(lazy), bool(lazy), bool(Pages(lambda: iter([])))) == (1_500, True, False)
    assert pages[7] in lazy
    assert lazy.index(pages[7]) == 7
    assert type(pickle.loads(pickle.dumps(lazy))) is list
    assert lazy.copy() == list(reversed(list(reversed(lazy))))
    with pytest.raises(IndexError):
        Pages(lambda: iter(pages[:2]))[2]
    fresh = Pages(read)
    readings.clear()
    assert [fresh[i] for i in range(1_001, 1_100)] == pages[1_001:1_100]
    assert len(readings) == 1


def test_problem_log_is_bounded() -> None:
    """A log keeps the first problems of each code, counts all, and locates only those that it keeps."""
    log = ProblemLog("http://h/s.xml")
    log.locate = lambda offsets: {offset: Place(offset + 1, 5) for offset in offsets}
    offsets = iter(range(KEPT_PER_CODE))
    for _ in range(1_000):
        log.add("X102", lambda: next(offsets), where="<loc>")
    log.add("X104", Place(7, 3))
    problems = log.problems()
    assert len(problems) == KEPT_PER_CODE + 1
    assert problems.counts == {"X102": 1_000, "X104": 1}
    assert [(p.line, p.column) for p in problems if p.code == "X104"] == [(7, 3)]
    assert [(p.line, p.column) for p in problems] == sorted([*((i + 1, 5) for i in range(KEPT_PER_CODE)), (7, 3)])
    assert pickle.loads(pickle.dumps(problems)).counts == problems.counts


def test_problem_messages_are_short_and_printable() -> None:
    """Text from a site is escaped and shortened in messages."""
    log = ProblemLog("http://h/s.xml")
    log.add("L302", Place(1, 1), text="\x1b[31m" + "x" * 500, where="<lastmod>", form="YYYY")
    message = log.problems()[0].message
    assert "\\x1b[31mxxx" in message
    assert len(message) < 350


def test_printable() -> None:
    """Invisible characters are escaped; letters of any script are not."""
    assert printable("a\x1b[0m\tü日\u202e\x00 b\ud800") == "a\\x1b[0m\\tü日\\u202e\\x00 b\\ud800"


def test_videos_made_from_fields() -> None:
    """A video that is made from a dictionary is what the constructor makes, with lists of its own."""
    values = {"title": "V", "duration": 3, "tags": ["a"]}
    assert video_of(values) == SitemapVideo(title="V", duration=3, tags=["a"])
    assert video_of({}) == SitemapVideo()
    assert video_of({}).tags is not video_of({}).tags
    assert pickle.loads(pickle.dumps(video_of(values))) == video_of(values)
    with pytest.raises(TypeError, match="name"):
        video_of({"name": "V"})


def test_invalid_sitemaps_have_no_lists_of_their_own() -> None:
    """A tree may have 100,000 of them, and the garbage collector looks at each list; callers get lists of their own."""
    one, other = (InvalidSitemap(f"http://example.org/{name}.xml", "not found") for name in ("one", "other"))
    one.sub_sitemaps.append(other)
    assert (other.sub_sitemaps, list(other.pages), one.sub_sitemaps) == ([], [], [])
    lists = [{id(value) for value in gc.get_referents(sitemap) if type(value) is list} for sitemap in (one, other)]
    assert lists[0] == lists[1]
