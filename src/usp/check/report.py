"""The report of a check: problems by sitemap, in the order of the tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from usp.exceptions import InvalidArgumentError
from usp.objects import codes
from usp.objects.codes import Severity
from usp.objects.outcome import Outcome, OutcomeKind, combined
from usp.objects.problem import Problem, Problems
from usp.objects.wording import described, plural

__all__ = ["CheckedSitemap", "Report", "merged"]


def _starts(wanted: Iterable[str]) -> tuple[str, ...]:
    starts = tuple(start.strip().upper() for start in (wanted.split(",") if isinstance(wanted, str) else wanted))
    for start in starts:
        if not any(code.startswith(start) for code in codes.CODES):
            raise InvalidArgumentError(f"no code starts with {start!r}; see usp.objects.codes.CODES")
    return starts


def _severities(counts: Counter[str]) -> Counter[Severity]:
    found: Counter[Severity] = Counter()
    for code, count in counts.items():
        found[codes.CODES[code].severity] += count
    return found


def _found(counts: Counter[str]) -> str:
    """Return how many problems there are of each severity, the worst first, or "no problems"."""
    found = _severities(counts)
    return ", ".join(plural(found[one], one.noun) for one in reversed(Severity) if found[one]) or "no problems"


def _code_row(code: str, count: int, first: Problem | None) -> tuple[str, ...]:
    """Return the row of a code in a notebook."""
    from usp.notebook import escaped, short_link

    place = "" if first is None else f"{short_link(first.url, first.place)}<br>{escaped(first.message)}"
    return code, codes.CODES[code].severity.noun, f"{count:,}", place


def _sitemap_row(sitemap: CheckedSitemap) -> tuple[str, ...]:
    """Return the row of a sitemap in a notebook."""
    from usp.notebook import short_link

    return short_link(sitemap.url, sitemap.name or sitemap.url), f"{sitemap.pages:,}", _found(sitemap.problems.counts)


@dataclass(frozen=True, slots=True, repr=False)
class CheckedSitemap:
    """One sitemap and its problems.

    `name` is its URL without that of the site, or the name of its file. `kind` is the name of its class. Problems of
    the site as a whole are with the root, whose kind is "IndexWebsiteSitemap". `folder` is the folder or archive that
    was checked as a site, if it was one.
    """

    name: str
    url: str
    kind: str
    pages: int
    problems: Problems
    is_file: bool = False  # the name is that of a file
    folder: str = ""

    def __repr__(self) -> str:
        return described(self, self.name or self.url, plural(self.pages, "page"), _found(self.problems.counts))


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """The result of a check.

    `target` is the URL, file or folder that was checked; several are joined with commas. `outcome` says how reading it
    ended, and `notes` how it was read, if not as written.
    """

    target: str
    sitemaps: tuple[CheckedSitemap, ...]
    is_reached: bool = True  # False if the site did not answer
    outcome: Outcome = field(default_factory=lambda: Outcome(OutcomeKind.COMPLETE))
    notes: tuple[str, ...] = ()
    probed: int | None = None  # how many pages were fetched; None if there was no probe
    is_limited: bool = False  # whether only some problems are in it, those that `--max` has kept

    @property
    def pages(self) -> int:
        """How many pages the sitemaps list."""
        return sum(sitemap.pages for sitemap in self.sitemaps)

    @property
    def sitemap_count(self) -> int:
        """How many sitemaps there are, including those that could not be fetched, without the root."""
        return sum(sitemap.kind != "IndexWebsiteSitemap" for sitemap in self.sitemaps)

    def problems(self) -> Iterator[Problem]:
        """Yield all problems that were kept: the first twenty of each code in each sitemap."""
        for sitemap in self.sitemaps:
            yield from sitemap.problems

    def counts(self) -> Counter[str]:
        """Count all problems by code, the worst and the most frequent first."""
        found: Counter[str] = Counter()
        for sitemap in self.sitemaps:
            found.update(sitemap.problems.counts)
        order = sorted(found.items(), key=lambda item: (-codes.CODES[item[0]].severity, -item[1], item[0]))
        return Counter(dict(order))

    def severities(self) -> Counter[Severity]:
        """Count all problems by severity."""
        return _severities(self.counts())

    def summary(self) -> str:
        """Return the summary in one line: 2 sitemaps, 48,201 pages, 1 error, 1 warning."""
        probed = "" if self.probed is None else f" ({self.probed:,} probed)"
        return f"{plural(self.sitemap_count, 'sitemap')}, {plural(self.pages, 'page')}{probed}, {_found(self.counts())}"

    def __repr__(self) -> str:
        return described(self, self.target, self._sentence())

    def _repr_html_(self) -> str:
        """Return what notebooks show: a table of codes, the worst first, and one of the sitemaps with problems."""
        from usp import notebook  # most programs do not need it

        first: dict[str, Problem] = {}
        for problem in self.problems():
            first.setdefault(problem.code, problem)
        counts = list(self.counts().items())
        rows = [_code_row(code, count, first.get(code)) for code, count in counts[: notebook.MAX_ROWS]]
        wrong = [sitemap for sitemap in self.sitemaps if sitemap.problems.counts]
        parts = []
        if rows:
            parts.append(notebook.table(("Code", "Severity", "Number", "The first one"), rows, numbers=("Number",)))
        if len(wrong) > 1:
            listed = map(_sitemap_row, wrong[: notebook.MAX_ROWS])
            parts.append(notebook.table(("Sitemap", "Pages", "Problems"), listed, numbers=("Pages",)))
        if len(wrong) > notebook.MAX_ROWS:
            parts.append(notebook.note(f"... and {plural(len(wrong) - notebook.MAX_ROWS, 'more sitemap')}."))
        return notebook.framed("Report", self.target, self._sentence(), parts)

    def _sentence(self) -> str:
        """Return the summary, and the outcome unless it is complete."""
        is_complete = self.outcome.kind is OutcomeKind.COMPLETE
        outcome = ("" if self.is_reached else "not reached") if is_complete else str(self.outcome.kind)
        return ", ".join(filter(None, (self.summary(), outcome)))

    def selected(self, select: Iterable[str] = (), ignore: Iterable[str] = ()) -> Report:
        """Return a report with only those problems whose code starts with one of `select` and with none of `ignore`.

        :raises InvalidArgumentError: if no code starts like that.
        """
        wanted, unwanted = _starts(select), _starts(ignore)

        def is_wanted(code: str) -> bool:
            return (not wanted or code.startswith(wanted)) and not (unwanted and code.startswith(unwanted))

        return self.filtered(lambda sitemap, code: is_wanted(code))

    def filtered(self, is_wanted: Callable[[CheckedSitemap, str], bool]) -> Report:
        """Return a report with only the problems for which `is_wanted(sitemap, code)` is true."""

        def kept(sitemap: CheckedSitemap) -> Problems:
            codes = {code for code in sitemap.problems.counts if is_wanted(sitemap, code)}
            counts = Counter({code: count for code, count in sitemap.problems.counts.items() if code in codes})
            return Problems((problem for problem in sitemap.problems if problem.code in codes), counts)

        return replace(self, sitemaps=tuple(replace(sitemap, problems=kept(sitemap)) for sitemap in self.sitemaps))


def merged(reports: Sequence[Report]) -> Report:
    """Return one report of several."""
    if len(reports) == 1:
        return reports[0]
    return Report(
        ", ".join(report.target for report in reports),
        tuple(sitemap for report in reports for sitemap in report.sitemaps),
        any(report.is_reached for report in reports),
        combined([report.outcome for report in reports]),
        tuple(note for report in reports for note in report.notes),
        sum(report.probed or 0 for report in reports) if any(report.probed is not None for report in reports) else None,
    )
