"""Servers of raw sockets, and all clients with one interface, to test what real servers and networks do."""

from __future__ import annotations

import asyncio
import contextvars
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from usp.web_client.abstract_client import (
    AbstractWebClientResponse,
    AbstractWebClientSuccessResponse,
    WebClientErrorResponse,
)
from usp.web_client.aiohttp_client import AiohttpWebClient
from usp.web_client.asyncio_client import AsyncioWebClient
from usp.web_client.policy import RequestPolicy, applying
from usp.web_client.requests_client import RequestsWebClient

Handler = Callable[["Peer"], None]


class Peer:
    """One connection, as the server has it."""

    def __init__(self, connection: socket.socket, stop: threading.Event) -> None:
        self.socket = connection
        self._stop = stop

    def head(self) -> bytes:
        """The next request; empty if there is none."""
        head = b""
        while b"\r\n\r\n" not in head and (data := self.socket.recv(65_536)):
            head += data
        return head

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def hold(self) -> None:
        """Keep silent until the test is over."""
        self._stop.wait(10)

    def drip(self, piece: bytes, seconds: float = 0.02) -> None:
        """Send a piece again and again until the test is over."""
        while not self._stop.wait(seconds):
            self.send(piece)


class RawServer:
    """A server that hands each connection to a function."""

    def __init__(self, listener: socket.socket, scheme: str) -> None:
        self.port: int = listener.getsockname()[1]
        self.url = f"{scheme}://127.0.0.1:{self.port}/"
        self.accepted = 0


@contextmanager
def talk(handler: Handler, context: ssl.SSLContext | None = None, scheme: str = "http") -> Iterator[RawServer]:
    """A server on loopback. What its clients do wrong, or cut short, does not matter to it."""
    stop = threading.Event()
    connections: list[socket.socket] = []
    threads: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.02)
        server = RawServer(listener, "https" if context else scheme)

        def serve(connection: socket.socket) -> None:
            with suppress(OSError):
                if context is not None:
                    connection = context.wrap_socket(connection, server_side=True)
                    connections.append(connection)
                handler(Peer(connection, stop))
            connection.close()

        def run() -> None:
            while not stop.is_set():
                with suppress(TimeoutError):
                    connection, _ = listener.accept()
                    connection.settimeout(5)
                    server.accepted += 1
                    connections.append(connection)
                    threads.append(threading.Thread(target=serve, args=(connection,), daemon=True))
                    threads[-1].start()

        threads.append(threading.Thread(target=run, daemon=True))
        threads[-1].start()
        try:
            yield server
        finally:
            stop.set()
            threads[0].join()
            for connection in connections:
                with suppress(OSError):
                    socket.socket.shutdown(connection, socket.SHUT_RDWR)
            for thread in threads:
                thread.join()
            for connection in connections:
                connection.close()


def answering(answer: bytes, *, then: Callable[[Peer], None] | None = None) -> Handler:
    """A handler that sends these bytes to each request, and then does something else or closes."""

    def handle(peer: Peer) -> None:
        if peer.head():
            peer.send(answer)
            if then is not None:
                then(peer)

    return handle


@contextmanager
def full_backlog() -> Iterator[str]:
    """The URL of a port to which no connection can be made, nor is refused."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = []
        for _ in range(4):
            connection = socket.socket()
            connection.setblocking(False)
            connection.connect_ex(listener.getsockname())
            waiting.append(connection)
        time.sleep(0.05)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            for connection in waiting:
                connection.close()


def resolving(addresses: dict[str, Sequence[str]]) -> Callable[[str, int], Any]:
    """A look-up of names that are in a table, and of no others."""

    def resolve(host: str, port: int) -> Any:
        found = [host] if host[-1:].isdigit() else addresses.get(host) or ()
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [info for text in found for info in socket.getaddrinfo(text, port, type=socket.SOCK_STREAM)]

    return resolve


class Blocking:
    """The client of requests."""

    def __init__(self, timeout: Any = 5, **options: Any) -> None:
        self.client = RequestsWebClient(**options)
        self.client.set_timeout(timeout)

    def get(self, url: str, policy: RequestPolicy | None = None) -> AbstractWebClientResponse:
        if policy is None:
            return self.client.get(url)
        with applying(policy):
            return self.client.get(url)

    def close(self) -> None:
        self.client.close()


class Awaiting:
    """The client on asyncio, in an event loop of its own."""

    kind: type[AiohttpWebClient | AsyncioWebClient] = AsyncioWebClient

    def __init__(self, timeout: Any = 5, **options: Any) -> None:
        self.runner = asyncio.Runner()
        self.client = self.kind(timeout=timeout, **options)

    def get(self, url: str, policy: RequestPolicy | None = None) -> AbstractWebClientResponse:
        context = contextvars.copy_context()
        if policy is None:
            return self.runner.run(self.client.get(url), context=context)
        with applying(policy):
            return self.runner.run(self.client.get(url), context=contextvars.copy_context())

    def close(self) -> None:
        self.runner.run(self.client.close())
        self.runner.close()


class AwaitingAiohttp(Awaiting):
    """The client of aiohttp, in the same way."""

    kind = AiohttpWebClient


AnyClient = Blocking | Awaiting
Make = Callable[..., AnyClient]
CLIENTS: dict[str, type[AnyClient]] = {"requests": Blocking, "asyncio": Awaiting, "aiohttp": AwaitingAiohttp}


@contextmanager
def making(name: str) -> Iterator[Make]:
    """A function that makes clients of one kind, which are closed at the end."""
    made: list[AnyClient] = []

    def make(**options: Any) -> AnyClient:
        made.append(CLIENTS[name](**options))
        return made[-1]

    yield make
    for client in made:
        client.close()


def success(response: AbstractWebClientResponse) -> AbstractWebClientSuccessResponse:
    assert isinstance(response, AbstractWebClientSuccessResponse), vars(response)
    return response


def error(response: AbstractWebClientResponse) -> WebClientErrorResponse:
    assert isinstance(response, WebClientErrorResponse), vars(response)
    return response


def self_signed(folder: Path) -> Path:
    """A certificate for 127.0.0.1 and its key, in one file, signed by nobody else."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl")
    path = folder / "certificate.pem"
    wanted = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1"
    where = "-addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out cert.pem"
    subprocess.run([openssl, *wanted.split(), *where.split()], cwd=folder, check=True, capture_output=True)
    path.write_bytes((folder / "key.pem").read_bytes() + (folder / "cert.pem").read_bytes())
    return path


def server_context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context
