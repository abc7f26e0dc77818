"""The parameters of the front doors: their types, their checks, and the walk that they describe.

`usp.tree.sitemap_tree_for_homepage` documents each of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Literal, NamedTuple, TypedDict, Unpack, cast

from usp.bodies import DocumentStore
from usp.drivers.budget import LateReading, ReadingBudget
from usp.exceptions import InvalidArgumentError, SitemapException
from usp.fetch_parse.choice import ChooseCallbackType, Patterns, SitemapChoice
from usp.fetch_parse.fetcher import RecurseCallbackType, RecurseListCallbackType, SitemapFetcher
from usp.keywords import check_keywords
from usp.limits import DEFAULT_CONCURRENCY, FEW_CHILDREN, MAX_CONCURRENCY, MEMORY_BYTES, Limits
from usp.origins import CROSS_HOST, NO_HOSTS, PRIVATE, HostPatterns, masked_url, outside, split_credentials
from usp.politeness import Politeness
from usp.progress import ProgressCallbackType
from usp.scan.urls import is_http_url, strip_url_to_homepage
from usp.walk import KNOWN_PATHS, HomepageWalk, Walk
from usp.web_client.abstract_client import AbstractWebClient
from usp.web_client.policy import FirstAddresses, RequestPolicy

__all__ = [
    "FetchOptions",
    "Fetching",
    "HomepageOptions",
    "NewOptions",
    "Options",
    "Reading",
    "homepage_walk",
    "policy_for_reading",
    "reusable",
    "walk_for",
]


_LIMITS, _POLITENESS = Limits(), Politeness()  # nothing changes them


class FetchOptions(TypedDict, total=False):
    """The parameters that say how to fetch a tree."""

    concurrency: int | None
    limits: Limits | None
    politeness: Politeness | None
    respect_robots: bool
    cross_host: Literal["allow", "same-site", "same-host"]
    allow_hosts: Iterable[str] | None
    private: Literal["allow", "refuse"]
    progress: ProgressCallbackType | None


class NewOptions(FetchOptions, total=False):
    """The parameters of `sitemap_tree_for_homepage` that ultimate-sitemap-parser does not have."""

    include: Patterns | None
    exclude: Patterns | None
    modified_since: date | None
    choose_callback: ChooseCallbackType | None


class HomepageOptions(NewOptions, total=False):
    """All parameters of the front doors except the homepage and the web client."""

    use_robots: bool
    use_known_paths: bool | Literal["auto"]
    extra_known_paths: Iterable[str] | None
    recurse_callback: RecurseCallbackType | None
    recurse_list_callback: RecurseListCallbackType | None
    normalize_homepage_url: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to fetch a tree: the values of `FetchOptions`, checked, with their defaults."""

    concurrency: int = DEFAULT_CONCURRENCY
    limits: Limits = _LIMITS
    politeness: Politeness = _POLITENESS
    respect_robots: bool = False
    cross_host: str = "allow"
    allow_hosts: HostPatterns = NO_HOSTS
    private: str = "allow"
    progress: ProgressCallbackType | None = None
    memory_bytes: int = MEMORY_BYTES  # of documents; the rest goes to a temporary file
    bounds_reading: bool = False  # whether documents may not be read for long, either, once the tree's time is up
    #: Shared by all requests of a tree and of its pages; see `RequestPolicy`.
    first_addresses: FirstAddresses = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        if type(self.concurrency) is not int or not 1 <= self.concurrency <= MAX_CONCURRENCY:
            raise InvalidArgumentError(
                f"concurrency must be a number from 1 to {MAX_CONCURRENCY:,}, not {self.concurrency!r}"
            )
        if not isinstance(self.limits, Limits):
            raise InvalidArgumentError(f"limits must be usp.limits.Limits(...), not {self.limits!r}")
        if not isinstance(self.politeness, Politeness):
            raise InvalidArgumentError(f"politeness must be usp.politeness.Politeness(...), not {self.politeness!r}")
        if not isinstance(self.cross_host, str) or self.cross_host not in CROSS_HOST:
            raise InvalidArgumentError(f"cross_host must be one of {', '.join(CROSS_HOST)}, not {self.cross_host!r}")
        if not isinstance(self.private, str) or self.private not in PRIVATE:
            raise InvalidArgumentError(f"private must be one of {', '.join(PRIVATE)}, not {self.private!r}")
        if not isinstance(self.respect_robots, bool):
            raise InvalidArgumentError(f"respect_robots must be True or False, not {self.respect_robots!r}")
        if self.progress is not None and not callable(self.progress):
            raise InvalidArgumentError(f"progress must be a function, not {self.progress!r}")

    def policy(
        self,
        homepage_url: str,
        limits: Limits | None = None,
        expires: float = math.inf,
        *,
        shares_addresses: bool = True,
    ) -> RequestPolicy:
        """Return the request policy for a tree.

        :param limits: other limits than those of the options.
        :param expires: when the tree's time is up, by `time.monotonic()`.
        :param shares_addresses: whether private hosts keep the addresses that they had at first, in all policies of
            these options.
        """
        return RequestPolicy(
            homepage_url,
            limits or self.limits,
            self.cross_host,
            allow_hosts=self.allow_hosts,
            private=self.private,
            expires=expires,
            first_addresses=self.first_addresses if shares_addresses else None,
        )

    def check_guards(self, client: object | None) -> None:
        """Raise `InvalidArgumentError` if a caller's client may connect to private addresses, and must not."""
        if client is not None and self.private == "refuse" and not getattr(client, "guards_addresses", False):
            raise InvalidArgumentError(
                f'private="refuse" needs a client that refuses private addresses, and {type(client).__name__} does not '
                "say that it does. Subclass AbstractHTTPClient; or, if it connects to public addresses only or to "
                "nothing, set `guards_addresses = True` in its class"
            )

    def reading_budget(self, ends_at: float) -> ReadingBudget:
        """Return what parsing a tree may cost, whose time is up then by `time.monotonic()`."""
        later = LateReading(self.limits, ends_at) if self.bounds_reading else None
        return ReadingBudget(self.limits, ends_at, later=later)

    @property
    def needs_rules(self) -> bool:
        """Whether to read the robots.txt of each host before anything else of it."""
        return self.respect_robots or self.politeness.crawl_delay


class Fetching(NamedTuple):
    """How a stream fetches: its options, its URL, which may have a password, the caller's client, and its end."""

    options: Options
    secret_url: str
    client: AbstractWebClient | None
    ends_at: float  # by time.monotonic()


class Reading(NamedTuple):
    """How to read a target: as a whole site, or as one sitemap with everything below it.

    The first answer may show that another reading is right: if nothing answers, `if_unreachable`; if what answers is
    not a sitemap, `if_no_sitemap`.
    """

    url: str
    is_site: bool = True
    if_unreachable: Reading | None = None
    if_no_sitemap: Reading | None = None


def reusable(options: HomepageOptions) -> HomepageOptions:
    """Return the same options, with a tuple in place of each iterator, which could be used only once."""
    kept: Any = {name: tuple(value) if isinstance(value, Iterator) else value for name, value in options.items()}
    return cast("HomepageOptions", kept)


def walk_for(
    reading: Reading, *, in_tree_order: bool = True, **options: Unpack[HomepageOptions]
) -> tuple[Walk, Options, str]:
    """Check all parameters. Return the walk of a reading, how to fetch it, and its URL.

    Only that URL has the user and password, if there are any: they must not appear in the tree.

    :param in_tree_order: False if pages are counted as they arrive, and not by the walk.
    """
    if reading.is_site:
        return homepage_walk(reading.url, in_tree_order=in_tree_order, **options)
    _check_url(reading.url)
    url, _ = split_credentials(reading.url)
    fetching, fetcher = _check_options(**options)
    limits = fetching.limits if in_tree_order else replace(fetching.limits, max_pages=None)
    walk = Walk([fetcher(url, False)], limits, lambda other: outside(other, url, fetching.cross_host))
    return walk, fetching, reading.url


def policy_for_reading(
    reading: Reading, memory_bytes: int, now: float, **options: Unpack[HomepageOptions]
) -> RequestPolicy:
    """Return the request policy for a reading that starts now, by `time.monotonic()`, as its driver makes it."""
    fetching = _fetching_options(options)
    url = _check_homepage(reading.url, options.get("normalize_homepage_url", True)) if reading.is_site else reading.url
    policy = fetching.policy(url, expires=now + fetching.limits.tree_seconds)
    policy.store = DocumentStore(memory_bytes, max_total_bytes=fetching.limits.max_total_bytes)
    return policy


def homepage_walk(
    homepage_url: str,
    *,
    use_robots: bool = True,
    use_known_paths: bool | Literal["auto"] = True,
    extra_known_paths: Iterable[str] | None = None,
    normalize_homepage_url: bool = True,
    in_tree_order: bool = True,
    **options: Any,
) -> tuple[HomepageWalk, Options, str]:
    """Check all parameters. Return the walk of a website, and the other values of `walk_for`."""
    secret_url = _check_homepage(homepage_url, normalize_homepage_url)
    homepage_url, _ = split_credentials(secret_url)
    fetching, fetcher = _check_options(**options)
    extra_paths = _check_paths(extra_known_paths)
    known_paths = (*(KNOWN_PATHS if use_known_paths else ()), *extra_paths)
    walk = HomepageWalk(
        homepage_url,
        fetcher(f"{homepage_url}robots.txt", False) if use_robots else None,
        (fetcher(homepage_url + path.lstrip("/"), True) for path in dict.fromkeys(known_paths)),
        fetching.limits if in_tree_order else replace(fetching.limits, max_pages=None),
        lambda url: outside(url, homepage_url, fetching.cross_host),
        {homepage_url + path.lstrip("/") for path in extra_paths},
        known_last=use_known_paths == "auto",
    )
    return walk, fetching, secret_url


#: Makes the fetcher of a URL at the top of a tree, and says whether the URL is only a guess.
MakeFetcher = Callable[[str, bool], SitemapFetcher]


def _check_options(
    *,
    recurse_callback: RecurseCallbackType | None = None,
    recurse_list_callback: RecurseListCallbackType | None = None,
    include: Patterns | None = None,
    exclude: Patterns | None = None,
    modified_since: date | None = None,
    choose_callback: ChooseCallbackType | None = None,
    **fetching: Any,
) -> tuple[Options, MakeFetcher]:
    """Check the parameters that every walk has."""
    check_keywords(fetching, HomepageOptions.__annotations__, "web_client")
    options = _fetching_options(fetching)
    choice = SitemapChoice.of(include, exclude, modified_since, choose_callback)
    for callback in (recurse_callback, recurse_list_callback):
        if callback is not None and not callable(callback):
            raise InvalidArgumentError(f"a callback must be a function, not {callback!r}")

    def fetcher(url: str, is_guess: bool) -> SitemapFetcher:
        return SitemapFetcher(
            url,
            recursion_level=0,
            quiet_404=is_guess,
            recurse_callback=recurse_callback,
            recurse_list_callback=recurse_list_callback,
            max_depth=options.limits.max_depth,
            choice=choice,
            max_children=max(options.limits.max_sitemaps, FEW_CHILDREN),
        )

    return options, fetcher


def _fetching_options(given: Mapping[str, Any]) -> Options:
    """Return those of the parameters that say how to fetch a tree."""
    known = {name: given[name] for name in FetchOptions.__annotations__ if given.get(name) is not None}
    if "allow_hosts" in known:
        known["allow_hosts"] = HostPatterns(known["allow_hosts"])
    return Options(**known)


def _check_url(url: str) -> None:
    if not is_http_url(url):
        raise SitemapException(f"URL {masked_url(url)} is not an HTTP(S) URL; give one like https://example.org/")


def _check_homepage(url: str, normalize: bool) -> str:
    _check_url(url)
    url = strip_url_to_homepage(url) if normalize else url
    return url if url.endswith("/") else f"{url}/"


def _check_paths(paths: Iterable[str] | None) -> list[str]:
    """Return the paths sorted: callers of ultimate-sitemap-parser pass a set, and the order must not be random."""
    listed = list(paths or ()) if isinstance(paths, Iterable) or paths is None else [paths]
    if isinstance(paths, str) or not all(isinstance(path, str) and not is_http_url(path) for path in listed):
        raise InvalidArgumentError(f"extra_known_paths must be several paths, like ['my-sitemap.xml'], not {paths!r}")
    return sorted(listed)
