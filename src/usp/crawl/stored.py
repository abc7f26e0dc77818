"""The tree of a site as of a run, built from the documents of a crawl folder. Nothing is requested.

It goes through the front door for websites, with a client that answers from the rows of the table of sitemaps: with the
document of a row, or with the failure that it tells of. A URL without a row does not exist.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Unpack

from usp.crawl.bodies import FolderBodies, StoredResponse
from usp.crawl.folder import CrawlFolder
from usp.crawl.schema import State
from usp.crawl.sites import known_key
from usp.crawl.state import KnownSites, Row
from usp.exceptions import CrawlFolderError, InvalidArgumentError
from usp.limits import Limits
from usp.objects.outcome import Cause
from usp.objects.sitemap import AbstractSitemap, fetch_failure
from usp.origins import requested_url
from usp.stream import HomepageOptions, Reading, SitemapStream
from usp.web_client.abstract_client import (
    AbstractWebClient,
    AbstractWebClientResponse,
    WebClientErrorResponse,
)

__all__ = ["StoredClient", "StoredSite", "stored_sites", "stored_tree"]

#: Options that make sense without a network.
_OPTIONS = (
    *("include", "exclude", "modified_since", "choose_callback", "recurse_callback", "recurse_list_callback"),
    *("use_robots", "use_known_paths", "extra_known_paths", "respect_robots", "cross_host", "progress"),
)
_WEBSITE = "website"  # the type of a root that is a whole site


def stored_tree(
    folder: CrawlFolder, site: str, run: int | None = None, **options: Unpack[HomepageOptions]
) -> AbstractSitemap:
    """Return the tree of a site as of a run.

    :param site: as it was given to the crawl, or its URL in the tables.
    :param options: which sitemaps to read, as for `usp.tree.sitemap_tree_for_homepage`.
    :raises InvalidArgumentError: if nothing is known of the site.
    :raises CrawlFolderError: if the folder has no documents.
    """
    (found,) = stored_sites(folder, site, run)
    return found.tree(options)


class StoredSite:
    """A site of a crawl folder, as of a run."""

    __slots__ = ("_folder", "_known", "homepage_url")

    def __init__(self, folder: CrawlFolder, known: KnownSites, site: str) -> None:
        self.homepage_url = site
        self._folder = folder
        self._known = known

    def tree(self, options: HomepageOptions) -> AbstractSitemap:
        """Return its tree. Options of requests do not matter."""
        known = self._known.of(self.homepage_url)
        rows = known.rows
        if not rows:
            raise CrawlFolderError(f"{self._folder.path} has no sitemaps of {self.homepage_url}: a file is missing")
        if any(row["document"] is not None and row["warc"] is None for row in rows):
            raise CrawlFolderError(
                f"{self._folder.path} has no documents of {self.homepage_url}: it was crawled with --no-warc"
            )
        client = StoredClient(rows, FolderBodies(self._folder))
        given: Any = {name: value for name, value in options.items() if name in _OPTIONS}
        given["limits"] = options.get("limits") or Limits(max_sitemaps=max(Limits().max_sitemaps, 2 * len(rows)))
        reading = Reading(rows[0]["url"], is_site=rows[0]["type"] == _WEBSITE)
        return SitemapStream(reading, client, concurrency=1, earlier=known.roots(), **given).read()


def stored_sites(folder: CrawlFolder, site: str | None = None, run: int | None = None) -> list[StoredSite]:
    """Return all sites of a crawl folder of which something is known, or the only one that is named.

    :raises InvalidArgumentError: if there is none.
    """
    known = KnownSites(folder, run)
    sites = known.learned
    if site is None:
        if not sites:
            raise InvalidArgumentError(f"{folder.path} has no sites yet; run usp crawl first")
        return [StoredSite(folder, known, key) for key in sites]
    return [StoredSite(folder, known, known_key(site, sites))]


class StoredClient(AbstractWebClient):
    """A client that answers from the rows of sitemaps of one site."""

    is_thread_safe = True

    def __init__(self, rows: list[Row], bodies: FolderBodies) -> None:
        self._bodies = bodies
        self._rows: dict[str, Row] = {}
        for name in ("requested_url", "url"):
            for row in rows:
                if row[name] and row["type"] != _WEBSITE:
                    self._rows.setdefault(requested_url(row[name]), row)
        self._most: int | None = None

    def set_max_response_data_length(self, max_response_data_length: int | None) -> None:
        """Read no more than this of a document."""
        self._most = max_response_data_length

    def get(self, url: str) -> AbstractWebClientResponse:
        """Return the document of a URL."""
        row = self._rows.get(requested_url(url))
        if row is None:
            return WebClientErrorResponse("404 Not Found", retryable=False, status=HTTPStatus.NOT_FOUND)
        if row["warc"] is not None and (row["status"] == HTTPStatus.OK or row["state"] in (State.KEPT, State.CUT)):
            body = self._bodies.read_now(row)
            if body is None:
                return WebClientErrorResponse("its WARC record cannot be read", retryable=False, status=None)
            return StoredResponse(row, body, self._most)
        message = (row["reason"] or "").removeprefix(fetch_failure(row["url"], ""))
        is_refused = row["cause"] in (Cause.REFUSED, Cause.LIMIT, Cause.LEFT_OUT, Cause.DISALLOWED)
        return WebClientErrorResponse(
            message or "it was not fetched", retryable=False, status=row["status"], is_refused=is_refused
        )
