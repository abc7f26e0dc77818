"""A site's tree, fetched, with a look at each sitemap while others are still on their way."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

from usp.drivers.blocking import is_alone, steps
from usp.drivers.options import Options
from usp.drivers.workers import Inline, Threads, Workers
from usp.exceptions import TreeInterrupted
from usp.objects.sitemap import IndexWebsiteSitemap
from usp.walk import HomepageWalk
from usp.walk.nodes import Node
from usp.walk.order import Front
from usp.web_client.abstract_client import AbstractWebClient

__all__ = ["visited_tree"]

#: How many bytes of documents stay in memory: less than of other trees, for there are tables of all URLs beside them.
MEMORY_BYTES = 16 * 1024 * 1024


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
    front = Front(walk)
    options = replace(options, memory_bytes=MEMORY_BYTES)
    visits: Workers[Node, None] = Inline(visit) if is_alone(client, options) else Threads(visit, 1)
    try:
        with closing(steps(walk, client, options, homepage_url)) as pauses:
            for _ in pauses:
                for node in front.advance():
                    visits.start(node)
                while visits.wait(0) is not None:
                    pass
        visits.finish()
    except BaseException as error:
        cancel()
        if isinstance(error, KeyboardInterrupt):
            raise TreeInterrupted(walk.website()) from None
        raise
    finally:
        visits.close()
    return walk.website()
