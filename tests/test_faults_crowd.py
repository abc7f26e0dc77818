"""Ten thousand sitemaps that are slow or fail, and the fast website that has them, which the long run uses, too."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import urllib.request
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest

from clocks import within
from faults import Driver, each_driver, head, nothing_left
from support import index, urlset
from usp.limits import Limits
from usp.objects.sitemap import InvalidSitemap

pytestmark = pytest.mark.network


class Crowd(asyncio.Protocol):
    """A fast website of many sitemaps, in a process of its own: /<mode>/<count>/<name>/ is a homepage.

    Its index lists so many sitemaps. Mode "slow" has each take a third of a second, "fail" answers 500, "faults" does
    something wrong with one of twenty requests. /log gives, and forgets, what was asked for and what was served whole.
    """

    asked: ClassVar[Counter[str]] = Counter()
    whole: ClassVar[set[str]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.received = b""
        self.base = "http://127.0.0.1:{}".format(transport.get_extra_info("sockname")[1])

    def data_received(self, data: bytes) -> None:
        self.received += data
        if self.received.endswith(b"\r\n\r\n"):
            path = self.received.split(b" ", 2)[1].decode()
            self.received = b""
            self.answer(path)

    def answer(self, path: str) -> None:
        if path == "/log":
            log = json.dumps({"asked": self.asked.total(), "whole": sorted(self.whole)})
            self.asked.clear()
            self.whole.clear()
            return self.serve("", log.encode())
        self.asked[path] += 1
        _, mode, count, _, name = path.split("/")
        home = self.base + path.removesuffix(name)
        match name:
            case "robots.txt":
                body = "".join(f"Sitemap: {home}{child}.xml\n" for child in ("first", "all", "last"))
            case "all.xml":
                body = index(*(f"{home}{number}.xml" for number in range(int(count))))
            case _:
                body = urlset(f"http://x{path}")
        dice = zlib.crc32(f"{path} {self.asked[path]}".encode())
        if mode == "faults" and dice % 20 == 0:
            return self.fail(dice // 20, path, body.encode())
        if mode == "fail" and name[0].isdigit():
            return self.transport.write(head(500, Content_Length=0))
        if mode == "slow" and name[0].isdigit():
            return self.serve_later(0.3, path, body.encode())
        return self.serve(path, body.encode())

    def serve(self, path: str, body: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(head(Content_Length=len(body)) + body)
            self.whole.update([path] if path else [])

    def serve_later(self, seconds: float, path: str, body: bytes) -> None:
        asyncio.get_running_loop().call_later(seconds, self.serve, path, body)

    def fail(self, dice: int, path: str, body: bytes) -> None:
        match dice % 6:
            case 0:
                self.transport.abort()
            case 1 | 2:
                self.transport.write(head(500 if dice % 6 == 1 else 503, Content_Length=0))
            case 3:
                self.transport.write(head(Content_Length=len(body)) + body[: len(body) // 2])
                self.transport.close()
            case 4:
                self.serve_later(0.03, path, body)
            case 5:
                self.transport.write(b"\x00garbage\r\n\r\n")
                self.transport.close()


async def _serve_crowd() -> None:
    server = await asyncio.get_running_loop().create_server(Crowd, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)  # until whoever started it is gone


@contextmanager
def serve_crowd() -> Iterator[str]:
    """The URL of a `Crowd`."""
    command = [sys.executable, __file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.stdin.close()
            process.wait(10)


def served_log(base: str) -> dict[str, Any]:
    """Return the number of requests to a `Crowd` since the last time, and the paths that it served whole."""
    with urllib.request.urlopen(f"{base}/log", timeout=10) as answer:  # noqa: S310 -- our own server
        found: dict[str, Any] = json.load(answer)
    return found


@each_driver
def test_many_slow_children(driver: Driver) -> None:
    """Ten thousand slow sitemaps end at `tree_seconds`, each with that reason, and the good ones are intact."""
    for seconds in (2, 6, 18):  # a busy machine may not get to the first children in time
        limits = Limits(request_seconds=3, tree_seconds=seconds)
        with serve_crowd() as base, nothing_left(), within(seconds + 3):
            tree = driver.tree(f"{base}/slow/10000/x/", normalize_homepage_url=False, limits=limits)
        first, index_sitemap, last = tree.sub_sitemaps[0].sub_sitemaps
        good = [child for child in index_sitemap.sub_sitemaps if child.pages]
        if good and len(tree.problems) == 1:  # parsing had its time, too
            break
    assert (len(first.pages), len(index_sitemap.sub_sitemaps)) == (1, 10_000)
    cut = [child for child in index_sitemap.sub_sitemaps if isinstance(child, InvalidSitemap)]
    assert len(good) + len(cut) == 10_000
    assert good, "what came in time is kept"
    assert all(re.search("tree_seconds|no answer within", child.reason) for child in cut), cut[0]
    assert sum("tree_seconds" in child.reason for child in cut) > 9_000
    assert [problem.code for problem in tree.problems] == ["C901"], list(tree.problems)
    assert last.pages or isinstance(last, InvalidSitemap)


@each_driver
def test_many_failing_children(driver: Driver) -> None:
    """Three thousand sitemaps that fail cost about one request each, and the good ones are intact."""
    limits = Limits(request_seconds=5, tree_seconds=60)
    with serve_crowd() as base, nothing_left(), within(40):
        tree = driver.tree(f"{base}/fail/3000/x/", normalize_homepage_url=False, limits=limits)
        asked = served_log(base)["asked"]
    first, index_sitemap, last = tree.sub_sitemaps[0].sub_sitemaps
    assert (len(first.pages), len(index_sitemap.sub_sitemaps), len(last.pages)) == (1, 3_000, 1)
    assert all("500" in child.reason for child in index_sitemap.sub_sitemaps if isinstance(child, InvalidSitemap))
    assert not any(child.pages for child in index_sitemap.sub_sitemaps)
    assert 3_000 < asked < 3_300


if __name__ == "__main__":
    asyncio.run(_serve_crowd())
