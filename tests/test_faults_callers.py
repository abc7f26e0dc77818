"""What callers do: callbacks that raise, trees that are cancelled, streams that are left. All ends at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import aclosing, closing
from typing import Any

import pytest

import usp.aio
import usp.tree
from clocks import within
from faults import (
    BAD,
    PATIENT,
    QUICK,
    Driver,
    Request,
    described,
    each_driver,
    good_site,
    head,
    nothing_left,
    ok,
    serve_faults,
    silent,
    status,
    visit,
)
from support import urlset
from usp.limits import Limits
from usp.politeness import Politeness

pytestmark = pytest.mark.network


class MineError(Exception):
    """Raised by the callbacks of these tests."""


@each_driver
@pytest.mark.parametrize(
    ("name", "call"),
    [
        *(("recurse_callback", call) for call in (1, 6)),  # of robots.txt, of the index
        *(("recurse_list_callback", call) for call in (1, 2)),
        *(("progress", call) for call in (1, 2, 3, 12)),
    ],
)
def test_callback_that_raises(driver: Driver, name: str, call: int) -> None:
    """An exception in a callback reaches the caller at once, even while a server keeps silent."""
    calls = 0

    def callback(*arguments: Any) -> object:
        nonlocal calls
        calls += 1
        if calls == call:
            raise MineError("mine")
        return arguments[0] if name == "recurse_list_callback" else True

    robots = "".join(f"Sitemap: {{base}}/{name}\n" for name in ("silent.xml", "first.xml", "index.xml", "last.xml.gz"))
    site = good_site() | {"/robots.txt": ok(robots), "/silent.xml": silent}
    with serve_faults(site) as server, nothing_left(server), within(3), pytest.raises(MineError, match="mine"):
        driver.tree(server.url, limits=PATIENT, **{name: callback})


class Counted(Coroutine[Any, Any, Any]):
    """A coroutine that counts its steps."""

    def __init__(self, inner: Coroutine[Any, Any, Any], count: Callable[[], None]) -> None:
        self.inner = inner
        self.count = count

    def send(self, value: Any) -> Any:
        self.count()
        return self.inner.send(value)

    def throw(self, *arguments: Any) -> Any:
        return self.inner.throw(*arguments)

    def close(self) -> None:
        self.inner.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        raise AssertionError("only run as a task")


async def cancelled_after(steps: int, url: str) -> bool:
    """Fetch a tree and cancel it after a number of steps of all its tasks. Return whether it was done before."""
    loop = asyncio.get_running_loop()
    taken = 0

    def count() -> None:
        nonlocal taken
        taken += 1
        if taken == steps:
            loop.call_soon(task.cancel)

    def factory(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        return asyncio.Task(Counted(coroutine, count), loop=loop, **options)

    loop.set_task_factory(factory)
    try:
        task = asyncio.ensure_future(
            usp.aio.sitemap_tree_for_homepage(url, use_known_paths=False, limits=PATIENT, politeness=QUICK)
        )
        try:
            await task
        except asyncio.CancelledError:
            return False
        return True
    finally:
        assert asyncio.all_tasks() == {asyncio.current_task()}, "tasks are left behind"


def in_pieces(request: Request) -> None:
    body = (urlset("http://x/bad") + " " * 100_000).encode()
    request.send(head(Content_Length=len(body)))
    for at in range(0, len(body), 10_000):
        request.send(body[at : at + 10_000])
        request.pause(0.001)


def test_cancelled_at_any_await() -> None:
    """A tree that is cancelled at any await ends at once and leaves nothing."""
    site = good_site() | {
        BAD: in_pieces,
        "/before.xml": status(302, Location="/moved.xml"),
        "/moved.xml": in_pieces,
        "/behind.txt": status(503),
    }
    with serve_faults(site) as server, nothing_left(server), within(30):
        steps = 1
        while not asyncio.run(cancelled_after(steps, server.url)):
            steps += 1 if steps < 100 else 1 + steps // 20
    assert steps > 30


def test_cancelled_while_a_server_keeps_silent() -> None:
    """Cancelling a tree does not wait for servers."""

    async def main(url: str) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(usp.aio.sitemap_tree_for_homepage(url, limits=PATIENT, politeness=QUICK), 0.3)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with serve_faults(good_site() | {BAD: silent}) as server, nothing_left(server), within(2):
        asyncio.run(main(server.url))


def first_pages(driver: Driver, url: str, count: int) -> list[str]:
    """Return the first pages of a stream, and leave it."""
    options: dict[str, Any] = {"use_known_paths": False, "limits": PATIENT, "politeness": QUICK}
    if driver.name == "threads":
        with closing(usp.tree.stream_pages_for_homepage(url, **options)) as pages:
            return [page.url for page, _ in zip(pages, range(count), strict=False)]

    async def main() -> list[str]:
        found: list[str] = []
        async with aclosing(usp.aio.stream_pages_for_homepage(url, **options)) as pages:
            async for page in pages:
                found.append(page.url)
                if len(found) == count:
                    break
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return found

    return asyncio.run(main())


@each_driver
@pytest.mark.parametrize("count", [1, 3])
def test_a_stream_that_is_left(driver: Driver, count: int) -> None:
    """Leaving a stream early ends it at once, even while a server keeps silent."""
    with serve_faults(good_site() | {BAD: silent}) as server, nothing_left(server), within(3):
        found = first_pages(driver, server.url, count)
    assert len(found) == count
    assert set(found) <= {f"http://x/{name}" for name in ("first", "before", "behind", "last")}


@each_driver
def test_one_silent_server_does_not_hold_up_the_rest(driver: Driver) -> None:
    """While one server keeps silent, the others are fetched, and the tree ends after `request_seconds`."""
    found = visit(driver, silent, limits=Limits(request_seconds=1), politeness=Politeness(tries=1), seconds=2.5)
    assert "no answer within 1 s" in described(found.sitemap)
    (asked,) = found.server.times(BAD)
    assert max(at for at, _ in found.server.asked) - asked < 1
