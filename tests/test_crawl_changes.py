"""Differences between runs: crawl folders are made by crawling loopback servers whose content changes in between."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import usp
from support import SITEMAP_XMLNS, Server, index, serve
from usp.cli import cli
from usp.crawl import Crawl, CrawlOptions, crawl, differences, open_crawl
from usp.crawl.any_sources import CrawlState, ExportedPages, source_changes
from usp.crawl.changes import Change, ChangeKind
from usp.exceptions import CrawlFolderError, InvalidArgumentError
from usp.export import write
from usp.tree import sitemap_from_str, sitemap_tree_for_homepage

pytestmark = [pytest.mark.network, pytest.mark.export]

OPTIONS = CrawlOptions(known_paths="never")
NEWS = "<news:news><news:publication_date>2026-01-01</news:publication_date><news:title>{}</news:title></news:news>"
#: A page: its path, or its path and what else its entry has.
Entry = str | tuple[str, str]
#: Sitemaps in their order -> their pages.
Content = dict[str, list[Entry]]


def urlset(base: str, entries: list[Entry]) -> bytes:
    found = []
    for entry in entries:
        path, rest = (entry, "") if isinstance(entry, str) else entry
        found.append(f"<url><loc>{base}{path}</loc>{rest}</url>")
    spaces = (
        'xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"'
        ' xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"'
    )
    return f"<urlset {SITEMAP_XMLNS} {spaces}>{''.join(found)}</urlset>".encode()


class Site:
    """A website on loopback, and what it serves."""

    def __init__(self, server: Server) -> None:
        self.url = f"{server.url}/"
        self._server = server

    def has(self, content: Content) -> None:
        """Serve these sitemaps, below an index."""
        base, pages = self._server.url, self._server.pages
        pages.clear()
        pages["/robots.txt"] = (200, {}, f"Sitemap: {base}/index.xml\n".encode())
        pages["/index.xml"] = (200, {}, index(*(f"{base}/{name}" for name in content)).encode())
        for name, entries in content.items():
            pages[f"/{name}"] = (200, {}, urlset(base, entries))

    def answers(self, path: str, status: int) -> None:
        self._server.pages[path] = (status, {}, b"")


@contextmanager
def websites(count: int = 1) -> Iterator[list[Site]]:
    with ExitStack() as stack:
        yield [Site(stack.enter_context(serve({}))) for _ in range(count)]


@pytest.fixture
def site() -> Iterator[Site]:
    with websites() as (only,):
        yield only


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "crawl"


def run(folder: Path, *sites: Site) -> Crawl:
    return crawl([site.url for site in sites], folder, options=OPTIONS)


def short(changes: Any) -> list[tuple[str, ...]]:
    """The kind, the path, and the fields of each change, sorted."""
    return sorted((change.change.value, "/" + change.url.split("/", 3)[3], *change.fields) for change in changes)


def test_added_removed_and_changed(site: Site, folder: Path) -> None:
    """Pages that came, went, or have another value in a field are told with what differs."""
    date = "<lastmod>2026-01-0{}</lastmod><priority>0.5</priority>"
    site.has({"a.xml": ["/same", ("/x/dated", date.format(1)), "/x/gone"]})
    run(folder, site)
    site.has({"a.xml": ["/same", ("/x/dated", date.format(2)), "/y/new"]})
    changes = run(folder, site).changes()
    assert short(changes) == [
        ("added", "/y/new"),
        ("changed", "/x/dated", "last_modified"),
        ("removed", "/x/gone"),
    ]
    found = {change.change: change for change in changes}
    changed, added, removed = (found[kind] for kind in (ChangeKind.CHANGED, ChangeKind.ADDED, ChangeKind.REMOVED))
    assert (changed.site, changed.section, changed.sitemap_url) == (site.url, "x", f"{site.url}a.xml")
    assert [date and date.day for date in (changed.old_last_modified, changed.last_modified)] == [1, 2]
    assert (added.sitemap_url, added.old_sitemap_url) == (f"{site.url}a.xml", None)
    assert (removed.sitemap_url, removed.old_sitemap_url) == (None, f"{site.url}a.xml")
    counts = changes.counts()
    assert counts.total == {"added": 1, "removed": 1, "changed": 1}
    assert counts.by_section == {(site.url, "x"): {"changed": 1, "removed": 1}, (site.url, "y"): {"added": 1}}
    assert list(changes.only("added")) == [added]


@pytest.mark.parametrize(
    ("field", "before", "after"),
    [
        ("change_frequency", "<changefreq>daily</changefreq>", "<changefreq>weekly</changefreq>"),
        ("priority", "<priority>0.1</priority>", ""),
        ("images", "", "<image:image><image:loc>https://a.example/1.png</image:loc></image:image>"),
        (
            "news",
            NEWS.format("one"),
            NEWS.format("two"),
        ),
    ],
)
def test_each_field_is_compared(site: Site, folder: Path, field: str, before: str, after: str) -> None:
    """A change names the field that differs."""
    site.has({"a.xml": [("/1", before), "/2"]})
    run(folder, site)
    site.has({"a.xml": [("/1", after), "/2"]})
    (change,) = run(folder, site).changes()
    assert (change.change, change.fields) == ("changed", (field,))
    assert change.title == ("two" if field == "news" else None)


def test_a_page_that_moves_is_neither_added_nor_removed(site: Site, folder: Path) -> None:
    """A page in another sitemap with equal fields has moved; with other fields, it has changed."""
    site.has({"a.xml": ["/1", "/2", "/3"], "b.xml": ["/4"]})
    run(folder, site)
    site.has({"a.xml": ["/1"], "b.xml": ["/4", "/2", ("/3", "<priority>0.9</priority>")]})
    changes = run(folder, site).changes()
    assert (short(changes)) == [("changed", "/3", "priority"), ("moved", "/2")]
    for change in changes:
        assert (change.old_sitemap_url, change.sitemap_url) == (f"{site.url}a.xml", f"{site.url}b.xml")


def test_a_page_that_stays_in_an_unchanged_sitemap_has_moved(site: Site, folder: Path) -> None:
    """A page that vanishes from one sitemap, and that another one lists as before, counts there from now on."""
    site.has({"a.xml": ["/1", "/2"], "b.xml": ["/2", "/3"]})
    run(folder, site)
    site.has({"a.xml": ["/1"], "b.xml": ["/2", "/3"]})
    assert short(run(folder, site).changes()) == [("moved", "/2")]
    site.has({"a.xml": ["/1"], "b.xml": ["/3", "/2"], "c.xml": ["/3"]})
    assert short(run(folder, site).changes()) == []


def test_the_first_place_of_a_page_counts(site: Site, folder: Path) -> None:
    """Of a page that two sitemaps list, only the first in the order of the tree matters."""
    high, low = "<priority>0.9</priority>", "<priority>0.1</priority>"
    site.has({"a.xml": [("/1", high)], "b.xml": [("/1", low), ("/1", high)]})
    run(folder, site)
    site.has({"a.xml": [("/1", high)], "b.xml": ["/1"]})
    assert short(run(folder, site).changes()) == []
    site.has({"b.xml": ["/1"], "a.xml": [("/1", high), "/2"]})
    assert short(run(folder, site).changes()) == [("added", "/2"), ("changed", "/1", "priority")]


def test_a_page_that_is_listed_twice_is_told_once(site: Site, folder: Path) -> None:
    """A page that two new documents list is added once."""
    site.has({"a.xml": ["/1"], "b.xml": ["/2"]})
    run(folder, site)
    site.has({"a.xml": ["/3", "/3"], "b.xml": ["/2", "/3"]})
    assert short(run(folder, site).changes()) == [("added", "/3"), ("removed", "/1")]


def test_nothing_changes_if_nothing_changed(site: Site, folder: Path) -> None:
    """Two equal runs have no changes, nor has a document that only has other bytes."""
    site.has({"a.xml": ["/1"]})
    run(folder, site)
    assert list(run(folder, site).changes()) == []
    site.has({"a.xml": [("/1", " ")]})
    assert list(run(folder, site).changes()) == []


def test_content_that_comes_back(site: Site, folder: Path) -> None:
    """Over three runs, what came and went again is no change; each step is."""
    for pages in (["/1"], ["/2"], ["/1"]):
        site.has({"a.xml": list(pages)})
        run(folder, site)
    crawled = open_crawl(folder)
    assert short(crawled.changes(1, 2)) == [("added", "/2"), ("removed", "/1")]
    assert short(crawled.changes(2, 3)) == short(crawled.changes()) == [("added", "/1"), ("removed", "/2")]
    assert short(crawled.changes(1, 3)) == []


@pytest.mark.parametrize("path", ["/b.xml", "/index.xml"])
def test_a_sitemap_that_fails_keeps_its_pages(site: Site, folder: Path, path: str) -> None:
    """Pages of a sitemap that answers 403, and those below such an index, do not vanish."""
    site.has({"a.xml": ["/1"], "b.xml": ["/2"]})
    run(folder, site)
    site.answers(path, 403)
    crawled = run(folder, site)
    assert dict(crawled.runs[-1].outcomes) != {"complete": 1}
    assert list(crawled.changes()) == []
    site.has({"a.xml": ["/1"], "b.xml": ["/2", "/3"]})
    assert short(run(folder, site).changes()) == [("added", "/3")]


def test_a_sitemap_that_is_gone_loses_its_pages(site: Site, folder: Path) -> None:
    """Pages of a sitemap that answers 404 are removed."""
    site.has({"a.xml": ["/1"], "b.xml": ["/2"]})
    run(folder, site)
    site.answers("/b.xml", 404)
    assert short(run(folder, site).changes()) == [("removed", "/2")]


def test_a_site_that_is_blocked_has_no_changes(folder: Path) -> None:
    """A site that is blocked or left out does not lose its pages, and other sites have their changes."""
    with websites(3) as (good, blocked, left_out):
        for site in (good, blocked, left_out):
            site.has({"a.xml": ["/1"]})
        run(folder, good, blocked, left_out)
        blocked.answers("/robots.txt", 403)
        blocked.answers("/index.xml", 403)
        left_out.has({"a.xml": ["/2"]})
        good.has({"a.xml": ["/1", "/2"]})
        run(folder, good, blocked)
        crawled = open_crawl(folder)
        assert [(change.site, change.url) for change in crawled.changes()] == [(good.url, f"{good.url}2")]
        blocked.has({"a.xml": ["/1", "/3"]})
        run(folder, blocked)
        assert short(crawled.changes(1, 2)) == [("added", "/2")]
        assert short(open_crawl(folder).changes()) == [("added", "/3")]
        assert (short(open_crawl(folder).changes(1, 3))) == [("added", "/2"), ("added", "/3")]


def test_a_site_that_is_unreachable_has_no_changes(folder: Path) -> None:
    """A site that does not answer any more does not lose its pages."""
    with websites() as (site,):
        site.has({"a.xml": ["/1"]})
        run(folder, site)
    crawled = run(folder, site)
    assert dict(crawled.runs[-1].outcomes) == {"unreachable": 1}
    assert list(crawled.changes()) == []
    assert crawled.pages().to_arrow().num_rows == 1
    assert crawled.pages(columns="url").to_arrow().to_pylist() == [{"url": f"{site.url}1"}]


def test_a_new_site_has_all_its_pages_added(folder: Path) -> None:
    """All pages of a site that was not crawled before are added."""
    with websites(2) as (old, new):
        for site in (old, new):
            site.has({"a.xml": ["/1", "/2"]})
        run(folder, old)
        crawled = run(folder, old, new)
        changes = crawled.changes()
        assert [change.url for change in changes] == [f"{new.url}1", f"{new.url}2"]
        assert changes.counts().by_site == {new.url: {"added": 2}}
        assert list(crawled.changes(new_sites=False)) == []


def test_only_some_sites(folder: Path) -> None:
    """Changes can be those of some sites, named as they were given or as tables have them."""
    with websites(2) as sites:
        for number, site in enumerate(sites):
            site.has({"a.xml": [f"/{number}"]})
        run(folder, *sites)
        for site in sites:
            site.has({"a.xml": ["/new"]})
        crawled = run(folder, *sites)
        for name in (sites[1].url, sites[1].url.rstrip("/"), sites[1].url.removeprefix("http://")):
            assert {change.site for change in crawled.changes(sites=[name])} == {sites[1].url}
        with pytest.raises(InvalidArgumentError, match="has no site"):
            crawled.changes(sites=["example.org"])


def test_wrong_runs_are_refused(site: Site, folder: Path) -> None:
    """Runs that do not exist, or are in the wrong order, are errors that say what to do."""
    site.has({"a.xml": ["/1"]})
    first = run(folder, site)
    with pytest.raises(InvalidArgumentError, match="no run before run 1"):
        first.changes()
    crawled = run(folder, site)
    with pytest.raises(InvalidArgumentError, match="there is no run 9; there are 1 to 2"):
        crawled.changes(1, 9)
    with pytest.raises(InvalidArgumentError, match="name the earlier run first: 1 2"):
        crawled.changes(2, 1)
    with pytest.raises(InvalidArgumentError, match="there is no kind 'new'"):
        crawled.changes().only("new")
    with pytest.raises(InvalidArgumentError, match="must be like"):
        crawled.changes("yesterday")
    assert list(crawled.changes("1h")) == list(crawled.changes("2020-01-01")) == []


def test_a_run_without_pages_cannot_be_compared(site: Site, folder: Path) -> None:
    """If the pages were not kept, the error says so."""
    site.has({"a.xml": ["/1"]})
    run(folder, site)
    site.has({"a.xml": ["/2"]})
    crawled = crawl([site.url], folder, options=CrawlOptions(known_paths="never", with_pages=False))
    with pytest.raises(CrawlFolderError, match=r"run 2 of .* has no pages"):
        list(crawled.changes())


def naive(old: Content, new: Content) -> dict[str, tuple[str, ...]]:
    """The changes of one site by sets, without a database: path -> kind and fields."""

    def firsts(content: Content) -> dict[str, tuple[str, str]]:
        found: dict[str, tuple[str, str]] = {}
        for sitemap, entries in content.items():
            for entry in entries:
                path, rest = (entry, "") if isinstance(entry, str) else entry
                found.setdefault(path, (sitemap, rest))
        return found

    before, after = firsts(old), firsts(new)
    differing = [name for name in {*old, *new} if old.get(name) != new.get(name)]
    listed = {entry[0] for name in differing for content in (old, new) for entry in content.get(name, ())}
    changes: dict[str, tuple[str, ...]] = {}
    for path in listed:
        if path not in before:
            changes[path] = ("added",)
        elif path not in after:
            changes[path] = ("removed",)
        elif before[path][1] != after[path][1]:
            changes[path] = ("changed", "priority")
        elif before[path][0] != after[path][0]:
            changes[path] = ("moved",)
    return changes


def random_content(chance: random.Random) -> Content:
    names = chance.sample(["a.xml", "b.xml", "c.xml"], chance.randint(1, 3))
    paths = [f"/{number}" for number in range(6)]
    return {
        name: [
            (chance.choice(paths), f"<priority>0.{chance.randint(1, 2)}</priority>")
            for _ in range(chance.randint(1, 4))
        ]
        for name in names
    }


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_changes_are_those_of_sets(folder: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """For random trees, with duplicates and in any order, changes are what sets of first places say.

    That holds whether they are found at once or in many groups of sites: these are slow, so each seed has another pair.
    """
    chance = random.Random(seed)
    with websites(12) as sites:
        history: list[list[Content]] = []
        for _ in range(3):
            contents = [random_content(chance) for _ in sites]
            if history:  # most sitemaps stay
                for before, content in zip(history[-1], contents, strict=True):
                    content.update({name: before[name] for name in content if name in before and chance.random() < 0.6})
            for site, content in zip(sites, contents, strict=True):
                site.has(content)
            run(folder, *sites)
            history.append(contents)
        crawled = open_crawl(folder)
        pairs = ((1, 2), (2, 3), (1, 3))
        for earlier, later in pairs:
            expected = {
                (site.url, path): change
                for site, old, new in zip(sites, history[earlier - 1], history[later - 1], strict=True)
                for path, change in naive(old, new).items()
            }
            for group_pages in (2_500_000, 3) if (earlier, later) == pairs[seed] else (2_500_000,):
                monkeypatch.setattr(differences, "_GROUP_PAGES", group_pages)
                changes = crawled.changes(earlier, later)
                found = {
                    (change.site, change.url.removeprefix(change.site.rstrip("/"))): (
                        change.change.value,
                        *change.fields,
                    )
                    for change in changes
                }
                assert found == expected
                assert changes.counts().total.total() == len(expected)


def test_tables_as_of_a_run(site: Site, folder: Path) -> None:
    """Each table has the rows of the state as of a run."""
    site.has({"a.xml": ["/1"], "b.xml": ["/2"]})
    run(folder, site)
    site.has({"a.xml": ["/1"], "b.xml": ["/3"]})
    crawled = run(folder, site)

    def urls(number: int | None) -> list[str]:
        return sorted(row["url"].removeprefix(site.url) for row in crawled.pages(number, "url").to_arrow().to_pylist())

    assert (urls(1), urls(2), urls(None)) == (["1", "2"], ["1", "3"], ["1", "3"])
    assert [row["run"] for row in crawled.sites().to_arrow().to_pylist()] == [2]
    columns = "url,state"
    found = [
        (row["url"].removeprefix(site.url), row["state"]) for row in crawled.sitemaps(2, columns).to_arrow().to_pylist()
    ]
    assert found[-2:] == [("a.xml", "unchanged"), ("b.xml", "changed")]
    assert crawled.problems().to_arrow().num_rows == 0
    assert list(crawled.pages().to_pandas()["url"]) == list(crawled.pages().to_polars()["url"])
    positions = [row["position"] for row in crawled.sitemaps(columns="position").to_arrow().to_pylist()]
    assert positions == sorted(positions)
    (first, second) = crawled.pages(columns="url,news.title").to_arrow().to_pylist()
    assert set(first) == set(second) == {"url", "news.title"}


def test_only_committed_parts_are_read(site: Site, folder: Path) -> None:
    """A part whose file of sites is missing does not count."""
    site.has({"a.xml": ["/1"]})
    run(folder, site)
    site.has({"a.xml": ["/2"]})
    run(folder, site)
    (file,) = (folder / "sites").glob("00002-*")
    file.unlink()
    crawled = open_crawl(folder)
    assert crawled.pages(columns="url").to_arrow().to_pylist() == [{"url": f"{site.url}1"}]
    assert list(crawled.changes()) == []


def test_the_tree_of_a_site_needs_no_network(folder: Path) -> None:
    """The tree as of a run equals the fetched one: sitemaps, pages and outcome."""
    with websites() as (site,):
        site.has({"a.xml": ["/1"], "b.xml": ["/2"], "c.xml": ["/3"]})
        site._server.pages["/c.xml"] = (200, {}, b"<html>not a sitemap</html>")
        site._server.pages["/b.xml"] = (200, {}, urlset(site.url, ["2", "3"]))
        site.answers("/a.xml", 404)
        run(folder, site)
        fetched = sitemap_tree_for_homepage(site.url, use_known_paths=False)
    stored = open_crawl(folder).tree(site.url)
    assert [(type(one), one.url) for one in stored.all_sitemaps()] == [
        (type(one), one.url) for one in fetched.all_sitemaps()
    ]
    assert list(stored.all_pages()) == list(fetched.all_pages())
    assert stored.outcome.kind == fetched.outcome.kind
    assert open_crawl(folder).tree(site.url.removeprefix("http://")) == stored
    with pytest.raises(InvalidArgumentError, match="has no site"):
        open_crawl(folder).tree("example.org")


def test_what_a_crawl_is_called(site: Site, folder: Path) -> None:
    """The reprs of a crawl and of its tables say what they are, and read nothing."""
    site.has({"a.xml": ["/1"]})
    crawled = run(folder, site)
    assert repr(crawled) == f"<Crawl {folder}: 1 run, the last of 1 site>"
    assert repr(crawled.sites()) == f"<CrawlTable sites of {folder}: as of the last run, 13 columns>"
    assert repr(crawled.pages(1, "url,news.title")) == f"<CrawlTable pages of {folder}: as of run 1, 2 columns>"
    assert repr(run(folder, site).changes().only("added")) == "<Changes: added; found when they are read>"


def test_trees_of_earlier_runs(site: Site, folder: Path) -> None:
    """A tree is that of the run that was asked for; a sitemap that failed is that of the run before."""
    site.has({"a.xml": ["/1"], "b.xml": ["/2"]})
    run(folder, site)
    site.has({"a.xml": ["/3"], "b.xml": ["/2"]})
    site.answers("/b.xml", 403)
    crawled = run(folder, site)
    assert [
        [page.url.removeprefix(site.url) for page in crawled.tree(site.url, number).all_pages()] for number in (1, 2)
    ] == [
        ["1", "2"],
        ["3", "2"],
    ]


def test_a_crawl_folder_is_a_source(folder: Path) -> None:
    """Each site of a crawl folder is a source: a tree, with pages and outcome, and no request."""
    with websites(2) as sites:
        for site in sites:
            site.has({"a.xml": ["/1", "/2"]})
        run(folder, *sites)
    urls = [site.url for site in sites]
    stream = usp.open(folder)
    trees = {tree.url: tree for tree in stream.read_all()}
    assert {source.target for source in stream.sources} == {f"{folder}: {url}" for url in urls}
    assert trees.keys() == set(urls)
    assert {tree.outcome.kind for tree in trees.values()} == {"complete"}
    assert all([page.url for page in tree.all_pages()] == [f"{url}1", f"{url}2"] for url, tree in trees.items())
    assert usp.open(folder, url=urls[1]).read().url == urls[1]


@pytest.mark.cli
def test_commands_read_crawl_folders(site: Site, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command that takes a target takes a crawl folder."""
    site.has({"a.xml": ["/1"]})
    run(folder, site)
    site.answers("/robots.txt", 500)  # nobody asks
    assert cli.run(["ls", "-q", "-f", "pages", str(folder)]) == 0
    assert cli.run(["export", "-q", "-f", "csv", "--columns", "url", str(folder)]) == 0
    assert cli.run(["sql", "-q", "-f", "csv", str(folder), "select url from pages"]) == 0
    page = f"{site.url}1\n"
    assert capsys.readouterr().out == page + f"url\n{page}" * 2
    assert cli.run(["check", "-q", str(folder)]) in (0, 1)


# Any two sources


def test_any_two_sources(site: Site, folder: Path, tmp_path: Path) -> None:
    """Trees, exports in Parquet and crawl folders are compared with each other."""
    site.has({"a.xml": ["/1", "/2"]})
    first = run(folder, site).tree(site.url)
    site.has({"a.xml": ["/1", "/3", "/3"]})
    second = run(folder, site).tree(site.url)
    write(first, tmp_path / "old.parquet")
    crawled = open_crawl(folder)
    expected = [("added", "/3"), ("removed", "/2")]
    olds = (first, ExportedPages(str(tmp_path / "old.parquet")), CrawlState(crawled.folder, 1))
    for old in olds:
        for new in (second, CrawlState(crawled.folder)):
            assert short(source_changes(old, new)) == expected
        assert [change.site for change in source_changes(old, second)] == ["127.0.0.1"] * 2


def test_a_row_without_a_url_is_no_page(site: Site, folder: Path, tmp_path: Path) -> None:
    """A row of an export that others have changed, so that it has no URL, is skipped."""
    site.has({"a.xml": ["/1", "/2"]})
    write(run(folder, site).tree(site.url), tmp_path / "old.parquet")
    table = pa.parquet.read_table(tmp_path / "old.parquet")
    urls = pa.array([None, site.url + "2"], table.schema.field("url").type)
    pa.parquet.write_table(table.set_column(0, "url", urls), tmp_path / "new.parquet")
    found = source_changes(*(ExportedPages(str(tmp_path / name)) for name in ("old.parquet", "new.parquet")))
    assert short(found) == [("removed", "/1")]


def test_sources_without_a_common_sitemap_have_nothing_moved() -> None:
    """A file and another file list the same pages: none has moved."""
    one, other = (
        sitemap_from_str(urlset("https://a.example", ["/1", "/2"]).decode(), url=f"https://a.example/{name}.xml")
        for name in ("one", "other")
    )
    assert list(source_changes(one, other)) == []


def test_a_file_that_is_no_export_is_refused(tmp_path: Path) -> None:
    """A Parquet file without the columns of pages is an error that says what to do."""
    (tmp_path / "a.parquet").write_bytes(b"not Parquet")
    pages = ExportedPages(str(tmp_path / "a.parquet"))
    with pytest.raises(InvalidArgumentError, match="is no Parquet file"):
        source_changes(pages, pages)
    write(sitemap_from_str(urlset("https://a.example", ["/1"]).decode()), tmp_path / "a.parquet", columns="url")
    with pytest.raises(InvalidArgumentError, match="has no column host"):
        source_changes(pages, pages)


def test_changes_are_values() -> None:
    """A change is a frozen value."""
    change = Change("https://a.example/", ChangeKind.ADDED, "https://a.example/1")
    assert change == Change("https://a.example/", ChangeKind.ADDED, "https://a.example/1")
    assert len({change, change}) == 1
