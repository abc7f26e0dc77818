"""What tests share: fixtures as data, a fake client that is a callable, and a real server on loopback."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from usp.web_client.abstract_client import (
    AbstractWebClient,
    AbstractWebClientResponse,
    AbstractWebClientSuccessResponse,
    WebClientErrorResponse,
)

FIXTURES = Path(__file__).parent / "fixtures"
SITEMAP_XMLNS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


@dataclass(frozen=True)
class Fixture:
    """A document as a site served it, and what must come out of it."""

    name: str
    path: Path
    expected: dict[str, Any]

    @property
    def data(self) -> bytes:
        return self.path.read_bytes()


def fixtures() -> list[Fixture]:
    found = []
    for description in sorted(FIXTURES.glob("*.json")):
        (path,) = (p for p in FIXTURES.glob(f"{description.stem}.*") if p != description)
        found.append(Fixture(description.stem, path, json.loads(description.read_text("utf-8"))))
    return found


def plain(value: Any) -> Any:
    """A value of `to_dict()` as JSON has it, without what is None or empty."""
    match value:
        case dict():
            return {name: plain(v) for name, v in value.items() if v is not None and v != []}
        case list() | tuple():
            return [plain(v) for v in value]
        case datetime():
            return value.isoformat()
        case Decimal():
            return str(value)
        case Enum():
            return value.value
        case _:
            return value


def urlset(*urls: str) -> str:
    return f"<urlset {SITEMAP_XMLNS}>" + "".join(f"<url><loc>{url}</loc></url>" for url in urls) + "</urlset>"


def index(*urls: str) -> str:
    body = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls)
    return f"<sitemapindex {SITEMAP_XMLNS}>{body}</sitemapindex>"


@dataclass
class FakeResponse(AbstractWebClientSuccessResponse):
    """A success that is a plain value."""

    data: bytes
    at: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def status_code(self) -> int:
        return 200

    def status_message(self) -> str:
        return "OK"

    def header(self, case_insensitive_name: str) -> str | None:
        return {name.lower(): value for name, value in self.headers.items()}.get(case_insensitive_name.lower())

    def raw_data(self) -> bytes:
        return self.data

    def url(self) -> str:
        return self.at


class FakeClient(AbstractWebClient):
    """A client over a dict of URLs, or over any callable; it remembers what it was asked for.

    Values are bodies, responses, or exceptions to be raised. What is not in the dict is not found.
    """

    def __init__(self, site: Mapping[str, Any] | Callable[[str], Any]) -> None:
        self._look_up = site if callable(site) else site.get
        self.asked: list[str] = []

    def set_max_response_data_length(self, max_response_data_length: int | None) -> None:
        pass

    def get(self, url: str) -> AbstractWebClientResponse:
        self.asked.append(url)
        match self._look_up(url):
            case None:
                return WebClientErrorResponse("404 Not Found", retryable=False)
            case str() as text:
                return FakeResponse(text.encode(), url)
            case bytes() as data:
                return FakeResponse(data, url)
            case Exception() as error:
                raise error
            case AbstractWebClientResponse() as response:
                return response
            case other:
                return other  # type: ignore[no-any-return]  # what a client must not give is part of some tests


class Server:
    """A website on loopback. `pages` maps paths to (status, headers, body); `{base}` in a body is the server's URL."""

    def __init__(self, pages: dict[str, tuple[int, dict[str, str], bytes]], port: int) -> None:
        self.pages = pages
        self.url = f"http://127.0.0.1:{port}"
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.connections: set[tuple[str, int]] = set()

    def paths(self) -> list[str]:
        return [path for path, _ in self.requests]


@contextmanager
def serve(pages: dict[str, tuple[int, dict[str, str], bytes]]) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            site.requests.append((self.path, dict(self.headers)))
            site.connections.add(self.client_address)
            status, headers, body = pages.get(self.path, (404, {}, b"not here"))
            body = body.replace(b"{base}", site.url.encode())
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value.replace("{base}", site.url))
            if "Content-Length" not in headers:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    class QuietServer(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A client that goes away is part of some tests."""

    with QuietServer(("127.0.0.1", 0), Handler) as server:
        site = Server(pages, server.server_address[1])
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield site
        finally:
            server.shutdown()
            thread.join()
