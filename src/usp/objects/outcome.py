"""`Outcome`: how a run ended. It is a value on the tree, `tree.outcome`, and decides the exit code of every command.

complete      every sitemap was read, or only sitemaps that do not exist (404, 410) are missing
partial       some sitemaps are missing; `missing` says which and why
blocked       the site answers, but refuses everything that matters: 401, 403, 429, 5xx
unreachable   the site does not answer: no such host, connection refused, timeout, TLS
empty         the site answers, and has no sitemap

`docs/outcomes.md` explains them to users, and `docs/decisions/` has the reasons of the rules below.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING

from usp.objects.problem import shortened
from usp.objects.wording import described, plural

if TYPE_CHECKING:
    from usp.objects.sitemap import AbstractSitemap

__all__ = [
    "Cause",
    "Missing",
    "Outcome",
    "OutcomeKind",
    "RootAnswer",
    "TreeFacts",
    "cause_of_status",
    "combined",
    "lost_roots",
    "outcome_of",
]

_MAX_URLS = 10  # kept of the sitemaps that are missing for one reason
_MAX_REASONS = 50  # for which sitemaps are missing; a site may have a different one for each sitemap
_MAX_DESCRIBED = 3  # of these in the one sentence that says why
_GONE = (404, 410)


class Cause(StrEnum):
    """Why a sitemap is missing from a tree."""

    NOT_FOUND = "not found"  #: it answered 404 or 410
    BLOCKED = "blocked"  #: it answered with another error: 401, 403, 429, 5xx
    UNREACHABLE = "unreachable"  #: nothing answered
    UNREADABLE = "unreadable"  #: what answered is not a sitemap
    TRUNCATED = "truncated"  #: only a part of it arrived
    REFUSED = "refused"  #: usp does not request such a URL, for safety
    LIMIT = "limit"  #: a limit, the end of the time, or an interrupt
    LOOP = "loop"  #: it is above itself in the tree
    DISALLOWED = "disallowed"  #: robots.txt disallows it, and `respect_robots` is on
    LEFT_OUT = "left out"  #: your options leave it out

    @property
    def is_loss(self) -> bool:
        """Whether something is missing that the site offers and you asked for."""
        return self not in (Cause.NOT_FOUND, Cause.LOOP, Cause.DISALLOWED, Cause.LEFT_OUT)

    @property
    def is_choice(self) -> bool:
        """Whether your options keep the sitemap from being fetched."""
        return self in (Cause.DISALLOWED, Cause.LEFT_OUT)


class OutcomeKind(StrEnum):
    """How a run ended, in one word."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    BLOCKED = "blocked"
    UNREACHABLE = "unreachable"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class Missing:
    """Sitemaps that are missing for one reason. `urls` are the first ten of them."""

    cause: Cause
    reason: str
    count: int
    urls: tuple[str, ...]

    def __str__(self) -> str:
        what = shortened(self.urls[0]) if self.count == 1 else plural(self.count, "sitemap")
        return f"{what}: {self.reason}"


@dataclass(frozen=True, slots=True, repr=False)
class Outcome:
    """How a run ended.

        tree = sitemap_tree_for_homepage("https://www.example.org/")
        if tree.outcome.kind != "complete":
            print(tree.outcome)

    `reason` is one sentence that says why a run is not complete. `missing` has all that is missing, also what does not
    count as a loss, such as sitemaps that answered 404. `skipped` counts the declared sitemaps that a limit kept from
    being fetched; `left_out` those that your own options left out.
    """

    kind: OutcomeKind
    reason: str = ""
    missing: tuple[Missing, ...] = ()
    skipped: int = 0
    left_out: int = 0

    @property
    def has_result(self) -> bool:
        """Whether the tree is worth keeping: it is complete, or a part of it could be read."""
        return self.kind in (OutcomeKind.COMPLETE, OutcomeKind.PARTIAL)

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}" if self.reason else str(self.kind)

    def __repr__(self) -> str:
        return described(self, self.kind, self.reason)


@dataclass(frozen=True, slots=True)
class RootAnswer:
    """How robots.txt, or a known path, answered.

    `cause` is None if it is a sitemap. `is_guess` is True for a known path where nobody says that there is a sitemap.
    """

    url: str
    cause: Cause | None
    reason: str = ""
    is_guess: bool = False

    @property
    def is_lost(self) -> bool:
        """Whether nobody knows what is there."""
        return self.cause in (Cause.BLOCKED, Cause.UNREACHABLE, Cause.REFUSED)


@dataclass(frozen=True, slots=True)
class TreeFacts:
    """What a walk knows and a tree does not show.

    `roots` is None if the tree is one sitemap and what is below it. `cuts` say which limits were reached. `is_late`
    says whether the time for the tree was up. `names` are those of files, by the URLs of their sitemaps.
    """

    roots: tuple[RootAnswer, ...] | None = None
    cuts: tuple[str, ...] = ()
    is_late: bool = False
    skipped: int = 0
    left_out: int = 0
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_nothing_asked(self) -> bool:
        """Whether the options of the caller leave out robots.txt and all known paths."""
        return self.roots is not None and all(root.cause is Cause.LEFT_OUT for root in self.roots)


def cause_of_status(status: int | None) -> Cause:
    """Return why a request with this HTTP status, or without any, brought no sitemap."""
    if status is None:
        return Cause.UNREACHABLE
    if status in _GONE:
        return Cause.NOT_FOUND
    return Cause.BLOCKED if status >= 400 else Cause.UNREADABLE


def lost_roots(tree: AbstractSitemap) -> list[RootAnswer]:
    """Return the answers of robots.txt and of known paths that may hide sitemaps from a tree.

    Of the known paths where nobody says that there is a sitemap, only the first counts, and only if they decide the
    outcome.
    """
    lost = [root for root in tree.facts.roots or () if root.is_lost]
    named = [root for root in lost if not root.is_guess]
    missing = {url for missing in tree.outcome.missing for url in missing.urls}
    return named or [root for root in lost if root.url in missing][:1]


def outcome_of(tree: AbstractSitemap, facts: TreeFacts) -> Outcome:
    """Return the outcome of a tree.

    It reads a document only if nothing but indexes could be read: they may list pages, too.
    """
    lost = [root for root in facts.roots or () if root.is_lost]
    named = ((root.cause, root.reason, root.url) for root in lost if not root.is_guess)
    found = ((cause, reason, facts.names.get(url, url)) for cause, reason, url in _missing_in(tree))
    missing = list(_grouped(chain(named, found)))
    if _is_read(tree) or facts.is_nothing_asked:
        losses = [one for one in missing if one.cause.is_loss]
        kind = OutcomeKind.PARTIAL if losses or facts.cuts else OutcomeKind.COMPLETE
        reason = _joined(facts.cuts, losses)
    else:
        if not any(one.cause in _KINDS for one in missing):  # then known paths matter, too
            missing += _grouped((root.cause, root.reason, root.url) for root in lost)
        kind, reason = _nothing_read(missing, facts)
    return Outcome(kind, reason, tuple(missing), facts.skipped, facts.left_out)


def combined(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the outcome of several trees together. Partial, if one of them has a result and one is not complete."""
    if len(outcomes) == 1:
        return outcomes[0]
    incomplete = [outcome for outcome in outcomes if outcome.kind is not OutcomeKind.COMPLETE]
    if not incomplete:
        kind = OutcomeKind.COMPLETE
    elif any(outcome.has_result for outcome in outcomes):
        kind = OutcomeKind.PARTIAL
    else:
        kind = incomplete[0].kind
    return Outcome(
        kind,
        "; ".join(outcome.reason for outcome in incomplete),
        tuple(missing for outcome in outcomes for missing in outcome.missing),
        sum(outcome.skipped for outcome in outcomes),
        sum(outcome.left_out for outcome in outcomes),
    )


def _with_all_below(tree: AbstractSitemap) -> Iterator[AbstractSitemap]:
    """Give a sitemap and all below it, in the order of the tree; faster than `all_sitemaps()`, which is recursive."""
    ahead = [tree]
    while ahead:
        sitemap = ahead.pop()
        yield sitemap
        if sub_sitemaps := sitemap.sub_sitemaps:
            ahead.extend(reversed(sub_sitemaps))


def _is_read(tree: AbstractSitemap) -> bool:
    """Return whether a sitemap could be read.

    An index is read for its children. So it counts only if it lists pages, too, or if nothing was asked of its
    children: it has none, or the options of the caller leave them out. robots.txt does not count, as it is no sitemap.
    """
    from usp.objects.sitemap import AbstractIndexSitemap, IndexRobotsTxtSitemap, IndexWebsiteSitemap, InvalidSitemap

    indexes = []
    for sitemap in _with_all_below(tree):
        if isinstance(sitemap, AbstractIndexSitemap):
            indexes.append(sitemap)
        elif not isinstance(sitemap, InvalidSitemap):
            return True
    for index in indexes:
        if not isinstance(index, (IndexRobotsTxtSitemap, IndexWebsiteSitemap)) and all(
            isinstance(sub, InvalidSitemap) and sub.cause in (Cause.LEFT_OUT, Cause.LOOP) for sub in index.sub_sitemaps
        ):
            return True
    return any(next(iter(index.pages), None) is not None for index in indexes)  # this reads documents


#: A sitemap that is missing: why, in a word and in a sentence, and its URL.
_Found = tuple[Cause | None, str, str]


def _missing_in(tree: AbstractSitemap) -> Iterator[_Found]:
    """Give the sitemaps of a tree that are missing, in the order of the tree."""
    from usp.objects.sitemap import InvalidSitemap

    for sitemap in _with_all_below(tree):
        if isinstance(sitemap, InvalidSitemap):
            yield sitemap.cause, sitemap.short_reason, sitemap.url
        elif (transport := sitemap.transport) is not None and not transport.is_whole:
            if transport.is_limited:
                reason = transport.cut_reason or "larger than limits.max_sitemap_bytes"
                yield Cause.LIMIT, f"{reason}; the rest was skipped", sitemap.url
            else:
                yield Cause.TRUNCATED, "the transfer broke off; only a part of it arrived", sitemap.url


def _grouped(found: Iterable[_Found]) -> Iterator[Missing]:
    """Group what is missing by the reason. Past a number of reasons, by the cause only."""
    groups: dict[tuple[Cause | None, str], list[str]] = {}
    for cause, reason, url in found:
        group = groups.get((cause, reason))
        if group is None:
            is_new = len(groups) < _MAX_REASONS
            group = groups.setdefault((cause, reason if is_new else "other reasons"), [])
        group.append(url)
    for (cause, reason), urls in groups.items():
        assert cause is not None
        yield Missing(cause, reason, len(urls), tuple(urls[:_MAX_URLS]))


#: What a run is called in which nothing could be read, by the causes, the most telling first.
_KINDS = {
    Cause.BLOCKED: OutcomeKind.BLOCKED,
    Cause.UNREACHABLE: OutcomeKind.UNREACHABLE,
    Cause.REFUSED: OutcomeKind.UNREACHABLE,
    Cause.DISALLOWED: OutcomeKind.BLOCKED,
}


def _nothing_read(missing: Sequence[Missing], facts: TreeFacts) -> tuple[OutcomeKind, str]:
    """Return the outcome of a tree in which nothing could be read, and why."""
    for cause, kind in _KINDS.items():
        if found := [one for one in missing if one.cause is cause]:
            return kind, _joined(facts.cuts, found)
    if facts.is_late:
        return OutcomeKind.UNREACHABLE, _joined(facts.cuts, ())
    if facts.cuts or any(one.cause is Cause.LIMIT for one in missing):
        return OutcomeKind.PARTIAL, _joined(facts.cuts, [one for one in missing if one.cause.is_loss])
    absent = [one for one in missing if one.cause in (Cause.NOT_FOUND, Cause.UNREADABLE)]
    if absent:
        return OutcomeKind.EMPTY, _joined((), absent)
    if facts.left_out or any(one.cause is Cause.LEFT_OUT for one in missing):
        return OutcomeKind.COMPLETE, ""
    if facts.roots is None:
        return OutcomeKind.EMPTY, "it lists no sitemap and no page"
    return OutcomeKind.EMPTY, _where_none_is(facts.roots)


def _where_none_is(roots: Sequence[RootAnswer]) -> str:
    """Say where a site has no sitemap. The options of the caller may leave out robots.txt, or the known paths."""
    are_robots = {root.url.endswith("/robots.txt") for root in roots if root.cause is not Cause.LEFT_OUT}
    if are_robots == {True}:
        return "robots.txt names no sitemap; the usual paths were not tried"
    if are_robots == {False}:
        return "there is no sitemap at the usual paths; robots.txt was not read"
    return "robots.txt names no sitemap, and there is none at the usual paths"


def _joined(cuts: Iterable[str], missing: Sequence[Missing]) -> str:
    """Return one sentence of all cuts, and of the first groups of what is missing."""
    parts = [*cuts, *map(str, missing[:_MAX_DESCRIBED])]
    if rest := sum(one.count for one in missing[_MAX_DESCRIBED:]):
        parts.append(f"and {plural(rest, 'more sitemap')}")
    return "; ".join(parts)
