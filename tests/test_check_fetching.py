"""Sitemaps are checked beside the fetching of a site: in one thread, in the order of the tree, with nothing left."""

from __future__ import annotations

import gzip
import signal
import threading
import time

import pytest

from checks import HOME, NOW, found_in, site_of, url_of, urlset_of
from clocks import within
from faults import nothing_left
from support import FakeClient
from usp.check import check_homepage
from usp.check.fetching import check_while_fetching
from usp.check.subjects import TreePlace
from usp.exceptions import TreeInterrupted
from usp.fetch_parse.abstract import AbstractSitemapParser
from usp.objects.sitemap import IndexWebsiteSitemap
from usp.stream import SitemapStream
from usp.web_client.abstract_client import AbstractWebClientResponse
from usp.web_client.policy import policy_for
from usp.workers import Threads

NAMES = [f"{number:02}.xml" for number in range(30)]
IN_ORDER = [f"{HOME}robots.txt", *(HOME + name for name in NAMES)]
SILENT = "https://silent.example.com/robots.txt"


class Site(FakeClient):
    """A site, and a host that never answers."""

    def get(self, url: str) -> AbstractWebClientResponse:
        """Answer, or wait until the request is cancelled."""
        if url != SILENT:
            return super().get(url)
        policy = policy_for(url)
        while not policy.is_cancelled:
            time.sleep(0.005)
        raise TimeoutError("cancelled")


def site(is_thread_safe: bool = True) -> FakeClient:
    client = Site(site_of({name: urlset_of(url_of(name), url_of("in-all-of-them")) for name in NAMES}).get)
    client.is_thread_safe = is_thread_safe
    return client


def stream_of(client: FakeClient | None = None) -> SitemapStream:
    return SitemapStream(HOME, client or site(), use_known_paths=False)


def test_in_order_in_one_thread() -> None:
    """Each sitemap is checked once, in the order of the tree, in a thread that is not the caller's."""
    checked: list[tuple[str, threading.Thread]] = []
    with nothing_left():
        tree = check_while_fetching(
            stream_of(), lambda place: checked.append((place.sitemap.url, threading.current_thread()))
        )
    assert [url for url, _ in checked] == IN_ORDER
    assert len({thread for _, thread in checked} - {threading.current_thread()}) == 1
    assert sum(1 for _ in tree.all_pages()) == 2 * len(NAMES)


def test_places() -> None:
    """A sitemap is checked in its place: what leads to it is known."""
    paths = {}

    def check(place: TreePlace) -> None:
        paths[place.sitemap.url] = place.discovery_path()

    check_while_fetching(stream_of(), check)
    assert {path.robots for url, path in paths.items() if url != IN_ORDER[0]} == {(IN_ORDER[0], IN_ORDER[0])}
    assert [paths[url].urls for url in IN_ORDER[1:]] == [(url,) for url in IN_ORDER[1:]]


def test_a_client_for_one_thread() -> None:
    """If a client allows only one thread, checks run in that thread."""
    threads = set()
    check_while_fetching(stream_of(site(is_thread_safe=False)), lambda place: threads.add(threading.current_thread()))
    assert threads == {threading.current_thread()}


def test_the_same_in_a_thread() -> None:
    """What is found does not depend on the thread."""
    reports = [
        check_homepage(HOME, site(is_thread_safe), now=NOW, use_known_paths=False) for is_thread_safe in (True, False)
    ]
    assert found_in(reports[0]) == found_in(reports[1])
    assert [report.counts() for report in reports] == [{"P419": len(NAMES) - 1}] * 2


@pytest.mark.parametrize("url", [IN_ORDER[0], IN_ORDER[5], IN_ORDER[-1]], ids=["robots.txt", "amidst", "last"])
def test_errors(url: str) -> None:
    """An error in a check is raised to the caller. Requests of checks are cancelled, and no thread is left."""
    stream = stream_of()

    def check(place: TreePlace) -> None:
        if place.sitemap.url == url:
            raise ZeroDivisionError(url)
        if IN_ORDER.index(place.sitemap.url) > IN_ORDER.index(url):
            stream.fetch_extra(SILENT, seconds=60, max_bytes=100)

    with within(30), nothing_left(), pytest.raises(ZeroDivisionError, match=url):
        check_while_fetching(stream, check)


@pytest.mark.parametrize("url", [IN_ORDER[0], IN_ORDER[5], IN_ORDER[-1]], ids=["robots.txt", "amidst", "last"])
def test_interrupted(url: str) -> None:
    """Ctrl-C during a check raises the partial tree. The check's request is cancelled, and no other check begins."""
    checked = []
    stream = stream_of()

    def check(place: TreePlace) -> None:
        checked.append(place.sitemap.url)
        if place.sitemap.url == url:
            signal.raise_signal(signal.SIGINT)  # Python delivers it to the main thread
            stream.fetch_extra(SILENT, seconds=60, max_bytes=100)

    with within(30), nothing_left(), pytest.raises(TreeInterrupted) as caught:
        check_while_fetching(stream, check)
    assert checked == IN_ORDER[: IN_ORDER.index(url) + 1]
    assert isinstance(caught.value.tree, IndexWebsiteSitemap)


def test_one_thread_keeps_the_order() -> None:
    """Workers of one thread do tasks one after the other; when they are closed, waiting tasks are dropped."""
    begun, may_go_on = [], threading.Event()

    def perform(number: int) -> None:
        begun.append(number)
        if number == 5:
            may_go_on.wait(10)

    workers: Threads[int, None] = Threads(perform, 1)
    with nothing_left():
        for number in range(5):
            workers.start(number)
        workers.finish()
        assert begun == [0, 1, 2, 3, 4]
        for number in range(5, 10):
            workers.start(number)
        threading.Timer(0.05, may_go_on.set).start()
        workers.close()
    assert begun in ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5])


def test_nothing_that_was_inflated_ahead_is_kept() -> None:
    """A document that was inflated ahead, and that the check does not read, is dropped."""
    documents = []

    def check(place: TreePlace) -> None:
        parser = place.sitemap.parser
        if isinstance(parser, AbstractSitemapParser) and parser.document is not None:
            documents.append(parser.document)

    packed = {name: gzip.compress(urlset_of(url_of(name)).encode()) for name in ("a.xml.gz", "b.xml.gz")}
    check_while_fetching(stream_of(site_of(packed)), check)
    assert len(documents) > 1
    assert [document._ahead for document in documents] == [None] * len(documents)
