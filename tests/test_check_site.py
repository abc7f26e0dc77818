"""The rules on sites: discovery, robots.txt, return links; and reports on trees."""

from __future__ import annotations

import gzip
import pickle
import re
import time
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from protego import Protego

from checks import HOME, NOW, check_site, found_in, report_of, response, robots_of, site_of, url_of, urlset_of
from support import FakeClient, FakeResponse, index, serve, urlset
from usp.check import check_bytes, check_homepage, check_path, check_tree
from usp.check.return_links import ReturnLinks
from usp.check.robots import CRAWLERS, RobotsRules, disallowed_patterns, literal_parts
from usp.check.sitemaps import SiteTables
from usp.check.subjects import alternates_of
from usp.cli.demo import demo_site
from usp.compiled import IS_COMPILED
from usp.limits import Limits
from usp.objects.page import SitemapPage
from usp.objects.sitemap import IndexWebsiteSitemap, PagesXMLSitemap
from usp.politeness import Politeness
from usp.scan.elements import Element
from usp.scan.survey import PURE_SURVEYORS, SURVEYORS, SurveyOptions, Surveyors, may_be_disallowed
from usp.scan.vocabulary import Kind
from usp.tree import sitemap_from_bytes, sitemap_tree_for_homepage
from usp.web_client.abstract_client import AbstractWebClientResponse

CHOICES = pytest.mark.parametrize("surveyors", [PURE_SURVEYORS, SURVEYORS], ids=["pure", "chosen"])


def test_the_clean_example_site_is_clean() -> None:
    """The built-in example website has no problem, except in the two sitemaps that are wrong on purpose."""
    with demo_site(is_clean=True) as homepage:
        report = check_homepage(homepage)
    assert found_in(report) == []
    assert (report.sitemap_count, report.pages, report.is_reached) == (6, 7, True)
    with demo_site() as homepage:
        faulty = check_homepage(homepage)
    assert {name for name, *_ in found_in(faulty)} == {"broken.xml", "sitemap_index.xml"}


def test_a_build_for_another_host(tmp_path: Path) -> None:
    """R715, U506: with a URL, files that agree on another host are wrong; without one, nothing says so."""
    other = "http://localhost:3000/"
    files = {
        "robots.txt": f"User-agent: *\nSitemap: {other}sitemap.xml\n",
        "sitemap.xml": index(f"{other}a.xml"),
        "a.xml": urlset_of(f"<url><loc>{other}page</loc></url>", url_of("page")),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, "utf-8")
    found = [(code, line, column) for _, code, line, column in found_in(check_path(tmp_path, url=HOME, now=NOW))]
    assert found == [("R715", 2, 10), ("U506", 1, 81), ("U506", 2, 11)]
    (tmp_path / "a.xml").write_text(urlset_of(f"<url><loc>{other}page</loc></url>"), "utf-8")
    assert found_in(check_path(tmp_path, now=NOW)) == []


@pytest.mark.parametrize("other", ["http://www.example.org/", "https://example.org/", "https://www.example.org:444/"])
def test_a_build_with_another_spelling_of_its_host(tmp_path: Path, other: str) -> None:
    """R715: another scheme, port or "www." is wrong too, whatever the sitemaps say; also in a robots.txt alone."""
    (tmp_path / "robots.txt").write_text(f"Sitemap: {other}a.xml\n", "utf-8")
    (tmp_path / "a.xml").write_text(urlset_of(f"<url><loc>{other}page</loc></url>"), "utf-8")
    codes = [code for _, code, *_ in found_in(check_path(tmp_path, url="https://www.example.org/", now=NOW))]
    assert codes[0] == "R715"
    assert codes[1:] in (["U508"], ["U509"], ["U506"])
    assert found_in(check_path(tmp_path / "robots.txt", url="https://www.example.org/", now=NOW))[0][1:3] == ("R715", 1)


def test_missing_files_of_a_folder(tmp_path: Path) -> None:
    """T807: a file that is missing is reported where an index lists it."""
    listed = index(f"{HOME}a.xml", f"{HOME}gone.xml", f"{HOME}lost.xml").replace("<sitemap>", "\n<sitemap>")
    (tmp_path / "sitemap.xml").write_text(listed, "utf-8")
    (tmp_path / "a.xml").write_text(urlset_of(url_of("a")), "utf-8")
    found = found_in(check_path(tmp_path, url=HOME, now=NOW))
    index_name = str(tmp_path / "sitemap.xml")
    assert found == [(index_name, "T807", 3, 15), (index_name, "T807", 4, 15)]


def test_pages_are_counted_as_they_are_read() -> None:
    """A page that is listed in two spellings is two pages, although a search engine sees one."""
    document = urlset_of(url_of(""), f"<url><loc>{HOME.rstrip('/')}</loc></url>", url_of("a"), url_of("a"))
    report = check_bytes(document.encode(), url=f"{HOME}sitemap.xml", now=NOW)
    assert report.counts() == {"P418": 2}
    assert report.pages == len(sitemap_from_bytes(document.encode(), f"{HOME}sitemap.xml").pages) == 3


def test_names_and_counts() -> None:
    """A report has every sitemap of the tree, with its short name and its number of pages."""
    site = {
        "sitemap.xml": index(f"{HOME}a.xml", f"{HOME}b.txt"),
        "a.xml": urlset_of(url_of("1"), url_of("2"), url_of("2")),
        "b.txt": f"{HOME}3\n",
        "robots.txt": robots_of("sitemap.xml"),
    }
    report = check_site(site)
    assert [(checked.name, checked.kind, checked.pages) for checked in report.sitemaps] == [
        (HOME, "IndexWebsiteSitemap", 0),
        ("robots.txt", "IndexRobotsTxtSitemap", 0),
        ("sitemap.xml", "IndexXMLSitemap", 0),
        ("a.xml", "PagesXMLSitemap", 2),
        ("b.txt", "PagesTextSitemap", 1),
    ]
    assert (report.target, report.pages, report.sitemap_count) == (HOME, 3, 4)


def test_a_sitemap_in_two_places_is_checked_once() -> None:
    """A sitemap that two indexes list is checked once, and its pages are no duplicates."""
    site = {"1.xml": index(f"{HOME}a.xml"), "2.xml": index(f"{HOME}a.xml"), "a.xml": urlset_of(url_of("1#x"))}
    report = check_site(site | {"robots.txt": robots_of("1.xml", "2.xml")})
    assert found_in(report) == [("a.xml", "U510", 2, 11)]
    assert [checked.name for checked in report.sitemaps].count("a.xml") == 1


def test_listed_in_two_sitemaps() -> None:
    """P419: a page is in one sitemap only, except for news and image sitemaps, which repeat pages by design."""
    image = f"<image:image><image:loc>{HOME}1.jpg</image:loc></image:image>"
    story = (
        "<news:news><news:publication><news:name>E</news:name><news:language>en</news:language></news:publication>"
        "<news:publication_date>2026-11-15</news:publication_date><news:title>T</news:title></news:news>"
    )
    site = {
        "a.xml": urlset_of(url_of("1"), url_of("2")),
        "b.xml": urlset_of(url_of("3"), url_of("1"), url_of("1")),
        "images.xml": urlset_of(url_of("2", image)),
        "news.xml": urlset_of(url_of("2", story)),
        "feed.rss": f"<rss><channel><item><title>T</title><link>{HOME}2</link></item></channel></rss>",
    }
    report = check_site(site)
    assert found_in(report) == [("b.xml", "P419", 3, 11), ("b.xml", "P418", 4, 11)]
    assert "in a.xml;" in next(report.problems()).message
    assert [checked.pages for checked in report.sitemaps[2:]] == [2, 2, 1, 1, 1]


@CHOICES
def test_many_listed_in_two_sitemaps(surveyors: Surveyors) -> None:
    """All pages that are listed elsewhere are counted, and none that has images, whoever reads them."""
    image = f"<image:image><image:loc>{HOME}1.jpg</image:loc></image:image>"
    pages = [url_of(str(number)) for number in range(60)]
    again = [page if number % 3 else url_of(str(number), image) for number, page in enumerate(pages)]
    client = site_of({"a.xml": urlset_of(*pages), "b.xml": urlset_of(*again)})
    tree = sitemap_tree_for_homepage(HOME, client, use_known_paths=False)
    report = report_of(tree, SiteTables(surveyors=surveyors))
    assert report.counts() == {"P419": 40}
    assert report.pages == 120


@pytest.mark.parametrize(
    ("robots", "url", "codes"),
    [
        ("", f"{HOME}maps/a", []),
        ("", f"{HOME}maps/deeper/a", []),
        ("", f"{HOME}other/a", ["U507"]),
        ("", f"{HOME}mapsa", ["U507"]),
        ("", "https://www.example.org", ["U507"]),
        ("", "https://WWW.EXAMPLE.ORG/maps/a", []),
        ("", "http://www.example.org/maps/a", ["U508"]),
        ("maps/sitemap.xml", f"{HOME}other/a", []),
        ("maps/index.xml", f"{HOME}other/a", []),
    ],
)
def test_folders(robots: str, url: str, codes: list[str]) -> None:
    """U507: a sitemap lists what is in its folder or deeper; any folder, if a robots.txt leads to it."""
    site = {
        "robots.txt": robots_of(robots) if robots else "User-agent: *\n",
        "maps/index.xml": index(f"{HOME}maps/sitemap.xml"),
        "maps/sitemap.xml": urlset_of(f"<url><loc>{url}</loc></url>"),
    }
    paths = {"use_known_paths": True, "extra_known_paths": ["maps/sitemap.xml"]} if not robots else {}
    report = check_site(site, **paths).selected(["U"])
    assert found_in(report) == [("maps/sitemap.xml", code, 2, 11) for code in codes]


@pytest.mark.parametrize(
    ("top", "listed", "codes"),
    [
        ("index.xml", "other/a", []),
        ("deep/index.xml", "other/a", ["U507"]),
        ("deep/index.xml", "maps/b", ["U507"]),
        ("deep/index.xml", "maps/a/b", []),
        ("maps/index.xml", "maps/b", []),
        ("maps/index.xml", "other/a", ["U507"]),
    ],
)
def test_folders_below_an_index(top: str, listed: str, codes: list[str]) -> None:
    """U507: an index that is nearer to the root speaks for its own folder, and so do the sitemaps that it lists."""
    site = {
        "robots.txt": "User-agent: *\n",
        top: index(f"{HOME}maps/deeper.xml"),
        "maps/deeper.xml": index(f"{HOME}maps/a/sitemap.xml"),
        "maps/a/sitemap.xml": urlset_of(url_of(listed)),
    }
    report = check_site(site, use_known_paths=True, extra_known_paths=[top]).selected(["U"])
    assert [(name, code) for name, code, _, _ in found_in(report) if name != top] == [
        ("maps/a/sitemap.xml", code) for code in codes
    ]


def test_cross_submission() -> None:
    """A robots.txt may name a sitemap on another host, which then lists the pages of both hosts, and of no third."""
    listed = [f"{HOME}a", "https://maps.example.net/b", "https://example.com/c"]
    robots = "User-agent: *\nSitemap: https://maps.example.net/deep/sitemap.xml\n"
    sitemap = FakeResponse(
        urlset(*listed).encode(), "https://maps.example.net/deep/sitemap.xml", {"Content-Type": "text/xml"}
    )
    client = FakeClient({f"{HOME}robots.txt": response("robots.txt", robots), sitemap.at: sitemap})
    report = check_homepage(HOME, client, now=NOW, use_known_paths=False)
    assert [(code, column) for _, code, _, column in found_in(report)] == [
        ("U506", urlset(*listed).index(listed[2]) + 1)
    ]
    assert report.sitemaps[2].name == sitemap.at


def test_files_without_a_url() -> None:
    """The first URL of a file that may be served anywhere says which site it is of; in any folder."""
    document = urlset(f"{HOME}a/b", f"{HOME}c", "http://example.com/", "http://www.example.org/", "https://example.org")
    assert check_bytes(document.encode(), now=NOW).counts() == {"U506": 1, "U508": 1, "U509": 1}
    relative = urlset("/a", f"{HOME}b")
    assert list(check_bytes(relative.encode(), now=NOW).counts()) == ["U501"]


def test_files_with_a_url() -> None:
    """A file that is to be served at a URL is checked by that."""
    document = urlset(f"{HOME}a", f"{HOME}maps/a").encode()
    assert list(check_bytes(document, url=f"{HOME}maps/sitemap.xml", now=NOW).counts()) == ["U507"]
    assert list(check_bytes(document, url="https://example.com/sitemap.xml", now=NOW).counts()) == ["U506"]
    assert not check_bytes(document, url=f"{HOME}sitemap.xml", now=NOW).counts()


def test_what_is_no_sitemap() -> None:
    """A file that is not a sitemap has one problem, with its name."""
    report = check_bytes(b"<!DOCTYPE html><html><body>&</body></html>", name="page.html", now=NOW)
    (problem,) = report.problems()
    assert problem.code == "T807"
    assert problem.message == "this is no sitemap: its root element is <html>"
    assert report.sitemaps[0].name == "page.html"


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T807: files of a folder that cannot be read, or are not sitemaps, are reported."""
    for name in ("a.xml", "sitemap-b.xml"):
        (tmp_path / name).write_text(urlset_of(url_of(name)) if name == "a.xml" else "<html/>", "utf-8")

    def refusing(path: Any, *arguments: Any, **options: Any) -> Any:
        if str(path).endswith("a.xml"):
            raise PermissionError(13, "Permission denied")
        return open(path, *arguments, **options)

    monkeypatch.setattr("usp.sources.listing.open", refusing, raising=False)
    report = check_path(tmp_path, url=HOME, now=NOW)
    messages = {sitemap.name: [each.message for each in sitemap.problems] for sitemap in report.sitemaps[1:]}
    assert [code for _, code, _, _ in found_in(report)] == ["T807", "T807"]
    assert messages[str(tmp_path / "a.xml")][0].startswith("this could not be read: ")
    assert messages[str(tmp_path / "sitemap-b.xml")][0].startswith("this is no sitemap: ")


@pytest.mark.parametrize(
    ("rules", "url", "is_disallowed"),
    [
        ("Disallow: /private/", "private/a", True),
        ("Disallow: /private/", "%70rivate/a", True),
        ("Disallow: /private/", "privat/a", False),
        ("Disallow: /*.pdf$", "a/b.pdf", True),
        ("Disallow: /*.pdf$", "a/b.pdf?c", False),
        ("Disallow: /\nAllow: /a", "a", False),
        ("Disallow: /\nAllow: /a", "b", True),
        ("Disallow: /é", "%C3%A9", True),
        ("Disallow:", "a", False),
        ("Disallow: /a\n\nUser-agent: other\nDisallow: /", "b", False),
        ("Disallow: /*?print=", "a?x=1&amp;print=1", False),
        ("Disallow: /*?print=", "a?print=1", True),
        ("Disallow: /\n\nUser-agent: Googlebot\nUser-agent: bingbot\nDisallow: /b", "a", False),
        ("Disallow: /\n\nUser-agent: Googlebot\nUser-agent: bingbot\nDisallow: /b", "b", True),
        ("Disallow: /\n\nUser-agent: Googlebot\nAllow: /", "a", True),
        ("Disallow: /a\n\nUser-agent: bingbot\nDisallow: /b", "b", True),
        ("Disallow: /a\n\nUser-agent: GPTBot\nDisallow: /", "b", False),
    ],
)
@CHOICES
def test_disallowed_pages(rules: str, url: str, is_disallowed: bool, surveyors: Surveyors) -> None:
    """R709: a sitemap lists no page that robots.txt disallows."""
    site = site_of({"robots.txt": robots_of("a.xml", rules=rules), "a.xml": urlset_of(url_of(url))})
    tree = sitemap_tree_for_homepage(HOME, site, use_known_paths=False)
    report = report_of(tree, SiteTables(surveyors=surveyors))
    assert found_in(report) == [("a.xml", "R709", 2, 11)] * is_disallowed


@pytest.mark.parametrize(
    ("text", "whom"),
    [
        ("User-agent: *\nDisallow: /", "all crawlers"),
        ("User-agent: Googlebot\nDisallow: /", "Googlebot"),
        ("User-agent: bingbot\nDisallow: /\n\nUser-agent: *\nDisallow: /b", "Bingbot"),
        ("User-agent: bingbot\nUser-agent: googlebot\nDisallow: /", "Googlebot and Bingbot"),
        ("User-agent: *\nDisallow: /\n\nUser-agent: Googlebot\nAllow: /", "Bingbot"),
        ("User-agent: *\nDisallow: /\n\nUser-agent: Googlebot\nUser-agent: Bingbot\nAllow: /", ""),
        ("User-agent: Googlebot-Image\nUser-agent: GPTBot\nDisallow: /", ""),
    ],
)
def test_to_whom_a_page_is_disallowed(text: str, whom: str) -> None:
    """R709: only the crawlers of search engines matter, and the message names those that may not fetch."""
    site = {"robots.txt": f"{text}\nSitemap: {HOME}a.xml\n", "a.xml": urlset_of(url_of("a"))}
    messages = [problem.message for problem in check_site(site).problems()]
    assert messages == [f"robots.txt disallows this page to {whom}; remove it from the sitemap, or allow it"] * bool(
        whom
    )


def test_robots_txt_by_a_redirect() -> None:
    """The rules of a robots.txt apply to the requested site, wherever it redirects."""
    rules = [b"User-agent: *\nDisallow: /"]
    asked = f"{HOME}robots.txt"
    elsewhere = RobotsRules(asked, rules, "https://cdn.example.net/robots/www.txt")
    assert [elsewhere.is_disallowed(url) for url in (f"{HOME}a", "https://cdn.example.net/a")] == [True, False]
    at_home = RobotsRules("http://example.org/robots.txt", rules, asked)
    assert [at_home.is_disallowed(url) for url in (f"{HOME}a", "http://example.org/a")] == [True, True]
    served = FakeResponse(
        f"{rules[0].decode()}\nSitemap: {HOME}a.xml\n".encode(),
        "https://cdn.example.net/robots.txt?www",
        {"Content-Type": "text/plain"},
    )
    report = check_site({"robots.txt": served, "a.xml": urlset_of(url_of("a"))})
    assert [code for _, code, _, _ in found_in(report)] == ["R709"]


def test_robots_txt_is_about_its_own_origin() -> None:
    """The rules of a robots.txt apply to its own host and scheme only."""
    rules = RobotsRules(f"{HOME}robots.txt", [b"User-agent: *\nDisallow: /"])
    assert rules.is_disallowed(f"{HOME}a")
    assert rules.is_disallowed("https://WWW.example.org:443/a")
    for url in ("http://www.example.org/a", "https://www.example.org.net/a", "https://example.org/", "https://[/a"):
        assert not rules.is_disallowed(url)


FRAGMENTS = st.sampled_from(
    [
        *("a", "b", "A", "/", "*", "$", "%", "%2F", "%61", "%3f", "?", "=", "&", ".", "-", " ", "é", "%C3%A9", "%c3"),
        *("private", "index.html", "http://", "https://", ":", "~", "//", "!", "#", "+"),
    ]
)
PATHS = st.lists(FRAGMENTS, max_size=6).map("".join)
FIELDS = st.sampled_from(
    [
        *("Disallow: ", "disallow:", "Disallow ", "DISALLOW : ", "dissallow: ", "diasllow:", "Disallow\t"),
        *("Allow: ", "Allow ", "Sitemap: ", "Crawl-delay: ", "Foo: ", "Foo ", "host: "),
    ]
)
AGENTS = st.sampled_from(
    [
        *("User-agent: *", "User-agent: x", "user agent *", "useragent:*", "User-agent *", "User-agent foo: bar"),
        *("User-agent: * # c", "User-agent:", "User-agent: **", " User-Agent : *", "User-agent x", "user-agent * x"),
        *("User-agent: Googlebot", "User-agent: bingbot", "user-agent googlebot", "User-agent: google*", "useragent:b"),
        *("user  agent bingbot", "user  agent: bingbot", "User-agent: Googlebot-News", "user\u017f-agent: bingbot"),
    ]
)
LINES = st.one_of(AGENTS, st.tuples(FIELDS, PATHS).map("".join), PATHS, st.just(""))


@pytest.mark.slow
@settings(max_examples=1_000)
@example("User-agent: *\nUser-agent: x\nDisallow \nUser-agent: x\nDisallow: /", ["a"], "/")
@example("User-agent: *\nDisallow: \nUser-agent foo: bar\nDisallow: /", ["a"], "/")
@example("User-agent: *\nDisallow: */", [""], "")
@example("User-agent: *\nDisallow: *A", ["http://"], "/")
@given(
    st.lists(LINES, max_size=8).map(lambda lines: "\n".join(["User-agent: *", *lines])),
    st.lists(PATHS, min_size=3, max_size=6),
    st.sampled_from(["/", "", "?"]),
)
def test_what_may_be_disallowed_is_never_missed(text: str, paths: list[str], separator: str) -> None:
    """The survey asks about every URL that protego disallows to one of the crawlers."""
    rules = RobotsRules("https://h.example/robots.txt", [text.encode()])
    judge = Protego.parse(text)
    options = SurveyOptions(may_disallow=rules.may_disallow)
    for path in paths:
        url = f"https://h.example{separator}{path}"
        if separator:  # else it may be on another host
            assert rules.is_disallowed(url) is not all(judge.can_fetch(url, crawler) for crawler in CRAWLERS)
        assert may_be_disallowed(url, options) or not rules.is_disallowed(url)


def test_rules_of_other_agents_cost_nothing() -> None:
    """Rules for other crawlers are dropped, so that a total ban of one of them costs nothing."""
    text = "User-agent: bad\nDisallow: /\n\nUser-agent: *\nUser-agent: x\nDisallow: /a*b$\n\nUser-agent: y\nDisallow: /"
    assert list(disallowed_patterns(text)) == ["/a*b$"]
    named = "\n\nUser-agent: Googlebot\nDisallow: /g\n\nUser-agent: Googlebot-Image\nDisallow: /i\n"
    assert list(disallowed_patterns(text + named)) == ["/a*b$", "/g"]
    # Where both are named, what is for all others does not matter.
    assert list(disallowed_patterns(f"{text}{named}\nUser-agent: bingbot\nDisallow: /b")) == ["/g", "/b"]
    assert literal_parts("https://h", "/a*b%2Fc$") == ("https://h/a", "b", "c")


class TestDiscovery:
    """How sitemaps are found."""

    PAGES = urlset_of(url_of("a"))

    def test_unnamed(self) -> None:
        """R705: robots.txt should name a guessed sitemap, unless it is a feed or robots.txt is not known."""
        site = {"robots.txt": "User-agent: *\n", "sitemap.xml": self.PAGES}
        assert found_in(check_site(site, use_known_paths=True)) == [("sitemap.xml", "R705", None, None)]
        named = site | {"robots.txt": robots_of("sitemap.xml")}
        assert found_in(check_site(named, use_known_paths=True)) == []
        assert found_in(check_site(site, use_known_paths=True, use_robots=False)) == []
        feed = {
            "robots.txt": "User-agent: *\n",
            "sitemap.xml": f"<rss><channel><item><link>{HOME}a</link></item></channel></rss>",
        }
        assert found_in(check_site(feed, use_known_paths=True)) == []
        unnamed = site | {"sitemap_index.xml": index(f"{HOME}sitemap.xml")}
        assert found_in(check_site(unnamed, use_known_paths=True)) == [("sitemap_index.xml", "R705", None, None)]
        looped = site | {"sitemap.xml": index(f"{HOME}sitemap.xml", f"{HOME}a.xml"), "a.xml": self.PAGES}
        (problem,) = (found for found in check_site(looped, use_known_paths=True).problems() if found.code == "R705")
        assert problem.message == (
            f'no robots.txt names this sitemap; add the line "Sitemap: {HOME}sitemap.xml" to robots.txt'
        )
        missing = site_of({"sitemap.xml": self.PAGES, "robots.txt": None})
        assert [code for _, code, _, _ in found_in(check_homepage(HOME, missing, now=NOW))] == ["R705"]

    def test_robots_txt_that_fails(self) -> None:
        """R704 is reported, and no problem that only a robots.txt could prevent."""
        with serve(
            {
                "/sitemap.xml": (200, {"Content-Type": "text/xml"}, urlset("{base}/a").encode()),
                "/robots.txt": (500, {}, b""),
            }
        ) as site:
            report = check_homepage(site.url, politeness=Politeness(tries=1))
        assert [code for _, code, _, _ in found_in(report)] == ["R704"]
        assert report.is_reached

    def test_nothing_there(self) -> None:
        """A site without sitemaps is reached if it answers."""
        assert check_site({"robots.txt": "User-agent: *\n"}).is_reached
        assert check_site({"robots.txt": None}).is_reached
        assert not check_homepage(HOME, FakeClient(lambda url: OSError("no route")), now=NOW).is_reached

    @pytest.mark.parametrize(
        ("files", "options", "codes"),
        [
            ({"robots.txt": "User-agent: *\n"}, {}, ["R711"]),
            ({"robots.txt": "User-agent: *\n"}, {"use_known_paths": False}, []),
            ({"robots.txt": "User-agent: *\n"}, {"use_robots": False}, []),
            ({"robots.txt": robots_of("a.xml")}, {}, ["R706"]),
            ({"robots.txt": robots_of("a.xml")}, {"recurse_callback": lambda *_: False}, []),
            ({"robots.txt": "User-agent: *\n", "sitemap.xml": urlset_of(url_of("a"))}, {}, ["R705"]),
            ({"robots.txt": OSError("no route")}, {}, ["R704"]),
        ],
    )
    def test_no_sitemap(self, files: dict[str, Any], options: dict[str, Any], codes: list[str]) -> None:
        """R711: a site without a sitemap has a problem at its root, if usp looked everywhere."""
        report = check_site(files, **{"use_known_paths": True, **options}, politeness=Politeness(tries=1))
        assert [problem.code for problem in report.problems()] == codes
        assert "R711" not in codes or found_in(report) == [(HOME, "R711", None, None)]

    @pytest.mark.parametrize("status", [401, 403, 429, 451])
    @pytest.mark.slow
    def test_blocked_robots_txt(self, status: int) -> None:
        """R713: a robots.txt that nobody may read is no reason to tell a site to make a sitemap, or to name its own."""
        urls = urlset("{base}/a").encode()
        pages = {"/robots.txt": (status, {}, b""), "/sitemap.xml": (200, {"Content-Type": "text/xml"}, urls)}
        with serve(pages) as site:
            found = check_homepage(site.url, politeness=Politeness(tries=1))
            del pages["/sitemap.xml"]
            alone = check_homepage(site.url, politeness=Politeness(tries=1))
        for report, kind in ((found, "partial"), (alone, "blocked")):
            (problem,) = report.problems()
            assert problem.code == "R713"
            assert problem.message.startswith(f"robots.txt answered {status} ")
            assert (report.outcome.kind, report.is_reached) == (kind, True)

    @pytest.mark.parametrize("path", ["sitemap.xml", "sitemap_index.xml", "sitemap_news.xml.gz"])
    @pytest.mark.parametrize("status", [403, 503])
    def test_blocked_known_path(self, path: str, status: int) -> None:
        """R714: nor is a usual place that could not be fetched. It is reported itself."""
        with serve({"/robots.txt": (200, {"Content-Type": "text/plain"}, b""), f"/{path}": (status, {}, b"")}) as site:
            report = check_homepage(site.url, politeness=Politeness(tries=1))
        (problem,) = report.problems()
        assert (problem.code, report.outcome.kind) == ("R714", "blocked")
        assert problem.message.startswith(f"{site.url}/{path} could not be fetched: {status} ")

    def test_blocked_sitemaps(self) -> None:
        """R706: sitemaps that robots.txt names and that are blocked are reported, and no usual place."""
        robots = b"Sitemap: {base}/a.xml\n"
        pages = {"/robots.txt": (200, {"Content-Type": "text/plain"}, robots), "/a.xml": (403, {}, b"")}
        with serve(pages | {"/sitemap.xml": (403, {}, b"")}) as site:
            report = check_homepage(site.url, politeness=Politeness(tries=1))
        assert (list(report.counts()), report.outcome.kind) == (["R706"], "blocked")

    def test_no_sitemap_in_a_site_without_robots_txt(self) -> None:
        """R711: a site without robots.txt has it too, but not a tree that the caller may have cut."""
        pages: dict[str, tuple[int, dict[str, str], bytes]] = {}
        with serve(pages) as site:
            assert list(check_homepage(site.url).counts()) == ["R711"]
            assert not check_tree(sitemap_tree_for_homepage(site.url), now=NOW).counts()

    def test_no_sitemap_in_a_folder(self, tmp_path: Path) -> None:
        """R711: a folder with only a robots.txt has it too."""
        (tmp_path / "robots.txt").write_text("User-agent: *\n", "utf-8")
        assert [problem.code for problem in check_path(tmp_path, url=HOME, now=NOW).problems()] == ["R711"]

    def test_missing(self) -> None:
        """R706, T807: sitemaps that robots.txt names, or an index lists, can be fetched."""
        site = {"robots.txt": robots_of("a.xml", "index.xml"), "index.xml": index(f"{HOME}b.xml")}
        assert found_in(check_site(site)) == [("robots.txt", "R706", 3, 10), ("index.xml", "T807", 1, 81)]
        assert found_in(check_site(site | {"a.xml": self.PAGES, "b.xml": urlset_of(url_of("b"))})) == []

    def test_web_pages(self) -> None:
        """R706, T807: what can be fetched and is a web page is called no sitemap, with the reason."""
        site = {"robots.txt": robots_of("a.xml", "index.xml"), "index.xml": index(f"{HOME}b.xml")}
        report = check_site(site | {"a.xml": "<html/>", "b.xml": "<html/>"})
        why = "which is no sitemap: its root element is <html>"
        assert sorted((problem.code, problem.message) for problem in report.problems()) == [
            ("R706", f"robots.txt names {HOME}a.xml, {why}"),
            ("T807", f"index.xml lists {HOME}b.xml, {why}"),
        ]

    def test_what_led_to_the_missing(self) -> None:
        """R706, T807: the message has the URL as it is listed, and the answer of the server."""
        robots = b"User-agent: *\nSitemap: {base}/old.xml\nSitemap: {base}/i.xml\n"
        moved = (301, {"Location": "/error"}, b"")
        pages = {
            "/robots.txt": (200, {"Content-Type": "text/plain"}, robots),
            "/i.xml": (200, {"Content-Type": "text/xml"}, index("{base}/older.xml", "{base}/page.xml").encode()),
            "/old.xml": moved,
            "/older.xml": moved,
            "/page.xml": (200, {"Content-Type": "text/html"}, b"<!DOCTYPE html><html><body>&</body></html>"),
        }
        with serve(pages) as site:
            found = [(each.code, each.message) for each in check_homepage(site.url, use_known_paths=False).problems()]
            assert found == [
                ("R706", f"robots.txt names {site.url}/old.xml, which could not be fetched: 404 Not Found"),
                ("T807", f"i.xml lists {site.url}/older.xml, which could not be fetched: 404 Not Found"),
                ("T807", f"i.xml lists {site.url}/page.xml, which is no sitemap: its root element is <html>"),
            ]

    def test_loops(self) -> None:
        """P434: an index that lists itself is reported."""
        site = {"robots.txt": robots_of("a.xml"), "a.xml": index(f"{HOME}a.xml", f"{HOME}b.xml"), "b.xml": self.PAGES}
        report = check_site(site)
        assert found_in(report) == [("a.xml", "P434", 1, 81)]
        assert next(report.problems()).message.startswith("a.xml lists itself; ")

    @pytest.mark.parametrize(
        "options",
        [
            {"limits": Limits(max_sitemaps=2)},
            {"limits": Limits(max_depth=1)},
            {"cross_host": "same-host"},
            {"recurse_callback": lambda url, level, above: "b.xml" not in url},
        ],
        ids=["sitemaps", "depth", "host", "callback"],
    )
    def test_what_was_not_asked_for(self, options: dict[str, Any]) -> None:
        """Sitemaps that a limit or an option skipped are not reported."""
        site = {
            "robots.txt": robots_of("i.xml"),
            "i.xml": index("https://example.com/c.xml", f"{HOME}b.xml"),
            "b.xml": index(f"{HOME}c.xml"),
        }
        found = {(name, code) for name, code, _, _ in found_in(check_site(site, **options))}
        assert found & {("b.xml", "T807"), ("c.xml", "T807")} == (
            {("b.xml", "T807")} if "cross_host" in options else set()
        )
        assert (
            ("https://example.com/c.xml", "T807") not in found or "limits" in options or "recurse_callback" in options
        )

    def test_unfetched_children_of_files(self) -> None:
        """For a file nothing is fetched, so the sitemaps that it lists are not reported."""
        assert not check_bytes(index(f"{HOME}a.xml").encode(), now=NOW).counts()

    def test_index_in_index(self) -> None:
        """P417: an index lists no indexes, but robots.txt may name several."""
        site = {
            "robots.txt": robots_of("a.xml"),
            "a.xml": index(f"{HOME}b.xml"),
            "b.xml": index(f"{HOME}c.xml"),
            "c.xml": self.PAGES,
        }
        report = check_site(site)
        assert found_in(report) == [("b.xml", "P417", None, None)]
        assert "the index a.xml;" in next(report.problems()).message
        assert (
            found_in(check_site(site | {"robots.txt": robots_of("a.xml", "b.xml"), "a.xml": index(f"{HOME}c.xml")}))
            == []
        )

    def test_redirects(self) -> None:
        """R707, T809: robots.txt and indexes have the final URLs of sitemaps, not URLs that redirect."""
        moved = (301, {"Location": "/new.xml"}, b"")
        pages = {
            "/robots.txt": (
                200,
                {"Content-Type": "text/plain"},
                b"User-agent: *\nSitemap: {base}/old.xml\nSitemap: {base}/i.xml\n",
            ),
            "/i.xml": (200, {"Content-Type": "text/xml"}, index("{base}/older.xml").encode()),
            "/old.xml": moved,
            "/older.xml": (301, {"Location": "/newer.xml"}, b""),
            "/new.xml": (200, {"Content-Type": "text/xml"}, urlset("{base}/a").encode()),
            "/newer.xml": (200, {"Content-Type": "text/xml"}, urlset("{base}/b").encode()),
        }
        with serve(pages) as site:
            report = check_homepage(site.url, use_known_paths=False)
            assert found_in(report) == [("new.xml", "R707", None, None), ("newer.xml", "T809", None, None)]
            assert f"i.xml lists {site.url}/older.xml," in [*report.problems()][1].message

    def test_long_robots_txt(self) -> None:
        """R708: a robots.txt has 500 KiB at most."""
        robots = robots_of("a.xml")
        long = robots + "#" * 99 + "\n" + ("#" * 99 + "\n") * ((512_000 - len(robots)) // 100)
        assert found_in(check_site({"robots.txt": long, "a.xml": self.PAGES})) == [("robots.txt", "R708", None, None)]
        assert found_in(check_site({"robots.txt": long[:512_000], "a.xml": self.PAGES})) == []


def link(language: str, path: str) -> str:
    return f'<xhtml:link rel="alternate" hreflang="{language}" href="{HOME}{path}"/>'


def linked(path: str, *languages: str) -> str:
    """Return a page with alternates path-de, path-en and so on; it is the version in the first language."""
    links = [link(language, f"{path}-{language}") for language in languages]
    return url_of(f"{path}-{languages[0]}", *links, link("x-default", ""))


def links_found(*sitemaps: str, surveyors: Surveyors = SURVEYORS) -> list[tuple[str, str, int | None]]:
    files = {f"{number}.xml": sitemap for number, sitemap in enumerate(sitemaps)}
    tree = sitemap_tree_for_homepage(HOME, site_of(files), use_known_paths=False)
    report = report_of(tree, SiteTables(surveyors=surveyors))
    return [(name, code, line) for name, code, line, _ in found_in(report)]


@CHOICES
class TestReturnLinks:
    """H633: a page that is the alternate of another links back."""

    def test_complete(self, surveyors: Surveyors) -> None:
        """If all versions list all versions, in one sitemap or in several, nothing is missing."""
        sets = [
            [linked(str(n), *order) for order in (("de", "en", "fr"), ("en", "de", "fr"), ("fr", "en", "de"))]
            for n in range(50)
        ]
        assert links_found(urlset_of(*(page for pages in sets for page in pages)), surveyors=surveyors) == []
        assert links_found(*(urlset_of(*column) for column in zip(*sets, strict=True)), surveyors=surveyors) == []

    def test_missing(self, surveyors: Surveyors) -> None:
        """A version that does not list a page is reported at the link of that page."""
        pages = [linked("a", "de", "en", "fr"), linked("a", "en", "fr"), linked("a", "fr", "en", "de")]
        document = urlset_of(linked("b", "de"), *pages)
        assert links_found(document, surveyors=surveyors) == [("0.xml", "H633", 3)]
        tree = sitemap_from_bytes(document.encode(), f"{HOME}0.xml")
        (problem,) = report_of(tree, SiteTables(surveyors=surveyors)).problems()
        assert problem.text == f"{HOME}a-en"
        assert problem.column == document.splitlines()[2].index('<xhtml:link rel="alternate" hreflang="en"') + 1

    def test_without_alternates(self, surveyors: Surveyors) -> None:
        """A version without any links does not link back, in whichever sitemap."""
        page, bare = linked("a", "de", "en"), url_of("a-en")
        for sitemaps in ((page, bare), (bare, page)):
            name = f"{sitemaps.index(page)}.xml"
            assert links_found(*map(urlset_of, sitemaps), surveyors=surveyors) == [(name, "H633", 2)]
        alone = linked("a", "en")
        assert links_found(urlset_of(page, alone), surveyors=surveyors) == [("0.xml", "H633", 2)]

    def test_not_listed(self, surveyors: Surveyors) -> None:
        """A version that no sitemap lists is not reported."""
        assert links_found(urlset_of(linked("a", "de", "en")), surveyors=surveyors) == []

    def test_listed_twice(self, surveyors: Surveyors) -> None:
        """If a page is listed twice, either of its entries may link back."""
        whole = [linked("a", "de", "en"), linked("a", "en", "de")]
        found = links_found(urlset_of(*whole), urlset_of(linked("a", "en")), surveyors=surveyors)
        assert [code for _, code, _ in found] == ["P419"]
        found = links_found(urlset_of(*whole), urlset_of(*whole), surveyors=surveyors)
        assert [code for _, code, _ in found] == ["P419", "P419"]

    def test_the_default_need_not(self, surveyors: Surveyors) -> None:
        """The x-default page need not link back, but a link as x-default counts as a link."""
        page = url_of("x", link("en", "x"), link("x-default", "y"))
        other = url_of("y", link("de", "y"), link("x-default", "x"))
        assert links_found(urlset_of(page, url_of("y")), surveyors=surveyors) == []
        assert links_found(urlset_of(page, other), surveyors=surveyors) == []

    def test_many(self, surveyors: Surveyors) -> None:
        """All missing links are counted, and those that are kept have places."""
        pages = [page for n in range(100) for page in (linked(str(n), "de", "en"), linked(str(n), "en"))]
        tree = sitemap_from_bytes(urlset_of(*pages).encode(), f"{HOME}0.xml")
        report = report_of(tree, SiteTables(surveyors=surveyors))
        assert report.counts() == {"H633": 100}
        assert [problem.line for problem in report.problems()] == list(range(2, 42, 2))

    def test_too_many(self, surveyors: Surveyors) -> None:
        """C902: beyond the limit, only certain problems are reported, and the limit is."""
        pages = [page for n in range(10) for page in (linked(str(n), "de", "en", "fr"), linked(str(n), "en", "fr"))]
        tables = SiteTables(surveyors=surveyors)
        three_pages = 3 * 4  # links
        tables.returns = ReturnLinks(surveyors, tables.pages, tables.stories, max_links=three_pages)
        tree = sitemap_tree_for_homepage(HOME, site_of({"0.xml": urlset_of(*pages)}), use_known_paths=False)
        assert report_of(tree, tables).counts() == {"H633": 3, "C902": 1}


@pytest.mark.slow
@settings(max_examples=150)
@given(st.lists(st.tuples(st.integers(0, 4), st.sets(st.integers(0, 4))), max_size=12), st.integers(1, 3))
@pytest.mark.parametrize("surveyors", [PURE_SURVEYORS, SURVEYORS], ids=["pure", "chosen"])
def test_return_links_are_those_of_a_plain_table(
    surveyors: Surveyors, pages: list[tuple[int, set[int]]], sitemaps: int
) -> None:
    """The passes in bounded memory find what a table of all pages finds."""
    codes = ("de", "en", "fr", "it", "es")

    def entry(page: int, links: set[int]) -> str:
        shown = "".join(f'<xhtml:link rel="alternate" hreflang="{codes[n]}" href="{HOME}{n}"/>' for n in sorted(links))
        return url_of(str(page), shown)

    table: dict[int, set[int]] = {}
    for page, links in pages:
        table.setdefault(page, set()).update(links)
    expected: Counter[int] = Counter()
    for page, links in pages:
        expected[page] += sum(n in table and page not in table[n] for n in links if n != page)
    parts = [urlset_of(*(entry(*page) for page in pages[n::sitemaps])) for n in range(sitemaps)]
    tree = sitemap_tree_for_homepage(
        HOME, site_of({f"{n}.xml": part for n, part in enumerate(parts)}), use_known_paths=False
    )
    report = report_of(tree, SiteTables(surveyors=surveyors))
    assert report.counts()["H633"] == expected.total()


def test_full_table() -> None:
    """C902: if there are too many pages to remember, that is reported, and all pages are counted."""
    tables = SiteTables()
    tables.pages = tables.surveyors.url_table(64)
    tree = sitemap_tree_for_homepage(
        HOME, site_of({"a.xml": urlset_of(*(url_of(str(n)) for n in range(500)))}), use_known_paths=False
    )
    report = report_of(tree, tables)
    assert report.counts() == {"C902": 1}
    assert report.pages == 500


def test_trees_that_were_cut() -> None:
    """A tree that was cut at a limit has a problem, and its number of pages is right."""
    report = check_site({"a.xml": urlset_of(*(url_of(str(n)) for n in range(9)))}, limits=Limits(max_pages=4))
    assert {(name, code) for name, code, _, _ in found_in(report)} == {(HOME, "C901"), ("a.xml", "C901")}
    assert report.pages == 4


def test_trees_without_documents() -> None:
    """In a tree without documents, URLs and dates are checked, and its problems are kept."""
    page = SitemapPage(f"{HOME}a b")
    tree = IndexWebsiteSitemap(HOME, [PagesXMLSitemap(f"{HOME}sitemap.xml", [page, page])])
    assert found_in(check_tree(tree, now=NOW).selected(["U", "P"])) == [
        ("sitemap.xml", "U504", None, None),
        ("sitemap.xml", "P418", None, None),
        ("sitemap.xml", "U504", None, None),
    ]
    client = site_of({"a.xml": urlset_of(url_of("1 2", "<lastmod>2030-01-01</lastmod><priority>9</priority>"))})
    whole = sitemap_tree_for_homepage(HOME, client, use_known_paths=False)
    expected = check_tree(whole, now=NOW).counts()
    assert (
        check_tree(pickle.loads(pickle.dumps(whole)), now=NOW).counts()
        == expected
        == Counter({"P406": 1, "U504": 1, "L303": 1})
    )


def test_folders_of_files(tmp_path: Any) -> None:
    """A folder is checked as a site; a missing robots.txt is not reported."""
    (tmp_path / "sitemap.xml").write_text(index(f"{HOME}maps/a.xml"), "utf-8")
    (tmp_path / "maps").mkdir()
    (tmp_path / "maps" / "a.xml").write_text(urlset_of(url_of("1"), url_of("1")), "utf-8")
    report = check_path(tmp_path, now=NOW)
    assert found_in(report) == [(str(tmp_path / "maps" / "a.xml"), "P418", 3, 11)]
    (tmp_path / "robots.txt").write_text("User-agent: *\n", "utf-8")
    assert {code for _, code, _, _ in found_in(check_path(tmp_path, now=NOW))} == {"P418", "R705"}


def test_alternates() -> None:
    """Only links with rel=alternate, a language and a URL count; relative URLs are resolved."""
    entry = Element("url", Kind(), 0, {})
    for attributes in (
        {"rel": "alternate", "hreflang": "de", "href": f"{HOME}a"},
        {"rel": "nofollow Alternate", "hreflang": "en", "href": "/b?x&amp;y"},
        {"hreflang": "X-DEFAULT", "href": f"{HOME}c"},
        {"rel": "stylesheet", "hreflang": "fr", "href": f"{HOME}d"},
        {"rel": "alternate", "href": f"{HOME}e"},
        {"rel": "alternate", "hreflang": "it", "href": "mailto:f"},
    ):
        entry.children.append(Element("link", Kind(), 7, attributes))
    found = alternates_of(entry, f"{HOME}sitemap.xml")
    assert [(alternate.language, alternate.url) for alternate in found] == [
        ("de", f"{HOME}a"),
        ("en", f"{HOME}b?x&y"),
        ("X-DEFAULT", f"{HOME}c"),
    ]
    assert [alternate.is_default for alternate in found] == [False, False, True]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_sitemaps() -> None:
    """A checked sitemap leaves nothing in memory but its problems."""
    files = {
        f"{name}.xml.gz": gzip.compress(
            urlset_of(*(url_of(f"{name}/{n}" + "-" * 60) for n in range(12_000))).encode(), 1
        )
        for name in range(30)
    }
    tree = sitemap_tree_for_homepage(HOME, site_of(files), use_known_paths=False)
    tracemalloc.start()
    try:
        report = check_tree(tree, now=NOW)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert report.pages == 360_000
    assert not report.counts()
    assert peak < (20e6 if IS_COMPILED else 200e6)  # in Python, the table of URLs is a dictionary


class Slow(FakeClient):
    """A client that answers in reverse order."""

    is_thread_safe = True

    def get(self, url: str) -> AbstractWebClientResponse:
        """Answer after a while."""
        number = re.search(r"(\d)\.xml", url)
        time.sleep(0.02 * (9 - int(number[1])) if number else 0)
        return super().get(url)


def test_checked_while_it_is_fetched() -> None:
    """Sitemaps are checked in the order of the tree, whatever the order of answers, as they would be afterwards."""
    shared = [url_of(f"shared-{n}") for n in range(30)]
    files = {f"s{n}.xml": urlset_of(*shared, url_of(f"only-{n}"), url_of(f"bad-{n}#x")) for n in range(8)}
    files["0.xml"] = index(*(f"{HOME}s{n}.xml" for n in range(8)))
    site = {HOME + name: response(name, body) for name, body in files.items()}
    site[f"{HOME}robots.txt"] = response("robots.txt", f"User-agent: *\nDisallow: /only-3\nSitemap: {HOME}0.xml\n")
    early = check_homepage(HOME, Slow(site), now=NOW, use_known_paths=False)
    afterwards = check_tree(sitemap_tree_for_homepage(HOME, FakeClient(site), use_known_paths=False), now=NOW)
    assert [sitemap.name for sitemap in early.sitemaps] == [
        HOME,
        "robots.txt",
        "0.xml",
        *(f"s{n}.xml" for n in range(8)),
    ]
    assert early.counts() == {"R709": 1, "P419": 7 * 30, "U510": 8}
    assert {p.url for p in early.problems() if p.code == "P419"} == {f"{HOME}s{n}.xml" for n in range(1, 8)}
    assert early == afterwards


def test_names_that_are_commands() -> None:
    """The short name of a sitemap is never a command in the log of a build."""
    report = check_site({"::error::x.xml": urlset_of(url_of("a#b"))})
    assert [sitemap.name for sitemap in report.sitemaps][-1] == f"{HOME}::error::x.xml"


@pytest.mark.slow
def test_many_rules_and_user_agents() -> None:
    """Only a bounded part of a very long robots.txt is used, and that is reported."""
    agents = "".join(f"User-agent: a{n}\n" for n in range(2_000))
    rules = "".join(f"Disallow: /*x{n}y\n" for n in range(2_000))
    robots = f"{agents}User-agent: *\nDisallow: /no/\n{rules}Sitemap: {HOME}s.xml\n"
    pages = urlset_of(*(url_of(f"{'no/' * (n % 50 == 0)}{n}%20") for n in range(1_000)))
    started = time.process_time()
    report = check_site({"robots.txt": robots, "s.xml": pages})
    assert time.process_time() - started < 10
    assert report.counts() == {"R709": 20, "C902": 1}


def test_rules_for_others_do_not_matter() -> None:
    """A rule applies to the user agents of its group, however many others there are."""
    others = "User-agent: gptbot\nUser-agent: ccbot\nDisallow: /\n\n"
    robots = f"{others}User-agent: x\nUser-agent: *\nUser-agent: y\nDisallow: /a\n\n{others}Sitemap: {HOME}s.xml\n"
    report = check_site({"robots.txt": robots, "s.xml": urlset_of(url_of("a"), url_of("b"))})
    assert found_in(report) == [("s.xml", "R709", 2, 11)]
