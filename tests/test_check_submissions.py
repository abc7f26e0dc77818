"""Cross submission: the robots.txt of another host may name a sitemap that lists its pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import pytest

from checks import HOME, NOW, check_site, found_in, response, robots_of, site_of, url_of, urlset_of
from support import FakeClient, index, serve, urlset
from usp.check import check_bytes, check_homepage, check_path, check_tree
from usp.check.scope import MAX_HOSTS, CrossSubmissions
from usp.objects.sitemap import AbstractSitemap
from usp.stream import SitemapStream
from usp.tree import sitemap_from_str, sitemap_tree_for_homepage
from usp.web_client.policy import policy_for

SHOP = "https://shop.example.com"
ROBOTS = f"{SHOP}/robots.txt"


def site_with(robots: Any, **options: Any) -> tuple[list[str], FakeClient]:
    """Return the codes found in a site that lists pages of a shop with this robots.txt, and the client."""
    site = {
        HOME + name: response(name, body)
        for name, body in {
            "robots.txt": robots_of("index.xml"),
            "index.xml": index(f"{HOME}a.xml"),
            "a.xml": urlset_of(url_of("a"), *(f"<url><loc>{SHOP}/{n}</loc></url>" for n in range(30))),
        }.items()
    }
    client = FakeClient(site | {ROBOTS: robots})
    report = check_homepage(HOME, client, now=NOW, use_known_paths=False, **options)
    return [problem.code for problem in report.problems()], client


@pytest.mark.parametrize(
    "robots",
    [
        f"Sitemap: {HOME}a.xml",
        f"User-agent: *\nDisallow: /\n\nSitemap: {SHOP}/own.xml\nsitemap: HTTPS://WWW.Example.org:443/a.xml\n",
        f"Sitemap: {HOME}index.xml",
    ],
    ids=["itself", "spelled otherwise", "an index above"],
)
def test_named(robots: str) -> None:
    """If another host names a sitemap, or an index above it, the sitemap may list its pages. The host is asked once."""
    codes, client = site_with(robots)
    assert codes == []
    assert client.asked.count(ROBOTS) == 1


@pytest.mark.parametrize(
    "robots",
    [
        None,
        f"Sitemap: {HOME}b.xml",
        f"Disallow: {HOME}a.xml",
        f"<html>Sitemap: {HOME}a.xml</html>",
        OSError("no route"),
        object(),
        "#" * 512_000 + f"\nSitemap: {HOME}a.xml",
    ],
    ids=["missing", "another", "no Sitemap line", "HTML", "raises", "no response", "too long"],
)
def test_not_named(robots: Any) -> None:
    """U506: a robots.txt that fails or says something else does not name the sitemap."""
    codes, client = site_with(robots)
    assert set(codes) == {"U506"}
    assert client.asked.count(ROBOTS) == 1


def test_a_host_names_its_own_pages_only() -> None:
    """U506: a host names sitemaps for its own pages only, and https does not cover http."""
    urls = [f"{SHOP}/1", "https://other.example.com/1", "http://shop.example.com/1"]
    client = site_of({"a.xml": urlset_of(*(f"<url><loc>{url}</loc></url>" for url in urls))})
    client = FakeClient(
        {url: client.get(url) for url in (f"{HOME}robots.txt", f"{HOME}a.xml")} | {ROBOTS: f"Sitemap: {HOME}a.xml"}
    )
    report = check_homepage(HOME, client, now=NOW, use_known_paths=False)
    assert found_in(report) == [("a.xml", "U506", 3, 11), ("a.xml", "U506", 4, 11)]


def test_nothing_is_asked_offline(tmp_path: Any) -> None:
    """For a file, a folder or a finished tree, no host is asked."""
    document = urlset(f"{HOME}a", f"{SHOP}/1")
    (tmp_path / "sitemap.xml").write_text(document, "utf-8")
    assert list(check_bytes(document.encode(), url=f"{HOME}a.xml", now=NOW).counts()) == ["U506"]
    assert list(check_path(tmp_path, url=HOME, now=NOW).counts()) == ["U506"]
    client = site_of({"a.xml": document})
    tree = sitemap_tree_for_homepage(HOME, client, use_known_paths=False)
    before = list(client.asked)
    assert list(check_tree(tree, now=NOW).counts()) == ["U506"]
    assert client.asked == before
    assert f"{SHOP}/robots.txt" not in before


def test_nobody_is_asked_where_all_is_well() -> None:
    """A site that lists only its own pages, in any spelling, causes no further request."""
    client = site_of({"a.xml": urlset_of(url_of("a"), "<url><loc>http://example.org/b</loc></url>")})
    check_homepage(HOME, client, now=NOW, use_known_paths=False)
    assert client.asked == [f"{HOME}robots.txt", f"{HOME}a.xml"]


def test_cross_host_holds() -> None:
    """A host that `cross_host` forbids is not asked."""
    codes, client = site_with(f"Sitemap: {HOME}a.xml", cross_host="same-host")
    assert set(codes) == {"U506"}
    assert ROBOTS not in client.asked


@pytest.mark.parametrize("host", ["localhost", "10.0.0.1", "[::1]", "169.254.169.254"])
def test_private_addresses_are_not_asked(host: str) -> None:
    """A public site cannot make usp ask private hosts."""
    entry = f"<url><loc>http://{host}/</loc></url>"
    client = site_of({"a.xml": urlset_of(entry)})
    assert list(check_homepage(HOME, client, now=NOW, use_known_paths=False).counts()) == ["U506"]
    assert [url for url in client.asked if not url.startswith(HOME)] == []


def test_cancelled() -> None:
    """If the stream of the tree is closed, its request for a robots.txt ends, and no other begins."""
    is_cancelled: list[bool] = []

    def robots(url: str) -> str:
        stream.close()
        is_cancelled.append(policy_for(url).is_cancelled)
        return f"Sitemap: {HOME}a.xml"

    client = FakeClient(robots)
    stream = SitemapStream(HOME, client)
    submissions = CrossSubmissions(stream.fetch_extra)
    submissions.is_named(f"{SHOP}/1", (f"{HOME}a.xml",))
    assert is_cancelled == [True]
    assert not submissions.is_named("https://other.example.com/1", (f"{HOME}a.xml",))
    assert client.asked == [ROBOTS]


def test_over_the_network() -> None:
    """The client of the tree asks, under the policy of the tree; here at another port of a private host."""
    other_pages: dict[str, tuple[int, dict[str, str], bytes]] = {}
    xml = {"Content-Type": "text/xml"}
    with serve(other_pages) as other:
        pages = {
            "/robots.txt": (200, {"Content-Type": "text/plain"}, b"User-agent: *\nSitemap: {base}/a.xml\n"),
            "/a.xml": (200, xml, urlset("{base}/1", f"{other.url}/1").encode()),
        }
        with serve(pages) as site:
            assert list(check_homepage(site.url).counts()) == ["U506"]
            robots = f"Sitemap: {site.url}/a.xml\n".encode()
            other_pages["/robots.txt"] = (200, {"Content-Type": "text/plain"}, robots)
            assert not check_homepage(site.url).counts()
        assert other.paths() == ["/robots.txt"] * 2


@dataclass
class Clock:
    """Answers requests for robots.txt after a while, by a clock of its own, and notes the limits of each request."""

    seconds: float
    now: float = 1_000.0
    asked: list[str] = field(default_factory=list)
    allowed: list[tuple[float, int]] = field(default_factory=list)

    def fetch(self, url: str, /, *, seconds: float, max_bytes: int) -> AbstractSitemap:
        self.asked.append(url)
        self.allowed.append((seconds, max_bytes))
        self.now += min(self.seconds, seconds)
        return sitemap_from_str(f"Sitemap: {HOME}a.xml", url=url)

    def submissions(self) -> CrossSubmissions:
        return CrossSubmissions(self.fetch, lambda: self.now)


def hosts() -> Iterator[str]:
    return (f"https://h{number}.example" for number in range(100))


def named(submissions: CrossSubmissions) -> int:
    """Return how many of many hosts name a sitemap."""
    return sum(submissions.is_named(host, (f"{HOME}a.xml",)) for host in hosts())


def test_few_hosts_are_asked() -> None:
    """After the tenth host no other is asked. The answers are remembered."""
    clock = Clock(0.1)
    submissions = clock.submissions()
    assert named(submissions) == named(submissions) == MAX_HOSTS == 10
    assert clock.asked == [f"{host}/robots.txt" for host in islice(hosts(), 10)]
    assert set(clock.allowed) == {(10.0, 512_000)}


def test_time_is_bounded() -> None:
    """A host gets ten seconds, and all hosts together get thirty."""
    clock = Clock(60.0)
    assert named(clock.submissions()) == 3
    assert clock.now == 1_030.0
    clock = Clock(8.0)
    assert named(clock.submissions()) == 4
    assert [round(seconds, 3) for seconds, _ in clock.allowed] == [10, 10, 10, 6]


def test_credentials_stay_at_home() -> None:
    """The user and password of the homepage are not sent to others."""
    site = {"a.xml": urlset_of(f"<url><loc>{SHOP}/1</loc></url>")}
    client = site_of(site)
    secret = HOME.replace("https://", "https://me:secret@")
    answers = {url.replace(HOME, secret): client.get(url) for url in (f"{HOME}robots.txt", f"{HOME}a.xml")}
    asking = FakeClient(answers)
    check_homepage(secret, asking, now=NOW, use_known_paths=False)
    assert asking.asked[-1] == ROBOTS


def test_index_entries() -> None:
    """An index may list the sitemaps of a host that names it."""
    files = {"robots.txt": robots_of("i.xml"), "i.xml": index(f"{SHOP}/s.xml")}
    assert "U506" in check_site(files).counts()
    client = site_of(files)
    answers = {url: client.get(url) for url in (f"{HOME}robots.txt", f"{HOME}i.xml")}
    shop = {ROBOTS: f"Sitemap: {HOME}i.xml", f"{SHOP}/s.xml": urlset(f"{SHOP}/1")}
    report = check_homepage(HOME, FakeClient(answers | shop), now=NOW, use_known_paths=False)
    assert not report.selected(["U"]).counts()
