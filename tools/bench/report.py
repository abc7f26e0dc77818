"""Draws the table, and the page of the documentation that holds it."""

from __future__ import annotations

import os
import platform
import textwrap
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path


class Verdict(Enum):
    """Whether a row's target is met."""

    MET = "met"
    MISSED = "MISSED"
    NONE = "no target"
    SKIPPED = "skipped"

    @classmethod
    def of(cls, is_met: bool) -> Verdict:
        """Return the verdict on a row with a target."""
        return cls.MET if is_met else cls.MISSED


@dataclass(frozen=True)
class Target:
    """The number that a row must reach. Numbers are not rounded before they are judged."""

    number: float
    unit: str = "x as fast"
    is_most: bool = False

    def is_met_by(self, number: float) -> bool:
        """Return whether a number reaches the target."""
        return number <= self.number if self.is_most else number >= self.number

    def __str__(self) -> str:
        return f"at {'most' if self.is_most else 'least'} {self.number:g}{self.unit}"


@dataclass(frozen=True)
class Result:
    """A row of the table."""

    name: str
    what: str
    against: str
    found: str
    spread: str
    target: str
    verdict: Verdict
    detail: str = ""  # numbers behind what was found, which depend on the machine

    def cells(self) -> list[str]:
        """Return the cells of its row."""
        return [self.name, self.what, self.against, self.found, self.spread, self.target, self.verdict.value]


HEADINGS = ["row", "what is measured", "against", "found", "spread", "target", ""]


def significant(number: float) -> str:
    """Format a number with three digits, or with all before the point."""
    return f"{number:.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def duration(seconds: float) -> str:
    """Format seconds in a unit that fits them."""
    for size, unit in ((1, "s"), (1e-3, "ms")):
        if seconds >= size:
            return f"{significant(seconds / size)} {unit}"
    return f"{significant(seconds * 1e6)} µs"


def table(results: list[Result]) -> str:
    """Draw the table for a terminal; long cells go on in the next line."""
    widths = (18, 34, 22, 20, 18, 20, 9)
    rows = [HEADINGS, ["-" * width for width in widths], *(result.cells() for result in results)]
    lines = []
    for row in rows:
        cells = [textwrap.wrap(cell, width) or [""] for cell, width in zip(row, widths, strict=True)]
        for i in range(max(map(len, cells))):
            parts = [(cell[i] if i < len(cell) else "").ljust(width) for cell, width in zip(cells, widths, strict=True)]
            lines.append("  ".join(parts).rstrip())
    return "\n".join(lines)


def details(results: list[Result]) -> list[str]:
    """Return the numbers behind the rows."""
    return [f"{result.name}: {result.detail}" for result in results if result.detail]


def summary(results: list[Result]) -> str:
    """Count the targets that are met."""
    counts = {verdict: sum(result.verdict is verdict for result in results) for verdict in Verdict}
    said = [f"{count} {verdict.value.lower()}" for verdict, count in counts.items() if count]
    return f"{len(results)} rows: {', '.join(said)}"


def machine() -> str:
    """Describe the Python and the processor that this runs on."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    for line in info.read_text("utf-8", "replace").splitlines() if info.exists() else ():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{python} on {platform.system()} {platform.machine()}, {model}, {os.cpu_count()} cores"


def kind(is_compiled: bool) -> str:
    """Describe the usp that was measured."""
    return f"usp {'with its compiled parts' if is_compiled else 'in plain Python, as nothing of it is compiled'}"


METHOD = """\
## How it is measured

- 1.8.1 is that version of ultimate-sitemap-parser. lxml, scrapy and advertools are the newest versions at the time when
  `.bench/` was made; `make clean` removes it.
- The table has ratios of times of one run on one machine, never bare seconds: the best of several rounds of each side.
  The spread is the least and the highest ratio of any single round, and the number of rounds.
- Each side runs in a process and an environment of its own, and times itself. The sides take turns, round by round,
  after one run that is not counted. A run of less than 0.3 seconds is repeated for that long, and the mean counts.
  Garbage is collected as usual. Reading the file is not counted. Decoding it is not counted either, for a library that
  takes text only; but where gzip is compared, both sides inflate and decode it.
- Both sides must find the same pages. Their number and a checksum of their URLs are compared; where all fields are
  read, a checksum of all fields. Columns are compared with what a regular expression finds in the text. A row whose
  sides differ is missed, whatever its ratio.
- The files are generated, the same each time. `urlset` has 50,000 pages in 11 MB (1 MB gzipped), with a date, a
  frequency and a priority each; nearly all dates differ, and a fifth of the URLs have `&amp;`. `news` has 20,000 pages
  in 21 MB, with a news story, an image and two languages each as well. `references` has the same pages, with `&amp;`
  and `&#8217;` in every title, and `&amp;` in the name of every publication.
- Sites are served on loopback by another process, and read by a fresh one, without guessing at known paths. `sites`
  counts the processor time of the reading process, after it has read a site of ten sitemaps once; the smaller sites are
  read several times. Memory is the peak resident memory of the process.
- `waits`, `network` and `sites-asyncio` count the time that passes, from calling the front door to the last URL. Each
  response leaves the server 50 ms after its request came: one event loop has all responses ready, and only waits. Each
  round of each side is a fresh process, which first reads a small site that is not counted.
- The ideal of `waits` is the waiting for the 200 sitemaps alone. Fetching robots.txt and the index is counted; reading
  the pages of the tree is not.
- In `network`, usp (in threads) and scrapy have 16 requests at once; 1.8.1 has one, as it always does. 1.8.1 takes so
  long that it is measured once a run, and each round of usp is compared with that; scrapy has two rounds. So that a
  busy machine does not make 1.8.1 look slow, its time is at most its processor time plus the waits for its responses.
- Scrapy is a SitemapSpider that starts at robots.txt, without delays, robots rules or logging. It collects the pages'
  URLs where it filters entries, which is the cheapest way, and requests no page. URLs are compared in any order.
  `network-memory` is the worst of three processes.
- The sites of `sites-asyncio` have 2,000 loopback addresses. Both sides use one client for all of them. 1.8.1 reads 200
  of them, one after the other and once a run; its time for all is ten times that, and limited as above.
- `small-sites` has sites of 2, 3, 4 and 5 gzipped sitemaps of 50 pages, on 800 loopback addresses of one process. The
  peer is one session of aiohttp that fetches robots.txt, the index and the sitemaps, two at once from each site. It
  reads all bodies, and parses nothing. The processor time of the client counts. Both sides first fetch 50 sites with
  another client, which are not counted.
- `crawl` and `crawl-again` crawl the same sites into a new folder, with the documents and all tables, in one process;
  its processor time counts, that of all threads. The peer of `crawl-again` makes the same conditional requests. Both
  first crawl 50 sites into another folder, twice, which is not counted.
- `warc-cost` crawls one site of a million pages, in a fresh process each time.
- Hostile documents are read by a fresh process each. Time and memory per megabyte must not grow with the size.

`make bench` prints this table, `make bench WRITE=1` writes this page. `python tools/bench --list` names the rows,
`--only NAME` measures one, `--rounds N` sets how often, and `--strict` fails if a target is missed.
`python tools/bench --against PATH` compares this checkout of usp with another one, round by round, on the same rows.
"""


def page(results: list[Result], versions: dict[str, str], is_compiled: bool) -> str:
    """Return the page of the documentation."""
    libraries = ", ".join(f"{name} {version}" for name, version in versions.items())
    lines = [
        "# Benchmarks\n",
        "Written by `make bench WRITE=1`.\n",
        f"{datetime.now(UTC):%Y-%m-%d}, {machine()}. {libraries}; {kind(is_compiled)}.\n",
        f"{summary(results)}.\n",
        "| " + " | ".join(HEADINGS) + " |",
        "|" + "---|" * len(HEADINGS),
        *("| " + " | ".join(cell.replace("|", "\\|") for cell in result.cells()) + " |" for result in results),
        "\nThe numbers behind them, which depend on the machine:\n",
        *(f"- {detail}" for detail in details(results)),
        "\n" + METHOD,
    ]
    return "\n".join(lines)
