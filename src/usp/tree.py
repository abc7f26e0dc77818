"""Fetch the sitemap tree of a website, or read a sitemap that you already have.

Each function imports what it needs when you first call it, so importing this module takes almost no time.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in typing, but importing that takes longer than this whole module
if TYPE_CHECKING:
    import os
    from collections.abc import Generator, Iterable
    from typing import Literal, Unpack

    from usp.drivers.options import HomepageOptions, NewOptions
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
    """Return a class that drop-in callers import from here."""
    from usp.objects import sitemap

    if name in ("AbstractSitemap", "IndexRobotsTxtSitemap", "IndexWebsiteSitemap", "InvalidSitemap"):
        return getattr(sitemap, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def sitemap_tree_for_homepage(
    homepage_url: str,
    web_client: AbstractWebClient | None = None,
    use_robots: bool = True,
    use_known_paths: bool | Literal["auto"] = True,
    extra_known_paths: Iterable[str] | None = None,
    recurse_callback: RecurseCallbackType | None = None,
    recurse_list_callback: RecurseListCallbackType | None = None,
    normalize_homepage_url: bool = True,
    **options: Unpack[NewOptions],
) -> IndexWebsiteSitemap:
    """Fetch the whole sitemap tree of a website.

        from usp.tree import sitemap_tree_for_homepage
        tree = sitemap_tree_for_homepage("https://www.example.org/")

    :param homepage_url: any URL of the site.
    :param web_client: fetches the URLs; None for a `RequestsWebClient`.
    :param use_robots: whether to read the sitemaps that robots.txt names.
    :param use_known_paths: whether to try known paths, and `extra_known_paths`; "auto" tries them only if robots.txt
        leads to no sitemap.
    :param recurse_callback: called with a child's URL, its parent's level and the URLs above; False leaves it out.
    :param recurse_list_callback: called with the URLs of all children, likewise; returns those to fetch.
    :param normalize_homepage_url: whether to strip `homepage_url` to the homepage; False keeps its path.
    :param include: regular expressions for the URLs of sitemaps to read; `exclude` are for those to leave out.
    :param modified_since: a datetime; sitemaps whose date in the index is more than a day older are left out.
    :param choose_callback: called with all children as `usp.ChildSitemap`s, likewise; returns those to fetch.
    :param concurrency: requests at once to one host, 8 if None; a client that is not `is_thread_safe` gets one.
    :param limits: a `usp.Limits`, on sitemaps, pages, bytes and time; `politeness` is a `usp.Politeness`, with waits.
    :param respect_robots: whether to leave out sitemaps that a robots.txt disallows.
    :param cross_host: hosts that the site may lead to: "allow" for any, "same-site" or "same-host".
    :param allow_hosts: hosts that may be private, ["*.corp.example"]; `private="refuse"` refuses the homepage's, too.
    :param progress: called with a `usp.progress.Progress` for each sitemap found, fetched, parsed or failed.
    :return: the tree, with what the site does wrong as `InvalidSitemap`s and problems; see `tree.outcome`, too.
    :raises SitemapException: if the URL is not http or https.
    :raises TreeInterrupted: on Ctrl-C; a `KeyboardInterrupt` that has the partial tree.
    """
    from usp.drivers.blocking import fetch_website

    return fetch_website(
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
) -> Generator[SitemapPage, None, AbstractSitemap]:
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


def _pages(stream: SitemapStream) -> Generator[SitemapPage, None, AbstractSitemap]:
    with stream:
        for sitemap in stream:
            yield from sitemap.pages
    return stream.tree


def sitemap_from_str(content: str, *, url: str | None = None) -> AbstractSitemap:
    """Read a sitemap from a text. Nothing is fetched: its children are `InvalidSitemap`s.

        from usp.tree import sitemap_from_str

        robots = sitemap_from_str("Sitemap: /sitemap.xml", url="https://www.example.org/robots.txt")
        print([child.url for child in robots.sub_sitemaps])

    :param content: the text of the document.
    :param url: where it came from. Relative URLs are resolved against it, and it tells a robots.txt from other text.
    """
    from usp.fetch_parse.fetcher import SitemapStrParser
    from usp.origins import LOCAL_URL

    return SitemapStrParser(static_content=content, url=LOCAL_URL if url is None else url).sitemap()


def sitemap_from_bytes(content: bytes, url: str | None = None) -> AbstractSitemap:
    """Read a sitemap from bytes, compressed or not, in any encoding. Nothing is fetched.

    :param content: the bytes of the document.
    :param url: where it came from, as for `sitemap_from_str`.
    """
    from usp.exceptions import SitemapException

    if not isinstance(content, (bytes, bytearray, memoryview)):
        raise SitemapException(
            f"A sitemap's content must be bytes, not {type(content).__name__}; see sitemap_from_str()"
        )
    return _parse_bytes(bytes(content), url)


def sitemap_from_file(path: str | os.PathLike[str], *, url: str | None = None) -> AbstractSitemap:
    """Read a sitemap from a file, compressed or not, in any encoding. Nothing is fetched.

    :param path: the file.
    :param url: where it came from, as for `sitemap_from_str`; if None, a made-up URL with the name of the file, so that
        a file called robots.txt is read as one.
    :raises OSError: if the file cannot be read.
    """
    import os
    from urllib.parse import quote

    from usp.limits import MAX_SITEMAP_BYTES
    from usp.origins import LOCAL_URL

    with open(path, "rb") as file:
        content = file.read(MAX_SITEMAP_BYTES + 1)  # the parser ignores what is past that
        written_at = os.fstat(file.fileno()).st_mtime
    name = os.path.basename(os.fsencode(path))
    return _parse_bytes(content, LOCAL_URL + quote(name) if url is None else url, written_at)


def _parse_bytes(content: bytes, url: str | None, written_at: float | None = None) -> AbstractSitemap:
    """Parse a document. `written_at` is when its file was written."""
    from usp.documents import Document
    from usp.fetch_parse.fetcher import SitemapFetcher
    from usp.objects.transport import Transport, utc_time
    from usp.origins import LOCAL_URL

    fetcher = SitemapFetcher(LOCAL_URL if url is None else url, recursion_level=0)
    transport = None
    if written_at is not None:
        transport = Transport(fetcher.url, fetcher.url, size=len(content), fetched_at=utc_time(written_at))
    return fetcher.receive(Document(fetcher.url, content, transport=transport)).unfetched_sitemap()
