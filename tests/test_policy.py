"""The request policy, by itself and as both clients keep it, against real sockets on loopback."""

from __future__ import annotations

import asyncio
import ipaddress
import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sockets import (
    CLIENTS,
    Make,
    Peer,
    answering,
    error,
    making,
    resolving,
    success,
    talk,
)
from support import serve, urlset
from usp import aio
from usp.exceptions import InvalidArgumentError
from usp.limits import Limits
from usp.origins import HostPatterns
from usp.tree import sitemap_tree_for_homepage
from usp.web_client.policy import RefusedError, RequestPolicy, applying, is_public, policy_for

pytestmark = pytest.mark.network

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
PUBLIC = "93.184.216.34"
HOME = "http://home.example/"


@pytest.fixture(params=list(CLIENTS))
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    with making(request.param) as make:
        yield make


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (PUBLIC, True),
        ("2606:4700::1", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),  # noqa: S104 -- nothing is bound to it
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("::", False),
        ("fe80::1", False),
        ("fec0::1", False),
        ("fd00::1", False),
        ("ff02::1", False),
        ("::ffff:127.0.0.1", False),
        (f"::ffff:{PUBLIC}", True),
        ("::127.0.0.1", False),
        ("2002:7f00:1::", False),
        ("64:ff9b::7f00:1", False),
        ("64:ff9b::5db8:d822", True),
        ("64:ff9b:1::1", False),
        ("2001:0:1::1", False),
        ("192.0.0.1", False),
        ("192.0.0.9", False),
        ("192.88.99.1", False),
        ("::ffff:192.0.0.9", False),
        ("2001:20::1", False),
        ("3fff::1", False),
        ("3fff:fff::1", False),
        ("192.0.1.1", True),
        ("2001:200::1", True),
    ],
)
def test_public_addresses(address: str, expected: bool) -> None:
    """An address is public only if every address inside it is."""
    assert is_public(ipaddress.ip_address(address)) is expected


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://other.example/", None),
        ("https://home.example:8443/", None),
        (f"http://{PUBLIC}/", None),
        ("http://127.0.0.1/", "127.0.0.1 is not a public address; a website may not lead there"),
        ("http://127.1/", "127.1 leads to 127.0.0.1, which is not a public address; a website may not lead there"),
        ("http://0x7f000001/", "0x7f000001 leads to 127.0.0.1"),
        ("http://2130706433/", "2130706433 leads to 127.0.0.1"),
        ("http://[::ffff:10.0.0.1]/", "::ffff:10.0.0.1 "),
        ("http://[fe80::1%25eth0]/", "fe80::1%25eth0 "),
        ("http://127.0.0.1./", "127.0.0.1 is not a public address"),
        ("http://①②⑦.0.0.1/", "127.0.0.1 is not a public address"),
        ("http://localhost/", "localhost leads to this machine"),
        ("http://x.localhost/", "x.localhost leads to this machine"),
        ("ftp://other.example/", "ftp is not http or https"),
        ("//other.example/", "this is not http or https"),
        ("http:///x", "it has no host"),
        ("http://1.2.3.4.5/", "its host name is not valid"),
        ("http://a..b/", "its host name is not valid"),
        (f"http://{'a' * 64}.example/", "its host name is not valid"),
        ("http://exa mple/", "its host name is not valid"),
        ("http://a.1\x00.2/", "its host name is not valid"),
        ("http://h:99999/", "it is not a URL"),
        ("http://[bad/", "it is not a URL"),
    ],
)
def test_refusals(url: str, reason: str | None) -> None:
    """A URL is checked before its host is looked up."""
    found = RequestPolicy(HOME).refusal(url)
    assert (found or "").startswith(reason or "")
    assert (found is None) is (reason is None)


def test_cross_host() -> None:
    """`cross_host` restricts hosts to those of the same site, or to the homepage's."""
    urls = ["http://www.example.co.uk:81/", "https://news.example.co.uk/", "http://other.co.uk/"]
    allowed = {
        kind: [RequestPolicy("http://www.example.co.uk/", cross_host=kind).refusal(url) is None for url in urls]
        for kind in ("allow", "same-site", "same-host")
    }
    assert allowed == {"allow": [True] * 3, "same-site": [True, True, False], "same-host": [True, False, False]}
    with pytest.raises(InvalidArgumentError, match="cross_host"):
        RequestPolicy("http://h.example/", cross_host="nonsense").refusal("http://h.example/")


def test_allowed_addresses() -> None:
    """Public addresses of a host are allowed; a private home may use only the addresses that it had at first."""
    policy = RequestPolicy(HOME)
    assert policy.allowed_addresses("other.example", [PUBLIC, "127.0.0.1"]) == [PUBLIC]
    with pytest.raises(RefusedError, match=r"other.example leads to 10.0.0.1"):
        policy.allowed_addresses("other.example", ["10.0.0.1"])
    assert policy.allowed_addresses("home.example", []) == []
    assert policy.allowed_addresses("HOME.example.", ["10.0.0.1", "10.0.0.2"]) == ["10.0.0.1", "10.0.0.2"]
    assert policy.allowed_addresses("home.example", ["10.0.0.2", "10.0.0.3", PUBLIC]) == ["10.0.0.2"]
    with pytest.raises(RefusedError, match=r"leads to 10.0.0.3, which is not a public address"):
        policy.allowed_addresses("home.example", ["10.0.0.3"])
    with pytest.raises(RefusedError, match=f"leads to {PUBLIC} now, which is not an address that it had at first"):
        policy.allowed_addresses("home.example", [PUBLIC])
    with pytest.raises(RefusedError, match="had at first"):
        policy.check_peer("home.example", PUBLIC)
    mixed = RequestPolicy(HOME)
    assert mixed.allowed_addresses("home.example", [PUBLIC, "10.0.0.1"]) == [PUBLIC]
    with pytest.raises(RefusedError):
        mixed.check_peer("home.example", "10.0.0.1")


def known_by_lookup(policy: RequestPolicy, address: str) -> None:
    assert policy.allowed_addresses("home.example", [address]) == [address]


def known_by_peer(policy: RequestPolicy, address: str) -> None:
    policy.check_peer("home.example", address)


@pytest.mark.parametrize("known", [known_by_lookup, known_by_peer])
def test_what_a_home_is(known: Callable[[RequestPolicy, str], None]) -> None:
    """The first address seen of a home, in a lookup or on a reused connection, decides whether it is public."""
    public, inner = RequestPolicy(HOME), RequestPolicy(HOME)
    known(public, PUBLIC)
    known(inner, "10.0.0.1")
    for check in (known_by_lookup, known_by_peer):
        check(public, "8.8.8.8")
        check(inner, "10.0.0.1")
        for policy, address in ((public, "10.0.0.1"), (inner, "10.0.0.2"), (inner, PUBLIC)):
            with pytest.raises(RefusedError):
                check(policy, address)


def test_homes_behind_a_proxy() -> None:
    """A home that a proxy resolves counts as public, unless it is known to be private, or is an address."""
    policy = RequestPolicy(HOME)
    policy.mark_resolved_elsewhere("other.example")
    policy.check_peer("home.example", "10.0.0.1")
    policy.mark_resolved_elsewhere("home.example")
    policy.check_peer("home.example", "10.0.0.1")
    policy = RequestPolicy(HOME)
    policy.mark_resolved_elsewhere("home.example")
    with pytest.raises(RefusedError):
        policy.check_peer("home.example", "10.0.0.1")
    for host, address in (
        ("10.0.0.1", "10.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("[::1]", "::1"),
        ("[fe80::1%25e0]", "fe80::1"),
    ):
        policy = RequestPolicy(f"http://{host}/")
        policy.mark_resolved_elsewhere(host)
        policy.check_peer(host.strip("[]"), address)
        with pytest.raises(RefusedError):
            policy.allowed_addresses(host.strip("[]"), ["10.0.0.2"])


def test_this_host_is_this_machine(make: Make) -> None:
    """A connection to 0.0.0.0 reaches this machine, and may be reused."""
    with talk(keep_alive) as server:
        client = make()
        url = f"http://0.0.0.0:{server.port}/"
        policy = RequestPolicy(url)
        for _ in range(2):
            success(client.get(url, policy))


def test_credentials_of_the_homepage() -> None:
    """The homepage's user and password are added to URLs of its origin, and removed from them, and from no others."""
    policy = RequestPolicy("http://me:secret@h.example:80/", cross_host="same-host")
    assert policy.is_home("http://h.example/x")
    assert policy.refusal("http://h.example/x") is None
    assert "same-host" in (policy.refusal("http://other.example/") or "")
    assert policy.with_credentials("http://h.example/x") == "http://me:secret@h.example/x"
    assert policy.without_credentials("http://me:secret@h.example/x") == "http://h.example/x"
    for url in ("http://you:x@h.example/", "https://h.example/", "http://o.example/", "http://[bad/", "nonsense", ""):
        assert policy.with_credentials(url) == policy.without_credentials(url) == url
    for url in ("http://h.example/", "http://me:secret@h.example/"):
        assert (
            RequestPolicy(HOME).with_credentials(url)
            == RequestPolicy("http://h.example/").without_credentials(url)
            == url
        )


def test_whose_terms() -> None:
    """A request has the policy of its tree; outside of a tree, one for its own URL, even if that is nonsense."""
    policy = RequestPolicy(HOME)
    with applying(policy):
        assert policy_for("http://other.example/") is policy
    assert policy_for("http://127.0.0.1/").refusal("http://127.0.0.1/") is None
    assert policy_for("http://[bad/").refusal("http://[bad/") == "it is not a URL"


def test_a_public_site_cannot_lead_inwards(make: Make) -> None:
    """Neither a redirect nor a host name makes a client connect from a public site to a private address."""
    with talk(answering(OK)) as inner:
        moved = f"HTTP/1.1 302 Found\r\nLocation: {inner.url}\r\nContent-Length: 0\r\n\r\n".encode()
        with talk(answering(moved)) as outer:
            client = make(_resolve=resolving({"home.example": ["127.0.0.1"], "evil.example": ["127.0.0.1"]}))
            policy = RequestPolicy(HOME)
            response = error(client.get(f"http://home.example:{outer.port}/", policy))
            assert response.message() == (
                f"redirects to {inner.url}: 127.0.0.1 is not a public address; a website may not lead there"
            )
            assert response.retryable() is False
            response = error(client.get(f"http://evil.example:{inner.port}/", policy))
            assert response.message() == (
                "evil.example leads to 127.0.0.1, which is not a public address; a website may not lead there"
            )
            assert response.retryable() is False
        assert inner.accepted == 0


def test_names_that_change(make: Make) -> None:
    """A homepage that was public at first cannot resolve to a private address later."""
    policy = RequestPolicy(HOME)
    assert policy.allowed_addresses("home.example", [PUBLIC]) == [PUBLIC]
    with talk(answering(OK)) as inner:
        client = make(_resolve=resolving({"home.example": ["127.0.0.1"]}))
        assert "not a public address" in error(client.get(f"http://home.example:{inner.port}/", policy)).message()
        assert inner.accepted == 0


def keep_alive(peer: Peer) -> None:
    while peer.head():
        peer.send(OK)


def test_kept_connections_are_checked(make: Make) -> None:
    """An open connection is checked again by the policy of each tree that would reuse it."""
    with talk(keep_alive) as server:
        client = make(_resolve=resolving({"inner.example": ["127.0.0.1"]}))
        url = f"http://inner.example:{server.port}/"
        own = RequestPolicy(url)
        for _ in range(2):
            success(client.get(url, own))
        assert server.accepted == 1
        response = error(client.get(url, RequestPolicy(HOME)))
        assert "inner.example leads to 127.0.0.1" in response.message()
        assert response.retryable() is False
        success(client.get(url, RequestPolicy(url)))
        assert server.accepted <= 2


def test_a_home_that_is_known_by_a_kept_connection(make: Make) -> None:
    """A tree that starts on an open connection has its home at that address, not where the name resolves next."""
    addresses: dict[str, Sequence[str]] = {"home.example": ["127.0.0.1"]}
    with talk(keep_alive) as server:
        client = make(_resolve=resolving(addresses))
        url = f"http://home.example:{server.port}/"
        success(client.get(url, RequestPolicy(url)))
        addresses["home.example"] = ["127.0.0.2"]
        policy = RequestPolicy(url)
        success(client.get(url, policy))
        with talk(answering(OK)) as other:
            response = error(client.get(f"http://home.example:{other.port}/", policy))
    assert response.message().startswith("home.example leads to 127.0.0.2, which is not a public address")


def test_a_home_that_only_the_proxy_knows(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A homepage that was reached through a proxy may not resolve to a private address without the proxy."""
    with serve({HOME: (200, {}, b"x")}) as proxy, talk(answering(OK)) as inner:
        monkeypatch.setenv("http_proxy", proxy.url)
        client = make(_resolve=resolving({"home.example": ["127.0.0.1"]}))
        policy = RequestPolicy(HOME)
        success(client.get(HOME, policy))
        response = error(client.get(f"https://home.example:{inner.port}/", policy))
        assert response.message().startswith("home.example leads to 127.0.0.1, which is not a public address")
        assert inner.accepted == 0


def test_credentials_stay_at_home(make: Make) -> None:
    """The caller's headers go to the homepage's scheme, host and port, and nowhere else."""
    with serve({"/x": (200, {}, b"x")}) as home, serve({"/x": (200, {}, b"x")}) as other:
        home.pages["/away"] = (302, {"Location": f"{other.url}/x"}, b"")
        home.pages["/alias"] = (302, {"Location": f"{home.url.replace('127.0.0.1', 'alias.example')}/x"}, b"")
        client = make(
            headers={"Authorization": "Bearer secret", "Cookie": "a=1", "X-Mine": "yes"},
            _resolve=resolving({"alias.example": [PUBLIC]}),
        )
        policy = RequestPolicy(f"{home.url}/")
        for url in (f"{home.url}/x", f"{home.url}/away", f"{other.url}/x"):
            success(client.get(url, policy))
        assert all({"Authorization", "Cookie", "X-Mine"} <= set(headers) for _, headers in home.requests)
        assert len(other.requests) == 2
        assert all(not {"Authorization", "Cookie", "X-Mine"} & set(headers) for _, headers in other.requests)


def test_credentials_and_other_names(make: Make) -> None:
    """Another name of the same server is another host."""
    with serve({"/x": (200, {}, b"x")}) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        client = make(headers={"X-Mine": "yes"})
        success(client.get(f"{url}/x", RequestPolicy(f"{url}/")))
        assert "X-Mine" in server.requests[-1][1]
        https = RequestPolicy(f"{url}/".replace("http:", "https:"))
        success(client.get(f"{url}/x", https))
        assert "X-Mine" not in server.requests[-1][1]


def test_netrc_is_not_read(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passwords from .netrc are not sent."""
    netrc = tmp_path / ".netrc"
    netrc.write_text("default login me password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(netrc))
    with serve({"/x": (200, {}, b"x")}) as server:
        success(make().get(f"{server.url}/x"))
        assert "Authorization" not in server.requests[0][1]


def test_proxies_and_terms(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy may have a private address, but the URLs requested through it may not."""
    with serve({}) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        client = make(_resolve=resolving({}))
        assert error(client.get("http://other.example/", RequestPolicy(HOME))).message() == "404 Not Found"
        for url in ("http://127.0.0.1:1/", "http://127.1/", "http://localhost/"):
            assert "not a public address" in error(client.get(url, RequestPolicy(HOME))).message()
        assert proxy.paths() == ["http://other.example/"]


def test_a_shorter_time_for_one_request() -> None:
    """A driver may allow a request less time than the policy does, and never more."""
    policy = RequestPolicy("https://h.example/", Limits(request_seconds=60))
    for allowed, expected in ((5, 5), (90, 60), (math.inf, 60)):
        with applying(policy, allowed):
            assert policy.deadline() - time.monotonic() == pytest.approx(expected, abs=1)
    assert policy.request_seconds() == 60


PRIVATE_HOME = "http://wiki.corp.example/"


def allowing(*hosts: str, home: str = PRIVATE_HOME, **options: str) -> RequestPolicy:
    return RequestPolicy(home, allow_hosts=HostPatterns(hosts), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pattern", "host", "is_allowed"),
    [
        ("10.0.0.5", "10.0.0.5", True),
        ("10.0.0.5", "10.0.0.6", False),
        ("10.0.0.0/8", "10.200.3.4", True),
        ("10.0.0.0/8", "11.0.0.1", False),
        ("fd00::5", "fd00::5", True),
        ("[fd00::5]", "fd00::5", True),
        ("fd00::/8", "fd12::1", True),
        ("files.corp.example", "files.corp.example", True),
        ("Files.Corp.Example.", "files.corp.example", True),
        ("files.corp.example", "a.files.corp.example", False),
        ("*.corp.example", "files.corp.example", True),
        ("*.corp.example", "a.b.corp.example", True),
        ("*.corp.example", "corp.example", False),
        ("*.corp.example", "evilcorp.example", False),
        ("*.corp.example", "corp.example.evil.example", False),
        ("*.b\u00fccher.example", "x.xn--bcher-kva.example", True),
        ("localhost", "localhost", True),
        ("10.0.0.5", "ten.example", False),
    ],
)
def test_host_patterns(pattern: str, host: str, is_allowed: bool) -> None:
    """A pattern is a name, all names below a domain, an address, or a network of addresses."""
    assert HostPatterns([pattern]).match(host) is is_allowed


@pytest.mark.parametrize(
    "pattern",
    ["", "*", "*.", "a*.example", "*.*.example", "http://a.example/", "a.example:80", "10.0.0.1/8", "1.2.3", 5],
)
def test_what_is_not_a_host_pattern(pattern: str) -> None:
    """Anything else is an error that shows the forms."""
    with pytest.raises(InvalidArgumentError, match=r"\*\.corp\.example"):
        HostPatterns([pattern])
    with pytest.raises(InvalidArgumentError, match="several hosts"):
        HostPatterns("10.0.0.5")


def test_hosts_that_are_allowed_may_be_private() -> None:
    """A host that the caller allows may have private addresses; every other host is refused as before."""
    policy = allowing("10.0.0.5", "*.corp.example")
    assert policy.refusal("http://10.0.0.5/a.xml") is None
    for url in ("http://10.0.0.6/", "http://127.0.0.1/", "http://localhost/", "http://[::1]/", "http://167772165/"):
        assert policy.refusal(url) is not None
    assert policy.allowed_addresses("10.0.0.5", ["10.0.0.5"]) == ["10.0.0.5"]
    assert policy.allowed_addresses("files.corp.example", ["10.7.7.7"]) == ["10.7.7.7"]
    for host in ("10.0.0.6", "corp.example", "ten.example"):
        with pytest.raises(RefusedError, match="not a public address"):
            policy.allowed_addresses(host, ["10.0.0.5"])


def test_allowed_hosts_do_not_rebind() -> None:
    """The first address of an allowed host decides: it stays public, or keeps its private addresses."""
    policy = allowing("*.corp.example")
    assert policy.allowed_addresses("a.corp.example", ["10.0.0.5"]) == ["10.0.0.5"]
    for changed in ("10.0.0.6", "127.0.0.1", PUBLIC):
        with pytest.raises(RefusedError):
            policy.allowed_addresses("a.corp.example", [changed])
        with pytest.raises(RefusedError):
            policy.check_peer("a.corp.example", changed)
    policy.check_peer("A.corp.example.", "10.0.0.5")
    assert policy.allowed_addresses("b.corp.example", [PUBLIC]) == [PUBLIC]
    with pytest.raises(RefusedError):
        policy.allowed_addresses("b.corp.example", ["10.0.0.5"])
    assert allowing("10.0.0.5").allowed_addresses("10.0.0.5", ["10.0.0.5"]) == ["10.0.0.5"]
    with pytest.raises(RefusedError):
        allowing("10.0.0.5").allowed_addresses("10.0.0.5", ["10.0.0.6"])


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1", "::ffff:169.254.169.254"])
def test_allowed_names_do_not_lead_to_link_local_addresses(address: str) -> None:
    """A name that the caller allows may not lead to where clouds keep credentials. The address can be allowed."""
    with pytest.raises(RefusedError):
        allowing("*.corp.example", "169.254.0.0/16").allowed_addresses("meta.corp.example", [address])
    if ":" not in address:
        assert allowing(address).allowed_addresses(address, [address]) == [address]


def test_private_homepages_are_refused_on_request() -> None:
    """With `private="refuse"`, a homepage must be public, unless `allow_hosts` names it."""
    policy = allowing(private="refuse")
    with pytest.raises(RefusedError):
        policy.allowed_addresses("wiki.corp.example", ["10.0.0.5"])
    assert policy.allowed_addresses("wiki.corp.example", [PUBLIC]) == [PUBLIC]
    for home in ("http://127.0.0.1/", "http://localhost/", "http://[::1]/"):
        assert "not a public address" in (allowing(home=home, private="refuse").refusal(home) or "")
    named = allowing("*.corp.example", private="refuse")
    assert named.allowed_addresses("wiki.corp.example", ["10.0.0.5"]) == ["10.0.0.5"]


@pytest.mark.parametrize("is_allowed", [False, True])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_private_site_with_a_second_private_host(is_allowed: bool, is_async: bool) -> None:
    """A private site may use a second private host that the caller names, and no other."""
    with serve({}) as home, serve({}) as other:
        second, third = other.url, other.url.replace("127.0.0.1", "127.1.1.1")
        home.url = home.url.replace("127.0.0.1", "localhost")
        text = f"Sitemap: {second}/a.xml\nSitemap: {third}/a.xml\nSitemap: {home.url}/to-second\n"
        home.pages["/robots.txt"] = (200, {"Content-Type": "text/plain"}, text.encode())
        home.pages["/to-second"] = (302, {"Location": f"{second}/b.xml"}, b"")
        for path in ("/a.xml", "/b.xml"):
            other.pages[path] = (200, {}, urlset(f"{home.url}{path}").encode())
        options: Any = {"use_known_paths": False, "allow_hosts": ["127.0.0.1"] if is_allowed else None}
        if is_async:
            tree = asyncio.run(aio.sitemap_tree_for_homepage(home.url, **options))
        else:
            tree = sitemap_tree_for_homepage(home.url, **options)
        refused = sitemap_tree_for_homepage(home.url, private="refuse")
    assert [page.url for page in tree.all_pages()] == ([f"{home.url}/a.xml", f"{home.url}/b.xml"] if is_allowed else [])
    assert sorted(other.paths()) == (["/a.xml", "/b.xml"] if is_allowed else [])
    assert list(refused.all_sitemaps()) == []
    assert "not a public address" in str(refused.outcome)
