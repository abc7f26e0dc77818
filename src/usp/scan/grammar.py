"""What a plain entry may hold, as a table that both scanners of plain entries use: `plain`, and `_plain`, compiled.

A plain entry is one in which nothing is to be put right: only elements that it may have, properly nested and closed,
each in its place. The table is made of `vocabulary` for the namespaces that are in force.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from usp.scan.vocabulary import DIALECTS, PREFIXES, Dialect, Kind, namespace_of_prefix

__all__ = ["FIELD", "GROUP", "OTHER", "Grammar", "grammar_of"]

#: What an element is where it stands: unknown, a field kept as text, one with its attributes, or a group of such.
OTHER, FIELD, WITH_ATTRIBUTES, GROUP = range(4)
_MAX_PREFIXES = 16
_MAX_NAMES = 250


@dataclass(frozen=True, slots=True)
class Grammar:
    """`kinds[state]` is what is open in each state; state 0 is outside all entries.

    `rules[state][number]` is what the element with the raw name `names[number]` is there, and the state that it opens;
    `tags[number]` is its name without prefix.
    """

    names: tuple[bytes, ...]
    tags: tuple[str, ...]
    kinds: tuple[Kind, ...]
    rules: tuple[tuple[tuple[int, int], ...], ...]


@lru_cache(maxsize=64)
def grammar_of(
    namespaces: tuple[tuple[str, str], ...], undeclared: frozenset[str] = PREFIXES, is_strict: bool = False
) -> Grammar | None:
    """The grammar of a urlset's entries with these prefixes for these namespaces; None if there are too many.

    `undeclared` are further prefixes that are known for what they mean. A strict one is for readers to whom an
    extension without its prefix is something to be put right.
    """
    if len(namespaces) > _MAX_PREFIXES:
        return None
    dialect = DIALECTS["urlset"]
    entry = _prefixed(dialect.entries["url"]) if is_strict else dialect.entries["url"]
    outside = Kind(groups={"url": entry})
    kinds = [outside, *_kinds_in(outside)]
    wanted = {name for kind in kinds for name in kind.names()}
    resolved = _resolved(wanted, dict(namespaces), undeclared, dialect)
    if len(resolved) > _MAX_NAMES:
        return None
    rules = tuple(tuple(_rule(name, kind, kinds) for name in resolved.values()) for kind in kinds)
    tags = tuple(name.rpartition(":")[2] for name in resolved.values())
    return Grammar(tuple(raw.encode() for raw in resolved), tags, tuple(kinds), rules)


def _prefixed(entry: Kind) -> Kind:
    """A kind of entry without the extensions that have no prefix."""
    groups = {name: kind for name, kind in entry.groups.items() if ":" in name}
    return Kind(entry.fields, frozenset(name for name in entry.elements if ":" in name), groups)


def _kinds_in(kind: Kind) -> list[Kind]:
    found: list[Kind] = []
    for inner in kind.groups.values():
        found += [inner, *_kinds_in(inner)]
    return found


def _resolved(
    wanted: set[str], namespaces: Mapping[str, str], undeclared: frozenset[str], dialect: Dialect
) -> dict[str, str]:
    """Raw names, as written, -> the names of the vocabulary that they mean."""
    resolved = {}
    for prefix in ("", *namespaces, *sorted(undeclared - namespaces.keys())):
        namespace = namespaces[prefix] if prefix in namespaces else namespace_of_prefix(prefix, dialect)
        if not prefix:
            namespace = namespaces.get("", "")
        at_home = namespace in ("", dialect.home)
        for name in sorted(wanted):
            own, _, local = name.rpartition(":")
            if own == ("" if at_home else namespace):
                resolved[f"{prefix}:{local}" if prefix else local] = name
    return resolved


def _rule(name: str, kind: Kind, kinds: list[Kind]) -> tuple[int, int]:
    if name in kind.fields:
        return FIELD, 0
    if name in kind.elements:
        return WITH_ATTRIBUTES, 0
    if name in kind.groups:
        return GROUP, next(state for state, known in enumerate(kinds) if known is kind.groups[name])
    return OTHER, 0
