"""Find every regular expression of usp, and try each against texts that make a careless one slow.

`python tools/patterns.py` lists them: where each is defined, and the methods that it is called with. With `--try` it
also runs each of them on hostile texts, and exits with 1 if one takes more than linear time. A text is a beginning that
the pattern matches, then one repeated part of the pattern over and over, then something that does not match. They are
derived from the pattern itself, so a new pattern is tried without further ado.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]  # the parser of patterns has no public name
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

#: Patterns whose text has a limit: the length, and where the limit is.
CAPPED = {
    "usp.scan.dates": 80,  # _MAX_LENGTH
    "usp.scan.survey._W3C_DATE": 80,  # of a text that was parsed as a date
    "usp.scan.survey._NO_DAY": 80,
    "usp.sources.files._IS_CALLED_SITEMAP": 4_096,  # the path of a file
}
#: The methods that are called on patterns by another name.
CALLED = {"usp.scan.tokens.START_TAG": ("match",), "usp.scan.tokens.END_TAG": ("match",)}
#: Patterns that see only what the user or usp itself wrote.
TRUSTED = frozenset({"usp.check.rules.page", "usp.cli.explain", "usp.export.queries"})
SIZES = (32, 256, 2_048, 16_384)
_GROWTH = 8  # from one size to the next
_MANY_SECONDS = 0.02  # linear time takes less, for the largest size
_MOST_CPU_SECONDS = 120  # of a trial; a pattern that takes exponential time ends there
_METHODS = ("match", "fullmatch", "search")
_SEARCHING = frozenset({"search", "sub", "subn", "split", "finditer", "findall"})
_ENDS = ("", "\0", "!", "\n", " x", "\u00e9", "<", "/")
_SAMPLES = "a0 -/.:=<>\"'&#%!\u00e9\n\t"
_MOST_SAMPLES = 4
_MOST_PREFIXES = 3


@dataclass(frozen=True, slots=True)
class Found:
    """A pattern, its name with its module, and the methods that are called: match, fullmatch or search."""

    name: str
    pattern: re.Pattern[Any]
    methods: tuple[str, ...]

    @property
    def is_trusted(self) -> bool:
        """Whether a site has no say in what the pattern is run on."""
        return self.name in TRUSTED or self.name.rpartition(".")[0] in TRUSTED

    @property
    def most(self) -> int:
        """The length of the longest text that the pattern is run on."""
        return CAPPED.get(self.name) or CAPPED.get(self.name.rpartition(".")[0]) or SIZES[-1]


def patterns(package: str = "usp") -> list[Found]:
    """Return the patterns in the modules of a package, in the order of their names. Each is there once."""
    found: dict[int, Found] = {}
    for name in sorted(modules(package)):
        try:
            module = importlib.import_module(name)
        except ImportError:  # an extra is not installed
            continue
        spec = find_spec(name)
        path = Path(spec.origin) if spec and spec.origin else None
        calls = methods_called(path.read_text()) if path and path.suffix == ".py" else {}
        assigned = names_assigned(path.read_text()) if path and path.suffix == ".py" else set()
        for variable in sorted(assigned & vars(module).keys()):
            for pattern in patterns_in(vars(module)[variable]):
                place = f"{name}.{variable}"
                methods = CALLED.get(place) or tuple(sorted(calls.get(variable, ()))) or _METHODS
                found.setdefault(id(pattern), Found(place, pattern, methods))
    return list(found.values())


def modules(package: str) -> Iterator[str]:
    """Yield the names of all modules of a package, except those that run when they are imported."""
    root = importlib.import_module(package)
    yield package
    for module in pkgutil.walk_packages(root.__path__, f"{package}."):
        if not module.name.endswith("__main__"):
            yield module.name


def patterns_in(value: object, depth: int = 3) -> Iterator[re.Pattern[Any]]:
    """Yield the patterns in a value: itself, or its parts if it is a container, a data class or a class."""
    if isinstance(value, re.Pattern):
        yield value
        return
    parts: Iterable[object] = ()
    if isinstance(value, dict):
        parts = value.values()
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = value
    elif is_dataclass(value) and not isinstance(value, type):
        parts = [getattr(value, field.name) for field in fields(value)]
    elif isinstance(value, type):
        parts = [part for part in vars(value).values() if isinstance(part, re.Pattern)]
    for part in parts if depth else ():
        yield from patterns_in(part, depth - 1)


def names_assigned(source: str) -> set[str]:
    """Return the variables and classes that a module defines: others define those that it imports."""
    names: set[str] = set()
    for node in ast.parse(source).body:
        for target in ast.walk(node):
            if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store):
                names.add(target.id)
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
    return names


def methods_called(source: str) -> dict[str, set[str]]:
    """Return the methods that a module calls on the patterns in its variables."""
    called: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            method = "search" if node.attr in _SEARCHING else node.attr
            if method in _METHODS:
                called.setdefault(node.value.id, set()).add(method)
    return called


def hidden_patterns(package: str = "usp") -> list[str]:
    """Return where a function compiles or uses a pattern of its own: `patterns` cannot find these."""
    places = []
    for name in sorted(modules(package)):
        spec = find_spec(name)
        if spec is None or not (spec.origin or "").endswith(".py"):
            continue
        tree = ast.parse(Path(spec.origin or "").read_text())
        for function in ast.walk(tree):
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                places += [f"{name}.{function.name}" for node in ast.walk(function) if _is_use_of_re(node)]
    return sorted(set(places))


def _is_use_of_re(node: ast.AST) -> bool:
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    if not is_call:
        return False
    function: Any = node.func  # type: ignore[attr-defined]
    return isinstance(function.value, ast.Name) and function.value.id == "re" and function.attr != "escape"


# Hostile texts


def hostile_texts(pattern: re.Pattern[Any]) -> Iterator[Callable[[int], Any]]:
    """Yield functions from a length to a text that may make the pattern slow."""
    is_bytes = isinstance(pattern.pattern, bytes)
    source = pattern.pattern.decode("latin-1") if is_bytes else pattern.pattern
    tree = parser.parse(source, pattern.flags & ~re.UNICODE if is_bytes else pattern.flags)
    seen = set()
    for prefix, unit in _repeats(tree, [""]):
        for end in _ENDS:
            if unit and (prefix, unit, end) not in seen:
                seen.add((prefix, unit, end))
                yield partial(_text, prefix, unit, end, is_bytes)


def _text(prefix: str, unit: str, end: str, is_bytes: bool, size: int) -> Any:
    text = prefix + unit * max(1, (size - len(prefix)) // len(unit)) + end
    return text.encode("latin-1", "replace") if is_bytes else text


def _repeats(tree: Any, prefixes: list[str]) -> Iterator[tuple[str, str]]:
    """Yield a text that leads to each repeated part of a pattern, and texts of this part."""
    for operation, argument in tree:
        for inner in _inner(operation, argument):
            yield from _repeats(inner, prefixes)
        if operation in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT) and argument[1] > 1:
            units = _examples(argument[2])
            yield from ((prefix, unit) for prefix in prefixes for unit in units)
            if len(units) > 1:
                yield from ((prefix, "".join(units)) for prefix in prefixes)
        texts = _examples([(operation, argument)])
        prefixes = [prefix + text for prefix in prefixes for text in texts][:_MOST_PREFIXES]
    yield from ((prefixes[0], prefix) for prefix in prefixes)  # the whole of it, over and over
    yield from (("", prefix) for prefix in prefixes)


def _inner(operation: Any, argument: Any) -> list[Any]:
    """Return the patterns inside a part of a pattern."""
    if operation in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        return [argument[2]]
    if operation is codes.SUBPATTERN:
        return [argument[3]]
    if operation is codes.ATOMIC_GROUP:
        return [argument]
    if operation is codes.BRANCH:
        return list(argument[1])
    return [argument[1]] if operation in (codes.ASSERT, codes.ASSERT_NOT) else []


def _examples(tree: Any) -> list[str]:
    """Return a few texts that a pattern matches, or nearly."""
    texts = [""]
    for operation, argument in tree:
        texts = [text + part for part in _parts(operation, argument) for text in texts][:_MOST_SAMPLES]
    return texts


def _parts(operation: Any, argument: Any) -> list[str]:
    if operation is codes.LITERAL:
        return [chr(argument)]
    if operation in (codes.IN, codes.NOT_LITERAL, codes.ANY, codes.CATEGORY):
        compiled = re.compile(_class_of(operation, argument), re.DOTALL)
        wanted = [sample for sample in _SAMPLES if compiled.match(sample)]
        if operation is codes.IN:
            wanted += [chr(value) for kind, value in argument if kind is codes.LITERAL and compiled.match(chr(value))]
            wanted += [
                chr(value[0]) for kind, value in argument if kind is codes.RANGE and compiled.match(chr(value[0]))
            ]
        return list(dict.fromkeys(wanted))[:_MOST_SAMPLES] or [""]
    if operation in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        least = max(argument[0], 1) if argument[1] else 0
        return [text * min(least, 64) for text in _examples(argument[2])]
    if operation is codes.BRANCH:
        return [text for branch in argument[1] for text in _examples(branch)[:1]][:_MOST_SAMPLES]
    inner = _inner(operation, argument)
    return _examples(inner[0]) if inner and operation not in (codes.ASSERT, codes.ASSERT_NOT) else [""]


_CATEGORIES = {
    codes.CATEGORY_DIGIT: r"\d",
    codes.CATEGORY_NOT_DIGIT: r"\D",
    codes.CATEGORY_SPACE: r"\s",
    codes.CATEGORY_NOT_SPACE: r"\S",
    codes.CATEGORY_WORD: r"\w",
    codes.CATEGORY_NOT_WORD: r"\W",
}


def _class_of(operation: Any, argument: Any) -> str:
    """Return the source of a pattern for one character."""
    if operation is codes.ANY:
        return "."
    if operation is codes.NOT_LITERAL:
        return f"[^{re.escape(chr(argument))}]"
    if operation is codes.CATEGORY:
        return _CATEGORIES[argument]
    parts = []
    for kind, value in argument:
        if kind is codes.LITERAL:
            parts.append(re.escape(chr(value)))
        elif kind is codes.RANGE:
            parts.append(f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}")
        elif kind is codes.CATEGORY:
            parts.append(_CATEGORIES[value])
    is_negated = any(kind is codes.NEGATE for kind, _ in argument)
    return f"[{'^' if is_negated else ''}{''.join(parts)}]"


# Measurements


def slow_text(found: Found) -> str | None:
    """Return the method and the start of a text for which a pattern takes more than linear time; None if there is none.

    A pattern that takes exponential time does not return: run this in a process with a limit of CPU time.
    """
    for make_text in hostile_texts(found.pattern):
        for method in found.methods:
            run = getattr(found.pattern, method)
            before = None
            for size in SIZES:
                text = make_text(min(size, found.most))
                taken = min(_seconds(run, text) for _ in range(1 if size < SIZES[-1] else 2))
                if taken > _MANY_SECONDS and (before is None or taken > 2.5 * _GROWTH * before):
                    taken = min(taken, *(_seconds(run, text) for _ in range(2)))
                    if taken > _MANY_SECONDS:
                        return f"{method}({text[:40]!r}... {len(text)} characters ...{text[-4:]!r}): {taken:.3f} s"
                before = max(taken, 0.000_01)
    return None


def _seconds(run: Callable[[Any], object], text: Any) -> float:
    start = time.thread_time()
    run(text)
    return time.thread_time() - start


def main(arguments: list[str]) -> int:
    """List the patterns; with `--try`, run those that see the text of a site."""
    is_trial = "--try" in arguments
    is_slow = False
    if is_trial and resource is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (_MOST_CPU_SECONDS, _MOST_CPU_SECONDS))
    for found in patterns():
        kind = "trusted" if found.is_trusted else f"at most {found.most}" if found.most < SIZES[-1] else ""
        print(f"{found.name} ({', '.join(found.methods)}) {kind}".rstrip(), flush=True)
        if is_trial and not found.is_trusted and (slow := slow_text(found)) is not None:
            print(f"    slow: {slow}", flush=True)
            is_slow = True
    return int(is_slow)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
