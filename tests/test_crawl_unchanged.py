"""Sites of which nothing has changed: no tree is built, and the result is as if it had been."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from many_sites import Answer, Sites, serve_sites
from support import index, urlset
from usp.crawl import CrawlOptions, crawl, open_crawl
from usp.crawl.folder import CrawlFolder
from usp.crawl.tasks import clustered_run
from usp.crawl.unchanged import walk_key
from usp.limits import Limits
from usp.politeness import Politeness

pytestmark = [pytest.mark.network, pytest.mark.export]

HOST = "127.0.1.1"
OPTIONS = CrawlOptions()
#: The same walk, but with a function of the caller: nobody knows what it does, so the tree is always built.
WALKING = CrawlOptions(tree={"choose_callback": lambda children, *others: children})
_TIMES = ("seconds", "started", "fetched_at", "warc_date", "warc_offset", "warc_length", "document")

#: Changes what a site serves.
Change = Callable[[Sites, dict[str, Answer]], object]


@pytest.fixture
def sites() -> Iterator[Sites]:
    with serve_sites() as served:
        yield served


def add_site(sites: Sites) -> str:
    """Add a site with two indexes, one of which lists the same sitemap as the other, too."""
    url = sites.add(HOST, {"/a.xml": ["/1", "/2"], "/b.xml": ["/3"], "/c.xml": ["/4"]})
    answers = sites.answers[HOST]
    answers["/second.xml"] = Answer(index(sites.url(HOST, "/c.xml"), sites.url(HOST, "/d.xml")))
    answers["/d.xml"] = Answer(urlset(sites.url(HOST, "/5")) + "broken <")
    answers["/robots.txt"] = Answer(f"Sitemap: {url}index.xml\nSitemap: {url}second.xml\n")
    return url


def change_sitemap(sites: Sites, answers: dict[str, Answer]) -> None:
    answers["/b.xml"] = Answer(urlset(sites.url(HOST, "/new"), sites.url(HOST, "/3")))


def change_index(sites: Sites, answers: dict[str, Answer]) -> None:
    answers["/e.xml"] = Answer(urlset(sites.url(HOST, "/6")))
    answers["/index.xml"] = Answer(index(sites.url(HOST, "/e.xml"), sites.url(HOST, "/a.xml")))


def change_robots(sites: Sites, answers: dict[str, Answer]) -> None:
    answers["/robots.txt"] = Answer(f"Sitemap: {sites.url(HOST, '/second.xml')}\n")


def redirect(sites: Sites, answers: dict[str, Answer]) -> None:
    answers["/moved.xml"] = answers["/b.xml"]
    answers["/b.xml"] = Answer(status=302, headers={"Location": "/moved.xml"}, has_etag=False)


def redirect_to_another(sites: Sites, answers: dict[str, Answer]) -> None:
    answers["/b.xml"] = Answer(status=302, headers={"Location": "/a.xml"}, has_etag=False)


def forget_validators(sites: Sites, answers: dict[str, Answer]) -> None:
    answers["/robots.txt"] = Answer(answers["/robots.txt"].body, has_etag=False)


CHANGES: dict[str, Change] = {
    "nothing": lambda sites, answers: None,
    "a sitemap": change_sitemap,
    "an index": change_index,
    "robots.txt": change_robots,
    "a sitemap is gone": lambda sites, answers: answers.pop("/b.xml"),
    "robots.txt is gone": lambda sites, answers: answers.pop("/robots.txt"),
    "an index fails": lambda sites, answers: answers.update({"/index.xml": Answer(status=403, has_etag=False)}),
    "all is gone": lambda sites, answers: answers.clear(),
    "a redirect": redirect,
    "a redirect to another sitemap": redirect_to_another,
    "no validators": forget_validators,
}


def found(folder: Path, run: int) -> dict[str, list[dict[str, Any]]]:
    """Return the tables of a run, without what depends on the clock."""
    crawled = open_crawl(folder)
    tables = {"sites": crawled.sites(run), "sitemaps": crawled.sitemaps(run), "pages": crawled.pages(run)}
    rows = {name: table.to_arrow().to_pylist() for name, table in tables.items()}
    return {
        name: [{column: value for column, value in row.items() if column not in _TIMES} for row in of_table]
        for name, of_table in rows.items()
    }


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_the_result_is_that_of_a_walk(sites: Sites, tmp_path: Path, change: Change) -> None:
    """Whatever changes, tables, trees and requests are those of a crawl that builds the tree."""
    url = add_site(sites)
    results = []
    for name, options in {"asked": OPTIONS, "walked": WALKING}.items():
        add_site(sites)
        crawl([url], tmp_path / name, options=options)
        crawl([url], tmp_path / name, options=options)
        change(sites, sites.answers[HOST])
        sites.forget()
        crawled = crawl([url], tmp_path / name, options=options)
        requests, unchanged = Counter(sites.requests), Counter(sites.not_modified)
        results.append((found(tmp_path / name, 3), requests, unchanged, crawled.tree(url)))
    asked, walked = results
    assert asked == walked


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_no_url_is_requested_twice(sites: Sites, tmp_path: Path, change: Change) -> None:
    """Answers that came before the tree was needed are those of the tree."""
    url = add_site(sites)
    for _ in range(2):
        crawl([url], tmp_path / "c", options=OPTIONS)
    change(sites, sites.answers[HOST])
    sites.forget()
    crawl([url], tmp_path / "c", options=OPTIONS)
    assert set(sites.requests.values()) == {1}


def test_documents_that_did_not_change_are_not_read(sites: Sites, tmp_path: Path) -> None:
    """If the server says so of all of them, the bodies of earlier runs may be anything."""
    url = add_site(sites)
    crawl([url], tmp_path / "c", options=OPTIONS)
    for file in (tmp_path / "c" / "warc").iterdir():
        file.write_bytes(b"x" * file.stat().st_size)
    sites.forget()
    crawled = crawl([url], tmp_path / "c", options=OPTIONS)
    assert sites.not_modified == sites.requests
    assert sites.body_bytes == 0
    (row,) = crawled.sites(columns="run,outcome,unchanged,requests").to_arrow().to_pylist()
    assert row == {"run": 2, "outcome": "complete", "unchanged": 8, "requests": 7}


def test_tasks_of_a_cluster_do_the_same(sites: Sites, tmp_path: Path) -> None:
    """A task reads no documents of sites of which nothing has changed, if the run before made the same walks."""
    url = add_site(sites)
    parts: list[str | None] = [None]
    for options in ({}, {}, {"known_paths": "never"}):
        sites.forget()
        with clustered_run(str(tmp_path / "c"), options, None) as run:
            parts.append(run.crawl([(url, parts[-1])]))
        for file in (tmp_path / "c" / "warc").iterdir():
            file.write_bytes(b"x" * file.stat().st_size)
        is_read = sites.body_bytes > 0
        assert is_read == (run.run != 2)


@pytest.mark.parametrize(
    "again",
    [
        CrawlOptions(known_paths="never"),
        CrawlOptions(tree={"limits": Limits(max_sitemaps=2)}),
        CrawlOptions(tree={"exclude": r"/b\.xml"}),
        CrawlOptions(with_pages=False),
    ],
    ids=["known paths", "limits", "exclude", "no pages"],
)
def test_other_options_make_another_walk(sites: Sites, tmp_path: Path, again: CrawlOptions) -> None:
    """After the options have changed, the tree is built: a damaged document is noticed, and fetched again."""
    url = add_site(sites)
    crawl([url], tmp_path / "c", options=OPTIONS)
    for file in (tmp_path / "c" / "warc").iterdir():
        file.write_bytes(b"x" * file.stat().st_size)
    sites.forget()
    crawl([url], tmp_path / "c", options=again)
    assert sites.body_bytes > 0


@pytest.mark.parametrize(
    "options",
    [
        CrawlOptions(known_paths="always"),
        CrawlOptions(tree={"respect_robots": True}),
        CrawlOptions(tree={"politeness": Politeness(crawl_delay=True)}),
        CrawlOptions(tree={"politeness": Politeness(spacing=0.5)}),
        CrawlOptions(tree={"recurse_callback": lambda *others: True}),
    ],
    ids=["guesses", "robots rules", "crawl delay", "spacing", "a function"],
)
def test_some_walks_are_always_made(options: CrawlOptions) -> None:
    """Only a walk knows guesses, rules and delays, and what a function of the caller does."""
    assert walk_key(options) is None


def test_a_run_with_two_kinds_of_walks_has_none(tmp_path: Path) -> None:
    """A run that was interrupted may go on with other options: then nobody knows which site was walked how."""
    folder = CrawlFolder.create(tmp_path / "c")
    now = datetime.now(UTC)
    run = folder.start_run(now, (), {"kept": 1}, walk="a")
    assert folder.resume_run(run, "a").walk == "a"
    assert folder.resume_run(run, "b").options == {"kept": 1}
    assert CrawlFolder(tmp_path / "c").runs[0].walk is None
