"""Serves sites on loopback, from a process of its own, which prints their homepages in one line.

`servers.py threads FOLDER [PORT]` serves the gzipped sitemaps of a folder, from threads.

`servers.py delayed SECONDS FOLDER` serves them from one event loop; `servers.py delayed SECONDS NUMBER` serves NUMBER
sites of one page, each at an address of its own. A response leaves that many seconds after its request came, and waits
for nothing else: all responses are built beforehand, so the loop has next to nothing to do.

`servers.py pages SECONDS NUMBER` serves one site in the same way: a sitemap, and NUMBER pages that it lists.

`servers.py small FOLDER NUMBER` serves NUMBER sites in the same way, without a delay: each has an address of its own,
and two to five of the sitemaps of a folder. Their documents have an ETag, and never change.

The process ends when its standard input does, so that it never outlives the process that started it.
"""

from __future__ import annotations

import asyncio
import resource
import selectors
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from pathlib import Path
from threading import Thread
from typing import cast

_XMLNS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_XML, _GZIP, _TEXT, _HTML = "application/xml", "application/gzip", "text/plain", "text/html; charset=utf-8"
#: The last byte of an address that starts with 127; all of those are loopback.
_HOSTS_PER_NETWORK = 250

#: Sites of the kind "small" have this many sitemaps, in turn.
SMALL_SITEMAPS = (2, 3, 4, 5)

#: Headers of the responses of small sites: nothing changes there.
VALIDATORS = 'ETag: "1"\r\nLast-Modified: Mon, 06 Jan 2025 10:00:00 GMT\r\n'

#: The body and content type of each path.
Bodies = dict[str, tuple[bytes, str]]


def site(base: str, folder: Path, most: int | None = None) -> Bodies:
    """Return a robots.txt, an index, and the files of a folder, or the first of them."""
    names = sorted(path.name for path in folder.iterdir())[:most]
    entries = "".join(f"<sitemap><loc>{base}{name}</loc></sitemap>\n" for name in names)
    return {
        "/robots.txt": _robots(f"{base}index.xml"),
        "/index.xml": (f"<sitemapindex {_XMLNS}>\n{entries}</sitemapindex>\n".encode(), _XML),
        **{f"/{name}": ((folder / name).read_bytes(), _GZIP) for name in names},
    }


def page_site(base: str) -> Bodies:
    """Return a robots.txt, and a sitemap of one page."""
    sitemap = f"<urlset {_XMLNS}>\n<url><loc>{base}page</loc></url>\n</urlset>\n"
    return {"/robots.txt": _robots(f"{base}sitemap.xml"), "/sitemap.xml": (sitemap.encode(), _XML)}


def listed_pages(base: str, count: int) -> Bodies:
    """Return a robots.txt, a sitemap, and its pages of some 4 kB, with all that `usp check --probe` looks at."""
    names = [f"pages/{number}" for number in range(count)]
    entries = "".join(f"<url><loc>{base}{name}</loc></url>\n" for name in names)
    words = "<p>Some words of a page, with <a href='/pages/1'>a link</a>, as pages have them.</p>\n" * 50

    def html(name: str) -> bytes:
        head = f"<title>{name}</title><meta name='robots' content='index'><link rel='canonical' href='{base}{name}'>"
        text = f"<!doctype html><html lang='en'><head>{head}</head><body><h1>{name}</h1>{words}</body></html>"
        return text.encode()

    return {
        "/robots.txt": _robots(f"{base}sitemap.xml"),
        "/sitemap.xml": (f"<urlset {_XMLNS}>\n{entries}</urlset>\n".encode(), _XML),
        **{f"/{name}": (html(name), _HTML) for name in names},
    }


def _robots(sitemap: str) -> tuple[bytes, str]:
    return f"User-agent: *\nSitemap: {sitemap}\n".encode(), _TEXT


# Threads


def serve_with_threads(folder: Path, port: int = 0) -> None:
    """Serve a folder until standard input ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16  # head and body in one write

        def do_GET(self) -> None:
            status = 200 if self.path in bodies else 404
            body, content_type = bodies.get(self.path, (b"not here", _TEXT))
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        base = f"http://127.0.0.1:{server.server_port}/"
        bodies = site(base, folder)
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        print(base, flush=True)
        sys.stdin.read()


# Delays


def response(body: bytes, content_type: str, status: str = "200 OK", validators: str = "") -> bytes:
    """Return a whole response, after which the connection stays open."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n{validators}Content-Length: {len(body)}\r\n\r\n"
    return head.encode("ascii") + body


_UNCHANGED = f"HTTP/1.1 304 Not Modified\r\n{VALIDATORS}\r\n".encode("ascii")
_NOT_FOUND = response(b"not here", _TEXT, "404 Not Found")


class Connection(asyncio.Protocol):
    """Answers the requests of one connection. They have no bodies."""

    def __init__(self, responses: dict[bytes, bytes], seconds: float) -> None:
        self._responses = responses
        self._seconds = seconds
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport to write to."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Schedule a response to each request that is complete."""
        *heads, self._received = (self._received + data).split(b"\r\n\r\n")
        for head in heads:
            found = self._responses.get(head.split(b" ", 2)[1], _NOT_FOUND)
            if b'\r\nIf-None-Match: "1"' in head:
                found = _UNCHANGED
            if self._seconds:
                asyncio.get_running_loop().call_later(self._seconds, self._write, found)
            else:
                self._write(found)

    def _write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)


def addresses(count: int) -> Iterator[str]:
    """Yield that many loopback addresses."""
    for number in range(count):
        network, host = divmod(number, _HOSTS_PER_NETWORK)
        yield f"127.0.{network + 1}.{host + 1}"


async def serve_with_delay(
    seconds: float, sites: Iterable[tuple[str, Callable[[str], Bodies]]], validators: str = ""
) -> None:
    """Serve sites, each from an address, until standard input ends."""
    loop = asyncio.get_running_loop()
    homepages = []
    for address, bodies_of in sites:
        listening = socket.create_server((address, 0), backlog=512)
        base = "http://{}:{}/".format(*listening.getsockname())
        responses = {path.encode(): response(*body, validators=validators) for path, body in bodies_of(base).items()}
        await loop.create_server(partial(Connection, responses, seconds), sock=listening)
        homepages.append(base)
    print(*homepages, flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


def small_sites(folder: Path, count: int) -> Iterator[tuple[str, Callable[[str], Bodies]]]:
    """Yield the addresses of small sites, and what they serve."""
    for address, sitemaps in zip(addresses(count), cycle(SMALL_SITEMAPS), strict=False):
        yield address, partial(site, folder=folder, most=sitemaps)


def precise_loop() -> asyncio.AbstractEventLoop:
    """Return a loop that waits to the microsecond, for fewer than a thousand sockets: epoll counts milliseconds."""
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


def main() -> None:
    """Serve what the command line says."""
    kind, first, *others = sys.argv[1:]
    if kind == "threads":
        serve_with_threads(Path(first), *map(int, others))
        return
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # each site has a socket, and each connection
    (last,) = others
    if kind == "small":
        asyncio.run(serve_with_delay(0, small_sites(Path(first), int(last)), VALIDATORS))
    elif kind == "pages":
        with asyncio.Runner(loop_factory=precise_loop) as runner:
            bodies = partial(listed_pages, count=int(last))
            runner.run(serve_with_delay(float(first), [("127.0.0.1", bodies)]))
    elif last.isdecimal():
        asyncio.run(serve_with_delay(float(first), ((address, page_site) for address in addresses(int(last)))))
    else:
        with asyncio.Runner(loop_factory=precise_loop) as runner:
            runner.run(serve_with_delay(float(first), [("127.0.0.1", partial(site, folder=Path(last)))]))


if __name__ == "__main__":
    main()
