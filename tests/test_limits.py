"""Limits, politeness and options: what is refused, and where each limit cuts a tree."""

from __future__ import annotations

import gc
import math
import random
import time
from typing import Any

import pytest

from support import FakeClient, FakeResponse, index, urlset
from usp.documents import Document, Failure
from usp.drivers.options import Options, homepage_walk
from usp.exceptions import InvalidArgumentError, UspError
from usp.fetch_parse import SitemapFetcher
from usp.fetch_parse.parsed import ChildSitemap, ParsedSitemap
from usp.limits import Limits
from usp.objects.outcome import Cause
from usp.objects.sitemap import AbstractSitemap, IndexWebsiteSitemap, IndexXMLSitemap, InvalidSitemap
from usp.politeness import Politeness
from usp.tree import sitemap_tree_for_homepage
from usp.walk import HomepageWalk, Walk

H = "http://h/"


def reasons(tree: AbstractSitemap) -> dict[str, str]:
    return {s.url.removeprefix(H): s.reason for s in tree.all_sitemaps() if isinstance(s, InvalidSitemap)}


def codes(sitemap: AbstractSitemap) -> list[str]:
    return [problem.code for problem in sitemap.problems]


def pages(tree: AbstractSitemap) -> list[str]:
    return [page.url.removeprefix(H) for page in tree.all_pages()]


# What is refused


WHOLE = ("max_depth", "max_sitemap_bytes", "max_sitemaps", "max_pages", "max_total_bytes", "max_redirects")
SECONDS = ("request_seconds", "tree_seconds")


@pytest.mark.parametrize("value", [-1, True, False, 1.5, "5", math.nan, math.inf, b"", [], object()])
@pytest.mark.parametrize("name", WHOLE)
def test_limits_that_are_no_whole_numbers(name: str, value: object) -> None:
    """A limit on a count is an integer of at least 0 or 1, and not a bool. The message names the limit."""
    with pytest.raises(
        InvalidArgumentError, match=rf"limits: {name} must be an integer, (\d or more|from 0 to 200), not"
    ):
        Limits(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [-1, 0, True, "5", math.nan, math.inf, -math.inf, None, []])
@pytest.mark.parametrize("name", SECONDS)
def test_limits_that_are_no_seconds(name: str, value: object) -> None:
    """A limit on time is a number of seconds over zero. The message names the limit."""
    with pytest.raises(InvalidArgumentError, match=f"limits: {name} must be a number"):
        Limits(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [name for name in WHOLE if name not in ("max_depth", "max_redirects")])
def test_limits_of_nothing(name: str) -> None:
    """Only depth and redirects may be limited to 0."""
    with pytest.raises(InvalidArgumentError, match=name):
        Limits(**{name: 0})
    assert Limits(max_depth=0, max_redirects=0) != Limits()


def test_no_limit() -> None:
    """Only `max_pages` can be None."""
    assert Limits(max_pages=None) == Limits()
    for name in set(WHOLE) - {"max_pages"}:
        with pytest.raises(InvalidArgumentError, match=name):
            Limits(**{name: None})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", WHOLE[1:])
def test_limits_that_are_never_reached(name: str) -> None:
    """A limit may be larger than anything that can be reached."""
    assert getattr(Limits(**{name: 10**400}), name) == 10**400


@pytest.mark.parametrize("name", ["spacing", "max_delay", "retry_seconds", "tries"])
@pytest.mark.parametrize("value", [-1, True, "1", math.nan, math.inf, None, []])
def test_politeness_that_makes_no_sense(name: str, value: object) -> None:
    """Parameters of `Politeness` are numbers of at least 0, and not bools. The message names the parameter."""
    with pytest.raises(InvalidArgumentError, match=f"politeness: {name} must be"):
        Politeness(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [0, 1.5])
def test_tries(value: object) -> None:
    """The number of tries is an integer of at least 1."""
    with pytest.raises(InvalidArgumentError, match="politeness: tries"):
        Politeness(tries=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [10, 0.5, "yes", None])
def test_crawl_delay_is_yes_or_no(value: object) -> None:
    """`crawl_delay` is a bool; a number of seconds is refused."""
    with pytest.raises(InvalidArgumentError, match="politeness: crawl_delay"):
        Politeness(crawl_delay=value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("concurrency", value) for value in (0, -1, True, 1.5, "8", 1_001)),
        *(("limits", 5), ("limits", {"max_pages": 5}), ("limits", Politeness())),
        *(("politeness", 5), ("politeness", {}), ("politeness", Limits())),
        *(("cross_host", value) for value in ("", "deny", "same_host", 5, True, ["allow"])),
        *(("progress", value) for value in (5, "print", True)),
    ],
)
def test_options_that_make_no_sense(name: str, value: object) -> None:
    """A wrong option raises before the first request, and the message names it."""
    with pytest.raises(InvalidArgumentError, match=f"^{name} must be"):
        Options(**{name: value})  # type: ignore[arg-type]
    client = FakeClient({})
    with pytest.raises(InvalidArgumentError, match=f"^{name} must be"):
        sitemap_tree_for_homepage(H, client, **{name: value})  # type: ignore[arg-type]
    assert client.asked == []


def test_errors_are_value_errors() -> None:
    """Callers can catch the base of all usp errors, or ValueError."""
    for error in (UspError, ValueError):
        with pytest.raises(error):
            Limits(max_pages=-1)


def test_options_are_values() -> None:
    """Limits and politeness take keywords only, compare by value, and are frozen."""
    assert Limits(max_pages=3) == Limits(max_pages=3) != Limits(max_pages=4)
    assert len({Limits(), Limits(), Politeness(), Politeness()}) == 2
    with pytest.raises(AttributeError):
        Limits().max_pages = 3  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Politeness().tries = 3  # type: ignore[misc]
    for kind in (Limits, Politeness):
        with pytest.raises(TypeError):
            kind(3)  # type: ignore[call-arg]


# max_pages


def drive(walk: Walk, site: dict[str, Any], seed: int, concurrency: int) -> int:
    """Drive a walk with several requests at once, whose responses arrive in any order. Return how many it made."""
    chance = random.Random(seed)
    on_their_way: list[SitemapFetcher] = []
    asked = 0
    while True:
        while len(on_their_way) < concurrency and (wanted := walk.next()) is not None:
            on_their_way.append(wanted)
            asked += 1
        if not on_their_way:
            return asked
        received = on_their_way.pop(chance.randrange(len(on_their_way)))
        found = site.get(received.url.removeprefix(H), Failure("404 Not Found", 404))
        walk.receive(received, Document(received.url, found.encode()) if isinstance(found, str) else found)


def website(use_known_paths: bool = True, **limits: Any) -> HomepageWalk:
    walk, _, _ = homepage_walk(H, use_known_paths=use_known_paths, limits=Limits(**limits))
    return walk


def listing(*names: str) -> str:
    return index(*(H + name for name in names))


def numbered(name: str, count: int) -> str:
    return urlset(*(f"{H}{name}{i}" for i in range(count)))


#: Five sitemaps with 3, 4, 2, 0 and 5 pages, one of them in two places; and one behind, in a known path.
SITE: dict[str, Any] = {
    "robots.txt": f"Sitemap: {H}i.xml\nSitemap: {H}b.xml\nSitemap: {H}e.xml",
    "i.xml": listing("a.xml", "j.xml", "d.xml"),
    "j.xml": listing("b.xml", "c.xml", "i.xml"),
    "a.xml": numbered("a", 3),
    "b.xml": numbered("b", 4),
    "c.xml": numbered("c", 2),
    "d.xml": numbered("d", 0),
    "e.xml": numbered("e", 5),
    "sitemap.xml": numbered("s", 6),
}
ALL = [*(f"a{i}" for i in range(3)), *(f"b{i}" for i in range(4)), "c0", "c1", *(f"b{i}" for i in range(4))]
ALL += [*(f"e{i}" for i in range(5)), *(f"s{i}" for i in range(6))]


@pytest.mark.slow
@pytest.mark.parametrize("most", range(1, len(ALL) + 2))
def test_pages_are_cut_at_the_same_place(most: int) -> None:
    """A tree is cut at the same page, whatever the concurrency and the order of responses."""
    first = website(max_pages=most)
    drive(first, SITE, 0, 1)
    expected = first.website()
    assert pages(expected) == ALL[:most]
    for seed in range(24):
        walk = website(max_pages=most)
        drive(walk, SITE, seed, seed % 8 + 1)
        assert walk.website() == expected, seed


@pytest.mark.parametrize(
    ("most", "cut"), [(5, "b.xml"), (8, "c.xml"), (12, "b.xml"), (15, "e.xml"), (20, "sitemap.xml")]
)
@pytest.mark.parametrize("concurrency", [1, 3, 8])
def test_what_is_cut_is_marked(most: int, cut: str, concurrency: int) -> None:
    """The root and the sitemap that is cut have a problem that names the limit; so do the reasons of all others."""
    walk = website(max_pages=most)
    drive(walk, SITE, most, concurrency)
    tree = walk.website()
    assert codes(tree) == ["C901"]
    assert tree.problems[0].message.startswith(f"the tree has {most} pages (limits.max_pages)")
    marked = [s for s in tree.all_sitemaps() if "C901" in codes(s)]
    assert [s.url for s in marked] == [H + cut]
    everything = list(tree.all_sitemaps())
    after = everything[everything.index(marked[0]) + 1 :]
    loops = [s for s in after if isinstance(s, InvalidSitemap) and s.reason.startswith("Recursion")]
    assert all(isinstance(s, InvalidSitemap) for s in after)
    left = [s.reason for s in after if isinstance(s, InvalidSitemap) and s not in loops]
    assert set(left) <= {f"Not fetched: the tree has {most} pages (limits.max_pages)."}


@pytest.mark.parametrize("concurrency", [1, 3, 8])
@pytest.mark.parametrize("most", [3, 7, 9, 13, 18])
def test_a_cut_between_sitemaps(most: int, concurrency: int) -> None:
    """If the limit falls between two sitemaps, the last has no problem; the root has one."""
    walk = website(max_pages=most)
    drive(walk, SITE, most, concurrency)
    tree = walk.website()
    assert len(pages(tree)) == most
    assert codes(tree) == ["C901"]
    assert [s.url for s in tree.all_sitemaps() if "C901" in codes(s)] == []


@pytest.mark.parametrize("concurrency", [1, 8])
def test_as_many_pages_as_there_may_be(concurrency: int) -> None:
    """A site with exactly as many pages as the limit has no problem."""
    site = {"robots.txt": f"Sitemap: {H}i.xml", "i.xml": listing("a.xml", "b.xml")}
    site |= {"a.xml": numbered("a", 3), "b.xml": numbered("b", 4)}
    for seed in range(8):
        walk = website(use_known_paths=False, max_pages=7)
        drive(walk, site, seed, concurrency)
        tree = walk.website()
        assert len(pages(tree)) == 7
        assert list(tree.all_problems()) == []
        assert reasons(tree) == {}


def test_more_pages_than_there_are() -> None:
    """A limit that is not reached changes nothing."""
    walk, unlimited = website(max_pages=1_000), website()
    drive(walk, SITE, 1, 4)
    drive(unlimited, SITE, 1, 4)
    assert walk.website() == unlimited.website()
    assert walk.website().problems == ()


@pytest.mark.parametrize("concurrency", [1, 4])
def test_pages_of_shared_sitemaps_count_in_each_place(concurrency: int) -> None:
    """A sitemap in several places counts in each."""
    site = {"robots.txt": f"Sitemap: {H}a.xml\nSitemap: {H}i.xml", "i.xml": listing("a.xml"), "a.xml": numbered("a", 5)}
    walk = website(use_known_paths=False, max_pages=7)
    drive(walk, site, 0, concurrency)
    tree = walk.website()
    assert pages(tree) == ["a0", "a1", "a2", "a3", "a4", "a0", "a1"]
    assert codes(tree) == ["C901"]


@pytest.mark.parametrize(
    "behind",
    [
        Failure("404 Not Found", 404),
        "<html></html>",
        Document(H + "moved.html", b"<html></html>"),
        Document(H + "moved.xml", numbered("m", 3).encode()),
        listing("a.xml"),
    ],
)
def test_what_is_behind_the_cut_does_not_matter(behind: object) -> None:
    """What follows the last page is left out, whether or not it has been fetched."""
    site = {"robots.txt": f"Sitemap: {H}a.xml\nSitemap: {H}b.xml", "a.xml": numbered("a", 5), "b.xml": behind}
    trees = []
    for order in (["a.xml", "b.xml"], ["b.xml", "a.xml"]):
        walk = website(use_known_paths=False, max_pages=3)
        robots = walk.next()
        assert robots is not None
        walk.receive(robots, Document(robots.url, site["robots.txt"].encode()))  # type: ignore[attr-defined]
        wanted = {fetcher.url.removeprefix(H): fetcher for fetcher in iter(walk.next, None)}
        for name in order:
            found = site[name]
            walk.receive(wanted[name], Document(H + name, found.encode()) if isinstance(found, str) else found)  # type: ignore[arg-type]
        while (more := walk.next()) is not None:
            walk.receive(more, Failure("404 Not Found", 404))
        trees.append(walk.website())
    assert trees[0] == trees[1]
    assert [codes(tree) for tree in trees] == [["C901"]] * 2
    assert reasons(trees[0]) == {"b.xml": "Not fetched: the tree has 3 pages (limits.max_pages)."}


def test_pages_of_an_index_are_counted() -> None:
    """Pages of an index count before those of its children."""
    site = {
        "robots.txt": f"Sitemap: {H}i.xml",
        "i.xml": f"<sitemapindex><sitemap><loc>{H}a.xml</loc></sitemap><url><loc>{H}stray</loc></url></sitemapindex>",
        "a.xml": numbered("a", 3),
    }
    walk = website(use_known_paths=False, max_pages=2)
    drive(walk, site, 0, 2)
    assert pages(walk.website()) == ["stray", "a0"]


def test_a_cut_sitemap_keeps_its_own_problems() -> None:
    """The first problem of a sitemap that is cut says so; its own problems follow."""
    site = {"robots.txt": f"Sitemap: {H}a.xml", "a.xml": urlset(H + "1", "/2", H + "3")}
    walk = website(use_known_paths=False, max_pages=2)
    drive(walk, site, 0, 1)
    (sitemap,) = walk.website().sub_sitemaps[0].sub_sitemaps
    assert codes(sitemap) == ["C901", "U501"]
    assert len(sitemap.pages) == 2
    assert [page.url for page in sitemap.pages] == [H + "1", H + "2"]
    assert sitemap.pages[1].url == H + "2"


@pytest.mark.parametrize("concurrency", [1, 8])
def test_nothing_more_is_asked_for(concurrency: int) -> None:
    """At `max_pages` the walk gives out nothing more."""
    names = [f"{i}.xml" for i in range(100)]
    site = {"robots.txt": "".join(f"Sitemap: {H}{name}\n" for name in names)}
    walk = website(max_pages=10)
    asked = drive(walk, site | {name: numbered(name, 4) for name in names}, 0, concurrency)
    assert asked <= 1 + 3 + 20 * concurrency
    assert len(pages(walk.website())) == 10


# Depth and number of sitemaps


@pytest.mark.parametrize("depth", [0, 1, 3, 11])
def test_max_depth(depth: int) -> None:
    """robots.txt and the known paths are at depth 0; a sitemap deeper than the limit is not fetched, and says so."""
    site = {H + f"{i}.xml": index(f"{H}{i + 1}.xml") for i in range(1, 30)}
    client = FakeClient({H + "robots.txt": f"Sitemap: {H}1.xml", H + "sitemap.xml": index(H + "1.xml"), **site})
    tree = sitemap_tree_for_homepage(H, client, limits=Limits(max_depth=depth))
    assert {f"{H}{i}.xml" for i in range(1, depth + 1)} <= set(client.asked)
    assert f"{H}{depth + 1}.xml" not in client.asked
    assert reasons(tree) == {f"{depth + 1}.xml": f"Recursion level exceeded {depth} for URL {H}{depth + 1}.xml."}


@pytest.mark.parametrize("most", [1, 5, 20, 21, 22, 30])
def test_max_sitemaps(most: int) -> None:
    """At `max_sitemaps`, one `InvalidSitemap` stands for all that follow, and the root has a problem."""
    site = {"robots.txt": "".join(f"Sitemap: {H}{i}.xml\n" for i in range(20))}
    site |= {f"{i}.xml": numbered(f"{i}-", 1) for i in range(20)}
    walk = website(use_known_paths=False, max_sitemaps=most)
    asked = drive(walk, site, 0, 4)
    tree = walk.website()
    assert asked == min(most, 21)
    assert len(pages(tree)) == min(most, 21) - 1
    if most >= 21:
        assert (tree.problems, reasons(tree)) == ((), {})
    else:
        assert codes(tree) == ["C901"]
        assert reasons(tree) == {
            f"{most - 1}.xml": "Not fetched, nor what follows it: the tree has"
            f" {most} sitemap{'s' * (most != 1)} already (limits.max_sitemaps)."
        }


def test_known_paths_that_are_not_there_are_no_sitemaps() -> None:
    """A known path that does not exist does not count as a sitemap."""
    site = {"robots.txt": "".join(f"Sitemap: {H}{i}.xml\n" for i in range(4))}
    site |= {f"{i}.xml": numbered(f"{i}-", 1) for i in range(4)}
    walk = website(max_sitemaps=8)
    drive(walk, site, 0, 4)
    assert len(pages(walk.website())) == 4
    assert walk.website().problems == ()


def test_max_sitemap_bytes() -> None:
    """A sitemap longer than the limit is truncated, with a problem, and the tree goes on."""
    body = urlset(*(f"{H}{i}" for i in range(1_000)))
    site = {H + "robots.txt": f"Sitemap: {H}a.xml\nSitemap: {H}b.xml", H + "a.xml": body, H + "b.xml": urlset(H + "x")}
    tree = sitemap_tree_for_homepage(
        H, FakeClient(site), use_known_paths=False, limits=Limits(max_sitemap_bytes=len(body) // 2)
    )
    a, b = tree.sub_sitemaps[0].sub_sitemaps
    assert 400 < len(a.pages) < 600
    assert "T804" in codes(a)
    assert len(b.pages) == 1
    assert tree.problems == ()


# Other hosts


def led_to(url: str, cross_host: Any, homepage: str = "https://www.example.co.uk/") -> str | None:
    """Return why a site may not lead to a URL; None if it may."""
    client = FakeClient({f"{homepage}robots.txt": f"Sitemap: {url}", url: urlset("http://x/page")})
    tree = sitemap_tree_for_homepage(homepage, client, use_known_paths=False, cross_host=cross_host)
    (child,) = tree.sub_sitemaps[0].sub_sitemaps
    assert (url in client.asked) is not isinstance(child, InvalidSitemap)
    return child.reason if isinstance(child, InvalidSitemap) else None


@pytest.mark.parametrize(
    ("url", "is_same_site", "is_same_host"),
    [
        ("https://www.example.co.uk/a.xml", True, True),
        ("http://www.example.co.uk/a.xml", True, True),
        ("https://www.example.co.uk:8443/a.xml", True, True),
        ("https://WWW.Example.CO.uk/a.xml", True, True),
        ("https://www.example.co.uk./a.xml", True, True),
        ("https://u:p@www.example.co.uk/a.xml", True, True),
        ("https://news.example.co.uk/a.xml", True, False),
        ("https://example.co.uk/a.xml", True, False),
        ("https://other.co.uk/a.xml", False, False),
        ("https://co.uk/a.xml", False, False),
        ("https://www.example.org/a.xml", False, False),
        ("https://notexample.co.uk/a.xml", False, False),
        ("https://example.co.uk.evil.org/a.xml", False, False),
        ("https://www.example.co.uk@evil.org/a.xml", False, False),
        ("https://127.0.0.1/a.xml", False, False),
    ],
)
def test_cross_host(url: str, is_same_site: bool, is_same_host: bool) -> None:
    """`cross_host` allows any host, those of the same registered domain, or only the homepage's."""
    assert led_to(url, "allow") is None
    assert (led_to(url, "same-site") is None) is is_same_site
    assert (led_to(url, "same-host") is None) is is_same_host


def test_cross_host_reason() -> None:
    """The reason for a refused URL names its host and the option."""
    reason = led_to("https://cdn.net/a.xml", "same-site")
    assert reason == "Not fetched: cdn.net is not of the same site as www.example.co.uk (cross_host='same-site')."


@pytest.mark.parametrize("cross_host", ["same-site", "same-host"])
@pytest.mark.parametrize(
    ("homepage", "url"),
    [
        ("https://b\u00fccher.example/", "https://xn--bcher-kva.example/a.xml"),
        ("https://xn--bcher-kva.example/", "https://B\u00dcCHER.example/a.xml"),
        ("https://xn--bcher-kva.example/", "https://bu\u0308cher.example/a.xml"),
    ],
)
def test_international_hosts(homepage: str, url: str, cross_host: Any) -> None:
    """An international host name equals its ASCII form."""
    assert led_to(url, cross_host, homepage) is None


@pytest.mark.parametrize(
    ("homepage", "url", "is_same"),
    [
        ("http://10.0.0.1/", "http://10.0.0.1:81/a.xml", True),
        ("http://10.0.0.1/", "http://10.0.0.2/a.xml", False),
        ("http://10.0.0.1/", "http://9.10.0.0.1/a.xml", False),
        ("http://[2001:db8::1]/", "http://[2001:DB8::1]/a.xml", True),
        ("http://[2001:db8::1]/", "http://[2001:db8::2]/a.xml", False),
        ("http://localhost/", "http://localhost:81/a.xml", True),
        ("http://a.github.io/", "http://b.github.io/a.xml", False),
        ("http://co.uk/", "http://a.co.uk/a.xml", False),
    ],
)
def test_sites_of_addresses_and_suffixes(homepage: str, url: str, is_same: bool) -> None:
    """An address is a site of its own, and so is every name below a public suffix."""
    assert (led_to(url, "same-site", homepage) is None) is is_same


def test_known_paths_are_on_the_home_host() -> None:
    """A URL that is refused for its host is not requested by other means."""
    client = FakeClient({H + "robots.txt": "Sitemap: http://o/sitemap.xml", "http://o/sitemap.xml": urlset(H)})
    tree = sitemap_tree_for_homepage(H, client, cross_host="same-host")
    assert list(tree.all_pages()) == []
    assert {url.partition("//")[2].partition("/")[0] for url in client.asked} == {"h"}


def test_types_of_trees() -> None:
    """A tree that is cut is an `IndexWebsiteSitemap` with its robots.txt."""
    client = FakeClient({H + "robots.txt": FakeResponse(f"Sitemap: {H}a.xml".encode(), H + "robots.txt")})
    tree = sitemap_tree_for_homepage(H, client, limits=Limits(max_sitemaps=1, max_pages=1))
    assert isinstance(tree, IndexWebsiteSitemap)
    assert [s.url for s in tree.sub_sitemaps] == [H + "robots.txt"]


def test_sitemaps_that_are_no_part_of_the_tree_do_not_count() -> None:
    """A known path that redirects to a sitemap of robots.txt does not count, even if it arrives first."""
    children = listing(*(f"{i}.xml" for i in range(60)))
    site: dict[str, Any] = {"robots.txt": f"Sitemap: {H}a.xml", "a.xml": children}
    site["sitemap.xml"] = Document(H + "a.xml?x", children.encode())
    site |= {f"{i}.xml": numbered(f"{i}-", 1) for i in range(60)}
    for seed in range(8):
        walk = website(max_sitemaps=62)
        drive(walk, site, seed, 8)
        assert len(pages(walk.website())) == 60


@pytest.mark.parametrize("most", [3, 8, 9])
def test_sitemaps_are_counted_in_the_order_of_the_tree(most: int) -> None:
    """Whichever index arrives first, the tree has the same sitemaps."""
    site = {"robots.txt": f"Sitemap: {H}i.xml\nSitemap: {H}j.xml"}
    for name in "ij":
        site[f"{name}.xml"] = listing(*(f"{name}{number}.xml" for number in range(5)))
        site |= {f"{name}{number}.xml": numbered(f"{name}{number}-", 1) for number in range(5)}
    trees = []
    for seed in range(12):
        walk = website(use_known_paths=False, max_sitemaps=most)
        drive(walk, site, seed, 8)
        trees.append(walk.website())
        assert codes(trees[-1]) == ["C901"]
    assert all(tree == trees[0] for tree in trees)
    assert len(list(trees[0].all_sitemaps())) == most + 1  # one more for all that is left out


@pytest.mark.parametrize("most", [10, 11, 12, 13, 40, 41, 60])
def test_unfetched_sitemaps_count(most: int) -> None:
    """Loops and other children that are not fetched count toward `max_sitemaps`, whatever arrives first."""
    names = [f"{number}.xml" for number in range(6)]  # that list each other, so that most children are loops
    site = {"robots.txt": f"Sitemap: {H}0.xml", **dict.fromkeys(names, listing(*names, "leaf.xml"))}
    site["leaf.xml"] = numbered("p", 1)
    trees = []
    for seed in range(12):
        walk = website(use_known_paths=False, max_sitemaps=most)
        drive(walk, site, seed, 8)
        trees.append(walk.website())
        assert codes(trees[-1]) == ["C901"]
    assert all(tree == trees[0] for tree in trees)
    # At most one more at the limit, and one that stands for all that is left out.
    assert most - len(names) <= len(list(trees[0].all_sitemaps())) <= most + 2


def test_sitemaps_that_wait_cost_linear_time() -> None:
    """While a tree waits for its first sitemap, an answer costs the same, however many others may be requested."""

    def seconds(most: int) -> float:
        walk = website(max_sitemaps=most)
        robots = walk.next()
        assert robots is not None
        walk.receive(robots, Document(robots.url, f"Sitemap: {H}first.xml".encode()))
        first, *known = iter(walk.next, None)
        for at, fetcher in enumerate(known[:3]):
            children = [ChildSitemap(f"{H}{at}-{number}.xml") for number in range(most)]
            walk.receive(fetcher, ParsedSitemap(fetcher.url, IndexXMLSitemap, children=children))
        on_their_way = list(iter(walk.next, None))
        assert len(on_their_way) >= most, "as many as the tree may have, in whichever place"
        gc.collect()
        gc.disable()  # what other tests have left takes longer to look at
        started = time.thread_time()
        for fetcher in on_their_way:
            walk.receive(fetcher, ParsedSitemap.invalid(fetcher.url, "404 Not Found", Cause.NOT_FOUND))
            assert walk.next() is None
        took = time.thread_time() - started
        gc.enable()
        walk.receive(first, ParsedSitemap.invalid(first.url, "404 Not Found", Cause.NOT_FOUND))
        assert walk.next() is not None
        return took

    assert min(seconds(8_000) for _ in range(2)) < 20 * min(seconds(1_000) for _ in range(3))


def test_an_index_keeps_no_more_than_a_tree_may_fetch() -> None:
    """The parser keeps the first children of an index, in order, and counts each of the others once."""
    listed = index(*(f"{H}{number}.xml" for number in (1, 2, 1, 3, 4, 3, 2, 5)))
    fetcher = SitemapFetcher(f"{H}index.xml", 0, max_children=2)
    parsed = fetcher.receive(Document(f"{H}index.xml", listed.encode()))
    assert [child.url for child in parsed.children] == [f"{H}1.xml", f"{H}2.xml"]
    assert parsed.more_children == 3


def test_all_children_are_kept_to_choose_from() -> None:
    """If the caller chooses sitemaps, the last ones of an index may be the ones to fetch."""
    listed = index(*(f"{H}{number}.xml" for number in range(5)))
    fetcher = SitemapFetcher(f"{H}index.xml", 0, max_children=2, recurse_callback=lambda url, level, above: True)
    parsed = fetcher.receive(Document(f"{H}index.xml", listed.encode()))
    assert (len(parsed.children), parsed.more_children) == (5, 0)
