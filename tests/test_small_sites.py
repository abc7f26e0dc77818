"""Many small sites: what a tree costs beyond its requests, on real servers. No threads, no open ends, no garbage."""

from __future__ import annotations

import asyncio
import gc
import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sockets import self_signed, server_context, talk
from support import index, urlset
from usp import aio
from usp.drivers.schedule import Schedule
from usp.limits import Limits
from usp.objects.sitemap import IndexWebsiteSitemap
from usp.politeness import Politeness
from usp.tree import sitemap_tree_for_homepage
from usp.walk import Walk
from usp.web_client.asyncio_client import AsyncioWebClient

pytestmark = pytest.mark.network


class SmallSite:
    """A site in the event loop of its client: robots.txt, an index and three gzipped sitemaps."""

    def __init__(self) -> None:
        self.open = self.opened = 0

    async def start(self) -> asyncio.Server:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        names = [f"{self.url}{number}.xml.gz" for number in range(3)]
        self._bodies = {
            "/robots.txt": f"Sitemap: {self.url}index.xml\n".encode(),
            "/index.xml": index(*names).encode(),
            **{f"/{number}.xml.gz": gzip.compress(urlset(f"{self.url}{number}").encode()) for number in range(3)},
        }
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        self.opened += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                body = self._bodies.get(head.split()[1].decode())
                status = "404 Not Found" if body is None else "200 OK"
                body = body or b""
                writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
                await writer.drain()
        except asyncio.IncompleteReadError:
            pass  # the client has closed the connection
        finally:
            self.open -= 1
            writer.close()


@pytest.fixture
def started_threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the threads that were started."""
    names: list[str] = []
    start = threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        names.append(thread.name)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", noted)
    return names


def test_small_gzipped_documents_need_no_thread(started_threads: list[str]) -> None:
    """A tree on asyncio parses small gzipped sitemaps in place: it starts no thread at all."""

    async def run() -> IndexWebsiteSitemap:
        site = SmallSite()
        async with await site.start():
            return await aio.sitemap_tree_for_homepage(site.url, use_known_paths=False)

    assert sum(1 for _ in asyncio.run(run()).all_pages()) == 3
    assert started_threads == []


def test_connections_are_closed_when_a_tree_ends() -> None:
    """A tree with a client of its own leaves no connection open, though the event loop goes on."""

    async def run() -> tuple[int, int]:
        site = SmallSite()
        async with await site.start():
            await aio.sitemap_tree_for_homepage(site.url)
            async with asyncio.timeout(10):
                while site.open:
                    await asyncio.sleep(0.01)
            return site.opened, site.open

    opened, still_open = asyncio.run(run())
    assert opened > 0
    assert still_open == 0


@pytest.mark.parametrize("is_async", [False, True])
def test_a_bad_certificate_is_tried_once(is_async: bool, tmp_path: Path) -> None:
    """If the certificate of a site is bad, none of its other URLs is tried: not the known paths, with either client."""
    context = server_context(self_signed(tmp_path))
    with talk(lambda peer: None, context) as server:
        if is_async:
            tree = asyncio.run(aio.sitemap_tree_for_homepage(server.url))
        else:
            tree = sitemap_tree_for_homepage(server.url)
        assert (tree.outcome.kind, server.accepted) == ("unreachable", 1)
    assert "certificate" in tree.outcome.reason


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def left_over() -> list[object]:
    return [one for one in gc.get_objects() if isinstance(one, (Walk, Schedule))]


@pytest.mark.parametrize("known_paths", [False, "auto"])
def test_trees_are_freed_at_once(known_paths: bool) -> None:
    """What fetched a tree is freed with it, without the garbage collector, though the event loop has its timers."""

    async def run() -> int:
        site = SmallSite()
        before = len(left_over())
        async with await site.start(), AsyncioWebClient() as client:
            for _ in range(3):
                tree = await aio.sitemap_tree_for_homepage(site.url, client, use_known_paths=known_paths)
                assert len(list(tree.all_pages())) == 3
                stream = aio.stream_sitemaps_for_homepage(site.url, client, use_known_paths=known_paths)
                assert len(list((await stream.read()).all_pages())) == 3
                del tree, stream
            await asyncio.sleep(0)
            return len(left_over()) - before

    with no_garbage_collection():
        assert asyncio.run(run()) == 0


def test_reading_a_stream_to_its_end_gives_the_tree_that_it_has() -> None:
    """`read()` gives no sitemaps on the way; the tree, its outcome and its limits are those of going through it."""

    async def run() -> None:
        site = SmallSite()
        async with await site.start(), AsyncioWebClient() as client:
            for limits in (Limits(), Limits(max_sitemaps=3), Limits(max_pages=2)):
                options = {"use_known_paths": False, "limits": limits, "politeness": Politeness()}
                stream = aio.stream_sitemaps_for_homepage(site.url, client, **options)  # type: ignore[arg-type]  # all are right
                read = await aio.stream_sitemaps_for_homepage(site.url, client, **options).read()  # type: ignore[arg-type]  # the same
                async with stream:
                    given = [sitemap.url async for sitemap in stream]
                assert stream.tree == read
                assert stream.tree is stream.tree
                assert stream.tree.outcome == read.outcome
                assert given == [sitemap.url for sitemap in read.all_sitemaps()]

    asyncio.run(run())
