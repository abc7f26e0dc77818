"""`usp check --probe`: which pages are fetched, what is found in them, limits, caches and tables."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clocks import within
from commands import RunHere, environment
from faults import FaultServer, Handler, Request, ok, serve_faults, status
from usp.check import Probe, ProbeProgress, Report, check
from usp.check.probing.cache import FactsCache
from usp.check.probing.page import Html, PageFacts, html_reader, is_noindex
from usp.check.probing.sample import quotas
from usp.check.probing.table import COLUMNS
from usp.drivers.options import Options
from usp.exceptions import InvalidArgumentError, TreeInterrupted
from usp.export.formats import TABLE_FORMATS
from usp.limits import Limits
from usp.objects.problem import Problem
from usp.politeness import Politeness
from usp.tree import stream_sitemaps_for_homepage
from usp.web_client.policy import RefusedError
from usp.webpages import MAX_BYTES, fetch_pages

pytestmark = pytest.mark.network

XMLNS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def urlset(*entries: str) -> str:
    listed = "".join(f"<url>{entry}</url>\n" for entry in entries)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset {XMLNS}>\n{listed}</urlset>\n'


def loc(path: str, lastmod: str = "") -> str:
    return f"<loc>{{base}}{path}</loc>{lastmod and f'<lastmod>{lastmod}</lastmod>'}"


def page(title: str = "Rivers", head: str = "", body: str = "", **headers: str) -> Handler:
    html = f"<!doctype html><html><head><title>{title}</title>{head}</head><body><h1>{title}</h1>{body}</body></html>"
    return ok(html, Content_Type="text/html; charset=utf-8", **headers)


def site_of(pages: dict[str, Handler], *entries: str, robots: str = "User-agent: *\nAllow: /\n") -> dict[str, Handler]:
    """A site with one sitemap, and these pages; without entries, the sitemap lists all of them."""
    listed = entries or tuple(map(loc, pages))
    return {
        "/robots.txt": ok(f"{robots}\nSitemap: {{base}}/sitemap.xml\n", Content_Type="text/plain"),
        "/sitemap.xml": ok(urlset(*listed), Content_Type="application/xml"),
        **pages,
    }


def large_site(sitemaps: int = 4, each: int = 30) -> dict[str, Handler]:
    """A site with an index and sitemaps of different sizes: the first has two pages."""
    sizes = [2, *[each] * (sitemaps - 1)]
    index = "".join(f"<sitemap><loc>{{base}}/s{number}.xml</loc></sitemap>" for number in range(sitemaps))
    site = {
        "/robots.txt": ok("User-agent: *\nAllow: /\n\nSitemap: {base}/index.xml\n", Content_Type="text/plain"),
        "/index.xml": ok(f"<sitemapindex {XMLNS}>{index}</sitemapindex>", Content_Type="application/xml"),
    }
    for number, size in enumerate(sizes):
        paths = [f"/{number}/{one}" for one in range(size)]
        site[f"/s{number}.xml"] = ok(urlset(*map(loc, paths)), Content_Type="application/xml")
        site |= {path: page(f"Page {path}") for path in paths}
    return site


def probed(server: FaultServer, probe: Probe | Any = "all", **options: Any) -> Report:
    return check(f"{server.url}/", probe=probe, **options)


def found(report: Report) -> list[Problem]:
    return [problem for problem in report.problems() if problem.code.startswith("W")]


def codes(report: Report) -> list[tuple[str, str]]:
    """Return the codes of pages, with the paths that they are about."""
    return [(problem.code, "/" + problem.text.split("/", 3)[3]) for problem in found(report)]


def asked(server: FaultServer) -> list[str]:
    return [path for _, path in server.asked]


def pages_asked(server: FaultServer) -> list[str]:
    """Return the pages two folders deep that were requested, as those of `large_site`."""
    return [path for path in asked(server) if path.count("/") == 2 and path != "/sitemap/sitemap-index.xml"]


# Which pages


@given(st.lists(st.integers(0, 60), max_size=12), st.integers(0, 400))
def test_quotas_are_fair(sizes: list[int], wanted: int) -> None:
    """All wanted pages are given. No sitemap gives more than it has, and those that have more left give the most."""
    shares = quotas(sizes, wanted)
    assert sum(shares) == min(wanted, sum(sizes))
    assert all(0 <= share <= size for share, size in zip(shares, sizes, strict=True))
    limited = [share for share, size in zip(shares, sizes, strict=True) if share < size]
    assert not shares or not limited or max(shares) - min(limited) <= 1


def test_a_sample_is_spread_over_sitemaps() -> None:
    """Each sitemap gives as many pages, and small ones all that they have."""
    with serve_faults(large_site()) as server:
        report = probed(server, 20)
        assert Counter(path.split("/")[1] for path in pages_asked(server)) == {"0": 2, "1": 6, "2": 6, "3": 6}
    assert report.probed == 20
    assert "92 pages (20 probed)" in report.summary()


def test_the_same_seed_chooses_the_same_pages() -> None:
    """A sample depends on its seed and on the listed pages only; a larger one of the same seed has the smaller one."""
    samples = []
    with serve_faults(large_site()) as server:
        for probe in (Probe(20), Probe(20), Probe(20, seed=7), Probe(40)):
            server.asked.clear()
            probed(server, probe)
            samples.append(set(pages_asked(server)))
    first, again, other, larger = samples
    assert first == again != other
    assert first < larger


def test_a_page_of_several_sitemaps_is_fetched_once() -> None:
    """A page that two sitemaps list counts once, and another takes its place."""
    site = large_site(3, 10)
    site["/s1.xml"] = site["/s2.xml"]
    with serve_faults(site) as server:
        report = probed(server, 12)
        assert max(Counter(pages_asked(server)).values()) == 1
        assert len(pages_asked(server)) == report.probed == 12


def test_all_pages() -> None:
    """`all` fetches every page once."""
    with serve_faults(large_site()) as server:
        assert probed(server).probed == 92
        assert len(set(pages_asked(server))) == len(pages_asked(server)) == 92


# What is found


def test_problems_of_pages() -> None:
    """Each rule reports the page that breaks it, at its place in the sitemap."""
    pages = {
        "/good": page(head='<link rel="canonical" href="/good"><meta name="robots" content="index, nofollow">'),
        "/gone": status(410),
        "/moved": status(301, Location="{base}/good"),
        "/meta": page(head='<META NAME=GoogleBot CONTENT="NoIndex">'),
        "/header": page(X_Robots_Tag="otherbot: nofollow, googlebot: none"),
        "/other-bot": page(X_Robots_Tag="otherbot: noindex", head='<meta name="otherbot" content="noindex">'),
        "/twin": page(head='<link rel="canonical" href="good#top">'),
        "/header-twin": page(Link='</a.css>; rel=preload, <good>; rel="alternate canonical"'),
        "/nowhere": status(302),
        "/soft": page("Sorry, page not found - Example"),
        "/dated": page(head='<script type="application/ld+json">{"dateModified": "2020-01-02T03:04:05Z"}</script>'),
        "/modified": page(Last_Modified="Wed, 01 Jan 2020 00:00:00 GMT"),
        "/same-day": page(Last_Modified="Fri, 01 May 2026 20:00:00 GMT"),
    }
    dated = ("/dated", "/modified", "/same-day")
    entries = [loc(path, "2026-05-01" if path in dated else "") for path in pages]
    with serve_faults(site_of(pages, *entries)) as server:
        report = probed(server)
    assert codes(report) == [
        ("W801", "/gone"),
        ("W803", "/moved"),
        ("W804", "/meta"),
        ("W804", "/header"),
        ("W805", "/twin"),
        ("W805", "/header-twin"),
        ("W801", "/nowhere"),
        ("W807", "/soft"),
        ("W809", "/dated"),
        ("W809", "/modified"),
    ]
    lines = {problem.text.rpartition("/")[2]: (problem.line, problem.column) for problem in found(report)}
    assert lines["gone"] == (4, 11)
    assert lines["modified"] == (14, 11)
    by_code = {problem.code: problem.message for problem in found(report)}
    assert [problem.message for problem in found(report) if problem.code == "W801"] == [
        "the page answered 410 Gone; list only pages that exist",
        "the page answered 302 Words: it redirects without saying where; list only pages that exist",
    ]
    assert f"redirects to {server.url}/good" in by_code["W803"]
    assert f"canonical URL of the page is {server.url}/good" in by_code["W805"]


def test_pages_with_the_text_of_missing_ones() -> None:
    """If a site answers 200 for what does not exist, pages with that text are missing, whatever it says."""
    nothing = page("Welcome", body="<p>Start here.</p>")
    with serve_faults(site_of({"/good": page(), "/lost": nothing}), default=nothing) as server:
        report = probed(server)
    assert codes(report) == [("W807", "/lost")]


def test_alternates_that_do_not_link_back() -> None:
    """Versions in other languages are fetched, too, and have to link back."""

    def links(*paths: str) -> str:
        return "".join(f'<link rel="alternate" hreflang="{path[1:3]}" href="{{base}}{path}">' for path in paths)

    pages = {
        "/en": page(head=links("/en", "/de")),
        "/de": page(head=links("/en", "/de")),
        "/en/2": page(head=links("/en/2", "/fr/2")),
        "/fr/2": page("Rivières"),
        "/es/3": page(head=links("/es/3", "/pt/3")),
        "/pt/3": status(404),
    }
    with serve_faults(site_of(pages, loc("/en"), loc("/en/2"), loc("/es/3"))) as server:
        report = probed(server)
        assert codes(report) == [("W810", "/en/2")]
        assert f"{server.url}/fr/2" in found(report)[0].message
        assert max(Counter(asked(server)).values()) == 1


def test_pages_that_redirect_to_where_no_crawler_may_go() -> None:
    """A redirect to a disallowed page is reported as that; listed pages that are disallowed have their own code."""
    pages = {"/a": status(302, Location="{base}/private/a"), "/private/a": page(), "/private/b": page()}
    robots = "User-agent: *\nDisallow: /private/\n"
    with serve_faults(site_of(pages, loc("/a"), loc("/private/b"), robots=robots)) as server:
        report = probed(server)
    assert codes(report) == [("W806", "/a")]
    assert report.counts()["R709"] == 1


def test_robots_of_other_hosts() -> None:
    """The robots.txt of another host is asked once for the pages there."""
    with serve_faults({"/robots.txt": ok("User-agent: *\nDisallow: /no\n"), "/no": page(), "/yes": page()}) as other:
        entries = [f"<loc>{other.url}{path}</loc>" for path in ("/no", "/yes")]
        with serve_faults(site_of({"/good": page()}, loc("/good"), *entries)) as server:
            report = probed(server, cross_host="allow")
        assert codes(report) == [("W806", "/no")]
        assert other.count("/robots.txt") <= 2  # also for the rule on other hosts (U506)


def test_slow_pages() -> None:
    """A page that takes over three seconds is slow."""

    def slow(request: Request) -> None:
        request.pause(3.1)
        page()(request)

    with serve_faults(site_of({"/slow": slow, "/good": page()})) as server:
        assert codes(probed(server)) == [("W808", "/slow")]


# Guards and limits


def test_pages_on_private_hosts_are_not_requested() -> None:
    """A site must not make usp read from other private hosts, in its sitemaps or by a redirect."""
    pages = {"/away": status(302, Location="http://10.255.255.1/")}
    entries = (loc("/away"), "<loc>http://10.255.255.1/admin</loc>", "<loc>http://localhost:1/</loc>")
    with serve_faults(site_of(pages, *entries)) as server, within(20):
        report = probed(server, "all")
    messages = [problem.message for problem in found(report) if problem.code == "W802"]
    assert len(messages) == 3
    assert all("is not a public address" in message for message in messages)


@pytest.mark.parametrize(("first", "later"), [("93.184.216.34", "127.0.0.1"), ("10.0.0.5", "10.0.0.6")])
def test_a_host_cannot_change_its_address_before_its_pages_are_fetched(first: str, later: str) -> None:
    """The addresses that the homepage had for the tree hold for its pages."""
    options = Options()
    tree, pages = (options.policy("http://home.example/") for _ in range(2))
    assert tree.allowed_addresses("home.example", [first]) == [first]
    with pytest.raises(RefusedError):
        pages.allowed_addresses("home.example", [later])
    assert pages.allowed_addresses("home.example", [first]) == [first]
    assert Options().policy("http://home.example/").allowed_addresses("home.example", [later]) == [later]


def test_only_the_start_of_a_page_is_read() -> None:
    """256 KiB of a page are read, compressed or not. What comes later is not seen, and nothing raises."""
    import gzip

    large = "<p>rivers</p>" * 400_000 + '<meta name="robots" content="noindex">'
    bomb = gzip.compress(page_text(large).encode())
    pages = {
        "/large": page(body=large),
        "/bomb": ok(bomb, Content_Type="text/html", Content_Encoding="gzip"),
    }
    with serve_faults(site_of(pages)) as server:
        report = probed(server)
    assert codes(report) == []
    assert report.probed == 2
    assert MAX_BYTES == 256 * 1024


def page_text(body: str) -> str:
    return f"<!doctype html><html><head><title>Rivers</title></head><body>{body}</body></html>"


def test_the_time_of_the_tree_bounds_a_probe() -> None:
    """When the time is up, the rest of the sample is left out, and a note says so."""

    def slow(request: Request) -> None:
        request.pause(0.4)
        page()(request)

    pages: dict[str, Handler] = {f"/{number}": slow for number in range(60)}
    with serve_faults(site_of(pages)) as server:
        report = probed(server, limits=Limits(tree_seconds=2.0), concurrency=2)
    assert report.probed is not None
    assert 0 < report.probed < 60
    (note,) = [note for note in report.notes if "not probed" in note]
    assert note.startswith(f"{60 - report.probed} pages of the sample not probed: ")


def test_politeness_holds_for_pages() -> None:
    """Requests of pages are as far apart as those of sitemaps, and obey robots.txt if you ask for it."""
    pages = {f"/{number}": page() for number in range(5)} | {"/no": page()}
    robots = "User-agent: *\nDisallow: /no\n"
    with serve_faults(site_of(pages, robots=robots)) as server:
        started = time.monotonic()
        report = probed(server, politeness=Politeness(spacing=0.1), respect_robots=True, use_known_paths=False)
        assert time.monotonic() - started >= 0.5
        assert "/no" not in asked(server)
    assert report.probed == 5
    assert "1 page of the sample not probed: " in report.notes[-1]
    assert codes(report) == []  # R709 says that robots.txt disallows it


def test_what_is_no_url_of_the_web_is_not_requested() -> None:
    """Such a URL has a reason, and the others are fetched."""
    with serve_faults(site_of({"/good": page()})) as server, stream_sitemaps_for_homepage(f"{server.url}/") as stream:
        list(stream)
        urls = ["ftp://127.0.0.1/", f"{server.url}/good", "http://[/"]
        pages = sorted(fetch_pages(stream, urls, lambda content, kind: len(content)), key=lambda page: page.number)
    assert [one.status for one in pages] == [None, 200, None]
    assert [bool(one.reason) for one in pages] == [True, False, True]
    assert pages[1].content


def test_hosts_that_the_options_leave_out() -> None:
    """With cross_host, pages of other hosts are no part of the probe, and no problem of it."""
    entries = (loc("/good"), "<loc>http://other.example/</loc>")
    with serve_faults(site_of({"/good": page()}, *entries)) as server:
        report = probed(server, cross_host="same-host")
    assert report.probed == 1
    assert codes(report) == []


def test_failures_are_retried_like_those_of_sitemaps() -> None:
    """A page that answers 503 at first is asked again."""

    def busy(request: Request) -> None:
        (page() if request.number > 1 else status(503, Retry_After="0"))(request)

    with serve_faults(site_of({"/busy": busy})) as server:
        report = probed(server)
        assert server.count("/busy") == 2
    assert codes(report) == []


# HTML


@pytest.mark.parametrize(
    ("head", "noindex"),
    [
        ('<meta name="robots" content="noindex">', True),
        ('<meta name="ROBOTS" content="follow, NONE">', True),
        ('<meta name="bingbot" content="noindex">', True),
        ('<meta name="robots" content="noindexing">', False),
        ('<meta name="description" content="noindex">', False),
        ('<!-- <meta name="robots" content="noindex"> -->', False),
        ('<script>"<meta name=robots content=noindex>"</script>', False),
    ],
)
def test_noindex_in_html(head: str, noindex: bool) -> None:
    """Only elements count, as a browser sees them: no comments and no scripts."""
    read = html_reader()(f"<html><head>{head}</head><body>x</body></html>".encode(), "text/html")
    facts = PageFacts("http://h/", "http://h/", robots=read.robots)
    assert bool(is_noindex(facts)) is noindex


@pytest.mark.parametrize(
    ("header", "noindex"),
    [
        ("noindex", True),
        ("max-snippet: 20, noindex", True),
        ("unavailable_after: 25 Jun 2030 15:00:00 PST, none", True),
        ("googlebot: nofollow, noindex", True),
        ("otherbot: noindex, nofollow", False),
        ("otherbot: noindex, googlebot: noindex", True),
        ("", False),
    ],
)
def test_noindex_in_a_header(header: str, noindex: bool) -> None:
    """Rules after the name of a crawler are its own."""
    assert bool(is_noindex(PageFacts("http://h/", "http://h/", robots_tag=header))) is noindex


@pytest.mark.parametrize(
    ("content", "content_type", "title"),
    [
        ("<title>Flüsse</title>".encode("latin-1"), "text/html; charset=ISO-8859-1", "Flüsse"),
        ('<meta charset="windows-1252"><title>Flüsse</title>'.encode("cp1252"), "text/html", "Flüsse"),
        ("<title>Flüsse</title>".encode("utf-16"), "text/html", "Flüsse"),
        ("<title>Flüsse</title>".encode(), "text/html; charset=none-such", "Flüsse"),
        ("<title>Flüsse</title>".encode(), "text/html; charset=rot13", "Flüsse"),
        (b"<title>x</title>", "application/pdf", ""),
        (b"", "text/html", ""),
    ],
)
def test_encodings_of_pages(content: bytes, content_type: str, title: str) -> None:
    """The header decides, then the page; what is no HTML is not read."""
    assert html_reader()(content, content_type).title == title


@given(st.binary(max_size=400) | st.text(alphabet="<>/=\"' metalinkhrefrobots:-\x00é", max_size=400).map(str.encode))
def test_no_page_raises(content: bytes) -> None:
    """Whatever a page has, it is read."""
    assert isinstance(html_reader()(content, "text/html"), Html)


@pytest.mark.parametrize(
    "body",
    ["<div>" * 60_000, "<meta name=robots content=x>" * 9_000, "<a" * 100_000, '<link rel="alternate">' * 10_000],
)
def test_no_page_takes_long(body: str) -> None:
    """Deep and repeated elements are read in a moment, and bounded."""
    started = time.process_time()
    read = html_reader()(body.encode()[:MAX_BYTES], "text/html")
    assert time.process_time() - started < 2
    assert len(read.robots) <= 2_000


# Caches


def test_a_cache_saves_requests(tmp_path: Path) -> None:
    """Pages in the cache are not requested again, and give the same report."""
    cache = tmp_path / "pages.db"
    with serve_faults(large_site() | {"/1/3": status(404)}) as server:
        first = probed(server, Probe(30, cache=cache))
        asked = len(pages_asked(server))
        again = probed(server, Probe(30, cache=cache))
        assert len(pages_asked(server)) == asked == 30
        more = probed(server, Probe("all", cache=cache))
        assert len(pages_asked(server)) == 92
    assert again.sitemaps == first.sitemaps
    assert codes(more) == [("W801", "/1/3")]


def test_old_results_and_failures_are_not_used(tmp_path: Path) -> None:
    """Results older than a day, and pages that could not be reached, are fetched again."""
    now = datetime(2026, 11, 15, 12, tzinfo=UTC)
    path = tmp_path / "pages.db"
    with FactsCache(path, now) as cache:
        cache.put(
            PageFacts("http://h/1", "http://h/1", 200, fetched_at=now.isoformat(), alternates=(("de", "http://h/2"),))
        )
        cache.put(PageFacts("http://h/2", "http://h/2", None, "no answer", fetched_at=now.isoformat()))
    with FactsCache(path, now + timedelta(hours=23)) as cache:
        known = cache.get("http://h/1")
        assert known is not None
        assert known.alternates == (("de", "http://h/2"),)
        assert cache.get("http://h/2") is None
    with FactsCache(path, now + timedelta(hours=25)) as cache:
        assert cache.get("http://h/1") is None


def test_other_files_are_no_caches(tmp_path: Path) -> None:
    """A file that is something else is refused, and stays as it was."""
    path = tmp_path / "notes.txt"
    path.write_text("keep me " * 100)
    with pytest.raises(InvalidArgumentError, match="not a cache"):
        FactsCache(path, datetime.now(UTC))
    assert path.read_text() == "keep me " * 100
    with pytest.raises(OSError, match="No such folder"):
        FactsCache(tmp_path / "none" / "pages.db", datetime.now(UTC))


def test_a_probe_that_is_killed_goes_on(tmp_path: Path) -> None:
    """After SIGKILL, what had arrived is in the cache."""

    def slow(request: Request) -> None:
        request.pause(0.05)
        page()(request)

    pages: dict[str, Handler] = {f"/p/{number}": slow for number in range(60)}
    with serve_faults(site_of(pages)) as server:
        command = [sys.executable, "-m", "usp", "check", "-q", "-c", "2", "--probe", "all", "--probe-cache", "pages.db"]
        with subprocess.Popen([*command, f"{server.url}/"], cwd=tmp_path, env=environment()) as process:
            try:
                ends_at = time.monotonic() + 60
                while len(pages_asked(server)) < 20 and time.monotonic() < ends_at:
                    time.sleep(0.01)
            finally:
                process.kill()
        before = len(pages_asked(server))
        assert 20 <= before < 60
        done = subprocess.run([*command, f"{server.url}/"], cwd=tmp_path, env=environment(), timeout=60)
        assert done.returncode == 0
        again = len(pages_asked(server)) - before
    assert 60 - before <= again <= 60 - before + 4  # those under way are asked again


# Tables


@pytest.mark.parametrize("name", [name for name, one in TABLE_FORMATS.items() if one.name != "table"])
def test_tables_in_every_format(tmp_path: Path, name: str) -> None:
    """The table is written in the format of its name."""
    path = tmp_path / f"pages{TABLE_FORMATS[name].suffixes[0]}"
    with serve_faults(site_of({"/good": page(), "/gone": status(404)})) as server:
        probed(server, Probe("all", table=path))
    assert path.stat().st_size > 0
    if name == "csv":
        head, *rows = path.read_text().splitlines()
        assert head.split(",") == list(COLUMNS)
        assert len(rows) == 2
    elif name == "jsonl":
        good, gone = map(json.loads, path.read_text().splitlines())
        assert (good["status"], good["title"], good["codes"]) == (200, "Rivers", [])
        assert (gone["status"], gone["codes"]) == (404, ["W801"])


def test_the_table_has_the_codes_of_alternates(tmp_path: Path) -> None:
    """Codes that are found at the end are in the rows, too."""
    path = tmp_path / "pages.jsonl"
    link = '<link rel="alternate" hreflang="de" href="{base}/de">'
    with serve_faults(site_of({"/en": page(head=link), "/de": page()})) as server:
        probed(server, Probe("all", table=path))
    rows = {row["url"].rpartition("/")[2]: row for row in map(json.loads, path.read_text().splitlines())}
    assert rows["en"]["codes"] == ["W810"]
    assert rows["en"]["alternates"] == [f"{server.url}/de"]


# Commands and functions


@pytest.fixture
def usp(capsys: pytest.CaptureFixture[str]) -> RunHere:
    return RunHere(capsys)


def test_the_command(usp: RunHere, tmp_path: Path) -> None:
    """Problems of pages stand with those of their sitemap, and decide about the exit code."""
    with serve_faults(site_of({"/good": page(), "/gone": status(404)})) as server:
        done = usp("check", "--probe", "all", "--probe-out", str(tmp_path / "pages.csv"), f"{server.url}/")
    assert done.returncode == 1
    assert "sitemap.xml:4:11  error" in done.stdout
    assert "  W801  the page answered 404 Not Found" in done.stdout
    assert "2 pages (2 probed)" in done.stdout
    assert (tmp_path / "pages.csv").read_text().count("\n") == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--probe", "0"), "give a number of pages, 1 or more"),
        (("--probe", "some"), "give a number of pages"),
        (("--probe-seed", "1"), "--probe-seed needs --probe N"),
        (("--probe-out", "x.csv"), "--probe-out needs --probe N"),
        (("--probe", "1", "--probe-out", "x.unknown"), "No format has the ending of 'x.unknown'"),
        (("--probe", "1", "--probe-seed", "x"), "give an integer"),
    ],
)
def test_wrong_options(usp: RunHere, arguments: tuple[str, ...], message: str) -> None:
    """Wrong options are refused before anything is fetched."""
    done = usp("check", *arguments, "http://127.0.0.1:1/")
    assert done.returncode == 2
    assert message in done.stderr


def test_files_have_no_pages_to_probe(usp: RunHere, tmp_path: Path) -> None:
    """A folder is refused, and nothing is requested."""
    (tmp_path / "sitemap.xml").write_text(urlset("<loc>http://127.0.0.1:1/</loc>"))
    done = usp("check", "--probe", "3", str(tmp_path))
    assert done.returncode == 2
    assert "only pages of a site can be probed" in done.stderr


@pytest.mark.parametrize("pages", [0, -1, "some", True, 1.5])
def test_wrong_numbers_of_pages(pages: Any) -> None:
    """A number of pages is an integer from 1, or "all"."""
    with pytest.raises(InvalidArgumentError, match="pages of a probe"):
        Probe(pages)


def test_progress() -> None:
    """Progress counts up to the whole sample."""
    events: list[ProbeProgress] = []
    with serve_faults(large_site()) as server:
        probed(server, Probe(12, progress=events.append))
    assert [event.done for event in events] == list(range(1, 13))
    assert {event.total for event in events} == {12}


def test_ctrl_c_keeps_what_was_found(tmp_path: Path) -> None:
    """After Ctrl-C the report has the pages that were probed, and the table is not written."""

    def stop(event: ProbeProgress) -> None:
        if event.done == 2:
            raise KeyboardInterrupt

    pages = {"/gone": status(404), **{f"/{number}": page() for number in range(5)}}
    table = tmp_path / "pages.csv"
    with serve_faults(site_of(pages)) as server, pytest.raises(TreeInterrupted) as interrupted:
        probed(server, Probe("all", table=table, progress=stop))
    report = interrupted.value.report
    assert report is not None
    assert report.probed == 2
    assert codes(report) == [("W801", "/gone")]
    assert not table.exists()


def test_ctrl_c_on_the_command_line(tmp_path: Path) -> None:
    """The report has what was found, and the exit code is 130."""

    def slow(request: Request) -> None:
        request.pause(0.3)
        page()(request)

    with serve_faults(site_of({f"/p/{number}": slow for number in range(200)})) as server:
        command = [sys.executable, "-m", "usp", "check", "-c", "2", "--probe", "all", f"{server.url}/"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, env=environment(), **pipes) as process:  # type: ignore[call-overload]
            try:
                ends_at = time.monotonic() + 60
                while len(pages_asked(server)) < 6 and time.monotonic() < ends_at:
                    time.sleep(0.01)
                os.kill(process.pid, signal.SIGINT)
                out, err = process.communicate(timeout=30)
            finally:
                process.kill()
    assert process.returncode == 130
    assert "probed)" in out
    assert "interrupted" in err
