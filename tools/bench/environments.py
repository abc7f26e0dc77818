"""Installs what usp is compared against, each into a virtual environment of its own under `.bench/`, once."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".bench"
INSTALL_SECONDS = 600
OURS = "usp"
WITH_PANDAS = "1.8.1 with pandas"
#: What pip installs, by the name of its environment.
PEERS = {
    "1.8.1": "ultimate-sitemap-parser==1.8.1",
    "lxml": "lxml",
    "scrapy": "scrapy",
    "advertools": "advertools",
    WITH_PANDAS: "ultimate-sitemap-parser==1.8.1 pandas pyarrow",
}


class CannotInstall(Exception):
    """An environment that could not be made; its text is one line for people."""


def python_of(name: str) -> str:
    """The Python of an environment: ours is the one that runs this."""
    if name == OURS:
        return sys.executable
    folder = FOLDER / name.replace(" ", "-")
    python = folder / "bin" / "python"
    mark, wanted = folder / "installed", f"{PEERS[name]} for Python {platform.python_version()}\n"
    if not (mark.exists() and mark.read_text("ascii") == wanted):
        print(f"installing {PEERS[name]} into {FOLDER.name}/{folder.name}/", file=sys.stderr, flush=True)
        _run(name, [sys.executable, "-m", "venv", "--clear", str(folder)])
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1"]
        _run(name, [*pip, *PEERS[name].split()])
        mark.write_text(wanted, "ascii")
    return str(python)


def _run(name: str, command: list[str]) -> None:
    try:
        done = subprocess.run(  # noqa: S603 -- all of it stands here
            command, capture_output=True, text=True, timeout=INSTALL_SECONDS, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise CannotInstall(f"cannot install {PEERS[name]}: not done after {INSTALL_SECONDS} seconds") from None
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR: ")] or ["pip failed"]
        reason = errors[-1].removeprefix("ERROR: ")
        raise CannotInstall(f"cannot install {PEERS[name]}: {reason}; is there a network, and a package index?")


def peer_package(name: str) -> str:
    """The name under which an environment's package is installed."""
    return OURS if name == OURS else PEERS[name].partition("=")[0]
