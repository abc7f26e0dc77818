"""Every fixture gives what its description states: read whole, byte by byte, and cut at random places."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache

import pytest

from support import FIXTURES, Fixture, fixtures, plain
from usp.documents import Document
from usp.fetch_parse import (
    IndexRobotsTxtSitemapParser,
    PlainTextSitemapParser,
    SitemapFetcher,
    XMLSitemapParser,
)
from usp.objects.problem import ProblemLog
from usp.objects.sitemap import AbstractSitemap, InvalidSitemap
from usp.scan.encodings import to_utf8
from usp.tree import sitemap_from_bytes

pytestmark = pytest.mark.wheel

ALL = {fixture.name: fixture for fixture in fixtures()}
each_fixture = pytest.mark.parametrize("fixture", ALL.values(), ids=ALL)


PARSERS = {"IndexRobotsTxtSitemap": IndexRobotsTxtSitemapParser, "PagesTextSitemap": PlainTextSitemapParser}
Cuts = Callable[[bytes], Iterator[bytes]]


class CutDocument(Document):
    """A document that is cut into other pieces."""

    __slots__ = ()
    cuts: Cuts

    def pieces(self, note: Callable[[str], None]) -> Iterator[bytes]:
        return type(self).cuts(b"".join(super().pieces(note)))


def receive(fixture: Fixture, document: type[Document] = Document) -> AbstractSitemap:
    url = fixture.expected["url"]
    answer = document(url, fixture.data, fixture.expected.get("content_type"))
    return SitemapFetcher(fixture.expected.get("asked", url), 0).receive(answer).unfetched_sitemap()


@cache
def read(fixture_name: str) -> AbstractSitemap:
    return receive(ALL[fixture_name])


def bytewise(data: bytes) -> Iterator[bytes]:
    return (data[i : i + 1] for i in range(len(data)))


def at_random(seed: int) -> Cuts:
    chance = random.Random(seed)

    def cuts(data: bytes) -> Iterator[bytes]:
        while data:
            size = chance.choice((0, 1, 2, 3, 7, 30, 200, 5_000))
            yield data[:size]
            data = data[size:]

    return cuts


# Large documents are cut into pieces of a prime size, because byte by byte takes too long.
def small_cuts(fixture: Fixture) -> list[Cuts]:
    if len(fixture.data) < 30_000 and "large" not in fixture.name and "late" not in fixture.name:
        return [bytewise, *map(at_random, range(4))]
    return [lambda data: (data[i : i + 997] for i in range(0, len(data), 997)), at_random(1)]


@each_fixture
def test_sitemap(fixture: Fixture) -> None:
    """A document gives the sitemap that its description states."""
    sitemap = read(fixture.name)
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
    """A document gives the pages that its description states, or those of the fixture that it names."""
    pages = read(fixture.name).pages
    expected = fixture.expected
    assert "urls" in expected or "pages" in expected or "same_as" in expected or "reason" in expected
    if "urls" in expected:
        assert [page.url for page in pages] == expected["urls"]
    if "pages" in expected:
        wanted = [plain({"priority": "0.5", **page}) for page in expected["pages"]]
        assert [plain(page.to_dict()) for page in pages] == [page | {"sitemap_url": expected["url"]} for page in wanted]
    if "same_as" in expected:
        assert pages == read(expected["same_as"]).pages
    if "reason" in expected:
        assert pages == []


@each_fixture
def test_problems(fixture: Fixture) -> None:
    """A document gives the problems that its description states, and no others."""
    problems = read(fixture.name).problems
    if "problems" in fixture.expected:
        assert sorted(problem.code for problem in problems) == sorted(fixture.expected["problems"])
    else:
        assert problems, "a fixture without a list of problems has some"


@pytest.mark.slow
@each_fixture
def test_cut_as_it_arrives(fixture: Fixture) -> None:
    """A document that arrives byte by byte, or cut at random places, gives the same pages and problems."""
    whole = read(fixture.name)
    for cuts in small_cuts(fixture):
        cut = receive(fixture, type("Cut", (CutDocument,), {"cuts": staticmethod(cuts), "__slots__": ()}))
        assert cut == whole
        assert cut.problems == whole.problems


@pytest.mark.slow
@each_fixture
def test_cut_before_the_parser(fixture: Fixture) -> None:
    """A parser that is handed text byte by byte, or cut at random places, gives the same pages and problems."""
    document = Document(fixture.expected["url"], fixture.data, fixture.expected.get("content_type"))
    text = b"".join(to_utf8(document.pieces(lambda code: None), document.charset, ProblemLog("")))
    parser = PARSERS.get(fixture.expected["sitemap"], XMLSitemapParser)
    whole = parser(document.url, lambda log: [text]).sitemap()
    for cuts in small_cuts(fixture):
        cut = parser(document.url, lambda log, cuts=cuts: cuts(text)).sitemap()  # type: ignore[misc]  # a default, to bind it now
        assert cut == whole
        assert cut.problems == whole.problems


@each_fixture
def test_front_door(fixture: Fixture) -> None:
    """`sitemap_from_bytes` gives the same sitemap, where no header and no redirect is needed."""
    if not fixture.expected.keys() & {"content_type", "asked"}:
        assert sitemap_from_bytes(fixture.data, fixture.expected["url"]) == read(fixture.name)


def test_every_fixture_says_what_it_is() -> None:
    """A fixture states its rule in a sentence."""
    assert [f.name for f in ALL.values() if not f.expected["rule"].endswith(".")] == []


def test_every_document_is_described() -> None:
    """Every file is a description or the one document of a description."""
    documents = sorted(path.name for path in FIXTURES.iterdir() if path.suffix != ".json")
    assert documents == sorted(fixture.file for fixture in ALL.values() if "generate" not in fixture.expected)


def test_large_fixtures_are_generated() -> None:
    """No stored file is over 100 kB: a large document is generated from a recipe in its description."""
    assert [path.name for path in FIXTURES.iterdir() if path.stat().st_size > 100_000] == []
