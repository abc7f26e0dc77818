"""Which rows and columns of a table to write: `columns`, `where`, `since` and `until`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from difflib import get_close_matches
from itertools import compress

from usp.exceptions import InvalidArgumentError
from usp.export.batches import Batch
from usp.export.conditions import Condition
from usp.export.items import ITEM_NEEDS, item_columns, spread
from usp.export.schema import ITEM_TABLES, NAMES_IN_SITEMAPS, PAGES, SOURCE, TABLES, column_at, table_types
from usp.scan import Column, Columns, List, Scalar, Struct, Type, flags_of, microseconds

__all__ = ["PAGE_DATES", "Moment", "Selection", "datetime_of", "newest_date", "select", "select_from", "span_of"]

#: A point in time as callers give it: "2025-01-01", "2025-01-01T10:00:00+02:00", "7d" for seven days ago, or a date.
Moment = str | date | datetime

_AGO = re.compile(r"(\d{1,9})([hdw])", re.ASCII)
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
#: Of spans. "m" is no unit of a point in time: six months ago and six minutes ago would look the same.
_SPAN_UNITS = {"s": timedelta(seconds=1), "m": timedelta(minutes=1), **_UNITS}
_SPAN = re.compile(r"(\d{1,6})([smhdw])", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(
    rf"{_DATE.pattern}(?:[T ](?:[01]\d|2[0-3]):\d\d(?::\d\d(?:\.\d{{1,6}})?)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?", re.ASCII
)
_MAX_SHOWN = 40  # characters of a name in a message
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1) // _MICROSECOND
_EARLIEST, _LATEST = -(1 << 63), (1 << 63) - 1
_MODIFIED, _STORY, _PUBLISHED = "last_modified", "news", "news.publish_date"
#: The columns of pages that have their dates.
PAGE_DATES = frozenset({_MODIFIED, _STORY})


@dataclass(frozen=True, slots=True)
class Selection:
    """The columns to write, and which rows. Several threads may use it at once.

    `needed` has the names of the columns that have to be read for it.
    """

    types: Mapping[str, Type]
    chosen: dict[str, Type]
    needed: frozenset[str]
    period: Period | None = None
    condition: Condition | None = None
    items: str | None = None  # the table of items that is made from the columns of pages

    def batch(self, columns: Columns) -> Batch:
        """Mark the rows that are selected. A table of items takes the columns of pages."""
        types = self.types if self.items is None else PAGES
        kept = None if self.period is None else self.period.kept(columns, types)
        if self.items is not None:
            if kept is not None and 1 not in kept:
                return Batch(Columns(0, {}))
            columns, counts = item_columns(self.items, columns, self._wanted())
            kept = None if kept is None else bytes(spread(kept, counts))
        if self.condition is not None and (kept is None or 1 in kept):
            holds = self.condition.kept(columns)
            kept = holds if kept is None else _both(kept, holds)
        if kept is None or 0 not in kept:
            return Batch(columns)
        return Batch(columns, kept) if 1 in kept else Batch(Columns(0, {}))

    def _wanted(self) -> set[str]:
        """Return the names of the columns to write, and of those that the condition reads."""
        return {_root(path) for path in self.chosen} | (self.condition.needed if self.condition else set())

    def interrupt(self) -> None:
        """End the work of other threads, which raises in them."""
        if self.condition is not None:
            self.condition.interrupt()


def select_from(
    table: str,
    columns: Sequence[str] | str | None = None,
    where: str | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
    *,
    dedupe: bool = False,
    has_source: bool = False,
) -> Selection:
    """Select from the table of this name, as `select` does. `dedupe` must make sense for that table."""
    if table not in TABLES:
        raise InvalidArgumentError(f"There is no table {table!r}; there are {', '.join(TABLES)}")
    if table == "sitemaps" and (dedupe or since is not None or until is not None):
        raise InvalidArgumentError("`dedupe`, `since` and `until` are about pages, not about sitemaps")
    return select(table_types(table, has_source=has_source), columns, where, since, until, table=table)


def select(
    types: Mapping[str, Type],
    columns: Sequence[str] | str | None = None,
    where: str | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
    *,
    table: str = "pages",
    now: datetime | None = None,
) -> Selection:
    """Select rows and columns of a table.

    :param columns: their names, in the order to write them; a string has commas between them. None selects all.
    :param where: a condition in SQL, as `Condition` takes it.
    :param since: only pages modified at this time or later. Where a page has no modification date, its publication
        date counts. A time without a zone is in UTC.
    :param until: only pages modified at this time or earlier. A date includes the whole day.
    :param now: the time that "7d" counts back from; the current time by default.
    :raises InvalidArgumentError: if an argument makes no sense; the message says what to do.
    """
    chosen = _chosen(types, columns)
    condition = None if where is None else Condition(where, types, table)
    period = None
    items = table if table in ITEM_TABLES else None
    if since is not None or until is not None:
        if items is None and types.get(_MODIFIED) is not Scalar.TIME:
            raise InvalidArgumentError(f"since and until need a column {_MODIFIED}, which this table does not have")
        period = Period(
            _EARLIEST if since is None else _moment("since", since, now),
            _LATEST if until is None else _moment("until", until, now, is_end=True),
        )
    wanted = {_root(path) for path in chosen} | (condition.needed if condition else set())
    needed = {"url"} | wanted if items is None else ITEM_NEEDS | {items} | (wanted & {SOURCE})
    needed |= PAGE_DATES if period else set()
    return Selection(types, chosen, frozenset(needed), period, condition, items)


def _root(path: str) -> str:
    return path.partition(".")[0]


def _chosen(types: Mapping[str, Type], columns: Sequence[str] | str | None) -> dict[str, Type]:
    """Return the columns at these paths, with their types."""
    if columns is None:
        return dict(types)
    written = (name.strip() for name in (columns.split(",") if isinstance(columns, str) else columns))
    known = _all_paths(types)
    names = [name if name in known else _as_column(name) for name in written]
    if not any(names):
        raise InvalidArgumentError(f"columns names no column; there are {', '.join(known)}")
    for place, name in enumerate(names):
        if name not in known:
            raise InvalidArgumentError(f"columns: {_no_column(name, types)}")
        if name in names[:place]:
            raise InvalidArgumentError(f"columns names {name} twice; there are {', '.join(known)}")
    return {name: known[name] for name in names}


def _as_column(path: str) -> str:
    """Return a path with its last name as columns are called, where it is the name of an element, like lastmod."""
    parent, dot, name = path.rpartition(".")
    return f"{parent}{dot}{NAMES_IN_SITEMAPS.get(name, name)}"


def _all_paths(types: Mapping[str, Type]) -> dict[str, Type]:
    """Return the types of all columns, and of the fields of structs, like news.title, by their paths."""
    found: dict[str, Type] = {}
    for name, kind in types.items():
        found[name] = kind
        if isinstance(kind, Struct):
            found |= {f"{name}.{path}": part for path, part in _all_paths(kind.fields).items()}
    return found


def _no_column(name: str, types: Mapping[str, Type]) -> str:
    """Return an error message for a name that no column has."""
    known = _all_paths(types)
    parent = name.rpartition(".")[0]
    shown = repr(name if len(name) <= _MAX_SHOWN else name[: _MAX_SHOWN - 3] + "...")
    if isinstance(known.get(parent), List):
        return f"no column {shown}: {parent} is a list, whose items have no columns"
    near = get_close_matches(name.lower()[:_MAX_SHOWN], known, 1)
    there_are = f"did you mean {near[0]}? There are" if near else "there are"
    return f"no column {shown}; {there_are} {', '.join(known)}"


@dataclass(frozen=True, slots=True)
class Period:
    """A range of modification dates, in microseconds since 1970. Both ends belong to it."""

    first: int
    last: int

    def kept(self, columns: Columns, types: Mapping[str, Type]) -> bytes:
        """Return a byte for each row: 1 if its date is in the period, 0 if it is not, or unknown."""
        modified = column_at(columns, types, _MODIFIED)
        published = column_at(columns, types, _PUBLISHED)
        if modified is None and published is None:
            return bytes(columns.length)
        if published is None or (modified is not None and modified.valid is None):
            assert modified is not None
            return self._holds(modified)
        by_publication = _both(self._holds(published), _flags(columns.columns[_STORY]))
        if modified is None:
            return by_publication
        holds = zip(self._holds(modified), by_publication, _flags(modified), strict=True)
        return bytes([first if is_known else second for first, second, is_known in holds])

    def _holds(self, column: Column) -> bytes:
        assert column.data is not None
        first, last = self.first, self.last
        found = bytes([first <= moment <= last for moment in column.data])
        return found if column.valid is None else _both(found, _flags(column))


def newest_date(columns: Columns) -> int | None:
    """Return the newest date of pages, in microseconds since 1970: of the modification, else of the publication."""
    modified = column_at(columns, PAGES, _MODIFIED)
    published = column_at(columns, PAGES, _PUBLISHED)
    dates: list[int] = []
    if modified is not None:
        assert modified.data is not None
        dates += modified.data if modified.valid is None else compress(modified.data, _flags(modified))
    if published is not None and (modified is None or modified.valid is not None):
        assert published.data is not None
        known = _both(_flags(published), _flags(columns.columns[_STORY]))
        is_modified = bytes(columns.length) if modified is None else _flags(modified)
        dates += (date for date, *flags in zip(published.data, known, is_modified, strict=True) if flags == [1, 0])
    return max(dates, default=None)


def _flags(column: Column) -> bytes:
    """Return a byte for each row: 1 if it has a value."""
    return b"\1" * column.length if column.valid is None else bytes(flags_of(column.valid, column.length))


def _both(first: bytes, second: bytes) -> bytes:
    """Combine bytes of 0 and 1: 1 where both have it."""
    return (int.from_bytes(first, "little") & int.from_bytes(second, "little")).to_bytes(len(first), "little")


def datetime_of(name: str, written: Moment, now: datetime | None = None) -> datetime:
    """Return a point in time that a user wrote, in UTC: "2025-01-01", "7d" for seven days ago, or a date.

    :param name: the parameter, for the error.
    :raises InvalidArgumentError: if it is not one of these.
    """
    try:
        return _EPOCH + _moment(name, written, now) * _MICROSECOND
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)  # longer ago than dates can say


def span_of(name: str, written: str) -> timedelta:
    """Return a time span that a user wrote: "90s", "30m", "6h", "7d", "4w", or "0".

    :param name: the parameter, for the error.
    :raises InvalidArgumentError: if it is none.
    """
    if written.strip() == "0":
        return timedelta(0)  # whatever the unit
    span = _SPAN.fullmatch(written.strip())
    if span is None:
        raise InvalidArgumentError(f"{name} must be like 90s, 30m, 6h, 7d or 4w, not {written!r:.100}")
    return int(span[1]) * _SPAN_UNITS[span[2]]


def _moment(name: str, written: Moment, now: datetime | None, *, is_end: bool = False) -> int:
    """Return a point in time in microseconds since 1970; of a date, the start of the day, or its end."""
    if isinstance(written, str):
        text = written.strip()
        if (ago := _AGO.fullmatch(text)) is not None:
            return microseconds(now or datetime.now(UTC)) - int(ago[1]) * (_UNITS[ago[2]] // _MICROSECOND)
        if _TIME.fullmatch(text):
            with suppress(ValueError):
                written = date.fromisoformat(text) if _DATE.fullmatch(text) else datetime.fromisoformat(text)
    if isinstance(written, datetime):
        return microseconds(written)
    if isinstance(written, date):
        return microseconds(datetime.combine(written, time(tzinfo=UTC))) + (_DAY - 1 if is_end else 0)
    raise InvalidArgumentError(
        f"{name} must be like 2025-01-01, 2025-01-01T10:00:00+02:00, 24h, 7d or 4w, not {written!r}"
    )
