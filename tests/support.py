"""Helpers of all tests: fixtures as data, a fake client over a dict or a callable, and a server on loopback."""

from __future__ import annotations

import gzip
import json
import ssl
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from usp.warc import Payload, WarcWriter, response_head
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
    r"""A document as a site served it, and what must come out of it.

    The document is the file beside the description. A large one is generated instead, from `generate` in the
    description: its parts are joined, encoded (`\udcff` becomes the byte FF) and, for a .gz file, compressed.
    """

    name: str
    file: str
    expected: dict[str, Any]

    @cached_property
    def data(self) -> bytes:
        if recipe := self.expected.get("generate"):
            text = "".join(expanded(recipe["parts"]))
            data = text.encode(recipe.get("encoding", "utf-8"), "surrogateescape")
            return gzip.compress(data, mtime=0) if self.file.endswith(".gz") else data
        return (FIXTURES / self.file).read_bytes()


def fixtures() -> list[Fixture]:
    files = {path.name.partition(".")[0]: path.name for path in FIXTURES.iterdir() if path.suffix != ".json"}
    found = []
    for description in sorted(FIXTURES.glob("*.json")):
        expected = json.loads(description.read_text("utf-8"))
        for name in ("urls", "children"):
            if name in expected:
                expected[name] = expanded(expected[name])
        file = expected["generate"]["file"] if "generate" in expected else files[description.stem]
        found.append(Fixture(description.stem, file, expected))
    return found


def expanded(parts: list[str | dict[str, Any]]) -> list[str]:
    """Replace each `{"repeat": text, "numbers": [start, stop]}` by the text with each of the numbers in it."""
    texts: list[str] = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        else:
            texts += (part["repeat"].format(number) for number in range(*part["numbers"]))
    return texts


def plain(value: Any) -> Any:
    """Convert a value of `to_dict()` to JSON types, without None and empty lists."""
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
    """A successful response with these bytes."""

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
    """A client over a dict of URLs, or over any callable; `asked` has the URLs that were requested.

    Values are bodies, responses, or exceptions to raise. A URL that is not in the dict is 404 Not Found.
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
                return other  # type: ignore[no-any-return]  # some tests return what a client must not return


def write_archive(path: Path, homepage: str) -> None:
    """Write a web archive with one sitemap of a site."""
    with path.open("wb") as file:
        date = datetime(2026, 11, 17, tzinfo=UTC)
        body = Payload(urlset(f"{homepage}a").encode())
        WarcWriter(file).response(f"{homepage}sitemap.xml", response_head(200, "OK", []), body, date)


class Server:
    """A website on loopback. `pages` maps paths to (status, headers, body); `{base}` in a body is the server's URL."""

    def __init__(self, pages: dict[str, tuple[int, dict[str, str], bytes]], port: int, scheme: str = "http") -> None:
        self.pages = pages
        self.address = f"127.0.0.1:{port}"
        self.url = f"{scheme}://{self.address}"
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.connections: set[tuple[str, int]] = set()

    def paths(self) -> list[str]:
        return [path for path, _ in self.requests]


@contextmanager
def serve(
    pages: dict[str, tuple[int, dict[str, str], bytes]], context: ssl.SSLContext | None = None
) -> Iterator[Server]:
    """Serve a website, over TLS if there is a context."""

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
            """Ignore clients that close their connection, as some tests do."""

    with QuietServer(("127.0.0.1", 0), Handler) as server:
        site = Server(pages, server.server_address[1], "https" if context else "http")
        if context is not None:  # the thread of a connection does the handshake, so that none holds up the others
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield site
        finally:
            server.shutdown()
            thread.join()


def peak_of(read: Callable[[], object]) -> int:
    """Return the most memory that a function takes, in bytes."""
    tracemalloc.start()
    try:
        read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
