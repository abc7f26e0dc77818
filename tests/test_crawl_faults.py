"""Crawls that are killed, run into a full disk, or into each other: nothing is lost, and nothing is there twice."""

from __future__ import annotations

import io
import json
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

from commands import RunHere
from many_sites import Sites, serve_sites
from usp.crawl import CrawlOptions, CrawlProgress, crawl
from usp.crawl.folder import CrawlFolder
from usp.exceptions import CrawlFolderError

pytestmark = [pytest.mark.network, pytest.mark.export, pytest.mark.slow]

#: Crawls what a file lists, and commits often.
PROGRAM = """
import sys
from usp.crawl import CrawlOptions, CrawlProgress, crawl
options = CrawlOptions(known_paths="never", sites_at_once=8, commit_seconds=0.05)
crawl([sys.argv[1]], sys.argv[2], options=options)
"""


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Sites, list[str]]]:
    with serve_sites() as sites:
        urls = []
        for number in range(120):
            pages = {f"/{name}.xml": [f"/{name}{page}" for page in range(number % 7 + 1)] for name in "ab"}
            urls.append(sites.add(host := f"127.0.4.{number + 1}", pages))
            sites.answers[host] = {path: replace(one, seconds=0.1) for path, one in sites.answers[host].items()}
        yield sites, urls


def started(listed: Path, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", PROGRAM, str(listed), str(folder)], stderr=subprocess.PIPE)


def tables(folder: Path, run: int) -> list[tuple[object, ...]]:
    """What one run says about each site: its outcome, and each of its pages."""
    query = f"""
        SELECT s.site, o.outcome, s.url, p.url FROM read_parquet('{folder}/sitemaps/*.parquet') s
        JOIN read_parquet('{folder}/sites/*.parquet') o ON o.site = s.site AND o.run = s.run
        LEFT JOIN read_parquet('{folder}/pages/*.parquet') p ON p.site = s.site AND p.document = s.document
        WHERE s.run = {run} ORDER BY ALL"""
    with duckdb.connect() as connection:
        return connection.sql(query).fetchall()


def test_a_crawl_that_is_killed_again_and_again_is_exact(served: tuple[Sites, list[str]], tmp_path: Path) -> None:
    """Killed at random moments and started again, a run has every site once, as a run that was left alone."""
    _, urls = served
    listed = tmp_path / "sites.txt"
    listed.write_text("\n".join(urls))
    crawl([str(listed)], tmp_path / "whole", options=CrawlOptions(known_paths="never"))
    chance = random.Random(20)
    kills = 0
    while kills < 20:
        process = started(listed, tmp_path / "killed")
        time.sleep(chance.uniform(0.3, 1.2) if kills % 2 else chance.uniform(0.8, 1.6))
        process.send_signal(signal.SIGKILL)
        _, _ = process.communicate()
        if process.returncode == 0:
            break  # it was faster
        kills += 1
    assert kills >= 3  # a run waits at least 4.5 seconds for the server, and is killed after 1.6 at the latest
    process = started(listed, tmp_path / "killed")
    _, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, b"")
    assert tables(tmp_path / "killed", 1) == tables(tmp_path / "whole", 1)
    runs = json.loads((tmp_path / "killed" / "crawl.json").read_text())["runs"]
    assert [run["outcomes"] for run in runs][:1] == [{"complete": len(urls)}]
    assert list((tmp_path / "killed").rglob("*.partial")) == []


def test_two_processes_do_not_write_to_one_folder(tmp_path: Path) -> None:
    """While a process writes to a folder, another one gets an error that says so."""
    folder = CrawlFolder.create(tmp_path / "c")
    program = "import sys; from usp.crawl import crawl; crawl(['http://127.0.0.1:1/'], sys.argv[1])"
    with folder.writing():
        done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "c")], capture_output=True, text=True)
    assert done.returncode == 1
    assert "CrawlFolderError: another process is writing to" in done.stderr
    with folder.writing(), pytest.raises(CrawlFolderError, match="another process"), folder.writing():
        pass


def test_a_full_disk_ends_a_crawl_and_nothing_is_lost(
    served: tuple[Sites, list[str]], tmp_path: Path, small_disk: Path
) -> None:
    """If the disk is full, a crawl raises OSError. With room again, it goes on, and every site is there once."""
    _, urls = served
    options = CrawlOptions(known_paths="never", sites_at_once=8, commit_seconds=0.05)
    filler = small_disk / "filler"
    filler.write_bytes(bytes(700_000))
    with pytest.raises(OSError, match=r"No space left.*disk/c"):
        crawl(urls, small_disk / "c", options=options)
    filler.unlink()
    crawl(urls, tmp_path / "whole", options=options)
    committed = len(CrawlFolder(small_disk / "c").parts())
    shutil.copytree(small_disk / "c", tmp_path / "c")
    crawl(urls, tmp_path / "c", options=options)
    assert committed > 0
    assert tables(tmp_path / "c", 1) == tables(tmp_path / "whole", 1)


class _List(io.RawIOBase):
    """A list of one site on standard input, which ends some time after `has_failed` is set."""

    def __init__(self, url: str) -> None:
        self.lines = [b"", url.encode() + b"\n"]
        self.has_failed = threading.Event()
        self.buffer = io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        line = self.lines.pop()
        if not line:
            self.has_failed.wait(60)
        time.sleep(0.2)
        buffer[: len(line)] = line
        return len(line)


def test_an_error_while_the_last_site_is_written_is_raised(
    served: tuple[Sites, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error ends a crawl, also if it happens after the last site was fetched; nothing of its part is committed."""
    stdin = _List(served[1][0])
    monkeypatch.setattr("sys.stdin", stdin)

    def fail(_: CrawlProgress) -> None:
        stdin.has_failed.set()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        crawl("-", tmp_path / "c", progress=fail, options=CrawlOptions(known_paths="never"))
    assert CrawlFolder(tmp_path / "c").parts() == []


def _manifest(**values: object) -> Callable[[Path], None]:
    """Change the last run in the manifest of a folder."""

    def change(folder: Path) -> None:
        manifest = json.loads((folder / "crawl.json").read_text())
        manifest["runs"][-1].update(values)
        (folder / "crawl.json").write_text(json.dumps(manifest))

    return change


def _deep(folder: Path) -> None:
    (folder / "crawl.json").write_text("[" * 200_000)


def _file(table: str, content: bytes | None) -> Callable[[Path], None]:
    """Overwrite the file of a table, or remove it."""

    def change(folder: Path) -> None:
        path = next((folder / table).iterdir())
        path.write_bytes(content) if content is not None else path.unlink()

    return change


def _column(table: str, name: str, value: object = None) -> Callable[[Path], None]:
    """Put a value into every row of a column: null, or a number, whatever the column holds."""

    def change(folder: Path) -> None:
        path = next((folder / table).iterdir())
        found = parquet.read_table(path)
        at = found.schema.get_field_index(name)
        kind = found.schema.field(at).type
        values = pa.nulls(len(found), kind) if value is None else pa.array([value] * len(found)).cast(kind)
        parquet.write_table(found.set_column(at, name, values), path)

    return change


def _other_columns(folder: Path) -> None:
    parquet.write_table(pa.table({"x": [1]}), next((folder / "sites").iterdir()))


DAMAGE = {
    "deep JSON": _deep,
    "a run without a number": _manifest(run="x"),
    "a run that is a list": _manifest(run=[1]),
    "targets that are numbers": _manifest(targets=[1]),
    "outcomes that are texts": _manifest(outcomes={"complete": "many"}),
    "no time zone": _manifest(started="2020-01-01T00:00:00"),
    "no Parquet": _file("sites", b"garbage"),
    "an empty file": _file("sitemaps", b""),
    "a file that is gone": _file("sitemaps", None),
    "pages that are none": _file("pages", b"garbage"),
    "other columns": _other_columns,
    "sites without names": _column("sites", "site"),
    "sites without targets": _column("sites", "target"),
    "dates after the year 9999": _column("sitemaps", "fetched_at", 2**62),
    "no offset": _column("sitemaps", "warc_offset"),
    "a negative offset": _column("sitemaps", "warc_offset", -5),
    "no date": _column("sitemaps", "warc_date"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_folders_that_others_have_written(
    served: tuple[Sites, list[str]], tmp_path: Path, run_here: RunHere, damage: Callable[[Path], None]
) -> None:
    """Whatever is in the files of a crawl folder, commands read what they can, or end with one line that says why."""
    url = served[1][3]
    crawl([url], tmp_path / "whole", options=CrawlOptions(known_paths="never"))
    commands = (["ls"], ["check"], ["diff"], ["crawl", "-q", "--known-paths", "never", url, "-o"])
    for number, command in enumerate(commands):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "whole", folder)
        damage(folder)
        done = run_here(*command, str(folder))
        assert 0 <= done.returncode <= 10
        assert "Traceback" not in done.stderr
