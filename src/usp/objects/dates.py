"""`aware`: dates with a time zone, so that they can be compared.

A date has a time zone only if the site states one. All other dates are taken to be in UTC, unless you say otherwise.
Tables follow the same rule.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, tzinfo
from typing import overload

from usp.exceptions import InvalidArgumentError

__all__ = ["ASSUMED_ZONE", "aware"]

#: The time zone of dates that state none, in tables and wherever else dates are compared.
ASSUMED_ZONE = UTC


@overload
def aware(value: None, default: tzinfo = ASSUMED_ZONE) -> None: ...
@overload
def aware(value: date, default: tzinfo = ASSUMED_ZONE) -> datetime: ...
@overload
def aware(value: date | None, default: tzinfo = ASSUMED_ZONE) -> datetime | None: ...
def aware(value: date | None, default: tzinfo = ASSUMED_ZONE) -> datetime | None:
    """Return a date with a time zone: its own if it has one, else `default`.

        from datetime import UTC, datetime

        from usp import aware, sitemap_tree_for_homepage

        for page in sitemap_tree_for_homepage("https://www.example.org/").all_pages():
            if page.last_modified and aware(page.last_modified) >= datetime(2026, 1, 1, tzinfo=UTC):
                print(page.url)

    Pages have a date without a time as midnight, its start.

    :param value: a date of a page, a news story, a video or a sitemap; None gives None.
    :param default: the time zone of dates without one, such as `zoneinfo.ZoneInfo("Europe/Berlin")`.
    """
    if not isinstance(default, tzinfo):
        raise InvalidArgumentError(
            f'default must be a time zone, such as datetime.UTC or ZoneInfo("Europe/Berlin"), not {default!r}'
        )
    if value is None:
        return None
    if not isinstance(value, datetime):
        if not isinstance(value, date):
            raise InvalidArgumentError(f"give a date or None, not {value!r}")
        value = datetime.combine(value, time())
    if value.utcoffset() is not None:
        return value
    # The zones of pytz are wrong by minutes unless they set themselves.
    localize = getattr(default, "localize", None)
    return localize(value.replace(tzinfo=None)) if localize else value.replace(tzinfo=default)
