"""Measures rows: against another library, against a part of the work, or at several sizes.

A row has two functions. The first measures all rounds of both sides and judges them, for the table of `make bench`. The
second, `..._once`, measures usp alone for one round; `--against` compares two checkouts of usp with it.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from bench.crawls import summary
from bench.documents import MB, write_hostile
from bench.report import Target, duration, significant
from bench.servers import SMALL_SITEMAPS
from bench.workshop import OLD, OLD_WITH_PANDAS, OURS, Answer, NotMeasured, Progress, Worker, Workshop

IMPORTS_PER_ROUND = 8
HOSTILE_SIZES = (25, 50, 100)
#: A site for memory, and for checks: its sitemaps, and the pages of each.
LARGE_SITE = (100, 50_000)
MIDDLE_SITE = (20, 50_000)
#: Small sites, which a process reads first and which are not counted.
WARM_UP_SITE = (10, 5_000)
SMALL_SITE = (1, 10)
#: Sizes of sites, and how often each is read: one reading of a small site is too short to be steady.
SITES, SITE_PAGES = {10: 20, 100: 4, 1_000: 1}, 5_000
WAITS_SITE = (200, 10)
DELAY, AT_ONCE = 0.05, 16
PROBED_PAGES, PAGE_DELAY = 10_000, 0.02
MANY_SITES, SITES_AT_ONCE = 2_000, 64
#: How many sites 1.8.1 reads: one after the other, all of them would take minutes.
SITES_SAMPLE = 200
#: Sites of two to five gzipped sitemaps: how many, the pages of each sitemap, and how many sites at once.
SMALL_SITES, SMALL_PAGES, SMALL_AT_ONCE, SMALL_WARM_UP = 800, 50, 200, 50
#: Scrapy takes long, but little enough for several rounds; 1.8.1 is measured once.
SCRAPY_ROUNDS = 2
MEMORY_RUNS = 3
EXPORT_FORMATS = ("parquet", "csv", "jsonl")


class Outcome(NamedTuple):
    """The result of a row that was measured. `is_met` is None where there is no target."""

    is_met: bool | None
    found: str
    spread: str
    detail: str = ""


class Sample(NamedTuple):
    """One measurement of usp alone."""

    number: float
    unit: str = "s"  # or MB

    def __str__(self) -> str:
        return duration(self.number) if self.unit == "s" else f"{self.number:.0f} {self.unit}"


@dataclass(frozen=True)
class Ratio:
    """How many times one list of numbers is the other: the best of each, and the least and most of any round."""

    best: float
    least: float
    most: float

    @classmethod
    def of(cls, numbers: list[float], others: list[float]) -> Ratio:
        """Compare numbers of the same rounds."""
        of_rounds = [number / other for number, other in zip(numbers, others, strict=True)]
        return cls(min(numbers) / min(others), min(of_rounds), max(of_rounds))

    def spread(self, rounds: int) -> str:
        """Return the least and most of any round as text."""
        return f"{significant(self.least)}..{significant(self.most)}x in {rounds}"


def judged(ratio: Ratio, rounds: int, target: Target | None, detail: str) -> Outcome:
    """Judge a ratio by its target."""
    found = f"{significant(ratio.best)}{target.unit if target else 'x as fast'}"
    is_met = None if target is None else target.is_met_by(ratio.best)
    return Outcome(is_met, found, ratio.spread(rounds), detail)


def _range(seconds: list[float]) -> str:
    worst = f"worst {duration(max(seconds))}" if len(seconds) > 1 else "once"
    return f"{duration(min(seconds))} ({worst})"


# One file, read by two sides


@dataclass(frozen=True)
class Subject:
    """One side of a comparison: a worker's task on a file, in an environment."""

    environment: str
    task: str
    file: str
    is_pure: bool = False


@dataclass(frozen=True)
class Measured:
    """What a subject found when it was checked, and the seconds of each round."""

    found: Answer
    seconds: list[float]


def side_by_side(
    ours: Subject, theirs: Subject, workshop: Workshop, progress: Progress, target: Target | None
) -> Outcome:
    """Time a task on a file by two sides."""
    our_side, their_side = interleaved((ours, theirs), workshop, progress)
    return compared(our_side, their_side, target)


def side_once(ours: Subject, workshop: Workshop) -> Sample:
    """Time our side of it."""
    with workshop.fresh_worker(ours.environment, ours.is_pure) as worker:
        _checked(worker, ours, workshop)
        return Sample(_ask(worker, ours, workshop)["seconds"])


def interleaved(subjects: Sequence[Subject], workshop: Workshop, progress: Progress) -> list[Measured]:
    """Check each subject, then measure them in turn, round by round.

    Each has a process of its own: what an allocator did before makes a large difference to what comes after.
    """
    with ExitStack() as stack:
        sides = []
        for subject in subjects:
            progress(f"{subject.environment}: {subject.task}, checked")
            worker = stack.enter_context(workshop.fresh_worker(subject.environment, subject.is_pure))
            sides.append((subject, worker, Measured(_checked(worker, subject, workshop), [])))
        for number in workshop.rounds_in_time():
            for subject, worker, measured in sides:
                progress(f"{subject.environment}: {subject.task}, round {number + 1} of {workshop.rounds}")
                measured.seconds.append(_ask(worker, subject, workshop)["seconds"])
    return [measured for _, _, measured in sides]


def _ask(worker: Worker, subject: Subject, workshop: Workshop, check: bool = False) -> Answer:
    try:
        return worker.ask("timed", task=subject.task, file=workshop.file(subject.file), check=check)
    except NotMeasured as reason:
        raise NotMeasured(f"{subject.environment}: {reason}", reason.is_skipped) from None


def _checked(worker: Worker, subject: Subject, workshop: Workshop) -> Answer:
    """Run a task once, uncounted; return what it found."""
    found = _ask(worker, subject, workshop, check=True)
    if subject.is_pure and worker.ask("compiled")["compiled"]:
        raise NotMeasured("compiled parts are used despite USP_PURE=1")
    return found


def compared(ours: Measured, theirs: Measured, target: Target | None) -> Outcome:
    """Compare two sides. One that finds other pages misses the row, however fast it is."""
    if unequal := [key for key, value in ours.found.items() if theirs.found.get(key, value) != value]:
        said = ", ".join(f"{key} {ours.found[key]} against {theirs.found[key]}" for key in unequal)
        raise NotMeasured(f"not of the same: {said}")
    is_time = target is not None and target.is_most
    numbers, others = (ours.seconds, theirs.seconds) if is_time else (theirs.seconds, ours.seconds)
    pages = ours.found["pages"]
    each = f", {duration(min(ours.seconds) / pages)} each" if pages else ""
    detail = f"{_range(ours.seconds)} against {_range(theirs.seconds)}, {pages:,} pages{each}"
    return judged(Ratio.of(numbers, others), len(numbers), target, detail)


# Sites on loopback


def memory(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Measure the peak memory of fetching a large site's tree and reading all its URLs."""
    progress(f"memory: {LARGE_SITE[0]} sitemaps")
    answer = _read_large_site(workshop)
    peak = answer["memory"] / MB
    detail = f"{answer['pages']:,.0f} pages, {duration(answer['cpu'] / answer['pages'])} of CPU per page"
    return Outcome(target.is_met_by(peak), f"{peak:.0f} MB", "one run", detail)


def memory_once(workshop: Workshop) -> Sample:
    """Measure it once."""
    return _megabytes(_read_large_site(workshop))


def _read_large_site(workshop: Workshop) -> Answer:
    sitemaps, pages = LARGE_SITE
    return workshop.ask_ours(sitemaps * pages, "site", url=workshop.site(sitemaps, pages))


def _megabytes(answer: Answer) -> Sample:
    return Sample(answer["memory"] / MB, "MB")


def check(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Time the check of a large site against fetching its tree."""
    ours, trees, with_pages = [], [], []
    for number in workshop.rounds_in_time():
        progress(f"check: round {number + 1} of {workshop.rounds}")
        tree = _check_large_site(workshop, is_check=False)
        ours.append(_check_large_site(workshop)["seconds"])
        trees.append(tree["seconds"])
        with_pages.append(tree["seconds"] + tree["reading"])
    of_both = Ratio.of(ours, with_pages)
    detail = f"{duration(min(ours))} against {duration(min(trees))}; with every URL read, {significant(of_both.best)}x"
    return judged(Ratio.of(ours, trees), len(ours), target, f"{detail} of that time")


def check_once(workshop: Workshop) -> Sample:
    """Time the check of a large site."""
    return Sample(_check_large_site(workshop)["seconds"])


def check_memory(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Measure the peak memory of checking a large site."""
    progress("check-memory")
    answer = _check_large_site(workshop)
    peak = answer["memory"] / MB
    return Outcome(target.is_met_by(peak), f"{peak:.0f} MB", "one run", f"{answer['pages']:,.0f} pages")


def check_memory_once(workshop: Workshop) -> Sample:
    """Measure it once."""
    return _megabytes(_check_large_site(workshop))


def _check_large_site(workshop: Workshop, is_check: bool = True) -> Answer:
    sitemaps, pages = LARGE_SITE
    urls = {"url": workshop.own_pages_site(sitemaps, pages), "warm_up": workshop.site(*WARM_UP_SITE)}
    return workshop.ask_ours(sitemaps * pages, "check", **urls, is_check=is_check)


def sites(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Measure the processor time per page of sites of several sizes."""
    costs: dict[int, list[float]] = {sitemaps: [] for sitemaps in SITES}
    megabytes: dict[int, float] = {}
    for number in workshop.rounds_in_time():
        for sitemaps in SITES:
            progress(f"sites: {sitemaps} sitemaps, round {number + 1} of {workshop.rounds}")
            answer = _read_site(workshop, sitemaps)
            costs[sitemaps].append(answer["cpu"] / SITES[sitemaps] / answer["pages"])
            megabytes[sitemaps] = answer["memory"] / MB
    detail = "; ".join(
        f"{sitemaps:,} sitemaps {duration(min(costs[sitemaps]))} of CPU per page, {megabytes[sitemaps]:.0f} MB"
        for sitemaps in SITES
    )
    ratio = growth(list(costs.values()))
    return judged(ratio, len(costs[min(SITES)]), target, detail)


def sites_once(workshop: Workshop) -> Sample:
    """Measure the processor time of a site of 100 sitemaps."""
    return Sample(_read_site(workshop, 100)["cpu"])


def _read_site(workshop: Workshop, sitemaps: int) -> Answer:
    urls = {"url": workshop.site(sitemaps, SITE_PAGES), "warm_up": workshop.site(*WARM_UP_SITE)}
    return workshop.ask_ours(sitemaps * SITE_PAGES, "site", **urls, times=SITES[sitemaps])


def growth(costs: list[list[float]]) -> Ratio:
    """Compare the highest of several costs with the lowest, each the best of its rounds; and so in each round."""
    of_rounds = [max(of_round) / min(of_round) for of_round in zip(*costs, strict=True)]
    best = [min(of_size) for of_size in costs]
    return Ratio(max(best) / min(best), min(of_rounds), max(of_rounds))


# Hostile documents, and imports


def hostile(kind: str, workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Measure time and memory per megabyte of a hostile document, at several sizes."""
    seconds: dict[int, list[float]] = {size: [] for size in HOSTILE_SIZES}
    grown: dict[int, list[float]] = {size: [] for size in HOSTILE_SIZES}
    for number in workshop.rounds_in_time():
        for size in HOSTILE_SIZES:
            progress(f"hostile {kind}: {size} MB, round {number + 1} of {workshop.rounds}")
            answer = _read_hostile(workshop, kind, size)
            seconds[size].append(answer["seconds"] / size)
            grown[size].append(answer["grown"] / MB / size)
    for size in HOSTILE_SIZES:
        (workshop.folder / f"{kind}-{size}.xml").unlink()
    times, memories = rise(list(seconds.values())), rise(list(grown.values()))
    is_met = target.is_met_by(times.best) and target.is_met_by(memories.best)
    detail = "; ".join(
        f"{size} MB {duration(min(seconds[size]))} and {significant(min(grown[size]))} MB of memory per MB"
        for size in HOSTILE_SIZES
    )
    found = f"{significant(times.best)}x in time, {significant(memories.best)}x in memory"
    return Outcome(is_met, found, times.spread(len(seconds[min(HOSTILE_SIZES)])), detail)


def hostile_once(kind: str, workshop: Workshop) -> Sample:
    """Time the smallest of the documents."""
    return Sample(_read_hostile(workshop, kind, min(HOSTILE_SIZES))["seconds"])


def _read_hostile(workshop: Workshop, kind: str, size: int) -> Answer:
    path = workshop.folder / f"{kind}-{size}.xml"
    if not path.exists():
        workshop.shared[path.name] = {"pages": write_hostile(path, kind, size * MB)}
    return workshop.ask_ours(workshop.shared[path.name]["pages"], "hostile", file=str(path))


def rise(costs: list[list[float]]) -> Ratio:
    """Compare the costs of larger things with those of smaller ones, and return the highest. Sizes rise."""

    def most(of_sizes: Sequence[float]) -> float:
        return max(larger / smaller for smaller, larger in combinations(of_sizes, 2))

    of_rounds = [most(of_round) for of_round in zip(*costs, strict=True)]
    return Ratio(most([min(of_size) for of_size in costs]), min(of_rounds), max(of_rounds))


def import_time(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Time `import usp.tree` against a Python that imports nothing."""
    bare, ours = [], []
    progress("import")
    for _ in range(workshop.rounds * IMPORTS_PER_ROUND + 1):
        bare.append(_started(workshop, "pass"))
        ours.append(_started(workshop, "import usp.tree"))
    del bare[0], ours[0]  # these wrote and read bytecode
    best = 1000 * (min(ours) - min(bare))
    median = 1000 * (statistics.median(ours) - statistics.median(bare))
    found = f"{significant(best)} ms more, {significant(Ratio.of(ours, bare).best)}x the time"
    detail = f"{duration(min(ours))} against {duration(min(bare))} at best; medians differ by {significant(median)} ms"
    return Outcome(target.is_met_by(best), found, f"median {significant(median)} ms more in {len(bare)}", detail)


def import_once(workshop: Workshop) -> Sample:
    """Time the start of a Python that imports usp: the best of several."""
    return Sample(min(_started(workshop, "import usp.tree") for _ in range(IMPORTS_PER_ROUND)))


def _started(workshop: Workshop, program: str) -> float:
    start = time.perf_counter()
    done = subprocess.run(  # noqa: S603 -- the programs are in this file
        [sys.executable, "-c", program], capture_output=True, cwd="/", env=workshop.variables(OURS)
    )
    if done.returncode:
        raise NotMeasured(done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2])
    return time.perf_counter() - start


# Sites whose responses take their time


def waits(driver: str, workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Time a tree that is mostly waiting, against the waiting alone."""
    ideal = WAITS_SITE[0] / AT_ONCE * DELAY
    seconds = []
    for number in workshop.rounds_in_time():
        progress(f"waits, {driver}: round {number + 1} of {workshop.rounds}")
        seconds.append(waits_once(driver, workshop).number)
    ratio = Ratio.of(seconds, [ideal] * len(seconds))
    return judged(ratio, len(seconds), target, f"{_range(seconds)} against {duration(ideal)}")


def waits_once(driver: str, workshop: Workshop) -> Sample:
    """Time it once."""
    sitemaps, pages = WAITS_SITE
    urls = {"url": workshop.site(sitemaps, pages, DELAY), "warm_up": workshop.site(*SMALL_SITE)}
    options = {"driver": driver, "reads": False, "concurrency": AT_ONCE}
    return Sample(workshop.ask_ours(sitemaps * pages, "crawl", **urls, **options)["seconds"])


def probes(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Time a check that fetches all pages of a site, against the waiting alone."""
    ideal = PROBED_PAGES / AT_ONCE * PAGE_DELAY
    seconds = []
    for number in workshop.rounds_in_time():
        progress(f"probe: round {number + 1} of {workshop.rounds}")
        seconds.append(probes_once(workshop).number)
    ratio = Ratio.of(seconds, [ideal] * len(seconds))
    return judged(ratio, len(seconds), target, f"{_range(seconds)} against {duration(ideal)}")


def probes_once(workshop: Workshop) -> Sample:
    """Time it once."""
    urls = {"url": workshop.listed_pages(PROBED_PAGES, PAGE_DELAY), "warm_up": workshop.listed_pages(20, PAGE_DELAY)}
    return Sample(workshop.ask_ours(PROBED_PAGES, "probe", **urls, concurrency=AT_ONCE)["seconds"])


def network(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Time a crawl against 1.8.1, which is measured once."""
    ours = []
    for number in workshop.rounds_in_time():
        progress(f"network: round {number + 1} of {workshop.rounds}")
        ours.append(_crawl(workshop))
    progress("network: 1.8.1, once")
    theirs = undisturbed(workshop.ask_fresh(OLD, "crawl", **_delayed_site(workshop)), MIDDLE_SITE[0] + 2)
    return faster(ours, [theirs], target)


def network_scrapy(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Time a crawl against scrapy."""
    rounds = min(workshop.rounds, SCRAPY_ROUNDS)
    ours, theirs = [], []
    for number in range(rounds):
        progress(f"network: scrapy, round {number + 1} of {rounds}")
        ours.append(_crawl(workshop))
        theirs.append(workshop.ask_fresh("scrapy", "crawl scrapy", **_delayed_site(workshop), at_once=AT_ONCE))
    return faster(ours, theirs, target)


def network_once(workshop: Workshop) -> Sample:
    """Time a crawl once."""
    return Sample(_crawl(workshop)["seconds"])


def network_memory(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Measure the peak memory of a crawl."""
    progress("network: memory")
    peaks = [_crawl(workshop)["memory"] / MB for _ in range(MEMORY_RUNS)]
    spread = f"{min(peaks):.0f}..{max(peaks):.0f} MB in {len(peaks)}"
    return Outcome(target.is_met_by(max(peaks)), f"{max(peaks):.0f} MB", spread)


def network_memory_once(workshop: Workshop) -> Sample:
    """Measure it once."""
    return _megabytes(_crawl(workshop))


def _delayed_site(workshop: Workshop) -> dict[str, str]:
    return {"url": workshop.site(*MIDDLE_SITE, DELAY), "warm_up": workshop.site(*SMALL_SITE)}


def _crawl(workshop: Workshop) -> Answer:
    sitemaps, pages = MIDDLE_SITE
    return workshop.ask_ours(sitemaps * pages, "crawl", **_delayed_site(workshop), concurrency=AT_ONCE)


def many_sites(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Time many small sites at once, against 1.8.1 in a loop."""
    ours = []
    for number in workshop.rounds_in_time():
        progress(f"sites-asyncio: round {number + 1} of {workshop.rounds}")
        ours.append(_crawl_many_sites(workshop))
    progress("sites-asyncio: 1.8.1, once")
    sample = workshop.sites(MANY_SITES, DELAY)[:SITES_SAMPLE]
    asked = {"urls": sample, "warm_up": workshop.site(*SMALL_SITE)}
    theirs = _all_pages(workshop.ask_fresh(OLD, "crawl sites", **asked), sample)
    theirs = undisturbed(theirs, 2 * SITES_SAMPLE)
    seconds = theirs["seconds"] * MANY_SITES / SITES_SAMPLE
    found = faster(ours, [{**ours[0], "seconds": seconds}], target)
    detail = f"{found.detail}; 1.8.1 took {duration(theirs['seconds'])} for {SITES_SAMPLE} of them"
    return found._replace(detail=detail)


def many_sites_once(workshop: Workshop) -> Sample:
    """Time our side of it."""
    return Sample(_crawl_many_sites(workshop)["seconds"])


def _crawl_many_sites(workshop: Workshop) -> Answer:
    homepages = workshop.sites(MANY_SITES, DELAY)
    asked = {"urls": homepages, "warm_up": workshop.site(*SMALL_SITE), "at_once": SITES_AT_ONCE}
    return _all_pages(workshop.ask_fresh(OURS, "crawl sites asyncio", **asked), homepages)


def small_sites(side: str, workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Measure the processor time of the trees of small sites, against the same requests with aiohttp alone."""
    ours, theirs = [], []
    for number in workshop.rounds_in_time():
        progress(f"small-sites, {side}: round {number + 1} of {workshop.rounds}")
        theirs.append(_fetch_small_sites(workshop, "aiohttp"))
        ours.append(_fetch_small_sites(workshop, side))
    detail = f"{_range(ours)} of CPU per site against {_range(theirs)}"
    return judged(Ratio.of(ours, theirs), len(ours), target, detail)


def small_sites_once(side: str, workshop: Workshop) -> Sample:
    """Measure our side of it: the processor time of a site."""
    return Sample(_fetch_small_sites(workshop, side))


def _fetch_small_sites(workshop: Workshop, side: str) -> float:
    """Return the processor time of a site."""
    homepages = workshop.small_sites(SMALL_SITES, SMALL_PAGES)
    asked = {"urls": homepages, "warm_up": homepages[:SMALL_WARM_UP], "at_once": SMALL_AT_ONCE}
    answer = workshop.ask_fresh(OURS, "small sites", side=side, **asked)
    sitemaps = sum(SMALL_SITEMAPS[number % len(SMALL_SITEMAPS)] for number in range(SMALL_SITES))
    if answer["documents"] != 2 * SMALL_SITES + sitemaps:
        raise NotMeasured(f"{side}: fetched {answer['documents']:,} of {2 * SMALL_SITES + sitemaps:,} documents")
    cpu: float = answer["cpu"]
    return cpu / SMALL_SITES


def crawled(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Measure the processor time of a crawl of small sites into a folder, against the requests with aiohttp alone."""
    ours, theirs = [], []
    for number in workshop.rounds_in_time():
        progress(f"crawl: round {number + 1} of {workshop.rounds}")
        theirs.append(_fetch_small_sites(workshop, "aiohttp"))
        ours.append(crawled_once(workshop).number)
    detail = f"{_range(ours)} of CPU per site against {_range(theirs)}"
    return judged(Ratio.of(ours, theirs), len(ours), target, detail)


def crawled_once(workshop: Workshop) -> Sample:
    """Measure the processor time of a site."""
    return Sample(_crawl_small_sites(workshop)[0]["cpu"] / SMALL_SITES)


def crawled_again(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Measure the processor time of a second run that finds nothing changed, against its requests with aiohttp."""
    ours, theirs = [], []
    names = [path.name for path in sorted(workshop.site_folder(max(SMALL_SITEMAPS), SMALL_PAGES).iterdir())]
    for number in workshop.rounds_in_time():
        progress(f"crawl-again: round {number + 1} of {workshop.rounds}")
        first, second = _crawl_small_sites(workshop, runs=2)
        if second["bytes"] or second["requests"] != first["requests"]:
            raise NotMeasured(f"{second['bytes']:,} bytes of bodies for {second['requests']:,} requests")
        answer = workshop.ask_fresh(OURS, "small sites asked again", names=names, **_small_sites(workshop))
        if answer["documents"] != second["requests"]:
            raise NotMeasured(f"{answer['documents']:,} of {second['requests']:,} documents did not change")
        ours.append(second["cpu"] / second["requests"])
        theirs.append(answer["cpu"] / second["requests"])
    detail = f"{_range(ours)} of CPU per request against {_range(theirs)}, no bodies"
    return judged(Ratio.of(ours, theirs), len(ours), target, detail)


def crawled_again_once(workshop: Workshop) -> Sample:
    """Measure the processor time of a request of the second run."""
    second = _crawl_small_sites(workshop, runs=2)[1]
    return Sample(second["cpu"] / second["requests"])


def _crawl_small_sites(workshop: Workshop, runs: int = 1) -> list[Answer]:
    answer = workshop.ask_fresh(OURS, "small sites crawled", runs=runs, **_small_sites(workshop))
    pages = SMALL_PAGES * sum(SMALL_SITEMAPS[number % len(SMALL_SITEMAPS)] for number in range(SMALL_SITES))
    if answer["pages"] != pages:
        raise NotMeasured(f"found {answer['pages']:,} of {pages:,} pages")
    found: list[Answer] = answer["runs"]
    return found


def _small_sites(workshop: Workshop) -> Answer:
    homepages = workshop.small_sites(SMALL_SITES, SMALL_PAGES)
    return {"urls": homepages, "warm_up": homepages[:SMALL_WARM_UP], "at_once": SMALL_AT_ONCE}


def warc_cost(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Measure the processor time of a crawl that keeps the documents, against one that does not."""
    kept, others = [], []
    for number in workshop.rounds_in_time():
        progress(f"warc-cost: round {number + 1} of {workshop.rounds}")
        others.append(_crawl_middle_site(workshop, with_warc=False))
        kept.append(_crawl_middle_site(workshop, with_warc=True))
    detail = f"{_range(kept)} of CPU against {_range(others)}"
    return judged(Ratio.of(kept, others), len(kept), target, detail)


def warc_cost_once(workshop: Workshop) -> Sample:
    """Measure the crawl that keeps the documents."""
    return Sample(_crawl_middle_site(workshop, with_warc=True))


def _crawl_middle_site(workshop: Workshop, with_warc: bool) -> float:
    sitemaps, pages = MIDDLE_SITE
    asked = {"urls": [workshop.site(*MIDDLE_SITE)], "warm_up": [workshop.site(*WARM_UP_SITE)], "at_once": 1}
    answer = workshop.ask_ours(sitemaps * pages, "small sites crawled", with_warc=with_warc, **asked)
    cpu: float = answer["runs"][0]["cpu"]
    return cpu


def _all_pages(answer: Answer, homepages: list[str]) -> Answer:
    """Return the answer, which must have the page of each site."""
    wanted = summary(f"{homepage}page" for homepage in homepages)
    if any(answer[key] != value for key, value in wanted.items()):
        raise NotMeasured(f"found {answer['pages']:,} of {wanted['pages']:,} pages, or others")
    return answer


def undisturbed(answer: Answer, requests: int) -> Answer:
    """Limit the time of a side that is measured once to what it needs if nothing else runs.

    With one request after the other, that is its processor time and the waiting. A best of several rounds would leave
    out what other programs took; one round cannot, and a slow peer must not look slower for it.
    """
    return {**answer, "seconds": min(answer["seconds"], answer["cpu"] + requests * DELAY)}


def faster(ours: list[Answer], theirs: list[Answer], target: Target) -> Outcome:
    """Compare the times of crawls: with theirs of the same round, or with the only one of theirs."""
    if len({(answer["pages"], answer["checksum"]) for answer in ours + theirs}) != 1:
        raise NotMeasured(f"not of the same: {ours[0]['pages']:,} pages against {theirs[0]['pages']:,}, or others")
    seconds = [answer["seconds"] for answer in ours]
    others = [answer["seconds"] for answer in theirs]
    ratio = Ratio.of(others if len(others) == len(seconds) else others * len(seconds), seconds)
    detail = f"{_range(seconds)} against {_range(others)}, {ours[0]['pages']:,} pages"
    return judged(ratio, len(seconds), target, detail)


# Tables of pages. Each is made from a tree that was fetched before.


def export(format_name: str, workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Time an export to a file, against the loop that users of 1.8.1 write."""
    if "exports" not in workshop.shared:  # all at once: the tree of 1.8.1 alone takes most of a minute
        progress("export: 1.8.1 with pandas")
        asked = {"formats": EXPORT_FORMATS, **_fetched_site(workshop)}
        workshop.shared["exports"] = workshop.ask_fresh(OLD_WITH_PANDAS, "export with pandas", **asked)
    theirs: Answer = workshop.shared["exports"][format_name]
    ours = []
    for number in workshop.rounds_in_time():
        progress(f"export of {format_name}: round {number + 1} of {workshop.rounds}")
        ours.append(_export(workshop, format_name))
    found = faster(ours, [theirs], target)
    sizes = f"{ours[0]['size'] / MB:.0f} MB against {theirs['size'] / MB:.0f} MB"
    return found._replace(detail=f"{found.detail}, {sizes}")


def export_once(format_name: str, workshop: Workshop) -> Sample:
    """Time our export."""
    return Sample(_export(workshop, format_name)["seconds"])


def _export(workshop: Workshop, format_name: str) -> Answer:
    answer: Answer = workshop.ask_fresh(OURS, "export", formats=[format_name], **_fetched_site(workshop))[format_name]
    if answer["pages"] != MIDDLE_SITE[0] * MIDDLE_SITE[1]:
        raise NotMeasured(f"wrote {answer['pages']:,} pages")
    return answer


def _fetched_site(workshop: Workshop) -> dict[str, str]:
    return {"url": workshop.site(*MIDDLE_SITE), "warm_up": workshop.site(*WARM_UP_SITE)}


def export_memory(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Measure the peak memory of exporting sites of one and of five million pages to Parquet while fetching them."""
    peaks = {}
    for site in (MIDDLE_SITE, LARGE_SITE):
        pages = site[0] * site[1]
        progress(f"export-memory: {pages:,} pages")
        peaks[pages] = _megabytes(_export_site(workshop, site)).number
    detail = "; ".join(f"{pages:,} pages {peak:.0f} MB" for pages, peak in peaks.items())
    most = max(peaks.values())
    return Outcome(target.is_met_by(most), f"{most:.0f} MB", "one run of each", detail)


def export_memory_once(workshop: Workshop) -> Sample:
    """Measure it for the smaller site."""
    return _megabytes(_export_site(workshop, MIDDLE_SITE))


def _export_site(workshop: Workshop, site: tuple[int, int]) -> Answer:
    sitemaps, pages = site
    return workshop.ask_ours(sitemaps * pages, "export site", url=workshop.site(sitemaps, pages))


def arrow(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Time `to_arrow()` against inflating the documents one after the other."""
    files = [str(path) for path in sorted(workshop.site_folder(*MIDDLE_SITE).iterdir())]
    tables, inflating = [], []
    for number in workshop.rounds_in_time():
        progress(f"arrow: round {number + 1} of {workshop.rounds}")
        tables.append(arrow_once(workshop).number)
        inflating.append(workshop.ask_ours(MIDDLE_SITE[0] * MIDDLE_SITE[1], "inflate", files=files)["seconds"])
    detail = f"{_range(tables)} against {duration(min(inflating))}"
    return judged(Ratio.of(tables, inflating), len(tables), target, detail)


def arrow_once(workshop: Workshop) -> Sample:
    """Time `to_arrow()` once."""
    sitemaps, pages = MIDDLE_SITE
    return Sample(workshop.ask_ours(sitemaps * pages, "to arrow", url=workshop.site(sitemaps, pages))["seconds"])


def archive(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Measure the processor time of a tree from a web archive against fetching it."""
    archived, fetched = [], []
    sitemaps, pages = MIDDLE_SITE
    for number in workshop.rounds_in_time():
        progress(f"archive: round {number + 1} of {workshop.rounds}")
        answer = workshop.ask_ours(sitemaps * pages, "archive", url=workshop.site(sitemaps, pages))
        archived.append(answer["cpu"])
        fetched.append(answer["fetched"])
    detail = f"{_range(archived)} against {duration(min(fetched))}"
    return judged(Ratio.of(archived, fetched), len(archived), target, detail)


def archive_once(workshop: Workshop) -> Sample:
    """Measure the processor time of a tree from a web archive once."""
    sitemaps, pages = MIDDLE_SITE
    return Sample(workshop.ask_ours(sitemaps * pages, "archive", url=workshop.site(sitemaps, pages))["cpu"])


# Two runs of a crawl


def changes(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Time the changes between two runs, beside a join of all pages in DuckDB, which does not count."""
    folder = _crawl_folder(workshop, progress)
    ours, joins = [], []
    for number in workshop.rounds_in_time():
        progress(f"diff: round {number + 1} of {workshop.rounds}")
        ours.append(_changes(workshop, folder))
        joins.append(workshop.ask_fresh(OURS, "changes", folder=folder, is_join=True))
    if {answer["pages"] for answer in ours} != {answer["pages"] for answer in joins}:
        raise NotMeasured(f"found {ours[0]['pages']:,} changes, and the join {joins[0]['pages']:,}")
    seconds = [answer["seconds"] for answer in ours]
    best = min(seconds)
    detail = f"{_range(seconds)}, a join in DuckDB {_range([answer['seconds'] for answer in joins])}"
    spread = f"{duration(best)}..{duration(max(seconds))} in {len(seconds)}"
    return Outcome(target.is_met_by(best), f"{significant(best)} s", spread, f"{detail}, {ours[0]['pages']:,} changes")


def changes_once(workshop: Workshop) -> Sample:
    """Time it once."""
    return Sample(_changes(workshop, _crawl_folder(workshop, lambda _: None))["seconds"])


def _changes(workshop: Workshop, folder: str) -> Answer:
    return workshop.ask_fresh(OURS, "changes", folder=folder, is_join=False)


def _crawl_folder(workshop: Workshop, progress: Progress) -> str:
    """Return the folder of a crawl with two runs. Make it at the first call."""
    folder = workshop.folder / "crawl"
    if not folder.exists():
        progress("diff: two runs of a crawl")
        files = [str(path) for path in sorted(workshop.site_folder(*MIDDLE_SITE).iterdir())]
        workshop.ask_ours(MIDDLE_SITE[0] * MIDDLE_SITE[1], "make crawl", files=files, folder=str(folder))
    return str(folder)
