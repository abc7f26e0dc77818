"""The front doors: from a homepage, or from content that is already here, to a sitemap tree.

What they need is imported when they are first used, so that importing them costs next to nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing has it, whose import takes longer than this module's
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from usp.fetch_parse.fetcher import RecurseCallbackType, RecurseListCallbackType
    from usp.objects.sitemap import AbstractSitemap, IndexWebsiteSitemap
    from usp.objects.sitemap import IndexRobotsTxtSitemap as IndexRobotsTxtSitemap
    from usp.objects.sitemap import InvalidSitemap as InvalidSitemap
    from usp.web_client.abstract_client import AbstractWebClient

__all__ = ["sitemap_from_bytes", "sitemap_from_file", "sitemap_from_str", "sitemap_tree_for_homepage"]


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
) -> IndexWebsiteSitemap:
    """Fetch the whole sitemap tree of a website.

    :param homepage_url: any URL of the site; stripped to its homepage unless `normalize_homepage_url` is false.
    :param web_client: fetches the URLs; a `RequestsWebClient` if None.
    :param use_robots: whether to read robots.txt.
    :param use_known_paths: whether to try the places where sitemaps are often found.
    :param extra_known_paths: more such places, relative to the homepage.
    :param recurse_callback: called with the URL of each sitemap that another one lists, that one's level and the URLs
        above; if it gives false, the sitemap is left out.
    :param recurse_list_callback: called with the list of all those URLs of one sitemap; gives those to be fetched.
    :return: an `IndexWebsiteSitemap`. What the site does wrong is in it, as `InvalidSitemap`s and problems.
    :raises SitemapException: if the URL is not http or https.
    """
    from usp.drivers.blocking import client_or_default, run
    from usp.exceptions import InvalidArgumentError
    from usp.fetch_parse.fetcher import SitemapFetcher
    from usp.walk import KNOWN_PATHS, HomepageWalk

    homepage_url = _checked_homepage(homepage_url, normalize_homepage_url)
    known_paths = (*KNOWN_PATHS, *_checked_paths(extra_known_paths)) if use_known_paths else ()
    for callback in (recurse_callback, recurse_list_callback):
        if callback is not None and not callable(callback):
            raise InvalidArgumentError(f"a callback must be a function, not {callback!r}")
    with client_or_default(web_client) as client:

        def fetcher(path: str, is_guess: bool = True) -> SitemapFetcher:
            return SitemapFetcher(
                homepage_url + path.lstrip("/"),
                recursion_level=0,
                web_client=client,
                quiet_404=is_guess,
                recurse_callback=recurse_callback,
                recurse_list_callback=recurse_list_callback,
            )

        robots = fetcher("robots.txt", is_guess=False) if use_robots else None
        walk = HomepageWalk(homepage_url, robots, [fetcher(path) for path in dict.fromkeys(known_paths)])
        run(walk, client)
    return walk.website()


def _checked_homepage(url: str, is_to_be_stripped: bool) -> str:
    from usp.exceptions import SitemapException
    from usp.scan.urls import is_http_url, strip_url_to_homepage

    if not is_http_url(url):
        raise SitemapException(f"URL {url!r} is not an HTTP(S) URL; give one like https://example.org/")
    url = strip_url_to_homepage(url) if is_to_be_stripped else url
    return url if url.endswith("/") else f"{url}/"


def _checked_paths(paths: Iterable[str] | None) -> list[str]:
    """The paths, sorted: callers of ultimate-sitemap-parser pass a set, and the order must be the same every time."""
    from collections.abc import Iterable

    from usp.exceptions import InvalidArgumentError

    found = list(paths or ()) if isinstance(paths, Iterable) or paths is None else [paths]
    if isinstance(paths, str) or not all(isinstance(path, str) for path in found):
        raise InvalidArgumentError(f"extra_known_paths must be several paths, like ['my-sitemap.xml'], not {paths!r}")
    return sorted(found)


def sitemap_from_str(content: str, *, url: str | None = None) -> AbstractSitemap:
    """Read a sitemap that is given as a text. Nothing is fetched: its children are `InvalidSitemap`s.

    `url` is where it came from: relative URLs in it are resolved against that, and a robots.txt is known by it.
    """
    from usp.fetch_parse.fetcher import LOCAL_URL, SitemapStrParser

    return SitemapStrParser(static_content=content, url=LOCAL_URL if url is None else url).sitemap()


def sitemap_from_bytes(content: bytes, url: str | None = None) -> AbstractSitemap:
    """Read a sitemap that is given as bytes, compressed or not, in any encoding. Nothing is fetched.

    `url` is where it came from, as for `sitemap_from_str`.
    """
    from usp.documents import Document
    from usp.exceptions import SitemapException
    from usp.fetch_parse.fetcher import LOCAL_URL, SitemapFetcher

    if not isinstance(content, (bytes, bytearray, memoryview)):
        raise SitemapException(
            f"A sitemap's content must be bytes, not {type(content).__name__}; see sitemap_from_str()"
        )
    fetcher = SitemapFetcher(LOCAL_URL if url is None else url, recursion_level=0)
    return fetcher.receive(Document(fetcher.url, bytes(content))).unfetched_sitemap()


def sitemap_from_file(path: str | os.PathLike[str], *, url: str | None = None) -> AbstractSitemap:
    """Read a sitemap from a file, compressed or not, in any encoding. Nothing is fetched.

    `url` is where it came from, as for `sitemap_from_str`; if None, one is made up of the file's name, so that a file
    called robots.txt is read as one.

    :raises OSError: if the file cannot be read.
    """
    import os
    from urllib.parse import quote

    from usp.fetch_parse.fetcher import LOCAL_URL

    with open(path, "rb") as file:
        content = file.read()
    name = os.path.basename(os.fsencode(path))
    return sitemap_from_bytes(content, LOCAL_URL + quote(name) if url is None else url)
