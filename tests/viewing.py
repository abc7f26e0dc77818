"""A folder of sitemaps to explore, and the explorer over it: in this process, or as a user starts it."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commands import environment
from usp.sources import find_sources
from usp.view.explorer import Explorer

__all__ = ["HOST", "Page", "Viewer", "explored", "pages_of_site", "viewing", "write_site"]

HOST = "www.example.org"
_SPACES = (
    'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml"'
    ' xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"'
    ' xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"'
)


@dataclass(frozen=True)
class Page:
    """A page of the site that tests explore."""

    path: str
    sitemap: str
    day: str = ""
    images: int = 0
    languages: tuple[str, ...] = ()
    news_language: str = ""
    bad_priority: bool = False

    @property
    def url(self) -> str:
        return f"https://{HOST}{self.path}"

    def xml(self) -> str:
        parts = [f"<url><loc>{self.url}</loc>"]
        if self.day:
            parts.append(f"<lastmod>{self.day}</lastmod>")
        if self.bad_priority:
            parts.append("<priority>7</priority>")
        parts += [
            f'<xhtml:link rel="alternate" hreflang="{language}" href="{self.url}?{language}"/>'
            for language in self.languages
        ]
        parts += [
            f"<image:image><image:loc>{self.url}/{number}.png</image:loc></image:image>"
            for number in range(self.images)
        ]
        if self.news_language:
            parts.append(
                "<news:news><news:publication><news:name>The Example</news:name>"
                f"<news:language>{self.news_language}</news:language></news:publication>"
                f"<news:publication_date>{self.day or '2026-01-01'}</news:publication_date>"
                "<news:title>A story</news:title></news:news>"
            )
        return "".join(parts) + "</url>\n"


def pages_of_site() -> list[Page]:
    """Return the pages of the site, in the order of its tree."""
    blog = [
        Page(
            f"/blog/{2020 + number % 4}/Post-{number}",
            "/blog.xml",
            day=f"{2020 + number % 4}-0{1 + number % 9}-11" if number % 5 else "",
            images=number % 3,
            languages=("de", "EN-gb") if number % 4 == 0 else (),
        )
        for number in range(40)
    ]
    news = [Page(f"/news/{number}", "/news.xml", day="2026-11-01", news_language="en") for number in range(6)]
    rest = [Page("/", "/rest.xml"), Page("/about", "/rest.xml", bad_priority=True), Page("/blog", "/rest.xml")]
    return [*blog, *news, *rest]


def write_site(folder: Path) -> Path:
    """Write a folder of sitemaps: three that are read, and one that is none."""
    folder.mkdir(parents=True)
    names = list(dict.fromkeys(page.sitemap for page in pages_of_site()))
    for name in names:
        entries = "".join(page.xml() for page in pages_of_site() if page.sitemap == name)
        (folder / name[1:]).write_text(
            f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset {_SPACES}>\n{entries}</urlset>\n'
        )
    (folder / "broken.xml").write_text("this is no sitemap")
    lines = [f"Sitemap: https://{HOST}{name}\n" for name in (*names, "/broken.xml")]
    (folder / "robots.txt").write_text("".join(lines))
    return folder


@contextmanager
def explored(*targets: str | Path) -> Iterator[Explorer]:
    """Give an explorer over targets, in this process, when everything is read."""
    sources = find_sources([str(target) for target in targets])
    explorer = Explorer(sources, ((source, source.stream(None, pages_once=True)) for source in sources))
    try:
        explorer.start()
        explorer.loader.wait()
        yield explorer
    finally:
        explorer.close()


@dataclass
class Viewer:
    """A running `usp view`.

    :param process: None, if it runs in this process.
    """

    process: subprocess.Popen[str] | None
    port: int
    token: str

    def request(
        self, path: str, *, method: str = "GET", body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Send a request with these headers only. Return the status, the headers and the body of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
        finally:
            connection.close()

    @property
    def key(self) -> dict[str, str]:
        """The header with the token."""
        return {"Authorization": f"Bearer {self.token}"}

    def ask(self, path: str, **query: object) -> Any:
        """Return the answer of a path below /api/, which must be a good one."""
        status, _, body = self.request(f"/api/{path}?{urllib.parse.urlencode(query)}", headers=self.key)
        assert status == 200, body
        return json.loads(body)

    def post(self, path: str, value: object) -> tuple[int, Any]:
        """Post JSON to a path below /api/. Return the status and the answer."""
        headers = {**self.key, "X-Usp": "1"}
        status, _, body = self.request(f"/api/{path}", method="POST", body=json.dumps(value).encode(), headers=headers)
        return status, json.loads(body)

    def end(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """End it with a signal. Return its exit code, and what it has said on standard error."""
        assert self.process is not None
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=20)
        return self.process.returncode, errors


@contextmanager
def viewing(*arguments: str | Path, command: str = "view", **variables: str) -> Iterator[Viewer]:
    """Run `usp view`, as a user does. It ends here, if it has not ended before."""
    process = subprocess.Popen(
        [sys.executable, "-m", "usp", command, *map(str, arguments), "--no-open"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**variables),
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"Explore at http://[^/]+:(\d+)/\?token=(\S+)\n", line)
        assert found is not None, line or process.stderr.read()
        yield Viewer(process, int(found[1]), found[2])
    finally:
        if process.poll() is None:
            process.terminate()  # so that it removes its temporary folder
        try:
            process.communicate(timeout=20)
        finally:
            process.kill()
