"""`usp check` in daily use: statistics, baselines, settings, watching, and what builds and services read."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from lxml import etree

from commands import RunHere, environment
from support import SITEMAP_XMLNS
from test_cli_progress import terminal
from usp.check import check
from usp.check.baseline import Baseline
from usp.check.formats import FORMATS
from usp.cli.changes import changes, state_of
from usp.exceptions import InvalidArgumentError

pytestmark = pytest.mark.cli

SITE = "https://www.example.org"
INDEX = f"""\
<?xml version="1.0" encoding="UTF-8"?>
<sitemapindex {SITEMAP_XMLNS}>
  <sitemap><loc>{SITE}/maps/a.xml</loc></sitemap>
  <sitemap><loc>{SITE}/missing.xml</loc></sitemap>
</sitemapindex>
"""
HEAD = f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset {SITEMAP_XMLNS}>\n'
BAD_DATE = f"<url><loc>{SITE}/dated</loc><lastmod>08/05/2024</lastmod></url>\n"


def urlset(*entries: str) -> str:
    return f"{HEAD}{''.join(entries)}</urlset>\n"


def parsed(text: str) -> Any:
    return etree.fromstring(text.encode())


def twice(name: str, times: int = 2) -> str:
    return f"<url><loc>{SITE}/{name}</loc></url>\n" * times


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The output of a build, in the current folder: an index, a sitemap with problems, and one that is missing."""
    monkeypatch.chdir(tmp_path)
    public = Path("public")
    (public / "maps").mkdir(parents=True)
    (public / "robots.txt").write_text(f"Sitemap: {SITE}/sitemap.xml\nSitemap: {SITE}/gone.xml\n")
    (public / "sitemap.xml").write_text(INDEX)
    (public / "maps/a.xml").write_text(urlset(BAD_DATE, twice("rivers"), twice("lakes", 5)))
    return public


@pytest.fixture
def usp(capsys: pytest.CaptureFixture[str]) -> RunHere:
    return RunHere(capsys)


# Places


def test_sarif_of_a_folder_has_no_url_as_a_place(usp: RunHere, folder: Path) -> None:
    """Code scanning refuses results with http and https URIs: what is missing has the path where it would be."""
    run = json.loads(usp("check", "-f", "sarif", "public/").stdout)["runs"][0]
    uris = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in run["results"]]
    assert len(uris) == run["properties"]["counts"]["P418"] + 3
    assert all(uri.startswith("public/") for uri in uris)


def test_a_folder_without_sitemaps_is_its_own_place(usp: RunHere, folder: Path) -> None:
    """Problems of the whole folder are those of the folder, in SARIF and for GitHub."""
    Path("empty").mkdir()
    Path("empty/robots.txt").write_text("User-agent: *\n")
    (result,) = json.loads(usp("check", "-f", "sarif", "empty/").stdout)["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "empty"
    assert usp("check", "-f", "github", "empty").stdout.startswith("::error file=empty,title=R711::")


def test_github_keeps_the_prefix_of_the_folder(usp: RunHere, folder: Path) -> None:
    """Every annotation of a folder has a file below it."""
    lines = usp("check", "-f", "github", "public").stdout.splitlines()
    assert len(lines) >= 5
    assert all(re.match(r"::\w+ file=public/", line) for line in lines)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("most", [0, 1, 3])
def test_max_bounds_every_format(usp: RunHere, folder: Path, name: str, most: int) -> None:
    """There are at most as many problems as --max says, however many sitemaps have more."""
    for number in range(30):
        (folder / f"sitemap-{number}.xml").write_text(urlset(twice("rivers"), BAD_DATE))
    shown = usp("check", "-f", name, "--max", str(most), "public/").stdout
    counted = {
        "text": lambda: len(re.findall(r"^\S+ +(?:error|warning|info) ", shown, re.MULTILINE)),
        "json": lambda: len(json.loads(shown)["problems"]),
        "sarif": lambda: len(json.loads(shown)["runs"][0]["results"]),
        "github": lambda: sum("and " not in line for line in shown.splitlines()),
        "junit": lambda: len(parsed(shown).findall(".//failure")),
        "html": lambda: shown.partition("<h2>Sitemaps")[0].count("<tr><td"),
    }
    assert counted[name]() <= most
    if name == "github":
        assert len(shown.splitlines()) == most + 1
    elif name == "text":
        assert len(shown.splitlines()) <= most + 1 + 10  # a line for each code, not for each sitemap
    elif name == "sarif":
        assert len(json.loads(shown)["runs"][0]["invocations"][0]["toolExecutionNotifications"]) <= 10


# Statistics


def test_statistics(usp: RunHere, folder: Path) -> None:
    """There is one line for each code, the worst first, with counts that agree with the summary."""
    done = usp("check", "--statistics", "public/")
    *lines, summary = done.stdout.splitlines()
    found = [(int(count), severity, code) for count, severity, code, *_ in map(str.split, lines)]
    assert (5, "warning", "P418") in found
    assert [severity for _, severity, _ in found] == sorted(
        (one for _, one, _ in found), key="error warning info".index
    )
    assert summary.endswith(f"{sum(count for count, one, _ in found if one == 'error')} errors, 5 warnings")
    assert done.returncode == 1
    listed = json.loads(usp("check", "--statistics", "-f", "json", "public/").stdout)
    assert [(one["count"], one["severity"], one["code"]) for one in listed] == found


def test_statistics_refuse_other_formats(usp: RunHere, folder: Path) -> None:
    """Formats that list problems have no statistics, and usp says which have."""
    done = usp("check", "--statistics", "-f", "html", "public/")
    assert done.returncode == 2
    assert "--statistics goes with -f text or -f json" in done.stderr


# Baselines


def test_a_baseline_hides_what_was_there(usp: RunHere, folder: Path) -> None:
    """After --write-baseline there is nothing to report, until there is a new problem."""
    written = usp("check", "--baseline", "known.json", "--write-baseline", "public/")
    assert written.returncode == 0
    assert json.loads(Path("known.json").read_text())["version"] == 1
    again = usp("check", "--baseline", "known.json", "public/")
    assert again.returncode == 0
    assert "no problems" in again.stdout
    assert "8 known problems of known.json not shown" in again.stderr
    (folder / "maps/a.xml").write_text(urlset("<!-- moved -->\n\n", BAD_DATE, twice("rivers"), twice("lakes", 6)))
    third = usp("check", "--baseline", "known.json", "./public")
    assert third.stdout.count("P418") == 1
    assert third.returncode == 0
    assert usp("check", "--baseline", "known.json", "--fail-on", "warning", "public").returncode == 1


def test_a_baseline_does_not_depend_on_lines(usp: RunHere, folder: Path) -> None:
    """Known problems that move stay known; what was fixed is counted, so that the file can be written again."""
    usp("check", "--baseline", "known.json", "--write-baseline", "public/")
    (folder / "maps/a.xml").write_text(urlset("\n" * 50, twice("lakes", 5), "\n\n", BAD_DATE))
    done = usp("check", "--baseline", "known.json", "public/")
    assert "no problems" in done.stdout
    assert "7 known problems of known.json not shown; 1 gone: write it again" in done.stderr


def test_a_baseline_of_more_problems_than_are_kept(tmp_path: Path) -> None:
    """Where a check does not keep all texts, only more problems than before are new."""
    file = tmp_path / "sitemap.xml"
    file.write_text(urlset(*(twice(f"page-{number}") for number in range(50))))
    baseline = Baseline.from_json(Baseline.of(check(file)).to_json(), "known.json")
    file.write_text(urlset(*(twice(f"page-{number}") for number in range(1, 50))))
    assert not baseline.compare(check(file)).report.counts()
    file.write_text(urlset(*(twice(f"page-{number}") for number in range(-2, 50))))
    compared = baseline.compare(check(file))
    assert compared.report.counts() == {"P418": 2}
    assert [problem.text for problem in compared.report.problems()] == [f"{SITE}/page--2", f"{SITE}/page--1"]
    assert (compared.known, compared.gone) == (50, 0)


def test_new_problems_whose_texts_are_not_kept_have_a_line(usp: RunHere, folder: Path) -> None:
    """If a check fails, its text says which code and which sitemap, even if no new problem was kept."""
    sitemap, entries = folder / "maps/a.xml", [BAD_DATE] * 30
    sitemap.write_text(urlset(*entries))
    usp("check", "--baseline", "known.json", "--write-baseline", "public/")
    sitemap.write_text(urlset(*entries, BAD_DATE))
    done = usp("check", "--baseline", "known.json", "--select", "L302", "public/")
    assert done.returncode == 1
    assert done.stdout.splitlines()[:-1] == ["… and 1 more L302 in public/maps/a.xml"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is not a baseline"),
        ("[]", "is not a baseline"),
        ('{"version": 1}', "is not a baseline"),
        ('{"version": true, "problems": {}}', "is not a baseline"),
        ('{"version": 2, "problems": {}}', "install a newer usp"),
        ('{"version": 1, "problems": {"a": {"X102": {"count": -1, "texts": {}}}}}', "is not a baseline"),
        ('{"version": 1, "problems": {"a": {"X102": {"count": 1, "texts": {"&": "x"}}}}}', "is not a baseline"),
        ("[" * 100_000, "is not a baseline"),
    ],
)
def test_other_files_are_no_baselines(content: str, message: str) -> None:
    """A file that is not a baseline is an error that says what to do."""
    with pytest.raises(InvalidArgumentError, match=message):
        Baseline.from_json(content, "known.json")


def test_a_baseline_that_is_missing(usp: RunHere, folder: Path) -> None:
    """Without the file, usp says how to write it; --write-baseline alone is wrong use."""
    done = usp("check", "--baseline", "known.json", "public/")
    assert (done.returncode, "--baseline known.json --write-baseline" in done.stderr) == (2, True)
    assert usp("check", "--write-baseline", "public/").returncode == 2


# Settings


def test_settings_of_a_project(usp: RunHere, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearest pyproject.toml with a table of usp counts, also in folders below it. The command line wins."""
    Path("pyproject.toml").write_text(
        '[tool.usp.check]\nselect = ["P", "L"]\nfail-on = "never"\nper-path-ignores = { "public/maps/*" = ["L302"] }\n'
    )
    (folder / "pyproject.toml").write_text("[tool.other]\n")
    done = usp("check", "public/", "-f", "json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["summary"]["codes"] == {"P418": 5}
    monkeypatch.chdir(folder)
    assert json.loads(usp("check", ".", "-f", "json").stdout)["summary"]["codes"] == {"P418": 5}
    by_hand = usp("check", "maps", "-f", "json", "--select", "P418,X", "--fail-on", "warning")
    assert (by_hand.returncode, json.loads(by_hand.stdout)["summary"]["codes"]) == (1, {"P418": 5})
    assert "L302" in usp("check", ".", "--no-config").stdout


def test_settings_of_their_own_file(usp: RunHere, folder: Path) -> None:
    """usp.toml comes before pyproject.toml. --config names another file."""
    Path("pyproject.toml").write_text('[tool.usp.check]\nselect = ["X"]\n')
    Path("usp.toml").write_text('[check]\nignore = ["P418"]\n')
    Path("other.toml").write_text('[check]\nselect = ["P418"]\n')
    assert "P418" not in usp("check", "public/").stdout
    assert set(re.findall(r" ([A-Z]\d{3}) ", usp("check", "public/", "--config", "other.toml").stdout)) == {"P418"}
    assert usp("check", "public/", "--config", "none.toml").returncode == 2


def test_settings_with_a_byte_order_mark(usp: RunHere, folder: Path) -> None:
    """Some editors write a byte order mark at the start of the file."""
    Path("usp.toml").write_text('\ufeff[check]\nselect = ["P418"]\n', "utf-8")
    done = usp("check", "public/", "-f", "json")
    assert set(json.loads(done.stdout)["summary"]["codes"]) == {"P418"}


def test_the_url_of_the_settings(usp: RunHere, folder: Path) -> None:
    """`url` says where files and folders will be served, and is not used for other targets."""
    Path("usp.toml").write_text('[check]\nurl = "https://other.example.org/"\nselect = ["U506"]\n')
    assert "U506" in usp("check", "public/maps").stdout
    assert "U506" not in usp("check", "public/maps", "--url", f"{SITE}/maps/").stdout


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('selekt = ["X"]', "there is no setting 'selekt' in [check]; did you mean select?"),
        ('fail_on = "error"', "did you mean fail-on?"),
        ('select = "X"', 'select in [check] must be a list of codes, such as ["X102", "P4"], not \'X\''),
        ('select = ["Q"]', "no code starts with 'Q'"),
        ("ignore = [1]", "must be a list of codes"),
        ("fail-on = true", "must be one of error, warning, info, never, not True"),
        ('url = "www.example.org"', "must be a URL"),
        ('per-path-ignores = ["a"]', "must be a table, such as"),
        ('per-path-ignores = { "a" = "X" }', "must be a list of codes"),
        ("select = [", "is not valid TOML"),
        ("[other]", "usp has no settings named 'other'"),
    ],
)
def test_wrong_settings(usp: RunHere, folder: Path, content: str, message: str) -> None:
    """Unknown settings and wrong types are errors that name the file and say what to write."""
    Path("usp.toml").write_text(f"[check]\n{content}\n")
    done = usp("check", "public/")
    assert done.returncode == 2
    assert "usp.toml" in done.stderr
    assert message in done.stderr


# What builds and services read


def test_junit(usp: RunHere, folder: Path) -> None:
    """Each code of a sitemap is a case. A clean sitemap passes, and the totals are those of the suites.

    A sitemap that is missing is a failure of the file that lists it, and passes nowhere.
    """
    Path("public/robots.txt").write_text(
        f"Sitemap: {SITE}/sitemap.xml\nSitemap: {SITE}/gone.xml\nSitemap: {SITE}/b.xml\n"
    )
    Path("public/b.xml").write_text(urlset(*(f"<url><loc>{SITE}/{name}</loc></url>\n" for name in ("seas", "bays"))))
    root = parsed(usp("check", "-f", "junit", "public/").stdout)
    cases = root.findall("testsuite/testcase")
    names = [(case.get("classname"), case.get("name") or "") for case in cases]
    assert len(set(names)) == len(names) == int(root.attrib["tests"])
    assert [(place, name.split()[0]) for place, name in names] == [
        ("public/robots.txt", "R706"),
        ("public/sitemap.xml", "T807"),
        ("public/maps/a.xml", "L302"),
        ("public/maps/a.xml", "P418"),
        ("public/b.xml", "no"),
    ]
    assert names[-1][1] == "no problems"
    assert len(root.findall(".//failure")) == int(root.attrib["failures"])
    repeated = next(case for case in cases if (case.get("name") or "").startswith("P418"))
    failure = repeated.find("failure")
    assert failure is not None
    assert failure.get("message", "").startswith("5 times; the first: ")
    assert len((failure.text or "").strip().splitlines()) == 5


def test_junit_of_notices(usp: RunHere, folder: Path) -> None:
    """Notices are skipped cases: they fail no build."""
    same = "".join(f"<url><loc>{SITE}/{n}</loc><priority>0.5</priority></url>\n" for n in range(20))
    Path("sitemap.xml").write_text(urlset(same))
    root = parsed(usp("check", "-f", "junit", "sitemap.xml").stdout)
    assert [case.get("name", "")[:4] for case in root.findall(".//testcase[skipped]")] == ["P420"]
    assert root.attrib["failures"] == "0"


def test_junit_passes_nothing_that_is_not_shown(usp: RunHere, folder: Path) -> None:
    """If --max leaves out all problems of a sitemap, its case is skipped, and does not pass."""
    root = parsed(usp("check", "-f", "junit", "--max", "0", "public/").stdout)
    cases = [(case.get("name"), case.find("skipped") is not None) for case in root.iter("testcase")]
    assert set(cases) == {("not shown", True)}
    assert root.attrib["skipped"] == root.attrib["tests"] == str(len(cases))
    assert root.attrib["failures"] == "0"


@pytest.mark.parametrize("name", FORMATS)
def test_several_targets_make_one_report(usp: RunHere, folder: Path, name: str) -> None:
    """Each format has the problems of all targets."""
    Path("other.xml").write_text(urlset(twice("seas")))
    done = usp("check", "-f", name, "public/", "other.xml")
    assert done.returncode == 1
    assert "maps/a.xml" in done.stdout
    assert "other.xml" in done.stdout


def test_the_hook_for_pre_commit(folder: Path) -> None:
    """The hook is a command of this package, and its pattern matches sitemaps and no other files."""
    root = Path(__file__).parents[1]
    (hook,) = yaml.safe_load((root / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert hook["language"] == "python"
    assert (
        shlex.split(hook["entry"])[0]
        in tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    )
    matched = [
        name
        for name in ("sitemap.xml", "public/sitemap-1.xml.gz", "a/news_sitemap.xml", "pom.xml", "sitemap.py")
        if re.search(hook["files"], name)
    ]
    assert matched == ["sitemap.xml", "public/sitemap-1.xml.gz", "a/news_sitemap.xml"]
    command = [sys.executable, "-m", *shlex.split(hook["entry"]), "public/sitemap.xml", "public/maps/a.xml"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=60)
    assert done.returncode == 1
    assert "public/maps/a.xml:3:" in done.stdout


# Terminals


def run_on_terminal(*arguments: str) -> str:
    with terminal(200) as found:
        subprocess.run(
            [sys.executable, "-m", "usp", "check", *arguments],
            stdout=found.follower,
            stderr=subprocess.DEVNULL,
            env=environment(NO_COLOR="1"),
            timeout=60,
        )
    return found.text()


def test_a_terminal_shows_the_first_of_each_code(folder: Path) -> None:
    """On a terminal, the first three problems of a code are shown, and how many more there are."""
    shown = run_on_terminal("public/")
    assert shown.count("  P418  ") == 3
    assert "… and 2 more P418 in public/maps/a.xml" in shown
    assert "--all shows more" in shown
    everything = run_on_terminal("--all", "public/")
    assert everything.count("  P418  ") == 5
    assert "… and" not in everything


def test_a_pipe_has_all(usp: RunHere, folder: Path) -> None:
    """Pipes and files are not collapsed."""
    assert usp("check", "public/").stdout.count("  P418  ") == 5


# Watching


def test_changes_settle_before_they_count(tmp_path: Path) -> None:
    """A burst of writes is one change; hidden files and ignored ones are none."""
    file = tmp_path / "sitemap.xml"
    file.write_text("a")
    waits: list[float] = []

    def write_while_waiting(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 1:
            (tmp_path / ".hidden").write_text("x")
            (tmp_path / "report.html").write_text("x")
        elif len(waits) < 6:
            file.write_text("a" * len(waits))

    ignored = frozenset({os.path.realpath(tmp_path / "report.html")})
    found = changes([str(tmp_path)], ignored, last=state_of([str(tmp_path)], ignored), sleep=write_while_waiting)
    assert next(found) == {str(file): (file.stat().st_mtime_ns, 5)}
    assert len(waits) == 6


def test_watch_checks_again_until_ctrl_c(folder: Path) -> None:
    """A folder is checked when a file changes. A file that is missing for a moment ends nothing. Ctrl-C ends it."""
    arguments = [sys.executable, "-m", "usp", "check", "--watch", "public/maps/a.xml"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(arguments, text=True, env=environment(), **pipes) as process:  # type: ignore[call-overload]
        seen: list[str] = []

        def wait_for(pattern: str) -> None:
            for line in process.stdout:
                seen.append(line)
                if re.search(pattern, line):
                    return
            pytest.fail(f"it ended: {seen}")

        try:
            wait_for("watching public/maps/a.xml; Ctrl-C ends")
            assert sum("L302" in line for line in seen) == 1
            (folder / "maps/a.xml").unlink()
            wait_for("checked at")
            assert any("error: " in line for line in seen)
            (folder / "maps/a.xml").write_text(urlset(twice("rivers", 1)))
            wait_for("no problems")
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
        finally:
            process.kill()


def test_watch_refuses_sites(usp: RunHere) -> None:
    """A site is not watched here, and usp names the command that does."""
    done = usp("check", "--watch", "http://127.0.0.1:1/")
    assert (done.returncode, "usp watch" in done.stderr) == (2, True)
