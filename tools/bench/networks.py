"""What is measured of fetching where each answer takes its time: waiting at once, large sites, and many sites."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.answers import summary
from bench.documents import MB
from bench.environments import OURS
from bench.measure import NotMeasured, Ratio, Workshop
from bench.report import Target, duration, significant
from bench.wholes import Outcome, Progress, Whole, ask_fresh, spread_of

DELAY = 0.05
AT_ONCE = 16
WAITS_SITE = (200, 10)
NETWORK_SITE = (20, 50_000)
SITES, SITES_AT_ONCE = 2_000, 64
#: How many of the sites are read one at a time, which would take minutes for all of them.
SITES_SAMPLE = 200
#: Scrapy takes long, but little enough for several rounds; 1.8.1 is measured once.
SCRAPY_ROUNDS = 2
MEMORY_RUNS = 3

Answer = dict[str, Any]


def _waits(driver: str) -> Callable[[Workshop, Progress, Target], Outcome]:
    def measure(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
        sitemaps, pages = WAITS_SITE
        ideal = sitemaps / AT_ONCE * DELAY
        asked = {"url": workshop.site(sitemaps, pages, DELAY), "warm_up": _small_site(workshop), "driver": driver}
        seconds = []
        for number in workshop.rounds_in_time():
            progress(f"waits, {driver}: round {number + 1} of {workshop.rounds}")
            answer = ask_fresh(workshop, sitemaps * pages, "crawl", **asked, reads=False, concurrency=AT_ONCE)
            seconds.append(answer["seconds"])
        ratio = Ratio.of(seconds, [ideal] * len(seconds))
        detail = f"{duration(min(seconds))} (worst {duration(max(seconds))}) against {duration(ideal)}"
        return target.is_met_by(ratio.best), f"{significant(ratio.best)}x", spread_of(ratio, len(seconds)), detail

    return measure


def _network(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    asked = _network_asked(workshop, progress)
    ours = []
    for number in workshop.rounds_in_time():
        progress(f"network: round {number + 1} of {workshop.rounds}")
        ours.append(_our_crawl(workshop, asked))
    progress("network: 1.8.1, once")
    theirs = undisturbed(_asked_fresh(workshop, "1.8.1", "crawl", **asked), NETWORK_SITE[0] + 2)
    return compared(ours, [theirs], target)


def _network_scrapy(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    asked = _network_asked(workshop, progress)
    rounds = min(workshop.rounds, SCRAPY_ROUNDS)
    ours, theirs = [], []
    for number in range(rounds):
        progress(f"network: scrapy, round {number + 1} of {rounds}")
        ours.append(_our_crawl(workshop, asked))
        theirs.append(_asked_fresh(workshop, "scrapy", "crawl scrapy", **asked, at_once=AT_ONCE))
    return compared(ours, theirs, target)


def _network_memory(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    asked = _network_asked(workshop, progress)
    progress("network: memory")
    peaks = [_our_crawl(workshop, asked)["memory"] / MB for _ in range(MEMORY_RUNS)]
    spread = f"{min(peaks):.0f}..{max(peaks):.0f} MB in {len(peaks)}"
    return target.is_met_by(max(peaks)), f"{max(peaks):.0f} MB", spread, ""


def _sites_asyncio(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    homepages, warm_up = workshop.sites(SITES, DELAY), _small_site(workshop)
    ours = []
    for number in workshop.rounds_in_time():
        progress(f"sites-asyncio: round {number + 1} of {workshop.rounds}")
        asked = {"urls": homepages, "warm_up": warm_up, "at_once": SITES_AT_ONCE}
        ours.append(_checked(_asked_fresh(workshop, OURS, "crawl sites asyncio", **asked), homepages))
    progress("sites-asyncio: 1.8.1, once")
    sample = homepages[:SITES_SAMPLE]
    theirs = _checked(_asked_fresh(workshop, "1.8.1", "crawl sites", urls=sample, warm_up=warm_up), sample)
    theirs = undisturbed(theirs, 2 * SITES_SAMPLE)
    scaled = {**theirs, "seconds": theirs["seconds"] * SITES / SITES_SAMPLE, "pages": SITES}
    is_met, found, spread, detail = compared(ours, [{**scaled, "checksum": ours[0]["checksum"]}], target)
    return is_met, found, spread, f"{detail}; 1.8.1 took {duration(theirs['seconds'])} for {SITES_SAMPLE} of them"


def _small_site(workshop: Workshop) -> str:
    """What each process reads first, uncounted."""
    return workshop.site(1, 10)


def _network_asked(workshop: Workshop, progress: Progress) -> dict[str, str]:
    progress(f"network: writing {NETWORK_SITE[0]} sitemaps")
    return {"url": workshop.site(*NETWORK_SITE, DELAY), "warm_up": _small_site(workshop)}


def _our_crawl(workshop: Workshop, asked: dict[str, str]) -> Answer:
    sitemaps, pages = NETWORK_SITE
    return ask_fresh(workshop, sitemaps * pages, "crawl", **asked, concurrency=AT_ONCE)


def _asked_fresh(workshop: Workshop, environment: str, command: str, **arguments: Any) -> Answer:
    with workshop.fresh_worker(environment) as worker:
        try:
            return worker.ask(command, **arguments)
        except NotMeasured as reason:
            raise NotMeasured(f"{environment}: {reason}", reason.is_skipped) from None


def _checked(answer: Answer, homepages: list[str]) -> Answer:
    """The answer, if it has the page of each site."""
    wanted = summary(f"{homepage}page" for homepage in homepages)
    if any(answer[key] != value for key, value in wanted.items()):
        raise NotMeasured(f"found {answer['pages']:,} of {wanted['pages']:,} pages, or others")
    return answer


def undisturbed(answer: Answer, requests: int) -> Answer:
    """The answer of a side that is measured once, with no more time than it needs if nothing else runs.

    One request after the other, that is its processor time and the waiting. Only a best of several rounds could leave
    out otherwise what other programs took, and a slow peer must not look slower for it.
    """
    return {**answer, "seconds": min(answer["seconds"], answer["cpu"] + requests * DELAY)}


def compared(ours: list[Answer], theirs: list[Answer], target: Target) -> Outcome:
    """How much faster ours are: than theirs of the same round, or than the only one of theirs."""
    if len({(answer["pages"], answer["checksum"]) for answer in ours + theirs}) != 1:
        raise NotMeasured(f"not of the same: {ours[0]['pages']:,} pages against {theirs[0]['pages']:,}, or others")
    seconds = [answer["seconds"] for answer in ours]
    others = [answer["seconds"] for answer in theirs]
    ratio = Ratio.of(others if len(others) == len(seconds) else others * len(seconds), seconds)
    detail = f"{_range(seconds)} against {_range(others)}, {ours[0]['pages']:,} pages"
    return target.is_met_by(ratio.best), f"{significant(ratio.best)}x as fast", spread_of(ratio, len(seconds)), detail


def _range(seconds: list[float]) -> str:
    worst = f"worst {duration(max(seconds))}" if len(seconds) > 1 else "once"
    return f"{duration(min(seconds))} ({worst})"


_WAITS = f"site of {WAITS_SITE[0]} small sitemaps, each answer after {DELAY * 1000:.0f} ms, {AT_ONCE} at once"
_NETWORK = (
    f"site of {NETWORK_SITE[0]} gzipped sitemaps of {NETWORK_SITE[1]:,}, each answer after {DELAY * 1000:.0f} ms, "
    f"{AT_ONCE} at once: tree, then every URL"
)

NETWORKS = (
    *(
        Whole(
            f"waits-{driver}",
            f"{_WAITS}, {driver}: tree",
            f"waiting alone: {WAITS_SITE[0]} / {AT_ONCE} x {DELAY * 1000:.0f} ms",
            Target(1.3, "x its time", is_most=True),
            _waits(driver),
        )
        for driver in ("threads", "asyncio")
    ),
    Whole("network", _NETWORK, "1.8.1, one at a time", Target(15), _network, peer="1.8.1"),
    Whole(
        "network-scrapy",
        _NETWORK,
        f"scrapy's SitemapSpider, {AT_ONCE} at once",
        Target(5),
        _network_scrapy,
        peer="scrapy",
    ),
    Whole("network-memory", f"{_NETWORK}; peak memory", "", Target(120, " MB", is_most=True), _network_memory),
    Whole(
        "sites-asyncio",
        f"{SITES:,} sites of one page, each answer after {DELAY * 1000:.0f} ms, {SITES_AT_ONCE} at once, asyncio: "
        "trees, and every URL",
        f"1.8.1 in a loop, from {SITES_SAMPLE} of them",
        Target(10),
        _sites_asyncio,
        peer="1.8.1",
    ),
)
