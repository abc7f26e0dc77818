"""The schedule's rules, with plain values: a driver that has scripted answers and a clock that is moved by hand."""

from __future__ import annotations

import gzip
import logging
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest

from support import FakeClient, index, urlset
from usp.documents import Document, Failure
from usp.drivers.options import homepage_walk
from usp.drivers.schedule import Schedule
from usp.drivers.tasks import Fetch, Parse, Task
from usp.limits import Limits
from usp.objects.sitemap import AbstractSitemap, IndexWebsiteSitemap, InvalidSitemap
from usp.politeness import Politeness
from usp.progress import Progress
from usp.tree import sitemap_tree_for_homepage
from usp.walk import KNOWN_PATHS
from usp.web_client.abstract_client import WebClientErrorResponse

H = "http://h/"
S = "https://s/"
Answer = str | bytes | Document | Failure
#: A URL -> what it answers, each time or one after the other, the last for ever; or what gives that.
Site = Mapping[str, Answer | Sequence[Answer]] | Callable[[str], Answer]

NO_ANSWER = Failure("timed out", is_retryable=True)
BROKEN = Failure("500 Oops", 500, is_retryable=True)
BUSY = Failure("503 Busy", 503, is_retryable=True)
MISSING = Failure("404 Not Found", 404)
LARGE = urlset(*(f"{H}page-with-a-rather-long-name/{i}" for i in range(1_000)))


def robots(*names: str, home: str = H) -> str:
    return "".join(f"Sitemap: {name if '://' in name else home + name}\n" for name in names)


class Driver:
    """Runs the walk of a website by its schedule. Each request takes `seconds`; parsing takes no time."""

    def __init__(
        self,
        site: Site,
        homepage: str = H,
        *,
        seconds: float | Callable[[str], float] = 1.0,
        use_known_paths: bool = False,
        user_agent: str = "usp",
        **options: Any,
    ) -> None:
        self.walk, self.options, url = homepage_walk(homepage, use_known_paths=use_known_paths, **options)
        self.now = 100.0
        self.schedule = Schedule(self.walk, self.options, url, self.now, user_agent)
        self.started: list[tuple[float, str]] = []
        self.most_at_once: Counter[str] = Counter()
        self.running: list[tuple[float, int, Task]] = []
        self._site = site
        self._seconds = seconds
        self._asked: Counter[str] = Counter()

    def answer(self, url: str) -> Document | Failure:
        if callable(self._site):
            found: Any = self._site(url)
        else:
            found = self._site.get(url, MISSING)
        if isinstance(found, (list, tuple)):
            found = found[min(self._asked[url], len(found) - 1)]
        self._asked[url] += 1
        if isinstance(found, str):
            found = found.encode()
        return Document(url, found) if isinstance(found, bytes) else found

    def start(self) -> None:
        """Start the tasks of this moment."""
        for task in self.schedule.tasks(self.now):
            takes = 0.0
            if isinstance(task, Fetch):
                self.started.append((self.now - 100, task.job.url))
                takes = min(self._takes(task), self._allowed(task))
            self.running.append((self.now + takes, len(self.started), task))
            hosts = Counter(t.job.host.name for _, _, t in self.running if isinstance(t, Fetch))
            self.most_at_once |= hosts | Counter({"all": hosts.total()})

    def step(self) -> bool:
        """Start tasks and move the clock to the next event. Return False if there is none."""
        self.start()
        if self.schedule.is_done:
            return False
        wakes_at = self.now + self.schedule.wait_seconds(self.now)
        self.running.sort(key=lambda running: running[:2])
        if self.running and self.running[0][0] <= wakes_at:
            self.now, _, task = self.running.pop(0)
            self.end(task)
        else:
            assert wakes_at > self.now or self.schedule._small_documents, "the schedule waits for nothing"
            self.now = wakes_at
            self.schedule.idle()
        return True

    def end(self, task: Task) -> None:
        if not isinstance(task, Fetch):
            outcome: Any = task.fetcher.receive(task.document)
        else:
            outcome = NO_ANSWER if self._takes(task) > self._allowed(task) else self.answer(task.job.url)
        self.schedule.done(task, outcome, self.now)

    def _takes(self, task: Fetch) -> float:
        return self._seconds(task.job.url) if callable(self._seconds) else self._seconds

    def _allowed(self, task: Fetch) -> float:
        return min(task.job.seconds, self.options.limits.request_seconds)

    def run(self) -> IndexWebsiteSitemap:
        while self.step():
            pass
        return self.walk.website()

    def urls(self) -> list[str]:
        return [url for _, url in self.started]

    def times(self, url: str) -> list[float]:
        return [at for at, started in self.started if started == url]


def waits(times: Sequence[float]) -> list[float]:
    """The times between the end of one request, which takes a second, and the start of the next."""
    return [later - earlier - 1 for earlier, later in pairwise(times)]


def reasons(tree: AbstractSitemap) -> dict[str, str]:
    return {s.url: s.reason for s in tree.all_sitemaps() if isinstance(s, InvalidSitemap)}


def codes(tree: AbstractSitemap) -> list[str]:
    return [problem.code for problem in tree.problems]


def many(count: int, host: str = H) -> dict[str, Answer]:
    """A website with many sitemaps of one page each."""
    names = [f"{host}{i}.xml" for i in range(count)]
    return {f"{host}robots.txt": robots(*names), **{name: urlset(name + "/page") for name in names}}


# What starts when


def test_order_of_starts() -> None:
    """One at a time, URLs start in the order of the tree: what an index lists comes before its siblings."""
    site = {
        H + "robots.txt": robots("i.xml", "c.xml"),
        H + "i.xml": index(H + "a.xml", H + "b.xml"),
        **{H + name: urlset(H) for name in ("a.xml", "b.xml", "c.xml")},
    }
    driver = Driver(site, concurrency=1)
    driver.run()
    assert driver.urls() == [H + name for name in ("robots.txt", "i.xml", "a.xml", "b.xml", "c.xml")]
    assert [at for at, _ in driver.started] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("concurrency", [1, 2, 8])
def test_requests_at_once(concurrency: int) -> None:
    """One host gets `concurrency` requests at once, all hosts together four times that; with 1, one request in all."""
    hosts = [f"http://h{i}/" for i in range(10)]
    names = [f"{host}{i}.xml" for i in range(20) for host in hosts]
    site = {H + "robots.txt": robots(*names), **{name: urlset(name + "/p") for name in names}}
    driver = Driver(site, concurrency=concurrency)
    assert len(list(driver.run().all_pages())) == len(names)
    assert driver.most_at_once["h0"] <= concurrency
    assert driver.most_at_once["all"] == (concurrency * 4 if concurrency > 1 else 1)


def test_one_host_gets_no_more_than_its_share() -> None:
    """A single host with many sitemaps gets `concurrency` requests at once, and always that many."""
    driver = Driver(many(40), concurrency=8)
    driver.run()
    assert driver.most_at_once["h"] == 8
    assert driver.now == 100 + 1 + 40 / 8


def test_a_slow_host_does_not_hold_up_others() -> None:
    """A slow host does not hold up others."""
    slow, quick = many(8, "http://slow/"), many(80, "http://quick/")
    site = {**slow, **quick, H + "robots.txt": slow["http://slow/robots.txt"] + quick["http://quick/robots.txt"]}  # type: ignore[operator]
    driver = Driver(site, seconds=lambda url: 1_000 if "slow" in url else 1)
    driver.run()
    assert max(at for at, url in driver.started if "quick" in url) < 20


def test_spacing() -> None:
    """Requests to one host start `spacing` apart; other hosts are not held up."""
    site = {**many(5), **many(5, "http://o/")}
    site[H + "robots.txt"] = str(site[H + "robots.txt"]) + str(site["http://o/robots.txt"])
    driver = Driver(site, politeness=Politeness(spacing=10))
    driver.run()
    for host in ("h", "o"):
        times = [at for at, url in driver.started if f"//{host}/" in url]
        assert {later - earlier for earlier, later in pairwise(times)} == {10}
    assert next(at for at, url in driver.started if "//o/" in url) == 1


@pytest.mark.parametrize(
    ("politeness", "spacing"),
    [
        (Politeness(crawl_delay=True), 7),
        (Politeness(), 0),
        (Politeness(crawl_delay=True, max_delay=3), 3),
        (Politeness(crawl_delay=True, spacing=9), 9),
    ],
)
def test_crawl_delay(politeness: Politeness, spacing: float) -> None:
    """With `crawl_delay`, a Crawl-delay is obeyed up to `max_delay`, and never shortens `spacing`."""
    site = many(3)
    site[H + "robots.txt"] = "User-agent: *\nCrawl-delay: 7\n" + str(site[H + "robots.txt"])
    driver = Driver(site, politeness=politeness, seconds=0)
    assert len(list(driver.run().all_pages())) == 3
    times = [at for at, url in driver.started if not url.endswith("robots.txt")]
    assert {later - earlier for earlier, later in pairwise(times)} == {spacing}


def test_crawl_delay_of_another_host() -> None:
    """With `crawl_delay` the robots.txt of every host is read first, and disallows nothing by itself."""
    site = {**many(3, "http://o/"), H + "robots.txt": robots(*(f"http://o/{i}.xml" for i in range(3)))}
    site["http://o/robots.txt"] = "User-agent: *\nDisallow: /\nCrawl-delay: 4"
    driver = Driver(site, politeness=Politeness(crawl_delay=True))
    assert len(list(driver.run().all_pages())) == 3
    assert driver.urls()[:2] == [H + "robots.txt", "http://o/robots.txt"]
    times = [at for at, _ in driver.started[2:]]
    assert [later - earlier for earlier, later in pairwise(times)] == [4, 4]


# Hosts in trouble


@pytest.mark.parametrize(("asked", "kept"), [(30, 30), (120, 120), (0, 0)])
@pytest.mark.parametrize("status", [429, 503])
def test_retry_after(status: int, asked: float, kept: float) -> None:
    """A host that asks to wait gets no request for exactly that time, up to `max_delay`."""
    site: dict[str, Any] = many(6)
    site[H + "0.xml"] = [Failure(f"{status} No", status, is_retryable=True, retry_after=asked), urlset(H)]
    driver = Driver(site, concurrency=1, politeness=Politeness(retry_seconds=0))
    assert len(list(driver.run().all_pages())) == 6
    at = driver.times(H + "0.xml")[0] + 1
    assert driver.started[2][0] == at + kept


def test_retry_after_leaves_other_hosts_alone() -> None:
    """A host that asks to wait does not hold up others."""
    site: dict[str, Any] = many(20)
    site["http://o/x.xml"] = [Failure("429 No", 429, is_retryable=True, retry_after=100), urlset(H)]
    site[H + "robots.txt"] = "Sitemap: http://o/x.xml\n" + site[H + "robots.txt"]
    driver = Driver(site, concurrency=2)
    driver.run()
    assert max(at for at, url in driver.started if url.startswith(H)) < 20
    assert driver.times("http://o/x.xml") == [1, 102]


def test_429_without_retry_after() -> None:
    """A host that answers 429 gets no request until the next try."""
    site: dict[str, Any] = many(6)
    site[H + "0.xml"] = [Failure("429 No", 429, is_retryable=True), urlset(H)]
    driver = Driver(site, concurrency=1, politeness=Politeness(retry_seconds=40))
    driver.run()
    assert 20 <= driver.started[2][0] - 2 <= 60


@pytest.mark.parametrize("status", [429, 503])
def test_concurrency_halves_and_recovers(status: int) -> None:
    """An overloaded host gets half as many requests at once, and recovers with each answer."""
    site: dict[str, Any] = many(200)
    site[H + "0.xml"] = [Failure(f"{status} No", status, is_retryable=True), urlset(H)]
    driver = Driver(site, concurrency=8, politeness=Politeness(retry_seconds=0), seconds=lambda url: 1)
    driver.run()
    at_once = Counter(at for at, _ in driver.started)
    rounds = [at_once[at] for at in sorted(at_once)][1:-1]
    assert rounds[0] == 8
    assert min(rounds) in (4, 5)  # it has grown a little by the answers that came at the same time
    assert rounds[1] < 8
    assert max(rounds[1:]) == 8
    assert driver.most_at_once["h"] == 8


def test_concurrency_is_one_at_least() -> None:
    """A host that is always overloaded gets one request at a time."""
    driver = Driver({**dict.fromkeys(many(30), BUSY), H + "robots.txt": many(30)[H + "robots.txt"]}, concurrency=8)
    tree = driver.run()
    assert len(reasons(tree)) == 30
    late = [at for at, _ in driver.started][-20:]
    assert len(late) == len(set(late))


@pytest.mark.parametrize("status", [429, 503])
def test_a_host_that_refuses_everything_is_not_tried_for_long(status: int) -> None:
    """A host that answers 429 or 503 to everything gets retries for one URL only, not for each known path."""
    driver = Driver(lambda _: Failure(f"{status} No", status, is_retryable=True), use_known_paths=True, concurrency=4)
    assert driver.run().outcome.kind == "blocked"
    tried = Counter(url for _, url in driver.started)
    assert tried.pop(H + "robots.txt") == 5
    assert set(tried.values()) == {1}
    assert len(tried) > 10


def test_a_host_that_recovers_gets_all_its_retries() -> None:
    """Once a host that refused everything has served something, its URLs get retries again."""
    site: dict[str, Any] = many(3) | {H + "robots.txt": BUSY}
    site[H + "sitemap.xml"] = index(*(f"{H}{number}.xml" for number in range(3)))
    site[H + "1.xml"] = [BUSY, BUSY, urlset(H)]
    driver = Driver(site, use_known_paths=True, concurrency=1)
    assert len(list(driver.run().all_pages())) == 3
    assert len(driver.times(H + "1.xml")) == 3


# Retries


def test_waits_grow() -> None:
    """Each wait is twice as long as the one before, varied at random by half."""
    seen: list[list[float]] = []
    for _ in range(60):
        driver = Driver(
            {H + "robots.txt": robots("a.xml"), H + "a.xml": BROKEN}, politeness=Politeness(retry_seconds=3)
        )
        assert reasons(driver.run()) == {H + "a.xml": f"Unable to fetch sitemap from {H}a.xml: 500 Oops"}
        seen.append(waits(driver.times(H + "a.xml")))
        assert len(seen[-1]) == 4
        ended = driver.times(H + "a.xml")[-1] + 1
        assert driver.now == 100 + ended, "there is no wait after the last try"
    for n in range(4):
        nth = [wait[n] / (3 * 2**n) for wait in seen]
        assert all(0.499 <= factor <= 1.501 for factor in nth)
        assert max(nth) - min(nth) > 0.3


def test_waits_are_capped() -> None:
    """No wait is longer than five minutes; `max_delay` limits only what servers ask for."""
    site: dict[str, Answer] = {H + "robots.txt": robots("a.xml"), H + "a.xml": BROKEN}
    driver = Driver(site, politeness=Politeness(retry_seconds=50, max_delay=0))
    driver.run()
    assert 200 <= max(waits(driver.times(H + "a.xml"))) <= 300.001


def test_others_go_on_while_one_waits() -> None:
    """A URL that waits for its next try does not hold up others, even with one request at a time."""
    site = {**many(5), H + "0.xml": BROKEN}
    driver = Driver(site, concurrency=1, politeness=Politeness(retry_seconds=100))
    driver.run()
    assert [url for _, url in driver.started[:6]] == [H + "robots.txt", *(f"{H}{i}.xml" for i in range(5))]
    assert driver.started[5][0] == 5


@pytest.mark.parametrize(
    ("failure", "tries"),
    [
        (BROKEN, 5),
        (BUSY, 5),
        (NO_ANSWER, 5),
        (MISSING, 1),
        (Failure("refused"), 1),
        (Failure("400 Bad", 400, is_retryable=True), 5),
    ],
)
def test_tries_of_a_host_that_answered(failure: Failure, tries: int) -> None:
    """On a host that has answered, a retryable failure is tried five times, any other once."""
    driver = Driver({H + "robots.txt": robots("a.xml"), H + "a.xml": failure})
    driver.run()
    assert len(driver.times(H + "a.xml")) == tries


@pytest.mark.parametrize("tries", [1, 2, 7])
def test_tries_are_an_option(tries: int) -> None:
    """`tries` says how often a URL is tried."""
    driver = Driver({H + "robots.txt": robots("a.xml"), H + "a.xml": BROKEN}, politeness=Politeness(tries=tries))
    driver.run()
    assert len(driver.times(H + "a.xml")) == tries


def test_a_retry_that_succeeds() -> None:
    """A document that arrives at a later try has no problem."""
    site: Site = {H + "robots.txt": robots("a.xml"), H + "a.xml": [BROKEN, NO_ANSWER, urlset(H + "1")]}
    tree = Driver(site).run()
    assert [page.url for page in tree.all_pages()] == [H + "1"]
    assert list(tree.all_problems()) == []


def test_tries_of_a_host_that_never_answered() -> None:
    """A host that never answered gets two tries for its first URL, one for the next two, and none for others."""
    names = [f"http://gone/{i}.xml" for i in range(10)]
    site: Site = {H + "robots.txt": robots(*names), **dict.fromkeys(names, NO_ANSWER)}
    driver = Driver(site, concurrency=1, politeness=Politeness(retry_seconds=0))
    tree = driver.run()
    tries = Counter(driver.urls())
    assert [tries[name] for name in names] == [2, 1, 1, 0, 0, 0, 0, 0, 0, 0]
    assert len(reasons(tree)) == 10
    assert "gone does not answer: timed out" in reasons(tree)[names[-1]]


@pytest.mark.slow
@pytest.mark.parametrize(("seconds", "tries"), [(60, 40), (0.001, 120)])
def test_many_urls_of_a_host_that_never_answered(seconds: float, tries: int) -> None:
    """Ten thousand URLs of a host that does not exist cost a few tries in all."""
    names = [f"http://gone/{i}.xml" for i in range(10_000)]
    driver = Driver({H + "robots.txt": robots(*names), **dict.fromkeys(names, NO_ANSWER)}, seconds=seconds)
    assert len(reasons(driver.run())) == 10_000
    assert len(driver.started) <= tries


def test_a_host_that_answers_later() -> None:
    """A host that has answered once, with any status, is not given up."""
    names = [f"http://o/{i}.xml" for i in range(8)]
    site: dict[str, Any] = {H + "robots.txt": robots(*names), **dict.fromkeys(names, NO_ANSWER), names[0]: MISSING}
    driver = Driver(site, concurrency=1, politeness=Politeness(retry_seconds=0))
    driver.run()
    tries = Counter(driver.urls())
    assert [tries[name] for name in names] == [1, 5, 5, 5, 5, 5, 5, 5]


def test_ports_are_told_apart() -> None:
    """Each scheme and port of a host is given up on its own."""
    names = [f"http://h:81/{i}.xml" for i in range(8)]
    site: Site = {H + "robots.txt": robots(*names), **dict.fromkeys(names, NO_ANSWER)}
    driver = Driver(site, concurrency=1, politeness=Politeness(retry_seconds=0))
    driver.run()
    assert len(driver.started) == 1 + 4


@pytest.mark.slow
def test_retry_budget() -> None:
    """If everything fails, retries end: ten thousand URLs are tried about once each."""
    names = [f"{H}{i}.xml" for i in range(10_000)]
    driver = Driver({H + "robots.txt": robots(*names), **dict.fromkeys(names, BROKEN)})
    assert len(reasons(driver.run())) == 10_000
    assert 10_000 < len(driver.started) <= 10_000 + 1 + 100


@pytest.mark.slow
def test_retry_budget_is_refilled() -> None:
    """Each document gives back one retry, so a host that mostly answers never runs out."""
    site: dict[str, Any] = many(2_000)
    for i in range(0, 2_000, 2):
        site[f"{H}{i}.xml"] = [BROKEN, urlset(f"{H}{i}")]
    tree = Driver(site, concurrency=4, politeness=Politeness(retry_seconds=0)).run()
    assert len(list(tree.all_pages())) == 2_000
    assert reasons(tree) == {}


def test_a_budget_for_each_host() -> None:
    """Each host has a retry budget of its own."""
    names = [f"http://o/{i}.xml" for i in range(500)]
    site: dict[str, Any] = {H + "robots.txt": robots(*names, "a.xml"), **dict.fromkeys(names, BROKEN)}
    site[H + "a.xml"] = [BROKEN] * 4 + [urlset(H)]
    tree = Driver(site, politeness=Politeness(retry_seconds=0)).run()
    assert len(list(tree.all_pages())) == 1


# Documents that came in part


def partial(text: str, url: str = H + "a.xml") -> Failure:
    return Failure("cut off", None, True, None, Document(url, text.encode(), transport_problems=("T805",)))


def test_a_partial_document() -> None:
    """A partial document is used after the last try, with a problem."""
    driver = Driver({H + "robots.txt": robots("a.xml"), H + "a.xml": partial(urlset(H + "1")[:-9])})
    (sitemap,) = driver.run().sub_sitemaps[0].sub_sitemaps
    assert len(driver.times(H + "a.xml")) == 5
    assert [page.url for page in sitemap.pages] == [H + "1"]
    assert "T805" in codes(sitemap)


def test_a_partial_document_is_not_used_early() -> None:
    """A partial document is dropped if a later try brings all of it."""
    site: Site = {H + "robots.txt": robots("a.xml"), H + "a.xml": [partial(urlset(H + "1")), urlset(H + "1", H + "2")]}
    tree = Driver(site).run()
    assert [page.url for page in tree.all_pages()] == [H + "1", H + "2"]
    assert list(tree.all_problems()) == []


@pytest.mark.parametrize("last", [BROKEN, NO_ANSWER, Failure("410 Gone", 410)])
def test_a_partial_document_of_an_earlier_try(last: Failure) -> None:
    """A partial document is used if no later try brings all of it, however those fail."""
    site: Site = {H + "robots.txt": robots("a.xml"), H + "a.xml": [partial(urlset(H + "1")), last]}
    tree = Driver(site).run()
    assert [page.url for page in tree.all_pages()] == [H + "1"]


def late_try(driver: Driver, tries: int) -> Task:
    """Run until a.xml is tried for the last time, and go on when the tree's time is up. Return that try."""
    driver.start()
    while len(driver.times(H + "a.xml")) < tries:
        assert driver.step()
        driver.start()
    ((_, _, task),) = driver.running
    driver.running.clear()
    driver.now = 120
    return task


@pytest.mark.parametrize("has_ended", [False, True])
def test_a_partial_document_when_the_time_is_up(has_ended: bool) -> None:
    """A partial document is used if the next try has not ended when the time is up, or has brought nothing."""
    site: Site = {H + "robots.txt": robots("a.xml"), H + "a.xml": partial(urlset(H + "1"))}
    driver = Driver(site, limits=Limits(tree_seconds=20))
    task = late_try(driver, 2)
    if has_ended:
        driver.schedule.done(task, NO_ANSWER, driver.now)
    assert [page.url for page in driver.run().all_pages()] == [H + "1"]


def test_a_partial_document_that_the_end_of_the_time_has_cut() -> None:
    """What the first try has brought until the tree's time is up is used."""
    driver = Driver({H + "robots.txt": robots("a.xml")}, limits=Limits(tree_seconds=20))
    driver.schedule.done(late_try(driver, 1), partial(urlset(H + "1")), driver.now)
    assert [page.url for page in driver.run().all_pages()] == [H + "1"]


# From http to https


def https_site(failure: Failure, http: str = "http://o/") -> dict[str, Any]:
    return {S + "robots.txt": robots(http + "a.xml"), http + "a.xml": failure, "https://o/a.xml": urlset(S + "1")}


def test_http_to_https() -> None:
    """If the homepage is https, a URL that does not answer over http is tried over https."""
    driver = Driver(https_site(NO_ANSWER), S)
    tree = driver.run()
    assert driver.urls() == [S + "robots.txt", "http://o/a.xml", "http://o/a.xml", "https://o/a.xml"]
    assert [page.url for page in tree.all_pages()] == [S + "1"]
    assert reasons(tree) == {}


def test_http_to_https_in_vain() -> None:
    """If both fail, the reason says what happened over http and over https."""
    site = https_site(NO_ANSWER) | {"https://o/a.xml": Failure("403 Forbidden", 403)}
    driver = Driver(site, S)
    (reason,) = reasons(driver.run()).values()
    assert reason == "Unable to fetch sitemap from http://o/a.xml: timed out; and over https: 403 Forbidden"
    assert driver.urls().count("https://o/a.xml") == 1


def test_http_to_https_and_no_answer_there() -> None:
    """The try over https is retried like any other, and not over http again."""
    site = https_site(NO_ANSWER) | {"https://o/a.xml": NO_ANSWER}
    driver = Driver(site, S)
    driver.run()
    assert driver.urls()[1:] == ["http://o/a.xml"] * 2 + ["https://o/a.xml"] * 2


@pytest.mark.parametrize(
    ("homepage", "http", "failure"),
    [
        (H, "http://o/", NO_ANSWER),  # the homepage is http
        (S, "http://o:8080/", NO_ANSWER),  # a port of its own
        (S, "http://o/", BROKEN),  # it answers over http
        (S, "http://o/", MISSING),
    ],
)
def test_no_change_to_https(homepage: str, http: str, failure: Failure) -> None:
    """A URL stays http unless the homepage is https, its port is 80, and there is no answer at all."""
    site = https_site(failure, http) | {H + "robots.txt": robots(http + "a.xml")}
    driver = Driver(site, homepage)
    assert http + "a.xml" in reasons(driver.run())
    assert not any(url.startswith("https://o") for url in driver.urls())


def test_no_change_to_https_of_a_host_that_answered() -> None:
    """A host that has answered over http is not tried over https."""
    site = https_site(NO_ANSWER)
    site |= {S + "robots.txt": robots("http://o/0.xml", "http://o/a.xml"), "http://o/0.xml": urlset(S)}
    driver = Driver(site, S, concurrency=1)
    driver.run()
    assert "https://o/a.xml" not in driver.urls()


def test_many_urls_over_https() -> None:
    """Every URL of a host that only answers over https is fetched, with few tries over http."""
    names = [f"http://o/{i}.xml" for i in range(200)]
    site: dict[str, Any] = {S + "robots.txt": robots(*names), **dict.fromkeys(names, NO_ANSWER)}
    site |= {f"https{name[4:]}": urlset(name) for name in names}
    driver = Driver(site, S)
    tree = driver.run()
    assert [page.url for page in tree.all_pages()] == names
    assert len(driver.started) <= 1 + 200 + 40


def test_what_is_had_over_https_is_not_fetched_again() -> None:
    """An https URL that has been fetched is not fetched again in place of an http one."""
    site: dict[str, Any] = {
        S + "robots.txt": robots("https://o/a.xml", "http://o/a.xml"),
        "http://o/a.xml": NO_ANSWER,
        "https://o/a.xml": urlset(S + "1"),
    }
    driver = Driver(site, S, concurrency=1)
    tree = driver.run()
    assert [page.url for page in tree.all_pages()] == [S + "1", S + "1"]
    assert driver.urls().count("https://o/a.xml") == 1


# robots.txt


DISALLOW = "User-agent: *\nDisallow: /private/\n"


def test_robots_of_the_home_host() -> None:
    """The rules of the homepage's host come from the robots.txt of the tree, which is fetched once."""
    site = {H + "robots.txt": DISALLOW + robots("private/a.xml", "b.xml"), H + "b.xml": urlset(H)}
    driver = Driver(site, respect_robots=True)
    tree = driver.run()
    assert driver.urls() == [H + "robots.txt", H + "b.xml"]
    (reason,) = reasons(tree).values()
    assert reason == (
        f"Unable to fetch sitemap from {H}private/a.xml: its host's robots.txt disallows it to 'usp' (respect_robots)"
    )


def test_robots_is_an_option() -> None:
    """Without `respect_robots`, disallowed sitemaps are fetched."""
    site = {H + "robots.txt": DISALLOW + robots("private/a.xml"), H + "private/a.xml": urlset(H)}
    assert len(list(Driver(site).run().all_pages())) == 1


@pytest.mark.parametrize(("user_agent", "is_allowed"), [("usp", True), ("Acme/2.0", False), ("another", True)])
def test_rules_are_those_of_the_user_agent(user_agent: str, is_allowed: bool) -> None:
    """The rules for the client's user agent apply."""
    text = "User-agent: acme\nDisallow: /\n\nUser-agent: *\nDisallow:\n" + robots("a.xml")
    driver = Driver({H + "robots.txt": text, H + "a.xml": urlset(H)}, respect_robots=True, user_agent=user_agent)
    driver.run()
    assert (H + "a.xml" in driver.urls()) is is_allowed


def rules_driver(answer: Answer, **options: Any) -> Driver:
    """A website whose sitemaps are on another host, which answers this for its robots.txt."""
    names = [f"http://o/{i}.xml" for i in range(3)]
    site: dict[str, Any] = {H + "robots.txt": robots(*names), **{name: urlset(name) for name in names}}
    driver = Driver(site | {"http://o/robots.txt": answer}, respect_robots=True, **options)
    driver.run()
    return driver


def test_robots_of_other_hosts() -> None:
    """The robots.txt of another host is fetched once, before anything else of it, and is not part of the tree."""
    driver = rules_driver("User-agent: *\nDisallow: /1.xml")
    assert driver.urls()[:2] == [H + "robots.txt", "http://o/robots.txt"]
    assert sorted(driver.urls()[2:]) == ["http://o/0.xml", "http://o/2.xml"]
    assert [s.url for s in driver.walk.website().sub_sitemaps] == [H + "robots.txt"]


@pytest.mark.parametrize("concurrency", [1, 8])
def test_order_under_rules(concurrency: int) -> None:
    """URLs that wait for a robots.txt start in the order they are declared."""
    assert rules_driver("", concurrency=concurrency).urls()[2:] == [f"http://o/{i}.xml" for i in range(3)]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 429])
def test_no_robots_txt(status: int) -> None:
    """A 4xx means that everything is allowed."""
    driver = rules_driver(Failure(f"{status} No", status))
    assert len(list(driver.walk.website().all_pages())) == 3


@pytest.mark.parametrize("failure", [BROKEN, BUSY, NO_ANSWER, Failure("no such host")])
def test_unreachable_robots_txt(failure: Failure) -> None:
    """If robots.txt cannot be fetched because of the server or the network, nothing is allowed."""
    driver = rules_driver(failure)
    tree = driver.walk.website()
    assert set(driver.urls()) == {H + "robots.txt", "http://o/robots.txt"}
    assert list(tree.all_pages()) == []
    assert all(f"robots.txt could not be fetched ({failure.message})" in reason for reason in reasons(tree).values())
    assert len(reasons(tree)) == 3


def test_unreachable_robots_txt_of_the_home_host() -> None:
    """If the robots.txt of the homepage's host cannot be fetched, known paths are not requested either."""
    driver = Driver({H + "robots.txt": BROKEN, H + "sitemap.xml": urlset(H)}, respect_robots=True, use_known_paths=True)
    tree = driver.run()
    assert set(driver.urls()) == {H + "robots.txt"}
    assert codes(tree) == ["R704", "C901"]
    assert "(respect_robots)" in tree.problems[1].message
    assert tree.sub_sitemaps == []


def test_robots_txt_that_disallows_itself() -> None:
    """robots.txt itself is always allowed, even if a sitemap lists it."""
    site = {H + "robots.txt": "User-agent: *\nDisallow: /\n" + robots("http://o/robots.txt")}
    site["http://o/robots.txt"] = "User-agent: *\nDisallow: /"
    driver = Driver(site, respect_robots=True)
    assert reasons(driver.run()) == {}
    assert driver.urls() == [H + "robots.txt", "http://o/robots.txt"]


def test_rules_without_use_robots() -> None:
    """Without `use_robots`, the rules apply too, and robots.txt is not part of the tree."""
    site = {H + "robots.txt": DISALLOW + robots("b.xml"), H + "sitemap.xml": index(H + "private/a.xml", H + "c.xml")}
    site |= {H + name: urlset(H + name) for name in ("b.xml", "c.xml", "private/a.xml")}
    driver = Driver(site, respect_robots=True, use_robots=False, use_known_paths=True)
    tree = driver.run()
    assert driver.urls()[0] == H + "robots.txt"
    assert driver.urls().count(H + "robots.txt") == 1
    assert [page.url for page in tree.all_pages()] == [H + "c.xml"]
    assert [s.url for s in tree.sub_sitemaps] == [H + "sitemap.xml"]


def test_known_paths_under_rules_keep_their_order() -> None:
    """With `respect_robots`, too, known paths are requested in their order."""
    plain = Driver({}, use_robots=False, use_known_paths=True, concurrency=1)
    ruled = Driver({}, use_robots=False, use_known_paths=True, concurrency=1, respect_robots=True)
    plain.run()
    ruled.run()
    assert ruled.urls() == [H + "robots.txt", *plain.urls()]


def test_rules_over_https() -> None:
    """The rules of a host that only answers over https are fetched over https."""
    site: dict[str, Any] = https_site(NO_ANSWER) | {"http://o/robots.txt": NO_ANSWER}
    site["https://o/robots.txt"] = "User-agent: *\nDisallow: /a.xml"
    driver = Driver(site, S, respect_robots=True)
    assert list(driver.run().all_pages()) == []
    assert "https://o/a.xml" not in driver.urls()
    site["https://o/robots.txt"] = "User-agent: *\nDisallow: /b.xml"
    assert [page.url for page in Driver(site, S, respect_robots=True).run().all_pages()] == [S + "1"]


def test_a_robots_txt_is_fetched_once() -> None:
    """A robots.txt that was fetched for its rules is not fetched again if a sitemap lists it."""
    site = {H + "robots.txt": robots("http://o/i.xml"), "http://o/robots.txt": "Sitemap: http://o/a.xml"}
    site |= {"http://o/i.xml": index("http://o/robots.txt"), "http://o/a.xml": urlset(H + "1")}
    driver = Driver(site, respect_robots=True)
    assert [page.url for page in driver.run().all_pages()] == [H + "1"]
    assert driver.urls().count("http://o/robots.txt") == 1


# One fetch per URL, and progress


def tangled(chance: random.Random, failing: float = 0.2) -> dict[str, Answer]:
    """A website at random: shared children, loops, things that fail."""
    site: dict[str, Answer] = {}
    names = [H + name for name in ("sitemap.xml", "sitemap_index.xml", *(f"{i}.xml" for i in range(12)))]
    for name in names:
        if chance.random() < failing:
            failures: list[Answer] = [MISSING, BROKEN, NO_ANSWER, "<html></html>", ""]
            site[name] = chance.choice(failures)
        elif chance.random() < 0.4:
            site[name] = index(*chance.choices(names, k=4))
        else:
            site[name] = chance.choice([urlset(name + "/1", name + "/2"), LARGE])
    return {H + "robots.txt": robots(*chance.choices(names, k=4)), **site}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_no_url_is_fetched_twice(seed: int) -> None:
    """Whatever the order of responses, no URL is fetched again after its last try, and the tree is the same."""
    chance = random.Random(seed)
    site = tangled(chance)
    options: dict[str, Any] = {"use_known_paths": True, "politeness": Politeness(retry_seconds=0.1)}
    first = Driver(site, concurrency=1, **options)
    tree = first.run()
    for concurrency in (1, 2, 3, 8):
        driver = Driver(site, concurrency=concurrency, seconds=lambda url: chance.random(), **options)
        assert driver.run() == tree
        tries = Counter(driver.urls())
        assert all(count == 1 or site.get(url, MISSING) in (BROKEN, NO_ANSWER) for url, count in tries.items())


@pytest.mark.parametrize("seed", range(20))
def test_progress(seed: int) -> None:
    """Each URL is found, then parsed or failed, once. Known paths that are no sitemaps are not counted."""
    chance = random.Random(seed)
    site = tangled(chance)
    events: list[Progress] = []
    driver = Driver(
        site,
        use_known_paths=True,
        politeness=Politeness(retry_seconds=0.1),
        progress=events.append,
        concurrency=chance.choice([1, 3, 8]),
        seconds=lambda url: chance.random(),
    )
    driver.run()
    kinds: dict[str, list[str]] = {}
    for event in events:
        kinds.setdefault(event.url, []).append(event.kind)
    assert set(kinds) == set(driver.urls())
    for url, seen in kinds.items():
        expected = {("found", "fetched", "parsed"), ("found", "failed"), ("found", "fetched", "failed")}
        assert tuple(seen) in expected, url
    of_kind = {
        kind: [event for event in events if event.kind == kind] for kind in ("found", "fetched", "parsed", "failed")
    }
    last = events[-1]
    known = {H + path for path in KNOWN_PATHS}
    guessed = [event for event in of_kind["failed"] if event.url in known]
    # A sitemap may list a known path, before or after it is tried: then it may count, and may not.
    unlisted = [event for event in guessed if not any(event.url in str(document) for document in site.values())]
    assert unlisted
    assert last.parsed == len(of_kind["parsed"])
    assert len(of_kind["failed"]) - len(guessed) <= last.failed <= len(of_kind["failed"]) - len(unlisted)
    assert last.done == last.found
    assert last.pages == sum(event.listed for event in of_kind["parsed"])
    assert last.bytes == sum(event.size for event in of_kind["fetched"])
    assert last.bytes == sum(len(str(site[e.url]).encode()) for e in of_kind["fetched"])
    assert all(event.reason for event in of_kind["failed"])
    for earlier, later in pairwise(events):
        assert later.done >= earlier.done
        assert later.found >= earlier.found
        assert later.bytes >= earlier.bytes
        assert later.pages >= earlier.pages


def test_progress_of_what_is_stopped() -> None:
    """If the tree is stopped, too, each URL that was found is parsed or failed once."""
    events: list[Progress] = []
    Driver(many(50), concurrency=2, limits=Limits(tree_seconds=4.5), progress=events.append).run()
    kinds: dict[str, list[str]] = {}
    for event in events:
        kinds.setdefault(event.url, []).append(event.kind)
    assert {tuple(kind for kind in seen if kind != "fetched") for seen in kinds.values()} <= {
        ("found", "parsed"),
        ("found", "failed"),
    }


def test_a_callback_that_raises() -> None:
    """An error in the caller's progress callback reaches the caller."""
    with pytest.raises(ZeroDivisionError):
        Driver(many(3), progress=lambda event: 1 // 0).run()


# Limits


def test_tree_seconds() -> None:
    """When the time is up, fetched sitemaps stay in the tree, the rest says why, and no request starts."""
    driver = Driver(many(50), concurrency=2, limits=Limits(tree_seconds=4.5))
    tree = driver.run()
    assert driver.now == 104.5
    assert len(list(tree.all_pages())) == 6
    assert codes(tree) == ["C901"]
    left = reasons(tree)
    assert len(left) == 44
    assert set(left.values()) == {"Not fetched: the tree's time is up, after 4.5 seconds (limits.tree_seconds)."}
    assert len(driver.started) == 9
    assert list(driver.schedule.tasks(driver.now + 1)) == []


def test_late_answers() -> None:
    """A response after a stop changes nothing."""
    driver = Driver(many(50), concurrency=2, limits=Limits(tree_seconds=4.5))
    tree = driver.run()
    assert len(driver.running) == 2
    for _, _, task in driver.running:
        driver.end(task)
    assert driver.walk.website() == tree
    assert driver.schedule.is_done


@pytest.mark.parametrize("ends_in_time", [False, True])
def test_documents_that_wait_to_be_read(ends_in_time: bool) -> None:
    """When the time is up, documents that wait stay unread; the one that is being parsed is kept if it ends soon."""
    site = {**many(10), **{f"{H}{i}.xml": LARGE for i in range(10)}}
    driver = Driver(site, concurrency=8, limits=Limits(tree_seconds=1_000))
    parses: list[Task] = []
    while len(driver.started) < 9 or any(isinstance(task, Fetch) for _, _, task in driver.running):
        driver.start()
        parses += [task for _, _, task in driver.running if isinstance(task, Parse)]
        driver.running = [running for running in driver.running if isinstance(running[2], Fetch)]
        if driver.running:
            driver.end(driver.running.pop(0)[2])
        elif not driver.step():
            break
    assert len(parses) == 1, "one document is read at a time"
    driver.now = 100 + 1_000
    driver.start()
    assert not driver.schedule.is_done, "it waits for the document that is being parsed"
    assert 0 < driver.schedule.wait_seconds(driver.now) < 1, "and looks for it soon, but not all the time"
    if ends_in_time:
        driver.end(parses[0])
    driver.now += 3
    driver.start()
    assert driver.schedule.is_done
    tree = driver.walk.website()
    assert len(list(tree.all_pages())) == 1_000 * ends_in_time
    why = "the tree's time is up, after 1000 seconds (limits.tree_seconds)"
    assert Counter(reasons(tree).values()) == {f"Not read: {why}.": 10 - ends_in_time}
    assert [problem.message for problem in tree.problems] == [f"{why}; the rest was skipped"]
    assert tree.outcome.kind == "partial", "the site is not to blame"
    driver.end(parses[0])
    assert driver.walk.website() == tree


@pytest.mark.parametrize("large", [False, True])
def test_max_total_bytes(large: bool) -> None:
    """At `max_total_bytes` no request starts, and fetched sitemaps stay in the tree."""
    body = LARGE if large else urlset(H + "1")
    site = {**many(10), **{f"{H}{i}.xml": body for i in range(10)}}
    first = len(str(site[H + "robots.txt"]))
    driver = Driver(site, concurrency=1, limits=Limits(max_total_bytes=first + 3 * len(body) - 5))
    tree = driver.run()
    assert len(driver.started) == 4
    assert len(list(tree.all_pages())) == 3 * (1_000 if large else 1)
    assert codes(tree) == ["C901"]
    assert "limits.max_total_bytes" in tree.problems[0].message
    assert all("limits.max_total_bytes" in reason for reason in reasons(tree).values())
    assert len(reasons(tree)) == 7


def test_documents_that_have_arrived_at_max_total_bytes() -> None:
    """At `max_total_bytes`, documents that have arrived and wait are parsed: there is time."""
    site = {**many(10), **{f"{H}{i}.xml": LARGE for i in range(10)}}
    first = len(str(site[H + "robots.txt"]))
    driver = Driver(site, concurrency=8, limits=Limits(max_total_bytes=first + 5 * len(LARGE) - 5))
    driver.step()
    while len(driver.schedule._large_documents) < 5 and not driver.schedule._ending:
        driver.start()
        driver.running.sort(key=lambda running: isinstance(running[2], Parse))  # parsing takes long
        driver.end(driver.running.pop(0)[2]) if driver.running else driver.step()
    assert driver.schedule._large_documents
    tree = driver.run()
    assert len(list(tree.all_pages())) == 5 * 1_000
    assert set(reasons(tree).values()) == {f"Not fetched: {tree.problems[0].message.partition(';')[0]}."}


def test_max_total_bytes_that_are_just_enough() -> None:
    """A tree of exactly `max_total_bytes` has no problem."""
    site = many(3)
    size = sum(len(str(body)) for body in site.values())
    tree = Driver(site, limits=Limits(max_total_bytes=size)).run()
    assert len(list(tree.all_pages())) == 3
    assert tree.problems == ()


@pytest.mark.parametrize("concurrency", [1, 8])
def test_max_pages_ends_the_fetching(concurrency: int) -> None:
    """At `max_pages` no request starts."""
    driver = Driver(many(200), concurrency=concurrency, limits=Limits(max_pages=5))
    assert len(list(driver.run().all_pages())) == 5
    assert len(driver.started) <= 1 + 5 + 2 * concurrency


def test_a_stop_ends_everything() -> None:
    """A stopped schedule is done at once, and gives no more tasks."""
    driver = Driver(many(20), concurrency=4)
    for _ in range(6):
        driver.step()
    driver.schedule.stop("it was interrupted")
    driver.schedule.stop("for another reason")
    assert driver.schedule.is_done
    assert list(driver.schedule.tasks(driver.now)) == []
    found = set(reasons(driver.walk.website()).values())
    assert found == {"Not fetched: it was interrupted.", "Not read: it was interrupted."}


# What sites and clients do


@pytest.mark.slow
def test_what_inflates_is_large() -> None:
    """A small body that inflates to a large one is parsed as a task, like a large one."""
    packed = gzip.compress(index(*(f"{H}{i % 7}" for i in range(40_000))).encode())
    assert len(packed) < 1 << 15
    driver = Driver({H + "robots.txt": robots("a.xml.gz"), H + "a.xml.gz": packed})
    parses = []
    while driver.step():
        parses += [task for _, _, task in driver.running if isinstance(task, Parse)]
        driver.start()
        parses += [task for _, _, task in driver.running if isinstance(task, Parse)]
    assert parses


def test_urls_that_lead_nowhere() -> None:
    """No URL that a site can list ends a tree."""
    odd = [
        "http://h:99999/a",
        "http://h:0/a",
        "http://[::1/",
        "http://a..b/",
        "http://\u00ff\u200d/",
        "http://h:x/",
        "http://%/",
    ]
    site: dict[str, Any] = {H + "robots.txt": robots(*odd, "b.xml"), H + "b.xml": index(*odd)}
    for respect_robots in (False, True):
        for cross_host in ("allow", "same-site", "same-host"):
            Driver(site, respect_robots=respect_robots, cross_host=cross_host).run()


def test_clients_that_do_not_say_the_status() -> None:
    """A client whose errors have no status, as those of drop-in callers, is asked for all known paths."""

    class Client(FakeClient):
        def get(self, url: str) -> Any:
            return super().get(url) if url in site else WebClientErrorResponse("Not found", retryable=False)

    site = {H + "sitemap_index.xml": index(H + "a.xml"), H + "a.xml": urlset(H + "1")}
    tree = sitemap_tree_for_homepage(H, Client(site))
    assert [page.url for page in tree.all_pages()] == [H + "1"]


def test_a_host_that_never_answers_holds_back_its_other_urls() -> None:
    """While the first URL of a host that never answered waits for its second try, its other URLs do not start."""
    site: dict[str, Answer] = {H + "robots.txt": robots(*(f"http://dead/{i}.xml" for i in range(50)))}
    site |= {f"http://dead/{i}.xml": NO_ANSWER for i in range(50)}
    driver = Driver(site, concurrency=1)
    tree = driver.run()
    assert driver.urls().count("http://dead/0.xml") == 2
    assert len([url for url in driver.urls() if "dead" in url]) == 4
    assert len(reasons(tree)) == 50


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"limits": Limits(max_depth=0)}, "Recursion level exceeded 0"),
        ({"limits": Limits(max_sitemaps=2)}, "limits.max_sitemaps"),
        ({"cross_host": "same-host"}, "cross_host"),
    ],
)
def test_progress_of_what_is_left_out(options: dict[str, Any], reason: str) -> None:
    """A sitemap that is declared but not fetched is reported as found and failed, with its reason."""
    events: list[Progress] = []
    site = {H + "robots.txt": robots("http://o/1.xml", "http://o/2.xml")}
    tree = Driver(site, progress=events.append, **options).run()
    failed = {event.url: event.reason for event in events if event.kind == "failed"}
    assert failed.keys() == {event.url for event in events if event.kind == "found"} - {H + "robots.txt"}
    assert any(reason in why for why in failed.values())
    assert (events[-1].done, events[-1].found) == (len(failed) + 1,) * 2
    assert codes(tree) == ([] if "cross_host" in options else ["C901"])


def test_failures_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Giving up a URL is logged as a warning; the tries before are not."""
    caplog.set_level(logging.INFO, logger="usp")
    Driver({H + "robots.txt": robots("a.xml"), H + "a.xml": BROKEN}).run()
    levels = [record.levelno for record in caplog.records if "a.xml" in record.message and "500" in record.message]
    assert levels.count(logging.WARNING) == 1
    assert levels.count(logging.INFO) == 4


def test_hosts_are_asked_in_the_order_they_are_listed() -> None:
    """Children on many hosts are requested in their order, so a limit on pages needs few requests."""
    site = {H + "robots.txt": robots(*(f"http://h{i}/a.xml" for i in range(200)))}
    site |= {f"http://h{i}/a.xml": urlset(f"http://h{i}/") for i in range(200)}
    driver = Driver(site, concurrency=1)
    driver.run()
    assert driver.urls()[1:] == [f"http://h{i}/a.xml" for i in range(200)]
    driver = Driver(site, concurrency=4, limits=Limits(max_pages=1))
    driver.run()
    assert len(driver.urls()) < 40


def test_rules_of_a_host_that_does_not_answer_over_http() -> None:
    """If a host does not answer over http, its sitemaps are requested over https, but its robots.txt is not."""
    site: dict[str, Answer] = {S + "robots.txt": robots("http://s/a.xml", "http://s/robots.txt", home=S)}
    site |= {"http://s/robots.txt": NO_ANSWER, "http://s/a.xml": NO_ANSWER, S + "a.xml": urlset(S)}
    driver = Driver(site, S, respect_robots=True)
    tree = driver.run()
    assert driver.urls().count(S + "robots.txt") == 1
    assert [page.url for page in tree.all_pages()] == [S]
    assert codes(tree) == []


def test_over_https_where_that_is_on_its_way() -> None:
    """An http URL that is being fetched over https is not requested over https again."""
    site: dict[str, Answer] = {S + "robots.txt": robots("http://s/a.xml", S + "a.xml", home=S)}
    site |= {"http://s/a.xml": NO_ANSWER, S + "a.xml": urlset(S)}
    driver = Driver(site, S, seconds=lambda url: 60.0 if url == S + "a.xml" else 1.0)
    tree = driver.run()
    assert driver.urls().count(S + "a.xml") == 1
    assert [page.url for page in tree.all_pages()] == [S, S]


def test_a_wait_is_never_too_long_for_a_clock() -> None:
    """However long a tree may take, a driver waits for an hour at most."""
    driver = Driver({H + "robots.txt": NO_ANSWER}, limits=Limits(tree_seconds=1e300))
    assert driver.schedule.wait_seconds(driver.now) <= 3600


def test_what_is_held_back_is_let_go_whatever_comes() -> None:
    """URLs that wait for the second try of another are tried if that try fails for good."""
    site: dict[str, Answer | list[Answer]] = {H + "robots.txt": robots("http://o/0.xml", "http://o/1.xml")}
    site["http://o/0.xml"] = [NO_ANSWER, Failure("the certificate is not accepted")]
    site["http://o/1.xml"] = urlset("http://o/page")
    driver = Driver(site, concurrency=1)
    tree = driver.run()
    assert [page.url for page in tree.all_pages()] == ["http://o/page"]
    assert (codes(tree), len(reasons(tree))) == ([], 1)


def test_a_request_that_the_end_of_the_tree_cut_short() -> None:
    """A request that the end of the tree's time cut short is left out for that reason, not as a failure."""
    driver = Driver({H + "robots.txt": robots("a.xml"), H + "a.xml": NO_ANSWER}, limits=Limits(tree_seconds=2))
    driver.step()
    driver.step()
    driver.start()
    driver.now += 2
    assert driver.running
    for _, _, task in driver.running:
        driver.end(task)
    tree = driver.run()
    assert reasons(tree) == {H + "a.xml": "Not fetched: the tree's time is up, after 2 seconds (limits.tree_seconds)."}


@pytest.mark.parametrize("concurrency", [1, 2])
def test_the_target_of_a_redirect_is_not_requested_again(concurrency: int) -> None:
    """A URL that waits for its turn is not requested if a redirect has led to it meanwhile. The tree is the same."""
    site: dict[str, Any] = many(4)
    site[H + "0.xml"] = Document(H + "3.xml", str(site[H + "3.xml"]).encode())
    driver = Driver(site, concurrency=concurrency)
    tree = driver.run()
    assert driver.times(H + "3.xml") == []
    pages = [page.url for page in tree.all_pages()]
    assert pages == [f"{H}{i}.xml/page" for i in (3, 1, 2, 3)]
    everything_at_once = Driver(site, concurrency=8)
    assert [page.url for page in everything_at_once.run().all_pages()] == pages
