"""Serves sites on loopback as a network would, from a process of its own, which prints their homepages in a line.

`delayed.py SECONDS FOLDER` serves one site of the gzipped sitemaps in a folder, `delayed.py SECONDS NUMBER` so many
sites of one page, each at an address of its own. An answer leaves that many seconds after its request came, without
anything else being waited for: answers are built beforehand, and one thread with an event loop has next to nothing to
do for each. It ends when its standard input does, so that it never outlives whoever started it.
"""

from __future__ import annotations

import asyncio
import resource
import selectors
import socket
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import cast

XMLNS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
XML, GZIP, TEXT = "application/xml", "application/gzip", "text/plain"
#: The last byte of an address that begins with 127; all of those are loopback.
HOSTS_PER_NETWORK = 250

#: What is answered to each path.
Answers = dict[bytes, bytes]


def whole_answer(body: bytes, content_type: str, status: str = "200 OK") -> bytes:
    """A whole answer, after which the connection stays open."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode("ascii") + body


NOT_FOUND = whole_answer(b"not here", TEXT, "404 Not Found")


def site(base: str, folder: Path) -> Answers:
    """A robots.txt, one index, and the files of a folder."""
    names = sorted(path.name for path in folder.iterdir())
    entries = "".join(f"<sitemap><loc>{base}{name}</loc></sitemap>\n" for name in names)
    return {
        b"/robots.txt": _robots(f"{base}index.xml"),
        b"/index.xml": whole_answer(f"<sitemapindex {XMLNS}>\n{entries}</sitemapindex>\n".encode(), XML),
        **{f"/{name}".encode(): whole_answer((folder / name).read_bytes(), GZIP) for name in names},
    }


def page_site(base: str) -> Answers:
    """A robots.txt, and a sitemap of one page."""
    sitemap = f"<urlset {XMLNS}>\n<url><loc>{base}page</loc></url>\n</urlset>\n"
    return {b"/robots.txt": _robots(f"{base}sitemap.xml"), b"/sitemap.xml": whole_answer(sitemap.encode(), XML)}


def _robots(sitemap: str) -> bytes:
    return whole_answer(f"User-agent: *\nSitemap: {sitemap}\n".encode(), TEXT)


class Connection(asyncio.Protocol):
    """Answers the requests of one connection. They have no bodies."""

    def __init__(self, answers: Answers, seconds: float) -> None:
        self._answers = answers
        self._seconds = seconds
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Answer each request whose end has come."""
        *heads, self._received = (self._received + data).split(b"\r\n\r\n")
        for head in heads:
            path = head.split(b" ", 2)[1]
            answer = self._answers.get(path, NOT_FOUND)
            asyncio.get_running_loop().call_later(self._seconds, self._write, answer)

    def _write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)


def addresses(count: int) -> Iterator[str]:
    """So many loopback addresses."""
    for number in range(count):
        network, host = divmod(number, HOSTS_PER_NETWORK)
        yield f"127.0.{network + 1}.{host + 1}"


async def serve(seconds: float, given: str) -> None:
    """Serve until standard input ends."""
    loop = asyncio.get_running_loop()
    homepages = []
    for address in addresses(int(given)) if given.isdecimal() else ["127.0.0.1"]:
        listening = socket.create_server((address, 0), backlog=512)
        base = "http://{}:{}/".format(*listening.getsockname())
        answers = page_site(base) if given.isdecimal() else site(base, Path(given))
        await loop.create_server(partial(Connection, answers, seconds), sock=listening)
        homepages.append(base)
    print(*homepages, flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


def precise_loop() -> asyncio.AbstractEventLoop:
    """A loop that waits to the microsecond: epoll counts in whole milliseconds. For fewer than a thousand sockets."""
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


def main() -> None:
    """Serve what the command line says."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # each site has a socket, and each connection
    seconds, given = sys.argv[1:]
    with asyncio.Runner(loop_factory=None if given.isdecimal() else precise_loop) as runner:
        runner.run(serve(float(seconds), given))


if __name__ == "__main__":
    main()
