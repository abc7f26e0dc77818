"""Limits on requests at once, across sites: hosts, registered domains and addresses."""

from __future__ import annotations

import asyncio
import random
import socket
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from many_sites import serve_sites
from usp.crawl import CrawlOptions, crawl
from usp.crawl.hosts import RequestLimits, SharedLimits
from usp.exceptions import InvalidArgumentError
from usp.web_client.exchanges import Exchange
from usp.web_client.lookups import AddressInfo, system_lookup


def answered(url: str, status: int, **headers: str) -> Exchange:
    pairs = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Exchange(url, {}, status, "", pairs, datetime.now(UTC))


@pytest.mark.parametrize("seed", range(5))
def test_no_limit_is_ever_exceeded_and_nobody_waits_forever(seed: int) -> None:
    """With any mix of hosts and domains, each gets at most its number of requests at once, and all get their turn."""
    chance = random.Random(seed)
    limits = SharedLimits(RequestLimits(per_host=2, per_domain=3, per_address=5))
    hosts = [f"{name}.{domain}.example" for name in "abc" for domain in ("one", "two", "three")]
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()

    async def request() -> None:
        host = chance.choice(hosts)
        domain = host.partition(".")[2]
        await limits.start(f"https://{host}/")
        for key in (host, domain):
            running[key] += 1
            most[key] = max(most[key], running[key])
        await asyncio.sleep(chance.uniform(0, 0.002))
        for key in (host, domain):
            running[key] -= 1
        limits.end(f"https://{host}/", None)

    async def all_of_them() -> None:
        await asyncio.wait_for(asyncio.gather(*(request() for _ in range(400))), 30)

    asyncio.run(all_of_them())
    assert max(most[host] for host in hosts) == 2
    assert max(most[domain] for domain in ("one.example", "two.example", "three.example")) == 3
    assert not limits._counts


def test_requests_that_are_cancelled_leave_their_place() -> None:
    """A request that is cancelled while it waits keeps nobody else waiting."""

    async def scenario() -> None:
        limits = SharedLimits(RequestLimits(per_host=1))
        await limits.start("https://h.example/a")
        waiting = [asyncio.create_task(limits.start("https://h.example/b")) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        waiting[1].cancel()
        limits.end("https://h.example/a", None)
        await asyncio.wait_for(waiting[2], 1)
        limits.end("https://h.example/b", None)
        assert not limits._counts

    asyncio.run(scenario())


def test_an_overloaded_host_rests_for_all_sites() -> None:
    """After 429 with Retry-After, no request to the host starts before that time; others do."""

    async def scenario() -> None:
        limits, loop = SharedLimits(RequestLimits()), asyncio.get_running_loop()
        await limits.start("https://h.example/")
        limits.end("https://h.example/", answered("https://h.example/", 429, Retry_After="1"))
        before = loop.time()
        await limits.start("https://other.example/")
        assert loop.time() - before < 0.5
        await limits.start("https://h.example/")
        assert 0.9 < loop.time() - before < 5

    asyncio.run(scenario())


def test_hosts_with_one_address_share_a_limit() -> None:
    """Once their address is known, hosts of different domains share the limit of the address."""

    async def scenario() -> None:
        limits = SharedLimits(RequestLimits(per_host=5, per_domain=5, per_address=2))
        for name in ("a", "b", "c"):
            limits._addresses[f"{name}.example"] = "192.0.2.1"
        await limits.start("https://a.example/")
        await limits.start("https://b.example/")
        third = asyncio.create_task(limits.start("https://c.example/"))
        await asyncio.sleep(0.05)
        assert not third.done()
        limits.end("https://a.example/", None)
        await asyncio.wait_for(third, 1)

    asyncio.run(scenario())


class Names:
    """A resolver of names. `asked` counts what was looked up."""

    def __init__(self, addresses: dict[str, str]) -> None:
        self.asked: Counter[str] = Counter()
        self._addresses = addresses

    def __call__(self, host: str, port: int) -> Sequence[AddressInfo]:
        self.asked[host] += 1
        if host not in self._addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return system_lookup(self._addresses[host], port)


@pytest.mark.network
@pytest.mark.export
@pytest.mark.slow
def test_limits_hold_at_a_real_server(tmp_path: Path) -> None:
    """No host, domain or address gets more requests at once than it may, from the first request on."""
    names = Names({f"s{number}.d{number % 9}.example": f"127.0.9.{number % 3 + 1}" for number in range(90)})
    with serve_sites() as sites:
        urls = [sites.add(name, {f"/{at}.xml": ["/page"] for at in range(3)}) for name in names._addresses]
        for host, answers in sites.answers.items():
            sites.answers[host] = {path: replace(one, seconds=0.02) for path, one in answers.items()}
        requests = RequestLimits(per_host=2, per_domain=3, per_address=5)
        options = CrawlOptions(known_paths="never", sites_at_once=60, requests=requests)
        crawled = crawl(urls, tmp_path / "crawl", options=options, client_options={"_resolve": names})
        assert crawled.runs[-1].outcomes == {"complete": 90}
        most = sites.most_running
    assert max(most[name] for name in names._addresses) == 2
    assert max(most[f".d{number}.example"] for number in range(9)) == 3
    assert [most[f"127.0.9.{number}"] for number in (1, 2, 3)] == [5, 5, 5]


@pytest.mark.network
@pytest.mark.export
def test_a_name_that_does_not_exist_is_looked_up_once(tmp_path: Path) -> None:
    """Limits need the address of a host before its first request; the request itself uses the same answer."""
    names = Names({"there.example": "127.0.9.1"})
    with serve_sites() as sites:
        urls = [sites.add("there.example", {"/a.xml": ["/page"]}), "http://missing.example/"]
        crawled = crawl(urls, tmp_path / "crawl", client_options={"_resolve": names})
    assert crawled.runs[-1].outcomes == {"complete": 1, "unreachable": 1}
    assert names.asked["missing.example"] == 1
    assert names.asked["there.example"] <= 2  # each connection asks, and a site may have two


@pytest.mark.network
@pytest.mark.export
def test_behind_a_proxy_no_name_is_looked_up(tmp_path: Path) -> None:
    """A proxy resolves names, and nobody else has to know them."""
    names = Names({"there.example": "127.0.9.1"})
    with serve_sites() as sites:
        site = sites.add("there.example", {"/a.xml": ["/page"]})
        options = {"_resolve": names, "proxy": sites.url("127.0.9.7")}
        crawled = crawl(site, tmp_path / "crawl", client_options=options)
    assert crawled.runs[-1].outcomes == {"complete": 1}
    assert not names.asked["there.example"]


def test_requests_go_to_the_address_that_is_counted() -> None:
    """Of several addresses, in an order that changes each time, the one that was seen first stays first."""
    turns = 0

    def rotating(host: str, port: int) -> Sequence[AddressInfo]:
        nonlocal turns
        turns += 1
        found = [address for number in (1, 2, 3) for address in system_lookup(f"192.0.2.{number}", port)]
        return found[turns % 3 :] + found[: turns % 3]

    limits = SharedLimits(RequestLimits(), rotating)
    firsts = {limits.resolve("h.example", 80)[0][4][0] for _ in range(6)}
    assert (len(firsts), turns) == (1, 6)


@pytest.mark.parametrize("name", ["per_host", "per_domain", "per_address"])
def test_limits_are_positive(name: str) -> None:
    """A limit that is no positive integer is refused."""
    for value in (0, -1, 1.5, "2", True):
        with pytest.raises(InvalidArgumentError, match=name):
            RequestLimits(**{name: value})  # type: ignore[arg-type]
