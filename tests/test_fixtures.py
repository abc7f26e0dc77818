"""Every fixture is read as it must be: whole, byte by byte, and cut at random places."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from support import Fixture, fixtures, plain
from usp.documents import Document
from usp.fetch_parse import SitemapFetcher
from usp.objects.sitemap import AbstractSitemap, InvalidSitemap
from usp.tree import sitemap_from_bytes

ALL = {fixture.name: fixture for fixture in fixtures()}
each_fixture = pytest.mark.parametrize("fixture", ALL.values(), ids=ALL)


class CutDocument(Document):
    """A document whose pieces are cut otherwise."""

    cuts: Callable[[bytes], Iterator[bytes]]

    def pieces(self, note: Callable[[str], None]) -> Iterator[bytes]:
        return type(self).cuts(b"".join(super().pieces(note)))


def read(fixture: Fixture, document: type[Document] = Document) -> AbstractSitemap:
    url = fixture.expected["url"]
    answer = document(url, fixture.data, fixture.expected.get("content_type"))
    return SitemapFetcher(fixture.expected.get("asked", url), 0).receive(answer).unfetched_sitemap()


def cut_into(fixture: Fixture, cuts: Callable[[bytes], Iterator[bytes]]) -> AbstractSitemap:
    return read(fixture, type("Cut", (CutDocument,), {"cuts": staticmethod(cuts), "__slots__": ()}))


@each_fixture
def test_sitemap(fixture: Fixture) -> None:
    """A document gives the sitemap that its description states."""
    sitemap = read(fixture)
    expected = fixture.expected
    assert type(sitemap).__name__ == expected["sitemap"]
    assert sitemap.url == expected["url"]
    if isinstance(sitemap, InvalidSitemap):
        assert expected["reason"] in sitemap.reason
        assert expected["url"] in sitemap.reason
    assert [child.url for child in sitemap.sub_sitemaps] == expected.get("children", [])
    if "children_last_modified" in expected:
        assert [plain(child.last_modified) for child in sitemap.sub_sitemaps] == expected["children_last_modified"]


@each_fixture
def test_pages(fixture: Fixture) -> None:
    """A document gives the pages that its description states, and a bad one those of its clean sibling."""
    pages = read(fixture).pages
    expected = fixture.expected
    assert "urls" in expected or "pages" in expected or "same_as" in expected or "reason" in expected
    if "urls" in expected:
        assert [page.url for page in pages] == expected["urls"]
    if "pages" in expected:
        wanted = [plain({"priority": "0.5", **page}) for page in expected["pages"]]
        assert [plain(page.to_dict()) for page in pages] == wanted
    if "same_as" in expected:
        assert pages == read(ALL[expected["same_as"]]).pages
    if "reason" in expected:
        assert pages == []


@each_fixture
def test_problems(fixture: Fixture) -> None:
    """A document gives the problems that its description states, and no others."""
    problems = read(fixture).problems
    if "problems" in fixture.expected:
        assert sorted(problem.code for problem in problems) == sorted(fixture.expected["problems"])
    else:
        assert problems


@each_fixture
def test_byte_by_byte(fixture: Fixture) -> None:
    """Read byte by byte, a document gives the same, problems and all."""
    whole = read(fixture)
    pieced = cut_into(fixture, lambda data: (data[i : i + 1] for i in range(len(data))))
    assert pieced == whole
    assert pieced.problems == whole.problems


@each_fixture
def test_cut_at_random(fixture: Fixture) -> None:
    """Cut at random places, a document gives the same, problems and all."""
    whole = read(fixture)
    for seed in range(5):
        chance = random.Random(seed)

        def cuts(data: bytes, chance: random.Random = chance) -> Iterator[bytes]:
            while data:
                size = chance.choice((0, 1, 2, 3, 7, 30, 200, 5_000))
                yield data[:size]
                data = data[size:]

        pieced = cut_into(fixture, cuts)
        assert pieced == whole
        assert pieced.problems == whole.problems


@each_fixture
def test_front_door(fixture: Fixture) -> None:
    """`sitemap_from_bytes` gives the same, where no header and no redirect is needed."""
    if not fixture.expected.keys() & {"content_type", "asked"}:
        assert sitemap_from_bytes(fixture.data, fixture.expected["url"]) == read(fixture)


def test_every_fixture_says_what_it_is() -> None:
    """A fixture states its rule in a sentence."""
    assert [f.name for f in ALL.values() if not f.expected["rule"].endswith(".")] == []
