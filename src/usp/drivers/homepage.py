"""From the parameters of the front doors to a walk: they are checked here, for all of them alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal, TypedDict, Unpack

from usp.drivers.options import Options
from usp.exceptions import InvalidArgumentError, SitemapException
from usp.fetch_parse.fetcher import RecurseCallbackType, RecurseListCallbackType, SitemapFetcher
from usp.limits import Limits
from usp.origins import outside, split_credentials
from usp.politeness import Politeness
from usp.progress import ProgressCallbackType
from usp.scan.urls import is_http_url, strip_url_to_homepage
from usp.walk import KNOWN_PATHS, HomepageWalk

__all__ = ["FetchOptions", "HomepageOptions", "homepage_walk"]


class FetchOptions(TypedDict, total=False):
    """How a tree is fetched; see `usp.tree.sitemap_tree_for_homepage` for what each means."""

    concurrency: int | None
    limits: Limits | None
    politeness: Politeness | None
    respect_robots: bool
    cross_host: Literal["allow", "same-site", "same-host"]
    progress: ProgressCallbackType | None


class HomepageOptions(FetchOptions, total=False):
    """All parameters of the front doors, but for the homepage and the client."""

    use_robots: bool
    use_known_paths: bool
    extra_known_paths: Iterable[str] | None
    recurse_callback: RecurseCallbackType | None
    recurse_list_callback: RecurseListCallbackType | None
    normalize_homepage_url: bool


def homepage_walk(
    homepage_url: str,
    *,
    use_robots: bool = True,
    use_known_paths: bool = True,
    extra_known_paths: Iterable[str] | None = None,
    recurse_callback: RecurseCallbackType | None = None,
    recurse_list_callback: RecurseListCallbackType | None = None,
    normalize_homepage_url: bool = True,
    is_in_order: bool = True,
    **fetching: Unpack[FetchOptions],
) -> tuple[HomepageWalk, Options, str]:
    """A walk of a website, how it is to be fetched, and the homepage's URL. Raises for wrong parameters.

    Only that URL has the user and password, if there are any: they are to stand nowhere in the tree.
    """
    secret_url = _checked_homepage(homepage_url, normalize_homepage_url)
    homepage_url, _ = split_credentials(secret_url)
    for name in fetching:
        if name not in FetchOptions.__annotations__:
            known = ", ".join(HomepageOptions.__annotations__)
            raise TypeError(f"unexpected keyword argument {name!r}; there are: {known}")
    options = Options(**{name: value for name, value in fetching.items() if value is not None})  # type: ignore[arg-type]
    extra_paths = _checked_paths(extra_known_paths)
    known_paths = (*KNOWN_PATHS, *extra_paths) if use_known_paths else ()
    for callback in (recurse_callback, recurse_list_callback):
        if callback is not None and not callable(callback):
            raise InvalidArgumentError(f"a callback must be a function, not {callback!r}")

    def fetcher(path: str, is_guess: bool = True) -> SitemapFetcher:
        return SitemapFetcher(
            homepage_url + path.lstrip("/"),
            recursion_level=0,
            quiet_404=is_guess,
            recurse_callback=recurse_callback,
            recurse_list_callback=recurse_list_callback,
            max_depth=options.limits.max_depth,
        )

    walk = HomepageWalk(
        homepage_url,
        fetcher("robots.txt", is_guess=False) if use_robots else None,
        [fetcher(path) for path in dict.fromkeys(known_paths)],
        # A stream that is not in the order of the tree counts its pages as they come.
        options.limits if is_in_order else replace(options.limits, max_pages=None),
        lambda url: outside(url, homepage_url, options.cross_host),
    )
    return walk, options, secret_url


def _checked_homepage(url: str, is_to_be_stripped: bool) -> str:
    if not is_http_url(url):
        raise SitemapException(f"URL {url!r} is not an HTTP(S) URL; give one like https://example.org/")
    url = strip_url_to_homepage(url) if is_to_be_stripped else url
    return url if url.endswith("/") else f"{url}/"


def _checked_paths(paths: Iterable[str] | None) -> list[str]:
    """The paths, sorted: callers of ultimate-sitemap-parser pass a set, and the order must be the same every time."""
    found = list(paths or ()) if isinstance(paths, Iterable) or paths is None else [paths]
    if isinstance(paths, str) or not all(isinstance(path, str) and not is_http_url(path) for path in found):
        raise InvalidArgumentError(f"extra_known_paths must be several paths, like ['my-sitemap.xml'], not {paths!r}")
    return sorted(found)
