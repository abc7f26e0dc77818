"""From a tree, a homepage, a file or a folder to a `Report`.

Every sitemap is read once, in the order of the tree, whatever its size, with the rules on its entries and then those on
it as a whole; the rules on places see all of the tree. Return links take another reading of those sitemaps that have
alternates, where any are amiss.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Unpack

from usp.check.alternates import MAX_COMPARED
from usp.check.entries import Finding
from usp.check.inspection import MAX_PAGES, Comparison, LookUp, Marking, table_of
from usp.check.readings import Readings, Site
from usp.check.report import CheckedSitemap, Report
from usp.check.robots import MAX_RULES
from usp.check.site import SITE_RULES, PlacedSitemap, has_nothing, places
from usp.check.sitemaps import SITEMAP_RULES, CheckedDocument
from usp.exceptions import InvalidArgumentError
from usp.objects.problem import UNLOGGED, ProblemLog, Problems
from usp.objects.sitemap import AbstractSitemap, IndexRobotsTxtSitemap, IndexWebsiteSitemap, InvalidSitemap
from usp.origins import split_credentials
from usp.scan.survey import Facts
from usp.scan.urls import strip_url_to_homepage

if TYPE_CHECKING:
    from usp.drivers.homepage import HomepageOptions
    from usp.web_client.abstract_client import AbstractWebClient

__all__ = ["Check", "check_bytes", "check_homepage", "check_path", "check_tree"]

_CUT = "C901"


def check_homepage(
    homepage_url: str,
    web_client: AbstractWebClient | None = None,
    *,
    now: datetime | None = None,
    **options: Unpack[HomepageOptions],
) -> Report:
    """Fetch the sitemap tree of a website and check it. Options are those of `usp.tree.sitemap_tree_for_homepage`.

    Sitemaps are checked while others are still being fetched.

    :param now: when the check takes place, if not now: what is in the future, or old, is so by that.
    :raises TreeInterrupted: a `KeyboardInterrupt`, with what was had of the tree: `check_tree` checks that.
    """
    from usp.check.fetching import visited_tree
    from usp.check.submissions import Submissions
    from usp.drivers.blocking import client_or_default
    from usp.drivers.homepage import homepage_walk

    walk, fetching, secret_url = homepage_walk(homepage_url, **options)
    has_robots = bool(options.get("use_robots", True))
    is_whole = has_robots and bool(options.get("use_known_paths", True))
    is_whole = is_whole and not options.get("recurse_callback") and not options.get("recurse_list_callback")
    checked_time = _checked_time(now)
    with client_or_default(web_client) as client:
        submissions = Submissions(client, secret_url, fetching)
        site = Site(split_credentials(secret_url)[0], checked_time, {}, is_named=submissions.is_named)
        readings = Readings(site)
        tree = visited_tree(walk, fetching, secret_url, client, readings.visit, submissions.cancel)
        return Check(tree, readings, is_robots_known=has_robots, is_whole=is_whole).report()


def check_tree(tree: AbstractSitemap, *, now: datetime | None = None) -> Report:
    """Check a tree, or a part of it, that is here already.

    Of sitemaps whose documents are not here, because they were made by hand or unpickled, the URLs and dates of the
    pages are checked, and there are no places. Parameters are as for `check_homepage`.
    """
    return Check(tree, Readings(Site(_homepage_of(tree), _checked_time(now), {}))).report()


def check_path(path: str | os.PathLike[str], *, url: str | None = None, now: datetime | None = None) -> Report:
    """Check a file, or a folder of files as a site. Nothing is requested.

    :param url: where it is, or will be, served; if None, its entries say which site it is of, and any folder is fine.
    :raises OSError: if it cannot be read.
    """
    from usp.check.files import tree_of_path

    tree, names = tree_of_path(path, url)
    return _of_files(tree, names, os.fspath(path), url, now)


def check_bytes(content: bytes, *, name: str = "-", url: str | None = None, now: datetime | None = None) -> Report:
    """Check a sitemap that is given as bytes, as `check_path` does a file of that name."""
    from usp.check.files import tree_of_bytes

    tree, names = tree_of_bytes(content, name, url)
    return _of_files(tree, names, name, url, now)


def _of_files(
    tree: AbstractSitemap, names: dict[str, str], target: str, url: str | None, now: datetime | None
) -> Report:
    is_folder = isinstance(tree, IndexWebsiteSitemap)
    site = Site(_homepage_of(tree), _checked_time(now), names, url is not None or is_folder, url is not None)
    # Where there is no robots.txt, it may just not be in the folder.
    has_robots = is_folder and any(isinstance(sub, IndexRobotsTxtSitemap) for sub in tree.sub_sitemaps)
    return Check(tree, Readings(site), target=target, is_robots_known=has_robots, is_whole=has_robots).report()


def _homepage_of(tree: AbstractSitemap) -> str:
    return tree.url if isinstance(tree, IndexWebsiteSitemap) else strip_url_to_homepage(tree.url)


def _checked_time(now: datetime | None) -> datetime:
    if now is None:
        return datetime.now(UTC)
    if now.tzinfo is None:
        raise InvalidArgumentError(f"now must be a datetime with a time zone, not {now!r}")
    return now


@dataclass(slots=True)
class _Checked:
    """A sitemap that was checked, until the report is made."""

    sitemap: AbstractSitemap
    name: str
    log: ProblemLog
    facts: Facts
    own: Problems = field(default_factory=Problems)  # what the sitemap had already
    pages: int = 0

    def done(self) -> CheckedSitemap:
        """What the report says of it."""
        found = self.own.and_more(self.log.problems())
        by_place = sorted(found, key=lambda problem: (problem.line or 0, problem.column or 0))
        kind = type(self.sitemap).__name__
        return CheckedSitemap(self.name, self.sitemap.url, kind, self.pages, Problems(by_place, found.counts))


class Check:
    """The check of one tree.

    `is_robots_known` says whether it is known what robots.txt names; `is_whole`, whether all that is part of the site
    was looked for, so that what is not in the tree is not there.
    """

    def __init__(
        self,
        tree: AbstractSitemap,
        readings: Readings,
        *,
        target: str | None = None,
        is_robots_known: bool = True,
        is_whole: bool = False,
    ) -> None:
        self._tree = tree
        self._readings = readings
        self._site = readings.site
        self._ledger = readings.ledger
        self._target = tree.url if target is None else target
        is_missed = any(problem.code == "R704" for problem in self._root_problems())
        self._places = places(tree, is_robots_known and not is_missed, readings.site.name_of)
        self._is_empty = is_whole and not self._root_problems() and has_nothing(self._places)
        self._first_led = {place.sitemap.url: place for place in reversed(self._places) if place.robots is not None}
        for sitemap in tree.sub_sitemaps:
            if isinstance(sitemap, IndexRobotsTxtSitemap):
                readings.take_rules(sitemap, sitemap.parser)
        self._checked: dict[tuple[str, bool], _Checked] = {}

    def report(self) -> Report:
        """Check everything."""
        for place in self._places:
            self._check(place)
        self._restore_cut()
        self._check_return_links()
        root = list(self._root()) if isinstance(self._tree, IndexWebsiteSitemap) else []
        is_reached = bool(self._checked) or all(problem.code == _CUT for problem in self._root_problems())
        return Report(self._target, (*root, *(checked.done() for checked in self._checked.values())), is_reached)

    def _root_problems(self) -> Problems:
        return self._tree.problems if isinstance(self._tree, IndexWebsiteSitemap) else Problems()

    def _root(self) -> Iterator[CheckedSitemap]:
        log = ProblemLog(self._tree.url)
        if self._is_empty:
            log.add("R711")
        for what, most, sought in self._cuts():
            log.add("C902", text=sought, where=what, total=f"{most:,}")
        root = _Checked(self._tree, self._tree.url, log, Facts(), self._root_problems(), len(self._tree.pages))
        yield root.done()

    def _cuts(self) -> Iterator[tuple[str, int, str]]:
        """What there is too much of, how much of it is looked at, and what for."""
        if self._ledger.pages.is_full or self._ledger.stories.is_full:
            yield "pages", MAX_PAGES, "pages listed twice"
        if self._readings.rules is not None and self._readings.rules.is_cut:
            yield "rules, or pages that they may be about,", MAX_RULES, "pages that robots.txt disallows"
        if self._ledger.returns.is_cut:
            yield "links between pages that do not agree", MAX_COMPARED, "missing return links"

    def _check(self, place: PlacedSitemap) -> None:
        """Check a sitemap where it stands first, and every place of it."""
        sitemap = place.sitemap
        key = (sitemap.url, isinstance(sitemap, InvalidSitemap))
        if key not in self._checked:
            checked = _Checked(sitemap, self._site.name_of(sitemap.url), ProblemLog(sitemap.url), Facts())
            self._checked[key] = checked
            self._read(checked, self._first_led.get(sitemap.url, place))
        checked = self._checked[key]
        for code, rule in SITE_RULES.items():
            if (found := rule(place)) is not None:
                self._note(checked.log, code, found)

    def _note(self, log: ProblemLog, code: str, found: Finding) -> None:
        """Note what a rule found, with the names of files in the place of URLs that were made up for them."""
        text, values = found.text, found.values
        for url, name in self._site.names.items() if not self._site.is_host_known else ():
            text = text.replace(url, name)
            values = {
                key: value.replace(url, name) if isinstance(value, str) else value for key, value in values.items()
            }
        log.add(code, found.at, text=text, where=self._site.name_of(found.where), **values)

    def _read(self, checked: _Checked, place: PlacedSitemap) -> None:
        """Read a sitemap, with all rules on its entries and on itself."""
        sitemap, log = checked.sitemap, checked.log
        if isinstance(sitemap, InvalidSitemap):
            return  # what is wrong inside of what is no sitemap does not matter
        if isinstance(sitemap, IndexRobotsTxtSitemap):
            checked.own = sitemap.problems
            log.size = 0 if sitemap.parser is None else sum(map(len, sitemap.parser.open(UNLOGGED)))
        else:
            reading = self._readings.of(sitemap, sitemap.parser, place.lead())
            log = checked.log = reading.log
            checked.facts, checked.pages = reading.facts, reading.pages
            if sitemap.parser is None:
                checked.own = sitemap.problems
        document = CheckedDocument(sitemap, checked.facts, log.size, log.counts)
        for code, rule in SITEMAP_RULES.items():
            if (found := rule(document)) is not None:
                self._note(log, code, found)

    def _restore_cut(self) -> None:
        """Of a tree that was cut at a limit, the last sitemap may have fewer pages, and says so."""
        if not any(problem.code == _CUT for problem in self._root_problems()):
            return
        read = [checked for checked in self._checked.values() if not isinstance(checked.sitemap, InvalidSitemap)]
        for last in read[-1:]:
            cut = tuple(problem for problem in last.sitemap.problems if problem.code == _CUT)
            if cut and not last.own:
                last.own = Problems(cut)
                last.pages = len(last.sitemap.pages)

    def _check_return_links(self) -> None:
        """Compare the pages of sets of alternates that are not complete; see `alternates`."""
        returns = self._ledger.returns
        if not returns.clusters.has_open:
            return
        linked = [checked for checked in self._checked.values() if checked.facts.linked and checked.sitemap.parser]
        compared: list[_Checked] = []
        for checked in linked:
            comparison = Comparison(checked.sitemap.url, self._ledger)
            _inspect_again(checked, comparison, UNLOGGED)
            compared += [checked] * comparison.has_compared
        if doubtful := returns.doubtful():
            table = table_of(doubtful, self._ledger)
            for checked in linked:
                _inspect_again(checked, LookUp(checked.sitemap.url, table, self._ledger), UNLOGGED)
        if missing := returns.missing():
            table = table_of(missing, self._ledger)
            for checked in compared:
                log = ProblemLog(checked.sitemap.url)
                _inspect_again(checked, Marking(checked.sitemap.url, missing, table, self._ledger, log), log)
                _take_over("H633", log.problems(), checked)


def _inspect_again(checked: _Checked, inspector: Comparison | LookUp | Marking, log: ProblemLog) -> None:
    if (parser := checked.sitemap.parser) is not None:
        parser.inspect(log, inspector)


def _take_over(code: str, problems: Problems, checked: _Checked) -> None:
    """Add the problems of one code to those that a sitemap has."""
    kept = (problem for problem in problems if problem.code == code)
    checked.own = checked.own.and_more(Problems(kept, Counter({code: problems.counts[code]})))
