"""A site's tree, fetched, with a look at each sitemap while others are still on their way."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from threading import Event, Semaphore

from usp.drivers.blocking import is_single_threaded, steps
from usp.drivers.options import Options
from usp.exceptions import TreeInterrupted
from usp.objects.parser import DocumentParser
from usp.objects.sitemap import IndexWebsiteSitemap
from usp.walk import HomepageWalk
from usp.walk.nodes import Node
from usp.walk.order import OrderedArrivals
from usp.web_client.abstract_client import AbstractWebClient
from usp.workers import Threads

__all__ = ["visited_tree"]

#: How many bytes of documents stay in memory: less than of other trees, for there are tables of all URLs beside them.
MEMORY_BYTES = 16 * 1024 * 1024
_AHEAD = 2  # sitemaps that are inflated: the one that is visited, and the next


def visited_tree(
    walk: HomepageWalk,
    options: Options,
    homepage_url: str,
    client: AbstractWebClient,
    visit: Callable[[Node], None],
    cancel: Callable[[], None],
) -> IndexWebsiteSitemap:
    """The tree of a walk. `visit` is called for the sitemaps in the order of the tree, each as soon as may be.

    That is in one thread beside the caller's, unless the client is for one thread. What it raises is raised here. Where
    the tree comes to an early end, `cancel` is to let it come to its end as well.
    """
    front = OrderedArrivals(walk)
    options = replace(options, memory_bytes=MEMORY_BYTES)
    visits = _Inline(visit) if is_single_threaded(client, options) else _Beside(visit)
    try:
        with closing(steps(walk, client, options, homepage_url)) as pauses:
            for _ in pauses:
                for _, node in front.advance():
                    if isinstance(node, Node):
                        visits.start(node)
                visits.look()
        visits.finish()
    except BaseException as error:
        cancel()
        if isinstance(error, KeyboardInterrupt):
            raise TreeInterrupted(walk.website()) from None
        raise
    finally:
        visits.close()
    return walk.website()


class _Inline:
    """Visits in the caller's thread."""

    def __init__(self, visit: Callable[[Node], None]) -> None:
        self.start = visit

    def look(self) -> None:
        """Nothing can have happened."""

    finish = close = look


class _Beside:
    """Visits in a thread beside the caller's; another one inflates what is visited next."""

    def __init__(self, visit: Callable[[Node], None]) -> None:
        self._visit = visit
        self._room = Semaphore(_AHEAD)
        self._is_closed = False
        self._ahead: Threads[tuple[Node, Event], None] = Threads(self._read_ahead, 1)
        self._visits: Threads[tuple[Node, Event], None] = Threads(self._visit_when_ready, 1)

    def start(self, node: Node) -> None:
        """A node is to be visited, after those before it."""
        task = node, Event()
        self._ahead.start(task)
        self._visits.start(task)

    def look(self) -> None:
        """Raise what a visit raised."""
        while self._visits.wait(0) is not None:
            pass

    def finish(self) -> None:
        """Wait for all visits."""
        self._visits.finish()

    def close(self) -> None:
        """Let both threads end."""
        self._is_closed = True
        self._room.release()  # for one that waits for it
        self._visits.close()
        self._ahead.close()

    def _read_ahead(self, task: tuple[Node, Event]) -> None:
        node, is_ready = task
        if not self._is_closed:
            self._room.acquire()
        try:
            if (parser := _parser_of(node)) is not None:
                parser.read_ahead()
        finally:
            is_ready.set()

    def _visit_when_ready(self, task: tuple[Node, Event]) -> None:
        node, is_ready = task
        is_ready.wait()
        try:
            self._visit(node)
        finally:
            if (parser := _parser_of(node)) is not None:
                parser.forget_ahead()  # one that was visited before is not read again
            self._room.release()


def _parser_of(node: Node) -> DocumentParser | None:
    return None if node.reading is None else node.reading.parser
