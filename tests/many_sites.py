"""Many websites on one loopback server: each has an address of its own, 127.x.y.z. What they serve may change.

They may have names, too: `most_running` counts the requests at once to a name, to the last two parts of it (with a dot
before them), and to an address.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha1

from aiohttp import web

from support import index, urlset

__all__ = ["Answer", "Sites", "serve_sites"]


@dataclass(frozen=True)
class Answer:
    """What a site answers at a path. With `has_etag`, a request that has the ETag of the body gets 304.

    The ETag is `etag` if there is one. After `cut` bytes of the body, the connection breaks.
    """

    body: str | bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    has_etag: bool = True
    seconds: float = 0.0
    etag: str = ""
    cut: int | None = None


class Sites:
    """The websites. `answers` has what they serve, by host and path; `requests` counts what was requested."""

    def __init__(self) -> None:
        self.port = 0
        self.answers: dict[str, dict[str, Answer]] = {}
        self.requests: Counter[tuple[str, str]] = Counter()
        self.not_modified: Counter[tuple[str, str]] = Counter()
        self.body_bytes = 0
        self.running: Counter[str] = Counter()
        self.most_running: Counter[str] = Counter()

    def url(self, host: str, path: str = "/") -> str:
        return f"http://{host}:{self.port}{path}"

    def add(self, host: str, sitemaps: dict[str, list[str]]) -> str:
        """Add a site with a robots.txt, an index, and sitemaps that list these paths. Return its URL."""
        found = {
            "/robots.txt": Answer(f"Sitemap: {self.url(host, '/index.xml')}\n"),
            "/index.xml": Answer(index(*(self.url(host, path) for path in sitemaps))),
        }
        for path, pages in sitemaps.items():
            found[path] = Answer(urlset(*(self.url(host, page) for page in pages)))
        self.answers[host] = found
        return self.url(host)

    def forget(self) -> None:
        """Start to count again."""
        self.requests.clear()
        self.not_modified.clear()
        self.body_bytes = 0

    async def _cut(self, request: web.Request, headers: dict[str, str], body: bytes, size: int) -> web.StreamResponse:
        """Send the start of a body, and break the connection."""
        response = web.StreamResponse(headers={**headers, "Content-Length": str(len(body))})
        await response.prepare(request)
        await response.write(body[:size])
        assert request.transport is not None
        request.transport.close()
        return response

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        host, path = request.host.partition(":")[0], request.path
        self.requests[host, path] += 1
        assert request.transport is not None
        address = request.transport.get_extra_info("sockname")[0]
        keys = {host, "." + ".".join(host.split(".")[-2:]), address}
        for key in keys:
            self.running[key] += 1
            self.most_running[key] = max(self.most_running[key], self.running[key])
        try:
            answer = self.answers.get(host, {}).get(path, Answer(b"not here", 404, has_etag=False))
            if answer.seconds:
                await asyncio.sleep(answer.seconds)
            body = answer.body.encode() if isinstance(answer.body, str) else answer.body
            etag = answer.etag or f'"{sha1(body).hexdigest()}"'  # noqa: S324 -- not a secret
            headers = {**answer.headers, **({"ETag": etag} if answer.has_etag else {})}
            if answer.has_etag and request.headers.get("If-None-Match") == etag:
                self.not_modified[host, path] += 1
                return web.Response(status=304, headers=headers)
            if answer.cut is not None:
                return await self._cut(request, headers, body, answer.cut)
            self.body_bytes += len(body)
            return web.Response(status=answer.status, headers=headers, body=body)
        finally:
            self.running.subtract(keys)


@contextmanager
def serve_sites() -> Iterator[Sites]:
    """Serve websites in a thread, until the end of the context."""
    sites = Sites()
    started = threading.Event()
    ended: list[asyncio.Event] = []

    async def serve() -> None:
        application = web.Application()
        application.router.add_get("/{path:.*}", sites._answer)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "0.0.0.0", 0, backlog=1_000)  # noqa: S104 -- all addresses of loopback
        await site.start()
        sites.port = runner.addresses[0][1]
        ended.append(asyncio.Event())
        started.set()
        await ended[0].wait()
        await runner.cleanup()

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    started.wait()
    try:
        yield sites
    finally:
        loop.call_soon_threadsafe(ended[0].set)
        thread.join()
        loop.close()
