"""When the next run of a watched crawl starts, from plain values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from usp.crawl.folder import Run
from usp.crawl.schedule import Schedule
from usp.exceptions import InvalidArgumentError
from usp.export.selection import span_of

DAY = datetime(2026, 1, 1, tzinfo=UTC)
HOURLY = Schedule(timedelta(hours=1), timedelta(0))


def at(text: str) -> datetime:
    """Return a time of the day; "25:00" is on the next one."""
    hours, minutes = map(int, text.split(":"))
    return DAY + timedelta(hours=hours, minutes=minutes)


def runs(*spans: str) -> list[Run]:
    """Return runs from texts such as "10:00-10:05"; one without an end was interrupted."""
    found = []
    for number, span in enumerate(spans, 1):
        start, _, end = span.partition("-")
        found.append(Run(number, at(start), at(end) if end else None))
    return found


@pytest.mark.parametrize(
    ("now", "spans", "failed", "expected"),
    [
        pytest.param("10:00", (), None, "10:00", id="the first run starts at once"),
        pytest.param("10:06", ("10:00-10:05",), None, "11:00", id="the next one an hour after its start"),
        pytest.param("10:30", ("10:00",), None, "10:30", id="an interrupted run goes on at once"),
        pytest.param("10:59", ("10:00-10:05",), None, "11:00", id="a restart does not change that"),
        pytest.param("11:00", ("10:00-10:05",), None, "11:00", id="on the dot"),
        pytest.param("11:20", ("10:00-10:05",), None, "11:20", id="a missed slot is made up for at once"),
        pytest.param("15:20", ("10:00-10:05",), None, "15:20", id="and so are several, once"),
        pytest.param("15:26", ("10:00-10:05", "15:20-15:25"), None, "16:00", id="then the slots are as before"),
        pytest.param("15:56", ("10:00-10:05", "15:50-15:55"), None, "17:00", id="but two runs do not follow closely"),
        pytest.param("11:10", ("10:00-11:10",), None, "12:00", id="slots during a long run are skipped"),
        pytest.param("10:01", (), "10:01", "11:01", id="a first run that failed is tried again an hour later"),
        pytest.param("11:01", ("10:00-10:05",), "11:01", "12:00", id="a failed start is tried again in the next slot"),
        pytest.param("11:01", ("10:00-10:05", "11:00"), "11:01", "12:00", id="and so is a run that failed half-way"),
        pytest.param("12:00", ("10:00-10:05", "11:00"), "11:01", "12:00", id="which is then"),
        pytest.param("10:00", ("10:00-10:05", "19:00-19:05"), None, "10:00", id="a wrong clock blocks nothing"),
        pytest.param("10:06", ("10:00-10:02", "10:03-10:05"), None, "11:00", id="runs by hand do not move slots"),
    ],
)
def test_next_start(now: str, spans: tuple[str, ...], failed: str | None, expected: str) -> None:
    """Each case has the time, the runs so far and when the last attempt failed, and then the next start."""
    assert HOURLY.next_start(at(now), runs(*spans), None if failed is None else at(failed)) == at(expected)


def test_no_jitter_needs_no_unit() -> None:
    """A span of 0 is the same in every unit."""
    assert span_of("--jitter", " 0 ") == span_of("--jitter", "0s") == timedelta(0)


def test_jitter_is_within_its_bounds_and_the_same_after_a_restart() -> None:
    """A run starts in its slot, at most `jitter` later. Each slot has its own delay, which stays after a restart."""
    schedule = Schedule(timedelta(hours=1), timedelta(minutes=30))
    done, delays = runs("10:00-10:05"), set()
    for hour in range(11, 60):
        start = schedule.next_start(at(f"{hour - 1}:31"), done)
        assert start == schedule.next_start(start - timedelta(seconds=1), done)
        assert timedelta(0) <= start - at(f"{hour}:00") < timedelta(minutes=30)
        delays.add(start - at(f"{hour}:00"))
        done.append(Run(len(done) + 1, start, start + timedelta(seconds=5)))
    assert len(delays) > 40


def test_runs_do_not_drift() -> None:
    """After a thousand runs with jitter, there have been a thousand slots."""
    schedule, done = Schedule(timedelta(minutes=15)), runs("10:00-10:01")
    for number in range(2, 1_002):
        start = schedule.next_start(done[-1].ended or DAY, done)
        done.append(Run(number, start, start + timedelta(minutes=3)))
    assert timedelta(0) <= done[-1].started - done[0].started - 1_000 * timedelta(minutes=15) < timedelta(minutes=1.5)


def test_another_interval_takes_effect_at_once() -> None:
    """With another interval, the slots are counted again from the first run."""
    done = runs("10:00-10:05", "11:00-11:05")
    assert Schedule(timedelta(minutes=15), timedelta(0)).next_start(at("11:06"), done) == at("11:15")
    assert Schedule(timedelta(hours=6), timedelta(0)).next_start(at("11:06"), done) == at("16:00")


@pytest.mark.parametrize(
    ("every", "jitter"),
    [
        (timedelta(0), None),
        (timedelta(days=367), None),
        (timedelta(hours=1), timedelta(minutes=31)),
        (timedelta(hours=1), timedelta(seconds=-1)),
    ],
)
def test_wrong_schedules_are_refused(every: timedelta, jitter: timedelta | None) -> None:
    """An interval or a jitter that makes no sense is refused."""
    with pytest.raises(InvalidArgumentError):
        Schedule(every, jitter)
