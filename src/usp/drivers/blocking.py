"""The blocking driver: one request at a time in your thread, or several at once in other threads."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Unpack

from usp.documents import Document, Failure
from usp.drivers.fetch import ResponseReader
from usp.drivers.options import HomepageOptions, Options, homepage_walk
from usp.drivers.schedule import Schedule
from usp.drivers.tasks import Fetch, Task
from usp.exceptions import InvalidArgumentError, TreeInterrupted
from usp.fetch_parse.fetcher import SitemapFetcher
from usp.fetch_parse.parsed import ParsedSitemap
from usp.objects.sitemap import AbstractSitemap, IndexWebsiteSitemap
from usp.walk import Walk
from usp.web_client.abstract_client import AbstractWebClient
from usp.web_client.policy import RequestPolicy, applying
from usp.workers import Inline, Threads, Workers

__all__ = [
    "check_client",
    "client_or_default",
    "fetch_sitemap",
    "fetch_website",
    "is_single_threaded",
    "run",
    "steps",
]

Result = Document | Failure | ParsedSitemap

_PAUSE_SECONDS = 0.5  # between two pauses, at most


def run(walk: Walk, client: AbstractWebClient, options: Options, homepage_url: str) -> None:
    """Fetch everything that a walk asks for."""
    for _ in steps(walk, client, options, homepage_url):
        pass


def fetch_website(
    homepage_url: str, web_client: AbstractWebClient | None, **options: Unpack[HomepageOptions]
) -> IndexWebsiteSitemap:
    """Fetch the tree of a website. Ctrl-C raises `TreeInterrupted`."""
    walk, fetching, homepage_url = homepage_walk(homepage_url, **options)
    try:
        with client_or_default(web_client) as client:
            run(walk, client, fetching, homepage_url)
    except KeyboardInterrupt:
        raise TreeInterrupted(walk.website()) from None
    return walk.website()


def fetch_sitemap(fetcher: SitemapFetcher) -> AbstractSitemap:
    """Fetch the sitemap of one fetcher, and all below it."""
    walk = Walk([fetcher])
    with client_or_default(fetcher.web_client) as client:
        run(walk, client, Options(), fetcher.url)
    return walk.sitemaps()[0]


def steps(
    walk: Walk,
    client: AbstractWebClient,
    options: Options,
    homepage_url: str,
    sleep: Callable[[float], None] = time.sleep,
) -> Generator[None, None, None]:
    """Fetch everything that a walk asks for, and pause after each result, and twice a second while waiting for one.

    Closing the generator stops at once. During a pause no request starts, so a slow consumer slows the fetching down.
    """
    options.check_guards(client)
    now, limits = time.monotonic, options.limits
    is_alone = is_single_threaded(client, options)
    schedule_options = replace(options, concurrency=1) if is_alone else options
    started = now()
    policy = options.policy(homepage_url, expires=started + limits.tree_seconds)
    budget = options.reading_budget(started + limits.tree_seconds)
    schedule = Schedule(walk, schedule_options, homepage_url, started, getattr(client, "user_agent", "usp"), budget)
    perform = _performer(client, policy, ResponseReader(policy, options.memory_bytes))
    # A client need not be a subclass, as in ultimate-sitemap-parser; then it has only what all clients have there.
    limit = getattr(client, "limit_response_data_length", None) or client.set_max_response_data_length
    limit(limits.max_sitemap_bytes)
    workers: Workers[Task, Result] = Inline(perform, sleep) if is_alone else Threads(perform)
    try:
        while True:
            for task in schedule.tasks(now()):
                workers.start(task)
            if schedule.is_done:
                return
            if (done := workers.wait(min(schedule.wait_seconds(now()), _PAUSE_SECONDS))) is not None:
                schedule.done(*done, now())
            else:
                schedule.idle()
            yield
    except KeyboardInterrupt:
        policy.cancel()
        budget.cancel("it was interrupted", is_interrupted=True)
        while (done := workers.wait(0)) is not None:
            schedule.done(*done, now())
        schedule.stop("it was interrupted")
        raise
    finally:
        policy.cancel()
        budget.cancel("the stream was closed early")
        workers.close()
        walk.stop("the stream was closed early")  # changes nothing if everything has arrived


def is_single_threaded(client: AbstractWebClient, options: Options) -> bool:
    """Return whether requests run in the caller's thread, one at a time."""
    return options.concurrency == 1 or not getattr(client, "is_thread_safe", False)


def _performer(client: AbstractWebClient, policy: RequestPolicy, reader: ResponseReader) -> Callable[[Task], Result]:
    """Return a function that performs a task, in any thread."""

    def perform(task: Task) -> Result:
        if not isinstance(task, Fetch):
            return task.run()
        url, started = task.job.url, time.monotonic()
        try:
            with applying(policy, task.job.seconds, task.may_follow):
                return reader.read(client.get(policy.with_credentials(url)), url, started)
        except Exception as error:  # raised again if it is a bug in the client
            return reader.read_error(error, client, url, started)

    return perform


def check_client(client: AbstractWebClient | None) -> None:
    """Raise `InvalidArgumentError` if a value cannot be a web client."""
    if client is None:
        return
    if inspect.iscoroutinefunction(getattr(client, "get", None)):
        raise InvalidArgumentError(f"{client!r} is a client for asyncio: use it with usp.aio")
    methods = (getattr(client, name, None) for name in ("get", "set_max_response_data_length"))
    if isinstance(client, type) or not all(map(callable, methods)):
        raise InvalidArgumentError(f"web_client must be an AbstractWebClient, not {client!r}")


@contextmanager
def client_or_default(client: AbstractWebClient | None) -> Iterator[AbstractWebClient]:
    """Give the caller's client; if None, a `RequestsWebClient` that is closed in the end."""
    check_client(client)
    if client is not None:
        yield client
        return
    from usp.web_client.requests_client import RequestsWebClient  # imported only when needed: requests is heavy

    with RequestsWebClient() as default:
        yield default
