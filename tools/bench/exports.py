"""Tables of pages: files of all that a tree has, against the loop that users of 1.8.1 write; memory; Arrow.

All are made from a tree that was fetched before. What a file holds is read back, and the URLs in it compared.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.documents import MB
from bench.environments import OURS, WITH_PANDAS
from bench.measure import NotMeasured, Ratio, Workshop
from bench.report import Target, duration, significant
from bench.wholes import MEMORY_SITE, SITE_PAGES, SITES, Outcome, Progress, Whole, ask_fresh, spread_of

EXPORT_SITE = (20, 50_000)
FORMATS = ("parquet", "csv", "jsonl")
#: What 1.8.1 took, by the folder of the workshop.
_DONE: dict[Path, dict[str, Any]] = {}


def _export(format_name: str) -> Callable[[Workshop, Progress, Target], Outcome]:
    def measure(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
        sitemaps, pages = EXPORT_SITE
        urls = {"url": workshop.site(sitemaps, pages), "warm_up": workshop.site(min(SITES), SITE_PAGES)}
        theirs = _theirs(workshop, progress, urls)[format_name]
        ours: list[dict[str, Any]] = []
        for number in workshop.rounds_in_time():
            progress(f"export of {format_name}: round {number + 1} of {workshop.rounds}")
            with workshop.fresh_worker(OURS) as worker:
                found = worker.ask("export", formats=[format_name], **urls)[format_name]
            if found["checksum"] != theirs["checksum"] or found["pages"] != sitemaps * pages:
                raise NotMeasured(f"wrote {found['pages']:,} pages, or others than 1.8.1's {theirs['pages']:,}")
            ours.append(found)
        seconds = [found["seconds"] for found in ours]
        ratio = Ratio.of([theirs["seconds"]] * len(ours), seconds)
        detail = (
            f"{duration(min(seconds))} (worst {duration(max(seconds))}), {ours[0]['size'] / MB:.0f} MB, against "
            f"{duration(theirs['seconds'])} (once), {theirs['size'] / MB:.0f} MB"
        )
        return target.is_met_by(ratio.best), f"{significant(ratio.best)}x as fast", spread_of(ratio, len(ours)), detail

    return measure


def _theirs(workshop: Workshop, progress: Progress, urls: dict[str, str]) -> dict[str, Any]:
    """The loops of 1.8.1, all run once: its tree alone takes most of a minute."""
    if workshop.folder not in _DONE:
        progress("export: 1.8.1 with pandas")
        with workshop.fresh_worker(WITH_PANDAS) as worker:
            _DONE[workshop.folder] = worker.ask("export with pandas", formats=FORMATS, **urls)
    return _DONE[workshop.folder]


def _memory(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """The peak memory of exporting sites of one and of five million pages to Parquet, fetching them meanwhile."""
    peaks = {}
    for sitemaps, pages in (EXPORT_SITE, MEMORY_SITE):
        progress(f"export-memory: {sitemaps * pages:,} pages")
        answer = ask_fresh(workshop, sitemaps * pages, "export site", url=workshop.site(sitemaps, pages))
        peaks[sitemaps * pages] = answer["memory"] / MB
    detail = "; ".join(f"{pages:,} pages {peak:.0f} MB" for pages, peak in peaks.items())
    most = max(peaks.values())
    return target.is_met_by(most), f"{most:.0f} MB", "one run of each", detail


def _arrow(workshop: Workshop, progress: Progress, target: Target) -> Outcome:
    """The time of `to_arrow()` against that of inflating the documents one after the other."""
    sitemaps, pages = EXPORT_SITE
    homepage = workshop.site(sitemaps, pages)
    files = [str(path) for path in sorted((workshop.folder / f"site-{sitemaps}-{pages}").iterdir())]
    tables, inflating = [], []
    for number in workshop.rounds_in_time():
        progress(f"arrow: round {number + 1} of {workshop.rounds}")
        tables.append(ask_fresh(workshop, sitemaps * pages, "to arrow", url=homepage)["seconds"])
        inflating.append(ask_fresh(workshop, sitemaps * pages, "inflate", files=files)["seconds"])
    ratio = Ratio.of(tables, inflating)
    detail = f"{duration(min(tables))} (worst {duration(max(tables))}) against {duration(min(inflating))}"
    return target.is_met_by(ratio.best), f"{significant(ratio.best)}x", spread_of(ratio, len(tables)), detail


_WHAT = f"site of {EXPORT_SITE[0]} gzipped sitemaps of {EXPORT_SITE[1]:,}, fetched before"
_LOOPS = {"parquet": "to_parquet(...)", "csv": "to_csv(...)", "jsonl": "to_json(..., lines=True)"}
_LOOP = "1.8.1: pandas.DataFrame([p.to_dict() for p in tree.all_pages()])"

EXPORTS = (
    *(
        Whole(
            f"export-{name}",
            f"{_WHAT}: every column of every page into a file of {name}",
            f"{_LOOP}.{loop}",
            Target(15 if name == "parquet" else 5),
            _export(name),
            peer=WITH_PANDAS,
        )
        for name, loop in _LOOPS.items()
    ),
    Whole(
        "export-memory",
        "sites of 1 and 5 million pages, fetched and written to Parquet meanwhile; peak memory",
        "",
        Target(250, " MB", is_most=True),
        _memory,
    ),
    Whole(
        "arrow",
        f"{_WHAT}: to_arrow(), every column",
        "isal inflating the documents, one after the other",
        Target(2, "x its time", is_most=True),
        _arrow,
    ),
)
