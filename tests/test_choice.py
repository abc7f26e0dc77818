"""Choosing sitemaps before they are fetched: by URL, by date and by a function. The server tells what was requested."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

import usp.aio
from faults import QUICK, Driver, Handler, each_driver, ok, serve_faults, status
from support import SITEMAP_XMLNS, FakeClient, index, urlset
from usp.exceptions import InvalidArgumentError
from usp.fetch_parse.parsed import ChildSitemap
from usp.objects.outcome import Cause, OutcomeKind
from usp.objects.sitemap import AbstractSitemap, InvalidSitemap
from usp.stream import SitemapStream
from usp.tree import sitemap_tree_for_homepage, stream_pages_for_homepage, stream_sitemaps_for_homepage

pytestmark = pytest.mark.network

Site = dict[str, Handler]
HOME = "https://x.example/"
NOON = datetime(2025, 6, 15, 12, tzinfo=UTC)


def dated(*children: tuple[str, str | None]) -> Handler:
    """An index that gives a <lastmod> to its children, or none."""
    body = "".join(
        f"<sitemap><loc>{{base}}{path}</loc>{'' if day is None else f'<lastmod>{day}</lastmod>'}</sitemap>"
        for path, day in children
    )
    return ok(f"<sitemapindex {SITEMAP_XMLNS}>{body}</sitemapindex>")


def listed(*paths: str) -> Handler:
    return ok(index(*("{base}" + path for path in paths)))


def pages(name: str) -> Handler:
    return ok(urlset(f"http://x/{name}"))


def shop() -> Site:
    """A site with nested indexes: news and products below an index, and a sitemap beside it."""
    return {
        "/robots.txt": ok("Sitemap: {base}/index.xml\nSitemap: {base}/about.xml\n"),
        "/index.xml": listed("/news.xml", "/products.xml", "/other.xml"),
        "/news.xml": listed("/n/2024.xml", "/n/2025.xml"),
        "/products.xml": listed("/p/1.xml", "/p/2.xml"),
        "/n/2024.xml": pages("news-2024"),
        "/n/2025.xml": pages("news-2025"),
        "/p/1.xml": pages("product-1"),
        "/p/2.xml": pages("product-2"),
        "/other.xml": pages("other"),
        "/about.xml": pages("about"),
    }


class Run:
    """A tree, and what was requested for it."""

    def __init__(self, driver: Driver, site: Site, **options: Any) -> None:
        options = {"use_known_paths": False, "politeness": QUICK} | options
        with serve_faults(site) as server:
            self.tree = driver.tree(server.url, **options)
        self.asked = {path for _, path in server.asked} - {"/robots.txt"}
        self.pages = [page.url.removeprefix("http://x/") for page in self.tree.all_pages()]
        self.left_out = self.tree.outcome.left_out
        assert self.tree.outcome.kind is OutcomeKind.COMPLETE


THREADS = Driver("threads")


class TestExclude:
    """`exclude` leaves out a sitemap and everything below it."""

    @each_driver
    def test_children(self, driver: Driver) -> None:
        """What matches is not requested, nor is anything below it."""
        run = Run(driver, shop(), exclude="/news")
        assert run.pages == ["product-1", "product-2", "other", "about"]
        assert run.asked == {"/index.xml", "/products.xml", "/p/1.xml", "/p/2.xml", "/other.xml", "/about.xml"}
        assert run.left_out == 1

    def test_deep(self) -> None:
        """Sitemaps of any level match."""
        run = Run(THREADS, shop(), exclude=[r"/2024\.xml$", r"/p/2"])
        assert run.pages == ["news-2025", "product-1", "other", "about"]
        assert run.left_out == 2

    def test_named_by_robots(self) -> None:
        """So do those that robots.txt names."""
        run = Run(THREADS, shop(), exclude="index.xml")
        assert (run.pages, run.asked, run.left_out) == (["about"], {"/about.xml"}, 1)

    @each_driver
    def test_known_paths(self, driver: Driver) -> None:
        """A known path that matches is not requested, and is not counted: nobody says that there is a sitemap."""
        site = {"/sitemap.xml": pages("all"), "/sitemap_news.xml": pages("news")}
        run = Run(driver, site, exclude=["news", r"\.gz$"], use_known_paths=True)
        assert run.pages == ["all"]
        assert "/sitemap_index.xml" in run.asked
        assert not [path for path in run.asked if "news" in path or path.endswith(".gz")]
        assert run.left_out == 0

    def test_robots_txt_itself(self) -> None:
        """robots.txt is not a sitemap: it is read whatever its URL."""
        assert Run(THREADS, {"/robots.txt": ok("Sitemap: {base}/a.xml"), "/a.xml": pages("a")}, exclude="robots").pages

    def test_whole_url(self) -> None:
        """The whole URL is searched, with its host and query."""
        site = {
            "/robots.txt": ok("Sitemap: {base}/a.xml?lang=de\nSitemap: {base}/a.xml?lang=en\n"),
            "/a.xml": pages("a"),
        }
        assert Run(THREADS, site, exclude=r"[?&]lang=de\b").asked == {"/a.xml?lang=en"}
        assert Run(THREADS, site, exclude=r"^http://127\.0\.0\.1").asked == set()

    def test_left_out_and_declared_twice(self) -> None:
        """A sitemap that is left out counts once, however often it is declared."""
        site = {"/robots.txt": ok("Sitemap: {base}/a.xml\nSitemap: {base}/b.xml\n")}
        site |= {"/a.xml": listed("/x.xml", "/y.xml"), "/b.xml": listed("/x.xml", "/y.xml"), "/y.xml": pages("y")}
        run = Run(THREADS, site, exclude="x.xml")
        assert (run.pages, run.left_out) == (["y", "y"], 1)


class TestInclude:
    """`include` keeps what matches and everything below it."""

    @each_driver
    def test_index(self, driver: Driver) -> None:
        """An index that matches is read with everything below it; others are not requested."""
        run = Run(driver, shop(), include="/news")
        assert run.pages == ["news-2024", "news-2025"]
        # robots.txt names two sitemaps. Each may be an index of others that match, so both are requested.
        assert run.asked == {"/index.xml", "/about.xml", "/news.xml", "/n/2024.xml", "/n/2025.xml"}
        assert run.left_out == 3  # about, products, other

    def test_nested(self) -> None:
        """A match below an index that does not match itself is not found: only robots.txt is looked through."""
        run = Run(THREADS, shop(), include="/n/2025")
        assert (run.pages, run.asked) == ([], {"/index.xml", "/about.xml"})

    def test_several(self) -> None:
        """One of several expressions is enough."""
        assert Run(THREADS, shop(), include=["other", "about"]).pages == ["other", "about"]

    def test_with_exclude(self) -> None:
        """What matches both is left out."""
        assert Run(THREADS, shop(), include="/news", exclude="2024").pages == ["news-2025"]

    @each_driver
    def test_known_paths(self, driver: Driver) -> None:
        """An index at a known path is looked through; a sitemap there that does not match is dropped, and counted."""
        site = {"/sitemap.xml": listed("/news.xml", "/sitemap_news.xml", "/sitemap.xml.gz"), "/news.xml": pages("news")}
        site |= {"/sitemap_index.xml": pages("all"), "/sitemap_news.xml": pages("more"), "/sitemap.xml.gz": pages("no")}
        run = Run(driver, site, include="news", use_known_paths=True)
        assert run.pages == ["news", "more"]
        assert "/sitemap.xml.gz" not in run.asked  # an index lists it, so it is no guess, and it does not match
        assert run.left_out == 2  # /sitemap.xml.gz and /sitemap_index.xml

    def test_dropped_sitemap_says_why(self) -> None:
        """A sitemap that robots.txt names and that does not match stands in the tree, with its reason."""
        run = Run(THREADS, shop(), include="/news")
        about = run.tree.sub_sitemaps[0].sub_sitemaps[1]
        assert isinstance(about, InvalidSitemap)
        assert (about.cause, "matches `include`" in about.reason) == (Cause.LEFT_OUT, True)

    def test_nothing_matches(self) -> None:
        """If nothing matches, the run is complete and tells how many sitemaps were left out."""
        run = Run(THREADS, shop(), include="nothing like that")
        assert (run.pages, run.left_out) == ([], 4)

    def test_named_sitemap(self) -> None:
        """A sitemap that the caller names is read whether or not it matches."""
        from usp.drivers.options import Reading

        with serve_faults(shop()) as server:
            for path, expected in (("/about.xml", ["http://x/about"]), ("/index.xml", ["http://x/other"])):
                with SitemapStream(Reading(server.url + path, is_site=False), include="other") as stream:
                    assert [page.url for sitemap in stream for page in sitemap.pages] == expected
                assert stream.tree.outcome.kind is OutcomeKind.COMPLETE


class TestModifiedSince:
    """`modified_since` leaves out sitemaps that their index says are older."""

    @each_driver
    def test_old_ones(self, driver: Driver) -> None:
        """Old children are not requested. Those without a date are."""
        site = {
            "/robots.txt": ok("Sitemap: {base}/index.xml"),
            "/index.xml": dated(
                ("/old.xml", "2025-01-01"), ("/new.xml", "2025-07-01"), ("/undated.xml", None), ("/bad.xml", "soon")
            ),
        }
        site |= {f"/{name}.xml": pages(name) for name in ("old", "new", "undated", "bad")}
        run = Run(driver, site, modified_since=NOON)
        assert run.pages == ["new", "undated", "bad"]
        assert (run.asked, run.left_out) == ({"/index.xml", "/new.xml", "/undated.xml", "/bad.xml"}, 1)

    def test_index_decides(self) -> None:
        """An index that is old is left out with everything below it. robots.txt gives no dates."""
        site = {"/robots.txt": ok("Sitemap: {base}/index.xml"), "/index.xml": dated(("/a.xml", "2024-01-01"))}
        site |= {"/a.xml": dated(("/b.xml", "2025-12-01")), "/b.xml": pages("b")}
        assert Run(THREADS, site, modified_since=NOON).asked == {"/index.xml"}

    @pytest.mark.parametrize(
        ("lastmod", "is_read"),
        [
            ("2025-06-14T12:00:00Z", True),
            ("2025-06-14T11:59:59Z", False),
            ("2025-06-14T14:00:00+02:00", True),
            ("2025-06-14T13:59:59+02:00", False),
            ("2025-06-14T12:00:00", True),  # without a time zone: UTC
            ("2025-06-14T11:59:59", False),
            ("2025-06-15", True),
            ("2025-06-14", False),  # midnight is more than a day before
        ],
    )
    @pytest.mark.parametrize(
        "since",
        [NOON, NOON.replace(tzinfo=None), NOON.astimezone(timezone(timedelta(hours=-7)))],
        ids=["UTC", "naive", "-07:00"],
    )
    def test_day_of_slack(self, lastmod: str, is_read: bool, since: datetime) -> None:
        """Sitemaps get a day of slack. Dates without a time zone count as UTC, yours and theirs."""
        site = {f"{HOME}sitemap.xml": _index_of("a.xml", lastmod), f"{HOME}a.xml": urlset("/a")}
        client = FakeClient(site)
        sitemap_tree_for_homepage(HOME, client, use_robots=False, modified_since=since)
        assert (f"{HOME}a.xml" in client.asked) == is_read

    def test_date(self) -> None:
        """A date is its first moment in UTC."""
        for lastmod, is_read in (("2025-06-14", True), ("2025-06-13T23:59:59Z", False)):
            client = FakeClient({f"{HOME}sitemap.xml": _index_of("a.xml", lastmod)})
            sitemap_tree_for_homepage(HOME, client, use_robots=False, modified_since=date(2025, 6, 15))
            assert (f"{HOME}a.xml" in client.asked) == is_read

    @each_driver
    def test_known_paths(self, driver: Driver) -> None:
        """A known path that an index lists as old is not requested either."""
        site = {"/robots.txt": ok("Sitemap: {base}/index.xml"), "/sitemap_news.xml": pages("news")}
        site |= {"/index.xml": dated(("/sitemap_news.xml", "2020-01-01")), "/sitemap.xml": pages("all")}
        run = Run(driver, site, modified_since=NOON, use_known_paths=True)
        assert (run.pages, run.left_out) == (["all"], 1)
        assert "/sitemap_news.xml" not in run.asked
        assert "/sitemap_news.xml.gz" in run.asked


def _index_of(path: str, lastmod: str) -> str:
    child = f"<sitemap><loc>{HOME}{path}</loc><lastmod>{lastmod}</lastmod></sitemap>"
    return f"<sitemapindex {SITEMAP_XMLNS}>{child}</sitemapindex>"


class TestCallback:
    """`choose_callback` gets the children with their dates, and returns those to fetch."""

    @each_driver
    def test_newest_of_each(self, driver: Driver) -> None:
        """It sees URLs, dates, the level and the URLs above; what it does not return is not requested."""
        seen: list[tuple[list[tuple[str, datetime | None]], int, int]] = []

        def newest(children: list[ChildSitemap], level: int, above: set[str]) -> list[ChildSitemap]:
            seen.append(([(child.url[-7:], child.last_modified) for child in children], level, len(above)))
            return sorted(children, key=lambda child: child.last_modified or datetime.max)[-1:]

        site = {"/robots.txt": ok("Sitemap: {base}/index.xml")}
        site |= {
            "/index.xml": dated(("/1/a.xml", "2025-01-01"), ("/2/b.xml", "2025-03-01"), ("/3/c.xml", "2025-02-01"))
        }
        site |= {"/2/b.xml": pages("b")}
        run = Run(driver, site, choose_callback=newest)
        assert (run.pages, run.asked, run.left_out) == (["b"], {"/index.xml", "/2/b.xml"}, 2)
        dates = [
            ("1/a.xml", datetime(2025, 1, 1)),
            ("2/b.xml", datetime(2025, 3, 1)),
            ("3/c.xml", datetime(2025, 2, 1)),
        ]
        assert seen == [([("dex.xml", None)], 0, 1), (dates, 1, 2)]

    def test_order(self) -> None:
        """The children are fetched, and stand in the tree, in the order that it returns; each once."""
        site = shop()
        run = Run(THREADS, site, choose_callback=lambda children, *_: [*reversed(children), children[0]])
        assert run.pages == ["about", "other", "product-2", "product-1", "news-2025", "news-2024"]

    def test_after_the_other_rules(self) -> None:
        """It gets only what the other rules keep, and is not called if they keep nothing."""
        seen: list[str] = []

        def note(children: list[ChildSitemap], level: int, above: set[str]) -> Iterable[ChildSitemap]:
            seen.extend(child.url.rpartition("/")[2] for child in children)
            return iter(children)

        run = Run(THREADS, shop(), exclude=["news", "/p/"], choose_callback=note)
        assert seen == ["index.xml", "about.xml", "products.xml", "other.xml"]
        assert run.pages == ["other", "about"]

    def test_with_the_older_callbacks(self) -> None:
        """The callbacks of ultimate-sitemap-parser get what it returns."""
        seen: list[list[str]] = []

        def note(urls: list[str], level: int, above: set[str]) -> list[str]:
            seen.append([url.rpartition("/")[2] for url in urls])
            return urls

        run = Run(
            THREADS,
            shop(),
            choose_callback=lambda children, *_: children[:1],
            recurse_list_callback=note,
            recurse_callback=lambda url, level, above: "2024" not in url,
        )
        assert seen == [["index.xml"], ["news.xml"], ["2024.xml"]]
        assert (run.pages, run.left_out) == ([], 5)  # about; products, other; 2025; 2024

    def test_changing_what_it_gets(self) -> None:
        """It may change the list and the set that it gets."""

        def drain(children: list[ChildSitemap], level: int, above: set[str]) -> list[ChildSitemap]:
            kept = children[:]
            children.clear()
            above.clear()
            return kept

        assert len(Run(THREADS, shop(), choose_callback=drain).pages) == 6

    @pytest.mark.parametrize("returned", [None, "/a.xml", ["/a.xml"], 5, [{}], True])
    def test_wrong_result(self, returned: object) -> None:
        """Anything but children raises, and says what to return."""
        client = FakeClient({f"{HOME}robots.txt": "Sitemap: /a.xml"})
        with pytest.raises(
            InvalidArgumentError, match="choose_callback must return a list of the children to fetch, not"
        ):
            sitemap_tree_for_homepage(HOME, client, choose_callback=lambda *_: returned)  # type: ignore[arg-type]

    def test_error(self) -> None:
        """Its own error reaches the caller."""

        def fail(*_: object) -> list[ChildSitemap]:
            raise LookupError("my own")

        client = FakeClient({f"{HOME}robots.txt": "Sitemap: /a.xml"})
        with pytest.raises(LookupError, match="my own"):
            sitemap_tree_for_homepage(HOME, client, choose_callback=fail)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"include": "("}, r"include must be regular expressions, like 'news'; '\(' is not: missing \)"),
        (
            {"exclude": ["a", "[z"]},
            r"exclude must be regular expressions, like 'news'; 'a', '\[z' is not: unterminated",
        ),
        ({"include": 5}, "include must be regular expressions, like 'news', not 5"),
        ({"include": ["a", None]}, "include must be regular expressions, like 'news', not None"),
        ({"exclude": b"a"}, "exclude must be regular expressions, like 'news', not b'a'"),
        ({"exclude": re.compile(b"a")}, "exclude must be regular expressions, like 'news', not re.compile"),
        ({"modified_since": "2025-01-01"}, "modified_since must be a datetime, like datetime.2025.*, not '2025-01-01'"),
        ({"modified_since": 7}, "modified_since must be a datetime, like datetime.2025.*, not 7"),
        ({"choose_callback": "newest"}, "choose_callback must be a function, not 'newest'"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], words: str) -> None:
    """Wrong arguments raise before anything is requested, at every front door."""
    client = FakeClient({})
    for front_door in (sitemap_tree_for_homepage, stream_sitemaps_for_homepage, stream_pages_for_homepage):
        with pytest.raises(InvalidArgumentError, match=words):
            front_door(HOME, client, **options)
    assert client.asked == []
    with pytest.raises(InvalidArgumentError, match=words):
        usp.aio.stream_sitemaps_for_homepage(HOME, **options)


@pytest.mark.parametrize(
    "include", ["news", re.compile("NEWS", re.IGNORECASE), ["news"], ("zzz", re.compile("news")), {"news"}]
)
def test_forms_of_patterns(include: Any) -> None:
    """A regular expression is a text or a compiled one; several come in any collection."""
    assert Run(THREADS, shop(), include=include).pages == ["news-2024", "news-2025"]


@pytest.mark.parametrize("nothing", [None, [], ()])
def test_no_patterns(nothing: Any) -> None:
    """None and no expressions at all leave nothing out."""
    run = Run(THREADS, shop(), include=nothing, exclude=nothing, modified_since=None, choose_callback=None)
    assert (len(run.pages), run.left_out) == (6, 0)


def test_streams() -> None:
    """Streams choose as trees do, and give the sitemaps of the tree."""
    with serve_faults(shop()) as server:
        given = list(stream_pages_for_homepage(server.url, include="news", use_known_paths=False))
        with stream_sitemaps_for_homepage(server.url, include="news", use_known_paths=False) as stream:
            sitemaps: list[AbstractSitemap] = list(stream)
    assert sorted(page.url for page in given) == ["http://x/news-2024", "http://x/news-2025"]
    assert [sitemap.url for sitemap in sitemaps] == [sitemap.url for sitemap in stream.tree.all_sitemaps()]
    assert stream.tree.outcome.left_out == 3


def test_failed_index() -> None:
    """What a failed index would list is not known, so nothing is left out: the run is partial."""
    with serve_faults(shop() | {"/index.xml": status(403)}) as server:
        tree = THREADS.tree(server.url, exclude="news", politeness=QUICK)
    assert (tree.outcome.kind, tree.outcome.left_out) == (OutcomeKind.PARTIAL, 0)
