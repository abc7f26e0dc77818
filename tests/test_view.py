"""What the explorer answers: the same pages as an export, whatever the filter, the order and the place."""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations_with_replacement
from pathlib import Path
from statistics import median_low
from typing import Any

import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import usp
from many_sites import Answer, serve_sites
from support import SITEMAP_XMLNS, index
from usp.check import check
from usp.crawl import crawl
from usp.crawl.comparing import CHANGE_COLUMNS
from usp.exceptions import InvalidArgumentError
from usp.objects.problem import UNLOGGED
from usp.sources import find_sources
from usp.view import parts, store
from usp.view.explorer import EXAMPLES, Explorer, NotFound, lines_around
from viewing import HOST, Page, explored, pages_of_site, write_site

pytestmark = pytest.mark.export

PAGES = pages_of_site()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_site(tmp_path_factory.mktemp("view") / "site")


@pytest.fixture(scope="module")
def explorer(folder: Path) -> Iterator[Explorer]:
    with explored(folder) as found:
        yield found


def urls(explorer: Explorer, **parameters: str) -> list[str]:
    answer = explorer.pages({"limit": "1000", **parameters})
    assert answer["total"] == len(answer["rows"])
    return [row["url"] for row in answer["rows"]]


def sitemap_id(explorer: Explorer, name: str) -> str:
    return str(next(row["id"] for row in explorer.sitemaps({})["rows"] if row["url"].endswith(name)))


def test_status(explorer: Explorer) -> None:
    """The status has what was read, and says that one sitemap failed."""
    status = explorer.status()
    assert (status["state"], status["error"], status["has_problems"]) == ("ready", None, True)
    assert (status["pages"], status["sitemaps"], status["failed"]) == (len(PAGES), 5, 1)
    assert status["outcome"]["kind"] == "partial"
    assert set(status["codes"]) == {row["code"] for row in explorer.problems({})["codes"]}


def test_pages_are_those_of_the_tree(explorer: Explorer, folder: Path) -> None:
    """Without a filter, the table has the pages of the tree in its order."""
    with usp.open(folder) as stream:
        expected = [page.url for sitemap in stream for page in sitemap.pages]
    assert urls(explorer) == expected == [page.url for page in PAGES]


#: Filters -> which pages pass.
FILTERS: dict[str, tuple[dict[str, str], Callable[[Page], bool]]] = {
    "text": ({"q": "post-1"}, lambda page: "post-1" in page.url.lower()),
    "text as it is": ({"q": "%"}, lambda page: False),
    "regex": ({"q": "/Post-[12]$", "regex": "1"}, lambda page: bool(re.search("/Post-[12]$", page.url))),
    "host": ({"section": HOST}, lambda page: True),
    "section": ({"section": f"{HOST}/blog"}, lambda page: page.path == "/blog" or page.path.startswith("/blog/")),
    "deeper section": ({"section": f"{HOST}/blog/2021/"}, lambda page: page.path.startswith("/blog/2021/")),
    "directly in a section": (
        {"section": f"{HOST}/blog", "direct": "1"},
        lambda page: page.path == "/blog",
    ),
    "directly in a deeper section": (
        {"section": f"{HOST}/blog/2021", "direct": "1"},
        lambda page: page.path.startswith("/blog/2021/"),
    ),
    "directly in a host": ({"section": HOST, "direct": "1"}, lambda page: page.path.count("/") == 1),
    "half a section": ({"section": f"{HOST}/blo"}, lambda page: False),
    "from": ({"from": "2022-01-01"}, lambda page: page.day >= "2022-01-01"),
    "one day": ({"from": "2026-11-01", "to": "2026-11-01"}, lambda page: page.day == "2026-11-01"),
    "to": ({"to": "2021-12-31"}, lambda page: "" < page.day <= "2021-12-31"),
    "undated": ({"undated": "1"}, lambda page: not page.day),
    "language": ({"language": "en-GB"}, lambda page: "EN-gb" in page.languages),
    "language of news": ({"language": "en"}, lambda page: page.news_language == "en"),
    "images": ({"has": "images"}, lambda page: page.images > 0),
    "images and languages": ({"has": "images,alternates"}, lambda page: page.images > 0 and bool(page.languages)),
    "news": ({"has": "news"}, lambda page: bool(page.news_language)),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filters(explorer: Explorer, name: str) -> None:
    """A filter gives the pages that meet it, and no others; the overview counts the same."""
    parameters, is_wanted = FILTERS[name]
    expected = [page.url for page in PAGES if is_wanted(page)]
    assert urls(explorer, **parameters) == expected
    assert explorer.overview(parameters)["pages"] == len(expected)


def test_pages_of_a_sitemap(explorer: Explorer) -> None:
    """A filter by sitemap gives the pages that the table of sitemaps counts."""
    number = sitemap_id(explorer, "/news.xml")
    assert urls(explorer, sitemap=f"https://{HOST}/news.xml") == urls(explorer, sitemap=number)
    assert urls(explorer, sitemap=number) == [page.url for page in PAGES if page.sitemap == "/news.xml"]
    (row,) = (row for row in explorer.sitemaps({})["rows"] if str(row["id"]) == number)
    assert (row["pages"], row["newest"].date().isoformat()) == (6, "2026-11-01")


def test_pages_with_a_problem(explorer: Explorer) -> None:
    """The codes that the overview counts are those that the filter finds."""
    found = dict(explorer.overview({})["problems"])
    assert found
    for code, count in found.items():
        assert len(urls(explorer, problem=code)) == count
    assert [url for code in found for url in urls(explorer, problem=code)] == [f"https://{HOST}/about"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(FILTERS)), max_size=2, unique=True),
    st.sampled_from(["", "url", "-url", "last_modified", "-last_modified", "priority", "-change_frequency"]),
    st.integers(0, 60),
    st.integers(1, 30),
)
def test_windows(explorer: Explorer, names: list[str], sort: str, offset: int, limit: int) -> None:
    """A window into the table is a slice of all its rows, for any filter and order."""
    parameters = {name: value for filters in names for name, value in FILTERS[filters][0].items()}
    everything = explorer.pages({**parameters, "sort": sort, "limit": "1000"})
    window = explorer.pages({**parameters, "sort": sort, "offset": str(offset), "limit": str(limit)})
    assert window["total"] == everything["total"]
    assert window["rows"] == everything["rows"][offset : offset + limit]


def test_windows_across_ranges(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are the same if matches are counted in ranges of a few rows, and pages come in parts of a few rows."""
    monkeypatch.setattr(store, "_CHUNK", 4)
    monkeypatch.setattr(parts, "_PART_ROWS", 3)
    with explored(folder) as explorer:
        assert len(os.listdir(explorer.store.folder)) > 2
        every = [row["url"] for row in explorer.pages({"q": "post", "limit": "1000"})["rows"]]
        assert every == [page.url for page in PAGES if "Post" in page.path]
        for offset in range(42):
            rows = explorer.pages({"q": "post", "offset": str(offset), "limit": "7"})["rows"]
            assert [row["url"] for row in rows] == every[offset : offset + 7]
        path = explorer.export({"format": "parquet", "q": "post"})
        assert pyarrow.parquet.read_table(path)["url"].to_pylist() == every


@pytest.mark.parametrize(
    ("column", "value"), [("url", lambda page: page.url), ("last_modified", lambda page: page.day or "9999")]
)
def test_sorting(explorer: Explorer, column: str, value: Callable[[Page], str]) -> None:
    """Rows are sorted by a column, those without a value last, and in the order of the tree where it is equal."""
    assert urls(explorer, sort=column) == [page.url for page in sorted(PAGES, key=value)]
    descending = [page for page in PAGES if value(page) != "9999"]
    descending.sort(key=value, reverse=True)
    rest = [page for page in PAGES if value(page) == "9999"]
    assert urls(explorer, sort=f"-{column}") == [page.url for page in (*descending, *rest)]


@pytest.mark.parametrize(
    "parameters",
    [
        {"from": "yesterday"},
        {"to": "2024-13-01"},
        {"sitemap": "99"},
        {"sitemap": "-1"},
        {"sitemap": "x"},
        {"has": "nothing"},
        {"q": "(", "regex": "1"},
        {"sort": "url; drop table sitemaps"},
        {"offset": "1e9"},
        {"limit": "-1"},
    ],
    ids=str,
)
def test_wrong_parameters(explorer: Explorer, parameters: dict[str, str]) -> None:
    """A parameter that makes no sense is an error with a sentence."""
    with pytest.raises(InvalidArgumentError):
        explorer.pages(parameters)


@pytest.mark.parametrize("text", ["(", "[a", "*a", "(?=a)", r"(a)\1", "a{2000}", "\\", "(?P<a"])
def test_a_wrong_expression_says_what_to_do(explorer: Explorer, text: str) -> None:
    """The message has the expression and advice, and no words of DuckDB."""
    for ask in (explorer.pages, explorer.overview, explorer.export):
        with pytest.raises(InvalidArgumentError) as caught:
            ask({"q": text, "regex": "1"})
        assert str(caught.value).startswith(f'"{text}" is not a regular expression. To search for a character')
    assert explorer.pages({"q": text})["total"] == 0


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(["q", "section", "language", "problem", "sitemap", "from", "has"]), st.text()))
def test_values_are_never_sql(explorer: Explorer, parameters: dict[str, str]) -> None:
    """Any text of a filter is a value: it gives rows, none, or an error that says what is wrong."""
    try:
        total = explorer.pages(parameters)["total"]
    except InvalidArgumentError:
        return
    assert 0 <= total <= len(PAGES)


def test_overview(explorer: Explorer) -> None:
    """The overview counts dates, sections and languages as the pages have them."""
    found = explorer.overview({"bin": "year"})
    assert found["undated"] == sum(not page.day for page in PAGES)
    assert dict(found["timeline"]) == Counter(page.day[:4] for page in PAGES if page.day)
    assert found["section"] == HOST
    assert {one["name"]: one["pages"] for one in found["sections"]} == {"blog": 40, "news": 6, "": 3}
    assert dict(found["languages"]) == {"de": 10, "en-gb": 10, "en": 6}
    assert found["has"] == {
        "news": 6,
        "images": sum(page.images > 0 for page in PAGES),
        "videos": 0,
        "alternates": 10,
    }
    assert found["freshest"][0]["name"] == "news"
    assert found["stalest"][0]["name"] == "blog"


def test_a_section_of_the_overview(explorer: Explorer) -> None:
    """With a section, the sections are those below it, and their links give their pages."""
    below = explorer.overview({"section": f"{HOST}/blog"})["sections"]
    assert {one["section"] for one in below if one["name"]} == {f"{HOST}/blog/{year}" for year in range(2020, 2024)}
    for one in below:
        if one["name"]:
            assert len(urls(explorer, section=one["section"])) == one["pages"]


def test_dates_of_sections(tmp_path: Path) -> None:
    """A section has the oldest, the newest and the median of its dates, and none without dates."""
    days = ("", "1969-12-31", "2024-05-08", "2024-05-09")
    sections = {
        "".join(map(str, numbers)): [days[number] for number in numbers]
        for size in range(1, 5)
        for numbers in combinations_with_replacement(range(4), size)
    }
    entries = "".join(
        f"<url><loc>https://{HOST}/{name}/{number}</loc><lastmod>{day}</lastmod></url>"
        for name, section in sections.items()
        for number, day in enumerate(section)
    )
    (tmp_path / "sitemap.xml").write_text(f"<urlset {SITEMAP_XMLNS}>{entries}</urlset>")
    with explored(tmp_path) as explorer:
        for one in explorer.overview({})["sections"]:
            section = sections.pop(one["name"])
            dated = [day for day in section if day]
            dates = (min(dated), max(dated), median_low(dated)) if dated else (None, None, None)
            assert (one["pages"], one["oldest"], one["newest"], one["median"]) == (len(section), *dates)
    assert sections == {}


@pytest.mark.parametrize(("unit", "length"), [("day", 10), ("month", 7), ("year", 4)])
def test_the_timeline_has_all_dated_pages(explorer: Explorer, unit: str, length: int) -> None:
    """The bins of a timeline are days, months or years, in order."""
    timeline = explorer.overview({"bin": unit})["timeline"]
    assert timeline == sorted(timeline)
    assert {len(name) for name, _ in timeline} == {length}
    assert sum(count for _, count in timeline) == sum(bool(page.day) for page in PAGES)


def test_sitemaps(explorer: Explorer) -> None:
    """The table of sitemaps is in the order of the tree, names parents, and says why one failed."""
    rows = explorer.sitemaps({})["rows"]
    by_id = {row["id"]: row for row in rows}
    assert [row["url"].rpartition("/")[2] for row in rows] == [
        "robots.txt",
        "blog.xml",
        "news.xml",
        "rest.xml",
        "broken.xml",
    ]
    assert {by_id[row["parent"]]["url"].rpartition("/")[2] for row in rows if row["parent"] is not None} == {
        "robots.txt"
    }
    assert rows[-1]["type"] == "invalid"
    assert "sitemap" in rows[-1]["reason"]
    assert [row["id"] for row in explorer.sitemaps({"sort": "-pages"})["rows"]][:3] == [1, 2, 3]
    assert [row["id"] for row in explorer.sitemaps({"q": "NEWS"})["rows"]] == [2]
    for column in store.SITEMAP_ROWS:
        assert len(explorer.sitemaps({"sort": f"-{column}"})["rows"]) == 5


def test_an_index_has_the_pages_of_all_below() -> None:
    """Each sitemap counts once, also if several indexes lead to it."""
    below = {"/left.xml": ["one.xml", "two.xml"], "/right.xml": ["two.xml", "three.xml"], "/empty.xml": []}
    with serve_sites() as sites:
        site = sites.add("127.0.5.10", {"/one.xml": ["/1", "/2"], "/two.xml": ["/3"], "/three.xml": ["/4"]})
        for path, names in {"/index.xml": [path[1:] for path in below], **below}.items():
            sites.answers["127.0.5.10"][path] = Answer(index(*(site + name for name in names)))
        with explored(site) as explorer:
            rows = explorer.sitemaps({"sort": "-all_pages"})["rows"]
    counts = {row["url"].removeprefix(site): row["all_pages"] for row in rows}
    indexes = {"robots.txt": 4, "index.xml": 4, "left.xml": 3, "right.xml": 2, "empty.xml": 0}
    assert counts == {**indexes, "one.xml": 2, "two.xml": 1, "three.xml": 1}
    assert [row["all_pages"] for row in rows] == [4, 4, 3, 2, 2, 1, 1, 1, 0]


def test_a_page(explorer: Explorer) -> None:
    """A page has every field that it has in the tree, and its sitemap."""
    (row,) = explorer.pages({"q": "/news/0"})["rows"]
    page = explorer.page({"row": str(row["row"])})
    assert page["url"] == f"https://{HOST}/news/0"
    assert page["news"]["title"] == "A story"
    assert page["sitemap"] == {"id": 2, "url": page["sitemap_url"]}
    with pytest.raises(NotFound):
        explorer.page({"row": "1000"})


def test_problems_are_those_of_a_check(explorer: Explorer, folder: Path) -> None:
    """The explorer counts the problems that `usp check` counts."""
    expected: Counter[str] = Counter()
    for sitemap in check(folder).sitemaps:
        expected.update(sitemap.problems.counts)
    answer = explorer.problems({})
    assert {row["code"]: row["count"] for row in answer["codes"]} == expected
    listed = explorer.problem_list({"limit": "1000"})
    assert Counter(row["code"] for row in listed["rows"]) == expected
    assert explorer.overview({})["severities"] == Counter(
        severity for row in answer["codes"] for severity in [row["severity"]] * row["count"]
    )
    for row in answer["codes"]:
        assert explorer.problem_list({"code": row["code"]})["count"] == row["count"]
        assert explorer.rule(row["code"])["markdown"]


def test_lines_of_a_problem(explorer: Explorer) -> None:
    """The lines around a problem are those of the document."""
    row = next(
        row for row in explorer.problem_list({})["rows"] if row["sitemap_url"].endswith("rest.xml") and row["line"]
    )
    answer = explorer.document({"sitemap": str(row["sitemap"]), "line": str(row["line"]), "context": "1"})
    assert [number for number, *_ in answer["lines"]] == [row["line"] - 1, row["line"], row["line"] + 1]
    assert f"https://{HOST}/about" in answer["lines"][1][1]


@given(st.lists(st.text("ab<é\n\r", max_size=6).map(str.encode), max_size=8), st.integers(1, 12), st.integers(0, 4))
def test_lines_around(pieces: list[bytes], line: int, context: int) -> None:
    """Lines are those of the text, wherever it is cut into pieces."""
    lines = re.sub(r"\r(?!\n)", "\n", b"".join(pieces).decode()).split("\n")
    if not lines[-1]:
        lines.pop()
    shown = [(number, text.removesuffix("\r"), False, 0) for number, text in enumerate(lines, 1)]
    expected = [one for one in shown if abs(one[0] - line) <= context]
    assert lines_around(iter(pieces), line, context) == expected


def test_a_line_that_is_too_long(explorer: Explorer) -> None:
    """Of a very long line, the beginning is shown."""
    pieces = [b"x" * 50_000] * 100
    assert lines_around(iter(pieces), 1, 1) == [(1, "x" * 2000, True, 0)]
    assert lines_around(iter([*pieces, b"\nnext"]), 2, 0) == [(2, "next", False, 0)]


@pytest.mark.parametrize("size", [1, 2, 7, 999, 100_000])
@pytest.mark.parametrize(
    ("column", "skipped"), [(1, 0), (1_000, 0), (1_001, 1), (9_000, 8_000), (12_000, 11_000), (20_000, 12_000)]
)
def test_a_long_line_is_shown_around_a_column(size: int, column: int, skipped: int) -> None:
    """A document may be one line: the place of the problem is shown, wherever the bytes are cut into pieces."""
    text = "".join(chr(0x1F600 + number % 50) if number % 3 else chr(97 + number % 26) for number in range(12_000))
    data = f"first\n{text}\nlast".encode()
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    shown = text[skipped : skipped + 2_000]
    expected = [(1, "first", False, 0), (2, shown, len(text) > skipped + 2_000, skipped), (3, "last", False, 0)]
    assert lines_around(iter(pieces), 2, 1, column) == expected


def test_exports_have_the_rows_of_a_filter(explorer: Explorer) -> None:
    """Every format of the export can be downloaded, with the rows and the order of the table."""
    formats = [one["name"] for one in explorer.status()["formats"]]
    assert {"parquet", "csv", "jsonl", "xlsx", "sqlite", "duckdb"} <= set(formats)
    for name in formats:
        path = explorer.export({"format": name, "q": "post", "sort": "-url"})
        try:
            assert os.path.getsize(path) > 100
            if name == "csv":
                with open(path, encoding="utf-8", newline="") as file:
                    assert [row["url"] for row in csv.DictReader(file)] == urls(explorer, q="post", sort="-url")
            if name == "parquet":
                table = pyarrow.parquet.read_table(path)
                assert table["url"].to_pylist() == urls(explorer, q="post", sort="-url")
                assert "row" not in table.column_names
        finally:
            os.unlink(path)


def test_an_export_that_fails_leaves_no_file(explorer: Explorer) -> None:
    """A wrong filter or format leaves nothing in the folder of downloads."""
    for parameters in ({"format": "nothing"}, {"format": "csv", "q": "(", "regex": "1"}):
        with pytest.raises(InvalidArgumentError):
            explorer.export(parameters)
    assert os.listdir(explorer.store.downloads) == []


@pytest.mark.parametrize("query", [query for _, query in EXAMPLES], ids=[title for title, _ in EXAMPLES])
def test_examples_of_queries(explorer: Explorer, query: str) -> None:
    """Every example of the editor runs."""
    answer = explorer.sql(query, "one")
    assert answer["columns"]
    assert not answer["is_cut"]


def test_two_targets(folder: Path, tmp_path: Path) -> None:
    """With several targets, all have their rows, and a sitemap is found by target and URL."""
    other = write_site(tmp_path / "other")
    with explored(folder, other) as explorer:
        assert explorer.pages({})["total"] == 2 * len(PAGES)
        rows = explorer.sitemaps({"q": "news.xml"})["rows"]
        assert [row["pages"] for row in rows] == [6, 6]
        assert [row["source"] for row in rows] == [str(folder), str(other)]
        for row in rows:
            assert explorer.pages({"sitemap": str(row["id"])})["total"] == 6
            found = explorer.pages({"sitemap": str(row["id"])})["rows"][0]
            assert found["sitemap"] == row["id"]
        assert {row["sitemap"] for row in explorer.problem_list({"limit": "1000"})["rows"]} >= {3, 8}


def test_two_hosts_are_told_apart(tmp_path: Path) -> None:
    """The sections of two hosts are the hosts, also for a pair that an estimate takes for one."""
    (tmp_path / "sitemap.txt").write_text("https://h432.example.org/one\nhttps://www.example.org/two/three\n")
    with explored(tmp_path) as explorer:
        found = explorer.overview({})
    assert (found["section"], {one["name"] for one in found["sections"]}) == (
        "",
        {"h432.example.org", "www.example.org"},
    )


def test_odd_dates_leave_room_in_the_timeline(tmp_path: Path) -> None:
    """Dates before the web and in the future are counted beside the timeline, unless there are no others."""
    days = ("0001-01-01", "1970-01-01", "2024-05-08", "2024-06-01", "9999-12-31")
    entries = "".join(f"<url><loc>https://{HOST}/{day}</loc><lastmod>{day}</lastmod></url>" for day in days)
    (tmp_path / "sitemap.xml").write_text(f"<urlset {SITEMAP_XMLNS}>{entries}</urlset>")
    with explored(tmp_path) as explorer:
        found = explorer.overview({})
        assert (found["bin"], found["timeline"]) == ("day", [("2024-05-08", 1), ("2024-06-01", 1)])
        for name, count in (("early", 2), ("late", 1)):
            pages = found[name].pop("pages")
            assert (pages, explorer.overview(found[name])["pages"]) == (count, count)
        old = explorer.overview(found["early"])
        assert (old["bin"], old["timeline"], old["early"]["pages"]) == ("year", [("0001", 1), ("1970", 1)], 0)


def test_a_problem_of_the_site_is_in_no_sitemap() -> None:
    """What concerns the site as a whole is not counted as a sitemap."""
    with serve_sites() as sites:
        site = sites.add("127.0.5.8", {})
        sites.answers["127.0.5.8"]["/robots.txt"] = Answer(status=403)
        with explored(site) as explorer:
            (problem,) = explorer.problems({})["codes"]
    assert (problem["code"], problem["count"], problem["sitemaps"]) == ("R713", 1, 0)


@pytest.fixture(scope="module")
def three_runs(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A crawl folder with three runs. The second has one more page, the third one more and two less."""
    folder = str(tmp_path_factory.mktemp("runs") / "crawl")
    with serve_sites() as sites:
        for pages in (["/1", "/2"], ["/1", "/2", "/3"], ["/3", "/4"]):
            crawl([sites.add("127.0.5.9", {"/a.xml": pages})], folder)
    return folder


def test_changes_of_a_crawl(three_runs: str) -> None:
    """A crawl folder shows the changes of each run, and between any two runs."""
    with explored(three_runs) as explorer:
        assert explorer.status()["has_changes"]
        runs = explorer.runs()["runs"]
        assert [(run["run"], run["added"], run["removed"]) for run in runs] == [(1, None, None), (2, 1, 0), (3, 1, 2)]
        answer = explorer.changes({"old": "1", "new": "3"})
        assert answer["counts"] == {"added": 2, "removed": 2, "changed": 0, "moved": 0}
        found = {(row["change"], row["url"].rpartition("/")[2]) for row in answer["rows"]}
        assert found == {("added", "3"), ("added", "4"), ("removed", "1"), ("removed", "2")}
        assert explorer.changes({"old": "1", "new": "3", "kind": "added", "q": "/4"})["total"] == 1
        with pytest.raises(InvalidArgumentError):
            explorer.changes({"old": "1", "new": "9"})
        assert explorer.pages({})["total"] == 2


def test_exports_of_changes(three_runs: str) -> None:
    """Every format of the export has the changes that the table shows, with the columns of `usp diff`."""
    query = {"old": "1", "new": "3", "kind": "added"}
    with explored(three_runs) as explorer:
        expected = [row["url"] for row in explorer.changes(query)["rows"]]
        assert len(expected) == 2
        for one in explorer.status()["formats"]:
            path = explorer.export_changes({**query, "format": one["name"]})
            assert os.path.getsize(path) > 100
            if one["name"] == "parquet":
                table = pyarrow.parquet.read_table(path)
                assert (table["url"].to_pylist(), table.column_names) == (expected, [*CHANGE_COLUMNS])
            os.unlink(path)
        for wrong in ({**query, "format": "nothing"}, {**query, "kind": "x"}, {"old": "1", "new": "9"}):
            with pytest.raises(InvalidArgumentError):
                explorer.export_changes(wrong)
        assert os.listdir(explorer.store.downloads) == []


def test_many_ask_at_once(three_runs: str) -> None:
    """Windows that compare different runs, or sort in different ways, do not get between each other."""
    added = {("1", "2"): ["3"], ("2", "3"): ["4"], ("1", "3"): ["3", "4"]}
    sorts = [f"{order}{column}" for column in ("url", "priority") for order in ("", "-")]

    with explored(three_runs) as shown, ThreadPoolExecutor(8) as threads:

        def ask(number: int) -> None:
            (old, new), expected = list(added.items())[number % len(added)]
            rows = shown.changes({"old": old, "new": new, "kind": "added"})["rows"]
            assert sorted(row["url"].rpartition("/")[2] for row in rows) == expected
            path = shown.export_changes({"old": old, "new": new, "kind": "added"})
            with open(path, encoding="utf-8", newline="") as file:
                assert sorted(row["url"].rpartition("/")[2] for row in csv.DictReader(file)) == expected
            assert len(shown.runs()["runs"]) == 3
            assert shown.pages({"sort": sorts[number % len(sorts)]})["total"] == 2

        assert list(threads.map(ask, range(60))) == [None] * 60


def test_a_folder_has_no_changes(explorer: Explorer) -> None:
    """Changes of something else than a crawl folder are an error that says what they need."""
    assert explorer.runs() == {"runs": []}
    with pytest.raises(NotFound, match="crawl folder"):
        explorer.changes({"old": "1", "new": "2"})


def test_reading_that_fails_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error while reading is in the status; what was read before can be looked at."""

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("usp.view.loading.check_read", fail)
    with explored(folder) as explorer:
        status = explorer.status()
        assert (status["state"], status["pages"]) == ("failed", len(PAGES))
        assert re.fullmatch(r".*usp-view-\w+.parts: No space left on device", status["error"])
        assert status["outcome"] is None
        assert len(urls(explorer)) == len(PAGES)


def test_nothing_is_left_behind(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing removes the temporary folder, also before everything is read."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with explored(folder):
        assert os.listdir(tmp_path)
    assert os.listdir(tmp_path) == []
    sources = find_sources([str(folder)])
    explorer = Explorer(sources, ((source, source.stream(None)) for source in sources))
    explorer.start()
    explorer.close()
    assert os.listdir(tmp_path) == []


def test_documents_outlive_reading(explorer: Explorer) -> None:
    """Documents can be read again after everything is read."""
    parser = explorer.loader.sitemaps[1].parser
    assert parser is not None
    assert b"".join(parser.open(UNLOGGED)).startswith(b"<?xml")
