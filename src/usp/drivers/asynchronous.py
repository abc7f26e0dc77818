"""The asyncio driver: several requests at once, in tasks of the caller's event loop."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from contextvars import Context
from typing import Any, TypeVar, Unpack
from weakref import WeakKeyDictionary

from usp.documents import Document, Failure
from usp.drivers.fetch import ResponseReader
from usp.drivers.options import HomepageOptions, Options, homepage_walk
from usp.drivers.schedule import Schedule
from usp.drivers.tasks import Fetch, Parse, Task
from usp.exceptions import InvalidArgumentError
from usp.fetch_parse.parsed import ParsedSitemap
from usp.objects.sitemap import IndexWebsiteSitemap
from usp.walk import Walk
from usp.web_client.abstract_client import AbstractAsyncWebClient
from usp.web_client.lookups import call_in_thread
from usp.web_client.policy import RequestPolicy, applying

__all__ = ["MANY_PLACES", "aside", "check_client", "client_or_default", "fetch_website", "steps"]

Result = Document | Failure | ParsedSitemap
Value = TypeVar("Value")

# Documents that all trees of an event loop parse at once: more threads take more memory, and no less time. One that
# takes long does not count, so that bad documents do not keep others waiting.
_PARSED_AT_ONCE, _LONG_SECONDS = 4, 2.0
_PARSERS: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
#: A tree with more places is handled in a thread. Each of them takes some 30 microseconds, several times.
MANY_PLACES = 2_000


class _Tasks:
    """Tasks of the event loop, and a way to wait for the first that is done."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._running: set[asyncio.Task[Result]] = set()
        self._done: deque[tuple[Task, asyncio.Task[Result]]] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._context = Context()  # empty: a loop keeps timers that are cancelled, with their contexts, for a while

    def start(self, task: Task, coroutine: Coroutine[Any, Any, Result]) -> None:
        running = self._loop.create_task(coroutine)
        self._running.add(running)
        running.add_done_callback(lambda done: self._end(task, done))

    async def wait(self, seconds: float) -> tuple[Task, Result] | None:
        """Wait for a task. Return it with its result; None if none is done in time. Raise what the task raised.

        It may return None earlier, too.
        """
        if not self._done and seconds <= 0:
            await asyncio.sleep(0)
        elif not self._done:
            self._set_timer(self._loop.time() + seconds)
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if not self._done:
            return None
        task, done = self._done.popleft()
        return task, done.result()

    def _set_timer(self, at: float) -> None:
        """Wake up at this time, or earlier. Most waits end before a timer that is set already: it is left alone."""
        if self._timer is None or self._timer.when() > at:
            self._cancel_timer()
            self._timer = self._loop.call_at(at, self._ring, context=self._context)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self) -> None:
        self._timer = None
        self._wake()

    async def close(self) -> None:
        """Cancel all running tasks, and wait until they have ended."""
        self._cancel_timer()
        for running in self._running:
            running.cancel()
        if self._running:
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
    return await aside(walk.website) if walk.place_count > MANY_PLACES else walk.website()


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
        self._has_callbacks = options.progress is not None or walk.has_callbacks
        self._tasks = _Tasks()

    async def __anext__(self) -> None:
        now, schedule, tasks = time.monotonic, self._schedule, self._tasks
        try:
            is_large = self._is_large()
            for task in await aside(lambda: list(schedule.tasks(now()))) if is_large else schedule.tasks(now()):
                tasks.start(task, _perform(task, self._client, self._policy, self._reader))
            if schedule.is_done:
                raise StopAsyncIteration
            done = await tasks.wait(schedule.wait_seconds(now()))
            if self._is_large(done and done[1]):
                await aside(lambda: schedule.idle() if done is None else schedule.done(*done, now()))
            elif done is not None:
                schedule.done(*done, now())
            else:
                schedule.idle()
        except BaseException:
            await self.aclose()
            raise

    def _is_large(self, result: Result | None = None) -> bool:
        """Return whether the tree has so many places, with this result, that what follows must not run in the loop.

        Callbacks of the caller stay in the loop's thread, however many places there are.
        """
        more = len(result.children) if isinstance(result, ParsedSitemap) else 0
        return self._walk.place_count + more > MANY_PLACES and not self._has_callbacks

    async def aclose(self) -> None:
        """Cancel all requests."""
        self._policy.cancel()
        self._budget.cancel("the stream was closed early")
        await self._tasks.close()
        self._walk.stop("the stream was closed early")  # changes nothing if everything has arrived


async def aside(function: Callable[[], Value]) -> Value:
    """Call a function in a thread, so that it does not hold up the event loop. If this is cancelled, it ends first."""
    calling = asyncio.ensure_future(asyncio.to_thread(function))
    try:
        return await asyncio.shield(calling)
    except asyncio.CancelledError:
        while not calling.done():
            try:
                await asyncio.wait((calling,))
            except asyncio.CancelledError:
                continue
        calling.cancelled() or calling.exception()  # else asyncio complains that nobody looked at it
        raise


async def _perform(task: Task, client: AbstractAsyncWebClient, policy: RequestPolicy, reader: ResponseReader) -> Result:
    if not isinstance(task, Fetch):
        return await _parse(task)
    url, started = task.job.url, time.monotonic()
    try:
        with applying(policy, task.job.seconds, task.may_follow):
            return reader.read(await client.get(policy.with_credentials(url)), url, started)
    except Exception as error:  # raised again if it is a bug in the client
        return reader.read_error(error, client, url, started)


async def _parse(task: Parse) -> ParsedSitemap:
    loop = asyncio.get_running_loop()
    parsers = _PARSERS.setdefault(loop, asyncio.Semaphore(_PARSED_AT_ONCE))
    await parsers.acquire()
    places = [parsers]  # empty once the place is free
    timer = loop.call_later(_LONG_SECONDS, lambda: places.pop().release())
    try:
        return await call_in_thread(task.run)
    finally:
        timer.cancel()
        if places:
            places.pop().release()


def check_client(client: AbstractAsyncWebClient | None) -> None:
    """Raise `InvalidArgumentError` if a value cannot be a web client for asyncio."""
    is_one = isinstance(client, AbstractAsyncWebClient) or inspect.iscoroutinefunction(getattr(client, "get", None))
    if client is not None and (isinstance(client, type) or not is_one):
        raise InvalidArgumentError(
            f"web_client must be an AbstractAsyncWebClient, such as AsyncioWebClient, not {client!r}"
        )


def client_or_default(client: AbstractAsyncWebClient | None) -> AbstractAsyncContextManager[AbstractAsyncWebClient]:
    """Give the caller's client; if None, an `AsyncioWebClient` that is closed in the end."""
    check_client(client)
    if client is not None:
        return nullcontext(client)
    from usp.web_client.asyncio_client import AsyncioWebClient  # imported only when needed

    return AsyncioWebClient()
