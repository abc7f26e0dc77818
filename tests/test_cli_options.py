"""Wrong use of the command line, and the effect of single options."""

from __future__ import annotations

import re
import time

import pytest

from commands import RunHere
from faults import ok, serve_faults
from support import index, serve, urlset
from usp.cli.output import page_line
from usp.objects.page import SitemapPage

pytestmark = pytest.mark.cli

SECONDS = "give a number of seconds, from"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-c", "0", "http://h/"], "argument -c/--concurrency: give a number of requests, from 1 to 1,000, not '0'"),
        (["-c", "1001", "http://h/"], "argument -c/--concurrency: give a number of requests, from 1 to 1,000, not"),
        (["-c", "1" * 5000, "http://h/"], "argument -c/--concurrency: give a number of requests, from 1 to 1,000, not"),
        (["--max-pages", "1.5", "http://h/"], "argument --max-pages: give a number of pages, 1 or more, not '1.5'"),
        (["--max-sitemaps", "0", "http://h/"], "argument --max-sitemaps: give a number of sitemaps, 1 or more, not"),
        (["--timeout", "nan", "http://h/"], f"argument --timeout: {SECONDS} 0.001 to 1,000,000, not 'nan'"),
        (["--timeout", "1e10", "http://h/"], f"argument --timeout: {SECONDS} 0.001 to 1,000,000, not '1e10'"),
        (["--max-time", "-1", "http://h/"], f"argument --max-time: {SECONDS} 0.001 to 1,000,000, not '-1'"),
        (["--max-time", "0.0001", "http://h/"], f"argument --max-time: {SECONDS} 0.001 to 1,000,000, not '0.0001'"),
        (["--spacing", "-0.1", "http://h/"], f"argument --spacing: {SECONDS} 0 to 1,000,000, not '-0.1'"),
        (["http://127.0.0.1:99999/"], "argument URL: a port is a number from 0 to 65535, not '99999'"),
        (["http://127.0.0.1:80 /"], "argument URL: a port is a number from 0 to 65535, not '80 '"),
        (["http://[::1/"], "argument URL: give a URL like https://example.org/, not 'http://[::1/'"),
        (["-H", "Host: foo", "http://h/"], "argument -H/--header: Host cannot be set; it depends on the request"),
        (["-H", "content-length:1", "http://h/"], "argument -H/--header: content-length cannot be set; it depends"),
        (
            ["-H", "Transfer-Encoding: chunked", "http://h/"],
            "argument -H/--header: Transfer-Encoding cannot be set; it",
        ),
        (["-H", "Connection: close", "http://h/"], "argument -H/--header: Connection cannot be set; it depends on the"),
        (["-r", "-k", "http://h/"], "with both -r/--no-robots and -k/--no-known there is nowhere to look"),
        (["-k", "--extra-path", "a.xml", "http://h/"], "--extra-path adds a known path, but -k/--no-known skips"),
        (["--extra-path", "/", "http://h/"], "argument --extra-path: give a path like my-sitemap.xml, not '/'"),
        (["--extra-path", "http://h/a.xml", "http://h/"], "argument --extra-path: give a path like my-sitemap.xml"),
        (["http://h/", "http://h/"], "unrecognized arguments: http://h/"),
        (["--nope", "http://h/"], "unrecognized arguments: --nope"),
    ],
)
def test_wrong_use(run_here: RunHere, arguments: list[str], message: str) -> None:
    """Wrong use prints the usage of the command and a line that says what to write."""
    run = run_here("ls", *arguments)
    assert (run.returncode, run.stdout) == (2, "")
    usage, said = run.stderr.splitlines()
    assert usage == "usage: usp ls [OPTION ...] URL"
    assert said.startswith(f"usp ls: error: {message}")


def test_wrong_use_of_the_whole(run_here: RunHere) -> None:
    """An unknown option before the command is an error of `usp` itself."""
    run = run_here("--nope", "ls", "http://h/")
    assert run.returncode == 2
    assert run.stderr.splitlines()[-1] == "usp: error: unrecognized arguments: --nope"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://example.org", ""),
        ("https://example.org/x", "/x"),
        ("https://example.org?x", "?x"),
        ("https://example.org#x", "#x"),
        ("https://example.org.uk/x", "https://example.org.uk/x"),
        ("https://example.org:81/x", "https://example.org:81/x"),
        ("http://example.org/x", "http://example.org/x"),
    ],
)
def test_stripped_urls(url: str, shown: str) -> None:
    """The site's URL is stripped, but not from a longer host that begins with it."""
    assert page_line(SitemapPage(url=url), "https://example.org") == shown
    assert page_line(SitemapPage(url=url)) == url


def test_a_path_is_dropped(run_here: RunHere) -> None:
    """A URL with a path stands for the whole site. A message says so, without the password; -q turns it off."""
    with serve({"/robots.txt": (200, {}, b"Sitemap: {base}/a.xml"), "/a.xml": (200, {}, b"http://h/1\n")}) as site:
        address = site.url.removeprefix("http://")
        said = f"usp: listing the whole site of {site.url}/, not only what is at this URL"
        for url in (f"{site.url}/urls.txt", f"{site.url}?x=1", f"http://user:secret@{address}/x/"):
            run = run_here("ls", "-k", url)
            assert run.stderr.splitlines()[0] == said
        assert run_here("ls", "-q", "-k", f"{site.url}/urls.txt").stderr == ""
        for url in (site.url, f"{site.url}/", f"{site.url}/#top"):
            assert "whole site" not in run_here("ls", "-k", url).stderr
        assert "whole site" not in run_here("ls", "ftp://h/x").stderr


def test_extra_paths(run_here: RunHere) -> None:
    """--extra-path adds paths to the known ones."""
    pages = {f"/{name}": ok(urlset(f"http://h/{name}")) for name in ("sitemap.xml", "b.xml", "a/c.xml", "d.xml")}
    with serve_faults(pages) as server:
        run = run_here("ls", "-f", "pages", "--extra-path", "/b.xml", "--extra-path", "a/c.xml", server.url)
    assert set(run.stdout.splitlines()) == {"http://h/sitemap.xml", "http://h/b.xml", "http://h/a/c.xml"}


def test_spacing(run_here: RunHere) -> None:
    """--spacing keeps requests to one host apart."""
    robots = "".join(f"Sitemap: {{base}}/{n}.xml\n" for n in range(3))
    with serve_faults({"/robots.txt": ok(robots)}, default=ok(urlset("http://h/1"))) as server:
        began = time.monotonic()
        assert run_here("ls", "-k", "--spacing", "0.3", server.url).returncode == 0
        times = sorted(at for at, _ in server.asked)
    assert len(times) == 4
    assert all(at - began > 0.3 * number - 0.01 for number, at in enumerate(times))


def test_max_sitemaps(run_here: RunHere) -> None:
    """--max-sitemaps cuts the tree, and a message says so."""
    listed = index(*(f"{{base}}/{n}.xml" for n in range(9)))
    with serve_faults({"/robots.txt": ok("Sitemap: {base}/i.xml"), "/i.xml": ok(listed)}) as server:
        run = run_here("ls", "-q", "-k", "--max-sitemaps", "4", server.url)
        assert server.count("/2.xml") == 0
    assert run.stderr.splitlines()[0].endswith("(limits.max_sitemaps); the rest was skipped")


@pytest.mark.parametrize("output", ["tabtree", "pages"])
def test_missing_robots_txt_is_said(run_here: RunHere, output: str) -> None:
    """A message says that robots.txt could not be fetched, even if other sitemaps were found and with -q."""
    pages: dict[str, tuple[int, dict[str, str], bytes]] = {
        "/robots.txt": (501, {}, b""),
        "/sitemap.xml": (200, {}, urlset("http://h/1").encode()),
    }
    with serve(pages) as site:
        run = run_here("ls", "-q", "-f", output, site.url)
        assert "http://h/1\n" in run.stdout
        said = (
            rf"usp: .*{re.escape(site.url)}/robots\.txt.*501.*; sitemaps that only robots\.txt names are missing here"
        )
        assert re.fullmatch(said, run.stderr.rstrip("\n"))
        *_, problem, summary = run_here("ls", "-f", output, site.url).stderr.splitlines()
    assert re.fullmatch(said, problem)
    assert summary.startswith("usp: 1 sitemap, 1 page, ")


@pytest.mark.parametrize("output", ["tabtree", "pages"])
def test_no_page_in_any_sitemap(run_here: RunHere, output: str) -> None:
    """With -q, a line says that no sitemap has any page; otherwise it would look like success."""
    with serve({"/robots.txt": (200, {}, b"Sitemap: {base}/a.xml"), "/a.xml": (403, {}, b"")}) as site:
        run = run_here("ls", "-q", "-k", "-f", output, site.url)
        assert (run.returncode, run.stderr) == (0, "usp: no page found in 2 sitemaps (1 failed)\n")
        site.pages["/a.xml"] = (200, {}, urlset().encode())
        assert run_here("ls", "-q", "-k", "-f", output, site.url).stderr == "usp: no page found in 2 sitemaps\n"
        assert "no page" not in run_here("ls", "-k", "-f", output, site.url).stderr
