"""Which rows and columns are selected."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from selecting import TYPES, News, Row, columns_of, kept_rows
from tables import columns_with
from usp.exceptions import InvalidArgumentError
from usp.export.batches import Batch, page_columns, pages_of
from usp.export.schema import PAGES, SITEMAPS
from usp.export.selection import Selection, select
from usp.scan.columns import Column, Columns, Scalar
from usp.tree import sitemap_from_bytes

pytestmark = pytest.mark.export


def test_a_null_under_a_null_is_none() -> None:
    """A field of a struct that is null is null, whatever its own buffers say, as it is where they say so."""
    titles = columns_of([Row(news=News("a")), Row(news=News("a")), Row(news=News())]).columns["news"].children
    valid = columns_of([Row(), Row(news=News()), Row(news=News())]).columns["news"].valid
    columns = Columns(3, {"news": Column(3, valid=valid, children=titles)})
    assert kept_rows(select(TYPES, where="news.title = 'a'").batch(columns)) == [1]
    assert kept_rows(select(TYPES, where="news.title is null").batch(columns)) == [0, 2]
    assert kept_rows(select(TYPES, where="news is null").batch(columns)) == [0]


def test_a_column_that_is_missing_is_null() -> None:
    """What no row of a batch has compares with nothing, and is null."""
    columns = columns_with(TYPES, url=["a", "b"])
    assert select(TYPES, where="news.title <> 'a' or not priority = 1").batch(columns) == Batch(Columns(0, {}))
    assert select(TYPES, where="news.title is null and images is null").batch(columns) == Batch(columns)


def test_kept_says_no_more_than_it_must() -> None:
    """Where all rows are wanted there is no `kept`, and where none is there are no rows."""
    columns = columns_of([Row(url="a"), Row(url="b")])
    assert select(TYPES).batch(columns) == Batch(columns)
    assert select(TYPES, where="url < 'c'").batch(columns) == Batch(columns)
    assert select(TYPES, where="url > 'c'").batch(columns) == Batch(Columns(0, {}))
    assert select(TYPES, where="url > 'a'").batch(columns) == Batch(columns, b"\0\1")
    assert select(TYPES, where="url > 'a'").batch(Columns(0, {})).columns.length == 0


ENTRIES = """
<url><loc>https://www.example.org/1</loc><lastmod>2025-01-01</lastmod><changefreq>daily</changefreq></url>
<url><loc>https://www.example.org/2</loc><lastmod>2025-01-02T10:00:00+02:00</lastmod><priority>0.9</priority></url>
<url><loc>https://www.example.org/3</loc>
<news:news><news:publication_date>2025-01-03</news:publication_date><news:title>T</news:title></news:news></url>
"""


@pytest.mark.parametrize(
    ("where", "positions"),
    [
        ("last_modified > '2025-01-01' and last_modified <= '2025-01-02T08:00'", [2]),
        ("last_modified is null", [3]),
        ("change_frequency <> 'weekly'", [1]),
        ("change_frequency is null", [2, 3]),
        ("priority = 0.9", [2]),
        ("priority is null", [1, 3]),
        ("news.title = 'T'", [3]),
        ("news is null and images is null", [1, 2]),
        ("lastmod = '2025-01-01' or changefreq = 'weekly' or loc like '%/2'", [1, 2]),
        ("regexp_matches(url, '/[23]$') and len(sitemap_url) > 5", [2, 3]),
        ("news.publish_date - last_modified > interval 1 day or year(news.publish_date) = 2025", [3]),
        ("sitemap_type = 'urlset' and sitemap_url like '%/sitemap.xml' and position in (1, 3)", [1, 3]),
    ],
)
def test_pages_of_a_sitemap_are_selected(where: str, positions: list[int]) -> None:
    """What is read of a sitemap for a selection is all that it needs."""
    news = "http://www.google.com/schemas/sitemap-news/0.9"
    text = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:news="{news}">{ENTRIES}</urlset>'
    listing = pages_of(sitemap_from_bytes(text.encode(), "https://www.example.org/sitemap.xml"))
    selection = select(PAGES, "url", where)
    (columns,) = page_columns(listing, selection.needed)
    batch = selection.batch(columns)
    assert [row + 1 for row in kept_rows(batch)] == positions


# Columns, and since when.


def test_columns_are_chosen_in_their_order() -> None:
    """A text with commas and a sequence choose the same; what `where` needs is read and not written."""
    expected = {"priority": Scalar.NUMBER, "news.title": Scalar.TEXT}
    for columns in ("priority, news.title", ["priority", "news.title"]):
        selection = select(PAGES, columns, where="position < 5 and sitemap_url like '%a%'")
        assert selection.chosen == expected
        assert list(selection.chosen) == list(expected)
        assert selection.needed == {"url", "priority", "news", "position", "sitemap_url"}
    assert select(PAGES, "priority", since="2025-01-01").needed == {"url", "priority", "last_modified", "news"}
    assert list(select(PAGES, "lastmod,changefreq").chosen) == ["last_modified", "change_frequency"]
    assert list(select(PAGES, "loc,priority").chosen) == ["url", "priority"]
    assert select(SITEMAPS).chosen == SITEMAPS
    assert select(SITEMAPS).needed == set(SITEMAPS)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("", "columns names no column; there are url, last_modified"),
        ([], "columns names no column; there are url"),
        ("url,,priority", "no column ''; there are url"),
        ("url,priority,url", "columns names url twice; there are"),
        (["url", "titel"], "no column 'titel'; "),
        ("new.title", "did you mean news.title?"),
        ("images.loc", "images is a list"),
    ],
)
def test_columns_that_there_are_not(columns: Any, message: str) -> None:
    """What is unknown or named twice is refused, with what there is."""
    with pytest.raises(InvalidArgumentError) as caught:
        select(PAGES, columns)
    assert message in str(caught.value)


NOW = datetime(2025, 1, 8, 12, tzinfo=UTC)


def since_of(selection: Selection, times: list[datetime]) -> list[int]:
    return kept_rows(selection.batch(columns_of([Row(last_modified=time) for time in times])))


@pytest.mark.parametrize(
    ("since", "first"),
    [
        ("2025-01-01", datetime(2025, 1, 1, tzinfo=UTC)),
        ("2025-01-01T10:00:00+02:00", datetime(2025, 1, 1, 8, tzinfo=UTC)),
        (date(2025, 1, 1), datetime(2025, 1, 1, tzinfo=UTC)),
        (datetime(2025, 1, 1, 5), datetime(2025, 1, 1, 5, tzinfo=UTC)),
        (datetime(2025, 1, 1, 5, tzinfo=timezone(timedelta(hours=2))), datetime(2025, 1, 1, 3, tzinfo=UTC)),
        ("7d", datetime(2025, 1, 1, 12, tzinfo=UTC)),
        ("24h", datetime(2025, 1, 7, 12, tzinfo=UTC)),
        (" 1w ", datetime(2025, 1, 1, 12, tzinfo=UTC)),
    ],
)
def test_since(since: Any, first: datetime) -> None:
    """What was modified then or later is kept, in UTC where there is no zone; `where` must hold too."""
    times = [first - timedelta(microseconds=1), first, first + timedelta(days=1)]
    assert since_of(select(TYPES, since=since, now=NOW), times) == [1, 2]
    later = select(TYPES, where=f"last_modified <> '{first.isoformat()}' or live", since=since, now=NOW)
    assert since_of(later, times) == [2]
    assert since_of(select(TYPES, since=first, until=first), times) == [1]


@pytest.mark.parametrize(
    ("until", "last"),
    [
        ("2025-01-01", datetime(2025, 1, 1, 23, 59, 59, 999_999, UTC)),
        (date(2025, 1, 1), datetime(2025, 1, 1, 23, 59, 59, 999_999, UTC)),
        ("2025-01-01T10:00:00+02:00", datetime(2025, 1, 1, 8, tzinfo=UTC)),
        (datetime(2025, 1, 1, 5), datetime(2025, 1, 1, 5, tzinfo=UTC)),
        ("7d", datetime(2025, 1, 1, 12, tzinfo=UTC)),
    ],
)
def test_until(until: Any, last: datetime) -> None:
    """Pages modified at that time or earlier are kept; a date includes the whole day."""
    times = [last - timedelta(days=1), last, last + timedelta(microseconds=1)]
    assert since_of(select(TYPES, until=until, now=NOW), times) == [0, 1]


def test_pages_without_a_modification_date() -> None:
    """The publication date of a story counts for `since` and `until` where there is no modification date."""
    old, new = datetime(2024, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)
    stories = [News(publish_date=new), News(publish_date=old), News(), None]
    rows = [Row(last_modified=time, news=story) for time in (None, old, new) for story in stories]
    by_publication = [Row(news=story) for story in stories]
    assert kept_rows(select(TYPES, since="2024-06-01").batch(columns_of(rows))) == [0, 8, 9, 10, 11]
    assert kept_rows(select(TYPES, until="2024-06-01").batch(columns_of(rows))) == [1, 4, 5, 6, 7]
    assert kept_rows(select(TYPES, since="2024-06-01").batch(columns_of(by_publication))) == [0]
    assert kept_rows(select(TYPES, since="2024-06-01").batch(columns_of([Row(url="a")]))) == []


@pytest.mark.parametrize("since", ["", "yesterday", "7", "7m", "2025", "-7d", "2025-13-01", 7, "7d7d"])
def test_since_when_is_not_understood(since: Any) -> None:
    """What is no time is refused, with what can be written."""
    with pytest.raises(InvalidArgumentError, match=r"since must be like 2025-01-01, .* 7d"):
        select(TYPES, since=since)
    with pytest.raises(InvalidArgumentError, match=r"until must be like 2025-01-01, .* 7d"):
        select(TYPES, until=since)


def test_since_needs_times() -> None:
    """A table that does not say when its rows were modified cannot be asked."""
    with pytest.raises(InvalidArgumentError, match="since and until need a column last_modified"):
        select({"url": Scalar.TEXT}, since="7d")
    assert select(TYPES, since="999999999w").batch(columns_of([Row(last_modified=NOW)])).kept is None
