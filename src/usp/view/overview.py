"""The figures of the overview: pages over time, by section and by language, as queries over the pages of a filter."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from usp.exceptions import InvalidArgumentError
from usp.scan.dates import EARLIEST
from usp.view.filters import HAS, Condition, rest_of_path, section_of
from usp.view.store import Store

__all__ = ["overview"]

_SECTIONS, _MAX_SECTIONS = 10, 200
_MAX_LANGUAGES = 30
_FEW_DAYS, _FEW_MONTHS = 100, 150  # bins of a timeline
#: The unit of a timeline -> how its bins are written.
_BINS = {"day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}
_PER_YEAR = 12


def overview(store: Store, condition: Condition, parameters: Mapping[str, str]) -> dict[str, Any]:
    """Return the figures of the pages that meet a condition."""
    first, last = EARLIEST.date(), datetime.now(UTC).date() + timedelta(days=1)  # tomorrow, east of Greenwich
    found = _totals(store, condition, first, last)
    unit = _unit(parameters.get("bin") or "auto", found.oldest, found.newest)
    section = parameters.get("section") or (found.host or "")
    sections = _sections(store, condition, section)
    shown, others = sections[:_MAX_SECTIONS], sections[_MAX_SECTIONS:]
    dated = sorted((one for one in sections if one["median"] is not None), key=lambda one: str(one["median"]))
    top = _top(parameters.get("top", ""))
    return {
        "pages": found.pages,
        "undated": found.undated,
        "early": {"pages": found.early, "to": str(first - timedelta(days=1))},
        "late": {"pages": found.late, "from": str(last + timedelta(days=1))},
        "bin": unit,
        "timeline": _timeline(store, condition, unit, found),
        "section": section,
        "sections": shown,
        "other": {"sections": len(others), "pages": sum(one["pages"] for one in others)} if others else None,
        "languages": _languages(store, condition) if found.has["news"] or found.has["alternates"] else [],
        "freshest": dated[::-1][:top],
        "stalest": dated[:top],
        "problems": _problems(store, condition),
        "has": found.has,
    }


def _top(text: str) -> int:
    if not text:
        return _SECTIONS
    if not (text.isascii() and text.isdigit()):
        raise InvalidArgumentError(f"top must be a number, not {text!r:.40}")
    return min(int(text[:6]), _MAX_SECTIONS)


class _Totals(NamedTuple):
    """What one pass over the pages finds.

    :param early: pages whose dates are before the first day, which are mistakes; `late`: after the last day. They are
        no part of the timeline, where they would leave no room for the others, unless there are no others.
    :param host: the host of all pages, if they have one only.
    """

    pages: int
    undated: int
    early: int
    late: int
    oldest: datetime | None
    newest: datetime | None
    host: str | None
    has: dict[str, int]


def _totals(store: Store, condition: Condition, first: date, last: date) -> _Totals:
    early, late = f"last_modified < date '{first}'", f"last_modified >= date '{last + timedelta(days=1)}'"
    rest = f"filter (not ({early} or {late}))"
    ((pages, dated, before, after, oldest, newest, any_oldest, any_newest, low, high, *has),) = store.tuples(
        f"select count(*), count(last_modified), count(*) filter ({early}), count(*) filter ({late}),"
        f" min(last_modified) {rest}, max(last_modified) {rest}, min(last_modified), max(last_modified),"
        f" min(host), max(host), {', '.join(f'count(*) filter ({sql})' for sql in HAS.values())}"
        f" from all_pages where {condition.sql}",
        condition.values,
    )
    if oldest is None:
        before, after, oldest, newest = 0, 0, any_oldest, any_newest
    counts = dict(zip(HAS, has, strict=True))
    return _Totals(pages, pages - dated, before, after, oldest, newest, low if low == high else None, counts)


def _unit(wanted: str, oldest: datetime | None, newest: datetime | None) -> str:
    if wanted in _BINS:
        return wanted
    if wanted != "auto":
        raise InvalidArgumentError(f"a timeline is by {', '.join(_BINS)}, or auto, not {wanted!r:.40}")
    if oldest is None or newest is None:
        return "month"
    if (newest - oldest).days <= _FEW_DAYS:
        return "day"
    months = (newest.year - oldest.year) * _PER_YEAR + newest.month - oldest.month
    return "month" if months <= _FEW_MONTHS else "year"


def _timeline(store: Store, condition: Condition, unit: str, found: _Totals) -> list[tuple[str, int]]:
    return store.tuples(
        f"select strftime(bin, '{_BINS[unit]}'), pages from (select date_trunc('{unit}', last_modified) as bin,"
        f" count(*) as pages from all_pages where ({condition.sql}) and last_modified between ? and ? group by 1)"
        " order by bin",
        (*condition.values, found.oldest, found.newest),
    )


def _sections(store: Store, condition: Condition, section: str) -> list[dict[str, Any]]:
    """Return the sections one level below a section, the largest first; the hosts, if there is none.

    Pages that are directly in the section have the name "".
    """
    if section:
        host, path = section_of(section)
        rest = rest_of_path(path)
        name = f"case when contains({rest}, '/') then split_part({rest}, '/', 1) else '' end"
    else:
        host, path, name = "", "", "host"
    # Pages are counted by day first: DuckDB's own median holds the date of every page in memory.
    rows = store.rows(
        f"with days as (select {name} as name, timezone('UTC', last_modified)::date as day, count(*) as pages"
        f" from all_pages where {condition.sql} group by all),"
        " sums as (select *, sum(pages) over (partition by name order by day nulls last) as until,"
        " sum(pages) filter (day is not null) over (partition by name) as dated from days)"
        " select name, sum(pages)::bigint as pages, strftime(min(day), '%Y-%m-%d') as oldest,"
        " strftime(max(day), '%Y-%m-%d') as newest,"
        " strftime(min(day) filter (2 * until >= dated), '%Y-%m-%d') as median"
        " from sums group by name order by pages desc, name",
        condition.values,
    )
    start = f"{host}{path}/" if section else ""
    return [
        {
            **row,
            "name": row["name"] or "",
            "section": f"{start}{row['name'] or ''}" if row["name"] else section,
            "has_more": bool(row["name"]),
        }
        for row in rows
    ]


def _problems(store: Store, condition: Condition) -> list[tuple[str, int]]:
    """Return the codes of problems in entries, and the number of pages of each."""
    return store.tuples(
        "select code, count(*) as pages from (select unnest(list_distinct(problems)) as code from all_pages"
        f" where ({condition.sql}) and len(problems) > 0) group by 1 order by pages desc, code",
        condition.values,
    )


def _languages(store: Store, condition: Condition) -> list[tuple[str, int]]:
    """Return the languages of alternates and news, and the number of pages of each."""
    return store.tuples(
        "select language, count(*) as pages from (select unnest(list_distinct(list_concat("
        "coalesce(list_transform(alternates, lambda one: lower(one.hreflang)), []),"
        " [lower(news.publication_language)]))) as language"
        f" from all_pages where ({condition.sql}) and (len(alternates) > 0 or news is not null))"
        f" where language is not null group by 1 order by pages desc, language limit {_MAX_LANGUAGES}",
        condition.values,
    )
