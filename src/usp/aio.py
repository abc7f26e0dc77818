"""The front doors on asyncio: the same parameters as in `usp.tree`, and the same tree.

    import asyncio
    from usp.aio import sitemap_tree_for_homepage

    tree = asyncio.run(sitemap_tree_for_homepage("https://www.example.org/"))

To fetch many sites, share one client between them, and have as many trees on their way at once as you like:

    async with AiohttpWebClient() as client:
        trees = await asyncio.gather(*(sitemap_tree_for_homepage(url, client) for url in urls))
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing has it, whose import takes longer than this module's
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable
    from typing import Unpack

    from usp.drivers.homepage import FetchOptions, HomepageOptions
    from usp.drivers.options import Options
    from usp.fetch_parse.fetcher import RecurseCallbackType, RecurseListCallbackType
    from usp.objects.page import SitemapPage
    from usp.objects.sitemap import IndexWebsiteSitemap
    from usp.walk import HomepageWalk
    from usp.web_client.abstract_client import AbstractAsyncWebClient

__all__ = ["sitemap_tree_for_homepage", "stream_pages_for_homepage"]

_PAGES_AT_ONCE = 256  # that are handed out before the event loop gets a turn


async def sitemap_tree_for_homepage(
    homepage_url: str,
    web_client: AbstractAsyncWebClient | None = None,
    use_robots: bool = True,
    use_known_paths: bool = True,
    extra_known_paths: Iterable[str] | None = None,
    recurse_callback: RecurseCallbackType | None = None,
    recurse_list_callback: RecurseListCallbackType | None = None,
    normalize_homepage_url: bool = True,
    **options: Unpack[FetchOptions],
) -> IndexWebsiteSitemap:
    """Fetch the whole sitemap tree of a website. Parameters are as for `usp.tree.sitemap_tree_for_homepage`.

    `web_client` is an `AiohttpWebClient` if None. Reading the pages of the tree is not awaited: that takes no network.
    """
    from usp.drivers.awaiting import client_or_default, run
    from usp.drivers.homepage import homepage_walk

    walk, fetching, homepage_url = homepage_walk(
        homepage_url,
        use_robots=use_robots,
        use_known_paths=use_known_paths,
        extra_known_paths=extra_known_paths,
        recurse_callback=recurse_callback,
        recurse_list_callback=recurse_list_callback,
        normalize_homepage_url=normalize_homepage_url,
        **options,
    )
    async with client_or_default(web_client) as client:
        await run(walk, client, fetching, homepage_url)
    return walk.website()


def stream_pages_for_homepage(
    homepage_url: str,
    web_client: AbstractAsyncWebClient | None = None,
    *,
    ordered: bool = False,
    **options: Unpack[HomepageOptions],
) -> AsyncGenerator[SitemapPage, None]:
    """The pages of a website, while its sitemaps are still being fetched; see `usp.tree.stream_pages_for_homepage`.

    Where you leave the loop early, close the generator (`contextlib.aclosing`), so that it stops at once.
    """
    from usp.drivers.awaiting import check_client
    from usp.drivers.homepage import homepage_walk

    check_client(web_client)
    walk, fetching, homepage_url = homepage_walk(homepage_url, is_in_order=ordered, **options)
    return _streamed(walk, fetching, homepage_url, web_client, ordered)


async def _streamed(
    walk: HomepageWalk, options: Options, homepage_url: str, web_client: AbstractAsyncWebClient | None, ordered: bool
) -> AsyncGenerator[SitemapPage, None]:
    import asyncio
    from contextlib import aclosing

    from usp.drivers.awaiting import client_or_default, steps
    from usp.drivers.stream import PageStream

    stream = PageStream(walk, ordered, options.limits.max_pages)
    async with (
        client_or_default(web_client) as client,
        aclosing(steps(walk, client, options, homepage_url)) as pauses,
    ):
        async for _ in pauses:
            for number, page in enumerate(stream.fresh(), 1):
                yield page
                if number % _PAGES_AT_ONCE == 0:
                    await asyncio.sleep(0)
    for page in stream.fresh():
        yield page
