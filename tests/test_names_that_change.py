"""A name that leads to a public address at first, and to a private one later, does not lead into a private network.

127.0.0.9 stands for a public address here, and 127.0.0.1 for a private one.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from faults import DRIVERS, Driver
from support import index, urlset
from usp.limits import Limits
from usp.objects.sitemap import AbstractSitemap, InvalidSitemap
from usp.web_client import policy

pytestmark = pytest.mark.network

PUBLIC, PRIVATE = "127.0.0.9", "127.0.0.1"


class Servers:
    """A public and a private server on one port. `names` has the addresses that each lookup of a name finds, in turn.

    The last ones stay.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []  # addresses of servers, and paths
        self.names: dict[str, list[Sequence[str]]] = {}
        self.pages: dict[str, str] = {}
        self.closes = True  # whether each connection is for one request
        servers = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                servers.requests.append((self.connection.getsockname()[0], self.path))
                text = servers.pages.get(self.path)
                body = (text or "").replace("{port}", str(servers.port)).encode()
                self.send_response(404 if text is None else 302 if text.startswith("http") else 200)
                if text is not None and text.startswith("http"):
                    self.send_header("Location", body.decode())
                self.send_header("Content-Length", str(len(body)))
                if servers.closes:
                    self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._servers = [ThreadingHTTPServer((PUBLIC, 0), Handler)]
        self.port = self._servers[0].server_address[1]
        self._servers.append(ThreadingHTTPServer((PRIVATE, self.port), Handler))
        for server in self._servers:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def resolve(self, host: str, port: int) -> Any:
        if host[-1:].isdigit():
            found: Sequence[str] = [host]
        else:
            lookups = self.names[host]
            found = lookups.pop(0) if len(lookups) > 1 else lookups[0]
        return [info for text in found for info in socket.getaddrinfo(text, port, type=socket.SOCK_STREAM)]

    def private_requests(self) -> list[str]:
        return [path for address, path in self.requests if address == PRIVATE]


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Servers]:
    try:
        found = Servers()
    except OSError:
        pytest.skip("this system has only one loopback address, or the port is taken")
    monkeypatch.setattr(policy, "is_public", lambda address: address == ipaddress.ip_address(PUBLIC))
    yield found
    found.close()


def reasons(tree: AbstractSitemap) -> dict[str, str]:
    return {
        sitemap.url.partition("//")[2].partition("/")[2]: sitemap.reason
        for sitemap in tree.all_sitemaps()
        if isinstance(sitemap, InvalidSitemap)
    }


Read = Callable[[], AbstractSitemap]


@pytest.fixture(params=DRIVERS, ids=[driver.name for driver in DRIVERS])
def read(request: pytest.FixtureRequest, servers: Servers) -> Read:
    """Return a function that reads the site of home.example, one request at a time."""
    driver: Driver = request.param
    return lambda: driver.tree(
        f"http://home.example:{servers.port}/",
        concurrency=1,
        limits=Limits(request_seconds=10, tree_seconds=60),
        web_client=driver.client(_resolve=servers.resolve),
    )


@pytest.mark.parametrize("lookups", range(1, 5))
@pytest.mark.parametrize("closes", [True, False])
@pytest.mark.parametrize("changing", ["home.example", "other.example"])
def test_names_that_change(read: Read, servers: Servers, changing: str, closes: bool, lookups: int) -> None:
    """Whichever lookup of a name finds the private address, no request goes there, and pages from before are kept."""
    servers.closes = closes
    servers.names = {"home.example": [[PUBLIC]], "other.example": [[PUBLIC]]}
    servers.names[changing] = [*[[PUBLIC]] * lookups, [PRIVATE]]
    site = f"http://{changing}:{{port}}"
    servers.pages = {
        "/robots.txt": f"Sitemap: {site}/index.xml",
        "/index.xml": index(*(f"{site}/{number}.xml" for number in range(6))),
        **{f"/{number}.xml": urlset(f"{site}/page") for number in range(5)},
        "/5.xml": f"{site}/moved.xml",
        "/moved.xml": urlset(f"{site}/page"),
    }
    tree = read()
    assert servers.private_requests() == []
    said = reasons(tree)
    if closes:
        assert said
    assert all("not a public address" in reason for reason in said.values()), said
    asked = [path for _, path in servers.requests]
    assert len(list(tree.all_pages())) == sum(f"/{number}.xml" in asked for number in range(5)) + (
        "/moved.xml" in asked
    )


@pytest.mark.parametrize("both", [[PUBLIC, PRIVATE], [PRIVATE, PUBLIC]], ids=" ".join)
def test_names_with_both(read: Read, servers: Servers, both: list[str]) -> None:
    """Of a name with a public and a private address, only the public one is used."""
    servers.names = {"home.example": [both], "other.example": [both]}
    servers.pages = {
        "/robots.txt": "Sitemap: http://other.example:{port}/a.xml",
        "/a.xml": urlset("http://other.example/page"),
    }
    assert len(list(read().all_pages())) == 1
    assert servers.private_requests() == []
