"""Settings and fixtures of all tests."""

from __future__ import annotations

import inspect
import logging
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from commands import UNWANTED, RunHere
from corpus import CORPUS

# Where CI is set, every run draws the same examples; elsewhere each run draws others, and finds more over time.
# No example has a deadline: a busy machine is slow.
settings.register_profile("ci", deadline=None, derandomize=True)
settings.register_profile("local", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")

# A shell that starts the tests in the background makes them ignore Ctrl-C, and the programs that they start inherit it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Under nohup it is the same with SIGHUP. A handler is not inherited, so programs start without it, and pytest goes on.
if (hangup := getattr(signal, "SIGHUP", None)) is not None and signal.getsignal(hangup) is signal.SIG_IGN:
    signal.signal(hangup, lambda number, frame: None)

# Modules that import what only POSIX has.
collect_ignore = (
    []
    if os.name == "posix"
    else ["test_cli_explain.py", "test_cli_progress.py", "test_export_files.py", "test_export_sqlite.py"]
)
#: Words in the source of a test that needs what a system may lack -> whether this system has it.
NEEDED = {
    "os.fork(": hasattr(os, "fork"),
    "os.mkfifo(": hasattr(os, "mkfifo"),
    '"/proc/': Path("/proc/self/fd").exists(),
    '"/dev/': Path("/dev/zero").exists(),
    "signal.SIGKILL": hasattr(signal, "SIGKILL"),
}


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Keep unreadable bytes out of the names of tests: compressed data has the time in it, and always differs."""
    return argname if isinstance(val, bytes) and not (val.isascii() and val.decode().isprintable()) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests of real files where there are none, and tests of what the system does not have."""
    if lacking := [words for words, is_there in NEEDED.items() if not is_there]:
        for item in items:
            source = inspect.getsource(item.function) if isinstance(item, pytest.Function) else ""
            if found := [words for words in lacking if words in source]:
                item.add_marker(pytest.mark.skip(reason=f"this system has no {found[0].strip('(')}"))
    if not CORPUS.exists():
        skip = pytest.mark.skip(reason="there is no corpus of real files here; set USP_CORPUS to the path of one")
        for item in items:
            if item.get_closest_marker("corpus"):
                item.add_marker(skip)


@pytest.fixture(autouse=True)
def unchanged_logging() -> Iterator[None]:
    """Restore logging after each test: commands that run in this process change where the log goes."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


@pytest.fixture
def run_here(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> RunHere:
    """Return a function that runs a command in this process."""
    for name in UNWANTED:
        monkeypatch.delenv(name, raising=False)
    return RunHere(capsys)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if mount is None or umount is None:
        pytest.skip("this system has no program to mount a file system")
    command = [mount, "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("mounting a file system needs root, and tmpfs")
    try:
        yield disk
    finally:
        subprocess.run([umount, str(disk)], check=True)
