"""Read web archives as sites: the sitemap trees of the sites in a WARC or a WACZ. Nothing is requested.

Each site with sitemaps in the archive is a source of its own, which is read as a website is, by a client that answers
from the archive. Sitemaps that nothing leads to are read like known paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from usp.exceptions import InvalidArgumentError
from usp.limits import MAX_SITEMAP_BYTES
from usp.origins import requested_url
from usp.scan.urls import is_http_url
from usp.stream import HomepageOptions
from usp.tree import sitemap_from_bytes
from usp.warc.archive import Archive, ScanProgress, Site
from usp.warc.client import ArchiveClient
from usp.web_client.abstract_client import AbstractWebClientSuccessResponse

__all__ = ["ArchivedSite", "named_files", "sites_of"]

#: Options that make sense without a network.
_OPTIONS = (
    *("include", "exclude", "modified_since", "choose_callback", "recurse_callback", "recurse_list_callback"),
    *("use_robots", "use_known_paths", "respect_robots", "cross_host", "limits", "progress"),
)
_NAMED_FILES = 3
_MAX_LISTED = 1_000_000  # URLs of sitemaps in robots.txt files and indexes


class ArchivedSite:
    """A site in an archive."""

    __slots__ = ("archive", "files", "homepage_url", "paths")

    def __init__(self, archive: Archive, site: Site) -> None:
        self.archive = archive
        self.homepage_url = site.homepage_url
        self.paths = site.paths
        self.files = list(site.files)

    def options(self, given: HomepageOptions) -> HomepageOptions:
        """Return the options to read it with: those that need no network."""
        options: Any = {name: value for name, value in given.items() if name in _OPTIONS}
        has_robots = f"{self.homepage_url}robots.txt" in self.archive
        guesses = self.paths if given.get("use_known_paths", True) else []
        options["use_robots"] = has_robots and given.get("use_robots", True)
        options["extra_known_paths"] = [*guesses, *(given.get("extra_known_paths") or ())]
        options["normalize_homepage_url"] = False
        options["concurrency"] = 1  # there is no network to wait for
        return options  # type: ignore[no-any-return]


def sites_of(paths: Sequence[str], url: str | None = None, progress: ScanProgress | None = None) -> list[ArchivedSite]:
    """Return the sites in an archive of one or several files, or folders of them.

    :param url: a URL of the only site to return.
    :param progress: called now and then while the archive is read.
    :raises OSError: if a file cannot be read.
    :raises InvalidArgumentError: if there is no sitemap in the archive.
    """
    archive = Archive(paths, progress)
    if url is not None:
        parts = urlsplit(requested_url(url))
        return [ArchivedSite(archive, archive.site(f"{parts.scheme}://{parts.netloc}/"))]
    sites = [site for site in archive.sites() if is_http_url(site.homepage_url)]
    if not sites:
        raise InvalidArgumentError(
            f"no sitemap in {named_files(paths)}: looked for robots.txt and for sitemaps in"
            f" {archive.records:,} records, with responses of {len(archive):,} URLs"
            + (f"; {damage}" if (damage := archive.damage()) else "")
        )
    if len(sites) > 1:
        listed = _listed_elsewhere(archive, sites)
        sites = [site for site in sites if site.has_robots or not listed.issuperset(site.sitemaps)] or sites
    return [ArchivedSite(archive, site) for site in sites]


def named_files(names: Sequence[str]) -> str:
    """Return what to call several files: their names, or the first one and how many more there are."""
    return ", ".join(names) if len(names) <= _NAMED_FILES else f"{names[0]} and {len(names) - 1:,} more"


def _listed_elsewhere(archive: Archive, sites: list[Site]) -> set[str]:
    """Return the sitemaps that the robots.txt or an index of another host lists.

    Sites keep their sitemaps at other hosts, too: such a host is no site.
    """
    client = ArchiveClient(archive)
    client.set_max_response_data_length(MAX_SITEMAP_BYTES)
    listed: set[str] = set()
    for site in sites:
        robots = [f"{site.homepage_url}robots.txt"] if site.names_sitemaps else []
        for url in (*robots, *site.indexes):
            response = client.get(url)
            if isinstance(response, AbstractWebClientSuccessResponse):
                found = sitemap_from_bytes(response.raw_data(), url)
                urls = (requested_url(sub.url) for sub in found.sub_sitemaps)
                listed.update(url for url in urls if not url.startswith(site.homepage_url))
            if len(listed) > _MAX_LISTED:
                return listed
    return listed
