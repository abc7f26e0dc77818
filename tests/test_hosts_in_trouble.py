"""A host that asks to wait too long, refuses everything or is slow: one URL never costs the others their place."""

from __future__ import annotations

import asyncio
import socket
import time
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from support import Server, serve, urlset
from test_schedule import BUSY, NO_ANSWER, Driver, H, many, reasons, robots
from usp import aio
from usp.documents import Failure
from usp.limits import Limits
from usp.objects.sitemap import IndexWebsiteSitemap
from usp.politeness import Politeness
from usp.tree import sitemap_tree_for_homepage
from usp.web_client.asyncio_client import AsyncioWebClient
from usp.web_client.requests_client import RequestsWebClient

pytestmark = pytest.mark.network

DAY = 86_400.0


def asking(seconds: float, status: int = 503) -> Failure:
    return Failure(f"{status} No", status, is_retryable=True, retry_after=seconds)


def bad_first(bad: int, good: int, failure: Failure) -> dict[str, Any]:
    """A site that lists bad sitemaps before its good ones."""
    names = [f"{H}bad{i}.xml" for i in range(bad)]
    site: dict[str, Any] = {**many(good), **dict.fromkeys(names, failure)}
    site[H + "robots.txt"] = robots(*names) + str(site[H + "robots.txt"])
    return site


def pages(tree: IndexWebsiteSitemap) -> int:
    return len(list(tree.all_pages()))


@pytest.mark.parametrize("status", [429, 503])
def test_too_long_a_wait_fails_one_url_at_once(status: int) -> None:
    """A URL that asks to wait longer than `max_delay` fails at once; the rest of the host goes on after a second."""
    driver = Driver(bad_first(1, 199, asking(DAY, status)))
    tree = driver.run()
    assert pages(tree) == 199
    (reason,) = reasons(tree).values()
    assert reason.endswith(f"{status} No; asked to wait 24 h, longer than 120 s (max_delay)")
    assert len(driver.times(H + "bad0.xml")) == 1
    assert driver.now - 100 < 60


@pytest.mark.parametrize(("asked", "left"), [(50, 0), (30, 1)])
def test_a_wait_that_does_not_fit_the_time_left(asked: float, left: int) -> None:
    """A URL that asks to wait beyond the end of the tree's time fails at once; a wait that fits is kept exactly."""
    site: dict[str, Any] = {**many(3), H + "0.xml": [asking(asked), urlset(H)]}
    driver = Driver(site, concurrency=1, limits=Limits(tree_seconds=45))
    tree = driver.run()
    assert pages(tree) == 2 + left
    assert [("longer than the time left" in reason) for reason in reasons(tree).values()] == [True] * (not left)
    assert driver.times(H + "1.xml") == [2 + asked] if left else [3]


def test_careful_requests() -> None:
    """After too long a wait a host gets one request at a time, after pauses that double; then it is given up."""
    site = bad_first(1_000, 0, asking(DAY))
    driver = Driver(site, concurrency=8)
    tree = driver.run()
    assert pages(tree) == 0
    late = [at for at, _ in driver.started if at > 1]
    assert [later - earlier - 1 for earlier, later in pairwise([1, *late])] == [1, 2, 4, 8]
    assert driver.most_at_once["h"] == 8
    assert driver.now - 100 < 25
    counted = Counter(reason.partition(": ")[2] for reason in reasons(tree).values())
    given_up = "h refuses all requests: 503 No; asked to wait 24 h, longer than 120 s (max_delay)"
    assert counted[given_up] == 1_000 - 8 - 4


def test_a_host_that_answers_again_recovers_step_by_step() -> None:
    """A careful request that is answered lets the host recover, one request at a time at first."""
    driver = Driver({**many(300), H + "0.xml": asking(DAY)}, concurrency=8)
    assert pages(driver.run()) == 299
    at_once = Counter(at for at, _ in driver.started)
    rounds = [at_once[at] for at in sorted(at_once)][1:-1]
    assert rounds[:3] == [8, 1, 1]
    assert max(later - earlier for earlier, later in pairwise(rounds[1:])) <= 2
    assert max(rounds[2:]) == 8


@pytest.mark.parametrize("answer", [NO_ANSWER, BUSY, Failure("500 No", 500), Failure("404 No", 404)])
def test_what_a_careful_request_may_get(answer: Failure) -> None:
    """No answer and 503 are refusals; any other answer lets the host recover."""
    site: dict[str, Any] = {H + "robots.txt": robots(*(f"{i}.xml" for i in range(50))), H + "0.xml": asking(DAY)}
    site |= {f"{H}{i}.xml": answer for i in range(1, 50)}
    driver = Driver(site, concurrency=1, politeness=Politeness(retry_seconds=0))
    tree = driver.run()
    is_given_up = any("refuses all requests" in reason for reason in reasons(tree).values())
    assert is_given_up is (answer in (NO_ANSWER, BUSY))


@pytest.mark.slow
@pytest.mark.parametrize("asked", [DAY, 120, 60, 5])
def test_many_bad_urls_first(asked: float) -> None:
    """A hundred URLs that ask to wait, listed first, cost a site of many sitemaps no page, and half an hour at most."""
    driver = Driver(bad_first(100, 2_000, asking(asked)), seconds=0.1)
    assert pages(driver.run()) == 2_000
    good = [at for at, url in driver.started if "bad" not in url]
    assert max(good) < 2_000


@pytest.mark.slow
def test_pauses_have_a_budget() -> None:
    """A host that asks everybody for waits that fit is given up after ten minutes or so."""
    driver = Driver(bad_first(500, 0, asking(30)))
    driver.run()
    assert 600 <= driver.now - 100 < 700


def test_a_strict_host_is_waited_for() -> None:
    """A host that allows ten requests a minute, and says so, is read to its end: documents refill the budget."""
    site = many(600)
    clock: list[float] = []

    def answer(url: str) -> Any:
        if url.endswith("robots.txt"):
            return site[url]
        recent = [at for at in clock if at > driver.now - 60]
        if len(recent) >= 10:
            return asking(recent[0] + 60 - driver.now, 429)
        clock.append(driver.now)
        return site[url]

    driver = Driver(answer, seconds=0.1, concurrency=2)
    tree = driver.run()
    assert reasons(tree) == {}
    assert pages(tree) == 600


def test_one_url_that_asks_again_waits_alone() -> None:
    """A URL that asks for a wait each time holds up the others once, and is tried after them."""
    driver = Driver(bad_first(1, 50, asking(100)), concurrency=1)
    assert pages(driver.run()) == 50
    good = [at for at, url in driver.started if "bad" not in url][1:]
    assert good == list(range(102, 152))
    tries = driver.times(H + "bad0.xml")
    assert len(tries) == 5
    assert tries[1] > good[-1]
    assert min(later - earlier for earlier, later in pairwise(tries)) >= 101


def test_retries_go_behind_fresh_urls() -> None:
    """A URL that failed is tried again after all that were never tried."""
    driver = Driver({**many(50), H + "0.xml": [BUSY, urlset(H)]}, concurrency=1, politeness=Politeness(retry_seconds=1))
    assert pages(driver.run()) == 50
    assert driver.urls()[-1] == H + "0.xml"


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [10_000, 110, 90])
def test_slow_urls_leave_time_for_others(seconds: float) -> None:
    """Two thousand slow URLs, listed first, do not take all the time: the good ones are fetched."""
    site = bad_first(2_000, 200, Failure("never", 500))
    driver = Driver(site, seconds=lambda url: seconds if "bad" in url else 1)
    assert pages(driver.run()) == 200


def test_a_request_that_was_cut_short_is_tried_again() -> None:
    """A slow document is cut short only while others wait. Later it gets the time that it needs."""
    site = many(400)
    slow = {f"{H}{i}.xml" for i in range(10)}
    driver = Driver(
        site, seconds=lambda url: 60 if url in slow else 0.1, concurrency=2, limits=Limits(tree_seconds=1_200)
    )
    assert pages(driver.run()) == 400
    assert {len(driver.times(url)) for url in slow} == {1, 2}


def test_a_slow_but_steady_site_is_not_cut_short() -> None:
    """A site whose documents all take long gets that time, if the tree's time allows it."""
    driver = Driver(many(500), seconds=60)
    assert pages(driver.run()) == 500
    assert len(driver.started) == 501


class Recovering(dict[str, Any]):
    """The pages of a server, some of which answer 503 the first time."""

    def __init__(self, paths: set[str]) -> None:
        super().__init__()
        self._paths = paths

    def get(self, path: str, default: Any = None) -> Any:
        if path in self._paths:
            self._paths.discard(path)
            return 503, {"Retry-After": "1"}, b""
        return super().get(path, default)


def put_sitemaps(site: Server) -> None:
    """Serve ten good sitemaps, two that recover at the second try, and one that asks to wait for a day."""
    names = ["bad", "again0", "again1", *(f"good{i}" for i in range(10))]
    text = "".join(f"Sitemap: {site.url}/{name}.xml\n" for name in names)
    site.pages["/robots.txt"] = (200, {"Content-Type": "text/plain"}, text.encode())
    for name in names:
        site.pages[f"/{name}.xml"] = (200, {}, urlset(f"{site.url}/{name}/page").encode())
    site.pages["/bad.xml"] = (503, {"Retry-After": "86400"}, b"")


@pytest.mark.slow
@pytest.mark.parametrize("is_async", [False, True])
def test_one_url_does_not_freeze_a_host(is_async: bool) -> None:
    """Ten good sitemaps and two that recover are all fetched beside one that asks to wait for a day."""
    options: dict[str, Any] = {"use_known_paths": False, "politeness": Politeness(retry_seconds=0.1)}
    with serve(Recovering({"/again0.xml", "/again1.xml"})) as site:
        put_sitemaps(site)
        started = time.monotonic()
        if is_async:
            tree = asyncio.run(aio.sitemap_tree_for_homepage(site.url, **options))
        else:
            tree = sitemap_tree_for_homepage(site.url, **options)
        seconds = time.monotonic() - started
    assert pages(tree) == 12
    (reason,) = reasons(tree).values()
    assert "asked to wait 24 h" in reason
    assert 1 <= seconds < 10


def no_such_host(asked: list[str]) -> Any:
    def resolve(host: str, port: int) -> Any:
        asked.append(host)
        raise socket.gaierror(socket.EAI_NONAME, "no such host")

    return resolve


def test_a_host_that_does_not_exist_is_looked_up_once() -> None:
    """If a host does not exist, none of its other URLs is requested: not the known paths, with either client."""
    asked: list[str] = []
    with RequestsWebClient(_resolve=no_such_host(asked)) as client:
        tree = sitemap_tree_for_homepage("http://nosuch.example/", client)
    assert (tree.outcome.kind, asked) == ("unreachable", ["nosuch.example"])

    async def fetch() -> IndexWebsiteSitemap:
        async with AsyncioWebClient(_resolve=no_such_host(asked)) as client:
            return await aio.sitemap_tree_for_homepage("http://nosuch.example/", client)

    asked.clear()
    assert (asyncio.run(fetch()).outcome.kind, asked) == ("unreachable", ["nosuch.example"])


def test_a_refused_connection_is_tried_as_often_as_asked() -> None:
    """A host that refuses connections is tried `first_tries` times in all, and not once for each known path."""
    refused = Failure("connection refused", is_retryable=True, is_of_origin=True)
    for first_tries in (1, 2):
        site: dict[str, Any] = {H + path: refused for path in ("robots.txt", "sitemap.xml", "sitemap_index.xml")}
        driver = Driver(site, politeness=Politeness(first_tries=first_tries))
        tree = driver.run()
        assert tree.outcome.kind == "unreachable"
        assert len(driver.started) == first_tries


def test_a_failure_of_one_url_says_nothing_of_the_others() -> None:
    """If a host has answered once, a refused connection fails one URL only."""
    refused = Failure("connection refused", is_retryable=False, is_of_origin=True)
    driver = Driver({**many(5), H + "2.xml": refused})
    assert pages(driver.run()) == 4
