"""Exports of several sites into one file, who decides whether it is written, and Ctrl-C."""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from faults import BAD, good_site, serve_faults, silent
from support import FakeClient, urlset
from test_sitemap_stream import interrupt_soon
from usp.exceptions import InvalidArgumentError, TreeInterrupted
from usp.export import Exported, export_homepage
from usp.export.exporting import ExportPlan, export_stream, plan_export, run_export
from usp.export.formats.base import FormatOptions, Table, Writer
from usp.export.formats.csv import csv_writer
from usp.objects.sitemap import AbstractSitemap
from usp.stream import SitemapStream

pytestmark = pytest.mark.export

Source = tuple[str | None, SitemapStream]
OLD = "what was there"


def site(name: str, *pages: str) -> SitemapStream:
    """Open a site of one sitemap, or of none."""
    home = f"http://{name}.example/"
    found = {f"{home}robots.txt": f"Sitemap: {home}s.xml"} if pages else {f"{home}robots.txt": "User-agent: *"}
    return export_stream(home, FakeClient(found | {f"{home}s.xml": urlset(*pages)}), use_known_paths=False)


def two_sites() -> Iterator[Source]:
    yield "a.example", site("a", "http://x/1", "http://x/2")
    yield "https://b.example/", site("b", "http://x/2", "http://x/3")


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A file of an earlier export. After the test, no temporary file is left beside it."""
    path = tmp_path / "pages.csv"
    path.write_text(OLD)
    yield path
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_several_sites_share_a_file(path: Path) -> None:
    """The rows of several sites come one after another; `source` is the first column and has the name of each."""
    exported = run_export(plan_export(path, has_source=True), two_sites())
    assert [tree.url for tree in exported.trees] == ["http://a.example/", "http://b.example/"]
    assert exported.tree is exported.trees[0]
    assert (exported.rows, exported.pages, exported.is_written) == (4, 4, True)
    found = rows(path)
    assert next(iter(found[0])) == "source"
    assert [(row["source"], row["url"]) for row in found] == [
        ("a.example", "http://x/1"),
        ("a.example", "http://x/2"),
        ("https://b.example/", "http://x/2"),
        ("https://b.example/", "http://x/3"),
    ]


def test_one_site_has_no_source(path: Path) -> None:
    """Without `has_source` there is no such column."""
    run_export(plan_export(path), [(None, site("a", "http://x/1"))])
    assert "source" not in rows(path)[0]
    with pytest.raises(InvalidArgumentError, match="no column 'source'"):
        plan_export(path, columns="source,url")


def test_sources_can_be_selected(path: Path) -> None:
    """The column can be chosen, left out, and used in a condition."""
    plan = plan_export(path, has_source=True, columns="url,source", where="source like 'https:%'")
    run_export(plan, two_sites())
    assert path.read_text().splitlines() == [
        "url,source",
        "http://x/2,https://b.example/",
        "http://x/3,https://b.example/",
    ]


def test_each_url_once_over_all_sites(path: Path) -> None:
    """With `dedupe`, a URL of an earlier site is left out of later ones."""
    exported = run_export(plan_export(path, has_source=True, dedupe=True), two_sites())
    assert (exported.rows, exported.pages) == (3, 4)
    assert [row["url"] for row in rows(path)] == ["http://x/1", "http://x/2", "http://x/3"]


def test_sitemaps_of_several_sites(tmp_path: Path) -> None:
    """Both tables of a database have the sources."""
    path = tmp_path / "sites.db"
    assert run_export(plan_export(path, has_source=True), two_sites()).rows == 4
    with closing(sqlite3.connect(path)) as database:
        found = database.execute("select source, type, pages from sitemaps").fetchall()
        assert next(column[1] for column in database.execute("pragma table_info(pages)")) == "source"
    kinds = [("website", 0), ("robots", 0), ("urlset", 2)]
    assert found == [(source, *kind) for source in ("a.example", "https://b.example/") for kind in kinds]
    assert run_export(plan_export(path, has_source=True, table="sitemaps"), two_sites()).rows == 6


def test_sites_are_opened_one_after_another(path: Path) -> None:
    """A site is opened when the one before it has been read."""
    opened: list[SitemapStream] = []

    def sites() -> Iterator[Source]:
        for name in "ab":
            assert all(stream.tree.sub_sitemaps for stream in opened)
            opened.append(site(name, f"http://x/{name}"))
            yield name, opened[-1]

    assert run_export(plan_export(path, has_source=True), sites()).rows == 2


@pytest.mark.parametrize("is_kept", [True, False])
def test_the_caller_decides(path: Path, is_kept: bool) -> None:
    """`keep` sees all trees, and decides whether the file is replaced."""
    seen: list[tuple[AbstractSitemap, ...]] = []

    def keep(trees: tuple[AbstractSitemap, ...]) -> bool:
        seen.append(trees)
        return is_kept

    exported = run_export(plan_export(path), two_sites(), keep=keep)
    assert seen == [exported.trees]
    assert (len(exported.trees), exported.is_written) == (2, is_kept)
    assert (path.read_text() == OLD) == (not is_kept)


@pytest.mark.parametrize(("pages", "is_written"), [([(), ()], False), ([(), ("http://x/1",)], True)])
def test_without_a_sitemap_nothing_is_written(path: Path, pages: list[tuple[str, ...]], is_written: bool) -> None:
    """By default, the file is replaced if one of the sites has a sitemap."""
    streams = [(None, site(f"site{number}", *urls)) for number, urls in enumerate(pages)]
    assert run_export(plan_export(path), streams).is_written == is_written
    assert (path.read_text() == OLD) == (not is_written)


def test_nothing_kept_on_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """If nothing is kept, not even a header is printed."""
    assert not run_export(plan_export("-", format="csv"), [(None, site("a"))]).is_written
    assert capfdbinary.readouterr().out == b""


def interrupted_export(plan: ExportPlan, **options: Any) -> Exported:
    """Run an export of a site, and of a second one that is interrupted while it is fetched."""

    def sites(url: str) -> Iterator[Source]:
        yield "first", site("a", "http://x/1")
        timer = interrupt_soon()
        yield "second", export_stream(url, use_known_paths=False)
        timer.join()

    handlers = good_site() | {BAD: silent}
    with serve_faults(handlers) as server, pytest.raises(TreeInterrupted) as caught:
        run_export(plan, sites(server.url), **options)
    assert caught.value.exported is not None
    assert caught.value.exported.trees[-1] == caught.value.tree
    return caught.value.exported


def test_interrupted(path: Path) -> None:
    """By default, Ctrl-C leaves the file as it was. The exception has both trees."""
    exported = interrupted_export(plan_export(path))
    assert (len(exported.trees), exported.is_written) == (2, False)
    assert path.read_text() == OLD


def test_interrupted_and_kept(path: Path) -> None:
    """If the caller keeps what was fetched, the file has it, including sitemaps behind the one that was waited for."""
    exported = interrupted_export(plan_export(path, has_source=True), keep_partial=True)
    expected = [("first", "http://x/1"), *(("second", page.url) for page in exported.trees[1].all_pages())]
    assert exported.is_written
    assert len(expected) == exported.rows > 3
    assert [(row["source"], row["url"]) for row in rows(path)] == expected


def test_interrupted_on_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Rows that were printed stay, and are counted."""
    exported = interrupted_export(plan_export("-", format="jsonl", columns="url"))
    printed = capfdbinary.readouterr().out.splitlines()
    assert printed[0] == b'{"url":"http://x/1"}'
    assert (len(printed), True) == (exported.rows, exported.is_written)


def test_interrupted_between_sites(path: Path) -> None:
    """Ctrl-C after a site keeps that site. Before the first one, there is nothing to keep."""

    def sites(*opened: Source) -> Iterator[Source]:
        yield from opened
        raise KeyboardInterrupt

    with pytest.raises(TreeInterrupted) as caught:
        run_export(plan_export(path), sites(("a", site("a", "http://x/1"))), keep_partial=True)
    assert caught.value.tree.url == "http://a.example/"
    assert [row["url"] for row in rows(path)] == ["http://x/1"]
    with pytest.raises(KeyboardInterrupt) as plain:
        run_export(plan_export(path), sites(), keep_partial=True)
    assert not isinstance(plain.value, TreeInterrupted)


def test_interrupted_within_a_row(path: Path) -> None:
    """After Ctrl-C in the middle of writing, the file is written again from its start."""
    plan = plan_export(path, columns="url")
    writers: list[Writer] = []

    class TornWriter(Writer):
        def __init__(self, file: Any, table: Table, options: FormatOptions) -> None:
            self._file, self._whole = file, csv_writer(file, table, options)

        def encode(self, batch: Any, /) -> Any:
            return self._whole.encode(batch)

        def write(self, encoded: Any, /) -> None:
            if len(writers) == 1:
                self._file.write(b"http://x")
                raise KeyboardInterrupt
            self._whole.write(encoded)

        def close(self) -> None:
            self._whole.close()

    def writer(file: Any, table: Table, options: FormatOptions) -> Writer:
        writers.append(TornWriter(file, table, options))
        return writers[-1]

    torn = replace(plan, output=replace(plan.output, format=replace(plan.output.format, table_writer=writer)))
    with pytest.raises(TreeInterrupted):
        run_export(torn, [(None, site("a", "http://x/1"))], keep_partial=True)
    assert path.read_text() == "url\nhttp://x/1\n"


def test_a_homepage(path: Path) -> None:
    """`export_homepage` is an export of one site."""
    home = "http://a.example/"
    client = FakeClient({f"{home}robots.txt": f"Sitemap: {home}s.xml", f"{home}s.xml": urlset("http://x/1")})
    exported = export_homepage(home, path, client, use_known_paths=False, columns=["url"])
    assert (exported.tree.url, exported.rows, path.read_text()) == (home, 1, "url\nhttp://x/1\n")
