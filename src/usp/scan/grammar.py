"""Build the table of elements that a plain entry may have. The fast readers follow it.

A plain entry has nothing to repair: only known elements, properly nested and closed, each in its place. The table is
built from `vocabulary` for the namespaces in force. This module does not know how the readers use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from usp.scan.vocabulary import DIALECTS, PREFIXES, Dialect, Kind, namespace_of_prefix

__all__ = ["FIELD", "GROUP", "OTHER", "Grammar", "grammar_of"]

#: What an element is at its place: unknown, a field with a text, a field with attributes as well, or a group of fields.
OTHER, FIELD, WITH_ATTRIBUTES, GROUP = range(4)
_MAX_PREFIXES = 16
_MAX_NAMES = 250


@dataclass(frozen=True, slots=True)
class Grammar:
    """The elements that may be in a plain entry.

    `kinds[state]` is the element that is open in a state; state 0 is outside all entries. `rules[state][number]` says
    what the element with the raw name `names[number]` is in that state, and which state it opens. `tags[number]` is its
    name without prefix.
    """

    names: tuple[bytes, ...]
    tags: tuple[str, ...]
    kinds: tuple[Kind, ...]
    rules: tuple[tuple[tuple[int, int], ...], ...]


@lru_cache(maxsize=64)
def grammar_of(
    namespaces: tuple[tuple[str, str], ...], undeclared: frozenset[str] = PREFIXES, is_strict: bool = False
) -> Grammar | None:
    """Return the grammar of entries in a urlset with these prefixes for namespaces, or None if there are too many.

    `undeclared` prefixes keep their usual meaning. In a strict grammar, an extension without its prefix is not plain.
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
    """Return a kind of entry without the extensions that have no prefix."""
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
    """Return the name in the vocabulary of each raw name."""
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
