"""A file system that is really full: commands say so, exit with 2, and leave no file that looks whole."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from commands import RunHere
from support import urlset
from usp.export.formats import FORMATS, TABLE_FORMATS
from viewing import explored

pytestmark = [pytest.mark.export, pytest.mark.slow]

NO_ROOM = "No space left on device"


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """A sitemap of three megabytes that do not shrink, and one with other pages."""
    chance = random.Random(1)
    for name in ("old.xml", "sitemap.xml"):
        path = tmp_path / name
        path.write_text(
            urlset(*(f"https://h.example/{number}/{chance.randbytes(40).hex()}" for number in range(25_000)))
        )
    return path


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    """A sitemap with problems of many kinds. A report shows some of each."""
    path = tmp_path / "problems.xml"
    fields = "<lastmod>x{0}</lastmod><changefreq>{0}</changefreq><priority>{0}0</priority><video:video><title>&</title>"
    entry = f"<url><loc>https://h.example/ \u00e9{{0}}/{'x' * 2_000}</loc>{fields}</url>"
    path.write_text(urlset() + "".join(entry.format(number) for number in range(200)))
    return path


def ending(kind: str) -> str:
    return FORMATS[kind].suffixes[0]


def assert_no_room(ran: subprocess.CompletedProcess[str], disk: Path, *, at: Path) -> None:
    """Assert that a command named the file or folder for which there was no room, and left nothing there."""
    *_, last = ran.stderr.splitlines()
    assert last.startswith(f"usp: error: {at}"), last
    assert NO_ROOM in last or "disk is full" in last, last
    assert ran.returncode == 2
    assert [path.name for path in disk.iterdir() if path.name != "filler"] == []


@pytest.mark.parametrize("kind", TABLE_FORMATS)
@pytest.mark.parametrize("command", ["export", "sql"])
def test_exports(command: str, kind: str, pages: Path, small_disk: Path, run_here: RunHere) -> None:
    """An export and the answer to a query, in every format, name the file that has no room."""
    to = small_disk / f"out{ending(kind)}"
    query = ["select * from pages"] if command == "sql" else []
    assert_no_room(run_here(command, str(pages), *query, "-o", str(to)), small_disk, at=to)


def test_an_older_file_stays(pages: Path, small_disk: Path, run_here: RunHere) -> None:
    """If there is no room for a new file, the one that was there stays as it was."""
    to = small_disk / "out.csv"
    to.write_text("url\n")
    assert run_here("export", str(pages), "-o", str(to)).returncode == 2
    assert [path.read_text() for path in small_disk.iterdir()] == ["url\n"]


@pytest.mark.parametrize("kind", ["xlsx", "duckdb"])
def test_no_room_for_temporary_files(
    kind: str, pages: Path, tmp_path: Path, small_disk: Path, run_here: RunHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Formats that are made in a temporary folder name it if that is what has no room."""
    monkeypatch.setattr("tempfile.tempdir", str(small_disk))
    to = tmp_path / f"out{ending(kind)}"
    ran = run_here("export", str(pages), "-o", str(to))
    assert_no_room(ran, small_disk, at=small_disk if kind == "xlsx" else to)
    assert str(small_disk) in ran.stderr
    assert not to.exists()


@pytest.mark.parametrize("name", ["r.txt", "r.json", "r.sarif", "r.xml", "r.html"])
def test_reports(name: str, problems: Path, small_disk: Path, run_here: RunHere) -> None:
    """A report, in every format, names the file that has no room."""
    kind = {"txt": "text", "xml": "junit"}.get(name[2:], name[2:])
    (small_disk / "filler").write_bytes(bytes((1 << 20) - 4_096))
    to = small_disk / name
    assert_no_room(run_here("check", str(problems), "-f", kind, "-o", str(to)), small_disk, at=to)


@pytest.mark.parametrize("name", ["d.csv", "d.parquet", "d.db", "d.atom", "d.html", "d.txt"])
def test_changes(name: str, pages: Path, small_disk: Path, run_here: RunHere) -> None:
    """Changes, in every format, name the file that has no room."""
    (small_disk / "filler").write_bytes(bytes((1 << 20) - 4_096))
    kind = {".atom": ["-f", "atom"], ".html": ["-f", "html"], ".txt": ["-f", "text"]}.get(Path(name).suffix, [])
    to = small_disk / name
    assert_no_room(
        run_here("diff", str(pages.with_name("old.xml")), str(pages), *kind, "-o", str(to)), small_disk, at=to
    )


def test_the_explorer(pages: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The explorer says which temporary folder has no room, answers what it is asked, and leaves nothing there."""
    monkeypatch.setattr("tempfile.tempdir", str(small_disk))
    with explored(pages) as explorer:
        status = explorer.status()
        assert (status["state"], status["outcome"]) == ("failed", None)
        assert status["error"].startswith(str(small_disk)), status["error"]
        assert status["error"].endswith(NO_ROOM)
        assert explorer.pages({})["total"] < 25_000
    assert list(small_disk.iterdir()) == []
