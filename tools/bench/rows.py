"""The rows of the table: what each measures, against what, and the number that it must reach.

A row is one value here. Its functions are in `measures`; to add a row, add a value and, if none fits, two functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bench import bounded, measures, views
from bench.measures import (
    AT_ONCE,
    DELAY,
    HOSTILE_SIZES,
    LARGE_SITE,
    MANY_SITES,
    MIDDLE_SITE,
    PAGE_DELAY,
    PROBED_PAGES,
    SITE_PAGES,
    SITES_AT_ONCE,
    SITES_SAMPLE,
    SMALL_AT_ONCE,
    SMALL_SITES,
    WAITS_SITE,
    Outcome,
    Sample,
    Subject,
)
from bench.report import Result, Target, Verdict
from bench.workshop import OLD, OLD_WITH_PANDAS, OURS, NotMeasured, Progress, Workshop


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    name: str
    what: str
    against: str
    target: Target | None
    measure: Callable[..., Outcome]  # called with a workshop, a progress callback, and the target
    sample: Callable[[Workshop], Sample]
    peer: str = OURS  # the environment that usp is compared with

    def result(self, workshop: Workshop, progress: Progress) -> Result:
        """Measure the row."""
        try:
            is_met, found, spread, detail = self.measure(workshop, progress, self.target)
            verdict = Verdict.NONE if is_met is None else Verdict.of(is_met)
        except NotMeasured as reason:
            verdict = Verdict.SKIPPED if reason.is_skipped else Verdict.MISSED
            found, spread, detail = f"{'not there yet' if reason.is_skipped else 'failed'}: {reason}", "", ""
        return Result(self.name, self.what, self.against, found, spread, str(self.target or ""), verdict, detail)


def _side_by_side(name: str, what: str, against: str, target: Target | None, ours: Subject, theirs: Subject) -> Row:
    measure, sample = partial(measures.side_by_side, ours, theirs), partial(measures.side_once, ours)
    return Row(name, what, against, target, measure, sample, theirs.environment)


def _at_most(number: float, unit: str) -> Target:
    return Target(number, unit, is_most=True)


_URLSET = "urlset of 50,000"
_NEWS = "urlset of 20,000 with news, images and languages, every field of all of them"
_LARGE = f"site of {LARGE_SITE[0]} gzipped sitemaps of {LARGE_SITE[1]:,}"
_MIDDLE = f"site of {MIDDLE_SITE[0]} gzipped sitemaps of {MIDDLE_SITE[1]:,}"
_LATE = f"each answer after {DELAY * 1000:.0f} ms"
_WAITS = f"site of {WAITS_SITE[0]} small sitemaps, {_LATE}, {AT_ONCE} at once"
_NETWORK = f"{_MIDDLE}, {_LATE}, {AT_ONCE} at once: tree, then every URL"
_LOOP = "1.8.1: pandas.DataFrame([p.to_dict() for p in tree.all_pages()])"

_OUR_URLS = Subject(OURS, "urls", "urlset.xml")
_OLD_URLS = Subject(OLD, "urls of text", "urlset.xml")

#: In the order of the table.
ROWS: tuple[Row, ...] = (
    _side_by_side("urls", f"{_URLSET}, every URL", "1.8.1", Target(50), _OUR_URLS, _OLD_URLS),
    _side_by_side(
        "fields",
        f"{_URLSET}, every field of every page",
        "1.8.1",
        Target(25),
        Subject(OURS, "fields", "urlset.xml"),
        Subject(OLD, "fields of text", "urlset.xml"),
    ),
    _side_by_side(
        "lxml",
        f"{_URLSET}, every URL",
        "lxml's iterparse into dicts",
        Target(6),
        _OUR_URLS,
        Subject("lxml", "lxml", "urlset.xml"),
    ),
    _side_by_side(
        "news",
        _NEWS,
        "1.8.1",
        Target(15),
        Subject(OURS, "fields", "news.xml"),
        Subject(OLD, "fields of text", "news.xml"),
    ),
    _side_by_side(
        "references",
        f"{_NEWS}, with references in every title and name",
        "1.8.1",
        Target(20),
        Subject(OURS, "fields", "references.xml"),
        Subject(OLD, "fields of text", "references.xml"),
    ),
    _side_by_side(
        "references-cost",
        "the same",
        "usp, without references",
        _at_most(1.3, "x its time"),
        Subject(OURS, "fields of any texts", "references.xml"),
        Subject(OURS, "fields of any texts", "news.xml"),
    ),
    *(
        _side_by_side(
            name, what, "1.8.1", Target(least), Subject(OURS, ours, file), Subject(OLD, f"{ours} of text", file)
        )
        for name, what, ours, file, least in (
            ("rss", "RSS feed of 20,000, every field of every page", "fields", "rss.xml", 5),
            ("atom", "Atom feed of 20,000, every field of every page", "fields", "atom.xml", 3),
            ("index", "index of 50,000, every sitemap, not fetched", "children", "index.xml", 10),
            ("text", "plain text of 50,000, every URL", "urls", "text.txt", 20),
        )
    ),
    _side_by_side(
        "gzip",
        f"gzipped {_URLSET}, every URL",
        "1.8.1, after gzip.decompress()",
        Target(35),
        Subject(OURS, "urls", "urlset.xml.gz"),
        Subject(OLD, "urls of gzip", "urlset.xml.gz"),
    ),
    *(
        _side_by_side(
            f"{name}{'-gzip' if is_gzipped else ''}",
            f"{'gzipped ' if is_gzipped else ''}{_URLSET}, into {what}",
            "isal inflating it" if is_gzipped else "isal inflating the gzipped one",
            _at_most(most, "x its time"),
            Subject(OURS, task, f"urlset.xml{'.gz' if is_gzipped else ''}"),
            Subject(OURS, peer_task, "urlset.xml.gz"),
        )
        for name, what, task, peer_task, is_gzipped, most in (
            ("columns", "columns", "columns", "inflate", False, 1.2),
            ("columns", "columns", "columns", "inflate", True, 2.2),
            ("columns-dates", "columns of URLs and dates", "urls and dates", "inflate for urls and dates", False, 0.8),
            ("columns-dates", "columns of URLs and dates", "urls and dates", "inflate for urls and dates", True, 1.8),
        )
    ),
    _side_by_side(
        "pure",
        f"{_URLSET}, every URL, in plain Python (USP_PURE=1)",
        "1.8.1",
        Target(3),
        Subject(OURS, "urls", "urlset.xml", is_pure=True),
        _OLD_URLS,
    ),
    _side_by_side(
        "scrapy",
        f"{_URLSET}, every URL",
        "scrapy's Sitemap, strings only",
        None,
        _OUR_URLS,
        Subject("scrapy", "scrapy", "urlset.xml"),
    ),
    _side_by_side(
        "advertools",
        f"{_URLSET}, every URL",
        "advertools' sitemap_to_df of a file, into a table",
        None,
        _OUR_URLS,
        Subject("advertools", "advertools", "urlset.xml"),
    ),
    Row(
        "memory",
        f"{_LARGE}: tree, then every URL; peak memory",
        "",
        _at_most(150, " MB"),
        measures.memory,
        measures.memory_once,
    ),
    Row(
        "check",
        f"{_LARGE}: all that `usp check` looks for",
        "the tree alone",
        _at_most(1.8, "x its time"),
        measures.check,
        measures.check_once,
    ),
    Row(
        "check-memory",
        "the same; peak memory",
        "",
        _at_most(200, " MB"),
        measures.check_memory,
        measures.check_memory_once,
    ),
    Row(
        "sites",
        f"sites of 10, 100 and 1,000 gzipped sitemaps of {SITE_PAGES:,}: tree, then every URL; CPU time per page",
        "the cheapest of them",
        _at_most(1.1, "x its cost"),
        measures.sites,
        measures.sites_once,
    ),
    Row(
        "import",
        "python -c 'import usp.tree'",
        "python -c pass",
        _at_most(40, " ms more"),
        measures.import_time,
        measures.import_once,
    ),
    *(
        Row(
            f"hostile-{kind}",
            f"urlset of {', '.join(map(str, HOSTILE_SIZES))} MB, {what}: time and memory per MB",
            "a smaller one",
            _at_most(1.5, "x its cost"),
            partial(measures.hostile, kind),
            partial(measures.hostile_once, kind),
        )
        for kind, what in (
            ("text", "nine tenths of it one text"),
            ("attributes", "up to 10 million attributes on one tag"),
            ("depth", "up to 14 million elements deep"),
        )
    ),
    *(
        Row(
            f"waits-{driver}",
            f"{_WAITS}, {driver}: tree",
            f"waiting alone: {WAITS_SITE[0]} / {AT_ONCE} x {DELAY * 1000:.0f} ms",
            _at_most(1.3, "x its time"),
            partial(measures.waits, driver),
            partial(measures.waits_once, driver),
        )
        for driver in ("threads", "asyncio")
    ),
    Row(
        "probe",
        f"check --probe all: {PROBED_PAGES:,} pages, each after {PAGE_DELAY * 1000:.0f} ms, {AT_ONCE} at once",
        f"waiting alone: {PROBED_PAGES:,} / {AT_ONCE} x {PAGE_DELAY * 1000:.0f} ms",
        _at_most(1.3, "x its time"),
        measures.probes,
        measures.probes_once,
    ),
    Row(
        "network",
        _NETWORK,
        "1.8.1, one at a time",
        Target(15),
        measures.network,
        measures.network_once,
        OLD,
    ),
    Row(
        "network-scrapy",
        _NETWORK,
        f"scrapy's SitemapSpider, {AT_ONCE} at once",
        Target(5),
        measures.network_scrapy,
        measures.network_once,
        "scrapy",
    ),
    Row(
        "network-memory",
        f"{_NETWORK}; peak memory",
        "",
        _at_most(120, " MB"),
        measures.network_memory,
        measures.network_memory_once,
    ),
    Row(
        "sites-asyncio",
        f"{MANY_SITES:,} sites of one page, {_LATE}, {SITES_AT_ONCE} at once, asyncio: trees, and every URL",
        f"1.8.1 in a loop, from {SITES_SAMPLE} of them",
        Target(10),
        measures.many_sites,
        measures.many_sites_once,
        OLD,
    ),
    *(
        Row(
            name,
            f"{SMALL_SITES} sites of 2 to 5 small gzipped sitemaps, {SMALL_AT_ONCE} at once, asyncio: {what}; CPU time",
            "aiohttp alone, the same requests, nothing parsed",
            _at_most(2.5, "x its time"),
            partial(measures.small_sites, side),
            partial(measures.small_sites_once, side),
        )
        for name, side, what in (
            ("small-sites", "trees", "trees"),
            ("small-sites-crawl", "crawl", "trees as `usp crawl` fetches them"),
        )
    ),
    Row(
        "crawl",
        f"{SMALL_SITES} sites of 2 to 5 small gzipped sitemaps, {SMALL_AT_ONCE} at once, into a crawl folder; CPU time",
        "aiohttp alone, the same requests, nothing parsed or written",
        _at_most(4.5, "x its time"),
        measures.crawled,
        measures.crawled_once,
    ),
    Row(
        "crawl-again",
        "the same a second time, nothing changed; CPU time per request",
        "aiohttp alone, the same conditional requests",
        _at_most(1.3, "x its time"),
        measures.crawled_again,
        measures.crawled_again_once,
    ),
    Row(
        "warc-cost",
        f"{_MIDDLE}, into a crawl folder; CPU time",
        "usp, without keeping the documents",
        _at_most(1.1, "x its time"),
        measures.warc_cost,
        measures.warc_cost_once,
    ),
    *(
        Row(
            f"export-{name}",
            f"{_MIDDLE}, fetched before: every column of every page into a file of {name}",
            f"{_LOOP}.{loop}",
            Target(least),
            partial(measures.export, name),
            partial(measures.export_once, name),
            OLD_WITH_PANDAS,
        )
        for name, loop, least in (
            ("parquet", "to_parquet(...)", 15),
            ("csv", "to_csv(...)", 5),
            ("jsonl", "to_json(..., lines=True)", 5),
        )
    ),
    Row(
        "export-memory",
        "sites of 1 and 5 million pages, fetched and written to Parquet meanwhile; peak memory",
        "",
        _at_most(250, " MB"),
        measures.export_memory,
        measures.export_memory_once,
    ),
    Row(
        "arrow",
        f"{_MIDDLE}, fetched before: to_arrow(), every column",
        "isal inflating the documents, one after the other",
        _at_most(2, "x its time"),
        measures.arrow,
        measures.arrow_once,
    ),
    Row(
        "archive",
        f"{_MIDDLE}, in a WARC file: the tree, processor time",
        "fetching it from a server on loopback",
        _at_most(1.2, "x its time"),
        measures.archive,
        measures.archive_once,
    ),
    Row(
        "diff",
        f"two runs of a {_MIDDLE}, 5% of the pages changed, in all sitemaps: changes as an Arrow table",
        "",
        _at_most(0.4, " s"),
        measures.changes,
        measures.changes_once,
    ),
    Row(
        "crawl-memory",
        "crawls of 1,000 sites, 2% with a million pages, and of 10,000 sites, 2% with 150,000 pages; peak memory",
        "",
        _at_most(250, " MB"),
        bounded.memory,
        bounded.memory_once,
    ),
    Row(
        "crawl-stall",
        f"a crawl of {bounded.OTHERS} small sites and a bad one, of {len(bounded.BAD)} kinds: longest stall",
        "",
        _at_most(0.25, " s"),
        bounded.stall,
        bounded.stall_once,
    ),
    Row(
        "crawl-beside",
        "the same: how long 99% of the small sites take at most",
        "without the bad one",
        _at_most(2, "x its time"),
        bounded.beside,
        bounded.beside_once,
    ),
    Row(
        "view-ready",
        f"the explorer, a {_MIDDLE}: from the site to everything visible, problems included",
        "usp export to Parquet",
        _at_most(2, "x its time"),
        views.ready,
        views.ready_once,
    ),
    Row(
        "view-paint",
        f"the overview of a {_MIDDLE} in a browser",
        "",
        _at_most(1, " s"),
        views.paint,
        views.paint_once,
    ),
    Row(
        "view-filter",
        f"the first rows of a search, a {_MIDDLE}",
        "",
        _at_most(300, " ms"),
        views.filters,
        views.filters_once,
    ),
    Row(
        "view-filter-10m",
        "the first rows of a search in 10 million pages",
        "",
        _at_most(2_000, " ms"),
        views.filters_of_huge,
        views.huge_once,
    ),
    Row("view-scroll", "rows anywhere in 10 million pages", "", _at_most(200, " ms"), views.places, views.huge_once),
    Row(
        "view-memory",
        "the explorer with 10 million pages; peak memory",
        "",
        _at_most(600, " MB"),
        views.memory,
        views.memory_once,
    ),
    Row("view-size", "JavaScript and CSS of its page", "", _at_most(120, " kB"), views.size, views.size_once),
)
NAMES = [row.name for row in ROWS]
