"""The walk's rules, with plain values: no client, no clock, no socket."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support import index, urlset
from usp.documents import Document, Failure
from usp.fetch_parse import SitemapFetcher
from usp.limits import Limits
from usp.objects.outcome import Cause
from usp.objects.page import SitemapPage
from usp.objects.sitemap import AbstractSitemap, IndexXMLSitemap, InvalidSitemap, PagesXMLSitemap
from usp.origins import requested_url
from usp.scan.urls import is_http_url
from usp.walk import HomepageWalk, Walk
from usp.walk.nodes import Arrivals, Node, OrderedArrivals

H = "http://h/"


def fetcher(path: str, **options: object) -> SitemapFetcher:
    return SitemapFetcher(H + path, 0, **options)  # type: ignore[arg-type]


def answer(site: dict[str, str | Document | Failure], url: str) -> Document | Failure:
    found = site.get(url.removeprefix(H), Failure("404 Not Found", 404))
    return Document(url, found.encode()) if isinstance(found, str) else found


def run(walk: Walk, site: dict[str, str | Document | Failure]) -> list[str]:
    """Drive a walk with one request at a time. Return the URLs in the order of requests."""
    asked = []
    while (wanted := walk.next()) is not None:
        asked.append(wanted.url.removeprefix(H))
        walk.receive(wanted, answer(site, wanted.url))
    return asked


def run_at_random(walk: Walk, site: dict[str, str | Document | Failure], seed: int) -> None:
    """Drive a walk with several requests at once, whose responses arrive in any order."""
    chance = random.Random(seed)
    on_their_way: list[SitemapFetcher] = []
    while True:
        while len(on_their_way) < 5 and (wanted := walk.next()) is not None:
            on_their_way.append(wanted)
        if not on_their_way:
            return
        received = on_their_way.pop(chance.randrange(len(on_their_way)))
        walk.receive(received, answer(site, received.url))


def tree(sitemap: AbstractSitemap) -> object:
    below = [tree(child) for child in sitemap.sub_sitemaps]
    name = sitemap.url.removeprefix(H)
    return (name, below) if below else name


SITE: dict[str, str | Document | Failure] = {
    "robots.txt": f"Sitemap: {H}index.xml\nSitemap: {H}gone.xml\nSitemap: {H}b.xml",
    "index.xml": index(H + "a.xml", H + "deeper.xml", H + "b.xml"),
    "deeper.xml": index(H + "b.xml", H + "c.xml", H + "index.xml"),
    "a.xml": urlset(H + "1", H + "2"),
    "b.xml": urlset(H + "3"),
    "c.xml": urlset(H + "1"),
    "sitemap.xml": urlset(H + "4"),
    "sitemap_index.xml": index(H + "sitemap.xml", H + "c.xml"),
}
KNOWN = ("sitemap.xml", "nothing.xml", "sitemap_index.xml", "b.xml")


def website(**options: object) -> HomepageWalk:
    return HomepageWalk(H, fetcher("robots.txt", **options), [fetcher(path, **options) for path in KNOWN])


def test_order() -> None:
    """URLs are requested once each, in the order they are declared, children before the next sibling."""
    walk = website()
    assert run(walk, SITE) == [
        *("robots.txt", "index.xml", "a.xml", "deeper.xml", "b.xml", "c.xml", "gone.xml"),
        *("sitemap.xml", "nothing.xml", "sitemap_index.xml"),
    ]
    assert tree(walk.website()) == (
        "",
        [
            (
                "robots.txt",
                [
                    ("index.xml", ["a.xml", ("deeper.xml", ["b.xml", "c.xml", "index.xml"]), "b.xml"]),
                    "gone.xml",
                    "b.xml",
                ],
            ),
            "sitemap.xml",
            ("sitemap_index.xml", ["sitemap.xml", "c.xml"]),
        ],
    )


@pytest.mark.parametrize("seed", range(30))
def test_any_interleaving_gives_the_same_tree(seed: int) -> None:
    """The tree does not depend on the order of responses."""
    in_order, at_random = website(), website()
    run(in_order, SITE)
    run_at_random(at_random, SITE, seed)
    assert at_random.website() == in_order.website()


def test_nothing_is_dropped_across_sitemaps() -> None:
    """A page in two sitemaps is listed twice, and a child of two indexes is in both."""
    walk = website()
    run(walk, SITE)
    urls = [page.url.removeprefix(H) for page in walk.website().all_pages()]
    assert urls == ["1", "2", "3", "1", "3", "3", "4", "4", "1"]


def test_loops_end_with_a_reason() -> None:
    """A sitemap that lists one above it has an invalid child there, and only there."""
    walk = website()
    run(walk, SITE)
    (loop,) = (s for s in walk.website().all_sitemaps() if isinstance(s, InvalidSitemap) and "index" in s.url)
    assert loop.url == H + "index.xml"
    assert loop.reason.startswith("Recursion detected in URL http://h/index.xml with parent URLs")


def test_self_reference() -> None:
    """An index that lists itself is fetched once."""
    walk = Walk([fetcher("index.xml")])
    assert run(walk, {"index.xml": index(H + "index.xml", H + "a.xml"), "a.xml": urlset(H)}) == ["index.xml", "a.xml"]
    (sitemap,) = walk.sitemaps()
    assert [type(child) for child in sitemap.sub_sitemaps] == [InvalidSitemap, PagesXMLSitemap]


def test_redirect_to_a_parent() -> None:
    """A child that redirects to a sitemap above it is a loop."""
    site: dict[str, str | Document | Failure] = {
        "index.xml": index(H + "a.xml"),
        "a.xml": Document(H + "index.xml", index(H + "a.xml").encode()),
    }
    walk = Walk([fetcher("index.xml")])
    run(walk, site)
    (child,) = walk.sitemaps()[0].sub_sitemaps
    assert isinstance(child, InvalidSitemap)
    assert child.url == H + "a.xml"
    assert child.reason.startswith("Recursion detected when http://h/a.xml redirected to http://h/index.xml")


def test_depth_is_limited() -> None:
    """An endless chain of fresh indexes ends at level 11."""
    walk = Walk([fetcher("0")])
    asked = run(walk, {str(i): index(f"{H}{i + 1}") for i in range(50)})
    assert asked == [str(i) for i in range(12)]
    *_, last = walk.sitemaps()[0].all_sitemaps()
    assert isinstance(last, InvalidSitemap)
    assert last.reason == "Recursion level exceeded 11 for URL http://h/12."


def test_indexes_that_list_each_other_in_all_combinations() -> None:
    """A few documents cannot make an endless tree: the number of nodes is limited, and nothing is fetched twice."""
    everyone = index(*(f"{H}{i}" for i in range(20)))
    walk = Walk([fetcher("0")], Limits(max_sitemaps=5_000))
    assert sorted(run(walk, {str(i): everyone for i in range(20)})) == sorted(str(i) for i in range(20))
    reasons = {s.reason.partition(" ")[0] for s in walk.sitemaps()[0].all_sitemaps() if isinstance(s, InvalidSitemap)}
    assert reasons == {"Recursion", "Not"}


def test_long_urls_do_not_multiply() -> None:
    """The reason of a loop does not grow with the length of its URLs."""
    url = H + "x" * 60_000
    walk = Walk([SitemapFetcher(url, 0)])
    run(walk, {url.removeprefix(H): index(url)})
    (loop,) = walk.sitemaps()[0].sub_sitemaps
    assert isinstance(loop, InvalidSitemap)
    assert len(loop.reason) < 1_000


def test_places_share_pages() -> None:
    """Nodes with the same document share its pages."""
    walk = Walk([fetcher("index.xml")])
    run(walk, SITE)
    kept = [s._pages for s in walk.sitemaps()[0].all_sitemaps() if s.url == H + "b.xml"]
    assert len(kept) == 2
    assert kept[0] is kept[1]
    assert len(kept[0]) == 1


def test_a_failure_stands_in_its_place() -> None:
    """A child that cannot be fetched is an `InvalidSitemap` with the reason, between its siblings."""
    site: dict[str, str | Document | Failure] = {
        "index.xml": index(H + "a.xml", H + "b.xml", H + "c.xml", "ftp://h/x", H + "d.xml"),
        "a.xml": urlset(H),
        "b.xml": Failure("500 Internal Server Error", 500),
        "c.xml": "<html></html>",
        "d.xml": urlset(H),
    }
    walk = Walk([fetcher("index.xml")])
    run(walk, site)
    sitemap = walk.sitemaps()[0]
    a, b, c, d = sitemap.sub_sitemaps
    assert a == PagesXMLSitemap(H + "a.xml", d.pages)
    assert b == InvalidSitemap(H + "b.xml", f"Unable to fetch sitemap from {H}b.xml: 500 Internal Server Error")
    assert c == InvalidSitemap(H + "c.xml", f"No parsers support sitemap from {H}c.xml: its root element is <html>")
    assert [problem.code for problem in sitemap.problems] == ["U502"]


def test_declared_dates() -> None:
    """A sitemap knows the date that each of its indexes declared for it."""
    entry = "<sitemap><loc>{}</loc><lastmod>{}</lastmod></sitemap>"
    site: dict[str, str | Document | Failure] = {
        "index.xml": "<sitemapindex>" + entry.format(H + "a.xml", 2024) + entry.format(H + "b.xml", 2023),
        "b.xml": "<sitemapindex>" + entry.format(H + "a.xml", 2022),
        "a.xml": urlset(H),
    }
    walk = Walk([fetcher("index.xml")])
    run(walk, site)
    years = {s.url: s.last_modified.year for s in walk.sitemaps()[0].sub_sitemaps if s.last_modified}
    assert years == {H + "a.xml": 2024, H + "b.xml": 2023}
    assert [s.last_modified and s.last_modified.year for s in walk.sitemaps()[0].all_sitemaps()] == [
        2024,
        2023,
        2022,
    ]


def robots_answer(robots: str | Document | Failure) -> HomepageWalk:
    walk = HomepageWalk(H, fetcher("robots.txt"), [])
    run(walk, {"robots.txt": robots})
    return walk


@pytest.mark.parametrize("status", [404, 410, 401, 403])
def test_no_robots_txt(status: int) -> None:
    """Without a robots.txt there is no node for it, and no problem."""
    site = robots_answer(Failure(f"{status} something", status)).website()
    assert site.sub_sitemaps == []
    assert site.problems == ()


@pytest.mark.parametrize("failure", [Failure("500 Oops", 500), Failure("timed out")])
def test_unreachable_robots_txt(failure: Failure) -> None:
    """A robots.txt that could not be fetched has no node, but the root says why."""
    site = robots_answer(failure).website()
    assert site.sub_sitemaps == []
    (problem,) = site.problems
    assert problem.code == "R704"
    assert failure.message in problem.message


def test_known_paths_leave_no_trace() -> None:
    """A known path that does not exist, is not a sitemap, or redirects to a known sitemap leaves no trace."""
    site: dict[str, str | Document | Failure] = {
        "robots.txt": f"Sitemap: {H}real.xml",
        "real.xml": urlset(H),
        "1": Document(H + "real.xml", urlset(H).encode()),
        "2": "<html></html>",
        "3": "Not found, but 200",
        "4": Failure("500", 500),
        "5": "",
        "6": Document(H + "moved.xml", urlset(H).encode()),
        "7": Document(H + "moved.xml", urlset(H).encode()),
    }
    walk = HomepageWalk(H, fetcher("robots.txt"), [fetcher(str(i)) for i in range(1, 8)])
    run(walk, site)
    assert tree(walk.website()) == ("", [("robots.txt", ["real.xml"]), "moved.xml"])


@pytest.mark.parametrize("seed", range(10))
def test_known_paths_as_a_last_resort(seed: int) -> None:
    """With `known_last`, known paths are requested only if robots.txt leads to no sitemap; those with a name always."""

    def last_resort() -> HomepageWalk:
        known = [fetcher(path) for path in KNOWN]
        return HomepageWalk(H, fetcher("robots.txt"), known, named_urls={H + "sitemap_index.xml"}, known_last=True)

    walk = last_resort()
    ordered = OrderedArrivals(walk)
    asked = run(walk, SITE)
    assert asked[-2:] == ["sitemap_index.xml", "sitemap.xml"]
    assert "nothing.xml" not in asked
    assert [place.fetcher.url for _, place in ordered.advance() if isinstance(place, Node)][-3:] == [
        H + "sitemap_index.xml", H + "sitemap.xml", H + "c.xml"
    ]  # fmt: skip
    at_random = last_resort()
    run_at_random(at_random, SITE, seed)
    assert at_random.website() == walk.website()
    bare = {**SITE, "robots.txt": f"Sitemap: {H}gone.xml"}
    walk = last_resort()
    assert run(walk, bare)[:4] == ["robots.txt", "gone.xml", "sitemap.xml", "nothing.xml"]


@pytest.mark.parametrize("is_known_last", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_earlier_sitemaps(seed: int, is_known_last: bool) -> None:
    """Where there were sitemaps before is requested only if robots.txt leads to none; each URL once, in any order."""

    def remembering() -> HomepageWalk:
        known = [fetcher(path) for path in KNOWN]
        walk = HomepageWalk(H, fetcher("robots.txt"), known, known_last=is_known_last)
        walk.remember([H + "index.xml", H + "sitemap.xml", H + "old.xml", "ftp://example.org/"])
        return walk

    site = {**SITE, "old.xml": urlset(H + "5")}
    assert "old.xml" not in run(remembering(), site)
    bare = {**site, "robots.txt": f"Sitemap: {H}gone.xml"}
    walk = remembering()
    asked = run(walk, bare)
    assert {"index.xml", "old.xml"} <= set(asked)
    assert len(asked) == len(set(asked))
    assert [sub.url for sub in walk.website().sub_sitemaps[-2:]] == [H + "index.xml", H + "old.xml"]
    at_random = remembering()
    run_at_random(at_random, bare, seed)
    assert at_random.website() == walk.website()


def test_earlier_sitemaps_that_a_stop_leaves_out() -> None:
    """If the walk is stopped before they are requested, the tree says so; not if robots.txt names other sitemaps."""
    for robots, lost in (("", {H + "old.xml"}), (f"Sitemap: {H}a.xml", set())):
        walk = HomepageWalk(H, fetcher("robots.txt"), [])
        walk.remember([H + "old.xml"])
        first = walk.next()
        assert first is not None
        walk.receive(first, Document(first.url, robots.encode()))
        walk.stop("the time was up")
        roots = walk.website().facts.roots or ()
        assert {root.url for root in roots if root.cause is Cause.LIMIT} == lost


def test_callbacks() -> None:
    """Callbacks get the child's URL or all of them, the parent's level, and the set of URLs above; lists first."""
    calls: list[tuple[object, int, set[str]]] = []

    def one(url: str, level: int, parents: set[str]) -> bool:
        calls.append((url, level, parents))
        return "b.xml" not in url

    def many(urls: list[str], level: int, parents: set[str]) -> list[str]:
        calls.append((urls, level, parents))
        return [url for url in reversed(urls) if "gone" not in url]

    walk = HomepageWalk(H, fetcher("robots.txt", recurse_callback=one, recurse_list_callback=many), [])
    run(walk, SITE)
    robots, inside = {H + "robots.txt"}, {H + "robots.txt", H + "index.xml"}
    assert calls[:3] == [
        ([H + "index.xml", H + "gone.xml", H + "b.xml"], 0, robots),
        (H + "b.xml", 0, robots),
        (H + "index.xml", 0, robots),
    ]
    assert calls[3] == ([H + "a.xml", H + "deeper.xml", H + "b.xml"], 1, inside)
    assert tree(walk.website()) == (
        "",
        [("robots.txt", [("index.xml", [("deeper.xml", ["index.xml", "c.xml"]), "a.xml"])])],
    )


def test_a_list_callback_may_give_any_iterable() -> None:
    """A list callback may return any iterable; a value that is not a URL becomes an `InvalidSitemap` in its place."""
    walk = Walk([fetcher("index.xml", recurse_list_callback=lambda urls, *_: filter(None, [1, H + "a.xml"]))])
    assert run(walk, SITE) == ["index.xml", "a.xml"]
    first, second = walk.sitemaps()[0].sub_sitemaps
    assert isinstance(first, InvalidSitemap)
    assert second.url == H + "a.xml"


def test_a_callback_that_raises() -> None:
    """An error in the caller's own code reaches the caller."""

    def fail(*_: object) -> bool:
        raise ZeroDivisionError

    for option in ("recurse_callback", "recurse_list_callback"):
        with pytest.raises(ZeroDivisionError):
            run(Walk([fetcher("index.xml", **{option: fail})]), SITE)


def test_filtered_known_paths_stay_filtered() -> None:
    """A sitemap that a callback left out does not come back as a known path."""
    walk = HomepageWalk(
        H,
        fetcher("robots.txt", recurse_callback=lambda *_: False),
        [fetcher("b.xml"), fetcher("sitemap.xml")],
    )
    assert run(walk, SITE) == ["robots.txt", "sitemap.xml"]


@pytest.mark.slow
def test_a_deep_and_wide_tree() -> None:
    """A tree of ten thousand children is built in little time."""
    site = {"index.xml": index(*(f"{H}{i}.xml" for i in range(10_000)))}
    walk = Walk([fetcher("index.xml")])
    assert len(run(walk, dict(site))) == 10_001
    (sitemap,) = walk.sitemaps()
    assert isinstance(sitemap, IndexXMLSitemap)
    assert len(sitemap.sub_sitemaps) == 10_000


SPELLINGS = [
    "http://b\u00fccher.example/a.xml",
    "http://xn--bcher-kva.example/a.xml",
    "HTTP://B\u00dcCHER.Example:80/a.xml",
    "http://xn--bcher-kva.example/a.xml#top",
    "http://xn--bcher-kva.example./x/../a.xml",
    "http://xn--bcher-kva.example:/./a.xml",
]


@pytest.mark.parametrize("first", SPELLINGS)
def test_one_fetch_for_all_spellings(first: str) -> None:
    """Spellings of a URL that are requested alike are fetched once, and each node has the result."""
    spelled = [first, *(url for url in SPELLINGS if url != first)]
    walk = Walk([fetcher("index.xml")])
    wanted = walk.next()
    assert wanted is not None
    walk.receive(wanted, Document(wanted.url, index(*spelled).encode()))
    (child,) = iter(walk.next, None)
    assert child.url == first
    walk.receive(child, Document(child.url, urlset(H + "1").encode()))
    assert walk.next() is None
    (sitemap,) = walk.sitemaps()
    assert [len(sub.pages) for sub in sitemap.sub_sitemaps] == [1] * len(SPELLINGS)


@pytest.mark.parametrize(
    ("url", "other"),
    [
        ("http://h/a", "https://h/a"),
        ("http://h/a", "http://h:8080/a"),
        ("http://h/a", "http://www.h/a"),
        ("http://h/a", "http://h/A"),
        ("http://h/a", "http://h/a/"),
        ("http://h/a", "http://h/a?b"),
        ("http://h/a?b", "http://h/a?c"),
        ("http://h/a", "http://u@h/a"),
        ("http://h/a%2Fb", "http://h/a/b"),
        ("http://h/a", "http://h:0/a"),
    ],
)
def test_urls_that_are_not_one(url: str, other: str) -> None:
    """URLs that are requested differently are fetched separately."""
    assert requested_url(url) != requested_url(other)


HOSTS = [
    "h",
    "H",
    "h.",
    "h:80",
    "h:443",
    "h:",
    "h:8080",
    "u@h",
    "u:p@H:80",
    "[::1]",
    "[::1]:80",
    "1.2.3.4",
    "\u00e9.\u00c9",
]


@given(st.sampled_from(["http", "HTTPS"]), st.sampled_from(HOSTS), st.text(st.sampled_from("/.?#%aA \u00e9&=\t\\")))
@settings(max_examples=300)
def test_the_requested_url_is_settled(scheme: str, host: str, rest: str) -> None:
    """`requested_url` of a requested URL is the same."""
    requested = requested_url(f"{scheme}://{host}/{rest}")
    assert requested_url(requested) == requested


@given(st.text())
@settings(max_examples=300)
def test_any_text_can_be_asked_for(text: str) -> None:
    """`requested_url` returns a text that is not a URL as it is; nothing raises."""
    assert is_http_url(text) or requested_url(text) == text or text.lower().startswith("http")


@pytest.mark.parametrize(
    "spelling", ["http://H/index.xml", "http://h:80/index.xml", "http://h/index.xml#x", "HTTP://h/./index.xml"]
)
def test_an_index_that_lists_itself_in_another_spelling(spelling: str) -> None:
    """A loop in another spelling is a loop: nothing is fetched again, and the node says why."""
    walk = Walk([fetcher("index.xml")])
    assert run(walk, {"index.xml": index(spelling)}) == ["index.xml"]
    (loop,) = walk.sitemaps()[0].sub_sitemaps
    assert isinstance(loop, InvalidSitemap)
    assert loop.reason.startswith("Recursion detected in URL")


def test_a_loop_through_another_spelling() -> None:
    """Two indexes that list each other in other spellings are each fetched once."""
    walk = Walk([fetcher("a.xml")])
    assert run(walk, {"a.xml": index("http://H/b.xml"), "http://H/b.xml": index("http://h:80/a.xml")}) == [
        "a.xml",
        "http://H/b.xml",
    ]


def test_a_known_path_in_another_spelling() -> None:
    """A known path that robots.txt names in another spelling is not requested again."""
    walk = HomepageWalk(H, fetcher("robots.txt"), [fetcher("a.xml")])
    site: dict[str, str | Document | Failure] = {
        "robots.txt": "Sitemap: http://H:80/a.xml",
        "http://H:80/a.xml": urlset(H),
    }
    assert run(walk, site) == ["robots.txt", "http://H:80/a.xml"]
    assert len(list(walk.website().all_pages())) == 1


def test_stop() -> None:
    """A stopped walk keeps what has arrived; the rest has the reason, and the walk gives out nothing more."""
    walk = website()
    robots = walk.next()
    assert robots is not None
    walk.receive(robots, answer(SITE, robots.url))
    first = walk.next()
    second = walk.next()
    assert first is not None
    assert second is not None
    walk.receive(second, answer(SITE, second.url))
    walk.stop("that is enough")
    assert walk.next() is None
    before = walk.website()
    walk.receive(first, answer(SITE, first.url))
    walk.stop("it was stopped again")
    assert walk.next() is None
    assert walk.website() == before
    assert tree(before) == ("", [("robots.txt", ["index.xml", "gone.xml", "b.xml"])])
    assert {s.reason for s in before.all_sitemaps() if isinstance(s, InvalidSitemap)} == {
        "Not fetched: that is enough.",
        f"Unable to fetch sitemap from {H}gone.xml: 404 Not Found",
    }
    assert [(p.code, p.message.partition(";")[0]) for p in before.problems] == [("C901", "that is enough")]


def test_a_stop_counts_what_had_arrived() -> None:
    """When a walk stops, pages that had arrived behind a missing sitemap count towards `max_pages`."""
    walk = Walk([fetcher("index.xml")], Limits(max_pages=2))
    root = walk.next()
    assert root is not None
    walk.receive(root, Document(root.url, index(H + "a.xml", H + "b.xml").encode()))
    _, b = iter(walk.next, None)
    walk.receive(b, Document(b.url, urlset(H + "1", H + "2", H + "3").encode()))
    walk.stop("the time is up")
    missing, cut = walk.sitemaps()[0].sub_sitemaps
    assert isinstance(missing, InvalidSitemap)
    assert [page.url for page in cut.pages] == [H + "1", H + "2"]
    assert [problem.code for problem in cut.problems] == ["C901"]


def test_a_stop_builds_each_sitemap_once() -> None:
    """A tree that ends with many sitemaps unfetched is soon built: those before the cut are used as they are."""
    walk = Walk([fetcher("index.xml")], Limits(max_sitemaps=7))
    site = {"index.xml": index(*(f"{H}{number}.xml" for number in range(9))), "0.xml": index(H + "below.xml")}
    for path in ("index.xml", "0.xml"):
        wanted = walk.next()
        assert wanted is not None
        walk.receive(wanted, Document(wanted.url, site[path].encode()))
    walk.stop("the time is up")
    built = [node.sitemap for node in walk.roots[0].child_nodes()]
    top = walk.sitemaps()[0]
    *before, last, marker = top.sub_sitemaps
    assert all(sitemap is built[at] for at, sitemap in enumerate(before))
    assert (len(before), last.url, marker.url) == (4, f"{H}4.xml", f"{H}5.xml")
    assert walk.sitemaps()[0] == top


@pytest.mark.parametrize("after", range(12))
def test_stop_at_any_time(after: int) -> None:
    """A walk that is stopped at any point has a tree, whose pages are in the order of the whole tree."""
    whole, walk = website(), website()
    run(whole, SITE)
    for _ in range(after):
        if (wanted := walk.next()) is not None:
            walk.receive(wanted, answer(SITE, wanted.url))
    walk.stop("that is enough")
    pages = iter(whole.website().all_pages())
    assert all(page in pages for page in walk.website().all_pages())


def test_a_stop_after_the_end() -> None:
    """A stop after the end changes nothing."""
    walk = website()
    run(walk, SITE)
    before = walk.website()
    walk.stop("too late")
    assert walk.website() == before
    assert walk.website().problems == ()


def test_an_answer_that_was_not_asked_for() -> None:
    """A response that the walk does not wait for, or gets again, is ignored."""
    walk = website()
    walk.receive(fetcher("unasked.xml"), Document(H + "unasked.xml", urlset(H).encode()))
    robots = walk.next()
    assert robots is not None
    walk.receive(robots, answer(SITE, robots.url))
    walk.receive(robots, Failure("500 Oops", 500))
    run(walk, SITE)
    whole = website()
    run(whole, SITE)
    assert walk.website() == whole.website()


NAMES = tuple(f"{letter}.xml" for letter in "abcdefg")
known = ("a.xml", "b.xml", "c.xml", "d.xml")


@st.composite
def sites(draw: st.DrawFn) -> dict[str, str | Document | Failure]:
    """A random website: shared children, loops, known paths that others lead to, redirects, failures."""
    bodies: dict[str, str] = {}
    moved: dict[str, str] = {}
    for name in NAMES:
        kind = draw(st.sampled_from(["index", "pages", "pages", "mixed", "moved", "missing", "html"]))
        children = draw(st.lists(st.sampled_from(NAMES), max_size=3))
        if kind == "moved":
            moved[name] = draw(st.sampled_from(NAMES))
        elif kind == "index":
            bodies[name] = index(*(H + child for child in children))
        elif kind == "mixed":
            entries = "".join(f"<sitemap><loc>{H}{child}</loc></sitemap>" for child in children)
            bodies[name] = f"<urlset><url><loc>{H}in-{name}</loc></url>{entries}</urlset>"
        elif kind == "pages":
            bodies[name] = urlset(H + name + "/1", H + "shared")
        elif kind == "html":
            bodies[name] = "<html></html>"
    site: dict[str, str | Document | Failure] = dict(bodies)
    for name in moved:
        at, hops = name, 0
        while at in moved and hops < 6:
            at, hops = moved[at], hops + 1
        site[name] = Document(H + at, bodies[at].encode()) if at in bodies else Failure("404 Not Found", 404)
    if draw(st.booleans()):
        listed = draw(st.lists(st.sampled_from(NAMES), max_size=3))
        site["robots.txt"] = "User-agent: *\n" + "".join(f"Sitemap: {H}{name}\n" for name in listed)
    return site


def urls(pages: Iterable[SitemapPage]) -> list[tuple[str, str | None]]:
    return [(page.url, page.sitemap_url) for page in pages]


def levels(sitemap: AbstractSitemap, level: int = 0) -> list[tuple[int, str]]:
    """The URLs of all sitemaps below one, with their levels."""
    found = []
    for child in sitemap.sub_sitemaps:
        found += [(level, child.url), *levels(child, level + 1)]
    return found


def url_of(place: Node | InvalidSitemap) -> str:
    if isinstance(place, InvalidSitemap):
        return place.url
    assert place.parsed is not None
    return place.parsed.url


def drive_with(
    walk: HomepageWalk, site: dict[str, str | Document | Failure], choose: Callable[[int], int], at_once: int
) -> tuple[list[tuple[int, Node | InvalidSitemap]], list[Node]]:
    """Drive a walk in any order; gives the places of `OrderedArrivals` and the nodes of `Arrivals` as they come."""
    ordered, arrivals = OrderedArrivals(walk), walk.arrivals()
    in_order: list[tuple[int, Node | InvalidSitemap]] = []
    as_they_came: list[Node] = []
    on_their_way: list[SitemapFetcher] = []
    while True:
        while len(on_their_way) < at_once and (wanted := walk.next()) is not None:
            on_their_way.append(wanted)
        in_order += ordered.advance()
        as_they_came += arrivals.advance()
        if not on_their_way:
            return in_order, as_they_came
        received = on_their_way.pop(choose(len(on_their_way)))
        walk.receive(received, answer(site, received.url))


@pytest.mark.slow
@given(sites(), st.randoms(use_true_random=False), st.integers(1, 8), st.booleans())
@settings(max_examples=300)
@example({"a.xml": index(H + "b.xml"), "b.xml": urlset(H + "1")}, random.Random(0), 8, False)
def test_orders(
    site: dict[str, str | Document | Failure], chance: random.Random, at_once: int, has_robots: bool
) -> None:
    """In any interleaving `OrderedArrivals` gives the places of the tree in its order, `Arrivals` its nodes."""
    robots = "robots.txt" in site or has_robots
    walk = HomepageWalk(H, fetcher("robots.txt") if robots else None, [fetcher(path) for path in known])
    in_order, as_they_came = drive_with(walk, site, chance.randrange, at_once)
    website = walk.website()
    expected = urls(website.all_pages())
    nodes = [place for _, place in in_order if isinstance(place, Node)]
    assert urls(page for node in nodes if node.parsed for page in node.parsed.pages) == expected
    assert len(nodes) == len(set(nodes))
    assert Counter(as_they_came) == Counter(nodes)
    placed = [(level, url_of(place)) for level, place in in_order]
    assert placed == levels(website)


@pytest.mark.slow
@given(sites(), st.randoms(use_true_random=False), st.integers(1, 8))
@settings(max_examples=300)
def test_any_interleaving_of_any_site(
    site: dict[str, str | Document | Failure], chance: random.Random, at_once: int
) -> None:
    """Whatever the order of responses, the tree of any site is that of one request at a time."""
    in_turn, at_random = (HomepageWalk(H, fetcher("robots.txt"), [fetcher(path) for path in known]) for _ in "12")
    asked = run(in_turn, site)
    assert len(asked) == len(set(asked))
    drive_with(at_random, site, chance.randrange, at_once)
    assert tree(at_random.website()) == tree(in_turn.website())
    assert at_random.website() == in_turn.website()


@pytest.mark.slow
@given(sites(), st.randoms(use_true_random=False), st.integers(1, 8), st.integers(1, 12))
@settings(max_examples=300)
def test_a_limit_on_the_pages_of_any_site(
    site: dict[str, str | Document | Failure], chance: random.Random, at_once: int, most: int
) -> None:
    """Whatever the order of responses, a limit on pages keeps the first pages of the tree."""
    whole = HomepageWalk(H, fetcher("robots.txt"), [fetcher(path) for path in known])
    run(whole, site)
    limited = HomepageWalk(H, fetcher("robots.txt"), [fetcher(path) for path in known], Limits(max_pages=most))
    drive_with(limited, site, chance.randrange, at_once)
    assert urls(limited.website().all_pages()) == urls(whole.website().all_pages())[:most]


def test_ordered_arrivals_wait_for_a_gap() -> None:
    """`OrderedArrivals` gives a node only after all nodes before it."""
    walk = Walk([fetcher("index.xml")])
    ordered = OrderedArrivals(walk)

    def given() -> list[str]:
        return [place.fetcher.url for _, place in ordered.advance() if isinstance(place, Node)]

    root = walk.next()
    assert root is not None
    assert given() == []
    walk.receive(root, Document(root.url, index(H + "a.xml", H + "b.xml").encode()))
    a, b = iter(walk.next, None)
    assert given() == [H + "index.xml"]
    walk.receive(b, Document(b.url, urlset(H).encode()))
    assert given() == []
    walk.receive(a, Document(a.url, urlset(H).encode()))
    assert given() == [H + "a.xml", H + "b.xml"]
    assert given() == []


def test_arrivals_hold_back_guesses() -> None:
    """`Arrivals` holds a known path back until it is certain that no sitemap before it leads there."""
    walk = HomepageWalk(H, fetcher("robots.txt"), [fetcher("a.xml"), fetcher("b.xml")])
    arrivals: Arrivals = walk.arrivals()
    robots = walk.next()
    assert robots is not None
    walk.receive(robots, Document(robots.url, f"Sitemap: {H}i.xml".encode()))
    listed, a, b = iter(walk.next, None)
    assert [node.fetcher.url for node in arrivals.advance()] == [H + "robots.txt"]
    walk.receive(b, Document(b.url, urlset(H + "2").encode()))
    walk.receive(a, Document(a.url, urlset(H + "1").encode()))
    assert list(arrivals.advance()) == []
    walk.receive(listed, Document(listed.url, index(H + "a.xml").encode()))
    assert walk.next() is None
    assert [node.fetcher.url for node in arrivals.advance()] == [H + "i.xml", H + "a.xml", H + "b.xml"]
    assert tree(walk.website()) == ("", [("robots.txt", [("i.xml", ["a.xml"])]), "b.xml"])
