"""Dates of HTTP headers: the usual form is read as `email.utils` reads it, and so is every other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime, parsedate_to_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from usp.web_client.http_dates import http_date, read_http_date


@given(st.datetimes(datetime(1000, 1, 1), timezones=st.just(UTC)))
def test_the_usual_form_is_read_as_email_reads_it(date: datetime) -> None:
    """A date that `email.utils` writes is read to the second."""
    assert read_http_date(format_datetime(date, usegmt=True)) == date.replace(microsecond=0)
    assert http_date(date) == format_datetime(date, usegmt=True)


@pytest.mark.parametrize(
    "text",
    [
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "Sun, 06 Nov 1994 08:49:37 -0000",
        "Sun, 06 Nov 1994 09:49:37 +0100",
        "Sun, 06 Nov 0094 08:49:37 GMT",
        "sun, 06 nov 1994 08:49:37 gmt",
        "06 Nov 1994 08:49:37 GMT",
        "Mon, 06 Nov 1994 08:49:37 GMT ",
    ],
)
def test_other_forms_are_read_too(text: str) -> None:
    """Each form that was ever allowed, and those that servers send all the same."""
    date = parsedate_to_datetime(text)
    expected = date.replace(tzinfo=UTC) if date.tzinfo is None else date
    found = read_http_date(text)
    assert found == expected
    assert found is not None
    assert found.tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [None, "", "0", "-1", "yesterday", "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT", "\0"],
)
def test_what_is_no_date_is_none(text: str | None) -> None:
    """Servers write anything, for instance a date that does not exist."""
    assert read_http_date(text) is None


def test_a_date_in_another_zone_is_in_utc() -> None:
    """The result is in UTC, whatever zone the server uses."""
    date = datetime(2026, 3, 1, 0, 30, tzinfo=timezone(timedelta(hours=2)))
    assert read_http_date(format_datetime(date)) == datetime(2026, 2, 28, 22, 30, tzinfo=UTC)
