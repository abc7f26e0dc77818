"""Serves a crowd of sites on loopback: many small ones, huge ones, and bad ones of many kinds.

`crowd.py SECONDS [KIND ...]` runs as a process of its own. It prints its port, and ends when its standard input does.
Each site has an address of its own, 127.x.y.z, all at one port: `Crowd.url` gives its homepage. What a site serves
depends on its address alone, so the sites take no memory. Small sites answer after SECONDS. The large documents of the
kinds that are named are made before the port is printed.

A site may have any name as well. The server counts the requests that it answers at the same moment, by the name of
their host, by the last two parts of it, and by the address; `http://127.0.0.1:PORT/most` has the most of each.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import resource
import socket
import struct
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

if not __package__:
    sys.path.append(str(Path(__file__).resolve().parents[1]))

from bench.documents import HOSTILE, MB, urlset  # after the line that makes it importable

_XMLNS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_URLSET, _INDEX = f"<urlset {_XMLNS}>", f"<sitemapindex {_XMLNS}>"
_FIRST_KIND = 128  # the second part of an address: small sites have less
_PER_KIND = 1 << 16
_HUGE_SITEMAPS, _LARGE_SITEMAPS, _HUGE_PAGES = 20, 3, 50_000
_MANY_CHILDREN, _MANY_LINES, _MANY_BAD = 50_000, 200_000, 250_000
_BOMB_BYTES = 400 * MB
_HOSTILE_BYTES = 40 * MB
_PLAIN_BYTES = 40 * MB

#: Kinds of sites, besides small ones. The number of a kind is in its addresses.
KINDS = (
    "huge",  # 20 gzipped sitemaps of 50,000 pages
    "large",  # 3 of them
    "plain",  # one sitemap of 40 MB, not compressed
    "children",  # an index of 50,000 sitemaps
    "lines",  # a robots.txt with 200,000 Sitemap lines
    "imperfect",  # 250,000 entries, each with several problems
    "bomb",  # a sitemap that inflates to 400 MB
    "text",  # a text of 36 MB
    "attributes",  # a tag with 4 million attributes
    "depth",  # 6 million elements in each other
    "indexes",  # indexes that each list 1,000 more of them, without an end
    "hole",  # accepts, and never answers
    "drip",  # sends a byte of its header a second
    "stream",  # a body without an end
    "errors",  # 500
    "reset",  # resets the connection
    "truncated",  # the connection ends in the middle of a body
    "redirects",  # redirects without an end
    "garbage",  # something that is not HTTP
    "noise",  # something that is no sitemap
    "missing",  # 404 for everything
)
#: Those of a soak. "refused" is a port where nobody listens, "name" a name that does not exist.
FAULTS = (
    *("hole", "drip", "stream", "errors", "reset", "truncated", "redirects", "garbage", "noise", "missing"),
    *("refused", "name"),
)


@dataclass(frozen=True)
class Crowd:
    """The homepages of a server's sites."""

    port: int

    def url(self, number: int, kind: str = "small") -> str:
        """Return the homepage of a site."""
        if kind == "name":
            return f"http://site{number}.invalid/"
        first, rest = divmod(number, _PER_KIND)
        if kind == "refused":
            return f"http://127.127.{rest >> 8}.{rest & 255}:9/"
        if kind != "small":
            first = _FIRST_KIND + KINDS.index(kind)
        return f"http://127.{first}.{rest >> 8}.{rest & 255}:{self.port}/"


def _robots(*urls: str) -> bytes:
    return "".join(f"Sitemap: {url}\n" for url in urls).encode()


def _listed(urls: Iterable[str]) -> bytes:
    return f"{_INDEX}{''.join(f'<sitemap><loc>{url}</loc></sitemap>' for url in urls)}</sitemapindex>".encode()


def _small(base: str, name: str, pages: int = 3) -> bytes:
    listed = "".join(f"<url><loc>{base}{name}{page}</loc></url>" for page in range(pages))
    return f"{_URLSET}{listed}</urlset>".encode()


def _imperfect() -> Iterator[bytes]:
    for page in range(_MANY_BAD):
        yield (
            f"<url><loc> http://example.org/a b{page}?x=1&y=2</loc><lastmod>yesterday</lastmod>"
            f"<priority>high</priority><changefreq>often</changefreq>"
        ).encode()


def _hostile(kind: str) -> bytes:
    head = f'{_URLSET[:-1]} xmlns:news="http://www.google.com/schemas/sitemap-news/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml">'
    return head.encode() + b"".join(HOSTILE[kind](_HOSTILE_BYTES)) + b"</urlset>"


def _bomb() -> bytes:
    piece = b"<url><loc>http://example.org/</loc></url>" + b" " * (MB - 41)
    return gzip.compress(_URLSET.encode() + piece * (_BOMB_BYTES // MB), 6)


def _plain() -> bytes:
    one = urlset()
    return one + one * (_PLAIN_BYTES // len(one))  # what follows the end of the first is read all the same


#: The large document that sites of a kind serve, besides what is written here.
_BODIES: dict[str, Callable[[], bytes]] = {
    "huge": lambda: gzip.compress(urlset(_HUGE_PAGES), 6),
    "large": lambda: gzip.compress(urlset(_HUGE_PAGES), 6),
    "plain": _plain,
    "imperfect": lambda: _URLSET.encode() + b"".join(_imperfect()) + b"</urlset>",
    "bomb": _bomb,
    **{kind: partial(_hostile, kind) for kind in ("text", "attributes", "depth")},
}


@dataclass
class Counts:
    """The requests that are being answered, and the most of them at any moment."""

    running: Counter[tuple[str, str]] = field(default_factory=Counter)
    most: dict[str, int] = field(default_factory=dict)
    requests: int = 0

    def start(self, host: str, address: str) -> tuple[tuple[str, str], ...]:
        """Count a request that has come."""
        keys = ("host", host), ("domain", ".".join(host.split(".")[-2:])), ("address", address)
        self.requests += 1
        for key in keys:
            self.running[key] += 1
            self.most[key[0]] = max(self.most.get(key[0], 0), self.running[key])
        return keys

    def end(self, keys: tuple[tuple[str, str], ...]) -> None:
        """Count an answer that has left."""
        for key in keys:
            self.running[key] -= 1
            if not self.running[key]:
                del self.running[key]


class Server:
    """What the sites serve."""

    def __init__(self, port: int, seconds: float, kinds: Iterable[str]) -> None:
        self.port = port
        self.seconds = seconds
        self.counts = Counts()
        self._bodies = {kind: _BODIES[kind]() for kind in kinds if kind in _BODIES}
        crowd = Crowd(port)
        if "children" in kinds:
            base = crowd.url(0, "children")
            self._bodies["children"] = _listed(f"{base}c/{number}.xml" for number in range(_MANY_CHILDREN))
        if "lines" in kinds:
            base = crowd.url(0, "lines")
            self._bodies["lines"] = _robots(*(f"{base}c/{number}.xml" for number in range(_MANY_LINES)))

    def body(self, kind: str, base: str, path: str) -> bytes | None:
        """Return the document at a path of a site; None if there is none."""
        if path == "/robots.txt":
            return self._bodies["lines"] if kind == "lines" else _robots(f"{base}index.xml")
        if path.startswith("/c/"):
            return _small(base, path[3:], 1)
        if kind == "indexes":
            return _listed(f"{base}{path[1:].removesuffix('.xml')}-{number}.xml" for number in range(1_000))
        if kind in ("huge", "large") and path == "/index.xml":
            count = _HUGE_SITEMAPS if kind == "huge" else _LARGE_SITEMAPS
            return _listed(f"{base}{number}.xml.gz" for number in range(count))
        if kind in self._bodies:
            return self._bodies[kind]
        if path == "/index.xml":
            return _small(base, "page")
        return None


def _head(status: str, length: int | None, *more: str) -> bytes:
    size = [] if length is None else [f"Content-Length: {length}"]
    return "\r\n".join((f"HTTP/1.1 {status}", *size, *more, "", "")).encode("ascii")


class Connection(asyncio.Protocol):
    """Answers the requests of one connection. They have no bodies."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport to write to."""
        self._transport = cast(asyncio.Transport, transport)
        self._open: list[tuple[tuple[str, str], ...]] = []
        self._address = str(transport.get_extra_info("sockname")[0])
        if not self._address.startswith("127."):
            self._transport.abort()  # this is for nobody else
            return
        second = int(self._address.split(".")[1])
        self._kind = KINDS[second - _FIRST_KIND] if second >= _FIRST_KIND else "small"

    def connection_lost(self, exc: Exception | None) -> None:
        """Count requests that will have no answer."""
        for keys in self._open:
            self._server.counts.end(keys)
        self._open.clear()

    def data_received(self, data: bytes) -> None:
        """Answer each request that is complete."""
        *heads, self._received = (self._received + data).split(b"\r\n\r\n")
        for head in heads:
            line, *fields = head.decode("latin-1").split("\r\n")
            host = next(
                value.strip() for name, _, value in (one.partition(":") for one in fields) if name.lower() == "host"
            )
            path = line.split(" ", 2)[1]
            keys = self._server.counts.start(host.partition(":")[0], self._address)
            self._open.append(keys)
            answer = partial(self._answer, keys, f"http://{host}/", path)
            if self._kind == "small" and self._server.seconds:
                asyncio.get_running_loop().call_later(self._server.seconds, answer)
            else:
                answer()

    def _answer(self, keys: Any, base: str, path: str) -> None:
        if self._transport.is_closing():
            return
        if path == "/most" and self._address == "127.0.0.1":
            counts = self._server.counts
            self._write(json.dumps({**counts.most, "requests": counts.requests}).encode())
        elif (behave := _BEHAVIOURS.get(self._kind)) is not None:
            behave(self._transport, path)
            if self._kind in ("hole", "drip", "stream"):
                return  # the request runs until the connection ends
        else:
            self._write(self._server.body(self._kind, base, path))
        if keys in self._open:
            self._open.remove(keys)
            self._server.counts.end(keys)

    def _write(self, body: bytes | None) -> None:
        if body is None:
            self._transport.write(_head("404 Not Found", 8) + b"not here")
        else:
            self._transport.write(_head("200 OK", len(body)))
            self._transport.write(body)


# How bad servers behave


def _hole(transport: asyncio.Transport, path: str) -> None:
    pass


def _drip(transport: asyncio.Transport, path: str) -> None:
    head = iter(_head("200 OK", 100))

    def send() -> None:
        if not transport.is_closing() and (byte := next(head, None)) is not None:
            transport.write(bytes([byte]))
            asyncio.get_running_loop().call_later(1, send)

    send()


def _stream(transport: asyncio.Transport, path: str) -> None:
    if path == "/robots.txt":
        _whole(transport, b"Sitemap: /index.xml\n")
        return
    transport.write(_head("200 OK", None, "Connection: close") + _URLSET.encode())

    def send() -> None:
        if not transport.is_closing():
            transport.write(b"<url><loc>http://example.org/page</loc></url>" * 20)
            asyncio.get_running_loop().call_later(0.05, send)

    send()


def _errors(transport: asyncio.Transport, path: str) -> None:
    transport.write(_head("500 Internal Server Error", 0))


def _reset(transport: asyncio.Transport, path: str) -> None:
    file = transport.get_extra_info("socket")
    file.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


def _truncated(transport: asyncio.Transport, path: str) -> None:
    if path == "/robots.txt":
        _whole(transport, b"Sitemap: /index.xml\n")
        return
    transport.write(_head("200 OK", 10_000) + _small("http://example.org/", "page"))
    transport.close()


def _redirects(transport: asyncio.Transport, path: str) -> None:
    transport.write(_head("302 Found", 0, f"Location: {path}x"))


def _garbage(transport: asyncio.Transport, path: str) -> None:
    transport.write(random.Random(path).randbytes(2_000))  # noqa: S311 -- no secret
    transport.close()


def _noise(transport: asyncio.Transport, path: str) -> None:
    _whole(transport, b"Sitemap: /index.xml\n" if path == "/robots.txt" else random.Random(path).randbytes(20_000))  # noqa: S311 -- no secret


def _missing(transport: asyncio.Transport, path: str) -> None:
    transport.write(_head("404 Not Found", 0))


def _whole(transport: asyncio.Transport, body: bytes) -> None:
    transport.write(_head("200 OK", len(body)) + body)


_BEHAVIOURS: dict[str, Callable[[asyncio.Transport, str], None]] = {
    "hole": _hole,
    "drip": _drip,
    "stream": _stream,
    "errors": _errors,
    "reset": _reset,
    "truncated": _truncated,
    "redirects": _redirects,
    "garbage": _garbage,
    "noise": _noise,
    "missing": _missing,
}


async def serve(seconds: float, kinds: list[str]) -> None:
    """Serve until standard input ends."""
    loop = asyncio.get_running_loop()
    listening = socket.create_server(("0.0.0.0", 0), backlog=4_096)  # noqa: S104 -- all addresses of loopback
    port: int = listening.getsockname()[1]
    server = Server(port, seconds, kinds)
    await loop.create_server(lambda: Connection(server), sock=listening)
    print(port, flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(serve(float(sys.argv[1]), sys.argv[2:]))
