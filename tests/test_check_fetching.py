"""Sitemaps are visited beside the fetching of a site: in one thread, in the order of the tree, with nothing left."""

from __future__ import annotations

import gzip
import signal
import threading
from collections.abc import Callable

import pytest

from checks import HOME, NOW, found_in, site_of, url_of, urlset_of
from faults import nothing_left
from support import FakeClient
from usp.check import check_homepage
from usp.check.fetching import visited_tree
from usp.drivers.homepage import homepage_walk
from usp.exceptions import TreeInterrupted
from usp.fetch_parse.abstract import AbstractSitemapParser
from usp.objects.sitemap import IndexWebsiteSitemap
from usp.walk.nodes import Node
from usp.workers import Threads

NAMES = [f"{number:02}.xml" for number in range(30)]
IN_ORDER = [f"{HOME}robots.txt", *(HOME + name for name in NAMES)]


def site(is_thread_safe: bool = True) -> FakeClient:
    client = site_of({name: urlset_of(url_of(name), url_of("in-all-of-them")) for name in NAMES})
    client.is_thread_safe = is_thread_safe
    return client


def visited(
    visit: Callable[[Node], None], client: FakeClient | None = None, cancel: Callable[[], None] = lambda: None
) -> IndexWebsiteSitemap:
    walk, options, homepage = homepage_walk(HOME, use_known_paths=False)
    return visited_tree(walk, options, homepage, client or site(), visit, cancel)


def test_in_order_in_one_thread() -> None:
    """Each sitemap is visited once, in the order of the tree, in a thread that is not the caller's."""
    visits: list[tuple[str, threading.Thread]] = []
    with nothing_left():
        tree = visited(lambda node: visits.append((node.fetcher.url, threading.current_thread())))
    assert [url for url, _ in visits] == IN_ORDER
    assert len({thread for _, thread in visits} - {threading.current_thread()}) == 1
    assert sum(1 for _ in tree.all_pages()) == 2 * len(NAMES)


def test_a_client_for_one_thread() -> None:
    """Where a client cannot be used by two threads, neither is there a second one that might ask it for something."""
    threads = set()
    visited(lambda node: threads.add(threading.current_thread()), site(is_thread_safe=False))
    assert threads == {threading.current_thread()}


def test_the_same_in_a_thread() -> None:
    """What is found does not depend on where it is looked for."""
    reports = [
        check_homepage(HOME, site(is_thread_safe), now=NOW, use_known_paths=False) for is_thread_safe in (True, False)
    ]
    assert found_in(reports[0]) == found_in(reports[1])
    assert [report.counts() for report in reports] == [{"P419": len(NAMES) - 1}] * 2


@pytest.mark.parametrize("url", [IN_ORDER[0], IN_ORDER[5], IN_ORDER[-1]], ids=["robots.txt", "amidst", "last"])
def test_what_a_visit_raises(url: str) -> None:
    """An error is the caller's to see, wherever it happens; what is still going on is let go, and no thread is left."""
    cancelled = threading.Event()

    def visit(node: Node) -> None:
        if node.fetcher.url == url:
            raise ZeroDivisionError(url)
        if IN_ORDER.index(node.fetcher.url) > IN_ORDER.index(url):
            cancelled.wait(10)

    with nothing_left(), pytest.raises(ZeroDivisionError, match=url):
        visited(visit, cancel=cancelled.set)
    assert cancelled.is_set()


@pytest.mark.parametrize("url", [IN_ORDER[0], IN_ORDER[5], IN_ORDER[-1]], ids=["robots.txt", "amidst", "last"])
def test_interrupted(url: str) -> None:
    """Ctrl-C while a sitemap is visited gives what was had of the tree; the visit is let go, others are not begun."""
    visits = []
    cancelled = threading.Event()

    def visit(node: Node) -> None:
        visits.append(node.fetcher.url)
        if node.fetcher.url == url:
            signal.raise_signal(signal.SIGINT)  # Python lets the main thread have it
            cancelled.wait(10)

    with nothing_left(), pytest.raises(TreeInterrupted) as caught:
        visited(visit, cancel=cancelled.set)
    assert cancelled.is_set()
    assert visits == IN_ORDER[: IN_ORDER.index(url) + 1]
    assert isinstance(caught.value.tree, IndexWebsiteSitemap)


def test_one_thread_keeps_the_order() -> None:
    """Workers of one thread do tasks one after the other; when they are closed, what was not begun is dropped."""
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
    """What was inflated for a visit that does not read it is dropped, as for one that another index lists, too."""
    documents = []

    def visit(node: Node) -> None:
        parser = node.reading and node.reading.parser
        if isinstance(parser, AbstractSitemapParser) and parser.document is not None:
            documents.append(parser.document)

    packed = {name: gzip.compress(urlset_of(url_of(name)).encode()) for name in ("a.xml.gz", "b.xml.gz")}
    visited(visit, site_of(packed))
    assert len(documents) > 1
    assert [document._ahead for document in documents] == [None] * len(documents)
