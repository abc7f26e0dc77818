"""Measures the rows about crawls of a crowd of sites: memory, and what one bad site does to the others."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from bench.crowd import Crowd
from bench.measures import Outcome, Sample
from bench.report import Target, significant
from bench.workshop import OURS, Answer, NotMeasured, Progress, Workshop

MB = 1_000_000
#: Crawls for memory: how many sites, one in fifty of them of this kind.
CROWDS = ((1_000, "huge"), (10_000, "large"))
_HUGE_EVERY = 50
#: Sites beside a bad one, how many at once, and after how long they answer.
OTHERS, AT_ONCE, DELAY = 300, 30, 0.05
#: What the one bad site of a crawl is. All of them but the last few take the time of the process.
BAD = (
    *("huge", "plain", "children", "lines", "imperfect", "bomb", "text", "attributes", "depth", "indexes"),
    *("hole", "drip", "stream", "redirects", "name"),
)
_LIMITS = {"request_seconds": 5.0, "tree_seconds": 8.0}


def memory(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Measure the peak memory of crawls of many sites, some of them huge."""
    peaks = {}
    for count, kind in CROWDS:
        progress(f"crawl-memory: {count:,} sites")
        peaks[f"{count:,} sites, {kind}"] = _crowd_peak(workshop, count, kind)
    most = max(peaks.values()) / MB
    detail = "; ".join(f"{name} {peak / MB:.0f} MB" for name, peak in peaks.items())
    return Outcome(target.is_met_by(most), f"{most:.0f} MB", "one run of each", detail)


def memory_once(workshop: Workshop) -> Sample:
    """Measure it for the smaller crawl."""
    return Sample(_crowd_peak(workshop, *CROWDS[0]) / MB, "MB")


def _crowd_peak(workshop: Workshop, count: int, kind: str) -> int:
    crowd = workshop.crowd(0, kind)
    listed = workshop.folder / f"sites-{count}-{kind}.txt"
    listed.write_text("\n".join(islice(_mixed(crowd, kind), count)))
    answer = workshop.ask_fresh(OURS, "crawl crowd", sites=str(listed), warm_up=[crowd.url(0)])
    if answer["outcomes"] != {"complete": count}:
        raise NotMeasured(f"the outcomes are {answer['outcomes']}")
    peak: int = answer["memory"]
    return peak


def _mixed(crowd: Crowd, kind: str) -> Iterator[str]:
    number = 0
    while True:
        yield crowd.url(number, kind if number % _HUGE_EVERY == _HUGE_EVERY // 2 else "small")
        number += 1


def stall(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Measure the longest stall of the event loop that one bad site causes."""
    runs = _runs_beside(workshop, progress)
    stalls = {kind: min(answer["stall"] for answer in answers) for kind, answers in runs.items() if kind}
    most = max(stalls.values())
    rounds = len(next(iter(runs.values())))
    detail = ", ".join(f"{kind} {seconds * 1e3:.0f} ms" for kind, seconds in stalls.items())
    return Outcome(target.is_met_by(most), f"{most:.2f} s", f"the best of {rounds}", detail)


def stall_once(workshop: Workshop) -> Sample:
    """Measure it for a site with many sitemaps."""
    return Sample(_beside(workshop, "children")["stall"])


def beside(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Compare how long 99% of the other sites take at most, beside a bad one and without it."""
    runs = _runs_beside(workshop, progress)
    slowest = {kind: min(map(_slow_site, answers)) for kind, answers in runs.items()}
    alone = slowest.pop("")
    ratios = {kind: seconds / alone for kind, seconds in slowest.items()}
    most = max(ratios.values())
    rounds = len(next(iter(runs.values())))
    detail = f"{alone * 1e3:.0f} ms without; " + ", ".join(f"{kind} {ratio:.1f}x" for kind, ratio in ratios.items())
    found = f"{significant(most)}{target.unit}"
    return Outcome(target.is_met_by(most), found, f"the best of {rounds}", detail)


def beside_once(workshop: Workshop) -> Sample:
    """Measure it for a site with many sitemaps."""
    return Sample(_slow_site(_beside(workshop, "children")))


def _runs_beside(workshop: Workshop, progress: Progress) -> dict[str, list[Answer]]:
    """Crawl the sites without a bad one, and beside each kind of bad one. Both rows use the same runs."""
    runs: dict[str, list[Answer]] = workshop.shared.setdefault("beside", {})
    if not runs:
        for number in workshop.rounds_in_time():
            for kind in ("", *BAD):
                progress(f"beside {kind or 'nothing'}: round {number + 1} of {workshop.rounds}")
                runs.setdefault(kind, []).append(_beside(workshop, kind))
    return runs


def _beside(workshop: Workshop, kind: str) -> Answer:
    crowd = workshop.crowd(DELAY, *BAD)
    others = [crowd.url(number) for number in range(OTHERS)]
    bad = [crowd.url(0, kind)] if kind else []
    arguments = {"warm_up": others[:1], "at_once": AT_ONCE, "limits": _LIMITS}
    answer = workshop.ask_fresh(OURS, "crawl crowd", sites=[*bad, *others], **arguments)
    if answer["outcomes"].get("complete", 0) < OTHERS:
        raise NotMeasured(f"beside {kind}, the outcomes are {answer['outcomes']}")
    for url in bad:
        answer["sites"].pop(url, None)
    return answer


def _slow_site(answer: Answer) -> float:
    """Return the seconds that 99% of the sites took at most."""
    seconds: list[float] = sorted(answer["sites"].values())
    return seconds[len(seconds) * 99 // 100]
