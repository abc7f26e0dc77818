"""What is measured of a whole process: the memory and cost of sites, hostile documents, the time of an import."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from bench.documents import HOSTILE, MB, write_hostile
from bench.environments import OURS
from bench.measure import NotMeasured, Ratio, Workshop
from bench.report import Result, Target, Verdict, duration, significant

IMPORTS_PER_ROUND = 8
HOSTILE_SIZES = (25, 50, 100)
MEMORY_SITE = (100, 50_000)
SITE_PAGES = 5_000
#: Sitemaps of a site, and how often it is read: a site of ten is too quickly read for one reading to be steady.
SITES = {10: 20, 100: 4, 1_000: 1}

Progress = Callable[[str], None]
Outcome = tuple[bool, str, str, str]  # whether it is good enough; what was found, its spread, and details


@dataclass(frozen=True)
class Whole:
    """A row of its own."""

    name: str
    what: str
    against: str
    target: Target
    measure: Callable[[Workshop, Progress, Target], Outcome]
    peer: str = ""  # the environment that it is compared with, if there is one

    def result(self, workshop: Workshop, progress: Progress) -> Result:
        """What it has come to."""
        try:
            is_met, found, spread, detail = self.measure(workshop, progress, self.target)
            verdict = Verdict.of(is_met)
        except NotMeasured as reason:
            verdict = Verdict.SKIPPED if reason.is_skipped else Verdict.MISSED
            found = f"not there yet: {reason}" if reason.is_skipped else f"failed: {reason}"
            spread = detail = ""
        return Result(self.name, self.what, self.against, found, spread, str(self.target), verdict, detail)


def _memory(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    sitemaps, pages = MEMORY_SITE
    progress(f"memory: writing {sitemaps} sitemaps")
    homepage = workshop.site(sitemaps, pages)
    progress("memory: reading them")
    answer = ask_fresh(workshop, sitemaps * pages, "site", url=homepage)
    peak = answer["memory"] / MB
    cost = duration(answer["cpu"] / answer["pages"])
    return target.is_met_by(peak), f"{peak:.0f} MB", "one run", f"{answer['pages']:,.0f} pages, {cost} of CPU per page"


def _check(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    sitemaps, pages = MEMORY_SITE
    homepage, small = workshop.proper_site(sitemaps, pages), workshop.site(min(SITES), SITE_PAGES)
    ours, trees, whole = [], [], []
    for number in workshop.rounds_in_time():
        progress(f"check: round {number + 1} of {workshop.rounds}")
        checked, tree = (
            ask_fresh(workshop, sitemaps * pages, "check", url=homepage, warm_up=small, is_check=is_check)
            for is_check in (True, False)
        )
        ours.append(checked["seconds"])
        trees.append(tree["seconds"])
        whole.append(tree["seconds"] + tree["reading"])
    ratio, of_whole = Ratio.of(ours, trees), Ratio.of(ours, whole)
    detail = (
        f"{duration(min(ours))} against {duration(min(trees))}; with every URL read, {_times(of_whole)} of that time"
    )
    return target.is_met_by(ratio.best), _times(ratio), spread_of(ratio, len(ours)), detail


def _check_memory(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    sitemaps, pages = MEMORY_SITE
    homepage, small = workshop.proper_site(sitemaps, pages), workshop.site(min(SITES), SITE_PAGES)
    progress("check-memory")
    answer = ask_fresh(workshop, sitemaps * pages, "check", url=homepage, warm_up=small, is_check=True)
    peak = answer["memory"] / MB
    return target.is_met_by(peak), f"{peak:.0f} MB", "one run", f"{answer['pages']:,.0f} pages"


def _sites(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    progress("sites: writing sitemaps")
    homepages = {sitemaps: workshop.site(sitemaps, SITE_PAGES) for sitemaps in SITES}
    costs: dict[int, list[float]] = {sitemaps: [] for sitemaps in SITES}
    memory: dict[int, float] = {}
    for number in workshop.rounds_in_time():
        for sitemaps, times in SITES.items():
            progress(f"sites: {sitemaps} sitemaps, round {number + 1} of {workshop.rounds}")
            asked = {"url": homepages[sitemaps], "times": times, "warm_up": homepages[min(SITES)]}
            answer = ask_fresh(workshop, sitemaps * SITE_PAGES, "site", **asked)
            costs[sitemaps].append(answer["cpu"] / times / answer["pages"])
            memory[sitemaps] = answer["memory"] / MB
    ratio = growth(list(costs.values()))
    detail = "; ".join(
        f"{sitemaps:,} sitemaps {duration(min(costs[sitemaps]))} of CPU per page, {memory[sitemaps]:.0f} MB"
        for sitemaps in SITES
    )
    return target.is_met_by(ratio.best), _times(ratio), spread_of(ratio, len(costs[10])), detail


def _hostile(kind: str) -> Callable[[Workshop, Progress, Target], Outcome]:
    def measure(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
        paths = {size: workshop.folder / f"{kind}-{size}.xml" for size in HOSTILE_SIZES}
        pages = {size: write_hostile(path, kind, size * MB) for size, path in paths.items()}
        seconds: dict[int, list[float]] = {size: [] for size in HOSTILE_SIZES}
        grown: dict[int, list[float]] = {size: [] for size in HOSTILE_SIZES}
        for number in workshop.rounds_in_time():
            for size, path in paths.items():
                progress(f"hostile {kind}: {size} MB, round {number + 1} of {workshop.rounds}")
                answer = ask_fresh(workshop, pages[size], "hostile", file=str(path))
                seconds[size].append(answer["seconds"] / size)
                grown[size].append(answer["grown"] / MB / size)
        for path in paths.values():
            path.unlink()
        time_ratio, memory_ratio = rise(list(seconds.values())), rise(list(grown.values()))
        is_met = target.is_met_by(time_ratio.best) and target.is_met_by(memory_ratio.best)
        detail = "; ".join(
            f"{size} MB {duration(min(seconds[size]))} and {significant(min(grown[size]))} MB of memory per MB"
            for size in HOSTILE_SIZES
        )
        found = f"{_times(time_ratio)} in time, {_times(memory_ratio)} in memory"
        return is_met, found, spread_of(time_ratio, len(seconds[25])), detail

    return measure


def _import(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    bare, ours = [], []
    progress("import")
    for _ in range(workshop.rounds * IMPORTS_PER_ROUND + 1):
        bare.append(_started("pass"))
        ours.append(_started("import usp.tree"))
    del bare[0], ours[0]  # these had yet to write and read bytecode
    best = 1000 * (min(ours) - min(bare))
    median = 1000 * (statistics.median(ours) - statistics.median(bare))
    ratio = Ratio.of(ours, bare)
    said = f"{significant(best)} ms more, {significant(ratio.best)}x the time"
    detail = f"{duration(min(ours))} against {duration(min(bare))} at best; medians differ by {significant(median)} ms"
    return target.is_met_by(best), said, f"median {significant(median)} ms more in {len(bare)}", detail


def _started(program: str) -> float:
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, cwd="/")  # noqa: S603 -- two programs of ours
    if done.returncode:
        raise NotMeasured(done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2])
    return time.perf_counter() - start


def ask_fresh(workshop: Workshop, pages: int, command: str, **arguments: Any) -> dict[str, Any]:
    """What a new process of ours answers, if it finds all pages."""
    with workshop.fresh_worker(OURS) as worker:
        answer = worker.ask(command, **arguments)
    if answer["pages"] != pages:
        raise NotMeasured(f"found {answer['pages']:,.0f} of {pages:,} pages")
    return answer


def rise(costs: list[list[float]]) -> Ratio:
    """How much more a larger thing costs, by its size, than a smaller one, at most; costs are given by rising size."""

    def most(of_sizes: Sequence[float]) -> float:
        return max(larger / smaller for smaller, larger in combinations(of_sizes, 2))

    of_rounds = [most(of_round) for of_round in zip(*costs, strict=True)]
    return Ratio(most([min(of_size) for of_size in costs]), min(of_rounds), max(of_rounds))


def growth(costs: list[list[float]]) -> Ratio:
    """The most of several costs against the least, each the best of its rounds; and so in each round."""
    of_rounds = [max(of_round) / min(of_round) for of_round in zip(*costs, strict=True)]
    best = [min(of_size) for of_size in costs]
    return Ratio(max(best) / min(best), min(of_rounds), max(of_rounds))


def _times(ratio: Ratio) -> str:
    return f"{significant(ratio.best)}x"


def spread_of(ratio: Ratio, rounds: int) -> str:
    """The least and most of any round."""
    return f"{significant(ratio.least)}..{significant(ratio.most)}x in {rounds}"


WHOLES = (
    Whole(
        "memory",
        f"site of {MEMORY_SITE[0]} gzipped sitemaps of {MEMORY_SITE[1]:,}: tree, then every URL; peak memory",
        "",
        Target(150, " MB", is_most=True),
        _memory,
    ),
    Whole(
        "check",
        f"site of {MEMORY_SITE[0]} gzipped sitemaps of {MEMORY_SITE[1]:,}: all that `usp check` looks for",
        "the tree alone",
        Target(2, "x its time", is_most=True),
        _check,
    ),
    Whole(
        "check-memory",
        "the same; peak memory",
        "",
        Target(200, " MB", is_most=True),
        _check_memory,
    ),
    Whole(
        "sites",
        f"sites of 10, 100 and 1,000 gzipped sitemaps of {SITE_PAGES:,}: tree, then every URL; CPU time per page",
        "the cheapest of them",
        Target(1.1, "x its cost", is_most=True),
        _sites,
    ),
    Whole(
        "import",
        "python -c 'import usp.tree'",
        "python -c pass",
        Target(40, " ms more", is_most=True),
        _import,
    ),
    *(
        Whole(
            f"hostile-{kind}",
            f"urlset of {', '.join(map(str, HOSTILE_SIZES))} MB, {what}: time and memory per MB",
            "a smaller one",
            Target(1.5, "x its cost", is_most=True),
            _hostile(kind),
        )
        for kind, what in {
            "text": "nine tenths of it one text",
            "attributes": "up to 10 million attributes on one tag",
            "depth": "up to 14 million elements deep",
        }.items()
    ),
)
assert {whole.name for whole in WHOLES} >= {f"hostile-{kind}" for kind in HOSTILE}
