"""The asyncio driver: several requests at once, in tasks of the caller's event loop."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import deque
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from typing import Any, Unpack

from usp.documents import Document, Failure
from usp.drivers.fetch import ResponseReader
from usp.drivers.options import HomepageOptions, Options, homepage_walk
from usp.drivers.schedule import Schedule
from usp.drivers.tasks import Fetch, Task
from usp.exceptions import InvalidArgumentError
from usp.fetch_parse.parsed import ParsedSitemap
from usp.objects.sitemap import IndexWebsiteSitemap
from usp.walk import Walk
from usp.web_client.abstract_client import AbstractAsyncWebClient
from usp.web_client.lookups import call_in_thread
from usp.web_client.policy import RequestPolicy, applying

__all__ = ["check_client", "client_or_default", "fetch_website", "steps"]

Result = Document | Failure | ParsedSitemap


class _Tasks:
    """Tasks of the event loop, and a way to wait for the first that is done."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._running: set[asyncio.Task[Result]] = set()
        self._done: deque[tuple[Task, asyncio.Task[Result]]] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def start(self, task: Task, coroutine: Coroutine[Any, Any, Result]) -> None:
        running = self._loop.create_task(coroutine)
        self._running.add(running)
        running.add_done_callback(lambda done: self._end(task, done))

    async def wait(self, seconds: float) -> tuple[Task, Result] | None:
        """Wait for a task. Return it with its result; None if none is done in time. Raise what the task raised."""
        if not self._done and seconds <= 0:
            await asyncio.sleep(0)
        elif not self._done:
            self._waiter = self._loop.create_future()
            timer = self._loop.call_later(seconds, self._wake)
            try:
                await self._waiter
            finally:
                timer.cancel()
                self._waiter = None
        if not self._done:
            return None
        task, done = self._done.popleft()
        return task, done.result()

    async def close(self) -> None:
        """Cancel all running tasks, and wait until they have ended."""
        for running in self._running:
            running.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        for _, done in self._done:
            if not done.cancelled():
                done.exception()  # else asyncio complains that nobody looked at it

    def _end(self, task: Task, done: asyncio.Task[Result]) -> None:
        self._running.discard(done)
        self._done.append((task, done))
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


async def fetch_website(
    homepage_url: str, web_client: AbstractAsyncWebClient | None, **options: Unpack[HomepageOptions]
) -> IndexWebsiteSitemap:
    """Fetch the tree of a website."""
    walk, fetching, homepage_url = homepage_walk(homepage_url, **options)
    async with client_or_default(web_client) as client, aclosing(steps(walk, client, fetching, homepage_url)) as pauses:
        async for _ in pauses:
            pass
    return walk.website()


class steps(AsyncIterator[None]):  # noqa: N801 -- used as the function of the same name in `usp.drivers.blocking`
    """Fetch everything that a walk asks for, and pause after each result; see `usp.drivers.blocking.steps`.

    This is no asynchronous generator, because others hold it: at its end, an event loop closes all generators at once,
    and one that is closed from two sides raises.
    """

    def __init__(self, walk: Walk, client: AbstractAsyncWebClient, options: Options, homepage_url: str) -> None:
        options.check_guards(client)
        started, limits = time.monotonic(), options.limits
        self._walk = walk
        self._client = client
        self._policy = options.policy(homepage_url, expires=started + limits.tree_seconds)
        self._budget = options.reading_budget(started + limits.tree_seconds)
        user_agent = getattr(client, "user_agent", "usp")
        self._schedule = Schedule(walk, options, homepage_url, started, user_agent, self._budget)
        self._reader = ResponseReader(self._policy, options.memory_bytes)
        if (limit := getattr(client, "limit_response_data_length", None)) is not None:
            limit(limits.max_sitemap_bytes)
        self._tasks = _Tasks()

    async def __anext__(self) -> None:
        now, schedule, tasks = time.monotonic, self._schedule, self._tasks
        try:
            for task in schedule.tasks(now()):
                tasks.start(task, _perform(task, self._client, self._policy, self._reader))
            if schedule.is_done:
                raise StopAsyncIteration
            if (done := await tasks.wait(schedule.wait_seconds(now()))) is not None:
                schedule.done(*done, now())
            else:
                schedule.idle()
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Cancel all requests."""
        self._policy.cancel()
        self._budget.cancel("the stream was closed early")
        await self._tasks.close()
        self._walk.stop("the stream was closed early")  # changes nothing if everything has arrived


async def _perform(task: Task, client: AbstractAsyncWebClient, policy: RequestPolicy, reader: ResponseReader) -> Result:
    if not isinstance(task, Fetch):
        return await call_in_thread(task.run)
    url, started = task.job.url, time.monotonic()
    try:
        with applying(policy, task.job.seconds, task.may_follow):
            return reader.read(await client.get(policy.with_credentials(url)), url, started)
    except Exception as error:  # raised again if it is a bug in the client
        return reader.read_error(error, client, url, started)


def check_client(client: AbstractAsyncWebClient | None) -> None:
    """Raise `InvalidArgumentError` if a value cannot be a web client for asyncio."""
    is_one = isinstance(client, AbstractAsyncWebClient) or inspect.iscoroutinefunction(getattr(client, "get", None))
    if client is not None and (isinstance(client, type) or not is_one):
        raise InvalidArgumentError(
            f"web_client must be an AbstractAsyncWebClient, such as AiohttpWebClient, not {client!r}"
        )


def client_or_default(client: AbstractAsyncWebClient | None) -> AbstractAsyncContextManager[AbstractAsyncWebClient]:
    """Give the caller's client; if None, an `AiohttpWebClient` that is closed in the end."""
    check_client(client)
    if client is not None:
        return nullcontext(client)
    from usp.web_client.aiohttp_client import AiohttpWebClient  # imported only when needed: aiohttp is heavy

    return AiohttpWebClient()
