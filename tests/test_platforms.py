"""usp works where a system lacks what POSIX has, as Windows does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from commands import environment
from support import serve

# Runs a command without what Windows lacks. Modules of others are imported before: they have looked what there is.
WITHOUT_POSIX = """
import asyncio, multiprocessing.util, os, select, shutil, signal, subprocess, sys, tempfile, threading, types
import aiohttp, requests, rich.console
LACKING = {
    os: ("fork", "killpg", "mkfifo", "pread", "register_at_fork", "O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY"),
    select: ("poll", "epoll"),
    signal: ("SIGKILL", "SIGHUP", "SIGPIPE", "pthread_kill"),
}
for module, names in LACKING.items():
    for name in filter(vars(module).__contains__, names):
        delattr(module, name)
for name in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"):
    sys.modules[name] = None
sys.modules["msvcrt"] = types.SimpleNamespace(LK_NBLCK=2, locking=lambda *_: None)
from usp.cli import main
sys.exit(main(sys.argv[1:]))
"""
SITEMAP = b"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>{base}/page</loc></url></urlset>"
SITE: dict[str, tuple[int, dict[str, str], bytes]] = {
    "/robots.txt": (200, {}, b"Sitemap: {base}/sitemap.xml"),
    "/sitemap.xml": (200, {}, SITEMAP),
}

pytestmark = [pytest.mark.cli, pytest.mark.network]


def run(*arguments: str | Path) -> str:
    command = [sys.executable, "-c", WITHOUT_POSIX, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def test_commands_work_without_posix(tmp_path: Path) -> None:
    """Trees are listed, checked and exported, and a replaced file leaves no other one behind."""
    file = tmp_path / "pages.csv"
    file.write_text("old")
    with serve(SITE) as site:
        assert f"{site.url}/page" in run("ls", site.url)
        run("check", "-q", site.url)
        run("export", site.url, "-o", file)
        assert f"\n{site.url}/page," in file.read_text("utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["pages.csv"]


@pytest.mark.export
def test_crawls_work_without_posix(tmp_path: Path) -> None:
    """A crawl folder is written, locked, written again, queried and compared."""
    folder = tmp_path / "crawl"
    with serve(SITE) as site:
        run("crawl", "-q", site.url, "-o", folder)
        run("crawl", "-q", site.url, "-o", folder)
        assert run("sql", folder, "SELECT url FROM pages", "-f", "csv") == f"url\n{site.url}/page\n"
        run("diff", folder)
    assert [path.name for path in folder.rglob("*") if path.suffix in (".partial", ".tmp")] == []
