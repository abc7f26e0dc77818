"""Limits on requests at once, across sites: hosts, registered domains and addresses."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from datetime import UTC, datetime

import pytest

from usp.crawl.hosts import RequestLimits, SharedLimits
from usp.exceptions import InvalidArgumentError
from usp.web_client.exchanges import Exchange


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


@pytest.mark.parametrize("name", ["per_host", "per_domain", "per_address"])
def test_limits_are_positive(name: str) -> None:
    """A limit that is no positive integer is refused."""
    for value in (0, -1, 1.5, "2", True):
        with pytest.raises(InvalidArgumentError, match=name):
            RequestLimits(**{name: value})  # type: ignore[arg-type]
