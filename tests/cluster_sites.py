"""Sites for tests of clusters, and what a crawl of them must have: that of a crawl without a cluster."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import duckdb

from many_sites import Sites
from support import write_archive
from usp.cli.demo import demo_site
from usp.crawl import open_crawl

__all__ = ["Killing", "Watching", "add_sites", "children_named", "rows_of_run", "run_examples"]


def add_sites(sites: Sites, count: int, first: int = 0, seconds: float = 0.0) -> list[str]:
    """Add small sites, which answer after some seconds. Return their URLs."""
    urls = []
    for number in range(first, first + count):
        host = f"127.1.{number // 200}.{number % 200 + 1}"
        pages = {f"/{name}.xml": [f"/{name}{page}" for page in range(number % 5 + 1)] for name in "ab"}
        urls.append(sites.add(host, pages))
        sites.answers[host] = {path: replace(one, seconds=seconds) for path, one in sites.answers[host].items()}
    return urls


def rows_of_run(path: str | Path, run: int) -> list[tuple[object, ...]]:
    """What one run says: a row for each page, with its site, the outcome of that, and its sitemap.

    Every row of the tables counts, so a site that is there twice has its pages twice, or four times.
    """
    crawled = open_crawl(path)
    with duckdb.connect() as connection:
        for name in ("sites", "sitemaps", "pages"):
            connection.register(name, getattr(crawled, name)().to_arrow())
        files = f"read_parquet('{path}/sites/*.parquet')" if "://" not in str(path) else "sites"
        return connection.sql(
            f"""SELECT o.site, o.outcome, s.url, p.url FROM {files} o
                JOIN sitemaps s ON o.site = s.site AND o.run = s.run
                LEFT JOIN pages p ON p.site = s.site AND p.document = s.document
                WHERE o.run = {run} ORDER BY ALL"""
        ).fetchall()


def children_named(text: str, parent: int | None = None) -> list[int]:
    """Return the ids of processes below this one, or below another, whose command has a text."""
    found: list[int] = []
    below = {parent or os.getpid()}
    commands: dict[int, tuple[int, str]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                above = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                commands[int(entry.name)] = above, (entry / "cmdline").read_text().replace("\0", " ")
            except (OSError, ValueError):
                continue
    while new := {pid for pid, (above, _) in commands.items() if above in below} - below:
        below |= new
        found += [pid for pid in new if text in commands[pid][1]]
    return found


class Killing:
    """Kills a process now and then, while the context lasts: each time that `is_time` says so.

    :param find: returns the ids of processes, of which the first is killed.
    """

    def __init__(self, find: Callable[[], Iterable[int]], is_time: Callable[[int], bool], times: int) -> None:
        self.killed = 0
        self._find, self._is_time, self._times = find, is_time, times
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        while not self._ended.wait(0.02) and self.killed < self._times:
            if self._is_time(self.killed):
                for pid in list(self._find())[:1]:
                    os.kill(pid, 9)
                    self.killed += 1
                    time.sleep(0.2)

    def __enter__(self) -> Killing:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


class Watching:
    """Looks, while the context lasts, which processes are new: those that were not there when it began.

    :param find: returns the ids of processes.
    """

    def __init__(self, find: Callable[[], Iterable[int]]) -> None:
        self.new: set[int] = set()
        self._find = find
        self._before = set(find())
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        while not self._ended.wait(0.02):
            self.new |= set(self._find()) - self._before

    def __enter__(self) -> Watching:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


def run_examples(section: str, folder: Path) -> int:
    """Run the Python examples in a section of the guide to clusters on the example website. Return their number.

    The bucket of the examples is a folder, which has a WARC file of that website.
    """
    guide = (Path(__file__).parents[1] / "docs" / "clusters.md").read_text("utf-8")
    examples = re.findall(
        r"```python\n(.*?)```", guide.partition(f"\n## {section}\n")[2].partition("\n## ")[0], re.DOTALL
    )
    with demo_site() as homepage:
        write_archive(folder / "crawl.warc.gz", homepage)
        for example in examples:
            text = example.replace("https://www.example.org/", homepage).replace("s3://bucket", str(folder))
            exec(compile(text, "clusters.md", "exec"), {})  # noqa: S102 -- running it is the test
    return len(examples)
