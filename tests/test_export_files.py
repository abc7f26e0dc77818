"""Files that are written whole or not at all: whatever happens meanwhile, the old one is there, or the new one."""

from __future__ import annotations

import errno
import fcntl
import gzip
import io
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from stat import S_IMODE
from typing import Any

import pytest

from usp.export.files import ensure_writable, gzip_stream, is_stream, open_whole, whole_file

pytestmark = pytest.mark.export

OLD, NEW = b"old" * 100_000, b"new" * 100_000
WRITE = "import sys; from usp.export.files import open_whole\n"
IS_ROOT = os.geteuid() == 0


def write(path: Path | str, data: bytes = NEW) -> None:
    with open_whole(str(path)) as stream:
        stream.write(data)


def write_and_raise(path: Path, error: type[BaseException]) -> None:
    with open_whole(str(path)) as stream:
        stream.write(NEW)
        raise error


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def python(code: str, *arguments: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, text=True, capture_output=True, timeout=60, check=False, **options)


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    """Until the end there is the old file, or none."""
    path = tmp_path / "a.csv"
    for before in (None, OLD):
        if before is not None:
            path.write_bytes(before)
        with open_whole(str(path)) as stream:
            stream.write(NEW)
            stream.flush()
            assert (path.read_bytes() if path.exists() else None) == before
        assert path.read_bytes() == NEW
    assert names(tmp_path) == ["a.csv"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_exceptions(tmp_path: Path, error: type[BaseException]) -> None:
    """On any exception, all is as it was before."""
    path = tmp_path / "a.csv"
    path.write_bytes(OLD)
    for name in ("a.csv", "b.csv"):
        with pytest.raises(error):
            write_and_raise(tmp_path / name, error)
    assert (names(tmp_path), path.read_bytes()) == (["a.csv"], OLD)


def test_a_name_is_given(tmp_path: Path) -> None:
    """What opens files by their names gets a name in the same folder, of a file that is there and is empty."""
    with whole_file(str(tmp_path / "a.db")) as name:
        assert (Path(name).parent, Path(name).read_bytes()) == (tmp_path, b"")
        assert Path(name).name.startswith(".a.db.")
        Path(name).write_bytes(NEW)
    assert (tmp_path / "a.db").read_bytes() == NEW


def test_modes(tmp_path: Path) -> None:
    """A new file has the mode of any other; one that is replaced keeps its own, and is no one else's meanwhile."""
    plain, path = tmp_path / "plain", tmp_path / "a.csv"
    plain.touch()
    write(path)
    assert path.stat().st_mode == plain.stat().st_mode
    for mode in (0o600, 0o640, 0o444, 0o666):
        path.chmod(mode)
        with whole_file(str(path)) as name:
            assert S_IMODE(os.stat(name).st_mode) == 0o600
            Path(name).write_bytes(NEW)
        assert S_IMODE(path.stat().st_mode) == mode


def test_links(tmp_path: Path) -> None:
    """The target of a link is written, in its own folder, and the link stays; it may be new, and links may be many."""
    below = tmp_path / "below"
    below.mkdir()
    link, second = tmp_path / "link", tmp_path / "second"
    link.symlink_to("below/a.csv")
    second.symlink_to("link")
    for data in (OLD, NEW):
        write(second, data)
        assert (below / "a.csv").read_bytes() == data
    assert [link.is_symlink(), second.is_symlink()] == [True, True]
    assert names(below) == ["a.csv"]


def test_relative_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name without a folder is one of the current folder, even if that changes meanwhile."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    with open_whole("a.csv") as stream:
        stream.write(NEW)
        os.chdir("other")
    assert names(tmp_path) == ["a.csv", "other"]


@pytest.mark.parametrize("name", ["r" * 255, "\U0001f600" * 63, "-", "a\nb.csv", "[a]*?.csv"])
def test_odd_names(tmp_path: Path, name: str) -> None:
    """A name that the file system takes is taken."""
    write(tmp_path / name, OLD)
    write(tmp_path / name, NEW)
    assert names(tmp_path) == [name]


def test_streams(tmp_path: Path) -> None:
    """A device is written to and stays; what a shell has redirected is added to; so is a pipe written to."""
    write(os.devnull)
    assert is_stream(os.devnull)
    log = tmp_path / "log"
    log.write_bytes(b"before\n")
    code = WRITE + "with open_whole('/dev/stdout') as stream: stream.write(b'after')"
    with log.open("ab") as stdout:
        subprocess.run([sys.executable, "-c", code], stdout=stdout, check=True, timeout=60)
    assert log.read_bytes() == b"before\nafter"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=write, args=(pipe,))
    writer.start()
    assert pipe.read_bytes() == NEW
    writer.join()
    assert names(tmp_path) == ["log", "pipe"]


def test_what_cannot_be_written(tmp_path: Path) -> None:
    """A missing folder, a folder in place of a file, and a link to itself: an OSError that says what and where."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    before = names(tmp_path)
    for name, code, strerror, filename in [
        ("no/a.csv", errno.ENOENT, "No such folder", "no"),
        ("file/a.csv", errno.ENOENT, "No such folder", "file"),
        ("folder", errno.EISDIR, "Is a folder, not a file", "folder"),
        ("loop", errno.ELOOP, "Is a link that leads to itself", "loop"),
    ]:
        for action in (ensure_writable, lambda path: write(path)):
            with pytest.raises(OSError, match=strerror) as caught:
                action(str(tmp_path / name))
            found = caught.value.errno, caught.value.strerror, caught.value.filename
            assert found == (code, strerror, str(tmp_path / filename))
    assert names(tmp_path) == before


@pytest.mark.skipif(IS_ROOT, reason="root may write anywhere")
def test_unwritable_folder(tmp_path: Path) -> None:
    """A folder in which no file may be made is named."""
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PermissionError) as caught:
            write(tmp_path / "a.csv")
    finally:
        tmp_path.chmod(0o700)
    assert (caught.value.errno, caught.value.filename) == (errno.EACCES, str(tmp_path))


@pytest.mark.skipif(not Path("/sys/kernel").exists(), reason="needs a folder in which even root makes no file")
def test_a_folder_that_takes_no_files() -> None:
    """What the system says is passed on, with the name of the file."""
    path = f"/sys/{os.getpid()}.csv"
    with pytest.raises(OSError, match=r"denied|permitted|Read-only|made") as caught:
        write(path)
    assert caught.value.filename in (path, "/sys")


def test_full_disk(tmp_path: Path) -> None:
    """What finds no room is an OSError with the name of the file, and leaves no trace."""
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        write("/dev/full")
    path = tmp_path / "a.csv"
    path.write_bytes(OLD)
    code = WRITE + "with open_whole(sys.argv[1]) as stream: stream.write(bytes(1_000_000))"
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))  # noqa: E731
    run = python(code, path, preexec_fn=limit)
    assert f"File too large: '{path}'" in run.stderr
    assert (names(tmp_path), path.read_bytes()) == (["a.csv"], OLD)


def test_errors_of_others_are_passed_on(tmp_path: Path) -> None:
    """An error that is not of the file is not said to be."""
    for error in (
        ConnectionResetError(errno.ECONNRESET, "gone"),
        OSError("odd"),
        BrokenPipeError(errno.EPIPE, "closed"),
    ):
        with pytest.raises(OSError, match=r"gone|odd|closed") as caught, open_whole(str(tmp_path / "a.csv")):
            raise error
        assert caught.value is error
    with pytest.raises(FileNotFoundError) as missing, open_whole(str(tmp_path / "a.csv")):
        (tmp_path / "other").read_bytes()
    assert missing.value.filename == str(tmp_path / "other")


@pytest.mark.slow
def test_killed_at_any_moment(tmp_path: Path) -> None:
    """Whenever a program is killed, the file is one that was written whole; the next program leaves nothing else."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"0" * 1_000_000)
    code = WRITE + (
        "print(flush=True)\n"
        "for number in range(1_000_000):\n"
        "    with open_whole(sys.argv[1]) as stream:\n"
        "        for _ in range(100): stream.write(b'%d' % (number % 10) * 10_000)\n"
    )
    seen: set[bytes] = set()
    for seed in range(35):
        if seed >= 25 and len(seen) > 1:
            break
        with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            # The last ones are for a busy machine, on which no program had the time to write a file.
            time.sleep(random.Random(seed).uniform(0, 0.03 if seed < 25 else 2))
            process.kill()
            assert process.wait() == -signal.SIGKILL
        data = path.read_bytes()
        assert (len(data), len(set(data))) == (1_000_000, 1)
        seen.add(data[:1])
    assert len(seen) > 1
    write(path)
    assert names(tmp_path) == ["a.csv"]


def test_leftovers(tmp_path: Path) -> None:
    """What a program that is gone has left is removed; what one is writing, and what only looks so, is not."""
    path = tmp_path / "a.csv"
    gone, mine = f".a.csv.{'0' * 16}.tmp", f".a.csv.{'1' * 16}.tmp"
    others = [".a.csv.tmp", ".a.csv.1234.tmp", f".b.csv.{'0' * 16}.tmp", f".xa.csv.{'0' * 16}.tmp"]
    for name in (gone, mine, *others):
        (tmp_path / name).touch()
    (tmp_path / f".a.csv.{'2' * 16}.tmp").symlink_to("other")
    with (tmp_path / mine).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        write(path)
    assert names(tmp_path) == sorted(["a.csv", mine, *others, f".a.csv.{'2' * 16}.tmp"])


def test_many_write_the_same(tmp_path: Path) -> None:
    """Threads and programs that write the same file at once do not disturb each other."""
    path = tmp_path / "a.csv"
    code = WRITE + (
        "for number in range(50):\n    with open_whole(sys.argv[1]) as stream: stream.write(b'%d' % number * 1_000)"
    )
    processes = [subprocess.Popen([sys.executable, "-c", code, str(path)]) for _ in range(3)]
    failures: list[Exception] = []

    def write_often() -> None:
        try:
            for _ in range(50):
                write(path)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=write_often) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert failures == []
    assert names(tmp_path) == ["a.csv"]


@pytest.mark.parametrize("has_isal", [True, False])
def test_gzip(monkeypatch: pytest.MonkeyPatch, has_isal: bool) -> None:
    """What is written is gzipped, the same every time, with isal or without; the stream below stays open."""
    if not has_isal:
        monkeypatch.setitem(sys.modules, "isal.igzip", None)
    found = []
    for _ in range(2):
        stream = io.BytesIO()
        with gzip_stream(stream) as packed:
            for number in range(10_000):
                packed.write(b"%d\n" % number)
        assert not stream.closed
        found.append(stream.getvalue())
    assert found[0] == found[1]
    assert gzip.decompress(found[0]) == b"".join(b"%d\n" % number for number in range(10_000))
    assert found[0][3:8] == bytes(5)  # no name, no time
