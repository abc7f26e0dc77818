"""Which rows and which columns of a table are wanted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from usp.exceptions import InvalidArgumentError
from usp.export.batches import Batch
from usp.export.conditions import At, Comparison, Condition, Constant, IsNull, Rows, Several
from usp.export.schema import NAMES_IN_SITEMAPS, TABLES, path_types
from usp.export.where import all_paths, no_column, parse_where, time_of
from usp.scan.columns import Columns, Scalar, Type, microseconds

__all__ = ["Selection", "select", "select_from"]

_AGO = re.compile(r"(\d{1,9})([hdw])", re.ASCII)
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_SINCE = "last_modified"


@dataclass(frozen=True, slots=True)
class Selection:
    """The columns that are to be written, and the condition on the rows; None if all are wanted.

    `needed` are the names of the columns that have to be read for it. It may be used in several threads at once.
    """

    types: Mapping[str, Type]
    chosen: dict[str, Type]
    needed: frozenset[str]
    condition: Condition | None = None

    def batch(self, columns: Columns) -> Batch:
        """The rows of which those that are wanted are kept."""
        if self.condition is None:
            return Batch(columns)
        rows = Rows(self.types, columns)
        mask = self.condition.mask(rows)
        if mask == rows.all:
            return Batch(columns)
        return Batch(columns, rows.flags(mask)) if mask else Batch(Columns(0, {}))


def select_from(
    table: str,
    columns: Sequence[str] | str | None = None,
    where: str | None = None,
    since: str | date | datetime | None = None,
    *,
    dedupe: bool = False,
) -> Selection:
    """What is wanted of the table of this name, as `select` has it; `dedupe` must make sense for that table."""
    if table not in TABLES:
        raise InvalidArgumentError(f"There is no table {table!r}; there are {' and '.join(TABLES)}")
    if table == "sitemaps" and (dedupe or since is not None):
        raise InvalidArgumentError("`dedupe` and `since` are about pages, not about sitemaps")
    return select(TABLES[table], columns, where, since)


def select(
    types: Mapping[str, Type],
    columns: Sequence[str] | str | None = None,
    where: str | None = None,
    since: str | date | datetime | None = None,
    now: datetime | None = None,
) -> Selection:
    """What is wanted of a table.

    :param columns: their names, in the order in which they are to be written; a text has commas between them.
    :param where: what must hold for a row, as `where` has it.
    :param since: only what was modified, or else published, then or later: a date, or a text like 2025-01-01 or 7d
        (24h, 4w), which counts back from `now`, by default the time it is. What has no zone is in UTC.
    :raises InvalidArgumentError: if any of it makes no sense, with what to do.
    """
    chosen = path_types(types, _names(types, columns))
    conditions = [] if where is None else [parse_where(where, types)]
    if since is not None:
        # First, since it costs least, and leaves the rest nothing to do where nothing is new.
        conditions.insert(0, _modified_since(types, _since(since, now)))
    condition = Several(tuple(conditions), is_all=True) if conditions else None
    paths = {"url", *chosen, *(condition.paths() if condition else ())}
    return Selection(types, chosen, frozenset(path.partition(".")[0] for path in paths), condition)


def _names(types: Mapping[str, Type], columns: Sequence[str] | str | None) -> tuple[str, ...] | None:
    if columns is None:
        return None
    written = (name.strip() for name in (columns.split(",") if isinstance(columns, str) else columns))
    names = tuple(NAMES_IN_SITEMAPS.get(name, name) for name in written)
    known = all_paths(types)
    if not any(names):
        raise InvalidArgumentError(f"columns names no column; there are {', '.join(known)}")
    for place, name in enumerate(names):
        if name not in known:
            raise InvalidArgumentError(f"columns: {no_column(name, types)}")
        if name in names[:place]:
            raise InvalidArgumentError(f"columns names {name} twice; there are {', '.join(known)}")
    return names


def _modified_since(types: Mapping[str, Type], moment: int) -> Condition:
    """Of what says nothing of its modification, like entries of feeds, the publication counts."""
    if types.get(_SINCE) is not Scalar.TIME:
        raise InvalidArgumentError(f"since needs a column {_SINCE}, which this table has not")
    modified, published = At(_SINCE, Scalar.TIME), At("news.publish_date", Scalar.TIME)
    is_published = Several((IsNull(modified), Comparison(published, ">=", Constant(moment))), is_all=True)
    return Several((Comparison(modified, ">=", Constant(moment)), is_published), is_all=False)


def _since(since: str | date | datetime, now: datetime | None) -> int:
    """The microseconds from 1970 to then."""
    if isinstance(since, datetime):
        return microseconds(since)
    if isinstance(since, date):
        return microseconds(datetime.combine(since, time(tzinfo=UTC)))
    if isinstance(since, str):
        moment = time_of(since.strip())
        ago = _AGO.fullmatch(since.strip())
        if moment is not None:
            return moment
        if ago:
            start = microseconds(now or datetime.now(UTC))
            return start - int(ago[1]) * (_UNITS[ago[2]] // timedelta(microseconds=1))
    raise InvalidArgumentError(
        f"since must be like 2025-01-01, 2025-01-01T10:00:00+02:00, 24h, 7d or 4w, not {since!r}"
    )
