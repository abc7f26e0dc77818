"""Dates with a time zone: `usp.aware`, and the rule for dates that state none."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import usp
from usp.exceptions import InvalidArgumentError
from usp.objects.dates import aware
from usp.scan.columns import microseconds

BERLIN = ZoneInfo("Europe/Berlin")
DOCUMENT = """<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc>http://h/day</loc><lastmod>2026-07-01</lastmod></url>
<url><loc>http://h/local</loc><lastmod>2026-07-01T12:00:00</lastmod></url>
<url><loc>http://h/zone</loc><lastmod>2026-07-01T12:00:00+02:00</lastmod></url>
<url><loc>http://h/none</loc></url>
</urlset>"""


def test_all_dates_of_a_sitemap_become_comparable() -> None:
    """Dates with a zone keep it, others get the default, and a missing date stays None."""
    dates = [page.last_modified for page in usp.sitemap_from_str(DOCUMENT).pages]
    assert [usp.aware(found) for found in dates] == [
        datetime(2026, 7, 1, tzinfo=UTC),
        datetime(2026, 7, 1, 12, tzinfo=UTC),
        datetime(2026, 7, 1, 12, tzinfo=timezone(timedelta(hours=2))),
        None,
    ]
    in_berlin = [usp.aware(found, default=BERLIN) for found in dates]
    assert in_berlin[:2] == [datetime(2026, 6, 30, 22, tzinfo=UTC), datetime(2026, 7, 1, 10, tzinfo=UTC)]
    assert max(filter(None, in_berlin)) == datetime(2026, 7, 1, 10, tzinfo=UTC)
    assert all(found is None or found.tzinfo is not None for found in in_berlin)


def test_the_zone_of_a_date_stays() -> None:
    """A date that has a zone is returned as it is."""
    found = datetime(2026, 7, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    assert aware(found, BERLIN) is found


def test_a_date_without_a_time_is_midnight() -> None:
    """A `date` means the start of that day in the default zone."""
    assert aware(date(2026, 1, 1), BERLIN) == datetime(2025, 12, 31, 23, tzinfo=UTC)


def test_zones_of_pytz() -> None:
    """A zone that sets itself with `localize`, as those of pytz do, is asked to."""

    class LocalMeanTime(ZoneInfo):
        def utcoffset(self, value: datetime | None, /) -> timedelta:
            return timedelta(minutes=53)  # what pytz gives without `localize`

        def localize(self, value: datetime) -> datetime:
            return value.replace(tzinfo=BERLIN)

    assert aware(datetime(2026, 7, 1, 12), LocalMeanTime("Europe/Berlin")).utcoffset() == timedelta(hours=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("2026-07-01",), "give a date or None, not '2026-07-01'"),
        ((datetime(2026, 7, 1), "UTC"), "default must be a time zone"),
        ((None, None), "default must be a time zone"),
    ],
)
def test_wrong_use(arguments: tuple[Any, ...], message: str) -> None:
    """Texts are no dates, and names are no zones."""
    with pytest.raises(InvalidArgumentError, match=message):
        aware(*arguments)


def test_tables_follow_the_same_rule() -> None:
    """Tables take a date without a zone as `aware` does."""
    naive = datetime(2026, 7, 1, 12)
    assert microseconds(naive) == microseconds(aware(naive))


@pytest.mark.export
def test_exported_dates_follow_the_same_rule(tmp_path: Path) -> None:
    """The dates of a table equal those of `aware`, page by page."""
    pytest.importorskip("pyarrow")
    sitemap = usp.sitemap_from_str(DOCUMENT)
    exported = sitemap.to_arrow(columns="last_modified").column("last_modified").to_pylist()
    assert exported == [usp.aware(page.last_modified) for page in sitemap.pages]
