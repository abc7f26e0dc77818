"""Commands in the documentation and in `--help` run as they are written."""

from __future__ import annotations

import gzip
import os
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path
from shutil import rmtree, which

import pytest

from commands import RunHere
from support import write_archive
from usp.cli.demo import demo_site
from usp.crawl import crawl
from usp.export import write
from usp.tree import sitemap_tree_for_homepage

pytestmark = pytest.mark.cli

ROOT = Path(__file__).parents[1]
CLI = (ROOT / "docs" / "cli.md").read_text("utf-8")
#: Pages whose commands are found in another way, or need a cluster. `usp view` and `usp demo` have tests of their own.
ELSEWHERE = {"cli.md", "clusters.md"}
PAGES = [ROOT / "README.md", *(path for path in sorted((ROOT / "docs").rglob("*.md")) if path.name not in ELSEWHERE)]
OTHER_PROGRAMS = ("curl", "jq")
#: What a shell does more with than to split at spaces: outside of quotes, and in double quotes.
FOR_SHELL = re.compile(r"[^\w\s./:=,@%+-]"), re.compile(r"[$`\\!]")
QUOTED = re.compile(r"'[^']*'|\"([^\"]*)\"")
URLSET = "<urlset><url><loc>https://www.example.org/a</loc></url></urlset>"


def commands() -> list[str]:
    """The commands, also those of CI files, with their continuation lines and without the comments that may follow."""
    in_help = re.findall(r"^examples:\n(.*?)```", CLI, re.DOTALL | re.MULTILINE)
    consoles = [
        block
        for path in PAGES
        for block in re.findall(r"^```console\n(.*?)^```", path.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    ]
    in_yaml = [
        f"$ {command}\n"
        for path in PAGES
        for block in re.findall(r"^```yaml\n(.*?)^```", path.read_text("utf-8"), re.DOTALL | re.MULTILINE)
        for command in re.findall(r"^ +(?:- |- run: |entry: )(usp .*)$", block, re.MULTILINE)
    ]
    text = re.sub(r"\\\n\s*", "", "\n".join((*consoles, *in_help, *in_yaml)))
    found = re.findall(r"^(?:\$ |  )((?:curl .* \| )?usp (?!demo|view).*)$", text, re.MULTILINE)
    return list(dict.fromkeys(re.split(r"\s{2,}", command)[0] for command in found))


def on_demo_site(command: str, homepage: str) -> str:
    """The command with the example website in place of others. It has a sitemap of news under another name."""
    command = re.sub(
        r"(?:https://www\.example\.org|http://127\.0\.0\.1:8000)/(sitemap[\w-]*\.xml)?",
        lambda found: homepage + "news.xml" * bool(found[1]),
        command,
    )
    return re.sub(
        r"(?<=\s)(?:example\.(?:org|com)|\w+\.example)(?=\s|$)", homepage.removeprefix("http://").rstrip("/"), command
    )


def needs_shell(command: str) -> bool:
    """Return whether a command is more than usp and its arguments: a pipe, for instance, or a file for the output."""
    outside, in_quotes = FOR_SHELL
    return bool(
        not command.startswith("usp ")
        or outside.search(QUOTED.sub("", command))
        or any(in_quotes.search(found[1] or "") for found in QUOTED.finditer(command))
    )


def run_in_shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as a user does."""
    (folder / "usp").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m usp "$@"\n')
    (folder / "usp").chmod(0o755)
    return subprocess.run(
        ["/bin/sh", "-c", command], cwd=folder, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
    )  # fmt: skip


def make_crawl(folder: Path, homepage: str) -> None:
    """Make what commands about crawls read: lists of sites, a crawl folder with two runs, and two exports."""
    host = homepage.removeprefix("http://").rstrip("/")
    (folder / "sites.txt").write_text(f"{host}\n")
    (folder / "top-sites.csv").write_text(f"rank,domain\n1,{host}\n")
    for _ in range(2):
        crawl(host, folder / "crawl")
    tree = sitemap_tree_for_homepage(homepage)
    for name in ("monday", "tuesday"):
        write(tree, folder / f"{name}.parquet")


@pytest.mark.parametrize("command", commands())
def test_commands_run(command: str, tmp_path: Path, run_here: RunHere, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command runs on the example website, or on a folder or file of that name."""
    if missing := [name for name in OTHER_PROGRAMS if f"{name} " in command and which(name) is None]:
        pytest.skip(f"{missing[0]} is not installed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notify").symlink_to("/bin/true")
    (tmp_path / "public").mkdir()
    for name in ("public/sitemap.xml", "sitemap.xml", "feeds.xml"):
        (tmp_path / name).write_text(URLSET)
    (tmp_path / "known.csv").write_text("url\n")
    (tmp_path / "known.json").write_text('{"version": 1, "problems": {}}')
    (tmp_path / "sitemap.xml.gz").write_bytes(gzip.compress(URLSET.encode()))
    with zipfile.ZipFile(tmp_path / "old-site.zip", "w") as archive:
        archive.writestr("sitemap.xml", URLSET)
    write_archive(tmp_path / "crawl.warc.gz", "https://www.example.org/")
    (tmp_path / "heritrix" / "warcs").mkdir(parents=True)
    write_archive(tmp_path / "heritrix" / "warcs" / "1.warc.gz", "https://www.example.org/")
    with demo_site() as homepage:
        if command.startswith(("usp crawl", "usp diff", "usp watch")) or "crawl/" in command:
            make_crawl(tmp_path, homepage)
            command = command.replace("crawl/ 3 7", "crawl/ 1 2")  # the runs that there are
        if "--every" in command:  # it would run for ever, and wait for the next run of a folder that has one
            command += " --runs 1"
            rmtree(tmp_path / "crawl")
        command = command if " --url " in command else on_demo_site(command, homepage)
        # A process for each of a hundred commands would take most of the time. Those for the shell take one.
        run = run_in_shell(command, tmp_path) if needs_shell(command) else run_here(*shlex.split(command)[1:])
    if "pip install" in run.stderr:
        pytest.skip(run.stderr)
    assert run.returncode in (0, 1), run.stderr  # 1: a check found an error
    assert "error: " not in run.stderr


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("usp ls example.org -o a.csv --columns url,news.title", False),
        ("usp sql a.xml \"select count(*) from pages where url > 'x'\"", False),
        ("usp ls -H 'Cookie: $a'", False),
        ("curl -s http://h/ | usp ls -", True),
        ("usp ls public/*.xml", True),
        ('usp ls "$site"', True),
        ("usp ls a > b", True),
        ("usp ls ~/a", True),
        ("usp ls it's", True),
    ],
)
def test_what_a_shell_is_for(command: str, expected: bool) -> None:
    """Only commands whose words are those between the spaces are run without a shell."""
    assert needs_shell(command) == expected


def test_commands_are_found() -> None:
    """There are examples of every command."""
    assert {command.partition("usp ")[2].split()[0] for command in commands()} == {
        *("--version", "check", "crawl", "diff", "export", "ls", "sql", "watch"),
    }
