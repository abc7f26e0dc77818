"""What a worker does with the sites of a crowd: crawls them, and notes how long the event loop stood still meanwhile.

A task of the event loop sleeps 5 ms again and again. How much later it wakes is how long the loop did something else,
or waited for a thread that held Python's lock. Of that, only time counts in which this process used a processor: what
other programs do on the machine is not ours.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.crawls import Answer, peak_memory

_BEAT = 0.005
_LATE = 0.05  # a stall of which the stack is kept
_SITES_BETWEEN_LOOKS = 25  # at the memory


class Heartbeat:
    """The stalls of an event loop. With `explains`, also what ran in the loop's thread during each long one."""

    def __init__(self, explains: bool = False) -> None:
        self.longest = 0.0
        self.raw = 0.0
        self.stacks: Counter[str] = Counter()
        self._last = time.perf_counter()
        self._thread = threading.get_ident()
        self._is_over = threading.Event()
        self.collecting = 0.0  # the longest time that the garbage collector took
        gc.callbacks.append(self._note_collection)
        if explains:
            threading.Thread(target=self._watch, daemon=True).start()

    async def run(self) -> None:
        """Beat until it is cancelled."""
        try:
            worked = time.process_time()
            self._last = time.perf_counter()
            while True:
                await asyncio.sleep(_BEAT)
                now, work = time.perf_counter(), time.process_time()
                late = now - self._last - _BEAT
                self.raw = max(self.raw, late)
                self.longest = max(self.longest, min(late, work - worked))
                self._last, worked = now, work
        finally:
            gc.callbacks.remove(self._note_collection)
            self._is_over.set()

    def _note_collection(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._collecting_since = time.thread_time()
        else:
            self.collecting = max(self.collecting, time.thread_time() - self._collecting_since)

    def _watch(self) -> None:
        while not self._is_over.wait(0.01):
            late = time.perf_counter() - self._last - _BEAT
            if late >= _LATE:
                frames = traceback.extract_stack(sys._current_frames()[self._thread])
                names = [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames[-6:]]
                self.stacks[" < ".join(reversed(names))] += 1


def resident_memory() -> int:
    """Return the memory that this process has now, in bytes."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


def crawl_crowd(
    sites: list[str] | str,
    *,
    warm_up: list[str] | None = None,
    at_once: int = 200,
    options: dict[str, Any] | None = None,
    limits: dict[str, Any] | None = None,
    requests: dict[str, int] | None = None,
    addresses: dict[str, str] | None = None,
    explains: bool = False,
    reports: bool = False,
    folder: str | None = None,
) -> Answer:
    """Crawl sites, or those of a list, into a folder. Return stalls, memory, and the seconds of each site.

    :param limits: those of each tree.
    :param requests: limits on requests at once.
    :param addresses: names, and their addresses.
    """
    with TemporaryDirectory(prefix="usp-bench-") as temporary:
        crawling = _crawl(
            sites if isinstance(sites, list) else [sites],
            warm_up or [],
            folder or temporary,
            _options(at_once, options or {}, limits or {}, requests or {}),
            addresses or {},
            explains,
            reports,
        )
        return asyncio.run(crawling)


def _options(at_once: int, options: dict[str, Any], limits: dict[str, Any], requests: dict[str, int]) -> Any:
    crawl = import_module("usp.crawl")
    tree: dict[str, Any] = {
        "limits": import_module("usp.limits").Limits(**limits),
        "politeness": import_module("usp.politeness").Politeness(first_tries=1, retry_seconds=0.05),
    }
    return crawl.CrawlOptions(
        sites_at_once=at_once,
        tree=tree,
        requests=crawl.RequestLimits(**requests),
        **{"known_paths": "never", **options},
    )


async def _crawl(
    sites: list[str],
    warm_up_sites: list[str],
    folder: str,
    options: Any,
    addresses: dict[str, str],
    explains: bool,
    reports: bool,
) -> Answer:
    crawl_async = import_module("usp.crawl").crawl_async
    with TemporaryDirectory(prefix="usp-bench-") as warm_up:
        await crawl_async(warm_up_sites, warm_up, options=options)  # imports all that is needed
    heart, memory, seconds = Heartbeat(explains), _MemorySamples(reports), dict[str, float]()

    def note(progress: Any) -> None:
        memory.note(progress.sites)
        if len(seconds) < 20_000:
            seconds[progress.row["site"]] = progress.row["seconds"]

    beating = asyncio.create_task(heart.run())
    started, worked = time.perf_counter(), time.process_time()
    crawled = await crawl_async(sites, folder, options=options, progress=note, client_options=_resolving(addresses))
    took, work = time.perf_counter() - started, time.process_time() - worked
    memory.keep(sum(crawled.runs[-1].outcomes.values()))
    beating.cancel()
    with suppress(asyncio.CancelledError):
        await beating
    gc.collect()
    return {
        "stall": heart.longest,
        "raw stall": heart.raw,
        "collecting": heart.collecting,
        "stacks": heart.stacks.most_common(12),
        "memory": peak_memory(),
        "samples": memory.samples,
        "after": resident_memory(),
        "sites": seconds,
        "outcomes": dict(crawled.runs[-1].outcomes),
        "wall": took,
        "cpu": work,
        "threads": threading.active_count(),
        "arrow": import_module("pyarrow").default_memory_pool().max_memory(),
    }


class _MemorySamples:
    """The most memory of the process until 250, 500, 1,000, 2,000 ... sites, and until the last: since the one before.

    One look tells little: what is in memory at a moment depends on the sites that are being fetched and written.
    """

    def __init__(self, reports: bool) -> None:
        self.samples: dict[int, int] = {}
        self._reports = reports
        self._next = 250
        self._most = 0

    def note(self, sites: int) -> None:
        if sites % _SITES_BETWEEN_LOOKS == 0 or sites == self._next:
            self._most = max(self._most, resident_memory())
        if sites == self._next:
            self.keep(sites)
            self._next *= 2

    def keep(self, sites: int) -> None:
        if self._most:
            self.samples[sites] = self._most
            if self._reports:
                print(f"{sites:>9,} sites, {self._most / 1e6:.0f} MB", file=sys.stderr, flush=True)
        self._most = 0


def _resolving(addresses: dict[str, str]) -> dict[str, Any]:
    """Return options of a client that make names of hosts lead to these addresses."""
    system = import_module("usp.web_client.lookups").system_lookup
    return {"_resolve": lambda host, port: system(addresses.get(host, host), port)} if addresses else {}


COMMANDS: dict[str, Callable[..., Answer]] = {"crawl crowd": crawl_crowd}
