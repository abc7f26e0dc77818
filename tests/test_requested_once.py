"""A URL that is listed and also redirected to is requested once, whatever comes first; and the tree is the same.

The first tests use plain values: a client that takes its redirects one by one, at times that a test chooses. The others
use servers, and both drivers.
"""

from __future__ import annotations

import asyncio
import heapq
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count, pairwise, product
from typing import Any
from urllib.parse import urljoin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import usp.aio
from sockets import Peer, talk
from support import index, urlset
from usp.documents import Document, Failure
from usp.drivers.options import homepage_walk
from usp.drivers.schedule import Schedule
from usp.drivers.tasks import Fetch
from usp.limits import Limits
from usp.objects.outcome import Cause
from usp.objects.sitemap import AbstractSitemap, IndexWebsiteSitemap, InvalidSitemap
from usp.origins import host_of
from usp.politeness import Politeness
from usp.tree import sitemap_tree_for_homepage
from usp.web_client.policy import RequestPolicy
from usp.web_client.redirects import Redirects

H, OTHER, THIRD = "http://h.example/", "http://i.example/", "http://j.example/"
MISSING = Failure("404 Not Found", 404)
BUSY = Failure("503 Service Unavailable", 503, is_retryable=True)
#: A path -> where it redirects to ("> path"), a document, or a failure.
Site = dict[str, Any]


class Client:
    """Runs a tree. Each hop of a request takes the seconds that `takes` gives for its URL."""

    def __init__(self, site: Site, takes: Callable[[str], float], **options: Any) -> None:
        options.setdefault("politeness", Politeness(retry_seconds=1, tries=2))
        self.walk, self.options, url = homepage_walk(H, use_known_paths=False, **options)
        self.policy = RequestPolicy(H, self.options.limits)
        self.schedule = Schedule(self.walk, self.options, url, 0.0)
        self.requested: Counter[str] = Counter()
        self.started: list[tuple[float, str]] = []  # when each request started, those after redirects, too
        self.pauses: list[tuple[float, float, str]] = []  # from when, and until when, a host was to be left alone
        self._now = 0.0
        self._site = {urljoin(H, path): answer for path, answer in site.items()}
        self._takes = takes

    def run(self) -> IndexWebsiteSitemap:
        now, numbers = 0.0, count()
        hops: list[tuple[float, int, Any, Iterator[Document | Failure | None]]] = []
        while True:
            for task in self.schedule.tasks(now):
                if isinstance(task, Fetch):
                    self.started.append((now, task.job.url))
                    heapq.heappush(hops, (now + self._takes(task.job.url), next(numbers), task, self._hops(task)))
                else:
                    self.schedule.done(task, task.run(), now)
            if self.schedule.is_done:
                return self.walk.website()
            wakes_at = now + self.schedule.wait_seconds(now)
            if hops and hops[0][0] <= wakes_at:
                now, _, task, chain = heapq.heappop(hops)
                self._now = now
                result = next(chain)
                if result is None:
                    heapq.heappush(hops, (now + self._takes(task.job.url), next(numbers), task, chain))
                else:
                    self.schedule.done(task, result, now)
            else:
                assert wakes_at > now or self.schedule._small_documents, "the schedule waits for nothing"
                now = wakes_at
                self.schedule.idle()

    def _hops(self, task: Fetch) -> Iterator[Document | Failure | None]:
        """Follow the redirects of a request, as clients do: give None after each, and the result in the end."""
        redirects = Redirects(task.job.url, self.policy)
        while True:
            url = redirects.url
            self.requested[url.removeprefix(H)] += 1
            answer = self._site.get(url, MISSING)
            if isinstance(answer, list):
                answer = answer.pop(0) if len(answer) > 1 else answer[0]
            if isinstance(answer, Failure):
                self.pauses.append((self._now, self._now + (answer.retry_after or 0), host_of(url)))
                yield answer
                return
            if not answer.startswith(">"):
                yield Document(url, answer.encode())
                return
            if (why_not := redirects.follow(urljoin(H, answer[2:]).encode())) is not None:
                yield Failure(why_not, cause=Cause.REFUSED)
                return
            if not task.may_follow(redirects.url):
                yield Failure("it is requested already", moved_to=redirects.url)
                return
            self.started.append((self._now, redirects.url))
            yield None


def shape(sitemap: AbstractSitemap) -> Any:
    """All that users see of a tree."""
    reason = sitemap.reason if isinstance(sitemap, InvalidSitemap) else ""
    transport = sitemap.transport
    sent = transport and (transport.requested_url, transport.url, transport.status)
    pages = [page.url for page in sitemap.pages]
    return type(sitemap).__name__, sitemap.url, reason, sent, pages, [shape(sub) for sub in sitemap.sub_sitemaps]


def robots(*paths: str) -> str:
    return robots_txt(*(H + path for path in paths))


def robots_txt(*urls: str) -> str:
    return "".join(f"Sitemap: {url}\n" for url in urls)


SITES: dict[str, tuple[Site, dict[str, int]]] = {
    "both listed": ({"a": "> b", "b": urlset(H + "1")}, {}),
    "a chain": ({"a": "> b", "b": "> c", "c": urlset(H + "1")}, {}),
    "several lead there": ({"a": "> c", "b": "> c", "c": "> d", "d": urlset(H + "1")}, {}),
    "it is missing": ({"a": "> b", "b": "> c", "c": MISSING}, {}),
    "a detour that is not listed": ({"a": "> x", "b": "> x", "x": "> c", "c": urlset(H + "1")}, {}),
    "not listed, and missing": ({"a": "> x", "b": "> x"}, {}),
    "it is no sitemap": ({"a": "> b", "b": "<html></html>"}, {}),
    "an index": ({"a": "> b", "b": index(H + "c", H + "a"), "c": urlset(H + "1")}, {}),
    "found later": ({"a": "> c", "b": index(H + "c", H + "d"), "c": urlset(H + "1"), "d": "> c"}, {}),
    "busy at first": ({"a": "> b", "b": [BUSY, urlset(H + "1")]}, {"b": 2}),
    "a circle": ({"a": "> b", "b": "> c", "c": "> a"}, dict.fromkeys("abc", 4)),
    "a chain into a circle": ({"a": "> b", "b": "> c", "c": "> b"}, dict.fromkeys("abc", 4)),
    "busy": ({"a": "> b", "b": BUSY}, {"b": 3}),
}


@pytest.mark.parametrize(("site", "more"), SITES.values(), ids=SITES)
def test_once_whatever_the_timing(site: Site, more: dict[str, int]) -> None:
    """Each URL is requested once, and the tree does not depend on which is fast.

    It is requested more often only if it failed, or in a circle of redirects, which each URL goes round for itself.
    """
    listed = [path for path in "abc" if path in site]

    def client(takes: dict[str, float], **options: Any) -> Client:
        pages = {path: [*answer] if isinstance(answer, list) else answer for path, answer in site.items()}
        return Client({"robots.txt": robots(*listed)} | pages, lambda url: takes.get(url, 1), **options)

    expected = shape(client({}, concurrency=1).run())
    for seconds in product((1, 3.5, 9), repeat=len(site)):
        run = client(dict(zip([H + path for path in site], seconds, strict=True)))
        assert shape(run.run()) == expected
        assert {path: n for path, n in run.requested.items() if n > more.get(path, 1)} == {}


PATHS = "abcdefg"
NAMES = st.sampled_from(PATHS)
ANSWERS = st.one_of(
    NAMES.map(lambda name: f"> {name}"),
    NAMES.map(lambda name: f"> {name}"),
    st.lists(NAMES, max_size=3).map(lambda names: index(*(H + name for name in names))),
    st.just(urlset(H + "1")),
    st.just(MISSING),
)


@settings(max_examples=150)
@given(
    st.fixed_dictionaries(dict.fromkeys(PATHS, ANSWERS)),
    st.lists(NAMES, min_size=2, unique=True),
    st.randoms(use_true_random=False),
    st.sampled_from([1, 2, 8]),
    st.sampled_from([1, 2, 5]),
)
def test_any_site(site: Site, listed: list[str], random: Any, concurrency: int, max_redirects: int) -> None:
    """Redirects of any shape end, and give the tree that they give one at a time.

    Only in circles, and in chains that are too long, a URL is requested twice.
    """
    pages = {"robots.txt": robots(*listed), **site}
    options = {"limits": Limits(max_redirects=max_redirects), "concurrency": concurrency}
    expected = Client(pages, lambda url: 1, **options | {"concurrency": 1}).run()
    for _ in range(3):
        seconds = {H + path: random.uniform(1, 20) for path in PATHS}
        client = Client(pages, lambda url, seconds=seconds: seconds.get(url, 1), **options)  # type: ignore[misc]
        assert shape(client.run()) == shape(expected)
        if max(hops(site, path) for path in PATHS) <= max_redirects:
            assert max(client.requested.values()) == 1


def hops(site: Site, path: str) -> int:
    """How often a path is redirected; a large number for a circle."""
    for number in range(len(site) + 1):
        if not str(site.get(path)).startswith("> "):
            return number
        path = site[path][2:]
    return 1_000


def test_rules_that_nobody_has_kept() -> None:
    """The rules of a robots.txt are requested again if a sitemap was redirected through it, and its text is gone."""
    site = {
        "robots.txt": robots("x", "b", "later"),
        "x": urlset(H + "1"),
        "b": f"> {OTHER}robots.txt",
        f"{OTHER}robots.txt": "> x",
        "later": index(OTHER + "y"),
        f"{OTHER}y": urlset(H + "2"),
    }
    client = Client(site, lambda url: 9 if url.endswith("later") else 1, respect_robots=True)
    assert [page.url for page in client.run().all_pages()] == [H + "1", H + "1", H + "2"]
    assert client.requested[f"{OTHER}robots.txt"] == 2


DAY = Failure("503 Service Unavailable", 503, is_retryable=True, retry_after=86_400)
MINUTE = Failure("429 Too Many Requests", 429, is_retryable=True, retry_after=60)
SILENT = Failure("no answer", is_retryable=True)


@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize("failure", [DAY, MINUTE, BUSY, SILENT], ids=["a day", "a minute", "busy", "silent"])
def test_redirects_to_a_host_in_trouble(failure: Failure, concurrency: int) -> None:
    """A host that redirects to one that fails is not blamed for it: its own sitemaps are all fetched."""
    bad, good = [f"{OTHER}{number}" for number in range(60)], [f"{OTHER}good/{number}" for number in range(10)]
    site: Site = {url: f"> {THIRD}{number}" for number, url in enumerate(bad)} | {url: urlset(H + "1") for url in good}
    site |= {f"{THIRD}{number}": failure for number in range(60)} | {"robots.txt": robots_txt(*bad, *good)}
    client = Client(site, lambda url: 1, concurrency=concurrency)
    tree = client.run()
    assert [page.url for page in tree.all_pages()] == [H + "1"] * 10
    at_other = [n for url, n in client.requested.items() if url.startswith(THIRD)]
    assert sum(at_other) <= (70 if failure in (DAY, SILENT) else 120)  # it is given up, or tried twice


def test_a_redirect_to_a_host_that_asked_to_wait() -> None:
    """A redirect waits as long as its target's host has asked for; it is no try, and other hosts go on."""
    site: Site = {"robots.txt": robots_txt(f"{OTHER}pauses", f"{H}moves", f"{H}good"), f"{OTHER}good": urlset(H + "1")}
    site |= {f"{OTHER}pauses": [MINUTE, urlset(H + "2")], "moves": f"> {OTHER}good", "good": urlset(H + "3")}
    client = Client(site, lambda url: 1 if "pauses" in url else 2, politeness=Politeness(retry_seconds=1, tries=1))
    tree = client.run()
    assert [page.url for page in tree.all_pages()] == [H + "1", H + "3"], "of the first, one try was all"
    assert client.requested == {"robots.txt": 1, f"{OTHER}pauses": 1, "moves": 2, "good": 1, f"{OTHER}good": 1}
    assert [at for at, url in client.started if url == f"{H}moves"] == [2, 63]


def test_redirects_to_a_host_that_refuses() -> None:
    """A host that gets one careful request at a time gets no more by redirects. When it is given up, they end."""
    bad = [f"{H}{number}" for number in range(40)]
    site: Site = {url: f"> {OTHER}{at}" for at, url in enumerate(bad)} | {f"{OTHER}{at}": DAY for at in range(40)}
    site |= {"robots.txt": robots_txt(f"{OTHER}first", *bad), f"{OTHER}first": DAY}
    client = Client(site, lambda url: 1 if url.endswith("first") else 2)
    tree = client.run()
    at_other = [at for at, url in client.started if url.startswith(OTHER)]
    assert [later - earlier for earlier, later in pairwise(at_other)] == pytest.approx([4, 6, 8, 12], abs=2)
    reasons = [sitemap.reason for sitemap in tree.all_sitemaps() if isinstance(sitemap, InvalidSitemap)]
    assert len(reasons) == 41
    assert sum("; i.example refuses all requests: 503" in reason for reason in reasons) == 36


@pytest.mark.parametrize("concurrency", [1, 3, 8])
@given(random=st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_hosts_that_ask_to_wait_are_left_alone(concurrency: int, random: Any) -> None:
    """Whatever redirects to it, a host gets no request before the time that it has asked for; nothing is lost."""
    urls = [f"{host}{number}" for host in (H, OTHER, THIRD) for number in range(4)]
    site: Site = {"robots.txt": robots_txt(*urls)}
    for at, url in enumerate(urls):
        good = urlset(url) if at < 4 or random.random() < 0.4 else f"> {random.choice(urls[:at])}"
        wait = Failure("503 No", 503, is_retryable=True, retry_after=random.choice([1, 5, 20]))
        site[url] = [wait, good] if random.random() < 0.3 else good
    seconds = {url: random.uniform(0.1, 9) for url in urls}
    client = Client(
        site,
        lambda url: seconds.get(url, 1),
        concurrency=concurrency,
        limits=Limits(max_redirects=20),
        politeness=Politeness(retry_seconds=0.1),
    )
    assert len(list(client.run().all_pages())) == len(urls)
    for started, url in client.started:
        assert not any(begin < started < end and host == host_of(url) for begin, end, host in client.pauses), url


@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize("failure", [DAY, MINUTE, BUSY], ids=["a day", "a minute", "busy"])
def test_many_redirects_to_a_url_in_trouble(failure: Failure, concurrency: int) -> None:
    """One URL is tried as often as any, however many redirect to it, and the rest of its host is fetched."""
    bad, good = [str(number) for number in range(60)], [f"good{number}" for number in range(10)]
    site: Site = dict.fromkeys(bad, "> x") | dict.fromkeys(good, urlset(H + "1"))
    client = Client(site | {"x": failure, "robots.txt": robots(*bad, *good)}, lambda url: 1, concurrency=concurrency)
    assert [page.url for page in client.run().all_pages()] == [H + "1"] * 10
    assert client.requested["x"] <= 2


def test_a_retry_that_is_redirected_elsewhere() -> None:
    """Who waits for a URL gets what it serves, and not what another job got that left it for another one."""
    site = {
        "robots.txt": robots("a", "b"),
        "a": ["> x", "> y"],
        "b": "> x",
        "x": [BUSY, urlset(H + "x")],
        "y": urlset(H + "y"),
    }
    client = Client(site, lambda url: 5 if url.endswith("b") else 2)
    assert [page.url for page in client.run().all_pages()] == [H + "y", H + "x"]


def test_many_redirects_to_a_url_that_fails() -> None:
    """URLs that redirect to one that fails are requested a few times each, and not again whenever it fails."""
    paths = [str(number) for number in range(300)]
    site = dict.fromkeys(paths, f"> {H}x") | {"robots.txt": robots(*paths), "x": Failure("no", cause=Cause.REFUSED)}
    client = Client(site, lambda url: 1)
    client.run()
    assert max(client.requested[path] for path in paths) <= 3


def test_many_redirects_to_a_long_sitemap() -> None:
    """Each URL that redirects to an index costs the same, however many sitemaps that lists."""

    def seconds(count: int) -> float:
        paths = [str(number) for number in range(count)]
        client = Client({"robots.txt": robots(*paths)} | dict.fromkeys(paths, "> robots.txt"), lambda url: 1)
        started = time.process_time()
        client.run()
        return time.process_time() - started

    assert min(seconds(2_000) for _ in range(3)) < 12 * min(seconds(500) for _ in range(3))


# On servers

OK = b"HTTP/1.1 200 OK\r\n\r\n"
FORBIDDEN = b"HTTP/1.1 403 Forbidden\r\n\r\nno cookie"
DRIVERS: dict[str, Callable[..., IndexWebsiteSitemap]] = {
    "threads": lambda url, **options: sitemap_tree_for_homepage(url, **options),
    "asyncio": lambda url, **options: asyncio.run(usp.aio.sitemap_tree_for_homepage(url, **options)),
}


class Server:
    """Answers by path, with a "+" behind it for requests with a cookie, and counts requests.

    A path may wait until another was requested.
    """

    def __init__(self, pages: dict[str, bytes], after: dict[str, str]) -> None:
        self.requested: Counter[str] = Counter()
        self._pages = pages
        self._after = after
        self._changed = threading.Condition()

    def __call__(self, peer: Peer) -> None:
        while head := peer.head():
            path = head.split()[1].decode()
            with self._changed:
                self.requested[path] += 1
                self._changed.notify_all()
                if (other := self._after.get(path)) is not None:
                    assert self._changed.wait_for(lambda: self.requested[other], 5), f"{other} was never requested"
            page = self._pages.get(path + "+" if b"\r\nCookie: " in head else path) or self._pages.get(path)
            start, _, body = (page or b"HTTP/1.1 404 Not Found\r\n\r\nnothing").partition(b"\r\n\r\n")
            body = body.replace(b"{base}", b"http://" + head.partition(b"Host: ")[2].split()[0])
            peer.send(start + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def moved(path: str, *headers: str) -> bytes:
    return "\r\n".join(["HTTP/1.1 301 Moved", f"Location: {path}", *headers, "", ""]).encode()


def fetched(pages: dict[str, bytes], after: dict[str, str], driver: str, **options: Any) -> tuple[Any, Counter[str]]:
    """The shape of a tree, without the port of its server, and how often each path was requested."""
    server = Server(pages, after)
    with talk(server) as listening:
        options = {"use_known_paths": False, "politeness": Politeness(retry_seconds=0.01)} | options
        tree = DRIVERS[driver](listening.url, **options)
        return eval(repr(shape(tree)).replace(str(listening.port), "80")), server.requested  # noqa: S307 -- our own


LISTED = b"Sitemap: {base}/a.xml\nSitemap: {base}/index.xml\n"
PAGES = {
    "/robots.txt": OK + LISTED,
    "/a.xml": moved("/b.xml"),
    "/index.xml": OK + index("{base}/b.xml", "{base}/a.xml").encode(),
    "/b.xml": OK + urlset("{base}/1").encode(),
}
#: Which path answers only after another was requested.
TIMINGS = {
    "none": {},
    "the redirect first": {"/index.xml": "/b.xml"},
    "the listed URL first": {"/a.xml": "/b.xml"},
    "both at once": {"/a.xml": "/b.xml", "/b.xml": "/a.xml"},
}


@pytest.mark.network
@pytest.mark.parametrize("answer", [PAGES["/b.xml"], b"", OK + b"<html>"], ids=["served", "missing", "unreadable"])
@pytest.mark.parametrize("after", TIMINGS.values(), ids=TIMINGS)
@pytest.mark.parametrize("driver", DRIVERS)
def test_on_a_server(driver: str, after: dict[str, str], answer: bytes) -> None:
    """Both drivers request a URL once that is listed and redirected to, and the tree is the same."""
    pages = PAGES | {"/b.xml": answer}
    tree, requested = fetched(pages, after, driver)
    assert requested == dict.fromkeys(PAGES, 1)
    expected, _ = fetched(pages, {}, "threads", concurrency=1)
    assert tree == expected


@pytest.mark.network
@pytest.mark.parametrize("driver", DRIVERS)
def test_a_large_document(driver: str) -> None:
    """A document that is still being parsed is not requested again."""
    large = OK + urlset(*(f"{{base}}/{i}" for i in range(20_000))).encode()
    _, requested = fetched(PAGES | {"/b.xml": large}, {"/index.xml": "/b.xml"}, driver)
    assert requested == dict.fromkeys(PAGES, 1)


@pytest.mark.network
@pytest.mark.parametrize("after", [{}, {"/a.xml": "/b.xml"}], ids=["none", "the listed URL first"])
@pytest.mark.parametrize("driver", DRIVERS)
def test_cookies(driver: str, after: dict[str, str]) -> None:
    """A redirect that sets a cookie is followed if the URL fails without the cookie: nothing good is lost."""
    pages = PAGES | {"/a.xml": moved("/b.xml", "Set-Cookie: seen=1"), "/b.xml": FORBIDDEN, "/b.xml+": PAGES["/b.xml"]}
    tree, requested = fetched(pages, after, driver)
    robots_txt = tree[-1][0]
    assert robots_txt[-1][0][4] == ["http://127.0.0.1:80/1"]
    assert max(requested.values()) <= 2
    circle = pages | {"/b.xml": moved("/a.xml")}
    tree, _ = fetched(circle, after, driver)
    assert [sitemap[4] for sitemap in (tree[-1][0][-1][0], *tree[-1][0][-1][1][-1])] == [["http://127.0.0.1:80/1"]] * 3


@pytest.mark.network
@pytest.mark.parametrize("driver", DRIVERS)
def test_rules_of_a_robots_txt_that_redirects(driver: str) -> None:
    """A robots.txt whose rules are needed is requested once, also if it is listed, or redirects to what is listed."""
    pages = PAGES | {"/robots.txt": moved("/rules.txt"), "/rules.txt": OK + LISTED + b"Sitemap: {base}/rules.txt\n"}
    tree, requested = fetched(pages, {}, driver, respect_robots=True)
    assert requested == dict.fromkeys(pages, 1)
    assert len(tree[-1][0][-1]) == 3
