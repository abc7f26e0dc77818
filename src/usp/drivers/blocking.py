"""The blocking driver: one request at a time, or several at once in threads."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace

from usp.documents import Document, Failure
from usp.drivers.fetch import Answers
from usp.drivers.options import Options
from usp.drivers.schedule import Schedule
from usp.drivers.tasks import Fetch, Task
from usp.exceptions import InvalidArgumentError, TreeInterrupted
from usp.fetch_parse.fetcher import SitemapFetcher
from usp.fetch_parse.parsed import ParsedSitemap
from usp.objects.sitemap import AbstractSitemap, IndexWebsiteSitemap
from usp.walk import HomepageWalk, Walk
from usp.web_client.abstract_client import AbstractWebClient
from usp.web_client.policy import RequestPolicy, applying
from usp.workers import Inline, Threads, Workers

__all__ = ["check_client", "client_or_default", "is_single_threaded", "run", "sitemap_of", "steps", "website"]

Outcome = Document | Failure | ParsedSitemap


def run(walk: Walk, client: AbstractWebClient, options: Options, homepage_url: str) -> None:
    """Fetch all that the walk asks for."""
    for _ in steps(walk, client, options, homepage_url):
        pass


def website(walk: HomepageWalk, client: AbstractWebClient, options: Options, homepage_url: str) -> IndexWebsiteSitemap:
    """The tree of a walk, fetched. Raises `TreeInterrupted`, with all that was had, where Ctrl-C is pressed."""
    try:
        run(walk, client, options, homepage_url)
    except KeyboardInterrupt:
        raise TreeInterrupted(walk.website()) from None
    return walk.website()


def steps(
    walk: Walk,
    client: AbstractWebClient,
    options: Options,
    homepage_url: str,
    sleep: Callable[[float], None] = time.sleep,
) -> Generator[None, None, None]:
    """Fetch all that the walk asks for, with a pause after each answer. Where it is closed, everything stops at once.

    While it pauses nothing new is started: whoever goes through it slowly holds the fetching back.
    """
    now = time.monotonic
    schedule = Schedule(walk, _suited(options, client), homepage_url, now(), getattr(client, "user_agent", "usp"))
    policy = RequestPolicy(
        homepage_url, options.limits, options.cross_host, expires=now() + options.limits.tree_seconds
    )
    perform = _performer(client, policy, Answers(policy, options.memory_bytes))
    # A client may have the methods of one without being a subclass, as ultimate-sitemap-parser lets it.
    limit = getattr(client, "limit_response_data_length", None) or client.set_max_response_data_length
    limit(options.limits.max_sitemap_bytes)
    workers: Workers[Task, Outcome] = (
        Inline(perform, sleep) if is_single_threaded(client, options) else Threads(perform)
    )
    try:
        while True:
            for task in schedule.tasks(now()):
                workers.start(task)
            if schedule.is_done:
                return
            if (done := workers.wait(schedule.seconds(now()))) is not None:
                schedule.done(*done, now())
            else:
                schedule.idle()
            yield
    except KeyboardInterrupt:
        policy.cancel()
        while (done := workers.wait(0)) is not None:
            schedule.done(*done, now())
        schedule.stop("it was interrupted")
        raise
    finally:
        policy.cancel()
        workers.close()
        walk.stop("it was ended early")  # where nothing is left to stop, this does nothing


def is_single_threaded(client: AbstractWebClient, options: Options) -> bool:
    """Whether requests are made in the caller's thread only, one at a time."""
    return options.concurrency == 1 or not getattr(client, "is_thread_safe", False)


def _suited(options: Options, client: AbstractWebClient) -> Options:
    """The options, with one request at a time for a client that cannot make several."""
    return options if getattr(client, "is_thread_safe", False) else replace(options, concurrency=1)


def _performer(client: AbstractWebClient, policy: RequestPolicy, answers: Answers) -> Callable[[Task], Outcome]:
    """What does a task, in any thread."""

    def perform(task: Task) -> Outcome:
        if not isinstance(task, Fetch):
            return task.reading()
        url, started = task.job.url, time.monotonic()
        try:
            with applying(policy):
                return answers.of(client.get(policy.with_credentials(url)), url, started)
        except Exception as error:
            return answers.of_error(error, url, started)

    return perform


def check_client(client: AbstractWebClient | None) -> None:
    """Raise `InvalidArgumentError` for what cannot be a client."""
    if client is None:
        return
    if inspect.iscoroutinefunction(getattr(client, "get", None)):
        raise InvalidArgumentError(f"{client!r} is a client for asyncio: use it with usp.aio")
    methods = (getattr(client, name, None) for name in ("get", "set_max_response_data_length"))
    if isinstance(client, type) or not all(map(callable, methods)):
        raise InvalidArgumentError(f"web_client must be an AbstractWebClient, not {client!r}")


@contextmanager
def client_or_default(client: AbstractWebClient | None) -> Iterator[AbstractWebClient]:
    """The caller's client, or one of requests for as long as it is needed."""
    check_client(client)
    if client is not None:
        yield client
        return
    from usp.web_client.requests_client import RequestsWebClient  # imported only when needed: requests is heavy

    with RequestsWebClient() as default:
        yield default


def sitemap_of(fetcher: SitemapFetcher) -> AbstractSitemap:
    """The sitemap of one fetcher, and all below it."""
    walk = Walk([fetcher])
    with client_or_default(fetcher.web_client) as client:
        run(walk, client, Options(), fetcher.url)
    return walk.sitemaps()[0]
