"""Cross submission: a sitemap may list the URLs of another host if the robots.txt there names it, or an index above it.

`Submissions.is_named` looks that up, when a sitemap first lists a URL of a host. Each host is asked once, few hosts are
asked in all, and all of it ends after a while. Whatever goes wrong means that the sitemap is not named.

https://www.sitemaps.org/protocol.html#sitemaps_cross_submits
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from usp.check.scope import text_of_origin
from usp.drivers.fetch import Answers
from usp.drivers.options import Options
from usp.fetch_parse.fetcher import SitemapFetcher
from usp.origins import Origin, host_of, origin_of, requested_url
from usp.scan.lines import MAX_ROBOTS_TXT_BYTES
from usp.web_client.abstract_client import AbstractWebClient
from usp.web_client.policy import RequestPolicy, applying

__all__ = ["MAX_HOSTS", "Submissions"]

MAX_HOSTS = 10
MAX_SECONDS = 10.0  # for one host
MAX_SECONDS_IN_ALL = 30.0
_LEAST_SECONDS = 0.01


class Submissions:
    """What the robots.txt files of other hosts name, as far as it was asked for, by the client that fetches the tree.

    The requests are made under a policy of their own, of the same homepage: with the caller's options, if these are
    stricter than the limits here. They end when the tree has to.
    """

    def __init__(
        self,
        client: AbstractWebClient,
        homepage_url: str,
        options: Options,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._homepage_url = homepage_url
        self._options = options
        self._now = now
        self._end = now() + options.limits.tree_seconds
        self._seconds = 0.0  # that all requests have taken
        self._named: dict[Origin, frozenset[str]] = {}  # by the sites that were asked
        self._asking: RequestPolicy | None = None  # those of the last request
        self._is_cancelled = False

    def is_named(self, start: str, sitemap_urls: tuple[str, ...]) -> bool:
        """Whether the robots.txt of the site that a URL starts with names one of these sitemaps."""
        site = origin_of(start)
        if site not in self._named:
            if len(self._named) >= MAX_HOSTS:
                return False
            self._named[site] = self._ask(f"{text_of_origin(site)}/robots.txt")
        named = self._named[site]
        return bool(named) and any(requested_url(url) in named for url in sitemap_urls)

    def cancel(self) -> None:
        """Ask no more hosts, and end the request that is being made, if any: in another thread."""
        self._is_cancelled = True
        if self._asking is not None:
            self._asking.cancel()

    def _ask(self, url: str) -> frozenset[str]:
        """The sitemaps that a robots.txt names, as they are requested; none if it cannot be had."""
        started = self._now()
        seconds = min(MAX_SECONDS, MAX_SECONDS_IN_ALL - self._seconds, self._end - started)
        if seconds < _LEAST_SECONDS:
            return frozenset()
        policy = self._asking = self._policy(seconds)
        if self._is_cancelled or policy.refusal(url) is not None:
            return frozenset()
        try:
            with applying(policy):
                answer = Answers(policy, MAX_ROBOTS_TXT_BYTES).of(self._client.get(policy.with_credentials(url)), url)
            robots = SitemapFetcher(url, 0).receive(answer)
            return frozenset(requested_url(child.url) for child in robots.children)
        except Exception:  # a client of the caller's may raise anything
            return frozenset()
        finally:
            self._seconds += self._now() - started

    def _policy(self, seconds: float) -> RequestPolicy:
        limits = self._options.limits
        limits = replace(
            limits,
            request_seconds=min(seconds, limits.request_seconds),
            max_sitemap_bytes=min(MAX_ROBOTS_TXT_BYTES, limits.max_sitemap_bytes),
        )
        policy = RequestPolicy(self._homepage_url, limits, self._options.cross_host)
        # What address the homepage's host has was settled when the tree was fetched. Here it is not known, so any that
        # is not public is refused, unless the homepage itself is such an address.
        policy.mark_resolved_elsewhere(host_of(self._homepage_url))
        return policy
