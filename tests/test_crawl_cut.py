"""Crawls of documents that come in part only: no page is lost for it, and none is called removed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from many_sites import Answer, Sites, serve_sites
from support import index
from usp.crawl import Crawl, CrawlOptions, Reuse, crawl, open_crawl
from usp.limits import Limits
from usp.objects.outcome import OutcomeKind
from usp.politeness import Politeness

pytestmark = [pytest.mark.network, pytest.mark.export]

ONCE = Politeness(tries=1, first_tries=1)
OPTIONS = CrawlOptions(known_paths="never", tree={"politeness": ONCE})
HOST = "127.0.1.1"
PATHS = [f"/p/{number}" for number in range(100)]


@pytest.fixture
def sites() -> Iterator[Sites]:
    with serve_sites() as served:
        yield served


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "c"


def run(folder: Path, *sites: str, options: CrawlOptions = OPTIONS) -> Crawl:
    return crawl(sites, folder, options=options)


def paths(crawled: Crawl, number: int | None = None) -> list[str]:
    """The paths of all pages as of a run, in order."""
    table = crawled.pages(run=number, columns="path").to_arrow()
    return [str(path) for path in table.column("path").to_pylist()]


def changes(crawled: Crawl) -> list[tuple[str, str]]:
    """What changed in the last run: each kind, and the path of the page."""
    found = crawled.changes().to_arrow().to_pylist()
    return sorted((change["change"], change["url"].partition("/p")[2]) for change in found)


def outcome(crawled: Crawl) -> str:
    return next(iter(crawled.runs[-1].outcomes))


def state(crawled: Crawl, name: str) -> tuple[str, str | None]:
    """The state and the cause of the last sitemap of this name."""
    found = crawled.sitemaps(columns="url,state,cause").to_arrow().to_pylist()
    return next((row["state"], row["cause"]) for row in found if row["url"].endswith(name))


@pytest.mark.parametrize("path", ["/a.xml", "/index.xml", "/robots.txt"])
def test_what_breaks_off_keeps_what_was_known(sites: Sites, folder: Path, path: str) -> None:
    """If a transfer breaks off, the document before it counts; the next run asks for it with no condition."""
    url = sites.add(HOST, {"/a.xml": PATHS, "/b.xml": ["/p/b"]})
    run(folder, url)
    whole = sites.answers[HOST][path]
    assert isinstance(whole.body, str)
    later = Answer(whole.body + "\n", etag='"later"')
    sites.answers[HOST][path] = replace(later, cut=len(whole.body) // 2)
    crawled = run(folder)
    assert outcome(crawled) != OutcomeKind.COMPLETE
    assert state(crawled, path) == ("kept", "truncated")
    assert changes(crawled) == []
    sites.answers[HOST][path] = later
    sites.forget()
    for _ in range(2):
        crawled = run(folder)
        assert outcome(crawled) == OutcomeKind.COMPLETE
        assert (sorted(paths(crawled)), changes(crawled)) == (sorted([*PATHS, "/p/b"]), [])
    assert state(crawled, path) == ("unchanged", None)
    assert sites.requests[HOST, path] == 2
    assert sites.not_modified[HOST, path] == 1


def test_a_web_page_for_every_url_removes_nothing(sites: Sites, folder: Path) -> None:
    """A site that answers each request with a web page, as maintenance and bot walls do, keeps its pages."""
    url = sites.add(HOST, {"/a.xml": PATHS, "/b.xml": ["/p/b"]})
    run(folder, url)
    before = dict(sites.answers[HOST])
    for number in range(2):
        wall = Answer(f"<!DOCTYPE html><html><body>Back soon, {number}</body></html>", etag=f'"{number}"')
        sites.answers[HOST] = dict.fromkeys(before, wall)
        crawled = run(folder)
        assert (outcome(crawled), state(crawled, "/robots.txt")) == ("empty", ("kept", "unreadable"))
        assert (len(paths(crawled)), changes(crawled)) == (len(PATHS) + 1, [])
    sites.answers[HOST] = before
    crawled = run(folder)
    assert (outcome(crawled), state(crawled, "/robots.txt")) == ("complete", ("unchanged", None))
    assert (len(paths(crawled)), changes(crawled)) == (len(PATHS) + 1, [])
    sites.answers[HOST] = {"/robots.txt": Answer("User-agent: *\n")}
    assert len(changes(run(folder))) == len(PATHS) + 1


@pytest.mark.parametrize("reuse", [Reuse(), Reuse(trust_lastmod=True), Reuse(max_age=3_600)], ids=str)
def test_a_part_is_never_taken_for_the_document(sites: Sites, folder: Path, reuse: Reuse) -> None:
    """If the first transfer of a document breaks off, the largest part counts until the document comes."""
    url = sites.add(HOST, {"/a.xml": PATHS})
    whole = replace(sites.answers[HOST]["/a.xml"], etag='"a"', headers={"Cache-Control": "max-age=9999"})
    options = replace(OPTIONS, reuse=reuse)
    found = []
    for cut in (3_000, 1_000, 4_000, None, None):
        sites.answers[HOST]["/a.xml"] = replace(whole, cut=cut)
        crawled = run(folder, url, options=options)
        found.append((outcome(crawled), state(crawled, "a.xml"), len(paths(crawled))))
    first, smaller, larger, complete, again = found
    assert first[:2] == smaller[:2] == larger[:2] == ("partial", ("cut", "truncated"))
    assert 0 < first[2] == smaller[2] < larger[2] < len(PATHS)
    assert complete == ("complete", ("changed", None), len(PATHS))
    assert again == ("complete", ("unchanged", None), len(PATHS))
    assert [kind for kind, _ in changes(open_crawl(folder))] == []


def test_a_part_is_a_part_without_a_network_too(sites: Sites, folder: Path) -> None:
    """The tree of a folder says that a document in it is not whole."""
    url = sites.add(HOST, {"/a.xml": PATHS})
    sites.answers[HOST]["/a.xml"] = replace(sites.answers[HOST]["/a.xml"], cut=3_000)
    tree = run(folder, url).tree(url)
    assert tree.outcome.kind is OutcomeKind.PARTIAL
    assert "T805" in {problem.code for problem in tree.all_problems()}


@pytest.mark.parametrize("limits", [{"max_sitemaps": 2}, {"max_pages": 1}, {"tree_seconds": 1.5}], ids=str)
def test_a_limit_removes_nothing(sites: Sites, folder: Path, limits: dict[str, float]) -> None:
    """Sitemaps that a limit leaves out keep their pages; once there is no limit, what is gone is gone."""
    names = [f"/{name}.xml" for name in "abcdef"]
    url = sites.add(HOST, {name: [f"/p{name}"] for name in names})
    assert len(paths(run(folder, url))) == 6
    for name in names:
        sites.answers[HOST][name] = replace(sites.answers[HOST][name], has_etag=False, seconds=0.5)
    limited = replace(OPTIONS, tree={"limits": Limits(**limits), "politeness": ONCE})  # type: ignore[arg-type]
    crawled = run(folder, url, options=limited)
    assert outcome(crawled) == OutcomeKind.PARTIAL
    assert (len(paths(crawled)), changes(crawled)) == (6, [])
    for name in names:
        sites.answers[HOST][name] = replace(sites.answers[HOST][name], seconds=0.0)
    sites.answers[HOST]["/index.xml"] = Answer(index(*(sites.url(HOST, name) for name in names[1:])))
    crawled = run(folder, url)
    assert changes(crawled) == [("removed", "/a.xml")]


@pytest.mark.parametrize("damage", ["shorter", "gone"])
def test_a_lost_body_is_stored_again(sites: Sites, folder: Path, damage: str) -> None:
    """If the WARC file of a document is damaged or gone, the next run stores what it downloads."""
    url = sites.add(HOST, {"/a.xml": PATHS})
    run(folder, url)
    (file,) = (folder / "warc").iterdir()
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:300])
    crawled = run(folder)
    assert changes(crawled) == []
    assert len(list(crawled.tree(url).all_pages())) == len(PATHS)
    sites.forget()
    run(folder)
    assert sites.body_bytes == 0


@pytest.mark.parametrize("site", ["http://me:secret@{}/", "me:secret@{}"])
def test_passwords_are_not_written(sites: Sites, folder: Path, site: str) -> None:
    """The manifest does not have a site that was given with a password."""
    sites.add(HOST, {"/a.xml": PATHS})
    run(folder, site.format(f"{HOST}:{sites.port}"))
    assert "secret" not in (folder / "crawl.json").read_text()
    assert json.loads((folder / "crawl.json").read_text())["runs"][0]["targets"] == []


def test_a_crawl_that_cannot_start_leaves_nothing(folder: Path) -> None:
    """A list that is not there costs no folder and no run."""
    with pytest.raises(FileNotFoundError):
        run(folder, "no-such-list.txt")
    assert not folder.exists()


def test_nothing_to_crawl_again_is_no_run(sites: Sites, folder: Path) -> None:
    """`retry_failed` makes no run if no site failed."""
    run(folder, sites.add(HOST, {"/a.xml": PATHS}))
    assert len(crawl([], folder, options=OPTIONS, retry_failed=True).runs) == 1
