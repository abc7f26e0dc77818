"""Conditions (`where`): what they keep, what is wrong with them, and what they must not do."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commands import environment
from selecting import TYPES, News, Row, columns_of, kept_rows, selected
from usp.exceptions import InvalidArgumentError, MissingExtraError
from usp.export.conditions import MAX_LENGTH, Condition
from usp.export.selection import select
from usp.extras import Installation
from usp.objects.page import SitemapPageChangeFrequency as Frequency

pytestmark = pytest.mark.export

# The same condition over rows that DuckDB has in a table of its own.

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
    *("%", "_", "%%", "", "a%", "%b", "%x%", "a_b", "a%b%", "%_b", "_%_", "%a%b%b", "É", "ας", "A%", "a\\%b", "[a]"),
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
    found = database.execute(f"select number from pages where {where} order by 1")
    return [number for (number,) in found.fetchall()]


@pytest.mark.slow
@given(ROWS, CONDITIONS)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_text_means_what_it_means_in_sql(database: Any, rows: list[Row], where: str) -> None:
    """DuckDB keeps the same rows for the same text."""
    assert kept_rows(select(TYPES, where=where).batch(columns_of(rows))) == in_duckdb(database, rows, where)


def test_a_quote_is_written_twice() -> None:
    """Two quotes within a text are one, and none else has to be."""
    texts = ["it's", "it''s", "'", '"']
    rows = [Row(url=text) for text in texts]
    written = ["'it''s'", "'it''''s'", "''''", "'\"'"]
    assert [selected(f"url = {text}", *rows) for text in written] == [[0], [1], [2], [3]]


# What is wrong is known before there are rows, and DuckDB says it.

WRONG = [
    ("", "It is empty"),
    ("url = 'a' and", "syntax error"),
    ("url", "It must be true or false, but it is of type VARCHAR"),
    ("position", "It must be true or false, but it is of type BIGINT"),
    ("(url = 'a'", "syntax error"),
    ("url = 'a", "unterminated"),
    ("last_modified >= 2025", "Cannot compare values of type TIMESTAMP WITH TIME ZONE and type INTEGER"),
    ("last_modified >= '2025'", 'invalid timestamp field format: "2025"'),
    ("last_modified >= '2025-02-30'", 'timestamp field value out of range: "2025-02-30"'),
    ("images.loc = 'a'", "Cannot extract field 'loc' from expression \"images\""),
    ("lastmodified >= '2025-01-01'", 'Candidate bindings: "last_modified"'),
    ('url = "a"', 'Referenced column "a" not found'),
    ("url = '\ud800'", "It is not UTF-8"),
    ("url = 'a' or " * MAX_LENGTH, f"the limit is {MAX_LENGTH:,}"),
    ("(" * 5_000 + "live" + ")" * 5_000, "Max expression depth"),
]


@pytest.mark.parametrize(("where", "message"), WRONG)
def test_wrong_conditions(where: str, message: str) -> None:
    """A text that is no condition is refused before there are rows, with DuckDB's message."""
    with pytest.raises(InvalidArgumentError, match=re.escape(message)) as caught:
        select(TYPES, where=where)
    assert str(caught.value).startswith("The condition cannot be run. ")


ESCAPES = [
    ("url = 'a'; drop table pages", "syntax error"),
    ("true) union select (true", "one condition"),
    ("true) from pages where (true", "one condition"),
    ("true), (true", "one condition"),
    ("true) limit (1", "one condition"),
    ("true) order by (url", "one condition"),
    ("true); select (true", "one condition"),
    ("true /* no end", "unterminated /* comment"),
    ("exists (select 1)", "a subquery"),
    ("url in (select url from pages)", "a subquery"),
    ("(from read_text('/etc/passwd')) is null", "a subquery"),
    ("case when (select true) then true else false end", "a subquery"),
    ("len(list_filter(images, lambda x: (select true))) = 0", "a subquery"),
    ("read_text('/etc/passwd') is null", "table function"),
    ("row_number() over () < 4", "a window function"),
    ("count(*) > 1", "aggregates"),
    ("url = ?", "a parameter"),
    ("columns(*) is null", "*"),
    ("#1 = 'a'", "POSITIONAL_REFERENCE"),
    ("TYPES is null", 'Referenced column "TYPES" not found'),
]


@pytest.mark.parametrize(("where", "message"), ESCAPES)
def test_a_condition_is_about_one_row(where: str, message: str) -> None:
    """A condition has no other statements and clauses, and cannot reach files, other rows or variables of Python."""
    with pytest.raises(InvalidArgumentError, match=re.escape(message)):
        select(TYPES, where=where)


@pytest.mark.parametrize("name", ["enable_external_access", "autoinstall_known_extensions"])
def test_the_database_of_a_condition_is_closed_off(name: str) -> None:
    """DuckDB has no access to files, the network or extensions while it evaluates a condition."""
    assert selected(f"current_setting('{name}') = false and current_setting('lock_configuration')", Row()) == [0]
    assert selected("current_setting('TimeZone') = 'UTC'", Row()) == [0]


PIECES = [
    *("url", "live", "images", "news.title", "'a'", "''", "'", '"', "1", "-", "(", ")", ",", "=", "<>", "%", "\ud800"),
    *("and", "or", "not", "is", "null", "in", "between", "like", "true", ".", "1.5e", "\0", "last_modified", "select"),
    *("from", "pages", ";", "--", "/*", "*/", "::", "x -> x", "union", "limit", "case", "when", "then", "end", "[1]"),
]


@pytest.mark.slow
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=15).map(" ".join) | st.text())
def test_any_text_is_run_or_refused(where: str) -> None:
    """A text raises nothing but what says that it is wrong; what is accepted keeps rows, in their order."""
    try:
        found: object = selected(where, Row(), Row(url="a"))
    except InvalidArgumentError as error:
        found = all(line.isprintable() for line in str(error).split("\n"))
    assert found in (True, [], [0], [1], [0, 1])


def test_conditions_that_fail_later() -> None:
    """A value that DuckDB cannot convert raises an error with its message, and the next batch is evaluated."""
    selection = select(TYPES, where="url::integer > 1")
    with pytest.raises(InvalidArgumentError, match=r"The condition failed\. .*Could not convert string 'a'"):
        selection.batch(columns_of([Row(url="a")]))
    assert kept_rows(selection.batch(columns_of([Row(url="1"), Row(url="2")]))) == [1]


def test_only_what_is_named_is_needed() -> None:
    """A condition reads the columns that it names; the row as a whole is all of them."""
    needed = {
        "position > 5 and URL like 'a%'": {"position", "url"},
        "lastmod is null": {"last_modified"},
        "len(list_filter(images, lambda url: url = 'a')) > 0": {"images", "url"},
        "pages.live": {"live"},
        "to_json(pages) like '%a%'": set(TYPES),
        "random() < 2": {"url"},
    }
    assert {where: set(Condition(where, TYPES).needed) for where in needed} == needed


def test_the_whole_row() -> None:
    """The table's name is the row, with all its columns."""
    assert selected("pages.url = 'a' and to_json(pages) like '{\"url\":\"a\",%'", Row(url="a"), Row(url="b")) == [0]


def test_many_rows_keep_their_order() -> None:
    """Any number of rows is evaluated in order, in several threads at once."""
    rows = [Row(position=number, url=str(number)) for number in range(30_000)]
    selection, columns = select(TYPES, where="position % 3 = 0 and url not like '%9'"), columns_of(rows)
    expected = [number for number in range(30_000) if number % 3 == 0 and number % 10 != 9]
    with ThreadPoolExecutor(4) as pool:
        for batch in pool.map(selection.batch, [columns] * 12):
            assert kept_rows(batch) == expected


@pytest.mark.slow
def test_a_condition_can_be_stopped() -> None:
    """A condition that takes long ends when it is interrupted."""
    # DuckDB looks for an interrupt after each 2,048 rows, so many rows that each cost little stop at once.
    selection = select(TYPES, where="list_sum(list_transform(range(2_000), lambda x: x + position)) > 0")
    with ThreadPoolExecutor(1) as pool:
        started = pool.submit(selection.batch, columns_of([Row(position=1)] * 50_000))
        while not started.done():
            selection.interrupt()
            time.sleep(0.05)
        with pytest.raises(InvalidArgumentError, match="The condition failed"):
            started.result()


INTERRUPTED = """
import os, signal, threading
import duckdb, pyarrow
from usp.export.schema import PAGES
from usp.export.selection import select
from usp.objects.page import SitemapPage
from usp.objects.sitemap import IndexWebsiteSitemap, PagesXMLSitemap
pages = [SitemapPage("http://h/")] * 50_000
tree = IndexWebsiteSitemap("http://h/", [PagesXMLSitemap(f"http://h/{i}", pages) for i in range(200)])
threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    CALL
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "call",
    [
        "select(PAGES, where='len(list_filter(range(100_000_000), lambda x: x < 0)) > 0')",
        "tree.to_duckdb()",
    ],
)
def test_keyboard_interrupts(call: str) -> None:
    """Ctrl-C while DuckDB works in the main thread is a KeyboardInterrupt, not an error of DuckDB."""
    run = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.replace("CALL", call)],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
    )
    assert (run.stdout, run.stderr) == ("interrupted\n", "")


@pytest.mark.parametrize("missing", ["duckdb", "pyarrow"])
def test_without_duckdb(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    """Without DuckDB an error says what to install; all else selects without it."""
    monkeypatch.setitem(sys.modules, missing, None)
    command = Installation.here().command("sql", missing)
    with pytest.raises(MissingExtraError, match=re.escape(f"This needs {missing}; install it with: {command}")):
        select(TYPES, where="live")
    assert kept_rows(select(TYPES, "url", since="7d").batch(columns_of([Row(url="a")]))) == []
