"""Sites that are large, endless or go round in circles; and the same tree by whatever driver."""

from __future__ import annotations

import random
import re
import socket
from collections import Counter

import pytest

from clocks import within
from faults import (
    DRIVERS,
    QUICK,
    Driver,
    Handler,
    HangUp,
    Request,
    described,
    each_driver,
    head,
    nothing_left,
    ok,
    outline,
    reset,
    serve_faults,
    silent,
    status,
    visit,
)
from support import index, urlset
from usp.limits import Limits
from usp.objects.sitemap import InvalidSitemap

pytestmark = pytest.mark.network


@each_driver
def test_an_index_that_lists_itself(driver: Driver) -> None:
    """A sitemap that lists itself is fetched once, and its second place says why."""
    found = visit(
        driver, ok(index("{base}/bad.xml", "{base}/inside.xml")), more={"/inside.xml": ok(urlset("http://x/"))}
    )
    again, inside = found.sitemap.sub_sitemaps
    assert isinstance(again, InvalidSitemap)
    assert "Recursion detected" in again.reason
    assert len(inside.pages) == 1
    assert found.server.count("/bad.xml") == 1


@each_driver
def test_indexes_that_list_each_other(driver: Driver) -> None:
    """Two sitemaps that list each other are fetched once each."""
    other = {"/other.xml": ok(index("{base}/bad.xml", "{base}/first.xml"))}
    found = visit(driver, ok(index("{base}/other.xml", "{base}/first.xml")), more=other)
    below, first = found.sitemap.sub_sitemaps
    again, _ = below.sub_sitemaps
    assert isinstance(again, InvalidSitemap)
    assert "Recursion detected" in again.reason
    assert [page.url for page in first.pages] == ["http://x/first"]
    assert {path: n for path, n in Counter(path for _, path in found.server.asked).items() if n > 1} == {}


def endless_chain(request: Request) -> None:
    """Each index lists the next, which was never seen before, and a good sitemap."""
    number = int(re.sub(r"\D", "", request.path) or 0)
    if request.path.startswith("/good"):
        return ok(urlset(f"http://x/{number}"))(request)
    return ok(index(f"{{base}}/{number + 1}.xml", f"{{base}}/good{number}.xml"))(request)


@each_driver
def test_an_endless_chain(driver: Driver) -> None:
    """A chain of ever new indexes ends at `max_depth`, and keeps the sitemaps beside it."""
    found = visit(driver, endless_chain, default=endless_chain, limits=Limits(max_depth=7, request_seconds=2))
    reasons = [node.reason for node in found.sitemap.all_sitemaps() if isinstance(node, InvalidSitemap)]
    assert reasons
    assert all(re.search("depth|level", reason) for reason in reasons)
    pages = [page.url for page in found.sitemap.all_pages()]
    assert 3 <= len(pages) <= 7
    assert len(pages) == len(set(pages))


def ever_wider(request: Request) -> None:
    name = request.path.removesuffix(".xml")
    ok(index(*(f"{{base}}{name}-{number}.xml" for number in range(20))))(request)


@each_driver
def test_an_endless_forest(driver: Driver) -> None:
    """A site with ever more indexes ends at `max_sitemaps`, and says so."""
    limits = Limits(max_sitemaps=500, request_seconds=2, tree_seconds=20)
    robots = {"/robots.txt": ok("Sitemap: {base}/0.xml")}
    with serve_faults(robots, default=ever_wider) as server, nothing_left(server), within(10):
        tree = driver.tree(server.url, limits=limits)
    assert len(server.asked) <= 2 * 500 + 100  # which of them stand in the tree is known only in its order
    assert "C901" in [problem.code for problem in tree.problems]
    assert len(list(tree.all_sitemaps())) < 1_200


def cut_off(request: Request) -> None:
    """An index whose transfer breaks off behind its second child."""
    whole = index(*(f"{request.server.url}/{name}.xml" for name in ("inside", "missing", "never-seen"))).encode()
    request.send(head(Content_Length=len(whole)) + whole[: whole.rindex(b"<sitemap>")])
    raise HangUp


@each_driver
def test_an_index_that_is_cut_off(driver: Driver) -> None:
    """The children of a truncated index are fetched as far as they have arrived."""
    found = visit(driver, cut_off, more={"/inside.xml": ok(urlset("http://x/inside"))}, politeness=QUICK)
    inside, missing = found.sitemap.sub_sitemaps
    assert [page.url for page in inside.pages] == ["http://x/inside"]
    assert "404" in described(missing)
    assert described(found.sitemap) == "0 pages T805 X113"


@each_driver
@pytest.mark.parametrize("fault", [reset, status(500), silent], ids=["reset", "500", "silent"])
def test_robots_that_cannot_be_had(driver: Driver, fault: Handler) -> None:
    """If robots.txt cannot be fetched, the tree has the known paths, and says what may be missing."""
    site = {"/robots.txt": fault, "/sitemap.xml": ok(index("{base}/a.xml")), "/a.xml": ok(urlset("http://x/a"))}
    limits = Limits(request_seconds=0.4, tree_seconds=10)
    with serve_faults(site) as server, nothing_left(server), within(5):
        tree = driver.tree(server.url, use_known_paths=True, limits=limits, politeness=QUICK)
    assert [page.url for page in tree.all_pages()] == ["http://x/a"]
    assert [problem.code for problem in tree.problems] == ["R704"]


def delayed(handler: Handler, seconds: float) -> Handler:
    def wait(request: Request) -> None:
        request.pause(seconds)
        handler(request)

    return wait


def varied_site(seed: int) -> dict[str, Handler]:
    """Return a site of nested indexes, shared sitemaps and failures, all slow."""
    dice = random.Random(seed)
    names = [f"/s{number}.xml" for number in range(60)]
    site: dict[str, Handler] = {name: ok(urlset(f"http://x{name}", "http://x/all")) for name in names}
    site |= {name: ok("<html>") for name in dice.sample(names, 5)}
    for name in dice.sample(names, 3):
        del site[name]
    for level, below in (("/b", names), ("/a", [f"/b{number}.xml" for number in range(8)])):
        for number in range(8):
            children = [f"{{base}}{name}" for name in dice.sample(below, min(len(below), 6 + number))]
            site[f"{level}{number}.xml"] = ok(index(*children))
    site["/robots.txt"] = ok("".join(f"Sitemap: {{base}}/a{number}.xml\n" for number in range(8)))
    site["/sitemap.xml"] = ok(index("{base}/s1.xml", "{base}/a1.xml"))
    return {path: delayed(handler, dice.random() * 0.02) for path, handler in site.items()}


def test_the_same_tree_by_every_driver() -> None:
    """The tree is the same, whatever the driver, the concurrency and the order of responses."""
    with serve_faults(varied_site(1)) as server, nothing_left(server), within(30):
        trees = [
            driver.tree(server.url, concurrency=concurrency, use_known_paths=True)
            for driver in DRIVERS
            for concurrency in (1, 8, 64)
        ]
        assert {count for path, count in Counter(path for _, path in server.asked).items()} == {len(trees)}
    assert len(outline(trees[0])) > 300
    for tree in trees[1:]:
        assert outline(tree) == outline(trees[0])
        assert tree == trees[0]
        assert tree.problems == trees[0].problems


@each_driver
def test_one_fetch_for_each_url(driver: Driver) -> None:
    """A URL that many sitemaps declare at once is fetched once."""
    names = [f"/s{number}.xml" for number in range(10)]
    site = {name: delayed(ok(urlset(f"http://x{name}")), 0.05) for name in names}
    for number in range(20):
        turned = names[number % 10 :] + names[: number % 10]
        site[f"/i{number}.xml"] = delayed(ok(index(*(f"{{base}}{name}" for name in turned))), 0.05)
    site["/robots.txt"] = ok("".join(f"Sitemap: {{base}}/i{number}.xml\n" for number in range(20)))
    with serve_faults(site) as server, nothing_left(server), within(5):
        tree = driver.tree(server.url, concurrency=64)
    assert Counter(path for _, path in server.asked) == dict.fromkeys(site, 1)
    assert len(list(tree.all_pages())) == 200


@each_driver
def test_redirects_to_a_dead_host(driver: Driver) -> None:
    """An origin whose first URLs redirect to one that does not answer is not given up: it has answered itself."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        dead = f"http://127.0.0.1:{closed.getsockname()[1]}"
    moved = {f"/{number}.xml": status(302, Location=f"{dead}/{number}.xml") for number in range(6)}
    with serve_faults(moved | {"/good.xml": ok(urlset("http://x/good"))}) as other:
        listed = "".join(f"Sitemap: {other.url}{path}\n" for path in (*moved, "/good.xml"))
        with serve_faults({"/robots.txt": ok(listed)}) as server, nothing_left(server, other), within(10):
            tree = driver.tree(server.url, concurrency=1, politeness=QUICK)
    assert [page.url for page in tree.all_pages()] == ["http://x/good"]
