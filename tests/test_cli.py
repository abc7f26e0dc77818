"""The command line, as a user runs it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest

from clocks import settle, within
from commands import RunHere
from faults import Request, ok, serve_faults
from support import Server, serve, urlset
from usp.cli import _signals_as_interrupts, main
from usp.cli.outcomes import Ending
from usp.cli.output import TreeCounts
from usp.compiled import IS_COMPILED
from usp.limits import DEFAULT_CONCURRENCY, MAX_CONCURRENCY
from usp.objects.sitemap import IndexWebsiteSitemap, InvalidSitemap, PagesXMLSitemap
from usp.objects.transport import Transport
from usp.version import __version__

pytestmark = pytest.mark.cli

PAGES: dict[str, tuple[int, dict[str, str], bytes]] = {
    "/robots.txt": (200, {}, b"Sitemap: {base}/index.xml\nSitemap: {base}/missing.xml\n"),
    "/index.xml": (200, {}, b"<sitemapindex><sitemap><loc>{base}/a.xml</loc></sitemap></sitemapindex>"),
    "/a.xml": (200, {}, urlset("{base}/1", "http://other.example/2").encode()),
    "/sitemap_news.xml": (200, {}, urlset("{base}/3").encode()),
    "/evil.xml": (200, {}, urlset("{base}/\u001b[31mred", "{base}/\u202egnp").encode()),
}
TABTREE = """\
{base}/
\t{base}/robots.txt
\t\t{base}/index.xml
\t\t\t{base}/a.xml
\t\t\t\t{base}/1
\t\t\t\thttp://other.example/2
\t\t{base}/missing.xml
\t{base}/sitemap_news.xml
\t\t{base}/3
"""


@pytest.fixture
def site() -> Iterator[Server]:
    with serve(dict(PAGES)) as server:
        yield server


def usp(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "usp", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)  # type: ignore[call-overload,no-any-return]


def output(capsys: pytest.CaptureFixture[str], site: Server, *arguments: str) -> str:
    assert main(["ls", *arguments, site.url]) == 0
    return capsys.readouterr().out.replace(site.url, "{base}")


def test_tabtree(site: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """The tree is printed with tabs, as by ultimate-sitemap-parser."""
    assert output(capsys, site) == TABTREE
    assert output(capsys, site, "--format", "tabtree") == TABTREE


def test_pages(site: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """Pages are printed one per line."""
    assert output(capsys, site, "-f", "pages") == "{base}/1\nhttp://other.example/2\n{base}/3\n"


def test_strip_url(site: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """The site's URL is stripped from all but the first line."""
    assert output(capsys, site, "-u") == "{base}/" + TABTREE.replace("{base}", "")[1:]
    assert output(capsys, site, "-u", "-f", "pages") == "/1\nhttp://other.example/2\n/3\n"


def test_sources(site: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """robots.txt and the known paths can be skipped."""
    assert output(capsys, site, "-r", "-f", "pages") == "{base}/3\n"
    assert output(capsys, site, "--no-known", "-f", "pages") == "{base}/1\nhttp://other.example/2\n"


def test_log_goes_to_standard_error(site: Server) -> None:
    """The log is on standard error with -v, more with -vv, and never on standard output."""
    for option, wanted, unwanted in [
        ((), "usp: does not exist: ", ":usp."),
        (("-v",), "INFO:usp.", "DEBUG:"),
        (("-vv",), "DEBUG:", "\x1b"),
    ]:
        run = usp("ls", *option, site.url)
        assert "404 Not Found" in run.stderr
        assert wanted in run.stderr
        assert unwanted not in run.stderr
        assert run.stdout.replace(site.url, "{base}") == TABTREE


def test_log_file(site: Server, tmp_path: Path) -> None:
    """The log goes to the file of -l."""
    run = usp("ls", "-v", "-l", str(tmp_path / "usp.log"), site.url)
    said, summary = run.stderr.splitlines()
    assert said.startswith(f"usp: does not exist: {site.url}/missing.xml: 404 ")
    assert summary.startswith("usp: 5 sitemaps")
    assert "404 Not Found" in (tmp_path / "usp.log").read_text()


def test_control_characters_are_escaped(site: Server) -> None:
    """Control characters from a site are escaped in the output and in the log."""
    site.pages["/robots.txt"] = (200, {}, "Sitemap: {base}/evil.xml\nSitemap: {base}/\x9b2J".encode())
    run = usp("ls", "-vv", site.url)
    assert run.returncode == 0
    assert "\\x1b[31mred" in run.stdout or "[31mred" in run.stdout
    assert "\\u202egnp" in run.stdout
    for character in ("\x1b", "\x9b", "\u202e"):
        assert character not in run.stdout + run.stderr


def test_any_terminal_encoding(site: Server) -> None:
    """Characters that the terminal cannot show are escaped."""
    site.pages["/a.xml"] = (200, {}, urlset("{base}/日本").encode())
    run = usp("ls", "-f", "pages", site.url, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert f"{site.url}/\\u65e5\\u672c\n" in run.stdout


def test_closed_pipe(site: Server) -> None:
    """If the reader closes the pipe, the command ends quietly."""
    site.pages["/a.xml"] = (200, {}, urlset(*(f"{{base}}/{i}" for i in range(50_000))).encode())
    command = f'"{sys.executable}" -m usp ls -k -f pages {site.url} | head -n 2'
    run = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
    assert run.stdout == f"{site.url}/0\n{site.url}/1\n"
    assert "Traceback" not in run.stderr
    assert "Broken" not in run.stderr


def test_output_that_cannot_be_written(site: Server) -> None:
    """A full disk is one clear error line; without standard output the command succeeds."""
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "usp", "ls", "-k", site.url]
        run = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert run.returncode == 2
    assert run.stderr.splitlines()[-1] == "usp: error: [Errno 28] No space left on device"
    closed = subprocess.run(
        f'"{sys.executable}" -m usp ls -k {site.url} >&-',
        shell=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert closed.returncode == 0
    assert "Traceback" not in closed.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ls", "nosuch.xml"], "no such file or folder: 'nosuch.xml'; a site is written like example.org or https://"),
        (["ls", "ftp://example.org/"], "usp reads http and https, not ftp"),
        (["demo", "--port", "abc"], "0 to 65535"),
        (["ls"], "give a target: "),
        (["ls", "-f", "nosuch", "http://h/"], "choose from"),
        (
            ["nosuch"],
            "there is no command 'nosuch'; choose from ls, export, sql, check, view, crawl, watch, diff, demo, ",
        ),
        (["lss", "http://h/"], "there is no command 'lss'; did you mean ls?"),
        (["http://h/a b"], "name a command before the target; to list its pages: usp ls 'http://h/a b'"),
        (["pyproject.toml"], "to list its pages: usp ls pyproject.toml"),
        (["sql", "http://h/"], "give a target and a query: usp sql example.org 'select count(*) from pages'"),
        (["sql", "select 1", "http://h/"], "the query comes last, after the targets"),
        (["export", "http://h/", "pages.csv"], "to write to pages.csv, put -o before it: -o pages.csv"),
        (["export", "http://h/", "-o", "a.csv", "--until", "soon"], "--until must be like 2025-01-01"),
        (["export", "http://h/", "-o", "a.csv", "--columns", "x"], "--columns: no column 'x'"),
        (["ls", "-l", "/nosuch/dir/file", "http://h/"], "/nosuch/dir/file: No such file or directory"),
        (["demo", "--port", "70000"], "0 to 65535"),
        (["ls", "--user-agent", "a\nb", "http://h/"], "--user-agent: give one line of Latin-1 text"),
        (["ls", "-H", "no header", "http://h/"], "-H/--header: give 'Name: value'"),
        (["ls", "-H", "A: b\r\nC: d", "http://h/"], "-H/--header: give 'Name: value'"),
        (["ls", "-H", "A: b", "-H", "a: c", "http://h/"], "-H/--header: a is given twice"),
        (["ls", "--proxy", "localhost:3128", "http://h/"], "--proxy: give a URL like http://host:3128"),
        (["ls", "--proxy", "http://h:port/", "http://h/"], "--proxy: give a URL like http://host:3128"),
        (["ls", "--cross-host", "nosuch", "http://h/"], "choose from"),
    ],
)
def test_wrong_use(run_here: RunHere, arguments: list[str], message: str) -> None:
    """Wrong use ends with exit code 2 and a line that says what to do."""
    run = run_here(*arguments)
    assert run.returncode == 2
    assert message in run.stderr.splitlines()[-1]
    assert "Traceback" not in run.stderr
    assert run.stdout == ""


def test_nothing_found(run_here: RunHere, site: Server) -> None:
    """A site without sitemaps, and one that does not answer, are exit code 3 and one line."""
    site.pages.clear()
    run = run_here("ls", site.url)
    assert (run.returncode, run.stdout) == (3, "")
    why = "robots.txt names no sitemap, and there is none at the usual paths"
    assert run.stderr == f"usp: no sitemap at {site.url}/: {why}\n"
    with serve({}) as gone:
        pass
    run = run_here("ls", "-k", gone.url)
    assert run.returncode == 3
    assert run.stderr == f"usp: cannot reach {gone.url.removeprefix('http://')}: connection refused\n"


def test_port_in_use(site: Server) -> None:
    """If the port is in use, the message says what to do."""
    run = usp("demo", "--port", site.url.rpartition(":")[2])
    assert run.returncode == 2
    assert "choose another with --port" in run.stderr


def test_help_teaches(run_here: RunHere, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command has help with examples that fit into 80 columns."""
    assert "usp demo" in usp("--help").stdout
    assert "COMMAND" in usp().stdout
    monkeypatch.setenv("COLUMNS", "80")
    help_texts = {
        name: run_here(name, "--help").stdout
        for name in ("ls", "export", "sql", "check", "view", "crawl", "watch", "diff", "demo")
    }
    assert [line for text in help_texts.values() for line in text.splitlines() if len(line) > 80] == []
    ls = help_texts["ls"]
    for words in ("usp ls https://www.example.org/", "output:", "what to fetch:", "how to fetch:", "limits:"):
        assert words in ls
    assert f"to one host (default: {DEFAULT_CONCURRENCY}; at most {MAX_CONCURRENCY:,})" in ls
    scanner = "compiled" if IS_COMPILED else "pure Python"
    assert usp("-v", env={**os.environ, "USP_PURE": "1"}).stdout == f"usp v{__version__} (pure Python scanner)\n"
    assert usp("-v").stdout == usp("--version").stdout == f"usp v{__version__} ({scanner} scanner)\n"


def test_summary(site: Server) -> None:
    """The last line is a summary; missing known paths do not count as failures. -q turns it off."""
    run = usp("ls", "-f", "pages", site.url)
    summary = run.stderr.splitlines()[-1]
    assert re.fullmatch(r"usp: 5 sitemaps \(1 missing\), 3 pages, \d+ B in \d\.\d s", summary)
    del site.pages["/sitemap_news.xml"]
    site.pages["/robots.txt"] = (200, {}, b"Sitemap: {base}/a.xml")
    assert usp("ls", site.url).stderr.startswith("usp: 2 sitemaps, 2 pages, ")
    site.pages["/robots.txt"] = (200, {}, b"Sitemap: {base}/a.xml\nSitemap: {base}/missing.xml")
    assert usp("ls", "-q", site.url).stderr == ""
    assert "404 Not Found" in usp("ls", "-q", "-v", site.url).stderr


def test_summary_of_sitemaps_that_came_in_part(capsys: pytest.CaptureFixture[str]) -> None:
    """The summary counts sitemaps with truncated transfers beside failed ones."""
    url = "http://h/"
    part = Transport(url, url, 200, is_whole=False)
    children = [
        PagesXMLSitemap(url, [], transport=Transport(url, url, 200)),
        PagesXMLSitemap(url, [], transport=part),
        InvalidSitemap(url, "no", transport=part),
    ]
    for some, told in ((children, "3 sitemaps (1 missing, 1 cut short)"), (children[:2], "2 sitemaps (1 cut short)")):
        trees = [IndexWebsiteSitemap(url, some)]
        ending = Ending.of_trees(trees)
        ending.say(TreeCounts(trees, 7), (5, 1), is_quiet=False)
        assert ending.exit_code == 4
        assert capsys.readouterr().err.splitlines()[-1] == f"usp: partial: {told}, 7 pages, 5 B in 1.0 s"


def test_headers(run_here: RunHere, site: Server) -> None:
    """The user agent goes to every host; other headers go only to the site's own host."""
    with serve({"/b.xml": (200, {}, urlset("http://h/b").encode())}) as other:
        site.pages["/robots.txt"] = (200, {}, f"Sitemap: {{base}}/a.xml\nSitemap: {other.url}/b.xml\n".encode())
        run = run_here(
            "ls", "--user-agent", "me/1", "-H", "X-Key: abc", "-H", "Cookie:a=b", "-k", "-f", "pages", site.url
        )
    assert run.stdout.endswith("http://h/b\n")
    for server, key, cookie in ((site, "abc", "a=b"), (other, None, None)):
        assert server.requests
        for _, headers in server.requests:
            assert (headers["User-Agent"], headers.get("X-Key"), headers.get("Cookie")) == ("me/1", key, cookie)


def test_proxy(run_here: RunHere) -> None:
    """With --proxy, every request goes through the proxy."""
    robots = "http://site.example/robots.txt"
    pages: dict[str, tuple[int, dict[str, str], bytes]] = {
        robots: (200, {}, b"Sitemap: http://site.example/a.xml"),
        "http://site.example/a.xml": (200, {}, urlset("http://site.example/1").encode()),
    }
    with serve(pages) as proxy:
        run = run_here("ls", "--proxy", proxy.url, "-k", "-f", "pages", "http://site.example/")
    assert run.stdout == "http://site.example/1\n"
    assert proxy.paths() == [robots, "http://site.example/a.xml"]


def test_what_may_be_fetched(site: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """--cross-host skips sitemaps on other hosts, --respect-robots those that robots.txt disallows."""
    robots = b"User-agent: *\nDisallow: /index.xml\nSitemap: {base}/index.xml\nSitemap: http://other.example/x.xml\n"
    site.pages["/robots.txt"] = (200, {}, robots)
    arguments = ("-k", "-f", "pages", "--cross-host", "same-host")
    assert output(capsys, site, *arguments) == "{base}/1\nhttp://other.example/2\n"
    site.requests.clear()
    assert main(["ls", *arguments, "--respect-robots", site.url]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"usp: nothing may be read: {site.url}/index.xml: ")
    assert printed.err.endswith(" (--respect-robots)\n")
    assert site.paths() == ["/robots.txt"]


def test_limits(site: Server) -> None:
    """If a limit is reached, a line after the output says so."""
    run = usp("ls", "-q", "-f", "pages", "--max-pages", "1", site.url)
    assert (run.returncode, run.stdout) == (4, f"{site.url}/1\n")
    assert (
        run.stderr
        == "usp: stopped: the tree has 1 page (--max-pages)\nusp: not fetched because of a limit: 1 sitemap\n"
    )
    slow = {"/robots.txt": ok("Sitemap: {base}/a.xml\nSitemap: {base}/b.xml"), "/a.xml": ok(urlset("http://h/1"))}
    with serve_faults({**slow, "/b.xml": Request.pause}) as server:
        run = usp("ls", "-k", "-f", "pages", "--max-time", "0.7", server.url)
        assert (run.returncode, run.stdout) == (4, "http://h/1\n")
        said, skipped, summary = run.stderr.splitlines()
        assert said == "usp: stopped: the tree's time is up, after 0.7 seconds (--max-time)"
        assert skipped == "usp: not fetched because of a limit: 1 sitemap"
        assert summary.startswith("usp: partial: 3 sitemaps (1 missing), 1 page, ")
        run = usp("ls", "-v", "-k", "--timeout", "0.2", "--max-time", "3", server.url)
        assert "no answer within 0.2 s" in run.stderr


def test_gentle_fetching(run_here: RunHere) -> None:
    """-c limits the requests at once; --crawl-delay waits as long as robots.txt asks."""
    going_on = []
    most = []

    def sitemap(request: Request) -> None:
        going_on.append(request)
        most.append(len(going_on))
        request.pause(0.05)
        going_on.remove(request)
        ok(urlset("http://h/1"))(request)

    robots = "User-agent: *\nCrawl-delay: 0.3\n" + "".join(f"Sitemap: {{base}}/{n}.xml\n" for n in range(4))
    with serve_faults({"/robots.txt": ok(robots)}, default=sitemap) as server:
        assert run_here("ls", "-k", "-c", "2", server.url).returncode == 0
        assert max(most) == 2
        del server.asked[:]
        began = time.monotonic()
        assert run_here("ls", "-k", "--crawl-delay", server.url).returncode == 0
        times = sorted(at for at, _ in server.asked)
    assert all(at - began > 0.3 * number - 0.01 for number, at in enumerate(times[1:]))


def test_insecure(run_here: RunHere, tmp_path: Path) -> None:
    """Certificates are verified; --insecure turns that off with a warning."""
    if (openssl := which("openssl")) is None:
        pytest.skip("there is no openssl to make a certificate with")
    request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"]
    files = [str(tmp_path / "it.pem"), str(tmp_path / "key.pem")]
    subprocess.run([openssl, *request, "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    site = {"/robots.txt": ok("Sitemap: {base}/a.xml"), "/a.xml": ok(urlset("http://h/1"))}
    with serve_faults(site, context=context) as server:
        run = run_here("ls", "-k", server.url)
        assert run.returncode == 3
        assert run.stderr.endswith(": self-signed certificate; to read it all the same, add --insecure\n")
        run = run_here("ls", "-k", "-f", "pages", "--insecure", server.url)
    assert run.stdout == "http://h/1\n"
    warning, summary = run.stderr.splitlines()
    assert warning == "usp: warning: TLS certificates are not verified (--insecure)"
    assert summary.startswith("usp: 2 sitemaps, 1 page, ")


def test_demo() -> None:
    """The demo prints a tree and a summary, and leaves nothing running."""
    run = usp("demo")
    assert run.returncode == 0
    assert run.stderr == ""
    for line in ("/articles.xml.gz", "/news/bridge-opens", "/notes/1", "/about", "/search?q=maps&lang=en", "pages: 9"):
        assert f"{line}\n" in run.stdout
    assert "404 Not Found" in run.stdout


@pytest.mark.parametrize("number", [signal.SIGINT])
def test_demo_serve(number: int) -> None:
    """`demo --serve` serves the website until Ctrl-C, then ends with exit code 130."""
    command = [sys.executable, "-m", "usp", "demo", "--serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        url = line.split()[1]
        assert "/kept\n" in usp("ls", "-u", url).stdout
        with within(2):
            process.send_signal(number)
            assert process.wait(timeout=60) == 130


def test_interrupted_while_fetching(site: Server) -> None:
    """Ctrl-C while waiting for a site ends at once with exit code 130 and no traceback."""
    site.pages["/robots.txt"] = (503, {}, b"")
    command = [sys.executable, "-m", "usp", "ls", site.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not site.requests:
            time.sleep(0.01)
        settle(0.2)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals to handle")
def test_sigterm_ends_asyncio_in_good_order() -> None:
    """At SIGTERM, as at Ctrl-C, asyncio ends its main task, and that ends the others: no other task is cancelled."""
    ended: list[str] = []

    async def job() -> None:
        await asyncio.sleep(0.2)
        ended.append("job")

    async def work() -> None:
        other = asyncio.create_task(job())
        try:
            asyncio.get_running_loop().call_later(0.05, signal.raise_signal, signal.SIGTERM)
            await asyncio.sleep(60)
        finally:
            await other

    with pytest.raises(KeyboardInterrupt), _signals_as_interrupts(ends_process=False) as received:
        asyncio.run(work())
    assert (ended, received) == (["job"], [signal.SIGTERM])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals to handle")
@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_terminated(site: Server, tmp_path: Path, name: str, code: int) -> None:
    """SIGTERM and SIGHUP, even sent twice, end like Ctrl-C with another exit code: the old file stays, no other one."""
    site.pages["/a.xml"] = (503, {}, b"")  # usp waits before it tries again
    path = tmp_path / "pages.csv"
    path.write_text("yesterday")
    command = [sys.executable, "-m", "usp", "export", site.url, "-o", str(path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while not any(one == "/a.xml" for one in site.paths()):
            time.sleep(0.01)
        settle(0.2)
        process.send_signal(getattr(signal, name))
        process.send_signal(getattr(signal, name))
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors.splitlines()[-1]) == (code, f"usp: interrupted; {path} was not written")
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("pages.csv", "yesterday")]
