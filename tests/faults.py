"""What the fault tests share: a raw server that is scripted path by path, both drivers, and a check for leaks.

A handler is a plain function that gets a `Request` and writes to its socket whatever it likes. When it returns, the
connection is kept for the next request; `HangUp` closes it.
"""

from __future__ import annotations

import asyncio
import gc
import gzip
import os
import re
import socket
import ssl
import struct
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest

import usp.aio
import usp.tree
from clocks import undisturbed, within
from support import SITEMAP_XMLNS, index, urlset
from usp.limits import Limits
from usp.objects.sitemap import AbstractSitemap, IndexWebsiteSitemap, InvalidSitemap
from usp.politeness import Politeness
from usp.web_client.asyncio_client import AsyncioWebClient
from usp.web_client.requests_client import RequestsWebClient

_REQUEST_LINE = re.compile(rb"[A-Z]+ (\S+) HTTP/1\.1\r\n")
_SERVER_SECONDS = 30.0  # no handler waits longer, whatever its client does

#: A sitemap of one page, and its first half.
START = f"<urlset {SITEMAP_XMLNS}><url><loc>http://x/bad</loc></url>".encode()
WHOLE = START + b"</urlset>"
#: Far more than a test may take.
PATIENT = Limits(request_seconds=30, tree_seconds=60)
#: Two tries, one right after the other.
QUICK = Politeness(retry_seconds=0.01, tries=2)


class HangUp(Exception):
    """Raised by a handler to close its connection."""


class Request:
    """A request that arrived: its socket, its path, and how often that path was requested so far."""

    def __init__(self, server: FaultServer, connection: socket.socket, path: str, number: int) -> None:
        self.server = server
        self.connection = connection
        self.path = path
        self.number = number

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def pause(self, seconds: float = _SERVER_SECONDS) -> None:
        """Do nothing for some seconds, or until the server stops."""
        if self.server.stopped.wait(seconds):
            raise HangUp


Handler = Callable[[Request], None]


def head(status: int = 200, **headers: object) -> bytes:
    lines = [f"HTTP/1.1 {status} Words", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def ok(body: str | bytes, **headers: object) -> Handler:
    """A whole answer; `{base}` in its body is the server's URL."""
    return status(200, body, **headers)


def status(code: int, body: str | bytes = b"", **headers: object) -> Handler:
    data = body.encode() if isinstance(body, str) else body

    def handler(request: Request) -> None:
        base = request.server.url
        content = data.replace(b"{base}", base.encode())
        filled = {name: str(value).replace("{base}", base) for name, value in headers.items()}
        length = {} if code in (204, 304) else {"Content_Length": len(content)}
        request.send(head(code, **(length | filled)) + content)

    return handler


def reset(request: Request) -> None:
    """Reset the connection, as a crashed host does."""
    request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raise HangUp


def silent(request: Request) -> None:
    """Accept a request, and never answer it."""
    request.pause()


def once(first: Handler) -> Handler:
    """A handler that fails the first time, and then answers well."""

    def handler(request: Request) -> None:
        (first if request.number == 1 else ok(WHOLE))(request)

    return handler


class FaultServer:
    """A server with a script for each path; it remembers what was requested, and when."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        host: str,
        context: ssl.SSLContext | None,
        default: Handler,
        greet: Handler | None,
    ) -> None:
        self.handlers = dict(handlers)
        self.stopped = threading.Event()
        self.asked: list[tuple[float, str]] = []
        self._undisturbed: defaultdict[str, list[float]] = defaultdict(list)
        self.accepted = 0
        self.threads: set[threading.Thread] = set()
        self._default = default
        self._context = context
        self._greet = greet
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._connections: set[socket.socket] = set()
        self._listener = socket.create_server((host, 0), backlog=512)
        self._listener.settimeout(0.02)
        self.url = f"{'https' if context else 'http'}://{host}:{self._listener.getsockname()[1]}"

    def count(self, path: str) -> int:
        """How often a path was requested."""
        return self._counts[path]

    def times(self, path: str) -> list[float]:
        """When a path was requested."""
        return [at for at, asked in self.asked if asked == path]

    def undisturbed_times(self, path: str) -> list[float]:
        """Return when a path was asked for, by a clock that stands still while a process waits for a core."""
        return self._undisturbed[path]

    def files(self) -> set[int]:
        """The server's own open files."""
        with self._lock:
            return {connection.fileno() for connection in (self._listener, *self._connections)}

    def start(self) -> None:
        self._run_in_thread(self._accept)

    def stop(self) -> None:
        self.stopped.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes whoever waits for a connection
        while self.threads:
            with self._lock:
                threads = list(self.threads)
                for connection in self._connections:
                    with suppress(OSError):
                        socket.socket.shutdown(connection, socket.SHUT_RDWR)
            for thread in threads:
                thread.join(0.05)
                if not thread.is_alive():
                    self.threads.discard(thread)
        self._listener.close()

    def _run_in_thread(self, function: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=function, args=arguments, daemon=True, name="fault server")
        with self._lock:
            self.threads = {old for old in self.threads if old.is_alive()} | {thread}
            thread.start()

    def _accept(self) -> None:
        while not self.stopped.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                continue
            self.accepted += 1
            connection.settimeout(_SERVER_SECONDS)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._connections.add(connection)
            self._run_in_thread(self._converse, connection)

    def _converse(self, connection: socket.socket) -> None:
        spoken = connection
        try:
            if self._greet is not None:
                self._greet(Request(self, connection, "", self.accepted))
            if self._context is not None:
                spoken = self._context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
                with self._lock:
                    self._connections = self._connections - {connection} | {spoken}
                spoken.do_handshake()
            received = b""
            while not self.stopped.is_set():
                while b"\r\n\r\n" not in received:
                    if not (piece := spoken.recv(65_536)):
                        return
                    received += piece
                    if not received.startswith(b"G"):
                        spoken.sendall(head(400, Connection="close") + b"This is a server of plain HTTP")
                        raise HangUp
                request, _, received = received.partition(b"\r\n\r\n")
                self._answer(spoken, request + b"\r\n")
        except (OSError, HangUp):
            pass
        finally:
            with self._lock:
                self._connections.discard(spoken)
                spoken.close()

    def _answer(self, connection: socket.socket, request: bytes) -> None:
        line = _REQUEST_LINE.match(request)
        assert line is not None, request
        path = line[1].decode()
        with self._lock:
            self.asked.append((time.monotonic(), path))
            self._undisturbed[path].append(undisturbed())
            self._counts[path] += 1
            number = self._counts[path]
        handler = self.handlers.get(path.partition("?")[0], self._default)
        handler(Request(self, connection, path, number))


@contextmanager
def serve_faults(
    handlers: Mapping[str, Handler],
    host: str = "127.0.0.1",
    context: ssl.SSLContext | None = None,
    default: Handler = status(404),  # noqa: B008 -- a function, of which one is enough
    greet: Handler | None = None,
) -> Iterator[FaultServer]:
    """A server for the time of a context. `greet` gets each new connection first."""
    server = FaultServer(handlers, host, context, default, greet)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def nothing_left(*servers: FaultServer, seconds: float = 10.0, collects: bool = True) -> Iterator[None]:
    """Fail if new threads or open files are left, other than a server's own."""
    gc.freeze()  # what is here already need not be gone through again
    try:
        threads, files = set(threading.enumerate()), _open_files(servers)
        yield
        ends = time.monotonic() + seconds
        while True:
            if collects:
                gc.collect()
            left_threads = set(threading.enumerate()) - threads - {thread for s in servers for thread in s.threads}
            left_files = set(_open_files(servers).items()) - set(files.items())
            if not left_threads and not left_files:
                return
            assert time.monotonic() < ends, f"left behind: {left_threads or ''} {left_files or ''}"
            time.sleep(0.01)
    finally:
        gc.unfreeze()


def _open_files(servers: tuple[FaultServer, ...]) -> dict[int, str]:
    found = {}
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the listing's own
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
    own = {file for server in servers for file in server.files()}
    return {file: target for file, target in found.items() if file not in own}


@dataclass(frozen=True)
class Driver:
    """A front door. Each tree gives up quickly, and leaves no task behind."""

    name: str

    def client(self, **options: Any) -> Any:
        """A client of its kind."""
        return RequestsWebClient(**options) if self.name == "threads" else AsyncioWebClient(**options)

    def tree(self, url: str, **options: Any) -> IndexWebsiteSitemap:
        defaults: dict[str, Any] = {
            "use_known_paths": False,
            "limits": Limits(request_seconds=0.7, tree_seconds=15),
            "politeness": Politeness(retry_seconds=0.01),
        }
        options = defaults | options
        if self.name == "threads":
            return usp.tree.sitemap_tree_for_homepage(url, **options)
        return asyncio.run(self._tree(url, options))

    async def _tree(self, url: str, options: dict[str, Any]) -> IndexWebsiteSitemap:
        try:
            return await usp.aio.sitemap_tree_for_homepage(url, **options)
        finally:
            assert asyncio.all_tasks() == {asyncio.current_task()}, "tasks are left behind"


DRIVERS = [Driver("threads"), Driver("asyncio")]
each_driver = pytest.mark.parametrize("driver", DRIVERS, ids=[driver.name for driver in DRIVERS])

#: The good sitemaps of each faulty site, in their order, and what stands between the inner two.
BAD = "/bad.xml"


def good_site(bad: str = "{base}" + BAD) -> dict[str, Handler]:
    """A site of four good sitemaps, with a bad one in the middle."""
    return {
        "/robots.txt": ok("Sitemap: {base}/first.xml\nSitemap: {base}/index.xml\nSitemap: {base}/last.xml.gz\n"),
        "/first.xml": ok(urlset("http://x/first")),
        "/index.xml": ok(index("{base}/before.xml", bad, "{base}/behind.txt")),
        "/before.xml": ok(urlset("http://x/before")),
        "/behind.txt": ok("http://x/behind\n"),
        "/last.xml.gz": ok(gzip.compress(urlset("http://x/last").encode())),
    }


@dataclass(frozen=True)
class Visit:
    """The bad sitemap of a site whose good ones were all fetched, and the server."""

    sitemap: AbstractSitemap
    server: FaultServer
    tree: IndexWebsiteSitemap

    @property
    def reason(self) -> str:
        assert isinstance(self.sitemap, InvalidSitemap), self.sitemap
        return self.sitemap.reason


def visit(
    driver: Driver,
    handler: Handler | None = None,
    *,
    bad: str = "{base}" + BAD,
    seconds: float = 5.0,
    more: Mapping[str, Handler] | None = None,
    default: Handler | None = None,
    beside: Sequence[FaultServer] = (),
    **options: Any,
) -> Visit:
    """Fetch a site with one bad sitemap, in time, with all others intact and nothing left behind."""
    handlers = good_site(bad) | ({BAD: handler} if handler else {}) | dict(more or {})
    with ExitStack() as stack:
        server = stack.enter_context(serve_faults(handlers, default=default or status(404)))
        stack.enter_context(nothing_left(server, *beside))
        stack.enter_context(within(seconds))
        tree = driver.tree(server.url, **options)
    return Visit(bad_one(tree), server, tree)


def bad_one(tree: IndexWebsiteSitemap) -> AbstractSitemap:
    """The bad sitemap, between those of a good site, which must all be there."""
    first, between, last = tree.sub_sitemaps[0].sub_sitemaps
    before, bad, behind = between.sub_sitemaps
    for sitemap, name in ((first, "first"), (before, "before"), (behind, "behind"), (last, "last")):
        assert [page.url for page in sitemap.pages] == [f"http://x/{name}"], sitemap
        assert sitemap.problems == ()
    return bad


def described(sitemap: AbstractSitemap) -> str:
    """Why a sitemap could not be fetched; else its pages, and the codes of its problems."""
    if isinstance(sitemap, InvalidSitemap):
        return sitemap.reason
    return " ".join([f"{len(sitemap.pages)} pages", *sorted({problem.code for problem in sitemap.problems})])


def outline(sitemap: AbstractSitemap) -> list[str]:
    lines = [f"{type(sitemap).__name__} {sitemap.url} {[page.url for page in sitemap.pages]}"]
    return lines + ["  " + line for child in sitemap.sub_sitemaps for line in outline(child)]
