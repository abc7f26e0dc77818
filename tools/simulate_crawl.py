"""Simulate a crawl on a cluster: how long it takes, and what the others wait for at its end.

    python tools/simulate_crawl.py --sites 1000000 --cores 8 32 128
    python tools/simulate_crawl.py --sites 1000000 --cores 32 --sites-per-task 200 --request-seconds 20

Sites are drawn (`drawn_sites.py`). The rules are those of usp:

- All sites of a domain are in one task, chosen by a hash; there is one task for every `--sites-per-task` sites.
- A core runs one task after another, in their order. A task that is ready starts as soon as a core is free.
- A task fetches `--sites-at-once` sites at once, in the order of their names, and at most `--per-domain` of one domain.
- A site takes robots.txt, then its index, then its sitemaps, `--per-host` at once. All sites of a domain together make
  at most `--per-domain` requests at once. A silent site takes five requests that time out one after another: https,
  http, robots.txt, known paths.
- Answers are worked on one at a time, as in one process: so many milliseconds for each, and for each site.

Tasks share nothing: the sites at one address are not counted across them, no core is slower than another, nothing is
lost or run twice, and the server of a site is as fast with many requests as with one.
"""

from __future__ import annotations

import argparse
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count
from math import ceil
from zlib import crc32

from drawn_sites import DrawnSite, draw_sites

__all__ = ["Rules", "Simulated", "simulate", "task_seconds", "tasks_of"]

_SILENT_REQUESTS = 5  # measured, of a host that accepts connections and never answers


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What a crawl may do, and what its steps take. The seconds were measured by `measure_clusters.py`."""

    sites_per_task: int = 2_000
    sites_at_once: int = 200
    per_host: int = 2
    per_domain: int = 8
    request_seconds: float = 120.0  #: after which a request times out
    task_seconds: float = 0.3  #: to start a task and to commit its part
    cpu_per_request: float = 0.0009
    cpu_per_site: float = 0.0015


@dataclass(frozen=True)
class Simulated:
    """How a crawl went on some cores."""

    cores: int
    tasks: int
    seconds: float  #: from the first start to the last end
    busy: float  #: of all cores together
    tail: float  #: from when a core had nothing left to do, to the end

    @property
    def use(self) -> float:
        """The share of their time that cores had a task."""
        return self.busy / (self.cores * self.seconds)


def tasks_of(sites: Sequence[DrawnSite], rules: Rules) -> list[list[DrawnSite]]:
    """Return the sites of each task."""
    tasks: list[list[DrawnSite]] = [[] for _ in range(max(1, ceil(len(sites) / rules.sites_per_task)))]
    for site in sites:
        tasks[crc32(site.domain.encode()) % len(tasks)].append(site)
    return [sorted(task, key=lambda site: site.address) for task in tasks]


def simulate(durations: Iterable[float], cores: int) -> Simulated:
    """Run tasks that take so long, in their order, on some cores."""
    free = [0.0] * cores
    heapify(free)
    taken = list(durations)
    for seconds in taken:
        heapreplace(free, free[0] + seconds)
    return Simulated(cores, len(taken), max(free), sum(taken), max(free) - min(free))


def task_seconds(sites: Sequence[DrawnSite], rules: Rules) -> float:
    """Return how long a task takes that has a core for itself."""
    return rules.task_seconds + _Task(sites, rules).run()


class _Site:
    """A site that is being fetched: what it still has to request, and what runs."""

    __slots__ = ("left", "running", "site", "step")

    def __init__(self, site: DrawnSite) -> None:
        self.site = site
        self.left = 0
        self.running = 0
        self.step = 0  # robots.txt, index, sitemaps


class _Task:
    """Steps from event to event: an answer arrives, or has been worked on."""

    def __init__(self, sites: Sequence[DrawnSite], rules: Rules) -> None:
        self._rules = rules
        self._now = self._cpu_free = 0.0
        self._events: list[tuple[float, int, Callable[[_Site], None], _Site]] = []
        self._numbers = count()
        self._queue = deque(sites)
        self._held: dict[str, deque[DrawnSite]] = {}  # sites that wait for others of their domain
        self._running = 0
        self._sites_of_domain: Counter[str] = Counter()
        self._requests_of_domain: Counter[str] = Counter()
        self._waiting: dict[str, deque[_Site]] = {}  # requests that wait for others of their domain

    def run(self) -> float:
        """Return when the last site has ended."""
        self._start_sites()
        while self._events:
            self._now, _, happens, site = heappop(self._events)
            happens(site)
        return self._now

    def _at(self, seconds: float, happens: Callable[[_Site], None], site: _Site) -> None:
        heappush(self._events, (seconds, next(self._numbers), happens, site))

    def _start_sites(self) -> None:
        while self._queue and self._running < self._rules.sites_at_once:
            site = self._queue.popleft()
            if self._sites_of_domain[site.domain] < self._rules.per_domain:
                self._sites_of_domain[site.domain] += 1
                self._start_site(site)
            else:
                self._held.setdefault(site.domain, deque()).append(site)

    def _start_site(self, site: DrawnSite) -> None:
        self._running += 1
        found = _Site(site)
        if site.is_silent:
            self._at(self._now + _SILENT_REQUESTS * self._rules.request_seconds, self._end_site, found)
            return
        found.left = 1
        self._request(found)

    def _request(self, site: _Site) -> None:
        """Start as many requests of a site as may run; the others wait for their turn."""
        domain = site.site.domain
        while site.left and site.running < self._rules.per_host:
            site.left -= 1
            site.running += 1
            if self._requests_of_domain[domain] < self._rules.per_domain:
                self._send(site)
            else:
                self._waiting.setdefault(domain, deque()).append(site)

    def _send(self, site: _Site) -> None:
        self._requests_of_domain[site.site.domain] += 1
        self._at(self._now + site.site.seconds, self._arrived, site)

    def _arrived(self, site: _Site) -> None:
        """Work on an answer, after those that arrived before it. Its place is free for another request."""
        domain = site.site.domain
        self._requests_of_domain[domain] -= 1
        if waiting := self._waiting.get(domain):
            self._send(waiting.popleft())
        self._at(self._work(self._rules.cpu_per_request), self._answered, site)

    def _work(self, seconds: float) -> float:
        self._cpu_free = max(self._cpu_free, self._now) + seconds
        return self._cpu_free

    def _answered(self, site: _Site) -> None:
        site.running -= 1
        if not site.left and not site.running:
            site.step += 1
            site.left = (1, site.site.sitemaps, 0)[site.step - 1]
            if not site.left:
                self._at(self._work(self._rules.cpu_per_site), self._end_site, site)
                return
        self._request(site)

    def _end_site(self, site: _Site) -> None:
        self._running -= 1
        domain = site.site.domain
        if held := self._held.get(domain):
            self._start_site(held.popleft())
        else:
            self._sites_of_domain[domain] -= 1
        self._start_sites()


def _why(task: Sequence[DrawnSite], seconds: float) -> str:
    """Return what makes a task long."""
    domains = Counter(site.domain for site in task)
    domain, sites = domains.most_common(1)[0]
    slowest = max(task, key=lambda site: site.requests * site.seconds * (not site.is_silent))
    return (
        f"  {seconds:8,.0f} s: {len(task):,} sites, of which {domain} has {sites:,}; the slowest has"
        f" {slowest.sitemaps:,} sitemaps, {slowest.seconds:.1f} s each; {sum(site.is_silent for site in task)} silent"
    )


def main() -> None:
    """Print how long a crawl takes on some cores, and its longest tasks."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sites", type=int, default=100_000)
    parser.add_argument("--cores", type=int, nargs="+", default=[2, 8, 32], help="of all executors together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.3, help="median of the time until an answer")
    for name, default in Rules().__dict__.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default)
    arguments = parser.parse_args()
    rules = Rules(**{name: getattr(arguments, name) for name in Rules().__dict__})
    tasks = tasks_of(draw_sites(arguments.sites, arguments.seed, arguments.seconds), rules)
    durations = [task_seconds(task, rules) for task in tasks]
    print(
        f"{arguments.sites:,} sites in {len(tasks):,} tasks; a task takes {sorted(durations)[len(tasks) // 2]:,.0f} s"
    )
    for cores in arguments.cores:
        found = simulate(durations, cores)
        print(
            f"{cores:6,} cores: {found.seconds / 3600:8.2f} h, {arguments.sites / found.seconds * 3600 / cores:9,.0f}"
            f" sites per hour and core, busy {found.use:4.0%}, idle cores at the end for {found.tail:,.0f} s"
        )
    print("The longest tasks:")
    for task, seconds in sorted(zip(tasks, durations, strict=True), key=lambda pair: -pair[1])[:3]:
        print(_why(task, seconds))


if __name__ == "__main__":
    main()
