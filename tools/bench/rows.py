"""What is compared side by side: the same file read by two libraries, or in two ways."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from bench.environments import OURS
from bench.measure import Measured, NotMeasured, Ratio, Subject, Workshop, interleaved
from bench.report import Result, Target, Verdict, duration, significant

URLSET = "urlset of 50,000"


@dataclass(frozen=True)
class Row:
    """A comparison. Those of one group are measured in the same rounds, so that they can share a side."""

    name: str
    group: str
    what: str
    against: str
    ours: Subject
    theirs: Subject
    target: Target | None = None

    @property
    def peer(self) -> str:
        """The environment that it is compared with."""
        return self.theirs.environment


def _ours(task: str, file: str, is_pure: bool = False) -> Subject:
    return Subject(OURS, task, file, is_pure)


_URLS = _ours("urls", "urlset.xml")
_THEIR_URLS = Subject("1.8.1", "urls of text", "urlset.xml")
_INFLATE = _ours("inflate", "urlset.xml.gz")

ROWS = (
    Row("urls", "urls", f"{URLSET}, every URL", "1.8.1", _URLS, _THEIR_URLS, Target(50)),
    Row(
        "fields",
        "fields",
        f"{URLSET}, every field of every page",
        "1.8.1",
        _ours("fields", "urlset.xml"),
        Subject("1.8.1", "fields of text", "urlset.xml"),
        Target(25),
    ),
    Row(
        "lxml",
        "urls",
        f"{URLSET}, every URL",
        "lxml's iterparse into dicts",
        _URLS,
        Subject("lxml", "lxml", "urlset.xml"),
        Target(6),
    ),
    Row(
        "news",
        "news",
        "urlset of 20,000 with news, images and languages, every field of all of them",
        "1.8.1",
        _ours("fields", "news.xml"),
        Subject("1.8.1", "fields of text", "news.xml"),
        Target(15),
    ),
    Row(
        "gzip",
        "gzip",
        f"gzipped {URLSET}, every URL",
        "1.8.1, after gzip.decompress()",
        _ours("urls", "urlset.xml.gz"),
        Subject("1.8.1", "urls of gzip", "urlset.xml.gz"),
        Target(35),
    ),
    Row(
        "columns",
        "columns",
        f"{URLSET}, into columns",
        "isal inflating the gzipped one",
        _ours("columns", "urlset.xml"),
        _INFLATE,
        Target(0.8, "x its time", is_most=True),
    ),
    Row(
        "columns-gzip",
        "columns",
        f"gzipped {URLSET}, into columns",
        "isal inflating it",
        _ours("columns", "urlset.xml.gz"),
        _INFLATE,
        Target(2, "x its time", is_most=True),
    ),
    Row(
        "pure",
        "urls",
        f"{URLSET}, every URL, in plain Python (USP_PURE=1)",
        "1.8.1",
        _ours("urls", "urlset.xml", is_pure=True),
        _THEIR_URLS,
        Target(3),
    ),
    Row(
        "scrapy",
        "urls",
        f"{URLSET}, every URL",
        "scrapy's Sitemap, strings only",
        _URLS,
        Subject("scrapy", "scrapy", "urlset.xml"),
    ),
    Row(
        "advertools",
        "urls",
        f"{URLSET}, every URL",
        "advertools' sitemap_to_df of a file, into a table",
        _URLS,
        Subject("advertools", "advertools", "urlset.xml"),
    ),
)


def compared(rows: Iterable[Row], workshop: Workshop, progress: Callable[[str], None]) -> Iterator[Result]:
    """The results of rows, group by group."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    for group in groups.values():
        subjects = [subject for row in group for subject in (row.ours, row.theirs)]
        measured = interleaved(subjects, workshop, progress)
        yield from (judged(row, measured[row.ours], measured[row.theirs]) for row in group)


def judged(row: Row, ours: Measured | NotMeasured, theirs: Measured | NotMeasured) -> Result:
    """What a row has come to."""
    target = str(row.target or "")
    for side, name in ((ours, "ours"), (theirs, row.theirs.environment)):
        if isinstance(side, NotMeasured):
            verdict = Verdict.SKIPPED if side.is_skipped else Verdict.MISSED
            reason = f"not there yet: {side}" if side.is_skipped else f"failed: {side}"
            return Result(row.name, row.what, row.against, f"{name} {reason}", "", target, verdict)
    assert isinstance(ours, Measured)
    assert isinstance(theirs, Measured)
    is_time = row.target is not None and row.target.is_most
    numbers, others = (ours.seconds, theirs.seconds) if is_time else (theirs.seconds, ours.seconds)
    ratio, unit = Ratio.of(numbers, others), "x its time" if is_time else "x as fast"
    verdict = Verdict.of(row.target.is_met_by(ratio.best)) if row.target else Verdict.NONE
    found = f"{significant(ratio.best)}{unit}"
    if unequal := [key for key, value in ours.found.items() if theirs.found.get(key, value) != value]:
        said = ", ".join(f"{key} {ours.found[key]} against {theirs.found[key]}" for key in unequal)
        verdict, found = Verdict.MISSED, f"{found}, but not of the same: {said}"
    return Result(
        row.name,
        row.what,
        row.against,
        found,
        f"{significant(ratio.least)}..{significant(ratio.most)}x in {len(ours.seconds)}",
        target,
        verdict,
        f"{_range(ours.seconds)} against {_range(theirs.seconds)}, {ours.found['pages']:,} pages",
    )


def _range(seconds: list[float]) -> str:
    return f"{duration(min(seconds))} (worst {duration(max(seconds))})"
