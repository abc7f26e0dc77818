"""`Outcome`: how a run ended. It is a value on the tree, `tree.outcome`, and decides the exit code of every command.

complete      every sitemap was read, or only sitemaps that do not exist (404, 410) are missing
partial       some sitemaps are missing; `missing` says which and why
blocked       the site answers, but refuses everything that matters: 401, 403, 429, 5xx
unreachable   the site does not answer: no such host, connection refused, timeout, TLS
empty         the site answers, and has no sitemap
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

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
    "outcome_of",
]

_MAX_URLS = 10  # kept of the sitemaps that are missing for one reason
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
    LEFT_OUT = "left out"  #: your options leave it out

    @property
    def is_loss(self) -> bool:
        """Whether something is missing that the site offers and you asked for."""
        return self not in (Cause.NOT_FOUND, Cause.LOOP, Cause.LEFT_OUT)


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


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended.

        tree = sitemap_tree_for_homepage("https://www.example.org/")
        if tree.outcome.kind != "complete":
            print(tree.outcome)

    `reason` is one sentence that says why a run is not complete. `skipped` counts the declared sitemaps that a limit
    kept from being fetched; `left_out` those that your own options left out.
    """

    kind: OutcomeKind
    reason: str = ""
    missing: tuple[Missing, ...] = ()
    skipped: int = 0
    left_out: int = 0

    @property
    def has_result(self) -> bool:
        """Whether at least a part could be read."""
        return self.kind in (OutcomeKind.COMPLETE, OutcomeKind.PARTIAL)

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}" if self.reason else str(self.kind)


@dataclass(frozen=True, slots=True)
class RootAnswer:
    """How robots.txt, or a known path, answered. `cause` is None if it is a sitemap."""

    url: str
    cause: Cause | None
    reason: str = ""
    is_robots: bool = False


@dataclass(frozen=True, slots=True)
class TreeFacts:
    """What a walk knows and a tree does not show. `cuts` say which limits were reached."""

    roots: tuple[RootAnswer, ...] | None = None  # None: the tree is one sitemap and what is below it
    cuts: tuple[str, ...] = ()
    skipped: int = 0
    left_out: int = 0


def cause_of_status(status: int | None) -> Cause:
    """Return why a request with this HTTP status, or without any, brought no sitemap."""
    if status is None:
        return Cause.UNREACHABLE
    if status in _GONE:
        return Cause.NOT_FOUND
    return Cause.BLOCKED if status >= 400 else Cause.UNREADABLE


def outcome_of(tree: AbstractSitemap, facts: TreeFacts) -> Outcome:
    """Return the outcome of a tree."""
    missing = tuple(_missing(tree))
    losses = [one for one in missing if one.cause.is_loss]
    robots = next((answer for answer in facts.roots or () if answer.is_robots and _is_lost(answer)), None)
    if _has_content(tree) or (facts.roots is not None and not facts.roots):
        reasons = [_described(one) for one in losses]
        if robots is not None:
            reasons.append(f"robots.txt: {robots.reason}")
        kind = OutcomeKind.PARTIAL if reasons or facts.cuts else OutcomeKind.COMPLETE
    elif facts.cuts or any(one.cause is Cause.LIMIT for one in losses):
        kind, reasons = OutcomeKind.PARTIAL, []
    else:
        kind, why = _nothing(missing, facts.roots or (), robots)
        reasons = [why]
    reason = "; ".join([*facts.cuts, *reasons])
    return Outcome(kind, reason, missing, facts.skipped, facts.left_out)


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


def _is_lost(answer: RootAnswer) -> bool:
    return answer.cause in (Cause.BLOCKED, Cause.UNREACHABLE, Cause.REFUSED)


def _has_content(tree: AbstractSitemap) -> bool:
    """Return whether something could be read that lists pages, or that lists nothing because it is empty."""
    from usp.objects.sitemap import AbstractIndexSitemap, IndexRobotsTxtSitemap, IndexWebsiteSitemap, InvalidSitemap

    for sitemap in (tree, *tree.all_sitemaps()):
        if isinstance(sitemap, (InvalidSitemap, IndexWebsiteSitemap)):
            continue
        if not isinstance(sitemap, AbstractIndexSitemap):
            return True
        if isinstance(sitemap, IndexRobotsTxtSitemap):
            continue
        if not sitemap.sub_sitemaps or next(iter(sitemap.pages), None) is not None:
            return True
        if all(isinstance(sub, InvalidSitemap) and sub.cause is Cause.LEFT_OUT for sub in sitemap.sub_sitemaps):
            return True  # an index that was read by itself
    return False


def _missing(tree: AbstractSitemap) -> Iterator[Missing]:
    """Group the sitemaps that are missing by the reason, in the order of the tree."""
    from usp.objects.sitemap import InvalidSitemap

    groups: dict[tuple[Cause, str], list[str]] = {}
    for sitemap in (tree, *tree.all_sitemaps()):
        if isinstance(sitemap, InvalidSitemap):
            groups.setdefault((sitemap.cause, sitemap.short_reason), []).append(sitemap.url)
        elif sitemap.transport is not None and not sitemap.transport.is_whole:
            groups.setdefault((Cause.TRUNCATED, "only a part of it arrived"), []).append(sitemap.url)
    for (cause, reason), urls in groups.items():
        yield Missing(cause, reason, len(urls), tuple(urls[:_MAX_URLS]))


def _described(missing: Missing) -> str:
    return (
        f"{missing.urls[0]}: {missing.reason}" if missing.count == 1 else f"{missing.count} sitemaps: {missing.reason}"
    )


def _nothing(
    missing: Iterable[Missing], roots: tuple[RootAnswer, ...], robots: RootAnswer | None
) -> tuple[OutcomeKind, str]:
    """Return the outcome of a tree in which nothing could be read.

    If something names sitemaps, what they answered matters; else what robots.txt answered; else most of the known
    paths: some sites forbid a few of them, such as those of an administration.
    """
    named = [one for one in missing if one.cause is not Cause.LOOP]
    if named:
        return _worst([(one.cause, _described(one)) for one in named])
    if robots is not None:
        return _worst([(robots.cause or Cause.UNREACHABLE, f"{robots.url}: {robots.reason}")])
    lost = [answer for answer in roots if _is_lost(answer)]
    if lost and 2 * len(lost) >= len([answer for answer in roots if not answer.is_robots]):
        return _worst([(answer.cause or Cause.UNREACHABLE, f"{answer.url}: {answer.reason}") for answer in lost[:1]])
    return OutcomeKind.EMPTY, "robots.txt names no sitemap, and there is none at the usual paths"


def _worst(causes: list[tuple[Cause, str]]) -> tuple[OutcomeKind, str]:
    for cause, kind in _KINDS.items():
        for found, reason in causes:
            if found is cause:
                return kind, reason
    raise AssertionError(causes)


#: What a run is called in which nothing could be read, by the causes, the most telling first.
_KINDS = {
    Cause.BLOCKED: OutcomeKind.BLOCKED,
    Cause.UNREACHABLE: OutcomeKind.UNREACHABLE,
    Cause.REFUSED: OutcomeKind.UNREACHABLE,
    Cause.LIMIT: OutcomeKind.PARTIAL,
    Cause.TRUNCATED: OutcomeKind.PARTIAL,
    Cause.UNREADABLE: OutcomeKind.EMPTY,
    Cause.NOT_FOUND: OutcomeKind.EMPTY,
    Cause.LEFT_OUT: OutcomeKind.EMPTY,
    Cause.LOOP: OutcomeKind.EMPTY,
}
