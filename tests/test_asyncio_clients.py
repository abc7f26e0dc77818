"""What only the clients on asyncio have to do with: event loops, tasks, and many requests at once."""

from __future__ import annotations

import asyncio
import gc
import random
import re
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sockets import Peer, answering, error, resolving, self_signed, server_context, success, talk
from support import Server, serve
from usp.exceptions import InvalidArgumentError
from usp.web_client.aiohttp_client import AiohttpWebClient
from usp.web_client.asyncio_client import AsyncioWebClient
from usp.web_client.asyncio_connections import AsyncioAnswer
from usp.web_client.exchanges import Exchange, observing
from usp.web_client.http_client import AsyncHTTPAnswer, HTTPRequest
from usp.web_client.http_fetch import Fetch
from usp.web_client.policy import RequestPolicy, applying

pytestmark = pytest.mark.network

Kind = type[AsyncioWebClient | AiohttpWebClient]

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture(params=[AsyncioWebClient, AiohttpWebClient])
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


@pytest.fixture(scope="module")
def site() -> Iterator[Server]:
    with serve({"/x": (200, {}, b"x"), "/moved": (302, {"Location": "/x"}, b"moved")}) as server:
        yield server


def open_sockets() -> int:
    """The number of sockets that this process has open."""
    gc.collect()
    return sum("socket:" in str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink())


def closes_all_but(before: int) -> bool:
    """Whether no more sockets are left than before. The server has some too, in threads that may be late."""
    end = time.monotonic() + 5
    while open_sockets() > before and time.monotonic() < end:
        time.sleep(0.01)
    return open_sockets() <= before


def test_two_event_loops(kind: Kind, site: Server) -> None:
    """A client can be used in several event loops in turn, and leaves nothing open in any, closed or not."""
    client = kind()
    before = open_sockets()
    for _ in range(3):
        assert success(asyncio.run(client.get(f"{site.url}/x"))).raw_data() == b"x"
        assert closes_all_but(before)


def test_closing(kind: Kind, site: Server) -> None:
    """A client can be closed twice, closed without use, and used again after that."""

    async def use() -> None:
        async with kind() as client:
            pass
        success(await client.get(f"{site.url}/x"))
        await client.close()
        await client.close()
        success(await client.get(f"{site.url}/x"))
        await client.close()

    asyncio.run(use())


def test_many_at_once(kind: Kind, site: Server) -> None:
    """Many requests share a bounded number of connections."""

    async def use() -> None:
        async with kind(max_connections=4) as client:
            answers = await asyncio.gather(*(client.get(f"{site.url}/moved") for _ in range(40)))
            assert [success(answer).raw_data() for answer in answers] == [b"x"] * 40

    site.connections.clear()
    asyncio.run(use())
    assert len(site.connections) <= 4


def test_each_task_has_its_terms(kind: Kind) -> None:
    """Requests of two trees at the same time each have their own policy."""

    def keep_alive(peer: Peer) -> None:
        while peer.head():
            peer.send(OK)

    async def use(url: str) -> list[bool]:
        async def get(policy: RequestPolicy) -> bool:
            with applying(policy):
                return hasattr(await client.get(url), "raw_data")

        async with kind() as client:
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
def test_cancellation_at_any_await(kind: Kind, tmp_path: Path, with_tls: bool) -> None:
    """A task that is cancelled at any step leaves no socket and no task behind, and the client stays usable."""
    context = server_context(self_signed(tmp_path)) if with_tls else None

    async def use(url: str, steps: int) -> bool:
        async with kind(verify=str(tmp_path / "cert.pem") if with_tls else True) as client:
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
        assert closes_all_but(before)


def test_timeouts_of_the_caller(kind: Kind, site: Server) -> None:
    """A timeout of the caller's ends a request."""

    async def use(url: str) -> None:
        async with kind() as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await client.get(url)
            success(await client.get(f"{site.url}/x"))

    with talk(Peer.hold) as server:
        asyncio.run(use(server.url))


def test_proxy(kind: Kind, site: Server) -> None:
    """A proxy gets the whole URL; a SOCKS proxy is an error."""

    async def use(proxy: str) -> str:
        async with kind(proxy=proxy) as client:
            return error(await client.get("http://unreachable.example/x")).message()

    assert asyncio.run(use(site.url)) == "404 Not Found"
    assert site.paths()[-1] == "http://unreachable.example/x"
    assert asyncio.run(use("socks5://127.0.0.1:1"))


def test_closed_while_idle(kind: Kind) -> None:
    """A connection that the server closed while it was idle is replaced."""

    async def use(url: str) -> None:
        async with kind() as client:
            for _ in range(3):
                success(await client.get(url))

    with talk(answering(OK)) as server:
        asyncio.run(use(server.url))
        assert server.accepted == 3


@pytest.mark.parametrize("timeout", [0, -1, "x", (1, 2, 3), (0, 1)])
def test_nonsensical_timeouts(kind: Kind, timeout: float) -> None:
    """A timeout that makes no sense is an error when you make the client."""
    with pytest.raises(InvalidArgumentError, match="timeout must be"):
        kind(timeout=timeout)


def test_nonsensical_numbers_of_connections(kind: Kind) -> None:
    """Zero connections is an error when you make the client."""
    with pytest.raises(InvalidArgumentError, match="max_connections"):
        kind(max_connections=0)


def test_a_proxy_of_the_environment(site: Server, monkeypatch: pytest.MonkeyPatch, kind: Kind) -> None:
    """The proxies of the environment are used, except for the hosts that it names."""
    monkeypatch.setenv("http_proxy", site.url)
    monkeypatch.setenv("no_proxy", "127.0.0.1")

    async def use() -> None:
        async with kind() as client:
            assert error(await client.get("http://unreachable.example/x")).message() == "404 Not Found"
            assert success(await client.get(f"{site.url}/x")).raw_data() == b"x"

    site.requests.clear()
    asyncio.run(use())
    assert site.paths() == ["http://unreachable.example/x", "/x"]


def test_without_a_proxy_aiohttp_is_not_even_imported(site: Server) -> None:
    """The default client does not import aiohttp, which takes time and memory."""
    program = (
        "import asyncio, sys, usp.aio; asyncio.run(usp.aio.sitemap_tree_for_homepage(sys.argv[1]));"
        "print('aiohttp' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program, site.url], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_reader_that_waits(kind: Kind) -> None:
    """A body that nobody reads is not received: the sender waits, and memory stays small."""
    sent = 0

    def flood(peer: Peer) -> None:
        nonlocal sent
        peer.head()
        peer.send(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(2_000):
            peer.send(bytes(100_000))
            sent += 100_000

    async def use(url: str) -> None:
        async with kind() as client:
            request = HTTPRequest(url, {}, RequestPolicy(url), time.monotonic() + 10)
            answer = await send(client, request)
            await asyncio.sleep(0.5)
            before = sent
            await asyncio.sleep(0.2)
            assert sent == before < 50_000_000, "nothing holds back the sender"
            read = 0
            while read < 1_000_000:
                read += len(await answer.read())
            answer.close()

    with talk(flood) as server:
        asyncio.run(use(server.url))


def test_closing_with_requests() -> None:
    """Closing ends the requests that are running. Those that wait still end, and leave no connection open."""
    has_ended = threading.Event()

    def held(peer: Peer) -> None:
        while b"/held" not in peer.head():
            peer.send(OK)
        peer.hold()

    def noted(peer: Peer) -> None:
        while peer.head():
            peer.send(OK)
        has_ended.set()

    async def use(url: str, other: str) -> None:
        client = AsyncioWebClient(max_connections=1)
        success(await client.get(url))
        held, waiting = (asyncio.create_task(client.get(url)) for url in (f"{url}held", other))
        await asyncio.sleep(0.1)
        await client.close()
        assert error(await held).message() == "the connection was closed"
        success(await waiting)
        await asyncio.sleep(0.1)
        assert has_ended.wait(5)

    with talk(held) as server, talk(noted) as other:
        asyncio.run(use(server.url, other.url))
        assert server.accepted == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n",
        OK.replace(b"2\r", b"9\r"),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno",
    ],
    ids=["nothing", "not HTTP", "half", "no chunk"],
)
def test_failures_do_not_wait_for_the_garbage_collector(answer: bytes) -> None:
    """A request that failed leaves no reference cycle, which would keep what has arrived."""

    async def use(url: str) -> int:
        async with AsyncioWebClient() as client:
            error(await client.get(url))
            return sum(isinstance(found, AsyncioAnswer) for found in gc.get_objects())

    with talk(answering(answer)) as server:
        gc.collect()
        gc.disable()
        try:
            assert asyncio.run(use(server.url)) == 0
        finally:
            gc.enable()


class BusyLoop(asyncio.SelectorEventLoop):
    """An event loop that is busy whenever a connection has been made."""

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        await super().sock_connect(sock, address)
        await asyncio.sleep(0.05)


@pytest.mark.filterwarnings("error")
def test_a_connection_that_is_reset_at_once() -> None:
    """A server that resets a connection as soon as it is there leaves no socket open here."""

    def reset(peer: Peer) -> None:
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    async def use(url: str) -> None:
        async with AsyncioWebClient() as client:
            assert error(await client.get(url)).message() == "the connection was closed"

    with talk(reset) as server, asyncio.Runner(loop_factory=BusyLoop) as runner:
        runner.run(use(server.url))
        gc.collect()


def test_a_host_header_of_the_caller(kind: Kind) -> None:
    """A Host header of the caller's replaces ours, however it is written."""
    heads: list[bytes] = []

    def note(peer: Peer) -> None:
        heads.append(peer.head())
        peer.send(OK)

    async def use(url: str) -> None:
        async with kind(headers={"host": "other.example"}) as client:
            success(await client.get(url))

    with talk(note) as server:
        asyncio.run(use(server.url))
    assert re.findall(rb"(?im)^host: *(.*)\r$", heads[0]) == [b"other.example"]


def test_an_answer_that_comes_with_the_end_of_the_handshake(kind: Kind, tmp_path: Path) -> None:
    """An answer that a server sends before it has read the request is the answer to that, also with TLS."""
    context = server_context(self_signed(tmp_path))
    context.maximum_version = ssl.TLSVersion.TLSv1_2  # there, the server ends the handshake

    def hasty(peer: Peer) -> None:
        arriving, leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(arriving, leaving, server_side=True)
        while True:
            arriving.write(peer.socket.recv(65_536))
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                peer.send(leaving.read())
        tls.write(OK)
        peer.send(leaving.read())
        peer.hold()

    async def use(url: str) -> bytes:
        async with kind(verify=str(tmp_path / "cert.pem"), timeout=5) as client:
            return success(await client.get(url)).raw_data()

    with talk(hasty) as server:
        assert asyncio.run(use(server.url.replace("http:", "https:"))) == b"ok"


@pytest.mark.parametrize("seconds", [0, 0.3])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tls_that_ends_while_its_reader_waits(
    kind: Kind, tmp_path: Path, seconds: float, version: ssl.TLSVersion
) -> None:
    """Nothing is lost if a server closes a TLS connection while much of a body has been received and not read."""
    context = server_context(self_signed(tmp_path))
    context.maximum_version = version
    body = random.Random(1).randbytes(2_000_000)

    async def use(url: str) -> None:
        async with kind(verify=str(tmp_path / "cert.pem")) as client:
            answer = await send(client, HTTPRequest(url, {}, RequestPolicy(url), time.monotonic() + 30))
            await asyncio.sleep(seconds)
            pieces = []
            while piece := await answer.read():
                pieces.append(piece)
                await asyncio.sleep(seconds / 10)
            answer.close()
            assert b"".join(pieces) == body

    with talk(answering(b"HTTP/1.1 200 OK\r\n\r\n" + body), context) as server:
        asyncio.run(use(server.url))


called: list[str] = []  # methods of other transports


class OtherTransport:
    """A transport that has the methods of asyncio's, and no class of asyncio, as those of uvloop."""

    def __init__(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def __getattr__(self, name: str) -> Any:
        called.append(name)
        return getattr(self._transport, name)


class OtherLoop(asyncio.SelectorEventLoop):
    """An event loop with transports of its own."""

    async def create_connection(self, protocol_factory: Any, *args: Any, **options: Any) -> Any:
        def protocol() -> Any:
            made = protocol_factory()
            own = made.connection_made
            made.connection_made = lambda transport: own(OtherTransport(transport))
            return made

        return await super().create_connection(protocol, *args, **options)


def test_transports_of_other_event_loops(site: Server) -> None:
    """An event loop may have transports of its own, as uvloop has."""

    async def use() -> None:
        async with AsyncioWebClient() as client:
            for _ in range(2):
                assert success(await client.get(f"{site.url}/moved")).raw_data() == b"x"

    with asyncio.Runner(loop_factory=OtherLoop) as runner:
        runner.run(use())


def test_tls_of_other_event_loops_is_not_paused(tmp_path: Path) -> None:
    """Uvloop drops what a paused TLS connection holds when the server closes it, so it is not paused."""
    context = server_context(self_signed(tmp_path))

    async def use(url: str) -> int:
        async with AsyncioWebClient(verify=str(tmp_path / "cert.pem")) as client:
            answer = await send(client, HTTPRequest(url, {}, RequestPolicy(url), time.monotonic() + 30))
            await asyncio.sleep(0.3)
            size = 0
            while piece := await answer.read():
                size += len(piece)
            return size

    called.clear()
    large = OK.replace(b"2\r", b"2000000\r")[:-2] + bytes(2_000_000)
    with talk(answering(large), context) as server, asyncio.Runner(loop_factory=OtherLoop) as runner:
        assert runner.run(use(server.url)) == 2_000_000
    assert "write" in called
    assert "pause_reading" not in called


async def send(client: AsyncioWebClient | AiohttpWebClient, request: HTTPRequest) -> AsyncHTTPAnswer:
    """Make one request, without the rest of a fetch."""
    with client._connections(Fetch(client, request.url)):
        return await client.send(request)


def test_answers_that_nobody_asked_for(kind: Kind) -> None:
    """Bytes that follow an answer on a kept connection end it: they are no answer to the next request."""

    def talkative(peer: Peer) -> None:
        for body in (b"ok", b"ko"):
            if peer.head():
                peer.send(OK.replace(b"ok", body))
                time.sleep(0.05)
                peer.send(OK.replace(b"ok", b"no"))

    async def use(url: str) -> None:
        async with kind() as client:
            for _ in range(3):
                assert success(await client.get(url)).raw_data() == b"ok"
                await asyncio.sleep(0.1)

    with talk(talkative) as server:
        asyncio.run(use(server.url))
        assert server.accepted == 3


def test_idle_connections_are_bounded(kind: Kind) -> None:
    """A client that goes from host to host keeps no more connections open than it may use at once."""

    async def use(servers: list[Server]) -> None:
        async with kind(max_connections=2) as client:
            before = open_sockets()
            for server in servers * 2:
                success(await client.get(f"{server.url}/x"))
            await asyncio.sleep(0.05)
            ours = open_sockets() - before
            assert ours <= 2 * 2, "each has two ends in this process"

    with ExitStack() as stack:
        pages: dict[str, tuple[int, dict[str, str], bytes]] = {"/x": (200, {}, b"x")}
        asyncio.run(use([stack.enter_context(serve(pages)) for _ in range(6)]))


def test_a_header_with_a_line_end(kind: Kind, site: Server) -> None:
    """No header can add another one, wherever it comes from."""

    async def use() -> str:
        async with kind() as client:
            with observing(Conditions()):
                return error(await client.get(f"{site.url}/x")).message()

    site.requests.clear()
    assert asyncio.run(use())
    assert site.requests == []


class Conditions:
    """An observer that adds a malicious header."""

    def headers_for(self, url: str) -> dict[str, str]:
        return {"If-None-Match": '"x"\r\nX-Injected: 1'}

    async def start(self, url: str) -> None: ...

    def end(self, url: str, answer: Exchange | None) -> None: ...

    def record(self, exchange: Exchange) -> None: ...


@pytest.mark.parametrize("dead", ["127.0.0.9", "::1"])
def test_several_addresses(kind: Kind, site: Server, dead: str) -> None:
    """If a host has several addresses, and nobody answers at the first, the next one is tried."""
    port = int(site.url.rpartition(":")[2])

    async def use() -> bytes:
        async with kind(_resolve=resolving({"h.example": [dead, "127.0.0.1"]})) as client:
            policy = RequestPolicy(f"http://h.example:{port}/")
            with applying(policy):
                return success(await client.get(f"http://h.example:{port}/x")).raw_data()

    assert asyncio.run(use()) == b"x"
