"""`usp diff`: what it prints and writes, in every format, and how it ends."""

from __future__ import annotations

import csv
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from lxml import etree, html

from support import SITEMAP_XMLNS, serve
from usp.cli import cli
from usp.cli.demo import demo_site
from usp.crawl import CrawlOptions, crawl
from usp.crawl.change_formats import change_formats, change_line
from usp.crawl.changes import Change, ChangeKind
from usp.warc import Payload, WarcWriter, response_head

pytestmark = [pytest.mark.cli, pytest.mark.export, pytest.mark.network]

ATOM = "{http://www.w3.org/2005/Atom}"
NEWS = (
    '<news:news xmlns:news="http://www.google.com/schemas/sitemap-news/0.9">'
    "<news:publication_date>2026-01-02</news:publication_date><news:title>{}</news:title></news:news>"
)
HOSTILE = "&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;"


def entry(base: str, path: str, rest: str = "") -> str:
    return f"<url><loc>{base}{path}</loc>{rest}</url>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl folder with two runs: a page added, one removed, one changed, and one moved."""
    path = tmp_path_factory.mktemp("diff") / "crawl"
    pages: dict[str, tuple[int, dict[str, str], bytes]] = {}
    with serve(pages) as server:
        base = server.url

        def has(path: str, *entries: str) -> None:
            pages[path] = (200, {}, f"<urlset {SITEMAP_XMLNS}>{''.join(entries)}</urlset>".encode())

        pages["/robots.txt"] = (200, {}, f"Sitemap: {base}/a.xml\nSitemap: {base}/b.xml\n".encode())
        date = "<lastmod>2026-01-0{}</lastmod>"
        has("/a.xml", entry(base, "/same"), entry(base, "/x/dated", date.format(1)), entry(base, "/x/old"))
        has("/b.xml", entry(base, "/y/moved"))
        crawl([base], path, options=CrawlOptions(known_paths="never"))
        moved = entry(base, "/y/moved")
        has("/a.xml", entry(base, "/same"), entry(base, "/x/dated", date.format(2)), moved)
        has("/b.xml", entry(base, "/new?a=1&amp;b=%22", NEWS.format(HOSTILE)))
        crawl([base], path, options=CrawlOptions(known_paths="never"))
    return path


def usp(capsys: pytest.CaptureFixture[str], *words: Any) -> tuple[int, str, str]:
    code = cli.run(["diff", *map(str, words)])
    out, err = capsys.readouterr()
    return code, out, err


def paths(text: str) -> list[str]:
    """The lines of the text format, sorted and without the host."""
    return sorted(
        f"{sign} /{rest.split('/', 3)[3]}" for sign, rest in (line.split(" ", 1) for line in text.splitlines())
    )


def test_text_has_a_line_for_each_change(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a pipe, each change is one line with a sign; the summary is on standard error."""
    code, out, err = usp(capsys, folder)
    assert code == 0
    assert paths(out) == ["+ /new?a=1&b=%22", "- /x/old", "> /y/moved", "~ /x/dated (last_modified)"]
    assert err == f"usp: {folder}, run 1 to run 2: 1 added, 1 removed, 1 changed, 1 moved\n"
    assert (
        usp(capsys, folder, 1, 2)[1]
        == usp(capsys, folder, 1)[1]
        == usp(capsys, folder, "--since", "2020-01-01")[1]
        == out
    )


def test_a_terminal_shows_counts(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal, counts by site and by section come before the first pages."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    _, out, _ = usp(capsys, folder)
    lines = out.splitlines()
    assert (lines[0], lines[2]) == ("by site:", "by section:")
    assert lines[1].endswith("/: 1 added, 1 removed, 1 changed, 1 moved")
    assert any(line.endswith("/x: 1 removed, 1 changed") for line in lines)
    assert "~ " in out


def test_exit_codes(folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """With --exit-code, changes exit with 1; no changes with 0. Wrong use exits with 2."""
    assert usp(capsys, folder, "--exit-code")[0] == 1
    assert usp(capsys, folder, "--exit-code", "--since", "0h")[0] == 0
    for words in (
        [],
        [folder, "1", "2", "3"],
        [folder, "1", "--since", "7d"],
        [tmp_path],
        [folder, folder, "--since", "1d"],
    ):
        with pytest.raises(SystemExit) as ended:
            usp(capsys, *words)
        assert ended.value.code == 2
    for words, message in (
        ([folder, "9"], "there is no run 9"),
        ([folder, "--since", "soon"], "--since must be like"),
        ([folder, "--kind", "new"], "--kind takes added, removed, changed, moved"),
        ([folder, "--site", "example.org"], "has no site example.org"),
        ([folder, "-f", "parquet.gz"], "invalid choice"),
    ):
        with pytest.raises(SystemExit):
            usp(capsys, *words)
        assert message in capsys.readouterr().err


def test_kinds_are_chosen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--kind shows only some kinds."""
    assert paths(usp(capsys, folder, "--kind", "removed,moved")[1]) == ["- /x/old", "> /y/moved"]


def test_tables_are_written(folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Every format of tables has a row for each change; the ending of the file says the format."""
    expected = {("added", ()), ("removed", ()), ("changed", ("last_modified",)), ("moved", ())}
    _, out, _ = usp(capsys, folder, "-f", "jsonl")
    rows = [json.loads(line) for line in out.splitlines()]
    assert {(row["change"], tuple(row["fields"])) for row in rows} == expected
    usp(capsys, folder, "-o", tmp_path / "c.parquet")
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(tmp_path / "c.parquet").to_pylist()
    assert {(row["change"], tuple(row["fields"])) for row in table} == expected
    usp(capsys, folder, "-o", tmp_path / "c.csv")
    with open(tmp_path / "c.csv", newline="") as file:
        assert {row["change"] for row in csv.DictReader(file)} == {"added", "removed", "changed", "moved"}


def test_atom_feed(folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The feed has the new and changed pages, with what RFC 4287 wants, and the same ids each time."""
    usp(capsys, folder, "-o", tmp_path / "feed.xml")
    feed = etree.parse(tmp_path / "feed.xml").getroot()
    for name in ("id", "title", "updated", "author"):
        assert len(feed.findall(ATOM + name)) == 1
    entries = feed.findall(f"{ATOM}entry")
    terms = [one.find(f"{ATOM}category").get("term") for one in entries]
    assert sorted(terms) == ["added", "changed"]
    for one in entries:
        for name in ("id", "title", "updated", "link"):
            assert len(one.findall(ATOM + name)) == 1
        assert one.findtext(f"{ATOM}id").startswith("urn:sha1:")
    (added,) = [one for one in entries if one.find(f"{ATOM}category").get("term") == "added"]
    assert added.findtext(f"{ATOM}title") == '<script>alert(1)</script> & "'
    assert added.find(f"{ATOM}link").get("href").endswith("/new?a=1&b=%22")
    (changed,) = [one for one in entries if one is not added]
    assert changed.findtext(f"{ATOM}updated") == "2026-01-02T00:00:00Z"
    first = (tmp_path / "feed.xml").read_bytes()
    usp(capsys, folder, "-f", "atom", "-o", tmp_path / "feed.xml")
    assert (tmp_path / "feed.xml").read_bytes() == first


def test_html_is_escaped(folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The web page needs no other file, and shows text of sites as text."""
    usp(capsys, folder, "-o", tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    page = html.fromstring(text)
    assert page.xpath("//script | //link | //img | //iframe") == []
    titles = [link.text for link in page.xpath("//a")]
    assert '<script>alert(1)</script> & "' in titles
    assert len(titles) == 4


def written(name: str, *changes: Change) -> str:
    """The text of a format for these changes."""
    import io
    from dataclasses import asdict
    from datetime import UTC, datetime

    import pyarrow as pa

    from usp.crawl.changes import CHANGES
    from usp.export.arrow import arrow_schema
    from usp.export.formats.base import Answer, FormatOptions

    schema = arrow_schema(CHANGES, "changes")
    rows = [{**asdict(change), "fields": list(change.fields)} for change in changes]
    batches = pa.Table.from_pylist(rows, schema).to_batches()
    stream = io.BytesIO()
    write = change_formats("s", "t", datetime(2026, 1, 1, tzinfo=UTC))[name].answer_writer
    assert write is not None
    write(Answer(schema, iter(batches)), stream, FormatOptions())
    return stream.getvalue().decode()


@pytest.mark.parametrize(
    ("url", "href"),
    [
        ("http://a.example/x?y=1&z=%20#top", "http://a.example/x?y=1&z=%20#top"),
        ("http://a.example/é", "http://a.example/é"),
        ('http://a.example/a b`c`{d}|e\\f^"<g>', "http://a.example/a%20b%60c%60%7Bd%7D%7Ce%5Cf%5E%22%3Cg%3E"),
        ("http://a.example/100%", "http://a.example/100%25"),
        ("javascript:alert(1)", None),
    ],
)
def test_links_of_a_feed_are_iris(url: str, href: str | None) -> None:
    """A link has only characters that RFC 4287 allows; what is no web address is no link."""
    feed = etree.fromstring(written("atom", Change("s", ChangeKind.ADDED, url)).encode())
    link = feed.find(f"{ATOM}entry/{ATOM}link")
    assert (None if link is None else link.get("href")) == href
    assert feed.findtext(f"{ATOM}entry/{ATOM}content") == (url if href is None else None)


def test_entries_of_a_feed_have_ids_of_their_own() -> None:
    """A page that two sites list is one entry."""
    found = [Change(site, ChangeKind.ADDED, f"http://a.example/{page}") for site in "st" for page in (1, 2)]
    feed = etree.fromstring(written("atom", *found).encode())
    ids = [one.text for one in feed.findall(f"{ATOM}entry/{ATOM}id")]
    assert len(ids) == len(set(ids)) == 2


@pytest.mark.parametrize("text", ["\x00\x08\x1b[31m", "\u202e", "]]>", "'\"<>&", "\ufffe", "javascript:alert(1)"])
def test_hostile_text(text: str) -> None:
    """Control characters and markup of a site cannot break a feed, a page or a line, nor become a link."""
    change = Change(f"https://a.example/{text}", ChangeKind.ADDED, text, (), text, text, None, None, None, text)
    feed = etree.fromstring(written("atom", change).encode())
    assert len(feed.findall(f"{ATOM}entry")) == 1
    page = html.fromstring(written("html", change))
    assert page.xpath("//script | //*[@onclick]") == []
    assert page.xpath("//a") == []
    (line,) = written("text", change).splitlines()
    assert line == change_line(change)
    assert line.isprintable()


def test_two_sources(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Any two sources can be compared: here files, and an export of one."""
    for name, numbers in (("old", "123"), ("new", "234")):
        body = "".join(entry("https://a.example", f"/{number}") for number in numbers)
        (tmp_path / f"{name}.xml").write_text(f"<urlset {SITEMAP_XMLNS}>{body}</urlset>")
    code, out, _ = usp(capsys, tmp_path / "old.xml", tmp_path / "new.xml")
    assert (code, paths(out)) == (0, ["+ /4", "- /1"])
    cli.run(["export", "-q", str(tmp_path / "old.xml"), "-o", str(tmp_path / "old.parquet")])
    assert usp(capsys, tmp_path / "old.parquet", tmp_path / "new.xml", "-q") == (0, out, "")


def archive(path: Path, hosts: str) -> Path:
    """Write a web archive of hosts, each with a robots.txt and a sitemap of two pages."""
    with path.open("wb") as file:
        writer = WarcWriter(file)
        for host in hosts:
            base = f"https://{host}.example"
            body = "".join(entry(base, f"/{number}") for number in "12")
            for name, text in (
                ("robots.txt", f"Sitemap: {base}/a.xml"),
                ("a.xml", f"<urlset {SITEMAP_XMLNS}>{body}</urlset>"),
            ):
                head = response_head(200, "OK", [("Content-Type", "text/plain")])
                writer.response(f"{base}/{name}", head, Payload(text.encode()), datetime.now(UTC))
    return path


def test_archives_of_several_sites(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """All sites of an archive are on its side, whatever the number of sites on the other one."""
    one, two = archive(tmp_path / "a.warc", "a"), archive(tmp_path / "ab.warc", "ab")
    code, out, _ = usp(capsys, one, two)
    assert (code, re.findall(r"([+-]) https://(\w)", out)) == (0, [("+", "b"), ("+", "b")])
    code, out, _ = usp(capsys, two, one)
    assert (code, re.findall(r"([+-]) https://(\w)", out)) == (0, [("-", "b"), ("-", "b")])
    assert usp(capsys, two, archive(tmp_path / "ba.warc", "ba"))[1] == ""


def test_pages_of_sitemaps_that_were_not_read_are_not_removed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """If a sitemap fails on one side, nobody knows which pages it has: they are neither removed nor added."""
    pages: dict[str, tuple[int, dict[str, str], bytes]] = {}
    with serve(pages) as server:
        names = "ab"
        pages["/robots.txt"] = (200, {}, "".join(f"Sitemap: {server.url}/{name}.xml\n" for name in names).encode())
        for name in names:
            body = "".join(entry(server.url, f"/{name}{number}") for number in "12")
            pages[f"/{name}.xml"] = (200, {}, f"<urlset {SITEMAP_XMLNS}>{body}</urlset>".encode())
        cli.run(["export", "-q", "-k", server.url, "-o", str(tmp_path / "old.parquet")])
        pages["/a.xml"] = (200, {}, f"<urlset {SITEMAP_XMLNS}>{entry(server.url, '/a2')}</urlset>".encode())
        pages["/b.xml"] = (403, {}, b"")
        code, out, err = usp(capsys, "-k", tmp_path / "old.parquet", server.url)
        assert (code, paths(out)) == (4, ["- /a1"])
        assert "b.xml: 403" in err
        code, out, _ = usp(capsys, "-k", server.url, tmp_path / "old.parquet")
        assert (code, paths(out)) == (4, ["+ /a1"])


def test_a_source_that_cannot_be_read_has_no_differences(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """If one of two sources is no sitemap, nothing is printed, the output file stays, and the exit code is 3."""
    (tmp_path / "old.xml").write_text(f"<urlset {SITEMAP_XMLNS}>{entry('https://a.example', '/1')}</urlset>")
    (tmp_path / "new.xml").write_text("<html>no sitemap</html>")
    (tmp_path / "out.txt").write_text("before")
    code, out, err = usp(capsys, tmp_path / "old.xml", tmp_path / "new.xml", "-o", tmp_path / "out.txt")
    assert (code, out, (tmp_path / "out.txt").read_text()) == (3, "", "before")
    assert "out.txt was not written" in err


def test_examples_of_the_documentation_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Python examples of what has changed run on the example website."""
    guide = (Path(__file__).parents[1] / "docs" / "crawls.md").read_text("utf-8")
    parts = guide.partition("## What changed")[2].partition("## If it ends early")[0]
    examples = re.findall(r"```python\n(.*?)```", parts, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    with demo_site() as homepage:
        for example in examples:
            exec(compile(example.replace("https://www.example.org/", homepage), "crawls.md", "exec"), {})  # noqa: S102 -- running it is the test
    out = capsys.readouterr().out
    assert "Counter(" in out
    assert len(examples) == 2
