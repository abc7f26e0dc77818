"""What only the client of aiohttp has to do with: event loops, tasks, and many requests at once."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from sockets import Peer, answering, error, self_signed, server_context, success, talk
from support import Server, serve
from usp.exceptions import InvalidArgumentError
from usp.web_client.aiohttp_client import AiohttpWebClient
from usp.web_client.policy import RequestPolicy, applying

pytestmark = pytest.mark.network

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture(scope="module")
def site() -> Iterator[Server]:
    with serve({"/x": (200, {}, b"x"), "/moved": (302, {"Location": "/x"}, b"moved")}) as server:
        yield server


def open_sockets() -> int:
    """The number of sockets that this process has open."""
    gc.collect()
    return sum("socket:" in str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink())


def test_two_event_loops(site: Server) -> None:
    """A client can be used in several event loops in turn, and leaves nothing open in any, closed or not."""
    client = AiohttpWebClient()
    before = open_sockets()
    for _ in range(3):
        assert success(asyncio.run(client.get(f"{site.url}/x"))).raw_data() == b"x"
        assert open_sockets() <= before


def test_closing(site: Server) -> None:
    """A client can be closed twice, closed without use, and used again after that."""

    async def use() -> None:
        async with AiohttpWebClient() as client:
            pass
        success(await client.get(f"{site.url}/x"))
        await client.close()
        await client.close()
        success(await client.get(f"{site.url}/x"))
        await client.close()

    asyncio.run(use())


def test_many_at_once(site: Server) -> None:
    """Many requests share a bounded number of connections."""

    async def use() -> None:
        async with AiohttpWebClient(max_connections=4) as client:
            answers = await asyncio.gather(*(client.get(f"{site.url}/moved") for _ in range(40)))
            assert [success(answer).raw_data() for answer in answers] == [b"x"] * 40

    site.connections.clear()
    asyncio.run(use())
    assert len(site.connections) <= 4


def test_each_task_has_its_terms() -> None:
    """Requests of two trees at the same time each have their own policy."""

    def keep_alive(peer: Peer) -> None:
        while peer.head():
            peer.send(OK)

    async def use(url: str) -> list[bool]:
        async def get(policy: RequestPolicy) -> bool:
            with applying(policy):
                return hasattr(await client.get(url), "raw_data")

        async with AiohttpWebClient() as client:
            own, other = RequestPolicy(url), RequestPolicy("http://other.example/")
            return await asyncio.gather(*(get(policy) for policy in (own, other) * 10))

    with talk(keep_alive) as server:
        assert asyncio.run(use(server.url.replace("127.0.0.1", "localhost"))) == [True, False] * 10


def slow(peer: Peer) -> None:
    """Answer in many small steps."""
    while peer.head():
        for piece in (b"HTTP/1.1 200 OK\r\n", b"Content-Length: 4\r\n", b"\r\n", b"ab", b"cd"):
            peer.send(piece)


@pytest.mark.parametrize("with_tls", [False, True])
def test_cancellation_at_any_await(tmp_path: Path, with_tls: bool) -> None:
    """A task that is cancelled at any step leaves no socket and no task behind, and the client stays usable."""
    context = server_context(self_signed(tmp_path)) if with_tls else None

    async def use(url: str, steps: int) -> bool:
        async with AiohttpWebClient(verify=str(tmp_path / "cert.pem") if with_tls else True) as client:
            task = asyncio.create_task(client.get(url))
            for _ in range(steps):
                await asyncio.sleep(0)
            was_done = task.done()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            success(await client.get(url))
            assert len(asyncio.all_tasks()) == 1
            return was_done

    with talk(slow, context) as server:
        before = open_sockets()
        ended = [asyncio.run(use(server.url, steps)) for steps in (*range(40), 5000)]
        assert not ended[0]
        for _ in range(50):  # the server has sockets too, in threads of its own
            if open_sockets() <= before:
                break
            asyncio.run(asyncio.sleep(0.02))
        assert open_sockets() <= before


def test_timeouts_of_the_caller(site: Server) -> None:
    """A timeout of the caller's ends a request."""

    async def use(url: str) -> None:
        async with AiohttpWebClient() as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await client.get(url)
            success(await client.get(f"{site.url}/x"))

    with talk(Peer.hold) as server:
        asyncio.run(use(server.url))


def test_proxy(site: Server) -> None:
    """A proxy gets the whole URL; a SOCKS proxy is an error."""

    async def use(proxy: str) -> str:
        async with AiohttpWebClient(proxy=proxy) as client:
            return error(await client.get("http://unreachable.example/x")).message()

    assert asyncio.run(use(site.url)) == "404 Not Found"
    assert site.paths()[-1] == "http://unreachable.example/x"
    assert asyncio.run(use("socks5://127.0.0.1:1"))


def test_closed_while_idle() -> None:
    """A connection that the server closed while it was idle is replaced."""

    async def use(url: str) -> None:
        async with AiohttpWebClient() as client:
            for _ in range(3):
                success(await client.get(url))

    with talk(answering(OK)) as server:
        asyncio.run(use(server.url))
        assert server.accepted == 3


@pytest.mark.parametrize("timeout", [0, -1, "x", (1, 2, 3), (0, 1)])
def test_nonsensical_timeouts(timeout: float) -> None:
    """A timeout that makes no sense is an error when you make the client."""
    with pytest.raises(InvalidArgumentError, match="timeout must be"):
        AiohttpWebClient(timeout=timeout)


def test_nonsensical_numbers_of_connections() -> None:
    """Zero connections is an error when you make the client."""
    with pytest.raises(InvalidArgumentError, match="max_connections"):
        AiohttpWebClient(max_connections=0)
