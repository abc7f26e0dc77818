"""The language of `where`: against DuckDB, what is said of what is wrong, and hostile texts."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from selecting import TYPES, News, Row, columns_of, kept_rows, selected
from usp.exceptions import InvalidArgumentError
from usp.export.selection import select
from usp.export.where import MAX_DEPTH, MAX_LENGTH, MAX_PATTERN
from usp.objects.page import SitemapPageChangeFrequency as Frequency

# The same text, here and in DuckDB.

TEXTS = ["", "a", "A", "aXb", "a%b", "a_b", "ab\ncb", "it's", "é", "É", "😀b", "ΑΣ", "daily", "always"]
TIMES = [
    *(datetime(1, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
    *(datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, 2, 30, tzinfo=timezone(timedelta(hours=2)))),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
]
NUMBERS = ["0", "1", "-1", "0.5", "+.5", "- 2", "0.1", "1e0", "2.", "9223372036854775807", "1.5"]
WRITTEN_TIMES = [
    *("2025-01-01", "2025-01-01T00:30Z", "2025-01-01 02:30:00+02:00", "0001-01-01", "9999-12-31T23:59:59.999999"),
    *("1969-12-31T23:59:59.999999+00", "2025-01-01T00:00:00.000", "1970-01-01T00:00:00-0530"),
]
PATTERNS = [
    "%",
    "_",
    "%%",
    "",
    "a%",
    "%b",
    "%x%",
    "a_b",
    "a%b%",
    "%_b",
    "_%_",
    "%a%b%b",
    "É",
    "ας",
    "A%",
    "a\\%b",
    "[a]",
]


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


ROWS = st.lists(
    st.builds(
        Row,
        url=st.none() | st.sampled_from(TEXTS),
        last_modified=st.none() | st.sampled_from(TIMES),
        change_frequency=st.none() | st.sampled_from(Frequency),
        priority=st.none() | st.sampled_from([0.0, 0.1, 0.5, 1.0]),
        position=st.none() | st.sampled_from([-2, 0, 1, 2, 9_223_372_036_854_775_807]),
        live=st.none() | st.booleans(),
        news=st.none()
        | st.builds(News, title=st.none() | st.sampled_from(TEXTS), publish_date=st.none() | st.sampled_from(TIMES)),
        images=st.none() | st.sampled_from([["a"], ["a", "b"]]),
    ),
    max_size=12,
)
TEXT_COLUMNS = st.sampled_from(["url", "news.title", "URL", '"url"', 'news."title"', "change_frequency", "(url)"])
TIME_COLUMNS = st.sampled_from(["last_modified", "news.publish_date", "Last_Modified"])
OPERANDS = {
    "text": TEXT_COLUMNS | st.sampled_from(TEXTS).map(quoted),
    "time": TIME_COLUMNS | st.sampled_from(WRITTEN_TIMES).map(quoted),
    "number": st.sampled_from(["priority", "position", "(position)"]) | st.sampled_from(NUMBERS),
    "flag": st.sampled_from(["live", "true", "FALSE"]),
}
COLUMNS = st.sampled_from(["url", "last_modified", "priority", "live", "news", "news.title", "images", "'a'"])


@st.composite
def predicates(draw: st.DrawFn) -> str:
    sort = draw(st.sampled_from(sorted(OPERANDS)))
    operand = OPERANDS[sort]
    # A time is compared in one that is a column: texts alone are compared as texts.
    left = draw(TIME_COLUMNS if sort == "time" else operand)
    perhaps_not = draw(st.sampled_from(["", "not ", "NOT "]))
    form = draw(st.sampled_from(["compare", "turned", "in", "between", "like", "null", "flag"]))
    if form in ("compare", "turned"):
        pair = [left, draw(operand)] if form == "compare" else [draw(operand), left]
        return draw(st.sampled_from(["=", " == ", " != ", "<>", " < ", "<=", ">", " >="])).join(pair)
    if form == "in":
        return f"{left} {perhaps_not}in ({', '.join(draw(st.lists(operand, min_size=1, max_size=4)))})"
    if form == "between":
        return f"{left} {perhaps_not}between {draw(operand)} and {draw(operand)}"
    if form == "like":
        word = draw(st.sampled_from(["like", "ILIKE"]))
        return f"{draw(TEXT_COLUMNS)} {perhaps_not}{word} {quoted(draw(st.sampled_from(PATTERNS)))}"
    return f"{draw(COLUMNS)} is {perhaps_not}null" if form == "null" else draw(OPERANDS["flag"])


def combined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return (
        st.builds("{} and {}".format, parts, parts)
        | st.builds("{} OR {}".format, parts, parts)
        | st.builds("not {}".format, parts)
        | st.builds("({})".format, parts)
    )


CONDITIONS = st.recursive(predicates(), combined, max_leaves=8)


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as database:
        database.execute("set TimeZone = 'UTC'")
        database.execute(
            """create table pages (number integer, url varchar, last_modified timestamptz, change_frequency varchar,
            priority double, position bigint, live boolean, news struct(title varchar, publish_date timestamptz),
            images varchar[])"""
        )
        yield database


def in_duckdb(database: duckdb.DuckDBPyConnection, rows: list[Row], where: str) -> list[int]:
    database.execute("delete from pages")
    for number, row in enumerate(rows):
        values = [getattr(row, field.name) for field in fields(row)]
        values[2] = row.change_frequency and row.change_frequency.value
        values[6] = row.news and {"title": row.news.title, "publish_date": row.news.publish_date}
        database.execute("insert into pages values (?, ?, ?, ?, ?, ?, ?, ?, ?)", [number, *values])
    found = database.execute(f"select number from pages where {where} order by 1")  # noqa: S608 - it is what is tested
    return [number for (number,) in found.fetchall()]


@given(ROWS, CONDITIONS)
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_text_means_what_it_means_in_sql(database: Any, rows: list[Row], where: str) -> None:
    """DuckDB keeps the same rows for the same text."""
    assert kept_rows(select(TYPES, where=where).batch(columns_of(rows))) == in_duckdb(database, rows, where)


@given(st.text("ab%_\n", max_size=12), st.text("ab%_\n", max_size=8), st.booleans())
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_pattern_means_what_it_means_in_sql(database: Any, text: str, pattern: str, is_folded: bool) -> None:
    """DuckDB matches the same texts with the same pattern."""
    word = "ilike" if is_folded else "like"
    found = database.execute(f"select ? {word} ?", [text.upper() if is_folded else text, pattern]).fetchone()[0]
    row = Row(url=text.upper() if is_folded else text)
    assert bool(selected(f"url {word} {quoted(pattern)}", row)) == found


@pytest.mark.parametrize("text", ["É", "é", "ΑΣ", "ας", "\u03b1\u03c3", "İ", "i", "I", "ß", "SS", "Ǆ", "ǅ"])
@pytest.mark.parametrize("pattern", ["É", "é", "ΑΣ", "ας", "\u03b1\u03c3", "İ", "i", "ß", "ss", "ǆ", "_"])
def test_letters_are_lowered_as_in_sql(database: Any, text: str, pattern: str) -> None:
    """Letters that Python lowers in its own way are the same letters here and in DuckDB."""
    found = database.execute("select ? ilike ?", [text, pattern]).fetchone()[0]
    assert bool(selected(f"url ilike '{pattern}'", Row(url=text))) == found


def test_a_quote_is_written_twice() -> None:
    """Two quotes within a text are one, and none else has to be."""
    texts = ["it's", "it''s", "'", '"']
    rows = [Row(url=text) for text in texts]
    written = ["'it''s'", "'it''''s'", "''''", "'\"'"]
    assert [selected(f"url = {text}", *rows) for text in written] == [[0], [1], [2], [3]]


# What is wrong is said when the text is parsed, with its place.

WRONG = [
    ("", 1, "expected a column or a value, not the end"),
    ("url = 'a' and", 14, "expected a column or a value, not the end"),
    ("url", 1, "url is compared with nothing"),
    ("live and url", 10, "url is compared with nothing"),
    ("url = 'a' url", 11, "expected and, or, or the end, not 'url'"),
    ("url = 'a' is null", 11, "expected and, or, or the end, not 'is'"),
    ("position < 1 < 2", 14, "expected and, or, or the end, not '<'"),
    ("(url = 'a'", 11, "expected ) for the parenthesis at character 1, not the end"),
    ("url = (live = true)", 7, "expected a column or a value, not a condition"),
    ("url = 'a", 7, "this quote is never closed"),
    ("url = \u2018a\u2019", 7, "is not understood"),
    ("url = 'a'; drop table pages", 10, "';' is not understood"),
    ("url = null", 7, "what is null is found with: is null"),
    ("url is nul", 8, "expected null or not null after is, not 'nul'"),
    ("url not 5", 9, "expected in, between, like or ilike after not"),
    ("url in 'a'", 8, "expected ( after in"),
    ("url in ()", 9, "expected a column or a value"),
    ("url in ('a' 'b')", 13, "expected ) or a comma"),
    ("position between 1 or 2", 20, "expected and after between and a value"),
    ("position = --1", 13, "expected a number"),
    ("position = 1e999", 12, "'1e999' is too large"),
    ("url = 5", 7, "url is a text, 5 is a number: they cannot be compared; write texts in single quotes"),
    ("priority > '0.5'", 12, "they cannot be compared; write numbers without quotes"),
    ("'a' = priority", 7, "they cannot be compared; write numbers without quotes"),
    ("url in ('a', 5)", 14, "they cannot be compared"),
    ("last_modified >= 2025", 18, "write times like '2025-01-01'"),
    ("last_modified >= '2025'", 18, "'2025' is no time; write times like '2025-01-01'"),
    ("last_modified >= '2025-02-30'", 18, "'2025-02-30' is no time"),
    ("last_modified = url", 17, "last_modified is a time, url is a text"),
    ("live = 1", 8, "live is true or false, 1 is a number"),
    ("priority like '0%'", 1, "priority is no text"),
    ("url like news.title", 10, "like needs a text in single quotes"),
    ("images = 'a'", 1, "images is a list; only images is null and images is not null can be asked of it"),
    ("url in (images)", 9, "images is a list"),
    ("news = 'a'", 1, "news is a struct; only news is null"),
    ("images.loc = 'a'", 1, "no column 'images.loc': images is a list"),
    ("lastmodified >= '2025-01-01'", 1, "no column 'lastmodified'; did you mean last_modified? There are url, last_m"),
    ("live and xyz = 1", 10, "no column 'xyz'; there are url, last_modified, change_frequency"),
    ('url = "a"', 7, "texts stand in single quotes"),
]


@pytest.mark.parametrize(("where", "character", "message"), WRONG)
def test_what_is_wrong_is_said_with_its_place(where: str, character: int, message: str) -> None:
    """A text that states no condition is refused before there are rows, with the place and what was expected."""
    with pytest.raises(InvalidArgumentError) as caught:
        select(TYPES, where=where)
    assert str(caught.value).startswith(f"where, at character {character}: ")
    assert message in str(caught.value)


PIECES = [
    "url",
    "live",
    "images",
    "news.title",
    "'a'",
    "''",
    "'",
    '"',
    "1",
    "-",
    "(",
    ")",
    ",",
    "=",
    "<>",
    "%",
    "\ud800",
]
PIECES += ["and", "or", "not", "is", "null", "in", "between", "like", "true", ".", "1.5e", "\0", "last_modified"]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=15).map(" ".join) | st.text())
def test_any_text_is_parsed_or_refused(where: str) -> None:
    """A text raises nothing but what says that it is wrong, in one line; what is parsed can be asked of rows."""
    try:
        found: object = selected(where, Row(), Row(url="a"))
    except InvalidArgumentError as error:
        found = str(error).isprintable()
    assert found in (True, [], [0], [1], [0, 1])


# What would be hard on a careless reader.


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("(" * 5_000 + "live" + ")" * 5_000, f"at character {MAX_DEPTH + 1}: parentheses are {MAX_DEPTH} deep already"),
        ("url = 'a' or " * MAX_LENGTH, f"no more than {MAX_LENGTH:,} are read"),
        (f"url like '{'%a' * MAX_PATTERN}'", f"{MAX_PATTERN:,} are read at most"),
        (f"position = {'9' * 5_000}", "is too large"),
    ],
)
def test_there_is_an_end_to_texts(where: str, message: str) -> None:
    """What is too deep, too long or too large is refused."""
    with pytest.raises(InvalidArgumentError, match=re.escape(message)):
        select(TYPES, where=where)


def test_what_is_long_and_deep_is_read() -> None:
    """As much as is allowed needs no more of the stack than there is."""
    deep = "not (" * MAX_DEPTH + "live" + ")" * MAX_DEPTH
    assert selected(deep, Row(live=True), Row(live=False)) == [0]
    beside = " and ".join(["(live)"] * 3 * MAX_DEPTH)
    assert selected(beside, Row(live=True), Row(live=False)) == [0]
    assert selected("not " * 9_999 + "live", Row(live=True), Row(live=False)) == [1]
    assert selected(" or ".join(["live"] * 9_999), Row(live=True), Row(live=False)) == [0]
    assert selected(f"position in ({', '.join(map(str, range(9_999)))})", Row(position=9_998), Row(position=-1)) == [0]


@pytest.mark.parametrize("pattern", ["%a" * 400 + "%b", "%_a" * 300 + "%b", "%a_" * 300 + "b%c", "a%" * 400 + "_b"])
def test_a_pattern_takes_no_longer_than_it_must(pattern: str) -> None:
    """A pattern that could be tried in very many ways is not."""
    started = time.process_time()
    assert selected(f"url like '{pattern}'", *[Row(url="a" * 2_048)] * 20) == []
    assert time.process_time() - started < 10
