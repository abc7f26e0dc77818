"""Measures the rows about the explorer.

Only `view-paint` opens the page, served as users have it, in a browser; it is skipped where there is none.
"""

from __future__ import annotations

import shutil
import statistics
import time
from importlib import import_module
from pathlib import Path

from bench.crawls import Answer
from bench.measures import LARGE_SITE, MIDDLE_SITE, Outcome, Sample
from bench.report import Target
from bench.workshop import NotMeasured, Progress, Workshop

MB = 1_000_000
_HUGE_SITE = (200, 50_000)
_TIMES = 5
STATIC = Path(__file__).parents[2] / "src" / "usp" / "view" / "static"


def ready(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Compare the time until everything is visible with that of an export to Parquet."""
    pages, url = MIDDLE_SITE[0] * MIDDLE_SITE[1], workshop.site(*MIDDLE_SITE)
    ours, theirs = [], []
    for number in workshop.rounds_in_time():
        progress(f"view-ready: round {number + 1} of {workshop.rounds}")
        ours.append(workshop.ask_ours(pages, "view site", url=url)["seconds"])
        theirs.append(workshop.ask_ours(pages, "export for view", url=url)["seconds"])
    ratio = statistics.median(ours) / statistics.median(theirs)
    detail = f"{statistics.median(ours):.2f} s; export {statistics.median(theirs):.2f} s"
    return Outcome(target.is_met_by(ratio), f"{ratio:.2f}{target.unit}", f"median of {len(ours)}", detail)


def ready_once(workshop: Workshop) -> Sample:
    """Measure it once."""
    return Sample(_site(workshop, MIDDLE_SITE)["seconds"])


def filters(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Measure the slowest first rows of a filter, of a million pages."""
    return _slowest(workshop, progress, target, MIDDLE_SITE, "filter")


def filters_once(workshop: Workshop) -> Sample:
    """Measure it once."""
    return Sample(_site(workshop, MIDDLE_SITE)["filter"])


def filters_of_huge(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Measure the slowest first rows of a filter, of 10 million pages."""
    return _slowest(workshop, progress, target, _HUGE_SITE, "filter")


def places(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Measure the slowest rows anywhere in 10 million pages."""
    return _slowest(workshop, progress, target, _HUGE_SITE, "place")


def huge_once(workshop: Workshop) -> Sample:
    """Measure it for half of the pages."""
    return Sample(_site(workshop, LARGE_SITE)["place"])


def memory(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Measure the peak memory of exploring 10 million pages."""
    progress("view-memory: 10 million pages")
    peak = _site(workshop, _HUGE_SITE)["memory"] / MB
    return Outcome(target.is_met_by(peak), f"{peak:.0f} MB", "one run")


def memory_once(workshop: Workshop) -> Sample:
    """Measure it for half of the pages."""
    return Sample(_site(workshop, LARGE_SITE)["memory"] / MB, "MB")


def size(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Count the bytes of the modules and the style sheet."""
    found = sum(path.stat().st_size for path in STATIC.iterdir() if path.suffix in (".js", ".css")) / 1000
    return Outcome(target.is_met_by(found), f"{found:.1f} kB", "counted")


def size_once(workshop: Workshop) -> Sample:
    """Count them as megabytes."""
    return Sample(sum(path.stat().st_size for path in STATIC.glob("*.[jc]s*")) / MB, "MB")


def paint(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """Measure how long the overview of a million pages takes in a browser."""
    progress("view-paint: a million pages")
    seconds = _paints(workshop)
    found = statistics.median(seconds)
    return Outcome(
        target.is_met_by(found), f"{found:.2f} s", f"median of {len(seconds)}", "until the sections are drawn"
    )


def paint_once(workshop: Workshop) -> Sample:
    """Measure it once."""
    return Sample(statistics.median(_paints(workshop)))


def _paints(workshop: Workshop) -> list[float]:
    chromium = shutil.which("chromium")
    try:
        sync_api = import_module("playwright.sync_api")
    except ModuleNotFoundError:
        raise NotMeasured("Playwright is not installed; make test-browser installs it", is_skipped=True) from None
    if chromium is None:
        raise NotMeasured("chromium is not installed; make test-browser installs it", is_skipped=True)
    from screenshots import viewing

    seconds = []
    with viewing("view", workshop.site(*MIDDLE_SITE)) as address, sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for _ in range(_TIMES):  # the first one also reads the parts
            page = browser.new_context().new_page()
            started = time.perf_counter()
            page.goto(address)
            page.wait_for_selector(".treemap a rect")
            seconds.append(time.perf_counter() - started)
            page.context.close()
        browser.close()
    return seconds


def _slowest(workshop: Workshop, progress: Progress, target: Target, site: tuple[int, int], name: str) -> Outcome:
    progress(f"view-{name}: {site[0] * site[1]:,} pages")
    found = _site(workshop, site)[name]
    return Outcome(target.is_met_by(found * 1000), f"{found * 1000:.0f} ms", "the slowest")


def _site(workshop: Workshop, site: tuple[int, int]) -> Answer:
    """Explore a site; rows about the same site use the same run."""
    runs: dict[str, Answer] = workshop.shared.setdefault("views", {})
    key = str(site)
    if key not in runs:
        runs[key] = workshop.ask_ours(site[0] * site[1], "view site", url=workshop.site(*site))
    return runs[key]
