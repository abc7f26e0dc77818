"""The functions of `usp.tree`, and `usp.open`, as coroutines, with the same parameters and results.

    import asyncio
    from usp.aio import sitemap_tree_for_homepage

    tree = asyncio.run(sitemap_tree_for_homepage("https://www.example.org/"))

To fetch many sites, share one client between them:

    from usp.web_client.asyncio_client import AsyncioWebClient

    async with AsyncioWebClient() as client:
        trees = await asyncio.gather(*(sitemap_tree_for_homepage(url, client) for url in urls))
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in typing, but importing that takes longer than this whole module
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable
    from typing import Literal, Unpack

    from usp.drivers.options import HomepageOptions, NewOptions
    from usp.fetch_parse.fetcher import RecurseCallbackType, RecurseListCallbackType
    from usp.objects.page import SitemapPage
    from usp.objects.sitemap import IndexWebsiteSitemap
    from usp.sources.opening import AsyncSourceStream, Targets
    from usp.sources.targets import ReadAs
    from usp.stream import AsyncSitemapStream
    from usp.web_client.abstract_client import AbstractAsyncWebClient

__all__ = ["open", "sitemap_tree_for_homepage", "stream_pages_for_homepage", "stream_sitemaps_for_homepage"]


def open(  # noqa: A001 -- as in io, gzip and tarfile
    targets: Targets,
    web_client: AbstractAsyncWebClient | None = None,
    *,
    url: str | None = None,
    read_as: ReadAs = "auto",
    **options: Unpack[HomepageOptions],
) -> AsyncSourceStream:
    """Open a site, a sitemap, a file, a folder or an archive, or several of these, as a stream of sitemaps.

        import usp.aio

        tree = await usp.aio.open("example.org").read()

    See `usp.open`. `web_client` is an `AsyncioWebClient` if None.
    """
    from usp.sources.opening import AsyncSourceStream, find_sources

    return AsyncSourceStream(find_sources(targets, url=url, read_as=read_as), web_client, **options)


async def sitemap_tree_for_homepage(
    homepage_url: str,
    web_client: AbstractAsyncWebClient | None = None,
    use_robots: bool = True,
    use_known_paths: bool | Literal["auto"] = True,
    extra_known_paths: Iterable[str] | None = None,
    recurse_callback: RecurseCallbackType | None = None,
    recurse_list_callback: RecurseListCallbackType | None = None,
    normalize_homepage_url: bool = True,
    **options: Unpack[NewOptions],
) -> IndexWebsiteSitemap:
    """Fetch the whole sitemap tree of a website.

        from usp.aio import sitemap_tree_for_homepage

        tree = await sitemap_tree_for_homepage("https://www.example.org/")

    See `usp.tree.sitemap_tree_for_homepage` for the parameters. You do not await the pages of the tree: reading them
    takes no network.

    :param web_client: fetches the URLs; None for an `AsyncioWebClient`.
    """
    from usp.drivers.asynchronous import fetch_website

    return await fetch_website(
        homepage_url,
        web_client,
        use_robots=use_robots,
        use_known_paths=use_known_paths,
        extra_known_paths=extra_known_paths,
        recurse_callback=recurse_callback,
        recurse_list_callback=recurse_list_callback,
        normalize_homepage_url=normalize_homepage_url,
        **options,
    )


def stream_sitemaps_for_homepage(
    homepage_url: str, web_client: AbstractAsyncWebClient | None = None, **options: Unpack[HomepageOptions]
) -> AsyncSitemapStream:
    """Stream the sitemaps of a website while others are still being fetched, and then the tree.

        from usp.aio import stream_sitemaps_for_homepage

        async with stream_sitemaps_for_homepage("https://www.example.org/") as stream:
            async for sitemap in stream:
                print(sitemap.url, len(sitemap.pages))
        print(stream.tree)

    See `usp.tree.stream_sitemaps_for_homepage`. `web_client` is an `AsyncioWebClient` if None.
    """
    from usp.stream import AsyncSitemapStream

    return AsyncSitemapStream(homepage_url, web_client, **options)


def stream_pages_for_homepage(
    homepage_url: str,
    web_client: AbstractAsyncWebClient | None = None,
    *,
    ordered: bool = False,
    **options: Unpack[HomepageOptions],
) -> AsyncGenerator[SitemapPage, None]:
    """Stream the pages of a website while its sitemaps are still being fetched.

        from contextlib import aclosing

        from usp.aio import stream_pages_for_homepage

        async with aclosing(stream_pages_for_homepage("https://www.example.org/")) as pages:
            async for page in pages:
                print(page.url)

    See `usp.tree.stream_pages_for_homepage`. If you leave the loop early, close the generator with
    `contextlib.aclosing`, so that everything stops at once.
    """
    from usp.stream import AsyncPageStream, AsyncSitemapStream

    return AsyncPageStream(AsyncSitemapStream(homepage_url, web_client, in_tree_order=ordered, **options))
