"""Wrong use of the command line, and the effect of single options."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from commands import RunHere
from faults import ok, serve_faults
from support import index, serve, urlset
from usp.cli.cli import parser
from usp.cli.pages import shown_url

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
        (
            ["--timeout", "nan", "http://h/"],
            f"argument --timeout: {SECONDS} 0.001 to 1,000,000, or a time like 30m or 2h, not 'nan'",
        ),
        (
            ["--timeout", "1e10", "http://h/"],
            f"argument --timeout: {SECONDS} 0.001 to 1,000,000, or a time like 30m or 2h, not '1e10'",
        ),
        (
            ["--max-time", "-1", "http://h/"],
            f"argument --max-time: {SECONDS} 0.001 to 1,000,000, or a time like 30m or 2h, not '-1'",
        ),
        (
            ["--max-time", "0.0001", "http://h/"],
            f"argument --max-time: {SECONDS} 0.001 to 1,000,000, or a time like 30m or 2h, not '0.0001'",
        ),
        (
            ["--spacing", "-0.1", "http://h/"],
            f"argument --spacing: {SECONDS} 0 to 1,000,000, or a time like 30m or 2h, not '-0.1'",
        ),
        (["http://127.0.0.1:99999/"], "a port is a number from 0 to 65535, not '99999'"),
        (["http://127.0.0.1:80 /"], "a port is a number from 0 to 65535, not '80 '"),
        (["http://[::1/"], "give a URL like https://example.org/, not 'http://[::1/'"),
        (["-H", "Host: foo", "http://h/"], "argument -H/--header: Host cannot be set; it depends on the request"),
        (["-H", "content-length:1", "http://h/"], "argument -H/--header: content-length cannot be set; it depends"),
        (
            ["-H", "Transfer-Encoding: chunked", "http://h/"],
            "argument -H/--header: Transfer-Encoding cannot be set; it",
        ),
        (["-H", "Connection: close", "http://h/"], "argument -H/--header: Connection cannot be set; it depends on the"),
        (["--extra-path", "/", "http://h/"], "argument --extra-path: give a path like my-sitemap.xml, not '/'"),
        (["--extra-path", "http://h/a.xml", "http://h/"], "argument --extra-path: give a path like my-sitemap.xml"),
        (["--site", "--sitemap", "http://h/"], "argument --sitemap: not allowed with argument --site"),
        (["--include", "(", "http://h/"], "argument --include: '(' is not a regular expression: "),
        (["--url", "http://h/", "http://h/"], "--url says where files will be served; http://h/ has a URL already"),
        ([], "give a target: a site, a sitemap, a file, a folder, or - for standard input"),
        (["--nope", "http://h/"], "unrecognized arguments: --nope"),
        (["--formta", "json", "http://h/"], "unrecognized arguments: --formta; did you mean --format?"),
    ],
)
def test_wrong_use(run_here: RunHere, arguments: list[str], message: str) -> None:
    """Wrong use prints the usage of the command and a line that says what to write."""
    run = run_here("ls", *arguments)
    assert (run.returncode, run.stdout) == (2, "")
    usage, said = run.stderr.splitlines()
    assert usage == "usage: usp ls [OPTION ...] TARGET ..."
    assert said.startswith(f"usp ls: error: {message}")


def test_times_have_units() -> None:
    """A time is seconds, or like 30m and 2h."""
    parsed = parser().parse_args(["ls", "h.example", "--max-time", "2h", "--timeout", "90s", "--spacing", "1.5"])
    assert (parsed.max_time, parsed.timeout, parsed.spacing) == (7_200, 90, 1.5)


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
    assert shown_url(url, "https://example.org") == shown
    assert shown_url(url) == url


def test_a_url_with_a_path(run_here: RunHere) -> None:
    """A URL with a path is the sitemap there. If there is none, it is the whole site, and a note says so."""
    pages = {
        "/robots.txt": ok("Sitemap: {base}/a.xml"),
        "/a.xml": ok("http://h/1\n"),
        "/urls.txt": ok("http://h/2\n"),
        "/x/": ok("<!doctype html><html></html>"),
    }
    with serve_faults(pages) as site:
        assert run_here("ls", "-f", "pages", f"{site.url}/urls.txt").stdout == "http://h/2\n"
        assert run_here("ls", "-f", "pages", "--site", f"{site.url}/urls.txt").stdout == "http://h/1\n"
        address = site.url.removeprefix("http://")
        note = f"usp: {site.url}/x/ is not a sitemap; reading the whole site {site.url}/"
        for url in (f"{site.url}/x/", f"http://user:secret@{address}/x/"):
            run = run_here("ls", "-f", "pages", "-k", url)
            assert (run.stdout, run.stderr.splitlines()[0]) == ("http://h/1\n", note)
        assert run_here("ls", "-q", "-k", f"{site.url}/x/").stderr == ""
        run = run_here("ls", "--sitemap", f"{site.url}/x/")
        assert (run.returncode, run.stdout) == (3, "")
        for url in (site.url, f"{site.url}/", f"{site.url}/#top"):
            assert "whole site" not in run_here("ls", "-k", url).stderr


def test_targets_between_options(run_here: RunHere) -> None:
    """Targets may stand before, between and after options."""
    with serve_faults({}, default=ok("http://h/1\n")) as server:
        one, two = f"{server.url}/1.txt", f"{server.url}/2.txt"
        for arguments in (
            [one, two, "-q", "-f", "pages"],
            [one, "-q", "-f", "pages", two],
            ["-f", "pages", one, "-q", two],
        ):
            run = run_here("ls", *arguments)
            assert (run.returncode, run.stdout, run.stderr) == (0, "http://h/1\n" * 2, "")
        assert server.count("/2.txt") == 3


def test_nowhere_to_look(run_here: RunHere) -> None:
    """With both -r and -k, only the homepage is printed, as by ultimate-sitemap-parser; --extra-path works alone."""
    with serve_faults({"/b.xml": ok(urlset("http://h/b"))}) as server:
        run = run_here("ls", "-r", "-k", server.url)
        assert (run.returncode, run.stdout) == (0, f"{server.url}/\n")
        assert server.asked == []
        run = run_here("ls", "-r", "-k", "--extra-path", "b.xml", "-f", "pages", server.url)
        assert (run.returncode, run.stdout) == (0, "http://h/b\n")
        assert server.count("/sitemap.xml") == 0


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
    assert run.returncode == 4
    assert run.stderr.splitlines() == [
        "usp: stopped: the tree has 4 sitemaps already (--max-sitemaps)",
        "usp: not fetched because of a limit: 7 sitemaps",
    ]


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
        said = f"usp: missing: {site.url}/robots.txt: 501 "
        assert run.returncode == 4
        assert run.stderr.startswith(said)
        *_, problem, summary = run_here("ls", "-f", output, site.url).stderr.splitlines()
    assert problem.startswith(said)
    assert summary.startswith("usp: partial: 1 sitemap, 1 page, ")


@pytest.mark.parametrize("output", ["tabtree", "pages"])
def test_no_page_in_any_sitemap(run_here: RunHere, output: str) -> None:
    """A site whose only sitemap is refused is blocked. One whose sitemap is empty is complete."""
    with serve({"/robots.txt": (200, {}, b"Sitemap: {base}/a.xml"), "/a.xml": (403, {}, b"")}) as site:
        run = run_here("ls", "-q", "-k", "-f", output, site.url)
        assert (run.returncode, run.stdout) == (3, "")
        (line,) = run.stderr.splitlines()
        assert line.startswith(f"usp: blocked by {site.url.removeprefix('http://')}: {site.url}/a.xml answered 403 ")
        assert "--user-agent" in line
        assert "--header" in line
        site.pages["/a.xml"] = (200, {}, urlset().encode())
        run = run_here("ls", "-q", "-k", "-f", output, site.url)
        assert (run.returncode, run.stderr) == (0, "")
        assert "2 sitemaps, 0 pages" in run_here("ls", "-k", "-f", output, site.url).stderr


@pytest.mark.parametrize("target", ["s.xml", "-"])
@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("ls", ()),
        ("ls", ("--sitemaps",)),
        ("ls", ("-f", "json")),
        ("export", ("-f", "csv")),
        ("export", ("-f", "csv", "--table", "sitemaps")),
        ("sql", ("select sitemap_url from pages",)),
        ("check", ()),
    ],
)
def test_a_file_goes_by_its_name(
    run_here: RunHere,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    target: str,
    command: str,
    options: tuple[str, ...],
) -> None:
    """No output shows the URL that was made up for a file. It shows the name of the file, or - for standard input."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.xml").write_text(urlset("http://h/1"))
    with open("s.xml") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        run = run_here(command, target, *options)
    assert run.returncode == 0
    assert "usp-local" not in run.stdout + run.stderr
    assert target in run.stdout or command == "check"


@pytest.mark.parametrize(
    "url",
    [
        "http://user:s3cret@[bad/",
        "https://user:s3cr/s3cret@example.org/",
        "https://user:s3cret@example.org:99999/",
        "ftp://user:s3cret@example.org/",
        "http://user:s3cret@exa mple.org/",
        "https://user:s3cret@/",
        "https://user:s3c@s3cret@/",
        "user:s3cret@[bad",
    ],
)
@pytest.mark.parametrize("option", ["--proxy", "--url", None])
def test_secrets_of_malformed_urls_are_masked(run_here: RunHere, option: str | None, url: str) -> None:
    """A message about a malformed URL never has its password."""
    run = run_here("ls", *([option, url, "no-such-file.xml"] if option else [url]))
    assert run.returncode == 2
    assert "s3c" not in run.stdout + run.stderr


@pytest.mark.parametrize("header", ["Authorization s3cret", "Authorization: s3cret\n", "Bad name: s3cret", "s3cret"])
def test_secrets_of_malformed_headers_are_masked(run_here: RunHere, header: str) -> None:
    """A message about a malformed header never has its value."""
    run = run_here("ls", "-H", header, "example.org")
    assert run.returncode == 2
    assert "give 'Name: value'" in run.stderr
    assert "s3cret" not in run.stderr


@pytest.mark.network
def test_allowed_hosts(run_here: RunHere) -> None:
    """--allow-host lets a private site use another private host; what is no host is an error."""
    with serve({}) as site:
        home = site.url.replace("127.0.0.1", "localhost")
        site.pages["/robots.txt"] = (200, {"Content-Type": "text/plain"}, f"Sitemap: {site.url}/a.xml".encode())
        site.pages["/a.xml"] = (200, {}, urlset("http://h/1").encode())
        arguments = ("ls", home, "-k", "-f", "pages")
        assert run_here(*arguments).stdout == ""
        assert run_here(*arguments, "--allow-host", "10.0.0.5", "--allow-host", "127.0.0.1").stdout == "http://h/1\n"
    run = run_here(*arguments, "--allow-host", "*")
    assert run.returncode == 2
    assert "give a host, an address or a network" in run.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "--baseline=--", "s.xml"],
        ["check", "--max=--", "s.xml"],
        ["check", "-o--", "s.xml"],
        ["export", "--table=--", "-o", "o.csv", "s.xml"],
        ["export", "--where=--", "-o", "o.csv", "s.xml"],
        ["ls", "--include=--", "s.xml"],
        ["ls", "--since=--", "s.xml"],
        ["sql", "--output=--", "s.xml", "select 1"],
    ],
    ids=" ".join,
)
def test_dashes_are_no_value(run_here: RunHere, arguments: list[str]) -> None:
    """Two dashes in place of the value of an option are wrong use."""
    run = run_here(*arguments)
    assert run.returncode == 2
    option = arguments[1].removesuffix("--").removesuffix("=")
    assert re.search(rf"usp {arguments[0]}: error: argument (-\w/)?{option}(/--\w+)?: ", run.stderr)
