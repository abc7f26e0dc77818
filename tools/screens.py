"""Takes pictures of commands for the documentation: what a terminal shows, as SVG in docs/images/.

python tools/screens.py           compares the pictures with what the commands print now, and fails if one is old
python tools/screens.py --write   takes them again

Each command runs on a terminal and reads a small website on this machine. In the pictures the website is
https://www.example.org. Times differ with each run, so the pictures show fixed ones.
"""

from __future__ import annotations

import fcntl
import gzip
import io
import os
import re
import struct
import subprocess
import sys
import tempfile
import termios
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

IMAGES = Path(__file__).parents[1] / "docs" / "images"
_PORT = 18_431  # always the same: the size of documents depends on it
_BASE = f"http://127.0.0.1:{_PORT}"
_NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
# Pictures request nothing from other hosts, not even fonts.
_FORMAT = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL).replace(
    "font-family: Fira Code, monospace;", "font-family: ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace;"
)
_TIME = re.compile(r"\bin \d+\.\d s")
_SECONDS = re.compile(r"(?<=  )\d\.\d\d(?=  )")


class Answer(NamedTuple):
    """What the website answers for a path."""

    status: int
    body: bytes
    etag: str = ""


class Screen(NamedTuple):
    """A picture: its name, the commands that it shows, the website that they read, and the width of the terminal."""

    name: str
    commands: tuple[str, ...]
    site: Mapping[str, Answer]
    columns: int = 100


def _urlset(*entries: str) -> bytes:
    urls = "\n".join(f"<url>{entry}</url>" for entry in entries)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset {_NS}>\n{urls}\n</urlset>\n'.encode()


def _page(path: str, date: str = "") -> str:
    return f"<loc>{_BASE}/{path}</loc>" + (f"<lastmod>{date}</lastmod>" if date else "")


def _index(*names: str) -> bytes:
    entries = "".join(
        f"<sitemap><loc>{_BASE}/{name}</loc><lastmod>2026-05-0{number}</lastmod></sitemap>\n"
        for number, name in enumerate(names, 1)
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<sitemapindex {_NS}>\n{entries}</sitemapindex>\n'.encode()


_ARTICLES = _urlset(*(_page(f"articles/{n:05}", f"2026-04-{n % 28 + 1:02}") for n in range(1, 48_202)))
_SITE = {
    "/robots.txt": Answer(200, f"User-agent: *\nDisallow: /private/\n\nSitemap: {_BASE}/sitemap_index.xml\n".encode()),
    "/sitemap_index.xml": Answer(200, _index("articles.xml.gz", "shop.xml", "old.xml"), '"7d-61f0"'),
    "/articles.xml.gz": Answer(200, gzip.compress(_ARTICLES, mtime=0), 'W/"48f2-61f0"'),
    "/shop.xml": Answer(
        200,
        _urlset(*(_page(f"shop/{name}", "2026-05-02T09:30:00Z") for name in ("maps", "globes", "pens"))),
        '"1c3-60aa"',
    ),
    "/old.xml": Answer(404, b""),
}
_BUSY_SITE = _SITE | {"/shop.xml": Answer(500, b"")}
_FAULTY_SITE = _SITE | {
    "/shop.xml": Answer(
        200,
        _urlset(
            f"<loc>{_BASE}/search?q=maps&lang=en</loc><lastmod>08/05/2026</lastmod>",
            _page("shop/globes", "2026-05-02"),
            "<loc>/shop/pens</loc>",
        ),
    )
}
_BLOCKED_SITE = dict.fromkeys(("/robots.txt",), Answer(403, b""))

SCREENS = (
    Screen("ls", ("usp ls www.example.org",), _SITE),
    Screen("sitemaps", ("usp ls --sitemaps www.example.org",), _SITE, 132),
    Screen("blocked", ("usp ls www.example.org", "echo $?"), _BLOCKED_SITE),
    Screen("partial", ("usp export www.example.org -o pages.csv", "echo $?"), _BUSY_SITE),
    Screen("check", ("usp check www.example.org",), _FAULTY_SITE, 118),
)


@contextmanager
def _served(site: Mapping[str, Answer]) -> Iterator[None]:
    """Serve a website while the context is open. A blocked site refuses all."""
    missing = Answer(404, b"") if len(site) > 1 else next(iter(site.values()))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            answer = site.get(self.path, missing)
            self.send_response(answer.status)
            self.send_header("Content-Type", "text/plain" if self.path.endswith(".txt") else "application/xml")
            self.send_header("Content-Length", str(len(answer.body)))
            if answer.etag:
                self.send_header("ETag", answer.etag)
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", _PORT), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def _on_terminal(command: str, columns: int) -> tuple[str, int]:
    """Run a command with standard output on a terminal. Return what it printed, messages last, and its exit code."""
    leader, follower = os.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    arguments = command.replace("www.example.org", f"{_BASE}/").split()[1:]
    unwanted = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES")
    kept = {name: value for name, value in os.environ.items() if name not in unwanted}
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(  # noqa: S603 -- the commands of this file
            [sys.executable, "-m", "usp", *arguments],
            cwd=folder,
            stdout=follower,
            stderr=subprocess.PIPE,
            env=kept | {"TERM": "xterm-256color", "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        os.close(follower)
        printed = bytearray()
        while piece := _read(leader):
            printed += piece
        os.close(leader)
        _, said = process.communicate()
    return (bytes(printed) + said).decode().replace("\r\n", "\n"), process.returncode


def _read(leader: int) -> bytes:
    try:
        return os.read(leader, 65_536)
    except OSError:  # as Linux says that the process has closed the terminal
        return b""


def _same_each_time(text: str) -> str:
    """Return a text with the website under its name, and with fixed times."""
    text = text.replace(_BASE, "https://www.example.org").replace(f"127.0.0.1:{_PORT}", "www.example.org")
    seconds = cycle(("0.04", "0.11", "0.38", "0.09", "0.07"))
    return _SECONDS.sub(lambda _: next(seconds), _TIME.sub("in 0.9 s", text))


def picture(screen: Screen) -> str:
    """Run the commands of a screen. Return what the terminal shows as SVG."""
    shown, code = Text(), 0
    with _served(screen.site):
        for command in screen.commands:
            shown.append("$ ", "green").append(f"{command}\n", "bold")
            if command == "echo $?":
                text = f"{code}\n"
            else:
                text, code = _on_terminal(command, screen.columns)
            shown.append_text(Text.from_ansi(_same_each_time(text).rstrip())).append("\n")
    shown.rstrip()
    console = Console(
        record=True, width=screen.columns, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print(shown)
    return console.export_svg(title=screen.commands[0], code_format=_FORMAT, unique_id=f"usp-{screen.name}")


def main() -> int:
    """Take or compare all pictures."""
    is_written = "--write" in sys.argv[1:]
    old = []
    for screen in SCREENS:
        path, svg = IMAGES / f"{screen.name}.svg", picture(screen)
        if is_written:
            path.parent.mkdir(exist_ok=True)
            path.write_text(svg, "utf-8")
        elif not path.exists() or path.read_text("utf-8") != svg:
            old.append(path.name)
    for name in old:
        print(f"docs/images/{name} is out of date; run: make screens")
    return bool(old)


if __name__ == "__main__":
    sys.exit(main())
