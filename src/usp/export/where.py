"""The language of `where`: a part of SQL, which means here what it means there.

Comparisons (= == != <> < <= > >=), `is null`, `is not null`, `in`, `between`, `like` and `ilike`, each of the last four
also with `not` before it; `and`, `or`, `not` and parentheses. What is compared are columns (`url`, `news.title`), texts
in single quotes, numbers, `true` and `false`. Times are compared with texts like '2025-01-01' and
'2025-01-01T10:00:00+02:00', which are in UTC if they name no zone. Of a list it can only be asked whether it is null.

All that is wrong with a text is found when it is parsed, and raises `InvalidArgumentError`, which says where. What two
engines could read in two ways, like a = b is null, has to be put in parentheses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from enum import Enum
from math import isfinite
from typing import NamedTuple, NoReturn

from usp.exceptions import InvalidArgumentError
from usp.export.conditions import Among, At, Comparison, Condition, Constant, IsNull, Like, Operand, Several
from usp.export.schema import NAMES_IN_SITEMAPS
from usp.scan.columns import List, Scalar, Struct, Type

__all__ = ["MAX_DEPTH", "MAX_LENGTH", "MAX_PATTERN", "all_paths", "no_column", "parse_where", "time_of"]

MAX_LENGTH = 100_000
MAX_DEPTH = 50  #: of parentheses
MAX_PATTERN = 1_000
_MAX_SHOWN = 40

_PART = r'(?:[^\W\d]\w*|"(?:[^"]|"")++")'
_TOKEN = re.compile(
    rf"""(?P<space>\s+)
    |(?P<text>'(?:[^']|'')*+')
    |(?P<name>{_PART}(?:\.{_PART})*+)
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<symbol><=|>=|<>|!=|==|[=<>(),+-])
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_WORDS = {*("and", "or", "not", "is", "null", "in", "between", "like", "ilike", "true", "false")}
_SYMBOLS = {"=": "=", "==": "=", "!=": "<>", "<>": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ](?:[01]\d|2[0-3]):\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Sort(Enum):
    """What can be compared with each other."""

    TEXT = "a text"
    TIME = "a time"
    NUMBER = "a number"
    FLAG = "true or false"


_SORTS = {
    Scalar.TEXT: _Sort.TEXT,
    Scalar.FREQUENCY: _Sort.TEXT,
    Scalar.TIME: _Sort.TIME,
    Scalar.NUMBER: _Sort.NUMBER,
    Scalar.WHOLE: _Sort.NUMBER,
    Scalar.FLAG: _Sort.FLAG,
}
_HINTS = {
    _Sort.TEXT: "; write texts in single quotes",
    _Sort.TIME: "; write times like '2025-01-01' or '2025-01-01T10:00:00+02:00'",
    _Sort.NUMBER: "; write numbers without quotes",
    _Sort.FLAG: "",
}


class _Token(NamedTuple):
    kind: str
    text: str
    place: int  # of its first character, counted from 0


class _Value(NamedTuple):
    """An operand, and where it stands; the sort is None of lists and structs."""

    operand: Operand
    sort: _Sort | None
    token: _Token


def parse_where(text: str, types: Mapping[str, Type]) -> Condition:
    """The condition that a text states on the rows of a table.

    :raises InvalidArgumentError: if it states none, with the place and what is wrong there.
    """
    if len(text) > MAX_LENGTH:
        raise InvalidArgumentError(f"where has {len(text):,} characters; no more than {MAX_LENGTH:,} are read")
    return _Parser(text, types).parse()


def time_of(text: str) -> int | None:
    """The microseconds from 1970 to the time that a text states as ISO 8601 has it; None if it states none."""
    if not _TIME.fullmatch(text):
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH) // timedelta(microseconds=1)


def all_paths(types: Mapping[str, Type]) -> dict[str, Type]:
    """The columns, and the fields of those that have fields, by their paths."""
    found: dict[str, Type] = {}
    for name, kind in types.items():
        found[name] = kind
        if isinstance(kind, Struct):
            found |= {f"{name}.{path}": of for path, of in all_paths(kind.fields).items()}
    return found


def no_column(name: str, types: Mapping[str, Type]) -> str:
    """What to say of a name that no column has."""
    known = all_paths(types)
    parent = name.rpartition(".")[0]
    if isinstance(known.get(parent), List):
        return f"no column {_shown(name)}: {parent} is a list, whose items have no columns"
    near = get_close_matches(name.lower()[:_MAX_SHOWN], known, 1)
    there_are = f"did you mean {near[0]}? There are" if near else "there are"
    return f"no column {_shown(name)}; {there_are} {', '.join(known)}"


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "...")


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        kind, found = match.lastgroup or "", match.group()
        if kind == "other":
            hints = {"'": ": this quote is never closed", '"': ": this quote is never closed, or has nothing in it"}
            _fail(_Token(kind, found, match.start()), f"{_shown(found)} is not understood{hints.get(found, '')}")
        if kind == "name" and found.lower() in _WORDS:
            kind, found = "word", found.lower()
        if kind != "space":
            yield _Token(kind, found, match.start())
    yield _Token("end", "", len(text))


def _fail(token: _Token, message: str) -> NoReturn:
    raise InvalidArgumentError(f"where, at character {token.place + 1}: {message}")


class _Parser:
    """Reads a text by the precedence of its words: or, and, not, then what compares."""

    def __init__(self, text: str, types: Mapping[str, Type]) -> None:
        self._types = types
        self._paths = all_paths(types)
        self._tokens = list(_tokens(text))
        self._place = 0
        self._depth = 0

    def parse(self) -> Condition:
        found = self._condition(self._any())
        if self._token.kind != "end":
            self._expected("and, or, or the end")
        return found

    @property
    def _token(self) -> _Token:
        return self._tokens[self._place]

    def _take(self, *words: str) -> str:
        """The word or symbol that comes next, if it is one of these; else an empty text."""
        token = self._token
        if token.kind not in ("word", "symbol") or token.text not in words:
            return ""
        self._place += 1
        return token.text

    def _need(self, word: str, after: str) -> None:
        if not self._take(word):
            self._expected(f"{word} {after}")

    def _expected(self, what: str) -> NoReturn:
        token = self._token
        _fail(token, f"expected {what}, not {'the end' if token.kind == 'end' else _shown(token.text)}")

    # A value comes through unchanged, so that it may stand in parentheses.

    def _any(self) -> Condition | _Value:
        found = self._all()
        parts = [found]
        while self._take("or"):
            parts.append(self._all())
        return found if len(parts) == 1 else Several(tuple(map(self._condition, parts)), is_all=False)

    def _all(self) -> Condition | _Value:
        found = self._perhaps_not()
        parts = [found]
        while self._take("and"):
            parts.append(self._perhaps_not())
        return found if len(parts) == 1 else Several(tuple(map(self._condition, parts)), is_all=True)

    def _perhaps_not(self) -> Condition | _Value:
        if not self._take("not"):
            return self._predicate()
        is_negated = True
        while self._take("not"):
            is_negated = not is_negated
        found = self._condition(self._predicate())
        return found.negated() if is_negated else found

    def _condition(self, found: Condition | _Value) -> Condition:
        if isinstance(found, Condition):
            return found
        if found.sort is not _Sort.FLAG:
            _fail(found.token, f"{_named(found)} is compared with nothing; write like url = 'text'")
        return Comparison(found.operand, "=", Constant(True))

    def _predicate(self) -> Condition | _Value:
        left = self._primary()
        if isinstance(left, Condition):
            return left
        if symbol := self._take(*_SYMBOLS):
            first, second = self._alike(left, self._value())
            return Comparison(first, _SYMBOLS[symbol], second)
        if self._take("is"):
            is_negated = bool(self._take("not"))
            self._need("null", "after is not" if is_negated else "or not null after is")
            return IsNull(left.operand, not is_negated)
        is_negated = bool(self._take("not"))
        if self._take("in"):
            found = self._in(left)
        elif self._take("between"):
            found = self._between(left)
        elif word := self._take("like", "ilike"):
            found = self._like(left, word)
        elif is_negated:
            self._expected("in, between, like or ilike after not")
        else:
            return left
        return found.negated() if is_negated else found

    def _in(self, left: _Value) -> Condition:
        self._need("(", "after in")
        values = [self._value()]
        while self._take(","):
            values.append(self._value())
        self._need(")", "or a comma")
        operand, *others = self._alike(left, *values)
        constants = frozenset(other.value for other in others if isinstance(other, Constant))
        parts: list[Condition] = [Among(operand, constants)] if constants else []
        parts += [Comparison(operand, "=", other) for other in others if isinstance(other, At)]
        return parts[0] if len(parts) == 1 else Several(tuple(parts), is_all=False)

    def _between(self, left: _Value) -> Condition:
        lowest = self._value()
        self._need("and", "after between and a value")
        operand, low, high = self._alike(left, lowest, self._value())
        return Several((Comparison(operand, ">=", low), Comparison(operand, "<=", high)), is_all=True)

    def _like(self, left: _Value, word: str) -> Condition:
        right = self._value()
        if right.sort is not _Sort.TEXT or not isinstance(right.operand, Constant):
            _fail(right.token, f"{word} needs a text in single quotes, not {_shown(right.token.text)}")
        if self._scalar(left) is not _Sort.TEXT:
            _fail(left.token, f"{_named(left)} is no text; only texts can be like a pattern")
        pattern = str(right.operand.value)
        if len(pattern) > MAX_PATTERN:
            _fail(right.token, f"this pattern has {len(pattern):,} characters; {MAX_PATTERN:,} are read at most")
        return Like(left.operand, pattern, word == "ilike")

    def _value(self) -> _Value:
        token = self._token
        found = self._primary()
        if isinstance(found, Condition):
            _fail(token, "expected a column or a value, not a condition")
        return found

    def _primary(self) -> Condition | _Value:
        token = self._token
        if self._take("("):
            if self._depth == MAX_DEPTH:
                _fail(token, f"parentheses are {MAX_DEPTH} deep already")
            self._depth += 1
            found = self._any()
            self._need(")", "for the parenthesis at character " + str(token.place + 1))
            self._depth -= 1
            return found
        if word := self._take("true", "false"):
            return _Value(Constant(word == "true"), _Sort.FLAG, token)
        sign = self._take("-", "+")
        if self._token.kind == "number":
            return _Value(Constant(self._number(sign)), _Sort.NUMBER, token)
        if sign or token.kind not in ("text", "name"):
            hint = " (what is null is found with: is null)" if token.text == "null" else ""
            self._expected("a number" if sign else f"a column or a value{hint}")
        self._place += 1
        if token.kind == "text":
            return _Value(Constant(token.text[1:-1].replace("''", "'")), _Sort.TEXT, token)
        return self._column(token)

    def _number(self, sign: str) -> int | float:
        token = self._token
        self._place += 1
        text = sign + token.text
        number = float(text)
        if not isfinite(number):
            _fail(token, f"{_shown(token.text)} is too large")
        return int(text) if token.text.isdecimal() else number

    def _column(self, token: _Token) -> _Value:
        name = token.text
        if '"' in name:
            name = ".".join(part[1:-1].replace('""', '"') if part[0] == '"' else part for part in _parts(name))
        path = name if name in self._paths else name.lower()
        path = NAMES_IN_SITEMAPS.get(path, path)
        if path not in self._paths:
            hint = "texts stand in single quotes, names in double ones: " if '"' in token.text else ""
            _fail(token, hint + no_column(name, self._types))
        kind = self._paths[path]
        return _Value(At(path, kind), _SORTS[kind] if isinstance(kind, Scalar) else None, token)

    def _scalar(self, value: _Value) -> _Sort:
        """The sort of a value that is to be compared."""
        if value.sort is None:
            what = "list" if isinstance(value.operand, At) and isinstance(value.operand.type, List) else "struct"
            name = _named(value)
            _fail(value.token, f"{name} is a {what}; only {name} is null and {name} is not null can be asked of it")
        return value.sort

    def _alike(self, *values: _Value) -> list[Operand]:
        """What is to be compared, once it is certain that it can be; a text beside a time is a time."""
        if any(self._scalar(value) is _Sort.TIME for value in values):
            values = tuple(map(_as_time, values))
        first = values[0]
        sort = self._scalar(first)
        for value in values[1:]:
            other = self._scalar(value)
            if other is not sort:
                hint = _HINTS[other if isinstance(first.operand, Constant) else sort]
                both = f"{_named(first)} is {sort.value}, {_named(value)} is {other.value}"
                _fail(value.token, f"{both}: they cannot be compared{hint}")
        return [value.operand for value in values]


def _named(value: _Value) -> str:
    if isinstance(value.operand, At):
        return value.operand.path
    return _shown(str(value.operand.value)) if value.sort in (_Sort.TEXT, _Sort.TIME) else value.token.text[:_MAX_SHOWN]


def _parts(name: str) -> list[str]:
    return re.findall(_PART, name)


def _as_time(value: _Value) -> _Value:
    if value.sort is not _Sort.TEXT or not isinstance(value.operand, Constant):
        return value
    time = time_of(str(value.operand.value))
    if time is None:
        _fail(value.token, f"{_shown(str(value.operand.value))} is no time{_HINTS[_Sort.TIME]}")
    return value._replace(operand=Constant(time), sort=_Sort.TIME)
