"""The asyncio driver: several requests at once, in tasks of the caller's event loop."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import aclosing, asynccontextmanager
from typing import Any

from usp.documents import Document, Failure
from usp.drivers.fetch import Answers
from usp.drivers.options import Options
from usp.drivers.schedule import Schedule
from usp.drivers.tasks import Fetch, Task
from usp.exceptions import InvalidArgumentError
from usp.fetch_parse.parsed import ParsedSitemap
from usp.walk import Walk
from usp.web_client.abstract_client import AbstractAsyncWebClient
from usp.web_client.lookups import call_in_thread
from usp.web_client.policy import RequestPolicy, applying

__all__ = ["check_client", "client_or_default", "run", "steps"]

Outcome = Document | Failure | ParsedSitemap


class _Tasks:
    """Tasks of the event loop, and a way to wait for whichever is done first."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._going_on: set[asyncio.Task[Outcome]] = set()
        self._done: deque[tuple[Task, asyncio.Task[Outcome]]] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def start(self, task: Task, doing: Coroutine[Any, Any, Outcome]) -> None:
        going = self._loop.create_task(doing)
        self._going_on.add(going)
        going.add_done_callback(lambda done: self._end(task, done))

    async def wait(self, seconds: float) -> tuple[Task, Outcome] | None:
        """A task that is done, and its outcome; None if there is none for so long. Raises what the task raised."""
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
        """Cancel what is going on, and wait until it has ended."""
        for going in self._going_on:
            going.cancel()
        await asyncio.gather(*self._going_on, return_exceptions=True)
        for _, done in self._done:
            if not done.cancelled():
                done.exception()  # looked at, so that asyncio does not complain that nobody did

    def _end(self, task: Task, done: asyncio.Task[Outcome]) -> None:
        self._going_on.discard(done)
        self._done.append((task, done))
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


async def run(walk: Walk, client: AbstractAsyncWebClient, options: Options, homepage_url: str) -> None:
    """Fetch all that the walk asks for."""
    async with aclosing(steps(walk, client, options, homepage_url)) as pauses:
        async for _ in pauses:
            pass


async def steps(
    walk: Walk, client: AbstractAsyncWebClient, options: Options, homepage_url: str
) -> AsyncGenerator[None, None]:
    """Fetch all that the walk asks for, with a pause after each answer; see `usp.drivers.blocking.steps`."""
    now = time.monotonic
    schedule = Schedule(walk, options, homepage_url, now(), getattr(client, "user_agent", "usp"))
    policy = RequestPolicy(
        homepage_url, options.limits, options.cross_host, expires=now() + options.limits.tree_seconds
    )
    answers = Answers(policy, options.memory_bytes)
    if (limit := getattr(client, "limit_response_data_length", None)) is not None:
        limit(options.limits.max_sitemap_bytes)
    tasks = _Tasks()
    try:
        while True:
            for task in schedule.tasks(now()):
                tasks.start(task, _perform(task, client, policy, answers))
            if schedule.is_done:
                return
            if (done := await tasks.wait(schedule.seconds(now()))) is not None:
                schedule.done(*done, now())
            else:
                schedule.idle()
            yield
    finally:
        policy.cancel()
        await tasks.close()
        walk.stop("it was ended early")


async def _perform(task: Task, client: AbstractAsyncWebClient, policy: RequestPolicy, answers: Answers) -> Outcome:
    if not isinstance(task, Fetch):
        return await call_in_thread(task.reading)
    url, started = task.job.url, time.monotonic()
    try:
        with applying(policy):
            return answers.of(await client.get(policy.with_credentials(url)), url, started)
    except Exception as error:
        return answers.of_error(error, url, started)


def check_client(client: AbstractAsyncWebClient | None) -> None:
    """Raise `InvalidArgumentError` for what cannot be a client."""
    is_one = isinstance(client, AbstractAsyncWebClient) or inspect.iscoroutinefunction(getattr(client, "get", None))
    if client is not None and (isinstance(client, type) or not is_one):
        raise InvalidArgumentError(
            f"web_client must be an AbstractAsyncWebClient, such as AiohttpWebClient, not {client!r}"
        )


@asynccontextmanager
async def client_or_default(client: AbstractAsyncWebClient | None) -> AsyncIterator[AbstractAsyncWebClient]:
    """The caller's client, or one of aiohttp for as long as it is needed."""
    check_client(client)
    if client is not None:
        yield client
        return
    from usp.web_client.aiohttp_client import AiohttpWebClient  # imported only when needed: aiohttp is heavy

    async with AiohttpWebClient() as default:
        yield default
