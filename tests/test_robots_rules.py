"""The rules of a robots.txt: what is disallowed to whom, and how long to wait. In any encoding."""

from __future__ import annotations

import gzip
import time
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from protego import Protego

from support import Server, serve, urlset
from usp.check import check_homepage
from usp.documents import Document, Failure
from usp.drivers.hosts import RobotsRules
from usp.objects.sitemap import IndexRobotsTxtSitemap, InvalidSitemap
from usp.politeness import Politeness
from usp.tree import sitemap_tree_for_homepage

URL = "http://h/robots.txt"


def rules(text: str | bytes, user_agent: str = "usp") -> RobotsRules:
    return RobotsRules(Document(URL, text.encode() if isinstance(text, str) else text), user_agent)


@pytest.mark.parametrize(
    ("text", "path", "is_allowed"),
    [
        ("", "/a", True),
        ("User-agent: *\nDisallow:", "/a", True),
        ("User-agent: *\nDisallow: /", "/a", False),
        ("User-agent: *\nDisallow: /a", "/a.xml", False),
        ("User-agent: *\nDisallow: /a", "/b.xml", True),
        ("User-agent: *\nDisallow: /\nAllow: /a", "/a.xml", True),
        ("User-agent: *\nDisallow: /*.xml$", "/a.xml", False),
        ("User-agent: *\nDisallow: /*.xml$", "/a.xml?x", True),
        ("User-agent: *\nDisallow: /a%C3%A9", "/a\u00e9", False),
        ("User-agent: usp\nDisallow: /\n\nUser-agent: *\nDisallow:", "/a", False),
        ("User-agent: other\nDisallow: /", "/a", True),
        ("User-agent: other\nUser-agent: USP\nDisallow: /", "/a", False),
        ("Disallow: /", "/a", True),
        ("<html>Disallow: /</html>", "/a", True),
    ],
)
def test_rules(text: str, path: str, is_allowed: bool) -> None:
    """The longest rule for the user agent, or else for all, says whether a URL may be fetched."""
    refusal = rules(text).refusal(f"http://h{path}")
    assert (refusal is None) is is_allowed
    if refusal is not None:
        assert refusal == "its host's robots.txt disallows it to 'usp'"


def test_a_transfer_that_broke_off() -> None:
    """Half of the last line is no rule: it would say something else."""
    text = b"User-agent: *\nDisallow: /new/\nDisallow: /"
    whole, cut = (RobotsRules(Document(URL, text, transport_problems=codes), "usp") for codes in ((), ("T805",)))
    assert whole.refusal("http://h/a") is not None
    assert cut.refusal("http://h/a") is None
    assert cut.refusal("http://h/new/a") is not None


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451, 499])
def test_none(status: int) -> None:
    """A 4xx means that everything is allowed, without a delay."""
    none = RobotsRules(Failure(f"{status} No", status), "usp")
    assert none.refusal("http://h/a") is None
    assert none.delay() == 0


@pytest.mark.parametrize("failure", [Failure("500 Oops", 500), Failure("503 Busy", 503), Failure("timed out")])
def test_unreachable(failure: Failure) -> None:
    """If robots.txt cannot be fetched, nothing is allowed, and the reason says why."""
    unreachable = RobotsRules(failure, "usp")
    assert failure.message in (unreachable.refusal("http://h/a") or "")
    assert unreachable.delay() == 0


def test_unreachable_without_words() -> None:
    """If the failure has no message, nothing is allowed either."""
    assert RobotsRules(Failure(""), "usp").refusal("http://h/a") is not None


@pytest.mark.parametrize(
    ("text", "delay"),
    [
        ("User-agent: *\nCrawl-delay: 5", 5),
        ("User-agent: *\nCrawl-delay: 0.5", 0.5),
        ("User-agent: *\nCrawl-delay: soon", 0),
        ("User-agent: *\nCrawl-delay:", 0),
        ("User-agent: other\nCrawl-delay: 5", 0),
        ("User-agent: usp\nCrawl-delay: 3\n\nUser-agent: *\nCrawl-delay: 9", 3),
        ("", 0),
    ],
)
def test_delay(text: str, delay: float) -> None:
    """The delay is that for the user agent, 0 if there is none."""
    assert rules(text).delay() == delay


@pytest.mark.parametrize("value", ["-5", "nan", "-inf", "-0"])
def test_delays_that_make_no_sense(value: str) -> None:
    """A delay is a number, and never negative."""
    assert rules(f"User-agent: *\nCrawl-delay: {value}").delay() >= 0


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbfUser-agent: *\nDisallow: /",
        b"User-agent: *\r\nDisallow: /\r\n",
        b"User-agent: *\rDisallow: /\r",
        gzip.compress(b"User-agent: *\nDisallow: /", mtime=0),
        b"\xff\xfe\xfd\nUser-agent: *\nDisallow: /",
        "User-agent: *\nDisallow: /".encode("utf-16"),
        "\ufeffUser-agent: *\r\nDisallow: /".encode("utf-16-be"),
        "User-agent: *\nDisallow: /".encode("utf-16-le"),
        "User-agent: *\nDisallow: /".encode("utf-16-be"),
        "\ufeffUser-agent: *\nDisallow: /".encode("utf-32-le"),
        gzip.compress("User-agent: *\nDisallow: /".encode("utf-16"), mtime=0),
    ],
)
def test_bytes(data: bytes) -> None:
    """Another encoding, other line ends, compression or bad bytes do not hide the rules."""
    assert rules(data).refusal("http://h/a") is not None


def test_charset_of_the_content_type() -> None:
    """The charset of the Content-Type counts, as it does for Sitemap lines."""
    text = "User-agent: *\nDisallow: /例\nCrawl-delay: 7".encode("shift_jis")
    read = RobotsRules(Document(URL, text, "text/plain; charset=shift_jis"), "usp")
    assert read.refusal("http://h/例") is not None
    assert read.delay() == 7


def test_a_long_robots_txt() -> None:
    """Rules within the first 500 KiB apply; little more than that is read."""
    filler = "# " + "x" * 97 + "\n"
    within = filler * 5_000 + "User-agent: *\nDisallow: /"
    assert rules(within).refusal("http://h/a") is not None
    beyond = filler * 6_000 + "User-agent: *\nDisallow: /"
    assert rules(beyond).refusal("http://h/a") is None


@given(
    st.one_of(
        st.binary(max_size=200),
        st.lists(
            st.sampled_from(
                [
                    *(b"User-agent: *\n", b"User-agent: usp\n", b"Disallow: ", b"Allow: ", b"Crawl-delay: ", b"/\n"),
                    *(b"*", b"$", b"%", b"%zz", b"\xff", b"\n", b":", b"#", b"1e999\n", b"//[\n", b"http://[/\n", b"?"),
                ]
            ),
            max_size=12,
        ).map(b"".join),
    ),
    st.sampled_from(["http://h/", "http://h/a?b#c", "http://h/%zz", "http://h/\u00e9", "http://h", "http://h/[//"]),
)
@settings(max_examples=300)
def test_no_robots_txt_raises(data: bytes, url: str) -> None:
    """No robots.txt raises."""
    asked = rules(data)
    asked.refusal(url)
    assert asked.delay() >= 0


each_utf16 = pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])


def put_robots(site: Server, encoding: str, rule: str) -> None:
    """Serve a robots.txt in this encoding, with one rule and two sitemaps."""
    text = f"User-agent: *\r\n{rule}\r\nSitemap: {site.url}/a.xml\r\nSitemap: {site.url}/private/b.xml\r\n"
    site.pages["/robots.txt"] = (200, {"Content-Type": "text/plain"}, text.encode(encoding))
    for path in ("/a.xml", "/private/b.xml"):
        site.pages[path] = (200, {"Content-Type": "application/xml"}, urlset(f"{site.url}/private/page").encode())


@each_utf16
def test_utf16_is_obeyed(encoding: str) -> None:
    """A robots.txt in UTF-16 names its sitemaps and disallows them, too."""
    with serve({}) as site:
        put_robots(site, encoding, "Disallow: /private/")
        tree = sitemap_tree_for_homepage(site.url, use_known_paths=False, respect_robots=True)
    robots = tree.sub_sitemaps[0]
    assert isinstance(robots, IndexRobotsTxtSitemap)
    assert [type(child) is InvalidSitemap for child in robots.sub_sitemaps] == [False, True]
    assert "respect_robots" in str(getattr(robots.sub_sitemaps[1], "reason", ""))
    assert site.paths() == ["/robots.txt", "/a.xml"]


@each_utf16
def test_utf16_states_a_delay(encoding: str) -> None:
    """A robots.txt in UTF-16 sets the delay between requests."""
    with serve({}) as site:
        put_robots(site, encoding, "Crawl-delay: 0.1")
        started = time.monotonic()
        sitemap_tree_for_homepage(site.url, use_known_paths=False, politeness=Politeness(crawl_delay=True))
    assert time.monotonic() - started >= 0.2
    assert sorted(site.paths()) == ["/a.xml", "/private/b.xml", "/robots.txt"]


@each_utf16
def test_utf16_is_checked(encoding: str) -> None:
    """A check reports pages that a robots.txt in UTF-16 disallows."""
    with serve({}) as site:
        put_robots(site, encoding, "Disallow: /private/page")
        report = check_homepage(site.url)
    assert "R709" in {problem.code for sitemap in report.sitemaps for problem in sitemap.problems}


NAMES = ["*", "usp", "USP/2", "us", "u", "other", "usp*", "**", "", "bot", "usp-news", "googlebot", "compatible"]
FIELDS = [
    *("User-agent: ", "user agent ", "useragent:", "User-agent ", "User-agent foo: "),
    *("Disallow: ", "disalow:", "Disallow ", "Allow: ", "Allow\t", "Crawl-delay: ", "Crawl delay ", "Visit-time: "),
    *("Sitemap: ", "Host ", "Foo: ", "Foo:", "Foo ", "# ", ""),
]
VALUES = [*NAMES, "/", "/a", "/a*b", "/*b$", "/b # c", "5", "a b", ": x"]


@pytest.mark.parametrize("user_agent", ["usp", "usp/2.0", "Mozilla/5.0 (compatible; usp/2.0; +http://h/)", "mybot usp"])
@given(
    lines=st.lists(st.tuples(st.sampled_from(FIELDS), st.sampled_from(VALUES)).map("".join), max_size=12),
    url=st.sampled_from(["http://h/", "http://h/a", "http://h/a/b", "http://h/b"]),
)
@settings(max_examples=150)
def test_only_what_is_for_others_is_dropped(user_agent: str, lines: list[str], url: str) -> None:
    """Rules and delays are those that protego finds in the whole file."""
    text = "\n".join(lines)
    whole = Protego.parse(text)
    read = rules(text, user_agent)
    assert (read.refusal(url) is None) is whole.can_fetch(url, user_agent)
    assert read.delay() == (whole.crawl_delay(user_agent) or 0)


@pytest.mark.slow
@pytest.mark.parametrize("is_ours", [False, True])
def test_many_user_agents_with_many_rules(is_ours: bool) -> None:
    """User agents times rules cost neither time nor memory, even if all of them name this crawler."""
    header = "usp/2.0 (" + " ".join("abcdefghijklmnopqrstuvwxyz" * 8) + ")"
    agents = [header[:i] for i in range(1, len(header) + 1)] if is_ours else [f"bot{i}" for i in range(8_000)]
    text = "\n".join([*(f"User-agent: {agent}" for agent in agents), *(f"Disallow: /{i:x}" for i in range(8_000))])
    tracemalloc.start()
    started = time.process_time()
    read = rules(text, header)
    assert (read.refusal("http://h/1f") is None) is not is_ours
    seconds = time.process_time() - started
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seconds < 3
    assert most < 50_000_000


def test_rules_that_are_too_many() -> None:
    """A limit on rules with a wildcard bounds the time for each URL; it counts the rules for this crawler only."""
    text = "User-agent: *\n" + "".join(f"Disallow: /{i}*x\n" for i in range(20_000)) + "User-agent: usp\nDisallow: /b"
    assert rules(text, "usp").refusal("http://h/0x") is None
    assert rules(text, "usp").refusal("http://h/b") is not None
    others = rules(text, "other")
    assert others.refusal("http://h/999x") is not None
    started = time.process_time()
    for i in range(200):
        others.refusal(f"http://h/y{i}")
    assert time.process_time() - started < 2
