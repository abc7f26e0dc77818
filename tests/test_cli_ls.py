"""`usp ls` as a product: the drawn tree, the table of sitemaps, JSON, dates, several targets and interrupts."""

from __future__ import annotations

import gzip
import io
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from errno import EADDRINUSE
from pathlib import Path
from typing import Any

import pytest

import screens
from commands import RunHere, environment
from faults import FaultServer, ok, serve_faults, silent, status
from support import urlset
from test_cli_progress import USP, interrupted, started, terminal
from usp.cli.facts import table_lines
from usp.cli.pages import ChosenPages, shown_urls
from usp.cli.trees import DrawnTree, Signs, signs_for, tabtree
from usp.export.reading import sitemap_rows
from usp.objects.page import SitemapPage
from usp.objects.sitemap import IndexXMLSitemap, InvalidSitemap, PagesXMLSitemap

pytestmark = pytest.mark.cli

DATED = """<urlset>
<url><loc>http://h/new</loc><lastmod>2025-03-02</lastmod></url>
<url><loc>http://h/old</loc><lastmod>2024-01-01T00:00:00Z</lastmod></url>
<url><loc>http://h/undated</loc></url>
<url><loc>http://h/eve</loc><lastmod>2025-02-28T23:30:00-02:00</lastmod></url>
</urlset>"""
INDEX = """<sitemapindex>
<sitemap><loc>{base}/big.xml.gz</loc><lastmod>2025-03-05T08:00:00+01:00</lastmod></sitemap>
<sitemap><loc>{base}/dated.xml</loc><lastmod>2020-01-01</lastmod></sitemap>
<sitemap><loc>{base}/gone.xml</loc></sitemap>
</sitemapindex>"""
BIG = gzip.compress(urlset(*(f"http://h/{number}" for number in range(500))).encode(), mtime=0)
TREE = """\
{base}/  5 sitemaps, 504 pages
└── {base}/robots.txt  4 sitemaps, 504 pages
    └── {base}/index.xml  3 sitemaps, 504 pages
        ├── {base}/big.xml.gz  500 pages
        │   ├── http://h/0
        │   ├── http://h/1
        │   ├── http://h/2
        │   ├── http://h/3
        │   ├── http://h/4
        │   ├── http://h/5
        │   ├── http://h/6
        │   ├── http://h/7
        │   ├── http://h/8
        │   ├── http://h/9
        │   └── … and 490 more
        ├── {base}/dated.xml  4 pages
        │   ├── http://h/new
        │   ├── http://h/old
        │   ├── http://h/undated
        │   └── http://h/eve
        └── ✗ {base}/gone.xml  404 Not Found
"""


@pytest.fixture
def site() -> Iterator[FaultServer]:
    handlers = {
        "/robots.txt": ok("Sitemap: {base}/index.xml\n"),
        "/index.xml": ok(INDEX),
        "/big.xml.gz": ok(BIG, ETag='W/"5e1f-0123456789abcdef0123"'),
        "/dated.xml": ok(DATED),
        "/gone.xml": status(404),
    }
    with serve_faults(handlers) as server:
        yield server


def on_terminal(*arguments: str, columns: int = 200, **more: str) -> tuple[int, str]:
    """Run `usp ls` with standard output on a terminal; return its exit code and what the terminal received."""
    with terminal(columns) as found:
        run = subprocess.run(
            [*USP, *arguments], stdout=found.follower, stderr=subprocess.DEVNULL, env=environment(**more), timeout=60
        )
    return run.returncode, found.text().replace("\r\n", "\n")


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", text)


@pytest.mark.slow
def test_a_big_site_on_a_terminal(site: FaultServer) -> None:
    """The tree has lines, counts, the first pages of each sitemap, and marks on those that failed."""
    code, text = on_terminal("-k", site.url)
    assert code == 0
    assert plain(text).replace("404 Words", "404 Not Found") == TREE.replace("{base}", site.url)
    assert "\x1b[1;31m✗\x1b[0m" in text  # a red cross


@pytest.mark.slow
def test_all_and_no_colours(site: FaultServer) -> None:
    """--all prints every page on a terminal. With NO_COLOR the text is the same, without colours."""
    code, text = on_terminal("-k", "--all", site.url, NO_COLOR="1")
    assert code == 0
    assert "\x1b" not in text
    assert len(re.findall(r"http://h/\d+$", text, re.MULTILINE)) == 500
    assert "│   └── http://h/499\n" in text
    assert "✗ " in text


@pytest.mark.slow
def test_a_pipe_gets_everything(site: FaultServer, run_here: RunHere) -> None:
    """In a pipe, the default is the tree with tabs, as ultimate-sitemap-parser prints it, also with FORCE_COLOR."""
    run = run_here("ls", "-k", site.url)
    lines = run.stdout.splitlines()
    assert lines[:5] == [f"{site.url}/", f"\t{site.url}/robots.txt", f"\t\t{site.url}/index.xml",
                         f"\t\t\t{site.url}/big.xml.gz", "\t\t\t\thttp://h/0"]  # fmt: skip
    assert len(lines) == 4 + 500 + 1 + 4 + 1
    piped = subprocess.run(
        [*USP, "-k", site.url], capture_output=True, text=True, env=environment(FORCE_COLOR="1"), check=True
    )
    assert piped.stdout == run.stdout
    drawn = run_here("ls", "-k", "-f", "tree", site.url)  # all of it, as it is no terminal
    assert drawn.stdout.count("── http://h/") == 504


def test_text_of_sites_is_escaped(run_here: RunHere, tmp_path: Path) -> None:
    """No format prints a control character of a site."""
    (tmp_path / "sitemap.xml").write_text(urlset("http://h/\u202egnp", "http://h/\x9b31m"), "utf-8")
    for name in ("tree", "tabtree", "pages", "json", "table", "tsv"):
        run = run_here("ls", "-f", name, str(tmp_path), "--url", "http://h/")
        assert run.returncode == 0
        assert run.stdout.replace("\n", "").replace("\t", "").isprintable() or name == "json"
        assert "\x9b" not in run.stdout


def test_many_sitemaps_are_shown_in_short() -> None:
    """Of an index with many sitemaps, a terminal shows the first; the rest is counted. One more is not worth a line."""
    for count, hidden in ((51, 0), (60, 10)):
        subs = [PagesXMLSitemap(f"http://h/{n}.xml", [SitemapPage(f"http://h/{n}")]) for n in range(count - 1)]
        tree = IndexXMLSitemap("http://h/", [*subs, InvalidSitemap("http://h/bad.xml", "why")])
        lines = "".join(DrawnTree(tree, ChosenPages(), is_whole=False).lines()).splitlines()
        assert lines[0] == f"http://h/  {count} sitemaps, {count - 1} pages, partial"
        assert len(lines) == (1 + 51 * 2 - 1 if not hidden else 1 + 50 * 2 + 1)
        assert lines[-1] == (
            "`-- ... and 10 more sitemaps, 9 pages, 1 missing" if hidden else "`-- x http://h/bad.xml  why"
        )


def test_one_more_page_is_shown() -> None:
    """The last page is shown instead of "... and 1 more", which takes as much room."""
    for count, lines in ((10, 11), (11, 12), (12, 12)):
        tree = PagesXMLSitemap("http://h/a.xml", [SitemapPage(f"http://h/{n}") for n in range(count)])
        drawn = "".join(DrawnTree(tree, ChosenPages(), is_whole=False).lines())
        assert drawn.count("\n") == lines
        assert ("... and 2 more\n" in drawn) is (count == 12)


def test_signs_fit_the_encoding() -> None:
    """A terminal without these characters gets plain ones."""
    assert signs_for(io.TextIOWrapper(io.BytesIO(), "utf-8")).last == "└── "
    assert "".join(signs_for(io.TextIOWrapper(io.BytesIO(), "latin-1"))).isascii()
    assert "".join(signs_for(None)).isascii()


def test_table_of_sitemaps(site: FaultServer, run_here: RunHere) -> None:
    """In a pipe, --sitemaps is complete: a line for each sitemap with the columns of `usp export --table sitemaps`."""
    run = run_here("ls", "-k", "--sitemaps", site.url)
    assert run.returncode == 0
    heading, *lines = (line.split("\t") for line in run.stdout.splitlines())
    rows = {row["url"].removeprefix(site.url): row for row in (dict(zip(heading, line, strict=True)) for line in lines)}
    assert list(rows) == ["/robots.txt", "/index.xml", "/big.xml.gz", "/dated.xml", "/gone.xml"]
    big, dated, gone = (rows[name] for name in ("/big.xml.gz", "/dated.xml", "/gone.xml"))
    assert (big["pages"], big["bytes"], int(big["bytes_inflated"])) == ("500", str(len(BIG)), len(gzip.decompress(BIG)))
    assert (big["etag"], big["status"], big["newest"]) == ('W/"5e1f-0123456789abcdef0123"', "200", "")
    assert big["last_modified"] == "2025-03-05T07:00:00Z"
    assert float(big["seconds"]) > 0
    assert (dated["newest"], dated["depth"], dated["parent"]) == ("2025-03-02T00:00:00Z", "3", f"{site.url}/index.xml")
    assert (gone["type"], gone["status"], gone["pages"]) == ("invalid", "404", "0")
    assert "404" in gone["reason"]
    exported = run_here("export", "-k", "--table", "sitemaps", "-f", "tsv", site.url).stdout.partition("\n")[0]
    assert "\t".join(heading) == exported


@pytest.mark.slow
def test_table_of_sitemaps_on_a_terminal(site: FaultServer) -> None:
    """On a terminal the table is aligned, and a failed sitemap shows why. A URL is never cut, however narrow it is."""
    code, wide = on_terminal("-k", "--sitemaps", site.url, NO_COLOR="1")
    assert code == 0
    heading, *rows = wide.splitlines()
    assert heading.split() == ["pages", "packed", "unpacked", "lastmod", "newest", "page", "status", "seconds",
                               "problems", "etag", "sitemap"]  # fmt: skip
    at = heading.index("sitemap")
    assert [row[at:] for row in rows[:4]] == [
        f"{site.url}/{n}" for n in ("robots.txt", "index.xml", "big.xml.gz", "dated.xml")
    ]
    assert re.fullmatch(rf"✗ {site.url}/gone.xml  404 \w+( \w+)?", rows[4][at:])
    assert rows[2].startswith("  500 ")
    assert rows[3].startswith("    4 ")
    _, narrow = on_terminal("-k", "--sitemaps", site.url, columns=80, NO_COLOR="1")
    assert f"\n{site.url}/big.xml.gz\n  500 " in narrow
    assert all(len(line) <= 110 for line in narrow.splitlines())


def test_rows_of_numbers_are_aligned() -> None:
    """Numbers end, and dates start, in the same column of every row."""
    subs = [PagesXMLSitemap(f"http://h/{n}.xml", [SitemapPage(f"http://h/{i}") for i in range(n)]) for n in (7, 1234)]
    rows = list(sitemap_rows(IndexXMLSitemap("http://h/", subs)))
    lines = list(table_lines(rows, signs=Signs()))
    assert lines == ["pages  sitemap\n", "    -  http://h/\n", "    7  http://h/7.xml\n", "1,234  http://h/1234.xml\n"]


def sitemaps_in(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield tree
    for sub in tree["sub_sitemaps"]:
        yield from sitemaps_in(sub)


def test_json(site: FaultServer, run_here: RunHere) -> None:
    """JSON has the outcome, the notes and the nested tree with all facts and all pages."""
    run = run_here("ls", "-k", "-f", "json", site.url)
    assert run.returncode == 0
    found = json.loads(run.stdout)
    assert found["schema_version"] == 1
    assert found["outcome"]["kind"] == "complete"
    (missing,) = found["outcome"]["missing"]
    assert (missing["cause"], missing["urls"]) == ("not found", [f"{site.url}/gone.xml"])
    (source,) = found["sources"]
    assert (source["target"], source["notes"]) == (site.url, [])
    sitemaps = {str(one["url"]).removeprefix(site.url): one for one in sitemaps_in(source["tree"])}
    assert list(sitemaps) == ["/", "/robots.txt", "/index.xml", "/big.xml.gz", "/dated.xml", "/gone.xml"]
    assert [page["url"] for page in sitemaps["/big.xml.gz"]["pages"]] == [f"http://h/{n}" for n in range(500)]
    assert sitemaps["/dated.xml"]["pages"][0]["last_modified"] == "2025-03-02T00:00:00Z"
    assert (sitemaps["/gone.xml"]["status"], sitemaps["/gone.xml"]["page_count"]) == (404, 0)
    without = json.loads(run_here("ls", "-k", "-f", "json", "--sitemaps", site.url).stdout)
    assert all("pages" not in one and one["bytes"] != "" for one in sitemaps_in(without["sources"][0]["tree"]))


def test_json_of_nothing(run_here: RunHere) -> None:
    """A program that reads JSON gets the outcome of a blocked site, too. With --strict nothing is printed."""
    with serve_faults({}, default=status(403)) as server:
        run = run_here("ls", "-f", "json", server.url)
        assert run.returncode == 3
        assert json.loads(run.stdout)["outcome"]["kind"] == "blocked"
        for more in (("-f", "json", "--strict"), ("-f", "tree"), ("--sitemaps",)):
            run = run_here("ls", *more, server.url)
            assert (run.returncode, run.stdout) == (3, "")


def test_since(site: FaultServer, run_here: RunHere) -> None:
    """--since lists pages as `usp export --since` writes them: undated ones are left out, dates are in UTC."""
    run = run_here("ls", "-k", "-f", "pages", "--since", "2025-03-01", "--no-prune", site.url)
    assert run.stdout == "http://h/new\nhttp://h/eve\n"
    exported = run_here(
        "export", "-k", "-f", "csv", "--columns", "url", "--since", "2025-03-01", "--no-prune", site.url
    )
    assert exported.stdout.split()[1:] == run.stdout.split()
    drawn = run_here("ls", "-k", "-f", "tree", "--since", "2025-03-01", "--no-prune", site.url).stdout
    assert f"{site.url}/dated.xml  2 of 4 pages\n" in drawn
    assert f"{site.url}/big.xml.gz  0 of 500 pages\n" in drawn
    assert drawn.count("http://h/") == 2
    pruned = run_here("ls", "-k", "-f", "pages", "--since", "2025-03-01", site.url)
    assert (pruned.returncode, pruned.stdout) == (0, "")  # the index says that dated.xml is older
    wrong = run_here("ls", "--since", "yesterday", site.url)
    assert wrong.returncode == 2
    assert "--since must be like 2025-01-01" in wrong.stderr


def test_several_targets(run_here: RunHere, tmp_path: Path) -> None:
    """One tree comes after the other. Tables name the source of each row."""
    for name in "ab":
        (tmp_path / f"{name}.xml").write_text(urlset(f"http://h/{name}"))
    targets = [str(tmp_path / "a.xml"), str(tmp_path / "b.xml")]
    printed = {
        name: run_here("ls", "-q", "-f", name, *targets, "--strict").stdout for name in ("tabtree", "tree", "pages")
    }
    assert re.sub(r"\S+/(?=[ab].xml)", "", printed["tabtree"]) == "a.xml\n\thttp://h/a\nb.xml\n\thttp://h/b\n"
    assert printed["tree"].count("\n\n") == 1
    assert printed["pages"] == run_here("ls", "-f", "pages", *targets).stdout == "http://h/a\nhttp://h/b\n"
    heading, *rows = run_here("ls", "--sitemaps", *targets).stdout.splitlines()
    assert heading.startswith("source\turl\t")
    assert [row.partition("\t")[0] for row in rows] == targets
    sources = json.loads(run_here("ls", "-f", "json", *targets).stdout)["sources"]
    assert [source["target"] for source in sources] == targets


def test_files_have_their_names(run_here: RunHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose URL nobody knows is shown under its name, also in messages; with --url it has that URL."""
    file, other = tmp_path / "a.xml", tmp_path / "b.txt"
    file.write_text(urlset("http://h/1"))
    other.write_text("no sitemap")
    assert run_here("ls", str(file)).stdout == f"{file}\n\thttp://h/1\n"
    assert run_here("ls", "-f", "tree", str(file)).stdout == f"{file}  1 page\n└── http://h/1\n"
    assert str(file) in run_here("ls", "-f", "table", str(file)).stdout
    assert run_here("ls", str(file), "--url", "http://h/a.xml").stdout == "http://h/a.xml\n\thttp://h/1\n"
    why = "it is neither XML nor a list of URLs"
    for arguments in ((), ("--url", "http://h/")):
        run = run_here("ls", str(other), *arguments)
        assert (run.returncode, run.stderr) == (3, f"usp: no sitemap in {other}: {why}\n")
    assert run_here("check", str(other)).stderr == f"usp: no sitemap in {other}: {why}\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert run_here("ls", "-").stderr == "usp: no sitemap in standard input: it is empty\n"


def test_files_start_fast(tmp_path: Path) -> None:
    """To read files, no library for HTTP is imported."""
    (tmp_path / "a.xml").write_text(urlset("http://h/1"))
    code = "import sys; from usp.cli import main; main(sys.argv[1:]); print('requests' in sys.modules)"
    command = [sys.executable, "-c", code, "ls", "-f", "pages", str(tmp_path / "a.xml")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout == "http://h/1\nFalse\n"


def test_strict_prints_nothing_unless_complete(site: FaultServer, run_here: RunHere) -> None:
    """With --strict and a missing sitemap, no format prints anything."""
    for name in ("tree", "tabtree", "pages", "json", "table", "tsv"):
        run = run_here("ls", "-k", "--strict", "-f", name, site.url)
        assert (run.returncode, run.stdout) == (4, ""), name
        summary, why = run.stderr.splitlines()[-2:]
        assert "5 sitemaps (1 missing), " in summary
        assert "pages" not in summary  # nobody counted them
        assert why == "usp: nothing is listed, because of --strict"


def test_wrong_use(run_here: RunHere) -> None:
    """--sitemaps lists no pages."""
    run = run_here("ls", "--sitemaps", "-f", "pages", "http://h/")
    assert run.returncode == 2
    assert "choose one" in run.stderr


@pytest.mark.slow
def test_interrupted() -> None:
    """After Ctrl-C every format prints what has arrived, and the exit code is 130."""
    handlers = {
        "/robots.txt": ok("Sitemap: {base}/a.xml\nSitemap: {base}/b.xml\n"),
        "/a.xml": ok(urlset("http://h/1")),
        "/b.xml": silent,
    }
    for name in ("tree", "json", "tsv"):
        with serve_faults(handlers) as server, started(*USP, "-k", "-f", name, server.url) as process:
            while not (server.count("/a.xml") and server.count("/b.xml")):
                assert process.poll() is None
                time.sleep(0.01)
            time.sleep(0.3)
            printed, said = interrupted(process)
        assert "usp: interrupted; the results are partial" in said
        assert process.returncode == 130
        if name == "json":
            assert json.loads(printed)["outcome"]["kind"] == "partial"
        else:
            assert "/a.xml" in printed


def test_blocks_of_pages() -> None:
    """Pages can be skipped and limited at any place; --since chooses among the rest."""
    sitemap = PagesXMLSitemap("http://h/a.xml", [SitemapPage(f"http://h/{n}") for n in range(10)])
    for skip in range(12):
        for most in (None, *range(12)):
            blocks = list(ChosenPages().blocks(sitemap, skip=skip, most=most))
            expected = [f"http://h/{n}" for n in range(10)][:most][skip:]
            assert [url for block in blocks for url in block.urls] == expected
            assert sum(block.pages for block in blocks) == len(expected)
    assert list(ChosenPages("7d").blocks(sitemap)) == [(10, [])]


def test_urls_without_the_site() -> None:
    """URLs of the site lose its scheme and host; others, and strange characters, do not pass for them."""
    urls = ["http://h/a", "http://h", "http://h.uk/", "http://h/\x07"]
    assert shown_urls(urls, "http://h") == ["/a", "", "http://h.uk/", "/\\x07"]
    assert shown_urls(urls[:2]) == urls[:2]
    tree = PagesXMLSitemap("http://h/", [SitemapPage("http://h/a")])
    assert "".join(lines for _, lines in tabtree(tree, ChosenPages(), "http://h")) == "http://h/\n\t/a\n"


@pytest.mark.slow
def test_no_standard_output(tmp_path: Path) -> None:
    """Without a standard output, commands end as usual."""
    file = tmp_path / "sitemap.xml"
    file.write_text(urlset("http://h/1"))
    for more in (("-f", "tree"), ("-f", "table"), ("-f", "json"), ("-f", "pages")):
        run = subprocess.run(
            ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *USP, "-q", *more, str(file)], stderr=subprocess.PIPE, check=False
        )
        assert (run.returncode, run.stderr) == (0, b"")


def test_pictures_are_in_the_documentation() -> None:
    """Every picture of a terminal is shown somewhere, and every one that is shown exists and loads nothing else."""
    root = Path(__file__).parents[1]
    pages = [(root / name).read_text("utf-8") for name in ("README.md", "docs/cli.md")]
    shown = {Path(path).name for page in pages for path in re.findall(r"\]\(((?:docs/)?images/[^)]+\.svg)\)", page)}
    pictures = {path.name: path.read_text("utf-8") for path in (root / "docs" / "images").glob("*.svg")}
    assert shown == set(pictures) == {f"{screen.name}.svg" for screen in screens.SCREENS}
    for picture in pictures.values():
        assert "url(http" not in picture
        assert "127.0.0.1" not in picture


@pytest.mark.slow
@pytest.mark.tools
def test_pictures_show_what_commands_print() -> None:
    """A picture is that of the command today. `make screens` takes it again."""
    screen = next(screen for screen in screens.SCREENS if screen.name == "blocked")
    path = Path(__file__).parents[1] / "docs" / "images" / "blocked.svg"
    try:
        picture = screens.picture(screen)
    except OSError as error:
        if error.errno != EADDRINUSE:
            raise
        pytest.skip("another program uses the port of the website in the pictures")
    assert path.read_text("utf-8") == picture
