"""The front doors: from a homepage, or from content that is already here, to a sitemap tree.

What they need is imported when they are first used, so that importing them costs next to nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing has it, whose import takes longer than this module's
if TYPE_CHECKING:
    import os
    from collections.abc import Generator, Iterable
    from typing import Unpack

    from usp.drivers.homepage import FetchOptions, HomepageOptions
    from usp.fetch_parse.fetcher import RecurseCallbackType, RecurseListCallbackType
    from usp.objects.page import SitemapPage
    from usp.objects.sitemap import AbstractSitemap, IndexWebsiteSitemap
    from usp.objects.sitemap import IndexRobotsTxtSitemap as IndexRobotsTxtSitemap
    from usp.objects.sitemap import InvalidSitemap as InvalidSitemap
    from usp.stream import SitemapStream
    from usp.web_client.abstract_client import AbstractWebClient

__all__ = [
    "sitemap_from_bytes",
    "sitemap_from_file",
    "sitemap_from_str",
    "sitemap_tree_for_homepage",
    "stream_pages_for_homepage",
    "stream_sitemaps_for_homepage",
]


def __getattr__(name: str) -> object:
    """Classes that drop-in callers may find here."""
    from usp.objects import sitemap

    if name in ("AbstractSitemap", "IndexRobotsTxtSitemap", "IndexWebsiteSitemap", "InvalidSitemap"):
        return getattr(sitemap, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def sitemap_tree_for_homepage(
    homepage_url: str,
    web_client: AbstractWebClient | None = None,
    use_robots: bool = True,
    use_known_paths: bool = True,
    extra_known_paths: Iterable[str] | None = None,
    recurse_callback: RecurseCallbackType | None = None,
    recurse_list_callback: RecurseListCallbackType | None = None,
    normalize_homepage_url: bool = True,
    **options: Unpack[FetchOptions],
) -> IndexWebsiteSitemap:
    """Fetch the whole sitemap tree of a website.

    :param homepage_url: any URL of the site; stripped to its homepage unless `normalize_homepage_url` is false.
    :param web_client: fetches the URLs; a `RequestsWebClient` if None.
    :param use_robots: whether to read robots.txt.
    :param use_known_paths: whether to try the places where sitemaps are often found; `extra_known_paths` are more.
    :param recurse_callback: called with the URL of each sitemap that another one lists, that one's level and the URLs
        above; if it gives false, the sitemap is left out.
    :param recurse_list_callback: called with the list of all those URLs of one sitemap; gives those to be fetched.
    :param concurrency: how many requests to make at once to one host, 8 if None; in all hosts together, four times as
        many. A client that does not say that it `is_thread_safe` gets one at a time.
    :param limits: what the tree may cost, in sitemaps, pages, bytes and seconds; see `usp.limits.Limits`.
    :param politeness: the time between requests, and retries; see `usp.politeness.Politeness`.
    :param respect_robots: whether to leave out sitemaps that a robots.txt disallows.
    :param cross_host: which hosts the site may lead to: "allow" any, "same-site" or "same-host".
    :param progress: called with a `usp.progress.Progress` for each sitemap that is found, fetched, parsed, or failed.
    :return: the tree. What the site does wrong is in it, as `InvalidSitemap`s and problems.
    :raises SitemapException: if the URL is not http or https.
    :raises TreeInterrupted: a `KeyboardInterrupt`, with what was had of the tree.
    """
    from usp.drivers.blocking import client_or_default, website
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
    with client_or_default(web_client) as client:
        return website(walk, client, fetching, homepage_url)


def stream_sitemaps_for_homepage(
    homepage_url: str, web_client: AbstractWebClient | None = None, **options: Unpack[HomepageOptions]
) -> SitemapStream:
    """Stream the sitemaps of a website while others are still being fetched, and then the tree.

    Sitemaps come in the order of the tree, an index before its children. Parameters are those of
    `sitemap_tree_for_homepage`.

        from usp.tree import stream_sitemaps_for_homepage

        with stream_sitemaps_for_homepage("https://www.example.org/") as stream:
            for sitemap in stream:
                print("  " * len(stream.ancestors), sitemap.url, len(sitemap.pages))
        print(stream.tree)

    Nothing is fetched before you ask for the first sitemap. If you are slow, fetching waits for you. If you leave the
    `with` block early, all requests stop.

    :return: an iterator; see `usp.stream.SitemapStream`. `tree = yield from stream` works, too.
    :raises TreeInterrupted: on Ctrl-C; a `KeyboardInterrupt` that has the partial tree.
    """
    from usp.stream import SitemapStream

    return SitemapStream(homepage_url, web_client, **options)


def stream_pages_for_homepage(
    homepage_url: str,
    web_client: AbstractWebClient | None = None,
    *,
    ordered: bool = False,
    **options: Unpack[HomepageOptions],
) -> Generator[SitemapPage, None, IndexWebsiteSitemap]:
    """Stream the pages of a website while its sitemaps are still being fetched.

    They are the pages of `sitemap_tree_for_homepage(...).all_pages()`. `page.sitemap_url` says which sitemap lists a
    page. Other parameters are those of `sitemap_tree_for_homepage`; `progress` hears of sitemaps that failed.

        from usp.tree import stream_pages_for_homepage

        for page in stream_pages_for_homepage("https://www.example.org/"):
            print(page.sitemap_url, page.url)

    Nothing is fetched before you ask for the first page. If you are slow, fetching waits for you. When you close the
    generator, everything stops.

    :param ordered: True gives pages in the order of the tree. False gives them sitemap by sitemap as these arrive,
        those of robots.txt before those of known paths.
    :return: a generator, which returns the tree: `tree = yield from stream_pages_for_homepage(...)`.
    :raises TreeInterrupted: on Ctrl-C; a `KeyboardInterrupt` that has the partial tree.
    """
    from usp.stream import SitemapStream

    return _pages(SitemapStream(homepage_url, web_client, in_tree_order=ordered, **options))


def _pages(stream: SitemapStream) -> Generator[SitemapPage, None, IndexWebsiteSitemap]:
    with stream:
        for sitemap in stream:
            yield from sitemap.pages
    return stream.tree


def sitemap_from_str(content: str, *, url: str | None = None) -> AbstractSitemap:
    """Read a sitemap that is given as a text. Nothing is fetched: its children are `InvalidSitemap`s.

    `url` is where it came from: relative URLs in it are resolved against that, and a robots.txt is known by it.
    """
    from usp.fetch_parse.fetcher import SitemapStrParser
    from usp.origins import LOCAL_URL

    return SitemapStrParser(static_content=content, url=LOCAL_URL if url is None else url).sitemap()


def sitemap_from_bytes(content: bytes, url: str | None = None) -> AbstractSitemap:
    """Read a sitemap that is given as bytes, compressed or not, in any encoding. Nothing is fetched.

    `url` is where it came from, as for `sitemap_from_str`.
    """
    from usp.exceptions import SitemapException

    if not isinstance(content, (bytes, bytearray, memoryview)):
        raise SitemapException(
            f"A sitemap's content must be bytes, not {type(content).__name__}; see sitemap_from_str()"
        )
    return _sitemap_from(bytes(content), url)


def sitemap_from_file(path: str | os.PathLike[str], *, url: str | None = None) -> AbstractSitemap:
    """Read a sitemap from a file, compressed or not, in any encoding. Nothing is fetched.

    `url` is where it came from, as for `sitemap_from_str`; if None, one is made up of the file's name, so that a file
    called robots.txt is read as one.

    :raises OSError: if the file cannot be read.
    """
    import os
    from urllib.parse import quote

    from usp.documents import MAX_DOCUMENT_BYTES
    from usp.origins import LOCAL_URL

    with open(path, "rb") as file:
        content = file.read(MAX_DOCUMENT_BYTES + 1)  # of more, nothing would be read
        written_at = os.fstat(file.fileno()).st_mtime
    name = os.path.basename(os.fsencode(path))
    return _sitemap_from(content, LOCAL_URL + quote(name) if url is None else url, written_at)


def _sitemap_from(content: bytes, url: str | None, written_at: float | None = None) -> AbstractSitemap:
    """The sitemap of bytes that are here; of a file, it is known when it was written."""
    from usp.documents import Document
    from usp.fetch_parse.fetcher import SitemapFetcher
    from usp.objects.transport import Transport, utc_time
    from usp.origins import LOCAL_URL

    fetcher = SitemapFetcher(LOCAL_URL if url is None else url, recursion_level=0)
    transport = None
    if written_at is not None:
        transport = Transport(fetcher.url, fetcher.url, size=len(content), fetched_at=utc_time(written_at))
    return fetcher.receive(Document(fetcher.url, content, transport=transport)).unfetched_sitemap()
