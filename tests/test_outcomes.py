"""How a run ends, over real sockets: each of the five outcomes, by every way that leads to it."""

from __future__ import annotations

import asyncio
import gzip
import pickle
import random
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

import usp.aio
from faults import (
    QUICK,
    Driver,
    FaultServer,
    Handler,
    HangUp,
    Request,
    each_driver,
    head,
    ok,
    reset,
    serve_faults,
    silent,
    status,
)
from sockets import self_signed, server_context
from support import FakeClient, index, urlset
from usp.documents import Document, Failure
from usp.drivers.options import homepage_walk
from usp.exceptions import TreeInterrupted
from usp.limits import Limits
from usp.objects.outcome import Cause, Missing, Outcome, OutcomeKind, TreeFacts, combined
from usp.objects.page import SitemapPage
from usp.objects.sitemap import (
    AbstractSitemap,
    IndexRobotsTxtSitemap,
    IndexWebsiteSitemap,
    IndexXMLSitemap,
    InvalidSitemap,
    PagesXMLSitemap,
)
from usp.objects.transport import Transport
from usp.tree import (
    sitemap_from_bytes,
    sitemap_from_file,
    sitemap_from_str,
    sitemap_tree_for_homepage,
    stream_sitemaps_for_homepage,
)
from usp.web_client.abstract_client import LocalWebClient

pytestmark = pytest.mark.network

COMPLETE, PARTIAL, BLOCKED, UNREACHABLE, EMPTY = OutcomeKind

GOOD = ok(urlset("http://x/good"))
HTML = ok("<!DOCTYPE html><html><body>A page</body></html>", Content_Type="text/html")
NO_NAMES = ok("User-agent: *\nAllow: /\n")
SHORT = Limits(request_seconds=0.2, tree_seconds=20)

Site = dict[str, Handler]


def named(*paths: str) -> Handler:
    """A robots.txt that names sitemaps."""
    return ok("".join(f"Sitemap: {{base}}{path}\n" for path in paths))


def listed(*paths: str) -> Handler:
    """An index that lists sitemaps."""
    return ok(index(*("{base}" + path for path in paths)))


def truncated(request: Request) -> None:
    """Send less than was promised, and hang up."""
    body = urlset("http://x/good", "http://x/bad")[:-40].encode()
    request.send(head(200, Content_Length=len(body) + 1_000) + body)
    raise HangUp


def tree_of(driver: Driver, site: Site, default: Handler | None = None, **options: Any) -> IndexWebsiteSitemap:
    """The tree of a site; paths without a handler are 404."""
    with serve_faults(site, default=default or status(404)) as server:
        return fetched(driver, server, **options)


def fetched(driver: Driver, server: FaultServer, **options: Any) -> IndexWebsiteSitemap:
    """The tree of a server, with short waits; URLs in its outcome start with {base}."""
    options = {"use_known_paths": True, "politeness": QUICK} | options
    return driver.tree(server.url, **options)


def shown(outcome: Outcome) -> str:
    """The reason, without the port of the server."""
    words = outcome.reason.split("/")
    return "/".join(word for word in words if not word.startswith("127.0.0.1:"))


def causes(outcome: Outcome) -> list[tuple[Cause, int]]:
    return [(missing.cause, missing.count) for missing in outcome.missing]


class TestBlocked:
    """The site answers, but refuses everything that matters."""

    @each_driver
    @pytest.mark.parametrize("code", [400, 401, 403, 405, 429, 451, 500, 503])
    def test_everything(self, driver: Driver, code: int) -> None:
        """A site that answers everything with an error is blocked, and the reason is what robots.txt answered."""
        outcome = tree_of(driver, {}, default=status(code)).outcome
        assert (outcome.kind, shown(outcome)) == (BLOCKED, f"http://robots.txt: {code} Words")
        assert causes(outcome) == [(Cause.BLOCKED, 1)]
        assert not outcome.has_result

    @pytest.mark.parametrize("code", [401, 403, 429, 500, 503])
    def test_robots_only(self, code: int) -> None:
        """A robots.txt that nobody may read may name sitemaps, so a site without others is blocked and not empty."""
        outcome = tree_of(Driver("threads"), {"/robots.txt": status(code)}).outcome
        assert (outcome.kind, shown(outcome)) == (BLOCKED, f"http://robots.txt: {code} Words")

    @pytest.mark.parametrize("code", [401, 403, 429, 500, 503])
    def test_named_sitemaps(self, code: int) -> None:
        """A site is blocked if all sitemaps that robots.txt names are, whatever known paths answer."""
        site = {"/robots.txt": named("/a.xml", "/b.xml"), "/a.xml": status(code), "/b.xml": status(code)}
        outcome = tree_of(Driver("threads"), site).outcome
        assert (outcome.kind, outcome.reason) == (BLOCKED, f"2 sitemaps: {code} Words")
        assert causes(outcome) == [(Cause.BLOCKED, 2)]

    def test_children_of_an_index(self) -> None:
        """An index whose children are all blocked brings nothing: the site is blocked."""
        site = {"/robots.txt": named("/index.xml"), "/index.xml": listed("/a.xml", "/b.xml", "/c.xml")}
        site |= dict.fromkeys(["/a.xml", "/b.xml"], status(403))
        outcome = tree_of(Driver("threads"), site).outcome
        assert (outcome.kind, outcome.reason) == (BLOCKED, "2 sitemaps: 403 Words")
        assert causes(outcome) == [(Cause.BLOCKED, 2), (Cause.NOT_FOUND, 1)]

    @pytest.mark.parametrize("robots", [NO_NAMES, status(404), HTML, named("/gone.xml")])
    def test_sitemap_xml(self, robots: Handler) -> None:
        """A site that names nothing that exists and forbids /sitemap.xml may have one there: it is blocked."""
        outcome = tree_of(Driver("threads"), {"/robots.txt": robots, "/sitemap.xml": status(403)}).outcome
        assert (outcome.kind, shown(outcome)) == (BLOCKED, "http://sitemap.xml: 403 Words")

    def test_known_path(self) -> None:
        """A site that has nothing and fails at a known path may have a sitemap there: it is blocked."""
        outcome = tree_of(Driver("threads"), {"/sitemap_index.xml": status(503)}).outcome
        assert (outcome.kind, shown(outcome)) == (BLOCKED, "http://sitemap_index.xml: 503 Words")
        assert causes(outcome) == [(Cause.BLOCKED, 1)]

    def test_without_robots(self) -> None:
        """With known paths only, what they answer counts."""
        outcome = tree_of(Driver("threads"), {}, default=status(403), use_robots=False).outcome
        assert (outcome.kind, shown(outcome)) == (BLOCKED, "http://sitemap.xml: 403 Words")

    def test_named_over_known(self) -> None:
        """What a named sitemap answers matters more than what a known path answers."""
        site = {"/robots.txt": named("/a.xml"), "/a.xml": reset, "/sitemap.xml": status(403)}
        assert tree_of(Driver("threads"), site).outcome.kind is UNREACHABLE

    @each_driver
    def test_disallowed(self, driver: Driver) -> None:
        """A site whose robots.txt disallows everything is blocked to a caller who respects that."""
        site = {"/robots.txt": ok("User-agent: *\nDisallow: /\nSitemap: {base}/a.xml\n"), "/a.xml": GOOD}
        outcome = tree_of(driver, site, respect_robots=True).outcome
        assert (outcome.kind, causes(outcome)) == (BLOCKED, [(Cause.DISALLOWED, 1)])
        assert "robots.txt disallows it" in outcome.reason

    def test_failed_robots_respected(self) -> None:
        """A robots.txt that fails disallows everything to a caller who respects it: the site is blocked."""
        site = {"/robots.txt": status(503), "/sitemap.xml": GOOD}
        outcome = tree_of(Driver("threads"), site, respect_robots=True).outcome
        assert (outcome.kind, causes(outcome)) == (BLOCKED, [(Cause.BLOCKED, 1)])


class TestUnreachable:
    """The site does not answer."""

    @each_driver
    def test_no_such_host(self, driver: Driver) -> None:
        """A name that does not exist is unreachable; the reason says so once."""
        outcome = driver.tree("http://nosuch.invalid/", use_known_paths=True).outcome
        assert (outcome.kind, outcome.reason) == (UNREACHABLE, "http://nosuch.invalid/robots.txt: no such host")
        assert causes(outcome) == [(Cause.UNREACHABLE, 1)]

    @each_driver
    def test_refused(self, driver: Driver) -> None:
        """A port on which nothing listens is unreachable."""
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            outcome = driver.tree(f"http://127.0.0.1:{unused.getsockname()[1]}/", politeness=QUICK).outcome
        assert outcome.kind is UNREACHABLE
        assert outcome.reason.endswith("/robots.txt: connection refused")

    @each_driver
    @pytest.mark.slow
    def test_silent(self, driver: Driver) -> None:
        """A server that never answers is unreachable."""
        outcome = tree_of(driver, {}, default=silent, limits=SHORT).outcome
        assert outcome.kind is UNREACHABLE
        assert "no answer within 0.2 s" in outcome.reason

    @each_driver
    @pytest.mark.parametrize("site", [{}, {"/robots.txt": NO_NAMES}, {"/robots.txt": named("/a.xml")}])
    def test_time_is_up(self, driver: Driver, site: Site) -> None:
        """If the time of the tree is up before a sitemap was read, the site is unreachable, and not partial."""
        for seconds in (0.3, 3, 20):  # a busy machine may not get to what is behind robots.txt in time
            with serve_faults(site, default=silent) as server:
                outcome = fetched(driver, server, limits=Limits(tree_seconds=seconds)).outcome
            if not site or {path for _, path in server.asked} > {"/robots.txt"}:
                break
        assert (outcome.kind, outcome.has_result) == (UNREACHABLE, False)
        assert outcome.reason == f"the tree's time is up, after {seconds} seconds (limits.tree_seconds)"

    @each_driver
    @pytest.mark.slow
    def test_certificate(self, driver: Driver, tmp_path: Path) -> None:
        """A certificate that nobody trusts makes a site unreachable."""
        with serve_faults({}, context=server_context(self_signed(tmp_path)), default=GOOD) as server:
            outcome = fetched(driver, server).outcome
        assert outcome.kind is UNREACHABLE
        assert "/robots.txt: the certificate is not valid" in outcome.reason

    @each_driver
    def test_no_tls(self, driver: Driver) -> None:
        """A server that speaks no TLS makes an https site unreachable."""
        with serve_faults({}, default=GOOD) as server:
            url = server.url.replace("http:", "https:")
            outcome = driver.tree(url, politeness=QUICK).outcome
        assert outcome.kind is UNREACHABLE

    def test_children(self) -> None:
        """A site whose named sitemaps are all on a host that does not exist is unreachable."""
        site = {"/robots.txt": ok("Sitemap: http://nosuch.invalid/a.xml\nSitemap: http://nosuch.invalid/b.xml\n")}
        outcome = tree_of(Driver("threads"), site).outcome
        assert (outcome.kind, outcome.reason) == (UNREACHABLE, "2 sitemaps: no such host")

    def test_blocked_over_unreachable(self) -> None:
        """A site that answers one of its sitemaps with 403 and resets the other answers: it is blocked."""
        site = {"/robots.txt": named("/a.xml", "/b.xml"), "/a.xml": reset, "/b.xml": status(403)}
        outcome = tree_of(Driver("threads"), site).outcome
        assert (outcome.kind, shown(outcome)) == (BLOCKED, "http://b.xml: 403 Words")
        assert causes(outcome) == [(Cause.UNREACHABLE, 1), (Cause.BLOCKED, 1)]

    @each_driver
    def test_refused_by_usp(self, driver: Driver) -> None:
        """A redirect that usp does not follow has a cause of its own."""
        site = {"/robots.txt": named("/a.xml"), "/a.xml": status(302, Location="ftp://x/a.xml")}
        outcome = tree_of(driver, site).outcome
        assert (outcome.kind, causes(outcome)) == (UNREACHABLE, [(Cause.REFUSED, 1)])

    @each_driver
    def test_private_address(self, driver: Driver) -> None:
        """A loopback site cannot lead to another private address; that is refused and not unreachable."""
        site = {"/robots.txt": ok("Sitemap: http://10.0.0.1/a.xml\nSitemap: {base}/b.xml\n"), "/b.xml": GOOD}
        outcome = tree_of(driver, site).outcome
        assert (outcome.kind, causes(outcome)) == (PARTIAL, [(Cause.REFUSED, 1)])


class TestEmpty:
    """The site answers, and has no sitemap."""

    @each_driver
    @pytest.mark.parametrize("robots", [status(404), status(410), NO_NAMES, ok(""), HTML])
    def test_nothing(self, driver: Driver, robots: Handler) -> None:
        """A site without names in robots.txt, and without known paths, is empty."""
        outcome = tree_of(driver, {"/robots.txt": robots}).outcome
        assert (outcome.kind, outcome.missing) == (EMPTY, ())
        assert outcome.reason == "robots.txt names no sitemap, and there is none at the usual paths"

    @each_driver
    def test_what_was_not_tried(self, driver: Driver) -> None:
        """The reason names only places where usp has looked."""
        site = {"/robots.txt": status(404)}
        only_robots = tree_of(driver, site, use_known_paths=False).outcome
        assert str(only_robots) == "empty: robots.txt names no sitemap; the usual paths were not tried"
        only_paths = tree_of(driver, site, use_robots=False).outcome
        assert str(only_paths) == "empty: there is no sitemap at the usual paths; robots.txt was not read"

    @pytest.mark.parametrize("code", [404, 410])
    def test_named_sitemaps_are_gone(self, code: int) -> None:
        """A site is empty if all that it names is gone."""
        site = {"/robots.txt": named("/a.xml", "/b.xml"), "/a.xml": status(code), "/b.xml": status(code)}
        outcome = tree_of(Driver("threads"), site).outcome
        assert (outcome.kind, outcome.reason) == (EMPTY, f"2 sitemaps: {code} Words")

    def test_children_are_gone(self) -> None:
        """So it is if all children of its index are gone."""
        site = {"/robots.txt": named("/index.xml"), "/index.xml": listed("/a.xml", "/b.xml")}
        outcome = tree_of(Driver("threads"), site).outcome
        assert (outcome.kind, causes(outcome)) == (EMPTY, [(Cause.NOT_FOUND, 2)])

    def test_web_pages(self) -> None:
        """A site that answers everything with a web page is empty, also if robots.txt names one."""
        assert tree_of(Driver("threads"), {}, default=HTML).outcome.kind is EMPTY
        outcome = tree_of(Driver("threads"), {"/robots.txt": named("/a.xml")}, default=HTML).outcome
        assert (outcome.kind, causes(outcome)) == (EMPTY, [(Cause.UNREADABLE, 1)])
        assert "/a.xml: " in outcome.reason

    @pytest.mark.parametrize("path", [".sitemap.xml", "sitemap", "admin/config/search/xmlsitemap"])
    def test_forbidden_as_a_matter_of_course(self, path: str) -> None:
        """Many sites forbid hidden files, folders and their administration; that does not mean that they block."""
        assert tree_of(Driver("threads"), {f"/{path}": status(403)}).outcome.kind is EMPTY
        outcome = tree_of(Driver("threads"), {f"/{path}": status(403)}, extra_known_paths=[path]).outcome
        assert (outcome.kind, causes(outcome)) == (BLOCKED, [(Cause.BLOCKED, 1)])


class TestPartial:
    """Some sitemaps are missing."""

    @each_driver
    @pytest.mark.parametrize(
        ("bad", "cause", "words"),
        [
            (status(403), Cause.BLOCKED, "/bad.xml: 403 Words"),
            (status(503), Cause.BLOCKED, "/bad.xml: 503 Words"),
            (reset, Cause.UNREACHABLE, "/bad.xml: the connection was closed"),
            (HTML, Cause.UNREADABLE, "/bad.xml: "),
            (ok(""), Cause.UNREADABLE, "/bad.xml: "),
            (truncated, Cause.TRUNCATED, "/bad.xml: the transfer broke off; only a part of it arrived"),
            (status(302, Location="ftp://x/"), Cause.REFUSED, "/bad.xml: "),
        ],
    )
    def test_child(self, driver: Driver, bad: Handler, cause: Cause, words: str) -> None:
        """A child that is missing for any other cause than 404 makes a run partial, and is named."""
        site = {"/robots.txt": named("/index.xml"), "/index.xml": listed("/good.xml", "/bad.xml")}
        outcome = tree_of(driver, site | {"/good.xml": GOOD, "/bad.xml": bad}).outcome
        assert (outcome.kind, causes(outcome), outcome.has_result) == (PARTIAL, [(cause, 1)], True)
        assert words in outcome.reason
        assert outcome.missing[0].urls[0].endswith("/bad.xml")

    @pytest.mark.slow
    def test_silent_child(self) -> None:
        """A child that does not answer makes a run partial."""
        site = {"/robots.txt": named("/good.xml", "/bad.xml"), "/good.xml": GOOD, "/bad.xml": silent}
        outcome = tree_of(Driver("threads"), site, limits=SHORT, use_known_paths=False).outcome
        assert (outcome.kind, causes(outcome)) == (PARTIAL, [(Cause.UNREACHABLE, 1)])

    def test_child_on_an_unknown_host(self) -> None:
        """So does one on a host that does not exist."""
        site = {"/robots.txt": ok("Sitemap: http://nosuch.invalid/a.xml\nSitemap: {base}/b.xml\n"), "/b.xml": GOOD}
        outcome = tree_of(Driver("threads"), site).outcome
        assert (outcome.kind, outcome.reason) == (PARTIAL, "http://nosuch.invalid/a.xml: no such host")

    def test_no_url(self) -> None:
        """So does a URL of a callback that is not http: usp refuses it."""
        site = {"/robots.txt": named("/a.xml"), "/a.xml": GOOD}
        outcome = tree_of(Driver("threads"), site, recurse_list_callback=lambda urls, *_: [*urls, "ftp://x/"]).outcome
        assert (outcome.kind, causes(outcome)) == (PARTIAL, [(Cause.REFUSED, 1)])

    @pytest.mark.parametrize("robots", [status(401), status(403), status(429), status(503), reset])
    def test_robots(self, robots: Handler) -> None:
        """A robots.txt that could not be read may name more sitemaps than those at known paths."""
        outcome = tree_of(Driver("threads"), {"/robots.txt": robots, "/sitemap.xml": GOOD}).outcome
        assert outcome.kind is PARTIAL
        assert outcome.reason.startswith("http://127.0.0.1:")
        assert "/robots.txt: " in outcome.reason

    def test_sitemap_xml(self) -> None:
        """So may /sitemap.xml, where everybody looks if robots.txt names nothing."""
        site = {"/robots.txt": NO_NAMES, "/sitemap.xml": status(503), "/sitemap_news.xml": GOOD}
        outcome = tree_of(Driver("threads"), site).outcome
        assert (outcome.kind, shown(outcome)) == (PARTIAL, "http://sitemap.xml: 503 Words")

    def test_path_of_the_caller(self) -> None:
        """So may a path that the caller names."""
        site = {"/robots.txt": named("/good.xml"), "/good.xml": GOOD, "/mine.xml": status(403)}
        outcome = tree_of(Driver("threads"), site, extra_known_paths=["/mine.xml"]).outcome
        assert (outcome.kind, shown(outcome)) == (PARTIAL, "http://mine.xml: 403 Words")

    @each_driver
    def test_max_sitemaps(self, driver: Driver) -> None:
        """With `max_sitemaps`, the declared sitemaps behind the cut are counted."""
        children = [f"/{number}.xml" for number in range(20)]
        site = {"/robots.txt": named("/index.xml", "/last.xml"), "/index.xml": listed(*children), "/last.xml": GOOD}
        outcome = tree_of(driver, site | dict.fromkeys(children, GOOD), limits=Limits(max_sitemaps=5)).outcome
        assert (outcome.kind, outcome.skipped, outcome.left_out) == (PARTIAL, 20 - 3 + 1, 0)
        assert outcome.reason.startswith("the tree has 5 sitemaps already (limits.max_sitemaps)")

    def test_max_sitemaps_before_anything(self) -> None:
        """A limit of the caller's that lets nothing be read is partial: the site is not to blame."""
        site = {"/robots.txt": named("/a.xml", "/b.xml"), "/a.xml": GOOD, "/b.xml": GOOD}
        outcome = tree_of(Driver("threads"), site, limits=Limits(max_sitemaps=1)).outcome
        assert (outcome.kind, outcome.skipped) == (PARTIAL, 2)

    @each_driver
    def test_max_pages(self, driver: Driver) -> None:
        """With `max_pages`, too."""
        site = {"/robots.txt": named("/a.xml", "/b.xml", "/c.xml")}
        pages = ok(urlset("http://x/1", "http://x/2"))
        outcome = tree_of(
            driver, site | dict.fromkeys(["/a.xml", "/b.xml", "/c.xml"], pages), limits=Limits(max_pages=3)
        )
        assert (outcome.outcome.kind, outcome.outcome.skipped) == (PARTIAL, 1)
        assert outcome.outcome.reason.startswith("the tree has 3 pages (limits.max_pages)")

    @each_driver
    def test_tree_seconds(self, driver: Driver) -> None:
        """A run that read something before its time was up is partial."""
        site = {"/robots.txt": named("/good.xml", "/slow.xml"), "/good.xml": GOOD, "/slow.xml": silent}
        outcome = tree_of(driver, site, limits=Limits(tree_seconds=0.4), use_known_paths=False).outcome
        assert (outcome.kind, outcome.skipped, causes(outcome)) == (PARTIAL, 1, [(Cause.LIMIT, 1)])
        assert outcome.reason.startswith("the tree's time is up, after 0.4 seconds (limits.tree_seconds)")

    def test_max_total_bytes(self) -> None:
        """With `max_total_bytes`, too."""
        site = {"/robots.txt": named("/a.xml", "/b.xml", "/c.xml")} | dict.fromkeys(
            ["/a.xml", "/b.xml", "/c.xml"], GOOD
        )
        limits = Limits(max_total_bytes=150)
        outcome = tree_of(Driver("threads"), site, limits=limits, concurrency=1).outcome
        assert (outcome.kind, outcome.skipped) == (PARTIAL, 2)
        assert outcome.reason.startswith("the tree's sitemaps have 150 bytes (limits.max_total_bytes)")

    def test_max_depth(self) -> None:
        """With `max_depth`, too."""
        site = {"/robots.txt": named("/outer.xml"), "/outer.xml": listed("/inner.xml", "/good.xml"), "/good.xml": GOOD}
        site |= {"/inner.xml": listed("/a.xml", "/b.xml")}
        outcome = tree_of(Driver("threads"), site, limits=Limits(max_depth=2)).outcome
        assert (outcome.kind, outcome.skipped, causes(outcome)) == (PARTIAL, 2, [(Cause.LIMIT, 1)] * 2)
        assert outcome.reason.startswith("sitemaps are nested deeper than 2 (limits.max_depth)")

    @each_driver
    @pytest.mark.parametrize("is_packed", [False, True])
    def test_max_sitemap_bytes(self, driver: Driver, is_packed: bool) -> None:
        """A sitemap that is larger than the limit is cut, packed or not; its pages are kept, and the limit is named."""
        large = urlset(*(f"http://x/{number}" for number in range(500))).encode()
        site = {"/robots.txt": named("/large.xml"), "/large.xml": ok(gzip.compress(large) if is_packed else large)}
        tree = tree_of(driver, site, limits=Limits(max_sitemap_bytes=10_000))
        assert (tree.outcome.kind, causes(tree.outcome)) == (PARTIAL, [(Cause.LIMIT, 1)])
        assert "/large.xml: larger than limits.max_sitemap_bytes" in tree.outcome.reason
        assert 100 < len(list(tree.all_pages())) < 500
        (sitemap,) = tree.sub_sitemaps[0].sub_sitemaps
        assert sitemap.transport is not None
        assert (sitemap.transport.is_whole, sitemap.transport.is_limited) == (False, True)

    def test_ctrl_c(self) -> None:
        """Ctrl-C makes a run partial; the tree in the exception says so."""

        def interrupt(request: Request) -> None:
            time.sleep(0.1)  # /good.xml arrives first
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            request.pause()

        site = {"/robots.txt": named("/good.xml", "/slow.xml"), "/good.xml": GOOD, "/slow.xml": interrupt}
        with pytest.raises(TreeInterrupted) as caught:
            tree_of(Driver("threads"), site, use_known_paths=False)
        outcome = caught.value.tree.outcome
        assert (outcome.kind, outcome.skipped) == (PARTIAL, 1)
        assert outcome.reason.startswith("it was interrupted")

    def test_closed_early(self) -> None:
        """A stream that is closed early is partial."""
        site = {"/robots.txt": named("/a.xml", "/b.xml"), "/a.xml": GOOD, "/b.xml": silent}
        with serve_faults(site) as server, stream_sitemaps_for_homepage(server.url, use_known_paths=False) as stream:
            assert [next(stream).url[-6:] for _ in range(2)] == ["ts.txt", "/a.xml"]
        outcome = stream.tree.outcome
        assert (outcome.kind, outcome.skipped, causes(outcome)) == (PARTIAL, 1, [(Cause.LIMIT, 1)])
        assert outcome.reason.startswith("the stream was closed early")

    def test_closed_early_on_asyncio(self) -> None:
        """So is one on asyncio."""
        site = {"/robots.txt": named("/a.xml", "/b.xml"), "/a.xml": GOOD, "/b.xml": silent}

        async def first_two(url: str) -> AbstractSitemap:
            async with usp.aio.stream_sitemaps_for_homepage(url, use_known_paths=False) as stream:
                for _ in range(2):
                    await anext(stream)
            return stream.tree

        with serve_faults(site) as server:
            outcome = asyncio.run(first_two(server.url)).outcome
        assert (outcome.kind, outcome.skipped, causes(outcome)) == (PARTIAL, 1, [(Cause.LIMIT, 1)])


class TestComplete:
    """Every sitemap was read, or only such are missing that do not exist or that nobody asked for."""

    @each_driver
    @pytest.mark.parametrize("code", [404, 410])
    def test_missing_children(self, driver: Driver, code: int) -> None:
        """Children that answer 404 or 410 are the site's mistake: the run is complete, and lists them."""
        site = {"/robots.txt": named("/index.xml"), "/index.xml": listed("/good.xml", "/bad.xml"), "/good.xml": GOOD}
        outcome = tree_of(driver, site | {"/bad.xml": status(code)}).outcome
        assert (outcome.kind, outcome.reason, str(outcome)) == (COMPLETE, "", "complete")
        assert causes(outcome) == [(Cause.NOT_FOUND, 1)]
        assert str(outcome.missing[0]).endswith(f"/bad.xml: {code} Words")

    def test_everything_is_there(self) -> None:
        """A site with a robots.txt and sitemaps is complete."""
        outcome = tree_of(Driver("threads"), {"/robots.txt": named("/a.xml"), "/a.xml": GOOD}).outcome
        assert outcome == Outcome(COMPLETE)

    @pytest.mark.parametrize("robots", [status(404), NO_NAMES, HTML])
    def test_known_path(self, robots: Handler) -> None:
        """So is one with a sitemap at a known path only."""
        assert tree_of(Driver("threads"), {"/robots.txt": robots, "/sitemap.xml": GOOD}).outcome == Outcome(COMPLETE)

    def test_guesses_do_not_count(self) -> None:
        """If a sitemap was found, it does not matter that known paths which nobody names are forbidden."""
        site = {"/robots.txt": named("/a.xml"), "/a.xml": GOOD}
        assert tree_of(Driver("threads"), site, default=status(403)).outcome == Outcome(COMPLETE)
        site = {"/robots.txt": NO_NAMES, "/sitemap.xml": GOOD}
        assert tree_of(Driver("threads"), site, default=status(403)).outcome == Outcome(COMPLETE)

    @pytest.mark.parametrize("body", [urlset(), index()])
    def test_sitemap_without_pages(self, body: str) -> None:
        """A sitemap that lists nothing is a sitemap."""
        assert tree_of(Driver("threads"), {"/sitemap.xml": ok(body)}).outcome == Outcome(COMPLETE)

    def test_loops(self) -> None:
        """Indexes that list each other, themselves, or redirect to one above, miss nothing."""
        site = {"/robots.txt": named("/a.xml"), "/a.xml": listed("/b.xml", "/a.xml", "/back.xml", "/good.xml")}
        site |= {"/b.xml": listed("/a.xml"), "/back.xml": status(301, Location="/a.xml"), "/good.xml": GOOD}
        outcome = tree_of(Driver("threads"), site).outcome
        assert (outcome.kind, {cause for cause, _ in causes(outcome)}) == (COMPLETE, {Cause.LOOP})

    def test_index_of_itself(self) -> None:
        """An index that lists only itself was read."""
        site = {"/robots.txt": named("/a.xml"), "/a.xml": listed("/a.xml")}
        assert tree_of(Driver("threads"), site).outcome.kind is COMPLETE

    def test_index_with_pages(self) -> None:
        """An index that lists pages, too, was read even if its children are gone."""
        body = index("{base}/a.xml").replace("</sitemapindex>", "<url><loc>http://x/1</loc></url></sitemapindex>")
        tree = tree_of(Driver("threads"), {"/sitemap.xml": ok(body)})
        assert (len(list(tree.all_pages())), tree.outcome.kind) == (1, COMPLETE)

    @pytest.mark.parametrize(
        "options",
        [
            {"recurse_callback": lambda url, level, above: not url.endswith("/b.xml")},
            {"recurse_list_callback": lambda urls, level, above: [url for url in urls if not url.endswith("/b.xml")]},
            {"choose_callback": lambda children, level, above: [one for one in children if "/b.xml" not in one.url]},
            {"exclude": r"/b\.xml$"},
            {"include": r"/a\.xml$"},
        ],
    )
    @each_driver
    def test_left_out(self, driver: Driver, options: dict[str, Any]) -> None:
        """What your options leave out is counted, and misses nothing."""
        site = {"/robots.txt": named("/index.xml"), "/index.xml": listed("/a.xml", "/b.xml")}
        outcome = tree_of(driver, site | {"/a.xml": GOOD, "/b.xml": status(403)}, **options).outcome
        assert outcome == Outcome(COMPLETE, left_out=1)

    @pytest.mark.parametrize(
        "options",
        [
            {"exclude": "."},
            {"recurse_list_callback": lambda urls, level, above: []},
            {"choose_callback": lambda children, level, above: ()},
        ],
    )
    def test_everything_left_out(self, options: dict[str, Any]) -> None:
        """If your options leave out everything that is named, nothing is missing."""
        site = {"/robots.txt": named("/a.xml", "/b.xml"), "/a.xml": GOOD, "/b.xml": GOOD}
        assert tree_of(Driver("threads"), site, **options).outcome == Outcome(COMPLETE, left_out=2)

    def test_other_hosts_left_out(self) -> None:
        """Sitemaps of hosts that `cross_host` leaves out are counted, and stand in the tree."""
        site = {"/robots.txt": ok("Sitemap: {base}/a.xml\nSitemap: http://other.invalid/a.xml\n"), "/a.xml": GOOD}
        outcome = tree_of(Driver("threads"), site, cross_host="same-host").outcome
        assert (outcome.kind, outcome.left_out, causes(outcome)) == (COMPLETE, 1, [(Cause.LEFT_OUT, 1)])

    def test_disallowed(self) -> None:
        """Sitemaps that robots.txt disallows are left out because you respect it."""
        robots = ok("User-agent: *\nDisallow: /b.xml\nSitemap: {base}/a.xml\nSitemap: {base}/b.xml\n")
        outcome = tree_of(Driver("threads"), {"/robots.txt": robots, "/a.xml": GOOD}, respect_robots=True).outcome
        assert (outcome.kind, outcome.left_out, causes(outcome)) == (COMPLETE, 1, [(Cause.DISALLOWED, 1)])

    @each_driver
    def test_nothing_asked(self, driver: Driver) -> None:
        """A run without robots.txt and known paths asks for nothing, and misses nothing."""
        with serve_faults({}) as server:
            tree = driver.tree(server.url, use_robots=False, use_known_paths=False)
        assert (tree.outcome, server.asked) == (Outcome(COMPLETE), [])

    def test_every_path_excluded(self) -> None:
        """Nor does one whose options exclude every known path."""
        with serve_faults({}) as server:
            tree = Driver("threads").tree(server.url, use_robots=False, use_known_paths=True, exclude=".")
        assert (tree.outcome, server.asked) == (Outcome(COMPLETE), [])


class TestCounts:
    """The counts do not depend on the order of answers."""

    SITE: ClassVar = {
        "https://x.example/robots.txt": "".join(f"Sitemap: https://x.example/{name}.xml\n" for name in "abcd"),
        **{
            f"https://x.example/{name}.xml": index(*(f"https://x.example/{name}{number}.xml" for number in range(6)))
            for name in "abc"
        },
        **{
            f"https://x.example/{name}{number}.xml": urlset(f"https://x.example/{name}{number}")
            for name in "abc"
            for number in range(6)
        },
    }

    @pytest.mark.parametrize("limits", [Limits(max_sitemaps=9), Limits(max_pages=8), Limits(max_depth=1), Limits()])
    def test_order(self, limits: Limits) -> None:
        """`skipped` and `left_out` are the same in whatever order answers arrive."""
        found = set()
        for seed in range(20):
            walk, _, _ = homepage_walk(
                "https://x.example/", limits=limits, exclude=r"[24]\.xml$", use_known_paths=False
            )
            order = random.Random(seed)
            waiting = list(iter(walk.next, None))
            while waiting:
                fetcher = waiting.pop(order.randrange(len(waiting)))
                body = self.SITE.get(fetcher.url)
                walk.receive(fetcher, Failure("404", 404) if body is None else Document(fetcher.url, body.encode()))
                waiting += iter(walk.next, None)
            outcome = walk.tree().outcome
            found.add((outcome.kind, outcome.skipped, outcome.left_out))
        assert len(found) == 1

    @pytest.mark.parametrize("use_known_paths", [False, True])
    @pytest.mark.parametrize("most", [3, 10, 30, 100])
    def test_order_of_nested_indexes(self, most: int, use_known_paths: bool) -> None:
        """A large site is cut at the same place in whatever order answers arrive, after not too many requests."""
        home = "https://x.example/"
        site = {f"{home}robots.txt": "".join(f"Sitemap: {home}{n}.xml\n" for n in range(20))}
        site |= {f"{home}{n}.xml": index(*(f"{home}{n}/{m}.xml" for m in range(20))) for n in range(20)}
        site[f"{home}sitemap.xml"] = index(*(f"{home}known/{m}.xml" for m in range(200)))
        found = set()
        for seed in range(20):
            limits = Limits(max_sitemaps=most)
            walk, _, _ = homepage_walk(home, limits=limits, use_known_paths=use_known_paths)
            order = random.Random(seed)
            waiting, asked = list(iter(walk.next, None)), 0
            while waiting:
                fetcher = waiting.pop(order.randrange(len(waiting)))
                if not walk.take_back(fetcher):
                    asked += 1
                    walk.receive(fetcher, Document(fetcher.url, site.get(fetcher.url, urlset(home)).encode()))
                waiting += iter(walk.next, None)
            assert asked <= 3 * most + 50
            tree = walk.tree()
            found.add((tuple(sitemap.url for sitemap in tree.all_sitemaps()), tree.outcome))
        ((urls, outcome),) = found
        assert len(urls) == most + 1  # one stands for all that follow
        assert outcome.kind is PARTIAL

    def test_exact(self) -> None:
        """What your options leave out is not skipped by a limit, and the other way round."""
        tree = sitemap_tree_for_homepage(
            "https://x.example/",
            FakeClient(self.SITE),
            use_known_paths=False,
            exclude=r"[24]\.xml$",
            limits=Limits(max_sitemaps=5),
        )
        # robots.txt, a, a0, a1, a3 are read. a2 and a4 are left out. a5, b, c and d are skipped.
        assert [sitemap.url[18:-4] for sitemap in tree.all_sitemaps()] == ["robots", "a", "a0", "a1", "a3", "a5"]
        assert (tree.outcome.skipped, tree.outcome.left_out) == (4, 2)

    def test_many_reasons(self) -> None:
        """A site may have a new reason for each of its sitemaps; only so many are kept, and only three are told."""
        site = {"https://x.example/robots.txt": "".join(f"Sitemap: https://h{n}.example/\n" for n in range(500))}
        client = FakeClient(lambda url: site.get(url) or OSError(f"trouble with {url}"))
        outcome = sitemap_tree_for_homepage("https://x.example/", client, use_known_paths=False).outcome
        assert (outcome.kind, sum(missing.count for missing in outcome.missing)) == (UNREACHABLE, 500)
        assert len(outcome.missing) == 51
        assert outcome.missing[-1].reason == "other reasons"
        assert outcome.reason.count("trouble") == 3
        assert outcome.reason.endswith("; and 497 more sitemaps")

    def test_urls(self) -> None:
        """Of many sitemaps that are missing for one reason, the first ten are listed."""
        site = {"https://x.example/robots.txt": "".join(f"Sitemap: https://x.example/{n}.xml\n" for n in range(30))}
        outcome = sitemap_tree_for_homepage("https://x.example/", FakeClient(site), use_known_paths=False).outcome
        (missing,) = outcome.missing
        assert (missing.count, missing.urls) == (30, tuple(f"https://x.example/{n}.xml" for n in range(10)))


class TestTrees:
    """Trees that no run has fetched, and what happens to those that one has."""

    def test_made_by_hand(self) -> None:
        """A tree that was made by hand is judged by what it shows."""
        page = SitemapPage("https://x.example/1")
        good = PagesXMLSitemap("https://x.example/a.xml", [page])
        bad = InvalidSitemap("https://x.example/b.xml", "it is broken")
        gone = InvalidSitemap(
            "https://x.example/c.xml",
            "404",
            transport=Transport("https://x.example/c.xml", "https://x.example/c.xml", 404),
        )
        home = "https://x.example/"
        assert good.outcome == Outcome(COMPLETE)
        assert bad.outcome.kind is EMPTY
        assert IndexWebsiteSitemap(home, []).outcome.kind is EMPTY
        assert IndexWebsiteSitemap(home, [good]).outcome == Outcome(COMPLETE)
        assert IndexWebsiteSitemap(home, [gone, good]).outcome.kind is COMPLETE
        assert IndexWebsiteSitemap(home, [good, bad]).outcome == Outcome(
            PARTIAL,
            "https://x.example/b.xml: it is broken",
            (Missing(Cause.UNREADABLE, "it is broken", 1, (bad.url,)),),
        )

    def test_changed_by_hand(self) -> None:
        """A tree that was made by hand may change, and its outcome with it."""
        tree = IndexXMLSitemap("https://x.example/i.xml", [PagesXMLSitemap("https://x.example/a.xml", [])])
        assert tree.outcome.kind is COMPLETE
        tree.sub_sitemaps.append(InvalidSitemap("https://x.example/b.xml", "it is broken"))
        assert tree.outcome.kind is PARTIAL

    @pytest.mark.parametrize(
        ("content", "kind"),
        [
            (urlset("https://x.example/1"), COMPLETE),
            (urlset(), COMPLETE),
            (index("https://x.example/a.xml"), COMPLETE),
            (index(), COMPLETE),
            ("https://x.example/1\n", COMPLETE),
            ("<html></html>", EMPTY),
            ("", EMPTY),
        ],
    )
    def test_from_content(self, content: str, kind: OutcomeKind, tmp_path: Path) -> None:
        """A sitemap that is read by itself is complete: nobody asked for its children."""
        path = tmp_path / "sitemap.xml"
        path.write_text(content, "utf-8")
        for sitemap in (sitemap_from_str(content), sitemap_from_bytes(content.encode()), sitemap_from_file(path)):
            assert sitemap.outcome.kind is kind

    def test_robots_txt_from_content(self) -> None:
        """So is a robots.txt that names sitemaps; one that names none is empty."""
        url = "https://x.example/robots.txt"
        assert sitemap_from_str("Sitemap: /a.xml", url=url).outcome.kind is COMPLETE
        outcome = sitemap_from_str("User-agent: *", url=url).outcome
        assert (outcome.kind, outcome.reason) == (EMPTY, "it lists no sitemap and no page")

    def test_local_client(self) -> None:
        """A client that fetches nothing leaves everything out."""
        tree = sitemap_tree_for_homepage("https://x.example/", LocalWebClient())
        assert tree.outcome == Outcome(COMPLETE)

    @pytest.mark.parametrize("default", [status(404), status(403), GOOD])
    def test_pickled(self, default: Handler) -> None:
        """A tree keeps its outcome when it is pickled, and an outcome can be pickled by itself."""
        site = {"/robots.txt": named("/a.xml", "/b.xml", "/c.xml"), "/a.xml": GOOD}
        tree = tree_of(Driver("threads"), site, default=default, limits=Limits(max_sitemaps=3), exclude="c.xml")
        before = pickle.loads(pickle.dumps(tree))
        outcome = tree.outcome
        after = pickle.loads(pickle.dumps(tree))
        assert before.outcome == outcome == after.outcome
        assert before.facts == tree.facts != TreeFacts()
        assert pickle.loads(pickle.dumps(tree.outcome)) == tree.outcome

    def test_part_of_a_tree(self) -> None:
        """Further down, the outcome judges the part of the tree there."""
        site = {"/robots.txt": named("/a.xml", "/b.xml"), "/a.xml": listed("/c.xml"), "/b.xml": GOOD}
        tree = tree_of(Driver("threads"), site | {"/c.xml": status(403)})
        (robots,) = tree.sub_sitemaps
        assert isinstance(robots, IndexRobotsTxtSitemap)
        assert [sitemap.outcome.kind for sitemap in (tree, *tree.all_sitemaps())] == [
            *(PARTIAL, PARTIAL, BLOCKED, BLOCKED, COMPLETE)
        ]

    def test_computed_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The outcome of a run is computed once, and reads no document if a sitemap was read."""
        site = {"https://x.example/robots.txt": "Sitemap: /i.xml", "https://x.example/i.xml": index("/a.xml")}
        tree = sitemap_tree_for_homepage(
            "https://x.example/", FakeClient(site | {"https://x.example/a.xml": urlset("/1")})
        )
        monkeypatch.setattr("usp.documents.Document.pieces", _fail)
        assert tree.outcome is tree.outcome
        assert tree.outcome.kind is COMPLETE

    @pytest.mark.parametrize(
        ("kinds", "expected"),
        [
            ([COMPLETE, COMPLETE], COMPLETE),
            ([COMPLETE, BLOCKED], PARTIAL),
            ([EMPTY, PARTIAL], PARTIAL),
            ([UNREACHABLE, BLOCKED], UNREACHABLE),
            ([EMPTY], EMPTY),
        ],
    )
    def test_several(self, kinds: list[OutcomeKind], expected: OutcomeKind) -> None:
        """Several runs together are complete if all are, and partial if one of them has a result."""
        missing = (Missing(Cause.BLOCKED, "403 Forbidden", 1, ("https://x.example/a.xml",)),)
        outcome = combined([Outcome(kind, str(kind), missing, 2, 3) for kind in kinds])
        assert outcome.kind is expected
        assert (len(outcome.missing), outcome.skipped, outcome.left_out) == (len(kinds), 2 * len(kinds), 3 * len(kinds))
        assert outcome.reason == "; ".join(kind for kind in kinds if kind is not COMPLETE)

    def test_words(self) -> None:
        """Kinds and causes are strings, so that they compare with plain words."""
        assert [str(kind) for kind in OutcomeKind] == ["complete", "partial", "blocked", "unreachable", "empty"]
        outcome = Outcome(BLOCKED, "https://x.example/robots.txt: 403 Forbidden")
        assert outcome.kind == "blocked"
        assert str(outcome) == "blocked: https://x.example/robots.txt: 403 Forbidden"
        assert {cause for cause in Cause if cause.is_loss} == {
            *("blocked", "unreachable", "unreadable", "truncated", "refused", "limit")
        }


def _fail(*_: object) -> Iterator[bytes]:
    raise AssertionError("a document was read")
