"""`usp check`, as a user runs it: targets, options, output and exit codes."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from clocks import settle
from commands import RunHere, environment
from faults import Request, ok, serve_faults
from support import SITEMAP_XMLNS, Server, serve
from test_cli_progress import site as slow_site
from test_cli_progress import terminal
from usp.check.formats import FORMATS
from usp.check.formats.as_json import as_dict
from usp.check.report import CheckedSitemap, Report
from usp.check.rules.page import explain
from usp.cli import main
from usp.cli.demo import demo_site
from usp.objects.codes import CODES
from usp.objects.problem import Problem, Problems

pytestmark = pytest.mark.cli

GUIDE = (Path(__file__).parents[1] / "docs" / "check.md").read_text("utf-8")

XML = {"Content-Type": "application/xml"}
TEXT = {"Content-Type": "text/plain"}
ROBOTS = (200, TEXT, b"User-agent: *\nDisallow:\n\nSitemap: {base}/sitemap.xml\n")
GOOD = f"""\
<?xml version="1.0" encoding="UTF-8"?>
<urlset {SITEMAP_XMLNS}>
  <url><loc>{{base}}/one</loc></url>
</urlset>
"""
BAD = GOOD.replace("/one", "/one?a=1&b=2")
BAD_LINE = 'sitemap.xml:3:{column}  error    X102  bare "&" in <loc>; write "&amp;"'
WARNED = GOOD.replace("</urlset>", "  <url><loc>{base}/one</loc></url>\n</urlset>")


@pytest.fixture
def site() -> Iterator[Server]:
    with serve({"/robots.txt": ROBOTS, "/sitemap.xml": (200, XML, BAD.encode())}) as server:
        yield server


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("sitemap.xml")
    path.write_text(BAD.format(base="https://www.example.org"))
    return path


def usp(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload,no-any-return]  # options of any kind
        [sys.executable, "-m", "usp", "check", *arguments],
        **{"capture_output": True, "text": True, "timeout": 60, "env": environment(), **options},
    )


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 1) -> str:
    assert main(["check", *arguments]) == code
    return capsys.readouterr().out


def line_for(base: str) -> str:
    return BAD_LINE.format(column=13 + len(f"{base}/one?a=1"))


def test_site(site: Server) -> None:
    """Problems of a site are printed with their places, then a summary. With an error, the command fails."""
    run = usp(site.url)
    assert run.stdout == f"{line_for(site.url)}\n2 sitemaps, 1 page, 1 error\n"
    assert run.stderr == ""
    assert run.returncode == 1


def test_clean_site(site: Server) -> None:
    """Without problems only the summary is printed."""
    site.pages["/sitemap.xml"] = (200, XML, GOOD.encode())
    run = usp(site.url)
    assert (run.returncode, run.stdout, run.stderr) == (0, "2 sitemaps, 1 page, no problems\n", "")


def test_the_same_offline(file: Path) -> None:
    """A file, a folder and standard input give the same problem at the same place."""
    expected = line_for("https://www.example.org")
    run = usp("sitemap.xml")
    assert (run.returncode, run.stdout) == (1, f"{expected}\n1 sitemap, 1 page, 1 error\n")
    folder = usp(".")
    assert (folder.returncode, folder.stdout.splitlines()[-1]) == (1, "1 sitemap, 1 page, 1 error")
    assert expected.removeprefix("sitemap.xml") in folder.stdout
    with file.open() as stream:
        piped = usp("-", stdin=stream)
    assert (piped.returncode, piped.stdout) == (
        1,
        f"{expected.replace('sitemap.xml', '-')}\n1 sitemap, 1 page, 1 error\n",
    )


def test_where_a_file_will_be_served(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With `--url`, usp knows which pages a file may list."""
    file.write_text(GOOD.format(base="https://www.example.org"))
    printed(capsys, "sitemap.xml", code=0)
    assert "  U506  " in printed(capsys, "sitemap.xml", "--url", "https://other.example/sitemap.xml")


def test_not_reached(run_here: RunHere) -> None:
    """A site that does not answer gives exit code 3 and the reason."""
    run = run_here("check", "--select", "X", "http://127.0.0.1:1/")
    assert run.returncode == 3
    assert run.stderr == "usp: cannot reach 127.0.0.1:1: connection refused\n"


@pytest.mark.parametrize(
    ("level", "document", "code"),
    [
        ("error", BAD, 1),
        ("error", WARNED, 0),
        ("warning", WARNED, 1),
        ("info", WARNED, 1),
        ("warning", GOOD, 0),
        ("never", BAD, 0),
    ],
)
def test_fail_on(run_here: RunHere, file: Path, level: str, document: str, code: int) -> None:
    """Problems at least as severe as the level make the command fail."""
    file.write_text(document.format(base="https://www.example.org"))
    assert run_here("check", "--fail-on", level, "sitemap.xml").returncode == code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give a target"),
        (("nosuch.xml",), "no such file or folder: 'nosuch.xml'; a site is written like example.org"),
        (("https://www.example.org:99999/",), "a port is a number"),
        (("--select", "X9", "-"), "no code starts with 'X9'; there are X101, X102"),
        (("--ignore", "x1O2", "-"), "no code starts with 'X1O2'; did you mean X"),
        (("--ignore", "Q", "-"), "codes start with X, E, L"),
        (("--select", ",", "-"), "give codes like X102"),
        (("--max", "-1", "-"), "give a number of problems, 0 or more, not '-1'"),
        (("--fail-on", "note", "-"), "invalid choice: 'note'"),
        (("-f", "pdf", "-"), "invalid choice: 'pdf'"),
        (("--url", "www.example.org", "-"), "--url must be one like https://"),
        (("--url", "https://h/", "https://h/"), "--url says where files will be served"),
        (("--explain", "X999"), "there is no code 'X999'"),
        (("https://h/", "--explain", "X102"), "no TARGET"),
        (("-o", "no/such/folder/report", "-"), "No such folder"),
    ],
)
def test_wrong_use(run_here: RunHere, arguments: tuple[str, ...], message: str) -> None:
    """Wrong use says what to do, before anything is fetched."""
    run = run_here("check", *arguments)
    assert run.returncode == 2
    assert message in run.stderr
    assert "Traceback" not in run.stderr
    assert run.stdout == ""


def test_file_that_cannot_be_read(run_here: RunHere, file: Path) -> None:
    """A broken link is wrong use, in one line."""
    Path("link.xml").symlink_to("nothing.xml")
    run = run_here("check", "link.xml")
    assert run.returncode == 2
    assert run.stderr.startswith("usp: error: ")
    assert run.stderr.count("\n") == 1


def test_select_and_ignore(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Problems are selected by code or prefix, in upper or lower case; others are not counted."""
    file.write_text(BAD.format(base="https://www.example.org").replace("</urlset>", "</url></urlset>"))
    assert re.findall(r"  (X\d+)  ", printed(capsys, "sitemap.xml")) == ["X102", "X106"]
    assert re.findall(r"  (X\d+)  ", printed(capsys, "--select", "x102,P", "sitemap.xml")) == ["X102"]
    assert re.findall(r"  (X\d+)  ", printed(capsys, "--select", "X", "--ignore", "X102", "sitemap.xml")) == ["X106"]
    ignored = printed(capsys, "--ignore", "X102", "--ignore", "X106", "sitemap.xml", code=0)
    assert ignored == "1 sitemap, 1 page, no problems\n"


def test_max(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--max` limits the problems shown, and the summary counts all."""
    file.write_text(BAD.format(base="https://www.example.org").replace("&b", "&b&c&d&e"))
    lines = printed(capsys, "--max", "2", "sitemap.xml").splitlines()
    assert lines[2:] == ["… and 2 more X102 in sitemap.xml", "1 sitemap, 1 page, 4 errors"]
    assert len(lines) == 4


def test_quiet(run_here: RunHere, file: Path) -> None:
    """With -q only the problems are printed."""
    run = run_here("check", "-q", "sitemap.xml")
    assert (run.stdout, run.stderr) == (f"{line_for('https://www.example.org')}\n", "")
    json_run = run_here("check", "-q", "-f", "json", "sitemap.xml")
    assert json.loads(json_run.stdout)["summary"]["errors"] == 1
    assert json_run.stderr == ""


def test_formats(site: Server) -> None:
    """Other formats go to standard output in UTF-8, and the summary to standard error."""
    site.pages["/sitemap.xml"] = (200, XML, BAD.replace("/one", "/é").encode())
    for name, start in [("json", "{"), ("sarif", "{"), ("github", "::"), ("html", "<!DOCTYPE html>")]:
        run = usp("-f", name, site.url, env=environment(PYTHONIOENCODING="ascii"), encoding="utf-8")
        assert run.returncode == 1
        assert run.stdout.startswith(start)
        assert run.stderr == "usp: 2 sitemaps, 1 page, 1 error, 1 notice\n"
        if name in ("json", "sarif"):
            assert "é" in json.loads(run.stdout)["problems" if name == "json" else "runs"][0].__repr__()


def test_output_file(run_here: RunHere, file: Path) -> None:
    """A file is replaced when the report is complete, keeps its mode, and no temporary file is left."""
    report = Path("report.json")
    report.write_text("old")
    report.chmod(0o640)
    run = run_here("check", "-f", "json", "-o", "report.json", "sitemap.xml")
    assert (run.returncode, run.stdout, run.stderr) == (1, "", "usp: 1 sitemap, 1 page, 1 error\n")
    assert json.loads(report.read_text("utf-8"))["summary"]["errors"] == 1
    assert stat.S_IMODE(report.stat().st_mode) == 0o640
    assert sorted(path.name for path in Path().iterdir()) == ["report.json", "sitemap.xml"]


def test_output_to_what_is_no_file(file: Path) -> None:
    """A device is written to, not replaced; a link stays a link."""
    assert usp("-o", os.devnull, "sitemap.xml").returncode == 1
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    Path("link.txt").symlink_to("report.txt")
    usp("-o", "link.txt", "sitemap.xml")
    assert Path("link.txt").is_symlink()
    assert Path("report.txt").read_text("utf-8").startswith("sitemap.xml:3:")
    assert "sitemap.xml:3:" in usp("-o", "-", "sitemap.xml").stdout


def test_output_that_cannot_be_written(file: Path) -> None:
    """A full disk gives one clear line and exit code 2."""
    run = usp("-o", "/dev/full", "sitemap.xml")
    assert run.returncode == 2
    assert run.stderr.startswith("usp: error: ")


def test_colours(file: Path) -> None:
    """FORCE_COLOR turns colours on, NO_COLOR turns them off, and a pipe has none."""
    plain = usp("sitemap.xml").stdout
    assert "\x1b[" not in plain
    coloured = usp("sitemap.xml", env=environment(FORCE_COLOR="1")).stdout
    assert "\x1b[1;31merror\x1b[0m    \x1b[1mX102\x1b[0m  " in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain
    assert "\x1b[" not in usp("sitemap.xml", env=environment(FORCE_COLOR="1", NO_COLOR="1")).stdout


def test_colours_on_a_terminal(file: Path) -> None:
    """On a terminal there are colours, unless NO_COLOR is set."""
    for more, is_coloured in [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]:
        leader, follower = os.openpty()
        usp("sitemap.xml", stdout=follower, capture_output=False, env=environment(**more))
        os.close(follower)
        shown = os.read(leader, 65_536).decode()
        os.close(leader)
        assert "X102" in shown
        assert ("\x1b[" in shown) is is_coloured


def test_explain(run_here: RunHere) -> None:
    """`--explain` prints the pages of codes as they are, without a target."""
    assert run_here("check", "--explain", "x102").stdout == explain("X102")
    assert run_here("check", "--explain", "X102", "L301,P415").stdout == "\n".join(
        map(explain, ("X102", "L301", "P415"))
    )


def test_explain_on_a_terminal() -> None:
    """On a terminal the page is formatted, and the place of the bad example is shown."""
    run = usp("--explain", "X102", env=environment(FORCE_COLOR="1", COLUMNS="100"))
    shown = re.sub(r"\x1b\[[\d;]*m|\x1b\]8;[^\x1b]*\x1b\\", "", run.stdout)
    assert run.returncode == 0
    assert "\x1b[" in run.stdout
    assert "```" not in shown
    assert "Bad: sitemap.xml:4:38" in shown
    assert "> 4 |     <loc>https://www.example.org/?a=1&b=2</loc>" in shown


def test_every_code_is_explained(run_here: RunHere) -> None:
    """Every code has a page to print."""
    run = run_here("check", "--explain", *CODES)
    assert run.returncode == 0
    assert re.findall(r"^# (\w\d\d\d): ", run.stdout, re.MULTILINE) == list(CODES)


def test_whole_site(run_here: RunHere, site: Server) -> None:
    """A URL where no sitemap is means the whole site. A line says so, without the password."""
    site.pages["/shop/"] = (200, {}, b"<!doctype html><html></html>")
    run = run_here("check", site.url.replace("//", "//user:secret@") + "/shop/")
    assert run.stderr == f"usp: {site.url}/shop/ is not a sitemap; reading the whole site {site.url}/\n"
    assert "secret" not in run.stdout + run.stderr
    assert run.returncode == 1


def test_the_url_of_a_sitemap(run_here: RunHere) -> None:
    """A sitemap that nothing names is checked if you give its URL."""
    other = GOOD.replace("/one", "/two?a&b").encode()
    pages = {"/robots.txt": ROBOTS, "/sitemap.xml": (200, XML, GOOD.encode()), "/maps/b.xml": (200, XML, other)}
    with serve(pages) as server:
        assert run_here("check", server.url).returncode == 0
        run = run_here("check", f"{server.url}/maps/b.xml", "--select", "X")
        assert run.returncode == 1
        assert run.stdout.startswith("maps/b.xml:3:")
        github = run_here("check", "-f", "github", f"{server.url}/maps/b.xml", "--select", "X").stdout
        assert github.startswith(f"::error title=X102::{server.url}/maps/b.xml:3:")


@pytest.mark.parametrize("is_bad", [True, False])
def test_exit_code_where_nobody_reads(tmp_path: Path, is_bad: bool) -> None:
    """A closed pipe does not change the exit code."""
    entries = "".join(f"<url><loc>https://h/{n}{'?a&b' * is_bad}</loc></url>\n" for n in range(50))
    (tmp_path / "s.xml").write_text(f"<urlset {SITEMAP_XMLNS}>{entries}</urlset>")
    reading, writing = os.pipe()
    os.close(reading)
    try:
        run = usp("s.xml", cwd=tmp_path, capture_output=False, stdout=writing, stderr=subprocess.PIPE)
    finally:
        os.close(writing)
    assert run.returncode == int(is_bad)
    assert "Traceback" not in run.stderr


def test_output_to_what_is_open_already(file: Path, tmp_path: Path) -> None:
    """/dev/stdout works as a file and as a pipe, and keeps what is there."""
    log = tmp_path / "log"
    log.write_text("before\n")
    with log.open("a") as stream:
        usp("-q", "-o", "/dev/stdout", str(file), capture_output=False, stdout=stream)
    assert log.read_text().startswith("before\nsitemap.xml:3:")
    assert usp("-q", "-o", "/dev/stdout", str(file)).stdout.startswith("sitemap.xml:3:")


def test_what_is_checked_is_not_overwritten(run_here: RunHere, file: Path) -> None:
    """The report never overwrites the sitemap."""
    before = file.read_bytes()
    run = run_here("check", "-o", "./sitemap.xml", str(file))
    assert run.returncode == 2
    assert "This is the file to check" in run.stderr
    assert file.read_bytes() == before


def test_a_long_name(run_here: RunHere, file: Path) -> None:
    """Any file name that the file system allows works."""
    name = "r" * 250
    assert run_here("check", "-o", name, str(file)).returncode == 1
    assert "X102" in Path(name).read_text()


def test_passwords_are_not_reported(run_here: RunHere, site: Server) -> None:
    """No report has the password of a URL."""
    for name in ("json", "sarif", "html", "github", "text"):
        run = run_here("check", "-f", name, site.url.replace("//", "//user:secret@"))
        assert run.returncode == 1
        assert "secret" not in run.stdout + run.stderr


def test_fetching_options(run_here: RunHere, site: Server) -> None:
    """The fetching options of `usp ls` work."""
    run_here("check", "-k", "--user-agent", "checker/1", "-H", "X-Key: 1", site.url)
    assert set(site.paths()) == {"/robots.txt", "/sitemap.xml"}
    assert all((headers["User-Agent"], headers["X-Key"]) == ("checker/1", "1") for _, headers in site.requests)


def test_log(site: Server, tmp_path: Path) -> None:
    """Failures are in the report, and in the log only if you ask for one."""
    site.pages["/robots.txt"] = (200, TEXT, b"Sitemap: {base}/missing.xml\n")
    assert "WARNING" not in usp(site.url).stderr
    assert "INFO:usp." in usp("-v", site.url).stderr
    usp("-l", str(tmp_path / "usp.log"), site.url)
    assert "404 Not Found" in (tmp_path / "usp.log").read_text()


def test_no_sitemaps(run_here: RunHere, site: Server) -> None:
    """A site that answers but has no sitemap is reported as such."""
    site.pages.clear()
    run = run_here("check", site.url)
    assert run.returncode == 3
    assert "error    R711  no sitemap was found" in run.stdout
    assert run.stderr.startswith(f"usp: no sitemap at {site.url}/: ")
    assert run.stdout.endswith("0 sitemaps, 0 pages, 1 error\n")


def test_interrupted() -> None:
    """Ctrl-C while fetching reports on the partial tree, and exits with 130."""
    is_asked = threading.Event()

    def stuck(request: Request) -> None:
        is_asked.set()
        request.pause(30)

    robots = "Sitemap: {base}/sitemap.xml\nSitemap: {base}/stuck.xml\n"
    pages = {"/robots.txt": ok(robots), "/sitemap.xml": ok(BAD), "/stuck.xml": stuck}
    with serve_faults(pages) as server:
        command = [sys.executable, "-m", "usp", "check", "-k", server.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert is_asked.wait(60)
            settle(0.5)
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "usp: interrupted; the results are partial" in errors
    assert "Traceback" not in errors
    assert "  X102  " in output


def test_progress_line() -> None:
    """While a site is fetched, a line on the terminal shows progress; at the end it disappears."""
    with serve_faults(slow_site()) as server, terminal() as found:
        command = [sys.executable, "-m", "usp", "check", "-k", "-f", "json", server.url]
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=found.follower, env=environment(), timeout=60)
    assert json.loads(run.stdout)["summary"]["pages"] == 22_000
    assert found.screen().progress_lines()
    (summary,) = found.screen().shown()
    assert summary.startswith("usp: 13 sitemaps, 22,000 pages, ")


def test_guide_shows_what_is_printed(run_here: RunHere, file: Path) -> None:
    """The example of the guide is the real output of the command."""
    document, console = re.findall(r"```(?:xml|console)\n(.*?)```", GUIDE, re.DOTALL)[:2]
    file.write_text(document)
    run = run_here("check", "sitemap.xml")
    assert console == f"$ usp check sitemap.xml\n{run.stdout}$ echo $?\n{run.returncode}\n"


@pytest.mark.parametrize("example", re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL))
def test_guide_examples_run(
    example: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every Python example of the guide runs, on the example website."""
    monkeypatch.chdir(tmp_path)  # one writes a table
    with demo_site() as homepage:
        exec(compile(example.replace("https://www.example.org/", homepage), "check.md", "exec"), {})  # noqa: S102 -- running it is the test
    assert capsys.readouterr().out


def test_guide_knows_every_format_and_exit_code() -> None:
    """The guide has a section for each format, and describes each field of the JSON object."""
    assert [name for name in FORMATS if f"\n### {name}\n" not in GUIDE] == []
    found = as_dict(Report("a", (CheckedSitemap("a", "a", "PagesXMLSitemap", 0, Problems()),)))
    described = GUIDE.split("### json")[1].split("### sarif")[0]
    names = [*found, *found["summary"], *found["sitemaps"][0], *Problem("X102", "", "").to_dict()]
    assert [name for name in names if not re.search(rf"\b{name}\b", described)] == []


def test_closed_pipe(file: Path) -> None:
    """If the reader closes the pipe, the command ends quietly."""
    command = f'"{sys.executable}" -m usp check --explain {" ".join(CODES)} | head -n 1'
    run = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
    assert run.stdout.startswith("# X101")
    assert run.stderr == ""
