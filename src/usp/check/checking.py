"""Check any source, or a tree, and return a `Report`.

Every sitemap is read once, in the order of the tree: first with the rules on entries, then with the rules on the
sitemap as a whole. The rules on sites run when the tree is complete. If return links are missing, sitemaps with
alternates are read again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, Unpack
from urllib.parse import urlsplit

from usp.check.report import CheckedSitemap, Report, merged
from usp.check.return_links import MAX_LINKS, check_return_links
from usp.check.robots import MAX_RULES
from usp.check.rules.rule import ERROR, Finding, SitemapRule, SiteRule
from usp.check.scope import CrossSubmissions
from usp.check.sitemaps import MAX_PAGES, Site, SitemapReader
from usp.check.subjects import SitemapCheck, TreePlace, tree_places
from usp.exceptions import InvalidArgumentError, TreeInterrupted
from usp.limits import SMALL_MEMORY_BYTES
from usp.objects.outcome import Cause, RootAnswer, lost_roots, outcome_of
from usp.objects.problem import UNLOGGED, At, Problem, ProblemLog, Problems
from usp.objects.sitemap import AbstractSitemap, IndexRobotsTxtSitemap, IndexWebsiteSitemap, InvalidSitemap
from usp.origins import requested_url
from usp.scan import (
    Element,
    PureSurvey,
    SurveyOff,
    SurveyOptions,
    strip_url_to_homepage,
)

if TYPE_CHECKING:
    from usp.check.probing import Probe
    from usp.sources import ReadAs, Source, Targets
    from usp.stream import HomepageOptions, SitemapStream
    from usp.web_client.abstract_client import AbstractWebClient

__all__ = [
    "Check",
    "check",
    "check_bytes",
    "check_homepage",
    "check_path",
    "check_read",
    "check_sources",
    "check_tree",
]

_CUT = "C901"
#: Codes that say how the scanner looked for a root, or that T807 states already.
_REPAIRED = frozenset({"X101", "X106", "X107", "X109", "X116"})
#: Options with which sitemaps may be left out.
_CHOOSING = ("recurse_callback", "recurse_list_callback", "choose_callback", "include", "exclude", "modified_since")


def check(
    targets: Targets,
    web_client: AbstractWebClient | None = None,
    *,
    url: str | None = None,
    read_as: ReadAs = "auto",
    now: datetime | None = None,
    probe: Probe | int | Literal["all"] | None = None,
    **options: Unpack[HomepageOptions],
) -> Report:
    """Check a site, a sitemap, a file, a folder or an archive, or several of these, and return one report.

        from usp.check import check

        report = check("https://www.example.org/sitemap.xml")
        report = check(["example.org", "public/"])

    A site is checked while it is fetched. For a sitemap with everything below it, and for files, rules on the site as
    a whole do not apply.

    :param targets: as for `usp.open`, like `url`, `read_as` and the options.
    :param now: the time that "in the future" and "two days ago" refer to, instead of now.
    :param probe: also fetch so many of the listed pages, or "all", and check these; see `usp.check.Probe`.
    :raises InvalidArgumentError: if a target is not a site, a host, a file or a folder.
    :raises OSError: if a file cannot be read.
    :raises TreeInterrupted: on Ctrl-C. Its `report` covers what was read until then.
    """
    from usp.sources import find_sources

    sources = find_sources(targets, url=url, read_as=read_as)
    report = check_sources(sources, web_client, now=now, probe=probe, **options)
    return replace(report, notes=(*(source.note for source in sources if source.note), *report.notes))


def check_sources(
    sources: Sequence[Source],
    web_client: AbstractWebClient | None = None,
    *,
    now: datetime | None = None,
    probe: Probe | int | Literal["all"] | None = None,
    **options: Unpack[HomepageOptions],
) -> Report:
    """Check sources one after the other, and return one report; see `check`.

    The notes of the report are those of reading. A source has its own: `source.note`.
    """
    checked_time = _checked_time(now)
    probing = None if probe is None else _checked_probe(probe, sources)
    streams = [
        source.stream(web_client, memory_bytes=SMALL_MEMORY_BYTES, bounds_reading=True, **options) for source in sources
    ]
    reports: list[Report] = []
    for source, stream in zip(sources, streams, strict=True):
        checking = _StreamCheck(stream, checked_time, options, source, has_short_names=len(sources) == 1)
        checking.probe = probing
        try:
            reports.append(checking.report())
        except TreeInterrupted as interrupted:
            interrupted.report = merged([*reports, checking.partial_report(interrupted.tree)])
            raise
    return merged(reports)


def check_homepage(
    homepage_url: str,
    web_client: AbstractWebClient | None = None,
    *,
    now: datetime | None = None,
    **options: Unpack[HomepageOptions],
) -> Report:
    """Fetch the sitemap tree of a website and check it.

    Sitemaps are checked while others are still being fetched. Options are those of
    `usp.tree.sitemap_tree_for_homepage`.

    :param now: the time that "in the future" and "two days ago" refer to, instead of now.
    :raises TreeInterrupted: on Ctrl-C. It has the partial tree, which `check_tree` checks.
    """
    from usp.stream import SitemapStream

    checked_time = _checked_time(now)
    stream = SitemapStream(homepage_url, web_client, memory_bytes=SMALL_MEMORY_BYTES, bounds_reading=True, **options)
    return _StreamCheck(stream, checked_time, options).report()


def check_tree(tree: AbstractSitemap, *, now: datetime | None = None) -> Report:
    """Check a tree that you have already, or a part of it.

    If a sitemap has no document, because it was made by hand or unpickled, usp checks the URLs and dates of its pages.
    Their problems have no line. Parameters are those of `check_homepage`.
    """
    return Check(tree, SitemapReader(Site(_homepage_of(tree), _checked_time(now), {}))).report()


def check_read(
    stream: SitemapStream,
    source: Source,
    *,
    now: datetime | None = None,
    has_short_names: bool = True,
    **options: Unpack[HomepageOptions],
) -> Report:
    """Check what a stream of a source has read. Its tree is complete, and the stream is not closed yet.

    :param has_short_names: whether the names of sitemaps leave out the URL of the site.
    :param options: those that the stream was opened with.
    """
    return _StreamCheck(stream, _checked_time(now), options, source, has_short_names).report_of(stream.tree)


def check_path(path: str | os.PathLike[str], *, url: str | None = None, now: datetime | None = None) -> Report:
    """Check a file, or a folder of files as a site. Nothing is requested.

    :param url: where it is, or will be, served. If None, its entries tell the site, and rules on folders do not apply.
    :raises OSError: if it cannot be read.
    """
    from usp.sources.files import tree_of_path

    tree, names = tree_of_path(path, url)
    return _check_files(tree, names, os.fspath(path), url, _checked_time(now))


def check_bytes(content: bytes, *, name: str = "-", url: str | None = None, now: datetime | None = None) -> Report:
    """Check the content of a sitemap, as `check_path` does for a file of that name."""
    from usp.sources.files import tree_of_bytes

    tree, names = tree_of_bytes(content, name, url)
    return _check_files(tree, names, name, url, _checked_time(now))


def _check_files(
    tree: AbstractSitemap,
    names: dict[str, str],
    target: str,
    url: str | None,
    now: datetime,
    has_short_names: bool = True,
) -> Report:
    is_folder = isinstance(tree, IndexWebsiteSitemap)
    homepage = _homepage_of(tree) if has_short_names else ""
    site = Site(
        homepage,
        now,
        names,
        url is not None or is_folder,
        url is not None,
        folder=target if is_folder else "",
        stated_url=url or "",
    )
    # Without a robots.txt in the folder, the site may still have one.
    has_robots = is_folder and any(isinstance(sub, IndexRobotsTxtSitemap) for sub in tree.sub_sitemaps)
    return Check(tree, SitemapReader(site), target=target, is_robots_known=has_robots, is_whole=has_robots).report()


class _StreamCheck:
    """The check of a stream: of a website or a sitemap while it is fetched, or of files."""

    def __init__(
        self,
        stream: SitemapStream,
        now: datetime,
        options: HomepageOptions,
        source: Source | None = None,
        has_short_names: bool = True,
    ) -> None:
        self._stream = stream
        self._now = now
        self._options = options
        self._source = source
        self._has_short_names = has_short_names
        self._is_named = CrossSubmissions(stream.fetch_extra).is_named
        self._reader: SitemapReader | None = None
        self._probed: Report | None = None  # what a probe had found when it was interrupted
        self.probe: Probe | None = None

    def report(self) -> Report:
        """Check everything."""
        if self._is_local:
            report = self._check_files(self._stream.read())
        else:
            from usp.check.fetching import check_while_fetching

            tree = check_while_fetching(self._stream, self._receive)
            report = self._check(tree, self._first_reader(), is_whole=_is_whole(self._options))
        report = replace(report, notes=self._stream.notes)
        return report if self.probe is None else self._probe(self.probe, self._stream.tree, report)

    def _probe(self, probe: Probe, tree: AbstractSitemap, report: Report) -> Report:
        """Fetch pages of the tree, and add what is wrong with them."""
        from usp.check.probing.prober import Prober

        prober = Prober(probe, self._stream, tree, report, self._first_reader().robots, self._now)
        try:
            prober.run()
        except KeyboardInterrupt:
            self._probed = prober.report()
            raise TreeInterrupted(tree) from None
        return prober.report()

    def partial_report(self, tree: AbstractSitemap) -> Report:
        """Check the tree of a stream that was interrupted."""
        if self._probed is not None:
            return self._probed
        # Not with the same reader: it may have read a part of a sitemap.
        return self._report_of(tree, is_whole=False)

    def report_of(self, tree: AbstractSitemap) -> Report:
        """Check the tree of a stream that somebody else has read."""
        return self._report_of(tree, is_whole=_is_whole(self._options))

    def _report_of(self, tree: AbstractSitemap, *, is_whole: bool) -> Report:
        if self._is_local:
            return self._check_files(tree)
        return self._check(tree, SitemapReader(self._site()), is_whole=is_whole)

    @property
    def _is_local(self) -> bool:
        return self._source is not None and self._source.reading is None

    def _check_files(self, tree: AbstractSitemap) -> Report:
        assert self._source is not None
        source, names = self._source, self._stream.names
        return _check_files(tree, names, source.target, source.url, self._now, self._has_short_names)

    def _check(self, tree: AbstractSitemap, reader: SitemapReader, is_whole: bool) -> Report:
        is_site = isinstance(tree, IndexWebsiteSitemap)
        has_robots = is_site and bool(self._options.get("use_robots", True))
        return Check(tree, reader, is_robots_known=has_robots, is_whole=is_site and is_whole).report()

    def _receive(self, place: TreePlace) -> None:
        self._first_reader().receive(place)

    def _first_reader(self) -> SitemapReader:
        """Return the reader. It is made with the first sitemap: before that, the stream may turn to another URL."""
        if self._reader is None:
            self._reader = SitemapReader(self._site())
        return self._reader

    def _site(self) -> Site:
        homepage = self._stream.homepage_url if self._has_short_names else ""
        # A sitemap that is read alone may list pages anywhere on its host: robots.txt may lead to it.
        return Site(homepage, self._now, {}, is_placed=self._stream.is_site, is_named=self._is_named)


def _checked_probe(probe: Probe | int | str, sources: Sequence[Source]) -> Probe:
    """Return the options of a probe, before anything is fetched. Raise an error if they cannot work."""
    from usp.check.probing.page import html_reader
    from usp.check.probing.probe import probe_of
    from usp.check.probing.table import output_of

    found = probe_of(probe)
    for source in sources:
        if source.kind.is_local:
            raise InvalidArgumentError(f"only pages of a site can be probed; {source.target} is read from files")
    if found.table is not None:
        if len(sources) > 1:
            raise InvalidArgumentError("a table of probed pages is of one site; probe one after the other")
        output_of(found.table)
    html_reader()
    return found


def _is_whole(options: HomepageOptions) -> bool:
    """Return whether all sitemaps of a website are read: neither options nor callbacks leave any out."""
    is_all = bool(options.get("use_robots", True)) and bool(options.get("use_known_paths", True))
    return is_all and not any(options.get(name) for name in _CHOOSING)


def _homepage_of(tree: AbstractSitemap) -> str:
    return tree.url if isinstance(tree, IndexWebsiteSitemap) else strip_url_to_homepage(tree.url)


def _checked_time(now: datetime | None) -> datetime:
    if now is None:
        return datetime.now(UTC)
    if now.tzinfo is None:
        raise InvalidArgumentError(f"now must be a datetime with a time zone, not {now!r}")
    return now


class _ListedPlaces:
    """Collect where a document lists each sitemap, as an inspector of its entries."""

    def __init__(self) -> None:
        self.places: dict[str, At] = {}
        self.reader: PureSurvey = SurveyOff(SurveyOptions())

    def skips_line(self, url: str, /) -> bool:
        """Return True: a line of a text list is a page."""
        return True

    def entry(self, element: Element, url: str, /) -> None:
        """Note the place of an entry, unless its sitemap was listed before."""
        if element.name == "sitemap":
            self.places.setdefault(requested_url(url), element.place_of("loc"))


class Check:
    """The check of one tree.

    `is_robots_known` says whether the check knows what robots.txt names. `is_whole` says whether usp looked for all
    sitemaps of the site; then a sitemap that is not in the tree does not exist.
    """

    def __init__(
        self,
        tree: AbstractSitemap,
        reader: SitemapReader,
        *,
        target: str | None = None,
        is_robots_known: bool = True,
        is_whole: bool = False,
    ) -> None:
        self._tree = tree
        self._reader = reader
        self._site = reader.site
        self._sitemap_rules = [rule for rule in reader.rules if isinstance(rule, SitemapRule)]
        self._site_rules = [rule for rule in reader.rules if isinstance(rule, SiteRule)]
        self._target = tree.url if target is None else target
        self._is_robots_failed = any(problem.code == "R704" for problem in self._root_problems())
        self._lost = list(lost_roots(tree))
        is_robots_missed = self._is_robots_failed or any(map(_is_robots, self._lost))
        is_robots_known &= not is_robots_missed
        self._places = tree_places(tree, is_robots_known, reader.site.name_of, reader.site.stated_url)
        is_answered = not self._root_problems() and not self._lost
        self._is_empty = is_whole and is_answered and _has_no_sitemap(self._places)
        # A sitemap with several places is checked at the first to which a robots.txt leads.
        self._first_led = {place.sitemap.url: place for place in reversed(self._places) if place.robots is not None}
        for sitemap in tree.sub_sitemaps:
            if isinstance(sitemap, IndexRobotsTxtSitemap):
                reader.read_robots(sitemap)
        self._checks: dict[tuple[str, bool], SitemapCheck] = {}
        self._last_listed: tuple[str, dict[str, At]] = "", {}

    def report(self) -> Report:
        """Check everything."""
        for place in self._places:
            self._check(place)
        self._restore_cut()
        check_return_links(self._reader.tables.returns, self._checks.values())
        root = list(self._root()) if isinstance(self._tree, IndexWebsiteSitemap) else []
        sitemaps = (*root, *(_checked_sitemap(check, self._site) for check in self._checks.values()))
        outcome = outcome_of(self._tree, self._tree.facts)  # as of now: reading problems may have cut a document
        return Report(self._target, sitemaps, self._is_reached(), outcome=outcome)

    def _is_reached(self) -> bool:
        if not isinstance(self._tree, IndexWebsiteSitemap):
            return not (isinstance(self._tree, InvalidSitemap) and self._tree.cause is Cause.UNREACHABLE)
        return bool(self._checks) or all(problem.code == _CUT for problem in self._root_problems())

    def _root_problems(self) -> Problems:
        return self._tree.problems if isinstance(self._tree, IndexWebsiteSitemap) else Problems()

    def _root(self) -> Iterator[CheckedSitemap]:
        log = ProblemLog(self._tree.url)
        if self._is_empty:
            log.add("R711")
        for lost in self._lost if not self._is_robots_failed else ():
            log.add("R713" if _is_robots(lost) else "R714", text=lost.reason, where=lost.url)
        for what, most, sought in self._cuts():
            log.add("C902", text=sought, where=what, total=f"{most:,}")
        root = SitemapCheck(self._tree, self._tree.url, log, pages=len(self._tree.pages))
        root.problems = self._root_problems()
        yield _checked_sitemap(root, self._site)

    def _cuts(self) -> Iterator[tuple[str, int, str]]:
        """Yield what the site has too much of, how much of it was compared, and what for."""
        tables, robots = self._reader.tables, self._reader.robots
        if tables.pages.is_full or tables.stories.is_full:
            yield "pages", MAX_PAGES, "pages listed twice"
        if robots is not None and robots.is_cut:
            yield "rules in robots.txt, or pages that match them,", MAX_RULES, "pages that robots.txt disallows"
        if tables.returns.is_cut:
            yield "links between pages that do not agree", MAX_LINKS, "missing return links"

    def _check(self, place: TreePlace) -> None:
        """Check a sitemap at its first place, and every place of it with the rules on sites."""
        sitemap = place.sitemap
        key = (sitemap.url, isinstance(sitemap, InvalidSitemap))
        if key not in self._checks:
            check = SitemapCheck(sitemap, self._site.name_of(sitemap.url), ProblemLog(sitemap.url))
            self._checks[key] = check
            self._read(check, self._first_led.get(sitemap.url, place))
        for rule in self._site_rules:
            if (found := rule.find(place)) is not None:
                lister = place.lister if found.is_of_lister else None
                listing = None if lister is None else self._checks.get((lister.url, False))
                if listing is not None:
                    at = self._places_listed(listing.sitemap).get(requested_url(place.declared_url))
                    found = found._replace(at=at)
                self._add((listing or self._checks[key]).log, rule.code, found)

    def _places_listed(self, lister: AbstractSitemap) -> dict[str, At]:
        """Return where a sitemap or robots.txt lists each sitemap. Only those of the last one are remembered."""
        if self._last_listed[0] != lister.url:
            listed = _ListedPlaces()
            if lister.parser is not None:
                lister.parser.inspect(ProblemLog(lister.url), listed)
            self._last_listed = lister.url, listed.places
        return self._last_listed[1]

    def _read(self, check: SitemapCheck, place: TreePlace) -> None:
        """Read a sitemap with the rules on its entries, then run the rules on the sitemap as a whole."""
        sitemap = check.sitemap
        if isinstance(sitemap, InvalidSitemap):
            # What is wrong inside of it does not matter, except for why its root was not found.
            check.problems = Problems(problem for problem in sitemap.problems if _is_refusal(problem))
            return
        if isinstance(sitemap, IndexRobotsTxtSitemap):
            check.problems = sitemap.problems
            check.log.size = 0 if sitemap.parser is None else sum(map(len, sitemap.parser.open(UNLOGGED)))
        else:
            check.log, check.stats, check.pages = self._reader.read(place)
            if sitemap.parser is None:
                check.problems = sitemap.problems
        for rule in self._sitemap_rules:
            if (found := rule.find(check)) is not None:
                self._add(check.log, rule.code, found)

    def _add(self, log: ProblemLog, code: str, found: Finding) -> None:
        """Log what a rule found. Show the names of files instead of the URLs that were made up for them."""
        text, values = found.text, found.values
        for url, name in self._site.names.items() if not self._site.is_host_known else ():
            text = text.replace(url, name)
            values = {
                key: value.replace(url, name) if isinstance(value, str) else value for key, value in values.items()
            }
        log.add(code, found.at, text=text, where=self._site.name_of(found.where), **values)

    def _restore_cut(self) -> None:
        """Report that the last sitemap of a tree that was cut at a limit may have fewer pages."""
        if not any(problem.code == _CUT for problem in self._root_problems()):
            return
        read = [check for check in self._checks.values() if not isinstance(check.sitemap, InvalidSitemap)]
        for last in read[-1:]:
            if last.log.counts[_CUT]:
                return  # its document was cut, and its log says so
            cut = tuple(problem for problem in last.sitemap.problems if problem.code == _CUT)
            if cut and not last.problems:
                last.problems = Problems(cut)
                last.pages = len(last.sitemap.pages)


def _checked_sitemap(check: SitemapCheck, site: Site) -> CheckedSitemap:
    """Return what the report says about a sitemap."""
    problems = check.problems.and_more(check.log.problems())
    by_place = sorted(problems, key=lambda problem: (problem.line or 0, problem.column or 0))
    kind, url = type(check.sitemap).__name__, check.sitemap.url
    found = Problems(by_place, problems.counts)
    return CheckedSitemap(check.name, url, kind, check.pages, found, site.is_file(url), site.folder)


def _is_refusal(problem: Problem) -> bool:
    """Return whether a problem is a reason why XML parsers refuse a document."""
    return problem.severity is ERROR and problem.code[0] == "X" and problem.code not in _REPAIRED


def _is_robots(root: RootAnswer) -> bool:
    return urlsplit(root.url).path.endswith("/robots.txt")


def _has_no_sitemap(places: list[TreePlace]) -> bool:
    """Return whether a site has no sitemap and names none (R711).

    If a web page is served in place of robots.txt (R701), nobody knows what robots.txt would name.
    """
    return all(
        isinstance(place.sitemap, IndexRobotsTxtSitemap) and not place.sitemap.problem_counts["R701"]
        for place in places
    )
