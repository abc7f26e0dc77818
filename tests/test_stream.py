"""Pages while a website is still being fetched: their orders, where they are from, and what a slow consumer costs."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from clocks import settle, within
from scanners import FAST, GENERAL
from support import FakeClient, FakeResponse, index, urlset
from usp.documents import Document
from usp.drivers import blocking
from usp.drivers.options import homepage_walk
from usp.exceptions import InvalidArgumentError, SitemapException, TreeInterrupted, UspError
from usp.fetch_parse.opening import parser_of
from usp.fetch_parse.parsers import XMLSitemapParser
from usp.limits import Limits
from usp.objects.page import SitemapPage
from usp.objects.sitemap import IndexWebsiteSitemap, InvalidSitemap
from usp.politeness import Politeness
from usp.progress import Progress
from usp.tree import sitemap_tree_for_homepage, stream_pages_for_homepage
from usp.walk.order import ArrivalOrder, TreeOrder
from usp.web_client.abstract_client import AbstractWebClientResponse, WebClientErrorResponse
from usp.web_client.policy import policy_for
from usp.workers import Inline, Threads, Workers

H = "http://h/"
PATIENCE = 10.0  # seconds after which a test that waits has failed


class ThreadedClient(FakeClient):
    """A client for several threads, which waits for the event of a URL, if there is one, or until it is cancelled."""

    is_thread_safe = True

    def __init__(
        self, site: Mapping[str, Any] | Callable[[str], Any], gates: Mapping[str, threading.Event] | None = None
    ) -> None:
        super().__init__(site)
        self.gates = gates or {}
        self.waiting: list[str] = []
        self.cancelled: list[str] = []

    def get(self, url: str) -> AbstractWebClientResponse:
        gate = self.gates.get(url)
        if gate is not None:
            cancelled = threading.Event()

            def cancel() -> None:
                self.cancelled.append(url)
                cancelled.set()

            self.asked.append(url)
            with policy_for(url).calling_on_cancel(cancel):
                self.waiting.append(url)
                ends_at = time.monotonic() + PATIENCE
                while not gate.wait(0.002):
                    if cancelled.is_set():
                        return WebClientErrorResponse("cancelled", retryable=False)
                    assert time.monotonic() < ends_at, f"nobody opened {url}"
            self.asked.remove(url)
        return super().get(url)


def names(count: int) -> list[str]:
    return [f"{H}{i}.xml" for i in range(count)]


def many(count: int) -> dict[str, str]:
    listed = "".join(f"Sitemap: {name}\n" for name in names(count))
    return {H + "robots.txt": listed, **{name: urlset(f"{name}/1", f"{name}/2") for name in names(count)}}


def urls(pages: Iterator[SitemapPage]) -> list[str]:
    return [page.url for page in pages]


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("usp-")]


@pytest.fixture(autouse=True)
def _no_threads_are_left() -> Iterator[None]:
    yield
    assert threads() == []


def tangled(seed: int) -> dict[str, str]:
    """A website at random: shared children, loops, known paths that others lead to."""
    chance = random.Random(seed)
    paths = [H + name for name in ("sitemap.xml", "sitemap_index.xml", *(f"{i}.xml" for i in range(10)))]
    site = {H + "robots.txt": "".join(f"Sitemap: {url}\n" for url in chance.choices(paths, k=3))}
    for path in paths:
        if chance.random() < 0.4:
            site[path] = index(*chance.choices(paths, k=4))
        elif chance.random() < 0.8:
            site[path] = urlset(*(f"{path}/{i}" for i in range(chance.randrange(4))), H + "shared")
    return site


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("concurrency", [1, 8])
def test_the_pages_of_the_tree(seed: int, concurrency: int) -> None:
    """A stream has the pages of the tree, each as often, from the same sitemaps; with `ordered`, in the same order."""
    site = tangled(seed)
    expected = [(page, page.sitemap_url) for page in sitemap_tree_for_homepage(H, FakeClient(site)).all_pages()]
    ordered = stream_pages_for_homepage(H, ThreadedClient(site), ordered=True, concurrency=concurrency)
    assert [(page, page.sitemap_url) for page in ordered] == expected
    as_they_come = stream_pages_for_homepage(H, ThreadedClient(site), concurrency=concurrency)
    assert Counter((page, page.sitemap_url) for page in as_they_come) == Counter(expected)


def test_as_they_come() -> None:
    """A stream gives the pages of a sitemap before an earlier sitemap has arrived."""
    gates = {name: threading.Event() for name in names(3)}
    client = ThreadedClient(many(3), gates)
    stream = stream_pages_for_homepage(H, client, use_known_paths=False)
    seen = []
    for number in (2, 0, 1):
        gates[f"{H}{number}.xml"].set()
        seen += [next(stream).url, next(stream).url]
    assert seen == [f"{H}{i}.xml/{page}" for i in (2, 0, 1) for page in (1, 2)]
    assert next(stream, None) is None


def test_ordered() -> None:
    """With `ordered`, the first sitemap comes first even if it arrives last."""
    gates = {names(3)[0]: threading.Event()}
    client = ThreadedClient(many(3), gates)
    done: list[str] = []

    def tell(event: Progress) -> None:
        if event.kind == "parsed":
            done.append(event.url)
            if len(done) == 3:  # robots.txt, and the other two
                gates[names(3)[0]].set()

    stream = stream_pages_for_homepage(H, client, ordered=True, use_known_paths=False, progress=tell)
    assert urls(stream) == [f"{name}/{page}" for name in names(3) for page in (1, 2)]
    assert done[-1] == names(3)[0]


def test_robots_comes_before_known_paths() -> None:
    """Without `ordered`, too, pages of robots.txt come before those of known paths."""
    gate = threading.Event()
    site = {**many(1), H + "sitemap.xml": urlset(H + "guess")}

    def tell(event: Progress) -> None:
        if event.kind == "parsed" and event.url == H + "sitemap.xml":
            gate.set()

    client = ThreadedClient(site, {names(1)[0]: gate})
    assert urls(stream_pages_for_homepage(H, client, progress=tell)) == [
        *(f"{names(1)[0]}/1", f"{names(1)[0]}/2"),
        H + "guess",
    ]


def test_nothing_is_fetched_before_the_first_page_is_asked_for() -> None:
    """A stream makes no request before its first page is asked for."""
    client = ThreadedClient(many(3))
    stream = stream_pages_for_homepage(H, client)
    stream.close()
    del stream
    assert client.asked == []


# Where pages are from


KINDS = {
    "urlset": urlset(H + "1"),
    "general": f"<urlset><url a='b'><loc>{H}1</loc><image:image><image:loc>{H}i</image:loc></image:image></url>",
    "odd": f"<urlset><url><loc><![CDATA[{H}1]]></loc></url><url>{H}2</url></urlset>",
    "relative": "<urlset><url><loc>/1</loc></url></urlset>",
    "rss": f"<rss><channel><item><title>x</title><link>{H}1</link></item></channel></rss>",
    "rdf": f"<rdf:RDF><item rdf:about='{H}1'><link>{H}1</link></item></rdf:RDF>",
    "atom": f"<feed><entry><title>x</title><link href='{H}1'/></entry></feed>",
    "text": f"{H}1\n{H}2\n",
    "stray": f"<sitemapindex><sitemap><loc>{H}x.xml</loc></sitemap><url><loc>{H}1</loc></url></sitemapindex>",
    "stray, general": f"<sitemapindex><url a='b'><loc>{H}1</loc></url></sitemapindex>",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ordered", [False, True])
def test_the_sitemap_of_a_page(kind: str, ordered: bool) -> None:
    """Every page says which sitemap it is from: its URL after redirects."""
    site = {
        H + "robots.txt": f"Sitemap: {H}a\nSitemap: {H}b",
        H + "a": KINDS[kind],
        H + "b": FakeResponse(KINDS[kind].encode(), H + "moved"),
    }
    pages = list(stream_pages_for_homepage(H, FakeClient(site), ordered=ordered, use_known_paths=False))
    assert len(pages) >= 2
    assert [page.sitemap_url for page in pages] == [H + "a"] * (len(pages) // 2) + [H + "moved"] * (len(pages) // 2)
    tree = sitemap_tree_for_homepage(H, FakeClient(site), use_known_paths=False)
    for sitemap in tree.all_sitemaps():
        assert {page.sitemap_url for page in sitemap.pages} <= {sitemap.url}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "text"])
@pytest.mark.parametrize("readers", ["in use", "pure", "general"])
def test_the_sitemap_of_a_page_by_each_reader(kind: str, readers: str) -> None:
    """Pages of every reader know their sitemap; it does not count for equality."""
    parser = parser_of(Document(H + "s.xml", KINDS[kind].encode()), is_robots_url=False)
    assert isinstance(parser, XMLSitemapParser)
    parser.readers = GENERAL if readers == "general" else FAST[readers]
    pages = list(parser.pages())
    assert pages
    for page in pages:
        assert page.sitemap_url == H + "s.xml"
        assert page == SitemapPage(page.url, *(getattr(page, name) for name in SitemapPage.__match_args__[1:]))
        assert list(page.to_dict().items())[-1] == ("sitemap_url", H + "s.xml")
        assert "s.xml" not in repr(page)


def test_a_page_of_no_sitemap() -> None:
    """A page made by hand has no sitemap."""
    assert SitemapPage(H).sitemap_url is None


# Back-pressure, and the end


@pytest.mark.slow
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("concurrency", [1, 2, 8])
def test_a_consumer_that_waits(ordered: bool, concurrency: int) -> None:
    """While nobody asks for the next page, no new request starts."""
    client = ThreadedClient(many(500))
    stream = stream_pages_for_homepage(H, client, ordered=ordered, concurrency=concurrency, use_known_paths=False)
    next(stream)
    settle(0.05)
    asked = len(client.asked)
    assert asked <= 1 + 2 * concurrency
    settle(0.05)
    assert len(client.asked) == asked
    stream.close()
    assert len(client.asked) == asked


@pytest.mark.parametrize("ordered", [False, True])
def test_closing(ordered: bool) -> None:
    """Closing a stream cancels its running requests and ends its threads."""
    gates = {name: threading.Event() for name in names(20)[1:]}
    client = ThreadedClient(many(20), gates)
    stream = stream_pages_for_homepage(H, client, ordered=ordered, concurrency=8, use_known_paths=False)
    assert next(stream).url == f"{names(1)[0]}/1"
    assert threads()
    started = time.monotonic()
    while len(client.waiting) < 7:
        assert time.monotonic() - started < PATIENCE
        time.sleep(0.001)
    with within(0.9):
        stream.close()
    assert threads() == []
    assert sorted(client.cancelled) == sorted(client.waiting)
    assert list(stream) == []


def test_an_error_in_the_loop() -> None:
    """A stream that is dropped because of an error ends as if it were closed."""
    client = ThreadedClient(many(50))

    def go_through() -> None:
        for _ in stream_pages_for_homepage(H, client):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        go_through()
    assert threads() == []


def test_a_callback_that_raises() -> None:
    """An error in the caller's callback reaches the caller, and ends everything."""
    client = ThreadedClient(many(50))
    with pytest.raises(ZeroDivisionError):
        list(stream_pages_for_homepage(H, client, progress=lambda event: 1 // (event.kind != "parsed")))
    assert threads() == []


class UnhurriedClient(ThreadedClient):
    """A client whose answers take a moment, so that on a busy machine threads do not run ahead of the stream."""

    def get(self, url: str) -> AbstractWebClientResponse:
        time.sleep(0.05)
        return super().get(url)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize("most", [1, 2, 3, 39, 40, 41])
def test_max_pages(ordered: bool, concurrency: int, most: int) -> None:
    """A stream ends at `max_pages`, with few requests more than it needs."""
    client = UnhurriedClient(many(20))
    stream = stream_pages_for_homepage(
        H, client, ordered=ordered, concurrency=concurrency, use_known_paths=False, limits=Limits(max_pages=most)
    )
    pages = urls(stream)
    everything = [f"{name}/{page}" for name in names(20) for page in (1, 2)]
    assert len(pages) == min(most, 40)
    assert len(client.asked) <= 1 + most // 2 + 1 + 2 * concurrency
    assert pages == everything[:most] if ordered else set(pages) <= set(everything)


def test_tree_seconds() -> None:
    """When the time is up, a stream ends."""
    gates = {name: threading.Event() for name in names(5)[1:]}
    client = ThreadedClient(many(5), gates)
    stream = stream_pages_for_homepage(H, client, use_known_paths=False, limits=Limits(tree_seconds=0.1))
    assert urls(stream) == [f"{names(1)[0]}/1", f"{names(1)[0]}/2"]


def test_two_streams_at_once() -> None:
    """Two streams do not disturb each other, even if one is closed."""
    client = ThreadedClient(many(10))
    first = stream_pages_for_homepage(H, client, use_known_paths=False, ordered=True)
    second = stream_pages_for_homepage(H, client, use_known_paths=False, ordered=True)
    seen = [(next(first).url, next(second).url) for _ in range(5)]
    assert all(a == b for a, b in seen)
    first.close()
    assert len(list(second)) == 15


# Arguments


@pytest.mark.parametrize(
    ("homepage", "options", "error"),
    [
        ("ftp://h/", {}, SitemapException),
        (H, {"concurrency": 0}, InvalidArgumentError),
        (H, {"limits": 5}, InvalidArgumentError),
        (H, {"politeness": "kind"}, InvalidArgumentError),
        (H, {"cross_host": "no"}, InvalidArgumentError),
        (H, {"progress": 5}, InvalidArgumentError),
        (H, {"recurse_callback": 5}, InvalidArgumentError),
        (H, {"recurse_list_callback": 5}, InvalidArgumentError),
        (H, {"extra_known_paths": "a.xml"}, InvalidArgumentError),
        (H, {"web_client": 5}, InvalidArgumentError),
        (H, {"unknown": 5}, TypeError),
    ],
)
def test_arguments(homepage: str, options: dict[str, Any], error: type[Exception]) -> None:
    """A wrong argument raises when the stream is made, not at its first page."""
    with pytest.raises(error):
        stream_pages_for_homepage(homepage, **({"web_client": FakeClient({})} | options))


def test_none_means_the_default() -> None:
    """None means the default."""
    stream = stream_pages_for_homepage(
        H, FakeClient(many(2)), concurrency=None, limits=None, politeness=None, progress=None, extra_known_paths=None
    )
    assert len(list(stream)) == 4


# The drivers below it


@pytest.mark.parametrize("concurrency", [1, 3, 8])
def test_requests_at_once(concurrency: int) -> None:
    """A thread-safe client gets `concurrency` requests at once, and no more."""
    lock = threading.Lock()
    at_once: list[int] = []
    going_on = 0

    def look_up(url: str) -> str | None:
        nonlocal going_on
        with lock:
            going_on += 1
            at_once.append(going_on)
        time.sleep(0.002)
        with lock:
            going_on -= 1
        return site.get(url)

    site = many(40)
    tree = sitemap_tree_for_homepage(H, ThreadedClient(look_up), concurrency=concurrency)
    assert len(list(tree.all_pages())) == 80
    assert max(at_once) == concurrency


def test_a_client_for_one_thread() -> None:
    """A client that is not thread-safe is called in the caller's thread only."""
    asked_by = set()

    def look_up(url: str) -> str | None:
        asked_by.add(threading.current_thread())
        return many(10).get(url)

    sitemap_tree_for_homepage(H, FakeClient(look_up), concurrency=8)
    assert asked_by == {threading.current_thread()}


def test_callbacks_are_called_in_one_thread() -> None:
    """Callbacks are called in the caller's thread, however many threads make requests."""
    called_in = set()

    def note(*_: object) -> bool:
        called_in.add(threading.current_thread())
        return True

    sitemap_tree_for_homepage(H, ThreadedClient(many(20)), recurse_callback=note, progress=note)
    assert called_in == {threading.current_thread()}


def test_ctrl_c() -> None:
    """Ctrl-C ends the fetching at once, with the partial tree."""
    gates = {name: threading.Event() for name in names(5)[1:]}

    def interrupt(event: Progress) -> None:
        if event.kind == "parsed" and event.url == names(1)[0]:
            raise KeyboardInterrupt

    with pytest.raises(TreeInterrupted) as caught:
        sitemap_tree_for_homepage(H, ThreadedClient(many(5), gates), use_known_paths=False, progress=interrupt)
    tree = caught.value.tree
    reasons = [s.reason for s in tree.all_sitemaps() if isinstance(s, InvalidSitemap)]
    assert len(reasons) >= 4
    assert set(reasons) == {"Not fetched: it was interrupted."}
    assert [problem.code for problem in tree.problems] == ["C901"]


def test_retries_sleep_by_the_schedule() -> None:
    """With one request at a time, the driver sleeps as long as the schedule says."""
    answers = {H + "a.xml": iter([WebClientErrorResponse("500 Oops", retryable=True), urlset(H + "1")])}
    client = FakeClient(lambda url: next(answers[url]) if url in answers else f"Sitemap: {H}a.xml")
    walk, options, url = homepage_walk(H, use_known_paths=False, politeness=Politeness(retry_seconds=0.01))
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        time.sleep(seconds)

    for _ in blocking.steps(walk, client, options, url, sleep):
        pass
    assert len(list(walk.website().all_pages())) == 1
    assert 0 < sum(slept) <= 0.016


def test_stream_of_no_sitemaps() -> None:
    """Before a walk begins, its stream is empty and does not stop it."""
    walk, _, _ = homepage_walk(H)
    for order in (TreeOrder(walk), ArrivalOrder(walk, None), ArrivalOrder(walk, 1)):
        assert list(order.arrived()) == []
        assert not walk.is_stopped


def _start_and_wait(workers: Workers[int, int], number: int) -> None:
    workers.start(number)
    workers.wait(PATIENCE)


def test_workers() -> None:
    """Both kinds of workers return the result of each task, and raise what it raised."""

    def halve(number: int) -> int:
        if number % 2:
            raise UspError(str(number))
        return number // 2

    for workers in (Inline[int, int](halve), Threads[int, int](halve)):
        for number in (2, 4, 6):
            workers.start(number)
        assert sorted([workers.wait(PATIENCE) or (0, 0) for _ in range(3)]) == [(2, 1), (4, 2), (6, 3)]
        assert workers.wait(0) is None
        with pytest.raises(UspError, match="3"):
            _start_and_wait(workers, 3)
        workers.close()


def test_threads_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the system allows no more threads, those that run do all the work; if none runs, the error says what to do."""
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def scarce(thread: threading.Thread) -> None:
        if thread.name.startswith("usp-") and len(started) >= allowed:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", scarce)
    allowed = 2
    assert len(list(sitemap_tree_for_homepage(H, ThreadedClient(many(30))).all_pages())) == 60
    assert len(started) == 2
    started.clear()
    allowed = 0
    with pytest.raises(RuntimeError, match="concurrency=1"):
        sitemap_tree_for_homepage(H, ThreadedClient(many(30)))


def test_an_interrupt_while_a_thread_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt while a thread starts leaves no thread."""
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        raise KeyboardInterrupt

    workers: Threads[int, int] = Threads(lambda number: number)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            workers.start(1)
    with within(0.5):
        workers.close()
    assert [thread for thread in threading.enumerate() if thread.name.startswith("usp-")] == []


def test_a_stream_in_a_forked_process() -> None:
    """A forked child that goes on with its parent's stream gets an error at once."""
    stream = stream_pages_for_homepage(H, ThreadedClient(many(30)), use_known_paths=False)
    next(stream)
    if (child := os.fork()) == 0:
        try:
            list(stream)
        except RuntimeError as error:
            os._exit(7 if "forked" in str(error) else 1)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert len(list(stream)) == 59


def test_the_tree_of_a_stream() -> None:
    """A stream returns the tree, cut where its pages were cut."""

    def tree_of(**options: Any) -> IndexWebsiteSitemap:
        stream = stream_pages_for_homepage(H, ThreadedClient(many(5)), use_known_paths=False, **options)
        while True:
            try:
                next(stream)
            except StopIteration as end:
                found: IndexWebsiteSitemap = end.value
                return found

    assert tree_of() == sitemap_tree_for_homepage(H, ThreadedClient(many(5)), use_known_paths=False)
    assert [problem.code for problem in tree_of(limits=Limits(max_pages=1)).problems] == ["C901"]


def test_an_asynchronous_client_is_refused() -> None:
    """A client for asyncio raises in the blocking front door."""

    class Awaited:
        async def get(self, url: str) -> None: ...
        def set_max_response_data_length(self, max_response_data_length: int | None) -> None: ...

    with pytest.raises(InvalidArgumentError, match=r"usp\.aio"):
        sitemap_tree_for_homepage(H, Awaited())  # type: ignore[arg-type]


def test_options_that_are_not_known() -> None:
    """An unknown keyword raises; the message names it, and the known ones."""
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'timeout'; there are: .*concurrency"):
        sitemap_tree_for_homepage(H, timeout=5)  # type: ignore[call-arg]
    with pytest.raises(InvalidArgumentError, match="several paths"):
        sitemap_tree_for_homepage(H, extra_known_paths=["http://h/x.xml"])
