"""The alternates of a page: its versions in other languages, as `<xhtml:link>`s state them; and return links.

Links that are missing are looked for over all sitemaps of a site, in bounded memory. While all are read,
`ReturnLinks.clusters` finds out which sets of pages that link to one another are complete, as nearly all sets are. Only
if any are not, sitemaps are read again: for the pages of those sets, which are compared; for what the pages that
seem not to link back have in other entries; and, where something was found, for the places.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from usp.check.languages import X_DEFAULT
from usp.objects.problem import At
from usp.scan.elements import Element
from usp.scan.survey import PureClusterSums, same_url_key
from usp.scan.urls import absolute_url, unescaped_url

__all__ = ["MAX_COMPARED", "Alternate", "ReturnLinks", "alternates_of", "cluster_of"]

#: How many links are compared.
MAX_COMPARED = 200_000
_MODULUS = 1 << 64

Hash = Callable[[str], int]


class Alternate(NamedTuple):
    """A version of a page in another language. Its URL has a path, as `same_url_key` puts it in."""

    language: str
    url: str
    at: At

    @property
    def is_default(self) -> bool:
        """Whether it is the one for all other languages."""
        return self.language.lower() == X_DEFAULT


def alternates_of(entry: Element, base: str) -> list[Alternate]:
    """The alternates that an entry states; those without a URL that counts are left out."""
    found = []
    for link in entry.all("link"):
        language, href = link.attributes.get("hreflang"), link.attributes.get("href")
        if not language or not href or "alternate" not in link.attributes.get("rel", "alternate").lower().split():
            continue
        url, _ = absolute_url(unescaped_url(href), base)
        if url is not None:
            found.append(Alternate(language, same_url_key(url), link.at))
    return found


def cluster_of(url: str, alternates: list[Alternate], hash_of: Hash) -> tuple[int, int]:
    """The number of the set of a page and its alternates, the same whichever of them is the page; and its size."""
    members = {same_url_key(url), *(alternate.url for alternate in alternates if not alternate.is_default)}
    return sum(map(hash_of, members)) % _MODULUS, len(members)


class ReturnLinks:
    """Finds the alternates that do not link back.

    All pages are noted first; those of sets that are `wanted` then are compared; then those that are `doubtful` are
    looked up. In the end `missing` says, for each page, which of its alternates do not link back. Of alternates that no
    sitemap lists, nothing is said. Pages are known by their keys in here, and outside as they are written.
    """

    def __init__(
        self, clusters: PureClusterSums, hash_of: Hash, is_listed: Callable[[str], bool], most: int = MAX_COMPARED
    ) -> None:
        self.clusters = clusters
        self.is_cut = False
        self._count = 0  # of links that are kept
        self._hash_of = hash_of
        self._is_listed = is_listed
        self._most = most
        self._compared: dict[str, dict[str, None]] = {}  # pages, and their alternates in order
        self._written: dict[str, str] = {}  # pages that were compared and are not written as their keys
        self._links: dict[str, set[str]] = {}  # pages, and all that they were seen to link to
        self._looked_up: set[str] = set()
        self._texts: dict[str, str] = {}  # so that a URL that stands in many pages is kept once

    def note(self, url: str, alternates: list[Alternate]) -> None:
        """One more page and its alternates. A survey does the same for those that it passes over."""
        self.clusters.note(*cluster_of(url, alternates, self._hash_of), self._hash_of(url))

    def is_wanted(self, url: str, alternates: list[Alternate]) -> bool:
        """Whether a page is to be compared: its set is not complete, and others of it are listed."""
        own, others = same_url_key(url), (alternate for alternate in alternates if not alternate.is_default)
        is_open = self.clusters.is_open(cluster_of(url, alternates, self._hash_of)[0])
        return is_open and any(alternate.url != own and self._is_listed(alternate.url) for alternate in others)

    def compare(self, url: str, alternates: list[Alternate]) -> None:
        """Remember a page of a set that is not complete."""
        key = same_url_key(url)
        if self.is_cut or self._count + len(alternates) > self._most:
            self.is_cut = True
            return
        self._count += len(alternates)
        if key != url:
            self._written[key] = url
        stated = self._compared.setdefault(self._kept(key), {})
        for alternate in alternates:
            if not alternate.is_default and alternate.url != key:
                stated[self._kept(alternate.url)] = None
        self._link(key, alternates)

    def doubtful(self) -> set[str]:
        """The alternates that are listed and were not seen to link back; they may have other entries."""
        found: set[str] = set()
        for url, stated in self._compared.items():
            for alternate in stated:
                if url not in self._links.get(alternate, ()) and self._is_listed(alternate):
                    if len(found) >= self._most:
                        self.is_cut = True
                        break
                    found.add(alternate)
        self._looked_up = found
        return found

    def look_up(self, url: str, alternates: list[Alternate]) -> None:
        """One more entry of a page that is doubtful."""
        key = same_url_key(url)
        if key in self._looked_up:
            self._count += len(alternates)
            if self._count > 2 * self._most:
                self.is_cut = True
                self._looked_up.discard(key)  # nobody knows what else it links to
                return
            self._link(key, alternates)

    def missing(self) -> dict[str, set[str]]:
        """Pages, in each of their spellings, and those of their alternates that do not link back."""
        found = {}
        for url, stated in self._compared.items():
            silent = {other for other in stated.keys() & self._looked_up if url not in self._links.get(other, ())}
            if silent:
                found[url] = found[self._written.get(url, url)] = silent
        return found

    def _link(self, url: str, alternates: list[Alternate]) -> None:
        self._links.setdefault(self._kept(url), set()).update(self._kept(alternate.url) for alternate in alternates)

    def _kept(self, url: str) -> str:
        return self._texts.setdefault(url, url)
