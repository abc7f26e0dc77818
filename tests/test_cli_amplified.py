"""Indexes that list each other make trees of many places. Commands give the pages of each sitemap once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands import RunHere
from support import Server, index, serve, urlset
from usp.limits import Limits
from usp.tree import sitemap_tree_for_homepage

pytestmark = pytest.mark.cli

XML = {"Content-Type": "application/xml"}
INDEXES = 6  # whose paths through each other make 326 places of the leaf
PAGES = 3_000


@pytest.fixture(scope="module")
def amplified() -> Iterator[Server]:
    """Serve indexes that list each other and one leaf: 8 answers that make a million pages."""
    base = "{base}"
    names = [f"{base}/{number}.xml" for number in range(INDEXES)]
    listed = index(*names, f"{base}/leaf.xml").encode()
    leaf = urlset(*(f"{base}/{number}" for number in range(PAGES))).encode()
    site = {f"/{number}.xml": (200, XML, listed) for number in range(INDEXES)}
    robots = (200, {"Content-Type": "text/plain"}, f"Sitemap: {base}/0.xml\n".encode())
    with serve({"/robots.txt": robots, **site, "/leaf.xml": (200, XML, leaf)}) as server:
        yield server


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_python_gives_every_place(amplified: Server) -> None:
    """In Python, `all_pages()` gives the pages at every place of their sitemap."""
    tree = sitemap_tree_for_homepage(amplified.url, use_known_paths=False, limits=Limits(max_sitemaps=100))
    leaves = [sitemap for sitemap in tree.all_sitemaps() if sitemap.url.endswith("leaf.xml")]
    assert len([leaf for leaf in leaves if leaf.pages]) > 10


@pytest.mark.slow
def test_export(run_here: RunHere, amplified: Server) -> None:
    """`usp export` writes the pages of a sitemap once, however many indexes list it."""
    run = run_here("export", "-k", amplified.url, "-o", "pages.csv", "--columns", "url")
    assert run.returncode == 0
    urls = Path("pages.csv").read_text().splitlines()[1:]
    assert urls == [f"{amplified.url}/{number}" for number in range(PAGES)]
    assert f"{PAGES:,} rows in pages.csv" in run.stderr


@pytest.mark.slow
def test_sql(run_here: RunHere, amplified: Server) -> None:
    """The table `pages` of `usp sql` has them once. The table `sitemaps` has every place."""
    query = "select (select count(*) from pages) as n, (select count(*) from sitemaps where pages > 0) > 300 as many"
    run = run_here("sql", "-k", "-q", amplified.url, query, "-f", "json")
    assert json.loads(run.stdout) == [{"n": PAGES, "many": True}]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["pages", "tabtree", "tree"])
def test_ls(run_here: RunHere, amplified: Server, form: str) -> None:
    """`usp ls` prints them once, and its summary counts them once."""
    run = run_here("ls", "-k", "-f", form, amplified.url)
    assert run.stdout.count(f"{amplified.url}/17\n") == 1
    assert f" {PAGES:,} pages, " in run.stderr
    if form == "tree":
        assert "leaf.xml  3,000 pages" in run.stdout
        assert "leaf.xml  pages listed above" in run.stdout


@pytest.mark.slow
def test_ls_json(run_here: RunHere, amplified: Server) -> None:
    """In JSON, each place of a sitemap has the number of its pages, and only the first has the pages."""
    run = run_here("ls", "-k", "-f", "json", amplified.url)
    assert run.stdout.count(f'{amplified.url}/17"') == 1
    assert run.stdout.count(f'"page_count": {PAGES}') > 300


@pytest.mark.slow
def test_max_pages_counts_once(run_here: RunHere, amplified: Server) -> None:
    """--max-pages counts the pages that are written, not places; it cuts with a message."""
    run = run_here("export", "-k", amplified.url, "-f", "csv", "--columns", "url", "--max-pages", str(PAGES + 1))
    assert (run.returncode, len(run.stdout.splitlines())) == (0, PAGES + 1)
    run = run_here("export", "-k", amplified.url, "-f", "csv", "--columns", "url", "--max-pages", "10")
    assert (run.returncode, len(run.stdout.splitlines())) == (4, 11)
    assert "usp: stopped: the tree has 10 pages (--max-pages)" in run.stderr


@pytest.mark.slow
def test_check(run_here: RunHere, amplified: Server) -> None:
    """`usp check` counts them once."""
    assert f" {PAGES:,} pages, " in run_here("check", "-k", amplified.url).stdout


def test_pages_have_a_limit_by_default(run_here: RunHere) -> None:
    """Every command has a finite number of pages, and its help says which."""
    for command in ("ls", "export", "sql", "check"):
        assert "stop after this many pages (default: 100,000,000)" in run_here(command, "--help").stdout
