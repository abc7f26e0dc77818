"""How a command ends: one table of exit codes, and what is said about the outcome of a run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import fill
from typing import NamedTuple
from urllib.parse import urlsplit

from usp.cli import HUNG_UP, INTERRUPTED, TERMINATED
from usp.cli.output import TreeCounts, duration, say, size
from usp.objects.outcome import Cause, Missing, Outcome, OutcomeKind, combined, outcome_of
from usp.objects.problem import printable
from usp.objects.sitemap import AbstractSitemap
from usp.objects.wording import plural, plural_noun
from usp.sources import STANDARD_INPUT

__all__ = [
    "DIFFERENCES_FOUND",
    "EXIT_CODES",
    "EXIT_CODES_HELP",
    "PARTIAL",
    "PROBLEMS_FOUND",
    "WRONG_USE",
    "Ended",
    "Ending",
    "advice",
    "code_of_sites",
]

PROBLEMS_FOUND = DIFFERENCES_FOUND = 1
WRONG_USE = 2
_NOTHING = 3
PARTIAL = 4
_EXIT_CODES = {
    OutcomeKind.COMPLETE: 0,
    OutcomeKind.PARTIAL: PARTIAL,
    OutcomeKind.BLOCKED: _NOTHING,
    OutcomeKind.UNREACHABLE: _NOTHING,
    OutcomeKind.EMPTY: _NOTHING,
}
#: Each exit code -> what it means, for --help and for the documentation.
EXIT_CODES = {
    0: "complete; a message names sitemaps that do not exist (404, 410)",
    PROBLEMS_FOUND: "usp check found problems; usp diff --exit-code found changes",
    WRONG_USE: "wrong use, or a file cannot be read or written",
    _NOTHING: "nothing could be fetched: the site is blocked, unreachable or has no sitemap. An existing output file"
    " stays as it was",
    PARTIAL: "partial: some sitemaps are missing. The results are written, unless you add --strict, which also counts"
    " sitemaps that do not exist as missing",
    HUNG_UP: "the terminal was closed (SIGHUP); otherwise the same as Ctrl-C",
    INTERRUPTED: "interrupted with Ctrl-C. Partial results go to standard output; a file is replaced only with"
    " --keep-partial",
    TERMINATED: "ended with SIGTERM, as by timeout; otherwise the same as Ctrl-C",
}
EXIT_CODES_HELP = "exit codes:\n" + "".join(
    fill(meaning, 79, initial_indent=f"  {code:<5}", subsequent_indent=" " * 7, break_on_hyphens=False) + "\n"
    for code, meaning in EXIT_CODES.items()
)

_MAX_URLS = 3  # shown of sitemaps that are missing for the same reason
_IS_NAMED = {
    Cause.NOT_FOUND: "does not exist",
    Cause.TRUNCATED: "cut short",
    Cause.LOOP: "skipped",
    Cause.DISALLOWED: "left out",
    Cause.LEFT_OUT: "left out",
}
_OPTIONS = {
    "limits.max_pages": "--max-pages",
    "limits.max_sitemaps": "--max-sitemaps",
    "limits.tree_seconds": "--max-time",
    "cross_host=": "--cross-host ",
    "respect_robots": "--respect-robots",
    "`include`": "--include",
}
_DECISIVE = (Cause.BLOCKED, Cause.UNREACHABLE, Cause.REFUSED, Cause.DISALLOWED)
_SLOWER = "try again later, or more gently: -c 1 --spacing 2"
#: The start of a status -> what to try.
_ADVICE = {
    "401": "give a password: https://user:password@host/, or --header 'Authorization: ...'",
    "407": "the proxy wants a password: --proxy http://user:password@host:3128",
    "429": _SLOWER,
    "4": "try another --user-agent, or a --header 'Cookie: ...' from your browser",
    "503": _SLOWER,
    "5": "the server fails; try again later",
}
#: The start of a reason why a site cannot be reached -> what to try.
_REACH_ADVICE = {
    "the certificate is not valid": "to read it all the same, add --insecure",
    "TLS failed: wrong version number": "if the site has no https, write http://",
    "no answer within": "to wait longer, use --timeout",
}
_SAID_ALREADY = re.compile("Not fetched: |Left out: ")


def code_of_sites(outcomes: Mapping[str, int], *, has_bad_lines: bool = False) -> int:
    """Return the exit code of a run over many sites: 0 if all are complete or have no sitemap, 3 if none is read."""
    kinds = {OutcomeKind(kind) for kind, count in outcomes.items() if count}
    if kinds and not kinds & {OutcomeKind.COMPLETE, OutcomeKind.PARTIAL}:
        return _NOTHING
    is_whole = kinds <= {OutcomeKind.COMPLETE, OutcomeKind.EMPTY} and not has_bad_lines
    return 0 if is_whole else PARTIAL


class Ended(NamedTuple):
    """The end of one source: its name, its outcome, and the limits that were reached."""

    name: str
    outcome: Outcome
    cuts: tuple[str, ...] = ()


class Ending:
    """The end of a run: what came of each source."""

    def __init__(self, ended: Sequence[Ended], *, is_strict: bool = False, is_interrupted: bool = False) -> None:
        self.ended = ended
        self.outcome = combined([one.outcome for one in ended]) if ended else Outcome(OutcomeKind.PARTIAL)
        self.is_interrupted = is_interrupted
        self.is_strict = is_strict

    @classmethod
    def of_trees(
        cls, trees: Iterable[AbstractSitemap], *, is_strict: bool = False, is_interrupted: bool = False
    ) -> Ending:
        """Return the end of a run that read these trees, as of now: reading pages may still cut a document."""
        ended = [
            Ended(tree.facts.names.get(tree.url, tree.url), outcome_of(tree, tree.facts), tree.facts.cuts)
            for tree in trees
        ]
        return cls(ended, is_strict=is_strict, is_interrupted=is_interrupted)

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        if self.is_interrupted:
            return INTERRUPTED
        code = _EXIT_CODES[self.outcome.kind]
        return PARTIAL if not code and self.is_strict and self._is_flawed else code

    @property
    def is_kept(self) -> bool:
        """Whether results are written to a file."""
        return self.outcome.has_result and not (self.is_strict and (self._is_flawed or self.exit_code == PARTIAL))

    @property
    def has_result(self) -> bool:
        """Whether at least a part could be read."""
        return self.outcome.has_result

    @property
    def _is_flawed(self) -> bool:
        return any(not missing.cause.is_choice and missing.cause is not Cause.LOOP for missing in self.outcome.missing)

    def say(self, counts: TreeCounts | None = None, cost: tuple[int, float] | None = None, *, is_quiet: bool) -> None:
        """Say what is missing and why, and a summary. If quiet, say only what is lost.

        :param counts: numbers for the summary.
        :param cost: the bytes and seconds that it took.
        """
        for one in self.ended:
            if not one.outcome.has_result:
                say(f"usp: {printable(_nothing(one.name, one.outcome))}")
            else:
                for line in _lines(one, is_interrupted=self.is_interrupted, is_quiet=is_quiet):
                    say(f"usp: {printable(_in_words_of_options(line))}")
        if not is_quiet and counts is not None and cost is not None and self.has_result:
            say(f"usp: {self._summary(counts, *cost)}")

    def _summary(self, counts: TreeCounts, read: int, seconds: float) -> str:
        pages = f"{plural(counts.pages, 'page')}, " if counts.has_pages else ""
        kind = "partial: " if self.exit_code == PARTIAL else ""
        return f"{kind}{_sitemaps(counts)}, {pages}{size(read)} in {duration(seconds)}"


def _sitemaps(counts: TreeCounts) -> str:
    """Return a text such as "5 sitemaps (1 missing, 1 cut short)"."""
    parts = [(counts.failed, "missing"), (counts.partial, "cut short"), (counts.left_out, "left out")]
    incomplete = ", ".join(f"{count:,} {what}" for count, what in parts if count)
    return f"{plural(counts.sitemaps, 'sitemap')}{incomplete and f' ({incomplete})'}"


def _nothing(name: str, outcome: Outcome) -> str:
    """Return one line on a run in which nothing could be fetched, with what to try."""
    decisive = _decisive(outcome)
    url, why = (name, outcome.reason) if decisive is None else (decisive.urls[0], decisive.reason)
    if outcome.kind is OutcomeKind.UNREACHABLE:
        return f"cannot reach {_host(url)}: {_in_words_of_options(why)}{advice(outcome)}"
    if decisive is not None and decisive.cause is Cause.DISALLOWED:
        return f"nothing may be read: {url}: {_in_words_of_options(why)}"
    if outcome.kind is OutcomeKind.BLOCKED:
        return f"blocked by {_host(url)}: {url} answered {why}{advice(outcome)}"
    why = _in_words_of_options(outcome.reason).removeprefix(f"{name}: ")
    parts = urlsplit(name)
    hint = "; to read the whole site, add --site" if parts.netloc and parts.path not in ("", "/") else ""
    where = "in standard input" if name == STANDARD_INPUT else f"at {name}" if parts.netloc else f"in {name}"
    return f"no sitemap {where}: {why}{hint}"


def _decisive(outcome: Outcome) -> Missing | None:
    """Return why nothing could be fetched, if that has one cause."""
    return next((missing for missing in outcome.missing if missing.cause in _DECISIVE), None)


def advice(outcome: Outcome) -> str:
    """Return what to try when a site is blocked or unreachable, with a semicolon before it; "" for others."""
    known = {OutcomeKind.UNREACHABLE: _REACH_ADVICE, OutcomeKind.BLOCKED: _ADVICE}.get(outcome.kind, {})
    decisive = _decisive(outcome)
    why = outcome.reason if decisive is None else decisive.reason
    return next((f"; {what}" for start, what in known.items() if why.startswith(start)), "")


def _host(url: str) -> str:
    """Return the host of a URL, with its port if the URL states one."""
    return urlsplit(url).netloc.rpartition("@")[2] or url


def _lines(ended: Ended, *, is_interrupted: bool, is_quiet: bool) -> Iterator[str]:
    """Give a line for each reason why sitemaps are missing."""
    outcome = ended.outcome
    for missing in outcome.missing:
        is_cut = missing.cause is Cause.LIMIT and ended.cuts  # said below
        if not is_cut and (missing.cause.is_loss or not is_quiet):
            yield _line(missing)
    for cut in () if is_interrupted else ended.cuts:  # after Ctrl-C everybody knows why
        yield f"stopped: {cut}"
    if outcome.skipped and not is_interrupted:
        yield f"not fetched because of a limit: {plural(outcome.skipped, 'sitemap')}"
    named = sum(missing.count for missing in outcome.missing if missing.cause is Cause.LEFT_OUT)
    if outcome.left_out > named and not is_quiet:
        yield f"left out as you asked: {plural(outcome.left_out - named, 'sitemap')}"


def _line(missing: Missing) -> str:
    what = _IS_NAMED.get(missing.cause, "missing")
    reason = _SAID_ALREADY.sub("", missing.reason, count=1).removesuffix(".")
    if missing.count == 1:
        return f"{what}: {missing.urls[0]}: {reason}"
    shown = ", ".join(missing.urls[:_MAX_URLS])
    more = f" and {missing.count - _MAX_URLS:,} more" if missing.count > _MAX_URLS else ""
    return f"{what}: {missing.count:,} {plural_noun(missing.count, 'sitemap')}: {reason}: {shown}{more}"


def _in_words_of_options(text: str) -> str:
    """Return a message with the options of the command line in place of the parameters of Python."""
    return re.sub("|".join(map(re.escape, _OPTIONS)), lambda found: _OPTIONS[found[0]], text)
