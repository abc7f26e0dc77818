"""What can go wrong in the process itself: files, disk, forks and threads."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import usp.aio
from clocks import within
from faults import (
    PATIENT,
    QUICK,
    Driver,
    Handler,
    Request,
    each_driver,
    nothing_left,
    ok,
    outline,
    serve_faults,
)
from support import urlset
from usp.objects.sitemap import IndexWebsiteSitemap
from usp.web_client.asyncio_client import AsyncioWebClient
from usp.web_client.requests_client import RequestsWebClient

pytestmark = pytest.mark.network


def wide_site(count: int, seconds: float = 0.0, padding: int = 0) -> dict[str, Handler]:
    """Return a site of many slow sitemaps, each with this many spaces."""

    def sitemap(number: int) -> Handler:
        answer = ok(urlset(f"http://x/{number}") + " " * padding)

        def handler(request: Request) -> None:
            if seconds:
                request.pause(seconds)
            answer(request)

        return handler

    robots = "".join(f"Sitemap: {{base}}/{number}.xml\n" for number in range(count))
    return {"/robots.txt": ok(robots)} | {f"/{number}.xml": sitemap(number) for number in range(count)}


def pages_of(tree: IndexWebsiteSitemap) -> list[str]:
    return [page.url for page in tree.all_pages()]


def run_apart(program: str, driver: Driver, url: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, because its limits cannot be undone; `driver` and `url` are set in it."""
    start = f"from faults import Driver, described\ndriver, url = Driver({driver.name!r}), {url!r}\n"
    return subprocess.run(
        [sys.executable, "-c", start + program],
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
    )


OUT_OF_FILES = """
import gc, json, os, resource, threading
before = driver.tree(url)
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
files = len(os.listdir("/proc/self/fd"))
resource.setrlimit(resource.RLIMIT_NOFILE, (files + SPARE, hard))
poor = driver.tree(url, concurrency=32)
gc.collect()
files, threads = len(os.listdir("/proc/self/fd")) - files, threading.active_count()
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
rich = driver.tree(url)
told = [[described(node) for node in tree.all_sitemaps()] for tree in (poor, rich)]
print(json.dumps([*told, [problem.message for problem in poor.problems], rich == before, files, threads]))
"""


@each_driver
@pytest.mark.parametrize("spare", [4, 8])
def test_out_of_file_descriptors(driver: Driver, spare: int) -> None:
    """If no more files can be opened, the failures say so; later everything works again."""
    with serve_faults(wide_site(40, seconds=0.02)) as server:
        run = run_apart(OUT_OF_FILES.replace("SPARE", str(spare)), driver, server.url)
    assert (run.returncode, run.stderr) == (0, "")
    poor, rich, problems, is_equal, files, threads = json.loads(run.stdout)
    assert rich == ["0 pages"] + ["1 pages"] * 40
    assert is_equal
    assert (files, threads) == (0, 1)
    failed = [told for told in poor if not told.endswith(" pages")] + problems
    assert all("open files" in told for told in failed), failed
    assert problems or len(poor) == 41


DISK_FULL = """
import json, logging, resource, tempfile
logging.basicConfig(format="%(message)s", level=logging.WARNING)
FAULT
tree = driver.tree(url, limits=__import__("usp.limits").limits.Limits(request_seconds=20, tree_seconds=30))
print(json.dumps([[described(node) for node in tree.all_sitemaps()], [page.url for page in tree.all_pages()]]))
"""


@each_driver
@pytest.mark.parametrize(
    "fault",
    ["resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))", "tempfile.tempdir = '/nonexistent'"],
    ids=["full", "no place"],
)
def test_disk_full(driver: Driver, fault: str) -> None:
    """If the temporary file cannot be written, nothing is lost, and a warning says what to do."""
    with serve_faults(wide_site(3, padding=30_000_000)) as server, within(20):
        run = run_apart(DISK_FULL.replace("FAULT", fault), driver, server.url)
    assert run.returncode == 0, run.stderr
    told, pages = json.loads(run.stdout)
    assert told == ["0 pages", *["1 pages"] * 3]
    assert pages == [f"http://x/{number}" for number in range(3)]
    assert run.stderr.count("TMPDIR") == 1


@contextmanager
def forked(work: Callable[[], Any]) -> Iterator[Callable[[], Any]]:
    """Do work in a forked child while the body runs; the yielded function waits for its result."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork beside threads is what is tested
        child = os.fork()
    if not child:
        try:
            os.write(writer, json.dumps(work()).encode()[:60_000])
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(writer)

    def result() -> Any:
        with os.fdopen(reader, "rb") as pipe:
            return json.loads(pipe.read() or "null")

    killer = threading.Timer(20, os.kill, (child, 9))
    killer.start()
    try:
        yield result
    finally:
        _, status = os.waitpid(child, 0)
        killer.cancel()
        killer.join()
    assert status == 0


@each_driver
def test_pages_read_on_both_sides_of_a_fork(driver: Driver) -> None:
    """A forked child and its parent can read a tree at once, including its temporary file."""

    def read(tree: IndexWebsiteSitemap) -> None:
        expected = [f"http://x/{number}" for number in range(4)]
        with forked(lambda: [pages_of(tree) for _ in range(3)]) as in_child:
            assert [pages_of(tree) for _ in range(3)] == [expected] * 3
            assert in_child() == [expected] * 3

    with serve_faults(wide_site(4, padding=25_000_000)) as server, nothing_left(server), within(30):
        read(driver.tree(server.url, limits=PATIENT))


def test_pooled_connections_and_a_fork() -> None:
    """A forked child and its parent can use a client with open connections at once."""
    driver = Driver("threads")
    site = wide_site(60, seconds=0.002)
    with serve_faults(site) as server, nothing_left(server), within(20), RequestsWebClient() as client:
        expected = outline(driver.tree(server.url, web_client=client, limits=PATIENT))
        with forked(lambda: outline(driver.tree(server.url, web_client=client, limits=PATIENT))) as in_child:
            assert outline(driver.tree(server.url, web_client=client, limits=PATIENT)) == expected
            assert in_child() == expected
        assert outline(driver.tree(server.url, web_client=client, limits=PATIENT)) == expected


def test_a_running_loop_and_a_fork() -> None:
    """A forked child can fetch a tree while its parent has a running loop with open connections."""
    driver = Driver("asyncio")

    async def main(url: str) -> None:
        async with AsyncioWebClient() as client:

            async def tree() -> list[str]:
                options: dict[str, Any] = {"use_known_paths": False, "politeness": QUICK, "limits": PATIENT}
                return outline(await usp.aio.sitemap_tree_for_homepage(url, client, **options))

            expected = await tree()
            with forked(lambda: outline(driver.tree(url, limits=PATIENT))) as in_child:
                assert await tree() == expected
                assert in_child() == expected
            assert await tree() == expected

    with serve_faults(wide_site(60, seconds=0.002)) as server, nothing_left(server), within(20):
        asyncio.run(main(server.url))


@each_driver
def test_trees_in_many_threads(driver: Driver) -> None:
    """Eight threads can fetch a tree each at once, the blocking ones with one client."""
    with serve_faults(wide_site(40, seconds=0.002)) as server, nothing_left(server), within(20):
        with RequestsWebClient() as client, ThreadPoolExecutor(8) as pool:
            options: dict[str, Any] = {"web_client": client} if driver.name == "threads" else {}
            trees = list(pool.map(lambda _: driver.tree(server.url, limits=PATIENT, **options), range(8)))
        assert all(tree == trees[0] for tree in trees)
        assert pages_of(trees[0]) == [f"http://x/{number}" for number in range(40)]
        assert {server.count(f"/{number}.xml") for number in range(40)} == {8}


@each_driver
def test_pages_read_by_many_threads(driver: Driver) -> None:
    """Several threads can read one tree at once."""

    def read(tree: IndexWebsiteSitemap) -> None:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: pages_of(tree), range(16)))
        assert found == [[f"http://x/{number}" for number in range(4)]] * 16

    with serve_faults(wide_site(4, padding=20_000_000)) as server, nothing_left(server), within(30):
        read(driver.tree(server.url, limits=PATIENT))
